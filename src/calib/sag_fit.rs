//! Fits the sag of each joint under the arm's weight to joints that were measured at rest.

use super::RestReading;
use super::ink_observation::joints_of;
use arm::ArmModel;

/// Smallest number of postures for a fit.
const RESTS_MIN: usize = 4;

/// Load below which a joint's sag cannot be measured.
const LOAD_N_M_MIN: f64 = 0.1;

/// Dead band of a servo in counts: how far from its goal it may stop under any load.
const DEAD_BAND_COUNTS: f64 = 0.5;

/// Sag of a joint, in degrees for each newton metre of the nominal load.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct JointSag {
    /// The sag.
    pub deg_per_n_m: f64,
    /// Its standard deviation, including the possible effect of the dead band.
    pub sigma_deg_per_n_m: f64,
    /// Root mean square of each posture's residual from a fit to the others.
    pub held_out_deg: f64,
    /// Root mean square of each posture's residual from the present sag.
    pub current_residual_deg: f64,
}

impl JointSag {
    /// Returns whether the joint sags significantly.
    #[must_use]
    pub fn is_significant(&self) -> bool {
        self.deg_per_n_m > 3.0 * self.sigma_deg_per_n_m
    }

    /// Returns whether it predicts held-out postures better than the present sag does.
    #[must_use]
    pub fn improves_prediction(&self) -> bool {
        self.held_out_deg < self.current_residual_deg
    }
}

/// Returns the sag of each joint; `None` if its load is too small, or too few postures were measured.
#[must_use]
pub fn sags(
    arm: &ArmModel,
    rests: &[RestReading],
    current_deg_per_n_m: &[f64],
) -> Vec<Option<JointSag>> {
    let load = &arm.load;
    let is_valid = |deg: &[f64]| deg.len() == arm.dof() && deg.iter().all(|q| q.is_finite());
    let rests: Vec<_> = rests
        .iter()
        .filter(|rest| is_valid(&rest.sent_deg) && is_valid(&rest.measured_deg))
        .map(|rest| {
            let [sent, measured] = [&rest.sent_deg, &rest.measured_deg].map(|deg| joints_of(deg));
            (load.torque_n_m(&arm.chain, &measured), sent, measured)
        })
        .collect();
    let of_joint = |joint: usize| {
        let value = |values: &[f64]| values.get(joint).copied().unwrap_or(0.0);
        let pairs = rests.iter().map(|(load_n_m, sent, measured)| {
            let off_rad = value(measured) - value(sent);
            (value(load_n_m), off_rad.to_degrees())
        });
        let pairs: Vec<_> = pairs.collect();
        sag(&pairs, count_deg(arm, joint), value(current_deg_per_n_m))
    };
    (0..arm.dof()).map(of_joint).collect()
}

/// Returns the size of a count of the joint's coarsest servo.
fn count_deg(arm: &ArmModel, joint: usize) -> f64 {
    let servos = arm.servos().filter(|(turned, _)| *turned == joint);
    let counts = servos.map(|(_, servo)| 360.0 / f64::from(servo.ticks_per_turn.max(1)));
    counts.fold(0.0, f64::max)
}

fn sag(pairs: &[(f64, f64)], count_deg: f64, current_deg_per_n_m: f64) -> Option<JointSag> {
    let heaviest = pairs.iter().map(|(load, _)| load.abs()).fold(0.0, f64::max);
    if pairs.len() < RESTS_MIN || heaviest < LOAD_N_M_MIN {
        return None;
    }
    let sum = |term: &dyn Fn(&(f64, f64)) -> f64| pairs.iter().map(term).sum::<f64>();
    let weight = sum(&|(load, _)| load * load);
    let deg_per_n_m = sum(&|(load, off)| load * off) / weight;
    let freedom = (pairs.len() - 1) as f64;
    let scatter = sum(&|(load, off)| (off - deg_per_n_m * load).powi(2)) / freedom;
    let dead_band = DEAD_BAND_COUNTS * count_deg * sum(&|(load, _)| load.abs()) / weight;
    // The residual from a fit to the other postures follows from the fit to all by the leverage.
    let held_out = |(load, off): &(f64, f64)| {
        let weight_of_others = (1.0 - load * load / weight).max(f64::EPSILON);
        ((off - deg_per_n_m * load) / weight_of_others).powi(2)
    };
    let current = |(load, off): &(f64, f64)| (off - current_deg_per_n_m * load).powi(2);
    let root_mean = |squares: f64| (squares / pairs.len() as f64).sqrt();
    Some(JointSag {
        held_out_deg: root_mean(sum(&held_out)),
        current_residual_deg: root_mean(sum(&current)),
        deg_per_n_m,
        sigma_deg_per_n_m: (scatter / weight).sqrt().hypot(dead_band / 3.0_f64.sqrt()),
    })
}

#[cfg(test)]
mod tests {
    use super::JointSag;

    fn fit(loads: &[f64], off: impl Fn(f64) -> f64) -> Option<JointSag> {
        let pairs: Vec<_> = loads.iter().map(|load| (*load, off(*load))).collect();
        super::sag(&pairs, 0.088, 0.0)
    }

    #[test]
    fn sag_is_distinguished_from_a_dead_band() {
        let loads = [0.4, 0.6, 0.8, 1.0, 1.2];
        let found = fit(&loads, |load| 0.3 * load + 0.02);
        assert!(found.is_some_and(|sag| {
            sag.is_significant()
                && sag.improves_prediction()
                && (sag.deg_per_n_m - 0.3).abs() < 0.05
        }));
        let stuck = fit(&loads, |_| 0.04);
        assert!(stuck.is_some_and(|sag| !sag.is_significant()), "{stuck:?}");
        assert_eq!(fit(&[0.05; 9], |_| 0.1), None);
    }

    /// A single heavy posture, supported by something, gives a sag that none of the others shows.
    #[test]
    fn a_sag_that_one_posture_alone_shows_does_not_improve_the_prediction() {
        let loads = [0.01, 0.02, 0.01, 0.02, 0.01, 0.02, 0.01, 0.02, 0.01, 1.2];
        let held = fit(&loads, |load| if load > 1.0 { 0.5 } else { -0.03 });
        assert!(
            held.is_some_and(|sag| sag.deg_per_n_m > 0.3 && !sag.improves_prediction()),
            "{held:?}"
        );
    }
}
