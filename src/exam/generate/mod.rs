//! More cases: a seeded grammar over templates and keywords, each looked at before it is kept. A model may say them in other words.

mod check;
mod coverage;
mod keywords;
mod model;
mod pending_cases;

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::case::each_line;
use super::word::Word;
use super::{CaseClass, CaseTurn, ExamCase, ExamError, ExamToolbox};
use base::wording::cut;
pub(crate) use check::{CaseFinding, check};
pub(crate) use coverage::weakest;
pub(super) use coverage::widest;
pub(crate) use keywords::words;
use keywords::{KeywordsBySlot, keywords};
pub(crate) use model::{ModelJudgement, model_opinion, paraphrase};
pub(crate) use pending_cases::{keep, save_pending, wait};

const TEMPLATES: &str = include_str!("templates.jsonl");

/// Maximum difference between a template's difficulty and the requested one.
const DIFFICULTY_AROUND: f64 = 1.5;

/// Most cases of one go.
pub(crate) const CASES_MAX: usize = 10_000;

/// Tries for each requested case; a small grammar runs out of new words.
const TRIES_PER_CASE: usize = 20;

/// A pattern of cases. What stands in braces is a slot.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
pub(crate) struct CaseTemplate {
    /// Ability that its cases test.
    pub(crate) class: CaseClass,
    /// 1 to 10.
    pub(crate) difficulty: f64,
    texts: Vec<String>,
    /// The tool that is right.
    #[serde(deserialize_with = "Option::deserialize")]
    pub(crate) tool: Option<String>,
    #[serde(default)]
    params: Map<String, Value>,
    #[serde(default)]
    may_follow: Vec<String>,
    #[serde(default)]
    context: Vec<CaseTurn>,
}

/// Cases to generate.
#[derive(Clone, Debug, Default)]
pub(crate) struct GenerationRequest {
    /// Of these classes, in turn; none: of every one that there is a template of.
    pub(crate) classes: Vec<CaseClass>,
    /// With this right tool.
    pub(crate) tool: Option<String>,
    /// About as difficult, 1 to 10.
    pub(crate) difficulty: Option<f64>,
    /// Number of cases.
    pub(crate) count: usize,
    /// The same seed makes the same cases.
    pub(crate) seed: u64,
}

/// Result of generating cases.
#[derive(Clone, Debug, Default, Serialize)]
pub(crate) struct GeneratedCases {
    /// Good enough to be kept.
    pub(crate) cases: Vec<ExamCase>,
    /// Number of cases that were remade because they were too similar to another.
    pub(crate) revised: usize,
    /// Number of rejected cases.
    pub(crate) rejected: usize,
}

/// The templates of a class, with a right tool, of a difficulty: of all that is said. None is no error.
///
/// # Errors
/// Never in a program that passed its tests.
pub(crate) fn templates(
    class: Option<CaseClass>,
    tool: Option<&str>,
    difficulty: Option<f64>,
) -> Result<Vec<CaseTemplate>, ExamError> {
    let mut found = Vec::new();
    each_line(TEMPLATES, |_, template: CaseTemplate| {
        let near = |wanted: f64| (template.difficulty - wanted).abs() <= DIFFICULTY_AROUND;
        if class.is_none_or(|class| class == template.class)
            && tool.is_none_or(|tool| template.tool.as_deref() == Some(tool))
            && difficulty.is_none_or(near)
        {
            found.push(template);
        }
        Ok(())
    })?;
    Ok(found)
}

/// Makes cases that are new beside `known`.
///
/// # Errors
/// Nothing fits what is wanted.
pub(crate) fn generate(
    wanted: &GenerationRequest,
    known: &[ExamCase],
    tools: &ExamToolbox,
) -> Result<GeneratedCases, ExamError> {
    let mut all = templates(None, wanted.tool.as_deref(), wanted.difficulty)?;
    all.retain(|one| wanted.classes.is_empty() || wanted.classes.contains(&one.class));
    let mut groups: BTreeMap<CaseClass, Vec<CaseTemplate>> = BTreeMap::new();
    for template in all {
        groups.entry(template.class).or_default().push(template);
    }
    if groups.is_empty() {
        return Err(ExamError::Request(
            "there is no template of that class, tool and difficulty; ask for less".to_owned(),
        ));
    }
    let (keywords, mut dice) = (keywords(tools), SeededRng::of(wanted.seed));
    let mut made = GeneratedCases::default();
    let count = wanted.count.min(CASES_MAX);
    for (group, _) in groups.values().cycle().zip(0..count * TRIES_PER_CASE) {
        if made.cases.len() == count {
            break;
        }
        let Some(template) = dice.pick(group) else {
            continue;
        };
        let mut fill = || {
            let case = template.filled(&keywords, &mut dice, wanted.seed);
            let found = check(&case, known.iter().chain(&made.cases), tools);
            (case, found)
        };
        let (mut case, mut found) = fill();
        if found.is_to_be_revised() {
            (case, found) = fill();
            made.revised += 1;
        }
        if found.passes() {
            made.cases.push(case);
        } else {
            made.rejected += 1;
        }
    }
    Ok(made)
}

impl CaseTemplate {
    fn filled(&self, keywords: &KeywordsBySlot, dice: &mut SeededRng, seed: u64) -> ExamCase {
        // One word for a slot throughout a case, so that what is asked is what is expected.
        let chosen = keywords.iter().map(|(slot, all)| {
            let word = dice.pick(all).cloned();
            (*slot, word.unwrap_or_default())
        });
        let mut words: BTreeMap<&str, String> = chosen.collect();
        let scene = words.get("scene").cloned();
        if words.get("other_scene") == scene.as_ref() {
            let all = keywords.get("scene").into_iter().flatten();
            let others: Vec<&String> = all.filter(|one| scene.as_ref() != Some(*one)).collect();
            let other = dice
                .pick(&others)
                .map_or("nothing else", |one| one.as_str());
            words.insert("other_scene", other.to_owned());
        }
        let fill = |text: &str| {
            let slots = words.iter();
            slots.fold(text.to_owned(), |text, (slot, word)| {
                text.replace(&format!("{{{slot}}}"), word)
            })
        };
        let text = dice.pick(&self.texts).cloned().unwrap_or_default();
        let query = sentence(&fill(&text));
        let digits = blake3::hash(query.as_bytes()).to_hex();
        let name = cut(&digits, 8);
        let context = self.context.iter().map(|turn| CaseTurn {
            content: fill(&turn.content),
            arguments: filled(&turn.arguments, &fill),
            ..turn.clone()
        });
        ExamCase {
            name: format!("made_{}_{seed}_{name}", self.class.word()),
            query,
            context: context.collect(),
            expected_tool: self.tool.clone(),
            expected_params: filled(&self.params, &fill),
            may_follow: self.may_follow.clone(),
            class: self.class,
            ..ExamCase::default()
        }
    }
}

fn filled(map: &Map<String, Value>, fill: &impl Fn(&str) -> String) -> Map<String, Value> {
    let text = |value: &Value| match value {
        Value::String(text) => Value::String(fill(text)),
        other => other.clone(),
    };
    let one = |value: &Value| match value {
        Value::Array(all) => all.iter().map(text).collect(),
        other => text(other),
    };
    map.iter()
        .map(|(name, value)| (name.clone(), one(value)))
        .collect()
}

/// With a capital at its beginning.
pub(super) fn sentence(text: &str) -> String {
    let mut letters = text.trim().chars();
    match letters.next() {
        Some(first) => first.to_uppercase().chain(letters).collect(),
        None => String::new(),
    }
}

/// Chance that a seed decides.
struct SeededRng {
    seed: u64,
    thrown: u64,
}

impl SeededRng {
    fn of(seed: u64) -> Self {
        Self { seed, thrown: 0 }
    }

    fn pick<'a, T>(&mut self, from: &'a [T]) -> Option<&'a T> {
        self.thrown += 1;
        let mut hasher = blake3::Hasher::new();
        hasher.update(&self.seed.to_le_bytes());
        hasher.update(&self.thrown.to_le_bytes());
        let bytes = hasher.finalize();
        let number = u64::from_be_bytes(*bytes.as_bytes().first_chunk()?);
        let many = u64::try_from(from.len()).unwrap_or(u64::MAX);
        let index = number.checked_rem(many)?;
        from.get(usize::try_from(index).ok()?)
    }
}

#[cfg(test)]
mod tests;
