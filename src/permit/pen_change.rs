//! A person at the arm who changes its pen: meanwhile nothing may move.

use base::units::ClockInstant;
use scene::Scene;

use super::{OrderVerb, PermitError, PermitRegistry, PermitState};

impl PermitRegistry {
    /// Withdraws every permit given before, and gives no other until the pen is confirmed or the change is given up.
    /// `awaited` says which pen is awaited, and how it is confirmed.
    pub fn begin_pen_change(&self, awaited: &str) {
        let mut state = self.state();
        state.pen_change = Some(awaited.to_owned());
        self.withdraw(&mut state);
    }

    /// Returns whether a person changes the pen.
    #[must_use]
    pub fn is_pen_changing(&self) -> bool {
        self.state().pen_change.is_some()
    }

    /// Ends the change because a person has confirmed the pen, if motion is enabled for the scene now.
    ///
    /// # Errors
    /// The reason why nothing could move afterwards; the change then goes on.
    pub fn confirm_pen_change(&self, scene: &Scene, now: ClockInstant) -> Result<(), PermitError> {
        self.check_scene(scene)?;
        let mut state = self.state();
        state.permit(scene, now)?;
        state.pen_change = None;
        Ok(())
    }

    /// Ends the change without a pen. A hand may still be at the arm, so motion is disabled, also for later processes, until an
    /// operator enables it.
    pub fn give_up_pen_change(&self) {
        self.give_order(
            OrderVerb::Disable,
            "the node, because a hand may be at the arm",
        );
        self.state().pen_change = None;
    }
}

impl PermitState {
    /// Refuses while a person changes the pen.
    pub(super) fn check_no_pen_change(&self) -> Result<(), PermitError> {
        match &self.pen_change {
            Some(awaited) => Err(PermitError::PenChange(awaited.clone())),
            None => Ok(()),
        }
    }
}
