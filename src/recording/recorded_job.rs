//! Reads a recording: ticks, plans and log messages.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use mcap::records::Record;
use serde::de::DeserializeOwned;

use crate::error::RecordingError;
use crate::job_facts::{JOB_ATTACHMENT, JobFacts};
use crate::message::{
    BusMessage, CompressedImageMessage, JobMessage, JointStatesMessage, LOG_WARNING, LogMessage,
    PoseInFrameMessage, ServosMessage,
};
use crate::plan_record::{PLAN_ATTACHMENT, PlanRecord};
use crate::records::RecordSource;
use crate::topic::{CAMERA_TOPIC, Topic};

/// Name of this program in a file's header; a version follows.
const PROGRAM: &str = "steadyhand ";

/// Beginnings of the names of schemas that this program writes.
const OUR_SCHEMAS: [&str; 2] = ["foxglove.", "steadyhand."];

/// Largest number of topics of another program that are named, and of their letters and those of its name.
const TOPICS_NAMED_MAX: usize = 3;
const TOPICS_CHARS_MAX: usize = 80;
const LIBRARY_CHARS_MAX: usize = 40;

/// Size of the sheet in a recording without a plan.
const UNKNOWN_SHEET_MM: [f64; 2] = [100.0, 100.0];

/// Width and colour of a line whose pen is not known.
pub(crate) const UNKNOWN_PEN_MM: f64 = 0.3;
pub(crate) const UNKNOWN_PEN_COLOUR: [u8; 3] = [0, 0, 0];

/// A recorded job.
#[derive(Debug, Default)]
pub(crate) struct RecordedJob {
    pub(crate) path: PathBuf,
    /// True if the file ends in the middle because the process was killed.
    pub(crate) is_torn: bool,
    pub(crate) plans: Vec<PlanRecord>,
    pub(crate) ticks: Vec<RecordedTick>,
    pub(crate) log: Vec<LogMessage>,
    pub(crate) bus: Vec<BusMessage>,
    pub(crate) pictures: Vec<RecordedStill>,
    /// Its end; `None` in a torn file.
    pub(crate) facts: Option<JobFacts>,
    pub(crate) attachments: Vec<String>,
    /// Number of messages by topic.
    pub(crate) messages: BTreeMap<String, u64>,
    /// Program that wrote the file.
    pub(crate) library: String,
    /// Topics that are not of this program.
    pub(crate) foreign_topics: BTreeSet<String>,
}

/// One tick of the arm.
#[derive(Clone, Debug, Default)]
pub(crate) struct RecordedTick {
    /// Nanoseconds since 1970.
    pub(crate) at_ns: u64,
    pub(crate) motion: u32,
    pub(crate) sample: usize,
    /// True if the sample is the last of its motion.
    pub(crate) is_last: bool,
    pub(crate) doing: String,
    pub(crate) stroke: Option<usize>,
    pub(crate) pen: usize,
    pub(crate) pen_down: bool,
    pub(crate) state: String,
    pub(crate) setpoint_rad: Vec<f64>,
    /// Difference between setpoint and expected joints; `None` if no goal led.
    pub(crate) lead_rad: Option<Vec<f64>>,
    /// Measured joints; empty if they were not read.
    pub(crate) position_rad: Vec<f64>,
    /// Place on the sheet: x, y and the height over the paper.
    pub(crate) tip_mm: Option<[f64; 3]>,
    pub(crate) target_mm: Option<[f64; 3]>,
    pub(crate) load_ratio: Vec<Option<f64>>,
    pub(crate) temperature_c: Vec<Option<f64>>,
}

/// A picture of a camera.
#[derive(Clone, Debug)]
pub(crate) struct RecordedStill {
    pub(crate) at_ns: u64,
    pub(crate) camera: String,
    /// `jpeg` or `png`.
    pub(crate) format: String,
    /// The file.
    pub(crate) bytes: Vec<u8>,
}

impl RecordedJob {
    /// Reads a recording, complete or torn.
    pub(crate) fn read(path: &Path) -> Result<Self, RecordingError> {
        let source = RecordSource::open(path)?;
        let mut reader = JobReader {
            job: Self {
                path: path.to_owned(),
                ..Self::default()
            },
            topics: BTreeMap::new(),
            schemas: BTreeMap::new(),
            tick: RecordedTick::default(),
        };
        let read = source.for_each(|record| reader.read_record(record));
        let mut job = reader.job;
        job.refuse_foreign(read.is_err())?;
        job.is_torn = read?;
        job.refuse_tickless()?;
        Ok(job)
    }

    /// Refuses a file of another program: one without messages of ours that is damaged, empty or has others.
    fn refuse_foreign(&self, is_damaged: bool) -> Result<(), RecordingError> {
        let is_ours = self.library.is_empty() || self.library.starts_with(PROGRAM);
        let has_others = !self.foreign_topics.is_empty();
        if !self.messages.is_empty() || (is_ours && !has_others) {
            return Ok(());
        }
        let topics = self.foreign_topics.iter().take(TOPICS_NAMED_MAX);
        let topics: Vec<&str> = topics.map(String::as_str).collect();
        let topics = match (topics.is_empty(), is_damaged) {
            (false, _) => format!("the topics {}", topics.join(", ")),
            (true, true) => "records that cannot be read".to_owned(),
            (true, false) => "no messages".to_owned(),
        };
        Err(RecordingError::Foreign {
            path: self.path.clone(),
            library: format!("`{}`", base::wording::cut(&self.library, LIBRARY_CHARS_MAX)),
            topics: base::wording::cut(&topics, TOPICS_CHARS_MAX),
        })
    }

    /// Refuses a file without a tick, with the reason.
    fn refuse_tickless(&self) -> Result<(), RecordingError> {
        if !self.ticks.is_empty() {
            return Ok(());
        }
        let path = self.path.clone();
        let metadata = std::fs::metadata(&path).map_err(RecordingError::file(&path))?;
        Err(match metadata.len() {
            0 => RecordingError::Empty { path },
            bytes if self.is_torn => RecordingError::Cut { path, bytes },
            _ => RecordingError::NoTicks { path },
        })
    }

    /// Returns the plan of a motion.
    pub(crate) fn plan(&self, motion: u32) -> Option<&PlanRecord> {
        self.plans.iter().find(|plan| plan.motion == motion)
    }

    /// Returns the job's name, which is part of the names of files: a recording from elsewhere chooses no folder by it.
    pub(crate) fn name(&self) -> String {
        let plan = self.plans.first().map(|plan| plan.job.as_str());
        plan.filter(|job| is_job_name(job))
            .unwrap_or("job")
            .to_owned()
    }

    /// Returns the time from the first tick to another one.
    pub(crate) fn time_s(&self, tick: &RecordedTick) -> f64 {
        let began_ns = self.ticks.first().map_or(tick.at_ns, |first| first.at_ns);
        seconds(tick.at_ns.saturating_sub(began_ns))
    }

    /// Returns the time from the first tick to the last.
    pub(crate) fn duration_s(&self) -> f64 {
        self.ticks.last().map_or(0.0, |last| self.time_s(last))
    }

    /// Returns what the recording says is missing in it.
    pub(crate) fn warnings(&self) -> impl Iterator<Item = &str> {
        let warnings = self.log.iter().filter(|line| line.level >= LOG_WARNING);
        warnings.map(|line| line.message.as_str())
    }

    /// Returns the sheet's size according to the first plan.
    pub(crate) fn sheet_mm(&self) -> [f64; 2] {
        let plan = self.plans.first();
        plan.map_or(UNKNOWN_SHEET_MM, |plan| plan.sheet_mm)
    }

    /// Returns the colour of the pen that drew a line, and its width in mm.
    pub(crate) fn look(&self, ink: &RecordedInk) -> ([u8; 3], f64) {
        let pen = self
            .plan(ink.motion)
            .and_then(|plan| plan.pens.get(ink.pen));
        pen.map_or((UNKNOWN_PEN_COLOUR, UNKNOWN_PEN_MM), |pen| {
            (pen.colour, pen.width_mm)
        })
    }

    /// Returns the lines that the tip drew as measured, one for each stroke.
    pub(crate) fn ink(&self) -> Vec<RecordedInk> {
        let mut lines: Vec<RecordedInk> = Vec::new();
        for tick in self.ticks.iter().filter(|tick| tick.pen_down) {
            let (Some(stroke), Some([x, y, _])) = (tick.stroke, tick.tip_mm) else {
                continue;
            };
            let is_same =
                |line: &&mut RecordedInk| line.motion == tick.motion && line.stroke == stroke;
            match lines.last_mut().filter(is_same) {
                Some(line) => line.points_mm.push([x, y]),
                None => lines.push(RecordedInk {
                    motion: tick.motion,
                    stroke,
                    pen: tick.pen,
                    points_mm: vec![[x, y]],
                }),
            }
        }
        lines
    }
}

/// A drawn line.
#[derive(Clone, Debug)]
pub(crate) struct RecordedInk {
    pub(crate) motion: u32,
    pub(crate) stroke: usize,
    pub(crate) pen: usize,
    pub(crate) points_mm: Vec<[f64; 2]>,
}

/// Returns whether a text is a job's name, as nodes give them: `job-12`.
pub(crate) fn is_job_name(text: &str) -> bool {
    !text.is_empty() && text.chars().all(|c| c.is_ascii_alphanumeric() || c == '-')
}

/// Seconds of so many nanoseconds.
pub(crate) fn seconds(ns: u64) -> f64 {
    std::time::Duration::from_nanos(ns).as_secs_f64()
}

struct JobReader {
    job: RecordedJob,
    /// Topics of this program.
    topics: BTreeMap<u16, String>,
    /// Names of schemas.
    schemas: BTreeMap<u16, String>,
    /// The tick that is being read; the job's message completes it.
    tick: RecordedTick,
}

impl JobReader {
    fn read_record(&mut self, record: Record<'_>) -> Result<(), RecordingError> {
        match record {
            Record::Header(header) => self.job.library = header.library,
            Record::Schema { header, .. } => {
                self.schemas.insert(header.id, header.name);
            }
            Record::Channel(channel) => {
                let schema = self.schemas.get(&channel.schema_id);
                let is_ours =
                    |schema: &&String| OUR_SCHEMAS.iter().any(|of| schema.starts_with(of));
                if channel.message_encoding == "json" && schema.as_ref().is_some_and(is_ours) {
                    self.topics.insert(channel.id, channel.topic);
                } else {
                    self.job.foreign_topics.insert(channel.topic);
                }
            }
            Record::Message { header, data } => {
                let Some(topic) = self.topics.get(&header.channel_id).cloned() else {
                    return Ok(());
                };
                self.message(&topic, header.log_time, &data)?;
                *self.job.messages.entry(topic).or_default() += 1;
            }
            Record::Attachment { header, data, .. } => self.attachment(&header.name, &data)?,
            _ => {}
        }
        Ok(())
    }

    fn attachment(&mut self, name: &str, data: &[u8]) -> Result<(), RecordingError> {
        if name.starts_with(PLAN_ATTACHMENT) {
            self.job.plans.push(self.json(name, data)?);
        } else if name == JOB_ATTACHMENT {
            self.job.facts = Some(self.json(name, data)?);
        }
        self.job.attachments.push(name.to_owned());
        Ok(())
    }

    fn json<T: DeserializeOwned>(&self, what: &str, data: &[u8]) -> Result<T, RecordingError> {
        serde_json::from_slice(data).map_err(RecordingError::json(&self.job.path, what))
    }

    fn message(&mut self, topic: &str, at_ns: u64, data: &[u8]) -> Result<(), RecordingError> {
        if let Some(camera) = topic.strip_prefix(CAMERA_TOPIC) {
            self.picture(camera, at_ns, data)?;
        } else if topic == Topic::JOINT_SETPOINTS.name {
            // The first message of a tick.
            self.tick = RecordedTick {
                at_ns,
                setpoint_rad: positions(&self.json(topic, data)?),
                ..RecordedTick::default()
            };
        } else if topic == Topic::JOINT_LEADS.name {
            self.tick.lead_rad = Some(positions(&self.json(topic, data)?));
        } else if topic == Topic::JOINT_STATES.name {
            self.tick.position_rad = positions(&self.json(topic, data)?);
        } else if topic == Topic::PEN.name {
            self.tick.tip_mm = Some(place_mm(&self.json(topic, data)?));
        } else if topic == Topic::TARGET.name {
            self.tick.target_mm = Some(place_mm(&self.json(topic, data)?));
        } else if topic == Topic::SERVOS.name {
            let servos: ServosMessage = self.json(topic, data)?;
            self.tick.load_ratio = servos.load_ratio;
            self.tick.temperature_c = servos.temperature_c;
        } else if topic == Topic::BUS.name {
            self.job.bus.push(self.json(topic, data)?);
        } else if topic == Topic::LOG.name {
            self.job.log.push(self.json(topic, data)?);
        } else if topic == Topic::JOB.name {
            let job: JobMessage = self.json(topic, data)?;
            self.end_tick(job);
        }
        Ok(())
    }

    fn picture(&mut self, camera: &str, at_ns: u64, data: &[u8]) -> Result<(), RecordingError> {
        let picture: CompressedImageMessage = self.json("a picture", data)?;
        let Ok(bytes) = STANDARD.decode(&picture.data) else {
            let reason = format!("a picture of {camera} is not in base64");
            return Err(RecordingError::unusable(&self.job.path, reason));
        };
        self.job.pictures.push(RecordedStill {
            at_ns,
            camera: camera.to_owned(),
            format: picture.format,
            bytes,
        });
        Ok(())
    }

    fn end_tick(&mut self, job: JobMessage) {
        self.job.ticks.push(RecordedTick {
            motion: job.motion,
            sample: job.sample,
            is_last: job.sample.saturating_add(1) >= job.samples,
            doing: job.doing,
            // People count from 1.
            stroke: job.stroke.map(|stroke| stroke.min(usize::MAX - 1)),
            pen: job.pen.min(usize::MAX - 1),
            pen_down: job.pen_down,
            state: job.state,
            ..std::mem::take(&mut self.tick)
        });
    }
}

fn positions(message: &JointStatesMessage) -> Vec<f64> {
    message.joints.iter().map(|joint| joint.position).collect()
}

fn place_mm(message: &PoseInFrameMessage) -> [f64; 3] {
    let at = message.pose.position;
    [at.x * 1e3, at.y * 1e3, at.z * 1e3]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_plain_name_is_part_of_a_files_name() {
        assert!(is_job_name("job-12"));
        for name in ["", "../escaped", "/tmp/escaped", "a b", "job-1\\x", "jöb"] {
            assert!(!is_job_name(name), "{name}");
        }
    }

    #[test]
    fn times_that_go_back_are_no_time_before_the_first_tick() {
        let ticks = [5, 9, 3].map(|second| RecordedTick {
            at_ns: second * 1_000_000_000,
            ..RecordedTick::default()
        });
        let job = RecordedJob {
            ticks: ticks.to_vec(),
            ..RecordedJob::default()
        };
        let times_s: Vec<f64> = job.ticks.iter().map(|tick| job.time_s(tick)).collect();
        assert_eq!(times_s, [0.0, 4.0, 0.0]);
        assert!(job.duration_s().abs() < f64::EPSILON);
    }
}
