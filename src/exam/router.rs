//! A router without a model: it picks the tool whose purpose shares the rarest words with the request. A planner must beat it.

use std::collections::{HashMap, HashSet};

use super::{ExamCase, ExamToolbox};

/// Similarity below which a request is for no tool.
const SIMILARITY_MIN: f64 = 0.12;

/// Words that carry no meaning of their own.
const STOP_WORDS: [&str; 44] = [
    "a", "an", "and", "are", "as", "at", "be", "by", "can", "do", "for", "from", "have", "i", "in",
    "is", "it", "its", "me", "my", "now", "of", "on", "or", "please", "so", "that", "the", "then",
    "there", "this", "to", "was", "we", "what", "when", "whether", "which", "will", "with", "you",
    "your", "no", "not",
];

/// Texts as word weights: rare words weigh more.
pub(super) struct WordWeights {
    texts: Vec<HashMap<String, f64>>,
    rarity: HashMap<String, f64>,
}

impl WordWeights {
    /// Learns how rare words are from these texts.
    pub(super) fn of<'a>(texts: impl IntoIterator<Item = &'a str>) -> Self {
        let split: Vec<Vec<String>> = texts.into_iter().map(stemmed_words).collect();
        let mut counts: HashMap<&String, f64> = HashMap::new();
        for word in split
            .iter()
            .flat_map(|text| text.iter().collect::<HashSet<_>>())
        {
            *counts.entry(word).or_default() += 1.0;
        }
        let texts = 1.0 + split.len() as f64;
        let rarity = |count: f64| (texts / (1.0 + count)).ln() + 1.0;
        let rarity: HashMap<String, f64> = counts
            .into_iter()
            .map(|(word, count)| (word.clone(), rarity(count)))
            .collect();
        let texts = split.iter().map(|text| weigh(text, &rarity)).collect();
        Self { texts, rarity }
    }

    /// Returns the similarity of a text to each of the learnt ones, 0 to 1, in their order.
    pub(super) fn similarities(&self, text: &str) -> Vec<f64> {
        let own = weigh(&stemmed_words(text), &self.rarity);
        self.texts.iter().map(|other| dot(&own, other)).collect()
    }
}

fn stemmed_words(text: &str) -> Vec<String> {
    text.split(|c: char| !c.is_alphanumeric())
        .map(str::to_lowercase)
        .filter(|word| !word.is_empty() && !STOP_WORDS.contains(&word.as_str()))
        .map(|word| stem(&word))
        .collect()
}

/// Strips an ending that changes a word's form more than its meaning.
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

/// Returns word weights as a vector of length one; an unknown word weighs as much as the rarest.
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

/// Returns the tool that the router would call for a case, if any.
pub(super) fn route<'a>(case: &ExamCase, tools: &'a ExamToolbox) -> Option<&'a str> {
    let cards = tools.cards();
    let texts: Vec<String> = cards
        .iter()
        .map(|card| format!("{} {} {}", card.names.join(" "), card.purpose(), card.name))
        .collect();
    let weights = WordWeights::of(texts.iter().map(String::as_str));
    let scores = weights.similarities(&case.query);
    let best = cards
        .iter()
        .zip(scores)
        .filter(|(card, _)| !card.is_only_named)
        .max_by(|(_, a), (_, b)| a.total_cmp(b))?;
    (best.1 >= SIMILARITY_MIN).then_some(best.0.name.as_str())
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
        let weights = WordWeights::of([
            "draw the design on the sheet",
            "list the nodes on the network",
        ]);
        let scores = weights.similarities("please draw something");
        assert!(scores.first() > scores.get(1), "{scores:?}");
        assert!(weights.similarities("").iter().all(|one| one.abs() < 1e-12));
    }
}
