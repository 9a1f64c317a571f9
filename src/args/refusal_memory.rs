//! Remembers each caller's last refusals, so that a refused argument is not simply left out, and a loop of failures ends
//! with a person.

use super::{
    limits::{COMPLAINTS_MAX, REFUSALS_MAX},
    outcome::{self, ArgumentComplaint, ArgumentReading, ArgumentRefusal, ArgumentRepair},
    rules::{ReaderPolicy, ReaderRule},
};
use serde_json::{Map, Value};
use std::{collections::VecDeque, time::Duration};

/// Identical failures in a row after which the caller is sent to a person.
const SAME_FAILURES_MAX: u32 = 2;

/// Time after which a refusal counts no longer for others who have a key in common with the caller that was refused.
const SHARED_FOR: Duration = Duration::from_mins(5);

/// The last refusal of each tool to each caller, the most recent 256. No clock, no I/O.
#[derive(Debug, Default)]
pub struct RefusalMemory {
    /// Time of the calls that follow, as [`RefusalMemory::advance_to`] was told.
    now: Duration,
    /// The newest is at the back.
    entries: VecDeque<RememberedRefusal>,
}

#[derive(Debug)]
struct RememberedRefusal {
    caller: String,
    tool: String,
    refusal: Box<ArgumentRefusal>,
    failures: u32,
    refused_at: Duration,
    /// Set if others have the key too. An argument that they leave out counts only where a default takes its place.
    is_shared: bool,
    /// Argument that counts as a new choice from now on, as [`RefusalMemory::accept`] was told.
    accepted: Option<(String, String)>,
}

/// A refused argument that a later call leaves out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LeftOutArgument {
    /// The parameter or key.
    pub name: String,
    /// Received value, cut and escaped; empty if it is not known.
    pub received: String,
}

/// Advice for a caller whose call was refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RefusalAdvice {
    /// It can mend the call.
    Mend,
    /// It has failed in the same way before: "ask the operator".
    AskTheOperator,
}

impl RefusalMemory {
    /// Passes an outcome through and remembers refusals. A call that only leaves out what was just refused gets a warning or is
    /// refused again.
    ///
    /// `callers` are the keys of one caller, such as its session and all callers without a token, its own first: a refusal is
    /// remembered under each, and the next accepted call settles it under each. Failures are counted under the first.
    ///
    /// # Errors
    /// The given refusal, or the earlier one with the same correction; with advice for the caller.
    pub fn judge(
        &mut self,
        callers: &[&str],
        tool: &str,
        policy: &ReaderPolicy,
        outcome: Result<ArgumentReading, Box<ArgumentRefusal>>,
    ) -> Result<ArgumentReading, (Box<ArgumentRefusal>, RefusalAdvice)> {
        let mut earlier = None;
        let found = callers.iter().filter_map(|caller| self.take(caller, tool));
        let lasts: Vec<RememberedRefusal> = found.collect();
        let outcome = match outcome {
            Ok(reading) if reading.is_cautious => {
                // A dry run moves nothing, and does not mend what was refused.
                self.entries.extend(lasts);
                return Ok(reading);
            }
            Ok(reading) => {
                let leaves_out = |last: &&RememberedRefusal| last.is_left_out_by(&reading);
                earlier = lasts.iter().find(leaves_out);
                match earlier {
                    Some(last) => last.compare(reading, policy),
                    None => Ok(reading),
                }
            }
            refused => refused,
        };
        outcome.map_err(|refusal| {
            let same = || lasts.iter().filter(|last| last.is_same_failure(&refusal));
            let own = same().find(|last| callers.first() == Some(&last.caller.as_str()));
            let failures = 1 + own.map_or(0, |last| last.failures);
            let accepted = same().find_map(|last| last.accepted.clone());
            for caller in callers {
                let unsettled = lasts.iter().filter(|last| last.caller == *caller);
                let mut remembered = refusal.clone();
                unsettled.for_each(|last| last.carry_into(&mut remembered));
                self.remember(RememberedRefusal {
                    caller: (*caller).to_owned(),
                    tool: tool.to_owned(),
                    refusal: remembered,
                    failures,
                    refused_at: earlier.map_or(self.now, |last| last.refused_at),
                    is_shared: callers.first() != Some(caller)
                        || earlier.is_some_and(|last| last.is_shared),
                    accepted: accepted.clone(),
                });
            }
            let advice = if failures < SAME_FAILURES_MAX {
                RefusalAdvice::Mend
            } else {
                RefusalAdvice::AskTheOperator
            };
            (refusal, advice)
        })
    }

    /// Sets the time, from any fixed instant, and forgets the refusals of others that have been remembered for long enough.
    pub fn advance_to(&mut self, now: Duration) {
        self.now = now;
        let is_over = |at: Duration| now.saturating_sub(at) >= SHARED_FOR;
        let entries = &mut self.entries;
        entries.retain(|entry| !(entry.is_shared && is_over(entry.refused_at)));
    }

    /// Returns the refused arguments that a call, which was understood with these defaults, leaves out without any new choice.
    #[must_use]
    pub fn left_out(
        &self,
        callers: &[&str],
        tool: &str,
        call: &Map<String, Value>,
        understood: &Map<String, Value>,
    ) -> Vec<LeftOutArgument> {
        let entries = self.entries.iter();
        let own = entries.filter(|entry| entry.is_of(callers, tool));
        let mut all: Vec<LeftOutArgument> = Vec::new();
        for left_out in own.flat_map(|entry| entry.describe_left_out(call, understood)) {
            if !all.contains(&left_out) {
                all.push(left_out);
            }
        }
        all
    }

    /// Lets an argument of the next calls count as a new choice: it stands for a call that was shown to the caller, who was told
    /// what [`Self::left_out`] says of it.
    pub fn accept(
        &mut self,
        callers: &[&str],
        tool: &str,
        call: &Map<String, Value>,
        understood: &Map<String, Value>,
        (name, value): (&str, &str),
    ) {
        let entries = self.entries.iter_mut();
        for entry in entries.filter(|entry| entry.is_of(callers, tool)) {
            if !entry.left_out(call, understood).is_empty() {
                entry.accepted = Some((name.to_owned(), value.to_owned()));
            }
        }
    }

    fn remember(&mut self, entry: RememberedRefusal) {
        if self.entries.len() == REFUSALS_MAX {
            self.entries.pop_front();
        }
        self.entries.push_back(entry);
    }

    fn take(&mut self, caller: &str, tool: &str) -> Option<RememberedRefusal> {
        let mut entries = self.entries.iter();
        let at = entries.position(|entry| entry.caller == caller && entry.tool == tool)?;
        self.entries.remove(at)
    }
}

impl RememberedRefusal {
    fn is_of(&self, callers: &[&str], tool: &str) -> bool {
        self.tool == tool && callers.contains(&self.caller.as_str())
    }

    fn compare(
        &self,
        mut reading: ArgumentReading,
        policy: &ReaderPolicy,
    ) -> Result<ArgumentReading, Box<ArgumentRefusal>> {
        let left_out = self.left_out(&reading.given, &reading.understood);
        let Some(field) = left_out.first().copied() else {
            return Ok(reading);
        };
        let rule = ReaderRule::RefusedArgumentLeftOut;
        if policy.refuses(rule) {
            let known = match self.is_shared {
                true => self.refusal_of_another(field, &reading),
                false => (*self.refusal).clone(),
            };
            return Err(Box::new(ArgumentRefusal {
                kind: rule,
                guidance: self.explain_refusal(field, &reading, known.corrected.is_some()),
                ..known
            }));
        }
        let (class, cost) = (rule.class(), rule.cost());
        let reason = "it was refused a moment ago and is now left out";
        let used = reading.understood.get(field).map(Value::to_string);
        reading.repairs.push(ArgumentRepair {
            used: used.unwrap_or_default(),
            class,
            ..ArgumentRepair::new(field, "refused_argument_left_out", cost, reason)
        });
        reading.loss = reading.loss.max(class);
        Ok(reading)
    }

    /// Returns the refusal for another caller than the one that was refused: made of its own arguments, and of no value that
    /// the other sent.
    fn refusal_of_another(&self, field: &str, reading: &ArgumentReading) -> ArgumentRefusal {
        let complaints = self.refusal.complaints.iter();
        let complaints = complaints.filter(|one| outcome::root(&one.path) == field);
        let preview = self.refusal.cautious.clone().map(|cautious| {
            let mut call = reading.given.clone();
            call.extend([cautious]);
            call
        });
        ArgumentRefusal {
            complaints: complaints
                .map(|one| ArgumentComplaint {
                    path: field.to_owned(),
                    received: String::new(),
                    ..one.clone()
                })
                .collect(),
            corrected: preview,
            good: reading.given.clone(),
            repairs: reading.repairs.clone(),
            must_mend: vec![field.to_owned()],
            ..(*self.refusal).clone()
        }
    }

    /// Returns the refused arguments that the new call leaves out without any new choice. The offered correction always counts
    /// as a new choice, and so does an accepted argument.
    fn left_out(&self, given: &Map<String, Value>, understood: &Map<String, Value>) -> Vec<&str> {
        if self.is_settled_by(given) {
            return Vec::new();
        }
        let refused = self.refusal.must_mend.iter().map(String::as_str);
        refused
            .filter(|field| !given.contains_key(*field))
            .filter(|field| !self.is_shared || understood.contains_key(*field))
            .collect()
    }

    fn is_settled_by(&self, given: &Map<String, Value>) -> bool {
        // Flags and other arguments that choose nothing may come with any drawing.
        let has_new_choice = given.iter().any(|(key, value)| {
            self.refusal.choosing.contains(key) && self.refusal.good.get(key) != Some(value)
        });
        let is_correction = self.refusal.corrected.as_ref() == Some(given);
        let accepted = self.accepted.as_ref();
        let is_accepted = accepted.is_some_and(|(name, value)| {
            let given = given.get(name).and_then(Value::as_str);
            given.is_some_and(|given| is_same_word(given, value))
        });
        has_new_choice || is_correction || is_accepted
    }

    fn is_left_out_by(&self, reading: &ArgumentReading) -> bool {
        !self
            .left_out(&reading.given, &reading.understood)
            .is_empty()
    }

    /// Adds what a later refused call left out too, so that it does not replace what it did not settle.
    fn carry_into(&self, later: &mut ArgumentRefusal) {
        if self.is_settled_by(&later.good) {
            return;
        }
        for name in &self.refusal.must_mend {
            let is_known = later.must_mend.contains(name) || later.good.contains_key(name);
            if !is_known && later.must_mend.len() < COMPLAINTS_MAX {
                later.must_mend.push(name.clone());
            }
        }
    }

    /// Describes what a plan of these arguments leaves out: also a text that was refused as a whole, in whose place the
    /// caller may send something of its own.
    fn describe_left_out(
        &self,
        given: &Map<String, Value>,
        understood: &Map<String, Value>,
    ) -> Vec<LeftOutArgument> {
        let mut left_out = self.left_out(given, understood);
        let mut complaints = self.refusal.complaints.iter();
        let is_of_whole = |one: &ArgumentComplaint| one.path.is_empty() || one.code == "other_tool";
        let is_unsettled = !self.is_shared && !self.is_settled_by(given);
        if left_out.is_empty() && is_unsettled && complaints.any(is_of_whole) {
            left_out.push(outcome::WHOLE_CALL);
        }
        left_out
            .into_iter()
            .map(|name| self.describe(name))
            .collect()
    }

    /// Describes a refused argument; to others than its caller without its value.
    fn describe(&self, name: &str) -> LeftOutArgument {
        let mut complaints = self.refusal.complaints.iter();
        let complaint = complaints.find(|one| match outcome::root(&one.path) {
            "" => name == outcome::WHOLE_CALL,
            path => path == name,
        });
        let received = complaint.filter(|_| !self.is_shared);
        LeftOutArgument {
            name: name.to_owned(),
            received: received.map_or_else(String::new, |one| one.received.clone()),
        }
    }

    /// Explains why a call is refused that would be accepted from another caller, and which call is accepted instead.
    fn explain_refusal(
        &self,
        field: &str,
        reading: &ArgumentReading,
        is_corrected: bool,
    ) -> String {
        let refused = format!(
            "`{field}` was refused a moment ago, and leaving it out now would move the arm"
        );
        let or_corrected = match is_corrected {
            true => ", or send the corrected call",
            false => "",
        };
        let choosing = &self.refusal.choosing;
        // The default of another choice may not go with the caller's own, such as the default scene with a text.
        let is_chosen = choosing.iter().any(|name| reading.given.contains_key(name));
        if reading.understood.contains_key(field) {
            let even_default = match is_chosen {
                true => "",
                false => ", even if it is the default",
            };
            return format!(
                "{refused} by a default that was not asked for: write `{field}` out{even_default}{or_corrected}"
            );
        }
        let mut written_out = reading.understood.clone();
        written_out.retain(|_, value| !value.is_null());
        let is_accepted = !is_chosen && self.left_out(&written_out, &written_out).is_empty();
        let is_free = |name: &&String| !self.refusal.good.contains_key(*name);
        let call = match choosing.first().filter(is_free) {
            _ if is_accepted => format!("send {}", Value::Object(written_out)),
            Some(choice) => format!("write `{choice}` out"),
            None => "ask the operator to do it".to_owned(),
        };
        format!("{refused} anyway: if that is intended, {call}{or_corrected}")
    }

    fn is_same_failure(&self, refusal: &ArgumentRefusal) -> bool {
        fn signature(refusal: &ArgumentRefusal) -> impl Iterator<Item = (&str, &str, &str)> {
            let complaints = refusal.complaints.iter();
            complaints.map(|one| (one.code, one.path.as_str(), one.received.as_str()))
        }
        signature(&self.refusal).eq(signature(refusal))
    }
}

/// Returns whether two texts are the same but for their case and for quotes and blanks around them.
fn is_same_word(one: &str, other: &str) -> bool {
    let outer = |c: char| c.is_whitespace() || matches!(c, '"' | '\'' | '`');
    let [one, other] = [one, other].map(|text| text.trim_matches(outer));
    one.eq_ignore_ascii_case(other)
}

#[cfg(test)]
#[allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "a failing test may panic"
)]
mod tests {
    use super::super::{
        ArgumentShape, ForgivenessProfile, ParameterShape, ReceivedArguments, ToolEffect,
        ValueKind, read,
    };
    use super::*;
    use serde_json::json;

    fn stroke() -> ArgumentShape {
        ArgumentShape::new(vec![
            ParameterShape::new("scene", ValueKind::name(["default", "tiger", "koi"]))
                .default("default")
                .selects_motion(),
            ParameterShape::new("debug", ValueKind::Bool).default(false),
            ParameterShape::new("resume", ValueKind::Bool).default(false),
            ParameterShape::new("dry_run", ValueKind::Bool)
                .default(false)
                .cautious(true),
        ])
        .with_tool_names(["stroke"])
    }

    fn call(
        memory: &mut RefusalMemory,
        profile: ForgivenessProfile,
        arguments: Value,
    ) -> Result<ArgumentReading, (Box<ArgumentRefusal>, RefusalAdvice)> {
        call_of(&["caller"], memory, profile, arguments)
    }

    fn call_of(
        callers: &[&str],
        memory: &mut RefusalMemory,
        profile: ForgivenessProfile,
        arguments: Value,
    ) -> Result<ArgumentReading, (Box<ArgumentRefusal>, RefusalAdvice)> {
        let policy = ReaderPolicy::new(ToolEffect::Moves, profile);
        let outcome = read(&stroke(), &policy, ReceivedArguments::Value(arguments));
        memory.judge(callers, "stroke", &policy, outcome)
    }

    /// As `align`, which has no preview.
    #[test]
    fn the_message_names_a_call_if_the_key_cannot_be_written_out() {
        let shape = ArgumentShape {
            foreign: vec!["dry_run".into()],
            ..ArgumentShape::new(vec![
                ParameterShape::new("scene", ValueKind::name(["default", "koi"]))
                    .default("default")
                    .selects_motion(),
                ParameterShape::new("debug", ValueKind::Bool),
            ])
        };
        let policy = ReaderPolicy::new(ToolEffect::Moves, ForgivenessProfile::Guarded);
        let judge = |memory: &mut RefusalMemory, arguments: Value| {
            let read = read(&shape, &policy, ReceivedArguments::Value(arguments));
            memory.judge(&["caller"], "align", &policy, read)
        };
        let mut memory = RefusalMemory::default();
        judge(&mut memory, json!({"dry_run": true})).unwrap_err();
        let (refusal, _) = judge(&mut memory, json!({})).unwrap_err();
        assert_eq!(
            refusal.guidance,
            "`dry_run` was refused a moment ago, and leaving it out now would move the arm anyway: if that is intended, send {\"scene\":\"default\"}"
        );
        judge(&mut memory, json!({"scene": "default"})).unwrap();

        let mut memory = RefusalMemory::default();
        judge(&mut memory, json!({"scene": "koi", "dry_run": true})).unwrap_err();
        let (refusal, _) = judge(&mut memory, json!({"scene": "koi"})).unwrap_err();
        assert!(refusal.guidance.ends_with("ask the operator to do it"));
    }

    #[test]
    fn a_refused_argument_left_out_is_refused_with_the_same_correction() {
        let mut memory = RefusalMemory::default();
        let (first, advice) = call(
            &mut memory,
            ForgivenessProfile::Guarded,
            json!({"scene": "tigger", "debug": true}),
        )
        .unwrap_err();
        assert_eq!(
            (first.corrected.clone(), advice),
            (
                json!({"debug": true, "dry_run": true}).as_object().cloned(),
                RefusalAdvice::Mend
            )
        );
        for arguments in [json!({"debug": true}), json!({})] {
            let (again, advice) =
                call(&mut memory, ForgivenessProfile::Guarded, arguments).unwrap_err();
            assert_eq!(
                (again.corrected, again.kind, advice),
                (
                    first.corrected.clone(),
                    ReaderRule::RefusedArgumentLeftOut,
                    RefusalAdvice::AskTheOperator
                )
            );
        }
        assert!(
            call(
                &mut memory,
                ForgivenessProfile::Guarded,
                json!({"scene": "tiger", "debug": true})
            )
            .is_ok()
        );
        assert!(call(&mut memory, ForgivenessProfile::Guarded, json!({})).is_ok());
    }

    #[test]
    fn a_call_without_the_request_not_to_move_is_refused_again() {
        let mut memory = RefusalMemory::default();
        let request = json!({"scene": "koi", "simulate": true});
        let (refusal, _) = call(&mut memory, ForgivenessProfile::Guarded, request).unwrap_err();
        call(
            &mut memory,
            ForgivenessProfile::Guarded,
            json!({"scene": "koi"}),
        )
        .unwrap_err();
        let corrected = refusal.corrected.map(Value::Object).unwrap();
        assert_eq!(corrected, json!({"scene": "koi", "dry_run": true}));
        assert!(call(&mut memory, ForgivenessProfile::Guarded, corrected).is_ok());
    }

    #[test]
    fn a_dry_run_or_a_read_does_not_answer_a_refusal() {
        let guarded = ForgivenessProfile::Guarded;
        let mut memory = RefusalMemory::default();
        call(&mut memory, guarded, json!({"scene": "tigger"})).unwrap_err();
        call(&mut memory, guarded, json!({"dry_run": true})).unwrap();
        let reads = ReaderPolicy::new(ToolEffect::Reads, guarded);
        let sense = read(&ArgumentShape::default(), &reads, ReceivedArguments::Absent);
        memory.judge(&["caller"], "sense", &reads, sense).unwrap();
        let other = read(
            &ArgumentShape::default(),
            &reads,
            ReceivedArguments::Text("{".into()),
        );
        drop(memory.judge(&["caller"], "align", &reads, other));
        for flags in [json!({}), json!({"debug": true}), json!({"dry_run": false})] {
            call(&mut memory, guarded, flags).unwrap_err();
        }
        call(&mut memory, guarded, json!({"scene": "default"})).unwrap();
        call(&mut memory, guarded, json!({})).unwrap();
    }

    #[test]
    fn lenient_warns() {
        let mut memory = RefusalMemory::default();
        call(
            &mut memory,
            ForgivenessProfile::Lenient,
            json!({"scene": "tigger"}),
        )
        .unwrap_err();
        let reading = call(&mut memory, ForgivenessProfile::Lenient, json!({})).unwrap();
        assert_eq!(
            reading.repairs.last().unwrap().code,
            "refused_argument_left_out"
        );
        assert_eq!(reading.loss, super::super::RepairClass::L2);
    }

    /// The next call drew without it, and said nothing of it.
    #[test]
    fn a_refused_key_is_not_simply_left_out() {
        let guarded = ForgivenessProfile::Guarded;
        for (refused, rest) in [
            (json!({"scene": "koi", "depth": 2}), json!({"scene": "koi"})),
            (
                json!({"scene": "koi", "speed": "slow"}),
                json!({"scene": "koi"}),
            ),
            (json!({"scene": "string"}), json!({})),
        ] {
            let mut memory = RefusalMemory::default();
            let (refusal, _) = call(&mut memory, guarded, refused.clone()).unwrap_err();
            let corrected = refusal.corrected.unwrap();
            call(&mut memory, guarded, Value::Object(corrected)).unwrap();
            let given = rest.as_object().cloned().unwrap();
            let left_out = memory.left_out(&["caller"], "stroke", &given, &given);
            assert_eq!(left_out.len(), 1, "{refused}");
            call(&mut memory, guarded, rest).unwrap_err();
            call(&mut memory, guarded, json!({"scene": "tiger"})).unwrap();
        }
    }

    /// A call that only sends what it is offered drew the default scene, or the first of two.
    #[test]
    fn a_preview_after_a_text_that_was_refused_as_a_whole_leaves_it_out() {
        let policy = ReaderPolicy::new(ToolEffect::Moves, ForgivenessProfile::Guarded);
        let shape = stroke();
        for text in [
            r#"{"scene": "lett"#,
            "draw the koi, please",
            "write hello",
            "[object Object]",
            r#"{"scene": "koi"} {"scene": "tiger"}"#,
            r#"{"name": "align", "arguments": {"scene": "koi"}}"#,
            r#"Tomorrow: {"scene": "koi"}"#,
        ] {
            let mut memory = RefusalMemory::default();
            let outcome = read(&shape, &policy, ReceivedArguments::Text(text.into()));
            let refused = memory.judge(&["caller"], "stroke", &policy, outcome);
            let mut given = refused.unwrap_err().0.corrected.unwrap();
            given.remove("dry_run");
            let understood = json!({"scene": "default"}).as_object().cloned().unwrap();
            let left_out = memory.left_out(&["caller"], "stroke", &given, &understood);
            assert_eq!(left_out.len(), 1, "{text}: {left_out:?}");
            let other = json!({"scene": "tiger"}).as_object().cloned().unwrap();
            let left_out = memory.left_out(&["caller"], "stroke", &other, &other);
            assert_eq!(left_out, [], "{text}");
        }
    }

    #[test]
    fn a_second_refusal_does_not_settle_the_first() {
        let guarded = ForgivenessProfile::Guarded;
        let mut memory = RefusalMemory::default();
        call(&mut memory, guarded, json!({"scene": "koy"})).unwrap_err();
        call(&mut memory, guarded, json!({"debug": "maybe"})).unwrap_err();
        call(&mut memory, guarded, json!({"debug": true})).unwrap_err();
        call(&mut memory, guarded, json!({"scene": "koi"})).unwrap();
        call(&mut memory, guarded, json!({})).unwrap();
    }

    /// A client that opens a session for each call drew the default scene.
    #[test]
    fn a_second_refusal_in_another_session_does_not_settle_the_first() {
        let mut memory = RefusalMemory::default();
        let mut judge = |session: &str, arguments| {
            call_of(
                &[session, "all"],
                &mut memory,
                ForgivenessProfile::Guarded,
                arguments,
            )
        };
        judge("first", json!({"scene": "koy"})).unwrap_err();
        judge("second", json!({"debug": "maybe"})).unwrap_err();
        judge("third", json!({"debug": true})).unwrap_err();
        judge("fourth", json!({"scene": "koi"})).unwrap();
    }

    /// The corrected call named the scene and the overlay of the other session.
    #[test]
    fn nothing_that_another_caller_sent_is_in_an_answer() {
        let mut memory = RefusalMemory::default();
        let mut judge = |session: &str, arguments| {
            call_of(
                &[session, "all"],
                &mut memory,
                ForgivenessProfile::Guarded,
                arguments,
            )
        };
        judge("first", json!({"scene": "koi", "resume": "secret"})).unwrap_err();
        let (refusal, _) = judge("second", json!({"scene": "koi"})).unwrap_err();
        let answer = serde_json::to_string(&refusal).unwrap();
        assert!(!answer.contains("secret"), "{answer}");
        let preview = json!({"scene": "koi", "dry_run": true});
        assert_eq!(refusal.corrected.map(Value::Object), Some(preview));
        let (refusal, _) = judge("third", json!({})).unwrap_err();
        let corrected = refusal.corrected.map(Value::Object);
        assert_eq!(corrected, Some(json!({"dry_run": true})));
        assert!(refusal.good.is_empty(), "{:?}", refusal.good);
    }

    #[test]
    fn what_the_correction_moves_to_its_place_is_not_dropped_either() {
        let mut memory = RefusalMemory::default();
        let refused = call(
            &mut memory,
            ForgivenessProfile::Guarded,
            json!({"scen": "tiger", "debug": true}),
        );
        let corrected = refused.unwrap_err().0.corrected.unwrap();
        assert_eq!(corrected["scene"], "tiger");
        call(
            &mut memory,
            ForgivenessProfile::Guarded,
            json!({"debug": true}),
        )
        .unwrap_err();
        assert!(
            call(
                &mut memory,
                ForgivenessProfile::Guarded,
                json!({"scene": "tiger"})
            )
            .is_ok()
        );
    }

    #[test]
    fn another_caller_or_tool_is_not_affected() {
        let mut memory = RefusalMemory::default();
        call(
            &mut memory,
            ForgivenessProfile::Guarded,
            json!({"scene": "tigger"}),
        )
        .unwrap_err();
        let policy = ReaderPolicy::new(ToolEffect::Moves, ForgivenessProfile::Guarded);
        let fine = read(
            &ArgumentShape::default(),
            &policy,
            ReceivedArguments::Absent,
        );
        assert!(
            memory
                .judge(&["other"], "stroke", &policy, fine.clone())
                .is_ok()
        );
        assert!(memory.judge(&["caller"], "align", &policy, fine).is_ok());
    }

    /// A client that opens a session for each call is another caller each time.
    #[test]
    fn a_refusal_is_remembered_under_each_key_of_its_caller() {
        let shape = ArgumentShape::new(vec![
            ParameterShape::new("scene", ValueKind::name(["default", "koi"]))
                .default("default")
                .selects_motion(),
        ]);
        let policy = ReaderPolicy::new(ToolEffect::Moves, ForgivenessProfile::Guarded);
        let mut memory = RefusalMemory::default();
        let mut judge = |session: &str, arguments: Value| {
            let outcome = read(&shape, &policy, ReceivedArguments::Value(arguments));
            memory.judge(&[session, "all"], "stroke", &policy, outcome)
        };
        judge("first", json!({"scene": "koy"})).unwrap_err();
        judge("second", json!({})).unwrap_err();
        // What another caller chooses does not settle it for the one that was refused.
        judge("third", json!({"scene": "koi"})).unwrap();
        judge("third", json!({})).unwrap();
        judge("first", json!({})).unwrap_err();
        judge("first", json!({"scene": "koi"})).unwrap();
        judge("first", json!({})).unwrap();
    }

    #[test]
    fn what_was_shown_without_the_refused_argument_can_be_accepted() {
        let shape = ArgumentShape::new(vec![
            ParameterShape::new("scene", ValueKind::name(["default", "koi"]))
                .default("default")
                .selects_motion(),
            ParameterShape::new("overlay", ValueKind::name(["leaf"])),
            ParameterShape::new("plan", ValueKind::Text),
        ]);
        let policy = ReaderPolicy::new(ToolEffect::Moves, ForgivenessProfile::Guarded);
        let mut memory = RefusalMemory::default();
        let judge = |memory: &mut RefusalMemory, arguments: Value| {
            let outcome = read(&shape, &policy, ReceivedArguments::Value(arguments));
            memory.judge(&["caller"], "stroke", &policy, outcome)
        };
        judge(&mut memory, json!({"scene": "koi", "overlay": "leef"})).unwrap_err();
        let call = json!({"scene": "koi"}).as_object().cloned().unwrap();
        let left_out = LeftOutArgument {
            name: "overlay".to_owned(),
            received: "leef".to_owned(),
        };
        assert_eq!(
            memory.left_out(&["caller"], "stroke", &call, &call),
            [left_out]
        );
        assert_eq!(memory.left_out(&["other"], "stroke", &call, &call), []);
        memory.accept(&["caller"], "stroke", &call, &call, ("plan", "aee6"));
        judge(&mut memory, json!({"scene": "koi"})).unwrap_err();
        judge(&mut memory, json!({"scene": "koi", "plan": "b408"})).unwrap_err();
        judge(&mut memory, json!({"scene": "koi", "plan": "`AEE6` "})).unwrap();
    }

    /// As `reset`, of which only the scene chooses anything, and has no default.
    #[test]
    fn a_refusal_to_another_caller_counts_only_for_defaults_and_for_minutes() {
        let shape = |scene: ParameterShape| ArgumentShape {
            foreign: vec!["dry_run".into()],
            ..ArgumentShape::new(vec![
                scene.selects_motion(),
                ParameterShape::new("arm", ValueKind::name(["arm"])),
            ])
        };
        let scene = || ParameterShape::new("scene", ValueKind::name(["default", "koi"]));
        let policy = ReaderPolicy::new(ToolEffect::Moves, ForgivenessProfile::Guarded);
        let judge = |memory: &mut RefusalMemory, scene: ParameterShape, session, arguments| {
            let outcome = read(&shape(scene), &policy, ReceivedArguments::Value(arguments));
            memory.judge(&[session, "all"], "reset", &policy, outcome)
        };
        let mut memory = RefusalMemory::default();
        for refused in [json!({"dry_run": true}), json!({"arm": "lefft"})] {
            judge(&mut memory, scene(), "first", refused).unwrap_err();
            judge(&mut memory, scene(), "second", json!({})).unwrap();
        }
        judge(&mut memory, scene(), "first", json!({"dry_run": true})).unwrap_err();
        let (refusal, _) = judge(&mut memory, scene(), "first", json!({})).unwrap_err();
        assert!(
            refusal
                .guidance
                .ends_with("if that is intended, write `scene` out"),
            "{}",
            refusal.guidance
        );
        judge(&mut memory, scene(), "first", json!({"scene": "koi"})).unwrap();

        let scene = || scene().default("default");
        judge(&mut memory, scene(), "first", json!({"scene": "koy"})).unwrap_err();
        let half = SHARED_FOR / 2;
        memory.advance_to(half);
        judge(&mut memory, scene(), "second", json!({})).unwrap_err();
        memory.advance_to(2 * half);
        judge(&mut memory, scene(), "second", json!({})).unwrap();
        judge(&mut memory, scene(), "first", json!({})).unwrap_err();
    }

    /// The default scene takes no text.
    #[test]
    fn no_default_is_offered_beside_the_callers_own_choice() {
        let shape = ArgumentShape::new(vec![
            ParameterShape::new("scene", ValueKind::name(["default", "canvas"]))
                .default("default")
                .selects_motion(),
            ParameterShape::new("text", ValueKind::Verbatim { bytes_max: 100 }),
            ParameterShape::new("size_mm", ValueKind::name(["10"])),
        ]);
        let policy = ReaderPolicy::new(ToolEffect::Moves, ForgivenessProfile::Guarded);
        let mut memory = RefusalMemory::default();
        let mut judge = |arguments: Value| {
            let outcome = read(&shape, &policy, ReceivedArguments::Value(arguments));
            memory.judge(&["caller"], "stroke", &policy, outcome)
        };
        for refused in [
            json!({"text": "Hi", "size_mm": "big"}),
            json!({"text": "Hi", "scene": "koy"}),
        ] {
            judge(refused).unwrap_err();
            let guidance = judge(json!({"text": "Hi"})).unwrap_err().0.guidance;
            assert!(guidance.ends_with("write `scene` out"), "{guidance}");
            judge(json!({"text": "Hi", "scene": "canvas"})).unwrap();
        }
    }

    #[test]
    fn remembers_a_bounded_number_of_refusals() {
        let mut memory = RefusalMemory::default();
        let policy = ReaderPolicy::new(ToolEffect::Moves, ForgivenessProfile::Guarded);
        for caller in 0..2 * REFUSALS_MAX {
            let refused = read(
                &ArgumentShape::default(),
                &policy,
                ReceivedArguments::Text("draw".into()),
            );
            assert!(
                memory
                    .judge(&[&caller.to_string()], "stroke", &policy, refused)
                    .is_err()
            );
        }
        assert_eq!(memory.entries.len(), REFUSALS_MAX);
    }
}
