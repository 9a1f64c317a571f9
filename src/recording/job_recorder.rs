//! Records one job on a thread of its own, from copies of the arm's ticks.
//!
//! The arm's thread waits for nothing here: ticks for which this thread is too slow are dropped, counted and reported. Written data
//! is passed to the system each second.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread::JoinHandle;
use std::time::Duration;

use base::background_thread::yield_to_arms;
use base::clock::{NodeClock, calendar_ms};
use base::units::ClockInstant;
use motion::TickQueue;
use tools::RecordedMotion;

use crate::error::RecordingError;
use crate::finish;
use crate::job_facts::JobFacts;
use crate::mcap_file::{McapFile, MessageObserver, RECORDING};
use crate::message::{CompressedImageMessage, LOG_INFO, LOG_WARNING, LogMessage, MessageTime};
use crate::tick_writer::TickWriter;
use crate::topic::{CAMERA_TOPIC, COMPRESSED_IMAGE, Topic};

/// Interval at which ticks are fetched.
const FETCH_INTERVAL: Duration = Duration::from_millis(20);

/// Interval at which written data is passed to the system.
const FLUSH_INTERVAL: Duration = Duration::from_secs(1);

/// Number of pictures that may wait for the disk.
const PICTURES_WAITING_MAX: usize = 16;

/// A picture that was taken for a recording.
pub(crate) struct TakenPicture {
    pub(crate) camera: String,
    pub(crate) format: &'static str,
    /// In base64.
    pub(crate) data: String,
}

/// A picture that a recording lacks.
pub(crate) struct MissingPicture {
    pub(crate) camera: String,
    pub(crate) reason: String,
}

enum RecorderCommand {
    Motion(Box<RecordedMotion>),
    MotionEnd,
    /// Answers once every command before it was carried out.
    Barrier(Sender<()>),
    Picture(Box<TakenPicture>),
    MissingPicture(Box<MissingPicture>),
    Finish(JobFacts),
}

/// The recorder of a job. Dropping it leaves the recording as it is.
pub(crate) struct JobRecording {
    commands: Sender<RecorderCommand>,
    pictures_waiting: Arc<AtomicUsize>,
    thread: Option<JoinHandle<()>>,
}

/// Sends pictures to a recording.
#[derive(Clone)]
pub(crate) struct PictureSender {
    commands: Sender<RecorderCommand>,
    waiting: Arc<AtomicUsize>,
}

impl PictureSender {
    /// Sends a picture, or drops it if too many wait for the disk; returns `false` once the recording has ended.
    pub(crate) fn send(&self, picture: TakenPicture) -> bool {
        if self.waiting.load(Ordering::SeqCst) >= PICTURES_WAITING_MAX {
            return self.send_missing(MissingPicture {
                camera: picture.camera,
                reason: "the disk was too slow".to_owned(),
            });
        }
        self.waiting.fetch_add(1, Ordering::SeqCst);
        let picture = RecorderCommand::Picture(Box::new(picture));
        self.commands.send(picture).is_ok()
    }

    /// Counts a picture that could not be taken; `false` once the recording has ended.
    pub(crate) fn send_missing(&self, picture: MissingPicture) -> bool {
        let picture = RecorderCommand::MissingPicture(Box::new(picture));
        self.commands.send(picture).is_ok()
    }
}

impl JobRecording {
    /// Starts recording a job in the folder of its journal, with `bytes_max` bytes at most.
    pub(crate) fn start(
        folder: &Path,
        bytes_max: u64,
        observer: Option<Arc<dyn MessageObserver>>,
    ) -> Result<Self, RecordingError> {
        let path = folder.join(RECORDING);
        let file = McapFile::create(&path, observer)?;
        let (commands, received) = channel();
        let pictures_waiting = Arc::new(AtomicUsize::new(0));
        let task = RecorderTask {
            path: path.clone(),
            file: Some(file),
            bytes_max,
            clock: NodeClock::real(),
            flushed: ClockInstant::ZERO,
            writer: None,
            ticks: None,
            motions: 0,
            calendar_zero_ns: None,
            dropped: 0,
            missing_pictures: BTreeMap::new(),
            pictures_waiting: Arc::clone(&pictures_waiting),
        };
        let thread = std::thread::Builder::new()
            .name("recorder".to_owned())
            .spawn(move || {
                if let Err(error) = yield_to_arms() {
                    tracing::debug!("cannot lower the priority of the recorder's thread: {error}");
                }
                task.run(&received);
            })
            .map_err(RecordingError::file(&path))?;
        Ok(Self {
            commands,
            pictures_waiting,
            thread: Some(thread),
        })
    }

    /// Returns what receives, or breaks off, once the ticks of the motion before were fetched: the next motion's are counted anew
    /// in the same queue.
    pub(crate) fn until_fetched(&self) -> Receiver<()> {
        let (fetched, until_fetched) = channel();
        // A thread that has ended fetches nothing more.
        let _ = self.commands.send(RecorderCommand::Barrier(fetched));
        until_fetched
    }

    /// Starts writing the ticks of a motion, after [`Self::until_fetched`].
    pub(crate) fn begin_motion(&self, motion: RecordedMotion) {
        motion.ticks.open();
        let ticks = motion.ticks.clone();
        let command = RecorderCommand::Motion(Box::new(motion));
        if self.commands.send(command).is_err() {
            // The recorder's thread has ended and fetches no ticks.
            ticks.shut();
        }
    }

    /// Ends the present motion.
    pub(crate) fn end_motion(&self) {
        // A thread that has ended writes nothing.
        let _ = self.commands.send(RecorderCommand::MotionEnd);
    }

    /// Returns a sender for pictures.
    pub(crate) fn pictures(&self) -> PictureSender {
        PictureSender {
            commands: self.commands.clone(),
            waiting: Arc::clone(&self.pictures_waiting),
        }
    }

    /// Ends the recording with the job, and waits until it is complete.
    pub(crate) fn finish(mut self, facts: JobFacts) {
        let _ = self.commands.send(RecorderCommand::Finish(facts));
        if let Some(thread) = self.thread.take()
            && thread.join().is_err()
        {
            tracing::error!("the recorder's thread panicked; the recording may be incomplete");
        }
    }
}

struct RecorderTask {
    path: PathBuf,
    /// `None` after a write failed.
    file: Option<McapFile>,
    bytes_max: u64,
    clock: NodeClock,
    flushed: ClockInstant,
    writer: Option<TickWriter>,
    ticks: Option<OpenTicks>,
    motions: u32,
    /// Calendar time at which the arm's clock was at zero, by the job's first motion: a calendar that is set back meanwhile
    /// does not turn the recording back.
    calendar_zero_ns: Option<u64>,
    dropped: u64,
    /// Pictures that are missing, by camera.
    missing_pictures: BTreeMap<String, usize>,
    pictures_waiting: Arc<AtomicUsize>,
}

/// A queue that is shut on drop, when nothing fetches from it any more.
struct OpenTicks(TickQueue);

impl Drop for OpenTicks {
    fn drop(&mut self) {
        self.0.shut();
    }
}

impl RecorderTask {
    fn run(mut self, commands: &Receiver<RecorderCommand>) {
        loop {
            let command = commands.recv_timeout(FETCH_INTERVAL);
            if let Err(error) = self.fetch() {
                self.give_up(&error);
            }
            let result = match command {
                Ok(RecorderCommand::Finish(facts)) => {
                    self.finish(facts);
                    return;
                }
                Ok(RecorderCommand::Motion(motion)) => self.begin(*motion),
                Ok(RecorderCommand::MotionEnd) => self.end(),
                Ok(RecorderCommand::Barrier(fetched)) => {
                    // A motion of a job that has ended does not wait.
                    let _ = fetched.send(());
                    Ok(())
                }
                Ok(RecorderCommand::Picture(picture)) => self.picture(*picture),
                Ok(RecorderCommand::MissingPicture(picture)) => self.note_missing(*picture),
                Err(RecvTimeoutError::Timeout) => Ok(()),
                Err(RecvTimeoutError::Disconnected) => return,
            };
            if let Err(error) = result.and_then(|()| self.flush_if_due()) {
                self.give_up(&error);
            }
        }
    }

    /// Stops recording after an error; the job goes on, and the file stays as it is.
    fn give_up(&mut self, error: &RecordingError) {
        tracing::warn!("the job is no longer recorded: {error}");
        (self.file, self.writer, self.ticks) = (None, None, None);
    }

    fn begin(&mut self, motion: RecordedMotion) -> Result<(), RecordingError> {
        let Some(file) = &mut self.file else {
            motion.ticks.shut();
            return Ok(());
        };
        self.motions += 1;
        self.ticks = Some(OpenTicks(motion.ticks.clone()));
        let now_ns = u64::try_from(motion.clock.now().since(ClockInstant::ZERO).as_nanos());
        let now_ns = now_ns.unwrap_or(0);
        let zero_ns = *self.calendar_zero_ns.get_or_insert_with(|| {
            let calendar_ns = calendar_ms().saturating_mul(1_000_000);
            calendar_ns.saturating_sub(now_ns)
        });
        let text = format!(
            "{}: {} in {}, plan {}",
            motion.job,
            motion.tool,
            motion.scene.title(),
            motion.plan.hash
        );
        log(file, zero_ns.saturating_add(now_ns), LOG_INFO, &text)?;
        self.writer = Some(TickWriter::begin(motion, self.motions, zero_ns, file)?);
        Ok(())
    }

    fn fetch(&mut self) -> Result<(), RecordingError> {
        let (Some(file), Some(writer), Some(ticks)) =
            (&mut self.file, &mut self.writer, &self.ticks)
        else {
            return Ok(());
        };
        for tick in ticks.0.take() {
            writer.tick(&tick, file)?;
        }
        if file.bytes() > self.bytes_max {
            let at_ns = writer.ns(writer.motion().clock.now());
            let text = format!(
                "the recording ends here: its {} MB are half of the limit for all jobs. A larger `keep_jobs_mb` allows more",
                self.bytes_max >> 20
            );
            log(file, at_ns, LOG_WARNING, &text)?;
            tracing::warn!("{text}");
            file.flush()?;
            (self.writer, self.ticks) = (None, None);
            self.bytes_max = u64::MAX;
        }
        Ok(())
    }

    fn end(&mut self) -> Result<(), RecordingError> {
        // The motion's last ticks may have arrived since.
        self.fetch()?;
        let (Some(file), Some(mut writer), Some(ticks)) =
            (&mut self.file, self.writer.take(), self.ticks.take())
        else {
            return Ok(());
        };
        writer.end(file)?;
        let dropped = ticks.0.dropped();
        if dropped > 0 {
            self.dropped += dropped;
            let text = format!(
                "{dropped} ticks are missing, because the machine was too slow to record them"
            );
            tracing::warn!("{text}");
            let at_ns = writer.ns(writer.motion().clock.now());
            log(file, at_ns, LOG_WARNING, &text)?;
        }
        file.flush()
    }

    fn picture(&mut self, picture: TakenPicture) -> Result<(), RecordingError> {
        self.pictures_waiting.fetch_sub(1, Ordering::SeqCst);
        let (Some(file), Some(writer)) = (&mut self.file, &self.writer) else {
            return Ok(());
        };
        let at_ns = writer.ns(writer.motion().clock.now());
        let topic = format!("{CAMERA_TOPIC}{}", picture.camera);
        let message = CompressedImageMessage {
            timestamp: MessageTime::from_ns(at_ns),
            frame_id: picture.camera,
            data: picture.data,
            format: picture.format.to_owned(),
        };
        file.write_to(&topic, COMPRESSED_IMAGE, at_ns, &message)
    }

    /// Counts a missing picture, and logs the first of each camera with its reason.
    fn note_missing(&mut self, picture: MissingPicture) -> Result<(), RecordingError> {
        let (Some(file), Some(writer)) = (&mut self.file, &self.writer) else {
            return Ok(());
        };
        let MissingPicture { camera, reason } = picture;
        let message = format!("camera {camera} sends no picture: {reason}");
        let count = self.missing_pictures.entry(camera).or_default();
        *count += 1;
        if *count > 1 {
            return Ok(());
        }
        tracing::warn!("{message}");
        let at_ns = writer.ns(writer.motion().clock.now());
        log(file, at_ns, LOG_WARNING, &message)
    }

    fn flush_if_due(&mut self) -> Result<(), RecordingError> {
        let now = self.clock.now();
        if now.since(self.flushed) < FLUSH_INTERVAL {
            return Ok(());
        }
        self.flushed = now;
        self.file.as_mut().map_or(Ok(()), McapFile::flush)
    }

    fn finish(&mut self, mut facts: JobFacts) {
        facts.dropped_ticks = self.dropped;
        let Some(mut file) = self.file.take() else {
            return;
        };
        let at_ns = calendar_ms().saturating_mul(1_000_000);
        let missing = self.missing_pictures.iter();
        let mut missing = missing.map(|(camera, count)| {
            let pictures = base::wording::count(*count, "picture");
            (LOG_WARNING, format!("camera {camera}: {pictures} missing"))
        });
        let end = (LOG_INFO, format!("{}: {}", facts.state, facts.message));
        let ended = missing
            .by_ref()
            .chain([end])
            .try_for_each(|(level, message)| log(&mut file, at_ns, level, &message))
            .and_then(|()| facts.attach(&mut file, at_ns))
            .and_then(|()| file.finish())
            .and_then(|()| finish::complete_file(&self.path));
        if let Err(error) = ended {
            tracing::warn!("the recording is incomplete: {error}");
        }
    }
}

fn log(file: &mut McapFile, at_ns: u64, level: u8, message: &str) -> Result<(), RecordingError> {
    let message = LogMessage {
        timestamp: MessageTime::from_ns(at_ns),
        level,
        message: message.to_owned(),
        name: "steadyhand".to_owned(),
        file: String::new(),
        line: 0,
    };
    file.write(Topic::LOG, at_ns, &message)
}
