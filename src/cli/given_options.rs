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

/// Quotes a word for a shell, if needed.
pub(super) fn quoted_for_shell(word: &str) -> String {
    let needs_no_quotes = |c: char| c.is_ascii_alphanumeric() || "-_./:=,+@%".contains(c);
    if !word.is_empty() && word.chars().all(needs_no_quotes) {
        return word.to_owned();
    }
    format!("'{}'", word.replace('\'', "'\\''"))
}
