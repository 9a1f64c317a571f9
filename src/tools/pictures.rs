//! Pictures of plans and of ink, and where they are written.

use std::path::Path;

use nalgebra::Point3;

use super::Node;
use super::preview::{DrawingPreview, sum_up};
use super::reply::Reply;
use super::sheet_ink::InkLine;
use super::sheet_photo::FlatPicture;
use super::sheet_relief::relief;
use super::team::DrawnPart;
use base::disk;
use base::wording::{count, with_next};
use picture::{GridView, InkView, PlanView, PlannedStroke, ReachView, SheetLine, TimeStrip};
use picture::{grid_png, ink_png, plan_png, reach_png};
use plan::{Plan, ReachMap, SharedPlan, SpanKind};
use scene::{DesignOverflow, Scene, SharedScene};

/// Most points of a strip: more would not be visible.
const STRIP_POINTS: usize = 800;

/// Paints the result of a plan. Returns `None` if there is no picture; the reason is logged.
#[must_use]
pub(super) fn plan(scene: &Scene, plan: &Plan) -> Option<Vec<u8>> {
    ok_or_log(plan_png(&view(scene, plan)))
}

/// Paints a preview, with every refused part and its place in red. Returns `None` if there is no picture; the reason is
/// logged.
#[must_use]
pub fn preview(scene: &Scene, preview: &DrawingPreview) -> Option<Vec<u8>> {
    let mut view = preview.plan.as_ref().map_or_else(
        || PlanView {
            title: scene.title(),
            caption: "no part of it can be planned".to_owned(),
            sheet_mm: scene.surface.size_mm(),
            relief: relief(&scene.surface),
            ..PlanView::default()
        },
        |plan| view(scene, plan),
    );
    for item in preview.refusals.iter().filter_map(|refusal| refusal.item) {
        if let Some(stroke) = view.strokes.get_mut(item) {
            stroke.is_refused = true;
        }
    }
    let refused = preview.refused.iter().map(|stroke| PlannedStroke {
        line: line(scene, stroke.pen, stroke.points_mm.clone()),
        order: None,
        is_refused: true,
    });
    view.strokes.extend(refused);
    let marks_mm = preview.refusals.iter().filter_map(|refusal| refusal.at_mm);
    view.marks_mm = marks_mm.collect();
    match preview.refusals.len() {
        0 => {}
        1 => view.caption.push_str("; 1 refusal, red"),
        count => view.caption.push_str(&format!("; {count} refusals, red")),
    }
    ok_or_log(plan_png(&view))
}

/// Colours of the arms that share a drawing, in their order.
const ARM_COLOURS: [[u8; 3]; 2] = [[0x1f, 0x5f, 0xb4], [0xc8, 0x5a, 0x12]];

/// Returns a colour for each part of a drawing, and what the caption says of it.
fn by_arm<'a, T>(
    parts: impl Iterator<Item = (&'a Scene, T)>,
) -> impl Iterator<Item = (&'a Scene, T, [u8; 3], String)> {
    let coloured = parts.zip(ARM_COLOURS.into_iter().cycle());
    coloured.map(|((scene, part), colour)| {
        let [red, green, blue] = colour;
        let name = scene.arm_name.as_deref().unwrap_or_default();
        let legend = format!("{name} #{red:02x}{green:02x}{blue:02x}");
        (scene, part, colour, legend)
    })
}

/// Paints the plans of several arms on their sheet, each arm's lines in a colour of its own. Returns `None` if there is no
/// picture; the reason is logged.
#[must_use]
pub fn shared(shared: &SharedScene, plan: &SharedPlan) -> Option<Vec<u8>> {
    let scenes = shared.parts.iter().map(|part| &*part.scene);
    plans(scenes.zip(&plan.plans))
}

fn plans<'a>(parts: impl Iterator<Item = (&'a Scene, &'a Plan)>) -> Option<Vec<u8>> {
    let mut all = PlanView::default();
    let mut captions = Vec::new();
    for (scene, plan, colour, legend) in by_arm(parts) {
        let mut own = view(scene, plan);
        own.strokes
            .iter_mut()
            .for_each(|stroke| stroke.line.colour = colour);
        captions.push(format!("{legend}: {}", plan.report.strokes_text()));
        all.title = scene.shared_title();
        all.sheet_mm = scene.surface.size_mm();
        all.relief = relief(&scene.surface);
        all.strokes.extend(own.strokes);
        all.travels_mm.extend(own.travels_mm);
    }
    all.caption = captions.join("; ");
    ok_or_log(plan_png(&all))
}

/// Paints the plan of what was drawn, and the ink on the sheet if it is known: each in one picture, whichever number of arms drew.
pub(super) fn drawn(parts: &[DrawnPart]) -> [Option<Vec<u8>>; 2] {
    match parts {
        [] => [None, None],
        [only] => {
            let lines = only.ink.as_ref();
            let inked = lines.and_then(|lines| ink(&only.scene, lines));
            [plan(&only.scene, &only.plan), inked]
        }
        several => {
            let planned = several.iter().map(|part| (&*part.scene, &part.plan));
            [plans(planned), inks(several)]
        }
    }
}

/// Paints the ink of several arms over the design of their sheet, each arm's in a colour of its own.
fn inks(parts: &[DrawnPart]) -> Option<Vec<u8>> {
    let inked = parts
        .iter()
        .filter_map(|part| Some((&*part.scene, part.ink.as_ref()?)));
    let mut all = InkView::default();
    let mut captions = Vec::new();
    for (scene, ink, colour, legend) in by_arm(inked) {
        let lines = ink.iter().map(|(pen, points_mm)| SheetLine {
            colour,
            ..line(scene, *pen, points_mm.clone())
        });
        all.ink.extend(lines);
        captions.push(legend);
        all.title = scene.shared_title();
        all.sheet_mm = scene.surface.size_mm();
        all.relief = relief(&scene.surface);
    }
    if captions.is_empty() {
        return None;
    }
    let design = parts.iter().flat_map(|part| &part.scene.strokes);
    all.design_mm = design.map(|stroke| stroke.points_mm.clone()).collect();
    all.caption = format!(
        "ink by arm: {}; over the design in grey",
        captions.join(", ")
    );
    ok_or_log(ink_png(&all))
}

/// Paints a design that does not fit its sheet, whose sheet is white; what reaches beyond it is red.
/// Returns `None` if there is no picture; the reason is logged.
#[must_use]
pub fn outside(outside: &DesignOverflow) -> Option<Vec<u8>> {
    let [width, height] = outside.sheet_mm;
    let (right, top) = ([width, 0.0], [0.0, height]);
    let edge = [[0.0, 0.0], right, [width, height], top, [0.0, 0.0]];
    let all = outside.lines.iter().flat_map(|line| &line.points_mm);
    let corners = all.chain(&edge);
    let (low, high) = corners.fold((edge[0], edge[2]), |(low, high), [x, y]| {
        let low = [f64::min(low[0], *x), f64::min(low[1], *y)];
        (low, [f64::max(high[0], *x), f64::max(high[1], *y)])
    });
    let shifted = |[x, y]: [f64; 2]| [x - low[0], y - low[1]];
    let stroke = |points_mm: &[[f64; 2]], colour, width_mm, is_refused| PlannedStroke {
        line: SheetLine {
            points_mm: points_mm.iter().copied().map(shifted).collect(),
            colour,
            width_mm,
        },
        order: None,
        is_refused,
    };
    let lines = outside.lines.iter();
    let lines =
        lines.map(|line| stroke(&line.points_mm, line.colour, line.width_mm, line.is_outside));
    ok_or_log(plan_png(&PlanView {
        title: outside.title.clone(),
        caption: format!(
            "red: {} of {} are beyond the sheet of {width} by {height} mm",
            outside.count,
            count(outside.of, "stroke")
        ),
        sheet_mm: [high[0] - low[0], high[1] - low[1]],
        paper_mm: Some([shifted([0.0, 0.0]), shifted([width, height])]),
        strokes: lines.collect(),
        ..PlanView::default()
    }))
}

fn view(scene: &Scene, plan: &Plan) -> PlanView {
    let traces = PlanTraces::new(scene, plan);
    let cone_deg = scene.pens.iter().map(|pen| pen.cone_rad.to_degrees());
    let travel_mm_s = scene.limits.travel_mm_s;
    PlanView {
        title: scene.title(),
        caption: sum_up(&plan.report),
        sheet_mm: scene.surface.size_mm(),
        paper_mm: None,
        relief: relief(&scene.surface),
        strokes: strokes(scene, plan),
        travels_mm: traces.travels_mm,
        side_mm: traces.side_mm,
        strips: vec![
            strip("joint margin, deg", traces.margin_deg, Some(0.0)),
            strip("tilt, deg", traces.tilt_deg, cone_deg.reduce(f64::min)),
            strip("tip speed, mm/s", traces.speed_mm_s, Some(travel_mm_s)),
        ],
        marks_mm: Vec::new(),
    }
}

/// Paints the drawn ink over the design.
#[must_use]
pub fn ink(scene: &Scene, ink: &[(usize, Vec<[f64; 2]>)]) -> Option<Vec<u8>> {
    let lines = ink
        .iter()
        .map(|(pen, points_mm)| line(scene, *pen, points_mm.clone()));
    let design = scene.strokes.iter().map(|stroke| stroke.points_mm.clone());
    let view = InkView {
        title: scene.title(),
        caption: "ink, over the design in grey".to_owned(),
        sheet_mm: scene.surface.size_mm(),
        relief: relief(&scene.surface),
        design_mm: design.collect(),
        ink: lines.collect(),
    };
    ok_or_log(ink_png(&view))
}

/// Paints what lies on a sheet under a grid in millimetres: as a camera sees it, if one does.
pub(super) fn grid(scene: &Scene, ink: &[InkLine], photo: Option<&FlatPicture>) -> Option<Vec<u8>> {
    let lines = ink.iter().filter(|_| photo.is_none());
    let lines = lines.map(|(pen, points_mm)| line(scene, *pen, points_mm.clone()));
    let caption = match photo {
        Some(seen) => format!(
            "seen by camera {}, {} UTC",
            seen.camera,
            base::calendar::second(seen.at_ms)
        ),
        None => "known ink on the sheet".to_owned(),
    };
    let view = GridView {
        title: scene.name.clone(),
        caption,
        sheet_mm: scene.surface.size_mm(),
        photo: photo.map(|seen| (seen.flat.size_px(), seen.flat.rgb())),
        ink: lines.collect(),
    };
    ok_or_log(grid_png(&view))
}

/// Paints the reach of a pen around a sheet. Returns `None` if there is no picture; the reason is logged.
#[must_use]
pub fn reach(scene: &Scene, pen: usize, map: &ReachMap) -> Option<Vec<u8>> {
    let pen = scene.pen(pen)?;
    let shares = map.shares.iter().map(|(tilt, share)| {
        let percent = share * 1e2;
        format!("{percent:.0} % of the sheet within {tilt:.1} deg")
    });
    // For a rolled sheet the map holds only where the sheet lies now.
    let better = map.suggestion.as_ref().filter(|_| scene.surface.is_flat());
    let view = ReachView {
        title: format!("{}: possible places of the sheet", scene.title()),
        caption: format!(
            "{} with pen {}: tilt when pressed and when lifted",
            scene.arm.file.name, pen.name
        ),
        sheet_mm: scene.surface.size_mm(),
        step_mm: map.step_mm,
        low_mm: map.low_mm,
        size: map.size,
        tilts_deg: map.spots.iter().map(|spot| spot.tilt_deg).collect(),
        cone_deg: pen.cone_rad.to_degrees(),
        move_mm: better.map(|better| better.move_mm),
        foot_mm: Some(scene.surface.project(&Point3::origin()).at_mm),
        notes: shares.collect(),
    };
    ok_or_log(reach_png(&view))
}

fn ok_or_log(picture: Result<Vec<u8>, picture::PictureError>) -> Option<Vec<u8>> {
    picture.map_err(|error| tracing::warn!("{error}")).ok()
}

fn line(scene: &Scene, pen: usize, points_mm: Vec<[f64; 2]>) -> SheetLine {
    let pen = scene.pen(pen);
    SheetLine {
        points_mm,
        colour: pen.map_or([0; 3], |pen| pen.colour),
        width_mm: pen.map_or(0.5, |pen| pen.width_mm),
    }
}

fn strokes(scene: &Scene, plan: &Plan) -> Vec<PlannedStroke> {
    let drawn = plan.strokes.iter().enumerate();
    drawn
        .map(|(order, stroke)| PlannedStroke {
            line: line(scene, stroke.pen, stroke.points_mm.clone()),
            order: Some(order + 1),
            is_refused: false,
        })
        .collect()
}

fn strip(name: &str, samples: Vec<[f64; 2]>, limit: Option<f64>) -> TimeStrip {
    let step = samples.len().div_ceil(STRIP_POINTS).max(1);
    TimeStrip {
        name: name.to_owned(),
        samples: samples.into_iter().step_by(step).collect(),
        limit,
    }
}

/// Traces of the tip over a plan.
#[derive(Default)]
struct PlanTraces {
    travels_mm: Vec<Vec<[f64; 2]>>,
    side_mm: Vec<[f64; 2]>,
    margin_deg: Vec<[f64; 2]>,
    tilt_deg: Vec<[f64; 2]>,
    speed_mm_s: Vec<[f64; 2]>,
}

impl PlanTraces {
    fn new(scene: &Scene, plan: &Plan) -> Self {
        let mut traces = Self::default();
        let trajectory = &plan.trajectory;
        let period_s = trajectory.period.as_secs_f64();
        for span in &trajectory.spans {
            let Some(pen) = scene.pen(span.pen) else {
                continue;
            };
            let mut travel = Vec::new();
            let mut before: Option<Point3<f64>> = None;
            let samples = trajectory.reached().iter().enumerate();
            for (sample, q) in samples.take(span.end).skip(span.first) {
                let mount = scene.arm.chain.forward(q);
                let tip = mount * pen.tip_m;
                let spot = scene.surface.project(&tip);
                let lean = -(mount * pen.axis).dot(&scene.surface.at(spot.at_mm).normal);
                let at_s = sample as f64 * period_s;
                let has_begun = span.kind != SpanKind::Approach;
                // The limit is for a pen that draws.
                if span.kind == SpanKind::Draw {
                    let tilt_deg = lean.clamp(-1.0, 1.0).acos().to_degrees();
                    traces.tilt_deg.push([at_s, tilt_deg]);
                }
                let margin_deg = margin_rad(scene, q).to_degrees();
                traces.margin_deg.push([at_s, margin_deg]);
                let moved_mm = before
                    .replace(tip)
                    .map(|before| (tip - before).norm() * 1e3);
                let moved_mm = moved_mm.filter(|_| has_begun);
                traces
                    .speed_mm_s
                    .extend(moved_mm.map(|mm| [at_s, mm / period_s]));
                if has_begun {
                    traces.side_mm.push([spot.at_mm[0], spot.height_mm]);
                }
                travel.push(spot.at_mm);
            }
            if span.kind == SpanKind::Travel {
                traces.travels_mm.push(travel);
            }
        }
        traces
    }
}

fn margin_rad(scene: &Scene, q: &base::units::JointVector) -> f64 {
    let limits = &scene.arm.limits;
    let low = q.zip(&limits.lower_rad, |q, low| q - low);
    let high = limits.upper_rad.zip(q, |high, q| high - q);
    let both = low.iter().chain(high.iter()).copied();
    both.fold(f64::INFINITY, f64::min)
}

/// Number of camera pictures that are kept on the disk.
const PICTURES_KEPT: u64 = 50;

/// Files of an answer: those that were written, and what became of the others.
#[derive(Debug, Default)]
pub(super) struct WrittenFiles {
    paths: Vec<String>,
    lost: Vec<String>,
    /// The next step after the first that was lost.
    advice: Option<&'static str>,
}

/// Code of an answer whose files could not all be written, though all else was done.
pub(super) const FILES_LOST: &str = "files_not_written";

impl WrittenFiles {
    fn lost_text(&self) -> String {
        let lost = self.lost.join("; ");
        match self.advice {
            Some(advice) => with_next(lost, advice),
            None => lost,
        }
    }

    /// Adds the paths to a report of the arm under a name. A report without its pictures is still one.
    pub(super) fn add_to_report(self, field: &str, mut reply: Reply) -> Reply {
        if !self.lost.is_empty() {
            reply = reply.with_more_words(&self.lost_text());
        }
        reply.with(field, self.paths)
    }

    /// Adds the paths to an answer. One whose files are not all there is no success.
    pub(super) fn add_to(self, mut reply: Reply) -> Reply {
        if !self.lost.is_empty() {
            reply = reply.with_more_words(&self.lost_text());
            if !reply.is_error {
                reply.is_error = true;
                reply = reply.with("success", false).with("code", FILES_LOST);
            }
        }
        reply.with("files", self.paths)
    }
}

/// Writes the pictures of a `sense`, and removes old ones.
pub(super) fn write_seen(node: &Node, files: &[(&str, Option<&[u8]>)]) -> WrittenFiles {
    let number = node.number();
    let folder = |number: u64| format!("sense-{number}");
    if let Some(old) = number.checked_sub(PICTURES_KEPT) {
        // The folder does not exist if that number was a preview's or an earlier process's.
        let _ = std::fs::remove_dir_all(node.output.join(folder(old)));
    }
    write(node, &folder(number), files)
}

/// Writes the files with content into a folder of the node's output.
pub(super) fn write(node: &Node, folder: &str, files: &[(&str, Option<&[u8]>)]) -> WrittenFiles {
    let folder = node.output.join(folder);
    let mut written = WrittenFiles::default();
    for (name, bytes) in files {
        let path = folder.join(name);
        match bytes.map(|bytes| save(&path, bytes)) {
            None => {}
            Some(Ok(())) => written.paths.push(path.display().to_string()),
            Some(Err(error)) => {
                let path = path.display();
                tracing::warn!("cannot write {path}: {error}");
                let advice = disk::write_advice(&error);
                let lost = format!("{path} could not be written ({error})");
                written.lost.push(lost);
                written.advice.get_or_insert(advice);
            }
        }
    }
    written
}

fn save(path: &Path, bytes: &[u8]) -> std::io::Result<()> {
    if let Some(folder) = path.parent() {
        std::fs::create_dir_all(folder)?;
    }
    std::fs::write(path, bytes)
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a failing test may panic")]
mod tests {
    use super::*;
    use crate::preview::DrawingPreview;

    #[test]
    fn the_tilt_of_a_plan_is_shown_where_it_is_limited() {
        let library = scene::SceneLibrary::new(None);
        for name in ["default", "bottle", "a5_sheet", "two_pens"] {
            let scene = library.scene(name, None).unwrap();
            let preview = DrawingPreview::new(&scene, &scene.rest_rad, &plan::SilentObserver);
            let preview = preview.unwrap();
            let view = view(&scene, preview.plan.as_ref().unwrap());
            let tilt = view
                .strips
                .iter()
                .find(|strip| strip.name.starts_with("tilt"));
            let tilt = tilt.unwrap();
            let most = tilt.samples.iter().map(|[_, deg]| *deg).fold(0.0, f64::max);
            assert!(most <= tilt.limit.unwrap(), "{name}: {most}");
            assert!(!tilt.samples.is_empty(), "{name}");
        }
    }
}
