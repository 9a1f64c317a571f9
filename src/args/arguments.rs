//! Judges one candidate reading of a whole call: every issue is collected, and none ends the reading.

use super::{
    candidates::{CandidateReading, TextFlaw},
    encoding,
    form_repair::{FormRepair, FormRepairs},
    indented,
    limits::{COST_MAX, SHOWN_CHARS_MAX, UNWRAP_MAX},
    outcome::{ArgumentIssue, ArgumentReading, ArgumentRefusal, ArgumentRepair},
    parsed_value::{self, ParsedValue},
    quote,
    rules::{ReaderPolicy, ReaderRule},
    sentence::Sentence,
    shape::ArgumentShape,
    value_coercion::{ValueCoercer, dropped},
    withheld::WithheldRequest,
};
use serde_json::{Map, Value};

/// A candidate reading with its verdict.
pub(super) struct JudgedCandidate {
    pub(super) outcome: Result<ArgumentReading, Box<ArgumentRefusal>>,
    pub(super) cost: u32,
    /// True if nothing moves with it.
    pub(super) is_cautious: bool,
}

/// Judges one reading of `text` by the shape and the policy; `text` is empty if a value arrived instead.
pub(super) fn judge(
    shape: &ArgumentShape,
    policy: &ReaderPolicy,
    candidate: CandidateReading,
    text: &str,
) -> JudgedCandidate {
    let mut call = CallReader::new(shape, policy);
    call.read(candidate, text);
    call.refuse_replaced();
    call.answer_withheld();
    call.check_verbatim();
    let cost = call.coercer.repairs.cost;
    JudgedCandidate {
        cost,
        is_cautious: shape.is_cautious(&call.given),
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
    /// Requests for a dry run or for no motion, answered once every argument has been read.
    pub(super) withheld: Vec<WithheldRequest>,
    /// Words around the arguments that are left out, judged once every argument has been read.
    pub(super) left_out: Vec<String>,
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
            withheld: Vec::new(),
            left_out: Vec::new(),
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
            let issue = self.flaw_without_default(flaw, text);
            return self.refuse_unread(issue, text, &candidate.node);
        }
        if let Some(tool) = &candidate.tool {
            self.check_called_name(tool);
        }
        self.judge_empty_call(&candidate, text);
        self.note_empty_word(&candidate.node, text);
        let original = self.searches_unread_text().then(|| candidate.node.clone());
        match self.unwrapped_pairs(candidate.node, UNWRAP_MAX) {
            Ok(pairs) => {
                if !candidate.is_loose {
                    return self.read_pairs(&pairs, None);
                }
                let flaw = self.flaw_without_default(TextFlaw::NoArguments, text);
                self.read_pairs(&pairs, Some(flaw));
                self.judge_loose_pairs(&pairs);
                if self.given.is_empty() {
                    self.search_unread(text, &ParsedValue::Null);
                }
            }
            Err(issue) => self.refuse_unread(issue, text, &original.unwrap_or(ParsedValue::Null)),
        }
    }

    /// Returns the issue for a text that is flawed as a whole. Defaults never replace an object or a parameter that was
    /// passed over, nor what a sentence asks for.
    pub(super) fn flaw_without_default(&self, flaw: TextFlaw, text: &str) -> ArgumentIssue {
        if flaw != TextFlaw::NoArguments {
            return flaw_issue(flaw);
        }
        let sentence = Sentence::of(text);
        let is_passed_over = text.contains(['{', '｛'])
            || encoding::holds_code(text)
            || self.assigns_parameter(text)
            || sentence
                .as_ref()
                .is_some_and(|sentence| self.gives_argument(sentence))
            || indented::read(text).is_some();
        if is_passed_over {
            return flaw_issue(TextFlaw::Garbled);
        }
        if sentence.is_none_or(|sentence| self.asks_in_words(&sentence)) {
            let reason = "this asks in words for something that only arguments can say";
            return whole_text(ReaderRule::Contradiction, "no_arguments", reason).in_doubt(true);
        }
        flaw_issue(TextFlaw::NoArguments)
    }

    /// Returns whether a text gives a parameter a value anywhere: `scene=`, `"scene":`, `<scene>`, `name=\"scene\"`.
    fn assigns_parameter(&self, text: &str) -> bool {
        self.policy.guards_motion() && assigns(text, |word| self.is_param(word))
    }

    /// Adds the issue with a text or value in which no arguments can be read, and searches it for requests not to move.
    fn refuse_unread(&mut self, issue: ArgumentIssue, text: &str, node: &ParsedValue) {
        if !self.policy.refuses(issue.rule) || issue.complaint.code == "no_arguments" {
            self.search_unread(text, node);
        }
        self.add_text_issue(issue, text);
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

    /// Adds the complete arguments of a cut-off text to the corrected call. They are not used otherwise.
    pub(super) fn keep_complete_arguments(&mut self, node: &ParsedValue) {
        if let Some(pairs) = node.as_pairs()
            && self.policy.refuses(ReaderRule::Contradiction)
        {
            let mut trial = CallReader::new(self.shape, self.policy);
            trial.read_pairs(pairs, None);
            self.given = trial.given;
        }
    }

    pub(super) fn note_forms(&mut self, forms: &FormRepairs) {
        for form in forms.iter() {
            let repair = ArgumentRepair::new("arguments", form.code(), form.cost(), form.label());
            self.coercer.repairs.push(repair);
        }
        self.judge_skipped(forms.skipped());
    }

    pub(super) fn note_form(&mut self, form: FormRepair) {
        let mut forms = FormRepairs::default();
        forms.add(form);
        self.note_forms(&forms);
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
            (true, ReaderRule::PayloadLost) => "send {} for defaults; defaults are used",
            (true, _) => "defaults are used",
        };
        let reason = format!("{}; {used}", complaint.why);
        self.coercer
            .repairs
            .push(dropped(path, node, complaint.code, issue.rule, reason));
    }
}

/// Returns whether a text gives one of these keys a value anywhere.
pub(super) fn assigns(text: &str, is_key: impl Fn(&str) -> bool) -> bool {
    let is_inside = |c: char| c.is_alphanumeric() || matches!(c, '_' | '-');
    let is_between = |c: char| c.is_whitespace() || quote::is_quote(c);
    let mut marks = text.match_indices(['=', ':', '：', '>']);
    marks.any(|(at, _)| {
        let before = text.get(..at).unwrap_or_default();
        let before = before.trim_end_matches(is_between);
        let word = before.rsplit(|c| !is_inside(c)).next();
        word.is_some_and(|word| !word.is_empty() && is_key(word))
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
        TextFlaw::Cut => ("cut_off", "the arguments are cut off"),
        TextFlaw::TwoObjects => (
            "two_objects",
            "there are several objects, and it is not clear which is meant",
        ),
        TextFlaw::Garbled => (
            "garbled",
            "there are brackets or arguments in this that cannot be read",
        ),
        TextFlaw::Template => (
            "template",
            "this is a stand-in for arguments, not arguments",
        ),
        TextFlaw::PayloadLost => ("payload_lost", "the client lost the arguments on the way"),
        TextFlaw::TooLong => ("too_long", "longer than 1 MiB"),
        TextFlaw::TooManyComments => (
            "too_many_comments",
            "there are more than 4,096 comments in this",
        ),
        TextFlaw::NoArguments => ("no_arguments", "there are no arguments in this"),
    };
    whole_text(rule, code, reason)
}
