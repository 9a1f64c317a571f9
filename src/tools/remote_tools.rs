//! Tools of other MCP servers, called through [`RemoteTools`].

use futures::future::BoxFuture;
use serde_json::{Map, Value};

use super::dispatch::ToolContext;
use super::reply::Reply;
use call::Refusal;
use config::ServerEntry;
use fleet::{RemoteCallWatch, ToolAnswer};

/// Client for the tools of other MCP servers.
pub trait RemoteTools: Send + Sync {
    /// Calls a tool of another server. Ends within the server's time limit, with an answer or the reason for none.
    fn call(
        &self,
        call: RemoteToolCall,
        watch: RemoteCallWatch,
    ) -> BoxFuture<'static, Result<ToolAnswer, Refusal>>;
}

/// A call of another server's tool.
#[derive(Clone, Debug, PartialEq)]
pub struct RemoteToolCall {
    /// The server.
    pub server: ServerEntry,
    /// Its tool.
    pub tool: String,
    /// The arguments as understood, under the declared names.
    pub arguments: Map<String, Value>,
}

/// Calls another server and passes its answer on.
pub(super) async fn call(ctx: &ToolContext<'_>, server: &ServerEntry, tool: &str) -> Reply {
    let name = server_name(server);
    let Some(client) = &ctx.node.remote_tools else {
        return Reply::failed(format!(
            "this node cannot reach other servers, so not {name} either"
        ));
    };
    let call = RemoteToolCall {
        server: server.clone(),
        tool: tool.to_owned(),
        arguments: ctx.reading.understood.clone(),
    };
    let answer = client.call(call, ctx.watch.clone()).await;
    match answer {
        Ok(answer) => reply_from(answer),
        Err(error) => Reply::failed(format!("{tool} of {name}: {error}")).with("code", "server"),
    }
    .with("server", name)
}

fn reply_from(answer: ToolAnswer) -> Reply {
    let text = match answer.text.as_str() {
        "" => "it answered without words",
        text => text,
    };
    let mut reply = if answer.is_error {
        Reply::failed(text).with("code", "server")
    } else {
        Reply::done(text)
    };
    if !answer.structured.is_empty() {
        reply.set("result", answer.structured);
    }
    reply.images = answer.images;
    reply
}

/// Returns the name of a server for messages: its address, or its program.
fn server_name(server: &ServerEntry) -> String {
    let name = server.url.as_ref().or(server.command.as_ref());
    name.cloned().unwrap_or_default()
}
