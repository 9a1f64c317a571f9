//! Reads one candidate of a whole call: every issue is collected, and none ends the reading.

use super::{
    candidates::{CandidateReading, TextFlaw},
    encoding,
    form_repair::{FormRepair, FormRepairs},
    indented,
    judge::{ReaderPolicy, ReaderRule},
    leftover::Leftover,
    limits::{COST_MAX, SHOWN_CHARS_MAX, UNWRAP_MAX},
    outcome::{ArgumentIssue, ArgumentReading, ArgumentRefusal, ArgumentRepair},
    parsed_value::{self, ParsedValue},
    quote, rest,
    shape::ArgumentShape,
    value_coercion::{ValueCoercer, dropped},
};
use serde_json::{Map, Value};

/// A candidate that was read.
pub(super) struct ReadCandidate {
    pub(super) outcome: Result<ArgumentReading, Box<ArgumentRefusal>>,
    pub(super) cost: u32,
}

/// Reads one candidate of `text` by the shape and the policy; `text` is empty if a value arrived instead.
pub(super) fn read_candidate(
    shape: &ArgumentShape,
    policy: &ReaderPolicy,
    candidate: CandidateReading,
    text: &str,
) -> ReadCandidate {
    let mut call = CallReader::new(shape, policy);
    call.read(candidate, text);
    call.check_verbatim();
    let cost = call.coercer.repairs.cost;
    ReadCandidate {
        cost,
        outcome: call.finish(),
    }
}

/// A call being read.
pub(super) struct CallReader<'a> {
    pub(super) shape: &'a ArgumentShape,
    pub(super) policy: &'a ReaderPolicy,
    pub(super) coercer: ValueCoercer<'a>,
    pub(super) refused: Vec<ArgumentIssue>,
    pub(super) given: Map<String, Value>,
    /// Positions of the parameters that were sent.
    pub(super) sent: Vec<usize>,
    /// Positions of those whose value says what to draw.
    pub(super) choosing: Vec<usize>,
    pub(super) leftover: Vec<Leftover>,
    /// True if words or values are among what is left over.
    pub(super) leaves_words: bool,
    /// Keys and texts of what is left over or ignored.
    pub(super) left_names: Vec<String>,
    /// True if what is left over or ignored names the dry run.
    pub(super) asks_for_dry_run: bool,
}

impl<'a> CallReader<'a> {
    fn new(shape: &'a ArgumentShape, policy: &'a ReaderPolicy) -> Self {
        Self {
            shape,
            policy,
            coercer: ValueCoercer::new(policy),
            refused: Vec::new(),
            given: Map::new(),
            sent: Vec::new(),
            choosing: Vec::new(),
            leftover: Vec::new(),
            leaves_words: false,
            left_names: Vec::new(),
            asks_for_dry_run: false,
        }
    }

    fn read(&mut self, candidate: CandidateReading, text: &str) {
        self.note_forms(&candidate.forms);
        if let Some(first) = self.coercer.repairs.list.first_mut() {
            first.got = parsed_value::shown(text);
        }
        if candidate.forms.cost() > COST_MAX {
            let reason = "this takes too many repairs to be read";
            let issue = whole_text(ReaderRule::Contradiction, "too_many_repairs", reason);
            return self.add_text_issue(issue, text);
        }
        if let Some(flaw) = candidate.flaw {
            self.keep_complete_arguments(&candidate.node);
            return self.add_flaw(flaw, text);
        }
        if !self.account_for(&candidate) {
            return self.add_flaw(TextFlaw::NoArguments, text);
        }
        self.note_empty_word(&candidate.node, text);
        match self.unwrapped_pairs(candidate.node, UNWRAP_MAX) {
            Ok(pairs) => self.read_pairs(&pairs),
            Err(issue) => self.add_text_issue(issue, text),
        }
    }

    /// Judges the name that a candidate calls, and leaves over what nothing accounts for in the texts that it was read from.
    /// Returns false for prose, in which no key is known.
    pub(super) fn account_for(&mut self, candidate: &CandidateReading) -> bool {
        if let Some(tool) = &candidate.tool {
            self.check_called_name("name", tool);
        }
        if candidate.is_loose && !self.knows_a_key(&candidate.node) {
            return false;
        }
        if self.judges_unknown_keys() {
            self.leave_words(rest::rest(candidate, &self.shape.tool_names));
        }
        true
    }

    /// Adds the flaw of a text as a whole. Of a text without arguments everything is left over.
    pub(super) fn add_flaw(&mut self, flaw: TextFlaw, text: &str) {
        let is_passed_over = || {
            text.contains(['{', '｛'])
                || encoding::holds_code(text)
                || indented::read(text).is_some()
                || (self.policy.guards_motion() && assigns(text, |word| self.is_param(word)))
        };
        match flaw {
            TextFlaw::NoArguments if is_passed_over() => {
                self.add_text_issue(flaw_issue(TextFlaw::Garbled), text);
            }
            TextFlaw::NoArguments if self.judges_unknown_keys() => {
                self.leave_all(&ParsedValue::Text(text.to_owned()));
            }
            flaw => self.add_text_issue(flaw_issue(flaw), text),
        }
    }

    /// Notes a word for nothing, such as `none`. An absent text and `{}` are proper calls and not noted.
    fn note_empty_word(&mut self, node: &ParsedValue, text: &str) {
        let is_proper =
            matches!(node, ParsedValue::Map(_)) || (text.is_empty() && *node == ParsedValue::Null);
        if node.is_empty() && !is_proper {
            let reason = "no arguments are given, so defaults are used";
            self.coercer.repairs.push(ArgumentRepair {
                got: parsed_value::shown_received(text, node),
                used: "{}".into(),
                ..ArgumentRepair::new("arguments", "nothing_said", 0, reason)
            });
        }
    }

    /// Adds an issue with the text as a whole.
    pub(super) fn add_text_issue(&mut self, issue: ArgumentIssue, text: &str) {
        let received: String = text.chars().take(2 * SHOWN_CHARS_MAX).collect();
        let issue = issue.received(parsed_value::shown(&received));
        self.add_issue(issue, &ParsedValue::Text(received));
    }

    /// Keeps the complete arguments of a cut-off text for its refusal. They are not used otherwise.
    fn keep_complete_arguments(&mut self, node: &ParsedValue) {
        if let Some(pairs) = node.as_pairs()
            && self.policy.refuses(ReaderRule::Contradiction)
        {
            let mut trial = CallReader::new(self.shape, self.policy);
            trial.read_pairs(pairs);
            self.given = trial.given;
        }
    }

    pub(super) fn note_forms(&mut self, forms: &FormRepairs) {
        forms.iter().for_each(|form| self.note_form(form));
    }

    pub(super) fn note_form(&mut self, form: FormRepair) {
        let repair = ArgumentRepair::new("arguments", form.code(), form.cost(), form.label());
        self.coercer.repairs.push(repair);
    }

    /// Refuses the call for this issue, or goes on without the faulty part and notes that.
    pub(super) fn add_issue(&mut self, issue: ArgumentIssue, node: &ParsedValue) {
        if self.policy.refuses(issue.rule) {
            self.refused.push(issue);
            return;
        }
        let complaint = &*issue.complaint;
        let path = if complaint.path.is_empty() {
            "arguments"
        } else {
            &complaint.path
        };
        let used = match (complaint.path.is_empty(), issue.rule) {
            (false, _) => "left out",
            (true, ReaderRule::PayloadLost) => "the defaults are used (send `{}` to ask for them)",
            (true, _) => "the defaults are used",
        };
        let reason = format!("{}; {used}", complaint.why);
        self.coercer
            .repairs
            .push(dropped(path, node, complaint.code, issue.rule, reason));
    }
}

/// Returns whether a text gives one of these keys a value anywhere: `scene=`, `"scene":`, `<parameter=svg>`.
fn assigns(text: &str, is_key: impl Fn(&str) -> bool) -> bool {
    let is_inside = |c: char| c.is_alphanumeric() || matches!(c, '_' | '-');
    let is_between = |c: char| c.is_whitespace() || quote::is_quote(c);
    let mut marks = text.match_indices(['=', ':', '：', '>']);
    let mut last = "";
    marks.any(|(at, _)| {
        let before = text.get(..at).unwrap_or_default();
        let before = before.trim_end_matches(is_between);
        let word = before.rsplit(|c| !is_inside(c)).next().unwrap_or_default();
        // The same word again is no other key.
        let is_new = std::mem::replace(&mut last, word) != word;
        is_new && is_key(word)
    })
}

pub(super) fn whole_text(rule: ReaderRule, code: &'static str, reason: &str) -> ArgumentIssue {
    ArgumentIssue::new(rule, code, "", reason).expected("one JSON object")
}

pub(super) fn flaw_issue(flaw: TextFlaw) -> ArgumentIssue {
    let rule = match flaw {
        TextFlaw::PayloadLost => ReaderRule::PayloadLost,
        TextFlaw::NoArguments => ReaderRule::NoArguments,
        // The rest ask for something unknown, and no default can stand in for that.
        _ => ReaderRule::Contradiction,
    };
    let (code, reason) = match flaw {
        TextFlaw::Cut => (
            "cut_off",
            "the arguments are incomplete: the end is missing",
        ),
        TextFlaw::TwoObjects => ("two_objects", "several objects were sent: send only one"),
        TextFlaw::Garbled => ("garbled", "its brackets or arguments cannot be read"),
        TextFlaw::Template => ("template", "this is a placeholder, not arguments"),
        TextFlaw::PayloadLost => (
            "payload_lost",
            "the client sent a placeholder instead of the arguments",
        ),
        TextFlaw::TooLong => ("too_long", "longer than 1 MiB"),
        TextFlaw::TooManyComments => ("too_many_comments", "this has more than 4,096 comments"),
        TextFlaw::NoArguments => ("no_arguments", "this has no arguments"),
    };
    whole_text(rule, code, reason)
}
