//! Questions to a person at the terminal; without a terminal, the default is the answer.

use std::io::IsTerminal;

use anyhow::bail;

use super::terminal_output;
use base::wording::cut;

/// Answers that agree to a question that shows `[y/N]`.
pub(super) const SHORT_YES: [&str; 2] = ["y", "yes"];

/// Answer that agrees if an arm moves or drops at once: nobody types it by accident.
pub(super) const FULL_YES: [&str; 1] = ["yes"];

/// Asks a person to agree, and returns whether one of the `accepted` words was typed.
///
/// # Errors
/// Fails with `refusal` if there is no terminal to ask at.
pub(super) fn confirm(question: &str, accepted: &[&str], refusal: &str) -> anyhow::Result<bool> {
    if !std::io::stdin().is_terminal() {
        bail!("{refusal}");
    }
    terminal_output::note(question);
    let mut answer = String::new();
    std::io::stdin().read_line(&mut answer)?;
    Ok(accepted.contains(&answer.trim().to_lowercase().as_str()))
}

/// Longest answer to a question.
const ANSWER_CHARS_MAX: usize = 400;

/// Has a person pick one of several by its number.
pub(super) fn pick(question: &str, choices: &[String]) -> anyhow::Result<String> {
    terminal_output::note(question);
    for (index, one) in choices.iter().enumerate() {
        terminal_output::note(&format!("  {}: {one}", index + 1));
    }
    let answer = ask("its number", "1");
    let index = answer.parse::<usize>().ok().and_then(|n| n.checked_sub(1));
    match index.and_then(|index| choices.get(index)) {
        Some(one) => Ok(one.clone()),
        None => bail!("{answer:?} is not one of 1 to {}", choices.len()),
    }
}

/// Returns a person's answer, or the default if it is missing or empty.
pub(super) fn ask(question: &str, default: &str) -> String {
    if !std::io::stdin().is_terminal() {
        return default.to_owned();
    }
    terminal_output::note(&format!("{question} [{default}]"));
    let mut answer = String::new();
    if std::io::stdin().read_line(&mut answer).is_err() {
        return default.to_owned();
    }
    match cut(answer.trim(), ANSWER_CHARS_MAX) {
        answer if answer.is_empty() => default.to_owned(),
        answer => answer,
    }
}
