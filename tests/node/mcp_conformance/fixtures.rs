//! The fixtures that the official conformance suite expects of a server, behind our own transport and hooks.
//!
//! The suite asks for these names and texts; they say nothing about the product.

use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, ClientCapabilities,
    CompleteRequestParams, CompleteResult, CompletionInfo, CustomRequest, CustomResult,
    GetPromptRequestParams, GetPromptResponse, GetPromptResult, Implementation,
    InputRequiredResult, ListPromptsResult, ListResourceTemplatesResult, ListResourcesResult,
    ListToolsResult, LoggingMessageNotificationParam, PaginatedRequestParams,
    ProgressNotificationParam, ReadResourceRequestParams, ReadResourceResponse, ReadResourceResult,
    ServerCapabilities, ServerConfig, ServerRequest, SetLevelRequestParams, SubscribeRequestParams,
    SubscriptionFilter, UnsubscribeRequestParams,
};
use rmcp::service::{RequestContext, SubscriptionContext};
use rmcp::{ErrorData, RoleServer, ServerHandler};
use serde::de::DeserializeOwned;
use serde_json::{Map, Value, json};
use std::time::Duration;
use steadyhand::mcp::server::unsupported_request;
use tokio::sync::broadcast;

use super::asks;

const PNG: &str = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8BQDwAEhQGAhKmMIQAAAABJRU5ErkJggg==";
const WAV: &str = "UklGRiQAAABXQVZFZm10IBAAAAABAAEAQB8AAEAfAAABAAgAZGF0YQAAAAA=";
const STEP: Duration = Duration::from_millis(50);

/// Tools without a life of their own: name and result.
fn fixed(name: &str) -> Option<Value> {
    let resource = |uri, mime, text| json!({"type": "resource", "resource": {"uri": uri, "mimeType": mime, "text": text}});
    let image = json!({"type": "image", "data": PNG, "mimeType": "image/png"});
    let content = match name {
        "test_simple_text" => json!([text("This is a simple text response for testing.")]),
        "test_image_content" => json!([image]),
        "test_audio_content" => json!([{"type": "audio", "data": WAV, "mimeType": "audio/wav"}]),
        "test_embedded_resource" => {
            json!([resource(
                "test://embedded-resource",
                "text/plain",
                "This is an embedded resource content."
            )])
        }
        "test_multiple_content_types" => json!([
            text("Multiple content types test:"),
            image,
            resource(
                "test://mixed-content-resource",
                "application/json",
                r#"{"test":"data","value":123}"#
            ),
        ]),
        "json_schema_2020_12_tool" => json!([text("taken")]),
        "test_error_handling" => {
            return Some(
                json!({"isError": true, "content": [text("This tool intentionally returns an error for testing")]}),
            );
        }
        _ => return None,
    };
    Some(json!({"content": content}))
}

/// Tools that take their time or ask back.
const LIVELY: [&str; 20] = [
    "test_simple_text",
    "test_image_content",
    "test_audio_content",
    "test_embedded_resource",
    "test_multiple_content_types",
    "test_error_handling",
    "test_tool_with_logging",
    "test_tool_with_progress",
    "test_sampling",
    "test_elicitation",
    "test_elicitation_sep1034_defaults",
    "test_elicitation_sep1330_enums",
    "test_missing_capability",
    "test_streaming_elicitation",
    "test_logging_tool",
    "test_trigger_tool_change",
    "test_trigger_prompt_change",
    "test_reconnection",
    "json_schema_2020_12_tool",
    "test_x_mcp_header",
];

fn tools() -> Vec<Value> {
    let names = LIVELY.iter().chain(&asks::TOOLS);
    names.map(|name| json!({"name": name, "description": format!("{name}, for the suite"), "inputSchema": schema(name)})).collect()
}

fn schema(name: &str) -> Value {
    let one = |key: &str| json!({"type": "object", "properties": {key: {"type": "string"}}, "required": [key]});
    match name {
        "test_sampling" => one("prompt"),
        "test_elicitation" => one("message"),
        "test_x_mcp_header" => json!({"type": "object", "properties": {
            "region": {"type": "string", "x-mcp-header": "Region"},
        }}),
        "json_schema_2020_12_tool" => json!({
            "$schema": "https://json-schema.org/draft/2020-12/schema",
            "type": "object",
            "$defs": {"address": {"$anchor": "addressDef", "type": "object", "properties": {
                "street": {"type": "string"}, "city": {"type": "string"}}}},
            "properties": {
                "name": {"type": "string"},
                "address": {"$ref": "#/$defs/address"},
                "contactMethod": {"type": "string", "enum": ["phone", "email"]},
                "phone": {"type": "string"},
                "email": {"type": "string"},
            },
            "allOf": [{"anyOf": [{"required": ["phone"]}, {"required": ["email"]}]}],
            "if": {"properties": {"contactMethod": {"const": "phone"}}, "required": ["contactMethod"]},
            "then": {"required": ["phone"]},
            "else": {"required": ["email"]},
            "additionalProperties": false,
        }),
        _ => json!({"type": "object", "properties": {}}),
    }
}

fn text(text: &str) -> Value {
    json!({"type": "text", "text": text})
}

fn text_content(phrase: &str) -> Value {
    json!({"content": [text(phrase)]})
}

/// A library type from the JSON that stands in the protocol's own pages.
fn typed<T: DeserializeOwned>(value: &Value) -> T {
    serde_json::from_str(&value.to_string()).unwrap()
}

/// A complete result; the library drops the mark for older peers.
fn complete<T: DeserializeOwned>(value: &Value) -> T {
    let mut value = value.clone();
    value["resultType"] = json!("complete");
    typed(&value)
}

type Context = RequestContext<RoleServer>;

/// The suite's server.
#[derive(Clone)]
pub(crate) struct Fixtures {
    /// Changes: true of the tools, false of the prompts.
    changes: broadcast::Sender<bool>,
}

impl Default for Fixtures {
    fn default() -> Self {
        Self {
            changes: broadcast::Sender::new(8),
        }
    }
}

impl Fixtures {
    async fn lively(
        &self,
        name: &str,
        arguments: &Map<String, Value>,
        context: &Context,
    ) -> Result<Value, ErrorData> {
        match name {
            "test_tool_with_logging" => log(context).await,
            // By the newest revision a request says whether it wants to be told.
            "test_logging_tool"
                if context
                    .meta
                    .get("io.modelcontextprotocol/logLevel")
                    .is_some() =>
            {
                log(context).await;
            }
            "test_trigger_tool_change" => drop(self.changes.send(true)),
            "test_trigger_prompt_change" => drop(self.changes.send(false)),
            "test_tool_with_progress" => progress(context).await,
            "test_sampling" => {
                let message = json!({"role": "user", "content": text(&word(arguments, "prompt"))});
                let params = json!({"messages": [message], "maxTokens": 100});
                let answer = ask(context, "sampling/createMessage", params).await?;
                return Ok(text_content(&format!(
                    "LLM response: {}",
                    answer["content"]["text"].as_str().unwrap_or_default()
                )));
            }
            "test_elicitation" => {
                let fields = json!({
                    "username": {"type": "string", "description": "User's response"},
                    "email": {"type": "string", "description": "User's email address"},
                });
                let answer = elicit(
                    context,
                    &word(arguments, "message"),
                    fields,
                    &["username", "email"],
                )
                .await?;
                return Ok(text_content(&format!("User response: {answer}")));
            }
            "test_elicitation_sep1034_defaults" => {
                let answer = elicit(context, "defaults", asks::defaults(), &[]).await?;
                return Ok(text_content(&format!("Elicitation completed: {answer}")));
            }
            "test_elicitation_sep1330_enums" => {
                let answer = elicit(context, "choices", asks::choices(), &[]).await?;
                return Ok(text_content(&format!("Elicitation completed: {answer}")));
            }
            "test_missing_capability" => return Err(needs_sampling(context)),
            "test_logging_tool" | "test_reconnection" | "test_x_mcp_header" => {}
            "test_streaming_elicitation" => progress(context).await,
            _ => {
                return Ok(
                    json!({"isError": true, "content": [text(&format!("there is no tool {name}"))]}),
                );
            }
        }
        Ok(text_content("done"))
    }
}

fn needs_sampling(context: &Context) -> ErrorData {
    match context.client_capabilities().and_then(|all| all.sampling) {
        Some(_) => ErrorData::invalid_request("this client can do it", None),
        None => ErrorData::missing_required_client_capability(
            ClientCapabilities::builder().enable_sampling().build(),
        ),
    }
}

fn word(arguments: &Map<String, Value>, key: &str) -> String {
    arguments
        .get(key)
        .and_then(Value::as_str)
        .unwrap_or_default()
        .to_owned()
}

async fn wait() {
    let _ = tokio::time::timeout(STEP, std::future::pending::<()>()).await;
}

async fn log(context: &Context) {
    for text in [
        "Tool execution started",
        "Tool processing data",
        "Tool execution completed",
    ] {
        let notice: LoggingMessageNotificationParam =
            typed(&json!({"level": "info", "data": text}));
        let _ = context.peer.notify_logging_message(notice).await;
        wait().await;
    }
}

async fn progress(context: &Context) {
    for done in [0.0, 50.0, 100.0] {
        if let Some(token) = context.meta.get_progress_token() {
            let notice = ProgressNotificationParam::new(token, done).with_total(100.0);
            let _ = context.peer.notify_progress(notice).await;
        }
        wait().await;
    }
}

async fn ask(context: &Context, method: &str, params: Value) -> Result<Value, ErrorData> {
    let request: ServerRequest = typed(&json!({"method": method, "params": params}));
    let answer = context.peer.send_request(request).await;
    let answer = answer.map_err(|error| ErrorData::invalid_request(error.to_string(), None))?;
    Ok(serde_json::to_value(answer).unwrap())
}

async fn elicit(
    context: &Context,
    message: &str,
    fields: Value,
    required: &[&str],
) -> Result<String, ErrorData> {
    let schema = json!({"type": "object", "properties": fields, "required": required});
    let answer = ask(
        context,
        "elicitation/create",
        json!({"message": message, "requestedSchema": schema}),
    )
    .await?;
    let action = answer["action"].as_str().unwrap_or_default();
    Ok(format!("action={action}, content={}", answer["content"]))
}

fn prompts() -> Value {
    let argument = |name| json!({"name": name, "description": name, "required": true});
    let prompt =
        |name, arguments: Value| json!({"name": name, "description": name, "arguments": arguments});
    json!([
        prompt("test_simple_prompt", json!([])),
        prompt(
            "test_prompt_with_arguments",
            json!([argument("arg1"), argument("arg2")])
        ),
        prompt(
            "test_prompt_with_embedded_resource",
            json!([argument("resourceUri")])
        ),
        prompt("test_prompt_with_image", json!([])),
        prompt("test_input_required_result_prompt", json!([])),
    ])
}

fn messages(name: &str, arguments: &Map<String, Value>) -> Option<Value> {
    let contents = match name {
        "test_simple_prompt" => vec![text("This is a simple prompt for testing.")],
        "test_prompt_with_arguments" => {
            let (one, two) = (word(arguments, "arg1"), word(arguments, "arg2"));
            vec![text(&format!(
                "Prompt with arguments: arg1='{one}', arg2='{two}'"
            ))]
        }
        "test_prompt_with_embedded_resource" => {
            let resource = json!({
                "uri": word(arguments, "resourceUri"),
                "mimeType": "text/plain",
                "text": "Embedded resource content for testing.",
            });
            vec![
                json!({"type": "resource", "resource": resource}),
                text("Please process the embedded resource above."),
            ]
        }
        "test_prompt_with_image" => {
            let image = json!({"type": "image", "data": PNG, "mimeType": "image/png"});
            vec![image, text("Please analyze the image above.")]
        }
        "test_input_required_result_prompt" => vec![text("the context was given")],
        _ => return None,
    };
    let messages: Vec<Value> = contents
        .into_iter()
        .map(|content| json!({"role": "user", "content": content}))
        .collect();
    Some(json!({"messages": messages}))
}

fn contents(uri: &str) -> Option<Value> {
    let text = |mime, text: String| json!({"uri": uri, "mimeType": mime, "text": text});
    match uri {
        "test://static-text" => Some(text(
            "text/plain",
            "This is the content of the static text resource.".to_owned(),
        )),
        "test://static-binary" => Some(json!({"uri": uri, "mimeType": "image/png", "blob": PNG})),
        "test://watched-resource" => Some(text("text/plain", "watched".to_owned())),
        _ => {
            let id = uri
                .strip_prefix("test://template/")?
                .strip_suffix("/data")?;
            let data =
                json!({"id": id, "templateTest": true, "data": format!("Data for ID: {id}")});
            Some(text("application/json", data.to_string()))
        }
    }
}

impl ServerHandler for Fixtures {
    fn get_info(&self) -> ServerConfig {
        let all = ServerCapabilities::builder()
            .enable_tools()
            .enable_tool_list_changed()
            .enable_prompts()
            .enable_prompts_list_changed()
            .enable_resources()
            .enable_resources_subscribe()
            .enable_logging()
            .enable_completions()
            .build();
        ServerConfig::new(all).with_server_info(Implementation::new("fixtures", "1"))
    }

    async fn on_custom_request(
        &self,
        request: CustomRequest,
        _context: Context,
    ) -> Result<CustomResult, ErrorData> {
        Err(unsupported_request(&request))
    }

    fn get_tool(&self, name: &str) -> Option<rmcp::model::Tool> {
        let found = tools().into_iter().find(|tool| tool["name"] == name)?;
        Some(typed(&found))
    }

    async fn list_tools(
        &self,
        _: Option<PaginatedRequestParams>,
        _: Context,
    ) -> Result<ListToolsResult, ErrorData> {
        Ok(complete(&json!({"tools": tools()})))
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: Context,
    ) -> Result<CallToolResponse, ErrorData> {
        let name = request.name.as_ref();
        if asks::TOOLS.contains(&name) {
            return match asks::answer(name, &request, context.client_capabilities().as_ref())? {
                Ok(words) => Ok(complete::<CallToolResult>(&text_content(&words)).into()),
                Err(round) => Ok(typed::<InputRequiredResult>(&round).into()),
            };
        }
        let result = match fixed(name) {
            Some(result) => result,
            None => {
                self.lively(name, &request.arguments.unwrap_or_default(), &context)
                    .await?
            }
        };
        Ok(complete::<CallToolResult>(&result).into())
    }

    async fn list_prompts(
        &self,
        _: Option<PaginatedRequestParams>,
        _: Context,
    ) -> Result<ListPromptsResult, ErrorData> {
        Ok(complete(&json!({"prompts": prompts()})))
    }

    async fn get_prompt(
        &self,
        request: GetPromptRequestParams,
        _: Context,
    ) -> Result<GetPromptResponse, ErrorData> {
        if request.name == "test_input_required_result_prompt" && request.input_responses.is_none()
        {
            return Ok(typed::<InputRequiredResult>(&asks::for_prompt()).into());
        }
        let filled = messages(&request.name, &request.arguments.unwrap_or_default());
        let filled = filled.ok_or_else(|| {
            ErrorData::invalid_params(format!("there is no prompt {}", request.name), None)
        })?;
        Ok(complete::<GetPromptResult>(&filled).into())
    }

    async fn list_resources(
        &self,
        _: Option<PaginatedRequestParams>,
        _: Context,
    ) -> Result<ListResourcesResult, ErrorData> {
        let card =
            |uri, mime| json!({"uri": uri, "name": uri, "description": uri, "mimeType": mime});
        Ok(complete(&json!({"resources": [
            card("test://static-text", "text/plain"),
            card("test://static-binary", "image/png"),
            card("test://watched-resource", "text/plain"),
        ]})))
    }

    async fn list_resource_templates(
        &self,
        _: Option<PaginatedRequestParams>,
        _: Context,
    ) -> Result<ListResourceTemplatesResult, ErrorData> {
        let template = json!({"uriTemplate": "test://template/{id}/data", "name": "data", "description": "data", "mimeType": "application/json"});
        Ok(complete(&json!({"resourceTemplates": [template]})))
    }

    async fn read_resource(
        &self,
        request: ReadResourceRequestParams,
        _: Context,
    ) -> Result<ReadResourceResponse, ErrorData> {
        let uri = request.uri;
        let none = || ErrorData::invalid_params("Resource not found", Some(json!({"uri": uri})));
        let contents = contents(&uri).ok_or_else(none)?;
        Ok(complete::<ReadResourceResult>(&json!({"contents": [contents]})).into())
    }

    async fn subscribe(&self, _: SubscribeRequestParams, _: Context) -> Result<(), ErrorData> {
        Ok(())
    }

    async fn unsubscribe(&self, _: UnsubscribeRequestParams, _: Context) -> Result<(), ErrorData> {
        Ok(())
    }

    async fn set_level(&self, _: SetLevelRequestParams, _: Context) -> Result<(), ErrorData> {
        Ok(())
    }

    async fn complete(
        &self,
        _: CompleteRequestParams,
        _: Context,
    ) -> Result<CompleteResult, ErrorData> {
        let values = ["paris", "park", "party"].map(str::to_owned).to_vec();
        Ok(CompleteResult::new(
            CompletionInfo::with_all_values(values).unwrap(),
        ))
    }

    async fn listen(&self, subscription: SubscriptionContext) -> Result<(), ErrorData> {
        let mut changes = self.changes.subscribe();
        loop {
            let change = tokio::select! {
                () = subscription.cancelled() => return Ok(()),
                change = changes.recv() => change,
            };
            let _ = match change {
                Ok(true) => subscription.sink().notify_tool_list_changed().await,
                Ok(false) => subscription.sink().notify_prompt_list_changed().await,
                Err(_) => return Ok(()),
            };
        }
    }

    fn accepted_subscription_filter(
        &self,
        requested: &SubscriptionFilter,
    ) -> Option<SubscriptionFilter> {
        Some(requested.clone())
    }
}
