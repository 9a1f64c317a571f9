//! Calls whose clients stopped waiting while the arm moved for them: the arm was stopped, and later replies say for which client.

use std::time::Duration;

use serde_json::{Value, json};

use super::AttachedArm;
use super::RemoteCallWatch;
use super::reply::Reply;
use super::stop_cause::StopCause;
use base::lock::MutexExt;
use base::wording::{duration, next_apart};
use permit::{ActorRank, PermitError, StopLatch};

/// A call that its client cancelled, timed out or hung up on.
#[derive(Clone, Debug)]
pub(super) struct AbandonedCall {
    job: String,
    /// Name and version of the client, if it introduced itself.
    client: Option<String>,
    waited: Duration,
}

impl AttachedArm {
    /// Stops the arm for a client that stopped waiting, and remembers which.
    pub(super) fn abandon(&self, job: &str, waited: Duration, watch: &RemoteCallWatch) {
        let call = AbandonedCall {
            job: job.to_owned(),
            client: watch.client.clone(),
            waited,
        };
        // Noted before the latch where possible, so that both are seen together; the stop does not wait for the lock.
        let slot = self.abandoned.try_locked();
        let is_noted = slot.map(|mut slot| *slot = Some(call.clone())).is_some();
        self.motion.abandon();
        self.note_cause(StopCause::by(
            format!("the client of {job} stopped waiting"),
            watch.client.as_deref(),
        ));
        if !is_noted {
            *self.abandoned.locked() = Some(call);
        }
    }

    /// Returns the abandoned call for which the arm stands stopped, if any.
    pub(super) fn abandoned_call(&self) -> Option<AbandonedCall> {
        let is_stopped = self.permits().latched() == Some(StopLatch::Stopped(ActorRank::Planner));
        self.abandoned.locked().clone().filter(|_| is_stopped)
    }

    /// Adds to the reply of a stopped job that its client had stopped waiting for it.
    pub(super) fn with_lost_client(&self, reply: Reply, job: &str) -> Reply {
        let last = self.abandoned.locked().clone();
        let Some(call) = last.filter(|call| call.job == job) else {
            return reply;
        };
        let client = call.client_text();
        let message = format!("{client}, so the arm was stopped: {}", reply.text);
        reply
            .reworded(message)
            .with("client_left", call.to_json())
            .hint("give the client a longer timeout, or make the node answer sooner (`answer_within_s` in its file); then the motion continues as a job")
    }

    /// Adds to a refusal because of a stop which client it was for, or that the arm's torque is off.
    pub(super) fn with_stop_reason(&self, reply: Reply) -> Reply {
        let is_operators =
            self.permits().latched() == Some(StopLatch::Stopped(ActorRank::Operator));
        if is_operators && !self.motion.snapshot().energised {
            let by_operator = "stopped by an operator";
            let without_torque = format!("{by_operator} and its torque is off");
            let message = reply.text.replace(by_operator, &without_torque);
            return reply.reworded(message);
        }
        let needs_reset = reply.code() == Some("needs_reset");
        let Some(call) = self.abandoned_call().filter(|_| needs_reset) else {
            return reply;
        };
        let denied = PermitError::Stopped(ActorRank::Planner).to_string();
        let by_call = next_apart(&denied).0;
        let message = reply.text.replace(by_call, &call.describe_for_others());
        reply
            .reworded(message)
            .with_value("client_left", call.to_json())
    }
}

impl AbandonedCall {
    fn client_text(&self) -> String {
        let client_name = self.client.as_ref().map(|name| format!(" ({name})"));
        format!(
            "the client{} stopped waiting after {}",
            client_name.unwrap_or_default(),
            duration(self.waited)
        )
    }

    /// Describes the call for other callers.
    pub(super) fn describe_for_others(&self) -> String {
        let client = match &self.client {
            Some(name) => format!("the client {name}"),
            None => "a client without a name".to_owned(),
        };
        format!(
            "the arm was stopped, because {client} stopped waiting for {} after {}",
            self.job,
            duration(self.waited)
        )
    }

    /// Returns the call as data.
    pub(super) fn to_json(&self) -> Value {
        json!({
            "client": self.client,
            "job": self.job,
            "waited_s": super::stroke::rounded(self.waited.as_secs_f64()),
        })
    }
}
