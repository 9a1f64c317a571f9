//! The loop of an arm, which owns the port or its turns of it: one tick per period, a stop before anything else.

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
use super::held_pose::HeldPose;
use super::realtime_priority::set_realtime_priority;
use super::snapshot_publisher::{ReplyCallback, SnapshotPublisher};
use super::standstill::{StandstillDetector, counts_rad};
use super::{MotionError, MotionShared, MotionState, MotionTick, PortOpener, Snapshot};
use base::clock::{ClockAlarm, NodeClock};
use base::units::ClockInstant;
use driver::{ArmDriver, AttachReport, ServoIdentity};
use gate::{CheckedTrajectory, SagLead};
use link::ByteLink;
use permit::{PermitRegistry, StopLatch};
use plan::{PERIOD, SpanKind};

/// Interval at which an arm at rest is read: twice within the 100 ms of a servo's own watchdog.
const IDLE_PERIOD: Duration = Duration::from_millis(50);

/// First delay between attempts to reopen an unplugged port; it doubles up to the longest.
const REOPEN_DELAY: Duration = Duration::from_millis(100);
const REOPEN_MAX: Duration = Duration::from_secs(5);

/// Sleep of the machine from which its arm counts as left alone.
const SLEEP_MIN: Duration = Duration::from_millis(100);

/// Time without a tick that no busy machine explains: systemd's watchdog waits no longer either.
const PROCESS_SUSPENSION_MIN: Duration = Duration::from_secs(2);

/// Runs an arm's loop until it ends. `attached` receives the result of the first attach.
pub(super) async fn run_arm(
    shared: Arc<MotionShared>,
    port: PortOpener,
    publisher: SnapshotPublisher,
    attached: Sender<Result<(), MotionError>>,
) {
    let publisher = Arc::new(publisher);
    let body = AssertUnwindSafe(async {
        match ArmThread::attach(Arc::clone(&shared), port, Arc::clone(&publisher)).await {
            Ok(mut worker) => {
                let attached = attached.clone();
                worker
                    .replies
                    .push(Box::new(move || drop(attached.send(Ok(())))));
                worker.publish();
                worker.run().await;
            }
            Err(error) => {
                // The receiver is gone only if the process is ending.
                let _ = attached.send(Err(error));
            }
        }
    });
    if body.catch_unwind().await.is_err() {
        report_panic(&publisher, &shared.permits);
    }
    shared.commands.close();
}

/// Latches and publishes the fault of a panic. The servos hold the last goal.
fn report_panic(publisher: &SnapshotPublisher, permits: &PermitRegistry) {
    let reason = "the arm's thread failed; the arm holds its last goal; restart the node";
    permits.latch(StopLatch::Fault(reason.to_owned()));
    publisher.fail(reason.to_owned());
}

/// The state of the thread.
pub(super) struct ArmThread {
    pub(super) shared: Arc<MotionShared>,
    port: PortOpener,
    publisher: Arc<SnapshotPublisher>,
    pub(super) link: Option<Box<dyn ByteLink>>,
    pub(super) driver: ArmDriver,
    /// The clock that the arm's thread waits on, which may be that of other arms as well.
    clock: NodeClock,
    pub(super) alarm: ClockAlarm,
    pub(super) snapshot: Snapshot,
    pub(super) job: Option<ActiveMotion>,
    pub(super) stopping: Option<ActiveStop>,
    pub(super) stops_seen: u64,
    /// The latch of a fault, while a reader of the latches delays it.
    pub(super) latching: Option<StopLatch>,
    pub(super) next_tick: ClockInstant,
    /// When the machine last ran the thread late.
    pub(super) starved_at: Option<ClockInstant>,
    pub(super) standstill: StandstillDetector,
    pub(super) reached_rad: f64,
    pub(super) held_pose: HeldPose,
    /// The last job whose pen's depth was trimmed, and how much deeper than planned.
    pub(super) kept_trim: Option<(String, f64)>,
    /// What is known of how the joints yield.
    pub(super) sag: SagLead,
    pub(super) failures: u32,
    /// Reason that the last cycle gave no reading.
    pub(super) last_failure: Option<String>,
    /// Time limit of a cycle.
    pub(super) cycle_time: Duration,
    pub(super) bus_health: BusHealth,
    pub(super) reopen_delay: Duration,
    /// Reason that the last attempt to reopen the port failed.
    open_error: Option<String>,
    /// Time of the last attempt to reopen: waking the thread must not bring the next one forward.
    tried_at: ClockInstant,
    pub(super) is_ending: bool,
    /// The machine's total sleep when it was last checked.
    suspended: Option<Duration>,
    /// The machine's time at the last tick of an attached arm, or after the last of a detached one, which may take long.
    ticked_at: Option<Duration>,
    /// Replies to commands, to be sent with the next snapshot.
    pub(super) replies: Vec<ReplyCallback>,
}

impl ArmThread {
    async fn attach(
        shared: Arc<MotionShared>,
        port: PortOpener,
        publisher: Arc<SnapshotPublisher>,
    ) -> Result<Self, MotionError> {
        let clock = shared.clock.seated();
        let alarm = clock.alarm().map_err(MotionError::NoTimer)?;
        let driver = ArmDriver::new(&shared.arm, &clock);
        let mut worker = Self {
            next_tick: shared.clock.now(),
            starved_at: None,
            standstill: StandstillDetector::new(&shared.arm),
            reached_rad: REACHED_COUNTS
                * counts_rad(&shared.arm).iter().copied().fold(0.0, f64::max),
            held_pose: HeldPose::default(),
            kept_trim: None,
            sag: SagLead::none(&shared.arm),
            shared,
            port,
            publisher,
            link: None,
            driver,
            clock,
            alarm,
            snapshot: Snapshot::default(),
            job: None,
            stopping: None,
            stops_seen: 0,
            latching: None,
            failures: 0,
            last_failure: None,
            cycle_time: PERIOD,
            bus_health: BusHealth::default(),
            reopen_delay: REOPEN_DELAY,
            open_error: None,
            tried_at: ClockInstant::ZERO,
            is_ending: false,
            suspended: None,
            ticked_at: None,
            replies: Vec::new(),
        };
        worker.open().await?;
        worker.request_realtime_priority();
        Ok(worker)
    }

    /// Requests real-time priority once the port is open: the lookups for it are not urgent. A simulated
    /// clock waits for its thread anyway.
    fn request_realtime_priority(&mut self) {
        if self.shared.clock.is_simulated() {
            return;
        }
        match set_realtime_priority() {
            Ok(()) => self.snapshot.is_ahead = true,
            Err(error) => tracing::debug!(
                "the arm's thread has no real-time priority ({error}), so its ticks are late on a busy machine. `rtprio 10` in `/etc/security/limits.d` allows it for a user, `LimitRTPRIO=10` for a systemd unit"
            ),
        }
    }

    async fn open(&mut self) -> Result<(), MotionError> {
        let mut link = (self.port)(&self.clock)?;
        let attached = self.driver.attach(link.as_mut()).await;
        let attached = attached.map_err(|source| MotionError::Attach {
            port: link.name().to_owned(),
            source,
        })?;
        self.check_same_arm(&attached.servos)?;
        for warning in &attached.warnings {
            tracing::warn!(port = link.name(), "{warning}");
        }
        self.link = Some(link);
        self.failures = 0;
        self.cycle_time = bus_health::cycle_time(attached.latency);
        self.bus_health
            .reset(&attached, self.shared.arm.file.family);
        self.reopen_delay = REOPEN_DELAY;
        self.sag = self.sag_of(&attached);
        self.snapshot.identity = Arc::new(attached.servos);
        self.snapshot.measured = Some(Arc::new(attached.measured));
        self.snapshot.state = MotionState::Holding;
        Ok(())
    }

    /// Returns how the joints yield by the gains and the supply of the servos that were found.
    fn sag_of(&self, attached: &AttachReport) -> SagLead {
        let gain_p = |id: u8| {
            let servo = attached.servos.iter().find(|servo| servo.servo.id == id)?;
            servo.gain_p
        };
        let supplies = attached.measured.servos.iter();
        let lowest_v = supplies
            .filter_map(|servo| servo.voltage_v)
            .reduce(f64::min);
        SagLead::new(&self.shared.arm, gain_p, lowest_v)
    }

    /// Refuses another arm, with other zeros, behind a port that came back.
    fn check_same_arm(&self, found: &[ServoIdentity]) -> Result<(), MotionError> {
        let previous = self.snapshot.identity.iter();
        let other = previous
            .zip(found)
            .find(|(previous, found)| !previous.is_same(found));
        match other {
            None => Ok(()),
            Some((_, found)) => Err(MotionError::OtherArm(found.servo.clone())),
        }
    }

    async fn run(&mut self) {
        while !(self.is_ending && self.is_idle()) {
            self.wait_for_beginning().await;
            self.wait_for_release().await;
            self.wait_for_tick().await;
            let job = self.job.as_ref();
            let span = job.map_or_else(Span::none, |job| job.span.clone());
            self.run_tick().instrument(span).await;
            if let Some(heartbeat) = self.shared.heartbeat.get() {
                heartbeat();
            }
        }
    }

    async fn run_tick(&mut self) {
        self.check_suspension();
        self.take_stop();
        self.take_command().await;
        let was_attached = self.link.is_some();
        let began_at = self.shared.clock.machine_time();
        if was_attached {
            self.tick().await;
        } else {
            self.tick_detached().await;
        }
        self.ticked_at = match was_attached && self.link.is_some() {
            true => began_at,
            false => self.shared.clock.machine_time(),
        };
        self.publish();
    }

    /// Disables motion after the machine or the process was suspended, and halts a motion under way: the people next to the
    /// arm may be others now.
    fn check_suspension(&mut self) {
        let (sleep, suspension) = (self.machine_sleep(), self.process_suspension());
        let (what, time) = match (sleep, suspension) {
            (Some(time), _) => ("the machine slept", time),
            (None, Some(time)) => ("this process was suspended", time),
            (None, None) => return,
        };
        self.driver.doubt_torque();
        let reason = format!(
            "{what} for {:.1} s: motion is disabled until an operator enables it again",
            time.as_secs_f64()
        );
        match &mut self.job {
            Some(job) => {
                job.execution.halt();
                self.fault(&reason);
            }
            None => tracing::warn!("{reason}"),
        }
        // Last, because the next frame waits for it.
        self.shared.permits.disable();
    }

    /// Returns the time that the machine slept since this was last asked, if it is long enough to matter.
    fn machine_sleep(&mut self) -> Option<Duration> {
        let suspended = self.shared.clock.suspended_time()?;
        let slept = suspended.saturating_sub(self.suspended.replace(suspended)?);
        (slept > SLEEP_MIN).then_some(slept)
    }

    /// Returns the time without a tick, if it is too long for a busy machine, as after Ctrl-Z or in a frozen container.
    fn process_suspension(&self) -> Option<Duration> {
        let now = self.shared.clock.machine_time()?;
        let silent = now.saturating_sub(self.ticked_at?);
        let pause = match self.link {
            Some(_) => Duration::ZERO,
            None => self.reopen_delay,
        };
        (silent > PROCESS_SUSPENSION_MIN + pause).then_some(silent)
    }

    /// Returns whether a motion is held for an operator and nothing else is due.
    pub(super) fn is_held(&self) -> bool {
        let is_held = self
            .job
            .as_ref()
            .is_some_and(|job| job.execution.is_held() && job.failure.is_none() && !job.is_too_hot);
        is_held && self.stopping.is_none()
    }

    pub(super) fn is_idle(&self) -> bool {
        self.job.is_none() && self.stopping.is_none()
    }

    /// Waits, in simulated time, until every arm has begun that is carried out together with this one. Neither a stop nor a
    /// command waits.
    async fn wait_for_beginning(&mut self) {
        if !self.shared.clock.is_simulated() {
            return;
        }
        let mut has_waited = false;
        while self.awaits_beginning() {
            tokio::select! {
                biased;
                () = self.shared.stop.woken() => has_waited = true,
                () = self.clock.sleep_until(self.next_tick) => return,
            }
        }
        if has_waited {
            self.shared.stop.wake();
            self.next_tick = self.shared.clock.now();
        }
    }

    /// Reads an arm in the middle of a motion that slept while its clock jumped: its last reading is out of date.
    async fn read_after_sleep(&mut self) {
        let now = self.shared.clock.now();
        let measured = self.snapshot.measured.as_ref();
        let is_old = measured.is_some_and(|measured| now.since(measured.at) > IDLE_PERIOD + PERIOD);
        if self.job.is_some() && is_old {
            self.cycle(None).await;
        }
    }

    fn awaits_beginning(&self) -> bool {
        let job = self.job.as_ref();
        let is_called = self.stopping.is_some()
            || self.shared.stop.is_requested(self.stops_seen)
            || !self.shared.commands.is_empty();
        !is_called && job.is_some_and(|job| job.execution.awaits_beginning())
    }

    /// Waits in simulated time until the next sample is released and the recording has room; a stop
    /// does not wait.
    async fn wait_for_release(&self) {
        if !self.shared.clock.is_simulated() {
            return;
        }
        let waits = |job: &&ActiveMotion| {
            let is_ready = job.is_released() && !self.shared.ticks.is_full();
            !is_ready && !job.execution.is_neighbour_stopped()
        };
        while let Some(job) = self.job.as_ref().filter(waits) {
            tokio::select! {
                biased;
                () = self.shared.stop.woken() => {
                    if self.shared.stop.is_requested(self.stops_seen) {
                        self.shared.stop.wake();
                        return;
                    }
                }
                () = job.release.changed() => {}
                () = self.shared.ticks.wait_for_room() => {}
            }
        }
    }

    /// Waits for the next tick. An arm at rest is also woken by commands, and any arm by a stop.
    #[expect(
        clippy::expect_used,
        reason = "without a timer the ticks, and with them the arm, would run as fast as the bus allows"
    )]
    async fn wait_for_tick(&mut self) {
        let is_asleep = self.shared.clock.is_simulated() && (self.is_idle() || self.is_held());
        let is_idle = self.is_idle() || is_asleep;
        if is_idle && !self.shared.commands.is_empty() {
            return;
        }
        // During a stop, another stop waits for the tick: each would otherwise bring the next frame
        // forward and speed the arm up.
        let stops_seen = if self.stopping.is_some() {
            u64::MAX
        } else {
            self.stops_seen
        };
        let began_at = self.shared.clock.now();
        let until = if is_idle {
            began_at.after(if self.link.is_some() {
                IDLE_PERIOD
            } else {
                self.reopen_delay
            })
        } else {
            self.next_tick
        };
        // Simulated arms at rest cost nothing: their time stands still as well.
        loop {
            let timer = async {
                if is_asleep {
                    self.clock.sleep_until(until).await;
                    return Ok(());
                }
                self.alarm.until(until).await
            };
            tokio::select! {
                biased;
                () = self.shared.stop.woken() => {
                    if is_idle || self.shared.stop.is_requested(stops_seen) {
                        self.next_tick = self.shared.clock.now();
                        break;
                    }
                }
                timer = timer => {
                    timer.expect("the tick's timer");
                    break;
                }
            }
        }
        if is_asleep {
            self.read_after_sleep().await;
        }
        // Ticks do not drift; a late one is not made up for by two.
        let now = self.shared.clock.now();
        self.note_late(until.max(began_at));
        if !is_idle {
            self.snapshot.lateness.note(now.since(until));
            if until > began_at {
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
        let waited = self.shared.clock.now().since(self.tried_at);
        if self.shared.clock.is_simulated() || waited < self.reopen_delay {
            return;
        }
        let fault = self.snapshot.fault.as_deref();
        let fault = fault.map(Self::fault_after_reopening);
        self.reopen_delay = (self.reopen_delay * 2).min(REOPEN_MAX);
        let opened = self.open().await;
        self.tried_at = self.shared.clock.now();
        if let Err(error) = opened {
            self.report_open_error(&error);
        } else {
            tracing::info!("the arm is connected again. Next: `reset`");
            self.open_error = None;
            self.snapshot.state = MotionState::Faulted;
            self.snapshot.fault = fault;
        }
    }

    /// Reports why the port was not reopened: once per reason in the log, and in the snapshots until it
    /// is open.
    fn report_open_error(&mut self, error: &MotionError) {
        let warning = format!("cannot open the port again: {error}");
        if self.open_error.as_ref() != Some(&warning) {
            tracing::warn!("{warning}");
            self.open_error = Some(warning);
        }
    }

    fn publish(&mut self) {
        self.snapshot.progress = self.job.as_ref().map(|job| job.execution.progress());
        let job = self.job.as_ref();
        self.snapshot.depth_trim = job.and_then(|job| job.execution.depth_trim());
        self.snapshot.is_held_with_other =
            job.is_some_and(|job| job.execution.is_held_with_other());
        if let (Some(job), Some(progress)) = (&self.job, self.snapshot.progress) {
            job.release.came_to(progress.sample, job.furthest());
        }
        if let (MotionState::Moving | MotionState::Held, Some(job)) =
            (self.snapshot.state, &self.job)
        {
            let is_held = job.execution.is_held();
            self.snapshot.state = if is_held {
                MotionState::Held
            } else {
                MotionState::Moving
            };
        }
        // After a servo restarted, or the port came back, other servos may still hold torque.
        self.snapshot.energised = self.driver.is_energised()
            || self.snapshot.measured.as_ref().is_some_and(|measured| {
                measured
                    .servos
                    .iter()
                    .any(|servo| servo.torque_on == Some(true))
            });
        self.snapshot.is_unsteady = self.is_unsteady();
        self.snapshot.counts = self.driver.counts().clone();
        self.snapshot.warnings = self.bus_health.warnings();
        self.snapshot.warnings.extend(self.open_error.clone());
        if self.is_idle()
            && self.snapshot.state == MotionState::Stopped
            && self.shared.permits.latched().is_none()
        {
            self.snapshot.state = MotionState::Holding;
        }
        self.record_tick();
        let replies = std::mem::take(&mut self.replies);
        self.publisher.publish(self.snapshot.clone(), replies);
    }

    /// Returns whether an arm without a motion was not seen to stand.
    fn is_unsteady(&self) -> bool {
        let stop = self.snapshot.stop.as_ref();
        let is_unverified = stop.is_some_and(|stop| !stop.verified);
        let is_standing = self.standstill.is_standing(ClockInstant::ZERO);
        self.is_idle() && ((is_unverified && !is_standing) || self.standstill.is_moving())
    }

    /// Copies the tick of a motion for its recording, if there is one.
    fn record_tick(&self) {
        let (Some(job), Some(progress)) = (&self.job, self.snapshot.progress) else {
            return;
        };
        self.shared.ticks.put(|serial, with_counts| MotionTick {
            serial,
            at: self.shared.clock.now(),
            state: self.snapshot.state,
            setpoint_rad: *job.execution.goal_rad(),
            lead_rad: job.execution.sag().lead_rad(job.execution.goal_rad()),
            measured: self.snapshot.measured.clone(),
            progress,
            depth_trim_mm: self.snapshot.depth_trim.map_or(0.0, |trim| trim.now_mm),
            counts: with_counts.then(|| Box::new(self.snapshot.counts.clone())),
        });
    }
}

/// Returns whether the motion draws on the sheet.
pub(super) fn draws(proof: &CheckedTrajectory) -> bool {
    let mut spans = proof.trajectory().spans.iter();
    spans.any(|span| span.kind == SpanKind::Draw)
}
