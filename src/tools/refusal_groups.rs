//! Refusals for people: each rule once, with the number of strokes that it refuses and the worst of them.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use super::preview::RuleViolation;
use base::wording::count;

/// A rule that refuses strokes.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
pub struct RefusalGroup {
    /// The rule that refuses.
    pub rule: String,
    /// Number of strokes that it refuses.
    pub strokes: usize,
    /// The first of them, counted from 1.
    #[serde(default)]
    pub first: Vec<usize>,
    /// The worst of them, with its place, value, limit and remedy, in a sentence.
    pub why: String,
}

impl RefusalGroup {
    /// Returns it as one sentence.
    #[must_use]
    pub fn words(&self) -> String {
        match (self.strokes, self.rule.as_str()) {
            (0 | 1, _) | (_, "outside") => self.why.clone(),
            (strokes, _) => format!(
                "{}{}; the worst: {}",
                count(strokes, "stroke"),
                self.numbers(),
                self.why
            ),
        }
    }

    /// Lists the numbers of its first strokes, in brackets.
    fn numbers(&self) -> String {
        let named: Vec<String> = self.first.iter().map(ToString::to_string).collect();
        match self.strokes.saturating_sub(named.len()) {
            _ if named.is_empty() => String::new(),
            0 => format!(" ({})", named.join(", ")),
            more => format!(" ({} and {more} more)", named.join(", ")),
        }
    }
}

/// Most strokes whose numbers are listed.
const NUMBERS_MAX: usize = 5;

/// Returns the remedy for a rule of the gate whose own text names none.
fn remedy(rule: &str) -> Option<&'static str> {
    match rule {
        "joint_limit" | "condition" | "workspace" => {
            Some("move the sheet, or make the design smaller")
        }
        "joint_speed" | "joint_acceleration" | "joint_jerk" | "tip_speed" | "midpoint" => {
            Some("lower `draw_mm_s` or `travel_mm_s` of the scene, or move the sheet")
        }
        "keep_out" => Some("move the sheet or the design away from there"),
        "body" | "self_collision" => Some("move the sheet, or mount the tool at a different angle"),
        _ => None,
    }
}

/// Groups refusals by rule, in the order of first occurrence.
#[must_use]
pub fn refusal_groups(refusals: &[RuleViolation]) -> Vec<RefusalGroup> {
    let mut rules: Vec<&str> = Vec::new();
    for refusal in refusals {
        if !rules.contains(&refusal.rule.as_str()) {
            rules.push(&refusal.rule);
        }
    }
    let groups = rules.into_iter().filter_map(|rule| {
        let of_rule = || refusals.iter().filter(move |refusal| refusal.rule == rule);
        let strokes = of_rule().map(|refusal| (refusal.stroke, &refusal.source));
        let strokes: BTreeSet<_> = strokes.collect();
        let worst = of_rule().max_by(|a, b| excess(a).total_cmp(&excess(b)))?;
        let numbers: BTreeSet<usize> = of_rule().filter_map(|refusal| refusal.stroke).collect();
        let reason = match remedy(rule) {
            Some(remedy) => format!("{}; {remedy}", worst.why),
            None => worst.why.clone(),
        };
        Some(RefusalGroup {
            rule: rule.to_owned(),
            strokes: strokes.len(),
            first: numbers.into_iter().take(NUMBERS_MAX).collect(),
            why: reason,
        })
    });
    groups.collect()
}

fn excess(refusal: &RuleViolation) -> f64 {
    let bounds = refusal.value.zip(refusal.limit);
    bounds.map_or(0.0, |(value, limit)| (value - limit).abs())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refusal(rule: &str, stroke: usize, value: f64) -> RuleViolation {
        RuleViolation {
            rule: rule.to_owned(),
            stroke: Some(stroke),
            value: Some(value),
            limit: Some(0.0),
            unit: Some("mm"),
            why: format!("path {stroke} is beyond reach by {value} mm"),
            ..RuleViolation::default()
        }
    }

    #[test]
    fn thirteen_strokes_beyond_reach_are_one_sentence_about_the_worst() {
        let mut all: Vec<_> = (1..=13)
            .map(|stroke| refusal("out_of_reach", stroke, 40.0 - 1.0 * stroke as f64))
            .collect();
        all.push(refusal("out_of_reach", 1, 2.0));
        all.push(refusal("tilt", 4, 3.0));
        let groups = refusal_groups(&all);
        let words: Vec<String> = groups.iter().map(RefusalGroup::words).collect();
        assert_eq!(
            words,
            [
                "13 strokes (1, 2, 3, 4, 5 and 8 more); the worst: path 1 is beyond reach by 39 mm",
                "path 4 is beyond reach by 3 mm"
            ]
        );
    }
}
