//! The six helpers that make cases and score answers, each within its time limit. A failed step is reported as failed.

mod profile;
mod save;
mod scoring;
mod template_words;
mod validate;

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde_json::{Map, Value};

use super::run::tools_hash;
use super::{ExamCase, ExamError, ExamRecord, ExamToolbox, ModelEndpoint, PlannerSettings};
use base::clock::NodeClock;
use base::lock::MutexExt;
use base::units::ClockInstant;
use base::wording::cut;
use tools::HelperToolResult;

/// The first wait before another try; each further one is twice as long.
const BACK_OFF: Duration = Duration::from_millis(100);

/// Fraction of a helper's time in which a model may judge; the rest is for the rules.
const JUDGE_FRACTION: f64 = 0.8;

/// Number of cached answers at which the cache is cleared.
const CACHED_MAX: usize = 256;

/// Most cases or answers of one call.
const BATCH_MAX: usize = 200;

/// One of the helpers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ExamHelper {
    /// Results of a planner so far.
    PlannerProfile,
    /// Patterns of cases.
    SearchCaseTemplates,
    /// Words that fill them.
    DifficultyKeywords,
    /// Check that cases are worth asking.
    ValidateCase,
    /// Saves cases in the record.
    SaveCase,
    /// Answers scored.
    ScoreAndExplain,
}

impl ExamHelper {
    /// All helpers.
    pub const ALL: [Self; 6] = [
        Self::PlannerProfile,
        Self::SearchCaseTemplates,
        Self::DifficultyKeywords,
        Self::ValidateCase,
        Self::SaveCase,
        Self::ScoreAndExplain,
    ];

    /// Its tool's name.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::PlannerProfile => "planner_profile",
            Self::SearchCaseTemplates => "search_case_templates",
            Self::DifficultyKeywords => "difficulty_keywords",
            Self::ValidateCase => "validate_case",
            Self::SaveCase => "save_case",
            Self::ScoreAndExplain => "score_and_explain",
        }
    }

    /// The helper of this name.
    pub(crate) fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|one| one.name() == name)
    }
}

/// Limits of a helper.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct HelperLimits {
    /// Time limit for all tries together.
    pub(crate) time_limit: Duration,
    /// Further tries after trouble with the store or the model.
    pub(crate) retries: u32,
    /// Time for which the same call gets the same answer.
    pub(crate) cache: Duration,
}

impl HelperLimits {
    /// Returns the default limits.
    pub(crate) const fn shipped(helper: ExamHelper) -> Self {
        let (seconds, retries, cache_s) = match helper {
            ExamHelper::PlannerProfile => (3, 3, 0),
            ExamHelper::SearchCaseTemplates => (5, 3, 0),
            ExamHelper::DifficultyKeywords => (2, 1, 3_600),
            ExamHelper::ValidateCase | ExamHelper::SaveCase => (10, 1, 0),
            ExamHelper::ScoreAndExplain => (15, 0, 0),
        };
        Self {
            time_limit: Duration::from_secs(seconds),
            retries,
            cache: Duration::from_secs(cache_s),
        }
    }
}

/// A model that helpers may ask.
pub(crate) struct ModelClient {
    /// Connection to the model.
    pub(crate) endpoint: Box<dyn ModelEndpoint>,
    /// Settings for asking the model.
    pub(crate) settings: PlannerSettings,
}

/// The helpers of a node.
pub(crate) struct HelperService {
    store: PathBuf,
    limits: HashMap<ExamHelper, HelperLimits>,
    model_client: Option<ModelClient>,
    clock: NodeClock,
    cache: Mutex<HashMap<String, (ClockInstant, HelperToolResult)>>,
}

impl HelperService {
    /// Creates the helpers of the record at `store`, which need not exist yet. A helper that `limits` lacks has its default limits.
    pub(crate) fn new(
        store: PathBuf,
        limits: HashMap<ExamHelper, HelperLimits>,
        model_client: Option<ModelClient>,
    ) -> Self {
        Self {
            store,
            limits,
            model_client,
            clock: NodeClock::real(),
            cache: Mutex::default(),
        }
    }

    /// Runs a helper within its time limit.
    pub(crate) async fn help(
        &self,
        helper: ExamHelper,
        arguments: &Map<String, Value>,
        tools: &Arc<ExamToolbox>,
    ) -> HelperToolResult {
        let shipped = || HelperLimits::shipped(helper);
        let limits = self.limits.get(&helper).copied().unwrap_or_else(shipped);
        let (name, tools_digest) = (helper.name(), tools_hash(tools));
        let key = format!("{name} {tools_digest} {}", Value::Object(arguments.clone()));
        if let Some(cached) = self.cached(&key, limits.cache) {
            return cached.with("cached", true);
        }
        let attempts = self.help_with_retries(helper, arguments, tools, &limits);
        let outcome = tokio::time::timeout(limits.time_limit, attempts).await;
        let timeout_error = |_| {
            format!(
                "the helper did not finish within {} s",
                limits.time_limit.as_secs()
            )
        };
        let result = outcome
            .map_err(timeout_error)
            .and_then(|outcome| outcome.map_err(|error| error.to_string()));
        let result =
            result.unwrap_or_else(|reason| self.fallback(helper, arguments, tools, &reason));
        if !result.is_failed && limits.cache > Duration::ZERO {
            self.store_in_cache(key, &result);
        }
        result
    }

    fn cached(&self, key: &str, max_age: Duration) -> Option<HelperToolResult> {
        let cache = self.cache.locked();
        let (stored_at, result) = cache.get(key)?;
        (self.clock.now().since(*stored_at) < max_age).then(|| result.clone())
    }

    fn store_in_cache(&self, key: String, result: &HelperToolResult) {
        let mut cache = self.cache.locked();
        if cache.len() >= CACHED_MAX {
            cache.clear();
        }
        cache.insert(key, (self.clock.now(), result.clone()));
    }

    /// Runs a helper, and runs it again after trouble with the store. An error of the request itself is final.
    async fn help_with_retries(
        &self,
        helper: ExamHelper,
        arguments: &Map<String, Value>,
        tools: &Arc<ExamToolbox>,
        limits: &HelperLimits,
    ) -> Result<HelperToolResult, ExamError> {
        let (mut wait, mut retries) = (BACK_OFF, 0);
        loop {
            let result = self.help_once(helper, arguments, tools, limits).await;
            let is_transient = matches!(result, Err(ExamError::Store { .. } | ExamError::Busy(_)));
            if !is_transient || retries == limits.retries {
                return result.map(|answer| answer.with("retries", retries));
            }
            retries += 1;
            base::task::pause(wait).await;
            wait *= 2;
        }
    }

    async fn help_once(
        &self,
        helper: ExamHelper,
        arguments: &Map<String, Value>,
        tools: &Arc<ExamToolbox>,
        limits: &HelperLimits,
    ) -> Result<HelperToolResult, ExamError> {
        let (store, arguments, tools) = (self.store.clone(), arguments.clone(), Arc::clone(tools));
        if helper == ExamHelper::ValidateCase {
            let judge_time = limits.time_limit.mul_f64(JUDGE_FRACTION);
            let judge = validate::CaseJudge {
                client: self.model_client.as_ref(),
                clock: &self.clock,
                until: self.clock.now().after(judge_time),
                failures: 0,
            };
            return validate::validate(&store, &arguments, &tools, judge).await;
        }
        // The store may block its caller, and the time limit must hold all the same.
        let work = move || match helper {
            ExamHelper::PlannerProfile => profile::profile(&store, &arguments),
            ExamHelper::SearchCaseTemplates => template_words::templates(&arguments),
            ExamHelper::DifficultyKeywords => template_words::keywords(&arguments, &tools),
            ExamHelper::SaveCase => save::save(&store, &arguments, &tools),
            ExamHelper::ValidateCase | ExamHelper::ScoreAndExplain => {
                scoring::score(&store, &arguments, &tools)
            }
        };
        let result = tokio::task::spawn_blocking(work).await;
        result
            .unwrap_or_else(|error| Err(ExamError::Request(format!("the helper failed: {error}"))))
    }

    /// Returns the answer for a helper that could not do its work.
    fn fallback(
        &self,
        helper: ExamHelper,
        arguments: &Map<String, Value>,
        tools: &ExamToolbox,
        reason: &str,
    ) -> HelperToolResult {
        match helper {
            ExamHelper::PlannerProfile => profile::beginner(reason),
            ExamHelper::SaveCase => save::queue_cases(&self.store, arguments, tools, reason),
            _ => HelperToolResult::failed(format!("{} failed: {reason}", helper.name())),
        }
        .with("fell_back", reason)
    }
}

/// Returns a text argument.
fn text<'a>(arguments: &'a Map<String, Value>, key: &str) -> Option<&'a str> {
    arguments.get(key).and_then(Value::as_str)
}

fn flag(arguments: &Map<String, Value>, key: &str) -> bool {
    arguments.get(key).and_then(Value::as_bool).unwrap_or(false)
}

/// Returns the entries of a list that holds no more than one call allows.
fn objects<'a>(arguments: &'a Map<String, Value>, key: &str) -> Result<&'a [Value], ExamError> {
    let list = arguments.get(key).and_then(Value::as_array);
    let list = list.map(Vec::as_slice).unwrap_or_default();
    if (1..=BATCH_MAX).contains(&list.len()) {
        return Ok(list);
    }
    Err(ExamError::Request(format!(
        "`{key}` has {} entries; 1 to {BATCH_MAX} are possible",
        list.len()
    )))
}

/// Reads a case; one without a name gets a name derived from its question.
fn case_of(value: &Value) -> Result<ExamCase, ExamError> {
    let mut cases = ExamCase::read_lines(&value.to_string())?;
    let mut case = cases
        .pop()
        .ok_or_else(|| ExamError::Request("the call has no case".to_owned()))?;
    if value.get("name").or_else(|| value.get("id")).is_none() {
        let digits = blake3::hash(case.query.as_bytes()).to_hex();
        case.name = format!("sent_{}", cut(&digits, 8));
    }
    Ok(case)
}

/// Returns every known case: those that ship, and those of the record if there is one.
fn known_cases(store: &std::path::Path) -> Result<Vec<ExamCase>, ExamError> {
    let mut cases = ExamCase::shipped()?;
    if store.is_file() {
        cases.extend(ExamRecord::open(store)?.cases()?);
    }
    Ok(cases)
}

#[cfg(test)]
mod tests;
