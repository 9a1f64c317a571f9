//! Every `steadyhand …` line of every page is a command that the program takes; `tests/node/book.rs` executes what can be
//! executed without an arm.
#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "a failing test may panic"
)]

use std::path::{Path, PathBuf};

use clap::CommandFactory;
use steadyhand::cli::Cli;

fn pages() -> Vec<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut pages = Vec::new();
    for folder in ["docs", "docs/internals"] {
        let inside = std::fs::read_dir(root.join(folder)).unwrap();
        pages.extend(inside.map(|entry| entry.unwrap().path()));
    }
    pages.retain(|path| path.extension().is_some_and(|ending| ending == "md"));
    pages.push(root.join("README.md"));
    pages.sort();
    pages
}

/// The commands of a page's `sh` blocks, and those in the second column of its tables.
fn commands(page: &str) -> Vec<String> {
    let (mut found, mut in_shell) = (Vec::new(), false);
    for line in page.replace("\\\n", " ").lines() {
        if line.starts_with("```") {
            in_shell = line == "```sh";
        } else if in_shell && line.starts_with("steadyhand ") {
            found.push(line.to_owned());
        } else if let Some(cell) = line.split(" | ").nth(1).filter(|_| line.starts_with("| ")) {
            let code = cell
                .strip_prefix('`')
                .and_then(|cell| cell.split('`').next());
            found.extend(
                code.filter(|code| code.starts_with("steadyhand "))
                    .map(str::to_owned),
            );
        }
    }
    found
}

/// Splits a line into words as a shell does, up to a comment, a pipe or a `&`.
fn words(line: &str) -> Vec<String> {
    let (mut text, mut quote, mut is_open) = (Vec::<String>::new(), None, false);
    for c in line.chars() {
        if quote == Some(c) {
            quote = None;
        } else if quote.is_none() && c == ' ' {
            is_open = false;
        } else if quote.is_none() && !is_open && "#&|>".contains(c) {
            break;
        } else {
            if !is_open {
                text.push(String::new());
                is_open = true;
            }
            if quote.is_none() && "'\"".contains(c) {
                quote = Some(c);
            } else {
                text.last_mut().unwrap().push(c);
            }
        }
    }
    text.into_iter().map(|word| chosen(&word)).collect()
}

/// The first of a page's alternatives, `viewer|planner`, and what may be left out, `[job-7]`, put in.
fn chosen(word: &str) -> String {
    if word.contains(['{', ' ']) {
        return word.to_owned();
    }
    let plain = word.trim_matches(['[', ']']);
    plain.split('|').next().unwrap_or_default().to_owned()
}

#[test]
fn every_command_on_a_page_is_one_that_the_program_takes() {
    let (mut received, mut refused) = (0, Vec::new());
    for path in pages() {
        let page = std::fs::read_to_string(&path).unwrap();
        for line in commands(&page) {
            received += 1;
            if let Err(error) = Cli::command().try_get_matches_from(words(&line)) {
                refused.push(format!("{}: {line}\n{error}", path.display()));
            }
        }
    }
    assert!(refused.is_empty(), "{}", refused.join("\n"));
    assert!(
        received > 120,
        "{received} commands: the pages were not read"
    );
}

#[test]
fn a_command_that_the_program_does_not_take_is_seen() {
    let line = "steadyhand stop --gently # no such option";
    assert_eq!(words(line), ["steadyhand", "stop", "--gently"]);
    assert!(Cli::command().try_get_matches_from(words(line)).is_err());
    let line = "steadyhand token add NAME --role viewer|planner 'a b'";
    assert_eq!(words(line)[4..], ["--role", "viewer", "a b"]);
}

/// Links between pages lead to a file, and to a heading where they name one. Those of `docs` stay in it: packages have that
/// folder alone.
#[test]
fn links_between_pages_lead_somewhere() {
    let docs = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs");
    let docs = docs.canonicalize().unwrap();
    let mut broken = Vec::new();
    for path in pages() {
        let is_packed = path.canonicalize().unwrap().starts_with(&docs);
        let page = std::fs::read_to_string(&path).unwrap();
        let links = page.split("](").skip(1).map(|rest| (rest, ')'));
        let pictures = page.split("src=\"").skip(1).map(|rest| (rest, '"'));
        for link in links
            .chain(pictures)
            .filter_map(|(rest, end)| rest.split(end).next())
        {
            if link.contains("://") || link.contains(' ') {
                continue;
            }
            let (file, heading) = link.split_once('#').unwrap_or((link, ""));
            let target = match file {
                "" => path.clone(),
                _ => path.parent().unwrap().join(file),
            };
            let text = std::fs::read_to_string(&target).unwrap_or_default();
            let is_there = target
                .canonicalize()
                .is_ok_and(|target| !is_packed || target.starts_with(&docs));
            let is_there =
                is_there && (heading.is_empty() || headings(&text).any(|h| h == heading));
            if !is_there {
                broken.push(format!("{}: {link}", path.display()));
            }
        }
    }
    assert!(broken.is_empty(), "{broken:#?}");
}

/// Words of a page that a reader reads: what has a letter or a digit.
fn word_count(page: &str) -> usize {
    let words = page.split_whitespace();
    words
        .filter(|word| word.chars().any(char::is_alphanumeric))
        .count()
}

#[test]
fn pages_that_everybody_reads_stay_short() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    for (page, words_max) in [
        ("README.md", 900),
        ("ARCHITECTURE.md", 2500),
        ("docs/draw-your-own.md", 800),
        ("docs/connect-a-model.md", 800),
        ("docs/first-line.md", 800),
        ("docs/troubleshooting.md", 800),
    ] {
        let words = word_count(&std::fs::read_to_string(root.join(page)).unwrap());
        assert!(
            words <= words_max,
            "{page} has {words} words; {words_max} are allowed"
        );
    }
}

/// Pages of users name no source and no test: those are in `docs/internals`.
#[test]
fn pages_of_users_name_no_source() {
    let mut named = Vec::new();
    for path in pages() {
        let page = std::fs::read_to_string(&path).unwrap();
        let is_internal = path
            .parent()
            .is_some_and(|folder| folder.ends_with("internals"));
        let codes = page.split('`').skip(1).step_by(2);
        let found = codes.filter(|code| code.ends_with(".rs") || code.starts_with("src/"));
        if !is_internal {
            named.extend(found.map(|code| format!("{}: {code}", path.display())));
        }
    }
    assert!(named.is_empty(), "{named:#?}");
}

/// Headings as links name them.
fn headings(page: &str) -> impl Iterator<Item = String> + '_ {
    let lines = page.lines().filter(|line| line.starts_with('#'));
    lines.map(|line| {
        let text = line.trim_start_matches('#').trim().to_lowercase();
        let kept = text
            .chars()
            .filter(|c| c.is_alphanumeric() || " -_".contains(*c));
        kept.map(|c| if c == ' ' { '-' } else { c }).collect()
    })
}
