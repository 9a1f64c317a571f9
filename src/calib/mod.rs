//! Calibration of an arm, its tool and its sheet from touches: fits, their assessment, and their storage.
//!
//! Fits are pure functions of measured joints. A fit that looks good may still be wrong, so residuals alone never
//! suffice: its condition, its covariance and a touch that was not fitted are assessed as well. A fit that is not good
//! enough names the touch to add and its place.

mod accuracy;
mod alignment;
mod assess_error;
mod assessment;
mod bases_assessment;
mod bases_fit;
mod calibration_desk;
mod calibration_record;
mod calibration_status;
mod calibration_store;
mod cylinder_fit;
mod edit_scene_file;
mod fit;
mod fit_verdict;
mod foot_frame;
mod hand_gaps;
mod height_map_fit;
mod ink_assessment;
mod ink_observation;
mod ink_pattern;
mod joint_ranges;
pub mod lerobot;
mod own_objects;
mod pivot_fit;
mod plane_fit;
mod play_fit;
mod play_operator;
mod read_tips;
pub mod report;
mod sag_assessment;
mod sag_fit;
mod sheet_frame;
mod sideways_fit;
mod stats;
mod tag_fit;
#[cfg(test)]
mod tests;
mod touched_place;
mod zeros_fit;

pub use accuracy::{AcceptanceLimits, ResolutionClass};
pub use alignment::{AlignedPoint, AlignmentResult};
pub use assess_error::AssessError;
pub use assessment::{
    TouchAssessment, TouchResidual, assess, basis_of, new_taught_values, next_step, taught_values,
};
use base::wording::count;
pub use bases_assessment::{assess_bases, bases_contradiction};
pub use calibration_desk::{
    AcceptConsent, AcceptedCalibration, CalibrationDesk, CalibrationDeskError, HandTouch,
    ZEROS_NEED_RESTART, begin_session, proposal_key,
};
pub use calibration_record::{
    CalibrationChange, CalibrationKind, CalibrationOrigin, CalibrationRecord, CalibrationSession,
    FileValues, KnownArm, OriginMismatch, TagObservation, TouchContact, TouchRole, check,
    names_alike, servos, servos_of, zeros_of,
};
pub use calibration_status::{missing, stale, stale_bases};
pub use calibration_store::{
    CalibrationLock, CalibrationStore, CalibrationStoreError, KEPT_MAX, ProposalClaim, put,
};
pub use cylinder_fit::{CylinderFit, CylinderTouch, ROLLED_TOUCHES_MIN, rolled_robust};
pub use edit_scene_file::{CalibrationEditError, flipped_joints, identify, write};
pub use fit_verdict::{
    FitFinding, FitVerdict, TOUCHES_EACH, TouchedShape, judge_mapped, judge_pivot, judge_plane,
    judge_reading, judge_rolled, judge_tracking, judge_zeros,
};
pub use hand_gaps::{GAP_SIGMA_MM, PatternGap, gap_sketch, gaps};
pub use height_map_fit::HeightMapFit;
pub use ink_assessment::{InkFit, pattern_stage};
pub use ink_observation::{
    InkObservation, InkPlace, PatternPath, PatternReading, PlaceReading, RestReading,
};
pub use ink_pattern::{PatternError, ink_pattern};
pub use joint_ranges::{RangeRecorder, RangeResult, ServoTicks};
pub use own_objects::check_own;
pub use pivot_fit::{PIVOT_TOUCHES_MIN, PivotFit, pivot_robust};
pub use plane_fit::{PLANE_TOUCHES_MIN, PlaneFit, SheetCurvature, curvature, plane_robust};
pub use play_fit::{JointPlay, PatternStage, PlayEquations, PlayFit, PlayFitError};
pub use sag_assessment::SagFit;
pub use sag_fit::{JointSag, sags};
pub use sheet_frame::{FrameSigma, RulerDistances, SheetFrame, frame};
pub use stats::{TouchFit, TouchOutlier};
pub use tag_fit::{camera_pose, is_out_of_date};
pub use touched_place::touches_of_place;
pub use zeros_fit::{TouchTarget, ZEROS_TOUCHES_MIN, ZerosFit, ZerosTouch, zeros};

/// Reason that touches give no fit.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum FitError {
    /// Fewer touches than the fit needs.
    #[error("{} of {what} (at least {need}): touch {} more", count(*have, "touch"), need - have)]
    TooFew {
        /// The touched object.
        what: &'static str,
        /// Number of touches.
        have: usize,
        /// Least number of touches.
        need: usize,
    },
    /// The tool had the same direction in all touches.
    #[error(
        "the tool was turned too little between the touches (condition {}): tilt it, and turn it about its axis",
        stats::ratio(*condition)
    )]
    SameDirection {
        /// Largest over smallest singular value.
        condition: f64,
    },
    /// All on one line, or in one place.
    #[error(
        "the touches lie almost on a line ({along_mm:.1} mm along it, {across_mm:.1} mm across it): touch points beside that line"
    )]
    OnALine {
        /// The shorter extent.
        across_mm: f64,
        /// The longer extent.
        along_mm: f64,
    },
    /// x and y are swapped.
    #[error(
        "+x and +y are swapped: facing the sheet as you read it, +x must be to the right of the origin and +y above it"
    )]
    Swapped,
    /// x and y are not at a right angle.
    #[error(
        "+x and +y are {0:.1}° apart but must be 90° apart. You probably touched a wrong point: touch both points again"
    )]
    NotSquare(f64),
    /// A length differs from the expected one.
    #[error(
        "{axis} is {measured_mm:.2} mm long instead of {asked_mm:.2} mm ({percent:+.1} %, at most 1 %). The wrong point was touched, the ruler was misread, or the zeros or the tool are wrong"
    )]
    Scale {
        /// "+x" or "+y".
        axis: &'static str,
        /// Between the touches.
        measured_mm: f64,
        /// The stated distance.
        asked_mm: f64,
        /// Their difference.
        percent: f64,
    },
    /// The touches do not bulge towards the arm, as a scene's cylinder does.
    #[error(
        "the touches do not show a cylinder that bulges towards the arm. Touch its middle, and both sides far from the middle, or remove `cylinder_radius_mm` from the scene's `[sheet]`"
    )]
    NotRolled,
    /// The touches do not depend on any joint's zero.
    #[error(
        "these touches do not show any joint's zero: touch points with the arm folded and stretched"
    )]
    Unobservable,
    /// Beside a mesh, or on its steep side.
    #[error(
        "the touch at [{:.1}, {:.1}, {:.1}] mm lies beside the mesh or on a slope of more than 70°: touch its upper side", .0[0], .0[1], .0[2]
    )]
    BesideMesh([f64; 3]),
    /// Numbers that are NaN or infinite.
    #[error("a touch holds a number that is not finite")]
    NotFinite,
}
