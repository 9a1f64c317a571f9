//! The node as the protocol side sees it.

use std::collections::BTreeMap;
use std::sync::Arc;

use futures::future::BoxFuture;

use super::door;
use crate::args::{self, envelope};
use crate::caller::Role;
use crate::catalogue::{self, PROMPTS, Prompt};
use crate::mcp::{
    Answer, Call, CallWatch, Completion, Desk, Hints, Offers, Progress, PromptCard,
    PromptParameter, PromptText, Received, Repaired, ResourceBody, ResourceCard, ResourceText,
    TemplateCard, ToolCard, Unknown,
};
use crate::permit::Who;
use crate::tools::{self, Node, Reply, Request};

/// A node behind the protocol.
pub(super) struct NodeDesk(pub(super) Arc<Node>);

/// Reads a message that is not JSON.
pub(super) fn repair(raw: &[u8]) -> Repaired {
    match envelope::read(raw) {
        Ok(envelope) => Repaired::Message(envelope.message),
        Err(error) => Repaired::Hopeless(error.to_string()),
    }
}

impl Desk for NodeDesk {
    fn list(&self) -> Vec<ToolCard> {
        catalogue::list(&self.0.here())
            .into_iter()
            .map(card)
            .collect()
    }

    fn instructions(&self) -> String {
        catalogue::instructions()
    }

    fn call(&self, call: Call, watch: CallWatch) -> BoxFuture<'static, Answer> {
        let node = Arc::clone(&self.0);
        let standing = call.caller.identity.as_ref().map(door::standing);
        let is_person = standing
            .as_ref()
            .is_some_and(|standing| standing.role == Role::Operator);
        let request = Request {
            caller: call.caller.key(),
            tool: call.tool,
            arguments: received(call.arguments),
            who: if is_person {
                Who::Operator
            } else {
                Who::Planner
            },
            standing,
        };
        let progress = watch.progress.map(|sender| {
            Arc::new(move |done: f64, of: f64, message: &str| {
                let total = (of > 0.0).then_some(of);
                sender.tell(Progress {
                    done,
                    total,
                    message: message.to_owned(),
                });
            }) as tools::Progress
        });
        let watch = tools::Watch {
            cancelled: watch.cancelled,
            progress,
        };
        Box::pin(async move { answer(node.call(request, watch).await) })
    }

    fn offers(&self) -> Offers {
        Offers {
            resources: true,
            prompts: true,
            completion: true,
            changes: false,
        }
    }

    fn resources(&self) -> Vec<ResourceCard> {
        let usage = catalogue::TOOLS.iter().map(|tool| ResourceCard {
            uri: format!("usage://{}", tool.name),
            name: format!("usage of {}", tool.name),
            description: format!("Everything about the tool {}.", tool.name),
            mime: "text/markdown".to_owned(),
        });
        let scenes = self
            .0
            .scenes
            .scenes()
            .into_iter()
            .map(|scene| ResourceCard {
                uri: format!("scene://{scene}"),
                description: format!("What the scene {scene} draws, with which arm."),
                name: scene,
                mime: "application/json".to_owned(),
            });
        usage.chain(scenes).collect()
    }

    fn templates(&self) -> Vec<TemplateCard> {
        let template = |uri: &str, name: &str, mime: &str| TemplateCard {
            uri_template: uri.to_owned(),
            name: name.to_owned(),
            description: format!("The {name} of this name."),
            mime: mime.to_owned(),
        };
        vec![
            template("usage://{name}", "tool's usage", "text/markdown"),
            template("scene://{name}", "scene", "application/json"),
        ]
    }

    fn read(&self, uri: String) -> BoxFuture<'static, Result<ResourceText, Unknown>> {
        let found = self.resource(&uri);
        Box::pin(std::future::ready(found.ok_or_else(|| Unknown {
            message: format!("there is no resource {uri}; see resources/list"),
        })))
    }

    fn prompts(&self) -> Vec<PromptCard> {
        PROMPTS.iter().map(prompt_card).collect()
    }

    fn prompt(
        &self,
        name: &str,
        arguments: &BTreeMap<String, String>,
    ) -> Result<PromptText, Unknown> {
        let names: Vec<&str> = PROMPTS.iter().map(|prompt| prompt.name).collect();
        let prompt = Prompt::find(name).ok_or_else(|| Unknown {
            message: format!("there is no prompt {name:?}; valid: {}", names.join(", ")),
        })?;
        let text = prompt.fill(arguments.get("scene").map(String::as_str));
        Ok(PromptText {
            description: prompt.description.to_owned(),
            text,
        })
    }

    fn complete(&self, completion: &Completion) -> Vec<String> {
        let here = self.0.here();
        let typed = completion.typed.to_lowercase();
        let tools = || {
            catalogue::TOOLS
                .iter()
                .map(|tool| tool.name.to_owned())
                .collect()
        };
        let all: Vec<String> = match (completion.of.as_str(), completion.argument.as_str()) {
            ("usage://{name}", _) => tools(),
            ("scene://{name}", _) | (_, "scene") => here.scenes,
            _ => Vec::new(),
        };
        all.into_iter()
            .filter(|name| name.starts_with(&typed))
            .collect()
    }
}

impl NodeDesk {
    fn resource(&self, uri: &str) -> Option<ResourceText> {
        let text = |mime: &str, text: String| ResourceText {
            mime: mime.to_owned(),
            body: ResourceBody::Text(text),
        };
        if let Some(name) = uri.strip_prefix("usage://") {
            let tool = catalogue::find(name)?;
            return Some(text(
                "text/markdown",
                catalogue::usage(tool, &self.0.here()),
            ));
        }
        let scene = self
            .0
            .scenes
            .scene(uri.strip_prefix("scene://")?, None)
            .ok()?;
        let [width, height] = scene.surface.size_mm();
        let about = serde_json::json!({
            "name": scene.name, "about": scene.about, "arm": scene.arm.file.name,
            "revision": scene.revision.to_string(), "strokes": scene.strokes.len(),
            "sheet_mm": [width, height],
            "pens": scene.pens.iter().map(|pen| pen.name.clone()).collect::<Vec<_>>(),
        });
        Some(text("application/json", about.to_string()))
    }
}

fn card(listed: catalogue::Listed) -> ToolCard {
    ToolCard {
        name: listed.name,
        title: Some(listed.title),
        description: listed.description,
        input_schema: listed.input_schema,
        output_schema: listed.output_schema,
        hints: Hints {
            read_only: listed.hints.read_only,
            destructive: listed.hints.destructive,
            idempotent: listed.hints.idempotent,
            open_world: listed.hints.open_world,
        },
    }
}

fn prompt_card(prompt: &Prompt) -> PromptCard {
    let scene = PromptParameter {
        name: "scene".to_owned(),
        description: "The scene; default if left out.".to_owned(),
        required: false,
    };
    PromptCard {
        name: prompt.name.to_owned(),
        description: prompt.description.to_owned(),
        parameters: if prompt.takes_scene() {
            vec![scene]
        } else {
            Vec::new()
        },
    }
}

fn received(arguments: Received) -> args::Received {
    match arguments {
        Received::Absent => args::Received::Absent,
        Received::Value(value) => args::Received::Value(value),
        Received::Text(text) => args::Received::Text(text),
    }
}

fn answer(reply: Reply) -> Answer {
    Answer {
        structured: reply.structured,
        text: reply.text,
        is_error: reply.is_error,
        images: reply
            .pictures
            .into_iter()
            .map(|png| ("image/png".to_owned(), png))
            .collect(),
    }
}
