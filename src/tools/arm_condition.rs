//! One table of what an arm may be doing: its sentence, colour and shape, and the one next step. The page, the view in MCP
//! clients and the terminal's `status` all say what stands here.

use serde::Serialize;
use serde_json::{Value, json};

use super::job_board::JobCard;
use super::motion_job::refresh_card;
use super::stop_cause::StopCause;
use super::{AttachedArm, Node, reset};
use motion::{MotionState, Snapshot};
use permit::StopLatch;

/// Time for which the next step enables a scene.
const ENABLED_S: u64 = 30 * 60;

/// Kind of an arm's condition.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum ConditionKind {
    NotConnected,
    EmergencyStop,
    Fault,
    Stopping,
    Stopped,
    WaitsForPerson,
    Held,
    Planning,
    Moving,
    Limp,
    AtRest,
    Standing,
}

impl ConditionKind {
    /// Returns the colour and the shape: no two kinds that ask for different steps share both.
    const fn look(self) -> (&'static str, &'static str) {
        match self {
            Self::NotConnected => ("bad", "slash"),
            Self::EmergencyStop => ("bad", "octagon"),
            Self::Fault => ("bad", "triangle"),
            Self::Stopping => ("wait", "square"),
            Self::Stopped => ("wait", "square"),
            Self::WaitsForPerson => ("wait", "person"),
            Self::Held => ("wait", "pause"),
            Self::Planning => ("busy", "dots"),
            Self::Moving => ("busy", "play"),
            Self::Limp => ("quiet", "ring"),
            Self::AtRest | Self::Standing => ("good", "disc"),
        }
    }
}

/// What to do next about an arm.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct NextStep {
    /// Words of the button.
    pub label: String,
    /// The command that does the same, without the program's name.
    pub command: String,
    /// The operator's verb as JSON, or the part of the page to open; absent where there is only to wait.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub action: Option<Value>,
}

impl NextStep {
    fn new(label: impl Into<String>, command: impl Into<String>) -> Self {
        Self {
            label: label.into(),
            command: command.into(),
            action: None,
        }
    }

    fn sending(self, verb: &Value) -> Self {
        let action = Some(json!({ "verb": verb }));
        Self { action, ..self }
    }

    fn opening(self, part: &str) -> Self {
        let action = Some(json!({ "open": part }));
        Self { action, ..self }
    }
}

/// An arm's condition in words.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ArmCondition {
    /// Its kind.
    pub kind: ConditionKind,
    /// `good`, `busy`, `wait`, `bad` or `quiet`.
    pub colour: &'static str,
    /// Name of the shape beside the words, so that colour is not all that tells.
    pub shape: &'static str,
    /// What the arm is doing, in a few words.
    pub sentence: String,
    /// Why.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cause: Option<String>,
    /// The next step.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next: Option<NextStep>,
}

impl ArmCondition {
    fn new(kind: ConditionKind, sentence: impl Into<String>) -> Self {
        let (colour, shape) = kind.look();
        Self {
            kind,
            colour,
            shape,
            sentence: sentence.into(),
            cause: None,
            next: None,
        }
    }

    fn because(self, cause: impl Into<Option<String>>) -> Self {
        let cause = cause.into().filter(|cause| !cause.is_empty());
        Self { cause, ..self }
    }

    fn then(self, next: impl Into<Option<NextStep>>) -> Self {
        let next = next.into();
        Self { next, ..self }
    }

    /// Returns the condition that a page shows when it does not hear its node any more.
    #[must_use]
    pub fn of_lost_node() -> Self {
        Self::new(ConditionKind::NotConnected, "Not connected to the node")
            .because("this page shows an old state: look at the arm itself".to_owned())
    }

    /// Returns the sentence with its cause.
    #[must_use]
    pub fn words(&self) -> String {
        match &self.cause {
            Some(cause) => format!("{}: {cause}", self.sentence),
            None => self.sentence.clone(),
        }
    }

    /// Returns it as data for a view that sends no operator's verb.
    #[must_use]
    pub(super) fn to_json(&self) -> Value {
        let next = self.next.as_ref().map(|next| &next.label);
        json!({"kind": self.kind, "colour": self.colour, "shape": self.shape, "words": self.words(), "next": next})
    }

    /// Returns it as the page's head has it, without the verb of the next step.
    #[must_use]
    pub(super) fn to_view(&self) -> Value {
        let next = self.next.as_ref().map(|next| NextStep {
            action: None,
            ..next.clone()
        });
        let view = Self {
            next,
            ..self.clone()
        };
        serde_json::to_value(view).unwrap_or_default()
    }

    /// Returns the last line of `status`.
    #[must_use]
    pub fn next_line(&self) -> String {
        match &self.next {
            Some(next) => format!("next: `steadyhand {}` ({})", next.command, next.label),
            None => "next: wait (nothing else to do)".to_owned(),
        }
    }
}

/// Everything that the table reads.
#[derive(Clone, Debug, Default)]
struct ConditionFacts {
    state: MotionState,
    is_limp: bool,
    is_unsteady: bool,
    is_at_rest: bool,
    fault: Option<String>,
    latched: Option<StopLatch>,
    stopped_by: Option<String>,
    /// Why nothing may move on this node at all.
    withheld: Option<&'static str>,
    /// The job that has not ended.
    job: Option<JobCard>,
    /// True if a drawing was broken off by the node's end: its pen may still stand on the paper.
    is_interrupted: bool,
    /// The number of the pen that the job waits for.
    awaited_pen: Option<usize>,
    arm: String,
    /// Option of a command that names the arm, where the node has several.
    arm_option: String,
    /// Scene and overlay to enable before a reset, where that is needed.
    to_enable: Option<(String, Option<String>)>,
}

impl ConditionFacts {
    fn condition(&self) -> ArmCondition {
        let latched = self.latched.as_ref();
        if let Some(StopLatch::Emergency(_)) = latched {
            let clear = NextStep::new("Clear the emergency stop", "clear");
            return ArmCondition::new(ConditionKind::EmergencyStop, "Emergency stop")
                .because(self.stopped_by.clone())
                .then(clear.sending(&json!({"verb": "clear"})));
        }
        if self.state == MotionState::Detached {
            let doctor = NextStep::new("Find the problem", "doctor").opening("arm");
            return ArmCondition::new(ConditionKind::NotConnected, "Not connected to the arm")
                .because(self.fault.clone())
                .then(doctor);
        }
        if let Some(fault) = self.fault_text() {
            return ArmCondition::new(ConditionKind::Fault, "Fault")
                .because(fault)
                .then(self.to_rest("Bring to rest (once the cause is removed)"));
        }
        if self.state == MotionState::Stopping {
            return ArmCondition::new(ConditionKind::Stopping, "Stopping");
        }
        if latched.is_some() || self.state == MotionState::Stopped {
            let unsteady = self.is_unsteady.then_some("standstill not verified");
            let causes = self.stopped_by.as_deref().into_iter().chain(unsteady);
            return ArmCondition::new(ConditionKind::Stopped, "Stopped")
                .because(causes.collect::<Vec<_>>().join("; "))
                .then(self.to_rest("Bring to rest"));
        }
        match &self.job {
            Some(job) => self.of_job(job),
            None if self.state == MotionState::Held => self.held(None),
            None if self.state == MotionState::Moving => {
                ArmCondition::new(ConditionKind::Moving, "Moving").then(hold())
            }
            None => self.of_standing_arm(),
        }
    }

    fn fault_text(&self) -> Option<String> {
        let latched = match &self.latched {
            Some(StopLatch::Fault(text) | StopLatch::Hot(text)) => Some(text.clone()),
            _ => None,
        };
        let is_faulted = self.state == MotionState::Faulted || latched.is_some();
        let text = self.fault.clone().or(latched);
        text.or_else(|| is_faulted.then(|| "the node's log names it".to_owned()))
    }

    /// Returns the condition of an arm with a job that has not ended.
    fn of_job(&self, job: &JobCard) -> ArmCondition {
        let id = &job.id;
        if let Some(awaited) = &job.waits_for {
            let label = match job.pauses {
                true => "Go on".to_owned(),
                false => "The pen is in: continue".to_owned(),
            };
            let pen = NextStep::new(label, format!("pen {id}"));
            let verb = json!({"verb": "pen", "job": id, "confirmed": self.awaited_pen});
            return ArmCondition::new(
                ConditionKind::WaitsForPerson,
                format!("Waits for {awaited}"),
            )
            .because(format!("{id} draws {}", job.scene))
            .then(pen.sending(&verb));
        }
        if job.awaits_approval {
            let look = NextStep::new("Look at the plan", format!("approve {id}"));
            return ArmCondition::new(ConditionKind::WaitsForPerson, "Waits for your approval")
                .because(format!("{} asks to draw {}", job.caller, job.scene))
                .then(look.opening("jobs"));
        }
        if self.state == MotionState::Held {
            return self.held(Some(job));
        }
        if self.state == MotionState::Moving {
            return ArmCondition::new(ConditionKind::Moving, action(job)).then(hold());
        }
        ArmCondition::new(ConditionKind::Planning, format!("Planning: {}", job.scene))
            .then(NextStep::new("Follow it", format!("watch {id}")))
    }

    fn held(&self, job: Option<&JobCard>) -> ArmCondition {
        let next = NextStep::new("Continue", "continue").sending(&json!({"verb": "resume"}));
        ArmCondition::new(ConditionKind::Held, "Held, pen up")
            .because(job.map(action))
            .then(next)
    }

    fn of_standing_arm(&self) -> ArmCondition {
        let next = match (self.is_interrupted, self.is_at_rest) {
            (false, _) => NextStep::new("Draw something", "draw FILE").opening("draw"),
            (true, false) => self.to_rest("Lift the pen, and bring the arm to rest"),
            (true, true) => NextStep::new("Draw the rest", "draw --resume").opening("draw"),
        };
        let condition = if self.is_limp {
            ArmCondition::new(ConditionKind::Limp, "Limp").because("its torque is off".to_owned())
        } else if self.is_at_rest {
            ArmCondition::new(ConditionKind::AtRest, "At rest")
        } else {
            let unsteady = self.is_unsteady.then_some("standstill not verified");
            ArmCondition::new(ConditionKind::Standing, "Stands and holds its pose")
                .because(unsteady.map(str::to_owned))
        };
        match self.withheld {
            Some(reason) => condition.because(reason.to_owned()),
            None => condition.then(next),
        }
    }

    /// Returns the step that brings the arm to rest, or the one that allows it to.
    fn to_rest(&self, label: &str) -> NextStep {
        let (arm, option) = (&self.arm, &self.arm_option);
        let Some((scene, overlay)) = &self.to_enable else {
            return NextStep::new(label, format!("reset{option}"))
                .sending(&json!({"verb": "reset", "scene": null, "arm": arm}));
        };
        let command = permit::enabling_command(scene, overlay.as_deref()) + option;
        let verb = json!({"verb": "enable", "scene": scene, "meta": overlay, "for_s": ENABLED_S, "arm": arm});
        NextStep::new(
            format!("Enable {scene}, so that the arm can go to rest"),
            command,
        )
        .sending(&verb)
    }
}

/// Returns who stopped an arm, or else what did.
fn stop_words(cause: &StopCause) -> String {
    match &cause.caller {
        Some(caller) => format!("by {caller}"),
        None => cause.cause.clone(),
    }
}

fn hold() -> NextStep {
    NextStep::new("Hold", "hold").sending(&json!({"verb": "hold", "now": false}))
}

/// Returns what a job does, in words.
fn action(job: &JobCard) -> String {
    let title = &job.scene;
    match job.tool.as_str() {
        "stroke" => format!("Drawing {title}"),
        "frame" => format!("Moving around the frame of {title}"),
        "align" => format!("Aligning in {title}"),
        "reset" => "Going to rest".to_owned(),
        "park" => "Parking".to_owned(),
        "jog" => "Jogging".to_owned(),
        other => format!("Moving for {other}"),
    }
}

impl Node {
    /// Returns what an arm is doing, in words, with the next step. Asks no arm's thread and reads no file.
    #[must_use]
    pub fn condition(&self, arm: &AttachedArm) -> ArmCondition {
        self.condition_facts(arm, &arm.motion.snapshot())
            .condition()
    }

    fn condition_facts(&self, arm: &AttachedArm, snapshot: &Snapshot) -> ConditionFacts {
        let job = arm.board.under_way();
        let job = job.map(|job| {
            refresh_card(arm, &job);
            job.card()
        });
        let awaited = job.as_ref().and_then(|job| {
            let mut pens = self.awaited_pens().into_iter();
            pens.find(|pen| pen.job == job.id).map(|pen| pen.pen)
        });
        ConditionFacts {
            state: snapshot.state,
            is_limp: !snapshot.energised,
            is_unsteady: snapshot.is_unsteady,
            is_at_rest: arm.is_at_rest(),
            fault: snapshot.fault.clone(),
            latched: arm.permits().latched(),
            stopped_by: arm.stopped_by().map(|cause| stop_words(&cause)),
            withheld: self.motion_withheld(),
            job,
            is_interrupted: self.job_store.interrupted(arm.key()).is_some(),
            awaited_pen: awaited,
            arm: arm.name.clone(),
            arm_option: self.arm_option(arm),
            to_enable: reset::scene_to_enable(arm),
        }
    }
}

#[cfg(test)]
mod tests;
