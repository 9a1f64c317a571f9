//! Learns by how far the goal of one joint has to be ahead of it: for its load, its speed and its friction.
//!
//! A servo without an integral term turns an error into torque, so the distance of its goal from the joint is what its load,
//! damping and friction ask for, over its stiffness. Its figures say how much of each; readings of an arm that moves freely
//! correct all three, by least squares in which the figures count as readings that were there before.

use nalgebra::{Matrix3, Vector3};

/// Figures of the same servo differ by this factor, from one who measured it to the other and from one supply to the other.
const WEAKEST: f64 = 1.5;

/// Weight of the figures, as the sum of squares of torques, speeds and directions in as many readings; and the most that all
/// squared torques together may weigh, so that what is older fades.
const FIGURES: [f64; 3] = [1.0, 0.02, 0.01];
const READINGS_N2_M2: f64 = 100.0;

/// Readings of a joint in motion until what they say is believed whole: a lead that follows the first few swings, and so does
/// the tip.
const BELIEVED_AFTER: f64 = 40.0;

/// Longest lag that is made good.
const LAG_S_MAX: f64 = 0.2;

/// Most friction that is made good, as a multiple of what the figures say.
const FRICTION_MOST: f64 = 2.0;

/// Speed below which friction is not what it is in motion: a tenth of what a joint creeps with while a line hardly turns it.
const STICKING_RAD_S: f64 = 0.002;

/// Speed from which readings count for less.
const SLOW_RAD_S: f64 = 0.3;

/// Deviation of a reading beyond which an obstacle is behind it: in addition to as much as the yield may be wrong by, and to
/// a tenth of a second's motion.
const UNEXPLAINED_RAD: f64 = 0.03;
const UNEXPLAINED_S: f64 = 0.1;

/// Figures of a joint's servos.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct JointFigures {
    /// Yield by the servos' figures, and what a calibration added to it.
    pub(super) yield_rad_per_n_m: f64,
    pub(super) calibrated_rad_per_n_m: f64,
    pub(super) damping_n_m_s: f64,
    pub(super) friction_n_m: f64,
    pub(super) inertia_kg_m2: f64,
}

/// What moves or loads a joint.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct JointEffort {
    /// Torque that the servo holds, without that of its own motion.
    pub(super) torque_n_m: f64,
    pub(super) speed_rad_s: f64,
    /// Direction in which it turns or turned last: friction holds it back.
    pub(super) direction: f64,
    pub(super) acceleration_rad_s2: f64,
    /// Inertia of what the joint carries.
    pub(super) carried_kg_m2: f64,
}

/// What is known of one joint.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct JointYield {
    figures: JointFigures,
    moments: Matrix3<f64>,
    products: Vector3<f64>,
    /// Angle for each newton metre, angle for each radian a second, and angle against friction.
    known: Vector3<f64>,
    /// Readings in motion so far.
    readings: f64,
}

impl JointYield {
    /// Creates what the figures and a calibration say.
    pub(super) fn new(figures: JointFigures) -> Self {
        let of_figures = figures.yield_rad_per_n_m;
        let known = Vector3::new(
            (of_figures + figures.calibrated_rad_per_n_m).max(0.0),
            of_figures * figures.damping_n_m_s,
            of_figures * figures.friction_n_m,
        );
        let moments = Matrix3::from_diagonal(&Vector3::from(FIGURES));
        Self {
            figures,
            moments,
            products: moments * known,
            known,
            readings: 0.0,
        }
    }

    /// Returns the angle by which the joint yields to a newton metre.
    pub(super) fn rad_per_n_m(&self) -> f64 {
        match self.most_rad_per_n_m() {
            // Without figures of its servo a joint yields as calibrated.
            most if most > 0.0 => self.known.x.clamp(0.0, most),
            _ => self.known.x,
        }
    }

    /// Returns the angle by which the weakest plausible servo would yield; 0 where nothing is known of it.
    pub(super) fn most_rad_per_n_m(&self) -> f64 {
        let figures = &self.figures;
        let of_figures = figures.yield_rad_per_n_m;
        match of_figures > 0.0 {
            true => WEAKEST * of_figures.max(of_figures + figures.calibrated_rad_per_n_m),
            false => 0.0,
        }
    }

    /// Returns the yield as known now and by the figures, each times the weight of what was seen of it.
    pub(super) fn seen_yields(&self) -> [f64; 2] {
        match self.figures.yield_rad_per_n_m {
            of_figures if of_figures > 0.0 => {
                [self.rad_per_n_m() / of_figures, 1.0].map(|yields| yields * self.moments.m11)
            }
            _ => [0.0; 2],
        }
    }

    /// Returns the angle by which the joint yields to a newton metre by the figures alone.
    pub(super) fn figures_rad_per_n_m(&self) -> f64 {
        self.figures.yield_rad_per_n_m
    }

    /// Returns by how far a goal has to be ahead of a joint because it moves.
    pub(super) fn ahead_of_motion_rad(&self, effort: &JointEffort) -> f64 {
        let most_rad_per_n_m = self.most_rad_per_n_m();
        if most_rad_per_n_m <= 0.0 {
            return 0.0;
        }
        let lag_s = self.known.y.clamp(0.0, LAG_S_MAX);
        let friction_rad = self.known.z.clamp(0.0, self.most_friction_rad());
        // A joint whose load is small teaches its stiffness by its lag alone.
        let by_lag = match self.figures.damping_n_m_s > 0.0 {
            true => lag_s / self.figures.damping_n_m_s,
            false => 0.0,
        };
        let inertia_kg_m2 = self.figures.inertia_kg_m2 + effort.carried_kg_m2;
        let inertia_rad = self.rad_per_n_m().min(by_lag) * inertia_kg_m2;
        lag_s * effort.speed_rad_s
            + friction_rad * effort.direction
            + inertia_rad * effort.acceleration_rad_s2
    }

    /// Corrects what is known by a reading: its goal was so far ahead of a joint.
    pub(super) fn learn(&mut self, effort: &JointEffort, ahead_rad: f64, weight: f64) {
        let most_rad_per_n_m = self.most_rad_per_n_m();
        let inertia_kg_m2 = self.figures.inertia_kg_m2 + effort.carried_kg_m2;
        let inertia_n_m = inertia_kg_m2 * effort.acceleration_rad_s2;
        let torque_n_m = effort.torque_n_m + inertia_n_m;
        let speed = effort.speed_rad_s;
        let seen = Vector3::new(torque_n_m, speed, effort.direction);
        let surprise_rad = (ahead_rad - seen.dot(&self.known)).abs();
        let plausible_rad =
            torque_n_m.abs() * most_rad_per_n_m + speed.abs() * UNEXPLAINED_S + UNEXPLAINED_RAD;
        if most_rad_per_n_m <= 0.0 || surprise_rad.is_nan() || surprise_rad > plausible_rad {
            return;
        }
        let weight = weight / (1.0 + (speed / SLOW_RAD_S).powi(2));
        self.readings += effort.direction.abs();
        self.moments += seen * seen.transpose() * weight;
        self.products += seen * (ahead_rad * weight);
        let fades = (READINGS_N2_M2 / self.moments.m11).min(1.0);
        self.moments *= fades;
        self.products *= fades;
        if let Some(known) = self.fit() {
            let believed = (self.readings / BELIEVED_AFTER).min(1.0);
            self.known += believed * (known - self.known);
        }
    }

    /// Returns what fits the readings best with a plausible friction and a lag that is not negative. A friction of more
    /// than that, as of a joint that stuck, would be taken from its lag.
    fn fit(&self) -> Option<Vector3<f64>> {
        let (moments, products) = (&self.moments, &self.products);
        let mut known = moments.cholesky()?.solve(products);
        let friction_rad = known.z.clamp(0.0, self.most_friction_rad());
        if (friction_rad - known.z).abs() > 0.0 {
            let rest = products - moments.column(2) * friction_rad;
            let two = moments.fixed_view::<2, 2>(0, 0).cholesky()?;
            let [load, speed] = two.solve(&rest.fixed_rows::<2>(0).into_owned()).into();
            known = Vector3::new(load, speed, friction_rad);
        }
        if known.y < 0.0 {
            let rest = products.x - moments.m13 * known.z;
            known = Vector3::new(rest / moments.m11, 0.0, known.z);
        }
        Some(known)
    }

    fn most_friction_rad(&self) -> f64 {
        FRICTION_MOST * self.most_rad_per_n_m() * self.figures.friction_n_m
    }
}

/// Returns the direction of a speed, less than 1 where a joint nearly stands.
pub(super) fn direction(speed_rad_s: f64) -> f64 {
    speed_rad_s / (speed_rad_s.abs() + STICKING_RAD_S)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn joint() -> JointYield {
        JointYield::new(JointFigures {
            yield_rad_per_n_m: 1.0 / 18.0,
            damping_n_m_s: 0.6,
            friction_n_m: 0.05,
            inertia_kg_m2: 0.03,
            ..JointFigures::default()
        })
    }

    /// What it stuck with is no friction of a joint that turns: with it the lag of one that turns fast would be too small.
    #[test]
    fn a_joint_that_stuck_lags_no_less_where_it_turns() {
        let turns = |speed_rad_s: f64| JointEffort {
            speed_rad_s,
            direction: 1.0,
            ..JointEffort::default()
        };
        let mut joint = joint();
        (0..40).for_each(|_| joint.learn(&turns(0.02), 0.02, 1.0));
        (0..20).for_each(|_| joint.learn(&turns(0.3), 0.02, 1.0));
        let ahead_rad = joint.ahead_of_motion_rad(&turns(0.7));
        assert!(ahead_rad > 0.03, "{ahead_rad}");
    }

    /// A joint that sticks at first and then follows is no other servo in between.
    #[test]
    fn a_first_reading_moves_a_lead_only_a_little() {
        let mut joint = joint();
        let effort = JointEffort {
            speed_rad_s: 0.3,
            direction: 1.0,
            ..JointEffort::default()
        };
        let before_rad = joint.ahead_of_motion_rad(&effort);
        let mut change_after = |readings: usize| {
            (0..readings).for_each(|_| joint.learn(&effort, 0.0, 1.0));
            1.0 - joint.ahead_of_motion_rad(&effort) / before_rad
        };
        let [first, later] = [1, 60].map(&mut change_after);
        assert!(first < 0.25 * later && later > 0.2, "{first} {later}");
    }
}
