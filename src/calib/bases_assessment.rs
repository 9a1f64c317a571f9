//! Assesses touches by which arms that share a scene find where their bases stand to each other.
//!
//! The first arm's base stays where the file has it; each other base is placed beside it.

use nalgebra::{Isometry3, Point3, UnitQuaternion, Vector3};

use super::assess_error::AssessError;
use super::assessment::{TouchAssessment, TouchResidual, named};
use super::bases_fit::{BasesFit, BasesProblem, PLACES_MIN, TouchedTwice};
use super::calibration_record::{
    CalibrationChange, CalibrationSession, FileValues, TouchContact, TouchRole, basis, short_hash,
    zeros_of,
};
use super::fit_verdict::TOUCHES_EACH;
use super::{AcceptanceLimits, FitFinding, FitVerdict, ResolutionClass};
use base::units::JointVector;
use base::wording::count;
use scene::{BasePlace, Scene, ScenePart, SharedScene};

/// Keys of a scene's `[[arms]]`.
const BASE_KEY: &str = "base_m";
const YAW_KEY: &str = "base_yaw_deg";
const TILT_KEY: &str = "base_tilt_deg";
const APART_KEY: &str = "uncertainty_mm";

/// Keys of single numbers.
pub(super) const NUMBER_KEYS: [&str; 2] = [YAW_KEY, APART_KEY];

/// Between a key and the arm that it is of.
pub(super) const OF_ARM: &str = " of arm ";

/// Largest uncertainty that a scene may state.
const UNCERTAINTY_MM_MAX: f64 = 50.0;

/// Differences of values that rounding explains.
const ROUNDED: f64 = 1e-3;

/// Returns a hash of what touches of an arm's scene by all of its arms rest on: their zeros and the tips that touch.
pub(super) fn bases_basis(scene: &Scene) -> String {
    let own = scene.arm_name.iter().zip(scene.pens.first());
    let own = own.map(|(name, pen)| (name, basis(&scene.arm.file, Some(pen.tip_m.coords.into()))));
    let others = scene.beside.iter().filter_map(|beside| {
        let tip_m = beside.pens.first()?.tip_m.coords.into();
        Some((&beside.name, basis(&beside.arm.file, Some(tip_m))))
    });
    // Each arm's part lists itself first.
    let mut all: Vec<(&String, String)> = own.chain(others).collect();
    all.sort();
    short_hash(&format!("{all:?}"))
}

/// Assesses the touches of all arms of a scene.
///
/// # Errors
/// Touches that do not belong to its present state.
pub fn assess_bases(
    session: &CalibrationSession,
    shared: &SharedScene,
) -> Result<TouchAssessment, AssessError> {
    Ok(measured(session, shared)?.0)
}

/// Returns where touches that are good enough contradict the scene, naming both places of each such base.
///
/// # Errors
/// As [`assess_bases`].
pub fn bases_contradiction(
    session: &CalibrationSession,
    shared: &SharedScene,
) -> Result<Option<String>, AssessError> {
    let (assessed, measured) = measured(session, shared)?;
    if assessed.finding.verdict == FitVerdict::Redo {
        return Ok(None);
    }
    let all = measured.iter().filter_map(MeasuredBase::contradiction);
    let all: Vec<String> = all.collect();
    Ok((!all.is_empty()).then(|| all.join("; ")))
}

/// Returns the assessment of all arms' touches, and each base that they measure.
fn measured<'a>(
    session: &CalibrationSession,
    shared: &'a SharedScene,
) -> Result<(TouchAssessment, Vec<MeasuredBase<'a>>), AssessError> {
    let (first, others) = check_touches(session, shared)?;
    let mut all = TouchAssessment {
        points: session
            .touches
            .iter()
            .map(|touch| residual(shared, touch, &Vector3::zeros()))
            .collect(),
        ..TouchAssessment::default()
    };
    let mut measured = Vec::new();
    for other in others {
        match ArmPair::new(session, shared, first, other).fit() {
            Ok(base) => {
                base.add_to(&mut all, session, shared);
                measured.push(base);
            }
            Err(reason) => all.finding.redo(reason),
        }
    }
    match all.finding.verdict {
        FitVerdict::Redo => all.new.clear(),
        _ => all.new.extend(uncertainties(first, &measured)),
    }
    let now = bases_now(shared);
    all.old = now
        .into_iter()
        .filter(|(key, _)| all.new.contains_key(key))
        .collect();
    Ok((all, measured))
}

/// Returns all values of a scene's file that a calibration of its bases may write.
pub(super) fn bases_now(shared: &SharedScene) -> FileValues {
    let of_part = |part: &ScenePart| {
        let mut values = base_values(part, &BasePlace::of(&part.base));
        values.insert(
            key(APART_KEY, part),
            vec![rounded(part.uncertainty_m * 1e3)],
        );
        values
    };
    shared.parts.iter().flat_map(of_part).collect()
}

/// Returns what the arms keep apart beside the clearance. The first base is the frame in which the others were measured, so its own
/// uncertainty goes. Where one of them was not measured whole, none is known better than the file says.
fn uncertainties(first: &ScenePart, measured: &[MeasuredBase<'_>]) -> FileValues {
    let is_whole = measured.iter().all(|base| base.fit.is_whole);
    let of_other = |base: &MeasuredBase<'_>| {
        let (other, measured_mm) = (base.pair.other, base.uncertainty_m * 1e3);
        let apart_mm = match is_whole {
            true => measured_mm,
            false => measured_mm.max(other.uncertainty_m * 1e3),
        };
        // Rounded up: no digit makes the arms come nearer.
        (key(APART_KEY, other), vec![(apart_mm * 1e2).ceil() / 1e2])
    };
    let own = (key(APART_KEY, first), vec![0.0]);
    let own = is_whole.then_some(own);
    measured.iter().map(of_other).chain(own).collect()
}

/// Returns whether a scene's file still has these values.
pub(super) fn has_bases(shared: &SharedScene, accepted: &FileValues) -> bool {
    let now = bases_now(shared);
    accepted.iter().all(|(key, accepted)| {
        let now = now.get(key).map_or(&[][..], Vec::as_slice);
        let mut pairs = accepted.iter().zip(now);
        accepted.len() == now.len() && pairs.all(|(a, b)| (a - b).abs() < ROUNDED)
    })
}

fn key(key: &str, part: &ScenePart) -> String {
    format!("{key}{OF_ARM}{}", part.arm_name())
}

fn base_values(part: &ScenePart, place: &BasePlace) -> FileValues {
    [
        (key(BASE_KEY, part), place.at_m.map(rounded).to_vec()),
        (key(YAW_KEY, part), vec![rounded(place.yaw_deg)]),
        (key(TILT_KEY, part), place.tilt_deg.map(rounded).to_vec()),
    ]
    .into()
}

fn rounded(value: f64) -> f64 {
    (value * 1e6).round() / 1e6 + 0.0
}

/// Checks that each touch is of an arm of the scene, with its joints and its zeros; returns the first arm's part and the others.
fn check_touches<'a>(
    session: &CalibrationSession,
    shared: &'a SharedScene,
) -> Result<(&'a ScenePart, &'a [ScenePart]), AssessError> {
    let no_arms = AssessError::Changed("set of arms");
    let (first, others) = shared.parts.split_first().ok_or_else(|| no_arms.clone())?;
    if others.is_empty() {
        return Err(AssessError::OneArm);
    }
    if session.basis != bases_basis(&first.scene) {
        return Err(AssessError::Changed("tip or different zeros"));
    }
    for (touch, number) in session.touches.iter().zip(1..) {
        let arm = &part_of(shared, touch)
            .ok_or_else(|| no_arms.clone())?
            .scene
            .arm;
        let (have, need) = (touch.joints_rad.len(), arm.dof());
        if have != need || touch.joints_rad.iter().any(|q| !q.is_finite()) {
            return Err(AssessError::OtherJoints {
                number,
                have,
                arm: arm.file.name.clone(),
                need,
            });
        }
        let now = zeros_of(&arm.file);
        if touch.zeros != now {
            let with = touch.zeros.clone();
            return Err(AssessError::OtherZeros { number, with, now });
        }
    }
    Ok((first, others))
}

fn part_of<'a>(shared: &'a SharedScene, touch: &TouchContact) -> Option<&'a ScenePart> {
    let mut parts = shared.parts.iter();
    parts.find(|part| part.arm_name() == touch.arm)
}

/// Returns where a touching tip stood in its arm's base frame.
fn tip_m(scene: &Scene, joints_rad: &JointVector) -> Point3<f64> {
    let tip_m = scene.pen(0).map_or_else(Point3::origin, |pen| pen.tip_m);
    scene.arm.chain.forward(joints_rad) * tip_m
}

fn residual(shared: &SharedScene, touch: &TouchContact, off_m: &Vector3<f64>) -> TouchResidual {
    let joints_rad = JointVector::from_slice(&touch.joints_rad);
    let at_m = part_of(shared, touch).map(|part| tip_m(&part.scene, &joints_rad));
    TouchResidual::new(touch.role, &at_m.unwrap_or_else(Point3::origin), off_m)
}

/// A place that an arm touched.
struct ArmPlace {
    role: TouchRole,
    number: usize,
    touches: Vec<JointVector>,
    tip_m: Point3<f64>,
    spread_m: f64,
}

impl ArmPlace {
    fn is_at(&self, touch: &TouchContact) -> bool {
        self.role == touch.role && self.number == touch.number
    }

    /// Returns the places of an arm, in the order in which they were first touched.
    fn of_arm(session: &CalibrationSession, part: &ScenePart) -> Vec<Self> {
        let mut places: Vec<Self> = Vec::new();
        let own = session.touches.iter();
        for touch in own.filter(|touch| touch.arm == part.arm_name()) {
            let joints_rad = JointVector::from_slice(&touch.joints_rad);
            match places.iter_mut().find(|place| place.is_at(touch)) {
                Some(place) => place.touches.push(joints_rad),
                None => places.push(Self {
                    role: touch.role,
                    number: touch.number,
                    touches: vec![joints_rad],
                    tip_m: Point3::origin(),
                    spread_m: 0.0,
                }),
            }
        }
        for place in &mut places {
            place.measure(&part.scene);
        }
        places
    }

    fn measure(&mut self, scene: &Scene) {
        let tips: Vec<Point3<f64>> = self.touches.iter().map(|q| tip_m(scene, q)).collect();
        let sum: Vector3<f64> = tips.iter().map(|tip| tip.coords).sum();
        self.tip_m = Point3::from(sum / tips.len() as f64);
        let surface = &scene.surface;
        // Touches of a sheet lie beside each other on purpose.
        let off_m = |tip: &Point3<f64>| match self.role {
            TouchRole::Sheet => {
                let [here, middle] = [tip, &self.tip_m].map(|at| surface.project(at).height_mm);
                (here - middle).abs() / 1e3
            }
            _ => (tip - self.tip_m).norm(),
        };
        self.spread_m = 2.0 * tips.iter().map(off_m).fold(0.0, f64::max);
    }

    /// Returns how far half a count of each joint moves the tip.
    fn resolution_m(&self, scene: &Scene) -> f64 {
        let Some(joints_rad) = self.touches.first() else {
            return 0.0;
        };
        let moved_m = scene.arm.servos().map(|(joint, servo)| {
            let half_rad = std::f64::consts::PI / f64::from(servo.ticks_per_turn.max(1));
            let turned = joints_rad.iter().enumerate();
            let turned = turned.map(|(index, q)| if index == joint { q + half_rad } else { *q });
            let turned = JointVector::from_slice(&turned.collect::<Vec<_>>());
            (tip_m(scene, &turned) - tip_m(scene, joints_rad)).norm_squared()
        });
        moved_m.sum::<f64>().sqrt()
    }
}

/// The first arm and one beside it, with the places that both have touched.
struct ArmPair<'a> {
    scene: &'a str,
    first: &'a ScenePart,
    other: &'a ScenePart,
    places: Vec<[ArmPlace; 2]>,
}

/// Where one base was measured to stand.
struct MeasuredBase<'a> {
    pair: ArmPair<'a>,
    fit: BasesFit,
    /// Largest error of any point at which the arms may meet.
    uncertainty_m: f64,
    /// Farthest that any such point is from where the scene has it.
    off_m: f64,
}

impl<'a> ArmPair<'a> {
    fn new(
        session: &CalibrationSession,
        shared: &'a SharedScene,
        first: &'a ScenePart,
        other: &'a ScenePart,
    ) -> Self {
        let mut theirs = ArmPlace::of_arm(session, other);
        let both = ArmPlace::of_arm(session, first).into_iter();
        let both = both.filter_map(|ours| {
            let is_same = |their: &ArmPlace| their.role == ours.role && their.number == ours.number;
            let index = theirs.iter().position(is_same)?;
            Some([ours, theirs.swap_remove(index)])
        });
        Self {
            scene: &shared.name,
            first,
            other,
            places: both.collect(),
        }
    }

    /// Returns where the other base stands, or what is missing.
    fn fit(self) -> Result<MeasuredBase<'a>, String> {
        let [first, other] = [self.first, self.other].map(ScenePart::arm_name);
        let have = self.places.len();
        if have < PLACES_MIN {
            return Err(format!(
                "the tips of `{first}` and `{other}` have both touched only {}; {PLACES_MIN} are needed. Next: `align` with {{\"scene\": \"{}\", \"bases\": true}} for each of them",
                count(have, "place"),
                self.scene
            ));
        }
        let twice = self.places.iter().map(|[ours, theirs]| TouchedTwice {
            ours_m: ours.tip_m,
            theirs_m: theirs.tip_m,
            is_point: ours.role == TouchRole::Point,
        });
        let twice: Vec<TouchedTwice> = twice.collect();
        let scene_base = self.scene_base();
        let problem = BasesProblem {
            places: &twice,
            surface: &self.first.scene.surface,
            scene_base,
        };
        let fit = problem.fit().ok_or_else(|| {
            format!("the places that `{first}` and `{other}` have both touched lie almost on a line: touch places beside that line")
        })?;
        let reach_m = self.meeting_reach_m(&fit);
        Ok(MeasuredBase {
            uncertainty_m: fit.bound_m(reach_m).max(self.resolution_m()),
            off_m: fit.off_m(&scene_base, reach_m),
            pair: self,
            fit,
        })
    }

    fn scene_base(&self) -> Isometry3<f64> {
        let base = self.first.base.inverse() * self.other.base;
        let rotation = UnitQuaternion::from_rotation_matrix(&base.rotation);
        Isometry3::from_parts(base.translation, rotation)
    }

    /// Returns the largest error of a place that is lost in the counts of both arms.
    fn resolution_m(&self) -> f64 {
        let each = self.places.iter().map(|[ours, theirs]| {
            let [first, other] = [&self.first.scene, &self.other.scene];
            ours.resolution_m(first).hypot(theirs.resolution_m(other))
        });
        each.fold(0.0, f64::max)
    }

    /// Returns how far from the sheet's middle the arms may meet: no farther from the middle between their bases than both reach.
    fn meeting_reach_m(&self, fit: &BasesFit) -> f64 {
        let reaches = [self.first, self.other].map(|part| part.scene.reach_m());
        let squares = reaches.iter().map(|reach_m| reach_m * reach_m);
        let theirs_m = fit.base.translation.vector;
        let lens = squares.sum::<f64>() / 2.0 - theirs_m.norm_squared() / 4.0;
        let off_m = (fit.pivot_m.coords - theirs_m / 2.0).norm();
        lens.max(0.0).sqrt() + off_m
    }

    /// Returns the limits of the coarser of both arms.
    fn limits(&self) -> AcceptanceLimits {
        let classes = [self.first, self.other].map(|part| ResolutionClass::of_arm(&part.scene.arm));
        match classes.contains(&ResolutionClass::Hobby) {
            true => ResolutionClass::Hobby.limits(),
            false => ResolutionClass::Fine.limits(),
        }
    }
}

impl MeasuredBase<'_> {
    /// Adds its values, figures, residuals and objections to the assessment of all arms.
    fn add_to(
        &self,
        all: &mut TouchAssessment,
        session: &CalibrationSession,
        shared: &SharedScene,
    ) {
        let other = self.pair.other;
        let uncertainty_mm = self.uncertainty_m * 1e3;
        all.new.extend(base_values(other, &self.place()));
        all.change = CalibrationChange {
            mm: all.change.mm.max(self.off_m * 1e3),
            deg: all.change.deg.max(self.turned_deg()),
        };
        let figures = named([
            ("off_mm", self.off_m * 1e3),
            ("uncertainty_mm", uncertainty_mm),
            ("rms_mm", self.fit.rms_m() * 1e3),
            ("held_out_mm", self.fit.held_out_m * 1e3),
        ]);
        let name = other.arm_name();
        let figures = figures.into_iter();
        all.figures
            .extend(figures.map(|(figure, value)| (format!("{name}_{figure}"), value)));
        for ([ours, _], off_m) in self.pair.places.iter().zip(&self.fit.residuals_m) {
            let touches = session.touches.iter().zip(&mut all.points);
            let at_place = touches.filter(|(touch, _)| ours.is_at(touch));
            for (touch, point) in at_place.filter(|(touch, _)| touch.arm == name) {
                *point = residual(shared, touch, off_m);
            }
        }
        self.judge(&mut all.finding);
    }

    fn turned_deg(&self) -> f64 {
        let between = self.fit.base * self.pair.scene_base().inverse();
        between.rotation.angle().to_degrees()
    }

    /// Returns its place in the common frame.
    fn place(&self) -> BasePlace {
        let base = nalgebra::IsometryMatrix3::from_parts(
            self.fit.base.translation,
            self.fit.base.rotation.to_rotation_matrix(),
        );
        BasePlace::of(&(self.pair.first.base * base))
    }

    fn judge(&self, finding: &mut FitFinding) {
        let (limits, other) = (self.pair.limits(), self.pair.other.arm_name());
        let fit = &self.fit;
        finding.limit(fit.condition <= limits.condition, || {
            format!("the places of `{other}` lie almost on a line: touch places beside that line")
        });
        let (rms_mm, held_out_mm) = (fit.rms_m() * 1e3, fit.held_out_m * 1e3);
        finding.limit(rms_mm <= limits.plane_rms_mm, || {
            format!(
                "the places of `{other}` are {rms_mm:.2} mm from the fit (at most {} mm): something slipped or moved, or a tip or zeros are wrong. Touch all places again",
                limits.plane_rms_mm
            )
        });
        finding.limit(held_out_mm <= limits.verify_mm, || {
            format!(
                "a place of `{other}` is {held_out_mm:.2} mm from the fit of the others (at most {} mm): touch all again, with more places",
                limits.verify_mm
            )
        });
        let both = self.pair.places.iter().flatten();
        let spread_mm = both.clone().map(|place| place.spread_m * 1e3);
        let spread_mm = spread_mm.fold(0.0, f64::max);
        finding.limit(spread_mm <= limits.spread_mm, || {
            format!(
                "touches of the same place spread over {spread_mm:.2} mm (at most {} mm): tighten the tools and touch more slowly",
                limits.spread_mm
            )
        });
        let rare = both.filter(|place| place.touches.len() < TOUCHES_EACH);
        let rare: Vec<String> = rare
            .map(|place| format!("place {}", place.number))
            .collect();
        finding.check_touch_counts(&rare);
        let uncertainty_mm = self.uncertainty_m * 1e3;
        finding.limit(uncertainty_mm <= UNCERTAINTY_MM_MAX, || {
            format!(
                "the place of `{other}` is uncertain by {uncertainty_mm:.0} mm (at most {UNCERTAINTY_MM_MAX} mm): touch more places, farther apart"
            )
        });
        if let Some(contradiction) = self.contradiction() {
            finding.usable(contradiction);
        }
        self.note_unknowns(finding);
    }

    /// Says which of the six numbers were measured, and what the uncertainty leaves out.
    fn note_unknowns(&self, finding: &mut FitFinding) {
        let [first, other] = [self.pair.first, self.pair.other].map(ScenePart::arm_name);
        if !self.fit.is_whole {
            finding.usable(format!(
                "touches of a sheet show only the height and the lean of `{other}`; its other numbers stay as in the file. Next: touch {PLACES_MIN} points by hand with both tips, `calibrate touch bases --scene {0}:{first}`, then `{0}:{other}`",
                self.pair.scene
            ));
        }
        finding.notes.push(
            "the uncertainty does not include the play of worn gears: add the distance that this play lets the tips move".to_owned(),
        );
    }

    /// Names both places of the base, if they are farther apart than the scene says they may be.
    fn contradiction(&self) -> Option<String> {
        let ArmPair {
            scene,
            first,
            other,
            ..
        } = &self.pair;
        let stated_m = first.uncertainty_m + other.uncertainty_m;
        (self.off_m > stated_m).then(|| {
            let [measured, in_file] = [self.place(), BasePlace::of(&other.base)].map(place_text);
            format!(
                "the base of `{}` was measured at {measured}; scene `{scene}` has it at {in_file}. The difference moves the arm's points by up to {:.1} mm (at most {:.1} mm, the `uncertainty_mm` of both)",
                other.arm_name(),
                self.off_m * 1e3,
                stated_m * 1e3
            )
        })
    }
}

fn place_text(place: BasePlace) -> String {
    let BasePlace {
        at_m: [x, y, z],
        yaw_deg,
        tilt_deg: [about_x, about_y],
    } = place;
    format!("[{x:.4}, {y:.4}, {z:.4}] m, {yaw_deg:.2}°, leaning {about_x:.2}° and {about_y:.2}°")
}
