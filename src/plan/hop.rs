//! Hops from the end of one line to the beginning of the next: the tip leaves the sheet along its
//! normal, crosses, and comes down along the normal again, all in one motion.
//!
//! The rise and the crossing are two profiles in time, one along the normal and one along the
//! sheet, and overlap while the tip is clear. A higher hop clears the sheet sooner, so the fastest
//! height grows with the distance.

use std::ops::Range;

use super::PERIOD_S;
use super::cartesian_path::{ToolPose, to_count};
use super::follow_path::JUMP_RAD;
use super::scalar_profile::{ProfileLimits, ProfileState, ScalarProfile};
use super::time_parameterization::{NOISE, TimedPath, TipLimits};
use super::tool_ik::ToolIk;
use base::plane::{Point, along, distance};
use base::units::JointVector;
use scene::{Scene, SheetHeights};

/// Height over the sheet below which the tip moves along the normal.
const CLEAR_MM: f64 = 0.3;
/// Largest motion along the sheet below that height.
const SIDEWAYS_MM: f64 = 0.05;
/// Number of heights compared, from the lowest to the highest.
const HEIGHTS: u32 = 7;
/// Number of times at which a candidate's speed and acceleration are checked.
const LOOKS: u32 = 24;
/// Most rounds of slowing down until no joint exceeds a limit.
const ROUNDS: usize = 12;
/// A hop that the joints slow by more than this is planned again with a slower crossing.
const SLOWED_MUCH: f64 = 1.1;
/// A hop that the joints slow by more than this is compared with going up, across and down.
const SLOWED_TOO_MUCH: f64 = 2.0;
/// Fraction of each tip limit used in timing, because differences of samples are rounded.
const USED: f64 = 0.999;
/// A hop that the joints would slow by more than this is given up: over a ridge it could take hours.
const SLOWED_MAX: f64 = 16.0;
/// Share of the tip's speed that a crossing uses: the joints of measured servos leave the sheet late, and then pass the speed of
/// their path by 15 %.
const CROSSING_SHARE: f64 = 0.85;
/// Shorter crossings count as none.
const CROSSING_MIN_MM: f64 = 1e-6;

/// Common part of all hops of one pen.
pub(super) struct HopPlanner<'a> {
    scene: &'a Scene,
    press_m: f64,
    limits: TipLimits,
    /// A rise to each height, in both forms.
    rises: Vec<HopRise>,
}

/// A planned hop.
pub(super) struct PlannedHop {
    /// All samples but the first, which is the end of the previous line.
    pub(super) joints: Vec<JointVector>,
    /// The samples with the tip clear of the sheet: before them it rises, after them it comes down.
    pub(super) clear: Range<usize>,
    /// Factor by which the joints' limits slow it.
    slowed_by: f64,
}

impl PlannedHop {
    /// Returns whether up, across and down may take less time: a single place slows all of a hop.
    pub(super) fn is_slow(&self) -> bool {
        self.slowed_by > SLOWED_TOO_MUCH
    }
}

/// The ends of a hop on the sheet, and the joints at the first.
#[derive(Clone, Copy)]
pub(super) struct HopEnds {
    pub(super) from_mm: Point,
    pub(super) to_mm: Point,
    pub(super) start: JointVector,
}

/// The motion up to a height.
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
    /// Over a crest and straight down again, slowed to the time that the crossing takes.
    Crest,
    /// To rest at the height, and to stay there until it is time to go down.
    Plateau,
}

/// The motion across.
struct Crossing {
    /// `None` where both ends are the same place.
    profile: Option<ScalarProfile>,
    duration_s: f64,
    /// Time during which the tip has hardly moved sideways yet.
    sideways_s: f64,
}

/// A rise and a crossing in time.
struct HopTiming<'r> {
    rise: &'r HopRise,
    crossing: &'r Crossing,
    press_m: f64,
    /// Duration before slowing.
    duration_s: f64,
    slowed_by: f64,
}

/// The tip's height over the sheet and its distance across.
#[derive(Clone, Copy)]
struct HopState {
    height_m: f64,
    across_m: f64,
}

impl<'a> HopPlanner<'a> {
    /// Prepares hops of a pen within its tip's limits, between the scene's lowest and highest hop.
    pub(super) fn new(scene: &'a Scene, pen: usize, limits: TipLimits) -> Self {
        let pen_heights = SheetHeights {
            press_mm: scene.pen_press_mm(pen),
            ..scene.heights
        };
        let heights = (0..HEIGHTS).map(|n| {
            let fraction = f64::from(n) / f64::from(HEIGHTS - 1);
            pen_heights.lift_least_mm + (pen_heights.lift_mm - pen_heights.lift_least_mm) * fraction
        });
        let both_forms =
            |height_mm| [RiseForm::Crest, RiseForm::Plateau].map(|form| (height_mm, form));
        let rises = heights
            .flat_map(both_forms)
            .filter_map(|(height_mm, form)| HopRise::new(&pen_heights, height_mm, form, limits));
        Self {
            scene,
            press_m: pen_heights.press_mm / 1e3,
            limits,
            rises: rises.collect(),
        }
    }

    /// Plans the fastest hop that is clear of everything; `None` if there is none within the
    /// limits.
    pub(super) fn plan(
        &self,
        ik: &ToolIk<'_>,
        ends: &HopEnds,
        is_clear: impl Fn(&[JointVector]) -> bool,
    ) -> Option<PlannedHop> {
        let length_m = distance(ends.from_mm, ends.to_mm) / 1e3;
        let crossing = |slowed_by| Crossing::new(length_m, self.limits, slowed_by);
        let hop = self.fastest_hop(ik, ends, &crossing(1.0)?, &is_clear)?;
        if hop.slowed_by < SLOWED_MUCH {
            return Some(hop);
        }
        // Joints that turn the pen around a curve are too slow for the crossing, not for the rise.
        let slow_crossing = crossing(hop.slowed_by)?;
        let slower_hop = self.fastest_hop(ik, ends, &slow_crossing, &is_clear);
        let shorter = slower_hop.filter(|other| other.joints.len() < hop.joints.len());
        let shorter = shorter.map(|other| PlannedHop {
            slowed_by: other.slowed_by * hop.slowed_by,
            ..other
        });
        shorter.or(Some(hop))
    }

    /// Plans the fastest clear hop with a given crossing.
    fn fastest_hop(
        &self,
        ik: &ToolIk<'_>,
        ends: &HopEnds,
        crossing: &Crossing,
        is_clear: impl Fn(&[JointVector]) -> bool,
    ) -> Option<PlannedHop> {
        let timing = |rise| HopTiming::new(rise, crossing, self.press_m).slowed(self.limits);
        let mut timings: Vec<HopTiming<'_>> = self.rises.iter().map(timing).collect();
        // Of two that take equally many samples, the higher one is farther from everything.
        timings.sort_by(|a, b| {
            let higher = b.rise.height_mm.total_cmp(&a.rise.height_mm);
            a.periods().cmp(&b.periods()).then(higher)
        });
        let mut blocked_mm = f64::NEG_INFINITY;
        for timing in &mut timings {
            if timing.rise.height_mm <= blocked_mm {
                continue;
            }
            let Some(hop) = self.sample_hop(ik, ends, timing) else {
                continue;
            };
            if is_clear(&hop.joints) {
                return Some(hop);
            }
            blocked_mm = timing.rise.height_mm;
        }
        None
    }

    /// Samples a hop, slowed until joints and tip keep their limits; `None` if the arm cannot
    /// follow it.
    fn sample_hop(
        &self,
        ik: &ToolIk<'_>,
        ends: &HopEnds,
        timing: &mut HopTiming<'_>,
    ) -> Option<PlannedHop> {
        let initial_slowdown = timing.slowed_by;
        for _ in 0..ROUNDS {
            let path = self.solve_joints(ik, ends, timing)?;
            let worst_ratio = path.worst_ratio(ik, self.limits);
            if worst_ratio <= 1.0 + NOISE {
                let joints: Vec<_> = path.joints.into_iter().skip(1).collect();
                let clear = timing.clear_samples(joints.len());
                let slowed_by = timing.slowed_by / initial_slowdown;
                return Some(PlannedHop {
                    joints,
                    clear,
                    slowed_by,
                });
            }
            timing.slowed_by *= (worst_ratio * 1.01).min(4.0).sqrt();
            if timing.slowed_by > initial_slowdown * SLOWED_MAX {
                return None;
            }
        }
        None
    }

    /// Solves the joints at every sample; `None` if one is out of reach, leans too far or jumps.
    fn solve_joints(
        &self,
        ik: &ToolIk<'_>,
        ends: &HopEnds,
        timing: &HopTiming<'_>,
    ) -> Option<TimedPath> {
        let count = timing.periods();
        let length_m = distance(ends.from_mm, ends.to_mm) / 1e3;
        let mut path = TimedPath {
            joints: vec![ends.start],
            points: vec![ik.point(&ends.start)],
            waypoints: vec![0; count + 1],
        };
        let ik = ik.leaving(&ends.start);
        let (mut before, mut last) = (ends.start, ends.start);
        for n in 1..=count {
            let state = timing.sample(n, count);
            let fraction = if length_m > 0.0 {
                state.across_m / length_m
            } else {
                1.0
            };
            let at_mm = along(ends.from_mm, ends.to_mm, fraction);
            let pose = ToolPose::over(&self.scene.surface, at_mm, state.height_m * 1e3);
            let seed = last.zip(&before, |now, then| now + (now - then));
            let solution = ik.solve(&pose, &seed).ok()?;
            if solution.off_rad > ik.cone_rad || solution.q_rad.distance_max(&last) > JUMP_RAD {
                return None;
            }
            path.joints.push(solution.q_rad);
            path.points.push(pose.point_m);
            before = std::mem::replace(&mut last, solution.q_rad);
        }
        Some(path)
    }
}

impl HopRise {
    /// From the depth at which a tip presses to a height; `None` if the limits make no sense.
    fn new(
        heights: &SheetHeights,
        height_mm: f64,
        form: RiseForm,
        limits: TipLimits,
    ) -> Option<Self> {
        let (limits, length_m) = (profile_limits(limits), (heights.press_mm + height_mm) / 1e3);
        let profile = match form {
            RiseForm::Crest => ScalarProfile::to_crest(length_m, limits)?,
            RiseForm::Plateau => ScalarProfile::new(length_m, limits)?,
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
    /// Plans a crossing `slowed_by` times slower than the tip's limits allow.
    fn new(length_m: f64, limits: TipLimits, slowed_by: f64) -> Option<Self> {
        if length_m * 1e3 < CROSSING_MIN_MM {
            return Some(Self {
                profile: None,
                duration_s: 0.0,
                sideways_s: 0.0,
            });
        }
        let limits = profile_limits(limits);
        let slower = ProfileLimits {
            speed: limits.speed * CROSSING_SHARE / slowed_by,
            acceleration: limits.acceleration / slowed_by.powi(2),
            jerk: limits.jerk / slowed_by.powi(3),
        };
        let profile = ScalarProfile::new(length_m, slower)?;
        let duration_s = profile.duration_s();
        let sideways_s = profile.time_at(SIDEWAYS_MM / 1e3).min(duration_s / 2.0);
        Some(Self {
            profile: Some(profile),
            duration_s,
            sideways_s,
        })
    }

    /// Returns the state of the crossing after `t_s`; outside its duration the tip stands still at
    /// an end.
    fn state(&self, t_s: f64) -> ProfileState {
        match &self.profile {
            Some(profile) if t_s < self.duration_s => profile.state(t_s.max(0.0)),
            Some(profile) => ProfileState::at_rest(profile.at(self.duration_s)),
            None => ProfileState::at_rest(0.0),
        }
    }
}

impl<'r> HopTiming<'r> {
    /// Chooses the shortest duration with which the tip is clear while it crosses.
    fn new(rise: &'r HopRise, crossing: &'r Crossing, press_m: f64) -> Self {
        let up_s = rise.profile.duration_s();
        // The part of the crossing during which the tip must be clear.
        let clear_s = crossing.duration_s - 2.0 * crossing.sideways_s;
        let min_s = match rise.form {
            RiseForm::Crest => clear_s / (1.0 - rise.clear_s / up_s),
            RiseForm::Plateau => clear_s + 2.0 * rise.clear_s,
        };
        Self {
            rise,
            crossing,
            press_m,
            duration_s: min_s.max(2.0 * up_s),
            slowed_by: 1.0,
        }
    }

    /// Slows the hop until the tip's speed and acceleration, of rise and crossing combined, keep
    /// their limits.
    fn slowed(self, limits: TipLimits) -> Self {
        let ratio = self.tip_ratio(limits);
        Self {
            slowed_by: ratio.max(1.0).sqrt(),
            ..self
        }
    }

    /// Returns the tip's largest ratio to its limits, of acceleration and of squared speed.
    fn tip_ratio(&self, limits: TipLimits) -> f64 {
        let ratio = |n: u32| {
            let t_s = self.duration_s / 2.0 * f64::from(n) / f64::from(LOOKS);
            let (up, across) = (self.rise_state(t_s), self.crossing_state(t_s));
            let speed = up.speed.hypot(across.speed) / (limits.speed_m_s * USED);
            let acceleration = up.acceleration.hypot(across.acceleration);
            (speed * speed).max(acceleration / (limits.acceleration_m_s2 * USED))
        };
        // The second half is its mirror image.
        (0..=LOOKS).map(ratio).fold(0.0, f64::max)
    }

    /// Returns the number of samples that the hop takes.
    fn periods(&self) -> usize {
        let periods = self.duration_s * self.slowed_by / PERIOD_S;
        to_count(periods.ceil().max(1.0))
    }

    /// Returns the state of the rise at a time in the hop before slowing.
    fn rise_state(&self, t_s: f64) -> ProfileState {
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
            RiseForm::Plateau => ProfileState::at_rest(self.rise.profile.at(up_s)),
        }
    }

    /// Returns the state of the crossing at a time in the hop before slowing.
    fn crossing_state(&self, t_s: f64) -> ProfileState {
        let start_s = (self.duration_s - self.crossing.duration_s) / 2.0;
        self.crossing.state(t_s - start_s)
    }

    fn sample(&self, n: usize, count: usize) -> HopState {
        let t_s = self.duration_s * (n as f64 / count as f64);
        HopState {
            height_m: self.rise_state(t_s).position - self.press_m,
            across_m: self.crossing_state(t_s).position,
        }
    }

    /// Returns the samples, counted after the first, with the tip clear of the sheet.
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
    let limits = limits.as_profile();
    ProfileLimits {
        speed: limits.speed * USED,
        acceleration: limits.acceleration * USED,
        ..limits
    }
}
