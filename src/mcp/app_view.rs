//! The protocol's extension MCP Apps: recognises clients that announce it, and offers the view to them alone.
//!
//! Every other client gets byte for byte the same answers as if there were no view.

use rmcp::model::{
    ClientCapabilities, ExtensionCapabilities, MetaObject, Resource, ResourceContents,
    ServerCapabilities, Tool,
};
use serde_json::{Map, Value, json};

use super::service_trait::AppView;

/// The extension's name, in the capabilities of both sides.
const EXTENSION: &str = "io.modelcontextprotocol/ui";

/// The media type of a view, exactly as hosts compare it.
const VIEW_MIME: &str = "text/html;profile=mcp-app";

/// Returns whether a client shows views: it announces the extension, and this media type if it lists any.
pub(super) fn is_announced(capabilities: Option<&ClientCapabilities>) -> bool {
    let settings = capabilities
        .and_then(|capabilities| capabilities.extensions.as_ref())
        .and_then(|extensions| extensions.get(EXTENSION));
    settings.is_some_and(|settings| {
        let listed = settings.get("mimeTypes").and_then(Value::as_array);
        listed.is_none_or(|mimes| mimes.iter().any(|mime| mime == VIEW_MIME))
    })
}

/// Adds the extension to what the server declares.
pub(super) fn declare(capabilities: &mut ServerCapabilities) {
    let extensions = capabilities
        .extensions
        .get_or_insert_with(ExtensionCapabilities::new);
    extensions.insert(EXTENSION.to_owned(), Map::new());
}

/// Names the view in a tool whose results it shows: under the key of the specification, and under the flat key that some hosts
/// read instead.
pub(super) fn tool(mut tool: Tool, view: &AppView) -> Tool {
    if view.tools.iter().any(|name| *name == tool.name) {
        let mut meta = Map::new();
        meta.insert("ui".to_owned(), json!({"resourceUri": view.uri}));
        meta.insert("ui/resourceUri".to_owned(), view.uri.as_str().into());
        tool.meta = Some(MetaObject(meta));
    }
    tool
}

/// Returns the view's entry in the list of resources.
pub(super) fn resource(view: &AppView) -> Resource {
    Resource::new(&view.uri, &view.name)
        .with_title(&view.title)
        .with_description(&view.description)
        .with_mime_type(VIEW_MIME)
}

/// Returns the view itself, which needs no network access and no permission.
pub(super) fn contents(view: AppView) -> ResourceContents {
    let nowhere: [&str; 0] = [];
    let csp = json!({
        "connectDomains": nowhere, "resourceDomains": nowhere,
        "frameDomains": nowhere, "baseUriDomains": nowhere,
    });
    let mut meta = Map::new();
    meta.insert("ui".to_owned(), json!({"csp": csp, "prefersBorder": true}));
    ResourceContents::text(view.html, view.uri)
        .with_mime_type(VIEW_MIME)
        .with_meta(MetaObject(meta))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn capabilities(settings: Value) -> ClientCapabilities {
        let mut extensions = ExtensionCapabilities::new();
        if let Value::Object(settings) = settings {
            extensions.insert(EXTENSION.to_owned(), settings);
        }
        ClientCapabilities::builder()
            .enable_extensions_with(extensions)
            .build()
    }

    #[test]
    fn a_client_announces_views_by_name_and_media_type() {
        for (settings, announced) in [
            (json!({"mimeTypes": [VIEW_MIME]}), true),
            (json!({"mimeTypes": ["text/plain", VIEW_MIME]}), true),
            (json!({}), true),
            (json!({"mimeTypes": ["text/html"]}), false),
            (json!({"mimeTypes": []}), false),
            (Value::Null, false),
        ] {
            let client = capabilities(settings.clone());
            assert_eq!(is_announced(Some(&client)), announced, "{settings}");
        }
        assert!(!is_announced(None));
        assert!(!is_announced(Some(&ClientCapabilities::default())));
    }
}
