//! Calibration of an arm, its tool and its sheet from touches: fits, their judgement, and their storage.
//!
//! Fits are pure functions of measured joints. A fit that looks good may still be wrong, so residuals alone never
//! suffice: its condition, its covariance and a touch that it has not seen are judged as well. A fit that is not good
//! enough names the touch to add and its place.

mod aligned;
mod assess;
mod class;
mod edit;
mod fit;
mod frame;
mod judge;
pub mod lerobot;
mod pivot;
mod plane;
mod ranges;
mod record;
pub mod report;
mod rolled;
mod seen;
mod standing;
mod stats;
mod store;
#[cfg(test)]
mod tests;
mod zeros;

pub use aligned::{Aligned, AlignedPoint};
pub use assess::{
    AssessError, Assessed, Residual, assess, basis_of, next_step, taught, taught_before,
};
use base::wording::count;
pub use class::{Accept, Class};
pub use edit::{EditError, flipped_joints, identify, write};
pub use frame::{Asked, FrameSigma, SheetFrame, frame};
pub use judge::{
    Finding, TOUCHES_EACH, Verdict, judge_pivot, judge_plane, judge_reading, judge_rolled,
    judge_tracking, judge_zeros,
};
pub use pivot::{PIVOT_TOUCHES_MIN, Pivot, pivot, pivot_robust};
pub use plane::{Curvature, PLANE_TOUCHES_MIN, Plane, curvature, plane, plane_robust};
pub use ranges::{Found, Ranges, Ticks};
pub use record::{
    CalibrationOrigin, Change, Contact, Glimpse, Kind, OriginMismatch, Record, Role, Session,
    Values, check, servos, servos_of, zeros_of,
};
pub use rolled::{ROLLED_TOUCHES_MIN, Rolled, RolledTouch, rolled, rolled_robust};
pub use seen::{camera_stands, is_out_of_date};
pub use standing::{missing, stale};
pub use stats::{Outlier, TouchFit};
pub use store::{KEPT_MAX, Lock, Store, StoreError, put};
pub use zeros::{Target, Touch, ZEROS_TOUCHES_MIN, Zeros, zeros};

/// Reason that touches give no fit.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum FitError {
    /// Fewer than the unknowns need.
    #[error("{} of {what}; at least {need} are needed: touch {} more", count(*have, "touch"), need - have)]
    TooFew {
        /// Of what.
        what: &'static str,
        /// Number of touches.
        have: usize,
        /// Least number of touches.
        need: usize,
    },
    /// The tool had the same direction in all of them.
    #[error(
        "the tool hardly turned between the touches (condition {}): tilt it, and turn it about its axis",
        stats::ratio(*condition)
    )]
    SameDirection {
        /// Largest over smallest singular value.
        condition: f64,
    },
    /// All on one line, or in one place.
    #[error(
        "the touches lie on a line: across it they span {across_mm:.1} mm, along it {along_mm:.1} mm; touch points beside that line"
    )]
    OnALine {
        /// The shorter extent.
        across_mm: f64,
        /// The longer extent.
        along_mm: f64,
    },
    /// x and y make a sheet that is seen from behind.
    #[error(
        "+x and +y are swapped: the sheet would be seen from behind; touch +x to the right of the origin as a reader sees it, +y above it"
    )]
    Swapped,
    /// x and y are not at a right angle.
    #[error(
        "+x and +y are {0:.1} degrees apart, not 90: one of the three points is another than was named"
    )]
    NotSquare(f64),
    /// A length is not what was asked.
    #[error(
        "{axis} is {measured_mm:.2} mm long and {asked_mm:.2} mm were asked ({percent:+.1} %, 1 % is allowed): the point is another, the ruler is read wrong, or joint zeros and tool are off"
    )]
    Scale {
        /// "+x" or "+y".
        axis: &'static str,
        /// Between the touches.
        measured_mm: f64,
        /// As the caller says.
        asked_mm: f64,
        /// Their difference.
        percent: f64,
    },
    /// A scene's cylinder bulges towards the arm, and these touches do not.
    #[error(
        "the touches make no cylinder that bulges towards the arm: they lie flat or hollow; touch the middle and both sides far from it, or take `cylinder_radius_mm` out of the scene's [sheet]"
    )]
    NotRolled,
    /// Nothing that was touched depends on any joint's zero.
    #[error(
        "no joint's zero shows in these touches: touch points with the arm folded and stretched"
    )]
    Unobservable,
    /// Numbers that are NaN or infinite.
    #[error("a touch holds a number that is not finite")]
    NotFinite,
}
