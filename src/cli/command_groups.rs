//! Help of the whole program: the commands that people begin with, in groups, and every command with `--all`.

use std::ffi::OsString;

use clap::builder::StyledStr;
use clap::builder::styling::Styles;
use clap::{Command, CommandFactory as _};

use super::command::Cli;

/// The commands that people begin with.
const GROUPS: [(&str, &[&str]); 4] = [
    ("Draw", &["draw", "scene", "jobs"]),
    ("Set up", &["init", "first-line", "doctor", "clients"]),
    ("Serve", &["serve", "page"]),
    ("Operate", &["enable", "status", "stop", "reset"]),
];

/// Words that ask for help.
const HELP: [&str; 3] = ["help", "--help", "-h"];

const GROUPED: &str = "{about-with-newline}\n{usage-heading} {usage}\n       steadyhand FILE{after-help}\n\nOptions:\n{options}";
const ALL: &str = "{about-with-newline}\n{usage-heading} {usage}\n\n{all-args}";

/// Returns the help that a line asks for, or that a line without a command needs. Clap itself has no groups of commands.
pub(super) fn help(line: &[OsString]) -> Option<clap::Error> {
    let (program, words) = line.split_first()?;
    let words: Vec<_> = words.iter().map(|word| word.to_str()).collect();
    let asks = |word: &Option<&str>| word.is_some_and(|word| HELP.contains(&word));
    let template = match words.as_slice() {
        [] => GROUPED,
        [one] if asks(one) => GROUPED,
        [one, Some("--all")] | [Some("--all"), one] if asks(one) => ALL,
        _ => return None,
    };
    let command = Cli::command().arg_required_else_help(true);
    let groups = groups(&command);
    let command = command.help_template(template).after_help(groups);
    let asked = words.first().map(|_| OsString::from("-h"));
    let shown = command.try_get_matches_from(std::iter::once(program.clone()).chain(asked));
    shown.err()
}

/// Returns the command in backticks that explains the one in these words.
pub(super) fn help_of(words: impl Iterator<Item = String>) -> String {
    let (mut command, mut path) = (Cli::command(), "steadyhand".to_owned());
    for word in words {
        if let Some(inner) = command.find_subcommand(&word).cloned() {
            path = format!("{path} {}", inner.get_name());
            command = inner;
        }
    }
    format!("`{path} --help`")
}

/// Returns the groups, each with its commands.
fn groups(all: &Command) -> StyledStr {
    let styles = Styles::styled();
    let (heading, literal) = (styles.get_header(), styles.get_literal());
    let mut text = String::new();
    for (group, names) in GROUPS {
        text += &format!("{heading}{group}:{heading:#}\n");
        for name in names {
            let about = all.find_subcommand(name).and_then(Command::get_about);
            let about = about.map(ToString::to_string).unwrap_or_default();
            text += &format!("  {literal}{name:<11}{literal:#} {about}\n");
        }
        text.push('\n');
    }
    text +=
        "`steadyhand --help --all` lists every command. `steadyhand COMMAND --help` explains one.";
    text.into()
}
