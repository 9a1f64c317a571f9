//! The names that exist on a node now, and the argument shapes derived from them, which are rebuilt only when a name changes.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, OnceLock};

use super::Node;
use super::dispatch::{known_names, names_without_scenes};
use super::tool_shape::shape;
use args::ArgumentShape;
use base::lock::MutexExt;
use catalogue::{KnownNames, ToolDefinition, ToolEffect};

/// The names as last looked up.
#[derive(Default)]
pub(super) struct NamesCache {
    /// Kept for good if there is no folder of scenes that could change.
    fixed: OnceLock<Arc<KnownNames>>,
    /// The last that were read from the folder of scenes.
    latest: Mutex<Option<Arc<KnownNames>>>,
    shapes: Mutex<ShapeCache>,
}

/// The argument shapes of tools for these names.
#[derive(Default)]
struct ShapeCache {
    names: Arc<KnownNames>,
    by_tool: HashMap<String, Arc<ArgumentShape>>,
}

impl Node {
    /// Returns the names that this node knows now.
    pub(super) fn known_names(&self) -> Arc<KnownNames> {
        let collect = || Arc::new(known_names(&self.file, &self.scenes, &self.declared));
        match self.scenes.folder() {
            Some(_) => {
                let names = collect();
                *self.names.latest.locked() = Some(Arc::clone(&names));
                names
            }
            None => Arc::clone(self.names.fixed.get_or_init(collect)),
        }
    }

    /// Returns the names as last looked up; none of scenes if they never were. Does not wait for the disk.
    #[must_use]
    pub fn recent_names(&self) -> Arc<KnownNames> {
        if self.scenes.folder().is_none() {
            return self.known_names();
        }
        let latest = self.names.latest.locked().clone();
        latest.unwrap_or_else(|| Arc::new(names_without_scenes(&self.file, &self.declared)))
    }

    /// Returns the names for the arguments of a tool. A stop does not wait for the folder of scenes.
    pub(super) fn names_for(&self, tool: &ToolDefinition) -> Arc<KnownNames> {
        match tool.effect {
            ToolEffect::Stops => self.recent_names(),
            ToolEffect::Reads | ToolEffect::Moves => self.known_names(),
        }
    }

    /// Returns the shape of a tool's arguments on this node now.
    pub(super) fn shape(&self, tool: &ToolDefinition) -> Arc<ArgumentShape> {
        let names = self.names_for(tool);
        let mut shapes = self.names.shapes.locked();
        if !Arc::ptr_eq(&shapes.names, &names) && shapes.names != names {
            *shapes = ShapeCache {
                names: Arc::clone(&names),
                by_tool: HashMap::new(),
            };
        }
        let cached = shapes.by_tool.get(&tool.name).cloned();
        cached.unwrap_or_else(|| {
            let shape = Arc::new(shape(tool, &names));
            shapes.by_tool.insert(tool.name.clone(), Arc::clone(&shape));
            shape
        })
    }
}
