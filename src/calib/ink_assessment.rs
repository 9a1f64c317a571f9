//! Proposes calibrations from the pattern's ink: play and sag of the joints first, then the sheet's place and its correction.

use nalgebra::{
    Isometry3, Matrix3, Matrix6, Point3, Translation3, UnitQuaternion, Vector3, Vector6,
};

use super::assessment::{AssessmentInput, TouchAssessment, named, values_of};
use super::calibration_record::{CalibrationChange, CalibrationKind, FileValues};
use super::{
    FitFinding, InkObservation, JointPlay, PatternStage, PlayEquations, PlayFit, PlayFitError,
    SagFit,
};
use arm::ArmModel;
use base::wording::{count, millimetres};
use kin::ToolTip;
use scene::{CORRECTION_MM_MAX, Scene, SheetCorrection};

/// Keys of play and sag in an arm's file.
pub(super) const PLAY_KEY: &str = "play_deg";
pub(super) const SAG_KEY: &str = "sag_deg_per_n_m";

/// Keys of a sheet's correction along x and y.
pub(super) const CORRECTION_KEYS: [&str; 2] = ["correction.x_mm", "correction.y_mm"];

/// Play above this, and above its uncertainty, is proposed.
const PLAY_NEW_DEG: f64 = 0.15;

/// Smallest error of the sheet that is worth a proposal. It is also the smallest shift of the pattern's ink for which play is
/// proposed: a servo's dead band looks like play of a count or two, and joints that move the ink alike exchange play from one
/// calibration to the next.
const INK_MM_MIN: f64 = 0.2;

/// Number of standard deviations that are significant.
pub(super) const SIGNIFICANT: f64 = 3.0;

/// Larger residuals of ink are not well explained.
const LEFT_MM_MAX: f64 = 0.3;

/// The largest values that an arm's file accepts.
const PLAY_DEG_MAX: f64 = 2.0;
const SAG_DEG_PER_N_M_MAX: f64 = 5.0;

/// Largest shortfall of a correction within the drawn part.
const SHORT_MM_MAX: f64 = 0.6;

/// Steps from a whole correction to none.
const SHRINK_STEPS: u32 = 200;
/// Part of the bound that a correction may use: a file has its numbers rounded.
const BOUND_PART: f64 = 0.99;

/// Grid points along each side of a part of the sheet.
const GRID_STEPS: u32 = 7;
/// The part of each side that the pattern covers.
const DRAWN: [f64; 2] = [0.2, 0.85];

/// A fit to ink, with the sag from readings at rest.
#[derive(Clone, Debug)]
pub struct InkFit {
    /// Play, and the sheet's error.
    pub play: PlayFit,
    /// Sag of each joint.
    pub sag: SagFit,
    size_mm: [f64; 2],
}

/// Returns the stage of a scene's first pen.
#[must_use]
pub fn pattern_stage(scene: &Scene) -> Option<PatternStage<'_>> {
    let pen = scene.pen(0)?;
    Some(PatternStage {
        chain: &scene.arm.chain,
        tip: ToolTip {
            point_m: pen.tip_m,
            axis: pen.axis,
        },
        surface: &scene.surface,
        compensated_deg: values(&compensation_now(&scene.arm), PLAY_KEY),
    })
}

impl InkFit {
    /// Fits an observation in a scene.
    ///
    /// # Errors
    /// Insufficient or damaged readings.
    pub fn new(scene: &Scene, ink: &InkObservation) -> Result<Self, PlayFitError> {
        let stage = pattern_stage(scene).ok_or(PlayFitError::Damaged)?;
        Ok(Self {
            play: PlayEquations::new(&stage, ink)?.fit()?,
            sag: SagFit::new(&scene.arm, &ink.rests),
            size_mm: scene.surface.size_mm(),
        })
    }

    /// Returns what to propose: first play and sag if the arm's file has none, then the sheet's error while it is significant, then
    /// changed play.
    #[must_use]
    pub fn proposal(&self) -> Option<CalibrationKind> {
        let (largest_mm, sigma_mm) = self.largest_error_mm();
        let is_sheet_off = largest_mm > INK_MM_MIN && largest_mm > SIGNIFICANT * sigma_mm;
        let play_differs = self.play_differs();
        if self.sag.differs() || (play_differs && !(self.has_file_play() && is_sheet_off)) {
            return Some(CalibrationKind::Play);
        }
        is_sheet_off.then_some(CalibrationKind::Sheet)
    }

    fn has_file_play(&self) -> bool {
        values(&self.sag.old, PLAY_KEY).iter().any(|deg| *deg > 0.0)
    }

    /// Returns whether play differs from the arm's file significantly, and enough to move the ink.
    fn play_differs(&self) -> bool {
        let old = values(&self.sag.old, PLAY_KEY);
        let new = self.play_values();
        let change: Vec<f64> = new.iter().zip(&old).map(|(new, old)| new - old).collect();
        if self.play.shift_mm(&change) < INK_MM_MIN {
            return false;
        }
        change.iter().zip(&self.play.play).any(|(change, found)| {
            let sigma_deg = found.map_or(f64::INFINITY, |play| play.sigma_deg);
            change.abs() > PLAY_NEW_DEG.max(SIGNIFICANT * sigma_deg)
        })
    }

    /// Returns the play for the arm's file: 0 if it is not significant, the present value if the pattern does not show it.
    fn play_values(&self) -> Vec<f64> {
        let old = values(&self.sag.old, PLAY_KEY);
        let joints = self.play.play.iter().zip(old);
        joints
            .map(|(found, old)| match found {
                None => old,
                Some(play) if play.is_significant() => rounded(play.deg),
                Some(_) => 0.0,
            })
            .collect()
    }

    /// Returns the values for the arm's file.
    fn joint_values(&self) -> FileValues {
        let mut values = self.sag.values();
        values.insert(PLAY_KEY.to_owned(), self.play_values());
        values
    }

    /// Describes the play of each joint with its uncertainty.
    #[must_use]
    pub fn describe(&self) -> String {
        let mut parts: Vec<String> = self
            .sag
            .names
            .iter()
            .zip(&self.play.play)
            .map(|(name, found)| describe_play(name, found.as_ref(), self.play.quantile))
            .collect();
        parts.extend(self.sag.describe());
        parts.push(format!(
            "the ink is {} off the plan, and without play and the sheet's error it would be {} off ({} read, {} outliers not used)",
            millimetres(self.play.before_mm, 2),
            millimetres(self.play.rms_mm, 2),
            count(self.play.readings, "place"),
            self.play.left_out,
        ));
        let (largest_mm, sigma_mm) = self.largest_error_mm();
        parts.push(format!(
            "the sheet is off by at most {}, ±{:.2}",
            millimetres(largest_mm, 2),
            self.play.quantile * sigma_mm
        ));
        parts.join("; ")
    }

    fn figures(&self) -> Vec<(String, f64)> {
        let mut figures = named([
            ("ink_before_mm", self.play.before_mm),
            ("ink_left_mm", self.play.rms_mm),
            ("places", self.play.readings as f64),
            ("left_out", self.play.left_out as f64),
        ]);
        for (name, play) in self.sag.names.iter().zip(&self.play.play) {
            let Some(play) = play else { continue };
            let bound_deg = self.play.quantile * play.sigma_deg;
            figures.push((format!("{name}_play_deg"), play.deg));
            figures.push((format!("{name}_play_95_deg"), bound_deg));
        }
        figures.extend(self.sag.figures());
        figures
    }

    /// Adds reasons why the fit is only usable.
    fn add_reasons(&self, finding: &mut FitFinding) {
        let joints = self.sag.names.iter().zip(&self.play.play);
        let hidden = joints.filter(|(_, play)| play.is_none());
        let hidden: Vec<&str> = hidden.map(|(name, _)| name.as_str()).collect();
        if !hidden.is_empty() {
            finding.usable(format!(
                "the play of {} stays as in the file: the pattern turns this joint too little",
                hidden.join(", ")
            ));
        }
        if self.play.rms_mm > LEFT_MM_MAX {
            finding.usable(format!(
                "{} of the ink's error has no explanation (at most {LEFT_MM_MAX} mm): the tool is loose, the sheet slipped, or the servos do not repeat (`steadyhand selftest`)",
                millimetres(self.play.rms_mm, 2)
            ));
        }
    }

    /// Returns the largest error of the sheet within the drawn part, and its standard deviation there.
    fn largest_error_mm(&self) -> (f64, f64) {
        let errors = grid(self.size_mm, DRAWN).map(|point| {
            let [x, y] = SheetCorrection::offset_mm(&self.play.field_mm, self.size_mm, point);
            let [sx, sy] = self.play.field_sigma_mm(self.size_mm, point);
            (x.hypot(y), sx.hypot(sy))
        });
        errors
            .max_by(|a, b| a.0.total_cmp(&b.0))
            .unwrap_or((0.0, 0.0))
    }
}

fn describe_play(name: &str, found: Option<&JointPlay>, quantile: f64) -> String {
    match found {
        None => format!("the play of {name} is not measured"),
        Some(play) => {
            let bound = quantile * play.sigma_deg;
            match play.is_significant() {
                true => format!("{name} has {:.2}° of play, ±{bound:.2} (95 %)", play.deg),
                false => format!(
                    "{name} has no significant play ({:.2}° ±{bound:.2})",
                    play.deg
                ),
            }
        }
    }
}

/// Returns the play and sag that an arm's file has now.
pub(super) fn compensation_now(arm: &ArmModel) -> FileValues {
    let values = match &arm.file.compensation {
        None => [(); 2].map(|()| vec![0.0; arm.dof()]),
        Some(file) => [&file.play_deg, &file.sag_deg_per_n_m]
            .map(|values| values.iter().map(|value| value.get()).collect()),
    };
    let keys = [PLAY_KEY, SAG_KEY].map(str::to_owned);
    keys.into_iter().zip(values).collect()
}

/// Returns the correction that a scene's file has now, by its keys.
pub(super) fn correction_now(scene: &Scene) -> FileValues {
    correction_values(&coefficients_mm(scene))
}

/// Returns the coefficients of the correction that a scene's file has now; zeros if it has none.
fn coefficients_mm(scene: &Scene) -> [[f64; 6]; 2] {
    let correction = scene.correction;
    correction.map_or([[0.0; 6]; 2], |correction| correction.coefficients_mm)
}

fn correction_values(coefficients_mm: &[[f64; 6]; 2]) -> FileValues {
    let values = coefficients_mm.map(|axis| axis.map(rounded).to_vec());
    let keys = CORRECTION_KEYS.map(str::to_owned);
    keys.into_iter().zip(values).collect()
}

impl AssessmentInput<'_> {
    /// Assesses play and sag of the joints from ink; sag alone if nothing was drawn.
    pub(super) fn assess_play(&self, ink: &InkObservation) -> TouchAssessment {
        if ink.is_at_rest() {
            return self.assess_sag(&ink.rests);
        }
        let fit = match InkFit::new(self.scene, ink) {
            Ok(fit) => fit,
            Err(error) => {
                let mut assessed =
                    self.assess_unreadable(&error, compensation_now(&self.scene.arm));
                if ink.is_by_hand() {
                    assessed.finding = FitFinding::refused(format!(
                        "only {} of {} gaps are measured ({error}). Next: `steadyhand calibrate play --scene {}` asks for the rest",
                        ink.readings.len(),
                        ink.places.len() / 2,
                        self.scene.name
                    ));
                }
                return assessed;
            }
        };
        let mut finding = FitFinding::good();
        fit.add_reasons(&mut finding);
        self.assess_joints(finding, &fit.sag.old, fit.joint_values(), fit.figures())
    }

    /// Assesses new play and sag for an arm's file, within the limits that it accepts.
    pub(super) fn assess_joints(
        &self,
        mut finding: FitFinding,
        old: &FileValues,
        new: FileValues,
        figures: Vec<(String, f64)>,
    ) -> TouchAssessment {
        for (key, most) in [(PLAY_KEY, PLAY_DEG_MAX), (SAG_KEY, SAG_DEG_PER_N_M_MAX)] {
            let largest = values(&new, key).into_iter().fold(0.0, f64::max);
            finding.limit(largest <= most, || {
                format!("`{key}` would be {largest:.2} (at most {most}): a gear or horn is loose. Tighten it and draw again")
            });
        }
        let plays = values(&new, PLAY_KEY)
            .into_iter()
            .zip(values(old, PLAY_KEY));
        let deg = plays
            .map(|(new, old)| (new - old).abs())
            .fold(0.0, f64::max);
        TouchAssessment {
            finding,
            old: old.clone(),
            new,
            change: CalibrationChange { mm: 0.0, deg },
            figures,
            points: Vec::new(),
        }
    }

    /// Assesses the sheet's place from ink, and the correction of what no shift and rotation explain.
    pub(super) fn assess_inked_sheet(&self, ink: &InkObservation) -> TouchAssessment {
        let mut old = self.old_sheet();
        old.extend(correction_now(self.scene));
        let fit = match InkFit::new(self.scene, ink) {
            Ok(fit) => fit,
            Err(error) => return self.assess_unreadable(&error, old),
        };
        let surface = &self.scene.surface;
        let size_mm = surface.size_mm();
        let rigid = RigidError::of_field(&fit.play.field_mm, size_mm);
        let remaining = rigid.subtracted_from(&fit.play.field_mm, size_mm);
        let mut desired = coefficients_mm(self.scene);
        for (desired, remaining) in desired.iter_mut().zip(remaining) {
            for (coefficient, remaining) in desired.iter_mut().zip(remaining) {
                *coefficient -= remaining;
            }
        }
        let mut finding = FitFinding::good();
        let (corrected, short_mm) = within_bounds(&desired, size_mm);
        finding.limit(short_mm <= SHORT_MM_MAX, || {
            format!(
                "the sheet's error is {} above the {CORRECTION_MM_MAX} mm that can be corrected. Calibrate zeros and tip first (`steadyhand calibrate touch zeros`, `steadyhand calibrate touch tool`), then draw again",
                millimetres(short_mm, 2)
            )
        });
        fit.add_reasons(&mut finding);
        let flat = rigid.moved(&surface.flat(), size_mm);
        let mut new = values_of(surface, &flat);
        if self.scene.correction.is_some() || corrected.iter().flatten().any(|mm| *mm != 0.0) {
            new.extend(correction_values(&corrected));
        }
        let corners = self.corners(
            &Point3::from(flat.translation.vector),
            &(flat.rotation * Vector3::x()),
            &(flat.rotation * Vector3::y()),
        );
        let mut figures = fit.figures();
        let (_, sigma_mm) = fit.largest_error_mm();
        figures.extend(named([
            ("shift_x_mm", rigid.shift_mm[0]),
            ("shift_y_mm", rigid.shift_mm[1]),
            ("turn_deg", rigid.rotation_rad.to_degrees()),
            ("correction_short_mm", short_mm),
            ("sheet_sigma_mm", sigma_mm),
        ]));
        TouchAssessment {
            finding,
            old,
            new,
            change: self.sheet_change(&corners),
            figures,
            points: Vec::new(),
        }
    }

    fn assess_unreadable(&self, error: &PlayFitError, old: FileValues) -> TouchAssessment {
        let name = |joint: usize| self.scene.arm.joint_name(joint);
        let reason = match *error {
            PlayFitError::Alike(one, other) => {
                format!("{error} ({} and {})", name(one), name(other))
            }
            _ => error.to_string(),
        };
        TouchAssessment::without_fit(reason, old)
    }
}

pub(super) fn values(file_values: &FileValues, key: &str) -> Vec<f64> {
    file_values.get(key).cloned().unwrap_or_default()
}

/// Rounds a value for a file.
pub(super) fn rounded(value: f64) -> f64 {
    (value * 1e4).round() / 1e4 + 0.0
}

/// Returns the correction nearest to the desired one within the drawn part that moves no place of the sheet by more than the limit,
/// and the largest shortfall there.
fn within_bounds(desired: &[[f64; 6]; 2], size_mm: [f64; 2]) -> ([[f64; 6]; 2], f64) {
    let moments = |points: &mut dyn Iterator<Item = [f64; 2]>| {
        points.fold(Matrix6::zeros(), |sum, point| {
            let terms = Vector6::from(SheetCorrection::terms(size_mm, point));
            sum + terms * terms.transpose()
        })
    };
    let drawn = moments(&mut grid(size_mm, DRAWN));
    let whole = moments(&mut grid(size_mm, [0.0, 1.0]));
    // The poorly known correction beyond the drawn part shrinks first.
    let shrunk = |strength: f64| {
        let solve = (drawn + whole.scale(strength))
            .try_inverse()
            .map(|inverse| inverse * drawn);
        desired.map(|axis| solve.map_or([0.0; 6], |solve| (solve * Vector6::from(axis)).into()))
    };
    let is_within = |coefficients_mm: &[[f64; 6]; 2]| {
        SheetCorrection::new(*coefficients_mm, size_mm)
            .is_ok_and(|correction| correction.largest_mm() <= BOUND_PART * CORRECTION_MM_MAX)
    };
    let strengths = (0..SHRINK_STEPS).map(|step| f64::from(step) / f64::from(SHRINK_STEPS - step));
    let corrected = strengths.map(shrunk).find(is_within).unwrap_or_default();
    let shortfalls_mm = grid(size_mm, DRAWN).map(|point| {
        let [[ax, ay], [bx, by]] =
            [desired, &corrected].map(|axes| SheetCorrection::offset_mm(axes, size_mm, point));
        (ax - bx).hypot(ay - by)
    });
    (corrected, shortfalls_mm.fold(0.0, f64::max))
}

/// Yields a grid of places over a part of a sheet, given in fractions of its sides.
fn grid([width_mm, height_mm]: [f64; 2], [low, high]: [f64; 2]) -> impl Iterator<Item = [f64; 2]> {
    let fraction = move |n: u32| low + (high - low) * f64::from(n) / f64::from(GRID_STEPS - 1);
    (0..GRID_STEPS).flat_map(move |row| {
        (0..GRID_STEPS).map(move |column| [fraction(column) * width_mm, fraction(row) * height_mm])
    })
}

/// The part of a sheet's error that is a shift, and a rotation about its centre.
#[derive(Clone, Copy, Debug)]
struct RigidError {
    shift_mm: [f64; 2],
    rotation_rad: f64,
}

impl RigidError {
    /// Fits the shift and rotation to the error within the drawn part.
    fn of_field(field_mm: &[[f64; 6]; 2], size_mm: [f64; 2]) -> Self {
        let (mut normal, mut right) = (Matrix3::zeros(), Vector3::zeros());
        for [x, y] in grid(size_mm, DRAWN) {
            let off = SheetCorrection::offset_mm(field_mm, size_mm, [x, y]);
            let (dx, dy) = (x - size_mm[0] / 2.0, y - size_mm[1] / 2.0);
            for (row, off) in [
                (Vector3::new(1.0, 0.0, -dy), off[0]),
                (Vector3::new(0.0, 1.0, dx), off[1]),
            ] {
                normal += row * row.transpose();
                right += row * off;
            }
        }
        let found = normal
            .try_inverse()
            .map_or_else(Vector3::zeros, |inverse| inverse * right);
        Self {
            shift_mm: [found.x, found.y],
            rotation_rad: found.z,
        }
    }

    /// Returns the rest of the error without the shift and rotation.
    fn subtracted_from(
        &self,
        field_mm: &[[f64; 6]; 2],
        [width_mm, height_mm]: [f64; 2],
    ) -> [[f64; 6]; 2] {
        let [mut x, mut y] = *field_mm;
        x[0] -= self.shift_mm[0];
        x[2] += self.rotation_rad * height_mm / 2.0;
        y[0] -= self.shift_mm[1];
        y[1] -= self.rotation_rad * width_mm / 2.0;
        [x, y]
    }

    /// Returns the sheet's pose according to the ink: an offset of the ink means the opposite offset of the sheet.
    fn moved(&self, flat: &Isometry3<f64>, [width_mm, height_mm]: [f64; 2]) -> Isometry3<f64> {
        let centre = Vector3::new(width_mm / 2e3, height_mm / 2e3, 0.0);
        let [dx, dy] = self.shift_mm;
        let rotation = UnitQuaternion::from_axis_angle(&Vector3::z_axis(), -self.rotation_rad);
        let shift = Vector3::new(-dx / 1e3, -dy / 1e3, 0.0);
        let about_centre =
            Translation3::from(centre + shift) * rotation * Translation3::from(-centre);
        flat * about_centre
    }
}
