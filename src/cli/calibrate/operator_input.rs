//! The person at the terminal: one reader of standard input, because who reads a line takes it from everybody else.

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
    /// Listens from now on, to the end of the process.
    pub(super) fn listen() -> anyhow::Result<Self> {
        let (tell, lines) = mpsc::channel(1);
        std::thread::spawn(move || {
            for line in std::io::stdin().lock().lines() {
                let Ok(line) = line else { break };
                if tell.blocking_send(line).is_err() {
                    break;
                }
            }
        });
        let interrupt = SignalListener::listen(SignalKind::Interrupt)?;
        Ok(Self { lines, interrupt })
    }

    /// The next thing that comes. It can be cancelled: no line is lost.
    pub(super) async fn next_input(&mut self) -> OperatorAnswer {
        tokio::select! {
            _ = self.interrupt.recv() => OperatorAnswer::Interrupt,
            line = self.lines.recv() => line.map_or(OperatorAnswer::End, OperatorAnswer::Line),
        }
    }

    /// Asks, and accepts only `yes` as consent. Reports an error if there is no terminal to ask at. An interrupt is a no.
    pub(super) async fn confirm(&mut self, question: &str, yes: bool) -> anyhow::Result<bool> {
        if yes {
            return Ok(true);
        }
        if !std::io::stdin().is_terminal() {
            bail!("there is no terminal to ask at: say --yes");
        }
        terminal_output::note(&format!("{question} Write `yes` to go on:"));
        let said = self.next_input().await;
        Ok(matches!(said, OperatorAnswer::Line(line) if line.trim() == "yes"))
    }
}
