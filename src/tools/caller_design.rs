//! Designs that come with a call, and the canvas that each is for.

use std::fmt::Display;
use std::sync::Arc;

use serde_json::{Map, Value, json};

use super::AttachedArm;
use super::dispatch::{ToolContext, with_corrected_call};
use super::drawing_offer::down_to_a_tenth;
use super::motion_job::MotionJobRequest;
use super::reply::{Reply, refused};
use base::units::Finite;
use base::wording::count;
use config::CanvasApproval;
use job::{DrawingOrigin, JournalDrawing};
use permit::ActorRank;
use scene::{
    CallerDesignKind, DesignPlacement, DesignReplacement, DesignSource, Scene, SceneError,
};

/// Parameters that carry a design.
const DESIGN_KEYS: [&str; 2] = ["text", "svg"];

/// Parameters of a design's placement.
const PLACE_KEYS: [&str; 2] = ["size_mm", "at_mm"];

/// File name under which an SVG is read.
const SVG_NAME: &str = "design.svg";

/// A scene to draw in, with the caller's design on it where the call brings one.
pub(super) struct CallScene {
    pub(super) scene: Arc<Scene>,
    design: Option<DesignReplacement>,
}

impl CallScene {
    /// Keeps the design with the job that draws it.
    pub(super) fn note_in(
        &self,
        ctx: &ToolContext<'_>,
        call: &mut MotionJobRequest,
    ) -> Result<(), Box<Reply>> {
        let Some(design) = &self.design else {
            return Ok(());
        };
        let toml = design.to_toml();
        let toml = toml.map_err(|error| not_drawn("design_refused", error))?;
        let words = match &design.source {
            DesignSource::Text { text, .. } => Some(text.clone()),
            DesignSource::Files(_) => None,
        };
        call.accepted.understood = Value::Object(self.understood(ctx)).to_string();
        call.accepted.drawing = Some(JournalDrawing {
            label: design.label(),
            design: toml,
            words,
            origin: DrawingOrigin::Caller,
        });
        Ok(())
    }

    /// Returns the arguments as they are used: with the intended canvas, and without the text of an SVG.
    pub(super) fn understood(&self, ctx: &ToolContext<'_>) -> Map<String, Value> {
        let canvas = self.design.is_some().then_some(self.scene.name.as_str());
        ctx.understood_on(canvas)
    }
}

impl ToolContext<'_> {
    /// Returns the arguments as they are used, with the canvas if there is one.
    fn understood_on(&self, canvas: Option<&str>) -> Map<String, Value> {
        let mut understood = self.reading.understood.clone();
        if let Some(canvas) = canvas {
            understood.insert("scene".to_owned(), canvas.into());
        }
        if let Some(Value::String(svg)) = understood.get_mut("svg") {
            *svg = format!("<an SVG of {}>", count(svg.len(), "byte"));
        }
        understood
    }

    /// Returns the arguments of a call whose design cannot be drawn: with the intended canvas, and without a defaulted scene.
    pub(super) fn understood_undrawable(&self) -> Map<String, Value> {
        let Ok(Some((kind, _))) = self.design() else {
            return self.understood_on(None);
        };
        let canvas = self.canvas_name(kind).ok();
        let mut understood = self.understood_on(canvas.as_deref());
        if canvas.is_none() && !self.reading.given.contains_key("scene") {
            understood.shift_remove("scene");
        }
        understood
    }

    /// Returns the scene that a drawing is in.
    pub(super) fn drawing_scene(&self, arm: &AttachedArm) -> Result<CallScene, Box<Reply>> {
        match self.design()? {
            Some((kind, design)) => self.on_canvas(arm, kind, design),
            None => self.without_design(arm),
        }
    }

    /// Refuses a design in a call that resumes another drawing.
    pub(super) fn check_resume_without_design(&self) -> Result<(), Box<Reply>> {
        let given = &self.reading.given;
        let keys = DESIGN_KEYS.into_iter().chain(PLACE_KEYS);
        let sent: Vec<&str> = keys.filter(|key| given.contains_key(*key)).collect();
        if sent.is_empty() {
            return Ok(());
        }
        let reason = format!(
            "`resume` goes on with the drawing that was left, and {} would begin another: send one of them",
            sent.join(" and ")
        );
        Err(not_drawn("resume_differs", reason))
    }

    fn without_design(&self, arm: &AttachedArm) -> Result<CallScene, Box<Reply>> {
        let given = &self.reading.given;
        if let Some(key) = PLACE_KEYS.iter().find(|key| given.contains_key(**key)) {
            let mut call = given.clone();
            call.retain(|key, _| !PLACE_KEYS.contains(&key.as_str()));
            let reason = format!(
                "`{key}` is of a design that comes as `text` or `svg`, and this call has none"
            );
            return Err(with_correction(*not_drawn("no_design", reason), call));
        }
        let scene = self.scene(arm)?;
        if scene.canvas.is_some() {
            let name = &scene.name;
            let reason = format!(
                "scene `{name}` is a canvas and has no design of its own: send what is to be drawn as `text` or `svg`, such as stroke {{\"scene\":\"{name}\",\"text\":\"hello\"}}"
            );
            return Err(not_drawn("no_design", reason));
        }
        Ok(CallScene {
            scene,
            design: None,
        })
    }

    fn on_canvas(
        &self,
        arm: &AttachedArm,
        kind: CallerDesignKind,
        design: DesignReplacement,
    ) -> Result<CallScene, Box<Reply>> {
        let name = self.canvas_name(kind)?;
        let library = self.node.scenes.with_design_of_caller(design.clone());
        let built = library.scene(&name, self.text("meta"));
        let scene = built.map_err(|error| self.not_drawable(&error))?;
        self.check_draws(arm, &scene)
            .map_err(|refused| refused.with("moved", false).boxed())?;
        let takes = scene.canvas.iter().flat_map(|canvas| &canvas.takes);
        if !takes.clone().any(|taken| *taken == kind) {
            let takes: Vec<&str> = takes.map(|taken| taken.word()).collect();
            let (takes, sent) = (takes.join(" and "), kind.word());
            let reason = format!("canvas `{name}` takes {takes}, and not {sent}");
            return Err(not_drawn("no_design", reason));
        }
        Ok(CallScene {
            scene,
            design: Some(design),
        })
    }

    /// Returns the name of the intended canvas.
    fn canvas_name(&self, kind: CallerDesignKind) -> Result<String, Box<Reply>> {
        let names = self.node.all_names();
        let canvases = &names.canvases;
        let named = self.reading.given.get("scene").and_then(Value::as_str);
        match (named, canvases.as_slice()) {
            (Some(named), all) if all.iter().any(|one| one == named) => Ok(named.to_owned()),
            (None, [only]) => Ok(only.clone()),
            (Some(named), all) => {
                let reason = format!(
                    "scene `{named}` draws its own design, and `{}` is drawn on a canvas: {}; without it stroke {{\"scene\":\"{named}\"}} draws the scene",
                    kind.word(),
                    all.join(", ")
                );
                let refusal = not_drawn("no_canvas", reason);
                let [only] = all else {
                    return Err(refusal);
                };
                let mut call = self.reading.given.clone();
                call.insert("scene".to_owned(), only.as_str().into());
                Err(with_correction(*refusal, call))
            }
            (None, all) => {
                let reason = format!("say on which canvas, as `scene`: {}", all.join(", "));
                Err(not_drawn("no_canvas", reason))
            }
        }
    }

    /// Reads the design that the call brings.
    fn design(&self) -> Result<Option<(CallerDesignKind, DesignReplacement)>, Box<Reply>> {
        let (kind, design) = match (self.data("text"), self.data("svg")) {
            (None, None) => return Ok(None),
            (Some(text), None) => (CallerDesignKind::Text, DesignReplacement::from_text(text)),
            (None, Some(svg)) => {
                let file = (SVG_NAME.to_owned(), svg.as_bytes().to_vec());
                let design = DesignReplacement::from_files(vec![file]);
                (CallerDesignKind::Svg, design)
            }
            (Some(_), Some(_)) => {
                let reason = "`text` and `svg` are two designs: send one of them";
                return Err(not_drawn("arguments_refused", reason));
            }
        };
        let design = DesignReplacement {
            placement: self.placement(),
            ..design
        };
        Ok(Some((kind, design)))
    }

    /// Returns a text argument exactly as it was sent.
    fn data(&self, name: &str) -> Option<&str> {
        self.reading.given.get(name).and_then(Value::as_str)
    }

    fn placement(&self) -> DesignPlacement {
        let given = &self.reading.given;
        let length = |value: &Value| value.as_f64().and_then(|mm| Finite::new(mm).ok());
        let point = given.get("at_mm").and_then(Value::as_array);
        let at_mm = point.and_then(|point| match point.as_slice() {
            [x, y] => Some([length(x)?, length(y)?]),
            _ => None,
        });
        DesignPlacement {
            size_mm: given.get("size_mm").and_then(length),
            at_mm,
            ..DesignPlacement::default()
        }
    }

    /// Refuses a design that cannot be drawn on its canvas, with a size that fits if there is one.
    fn not_drawable(&self, error: &SceneError) -> Box<Reply> {
        let refusal = not_drawn("design_refused", error);
        // The largest size that fits.
        let fits_mm = match error {
            SceneError::Outside { outside, .. } => outside.fits_mm.map(down_to_a_tenth),
            _ => None,
        };
        let Some(fits_mm) = fits_mm.filter(|mm| *mm >= 1.0) else {
            return refusal;
        };
        let mut call = self.reading.given.clone();
        call.insert("size_mm".to_owned(), json!(fits_mm));
        with_correction(*refusal, call)
    }

    /// Refuses a design on a hardware canvas that was not previewed, if the node file requires a preview rather than a
    /// person's approval.
    pub(super) fn check_canvas_previewed(
        &self,
        arm: &AttachedArm,
        scene: &Scene,
    ) -> Result<(), Box<Reply>> {
        let is_asked = self.node.canvas_approval(arm, scene, self.request.who)
            == Some(CanvasApproval::Preview);
        if !is_asked || self.text("plan").is_some() {
            return Ok(());
        }
        Err(not_drawn(
            "needs_preview",
            "on a canvas this node draws only what was previewed: send this call with `dry_run` true, then with the `plan_hash` of its result as `plan`",
        ))
    }
}

impl super::Node {
    /// Returns the approval that a design on a canvas needs besides enabling: none on a simulated arm, and none from an operator.
    pub(super) fn canvas_approval(
        &self,
        arm: &AttachedArm,
        scene: &Scene,
        who: ActorRank,
    ) -> Option<CanvasApproval> {
        let canvas = scene.canvas.as_ref();
        let is_on_canvas = canvas.is_some_and(|canvas| canvas.design_hash.is_some());
        let is_asked = is_on_canvas && arm.workcell.is_none() && who == ActorRank::Planner;
        is_asked.then_some(self.file.canvas_approval)
    }
}

fn not_drawn(code: &str, reason: impl Display) -> Box<Reply> {
    refused(code, reason).with("moved", false).boxed()
}

/// Adds a corrected call, which moves nothing.
fn with_correction(refusal: Reply, mut call: Map<String, Value>) -> Box<Reply> {
    // The plan was for the refused design.
    call.shift_remove("plan");
    call.insert("dry_run".to_owned(), true.into());
    let call_text = Value::Object(call.clone()).to_string();
    let mut refusal = with_corrected_call(refusal, "stroke", &Value::Object(call));
    if call_text.len() <= super::preview_text::CALL_BYTES_MAX {
        refusal = refusal.with_more_words(&format!("corrected call: stroke {call_text}"));
    }
    refusal.boxed()
}
