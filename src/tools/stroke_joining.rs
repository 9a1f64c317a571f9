//! Changes to a design's strokes in a plan: joined, left out, reversed or reordered.

use std::collections::BTreeSet;

use base::wording::count;
use plan::{PlanReport, StrokeReport};

/// Counts of a design's strokes and of a plan's.
pub struct StrokeJoining {
    /// Strokes of the design on the sheet.
    pub of_design: usize,
    /// Strokes of the plan.
    pub drawn: usize,
    /// Strokes of the plan that join several of the design.
    pub joined: usize,
    /// Strokes of the design of which nothing is drawn, because they lie on others.
    pub left_out: usize,
    /// Strokes of the design that are drawn in pieces, because the rest of them lies on others.
    pub cut: usize,
    /// Strokes of the plan that are drawn from their ends.
    pub reversed: usize,
    is_reordered: bool,
}

impl StrokeJoining {
    /// Compares a plan's strokes with those of the design.
    #[must_use]
    pub fn of(report: &PlanReport, of_design: usize) -> Self {
        let strokes = &report.strokes;
        let (mut drawn, mut cut) = (BTreeSet::new(), BTreeSet::new());
        for part in strokes.iter().flat_map(|stroke| &stroke.parts) {
            if !drawn.insert(*part) {
                cut.insert(*part);
            }
        }
        let is_joined = |stroke: &&StrokeReport| stroke.parts.len() > 1;
        let firsts: Vec<usize> = strokes.iter().map(|stroke| stroke.stroke).collect();
        Self {
            of_design,
            drawn: strokes.len(),
            joined: strokes.iter().filter(is_joined).count(),
            left_out: of_design.saturating_sub(drawn.len()),
            cut: cut.len(),
            reversed: strokes.iter().filter(|stroke| stroke.reversed).count(),
            is_reordered: !firsts.is_sorted(),
        }
    }

    /// Describes what was changed; `None` if everything is drawn as its author has it.
    #[must_use]
    pub fn description(&self) -> Option<String> {
        let changes = [
            (self.joined > 0).then(|| "touching ends joined".to_owned()),
            (self.left_out > 0).then(|| format!("{} left out (already drawn)", self.left_out)),
            (self.cut > 0).then(|| format!("{} cut where other strokes already are", self.cut)),
            self.is_reordered.then(|| "reordered".to_owned()),
            (self.reversed > 0).then(|| format!("{} reversed", self.reversed)),
        ];
        let changes: Vec<String> = changes.into_iter().flatten().collect();
        if changes.is_empty() {
            return None;
        }
        let (of_design, drawn) = (count(self.of_design, "stroke"), self.drawn);
        let changes = changes.join(", ");
        Some(format!(
            "{of_design} in the design, drawn as {drawn}: {changes}"
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn report(strokes: &[(&[usize], bool)]) -> PlanReport {
        let strokes = strokes.iter().map(|(parts, reversed)| StrokeReport {
            stroke: parts.first().copied().unwrap_or(0),
            parts: parts.to_vec(),
            reversed: *reversed,
            ..StrokeReport::default()
        });
        PlanReport {
            strokes: strokes.collect(),
            ..PlanReport::default()
        }
    }

    #[test]
    fn says_what_was_changed_and_nothing_where_nothing_was() {
        for (strokes, of_design, description) in [
            (&[(&[0][..], false), (&[1], false)][..], 2, None),
            (
                &[(&[0, 2, 3], false)],
                5,
                Some(
                    "5 strokes in the design, drawn as 1: touching ends joined, 2 left out (already drawn)",
                ),
            ),
            (
                &[(&[0], false), (&[1], false), (&[0], false)],
                2,
                Some(
                    "2 strokes in the design, drawn as 3: 1 cut where other strokes already are, reordered",
                ),
            ),
            (
                &[(&[1], true), (&[0], false)],
                2,
                Some("2 strokes in the design, drawn as 2: reordered, 1 reversed"),
            ),
        ] {
            let found = StrokeJoining::of(&report(strokes), of_design).description();
            assert_eq!(found.as_deref(), description);
        }
    }
}
