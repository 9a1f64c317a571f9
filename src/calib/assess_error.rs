//! Reasons that touches cannot be assessed.

/// Reason that touches cannot be assessed at all.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AssessError {
    /// The scene has no such pen.
    #[error("scene {scene} has no pen `{pen}`. Valid: {}", known.join(", "))]
    NoPen {
        /// The scene.
        scene: String,
        /// The requested name.
        pen: String,
        /// The existing names.
        known: Vec<String>,
    },
    /// The touches were made with another arm or tip than the files now have.
    #[error(
        "the touches are out of date: the file now has a different {0}. Next: `steadyhand calibrate discard`, then touch again"
    )]
    Changed(&'static str),
    /// A touch does not match this arm's joints.
    #[error(
        "touch {number} has {have} joint angles; {arm} needs {need} finite ones. The saved touches are damaged. Next: `steadyhand calibrate discard`, then touch again"
    )]
    OtherJoints {
        /// Number of the touch, counted from 1.
        number: usize,
        /// Number of angles that it has.
        have: usize,
        /// The arm.
        arm: String,
        /// Number of the arm's joints.
        need: usize,
    },
    /// A touch was made with other zeros than those of the arm's file, or with unknown ones.
    #[error(
        "touch {number} was measured with zeros {}; the arm's file now has {now}. Touches with different zeros cannot be combined. Next: restart the node, run `steadyhand calibrate discard`, then touch again",
        if with.is_empty() { "not recorded" } else { with.as_str() }
    )]
    OtherZeros {
        /// Number of the touch, from 1.
        number: usize,
        /// Its zeros.
        with: String,
        /// The file's.
        now: String,
    },
    /// The sheet, or the arm's play and sag, are others than those that a cross, a pattern or joints at rest were measured with.
    #[error(
        "this measurement is out of date: the sheet of scene {0}, or the play and sag of its arm, has changed since. Next: `steadyhand calibrate discard`, then call `align` and read the new cross or pattern"
    )]
    ChangedSince(String),
    /// The scene has nothing of that name.
    #[error("the scene has no `{0}`. Valid: {1}")]
    NoName(String, String),
    /// The object is taught, not fitted.
    #[error(
        "poses, caps and the calibrator cannot be fitted from touches. Next: `steadyhand teach`"
    )]
    Taught,
    /// A camera is not touched.
    #[error(
        "a camera is calibrated from a picture. Next: `steadyhand calibrate camera --scene NAME`"
    )]
    NoPicture,
    /// Play can be seen only in ink.
    #[error("play is measured from drawn ink. Next: `steadyhand calibrate play --scene NAME`")]
    NoInk,
    /// Bases stand to each other in a scene that several arms share.
    #[error(
        "`bases` is for a scene that several arms share, such as two_arms; no other arm shares this scene"
    )]
    OneArm,
    /// Another arm of the scene goes by the same numbers.
    #[error("{what} also belongs to arm `{other}`, whose numbers would change too. Next: {next}")]
    OfOtherArm {
        /// What both arms have.
        what: String,
        /// The other arm.
        other: String,
        /// How to give each arm its own.
        next: String,
    },
    /// The scene has no calibrator.
    #[error(
        "scene {0} has no `calibrator_m`. Next: fix a pin within reach, and write the place of its tip as `calibrator_m = [x, y, z]` in metres into the scene's file"
    )]
    NoCalibrator(String),
}
