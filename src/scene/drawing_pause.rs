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

/// Most pauses that are noted one by one; more are counted.
const NOTES_MAX: usize = 5;

impl DrawingPause {
    /// Returns the pause after which a stroke is drawn: its own, or that of the previous stroke.
    pub(super) fn of(stroke: &DesignStroke, previous: Option<Arc<Self>>) -> Option<Arc<Self>> {
        if !stroke.pause_before {
            return previous;
        }
        Some(Self::after(previous.as_deref(), stroke.place_text()))
    }

    /// Returns the next pause.
    pub(super) fn after(previous: Option<&Self>, asked_by: String) -> Arc<Self> {
        Arc::new(Self {
            turn: previous.map_or(1, |pause| pause.turn + 1),
            asked_by,
        })
    }
}

/// The pauses of the strokes that are drawn, in the author's order.
#[derive(Default)]
pub(super) struct DrawnPauses(Vec<Arc<DrawingPause>>);

impl DrawnPauses {
    /// Adds the pause after which a stroke is drawn, if it has one.
    pub(super) fn add(&mut self, pause: Option<&Arc<DrawingPause>>) {
        let Self(pauses) = self;
        pauses.extend(pause.filter(|pause| pauses.last() != Some(pause)).cloned());
    }

    /// Says where a person has to let the drawing go on.
    pub(super) fn notes(&self) -> impl Iterator<Item = String> {
        let Self(pauses) = self;
        let noted = pauses.iter().take(NOTES_MAX).map(|pause| {
            let place = &pause.asked_by;
            format!("the drawing pauses before {place}, and a person continues it")
        });
        let more = pauses.len().saturating_sub(NOTES_MAX);
        noted.chain((more > 0).then(|| format!("and {more} more pauses")))
    }
}
