//! Describes a drawing to the person who is asked whether to draw it.

use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::{Deserialize, Serialize};

use super::offered_sheet::OfferedSheet;
use super::operator_drawing::{DrawingOrder, ResolvedDrawing, hindrance};
use super::placement_search::PlacementSearch;
use super::preview::DrawingPreview;
use super::preview_text::{DrawnExtent, used_pens};
use super::refusal_groups::{RefusalGroup, refusal_groups};
use super::reset::pen_text;
use super::resume::DisplacedDrawing;
use super::sheet_ink::covered_text;
use super::stroke::rounded;
use super::stroke_joining::StrokeJoining;
use super::team::StandingArms;
use super::{
    AttachedArm, Node, RemoteCallWatch, job_motion, motion_job, paper_reach, pictures,
    planner_thread,
};
use call::{Refusal, refusal};
use permit::PermitError;
use scene::{DesignOverflow, Scene, SheetStroke, SizeSource};

/// A drawing as it is shown to a person.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
pub struct DrawingOffer {
    /// The node's name.
    pub node: String,
    /// The arm's name and model.
    pub arm: String,
    /// Its port.
    pub port: String,
    /// True if a person must agree before it moves: it is not simulated in the node.
    pub is_real: bool,
    /// Orders of operators that the agreement ends; empty if none stands.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub orders: String,
    /// Number of orders that had been given before it was planned.
    #[serde(default)]
    pub orders_seen: u64,
    /// The drawing and its scene.
    pub title: String,
    /// The unfinished job that it goes on with, and how far that came.
    pub resumes: Option<String>,
    /// The scene's revision with the design in it, in hexadecimal.
    pub revision: String,
    /// The plan's hash; absent if nothing can be planned.
    pub plan: Option<String>,
    /// Longer side of the page on the sheet.
    pub size_mm: f64,
    /// Longer side of the lines that are drawn, if others of the design are left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub drawn_mm: Option<f64>,
    /// Source of that size: `asked`, `fitted`, `scene` or `file`.
    pub size_from: Option<SizeSource>,
    /// The sheet's width and height.
    pub sheet_mm: [f64; 2],
    /// Lowest and highest point of all that is drawn, on the sheet.
    pub box_mm: Option<[[f64; 2]; 2]>,
    /// Number of strokes.
    pub strokes: usize,
    /// Line to draw.
    pub pen_down_mm: f64,
    /// Time that it takes.
    pub duration_s: f64,
    /// Share of the ink that a picture is thinned to for the time that was asked for; the order that is agreed to names it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ink_percent: Option<f64>,
    /// The pens that draw, by name.
    pub pens: Vec<String>,
    /// Difference of the strokes from those of the design: joined, left out as drawn already, in another order; absent
    /// if all is drawn as its author has it.
    pub strokes_changed: Option<String>,
    /// Number of dips into ink.
    pub dips: usize,
    /// Smallest distance of any joint from its limit.
    pub margin_least_deg: f64,
    /// The joint with that distance.
    pub margin_least_joint: String,
    /// Parts of the file that are not drawn, and other notes.
    pub notes: Vec<String>,
    /// Rules that refuse it, each listed once.
    pub refusals: Vec<RefusalGroup>,
    /// The largest size that is not refused at this turn, where one was found: at this place, or in the middle of the sheet.
    pub fits_mm: Option<f64>,
    /// True if that is for the middle of the sheet, in place of the requested place.
    #[serde(default)]
    pub fits_centred: bool,
    /// A place that is not refused, where the requested one is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub moves_to_mm: Option<[f64; 2]>,
    /// Reason why it could not begin now.
    pub hindrance: Option<String>,
    /// A picture of the plan, PNG in base64.
    pub picture: Option<String>,
    /// The same as lines.
    #[serde(default)]
    pub sheet: OfferedSheet,
}

impl DrawingOffer {
    /// Plans a drawing from where its arms stand and describes it.
    pub(super) async fn of_all(
        node: &Arc<Node>,
        order: &DrawingOrder,
        mut drawings: Vec<ResolvedDrawing>,
    ) -> Result<Self, Refusal> {
        let first = drawings.first();
        if let Some(shared) = first.and_then(|first| first.scope.shared.clone()) {
            return Self::of_several(node, order, &shared, &drawings).await;
        }
        match drawings.pop() {
            Some(drawing) => Self::of(node, order, drawing).await,
            None => Err(refusal!("the scene has no arm")),
        }
    }

    /// Plans a drawing from where the arm stands and describes it.
    pub(super) async fn of(
        node: &Arc<Node>,
        order: &DrawingOrder,
        drawing: ResolvedDrawing,
    ) -> Result<Self, Refusal> {
        let (arm, scene) = (Arc::clone(&drawing.arm), Arc::clone(&drawing.scene));
        let orders_seen = arm.permits().orders_given();
        let start = job_motion::measurement(&arm)?.position_rad;
        let planned = drawing.scope.scene(&scene);
        let strokes = planned.strokes.clone();
        let resizable = order.design.clone();
        let resizable = resizable.map(|design| (Arc::clone(node), order.clone(), design));
        let watch = RemoteCallWatch::unobserved();
        let paper = order.design.as_ref().and_then(|design| design.paper);
        let standing = StandingArms::beside(node, &arm, &scene).await;
        let standing = standing.map_err(motion_job::JobError::into_refusal)?;
        let previewed = planner_thread::preview(&arm, &watch, move |watch| {
            let preview = DrawingPreview::beside(&standing, &planned, &start, watch)?;
            let reached = paper.map(|paper| paper_reach::words(paper, &planned, watch));
            let reached = reached.transpose()?;
            let resizable = resizable.filter(|_| !preview.refusals.is_empty());
            let accepted = resizable.and_then(|(node, order, design)| {
                PlacementSearch {
                    node: &node,
                    order: &order,
                    design: &design,
                    refused: &planned,
                    watch,
                }
                .find()
            });
            Ok((preview, reached, accepted.unwrap_or_default()))
        });
        let previewed = previewed.await;
        let (preview, reached, accepted) = previewed.map_err(motion_job::JobError::into_refusal)?;
        let (past, hindrance) = (&drawing.past, hindrance(node, &drawing, order.again));
        let resumes = past
            .as_ref()
            .map(|past| format!("{}: {}", past.id, past.summary()));
        let offer = Self {
            orders_seen,
            resumes,
            hindrance,
            fits_mm: accepted.fits_mm,
            fits_centred: accepted.fits_centred,
            moves_to_mm: accepted.moves_to_mm,
            ..Self::of_arm(node, &arm)
        };
        let offer = offer.with_scene(&scene, &strokes);
        let mut offer = offer.with_preview(&scene, &preview);
        offer.notes.extend(reached);
        offer.notes.extend(disabled_note(&arm, &scene));
        offer.notes.extend(pen_text(node, &arm));
        if past.is_none() {
            let displaced = DisplacedDrawing::of(node, &arm);
            let warning = displaced.map(|left| left.warning());
            let warning = warning.map(|warning| node.commands_for_arm(&arm, &warning));
            offer.notes.extend(warning);
            let strokes = preview.plan.as_ref().map(|plan| plan.strokes.as_slice());
            let covered_mm = node.covered_mm(&arm, &scene, strokes.unwrap_or_default());
            offer.notes.extend(covered_text(covered_mm, "goes"));
        }
        Ok(offer)
    }

    /// Describes a design that does not fit its sheet.
    pub(super) fn outside(node: &Node, outside: &DesignOverflow) -> Self {
        Self {
            node: node.file.name.clone(),
            title: outside.title.clone(),
            size_mm: rounded(outside.page.long_mm),
            size_from: Some(outside.page.from),
            sheet_mm: outside.sheet_mm,
            strokes: outside.of,
            notes: outside.notes.clone(),
            refusals: vec![RefusalGroup {
                rule: "outside".to_owned(),
                strokes: outside.count,
                first: Vec::new(),
                why: outside.why.clone(),
            }],
            fits_mm: outside.fits_mm.map(down_to_a_tenth),
            fits_centred: outside.fits_centred,
            moves_to_mm: outside.moves_to_mm,
            picture: pictures::outside(outside).map(|png| STANDARD.encode(png)),
            sheet: OfferedSheet::of_overflow(outside),
            ..Self::default()
        }
    }

    /// Returns the picture's bytes.
    #[must_use]
    pub fn png(&self) -> Option<Vec<u8>> {
        STANDARD.decode(self.picture.as_ref()?).ok()
    }

    pub(super) fn of_arm(node: &Node, arm: &AttachedArm) -> Self {
        let entry = node.file.arms.iter().find(|entry| entry.name == arm.name);
        Self {
            node: node.file.name.clone(),
            arm: format!("{} ({})", arm.name, arm.title()),
            port: entry.map(|entry| entry.port.clone()).unwrap_or_default(),
            is_real: arm.workcell.is_none(),
            orders: arm.permits().orders().to_string(),
            ..Self::default()
        }
    }

    pub(super) fn with_scene(self, scene: &Scene, strokes: &[SheetStroke]) -> Self {
        let pens = used_pens(scene, strokes).map(|(_, pen)| pen.name.clone());
        Self {
            title: scene.title(),
            revision: scene.revision.hex(),
            size_mm: rounded(scene.page.long_mm),
            drawn_mm: scene.page.drawn_mm.map(rounded),
            size_from: Some(scene.page.from),
            sheet_mm: scene.surface.size_mm(),
            box_mm: DrawnExtent::of(strokes).map(DrawnExtent::corners),
            strokes: strokes.len(),
            pens: pens.collect(),
            notes: scene.notes.clone(),
            ..self
        }
    }

    fn with_preview(mut self, scene: &Scene, preview: &DrawingPreview) -> Self {
        if let Some(plan) = &preview.plan {
            self.plan = Some(plan.hash.clone());
            // A plan that is refused lacks strokes for another reason than that they lie on others.
            let joining = StrokeJoining::of(&plan.report, self.strokes);
            self.strokes_changed = joining
                .description()
                .filter(|_| preview.refusals.is_empty());
            self.strokes = plan.report.stroke_count;
            self.pen_down_mm = rounded(plan.report.pen_down_mm);
            self.duration_s = rounded(plan.report.duration_s);
            self.dips = plan.report.dips;
            self.margin_least_deg = rounded(plan.report.margin_least_deg);
            self.margin_least_joint = plan.report.margin_least_joint.clone();
        }
        self.refusals = refusal_groups(&preview.refusals);
        self.sheet = OfferedSheet::of_preview(&scene.page, preview);
        self.picture = pictures::preview(scene, preview).map(|png| STANDARD.encode(png));
        self
    }
}

/// Returns how many orders operators had given to the arms of a drawing.
pub(super) fn orders_given(drawings: &[ResolvedDrawing]) -> u64 {
    let arms = drawings.iter().map(|drawing| &drawing.arm);
    arms.map(|arm| arm.permits().orders_given()).sum()
}

/// Says that a simulated arm, which asks nothing, is enabled for the drawing although motion is disabled; where an operator's order
/// stands, that only a person's yes ends it.
fn disabled_note(arm: &AttachedArm, scene: &Scene) -> Option<String> {
    let denied = arm.permits().ask(scene, arm.motion.clock().now()).err();
    let is_disabled = matches!(
        denied,
        Some(PermitError::NeedsEnabling { .. } | PermitError::DrawingNeedsEnabling { .. })
    );
    let is_ordered = !arm.permits().orders().is_empty();
    let note = match is_ordered {
        true => "motion is disabled by an operator's order, which ends if you answer yes",
        false => "motion is disabled; a yes enables it for this drawing only",
    };
    (arm.workcell.is_some() && is_disabled).then(|| note.to_owned())
}

/// Rounds a length down to a tenth of a millimetre, so that what fits still does.
#[must_use]
pub fn down_to_a_tenth(length_mm: f64) -> f64 {
    (length_mm * 10.0 + 1e-3).floor() / 10.0
}
