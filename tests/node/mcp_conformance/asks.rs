//! The suite's tools that ask back before they answer, round by round, with state that the client only carries.

use rmcp::ErrorData;
use rmcp::model::{CallToolRequestParams, ClientCapabilities};
use serde_json::{Map, Value, json};

/// Their names.
pub(super) const TOOLS: [&str; 8] = [
    "test_input_required_result_elicitation",
    "test_input_required_result_sampling",
    "test_input_required_result_list_roots",
    "test_input_required_result_request_state",
    "test_input_required_result_multiple_inputs",
    "test_input_required_result_multi_round",
    "test_input_required_result_tampered_state",
    "test_input_required_result_capabilities",
];

fn form(message: &str, field: &str, kind: &str) -> Value {
    let schema =
        json!({"type": "object", "properties": {field: {"type": kind}}, "required": [field]});
    json!({"method": "elicitation/create", "params": {"message": message, "requestedSchema": schema}})
}

fn sample(text: &str, tokens: u32) -> Value {
    let message = json!({"role": "user", "content": {"type": "text", "text": text}});
    json!({"method": "sampling/createMessage", "params": {"messages": [message], "maxTokens": tokens}})
}

fn roots() -> Value {
    json!({"method": "roots/list", "params": {}})
}

/// Returns what a prompt asks before it is filled.
pub(super) fn for_prompt() -> Value {
    let request = form("What context should the prompt use?", "context", "string");
    json!({"resultType": "input_required", "inputRequests": {"user_context": request}})
}

/// The answer, or the next round of questions.
pub(super) fn answer(
    name: &str,
    request: &CallToolRequestParams,
    client: Option<&ClientCapabilities>,
) -> Result<Result<String, Value>, ErrorData> {
    let round = match &request.request_state {
        None => 1,
        Some(state) => opened(name, state)?,
    };
    let empty = std::collections::BTreeMap::new();
    let responses = request.input_responses.as_ref().unwrap_or(&empty);
    let requests = questions(name, round, client);
    let answered = requests.iter().all(|(key, send_request)| {
        responses
            .get(key)
            .is_some_and(|response| fits(send_request, response))
    });
    if !answered || (stateful(name) && request.request_state.is_none()) {
        return Ok(Err(next(name, round, &requests)));
    }
    if name == "test_input_required_result_multi_round" && round == 1 {
        return Ok(Err(next(name, 2, &questions(name, 2, client))));
    }
    Ok(Ok(words(name, &json!(responses))))
}

fn stateful(name: &str) -> bool {
    ["state", "multiple_inputs", "multi_round"]
        .iter()
        .any(|end| name.ends_with(end))
}

fn questions(name: &str, round: u8, client: Option<&ClientCapabilities>) -> Map<String, Value> {
    let kind = name.trim_start_matches("test_input_required_result_");
    let all = match (kind, round) {
        ("elicitation", _) => json!({"user_name": form("What is your name?", "name", "string")}),
        ("sampling", _) => {
            json!({"capital_question": sample("What is the capital of France?", 100)})
        }
        ("list_roots", _) => json!({"client_roots": roots()}),
        ("request_state" | "tampered_state", _) => {
            json!({"confirm": form("Please confirm", "ok", "boolean")})
        }
        ("multi_round", 1) => {
            json!({"step1": form("Step 1: What is your name?", "name", "string")})
        }
        ("multi_round", _) => {
            json!({"step2": form("Step 2: What is your favorite color?", "color", "string")})
        }
        _ => json!({
            "user_name": form("What is your name?", "name", "string"),
            "greeting": sample("Generate a greeting", 50),
            "client_roots": roots(),
        }),
    };
    let Value::Object(mut all) = all else {
        return Map::new();
    };
    if kind == "capabilities" {
        let can = serde_json::to_value(client).unwrap_or_default();
        all.retain(|_, request| {
            capability(request).is_some_and(|needed| can.get(needed).is_some())
        });
    }
    all
}

fn capability(request: &Value) -> Option<&str> {
    request["method"].as_str()?.split('/').next()
}

/// Returns whether a response is an answer to the question at all.
fn fits(request: &Value, response: &Value) -> bool {
    match capability(request) {
        Some("elicitation") => {
            let required = request["params"]["requestedSchema"]["required"][0]
                .as_str()
                .unwrap_or_default();
            response["action"] == "accept" && response["content"].get(required).is_some()
        }
        Some("sampling") => response.get("content").is_some(),
        _ => response["roots"].is_array(),
    }
}

fn next(name: &str, round: u8, request: &Map<String, Value>) -> Value {
    let mut result = json!({"resultType": "input_required", "inputRequests": request});
    if stateful(name) {
        result["requestState"] = json!(sealed(name, round));
    }
    result
}

fn words(name: &str, responses: &Value) -> String {
    match name.trim_start_matches("test_input_required_result_") {
        "elicitation" => {
            let who = responses["user_name"]["content"]["name"]
                .as_str()
                .unwrap_or_default();
            format!("Hello, {who}!")
        }
        "sampling" => responses["capital_question"]["content"]["text"]
            .as_str()
            .unwrap_or_default()
            .to_owned(),
        "request_state" => "state-ok".to_owned(),
        _ => format!("complete: {responses}"),
    }
}

/// A round's number that only this server could have written for this tool.
fn sealed(name: &str, round: u8) -> String {
    let key = blake3::derive_key("conformance fixtures 2026", b"state");
    let seal = blake3::keyed_hash(&key, format!("{name} {round}").as_bytes());
    format!("{round}.{}", seal.to_hex())
}

fn opened(name: &str, state: &str) -> Result<u8, ErrorData> {
    let round = state.split('.').next().and_then(|round| round.parse().ok());
    round
        .filter(|round| sealed(name, *round) == state)
        .ok_or_else(|| ErrorData::invalid_params("the request state is not one of ours", None))
}

/// A form with a default of each kind.
pub(super) fn defaults() -> Value {
    json!({
        "name": {"type": "string", "default": "John Doe"},
        "age": {"type": "integer", "default": 30},
        "score": {"type": "number", "default": 95.5},
        "status": {"type": "string", "enum": ["active", "inactive", "pending"], "default": "active"},
        "verified": {"type": "boolean", "default": true},
    })
}

/// A form with a choice of each kind.
pub(super) fn choices() -> Value {
    let plain = ["option1", "option2", "option3"];
    let titled = |words: [&str; 3]| -> Vec<Value> {
        let values = ["value1", "value2", "value3"];
        values
            .iter()
            .zip(words)
            .map(|(value, title)| json!({"const": value, "title": title}))
            .collect()
    };
    json!({
        "untitledSingle": {"type": "string", "enum": plain},
        "titledSingle": {"type": "string", "oneOf": titled(["First Option", "Second Option", "Third Option"])},
        "legacyEnum": {"type": "string", "enum": ["opt1", "opt2", "opt3"], "enumNames": ["Option One", "Option Two", "Option Three"]},
        "untitledMulti": {"type": "array", "items": {"type": "string", "enum": plain}},
        "titledMulti": {"type": "array", "items": {"anyOf": titled(["First Choice", "Second Choice", "Third Choice"])}},
    })
}
