//! Explains how arguments would be understood and what each profile would do about them, without doing it.

use super::{
    arguments::ReadCandidate,
    judge::{ForgivenessProfile, ReaderPolicy, RepairClass, ToolEffect, Verdict},
    leftover::Leftover,
    outcome::{self, ArgumentComplaint, ArgumentRefusal, ArgumentRepair},
    read::{self, ReceivedArguments},
    shape::ArgumentShape,
};
use serde::Serialize;
use serde_json::{Map, Value};
use std::fmt;

/// One way of reading a text.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ReadingAlternative {
    /// Cost of this reading; the cheapest wins.
    pub cost: u32,
    /// Arguments that would be used if this reading were accepted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub understood: Option<Map<String, Value>>,
    /// Only what was sent, after repair.
    #[serde(skip)]
    pub given: Map<String, Value>,
    /// Complaints about this reading.
    pub complaints: Vec<ArgumentComplaint>,
    /// Repairs that this reading needs.
    pub repairs: Vec<ArgumentRepair>,
}

/// What a tool does with a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum CallOutcome {
    /// It moves, or does what else it does.
    Moves,
    /// It runs and moves nothing, as it never does.
    Runs,
    /// It shows what it would do.
    Preview,
    /// It does nothing.
    Refused,
}

/// Decision of one profile.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ProfileVerdict {
    /// The profile.
    pub profile: ForgivenessProfile,
    /// What the tool would do.
    pub outcome: CallOutcome,
    /// Arguments it would run with, defaults included.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub understood: Option<Map<String, Value>>,
    /// Only what was sent, after repair.
    #[serde(skip)]
    pub given: Map<String, Value>,
    /// The worst that was lost.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub loss: Option<RepairClass>,
    /// Reason why the tool would not run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub refused: Option<String>,
    /// What was not understood.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub not_understood: Vec<Leftover>,
    /// Every repair.
    pub repairs: Vec<ArgumentRepair>,
}

/// Full explanation of how one text is read.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ReadingExplanation {
    /// Effect of the tool.
    pub effect: ToolEffect,
    /// Each candidate reading, judged as the guarded profile judges.
    pub candidates: Vec<ReadingAlternative>,
    /// Decision of each profile.
    pub profiles: Vec<ProfileVerdict>,
}

/// Explains how `text` would be read as the arguments of a tool of this shape and effect.
#[must_use]
pub fn explain(shape: &ArgumentShape, effect: ToolEffect, text: &str) -> ReadingExplanation {
    let guarded = ReaderPolicy::new(effect, ForgivenessProfile::Guarded);
    let judged = read::candidates(shape, &guarded, ReceivedArguments::Text(text.to_owned()));
    ReadingExplanation {
        effect,
        candidates: judged.map(alternative).collect(),
        profiles: ForgivenessProfile::ALL
            .map(|profile| verdict(shape, effect, profile, text))
            .into(),
    }
}

impl fmt::Display for ReadingExplanation {
    /// Writes for people: each reading of the text, then what each profile does, then every repair.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (number, candidate) in (1..).zip(&self.candidates) {
            let cost = candidate.cost;
            match &candidate.understood {
                Some(understood) => {
                    writeln!(f, "reading {number} at cost {cost}: {}", json(understood))?;
                }
                None => writeln!(f, "reading {number} at cost {cost} is refused")?,
            }
        }
        let mut profiles = self.profiles.iter();
        profiles.try_for_each(|verdict| write!(f, "\n{verdict}"))
    }
}

impl fmt::Display for ProfileVerdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let profile = match self.profile {
            ForgivenessProfile::Lenient => "lenient",
            ForgivenessProfile::Guarded => "guarded",
        };
        let does = match self.outcome {
            CallOutcome::Moves => "moves",
            CallOutcome::Runs => "runs",
            CallOutcome::Preview => "shows a preview (nothing moves)",
            CallOutcome::Refused => "refuses",
        };
        match (&self.understood, &self.refused) {
            (Some(understood), _) => writeln!(f, "{profile}: {does} with {}", json(understood))?,
            (None, refused) => {
                writeln!(
                    f,
                    "{profile}: refused: {}",
                    refused.as_deref().unwrap_or_default()
                )?;
            }
        }
        let mut repairs = self.repairs.iter();
        repairs.try_for_each(|repair| write!(f, "  {repair}"))
    }
}

impl fmt::Display for ArgumentRepair {
    /// Writes one line: class, cost, code, field, the value before and after, and the reason.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            class,
            cost,
            code,
            field,
            got,
            used,
            why,
        } = self;
        write!(f, "{class:?} cost {cost:>3}  {code}  {field}")?;
        match (got.as_str(), used.as_str()) {
            ("", "") => {}
            ("", one) | (one, "") => write!(f, ": {one}")?,
            (got, used) => write!(f, ": {got} → {used}")?,
        }
        writeln!(f, " ({why})")
    }
}

fn json(map: &Map<String, Value>) -> String {
    serde_json::to_string(map).unwrap_or_default()
}

fn alternative(read: ReadCandidate) -> ReadingAlternative {
    let (understood, given, complaints, repairs) = match read.outcome {
        Ok(reading) => (
            Some(reading.understood),
            reading.given,
            Vec::new(),
            reading.repairs,
        ),
        Err(refusal) => (None, Map::new(), refusal.complaints, refusal.repairs),
    };
    ReadingAlternative {
        cost: read.cost,
        understood,
        given,
        complaints,
        repairs,
    }
}

fn verdict(
    shape: &ArgumentShape,
    effect: ToolEffect,
    profile: ForgivenessProfile,
    text: &str,
) -> ProfileVerdict {
    let policy = ReaderPolicy::new(effect, profile);
    let received = ReceivedArguments::Text(text.to_owned());
    let (outcome, reading) = match read::judged(shape, &policy, received) {
        Verdict::Understood(understood) => {
            let outcome = match effect {
                ToolEffect::Moves if understood.reading().is_cautious => CallOutcome::Preview,
                ToolEffect::Moves => CallOutcome::Moves,
                _ => CallOutcome::Runs,
            };
            (outcome, understood.reading().clone())
        }
        Verdict::Preview(reading) => (CallOutcome::Preview, reading),
        Verdict::Refused(refusal) => {
            return ProfileVerdict {
                profile,
                outcome: CallOutcome::Refused,
                understood: None,
                given: Map::new(),
                loss: None,
                refused: Some(refusal.to_string()),
                not_understood: Vec::new(),
                repairs: refusal.repairs,
            };
        }
    };
    ProfileVerdict {
        profile,
        outcome,
        understood: Some(reading.understood),
        given: reading.given,
        loss: Some(reading.loss),
        refused: None,
        not_understood: reading.leftover,
        repairs: reading.repairs,
    }
}

/// Result of reading one line: the arguments that were sent, without defaults and nulls, or the refusal.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(untagged)]
pub enum LineReading {
    /// It can be read.
    Understood {
        /// Only what was sent.
        understood: Map<String, Value>,
        /// Repairs that were needed.
        repairs: Vec<ArgumentRepair>,
    },
    /// It cannot.
    Refused {
        /// One sentence.
        refused: String,
        /// Every complaint.
        complaints: Vec<ArgumentComplaint>,
        /// Arguments that would be accepted; none where a value would have to be invented.
        #[serde(skip_serializing_if = "Option::is_none")]
        corrected: Option<Map<String, Value>>,
        /// Repairs made before.
        repairs: Vec<ArgumentRepair>,
    },
}

/// Judges one text by a foreign schema, as the guarded profile would for a tool that moves, but with unknown keys ignored.
#[must_use]
pub fn explain_line(shape: &ArgumentShape, text: &str) -> LineReading {
    let policy = ReaderPolicy::of_foreign_schema();
    match read::read(shape, &policy, ReceivedArguments::Text(text.to_owned())) {
        Ok(reading) => {
            let given = reading.given.into_iter();
            LineReading::Understood {
                understood: given.filter(|(_, value)| !value.is_null()).collect(),
                repairs: reading.repairs,
            }
        }
        Err(refusal) => LineReading::Refused {
            refused: refusal.to_string(),
            corrected: corrected(shape, &refusal),
            complaints: refusal.complaints,
            repairs: refusal.repairs,
        },
    }
}

/// Returns arguments that would be accepted: the readable ones, and the declared default of each that was refused, if it has
/// one. `None` where a value would have to be invented.
fn corrected(shape: &ArgumentShape, refusal: &ArgumentRefusal) -> Option<Map<String, Value>> {
    let mut call = refusal.good.clone();
    for complaint in &refusal.complaints {
        let root = outcome::root(&complaint.path);
        let param = shape.params.iter().find(|param| param.name == root)?;
        match &param.default {
            Some(default) => _ = call.insert(param.name.clone(), default.clone()),
            None if param.required => return None,
            None => {}
        }
    }
    Some(call)
}
