//! The text of a dry run: enough by itself to judge the plan and to draw exactly that plan.

use serde::Serialize;
use serde_json::{Map, Value};

use super::preview::{DrawingPreview, sum_up};
use super::refusal_groups::{RefusalGroup, refusal_groups};
use super::stroke::rounded;
use base::units::short;
use plan::Plan;
use scene::{Scene, ScenePen, SheetStroke};

/// Longest call that the text repeats; a longer one carries a design that its caller has anyway.
pub(super) const CALL_BYTES_MAX: usize = 1000;

/// Bounding box on the sheet of all that is drawn.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub(super) struct DrawnExtent {
    x: [f64; 2],
    y: [f64; 2],
}

impl DrawnExtent {
    /// Returns the box around strokes; `None` for no strokes.
    pub(super) fn of(strokes: &[SheetStroke]) -> Option<Self> {
        let points = || strokes.iter().flat_map(|stroke| &stroke.points_mm);
        points().next()?;
        let range = |axis: fn(&[f64; 2]) -> f64| {
            let values = || points().map(axis);
            let low = values().fold(f64::INFINITY, f64::min);
            [low, values().fold(f64::NEG_INFINITY, f64::max)].map(rounded)
        };
        Some(Self {
            x: range(|[x, _]| *x),
            y: range(|[_, y]| *y),
        })
    }

    /// Returns the lower left and the upper right corner.
    pub(super) fn corners(self) -> [[f64; 2]; 2] {
        [[self.x[0], self.y[0]], [self.x[1], self.y[1]]]
    }

    fn words(self, sheet_mm: [f64; 2]) -> String {
        let [width, height] = sheet_mm.map(tenth);
        let [x, y] = [self.x, self.y].map(|[from, to]| format!("{} to {}", tenth(from), tenth(to)));
        format!("on the sheet x {x} mm, y {y} mm, of {width} by {height} mm")
    }
}

impl DrawingPreview {
    /// Describes the preview.
    #[must_use]
    pub fn message(&self) -> String {
        self.text(None)
    }

    /// Describes the preview, with the call that draws it if nothing refuses that.
    pub(super) fn text(&self, call: Option<&Map<String, Value>>) -> String {
        let mut parts = match &self.plan {
            Some(plan) => plan_parts(&self.scene, plan),
            None => vec!["no part of it can be planned".to_owned()],
        };
        let groups = refusal_groups(&self.refusals);
        let refused: Vec<String> = groups.iter().map(RefusalGroup::words).collect();
        if !refused.is_empty() {
            parts.push(format!("refused: {}", refused.join("; ")));
        }
        let notes = self.scene.notes.iter().map(|note| format!("note: {note}"));
        parts.extend(notes);
        parts.extend(call.zip(self.plan.as_ref()).map(draw_call_text));
        parts.join("; ")
    }
}

fn plan_parts(scene: &Scene, plan: &Plan) -> Vec<String> {
    let report = &plan.report;
    let mut parts = vec![sum_up(report)];
    parts
        .extend(DrawnExtent::of(&plan.strokes).map(|extent| extent.words(scene.surface.size_mm())));
    parts.push(pens_text(scene, plan));
    parts.extend(pauses_text(plan));
    parts.push(format!(
        "{} comes nearest to its limit: {}° away",
        report.margin_least_joint,
        tenth(report.margin_least_deg)
    ));
    parts.extend(report.limit_note());
    parts
}

/// Returns the indices of a scene's pens that draw these strokes, and the pens.
pub(super) fn used_pens<'a>(
    scene: &'a Scene,
    strokes: &'a [SheetStroke],
) -> impl Iterator<Item = (usize, &'a ScenePen)> {
    let pens = scene.pens.iter().enumerate();
    pens.filter(|(index, _)| strokes.iter().any(|stroke| stroke.pen == *index))
}

/// Lists the pens that draw, by number and name.
fn pens_text(scene: &Scene, plan: &Plan) -> String {
    let used: Vec<String> = used_pens(scene, &plan.strokes)
        .map(|(index, pen)| format!("{} ({})", index + 1, pen.name))
        .collect();
    let noun = if used.len() == 1 { "pen" } else { "pens" };
    format!("{noun} {}", used.join(", "))
}

/// Describes the pauses that a person has to end.
fn pauses_text(plan: &Plan) -> Option<String> {
    let mut asked_by: Vec<&str> = Vec::new();
    for pause in plan
        .strokes
        .iter()
        .filter_map(|stroke| stroke.pause.as_ref())
    {
        if !asked_by.contains(&pause.asked_by.as_str()) {
            asked_by.push(&pause.asked_by);
        }
    }
    let all = asked_by.join(", ");
    (!all.is_empty()).then(|| format!("pauses for a person before {all}"))
}

fn draw_call_text((call, plan): (&Map<String, Value>, &Plan)) -> String {
    let (hash, call) = (&plan.hash, Value::Object(call.clone()).to_string());
    let exactly = match call.len() <= CALL_BYTES_MAX {
        true => format!("stroke {call}"),
        false => format!("this call without `dry_run` and with \"plan\":\"{hash}\""),
    };
    format!("`plan_hash` {hash}; to draw exactly this: {exactly}")
}

/// Writes a length or angle to a tenth.
pub(super) fn tenth(value: f64) -> String {
    short((value * 10.0).round() / 10.0)
}
