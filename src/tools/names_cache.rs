//! The names that exist on a node now, and the shapes of arguments that follow from them: made anew only where a name has changed.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, OnceLock};

use super::Node;
use super::dispatch::here;
use super::tool_shape::shape;
use args::ArgumentShape;
use base::lock::MutexExt;
use catalogue::{KnownNames, ToolDefinition};

/// The names as last looked up.
#[derive(Default)]
pub(super) struct NamesCache {
    /// Kept for good where there is no folder of scenes that could change.
    fixed: OnceLock<Arc<KnownNames>>,
    shapes: Mutex<ShapeCache>,
}

/// The shapes of tools' arguments, by the tool's name, for these names.
#[derive(Default)]
struct ShapeCache {
    here: Arc<KnownNames>,
    of: HashMap<String, Arc<ArgumentShape>>,
}

impl Node {
    /// Returns what this node knows by name now.
    pub(super) fn known(&self) -> Arc<KnownNames> {
        let look = || Arc::new(here(&self.file, &self.scenes, &self.declared));
        match self.scenes.folder() {
            Some(_) => look(),
            None => Arc::clone(self.names.fixed.get_or_init(look)),
        }
    }

    /// Returns the shape of a tool's arguments on this node now.
    pub(super) fn shape(&self, tool: &ToolDefinition) -> Arc<ArgumentShape> {
        let here = self.known();
        let mut shapes = self.names.shapes.locked();
        if !Arc::ptr_eq(&shapes.here, &here) && shapes.here != here {
            *shapes = ShapeCache {
                here: Arc::clone(&here),
                of: HashMap::new(),
            };
        }
        let known = shapes.of.get(&tool.name).cloned();
        known.unwrap_or_else(|| {
            let made = Arc::new(shape(tool, &here));
            shapes.of.insert(tool.name.clone(), Arc::clone(&made));
            made
        })
    }
}
