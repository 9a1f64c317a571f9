//! Estimates the force with which the tip presses, from the loads of a probing arm, and where that force began.
//!
//! Only torques that a push along the sheet's normal makes count, each joint by its lever. In free air the force is noise
//! around a constant; on a sheet it grows with the descent. A line that is flat and then rises, fitted to all readings,
//! begins to rise where the tip touched: a threshold is passed only once the pen has given way. The slope is how far a
//! newton pushes the pen in.

use base::units::JointVector;

/// Least force that can be a touch.
const FORCE_N: f64 = 0.35;

/// A touch exceeds the noise of free air by this factor.
const NOISE_FACTOR: f64 = 6.0;

/// Readings that are averaged, and readings in a row that are beyond the threshold.
const AVERAGED: usize = 10;
const TOUCH_READINGS: usize = 5;

/// A force that rises by less in free air drifts: friction and the stiffness of the servos are known that well.
const DRIFT_N: f64 = 0.1;

/// Least rise of a touch from one reading to the next: 0.1 N/mm, of a soft pen on soft servos.
const RISE_N: f64 = 0.002;

/// Last readings that a line is fitted to: before them the force drifts.
const FITTED: usize = 240;

/// Readings on either side of a beginning that a fit needs.
const FIT_MARGIN: usize = 8;

/// Readings before the touch whose motion tells the joints' angles at it.
const APPROACH: usize = 60;

/// Readings of a probe at its slowest, for which room is made before it moves.
const READINGS: usize = 1500;

/// One reading of a probing arm.
#[derive(Clone, Copy, Debug)]
pub(super) struct ForceReading {
    /// Force along the normal, with an unknown constant.
    pub(super) force_n: f64,
    pub(super) tip_mm: f64,
    pub(super) position_rad: JointVector,
}

/// Where and on what a tip touched.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct FeltTouch {
    /// Index of the reading at which the force began.
    pub(super) began: usize,
    pub(super) position_rad: JointVector,
    /// Force for each millimetre that the tip came down after it had touched.
    pub(super) give_n_per_mm: f64,
}

/// Force of one probe, from the moment at which the tip had come to its speed.
#[derive(Debug)]
pub(super) struct TouchForce {
    readings: Vec<ForceReading>,
    /// Mean of the last readings, at each of them.
    means: Vec<f64>,
    beyond: usize,
}

impl Default for TouchForce {
    /// Makes room for what the arm's thread notes while it moves.
    fn default() -> Self {
        Self {
            readings: Vec::with_capacity(READINGS),
            means: Vec::with_capacity(READINGS),
            beyond: 0,
        }
    }
}

/// A flat line that begins to rise.
#[derive(Clone, Copy, Debug)]
struct RisingLine {
    began: usize,
    slope: f64,
    error: f64,
}

impl TouchForce {
    /// Adds a reading, and returns a touch after the first `free` readings, which are of free air.
    pub(super) fn update(&mut self, reading: ForceReading, free: usize) -> Option<FeltTouch> {
        self.readings.push(reading);
        let last = self.readings.iter().rev().take(AVERAGED);
        let (sum, count) = last.fold((0.0, 0.0), |(sum, count), reading| {
            (sum + reading.force_n, count + 1.0)
        });
        let mean_n = sum / count;
        self.means.push(mean_n);
        if self.readings.len() <= free {
            return None;
        }
        let (air_n, noise_n) = self.air(free);
        let is_beyond = mean_n - air_n > FORCE_N.max(NOISE_FACTOR * noise_n);
        self.beyond = if is_beyond { self.beyond + 1 } else { 0 };
        if self.beyond < TOUCH_READINGS {
            return None;
        }
        self.felt(free)
    }

    /// Returns by how much the mean force rose over the first `free` readings, in which it should not.
    pub(super) fn rise_n(&self, free: usize) -> f64 {
        let third = free / 3;
        let mean = |from: usize| {
            let some = self.readings.iter().skip(from).take(third);
            some.map(|reading| reading.force_n).sum::<f64>() / third.max(1) as f64
        };
        mean(free.saturating_sub(third)) - mean(0)
    }

    /// Returns the least rise in free air that says that the tip pressed.
    pub(super) fn rise_limit_n(&self, free: usize) -> f64 {
        FORCE_N.max(NOISE_FACTOR / 2.0 * self.air(free).1)
    }

    /// Returns the mean force in free air, and the scatter of averaged readings.
    fn air(&self, free: usize) -> (f64, f64) {
        let means = self.means.iter().take(free).skip(AVERAGED);
        let (sum, squares, count) = means.fold((0.0, 0.0, 0.0), |(sum, squares, count), mean| {
            (sum + mean, squares + mean * mean, count + 1.0)
        });
        let mean: f64 = sum / f64::max(count, 1.0);
        let variance: f64 = squares / f64::max(count, 1.0) - mean * mean;
        (mean, variance.max(0.0).sqrt())
    }

    /// Returns the touch. A force that drifts through free air may seem to begin there.
    fn felt(&self, free: usize) -> Option<FeltTouch> {
        let mut line = self.rising_line(FIT_MARGIN)?;
        let risen_in_air_n = line.slope * free.saturating_sub(line.began) as f64;
        if line.began < free && risen_in_air_n < DRIFT_N {
            line = self.rising_line(free)?;
        }
        let position_rad = self.position_rad(line.began)?;
        let (from, to) = (self.readings.get(line.began)?, self.readings.last()?);
        let risen_n = line.slope * (self.readings.len() - line.began) as f64;
        Some(FeltTouch {
            began: line.began,
            position_rad,
            give_n_per_mm: risen_n / (from.tip_mm - to.tip_mm).max(0.01),
        })
    }

    /// Returns the line of least squares that is flat, and rises from one of the readings on, none before `from`.
    fn rising_line(&self, from: usize) -> Option<RisingLine> {
        let all = self.readings.len();
        let last = all.checked_sub(FIT_MARGIN)?;
        let first = all.saturating_sub(FITTED) + FIT_MARGIN;
        let lines = (from.max(first)..last).filter_map(|began| self.line_from(began));
        let rising = lines.filter(|line| line.slope > RISE_N);
        rising.min_by(|a, b| a.error.total_cmp(&b.error))
    }

    fn line_from(&self, began: usize) -> Option<RisingLine> {
        let first = self.readings.len().saturating_sub(FITTED);
        let all = (self.readings.len() - first) as f64;
        let (mut y, mut h, mut hh, mut hy, mut yy) = (0.0, 0.0, 0.0, 0.0, 0.0);
        for (index, reading) in self.readings.iter().enumerate().skip(first) {
            let rise = index.saturating_sub(began) as f64;
            y += reading.force_n;
            h += rise;
            hh += rise * rise;
            hy += rise * reading.force_n;
            yy += reading.force_n * reading.force_n;
        }
        let determinant = all * hh - h * h;
        let slope = (determinant > 0.0).then(|| (all * hy - h * y) / determinant)?;
        let flat = (y - slope * h) / all;
        Some(RisingLine {
            began,
            slope,
            error: yy - flat * y - slope * hy,
        })
    }

    /// Returns the joints' angles at a reading, by a line through those before it.
    fn position_rad(&self, at: usize) -> Option<JointVector> {
        let from = at.saturating_sub(APPROACH);
        let some = self.readings.get(from..=at)?;
        let count = some.len() as f64;
        let middle = (count - 1.0) / 2.0;
        let first = some.first()?.position_rad;
        let (mut sum, mut moment) = (first.map(|_, _| 0.0), first.map(|_, _| 0.0));
        let mut squares = 0.0;
        for (index, reading) in some.iter().enumerate() {
            let off = index as f64 - middle;
            squares += off * off;
            sum = sum.zip(&reading.position_rad, |sum, angle| sum + angle);
            moment = moment.zip(&reading.position_rad, |sum, angle| sum + off * angle);
        }
        let squares = f64::max(squares, 1.0);
        Some(sum.zip(&moment, |sum, moment| {
            sum / count + moment / squares * middle
        }))
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a failing test may panic")]
mod tests {
    use super::*;

    const FREE: usize = 120;
    const STEP_MM: f64 = 0.0196;

    /// Feels with a tip that comes down from 8 mm, and a force at each height. Returns the first touch, and its height.
    fn feel(force_n: impl Fn(f64) -> f64, noise_n: f64) -> Option<(FeltTouch, f64)> {
        let mut force = TouchForce::default();
        (0..600_u32).find_map(|tick| {
            let tip_mm = 8.0 - STEP_MM * f64::from(tick);
            // A count of a stiff servo's error comes and goes.
            let noise = noise_n * (f64::from(tick * tick % 97) / 48.0 - 1.0);
            let reading = ForceReading {
                force_n: 2.0 + force_n(tip_mm) + noise,
                tip_mm,
                position_rad: JointVector::from_slice(&[tip_mm / 250.0]),
            };
            let touch = force.update(reading, FREE)?;
            Some((touch, touch.position_rad.first()? * 250.0))
        })
    }

    #[test]
    fn no_touch_is_felt_in_air_however_much_a_servo_hunts() {
        for noise_n in [0.0, 0.3, 3.0] {
            assert_eq!(feel(|_| 0.0, noise_n), None);
            // Nor is a force that was there all the time.
            assert_eq!(feel(|_| 4.0, noise_n), None);
        }
    }

    #[test]
    fn a_pen_that_gives_way_is_felt_where_it_touched_and_its_slope_is_told() {
        for (sheet_mm, give) in [(3.0, 0.4), (0.0, 0.4), (-2.0, 2.0), (1.0, 20.0)] {
            for noise_n in [0.0, 0.3] {
                let press = |tip_mm: f64| give * f64::max(0.0, sheet_mm - tip_mm);
                let (touch, at_mm) = feel(press, noise_n).unwrap();
                assert!((at_mm - sheet_mm).abs() < 0.4, "{sheet_mm} {give}: {at_mm}");
                let ratio = touch.give_n_per_mm / give;
                assert!((0.6..1.6).contains(&ratio), "{sheet_mm} {give}: {touch:?}");
            }
        }
    }
}
