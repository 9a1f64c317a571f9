//! Asks a planner behind an OpenAI-compatible endpoint, case by case.
//!
//! Before the first question a canary proves that the endpoint shows the tools to the model at all.

use std::collections::HashMap;
use std::ops::ControlFlow;
use std::time::Duration;

use futures::future::BoxFuture;
use serde_json::{Value, json};

use super::answer_error::AnswerError;
use super::record::ExamRecord;
use super::run::{CaseOutcome, PlannerExam};
use super::trouble::{gone_reason, too_many_failed};
use super::{
    CaseTurn, ExamCase, ExamError, ExamToolCard, ExamToolbox, ExamVerdict, ModelClient,
    PlannerAnswer, PlannerSettings,
};
use base::clock::NodeClock;
use base::wording::cut;

/// The first wait before another try; each further one is twice as long, up to the longest.
const BACK_OFF: Duration = Duration::from_millis(500);
const BACK_OFF_MAX: Duration = Duration::from_secs(8);

/// Longest part of an endpoint's error message that is shown.
const SHOWN_CHARS_MAX: usize = 300;

/// Response of an endpoint.
#[derive(Clone, Debug)]
pub(crate) struct EndpointResponse {
    /// HTTP's status.
    pub(crate) status: u16,
    /// The body, as text.
    pub(crate) body: String,
}

/// Connection to an endpoint. An implementation adds the key to requests, and removes it from everything that comes
/// back.
pub(crate) trait ModelEndpoint: Send + Sync {
    /// Sends a chat completion request.
    fn ask(&self, body: Value) -> BoxFuture<'_, Result<EndpointResponse, AnswerError>>;
}

/// Progress of an exam.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct ExamProgress {
    /// Answers so far, including the failed ones.
    pub(crate) done: usize,
    /// Total number of answers to ask for.
    pub(crate) of: usize,
    /// Right about the tool.
    pub(crate) right: usize,
    /// Unsafe, or a lost stop.
    pub(crate) hazards: usize,
    /// Answers that never came.
    pub(crate) failed: usize,
}

/// An endpoint and the settings for asking it.
struct ExaminedPlanner<'a> {
    endpoint: &'a dyn ModelEndpoint,
    settings: &'a PlannerSettings,
    clock: NodeClock,
    /// Cleared once the endpoint refuses them.
    wants_logprobs: bool,
}

/// One answer, or the reason that there is none.
struct TimedReply {
    output: Result<Value, AnswerError>,
    milliseconds: u64,
    /// Tries after the first.
    retries: u32,
}

impl PlannerExam {
    /// Examines a planner. With `resume`, an interrupted run continues.
    ///
    /// # Errors
    /// Fails if the endpoint cannot be examined at all or the record cannot be written.
    pub(crate) async fn ask(
        &self,
        endpoint: &dyn ModelEndpoint,
        settings: &PlannerSettings,
        record: &mut ExamRecord,
        resume: Option<i64>,
        progress: &(dyn Fn(ExamProgress) + Sync),
    ) -> Result<(i64, ExamVerdict), ExamError> {
        let run = match resume {
            Some(run) => {
                record.reopen(run)?;
                run
            }
            None => record.begin(self, settings)?,
        };
        let mut planner = ExaminedPlanner {
            endpoint,
            settings,
            clock: NodeClock::real(),
            wants_logprobs: true,
        };
        match self.examine(&mut planner, record, run, progress).await {
            Ok(verdict) => {
                record.complete(run, &verdict)?;
                Ok((run, verdict))
            }
            Err(error) => {
                record.fail(run, &error.to_string())?;
                Err(error)
            }
        }
    }

    async fn examine(
        &self,
        planner: &mut ExaminedPlanner<'_>,
        record: &mut ExamRecord,
        run: i64,
        progress: &(dyn Fn(ExamProgress) + Sync),
    ) -> Result<ExamVerdict, ExamError> {
        planner.canary(&self.tools).await?;
        let settings = planner.settings;
        let answered = record
            .outcomes(run)?
            .into_iter()
            .filter(CaseOutcome::is_answered);
        let mut session = PlannerSession {
            earlier: answered
                .map(|one| ((one.case.name.clone(), one.sample), one))
                .collect(),
            outcomes: Vec::new(),
            so_far: ExamProgress::default(),
            record: &mut *record,
            run,
            progress,
        };
        let (mut exam, mut asked_count) = (self.clone(), 0);
        // A round adds a case or ends it, and the budget bounds how many there can be.
        let gone = loop {
            let gone = session.round(&exam, planner, asked_count).await?;
            if gone.is_some() {
                break gone;
            }
            asked_count = exam.cases.len();
            match exam.next_round(settings, &session.outcomes)? {
                ControlFlow::Break(reasons) => {
                    exam.notes.extend(reasons);
                    break None;
                }
                ControlFlow::Continue(more) => {
                    session.record.extend(run, asked_count, &more)?;
                    exam.cases.extend(more);
                }
            }
        };
        let mut outcomes = session.outcomes;
        let mut verdict = exam.verdict(&mut outcomes)?;
        verdict.failed = gone.or_else(|| too_many_failed(&outcomes, settings));
        // Stored once more, because the planner's confidence is known only now.
        record.keep(run, &outcomes)?;
        Ok(verdict)
    }

    async fn outcome(
        &self,
        planner: &mut ExaminedPlanner<'_>,
        case: &ExamCase,
        sample: u32,
    ) -> Result<CaseOutcome, ExamError> {
        let tools = self.tools.for_case(case)?;
        let reply = planner.ask(self.messages(case), &tools, sample).await;
        let mut outcome = match &reply.output {
            Ok(output) => CaseOutcome::of(case, sample, output, &tools),
            Err(error) => CaseOutcome::failed(case, sample, &error.to_string(), &tools),
        };
        outcome.milliseconds = Some(reply.milliseconds);
        outcome.retries = reply.retries;
        Ok(outcome)
    }

    fn messages(&self, case: &ExamCase) -> Value {
        let first = json!({"role": "system", "content": self.preamble});
        let turn = |(turn, number): (&CaseTurn, usize)| message(turn, number);
        let context = case.context.iter().zip(0_usize..).map(turn);
        let asked = json!({"role": "user", "content": case.query});
        let after = case.after.iter().zip(case.context.len()..).map(turn);
        std::iter::once(first)
            .chain(context)
            .chain([asked])
            .chain(after)
            .collect()
    }
}

/// Returns one turn of the earlier conversation as a message; a tool's result answers the call before it.
fn message(turn: &CaseTurn, number: usize) -> Value {
    match (&turn.tool, turn.role.as_str()) {
        (Some(tool), _) => json!({"role": "assistant", "content": turn.content, "tool_calls": [{
            "id": format!("call_{number}"), "type": "function",
            "function": {"name": tool, "arguments": Value::Object(turn.arguments.clone()).to_string()},
        }]}),
        (None, "tool") => {
            let call = format!("call_{}", number.saturating_sub(1));
            json!({"role": "tool", "tool_call_id": call, "content": turn.content})
        }
        (None, role) => json!({"role": role, "content": turn.content}),
    }
}

/// The answers of a run under way.
struct PlannerSession<'a> {
    /// Answers from before the interruption, by case and sample.
    earlier: HashMap<(String, u32), CaseOutcome>,
    outcomes: Vec<CaseOutcome>,
    so_far: ExamProgress,
    record: &'a mut ExamRecord,
    run: i64,
    progress: &'a (dyn Fn(ExamProgress) + Sync),
}

impl PlannerSession<'_> {
    /// Asks every case from number `first` on. Returns the reason if it ended early because the endpoint is gone.
    async fn round(
        &mut self,
        exam: &PlannerExam,
        planner: &mut ExaminedPlanner<'_>,
        first: usize,
    ) -> Result<Option<String>, ExamError> {
        let samples = planner.settings.samples;
        self.so_far.of = exam.cases.len() * usize::try_from(samples).unwrap_or(1);
        for case in exam.cases.iter().skip(first) {
            for sample in 0..samples {
                let outcome = match self.earlier.remove(&(case.name.clone(), sample)) {
                    Some(earlier) => earlier,
                    None => {
                        let outcome = exam.outcome(planner, case, sample).await?;
                        self.record.keep(self.run, std::slice::from_ref(&outcome))?;
                        outcome
                    }
                };
                self.so_far.count(&outcome);
                (self.progress)(self.so_far);
                self.outcomes.push(outcome);
                if let Some(reason) = gone_reason(&self.outcomes) {
                    return Ok(Some(reason));
                }
            }
        }
        Ok(None)
    }
}

impl ExamProgress {
    fn count(&mut self, outcome: &CaseOutcome) {
        self.done += 1;
        if !outcome.is_answered() {
            self.failed += 1;
            return;
        }
        self.right += usize::from(outcome.judged.classification.is_right());
        self.hazards += usize::from(outcome.judged.unsafe_action || outcome.judged.lost_stop);
    }
}

impl ExaminedPlanner<'_> {
    /// Proves that the tools reach the model: either it names a tool that the question does not mention, or its prompt grows.
    async fn canary(&mut self, tools: &ExamToolbox) -> Result<(), ExamError> {
        let secret = format!("canary_{:06x}", (self.settings.seed ^ 0x5eed) & 0x00ff_ffff);
        let card = ExamToolCard {
            description: "Proves that you can see your tools. Minimal call: {}".to_owned(),
            ..ExamToolCard::named(&secret)
        };
        let cards = std::iter::once(card)
            .chain(tools.cards().iter().cloned())
            .collect();
        let question = json!([{"role": "user", "content": "Call the tool whose name begins with \"canary\"."}]);
        let unusable = |error: AnswerError| ExamError::Planner(error.to_string());
        let with_tools = self
            .ask(question.clone(), &ExamToolbox::new(cards), 0)
            .await;
        let with_tools = with_tools.output.map_err(unusable)?;
        if with_tools.to_string().contains(&secret) {
            return Ok(());
        }
        let without_tools = self.ask(question, &ExamToolbox::default(), 0).await;
        let without_tools = without_tools.output.map_err(unusable)?;
        let length = |answer: &Value| answer.get("usage")?.get("prompt_tokens")?.as_u64();
        match (length(&with_tools), length(&without_tools)) {
            (Some(with), Some(without)) if with > without => Ok(()),
            (Some(with), Some(without)) => Err(ExamError::Planner(format!(
                "the endpoint does not pass the tools on to the model: the prompt has {with} tokens with tools and {without} without. Next: use a server and a chat template that pass tools on"
            ))),
            _ => Err(ExamError::Planner(
                "the endpoint probably does not pass the tools on: the model did not name the test tool, and prompt tokens are not counted. Next: use a server and a chat template that pass tools on"
                    .to_owned(),
            )),
        }
    }

    /// Asks, and asks again after an error that another try may mend. A timeout is not retried.
    async fn ask(&mut self, messages: Value, tools: &ExamToolbox, sample: u32) -> TimedReply {
        let began = self.clock.now();
        let (mut wait, mut retries) = (BACK_OFF, 0);
        let output = loop {
            match self.ask_once(&messages, tools, sample).await {
                ControlFlow::Break(output) => break output,
                ControlFlow::Continue(error) if retries == self.settings.retries => {
                    break Err(error);
                }
                ControlFlow::Continue(_) => {}
            }
            retries += 1;
            base::task::pause(wait).await;
            wait = (2 * wait).min(BACK_OFF_MAX);
        };
        let elapsed = self.clock.now().since(began);
        TimedReply {
            output,
            retries,
            milliseconds: u64::try_from(elapsed.as_millis()).unwrap_or(u64::MAX),
        }
    }

    /// Asks once. Breaks with an answer or with an error that another try does not mend.
    async fn ask_once(
        &mut self,
        messages: &Value,
        tools: &ExamToolbox,
        sample: u32,
    ) -> ControlFlow<Result<Value, AnswerError>, AnswerError> {
        let limit = Duration::from_secs(self.settings.time_limit_s.into());
        loop {
            let body = self.request_body(messages, tools, sample);
            let Ok(response) = tokio::time::timeout(limit, self.endpoint.ask(body)).await else {
                let limit_s = limit.as_secs();
                return ControlFlow::Break(Err(AnswerError::Late { limit_s }));
            };
            let response = match response {
                Ok(response) => response,
                Err(error) => return ControlFlow::Continue(error),
            };
            match response.status {
                200 => return ControlFlow::Break(completion(&response.body)),
                400 | 422 if self.wants_logprobs => self.wants_logprobs = false,
                408 | 429 | 500..=599 => return ControlFlow::Continue(status_error(&response)),
                _ => return ControlFlow::Break(Err(status_error(&response))),
            }
        }
    }

    fn request_body(&self, messages: &Value, tools: &ExamToolbox, sample: u32) -> Value {
        let functions = tools.functions();
        // Some endpoints refuse an empty list.
        let has_tools = !functions.is_empty();
        let mut body = json!({
            "model": self.settings.model,
            "messages": messages,
            "temperature": self.settings.temperature,
            "seed": self.settings.seed.wrapping_add(sample.into()),
            "max_tokens": self.settings.max_tokens,
            "stream": false,
            "top_p": self.settings.top_p,
            "tools": has_tools.then_some(functions),
            "tool_choice": has_tools.then_some("auto"),
            "logprobs": self.wants_logprobs.then_some(true),
        });
        if let Some(keys) = body.as_object_mut() {
            keys.retain(|_, value| !value.is_null());
        }
        body
    }
}

/// Text from a model that is not examined, and the number of further tries that it took.
pub(super) struct ModelReply {
    pub(super) text: Result<String, AnswerError>,
    pub(super) retries: u32,
}

impl ModelClient {
    /// Asks one question, without tools.
    pub(super) async fn say(&self, question: &str) -> ModelReply {
        let mut planner = ExaminedPlanner {
            endpoint: &*self.endpoint,
            settings: &self.settings,
            clock: NodeClock::real(),
            wants_logprobs: false,
        };
        let none = ExamToolbox::default();
        let messages = json!([{"role": "user", "content": question}]);
        let reply = planner.ask(messages, &none, 0).await;
        let text = reply.output.map(|answer| {
            let answer_text = PlannerAnswer::of(&answer, &none).text;
            args::without_thoughts(&answer_text).into_owned()
        });
        ModelReply {
            text,
            retries: reply.retries,
        }
    }
}

/// Returns the chat completion in a body, or the reason that it holds none.
fn completion(body: &str) -> Result<Value, AnswerError> {
    let answer: Value = serde_json::from_str(body).map_err(|error| not_json(body, &error))?;
    let choice = answer.get("choices").and_then(|all| all.get(0));
    let has_key = |key: &&str| choice.is_some_and(|one| one["message"].get(key).is_some());
    if !["content", "tool_calls", "function_call"]
        .iter()
        .any(has_key)
    {
        return Err(AnswerError::NoCompletion(cut(body, SHOWN_CHARS_MAX)));
    }
    let ended = choice.and_then(|one| one.get("finish_reason")?.as_str());
    match ended {
        Some(reason @ ("length" | "content_filter" | "error")) if is_empty(&answer) => {
            Err(AnswerError::Ended(reason.to_owned()))
        }
        _ => Ok(answer),
    }
}

/// Returns whether an answer has neither text nor calls.
fn is_empty(answer: &Value) -> bool {
    let answer = PlannerAnswer::of(answer, &ExamToolbox::default());
    answer.calls.is_empty() && args::without_thoughts(&answer.text).trim().is_empty()
}

/// Describes a body that is not JSON.
fn not_json(body: &str, error: &serde_json::Error) -> AnswerError {
    let start = body.trim_start();
    let what = if start.is_empty() {
        "is empty"
    } else if start.starts_with("data:") || start.starts_with("event:") {
        "is a stream of events, which was not requested"
    } else if start.starts_with('<') {
        "is a web page, not JSON"
    } else if error.is_eof() {
        "is incomplete JSON"
    } else {
        "is not JSON"
    };
    AnswerError::NoJson {
        what,
        start: cut(start, SHOWN_CHARS_MAX),
    }
}

fn status_error(response: &EndpointResponse) -> AnswerError {
    let body = cut(&response.body, SHOWN_CHARS_MAX);
    AnswerError::Status(match response.status {
        401 | 403 => format!(
            "the endpoint rejects the key ({}): {body}. Next: put the right key into STEADYHAND_API_KEY",
            response.status
        ),
        404 => format!(
            "the endpoint has no chat completions, or no such model (404): {body}. Next: check --model, and that the address ends in /v1"
        ),
        status => format!("the endpoint answered {status}: {body}"),
    })
}
