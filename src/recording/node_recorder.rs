//! Recording in a running node.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use base::background_thread::yield_to_arms;
use base::lock::MutexExt;
use base::plain_file;
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

/// Largest part of the audit log that is attached.
const AUDIT_BYTES_MAX: usize = 256 << 10;

/// Name of the folder of calibrations in a node's state folder.
const CALIBRATIONS: &str = "calibration";

/// The recording services of a node.
pub struct NodeRecordings;

impl RecordingServices for NodeRecordings {
    fn recorder(&self, state: &Path, file: &NodeFile) -> anyhow::Result<Arc<dyn JobRecorder>> {
        let recorder = JobRecordings {
            state: state.to_owned(),
            bytes_max: (file.keep_jobs_mb << 20) / 2,
            under_way: Mutex::default(),
            observer: live_view(&file.record)?,
        };
        recorder.complete_torn();
        Ok(Arc::new(recorder))
    }

    fn library(&self, state: &Path) -> Arc<dyn RecordingLibrary> {
        Arc::new(StoredRecordings {
            state: state.to_owned(),
        })
    }
}

/// Recordings of the jobs that are under way.
struct JobRecordings {
    state: PathBuf,
    bytes_max: u64,
    under_way: Mutex<BTreeMap<String, JobRecording>>,
    observer: Option<Arc<dyn MessageObserver>>,
}

/// Opens the live view if the node file requests one.
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
            // Cameras run for the whole job; pictures between its motions are dropped.
            let period = Duration::from_secs_f64(motion.picture_period_s);
            for camera in std::mem::take(&mut motion.cameras) {
                photograph(camera, period, recording.pictures());
            }
            under_way.insert(motion.job.clone(), recording);
        }
        let until_fetched = (under_way.get(&motion.job)).map(JobRecording::until_fetched);
        // Other jobs go on meanwhile.
        drop(under_way);
        if let Some(until_fetched) = until_fetched {
            // It breaks off where the recording has ended, and then there is nothing to wait for.
            let _ = until_fetched.recv();
        }
        if let Some(recording) = self.under_way().get(&motion.job) {
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

    /// Returns the files on which a job depended: its design, and the node's calibrations.
    fn files(&self, folder: &Path) -> Vec<(String, PathBuf)> {
        let mut files = vec![("design.toml".to_owned(), folder.join("design.toml"))];
        let calibrations = std::fs::read_dir(self.state.join(CALIBRATIONS));
        let paths = calibrations
            .into_iter()
            .flatten()
            .flatten()
            .map(|entry| entry.path());
        let is_record = |extension: &OsStr| extension == "toml" || extension == "json";
        let mut paths: Vec<PathBuf> = paths
            .filter(|path| path.extension().is_some_and(is_record))
            .collect();
        paths.sort();
        files.extend(paths.into_iter().map(|path| {
            let name = path.file_name().unwrap_or_default().to_string_lossy();
            (format!("{CALIBRATIONS}/{name}"), path)
        }));
        files
    }

    /// Returns the lines of the audit log from the first to the last that name a job, up to the limit: all of them, so that their chain
    /// can be verified.
    fn audit_slice(&self, job: &str) -> String {
        let log = plain_file::read_text(self.state.join("audit.log")).unwrap_or_default();
        let quoted = format!("\"{job}\"");
        let lines: Vec<&str> = log.lines().collect();
        let names_job = |line: &str| line.contains(&quoted);
        let first = lines.iter().position(|line| names_job(line));
        let last = lines.iter().rposition(|line| names_job(line));
        let slice = first
            .zip(last)
            .and_then(|(first, last)| lines.get(first..=last));
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

    /// Completes recordings that an earlier process left torn, on a thread of its own because nothing waits for it.
    fn complete_torn(&self) {
        let jobs = self.state.join("jobs");
        let spawned = std::thread::Builder::new()
            .name("mend".to_owned())
            .spawn(move || {
                if let Err(error) = yield_to_arms() {
                    tracing::debug!(
                        "cannot lower the priority of the thread that completes recordings: {error}"
                    );
                }
                complete_all(&jobs);
            });
        if let Err(error) = spawned {
            tracing::warn!("incomplete recordings cannot be completed: {error}");
        }
    }
}

fn complete_all(jobs: &Path) {
    for folder in std::fs::read_dir(jobs).into_iter().flatten().flatten() {
        let path = folder.path().join(RECORDING);
        if !path.is_file() {
            continue;
        }
        if let Err(error) = complete_one(&path) {
            tracing::warn!("an incomplete recording cannot be completed: {error}");
        }
    }
}

fn complete_one(path: &Path) -> Result<(), RecordingError> {
    // An interrupted rewrite starts again, though the old file may have been finished.
    if RecordSource::open(path)?.is_ended() && !finish::part_path(path).exists() {
        return Ok(());
    }
    finish::complete_file(path)
}

/// Takes pictures until the recording has ended; one that cannot be taken is counted.
fn photograph(camera: RecordedCamera, period: Duration, pictures: PictureSender) {
    base::task::spawn(async move {
        let mut interval = tokio::time::interval(period);
        interval.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Skip);
        loop {
            interval.tick().await;
            let taken = match (camera.take)().await {
                Ok(picture) => encode(&camera.name, picture).await,
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

async fn encode(camera: &str, picture: RecordedPicture) -> Option<TakenPicture> {
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
