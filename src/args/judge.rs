//! Decides what becomes of a call that was read: it is carried out, previewed or refused. Nothing else knows both what a
//! tool does and how strictly its arm is guarded.

use super::{
    leftover::Leftover,
    outcome::{ArgumentComplaint, ArgumentReading, ArgumentRefusal},
    parsed_value,
    shape::{ArgumentShape, ParameterShape, ValueKind},
};
use base::nearest::nearest;
pub use call::ToolEffect;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// Strictness towards a tool that moves.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ForgivenessProfile {
    /// What is left over is ignored, with a warning. Words alone are shown first.
    Lenient,
    /// What is left over is shown first.
    Guarded,
}

impl ForgivenessProfile {
    pub(super) const ALL: [Self; 2] = [Self::Lenient, Self::Guarded];
}

/// What becomes of keys that match no parameter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum UnknownKeyPolicy {
    /// They are left over.
    Judged,
    /// They are ignored, as a foreign JSON Schema allows.
    Ignored,
}

/// Form of the values in the result.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ValueRendering {
    /// In the declared type.
    AsDeclared,
    /// As they were sent, where they fit.
    AsSent,
}

/// What a tool does, and how its arguments are judged.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ReaderPolicy {
    /// Effect of the tool on the world.
    pub effect: ToolEffect,
    /// Strictness, if it moves.
    pub profile: ForgivenessProfile,
    /// True if motion is enabled for the default scene and nothing else.
    pub default_is_all_enabled: bool,
    /// True if the caller's last call of a tool that moves was refused or doubted.
    pub after_doubt: bool,
    /// What becomes of unknown keys.
    pub unknown_keys: UnknownKeyPolicy,
    /// Form of the values.
    pub render: ValueRendering,
}

/// The ways in which a call can be faulty.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum ReaderRule {
    /// Written in another form, with one meaning.
    Form,
    /// A key of the closed list, whose value means nothing.
    Ignored,
    /// An empty value of an optional parameter.
    Empty,
    /// A key or words that nothing accounts for.
    Leftover,
    /// A client lost the arguments on the way.
    PayloadLost,
    /// A text that holds no arguments, for a foreign schema.
    NoArguments,
    /// It says two things, or none that is whole.
    Contradiction,
    /// A value that its parameter does not take.
    Invalid,
    /// Data that did not arrive to the letter.
    Verbatim,
}

/// Class of what a repair loses.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum RepairClass {
    /// Form only.
    L0,
    /// Something without a meaning.
    L1,
    /// Something that may have had one.
    L2,
}

impl ReaderRule {
    /// Returns the class of what is lost if the rule lets the call pass.
    #[must_use]
    pub const fn class(self) -> RepairClass {
        match self {
            Self::Form => RepairClass::L0,
            Self::Ignored | Self::Empty => RepairClass::L1,
            _ => RepairClass::L2,
        }
    }

    /// Returns the cost of going on regardless: the cheapest reading wins.
    pub(super) const fn cost(self) -> u32 {
        match self {
            Self::Form | Self::Ignored | Self::Empty => 1,
            Self::Leftover => 10,
            Self::PayloadLost | Self::NoArguments => 100,
            Self::Contradiction | Self::Invalid => 110,
            Self::Verbatim => 130,
        }
    }
}

impl ReaderPolicy {
    /// Returns the policy of a tool with this effect.
    #[must_use]
    pub const fn new(effect: ToolEffect, profile: ForgivenessProfile) -> Self {
        Self {
            effect,
            profile,
            default_is_all_enabled: false,
            after_doubt: false,
            unknown_keys: UnknownKeyPolicy::Judged,
            render: ValueRendering::AsDeclared,
        }
    }

    /// Returns the policy for a foreign schema: as for a tool that moves, but with unknown keys ignored.
    #[must_use]
    pub const fn of_foreign_schema() -> Self {
        Self {
            default_is_all_enabled: true,
            unknown_keys: UnknownKeyPolicy::Ignored,
            render: ValueRendering::AsSent,
            ..Self::new(ToolEffect::Moves, ForgivenessProfile::Guarded)
        }
    }

    /// Returns whether the tool moves, and what belongs to no parameter matters.
    pub(super) const fn guards_motion(&self) -> bool {
        matches!(
            (self.effect, self.unknown_keys),
            (ToolEffect::Moves, UnknownKeyPolicy::Judged)
        )
    }

    const fn is_guarded(&self) -> bool {
        matches!(self.profile, ForgivenessProfile::Guarded)
    }

    /// Returns whether a call with such a fault is refused. What is left over is judged by [`judge`].
    #[must_use]
    pub const fn refuses(&self, rule: ReaderRule) -> bool {
        match (self.effect, rule) {
            (ToolEffect::Stops, _) => false,
            (_, ReaderRule::Invalid | ReaderRule::Verbatim) => true,
            (ToolEffect::Reads, _) => false,
            (_, ReaderRule::Contradiction | ReaderRule::NoArguments) => true,
            (_, ReaderRule::PayloadLost) => self.is_guarded() && !self.default_is_all_enabled,
            _ => false,
        }
    }
}

/// Arguments that were understood to the last key and word, or by a tool or an arm that ignores the rest. Only [`judge`]
/// makes one, and nothing moves without.
///
/// ```compile_fail
/// fn forge(reading: steadyhand_args::ArgumentReading) -> steadyhand_args::Understood {
///     steadyhand_args::Understood { reading }
/// }
/// ```
///
/// ```compile_fail
/// fn copy(understood: &steadyhand_args::Understood) -> steadyhand_args::Understood {
///     understood.clone()
/// }
/// ```
#[derive(Debug, PartialEq)]
pub struct Understood {
    reading: ArgumentReading,
}

impl Understood {
    /// Returns the arguments.
    #[must_use]
    pub const fn reading(&self) -> &ArgumentReading {
        &self.reading
    }

    /// Takes the arguments out, for those who only judge them.
    #[must_use]
    pub fn into_reading(self) -> ArgumentReading {
        self.reading
    }
}

/// What becomes of a call.
#[derive(Debug, PartialEq)]
pub enum Verdict {
    /// It is carried out.
    Understood(Understood),
    /// It is shown without what is left over, and nothing moves.
    Preview(ArgumentReading),
    /// It is refused.
    Refused(Box<ArgumentRefusal>),
}

/// Judges what was read of a call.
#[must_use]
pub fn judge(
    shape: &ArgumentShape,
    policy: &ReaderPolicy,
    outcome: Result<ArgumentReading, Box<ArgumentRefusal>>,
) -> Verdict {
    let reading = match outcome {
        Ok(reading) => reading,
        Err(refusal) => return Verdict::Refused(refusal),
    };
    let moves = policy.effect == ToolEffect::Moves && !reading.is_cautious;
    let has_choice = !shape.needs_choice || shape.has_choice(&reading.given);
    let has_leftover = !reading.leftover.is_empty();
    let says_nothing_but_words = reading.leaves_words && (reading.given.is_empty() || !has_choice);
    let stands = has_choice && !reading.names_other;
    match (policy.is_guarded(), has_leftover) {
        _ if !moves => Verdict::Understood(Understood { reading }),
        (true, true) if stands => Verdict::Preview(reading),
        (true, true) => Verdict::Refused(undecided(shape, reading)),
        (true, false) if policy.after_doubt && !has_choice => Verdict::Preview(reading),
        (false, true) if reading.names_other && !has_choice => {
            Verdict::Refused(undecided(shape, reading))
        }
        // Further keys are ignored, but a person's words may be a "no".
        (false, true) if says_nothing_but_words => Verdict::Preview(reading),
        _ => Verdict::Understood(Understood { reading }),
    }
}

/// Refuses a call that does not say for certain what to draw. It names the valid values and no call.
fn undecided(shape: &ArgumentShape, reading: ArgumentReading) -> Box<ArgumentRefusal> {
    let params = || shape.params.iter().map(|param| param.name.as_str());
    let of_leftover = |leftover: &Leftover| {
        let (path, received) = match leftover {
            Leftover::Key { key, got } => (key.clone(), got.clone()),
            Leftover::Text { text } => (String::new(), text.clone()),
        };
        let valid = match path.as_str() {
            "" => Vec::new(),
            key => nearest(key, params()),
        };
        ArgumentComplaint {
            code: "not_understood",
            path,
            received,
            expected: "the tool's own parameters".to_owned(),
            valid,
            why: "not understood".to_owned(),
        }
    };
    let mut complaints: Vec<ArgumentComplaint> = reading.leftover.iter().map(of_leftover).collect();
    let chooses = |param: &&ParameterShape| {
        matches!(param.kind, ValueKind::Name { .. }) && param.selects_motion
    };
    if let Some(param) = shape.params.iter().find(chooses) {
        complaints.push(no_choice(param, &reading));
    }
    Box::new(ArgumentRefusal {
        complaints,
        good: reading.given,
        repairs: reading.repairs,
        kind: ReaderRule::Leftover,
    })
}

/// Returns the complaint that it is not certain what to draw, with the names that are nearest to what was left over.
fn no_choice(param: &ParameterShape, reading: &ArgumentReading) -> ArgumentComplaint {
    let words: Vec<&str> = reading.leftover.iter().map(Leftover::words).collect();
    let words = words.join(" ");
    let valid = match &param.kind {
        ValueKind::Name { known } => nearest(&words, known.iter().map(String::as_str)),
        _ => Vec::new(),
    };
    ArgumentComplaint {
        code: "no_choice",
        path: param.name.clone(),
        received: reading
            .given
            .get(&param.name)
            .map(|value| parsed_value::shown(&value.to_string()))
            .unwrap_or_default(),
        expected: param.kind.describe(),
        valid,
        why: format!("it is unclear which `{}` is meant", param.name),
    }
}

impl ArgumentShape {
    /// Returns whether arguments say what to draw.
    pub(super) fn has_choice(&self, given: &Map<String, Value>) -> bool {
        let mut choosing = self.params.iter().filter(|param| param.selects_motion);
        choosing.any(|param| {
            given
                .get(&param.name)
                .is_some_and(|value| *value != Value::Bool(false))
        })
    }
}
