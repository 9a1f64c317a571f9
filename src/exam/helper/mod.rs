//! The six helpers by which cases are made and answers scored, each within its time. A step that failed is told as failed.

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

/// Share of a helper's time in which a model may judge; the rest is for what the rules found.
const JUDGE_SHARE: f64 = 0.8;

/// Most answers that are kept; then all are forgotten.
const KEPT_MAX: usize = 256;

/// Most cases or answers of one call.
const BATCH_MAX: usize = 200;

/// One of the helpers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ExamHelper {
    /// Results of a planner so far.
    PlannerProfile,
    /// Patterns of cases.
    SearchCaseTemplates,
    /// Words for them.
    DifficultyKeywords,
    /// Check that cases are worth asking.
    ValidateCase,
    /// Cases into the record.
    SaveCase,
    /// Answers scored.
    ScoreAndExplain,
}

impl ExamHelper {
    /// Every one.
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
    /// All its tries together.
    pub(crate) time_limit: Duration,
    /// Further tries after trouble with the store or the model.
    pub(crate) retries: u32,
    /// Time for which the same call gets the same answer.
    pub(crate) cache: Duration,
}

impl HelperLimits {
    /// As shipped.
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
    /// The way to it.
    pub(crate) endpoint: Box<dyn ModelEndpoint>,
    /// Settings for asking the model.
    pub(crate) settings: PlannerSettings,
}

/// The helpers of a node.
pub(crate) struct HelperService {
    store: PathBuf,
    limits: HashMap<ExamHelper, HelperLimits>,
    asker: Option<ModelClient>,
    clock: NodeClock,
    kept: Mutex<HashMap<String, (ClockInstant, HelperToolResult)>>,
}

impl HelperService {
    /// The helpers over the record at `store`, which need not exist yet, with these limits; others are as shipped.
    pub(crate) fn new(
        store: PathBuf,
        limits: HashMap<ExamHelper, HelperLimits>,
        asker: Option<ModelClient>,
    ) -> Self {
        Self {
            store,
            limits,
            asker,
            clock: NodeClock::real(),
            kept: Mutex::default(),
        }
    }

    /// Does what a helper is asked for, within its time.
    pub(crate) async fn help(
        &self,
        helper: ExamHelper,
        given: &Map<String, Value>,
        tools: &Arc<ExamToolbox>,
    ) -> HelperToolResult {
        let shipped = || HelperLimits::shipped(helper);
        let limits = self.limits.get(&helper).copied().unwrap_or_else(shipped);
        let (name, shown) = (helper.name(), tools_hash(tools));
        let key = format!("{name} {shown} {}", Value::Object(given.clone()));
        if let Some(known) = self.known(&key, limits.cache) {
            return known.with("cached", true);
        }
        let tries = self.tries(helper, given, tools, &limits);
        let tried = tokio::time::timeout(limits.time_limit, tries).await;
        let late = |_| format!("it did not end within {} s", limits.time_limit.as_secs());
        let helped = tried
            .map_err(late)
            .and_then(|tried| tried.map_err(|error| error.to_string()));
        let helped = helped.unwrap_or_else(|why| self.fallback(helper, given, tools, &why));
        if !helped.is_failed && limits.cache > Duration::ZERO {
            self.keep(key, &helped);
        }
        helped
    }

    fn known(&self, key: &str, cache: Duration) -> Option<HelperToolResult> {
        let kept = self.kept.locked();
        let (at, helped) = kept.get(key)?;
        (self.clock.now().since(*at) < cache).then(|| helped.clone())
    }

    fn keep(&self, key: String, helped: &HelperToolResult) {
        let mut kept = self.kept.locked();
        if kept.len() >= KEPT_MAX {
            kept.clear();
        }
        kept.insert(key, (self.clock.now(), helped.clone()));
    }

    /// Tries again after trouble with the store; what is wrong with the request itself stays wrong.
    async fn tries(
        &self,
        helper: ExamHelper,
        given: &Map<String, Value>,
        tools: &Arc<ExamToolbox>,
        limits: &HelperLimits,
    ) -> Result<HelperToolResult, ExamError> {
        let (mut wait, mut retries) = (BACK_OFF, 0);
        loop {
            let tried = self.once(helper, given, tools, limits).await;
            let is_trouble = matches!(tried, Err(ExamError::Store { .. } | ExamError::Busy(_)));
            if !is_trouble || retries == limits.retries {
                return tried.map(|helped| helped.with("retries", retries));
            }
            retries += 1;
            base::task::pause(wait).await;
            wait *= 2;
        }
    }

    async fn once(
        &self,
        helper: ExamHelper,
        given: &Map<String, Value>,
        tools: &Arc<ExamToolbox>,
        limits: &HelperLimits,
    ) -> Result<HelperToolResult, ExamError> {
        let (store, given, tools) = (self.store.clone(), given.clone(), Arc::clone(tools));
        if helper == ExamHelper::ValidateCase {
            let share = limits.time_limit.mul_f64(JUDGE_SHARE);
            let judge = validate::CaseJudge {
                asker: self.asker.as_ref(),
                clock: &self.clock,
                until: self.clock.now().after(share),
                failures: 0,
            };
            return validate::validate(&store, &given, &tools, judge).await;
        }
        // The store may keep its caller waiting, and the time limit is to be kept all the same.
        let work = move || match helper {
            ExamHelper::PlannerProfile => profile::profile(&store, &given),
            ExamHelper::SearchCaseTemplates => template_words::templates(&given),
            ExamHelper::DifficultyKeywords => Ok(template_words::keywords(&given, &tools)),
            ExamHelper::SaveCase => save::save(&store, &given, &tools),
            ExamHelper::ValidateCase | ExamHelper::ScoreAndExplain => {
                scoring::score(&store, &given, &tools)
            }
        };
        let worked = tokio::task::spawn_blocking(work).await;
        worked.unwrap_or_else(|error| Err(ExamError::Request(format!("it broke: {error}"))))
    }

    /// Returns the answer for a helper that could not do its work.
    fn fallback(
        &self,
        helper: ExamHelper,
        given: &Map<String, Value>,
        tools: &ExamToolbox,
        why: &str,
    ) -> HelperToolResult {
        match helper {
            ExamHelper::PlannerProfile => profile::beginner(why),
            ExamHelper::SaveCase => save::queued(&self.store, given, tools, why),
            _ => HelperToolResult::failed(format!("{} failed: {why}", helper.name())),
        }
        .with("fell_back", why)
    }
}

/// A text of the arguments.
fn text<'a>(given: &'a Map<String, Value>, key: &str) -> Option<&'a str> {
    given.get(key).and_then(Value::as_str)
}

fn flag(given: &Map<String, Value>, key: &str) -> bool {
    given.get(key).and_then(Value::as_bool).unwrap_or(false)
}

/// Returns the objects of a list, which holds at most as many as one call allows.
fn objects<'a>(given: &'a Map<String, Value>, key: &str) -> Result<&'a [Value], ExamError> {
    let list = given.get(key).and_then(Value::as_array);
    let list = list.map(Vec::as_slice).unwrap_or_default();
    if (1..=BATCH_MAX).contains(&list.len()) {
        return Ok(list);
    }
    Err(ExamError::Request(format!(
        "`{key}` has {} entries; 1 to {BATCH_MAX} are possible",
        list.len()
    )))
}

/// A case as it was sent; one without a name gets one that follows from its question.
fn case_of(value: &Value) -> Result<ExamCase, ExamError> {
    let mut cases = ExamCase::read_lines(&value.to_string())?;
    let mut case = cases
        .pop()
        .ok_or_else(|| ExamError::Request("there is no case".to_owned()))?;
    if value.get("name").or_else(|| value.get("id")).is_none() {
        let digits = blake3::hash(case.query.as_bytes()).to_hex();
        case.name = format!("sent_{}", cut(&digits, 8));
    }
    Ok(case)
}

/// Every case that is known here: those that ship, and those of the record where there is one.
fn known(store: &std::path::Path) -> Result<Vec<ExamCase>, ExamError> {
    let mut cases = ExamCase::shipped()?;
    if store.is_file() {
        cases.extend(ExamRecord::open(store)?.cases()?);
    }
    Ok(cases)
}

#[cfg(test)]
mod tests;
