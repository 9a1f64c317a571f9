//! What a command printed.

use std::process::Output;

use serde_json::Value;

/// Returns what a command printed to its standard output.
pub(crate) fn stdout(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// Returns what a command printed to its standard output and then to its standard error.
pub(crate) fn printed_by(output: &Output) -> String {
    let (text, error) = streams_of(output);
    text + &error
}

/// Returns what a command printed to its standard output, and what to its standard error.
pub(crate) fn streams_of(output: &Output) -> (String, String) {
    let error = String::from_utf8_lossy(&output.stderr).into_owned();
    (stdout(output), error)
}

/// Returns a command's exit code and what it printed.
pub(crate) fn said_by(output: &Output) -> (i32, String) {
    (output.status.code().unwrap(), printed_by(output))
}

/// Returns the JSON that a command printed.
pub(crate) fn json_of(output: &Output) -> Value {
    serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("{}", printed_by(output)))
}
