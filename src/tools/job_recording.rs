//! Recordings of jobs: tells the node's recorder which motion begins and when a job has ended.

use std::path::PathBuf;
use std::sync::Arc;

use super::motion_job::JobContext;
use super::{AttachedArm, Node};
use base::clock::NodeClock;
use call::Refusal;
use futures::future::BoxFuture;
use motion::TickQueue;
use plan::Plan;
use scene::Scene;
use vision::ImageFrame;

/// Records jobs into files next to their journals. Failures are logged, and the job goes on without a recording.
pub trait JobRecorder: Send + Sync {
    /// Begins to record the motion's ticks. Waits for the disk.
    fn begin_motion(&self, motion: RecordedMotion);

    /// Stops recording ticks, because the motion has ended.
    fn end_motion(&self, job: &str);

    /// Completes, indexes and compresses the recording of a job that has ended. Waits for the disk.
    fn finish(&self, job: &str, state: &str, message: &str);
}

/// Facts of a motion that is recorded.
pub struct RecordedMotion {
    /// The job's name.
    pub job: String,
    /// The folder of its journal.
    pub folder: PathBuf,
    /// The tool that was called.
    pub tool: String,
    /// The arm's name for callers.
    pub arm: String,
    /// Scene in which it moves.
    pub scene: Arc<Scene>,
    /// Plan that it carries out.
    pub plan: Plan,
    /// Copies of the arm's ticks.
    pub ticks: TickQueue,
    /// The clock of the ticks.
    pub clock: NodeClock,
    /// The cameras whose pictures are recorded.
    pub cameras: Vec<RecordedCamera>,
    /// Time from one picture of a camera to the next, in seconds.
    pub picture_period_s: f64,
}

/// A picture that is recorded.
pub enum RecordedPicture {
    /// A file of the camera's own.
    Jpeg(Vec<u8>),
    /// Pixels.
    Frame(ImageFrame),
}

/// A camera whose pictures are recorded.
pub struct RecordedCamera {
    /// Its name in the node file.
    pub name: String,
    /// Takes a picture.
    pub take: Box<dyn Fn() -> BoxFuture<'static, Result<RecordedPicture, Refusal>> + Send>,
}

impl JobContext {
    /// Begins to record a motion, if the node records.
    pub(super) async fn record_motion(&self, scene: &Arc<Scene>, plan: &Plan) {
        let Some(recorder) = self.node.job_recorder.clone() else {
            return;
        };
        let motion = RecordedMotion {
            job: self.entry.id().to_owned(),
            folder: self.entry.folder().to_owned(),
            tool: self.job.card().tool,
            arm: self.arm.name.clone(),
            scene: Arc::clone(scene),
            plan: plan.clone(),
            ticks: self.arm.motion.ticks().clone(),
            clock: self.arm.motion.clock().clone(),
            cameras: recorded_cameras(&self.node, &self.arm, scene),
            picture_period_s: self.node.file.record.picture_period_s(),
        };
        let begun = tokio::task::spawn_blocking(move || recorder.begin_motion(motion));
        if begun.await.is_err() {
            tracing::warn!("the job is not recorded: the recorder failed");
        }
    }

    /// Ends the recording of a motion.
    pub(super) fn end_recorded_motion(&self) {
        if let Some(recorder) = &self.node.job_recorder {
            recorder.end_motion(self.entry.id());
        }
    }
}

/// Returns the cameras that see an arm's sheet and that the node file names for recordings.
fn recorded_cameras(
    node: &Node,
    arm: &Arc<AttachedArm>,
    scene: &Arc<Scene>,
) -> Vec<RecordedCamera> {
    let named = node.file.record.cameras();
    let mut cameras = node.cameras_of(arm);
    cameras.retain(|camera| named.iter().any(|name| name == camera.name()));
    let recorded = cameras.into_iter().map(|camera| {
        let (arm, scene) = (Arc::clone(arm), Arc::clone(scene));
        RecordedCamera {
            name: camera.name().to_owned(),
            take: Box::new(move || {
                let (camera, arm, scene) =
                    (Arc::clone(&camera), Arc::clone(&arm), Arc::clone(&scene));
                Box::pin(async move { camera.take_picture(&arm, scene).await })
            }),
        }
    });
    recorded.collect()
}
