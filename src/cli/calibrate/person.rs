//! The person at the terminal: one reader of standard input, because who reads a line takes it from everybody else.

use std::io::{BufRead, IsTerminal};

use anyhow::bail;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::mpsc;

use crate::show;

/// Input of the operator: answers and interrupts.
pub(super) struct Person {
    lines: mpsc::Receiver<String>,
    interrupt: Signal,
}

/// Input that came from the operator.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Said {
    /// A line, without its end.
    Line(String),
    /// There is no more input.
    End,
    /// Ctrl-C.
    Interrupt,
}

impl Person {
    /// Listens from now on, to the end of the process.
    pub(super) fn here() -> anyhow::Result<Self> {
        let (tell, lines) = mpsc::channel(1);
        std::thread::spawn(move || {
            for line in std::io::stdin().lock().lines() {
                let Ok(line) = line else { break };
                if tell.blocking_send(line).is_err() {
                    break;
                }
            }
        });
        let interrupt = signal(SignalKind::interrupt())?;
        Ok(Self { lines, interrupt })
    }

    /// The next thing that comes. It can be cancelled: no line is lost.
    pub(super) async fn says(&mut self) -> Said {
        tokio::select! {
            _ = self.interrupt.recv() => Said::Interrupt,
            line = self.lines.recv() => line.map_or(Said::End, Said::Line),
        }
    }

    /// Asks, and accepts only `yes` as consent. Reports an error if there is no terminal to ask at. An interrupt is a no.
    pub(super) async fn agrees(&mut self, question: &str, yes: bool) -> anyhow::Result<bool> {
        if yes {
            return Ok(true);
        }
        if !std::io::stdin().is_terminal() {
            bail!("there is no terminal to ask at: say --yes");
        }
        show::note(&format!("{question} Write `yes` to go on:"));
        let said = self.says().await;
        Ok(matches!(said, Said::Line(line) if line.trim() == "yes"))
    }
}
