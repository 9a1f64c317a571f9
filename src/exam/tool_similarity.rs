//! Tools that are too alike: likeness predicts confusion, and an exam proves it.

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

/// Most tools that are compared; pairs grow with their square.
const TOOLS_MAX: usize = 500;

/// From here on a single measure is worth a recommendation.
const NOTABLE: f64 = 0.5;

/// Two tools beside each other.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(crate) struct ToolPair {
    /// The first tool.
    pub(crate) a: String,
    /// The second tool.
    pub(crate) b: String,
    /// Of the purpose lines, 0 to 1.
    pub(crate) meaning: f64,
    /// Of the parameters, where they were asked for.
    pub(crate) parameters: Option<f64>,
    /// Of the descriptions as text.
    pub(crate) wording: f64,
    /// All together, by weight.
    pub(crate) likeness: f64,
    /// From 1, the most alike pair first.
    pub(crate) rank: usize,
    /// At the threshold or beyond.
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
    /// The description as it would be, where words alone help.
    pub(crate) revised_description: Option<String>,
    /// The same as a JSON patch of the tool's entry; empty where a person must choose.
    pub(crate) patch: Value,
    /// The same as a fragment of the node file, for a built-in tool.
    pub(crate) node_file: Option<String>,
}

/// Tools beside each other.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(crate) struct SimilarityReport {
    /// The way in which meaning was compared: `tf-idf` or `embeddings`.
    pub(crate) method: &'static str,
    /// The time of the comparison, in milliseconds since 1970.
    pub(crate) generated_at: i64,
    /// In the order of the matrix.
    pub(crate) tools: Vec<String>,
    /// Likeness of each to each.
    pub(crate) matrix: Vec<Vec<f64>>,
    /// The most alike first: those at the threshold, and the first few.
    pub(crate) pairs: Vec<ToolPair>,
    /// Confusion matrix of the last run with a verdict in which two of these tools were shown.
    pub(crate) confusion: Option<ConfusionMatrix>,
}

/// Options for comparing tools.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct SimilarityOptions {
    /// Count the parameters in.
    pub(crate) with_parameters: bool,
    /// From here on a pair is too alike.
    pub(crate) threshold: f64,
    /// Of each tool's purpose line what an embedding model made of it; without, words are compared.
    pub(crate) vectors: Option<Vec<Vec<f64>>>,
}

impl SimilarityReport {
    /// Compares tools; `record` says what the last run confused.
    ///
    /// # Errors
    /// Fewer than two tools, or too many; or vectors that are not of these tools; or the record cannot be read.
    pub(crate) fn of(
        cards: &[ExamToolCard],
        how: &SimilarityOptions,
        record: &ExamRecord,
    ) -> Result<Self, ExamError> {
        if !(2..=TOOLS_MAX).contains(&cards.len()) {
            return Err(ExamError::Request(format!(
                "{} tools were found; 2 to {TOOLS_MAX} can be compared",
                cards.len()
            )));
        }
        let meaning = match &how.vectors {
            Some(vectors) => cosines(vectors, cards.len())?,
            None => meaning(cards),
        };
        let tools: Vec<String> = cards.iter().map(shown).collect();
        let confusion = ConfusionMatrix::last(record, &tools)?;
        let mut pairs = Vec::new();
        let mut matrix: Vec<Vec<f64>> = vec![vec![1.0; cards.len()]; cards.len()];
        for (i, (a, meaning)) in cards.iter().zip(&meaning).enumerate() {
            for (j, (b, meaning)) in cards.iter().zip(meaning).enumerate().skip(i + 1) {
                let pair = pair(a, b, *meaning, how);
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
        let told = ranked.filter_map(|((mut pair, a, b), rank)| {
            pair.rank = rank;
            let table = confusion.as_ref();
            pair.confused = table.map(|table| table.between(&pair.a, &pair.b));
            let is_told = pair.is_too_alike || rank <= RANKS || pair.is_confused();
            is_told.then(|| ToolPair {
                recommendations: recommend(&pair, a, b),
                ..pair
            })
        });
        let pairs = told.collect();
        Ok(Self {
            method: how.vectors.as_ref().map_or("tf-idf", |_| "embeddings"),
            generated_at: now_ms(),
            tools,
            matrix,
            pairs,
            confusion,
        })
    }
}

/// A tool of another server is shown with whose it is.
fn shown(card: &ExamToolCard) -> String {
    label(&card.server, &card.own_name)
}

/// A tool's name beside those of other servers.
pub(super) fn label(server: &str, own_name: &str) -> String {
    if server.is_empty() {
        own_name.to_owned()
    } else {
        format!("{server}/{own_name}")
    }
}

/// Of purpose lines alone: what descriptions share besides would make all of them alike.
fn meaning(cards: &[ExamToolCard]) -> Vec<Vec<f64>> {
    let words = WordWeights::of(cards.iter().map(ExamToolCard::purpose));
    cards
        .iter()
        .map(|card| words.likeness(card.purpose()))
        .collect()
}

/// Likeness by an embedding model, 0 to 1; vectors that point away from each other are as unlike as can be.
fn cosines(vectors: &[Vec<f64>], tools: usize) -> Result<Vec<Vec<f64>>, ExamError> {
    let dot = |a: &[f64], b: &[f64]| a.iter().zip(b).map(|(a, b)| a * b).sum::<f64>();
    let width = vectors.first().map_or(0, Vec::len);
    let is_good = |one: &Vec<f64>| one.len() == width && dot(one, one).is_normal();
    if vectors.len() != tools || !vectors.iter().all(is_good) {
        return Err(ExamError::Request(format!(
            "the embedding model gave {} vectors for {tools} tools, or some without length; choose another with --embedding-model",
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

fn pair(a: &ExamToolCard, b: &ExamToolCard, meaning: f64, how: &SimilarityOptions) -> ToolPair {
    let parameters = how
        .with_parameters
        .then(|| shared(&parameters(a), &parameters(b)));
    let wording = shared(&triples(&a.description), &triples(&b.description));
    let [w_meaning, w_parameters, w_wording] = WEIGHTS;
    let (sum, weight) = match parameters {
        Some(parameters) => (w_parameters * parameters, w_parameters),
        None => (0.0, 0.0),
    };
    let likeness =
        (w_meaning * meaning + w_wording * wording + sum) / (w_meaning + w_wording + weight);
    ToolPair {
        a: shown(a),
        b: shown(b),
        meaning,
        parameters,
        wording,
        likeness,
        rank: 0,
        is_too_alike: likeness >= how.threshold,
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
    let each = properties.into_iter().flatten();
    each.map(|(name, schema)| format!("{name}:{}", kind(schema)))
        .collect()
}

/// Three letters at a time.
pub(super) fn triples(text: &str) -> BTreeSet<String> {
    let text = text.to_lowercase();
    let words: Vec<&str> = text.split_whitespace().collect();
    let letters: Vec<char> = words.join(" ").chars().collect();
    let threes = letters.windows(3);
    threes.map(|three| three.iter().collect()).collect()
}

/// Share of all that both have; of nothing, nothing is shared.
pub(super) fn shared(a: &BTreeSet<String>, b: &BTreeSet<String>) -> f64 {
    let all = a.union(b).count();
    if all == 0 {
        0.0
    } else {
        a.intersection(b).count() as f64 / all as f64
    }
}

/// A possible fault of a pair.
struct PairFinding {
    is_so: bool,
    kind: &'static str,
    /// The change.
    text: String,
    why: String,
    /// The description after the change.
    revised: Option<String>,
}

fn recommend(pair: &ToolPair, a: &ExamToolCard, b: &ExamToolCard) -> Vec<ToolRecommendation> {
    // The words of the tool that says less are the ones to change.
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
    let told = findings(pair, less, more)
        .into_iter()
        .filter(|finding| finding.is_so);
    told.map(|finding| ToolRecommendation {
        kind: finding.kind,
        tool: shown(less),
        text: finding.text,
        rationale: finding.why,
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

fn findings(pair: &ToolPair, less: &ExamToolCard, more: &ExamToolCard) -> [PairFinding; 5] {
    let (name, is_meant_alike) = (&less.name, pair.meaning >= NOTABLE);
    let first = format!(
        "{}; for \"{}\" call {}",
        less.purpose(),
        lower(more.purpose()),
        more.name
    );
    let lines: Vec<&str> = std::iter::once(&*first).chain(less.own_lines()).collect();
    [
        PairFinding {
            is_so: is_meant_alike || pair.is_confused(),
            kind: "scope",
            text: format!("say in the first line what {name} does not do"),
            why: format!(
                "the purposes are alike ({:.2}); a model chooses by the first line",
                pair.meaning
            ),
            revised: Some(lines.join("\n")),
        },
        PairFinding {
            is_so: shared(&triples(name), &triples(&more.name)) >= NOTABLE,
            kind: "naming",
            text: format!(
                "rename {name} or {}: say in the name what only one of them does",
                more.name
            ),
            why: "the names share most of their letters".to_owned(),
            revised: None,
        },
        PairFinding {
            is_so: pair.parameters.is_some_and(|share| share >= NOTABLE),
            kind: "parameters",
            text: format!("name the parameters of {name} after what only it does with them"),
            why: "the parameters alone do not tell the two apart".to_owned(),
            revised: None,
        },
        PairFinding {
            is_so: !less.description.to_lowercase().contains("example"),
            kind: "examples",
            text: format!("show an example that only {name} can answer"),
            why: "the description shows none".to_owned(),
            revised: None,
        },
        PairFinding {
            is_so: pair.wording >= NOTABLE && !is_meant_alike,
            kind: "terminology",
            text: "take out the words that both descriptions share, or say them once for all tools"
                .to_owned(),
            why: format!(
                "half of the wording is the same ({:.2}) and the purposes are not",
                pair.wording
            ),
            revised: Some(less.purpose().to_owned()),
        },
    ]
}

fn lower(text: &str) -> String {
    let mut letters = text.chars();
    letters.next().map_or_else(String::new, |first| {
        first.to_lowercase().chain(letters).collect()
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
        let how = SimilarityOptions {
            with_parameters,
            threshold: THRESHOLD,
            vectors: None,
        };
        SimilarityReport::of(cards, &how, &record)
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
        let like = |vectors: Vec<Vec<f64>>| {
            let how = SimilarityOptions {
                with_parameters: false,
                threshold: THRESHOLD,
                vectors: Some(vectors),
            };
            SimilarityReport::of(&cards, &how, &record)
        };
        let found = like(vec![vec![1.0, 0.1], vec![2.0, 0.2], vec![-1.0, 3.0]]).unwrap();
        assert_eq!(
            (found.pairs[0].a.as_str(), found.pairs[0].b.as_str()),
            ("a", "b")
        );
        assert!((found.pairs[0].meaning - 1.0).abs() < 1e-9);
        assert!(like(vec![vec![1.0], vec![1.0]]).is_err());
        assert!(like(vec![vec![1.0], vec![0.0], vec![1.0]]).is_err());
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
        let scope = &first.recommendations[0];
        assert_eq!(
            (scope.kind, &scope.patch[0]["path"]),
            ("scope", &json!("/description"))
        );
        assert_eq!(
            scope.patch[0]["value"],
            json!(scope.revised_description.clone().unwrap())
        );
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
