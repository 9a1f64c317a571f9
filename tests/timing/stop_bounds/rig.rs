//! A simulated arm that records the arrival of its goals, a motion that is fast at once, and histograms.

use std::sync::{Arc, Mutex, mpsc};
use std::time::Duration;

use nalgebra::Point3;
use steadyhand::clock::NodeClock;
use steadyhand::gate;
use steadyhand::link::memory::{FarEnd, MemoryLink};
use steadyhand::link::{ByteLink, LinkError, pty};
use steadyhand::motion::{MotionHandle, PortOpener, STARVED, StopReport};
use steadyhand::permit::{ActorRank, MotionPermit, PermitRegistry};
use steadyhand::plan::{self, SilentObserver, SpanKind, Trajectory, TrajectorySpan};
use steadyhand::scene::{Scene, SceneLibrary};
use steadyhand::sim::ArmSimulator;
use steadyhand::units::{ClockInstant, JointVector};
use tokio_util::sync::{CancellationToken, DropGuard};

use super::far_end::{self, Family};
use super::wire::WireLink;

/// Words by which an arm says that the machine, or the simulated one's thread, was not run in time.
const TOO_BUSY: [&str; 2] = [STARVED, "no reply from servo"];

type Heard = Arc<Mutex<Vec<(ClockInstant, Vec<u8>)>>>;

/// A simulated arm that records the arrival of its goals.
struct Ear {
    sim: ArmSimulator,
    received: Heard,
    /// Frames of which a busy machine has brought only the beginning, and when that came.
    begun: Option<(ClockInstant, Vec<u8>)>,
}

impl Ear {
    fn new(sim: ArmSimulator, received: Heard) -> Self {
        Self {
            sim,
            received,
            begun: None,
        }
    }
}

/// Returns whether these are whole frames: FF FF ID LENGTH, and as many bytes as that.
fn are_whole(mut bytes: &[u8]) -> bool {
    while let [0xFF, 0xFF, _, length, rest @ ..] = bytes {
        let Some(next) = rest.get(usize::from(*length)..) else {
            return false;
        };
        bytes = next;
    }
    bytes.is_empty()
}

impl FarEnd for Ear {
    fn hear(&mut self, at: ClockInstant, bytes: &[u8]) {
        let (began, mut frames) = self.begun.take().unwrap_or((at, Vec::new()));
        frames.extend(bytes);
        if are_whole(&frames) {
            self.received.lock().unwrap().push((began, frames));
        } else {
            self.begun = Some((began, frames));
        }
        self.sim.hear(at, bytes);
    }

    fn next_due(&self) -> Option<ClockInstant> {
        self.sim.next_due()
    }

    fn speak(&mut self, now: ClockInstant, into: &mut Vec<u8>) {
        self.sim.speak(now, into);
    }

    fn tune(&mut self, baud: u32) {
        self.sim.tune(baud);
    }

    fn is_plugged(&self) -> bool {
        self.sim.is_plugged()
    }
}

pub(super) struct Rig {
    pub(super) scene: Arc<Scene>,
    received: Heard,
    permits: Arc<PermitRegistry>,
    pub(super) clock: NodeClock,
    /// Its ports close with it.
    over: CancellationToken,
    _end: DropGuard,
}

impl Rig {
    pub(super) fn new(clock: NodeClock) -> Self {
        let over = CancellationToken::new();
        Self {
            _end: over.clone().drop_guard(),
            over,
            scene: SceneLibrary::new(None).scene("default", None).unwrap(),
            received: Heard::default(),
            permits: Arc::new(PermitRegistry::everything()),
            clock,
        }
    }

    /// In a scene of its own.
    pub(super) fn in_scene(name: &str, text: &str, clock: NodeClock) -> Self {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join(format!("{name}.toml")), text).unwrap();
        let library = SceneLibrary::new(Some(folder.path().to_owned()));
        Self {
            scene: library.scene(name, None).unwrap(),
            ..Self::new(clock)
        }
    }

    fn ear(&self) -> Ear {
        Ear::new(
            ArmSimulator::new(&self.scene.arm, &self.scene.rest_rad),
            Arc::clone(&self.received),
        )
    }

    fn start(&self, open: PortOpener) -> MotionHandle {
        let (arm, permits) = (Arc::clone(&self.scene.arm), Arc::clone(&self.permits));
        MotionHandle::start(arm, self.clock.clone(), permits, open).unwrap()
    }

    /// In this process, without a wire.
    pub(super) fn in_memory(&self) -> MotionHandle {
        let (sim, received) = (self.ear().sim, Arc::clone(&self.received));
        self.start(Box::new(move |clock| {
            let (sim, received) = (sim.clone(), Arc::clone(&received));
            let link = MemoryLink::new(Ear::new(sim, received), clock, "bounds");
            Ok(Box::new(link.map_err(LinkError::Read)?) as Box<dyn ByteLink>)
        }))
    }

    /// On a wire, with a thread of its own.
    pub(super) fn on_a_wire(&self) -> MotionHandle {
        let (sim, received) = (self.ear().sim, Arc::clone(&self.received));
        self.start(Box::new(move |clock| {
            let (sim, received) = (sim.clone(), Arc::clone(&received));
            let link = WireLink::to(Ear::new(sim, received), clock).map_err(LinkError::Read)?;
            Ok(Box::new(link) as Box<dyn ByteLink>)
        }))
    }

    /// The path of a pseudo-terminal that the arm is at.
    pub(super) fn port(&self) -> String {
        let (ear, clock, over) = (self.ear(), self.clock.clone(), self.over.clone());
        let (tell, path) = mpsc::channel();
        std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread()
                .enable_all()
                .build();
            runtime.unwrap().block_on(async {
                let open = |path: &std::path::Path| {
                    tell.send(path.to_str().unwrap().to_owned()).unwrap();
                };
                let _ = over
                    .run_until_cancelled(pty::serve(ear, &clock, open))
                    .await;
            });
        });
        path.recv().unwrap()
    }

    fn leave(&self) -> MotionPermit {
        self.permits.ask(&self.scene, self.clock.now()).unwrap()
    }

    /// Ends the latch of a stop that was the test's own.
    pub(super) fn release(&self) {
        let reset = self
            .permits
            .ask_reset(&self.scene, ActorRank::Operator, self.clock.now());
        assert!(self.permits.unlatch(&reset.unwrap()));
    }

    /// Returns how far the tip is from the first joint's axis, which is not the arm's origin.
    pub(super) fn tip_radius_m(&self, q: &JointVector) -> f64 {
        const STEP_RAD: f64 = 1e-6;
        let tip = |q: &JointVector| self.scene.arm.chain.forward(q) * self.scene.pens[0].tip_m;
        let rotated = q.map(|joint, at| if joint == 0 { at + STEP_RAD } else { at });
        (tip(&rotated) - tip(q)).norm() / STEP_RAD
    }

    /// About the foot, from where it stands to the other side, as fast as travels may be, or so many
    /// times slower.
    fn swing(&self, from: &JointVector, way_rad: f64, slower: f64) -> Trajectory {
        let by = if from[0] > 0.0 { -way_rad } else { way_rad };
        let tip_mm = self.tip_radius_m(from) * way_rad * 1e3;
        // The smooth step's fastest is 1.875 times its mean.
        let seconds = slower * 1.875 * tip_mm / (self.scene.limits.travel_mm_s * 0.99);
        let ticks = (seconds / 0.01).ceil() as u32;
        let samples = (0..=ticks).map(|tick| {
            let fraction = f64::from(tick) / f64::from(ticks);
            let way = fraction.powi(3) * (10.0 + fraction * (6.0 * fraction - 15.0));
            from.map(|joint, at| if joint == 0 { at + by * way } else { at })
        });
        let samples: Vec<JointVector> = samples.collect();
        let span = TrajectorySpan {
            kind: SpanKind::Pose,
            item: None,
            pen: 0,
            first: 0,
            end: samples.len(),
        };
        Trajectory {
            reached: Vec::new(),
            period: Duration::from_millis(10),
            samples,
            spans: vec![span],
        }
    }

    /// Brings a swing to its `share`: half is where it is fastest. A machine that is too busy to read the arm in time makes that
    /// a fault, which is what it should be: then it is tried again, so often as makes sense.
    pub(super) async fn swings(
        &self,
        motion: &MotionHandle,
        (way_rad, slower): (f64, f64),
        fraction: f64,
    ) {
        const TRIES: usize = 20;
        for _ in 0..TRIES {
            match self.swings_once(motion, (way_rad, slower), fraction).await {
                Ok(()) => return,
                Err(why) if TOO_BUSY.iter().any(|expected| why.contains(expected)) => {
                    self.release();
                }
                Err(why) => panic!("{why}"),
            }
        }
        panic!("the machine was too busy {TRIES} times");
    }

    async fn swings_once(
        &self,
        motion: &MotionHandle,
        (way_rad, slower): (f64, f64),
        fraction: f64,
    ) -> Result<(), String> {
        let start = motion.snapshot().measured.unwrap();
        let swing = self.swing(&start.position_rad, way_rad, slower);
        let expected = (swing.samples.len() as f64 * fraction) as usize;
        let now = self.clock.now();
        let proof = gate::check(&self.scene, self.leave(), &start, now, swing).unwrap();
        let mut ended = motion.run(proof, motion.stops_requested());
        let mut snapshots = motion.watch();
        let fast = snapshots
            .wait_for(|observed| observed.progress.is_some_and(|at| at.sample >= expected));
        tokio::select! {
            fast = fast => fast.map(|_| ()).map_err(|error| error.to_string()),
            ended = &mut ended => Err(format!("{ended:?}")),
        }
    }

    /// Draws the scene as far as the middle of its first stroke.
    pub(super) async fn draws(&self, motion: &MotionHandle) {
        let start = motion.snapshot().measured.unwrap();
        let plan = plan::draw(&self.scene, &start.position_rad, &SilentObserver).unwrap();
        let mut spans = plan.trajectory.spans.iter();
        let stroke = spans.find(|span| span.kind == SpanKind::Draw).unwrap();
        let middle = usize::midpoint(stroke.first, stroke.end);
        let now = self.clock.now();
        let proof = gate::check(&self.scene, self.leave(), &start, now, plan.trajectory).unwrap();
        let mut ended = motion.run(proof, motion.stops_requested());
        let mut snapshots = motion.watch();
        let there =
            snapshots.wait_for(|observed| observed.progress.is_some_and(|at| at.sample >= middle));
        tokio::select! {
            there = there => drop(there.unwrap()),
            ended = &mut ended => panic!("{ended:?}"),
        }
    }

    /// Returns the recent commanded speed of the tip, by the received goals; `None` from too few.
    pub(super) fn speed_mm_s(&self) -> Option<f64> {
        const FRAMES: usize = 20;
        let tips = self.tips();
        let from = tips.len().checked_sub(FRAMES)?;
        let ((then, from), (now, to)) = (tips[from], tips[tips.len() - 1]);
        Some((to - from).norm() * 1e3 / now.seconds_since(then))
    }

    /// Returns the commanded tip position of each received frame with goals.
    pub(super) fn tips(&self) -> Vec<(ClockInstant, Point3<f64>)> {
        let received = self.received.lock().unwrap();
        let tips = received.iter().filter_map(|(at, bytes)| {
            let goals = far_end::goals(Family::Sts, bytes)?;
            Some((*at, self.tip_of(&goals)?))
        });
        tips.collect()
    }

    /// Returns where goals send the tip of the first pen.
    fn tip_of(&self, goals: &[(u8, i32)]) -> Option<Point3<f64>> {
        let servos = self.scene.arm.servos();
        let angles: Option<Vec<f64>> = servos
            .map(|(_, servo)| {
                let (_, ticks) = goals.iter().find(|(id, _)| *id == servo.id)?;
                Some(servo.angle_rad(*ticks))
            })
            .collect();
        let frame = self
            .scene
            .arm
            .chain
            .forward(&JointVector::from_slice(&angles?));
        Some(frame * self.scene.pens[0].tip_m)
    }

    /// Returns the goals of the first joint in the frames received from a moment on.
    pub(super) fn goals_since(&self, since: ClockInstant) -> Vec<(ClockInstant, i32)> {
        let received = self.received.lock().unwrap();
        let frames = received.iter().filter(|(at, _)| *at >= since);
        frames
            .filter_map(|(at, bytes)| {
                let goals = far_end::goals(Family::Sts, bytes)?;
                let (_, ticks) = goals.into_iter().find(|(id, _)| *id == 1)?;
                Some((*at, ticks))
            })
            .collect()
    }

    /// Returns when the far end heard the first frame with goals from `since` on, counted from `asked`.
    pub(super) fn heard_ms(&self, since: ClockInstant, asked_at: ClockInstant) -> f64 {
        let goals = self.goals_since(since);
        goals[0].0.seconds_since(asked_at) * 1e3
    }

    /// Forgets the goals received so far, which have been checked.
    pub(super) fn forget(&self) {
        self.received.lock().unwrap().clear();
    }

    /// From a request to the stop's first frame, as the far end heard it; and that nothing but the
    /// stop came after: ever smaller steps the same way, then none.
    pub(super) fn first_frame_ms(&self, asked_at: ClockInstant, report: &StopReport) -> f64 {
        let said_ms = report.first_frame_ms.unwrap();
        let goals = self.goals_since(asked_at);
        // It is said once the wire has taken it, counted from when it was asked in there: frames are a period apart.
        let off_ms = |at: &ClockInstant| (at.seconds_since(asked_at) * 1e3 - said_ms).abs();
        let own = (0..goals.len()).min_by(|a, b| {
            let [a, b] = [a, b].map(|index| off_ms(&goals[*index].0));
            a.total_cmp(&b)
        });
        let own = &goals[own.unwrap()..];
        let steps: Vec<i32> = own.windows(2).map(|pair| pair[1].1 - pair[0].1).collect();
        let way = steps.iter().sum::<i32>().signum();
        for pair in steps.windows(2) {
            // A count of rounding either way.
            assert!(
                pair[1] * way <= pair[0] * way + 1 && pair[1] * way >= 0,
                "{steps:?}"
            );
        }
        own[0].0.seconds_since(asked_at) * 1e3
    }
}

/// One line a bucket: up to 1 ms, 2, 5, 10 and so on.
pub(super) fn print_histogram(title: &str, all_ms: &[f64]) {
    const ENDS: [f64; 10] = [
        0.1,
        0.2,
        0.5,
        1.0,
        2.0,
        5.0,
        10.0,
        50.0,
        300.0,
        f64::INFINITY,
    ];
    eprintln!(
        "{title}: {} stops, median {:.2} ms, p99 {:.2} ms, longest {:.2} ms",
        all_ms.len(),
        quantile(all_ms, 0.5),
        quantile(all_ms, 0.99),
        quantile(all_ms, 1.0)
    );
    let mut from = 0.0;
    for end in ENDS {
        let count = all_ms.iter().filter(|ms| (from..end).contains(*ms)).count();
        if count > 0 {
            eprintln!(
                "  {from:>6.1} to {end:>6.1} ms {count:>5} {}",
                "#".repeat(count.min(60))
            );
        }
        from = end;
    }
}

pub(super) fn quantile(all: &[f64], fraction: f64) -> f64 {
    let mut sorted = all.to_vec();
    sorted.sort_by(f64::total_cmp);
    let rank = (fraction * sorted.len() as f64).ceil() as usize;
    sorted[rank.saturating_sub(1)]
}

/// A thread that does nothing but measure how late it is woken.
pub(super) struct BaselineThread {
    request: mpsc::Sender<ClockInstant>,
    delays_ms: mpsc::Receiver<f64>,
    clock: NodeClock,
}

impl BaselineThread {
    pub(super) fn start(clock: &NodeClock) -> Self {
        let (request, asked_at) = mpsc::channel::<ClockInstant>();
        let (sender, delays_ms) = mpsc::channel();
        let own = clock.clone();
        std::thread::spawn(move || {
            while let Ok(at) = asked_at.recv() {
                if sender.send(own.now().seconds_since(at) * 1e3).is_err() {
                    return;
                }
            }
        });
        Self {
            request,
            delays_ms,
            clock: clock.clone(),
        }
    }

    pub(super) fn wake(&self) -> f64 {
        self.request.send(self.clock.now()).unwrap();
        self.delays_ms.recv().unwrap()
    }
}
