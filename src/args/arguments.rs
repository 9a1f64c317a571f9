//! All the arguments of one call, from a candidate to its judgement: each trouble is collected, none ends the reading.

use super::{
    candidates::{Candidate, Flaw},
    form::{Form, Forms},
    limits::{COST_MAX, UNWRAP_MAX},
    node::{self, Node},
    outcome::{Reading, Refusal, Repair, Repairs, Trouble},
    rules::{Class, Policy, Rule},
    shape::Shape,
    values::{Coercer, dropped},
    withheld::WithheldRequest,
};
use serde_json::{Map, Value};

/// One candidate, judged.
pub(super) struct Judged {
    pub(super) outcome: Result<Reading, Box<Refusal>>,
    pub(super) cost: u32,
    /// Nothing moves with it.
    pub(super) is_cautious: bool,
}

/// Judges one reading of `text` by the shape and the policy; `text` is empty where a value arrived.
pub(super) fn judge(shape: &Shape, policy: &Policy, candidate: Candidate, text: &str) -> Judged {
    let mut call = Call {
        shape,
        policy,
        coercer: Coercer {
            policy,
            repairs: Repairs::default(),
        },
        refused: Vec::new(),
        given: Map::new(),
        sent: Vec::new(),
        withheld: Vec::new(),
    };
    call.read(candidate, text);
    call.answer_withheld();
    let cost = call.coercer.repairs.cost;
    Judged {
        cost,
        is_cautious: shape.is_cautious(&call.given),
        outcome: call.finish(),
    }
}

/// A call while it is read.
pub(super) struct Call<'a> {
    pub(super) shape: &'a Shape,
    pub(super) policy: &'a Policy,
    pub(super) coercer: Coercer<'a>,
    pub(super) refused: Vec<Trouble>,
    pub(super) given: Map<String, Value>,
    /// Positions of the parameters that were sent.
    pub(super) sent: Vec<usize>,
    /// Requests for a dry run or not to move, which are answered when it is known what was understood.
    pub(super) withheld: Vec<WithheldRequest>,
}

pub(super) type Pairs = Vec<(String, Node)>;

impl Call<'_> {
    fn read(&mut self, candidate: Candidate, text: &str) {
        self.note_forms(&candidate.forms);
        if let Some(first) = self.coercer.repairs.list.first_mut() {
            first.got = node::shown(text);
        }
        if candidate.forms.cost() > COST_MAX {
            let why = "so many repairs are no reading";
            return self.whole(
                whole_text(Rule::Contradiction, "too_many_repairs", why),
                text,
            );
        }
        if let Some(flaw) = candidate.flaw {
            self.keep_what_is_good(&candidate.node);
            return self.unread(no_default(flaw, text), text, &candidate.node);
        }
        if let Some(tool) = candidate.tool {
            self.tool_name(&tool, &Node::Text(tool.clone()));
        }
        self.note_nothing(&candidate.node, text);
        let whole = self
            .searches_what_is_unread()
            .then(|| candidate.node.clone());
        match self.opened(candidate.node, UNWRAP_MAX) {
            Ok(pairs) => {
                let flaw = candidate
                    .is_loose
                    .then(|| no_default(Flaw::NoArguments, text));
                self.pairs(&pairs, flaw);
                if candidate.is_loose && self.given.is_empty() {
                    self.search_unread(text, &Node::Null);
                }
            }
            Err(trouble) => self.unread(trouble, text, &whole.unwrap_or(Node::Null)),
        }
    }

    /// Trouble with a text or a value out of which no arguments can be read: it may still ask for something.
    fn unread(&mut self, trouble: Trouble, text: &str, node: &Node) {
        if !self.policy.refuses(trouble.rule) {
            self.search_unread(text, node);
        }
        self.whole(trouble, text);
    }

    /// A word for nothing is noted; nothing at all and `{}` are calls as they should be.
    fn note_nothing(&mut self, node: &Node, text: &str) {
        let is_plain = matches!(node, Node::Map(_)) || (text.is_empty() && *node == Node::Null);
        if node.is_empty() && !is_plain {
            let why = "nothing is said, so defaults are used";
            let got = if text.is_empty() {
                node::shown_node(node)
            } else {
                node::shown(text)
            };
            let repair = dropped("arguments", node, "nothing_said", Rule::Form, why);
            self.coercer.repairs.push(Repair {
                got,
                used: "{}".into(),
                cost: 0,
                ..repair
            });
        }
    }

    /// Trouble with the text as a whole.
    pub(super) fn whole(&mut self, trouble: Trouble, text: &str) {
        let received: String = text
            .chars()
            .take(2 * super::limits::SHOWN_CHARS_MAX)
            .collect();
        self.trouble(
            trouble.received(node::shown(&received)),
            &Node::Text(received),
        );
    }

    /// Adds the complete arguments of a cut-off text to the corrected call. They are not used otherwise.
    pub(super) fn keep_what_is_good(&mut self, node: &Node) {
        let Node::Map(pairs) = node else { return };
        if self.policy.refuses(Rule::Contradiction) {
            let mut trial = Call {
                coercer: Coercer {
                    policy: self.policy,
                    repairs: Repairs::default(),
                },
                refused: Vec::new(),
                given: Map::new(),
                sent: Vec::new(),
                withheld: Vec::new(),
                ..*self
            };
            trial.pairs(pairs, None);
            self.given = trial.given;
        }
    }

    pub(super) fn note_forms(&mut self, forms: &Forms) {
        for form in forms.iter() {
            let repair = Repair {
                field: "arguments".into(),
                got: String::new(),
                used: String::new(),
                class: Class::L0,
                cost: form.cost(),
                code: form.code(),
                why: form.why().into(),
            };
            self.coercer.repairs.push(repair);
        }
        self.judge_skipped(forms.skipped());
    }

    pub(super) fn note_form(&mut self, form: Form) {
        let mut forms = Forms::default();
        forms.add(form);
        self.note_forms(&forms);
    }

    /// Refuses, or goes on without what is troublesome and says so.
    pub(super) fn trouble(&mut self, trouble: Trouble, node: &Node) {
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
            (true, Rule::PayloadLost) => "send {} for defaults; defaults are used",
            (true, _) => "defaults are used",
        };
        let why = format!("{}; {used}", complaint.why);
        self.coercer
            .repairs
            .push(dropped(path, node, complaint.code, trouble.rule, why));
    }
}

pub(super) fn whole_text(rule: Rule, code: &'static str, why: &str) -> Trouble {
    Trouble::new(rule, code, "", why).expected("one JSON object")
}

/// Returns the issue for a text that is flawed as a whole. Defaults do not replace an object that was passed over.
fn no_default(flaw: Flaw, text: &str) -> Trouble {
    let is_passed_over = flaw == Flaw::NoArguments && text.contains(['{', '｛']);
    flaw_trouble(if is_passed_over { Flaw::Garbled } else { flaw })
}

pub(super) fn flaw_trouble(flaw: Flaw) -> Trouble {
    match flaw {
        Flaw::Cut => whole_text(Rule::Contradiction, "cut_off", "the arguments are cut off"),
        Flaw::TwoObjects => whole_text(
            Rule::Contradiction,
            "two_objects",
            "there are several objects and no telling which is meant",
        ),
        Flaw::Garbled => whole_text(
            Rule::Contradiction,
            "garbled",
            "there are brackets in this that cannot be read",
        ),
        Flaw::Template => whole_text(
            Rule::Contradiction,
            "template",
            "this is a stand-in for arguments, not arguments",
        ),
        Flaw::PayloadLost => whole_text(
            Rule::PayloadLost,
            "payload_lost",
            "the client lost the arguments on the way",
        ),
        // What it asks for is not known, so there is no default for it.
        Flaw::TooLong => whole_text(Rule::Contradiction, "too_long", "longer than 1 MiB"),
        Flaw::NoArguments => whole_text(
            Rule::NoArguments,
            "no_arguments",
            "there are no arguments in this",
        ),
    }
}
