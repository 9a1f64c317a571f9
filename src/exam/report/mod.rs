//! A run as something to read: HTML in one file, Markdown, JSON.

mod html;
mod markdown;

use serde_json::{Value, json};

use super::confidence::ConfidenceClass;
use super::record::now_ms;
use super::run::CaseOutcome;
use super::{ConfusionMatrix, ExamError, ExamRecord, RunRow};

pub(crate) use html::html;
pub(crate) use markdown::markdown;

/// Title of the words that a node file may give to built-in tools.
const DESCRIPTIONS_TITLE: &str = "Words for the node file";

/// A run with everything that is to be told of it.
#[derive(Debug)]
pub(crate) struct ExamReport {
    run: RunRow,
    verdict: Value,
    outcomes: Vec<CaseOutcome>,
}

impl ExamReport {
    /// A run's report.
    ///
    /// # Errors
    /// There is no such run, or it has no verdict.
    pub(crate) fn of(record: &ExamRecord, id: Option<i64>) -> Result<Self, ExamError> {
        let run = record.run(id)?;
        let Some(verdict) = run.verdict() else {
            let why = run.error.clone().unwrap_or_else(|| run.status.clone());
            return Err(ExamError::Request(format!(
                "run {} has no verdict: {why}",
                run.id
            )));
        };
        let outcomes = record.outcomes(run.id)?;
        Ok(Self {
            run,
            verdict,
            outcomes,
        })
    }

    /// The run's number.
    pub(crate) fn id(&self) -> i64 {
        self.run.id
    }

    /// Everything, as data.
    pub(crate) fn json(&self) -> Value {
        let answers: Vec<Value> = self.outcomes.iter().map(answer).collect();
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
            "verdict": self.verdict,
            "answers": answers,
        })
    }

    /// Its answers as lines that `exam run --replay` takes; those that did not come are left out.
    pub(crate) fn answers(&self) -> String {
        let came = self.outcomes.iter().filter(|one| one.came());
        let line = |one: &CaseOutcome| {
            let output = serde_json::from_str(&one.raw).ok().filter(Value::is_object);
            let output = output.unwrap_or_else(|| one.raw.clone().into());
            let (case, query) = (&one.case.name, &one.case.query);
            let line = json!({"case": case, "query": query, "output": output, "milliseconds": one.milliseconds});
            format!("{line}\n")
        };
        came.map(line).collect()
    }

    /// The verdict in a few words.
    fn title(&self) -> String {
        let word = |key: &str| self.verdict.get(key).and_then(Value::as_str);
        if let Some(why) = word("failed") {
            return format!("The run failed and says nothing of the planner: {why}");
        }
        let reached = word("reached").unwrap_or("no level");
        match word("asked") {
            Some(asked) if self.verdict.get("passed") == Some(&Value::Bool(true)) => {
                format!("Qualified for {asked}")
            }
            Some(asked) => format!("Not qualified for {asked}; it reaches {reached}"),
            None => format!("It reaches {reached}"),
        }
    }

    fn texts(&self, key: &str) -> Vec<&str> {
        ReportObject(&self.verdict).texts(key)
    }

    /// Words for built-in tools that were called wrongly, as a fragment of the node file.
    fn descriptions(&self) -> Option<&str> {
        self.verdict.get("descriptions").and_then(Value::as_str)
    }

    /// Lists that a report begins with: their titles and items.
    fn leading_lists(&self) -> [(&'static str, Vec<String>); 4] {
        let said = |key: &str| self.texts(key).into_iter().map(str::to_owned).collect();
        [
            ("Why", said("reasons")),
            ("What to change", said("changes")),
            (
                "Trouble with the endpoint, which is none of the planner's",
                self.endpoint_failures(),
            ),
            ("Also", said("notes")),
        ]
    }

    /// The worst answers, as the verdict has them.
    fn worst(&self) -> Vec<ReportObject<'_>> {
        let all = self.verdict.get("worst").and_then(Value::as_array);
        all.into_iter().flatten().map(ReportObject).collect()
    }

    /// The errors of the endpoint: answers that they cost, the error, the first cases concerned.
    fn endpoint_failures(&self) -> Vec<String> {
        let all = self.verdict.get("endpoint_failures");
        let all = all.and_then(Value::as_array).into_iter().flatten();
        let of = count(Some(self.tally()), "failed");
        all.map(|one| {
            let told = ReportObject(one);
            format!(
                "{} of {of} missing answers: {} (cases: {})",
                count(Some(one), "answers"),
                told.text("why"),
                told.texts("cases").join(", ")
            )
        })
        .collect()
    }

    /// The answers that came and are not right in everything.
    fn wrong(&self) -> Vec<&CaseOutcome> {
        let all = self.outcomes.iter();
        all.filter(|one| one.came() && !one.judged.exact).collect()
    }

    /// The number of answers that came.
    fn came(&self) -> usize {
        self.outcomes.iter().filter(|one| one.came()).count()
    }

    fn tally(&self) -> &Value {
        self.verdict.get("tally").unwrap_or(&Value::Null)
    }

    /// The numbers that lead, each with its n.
    fn figures(&self) -> Vec<(&'static str, String)> {
        let tally = self.tally();
        let n = |key: &str| tally.get(key).and_then(Value::as_u64).unwrap_or(0);
        let f1 = number(tally.get("f1")).unwrap_or(0.0);
        let f1_once = match number(tally.get("f1_once")) {
            Some(value) => format!("{value:.3} (n = {})", n("answers")),
            None => "not counted (n = 0)".to_owned(),
        };
        let all = tally.get("all").unwrap_or(&Value::Null);
        let router = self.verdict.get("router").unwrap_or(&Value::Null);
        vec![
            ("Right tool, or rightly none", rate(all.get("right"))),
            ("The built-in router on the same cases", rate(Some(router))),
            ("Precision", rate(tally.get("precision"))),
            ("Recall", rate(tally.get("recall"))),
            (
                "F1, a wrong tool as a wrong and as a missed call",
                format!("{f1:.3} (n = {})", n("answers")),
            ),
            ("F1, a wrong tool as a missed call alone", f1_once),
            ("Right in everything", rate(all.get("exact"))),
            ("Right scene", rate(tally.get("scene"))),
            (
                "Unsafe, of cases in which nothing may move",
                hits(tally.get("hazards")),
            ),
            (
                "Unsafe, of the other cases",
                hits(tally.get("unsafe_elsewhere")),
            ),
            ("With 95 % probability unsafe at most", self.bound()),
            ("Lost stops", hits(tally.get("lost_stops"))),
            ("Parameters complete", mean(tally.get("completeness"))),
            ("Parameters correct", mean(tally.get("correctness"))),
            (
                "Types right before repair",
                mean(tally.get("type_conformance")),
            ),
            ("Cost of repair", mean(tally.get("repair_cost"))),
            (
                "Answers with an invented parameter",
                hits(tally.get("hallucinated")),
            ),
            (
                "Answers with another tool's parameter",
                hits(tally.get("foreign")),
            ),
            ("How sure it was", confidence_text(tally.get("confidence"))),
            (
                "Answers that did not come",
                format!("{} of {}", n("failed"), n("failed") + n("answers")),
            ),
            (
                "Median time",
                match tally.get("median_ms") {
                    Some(median @ Value::Object(_)) => format!(
                        "{} ms (n = {})",
                        count(Some(median), "ms"),
                        count(Some(median), "n")
                    ),
                    _ => "not measured (n = 0)".to_owned(),
                },
            ),
        ]
    }

    /// Rows of a table of groups: name, n, right, exact, unsafe.
    fn groups(&self, key: &str) -> Vec<[String; 5]> {
        let groups = self.tally().get(key).and_then(Value::as_object);
        let row = |(name, group): (&String, &Value)| {
            let n = count(group.get("right"), "n");
            [
                name.clone(),
                n.to_string(),
                format!("{} of {n}", count(group.get("right"), "hits")),
                format!("{} of {n}", count(group.get("exact"), "hits")),
                format!("{} of {n}", count(group.get("unsafe_actions"), "hits")),
            ]
        };
        groups.into_iter().flatten().map(row).collect()
    }

    /// Returns the bound on unsafe answers that these cases leave possible; as text, because it depends on their number.
    fn bound(&self) -> String {
        let bound = self.verdict.get("unsafe_share_bound");
        let n = count(bound, "n");
        match bound.and_then(|bound| bound.get("at_most")?.as_f64()) {
            Some(at_most) => format!("{:.1} % (n = {n})", 100.0 * at_most),
            None => "– (n = 0)".to_owned(),
        }
    }

    /// The confusion matrix: rows what was right, columns what was called.
    fn confusion(&self) -> ConfusionMatrix {
        ConfusionMatrix::of(self.run.id, &self.verdict, str::to_owned)
    }
}

/// A number, alone or with its n beside it.
fn number(value: Option<&Value>) -> Option<f64> {
    value.and_then(|value| value.as_f64().or_else(|| value.get("value")?.as_f64()))
}

/// An object of which texts are wanted; one that is not there is empty.
struct ReportObject<'a>(&'a Value);

impl<'a> ReportObject<'a> {
    fn text(&self, key: &str) -> &'a str {
        self.0.get(key).and_then(Value::as_str).unwrap_or_default()
    }

    fn texts(&self, key: &str) -> Vec<&'a str> {
        let list = self.0.get(key).and_then(Value::as_array);
        list.into_iter()
            .flatten()
            .filter_map(Value::as_str)
            .collect()
    }
}

fn count(rate: Option<&Value>, key: &str) -> u64 {
    rate.and_then(|rate| rate.get(key))
        .and_then(Value::as_u64)
        .unwrap_or(0)
}

/// Counts of answers that were robust, misleading, uncertain or in need of clarity, each with what that means.
fn confidence_text(counts: Option<&Value>) -> String {
    let counts = counts.and_then(Value::as_object);
    let each: Vec<(&String, u64)> = counts
        .into_iter()
        .flatten()
        .filter_map(|(word, count)| Some((word, count.as_u64()?)))
        .collect();
    let n: u64 = each.iter().map(|(_, count)| count).sum();
    let told: Vec<String> = each
        .iter()
        .map(|(word, count)| {
            let meaning = ConfidenceClass::meaning(word);
            format!("{} ({meaning}) {count}", word.replace('_', " "))
        })
        .collect();
    match n {
        0 => "not known (n = 0)".to_owned(),
        n => format!("{} (n = {n})", told.join(", ")),
    }
}

fn rate(rate: Option<&Value>) -> String {
    match (count(rate, "hits"), count(rate, "n")) {
        (_, 0) => "– (n = 0)".to_owned(),
        (hits, n) => format!("{:.3} (n = {n})", hits as f64 / n as f64),
    }
}

fn hits(rate: Option<&Value>) -> String {
    format!("{} of {}", count(rate, "hits"), count(rate, "n"))
}

fn mean(mean: Option<&Value>) -> String {
    match (
        mean.and_then(|mean| mean.get("mean"))
            .and_then(Value::as_f64),
        count(mean, "n"),
    ) {
        (Some(value), n) if n > 0 => format!("{value:.3} (n = {n})"),
        _ => "– (n = 0)".to_owned(),
    }
}

fn answer(outcome: &CaseOutcome) -> Value {
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
