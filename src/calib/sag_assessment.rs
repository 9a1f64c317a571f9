//! Sag of the joints made a proposal, from places where the arm stood still.

use super::assessment::{AssessmentInput, TouchAssessment};
use super::calibration_record::FileValues;
use super::ink_assessment::{SAG_KEY, SIGNIFICANT, compensation_now, rounded, values};
use super::{FitFinding, JointSag, RestReading, sags};
use arm::ArmModel;

/// Sag that differs by less from what the arm's file has is not worth a proposal.
const SAG_AGAIN_DEG_PER_N_M: f64 = 0.03;

/// Sag of an arm's joints, beside what its file has.
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
    /// Fits what was read where the arm stood still.
    #[must_use]
    pub fn new(arm: &ArmModel, rests: &[RestReading]) -> Self {
        let old = compensation_now(arm);
        Self {
            sag: sags(arm, rests, &values(&old, SAG_KEY)),
            names: (0..arm.dof()).map(|joint| arm.joint_name(joint)).collect(),
            old,
        }
    }

    /// Returns whether it is another than the arm's file has, beyond chance.
    #[must_use]
    pub fn differs(&self) -> bool {
        self.values() != self.old
    }

    /// Returns what the arm's file would say: what it says where nothing else shows or where postures that a fit has not seen speak
    /// against it, and no sag where none is significant.
    pub(super) fn values(&self) -> FileValues {
        let all = self.sag.iter().zip(values(&self.old, SAG_KEY));
        let sag = all.map(|(found, old)| {
            let Some(sag) = found else { return old };
            let least = SAG_AGAIN_DEG_PER_N_M.max(SIGNIFICANT * sag.sigma_deg_per_n_m);
            match sag.foretells() && (sag.deg_per_n_m - old).abs() > least {
                false => old,
                true if sag.is_significant() => rounded(sag.deg_per_n_m),
                true => 0.0,
            }
        });
        let mut new = self.old.clone();
        new.insert(SAG_KEY.to_owned(), sag.collect());
        new
    }

    /// Returns the sag of each joint that sags, in words.
    #[must_use]
    pub fn words(&self) -> Vec<String> {
        let all = self.names.iter().zip(&self.sag);
        let significant = all.filter_map(|(name, found)| {
            let sag = found.filter(JointSag::is_significant)?;
            Some(said(name, &sag))
        });
        significant.collect()
    }

    /// Returns the sag of each joint of which the arm's file would say something else, in words.
    #[must_use]
    pub fn new_words(&self) -> Vec<String> {
        let (new, old) = (values(&self.values(), SAG_KEY), values(&self.old, SAG_KEY));
        let pairs = new.into_iter().zip(old);
        let all = self.names.iter().zip(&self.sag).zip(pairs);
        all.filter_map(|((name, found), (new, old))| {
            let sag = found.filter(|_| (new - old).abs() > 0.0)?;
            let said = said(name, &sag);
            Some(format!("{said}, where the arm's file has {old:.2}"))
        })
        .collect()
    }

    pub(super) fn figures(&self) -> impl Iterator<Item = (String, f64)> {
        let all = self.names.iter().zip(&self.sag);
        all.flat_map(|(name, sag)| {
            sag.iter().flat_map(move |sag| {
                let bound = 2.0 * sag.sigma_deg_per_n_m;
                [
                    (format!("{name}_sag_deg_per_n_m"), sag.deg_per_n_m),
                    (format!("{name}_sag_95_deg_per_n_m"), bound),
                    (format!("{name}_sag_unseen_deg"), sag.unseen_deg),
                ]
            })
        })
    }
}

fn said(name: &str, sag: &JointSag) -> String {
    format!(
        "{name} sags by {:.2}° per N m, ±{:.2}",
        sag.deg_per_n_m,
        2.0 * sag.sigma_deg_per_n_m
    )
}

impl AssessmentInput<'_> {
    /// Sag of the joints where nothing was drawn; their play stays as the arm's file has it.
    pub(super) fn sagged(&self, rests: &[RestReading]) -> TouchAssessment {
        let fit = SagFit::new(&self.scene.arm, rests);
        let figures = fit.figures().collect();
        self.of_joints(FitFinding::good(), &fit.old, fit.values(), figures)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ink_assessment::PLAY_KEY;

    fn fit(deg_per_n_m: f64, sigma_deg_per_n_m: f64, old: f64) -> SagFit {
        fit_beside(deg_per_n_m, sigma_deg_per_n_m, old, 0.02)
    }

    fn fit_beside(
        deg_per_n_m: f64,
        sigma_deg_per_n_m: f64,
        old: f64,
        known_off_deg: f64,
    ) -> SagFit {
        let of = |key: &str, value: f64| (key.to_owned(), vec![value]);
        SagFit {
            sag: vec![Some(JointSag {
                deg_per_n_m,
                sigma_deg_per_n_m,
                unseen_deg: 0.01,
                known_off_deg,
            })],
            names: vec!["shoulder".to_owned()],
            old: [of(PLAY_KEY, 0.3), of(SAG_KEY, old)].into(),
        }
    }

    #[test]
    fn what_agrees_with_the_arms_file_stays_and_what_does_not_is_said() {
        // Neither is significant by itself, and both agree with the file.
        assert!(!fit(0.044, 0.0148, 0.05).differs());
        assert!(!fit(0.01, 0.02, 0.0).differs());
        let more = fit(0.2, 0.02, 0.05);
        assert!(more.differs());
        assert_eq!(values(&more.values(), SAG_KEY), [0.2]);
        assert_eq!(values(&more.values(), PLAY_KEY), [0.3]);
        let said = "shoulder sags by 0.20° per N m, ±0.04, where the arm's file has 0.05";
        assert_eq!(more.new_words(), [said]);
        // What the file has too much of goes as well.
        let none = fit(0.01, 0.02, 0.3);
        assert_eq!(values(&none.values(), SAG_KEY), [0.0]);
        assert_eq!(none.new_words().len(), 1);
        // What postures that a fit has not seen speak against is not proposed.
        assert!(!fit_beside(0.2, 0.02, 0.05, 0.01).differs());
    }
}
