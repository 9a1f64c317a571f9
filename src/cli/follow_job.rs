//! Follows a job of a node to its end, with a bar and, for the terminal's own job, with keys that stop it.

use anyhow::{Context, bail};
use base::signals::{SignalKind, SignalListener};

use super::operator_door::OperatorDoor;
use super::pen_prompt::PenPrompt;
use super::stop_keys::StopKeyListener;
use super::{ExitStatus, progress_bar, watch};
use mcp::CallProgress;
use serde::Deserialize as _;
use serde_json::Value;

use node::operator_verb::OperatorVerb;
use node::serve::{self, ShutdownRequests};
use permit::ActorRank;
use tools::{JobProgress, StopCause};

/// Consecutive questions that a node may leave unanswered.
const UNANSWERED_MAX: u32 = 10;

/// End of a followed job.
pub(super) struct FollowedJob {
    pub(super) outcome: JobProgress,
    /// Shutdown requests for the command's own node, if the process was told to end.
    pub(super) shutdown: Option<ShutdownRequests>,
}

/// Follows a job that this terminal began: space, q and Ctrl-C stop the arm, a second Ctrl-C is an emergency stop, and so
/// does the end of the terminal.
///
/// # Errors
/// Fails if the node no longer answers.
pub(super) async fn own_job(
    door: &OperatorDoor,
    job: &str,
    title: &str,
    json: bool,
) -> anyhow::Result<FollowedJob> {
    // The terminal shows the title already.
    let bar = progress_bar::begin("drawing (space, q or Ctrl-C stops)", json);
    let title = format!("{title}: ");
    let mut terminate = SignalListener::listen(SignalKind::Terminate)?;
    let mut hang_up = SignalListener::listen(SignalKind::HangUp)?;
    let mut interrupt = SignalListener::listen(SignalKind::Interrupt)?;
    let mut keys = StopKeyListener::listen(progress_bar::is_shown(json));
    let (mut shutdown, mut stops) = (None, 0_u32);
    let mut questions = JobQuestions::new(door, Some(job));
    let mut pens = PenPrompt::default();
    let outcome = loop {
        tokio::select! {
            progress = questions.next() => {
                let progress = progress?;
                show(&bar, &progress, &title);
                if progress.is_over {
                    break progress;
                }
                if progress.pen.is_some() {
                    pens.poll(door, Some(job), &mut keys).await;
                }
            }
            _ = interrupt.recv() => { stop(door, stops > 0); stops += 1; }
            is_confirmation = keys.any() => {
                if is_confirmation {
                    pens.confirm(door).await;
                } else {
                    stop(door, false);
                    stops += 1;
                }
            }
            _ = hang_up.recv() => stop(door, false),
            _ = terminate.recv() => match door.own() {
                Some(node) => {
                    // Taken before the arms are stopped.
                    shutdown = shutdown.or_else(|| Some(serve::shutdown_requests(node)));
                    node.stop_all(ActorRank::Node, false, &StopCause::new("SIGTERM"));
                }
                None => stop(door, false),
            },
        }
    };
    drop(keys);
    bar.finish_and_clear();
    Ok(FollowedJob { outcome, shutdown })
}

/// What the figures of two arms come to.
type Join = fn(&Value, &Value) -> Option<Value>;

/// Figures of a drawing of several arms.
const FIGURES: [(&str, Join); 8] = [
    ("stroke_count", sum),
    ("dips", sum),
    ("pen_down_mm", sum),
    ("missing_mm", sum),
    ("arm_time_s", larger),
    ("deviation_mm_p95", larger),
    ("deviation_mm_max", larger),
    ("tip_deviation_mm_max", larger),
];

fn sum(one: &Value, other: &Value) -> Option<Value> {
    let counts = one.as_u64().zip(other.as_u64());
    let count = counts.map(|(one, other)| (one + other).into());
    count.or_else(|| Some((one.as_f64()? + other.as_f64()?).into()))
}

fn larger(one: &Value, other: &Value) -> Option<Value> {
    Some(one.as_f64()?.max(other.as_f64()?).into())
}

/// Joins the ends of jobs that drew together to that of the first which did not succeed, with the words of all.
pub(super) fn joined(mut all: Vec<FollowedJob>) -> Option<FollowedJob> {
    let words: Vec<String> = all.iter().map(|one| one.outcome.words.clone()).collect();
    let results: Vec<_> = all.iter().map(|one| one.outcome.result.clone()).collect();
    let shutdown = all.iter_mut().find_map(|one| one.shutdown.take());
    let failed = |one: &FollowedJob| watch::exit_of(&one.outcome) != ExitStatus::Done;
    let worst = all.iter().position(failed).unwrap_or_default();
    let mut outcome = all.into_iter().nth(worst)?.outcome;
    if results.len() > 1 {
        outcome.words = words.join("\n");
        // Any other figure is of one arm, and stands in `arms` alone.
        let is_of_one = |name: &str, it: &Value| it.is_number() || name == "joint_deviation_joint";
        outcome.result.retain(|name, it| !is_of_one(name, it));
        for (name, of_two) in FIGURES {
            let each = results.iter().map(|one| one.get(name).cloned());
            let all = each.reduce(|one, other| of_two(&one?, &other?)).flatten();
            outcome.result.extend(all.map(|all| (name.to_owned(), all)));
        }
        outcome.result.insert("arms".to_owned(), results.into());
    }
    Some(FollowedJob { outcome, shutdown })
}

/// Follows a job that continues without this terminal.
///
/// # Errors
/// Fails if there is no such job or the node no longer answers.
pub(super) async fn watched_job(
    door: &OperatorDoor,
    job: Option<&str>,
    json: bool,
) -> anyhow::Result<JobProgress> {
    let bar = progress_bar::begin("watching the job (Ctrl-C quits; the job continues)", json);
    let mut questions = JobQuestions::new(door, job);
    let outcome = loop {
        let progress = questions.next().await?;
        show(&bar, &progress, "");
        if progress.is_over {
            break progress;
        }
    };
    bar.finish_and_clear();
    Ok(outcome)
}

/// Shows progress in words without the title at their start.
fn show(bar: &indicatif::ProgressBar, progress: &JobProgress, title: &str) {
    let words = progress.words.strip_prefix(title);
    let call_progress = CallProgress {
        done: progress.done,
        total: (progress.of > 0.0).then_some(progress.of),
        message: words.unwrap_or(&progress.words).to_owned(),
    };
    progress_bar::show(bar, &call_progress);
}

/// Tells the node to stop, in the background: a second stop must not wait for the answer to the first.
fn stop(door: &OperatorDoor, is_emergency: bool) {
    if let Some(node) = door.own() {
        let cause = StopCause::new("a key or a signal at the terminal");
        node.stop_all(ActorRank::Operator, is_emergency, &cause);
        return;
    }
    let verb = if is_emergency {
        OperatorVerb::Estop
    } else {
        OperatorVerb::Stop
    };
    let door = door.clone();
    base::task::spawn(async move {
        if let Err(error) = door.ask(verb).await {
            super::terminal_output::note(&format!("the stop did not reach the node: {error:#}"));
        }
    });
}

/// Questions about a job, one after the other.
struct JobQuestions<'d> {
    door: &'d OperatorDoor,
    job: Option<String>,
    is_first: bool,
    unanswered: u32,
}

impl<'d> JobQuestions<'d> {
    fn new(door: &'d OperatorDoor, job: Option<&str>) -> Self {
        Self {
            door,
            job: job.map(str::to_owned),
            is_first: true,
            unanswered: 0,
        }
    }

    /// Returns the progress from the next answered question. Cancel safe.
    async fn next(&mut self) -> anyhow::Result<JobProgress> {
        loop {
            if !std::mem::take(&mut self.is_first) {
                base::task::pause(self.door.poll()).await;
            }
            let job = self.job.clone();
            let reply = match self.door.ask(OperatorVerb::Progress { job }).await {
                Ok(reply) => reply,
                Err(error) if self.unanswered < UNANSWERED_MAX && self.job.is_some() => {
                    self.unanswered += 1;
                    tracing::debug!("{error:#}");
                    continue;
                }
                Err(error) => {
                    let job = self.job.as_deref().unwrap_or("the job");
                    return Err(error.context(format!(
                        "this command no longer follows {job}, which may continue"
                    )));
                }
            };
            self.unanswered = 0;
            if !reply.done {
                bail!("{}", self.refusal(reply.text).await);
            }
            let data = reply.data.context("the node has a different version")?;
            let progress = JobProgress::deserialize(data)?;
            self.job = Some(progress.job.clone());
            return Ok(progress);
        }
    }

    /// Returns the reason for a refusal; if the node has no such job, as `jobs` words it.
    async fn refusal(&self, refusal: String) -> String {
        let Some(id) = self.job.clone() else {
            return refusal;
        };
        let jobs = OperatorVerb::Jobs {
            id: Some(id),
            json: false,
        };
        match self.door.ask(jobs).await {
            Ok(reply) if !reply.done => reply.text,
            _ => refusal,
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a failing test may panic")]
mod tests {
    use super::*;
    use serde_json::json;

    fn ended(result: &Value) -> FollowedJob {
        let outcome = json!({
            "job": "1", "tool": "stroke", "scene": "pair", "state": "reached", "done": 1.0, "of": 1.0,
            "words": "drew", "is_over": true, "result": result,
        });
        FollowedJob {
            outcome: JobProgress::deserialize(outcome).unwrap(),
            shutdown: None,
        }
    }

    /// Dips and the tip's deviation were those of the first arm.
    #[test]
    fn the_figures_of_several_arms_are_those_of_all() {
        let left = json!({"success": true, "dips": 2, "missing_mm": 0.5, "planned_s": 20.0, "drawn_mm": 3.0,
            "tip_deviation_mm_max": 0.4, "joint_deviation_joint": "elbow_flex"});
        let right = json!({"success": true, "dips": 1, "missing_mm": 0.25, "planned_s": 30.0,
            "tip_deviation_mm_max": 0.8});
        let all = joined(vec![ended(&left), ended(&right)])
            .unwrap()
            .outcome
            .result;
        let expected = json!({"success": true, "dips": 3, "missing_mm": 0.75,
            "tip_deviation_mm_max": 0.8, "arms": [left, right]});
        assert_eq!(Value::from(all), expected);
        let one = joined(vec![ended(&left)]).unwrap().outcome.result;
        assert_eq!(Value::from(one), left);
    }
}
