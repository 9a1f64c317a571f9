//! Designs that come with a call, and the canvas that each is for.

use std::fmt::Display;
use std::sync::Arc;

use serde_json::{Map, Value, json};

use super::AttachedArm;
use super::design_arguments::{DesignArguments, no_design_on};
use super::dispatch::{ToolContext, with_corrected_call};
use super::drawing_offer::down_to_a_tenth;
use super::motion_job::MotionJobRequest;
use super::preview_text::CALL_BYTES_MAX;
use super::reply::{Reply, refused};
use base::wording::{count, next_apart, with_next};
use catalogue::KnownNames;
use config::BeforeDrawing;
use job::{DrawingOrigin, JournalDrawing};
use permit::ActorRank;
use scene::{CallerDesignKind, DesignReplacement, DesignSource, Scene, SceneError};

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
        let drawing = JournalDrawing {
            label: design.label(),
            design: toml,
            words,
            origin: DrawingOrigin::Caller,
        };
        // The revision of a canvas does not cover the design.
        call.key.work = format!("stroke {} {}", drawing.hash_hex(), self.scene.revision);
        call.accepted.drawing = Some(drawing);
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
        let names = self.node.all_names();
        let arguments = self.design_arguments(&names);
        let Ok(Some((kind, _))) = arguments.design() else {
            return self.understood_on(None);
        };
        let canvas = arguments.canvas_name(kind).ok();
        let mut understood = self.understood_on(canvas.as_deref());
        if canvas.is_none() && !self.reading.given.contains_key("scene") {
            understood.shift_remove("scene");
        }
        understood
    }

    /// Returns the scene that a drawing is in.
    pub(super) fn drawing_scene(&self, arm: &AttachedArm) -> Result<CallScene, Box<Reply>> {
        let names = self.node.all_names();
        let arguments = self.design_arguments(&names);
        match (arguments.design()?, arguments.canvas()?) {
            (Some((kind, design)), Some(canvas)) => self.on_canvas(arm, kind, design, &canvas),
            _ => self.without_design(arm),
        }
    }

    /// Refuses a design, and the place of one, in a call that draws another: what was left, or the design of a scene.
    pub(super) fn check_design_fits(&self) -> Result<(), Box<Reply>> {
        let names = self.node.all_names();
        self.design_arguments(&names).canvas().map(drop)
    }

    fn design_arguments<'a>(&'a self, names: &'a KnownNames) -> DesignArguments<'a> {
        DesignArguments {
            given: &self.reading.given,
            canvases: &names.canvases,
        }
    }

    fn without_design(&self, arm: &AttachedArm) -> Result<CallScene, Box<Reply>> {
        let scene = self.scene(arm)?;
        if scene.canvas.is_some() {
            return Err(no_design_on(&scene.name));
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
        name: &str,
    ) -> Result<CallScene, Box<Reply>> {
        let library = self.node.scenes.with_design_of_caller(design.clone());
        let built = library.scene(name, self.text("meta"));
        let scene = built.map_err(|error| self.not_drawable(&error))?;
        self.check_draws(arm, &scene)
            .map_err(|refused| refused.with("moved", false).boxed())?;
        let takes = scene.canvas.iter().flat_map(|canvas| &canvas.takes);
        if !takes.clone().any(|taken| *taken == kind) {
            let takes: Vec<&str> = takes.map(|taken| taken.word()).collect();
            let (takes, sent) = (takes.join(", "), kind.word());
            let reason = format!("canvas `{name}` takes {takes}, not {sent}");
            return Err(not_drawn("no_design", reason));
        }
        Ok(CallScene {
            scene,
            design: Some(design),
        })
    }

    /// Refuses a design that cannot be drawn on its canvas. One that is off the sheet is offered as a preview at the nearest place,
    /// or else in the largest size, that fits the sheet.
    fn not_drawable(&self, error: &SceneError) -> Box<Reply> {
        let refusal = not_drawn("design_refused", error);
        let SceneError::Outside { outside, .. } = error else {
            return refusal;
        };
        let fits_mm = outside.fits_mm.map(down_to_a_tenth);
        let (key, value) = match (outside.moves_to_mm, fits_mm.filter(|mm| *mm >= 1.0)) {
            (Some(at_mm), _) => ("at_mm", json!(at_mm)),
            (None, Some(fits_mm)) => ("size_mm", json!(fits_mm)),
            (None, None) => return refusal,
        };
        let mut call = self.reading.given.clone();
        // The plan was for the refused design.
        call.shift_remove("plan");
        call.insert("dry_run".to_owned(), true.into());
        if outside.fits_centred {
            call.shift_remove("at_mm");
        }
        call.insert(key.to_owned(), value.clone());
        let call = Value::Object(call);
        let without_place = match outside.fits_centred {
            true => ", without `at_mm`",
            false => "",
        };
        let next = match call.to_string() {
            text if text.len() <= CALL_BYTES_MAX => format!("stroke {text}"),
            _ => format!("this call with `{key}` {value}{without_place} and `dry_run` true"),
        };
        let message = with_next(next_apart(&refusal.text).0, &next);
        (refusal.reworded(message))
            .with("next_call", json!({"tool": "stroke", "arguments": call}))
            .boxed()
    }

    /// Refuses a drawing without the plan of a preview, if the node file asks for one.
    pub(super) fn check_previewed(
        &self,
        arm: &AttachedArm,
        scene: &Scene,
    ) -> Result<(), Box<Reply>> {
        let is_asked =
            self.node.before_drawing(arm, scene, self.request.who) == BeforeDrawing::Preview;
        if !is_asked || self.text("plan").is_some() {
            return Ok(());
        }
        Err(not_drawn(
            "needs_preview",
            "this node draws only plans that it has previewed. Next: send this call with `dry_run` true, then with its result's `plan_hash` as `plan`",
        ))
    }
}

impl super::Node {
    /// Returns what must come before a planner's drawing besides enabling: the stricter of what holds for the arm and for the
    /// scene. As shipped that is a person for a caller's own design on an arm that is not simulated.
    pub(super) fn before_drawing(
        &self,
        arm: &AttachedArm,
        scene: &Scene,
        who: ActorRank,
    ) -> BeforeDrawing {
        if who != ActorRank::Planner {
            return BeforeDrawing::Nothing;
        }
        let canvas = scene.canvas.as_ref();
        let is_callers = canvas.is_some_and(|canvas| canvas.design_hash.is_some());
        let shipped = match is_callers && arm.workcell.is_none() {
            true => BeforeDrawing::Person,
            false => BeforeDrawing::Nothing,
        };
        let entry = self.file.arms.iter().find(|entry| entry.name == arm.name);
        let of_arm = entry.map_or(BeforeDrawing::Nothing, |entry| entry.before_drawing);
        of_arm.max(self.file.before_drawing.of_scene(&scene.name, shipped))
    }
}

pub(super) fn not_drawn(code: &str, reason: impl Display) -> Box<Reply> {
    refused(code, reason).with("moved", false).boxed()
}

/// Adds a corrected call, which moves nothing.
pub(super) fn with_correction(refusal: Reply, mut call: Map<String, Value>) -> Box<Reply> {
    // The plan was for the refused design.
    call.shift_remove("plan");
    call.insert("dry_run".to_owned(), true.into());
    let call_text = Value::Object(call.clone()).to_string();
    let mut refusal = with_corrected_call(refusal, "stroke", &Value::Object(call));
    if call_text.len() <= CALL_BYTES_MAX {
        let next = format!("corrected call: `stroke {call_text}`");
        let message = with_next(next_apart(&refusal.text).0, &next);
        refusal = refusal.reworded(message);
    }
    refusal.boxed()
}
