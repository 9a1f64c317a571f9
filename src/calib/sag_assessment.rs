//! Proposes the sag of the joints from readings of the arm at rest.

use super::assessment::{AssessmentInput, TouchAssessment};
use super::calibration_record::FileValues;
use super::ink_assessment::{SAG_KEY, SIGNIFICANT, compensation_now, rounded, values};
use super::{FitFinding, JointSag, RestReading, sags};
use arm::ArmModel;

/// Sag that differs by less from the arm's file is not worth a proposal.
const SAG_AGAIN_DEG_PER_N_M: f64 = 0.03;

/// Sag of an arm's joints, with the values of its file.
#[derive(Clone, Debug)]
pub struct SagFit {
    /// Sag of each joint.
    pub sag: Vec<Option<JointSag>>,
    /// Names of the joints.
    pub(super) names: Vec<String>,
    /// Play and sag of the arm's file.
    pub(super) old: FileValues,
}

impl SagFit {
    /// Fits readings of the arm at rest.
    #[must_use]
    pub fn new(arm: &ArmModel, rests: &[RestReading]) -> Self {
        let old = compensation_now(arm);
        Self {
            sag: sags(arm, rests, &values(&old, SAG_KEY)),
            names: (0..arm.dof()).map(|joint| arm.joint_name(joint)).collect(),
            old,
        }
    }

    /// Returns whether it differs significantly from the arm's file.
    #[must_use]
    pub fn differs(&self) -> bool {
        self.values() != self.old
    }

    /// Returns the values for the arm's file: its present sag if no other was found or if postures that were held out of the fit
    /// contradict it, and 0 if it is not significant.
    pub(super) fn values(&self) -> FileValues {
        let pairs = self.sag.iter().zip(values(&self.old, SAG_KEY));
        let sag = pairs.map(|(found, old)| {
            let Some(sag) = found else { return old };
            let least = SAG_AGAIN_DEG_PER_N_M.max(SIGNIFICANT * sag.sigma_deg_per_n_m);
            match sag.improves_prediction() && (sag.deg_per_n_m - old).abs() > least {
                false => old,
                true if sag.is_significant() => rounded(sag.deg_per_n_m),
                true => 0.0,
            }
        });
        let mut new = self.old.clone();
        new.insert(SAG_KEY.to_owned(), sag.collect());
        new
    }

    /// Describes the sag of each joint that sags.
    #[must_use]
    pub fn describe(&self) -> Vec<String> {
        let joints = self.names.iter().zip(&self.sag);
        joints
            .filter_map(|(name, found)| {
                let sag = found.filter(JointSag::is_significant)?;
                Some(describe_sag(name, &sag))
            })
            .collect()
    }

    /// Describes the sag of each joint for which the arm's file would change.
    #[must_use]
    pub fn describe_changes(&self) -> Vec<String> {
        let (new, old) = (values(&self.values(), SAG_KEY), values(&self.old, SAG_KEY));
        let pairs = new.into_iter().zip(old);
        let joints = self.names.iter().zip(&self.sag).zip(pairs);
        joints
            .filter_map(|((name, found), (new, old))| {
                let sag = found.filter(|_| (new - old).abs() > 0.0)?;
                let sag = describe_sag(name, &sag);
                Some(format!("{sag} (the arm's file has {old:.2})"))
            })
            .collect()
    }

    pub(super) fn figures(&self) -> impl Iterator<Item = (String, f64)> {
        let joints = self.names.iter().zip(&self.sag);
        joints.flat_map(|(name, sag)| {
            sag.iter().flat_map(move |sag| {
                let bound = 2.0 * sag.sigma_deg_per_n_m;
                [
                    (format!("{name}_sag_deg_per_n_m"), sag.deg_per_n_m),
                    (format!("{name}_sag_95_deg_per_n_m"), bound),
                    (format!("{name}_sag_unseen_deg"), sag.held_out_deg),
                ]
            })
        })
    }
}

fn describe_sag(name: &str, sag: &JointSag) -> String {
    format!(
        "{name} sags by {:.2}° per N m, ±{:.2}",
        sag.deg_per_n_m,
        2.0 * sag.sigma_deg_per_n_m
    )
}

impl AssessmentInput<'_> {
    /// Assesses the sag of the joints if nothing was drawn; their play stays as in the arm's file.
    pub(super) fn assess_sag(&self, rests: &[RestReading]) -> TouchAssessment {
        let fit = SagFit::new(&self.scene.arm, rests);
        let figures = fit.figures().collect();
        self.assess_joints(FitFinding::good(), &fit.old, fit.values(), figures)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ink_assessment::PLAY_KEY;

    fn fit(deg_per_n_m: f64, sigma_deg_per_n_m: f64, old: f64) -> SagFit {
        fit_with_current(deg_per_n_m, sigma_deg_per_n_m, old, 0.02)
    }

    fn fit_with_current(
        deg_per_n_m: f64,
        sigma_deg_per_n_m: f64,
        old: f64,
        current_residual_deg: f64,
    ) -> SagFit {
        let entry = |key: &str, value: f64| (key.to_owned(), vec![value]);
        SagFit {
            sag: vec![Some(JointSag {
                deg_per_n_m,
                sigma_deg_per_n_m,
                held_out_deg: 0.01,
                current_residual_deg,
            })],
            names: vec!["shoulder".to_owned()],
            old: [entry(PLAY_KEY, 0.3), entry(SAG_KEY, old)].into(),
        }
    }

    #[test]
    fn sag_that_agrees_with_the_arms_file_stays_and_other_sag_is_described() {
        // Neither is significant by itself, and both agree with the file.
        assert!(!fit(0.044, 0.0148, 0.05).differs());
        assert!(!fit(0.01, 0.02, 0.0).differs());
        let more = fit(0.2, 0.02, 0.05);
        assert!(more.differs());
        assert_eq!(values(&more.values(), SAG_KEY), [0.2]);
        assert_eq!(values(&more.values(), PLAY_KEY), [0.3]);
        let expected = "shoulder sags by 0.20° per N m, ±0.04 (the arm's file has 0.05)";
        assert_eq!(more.describe_changes(), [expected]);
        // Sag that the file has in excess is removed.
        let none = fit(0.01, 0.02, 0.3);
        assert_eq!(values(&none.values(), SAG_KEY), [0.0]);
        assert_eq!(none.describe_changes().len(), 1);
        // Sag that held-out postures contradict is not proposed.
        assert!(!fit_with_current(0.2, 0.02, 0.05, 0.01).differs());
    }
}
