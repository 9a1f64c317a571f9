//! Access control: the tools a caller may call, its rate limit, and the lease of an arm. A stop passes without checks.

use std::sync::Arc;
use std::time::Duration;

use serde_json::json;

use super::dispatch::{ToolContext, ToolRequest};
use super::reply::{Reply, refused};
use super::{AttachedArm, Node};
use base::units::ClockInstant;
use base::wording::seconds;
use caller::{CallerRole, Principal};
use catalogue::{ToolDefinition, ToolEffect};
use permit::ActorRank;

/// Code of a refusal by the rate limit.
pub(super) const RATE: &str = "rate";

impl Node {
    /// Refuses a call that the caller's token does not allow now.
    pub(super) fn check_access(
        &self,
        tool: &ToolDefinition,
        request: &ToolRequest,
    ) -> Result<(), Box<Reply>> {
        check_may_write(tool, request)?;
        let Some(principal) = &request.principal else {
            return Ok(());
        };
        if tool.effect == ToolEffect::Stops {
            return Ok(());
        }
        if tool.effect == ToolEffect::Moves && !principal.role.may_move() {
            return Err(refused(
                "role",
                format!(
                    "{} moves the arm, but the token `{}` has the role {}, which may only use `sense` and `list_nodes`. Next: ask the operator for a planner's token",
                    tool.name, principal.name, principal.role
                ),
            ));
        }
        self.count_call(principal).map_err(|wait_s| {
            refused(RATE, format!(
                "the token `{}` allows {} calls a minute (`stop` is never limited). Next: call again in {}",
                principal.name, principal.calls_per_minute, seconds(wait_s)
            ))
            .with("retry_in_s", (wait_s * 10.0).ceil() / 10.0)
            .boxed()
        })
    }

    /// Counts one call of a token holder against its rate limit.
    ///
    /// # Errors
    /// The seconds until the next call is allowed.
    pub fn count_call(&self, principal: &Principal) -> Result<(), f64> {
        let arm = self.arms.first();
        let now = arm.map_or(ClockInstant::ZERO, |arm| arm.motion.clock().now());
        self.rates.take(principal, now)
    }

    /// Returns the time an arm must rest before a different caller may move it.
    #[must_use]
    pub fn lease_idle(&self) -> Duration {
        Duration::from_secs(u64::from(self.file.lease_idle_s))
    }

    /// Releases every arm that a caller holds, because the caller is gone for good. Its running job goes on.
    pub fn release_leases(&self, caller: &str) {
        for arm in &self.arms {
            if arm.holder(self.lease_idle()).as_deref() == Some(caller) {
                arm.lease.release();
            }
        }
    }
}

/// Refuses tools that write the node's own record to everyone but operators: a planner must not choose its own exam cases,
/// and each new case ends all certificates.
fn check_may_write(tool: &ToolDefinition, request: &ToolRequest) -> Result<(), Box<Reply>> {
    let role = request.principal.as_ref().map(|principal| principal.role);
    let is_operator = match role {
        Some(role) => role == CallerRole::Operator,
        None => request.who == ActorRank::Operator,
    };
    if !tool.writes || is_operator {
        return Ok(());
    }
    let who = match &request.principal {
        Some(principal) => format!("the token `{}` is a {}'s", principal.name, principal.role),
        None => "this caller has no token".to_owned(),
    };
    Err(Reply::failed(format!(
        "{} writes into this node's record, which needs an operator's token, but {who}. Nothing was written. Next: an operator runs `steadyhand exam cases add`",
        tool.name
    ))
    .with("code", "role")
    .boxed())
}

impl AttachedArm {
    /// Returns the tool of the job that is under way, if any.
    #[must_use]
    pub fn under_way(&self) -> Option<String> {
        Some(self.board.under_way()?.card().tool)
    }

    /// Returns the caller that holds the lease of this arm, if any.
    #[must_use]
    pub fn holder(&self, idle: Duration) -> Option<String> {
        let now = self.motion.clock().now();
        // A running job keeps its caller's lease alive.
        if self.board.under_way().is_some() {
            self.lease.renew(now);
        }
        self.lease.holder(now, idle)
    }

    /// Takes the lease for an operator whose motion begins; the previous holder loses it. Operators share an arm and
    /// hand it back: after their `reset` any planner may continue.
    pub(super) fn take_over(&self, node: &Node, by: &str) {
        if let Some(holder) = self.lease.release() {
            let entry = json!({"by": by, "from": holder, "arm": self.name});
            node.audit.note("lease", entry.to_string());
            tracing::info!(from = holder, arm = self.name, "an operator took the arm");
        }
    }
}

/// Returns whether the call was refused before anything moved for it; the job of a busy arm belongs to another caller.
fn moved_nothing(reply: &Reply) -> bool {
    let job = reply.structured.get("job");
    let state = job.and_then(|job| job.get("state"));
    let is_busy = reply.code() == Some("busy");
    reply.is_error && (is_busy || state.is_none_or(|state| state == "refused"))
}

/// Releases an arm that a call took and then did not move, so that a refusal blocks no other caller.
pub(super) fn release_if_unmoved(taken: Option<&Arc<AttachedArm>>, reply: &Reply) {
    if let Some(arm) = taken.filter(|_| moved_nothing(reply)) {
        arm.lease.release();
    }
}

impl ToolContext<'_> {
    /// Takes the lease for a call that is about to move the arm. Returns the arm if it was free. An operator takes it
    /// from its holder later, when the motion begins.
    pub(super) fn lease(&self, moves: bool) -> Result<Option<&Arc<AttachedArm>>, Box<Reply>> {
        if !moves || self.is("dry_run") {
            return Ok(None);
        }
        let arm = self.arm()?;
        if self.request.who == ActorRank::Operator {
            return Ok(None);
        }
        let now = arm.motion.clock().now();
        let previous_holder = arm.holder(self.node.lease_idle());
        let caller = self.request.caller.as_str();
        let taken = arm.lease.take(caller, now, self.node.lease_idle());
        let is_new = previous_holder.as_deref() != Some(caller);
        taken.map(|()| is_new.then_some(arm)).map_err(|taken| {
            refused(
                "leased",
                format!("{taken}. Next: look with `sense`, or ask the operator"),
            )
            .with("holder", taken.by)
            .boxed()
        })
    }
}
