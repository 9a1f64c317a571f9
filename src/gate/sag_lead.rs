//! Leads goals against gravity and against the lag of the servos, so that an arm whose servos yield is where its path says.
//!
//! How far each goal has to be ahead is [`JointYield`]'s: at first by the servos' figures, their gain P and what a calibration
//! added, then as the encoders see it. The part against gravity never points with gravity and never exceeds what the weakest
//! plausible servo explains, so an obstacle cannot raise it further. A goal is led no farther than the arm has room for.

use std::time::Duration;

use super::joint_yield::{JointEffort, JointFigures, JointYield, direction};
use super::lead_room::has_room;
use arm::{ArmModel, ServoFigures};
use base::units::{ArmMeasurement, JOINTS_MAX, JointVector};
use plan::PERIOD;
use scene::Scene;

/// Largest lead of a joint against gravity, and because it moves: nine degrees each.
const LEAD_RAD_MAX: f64 = 9.0 * std::f64::consts::PI / 180.0;

/// Time in which the goal that was sent last becomes the lead that a motion needs.
const SETTLE: Duration = Duration::from_millis(400);

/// Push of a pen on the tip for each millimetre of planned depth, and the most that is planned for.
const PUSH_N_PER_MM: f64 = 0.4;
const PUSH_N_MAX: f64 = 0.8;

/// Most that a tip may push beyond that while the joints are brought to their path, and how fast they are, for each second:
/// along a line, and where it stands.
const MORE_PUSH_N: f64 = 0.3;
const PRESS_PER_S: f64 = 1.0;
const PRESS_STANDING_PER_S: f64 = 4.0;

/// Largest deviation that one reading corrects.
const PRESSED_RAD: f64 = 0.02;

/// Time between a goal and the reading that shows the joint there, where its lag is made good.
const DELAY_S: f64 = 0.010;

/// Weight of a reading while the tip draws, where the push of the pen is not known, against one of a tip that is free.
const DRAWING_WEIGHT: f64 = 0.3;

/// Part of a lead that is given up, and taken back in a tick, where the arm has no room for it.
const SHARE_DOWN: f64 = 0.25;
const SHARE_UP: f64 = 0.02;

/// Speed from which a joint moves.
const MOVES_RAD_S: f64 = 0.02;

/// How much of a lead's change is left in the next tick, twice over, so that goals never jump. Motion is looked at as many
/// ticks ahead as that and the servos take.
const LEAD_POLE: f64 = 0.3;
pub(super) const PREVIEW_TICKS: u32 = 4;

/// Change of a lead below which it rests: half a count of 4096.
const RESTS_RAD: f64 = 0.5 * std::f64::consts::TAU / 4096.0;

/// Acceleration of goals that lead, as a multiple of their joint's: the servo's own cap keeps the joint within it.
const LED_ACCELERATION: f64 = 2.0;

/// The variants of one servo are stronger or weaker than its figures by no more than this factor.
const STRONGER: f64 = 1.6;

/// Ticks after which the inertia of what the joints carry is computed anew.
const INERTIA_TICKS: u32 = 10;

/// Ticks that are kept: speeds are those over all of them.
const PAST: usize = 9;
const MIDDLE: usize = PAST / 2;

/// How a push on the tip loads the joints, and how deep the tip is planned to be.
#[derive(Clone, Copy, Debug)]
pub(super) struct TipPush {
    /// Torque of each joint for each newton along the surface's normal.
    pub(super) levers_m: JointVector,
    /// The same for each newton in the direction in which the joint moves the tip.
    pub(super) reaches_m: JointVector,
    /// Planned depth below the surface; below 0 over it.
    pub(super) depth_mm: f64,
}

impl TipPush {
    /// Returns the torque on each joint by what a pen is expected to push with.
    fn load_n_m(&self) -> JointVector {
        let push_n = (PUSH_N_PER_MM * self.depth_mm).clamp(0.0, PUSH_N_MAX);
        self.levers_m.map(|_, lever| lever * push_n)
    }
}

/// What a reading is of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ReadingOf {
    /// An arm whose tip touches nothing, as far as is known.
    FreeTip,
    /// An arm whose pen draws.
    DrawingTip,
    /// Anything else, which teaches nothing.
    Other,
}

/// A place that an arm is led to: where it shall be, where it goes next, and what pushes its tip.
#[derive(Clone, Copy, Debug)]
pub(super) struct LedPlace<'a> {
    pub(super) path_rad: &'a JointVector,
    pub(super) next_rad: &'a JointVector,
    pub(super) push: Option<&'a TipPush>,
}

/// A tick in the past: the path, the goals that were sent before the reading and the load by the pen's push.
#[derive(Clone, Copy, Debug)]
struct PastTick {
    path_rad: JointVector,
    sent_rad: JointVector,
    read_rad: JointVector,
    push_n_m: JointVector,
}

/// What is known of how an arm's joints yield, and the lead of its goals. Kept from one motion to the next.
#[derive(Clone, Copy, Debug)]
pub struct SagLead {
    joints: [JointYield; JOINTS_MAX],
    strength_n_m: f64,
    /// The goals that were sent last; `None` where the servos hold where they were found. The ones before.
    sent_rad: Option<JointVector>,
    sent_before_rad: Option<JointVector>,
    /// The speed of the path at the last goal, and the direction in which friction held each joint back last.
    speed_rad_s: JointVector,
    direction: JointVector,
    /// What the goals lead by at a motion's beginning in addition to the lead that they need, and ticks since then.
    carried_rad: JointVector,
    ticks: u32,
    /// What brings the joints to their path while the tip draws, in addition.
    pressed_rad: JointVector,
    push_n_m: JointVector,
    /// The lead that was needed last, the one that was sent, and its change and that of the path in that tick.
    needed_rad: JointVector,
    lead_rad: JointVector,
    lead_step_rad: JointVector,
    path_step_rad: JointVector,
    path_rad: Option<JointVector>,
    /// Inertia of what the joints carry, where they were some ticks ago.
    carried_kg_m2: JointVector,
    /// Part of the lead that the arm has room for.
    share: f64,
    /// The last ticks on the path, the newer first.
    past: [Option<PastTick>; PAST],
}

impl SagLead {
    /// Creates the lead of an arm whose servos have these gains.
    #[must_use]
    pub fn new(arm: &ArmModel, gain_p: impl Fn(u8) -> Option<u8>, supply_v: Option<f64>) -> Self {
        let figures = arm.servo_yield_rad_per_n_m(gain_p, supply_v);
        let calibrated = arm.calibrated_yield_rad_per_n_m();
        let servo = arm.file.servo.as_ref();
        let mut joints = [JointYield::default(); JOINTS_MAX];
        let servos = arm.servos_per_joint();
        let known = figures.iter().zip(calibrated.iter()).zip(servos.iter());
        for (joint, ((figures, calibrated), servos)) in joints.iter_mut().zip(known) {
            let of_all = |of_one: fn(&ServoFigures) -> f64| servos * servo.map_or(0.0, of_one);
            *joint = JointYield::new(JointFigures {
                yield_rad_per_n_m: *figures,
                calibrated_rad_per_n_m: *calibrated,
                damping_n_m_s: of_all(|servo| servo.damping_n_m_s.get()),
                friction_n_m: of_all(|servo| servo.friction_n_m.get()),
                inertia_kg_m2: of_all(|servo| servo.armature_kg_m2.get()),
            });
        }
        let zeros = JointVector::zeros(arm.dof());
        Self {
            joints,
            strength_n_m: servo.map_or(0.0, |servo| servo.strength_n_m(supply_v)),
            sent_before_rad: None,
            sent_rad: None,
            speed_rad_s: zeros,
            direction: zeros,
            carried_rad: zeros,
            ticks: 0,
            pressed_rad: zeros,
            push_n_m: zeros,
            needed_rad: zeros,
            lead_rad: zeros,
            lead_step_rad: zeros,
            path_step_rad: zeros,
            path_rad: None,
            carried_kg_m2: zeros,
            share: 1.0,
            past: [None; PAST],
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

    /// Returns whether the figures of servos are known, so that readings correct the lead.
    pub(super) fn is_led(&self) -> bool {
        let mut most = self.joints.iter().map(JointYield::most_rad_per_n_m);
        most.any(|most| most > 0.0)
    }

    /// Returns the torque of one servo with full load, as its figures and the yield that the encoders show say together;
    /// `None` where its figures or its gain are not known.
    pub(super) fn load_n_m(&self) -> Option<f64> {
        let (mut seen, mut of_figures) = (0.0, 0.0);
        for joint in &self.joints {
            let [known, figures] = joint.seen_yields();
            (seen, of_figures) = (seen + known, of_figures + figures);
        }
        let stiffer = (seen > 0.0).then(|| of_figures / seen);
        let stiffer = stiffer.unwrap_or(STRONGER).clamp(1.0 / STRONGER, STRONGER);
        (of_figures > 0.0 && self.strength_n_m > 0.0).then_some(self.strength_n_m * stiffer)
    }

    /// Returns whether the servos hold where they were found, and sink from there as their figures say.
    pub(super) fn has_to_settle(&self) -> bool {
        self.sent_rad.is_none() && self.is_led()
    }

    /// Begins a motion whose path starts here: its first goals are those that were sent last.
    pub(super) fn begin(&mut self, arm: &ArmModel, first_rad: &JointVector) {
        let sent_rad = *self.sent_rad.get_or_insert(*first_rad);
        let needed_rad = self.against_gravity_rad(arm, first_rad, &JointVector::zeros(arm.dof()));
        self.carried_rad = sent_rad
            .zip(first_rad, |sent, first| sent - first)
            .zip(&needed_rad, |led, needed| {
                (led - needed).clamp(-LEAD_RAD_MAX, LEAD_RAD_MAX)
            });
        self.speed_rad_s = JointVector::zeros(arm.dof());
        self.direction = JointVector::zeros(arm.dof());
        (self.ticks, self.share, self.past) = (0, 1.0, [None; PAST]);
        self.lead_rad = sent_rad.zip(first_rad, |sent, first| sent - first);
        self.rest(arm.dof());
        self.path_rad = Some(*first_rad);
    }

    /// Notes that the goals stand.
    fn rest(&mut self, dof: usize) {
        let zeros = JointVector::zeros(dof);
        (self.lead_step_rad, self.path_step_rad) = (zeros, zeros);
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
            let sunk_rad = load_n_m.zip(&self.most_rad_per_n_m(arm), |load, most| load * most);
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
    pub(super) fn goal_rad(&mut self, scene: &Scene, place: LedPlace<'_>) -> JointVector {
        let (arm, path_rad) = (&scene.arm, place.path_rad);
        let fraction = f64::from(self.ticks) * PERIOD.as_secs_f64() / SETTLE.as_secs_f64();
        self.ticks = self.ticks.saturating_add(1);
        let left = 1.0 - super::execute::smooth_step(fraction.min(1.0));
        self.push_n_m = place
            .push
            .map_or_else(|| JointVector::zeros(arm.dof()), TipPush::load_n_m);
        let lead_rad = self
            .against_gravity_rad(arm, path_rad, &self.push_n_m)
            .zip(&self.ahead_of_motion_rad(arm, place), |lead, more| {
                lead + more
            })
            .zip(&self.carried_rad, |needed, carried| needed + carried * left);
        self.needed_rad = lead_rad;
        let lead_rad = self.smoothed(arm, path_rad, &lead_rad);
        let sent_rad = self.within_room(scene, path_rad, &lead_rad);
        self.lead_step_rad = sent_rad
            .zip(path_rad, |sent, path| sent - path)
            .zip(&self.lead_rad, |now, before| now - before);
        self.lead_rad = sent_rad.zip(path_rad, |sent, path| sent - path);
        self.sent_before_rad = self.sent_rad.replace(sent_rad);
        sent_rad
    }

    /// Returns the lead that comes closest to the needed one without the goals going faster, or speeding up more, than the
    /// joints may.
    fn smoothed(
        &mut self,
        arm: &ArmModel,
        path_rad: &JointVector,
        needed_rad: &JointVector,
    ) -> JointVector {
        let period_s = PERIOD.as_secs_f64();
        let before_rad = self.path_rad.replace(*path_rad).unwrap_or(*path_rad);
        let path_step_rad = path_rad.zip(&before_rad, |now, before| now - before);
        let path_change_rad = path_step_rad.zip(&self.path_step_rad, |now, before| now - before);
        self.path_step_rad = path_step_rad;
        let fastest_rad = arm
            .limits
            .velocity_rad_s
            .map(|_, fastest| fastest * period_s);
        let times = if self.is_led() { LED_ACCELERATION } else { 1.0 };
        let hardest_rad = (arm.limits.acceleration_rad_s2)
            .map(|_, hardest| times * hardest * period_s * period_s);
        let change_rad = needed_rad
            .zip(&self.lead_rad, |needed, led| needed - led)
            .zip(&self.lead_step_rad, |left, step| {
                (1.0 - LEAD_POLE).powi(2) * left - (1.0 - LEAD_POLE.powi(2)) * step
            });
        let change_rad = within(&change_rad, &path_change_rad, &hardest_rad);
        let step_rad = (self.lead_step_rad).zip(&change_rad, |step, change| step + change);
        let step_rad = within(&step_rad, &path_step_rad, &fastest_rad);
        self.lead_rad.zip(&step_rad, |led, step| led + step)
    }

    /// Returns whether a servo can still tell the lead of its goal from the one that is needed.
    pub(super) fn is_changing(&self) -> bool {
        let left_rad = self
            .needed_rad
            .zip(&self.lead_rad, |needed, lead| needed - lead);
        let changes_rad =
            left_rad.zip(&self.lead_step_rad, |left, step| left.abs().max(step.abs()));
        changes_rad.iter().any(|change| *change > RESTS_RAD)
    }

    /// Notes a tick without new goals.
    pub(super) fn keep(&mut self) {
        self.sent_before_rad = self.sent_rad;
        self.rest(self.lead_rad.len());
        self.speed_rad_s = self.speed_rad_s.map(|_, _| 0.0);
    }

    /// Returns the lead against gravity, and what the tip is pushed with, in a pose.
    fn against_gravity_rad(
        &self,
        arm: &ArmModel,
        at_rad: &JointVector,
        push_n_m: &JointVector,
    ) -> JointVector {
        arm.load
            .torque_n_m(&arm.chain, at_rad)
            .zip(push_n_m, |load, push| load + push)
            .zip(&self.yield_rad_per_n_m(arm), |load, yields| -load * yields)
            .zip(&self.pressed_rad, |lead, pressed| {
                (lead + pressed).clamp(-LEAD_RAD_MAX, LEAD_RAD_MAX)
            })
    }

    /// Returns the lead that the path's motion needs.
    fn ahead_of_motion_rad(&mut self, arm: &ArmModel, place: LedPlace<'_>) -> JointVector {
        if self.ticks.is_multiple_of(INERTIA_TICKS) {
            self.carried_kg_m2 = arm.load.inertia_kg_m2(&arm.chain, place.path_rad);
        }
        let period_s = PERIOD.as_secs_f64();
        let ahead_s = f64::from(PREVIEW_TICKS) * period_s;
        let speed_rad_s =
            (place.next_rad).zip(place.path_rad, |next, here| (next - here) / ahead_s);
        let acceleration_rad_s2 =
            speed_rad_s.zip(&self.speed_rad_s, |now, before| (now - before) / period_s);
        self.speed_rad_s = speed_rad_s;
        // A joint that stops is held back as before until it turns again.
        self.direction = speed_rad_s.zip(&self.direction, |speed, before| {
            let now = direction(speed);
            if now.abs() < 0.5 { before } else { now }
        });
        let direction = self.direction;
        speed_rad_s.map(|joint, speed_rad_s| {
            let effort = JointEffort {
                torque_n_m: 0.0,
                speed_rad_s,
                direction: direction.get(joint).copied().unwrap_or(0.0),
                acceleration_rad_s2: acceleration_rad_s2.get(joint).copied().unwrap_or(0.0),
                carried_kg_m2: self.carried_kg_m2.get(joint).copied().unwrap_or(0.0),
            };
            let known = self.joints.get(joint);
            let ahead_rad = known.map_or(0.0, |known| known.ahead_of_motion_rad(&effort));
            ahead_rad.clamp(-LEAD_RAD_MAX, LEAD_RAD_MAX)
        })
    }

    /// Returns goals with as much of their lead as the joints' limits and the room of the arm allow.
    fn within_room(
        &mut self,
        scene: &Scene,
        path_rad: &JointVector,
        lead_rad: &JointVector,
    ) -> JointVector {
        self.share = (self.share + SHARE_UP).min(1.0);
        loop {
            let share = self.share;
            let part_rad = lead_rad.map(|_, lead| lead * share);
            let led_rad = self.within_limits(&scene.arm, path_rad, &part_rad);
            if share <= 0.0 || has_room(scene, path_rad, &led_rad) {
                return led_rad;
            }
            self.share = (share - SHARE_DOWN).max(0.0);
        }
    }

    /// Returns goals with their lead, within the joints' limits: beyond them no farther than the path and the goals before.
    fn within_limits(
        &self,
        arm: &ArmModel,
        path_rad: &JointVector,
        lead_rad: &JointVector,
    ) -> JointVector {
        let (lower, upper) = (&arm.limits.lower_rad, &arm.limits.upper_rad);
        let sent_rad = self.sent_rad(path_rad);
        let lowest = lower.zip(&path_rad.zip(&sent_rad, f64::max), f64::min);
        let highest = upper.zip(&path_rad.zip(&sent_rad, f64::min), f64::max);
        (path_rad.zip(lead_rad, |path, lead| path + lead))
            .zip(&lowest, f64::max)
            .zip(&highest, f64::min)
    }

    /// Notes a reading of an arm that follows its path, and corrects what is known by it.
    pub(super) fn note(
        &mut self,
        arm: &ArmModel,
        path_rad: &JointVector,
        measured: &ArmMeasurement,
        of: ReadingOf,
    ) {
        let read_rad = measured.position_rad;
        let sent_rad = self.sent_before_rad;
        let Some(sent_rad) =
            sent_rad.filter(|sent| sent.len() == read_rad.len() && read_rad.is_finite())
        else {
            self.past = [None; PAST];
            return;
        };
        self.past.rotate_right(1);
        if let Some(newest) = self.past.first_mut() {
            *newest = Some(PastTick {
                path_rad: *path_rad,
                sent_rad,
                read_rad,
                push_n_m: self.push_n_m,
            });
        }
        match of {
            ReadingOf::FreeTip => self.learn(arm, 1.0),
            ReadingOf::DrawingTip => self.learn(arm, DRAWING_WEIGHT),
            ReadingOf::Other => {}
        }
    }

    /// Forgets the ticks before, where one is missing.
    pub(super) fn forget_past(&mut self) {
        self.past = [None; PAST];
    }

    /// Brings the joints of an arm that draws closer to its path. A tip that is held up pushes with no more than
    /// [`MORE_PUSH_N`] for it; only one that stands is brought aside against friction, which turns with the motion.
    pub(super) fn press(&mut self, arm: &ArmModel, push: &TipPush, stands: bool) {
        let [Some(now), _, _, _, Some(middle), ..] = &self.past else {
            return;
        };
        let (per_s, levers_m) = match stands {
            true => (PRESS_STANDING_PER_S, &push.reaches_m),
            false => (PRESS_PER_S, &push.levers_m),
        };
        let period_s = PERIOD.as_secs_f64();
        let late_rad = now.path_rad.zip(&middle.path_rad, |now, middle| {
            DELAY_S * (now - middle) / (MIDDLE as f64 * period_s)
        });
        let step = now
            .path_rad
            .zip(&late_rad, |now, late| now - late)
            .zip(&now.read_rad, |expected, at| {
                per_s * period_s * (expected - at).clamp(-PRESSED_RAD, PRESSED_RAD)
            });
        let most = levers_m.zip(&self.most_rad_per_n_m(arm), |lever, most| {
            lever.abs() * most * MORE_PUSH_N
        });
        self.pressed_rad = self
            .pressed_rad
            .zip(&step, |pressed, step| pressed + step)
            .zip(&most, |pressed, most| pressed.clamp(-most, most));
    }

    /// Corrects what is known by the reading in the middle of the ticks that are kept. What brings a tip that draws to its
    /// path is no part of it: the pen pushes as it likes.
    fn learn(&mut self, arm: &ArmModel, weight: f64) {
        let [Some(now), .., Some(middle), _, _, _, Some(first)] = &self.past else {
            return;
        };
        let span_s = PERIOD.as_secs_f64() * (PAST - 1) as f64;
        let speed = now
            .read_rad
            .zip(&first.read_rad, |now, first| (now - first) / span_s);
        let acceleration = now
            .read_rad
            .zip(&first.read_rad, |now, first| now + first)
            .zip(&middle.read_rad, |ends, middle| {
                (ends - 2.0 * middle) / (span_s / 2.0).powi(2)
            });
        let is_drawing = weight < 1.0;
        let pushed = |n_m: f64| if is_drawing { n_m } else { 0.0 };
        let torque_n_m = arm
            .load
            .torque_n_m(&arm.chain, &middle.read_rad)
            .zip(&middle.push_n_m, |load, push| -load - pushed(push));
        let ahead_rad = middle
            .sent_rad
            .zip(&middle.read_rad, |sent, at| sent - at)
            .zip(&self.pressed_rad, |ahead, pressed| ahead - pushed(pressed));
        let motion = acceleration.iter().zip(self.carried_kg_m2.iter());
        let efforts = torque_n_m.iter().zip(speed.iter().zip(motion));
        let path_rad = now.path_rad.zip(&first.path_rad, |now, first| now - first);
        let seen = efforts.zip(ahead_rad.iter().zip(path_rad.iter()));
        for (joint, (effort, (ahead_rad, path_rad))) in self.joints.iter_mut().zip(seen) {
            // What moves a joint whose path stands is not known.
            let moves_rad = MOVES_RAD_S * span_s;
            if path_rad.abs() < moves_rad && (effort.1.0 * span_s).abs() > moves_rad {
                continue;
            }
            let effort = JointEffort {
                torque_n_m: *effort.0,
                speed_rad_s: *effort.1.0,
                direction: direction(*effort.1.0),
                acceleration_rad_s2: *effort.1.1.0,
                carried_kg_m2: *effort.1.1.1,
            };
            joint.learn(&effort, *ahead_rad, weight);
        }
    }

    fn of_joints(&self, arm: &ArmModel, of: impl Fn(&JointYield) -> f64) -> JointVector {
        JointVector::zeros(arm.dof()).map(|joint, _| self.joints.get(joint).map_or(0.0, &of))
    }

    fn yield_rad_per_n_m(&self, arm: &ArmModel) -> JointVector {
        self.of_joints(arm, JointYield::rad_per_n_m)
    }

    fn most_rad_per_n_m(&self, arm: &ArmModel) -> JointVector {
        self.of_joints(arm, JointYield::most_rad_per_n_m)
    }

    /// Returns by how much a joint may hang from its path where nothing but gravity holds it back: with gravity, and as far
    /// as twice the weakest plausible servo would yield, less the present lead.
    #[must_use]
    pub fn explained_rad(&self, arm: &ArmModel, path_rad: &JointVector) -> JointVector {
        let load_n_m = arm.load.torque_n_m(&arm.chain, path_rad);
        let unknown = self
            .most_rad_per_n_m(arm)
            .zip(&self.yield_rad_per_n_m(arm), |most, known| {
                (2.0 * most - known).max(known)
            });
        load_n_m.zip(&unknown, |load, unknown| load * unknown)
    }

    /// Returns the load that gravity puts on each servo of each joint in a pose, as a fraction of its strength; `None` where its
    /// strength is not known.
    #[must_use]
    pub fn load_ratio(&self, arm: &ArmModel, path_rad: &JointVector) -> Option<JointVector> {
        let load_n_m = arm.load.torque_n_m(&arm.chain, path_rad);
        let strength_n_m = self.strength_n_m;
        let of_one = |load: f64, servos: f64| load / (servos * strength_n_m);
        (strength_n_m > 0.0).then(|| load_n_m.zip(&arm.servos_per_joint(), of_one))
    }

    /// Returns the goals that were sent last, without the lead that the servos' figures explain: what is left of their
    /// distance from a reading is for a calibration to explain.
    #[must_use]
    pub fn unexplained_goal_rad(&self, arm: &ArmModel, at_rad: &JointVector) -> JointVector {
        let load_n_m = arm.load.torque_n_m(&arm.chain, at_rad);
        let sent_rad = self.sent_rad.unwrap_or(*at_rad);
        let figures = self.of_joints(arm, JointYield::figures_rad_per_n_m);
        let explained = load_n_m.zip(&figures, |load, yields| load * yields);
        sent_rad.zip(&explained, |sent, explained| sent + explained)
    }

    /// Returns by how many degrees each joint yields to a newton metre, as known now.
    #[must_use]
    pub fn yield_deg_per_n_m(&self, arm: &ArmModel) -> JointVector {
        self.yield_rad_per_n_m(arm)
            .map(|_, yields| yields.to_degrees())
    }

    /// Returns the goals that were sent last, or where the path is if none were.
    pub(super) fn sent_rad(&self, path_rad: &JointVector) -> JointVector {
        self.sent_rad.unwrap_or(*path_rad)
    }

    /// Returns the lead that holds an arm with a free tip against gravity where it is.
    pub(super) fn hold_rad(&self, arm: &ArmModel, at_rad: &JointVector) -> JointVector {
        self.against_gravity_rad(arm, at_rad, &JointVector::zeros(arm.dof()))
    }

    /// Notes goals that were sent as they are.
    pub(super) fn set_sent(&mut self, sent_rad: JointVector) {
        self.sent_before_rad = self.sent_rad.replace(sent_rad);
    }

    /// Returns the lead of the goals that were sent last for this place on the path.
    #[must_use]
    pub fn lead_rad(&self, path_rad: &JointVector) -> JointVector {
        let sent_rad = self.sent_rad.unwrap_or(*path_rad);
        sent_rad.zip(path_rad, |sent, path| sent - path)
    }
}

/// Returns what a lead may add to the path so that both together stay within what is allowed either way; nothing where the
/// path alone is beyond it.
fn within(added_rad: &JointVector, path_rad: &JointVector, most_rad: &JointVector) -> JointVector {
    let room = |sign: f64| most_rad.zip(path_rad, move |most, path| (most - sign * path).max(0.0));
    added_rad
        .zip(&room(1.0), f64::min)
        .zip(&room(-1.0), |added, most| added.max(-most))
}

#[cfg(test)]
#[allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "a failing test may panic"
)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use base::units::ClockInstant;
    use scene::SceneLibrary;

    const SHOULDER: usize = 1;

    fn scene() -> Arc<Scene> {
        SceneLibrary::new(None).scene("default", None).unwrap()
    }

    fn pose(shoulder_rad: f64) -> JointVector {
        JointVector::from_slice(&[0.0, shoulder_rad, 0.3, 1.2, 0.0])
    }

    fn still(at_rad: &JointVector) -> LedPlace<'_> {
        LedPlace {
            path_rad: at_rad,
            next_rad: at_rad,
            push: None,
        }
    }

    fn load(scene: &Scene, at_rad: &JointVector) -> f64 {
        scene.arm.load.torque_n_m(&scene.arm.chain, at_rad)[SHOULDER]
    }

    fn led(lead: &mut SagLead, scene: &Scene, ticks: usize) -> f64 {
        let at_rad = pose(-0.2);
        lead.begin(&scene.arm, &at_rad);
        for _ in 0..ticks {
            lead.goal_rad(scene, still(&at_rad));
        }
        lead.lead_rad(&at_rad)[SHOULDER]
    }

    #[test]
    fn goals_come_to_lead_by_the_arms_weight_over_the_stiffness() {
        let scene = scene();
        let arm = &scene.arm;
        let sag_rad = load(&scene, &pose(-0.2)) / (32.0 * 0.165 * 3.35);
        let mut lead = SagLead::new(arm, |_| Some(32), None);
        assert!(led(&mut lead, &scene, 1).abs() < 1e-9);
        assert!((led(&mut lead, &scene, 120) + sag_rad).abs() < 1e-9);
        let mut half = SagLead::new(arm, |_| Some(16), Some(12.1));
        assert!((led(&mut half, &scene, 120) + 2.0 * sag_rad).abs() < 1e-9);
        let mut weak = SagLead::new(arm, |_| Some(32), Some(3.7));
        assert!((led(&mut weak, &scene, 120) + 2.0 * sag_rad).abs() < 1e-9);
    }

    /// Each brakes as much as one, and both together are as stiff as two.
    #[test]
    fn a_joint_of_two_servos_lags_as_one_of_one_and_bears_twice_as_much() {
        let scene = SceneLibrary::new(None).scene("roarm_m2", None).unwrap();
        let arm = &scene.arm;
        assert_eq!(
            arm.servos_per_joint(),
            JointVector::from_slice(&[1.0, 2.0, 1.0])
        );
        let lead = SagLead::new(arm, |_| Some(32), None);
        let effort = JointEffort {
            speed_rad_s: 0.5,
            direction: 1.0,
            acceleration_rad_s2: 2.0,
            ..JointEffort::default()
        };
        let [waist, shoulder] = [0, SHOULDER].map(|joint| &lead.joints[joint]);
        let ahead_rad = [waist, shoulder].map(|joint| joint.ahead_of_motion_rad(&effort));
        assert!((ahead_rad[0] - ahead_rad[1]).abs() < 1e-9, "{ahead_rad:?}");
        assert!((waist.rad_per_n_m() - 2.0 * shoulder.rad_per_n_m()).abs() < 1e-9);
        let at_rad = JointVector::from_slice(&[0.0, 0.8, 1.5]);
        let load_n_m = arm.load.torque_n_m(&arm.chain, &at_rad)[SHOULDER];
        let ratio = lead.load_ratio(arm, &at_rad).unwrap()[SHOULDER];
        assert!((ratio - load_n_m / (2.0 * 4.98)).abs() < 1e-9, "{ratio}");
    }

    #[test]
    fn what_a_lead_takes_from_gravity_is_not_left_to_explain() {
        let scene = scene();
        let (arm, at_rad) = (&scene.arm, pose(-0.2));
        let mut lead = SagLead::new(arm, |_| Some(32), None);
        led(&mut lead, &scene, 120);
        let load_n_m = load(&scene, &at_rad);
        let yields = lead.yield_deg_per_n_m(arm)[SHOULDER].to_radians();
        let explained_rad = lead.explained_rad(arm, &at_rad)[SHOULDER];
        assert!(
            yields > 0.0 && explained_rad / load_n_m >= yields,
            "{explained_rad}"
        );
        let off_rad = |lead: &SagLead| {
            let unexplained = lead.unexplained_goal_rad(arm, &at_rad);
            unexplained[SHOULDER] - at_rad[SHOULDER]
        };
        assert!(off_rad(&lead).abs() < 1e-9);
        lead.forget_goals();
        assert!((off_rad(&lead) - load_n_m * yields).abs() < 1e-9);
    }

    #[test]
    fn a_servo_whose_gain_is_not_known_is_not_led() {
        let scene = scene();
        let arm = &scene.arm;
        for gain_p in [None, Some(0)] {
            let mut lead = SagLead::new(arm, |_| gain_p, None);
            assert!(led(&mut lead, &scene, 60).abs() < 1e-9);
        }
    }

    /// A servo that follows as its figures say, times a factor, and the shoulder's yield and lag that readings of it teach.
    fn learned(times: f64) -> [f64; 2] {
        let scene = scene();
        let arm = &scene.arm;
        let figures = 1.0 / (32.0 * 0.165 * 3.35);
        let mut lead = SagLead::new(arm, |_| Some(32), None);
        let mut at_rad = pose(-0.2);
        lead.begin(arm, &at_rad);
        for tick in 0..2_000_u32 {
            let path = |tick: u32| pose(-0.2 + 0.1 * (f64::from(tick) * 0.02).sin());
            let (path_rad, next_rad) = (path(tick), path(tick + 3));
            let place = LedPlace {
                path_rad: &path_rad,
                next_rad: &next_rad,
                push: None,
            };
            lead.goal_rad(&scene, place);
            let load_n_m = arm.load.torque_n_m(&arm.chain, &at_rad);
            let Some(sent_rad) = lead.sent_before_rad else {
                continue;
            };
            let rest_rad = sent_rad.zip(&load_n_m, |sent, load| sent + load * figures * times);
            // Damping of 0.6 N m s over the stiffness.
            let follows = (0.01 / (0.6 * figures * times)).min(1.0);
            at_rad = at_rad.zip(&rest_rad, |at, rest| at + (rest - at) * follows);
            let measured = ArmMeasurement {
                at: ClockInstant::ZERO,
                position_rad: at_rad,
                velocity_rad_s: path_rad,
                servos: Vec::new(),
            };
            lead.note(arm, &path_rad, &measured, ReadingOf::FreeTip);
        }
        let known = lead.joints[SHOULDER];
        let effort = JointEffort {
            speed_rad_s: 1.0,
            ..JointEffort::default()
        };
        [
            known.rad_per_n_m() / figures,
            known.ahead_of_motion_rad(&effort),
        ]
    }

    #[test]
    fn the_encoders_correct_the_stiffness_within_what_is_plausible() {
        for times in [0.02, 0.68, 1.0, 1.4] {
            let [yields, _] = learned(times);
            assert!((yields - times).abs() < 0.1, "{times}: {yields}");
        }
        let [yields, _] = learned(1.9);
        assert!(yields <= 1.5 + 1e-9, "{yields}");
    }

    #[test]
    fn goals_are_ahead_by_the_lag_that_the_encoders_show() {
        let lag_s = |times: f64| learned(times)[1];
        let [stiff_s, soft_s] = [0.02, 1.4].map(lag_s);
        assert!(stiff_s < 0.003 && soft_s > 0.015, "{stiff_s} {soft_s}");
    }
}
