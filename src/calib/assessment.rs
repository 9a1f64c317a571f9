//! Collected touches made a proposal: what the file would say, how far each touch is off, and what
//! it is worth.

use nalgebra::{Isometry3, Point3, Vector3};
use serde::Serialize;

use super::calibration_record::{
    CalibrationChange, CalibrationKind, CalibrationRecord, CalibrationSession, FileValues,
    TagObservation, TouchContact, TouchRole, basis, zeros_of,
};
use super::edit_scene_file::{RADIUS_KEY, sign_key, zero_key};
use super::sheet_frame::touched_axes;
use super::stats::TouchFit;
use super::{
    AcceptanceLimits, CylinderTouch, FitError, FitFinding, FitVerdict, PlaneFit, ResolutionClass,
    RulerDistances, SheetFrame, TouchTarget, ZerosTouch, curvature, frame, judge_pivot,
    judge_plane, judge_reading, judge_rolled, judge_zeros, pivot_robust, plane_robust,
    rolled_robust, zeros,
};
use super::{ink_assessment, tag_fit};
use arm::JointFile;
use base::units::JointVector;
use kin::ToolTip;
use scene::{Scene, ScenePen, Surface};

/// Number of touches from which a wrong tip is not blamed on the joints: the tip is fitted with their zeros, shown, and
/// found by touches of its own afterwards.
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
    /// Figures of the fit, in the order in which they are read.
    pub figures: Vec<(String, f64)>,
    /// Per touch, where the tip was and how far it is from the fit.
    pub points: Vec<TouchResidual>,
}

impl TouchAssessment {
    /// Returns the assessment of touches without a fit, for this reason: the file keeps its values.
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
    /// Place of the tip, in the arm's base frame.
    pub at_mm: [f64; 3],
    /// From the fit to there.
    pub off_mm: [f64; 3],
}

impl TouchResidual {
    fn new(role: TouchRole, at_m: &Point3<f64>, off_m: &Vector3<f64>) -> Self {
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

/// Reason that touches cannot be assessed at all.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AssessError {
    /// The scene has no such pen.
    #[error("scene {scene} has no pen `{pen}`; it has {}", known.join(", "))]
    NoPen {
        /// The scene.
        scene: String,
        /// The name that was asked for.
        pen: String,
        /// The names there are.
        known: Vec<String>,
    },
    /// The touches were made with another arm or tip than the files have now.
    #[error(
        "the touches were made with another {0} than its file has now: they cannot be used; `steadyhand calibrate discard`, and touch again"
    )]
    Changed(&'static str),
    /// A touch is not of this arm's joints.
    #[error(
        "touch {number} has {have} joint angles, and {arm} needs {need} finite ones: its session was damaged; `steadyhand calibrate discard`, and touch again"
    )]
    OtherJoints {
        /// Number of the touch, counted from 1.
        number: usize,
        /// Number of angles that it has.
        have: usize,
        /// The arm.
        arm: String,
        /// Number of the arm's joints.
        need: usize,
    },
    /// A touch was made with other zeros than the arm's file has, or with unknown ones.
    #[error(
        "touch {number} was measured with other zeros ({}) than the file of the arm has now ({now}), so the touches say nothing together; start the node again, `steadyhand calibrate discard`, and touch again",
        if with.is_empty() { "not recorded" } else { with.as_str() }
    )]
    OtherZeros {
        /// Number of the touch, from 1.
        number: usize,
        /// Its zeros.
        with: String,
        /// The file's.
        now: String,
    },
    /// The scene has nothing of that name.
    #[error("the scene has no `{0}`; it has {1}")]
    NoName(String, String),
    /// It is taught, and nothing is fitted.
    #[error("poses, caps and the calibrator are taught and not fitted: `steadyhand teach`")]
    Taught,
    /// A camera is not touched.
    #[error("a camera is calibrated by a picture: `steadyhand calibrate camera --scene NAME`")]
    NoPicture,
    /// Play shows in ink alone.
    #[error("play is found in drawn ink: `steadyhand calibrate play --scene NAME`")]
    NoInk,
    /// The scene has no point whose place is known.
    #[error("scene {0} has no `calibrator_m`; a touch of the calibrator needs its place")]
    NoCalibrator(String),
}

/// Returns the basis that a session of this kind would have now.
///
/// # Errors
/// The scene has no such pen.
pub fn basis_of(kind: CalibrationKind, scene: &Scene, pen: &str) -> Result<String, AssessError> {
    let tip = find_pen(scene, pen)?.tip_m.coords.into();
    // A tip is found whatever it was before; a sheet and zeros are where that tip touched.
    Ok(basis(
        &scene.arm.file,
        (kind != CalibrationKind::Tool).then_some(tip),
    ))
}

fn find_pen<'a>(scene: &'a Scene, name: &str) -> Result<&'a ScenePen, AssessError> {
    let found = scene.pens.iter().find(|pen| pen.name == name);
    found.ok_or_else(|| AssessError::NoPen {
        scene: scene.name.clone(),
        pen: name.to_owned(),
        known: scene.pens.iter().map(|pen| pen.name.clone()).collect(),
    })
}

/// Fits and judges. `last` is what was accepted last of the same thing.
///
/// # Errors
/// Touches that do not belong to this scene as it is now.
pub fn assess(
    session: &CalibrationSession,
    scene: &Scene,
    last: Option<&CalibrationRecord>,
) -> Result<TouchAssessment, AssessError> {
    let work = AssessmentInput::new(session, scene)?;
    if session.arm != scene.arm.file.name {
        return Err(AssessError::Changed("arm"));
    }
    if session.basis != basis_of(session.kind, scene, &session.pen)? {
        return Err(AssessError::Changed("zeros or another tip"));
    }
    check_joints(session, scene)?;
    same_zeros(session, scene)?;
    if let Some(ink) = &session.ink {
        return match session.kind {
            CalibrationKind::Play => Ok(work.played(ink)),
            CalibrationKind::Sheet => Ok(work.inked(ink)),
            _ => Err(AssessError::NoInk),
        };
    }
    let assessed = match (session.kind, session.read_mm, &session.seen) {
        (CalibrationKind::Tool, _, _) => work.tool(),
        (CalibrationKind::Sheet, _, Some(glimpse)) => Ok(work.seen(glimpse)),
        (CalibrationKind::Sheet, Some(read_mm), None) => Ok(work.reading(read_mm)),
        (CalibrationKind::Sheet, None, None) if scene.surface.radius_mm().is_some() => {
            work.rolled(last)
        }
        (CalibrationKind::Sheet, None, None) => work.sheet(last),
        (CalibrationKind::Zeros, _, _) => work.zeros()?,
        (CalibrationKind::Camera, _, Some(glimpse)) => Ok(tag_fit::camera(glimpse, last)),
        (CalibrationKind::Camera, _, None) => return Err(AssessError::NoPicture),
        (CalibrationKind::Play, _, _) => return Err(AssessError::NoInk),
        (CalibrationKind::Pose | CalibrationKind::Cap | CalibrationKind::Calibrator, _, _) => {
            return Err(AssessError::Taught);
        }
    };
    Ok(assessed.unwrap_or_else(|error| work.not_yet(&error)))
}

/// Refuses a touch without an angle for each joint: one that is missing must not be read as 0.
fn check_joints(session: &CalibrationSession, scene: &Scene) -> Result<(), AssessError> {
    let need = scene.arm.dof();
    let is_odd = |joints: &[f64]| joints.len() != need || joints.iter().any(|q| !q.is_finite());
    let mut touches = session.touches.iter().zip(1..);
    match touches.find(|(touch, _)| is_odd(&touch.joints_rad)) {
        None => Ok(()),
        Some((touch, number)) => Err(AssessError::OtherJoints {
            number,
            have: touch.joints_rad.len(),
            arm: scene.arm.file.name.clone(),
            need,
        }),
    }
}

/// Refuses touches whose joints were not all measured with the zeros that the arm's file has.
fn same_zeros(session: &CalibrationSession, scene: &Scene) -> Result<(), AssessError> {
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
    /// A session in its scene, with its pen.
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

    pub(super) fn contacts(&self, verify: bool) -> impl Iterator<Item = &TouchContact> + Clone {
        let all = self.session.touches.iter();
        all.filter(move |touch| (touch.role == TouchRole::Verify) == verify)
    }

    pub(super) fn mount(&self, contact: &TouchContact) -> Isometry3<f64> {
        let joints = JointVector::from_slice(&contact.joints_rad);
        self.scene.arm.chain.forward(&joints)
    }

    pub(super) fn tip(&self, contact: &TouchContact) -> Point3<f64> {
        self.mount(contact) * self.pen.tip_m
    }

    /// The limits that a fit of this arm must keep.
    fn accept(&self) -> AcceptanceLimits {
        ResolutionClass::of_arm(&self.scene.arm).accept()
    }

    /// Judges a fit whose tip is there by the largest distance of a verifying touch and by how far touches of one place spread,
    /// and names the places to touch again. The figures are those that every fit has.
    fn judged(
        &self,
        fit: &impl TouchFit,
        tip_m: &Point3<f64>,
        verify_m: impl Fn(&TouchContact) -> f64,
        judge: impl FnOnce(&AcceptanceLimits, Option<f64>, Option<f64>) -> FitFinding,
    ) -> (FitFinding, Vec<(String, f64)>) {
        let (accept, left_out) = (self.accept(), fit.left_out());
        let scatter = self.scatter(tip_m, left_out.as_ref());
        let spread_m = scatter.map(|scatter| scatter.spread_m);
        let verify_m = self.contacts(true).map(verify_m).reduce(f64::max);
        let mut finding = judge(&accept, verify_m, spread_m);
        self.name_places(&mut finding, &accept, left_out.as_ref(), scatter);
        let mut figures = named([
            ("rms_mm", fit.rms_m() * 1e3),
            ("largest_mm", fit.max_m() * 1e3),
        ]);
        figures.extend(spread_m.map(|m| ("spread_mm".to_owned(), m * 1e3)));
        (finding, figures)
    }

    /// Each touch with its place and its distance from a fit.
    fn residuals(
        &self,
        of: impl Fn(&TouchContact) -> (Point3<f64>, Vector3<f64>),
    ) -> Vec<TouchResidual> {
        let touches = self.session.touches.iter();
        touches
            .map(|contact| {
                let (at_m, off_m) = of(contact);
                TouchResidual::new(contact.role, &at_m, &off_m)
            })
            .collect()
    }

    fn tool(&self) -> AssessmentResult {
        let mounts: Vec<_> = self.contacts(false).map(|c| self.mount(c)).collect();
        let fit = pivot_robust(&mounts)?;
        let verify_m = |contact: &TouchContact| fit.verify_m(&self.mount(contact));
        let (finding, mut figures) =
            self.judged(&fit, &fit.tip_m, verify_m, |accept, verify_m, spread_m| {
                judge_pivot(&fit, accept, &self.pen.axis, verify_m, spread_m)
            });
        figures.extend(named([
            ("condition", fit.condition),
            ("tip_sigma_mm", fit.sigma_m() * 1e3),
            ("tip_bound_95_mm", fit.bound_m() * 1e3),
        ]));
        Ok(TouchAssessment {
            finding,
            old: one("tip_m", &self.pen.tip_m.coords),
            new: one("tip_m", &fit.tip_m.coords),
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
        let tips: Vec<_> = self.contacts(false).map(|c| self.tip(c)).collect();
        let fit = plane_robust(&tips, &self.up())?;
        let made = self.frame(&fit)?;
        let corners = self.corners(&made.origin_m, &made.x, &made.y);
        let verify_m = |contact: &TouchContact| fit.height_m(&self.tip(contact)).abs();
        let tilt_rad = last
            .and_then(normal_of)
            .map(|normal| normal.angle(&fit.normal));
        let (mut finding, mut figures) = self.judged(
            &fit,
            &self.pen.tip_m,
            verify_m,
            |accept, verify_m, spread_m| {
                judge_plane(&fit, accept, &corners, verify_m, spread_m, tilt_rad)
            },
        );
        finding.seldom(&self.seldom());
        figures.extend(self.sheet_figures(&fit, &made));
        let bent = curvature(&tips, &fit, &made.x);
        let sides = ["x", "y"].into_iter().zip(self.scene.surface.size_mm());
        for (axis, (along, chord_mm)) in sides.enumerate() {
            if let Some(radius) = bent.and_then(|bent| bent.radius_mm(axis)) {
                figures.push((format!("bent_radius_{along}_mm"), radius));
                finding.bent(along, radius, chord_mm, &self.accept());
            }
        }
        Ok(TouchAssessment {
            finding,
            change: self.sheet_change(&corners),
            old: self.old_sheet(),
            new: frame_values(&made.origin_m, &made.x, &made.y),
            figures,
            points: self.residuals(|contact| {
                let at = self.tip(contact);
                (at, fit.normal.scale(fit.height_m(&at)))
            }),
        })
    }

    /// The corners of the sheet, named, if it lay flat with this corner and these directions.
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

    /// A sheet on a cylinder: where that lies, its radius, and where on it the sheet begins.
    fn rolled(&self, last: Option<&CalibrationRecord>) -> AssessmentResult {
        let touches: Vec<CylinderTouch> = self
            .contacts(false)
            .map(|contact| CylinderTouch {
                at_m: self.tip(contact),
                role: contact.role,
            })
            .collect();
        let believed = &self.scene.surface;
        let fit = rolled_robust(believed, &touches, self.ruler_distances(), &self.up())?;
        let flat = fit.surface.flat();
        let verify_m = |contact: &TouchContact| fit.height_m(&self.tip(contact)).abs();
        let tilt_rad = last
            .and_then(normal_of)
            .map(|normal| normal.angle(&(flat.rotation * Vector3::z())));
        let corners = self.corners_mm();
        let (mut finding, mut figures) = self.judged(
            &fit,
            &self.pen.tip_m,
            verify_m,
            |accept, verify_m, spread_m| {
                judge_rolled(&fit, accept, &corners, verify_m, spread_m, tilt_rad)
            },
        );
        finding.seldom(&self.seldom());
        figures.extend(named([
            ("radius_sigma_mm", fit.radius_sigma_mm),
            ("x_up_mm", fit.askew_mm[0]),
            ("y_right_mm", fit.askew_mm[1]),
            ("scale_x", fit.scale[0]),
            ("scale_y", fit.scale[1]),
        ]));
        Ok(TouchAssessment {
            finding,
            change: self
                .sheet_change(&corners.map(|(name, at)| (name, fit.surface.at(at).point_m))),
            old: self.old_sheet(),
            new: values_of(&fit.surface, &flat),
            figures,
            points: self.residuals(|contact| {
                let at = self.tip(contact);
                let seen = fit.surface.project(&at);
                let out = fit.surface.at(seen.at_mm).normal;
                (at, out.scale(seen.height_mm / 1e3))
            }),
        })
    }

    /// Away from the sheet, as the tools stood.
    fn up(&self) -> Vector3<f64> {
        self.contacts(false).fold(Vector3::zeros(), |up, contact| {
            up - self.mount(contact).rotation * self.pen.axis.into_inner()
        })
    }

    /// Returns the distances of +x and +y from the origin, by ruler or by the sheet's size.
    fn ruler_distances(&self) -> RulerDistances {
        let said = |role: TouchRole| {
            let mut of = self.contacts(false).filter(|c| c.role == role);
            of.find_map(|c| c.asked_mm)
        };
        let [width, height] = self.scene.surface.size_mm();
        RulerDistances {
            x_mm: said(TouchRole::X).unwrap_or(width),
            y_mm: said(TouchRole::Y).unwrap_or(height),
        }
    }

    fn sheet_figures(&self, fit: &PlaneFit, made: &SheetFrame) -> Vec<(String, f64)> {
        let mut figures = named([("tilt_sigma_deg", fit.tilt_sigma_rad().to_degrees())]);
        // An old frame on a new plane has no uncertainty of its own.
        if !self.session.probed {
            let sure = made.sigma(fit);
            figures.extend(named([
                ("origin_sigma_mm", sure.origin_m * 1e3),
                ("turn_sigma_deg", sure.turn_rad.to_degrees()),
            ]));
        }
        figures.extend(named([
            ("scale_x", made.scale[0]),
            ("scale_y", made.scale[1]),
            ("off_square_deg", made.square_rad.to_degrees()),
        ]));
        figures
    }

    /// The sheet moved along itself, around its cylinder where it is rolled, so that a cross drawn on it again comes to where it
    /// should be.
    fn reading(&self, [dx_mm, dy_mm]: [f64; 2]) -> TouchAssessment {
        let surface = &self.scene.surface;
        let off_mm = dx_mm.hypot(dy_mm);
        TouchAssessment {
            finding: judge_reading(off_mm, &self.accept()),
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

    /// The sheet as a camera saw it, kept in its plane.
    fn seen(&self, glimpse: &TagObservation) -> TouchAssessment {
        let [origin, right, top] = self.old_corners();
        let old = tag_fit::ObservedFrame::new(origin, right - origin, top - origin);
        let size_mm = self.scene.surface.size_mm();
        let (new, finding, figures) = tag_fit::sheet(&old, glimpse, size_mm);
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

    /// The old axes on the new plane: probes go to where the sheet is believed to begin.
    fn settled(&self, fit: &PlaneFit) -> Result<SheetFrame, FitError> {
        let [origin, right, top] = self.old_corners();
        let asked = RulerDistances {
            x_mm: (right - origin).norm() * 1e3,
            y_mm: (top - origin).norm() * 1e3,
        };
        frame([&origin, &right, &top], asked, fit)
    }

    /// The axes from their touches; points touched again count with their mean.
    fn frame(&self, fit: &PlaneFit) -> Result<SheetFrame, FitError> {
        if self.session.probed {
            return self.settled(fit);
        }
        let touches = self.contacts(false).map(|c| (c.role, self.tip(c)));
        let [origin, x, y] = touched_axes(&touches)?;
        frame([&origin, &x, &y], self.ruler_distances(), fit)
    }

    fn old_corners(&self) -> [Point3<f64>; 3] {
        let [width, height] = self.scene.surface.size_mm();
        [[0.0, 0.0], [width, 0.0], [0.0, height]].map(|at| self.scene.surface.at(at).point_m)
    }

    pub(super) fn old_sheet(&self) -> FileValues {
        let surface = &self.scene.surface;
        values_of(surface, &surface.flat())
    }

    pub(super) fn sheet_change(&self, new: &[(&str, Point3<f64>); 4]) -> CalibrationChange {
        let [origin, right, top] = self.old_corners();
        let [(_, o), (_, r), _, (_, t)] = new;
        let far = [(origin, o), (right, r), (top, t)].map(|(old, new)| (new - old).norm());
        let turned = |old: Vector3<f64>, new: Vector3<f64>| old.angle(&new).to_degrees();
        CalibrationChange {
            mm: far.into_iter().fold(0.0, f64::max) * 1e3,
            deg: turned(right - origin, r - o).max(turned(top - origin, t - o)),
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
            let by_rad = fit.offsets_rad.get(joint).copied().unwrap_or(0.0);
            let turns = f64::from(servo.sign) * by_rad / std::f64::consts::TAU;
            let zero = f64::from(servo.zero_tick);
            let moved = (zero - turns * f64::from(servo.ticks_per_turn)).round();
            old.insert(zero_key(servo.id), vec![zero]);
            new.insert(zero_key(servo.id), vec![moved]);
            let name = names.get(joint).map_or("", String::as_str);
            figures.push((format!("{name}_deg"), by_rad.to_degrees()));
        }
        let largest = fit.offsets_rad.distance_max(&JointVector::zeros(arm.dof()));
        let pairs = self.contacts(false).zip(&fit.residuals_m);
        let points = pairs.map(|(contact, off_m)| {
            let off_m = Vector3::new(0.0, 0.0, *off_m);
            TouchResidual::new(contact.role, &self.tip(contact), &off_m)
        });
        let accept = self.accept();
        let mut finding = judge_zeros(&fit, &accept, &names);
        self.name_places(&mut finding, &accept, fit.outlier.as_ref(), None);
        finding.seldom(&self.seldom());
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

    fn not_yet(&self, error: &FitError) -> TouchAssessment {
        let old = match self.session.kind {
            CalibrationKind::Tool => one("tip_m", &self.pen.tip_m.coords),
            CalibrationKind::Sheet => self.old_sheet(),
            _ => FileValues::new(),
        };
        TouchAssessment::without_fit(error.to_string(), old)
    }
}

/// Returns a scene's values of a pose, a cap or its calibrator; empty if it has none.
#[must_use]
pub fn taught_values(kind: CalibrationKind, scene: &Scene, name: &str) -> FileValues {
    match kind {
        CalibrationKind::Pose if name == "rest" => pose("rest_rad", &scene.rest_rad),
        CalibrationKind::Pose => pose("ready_rad", &scene.ready_rad),
        CalibrationKind::Cap => {
            let cap = scene.inks.iter().find(|ink| ink.name == name);
            cap.map_or_else(FileValues::new, |ink| one("rim_m", &ink.rim_m.coords))
        }
        _ => {
            let at = scene.calibrator_m;
            at.map_or_else(FileValues::new, |at| one("calibrator_m", &at.coords))
        }
    }
}

/// Returns the new values from these joints with a pen's tip there, and the change from before.
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
    let tip = scene.arm.chain.forward(joints_rad) * find_pen(scene, pen)?.tip_m;
    let before = taught_values(kind, scene, name);
    let no_name = |has: String| AssessError::NoName(name.to_owned(), has);
    let new = match kind {
        CalibrationKind::Pose if name == "rest" => pose("rest_rad", joints_rad),
        CalibrationKind::Pose if name == "ready" => pose("ready_rad", joints_rad),
        CalibrationKind::Pose => return Err(no_name("poses rest and ready".to_owned())),
        CalibrationKind::Cap if before.is_empty() => {
            let caps: Vec<&str> = scene.inks.iter().map(|ink| ink.name.as_str()).collect();
            return Err(no_name(match caps.as_slice() {
                [] => "no ink caps: write an [[inks]] into its file first, with a `name` and a `rim_m`"
                    .to_owned(),
                caps => format!("ink caps: {}", caps.join(", ")),
            }));
        }
        CalibrationKind::Cap => one("rim_m", &tip.coords),
        _ => one("calibrator_m", &tip.coords),
    };
    let differences = before.iter().flat_map(|(key, old)| {
        let new = new.get(key).map_or(&[][..], Vec::as_slice);
        old.iter().zip(new).map(|(old, new)| (new - old).powi(2))
    });
    let mm = match kind {
        CalibrationKind::Pose => 0.0,
        _ => differences.sum::<f64>().sqrt() * 1e3,
    };
    Ok((new, CalibrationChange { mm, deg: 0.0 }))
}

fn pose(key: &str, joints_rad: &JointVector) -> FileValues {
    let rounded = joints_rad.iter().map(|q| (q * 1e4).round() / 1e4 + 0.0);
    [(key.to_owned(), rounded.collect())].into()
}

/// Returns the scene file's values for a sheet, given the pose of the flat sheet that touches it along its middle.
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
    let mut values = one("origin_m", &origin_m.coords);
    values.extend(one("x_axis", x));
    values.extend(one("y_axis", y));
    values
}

/// Returns figures with their names as they are kept.
pub(super) fn named<const N: usize>(figures: [(&str, f64); N]) -> Vec<(String, f64)> {
    figures.map(|(name, value)| (name.to_owned(), value)).into()
}

/// To a thousandth of a millimetre in metres; directions to a millionth.
pub(super) fn one(key: &str, vector: &Vector3<f64>) -> FileValues {
    let rounded = |value: &f64| (value * 1e6).round() / 1e6 + 0.0;
    [(key.to_owned(), vector.iter().map(rounded).collect())].into()
}

/// Returns the place or direction that values have under a key.
pub(super) fn vector(values: &FileValues, key: &str) -> Option<Vector3<f64>> {
    let three: [f64; 3] = values.get(key)?.as_slice().try_into().ok()?;
    Some(three.into())
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
    let work = AssessmentInput::new(session, scene).ok()?;
    Some(match kind {
        CalibrationKind::Tool => one("tip_m", &work.pen.tip_m.coords),
        CalibrationKind::Sheet => {
            let mut values = work.old_sheet();
            values.extend(ink_assessment::correction_now(scene));
            values
        }
        _ => FileValues::new(),
    })
}

/// Returns all that a calibration of zeros may have written into the arm's file.
fn zeros_now(scene: &Scene) -> FileValues {
    let joints = scene.arm.file.joints.iter();
    let of_joint = |joint: &JointFile| {
        let ends = [
            ("lower_rad", joint.lower_rad),
            ("upper_rad", joint.upper_rad),
        ]
        .map(|(key, end)| (format!("{key} of {}", joint.name), vec![end.get()]));
        let counts = joint.servos.iter().flat_map(|servo| {
            [
                (zero_key(servo.id), vec![f64::from(servo.zero_tick)]),
                (sign_key(servo.id), vec![f64::from(servo.sign)]),
            ]
        });
        ends.into_iter().chain(counts).collect::<Vec<_>>()
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
