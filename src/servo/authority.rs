//! Permission to make servos move, handed in as a value.

/// Authority to write goals and to switch torque on; see [`ServoRequest::MotionWrite`].
///
/// It cannot be made from its fields, copied or defaulted, so code that was not handed one cannot ask a
/// servo to move through this crate:
///
/// ```compile_fail,E0423
/// let forged = steadyhand_servo::MotionAuthority(());
/// ```
/// ```compile_fail,E0277
/// fn defaulted<T: Default>() {}
/// defaulted::<steadyhand_servo::MotionAuthority>();
/// ```
/// ```compile_fail,E0277
/// fn copied<T: Clone>() {}
/// copied::<steadyhand_servo::MotionAuthority>();
/// ```
/// ```compile_fail,E0061
/// use steadyhand_servo::dialect::{Dialect, ServoRequest};
/// use steadyhand_servo::feetech::FeetechDialect;
///
/// let goal = [(1, vec![0; 7])];
/// let mut frame = Vec::new();
/// FeetechDialect::encode(&mut frame, ServoRequest::MotionWrite(FeetechDialect::GOAL, &goal));
/// ```
///
/// [`ServoRequest::MotionWrite`]: crate::dialect::ServoRequest::MotionWrite
#[derive(Debug)]
pub struct MotionAuthority(());

impl MotionAuthority {
    /// Takes the responsibility for what the servos then do.
    ///
    /// In Steadyhand only `driver` does so, whose commands take setpoints that the gate has checked; a
    /// test of the tree refuses the name of this function anywhere else. A program that uses this crate
    /// alone answers for its own limits, so call it in one place.
    #[must_use]
    pub fn claim() -> Self {
        Self(())
    }
}
