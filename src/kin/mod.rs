//! Kinematic chains: forward and inverse kinematics.
//!
//! Mathematics only: no scenes, no plans, no time.
#![doc = include_str!("README.md")]

use std::ops::Deref;

use nalgebra::{Isometry3, IsometryMatrix3, Matrix3, Point3, SMatrix, SVector, Unit, Vector3};

use base::units::{JOINTS_MAX, JointVector};

pub mod capsule;
mod elbow;
mod exact_position_ik;
mod fast_fk;
mod ik_solver;
mod sincos;
mod symmetric_matrix;

pub use base;
pub use ik_solver::{IkFailure, IkGoal, IkSolution};

/// A revolute joint.
#[derive(Clone, Debug)]
pub struct RevoluteJoint {
    /// Its frame at angle zero, in the frame of the previous joint.
    pub origin: Isometry3<f64>,
    /// The axis it turns about, in its own frame.
    pub axis: Unit<Vector3<f64>>,
    /// Lowest angle that a solution may have.
    pub lower_rad: f64,
    /// Highest angle that a solution may have.
    pub upper_rad: f64,
}

/// A chain of revolute joints that ends in a tool mount.
#[derive(Clone, Debug)]
pub struct KinematicChain {
    joints: Vec<RevoluteJoint>,
    links: Vec<JointRotation>,
    folded: fast_fk::FoldedChain,
    tool: Isometry3<f64>,
    mount: IsometryMatrix3<f64>,
}

/// A joint's rotation, precomputed: `fixed + sin q · sine_part + (1 - cos q) · cosine_part`.
#[derive(Clone, Debug)]
struct JointRotation {
    fixed: Matrix3<f64>,
    sine_part: Matrix3<f64>,
    cosine_part: Matrix3<f64>,
    axis: Vector3<f64>,
    origin: Vector3<f64>,
}

/// Tip of a tool: a point and a direction, both in the tool mount's frame.
#[derive(Clone, Copy, Debug)]
pub struct ToolTip {
    /// The point.
    pub point_m: Point3<f64>,
    /// From the tool's body towards the point.
    pub axis: Unit<Vector3<f64>>,
}

/// Every link's frame in the base frame: the first is the base, the n-th after it is moved by the
/// n-th joint. The tool mount is separate.
#[derive(Clone, Debug)]
pub struct LinkFrames {
    len: usize,
    links: [IsometryMatrix3<f64>; JOINTS_MAX + 1],
    /// The tool mount's frame.
    pub tool: IsometryMatrix3<f64>,
}

impl Deref for LinkFrames {
    type Target = [IsometryMatrix3<f64>];
    #[expect(
        clippy::indexing_slicing,
        reason = "made for a chain, which has at most JOINTS_MAX joints, and one base"
    )]
    fn deref(&self) -> &Self::Target {
        &self.links[..self.len]
    }
}

/// Error in a chain or in a request to it.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum KinError {
    /// Too few or too many joints.
    #[error("the chain has {0} joints; 1 to {JOINTS_MAX} are possible")]
    JointCount(usize),
    /// An axis without a direction, or a frame with a number that is not finite.
    #[error("joint {0}: its axis or origin is not a finite direction")]
    Joint(usize),
}

/// A geometric Jacobian at the tip, one column for each joint.
#[derive(Clone, Copy, Debug)]
pub struct Jacobian {
    len: usize,
    columns: [[f64; 6]; JOINTS_MAX],
}

impl Deref for Jacobian {
    type Target = [[f64; 6]];
    /// One column for each joint: three of velocity in m/rad, then three of angular velocity.
    #[expect(
        clippy::indexing_slicing,
        reason = "made for a chain, which has at most JOINTS_MAX joints"
    )]
    fn deref(&self) -> &[[f64; 6]] {
        &self.columns[..self.len]
    }
}

impl KinematicChain {
    /// Creates a chain from the base outwards.
    ///
    /// # Errors
    /// If there are no joints, more than [`JOINTS_MAX`], or one without a direction.
    pub fn new(joints: Vec<RevoluteJoint>, tool: Isometry3<f64>) -> Result<Self, KinError> {
        if joints.is_empty() || joints.len() > JOINTS_MAX {
            return Err(KinError::JointCount(joints.len()));
        }
        for (index, joint) in joints.iter().enumerate() {
            let origin = joint.origin.to_homogeneous();
            if joint
                .axis
                .iter()
                .chain(origin.iter())
                .any(|value| !value.is_finite())
            {
                return Err(KinError::Joint(index));
            }
        }
        Ok(Self {
            links: joints.iter().map(JointRotation::new).collect(),
            folded: fast_fk::FoldedChain::new(&joints, &tool),
            mount: matrices(&tool),
            joints,
            tool,
        })
    }

    /// Returns the number of joints.
    #[must_use]
    pub fn dof(&self) -> usize {
        self.joints.len()
    }

    /// Returns the joints, from the base outwards.
    #[must_use]
    pub fn joints(&self) -> &[RevoluteJoint] {
        &self.joints
    }

    /// Returns the distance of the tool mount from the last joint.
    #[must_use]
    pub fn mount_m(&self) -> f64 {
        self.tool.translation.vector.norm()
    }

    /// Returns the tool mount's pose in the base frame.
    ///
    /// # Panics
    /// If `q_rad` has more or fewer angles than the chain has joints.
    #[must_use]
    pub fn forward(&self, q_rad: &JointVector) -> Isometry3<f64> {
        self.assert_fits(q_rad);
        let mut pose = Isometry3::identity();
        for (joint, angle) in self.joints.iter().zip(q_rad.iter()) {
            pose = pose
                * joint.origin
                * nalgebra::UnitQuaternion::from_axis_angle(&joint.axis, *angle);
        }
        pose * self.tool
    }

    /// Returns every link's frame.
    ///
    /// # Panics
    /// As [`KinematicChain::forward`].
    #[must_use]
    pub fn frames(&self, q_rad: &JointVector) -> LinkFrames {
        self.assert_fits(q_rad);
        let mut frames = LinkFrames {
            len: self.links.len() + 1,
            links: [IsometryMatrix3::identity(); JOINTS_MAX + 1],
            tool: IsometryMatrix3::identity(),
        };
        let mut pose = IsometryMatrix3::identity();
        let (sines, cosines) = joint_sines_cosines(q_rad);
        let links = self.links.iter().zip(sines.iter().zip(&cosines));
        for ((link, (sin, cos)), to) in links.zip(frames.links.iter_mut().skip(1)) {
            pose *= link.transform(*sin, *cos);
            *to = pose;
        }
        frames.tool = pose * self.mount;
        frames
    }

    /// Returns the position of a point of the tool mount in the base frame. Equals the result of
    /// [`KinematicChain::frames`] in a third of the time, because it transforms the point inwards
    /// instead of frames outwards.
    ///
    /// # Panics
    /// As [`KinematicChain::forward`].
    #[must_use]
    pub fn point(&self, q_rad: &JointVector, point_m: &Point3<f64>) -> Point3<f64> {
        self.assert_fits(q_rad);
        let (sines, cosines) = joint_sines_cosines(q_rad);
        let mut point = (self.mount * point_m).coords;
        for (link, (sin, cos)) in self.links.iter().zip(sines.iter().zip(&cosines)).rev() {
            point = link.apply(&point, *sin, *cos);
        }
        point.into()
    }

    /// Panics at angles of another arm: no position can be assumed for a joint without an angle.
    #[inline(always)]
    fn assert_fits(&self, q_rad: &JointVector) {
        assert!(
            q_rad.len() == self.joints.len(),
            "there are {} joint angles for a chain of {} joints",
            q_rad.len(),
            self.joints.len()
        );
    }

    /// Returns the position and the direction of a tip, in the base frame.
    #[must_use]
    pub fn tip(&self, q_rad: &JointVector, tip: &ToolTip) -> (Point3<f64>, Unit<Vector3<f64>>) {
        let mount = self.frames(q_rad).tool;
        (mount * tip.point_m, mount.rotation * tip.axis)
    }

    /// Returns the Jacobian of a tip.
    #[must_use]
    pub fn jacobian(&self, q_rad: &JointVector, tip: &ToolTip) -> Jacobian {
        self.jacobian_at(&self.frames(q_rad), tip)
    }

    /// Returns the Jacobian of a tip for the given frames of the links.
    #[must_use]
    pub fn jacobian_at(&self, frames: &LinkFrames, tip: &ToolTip) -> Jacobian {
        let point = frames.tool * tip.point_m;
        let mut jacobian = Jacobian {
            len: self.links.len(),
            columns: [[0.0; 6]; JOINTS_MAX],
        };
        for ((link, frame), column) in self
            .links
            .iter()
            .zip(frames.iter().skip(1))
            .zip(jacobian.columns.iter_mut())
        {
            let axis = frame.rotation * link.axis;
            let v = axis.cross(&(point.coords - frame.translation.vector));
            *column = [v.x, v.y, v.z, axis.x, axis.y, axis.z];
        }
        jacobian
    }

    /// Returns the condition number of a tip: the largest over the smallest movement that a unit of
    /// joint movement can make. For six joints or more it covers position (over 0.25 m) and
    /// direction, without rotation about the tip's axis; for fewer, position alone, because they
    /// cannot reach both everywhere. 1 is best; very large at a singular pose, never infinite.
    #[must_use]
    pub fn condition(&self, q_rad: &JointVector, tip: &ToolTip) -> f64 {
        self.condition_at(&self.frames(q_rad), tip)
    }

    /// Returns the [`KinematicChain::condition`] if it is more than `limit`; otherwise `None`,
    /// mostly without computing it.
    #[must_use]
    pub fn condition_over(&self, frames: &LinkFrames, tip: &ToolTip, limit: f64) -> Option<f64> {
        if self.joints.len() < FULL_DOF {
            let product = position_product(&self.jacobian_at(frames, tip));
            // Of squares a >= b >= c, 4ab is at most (a + b + c)², so that a/c is at most (a + b +
            // c)³ / 4abc: which the trace and the determinant give.
            let within = 4.0 * product.determinant() * limit.powi(2);
            if product.trace().powi(3) < within * (1.0 - ROUNDING) {
                return None;
            }
        }
        Some(self.condition_at(frames, tip)).filter(|condition| *condition > limit)
    }

    fn condition_at(&self, frames: &LinkFrames, tip: &ToolTip) -> f64 {
        let jacobian = self.jacobian_at(frames, tip);
        if self.joints.len() < FULL_DOF {
            return condition_number(&eigenvalues(&position_product(&jacobian)));
        }
        let axis = frames.tool.rotation * tip.axis;
        let across = Matrix3::identity() - axis.into_inner() * axis.transpose();
        let mut rows = SMatrix::<f64, 6, 6>::zeros();
        for column in jacobian.iter() {
            let [x, y, z, rx, ry, rz] = *column;
            let v = Vector3::new(x, y, z) / LENGTH_M;
            let w = across * Vector3::new(rx, ry, rz);
            let both = SVector::<f64, 6>::new(v.x, v.y, v.z, w.x, w.y, w.z);
            rows += both * both.transpose();
        }
        let mut values = rows.symmetric_eigenvalues();
        // The direction left out has the smallest eigenvalue by construction, which is no defect.
        let least = values.imin();
        if let Some(value) = values.get_mut(least) {
            *value = f64::INFINITY;
        }
        let kept = values.map(|value| {
            if value.is_finite() {
                value
            } else {
                values.min()
            }
        });
        condition_number(&kept)
    }
}

impl JointRotation {
    fn new(joint: &RevoluteJoint) -> Self {
        let fixed = *joint.origin.rotation.to_rotation_matrix().matrix();
        let cross = joint.axis.cross_matrix();
        Self {
            fixed,
            sine_part: fixed * cross,
            cosine_part: fixed * cross * cross,
            axis: joint.axis.into_inner(),
            origin: joint.origin.translation.vector,
        }
    }

    /// Transforms a point beyond the joint into the frame before it.
    #[inline(always)]
    fn apply(&self, point: &Vector3<f64>, sin: f64, cos: f64) -> Vector3<f64> {
        let along = self.axis * (self.axis.dot(point) * (1.0 - cos));
        let transform = point * cos + self.axis.cross(point) * sin + along;
        self.fixed * transform + self.origin
    }

    fn transform(&self, sin: f64, cos: f64) -> IsometryMatrix3<f64> {
        let rotation = self.fixed + self.sine_part * sin + self.cosine_part * (1.0 - cos);
        IsometryMatrix3::from_parts(
            self.origin.into(),
            nalgebra::Rotation3::from_matrix_unchecked(rotation),
        )
    }
}

/// Metres that weigh as much as a radian.
const LENGTH_M: f64 = 0.25;

/// Number of joints from which position and direction can be reached everywhere.
const FULL_DOF: usize = 6;

/// Bound, with a large margin, of the rounding error in sums and products of a few numbers.
const ROUNDING: f64 = 1e-6;

/// Returns the sine and the cosine of every joint, and those of 0 beyond the last.
#[inline(always)]
fn joint_sines_cosines(q_rad: &JointVector) -> ([f64; JOINTS_MAX], [f64; JOINTS_MAX]) {
    let mut angles = [0.0; JOINTS_MAX];
    for (angle, q) in angles.iter_mut().zip(q_rad.iter()) {
        *angle = *q;
    }
    let [first @ .., _] = angles;
    if q_rad.len() == JOINTS_MAX {
        return sincos::sin_cos(&angles);
    }
    // Arms mostly lack the last joint, and sines are computed in pairs.
    let ([a, b, c, d, e, f], [u, v, w, x, y, z]) = sincos::sin_cos(&first);
    ([a, b, c, d, e, f, 0.0], [u, v, w, x, y, z, 1.0])
}

/// Returns the product of the Jacobian's position part with its transpose. Its eigenvalues are the
/// squared gains along the principal directions.
fn position_product(jacobian: &Jacobian) -> Matrix3<f64> {
    let mut product = Matrix3::zeros();
    for [x, y, z, ..] in jacobian.iter() {
        let v = Vector3::new(*x, *y, *z) / LENGTH_M;
        product += v * v.transpose();
    }
    product
}

/// Returns the eigenvalues of a symmetric matrix in closed form: it runs for every waypoint and
/// every sample.
fn eigenvalues(matrix: &Matrix3<f64>) -> Vector3<f64> {
    let mean = matrix.trace() / 3.0;
    let deviator = matrix - Matrix3::identity() * mean;
    let size = (deviator.norm_squared() / 6.0).sqrt();
    if size <= f64::EPSILON * mean.abs() {
        return Vector3::repeat(mean);
    }
    let angle_rad = ((deviator / size).determinant() / 2.0)
        .clamp(-1.0, 1.0)
        .acos()
        / 3.0;
    let third = std::f64::consts::TAU / 3.0;
    let at = |angle: f64| mean + 2.0 * size * angle.cos();
    Vector3::new(at(angle_rad), at(angle_rad + third), at(angle_rad - third))
}

/// Returns the root of the largest over the smallest.
fn condition_number<const R: usize>(squares: &SVector<f64, R>) -> f64 {
    (squares.max() / squares.min().max(1e-12)).max(1.0).sqrt()
}

fn matrices(pose: &Isometry3<f64>) -> IsometryMatrix3<f64> {
    IsometryMatrix3::from_parts(pose.translation, pose.rotation.to_rotation_matrix())
}

#[cfg(test)]
mod tests;
