//! The toolset `exam` of a serving node: its helpers, over the node's own record of exams.

use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context;
use futures::future::BoxFuture;
use serde_json::{Map, Value};

use super::cards;
use super::certificate;
use super::endpoint::Http;
use crate::{AddressOf, Asker, Bench, ExamError, Helper, Limits, Settings};
use args::Profile;
use catalogue::Here;
use config::{ExamEntry, Forgiveness, NodeFile};
use tools::{Helped, Helpers};

/// The helpers of a node.
pub(super) struct Helping {
    bench: Arc<Bench>,
    profile: Profile,
}

impl Helping {
    /// # Errors
    /// The address of the model to ask holds a key.
    pub(super) fn at(state: &Path, file: &NodeFile) -> anyhow::Result<Self> {
        let store = state.join(certificate::STORE);
        let bench = Bench::new(store, limits(&file.exam), asker(&file.exam)?);
        Ok(Self {
            bench: Arc::new(bench),
            profile: match file.forgiveness() {
                Forgiveness::Lenient => Profile::Lenient,
                Forgiveness::Guarded => Profile::Guarded,
            },
        })
    }
}

/// Returns the limits from the node file, or else the defaults.
fn limits(entry: &ExamEntry) -> HashMap<Helper, Limits> {
    let seconds = |value: u32| Duration::from_secs(value.into());
    let each = entry.helpers().into_iter().filter_map(|(name, said)| {
        let helper = Helper::named(name)?;
        let shipped = Limits::shipped(helper);
        let limits = Limits {
            time_limit: said.time_limit_s.map_or(shipped.time_limit, seconds),
            retries: said.retries.unwrap_or(shipped.retries),
            cache: said.cache_s.map_or(shipped.cache, seconds),
        };
        Some((helper, limits))
    });
    each.collect()
}

fn asker(entry: &ExamEntry) -> anyhow::Result<Option<Asker>> {
    let asker = entry
        .model_url
        .as_deref()
        .map(|url| to_ask(url, entry.model.as_deref()));
    asker.transpose().context("exam.model_url")
}

/// A model that helps: asked once, coolly, and not examined.
///
/// # Errors
/// The address holds a key.
pub(super) fn to_ask(url: &str, model: Option<&str>) -> Result<Asker, ExamError> {
    AddressOf::Endpoint.check(url)?;
    let endpoint = Http::at(url);
    let settings = Settings {
        retries: 1,
        ..Settings::new(endpoint.base(), model.unwrap_or("default"))
    };
    Ok(Asker {
        endpoint: Box::new(endpoint),
        settings,
    })
}

impl Helpers for Helping {
    fn help(
        &self,
        helper: &str,
        given: Map<String, Value>,
        here: Here,
    ) -> BoxFuture<'static, Helped> {
        let (bench, helper) = (Arc::clone(&self.bench), Helper::named(helper));
        let tools = Arc::new(cards(&here, self.profile));
        Box::pin(async move {
            let Some(helper) = helper else {
                return Helped {
                    is_failed: true,
                    message: "there is no such helper".to_owned(),
                    fields: Map::new(),
                };
            };
            let helped = bench.help(helper, &given, &tools).await;
            Helped {
                is_failed: helped.is_failed,
                message: helped.message,
                fields: helped.fields,
            }
        })
    }
}
