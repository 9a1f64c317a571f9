//! Scenes that a person has enabled, and until when; and latched stops, with who latched them.
//!
//! A planner's default is not an operator's consent: motion needs a [`MotionPermit`], and only what an
//! operator enabled gives one. Enabling names a revision, so that a design swapped afterwards is
//! not enabled.

mod interlock;
mod keeper;
mod kept;
#[cfg(test)]
mod tests;

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError, TryLockError};
use std::time::Duration;

use serde::Serialize;

use base::units::Instant;
use scene::{Revision, Scene};

pub use interlock::{ArmInterlock, Obstruction};
use keeper::Keeper;

/// The permissions to move on one node, shared by all threads.
#[derive(Debug)]
pub struct Permits {
    state: Mutex<State>,
    /// [`PermitState::withdrawals`], for readers that must not wait.
    withdrawn: AtomicU64,
    /// The writer that keeps an emergency stop beyond this process.
    keeper: OnceLock<Keeper>,
    /// The node's other arms that this one can touch.
    interlock: OnceLock<ArmInterlock>,
}

#[derive(Debug, Default)]
struct State {
    everything: bool,
    grants: Vec<Grant>,
    latch: Option<Latch>,
    /// Number of times that permission was withdrawn: by a latch, or by `disable`.
    withdrawals: u64,
    /// Number of emergency stops latched.
    emergencies: u64,
}

/// A scene that a person has enabled.
#[derive(Clone, Debug, PartialEq)]
pub struct Grant {
    /// The scene's name.
    pub scene: String,
    /// The overlay that was laid over it.
    pub overlay: Option<String>,
    /// Its revision when it was enabled.
    pub revision: Revision,
    /// End of the permission; `None` lasts as long as the node runs.
    pub until: Option<Instant>,
}

/// The actor; one that may do more is greater.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Who {
    /// The node itself.
    Node,
    /// A language model or another program, by a tool call.
    Planner,
    /// A person at the node.
    Operator,
}

/// A stop that lasts until it is ended explicitly.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Latch {
    /// An ordinary stop: `reset` ends it, by an operator if an operator stopped.
    Stopped(Who),
    /// An emergency stop: only an operator's `clear` ends it.
    Emergency(Who),
    /// Something broke; the text says what. `reset` tries again.
    Fault(String),
    /// A servo became too hot on the way; the text says which. `reset` tries again, and the node
    /// itself may bring the arm to rest.
    Hot(String),
}

/// Leave to move in one scene. Made only by [`Permits::ask`] and [`Permits::ask_reset`].
#[derive(Clone, Debug)]
pub struct Permit {
    revision: Revision,
    until: Option<Instant>,
    /// The withdrawals that had been when it was given.
    withdrawals: u64,
    /// `true` if the node gave it to itself.
    nodes_own: bool,
}

/// The reason why there is no permission.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Denied {
    /// No operator has enabled this scene as it is now.
    #[error(
        "motion is not enabled for scene `{scene}` (revision {revision}); an operator enables it with `steadyhand enable --scene {scene} --for 30m`; enabled now: {enabled}"
    )]
    NeedsEnabling {
        /// The scene, with its overlay.
        scene: String,
        /// Its revision.
        revision: String,
        /// The scenes that are enabled.
        enabled: String,
    },
    /// Stopped before, and not reset.
    #[error("the arm was stopped by {by}; call `reset` first", by = who(*.0))]
    Stopped(Who),
    /// An ordinary stop that a planner may not end.
    #[error(
        "the arm was stopped by an operator, and an operator must reset it: `steadyhand reset`"
    )]
    OperatorMustReset,
    /// An emergency stop stands.
    #[error("an emergency stop is latched; an operator ends it with `steadyhand clear`")]
    Emergency,
    /// A fault that has not been reset.
    #[error("the arm has a fault: {0}; remove its cause, then call `reset`")]
    Fault(String),
    /// Another arm of the node can be touched, and is in the way; the text names it.
    #[error("{0}")]
    OtherArm(String),
}

fn who(who: Who) -> &'static str {
    match who {
        Who::Planner => "a tool call",
        Who::Operator => "an operator",
        Who::Node => "the node",
    }
}

impl Latch {
    /// Returns its severity, ranked by who has to end it. A latch is never replaced by a lesser one.
    const fn gravity(&self) -> u8 {
        match self {
            Self::Stopped(Who::Node) => 0,
            Self::Hot(_) => 1,
            // Whoever stops an arm that is hot does not want it to be parked.
            Self::Stopped(Who::Planner) => 2,
            Self::Fault(_) => 3,
            Self::Stopped(Who::Operator) => 4,
            Self::Emergency(_) => 5,
        }
    }
}

impl Permit {
    /// Returns whether it covers a scene at a moment.
    #[must_use]
    pub fn covers(&self, scene: &Scene, now: Instant) -> bool {
        self.revision == scene.revision && self.until.is_none_or(|until| now < until)
    }

    /// Returns whether the node gave it to itself, to bring the arm to rest: torque is not switched on
    /// for it, and a fault from before remains after it.
    #[must_use]
    pub fn is_nodes_own(&self) -> bool {
        self.nodes_own
    }
}

impl Permits {
    /// Nothing is enabled: for hardware.
    #[must_use]
    pub fn none() -> Self {
        Self::of(State::default())
    }

    /// Everything is enabled: for the embedded simulator.
    #[must_use]
    pub fn everything() -> Self {
        Self::of(State {
            everything: true,
            ..State::default()
        })
    }

    fn of(state: State) -> Self {
        Self {
            state: Mutex::new(state),
            withdrawn: AtomicU64::new(0),
            keeper: OnceLock::new(),
            interlock: OnceLock::new(),
        }
    }

    /// Joins the other arms of a node, once: from now on this arm is enabled only while none that it can touch is in the
    /// way. What was enabled without asking, as on an embedded simulator, is taken back where there is one.
    pub fn interlock(&self, interlock: ArmInterlock) {
        let is_beside_others = interlock.is_beside_others();
        if self.interlock.set(interlock).is_ok() && is_beside_others {
            self.disable();
        }
    }

    /// Enables a scene as it is now. A second time for the same scene replaces the first.
    ///
    /// # Errors
    /// [`Denied::OtherArm`] names the arm of the same node that is in the way.
    pub fn enable(
        &self,
        scene: &Scene,
        now: Instant,
        for_: Option<Duration>,
    ) -> Result<(), Denied> {
        // Until the grant is there, no other arm of the node is enabled.
        let _turn = match self.interlock.get() {
            Some(interlock) => Some(interlock.clear_for(scene)?),
            None => None,
        };
        let grant = Grant {
            scene: scene.name.clone(),
            overlay: scene.overlay.clone(),
            revision: scene.revision,
            until: for_.map(|for_| now.after(for_)),
        };
        let mut state = self.state();
        state
            .grants
            .retain(|old| (&old.scene, &old.overlay) != (&grant.scene, &grant.overlay));
        state.grants.push(grant);
        Ok(())
    }

    /// Takes back all that was enabled, on a simulator too.
    pub fn disable(&self) {
        let mut state = self.state();
        state.everything = false;
        state.grants.clear();
        self.withdraw(&mut state);
    }

    /// Returns the scenes enabled at a moment, in words.
    #[must_use]
    pub fn enabled(&self, now: Instant) -> String {
        self.state().enabled(now)
    }

    /// Returns whether anything may move at a moment.
    #[must_use]
    pub fn any(&self, now: Instant) -> bool {
        let state = self.state();
        state.everything || state.live(now).next().is_some()
    }

    /// Returns whether a scene is the only one enabled, so that a garbled request can mean no other.
    #[must_use]
    pub fn is_only(&self, scene: &str, now: Instant) -> bool {
        let state = self.state();
        let mut live = state.live(now);
        !state.everything
            && live.next().is_some_and(|grant| grant.scene == scene)
            && live.next().is_none()
    }

    /// Leave to move in a scene.
    ///
    /// # Errors
    /// [`Denied`] says what an operator or caller must do first.
    pub fn ask(&self, scene: &Scene, now: Instant) -> Result<Permit, Denied> {
        if let Some(interlock) = self.interlock.get() {
            interlock.check_reach(scene)?;
        }
        let state = self.state();
        match &state.latch {
            None => state.grant(scene, now),
            Some(Latch::Stopped(by)) => Err(Denied::Stopped(*by)),
            Some(Latch::Emergency(_)) => Err(Denied::Emergency),
            Some(Latch::Fault(why) | Latch::Hot(why)) => Err(Denied::Fault(why.clone())),
        }
    }

    /// Gives permission to move out of an ordinary stop or a fault, in the scene last moved in. The node
    /// itself gets none out of an operator's stop, nor out of a fault other than heat. Where the scene
    /// was changed since, an operator gets permission by its name: only the scene as it was says which
    /// way is up, and it can no longer be enabled.
    ///
    /// # Errors
    /// As [`PermitRegistry::ask`]; [`PermitError::OperatorMustReset`] where a planner may not.
    pub fn ask_reset(&self, scene: &Scene, by: Who, now: Instant) -> Result<Permit, Denied> {
        let state = self.state();
        match &state.latch {
            Some(Latch::Emergency(_)) => Err(Denied::Emergency),
            Some(Latch::Stopped(Who::Operator)) if by != Who::Operator => {
                Err(Denied::OperatorMustReset)
            }
            Some(Latch::Fault(why)) if by == Who::Node => Err(Denied::Fault(why.clone())),
            _ => state.grant_out(scene, by, now).map(|permit| Permit {
                nodes_own: by == Who::Node,
                ..permit
            }),
        }
    }

    /// Returns whether nothing was latched or withdrawn since a permit was given. A motion asks when it
    /// begins, for its permit may be older than a stop, and in each tick; so this waits for no lock.
    #[must_use]
    pub fn stands(&self, permit: &Permit) -> bool {
        self.withdrawn.load(Ordering::SeqCst) == permit.withdrawals
    }

    /// Returns how often a latch or an operator took permits back.
    #[must_use]
    pub fn withdrawals(&self) -> u64 {
        self.withdrawn.load(Ordering::SeqCst)
    }

    fn withdraw(&self, state: &mut State) {
        state.withdrawals += 1;
        self.withdrawn.store(state.withdrawals, Ordering::SeqCst);
    }

    /// Latches a stop and takes back every permit given before. A graver latch is never replaced
    /// by a lesser one: what an operator stopped, a fault must not hand to a planner to reset.
    pub fn latch(&self, new: Latch) {
        self.latch_in(self.state(), new);
    }

    /// As [`Self::latch`], unless another thread holds the lock now; returns whether it is latched. Never
    /// waits.
    pub fn try_latch(&self, new: Latch) -> bool {
        let state = match self.state.try_lock() {
            Ok(state) => state,
            Err(TryLockError::Poisoned(poisoned)) => poisoned.into_inner(),
            Err(TryLockError::WouldBlock) => return false,
        };
        self.latch_in(state, new);
        true
    }

    fn latch_in(&self, mut state: MutexGuard<'_, State>, new: Latch) {
        let emergency = matches!(new, Latch::Emergency(_));
        self.withdraw(&mut state);
        state.emergencies += u64::from(emergency);
        if state
            .latch
            .as_ref()
            .is_none_or(|old| old.gravity() <= new.gravity())
        {
            state.latch = Some(new);
        }
        drop(state);
        if emergency && let Some(keeper) = self.keeper.get() {
            keeper.wake();
        }
    }

    /// Runs `then` while the lock on the latch is held, as by a reader that does not come to its end.
    #[cfg(feature = "testing")]
    pub fn while_looked_at(&self, then: impl FnOnce()) {
        let looking = self.state();
        then();
        drop(looking);
    }

    /// Returns the present latch.
    #[must_use]
    pub fn latched(&self) -> Option<Latch> {
        self.state().latch.clone()
    }

    /// Ends an ordinary stop or a fault, once the arm has been reset with this permit. `false`,
    /// and nothing ends, if something was latched since it was given.
    pub fn unlatch(&self, reset: &Permit) -> bool {
        let mut state = self.state();
        let last = state.withdrawals == reset.withdrawals
            && !matches!(state.latch, Some(Latch::Emergency(_)));
        if last {
            state.latch = None;
        }
        last
    }

    /// A thread that panicked while it held the lock has changed whole values only.
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn grant(&self, scene: &Scene, now: Instant) -> Result<Permit, Denied> {
        self.grant_where(scene, now, |grant| grant.revision == scene.revision)
    }

    fn grant_out(&self, scene: &Scene, by: Who, now: Instant) -> Result<Permit, Denied> {
        let is_named =
            |grant: &Grant| (&grant.scene, &grant.overlay) == (&scene.name, &scene.overlay);
        match self.grant(scene, now) {
            Err(_) if by == Who::Operator => self.grant_where(scene, now, is_named),
            granted => granted,
        }
    }

    fn grant_where(
        &self,
        scene: &Scene,
        now: Instant,
        is_meant: impl Fn(&Grant) -> bool,
    ) -> Result<Permit, Denied> {
        let until = if self.everything {
            Some(None)
        } else {
            self.live(now)
                .find(|grant| is_meant(grant))
                .map(|grant| grant.until)
        };
        match until {
            Some(until) => Ok(Permit {
                revision: scene.revision,
                until,
                withdrawals: self.withdrawals,
                nodes_own: false,
            }),
            None => Err(Denied::NeedsEnabling {
                scene: scene.title(),
                revision: scene.revision.to_string(),
                enabled: self.enabled(now),
            }),
        }
    }

    fn enabled(&self, now: Instant) -> String {
        if self.everything {
            return "everything (embedded simulator)".to_owned();
        }
        let names: Vec<String> = self.live(now).map(Grant::words).collect();
        if names.is_empty() {
            "nothing".to_owned()
        } else {
            names.join(", ")
        }
    }

    fn live(&self, now: Instant) -> impl Iterator<Item = &Grant> {
        self.grants
            .iter()
            .filter(move |grant| grant.until.is_none_or(|until| now < until))
    }
}

impl Grant {
    fn words(&self) -> String {
        match &self.overlay {
            Some(overlay) => format!("{} + {overlay}", self.scene),
            None => self.scene.clone(),
        }
    }
}
