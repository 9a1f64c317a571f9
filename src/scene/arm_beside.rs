//! The arms of a scene that several share, as one of them sees the others.

use std::sync::Arc;

use nalgebra::IsometryMatrix3;

use super::ScenePen;
use arm::ArmModel;

/// An arm of the same scene that stands beside this one.
#[derive(Clone, Debug)]
pub struct ArmBeside {
    /// Its name in the scene that both share.
    pub name: String,
    /// The arm.
    pub arm: Arc<ArmModel>,
    /// Its base in this arm's base frame.
    pub base_in_ours: IsometryMatrix3<f64>,
    /// Its pens, which stick out from it; their tips are in its own tool mount's frame.
    pub pens: Vec<ScenePen>,
    /// Largest error of where any point of it is in this arm's base frame, in metres.
    pub uncertainty_m: f64,
}
