//! Camera part of `sense`: pictures with their time, their evidence of the sheet, and an overlay of the planned and the
//! drawn lines.

use std::sync::Arc;

use nalgebra::Point3;
use serde_json::{Map, Value, json};

use super::cameras::{CameraCapture, SheetEvidence, SheetObservation};
use super::dispatch::ToolContext;
use super::sheet_check::offset_text;
use super::stroke::rounded;
use super::{AttachedArm, pictures};
use job::PastJob;
use picture::{CameraOverlayView, PixelLine, seen_png};
use scene::Scene;

/// Colour of planned lines over a picture.
const PLANNED: [u8; 3] = [0, 90, 220];

/// Colour of drawn lines over a picture.
const DRAWN: [u8; 3] = [230, 80, 0];

/// A lens bends straight lines: they are drawn in pieces of this length.
const PIECE_MM: f64 = 3.0;

/// More points than this are not drawn over a picture.
const POINTS_MAX: usize = 100_000;

/// Results of all cameras.
#[derive(Default)]
pub(super) struct CameraReport {
    /// A card a camera.
    pub(super) cards: Vec<Value>,
    /// One line a camera, for a client that reads only text.
    pub(super) words: Vec<String>,
    /// Problems, one line each.
    pub(super) notes: Vec<String>,
    /// To be shown.
    pub(super) pngs: Vec<Vec<u8>>,
    /// To be kept: names and bytes.
    pub(super) files: Vec<(String, Vec<u8>)>,
}

/// Takes a picture with each camera of the order's arm. One that gives none is a note.
pub(super) async fn take(ctx: &ToolContext<'_>, arm: &Arc<AttachedArm>) -> CameraReport {
    let mut shots = CameraReport::default();
    if ctx.node.cameras_of(arm).is_empty() {
        return shots;
    }
    let scene = visible_scene(ctx, arm);
    let ink = scene.iter().flat_map(|scene| ink(ctx, arm, scene));
    let ink: Vec<Vec<[f64; 2]>> = ink.collect();
    for (name, look) in ctx.node.capture(arm, scene.as_ref()).await {
        match look {
            Ok(look) => shots.add(scene.as_deref(), &ink, look),
            Err(why) => {
                let why = String::from(why);
                shots.cards.push(json!({"name": name, "note": why}));
                shots.notes.push(why);
            }
        }
    }
    shots
}

/// Returns the scene whose sheet lies there: the requested one if it has tags, otherwise the one last laid or moved in.
/// Reads it again, because it may have been calibrated since.
fn visible_scene(ctx: &ToolContext<'_>, arm: &AttachedArm) -> Option<Arc<Scene>> {
    let read = |name: &str, overlay: Option<&str>| ctx.node.scene(arm, name, overlay).ok();
    let asked = ctx.text("scene");
    let asked = asked.and_then(|name| read(name, ctx.text("meta")));
    let known = [arm.placed_scene(), arm.last_scene()];
    let known = known.into_iter().flatten();
    let known = known.filter_map(|scene| read(&scene.name, scene.overlay.as_deref()));
    let all: Vec<Arc<Scene>> = asked.into_iter().chain(known).collect();
    let tagged = all.iter().find(|scene| scene.fiducials.is_some());
    tagged.or(all.first()).cloned()
}

impl CameraReport {
    fn add(&mut self, scene: Option<&Scene>, ink: &[Vec<[f64; 2]>], look: CameraCapture) {
        let (card, words) = card(scene, &look);
        let lines = scene.map_or_else(Vec::new, |scene| overlay(scene, ink, &look));
        let view = CameraOverlayView {
            size_px: look.frame.size_px(),
            rgb: look.frame.rgb(),
            lines,
            caption: format!("camera {}, {}", look.camera, time(look.at_ms)),
        };
        let file = |ending: &str| format!("camera-{}.{ending}", look.camera);
        match seen_png(&view) {
            Ok(png) => {
                self.files.push((file("png"), png.clone()));
                self.pngs.push(png);
            }
            Err(error) => tracing::warn!("{error}"),
        }
        let jpeg = file("jpg");
        self.files.extend(look.jpeg.map(|bytes| (jpeg, bytes)));
        self.cards.push(card);
        self.words.push(words);
    }
}

/// A moment, to the second, UTC.
fn time(at_ms: u64) -> String {
    format!("{} UTC", base::calendar::second(at_ms))
}

fn card(scene: Option<&Scene>, look: &CameraCapture) -> (Value, String) {
    let [width, height] = look.frame.size_px();
    let taken = time(look.at_ms);
    let mut card = json!({
        "name": look.camera,
        "taken_at": taken,
        "taken_at_ms": look.at_ms,
        "age_ms": rounded(look.age.as_secs_f64() * 1e3),
        "width_px": width,
        "height_px": height,
    });
    let mut words = format!("camera {}: picture of {taken}", look.camera);
    let fiducials = scene.and_then(|scene| scene.fiducials.as_ref());
    if let (Some(fiducials), Value::Object(card)) = (fiducials, &mut card) {
        if let Some(Ok(seen)) = &look.sheet {
            card.extend(seen_fields(seen));
            let (used, all) = (seen.sighting.used.len(), fiducials.layout.tags.len());
            words = format!("{words}; {used} of {all} tags");
            if let Some((_, moved)) = &seen.lies {
                let offset = offset_text(moved);
                words = format!("{words}; the sheet lies {offset} from where it was taught");
            }
        }
        let allowed = json!({"mm": fiducials.moved_mm_max, "deg": fiducials.moved_deg_max});
        card.insert("allowed".to_owned(), allowed);
        let note = match look.evidence(fiducials) {
            SheetEvidence::Lies => None,
            SheetEvidence::Nothing(why) => Some(why),
            SheetEvidence::Moved(_) => {
                Some("the sheet has moved: put it back, or call align".to_owned())
            }
        };
        if let Some(note) = note {
            words = format!("{words}; {note}");
            card.insert("note".to_owned(), note.into());
        }
    }
    (card, words)
}

fn seen_fields(seen: &SheetObservation) -> Map<String, Value> {
    let sighting = &seen.sighting;
    let mut fields = Map::from_iter([
        ("tags_seen".to_owned(), json!(sighting.used)),
        ("tags_missing".to_owned(), json!(sighting.missing)),
        ("tags_left_out".to_owned(), json!(sighting.left_out)),
        ("rms_px".to_owned(), json!(rounded(sighting.rms_px))),
        ("sigma_mm".to_owned(), json!(rounded(sighting.sigma_mm))),
        ("calibrated".to_owned(), json!(seen.eye.is_ok())),
    ]);
    if let Some((_, moved)) = &seen.lies {
        let moved = json!({
            "mm": rounded(moved.mm),
            "deg": rounded(moved.deg),
            "along_mm": moved.along_mm.map(rounded),
            "height_mm": rounded(moved.height_mm),
            "turn_deg": rounded(moved.turn_deg),
            "tilt_deg": rounded(moved.tilt_deg),
        });
        fields.insert("moved".to_owned(), moved);
    }
    fields
}

/// Returns the lines drawn of a scene, on its sheet: all ink of a simulated arm; for a real arm the lines in the
/// journal of its last drawing, and of a running drawing only the part that is certain.
fn ink(ctx: &ToolContext<'_>, arm: &AttachedArm, scene: &Scene) -> Vec<Vec<[f64; 2]>> {
    if let Some(studio) = &arm.studio {
        let laid = arm.placed_scene();
        let laid = laid.is_some_and(|laid| laid.name == scene.name);
        let ink = laid.then(|| studio.ink()).into_iter().flatten();
        return ink.map(|(_, points_mm)| points_mm).collect();
    }
    let overlay = scene.overlay.as_deref().unwrap_or_default();
    let is_on_it = |past: &PastJob| past.scene == scene.name && past.overlay == overlay;
    let job = arm.board.job().map(|job| job.card().id);
    let book = &ctx.node.book;
    book.inked_lines(&arm.name, job.as_deref(), is_on_it)
}

/// Once the camera is calibrated: the design where the arm would draw it, and the ink where it is.
fn overlay(scene: &Scene, ink: &[Vec<[f64; 2]>], look: &CameraCapture) -> Vec<PixelLine> {
    let Some(Ok(SheetObservation {
        sighting,
        eye: Ok(eye),
        ..
    })) = &look.sheet
    else {
        return Vec::new();
    };
    let planned = |at: [f64; 2]| eye.sees(&scene.surface.at(at).point_m);
    // Ink is on the sheet, wherever that lies.
    let inked = |[x, y]: [f64; 2]| {
        let at = sighting.sheet * Point3::new(x / 1e3, y / 1e3, 0.0);
        eye.lens.project(&at)
    };
    let mut left = POINTS_MAX;
    let mut lines = Vec::new();
    for stroke in &scene.strokes {
        lines.extend(pieces(&stroke.points_mm, PLANNED, planned, &mut left));
    }
    for points_mm in ink {
        lines.extend(pieces(points_mm, DRAWN, inked, &mut left));
    }
    lines
}

/// A line of the sheet in the picture, cut where it cannot be seen.
fn pieces(
    points_mm: &[[f64; 2]],
    colour: [u8; 3],
    place: impl Fn([f64; 2]) -> Option<[f64; 2]>,
    left: &mut usize,
) -> Vec<PixelLine> {
    let mut lines = Vec::new();
    let mut now = Vec::new();
    for at in finer(points_mm).take(*left) {
        *left -= 1;
        match place(at) {
            Some(px) => now.push(px),
            None if now.is_empty() => {}
            None => lines.push(std::mem::take(&mut now)),
        }
    }
    lines.push(now);
    lines.retain(|line| line.len() > 1);
    let line = |points_px| PixelLine { points_px, colour };
    lines.into_iter().map(line).collect()
}

/// The same line with points no further apart than a piece.
fn finer(points_mm: &[[f64; 2]]) -> impl Iterator<Item = [f64; 2]> {
    let pairs = points_mm.iter().zip(points_mm.iter().skip(1));
    let between = pairs.flat_map(|(a, b)| {
        let far = (b[0] - a[0]).hypot(b[1] - a[1]);
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "`as` saturates, and a length is not negative"
        )]
        let steps = (far / PIECE_MM).ceil().clamp(1.0, 1e4) as u32;
        (1..=steps).map(move |step| {
            let along = f64::from(step) / f64::from(steps);
            [a[0] + (b[0] - a[0]) * along, a[1] + (b[1] - a[1]) * along]
        })
    });
    points_mm.first().copied().into_iter().chain(between)
}

impl CameraReport {
    /// Pictures and camera files, written with the picture of the sheet; the paths of all.
    pub(super) fn write(&self, ctx: &ToolContext<'_>, sheet: Option<&[u8]>) -> Vec<String> {
        let mut all = vec![("sheet.png", sheet)];
        let own = self.files.iter();
        all.extend(own.map(|(name, bytes)| (name.as_str(), Some(bytes.as_slice()))));
        pictures::write_seen(ctx.node, &all)
    }
}
