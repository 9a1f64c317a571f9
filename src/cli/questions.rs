//! Questions to a person at the terminal; where there is none, the default is the answer.

use std::io::IsTerminal;

use anyhow::bail;

use super::terminal_output;
use base::wording::cut;

/// Answers that agree to a question which shows `[y/N]`.
pub(super) const SHORT_YES: [&str; 2] = ["y", "yes"];

/// The answer that agrees where an arm moves or drops at once: nobody types it by accident.
pub(super) const WHOLE_YES: [&str; 1] = ["yes"];

/// Asks a person to agree, and returns whether one of the `accepted` words was typed.
///
/// # Errors
/// `refusal`, where no terminal is there to ask at.
pub(super) fn confirm(question: &str, accepted: &[&str], refusal: &str) -> anyhow::Result<bool> {
    if !std::io::stdin().is_terminal() {
        bail!("{refusal}");
    }
    terminal_output::note(question);
    let mut said = String::new();
    std::io::stdin().read_line(&mut said)?;
    Ok(accepted.contains(&said.trim().to_lowercase().as_str()))
}

/// Longest answer to a question.
const ANSWER_CHARS_MAX: usize = 400;

/// One of several, by its number.
pub(super) fn pick(question: &str, among: &[String]) -> anyhow::Result<String> {
    terminal_output::note(question);
    for (index, one) in among.iter().enumerate() {
        terminal_output::note(&format!("  {}: {one}", index + 1));
    }
    let said = ask("its number", "1");
    let index = said.parse::<usize>().ok().and_then(|n| n.checked_sub(1));
    match index.and_then(|index| among.get(index)) {
        Some(one) => Ok(one.clone()),
        None => bail!("{said:?} is not one of 1 to {}", among.len()),
    }
}

/// Returns a person's answer, or the default if it is missing or empty.
pub(super) fn ask(question: &str, default: &str) -> String {
    if !std::io::stdin().is_terminal() {
        return default.to_owned();
    }
    terminal_output::note(&format!("{question} [{default}]"));
    let mut said = String::new();
    if std::io::stdin().read_line(&mut said).is_err() {
        return default.to_owned();
    }
    match cut(said.trim(), ANSWER_CHARS_MAX) {
        said if said.is_empty() => default.to_owned(),
        said => said,
    }
}
