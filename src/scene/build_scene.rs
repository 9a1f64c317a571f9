//! Checks a scene file and builds a [`Scene`] from it.

use std::sync::Arc;

use nalgebra::{Point3, Unit, Vector3};

use super::canvas::Canvas;
use super::colour_changes::ColourChanges;
use super::design_overflow::{DesignOverflow, OverflowCollector, OverflowPlacement, including};
use super::drawing_pause::{DrawingPause, DrawnPauses};
use super::fiducials::{self, SheetFiducials};
use super::file::{
    BoxFile, CornersFile, DesignFile, HeightsFile, InkFile, LimitsFile, PenChangeKind, PenFile,
    SceneFile,
};
use super::library::DesignSheet;
use super::line_tidying::LineTidying;
use super::pause_every::PauseCounter;
use super::pen_filter::PenFilter;
use super::pen_holder::PenHolder;
use super::placement::{PageOnSheet, PlacedPart, edge_margin_mm, fitting_size_mm};
use super::replacement::DesignReplacement;
use super::rest_clearance::check_keep_outs;
use super::scene_fault::SceneFault;
use super::{
    AxisAlignedBox, InkCap, KeepOut, Revision, Scene, SceneLimits, ScenePage, ScenePen,
    SheetCorrection, SheetHeights, SheetStroke, SizeSource, Surface, ToolKind,
};
use arm::ArmModel;
use base::units::{Finite, JointVector, OutOfRange};
use base::wording::{NEXT, millimetres};
use design::{ChoiceWords, Design, DesignChoice};
use mesh::MeshPatch;

/// Highest speed of any tip, in mm/s: ISO 10218's reduced speed.
pub const TIP_MM_S_MAX: f64 = 250.0;

/// Highest tip speed, in mm/s, when a person jogs.
pub const JOG_MM_S: f64 = 25.0;

/// Highest tip speed, in mm/s, on the way to touch something that it must not press.
pub const PROBE_MM_S: f64 = 2.0;

/// Start height of a probe over the expected sheet, in mm: high enough to learn the servos'
/// readings without contact, and then to find a sheet that lies up to [`PROBE_DEPTH_MM`] higher or
/// lower.
pub const PROBE_FROM_MM: f64 = PROBE_DEPTH_MM + 3.0;

/// Depth below the expected sheet at which a probe gives up, in mm.
pub const PROBE_DEPTH_MM: f64 = 5.0;

/// Parts of a scene besides its file.
pub(super) struct SceneParts {
    pub(super) arm: Arc<ArmModel>,
    /// The shape under the sheet, if it is a mesh.
    pub(super) mesh: Option<Arc<MeshPatch>>,
    pub(super) design: Design,
    pub(super) overlay: Option<String>,
    /// Set if the design comes with the call.
    pub(super) canvas: Option<Canvas>,
    /// The drawing that replaces the scene's own design.
    pub(super) replacement: Option<Arc<DesignReplacement>>,
    pub(super) size_from: SizeSource,
    /// Words of messages that offer a choice.
    pub(super) words: ChoiceWords,
    /// Names of the pens that its arm holds; `None` for all.
    pub(super) held: Option<Vec<String>>,
    pub(super) revision: Revision,
    pub(super) setting: Revision,
}

impl SceneParts {
    /// Returns the name of the drawing that replaces the scene's own design.
    fn drawing(&self) -> Option<String> {
        self.replacement.as_ref().map(|drawing| drawing.label())
    }

    /// Returns those of the file's pens that its arm holds.
    fn held_of(&self, pens: &[ScenePen]) -> Vec<ScenePen> {
        let is_held = |pen: &&ScenePen| {
            let held = self.held.as_ref();
            held.is_none_or(|held| held.contains(&pen.name))
        };
        pens.iter().filter(is_held).cloned().collect()
    }

    fn sheet(&self, file: &SceneFile, size_mm: [f64; 2]) -> DesignSheet {
        let replacement = self.replacement.as_ref();
        DesignSheet {
            size_mm,
            margin_mm: edge_margin_mm(&file.pens),
            placed: PlacedPart::of(replacement.map(|drawing| &drawing.placement)),
        }
    }
}

/// A scene, and for each of its strokes whether the author named its pen.
pub(super) struct BuiltScene {
    pub(super) scene: Scene,
    pub(super) is_pen_named: Vec<bool>,
}

/// The reason why a file is not a valid scene.
pub(super) enum SceneFileError {
    /// Everything that is wrong with it.
    Values(Vec<String>),
    /// The design does not fit; nothing else is wrong.
    DoesNotFit(Box<DesignOverflow>),
}

/// Checks every value, and collects everything that is wrong.
pub(super) fn scene(file: &SceneFile, parts: SceneParts) -> Result<BuiltScene, SceneFileError> {
    let mut problems = Vec::new();
    let surface = keep(surface(file, parts.mesh.as_ref()), &mut problems);
    let correction = correction(file, &mut problems);
    let fiducials = tags(file, surface.as_ref(), &mut problems);
    let pens = pens(file, &mut problems);
    let inks = keep_each(&file.inks, ink_of, &mut problems);
    let calibrator_m = calibrator(file, &mut problems);
    let limits = keep(limits(&file.limits, &parts.arm), &mut problems);
    let heights = keep(heights(&file.heights), &mut problems);
    let [rest_rad, ready_rad, change_rad] = poses(file, &parts.arm, &mut problems);
    let keep_outs = keep_outs(file, &parts, &pens, rest_rad.as_ref(), &mut problems);
    check_tools(file, &mut problems);
    if let (Some(surface), Some(limits)) = (&surface, &limits) {
        keep(check_sheet(surface, &limits.workspace), &mut problems);
    }
    let placed = surface.as_ref().and_then(|surface| {
        let placed = place(file, &parts, surface, &pens, &mut problems);
        keep(placed, &mut problems)
    });
    let placed = placed.unwrap_or_default();
    if let Some(outside) = placed.outside {
        return Err(with_overflow(problems, outside));
    }
    let (Some(surface), Some(limits), Some(heights), Some(rest_rad), Some(ready_rad), true) = (
        surface,
        limits,
        heights,
        rest_rad,
        ready_rad,
        problems.is_empty(),
    ) else {
        return Err(SceneFileError::Values(problems));
    };
    let scene = Scene {
        name: file.name.clone(),
        drawing: parts.drawing(),
        overlay: parts.overlay,
        canvas: parts.canvas,
        about: file.about.clone(),
        bent: parts.arm.chain.with_bent_elbows(&ready_rad),
        arm: parts.arm,
        strokes: placed.strokes,
        order: file.design.order,
        join_mm: placed.join_mm,
        page: placed.page,
        notes: parts.design.notes.into_iter().chain(placed.notes).collect(),
        surface,
        correction,
        fiducials,
        pens,
        holder: holder(file, change_rad.unwrap_or(rest_rad)),
        inks,
        calibrator_m,
        rest_rad,
        ready_rad,
        heights,
        limits,
        keep_outs,
        arm_name: None,
        beside: Vec::new(),
        attended: file.attended,
        revision: parts.revision,
        setting: parts.setting,
    };
    Ok(BuiltScene {
        scene,
        is_pen_named: placed.is_pen_named,
    })
}

fn calibrator(file: &SceneFile, problems: &mut Vec<String>) -> Option<Point3<f64>> {
    let at_m = file.calibrator_m?;
    keep(near_point("calibrator_m", at_m), problems)
}

fn surface(file: &SceneFile, mesh: Option<&Arc<MeshPatch>>) -> Result<Surface, SceneFault> {
    match mesh {
        Some(patch) => {
            let stated = file.surface.as_ref().map(|surface| surface.uncertainty_mm);
            within(
                "surface.uncertainty_mm",
                stated.unwrap_or_default(),
                0.0,
                5.0,
            )?;
            Surface::on_mesh(&file.sheet, Arc::clone(patch))
        }
        None => Surface::new(&file.sheet),
    }
}

/// Reads the keep-outs, and refuses those that contain the arm at rest with the pens that it holds.
fn keep_outs(
    file: &SceneFile,
    parts: &SceneParts,
    pens: &[ScenePen],
    rest_rad: Option<&JointVector>,
    problems: &mut Vec<String>,
) -> Vec<KeepOut> {
    let keep_outs = keep_each(&file.keep_outs, keep_out, problems);
    if let Some(rest_rad) = rest_rad {
        let held = parts.held_of(pens);
        problems.extend(check_keep_outs(&parts.arm, &held, rest_rad, &keep_outs));
    }
    keep_outs
}

/// Reads the rest pose, the ready pose and the pose in which a pen is changed.
fn poses(file: &SceneFile, arm: &ArmModel, problems: &mut Vec<String>) -> [Option<JointVector>; 3] {
    let poses = file.poses.as_ref();
    [
        ("rest_rad", poses.map(|poses| &poses.rest_rad)),
        ("ready_rad", poses.map(|poses| &poses.ready_rad)),
        (
            "change_rad",
            poses.and_then(|poses| poses.change_rad.as_ref()),
        ),
    ]
    .map(|(name, angles)| angles.and_then(|angles| keep(pose(name, angles, arm), problems)))
}

fn holder(file: &SceneFile, change_rad: JointVector) -> PenHolder {
    match file.pen_change {
        PenChangeKind::AllMounted => PenHolder::AllMounted,
        PenChangeKind::ByHand => PenHolder::ByHand {
            mounted: None,
            change_rad,
            measures: file.measure_change,
        },
    }
}

fn with_overflow(mut problems: Vec<String>, outside: DesignOverflow) -> SceneFileError {
    if problems.is_empty() {
        return SceneFileError::DoesNotFit(Box::new(outside));
    }
    problems.push(outside.why);
    SceneFileError::Values(problems)
}

fn keep<T>(result: Result<T, SceneFault>, problems: &mut Vec<String>) -> Option<T> {
    let result = result.map_err(|fault| problems.push(fault.to_string()));
    result.ok()
}

fn keep_each<F, T>(
    items: &[F],
    read: impl Fn(&F) -> Result<T, SceneFault>,
    problems: &mut Vec<String>,
) -> Vec<T> {
    let kept = items.iter().filter_map(|item| keep(read(item), problems));
    kept.collect()
}

/// Farthest coordinate of a scene: beyond any table that an arm works at.
const COORDINATE_M_MAX: f64 = 10.0;

/// Returns the point of these coordinates, which a file in millimetres would put far beyond the arm.
pub(super) fn near_point(what: &str, coordinates: [Finite; 3]) -> Result<Point3<f64>, SceneFault> {
    check_near(what, Point3::from(coordinates.map(Finite::get)))
}

fn check_near(what: &str, point_m: Point3<f64>) -> Result<Point3<f64>, SceneFault> {
    let mut metres = point_m.iter();
    let far = || SceneFault::TooFar {
        what: what.to_owned(),
        point_m,
        max_m: COORDINATE_M_MAX,
    };
    let is_near = metres.all(|metres| metres.abs() <= COORDINATE_M_MAX);
    is_near.then_some(point_m).ok_or_else(far)
}

fn tags(
    file: &SceneFile,
    surface: Option<&Surface>,
    problems: &mut Vec<String>,
) -> Option<SheetFiducials> {
    let (fiducials_file, surface) = file.fiducials.as_ref().zip(surface)?;
    keep(fiducials::check(fiducials_file, surface), problems)
}

fn correction(file: &SceneFile, problems: &mut Vec<String>) -> Option<SheetCorrection> {
    let correction_file = file.sheet.correction.as_ref()?;
    let size_mm = file.sheet.size_mm.map(Finite::get);
    keep(SheetCorrection::of_file(correction_file, size_mm), problems)
}

fn pens(file: &SceneFile, problems: &mut Vec<String>) -> Vec<ScenePen> {
    if file.pens.is_empty() {
        problems.push("the scene has no pen; it needs at least one `[[pens]]`".to_owned());
    }
    keep_each(&file.pens, |pen| pen_of(pen, file), problems)
}

fn pen_of(pen: &PenFile, file: &SceneFile) -> Result<ScenePen, SceneFault> {
    let (name, inks) = (&pen.name, &file.inks);
    let within =
        |key: &str, value, least, most| within(&format!("pen `{name}`: {key}"), value, least, most);
    let narrowed = |key: &str, value: Option<Finite>, least: f64, scene_max: Finite| {
        (value.map(|value| within(key, value, least, scene_max.get()))).transpose()
    };
    let axis = Unit::try_new(Vector3::from(pen.axis.map(Finite::get)), 1e-9)
        .ok_or_else(|| SceneFault::PenAxis(name.clone()))?;
    let cone_deg = within("cone_deg", pen.cone_deg, 0.0, 80.0)?;
    let width_mm = within("width_mm", pen.width_mm, 0.01, 20.0)?;
    let turn_deg_mm = within("turn_deg_mm", pen.turn_deg_mm, 0.01, 45.0)?;
    let ink = pen.ink.as_ref().map(|ink| {
        let index = inks.iter().position(|other| other.name == *ink);
        index.ok_or_else(|| {
            let known = inks.iter().map(|ink| ink.name.clone()).collect();
            let (pen, ink) = (name.clone(), ink.clone());
            SceneFault::NoInk { pen, ink, known }
        })
    });
    let ink = ink.transpose()?;
    Ok(ScenePen {
        name: name.clone(),
        kind: pen.kind,
        tip_m: near_point(&format!("pen `{name}`: tip_m"), pen.tip_m)?,
        axis,
        cone_rad: cone_deg.to_radians(),
        width_mm,
        turn_rad_mm: turn_deg_mm.to_radians(),
        colour: colour(&pen.colour).ok_or_else(|| {
            let (pen, colour) = (name.clone(), pen.colour.clone());
            SceneFault::PenColour { pen, colour }
        })?,
        ink,
        press_mm: narrowed("press_mm", pen.press_mm, 0.0, file.heights.press_mm)?,
        draw_mm_s: narrowed("draw_mm_s", pen.draw_mm_s, 0.1, file.limits.draw_mm_s)?,
    })
}

fn colour(text: &str) -> Option<[u8; 3]> {
    let digits = text
        .strip_prefix('#')
        .filter(|digits| digits.len() == 6 && digits.is_ascii())?;
    let byte = |at: usize| u8::from_str_radix(digits.get(at..at + 2)?, 16).ok();
    Some([byte(0)?, byte(2)?, byte(4)?])
}

fn within(what: &str, value: Finite, min: f64, max: f64) -> Result<f64, OutOfRange> {
    OutOfRange::check(|| what.to_owned(), value, &(min..=max))
}

fn ink_of(ink: &InkFile) -> Result<InkCap, SceneFault> {
    let what = |field: &str| format!("ink `{}`: {field}", ink.name);
    Ok(InkCap {
        name: ink.name.clone(),
        rim_m: near_point(&what("rim_m"), ink.rim_m)?,
        depth_m: within(&what("depth_mm"), ink.depth_mm, 0.5, 100.0)? / 1e3,
        dip_every_mm: within(&what("dip_every_mm"), ink.dip_every_mm, 1.0, 1e6)?,
        wait_s: within(&what("wait_s"), ink.wait_s, 0.0, 60.0)?,
    })
}

/// Lowest hop: below it, unevenness of the paper would touch the pen.
const LIFT_LEAST_MM: f64 = 0.5;

/// Default of the least height of a hop.
const LIFT_LEAST_DEFAULT_MM: f64 = 2.0;

fn heights(h: &HeightsFile) -> Result<SheetHeights, SceneFault> {
    let lift_mm = within("heights.lift_mm", h.lift_mm, 1.0, 200.0)?;
    let lift_least_mm = match h.lift_least_mm {
        Some(least) => within("heights.lift_least_mm", least, LIFT_LEAST_MM, lift_mm)?,
        None => lift_mm.min(LIFT_LEAST_DEFAULT_MM),
    };
    Ok(SheetHeights {
        lift_mm,
        lift_least_mm,
        press_mm: within("heights.press_mm", h.press_mm, 0.0, 5.0)?,
        depth_trim_mm: within("heights.depth_trim_mm", h.depth_trim_mm, 0.0, 1.0)?,
        hover_mm: within("heights.hover_mm", h.hover_mm, 0.5, 200.0)?,
    })
}

fn limits(file: &LimitsFile, arm: &ArmModel) -> Result<SceneLimits, SceneFault> {
    Ok(SceneLimits {
        draw_mm_s: within("limits.draw_mm_s", file.draw_mm_s, 0.1, TIP_MM_S_MAX)?,
        travel_mm_s: within("limits.travel_mm_s", file.travel_mm_s, 0.1, TIP_MM_S_MAX)?,
        draw_mm_s2: within("limits.draw_mm_s2", file.draw_mm_s2, 1.0, 1e5)?,
        stretch_max: 1.0 + within("limits.stretch", file.stretch, 0.0, 1.0)?,
        workspace: match &file.workspace {
            Some(file) => workspace(file)?,
            None => default_workspace(arm),
        },
    })
}

/// The arm stands on a table at z = 0; a pen that is pressed onto paper there gives way by this
/// much. If the table is lower, the scene states its workspace explicitly.
pub(super) const TABLE_M: f64 = 0.003;

/// Checks that all of the sheet lies in the workspace.
fn check_sheet(surface: &Surface, workspace: &AxisAlignedBox) -> Result<(), SceneFault> {
    let [width, height] = surface.size_mm();
    for at_mm in [
        [0.0, 0.0],
        [width, 0.0],
        [width, height],
        [0.0, height],
        [width / 2.0, height / 2.0],
    ] {
        let point = surface.at(at_mm).point_m;
        let inside_m = workspace.inside_m(&point);
        if !inside_m.iter().all(|metres| *metres >= 0.0) {
            return Err(SceneFault::SheetOutside {
                at_mm,
                point_m: point.into(),
                min_m: workspace.min_m.into(),
                max_m: workspace.max_m.into(),
            });
        }
    }
    Ok(())
}

/// Returns a box of everything that the arm could reach above its table; the tip must never leave
/// it.
pub(super) fn default_workspace(arm: &ArmModel) -> AxisAlignedBox {
    let length = |v: [Finite; 3]| Vector3::from(v.map(Finite::get)).norm();
    let joints = arm.file.joints.iter().map(|joint| length(joint.origin_m));
    let reach = joints.sum::<f64>() + length(arm.file.tool_mount.origin_m) + TOOL_M_MAX;
    AxisAlignedBox {
        min_m: Point3::new(-reach, -reach, -TABLE_M),
        max_m: Point3::new(reach, reach, reach),
    }
}

/// Longest tool for which the workspace need not be stated.
const TOOL_M_MAX: f64 = 0.3;

fn corners(what: &str, min: [Finite; 3], max: [Finite; 3]) -> Result<AxisAlignedBox, SceneFault> {
    let [min_m, max_m] = [min, max].map(|corner| Point3::from(corner.map(Finite::get)));
    if min_m.iter().zip(max_m.iter()).all(|(low, high)| low < high) {
        Ok(AxisAlignedBox { min_m, max_m })
    } else {
        let what = what.to_owned();
        Err(SceneFault::Corners { what, min_m, max_m })
    }
}

fn workspace(file: &CornersFile) -> Result<AxisAlignedBox, SceneFault> {
    let CornersFile { min_m, max_m } = *file;
    for (key, corner) in [("min_m", min_m), ("max_m", max_m)] {
        near_point(&format!("limits.workspace: {key}"), corner)?;
    }
    corners("limits.workspace", min_m, max_m)
}

/// Reads a keep-out. It may reach as far as it likes, but not be wholly beyond what an arm could come near.
fn keep_out(file: &BoxFile) -> Result<KeepOut, SceneFault> {
    let name = format!("keep-out `{}`", file.name);
    let corners = corners(&name, file.min_m, file.max_m)?;
    let ends = corners
        .min_m
        .coords
        .zip_map(&corners.max_m.coords, |min, max| 0_f64.clamp(min, max));
    check_near(&format!("{name} (its nearest point)"), ends.into())?;
    Ok(KeepOut {
        name: file.name.clone(),
        corners,
    })
}

fn pose(name: &str, angles: &[Finite], arm: &ArmModel) -> Result<JointVector, SceneFault> {
    if angles.len() != arm.dof() {
        return Err(SceneFault::PoseLength {
            pose: name.to_owned(),
            angles: angles.len(),
            arm: arm.file.name.clone(),
            joints: arm.dof(),
        });
    }
    let pose = JointVector::from_slice(&angles.iter().map(|angle| angle.get()).collect::<Vec<_>>());
    let limits = arm.limits.lower_rad.iter().zip(arm.limits.upper_rad.iter());
    for (index, (angle, (lower, upper))) in pose.iter().zip(limits).enumerate() {
        if !(*lower..=*upper).contains(angle) {
            return Err(SceneFault::PoseAngle {
                pose: name.to_owned(),
                joint: arm.joint_name(index),
                angle_rad: *angle,
                range_rad: [*lower, *upper],
            });
        }
    }
    Ok(pose)
}

/// Checks what a needle requires, and what applies only to pens that a person changes.
fn check_tools(file: &SceneFile, problems: &mut Vec<String>) {
    let needle = file.pens.iter().find(|pen| pen.kind == ToolKind::Needle);
    if let Some(PenFile { name, .. }) = needle {
        if !file.attended {
            problems.push(format!(
                "`{name}` is a needle: write `attended = true` and stay beside the arm"
            ));
        }
        if file.keep_outs.is_empty() {
            problems.push(format!(
                "`{name}` is a needle: add at least one `[[keep_outs]]` box that it must never enter"
            ));
        }
    }
    let is_trimmed = file.heights.depth_trim_mm.get() > 0.0;
    if is_trimmed && (needle.is_some() || !file.inks.is_empty()) {
        problems.push(
            "`heights.depth_trim_mm` cannot be used with a needle or a dipped pen: leave it out"
                .to_owned(),
        );
    }
    let only_by_hand = |key: &str| {
        format!(
            "`{key}` is for pens that a person changes: also write `pen_change = \"by_hand\"`, or leave it out"
        )
    };
    let is_all_mounted = file.pen_change == PenChangeKind::AllMounted;
    if file.measure_change && is_all_mounted {
        problems.push(only_by_hand("measure_change"));
    }
    let is_bent = file.sheet.cylinder_radius_mm.is_some() || file.surface.is_some();
    if file.measure_change && (needle.is_some() || is_bent) {
        problems.push(
            "`measure_change` works only for pens on a flat sheet. Leave it out, and calibrate each tool with `steadyhand calibrate tool`".to_owned(),
        );
    }
    let changes_in_pose = file
        .poses
        .as_ref()
        .is_some_and(|poses| poses.change_rad.is_some());
    if changes_in_pose && is_all_mounted {
        problems.push(only_by_hand("poses.change_rad"));
    }
}

/// A design on its sheet.
#[derive(Default)]
struct PlacedDesign {
    strokes: Vec<SheetStroke>,
    /// For each stroke whether the author named its pen.
    is_pen_named: Vec<bool>,
    join_mm: f64,
    /// Notes on what is left out.
    notes: Vec<String>,
    page: ScenePage,
    /// Strokes that do not fit the sheet.
    outside: Option<DesignOverflow>,
}

/// Places the page on the sheet and assigns a pen to each stroke.
fn place(
    file: &SceneFile,
    parts: &SceneParts,
    surface: &Surface,
    pens: &[ScenePen],
    problems: &mut Vec<String>,
) -> Result<PlacedDesign, SceneFault> {
    let design = &parts.design;
    let sheet_mm = surface.size_mm();
    let page = PageOnSheet::new(&file.design, design, parts.sheet(file, sheet_mm))?;
    let replacement = parts.replacement.as_deref();
    let tidying = LineTidying::of(&file.design, replacement)?;
    let mut filter = PenFilter::of(replacement, pens)?;
    let (mut point_count, mut kept_points) = (0, 0);
    let (mut strokes, mut is_pen_named) = (Vec::new(), Vec::new());
    let (mut overflow, mut unassigned) = <(OverflowCollector, UnassignedStrokes)>::default();
    let (mut pause, mut pauses, mut drawn) = (None, DrawnPauses::default(), None);
    let (mut colours, mut widest_mm) = (ColourChanges::default(), 0.0_f64);
    let mut due = PauseCounter::of(replacement, &file.limits)?;
    for stroke in &design.strokes {
        pause = DrawingPause::of(stroke, pause);
        due.begin_at(stroke);
        let Some(pen) = filter.pen_of(stroke, pens) else {
            continue;
        };
        pauses.add(pause.as_ref());
        drawn = including(drawn, &stroke.points_mm);
        let points = stroke.points_mm.iter().map(|p| page.apply(*p));
        let points_mm = points.map(|p| snap_to_edge(p, sheet_mm)).collect();
        let points_mm = tidying.begun(tidying.simplified(points_mm), strokes.len());
        point_count += stroke.points_mm.len();
        kept_points += points_mm.len();
        let scene_pen = pen.as_ref().ok().and_then(|pen| pens.get(*pen));
        widest_mm = scene_pen.map_or(widest_mm, |pen| widest_mm.max(pen.width_mm));
        if let Some(pen) = scene_pen.filter(|_| !filter.is_one_pen()) {
            colours.add(stroke, pen);
        }
        let is_outside = overflow.add(&points_mm, &stroke.source, scene_pen, sheet_mm);
        match pen {
            Ok(pen) if !is_outside => {
                let placed = due.placed(stroke, pen, points_mm, &mut pause, &mut pauses);
                strokes.extend(placed);
                is_pen_named.resize(strokes.len(), filter.is_pen_named(stroke));
            }
            Ok(_) => {}
            Err(fault) => unassigned.add(&stroke.source, fault),
        }
    }
    problems.extend(filter.only_paper(design.strokes.len()));
    problems.extend(unassigned.into_messages(parts.words));
    let capital_mm = design.capital_mm.map(|mm| page.scaled_mm(mm));
    let page = page.page(&file.design, design, drawn, parts.size_from);
    let mut notes: Vec<String> = pauses.notes().chain(filter.notes()).collect();
    notes.extend(tidying.note(point_count, kept_points));
    let small_letters = capital_mm.and_then(|mm| small_letters_note(mm, widest_mm));
    notes.extend(colours.note().into_iter().chain(small_letters));
    let outside = overflow.finish(sheet_mm, design.strokes.len(), || OverflowPlacement {
        notes: design.notes.iter().chain(&notes).cloned().collect(),
        ..overflow_placement(file, parts, sheet_mm, page)
    });
    Ok(PlacedDesign {
        strokes,
        is_pen_named,
        join_mm: tidying.join_mm,
        notes,
        page,
        outside,
    })
}

/// Returns where a design lies that goes beyond its sheet, without its notes.
fn overflow_placement(
    file: &SceneFile,
    parts: &SceneParts,
    sheet_mm: [f64; 2],
    page: ScenePage,
) -> OverflowPlacement {
    let sheet = parts.sheet(file, sheet_mm);
    let fits_mm = |design: &_| fitting_size_mm(design, &parts.design, sheet, false);
    OverflowPlacement {
        title: super::scene_title(
            &file.name,
            parts.overlay.as_deref(),
            parts.drawing().as_deref(),
        ),
        page,
        fits_mm: fits_mm(&file.design),
        fits_centred_mm: fits_mm(&DesignFile {
            at_mm: None,
            ..file.design.clone()
        }),
        margin_mm: sheet.margin_mm,
        at_mm: file.design.at_mm.map(|at| at.map(Finite::get)),
        is_own: parts.replacement.is_none(),
        is_letter_height: file.design.size_mm.is_none() && file.design.letter_height_mm.is_some(),
        notes: Vec::new(),
    }
}

/// Least height of capitals that can be read, in widths of the line.
const CAPITAL_WIDTHS: f64 = 3.0;

/// Returns a note on letters that run together.
fn small_letters_note(capital_mm: f64, width_mm: f64) -> Option<String> {
    let least_mm = CAPITAL_WIDTHS * width_mm;
    (capital_mm < least_mm).then(|| {
        format!(
            "its capital letters are {} high; with a line {} wide they should be at least {}",
            millimetres(capital_mm, 1),
            millimetres(width_mm, 1),
            millimetres(least_mm, 1)
        )
    })
}

/// Moves a point to the sheet's edge if only rounding took it off the sheet.
fn snap_to_edge(at_mm: [f64; 2], sheet_mm: [f64; 2]) -> [f64; 2] {
    let ([x, y], [width, height]) = (at_mm, sheet_mm);
    let edge = |at: f64, side: f64| {
        let clamped = at.clamp(0.0, side);
        if (at - clamped).abs() < ROUNDING_MM {
            clamped
        } else {
            at
        }
    };
    [edge(x, width), edge(y, height)]
}

const ROUNDING_MM: f64 = 1e-6;

/// Strokes without a pen, with one message for all that request the same pen.
#[derive(Default)]
struct UnassignedStrokes(Vec<(String, SceneFault, usize)>);

impl UnassignedStrokes {
    /// Most distinct requests that are reported.
    const MAX: usize = 20;

    fn add(&mut self, source: &str, fault: SceneFault) {
        let has_room = self.0.len() < Self::MAX;
        match self.0.iter_mut().find(|(_, other, _)| *other == fault) {
            Some((.., more)) => *more += 1,
            None if has_room => self.0.push((source.to_owned(), fault, 0)),
            None => {}
        }
    }

    /// Names the choices that draw it nevertheless, where there are any.
    fn into_messages(self, words: ChoiceWords) -> impl Iterator<Item = String> {
        let way_out = words.offer(DesignChoice::ChosenPens);
        let way_out = way_out.map_or(String::new(), |offer| format!(". {NEXT}{offer}"));
        self.0
            .into_iter()
            .map(move |(source, fault, more)| match more {
                0 => format!("design: {source}: {fault}{way_out}"),
                1 => format!("design: {source} and 1 more stroke: {fault}{way_out}"),
                more => format!("design: {source} and {more} more strokes: {fault}{way_out}"),
            })
    }
}

pub(super) fn choose_pen(
    pen: Option<u16>,
    colour: Option<[u8; 3]>,
    pens: &[ScenePen],
) -> Result<usize, SceneFault> {
    if let Some(number) = pen {
        let index = usize::from(number).checked_sub(1);
        return index.filter(|index| *index < pens.len()).ok_or_else(|| {
            let pens = pens.iter().map(|pen| pen.name.clone()).collect();
            SceneFault::NoPenOfNumber { number, pens }
        });
    }
    let Some(colour) = colour else { return Ok(0) };
    let pens = pens.iter().enumerate();
    let nearest = pens.min_by_key(|(_, pen)| pen.distance_squared(colour));
    Ok(nearest.map_or(0, |(index, _)| index))
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a failing test may panic")]
mod tests {
    use super::*;

    #[test]
    fn lengths_in_millimetres_are_refused_by_their_keys() {
        let metres = |text: &str| -> [Finite; 3] {
            let file: toml::Table = toml::from_str(&format!("at = {text}")).unwrap();
            file.get("at").unwrap().clone().try_into().unwrap()
        };
        let near = metres("[-0.3, -0.3, -0.003]");
        let read_workspace = |max_m| workspace(&CornersFile { min_m: near, max_m });
        let read_lamp = |min_m, max_m| {
            let name = "lamp".to_owned();
            keep_out(&BoxFile { name, min_m, max_m })
        };
        let workspace_in_mm = read_workspace(metres("[300, 300, 300]"));
        let lamp_in_mm = read_lamp(metres("[100, -200, 0]"), metres("[150, -150, 300]"));
        let tip = near_point("pen `ink`: tip_m", metres("[0, -38.6, -10.4]"));
        for (refused, key) in [
            (
                workspace_in_mm.map(|_| ()),
                "limits.workspace: max_m is [300, 300, 300]",
            ),
            (
                lamp_in_mm.map(|_| ()),
                "keep-out `lamp` (its nearest point) is [100, -150, 0]",
            ),
            (tip.map(|_| ()), "pen `ink`: tip_m is [0, -38.6, -10.4]"),
        ] {
            let message = refused.unwrap_err().to_string();
            assert!(message.starts_with(key), "{message}");
            assert!(
                message.ends_with("from -10 to 10: lengths are in metres"),
                "{message}"
            );
        }
        assert!(read_workspace(metres("[0.3, 0.3, 0.3]")).is_ok());
        // All beyond a line.
        assert!(read_lamp(metres("[-100, 0.5, -100]"), metres("[100, 100, 100]")).is_ok());
    }

    #[test]
    fn a_hop_is_at_least_half_a_millimetre_high_and_no_higher_than_travel() {
        let read = |text: &str| heights(&toml::from_str(text).unwrap());
        for (text, lift_mm, least_mm) in [
            ("", 8.0, 2.0),
            ("lift_mm = 1.5", 1.5, 1.5),
            ("lift_least_mm = 0.5", 8.0, 0.5),
            ("lift_mm = 12\nlift_least_mm = 12", 12.0, 12.0),
        ] {
            let read = read(text).unwrap();
            let both = (read.lift_mm - lift_mm, read.lift_least_mm - least_mm);
            assert!(
                both.0.abs() < 1e-9 && both.1.abs() < 1e-9,
                "{text}: {read:?}"
            );
        }
        for (text, expected) in [
            (
                "lift_least_mm = 0.4",
                "heights.lift_least_mm is 0.4; 0.5 to 8",
            ),
            ("lift_mm = 3\nlift_least_mm = 3.1", "is 3.1; 0.5 to 3 are"),
        ] {
            let message = read(text).unwrap_err().to_string();
            assert!(message.contains(expected), "{message}");
        }
    }
}
