//! Pauses of a drawing, at which the arm waits for a person.

use std::sync::Arc;

use design::DesignStroke;

/// A place in a drawing at which the arm waits for a person.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DrawingPause {
    /// Its number among the drawing's pauses, from 1.
    pub turn: usize,
    /// The part of the author's file that requests it: a layer, or a line of G-code.
    pub asked_by: String,
}

impl DrawingPause {
    /// Returns the pause after which a stroke is drawn: its own, or that of the previous stroke.
    pub(super) fn of(stroke: &DesignStroke, previous: Option<Arc<Self>>) -> Option<Arc<Self>> {
        if !stroke.pause_before {
            return previous;
        }
        Some(Arc::new(Self {
            turn: previous.map_or(1, |pause| pause.turn + 1),
            asked_by: stroke.place_text(),
        }))
    }
}
