//! The progress bar on a terminal.

use std::io::IsTerminal;
use std::time::Duration;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use super::terminal_output;
use mcp::CallProgress;
use node::open::SimulationRate;

/// Returns whether a person sees the bar.
pub(super) fn is_shown(json: bool) -> bool {
    !json && std::io::stderr().is_terminal()
}

/// Option of commands that draw on a simulated arm of their own.
#[derive(Clone, Copy, Debug, clap::Args)]
pub(super) struct WatchArgs {
    /// Play a simulated drawing ten times as fast as an arm draws, instead of as fast as possible
    #[arg(long)]
    watch: bool,
}

impl WatchArgs {
    /// Returns how fast simulated time passes in the command's own node.
    pub(super) const fn simulation_rate(self) -> SimulationRate {
        if self.watch {
            SimulationRate::Watched
        } else {
            SimulationRate::Fast
        }
    }
}

/// Returns a bar for the task that `prefix` names.
pub(super) fn begin(prefix: &str, json: bool) -> ProgressBar {
    let target = if is_shown(json) {
        ProgressDrawTarget::stderr()
    } else {
        ProgressDrawTarget::hidden()
    };
    let bar = ProgressBar::with_draw_target(None, target);
    if let Ok(style) = ProgressStyle::with_template("{prefix} {spinner} {msg}") {
        bar.set_style(style);
    }
    bar.set_prefix(terminal_output::harmless(prefix).into_owned());
    bar.enable_steady_tick(Duration::from_millis(100));
    bar
}

/// Shows the progress.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "saturates; for a bar only"
)]
pub(super) fn show(bar: &ProgressBar, progress: &CallProgress) {
    if let Some(total) = progress.total {
        bar.set_length(total.round() as u64);
        if let Ok(style) = ProgressStyle::with_template("{prefix} [{bar:24}] {msg}") {
            bar.set_style(style.progress_chars("=> "));
        }
    }
    bar.set_position(progress.done.round() as u64);
    bar.set_message(terminal_output::harmless(&progress.message).into_owned());
}
