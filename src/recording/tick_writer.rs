//! Converts copies of ticks to messages.

use nalgebra::Point3;

use base::units::{ArmMeasurement, ClockInstant, JointVector, ServoState};
use motion::{BusCounts, MotionTick, ServoCounts};
use plan::SpanKind;
use scene::ScenePen;
use tools::RecordedMotion;

use crate::error::RecordingError;
use crate::mcap_file::McapFile;
use crate::message::{
    BusMessage, FrameTransformMessage, JobMessage, JointStateMessage, JointStatesMessage,
    MessagePose, MessageQuaternion, MessageTime, PoseInFrameMessage, ServosMessage, SpaceLine,
    lines_update,
};
use crate::plan_record::{PLAN_ATTACHMENT, PlanRecord, stroke_spans, word};
use crate::recorded_job::{UNKNOWN_PEN_COLOUR, UNKNOWN_PEN_MM};
use crate::topic::Topic;

/// Frame of the arm's base.
const BASE: &str = "base";

/// Frame of the sheet: x to the right, y up, z out of the paper.
const SHEET: &str = "sheet";

/// Smallest distance between points of a line, which limits the size of its messages.
const INK_STEP_MM: f64 = 0.2;

/// Number of ticks after which the sheet's place is written again.
const SHEET_EVERY: u64 = 100;

/// Writes the ticks of one motion.
pub(crate) struct TickWriter {
    motion: RecordedMotion,
    number: u32,
    joints: Vec<String>,
    strokes: Vec<Option<usize>>,
    /// Time at which the arm's clock started, in nanoseconds since 1970, by the calendar at the start of the motion.
    calendar_ns: u64,
    ticks: u64,
    ink: Option<InkLine>,
}

/// A line that is being drawn.
struct InkLine {
    stroke: usize,
    pen: usize,
    points_m: Vec<Point3<f64>>,
    /// Number of points in the last message.
    written: usize,
}

impl TickWriter {
    /// Begins a motion with its plan.
    pub(crate) fn begin(
        motion: RecordedMotion,
        number: u32,
        calendar_ns: u64,
        file: &mut McapFile,
    ) -> Result<Self, RecordingError> {
        let plan = PlanRecord::new(number, &motion);
        let writer = Self {
            joints: plan.joints.clone(),
            strokes: stroke_spans(&motion.plan.trajectory.spans),
            number,
            calendar_ns,
            ticks: 0,
            ink: None,
            motion,
        };
        let at_ns = writer.ns(writer.motion.clock.now());
        let text = serde_json::to_vec(&plan).unwrap_or_default();
        let name = format!("{PLAN_ATTACHMENT}{number}.json");
        file.attach(&name, "application/json", at_ns, &text)?;
        writer.write_plan(at_ns, file)?;
        Ok(writer)
    }

    /// Converts a time of the arm's clock to nanoseconds since 1970.
    pub(crate) fn ns(&self, at: ClockInstant) -> u64 {
        let since = at.since(ClockInstant::ZERO).as_nanos();
        self.calendar_ns
            .saturating_add(u64::try_from(since).unwrap_or(u64::MAX))
    }

    /// Returns the motion that it writes.
    pub(crate) const fn motion(&self) -> &RecordedMotion {
        &self.motion
    }

    fn write_plan(&self, at_ns: u64, file: &mut McapFile) -> Result<(), RecordingError> {
        let scene = &self.motion.scene;
        let line = |stroke: &scene::SheetStroke| {
            let points = stroke.points_mm.iter();
            SpaceLine {
                points_m: points
                    .map(|point| scene.surface.at(*point).point_m)
                    .collect(),
                width_mm: scene
                    .pen(stroke.pen)
                    .map_or(UNKNOWN_PEN_MM, |pen| pen.width_mm),
                colour: [160, 160, 160],
            }
        };
        let lines: Vec<SpaceLine> = self.motion.plan.strokes.iter().map(line).collect();
        let id = format!("plan {}", self.number);
        let update = lines_update(MessageTime::from_ns(at_ns), &id, &lines);
        file.write(Topic::PLAN, at_ns, &update)
    }

    /// Writes a tick; the job's message is the last, so that a torn tick is not taken for a complete one.
    pub(crate) fn tick(
        &mut self,
        tick: &MotionTick,
        file: &mut McapFile,
    ) -> Result<(), RecordingError> {
        let at_ns = self.ns(tick.at);
        let time = MessageTime::from_ns(at_ns);
        let pen = self.pen_of(tick.progress.sample);
        let sent_rad = (tick.setpoint_rad).zip(&tick.lead_rad, |at, lead| at + lead);
        file.write(
            Topic::JOINT_SETPOINTS,
            at_ns,
            &self.joint_states(time, &sent_rad, None),
        )?;
        let lead_rad = self.motion.plan.trajectory.lead_rad(tick.progress.sample);
        // What the plan leads by and what the gate leads by: a replay is judged by where the arm is without both.
        let all_leads_rad = match &lead_rad {
            Some(planned_rad) => planned_rad.zip(&tick.lead_rad, |planned, gate| planned + gate),
            None => tick.lead_rad,
        };
        if lead_rad.is_some() || all_leads_rad.iter().any(|lead| *lead != 0.0) {
            let leads = self.joint_states(time, &all_leads_rad, None);
            file.write(Topic::JOINT_LEADS, at_ns, &leads)?;
        }
        let without_lead = |q_rad: &JointVector| match &lead_rad {
            Some(lead_rad) => q_rad.zip(lead_rad, |q, lead| q - lead),
            None => *q_rad,
        };
        let target_rad = without_lead(&tick.setpoint_rad);
        self.write_tip(Topic::TARGET, at_ns, pen, &target_rad, file)?;
        if let Some(measured) = &tick.measured {
            let expected_rad = without_lead(&measured.position_rad);
            self.write_measured(at_ns, pen, measured, &expected_rad, file)?;
            self.draw(tick, pen, &expected_rad, at_ns, file)?;
        }
        if let Some(counts) = &tick.counts {
            file.write(Topic::BUS, at_ns, &bus_message(time, counts))?;
        }
        if self.ticks.is_multiple_of(SHEET_EVERY) {
            self.write_sheet(at_ns, file)?;
        }
        self.ticks += 1;
        let is_drawing = tick.progress.doing == SpanKind::Draw;
        let job = JobMessage {
            timestamp: time,
            job: self.motion.job.clone(),
            motion: self.number,
            sample: tick.progress.sample,
            samples: tick.progress.of,
            doing: word(tick.progress.doing),
            stroke: self.stroke_of(tick.progress.sample),
            pen,
            pen_down: is_drawing,
            state: word(tick.state),
            depth_trim_mm: (tick.depth_trim_mm * 1e3).round() / 1e3,
        };
        file.write(Topic::JOB, at_ns, &job)
    }

    /// Writes the rest of a line that was being drawn.
    pub(crate) fn end(&mut self, file: &mut McapFile) -> Result<(), RecordingError> {
        let at_ns = self.ns(self.motion.clock.now());
        self.write_ink(at_ns, file)
    }

    fn write_measured(
        &self,
        at_ns: u64,
        pen: usize,
        measured: &ArmMeasurement,
        expected_rad: &JointVector,
        file: &mut McapFile,
    ) -> Result<(), RecordingError> {
        let time = MessageTime::from_ns(at_ns);
        let joints =
            self.joint_states(time, &measured.position_rad, Some(&measured.velocity_rad_s));
        file.write(Topic::JOINT_STATES, at_ns, &joints)?;
        let mount = self.motion.scene.arm.chain.forward(expected_rad);
        let tip = self.pen(pen).map_or_else(Point3::origin, |pen| pen.tip_m);
        let transform = FrameTransformMessage {
            timestamp: time,
            parent_frame_id: BASE,
            child_frame_id: "tip",
            translation: (mount * tip).into(),
            rotation: MessageQuaternion::from_pose(&mount),
        };
        file.write(Topic::TRANSFORMS, at_ns, &transform)?;
        self.write_tip(Topic::PEN, at_ns, pen, expected_rad, file)?;
        let values =
            |value: fn(&ServoState) -> Option<f64>| measured.servos.iter().map(value).collect();
        let servos = ServosMessage {
            timestamp: time,
            load_ratio: values(|servo| servo.load_ratio),
            temperature_c: values(|servo| servo.temperature_c),
            voltage_v: values(|servo| servo.voltage_v),
        };
        file.write(Topic::SERVOS, at_ns, &servos)
    }

    /// Writes the tip's place on the sheet: its coordinates and its height over the paper.
    fn write_tip(
        &self,
        topic: Topic,
        at_ns: u64,
        pen: usize,
        q_rad: &JointVector,
        file: &mut McapFile,
    ) -> Result<(), RecordingError> {
        let Some(tip) = self.tip(pen, q_rad) else {
            return Ok(());
        };
        let projected = self.motion.scene.surface.project(&tip);
        let [x_mm, y_mm] = projected.at_mm;
        let message = PoseInFrameMessage {
            timestamp: MessageTime::from_ns(at_ns),
            frame_id: SHEET.to_owned(),
            pose: MessagePose {
                position: Point3::new(x_mm / 1e3, y_mm / 1e3, projected.height_mm / 1e3).into(),
                orientation: MessageQuaternion::IDENTITY,
            },
        };
        file.write(topic, at_ns, &message)
    }

    fn write_sheet(&self, at_ns: u64, file: &mut McapFile) -> Result<(), RecordingError> {
        let Some(pose) = self.motion.scene.surface.flat_pose() else {
            return Ok(());
        };
        let transform = FrameTransformMessage {
            timestamp: MessageTime::from_ns(at_ns),
            parent_frame_id: BASE,
            child_frame_id: SHEET,
            translation: Point3::from(pose.translation.vector).into(),
            rotation: MessageQuaternion::from_pose(&pose),
        };
        file.write(Topic::TRANSFORMS, at_ns, &transform)
    }

    /// Follows the line that the tip draws.
    fn draw(
        &mut self,
        tick: &MotionTick,
        pen: usize,
        expected_rad: &JointVector,
        at_ns: u64,
        file: &mut McapFile,
    ) -> Result<(), RecordingError> {
        let drawn = (tick.progress.doing == SpanKind::Draw)
            .then_some(tick.progress.item)
            .flatten();
        if self.ink.as_ref().map(|ink| ink.stroke) != drawn {
            self.write_ink(at_ns, file)?;
            self.ink = drawn.map(|stroke| InkLine {
                stroke,
                pen,
                points_m: Vec::new(),
                written: 0,
            });
        }
        let tip = self.tip(pen, expected_rad);
        if let (Some(ink), Some(tip)) = (&mut self.ink, tip) {
            let is_far = |last: &Point3<f64>| (tip - last).norm() * 1e3 > INK_STEP_MM;
            if ink.points_m.last().is_none_or(is_far) {
                ink.points_m.push(tip);
            }
            // The whole line once a second: a later update of the same id replaces it.
            if self.ticks.is_multiple_of(SHEET_EVERY) {
                self.write_ink(at_ns, file)?;
            }
        }
        Ok(())
    }

    fn write_ink(&mut self, at_ns: u64, file: &mut McapFile) -> Result<(), RecordingError> {
        let scene = &self.motion.scene;
        let Some(ink) = &mut self.ink else {
            return Ok(());
        };
        if ink.points_m.len() < 2 || ink.written == ink.points_m.len() {
            return Ok(());
        }
        ink.written = ink.points_m.len();
        let pen = scene.pen(ink.pen);
        let line = SpaceLine {
            points_m: ink.points_m.clone(),
            width_mm: pen.map_or(UNKNOWN_PEN_MM, |pen| pen.width_mm),
            colour: pen.map_or(UNKNOWN_PEN_COLOUR, |pen| pen.colour),
        };
        let id = format!("ink {} {}", self.number, ink.stroke);
        let update = lines_update(MessageTime::from_ns(at_ns), &id, &[line]);
        file.write(Topic::INK, at_ns, &update)
    }

    fn joint_states(
        &self,
        timestamp: MessageTime,
        position_rad: &JointVector,
        velocity_rad_s: Option<&JointVector>,
    ) -> JointStatesMessage {
        let joints = self.joints.iter().zip(position_rad.iter()).enumerate();
        let joints = joints.map(|(index, (name, position))| JointStateMessage {
            name: name.clone(),
            position: *position,
            velocity: velocity_rad_s.and_then(|all| all.get(index).copied()),
        });
        JointStatesMessage {
            timestamp,
            joints: joints.collect(),
        }
    }

    fn tip(&self, pen: usize, q_rad: &JointVector) -> Option<Point3<f64>> {
        Some(self.motion.scene.arm.chain.forward(q_rad) * self.pen(pen)?.tip_m)
    }

    fn pen(&self, index: usize) -> Option<&ScenePen> {
        self.motion.scene.pen(index)
    }

    fn span_of(&self, sample: usize) -> usize {
        let spans = &self.motion.plan.trajectory.spans;
        spans
            .partition_point(|span| span.end <= sample)
            .min(spans.len().saturating_sub(1))
    }

    fn stroke_of(&self, sample: usize) -> Option<usize> {
        self.strokes.get(self.span_of(sample)).copied().flatten()
    }

    fn pen_of(&self, sample: usize) -> usize {
        let spans = &self.motion.plan.trajectory.spans;
        spans.get(self.span_of(sample)).map_or(0, |span| span.pen)
    }
}

fn bus_message(timestamp: MessageTime, counts: &BusCounts) -> BusMessage {
    let total = |count: fn(&ServoCounts) -> u64| counts.servos.iter().map(count).sum();
    BusMessage {
        timestamp,
        cycles: counts.cycles,
        transactions: counts.transactions,
        corrupt: counts.corrupt,
        resent: counts.resent,
        foreign: counts.foreign,
        retries: total(|servo| servo.retries),
        blind: total(|servo| servo.blind),
        jumps: total(|servo| servo.jumps),
    }
}
