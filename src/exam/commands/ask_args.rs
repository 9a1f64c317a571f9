//! Settings for asking a planner: from the command line, or else the environment, or else the defaults.

use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context, bail};
use clap::Args;

use super::endpoint::HttpModelEndpoint;
use super::model_file::hash_of;
use crate::PlannerSettings;

/// Default number of times each case is asked.
const SAMPLES: u32 = 3;

#[derive(Debug, Args)]
pub(super) struct PlannerAskArgs {
    /// The model's name [default: the first that the endpoint lists]
    #[arg(long)]
    pub(super) model: Option<String>,
    /// Generate further cases of the least known classes until the verdict is certain or this number of answers is spent
    #[arg(long, value_name = "ANSWERS", conflicts_with_all = ["replay", "resume"])]
    budget: Option<u32>,
    /// Number of times each case is asked, 1 to 10 [default: 3]
    #[arg(long, value_name = "K")]
    samples: Option<u32>,
    /// Longest wait for an answer, 1 to 300 s [default: 30]
    #[arg(long, value_name = "SECONDS")]
    time_limit: Option<u32>,
    /// Sampling temperature, 0 to 2 [default: 0.4]
    #[arg(long)]
    temperature: Option<f64>,
    /// Nucleus sampling: total probability of the likeliest tokens to draw from, up to 1 [default: the endpoint's own]
    #[arg(long)]
    top_p: Option<f64>,
    /// Most tokens of one answer, 1 to 32768 [default: 1024]
    #[arg(long, value_name = "TOKENS")]
    max_tokens: Option<u32>,
    /// Further tries after an error, 0 to 10 [default: 3]
    #[arg(long)]
    retries: Option<u32>,
    /// Share of the answers that may be missing before the run fails, 0 to 1 [default: 0.05]
    #[arg(long, value_name = "SHARE")]
    max_failed: Option<f64>,
    /// The seed that is sent with each question, plus the number of the sample [default: 1]
    #[arg(long)]
    seed: Option<u64>,
    /// The model's file, if the endpoint runs it on this machine: its hash goes into the certificate
    #[arg(long, value_name = "FILE", conflicts_with = "replay")]
    model_file: Option<PathBuf>,
}

impl PlannerAskArgs {
    /// Returns the settings of a run of this endpoint.
    pub(super) async fn settings(
        &self,
        endpoint: &HttpModelEndpoint,
    ) -> anyhow::Result<PlannerSettings> {
        let defaults = PlannerSettings::new(endpoint.base(), "default");
        let time_limit_s = setting(self.time_limit, "TIME_LIMIT", defaults.time_limit_s)?;
        let model = match self.model.clone().or_else(|| from_environment("MODEL")) {
            Some(model) => model,
            None => first_model(endpoint, time_limit_s).await?,
        };
        let settings = PlannerSettings {
            model,
            time_limit_s,
            temperature: setting(self.temperature, "TEMPERATURE", defaults.temperature)?,
            top_p: optional_setting(self.top_p, "TOP_P")?,
            max_tokens: setting(self.max_tokens, "MAX_TOKENS", defaults.max_tokens)?,
            retries: setting(self.retries, "RETRIES", defaults.retries)?,
            max_failed: setting(self.max_failed, "MAX_FAILED", defaults.max_failed)?,
            seed: setting(self.seed, "SEED", defaults.seed)?,
            samples: setting(self.samples, "SAMPLES", SAMPLES)?,
            budget: optional_setting(self.budget, "BUDGET")?,
            model_file: self.model_file.as_deref().map(hash_of).transpose()?,
            model_path: self.model_path()?,
            ..defaults
        };
        settings.check()?;
        Ok(settings)
    }

    /// Returns the absolute path of the model's file, valid regardless of where the program is started later.
    fn model_path(&self) -> anyhow::Result<Option<String>> {
        let Some(path) = &self.model_file else {
            return Ok(None);
        };
        let absolute = path.canonicalize();
        let absolute = absolute.with_context(|| format!("there is no file {}", path.display()))?;
        Ok(Some(absolute.display().to_string()))
    }
}

/// Returns the first model that the endpoint lists, or `default` if it lists none.
async fn first_model(endpoint: &HttpModelEndpoint, time_limit_s: u32) -> anyhow::Result<String> {
    let limit = Duration::from_secs(time_limit_s.into());
    match tokio::time::timeout(limit, endpoint.first_model()).await {
        Ok(listed) => Ok(listed.unwrap_or_else(|| "default".to_owned())),
        Err(_) => bail!(
            "the endpoint {} did not list its models within {time_limit_s} s (--time-limit). Next: name one with --model",
            endpoint.base()
        ),
    }
}

/// Returns a setting from the environment.
fn from_environment(name: &str) -> Option<String> {
    let value = std::env::var(format!("STEADYHAND_EXAM_{name}")).ok()?;
    (!value.trim().is_empty()).then(|| value.trim().to_owned())
}

fn setting<T: std::str::FromStr>(on_line: Option<T>, name: &str, defaults: T) -> anyhow::Result<T> {
    Ok(optional_setting(on_line, name)?.unwrap_or(defaults))
}

/// Returns an optional setting from the command line, or else from the environment.
fn optional_setting<T: std::str::FromStr>(
    on_line: Option<T>,
    name: &str,
) -> anyhow::Result<Option<T>> {
    match (on_line, from_environment(name)) {
        (Some(value), _) => Ok(Some(value)),
        (None, None) => Ok(None),
        (None, Some(text)) => match text.parse() {
            Ok(value) => Ok(Some(value)),
            Err(_) => bail!("STEADYHAND_EXAM_{name} is {text:?}, which is not a valid value"),
        },
    }
}
