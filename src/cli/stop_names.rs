//! A stop that is typed by another of its names, or with more words than it takes, stops all the same.

use std::ffi::OsString;

use clap::Parser as _;

use super::command::Cli;
use super::given_options::quoted_for_shell;
use catalogue::{TOOLS, ToolEffect};

/// Names of an emergency stop, as letters alone.
const EMERGENCY: [&str; 2] = ["estop", "emergencystop"];

/// Words behind a stop that make it an emergency stop, as letters alone: `stop --emergency`, `stop --kind=emergency`.
const MORE: [&str; 3] = ["estop", "emergencystop", "emergency"];

/// Returns the stop that a line means whose first word, options aside, is a name of it: case, `-` and `_` aside. Options that it
/// takes keep their meaning, and all else is left out.
pub(super) fn of(line: &[OsString]) -> Option<Result<Cli, clap::Error>> {
    let (program, words) = line.split_first()?;
    let is_one_of = |word: &OsString, names: &[&str]| {
        let word = word.to_string_lossy();
        let mut parts = word.split('=').map(own_name);
        parts.any(|part| names.contains(&part.as_str()))
    };
    let at = words.iter().position(is_stop)?;
    let (before, rest) = words.split_at_checked(at)?;
    let (verb, rest) = rest.split_first()?;
    let is_emergency =
        is_one_of(verb, &EMERGENCY) || rest.iter().any(|word| is_one_of(word, &MORE));
    let command = if is_emergency { "estop" } else { "stop" };
    let parsed = |options: &[OsString]| {
        let begin = [program.clone(), command.into()];
        Cli::try_parse_from(begin.into_iter().chain(options.iter().cloned()))
    };
    parsed(before).ok()?;
    let (mut options, mut left_out) = (before.to_vec(), Vec::new());
    let rest: Vec<OsString> = rest
        .iter()
        .filter(|word| !is_one_of(word, &MORE))
        .cloned()
        .collect();
    // Options that must come together are known only together.
    let whole = parsed(&[before, &rest].concat());
    let mut rest = rest.as_slice();
    while whole.is_err() && !rest.is_empty() {
        // An option, and its value if it takes one.
        let is_known = |count: &usize| {
            let one = rest.get(..*count);
            one.is_some_and(|one| parsed(&[&options, one].concat()).is_ok())
        };
        let count = (1..=2).find(is_known);
        let (taken, after) = rest.split_at(count.unwrap_or(1));
        match count {
            Some(_) => options.extend_from_slice(taken),
            None => left_out.extend(taken.iter().map(|word| word.to_string_lossy().into_owned())),
        }
        rest = after;
    }
    let stop = whole.or_else(|_| parsed(&options));
    Some(stop.map(|cli| Cli {
        remark: remark(command, &verb.to_string_lossy(), &left_out),
        not_stopped: not_stopped(&left_out),
        ..cli
    }))
}

/// Returns whether a word is a name of a stop.
fn is_stop(word: &OsString) -> bool {
    let name = own_name(&word.to_string_lossy());
    let mut stops = TOOLS.iter().filter(|tool| tool.effect == ToolEffect::Stops);
    stops.any(|tool| tool.names().any(|own| own_name(own) == name))
}

/// Returns the letters of a name without the `robot` that every tool may have in front.
fn own_name(word: &str) -> String {
    let name = letters(word);
    name.strip_prefix("robot")
        .map(str::to_owned)
        .unwrap_or(name)
}

/// Returns the letters of a word, in lower case.
pub(super) fn letters(word: &str) -> String {
    let letters = word.chars().filter(|c| c.is_alphabetic());
    letters.flat_map(char::to_lowercase).collect()
}

/// Says that another node was not stopped, if words that were left out may name one.
fn not_stopped(left_out: &[String]) -> Option<String> {
    let is_address = |word: &String| {
        let option = word.trim_start_matches('-').to_lowercase();
        option.starts_with("node") || word.contains([':', '/'])
    };
    left_out.iter().any(is_address).then(|| {
        let words = quoted(left_out);
        format!(
            "`{words}` may be another node's name; that node was NOT stopped. Next: `steadyhand stop --node HOST:PORT --token-file FILE`"
        )
    })
}

/// Says how a line was read, where that differs from how it was typed.
fn remark(stop: &str, verb: &str, left_out: &[String]) -> Option<String> {
    match (verb == stop, left_out.is_empty()) {
        (true, true) => None,
        (false, true) => Some(format!("`{verb}` was taken as `steadyhand {stop}`")),
        (_, false) => Some(format!(
            "taken as `steadyhand {stop}`; this was not understood and is ignored: {}",
            quoted(left_out)
        )),
    }
}

fn quoted(words: &[String]) -> String {
    let quoted: Vec<String> = words.iter().map(|word| quoted_for_shell(word)).collect();
    quoted.join(" ")
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a failing test may panic")]
mod tests {
    use super::super::command::CliCommand;
    use super::*;

    fn stop_of(line: &str) -> Option<(bool, Option<String>)> {
        let words = std::iter::once("steadyhand").chain(line.split(' '));
        let words: Vec<OsString> = words.map(OsString::from).collect();
        let cli = of(&words)?.unwrap();
        Some((matches!(cli.command, CliCommand::Estop(_)), cli.remark))
    }

    #[test]
    fn every_name_of_a_stop_stops_whatever_follows() {
        for (line, is_emergency) in [
            ("halt", false),
            ("Robot-Stop", false),
            ("E_STOP", true),
            ("emergency-stop", true),
            ("stop now please", false),
            ("--config a.toml STOP --arm arm", false),
            ("stop --emergency", true),
            ("stop --kind=emergency", true),
            ("stop robot-estop", true),
            ("robot_estop", true),
            ("Robot-EStop --emergency=true", true),
        ] {
            let (emergency, remark) = stop_of(line).unwrap();
            assert_eq!(emergency, is_emergency, "{line}");
            assert!(remark.is_some(), "{line}");
        }
        for line in ["stroke", "please", "stops", "nonstop"] {
            assert_eq!(stop_of(line), None, "{line}");
        }
    }
}
