//! A motion's plan in a recording: everything that readers and exports need without the program that planned it.

use serde::de::IntoDeserializer as _;
use serde::de::value::{Error, StrDeserializer};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use plan::{SpanKind, TrajectorySpan};
use tools::RecordedMotion;

/// Prefix of the attachment's name; the motion's number and `.json` follow.
pub(crate) const PLAN_ATTACHMENT: &str = "plan-";

/// A plan, as JSON.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct PlanRecord {
    /// Number of the motion in the job, counted from 1.
    pub(crate) motion: u32,
    pub(crate) job: String,
    pub(crate) tool: String,
    pub(crate) arm: String,
    pub(crate) model: String,
    pub(crate) plan_hash: String,
    pub(crate) scene: String,
    pub(crate) overlay: Option<String>,
    pub(crate) drawing: Option<String>,
    pub(crate) revision: String,
    pub(crate) period_s: f64,
    pub(crate) joints: Vec<String>,
    pub(crate) sheet_mm: [f64; 2],
    pub(crate) pens: Vec<PenRecord>,
    pub(crate) strokes: Vec<StrokeRecord>,
}

/// A pen.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct PenRecord {
    pub(crate) name: String,
    pub(crate) colour: [u8; 3],
    pub(crate) width_mm: f64,
}

/// A planned stroke, in drawing order.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct StrokeRecord {
    pub(crate) points_mm: Vec<[f64; 2]>,
    pub(crate) pen: usize,
    pub(crate) source: String,
    /// End of the samples that draw it.
    pub(crate) drawn_at: usize,
}

impl PlanRecord {
    pub(crate) fn new(motion: u32, of: &RecordedMotion) -> Self {
        let scene = &of.scene;
        let strokes = of.plan.strokes.iter().enumerate().map(|(index, stroke)| {
            let spans = of.plan.trajectory.spans.iter();
            let draws =
                |span: &&TrajectorySpan| span.kind == SpanKind::Draw && span.item == Some(index);
            StrokeRecord {
                points_mm: stroke.points_mm.clone(),
                pen: stroke.pen,
                source: stroke.source.clone(),
                drawn_at: spans.filter(draws).map(|span| span.end).max().unwrap_or(0),
            }
        });
        let pens = scene.pens.iter().map(|pen| PenRecord {
            name: pen.name.clone(),
            colour: pen.colour,
            width_mm: pen.width_mm,
        });
        Self {
            motion,
            job: of.job.clone(),
            tool: of.tool.clone(),
            arm: of.arm.clone(),
            model: scene.arm.file.name.clone(),
            plan_hash: of.plan.hash.clone(),
            scene: scene.name.clone(),
            overlay: scene.overlay.clone(),
            drawing: scene.drawing.clone(),
            revision: scene.revision.hex(),
            period_s: of.plan.trajectory.period.as_secs_f64(),
            joints: (0..scene.arm.dof())
                .map(|joint| scene.arm.joint_name(joint))
                .collect(),
            sheet_mm: scene.surface.size_mm(),
            pens: pens.collect(),
            strokes: strokes.collect(),
        }
    }
}

/// Returns the stroke to which each span of a trajectory belongs, including its approach and its lift.
pub(crate) fn stroke_spans(spans: &[TrajectorySpan]) -> Vec<Option<usize>> {
    let mut strokes = vec![None; spans.len()];
    let mut next = None;
    for (slot, span) in strokes.iter_mut().zip(spans).rev() {
        if span.kind == SpanKind::Draw {
            next = span.item;
        }
        *slot = next;
    }
    // A lift belongs to the stroke that was drawn before it.
    let mut drawn = None;
    for (slot, span) in strokes.iter_mut().zip(spans) {
        match span.kind {
            SpanKind::Draw => drawn = span.item,
            SpanKind::Lift => *slot = drawn,
            _ => {}
        }
    }
    strokes
}

/// Returns the name of a unit variant, as serde writes it.
pub(crate) fn word(value: impl Serialize) -> String {
    match serde_json::to_value(value) {
        Ok(Value::String(word)) => word,
        _ => String::new(),
    }
}

/// Parses the name of a span's kind.
pub(crate) fn span_kind(word: &str) -> Option<SpanKind> {
    let word: StrDeserializer<'_, Error> = word.into_deserializer();
    SpanKind::deserialize(word).ok()
}
