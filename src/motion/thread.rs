//! The loop that owns the port: one tick a period, a stop before anything else.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::sync::mpsc::Sender;
use std::time::Duration;

use futures::FutureExt;
use tokio::sync::{mpsc, oneshot, watch};

use super::health::{self, Health};
use super::line::{Asked, StopLine};
use super::{
    Opener, Order, Outcome, STANDSTILL_RAD_S, STOP_LIMIT, Snapshot, State, StopReport, Visited,
};
use super::{fastest_rad_s, ms_since};
use crate::arm::Arm;
use crate::clock::{Alarm, Clock};
use crate::driver::{Driver, DriverError, Identity};
use crate::gate::{Broken, CheckedTrajectory, Execution, Setpoint, Step};
use crate::link::Link;
use crate::permit::{Latch, Permits};
use crate::plan::{PERIOD, SpanKind};
use crate::units::{Instant, Joints, Measured};

/// How often a standing arm is read: twice within the 100 ms of a servo's own watchdog.
const IDLE: Duration = Duration::from_millis(50);

/// Failed readings in a row, while the arm stands, that are a fault.
const IDLE_FAILURES_MAX: u32 = 20;

/// Standing readings in a row that are a standstill.
const STILL_TICKS: u32 = 3;

/// How long the joints may take to come to their last goal.
const SETTLE: Duration = Duration::from_secs(1);

/// A joint that stands further than this from its last goal has not reached it.
const REACHED_RAD: f64 = 0.035;

/// Between two tries to open a port that was unplugged.
const REOPEN: Duration = Duration::from_secs(2);

/// A cycle that overran its deadline by so much did not wait for servos.
const STARVED_BY: Duration = Duration::from_millis(20);

const STARVED: &str =
    "this machine did not run the arm's thread in time; give it less to do, or the node a priority";

/// What the thread is given for itself.
pub(super) struct Own {
    pub(super) arm: Arc<Arm>,
    pub(super) clock: Clock,
    pub(super) permits: Arc<Permits>,
    pub(super) open: Opener,
    pub(super) orders: mpsc::UnboundedReceiver<Order>,
    pub(super) stop: Arc<StopLine>,
    pub(super) publish: watch::Sender<Snapshot>,
}

/// The thread's whole life. `attached` hears once how the first attach went.
pub(super) fn main(own: Own, attached: &Sender<Result<(), String>>) {
    let runtime = match tokio::runtime::Builder::new_current_thread()
        .enable_io()
        .build()
    {
        Ok(runtime) => runtime,
        Err(error) => {
            // Whoever waits for the answer is gone only if the process is ending.
            let _ = attached.send(Err(format!("cannot start the arm's runtime: {error}")));
            return;
        }
    };
    let (publish, permits) = (own.publish.clone(), Arc::clone(&own.permits));
    let life = AssertUnwindSafe(async {
        match Worker::attach(own).await {
            Ok(mut worker) => {
                let _ = attached.send(Ok(()));
                worker.live().await;
            }
            Err(why) => {
                let _ = attached.send(Err(why));
            }
        }
    });
    if runtime.block_on(life.catch_unwind()).is_err() {
        panicked(&publish, &permits);
    }
}

/// The servos stand where the last frame said; all that is left is to say so.
fn panicked(publish: &watch::Sender<Snapshot>, permits: &Permits) {
    let why = "the arm's thread failed; the arm holds its last goal; restart the node".to_owned();
    permits.latch(Latch::Fault(why.clone()));
    publish.send_modify(|snapshot| {
        snapshot.state = State::Faulted;
        snapshot.fault = Some(why);
    });
}

struct Worker {
    own: Own,
    link: Option<Box<dyn Link>>,
    driver: Driver,
    alarm: Alarm,
    snapshot: Snapshot,
    job: Option<Job>,
    stopping: Option<Stopping>,
    stops_seen: u64,
    next_tick: Instant,
    still_ticks: u32,
    failures: u32,
    /// Why the last cycle gave no reading.
    last_failure: Option<String>,
    /// How long a cycle may take.
    cycle_time: Duration,
    health: Health,
    /// Why the motion is being brought to its end early, pen up.
    giving_up: Option<String>,
    ending: bool,
}

struct Job {
    execution: Execution,
    done: oneshot::Sender<Outcome>,
    visits: Vec<Visited>,
    dwelling: Option<(usize, Joints)>,
    /// When the last frame was sent.
    sent_all: Option<Instant>,
}

struct Stopping {
    asked: Asked,
    was_moving: bool,
    first_frame_ms: Option<f64>,
    latched: bool,
}

impl Worker {
    async fn attach(own: Own) -> Result<Self, String> {
        let alarm = own
            .clock
            .alarm()
            .map_err(|error| format!("no timer: {error}"))?;
        let driver = Driver::new(&own.arm, &own.clock);
        let mut worker = Self {
            next_tick: own.clock.now(),
            own,
            link: None,
            driver,
            alarm,
            snapshot: Snapshot::detached(),
            job: None,
            stopping: None,
            stops_seen: 0,
            still_ticks: 0,
            failures: 0,
            last_failure: None,
            cycle_time: PERIOD,
            health: Health::default(),
            giving_up: None,
            ending: false,
        };
        worker.open().await?;
        worker.publish();
        Ok(worker)
    }

    async fn open(&mut self) -> Result<(), String> {
        let mut link = (self.own.open)(&self.own.clock).map_err(|error| error.to_string())?;
        let attached = self.driver.attach(link.as_mut()).await;
        let attached = attached.map_err(|error| format!("{}: {error}", link.name()))?;
        self.is_same_arm(&attached.servos)?;
        for warning in &attached.warnings {
            tracing::warn!(port = link.name(), "{warning}");
        }
        self.link = Some(link);
        self.failures = 0;
        self.cycle_time = health::cycle_time(attached.latency);
        self.health.attached(&attached);
        self.snapshot.identity = Arc::new(attached.servos);
        self.snapshot.measured = Some(Arc::new(attached.measured));
        self.snapshot.state = State::Holding;
        Ok(())
    }

    /// A port that comes back may have another arm behind it, with other zeros.
    fn is_same_arm(&self, found: &[Identity]) -> Result<(), String> {
        let known = self.snapshot.identity.iter();
        let other = known
            .zip(found)
            .find(|(known, found)| !known.is_same(found));
        match other {
            None => Ok(()),
            Some((_, found)) => Err(format!(
                "{} is not the one that was here before: restart the node for another arm",
                found.servo
            )),
        }
    }

    async fn live(&mut self) {
        while !(self.ending && self.is_idle()) {
            self.wait().await;
            self.take_stop();
            self.take_order().await;
            if self.link.is_some() {
                self.tick().await;
            } else {
                self.tick_detached().await;
            }
            self.publish();
        }
    }

    fn is_idle(&self) -> bool {
        self.job.is_none() && self.stopping.is_none()
    }

    /// Until the next tick; an arm that stands is also woken by orders. A stop always wakes.
    async fn wait(&mut self) {
        let idle = self.is_idle();
        if idle && !self.own.orders.is_empty() {
            return;
        }
        // While the arm comes to a stop, another stop waits for the tick: each would otherwise
        // bring the next frame forward and hurry the arm along.
        let seen = if self.stopping.is_some() {
            u64::MAX
        } else {
            self.stops_seen
        };
        let now = self.own.clock.now();
        let until = if idle {
            now.after(if self.link.is_some() { IDLE } else { REOPEN })
        } else {
            self.next_tick
        };
        // A simulated arm that stands costs nothing: its time stands still as well.
        let asleep = idle && self.own.clock.is_simulated();
        loop {
            let fired = async {
                if asleep {
                    std::future::pending().await
                } else {
                    self.alarm.until(until).await
                }
            };
            tokio::select! {
                biased;
                () = self.own.stop.woken() => {
                    if idle || self.own.stop.is_pulled(seen) {
                        self.next_tick = self.own.clock.now();
                        break;
                    }
                }
                fired = fired => {
                    if let Err(error) = fired { tracing::error!("the tick's timer failed: {error}"); }
                    break;
                }
            }
        }
        // Ticks do not drift; one that came late is not made up for by two.
        let now = self.own.clock.now();
        self.next_tick = self.next_tick.after(PERIOD);
        if self.next_tick <= now {
            self.next_tick = now.after(PERIOD);
        }
    }

    fn take_stop(&mut self) {
        let Some(asked) = self.own.stop.look(self.stops_seen) else {
            return;
        };
        self.stops_seen = asked.serial;
        self.still_ticks = 0;
        if let Some(job) = &mut self.job {
            if asked.emergency {
                job.execution.stand();
            } else {
                job.execution.stop();
            }
        }
        let before = self.stopping.take();
        self.stopping = Some(Stopping {
            was_moving: self.job.is_some(),
            latched: false,
            first_frame_ms: before.as_ref().and_then(|before| before.first_frame_ms),
            asked: Asked {
                at: before.as_ref().map_or(asked.at, |before| before.asked.at),
                emergency: asked.emergency
                    || before.as_ref().is_some_and(|before| before.asked.emergency),
                by: before
                    .as_ref()
                    .map_or(asked.by, |before| before.asked.by.max(asked.by)),
                ..asked
            },
        });
        self.snapshot.state = State::Stopping;
    }

    /// After the frame, for the frame waits for nobody; before the answer.
    fn latch_stop(&mut self) {
        let Some(stopping) = self.stopping.as_mut() else {
            return;
        };
        if !std::mem::replace(&mut stopping.latched, true) {
            let by = stopping.asked.by;
            self.own.permits.latch(if stopping.asked.emergency {
                Latch::Emergency(by)
            } else {
                Latch::Stopped(by)
            });
        }
    }

    async fn take_order(&mut self) {
        match self.own.orders.try_recv() {
            Ok(Order::Run {
                proof,
                seen_stops,
                done,
            }) => {
                if let Err(why) = self
                    .begin(*proof, seen_stops)
                    .await
                    .map(|execution| self.job_of(execution))
                {
                    // A caller that is gone needs no reason.
                    let _ = done.send(Outcome::Refused(why));
                } else if let Some(job) = &mut self.job {
                    job.done = done;
                }
            }
            Ok(Order::End) | Err(mpsc::error::TryRecvError::Disconnected) => self.ending = true,
            Err(mpsc::error::TryRecvError::Empty) => {}
        }
    }

    async fn begin(
        &mut self,
        proof: CheckedTrajectory,
        seen_stops: u64,
    ) -> Result<Execution, String> {
        self.still_wanted(&proof, seen_stops)?;
        if self.job.is_some() {
            return Err(
                "the arm is busy with another motion; `sense` shows it, `stop` stops it".to_owned(),
            );
        }
        let Some(link) = self.link.as_mut() else {
            return Err(self
                .snapshot
                .fault
                .clone()
                .unwrap_or_else(|| "the arm is not connected".to_owned()));
        };
        if !self.driver.is_energised() {
            self.driver
                .energise(link.as_mut())
                .await
                .map_err(|error| error.to_string())?;
        }
        let deadline = self.own.clock.now().after(PERIOD * 5);
        let measured = self
            .driver
            .cycle(link.as_mut(), None, deadline)
            .await
            .map_err(|error| error.to_string())?;
        // To rest it may always go.
        let draws = proof
            .trajectory()
            .spans
            .iter()
            .any(|span| span.kind == SpanKind::Draw);
        let hot = health::too_hot_to_begin(&measured, &self.snapshot.identity);
        if let Some(why) = hot.filter(|_| draws) {
            return Err(why);
        }
        // Energising and reading take their time: a stop may have come meanwhile.
        self.still_wanted(&proof, seen_stops)?;
        let execution = proof
            .begin(&measured, self.own.clock.now())
            .map_err(|broken| broken.to_string())?;
        self.snapshot.measured = Some(Arc::new(measured));
        self.snapshot.fault = None;
        self.giving_up = None;
        self.next_tick = self.own.clock.now().after(PERIOD);
        Ok(execution)
    }

    /// Whether no stop was asked for, and nothing latched, since the motion was allowed.
    fn still_wanted(&self, proof: &CheckedTrajectory, seen_stops: u64) -> Result<(), String> {
        if self.stops_seen > seen_stops
            || self.stopping.is_some()
            || self.own.stop.is_pulled(seen_stops)
            || !self.own.permits.stands(proof.permit())
        {
            return Err("a stop or a fault came before the motion began".to_owned());
        }
        Ok(())
    }

    fn job_of(&mut self, execution: Execution) {
        let (done, _) = oneshot::channel();
        self.still_ticks = 0;
        self.job = Some(Job {
            execution,
            done,
            visits: Vec::new(),
            dwelling: None,
            sent_all: None,
        });
        self.snapshot.state = State::Moving;
    }

    async fn tick(&mut self) {
        let now = self.own.clock.now();
        let step = match (&mut self.job, &self.snapshot.measured) {
            (Some(job), Some(measured)) => job.execution.next(measured, now),
            _ => Ok(Step::Hold),
        };
        match step {
            Ok(Step::Go(setpoint)) => self.cycle(Some(&setpoint)).await,
            Ok(Step::Hold) => self.cycle(None).await,
            Ok(Step::Finished) => {
                self.cycle(None).await;
                if let Some(job) = &mut self.job
                    && job.sent_all.is_none()
                {
                    job.sent_all = Some(now);
                    // A slow motion reads as a standstill: only what is read from now on counts.
                    self.still_ticks = 0;
                }
            }
            Err(broken) => {
                self.fault(&self.in_full(&broken));
                self.cycle(None).await;
            }
        }
        self.note_stop_frame(now);
        self.latch_stop();
        self.settle();
    }

    /// A blind arm's last failure says which servo it is about.
    fn in_full(&self, broken: &Broken) -> String {
        match (broken, &self.last_failure) {
            (Broken::Blind(_), Some(why)) => format!("{broken}: {why}"),
            (Broken::Blind(_), None) => format!("{broken}: {STARVED}"),
            _ => broken.to_string(),
        }
    }

    async fn cycle(&mut self, setpoint: Option<&Setpoint>) {
        let deadline = self.own.clock.now().after(self.cycle_time);
        let Some(link) = self.link.as_mut() else {
            return;
        };
        let result = self.driver.cycle(link.as_mut(), setpoint, deadline).await;
        let overdue = self.own.clock.now().since(deadline);
        match result {
            Ok(measured) => self.measured(measured),
            Err(error) => self.failed(&error, overdue),
        }
    }

    fn measured(&mut self, measured: Measured) {
        self.failures = 0;
        self.last_failure = None;
        self.look_at_health(&measured);
        let still = fastest_rad_s(&measured) < STANDSTILL_RAD_S;
        self.still_ticks = if still {
            self.still_ticks.saturating_add(1)
        } else {
            0
        };
        if let Some(job) = &mut self.job {
            job.note_dwell(&measured);
        }
        self.snapshot.measured = Some(Arc::new(measured));
    }

    /// A servo that gets too hot ends the motion as a stop does, and then it is a fault.
    fn look_at_health(&mut self, measured: &Measured) {
        let (counts, servos) = (self.driver.counts(), &self.snapshot.identity);
        let why = self.health.look(measured, counts, servos);
        if let (Some(why), Some(job), None) = (why, &mut self.job, &self.giving_up) {
            job.execution.stop();
            self.giving_up = Some(why);
        }
    }

    /// `overdue` is by how much the cycle overran its deadline.
    fn failed(&mut self, error: &DriverError, overdue: Duration) {
        self.still_ticks = 0;
        self.failures = self.failures.saturating_add(1);
        // The servos may well have answered while nobody listened.
        let starved = overdue > STARVED_BY && error.is_transient();
        self.last_failure = Some(if starved {
            STARVED.to_owned()
        } else {
            error.to_string()
        });
        tracing::debug!(failures = self.failures, "bus: {error}");
        if error.is_unplugged() {
            self.link = None;
            self.fault(&format!("{error}; plug it in again, then call `reset`"));
            self.snapshot.state = State::Detached;
        } else if !error.is_transient() || self.failures >= IDLE_FAILURES_MAX {
            self.fault(&error.to_string());
        }
    }

    fn note_stop_frame(&mut self, sent: Instant) {
        if let Some(stopping) = &mut self.stopping
            && stopping.was_moving
            && stopping.first_frame_ms.is_none()
        {
            stopping.first_frame_ms = Some(ms_since(sent, stopping.asked.at));
        }
    }

    /// Ends a stop, or a motion, that has come to rest or has had its time.
    fn settle(&mut self) {
        let now = self.own.clock.now();
        let still = self.still_ticks >= STILL_TICKS;
        let sent_all = self.job.as_ref().is_none_or(|job| job.sent_all.is_some());
        if let Some(stopping) = &self.stopping {
            let late = now.since(stopping.asked.at) > STOP_LIMIT;
            if (sent_all && still) || late {
                self.finish_stop(still && sent_all);
            }
            return;
        }
        let Some(sent) = self.job.as_ref().and_then(|job| job.sent_all) else {
            return;
        };
        let off_rad = self.off_rad();
        if let Some(why) = self.giving_up.take_if(|_| still) {
            self.fault(&why);
        } else if still && off_rad <= REACHED_RAD {
            self.finish_job(off_rad);
        } else if now.since(sent) > SETTLE {
            let why = self.short_of_goal();
            self.fault(&why);
        }
    }

    fn off_rad(&self) -> f64 {
        match (&self.job, &self.snapshot.measured) {
            (Some(job), Some(measured)) => job
                .execution
                .goal_rad()
                .distance_max(&measured.position_rad),
            _ => f64::INFINITY,
        }
    }

    fn short_of_goal(&self) -> String {
        let (Some(job), Some(measured)) = (&self.job, &self.snapshot.measured) else {
            return "the arm was not read at its goal".to_owned();
        };
        let off = job
            .execution
            .goal_rad()
            .zip(&measured.position_rad, |goal, is| (goal - is).abs());
        let worst = off
            .iter()
            .copied()
            .enumerate()
            .max_by(|a, b| a.1.total_cmp(&b.1));
        let (joint, by) = worst.unwrap_or_default();
        format!(
            "{} stopped {:.1}° short of its goal ({:.1}° is allowed): something holds it, or its servo is too weak",
            self.own.arm.joint_name(joint),
            by.to_degrees(),
            REACHED_RAD.to_degrees()
        )
    }

    fn finish_job(&mut self, off_rad: f64) {
        self.snapshot.state = State::Holding;
        if let Some(mut job) = self.job.take() {
            job.end_dwell();
            // The motion is over whether or not somebody still waits.
            let _ = job.done.send(Outcome::Reached {
                visits: job.visits,
                off_rad,
            });
        }
    }

    fn finish_stop(&mut self, verified: bool) {
        let Some(stopping) = self.stopping.take() else {
            return;
        };
        let now = self.own.clock.now();
        let report = StopReport {
            by: stopping.asked.by,
            emergency: stopping.asked.emergency,
            first_frame_ms: stopping.first_frame_ms,
            standstill_ms: verified.then(|| ms_since(now, stopping.asked.at)),
            speed_rad_s: self
                .snapshot
                .measured
                .as_deref()
                .map_or(f64::NAN, fastest_rad_s),
            verified,
            lifted: self
                .job
                .as_ref()
                .is_some_and(|job| job.execution.has_lifted()),
            not_kept: None,
        };
        self.snapshot.state = match (&self.snapshot.fault, &self.link) {
            (_, None) => State::Detached,
            (Some(_), _) => State::Faulted,
            (None, _) => State::Stopped,
        };
        self.snapshot.stop = Some(report.clone());
        self.snapshot.stops_done = stopping.asked.serial;
        if let Some(job) = self.job.take() {
            // As above.
            let _ = job.done.send(Outcome::Stopped(report));
        }
    }

    /// Something broke: nothing more is sent, the servos hold, and only `reset` goes on.
    fn fault(&mut self, why: &str) {
        let known = self.job.is_none()
            && self.snapshot.fault.as_deref() == Some(why)
            && self.own.permits.latched().is_some();
        if known {
            return;
        }
        self.own.permits.latch(Latch::Fault(why.to_owned()));
        self.snapshot.state = State::Faulted;
        self.snapshot.fault = Some(why.to_owned());
        if let Some(job) = self.job.take() {
            // As above.
            let _ = job.done.send(Outcome::Faulted(why.to_owned()));
        }
        // Last: whoever should read the log may not.
        tracing::error!("{why}");
    }

    async fn tick_detached(&mut self) {
        self.latch_stop();
        if self.stopping.is_some() {
            self.finish_stop(false);
        }
        if self.own.clock.is_simulated() {
            return;
        }
        let fault = self.snapshot.fault.clone();
        if self.open().await.is_ok() {
            tracing::info!("the arm is connected again; it moves after `reset`");
            self.snapshot.state = State::Faulted;
            self.snapshot.fault = fault;
        }
    }

    fn publish(&mut self) {
        self.snapshot.progress = self.job.as_ref().map(|job| job.execution.progress());
        // After a servo restarted, or the port came back, others may hold though nobody says so.
        self.snapshot.energised = self.driver.is_energised()
            || self.snapshot.measured.as_ref().is_some_and(|measured| {
                measured
                    .servos
                    .iter()
                    .any(|servo| servo.torque_on == Some(true))
            });
        self.snapshot.counts = self.driver.counts().clone();
        self.snapshot.warnings = self.health.warnings();
        if self.is_idle()
            && self.snapshot.state == State::Stopped
            && self.own.permits.latched().is_none()
        {
            self.snapshot.state = State::Holding;
        }
        self.own.publish.send_replace(self.snapshot.clone());
    }
}

impl Job {
    /// Keeps the last reading over each visited point.
    fn note_dwell(&mut self, measured: &Measured) {
        let progress = self.execution.progress();
        let here = (progress.doing == SpanKind::Dwell)
            .then_some(progress.item)
            .flatten();
        if self.dwelling.is_some_and(|(item, _)| Some(item) != here) {
            self.end_dwell();
        }
        if let Some(item) = here {
            self.dwelling = Some((item, measured.position_rad));
        }
    }

    fn end_dwell(&mut self) {
        if let Some((item, position_rad)) = self.dwelling.take() {
            self.visits.push(Visited { item, position_rad });
        }
    }
}
