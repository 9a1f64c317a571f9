//! A person at the arm who changes its pen: meanwhile nothing may move.

use base::units::ClockInstant;
use scene::Scene;

use super::{PermitError, PermitRegistry, PermitState};

impl PermitRegistry {
    /// Takes back every permit given before, and gives no other until the pen is confirmed or the change is given up.
    /// `words` say which pen is awaited, and how it is confirmed.
    pub fn begin_pen_change(&self, words: &str) {
        let mut state = self.state();
        state.pen_change = Some(words.to_owned());
        self.withdraw(&mut state);
    }

    /// Ends the change because a person has confirmed the pen, if motion is enabled for the scene now.
    ///
    /// # Errors
    /// Why nothing could move afterwards; then the change goes on.
    pub fn confirm_pen_change(&self, scene: &Scene, now: ClockInstant) -> Result<(), PermitError> {
        self.check_reach(scene)?;
        let mut state = self.state();
        state.leave(scene, now)?;
        state.pen_change = None;
        Ok(())
    }

    /// Ends the change without a pen. A hand may still be at the arm, so nothing is enabled any longer.
    pub fn give_up_pen_change(&self) {
        self.disable();
        self.end_pen_change();
    }

    /// Ends the change without a pen where no hand can be at the arm: one that is simulated in this process.
    pub fn end_pen_change(&self) {
        self.state().pen_change = None;
    }
}

impl PermitState {
    /// Refuses while a person changes the pen.
    pub(super) fn check_no_pen_change(&self) -> Result<(), PermitError> {
        match &self.pen_change {
            Some(words) => Err(PermitError::PenChange(words.clone())),
            None => Ok(()),
        }
    }
}
