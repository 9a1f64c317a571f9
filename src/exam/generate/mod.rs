//! Generates cases from a seeded grammar of templates and keywords, and checks each. A model may paraphrase them.

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

/// Most cases of one request.
pub(crate) const CASES_MAX: usize = 10_000;

/// Tries for each requested case; a small grammar runs out of new wordings.
const TRIES_PER_CASE: usize = 20;

/// A pattern of cases. Words in braces are slots.
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
    /// Classes to generate, in turn; empty for every class that has a template.
    pub(crate) classes: Vec<CaseClass>,
    /// The right tool.
    pub(crate) tool: Option<String>,
    /// Approximate difficulty, 1 to 10.
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

/// Returns the templates that match every given criterion: class, right tool and difficulty. There may be none.
///
/// # Errors
/// Never, if the tests of the program passed.
pub(crate) fn templates(
    class: Option<CaseClass>,
    tool: Option<&str>,
    difficulty: Option<f64>,
) -> Result<Vec<CaseTemplate>, ExamError> {
    let mut matching = Vec::new();
    each_line(TEMPLATES, |_, template: CaseTemplate| {
        let is_near = |target: f64| (template.difficulty - target).abs() <= DIFFICULTY_AROUND;
        if class.is_none_or(|class| class == template.class)
            && tool.is_none_or(|tool| template.tool.as_deref() == Some(tool))
            && difficulty.is_none_or(is_near)
        {
            matching.push(template);
        }
        Ok(())
    })?;
    Ok(matching)
}

/// Generates cases that differ from the `known` ones.
///
/// # Errors
/// Fails if no template matches the request.
pub(crate) fn generate(
    request: &GenerationRequest,
    known: &[ExamCase],
    tools: &ExamToolbox,
) -> Result<GeneratedCases, ExamError> {
    let mut all = templates(None, request.tool.as_deref(), request.difficulty)?;
    all.retain(|template| request.classes.is_empty() || request.classes.contains(&template.class));
    let mut groups: BTreeMap<CaseClass, Vec<CaseTemplate>> = BTreeMap::new();
    for template in all {
        groups.entry(template.class).or_default().push(template);
    }
    if groups.is_empty() {
        return Err(ExamError::Request(
            "there is no template of that class, tool and difficulty".to_owned(),
        ));
    }
    let (keywords, mut rng) = (keywords(tools), SeededRng::of(request.seed));
    let mut generated = GeneratedCases::default();
    let count = request.count.min(CASES_MAX);
    for (group, _) in groups.values().cycle().zip(0..count * TRIES_PER_CASE) {
        if generated.cases.len() == count {
            break;
        }
        let Some(template) = rng.pick(group) else {
            continue;
        };
        let mut draw_case = || {
            let case = template.fill(&keywords, &mut rng, request.seed);
            let finding = check(&case, known.iter().chain(&generated.cases), tools);
            (case, finding)
        };
        let (mut case, mut finding) = draw_case();
        if finding.is_to_be_revised() {
            (case, finding) = draw_case();
            generated.revised += 1;
        }
        if finding.passes() {
            generated.cases.push(case);
        } else {
            generated.rejected += 1;
        }
    }
    Ok(generated)
}

impl CaseTemplate {
    fn fill(&self, keywords: &KeywordsBySlot, rng: &mut SeededRng, seed: u64) -> ExamCase {
        // A slot has one value throughout a case, so that the question and the expected call agree.
        let chosen = keywords.iter().map(|(slot, choices)| {
            let word = rng.pick(choices).cloned();
            (*slot, word.unwrap_or_default())
        });
        let mut values: BTreeMap<&str, String> = chosen.collect();
        let scene = values.get("scene").cloned();
        if values.get("other_scene") == scene.as_ref() {
            let choices = keywords.get("scene").into_iter().flatten();
            let others: Vec<&String> = choices.filter(|one| scene.as_ref() != Some(*one)).collect();
            let other = rng.pick(&others).map_or("nothing else", |one| one.as_str());
            values.insert("other_scene", other.to_owned());
        }
        let fill = |text: &str| {
            values.iter().fold(text.to_owned(), |text, (slot, word)| {
                text.replace(&format!("{{{slot}}}"), word)
            })
        };
        let text = rng.pick(&self.texts).cloned().unwrap_or_default();
        let query = sentence(&fill(&text));
        let digits = blake3::hash(query.as_bytes()).to_hex();
        let name = cut(&digits, 8);
        let context = self.context.iter().map(|turn| CaseTurn {
            content: fill(&turn.content),
            arguments: fill_values(&turn.arguments, &fill),
            ..turn.clone()
        });
        ExamCase {
            name: format!("made_{}_{seed}_{name}", self.class.word()),
            query,
            context: context.collect(),
            expected_tool: self.tool.clone(),
            expected_params: fill_values(&self.params, &fill),
            may_follow: self.may_follow.clone(),
            class: self.class,
            ..ExamCase::default()
        }
    }
}

fn fill_values(map: &Map<String, Value>, fill: &impl Fn(&str) -> String) -> Map<String, Value> {
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

/// Returns the text with a capital first letter.
pub(super) fn sentence(text: &str) -> String {
    let mut chars = text.trim().chars();
    match chars.next() {
        Some(first) => first.to_uppercase().chain(chars).collect(),
        None => String::new(),
    }
}

/// Random numbers that a seed determines.
struct SeededRng {
    seed: u64,
    draws: u64,
}

impl SeededRng {
    fn of(seed: u64) -> Self {
        Self { seed, draws: 0 }
    }

    fn pick<'a, T>(&mut self, choices: &'a [T]) -> Option<&'a T> {
        self.draws += 1;
        let mut hasher = blake3::Hasher::new();
        hasher.update(&self.seed.to_le_bytes());
        hasher.update(&self.draws.to_le_bytes());
        let bytes = hasher.finalize();
        let number = u64::from_be_bytes(*bytes.as_bytes().first_chunk()?);
        let count = u64::try_from(choices.len()).unwrap_or(u64::MAX);
        let index = number.checked_rem(count)?;
        choices.get(usize::try_from(index).ok()?)
    }
}

#[cfg(test)]
mod tests;
