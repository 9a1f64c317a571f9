//! Input from the person at the terminal: a single reader of standard input, because every reader takes lines from the others.

use std::io::{BufRead, IsTerminal};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use anyhow::bail;
use base::signals::{SignalKind, SignalListener};
use tokio::sync::mpsc;

use crate::questions;
use crate::terminal_output;

/// Input of the operator: answers and interrupts.
pub(super) struct OperatorInput {
    /// Each line with the number of questions that had been asked when it was read.
    lines: mpsc::Receiver<(u64, String)>,
    questions: Arc<AtomicU64>,
    /// Lines that were read before so many questions are discarded.
    discarded: u64,
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
        let questions = Arc::new(AtomicU64::new(0));
        let asked = Arc::clone(&questions);
        std::thread::spawn(move || {
            for line in std::io::stdin().lock().lines() {
                let Ok(line) = line else { break };
                let line = (asked.load(Ordering::Acquire), line);
                if sender.blocking_send(line).is_err() {
                    break;
                }
            }
        });
        let interrupt = SignalListener::listen(SignalKind::Interrupt)?;
        Ok(Self {
            lines,
            questions,
            discarded: 0,
            interrupt,
        })
    }

    /// Returns the next input. Cancel safe: no line is lost.
    pub(super) async fn next_input(&mut self) -> OperatorAnswer {
        loop {
            tokio::select! {
                _ = self.interrupt.recv() => return OperatorAnswer::Interrupt,
                line = self.lines.recv() => match line {
                    None => return OperatorAnswer::End,
                    Some((asked, _)) if asked < self.discarded => {}
                    Some((_, line)) => return OperatorAnswer::Line(line),
                },
            }
        }
    }

    /// Discards what was typed before the next question: it answers nothing.
    fn discard_typed(&mut self) {
        questions::discard_typed();
        self.discarded = self.questions.fetch_add(1, Ordering::AcqRel) + 1;
    }

    /// Asks for consent; an interrupt means no. Fails if there is no terminal to ask at.
    pub(super) async fn confirm(&mut self, question: &str, yes: bool) -> anyhow::Result<bool> {
        if yes {
            return Ok(true);
        }
        if !std::io::stdin().is_terminal() {
            bail!(
                "this command asks a question, which needs a terminal. Next: run it at a terminal, or add --yes"
            );
        }
        let mut question = format!("{question} Type `yes` to continue:");
        loop {
            self.discard_typed();
            terminal_output::note(&question);
            let OperatorAnswer::Line(line) = self.next_input().await else {
                return Ok(false);
            };
            if let Some(agreed) = questions::agrees_in_full(&line) {
                return Ok(agreed);
            }
            question = questions::WHOLE_YES.to_owned();
        }
    }
}
