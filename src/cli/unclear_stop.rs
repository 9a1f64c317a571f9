//! A stop that is typed in other words, or with more words than it takes, stops all the same.

use std::ffi::OsString;

use clap::Parser as _;
use clap::error::ErrorKind;

use super::command::Cli;
use super::given_options::quoted_for_shell;
use catalogue::says_stop;

/// Parts of a word that asks for an emergency stop.
const EMERGENCY: [&str; 2] = ["emergency", "estop"];

/// Returns the stop that a line means which is no command; `None` if its first word is none for stopping. Known options keep
/// their meaning, and all else is left out.
pub(super) fn of(line: &[OsString]) -> Option<Result<Cli, clap::Error>> {
    let (program, words) = line.split_first()?;
    let (mut command, mut options) = ("stop", Vec::new());
    let (mut verb, mut left_out) = (None, Vec::new());
    let mut rest = words;
    while let Some((word, after)) = rest.split_first() {
        // An option, and its value if it takes one.
        let is_known = |count: &usize| {
            let one = rest.get(..*count);
            one.is_some_and(|one| takes(&parsed(program, command, &[&options, one].concat())))
        };
        if let Some(count) = (1..=2).find(is_known) {
            let (option, after) = rest.split_at(count);
            options.extend_from_slice(option);
            rest = after;
            continue;
        }
        let text = word.to_string_lossy().into_owned();
        if verb.is_none() && is_stop(&text) {
            verb = Some(text);
        } else if verb.is_none() && command == "stop" && text == "fleet" {
            command = "fleet stop";
        } else if verb.is_some() || text.starts_with('-') {
            left_out.push(text);
        } else {
            return None;
        }
        rest = after;
    }
    let verb = verb?;
    if is_emergency(&verb) || left_out.iter().any(|word| is_emergency(word)) {
        command = match command {
            "stop" => "estop",
            fleet if options.iter().any(|option| option == "--emergency") => fleet,
            _ => "fleet stop --emergency",
        };
        left_out.retain(|word| !is_emergency(word));
    }
    let remark = remark(command, &verb, &left_out);
    let stop = parsed(program, command, &options);
    Some(stop.map(|cli| Cli { remark, ..cli }))
}

fn parsed(program: &OsString, command: &str, options: &[OsString]) -> Result<Cli, clap::Error> {
    let command = command.split(' ').map(OsString::from);
    let line = std::iter::once(program.clone()).chain(command);
    Cli::try_parse_from(line.chain(options.iter().cloned()))
}

/// Returns whether a command takes its options, even if another one must come with them: `--node` needs a token.
fn takes(parsed: &Result<Cli, clap::Error>) -> bool {
    let error = parsed.as_ref().err();
    error.is_none_or(|error| error.kind() == ErrorKind::MissingRequiredArgument)
}

/// Returns whether a word means a stop, and no other command.
fn is_stop(word: &str) -> bool {
    let word = word.trim_start_matches('-');
    word == "stop" || word == "estop" || (says_stop(word) && !Cli::has_command(word))
}

fn is_emergency(word: &str) -> bool {
    let letters = word.chars().filter(|c| c.is_alphabetic());
    let letters: String = letters.flat_map(char::to_lowercase).collect();
    EMERGENCY.iter().any(|part| letters.contains(part))
}

/// Says how a line was read, where that differs from how it was typed.
fn remark(stop: &str, verb: &str, left_out: &[String]) -> Option<String> {
    let quoted: Vec<String> = left_out.iter().map(|word| quoted_for_shell(word)).collect();
    let quoted = quoted.join(" ");
    match (verb == stop, left_out.is_empty()) {
        (true, true) => None,
        (false, true) => Some(format!("`{verb}` was taken as `steadyhand {stop}`")),
        (_, false) => Some(format!(
            "taken as `steadyhand {stop}`; not understood and left out: {quoted}"
        )),
    }
}

#[cfg(test)]
#[allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a failing test may panic"
)]
mod tests {
    use super::super::AtArgs;
    use super::super::command::CliCommand;
    use super::super::fleet::FleetCommand;
    use super::*;

    /// Returns whether the line is an emergency stop, the node that it addresses, and the remark.
    fn stop_of(line: &str) -> Option<(bool, Cli, AtArgs)> {
        let words = std::iter::once("steadyhand").chain(line.split(' '));
        let words: Vec<OsString> = words.map(OsString::from).collect();
        assert!(Cli::try_parse_from(&words).is_err(), "{line}");
        let cli = of(&words)?.unwrap();
        let (is_emergency, at) = match &cli.command {
            CliCommand::Stop(at) => (false, at.clone()),
            CliCommand::Estop(at) => (true, at.clone()),
            _ => panic!("{line} is no stop"),
        };
        Some((is_emergency, cli, at))
    }

    #[test]
    fn a_stop_with_a_word_too_many_stops_and_names_it() {
        for (line, left_out) in [
            ("stop --arm arm", "--arm arm"),
            ("stop arm", "arm"),
            ("stop now", "now"),
            ("stop --now", "--now"),
            ("stop --yes", "--yes"),
            ("stop --all", "--all"),
            ("stop -f", "-f"),
            ("stop --scene mine", "--scene mine"),
            ("stop --socket", "--socket"),
            ("stop --log loud", "--log loud"),
            ("--now stop", "--now"),
            ("stop the arm!", "the 'arm!'"),
        ] {
            let (is_emergency, cli, _) = stop_of(line).unwrap();
            assert!(!is_emergency, "{line}");
            let remark = cli.remark.unwrap();
            let expected =
                format!("taken as `steadyhand stop`; not understood and left out: {left_out}");
            assert_eq!(remark, expected, "{line}");
        }
        let (is_emergency, cli, _) = stop_of("stop --emergency").unwrap();
        let remark = "`stop` was taken as `steadyhand estop`";
        assert!(is_emergency && cli.remark.as_deref() == Some(remark));
        for line in [
            "stop --emergency",
            "estop --yes",
            "estop now",
            "Stop E-STOP",
        ] {
            assert!(stop_of(line).unwrap().0, "{line}");
        }
    }

    #[test]
    fn a_stop_in_another_spelling_stops() {
        for line in [
            "STOP", "Stop", "stop!", "halt", "--stop", "stpo", "Anhalten", "🛑",
        ] {
            let (is_emergency, cli, _) = stop_of(line).unwrap();
            assert!(!is_emergency, "{line}");
            let expected = format!("`{line}` was taken as `steadyhand stop`");
            assert_eq!(cli.remark.as_deref(), Some(expected.as_str()));
        }
        for line in [
            "e-stop",
            "emergency-stop",
            "emergency_stop",
            "ESTOP",
            "emergency",
        ] {
            assert!(stop_of(line).unwrap().0, "{line}");
        }
    }

    #[test]
    fn known_options_of_a_stop_keep_their_meaning() {
        let path = |text: &str| Some(std::path::PathBuf::from(text));
        let (_, cli, at) =
            stop_of("--config my.toml STOP now --socket left.sock --state s").unwrap();
        assert_eq!(
            (cli.node.config, cli.node.state),
            (path("my.toml"), path("s"))
        );
        assert_eq!(at.socket, path("left.sock"));
        assert_eq!(
            stop_of("--socket left.sock stop").unwrap().2.socket,
            path("left.sock")
        );
        let (.., at) = stop_of("stop now --node arm:8700 --arm left --token-file t").unwrap();
        assert_eq!(
            (at.node.as_deref(), at.token_file),
            (Some("arm:8700"), path("t"))
        );
        // Without its token it reaches nobody, and no other node is stopped in its place.
        let words = ["steadyhand", "stop", "now", "--node", "arm:8700"].map(OsString::from);
        let error = of(&words).unwrap().unwrap_err();
        assert!(error.to_string().contains("--token-file"), "{error}");
    }

    #[test]
    fn a_stop_of_all_nodes_is_heard_likewise() {
        for (line, expected) in [
            ("fleet stop --all", false),
            ("fleet STOP", false),
            ("fleet e-stop", true),
            ("fleet stop --emergency now", true),
            ("fleet stop --emergency e-stop", true),
            ("--now fleet stop", false),
        ] {
            let words = std::iter::once("steadyhand").chain(line.split(' '));
            let words: Vec<OsString> = words.map(OsString::from).collect();
            assert!(Cli::try_parse_from(&words).is_err(), "{line}");
            let cli = of(&words).unwrap().unwrap();
            assert!(cli.remark.is_some(), "{line}");
            let CliCommand::Fleet(FleetCommand::Stop { emergency, .. }) = cli.command else {
                panic!("{line} stops no fleet");
            };
            assert_eq!(emergency, expected, "{line}");
        }
    }

    #[test]
    fn other_mistyped_commands_are_no_stop() {
        for line in [
            "draw --text stop --sise 60mm",
            "hold now",
            "disable --now",
            "torque-off --now",
            "clear all",
            "call stop --now",
            "--config stop",
            "status stop",
            "fleet draw --stop",
            "fleet jobs stop",
            "darw stop.svg",
        ] {
            assert!(stop_of(line).is_none(), "{line}");
        }
    }
}
