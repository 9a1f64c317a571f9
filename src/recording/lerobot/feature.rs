//! Features of a data set: the numbers of each frame.

use std::path::Path;

use crate::error::RecordingError;
use crate::lerobot::camera_feature::{self, CameraFeature};
use crate::lerobot::episode::Episode;
use crate::recorded_job::{RecordedJob, RecordedTick};

/// A feature of float32 numbers.
pub(crate) struct DatasetFeature {
    pub(crate) name: &'static str,
    /// Names of its numbers.
    pub(crate) names: Vec<String>,
    value: FeatureValue,
}

type FeatureValue = fn(&RecordedTick) -> Option<Vec<f64>>;

/// All features of a data set.
pub(crate) struct DatasetFeatures {
    pub(crate) features: Vec<DatasetFeature>,
    pub(crate) cameras: Vec<CameraFeature>,
    left_out: Vec<LeftOut>,
}

/// A feature that was not read on every frame.
pub(crate) struct LeftOut {
    name: String,
    /// The jobs that lack it.
    jobs: Vec<String>,
}

impl LeftOut {
    /// Returns a feature that the episodes lack whose frames are not complete.
    pub(crate) fn new(
        name: &str,
        episodes: &[Episode<'_>],
        is_complete: impl Fn(&Episode<'_>) -> bool,
    ) -> Self {
        let lacking = episodes.iter().filter(|episode| !is_complete(episode));
        let mut jobs: Vec<String> = lacking.map(|episode| episode.job.clone()).collect();
        jobs.dedup();
        Self {
            name: name.to_owned(),
            jobs,
        }
    }

    /// Returns a line for people.
    pub(crate) fn line(&self) -> String {
        let (name, jobs) = (&self.name, self.jobs.join(", "));
        format!("{name} is left out: it was not read on every frame of {jobs}")
    }
}

impl DatasetFeatures {
    /// Returns the features of recordings, which must have the same joints. Omits features that were not read on every frame.
    pub(crate) fn select(
        jobs: &[RecordedJob],
        episodes: &[Episode<'_>],
        out: &Path,
    ) -> Result<Self, RecordingError> {
        let joints = joints_of_all(jobs, out)?;
        let positions: Vec<String> = joints.iter().map(|name| format!("{name}.pos")).collect();
        let frames = || episodes.iter().flat_map(|episode| &episode.frames);
        let servos = frames()
            .map(|tick| tick.load_ratio.len())
            .min()
            .unwrap_or(0);
        let servos: Vec<String> = (1..=servos).map(|servo| format!("servo_{servo}")).collect();
        let place_names = || ["x", "y", "height"].map(str::to_owned).to_vec();
        let candidates: [(&'static str, Vec<String>, FeatureValue); 7] = [
            ("action", positions.clone(), |tick| {
                degrees(&tick.setpoint_rad)
            }),
            ("observation.state", positions, |tick| {
                degrees(&tick.position_rad)
            }),
            ("observation.tip_mm", place_names(), |tick| {
                tick.tip_mm.map(Vec::from)
            }),
            ("observation.target_mm", place_names(), |tick| {
                tick.target_mm.map(Vec::from)
            }),
            (
                "observation.pen_down",
                vec!["pen_down".to_owned()],
                |tick| Some(vec![f64::from(u8::from(tick.pen_down))]),
            ),
            ("observation.load", servos.clone(), |tick| {
                tick.load_ratio.iter().copied().collect()
            }),
            ("observation.temperature", servos, |tick| {
                tick.temperature_c.iter().copied().collect()
            }),
        ];
        let (cameras, mut left_out) = camera_feature::cameras(episodes, out)?;
        let mut features = Vec::new();
        for (name, names, value) in candidates {
            let count = names.len();
            let is_complete =
                |tick: &RecordedTick| value(tick).is_some_and(|values| values.len() == count);
            if count > 0 && frames().all(|tick| is_complete(tick)) {
                features.push(DatasetFeature { name, names, value });
            } else {
                let has = |episode: &Episode<'_>| {
                    count > 0 && episode.frames.iter().all(|tick| is_complete(tick))
                };
                left_out.push(LeftOut::new(name, episodes, has));
            }
        }
        Ok(Self {
            features,
            cameras,
            left_out,
        })
    }

    /// Returns the features that were not read on every frame.
    pub(crate) fn left_out(&self) -> &[LeftOut] {
        &self.left_out
    }

    /// Returns the names of all features.
    pub(crate) fn names(&self) -> Vec<&str> {
        let cameras = self.cameras.iter().map(|camera| camera.name.as_str());
        self.features
            .iter()
            .map(|feature| feature.name)
            .chain(cameras)
            .collect()
    }
}

/// Returns the joints that all plans of these recordings have.
fn joints_of_all(jobs: &[RecordedJob], out: &Path) -> Result<Vec<String>, RecordingError> {
    let plans = || jobs.iter().flat_map(|job| &job.plans);
    let joints = plans().next().map(|plan| plan.joints.clone());
    let joints = joints.unwrap_or_default();
    match plans().find(|plan| plan.joints != joints) {
        None => Ok(joints),
        Some(other) => {
            let reason = format!(
                "{} has the joints {} instead of {}: export arms of different kinds separately",
                other.job,
                other.joints.join(", "),
                joints.join(", ")
            );
            Err(RecordingError::unusable(out, reason))
        }
    }
}

impl DatasetFeature {
    /// Returns its numbers at a frame.
    #[expect(
        clippy::cast_possible_truncation,
        reason = "LeRobot stores float32, with a relative error of a ten-millionth"
    )]
    pub(crate) fn values(&self, tick: &RecordedTick) -> Vec<f32> {
        let values = (self.value)(tick).unwrap_or_default();
        values.into_iter().map(|value| value as f32).collect()
    }
}

fn degrees(angles_rad: &[f64]) -> Option<Vec<f64>> {
    Some(angles_rad.iter().map(|angle| angle.to_degrees()).collect())
}
