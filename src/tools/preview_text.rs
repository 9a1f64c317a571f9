//! The text of a dry run: enough by itself to judge the plan and to draw exactly that.

use serde::Serialize;
use serde_json::{Map, Value};

use super::preview::{DrawingPreview, RuleViolation, sum_up};
use super::stroke::rounded;
use base::units::short;
use base::wording::count;
use plan::Plan;
use scene::{Scene, SheetStroke};

/// Strokes that are named for each rule that refuses them.
const STROKES_NAMED_MAX: usize = 5;

/// Longest call that the text repeats; a longer one carries a design that its caller has.
const CALL_BYTES_MAX: usize = 1000;

/// Smallest box on the sheet that holds all that is drawn.
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

    fn words(self) -> String {
        let [x, y] = [self.x, self.y].map(|[from, to]| format!("{} to {}", tenth(from), tenth(to)));
        format!("on the sheet x {x} mm, y {y} mm")
    }
}

impl DrawingPreview {
    /// Returns the preview in words.
    #[must_use]
    pub fn message(&self) -> String {
        self.text(None)
    }

    /// Returns the preview in words, with the call that draws it, where nothing refuses that.
    pub(super) fn text(&self, call: Option<&Map<String, Value>>) -> String {
        let mut said = match &self.plan {
            Some(plan) => planned(&self.scene, plan),
            None => vec!["nothing of it can be planned".to_owned()],
        };
        let refused = self.refusals_by_rule();
        if !refused.is_empty() {
            said.push(format!("refused: {}", refused.join("; ")));
        }
        said.extend(call.zip(self.plan.as_ref()).map(drawn_by));
        said.join("; ")
    }

    /// Returns each rule that refuses something, in words: which strokes, the worst case and the remedy.
    #[must_use]
    pub fn refusals_by_rule(&self) -> Vec<String> {
        let mut rules: Vec<&str> = Vec::new();
        for violation in &self.refusals {
            if !rules.contains(&violation.rule.as_str()) {
                rules.push(&violation.rule);
            }
        }
        let of = |rule: &str| {
            let hits = self.refusals.iter().filter(move |one| one.rule == rule);
            refused_by(rule, hits)
        };
        rules.into_iter().filter_map(of).collect()
    }
}

fn planned(scene: &Scene, plan: &Plan) -> Vec<String> {
    let report = &plan.report;
    let mut said = vec![sum_up(report)];
    said.extend(DrawnExtent::of(&plan.strokes).map(DrawnExtent::words));
    said.push(pens(scene, plan));
    said.push(format!(
        "nearest to a joint limit: {}, {}° from it",
        report.margin_least_joint,
        tenth(report.margin_least_deg)
    ));
    said
}

/// The pens that draw, by number and name.
fn pens(scene: &Scene, plan: &Plan) -> String {
    let draws = |index: &usize| plan.strokes.iter().any(|stroke| stroke.pen == *index);
    let pens = scene.pens.iter().enumerate();
    let used: Vec<String> = pens
        .filter(|(index, _)| draws(index))
        .map(|(index, pen)| format!("{} ({})", index + 1, pen.name))
        .collect();
    let noun = if used.len() == 1 { "pen" } else { "pens" };
    format!("{noun} {}", used.join(", "))
}

fn drawn_by((call, plan): (&Map<String, Value>, &Plan)) -> String {
    let (hash, call) = (&plan.hash, Value::Object(call.clone()).to_string());
    if call.len() <= CALL_BYTES_MAX {
        format!("plan_hash {hash}; to draw exactly this: stroke {call}")
    } else {
        format!(
            "plan_hash {hash}; to draw exactly this: this call without `dry_run` and with \"plan\":\"{hash}\""
        )
    }
}

/// One rule: which strokes it refuses, and its worst case with the remedy.
fn refused_by<'a>(
    rule: &str,
    hits: impl Iterator<Item = &'a RuleViolation> + Clone,
) -> Option<String> {
    let worst = hits.clone().max_by(|a, b| {
        let excess = |one: &RuleViolation| one.value.zip(one.limit).map(|(v, l)| (v - l).abs());
        excess(a)
            .unwrap_or(0.0)
            .total_cmp(&excess(b).unwrap_or(0.0))
    })?;
    let mut strokes: Vec<usize> = hits.filter_map(|one| one.stroke).collect();
    strokes.sort_unstable();
    strokes.dedup();
    let remedy = remedy(rule).map_or_else(String::new, |words| format!("; {words}"));
    let why = &worst.why;
    Some(match strokes.len() {
        0 | 1 => format!("{why}{remedy}"),
        several => {
            let named: Vec<String> = strokes
                .iter()
                .take(STROKES_NAMED_MAX)
                .map(ToString::to_string)
                .collect();
            let more = several.saturating_sub(STROKES_NAMED_MAX);
            let more = if more == 0 {
                String::new()
            } else {
                format!(" and {more} more")
            };
            format!(
                "{} ({}{more}) by the rule {rule}, the worst of them: {why}{remedy}",
                count(several, "stroke"),
                named.join(", ")
            )
        }
    })
}

/// Returns the remedy for a rule of the gate whose own words name none.
fn remedy(rule: &str) -> Option<&'static str> {
    match rule {
        "joint_limit" | "condition" | "workspace" => {
            Some("move the sheet, or make the design smaller")
        }
        "joint_speed" | "joint_acceleration" | "joint_jerk" | "tip_speed" | "midpoint" => {
            Some("lower `draw_mm_s` or `travel_mm_s` of the scene, or move the sheet")
        }
        "keep_out" => Some("move the sheet or the design away from there"),
        "body" | "self_collision" => Some("move the sheet, or mount the tool at another angle"),
        _ => None,
    }
}

/// Writes a length or angle to a tenth.
fn tenth(value: f64) -> String {
    short((value * 10.0).round() / 10.0)
}
