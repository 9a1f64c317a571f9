//! Checks that a case is worth asking: it can be answered, its right call would be carried out, and it is not a copy.

use serde::Serialize;

use crate::tool_similarity::{jaccard, trigrams};
use crate::{ExamCase, ExamToolbox};

/// Score from which a case is kept unchanged.
const PASS: f64 = 0.85;

/// Score from which a case is regenerated once; below, it is rejected.
const REVISE: f64 = 0.70;

/// Similarity of two questions above which the score is lowered, and above which one is a copy of the other.
const ALIKE: f64 = 0.8;
const COPY: f64 = 0.97;

/// Allowed length of a question.
const QUERY_CHARS: std::ops::RangeInclusive<usize> = 4..=500;

/// Result of checking a case.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(crate) struct CaseFinding {
    /// 0 to 1: from 0.85 on it passes, from 0.70 on it is to be revised, below it is rejected.
    pub(crate) score: f64,
    /// Reasons for a lower score.
    pub(crate) why: Vec<String>,
}

impl CaseFinding {
    /// Returns whether the case is kept.
    pub(crate) fn passes(&self) -> bool {
        self.score >= PASS
    }

    /// Returns whether a new wording may help.
    pub(crate) fn is_to_be_revised(&self) -> bool {
        (REVISE..PASS).contains(&self.score)
    }

    /// Returns whether the case is good enough to be saved.
    pub(crate) fn may_be_saved(&self) -> bool {
        self.score >= REVISE
    }

    /// Lowers the score by a second opinion, which can never raise it.
    pub(crate) fn lower_score(&mut self, score: f64, why: String) {
        self.cap_score(score, why);
    }

    fn cap_score(&mut self, max: f64, why: String) {
        self.score = self.score.min(max);
        self.why.push(why);
    }
}

/// Checks a case by rules alone.
pub(crate) fn check<'a>(
    case: &ExamCase,
    known: impl Iterator<Item = &'a ExamCase>,
    tools: &ExamToolbox,
) -> CaseFinding {
    let mut finding = CaseFinding {
        score: 1.0,
        why: Vec::new(),
    };
    let chars = case.query.chars().count();
    if !QUERY_CHARS.contains(&chars) {
        finding.cap_score(0.75, format!("the question has {chars} characters"));
    }
    if case.line().contains(['{', '}']) && has_unfilled_slot(case) {
        finding.cap_score(0.0, "a word in braces was not filled".to_owned());
    }
    if let Err(error) = tools.knows_all(case) {
        finding.cap_score(0.0, error.to_string());
    } else if !tools.for_case(case).is_ok_and(|own| case.fits(&own)) {
        finding.cap_score(0.0, "the node would refuse its correct call".to_owned());
    }
    let own = trigrams(&case.query);
    for other in known.filter(|other| other.context == case.context) {
        let similarity = if other.query == case.query {
            1.0
        } else {
            jaccard(&own, &trigrams(&other.query))
        };
        if similarity >= COPY {
            finding.cap_score(0.5, format!("it is the same as {}", other.name));
        } else if similarity >= ALIKE {
            finding.cap_score(0.8, format!("it is almost the same as {}", other.name));
        }
    }
    finding
}

/// Returns whether braces of a template are left in the question or the expected values.
fn has_unfilled_slot(case: &ExamCase) -> bool {
    let params = case
        .expected_params
        .values()
        .filter_map(|value| value.as_str());
    params
        .chain([case.query.as_str()])
        .any(|text| text.contains(['{', '}']))
}
