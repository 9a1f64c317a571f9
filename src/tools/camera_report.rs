//! Camera part of `sense`: pictures with their time, their evidence of the sheet, and an overlay of the planned and the
//! drawn lines.

use std::sync::Arc;

use nalgebra::Point3;
use serde_json::{Map, Value, json};

use super::cameras::{CameraCapture, SheetEvidence, SheetObservation};
use super::dispatch::ToolContext;
use super::pictures::{self, WrittenFiles};
use super::sheet_check::{has_left_plane, offset_text};
use super::stroke::rounded;
use super::{AttachedArm, Node};
use job::PastJob;
use picture::{CameraOverlayView, PixelLine, seen_png};
use scene::Scene;

/// Colour of planned lines over a picture.
const PLANNED: [u8; 3] = [0, 90, 220];

/// Colour of drawn lines over a picture.
const DRAWN: [u8; 3] = [230, 80, 0];

/// Length of the pieces in which lines are drawn, because a lens bends straight lines.
const PIECE_MM: f64 = 3.0;

/// Most points that are drawn over a picture.
const POINTS_MAX: usize = 100_000;

/// Results of all cameras.
#[derive(Default)]
pub(super) struct CameraReport {
    /// One card per camera.
    pub(super) cards: Vec<Value>,
    /// One line per camera, for clients that read only text.
    pub(super) lines: Vec<String>,
    /// Problems, one line each.
    pub(super) notes: Vec<String>,
    /// Pictures to show.
    pub(super) pngs: Vec<Vec<u8>>,
    /// Files to keep: names and bytes.
    pub(super) files: Vec<(String, Vec<u8>)>,
}

/// Takes a picture with each camera that sees the arm's sheet. A camera that gives none becomes a note.
pub(super) async fn take(ctx: &ToolContext<'_>, arm: &Arc<AttachedArm>) -> CameraReport {
    let mut report = CameraReport::default();
    if ctx.node.cameras_of(arm).is_empty() {
        return report;
    }
    let scene = visible_scene(ctx, arm);
    let ink = scene.as_deref();
    let ink = ink.map_or_else(Vec::new, |scene| inked_lines(ctx, arm, scene));
    for (name, capture) in ctx.node.capture(arm, scene.as_ref()).await {
        match capture {
            Ok(capture) => report.add(scene.as_deref(), &ink, capture),
            Err(error) => {
                let error = String::from(error);
                report.cards.push(json!({"name": name, "note": error}));
                report.notes.push(error);
            }
        }
    }
    report
}

/// Returns the scene whose sheet lies there: the requested one if it has tags, otherwise the one last laid or moved in.
fn visible_scene(ctx: &ToolContext<'_>, arm: &AttachedArm) -> Option<Arc<Scene>> {
    let read = |name: &str| ctx.node.scene(arm, name, ctx.text("meta")).ok();
    scene_of_sheet(ctx.node, arm, ctx.text("scene").and_then(read))
}

/// Returns the first of the requested scene, the one last laid and the one last moved in that has tags, or else the first. They are
/// read again, because they may have been calibrated since.
pub(super) fn scene_of_sheet(
    node: &Node,
    arm: &AttachedArm,
    requested: Option<Arc<Scene>>,
) -> Option<Arc<Scene>> {
    let recent = [arm.placed_scene(), arm.last_scene()];
    let read = |scene: Arc<Scene>| node.scene(arm, &scene.name, scene.overlay.as_deref()).ok();
    let recent = recent.into_iter().flatten().filter_map(read);
    let candidates: Vec<Arc<Scene>> = requested.into_iter().chain(recent).collect();
    let tagged = candidates.iter().find(|scene| scene.fiducials.is_some());
    tagged.or(candidates.first()).cloned()
}

impl CameraReport {
    fn add(&mut self, scene: Option<&Scene>, ink: &[Vec<[f64; 2]>], capture: CameraCapture) {
        let (card, text) = camera_card(scene, &capture);
        let lines = scene.map_or_else(Vec::new, |scene| overlay(scene, ink, &capture));
        let view = CameraOverlayView {
            size_px: capture.frame.size_px(),
            rgb: capture.frame.rgb(),
            lines,
            caption: format!("camera {}, {}", capture.camera, time_text(capture.at_ms)),
        };
        let file = |ending: &str| format!("camera-{}.{ending}", capture.camera);
        match seen_png(&view) {
            Ok(png) => {
                self.files.push((file("png"), png.clone()));
                self.pngs.push(png);
            }
            Err(error) => tracing::warn!("{error}"),
        }
        let jpeg = file("jpg");
        self.files.extend(capture.jpeg.map(|bytes| (jpeg, bytes)));
        self.cards.push(card);
        self.lines.push(text);
    }
}

/// Formats a time to the second, in UTC.
fn time_text(at_ms: u64) -> String {
    format!("{} UTC", base::calendar::second(at_ms))
}

fn camera_card(scene: Option<&Scene>, capture: &CameraCapture) -> (Value, String) {
    let [width, height] = capture.frame.size_px();
    let taken = time_text(capture.at_ms);
    let mut card = json!({
        "name": capture.camera,
        "taken_at": taken,
        "taken_at_ms": capture.at_ms,
        "age_ms": rounded(capture.age.as_secs_f64() * 1e3),
        "width_px": width,
        "height_px": height,
    });
    let mut text = format!("camera {}: picture of {taken}", capture.camera);
    let fiducials = scene.and_then(|scene| scene.fiducials.as_ref());
    if let (Some(fiducials), Value::Object(card)) = (fiducials, &mut card) {
        if let Some(Ok(observation)) = &capture.sheet {
            card.extend(sheet_fields(observation));
            let (used_count, all) = (observation.location.used.len(), fiducials.layout.tags.len());
            text = format!("{text}; {used_count} of {all} tags");
            if let Some((_, offset)) = &observation.placement {
                let offset = offset_text(offset);
                text = format!("{text}; the sheet lies {offset} from its taught place");
            }
        }
        let allowed = json!({"mm": fiducials.moved_mm_max, "deg": fiducials.moved_deg_max});
        card.insert("allowed".to_owned(), allowed);
        let note = match capture.evidence(fiducials) {
            SheetEvidence::InPlace => None,
            SheetEvidence::Nothing(reason) => Some(reason),
            SheetEvidence::Moved(offset) if has_left_plane(fiducials, &offset) => Some(
                "the sheet seems to be out of its plane: if the camera was moved, `steadyhand calibrate camera`"
                    .to_owned(),
            ),
            SheetEvidence::Moved(_) => {
                Some("the sheet has moved: put it back, or call `align`".to_owned())
            }
        };
        if let Some(note) = note {
            text = format!("{text}; {note}");
            card.insert("note".to_owned(), note.into());
        }
    }
    (card, text)
}

fn sheet_fields(observation: &SheetObservation) -> Map<String, Value> {
    let location = &observation.location;
    let mut fields = Map::from_iter([
        ("tags_seen".to_owned(), json!(location.used)),
        ("tags_missing".to_owned(), json!(location.missing)),
        ("tags_left_out".to_owned(), json!(location.left_out)),
        ("rms_px".to_owned(), json!(rounded(location.rms_px))),
        ("sigma_mm".to_owned(), json!(rounded(location.sigma_mm))),
        ("calibrated".to_owned(), json!(observation.camera.is_ok())),
    ]);
    if let Some((_, offset)) = &observation.placement {
        let offset = json!({
            "mm": rounded(offset.mm),
            "deg": rounded(offset.deg),
            "along_mm": offset.along_mm.map(rounded),
            "height_mm": rounded(offset.height_mm),
            "turn_deg": rounded(offset.turn_deg),
            "tilt_deg": rounded(offset.tilt_deg),
        });
        fields.insert("moved".to_owned(), offset);
    }
    fields
}

/// Returns the lines drawn of a scene, on its sheet: all ink of a simulated arm; for a real arm the lines in the
/// journal of its last drawing, and of a running drawing only the part that is certain.
fn inked_lines(ctx: &ToolContext<'_>, arm: &AttachedArm, scene: &Scene) -> Vec<Vec<[f64; 2]>> {
    if let Some(workcell) = &arm.workcell {
        let placed = arm.placed_scene();
        let placed = placed.is_some_and(|placed| placed.name == scene.name);
        let ink = placed.then(|| workcell.ink()).into_iter().flatten();
        return ink.map(|(_, points_mm)| points_mm).collect();
    }
    let overlay = scene.overlay.as_deref().unwrap_or_default();
    let is_on_it = |past: &PastJob| past.scene == scene.name && past.overlay == overlay;
    let job = arm.board.job().map(|job| job.card().id);
    let job_store = &ctx.node.job_store;
    job_store.inked_lines(arm.key(), job.as_deref(), is_on_it)
}

/// Returns, once the camera is calibrated, the design where the arm would draw it and the ink where it is.
fn overlay(scene: &Scene, ink: &[Vec<[f64; 2]>], capture: &CameraCapture) -> Vec<PixelLine> {
    let Some(Ok(SheetObservation {
        location,
        camera: Ok(camera),
        ..
    })) = &capture.sheet
    else {
        return Vec::new();
    };
    let planned = |point: [f64; 2]| camera.sees(&scene.surface.at(point).point_m);
    // Ink is on the sheet, wherever that lies.
    let inked = |[x, y]: [f64; 2]| {
        let point = location.sheet * Point3::new(x / 1e3, y / 1e3, 0.0);
        camera.lens.project(&point)
    };
    let mut budget = POINTS_MAX;
    let mut lines = Vec::new();
    for stroke in &scene.strokes {
        lines.extend(pieces(&stroke.points_mm, PLANNED, planned, &mut budget));
    }
    for points_mm in ink {
        lines.extend(pieces(points_mm, DRAWN, inked, &mut budget));
    }
    lines
}

/// Projects a line of the sheet into the picture, cut where it cannot be seen.
fn pieces(
    points_mm: &[[f64; 2]],
    colour: [u8; 3],
    project: impl Fn([f64; 2]) -> Option<[f64; 2]>,
    budget: &mut usize,
) -> Vec<PixelLine> {
    let mut lines = Vec::new();
    let mut piece = Vec::new();
    for point in subdivided(points_mm).take(*budget) {
        *budget -= 1;
        match project(point) {
            Some(px) => piece.push(px),
            None if piece.is_empty() => {}
            None => lines.push(std::mem::take(&mut piece)),
        }
    }
    lines.push(piece);
    lines.retain(|line| line.len() > 1);
    let line = |points_px| PixelLine { points_px, colour };
    lines.into_iter().map(line).collect()
}

/// Returns the same line with points no farther apart than a piece.
fn subdivided(points_mm: &[[f64; 2]]) -> impl Iterator<Item = [f64; 2]> {
    let pairs = points_mm.iter().zip(points_mm.iter().skip(1));
    let between = pairs.flat_map(|(a, b)| {
        let length_mm = (b[0] - a[0]).hypot(b[1] - a[1]);
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "`as` saturates, and a length is not negative"
        )]
        let steps = (length_mm / PIECE_MM).ceil().clamp(1.0, 1e4) as u32;
        (1..=steps).map(move |step| {
            let t = f64::from(step) / f64::from(steps);
            [a[0] + (b[0] - a[0]) * t, a[1] + (b[1] - a[1]) * t]
        })
    });
    points_mm.first().copied().into_iter().chain(between)
}

impl CameraReport {
    /// Writes the pictures and camera files together with the picture of the sheet; returns all paths.
    pub(super) fn write(&self, ctx: &ToolContext<'_>, sheet: Option<&[u8]>) -> WrittenFiles {
        let mut all = vec![("sheet.png", sheet)];
        let cameras = self.files.iter();
        all.extend(cameras.map(|(name, bytes)| (name.as_str(), Some(bytes.as_slice()))));
        pictures::write_seen(ctx.node, &all)
    }
}
