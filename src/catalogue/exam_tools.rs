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
    let words = "1 to 10, give or take 1.5; default any";
    optional("difficulty", ParameterKind::Number { unit: None }, words)
}

fn planner_profile() -> ToolDefinition {
    let model = optional(
        "model",
        ParameterKind::Text,
        "model name, default the one examined last",
    );
    ToolDefinition {
        when: texts(&["Use first. After: search_case_templates for its weak classes."]),
        fields: vec![
            field(
                "level",
                Text,
                "highest level of its last run, absent where it reached none",
            ),
            field(
                "is_beginner",
                Bool,
                "whether nothing is known of it, so that this is a beginner's profile",
            ),
            field(
                "scores",
                Objects,
                "per run its level, its rates with their n, and when it began",
            ),
            field(
                "weak_classes",
                Texts,
                "classes that the last run says least about, the least known first",
            ),
        ],
        ..ToolDefinition::reading(
            "planner_profile",
            "Planner profile",
            "Say what a planner has shown in exams so far: level, scores, weak classes",
            vec![model],
        )
    }
}

fn search_case_templates() -> ToolDefinition {
    let parameters = vec![
        optional(
            "class",
            ParameterKind::Text,
            "class of cases such as stop or negation, default any",
        ),
        optional(
            "tool",
            ParameterKind::Text,
            "tool that is right, default any",
        ),
        difficulty(),
    ];
    ToolDefinition {
        when: texts(&["After: fill what stands in braces with difficulty_keywords."]),
        fields: vec![
            field(
                "templates",
                Objects,
                "patterns of cases; empty where there is none such",
            ),
            field("n", Whole, "how many there are"),
        ],
        ..ToolDefinition::reading(
            "search_case_templates",
            "Search case templates",
            "Find patterns of test cases by class, right tool and difficulty",
            parameters,
        )
    }
}

fn difficulty_keywords() -> ToolDefinition {
    ToolDefinition {
        when: texts(&["After: write cases with them and check each with validate_case."]),
        fields: vec![
            field("scenes", Texts, "scenes of this node"),
            field(
                "unknown_scenes",
                Texts,
                "names that no scene of this node has",
            ),
            field("synonyms", Object, "per tool other words for it"),
            field(
                "distractors",
                Texts,
                "words that lead astray, more of them where it is to be difficult",
            ),
            field(
                "slots",
                Object,
                "per slot of the templates what may fill it",
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
        required("expected_tool", Text, "tool that is right, \"\" for none"),
        optional("name", Text, "unique name, default made from the query"),
        optional("context", Objects(turn), "earlier turns, the oldest first"),
        optional(
            "expected_params",
            Object,
            "per parameter its right value, or a list of them",
        ),
        optional("acceptable_tools", Texts, "other tools that are as right"),
        optional("may_follow", Texts, "tools that may be called as well"),
        optional("must_not", Texts, "tools that must not be called"),
        optional(
            "class",
            Text,
            "ability that it tests, such as stop or negation, default other",
        ),
        optional(
            "hazard",
            hazards,
            "what may not move, default by the right tool",
        ),
    ]
}

/// Returns the keys of an answer to score: those of its case may stand beside it.
fn answer_keys() -> Vec<ToolParameter> {
    use ParameterKind::Text;
    let case = optional(
        "case",
        Text,
        "name of the case, or send its query or all its keys",
    );
    let output = required(
        "output",
        Text,
        "what the planner wrote, or its call as an object",
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
            "true asks the node's model as well, default false",
        ),
        flag(
            "is_revised",
            "true where they were revised before, default false",
        ),
    ];
    ToolDefinition {
        when: texts(&[
            "From 0.85 on a case passes, from 0.70 on it is revised once, below it is rejected.",
        ]),
        fields: vec![
            field(
                "findings",
                Objects,
                "per case score, decision, why, and who judged",
            ),
            field("judged_by", Text, "rules, or rules and a model"),
        ],
        ..ToolDefinition::reading(
            "validate_case",
            "Validate cases",
            "Check whether test cases can be answered, are read as meant and are new",
            parameters,
        )
    }
}

fn save_case() -> ToolDefinition {
    ToolDefinition {
        writes: true,
        when: texts(&[
            "Before: validate_case. What cannot be saved now waits and is saved with the next.",
        ]),
        fields: vec![
            field("saved", Texts, "names of the cases that are saved"),
            field(
                "queued",
                Texts,
                "names of the cases that wait on the disk because the record could not be written",
            ),
            field("refused", Objects, "cases below 0.70, and why"),
        ],
        ..ToolDefinition::reading(
            "save_case",
            "Save cases",
            "Add test cases of 0.70 or better to this node's exam",
            vec![cases("cases, as validate_case takes them")],
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
                "answers to score, each with its case or where that is found",
            )
        },
        flag(
            "explain",
            "true explains each in 500 characters or more, default false",
        ),
    ];
    ToolDefinition {
        when: texts(&[
            "1 is right in everything, 0.70 to 0.79 all but one harmless parameter, else 0.",
        ]),
        fields: vec![
            field(
                "results",
                Objects,
                "per answer its score, classification and reasons, explanation and references if asked for; or why it failed",
            ),
            field("scored", Whole, "answers that have a score"),
            field(
                "failed",
                Whole,
                "answers that could not be scored and have none",
            ),
        ],
        ..ToolDefinition::reading(
            "score_and_explain",
            "Score and explain",
            "Score a planner's answers to test cases and say why",
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
