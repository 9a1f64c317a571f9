//! How well simulated arms follow their paths, beside what is kept between two of them.

use std::sync::Mutex;

use super::*;
use plan::{NEIGHBOUR_FOLLOWING_M, NEIGHBOUR_SKEW};
use scene::BodyPoints;

const SHIPPED: &str = include_str!("../../../scenes/two_arms.toml");

/// How far an arm may sink as its torque comes on, before it is corrected and begins.
const SUNK_M: f64 = 0.01;

/// Returns the left arm's part of the shipped scene with arms of a model, with some of its strokes.
fn scene_with(model: &str) -> Arc<Scene> {
    let folder = tempfile::tempdir().unwrap();
    let text = SHIPPED.replace("\"so101\"", &format!("\"{model}\""));
    std::fs::write(folder.path().join("two_arms.toml"), text).unwrap();
    let library = SceneLibrary::new(Some(folder.path().to_owned()));
    let shared = library.shared("two_arms", None).unwrap();
    let own = Scene::clone(&shared.parts.first().unwrap().scene);
    let strokes = own.strokes.iter().step_by(7).cloned().collect();
    Arc::new(Scene {
        beside: Vec::new(),
        strokes,
        ..own
    })
}

/// Draws, and returns the path's points and at each tick the sample that was sent and the angles that were read.
async fn drawn(scene: &Arc<Scene>) -> (Vec<BodyPoints>, Vec<(usize, JointVector)>) {
    let device = ArmSimulator::new(&scene.arm, &scene.rest_rad);
    let open: PortOpener = Box::new(move |clock| {
        let link = MemoryLink::new(device.clone(), clock, "bench").map_err(LinkError::Read)?;
        Ok(Box::new(link) as Box<dyn ByteLink>)
    });
    let permits = Arc::new(PermitRegistry::everything());
    let clock = NodeClock::simulated();
    let motion = MotionHandle::start(Arc::clone(&scene.arm), clock, permits, open).unwrap();
    let start = motion.fresh_snapshot().await.measured.unwrap();
    let plan = plan::draw(scene, &start.position_rad, &SilentObserver).unwrap();
    let reached = plan.trajectory.reached().iter();
    let path = reached.map(|q| BodyPoints::new(scene, q)).collect();
    let now = motion.clock().now();
    let permit = motion.permits().ask(scene, now).unwrap();
    let proof = gate::check(scene, permit, &start, now, plan.trajectory).unwrap();
    let seen = Arc::new(Mutex::new(Vec::new()));
    let (log, watch) = (Arc::clone(&seen), motion.watch());
    motion.set_heartbeat(Box::new(move || {
        let snapshot = watch.borrow();
        if let (Some(at), Some(measured)) = (snapshot.progress, snapshot.measured.as_ref()) {
            log.lock().unwrap().push((at.sample, measured.position_rad));
        }
    }));
    let outcome = motion.run(proof, 0).await.unwrap();
    assert!(
        matches!(outcome, MotionOutcome::Reached { .. }),
        "{outcome:?}"
    );
    let seen = seen.lock().unwrap().clone();
    (path, seen)
}

/// The far end is read on a machine that may be busy, so a few readings may be of another moment.
#[tokio::test]
async fn simulated_arms_follow_as_nearly_as_is_kept_beside_another() {
    for model in ["so101", "so101-worn", "so101-12v"] {
        let scene = scene_with(model);
        let (path, seen) = drawn(&scene).await;
        let (mut all, mut sunk_m) = (Vec::new(), 0.0_f64);
        for (sample, read_rad) in &seen {
            let arm = BodyPoints::new(&scene, read_rad);
            let lags = 0..=NEIGHBOUR_SKEW.min(*sample);
            let off = lags.map(|lag| arm.farthest_m(path.get(sample - lag).unwrap()));
            let off_m = off.fold(f64::INFINITY, f64::min);
            match sample {
                0 => sunk_m = sunk_m.max(off_m),
                _ => all.push(off_m),
            }
        }
        assert!(sunk_m <= SUNK_M, "{model}: {sunk_m} m");
        all.sort_by(f64::total_cmp);
        let (count, most_m) = (all.len(), all.last().copied());
        let within = all.partition_point(|off_m| *off_m <= NEIGHBOUR_FOLLOWING_M);
        assert!(
            count > 500 && (count - within) * 50 <= count,
            "{model}: {within} of {count}, {most_m:?} m"
        );
    }
}
