//! The way to an OpenAI-compatible endpoint. The key is known here and nowhere else.

use futures::future::BoxFuture;
use serde_json::Value;

use crate::exam::{Endpoint, Response};
use crate::mcp::http_client;

/// Where the key comes from: never the command line, which other users can see, and never a file of ours.
const KEY: &str = "STEADYHAND_API_KEY";

/// What stands in place of a key in anything that is told.
const HIDDEN: &str = "(key)";

/// An endpoint by its address.
pub(super) struct Http {
    base: String,
    key: Option<String>,
}

impl Http {
    /// `base` ends at `/v1`, with or without a stroke behind it.
    pub(super) fn at(base: &str) -> Self {
        let base = base
            .trim_end_matches('/')
            .trim_end_matches("/chat/completions");
        Self {
            base: base.to_owned(),
            key: std::env::var(KEY).ok().filter(|key| !key.trim().is_empty()),
        }
    }

    pub(super) fn base(&self) -> &str {
        &self.base
    }

    /// The model that the endpoint names first.
    pub(super) async fn first_model(&self) -> Option<String> {
        let url = format!("{}/models", self.base);
        let (status, body) = http_client::json(&url, self.key.clone(), None).await.ok()?;
        let list: Value = serde_json::from_str(&body).ok().filter(|_| status == 200)?;
        let id = list.get("data")?.get(0)?.get("id")?.as_str()?;
        Some(self.without_key(id))
    }

    fn without_key(&self, text: &str) -> String {
        match &self.key {
            Some(key) => text.replace(key.as_str(), HIDDEN),
            None => text.to_owned(),
        }
    }
}

impl Endpoint for Http {
    fn ask(&self, body: Value) -> BoxFuture<'_, Result<Response, String>> {
        Box::pin(async move {
            let url = format!("{}/chat/completions", self.base);
            let body = body.to_string().into_bytes();
            match http_client::json(&url, self.key.clone(), Some(body)).await {
                Ok((status, body)) => Ok(Response {
                    status,
                    body: self.without_key(&body),
                }),
                Err(error) => Err(self.without_key(&error.to_string())),
            }
        })
    }
}
