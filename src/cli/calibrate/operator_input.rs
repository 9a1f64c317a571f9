//! Input from the person at the terminal: a single reader of standard input, because every reader takes lines from the others.

use std::io::{BufRead, IsTerminal};

use anyhow::bail;
use base::signals::{SignalKind, SignalListener};
use tokio::sync::mpsc;

use crate::terminal_output;

/// Input of the operator: answers and interrupts.
pub(super) struct OperatorInput {
    lines: mpsc::Receiver<String>,
    interrupt: SignalListener,
}

/// Input that came from the operator.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum OperatorAnswer {
    /// A line, without its end.
    Line(String),
    /// There is no more input.
    End,
    /// Ctrl-C.
    Interrupt,
}

impl OperatorInput {
    /// Listens until the end of the process.
    pub(super) fn listen() -> anyhow::Result<Self> {
        let (sender, lines) = mpsc::channel(1);
        std::thread::spawn(move || {
            for line in std::io::stdin().lock().lines() {
                let Ok(line) = line else { break };
                if sender.blocking_send(line).is_err() {
                    break;
                }
            }
        });
        let interrupt = SignalListener::listen(SignalKind::Interrupt)?;
        Ok(Self { lines, interrupt })
    }

    /// Returns the next input. Cancel safe: no line is lost.
    pub(super) async fn next_input(&mut self) -> OperatorAnswer {
        tokio::select! {
            _ = self.interrupt.recv() => OperatorAnswer::Interrupt,
            line = self.lines.recv() => line.map_or(OperatorAnswer::End, OperatorAnswer::Line),
        }
    }

    /// Asks, and accepts only `yes` as consent; an interrupt means no. Fails if there is no terminal to ask at.
    pub(super) async fn confirm(&mut self, question: &str, yes: bool) -> anyhow::Result<bool> {
        if yes {
            return Ok(true);
        }
        if !std::io::stdin().is_terminal() {
            bail!("there is no terminal to ask at: say --yes");
        }
        terminal_output::note(&format!("{question} Write `yes` to go on:"));
        let answer = self.next_input().await;
        Ok(matches!(answer, OperatorAnswer::Line(line) if line.trim() == "yes"))
    }
}
