//! What made an arm stop, and for whom: told by `sense`, the log and the audit log.

use std::fmt;

use serde_json::{Value, json};

use super::AttachedArm;
use base::lock::MutexExt;
use permit::{ActorRank, OrderVerb, StopLatch};

/// What made an arm stop, and who called for it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StopCause {
    /// What it was, such as `stop` or `SIGINT`.
    pub cause: String,
    /// The caller; `None` if no call asked for it.
    pub caller: Option<String>,
}

impl StopCause {
    /// Returns a cause that no call asked for.
    #[must_use]
    pub fn new(cause: impl Into<String>) -> Self {
        Self {
            cause: cause.into(),
            caller: None,
        }
    }

    /// Returns a cause that a caller asked for, if it is known.
    #[must_use]
    pub fn by<'a>(cause: impl Into<String>, caller: impl Into<Option<&'a str>>) -> Self {
        Self {
            caller: caller.into().map(str::to_owned),
            ..Self::new(cause)
        }
    }

    /// Returns it as data.
    #[must_use]
    pub fn to_json(&self) -> Value {
        json!({ "cause": self.cause, "caller": self.caller })
    }
}

impl fmt::Display for StopCause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.caller {
            Some(caller) => write!(f, "{}, {caller}", self.cause),
            None => f.write_str(&self.cause),
        }
    }
}

impl AttachedArm {
    /// Asks the arm to stop, and remembers why. What an operator called for is an order that outlives this process; a signal or a
    /// key at the node's own terminal ends the process as well, and only its emergency stop outlives that. Waits for no disk.
    pub fn stop(&self, by: ActorRank, emergency: bool, cause: &StopCause) -> u64 {
        let ticket = self.motion.stop(by, emergency);
        self.note_cause(cause.clone());
        let order = match (by, emergency) {
            (_, true) => Some(OrderVerb::EmergencyStop),
            (ActorRank::Operator, false) => Some(OrderVerb::Stop),
            (ActorRank::Planner | ActorRank::Node, false) => None,
        };
        if let (Some(verb), Some(caller)) = (order, &cause.caller) {
            self.permits().give_order(verb, caller);
        }
        ticket
    }

    /// Asks the arm to stop because the node itself has a reason.
    pub(super) fn stop_for_node(&self, cause: &str) {
        self.stop(ActorRank::Node, false, &StopCause::new(cause));
    }

    /// Remembers why the arm was told to stop.
    pub(super) fn note_cause(&self, cause: StopCause) {
        *self.stop_cause.locked() = Some(cause);
    }

    /// Adds who called for a stop that took effect before its call was read.
    pub(super) fn name_stop_caller(&self, caller: &str) {
        if let Some(cause) = &mut *self.stop_cause.locked() {
            cause.caller.get_or_insert_with(|| caller.to_owned());
        }
    }

    /// Returns why the arm was told to stop last.
    pub(super) fn last_stop_cause(&self) -> Option<StopCause> {
        self.stop_cause.locked().clone()
    }

    /// Returns why the arm stands stopped; `None` if it does not, or was stopped before this process began.
    #[must_use]
    pub fn stopped_by(&self) -> Option<StopCause> {
        let latched = self.permits().latched();
        let is_stopped = matches!(
            latched,
            Some(StopLatch::Stopped(_) | StopLatch::Emergency(_))
        );
        self.last_stop_cause().filter(|_| is_stopped)
    }
}
