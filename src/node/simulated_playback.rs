//! Carries out a trajectory on a simulated arm of its own, through the gate: what a replay is compared with.

use std::sync::Arc;

use anyhow::{Context, bail};

use super::open;
use base::clock::NodeClock;
use motion::{MotionHandle, MotionOutcome};
use permit::PermitRegistry;
use plan::Trajectory;
use scene::Scene;
use sim::ArmSimulator;

/// Carries out a trajectory in a scene from its first sample, as fast as it can be computed. Returns the lines of ink, in
/// millimetres on the sheet.
///
/// # Errors
/// The scene's pens are changed by hand, the trajectory has no sample, the gate refuses it, or the arm did not reach its end.
pub async fn carry_out(
    scene: &Arc<Scene>,
    trajectory: Trajectory,
) -> anyhow::Result<Vec<Vec<[f64; 2]>>> {
    if scene.holder.is_by_hand() {
        bail!("a person changed its pens, and a replay has nobody to change them");
    }
    let trajectory = as_simulated(scene, trajectory)?;
    let start = trajectory.samples.first().context("nothing was sent")?;
    let simulator = ArmSimulator::new(&scene.arm, start);
    open::lay(&simulator, scene);
    let open = open::simulated_port(&simulator);
    let permits = Arc::new(PermitRegistry::everything());
    let arm = Arc::clone(&scene.arm);
    let motion = MotionHandle::start(arm, NodeClock::simulated(), permits, open)
        .map_err(anyhow::Error::msg)?;
    let now = motion.clock().now();
    let permit = motion.permits().ask(scene, now)?;
    let measured = motion.snapshot().measured.context("the arm was not read")?;
    let checked = gate::check(scene, permit, &measured, now, trajectory)?;
    match motion.run(checked, 0).await? {
        MotionOutcome::Reached { .. } => {}
        other => bail!("the replay did not reach its end: {other:?}"),
    }
    let ink = simulator.ink().into_iter();
    Ok(ink.map(|ink| ink.points_mm).collect())
}

/// Returns the motion of the simulated arm, which unlike the one on a port has no play and no error that its goals make good: where
/// that one is expected. What is sent to it is judged before.
fn as_simulated(scene: &Arc<Scene>, trajectory: Trajectory) -> anyhow::Result<Trajectory> {
    if trajectory.reached.is_empty() || scene.arm.file.simulation.wear.is_some() {
        return Ok(trajectory);
    }
    gate::preview(scene, &trajectory)?;
    Ok(trajectory.without_leads())
}

#[cfg(test)]
mod tests {
    use super::*;
    use scene::SceneLibrary;

    /// It told people to draw with the pen first, which leads nowhere.
    #[tokio::test]
    async fn pens_that_a_person_changed_are_not_replayed() -> anyhow::Result<()> {
        let scene = SceneLibrary::new(None).scene("pens_by_hand", None)?;
        let trajectory = Trajectory {
            period: plan::PERIOD,
            samples: vec![scene.rest_rad],
            reached: Vec::new(),
            spans: Vec::new(),
        };
        let refused = carry_out(&scene, trajectory).await.err();
        let words = refused.map(|why| why.to_string()).unwrap_or_default();
        assert!(
            words.contains("a replay has nobody to change them"),
            "{words}"
        );
        Ok(())
    }
}
