//! The loop that owns the port: one tick a period, a stop before anything else.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::sync::mpsc::Sender;
use std::time::Duration;

use futures::FutureExt;
use tracing::{Instrument as _, Span};

use super::active_motion::ActiveMotion;
use super::active_stop::ActiveStop;
use super::bus_health::{self, BusHealth};
use super::finish::REACHED_COUNTS;
use super::realtime_priority::set_realtime_priority;
use super::snapshot_publisher::{ReplyCallback, SnapshotPublisher};
use super::standstill::{StandstillDetector, counts_rad};
use super::{MotionError, MotionShared, MotionState, MotionTick, PortOpener, Snapshot};
use base::clock::ClockAlarm;
use base::units::ClockInstant;
use driver::{ArmDriver, ServoIdentity};
use gate::CheckedTrajectory;
use link::ByteLink;
use permit::{PermitRegistry, StopLatch};
use plan::{PERIOD, SpanKind};

/// Interval at which a standing arm is read: twice within the 100 ms of a servo's own watchdog.
const IDLE: Duration = Duration::from_millis(50);

/// Between the first tries to open a port that was unplugged; each takes twice as long as the one
/// before, up to the longest.
const REOPEN: Duration = Duration::from_millis(100);
const REOPEN_MAX: Duration = Duration::from_secs(5);

/// A machine that slept so long has left its arm alone.
const SLEPT: Duration = Duration::from_millis(100);

/// The thread's whole life. `attached` hears once how the first attach went.
pub(super) fn main(
    own: &Arc<MotionShared>,
    port: PortOpener,
    outbox: SnapshotPublisher,
    attached: &Sender<Result<(), MotionError>>,
) {
    let runtime = match base::clock::alarm_runtime() {
        Ok(runtime) => runtime,
        Err(error) => {
            // Whoever waits for the answer is gone only if the process is ending.
            let _ = attached.send(Err(MotionError::start("runtime", error)));
            return;
        }
    };
    let outbox = Arc::new(outbox);
    let life = AssertUnwindSafe(async {
        match ArmThread::attach(Arc::clone(own), port, Arc::clone(&outbox)).await {
            Ok(mut worker) => {
                let attached = attached.clone();
                worker
                    .answers
                    .push(Box::new(move || drop(attached.send(Ok(())))));
                worker.publish();
                worker.run().await;
            }
            Err(why) => {
                let _ = attached.send(Err(why));
            }
        }
    });
    if runtime.block_on(life.catch_unwind()).is_err() {
        panicked(&outbox, &own.permits);
    }
    own.orders.close();
}

/// The servos stand where the last frame said; all that is left is to say so.
fn panicked(outbox: &SnapshotPublisher, permits: &PermitRegistry) {
    let why = "the arm's thread failed; the arm holds its last goal; restart the node".to_owned();
    permits.latch(StopLatch::Fault(why.clone()));
    outbox.fail(why);
}

/// The thread, with all that it knows.
pub(super) struct ArmThread {
    pub(super) own: Arc<MotionShared>,
    port: PortOpener,
    outbox: Arc<SnapshotPublisher>,
    pub(super) link: Option<Box<dyn ByteLink>>,
    pub(super) driver: ArmDriver,
    pub(super) alarm: ClockAlarm,
    pub(super) snapshot: Snapshot,
    pub(super) job: Option<ActiveMotion>,
    pub(super) stopping: Option<ActiveStop>,
    pub(super) stops_seen: u64,
    /// The latch of a fault, while a reader of the latches delays it.
    pub(super) latching: Option<StopLatch>,
    pub(super) next_tick: ClockInstant,
    pub(super) still: StandstillDetector,
    pub(super) reached_rad: f64,
    pub(super) failures: u32,
    /// The reason why the last cycle gave no reading.
    pub(super) last_failure: Option<String>,
    /// Time limit of a cycle.
    pub(super) cycle_time: Duration,
    pub(super) wire: BusHealth,
    pub(super) reopen: Duration,
    /// Reason that the port could not be opened again at the last try.
    refused: Option<String>,
    /// Time of the last attempt to reopen: merely waking the thread does not bring the next one forward.
    tried: ClockInstant,
    pub(super) ending: bool,
    /// The machine's total sleep when it was last checked.
    slept: Option<Duration>,
    /// Answers to commands, to be given with the next snapshot.
    pub(super) answers: Vec<ReplyCallback>,
}

impl ArmThread {
    async fn attach(
        own: Arc<MotionShared>,
        port: PortOpener,
        outbox: Arc<SnapshotPublisher>,
    ) -> Result<Self, MotionError> {
        let alarm = own.clock.alarm().map_err(MotionError::NoTimer)?;
        let driver = ArmDriver::new(&own.arm, &own.clock);
        let mut worker = Self {
            next_tick: own.clock.now(),
            still: StandstillDetector::new(&own.arm),
            reached_rad: REACHED_COUNTS * counts_rad(&own.arm).iter().copied().fold(0.0, f64::max),
            own,
            port,
            outbox,
            link: None,
            driver,
            alarm,
            snapshot: Snapshot::default(),
            job: None,
            stopping: None,
            stops_seen: 0,
            latching: None,
            failures: 0,
            last_failure: None,
            cycle_time: PERIOD,
            wire: BusHealth::default(),
            reopen: REOPEN,
            refused: None,
            tried: ClockInstant::ZERO,
            ending: false,
            slept: None,
            answers: Vec::new(),
        };
        worker.open().await?;
        worker.request_realtime_priority();
        Ok(worker)
    }

    /// Requests real-time priority once the port is open: the lookups for it are not urgent. A simulated
    /// clock waits for its thread anyway.
    fn request_realtime_priority(&mut self) {
        if self.own.clock.is_simulated() {
            return;
        }
        match set_realtime_priority() {
            Ok(()) => self.snapshot.is_ahead = true,
            Err(error) => tracing::debug!(
                "the arm's thread has no real-time priority ({error}): on a busy machine its ticks come late; `rtprio 10` in /etc/security/limits.d gives a user leave for one, `LimitRTPRIO=10` a unit"
            ),
        }
    }

    async fn open(&mut self) -> Result<(), MotionError> {
        let mut link = (self.port)(&self.own.clock)?;
        let attached = self.driver.attach(link.as_mut()).await;
        let attached = attached.map_err(|source| MotionError::Attach {
            port: link.name().to_owned(),
            source,
        })?;
        self.is_same_arm(&attached.servos)?;
        for warning in &attached.warnings {
            tracing::warn!(port = link.name(), "{warning}");
        }
        self.link = Some(link);
        self.failures = 0;
        self.cycle_time = bus_health::cycle_time(attached.latency);
        self.wire.reset(&attached, self.own.arm.file.family);
        self.reopen = REOPEN;
        self.snapshot.identity = Arc::new(attached.servos);
        self.snapshot.measured = Some(Arc::new(attached.measured));
        self.snapshot.state = MotionState::Holding;
        Ok(())
    }

    /// A port that comes back may have another arm behind it, with other zeros.
    fn is_same_arm(&self, found: &[ServoIdentity]) -> Result<(), MotionError> {
        let known = self.snapshot.identity.iter();
        let other = known
            .zip(found)
            .find(|(known, found)| !known.is_same(found));
        match other {
            None => Ok(()),
            Some((_, found)) => Err(MotionError::OtherArm(found.servo.clone())),
        }
    }

    async fn run(&mut self) {
        while !(self.ending && self.is_idle()) {
            self.wait_for_release().await;
            self.wait_for_tick().await;
            let job = self.job.as_ref();
            let span = job.map_or_else(Span::none, |job| job.span.clone());
            self.run_tick().instrument(span).await;
            if let Some(heart) = self.own.heart.get() {
                heart();
            }
        }
    }

    async fn run_tick(&mut self) {
        self.check_machine_sleep();
        self.take_stop();
        self.take_command().await;
        if self.link.is_some() {
            self.tick().await;
        } else {
            self.tick_detached().await;
        }
        self.publish();
    }

    /// A machine that wakes up finds other people beside its arm: what they allowed before is worth
    /// nothing, and what moved then stands.
    fn check_machine_sleep(&mut self) {
        let Some(slept) = self.own.clock.suspended_time() else {
            return;
        };
        let Some(before) = self.slept.replace(slept) else {
            return;
        };
        let for_ = slept.saturating_sub(before);
        if for_ <= SLEPT {
            return;
        }
        let why = format!(
            "the machine slept for {:.1} s: motion is disabled until an operator enables it again",
            for_.as_secs_f64()
        );
        match &mut self.job {
            Some(job) => {
                job.execution.halt();
                self.fault(&why);
            }
            None => tracing::warn!("{why}"),
        }
        // Last, for the next frame waits for it.
        self.own.permits.disable();
    }

    /// Returns whether a motion is held for an operator and nothing else is due.
    pub(super) fn is_held(&self) -> bool {
        let held = self
            .job
            .as_ref()
            .is_some_and(|job| job.execution.is_held() && job.failing.is_none() && !job.too_hot);
        held && self.stopping.is_none()
    }

    pub(super) fn is_idle(&self) -> bool {
        self.job.is_none() && self.stopping.is_none()
    }

    /// Simulated time stands still until the next sample is released and its recording has room; a stop waits for
    /// nothing.
    async fn wait_for_release(&self) {
        if !self.own.clock.is_simulated() {
            return;
        }
        let waits = |job: &&ActiveMotion| !job.is_released() || self.own.ticks.is_full();
        while let Some(job) = self.job.as_ref().filter(waits) {
            tokio::select! {
                biased;
                () = self.own.stop.woken() => {
                    if self.own.stop.is_requested(self.stops_seen) {
                        self.own.stop.wake();
                        return;
                    }
                }
                () = job.release.changed() => {}
                () = self.own.ticks.emptied() => {}
            }
        }
    }

    /// Until the next tick; an arm that stands is also woken by orders. A stop always wakes.
    #[expect(
        clippy::expect_used,
        reason = "without a timer ticks would follow each other as fast as the bus lets them, and the arm be that much faster than its plan"
    )]
    async fn wait_for_tick(&mut self) {
        let asleep = self.own.clock.is_simulated() && (self.is_idle() || self.is_held());
        let idle = self.is_idle() || asleep;
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
        let began = self.own.clock.now();
        let until = if idle {
            began.after(if self.link.is_some() {
                IDLE
            } else {
                self.reopen
            })
        } else {
            self.next_tick
        };
        // A simulated arm that stands costs nothing: its time stands still as well.
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
                    if idle || self.own.stop.is_requested(seen) {
                        self.next_tick = self.own.clock.now();
                        break;
                    }
                }
                fired = fired => {
                    fired.expect("the tick's timer");
                    break;
                }
            }
        }
        // Ticks do not drift; one that came late is not made up for by two.
        let now = self.own.clock.now();
        if !idle {
            self.snapshot.lateness.note(now.since(until));
            if until > began {
                self.snapshot.woken_late.note(now.since(until));
            }
        }
        self.next_tick = self.next_tick.after(PERIOD);
        if self.next_tick <= now {
            self.next_tick = now.after(PERIOD);
        }
    }

    async fn tick_detached(&mut self) {
        self.latch_stop();
        if self.stopping.is_some() {
            self.finish_stop(false);
        }
        let waited = self.own.clock.now().since(self.tried);
        if self.own.clock.is_simulated() || waited < self.reopen {
            return;
        }
        let fault = self.snapshot.fault.clone();
        self.reopen = (self.reopen * 2).min(REOPEN_MAX);
        let opened = self.open().await;
        self.tried = self.own.clock.now();
        if let Err(why) = opened {
            self.note_refused(&why);
        } else {
            tracing::info!("the arm is connected again; it moves after `reset`");
            self.refused = None;
            self.snapshot.state = MotionState::Faulted;
            self.snapshot.fault = fault;
        }
    }

    /// Tells why the port was not opened again: in the log once for each reason, and in what everybody
    /// sees until it is open.
    fn note_refused(&mut self, why: &MotionError) {
        let said = format!("the port was not opened again: {why}");
        if self.refused.as_ref() != Some(&said) {
            tracing::warn!("{said}");
            self.refused = Some(said);
        }
    }

    fn publish(&mut self) {
        self.snapshot.progress = self.job.as_ref().map(|job| job.execution.progress());
        if let (Some(job), Some(progress)) = (&self.job, self.snapshot.progress) {
            job.release.came_to(progress.sample, job.furthest());
        }
        if let (MotionState::Moving | MotionState::Held, Some(job)) =
            (self.snapshot.state, &self.job)
        {
            let held = job.execution.is_held();
            self.snapshot.state = if held {
                MotionState::Held
            } else {
                MotionState::Moving
            };
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
        self.snapshot.warnings.extend(self.refused.clone());
        if self.is_idle()
            && self.snapshot.state == MotionState::Stopped
            && self.own.permits.latched().is_none()
        {
            self.snapshot.state = MotionState::Holding;
        }
        self.keep_tick();
        let answers = std::mem::take(&mut self.answers);
        self.outbox.publish(self.snapshot.clone(), answers);
    }

    /// Copies the tick of a motion for its recording, where there is one.
    fn keep_tick(&self) {
        let (Some(job), Some(progress)) = (&self.job, self.snapshot.progress) else {
            return;
        };
        self.own.ticks.put(|serial, with_counts| MotionTick {
            serial,
            at: self.own.clock.now(),
            state: self.snapshot.state,
            setpoint_rad: *job.execution.goal_rad(),
            measured: self.snapshot.measured.clone(),
            progress,
            counts: with_counts.then(|| Box::new(self.snapshot.counts.clone())),
        });
    }
}

/// Returns whether the motion draws on the sheet.
pub(super) fn draws(proof: &CheckedTrajectory) -> bool {
    let mut spans = proof.trajectory().spans.iter();
    spans.any(|span| span.kind == SpanKind::Draw)
}
