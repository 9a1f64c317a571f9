//! Tests how long the way to rest is, from wherever a shipped drawing may be stopped: SIGTERM begins none
//! that takes longer than 5 s.
#![allow(clippy::unwrap_used, reason = "a failing test may panic")]

use std::time::Duration;

use steadyhand::plan::{self, SilentObserver};
use steadyhand::scene::{DesignReplacement, Scene, SceneLibrary};
use steadyhand::units::JointVector;

/// Places along a drawing from which the arm is sent to rest.
const PLACES: usize = 40;

/// Time left of 5 s for a plan on a machine that has something else to do.
const LONGEST: Duration = Duration::from_secs(4);

/// The shorter of the two ways that are tried.
fn way_to_rest(scene: &Scene, from: &JointVector) -> Duration {
    let over_ready = [scene.ready_rad, scene.rest_rad];
    let ways = [&over_ready[..], &[scene.rest_rad]];
    let ways = ways.map(|poses| plan::go_to(scene, from, poses, &SilentObserver).unwrap());
    let durations = ways.map(|plan| plan.trajectory.duration());
    durations.into_iter().min().unwrap()
}

#[test]
fn every_shipped_arm_is_at_rest_soon_from_anywhere_in_its_drawing() {
    let library = SceneLibrary::new(None);
    for name in library.scenes() {
        let mut scene = library.scene(&name, None).unwrap();
        if scene.canvas.is_some() {
            let canvases = library.with_design_of_caller(DesignReplacement::from_text("hello"));
            scene = canvases.scene(&name, None).unwrap();
        }
        let drawing = plan::draw(&scene, &scene.rest_rad, &SilentObserver).unwrap();
        let samples = drawing.trajectory.samples;
        for from in samples.iter().step_by(samples.len().div_ceil(PLACES)) {
            let way = way_to_rest(&scene, from);
            assert!(way <= LONGEST, "{name}: {way:?} from {from:?}");
        }
    }
}
