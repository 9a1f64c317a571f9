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

/// Previews that are planned at the same time: the arm's threads come first.
const PREVIEWS_AT_ONCE: usize = 1;

/// Pictures that are kept.
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
    /// By scene's revision, the latest last.
    pictures: Mutex<Vec<(String, Vec<u8>)>>,
}

/// An address, taken apart.
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

    /// Everything that can be read now.
    pub(crate) fn cards(&self) -> Vec<ResourceCard> {
        let here = self.node.all_names();
        let mut cards = Vec::new();
        let mut add = |uri: String, name: String, description: String, mime: &str| {
            cards.push(ResourceCard {
                uri,
                name,
                description,
                mime: mime.to_owned(),
            });
        };
        let about = "The nodes with arm, state and scenes.".to_owned();
        add("nodes://all".to_owned(), "nodes".to_owned(), about, JSON);
        for tool in here.tools() {
            let (name, title) = (&tool.name, format!("usage of {}", tool.name));
            let about = format!("Everything about the tool {name}.");
            add(format!("usage://{name}"), title, about, MARKDOWN);
        }
        for name in here.scenes {
            let about = format!("What the scene {name} draws, with which arm.");
            add(format!("scene://{name}"), name.clone(), about, JSON);
            let title = format!("preview of {name}");
            let about =
                format!("A picture of the plan that would draw {name}; made when it is read.");
            add(format!("preview://{name}"), title, about, PNG);
        }
        for id in self.node.listed_jobs() {
            let about = format!("How far {id} is, its result, and what its journal says.");
            add(format!("job://{id}"), id, about, JSON);
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

    /// Nothing where there is no such thing; an error where it cannot be shown.
    async fn find(
        &self,
        address: &ResourceAddress<'_>,
    ) -> Option<Result<ResourceText, UnknownNameError>> {
        let ResourceAddress { scheme, name, meta } = *address;
        match scheme {
            "usage" => {
                let here = self.node.all_names();
                let page = catalogue::usage(here.find(name)?, &here);
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
        let known = cards.iter().map(|card| card.uri.as_str());
        let mut nearest = args::nearest(uri, known);
        nearest.truncate(NEAREST_MAX);
        let nearest = nearest.join(", ");
        UnknownNameError {
            message: format!("there is no resource {uri}; nearest first: {nearest}"),
        }
    }

    /// As `list_nodes` tells it.
    async fn nodes(&self) -> ResourceText {
        let (who, nothing) = (ActorRank::Planner, ReceivedArguments::Absent);
        let reply = call_as(&self.node, "resources", who, "list_nodes", nothing).await;
        let nodes = reply.structured.get("nodes").cloned().unwrap_or_default();
        text(JSON, nodes.to_string())
    }

    fn scene(&self, name: &str, meta: Option<&str>) -> Result<ResourceText, UnknownNameError> {
        let scene = self.node.scenes.scene(name, meta);
        let scene = scene.map_err(|error| UnknownNameError {
            message: error.to_string(),
        })?;
        let [width, height] = scene.surface.size_mm();
        let about = json!({
            "name": scene.name, "about": scene.about, "arm": scene.arm.file.name,
            "revision": scene.revision.to_string(), "strokes": scene.strokes.len(),
            "sheet_mm": [width, height],
            "pens": scene.pens.iter().map(|pen| pen.name.clone()).collect::<Vec<_>>(),
        });
        Ok(text(JSON, about.to_string()))
    }

    async fn preview(
        &self,
        name: &str,
        meta: Option<&str>,
    ) -> Result<ResourceText, UnknownNameError> {
        let unknown = |message: String| UnknownNameError {
            message: format!("there is no preview of {name}: {message}"),
        };
        let scene = self.node.scenes.scene(name, meta);
        let revision = scene
            .map(|scene| scene.revision.to_string())
            .map_err(|error| unknown(error.to_string()))?;
        let cancelled = CancellationToken::new();
        // Dropped at the end of the time, or with a reader that has gone: the planner ends then.
        let _ends = cancelled.clone().drop_guard();
        let watch = RemoteCallWatch {
            cancelled,
            ..RemoteCallWatch::unobserved()
        };
        let made = async {
            let _turn = self.planning.acquire().await;
            if let Some(picture) = self.kept(&revision) {
                return Ok(picture);
            }
            self.node.preview(name, meta, &watch).await
        };
        let picture = tokio::time::timeout(PREVIEW_MAX, made).await;
        let picture = picture.map_err(|_| {
            let limit = duration(PREVIEW_MAX);
            unknown(format!(
                "planning takes longer than {limit}; call stroke with dry_run"
            ))
        })?;
        let picture = picture.map_err(|why| unknown(why.into()))?;
        self.keep(revision, &picture);
        Ok(ResourceText {
            mime: PNG.to_owned(),
            body: ResourceBody::Bytes(picture),
        })
    }

    fn kept(&self, revision: &str) -> Option<Vec<u8>> {
        let pictures = self.pictures.locked();
        let kept = pictures.iter().find(|(known, _)| known == revision)?;
        Some(kept.1.clone())
    }

    fn keep(&self, revision: String, picture: &[u8]) {
        let mut pictures = self.pictures.locked();
        pictures.retain(|(known, _)| *known != revision);
        if pictures.len() == PICTURES_MAX {
            pictures.remove(0);
        }
        pictures.push((revision, picture.to_vec()));
    }

    /// Names that complete what was typed, for templates and for prompts' arguments.
    pub(crate) fn complete(&self, completion: &CompletionRequest) -> Vec<String> {
        let here = self.node.all_names();
        let typed = completion.typed.to_lowercase();
        let all = self.values(&here, &completion.of, &completion.argument);
        let all = all.into_iter();
        let holding = all.filter(|name| name.to_lowercase().contains(&typed));
        let mut holding: Vec<String> = holding.collect();
        // Those that begin so come first.
        holding.sort_by_key(|name| !name.to_lowercase().starts_with(&typed));
        holding
    }

    fn values(&self, here: &KnownNames, of: &str, argument: &str) -> Vec<String> {
        match (of.split("://").next().unwrap_or_default(), argument) {
            (_, "meta") => here.overlays.clone(),
            (_, "node") => here.nodes.clone(),
            (_, "arm") => here.arms.clone(),
            ("usage", _) => here.tools().map(|tool| tool.name.clone()).collect(),
            ("job", _) => self.node.listed_jobs(),
            ("scene" | "preview", _) | (_, "scene") => here.scenes.clone(),
            _ => Vec::new(),
        }
    }
}

/// The families of resources.
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
            "A scene, with an overlay if one is named.",
            JSON,
        ),
        template(
            "preview://{name}{?meta}",
            "preview",
            "A picture of the plan that would draw a scene.",
            PNG,
        ),
        template(
            "job://{id}",
            "job",
            "How far a job is, and its result.",
            JSON,
        ),
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
    fn an_address_is_taken_apart() {
        let parts = |uri| {
            ResourceAddress::parse(uri).map(|at: ResourceAddress<'_>| {
                (
                    at.scheme.to_owned(),
                    at.name.to_owned(),
                    at.meta.map(str::to_owned),
                )
            })
        };
        let want = |scheme: &str, name: &str, meta: Option<&str>| {
            Some((scheme.to_owned(), name.to_owned(), meta.map(str::to_owned)))
        };
        assert_eq!(parts("scene://a"), want("scene", "a", None));
        assert_eq!(
            parts("preview://a?meta=leaf"),
            want("preview", "a", Some("leaf"))
        );
        assert_eq!(parts("preview://a?meta="), want("preview", "a", None));
        assert_eq!(parts("preview://a?size=1"), None);
        assert_eq!(parts("scene"), None);
    }
}
