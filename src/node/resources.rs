//! Resources of a node, by address: `usage://`, `scene://`, `preview://`, `job://`, `nodes://all`.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde_json::json;
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;

use super::verb_dispatch::call_as;
use args::ReceivedArguments;
use base::lock::MutexExt;
use base::wording::duration;
use catalogue::{self, KnownNames};
use mcp::{
    CompletionRequest, ResourceBody, ResourceCard, ResourceText, TemplateCard, UnknownNameError,
};
use permit::ActorRank;
use tools::{Node, RemoteCallWatch};

/// The longest that a preview may take to plan.
const PREVIEW_MAX: Duration = Duration::from_secs(20);

/// Number of previews that are planned at the same time, so that the arms' threads have priority.
const PREVIEWS_AT_ONCE: usize = 1;

/// Number of cached pictures.
const PICTURES_MAX: usize = 8;

/// Most addresses that an error shows.
const NEAREST_MAX: usize = 12;

const MARKDOWN: &str = "text/markdown";
const JSON: &str = "application/json";
const PNG: &str = "image/png";

/// The resources of a node.
pub(crate) struct NodeResources {
    node: Arc<Node>,
    planning: Semaphore,
    /// Cached pictures by the scene's revision, the latest last.
    pictures: Mutex<Vec<(String, Vec<u8>)>>,
}

/// A parsed address.
struct ResourceAddress<'a> {
    scheme: &'a str,
    name: &'a str,
    meta: Option<&'a str>,
}

impl<'a> ResourceAddress<'a> {
    fn parse(uri: &'a str) -> Option<Self> {
        let (scheme, rest) = uri.split_once("://")?;
        let (name, meta) = match rest.split_once('?') {
            Some((name, query)) => (name, Some(query.strip_prefix("meta=")?)),
            None => (rest, None),
        };
        let meta = meta.filter(|meta| !meta.is_empty());
        Some(Self { scheme, name, meta })
    }
}

impl NodeResources {
    pub(crate) fn new(node: Arc<Node>) -> Self {
        Self {
            node,
            planning: Semaphore::new(PREVIEWS_AT_ONCE),
            pictures: Mutex::default(),
        }
    }

    /// Lists everything that can be read now.
    pub(crate) fn cards(&self) -> Vec<ResourceCard> {
        let names = self.node.all_names();
        let mut cards = Vec::new();
        let mut add = |uri: String, name: String, description: String, mime: &str| {
            cards.push(ResourceCard {
                uri,
                name,
                description,
                mime: mime.to_owned(),
            });
        };
        let text = "The nodes, each with arm, state and scenes.".to_owned();
        add("nodes://all".to_owned(), "nodes".to_owned(), text, JSON);
        for tool in names.tools() {
            let (name, title) = (&tool.name, format!("usage of {}", tool.name));
            let text = format!("Everything about the tool {name}.");
            add(format!("usage://{name}"), title, text, MARKDOWN);
        }
        for name in names.scenes {
            let text = format!("What the scene {name} draws and with which arm.");
            add(format!("scene://{name}"), name.clone(), text, JSON);
            let title = format!("preview of {name}");
            let text = format!("A picture of the plan for {name}, made anew each time it is read.");
            add(format!("preview://{name}"), title, text, PNG);
        }
        for id in self.node.listed_jobs() {
            let text = format!("Progress and result of {id}, and its journal.");
            add(format!("job://{id}"), id, text, JSON);
        }
        cards
    }

    pub(crate) async fn read(&self, uri: &str) -> Result<ResourceText, UnknownNameError> {
        let found = match ResourceAddress::parse(uri) {
            Some(address) => self.find(&address).await,
            None => None,
        };
        found.unwrap_or_else(|| Err(self.unknown(uri)))
    }

    /// Returns `None` if there is no such resource, and an error if it cannot be shown.
    async fn find(
        &self,
        address: &ResourceAddress<'_>,
    ) -> Option<Result<ResourceText, UnknownNameError>> {
        let ResourceAddress { scheme, name, meta } = *address;
        match scheme {
            "usage" => {
                let names = self.node.all_names();
                let page = catalogue::usage(names.find(name)?, &names);
                Some(Ok(text(MARKDOWN, page)))
            }
            "nodes" if name == "all" => Some(Ok(self.nodes().await)),
            "job" => Some(Ok(text(JSON, self.node.job(name)?.to_string()))),
            "scene" | "preview" if !self.node.scenes.scenes().iter().any(|one| one == name) => None,
            "scene" => Some(self.scene(name, meta)),
            "preview" => Some(self.preview(name, meta).await),
            _ => None,
        }
    }

    fn unknown(&self, uri: &str) -> UnknownNameError {
        let cards = self.cards();
        let uris = cards.iter().map(|card| card.uri.as_str());
        let mut nearest = args::nearest(uri, uris);
        nearest.truncate(NEAREST_MAX);
        let nearest = nearest.join(", ");
        UnknownNameError {
            message: format!("there is no resource {uri}. Nearest: {nearest}"),
        }
    }

    /// Returns the nodes as `list_nodes` reports them.
    async fn nodes(&self) -> ResourceText {
        let arrived = self.node.stamp_arrival();
        let call = (ActorRank::Planner, "list_nodes", ReceivedArguments::Absent);
        let reply = call_as(&self.node, "resources", arrived, call).await;
        let nodes = reply.structured.get("nodes").cloned().unwrap_or_default();
        text(JSON, nodes.to_string())
    }

    fn scene(&self, name: &str, meta: Option<&str>) -> Result<ResourceText, UnknownNameError> {
        let scene = self.node.scenes.scene(name, meta);
        let scene = scene.map_err(|error| UnknownNameError {
            message: error.to_string(),
        })?;
        let [width, height] = scene.surface.size_mm();
        let summary = json!({
            "name": scene.name, "about": scene.about, "arm": scene.arm.file.name,
            "revision": scene.revision.to_string(), "strokes": scene.strokes.len(),
            "sheet_mm": [width, height],
            "pens": scene.pens.iter().map(|pen| pen.name.clone()).collect::<Vec<_>>(),
        });
        Ok(text(JSON, summary.to_string()))
    }

    async fn preview(
        &self,
        name: &str,
        meta: Option<&str>,
    ) -> Result<ResourceText, UnknownNameError> {
        let not_found = |message: String| UnknownNameError {
            message: format!("there is no preview of {name}: {message}"),
        };
        let scene = self.node.scenes.scene(name, meta);
        let revision = scene
            .map(|scene| scene.revision.to_string())
            .map_err(|error| not_found(error.to_string()))?;
        let cancelled = CancellationToken::new();
        // Dropping the guard, at the time limit or when the reader disconnects, ends the planner.
        let _cancel_on_drop = cancelled.clone().drop_guard();
        let watch = RemoteCallWatch {
            cancelled,
            ..RemoteCallWatch::unobserved()
        };
        let planning = async {
            let _permit = self.planning.acquire().await;
            if let Some(picture) = self.cached(&revision) {
                return Ok(picture);
            }
            self.node.preview(name, meta, &watch).await
        };
        let picture = tokio::time::timeout(PREVIEW_MAX, planning).await;
        let picture = picture.map_err(|_| {
            let limit = duration(PREVIEW_MAX);
            not_found(format!(
                "planning takes longer than {limit}. Next: call `stroke` with `dry_run`"
            ))
        })?;
        let picture = picture.map_err(|reason| not_found(reason.into()))?;
        self.cache(revision, &picture);
        Ok(ResourceText {
            mime: PNG.to_owned(),
            body: ResourceBody::Bytes(picture),
        })
    }

    fn cached(&self, revision: &str) -> Option<Vec<u8>> {
        let pictures = self.pictures.locked();
        let (_, picture) = pictures.iter().find(|(cached, _)| cached == revision)?;
        Some(picture.clone())
    }

    fn cache(&self, revision: String, picture: &[u8]) {
        let mut pictures = self.pictures.locked();
        pictures.retain(|(cached, _)| *cached != revision);
        if pictures.len() == PICTURES_MAX {
            pictures.remove(0);
        }
        pictures.push((revision, picture.to_vec()));
    }

    /// Returns the names that complete what was typed, for templates and for prompts' arguments.
    pub(crate) fn complete(&self, completion: &CompletionRequest) -> Vec<String> {
        let names = self.node.all_names();
        let typed = completion.typed.to_lowercase();
        let values = self.values(&names, &completion.of, &completion.argument);
        let mut matching: Vec<String> = values
            .into_iter()
            .filter(|name| name.to_lowercase().contains(&typed))
            .collect();
        // Names that start with the typed text come first.
        matching.sort_by_key(|name| !name.to_lowercase().starts_with(&typed));
        matching
    }

    fn values(&self, names: &KnownNames, of: &str, argument: &str) -> Vec<String> {
        match (of.split("://").next().unwrap_or_default(), argument) {
            (_, "meta") => names.overlays.clone(),
            (_, "node") => names.nodes.clone(),
            (_, "arm") => names.arms.clone(),
            ("usage", _) => names.tools().map(|tool| tool.name.clone()).collect(),
            ("job", _) => self.node.listed_jobs(),
            ("scene" | "preview", _) | (_, "scene") => names.scenes.clone(),
            _ => Vec::new(),
        }
    }
}

/// Returns the templates of resource addresses.
pub(crate) fn templates() -> Vec<TemplateCard> {
    let template = |uri: &str, name: &str, about: &str, mime: &str| TemplateCard {
        uri_template: uri.to_owned(),
        name: name.to_owned(),
        description: about.to_owned(),
        mime: mime.to_owned(),
    };
    vec![
        template(
            "usage://{name}",
            "usage",
            "Everything about a tool.",
            MARKDOWN,
        ),
        template(
            "scene://{name}{?meta}",
            "scene",
            "A scene, with an overlay if you name one.",
            JSON,
        ),
        template(
            "preview://{name}{?meta}",
            "preview",
            "A picture of a scene's plan.",
            PNG,
        ),
        template("job://{id}", "job", "Progress and result of a job.", JSON),
    ]
}

fn text(mime: &str, text: String) -> ResourceText {
    ResourceText {
        mime: mime.to_owned(),
        body: ResourceBody::Text(text),
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a failing test may panic")]
mod tests {
    use super::ResourceAddress;

    #[test]
    fn an_address_is_parsed() {
        let parts = |uri| {
            ResourceAddress::parse(uri).map(|at: ResourceAddress<'_>| {
                (
                    at.scheme.to_owned(),
                    at.name.to_owned(),
                    at.meta.map(str::to_owned),
                )
            })
        };
        let expected = |scheme: &str, name: &str, meta: Option<&str>| {
            Some((scheme.to_owned(), name.to_owned(), meta.map(str::to_owned)))
        };
        assert_eq!(parts("scene://a"), expected("scene", "a", None));
        assert_eq!(
            parts("preview://a?meta=leaf"),
            expected("preview", "a", Some("leaf"))
        );
        assert_eq!(parts("preview://a?meta="), expected("preview", "a", None));
        assert_eq!(parts("preview://a?size=1"), None);
        assert_eq!(parts("scene"), None);
    }
}
