//! The sheet of an offered drawing as lines and places, for a page that shows it and lets a person move the drawing.

use serde::{Deserialize, Serialize};

use super::preview::DrawingPreview;
use super::stroke::rounded;
use plan::Plan;
use scene::{DesignOverflow, Scene, ScenePage};

/// Most points that are sent; of larger drawings, only every n-th.
const POINTS_MAX: usize = 20_000;

/// Most places of the tip over time that are sent.
const TRACK_MAX: usize = 1_500;

/// Most places of refusals that are marked.
const PLACES_MAX: usize = 200;

/// The sheet of an offered drawing.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
pub struct OfferedSheet {
    /// Lower left corner of the drawing as it lies, turned.
    pub page_at_mm: [f64; 2],
    /// Centre of the design's page.
    #[serde(default)]
    pub page_centre_mm: [f64; 2],
    /// Width and height of the page before it is turned.
    pub page_sides_mm: [f64; 2],
    /// Turn of the page about its centre, counter-clockwise.
    pub page_turn_deg: f64,
    /// All lines that would be drawn, and all that are refused.
    pub lines: Vec<OfferedLine>,
    /// Places of the refusals.
    pub places: Vec<RefusedPlace>,
    /// The tip over time, as seconds, x, y and height in millimetres, again and again.
    #[serde(default)]
    pub track: Vec<f64>,
}

/// A line of an offered drawing.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub struct OfferedLine {
    /// True if a rule refuses it.
    pub is_refused: bool,
    /// Coordinates as x, y, x, y.
    pub xy_mm: Vec<f64>,
}

/// A place of the sheet that a rule refuses.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub struct RefusedPlace {
    /// The place.
    pub at_mm: [f64; 2],
    /// The rule's sentence.
    pub why: String,
}

impl OfferedSheet {
    /// Returns the lines of a preview with its refusals.
    pub(super) fn of_preview(page: &ScenePage, preview: &DrawingPreview) -> Self {
        let refused_items: Vec<usize> =
            preview.refusals.iter().filter_map(|one| one.item).collect();
        let planned = preview
            .plan
            .iter()
            .flat_map(|plan| &plan.strokes)
            .enumerate();
        let planned = planned.map(|(item, stroke)| (stroke, refused_items.contains(&item)));
        let refused = preview.refused.iter().map(|stroke| (stroke, true));
        let lines = planned.chain(refused);
        let lines = lines.map(|(stroke, is_refused)| (stroke.points_mm.as_slice(), is_refused));
        let places = preview.refusals.iter().filter_map(|refusal| {
            Some(RefusedPlace {
                at_mm: refusal.at_mm?.map(rounded),
                why: refusal.why.clone(),
            })
        });
        let plan = preview.plan.as_ref();
        Self {
            places: places.take(PLACES_MAX).collect(),
            track: plan.map_or_else(Vec::new, |plan| track(&preview.scene, plan)),
            ..Self::of_page(page, &lines.collect::<Vec<_>>())
        }
    }

    /// Returns the lines of a design that does not fit its sheet.
    pub(super) fn of_overflow(outside: &DesignOverflow) -> Self {
        let lines = outside.lines.iter();
        let lines = lines.map(|line| (line.points_mm.as_slice(), line.is_outside));
        Self {
            places: vec![RefusedPlace {
                at_mm: outside.at_mm.map(rounded),
                why: outside.why.clone(),
            }],
            ..Self::of_page(&outside.page, &lines.collect::<Vec<_>>())
        }
    }

    fn of_page(page: &ScenePage, lines: &[(&[[f64; 2]], bool)]) -> Self {
        let points: usize = lines.iter().map(|(points_mm, _)| points_mm.len()).sum();
        let step = points.div_ceil(POINTS_MAX).max(1);
        let lines = lines.iter().map(|(points_mm, is_refused)| OfferedLine {
            is_refused: *is_refused,
            xy_mm: every_nth(points_mm, step),
        });
        Self {
            page_at_mm: page.at_mm.map(rounded),
            page_centre_mm: page.centre_mm.map(rounded),
            page_sides_mm: page.sides_mm.map(rounded),
            page_turn_deg: page.turn_deg,
            lines: lines.collect(),
            places: Vec::new(),
            track: Vec::new(),
        }
    }
}

/// Returns where the tip is over the time of a plan.
fn track(scene: &Scene, plan: &Plan) -> Vec<f64> {
    let trajectory = &plan.trajectory;
    let samples = trajectory.reached();
    let step = samples.len().div_ceil(TRACK_MAX).max(1);
    let period_s = trajectory.period.as_secs_f64();
    let spans = trajectory.spans.iter().flat_map(|span| {
        let kept = (span.first..span.end).filter(move |at| at.is_multiple_of(step));
        kept.map(|at| (at, span.pen))
    });
    let at_time = spans.filter_map(|(at, pen)| {
        let (q_rad, pen) = (samples.get(at)?, scene.pen(pen)?);
        let tip = scene.arm.chain.forward(q_rad) * pen.tip_m;
        let spot = scene.surface.project(&tip);
        let [x, y] = spot.at_mm;
        Some([at as f64 * period_s, x, y, spot.height_mm].map(rounded))
    });
    at_time.flatten().collect()
}

/// Returns every n-th point and the last, as x, y, x, y.
fn every_nth(points_mm: &[[f64; 2]], step: usize) -> Vec<f64> {
    let last = points_mm.len().saturating_sub(1);
    let points = points_mm.iter().enumerate();
    let kept = points.filter(|(at, _)| at.is_multiple_of(step) || *at == last);
    kept.flat_map(|(_, point)| point.map(rounded)).collect()
}
