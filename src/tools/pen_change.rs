//! Waits for a person in the middle of a drawing, for another pen or at a pause: each part is a motion of its own, and
//! between two parts the arm waits where a hand can reach until a person has confirmed. Nothing that a model can send
//! counts as that confirmation.

use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde::{Deserialize, Serialize};
use tokio::sync::oneshot;

use super::completed_motion::CompletedMotion;
use super::job_motion::measurement;
use super::motion_job::{JobContext, JobError};
use super::plan_approval::NoDecision;
use super::{AT_REST_RAD, AttachedArm, Node, reset};
use base::lock::MutexExt;
use base::wording::{duration, next_apart, with_statement};
use call::{Refusal, refusal};
use job::DrawingPart;
use motion::DrawingDeviation;
use plan::{AttendedPart, Plan};
use scene::{DrawingPause, Order, Scene, ScenePen};

/// Time after which a job no longer waits for a person.
pub(super) const CHANGE_WITHIN: Duration = Duration::from_secs(60 * 60);

/// State of a job that waits for a pen, or at a pause.
pub(super) const WAITING: &str = "waiting_for_pen";

/// A pen or a pause that a job waits for.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
pub struct AwaitedPen {
    /// The job.
    pub job: String,
    /// The arm.
    pub arm: String,
    /// The pen's number, from 1.
    pub pen: usize,
    /// Its name.
    pub name: String,
    /// Its colour as `#rrggbb`.
    #[serde(default)]
    pub colour: String,
    /// Description: number, name and colour, or the pause, and which of the drawing's parts follows.
    pub words: String,
    /// True if the drawing only pauses: no pen has to be put in.
    #[serde(default)]
    pub is_pause: bool,
    /// True if the arm is simulated in this process, so that no hand can be at it.
    pub is_simulated: bool,
}

/// Jobs that wait for a pen.
pub(super) type PenChanges = Mutex<Vec<PenRequest>>;

impl AwaitedPen {
    /// Describes how a person lets the job go on.
    #[must_use]
    pub fn how(&self) -> String {
        continue_text(&self.job, self.is_pause)
    }
}

pub(super) struct PenRequest {
    awaited: AwaitedPen,
    arm: Arc<AttachedArm>,
    scene: Arc<Scene>,
    sender: oneshot::Sender<()>,
}

/// The pen that a person has put into an arm's holder.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct ConfirmedPen {
    name: String,
    tip_m: nalgebra::Point3<f64>,
    /// How much longer it is than its scene says, once measured.
    longer_mm: Option<f64>,
}

impl ConfirmedPen {
    fn of(pen: &ScenePen) -> Self {
        Self {
            name: pen.name.clone(),
            tip_m: pen.tip_m,
            longer_mm: None,
        }
    }

    fn matches(&self, pen: &ScenePen) -> bool {
        self.name == pen.name && self.tip_m == pen.tip_m
    }
}

impl AttachedArm {
    /// Returns a scene with the confirmed pen in the holder, if its pens are changed by hand.
    pub(super) fn with_confirmed_pen(&self, scene: &Arc<Scene>) -> Arc<Scene> {
        if !scene.holder.is_by_hand() {
            return Arc::clone(scene);
        }
        let confirmed = self.pen.locked();
        let matches = |pen: &ScenePen| confirmed.as_ref().is_some_and(|held| held.matches(pen));
        let longer_mm = confirmed.as_ref().and_then(|pen| pen.longer_mm);
        match (scene.pens.iter().position(matches), longer_mm) {
            (Some(pen), None) => scene.with_mounted(pen),
            (Some(pen), Some(longer_mm)) => {
                Arc::new(scene.holding(pen).with_longer_pen(pen, longer_mm))
            }
            (None, _) => Arc::new(scene.without_mounted()),
        }
    }

    /// Returns whether the pen in the holder was measured.
    pub(super) fn is_pen_measured(&self) -> bool {
        let confirmed = self.pen.locked();
        confirmed
            .as_ref()
            .is_some_and(|pen| pen.longer_mm.is_some())
    }

    /// Remembers the length of the pen in the holder, until another is put in.
    pub(super) fn keep_pen_measurement(&self, longer_mm: f64) {
        if let Some(pen) = self.pen.locked().as_mut() {
            pen.longer_mm = Some(longer_mm);
        }
    }

    /// Remembers which pen is in the holder, if pens are changed by hand; a simulated arm takes the pen.
    pub(super) fn take_pen(&self, scene: &Scene, pen: Option<usize>) {
        if !scene.holder.is_by_hand() {
            return;
        }
        let named = pen.and_then(|pen| scene.pen(pen));
        *self.pen.locked() = named.map(ConfirmedPen::of);
        if let Some(workcell) = &self.workcell {
            workcell.hold_pen(pen);
            self.photo_cache.invalidate();
        }
    }
}

impl Node {
    /// Returns the pens that jobs wait for.
    #[must_use]
    pub fn awaited_pens(&self) -> Vec<AwaitedPen> {
        let requests = self.pen_changes.locked();
        requests.iter().map(|one| one.awaited.clone()).collect()
    }

    /// Confirms for a person that the pen of this number, from 1, is in the holder; the job goes on at once.
    ///
    /// # Errors
    /// No such job waits, it waits for another pen, or motion is not enabled any more; it then keeps waiting.
    pub fn confirm_pen(&self, job: &str, pen: usize) -> Result<String, Refusal> {
        let waiting = self.pen_changes.locked();
        let arm = Arc::clone(&find_request(&waiting, job, pen)?.1.arm);
        drop(waiting);
        // Reads the arm's file, so the lock is not held: a call that lists the pens must not wait for the disk.
        super::check_zeros_after_wait(self, &arm)
            .map_err(|error| Refusal::new(with_statement(error, &waiting_text(job))))?;
        let mut requests = self.pen_changes.locked();
        let (index, request) = find_request(&requests, job, pen)?;
        let words = request.awaited.words.clone();
        let now = arm.motion.clock().now();
        arm.permits()
            .confirm_pen_change(&request.scene, now)
            .map_err(|denied| {
                let denied = with_statement(denied, &waiting_text(job));
                match out_of_wait(self, request) {
                    Some(way_out) => {
                        // The reset that it asks for must wait.
                        refusal!("{}. {way_out}", next_apart(&denied).0)
                    }
                    None => refusal!("{denied}, then confirm {words} again"),
                }
            })?;
        let request = requests.swap_remove(index);
        if request.sender.send(()).is_err() {
            request.arm.permits().give_up_pen_change();
            return Err(refusal!("{job} no longer waits. Nothing moved"));
        }
        Ok(match request.awaited.is_pause {
            true => format!("{job} continues: keep your hands away"),
            false => format!("{job} continues with {words}: keep your hands away"),
        })
    }

    /// Says how an operator ends a job's wait for a person whose arm needs a reset, which it cannot have meanwhile.
    pub(super) fn way_out_of_wait(&self, job: &str) -> Option<String> {
        let requests = self.pen_changes.locked();
        let request = requests.iter().find(|one| one.awaited.job == job)?;
        out_of_wait(self, request)
    }
}

/// Returns [`Node::way_out_of_wait`] of a request; `None` if its arm needs no reset.
fn out_of_wait(node: &Node, request: &PenRequest) -> Option<String> {
    request.arm.permits().latched()?;
    let commands = reset::commands_after_wait(node, &request.arm, &request.scene);
    let option = node.arm_option(&request.arm);
    Some(format!(
        "The arm needs a reset, which is not possible while {} waits. Next: {}, then `steadyhand draw --resume{option}` draws the rest",
        request.awaited.job,
        reset::as_typed(&commands).join(", then ")
    ))
}

/// States that a job still waits, whose pen was not confirmed.
fn waiting_text(job: &str) -> String {
    format!("{job} still waits, and nothing moved")
}

/// Returns the request of a job that waits for this pen, and its index.
fn find_request<'a>(
    requests: &'a [PenRequest],
    job: &str,
    pen: usize,
) -> Result<(usize, &'a PenRequest), Refusal> {
    let mut waiting = requests.iter().enumerate();
    let found = waiting.find(|(_, request)| request.awaited.job == job);
    let (index, request) =
        found.ok_or_else(|| refusal!("{job} does not wait for a pen; nothing was done"))?;
    if request.awaited.pen != pen {
        let words = &request.awaited.words;
        return Err(refusal!(
            "{job} waits for {words}, not for pen {pen}. It still waits, and nothing moved"
        ));
    }
    Ok((index, request))
}

impl JobContext {
    /// Carries out the plan of a drawing: in one motion, or part by part if it waits for a person in between.
    pub(super) async fn run_drawing(
        &self,
        scene: &Arc<Scene>,
        permit: permit::MotionPermit,
        plan: &Plan,
    ) -> Result<CompletedMotion, JobError> {
        let has_pauses = plan.strokes.iter().any(|stroke| stroke.pause.is_some());
        if !scene.holder.is_by_hand() && !has_pauses {
            return self.run(scene, permit, plan).await;
        }
        let parts = plan::attended_parts(&scene.holder, &plan.strokes);
        let mut total = CompletedMotion {
            visits: Vec::new(),
            readings: Vec::new(),
            off_rad: 0.0,
            sags: Vec::new(),
            deviation: None,
            arm_time_s: 0.0,
        };
        let mut part = DrawingPart::default();
        for (index, next) in parts.iter().enumerate() {
            let later = parts.iter().skip(index);
            part.later = later.flat_map(|part| part.strokes.clone()).collect();
            self.entry.begins_part(part.clone());
            self.job.update(|card| {
                (card.done_before, card.of) = (part.earlier.len(), plan.strokes.len());
                card.done = card.done_before;
                card.has_later_motions = true;
            });
            total.arm_time_s += self.prepare_part(scene, &parts, index).await?;
            self.measure_change(scene, next).await?;
            part.later = later_strokes(&parts, index);
            let is_last = index + 1 == parts.len();
            self.job.update(|card| card.has_later_motions = !is_last);
            self.entry.begins_part(part.clone());
            let (done, strokes) = self.draw_part(scene, next, plan.strokes.len()).await?;
            total.arm_time_s += done.arm_time_s;
            (total.off_rad, total.sags) = (done.off_rad, done.sags);
            let parts = [total.deviation.take(), done.deviation];
            total.deviation = parts
                .into_iter()
                .flatten()
                .reduce(DrawingDeviation::or_greater);
            part.earlier.extend(strokes);
        }
        Ok(total)
    }

    /// Draws the strokes of one part, whose pen is in the holder. Returns them as they were drawn.
    async fn draw_part(
        &self,
        scene: &Arc<Scene>,
        part: &AttendedPart,
        of: usize,
    ) -> Result<(CompletedMotion, Vec<scene::SheetStroke>), JobError> {
        let mounted = self.arm.with_confirmed_pen(scene);
        let (permit, strokes) = (self.ask(&mounted)?, part.strokes_after_pause());
        let plan = self
            .plan(&mounted, move |scene, start, watch| {
                plan::draw_strokes(scene, start, &strokes, Order::AsDrawn, watch)
            })
            .await?;
        self.job.update(|card| card.of = of);
        let done = self.run(scene, permit, &plan).await?;
        Ok((done, plan.strokes))
    }

    /// Prepares the next part: if its pen is not known to be in the holder, or a pause comes before it, the arm goes to where
    /// a hand can reach and waits for a person. Returns the arm time of that motion.
    async fn prepare_part(
        &self,
        scene: &Arc<Scene>,
        parts: &[AttendedPart],
        index: usize,
    ) -> Result<f64, JobError> {
        let Some(part) = parts.get(index) else {
            return Ok(0.0);
        };
        let is_held = self.arm.with_confirmed_pen(scene).holder.holds(part.pen);
        if is_held && part.pause_before().is_none() {
            return Ok(0.0);
        }
        let arm_time_s = self.go_to_attended_pose(scene).await?;
        self.arm.take_pen(scene, None);
        let place = format!("{} of {}", index + 1, parts.len());
        let awaited = self.awaited(scene, part, is_held, &place);
        self.await_person(scene, part, awaited).await?;
        Ok(arm_time_s)
    }

    async fn go_to_attended_pose(&self, scene: &Arc<Scene>) -> Result<f64, JobError> {
        let start = measurement(&self.arm)?;
        let attended_rad = *scene.attended_pose_rad();
        if start.position_rad.distance_max(&attended_rad) < AT_REST_RAD {
            // It stands where a motion in this scene would have brought it: a reset must not ask which scene it stands in.
            self.arm.moved_in(scene);
            return Ok(0.0);
        }
        let mounted = self.arm.with_confirmed_pen(scene);
        let (_, done) = self
            .run_preparatory(&mounted, move |scene, start, watch| {
                plan::go_to(scene, start, &[attended_rad], watch)
            })
            .await?;
        Ok(done.arm_time_s)
    }

    /// Describes what a person has to do before a part; `is_held` says that its pen is in the holder already.
    fn awaited(
        &self,
        scene: &Scene,
        part: &AttendedPart,
        is_held: bool,
        place: &str,
    ) -> AwaitedPen {
        let named = scene.pen(part.pen);
        let named = named.map(|pen| (pen.name.clone(), pen.colour_text()));
        let (name, colour) = named.unwrap_or_default();
        let pen = format!("{}, {place}", scene.pen_words(part.pen));
        let words = match part.pause_before().map(pause_text) {
            None => pen,
            Some(pause) if is_held => format!("a person: {pause}, {place}"),
            Some(pause) => format!("{pen}; {pause}"),
        };
        AwaitedPen {
            job: self.entry.id().to_owned(),
            arm: self.arm.name.clone(),
            pen: part.pen + 1,
            name,
            colour,
            words,
            is_pause: is_held,
            is_simulated: self.arm.workcell.is_some(),
        }
    }

    /// Waits for a person to confirm that the drawing may go on. Nothing may move meanwhile.
    async fn await_person(
        &self,
        scene: &Arc<Scene>,
        part: &AttendedPart,
        awaited: AwaitedPen,
    ) -> Result<(), JobError> {
        let AwaitedPen { job, words, .. } = awaited.clone();
        self.arm
            .permits()
            .begin_pen_change(&format!("{job} waits for {words}; {}", awaited.how()));
        let (sender, answer) = oneshot::channel();
        self.job.update(|card| {
            card.state = WAITING;
            card.waits_for = Some(words.clone());
            card.pauses = awaited.is_pause;
        });
        tracing::warn!(job, "waits for {words}; {}", awaited.how());
        self.node.pen_changes.locked().push(PenRequest {
            awaited: awaited.clone(),
            arm: Arc::clone(&self.arm),
            scene: Arc::clone(scene),
            sender,
        });
        let journalled = self.entry.waits(WAITING, &format!("it waits for {words}"));
        let answered = match journalled {
            Ok(()) => self.await_confirmation(answer).await,
            Err(error) => Err(error.into()),
        };
        self.node
            .pen_changes
            .locked()
            .retain(|request| request.awaited.job != job);
        self.job.update(|card| {
            card.state = "planning";
            card.waits_for = None;
        });
        let recorded = answered.and_then(|()| self.record_confirmation(scene, part, &awaited));
        if let Err(error) = recorded {
            self.arm.permits().give_up_pen_change();
            return Err(JobError::PenNotConfirmed(format!(
                "{error} while the job waited for {words}. Motion is disabled, because a hand may be at the arm. Next: an operator enables it"
            )));
        }
        self.arm.take_pen(scene, Some(part.pen));
        // A hand was at the arm, so the sheet may have moved.
        self.has_checked_sheet.store(false, Ordering::Relaxed);
        Ok(())
    }

    /// Records in the journal what a person has confirmed.
    fn record_confirmation(
        &self,
        scene: &Scene,
        part: &AttendedPart,
        awaited: &AwaitedPen,
    ) -> Result<(), Refusal> {
        if let Some(pause) = part.pause_before() {
            self.entry.pause_ended(pause)?;
        }
        if scene.holder.is_by_hand() {
            self.entry.pen_confirmed(awaited.pen, &awaited.name)?;
        }
        Ok(())
    }

    async fn await_confirmation(&self, answer: oneshot::Receiver<()>) -> Result<(), Refusal> {
        let until = self.arm.motion.clock().now().after(CHANGE_WITHIN);
        let decision = self.await_decision(answer, until).await;
        decision.map_err(|missing| match missing {
            NoDecision::Stopped => refusal!("stopped"),
            NoDecision::TooLate => {
                refusal!("not confirmed within {}", duration(CHANGE_WITHIN))
            }
            NoDecision::GivenUp => refusal!("given up"),
        })
    }
}

/// Returns the strokes of the parts after this one, without the pause that has ended.
fn later_strokes(parts: &[AttendedPart], index: usize) -> Vec<scene::SheetStroke> {
    let ended_pause = parts.get(index).and_then(|part| part.pause.as_deref());
    let of_part = |part: &AttendedPart| match part.pause.as_deref() == ended_pause {
        true => part.strokes_after_pause(),
        false => part.strokes.clone(),
    };
    parts.iter().skip(index + 1).flat_map(of_part).collect()
}

/// Describes how a person lets a job go on that waits at a pause or for a pen.
pub(super) fn continue_text(job: &str, is_pause: bool) -> String {
    match is_pause {
        true => format!("an operator continues it with `steadyhand pen {job}`"),
        false => format!("an operator puts the pen in and confirms it with `steadyhand pen {job}`"),
    }
}

/// Describes where a drawing pauses.
fn pause_text(pause: &DrawingPause) -> String {
    format!("the drawing pauses here ({})", pause.asked_by)
}
