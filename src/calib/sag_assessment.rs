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
        Self {
            sag: sags(arm, rests),
            names: (0..arm.dof()).map(|joint| arm.joint_name(joint)).collect(),
            old: compensation_now(arm),
        }
    }

    /// Returns whether it is another than the arm's file has, beyond chance.
    #[must_use]
    pub fn differs(&self) -> bool {
        let new = values(&self.values(), SAG_KEY);
        let all = new.into_iter().zip(values(&self.old, SAG_KEY));
        let mut all = all.zip(&self.sag);
        all.any(|((new, old), found)| {
            let sigma = found.map_or(f64::INFINITY, |sag| sag.sigma_deg_per_n_m);
            (new - old).abs() > SAG_AGAIN_DEG_PER_N_M.max(SIGNIFICANT * sigma)
        })
    }

    /// Returns what the arm's file would say: no sag where none is significant, what it says where nothing shows.
    pub(super) fn values(&self) -> FileValues {
        let all = self.sag.iter().zip(values(&self.old, SAG_KEY));
        let sag = all.map(|(found, old)| match found {
            None => old,
            Some(sag) if sag.is_significant() => rounded(sag.deg_per_n_m),
            Some(_) => 0.0,
        });
        let mut new = self.old.clone();
        new.insert(SAG_KEY.to_owned(), sag.collect());
        new
    }

    /// Returns the sag of each joint that sags, in words.
    #[must_use]
    pub fn words(&self) -> Vec<String> {
        let all = self.names.iter().zip(&self.sag);
        all.filter_map(|(name, found)| {
            let sag = found.filter(JointSag::is_significant)?;
            Some(format!(
                "{name} sags by {:.2}° per N m, ±{:.2}",
                sag.deg_per_n_m,
                2.0 * sag.sigma_deg_per_n_m
            ))
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
                ]
            })
        })
    }
}

impl AssessmentInput<'_> {
    /// Sag of the joints where nothing was drawn; their play stays as the arm's file has it.
    pub(super) fn sagged(&self, rests: &[RestReading]) -> TouchAssessment {
        let fit = SagFit::new(&self.scene.arm, rests);
        let figures = fit.figures().collect();
        self.of_joints(FitFinding::good(), &fit.old, fit.values(), figures)
    }
}
