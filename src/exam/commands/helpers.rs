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
use super::endpoint::HttpModelEndpoint;
use crate::{
    AddressKind, ExamError, ExamHelper, HelperLimits, HelperService, ModelClient, PlannerSettings,
};
use args::ForgivenessProfile;
use catalogue::KnownNames;
use config::{ExamEntry, NodeFile};
use tools::{ExamHelperService, HelperToolResult};

/// The helpers of a node.
pub(super) struct NodeHelpers {
    service: Arc<HelperService>,
    profile: ForgivenessProfile,
}

impl NodeHelpers {
    /// # Errors
    /// Fails if the address of the model contains a key.
    pub(super) fn at(state: &Path, file: &NodeFile) -> anyhow::Result<Self> {
        let store = state.join(certificate::STORE);
        let service = HelperService::new(store, limits(&file.exam), model_client(&file.exam)?);
        Ok(Self {
            service: Arc::new(service),
            profile: tools::forgiveness(file),
        })
    }
}

/// Returns the limits from the node file, or else the defaults.
fn limits(entry: &ExamEntry) -> HashMap<ExamHelper, HelperLimits> {
    let seconds = |value: u32| Duration::from_secs(value.into());
    let each = entry.helpers().into_iter().filter_map(|(name, entry)| {
        let helper = ExamHelper::named(name)?;
        let shipped = HelperLimits::shipped(helper);
        let limits = HelperLimits {
            time_limit: entry.time_limit_s.map_or(shipped.time_limit, seconds),
            retries: entry.retries.unwrap_or(shipped.retries),
            cache: entry.cache_s.map_or(shipped.cache, seconds),
        };
        Some((helper, limits))
    });
    each.collect()
}

fn model_client(entry: &ExamEntry) -> anyhow::Result<Option<ModelClient>> {
    let client = entry
        .model_url
        .as_deref()
        .map(|url| model_client_at(url, entry.model.as_deref()));
    client.transpose().context("exam.model_url")
}

/// Creates the client of a helping model, which is asked with few retries and not examined.
///
/// # Errors
/// Fails if the address contains a key.
pub(super) fn model_client_at(url: &str, model: Option<&str>) -> Result<ModelClient, ExamError> {
    AddressKind::Endpoint.check(url)?;
    let endpoint = HttpModelEndpoint::at(url);
    let settings = PlannerSettings {
        retries: 1,
        ..PlannerSettings::new(endpoint.base(), model.unwrap_or("default"))
    };
    Ok(ModelClient {
        endpoint: Box::new(endpoint),
        settings,
    })
}

impl ExamHelperService for NodeHelpers {
    fn help(
        &self,
        helper: &str,
        arguments: Map<String, Value>,
        here: KnownNames,
    ) -> BoxFuture<'static, HelperToolResult> {
        let (service, helper) = (Arc::clone(&self.service), ExamHelper::named(helper));
        let tools = Arc::new(cards(&here, self.profile));
        Box::pin(async move {
            match helper {
                Some(helper) => service.help(helper, &arguments, &tools).await,
                None => HelperToolResult::failed("there is no such helper"),
            }
        })
    }
}
