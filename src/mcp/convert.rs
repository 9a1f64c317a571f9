//! Converts a service's plain data into the protocol library's types.

use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use rmcp::ErrorData;
use rmcp::model::{
    CallToolResult, ContentBlock, GetPromptResult, Implementation, Prompt, PromptArgument,
    PromptMessage, Reference, Resource, ResourceContents, ResourceTemplate, Role,
    ServerCapabilities, ServerConfig, Tool, ToolAnnotations,
};
use serde_json::{Value, json};

use call::{ToolAnswer, ToolHints};

use super::service_trait::{
    McpService, PromptCard, PromptText, ResourceBody, ResourceCard, ResourceText,
    ServiceCapabilities, TemplateCard, ToolCard, UnknownNameError,
};

/// Returns the server's description of itself.
pub(super) fn introduction(service: &dyn McpService) -> ServerConfig {
    let server = Implementation::new("steadyhand", env!("CARGO_PKG_VERSION"))
        .with_title("Steadyhand")
        .with_description("a robot arm that draws");
    let config = ServerConfig::new(capabilities(service.offers())).with_server_info(server);
    match service.instructions() {
        none if none.is_empty() => config,
        instructions => config.with_instructions(instructions),
    }
}

fn capabilities(offered: ServiceCapabilities) -> ServerCapabilities {
    let changed = offered.changes.then_some(true);
    let mut all = ServerCapabilities::builder()
        .enable_tools()
        .enable_prompts()
        .enable_resources()
        .enable_completions()
        .build();
    if let Some(tools) = &mut all.tools {
        tools.list_changed = changed;
    }
    if let Some(prompts) = &mut all.prompts {
        prompts.list_changed = changed;
    }
    if let Some(resources) = &mut all.resources {
        resources.list_changed = changed;
    }
    all.prompts = all.prompts.filter(|_| offered.prompts);
    all.resources = all.resources.filter(|_| offered.resources);
    all.completions = all.completions.filter(|_| offered.completion);
    all
}

pub(super) fn tool(card: ToolCard) -> Tool {
    let mut tool = Tool::new(card.name, card.description, Arc::new(card.input_schema));
    tool.title = card.title;
    tool.output_schema = card.output_schema.map(Arc::new);
    tool.with_annotations(annotations(card.hints))
}

fn annotations(hints: ToolHints) -> ToolAnnotations {
    ToolAnnotations::new()
        .read_only(hints.read_only)
        .destructive(hints.destructive)
        .idempotent(hints.idempotent)
        .open_world(hints.open_world)
}

pub(super) fn result(answer: ToolAnswer) -> CallToolResult {
    let mut content = vec![ContentBlock::text(answer.whole_text())];
    let pictures = answer.images.into_iter();
    content.extend(pictures.map(|(mime, bytes)| ContentBlock::image(STANDARD.encode(bytes), mime)));
    let mut result = if answer.is_error {
        CallToolResult::error(content)
    } else {
        CallToolResult::success(content)
    };
    result.structured_content = Some(Value::Object(answer.structured));
    result
}

pub(super) fn resource(card: ResourceCard) -> Resource {
    Resource::new(card.uri, card.name)
        .with_description(card.description)
        .with_mime_type(card.mime)
}

pub(super) fn template(card: TemplateCard) -> ResourceTemplate {
    ResourceTemplate::new(card.uri_template, card.name)
        .with_description(card.description)
        .with_mime_type(card.mime)
}

pub(super) fn contents(uri: String, read: ResourceText) -> ResourceContents {
    let contents = match read.body {
        ResourceBody::Text(text) => ResourceContents::text(text, uri),
        ResourceBody::Bytes(bytes) => ResourceContents::blob(STANDARD.encode(bytes), uri),
    };
    contents.with_mime_type(read.mime)
}

pub(super) fn prompt(card: PromptCard) -> Prompt {
    let parameters = card.parameters.into_iter().map(|parameter| {
        PromptArgument::new(parameter.name)
            .with_description(parameter.description)
            .with_required(parameter.required)
    });
    let parameters = Some(parameters.collect());
    Prompt::new(card.name, Some(card.description), parameters).with_title(card.title)
}

pub(super) fn prompt_text(filled: PromptText) -> GetPromptResult {
    let message = PromptMessage::new_text(Role::User, filled.text);
    GetPromptResult::new(vec![message]).with_description(filled.description)
}

pub(super) fn completed(reference: &Reference) -> String {
    match reference {
        Reference::Prompt(prompt) => prompt.name.clone(),
        Reference::Resource(resource) => resource.uri.clone(),
        _ => String::new(),
    }
}

pub(super) fn no_resource(unknown: UnknownNameError, uri: &str) -> ErrorData {
    ErrorData::invalid_params(unknown.message, Some(json!({"uri": uri})))
}

pub(super) fn no_prompt(unknown: UnknownNameError) -> ErrorData {
    ErrorData::invalid_params(unknown.message, None)
}
