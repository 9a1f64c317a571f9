//! The loop that owns the port: one tick a period, a stop before anything else.

use std::panic::AssertUnwindSafe;
use std::sync::mpsc::Sender;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use futures::FutureExt;
use tokio::sync::{mpsc, watch};

use super::health::{Care, Health};
use super::job::Job;
use super::line::{Asked, StopLine};
use super::ms_since;
use super::still::{Still, counts_rad};
use super::wire::{self, Wire};
use super::{Heartbeat, Opener, Order, Outcome, STOP_LIMIT, Snapshot, State, StopReport};
use crate::arm::Arm;
use crate::clock::{Alarm, Clock};
use crate::driver::{Driver, DriverError, Halt, Identity, Released};
use crate::gate::{Broken, CheckedTrajectory, Execution, Setpoint, Step};
use crate::link::Link;
use crate::permit::{Latch, Permit, Permits, Who};
use crate::plan::{PERIOD, SpanKind};
use crate::units::{Instant, Measured};

/// How often a standing arm is read: twice within the 100 ms of a servo's own watchdog.
const IDLE: Duration = Duration::from_millis(50);

/// Failed readings in a row, while the arm stands, that are a fault.
const IDLE_FAILURES_MAX: u32 = 20;

/// How long the joints may take to come to their last goal.
const SETTLE: Duration = Duration::from_secs(1);

/// A joint that stands more counts than this from its last goal has not reached it: 0.9°.
const REACHED_COUNTS: f64 = 10.0;

/// Between the first tries to open a port that was unplugged; each takes twice as long as the one
/// before, up to the longest.
const REOPEN: Duration = Duration::from_millis(100);
const REOPEN_MAX: Duration = Duration::from_secs(5);

const NOTHING_TO_HOLD: &str = "nothing moves that could be held";

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
    pub(super) heart: Arc<OnceLock<Heartbeat>>,
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
    still: Still,
    reached_rad: f64,
    failures: u32,
    /// Why the last cycle gave no reading.
    last_failure: Option<String>,
    /// How long a cycle may take.
    cycle_time: Duration,
    wire: Wire,
    reopen: Duration,
    ending: bool,
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
            still: Still::new(&own.arm),
            reached_rad: REACHED_COUNTS * counts_rad(&own.arm).iter().copied().fold(0.0, f64::max),
            own,
            link: None,
            driver,
            alarm,
            snapshot: Snapshot::detached(),
            job: None,
            stopping: None,
            stops_seen: 0,
            failures: 0,
            last_failure: None,
            cycle_time: PERIOD,
            wire: Wire::default(),
            reopen: REOPEN,
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
        self.cycle_time = wire::cycle_time(attached.latency);
        self.wire.attached(&attached);
        self.reopen = REOPEN;
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
            self.released().await;
            self.wait().await;
            self.take_stop();
            self.take_order().await;
            if self.link.is_some() {
                self.tick().await;
            } else {
                self.tick_detached().await;
            }
            self.publish();
            if let Some(heart) = self.own.heart.get() {
                heart();
            }
        }
    }

    fn is_idle(&self) -> bool {
        self.job.is_none() && self.stopping.is_none()
    }

    /// Simulated time stands still until the next sample is released; a stop waits for nothing.
    async fn released(&self) {
        if !self.own.clock.is_simulated() {
            return;
        }
        while let Some(job) = self.job.as_ref().filter(|job| !job.is_released()) {
            tokio::select! {
                biased;
                () = self.own.stop.woken() => {
                    if self.own.stop.is_pulled(self.stops_seen) {
                        self.own.stop.wake();
                        return;
                    }
                }
                () = job.release.changed() => {}
            }
        }
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
            now.after(if self.link.is_some() {
                IDLE
            } else {
                self.reopen
            })
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
        if !idle {
            self.snapshot.lateness.note(now.since(until));
        }
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
        if asked.emergency {
            self.driver.halt(Halt::Emergency);
        }
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
                release,
                done,
            }) => match self.begin(*proof, seen_stops).await {
                Ok(execution) => {
                    self.still.forget();
                    self.snapshot.state = State::Moving;
                    self.job = Some(Job::new(execution, release, done));
                }
                // A caller that is gone needs no reason.
                Err(why) => drop(done.send(Outcome::Refused(why))),
            },
            // As above.
            Ok(Order::Hold { at, done }) => {
                let job = self.job.as_mut().filter(|job| job.failing.is_none());
                let held = job.is_some_and(|job| job.execution.hold(at));
                drop(done.send(if held {
                    Ok(())
                } else {
                    Err(NOTHING_TO_HOLD.to_owned())
                }));
            }
            Ok(Order::Resume { permit, done }) => drop(done.send(self.resume(permit))),
            Ok(Order::Release { done }) => {
                let released = self.release().await;
                drop(done.send(released));
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
        if self.snapshot.health.care >= Care::NoStroke && draws(&proof) {
            return Err(format!(
                "{}; `sense` shows it, `reset` is possible",
                self.snapshot.health.line()
            ));
        }
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
        // Energising and reading take their time: a stop may have come meanwhile.
        self.still_wanted(&proof, seen_stops)?;
        let execution = proof
            .begin(&measured, self.own.clock.now())
            .map_err(|broken| broken.to_string())?;
        self.snapshot.measured = Some(Arc::new(measured));
        self.snapshot.fault = None;
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

    fn resume(&mut self, permit: Permit) -> Result<(), String> {
        let now = self.own.clock.now();
        if self.stopping.is_some() || !self.own.permits.stands(&permit) {
            return Err("a stop or a fault came before the motion went on".to_owned());
        }
        if self.snapshot.health.care >= Care::Park {
            return Err(self.snapshot.health.line());
        }
        let (Some(job), Some(seen)) = (&mut self.job, &self.snapshot.measured) else {
            return Err("nothing is held that could go on".to_owned());
        };
        job.execution
            .resume(seen, permit, now)
            .map_err(|broken| broken.to_string())
    }

    /// An operator's word: the arm drops.
    async fn release(&mut self) -> Result<Released, String> {
        let now = self.own.clock.now();
        let stands = self.still.stands(Instant::ZERO) || !self.driver.is_energised();
        if !self.is_idle() || !stands {
            return Err("the arm moves; `steadyhand stop` first".to_owned());
        }
        let Some(link) = self.link.as_mut() else {
            return Err("the arm is not connected".to_owned());
        };
        self.own.permits.latch(Latch::Stopped(Who::Operator));
        tracing::warn!(at = now.as_nanos(), "an operator takes torque off");
        let released = self.driver.release(link.as_mut()).await;
        self.snapshot.state = State::Stopped;
        released.map_err(|error| error.to_string())
    }

    async fn tick(&mut self) {
        let now = self.own.clock.now();
        self.mind_leave(now);
        let step = match (&mut self.job, &self.snapshot.measured) {
            (Some(job), Some(measured)) => {
                job.execution.wait(!job.is_released());
                job.execution.next(measured, now)
            }
            _ => Ok(Step::Hold),
        };
        match step {
            Ok(Step::Go(setpoint)) => self.cycle(Some(&setpoint)).await,
            Ok(Step::Hold) => self.cycle(None).await,
            Ok(Step::Finished) => {
                self.cycle(None).await;
                self.note_sent_all(now);
            }
            Err(broken) => {
                self.cycle(None).await;
                self.broke(&broken);
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

    /// Leave that has ended, and servos that are too hot, end a motion where its stroke ends.
    fn mind_leave(&mut self, now: Instant) {
        let too_hot = self.snapshot.health.care >= Care::Park;
        let Some(job) = &mut self.job else {
            return;
        };
        if too_hot || !job.execution.is_allowed(now) {
            job.rest_soon();
        }
        let held = job.execution.is_held();
        if too_hot && held && job.failing.is_none() {
            job.execution.stop();
            let why = self.snapshot.health.line();
            self.fault(&why);
        }
    }

    fn note_sent_all(&mut self, now: Instant) {
        if let Some(job) = &mut self.job
            && job.sent_all.is_none()
        {
            job.sent_all = Some(now);
            // A slow motion reads as a standstill: only what is read from now on counts.
            self.still.forget();
        }
    }

    /// The gate gave a motion up: it has brought the goal to a stand and knows the way to its end.
    fn broke(&mut self, broken: &Broken) {
        self.fault(&self.in_full(broken));
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
        self.take_in(measured);
    }

    fn take_in(&mut self, measured: Measured) {
        self.wire
            .look(measured.at, self.driver.counts(), &self.snapshot.identity);
        self.still.note(&measured);
        if let Some(job) = &mut self.job {
            job.note_dwell(&measured);
        }
        let health = Health::of(&self.own.arm, &measured, &self.snapshot.health);
        if health.care > self.snapshot.health.care {
            tracing::warn!("{}", health.line());
        }
        self.snapshot.health = health;
        self.snapshot.measured = Some(Arc::new(measured));
    }

    /// `overdue` is by how much the cycle overran its deadline.
    fn failed(&mut self, error: &DriverError, overdue: Duration) {
        self.failures = self.failures.saturating_add(1);
        // The servos may well have answered while nobody listened.
        let starved = overdue > STARVED_BY && error.is_transient();
        self.last_failure = Some(if starved {
            STARVED.to_owned()
        } else {
            error.to_string()
        });
        if let Some(measured) = error.measured() {
            self.take_in(measured.clone());
        }
        tracing::debug!(failures = self.failures, "bus: {error}");
        if error.is_unplugged() {
            self.link = None;
            self.fault(&format!("{error}; plug it in again, then call `reset`"));
            self.snapshot.state = State::Detached;
            self.end_failed();
        } else if !error.is_transient() || self.failures >= IDLE_FAILURES_MAX {
            if let Some(job) = &mut self.job {
                // Whether a lift would be followed, nobody can say.
                job.execution.halt();
            }
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
        let settled = self.driver.is_settled();
        let sent_all = self.job.as_ref().is_none_or(|job| job.sent_all.is_some());
        if let Some(stopping) = &self.stopping {
            let still = sent_all && settled && self.still.stands(stopping.asked.at);
            if still || now.since(stopping.asked.at) > STOP_LIMIT {
                self.finish_stop(still);
            }
            return;
        }
        let Some(sent) = self.job.as_ref().and_then(|job| job.sent_all) else {
            return;
        };
        let still = settled && self.still.stands(sent);
        let late = now.since(sent) > SETTLE;
        if self.job.as_ref().is_some_and(|job| job.failing.is_some()) {
            if still || late {
                self.end_failed();
            }
            return;
        }
        let off_rad = self.off_rad();
        if still && off_rad <= self.reached_rad {
            self.finish_job(off_rad);
        } else if late {
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
            self.reached_rad.to_degrees()
        )
    }

    fn finish_job(&mut self, off_rad: f64) {
        self.snapshot.state = State::Holding;
        if let Some(job) = self.job.take() {
            job.reached(off_rad);
        }
    }

    /// Ends a motion that broke, now that it stands or has had its time.
    fn end_failed(&mut self) {
        if let Some(mut job) = self.job.take() {
            self.driver.halt(Halt::Hold);
            let why = job.failing.take().unwrap_or_default();
            job.end(Outcome::Faulted(why));
        }
    }

    fn finish_stop(&mut self, verified: bool) {
        let Some(stopping) = self.stopping.take() else {
            return;
        };
        let now = self.own.clock.now();
        let report = StopReport {
            kind: if stopping.asked.emergency {
                "emergency stop"
            } else {
                "stop"
            },
            by: stopping.asked.by,
            emergency: stopping.asked.emergency,
            first_frame_ms: stopping.first_frame_ms,
            standstill_ms: verified.then(|| ms_since(now, stopping.asked.at)),
            speed_rad_s: self.still.speed_rad_s(),
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
        match self.job.take() {
            Some(job) if job.failing.is_none() => job.end(Outcome::Stopped(report)),
            broken => {
                self.job = broken;
                self.end_failed();
            }
        }
    }

    /// Something broke: the motion comes to its stand, the servos hold, and only `reset` goes on.
    fn fault(&mut self, why: &str) {
        // The first cause is the one to tell; what follows from it is not.
        let known = match &self.job {
            Some(job) => job.failing.is_some(),
            None => {
                self.snapshot.fault.as_deref() == Some(why) && self.own.permits.latched().is_some()
            }
        };
        if known {
            return;
        }
        self.own.permits.latch(Latch::Fault(why.to_owned()));
        self.snapshot.state = State::Faulted;
        self.snapshot.fault = Some(why.to_owned());
        match &mut self.job {
            Some(job) => job.fail(why),
            None => self.driver.halt(Halt::Hold),
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
        self.reopen = (self.reopen * 2).min(REOPEN_MAX);
        if self.open().await.is_ok() {
            tracing::info!("the arm is connected again; it moves after `reset`");
            self.snapshot.state = State::Faulted;
            self.snapshot.fault = fault;
        }
    }

    fn publish(&mut self) {
        self.snapshot.progress = self.job.as_ref().map(|job| job.execution.progress());
        if let (Some(job), Some(progress)) = (&self.job, self.snapshot.progress) {
            job.release.came_to(progress.sample);
        }
        if let (State::Moving | State::Held, Some(job)) = (self.snapshot.state, &self.job) {
            let held = job.execution.is_held();
            self.snapshot.state = if held { State::Held } else { State::Moving };
        }
        // After a servo restarted, or the port came back, others may hold though nobody says so.
        self.snapshot.energised = self.driver.is_energised()
            || self.snapshot.measured.as_ref().is_some_and(|measured| {
                measured
                    .servos
                    .iter()
                    .any(|servo| servo.torque_on == Some(true))
            });
        self.snapshot.counts = self.driver.counts().clone();
        self.snapshot.warnings = self.wire.warnings();
        if self.is_idle()
            && self.snapshot.state == State::Stopped
            && self.own.permits.latched().is_none()
        {
            self.snapshot.state = State::Holding;
        }
        self.own.publish.send_replace(self.snapshot.clone());
    }
}

/// Whether a tip goes to the sheet to draw.
fn draws(proof: &CheckedTrajectory) -> bool {
    let mut spans = proof.trajectory().spans.iter();
    spans.any(|span| span.kind == SpanKind::Draw)
}
