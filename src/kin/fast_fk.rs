//! A chain folded for speed: every joint turns about the third axis of its frame, and what lies
//! between two joints is a step and a lean about the first axis. Any chain can be written so.

#![expect(
    clippy::indexing_slicing,
    reason = "vectors and matrices of fixed size, indexed below it"
)]

use nalgebra::{Isometry3, Matrix3, Rotation3, SVector, Unit, Vector3};

use super::sincos::sin_cos;
use super::{RevoluteJoint, ToolTip};

/// Below this, two turns about the same axis cannot be told apart: all is given to one of them.
const STRAIGHT: f64 = 1e-12;

/// A whole chain.
#[derive(Clone, Debug)]
pub(super) struct FoldedChain {
    /// Before the first lean.
    start: Matrix3<f64>,
    spins: Vec<FoldedJoint>,
    /// The tool mount in the last joint's frame.
    mount: Isometry3<f64>,
}

/// From the joint before to this one.
#[derive(Clone, Copy, Debug)]
struct FoldedJoint {
    step_m: Vector3<f64>,
    lean_sin: f64,
    lean_cos: f64,
    zero_rad: f64,
}

/// A tip in the last joint's frame.
#[derive(Clone, Copy, Debug)]
pub(super) struct FoldedTip {
    point_m: Vector3<f64>,
    axis: Vector3<f64>,
}

/// Pose of a tip, and its derivatives by each joint.
#[derive(Clone, Copy, Debug)]
pub(super) struct TipMotion<const N: usize> {
    /// In the base frame, m.
    pub(super) point: Vector3<f64>,
    pub(super) axis: Vector3<f64>,
    /// The last joint's frame, a column an axis.
    pub(super) last: [Vector3<f64>; 3],
    /// Metres a radian.
    pub(super) linear: [Vector3<f64>; N],
    /// Radians a radian: the joints' axes in the base frame.
    pub(super) angular: [Vector3<f64>; N],
}

impl FoldedChain {
    pub(super) fn new(joints: &[RevoluteJoint], mount: &Isometry3<f64>) -> Self {
        // `before` leads from the folded frame of the joint before to that of its own.
        let mut before = Rotation3::identity();
        let mut start = Matrix3::identity();
        let mut spins: Vec<FoldedJoint> = Vec::with_capacity(joints.len());
        for joint in joints {
            let own = to_third(&joint.axis);
            let [first, lean, last] =
                in_three(&(before * joint.origin.rotation.to_rotation_matrix() * own));
            match spins.last_mut() {
                Some(spin) => spin.zero_rad += first,
                None => start = *Rotation3::from_axis_angle(&Vector3::z_axis(), first).matrix(),
            }
            let ahead = Rotation3::from_axis_angle(&Vector3::z_axis(), -first) * before;
            let (lean_sin, lean_cos) = lean.sin_cos();
            spins.push(FoldedJoint {
                step_m: ahead * joint.origin.translation.vector,
                lean_sin,
                lean_cos,
                zero_rad: last,
            });
            before = own.inverse();
        }
        Self {
            start,
            spins,
            mount: Isometry3::from_parts(
                (before * mount.translation.vector).into(),
                (before * mount.rotation.to_rotation_matrix()).into(),
            ),
        }
    }

    /// A tip of the tool mount, told in the last joint's frame.
    pub(super) fn hold(&self, tip: &ToolTip) -> FoldedTip {
        FoldedTip {
            point_m: (self.mount * tip.point_m).coords,
            axis: self.mount.rotation * tip.axis.into_inner(),
        }
    }

    /// Returns the orientation of the last joint's frame for an orientation of the tool mount.
    pub(super) fn last_frame(&self, mount: &nalgebra::UnitQuaternion<f64>) -> [Vector3<f64>; 3] {
        let last = (mount * self.mount.rotation.inverse()).to_rotation_matrix();
        [0, 1, 2].map(|column| last.matrix().column(column).into_owned())
    }

    /// Returns the tip's pose and derivatives; `N` is the number of joints.
    #[inline(always)]
    pub(super) fn motion<const N: usize>(
        &self,
        q: &SVector<f64, N>,
        tip: &FoldedTip,
    ) -> TipMotion<N> {
        let mut angles = [0.0; N];
        for ((angle, q), spin) in angles.iter_mut().zip(q.iter()).zip(&self.spins) {
            *angle = q + spin.zero_rad;
        }
        let (sines, cosines) = sin_cos(&angles);
        let (mut origins, mut angular) = ([Vector3::zeros(); N], [Vector3::zeros(); N]);
        let mut origin = Vector3::zeros();
        let [mut x, mut y, mut z] = [0, 1, 2].map(|c| self.start.column(c).into_owned());
        for (index, spin) in self.spins.iter().take(N).enumerate() {
            origin += x * spin.step_m.x + y * spin.step_m.y + z * spin.step_m.z;
            (y, z) = turned(y, z, spin.lean_sin, spin.lean_cos);
            (origins[index], angular[index]) = (origin, z);
            (x, y) = turned(x, y, sines[index], cosines[index]);
        }
        let point = origin + x * tip.point_m.x + y * tip.point_m.y + z * tip.point_m.z;
        let mut linear = [Vector3::zeros(); N];
        for index in 0..N {
            linear[index] = angular[index].cross(&(point - origins[index]));
        }
        TipMotion {
            point,
            axis: x * tip.axis.x + y * tip.axis.y + z * tip.axis.z,
            last: [x, y, z],
            linear,
            angular,
        }
    }
}

/// Two axes of a frame after a turn about the third.
#[inline(always)]
fn turned(a: Vector3<f64>, b: Vector3<f64>, sin: f64, cos: f64) -> (Vector3<f64>, Vector3<f64>) {
    (a * cos + b * sin, b * cos - a * sin)
}

/// A rotation that brings the third axis there.
fn to_third(axis: &Unit<Vector3<f64>>) -> Rotation3<f64> {
    match Rotation3::rotation_between(&Vector3::z(), axis) {
        Some(shortest) => shortest,
        // Opposite directions: half a turn about any axis across them.
        None => Rotation3::from_axis_angle(&Vector3::x_axis(), std::f64::consts::PI),
    }
}

/// The turns about the third, the first and the third axis again that make up a rotation.
fn in_three(of: &Rotation3<f64>) -> [f64; 3] {
    let m = of.matrix();
    let sin = m[(0, 2)].hypot(m[(1, 2)]);
    let lean = sin.atan2(m[(2, 2)]);
    if sin < STRAIGHT {
        // Upright or upside down: the two outer turns are about one line.
        return [0.0, lean, m[(1, 0)].atan2(m[(0, 0)]) * m[(2, 2)].signum()];
    }
    [
        m[(0, 2)].atan2(-m[(1, 2)]),
        lean,
        m[(2, 0)].atan2(m[(2, 1)]),
    ]
}
