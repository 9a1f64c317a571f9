//! Ink of the pattern made a proposal: play and sag of the joints first, then the sheet's place and its correction.

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

/// Keys of an arm's play and sag, as its file has them.
pub(super) const PLAY_KEY: &str = "play_deg";
pub(super) const SAG_KEY: &str = "sag_deg_per_n_m";

/// Keys of a sheet's correction, along x and y.
pub(super) const CORRECTION_KEYS: [&str; 2] = ["correction.x_mm", "correction.y_mm"];

/// Play above this, and above its uncertainty, is proposed.
const PLAY_NEW_DEG: f64 = 0.15;

/// An error of the sheet below this is not worth a proposal; nor is other play than the arm's file has that moves the pattern's ink by
/// less, for joints that move it alike take each other's play from round to round.
const INK_MM_MIN: f64 = 0.2;

/// So many standard deviations are significant.
pub(super) const SIGNIFICANT: f64 = 3.0;

/// Ink that is further off after the fit than this is not well explained.
const LEFT_MM_MAX: f64 = 0.3;

/// The largest values that an arm's file takes.
const PLAY_DEG_MAX: f64 = 2.0;
const SAG_DEG_PER_N_M_MAX: f64 = 5.0;

/// Within the drawn part a correction may fall short of what is left by so much.
const SHORT_MM_MAX: f64 = 0.6;

/// Steps from the whole of a correction to none of it, and the share of the bound that it keeps to: a file has its numbers rounded.
const SHRINKINGS: u32 = 200;
const BOUND_SHARE: f64 = 0.99;

/// Looks along each side of the drawn part of the sheet.
const LOOKS: u32 = 7;
const DRAWN: [f64; 2] = [0.2, 0.85];

/// A fit to ink, and the sag found on the way.
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
        made_good_deg: values(&compensation_now(&scene.arm), PLAY_KEY),
    })
}

impl InkFit {
    /// Fits what was seen in a scene.
    ///
    /// # Errors
    /// Readings that say too little.
    pub fn new(scene: &Scene, seen: &InkObservation) -> Result<Self, PlayFitError> {
        let stage = pattern_stage(scene).ok_or(PlayFitError::Damaged)?;
        Ok(Self {
            play: PlayEquations::new(&stage, seen)?.fit()?,
            sag: SagFit::new(&scene.arm, &seen.rests),
            size_mm: scene.surface.size_mm(),
        })
    }

    /// Returns what is to be proposed: play and sag that the arm's file does not know of, then the sheet's error while it shows, then
    /// play that is another than the file's.
    #[must_use]
    pub fn proposal(&self) -> Option<CalibrationKind> {
        let (largest_mm, sigma_mm) = self.largest_error_mm();
        let shows = largest_mm > INK_MM_MIN && largest_mm > SIGNIFICANT * sigma_mm;
        let plays = self.play_differs();
        if self.sag.differs() || (plays && !(self.knows_play() && shows)) {
            return Some(CalibrationKind::Play);
        }
        shows.then_some(CalibrationKind::Sheet)
    }

    fn knows_play(&self) -> bool {
        values(&self.sag.old, PLAY_KEY).iter().any(|deg| *deg > 0.0)
    }

    /// Returns whether play is another than the arm's file has, beyond chance and where it moves the ink.
    fn play_differs(&self) -> bool {
        let old = values(&self.sag.old, PLAY_KEY);
        let new = self.play_values();
        let by_deg: Vec<f64> = new.iter().zip(&old).map(|(new, old)| new - old).collect();
        if self.knows_play() && self.play.moved_mm(&by_deg) < INK_MM_MIN {
            return false;
        }
        by_deg.iter().zip(&self.play.play).any(|(by_deg, found)| {
            let sigma_deg = found.map_or(f64::INFINITY, |play| play.sigma_deg);
            by_deg.abs() > PLAY_NEW_DEG.max(SIGNIFICANT * sigma_deg)
        })
    }

    /// Returns the play that the arm's file would say: 0 where none is significant, what it says where nothing shows.
    fn play_values(&self) -> Vec<f64> {
        let old = values(&self.sag.old, PLAY_KEY);
        let all = self.play.play.iter().zip(old);
        all.map(|(found, old)| match found {
            None => old,
            Some(play) if play.is_significant() => rounded(play.deg),
            Some(_) => 0.0,
        })
        .collect()
    }

    /// Returns what the arm's file would say.
    fn joint_values(&self) -> FileValues {
        let mut values = self.sag.values();
        values.insert(PLAY_KEY.to_owned(), self.play_values());
        values
    }

    /// Returns the play of each joint in words, with what it is worth.
    #[must_use]
    pub fn words(&self) -> String {
        let mut said: Vec<String> = self
            .sag
            .names
            .iter()
            .zip(&self.play.play)
            .map(|(name, found)| play_words(name, found.as_ref(), self.play.quantile))
            .collect();
        said.extend(self.sag.words());
        said.push(format!(
            "the ink lies {} from the plan, and {} once play and the sheet's error are taken off ({} read, {} unlike the others left out)",
            millimetres(self.play.before_mm, 2),
            millimetres(self.play.rms_mm, 2),
            count(self.play.readings, "place"),
            self.play.left_out,
        ));
        let (largest_mm, sigma_mm) = self.largest_error_mm();
        said.push(format!(
            "the sheet's error is {} at the most, ±{:.2}",
            millimetres(largest_mm, 2),
            self.play.quantile * sigma_mm
        ));
        said.join("; ")
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

    /// Adds what is not as good as it might be.
    fn add_reasons(&self, finding: &mut FitFinding) {
        let all = self.sag.names.iter().zip(&self.play.play);
        let unseen = all.filter(|(_, play)| play.is_none());
        let unseen: Vec<&str> = unseen.map(|(name, _)| name.as_str()).collect();
        if !unseen.is_empty() {
            finding.usable(format!(
                "the pattern says nothing of the play of {}, which hardly turns in it: it stays as the file has it",
                unseen.join(", ")
            ));
        }
        if self.play.rms_mm > LEFT_MM_MAX {
            finding.usable(format!(
                "{} of the ink stay unexplained, more than {LEFT_MM_MAX} mm: a loose tool, a sheet that slipped, or servos that do not repeat (`steadyhand selftest`)",
                millimetres(self.play.rms_mm, 2)
            ));
        }
    }

    /// The largest error of the sheet within the drawn part, and its standard deviation there.
    fn largest_error_mm(&self) -> (f64, f64) {
        let errors = looks(self.size_mm, DRAWN).map(|at| {
            let [x, y] = SheetCorrection::offset_mm(&self.play.field_mm, self.size_mm, at);
            let [sx, sy] = self.play.field_sigma_mm(self.size_mm, at);
            (x.hypot(y), sx.hypot(sy))
        });
        errors
            .max_by(|a, b| a.0.total_cmp(&b.0))
            .unwrap_or((0.0, 0.0))
    }
}

fn play_words(name: &str, found: Option<&JointPlay>, quantile: f64) -> String {
    match found {
        None => format!("{name} does not show"),
        Some(play) => {
            let bound = quantile * play.sigma_deg;
            match play.is_significant() {
                true => format!("{name} has {:.2}° of play, ±{bound:.2} (95 %)", play.deg),
                false => format!("{name} has none that counts ({:.2}° ±{bound:.2})", play.deg),
            }
        }
    }
}

/// Returns the play and sag that an arm's file has now.
pub(super) fn compensation_now(arm: &ArmModel) -> FileValues {
    let known = arm.file.compensation.as_ref();
    let known = known.map(|known| [&known.play_deg, &known.sag_deg_per_n_m]);
    let values = known.map_or_else(
        || [(); 2].map(|()| vec![0.0; arm.dof()]),
        |known| known.map(|all| all.iter().map(|of| of.get()).collect()),
    );
    let keys = [PLAY_KEY, SAG_KEY].map(str::to_owned);
    keys.into_iter().zip(values).collect()
}

/// Returns the correction that a scene's file has now, by its keys.
pub(super) fn correction_now(scene: &Scene) -> FileValues {
    correction_values(&coefficients_mm(scene))
}

/// Returns the coefficients of the correction that a scene's file has now; zeros where it has none.
fn coefficients_mm(scene: &Scene) -> [[f64; 6]; 2] {
    let known = scene.correction;
    known.map_or([[0.0; 6]; 2], |known| known.coefficients_mm)
}

fn correction_values(coefficients_mm: &[[f64; 6]; 2]) -> FileValues {
    let values = coefficients_mm.map(|all| all.map(rounded).to_vec());
    let keys = CORRECTION_KEYS.map(str::to_owned);
    keys.into_iter().zip(values).collect()
}

impl AssessmentInput<'_> {
    /// Play and sag of the joints from ink; sag alone where nothing was drawn.
    pub(super) fn played(&self, seen: &InkObservation) -> TouchAssessment {
        if seen.is_at_rest() {
            return self.sagged(&seen.rests);
        }
        let fit = match InkFit::new(self.scene, seen) {
            Ok(fit) => fit,
            Err(error) => {
                let mut assessed = self.unread(&error, compensation_now(&self.scene.arm));
                if seen.is_by_hand() {
                    assessed.finding = FitFinding::refused(format!(
                        "{} of {} gaps are measured, and that is not enough: `steadyhand calibrate play --scene {}` asks for them ({error})",
                        seen.readings.len(),
                        seen.places.len() / 2,
                        self.scene.name
                    ));
                }
                return assessed;
            }
        };
        let mut finding = FitFinding::good();
        fit.add_reasons(&mut finding);
        self.of_joints(finding, &fit.sag.old, fit.joint_values(), fit.figures())
    }

    /// Play and sag that an arm's file would have, within what it takes.
    pub(super) fn of_joints(
        &self,
        mut finding: FitFinding,
        old: &FileValues,
        new: FileValues,
        figures: Vec<(String, f64)>,
    ) -> TouchAssessment {
        for (key, most) in [(PLAY_KEY, PLAY_DEG_MAX), (SAG_KEY, SAG_DEG_PER_N_M_MAX)] {
            let largest = values(&new, key).into_iter().fold(0.0, f64::max);
            finding.limit(largest <= most, || {
                format!("{key} would be {largest:.2}, and {most} is the most that is compensated: a gear or horn is loose; tighten it, and draw again")
            });
        }
        let deg = values(&new, PLAY_KEY)
            .into_iter()
            .zip(values(old, PLAY_KEY));
        let deg = deg.map(|(new, old)| (new - old).abs()).fold(0.0, f64::max);
        TouchAssessment {
            finding,
            old: old.clone(),
            new,
            change: CalibrationChange { mm: 0.0, deg },
            figures,
            points: Vec::new(),
        }
    }

    /// The sheet's place from ink, and the correction of what no shift and turn explains.
    pub(super) fn inked(&self, seen: &InkObservation) -> TouchAssessment {
        let mut old = self.old_sheet();
        old.extend(correction_now(self.scene));
        let fit = match InkFit::new(self.scene, seen) {
            Ok(fit) => fit,
            Err(error) => return self.unread(&error, old),
        };
        let surface = &self.scene.surface;
        let size_mm = surface.size_mm();
        let rigid = RigidError::of_field(&fit.play.field_mm, size_mm);
        let left = rigid.taken_off(&fit.play.field_mm, size_mm);
        let mut wanted = coefficients_mm(self.scene);
        for (all, left) in wanted.iter_mut().zip(left) {
            all.iter_mut().zip(left).for_each(|(of, left)| *of -= left);
        }
        let mut finding = FitFinding::good();
        let (corrected, short_mm) = within_bounds(&wanted, size_mm);
        finding.limit(short_mm <= SHORT_MM_MAX, || {
            format!(
                "{} of what is left after shift and turn are more than the {CORRECTION_MM_MAX} mm that a correction may be: find the zeros and the tip by touches first (`steadyhand calibrate touch zeros`, `touch tool`), and draw again",
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
            ("turn_deg", rigid.turn_rad.to_degrees()),
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

    fn unread(&self, error: &PlayFitError, old: FileValues) -> TouchAssessment {
        let name = |joint: usize| self.scene.arm.joint_name(joint);
        let why = match *error {
            PlayFitError::Alike(one, other) => {
                format!("{error} ({} and {})", name(one), name(other))
            }
            _ => error.to_string(),
        };
        TouchAssessment::without_fit(why, old)
    }
}

pub(super) fn values(of: &FileValues, key: &str) -> Vec<f64> {
    of.get(key).cloned().unwrap_or_default()
}

/// Returns a value as a file has it.
pub(super) fn rounded(value: f64) -> f64 {
    (value * 1e4).round() / 1e4 + 0.0
}

/// Returns the correction nearest to this one, within the drawn part, that moves no place of the sheet by more than it may; and
/// by how much it falls short there.
fn within_bounds(wanted: &[[f64; 6]; 2], size_mm: [f64; 2]) -> ([[f64; 6]; 2], f64) {
    let moments = |places: &mut dyn Iterator<Item = [f64; 2]>| {
        places.fold(Matrix6::zeros(), |sum, at| {
            let terms = Vector6::from(SheetCorrection::terms(size_mm, at));
            sum + terms * terms.transpose()
        })
    };
    let drawn = moments(&mut looks(size_mm, DRAWN));
    let all = moments(&mut looks(size_mm, [0.0, 1.0]));
    // What is little known, beyond the drawn part, gives way first.
    let shrunk = |by: f64| {
        let solve = (drawn + all.scale(by))
            .try_inverse()
            .map(|inverse| inverse * drawn);
        wanted.map(|of| solve.map_or([0.0; 6], |solve| (solve * Vector6::from(of)).into()))
    };
    let fits = |of: &[[f64; 6]; 2]| {
        SheetCorrection::new(*of, size_mm)
            .is_ok_and(|made| made.largest_mm() <= BOUND_SHARE * CORRECTION_MM_MAX)
    };
    let strengths = (0..SHRINKINGS).map(|step| f64::from(step) / f64::from(SHRINKINGS - step));
    let corrected = strengths.map(shrunk).find(fits).unwrap_or_default();
    let short = looks(size_mm, DRAWN).map(|at| {
        let [[ax, ay], [bx, by]] =
            [wanted, &corrected].map(|of| SheetCorrection::offset_mm(of, size_mm, at));
        (ax - bx).hypot(ay - by)
    });
    (corrected, short.fold(0.0, f64::max))
}

/// Places all over a part of a sheet, in shares of its sides.
fn looks([width_mm, height_mm]: [f64; 2], [low, high]: [f64; 2]) -> impl Iterator<Item = [f64; 2]> {
    let share = move |n: u32| low + (high - low) * f64::from(n) / f64::from(LOOKS - 1);
    (0..LOOKS).flat_map(move |row| {
        (0..LOOKS).map(move |column| [share(column) * width_mm, share(row) * height_mm])
    })
}

/// The part of a sheet's error that is a shift, and a turn about its middle.
#[derive(Clone, Copy, Debug)]
struct RigidError {
    shift_mm: [f64; 2],
    turn_rad: f64,
}

impl RigidError {
    /// The shift and turn that leave the least.
    fn of_field(field_mm: &[[f64; 6]; 2], size_mm: [f64; 2]) -> Self {
        let (mut normal, mut right) = (Matrix3::zeros(), Vector3::zeros());
        for [x, y] in looks(size_mm, DRAWN) {
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
            turn_rad: found.z,
        }
    }

    /// Returns the remainder of the error.
    fn taken_off(
        &self,
        field_mm: &[[f64; 6]; 2],
        [width_mm, height_mm]: [f64; 2],
    ) -> [[f64; 6]; 2] {
        let [mut left_x, mut left_y] = *field_mm;
        left_x[0] -= self.shift_mm[0];
        left_x[2] += self.turn_rad * height_mm / 2.0;
        left_y[0] -= self.shift_mm[1];
        left_y[1] -= self.turn_rad * width_mm / 2.0;
        [left_x, left_y]
    }

    /// The sheet where the ink says that it lies: the ink is off because the sheet is, the other way.
    fn moved(&self, flat: &Isometry3<f64>, [width_mm, height_mm]: [f64; 2]) -> Isometry3<f64> {
        let middle = Vector3::new(width_mm / 2e3, height_mm / 2e3, 0.0);
        let [dx, dy] = self.shift_mm;
        let turn = UnitQuaternion::from_axis_angle(&Vector3::z_axis(), -self.turn_rad);
        let shift = Vector3::new(-dx / 1e3, -dy / 1e3, 0.0);
        let about_middle = Translation3::from(middle + shift) * turn * Translation3::from(-middle);
        flat * about_middle
    }
}
