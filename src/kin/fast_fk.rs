//! A chain folded for speed: every joint turns about the third axis of its frame, and between two
//! joints there is a translation and a rotation about the first axis. Any chain can be written this
//! way.

#![expect(
    clippy::indexing_slicing,
    reason = "vectors and matrices of fixed size, indexed below it"
)]

use nalgebra::{Isometry3, Matrix3, Rotation3, SVector, Unit, Vector3};

use super::sincos::sin_cos;
use super::{RevoluteJoint, ToolTip};

/// Sine below which two rotations about the same axis cannot be distinguished: one of them takes
/// all.
const STRAIGHT: f64 = 1e-12;

/// A folded chain.
#[derive(Clone, Debug)]
pub(super) struct FoldedChain {
    /// Rotation before the first joint.
    start: Matrix3<f64>,
    joints: Vec<FoldedJoint>,
    /// The tool mount in the last joint's frame.
    mount: Isometry3<f64>,
}

/// Transform from the previous joint to this one.
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
    /// The axes of the last joint's frame.
    pub(super) last: [Vector3<f64>; 3],
    /// Metres per radian.
    pub(super) linear: [Vector3<f64>; N],
    /// Radians per radian: the joints' axes in the base frame.
    pub(super) angular: [Vector3<f64>; N],
}

impl FoldedChain {
    pub(super) fn new(joints: &[RevoluteJoint], mount: &Isometry3<f64>) -> Self {
        // `before` rotates from the folded frame of the previous joint to its own frame.
        let mut before = Rotation3::identity();
        let mut start = Matrix3::identity();
        let mut folded: Vec<FoldedJoint> = Vec::with_capacity(joints.len());
        for joint in joints {
            let to_third_axis = to_third(&joint.axis);
            let [first, lean, last] =
                euler_zxz(&(before * joint.origin.rotation.to_rotation_matrix() * to_third_axis));
            match folded.last_mut() {
                Some(previous) => previous.zero_rad += first,
                None => start = *Rotation3::from_axis_angle(&Vector3::z_axis(), first).matrix(),
            }
            let rotation = Rotation3::from_axis_angle(&Vector3::z_axis(), -first) * before;
            let (lean_sin, lean_cos) = lean.sin_cos();
            folded.push(FoldedJoint {
                step_m: rotation * joint.origin.translation.vector,
                lean_sin,
                lean_cos,
                zero_rad: last,
            });
            before = to_third_axis.inverse();
        }
        Self {
            start,
            joints: folded,
            mount: Isometry3::from_parts(
                (before * mount.translation.vector).into(),
                (before * mount.rotation.to_rotation_matrix()).into(),
            ),
        }
    }

    /// Expresses a tip of the tool mount in the last joint's frame.
    pub(super) fn fold_tip(&self, tip: &ToolTip) -> FoldedTip {
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
        for ((angle, q), folded) in angles.iter_mut().zip(q.iter()).zip(&self.joints) {
            *angle = q + folded.zero_rad;
        }
        let (sines, cosines) = sin_cos(&angles);
        let (mut origins, mut angular) = ([Vector3::zeros(); N], [Vector3::zeros(); N]);
        let mut origin = Vector3::zeros();
        let [mut x, mut y, mut z] = [0, 1, 2].map(|c| self.start.column(c).into_owned());
        for (index, folded) in self.joints.iter().take(N).enumerate() {
            origin += x * folded.step_m.x + y * folded.step_m.y + z * folded.step_m.z;
            (y, z) = rotate(y, z, folded.lean_sin, folded.lean_cos);
            (origins[index], angular[index]) = (origin, z);
            (x, y) = rotate(x, y, sines[index], cosines[index]);
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

/// Rotates two axes of a frame about the third.
#[inline(always)]
fn rotate(a: Vector3<f64>, b: Vector3<f64>, sin: f64, cos: f64) -> (Vector3<f64>, Vector3<f64>) {
    (a * cos + b * sin, b * cos - a * sin)
}

/// Returns a rotation that brings the third axis to another.
fn to_third(axis: &Unit<Vector3<f64>>) -> Rotation3<f64> {
    match Rotation3::rotation_between(&Vector3::z(), axis) {
        Some(shortest) => shortest,
        // Opposite directions: half a turn about any axis at right angles.
        None => Rotation3::from_axis_angle(&Vector3::x_axis(), std::f64::consts::PI),
    }
}

/// Splits a rotation into turns about the third, the first and again the third axis.
fn euler_zxz(rotation: &Rotation3<f64>) -> [f64; 3] {
    let m = rotation.matrix();
    let sin = m[(0, 2)].hypot(m[(1, 2)]);
    let lean = sin.atan2(m[(2, 2)]);
    if sin < STRAIGHT {
        // Parallel or opposite: both outer turns are about the same line.
        return [0.0, lean, m[(1, 0)].atan2(m[(0, 0)]) * m[(2, 2)].signum()];
    }
    [
        m[(0, 2)].atan2(-m[(1, 2)]),
        lean,
        m[(2, 0)].atan2(m[(2, 1)]),
    ]
}
