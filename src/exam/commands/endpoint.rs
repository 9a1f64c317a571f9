//! Connection to an OpenAI-compatible endpoint. Only this module knows the key.

use anyhow::{anyhow, bail};
use futures::future::BoxFuture;
use serde_json::{Value, json};

use crate::{AnswerError, EndpointResponse, ModelEndpoint};
use base::wording::cut;
use mcp::http_client;

use node::remote_tools::EXAM_KEY_VARIABLE;

/// Replacement for a key in all output.
const HIDDEN: &str = "(key)";

/// Longest part of an endpoint's error message that is shown.
const SHOWN_CHARS_MAX: usize = 300;

/// An endpoint by its address.
pub(super) struct HttpModelEndpoint {
    base: String,
    key: Option<String>,
}

impl HttpModelEndpoint {
    /// Creates an endpoint. `base` ends at `/v1`, with or without a trailing slash.
    pub(super) fn at(base: &str) -> Self {
        let base = base
            .trim_end_matches('/')
            .trim_end_matches("/chat/completions");
        Self {
            base: base.to_owned(),
            key: std::env::var(EXAM_KEY_VARIABLE)
                .ok()
                .filter(|key| !key.trim().is_empty()),
        }
    }

    pub(super) fn base(&self) -> &str {
        &self.base
    }

    /// Returns the model that the endpoint lists first.
    pub(super) async fn first_model(&self) -> Option<String> {
        let url = format!("{}/models", self.base);
        let (status, body) = http_client::json(&url, self.key.clone(), None).await.ok()?;
        let list: Value = serde_json::from_str(&body).ok().filter(|_| status == 200)?;
        let id = list.get("data")?.get(0)?.get("id")?.as_str()?;
        Some(self.without_key(id))
    }

    /// Returns an embedding model's vectors for texts, in their order.
    pub(super) async fn vectors(
        &self,
        model: &str,
        texts: &[&str],
    ) -> anyhow::Result<Vec<Vec<f64>>> {
        let body = json!({"model": model, "input": texts});
        let answer = self.post("embeddings", &body).await;
        let EndpointResponse { status, body } = answer.map_err(|error| anyhow!(error))?;
        let shown_body = || cut(&self.without_key(&body), SHOWN_CHARS_MAX);
        let value: Value = serde_json::from_str(&body).unwrap_or_default();
        let list = value.get("data").and_then(Value::as_array);
        let Some(list) = list.filter(|_| status == 200) else {
            bail!("it answered {status}: {}", shown_body());
        };
        let mut list: Vec<&Value> = list.iter().collect();
        list.sort_by_key(|one| one.get("index").and_then(Value::as_u64));
        let vector = |one: &Value| {
            let parts = one.get("embedding")?.as_array()?.iter();
            parts.map(Value::as_f64).collect()
        };
        let vectors: Option<Vec<Vec<f64>>> = list.into_iter().map(vector).collect();
        vectors.ok_or_else(|| anyhow!("its vectors are not lists of numbers: {}", shown_body()))
    }

    /// Posts a body. An error contains no key; a response is returned unchanged.
    async fn post(&self, path: &str, body: &Value) -> Result<EndpointResponse, String> {
        let url = format!("{}/{path}", self.base);
        let body = body.to_string().into_bytes();
        match http_client::json(&url, self.key.clone(), Some(body)).await {
            Ok((status, body)) => Ok(EndpointResponse { status, body }),
            Err(error) => Err(self.without_key(&error.to_string())),
        }
    }

    fn without_key(&self, text: &str) -> String {
        match &self.key {
            Some(key) => text.replace(key.as_str(), HIDDEN),
            None => text.to_owned(),
        }
    }
}

impl ModelEndpoint for HttpModelEndpoint {
    fn ask(&self, body: Value) -> BoxFuture<'_, Result<EndpointResponse, AnswerError>> {
        Box::pin(async move {
            let answer = self.post("chat/completions", &body).await;
            let EndpointResponse { status, body } = answer.map_err(AnswerError::Unreachable)?;
            let body = self.without_key(&body);
            Ok(EndpointResponse { status, body })
        })
    }
}
