//! Observes torque on the joints that neither the arm's weight nor its motion explains: something pushes the arm, or the
//! tip presses on something.
//!
//! What the motors give is the reported load times the servo's torque, which its yield tells (`joint_torque.rs`, `SagLead`).
//! Gravity, inertia and damping are taken off. While the tip is in the air, the damping, which differs by a factor of three
//! between two variants of one servo, and what a joint carries besides are learned within bounds. Arms without masses,
//! servo figures or loads are not observed.

use std::fmt;
use std::time::Duration;

use super::clearance::tip_m;
use super::joint_torque::{JointReading, JointTorque, MovedTorque};
use arm::ArmModel;
use base::units::{ArmMeasurement, ClockInstant, JointVector};
use kin::ToolTip;
use nalgebra::Vector3;
use scene::{Scene, SurfaceProjection};

/// Force at the tip that ends a motion, beyond what the model explains: a pen that draws presses with some of it.
const FORCE_N: f64 = 3.25;

/// Torque on each servo that ends a motion however short the lever to the tip is: above what friction at rest leaves open.
const TORQUE_MIN_N_M: f64 = 0.45;

/// Shortest lever by which a torque is converted to a force.
const LEVER_MIN_M: f64 = 0.05;

/// A disturbance lasts at least this long.
const PUSH_TIME: Duration = Duration::from_millis(30);

/// Doubt of the learned damping of a servo, for each radian a second.
const DAMPING_DOUBT_N_M_S: f64 = 0.5;

/// The damping is learned from this multiple of its figure on, up to this multiple for each square of the supply over the
/// figures' own: windings for a higher supply damp as much more.
const DAMPING_MIN: f64 = 0.8;
const DAMPING_MAX: f64 = 1.1;

/// How fast the damping is learned.
const DAMPING_RATE_HZ: f64 = 8.0;

/// Square of the speed, in radians a second, below which a damping is hardly learned.
const DAMPING_SPEED_2: f64 = 0.05;

/// What a joint carries is learned while it is slower than this, far from a disturbance, and with this time constant;
/// faster at first, when nothing is known.
const SLOW_RAD_S: f64 = 0.3;
const LEARN_BELOW: f64 = 0.6;
const LEARN_S: f64 = 2.0;
const LEARN_FIRST_S: f64 = 0.3;

/// A tip whose goal is higher over the sheet than this is in the air, once it was for [`AIR_TIME`].
const AIR_MM: f64 = 3.0;
const AIR_TIME: Duration = Duration::from_millis(200);

/// What pushes an arm, as the force at the tip that would load a joint as much.
#[derive(Clone, Debug, PartialEq)]
pub struct Disturbance {
    /// The joint that feels it most.
    pub joint: String,
    /// The force, in whole newtons.
    pub force_n: u32,
    /// The force that ends a motion there, in whole newtons.
    pub limit_n: u32,
    /// The tip's place on the sheet and its height over it, in whole millimetres.
    pub at_mm: [i32; 3],
}

impl fmt::Display for Disturbance {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            joint,
            force_n,
            limit_n,
            at_mm: [x, y, height],
        } = self;
        write!(
            f,
            "{joint} feels a force equal to {force_n} N at the tip (limit: {limit_n} N) at ({x}, {y}) mm, {height} mm over the sheet. Something pushes the arm or blocks it. Next: free it, then `reset`"
        )
    }
}

/// Where the tip of an arm is sent, and how strong its servos are.
#[derive(Clone, Copy, Debug)]
pub(super) struct ObservedPlace<'a> {
    pub(super) scene: &'a Scene,
    pub(super) pen: usize,
    pub(super) goal_rad: &'a JointVector,
    /// Torque of one servo with full load.
    pub(super) strength_n_m: f64,
}

impl ObservedPlace<'_> {
    fn project(&self, joints_rad: &JointVector) -> Option<SurfaceProjection> {
        let tip_m = tip_m(self.scene, self.pen, joints_rad)?;
        Some(self.scene.surface.project(&tip_m))
    }

    fn tip(&self) -> Option<ToolTip> {
        let pen = self.scene.pen(self.pen)?;
        Some(ToolTip {
            point_m: pen.tip_m,
            axis: pen.axis,
        })
    }
}

/// The state of the observation.
#[derive(Debug)]
pub(super) struct DisturbanceObserver {
    joints: Vec<ObservedJoint>,
    damping_figure_n_m_s: f64,
    /// Of one servo, once it is known from which supply on.
    damping_n_m_s: Option<f64>,
    learned_s: f64,
    air_since: Option<ClockInstant>,
    pushed_since: Option<ClockInstant>,
    read_at: Option<ClockInstant>,
}

#[derive(Debug)]
struct ObservedJoint {
    torque: JointTorque,
    now: Option<ObservedTorque>,
}

/// A disturbance of a joint, and what of it ends a motion.
#[derive(Clone, Copy, Debug)]
struct ObservedTorque {
    moved: MovedTorque,
    lever_m: f64,
    disturbance_n_m: f64,
    limit_n_m: f64,
}

impl ObservedTorque {
    fn ratio(&self) -> f64 {
        self.disturbance_n_m.abs() / self.limit_n_m
    }

    fn newtons(&self, torque_n_m: f64) -> u32 {
        whole(torque_n_m.abs() / self.lever_m.max(LEVER_MIN_M)).unsigned_abs()
    }
}

impl DisturbanceObserver {
    /// Creates the observer of an arm; `None` where its masses or its servos' figures are not known.
    pub(super) fn new(arm: &ArmModel) -> Option<Self> {
        let figures = arm.file.servo.as_ref()?;
        if arm.file.masses.is_empty() {
            return None;
        }
        let joints = (0..arm.dof()).map(|joint| ObservedJoint {
            torque: JointTorque::new(arm, figures, joint),
            now: None,
        });
        Some(Self {
            joints: joints.collect(),
            damping_figure_n_m_s: figures.damping_n_m_s.get(),
            damping_n_m_s: None,
            learned_s: 0.0,
            air_since: None,
            pushed_since: None,
            read_at: None,
        })
    }

    /// Evaluates a reading and returns a disturbance that has lasted. A repeated reading is ignored, and so is one without
    /// every position and load.
    pub(super) fn update(
        &mut self,
        place: &ObservedPlace<'_>,
        measured: &ArmMeasurement,
    ) -> Option<Disturbance> {
        let scene = place.scene;
        let at = measured.at;
        let is_read = measured.position_rad.len() == scene.arm.dof();
        let before = self.read_at.replace(at);
        if before == Some(at) || !is_read {
            return None;
        }
        let period_s = before.map_or(0.0, |before| at.seconds_since(before));
        self.observe(place, measured, period_s)?;
        if self.is_in_air(place, at) {
            self.learn(period_s);
        }
        let joints = self.joints.iter().enumerate();
        let observed = joints.filter_map(|(joint, observed)| Some((joint, observed.now?)));
        let worst = observed.max_by(|(_, a), (_, b)| a.ratio().total_cmp(&b.ratio()));
        let Some((joint, worst)) = worst.filter(|(_, worst)| worst.ratio() > 1.0) else {
            self.pushed_since = None;
            return None;
        };
        if at.since(*self.pushed_since.get_or_insert(at)) < PUSH_TIME {
            return None;
        }
        let projected = place.project(&measured.position_rad)?;
        let [x, y] = projected.at_mm;
        Some(Disturbance {
            joint: scene.arm.joint_name(joint),
            force_n: worst.newtons(worst.disturbance_n_m),
            limit_n: worst.newtons(worst.limit_n_m),
            at_mm: [x, y, projected.height_mm].map(whole),
        })
    }

    /// Computes the disturbance of every joint; `None` where a position or a load is missing.
    fn observe(
        &mut self,
        place: &ObservedPlace<'_>,
        measured: &ArmMeasurement,
        period_s: f64,
    ) -> Option<()> {
        let arm = &place.scene.arm;
        let position_rad = &measured.position_rad;
        let gravity_n_m = arm.load.torque_n_m(&arm.chain, position_rad);
        let jacobian = arm.chain.jacobian(position_rad, &place.tip()?);
        for (index, joint) in self.joints.iter_mut().enumerate() {
            let moved = joint.torque.update(&JointReading {
                measured,
                position_rad: *position_rad.get(index)?,
                goal_rad: *place.goal_rad.get(index)?,
                gravity_n_m: *gravity_n_m.get(index)?,
                strength_n_m: place.strength_n_m,
                period_s,
            })?;
            let figure = self.damping_figure_n_m_s * moved.supply_ratio.max(1.0);
            let damping_n_m_s = *self.damping_n_m_s.get_or_insert(figure);
            let [x, y, z, ..] = *jacobian.get(index)?;
            let lever_m = x.hypot(y).hypot(z);
            let servos = joint.torque.servos();
            let damping_n_m = damping_n_m_s * servos * moved.speed_rad_s;
            let doubt_n_m = DAMPING_DOUBT_N_M_S * servos * moved.speed_rad_s.abs();
            joint.now = Some(ObservedTorque {
                moved,
                lever_m,
                disturbance_n_m: moved.torque_n_m - damping_n_m,
                limit_n_m: (TORQUE_MIN_N_M * servos).max(FORCE_N * lever_m) + doubt_n_m,
            });
        }
        Some(())
    }

    fn is_in_air(&mut self, place: &ObservedPlace<'_>, at: ClockInstant) -> bool {
        let height_mm = place.project(place.goal_rad).map(|at| at.height_mm);
        if height_mm.is_none_or(|height_mm| height_mm <= AIR_MM) {
            self.air_since = None;
            return false;
        }
        at.since(*self.air_since.get_or_insert(at)) >= AIR_TIME
    }

    /// Learns the damping of the servos, and what slow joints carry.
    fn learn(&mut self, period_s: f64) {
        self.learned_s += period_s;
        let time_s = LEARN_S.min(LEARN_FIRST_S + self.learned_s);
        let mut fit = (0.0, DAMPING_SPEED_2);
        let mut supply_ratio: f64 = 1.0;
        for joint in &mut self.joints {
            let Some(now) = joint.now else {
                continue;
            };
            let speed_rad_s = now.moved.speed_rad_s * joint.torque.servos();
            supply_ratio = supply_ratio.max(now.moved.supply_ratio);
            fit.1 += speed_rad_s * speed_rad_s;
            let fraction = period_s / (time_s + period_s);
            if now.ratio() < 1.0 {
                fit.0 += now.disturbance_n_m * speed_rad_s;
            }
            if now.ratio() < LEARN_BELOW && speed_rad_s.abs() < SLOW_RAD_S {
                joint.torque.learn(now.disturbance_n_m, fraction);
            }
        }
        let figure = self.damping_figure_n_m_s;
        let (lowest, highest) = (
            DAMPING_MIN * figure,
            DAMPING_MAX * figure * supply_ratio * supply_ratio,
        );
        let change = DAMPING_RATE_HZ * period_s * fit.0 / fit.1;
        self.damping_n_m_s = self
            .damping_n_m_s
            .map(|damping| (damping + change).clamp(lowest, highest));
    }
}

/// How the joints bear what pushes the tip along the sheet's normal, in one reading.
#[derive(Clone, Copy, Debug)]
pub struct NormalLoads {
    /// Torque on each joint for each newton along the normal.
    pub levers_m: JointVector,
    /// Torque of each joint's motors beyond the arm's weight: its friction, and what pushes the tip.
    pub torque_n_m: JointVector,
}

/// Returns what the joints bear of a push along the sheet's normal; `None` where the loads do not tell it.
pub(super) fn normal_loads(
    place: &ObservedPlace<'_>,
    measured: &ArmMeasurement,
) -> Option<NormalLoads> {
    let (scene, arm) = (place.scene, &place.scene.arm);
    let figures = arm.file.servo.as_ref();
    let figures = figures.filter(|_| !arm.file.masses.is_empty())?;
    let position_rad = &measured.position_rad;
    if position_rad.len() != arm.dof() {
        return None;
    }
    let at_mm = place.project(position_rad)?.at_mm;
    let normal = scene.surface.at(at_mm).normal;
    let gravity_n_m = arm.load.torque_n_m(&arm.chain, position_rad);
    let jacobian = arm.chain.jacobian(position_rad, &place.tip()?);
    let levers: Vec<f64> = jacobian
        .iter()
        .map(|[x, y, z, ..]| normal.dot(&Vector3::new(*x, *y, *z)))
        .collect();
    let torques = gravity_n_m.iter().enumerate().map(|(joint, gravity)| {
        let torque = JointTorque::new(arm, figures, joint);
        torque.carried_n_m(measured, *gravity, place.strength_n_m)
    });
    Some(NormalLoads {
        levers_m: JointVector::from_slice(&levers),
        torque_n_m: JointVector::from_slice(&torques.collect::<Option<Vec<f64>>>()?),
    })
}

#[expect(
    clippy::cast_possible_truncation,
    reason = "saturates; for messages only"
)]
fn whole(value: f64) -> i32 {
    value.round() as i32
}
