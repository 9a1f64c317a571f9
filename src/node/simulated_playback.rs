//! Carries out a trajectory on a separate simulated arm, through the gate, to compare a replay with.

use std::sync::Arc;

use anyhow::{Context, bail};

use super::open;
use arm::ArmModel;
use base::clock::NodeClock;
use motion::{MotionHandle, MotionOutcome};
use permit::PermitRegistry;
use plan::Trajectory;
use scene::Scene;
use sim::ArmSimulator;

/// Carries out a trajectory in a scene from its first sample, as fast as possible. Returns the lines of ink, in millimetres on
/// the sheet.
///
/// # Errors
/// The scene's pens are changed by hand, the trajectory has no sample, the gate refuses it, or the arm did not reach its end.
pub async fn carry_out(
    scene: &Arc<Scene>,
    trajectory: Trajectory,
) -> anyhow::Result<Vec<Vec<[f64; 2]>>> {
    if scene.holder.is_by_hand() {
        bail!("a person changed its pens, and a replay has no person");
    }
    let trajectory = without_compensation(scene, trajectory)?;
    let start = trajectory
        .samples
        .first()
        .context("the recording has no sent bytes")?;
    let simulator = ArmSimulator::new(&without_wear(&scene.arm)?, start);
    open::lay(&simulator, scene);
    let open = open::simulated_port(&simulator);
    let permits = Arc::new(PermitRegistry::everything());
    let arm = Arc::clone(&scene.arm);
    let motion = MotionHandle::start(arm, NodeClock::simulated(), permits, open)
        .map_err(anyhow::Error::msg)?;
    let now = motion.clock().now();
    let permit = motion.permits().ask(scene, now)?;
    let measured = motion
        .snapshot()
        .measured
        .context("the arm could not be read")?;
    let checked = gate::check(scene, permit, &measured, now, trajectory)?;
    match motion.run(checked, 0).await? {
        MotionOutcome::Reached { .. } => {}
        other => bail!("the replay did not finish: {other:?}"),
    }
    let ink = simulator.ink().into_iter();
    Ok(ink.map(|ink| ink.points_mm).collect())
}

/// Returns the arm for the simulation: what a worn one would do is in neither plan nor recording.
fn without_wear(arm: &ArmModel) -> anyhow::Result<ArmModel> {
    let mut file = arm.file.clone();
    file.simulation.wear = None;
    Ok(ArmModel::new(file)?)
}

/// Returns the trajectory for the simulated arm. Unlike the arm on a port, it has no play and no error to compensate, so its goals
/// are where the other arm is expected. The original goals are checked first.
fn without_compensation(scene: &Arc<Scene>, trajectory: Trajectory) -> anyhow::Result<Trajectory> {
    if trajectory.reached.is_empty() {
        return Ok(trajectory);
    }
    gate::preview(scene, &trajectory)?;
    Ok(trajectory.without_leads())
}

#[cfg(test)]
mod tests {
    use super::*;
    use scene::SceneLibrary;

    /// The message must not tell people to mount a pen, which would not help.
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
        let message = refused.map(|error| error.to_string()).unwrap_or_default();
        assert!(message.contains("pens"), "{message}");
        Ok(())
    }
}
