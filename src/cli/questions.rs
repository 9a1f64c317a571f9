//! Questions to a person at the terminal.

use std::io::IsTerminal;

use anyhow::{Context as _, bail};

use super::terminal_output;
use base::wording::cut;

/// Answers that agree to a question that shows `[y/N]`.
const YES: [&str; 2] = ["y", "yes"];

/// Asks again after a mere `y`, where only a whole `yes` agrees.
pub(super) const WHOLE_YES: &str =
    "`y` is not enough here. Type `yes` to continue, or press Enter to cancel:";

/// Asks a person to agree, and returns whether that was typed.
///
/// # Errors
/// Fails with `refusal` if there is no terminal to ask at.
pub(super) fn confirm(question: &str, refusal: &str) -> anyhow::Result<bool> {
    check_terminal(refusal)?;
    Ok(agrees(&answer_to(question)?.unwrap_or_default()))
}

/// As [`confirm`], but only a whole `yes` agrees.
pub(super) fn confirm_in_full(question: &str, refusal: &str) -> anyhow::Result<bool> {
    check_terminal(refusal)?;
    typed_in_full(question)
}

/// As [`confirm_in_full`], also where the answer comes from a pipe.
pub(super) fn typed_in_full(question: &str) -> anyhow::Result<bool> {
    let mut question = question;
    loop {
        let answer = answer_to(question)?.unwrap_or_default();
        if let Some(agreed) = agrees_in_full(&answer) {
            return Ok(agreed);
        }
        question = WHOLE_YES;
    }
}

fn check_terminal(refusal: &str) -> anyhow::Result<()> {
    if !std::io::stdin().is_terminal() {
        bail!("{refusal}");
    }
    Ok(())
}

/// Returns whether an answer agrees, in any case of its letters.
pub(super) fn agrees(answer: &str) -> bool {
    YES.contains(&answer.trim().to_lowercase().as_str())
}

/// Returns whether an answer is a whole `yes`, which is asked for where an arm drops at once. A mere `y` is `None`: it is neither
/// enough nor a no, so the question is asked again with [`WHOLE_YES`].
pub(super) fn agrees_in_full(answer: &str) -> Option<bool> {
    match answer.trim().to_lowercase().as_str() {
        "yes" => Some(true),
        "y" => None,
        _ => Some(false),
    }
}

/// Asks, and returns the line that a person types after the question; `None` at the end of the input.
pub(super) fn answer_to(question: &str) -> anyhow::Result<Option<String>> {
    discard_typed();
    terminal_output::note(question);
    let mut answer = String::new();
    let length = std::io::stdin().read_line(&mut answer)?;
    Ok((length > 0).then_some(answer))
}

/// Discards what was typed at the terminal before a question: it answers nothing.
#[cfg(unix)]
pub(super) fn discard_typed() {
    use rustix::termios::{QueueSelector, tcflush};
    // Without a terminal there is nothing to discard.
    let _ = tcflush(std::io::stdin(), QueueSelector::IFlush);
}

/// Placeholder for systems whose terminals keep what was typed.
#[cfg(not(unix))]
pub(super) const fn discard_typed() {}

/// Longest answer to a question.
const ANSWER_CHARS_MAX: usize = 400;

/// Has a person at the terminal pick one of several by its number or its name, and asks again until one is picked. Only a single
/// choice is taken without either.
///
/// # Errors
/// The input ended.
pub(super) fn pick(question: &str, choices: &[String]) -> anyhow::Result<String> {
    pick_by(question, choices, "its number", |_| false)
}

/// Has a person at the terminal pick one of several, or type the path of another.
///
/// # Errors
/// The input ended.
pub(super) fn pick_or_path(question: &str, choices: &[String]) -> anyhow::Result<String> {
    let is_path = |answer: &str| answer.contains('/');
    pick_by(question, choices, "its number, or a path", is_path)
}

fn pick_by(
    question: &str,
    choices: &[String],
    what: &str,
    is_another: impl Fn(&str) -> bool,
) -> anyhow::Result<String> {
    terminal_output::note(question);
    for (index, one) in choices.iter().enumerate() {
        terminal_output::note(&format!("  {}: {one}", index + 1));
    }
    loop {
        let answer = typed(&match choices {
            [only] => format!("{what} [1: {only}]"),
            several => format!("{what} [1 to {}]", several.len()),
        })?;
        match chosen(&answer, choices) {
            Some(one) => return Ok(one.clone()),
            None if is_another(&answer) => return Ok(answer),
            None => terminal_output::note(&format!(
                "{answer:?} is not a number from 1 to {}",
                choices.len()
            )),
        }
    }
}

/// Returns the choice that an answer picks.
fn chosen<'a>(answer: &str, choices: &'a [String]) -> Option<&'a String> {
    if let ([only], "") = (choices, answer) {
        return Some(only);
    }
    let index = answer.parse::<usize>().ok().and_then(|n| n.checked_sub(1));
    let named = || choices.iter().find(|one| *one == answer);
    index.and_then(|index| choices.get(index)).or_else(named)
}

/// Returns a person's answer, or the default if it is empty or there is no terminal to ask at.
pub(super) fn ask(question: &str, default: &str) -> anyhow::Result<String> {
    if !std::io::stdin().is_terminal() {
        return Ok(default.to_owned());
    }
    let answer = typed(&format!("{question} [{default}]"))?;
    Ok(match answer.is_empty() {
        true => default.to_owned(),
        false => answer,
    })
}

/// Returns what a person types after a question, at most so much of it as an answer may have.
fn typed(question: &str) -> anyhow::Result<String> {
    let answer = answer_to(question)?;
    let answer = answer.context("the input ended without an answer. Nothing was done")?;
    Ok(cut(answer.trim(), ANSWER_CHARS_MAX))
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a failing test may panic")]
mod tests {
    use super::{agrees, agrees_in_full, chosen};

    #[test]
    fn y_and_yes_agree_and_nothing_else_does() {
        for (answer, agreed) in [("y\n", true), ("Yes\n", true), (" yes ", true), ("", false)] {
            assert_eq!(agrees(answer), agreed, "{answer:?}");
        }
        for (answer, agreed) in [
            (" Yes\n", Some(true)),
            ("y\n", None),
            ("no", Some(false)),
            ("", Some(false)),
        ] {
            assert_eq!(agrees_in_full(answer), agreed, "{answer:?}");
        }
        for other in ["yy", "ye", "n", "no", "yes please"] {
            assert!(!agrees(other), "{other}");
        }
    }

    #[test]
    fn only_a_single_choice_is_taken_without_a_number() {
        let [one, two] = ["simulator", "/dev/ttyACM0"].map(str::to_owned);
        assert_eq!(chosen("", std::slice::from_ref(&one)), Some(&one));
        let several = [one.clone(), two.clone()];
        assert_eq!(chosen("", &several).or(chosen("3", &several)), None);
        assert_eq!(chosen("2", &several), Some(&two));
        assert_eq!(chosen("simulator", &several), Some(&one));
    }
}
