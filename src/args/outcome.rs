//! Results of reading: the arguments as understood with every repair, or a refusal with every complaint.

use super::{
    judge::{ReaderRule, RepairClass},
    leftover::Leftover,
    limits::{COMPLAINTS_MAX, REPAIRS_MAX},
};
use serde::Serialize;
use serde_json::{Map, Value};
use std::{borrow::Cow, fmt};

/// Something that was assumed or repaired.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ArgumentRepair {
    /// The parameter, or `arguments` for the text as a whole.
    pub field: String,
    /// Received value, cut and escaped.
    pub got: String,
    /// Value used instead, cut and escaped.
    pub used: String,
    /// Class of the loss.
    pub class: RepairClass,
    /// Its cost: the cheapest reading wins.
    pub cost: u32,
    /// A stable word for programs, such as `payload_lost`.
    pub code: &'static str,
    /// Reason for the repair.
    pub why: Cow<'static, str>,
}

impl ArgumentRepair {
    /// Returns a repair of form, which shows neither the received value nor the one used instead.
    pub(super) fn new(
        field: &str,
        code: &'static str,
        cost: u32,
        reason: impl Into<Cow<'static, str>>,
    ) -> Self {
        Self {
            field: field.to_owned(),
            got: String::new(),
            used: String::new(),
            class: RepairClass::L0,
            cost,
            code,
            why: reason.into(),
        }
    }
}

/// The arguments as they will be used.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ArgumentReading {
    /// By parameter, defaults included.
    pub understood: Map<String, Value>,
    /// Only what was sent, after repair.
    pub given: Map<String, Value>,
    /// In the order in which they were made.
    pub repairs: Vec<ArgumentRepair>,
    /// The worst of the repairs.
    pub loss: RepairClass,
    /// True if nothing moves with these arguments: they ask for a dry run.
    pub is_cautious: bool,
    /// What nothing accounts for, in the order in which it was found.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub leftover: Vec<Leftover>,
    /// True if what is left over or ignored names a scene or an overlay that the call does not use.
    #[serde(skip)]
    pub names_other: bool,
    /// True if words, or values that are no arguments, are left over, and not only keys.
    #[serde(skip)]
    pub leaves_words: bool,
}

impl ArgumentReading {
    /// Returns the total cost.
    #[must_use]
    pub fn cost(&self) -> u32 {
        self.repairs.iter().map(|repair| repair.cost).sum()
    }
}

/// One thing that is wrong with the call.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ArgumentComplaint {
    /// A stable word for programs.
    pub code: &'static str,
    /// The parameter, or empty for the text as a whole.
    pub path: String,
    /// Received value, cut and escaped.
    pub received: String,
    /// Description of a correct value, in words.
    pub expected: String,
    /// Valid values, the nearest first; at most a dozen.
    pub valid: Vec<String>,
    /// Description of the mistake, in one clause.
    pub why: String,
}

/// The call is not carried out.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ArgumentRefusal {
    /// Every complaint at once.
    pub complaints: Vec<ArgumentComplaint>,
    /// Good arguments that were sent, without what was refused.
    pub good: Map<String, Value>,
    /// Repairs made before it was refused.
    pub repairs: Vec<ArgumentRepair>,
    /// The gravest rule of the complaints.
    pub kind: ReaderRule,
}

impl fmt::Display for ArgumentRefusal {
    /// Writes one sentence: what is wrong, what was received, what is valid.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, complaint) in self.complaints.iter().enumerate() {
            f.write_str(if index == 0 { "" } else { "; " })?;
            write!(f, "{complaint}")?;
        }
        Ok(())
    }
}

impl std::error::Error for ArgumentRefusal {}

impl fmt::Display for ArgumentComplaint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.path.is_empty() {
            write!(f, "{}: ", self.path)?;
        }
        f.write_str(&self.why)?;
        if !self.received.is_empty() {
            write!(f, " (received {})", self.received)?;
        }
        if self.valid.is_empty() {
            write!(f, ", expected {}", self.expected)
        } else {
            write!(f, ", valid: {}", self.valid.join(", "))
        }
    }
}

/// Repairs in the order they are made. Keeps the first few, the total cost and the worst class.
#[derive(Debug, Clone, Default)]
pub(super) struct RepairLog {
    pub(super) list: Vec<ArgumentRepair>,
    pub(super) cost: u32,
    pub(super) loss: Option<RepairClass>,
}

impl RepairLog {
    pub(super) fn push(&mut self, repair: ArgumentRepair) {
        self.cost = self.cost.saturating_add(repair.cost);
        self.loss = self.loss.max(Some(repair.class));
        if self.list.len() < REPAIRS_MAX {
            self.list.push(repair);
        }
    }
}

/// A complaint with the rule it comes under.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct ArgumentIssue {
    pub(super) rule: ReaderRule,
    pub(super) complaint: Box<ArgumentComplaint>,
}

impl ArgumentIssue {
    pub(super) fn new(
        rule: ReaderRule,
        code: &'static str,
        path: &str,
        reason: impl Into<String>,
    ) -> Self {
        let complaint = Box::new(ArgumentComplaint {
            code,
            path: path.to_owned(),
            received: String::new(),
            expected: String::new(),
            valid: Vec::new(),
            why: reason.into(),
        });
        Self { rule, complaint }
    }

    /// Returns the parameter or key that it is about, even if the fault lies deeper inside the value.
    pub(super) fn subject(&self) -> &str {
        root(&self.complaint.path)
    }

    pub(super) fn received(mut self, received: String) -> Self {
        self.complaint.received = received;
        self
    }

    pub(super) fn expected(mut self, expected: impl Into<String>) -> Self {
        self.complaint.expected = expected.into();
        self
    }

    pub(super) fn valid(mut self, valid: Vec<String>) -> Self {
        self.complaint.valid = valid;
        self
    }
}

/// Returns the parameter or key that a path begins with: `at_mm` of `at_mm[0]`.
pub(super) fn root(path: &str) -> &str {
    path.split(['.', '[']).next().unwrap_or(path)
}

/// Returns the complaints of refused issues, at most [`COMPLAINTS_MAX`].
pub(super) fn complaints(refused: &[ArgumentIssue]) -> Vec<ArgumentComplaint> {
    refused
        .iter()
        .take(COMPLAINTS_MAX)
        .map(|issue| (*issue.complaint).clone())
        .collect()
}
