//! The node that the guide starts if none of the node file runs: a separate process, ended with the guide.

use std::path::PathBuf;
use std::process::Stdio;
use std::time::Duration;

use anyhow::{Context, bail};
use tokio::process::{Child, Command};

use crate::{AtArgs, NodeOptions, given_options};
use base::plain_file;
use node::{open, running_nodes, state_folder};

/// Time limit for a node to open its control socket.
const STARTS_WITHIN: Duration = Duration::from_secs(60);
const POLL_INTERVAL: Duration = Duration::from_millis(100);

/// Number of last log lines that are shown when a node ended.
const LAST_LINES: usize = 6;

/// A node that serves while the guide lives.
pub(super) struct ServedNode {
    child: Child,
    log: PathBuf,
}

impl ServedNode {
    /// Starts a node and waits until it takes operators' verbs.
    pub(super) async fn start(options: &NodeOptions) -> anyhow::Result<(Self, AtArgs)> {
        let state = state_folder::folder(options, &open::file(options)?)?;
        let log = state.join("first-line-node.log");
        let log_file = std::fs::File::create(&log)
            .with_context(|| format!("cannot write {}", log.display()))?;
        let mut command = Command::new(std::env::current_exe()?);
        command.args(given_options::arguments(options));
        // It ends with this pipe, however the guide ends.
        command.args(["serve", "--http", "127.0.0.1:0", "--end-with-input"]);
        command.stdin(Stdio::piped()).stdout(Stdio::null());
        // Only the guide handles Ctrl-C at the terminal.
        #[cfg(unix)]
        command.process_group(0);
        let child = command
            .stderr(log_file)
            .spawn()
            .context("the node could not be started")?;
        let mut served = Self { child, log };
        match tokio::time::timeout(STARTS_WITHIN, served.wait_until_ready(options)).await {
            Ok(at) => at.map(|at| (served, at)),
            Err(_) => bail!("the node took too long to start: {}", served.log_tail()),
        }
    }

    async fn wait_until_ready(&mut self, options: &NodeOptions) -> anyhow::Result<AtArgs> {
        loop {
            if self.child.try_wait()?.is_some() {
                bail!("the node ended at once: {}", self.log_tail());
            }
            let config = options.config.as_deref();
            let found = running_nodes::nodes_of(config, options.state.as_deref()).await?;
            if let [one] = found.as_slice() {
                return Ok(AtArgs::at_socket(one.socket.clone()));
            }
            base::task::pause(POLL_INTERVAL).await;
        }
    }

    fn log_tail(&self) -> String {
        let text = plain_file::read_text(&self.log).unwrap_or_default();
        let lines: Vec<&str> = text.lines().collect();
        let from = lines.len().saturating_sub(LAST_LINES);
        let last = lines.get(from..).unwrap_or_default().join("\n");
        format!("{} says:\n{last}", self.log.display())
    }

    /// Ends the node as systemd would: an arm that may be parked is parked. Returns the path of its log, and its exit code
    /// unless a signal ended it.
    pub(super) async fn end(mut self) -> anyhow::Result<(PathBuf, Option<i32>)> {
        // Closes its input first.
        let ended = self.child.wait().await?;
        Ok((self.log, ended.code()))
    }
}
