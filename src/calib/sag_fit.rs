//! Sag of each joint under the arm's weight, from joints that were measured where the arm stood still.

use super::RestReading;
use super::ink_observation::joints_of;
use arm::ArmModel;

/// Fewer postures are not fitted.
const RESTS_MIN: usize = 4;

/// A joint that bears less than this in every posture does not sag.
const LOAD_N_M_MIN: f64 = 0.1;

/// Share of a servo's count by which it stops beside its goal wherever it is sent: its dead band.
const DEAD_BAND_COUNTS: f64 = 0.5;

/// Sag of a joint, in degrees for each newton metre of the nominal load.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct JointSag {
    /// The sag.
    pub deg_per_n_m: f64,
    /// Its standard deviation, with what the dead band may have to do with it.
    pub sigma_deg_per_n_m: f64,
    /// Root mean square of what each posture is off from a fit to the others.
    pub unseen_deg: f64,
    /// Root mean square of what each posture is off from the sag that was known before.
    pub known_off_deg: f64,
}

impl JointSag {
    /// Returns whether the joint sags beyond chance.
    #[must_use]
    pub fn is_significant(&self) -> bool {
        self.deg_per_n_m > 3.0 * self.sigma_deg_per_n_m
    }

    /// Returns whether postures that a fit has not seen agree with it better than with what was known.
    #[must_use]
    pub fn foretells(&self) -> bool {
        self.unseen_deg < self.known_off_deg
    }
}

/// Returns the sag of each joint, whose sag so far is `known_deg_per_n_m`; `None` where it bears too little, or too few postures
/// were measured.
#[must_use]
pub fn sags(
    arm: &ArmModel,
    rests: &[RestReading],
    known_deg_per_n_m: &[f64],
) -> Vec<Option<JointSag>> {
    let load = arm.nominal_load();
    let is_whole = |deg: &[f64]| deg.len() == arm.dof() && deg.iter().all(|q| q.is_finite());
    let rests = rests
        .iter()
        .filter(|rest| is_whole(&rest.sent_deg) && is_whole(&rest.measured_deg));
    let rests = rests.map(|rest| {
        let [sent, measured] = [&rest.sent_deg, &rest.measured_deg].map(|deg| joints_of(deg));
        (load.torque_n_m(&arm.chain, &measured), sent, measured)
    });
    let rests: Vec<_> = rests.collect();
    let of_joint = |joint: usize| {
        let at = |of: &[f64]| of.get(joint).copied().unwrap_or(0.0);
        let pairs = rests.iter().map(|(load_n_m, sent, measured)| {
            (at(load_n_m), (at(measured) - at(sent)).to_degrees())
        });
        let pairs: Vec<_> = pairs.collect();
        sag(&pairs, count_deg(arm, joint), at(known_deg_per_n_m))
    };
    (0..arm.dof()).map(of_joint).collect()
}

/// A count of the joint's coarsest servo.
fn count_deg(arm: &ArmModel, joint: usize) -> f64 {
    let servos = arm.servos().filter(|(of, _)| *of == joint);
    let counts = servos.map(|(_, servo)| 360.0 / f64::from(servo.ticks_per_turn.max(1)));
    counts.fold(0.0, f64::max)
}

fn sag(pairs: &[(f64, f64)], count_deg: f64, known_deg_per_n_m: f64) -> Option<JointSag> {
    let heaviest = pairs.iter().map(|(load, _)| load.abs()).fold(0.0, f64::max);
    if pairs.len() < RESTS_MIN || heaviest < LOAD_N_M_MIN {
        return None;
    }
    let sum = |of: &dyn Fn(&(f64, f64)) -> f64| pairs.iter().map(of).sum::<f64>();
    let weight = sum(&|(load, _)| load * load);
    let deg_per_n_m = sum(&|(load, off)| load * off) / weight;
    let freedom = (pairs.len() - 1) as f64;
    let scatter = sum(&|(load, off)| (off - deg_per_n_m * load).powi(2)) / freedom;
    let dead_band = DEAD_BAND_COUNTS * count_deg * sum(&|(load, _)| load.abs()) / weight;
    // A fit to all but this posture, from the fit to all.
    let unseen = |(load, off): &(f64, f64)| {
        let share_of_others = (1.0 - load * load / weight).max(f64::EPSILON);
        ((off - deg_per_n_m * load) / share_of_others).powi(2)
    };
    let known = |(load, off): &(f64, f64)| (off - known_deg_per_n_m * load).powi(2);
    let mean = |squares: f64| (squares / pairs.len() as f64).sqrt();
    Some(JointSag {
        unseen_deg: mean(sum(&unseen)),
        known_off_deg: mean(sum(&known)),
        deg_per_n_m,
        sigma_deg_per_n_m: (scatter / weight).sqrt().hypot(dead_band / 3.0_f64.sqrt()),
    })
}

#[cfg(test)]
mod tests {
    use super::JointSag;

    fn of(loads: &[f64], off: impl Fn(f64) -> f64) -> Option<JointSag> {
        let pairs: Vec<_> = loads.iter().map(|load| (*load, off(*load))).collect();
        super::sag(&pairs, 0.088, 0.0)
    }

    #[test]
    fn sag_is_told_from_a_dead_band() {
        let loads = [0.4, 0.6, 0.8, 1.0, 1.2];
        let found = of(&loads, |load| 0.3 * load + 0.02);
        assert!(found.is_some_and(|sag| {
            sag.is_significant() && sag.foretells() && (sag.deg_per_n_m - 0.3).abs() < 0.05
        }));
        let stuck = of(&loads, |_| 0.04);
        assert!(stuck.is_some_and(|sag| !sag.is_significant()), "{stuck:?}");
        assert_eq!(of(&[0.05; 9], |_| 0.1), None);
    }

    /// One heavy posture, held by something, makes a sag that none of the others has.
    #[test]
    fn what_one_posture_says_alone_foretells_nothing() {
        let loads = [0.01, 0.02, 0.01, 0.02, 0.01, 0.02, 0.01, 0.02, 0.01, 1.2];
        let held = of(&loads, |load| if load > 1.0 { 0.5 } else { -0.03 });
        assert!(
            held.is_some_and(|sag| sag.deg_per_n_m > 0.3 && !sag.foretells()),
            "{held:?}"
        );
    }
}
