//! Answers to calls that were not understood to the last word: a preview without the rest, or a refusal; and which callers
//! were doubted last, so that an empty call after that is shown first.

use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde_json::{Map, Value};

use super::dispatch::ToolRequest;
use super::journal_entries;
use super::reply::{Reply, refused};
use super::stroke::shown_hash;
use super::{AttachedArm, Node};
use args::{ArgumentReading, Leftover, ReceivedArguments, RepairClass, Understood};
use base::lock::MutexExt;
use base::units::ClockInstant;
use catalogue::{KnownNames, PREVIEW, ToolDefinition, ToolEffect};
use config::ignore_line;

/// Time for which a doubted call counts.
const DOUBTED_FOR: Duration = Duration::from_mins(5);

/// Callers that are remembered.
const CALLERS_MAX: usize = 256;

/// Arguments that say what is drawn.
const CHOICES: [&str; 5] = ["scene", "text", "svg", "image", "plan"];

/// The last call of each caller that was refused or doubted, until one is understood.
#[derive(Default)]
pub(super) struct CallerDoubts(Mutex<HashMap<String, (ClockInstant, ArgumentsMark)>>);

impl CallerDoubts {
    /// Returns whether the caller's last call of a tool that moves was refused or doubted, moments ago.
    pub(super) fn is_set(&self, request: &ToolRequest, now: ClockInstant) -> bool {
        let doubts = self.0.locked();
        let last = doubts.get(request.memory_key());
        last.is_some_and(|(at, _)| now.since(*at) < DOUBTED_FOR)
    }

    /// Remembers a call that was refused or doubted; returns whether it is the same as the last one.
    pub(super) fn set(&self, request: &ToolRequest, now: ClockInstant) -> bool {
        let mark = ArgumentsMark::of(&request.arguments);
        let mut doubts = self.0.locked();
        doubts.retain(|_, (at, _)| now.since(*at) < DOUBTED_FOR);
        if doubts.len() >= CALLERS_MAX {
            doubts.clear();
        }
        let before = doubts.insert(request.memory_key().to_owned(), (now, mark));
        before.is_some_and(|(_, before)| before == mark)
    }

    /// Settles the doubt, if a call was understood that says what is drawn.
    pub(super) fn settle(&self, request: &ToolRequest, reading: &ArgumentReading) {
        if CHOICES.iter().any(|key| reading.given.contains_key(*key)) {
            self.0.locked().remove(request.memory_key());
        }
    }
}

/// Length and hash of arguments, which may hold a whole picture.
#[derive(Clone, Copy, PartialEq)]
struct ArgumentsMark(usize, u64);

impl ArgumentsMark {
    fn of(received: &ReceivedArguments) -> Self {
        let text = journal_entries::arguments_text(received);
        let mut hasher = DefaultHasher::new();
        text.hash(&mut hasher);
        Self(text.len(), hasher.finish())
    }
}

/// What a motion is begun for. There is no third.
pub(super) enum MotionOrder {
    /// A tool call that was understood to the last word, or that a simulated arm carries out without the rest.
    Call(Arc<Understood>),
    /// An operator's command, which no reader interprets.
    Operator,
}

impl MotionOrder {
    /// Logs how many repairs a motion begins with.
    pub(super) fn log_repairs(&self) {
        if let Self::Call(understood) = self {
            let repairs = understood.reading().repairs.len();
            tracing::debug!(repairs, "the motion of an understood call begins");
        }
    }
}

/// The repair that makes a call a dry run because of a value that is not clearly false, or a name beside the arguments.
const MADE_DRY: &str = "dry_run";

/// Returns whether a call is a dry run that was not clearly asked for.
pub(super) fn is_unclear_dry_run(understood: &Understood) -> bool {
    let reading = understood.reading();
    reading.is_cautious && reading.repairs.iter().any(|one| one.code == MADE_DRY)
}

/// Adds to what is left over the value that was neither clearly true nor clearly false.
pub(super) fn leave_unclear_dry_run(reading: &mut ArgumentReading) {
    let unclear =
        |one: &&args::ArgumentRepair| one.code == MADE_DRY && one.class == RepairClass::L2;
    let unclear = reading.repairs.iter().filter(unclear);
    let values = unclear.map(|one| Leftover::Key {
        key: one.field.clone(),
        got: one.got.clone(),
    });
    let values: Vec<Leftover> = values.collect();
    reading.leftover.extend(values);
}

/// Makes a reading that of the preview of its call.
pub(super) fn as_dry_run(mut reading: ArgumentReading) -> ArgumentReading {
    for arguments in [&mut reading.given, &mut reading.understood] {
        arguments.insert(PREVIEW.to_owned(), true.into());
    }
    reading.is_cautious = true;
    reading
}

/// Refuses a doubtful call of a tool that has no preview.
pub(super) fn without_preview(
    tool: &ToolDefinition,
    names: &KnownNames,
    reading: &ArgumentReading,
) -> Reply {
    let words = leftover_words(tool, &reading.leftover).join("; ");
    let parameters: Vec<&str> = tool
        .shown_parameters(names)
        .map(|one| one.name.as_str())
        .collect();
    let valid = match parameters.is_empty() {
        true => "it takes no arguments".to_owned(),
        false => format!("use: {}", parameters.join(", ")),
    };
    refused(
        "not_understood",
        format!(
            "not understood: {words}. `{}` moves the arm and has no preview: {valid}",
            tool.name
        ),
    )
    .with("not_understood", &reading.leftover)
    .with("moved", false)
}

/// A call that is shown first because it was not understood to the last word.
pub(super) struct DoubtfulCall<'a> {
    pub(super) tool: &'a ToolDefinition,
    pub(super) names: &'a KnownNames,
    pub(super) reading: &'a ArgumentReading,
    /// True if its caller has just sent the same call.
    pub(super) is_repeated: bool,
}

impl DoubtfulCall<'_> {
    /// Returns the answer, from that to the dry run of the call.
    pub(super) fn answer(&self, node: &Node, arm: Option<&AttachedArm>, shown: Reply) -> Reply {
        let leftover = &self.reading.leftover;
        let mut lines = vec![self.first_words()];
        lines.push(shown.text.clone());
        if !leftover.is_empty() {
            let words = leftover_words(self.tool, leftover).join("; ");
            lines.push(format!("Not understood, and not in this plan: {words}."));
        }
        lines.extend((!shown.is_error).then(|| self.next_words(&shown)));
        lines.extend(self.is_repeated.then(|| self.repeated_words()).flatten());
        let mut reply = shown.reworded(lines.join("\n"));
        if !reply.is_error {
            reply.set("code", "preview_only");
        }
        reply.set("success", false);
        reply.set("moved", false);
        reply.set_some("not_understood", leftover);
        reply.structured.shift_remove("draw_call");
        reply.structured.shift_remove("next_call");
        let running = arm.and_then(|arm| arm.board.under_way());
        let running = running.filter(|job| {
            let hash = job.card().plan_hash.map(Value::from);
            hash.is_some() && hash.as_ref() == reply.structured.get("plan_hash")
        });
        match running {
            Some(job) => {
                let words = format!("this plan is already being drawn: {}", job.card().id);
                reply.set("job", job.card());
                reply.hint(&words)
            }
            None => node.narrow_claim(reply),
        }
    }

    fn first_words(&self) -> String {
        let begin = match self.tool.name.as_str() {
            "stroke" => "NOT DRAWN YET",
            _ => "NOT MOVED YET",
        };
        let why = match self.reading.leftover.len() {
            0 => "the previous call was not understood, and this one is empty, so".to_owned(),
            1 => "one part of this call was not understood, so".to_owned(),
            2 => "two parts of this call were not understood, so".to_owned(),
            count => format!("{count} parts of this call were not understood, so"),
        };
        format!("{begin}: {why} this is a preview. Nothing moved.")
    }

    fn next_words(&self, shown: &Reply) -> String {
        let parameters = self.tool.shown_parameters(self.names);
        let parameters: Vec<&str> = parameters.map(|one| one.name.as_str()).collect();
        let hash = shown.structured.get("plan_hash").and_then(Value::as_str);
        let without = match self.reading.leftover.is_empty() {
            true => "",
            false => ", without them",
        };
        let exactly = match hash {
            Some(hash) => format!("To draw exactly this{without}: plan {}.", shown_hash(hash)),
            None => "To do exactly this, send the call without what was not understood.".to_owned(),
        };
        format!("{exactly} To change it, use: {}.", parameters.join(", "))
    }

    fn repeated_words(&self) -> Option<String> {
        let keys = keys(&self.reading.leftover).filter(|key| *key != PREVIEW);
        let keys: Vec<&str> = keys.collect();
        let first = keys.first()?;
        Some(format!(
            "This preview was already shown. If this client adds `{first}` to every call, an operator can allow it with {}",
            ignore_line(&keys)
        ))
    }
}

/// Returns the keys among what is left over.
fn keys(leftover: &[Leftover]) -> impl Iterator<Item = &str> {
    leftover.iter().filter_map(|one| match one {
        Leftover::Key { key, .. } => Some(key.as_str()),
        Leftover::Text { .. } => None,
    })
}

/// Describes what was not understood.
fn leftover_words(tool: &ToolDefinition, leftover: &[Leftover]) -> Vec<String> {
    const TOLD_MAX: usize = 8;
    let more = leftover
        .len()
        .checked_sub(TOLD_MAX)
        .filter(|more| *more > 0);
    let words = |one: &Leftover| match one {
        Leftover::Key { key, got } if key == PREVIEW => {
            format!("\"{key}\": {got} (neither true nor false, so nothing moves)")
        }
        Leftover::Key { key, got } => {
            format!("\"{key}\": {got} ({} has no such parameter)", tool.name)
        }
        Leftover::Text { text } => format!("the words \"{text}\""),
    };
    let told = leftover.iter().take(TOLD_MAX).map(words);
    told.chain(more.map(|more| format!("and {more} more")))
        .collect()
}

/// Returns how a caller of a tool draws a picture of its own on this node.
pub(super) fn own_picture_advice(
    tool: &ToolDefinition,
    names: &KnownNames,
) -> Option<&'static str> {
    let takes_designs = tool.name == "stroke" && !names.canvases.is_empty();
    takes_designs.then_some(
        "to draw a design of your own, send its words as `text` or its lines as `svg`, such as <circle cx='50' cy='50' r='30'/>",
    )
}

/// Warns in the first words of an answer that a default stands for what was not understood.
pub(super) fn warn_of_default(
    tool: &ToolDefinition,
    names: &KnownNames,
    reading: &ArgumentReading,
    reply: Reply,
) -> Reply {
    let given = &reading.given;
    let has_choice = CHOICES.iter().any(|key| given.contains_key(*key))
        || given.get("resume") == Some(&true.into());
    let moves = tool.effect == ToolEffect::Moves;
    if !moves || has_choice || reading.leftover.is_empty() || reply.is_error {
        return reply;
    }
    let scene = reading.understood.get("scene").and_then(Value::as_str);
    let default = scene.map_or("default".to_owned(), |scene| {
        format!("default scene `{scene}`")
    });
    let words = leftover_words(tool, &reading.leftover).join("; ");
    let own = own_picture_advice(tool, names)
        .filter(|_| keys(&reading.leftover).next().is_some())
        .map(|own| format!("; {own}"));
    let message = format!(
        "WARNING: the {default} is used, because this was not understood and is ignored: {words}{}. {}",
        own.unwrap_or_default(),
        reply.text
    );
    reply.reworded(message)
}

/// Returns the refusal of a call whose plan is not known or does not agree with the rest of it.
pub(super) fn plan_complaint(
    code: &'static str,
    received: &str,
    reason: String,
    given: Map<String, Value>,
) -> Box<args::ArgumentRefusal> {
    Box::new(args::ArgumentRefusal {
        complaints: vec![args::ArgumentComplaint {
            code,
            path: "plan".to_owned(),
            received: received.to_owned(),
            expected: "a plan that a preview showed in the last hour".to_owned(),
            valid: Vec::new(),
            why: reason,
        }],
        good: given,
        repairs: Vec::new(),
        kind: args::ReaderRule::Contradiction,
    })
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a failing test may panic")]
mod tests {
    use super::super::dispatch::resolve;
    use super::super::shape;
    use super::*;
    use args::{ForgivenessProfile, ReaderPolicy, ReceivedArguments, Verdict, judged};
    use catalogue::TOOLS;
    use proptest::prelude::*;

    fn value() -> impl Strategy<Value = Value> {
        prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::from),
            any::<i64>().prop_map(Value::from),
            "[ a-zA-Z0-9.,äß漢!?-]{0,24}".prop_map(Value::from),
            proptest::collection::vec("[a-z]{0,6}", 0..4).prop_map(Value::from),
        ]
    }

    /// Returns what became of each tool under each name; all of them run with their defaults.
    fn check_runs_with_defaults(received: &ReceivedArguments) -> Result<(), TestCaseError> {
        let names = KnownNames {
            scenes: vec!["default".to_owned(), "letters".to_owned()],
            ..KnownNames::default()
        };
        for tool in TOOLS.iter() {
            let policy = ReaderPolicy::new(tool.effect, ForgivenessProfile::Lenient);
            for name in tool.names() {
                prop_assert_eq!(resolve(name, &[]).map(|one| &one.name), Some(&tool.name));
                match judged(&shape(tool, &names), &policy, received.clone()) {
                    Verdict::Understood(one) => {
                        prop_assert!(one.reading().given.is_empty(), "{}", name);
                        prop_assert!(!one.reading().repairs.is_empty(), "{} warns", name);
                    }
                    other => prop_assert!(false, "{name}: {other:?}"),
                }
            }
        }
        Ok(())
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 1000, failure_persistence: None, ..ProptestConfig::default() })]

        /// Commissioned: what no parameter has is ignored with a warning on the simulated arm.
        #[test]
        fn random_extra_keys_are_ignored_with_a_warning(key in "x_[a-zA-Z0-9_]{1,16}", value in value()) {
            let one = [(key, value)].into_iter().collect();
            check_runs_with_defaults(&ReceivedArguments::Value(Value::Object(one)))?;
        }
    }

    #[test]
    fn a_thousand_extra_keys_at_once_are_ignored_too() {
        let all = (0..1000).map(|number| (format!("x_{number}"), Value::from(number)));
        let all = ReceivedArguments::Value(Value::Object(all.collect()));
        check_runs_with_defaults(&all).unwrap();
    }
}
