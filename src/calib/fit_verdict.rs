//! Judges a fit, and names the touch to add and its place if the fit is not good enough.

use nalgebra::{Point3, Unit, Vector3};
use serde::{Deserialize, Serialize};

use super::stats::TouchFit;
use super::stats::ratio;
use super::{
    AcceptanceLimits, CylinderFit, HeightMapFit, PIVOT_TOUCHES_MIN, PLANE_TOUCHES_MIN, PivotFit,
    PlaneFit, TouchOutlier, ZerosFit,
};

/// Verdict on a fit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FitVerdict {
    /// Within every limit, including that of a touch that was not fitted.
    #[default]
    Good,
    /// May be accepted, with the limitations that the reasons name.
    Usable,
    /// May not be accepted.
    Redo,
}

impl FitVerdict {
    /// Returns its word for people.
    pub(super) const fn word(self) -> &'static str {
        match self {
            Self::Good => "good",
            Self::Usable => "usable",
            Self::Redo => "redo",
        }
    }
}

/// A verdict with its reasons.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct FitFinding {
    /// Verdict on the fit.
    pub verdict: FitVerdict,
    /// Sentences with a value, its limit and what to do; empty if the fit is good.
    pub reasons: Vec<String>,
    /// Sentences about what was found that do not change the verdict.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
}

/// Number of touches at each place, so that they show their repeatability.
pub const TOUCHES_EACH: usize = 3;

/// A sheet is not reported as bent if its middle rises over its edges by less than this part of a plane's allowed residual.
const BENT_PART: f64 = 0.5;

/// A touch that is off by this multiple of the allowed spread has slipped and must be repeated.
const SLIP_SPREADS: f64 = 5.0;

impl FitFinding {
    /// Creates a finding without objections.
    #[must_use]
    pub fn good() -> Self {
        Self::default()
    }

    /// Creates the finding that a fit may not be accepted.
    pub(super) fn refused(reason: String) -> Self {
        Self {
            verdict: FitVerdict::Redo,
            reasons: vec![reason],
            notes: Vec::new(),
        }
    }

    /// Adds a reason for which the fit may not be accepted. The first one comes before what makes a fit only usable: it is the next step.
    pub fn redo(&mut self, reason: String) {
        match self.verdict {
            FitVerdict::Redo => self.reasons.push(reason),
            _ => self.reasons.insert(0, reason),
        }
        self.verdict = FitVerdict::Redo;
    }

    /// Returns the verdict and the reasons, one on each line.
    pub(super) fn lines(&self) -> String {
        let (notes, reasons) = (reason_lines(&self.notes), reason_lines(&self.reasons));
        format!("{notes}verdict: {}\n{reasons}", self.verdict.word())
    }

    /// Refuses the fit if there are places with fewer touches than [`TOUCHES_EACH`].
    pub(super) fn check_touch_counts(&mut self, places: &[String]) {
        self.limit(places.is_empty(), || {
            format!(
                "these places were touched fewer than {TOUCHES_EACH} times: {}. Lift the tip and touch each again",
                places.join(", ")
            )
        });
    }

    /// Reports that a sheet is bent; a plane is written all the same, unless its scene describes a cylinder.
    pub(super) fn report_bend(
        &mut self,
        along: &str,
        radius_mm: f64,
        chord_mm: f64,
        limits: &AcceptanceLimits,
    ) {
        let rise_mm = chord_mm * chord_mm / (8.0 * radius_mm.abs());
        if rise_mm > BENT_PART * limits.plane_rms_mm {
            // A scene's cylinder bulges towards the arm, and runs along y.
            let alternative = if along == "x" && radius_mm > 0.0 {
                format!(
                    ", or write `cylinder_radius_mm = {radius_mm:.0}` into the scene's `[sheet]` to fit a cylinder"
                )
            } else {
                String::new()
            };
            self.usable(format!(
                "the sheet is bent along {along}: its radius is {radius_mm:.0} mm and its middle is {rise_mm:.1} mm off its edges. The fit still uses a plane: lay the sheet flat{alternative}"
            ));
        }
    }

    /// Adds a reason for which the fit is only usable.
    pub(super) fn usable(&mut self, reason: String) {
        self.verdict = self.verdict.max(FitVerdict::Usable);
        self.reasons.push(reason);
    }

    /// Refuses the fit with a reason unless a value is within its limit.
    pub(super) fn limit(&mut self, is_within: bool, reason: impl FnOnce() -> String) {
        if !is_within {
            self.redo(reason());
        }
    }

    fn report_outlier(&mut self, outlier: Option<&TouchOutlier>, limits: &AcceptanceLimits) {
        let Some(TouchOutlier { index, off_m }) = outlier else {
            return;
        };
        let (touch, off_mm) = (index + 1, off_m * 1e3);
        if off_mm > SLIP_SPREADS * limits.spread_mm {
            self.redo(format!(
                "touch {touch} is {off_mm:.1} mm away from the others, so something slipped or moved: touch it again"
            ));
        } else {
            self.usable(format!(
                "touch {touch} is not used: it is {off_mm:.2} mm away from the others"
            ));
        }
    }

    fn check_verification(&mut self, off_m: Option<f64>, limits: &AcceptanceLimits, what: &str) {
        match off_m.map(|off| off * 1e3) {
            None => self.redo(format!(
                "the fit is not verified yet: touch {what} (this touch is only for the check)"
            )),
            Some(off_mm) => self.limit(off_mm <= limits.verify_mm, || {
                format!(
                    "the verification touch is {off_mm:.2} mm off (at most {} mm), so something moved between the touches. Repeat all touches",
                    limits.verify_mm
                )
            }),
        }
    }

    fn check_tilt(&mut self, tilt_rad: Option<f64>, limits: &AcceptanceLimits) {
        if let Some(tilt_deg) = tilt_rad.map(f64::to_degrees) {
            self.limit(tilt_deg <= limits.tilt_deg, || {
                format!(
                    "the sheet leans {tilt_deg:.1}° from the last accepted one (at most {}°): it moved, or it is a different sheet",
                    limits.tilt_deg
                )
            });
        }
    }

    fn check_spread(&mut self, spread_m: Option<f64>, limits: &AcceptanceLimits) {
        if let Some(mm) = spread_m.map(|spread| spread * 1e3) {
            self.limit(mm <= limits.spread_mm, || {
                format!(
                    "touches of the same place spread over {mm:.2} mm (at most {} mm): tighten the tool and touch more slowly",
                    limits.spread_mm
                )
            });
        }
    }

    /// Checks the standard deviation of the height at the least known corner; `elsewhere` names other places to touch.
    fn check_corners<'a>(
        &mut self,
        corners_m: impl Iterator<Item = (&'a str, f64)>,
        limits: &AcceptanceLimits,
        elsewhere: &str,
    ) {
        let corners_mm = corners_m.map(|(name, sigma_m)| (name, sigma_m * 1e3));
        if let Some((name, sigma_mm)) = corners_mm.max_by(|(_, a), (_, b)| a.total_cmp(b)) {
            self.limit(sigma_mm <= limits.plane_rms_mm, || {
                format!(
                    "the height of the {name} corner is uncertain by {sigma_mm:.2} mm (at most {} mm): touch there{elsewhere}",
                    limits.plane_rms_mm
                )
            });
        }
    }

    /// Checks tilt, outlier, spread and verification of a sheet.
    fn check_sheet(
        &mut self,
        outlier: Option<&TouchOutlier>,
        limits: &AcceptanceLimits,
        verify_m: Option<f64>,
        spread_m: Option<f64>,
        tilt_rad: Option<f64>,
    ) {
        self.check_tilt(tilt_rad, limits);
        self.report_outlier(outlier, limits);
        self.check_spread(spread_m, limits);
        self.check_verification(
            verify_m,
            limits,
            "the sheet between two places that you touched",
        );
    }
}

/// Returns each reason on a line of its own.
pub(super) fn reason_lines(reasons: &[String]) -> String {
    let lines = reasons.iter().map(|reason| format!("  - {reason}\n"));
    lines.collect()
}

/// Judges a tool's tip. `axis` is the tool's axis in its mount's frame, `verify_m` the residual of a
/// touch that was not fitted, and `spread_m` that of touches repeated in one pose.
#[must_use]
pub fn judge_pivot(
    fit: &PivotFit,
    limits: &AcceptanceLimits,
    axis: &Unit<Vector3<f64>>,
    verify_m: Option<f64>,
    spread_m: Option<f64>,
) -> FitFinding {
    let mut finding = FitFinding::good();
    let used = fit.residuals_m.len() - usize::from(fit.outlier.is_some());
    finding.limit(used >= PIVOT_TOUCHES_MIN, || {
        format!("{used} touches are too few (at least {PIVOT_TOUCHES_MIN})")
    });
    finding.limit(fit.condition <= limits.condition, || {
        format!(
            "the tool was tilted too little (condition number {}; at most {:.0} is allowed): {}",
            ratio(fit.condition),
            limits.condition,
            rotation_to_add(fit, axis)
        )
    });
    let (sigma_mm, rms_mm, max_mm) = (fit.sigma_m() * 1e3, fit.rms_m() * 1e3, fit.max_m() * 1e3);
    finding.limit(sigma_mm <= limits.tip_sigma_mm, || {
        format!(
            "the tip's place is uncertain by {sigma_mm:.2} mm (at most {} mm): {}",
            limits.tip_sigma_mm,
            rotation_to_add(fit, axis)
        )
    });
    finding.limit(rms_mm <= limits.tip_rms_mm, || {
        format!(
            "the touches do not meet at one point: they differ by {rms_mm:.2} mm rms (at most {} mm). The point or the tool moved, or the joints' zeros are wrong",
            limits.tip_rms_mm
        )
    });
    finding.limit(max_mm <= limits.max_over_rms * rms_mm, || {
        format!("one touch is {max_mm:.2} mm off; the average of all is {rms_mm:.2} mm (rms). Repeat that touch")
    });
    finding.report_outlier(fit.outlier.as_ref(), limits);
    finding.check_spread(spread_m, limits);
    finding.check_verification(
        verify_m,
        limits,
        "the same point with the tool turned differently",
    );
    finding
}

/// Describes the rotation of the tool that adds most about the direction in which the tip is known worst.
fn rotation_to_add(fit: &PivotFit, axis: &Unit<Vector3<f64>>) -> &'static str {
    let eigen = fit.covariance_m2.symmetric_eigen();
    let worst = eigen
        .eigenvectors
        .column(eigen.eigenvalues.imax())
        .into_owned();
    if worst.dot(axis).abs() > std::f64::consts::FRAC_1_SQRT_2 {
        "touch again with the tool tilted to opposite sides"
    } else {
        "touch again with the tool turned about its own axis, by 90 degrees and more"
    }
}

/// What the sheet lies on whose place touches tell.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TouchedShape {
    /// A plane.
    Plane,
    /// A mesh: heights are those over it.
    Mesh,
}

impl TouchedShape {
    /// Returns its name in a sentence, and what it means that touches miss it.
    const fn missed(self) -> (&'static str, &'static str) {
        match self {
            Self::Plane => (
                "one plane",
                "the sheet is bent or moved, or the joints' zeros are wrong. Touch the middles of its edges too: they show a bent sheet",
            ),
            Self::Mesh => (
                "the mesh",
                "the mesh lies too far to one side, its file is wrong, or the joints' zeros are wrong. Correct `origin_m`, or scan it again",
            ),
        }
    }
}

/// Judges where a sheet lies. `corners` are the sheet's, to say where to touch; `tilt_rad` is the angle to the
/// sheet accepted last.
#[must_use]
pub fn judge_plane(
    (fit, shape): (&PlaneFit, TouchedShape),
    limits: &AcceptanceLimits,
    corners: &[(&str, Point3<f64>)],
    verify_m: Option<f64>,
    spread_m: Option<f64>,
    tilt_rad: Option<f64>,
) -> FitFinding {
    let (surface, cause) = shape.missed();
    let mut finding = FitFinding::good();
    let used = fit.residuals_m.len() - usize::from(fit.outlier.is_some());
    finding.limit(used >= PLANE_TOUCHES_MIN, || {
        format!("{used} touches are too few (at least {PLANE_TOUCHES_MIN}): touch the corners and the middle")
    });
    let rms_mm = fit.rms_m() * 1e3;
    finding.limit(rms_mm <= limits.plane_rms_mm, || {
        format!(
            "the touches are off {surface} by {rms_mm:.2} mm rms (at most {} mm): {cause}",
            limits.plane_rms_mm
        )
    });
    let corners = corners.iter().map(|(name, at)| (*name, fit.sigma_at_m(at)));
    finding.check_corners(corners, limits, "");
    finding.check_sheet(fit.outlier.as_ref(), limits, verify_m, spread_m, tilt_rad);
    finding
}

/// Judges a map of a sheet's heights, as [`judge_plane`] judges a flat sheet.
#[must_use]
pub fn judge_mapped(
    fit: &HeightMapFit,
    limits: &AcceptanceLimits,
    verify_m: Option<f64>,
    spread_m: Option<f64>,
    tilt_rad: Option<f64>,
) -> FitFinding {
    let mut finding = FitFinding::good();
    let uncertainty_mm = fit.uncertainty_mm();
    finding.limit(uncertainty_mm <= limits.plane_rms_mm, || {
        format!(
            "between the touches the sheet's height is uncertain by {uncertainty_mm:.2} mm (at most {} mm): touch a finer grid, such as `\"grid\": [5, 5]`",
            limits.plane_rms_mm
        )
    });
    finding.check_sheet(None, limits, verify_m, spread_m, tilt_rad);
    finding
}

/// Judges a sheet on a cylinder, as [`judge_plane`] judges a flat one. `corners_mm` are the sheet's, by name.
#[must_use]
pub fn judge_rolled(
    fit: &CylinderFit,
    limits: &AcceptanceLimits,
    corners_mm: &[(&str, [f64; 2])],
    verify_m: Option<f64>,
    spread_m: Option<f64>,
    tilt_rad: Option<f64>,
) -> FitFinding {
    let mut finding = FitFinding::good();
    let rms_mm = fit.rms_m() * 1e3;
    finding.limit(rms_mm <= limits.plane_rms_mm, || {
        format!(
            "the touches are {rms_mm:.2} mm rms off a cylinder (at most {} mm). The object moved or is not a cylinder, the sheet is turned on it, or the joints' zeros are wrong",
            limits.plane_rms_mm
        )
    });
    let [up_mm, right_mm] = fit.askew_mm;
    finding.limit(up_mm.abs().max(right_mm.abs()) <= limits.verify_mm, || {
        format!(
            "the sheet is turned on its cylinder: +x is {up_mm:+.1} mm too high and +y {right_mm:+.1} mm too far right (at most {} mm). Lay its y along the cylinder's axis, or touch these points again",
            limits.verify_mm
        )
    });
    let corners = corners_mm
        .iter()
        .map(|(name, at)| (*name, fit.sigma_at_m(*at)));
    let elsewhere = ", and the middles of both edges across the cylinder";
    finding.check_corners(corners, limits, elsewhere);
    finding.check_sheet(fit.outlier.as_ref(), limits, verify_m, spread_m, tilt_rad);
    finding
}

/// Largest offset of a cross. A larger one belongs to a different cross, or was read in a different unit.
const READ_MM_MAX: f64 = 20.0;

/// Judges the reading of a drawn cross by its distance from its nominal place.
#[must_use]
pub fn judge_reading(off_mm: f64, limits: &AcceptanceLimits) -> FitFinding {
    let mut finding = FitFinding::good();
    finding.limit(off_mm <= READ_MM_MAX, || {
        format!(
            "the cross was read {off_mm:.1} mm from its place (at most {READ_MM_MAX} mm): read it again, or touch the sheet with `steadyhand calibrate touch sheet`"
        )
    });
    if off_mm > limits.verify_mm && off_mm <= READ_MM_MAX {
        finding.usable(format!(
            "the cross was {off_mm:.2} mm from its place. To verify this reading, accept it, call `align` again and read the new cross"
        ));
    }
    finding
}

/// Factor by which a usable value may exceed its limit.
const USABLE_FACTOR: f64 = 2.0;

/// Judges how near a tip came to its targets, given by name and distance.
#[must_use]
pub fn judge_tracking<'a>(
    points: impl IntoIterator<Item = (&'a str, f64)>,
    limits: &AcceptanceLimits,
) -> FitFinding {
    let mut finding = FitFinding::good();
    let worst = points.into_iter().max_by(|(_, a), (_, b)| a.total_cmp(b));
    let Some((name, off_mm)) = worst else {
        return FitFinding::refused("no point was measured: call `align` again".to_owned());
    };
    let reason = || {
        format!(
            "the tip stopped {off_mm:.2} mm from `{name}` (at most {} mm): a servo does not reach its goal",
            limits.verify_mm
        )
    };
    if off_mm > USABLE_FACTOR * limits.verify_mm {
        finding.redo(reason());
    } else if off_mm > limits.verify_mm {
        finding.usable(reason());
    }
    finding
}

/// Judges the zeros of joints with these names.
#[must_use]
pub fn judge_zeros(fit: &ZerosFit, limits: &AcceptanceLimits, names: &[String]) -> FitFinding {
    let mut finding = FitFinding::good();
    let name = |joint: &usize| names.get(*joint).map_or("?", String::as_str);
    let rms_mm = fit.rms_m * 1e3;
    finding.limit(rms_mm <= limits.tip_rms_mm, || {
        format!(
            "even with the new zeros, the touches disagree by {rms_mm:.2} mm rms (at most {} mm): something else is wrong",
            limits.tip_rms_mm
        )
    });
    finding.limit(fit.rms_m <= fit.before_m, || {
        "the new zeros fit the touches no better than the old ones".to_owned()
    });
    if !fit.dropped.is_empty() {
        let dropped: Vec<&str> = fit.dropped.iter().map(name).collect();
        finding.usable(format!(
            "the touches do not show these zeros, so they stay unchanged: {}",
            dropped.join(", ")
        ));
    }
    let sigmas = fit.sigma_rad.iter().enumerate();
    for (joint, sigma) in sigmas.filter(|(joint, _)| !fit.dropped.contains(joint)) {
        let sigma_deg = sigma.to_degrees();
        finding.limit(sigma_deg <= ZERO_SIGMA_DEG_MAX, || {
            format!(
                "the zero of {} is uncertain by {sigma_deg:.2}° (at most {ZERO_SIGMA_DEG_MAX}°): touch with this joint turned far to both sides",
                name(&joint)
            )
        });
    }
    finding.report_outlier(fit.outlier.as_ref(), limits);
    finding.check_verification(
        fit.held_out_m,
        limits,
        "ten places or more; every fifth one is kept for the check",
    );
    finding
}

/// Largest standard deviation of a joint's zero.
const ZERO_SIGMA_DEG_MAX: f64 = 0.5;
