//! Records one job on a thread of its own, from copies of the arm's ticks.
//!
//! The arm's thread waits for nothing here: what this thread is too slow for is dropped, counted and told. What was written
//! is handed to the system each second.

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
const FETCH: Duration = Duration::from_millis(20);

/// Interval at which what was written is handed to the system.
const FLUSH: Duration = Duration::from_secs(1);

/// Pictures that may wait for the disk.
const PICTURES_WAITING_MAX: usize = 16;

/// A picture that was taken for a recording.
pub(crate) struct TakenPicture {
    pub(crate) camera: String,
    pub(crate) format: &'static str,
    /// In base64.
    pub(crate) data: String,
}

enum RecorderCommand {
    Motion(Box<RecordedMotion>),
    MotionEnd,
    Picture(Box<TakenPicture>),
    Finish(JobFacts),
}

/// The recorder of a job. Dropping it ends the recording as it is.
pub(crate) struct JobRecording {
    commands: Sender<RecorderCommand>,
    pictures_waiting: Arc<AtomicUsize>,
    thread: Option<JoinHandle<()>>,
}

/// A way to hand pictures to a recording.
#[derive(Clone)]
pub(crate) struct PictureSender {
    commands: Sender<RecorderCommand>,
    waiting: Arc<AtomicUsize>,
}

impl PictureSender {
    /// Hands over a picture, or drops it where too many wait for the disk; `false` once the recording has ended.
    pub(crate) fn send(&self, picture: TakenPicture) -> bool {
        if self.waiting.load(Ordering::SeqCst) >= PICTURES_WAITING_MAX {
            return true;
        }
        self.waiting.fetch_add(1, Ordering::SeqCst);
        let picture = RecorderCommand::Picture(Box::new(picture));
        self.commands.send(picture).is_ok()
    }
}

impl JobRecording {
    /// Begins the recording of a job in the folder of its journal, of `bytes_max` bytes at most.
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
            dropped: 0,
            pictures_waiting: Arc::clone(&pictures_waiting),
        };
        let thread = std::thread::Builder::new()
            .name("recorder".to_owned())
            .spawn(move || {
                if let Err(error) = yield_to_arms() {
                    tracing::debug!("the recorder keeps its priority: {error}");
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

    /// From now on the ticks of this motion are written.
    pub(crate) fn begin_motion(&self, motion: RecordedMotion) {
        motion.ticks.open();
        let ticks = motion.ticks.clone();
        let order = RecorderCommand::Motion(Box::new(motion));
        if self.commands.send(order).is_err() {
            // Its thread has ended: nobody fetches.
            ticks.shut();
        }
    }

    /// The motion has ended.
    pub(crate) fn end_motion(&self) {
        // A thread that has ended writes nothing.
        let _ = self.commands.send(RecorderCommand::MotionEnd);
    }

    /// The way for pictures.
    pub(crate) fn pictures(&self) -> PictureSender {
        PictureSender {
            commands: self.commands.clone(),
            waiting: Arc::clone(&self.pictures_waiting),
        }
    }

    /// The job has ended; waits until the recording is whole.
    pub(crate) fn finish(mut self, facts: JobFacts) {
        let _ = self.commands.send(RecorderCommand::Finish(facts));
        if let Some(thread) = self.thread.take()
            && thread.join().is_err()
        {
            tracing::error!(
                "the recorder's thread ended in a panic; the recording may not be whole"
            );
        }
    }
}

struct RecorderTask {
    path: PathBuf,
    /// `None` once it could not be written any more.
    file: Option<McapFile>,
    bytes_max: u64,
    clock: NodeClock,
    flushed: ClockInstant,
    writer: Option<TickWriter>,
    ticks: Option<OpenTicks>,
    motions: u32,
    dropped: u64,
    pictures_waiting: Arc<AtomicUsize>,
}

/// A queue that is shut when nobody fetches from it any more.
struct OpenTicks(TickQueue);

impl Drop for OpenTicks {
    fn drop(&mut self) {
        self.0.shut();
    }
}

impl RecorderTask {
    fn run(mut self, commands: &Receiver<RecorderCommand>) {
        loop {
            let command = commands.recv_timeout(FETCH);
            if let Err(error) = self.fetch() {
                self.give_up(&error);
            }
            let done = match command {
                Ok(RecorderCommand::Finish(facts)) => {
                    self.finish(facts);
                    return;
                }
                Ok(RecorderCommand::Motion(motion)) => self.begin(*motion),
                Ok(RecorderCommand::MotionEnd) => self.end(),
                Ok(RecorderCommand::Picture(picture)) => self.picture(*picture),
                Err(RecvTimeoutError::Timeout) => Ok(()),
                Err(RecvTimeoutError::Disconnected) => return,
            };
            if let Err(error) = done.and_then(|()| self.flush_in_time()) {
                self.give_up(&error);
            }
        }
    }

    /// The job goes on without a recording; what is in the file stays.
    fn give_up(&mut self, error: &RecordingError) {
        tracing::warn!("the job is not recorded any further: {error}");
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
        let calendar_ns = calendar_ms().saturating_mul(1_000_000);
        let began_ns = calendar_ns.saturating_sub(now_ns.unwrap_or(0));
        let words = format!(
            "{}: {} in {}, plan {}",
            motion.job,
            motion.tool,
            motion.scene.title(),
            motion.plan.hash
        );
        log(file, calendar_ns, LOG_INFO, &words)?;
        self.writer = Some(TickWriter::begin(motion, self.motions, began_ns, file)?);
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
            let words = format!(
                "the recording ends here: {} MB is half of what the node keeps of all jobs; a larger `keep_jobs_mb` allows more",
                self.bytes_max >> 20
            );
            log(file, at_ns, LOG_WARNING, &words)?;
            tracing::warn!("{words}");
            file.flush()?;
            (self.writer, self.ticks) = (None, None);
            self.bytes_max = u64::MAX;
        }
        Ok(())
    }

    fn end(&mut self) -> Result<(), RecordingError> {
        // The motion's last ticks may have come since.
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
            let words =
                format!("{dropped} ticks are missing: the machine was too slow to record them");
            tracing::warn!("{words}");
            let at_ns = writer.ns(writer.motion().clock.now());
            log(file, at_ns, LOG_WARNING, &words)?;
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

    fn flush_in_time(&mut self) -> Result<(), RecordingError> {
        let now = self.clock.now();
        if now.since(self.flushed) < FLUSH {
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
        let words = format!("{}: {}", facts.state, facts.message);
        let ended = log(&mut file, at_ns, LOG_INFO, &words)
            .and_then(|()| facts.attach(&mut file, at_ns))
            .and_then(|()| file.finish())
            .and_then(|()| finish::make_whole(&self.path));
        if let Err(error) = ended {
            tracing::warn!("the recording is not whole: {error}");
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
