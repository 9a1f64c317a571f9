//! Optional sets of tools, and the limits of the exam's helpers.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::config_problem::ProblemList;

/// A set of tools that a node lists only where its file asks for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum OptionalToolset {
    /// The helpers that make and score cases for examining planners.
    Exam,
    /// A recording: reading only.
    Recording,
}

/// The helpers of the exam: a model to ask, and each one's limits.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct ExamEntry {
    /// An OpenAI-compatible endpoint that `validate_case` may ask; absent: none.
    pub model_url: Option<String>,
    /// The name of its model; absent: `default`.
    pub model: Option<String>,
    /// 3 s and 3 retries as shipped.
    pub planner_profile: HelperEntry,
    /// 5 s and 3 retries as shipped.
    pub search_case_templates: HelperEntry,
    /// 2 s, 1 retry and an hour's cache as shipped.
    pub difficulty_keywords: HelperEntry,
    /// 10 s and 1 retry as shipped.
    pub validate_case: HelperEntry,
    /// 10 s and 1 retry as shipped.
    pub save_case: HelperEntry,
    /// 15 s and no retry as shipped.
    pub score_and_explain: HelperEntry,
}

/// The limits of one helper; what is absent is as shipped.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct HelperEntry {
    /// The longest for all its tries together: 1 to 300 s.
    pub time_limit_s: Option<u32>,
    /// Number of retries, with growing waits: 0 to 10.
    pub retries: Option<u32>,
    /// Time for which the same call gets the same answer, up to 86,400 s.
    pub cache_s: Option<u32>,
}

impl ExamEntry {
    /// Returns the helpers by name.
    #[must_use]
    pub fn helpers(&self) -> [(&'static str, HelperEntry); 6] {
        [
            ("planner_profile", self.planner_profile),
            ("search_case_templates", self.search_case_templates),
            ("difficulty_keywords", self.difficulty_keywords),
            ("validate_case", self.validate_case),
            ("save_case", self.save_case),
            ("score_and_explain", self.score_and_explain),
        ]
    }

    pub(super) fn check(&self, problems: &mut ProblemList) {
        for (helper, entry) in self.helpers() {
            for (key, value, range) in [
                ("time_limit_s", entry.time_limit_s, [1, 300]),
                ("retries", entry.retries, [0, 10]),
                ("cache_s", entry.cache_s, [0, 86_400]),
            ] {
                let key = format!("exam.{helper}.{key}");
                if let Some(value) = value {
                    problems.range(&key, &key, value, range);
                }
            }
        }
    }
}
