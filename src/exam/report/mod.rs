//! Reports of a run: HTML in one file, Markdown, JSON.

mod html;
mod markdown;

use serde_json::{Value, json};

use super::confidence::ConfidenceClass;
use super::generate::sentence;
use super::record::now_ms;
use super::run::CaseOutcome;
use super::tally::GroupTally;
use super::{ConfusionMatrix, ExamError, ExamRecord, ExamVerdict, RunRow};

pub(crate) use html::html;
pub(crate) use markdown::markdown;

/// Title of the descriptions that a node file may give to built-in tools.
const DESCRIPTIONS_TITLE: &str = "Descriptions for the node file";

/// A run with everything that its report shows.
#[derive(Debug)]
pub(crate) struct ExamReport {
    run: RunRow,
    verdict: ExamVerdict,
    outcomes: Vec<CaseOutcome>,
}

impl ExamReport {
    /// Loads the report of a run.
    ///
    /// # Errors
    /// Fails if there is no such run or it has no verdict.
    pub(crate) fn of(record: &ExamRecord, id: Option<i64>) -> Result<Self, ExamError> {
        let run = record.run(id)?;
        let Some(verdict) = run.verdict() else {
            let reason = run.error.as_ref().unwrap_or(&run.status);
            let reason = format!("run {} has no verdict: {reason}", run.id);
            return Err(ExamError::Request(reason));
        };
        let outcomes = record.outcomes(run.id)?;
        Ok(Self {
            run,
            verdict,
            outcomes,
        })
    }

    /// Returns the run's number.
    pub(crate) fn id(&self) -> i64 {
        self.run.id
    }

    /// Returns everything as JSON, with the verdict as it was stored.
    pub(crate) fn json(&self) -> Value {
        let answers: Vec<Value> = self.outcomes.iter().map(answer_json).collect();
        let verdict = self.run.verdict.as_deref().unwrap_or_default();
        json!({
            "run": self.run.id,
            "settings": self.run.settings.known_json(),
            "version": self.run.version,
            "prompt_hash": self.run.prompt_hash,
            "tools_hash": self.run.tools_hash,
            "began_ms": self.run.began_ms,
            "ended_ms": self.run.ended_ms,
            "generated_at": now_ms(),
            "status": self.run.status,
            "error": self.run.error,
            "verdict": serde_json::from_str::<Value>(verdict).unwrap_or_default(),
            "answers": answers,
        })
    }

    /// Returns its answers as lines for `exam run --replay`, without the missing ones.
    pub(crate) fn answers(&self) -> String {
        let line = |one: &CaseOutcome| {
            let output = serde_json::from_str(&one.raw).ok().filter(Value::is_object);
            let output = output.unwrap_or_else(|| one.raw.clone().into());
            let (case, query) = (&one.case.name, &one.case.query);
            let line = json!({"case": case, "query": query, "output": output, "milliseconds": one.milliseconds});
            format!("{line}\n")
        };
        self.answered().map(line).collect()
    }

    /// Returns the verdict in a few words.
    fn title(&self) -> String {
        sentence(&self.verdict.line())
    }

    /// Returns the lists at the beginning of a report, with their titles.
    fn leading_lists(&self) -> [(&'static str, Vec<String>); 4] {
        [
            ("Why", self.verdict.reasons.clone()),
            ("What to change", self.verdict.changes.clone()),
            (
                "Trouble with the endpoint (not the planner's)",
                self.endpoint_failures(),
            ),
            ("Also", self.verdict.notes.clone()),
        ]
    }

    /// Returns the errors of the endpoint, each with the number of lost answers and the first cases concerned.
    fn endpoint_failures(&self) -> Vec<String> {
        let failed = self.verdict.tally.failed;
        let failures = self.verdict.endpoint_failures.iter();
        failures
            .map(|one| {
                let cases = one.cases.join(", ");
                format!(
                    "{} of {failed} missing answers: {} (cases: {cases})",
                    one.answers, one.why
                )
            })
            .collect()
    }

    /// Returns the answers that arrived.
    fn answered(&self) -> impl Iterator<Item = &CaseOutcome> {
        self.outcomes.iter().filter(|outcome| outcome.is_answered())
    }

    /// Returns the answers that arrived and are not right in everything.
    fn wrong(&self) -> Vec<&CaseOutcome> {
        self.answered().filter(|one| !one.judged.exact).collect()
    }

    /// Returns the leading figures, each with its n.
    fn figures(&self) -> [(&'static str, String); 24] {
        let tally = &self.verdict.tally;
        [
            (
                "Right tool (or correctly no tool)",
                tally.all.right.to_string(),
            ),
            (
                "The built-in router on the same cases",
                self.verdict.router.to_string(),
            ),
            ("Precision", tally.precision.to_string()),
            ("Recall", tally.recall.to_string()),
            (
                "F1, if a wrong tool counts as a wrong call and a missed call",
                tally.f1.to_string(),
            ),
            (
                "F1, if a wrong tool counts only as a missed call",
                or_none(tally.f1_once, "not counted (n = 0)"),
            ),
            ("Everything right", tally.all.exact.to_string()),
            ("Right scene", tally.scene.to_string()),
            (
                "Unsafe, in cases in which nothing may move",
                tally.hazards.counts(),
            ),
            (
                "Unsafe, in the other cases",
                tally.unsafe_elsewhere.counts(),
            ),
            ("Unsafe: upper bound (95 % probability)", self.bound()),
            ("Lost stops", tally.lost_stops.counts()),
            (
                "Previews confirmed blindly (preview in words only)",
                tally.blind_confirms_words.to_string(),
            ),
            (
                "Previews confirmed blindly (preview with a `next_call`)",
                tally.blind_confirms_next_call.to_string(),
            ),
            ("Parameters complete", tally.completeness.to_string()),
            ("Parameters correct", tally.correctness.to_string()),
            (
                "Types that were right before repair",
                tally.type_conformance.to_string(),
            ),
            ("Cost of repair", tally.repair_cost.to_string()),
            (
                "Answers with an invented parameter",
                tally.hallucinated.counts(),
            ),
            ("Keys that belong to no tool", tally.left_over_text()),
            (
                "Answers with another tool's parameter",
                tally.foreign.counts(),
            ),
            ("How sure the planner was", self.confidence()),
            (
                "Missing answers",
                format!("{} of {}", tally.failed, tally.failed + tally.answers),
            ),
            (
                "Median time",
                or_none(tally.median_ms, "not measured (n = 0)"),
            ),
        ]
    }

    /// Returns the tables of groups: their titles, and for each group its name, n, right, exact and unsafe.
    fn groups(&self) -> [(&'static str, Vec<[String; 5]>); 2] {
        let row = |(name, group): (&String, &GroupTally)| {
            let n = group.right.n;
            let of_n = |hits: usize| format!("{hits} of {n}");
            [
                name.clone(),
                n.to_string(),
                of_n(group.right.hits),
                of_n(group.exact.hits),
                of_n(group.unsafe_actions.hits),
            ]
        };
        let tally = &self.verdict.tally;
        [
            ("By class", tally.by_class.iter().map(row).collect()),
            ("By expected tool", tally.by_tool.iter().map(row).collect()),
        ]
    }

    /// Returns the upper bound on unsafe answers, with the number of cases behind it.
    fn bound(&self) -> String {
        match &self.verdict.unsafe_share_bound {
            Some(bound) => format!("{:.1} % (n = {})", 100.0 * bound.at_most, bound.n),
            None => "– (n = 0)".to_owned(),
        }
    }

    /// Returns the counts of answers by confidence class, each with its meaning.
    fn confidence(&self) -> String {
        let counts = &self.verdict.tally.confidence;
        let parts = counts.iter().map(|(word, count)| {
            let meaning = ConfidenceClass::meaning(word);
            format!("{} ({meaning}) {count}", word.replace('_', " "))
        });
        match counts.values().sum() {
            0 => "not known (n = 0)".to_owned(),
            n => format!("{} (n = {n})", parts.collect::<Vec<_>>().join(", ")),
        }
    }

    /// Returns the confusion matrix: the right tools in rows, the called tools in columns.
    fn confusion(&self) -> ConfusionMatrix {
        ConfusionMatrix::of(self.run.id, &self.verdict.tally, str::to_owned)
    }
}

fn or_none(figure: Option<impl ToString>, none: &str) -> String {
    figure.map_or_else(|| none.to_owned(), |figure| figure.to_string())
}

fn answer_json(outcome: &CaseOutcome) -> Value {
    json!({
        "case": outcome.case.name,
        "class": outcome.case.class,
        "query": outcome.case.query,
        "expected_tool": outcome.case.expected_tool,
        "hazard": outcome.hazard,
        "sample": outcome.sample,
        "raw": outcome.raw,
        "milliseconds": outcome.milliseconds,
        "retries": outcome.retries,
        "error": outcome.error,
        "answered_ms": outcome.answered_ms,
        "probability": outcome.probability,
        "confidence": outcome.confidence,
        "judged": outcome.judged,
    })
}
