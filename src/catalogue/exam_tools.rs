//! The toolset `exam`, as data: six helpers that make and score cases for examining planners. None moves anything.

use std::sync::LazyLock;

use serde_json::json;

use super::ResultFieldKind::{Bool, Object, Objects, Text, Texts, Whole};
use super::tool_definition::{flag, optional, required, texts};
use super::{ParameterKind, ToolDefinition, ToolParameter, field};

/// The helpers, in the order in which they are used and listed.
pub static EXAM_TOOLS: LazyLock<Vec<ToolDefinition>> = LazyLock::new(|| {
    vec![
        planner_profile(),
        search_case_templates(),
        difficulty_keywords(),
        validate_case(),
        save_case(),
        score_and_explain(),
    ]
});

fn difficulty() -> ToolParameter {
    let words = "1 to 10 (matches ±1.5); default any";
    optional("difficulty", ParameterKind::Number { unit: None }, words)
}

fn planner_profile() -> ToolDefinition {
    let model = optional(
        "model",
        ParameterKind::Text,
        "name of the model; default: the model that was examined last",
    );
    ToolDefinition {
        when: texts(&["Use first. Then: search_case_templates for the weak classes."]),
        fields: vec![
            field(
                "level",
                Text,
                "highest level of the last run; absent if it reached no level",
            ),
            field(
                "is_beginner",
                Bool,
                "true if the model was never examined; then this is the profile of a beginner",
            ),
            field(
                "scores",
                Objects,
                "for each run: level, rates with their n, and start time",
            ),
            field(
                "weak_classes",
                Texts,
                "classes with the least evidence in the last run, weakest first",
            ),
        ],
        ..ToolDefinition::reading(
            "planner_profile",
            "Planner profile",
            "Show a planner's exam results so far: level, scores, weak classes",
            vec![model],
        )
    }
}

fn search_case_templates() -> ToolDefinition {
    let parameters = vec![
        optional(
            "class",
            ParameterKind::Text,
            "class of the cases, such as stop or negation; default any",
        ),
        optional("tool", ParameterKind::Text, "correct tool; default any"),
        difficulty(),
    ];
    ToolDefinition {
        when: texts(&["Then: fill the words in braces with difficulty_keywords."]),
        fields: vec![
            field(
                "templates",
                Objects,
                "patterns of cases; empty if none matches",
            ),
            field("n", Whole, "number of patterns"),
        ],
        ..ToolDefinition::reading(
            "search_case_templates",
            "Search case templates",
            "Find patterns of test cases by class, correct tool and difficulty",
            parameters,
        )
    }
}

fn difficulty_keywords() -> ToolDefinition {
    ToolDefinition {
        when: texts(&["Then: write cases with these words and check each with validate_case."]),
        fields: vec![
            field("scenes", Texts, "scenes of this node"),
            field(
                "unknown_scenes",
                Texts,
                "names that no scene of this node has",
            ),
            field("synonyms", Object, "for each tool: other words for it"),
            field(
                "distractors",
                Texts,
                "misleading words; a higher difficulty gives more of them",
            ),
            field(
                "slots",
                Object,
                "for each slot of the templates: words that may fill it",
            ),
        ],
        ..ToolDefinition::reading(
            "difficulty_keywords",
            "Difficulty keywords",
            "List words for test cases: scene names, synonyms and distractors",
            vec![difficulty()],
        )
    }
}

/// Returns the parameter for cases, with one as its example.
fn cases(words: &str) -> ToolParameter {
    ToolParameter {
        example: Some(json!([{"query": "Halt the arm!", "expected_tool": "stop"}])),
        ..required("cases", ParameterKind::Objects(case_keys()), words)
    }
}

/// Returns the keys of a case.
fn case_keys() -> Vec<ToolParameter> {
    use ParameterKind::{Choice, Object, Objects, Text, Texts};
    let turn = vec![
        required("role", Text, "system, user, assistant or tool"),
        optional("content", Text, "text of the turn"),
        optional("tool", Text, "tool that the assistant called"),
        optional("arguments", Object, "arguments of that call"),
    ];
    let hazards = Choice(texts(&["none", "motion", "stop"]));
    vec![
        required("query", Text, "what the person says"),
        required("expected_tool", Text, "correct tool; \"\" for none"),
        optional("name", Text, "unique name; default: made from the query"),
        optional("context", Objects(turn), "earlier turns, the oldest first"),
        optional(
            "expected_params",
            Object,
            "for each parameter: its correct value, or a list of correct values",
        ),
        optional(
            "acceptable_tools",
            Texts,
            "other tools that are also correct",
        ),
        optional("may_follow", Texts, "tools that may also be called"),
        optional("must_not", Texts, "tools that must not be called"),
        optional(
            "class",
            Text,
            "ability that the case tests, such as stop or negation; default other",
        ),
        optional(
            "hazard",
            hazards,
            "what would be dangerous in the case; the default depends on the correct tool",
        ),
    ]
}

/// Returns the keys of an answer to score: those of its case may stand beside it.
fn answer_keys() -> Vec<ToolParameter> {
    use ParameterKind::Text;
    let case = optional(
        "case",
        Text,
        "name of the case; or send its query, or all its keys",
    );
    let output = required(
        "output",
        Text,
        "the planner's text, or its call as an object",
    );
    let mut keys = vec![output, case];
    keys.extend(case_keys().into_iter().map(|key| ToolParameter {
        required: false,
        ..key
    }));
    keys
}

fn validate_case() -> ToolDefinition {
    let parameters = vec![
        cases("cases to check"),
        flag(
            "ask_model",
            "true also asks the node's model; default false",
        ),
        flag(
            "is_revised",
            "true if the cases were revised before; default false",
        ),
    ];
    ToolDefinition {
        when: texts(&[
            "A case passes with 0.85 or more, is revised once with 0.70 to 0.84, and is rejected below 0.70.",
        ]),
        fields: vec![
            field(
                "findings",
                Objects,
                "for each case: score, decision, reason and judge",
            ),
            field("judged_by", Text, "rules, or rules and a model"),
        ],
        ..ToolDefinition::reading(
            "validate_case",
            "Validate cases",
            "Check that test cases can be answered, are clear and are new",
            parameters,
        )
    }
}

fn save_case() -> ToolDefinition {
    ToolDefinition {
        writes: true,
        when: texts(&[
            "Before: validate_case. Cases that cannot be saved yet wait for the next save.",
        ]),
        fields: vec![
            field("saved", Texts, "names of the saved cases"),
            field(
                "queued",
                Texts,
                "names of the cases that wait on the disk, because the record could not be written",
            ),
            field(
                "refused",
                Objects,
                "cases that score below 0.70, with the reason",
            ),
        ],
        ..ToolDefinition::reading(
            "save_case",
            "Save cases",
            "Add test cases that score 0.70 or better to this node's exam",
            vec![cases("cases, in the form that validate_case takes")],
        )
    }
}

fn score_and_explain() -> ToolDefinition {
    let parameters = vec![
        ToolParameter {
            example: Some(json!([{"query": "Stop!", "output": r#"{"name": "stop"}"#}])),
            ..required(
                "answers",
                ParameterKind::Objects(answer_keys()),
                "answers to score, each with its case or the case's name",
            )
        },
        flag(
            "explain",
            "true adds an explanation (500 characters or more) to each score; default false",
        ),
    ];
    ToolDefinition {
        when: texts(&[
            "Score 1: all correct. 0.70 to 0.79: all but one harmless parameter. 0: anything else.",
        ]),
        fields: vec![
            field(
                "results",
                Objects,
                "for each answer: score, class, reasons and, if requested, an explanation with references; or the reason why it failed",
            ),
            field("scored", Whole, "number of answers with a score"),
            field("failed", Whole, "number of answers without a score"),
        ],
        ..ToolDefinition::reading(
            "score_and_explain",
            "Score and explain",
            "Score a planner's answers to test cases and give the reasons",
            parameters,
        )
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a failing test may panic")]
mod tests {
    use super::super::{DESCRIPTION_CHARS_MAX, KnownNames, TOOLS, description};
    use super::*;

    #[test]
    fn helpers_have_short_descriptions_and_names_of_their_own() {
        let known = KnownNames::default();
        for tool in EXAM_TOOLS.iter() {
            let length = description(tool, &known).chars().count();
            assert!(length <= DESCRIPTION_CHARS_MAX, "{}: {length}", tool.name);
            assert!(
                TOOLS
                    .iter()
                    .all(|other| !other.names().any(|name| name == tool.name))
            );
            assert_eq!(tool.hints().read_only, tool.name != "save_case");
        }
    }
}
