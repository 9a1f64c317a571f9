//! The table of forgiveness as data: what each kind of oddity may do to a tool that stops, reads or moves.

pub use call::ToolEffect;
use serde::{Deserialize, Serialize};

/// Degree to which a node forgives a caller that wants to move something.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ForgivenessProfile {
    /// Default for the embedded simulator: a lost value becomes a default and a warning.
    Lenient,
    /// Default for hardware: nothing moves after a guess.
    Guarded,
}

impl ForgivenessProfile {
    /// Every profile, the lenient one first.
    pub(super) const ALL: [Self; 2] = [Self::Lenient, Self::Guarded];
}

/// Class of what a repair lost.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum RepairClass {
    /// Form only.
    L0,
    /// Something without meaning.
    L1,
    /// A value was guessed or lost.
    L2,
}

/// Treatment of keys that match no parameter, and of words around the arguments.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum UnknownKeyPolicy {
    /// Those that may change the act count as lost values.
    Judged,
    /// All are ignored and noted: for judging a foreign schema.
    Ignored,
}

/// Form in which a value is returned if its meaning fits but its JSON type does not.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ValueRendering {
    /// In the declared type: the number 5 for a text becomes `"5"`.
    AsDeclared,
    /// As it was sent, for judging a foreign schema: a number for a text stays a number, and inside lists and objects a list
    /// of one stays a list.
    AsSent,
}

/// Everything besides the shape that decides how a call is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ReaderPolicy {
    /// Effect of the tool.
    pub effect: ToolEffect,
    /// Degree of forgiveness.
    pub profile: ForgivenessProfile,
    /// True if a person has enabled only the default scene, so a lost payload can mean nothing else.
    pub default_is_all_enabled: bool,
    /// Treatment of unknown keys.
    pub unknown_keys: UnknownKeyPolicy,
    /// Form in which values of a different JSON type are returned.
    pub render: ValueRendering,
}

impl ReaderPolicy {
    /// Returns the policy of a tool of this node, with nothing assumed about what is enabled.
    #[must_use]
    pub const fn new(effect: ToolEffect, profile: ForgivenessProfile) -> Self {
        Self {
            effect,
            profile,
            default_is_all_enabled: false,
            unknown_keys: UnknownKeyPolicy::Judged,
            render: ValueRendering::AsDeclared,
        }
    }

    /// Returns the policy by which a foreign schema is judged: a tool that moves, guarded, unknown keys ignored.
    #[must_use]
    pub const fn of_foreign_schema() -> Self {
        Self {
            default_is_all_enabled: true,
            unknown_keys: UnknownKeyPolicy::Ignored,
            render: ValueRendering::AsSent,
            ..Self::new(ToolEffect::Moves, ForgivenessProfile::Guarded)
        }
    }

    /// Returns whether a call can move something here. A foreign schema's tool is not run, only judged.
    pub(super) const fn guards_motion(&self) -> bool {
        matches!(
            (self.effect, self.unknown_keys),
            (ToolEffect::Moves, UnknownKeyPolicy::Judged)
        )
    }

    /// Returns whether this rule keeps the tool from running.
    #[must_use]
    pub const fn refuses(&self, rule: ReaderRule) -> bool {
        match self.effect {
            ToolEffect::Stops => false,
            ToolEffect::Reads => matches!(rule, ReaderRule::Unplaceable | ReaderRule::Verbatim),
            ToolEffect::Moves => self.refuses_to_move(rule),
        }
    }

    const fn refuses_to_move(&self, rule: ReaderRule) -> bool {
        let is_guarded = matches!(self.profile, ForgivenessProfile::Guarded);
        match rule {
            ReaderRule::Form | ReaderRule::Meaningless | ReaderRule::Empty => false,
            ReaderRule::PayloadLost => is_guarded && !self.default_is_all_enabled,
            ReaderRule::PhysicalKey
            | ReaderRule::ForeignKey
            | ReaderRule::DoubtfulKey
            | ReaderRule::OtherText
            | ReaderRule::NoArguments
            | ReaderRule::RefusedArgumentLeftOut => is_guarded,
            ReaderRule::Contradiction
            | ReaderRule::Unplaceable
            | ReaderRule::Withheld
            | ReaderRule::Verbatim => true,
        }
    }
}

/// A row of the table.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum ReaderRule {
    /// Sloppy form with one meaning.
    Form,
    /// A framework's key, a null for a default, an unknown key without physical meaning.
    Meaningless,
    /// An optional parameter with an empty value.
    Empty,
    /// `[object Object]`.
    PayloadLost,
    /// An unknown key such as depth, speed or x.
    PhysicalKey,
    /// A parameter of another tool.
    ForeignKey,
    /// An unknown key that may change the act: a known name, a paraphrased parameter, a negation, a condition.
    DoubtfulKey,
    /// Text around the arguments that is not known packaging.
    OtherText,
    /// A request for a dry run or for no motion that no parameter expresses.
    Withheld,
    /// Data that is empty, lost or a stand-in, or that did not come as plain JSON.
    Verbatim,
    /// Text that holds nothing that can be read as arguments.
    NoArguments,
    /// Cut off, two objects, duplicates that disagree, a template, the schema echoed.
    Contradiction,
    /// A value of no known name, out of range, of another unit, not a whole number, not finite, not a boolean.
    Unplaceable,
    /// The same call again without the argument that was just refused.
    RefusedArgumentLeftOut,
}

impl ReaderRule {
    /// Returns the class of what is lost if the rule lets the call pass.
    #[must_use]
    pub const fn class(self) -> RepairClass {
        match self {
            Self::Form => RepairClass::L0,
            Self::Meaningless | Self::Empty => RepairClass::L1,
            _ => RepairClass::L2,
        }
    }

    /// Returns the cost of going on regardless; replacing a value that was sent by a default costs most.
    pub(super) const fn cost(self) -> u32 {
        match self {
            Self::Form | Self::Meaningless | Self::Empty => 1,
            Self::OtherText => 10,
            Self::PhysicalKey | Self::ForeignKey | Self::DoubtfulKey => 20,
            Self::PayloadLost | Self::NoArguments | Self::RefusedArgumentLeftOut => 100,
            Self::Contradiction | Self::Unplaceable => 110,
            Self::Withheld => 120,
            Self::Verbatim => 130,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Rows of the table in the order stops, reads, moves lenient, moves guarded; `r` refuses.
    const TABLE: [(ReaderRule, &str); 14] = [
        (ReaderRule::Form, "...."),
        (ReaderRule::Meaningless, "...."),
        (ReaderRule::Empty, "...."),
        (ReaderRule::PayloadLost, "...r"),
        (ReaderRule::PhysicalKey, "...r"),
        (ReaderRule::ForeignKey, "...r"),
        (ReaderRule::DoubtfulKey, "...r"),
        (ReaderRule::OtherText, "...r"),
        (ReaderRule::Withheld, "..rr"),
        (ReaderRule::Verbatim, ".rrr"),
        (ReaderRule::NoArguments, "...r"),
        (ReaderRule::Contradiction, "..rr"),
        (ReaderRule::Unplaceable, ".rrr"),
        (ReaderRule::RefusedArgumentLeftOut, "...r"),
    ];

    #[test]
    fn every_row_and_column_is_as_agreed() {
        let columns = [
            (ToolEffect::Stops, ForgivenessProfile::Guarded),
            (ToolEffect::Reads, ForgivenessProfile::Guarded),
            (ToolEffect::Moves, ForgivenessProfile::Lenient),
            (ToolEffect::Moves, ForgivenessProfile::Guarded),
        ];
        for (rule, want) in TABLE {
            let row: String = columns
                .iter()
                .map(|(e, p)| {
                    if ReaderPolicy::new(*e, *p).refuses(rule) {
                        'r'
                    } else {
                        '.'
                    }
                })
                .collect();
            assert_eq!(row, want, "{rule:?}");
        }
        let known = ReaderPolicy {
            default_is_all_enabled: true,
            ..ReaderPolicy::new(ToolEffect::Moves, ForgivenessProfile::Guarded)
        };
        assert!(!known.refuses(ReaderRule::PayloadLost));
    }
}
