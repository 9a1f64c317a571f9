//! The bytes that leave the port after a stop: the stop's own frames, ever slower, then up, then nothing new.
#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::disallowed_methods,
    reason = "a failing test may panic"
)]

use std::sync::{Arc, Mutex};
use std::time::Duration;

use steadyhand::clock::NodeClock;
use steadyhand::gate;
use steadyhand::link::memory::MemoryLink;
use steadyhand::link::{ByteLink, LinkError, LinkFuture};
use steadyhand::motion::{MotionHandle, PortOpener};
use steadyhand::permit::{ActorRank, PermitRegistry};
use steadyhand::plan::{self, SilentObserver, SpanKind};
use steadyhand::scene::{Scene, SceneLibrary};
use steadyhand::sim::ArmSimulator;
use steadyhand::units::{ClockInstant, JointVector};

type Log = Arc<Mutex<Vec<Vec<u8>>>>;

/// A wire that keeps what was sent.
struct Tapped(MemoryLink<ArmSimulator>, Log);

impl ByteLink for Tapped {
    fn send<'a>(&'a mut self, bytes: &'a [u8]) -> LinkFuture<'a, ()> {
        self.1.lock().unwrap().push(bytes.to_vec());
        self.0.send(bytes)
    }

    fn receive<'a>(&'a mut self, into: &'a mut [u8], until: ClockInstant) -> LinkFuture<'a, usize> {
        self.0.receive(into, until)
    }

    fn discard_input(&mut self) -> Result<(), LinkError> {
        self.0.discard_input()
    }

    fn name(&self) -> &str {
        self.0.name()
    }
}

/// Goals of the joints' servos, 1 to 5, from every sync write of the goal block (address 41).
fn goals(log: &[Vec<u8>]) -> Vec<[i32; 5]> {
    let mut found = Vec::new();
    for bytes in log {
        // FF FF FE LEN 83 ADDRESS LENGTH (ID ACC POS POS TIME TIME SPEED SPEED)* CHECKSUM
        if bytes.len() < 8 || bytes[..3] != [0xFF, 0xFF, 0xFE] || bytes[4..7] != [0x83, 41, 7] {
            continue;
        }
        let end = 4 + usize::from(bytes[3]) - 1;
        let mut joints = [0; 5];
        for block in bytes[7..end].chunks_exact(8) {
            if let Some(joint) = joints.get_mut(usize::from(block[0]) - 1) {
                *joint = i32::from(u16::from_le_bytes([block[2], block[3]]));
            }
        }
        found.push(joints);
    }
    found
}

fn height_mm(scene: &Scene, ticks: &[i32; 5]) -> f64 {
    let angles: Vec<f64> = scene
        .arm
        .servos()
        .zip(ticks)
        .map(|((_, servo), ticks)| servo.angle_rad(*ticks))
        .collect();
    let tip = scene.arm.chain.forward(&JointVector::from_slice(&angles)) * scene.pens[0].tip_m;
    scene.surface.project(&tip).height_mm
}

#[tokio::test(flavor = "multi_thread")]
async fn after_a_stop_only_the_stop_leaves_the_port() {
    let scene = SceneLibrary::new(None).scene("default", None).unwrap();
    let simulator = ArmSimulator::new(&scene.arm, &scene.rest_rad);
    let log: Log = Arc::default();
    let (device, kept) = (simulator.clone(), Arc::clone(&log));
    let open: PortOpener = Box::new(move |clock| {
        let link = MemoryLink::new(device.clone(), clock, "tapped").map_err(LinkError::Read)?;
        Ok(Box::new(Tapped(link, Arc::clone(&kept))) as Box<dyn ByteLink>)
    });
    let permits = Arc::new(PermitRegistry::everything());
    let motion = MotionHandle::start(
        Arc::clone(&scene.arm),
        NodeClock::starvation_tolerant(),
        Arc::clone(&permits),
        open,
    )
    .unwrap();
    let start = motion.snapshot().measured.unwrap();
    let plan = plan::draw(&scene, &start.position_rad, &SilentObserver).unwrap();
    let start = motion.snapshot().measured.unwrap();
    let permit = permits.ask(&scene, motion.clock().now()).unwrap();
    let checked = gate::check(
        &scene,
        permit,
        &start,
        motion.clock().now(),
        plan.trajectory,
    )
    .unwrap();
    let outcome = motion.run(checked, motion.stops_requested());
    let drawing = |snapshot: &steadyhand::motion::Snapshot| {
        snapshot.progress.is_some_and(|p| p.doing == SpanKind::Draw)
    };
    motion.watch().wait_for(drawing).await.unwrap();
    tokio::time::timeout(Duration::from_millis(300), std::future::pending::<()>())
        .await
        .unwrap_err();
    let ticket = motion.stop(ActorRank::Planner, false);
    let before = log.lock().unwrap().len();
    let report = motion.stopped(ticket).await.unwrap();
    assert!(report.verified && report.lifted, "{report:?}");
    assert!(outcome.await.is_ok());
    let stopped = log.lock().unwrap().len();
    tokio::time::timeout(Duration::from_millis(400), std::future::pending::<()>())
        .await
        .unwrap_err();
    let log = log.lock().unwrap().clone();
    let own = goals(&log[before..]);
    let heights: Vec<f64> = own.iter().map(|ticks| height_mm(&scene, ticks)).collect();
    assert!(own.len() > 15, "{} frames", own.len());
    // Down to the paper no more, and up in the end.
    assert!(heights.iter().all(|mm| *mm > -1.8), "{heights:?}");
    assert!(*heights.last().unwrap() > 6.5, "{heights:?}");
    // No joint is ever sent further in a tick than its fastest allows: 3 rad/s are 19.6 counts.
    let steps = own
        .windows(2)
        .flat_map(|pair| (0..5).map(|joint| (pair[1][joint] - pair[0][joint]).abs()));
    assert!(steps.max().unwrap() <= 22);
    // At rest no new goal is sent, and the last one a few times at most: the servos hold it.
    let after = goals(&log[stopped..]);
    assert!(after.len() <= 5 && after.iter().all(|ticks| ticks == own.last().unwrap()));
}
