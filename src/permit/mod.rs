//! Scenes that a person has enabled, and until when; and latched stops, with who latched them.
//!
//! A planner's default is not an operator's consent: motion needs a [`MotionPermit`], and only what an
//! operator enabled gives one. Enabling names a revision, so that a design swapped afterwards is
//! not enabled.

mod arm_interlock;
mod estop_file;
mod order_file;
mod order_writer;
mod pen_change;
mod port_records;
mod standing_orders;
#[cfg(test)]
mod tests;

use std::ops::RangeInclusive;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, TryLockError};
use std::time::Duration;

use serde::Serialize;

use base::clock::calendar_ms;
use base::lock::MutexExt;
use base::units::ClockInstant;
use base::wording::with_next;
use scene::{AxisAlignedBox, Revision, Scene};

pub use arm_interlock::{ArmInterlock, ObstructionCheck};
pub use estop_file::split_unmarked_estop;
pub use order_file::NumberedOrders;
use order_writer::OrderWriter;
pub use order_writer::{OrderFiles, OrderKeepingError, OrderLog, RecordedOrders};
pub use port_records::PortRecords;
pub use standing_orders::{OrderVerb, StandingOrder, StandingOrders};

/// Seconds for which a person can enable motion: up to 7 days.
pub const ENABLED_S: RangeInclusive<u64> = 1..=7 * 24 * 3600;

/// The permissions to move one arm, shared by all threads.
#[derive(Debug, Default)]
pub struct PermitRegistry {
    state: Mutex<PermitState>,
    /// [`PermitState::withdrawals`], for readers that must not wait.
    withdrawn: AtomicU64,
    /// [`PermitState::emergencies`], for readers that must not wait.
    emergencies: AtomicU64,
    /// Number of orders that an operator has given. Changed under the lock of the state.
    orders_given: AtomicU64,
    /// The writer that makes an operator's orders outlive this process.
    order_writer: OnceLock<OrderWriter>,
    /// The interlock with the node's other arms.
    interlock: OnceLock<ArmInterlock>,
}

#[derive(Debug, Default)]
struct PermitState {
    everything: bool,
    grants: Vec<SceneGrant>,
    latch: Option<StopLatch>,
    /// Number of times that permission was withdrawn: by a latch, or by `disable`.
    withdrawals: u64,
    /// Number of emergency stops latched.
    emergencies: u64,
    /// Reason why nothing may move: a person changes the pen.
    pen_change: Option<String>,
    /// What an operator said that stands until an operator ends it.
    orders: NumberedOrders,
    /// The box, in the arm's base frame, that no motion leaves.
    zone: Option<AxisAlignedBox>,
}

/// A scene that a person has enabled.
#[derive(Clone, Debug, PartialEq)]
pub struct SceneGrant {
    /// The scene's name.
    pub scene: String,
    /// The overlay that was laid over it.
    pub overlay: Option<String>,
    /// The drawing in place of its own design, by name.
    pub drawing: Option<String>,
    /// Its revision when it was enabled.
    pub revision: Revision,
    /// Hash of what it was made from then, without its design.
    pub setting: Revision,
    /// End of the permission; `None` lasts as long as the node runs.
    pub until: Option<ClockInstant>,
}

/// The actor; one with more rights is greater.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum ActorRank {
    /// The node itself.
    Node,
    /// A language model or another program, by a tool call.
    Planner,
    /// A person at the node.
    Operator,
}

/// A stop that lasts until it is ended explicitly.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StopLatch {
    /// An ordinary stop: `reset` ends it, and only an operator's if an operator stopped.
    Stopped(ActorRank),
    /// An emergency stop: only an operator's `clear` ends it.
    Emergency(ActorRank),
    /// Something broke; the text says what. `reset` tries again.
    Fault(String),
    /// A servo became too hot on the way; the text says which. `reset` tries again, and the node
    /// itself may bring the arm to rest.
    Hot(String),
}

/// Permission to move in one scene. Created only by [`PermitRegistry::ask`] and [`PermitRegistry::ask_reset`].
#[derive(Clone, Debug)]
pub struct MotionPermit {
    revision: Revision,
    until: Option<ClockInstant>,
    /// Number of withdrawals when it was given.
    withdrawals: u64,
    /// `true` if the node gave it to itself.
    is_nodes_own: bool,
    /// The box that the motion does not leave.
    zone: Option<AxisAlignedBox>,
}

/// The reason why there is no permission.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PermitError {
    /// No operator has enabled this scene as it is now.
    #[error(
        "motion is not enabled for scene `{scene}` (revision {revision}). Enabled now: {enabled}. Next: an operator enables it with `steadyhand {command}`"
    )]
    NeedsEnabling {
        /// The scene, with its overlay.
        scene: String,
        /// Its revision.
        revision: String,
        /// The command of [`enabling_command`].
        command: String,
        /// The scenes that are enabled.
        enabled: String,
    },
    /// No operator has enabled this drawing in place of a scene's own design.
    #[error(
        "motion is not enabled for {scene} (revision {revision}). Enabled now: {enabled}. Next: an operator runs `steadyhand draw`, which enables it"
    )]
    DrawingNeedsEnabling {
        /// The drawing and the scene.
        scene: String,
        /// Their revision.
        revision: String,
        /// The scenes that are enabled.
        enabled: String,
    },
    /// The arm was stopped and has not been reset.
    #[error("the arm was stopped by {by}. Next: {next}", by = actor_text(*.0), next = reset_by(*.0))]
    Stopped(ActorRank),
    /// An ordinary stop that a planner may not end.
    #[error(
        "the arm was stopped by an operator, so only an operator can reset it. Next: an operator runs `steadyhand reset`"
    )]
    OperatorMustReset,
    /// An emergency stop stands.
    #[error("an emergency stop is latched. Next: an operator ends it with `steadyhand clear`")]
    Emergency,
    /// An operator holds the arm, and has not said that it may go on.
    #[error(
        "the arm is held by an operator's order ({0}). Next: an operator continues with `steadyhand continue`"
    )]
    Held(String),
    /// A fault that has not been reset.
    #[error("{}", with_next(format_args!("the arm has a fault: {}", .0), "remove the cause, then call `reset`"))]
    Fault(String),
    /// A person changes the pen; the text says which pen is awaited, and how it is confirmed.
    #[error("a person is changing the pen, so nothing may move: {0}")]
    PenChange(String),
    /// An operator has said something since the word to enable arrived.
    #[error("another order came first and is in force. Next: if you still want yours, repeat it")]
    OrderedMeanwhile,
    /// Another arm of the node can be touched, and is in the way; the text names it.
    #[error("{0}")]
    OtherArm(String),
}

/// Returns the command that enables a scene by its name, without the program's.
#[must_use]
pub fn enabling_command(scene: &str, overlay: Option<&str>) -> String {
    let overlay = overlay.map(|overlay| format!(" --meta {overlay}"));
    format!(
        "enable --scene {scene}{} --for 30m",
        overlay.unwrap_or_default()
    )
}

fn actor_text(actor: ActorRank) -> &'static str {
    match actor {
        ActorRank::Planner => "a tool call",
        ActorRank::Operator => "an operator",
        ActorRank::Node => "the node",
    }
}

/// Says who has to reset an arm that was stopped by `by`.
fn reset_by(by: ActorRank) -> &'static str {
    match by {
        ActorRank::Operator => "an operator resets it with `steadyhand reset`",
        ActorRank::Planner | ActorRank::Node => "call `reset`",
    }
}

impl StopLatch {
    /// Returns its severity, ranked by who has to end it. A latch is never replaced by a lesser one.
    const fn severity(&self) -> u8 {
        match self {
            Self::Stopped(ActorRank::Node) => 0,
            Self::Hot(_) => 1,
            // A caller that stops a hot arm does not want it to be parked.
            Self::Stopped(ActorRank::Planner) => 2,
            Self::Fault(_) => 3,
            Self::Stopped(ActorRank::Operator) => 4,
            Self::Emergency(_) => 5,
        }
    }
}

impl MotionPermit {
    /// Returns whether it covers a scene at this moment.
    #[must_use]
    pub fn covers(&self, scene: &Scene, now: ClockInstant) -> bool {
        self.revision == scene.revision && self.until.is_none_or(|until| now < until)
    }

    /// Returns whether the node gave it to itself, to bring the arm to rest: torque is not switched on
    /// for it, and a fault from before remains after it.
    #[must_use]
    pub fn is_nodes_own(&self) -> bool {
        self.is_nodes_own
    }

    /// Returns the scene as far as the arm may go in it: within its zone, where it has one.
    #[must_use]
    pub fn narrowed(&self, scene: Arc<Scene>) -> Arc<Scene> {
        narrowed(scene, self.zone.as_ref())
    }
}

fn narrowed(scene: Arc<Scene>, zone: Option<&AxisAlignedBox>) -> Arc<Scene> {
    match zone {
        Some(zone) => Arc::new(scene.within(zone)),
        None => scene,
    }
}

impl PermitRegistry {
    /// Creates a registry in which nothing is enabled, for hardware.
    #[must_use]
    pub fn none() -> Self {
        Self::default()
    }

    /// Creates a registry in which everything is enabled, for the embedded simulator.
    #[must_use]
    pub fn everything() -> Self {
        let state = PermitState {
            everything: true,
            ..PermitState::default()
        };
        Self {
            state: Mutex::new(state),
            ..Self::default()
        }
    }

    /// Sets the interlock with the node's other arms, once: from now on this arm is enabled only while no arm that it can
    /// touch is in the way. If there is such an arm, what was enabled without an operator, as on an embedded simulator, is withdrawn.
    pub fn interlock(&self, interlock: ArmInterlock) {
        let has_neighbours = interlock.has_neighbours();
        self.state().zone = interlock.zone();
        if self.interlock.set(interlock).is_ok() && has_neighbours {
            self.disable();
        }
    }

    /// Returns a scene as far as the arm may go in it, for a preview.
    #[must_use]
    pub fn narrowed(&self, scene: Arc<Scene>) -> Arc<Scene> {
        let zone = self.state().zone;
        narrowed(scene, zone.as_ref())
    }

    /// Enables a scene as it is now, in place of an earlier grant for the same scene. `orders_seen` is the number of orders that
    /// had been given when the word to enable arrived: it ends no later one.
    ///
    /// # Errors
    /// [`PermitError::OtherArm`] names the arm of the same node that is in the way; [`PermitError::OrderedMeanwhile`].
    pub fn enable(
        &self,
        scene: &Scene,
        now: ClockInstant,
        duration: Option<Duration>,
        orders_seen: u64,
    ) -> Result<(), PermitError> {
        // Held until the grant is there, so that no other arm of the node is enabled meanwhile.
        let interlock = self.interlock.get();
        let _guard = interlock.map(|arms| arms.lock_for(scene)).transpose()?;
        let grant = SceneGrant {
            scene: scene.name.clone(),
            overlay: scene.overlay.clone(),
            drawing: scene.drawing.clone(),
            revision: scene.revision,
            setting: scene.setting,
            until: duration.map(|duration| now.after(duration)),
        };
        let mut state = self.state();
        if self.orders_given() != orders_seen {
            return Err(PermitError::OrderedMeanwhile);
        }
        state.grants.retain(|old| !old.is_for_same(&grant));
        state.grants.push(grant);
        state.end_order(OrderVerb::Disable);
        drop(state);
        self.wake_order_writer();
        Ok(())
    }

    /// Withdraws everything that was enabled, on a simulator too.
    pub fn disable(&self) {
        let mut state = self.state();
        state.everything = false;
        state.grants.clear();
        self.withdraw(&mut state);
    }

    /// Carries out an operator's order, which stands until an operator ends it, in later processes as well. Never waits for the
    /// disk: [`Self::orders_are_kept`] does.
    pub fn give_order(&self, verb: OrderVerb, by: &str) {
        match verb {
            OrderVerb::Stop => self.latch(StopLatch::Stopped(ActorRank::Operator)),
            OrderVerb::EmergencyStop if self.is_emergency() => {}
            OrderVerb::EmergencyStop => self.latch(StopLatch::Emergency(ActorRank::Operator)),
            OrderVerb::Disable => self.disable(),
            OrderVerb::Hold => {}
        }
        let order = StandingOrder::new(verb, by, calendar_ms());
        let mut state = self.state();
        state.orders.orders.give(order);
        state.orders.number += 1;
        self.orders_given.fetch_add(1, Ordering::SeqCst);
        drop(state);
        self.wake_order_writer();
    }

    /// Holds the arm although nothing moves yet: what was about to move does not begin.
    pub fn hold_before_motion(&self, by: &str) {
        self.withdraw(&mut self.state());
        self.give_order(OrderVerb::Hold, by);
    }

    /// Ends a hold, on an operator's word; returns whether there was one. `orders_seen` is as in [`Self::enable`].
    pub fn end_hold(&self, orders_seen: u64) -> bool {
        let mut state = self.state();
        let is_ended = self.orders_given() == orders_seen && state.end_order(OrderVerb::Hold);
        drop(state);
        self.wake_order_writer();
        is_ended
    }

    /// Returns how many orders an operator has given. Waits for no lock.
    #[must_use]
    pub fn orders_given(&self) -> u64 {
        self.orders_given.load(Ordering::SeqCst)
    }

    /// Returns the operator's orders that stand.
    #[must_use]
    pub fn orders(&self) -> StandingOrders {
        self.state().orders.orders.clone()
    }

    /// Returns whether an emergency stop stands.
    #[must_use]
    pub fn is_emergency(&self) -> bool {
        matches!(self.state().latch, Some(StopLatch::Emergency(_)))
    }

    fn wake_order_writer(&self) {
        if let Some(writer) = self.order_writer.get() {
            writer.wake();
        }
    }

    /// Describes the scenes enabled at this moment.
    #[must_use]
    pub fn enabled_text(&self, now: ClockInstant) -> String {
        self.state().enabled(now)
    }

    /// Describes the scenes enabled at this moment, each with the minutes that are left of it.
    #[must_use]
    pub fn enabled_for_text(&self, now: ClockInstant) -> String {
        let state = self.state();
        if state.everything {
            return "everything".to_owned();
        }
        let grants = state.current_grants(now);
        let names: Vec<String> = grants.map(|grant| grant.title_for(now)).collect();
        match names.is_empty() {
            true => "nothing".to_owned(),
            false => names.join(", "),
        }
    }

    /// Returns whether anything may move at this moment.
    #[must_use]
    pub fn any_enabled(&self, now: ClockInstant) -> bool {
        let state = self.state();
        state.everything || state.current_grants(now).next().is_some()
    }

    /// Returns whether a scene is the only one enabled, so that even a garbled request can mean no other.
    #[must_use]
    pub fn is_only_enabled(&self, scene: &str, now: ClockInstant) -> bool {
        let state = self.state();
        let mut grants = state.current_grants(now);
        let is_match = |grant: &SceneGrant| grant.scene == scene && grant.drawing.is_none();
        !state.everything && grants.next().is_some_and(is_match) && grants.next().is_none()
    }

    /// Returns whether motion is enabled in a scene, with any drawing on it, and in no other.
    #[must_use]
    pub fn is_enabled_only_in(&self, scene: &str, now: ClockInstant) -> bool {
        let state = self.state();
        let mut grants = state.current_grants(now).peekable();
        !state.everything && grants.peek().is_some() && grants.all(|grant| grant.scene == scene)
    }

    /// Returns permission to move in a scene.
    ///
    /// # Errors
    /// [`PermitError`] says what an operator or caller must do first.
    pub fn ask(&self, scene: &Scene, now: ClockInstant) -> Result<MotionPermit, PermitError> {
        self.check_scene(scene)?;
        let state = self.state();
        state.check_no_pen_change()?;
        state.permit(scene, now)
    }

    /// Gives an operator permission to resume what is held. A drawing in place of a scene's own design is resumed if that scene
    /// is enabled and unchanged: both are the operator's word, and what goes on is what was held.
    ///
    /// # Errors
    /// As [`PermitRegistry::ask`].
    pub fn ask_resume(
        &self,
        scene: &Scene,
        now: ClockInstant,
    ) -> Result<MotionPermit, PermitError> {
        self.check_scene(scene)?;
        let state = self.state();
        state.check_no_pen_change()?;
        state.check_no_latch()?;
        state.grant_in_scene(scene, now)
    }

    /// Returns whether a scene of this name, or a drawing in it, is enabled: an operator's reset then needs nothing more.
    #[must_use]
    pub fn is_enabled_by_name(
        &self,
        scene: &str,
        overlay: Option<&str>,
        now: ClockInstant,
    ) -> bool {
        let state = self.state();
        state.everything
            || state
                .current_grants(now)
                .any(|grant| grant.is_named(scene, overlay))
    }

    /// Refuses a scene that the interlock with other arms does not allow.
    fn check_scene(&self, scene: &Scene) -> Result<(), PermitError> {
        let interlock = self.interlock.get();
        interlock.map_or(Ok(()), |interlock| interlock.check_scene(scene))
    }

    /// Gives permission to move after an ordinary stop or a fault, in the scene last moved in. The node
    /// itself gets none after an operator's stop, nor after a fault other than heat. After a drawing in
    /// place of a scene's own design it is enough that this scene is enabled and unchanged. If the scene has
    /// changed since, an operator gets permission by its name: only the old scene says which way is up,
    /// and it can no longer be enabled.
    ///
    /// # Errors
    /// As [`PermitRegistry::ask`]; [`PermitError::OperatorMustReset`] where a planner may not.
    pub fn ask_reset(
        &self,
        scene: &Scene,
        by: ActorRank,
        now: ClockInstant,
    ) -> Result<MotionPermit, PermitError> {
        let state = self.state();
        state.check_no_pen_change()?;
        if by != ActorRank::Operator {
            state.check_not_held()?;
        }
        match &state.latch {
            Some(StopLatch::Emergency(_)) => Err(PermitError::Emergency),
            Some(StopLatch::Stopped(ActorRank::Operator)) if by != ActorRank::Operator => {
                Err(PermitError::OperatorMustReset)
            }
            Some(StopLatch::Fault(reason)) if by == ActorRank::Node => {
                Err(PermitError::Fault(reason.clone()))
            }
            _ => Ok(MotionPermit {
                is_nodes_own: by == ActorRank::Node,
                ..state.reset_permit(scene, by, now)?
            }),
        }
    }

    /// Returns whether nothing was latched or withdrawn since a permit was given. A motion checks this when
    /// it begins, because its permit may be older than a stop, and in each tick; so this takes no lock.
    #[must_use]
    pub fn is_current(&self, permit: &MotionPermit) -> bool {
        self.withdrawn.load(Ordering::SeqCst) == permit.withdrawals
    }

    /// Returns how often a latch or an operator has withdrawn permits.
    #[must_use]
    pub fn withdrawals(&self) -> u64 {
        self.withdrawn.load(Ordering::SeqCst)
    }

    /// Returns how many emergency stops were latched. Waits for no lock.
    #[must_use]
    pub fn emergencies(&self) -> u64 {
        self.emergencies.load(Ordering::SeqCst)
    }

    fn withdraw(&self, state: &mut PermitState) {
        state.withdrawals += 1;
        self.withdrawn.store(state.withdrawals, Ordering::SeqCst);
    }

    /// Latches a stop and withdraws every permit given before. A lesser latch never replaces a graver
    /// one: a fault must not let a planner reset what an operator stopped.
    pub fn latch(&self, new: StopLatch) {
        self.latch_in(self.state(), new);
    }

    /// Latches like [`Self::latch`], unless another thread holds the lock now; returns whether it did. Never
    /// waits.
    pub fn try_latch(&self, new: StopLatch) -> bool {
        let state = match self.state.try_lock() {
            Ok(state) => state,
            Err(TryLockError::Poisoned(poisoned)) => poisoned.into_inner(),
            Err(TryLockError::WouldBlock) => return false,
        };
        self.latch_in(state, new);
        true
    }

    fn latch_in(&self, mut state: MutexGuard<'_, PermitState>, new: StopLatch) {
        let is_emergency = matches!(new, StopLatch::Emergency(_));
        self.withdraw(&mut state);
        if is_emergency {
            state.emergencies += 1;
            self.emergencies.store(state.emergencies, Ordering::SeqCst);
            if state.orders.orders.get(OrderVerb::EmergencyStop).is_none() {
                let order =
                    StandingOrder::new(OrderVerb::EmergencyStop, "an operator", calendar_ms());
                state.orders.orders.give(order);
            }
            state.orders.number += 1;
            self.orders_given.fetch_add(1, Ordering::SeqCst);
        }
        let is_replaceable = |old: &StopLatch| old.severity() <= new.severity();
        if state.latch.as_ref().is_none_or(is_replaceable) {
            state.latch = Some(new);
        }
        drop(state);
        if is_emergency {
            self.wake_order_writer();
        }
    }

    /// Runs `then` while the lock on the latch is held, as if a reader hung.
    pub fn while_looked_at(&self, then: impl FnOnce()) {
        let state = self.state();
        then();
        drop(state);
    }

    /// Returns the current latch.
    #[must_use]
    pub fn latched(&self) -> Option<StopLatch> {
        self.state().latch.clone()
    }

    /// Ends an ordinary stop or a fault, once the arm has been reset with this permit. Returns `false`
    /// and ends nothing if something was latched since the permit was given.
    pub fn unlatch(&self, reset: &MotionPermit) -> bool {
        let mut state = self.state();
        let is_latest = state.withdrawals == reset.withdrawals
            && !matches!(state.latch, Some(StopLatch::Emergency(_)));
        if is_latest {
            state.latch = None;
            state.end_order(OrderVerb::Stop);
        }
        drop(state);
        self.wake_order_writer();
        is_latest
    }

    /// Locks the state. A thread that panicked while holding the lock has only replaced whole values.
    fn state(&self) -> MutexGuard<'_, PermitState> {
        self.state.locked()
    }
}

impl PermitState {
    /// Ends an order of this kind; returns whether there was one.
    fn end_order(&mut self, verb: OrderVerb) -> bool {
        let is_ended = self.orders.orders.end(verb);
        self.orders.number += u64::from(is_ended);
        is_ended
    }

    /// Returns permission if nothing is latched.
    fn permit(&self, scene: &Scene, now: ClockInstant) -> Result<MotionPermit, PermitError> {
        self.check_no_latch()?;
        self.check_not_held()?;
        self.grant(scene, now)
    }

    /// Refuses while an operator holds the arm.
    fn check_not_held(&self) -> Result<(), PermitError> {
        match self.orders.orders.get(OrderVerb::Hold) {
            Some(order) => Err(PermitError::Held(order.by.clone())),
            None => Ok(()),
        }
    }

    fn check_no_latch(&self) -> Result<(), PermitError> {
        match &self.latch {
            None => Ok(()),
            Some(StopLatch::Stopped(by)) => Err(PermitError::Stopped(*by)),
            Some(StopLatch::Emergency(_)) => Err(PermitError::Emergency),
            Some(StopLatch::Fault(reason) | StopLatch::Hot(reason)) => {
                Err(PermitError::Fault(reason.clone()))
            }
        }
    }

    fn grant(&self, scene: &Scene, now: ClockInstant) -> Result<MotionPermit, PermitError> {
        let given = self.grant_where(scene, now, |grant| grant.revision == scene.revision);
        given.ok_or_else(|| self.not_enabled(scene, now))
    }

    /// Gives leave that is not for the drawing itself, but for the scene that it is in.
    fn grant_in_scene(
        &self,
        scene: &Scene,
        now: ClockInstant,
    ) -> Result<MotionPermit, PermitError> {
        let exact = self.grant_where(scene, now, |grant| grant.revision == scene.revision);
        let given =
            exact.or_else(|| self.grant_where(scene, now, |grant| grant.is_for_scene_of(scene)));
        given.ok_or_else(|| self.scene_not_enabled(scene, scene.title(), now))
    }

    fn reset_permit(
        &self,
        scene: &Scene,
        by: ActorRank,
        now: ClockInstant,
    ) -> Result<MotionPermit, PermitError> {
        let is_named = |grant: &SceneGrant| grant.is_named(&scene.name, scene.overlay.as_deref());
        self.grant_in_scene(scene, now).or_else(|denied| {
            let by_name = match by {
                ActorRank::Operator => self.grant_where(scene, now, is_named),
                ActorRank::Planner | ActorRank::Node => None,
            };
            by_name.ok_or(denied)
        })
    }

    fn grant_where(
        &self,
        scene: &Scene,
        now: ClockInstant,
        is_match: impl Fn(&SceneGrant) -> bool,
    ) -> Option<MotionPermit> {
        let until = match self.everything {
            true => None,
            false => {
                self.current_grants(now)
                    .find(|grant| is_match(grant))?
                    .until
            }
        };
        Some(MotionPermit {
            revision: scene.revision,
            until,
            withdrawals: self.withdrawals,
            is_nodes_own: false,
            zone: self.zone,
        })
    }

    fn not_enabled(&self, scene: &Scene, now: ClockInstant) -> PermitError {
        // Enabling a canvas enables everything that is drawn on it, by the scene's name.
        if scene.canvas.is_some() {
            return self.scene_not_enabled(scene, scene.name.clone(), now);
        }
        match scene.drawing.is_some() {
            true => PermitError::DrawingNeedsEnabling {
                scene: scene.title(),
                revision: scene.revision.to_string(),
                enabled: self.enabled(now),
            },
            false => self.scene_not_enabled(scene, scene.title(), now),
        }
    }

    fn scene_not_enabled(&self, scene: &Scene, title: String, now: ClockInstant) -> PermitError {
        PermitError::NeedsEnabling {
            scene: title,
            revision: scene.revision.to_string(),
            command: enabling_command(&scene.name, scene.overlay.as_deref()),
            enabled: self.enabled(now),
        }
    }

    fn enabled(&self, now: ClockInstant) -> String {
        if self.everything {
            return "everything (embedded simulator)".to_owned();
        }
        let names: Vec<String> = self.current_grants(now).map(SceneGrant::title).collect();
        if names.is_empty() {
            "nothing".to_owned()
        } else {
            names.join(", ")
        }
    }

    fn current_grants(&self, now: ClockInstant) -> impl Iterator<Item = &SceneGrant> {
        let grants = self.grants.iter();
        grants.filter(move |grant| grant.until.is_none_or(|until| now < until))
    }
}

impl SceneGrant {
    fn title(&self) -> String {
        let (overlay, drawing) = (self.overlay.as_deref(), self.drawing.as_deref());
        scene::scene_title(&self.scene, overlay, drawing)
    }

    fn title_for(&self, now: ClockInstant) -> String {
        let title = self.title();
        match self.until {
            None => title,
            Some(until) => {
                let minutes = (until.seconds_since(now) / 60.0).ceil();
                format!("{title}, {minutes:.0} min left")
            }
        }
    }

    fn is_named(&self, scene: &str, overlay: Option<&str>) -> bool {
        self.scene == scene && self.overlay.as_deref() == overlay
    }

    /// Returns whether it is for the scene, as it was, in which another drawing comes in place of the scene's own design.
    fn is_for_scene_of(&self, drawn: &Scene) -> bool {
        drawn.drawing.is_some() && self.drawing.is_none() && self.setting == drawn.setting
    }

    /// Returns whether both are for the same scene, overlay and drawing, by name.
    fn is_for_same(&self, other: &Self) -> bool {
        self.scene == other.scene && self.overlay == other.overlay && self.drawing == other.drawing
    }
}
