//! All the arguments of one call, from a candidate to its judgement: each trouble is collected, none ends the reading.

use super::{
    candidates::{CandidateReading, TextFlaw},
    form_repair::{FormRepair, FormRepairs},
    limits::{COST_MAX, SHOWN_CHARS_MAX, UNWRAP_MAX},
    outcome::{ArgumentIssue, ArgumentReading, ArgumentRefusal, ArgumentRepair},
    parsed_value::{self, ParsedValue},
    rules::{ReaderPolicy, ReaderRule},
    shape::ArgumentShape,
    value_coercion::{ValueCoercer, dropped},
    withheld::WithheldRequest,
};
use serde_json::{Map, Value};

/// One candidate, judged.
pub(super) struct JudgedCandidate {
    pub(super) outcome: Result<ArgumentReading, Box<ArgumentRefusal>>,
    pub(super) cost: u32,
    /// Nothing moves with it.
    pub(super) is_cautious: bool,
}

/// Judges one reading of `text` by the shape and the policy; `text` is empty where a value arrived.
pub(super) fn judge(
    shape: &ArgumentShape,
    policy: &ReaderPolicy,
    candidate: CandidateReading,
    text: &str,
) -> JudgedCandidate {
    let mut call = CallReader::new(shape, policy);
    call.read(candidate, text);
    call.answer_withheld();
    call.check_verbatim();
    let cost = call.coercer.repairs.cost;
    JudgedCandidate {
        cost,
        is_cautious: shape.is_cautious(&call.given),
        outcome: call.finish(),
    }
}

/// A call while it is read.
pub(super) struct CallReader<'a> {
    pub(super) shape: &'a ArgumentShape,
    pub(super) policy: &'a ReaderPolicy,
    pub(super) coercer: ValueCoercer<'a>,
    pub(super) refused: Vec<ArgumentIssue>,
    pub(super) given: Map<String, Value>,
    /// Positions of the parameters that were sent.
    pub(super) sent: Vec<usize>,
    /// Requests for a dry run or not to move, which are answered when it is known what was understood.
    pub(super) withheld: Vec<WithheldRequest>,
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
        }
    }

    fn read(&mut self, candidate: CandidateReading, text: &str) {
        self.note_forms(&candidate.forms);
        if let Some(first) = self.coercer.repairs.list.first_mut() {
            first.got = parsed_value::shown(text);
        }
        if candidate.forms.cost() > COST_MAX {
            let why = "so many repairs are no reading";
            let issue = whole_text(ReaderRule::Contradiction, "too_many_repairs", why);
            return self.add_text_issue(issue, text);
        }
        if let Some(flaw) = candidate.flaw {
            self.keep_complete_arguments(&candidate.node);
            return self.unread(flaw_without_default(flaw, text), text, &candidate.node);
        }
        if let Some(tool) = candidate.tool {
            self.check_tool_name(&tool, &ParsedValue::Text(tool.clone()));
        }
        self.note_nothing(&candidate.node, text);
        let whole = self.searches_unread_text().then(|| candidate.node.clone());
        match self.unwrapped_pairs(candidate.node, UNWRAP_MAX) {
            Ok(pairs) => {
                if !candidate.is_loose {
                    return self.pairs(&pairs, None);
                }
                let flaw = flaw_without_default(TextFlaw::NoArguments, text);
                self.pairs(&pairs, Some(flaw));
                self.judge_loose_pairs(&pairs);
                if self.given.is_empty() {
                    self.search_unread(text, &ParsedValue::Null);
                }
            }
            Err(trouble) => self.unread(trouble, text, &whole.unwrap_or(ParsedValue::Null)),
        }
    }

    /// Trouble with a text or a value out of which no arguments can be read: it may still ask for something.
    fn unread(&mut self, trouble: ArgumentIssue, text: &str, node: &ParsedValue) {
        if !self.policy.refuses(trouble.rule) {
            self.search_unread(text, node);
        }
        self.add_text_issue(trouble, text);
    }

    /// A word for nothing is noted; nothing at all and `{}` are calls as they should be.
    fn note_nothing(&mut self, node: &ParsedValue, text: &str) {
        let is_plain =
            matches!(node, ParsedValue::Map(_)) || (text.is_empty() && *node == ParsedValue::Null);
        if node.is_empty() && !is_plain {
            let why = "nothing is said, so defaults are used";
            self.coercer.repairs.push(ArgumentRepair {
                got: parsed_value::shown_received(text, node),
                used: "{}".into(),
                ..ArgumentRepair::new("arguments", "nothing_said", 0, why)
            });
        }
    }

    /// Trouble with the text as a whole.
    pub(super) fn add_text_issue(&mut self, trouble: ArgumentIssue, text: &str) {
        let received: String = text.chars().take(2 * SHOWN_CHARS_MAX).collect();
        let trouble = trouble.received(parsed_value::shown(&received));
        self.trouble(trouble, &ParsedValue::Text(received));
    }

    /// Adds the complete arguments of a cut-off text to the corrected call. They are not used otherwise.
    pub(super) fn keep_complete_arguments(&mut self, node: &ParsedValue) {
        if let Some(pairs) = node.as_pairs()
            && self.policy.refuses(ReaderRule::Contradiction)
        {
            let mut trial = CallReader::new(self.shape, self.policy);
            trial.pairs(pairs, None);
            self.given = trial.given;
        }
    }

    pub(super) fn note_forms(&mut self, forms: &FormRepairs) {
        for form in forms.iter() {
            let repair = ArgumentRepair::new("arguments", form.code(), form.cost(), form.why());
            self.coercer.repairs.push(repair);
        }
        self.judge_skipped(forms.skipped());
    }

    pub(super) fn note_form(&mut self, form: FormRepair) {
        let mut forms = FormRepairs::default();
        forms.add(form);
        self.note_forms(&forms);
    }

    /// Refuses, or goes on without what is troublesome and says so.
    pub(super) fn trouble(&mut self, trouble: ArgumentIssue, node: &ParsedValue) {
        if self.policy.refuses(trouble.rule) {
            self.refused.push(trouble);
            return;
        }
        let complaint = &*trouble.complaint;
        let path = if complaint.path.is_empty() {
            "arguments"
        } else {
            &complaint.path
        };
        let used = match (complaint.path.is_empty(), trouble.rule) {
            (false, _) => "left out",
            (true, ReaderRule::PayloadLost) => "send {} for defaults; defaults are used",
            (true, _) => "defaults are used",
        };
        let why = format!("{}; {used}", complaint.why);
        self.coercer
            .repairs
            .push(dropped(path, node, complaint.code, trouble.rule, why));
    }
}

pub(super) fn whole_text(rule: ReaderRule, code: &'static str, why: &str) -> ArgumentIssue {
    ArgumentIssue::new(rule, code, "", why).expected("one JSON object")
}

/// Returns the issue for a text that is flawed as a whole. Defaults do not replace an object that was passed over.
fn flaw_without_default(flaw: TextFlaw, text: &str) -> ArgumentIssue {
    let is_passed_over = flaw == TextFlaw::NoArguments && text.contains(['{', '｛']);
    flaw_trouble(if is_passed_over {
        TextFlaw::Garbled
    } else {
        flaw
    })
}

pub(super) fn flaw_trouble(flaw: TextFlaw) -> ArgumentIssue {
    let rule = match flaw {
        TextFlaw::PayloadLost => ReaderRule::PayloadLost,
        TextFlaw::NoArguments => ReaderRule::NoArguments,
        // What the others ask for is not known, so there is no default for it.
        _ => ReaderRule::Contradiction,
    };
    let (code, why) = match flaw {
        TextFlaw::Cut => ("cut_off", "the arguments are cut off"),
        TextFlaw::TwoObjects => (
            "two_objects",
            "there are several objects and no telling which is meant",
        ),
        TextFlaw::Garbled => ("garbled", "there are brackets in this that cannot be read"),
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
    whole_text(rule, code, why)
}
