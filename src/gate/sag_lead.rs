//! Leads goals against gravity, so that an arm whose servos yield is where its path says.
//!
//! How much a joint yields to a newton metre is known from its servos' figures, their gain P and what a calibration added.
//! What that leaves is seen by the encoders: while the tip moves freely and slowly, the yield is corrected towards what
//! explains the readings, never below 0 and never above what the weakest plausible servo explains. So a lead never points
//! with gravity, and an obstacle cannot raise it further.

use std::time::Duration;

use arm::ArmModel;
use base::units::{ArmMeasurement, JointVector};
use plan::PERIOD;

/// Figures of the same servo differ by this factor, from one who measured it to the other and from one supply to the other.
const WEAKEST: f64 = 1.5;

/// Largest lead of a joint: nine degrees.
const LEAD_RAD_MAX: f64 = 9.0 * std::f64::consts::PI / 180.0;

/// Time in which the goal that was sent last becomes the lead that a motion needs.
const SETTLE: Duration = Duration::from_millis(400);

/// Speed of a joint from which its readings teach nothing: by then damping is most of what they show.
const SPEED_RAD_S: f64 = 0.3;

/// Speed below which friction is not what it is in motion.
const STICKING_RAD_S: f64 = 0.02;

/// Weight of what is known before the first reading, and most that readings may have together, as the sum of squared
/// torques in newton metres.
const PRIOR_N2_M2: f64 = 1.0;
const READINGS_N2_M2: f64 = 100.0;

/// Deviation of a reading from what the present yield explains beyond which an obstacle is behind it, in addition to as much
/// as the yield may be wrong by.
const UNEXPLAINED_RAD: f64 = 0.02;

/// Goals on the path that are kept: joints lag behind by about half of them.
const PAST: usize = 9;

/// What is known of how an arm's joints yield, and the lead of its goals. Kept from one motion to the next.
#[derive(Clone, Copy, Debug)]
pub struct SagLead {
    /// Yield by the servos' figures alone.
    figures_rad_per_n_m: JointVector,
    /// Yield as known now, and the largest that is plausible.
    yield_rad_per_n_m: JointVector,
    most_rad_per_n_m: JointVector,
    /// Sums over the readings, of squared torques and of torques by deviations.
    squares_n2_m2: JointVector,
    products_rad_n_m: JointVector,
    damping_n_m_s: f64,
    friction_n_m: f64,
    armature_kg_m2: f64,
    strength_n_m: f64,
    /// The goals that were sent last; `None` where the servos hold where they were found. The ones before.
    sent_rad: Option<JointVector>,
    sent_before_rad: Option<JointVector>,
    /// What the goals lead by at a motion's beginning in addition to the lead that they need, and ticks since then.
    carried_rad: JointVector,
    ticks: u32,
    /// The last goals on the path, the newer first.
    past_rad: [Option<JointVector>; PAST],
}

impl SagLead {
    /// Creates the lead of an arm whose servos have these gains.
    #[must_use]
    pub fn new(arm: &ArmModel, gain_p: impl Fn(u8) -> Option<u8>, supply_v: Option<f64>) -> Self {
        let figures = arm.servo_yield_rad_per_n_m(gain_p, supply_v);
        let calibrated = arm.calibrated_yield_rad_per_n_m();
        let known = figures.zip(&calibrated, |figures, more| (figures + more).max(0.0));
        let servo = arm.file.servo.as_ref();
        Self {
            figures_rad_per_n_m: figures,
            yield_rad_per_n_m: known,
            most_rad_per_n_m: known.zip(&figures, f64::max).map(|_, most| most * WEAKEST),
            squares_n2_m2: known.map(|_, _| PRIOR_N2_M2),
            products_rad_n_m: known.map(|_, known| known * PRIOR_N2_M2),
            damping_n_m_s: servo.map_or(0.0, |servo| servo.damping_n_m_s.get()),
            friction_n_m: servo.map_or(0.0, |servo| servo.friction_n_m.get()),
            armature_kg_m2: servo.map_or(0.0, |servo| servo.armature_kg_m2.get()),
            strength_n_m: servo.map_or(0.0, |servo| servo.strength_n_m(supply_v)),
            sent_before_rad: None,
            sent_rad: None,
            carried_rad: JointVector::zeros(arm.dof()),
            ticks: 0,
            past_rad: [None; PAST],
        }
    }

    /// Creates the lead of an arm of whose servos nothing is known.
    #[must_use]
    pub fn none(arm: &ArmModel) -> Self {
        Self::new(arm, |_| None, None)
    }

    /// Forgets the goals that were sent: the servos hold where they were found.
    pub fn forget_goals(&mut self) {
        self.sent_rad = None;
    }

    /// Begins a motion whose path starts here: its first goals are those that were sent last.
    pub(super) fn begin(&mut self, arm: &ArmModel, first_rad: &JointVector) {
        let sent_rad = *self.sent_rad.get_or_insert(*first_rad);
        let needed_rad = self.needed_rad(arm, first_rad);
        self.carried_rad = sent_rad
            .zip(first_rad, |sent, first| sent - first)
            .zip(&needed_rad, |led, needed| {
                (led - needed).clamp(-LEAD_RAD_MAX, LEAD_RAD_MAX)
            });
        (self.ticks, self.past_rad) = (0, [None; PAST]);
    }

    /// Returns a reading with the joints of an arm that was just energised raised by what gravity explains.
    pub(super) fn raised(
        &self,
        arm: &ArmModel,
        first_rad: &JointVector,
        measured: &ArmMeasurement,
    ) -> ArmMeasurement {
        let mut raised = measured.clone();
        if self.sent_rad.is_none() && measured.position_rad.len() == first_rad.len() {
            let load_n_m = arm.load.torque_n_m(&arm.chain, first_rad);
            let sunk_rad = load_n_m.zip(&self.most_rad_per_n_m, |load, most| load * most);
            let off_rad = (measured.position_rad).zip(first_rad, |at, first| at - first);
            let explained = off_rad.zip(&sunk_rad, |off, sunk| {
                off.clamp(sunk.min(0.0), sunk.max(0.0))
            });
            raised.position_rad = measured
                .position_rad
                .zip(&explained, |at, explained| at - explained);
        }
        raised
    }

    /// Returns the goals to send for a place on the path.
    pub(super) fn goal_rad(&mut self, arm: &ArmModel, path_rad: &JointVector) -> JointVector {
        let fraction = f64::from(self.ticks) * PERIOD.as_secs_f64() / SETTLE.as_secs_f64();
        self.ticks = self.ticks.saturating_add(1);
        let left = 1.0 - super::execute::smooth_step(fraction.min(1.0));
        let lead_rad = self
            .needed_rad(arm, path_rad)
            .zip(&self.carried_rad, |needed, carried| needed + carried * left);
        let sent_rad = within_limits(arm, path_rad, &lead_rad);
        self.past_rad.rotate_right(1);
        if let Some(newest) = self.past_rad.first_mut() {
            *newest = Some(*path_rad);
        }
        self.sent_before_rad = self.sent_rad.replace(sent_rad);
        sent_rad
    }

    /// Returns the lead against gravity in a pose.
    fn needed_rad(&self, arm: &ArmModel, at_rad: &JointVector) -> JointVector {
        let load_n_m = arm.load.torque_n_m(&arm.chain, at_rad);
        load_n_m.zip(&self.yield_rad_per_n_m, |load, yields| {
            (-load * yields).clamp(-LEAD_RAD_MAX, LEAD_RAD_MAX)
        })
    }

    /// Corrects the yields by a reading of an arm that moves freely along its path.
    pub(super) fn learn(&mut self, arm: &ArmModel, measured: &ArmMeasurement) {
        let at_rad = &measured.position_rad;
        let [Some(now), .., Some(middle), _, _, _, Some(before)] = self.past_rad else {
            return;
        };
        let Some(sent_rad) = self
            .sent_before_rad
            .filter(|sent| sent.len() == at_rad.len())
        else {
            return;
        };
        if !at_rad.is_finite() {
            return;
        }
        let span_s = PERIOD.as_secs_f64() * (PAST - 1) as f64;
        let speed = now.zip(&before, |now, before| (now - before) / span_s);
        let bend = now
            .zip(&before, |now, before| now + before)
            .zip(&middle, |ends, middle| {
                (ends - 2.0 * middle) / (span_s / 2.0).powi(2)
            });
        let weight = speed.map(|_, speed| (1.0 - speed.abs() / SPEED_RAD_S).max(0.0));
        let torque_n_m =
            self.servo_torque_n_m(&arm.load.torque_n_m(&arm.chain, at_rad), &speed, &bend);
        let off_rad = sent_rad.zip(at_rad, |sent, at| sent - at);
        let weight = weight.zip(&self.surprises(&torque_n_m, &off_rad), |weight, is_free| {
            weight * is_free
        });
        let weighted = torque_n_m.zip(&weight, |torque, weight| torque * weight);
        let add = |sum: f64, more: f64| sum + more;
        self.squares_n2_m2 = self
            .squares_n2_m2
            .zip(&weighted.zip(&torque_n_m, |a, b| a * b), add);
        self.products_rad_n_m = self
            .products_rad_n_m
            .zip(&weighted.zip(&off_rad, |a, b| a * b), add);
        let kept = (self.squares_n2_m2).map(|_, sum| (READINGS_N2_M2 / sum).min(1.0));
        self.squares_n2_m2 = self.squares_n2_m2.zip(&kept, |sum, kept| sum * kept);
        self.products_rad_n_m = self.products_rad_n_m.zip(&kept, |sum, kept| sum * kept);
        self.yield_rad_per_n_m = self
            .products_rad_n_m
            .zip(&self.squares_n2_m2, |products, squares| {
                (products / squares).max(0.0)
            })
            .zip(&self.most_rad_per_n_m, f64::min);
    }

    /// Returns the torque that the servos exert: against gravity, damping, friction and inertia.
    fn servo_torque_n_m(
        &self,
        load_n_m: &JointVector,
        speed_rad_s: &JointVector,
        bend_rad_s2: &JointVector,
    ) -> JointVector {
        let resistance = speed_rad_s.map(|_, speed| {
            let friction = self.friction_n_m * speed / (speed.abs() + STICKING_RAD_S);
            self.damping_n_m_s * speed + friction
        });
        let inertia = bend_rad_s2.map(|_, bend| self.armature_kg_m2 * bend);
        let motion = resistance.zip(&inertia, |resistance, inertia| resistance + inertia);
        motion.zip(load_n_m, |motion, load| motion - load)
    }

    /// Returns 1 for each joint whose deviation a yield may explain, 0 for others: something holds or pushes them.
    fn surprises(&self, torque_n_m: &JointVector, off_rad: &JointVector) -> JointVector {
        let expected = torque_n_m.zip(&self.yield_rad_per_n_m, |torque, yields| torque * yields);
        let unknown = torque_n_m.zip(&self.most_rad_per_n_m, |torque, most| {
            torque.abs() * most + UNEXPLAINED_RAD
        });
        off_rad
            .zip(&expected, |off, expected| (off - expected).abs())
            .zip(&unknown, |surprise, unknown| {
                f64::from(u8::from(surprise <= unknown))
            })
    }

    /// Returns by how much a joint may hang from its path where nothing but gravity holds it back: with gravity, and as far
    /// as twice the weakest plausible servo would yield, less the present lead.
    #[must_use]
    pub fn explained_rad(&self, arm: &ArmModel, path_rad: &JointVector) -> JointVector {
        let load_n_m = arm.load.torque_n_m(&arm.chain, path_rad);
        let unknown = self
            .most_rad_per_n_m
            .zip(&self.yield_rad_per_n_m, |most, known| 2.0 * most - known);
        load_n_m.zip(&unknown, |load, unknown| load * unknown)
    }

    /// Returns the load that gravity puts on each joint's servo in a pose, as a fraction of its strength; `None` where its
    /// strength is not known.
    #[must_use]
    pub fn load_ratio(&self, arm: &ArmModel, path_rad: &JointVector) -> Option<JointVector> {
        let load_n_m = arm.load.torque_n_m(&arm.chain, path_rad);
        let strength_n_m = self.strength_n_m;
        (strength_n_m > 0.0).then(|| load_n_m.map(|_, load| load / strength_n_m))
    }

    /// Returns the goals that were sent last, without the lead that the servos' figures explain: what is left of their
    /// distance from a reading is for a calibration to explain.
    #[must_use]
    pub fn unexplained_goal_rad(&self, arm: &ArmModel, at_rad: &JointVector) -> JointVector {
        let load_n_m = arm.load.torque_n_m(&arm.chain, at_rad);
        let sent_rad = self.sent_rad.unwrap_or(*at_rad);
        let explained = load_n_m.zip(&self.figures_rad_per_n_m, |load, yields| load * yields);
        sent_rad.zip(&explained, |sent, explained| sent + explained)
    }

    /// Returns by how many degrees each joint yields to a newton metre, as known now.
    #[must_use]
    pub fn yield_deg_per_n_m(&self) -> JointVector {
        self.yield_rad_per_n_m.map(|_, yields| yields.to_degrees())
    }

    /// Returns the lead of the goals that were sent last for this place on the path.
    #[must_use]
    pub fn lead_rad(&self, path_rad: &JointVector) -> JointVector {
        let sent_rad = self.sent_rad.unwrap_or(*path_rad);
        sent_rad.zip(path_rad, |sent, path| sent - path)
    }
}

/// Returns goals with their lead, within the joints' limits or no farther beyond them than the path.
fn within_limits(arm: &ArmModel, path_rad: &JointVector, lead_rad: &JointVector) -> JointVector {
    let (lower, upper) = (&arm.limits.lower_rad, &arm.limits.upper_rad);
    path_rad
        .zip(lead_rad, |path, lead| path + lead)
        .zip(&lower.zip(path_rad, f64::min), f64::max)
        .zip(&upper.zip(path_rad, f64::max), f64::min)
}
