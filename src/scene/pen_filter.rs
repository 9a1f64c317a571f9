//! Filters the strokes of chosen pens.

use super::ScenePen;
use super::scene_fault::SceneFault;
use base::wording::count;

/// The pens whose strokes are drawn, and the number of other strokes.
pub(super) struct PenFilter {
    /// Their indices; `None` for all pens.
    chosen: Option<Vec<usize>>,
    left_out: usize,
}

impl PenFilter {
    /// Finds pens by number from 1 or by name; no names mean all pens.
    pub(super) fn of(names: &[String], pens: &[ScenePen]) -> Result<Self, SceneFault> {
        let index = |named: &String| {
            let by_number = named.parse::<usize>().ok().and_then(|n| n.checked_sub(1));
            let by_number = by_number.filter(|index| *index < pens.len());
            let by_name = || pens.iter().position(|pen| pen.name == *named);
            by_number.or_else(by_name).ok_or_else(|| {
                let pens = pens.iter().map(|pen| pen.name.clone()).collect();
                let named = named.clone();
                SceneFault::NoPen { named, pens }
            })
        };
        let chosen = names.iter().map(index).collect::<Result<Vec<_>, _>>()?;
        Ok(Self {
            chosen: (!chosen.is_empty()).then_some(chosen),
            left_out: 0,
        })
    }

    /// Returns whether a stroke of this pen is drawn, and counts it if not.
    pub(super) fn passes(&mut self, pen: usize) -> bool {
        let passes = self.chosen.as_ref().is_none_or(|pens| pens.contains(&pen));
        self.left_out += usize::from(!passes);
        passes
    }

    /// Returns a note on how many strokes were left out.
    pub(super) fn note(&self) -> Option<String> {
        (self.left_out > 0).then(|| {
            let strokes = count(self.left_out, "stroke");
            format!("{strokes} of other pens left out, as asked")
        })
    }
}
