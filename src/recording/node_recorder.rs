//! The recordings' part of a running node.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use base::background_thread::yield_to_arms;
use base::lock::MutexExt;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use config::{NodeFile, RecordEntry};
use node::RecordingServices;
use tools::{JobRecorder, RecordedCamera, RecordedMotion, RecordedPicture, RecordingLibrary};
use vision::ImageFrame;

use crate::error::RecordingError;
use crate::finish;
use crate::job_facts::JobFacts;
use crate::job_recorder::{JobRecording, MissingPicture, PictureSender, TakenPicture};
#[cfg(feature = "live")]
use crate::live::LiveView;
use crate::mcap_file::{MessageObserver, RECORDING};
use crate::recording_library::StoredRecordings;
use crate::records::RecordSource;

/// Lines of the audit log that are attached, at most.
const AUDIT_BYTES_MAX: usize = 256 << 10;

/// The folder of calibrations in a node's state folder.
const CALIBRATIONS: &str = "calibration";

/// The recordings of a node.
pub struct NodeRecordings;

impl RecordingServices for NodeRecordings {
    fn recorder(&self, state: &Path, file: &NodeFile) -> anyhow::Result<Arc<dyn JobRecorder>> {
        let recorder = JobRecordings {
            state: state.to_owned(),
            bytes_max: (file.keep_jobs_mb << 20) / 2,
            under_way: Mutex::default(),
            observer: live_view(&file.record)?,
        };
        recorder.mend();
        Ok(Arc::new(recorder))
    }

    fn library(&self, state: &Path) -> Arc<dyn RecordingLibrary> {
        Arc::new(StoredRecordings {
            state: state.to_owned(),
        })
    }
}

/// The recordings of jobs that are under way.
struct JobRecordings {
    state: PathBuf,
    bytes_max: u64,
    under_way: Mutex<BTreeMap<String, JobRecording>>,
    observer: Option<Arc<dyn MessageObserver>>,
}

/// Opens the live view that the node file asks for.
fn live_view(record: &RecordEntry) -> Result<Option<Arc<dyn MessageObserver>>, RecordingError> {
    let Some(port) = record.live_port() else {
        return Ok(None);
    };
    #[cfg(feature = "live")]
    return Ok(Some(Arc::new(LiveView::open(port, record.cameras())?)));
    #[cfg(not(feature = "live"))]
    return Err(RecordingError::NotLive { port });
}

impl JobRecorder for JobRecordings {
    fn begin_motion(&self, mut motion: RecordedMotion) {
        let mut under_way = self.under_way();
        if !under_way.contains_key(&motion.job) {
            let recording =
                match JobRecording::start(&motion.folder, self.bytes_max, self.observer.clone()) {
                    Ok(recording) => recording,
                    Err(error) => {
                        tracing::warn!("the job is not recorded: {error}");
                        return;
                    }
                };
            // For the whole job: between its motions pictures are left out.
            let period = Duration::from_secs_f64(motion.picture_period_s);
            for camera in std::mem::take(&mut motion.cameras) {
                photograph(camera, period, recording.pictures());
            }
            under_way.insert(motion.job.clone(), recording);
        }
        if let Some(recording) = under_way.get(&motion.job) {
            recording.begin_motion(motion);
        }
    }

    fn end_motion(&self, job: &str) {
        if let Some(recording) = self.under_way().get(job) {
            recording.end_motion();
        }
    }

    fn finish(&self, job: &str, state: &str, message: &str) {
        let Some(recording) = self.under_way().remove(job) else {
            return;
        };
        let folder = job::folder(&self.state, job);
        recording.finish(JobFacts {
            job: job.to_owned(),
            state: state.to_owned(),
            message: message.to_owned(),
            dropped_ticks: 0,
            files: self.files(&folder),
            texts: vec![("audit.log".to_owned(), self.audit_slice(job))],
        });
    }
}

impl JobRecordings {
    fn under_way(&self) -> MutexGuard<'_, BTreeMap<String, JobRecording>> {
        self.under_way.locked()
    }

    /// The files that a job depended on: its design, and what the node's calibrations found.
    fn files(&self, folder: &Path) -> Vec<(String, PathBuf)> {
        let mut files = vec![("design.toml".to_owned(), folder.join("design.toml"))];
        let calibrations = std::fs::read_dir(self.state.join(CALIBRATIONS));
        let paths = calibrations
            .into_iter()
            .flatten()
            .flatten()
            .map(|entry| entry.path());
        let is_kept = |ending: &OsStr| ending == "toml" || ending == "json";
        let mut found: Vec<PathBuf> = paths
            .filter(|path| path.extension().is_some_and(is_kept))
            .collect();
        found.sort();
        files.extend(found.into_iter().map(|path| {
            let name = path.file_name().unwrap_or_default().to_string_lossy();
            (format!("{CALIBRATIONS}/{name}"), path)
        }));
        files
    }

    /// The lines of the audit log from the first to the last that name a job, as many as are attached: their chain can be
    /// followed.
    fn audit_slice(&self, job: &str) -> String {
        let log = std::fs::read_to_string(self.state.join("audit.log")).unwrap_or_default();
        let named = format!("\"{job}\"");
        let lines: Vec<&str> = log.lines().collect();
        let names = |line: &str| line.contains(&named);
        let first = lines.iter().position(|line| names(line));
        let last = lines.iter().rposition(|line| names(line));
        let ends = first.zip(last);
        let slice = ends.and_then(|(first, last)| lines.get(first..=last));
        let mut text = String::new();
        for line in slice.unwrap_or_default() {
            if text.len() + line.len() > AUDIT_BYTES_MAX {
                break;
            }
            text.push_str(line);
            text.push('\n');
        }
        text
    }

    /// Makes recordings whole that an earlier process left torn; on a thread of its own, for nobody waits for it.
    fn mend(&self) {
        let jobs = self.state.join("jobs");
        let mending = std::thread::Builder::new()
            .name("mend".to_owned())
            .spawn(move || {
                if let Err(error) = yield_to_arms() {
                    tracing::debug!("mending keeps its priority: {error}");
                }
                mend_all(&jobs);
            });
        if let Err(error) = mending {
            tracing::warn!("torn recordings stay as they are: {error}");
        }
    }
}

fn mend_all(jobs: &Path) {
    for folder in std::fs::read_dir(jobs).into_iter().flatten().flatten() {
        let path = folder.path().join(RECORDING);
        if !path.is_file() {
            continue;
        }
        if let Err(error) = mend_one(&path) {
            tracing::warn!("a torn recording stays as it is: {error}");
        }
    }
}

fn mend_one(path: &Path) -> Result<(), RecordingError> {
    // What was being made whole is begun anew, though the old file may have been ended.
    if RecordSource::open(path)?.is_ended() && !finish::part(path).exists() {
        return Ok(());
    }
    finish::make_whole(path)
}

/// Takes pictures until the recording has ended; one that cannot be taken is counted.
fn photograph(camera: RecordedCamera, period: Duration, pictures: PictureSender) {
    base::task::spawn(async move {
        let mut due = tokio::time::interval(period);
        due.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Skip);
        loop {
            due.tick().await;
            let taken = match (camera.take)().await {
                Ok(picture) => encoded(&camera.name, picture).await,
                Err(error) => {
                    let missing = MissingPicture {
                        camera: camera.name.clone(),
                        reason: error.to_string(),
                    };
                    if !pictures.send_missing(missing) {
                        return;
                    }
                    continue;
                }
            };
            if taken.is_none_or(|picture| !pictures.send(picture)) {
                return;
            }
        }
    });
}

async fn encoded(camera: &str, picture: RecordedPicture) -> Option<TakenPicture> {
    let camera = camera.to_owned();
    let encoded = tokio::task::spawn_blocking(move || {
        let (format, bytes) = match picture {
            RecordedPicture::Jpeg(jpeg) => ("jpeg", jpeg),
            RecordedPicture::Frame(frame) => ("png", png_of(&frame).ok()?),
        };
        let data = STANDARD.encode(bytes);
        Some(TakenPicture {
            camera,
            format,
            data,
        })
    });
    encoded.await.ok().flatten()
}

fn png_of(frame: &ImageFrame) -> Result<Vec<u8>, png::EncodingError> {
    let [width, height] = frame.size_px();
    let mut bytes = Vec::new();
    let mut encoder = png::Encoder::new(&mut bytes, width, height);
    encoder.set_color(png::ColorType::Rgb);
    let mut writer = encoder.write_header()?;
    writer.write_image_data(frame.rgb())?;
    writer.finish()?;
    Ok(bytes)
}
