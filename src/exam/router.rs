//! A router without any model: the tool whose purpose shares the rarest words with the request. A planner must beat it.

use std::collections::{HashMap, HashSet};

use super::{ExamCase, ExamToolbox};

/// Below this likeness a request is for no tool.
const LEAST: f64 = 0.12;

/// Words that say nothing about a purpose.
const EMPTY: [&str; 44] = [
    "a", "an", "and", "are", "as", "at", "be", "by", "can", "do", "for", "from", "have", "i", "in",
    "is", "it", "its", "me", "my", "now", "of", "on", "or", "please", "so", "that", "the", "then",
    "there", "this", "to", "was", "we", "what", "when", "whether", "which", "will", "with", "you",
    "your", "no", "not",
];

/// Texts as weights of words: rare ones weigh more.
pub(super) struct WordWeights {
    texts: Vec<HashMap<String, f64>>,
    rarity: HashMap<String, f64>,
}

impl WordWeights {
    /// Learns how rare words are from these texts.
    pub(super) fn of<'a>(texts: impl IntoIterator<Item = &'a str>) -> Self {
        let split: Vec<Vec<String>> = texts.into_iter().map(words).collect();
        let mut seen: HashMap<&String, f64> = HashMap::new();
        for word in split
            .iter()
            .flat_map(|text| text.iter().collect::<HashSet<_>>())
        {
            *seen.entry(word).or_default() += 1.0;
        }
        let texts = 1.0 + split.len() as f64;
        let rarity = |count: f64| (texts / (1.0 + count)).ln() + 1.0;
        let rarity: HashMap<String, f64> = seen
            .into_iter()
            .map(|(word, count)| (word.clone(), rarity(count)))
            .collect();
        let texts = split.iter().map(|text| weigh(text, &rarity)).collect();
        Self { texts, rarity }
    }

    /// Likeness of a text to each of those that were learnt, 0 to 1, in their order.
    pub(super) fn likeness(&self, text: &str) -> Vec<f64> {
        let own = weigh(&words(text), &self.rarity);
        self.texts.iter().map(|other| dot(&own, other)).collect()
    }
}

fn words(text: &str) -> Vec<String> {
    text.split(|c: char| !c.is_alphanumeric())
        .map(str::to_lowercase)
        .filter(|word| !word.is_empty() && !EMPTY.contains(&word.as_str()))
        .map(|word| stem(&word))
        .collect()
}

/// Without the endings that change a word's form more than its meaning.
fn stem(word: &str) -> String {
    for ending in ["ing", "ed", "es", "s"] {
        if let Some(stem) = word.strip_suffix(ending)
            && stem.chars().count() >= 3
        {
            return stem.to_owned();
        }
    }
    word.to_owned()
}

/// Weights of length one; a word that was never learnt has the weight of the rarest.
fn weigh(text: &[String], rarity: &HashMap<String, f64>) -> HashMap<String, f64> {
    let rarest = rarity.values().copied().fold(1.0, f64::max);
    let mut weights: HashMap<String, f64> = HashMap::new();
    for word in text {
        *weights.entry(word.clone()).or_default() += rarity.get(word).copied().unwrap_or(rarest);
    }
    let length = weights.values().map(|one| one * one).sum::<f64>().sqrt();
    for weight in weights.values_mut() {
        *weight /= length;
    }
    weights
}

fn dot(a: &HashMap<String, f64>, b: &HashMap<String, f64>) -> f64 {
    a.iter()
        .filter_map(|(word, weight)| Some(weight * b.get(word)?))
        .sum()
}

/// The tool that the router would call for a case, if any.
pub(super) fn route<'a>(case: &ExamCase, tools: &'a ExamToolbox) -> Option<&'a str> {
    let cards = tools.cards();
    let texts: Vec<String> = cards
        .iter()
        .map(|card| format!("{} {} {}", card.names.join(" "), card.purpose(), card.name))
        .collect();
    let words = WordWeights::of(texts.iter().map(String::as_str));
    let likeness = words.likeness(&case.query);
    let best = cards
        .iter()
        .zip(likeness)
        .filter(|(card, _)| !card.is_only_named)
        .max_by(|(_, a), (_, b)| a.total_cmp(b))?;
    (best.1 >= LEAST).then_some(best.0.name.as_str())
}

/// Returns whether the router is right about a case.
pub(super) fn is_right(case: &ExamCase, tools: &ExamToolbox) -> bool {
    match route(case, tools) {
        None => case.expected_tool.is_none(),
        Some(name) => tools.is_any_of(name, case.right_tools()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rare_words_weigh_more_than_common_ones() {
        let words = WordWeights::of([
            "draw the design on the sheet",
            "list the nodes on the network",
        ]);
        let likeness = words.likeness("please draw something");
        assert!(likeness.first() > likeness.get(1), "{likeness:?}");
        assert!(words.likeness("").iter().all(|one| one.abs() < 1e-12));
    }
}
