//! Pens that a person changes in the middle of a drawing: each pen's part is a motion of its own, and between two of them
//! the arm waits where a hand can reach until a person has confirmed the next pen. Nothing that a model can send is that.

use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use serde::{Deserialize, Serialize};
use tokio::sync::oneshot;

use super::motion_job::{CompletedMotion, JobContext, JobError};
use super::{AT_REST_RAD, AttachedArm, Node};
use base::wording::duration;
use job::DrawingPart;
use plan::{PenPart, Plan};
use scene::{Order, Scene, ScenePen};

/// Time after which a job no longer waits for a pen.
pub(super) const CHANGE_WITHIN: Duration = Duration::from_secs(60 * 60);

/// Interval at which a waiting job checks for a stop.
const LOOK: Duration = Duration::from_millis(100);

/// State of a job that waits for a pen.
pub(super) const WAITING: &str = "waiting_for_pen";

/// A pen that a job waits for.
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
    /// All of it in words: number, name, colour, and how many of the drawing's pens come with it.
    pub words: String,
    /// True if the arm is simulated in this process, so that no hand is at it.
    pub is_simulated: bool,
}

/// Jobs that wait for a pen.
#[derive(Default)]
pub(super) struct PenChanges(Mutex<Vec<PenRequest>>);

struct PenRequest {
    awaited: AwaitedPen,
    seat: Arc<AttachedArm>,
    scene: Arc<Scene>,
    confirmed: oneshot::Sender<()>,
}

/// The pen that a person has put into an arm's holder.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct ConfirmedPen {
    name: String,
    tip_m: nalgebra::Point3<f64>,
}

impl ConfirmedPen {
    fn of(pen: &ScenePen) -> Self {
        Self {
            name: pen.name.clone(),
            tip_m: pen.tip_m,
        }
    }
}

impl PenChanges {
    fn all(&self) -> MutexGuard<'_, Vec<PenRequest>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl AttachedArm {
    /// Returns a scene with the pen in the holder that a person has confirmed, if its pens are changed by hand.
    pub(super) fn with_confirmed_pen(&self, scene: &Arc<Scene>) -> Arc<Scene> {
        if !scene.holder.is_by_hand() {
            return Arc::clone(scene);
        }
        let confirmed = self.confirmed_pen();
        let is_it = |pen: &ScenePen| Some(ConfirmedPen::of(pen)) == *confirmed;
        match scene.pens.iter().position(is_it) {
            Some(pen) => scene.with_mounted(pen),
            None => Arc::new(scene.without_mounted()),
        }
    }

    fn confirmed_pen(&self) -> MutexGuard<'_, Option<ConfirmedPen>> {
        self.pen.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Remembers which pen is in the holder; a simulated arm takes it.
    fn take_pen(&self, scene: &Scene, pen: Option<usize>) {
        let named = pen.and_then(|pen| scene.pen(pen));
        *self.confirmed_pen() = named.map(ConfirmedPen::of);
        if let Some(studio) = &self.studio {
            studio.hold_pen(pen);
            self.photograph.invalidate();
        }
    }
}

impl Node {
    /// The pens that jobs wait for.
    #[must_use]
    pub fn awaited_pens(&self) -> Vec<AwaitedPen> {
        let all = self.pen_changes.all();
        all.iter().map(|request| request.awaited.clone()).collect()
    }

    /// Confirms that the pen of this number, from 1, is in the holder: a person's word, and the job goes on at once.
    ///
    /// # Errors
    /// When no such job waits, or for another pen, or motion is not enabled any more; then it waits on.
    pub fn confirm_pen(&self, job: &str, pen: usize) -> Result<String, String> {
        let mut all = self.pen_changes.all();
        let Some(at) = all.iter().position(|request| request.awaited.job == job) else {
            return Err(format!("{job} does not wait for a pen; nothing was done"));
        };
        let request = all.get(at).ok_or("it no longer waits")?;
        let (words, seat) = (request.awaited.words.clone(), &request.seat);
        if request.awaited.pen != pen {
            return Err(format!(
                "{job} waits for {words}, not for pen {pen}; it waits on, and nothing moved"
            ));
        }
        let now = seat.motion.clock().now();
        seat.permits()
            .confirm_pen_change(&request.scene, now)
            .map_err(|denied| {
                format!("{denied}; then confirm {words} again; {job} waits on, and nothing moved")
            })?;
        let request = all.swap_remove(at);
        match request.confirmed.send(()) {
            Ok(()) => Ok(format!("{job} goes on with {words}: keep your hands away")),
            Err(()) => {
                request.seat.permits().give_up_pen_change();
                Err(format!("{job} no longer waits; nothing moved"))
            }
        }
    }
}

impl JobContext {
    /// Carries out the plan of a drawing: in one motion, or pen by pen where a person changes them.
    pub(super) async fn run_drawing(
        &self,
        scene: &Arc<Scene>,
        permit: permit::MotionPermit,
        plan: &Plan,
    ) -> Result<CompletedMotion, JobError> {
        if !scene.holder.is_by_hand() {
            return self.run(scene, permit, plan).await;
        }
        let parts = plan::pen_parts(&plan.strokes);
        let mut drawn = CompletedMotion {
            visits: Vec::new(),
            off_rad: 0.0,
            arm_time_s: 0.0,
        };
        let mut part = DrawingPart::default();
        for (turn, next) in parts.iter().enumerate() {
            let later = |from: usize| {
                let parts = parts.iter().skip(from);
                parts.flat_map(|part| part.strokes.clone()).collect()
            };
            part.later = later(turn);
            self.entry.begins_part(part.clone());
            self.job.update(|card| {
                (card.done_before, card.of) = (part.earlier.len(), plan.strokes.len());
                card.done = card.done_before;
            });
            drawn.arm_time_s += self.bring_pen(scene, &parts, turn).await?;
            part.later = later(turn + 1);
            self.entry.begins_part(part.clone());
            let (done, strokes) = self.draw_part(scene, next, plan.strokes.len()).await?;
            drawn.arm_time_s += done.arm_time_s;
            drawn.off_rad = done.off_rad;
            part.earlier.extend(strokes);
        }
        Ok(drawn)
    }

    /// Draws the strokes of one pen, which is in the holder. Returns them as they were drawn.
    async fn draw_part(
        &self,
        scene: &Arc<Scene>,
        part: &PenPart,
        of: usize,
    ) -> Result<(CompletedMotion, Vec<scene::SheetStroke>), JobError> {
        let mounted = scene.with_mounted(part.pen);
        let permit = self.ask(&mounted)?;
        let start = self.start()?;
        let (planned, strokes) = (Arc::clone(&mounted), part.strokes.clone());
        let plan = self
            .plan(move |watch| {
                plan::draw_strokes(
                    &planned,
                    &start.position_rad,
                    &strokes,
                    Order::AsDrawn,
                    watch,
                )
            })
            .await?;
        self.job.update(|card| card.of = of);
        let done = self.run(&mounted, permit, &plan).await?;
        Ok((done, plan.strokes))
    }

    /// Sees that the next part's pen is in the holder: where it is not known to be, the arm goes to where a hand can reach and
    /// waits for a person. Returns the arm's time on the way.
    async fn bring_pen(
        &self,
        scene: &Arc<Scene>,
        parts: &[PenPart],
        turn: usize,
    ) -> Result<f64, JobError> {
        let Some(pen) = parts.get(turn).map(|part| part.pen) else {
            return Ok(0.0);
        };
        if self.seat.with_confirmed_pen(scene).holder.holds(pen) {
            return Ok(0.0);
        }
        let arm_time_s = self.go_to_change_pose(scene).await?;
        self.seat.take_pen(scene, None);
        self.await_pen(scene, pen, format!("{} of {}", turn + 1, parts.len()))
            .await?;
        Ok(arm_time_s)
    }

    async fn go_to_change_pose(&self, scene: &Arc<Scene>) -> Result<f64, JobError> {
        let start = self.start()?;
        let Some(change_rad) = scene.holder.change_rad().copied() else {
            return Ok(0.0);
        };
        if start.position_rad.distance_max(&change_rad) < AT_REST_RAD {
            return Ok(0.0);
        }
        let mounted = self.seat.with_confirmed_pen(scene);
        let (permit, planned) = (self.ask(&mounted)?, Arc::clone(&mounted));
        let plan = self
            .plan(move |watch| plan::go_to(&planned, &start.position_rad, &[change_rad], watch))
            .await?;
        let done = self.run(&mounted, permit, &plan).await?;
        Ok(done.arm_time_s)
    }

    /// Waits for a person's word that a pen is in the holder. Nothing may move meanwhile.
    async fn await_pen(
        &self,
        scene: &Arc<Scene>,
        pen: usize,
        place: String,
    ) -> Result<(), JobError> {
        let job = self.entry.id().to_owned();
        let words = format!("{}, {place}", scene.pen_words(pen));
        let named = scene.pen(pen);
        let (name, colour) = named.map_or_else(Default::default, |pen| {
            (pen.name.clone(), pen.colour_text())
        });
        let permits = self.seat.permits();
        permits.begin_pen_change(&format!(
            "{job} waits for {words}; an operator puts it in and confirms it with `steadyhand pen {job}`"
        ));
        let (confirmed, answer) = oneshot::channel();
        self.node.pen_changes.all().push(PenRequest {
            awaited: AwaitedPen {
                job: job.clone(),
                arm: self.seat.name.clone(),
                pen: pen + 1,
                name: name.clone(),
                colour,
                words: words.clone(),
                is_simulated: self.seat.studio.is_some(),
            },
            seat: Arc::clone(&self.seat),
            scene: Arc::clone(scene),
            confirmed,
        });
        self.job.update(|card| {
            card.state = WAITING;
            card.waits_for = Some(words.clone());
        });
        tracing::warn!(job, "waits for {words}: `steadyhand pen {job}` confirms it");
        let held = self.entry.held(&format!("it waits for {words}"));
        let heard = match held {
            Ok(()) => self.hear_confirmation(answer).await,
            Err(error) => Err(error.to_string()),
        };
        let requests = &self.node.pen_changes;
        requests.all().retain(|request| request.awaited.job != job);
        self.job.update(|card| {
            card.state = "planning";
            card.waits_for = None;
        });
        let heard = heard.and_then(|()| {
            let kept = self.entry.pen_confirmed(pen + 1, &name);
            kept.map_err(|error| error.to_string())
        });
        if let Err(why) = heard {
            permits.give_up_pen_change();
            return Err(JobError::PenNotConfirmed(format!(
                "{why} while it waited for {words}; motion is disabled, for a hand may be at the arm: an operator enables it"
            )));
        }
        self.seat.take_pen(scene, Some(pen));
        // A hand was at the arm: the sheet may lie elsewhere.
        self.has_looked.store(false, Ordering::Relaxed);
        Ok(())
    }

    async fn hear_confirmation(&self, mut answer: oneshot::Receiver<()>) -> Result<(), String> {
        let clock = self.seat.motion.clock();
        let until = clock.now().after(CHANGE_WITHIN);
        loop {
            if self.seat.motion.stops_requested() > self.seen_stops {
                return Err("stopped".to_owned());
            }
            if clock.now() > until {
                return Err(format!(
                    "nobody confirmed within {}",
                    duration(CHANGE_WITHIN)
                ));
            }
            if let Ok(answer) = tokio::time::timeout(LOOK, &mut answer).await {
                return answer.map_err(|_| "given up".to_owned());
            }
        }
    }
}
