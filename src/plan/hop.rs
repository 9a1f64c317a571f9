//! A hop from where one line ends to where the next begins: the tip leaves the sheet along its
//! normal, crosses and comes down along the normal again, all in one motion.
//!
//! The rise and the crossing are two profiles in time, one along the normal and one along the
//! sheet, which overlap as soon as the tip is clear. A higher hop is clear of the sheet sooner, so
//! the height that takes the least time grows with the distance.

use std::ops::Range;

use super::PERIOD_S;
use super::cartesian_path::{ToolPose, whole};
use super::follow_path::JUMP_RAD;
use super::scalar_profile::{ProfileLimits, ProfileState, ScalarProfile};
use super::time_parameterization::{NOISE, TimedPath, TipLimits};
use super::tool_ik::ToolIk;
use base::plane::{Point, along, distance};
use base::units::JointVector;
use scene::{Scene, SheetHeights};

/// Height over the sheet below which the tip goes along the normal.
const CLEAR_MM: f64 = 0.3;
/// Largest way along the sheet below that height.
const ASIDE_MM: f64 = 0.05;
/// Number of heights that are compared, from the least to the greatest.
const HEIGHTS: u32 = 7;
/// Number of times at which a candidate's speed and acceleration are looked at.
const LOOKS: u32 = 24;
/// Rounds of slowing down until no joint passes a limit.
const ROUNDS: usize = 12;
/// A hop that joints slow by more than this is tried again with a slower crossing.
const SLOWED_MUCH: f64 = 1.1;
/// Of each of the tip's limits, when timing: differences of samples are rounded.
const USED: f64 = 0.999;
/// Shorter ways across are none.
const APART_MM: f64 = 1e-6;

/// The hops of one pen: what they have in common.
pub(super) struct HopPlanner<'a> {
    scene: &'a Scene,
    press_m: f64,
    limits: TipLimits,
    /// To each height in two forms.
    rises: Vec<HopRise>,
}

/// A planned hop.
pub(super) struct PlannedHop {
    /// The samples after its first, which is where the line before ended.
    pub(super) joints: Vec<JointVector>,
    /// Those with the tip clear of the sheet; before, it rises, and after, it comes down.
    pub(super) clear: Range<usize>,
    /// By how much the joints' limits made it slower.
    slowed_by: f64,
}

/// The ends of a hop on the sheet, and the joints at the first.
#[derive(Clone, Copy)]
pub(super) struct HopEnds {
    pub(super) from_mm: Point,
    pub(super) to_mm: Point,
    pub(super) start: JointVector,
}

/// A way up.
struct HopRise {
    height_mm: f64,
    form: RiseForm,
    profile: ScalarProfile,
    /// Time after which the tip is clear.
    clear_s: f64,
}

/// The form of a hop's top.
#[derive(Clone, Copy, PartialEq, Eq)]
enum RiseForm {
    /// Over a crest and down at once, the whole slowed to the time that the crossing takes.
    Crest,
    /// To rest at the height, which is kept until the time comes to go down.
    Plateau,
}

/// The way across.
struct Crossing {
    /// `None` where the ends are at one place.
    profile: Option<ScalarProfile>,
    duration_s: f64,
    /// Time during which the tip is still as good as where it was.
    aside_s: f64,
}

/// A rise and a crossing in time.
struct HopTiming<'r> {
    rise: &'r HopRise,
    crossing: &'r Crossing,
    press_m: f64,
    /// Before it is slowed.
    duration_s: f64,
    slowed_by: f64,
}

/// The tip's height over the sheet and its way across.
#[derive(Clone, Copy)]
struct HopState {
    height_m: f64,
    across_m: f64,
}

impl<'a> HopPlanner<'a> {
    /// Hops of a pen within its tip's limits, between the scene's least and greatest height.
    pub(super) fn new(scene: &'a Scene, pen: usize, limits: TipLimits) -> Self {
        let of_pen = SheetHeights {
            press_mm: scene.pen_press_mm(pen),
            ..scene.heights
        };
        let heights = (0..HEIGHTS).map(|n| {
            let share = f64::from(n) / f64::from(HEIGHTS - 1);
            of_pen.lift_least_mm + (of_pen.lift_mm - of_pen.lift_least_mm) * share
        });
        let both = |height_mm| [RiseForm::Crest, RiseForm::Plateau].map(|form| (height_mm, form));
        let rises = heights
            .flat_map(both)
            .filter_map(|(height_mm, form)| HopRise::new(&of_pen, height_mm, form, limits));
        Self {
            scene,
            press_m: of_pen.press_mm / 1e3,
            limits,
            rises: rises.collect(),
        }
    }

    /// The soonest hop that is clear of everything; `None` where there is none within the limits.
    pub(super) fn plan(
        &self,
        hand: &ToolIk<'_>,
        ends: &HopEnds,
        is_clear: impl Fn(&[JointVector]) -> bool,
    ) -> Option<PlannedHop> {
        let length_m = distance(ends.from_mm, ends.to_mm) / 1e3;
        let crossing = |slowed_by| Crossing::new(length_m, self.limits, slowed_by);
        let hop = self.soonest(hand, ends, &crossing(1.0)?, &is_clear)?;
        if hop.slowed_by < SLOWED_MUCH {
            return Some(hop);
        }
        // Joints that turn the pen round a curve are too slow for the crossing, not for the rise.
        let slower = crossing(hop.slowed_by)?;
        let other = self.soonest(hand, ends, &slower, &is_clear);
        let sooner = other.filter(|other| other.joints.len() < hop.joints.len());
        sooner.or(Some(hop))
    }

    /// With a given way across, the soonest hop that is clear.
    fn soonest(
        &self,
        hand: &ToolIk<'_>,
        ends: &HopEnds,
        crossing: &Crossing,
        is_clear: impl Fn(&[JointVector]) -> bool,
    ) -> Option<PlannedHop> {
        let timing = |rise| HopTiming::new(rise, crossing, self.press_m).slowed(self.limits);
        let mut timings: Vec<HopTiming<'_>> = self.rises.iter().map(timing).collect();
        // Of two that take as many samples the higher is farther from everything.
        timings.sort_by(|a, b| {
            let higher = b.rise.height_mm.total_cmp(&a.rise.height_mm);
            a.periods().cmp(&b.periods()).then(higher)
        });
        let mut low_mm = f64::NEG_INFINITY;
        for timing in &mut timings {
            if timing.rise.height_mm <= low_mm {
                continue;
            }
            let Some(hop) = self.sampled(hand, ends, timing) else {
                continue;
            };
            if is_clear(&hop.joints) {
                return Some(hop);
            }
            low_mm = timing.rise.height_mm;
        }
        None
    }

    /// Samples a hop, slowed until joints and tip keep their limits; `None` where the arm cannot
    /// follow it.
    fn sampled(
        &self,
        hand: &ToolIk<'_>,
        ends: &HopEnds,
        timing: &mut HopTiming<'_>,
    ) -> Option<PlannedHop> {
        let asked = timing.slowed_by;
        for _ in 0..ROUNDS {
            let run = self.solved(hand, ends, timing)?;
            let worst = run.worst_ratio(hand, self.limits);
            if worst <= 1.0 + NOISE {
                let joints: Vec<_> = run.joints.into_iter().skip(1).collect();
                let clear = timing.clear_samples(joints.len());
                let slowed_by = timing.slowed_by / asked;
                return Some(PlannedHop {
                    joints,
                    clear,
                    slowed_by,
                });
            }
            timing.slowed_by *= (worst * 1.01).min(4.0).sqrt();
        }
        None
    }

    /// Solves the joints at every sample; `None` where one is out of reach, or leans or jumps too far.
    fn solved(
        &self,
        hand: &ToolIk<'_>,
        ends: &HopEnds,
        timing: &HopTiming<'_>,
    ) -> Option<TimedPath> {
        let count = timing.periods();
        let length_m = distance(ends.from_mm, ends.to_mm) / 1e3;
        let mut run = TimedPath {
            joints: vec![ends.start],
            points: vec![hand.point(&ends.start)],
            knots: vec![0; count + 1],
        };
        let (mut before, mut last) = (ends.start, ends.start);
        for n in 1..=count {
            let state = timing.sample(n, count);
            let share = if length_m > 0.0 {
                state.across_m / length_m
            } else {
                1.0
            };
            let at_mm = along(ends.from_mm, ends.to_mm, share);
            let place = ToolPose::over(&self.scene.surface, at_mm, state.height_m * 1e3);
            let carried_on = last.zip(&before, |now, then| now + (now - then));
            let found = hand.solve(&place, &carried_on).ok()?;
            if found.off_rad > hand.cone_rad || found.q_rad.distance_max(&last) > JUMP_RAD {
                return None;
            }
            run.joints.push(found.q_rad);
            run.points.push(place.point_m);
            before = std::mem::replace(&mut last, found.q_rad);
        }
        Some(run)
    }
}

impl HopRise {
    /// From where a tip presses to a height; `None` where the limits make no sense.
    fn new(
        heights: &SheetHeights,
        height_mm: f64,
        form: RiseForm,
        limits: TipLimits,
    ) -> Option<Self> {
        let (most, length_m) = (profile_limits(limits), (heights.press_mm + height_mm) / 1e3);
        let profile = match form {
            RiseForm::Crest => ScalarProfile::to_crest(length_m, most)?,
            RiseForm::Plateau => ScalarProfile::new(length_m, most)?,
        };
        let clear_s = profile.time_at((heights.press_mm + CLEAR_MM) / 1e3);
        Some(Self {
            height_mm,
            form,
            profile,
            clear_s,
        })
    }
}

impl Crossing {
    /// Within the tip's limits, and so much slower.
    fn new(length_m: f64, limits: TipLimits, slowed_by: f64) -> Option<Self> {
        if length_m * 1e3 < APART_MM {
            return Some(Self {
                profile: None,
                duration_s: 0.0,
                aside_s: 0.0,
            });
        }
        let most = profile_limits(limits);
        let slower = ProfileLimits {
            speed: most.speed / slowed_by,
            acceleration: most.acceleration / slowed_by.powi(2),
            jerk: most.jerk / slowed_by.powi(3),
        };
        let profile = ScalarProfile::new(length_m, slower)?;
        let duration_s = profile.duration_s();
        let aside_s = profile.time_at(ASIDE_MM / 1e3).min(duration_s / 2.0);
        Some(Self {
            profile: Some(profile),
            duration_s,
            aside_s,
        })
    }

    /// Returns the way across after `t_s`; before and behind, the tip stands at an end.
    fn state(&self, t_s: f64) -> ProfileState {
        match &self.profile {
            Some(profile) if t_s < self.duration_s => profile.state(t_s.max(0.0)),
            Some(profile) => ProfileState::still(profile.at(self.duration_s)),
            None => ProfileState::still(0.0),
        }
    }
}

impl<'r> HopTiming<'r> {
    /// As soon as the tip is clear while it crosses.
    fn new(rise: &'r HopRise, crossing: &'r Crossing, press_m: f64) -> Self {
        let up_s = rise.profile.duration_s();
        // Of the crossing, the time during which the tip must be clear.
        let aloft_s = crossing.duration_s - 2.0 * crossing.aside_s;
        let least_s = match rise.form {
            RiseForm::Crest => aloft_s / (1.0 - rise.clear_s / up_s),
            RiseForm::Plateau => aloft_s + 2.0 * rise.clear_s,
        };
        Self {
            rise,
            crossing,
            press_m,
            duration_s: least_s.max(2.0 * up_s),
            slowed_by: 1.0,
        }
    }

    /// So slow that the tip's speed and acceleration, of its rise and its crossing taken together,
    /// keep their limits.
    fn slowed(self, limits: TipLimits) -> Self {
        let ratio = self.tip_ratio(limits);
        Self {
            slowed_by: ratio.max(1.0).sqrt(),
            ..self
        }
    }

    /// The tip's largest ratio to its limits: of its acceleration, and of its squared speed.
    fn tip_ratio(&self, limits: TipLimits) -> f64 {
        let ratio = |n: u32| {
            let t_s = self.duration_s / 2.0 * f64::from(n) / f64::from(LOOKS);
            let (up, across) = (self.up(t_s), self.across(t_s));
            let speed = up.speed.hypot(across.speed) / (limits.speed_m_s * USED);
            let acceleration = up.acceleration.hypot(across.acceleration);
            (speed * speed).max(acceleration / (limits.acceleration_m_s2 * USED))
        };
        // The second half is its mirror image.
        (0..=LOOKS).map(ratio).fold(0.0, f64::max)
    }

    /// Number of samples that it takes.
    fn periods(&self) -> usize {
        let periods = self.duration_s * self.slowed_by / PERIOD_S;
        whole(periods.ceil().max(1.0))
    }

    /// The way up at a time, the time being that of a hop that is not slowed.
    fn up(&self, t_s: f64) -> ProfileState {
        let (up_s, half_s) = (self.rise.profile.duration_s(), self.duration_s / 2.0);
        let from_end_s = t_s.min(self.duration_s - t_s).max(0.0);
        match self.rise.form {
            RiseForm::Crest => {
                let rate = up_s / half_s;
                let at = self.rise.profile.state((from_end_s * rate).min(up_s));
                ProfileState {
                    speed: at.speed * rate,
                    acceleration: at.acceleration * rate * rate,
                    ..at
                }
            }
            RiseForm::Plateau if from_end_s < up_s => self.rise.profile.state(from_end_s),
            RiseForm::Plateau => ProfileState::still(self.rise.profile.at(up_s)),
        }
    }

    /// The way across at a time, the time being that of a hop that is not slowed.
    fn across(&self, t_s: f64) -> ProfileState {
        let waits_s = (self.duration_s - self.crossing.duration_s) / 2.0;
        self.crossing.state(t_s - waits_s)
    }

    fn sample(&self, n: usize, of: usize) -> HopState {
        let t_s = self.duration_s * (n as f64 / of as f64);
        HopState {
            height_m: self.up(t_s).position - self.press_m,
            across_m: self.across(t_s).position,
        }
    }

    /// The samples after the first with the tip clear of the sheet.
    fn clear_samples(&self, count: usize) -> Range<usize> {
        let is_clear = |n: &usize| self.sample(n + 1, count).height_m * 1e3 >= CLEAR_MM;
        let Some(first) = (0..count).find(is_clear) else {
            return count..count;
        };
        let end = (first..count).rev().find(is_clear).map_or(first, |n| n + 1);
        first..end
    }
}

fn profile_limits(limits: TipLimits) -> ProfileLimits {
    let most = limits.as_profile();
    ProfileLimits {
        speed: most.speed * USED,
        acceleration: most.acceleration * USED,
        ..most
    }
}
