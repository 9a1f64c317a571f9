//! Options of `serve`.

use std::path::PathBuf;

use clap::Args;

use node::serve::{HttpEndpoint, ServeOptions};

#[derive(Debug, Args)]
pub(super) struct ServeArgs {
    /// Serve streamable HTTP at this address, under /mcp; `systemd` for the socket that systemd opened
    #[arg(long, value_name = "ADDRESS")]
    http: Option<HttpEndpoint>,
    /// With --http: serve standard input and output as well; the node ends when they end
    #[arg(long, requires = "http")]
    stdio: bool,
    /// With --http: end as on SIGTERM when standard input ends, as it does when the process that holds its other side goes away
    #[arg(long, requires = "http", conflicts_with = "stdio", hide = true)]
    end_with_input: bool,
    /// Host names other than localhost under which clients may call this node
    #[arg(long, value_name = "HOST")]
    host: Vec<String>,
    /// Scenes in which motion is allowed from the start, if the arm is not the embedded simulator
    #[arg(long, value_name = "SCENE", num_args = 1..)]
    enable: Vec<String>,
    /// Socket at which operators reach this node [default: a socket of its name in the runtime folder]
    #[arg(long, value_name = "PATH")]
    socket: Option<PathBuf>,
}

impl From<ServeArgs> for ServeOptions {
    fn from(args: ServeArgs) -> Self {
        Self {
            http: args.http,
            stdio: args.stdio,
            end_with_input: args.end_with_input,
            host: args.host,
            enable: args.enable,
            socket: args.socket,
        }
    }
}
