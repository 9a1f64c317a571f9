//! Assesses collected touches: the values for the file, the residual of each touch, and a verdict.

use nalgebra::{Isometry3, Point3, Vector3};
use serde::Serialize;

use super::assess_error::AssessError;
use super::bases_assessment::bases_basis;
use super::calibration_record::{
    CalibrationChange, CalibrationKind, CalibrationRecord, CalibrationSession, FileValues,
    TagObservation, TouchContact, TouchRole, basis, short_hash, zeros_of,
};
use super::edit_scene_file::{RADIUS_KEY, sign_key, zero_key};
use super::height_map_fit::{heights_now, heights_values};
use super::sheet_frame::{corners_of, touched_axes};
use super::stats::TouchFit;
use super::{
    AcceptanceLimits, CylinderTouch, FitError, FitFinding, FitVerdict, PlaneFit, ResolutionClass,
    RulerDistances, SheetFrame, TouchTarget, TouchedShape, ZerosTouch, check_own, curvature, frame,
    judge_pivot, judge_plane, judge_reading, judge_rolled, judge_zeros, pivot_robust, plane_robust,
    rolled_robust, zeros,
};
use super::{ink_assessment, tag_fit};
use arm::JointFile;
use base::calendar;
use base::units::JointVector;
use kin::ToolTip;
use scene::{Scene, ScenePen, Surface};

/// Number of touches from which an error of the tip is not attributed to the joints: the tip is fitted with their zeros, shown, and
/// calibrated by touches of its own afterwards.
const WITH_TIP_FROM: usize = 16;

/// Assessment of a session's touches.
#[derive(Clone, Debug, Default, Serialize)]
pub struct TouchAssessment {
    /// Verdict with its reasons.
    pub finding: FitFinding,
    /// Values in the file now.
    pub old: FileValues,
    /// Proposed values; empty while no fit is possible.
    pub new: FileValues,
    /// Size of the change.
    pub change: CalibrationChange,
    /// Figures of the fit, in the order in which they are shown.
    pub figures: Vec<(String, f64)>,
    /// For each touch, the tip's place and its residual.
    pub points: Vec<TouchResidual>,
}

impl TouchAssessment {
    /// Returns the assessment of touches that could not be fitted: the file keeps its values.
    pub(super) fn without_fit(reason: String, old: FileValues) -> Self {
        Self {
            finding: FitFinding::refused(reason),
            old,
            ..Self::default()
        }
    }
}

/// Distance of a touch from the fit.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct TouchResidual {
    /// Point that was touched.
    pub role: TouchRole,
    /// Place of the tip in the arm's base frame.
    pub at_mm: [f64; 3],
    /// Vector from the fit to that place.
    pub off_mm: [f64; 3],
}

impl TouchResidual {
    pub(super) fn new(role: TouchRole, at_m: &Point3<f64>, off_m: &Vector3<f64>) -> Self {
        Self {
            role,
            at_mm: (at_m.coords * 1e3).into(),
            off_mm: (off_m * 1e3).into(),
        }
    }

    /// Returns the length of the residual.
    #[must_use]
    pub fn mm(&self) -> f64 {
        Vector3::from(self.off_mm).norm()
    }
}

/// Returns the basis that a session of this kind would have now.
///
/// # Errors
/// The scene has no such pen.
pub fn basis_of(kind: CalibrationKind, scene: &Scene, pen: &str) -> Result<String, AssessError> {
    if kind == CalibrationKind::Bases {
        return Ok(bases_basis(scene));
    }
    let tip = find_pen(scene, pen)?.tip_m.coords.into();
    // A tip does not depend on its earlier value; a sheet and zeros depend on the tip that touched.
    Ok(basis(
        &scene.arm.file,
        (kind != CalibrationKind::Tool).then_some(tip),
    ))
}

/// Returns a hash of what a cross or a pattern drawn now is drawn with, of eight hexadecimal digits: a reading of it is a difference
/// from the sheet and its correction, and from play and sag.
pub(super) fn drawn_on(scene: &Scene) -> String {
    let sheet = values_of(&scene.surface, &scene.surface.flat());
    let correction = ink_assessment::correction_now(scene);
    let compensation = ink_assessment::compensation_now(&scene.arm);
    short_hash(&format!("1 {sheet:?} {correction:?} {compensation:?}"))
}

/// Refuses a reading of a cross, a pattern or joints at rest that was measured with another sheet, play or sag than the files have.
fn check_drawn_on(session: &CalibrationSession, scene: &Scene) -> Result<(), AssessError> {
    let is_difference = session.read_mm.is_some() || session.ink.is_some();
    let is_known = !session.drawn_on.is_empty();
    match is_difference && is_known && session.drawn_on != drawn_on(scene) {
        true => Err(AssessError::ChangedSince(scene.name.clone())),
        false => Ok(()),
    }
}

fn find_pen<'a>(scene: &'a Scene, name: &str) -> Result<&'a ScenePen, AssessError> {
    let found = scene.pens.iter().find(|pen| pen.name == name);
    found.ok_or_else(|| AssessError::NoPen {
        scene: scene.name.clone(),
        pen: name.to_owned(),
        known: scene.pens.iter().map(|pen| pen.name.clone()).collect(),
    })
}

/// Fits a session and assesses the fit. `last` is the last accepted calibration of the same object.
///
/// # Errors
/// Touches that do not belong to the present state of this scene.
pub fn assess(
    session: &CalibrationSession,
    scene: &Scene,
    last: Option<&CalibrationRecord>,
) -> Result<TouchAssessment, AssessError> {
    let input = AssessmentInput::new(session, scene)?;
    if session.arm != scene.arm.file.name {
        return Err(AssessError::Changed("arm"));
    }
    if session.basis != basis_of(session.kind, scene, &session.pen)? {
        return Err(AssessError::Changed("tip or different zeros"));
    }
    check_drawn_on(session, scene)?;
    check_joints(session, scene)?;
    check_zeros(session, scene)?;
    if let Some(ink) = &session.ink {
        return match session.kind {
            CalibrationKind::Play => Ok(input.assess_play(ink)),
            CalibrationKind::Sheet => Ok(input.assess_inked_sheet(ink)),
            _ => Err(AssessError::NoInk),
        };
    }
    let assessed = match (session.kind, session.read_mm, &session.seen) {
        (CalibrationKind::Tool, _, _) => input.tool(),
        (CalibrationKind::Sheet, _, Some(observation)) => Ok(input.observed_sheet(observation)),
        (CalibrationKind::Sheet, Some(read_mm), None) => Ok(input.reading(read_mm)),
        (CalibrationKind::Sheet, None, None) if scene.surface.radius_mm().is_some() => {
            input.rolled(last)
        }
        (CalibrationKind::Sheet, None, None) => input.sheet(last),
        (CalibrationKind::Zeros, _, _) => input.zeros()?,
        (CalibrationKind::Camera, _, Some(observation)) => Ok(tag_fit::camera(observation, last)),
        (CalibrationKind::Camera, _, None) => return Err(AssessError::NoPicture),
        (CalibrationKind::Play, _, _) => return Err(AssessError::NoInk),
        (CalibrationKind::Bases, _, _) => return Err(AssessError::OneArm),
        (CalibrationKind::Pose | CalibrationKind::Cap | CalibrationKind::Calibrator, _, _) => {
            return Err(AssessError::Taught);
        }
    };
    let mut assessed = assessed.unwrap_or_else(|error| input.without_fit(&error));
    report_time_span(&mut assessed.finding, &session.touches);
    Ok(assessed)
}

/// Time within which touches are taken together.
const TOGETHER_MS: u64 = 3_600_000;

/// Reports touches that were not taken together: what is touched may have been moved between them.
fn report_time_span(finding: &mut FitFinding, touches: &[TouchContact]) {
    let times_ms = || touches.iter().map(|touch| touch.at_ms);
    let (Some(first_ms), Some(last_ms)) = (times_ms().min(), times_ms().max()) else {
        return;
    };
    if last_ms - first_ms > TOGETHER_MS {
        let old = touches
            .iter()
            .filter(|touch| last_ms - touch.at_ms > TOGETHER_MS);
        finding.usable(format!(
            "the touches were made from {} UTC to {} UTC; {} of {} are more than an hour older than the last. If the sheet, tool or arm has moved since then, run `steadyhand calibrate discard` and touch again",
            calendar::minute(first_ms),
            calendar::minute(last_ms),
            old.count(),
            touches.len()
        ));
    }
}

/// Refuses a touch without an angle for each joint: a missing one must not count as 0.
fn check_joints(session: &CalibrationSession, scene: &Scene) -> Result<(), AssessError> {
    let need = scene.arm.dof();
    let is_bad = |joints: &[f64]| joints.len() != need || joints.iter().any(|q| !q.is_finite());
    let mut touches = session.touches.iter().zip(1..);
    match touches.find(|(touch, _)| is_bad(&touch.joints_rad)) {
        None => Ok(()),
        Some((touch, number)) => Err(AssessError::OtherJoints {
            number,
            have: touch.joints_rad.len(),
            arm: scene.arm.file.name.clone(),
            need,
        }),
    }
}

/// Refuses touches whose joints were not all measured with the zeros of the arm's file.
fn check_zeros(session: &CalibrationSession, scene: &Scene) -> Result<(), AssessError> {
    let now = zeros_of(&scene.arm.file);
    let mut touches = session.touches.iter().zip(1..);
    match touches.find(|(touch, _)| touch.zeros != now) {
        None => Ok(()),
        Some((touch, number)) => Err(AssessError::OtherZeros {
            number,
            with: touch.zeros.clone(),
            now,
        }),
    }
}

pub(super) struct AssessmentInput<'a> {
    pub(super) session: &'a CalibrationSession,
    pub(super) scene: &'a Scene,
    pub(super) pen: &'a ScenePen,
}

type AssessmentResult = Result<TouchAssessment, FitError>;

impl<'a> AssessmentInput<'a> {
    /// Creates the input of a session in its scene, with its pen.
    pub(super) fn new(
        session: &'a CalibrationSession,
        scene: &'a Scene,
    ) -> Result<Self, AssessError> {
        let pen = find_pen(scene, &session.pen)?;
        Ok(Self {
            session,
            scene,
            pen,
        })
    }

    pub(super) fn contacts(
        &self,
        is_verifying: bool,
    ) -> impl Iterator<Item = &TouchContact> + Clone {
        let touches = self.session.touches.iter();
        touches.filter(move |touch| (touch.role == TouchRole::Verify) == is_verifying)
    }

    pub(super) fn mount(&self, contact: &TouchContact) -> Isometry3<f64> {
        let joints = JointVector::from_slice(&contact.joints_rad);
        self.scene.arm.chain.forward(&joints)
    }

    pub(super) fn tip(&self, contact: &TouchContact) -> Point3<f64> {
        self.mount(contact) * self.pen.tip_m
    }

    fn touched_shape(&self) -> TouchedShape {
        match self.scene.surface.mesh_frame() {
            Some(_) => TouchedShape::Mesh,
            None => TouchedShape::Plane,
        }
    }

    /// Returns the limits that a fit of this arm must keep.
    fn limits(&self) -> AcceptanceLimits {
        ResolutionClass::of_arm(&self.scene.arm).limits()
    }

    /// Judges a fit by the largest residual of a verifying touch and by the spread of touches at one place, given the tip, and names
    /// the places to touch again, on a sheet by `place_mm`. Returns the figures that every fit has.
    pub(super) fn judge_fit(
        &self,
        fit: &impl TouchFit,
        tip_m: &Point3<f64>,
        verify_m: impl Fn(&TouchContact) -> f64,
        place_mm: impl Fn(&Point3<f64>) -> [f64; 2],
        judge: impl FnOnce(&AcceptanceLimits, Option<f64>, Option<f64>) -> FitFinding,
    ) -> (FitFinding, Vec<(String, f64)>) {
        let (limits, left_out) = (self.limits(), fit.left_out());
        let scatter = self.scatter(tip_m, left_out.as_ref());
        let spread_m = scatter.map(|scatter| scatter.spread_m);
        let verify_m = self.contacts(true).map(verify_m).reduce(f64::max);
        let mut finding = judge(&limits, verify_m, spread_m);
        self.name_places(&mut finding, &limits, left_out.as_ref(), scatter, place_mm);
        let mut figures = named([
            ("rms_mm", fit.rms_m() * 1e3),
            ("largest_mm", fit.max_m() * 1e3),
        ]);
        figures.extend(spread_m.map(|m| ("spread_mm".to_owned(), m * 1e3)));
        (finding, figures)
    }

    /// Returns each touch's place and its residual from a fit.
    pub(super) fn residuals(
        &self,
        place_and_residual: impl Fn(&TouchContact) -> (Point3<f64>, Vector3<f64>),
    ) -> Vec<TouchResidual> {
        let touches = self.session.touches.iter();
        touches
            .map(|contact| {
                let (at_m, off_m) = place_and_residual(contact);
                TouchResidual::new(contact.role, &at_m, &off_m)
            })
            .collect()
    }

    fn tool(&self) -> AssessmentResult {
        let mounts: Vec<_> = self.contacts(false).map(|c| self.mount(c)).collect();
        let fit = pivot_robust(&mounts)?;
        let verify_m = |contact: &TouchContact| fit.verify_m(&self.mount(contact));
        let (finding, mut figures) = self.judge_fit(
            &fit,
            &fit.tip_m,
            verify_m,
            |tip_m| self.present_place_mm(tip_m),
            |limits, verify_m, spread_m| {
                judge_pivot(&fit, limits, &self.pen.axis, verify_m, spread_m)
            },
        );
        figures.extend(named([
            ("condition", fit.condition),
            ("tip_sigma_mm", fit.sigma_m() * 1e3),
            ("tip_bound_95_mm", fit.bound_m() * 1e3),
        ]));
        Ok(TouchAssessment {
            finding,
            old: vector_value("tip_m", &self.pen.tip_m.coords),
            new: vector_value("tip_m", &fit.tip_m.coords),
            change: CalibrationChange {
                mm: (fit.tip_m - self.pen.tip_m).norm() * 1e3,
                deg: 0.0,
            },
            figures,
            points: self.residuals(|contact| {
                let at = self.mount(contact) * fit.tip_m;
                (at, at - fit.at_m)
            }),
        })
    }

    fn sheet(&self, last: Option<&CalibrationRecord>) -> AssessmentResult {
        let sideways = self.found_to_the_side();
        let surface = sideways
            .as_ref()
            .map_or(&self.scene.surface, |found| &found.surface);
        let tips: Result<Vec<_>, _> = self
            .contacts(false)
            .map(|contact| self.tip_over_plane(contact, surface))
            .collect();
        let tips = tips?;
        let fit = plane_robust(&tips, &self.up())?;
        let frame = self.frame(&fit, surface)?;
        let corners = self.corners(&frame.origin_m, &frame.x, &frame.y);
        let off_m = |contact: &TouchContact| {
            let over = self.tip_over_plane(contact, surface);
            over.map_or(f64::INFINITY, |at| fit.height_m(&at))
        };
        let verify_m = |contact: &TouchContact| off_m(contact).abs();
        let tilt_rad = last
            .and_then(normal_of)
            .map(|normal| normal.angle(&fit.normal));
        let map = self.height_map(&fit, &frame);
        if let Some(Ok(map)) = &map
            && map.is_worth_having()
        {
            return Ok(self.mapped_sheet((&fit, &frame), map, tilt_rad));
        }
        let shape = self.touched_shape();
        let (mut finding, mut figures) = self.judge_fit(
            &fit,
            &self.pen.tip_m,
            verify_m,
            |tip_m| frame.place_mm(tip_m),
            |limits, verify_m, spread_m| {
                judge_plane(
                    (&fit, shape),
                    limits,
                    &corners,
                    verify_m,
                    spread_m,
                    tilt_rad,
                )
            },
        );
        finding.check_touch_counts(&self.places_touched_too_rarely());
        figures.extend(self.sheet_figures(&fit, &frame));
        figures.extend(
            sideways
                .iter()
                .flat_map(|found| found.reported(&mut finding)),
        );
        if shape == TouchedShape::Plane {
            figures.extend(self.report_bends(&mut finding, (&fit, &frame), &tips));
        }
        match map {
            Some(Ok(map)) => figures.extend(map.figures()),
            Some(Err(reason)) => finding.redo(reason),
            None => {}
        }
        let new = frame_values(&frame.origin_m, &frame.x, &frame.y);
        let (old, new) = self.touched_values(new);
        Ok(TouchAssessment {
            finding,
            change: self.sheet_change(&corners),
            old,
            new,
            figures,
            points: self.residuals(|contact| (self.tip(contact), fit.normal.scale(off_m(contact)))),
        })
    }

    /// Reports along which of its sides a flat sheet is bent, and returns the radii.
    fn report_bends(
        &self,
        finding: &mut FitFinding,
        (fit, frame): (&PlaneFit, &SheetFrame),
        tips: &[Point3<f64>],
    ) -> Vec<(String, f64)> {
        let curvature = curvature(tips, fit, &frame.x);
        let sides = ["x", "y"].into_iter().zip(self.scene.surface.size_mm());
        let bends = sides.enumerate().filter_map(|(axis, (along, chord_mm))| {
            let radius_mm = curvature.and_then(|curvature| curvature.radius_mm(axis))?;
            finding.report_bend(along, radius_mm, chord_mm, &self.limits());
            Some((format!("bent_radius_{along}_mm"), radius_mm))
        });
        bends.collect()
    }

    /// Returns the named corners of the flat sheet with this origin and these axes.
    pub(super) fn corners(
        &self,
        origin_m: &Point3<f64>,
        x: &Vector3<f64>,
        y: &Vector3<f64>,
    ) -> [(&'static str, Point3<f64>); 4] {
        let at = |[right, up]: [f64; 2]| origin_m + x.scale(right / 1e3) + y.scale(up / 1e3);
        self.corners_mm().map(|(name, corner)| (name, at(corner)))
    }

    fn corners_mm(&self) -> [(&'static str, [f64; 2]); 4] {
        let [width, height] = self.scene.surface.size_mm();
        [
            ("lower left", [0.0, 0.0]),
            ("lower right", [width, 0.0]),
            ("upper right", [width, height]),
            ("upper left", [0.0, height]),
        ]
    }

    /// Assesses a sheet on a cylinder: the cylinder's place and radius, and where on it the sheet begins.
    fn rolled(&self, last: Option<&CalibrationRecord>) -> AssessmentResult {
        let touches: Vec<CylinderTouch> = self
            .contacts(false)
            .map(|contact| CylinderTouch {
                at_m: self.tip(contact),
                role: contact.role,
            })
            .collect();
        let present = &self.scene.surface;
        let fit = rolled_robust(present, &touches, self.ruler_distances(), &self.up())?;
        let flat = fit.surface.flat();
        let verify_m = |contact: &TouchContact| fit.height_m(&self.tip(contact)).abs();
        let tilt_rad = last
            .and_then(normal_of)
            .map(|normal| normal.angle(&(flat.rotation * Vector3::z())));
        let corners = self.corners_mm();
        let (mut finding, mut figures) = self.judge_fit(
            &fit,
            &self.pen.tip_m,
            verify_m,
            |tip_m| fit.surface.project(tip_m).at_mm,
            |limits, verify_m, spread_m| {
                judge_rolled(&fit, limits, &corners, verify_m, spread_m, tilt_rad)
            },
        );
        finding.check_touch_counts(&self.places_touched_too_rarely());
        figures.extend(named([
            ("radius_sigma_mm", fit.radius_sigma_mm),
            ("x_up_mm", fit.askew_mm[0]),
            ("y_right_mm", fit.askew_mm[1]),
            ("scale_x", fit.scale[0]),
            ("scale_y", fit.scale[1]),
        ]));
        let (old, new) = self.touched_values(values_of(&fit.surface, &flat));
        Ok(TouchAssessment {
            finding,
            change: self
                .sheet_change(&corners.map(|(name, at)| (name, fit.surface.at(at).point_m))),
            old,
            new,
            figures,
            points: self.residuals(|contact| {
                let at = self.tip(contact);
                let projected = fit.surface.project(&at);
                let normal = fit.surface.at(projected.at_mm).normal;
                (at, normal.scale(projected.height_mm / 1e3))
            }),
        })
    }

    /// Returns the direction away from the sheet, from the tools' orientations.
    pub(super) fn up(&self) -> Vector3<f64> {
        self.contacts(false).fold(Vector3::zeros(), |up, contact| {
            up - self.mount(contact).rotation * self.pen.axis.into_inner()
        })
    }

    /// Returns the distances of the touched x and y from the origin, by ruler or by the sheet's size.
    fn ruler_distances(&self) -> RulerDistances {
        let stated_mm = |role: TouchRole| {
            let mut touches = self.contacts(false).filter(|c| c.role == role);
            touches.find_map(|c| c.asked_mm)
        };
        let [width, height] = self.scene.surface.size_mm();
        RulerDistances {
            x_mm: stated_mm(TouchRole::X).unwrap_or(width),
            y_mm: stated_mm(TouchRole::Y).unwrap_or(height),
        }
    }

    pub(super) fn sheet_figures(&self, fit: &PlaneFit, frame: &SheetFrame) -> Vec<(String, f64)> {
        let mut figures = named([("tilt_sigma_deg", fit.tilt_sigma_rad().to_degrees())]);
        // An old frame on a new plane has no uncertainty of its own.
        if !self.session.probed {
            let sigma = frame.sigma(fit);
            figures.extend(named([
                ("origin_sigma_mm", sigma.origin_m * 1e3),
                ("turn_sigma_deg", sigma.turn_rad.to_degrees()),
            ]));
        }
        figures.extend(named([
            ("scale_x", frame.scale[0]),
            ("scale_y", frame.scale[1]),
            ("off_square_deg", frame.square_rad.to_degrees()),
        ]));
        figures
    }

    /// Assesses the reading of a cross: moves the sheet along itself, around its cylinder if it is rolled, so that the cross would
    /// be drawn in its nominal place.
    fn reading(&self, [dx_mm, dy_mm]: [f64; 2]) -> TouchAssessment {
        let surface = &self.scene.surface;
        let off_mm = dx_mm.hypot(dy_mm);
        TouchAssessment {
            finding: judge_reading(off_mm, &self.limits()),
            old: self.old_sheet(),
            new: values_of(surface, &surface.flat_along(-dx_mm, -dy_mm)),
            change: CalibrationChange {
                mm: off_mm,
                deg: 0.0,
            },
            figures: named([("read_dx_mm", dx_mm), ("read_dy_mm", dy_mm)]),
            points: Vec::new(),
        }
    }

    /// Assesses a camera's observation of the sheet, which stays in its plane.
    fn observed_sheet(&self, observation: &TagObservation) -> TouchAssessment {
        let [origin, right, top] = corners_of(&self.scene.surface);
        let old = tag_fit::ObservedFrame::new(origin, right - origin, top - origin);
        let size_mm = self.scene.surface.size_mm();
        let allowed = self.scene.fiducials.as_ref();
        let allowed = allowed.map_or(tag_fit::OffPlaneLimits::default(), |tags| {
            tag_fit::OffPlaneLimits {
                mm: tags.moved_mm_max,
                deg: tags.moved_deg_max,
            }
        });
        let (new, finding, figures) = tag_fit::sheet(&old, observation, size_mm, allowed);
        let corners = self.corners(&new.origin_m, &new.x, &new.y);
        TouchAssessment {
            finding,
            old: self.old_sheet(),
            new: new.values(),
            change: self.sheet_change(&corners),
            figures,
            points: Vec::new(),
        }
    }

    /// Returns the old axes on the new plane: probes start from the sheet's assumed place.
    fn old_frame_on(&self, fit: &PlaneFit, surface: &Surface) -> Result<SheetFrame, FitError> {
        let [origin, right, top] = corners_of(surface);
        let distances = RulerDistances {
            x_mm: (right - origin).norm() * 1e3,
            y_mm: (top - origin).norm() * 1e3,
        };
        frame([&origin, &right, &top], distances, fit)
    }

    /// Returns the axes from their touches; points touched repeatedly count with their mean. On a mesh they stay: its corners are
    /// no places to touch.
    fn frame(&self, fit: &PlaneFit, surface: &Surface) -> Result<SheetFrame, FitError> {
        if self.session.probed || self.scene.surface.mesh_frame().is_some() {
            return self.old_frame_on(fit, surface);
        }
        let touches = self.contacts(false).map(|c| (c.role, self.tip(c)));
        let [origin, x, y] = touched_axes(&touches)?;
        frame([&origin, &x, &y], self.ruler_distances(), fit)
    }

    /// Returns the place on the sheet as the scene's file has it, for fits that find no sheet of their own.
    fn present_place_mm(&self, tip_m: &Point3<f64>) -> [f64; 2] {
        self.scene.surface.project(tip_m).at_mm
    }

    pub(super) fn old_sheet(&self) -> FileValues {
        let surface = &self.scene.surface;
        values_of(surface, &surface.flat())
    }

    /// Returns the old and the new values of a touched sheet. A correction that ink gave means nothing on another sheet than the one
    /// before: touches of a new origin and new axes take it back. Any touches take back an earlier map of heights.
    pub(super) fn touched_values(&self, mut new: FileValues) -> (FileValues, FileValues) {
        let mut old = self.old_sheet();
        if self.scene.surface.heights().is_some() {
            new.extend(heights_values(None));
            old.extend(heights_now(self.scene));
        }
        let correction = ink_assessment::correction_now(self.scene);
        if !self.session.probed && correction.values().flatten().any(|mm| *mm != 0.0) {
            let none = |(key, mm): (&String, &Vec<f64>)| (key.clone(), vec![0.0; mm.len()]);
            new.extend(correction.iter().map(none));
            old.extend(correction);
        }
        (old, new)
    }

    pub(super) fn sheet_change(&self, new: &[(&str, Point3<f64>); 4]) -> CalibrationChange {
        let [origin, right, top] = corners_of(&self.scene.surface);
        let [(_, o), (_, r), _, (_, t)] = new;
        let shifts_m = [(origin, o), (right, r), (top, t)].map(|(old, new)| (new - old).norm());
        let angle_deg = |old: Vector3<f64>, new: Vector3<f64>| old.angle(&new).to_degrees();
        CalibrationChange {
            mm: shifts_m.into_iter().fold(0.0, f64::max) * 1e3,
            deg: angle_deg(right - origin, r - o).max(angle_deg(top - origin, t - o)),
        }
    }

    fn zeros(&self) -> Result<AssessmentResult, AssessError> {
        let calibrator = || {
            let at = self.scene.calibrator_m;
            at.ok_or_else(|| AssessError::NoCalibrator(self.scene.name.clone()))
        };
        let touch = |contact: &TouchContact| {
            let target = match contact.role {
                TouchRole::Calibrator => TouchTarget::Known(calibrator()?),
                TouchRole::Point => TouchTarget::Same(contact.number),
                _ => TouchTarget::Plane(contact.number),
            };
            Ok(ZerosTouch {
                joints_rad: JointVector::from_slice(&contact.joints_rad),
                target,
            })
        };
        let touches: Vec<ZerosTouch> = self.contacts(false).map(touch).collect::<Result<_, _>>()?;
        Ok(self.fitted_zeros(&touches))
    }

    fn fitted_zeros(&self, touches: &[ZerosTouch]) -> AssessmentResult {
        let arm = &self.scene.arm;
        let tip = ToolTip {
            point_m: self.pen.tip_m,
            axis: self.pen.axis,
        };
        let fit = zeros(&arm.chain, &tip, touches, touches.len() >= WITH_TIP_FROM)?;
        let names: Vec<String> = (0..arm.dof()).map(|joint| arm.joint_name(joint)).collect();
        let (mut old, mut new) = (FileValues::new(), FileValues::new());
        let mut figures = named([
            ("rms_before_mm", fit.before_m * 1e3),
            ("rms_mm", fit.rms_m * 1e3),
            ("condition", fit.condition),
            ("tip_off_mm", (fit.tip_m - self.pen.tip_m).norm() * 1e3),
        ]);
        let held_out_mm = fit.held_out_m.map(|m| m * 1e3);
        figures.extend(held_out_mm.map(|mm| ("held_out_rms_mm".to_owned(), mm)));
        for (joint, servo) in arm.servos() {
            let offset_rad = fit.offsets_rad.get(joint).copied().unwrap_or(0.0);
            let turns = f64::from(servo.sign) * offset_rad / std::f64::consts::TAU;
            let zero = f64::from(servo.zero_tick);
            let moved = (zero - turns * f64::from(servo.ticks_per_turn)).round();
            old.insert(zero_key(servo.id), vec![zero]);
            new.insert(zero_key(servo.id), vec![moved]);
            let turns = f64::from(servo.sign) * (zero - moved) / f64::from(servo.ticks_per_turn);
            let limits = arm.file.joints.get(joint);
            let limits = limits.and_then(|file| shifted_limit(file, turns * std::f64::consts::TAU));
            if let Some((key, [limit_rad, shifted_rad])) = limits {
                old.insert(key.clone(), vec![limit_rad]);
                new.insert(key, vec![shifted_rad]);
            }
            let name = names.get(joint).map_or("", String::as_str);
            figures.push((format!("{name}_deg"), offset_rad.to_degrees()));
        }
        let largest = fit.offsets_rad.distance_max(&JointVector::zeros(arm.dof()));
        let pairs = self.contacts(false).zip(&fit.residuals_m);
        let points = pairs.map(|(contact, off_m)| {
            let off_m = Vector3::new(0.0, 0.0, *off_m);
            TouchResidual::new(contact.role, &self.tip(contact), &off_m)
        });
        let limits = self.limits();
        let mut finding = judge_zeros(&fit, &limits, &names);
        let is_known = |touch: &ZerosTouch| matches!(touch.target, TouchTarget::Known(_));
        if fit.dropped.contains(&0) && !touches.iter().any(is_known) {
            finding.usable(format!(
                "the zero of {} needs touches of a measured place: write `calibrator_m` into the scene, then touch that place with `--of calibrator`",
                arm.joint_name(0)
            ));
        }
        self.name_places(&mut finding, &limits, fit.outlier.as_ref(), None, |tip_m| {
            self.present_place_mm(tip_m)
        });
        finding.check_touch_counts(&self.places_touched_too_rarely());
        Ok(TouchAssessment {
            finding,
            change: CalibrationChange {
                mm: 0.0,
                deg: largest.to_degrees(),
            },
            points: points.collect(),
            old,
            new,
            figures,
        })
    }

    fn without_fit(&self, error: &FitError) -> TouchAssessment {
        let old = match self.session.kind {
            CalibrationKind::Tool => vector_value("tip_m", &self.pen.tip_m.coords),
            CalibrationKind::Sheet => self.old_sheet(),
            _ => FileValues::new(),
        };
        TouchAssessment::without_fit(error.to_string(), old)
    }
}

/// Key of an ink cap's place.
pub(super) const RIM_KEY: &str = "rim_m";

/// Returns a scene's values of a pose, a cap or its calibrator; empty if it has none.
#[must_use]
pub fn taught_values(kind: CalibrationKind, scene: &Scene, name: &str) -> FileValues {
    match kind {
        CalibrationKind::Pose if name == "rest" => pose("rest_rad", &scene.rest_rad),
        CalibrationKind::Pose => pose("ready_rad", &scene.ready_rad),
        CalibrationKind::Cap => {
            let cap = scene.inks.iter().find(|ink| ink.name == name);
            cap.map_or_else(FileValues::new, |ink| {
                vector_value(RIM_KEY, &ink.rim_m.coords)
            })
        }
        _ => {
            let at = scene.calibrator_m;
            at.map_or_else(FileValues::new, |at| {
                vector_value("calibrator_m", &at.coords)
            })
        }
    }
}

/// Returns the new values from the joints at which a pen's tip stands, and the change from the old values.
///
/// # Errors
/// The scene has no such pen or cap.
pub fn new_taught_values(
    kind: CalibrationKind,
    scene: &Scene,
    pen: &str,
    name: &str,
    joints_rad: &JointVector,
) -> Result<(FileValues, CalibrationChange), AssessError> {
    check_own(kind, scene, pen, name)?;
    let tip = scene.arm.chain.forward(joints_rad) * find_pen(scene, pen)?.tip_m;
    let old = taught_values(kind, scene, name);
    let no_name = |existing: String| AssessError::NoName(name.to_owned(), existing);
    let new = match kind {
        CalibrationKind::Pose if name == "rest" => pose("rest_rad", joints_rad),
        CalibrationKind::Pose if name == "ready" => pose("ready_rad", joints_rad),
        CalibrationKind::Pose => return Err(no_name("rest, ready".to_owned())),
        CalibrationKind::Cap if old.is_empty() => {
            let caps: Vec<&str> = scene.inks.iter().map(|ink| ink.name.as_str()).collect();
            return Err(no_name(match caps.as_slice() {
                [] => {
                    "none yet. Next: write an `[[inks]]` with a `name` and a `rim_m` into its file"
                        .to_owned()
                }
                caps => caps.join(", "),
            }));
        }
        CalibrationKind::Cap => vector_value(RIM_KEY, &tip.coords),
        _ => vector_value("calibrator_m", &tip.coords),
    };
    let squares = old.iter().flat_map(|(key, old)| {
        let new = new.get(key).map_or(&[][..], Vec::as_slice);
        old.iter().zip(new).map(|(old, new)| (new - old).powi(2))
    });
    let mm = match kind {
        CalibrationKind::Pose => 0.0,
        _ => squares.sum::<f64>().sqrt() * 1e3,
    };
    Ok((new, CalibrationChange { mm, deg: 0.0 }))
}

fn pose(key: &str, joints_rad: &JointVector) -> FileValues {
    let rounded = joints_rad.iter().map(|q| (q * 1e4).round() / 1e4 + 0.0);
    [(key.to_owned(), rounded.collect())].into()
}

/// Returns the scene file's values for a sheet, given the pose of the flat sheet that touches it along its middle line.
pub(super) fn values_of(surface: &Surface, flat: &Isometry3<f64>) -> FileValues {
    let [x, y] = [Vector3::x(), Vector3::y()].map(|axis| flat.rotation * axis);
    let mut values = frame_values(&Point3::from(flat.translation.vector), &x, &y);
    let radius = surface.radius_mm().map(|mm| (mm * 1e3).round() / 1e3);
    values.extend(radius.map(|mm| (RADIUS_KEY.to_owned(), vec![mm])));
    values
}

/// Returns the values of a frame, by the keys of a scene's sheet.
pub(super) fn frame_values(
    origin_m: &Point3<f64>,
    x: &Vector3<f64>,
    y: &Vector3<f64>,
) -> FileValues {
    let mut values = vector_value("origin_m", &origin_m.coords);
    values.extend(vector_value("x_axis", x));
    values.extend(vector_value("y_axis", y));
    values
}

/// Returns figures with owned names.
pub(super) fn named<const N: usize>(figures: [(&str, f64); N]) -> Vec<(String, f64)> {
    figures.map(|(name, value)| (name.to_owned(), value)).into()
}

/// Returns a vector under its key, rounded to six decimals: places to a thousandth of a millimetre.
pub(super) fn vector_value(key: &str, vector: &Vector3<f64>) -> FileValues {
    let rounded = |value: &f64| (value * 1e6).round() / 1e6 + 0.0;
    [(key.to_owned(), vector.iter().map(rounded).collect())].into()
}

/// Returns the vector that values have under a key.
pub(super) fn vector(values: &FileValues, key: &str) -> Option<Vector3<f64>> {
    let components: [f64; 3] = values.get(key)?.as_slice().try_into().ok()?;
    Some(components.into())
}

/// Returns the key of the limit that a new zero moves inward, as it is and as it will be. The other one stays: a joint must not
/// turn past the end that it was found to have, nor past what its file allows.
fn shifted_limit(file: &JointFile, offset_rad: f64) -> Option<(String, [f64; 2])> {
    let (key, limit_rad) = match offset_rad {
        0.0 => return None,
        inward if inward > 0.0 => ("lower_rad", file.lower_rad.get()),
        _ => ("upper_rad", file.upper_rad.get()),
    };
    let shifted_rad = ((limit_rad + offset_rad) * 1e5).round() / 1e5;
    Some((format!("{key} of {}", file.name), [limit_rad, shifted_rad]))
}

fn normal_of(record: &CalibrationRecord) -> Option<Vector3<f64>> {
    let axis = |key: &str| vector(&record.new, key);
    axis("x_axis")?.cross(&axis("y_axis")?).try_normalize(1e-9)
}

/// Returns the file's present values of the calibrated object; `None` for a pen that the scene does not have.
pub(super) fn present_values(
    kind: CalibrationKind,
    session: &CalibrationSession,
    scene: &Scene,
) -> Option<FileValues> {
    match kind {
        CalibrationKind::Zeros => return Some(zeros_now(scene)),
        CalibrationKind::Play => return Some(ink_assessment::compensation_now(&scene.arm)),
        _ => {}
    }
    let input = AssessmentInput::new(session, scene).ok()?;
    Some(match kind {
        CalibrationKind::Tool => vector_value("tip_m", &input.pen.tip_m.coords),
        CalibrationKind::Sheet => {
            let mut values = input.old_sheet();
            values.extend(ink_assessment::correction_now(scene));
            values.extend(heights_now(scene));
            values
        }
        _ => FileValues::new(),
    })
}

/// Returns all values that a calibration of zeros may write into the arm's file.
fn zeros_now(scene: &Scene) -> FileValues {
    let joints = scene.arm.file.joints.iter();
    let of_joint = |joint: &JointFile| {
        let limits = [
            ("lower_rad", joint.lower_rad),
            ("upper_rad", joint.upper_rad),
        ]
        .map(|(key, limit)| (format!("{key} of {}", joint.name), vec![limit.get()]));
        let counts = joint.servos.iter().flat_map(|servo| {
            [
                (zero_key(servo.id), vec![f64::from(servo.zero_tick)]),
                (sign_key(servo.id), vec![f64::from(servo.sign)]),
            ]
        });
        limits.into_iter().chain(counts).collect::<Vec<_>>()
    };
    joints.flat_map(of_joint).collect()
}

/// Returns the next step, in one sentence.
#[must_use]
pub fn next_step(assessed: &TouchAssessment) -> String {
    let finding = &assessed.finding;
    match finding.verdict {
        FitVerdict::Redo => finding.reasons.first().cloned().unwrap_or_default(),
        _ => "`steadyhand calibrate accept` writes it".to_owned(),
    }
}
