//! A stop that is typed in other words, or with more words than it takes, stops all the same.

use std::ffi::OsString;
use std::path::Path;

use clap::error::ErrorKind;
use clap::{CommandFactory as _, Parser as _};

use super::command::Cli;
use super::given_options::quoted_for_shell;
use catalogue::{says_stop, words_of};

/// Beginnings of words for an emergency stop.
const EMERGENCY: [&str; 2] = ["emergency", "estop"];

/// Beginnings of words that end a stop, as letters alone: `clear-stop`.
const ENDS: [&str; 5] = ["clear", "reset", "end", "release", "resume"];

/// Beginnings of words that deny a stop, as letters alone. `notstop` is none: a `Not-Stopp` is an emergency stop in German.
const DENIALS: [&str; 6] = ["dont", "donot", "never", "nostop", "nohalt", "nonstop"];

/// A word that a stop does not take.
struct FurtherWord {
    text: String,
    /// Set behind an option that is not known: the word may be the name of something, such as `--scene estop_demo`.
    is_value: bool,
}

impl FurtherWord {
    /// Returns whether the word asks for an emergency stop: an option that names one, another word with one in it, or a value
    /// that is a word for one and no more.
    fn asks_for_emergency(&self) -> bool {
        const EXACT: [&str; 3] = ["estop", "emergency", "emergencystop"];
        let is_exact = |text: &str| EXACT.contains(&&*letters(text));
        let word = &self.text;
        let (name, value) = word.split_once('=').unwrap_or((word, ""));
        let is_name = is_emergency(name) && (name.starts_with('-') || is_stop(name));
        is_exact(name) || is_exact(value) || (is_name && !self.is_value)
    }

    /// Returns whether the stop does what the word says.
    fn is_heard(&self) -> bool {
        let is_more_of_it = is_stop(&self.text) && !is_emergency(&self.text);
        self.asks_for_emergency() || (is_more_of_it && !self.is_value)
    }
}

/// Returns the stop that a line means which is no command; `None` if its first word is none for stopping. Known options keep
/// their meaning, and all else is left out.
pub(super) fn of(line: &[OsString]) -> Option<Result<Cli, clap::Error>> {
    let (program, words) = line.split_first()?;
    let (mut command, mut options) = ("stop", Vec::new());
    let (mut verb, mut end, mut left_out) = (None, None, Vec::new());
    let (mut rest, mut is_value) = (words, false);
    while let Some((word, after)) = rest.split_first() {
        // An option, and its value if it takes one.
        let is_known = |count: &usize| {
            let one = rest.get(..*count);
            one.is_some_and(|one| takes(&parsed(program, command, &[&options, one].concat())))
        };
        if let Some(count) = (1..=2).find(is_known) {
            let (option, after) = rest.split_at(count);
            options.extend_from_slice(option);
            (rest, is_value) = (after, false);
            continue;
        }
        let text = word.to_string_lossy().into_owned();
        let is_stop_word = |word: &OsString| is_stop(&word.to_string_lossy());
        // With a stop behind it the line means a stop after all.
        let is_option = text.starts_with('-') && !text.contains('=');
        is_value &= !text.starts_with('-');
        if end.is_some() {
            // Only the options behind it matter.
        } else if verb.is_none() && ends_stop(&text) && !after.iter().any(is_stop_word) {
            end = Some(text);
        } else if verb.is_none() && is_stop(&text) {
            verb = Some(text);
        } else if text.trim_start_matches('-') == "fleet" {
            command = "fleet stop";
        } else if verb.is_some() || text.starts_with('-') {
            left_out.push(FurtherWord { text, is_value });
        } else {
            return None;
        }
        (rest, is_value) = (after, is_option);
    }
    if let Some(end) = end {
        return Some(Err(no_such_end(program, &end, &options)));
    }
    let verb = verb?;
    let not_stopped = not_stopped(&left_out);
    if is_emergency(&verb) || left_out.iter().any(FurtherWord::asks_for_emergency) {
        command = match command {
            "stop" => "estop",
            fleet if options.iter().any(|option| option == "--emergency") => fleet,
            _ => "fleet stop --emergency",
        };
    }
    left_out.retain(|word| !word.is_heard());
    let remark = remark(command, &verb, &left_out);
    let stop = parsed(program, command, &options);
    Some(stop.map(|cli| Cli {
        remark,
        not_stopped,
        ..cli
    }))
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
    match letters(word).as_str() {
        "stop" | "estop" => true,
        letters => {
            let is_denied = DENIALS.iter().any(|denial| letters.starts_with(denial));
            says_stop(word) && !Cli::has_command(letters) && !is_denied && !is_file(word)
        }
    }
}

/// Returns whether a word means the end of a stop, which no command is called: `clear-stop`, `releaseTheStop`.
fn ends_stop(word: &str) -> bool {
    const STOPS: [&str; 4] = ["stop", "estop", "emergency", "emergencystop"];
    let letters = letters(word);
    ENDS.iter().any(|end| {
        let ended = letters.strip_prefix(end);
        ended.is_some_and(|stop| STOPS.contains(&stop.strip_prefix("the").unwrap_or(stop)))
    })
}

/// Returns the error that tells a person who wants to end a stop how that is done.
fn no_such_end(program: &OsString, word: &str, options: &[OsString]) -> clap::Error {
    let are_taken = takes(&parsed(program, "clear", options));
    let options = options.iter().filter(|_| are_taken);
    let options = options.map(|word| format!(" {}", quoted_for_shell(&word.to_string_lossy())));
    let at: String = options.collect();
    let message = format!(
        "there is no command `{word}`, and nothing was stopped: `steadyhand clear{at}` ends an emergency stop, `steadyhand reset{at}` ends any other stop and brings the arm to rest, and `steadyhand resume{at}` continues a held motion"
    );
    Cli::command().error(ErrorKind::InvalidSubcommand, message)
}

/// Returns whether a word ends as a file's name does, such as `bus-stop.svg`.
fn is_file(word: &str) -> bool {
    let extension = Path::new(word).extension().unwrap_or_default();
    let is_plain = |c: &u8| c.is_ascii_alphanumeric();
    extension.len() > 1 && extension.as_encoded_bytes().iter().all(is_plain)
}

/// Returns the letters of a word, in lower case.
pub(super) fn letters(word: &str) -> String {
    let letters = word.chars().filter(|c| c.is_alphabetic());
    letters.flat_map(char::to_lowercase).collect()
}

/// Returns whether one of a word's own words is for an emergency stop: `robot-estop`, `e-stop`; `please-stop` has none.
fn is_emergency(word: &str) -> bool {
    let words = words_of(word);
    let mut pairs = words.windows(2);
    let is_one = |word: &String| EMERGENCY.iter().any(|start| word.starts_with(start));
    letters(word) == "estop"
        || words.iter().any(is_one)
        || pairs.any(|pair| matches!(pair, [e, stop] if e == "e" && stop.starts_with("stop")))
}

/// Says that another node was not stopped, if words that were left out may name one.
fn not_stopped(left_out: &[FurtherWord]) -> Option<String> {
    let is_address = |word: &FurtherWord| {
        let option = word.text.trim_start_matches('-').to_lowercase();
        option.starts_with("node") || word.text.contains([':', '/'])
    };
    left_out.iter().any(is_address).then(|| {
        let words = quoted(left_out);
        format!(
            "the node that `{words}` may mean was NOT stopped: stop it with `steadyhand stop --node HOST:PORT --token-file FILE`"
        )
    })
}

/// Says how a line was read, where that differs from how it was typed.
fn remark(stop: &str, verb: &str, left_out: &[FurtherWord]) -> Option<String> {
    let quoted = quoted(left_out);
    match (verb == stop, left_out.is_empty()) {
        (true, true) => None,
        (false, true) => Some(format!("`{verb}` was taken as `steadyhand {stop}`")),
        (_, false) => Some(format!(
            "taken as `steadyhand {stop}`; not understood and left out: {quoted}"
        )),
    }
}

fn quoted(words: &[FurtherWord]) -> String {
    let quoted: Vec<String> = words
        .iter()
        .map(|word| quoted_for_shell(&word.text))
        .collect();
    quoted.join(" ")
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
            ("stop --scene estop_demo", "--scene estop_demo"),
            ("stop --scene stop_demo", "--scene stop_demo"),
            ("stop --scene=estop_demo", "--scene=estop_demo"),
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
    fn a_stop_that_may_mean_another_node_says_that_it_was_not_stopped() {
        for line in [
            "stop --nodes arm:8700",
            "stop http://arm:8700/",
            "stop --node",
            "estop --node",
            "stop node left",
        ] {
            let (_, cli, at) = stop_of(line).unwrap();
            assert!(!at.is_named(), "{line}");
            let told = cli.not_stopped.unwrap_or_default();
            assert!(told.contains("was NOT stopped"), "{line}: {told}");
        }
        assert_eq!(stop_of("stop --all").unwrap().1.not_stopped, None);
    }

    #[test]
    fn words_for_a_stop_are_not_told_as_left_out() {
        let (is_emergency, cli, _) = stop_of("emergency stop").unwrap();
        let expected = "`emergency` was taken as `steadyhand estop`";
        assert!(is_emergency && cli.remark.as_deref() == Some(expected));
    }

    #[test]
    fn a_stop_in_another_spelling_stops() {
        for line in [
            "STOP", "Stop", "stop!", "halt", "--stop", "stpo", "Anhalten", "🛑", "s.t.o.p",
            "Not-Halt",
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
    fn letters_of_two_words_make_no_emergency_stop() {
        for line in [
            "please-stop",
            "node-stop",
            "the-stop",
            "stop the-stop",
            "stop --scene estop_demo",
            "stop --scene=estop_demo",
        ] {
            assert!(!stop_of(line).unwrap().0, "{line}");
        }
        assert!(!stop_of("--clear-stop STOP").unwrap().0);
        for line in [
            "robot-estop",
            "EStop",
            "e.s.t.o.p",
            "stop --e-stop",
            "stop --emergency=now",
            "stop --kind=emergency",
            "stop --kind emergency",
            "stop robot-estop",
            "stop emergency-now",
        ] {
            assert!(stop_of(line).unwrap().0, "{line}");
        }
    }

    #[test]
    fn the_end_of_a_stop_is_no_stop_and_its_commands_are_named() {
        for line in [
            "clear-stop",
            "reset-stop",
            "end-stop",
            "release-stop",
            "resume-stop",
            "clear-estop",
            "reset_the_stop now",
            "ClearStop",
            "release-emergency-stop",
        ] {
            let words = std::iter::once("steadyhand").chain(line.split(' '));
            let words: Vec<OsString> = words.map(OsString::from).collect();
            let error = of(&words).unwrap().unwrap_err();
            assert_eq!(error.kind(), ErrorKind::InvalidSubcommand, "{line}");
            let told = error.to_string();
            for part in [
                "nothing was stopped",
                "`steadyhand clear`",
                "`steadyhand reset`",
            ] {
                assert!(told.contains(part), "{told}");
            }
        }
    }

    #[test]
    fn the_command_that_ends_a_stop_is_told_with_the_options_of_the_line() {
        for line in [
            "--config my.toml clear-stop --state s",
            "clear-stop now --config my.toml --state s",
        ] {
            let words = std::iter::once("steadyhand").chain(line.split(' '));
            let words: Vec<OsString> = words.map(OsString::from).collect();
            let told = of(&words).unwrap().unwrap_err().to_string();
            let clear = "`steadyhand clear --config my.toml --state s`";
            assert!(told.contains(clear), "{line}: {told}");
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
        // Without its token it reaches no node, and none is stopped in its place.
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
            ("stop fleet", false),
            ("stop --fleet", false),
            ("estop fleet", true),
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
            "Hold",
            "HOLD now",
            "torque_off",
            "Torque-Off",
            "torqueoff",
            "bus-stop.svg",
            "full-stop.svg",
            "no-stop",
            "dont-stop",
            "don't-stop",
        ] {
            assert!(stop_of(line).is_none(), "{line}");
        }
    }
}
