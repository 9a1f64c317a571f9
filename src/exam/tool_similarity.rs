//! Finds tools that are too similar: similarity predicts confusion, and an exam proves it.

use std::collections::BTreeSet;

use serde::Serialize;
use serde_json::{Value, json};

use super::record::now_ms;
use super::reworded_descriptions;
use super::router::WordWeights;
use super::{ConfusionMatrix, ExamError, ExamRecord, ExamToolCard};

/// Weights of meaning, parameters and wording.
const WEIGHTS: [f64; 3] = [0.5, 0.3, 0.2];

/// Similarity from which a pair is too similar, regardless of its rank.
pub(crate) const THRESHOLD: f64 = 0.85;

/// Number of most similar pairs that are examined regardless of their similarity.
const RANKS: usize = 3;

/// Most tools that are compared; the number of pairs grows with their square.
const TOOLS_MAX: usize = 500;

/// A single measure at or above this is worth a recommendation.
const NOTABLE: f64 = 0.5;

/// Two tools, compared.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(crate) struct ToolPair {
    /// The first tool.
    pub(crate) a: String,
    /// The second tool.
    pub(crate) b: String,
    /// Similarity of the purpose lines, 0 to 1.
    pub(crate) meaning: f64,
    /// Similarity of the parameters, if they were compared.
    pub(crate) parameters: Option<f64>,
    /// Similarity of the descriptions as text.
    pub(crate) wording: f64,
    /// Weighted mean of the above.
    pub(crate) likeness: f64,
    /// Rank from 1, the most similar pair first.
    pub(crate) rank: usize,
    /// True at or above the threshold.
    pub(crate) is_too_alike: bool,
    /// Number of times one was called although the other was right, in the last run, and the number of answers.
    pub(crate) confused: Option<(usize, usize)>,
    /// Recommended changes.
    pub(crate) recommendations: Vec<ToolRecommendation>,
}

/// Change that would make two tools easier to tell apart.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(crate) struct ToolRecommendation {
    /// scope, examples, parameters, naming or terminology.
    pub(crate) kind: &'static str,
    /// Tool whose description should change.
    pub(crate) tool: String,
    /// Recommended change.
    pub(crate) text: String,
    /// Reason.
    pub(crate) rationale: String,
    /// high where the last run confused them, otherwise medium or low.
    pub(crate) priority: &'static str,
    /// The revised description, if rewording is enough.
    pub(crate) revised_description: Option<String>,
    /// The same as a JSON patch of the tool's entry; empty if a person must choose.
    pub(crate) patch: Value,
    /// The same as a fragment of the node file, for a built-in tool.
    pub(crate) node_file: Option<String>,
}

/// Comparison of a list of tools.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(crate) struct SimilarityReport {
    /// The way in which meaning was compared: `tf-idf` or `embeddings`.
    pub(crate) method: &'static str,
    /// The time of the comparison, in milliseconds since 1970.
    pub(crate) generated_at: i64,
    /// In the order of the matrix.
    pub(crate) tools: Vec<String>,
    /// Similarity of each tool to each.
    pub(crate) matrix: Vec<Vec<f64>>,
    /// Pairs at or above the threshold and the top few, the most similar first.
    pub(crate) pairs: Vec<ToolPair>,
    /// Confusion matrix of the last run with a verdict in which two of these tools were shown.
    pub(crate) confusion: Option<ConfusionMatrix>,
}

/// Options for comparing tools.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct SimilarityOptions {
    /// Whether to compare the parameters too.
    pub(crate) with_parameters: bool,
    /// Similarity at which a pair is too similar.
    pub(crate) threshold: f64,
    /// Embedding of each tool's purpose line; without these, words are compared.
    pub(crate) vectors: Option<Vec<Vec<f64>>>,
}

impl SimilarityReport {
    /// Compares tools; `record` holds what the last run confused.
    ///
    /// # Errors
    /// Fails if there are fewer than two tools or too many, the vectors do not belong to them, or the record cannot be read.
    pub(crate) fn of(
        cards: &[ExamToolCard],
        options: &SimilarityOptions,
        record: &ExamRecord,
    ) -> Result<Self, ExamError> {
        if !(2..=TOOLS_MAX).contains(&cards.len()) {
            return Err(ExamError::Request(format!(
                "{} tools were found; 2 to {TOOLS_MAX} are possible",
                cards.len()
            )));
        }
        let meaning = match &options.vectors {
            Some(vectors) => cosines(vectors, cards.len())?,
            None => meaning(cards),
        };
        let tools: Vec<String> = cards.iter().map(display_name).collect();
        let confusion = ConfusionMatrix::last(record, &tools)?;
        let mut pairs = Vec::new();
        let mut matrix: Vec<Vec<f64>> = vec![vec![1.0; cards.len()]; cards.len()];
        for (i, (a, meaning)) in cards.iter().zip(&meaning).enumerate() {
            for (j, (b, meaning)) in cards.iter().zip(meaning).enumerate().skip(i + 1) {
                let pair = pair(a, b, *meaning, options);
                for (row, column) in [(i, j), (j, i)] {
                    if let Some(cell) = matrix.get_mut(row).and_then(|row| row.get_mut(column)) {
                        *cell = pair.likeness;
                    }
                }
                pairs.push((pair, a, b));
            }
        }
        pairs.sort_by(|(a, ..), (b, ..)| b.likeness.total_cmp(&a.likeness));
        let ranked = pairs.into_iter().zip(1..);
        let notable = ranked.filter_map(|((mut pair, a, b), rank)| {
            pair.rank = rank;
            pair.confused = confusion
                .as_ref()
                .map(|matrix| matrix.between(&pair.a, &pair.b));
            let is_notable = pair.is_too_alike || rank <= RANKS || pair.is_confused();
            is_notable.then(|| ToolPair {
                recommendations: recommend(&pair, a, b),
                ..pair
            })
        });
        let pairs = notable.collect();
        Ok(Self {
            method: options.vectors.as_ref().map_or("tf-idf", |_| "embeddings"),
            generated_at: now_ms(),
            tools,
            matrix,
            pairs,
            confusion,
        })
    }
}

/// Returns a tool's name, with its server's name if it belongs to another server.
fn display_name(card: &ExamToolCard) -> String {
    label(&card.server, &card.own_name)
}

/// Returns a tool's name as it is shown next to those of other servers.
pub(super) fn label(server: &str, own_name: &str) -> String {
    if server.is_empty() {
        own_name.to_owned()
    } else {
        format!("{server}/{own_name}")
    }
}

/// Compares the purpose lines alone: what else descriptions share would make all of them similar.
fn meaning(cards: &[ExamToolCard]) -> Vec<Vec<f64>> {
    let weights = WordWeights::of(cards.iter().map(ExamToolCard::purpose));
    cards
        .iter()
        .map(|card| weights.similarities(card.purpose()))
        .collect()
}

/// Returns the similarities by an embedding model, 0 to 1; vectors that point away from each other count as 0.
fn cosines(vectors: &[Vec<f64>], tools: usize) -> Result<Vec<Vec<f64>>, ExamError> {
    let dot = |a: &[f64], b: &[f64]| a.iter().zip(b).map(|(a, b)| a * b).sum::<f64>();
    let width = vectors.first().map_or(0, Vec::len);
    let is_good = |one: &Vec<f64>| one.len() == width && dot(one, one).is_normal();
    if vectors.len() != tools || !vectors.iter().all(is_good) {
        return Err(ExamError::Request(format!(
            "the embedding model returned {} vectors for {tools} tools, or empty ones. Next: choose a different model with --embedding-model",
            vectors.len()
        )));
    }
    let unit = |one: &Vec<f64>| {
        let length = dot(one, one).sqrt();
        one.iter().map(|part| part / length).collect::<Vec<f64>>()
    };
    let units: Vec<Vec<f64>> = vectors.iter().map(unit).collect();
    let row = |a: &Vec<f64>| units.iter().map(|b| dot(a, b).clamp(0.0, 1.0)).collect();
    Ok(units.iter().map(row).collect())
}

fn pair(a: &ExamToolCard, b: &ExamToolCard, meaning: f64, options: &SimilarityOptions) -> ToolPair {
    let parameters = options
        .with_parameters
        .then(|| jaccard(&parameters(a), &parameters(b)));
    let wording = jaccard(&trigrams(&a.description), &trigrams(&b.description));
    let [w_meaning, w_parameters, w_wording] = WEIGHTS;
    let (sum, weight) = match parameters {
        Some(parameters) => (w_parameters * parameters, w_parameters),
        None => (0.0, 0.0),
    };
    let likeness =
        (w_meaning * meaning + w_wording * wording + sum) / (w_meaning + w_wording + weight);
    ToolPair {
        a: display_name(a),
        b: display_name(b),
        meaning,
        parameters,
        wording,
        likeness,
        rank: 0,
        is_too_alike: likeness >= options.threshold,
        confused: None,
        recommendations: Vec::new(),
    }
}

fn parameters(card: &ExamToolCard) -> BTreeSet<String> {
    let properties = card
        .input_schema
        .get("properties")
        .and_then(Value::as_object);
    let kind = |schema: &Value| schema.get("type").map(Value::to_string).unwrap_or_default();
    let all = properties.into_iter().flatten();
    all.map(|(name, schema)| format!("{name}:{}", kind(schema)))
        .collect()
}

/// Returns the trigrams of a text.
pub(super) fn trigrams(text: &str) -> BTreeSet<String> {
    let text = text.to_lowercase();
    let words: Vec<&str> = text.split_whitespace().collect();
    let chars: Vec<char> = words.join(" ").chars().collect();
    chars
        .windows(3)
        .map(|three| three.iter().collect())
        .collect()
}

/// Returns the fraction of all elements that both sets have; 0 for two empty sets.
pub(super) fn jaccard(a: &BTreeSet<String>, b: &BTreeSet<String>) -> f64 {
    let all = a.union(b).count();
    if all == 0 {
        0.0
    } else {
        a.intersection(b).count() as f64 / all as f64
    }
}

/// A possible fault of a pair.
struct PairFinding {
    applies: bool,
    kind: &'static str,
    /// The change.
    text: String,
    rationale: String,
    /// The description after the change.
    revised: Option<String>,
}

fn recommend(pair: &ToolPair, a: &ExamToolCard, b: &ExamToolCard) -> Vec<ToolRecommendation> {
    // The tool with the shorter purpose is the one to reword.
    let (less, more) = if a.purpose().len() <= b.purpose().len() {
        (a, b)
    } else {
        (b, a)
    };
    let priority = match (pair.is_confused(), pair.is_too_alike) {
        (true, _) => "high",
        (false, true) => "medium",
        (false, false) => "low",
    };
    let found = findings(pair, less, more)
        .into_iter()
        .filter(|finding| finding.applies);
    found
        .map(|finding| ToolRecommendation {
            kind: finding.kind,
            tool: display_name(less),
            text: finding.text,
            rationale: finding.rationale,
            priority,
            patch: finding
                .revised
                .iter()
                .map(|value| json!({"op": "replace", "path": "/description", "value": value}))
                .collect(),
            node_file: finding
                .revised
                .as_deref()
                .and_then(|text| reworded_descriptions::table(less, text)),
            revised_description: finding.revised,
        })
        .collect()
}

impl ToolPair {
    fn is_confused(&self) -> bool {
        self.confused.is_some_and(|(times, _)| times > 0)
    }
}

fn findings(pair: &ToolPair, less: &ExamToolCard, more: &ExamToolCard) -> [PairFinding; 6] {
    let (name, has_similar_purpose) = (&less.name, pair.meaning >= NOTABLE);
    let first = format!(
        "{}; for \"{}\" call {}",
        less.purpose(),
        lower(more.purpose()),
        more.name
    );
    let lines: Vec<&str> = std::iter::once(&*first).chain(less.own_lines()).collect();
    let is_same = lower(less.purpose()) == lower(more.purpose());
    [
        PairFinding {
            applies: is_same,
            kind: "same_purpose",
            text: format!(
                "{name} and {} have the same purpose: remove one, or say what only one of them does",
                more.name
            ),
            rationale: "wording cannot separate two tools with the same purpose".to_owned(),
            revised: None,
        },
        PairFinding {
            applies: !is_same && (has_similar_purpose || pair.is_confused()),
            kind: "scope",
            text: format!("in the first line, say what {name} does not do"),
            rationale: format!(
                "the purposes are similar ({:.2}), and a model chooses by the first line",
                pair.meaning
            ),
            revised: Some(lines.join("\n")),
        },
        PairFinding {
            applies: jaccard(&trigrams(name), &trigrams(&more.name)) >= NOTABLE,
            kind: "naming",
            text: format!(
                "rename {name} or {}, so that the names show how the tools differ",
                more.name
            ),
            rationale: "the names share most of their letters".to_owned(),
            revised: None,
        },
        PairFinding {
            applies: pair.parameters.is_some_and(|value| value >= NOTABLE),
            kind: "parameters",
            text: format!("name the parameters of {name} after what they do there"),
            rationale: "the parameters of both tools are the same".to_owned(),
            revised: None,
        },
        PairFinding {
            applies: !less.description.to_lowercase().contains("example"),
            kind: "examples",
            text: format!("show an example that only {name} can answer"),
            rationale: "its description has no example".to_owned(),
            revised: None,
        },
        PairFinding {
            applies: pair.wording >= NOTABLE && !has_similar_purpose,
            kind: "terminology",
            text: "remove the words that both descriptions share, or say them once for all tools"
                .to_owned(),
            rationale: format!(
                "half of the wording is the same ({:.2}), although the purposes differ",
                pair.wording
            ),
            revised: Some(less.purpose().to_owned()),
        },
    ]
}

fn lower(text: &str) -> String {
    let mut chars = text.chars();
    chars.next().map_or_else(String::new, |first| {
        first.to_lowercase().chain(chars).collect()
    })
}

#[cfg(test)]
#[allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "a failing test may panic"
)]
mod tests {
    use super::*;

    fn card(name: &str, description: &str, parameters: &str) -> ExamToolCard {
        let properties: Value = serde_json::from_str(parameters).unwrap();
        let function = json!({"name": name, "description": description, "parameters": {"type": "object", "properties": properties}});
        ExamToolCard::defined(&function).unwrap()
    }

    fn compared(
        cards: &[ExamToolCard],
        with_parameters: bool,
    ) -> Result<SimilarityReport, ExamError> {
        let folder = tempfile::tempdir().unwrap();
        let record = ExamRecord::open(&folder.path().join("exam.db")).unwrap();
        let options = SimilarityOptions {
            with_parameters,
            threshold: THRESHOLD,
            vectors: None,
        };
        SimilarityReport::of(cards, &options, &record)
    }

    #[test]
    fn an_embedding_model_takes_the_place_of_words() {
        let cards = [
            card("a", "Open the door", "{}"),
            card("b", "Unlock an entrance", "{}"),
            card("c", "Open the window", "{}"),
        ];
        let folder = tempfile::tempdir().unwrap();
        let record = ExamRecord::open(&folder.path().join("exam.db")).unwrap();
        let compare = |vectors: Vec<Vec<f64>>| {
            let options = SimilarityOptions {
                with_parameters: false,
                threshold: THRESHOLD,
                vectors: Some(vectors),
            };
            SimilarityReport::of(&cards, &options, &record)
        };
        let found = compare(vec![vec![1.0, 0.1], vec![2.0, 0.2], vec![-1.0, 3.0]]).unwrap();
        assert_eq!(
            (found.pairs[0].a.as_str(), found.pairs[0].b.as_str()),
            ("a", "b")
        );
        assert!((found.pairs[0].meaning - 1.0).abs() < 1e-9);
        assert!(compare(vec![vec![1.0], vec![1.0]]).is_err());
        assert!(compare(vec![vec![1.0], vec![0.0], vec![1.0]]).is_err());
    }

    #[test]
    fn tools_that_say_the_same_are_found_and_told_apart() {
        let cards = [
            card(
                "read_file",
                "Read a file from disk",
                r#"{"path": {"type": "string"}}"#,
            ),
            card(
                "load_file",
                "Read a file from disk",
                r#"{"path": {"type": "string"}}"#,
            ),
            card(
                "weather",
                "Tell the temperature of a city",
                r#"{"city": {"type": "string"}}"#,
            ),
        ];
        let similar = compared(&cards, true).unwrap();
        let first = &similar.pairs[0];
        assert_eq!(
            (first.a.as_str(), first.b.as_str(), first.is_too_alike),
            ("read_file", "load_file", true)
        );
        assert!((first.likeness - 1.0).abs() < 1e-9, "{first:?}");
        assert!((similar.matrix[1][0] - 1.0).abs() < 1e-9 && similar.matrix[0][2] < 0.3);
        let same = &first.recommendations[0];
        assert_eq!((same.kind, &same.patch), ("same_purpose", &json!([])));
        assert_eq!(same.revised_description, None);
        assert!(first.recommendations.iter().all(|one| one.kind != "scope"));
        assert!(!similar.pairs[1].is_too_alike);
    }

    #[test]
    fn parameters_count_only_when_asked_and_one_tool_is_like_nothing() {
        let cards = [
            card("a", "Open the door", r#"{"x": {"type": "string"}}"#),
            card("b", "Paint a wall", r#"{"x": {"type": "string"}}"#),
        ];
        let (without, with) = (
            compared(&cards, false).unwrap(),
            compared(&cards, true).unwrap(),
        );
        assert_eq!(without.pairs[0].parameters, None);
        assert!(with.pairs[0].likeness > without.pairs[0].likeness);
        assert!(compared(&cards[..1], true).is_err());
    }
}
