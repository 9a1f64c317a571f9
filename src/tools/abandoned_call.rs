//! Calls whose clients stopped waiting while the arm moved for them: the arm was stopped, and what comes next says for whom.

use std::sync::Mutex;
use std::time::Duration;

use serde_json::{Value, json};

use super::AttachedArm;
use super::RemoteCallWatch;
use super::reply::Reply;
use base::lock::MutexExt;
use base::wording::duration;
use permit::{ActorRank, PermitError, StopLatch};

/// A call that its client cancelled, timed out or hung up on.
#[derive(Clone, Debug)]
pub(super) struct AbandonedCall {
    job: String,
    /// Name and version of the client, if it introduced itself.
    client: Option<String>,
    waited: Duration,
}

/// The last abandoned call since the arm's last motion began.
#[derive(Default)]
pub(super) struct LastAbandoned(Mutex<Option<AbandonedCall>>);

impl LastAbandoned {
    fn set(&self, call: Option<AbandonedCall>) {
        *self.0.locked() = call;
    }

    /// Keeps it where that takes no waiting for a reader, and returns whether it does.
    fn try_set(&self, call: &AbandonedCall) -> bool {
        let kept = self.0.try_locked();
        kept.map(|mut kept| *kept = Some(call.clone())).is_some()
    }

    fn get(&self) -> Option<AbandonedCall> {
        let call = self.0.locked();
        call.clone()
    }

    /// Forgets it: another motion begins.
    pub(super) fn clear(&self) {
        self.set(None);
    }
}

impl AttachedArm {
    /// Stops the arm for a client that stopped waiting, and remembers which.
    pub(super) fn abandon(&self, job: &str, waited: Duration, watch: &RemoteCallWatch) {
        let call = AbandonedCall {
            job: job.to_owned(),
            client: watch.client.clone(),
            waited,
        };
        // The latch and its reason are seen together; a note that would have to wait follows the stop.
        let is_noted = self.abandoned.try_set(&call);
        self.motion.abandon();
        if !is_noted {
            self.abandoned.set(Some(call));
        }
    }

    /// The abandoned call for which the arm stands stopped, if it does.
    pub(super) fn stopped_for(&self) -> Option<AbandonedCall> {
        let is_stopped = self.permits().latched() == Some(StopLatch::Stopped(ActorRank::Planner));
        self.abandoned.get().filter(|_| is_stopped)
    }

    /// Says, of a job that was stopped, that its client had stopped waiting for it.
    pub(super) fn told_who_left(&self, reply: Reply, job: &str) -> Reply {
        let Some(call) = self.abandoned.get().filter(|call| call.job == job) else {
            return reply;
        };
        let reply = Reply {
            text: format!(
                "{}, so the arm was stopped: {}",
                call.to_who_waits(),
                reply.text
            ),
            ..reply
        };
        let text = reply.text.clone();
        reply
            .with("message", text)
            .with("client_left", call.figures())
            .hint("give the client a longer timeout, or let the node answer sooner (`answer_within_s` of its file): the motion then goes on as a job")
    }

    /// Says in a refusal for a stop which client it was for, or that the arm's torque was taken off.
    pub(super) fn told_for_whom(&self, reply: Reply) -> Reply {
        let is_operators =
            self.permits().latched() == Some(StopLatch::Stopped(ActorRank::Operator));
        if is_operators && !self.motion.snapshot().energised {
            let by_operator = "stopped by an operator";
            return reworded(
                reply,
                by_operator,
                &format!("{by_operator} and its torque is off"),
            );
        }
        match self
            .stopped_for()
            .filter(|_| reply.code() == Some("needs_reset"))
        {
            Some(call) => {
                let by_call = PermitError::Stopped(ActorRank::Planner).to_string();
                let by_client = format!("{}; call `reset` first", call.to_others());
                reworded(reply, &by_call, &by_client).with("client_left", call.figures())
            }
            None => reply,
        }
    }
}

/// Returns a reply with other words for some of its own.
fn reworded(reply: Reply, words: &str, others: &str) -> Reply {
    let text = reply.text.replace(words, others);
    Reply {
        text: text.clone(),
        ..reply
    }
    .with("message", text)
}

impl AbandonedCall {
    fn to_who_waits(&self) -> String {
        let named = self.client.as_ref().map(|name| format!(" ({name})"));
        format!(
            "a client that waited for it{} gave up after {}",
            named.unwrap_or_default(),
            duration(self.waited)
        )
    }

    /// Returns it in words for other callers.
    pub(super) fn to_others(&self) -> String {
        let client = match &self.client {
            Some(name) => format!("the client {name}"),
            None => "a client that gave no name".to_owned(),
        };
        format!(
            "it was stopped because {client} stopped waiting for {} after {}",
            self.job,
            duration(self.waited)
        )
    }

    /// Returns it as data.
    pub(super) fn figures(&self) -> Value {
        json!({
            "client": self.client,
            "job": self.job,
            "waited_s": super::stroke::rounded(self.waited.as_secs_f64()),
        })
    }
}
