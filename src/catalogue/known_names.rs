//! Names that exist on this node now, so that a schema can list the valid values.

use std::sync::Arc;

use serde_json::Value;

use super::{NameSource, ParameterKind, TOOLS, ToolDefinition, ToolParameter};

/// Most values that a schema lists; if there are more, the description says where to find them.
pub const ENUM_MAX: usize = 16;

/// The word for every node; no node has this name.
pub const EVERYWHERE: &str = "all";

/// The names that exist on this node now.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct KnownNames {
    /// Scenes, the default one first.
    pub scenes: Vec<String>,
    /// Scenes that several arms share, each with one of its arms, such as `two_arms:left`. They are understood as a scene and not listed.
    pub parts: Vec<String>,
    /// Scenes whose design comes with the call; they are among `scenes`.
    pub canvases: Vec<String>,
    /// Width and height of the first canvas's sheet in millimetres.
    pub canvas_mm: Option<[f64; 2]>,
    /// Overlays.
    pub overlays: Vec<String>,
    /// Arms.
    pub arms: Vec<String>,
    /// Nodes, this one first.
    pub nodes: Vec<String>,
    /// Nodes, and the word for all of them.
    pub everywhere: Vec<String>,
    /// Keys that mean nothing here, because a client adds them to every call.
    pub ignore_keys: Vec<String>,
    /// Tools that this node does not offer.
    pub withheld: Vec<String>,
    /// The names by which the built-in tools stand in the list; every name is understood.
    pub listed_names: ListedNames,
    /// The built-in tools as the node file rewords them; empty if it does not.
    pub reworded: Arc<[ToolDefinition]>,
    /// Tools that the node file declares beside the six.
    pub declared: Arc<[ToolDefinition]>,
}

/// The names by which built-in tools are listed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum ListedNames {
    /// By its own name, then again by its alias.
    #[default]
    Both,
    /// By its own name, such as `stroke`.
    Plain,
    /// By its alias, such as `robot_stroke`.
    Robot,
}

impl KnownNames {
    /// Returns the tools of this node: the six, then those that its node file declares, without those that it does not offer.
    pub fn tools(&self) -> impl Iterator<Item = &ToolDefinition> {
        let built_in = match self.reworded.is_empty() {
            true => TOOLS.as_slice(),
            false => &self.reworded,
        };
        let all = built_in.iter().chain(self.declared.iter());
        all.filter(|tool| !self.withheld.contains(&tool.name))
    }

    /// Returns the tool with this exact name, alias or unlisted name.
    #[must_use]
    pub fn find(&self, name: &str) -> Option<&ToolDefinition> {
        self.tools()
            .find(|tool| tool.names().any(|own| own == name))
    }

    /// Returns the names of one kind.
    #[must_use]
    pub fn names(&self, vocabulary: NameSource) -> &[String] {
        match vocabulary {
            NameSource::Scenes => &self.scenes,
            NameSource::Overlays => &self.overlays,
            NameSource::Arms => &self.arms,
            NameSource::Nodes => &self.nodes,
            NameSource::Everywhere => &self.everywhere,
        }
    }

    /// Returns whether a parameter is shown: a single arm or node leaves no choice, and neither do no overlays.
    #[must_use]
    pub fn shows(&self, kind: &ParameterKind) -> bool {
        match kind {
            ParameterKind::Name(names @ (NameSource::Arms | NameSource::Nodes)) => {
                self.names(*names).len() > 1
            }
            // A single node has only itself.
            ParameterKind::Name(NameSource::Everywhere) => self.nodes.len() > 1,
            ParameterKind::Name(names) => !self.names(*names).is_empty(),
            _ => true,
        }
    }

    /// Returns the scene that a call without a scene means; `None` where every scene needs a design of the caller's.
    #[must_use]
    pub fn default_scene(&self) -> Option<&str> {
        let first = self.scenes.first().map(String::as_str);
        first.filter(|scene| !self.canvases.iter().any(|canvas| canvas == scene))
    }

    /// Returns a parameter's default on this node.
    #[must_use]
    pub fn default_of(&self, parameter: &ToolParameter) -> Option<Value> {
        match &parameter.default {
            Some(_) if parameter.kind == ParameterKind::Name(NameSource::Scenes) => {
                self.default_scene().map(Value::from)
            }
            default => default.clone(),
        }
    }

    /// Returns a scene for an example, preferably not the default one.
    #[must_use]
    pub fn example_scene(&self) -> &str {
        let default = self.default_scene();
        let other = self
            .scenes
            .iter()
            .find(|scene| Some(scene.as_str()) != default);
        other.map(String::as_str).or(default).unwrap_or("default")
    }
}
