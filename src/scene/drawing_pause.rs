//! Places in a drawing at which its author wants the arm to wait for a person.

use std::sync::Arc;

use design::DesignStroke;

/// A place in a drawing at which the arm waits for a person.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DrawingPause {
    /// Its turn among the drawing's pauses, from 1.
    pub turn: usize,
    /// The part of the author's file that asks for it: a layer, or a line of G-code.
    pub asked_by: String,
}

impl DrawingPause {
    /// Returns the pause after which a stroke is drawn: its own, or that of the stroke before it.
    pub(super) fn of(stroke: &DesignStroke, before: Option<Arc<Self>>) -> Option<Arc<Self>> {
        if !stroke.pause_before {
            return before;
        }
        Some(Arc::new(Self {
            turn: before.map_or(1, |pause| pause.turn + 1),
            asked_by: stroke.place_text(),
        }))
    }
}
