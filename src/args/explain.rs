//! Explains how arguments would be understood and what each profile would do about them, without doing it.

use super::{
    arguments::JudgedCandidate,
    outcome::{ArgumentComplaint, ArgumentReading, ArgumentRepair},
    read::{self, ReceivedArguments},
    rules::{ForgivenessProfile, ReaderPolicy, RepairClass, ToolEffect},
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
    /// Complaints about this reading.
    pub complaints: Vec<ArgumentComplaint>,
    /// Repairs that this reading needs.
    pub repairs: Vec<ArgumentRepair>,
}

/// Decision of one profile.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ProfileVerdict {
    /// The profile.
    pub profile: ForgivenessProfile,
    /// True if the tool would run.
    pub runs: bool,
    /// With what, defaults included.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub understood: Option<Map<String, Value>>,
    /// The worst that was lost.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub loss: Option<RepairClass>,
    /// Reason why the tool would not run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub refused: Option<String>,
    /// Arguments that would be accepted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub corrected: Option<Map<String, Value>>,
    /// Further advice for the next call.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub guidance: String,
    /// Every repair.
    pub repairs: Vec<ArgumentRepair>,
}

/// Everything there is to say about one text.
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
    let judged = read::judged(shape, &guarded, ReceivedArguments::Text(text.to_owned()));
    ReadingExplanation {
        effect,
        candidates: judged.map(alternative).collect(),
        profiles: [ForgivenessProfile::Lenient, ForgivenessProfile::Guarded]
            .map(|profile| verdict(shape, effect, profile, text))
            .into(),
    }
}

impl fmt::Display for ReadingExplanation {
    /// For people: each way of reading the text, then what each profile does, then every repair.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, way) in self.candidates.iter().enumerate() {
            let cost = way.cost;
            match &way.understood {
                Some(understood) => writeln!(
                    f,
                    "reading {} at cost {cost}: {}",
                    index + 1,
                    json(understood)
                )?,
                None => writeln!(f, "reading {} at cost {cost} is none", index + 1)?,
            }
        }
        for verdict in &self.profiles {
            write!(f, "\n{verdict}")?;
        }
        Ok(())
    }
}

impl fmt::Display for ProfileVerdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let profile = match self.profile {
            ForgivenessProfile::Lenient => "lenient",
            ForgivenessProfile::Guarded => "guarded",
        };
        if let Some(understood) = &self.understood {
            writeln!(f, "{profile}: runs with {}", json(understood))?;
        }
        if let Some(refused) = &self.refused {
            writeln!(f, "{profile}: refused: {refused}")?;
        }
        if let Some(corrected) = &self.corrected {
            writeln!(f, "  this would be accepted: {}", json(corrected))?;
        }
        if !self.guidance.is_empty() {
            writeln!(f, "  {}", self.guidance)?;
        }
        self.repairs
            .iter()
            .try_for_each(|repair| write!(f, "  {repair}"))
    }
}

impl fmt::Display for ArgumentRepair {
    /// One line: class, cost, code, field, what became of what, and why.
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
        match (got.is_empty(), used.is_empty()) {
            (false, false) => write!(f, ": {got} → {used}")?,
            (false, true) => write!(f, ": {got}")?,
            (true, false) => write!(f, ": {used}")?,
            (true, true) => {}
        }
        writeln!(f, " ({why})")
    }
}

fn json(map: &Map<String, Value>) -> String {
    serde_json::to_string(map).unwrap_or_default()
}

fn alternative(judged: JudgedCandidate) -> ReadingAlternative {
    let cost = judged.cost;
    match judged.outcome {
        Ok(ArgumentReading {
            understood,
            repairs,
            ..
        }) => ReadingAlternative {
            cost,
            understood: Some(understood),
            complaints: Vec::new(),
            repairs,
        },
        Err(refusal) => ReadingAlternative {
            cost,
            understood: None,
            complaints: refusal.complaints,
            repairs: refusal.repairs,
        },
    }
}

fn verdict(
    shape: &ArgumentShape,
    effect: ToolEffect,
    profile: ForgivenessProfile,
    text: &str,
) -> ProfileVerdict {
    match read::read(
        shape,
        &ReaderPolicy::new(effect, profile),
        ReceivedArguments::Text(text.to_owned()),
    ) {
        Ok(reading) => ProfileVerdict {
            profile,
            runs: true,
            understood: Some(reading.understood),
            loss: Some(reading.loss),
            refused: None,
            corrected: None,
            guidance: String::new(),
            repairs: reading.repairs,
        },
        Err(refusal) => {
            let refused = Some(refusal.to_string());
            ProfileVerdict {
                profile,
                runs: false,
                understood: None,
                loss: None,
                refused,
                corrected: refusal.corrected,
                guidance: refusal.guidance,
                repairs: refusal.repairs,
            }
        }
    }
}

/// One line's answer: what was sent as it was understood, without defaults and nulls, or why not.
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

/// Judges one text by a foreign schema, as for a tool that moves in the guarded profile, unknown keys ignored.
#[must_use]
pub fn explain_line(shape: &ArgumentShape, text: &str) -> LineReading {
    match read::read(
        shape,
        &ReaderPolicy::of_foreign_schema(),
        ReceivedArguments::Text(text.to_owned()),
    ) {
        Ok(reading) => LineReading::Understood {
            understood: reading
                .given
                .into_iter()
                .filter(|(_, value)| !value.is_null())
                .collect(),
            repairs: reading.repairs,
        },
        Err(refusal) => LineReading::Refused {
            refused: refusal.to_string(),
            complaints: refusal.complaints,
            corrected: refusal.corrected,
            repairs: refusal.repairs,
        },
    }
}
