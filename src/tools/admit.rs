//! Who may call what, how often, and who has the arm. A stop is never asked any of it.

use std::time::Duration;

use super::answer::Reply;
use super::dispatch::{Order, Request};
use super::{Node, Seat};
use crate::catalogue::{Effect, Tool};
use crate::permit::Who;
use crate::units::Instant;

impl Node {
    /// Whether the caller's token allows this call now.
    pub(super) fn admits(&self, tool: &Tool, request: &Request) -> Result<(), Box<Reply>> {
        let Some(standing) = &request.standing else {
            return Ok(());
        };
        if tool.effect == Effect::Stops {
            return Ok(());
        }
        if tool.effect == Effect::Moves && !standing.role.may_move() {
            return Err(Reply::failed(format!(
                "{} moves the arm and the token `{}` is a {}'s, which may only look: call sense or list_nodes, or ask the operator for a planner's token; nothing moved",
                tool.name, standing.name, standing.role
            ))
            .with("code", "role")
            .boxed());
        }
        self.rates.take(standing, self.now()).map_err(|wait_s| {
            Reply::failed(format!(
                "the token `{}` allows {} calls a minute; call again in {wait_s:.1} s (stop is never limited); nothing moved",
                standing.name, standing.calls_per_minute
            ))
            .with("code", "rate")
            .with("retry_in_s", (wait_s * 10.0).ceil() / 10.0)
            .boxed()
        })
    }

    /// How long an arm rests before another caller may move it.
    #[must_use]
    pub fn lease_idle(&self) -> Duration {
        Duration::from_secs(u64::from(self.file.lease_idle_s))
    }

    fn now(&self) -> Instant {
        self.seats
            .first()
            .map_or(Instant::ZERO, |seat| seat.motion.clock().now())
    }
}

impl Seat {
    /// Who has this arm, if anybody.
    #[must_use]
    pub fn holder(&self, idle: Duration) -> Option<String> {
        let now = self.motion.clock().now();
        self.keep_lease(now);
        self.lease.holder(now, idle)
    }

    /// A job that goes on keeps the arm for whoever began it.
    fn keep_lease(&self, now: Instant) {
        if self.board.job().is_some_and(|job| !job.is_over()) {
            self.lease.used(now);
        }
    }
}

impl Order<'_> {
    /// Takes the arm for what is about to move it; an operator takes it from whoever has it.
    pub(super) fn lease(&self, effect: Effect) -> Result<(), Box<Reply>> {
        if effect != Effect::Moves || self.is("dry_run") {
            return Ok(());
        }
        let seat = self.seat()?;
        let now = seat.motion.clock().now();
        seat.keep_lease(now);
        if self.who == Who::Operator
            && let Some(before) = seat.lease.release()
        {
            tracing::info!(from = before, arm = seat.name, "an operator took the arm");
        }
        let taken = seat.lease.take(self.caller, now, self.node.lease_idle());
        taken.map_err(|taken| {
            Reply::failed(format!(
                "{taken}; look with sense, or ask the operator; nothing moved"
            ))
            .with("code", "leased")
            .with("holder", taken.by)
            .boxed()
        })
    }
}
