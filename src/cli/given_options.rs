//! Repeats the given options of a node: for another process, and in advice that a person copies.

use std::ffi::OsString;

use super::NodeOptions;
use super::node_args::LOG_FORMS;

/// Returns a node's options as arguments of the program.
pub(super) fn arguments(options: &NodeOptions) -> Vec<OsString> {
    // Destructured in full, so that every new option is either repeated here or left out on purpose.
    let NodeOptions {
        config,
        scenes,
        output,
        state,
        port,
        calibrated_elsewhere,
        trace,
        allow_root,
        record,
        log,
        exams: _,
        recordings: _,
    } = options;
    let path = |path: &Option<std::path::PathBuf>| path.clone().map(OsString::from);
    let log = LOG_FORMS.iter().find(|(.., form)| Some(*form) == *log);
    let values = [
        ("--config", path(config)),
        ("--scenes", path(scenes)),
        ("--output", path(output)),
        ("--state", path(state)),
        ("--port", port.clone().map(OsString::from)),
        (
            "--calibrated",
            calibrated_elsewhere.then(|| "elsewhere".into()),
        ),
        ("--trace", path(trace)),
        ("--log", log.map(|(word, ..)| word.into())),
    ];
    let values = values
        .into_iter()
        .filter_map(|(name, value)| Some([name.into(), value?]));
    let flags = [("--record", *record), ("--allow-root", *allow_root)];
    let flags = flags.into_iter().filter(|(_, is_given)| *is_given);
    let flags = flags.map(|(name, _)| name.into());
    values.flatten().chain(flags).collect()
}

/// Returns a node's options as text between the program and a command, each followed by a blank.
pub(super) fn text(options: &NodeOptions) -> String {
    let all = arguments(options).into_iter();
    all.map(|word| format!("{} ", quoted_for_shell(&word.to_string_lossy())))
        .collect()
}

/// Returns the options by which other commands address the node that `serve` starts with these.
pub(super) fn addressing(options: &NodeOptions) -> NodeOptions {
    NodeOptions {
        config: options.config.clone(),
        state: options.state.clone(),
        ..NodeOptions::default()
    }
}

/// Returns the same as text.
pub(super) fn addressing_text(options: &NodeOptions) -> String {
    text(&addressing(options))
}

/// Commands and calls that only a node which stays can carry out, as the messages of a node name them.
const FOR_A_NODE_THAT_STAYS: [&str; 4] = [
    "`steadyhand enable ",
    "`steadyhand reset",
    "`steadyhand clear",
    "call `reset`",
];

/// Returns how to begin what the messages of a node that ends with its command tell an operator to do, if they do.
pub(super) fn serve_line(answer: &str, options: &NodeOptions) -> Option<String> {
    let is_told = FOR_A_NODE_THAT_STAYS
        .iter()
        .any(|told| answer.contains(told));
    let (serve, address) = (text(options), addressing_text(options));
    is_told.then(|| {
        format!(
            "this command's node ends with the command. Next: start a node in another terminal with `steadyhand {serve}serve`, then use `steadyhand {address}enable …` and `steadyhand {address}reset`"
        )
    })
}

/// Beginning of a command that a person copies.
const COMMAND: &str = "`steadyhand ";

/// Commands that only a running node carries out, which other options find.
const OF_A_RUNNING_NODE: [&str; 6] = ["enable", "disable", "reset", "clear", "stop", "status"];

/// Returns a text of a node with the given options in the commands that it names: the node does not know the options that it was
/// opened with.
pub(super) fn with_given(text: &str, options: &NodeOptions) -> String {
    let (all, address) = (self::text(options), addressing_text(options));
    let mut parts = text.split(COMMAND);
    let mut out = parts.next().unwrap_or_default().to_owned();
    for rest in parts {
        let word = rest.split([' ', '`']).next().unwrap_or_default();
        let given = match word {
            word if word.starts_with('-') => "",
            word if OF_A_RUNNING_NODE.contains(&word) => &address,
            _ => &all,
        };
        out.extend([COMMAND, given, rest]);
    }
    out
}

/// Quotes a word for a shell, if needed.
pub(super) fn quoted_for_shell(word: &str) -> String {
    let needs_no_quotes = |c: char| c.is_ascii_alphanumeric() || "-_./:=,+@%".contains(c);
    if !word.is_empty() && word.chars().all(needs_no_quotes) {
        return word.to_owned();
    }
    format!("'{}'", word.replace('\'', "'\\''"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_only_a_node_that_stays_can_do_begins_with_its_start() {
        let options = NodeOptions {
            port: Some("/dev/ttyACM0".to_owned()),
            state: Some("s".into()),
            calibrated_elsewhere: true,
            ..NodeOptions::default()
        };
        for told in [
            "its pen may still stand on the paper: `steadyhand enable --scene default --for 30m`, then `steadyhand reset` lifts it",
            "remove its cause, then call `reset`; nothing moved",
            "an operator ends it with `steadyhand clear`",
        ] {
            let line = serve_line(told, &options).unwrap_or_default();
            let serve = "`steadyhand --state s --port /dev/ttyACM0 --calibrated elsewhere serve`";
            assert!(line.contains(serve), "{line}");
            // A port would open a node of the command's own.
            assert!(line.contains("`steadyhand --state s reset`"), "{line}");
        }
        assert_eq!(serve_line("nothing moved", &options), None);
    }

    #[test]
    fn commands_in_a_text_have_the_given_options() {
        let options = NodeOptions {
            config: Some("my node.toml".into()),
            port: Some("/dev/ttyACM0".to_owned()),
            ..NodeOptions::default()
        };
        for (told, named) in [
            (
                "job-1 was interrupted; `steadyhand draw --arm left --resume` continues it",
                "`steadyhand --config 'my node.toml' --port /dev/ttyACM0 draw --arm left --resume`",
            ),
            (
                "look with `steadyhand calibrate show`, then `steadyhand calibrate accept`",
                "then `steadyhand --config 'my node.toml' --port /dev/ttyACM0 calibrate accept`",
            ),
            (
                "Next: `steadyhand reset`",
                "Next: `steadyhand --config 'my node.toml' reset`",
            ),
            (
                "`steadyhand --port PORT draw --resume`",
                "`steadyhand --port PORT draw --resume`",
            ),
        ] {
            let text = with_given(told, &options);
            assert!(text.contains(named), "{text}");
            assert_eq!(with_given(told, &NodeOptions::default()), told);
        }
    }
}
