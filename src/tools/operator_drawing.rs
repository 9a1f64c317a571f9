//! A drawing that an operator asks for: shown first, then begun as an ordinary job, exactly as the operator agreed to it.

use std::fmt::Display;
use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::doubt::MotionOrder;
use super::drawing_offer::{DrawingOffer, orders_given};
use super::job_board::{JobCard, JobKey};
use super::motion_job::{MotionJobRequest, StartedJob};
use super::node::check_is_for;
use super::pen_change::CHANGE_WITHIN;
use super::reply::NOTHING_MOVED;
use super::reset::pen_clause;
use super::stroke::{self, DrawingScope};
use super::team::TeamSeat;
use super::{
    AttachedArm, Node, RemoteCallWatch, Reply, calibration_check, frame, job_scene, motion_job,
    namesake, resume, shared_drawing, sheet_check,
};
use base::units::Finite;
use base::wording::{with_next, with_statement};
use call::{ArrivalStamp, Refusal, refusal};
use job::{AcceptedJob, DrawingOrigin, JournalDrawing, PastJob};
use motion::MotionState;
use permit::{ActorRank, PermitError};
use scene::{DesignReplacement, DrawingTrim, Scene, SceneError};

/// Caller name of an operator's drawing in its journal.
pub(super) const CALLER: &str = "operator";

/// Time that a drawing stays enabled beyond twice what it is planned to take: for holds, and for `reset` after a stop.
const ENABLED_BEYOND: Duration = Duration::from_secs(15 * 60);

/// Longest time for which a drawing is enabled.
const ENABLED_MAX: Duration = Duration::from_secs(24 * 60 * 60);

/// A drawing that an operator asks for.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct DrawingOrder {
    /// The scene that says where the sheet lies and what draws. Where a drawing is gone on with, a scene or overlay that is named
    /// must be that drawing's.
    #[serde(default)]
    pub scene: Option<String>,
    /// The overlay on it.
    #[serde(default)]
    pub overlay: Option<String>,
    /// The arm, where several of the node draw the scene.
    #[serde(default)]
    pub arm: Option<String>,
    /// The design in place of the scene's own; without one, the arm's half-done drawing is resumed.
    #[serde(default)]
    pub design: Option<DesignReplacement>,
    /// The earlier job whose drawing is drawn again; the fields above that say what is drawn, and where, are then ignored.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub repeats: Option<String>,
    /// A person's correction of the pen's height and speed, for this job alone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trim: Option<DrawingTrim>,
    /// True to draw from the beginning although an interrupted drawing waits to be resumed.
    #[serde(default)]
    pub again: bool,
    /// Longest time that a picture may take: it is thinned until its plan does. What is then agreed to has its ink instead.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub minutes: Option<Finite>,
    /// True to lead the pen round the drawing's box, up, instead of drawing.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub frame: bool,
    /// True to lead it round the convex hull in place of the box.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub hull: bool,
}

/// An operator's assent to a drawing that was shown.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct DrawingAssent {
    /// The scene's revision, with the design in its place.
    pub revision: String,
    /// The hash of the only plan that may be carried out.
    pub plan: String,
    /// Time that the plan takes.
    pub duration_s: f64,
    /// Number of operators' orders that had been given when it was shown: it ends no later one.
    pub orders_seen: u64,
}

impl DrawingOrder {
    /// Refuses to resume a drawing of another scene or overlay than the one that is named.
    pub(super) fn check_same_scene(&self, past: &PastJob) -> Result<(), Refusal> {
        let named = [
            ("--scene", self.scene.as_deref(), Some(past.scene.as_str())),
            ("--meta", self.overlay.as_deref(), past.overlay()),
        ];
        let others: Vec<String> = named
            .into_iter()
            .filter(|(_, named, own)| named != own)
            .filter_map(|(option, named, _)| Some(format!("{option} {}", named?)))
            .collect();
        if others.is_empty() {
            return Ok(());
        }
        Err(refusal!(
            "{} is an unfinished drawing of {} ({}). Nothing moved. Next: leave {} out to resume it",
            past.id,
            past.scene_title(),
            past.summary(),
            others.join(" and ")
        ))
    }

    /// Returns the order without the design's bytes, as JSON for the journal.
    fn to_journal(&self) -> String {
        let design = self.design.as_ref();
        let fields = [
            ("scene", json!(self.scene)),
            ("overlay", json!(self.overlay)),
            ("arm", json!(self.arm)),
            ("design", json!(design.map(DesignReplacement::label))),
            ("placement", json!(design.map(|design| design.placement))),
            ("repeats", json!(self.repeats)),
            ("trim", json!(self.trim)),
            ("frame", json!(self.frame.then_some(true))),
            ("hull", json!(self.hull.then_some(true))),
        ];
        let fields = fields.into_iter().filter(|(_, value)| !value.is_null());
        let fields = fields.map(|(name, value)| (name.to_owned(), value));
        Value::Object(fields.collect()).to_string()
    }
}

/// A drawing with everything that its order refers to.
pub(super) struct ResolvedDrawing {
    pub(super) arm: Arc<AttachedArm>,
    pub(super) scene: Arc<Scene>,
    pub(super) scope: DrawingScope,
    /// The job that it resumes.
    pub(super) past: Option<PastJob>,
    /// The job whose drawing it draws again.
    pub(super) repeated: Option<PastJob>,
}

impl ResolvedDrawing {
    /// Returns the drawing of a scene's whole design.
    pub(super) fn new(arm: &Arc<AttachedArm>, scene: Arc<Scene>) -> Self {
        Self {
            arm: Arc::clone(arm),
            scene,
            scope: DrawingScope::default(),
            past: None,
            repeated: None,
        }
    }
}

/// Reason why an order cannot be resolved.
pub(super) enum UnresolvedDrawing {
    /// The scene cannot be built, for example because the design does not fit its sheet.
    Scene(Box<SceneError>),
    /// Any other reason, as text.
    Refused(Refusal),
}

impl From<UnresolvedDrawing> for Refusal {
    fn from(reason: UnresolvedDrawing) -> Self {
        match reason {
            UnresolvedDrawing::Scene(error) => error.into(),
            UnresolvedDrawing::Refused(reason) => reason,
        }
    }
}

impl From<Refusal> for UnresolvedDrawing {
    fn from(reason: Refusal) -> Self {
        Self::Refused(reason)
    }
}

impl From<SceneError> for UnresolvedDrawing {
    fn from(error: SceneError) -> Self {
        Self::Scene(Box::new(error))
    }
}

impl Node {
    /// Plans a drawing and describes what would be drawn, and on which arm; nothing moves.
    ///
    /// # Errors
    /// The reason why there is nothing to show.
    pub async fn offer_drawing(
        self: &Arc<Self>,
        order: &DrawingOrder,
    ) -> Result<DrawingOffer, Refusal> {
        let thinned = self.thinned(order).await?;
        let order = &thinned.order;
        match self.resolve_all(order) {
            Ok(drawings) => {
                let mut offer = DrawingOffer::of_all(self, order, drawings).await?;
                offer.ink_percent = thinned.ink_percent;
                offer.notes.extend(thinned.note);
                Ok(offer)
            }
            Err(UnresolvedDrawing::Scene(error)) => match *error {
                SceneError::Outside { outside, .. } => Ok(DrawingOffer::outside(self, &outside)),
                other => Err(other.into()),
            },
            Err(UnresolvedDrawing::Refused(reason)) => Err(reason),
        }
    }

    /// Enables a drawing that an operator agreed to, for a bounded time, and begins it. Returns the name of each arm's job.
    ///
    /// # Errors
    /// The reason why nothing was begun.
    pub async fn begin_drawing(
        self: &Arc<Self>,
        order: &DrawingOrder,
        assent: &DrawingAssent,
        arrived: &ArrivalStamp,
    ) -> Result<Vec<String>, Refusal> {
        let drawings = self.resolve_all(order)?;
        if shared_drawing::revision(&drawings) != assent.revision {
            let title = drawings.first().map(|drawing| drawing.scene.title());
            return Err(refusal!(
                "{} differs from what was shown: its scene, overlay, arm or calibration has changed. Nothing moved. Next: look at it again",
                title.unwrap_or_default()
            ));
        }
        if orders_given(&drawings) != assent.orders_seen {
            return Err(PermitError::OrderedMeanwhile.into());
        }
        let mut hindrances = drawings.iter();
        if let Some(reason) = hindrances.find_map(|one| hindrance(self, one, order.again)) {
            return Err(Refusal::new(reason));
        }
        for ResolvedDrawing { arm, scene, .. } in &drawings {
            sheet_check::check(self, arm, scene).await?;
        }
        for ResolvedDrawing { arm, scene, .. } in &drawings {
            self.enable_drawing(arm, scene, assent.duration_s, arrived)?;
        }
        let names = drawings.iter().map(|drawing| drawing.arm.name.clone());
        let seats = TeamSeat::together(names.collect());
        let mut jobs = Vec::new();
        for (drawing, seat) in drawings.into_iter().zip(seats) {
            let scope = DrawingScope {
                plan: Some(stroke::normalized_hash(&assent.plan)),
                ..drawing.scope
            };
            let drawing = ResolvedDrawing { scope, ..drawing };
            let started = self
                .start_drawing(order, drawing, seat.clone(), arrived)
                .await;
            let started = started.and_then(|started| match started {
                StartedJob::UnderWay(job) | StartedJob::DoneBefore(job) => Ok(job.card().id),
                StartedJob::Busy(reply) => Err(reply.into()),
            });
            jobs.push(started.inspect_err(|reason| seat.leave(&reason.to_string()))?);
        }
        Ok(jobs)
    }

    /// Draws a scene's own design as the first ink on its sheet, with the pens pressed less. Waits for its end.
    ///
    /// # Errors
    /// The reason why nothing was begun.
    pub async fn draw_first_ink(
        self: &Arc<Self>,
        scene: &str,
        arm: Option<&str>,
        arrived: &ArrivalStamp,
    ) -> Result<Reply, Refusal> {
        let full = self.scenes.scene(scene, None)?;
        let trim = DrawingTrim::of_first_ink(&full);
        let lighter = full.trimmed(&trim).map_err(|error| refusal!("{error}"))?;
        let drawing = ResolvedDrawing::new(self.drawing_arm(&full, arm)?, Arc::new(lighter));
        if let Some(reason) = hindrance(self, &drawing, false) {
            return Err(Refusal::new(self.text_of_arm(&drawing.arm, &reason)));
        }
        let order = DrawingOrder {
            scene: Some(scene.to_owned()),
            trim: Some(trim),
            ..DrawingOrder::default()
        };
        let arm = Arc::clone(&drawing.arm);
        sheet_check::check(self, &arm, &drawing.scene).await?;
        let alone = TeamSeat::alone();
        let started = self.start_drawing(&order, drawing, alone, arrived).await?;
        let watch = RemoteCallWatch::unobserved();
        let reply = started.wait_for_end(self, &arm, &watch).await;
        Ok(self.with_arm_name(&arm, reply))
    }

    /// Begins the job of a drawing that nothing hinders, and that a stop after `arrived` ends.
    async fn start_drawing(
        self: &Arc<Self>,
        order: &DrawingOrder,
        drawing: ResolvedDrawing,
        team: TeamSeat,
        arrived: &ArrivalStamp,
    ) -> Result<StartedJob, Refusal> {
        let call = MotionJobRequest {
            team,
            ..self.drawing_job(order, &drawing, arrived)?
        };
        let ResolvedDrawing {
            arm, scene, scope, ..
        } = drawing;
        Ok(match order.frame {
            true => {
                let outline = frame::FrameOutline::of(order.hull);
                let work = move |ctx| frame::show(ctx, scene, scope, outline);
                motion_job::start_job(self, &arm, call, work).await
            }
            false => {
                let work = move |ctx| stroke::draw(ctx, scene, scope);
                motion_job::start_job(self, &arm, call, work).await
            }
        })
    }

    /// Finds the arm and builds the scene of an order.
    pub(super) fn resolve(
        &self,
        order: &DrawingOrder,
    ) -> Result<ResolvedDrawing, UnresolvedDrawing> {
        let drawing = match (&order.repeats, &order.design) {
            (Some(job), _) => self.repeated_drawing(job)?,
            (None, Some(design)) => self.new_drawing(order, design)?,
            (None, None) => self.unfinished_drawing(order)?,
        };
        let Some(trim) = &order.trim else {
            return Ok(drawing);
        };
        let trimmed = drawing.scene.trimmed(trim);
        let trimmed = trimmed.map_err(not_moved)?;
        Ok(ResolvedDrawing {
            scene: Arc::new(trimmed),
            ..drawing
        })
    }

    fn new_drawing(
        &self,
        order: &DrawingOrder,
        design: &DesignReplacement,
    ) -> Result<ResolvedDrawing, UnresolvedDrawing> {
        let library = self.scenes.with_drawing(design.clone());
        let names = self.known_names();
        let name = order.scene.as_deref().or(names.default_scene());
        let name = name.ok_or_else(|| {
            refusal!("this node has no default scene; nothing moved. Next: name one with --scene")
        })?;
        let of_arm = order.arm.as_deref().filter(|_| library.is_shared(name));
        let part = of_arm.map(|arm| scene::part_name(name, arm));
        let scene = library.scene(part.as_deref().unwrap_or(name), order.overlay.as_deref());
        let scene = scene.map_err(|error| self.listing_own_scenes(error))?;
        let arm = self.drawing_arm(&scene, order.arm.as_deref())?;
        Ok(ResolvedDrawing::new(arm, scene))
    }

    /// Returns the whole drawing of an earlier job, in the scene as it was then.
    fn repeated_drawing(&self, id: &str) -> Result<ResolvedDrawing, Refusal> {
        let cannot = |reason: Refusal| not_moved(format!("{id} cannot be drawn again: {reason}"));
        let is_name = id.chars().all(|c| c.is_ascii_alphanumeric() || c == '-');
        let past = is_name.then(|| job::past(&self.state, id).ok()).flatten();
        let past = past.ok_or_else(|| cannot(refusal!("there is no such job")))?;
        if past.tool != "stroke" {
            return Err(cannot(refusal!("it was a {} and drew nothing", past.tool)));
        }
        if past.is_drawing_of_caller {
            return Err(cannot(refusal!(
                "it drew {} for {}, and only that caller can have it drawn again",
                past.scene_title(),
                past.caller
            )));
        }
        let arm = self.arms.iter().find(|arm| arm.name == past.arm);
        let arm = arm.ok_or_else(|| cannot(refusal!("this node has no arm {}", past.arm)))?;
        let scene = job_scene::of_job(&self.scenes, &self.state, &past).map_err(cannot)?;
        check_is_for(arm, &scene).map_err(cannot)?;
        Ok(ResolvedDrawing {
            repeated: Some(past),
            ..ResolvedDrawing::new(arm, scene)
        })
    }

    fn unfinished_drawing(&self, order: &DrawingOrder) -> Result<ResolvedDrawing, Refusal> {
        let name = order.arm.as_deref();
        let is_named = |arm: &&Arc<AttachedArm>| name.is_none_or(|name| arm.name == name);
        let remaining = self.arms.iter().filter(is_named);
        let found = self.only_unfinished(order, remaining.clone())?;
        let (arm, past) = found.ok_or_else(|| {
            // What is under way is not left yet.
            let busy = remaining.clone().find_map(|arm| busy_text(arm));
            let reason = busy.or_else(|| self.why_none_is_left(order, remaining.clone()));
            let reason = reason.unwrap_or_else(|| match name {
                Some(name) => format!("arm `{name}` has no unfinished drawing"),
                None => "there is no unfinished drawing".to_owned(),
            });
            not_moved(reason)
        })?;
        order.check_same_scene(&past)?;
        if past.is_drawing_of_caller {
            return Err(refusal!(
                "{} is an unfinished drawing of {} for {}; only that caller can resume it, with `stroke {{\"resume\":true}}`. Nothing moved",
                past.id,
                past.scene_title(),
                past.caller
            ));
        }
        let scene = resume::same_scene(self, arm, &past).map_err(|reason| {
            not_moved(with_next(
                reason,
                "restore it, or draw from the beginning with `--again`",
            ))
        })?;
        let scope = DrawingScope {
            shared: None,
            rest: Some(resume::rest_of(self, &past)),
            plan: None,
        };
        Ok(ResolvedDrawing {
            scope,
            past: Some(past),
            ..ResolvedDrawing::new(arm, scene)
        })
    }

    /// Describes what became of the last drawing of one of these arms, and what another arm of its name left half done.
    fn why_none_is_left<'a>(
        &self,
        order: &DrawingOrder,
        mut arms: impl Iterator<Item = &'a Arc<AttachedArm>> + Clone,
    ) -> Option<String> {
        let is_meant = |past: &PastJob| order.check_same_scene(past).is_ok();
        let last = arms
            .clone()
            .find_map(|arm| resume::nothing_left_text(self, arm, is_meant));
        let last = last.map(|(_, text)| text);
        let left = arms.find_map(|arm| namesake::drawing_text(self, arm));
        let parts: Vec<String> = last.into_iter().chain(left).collect();
        (!parts.is_empty()).then(|| parts.join("; "))
    }

    /// Returns what one of these arms left half done: the drawing of the order's scene, if several left one.
    fn only_unfinished<'a>(
        &self,
        order: &DrawingOrder,
        arms: impl Iterator<Item = &'a Arc<AttachedArm>>,
    ) -> Result<Option<(&'a Arc<AttachedArm>, PastJob)>, Refusal> {
        let left = arms.filter_map(|arm| Some((arm, self.job_store.unfinished(arm.key())?)));
        let mut left: Vec<_> = left.collect();
        let is_meant = |past: &PastJob| order.check_same_scene(past).is_ok();
        if left.len() > 1 && left.iter().any(|(_, past)| is_meant(past)) {
            left.retain(|(_, past)| is_meant(past));
        }
        if left.len() > 1 {
            let names: Vec<String> = left
                .iter()
                .map(|(arm, past)| format!("{} ({})", arm.name, past.scene_title()))
                .collect();
            return Err(refusal!(
                "several arms of this node have an unfinished drawing. Nothing moved. Next: name one with --arm: {}",
                names.join(", ")
            ));
        }
        Ok(left.pop())
    }

    /// Returns the one arm that draws a scene.
    fn drawing_arm(&self, scene: &Scene, name: Option<&str>) -> Result<&Arc<AttachedArm>, Refusal> {
        let arm = self.arm_for(scene, name);
        arm.map_err(not_moved)
    }

    /// Enables this revision, unless the arm is simulated in this process and may move already.
    fn enable_drawing(
        &self,
        arm: &AttachedArm,
        scene: &Scene,
        duration_s: f64,
        arrived: &ArrivalStamp,
    ) -> Result<(), Refusal> {
        let now = arm.motion.clock().now();
        if arm.workcell.is_some() && arm.permits().ask(scene, now).is_ok() {
            return Ok(());
        }
        let planned = Duration::try_from_secs_f64(duration_s * 2.0).unwrap_or(ENABLED_MAX);
        let parts = || plan::attended_parts(&scene.holder, &scene.strokes).len();
        let waits = scene.waits_for_person().then(parts).unwrap_or_default();
        let changes = u32::try_from(waits).unwrap_or(u32::MAX);
        let duration = planned
            .saturating_add(CHANGE_WITHIN.saturating_mul(changes))
            .saturating_add(ENABLED_BEYOND)
            .min(ENABLED_MAX);
        self.enable(scene, Some(&arm.name), Some(duration), arrived)?;
        arm.permits()
            .end_hold(self.stops_before(arrived, arm).orders);
        Ok(())
    }

    fn drawing_job(
        &self,
        order: &DrawingOrder,
        drawing: &ResolvedDrawing,
        arrived: &ArrivalStamp,
    ) -> Result<MotionJobRequest, Refusal> {
        let scene = &drawing.scene;
        let earlier = drawing.past.as_ref().or(drawing.repeated.as_ref());
        let journal = match (earlier, &order.design) {
            (Some(past), _) => job_scene::kept_drawing(self, past),
            (None, Some(design)) => Some(JournalDrawing {
                label: design.label(),
                design: design.to_toml()?,
                words: None,
                origin: DrawingOrigin::Operator,
            }),
            (None, None) => None,
        };
        // A frame goes on with nothing.
        let resumed = drawing.past.as_ref().filter(|_| !order.frame);
        let resumed = resumed.map(|past| (past.id.clone(), past.first_job.clone()));
        let (resumes, first_job) = resumed.unwrap_or_default();
        let tool = match order.frame {
            true => frame::FRAME,
            false => "stroke",
        };
        let accepted = AcceptedJob {
            resumes,
            first_job,
            understood: order.to_journal(),
            drawing: journal,
            ..motion_job::accepted_job(tool, &drawing.arm, scene, CALLER)
        };
        let (resumes, trim) = (&accepted.resumes, &order.trim);
        Ok(MotionJobRequest {
            scene: scene.title(),
            key: JobKey {
                work: format!("{tool} {} {resumes} {trim:?}", scene.revision),
                plan: None,
            },
            accepted,
            order: MotionOrder::Operator,
            who: ActorRank::Operator,
            again: true,
            seen_stops: self.stops_before(arrived, &drawing.arm).stops,
            arrived: arrived.clone(),
            team: TeamSeat::alone(),
        })
    }
}

/// Refuses for a reason, and says that nothing moved.
fn not_moved(reason: impl Display) -> Refusal {
    Refusal::new(with_statement(reason, NOTHING_MOVED))
}

/// Describes the job of an arm that is busy, with the commands that follow it, end it and, if it is held, resume it.
fn busy_text(arm: &AttachedArm) -> Option<String> {
    let job = arm.board.under_way()?;
    let JobCard { id, scene, .. } = job.card();
    let next = match arm.motion.snapshot().state {
        MotionState::Held => "`steadyhand continue` ends its hold".to_owned(),
        _ => format!("`steadyhand watch {id}` follows it"),
    };
    Some(format!(
        "arm {} is busy with {id} ({scene}). {next}; `steadyhand stop` ends it",
        arm.name
    ))
}

/// Returns why a drawing could not begin now, other than that nobody has enabled it.
pub(super) fn hindrance(node: &Node, drawing: &ResolvedDrawing, again: bool) -> Option<String> {
    let reason = hindrance_of_arm(node, drawing, again)?;
    Some(node.commands_for_arm(&drawing.arm, &reason))
}

fn hindrance_of_arm(node: &Node, drawing: &ResolvedDrawing, again: bool) -> Option<String> {
    let ResolvedDrawing {
        arm, scene, past, ..
    } = drawing;
    if let Some(reason) = node.motion_withheld() {
        return Some(reason.to_owned());
    }
    if let Err(refused) = calibration_check::check(node, arm, scene) {
        return Some(refused.text);
    }
    if let Some(busy) = busy_text(arm) {
        return Some(with_statement(busy, NOTHING_MOVED));
    }
    let denied = arm.permits().ask(scene, arm.motion.clock().now()).err();
    match denied {
        None
        | Some(
            PermitError::NeedsEnabling { .. }
            | PermitError::DrawingNeedsEnabling { .. }
            // The yes to the drawing ends that as well.
            | PermitError::Held(_),
        ) => {}
        Some(PermitError::Stopped(_)) => {
            return Some(
                "the arm was stopped; nothing moved. Next: `steadyhand reset`".to_owned(),
            );
        }
        Some(denied) => return Some(with_statement(denied, NOTHING_MOVED)),
    }
    let cut_short = node.job_store.interrupted(arm.key());
    let cut_short = cut_short.filter(|cut| cut.is_unfinished() && past.is_none() && !again)?;
    let unknown_paper = match cut_short.is_resumable() {
        true => String::new(),
        false => format!(", and {}", namesake::PAPER_UNKNOWN),
    };
    let reason = format!(
        "{} was drawing {} and was interrupted: {}{}{unknown_paper}. Nothing moved. With --again, this command draws its own design from the beginning",
        cut_short.id,
        cut_short.scene_title(),
        cut_short.summary(),
        pen_clause(node, arm)
    );
    Some(match cut_short.is_resumable() {
        true => with_next(reason, "`steadyhand draw --resume` resumes it"),
        false => reason,
    })
}
