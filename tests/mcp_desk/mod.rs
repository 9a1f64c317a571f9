//! A desk for tests of the wire: it answers what it received, and has one tool that takes its time.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures::future::BoxFuture;
use serde_json::{Map, Value, json};
use steadyhand::mcp::{
    CallProgress, CallWatch, CompletionRequest, ListChange, McpService, PromptCard, PromptText,
    ReceivedArguments, ResourceBody, ResourceCard, ResourceText, ServiceCapabilities, ToolAnswer,
    ToolCall, ToolCard, ToolHints, UnknownNameError,
};
use tokio::sync::broadcast;

/// Steps of the tool that takes its time, and how long each lasts.
pub(crate) const STEPS: u32 = 30;
const STEP: Duration = Duration::from_millis(100);

/// Time that the tool which comes to its end late takes after it was given up.
const LINGERING: Duration = Duration::from_millis(1_500);

/// The calls so far, and how they ended.
#[derive(Debug, Default)]
pub(crate) struct CallCounts {
    /// Calls that ran to their end.
    pub(crate) finished: AtomicUsize,
    /// Calls whose caller gave up.
    pub(crate) cancelled: AtomicUsize,
    /// Everything that arrived.
    pub(crate) calls: Mutex<Vec<ToolCall>>,
}

/// A service that answers every call with what it received.
pub(crate) struct EchoService {
    pub(crate) counts: Arc<CallCounts>,
    pub(crate) offers: ServiceCapabilities,
    pub(crate) changes: broadcast::Sender<ListChange>,
}

impl EchoService {
    pub(crate) fn new() -> Arc<Self> {
        Self::offering(ServiceCapabilities::default())
    }

    pub(crate) fn offering(offers: ServiceCapabilities) -> Arc<Self> {
        let changes = broadcast::Sender::new(8);
        let counts = Arc::default();
        Arc::new(Self {
            counts,
            offers,
            changes,
        })
    }
}

fn card(name: &str) -> ToolCard {
    let Value::Object(schema) = json!({"type": "object", "properties": {}}) else {
        unreachable!("it is an object")
    };
    ToolCard {
        name: name.to_owned(),
        title: None,
        description: format!("{name}: for tests of the wire"),
        input_schema: schema.clone(),
        output_schema: Some(schema),
        hints: ToolHints {
            read_only: true,
            destructive: false,
            idempotent: true,
            open_world: false,
        },
    }
}

impl McpService for EchoService {
    fn list(&self) -> BoxFuture<'static, Vec<ToolCard>> {
        Box::pin(std::future::ready(vec![card("echo"), card("slow")]))
    }

    fn instructions(&self) -> String {
        "Echo.".to_owned()
    }

    fn call(&self, call: ToolCall, watch: CallWatch) -> BoxFuture<'static, ToolAnswer> {
        self.counts.calls.lock().unwrap().push(call.clone());
        let counts = self.counts.clone();
        Box::pin(async move {
            match call.tool.as_str() {
                "echo" => echo(&call),
                "slow" => slow(&counts, watch).await,
                "lingering" => {
                    let stopped = slow(&counts, watch).await;
                    linger().await;
                    counts.finished.fetch_add(1, Ordering::SeqCst);
                    stopped
                }
                "break" => panic!("the tool broke"),
                other => answer(
                    &format!("there is no tool {other:?}; there are echo and slow"),
                    true,
                    Map::new(),
                ),
            }
        })
    }

    fn offers(&self) -> ServiceCapabilities {
        self.offers
    }

    fn changes(&self) -> Option<broadcast::Receiver<ListChange>> {
        Some(self.changes.subscribe())
    }

    fn resources(&self) -> BoxFuture<'static, Vec<ResourceCard>> {
        Box::pin(std::future::ready(vec![ResourceCard {
            uri: "test://one".to_owned(),
            name: "one".to_owned(),
            description: "the one".to_owned(),
            mime: "text/plain".to_owned(),
        }]))
    }

    fn read(&self, uri: String) -> BoxFuture<'static, Result<ResourceText, UnknownNameError>> {
        let body = ResourceBody::Text("one".to_owned());
        let read = match uri.as_str() {
            "test://one" => Ok(ResourceText {
                mime: "text/plain".to_owned(),
                body,
            }),
            _ => Err(UnknownNameError {
                message: format!("there is no {uri}; there is test://one"),
            }),
        };
        Box::pin(std::future::ready(read))
    }

    fn prompts(&self) -> Vec<PromptCard> {
        vec![PromptCard {
            name: "draw".to_owned(),
            title: "Draw it".to_owned(),
            description: "draw it".to_owned(),
            parameters: Vec::new(),
        }]
    }

    fn prompt(
        &self,
        name: &str,
        arguments: &BTreeMap<String, String>,
    ) -> Result<PromptText, UnknownNameError> {
        match name {
            "draw" => Ok(PromptText {
                description: "draw it".to_owned(),
                text: format!("draw {arguments:?}"),
            }),
            _ => Err(UnknownNameError {
                message: format!("there is no prompt {name}; there is draw"),
            }),
        }
    }

    fn complete(&self, completion: CompletionRequest) -> BoxFuture<'static, Vec<String>> {
        let value = format!("{}{}", completion.typed, completion.argument);
        Box::pin(std::future::ready(vec![value]))
    }
}

fn echo(call: &ToolCall) -> ToolAnswer {
    let (kind, value) = match &call.arguments {
        ReceivedArguments::Absent => ("absent", Value::Null),
        ReceivedArguments::Value(value) => ("value", value.clone()),
        ReceivedArguments::Text(text) => ("text", Value::from(text.clone())),
    };
    let structured = Map::from_iter([
        ("received".to_owned(), Value::from(kind)),
        ("value".to_owned(), value),
    ]);
    let mut answer = answer(&format!("received {kind}"), false, structured);
    answer.images.push(("image/png".to_owned(), vec![1, 2, 3]));
    answer
}

/// Goes on for a while after a stop.
#[allow(clippy::disallowed_methods, reason = "no node's clock is here")]
async fn linger() {
    tokio::time::sleep(LINGERING).await;
}

async fn slow(counts: &CallCounts, watch: CallWatch) -> ToolAnswer {
    for step in 0..STEPS {
        if let Some(progress) = &watch.progress {
            let message = format!("step {step}");
            progress.tell(CallProgress {
                done: f64::from(step),
                total: Some(f64::from(STEPS)),
                message,
            });
        }
        let given_up = tokio::time::timeout(STEP, watch.cancelled.cancelled())
            .await
            .is_ok();
        if given_up {
            counts.cancelled.fetch_add(1, Ordering::SeqCst);
            return answer("stopped", true, Map::new());
        }
    }
    // The caller has its answer when this returns; what it does afterwards does not belong to this call.
    counts.finished.fetch_add(1, Ordering::SeqCst);
    answer("finished", false, Map::new())
}

fn answer(text: &str, is_error: bool, mut structured: Map<String, Value>) -> ToolAnswer {
    structured.insert("success".to_owned(), Value::from(!is_error));
    ToolAnswer {
        structured,
        text: text.to_owned(),
        is_error,
        images: Vec::new(),
    }
}
