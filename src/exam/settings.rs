//! Settings for asking a planner: everything that is sent with a question, and the number of samples and time limits.

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::ExamError;
use super::address::AddressKind;

/// The provider of recorded answers.
const REPLAY: &str = "replay";

/// Default limit of tokens in one answer.
const TOKENS_MAX: u32 = 1024;

/// Settings for asking a planner. They never change within a run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct PlannerSettings {
    /// The endpoint's address, or `replay`.
    pub(crate) provider: String,
    /// The model's name, as the endpoint knows it.
    pub model: String,
    /// Longest wait for an answer, 1 to 300 s.
    pub(crate) time_limit_s: u32,
    /// 0 to 2.
    pub(crate) temperature: f64,
    /// Nucleus sampling: the total probability of the likeliest tokens to draw from, above 0 and up to 1. If absent, it is
    /// not sent and the endpoint's own value holds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) top_p: Option<f64>,
    /// Most tokens of one answer, 1 to 32,768.
    #[serde(default = "tokens_max")]
    pub(crate) max_tokens: u32,
    /// Further tries after an error, 0 to 10.
    pub(crate) retries: u32,
    /// The seed that is sent with each question; the number of the sample is added to it.
    pub(crate) seed: u64,
    /// Number of times each case is asked, 1 to 10.
    pub(crate) samples: u32,
    /// BLAKE3 hash of the model's file, if the machine that ran the exam had it.
    #[serde(default)]
    pub model_file: Option<String>,
    /// Path of that file, to check whether it is still the same.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model_path: Option<String>,
    /// Fraction of the answers that may be missing before the run fails, 0 to 1.
    #[serde(default = "max_failed")]
    pub(crate) max_failed: f64,
    /// Maximum number of answers to ask for while the verdict is not certain, 1 to 100,000. Without it every case is
    /// asked and no further cases are generated.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) budget: Option<u32>,
}

/// Default fraction of answers that may fail.
const FAILED_MAX: f64 = 0.05;

const fn max_failed() -> f64 {
    FAILED_MAX
}

const fn tokens_max() -> u32 {
    TOKENS_MAX
}

/// Refuses a value outside its range; the error names the range and its unit.
pub(super) fn within<T: Copy + PartialOrd + std::fmt::Display>(
    name: &'static str,
    value: T,
    range: std::ops::RangeInclusive<T>,
    unit: &str,
) -> Result<(), ExamError> {
    if range.contains(&value) {
        return Ok(());
    }
    Err(ExamError::Setting {
        name,
        value: value.to_string(),
        range: format!("{} to {}{unit}", range.start(), range.end()),
    })
}

/// Longest name of a model, in characters.
const MODEL_CHARS_MAX: usize = 200;

/// Refuses a model's name that is empty or is none.
///
/// # Errors
/// Fails with the number of characters.
pub(crate) fn check_model(model: &str) -> Result<(), ExamError> {
    let count = match model.trim() {
        "" => 0,
        name => name.chars().count(),
    };
    within(
        "the length of the model's name",
        count,
        1..=MODEL_CHARS_MAX,
        "",
    )
}

impl PlannerSettings {
    /// Returns the default settings.
    pub(crate) fn new(provider: &str, model: &str) -> Self {
        Self {
            provider: provider.to_owned(),
            model: model.to_owned(),
            time_limit_s: 30,
            temperature: 0.4,
            top_p: None,
            max_tokens: TOKENS_MAX,
            retries: 3,
            seed: 1,
            samples: 1,
            model_file: None,
            model_path: None,
            max_failed: FAILED_MAX,
            budget: None,
        }
    }

    /// Returns the settings for recorded answers. How those were asked is unknown, regardless of the other settings.
    pub(crate) fn of_replay(model: &str) -> Self {
        Self::new(REPLAY, model)
    }

    /// Returns whether these are the settings for recorded answers.
    pub(crate) fn is_replay(&self) -> bool {
        self.provider == REPLAY
    }

    /// Checks every range, and that the address contains no key.
    ///
    /// # Errors
    /// Fails at the first setting that is out of its range.
    pub(crate) fn check(&self) -> Result<(), ExamError> {
        if !self.is_replay() {
            AddressKind::Endpoint.check(&self.provider)?;
        }
        check_model(&self.model)?;
        within("the time limit", self.time_limit_s, 1..=300, " s")?;
        within("the temperature", self.temperature, 0.0..=2.0, "")?;
        if let Some(top_p) = self.top_p.filter(|one| !(*one > 0.0 && *one <= 1.0)) {
            return Err(ExamError::Setting {
                name: "top-p",
                value: top_p.to_string(),
                range: "above 0 and at most 1".to_owned(),
            });
        }
        within("the number of tokens", self.max_tokens, 1..=32_768, "")?;
        within("the number of retries", self.retries, 0..=10, "")?;
        within("the number of samples", self.samples, 1..=10, "")?;
        within(
            "the share of answers that may fail",
            self.max_failed,
            0.0..=1.0,
            "",
        )?;
        if let Some(budget) = self.budget {
            within("the budget", budget, 1..=100_000, " answers")?;
        }
        Ok(())
    }

    /// Returns the known settings of the questions, as data.
    pub(crate) fn known_json(&self) -> Value {
        if self.is_replay() {
            return json!({"provider": REPLAY, "model": self.model, "samples": self.samples});
        }
        serde_json::to_value(self).unwrap_or_default()
    }

    /// Returns the settings without the provider and model: what two runs may have in common.
    pub(super) fn sampling(&self) -> Value {
        let mut fields = self.known_json();
        for key in ["provider", "model", "model_path"] {
            let _ = fields.as_object_mut().map(|fields| fields.remove(key));
        }
        json!({"is_replay": self.is_replay(), "known": fields})
    }

    /// Describes the settings as text.
    pub(crate) fn in_words(&self) -> String {
        if self.is_replay() {
            return format!(
                "recorded answers, up to {} for each case; their settings are unknown",
                self.samples
            );
        }
        let top_p = self.top_p.map_or_else(
            || "top-p not sent".to_owned(),
            |top_p| format!("top-p {top_p}"),
        );
        format!(
            "temperature {}, {top_p}, at most {} tokens for each answer, seed {}, {} samples for each case, time limit {} s, {} retries, at most {} % of the answers may fail",
            self.temperature,
            self.max_tokens,
            self.seed,
            self.samples,
            self.time_limit_s,
            self.retries,
            100.0 * self.max_failed
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_are_held_and_a_key_in_the_address_is_refused() {
        let good = PlannerSettings::new("http://a/v1", "m");
        assert!(good.check().is_ok());
        let wrong: [fn(&mut PlannerSettings); 9] = [
            |one| one.time_limit_s = 301,
            |one| one.temperature = f64::NAN,
            |one| one.top_p = Some(0.0),
            |one| one.max_tokens = 0,
            |one| one.retries = 11,
            |one| one.samples = 0,
            |one| one.max_failed = 1.5,
            |one| one.budget = Some(0),
            |one| one.provider.push_str("?key=x"),
        ];
        for spoil in wrong {
            let mut settings = good.clone();
            spoil(&mut settings);
            assert!(settings.check().is_err(), "{settings:?}");
        }
    }

    #[test]
    fn of_recorded_answers_nothing_is_known_that_was_not_done_here() {
        let replay = PlannerSettings::of_replay("m");
        assert_eq!(
            replay.known_json(),
            json!({"provider": "replay", "model": "m", "samples": 1})
        );
        assert!(!replay.in_words().contains("temperature"));
        let live = PlannerSettings::new("http://a/v1", "m");
        assert_ne!(replay.sampling(), live.sampling());
        let elsewhere = PlannerSettings::new("http://b/v1", "n");
        assert_eq!(elsewhere.sampling(), live.sampling());
    }
}
