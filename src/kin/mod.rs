//! Kinematic chains: where the tool is for given joints, and which joints bring it there.
//!
//! Mathematics only: no scenes, no plans, no time.
#![doc = include_str!("README.md")]

use std::ops::Deref;

use nalgebra::{Isometry3, IsometryMatrix3, Matrix3, Point3, SMatrix, SVector, Unit, Vector3};

use base::units::{JOINTS_MAX, JointVector};

pub mod capsule;
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
    /// Its frame at angle zero, in the frame of the joint before.
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

/// A joint's rotation, folded: `still + sin q · turning + (1 - cos q) · bending`.
#[derive(Clone, Debug)]
struct JointRotation {
    still: Matrix3<f64>,
    turning: Matrix3<f64>,
    bending: Matrix3<f64>,
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

/// Every link's frame in the base frame: the first is the base, the n-th what the n-th joint
/// moves. The tool mount is apart.
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
    #[error("{0} joints; 1 to {JOINTS_MAX} are possible")]
    JointCount(usize),
    /// An axis without a direction, or a frame with a number that is not finite.
    #[error("joint {0}: its axis or origin is not a finite direction")]
    Joint(usize),
}

/// A geometric Jacobian at the tip, a column a joint.
#[derive(Clone, Copy, Debug)]
pub struct Jacobian {
    len: usize,
    columns: [[f64; 6]; JOINTS_MAX],
}

impl Deref for Jacobian {
    type Target = [[f64; 6]];
    /// A column a joint: three of velocity in m/rad, then three of angular velocity.
    #[expect(
        clippy::indexing_slicing,
        reason = "made for a chain, which has at most JOINTS_MAX joints"
    )]
    fn deref(&self) -> &[[f64; 6]] {
        &self.columns[..self.len]
    }
}

impl KinematicChain {
    /// A chain from the base outwards.
    ///
    /// # Errors
    /// When there are no joints, more than [`JOINTS_MAX`], or one without a direction.
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

    /// The joints, from the base outwards.
    #[must_use]
    pub fn joints(&self) -> &[RevoluteJoint] {
        &self.joints
    }

    /// Returns the distance of the tool mount from the last joint.
    #[must_use]
    pub fn mount_m(&self) -> f64 {
        self.tool.translation.vector.norm()
    }

    /// The tool mount's pose in the base frame.
    ///
    /// # Panics
    /// When `q_rad` has more or fewer angles than the chain has joints.
    #[must_use]
    pub fn forward(&self, q_rad: &JointVector) -> Isometry3<f64> {
        self.must_fit(q_rad);
        let mut pose = Isometry3::identity();
        for (joint, angle) in self.joints.iter().zip(q_rad.iter()) {
            pose = pose
                * joint.origin
                * nalgebra::UnitQuaternion::from_axis_angle(&joint.axis, *angle);
        }
        pose * self.tool
    }

    /// Every link's frame.
    ///
    /// # Panics
    /// As [`Chain::forward`].
    #[must_use]
    pub fn frames(&self, q_rad: &JointVector) -> LinkFrames {
        self.must_fit(q_rad);
        let mut frames = LinkFrames {
            len: self.links.len() + 1,
            links: [IsometryMatrix3::identity(); JOINTS_MAX + 1],
            tool: IsometryMatrix3::identity(),
        };
        let mut pose = IsometryMatrix3::identity();
        let (sines, cosines) = turns(q_rad);
        let turned = self.links.iter().zip(sines.iter().zip(&cosines));
        for ((link, (sin, cos)), to) in turned.zip(frames.links.iter_mut().skip(1)) {
            pose *= link.turned(*sin, *cos);
            *to = pose;
        }
        frames.tool = pose * self.mount;
        frames
    }

    /// Returns the position of a point of the tool mount in the base frame. Equals the result from
    /// [`KinematicChain::frames`] in a third of the time, because it carries the point inwards and no frame outwards.
    ///
    /// # Panics
    /// As [`KinematicChain::forward`].
    #[must_use]
    pub fn point(&self, q_rad: &JointVector, of_mount_m: &Point3<f64>) -> Point3<f64> {
        self.must_fit(q_rad);
        let (sines, cosines) = turns(q_rad);
        let mut point = (self.mount * of_mount_m).coords;
        for (link, (sin, cos)) in self.links.iter().zip(sines.iter().zip(&cosines)).rev() {
            point = link.carried(&point, *sin, *cos);
        }
        point.into()
    }

    /// Panics at angles of another arm: a joint without an angle has no place to be taken for.
    #[inline(always)]
    fn must_fit(&self, q_rad: &JointVector) {
        assert!(
            q_rad.len() == self.joints.len(),
            "{} joint angles for a chain of {} joints",
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

    /// Returns the condition number of a tip: the largest over the smallest movement that a unit of joint
    /// movement can make. For six joints or more, of position (over 0.25 m) and direction, without rotation about
    /// the tip's axis. For fewer, of position alone, because they cannot serve both everywhere.
    /// 1 is best; very large at a singular pose, never infinite.
    #[must_use]
    pub fn condition(&self, q_rad: &JointVector, tip: &ToolTip) -> f64 {
        self.condition_at(&self.frames(q_rad), tip)
    }

    /// The [`Chain::condition`] where it is more than `most`; `None` where it is not, which mostly
    /// shows without its being worked out.
    #[must_use]
    pub fn condition_over(&self, frames: &LinkFrames, tip: &ToolTip, most: f64) -> Option<f64> {
        if self.joints.len() < SERVES_BOTH {
            let product = place_product(&self.jacobian_at(frames, tip));
            // Of squares a >= b >= c, 4ab is at most (a + b + c)², so that a/c is at most
            // (a + b + c)³ / 4abc: the trace and the determinant say that.
            let within = 4.0 * product.determinant() * most.powi(2);
            if product.trace().powi(3) < within * (1.0 - ROUNDING) {
                return None;
            }
        }
        Some(self.condition_at(frames, tip)).filter(|condition| *condition > most)
    }

    fn condition_at(&self, frames: &LinkFrames, tip: &ToolTip) -> f64 {
        let jacobian = self.jacobian_at(frames, tip);
        if self.joints.len() < SERVES_BOTH {
            return spread(&eigenvalues(&place_product(&jacobian)));
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
        // The direction left out is the smallest by construction, and no shortcoming.
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
        spread(&kept)
    }
}

impl JointRotation {
    fn new(joint: &RevoluteJoint) -> Self {
        let still = *joint.origin.rotation.to_rotation_matrix().matrix();
        let cross = joint.axis.cross_matrix();
        Self {
            still,
            turning: still * cross,
            bending: still * cross * cross,
            axis: joint.axis.into_inner(),
            origin: joint.origin.translation.vector,
        }
    }

    /// A point beyond the joint, in the frame before it.
    #[inline(always)]
    fn carried(&self, point: &Vector3<f64>, sin: f64, cos: f64) -> Vector3<f64> {
        let along = self.axis * (self.axis.dot(point) * (1.0 - cos));
        let turned = point * cos + self.axis.cross(point) * sin + along;
        self.still * turned + self.origin
    }

    fn turned(&self, sin: f64, cos: f64) -> IsometryMatrix3<f64> {
        let rotation = self.still + self.turning * sin + self.bending * (1.0 - cos);
        IsometryMatrix3::from_parts(
            self.origin.into(),
            nalgebra::Rotation3::from_matrix_unchecked(rotation),
        )
    }
}

/// Metres that weigh as much as a radian.
const LENGTH_M: f64 = 0.25;

/// Number of joints from which position and direction can be reached everywhere.
const SERVES_BOTH: usize = 6;

/// Bound, with a large margin, of the rounding error in sums and products of a few numbers.
const ROUNDING: f64 = 1e-6;

/// The sine and the cosine of every joint, of 0 beyond the last.
#[inline(always)]
fn turns(q_rad: &JointVector) -> ([f64; JOINTS_MAX], [f64; JOINTS_MAX]) {
    let mut angles = [0.0; JOINTS_MAX];
    for (angle, q) in angles.iter_mut().zip(q_rad.iter()) {
        *angle = *q;
    }
    let [first @ .., _] = angles;
    if q_rad.len() == JOINTS_MAX {
        return sincos::sin_cos(&angles);
    }
    // Mostly it is missing, and they are worked out in pairs.
    let ([a, b, c, d, e, f], [u, v, w, x, y, z]) = sincos::sin_cos(&first);
    ([a, b, c, d, e, f, 0.0], [u, v, w, x, y, z, 1.0])
}

/// Its eigenvalues are the squares of how far joints move a tip one way and another.
fn place_product(jacobian: &Jacobian) -> Matrix3<f64> {
    let mut product = Matrix3::zeros();
    for [x, y, z, ..] in jacobian.iter() {
        let of = Vector3::new(*x, *y, *z) / LENGTH_M;
        product += of * of.transpose();
    }
    product
}

/// Of a symmetric matrix, in closed form: this is asked of every waypoint and every sample.
fn eigenvalues(of: &Matrix3<f64>) -> Vector3<f64> {
    let middle = of.trace() / 3.0;
    let around = of - Matrix3::identity() * middle;
    let size = (around.norm_squared() / 6.0).sqrt();
    if size <= f64::EPSILON * middle.abs() {
        return Vector3::repeat(middle);
    }
    let turn = ((around / size).determinant() / 2.0)
        .clamp(-1.0, 1.0)
        .acos()
        / 3.0;
    let third = std::f64::consts::TAU / 3.0;
    let at = |angle: f64| middle + 2.0 * size * angle.cos();
    Vector3::new(at(turn), at(turn + third), at(turn - third))
}

/// The root of the largest over the smallest.
fn spread<const R: usize>(squares: &SVector<f64, R>) -> f64 {
    (squares.max() / squares.min().max(1e-12)).max(1.0).sqrt()
}

fn matrices(pose: &Isometry3<f64>) -> IsometryMatrix3<f64> {
    IsometryMatrix3::from_parts(pose.translation, pose.rotation.to_rotation_matrix())
}

#[cfg(test)]
mod tests;
