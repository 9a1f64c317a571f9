//! A proof being spent: each tick judged against what was measured, each giving one frame.

use std::time::Duration;

use super::check::near;
use super::{CheckedTrajectory, Setpoint};
use crate::plan::{Span, SpanKind};
use crate::scene::Scene;
use crate::units::{Instant, Joints, Measured};

/// The goal is never further ahead of the measured joint than this much time at full speed, so
/// that an arm that loses its host moves no further.
const LEASH: Duration = Duration::from_millis(150);

/// A goal that has waited this long for a joint that does not follow is given up.
const STALL: Duration = Duration::from_millis(300);

/// Readings older than so many periods hold the motion.
const BLIND_PERIODS: u32 = 3;

/// And older than this end it.
const BLIND: Duration = Duration::from_millis(100);

/// A lift takes at least this long.
const LIFT_TICKS_MIN: f64 = 10.0;

/// A checked trajectory on its way. Made by [`CheckedTrajectory::begin`].
#[derive(Debug)]
pub struct Execution {
    checked: CheckedTrajectory,
    mode: Mode,
    /// Where on the path, in samples.
    at: f64,
    goal_rad: Joints,
    held_ticks: u32,
    stopped: bool,
    lifted: bool,
}

#[derive(Debug)]
enum Mode {
    Follow,
    /// Ever slower along the path.
    Brake {
        rate: f64,
        less_per_tick: f64,
    },
    /// Straight up, after braking.
    Rise {
        from_rad: Joints,
        by_rad: Joints,
        tick: f64,
        ticks: f64,
    },
    Stand,
}

/// What a tick gave.
#[derive(Debug)]
pub enum Step {
    /// Send this.
    Go(Setpoint),
    /// Wait where the last frame said: a joint is behind, or a reading is missing.
    Hold,
    /// The end was sent before.
    Finished,
}

/// Where a motion is.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Progress {
    /// The sample last sent.
    pub sample: usize,
    /// How many there are.
    pub of: usize,
    /// What the arm is doing.
    pub doing: SpanKind,
    /// Which stroke or visited point.
    pub item: Option<usize>,
}

/// Why a motion cannot begin or go on. The arm holds; nothing more is sent.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Broken {
    /// The arm is not where the proof begins.
    #[error("the arm moved since the motion was planned: {0}")]
    Moved(String),
    /// A person's leave has ended.
    #[error(
        "motion is no longer enabled for this scene; an operator enables it with `steadyhand enable`"
    )]
    Expired,
    /// A joint does not follow.
    #[error("{joint} stayed {behind_deg} degrees behind its goal for {ms} ms: something blocks it, or its servo gave up", ms = STALL.as_millis())]
    Stalled {
        /// Which joint.
        joint: String,
        /// How far behind, rounded.
        behind_deg: u32,
    },
    /// No reading for too long.
    #[error("no valid reading from the arm for {0} ms; {limit} ms is the limit", limit = BLIND.as_millis())]
    Blind(u128),
}

impl CheckedTrajectory {
    /// Spends the proof.
    ///
    /// # Errors
    /// When the arm is not where the proof begins, or the permit has ended.
    pub fn begin(self, seen: &Measured, now: Instant) -> Result<Execution, Broken> {
        if !self.permit.covers(&self.scene, now) {
            return Err(Broken::Expired);
        }
        let first = self
            .trajectory
            .samples
            .first()
            .copied()
            .unwrap_or_else(|| Joints::zeros(0));
        near(&self.scene, &first, seen, now).map_err(Broken::Moved)?;
        Ok(Execution {
            checked: self,
            mode: Mode::Follow,
            at: 0.0,
            goal_rad: first,
            held_ticks: 0,
            stopped: false,
            lifted: false,
        })
    }
}

impl Execution {
    /// The frame for this tick.
    ///
    /// # Errors
    /// [`Broken`] when a joint has not followed, or has not been read, for too long.
    pub fn next(&mut self, seen: &Measured, now: Instant) -> Result<Step, Broken> {
        if self.must_hold(seen, now)? {
            return Ok(Step::Hold);
        }
        let Some(goal_rad) = self.advance() else {
            return Ok(Step::Finished);
        };
        self.goal_rad = goal_rad;
        let limits = self.scene().arm.limits;
        Ok(Step::Go(Setpoint {
            goal_rad,
            velocity_cap_rad_s: limits.velocity_rad_s,
            acceleration_cap_rad_s2: limits.acceleration_rad_s2,
        }))
    }

    /// From the next tick on: decelerate along the path, lift, stand. A second call changes
    /// nothing.
    pub fn stop(&mut self) {
        self.stopped = true;
        if matches!(self.mode, Mode::Follow) {
            let ticks = self.checked.stops.brake_ticks(self.sample());
            self.mode = Mode::Brake {
                rate: 1.0,
                less_per_tick: 1.0 / ticks,
            };
        }
    }

    /// From now on nothing more: stand where the last frame said.
    pub fn stand(&mut self) {
        self.stopped = true;
        self.mode = Mode::Stand;
    }

    /// Whether [`Execution::stop`] or [`Execution::stand`] was called.
    #[must_use]
    pub fn was_stopped(&self) -> bool {
        self.stopped
    }

    /// Whether a stop has sent all of its lift.
    #[must_use]
    pub fn has_lifted(&self) -> bool {
        self.lifted
    }

    /// The last sample that the tip comes to if the next tick goes on and a stop follows it: what
    /// braking along the path still passes is counted.
    #[must_use]
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "between 1 and some dozens of ticks"
    )]
    pub fn next_reach(&self) -> usize {
        let last = self.checked.trajectory.samples.len().saturating_sub(1);
        let next = (self.sample() + 1).min(last);
        let ticks = self.checked.stops.brake_ticks(next);
        // The rate falls evenly from 1 to 0, so half as many samples as ticks are passed.
        (next + (ticks / 2.0).ceil() as usize).min(last)
    }

    /// Where it is.
    #[must_use]
    pub fn progress(&self) -> Progress {
        let sample = self.sample();
        let span = self.span();
        Progress {
            sample,
            of: self.checked.trajectory.samples.len(),
            doing: span.map_or(SpanKind::Pose, |span| span.kind),
            item: span.and_then(|span| span.item),
        }
    }

    /// The stretch of the trajectory that it is in.
    #[must_use]
    pub fn span(&self) -> Option<&Span> {
        self.checked.trajectory.span_at(self.sample())
    }

    /// The scene that the proof was judged against.
    #[must_use]
    pub fn scene(&self) -> &Scene {
        &self.checked.scene
    }

    /// Where the arm is being sent.
    #[must_use]
    pub fn goal_rad(&self) -> &Joints {
        &self.goal_rad
    }

    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "`at` is within the samples"
    )]
    fn sample(&self) -> usize {
        self.at.floor() as usize
    }

    fn must_hold(&mut self, seen: &Measured, now: Instant) -> Result<bool, Broken> {
        let age = now.since(seen.at);
        if age > BLIND {
            return Err(Broken::Blind(age.as_millis()));
        }
        let period = self.checked.trajectory.period;
        let behind = self.behind(&seen.position_rad);
        if behind.is_none() && age <= period * BLIND_PERIODS {
            self.held_ticks = 0;
            return Ok(false);
        }
        self.held_ticks = self.held_ticks.saturating_add(1);
        match behind {
            Some((joint, by_rad)) if period * self.held_ticks > STALL => Err(Broken::Stalled {
                joint: self.scene().arm.joint_name(joint),
                behind_deg: whole_degrees(by_rad),
            }),
            _ => Ok(true),
        }
    }

    /// The joint that is at the end of its leash.
    fn behind(&self, is_rad: &Joints) -> Option<(usize, f64)> {
        if is_rad.len() != self.goal_rad.len() {
            // A joint that was not read does not follow.
            return Some((is_rad.len(), f64::INFINITY));
        }
        let fastest = self.scene().arm.limits.velocity_rad_s;
        let behind = self.goal_rad.zip(is_rad, |goal, is| (goal - is).abs());
        behind
            .iter()
            .zip(fastest.iter())
            .enumerate()
            .find(|(_, (behind, fastest))| {
                behind.is_nan() || **behind > *fastest * LEASH.as_secs_f64()
            })
            .map(|(joint, (behind, _))| (joint, *behind))
    }

    /// The next goal; `None` after the last.
    fn advance(&mut self) -> Option<Joints> {
        let last = self.checked.trajectory.samples.len().saturating_sub(1) as f64;
        match &mut self.mode {
            Mode::Follow => {
                if self.at >= last {
                    return None;
                }
                self.at += 1.0;
                self.checked.trajectory.samples.get(self.sample()).copied()
            }
            Mode::Brake {
                rate,
                less_per_tick,
            } => {
                *rate = (*rate - *less_per_tick).max(0.0);
                let (moved, done) = (*rate, *rate <= 0.0);
                self.at = (self.at + moved).min(last);
                let goal = self.between();
                if done || self.at >= last {
                    self.rise(&goal);
                }
                Some(goal)
            }
            Mode::Rise {
                from_rad,
                by_rad,
                tick,
                ticks,
            } => {
                if *tick >= *ticks {
                    self.mode = Mode::Stand;
                    self.lifted = true;
                    return None;
                }
                *tick += 1.0;
                let share = smooth((*tick / *ticks).min(1.0));
                Some(from_rad.zip(by_rad, |from, by| from + by * share))
            }
            Mode::Stand => None,
        }
    }

    fn between(&self) -> Joints {
        let samples = &self.checked.trajectory.samples;
        let first = self.sample();
        let share = self.at - self.at.floor();
        let Some(a) = samples.get(first) else {
            return self.goal_rad;
        };
        let b = samples.get(first + 1).unwrap_or(a);
        a.zip(b, |a, b| a + (b - a) * share)
    }

    fn rise(&mut self, from: &Joints) {
        self.mode = match self.checked.stops.lift_rad(self.sample()) {
            None => Mode::Stand,
            Some(by_rad) => {
                let ticks = self.lift_ticks(&by_rad);
                Mode::Rise {
                    from_rad: *from,
                    by_rad,
                    tick: 0.0,
                    ticks,
                }
            }
        };
    }

    /// Long enough that the smooth step's peaks, 1.875 and 5.774 over its duration and its
    /// square, stay within the joints' limits.
    fn lift_ticks(&self, by_rad: &Joints) -> f64 {
        let period = self.checked.trajectory.period.as_secs_f64();
        let limits = self.scene().arm.limits;
        let by_speed = by_rad.zip(&limits.velocity_rad_s, |by, fastest| {
            1.875 * by.abs() / fastest
        });
        let by_push = by_rad.zip(&limits.acceleration_rad_s2, |by, hardest| {
            (5.774 * by.abs() / hardest).sqrt()
        });
        let seconds = by_speed
            .iter()
            .chain(by_push.iter())
            .copied()
            .fold(0.0, f64::max);
        (seconds / period).ceil().max(LIFT_TICKS_MIN)
    }
}

/// From 0 to 1 with no speed and no acceleration at either end.
fn smooth(share: f64) -> f64 {
    share.powi(3) * (10.0 + share * (6.0 * share - 15.0))
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "saturates; for words only"
)]
fn whole_degrees(rad: f64) -> u32 {
    rad.to_degrees().round() as u32
}
