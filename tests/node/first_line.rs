//! `docs/first-line.md`, executed: its files are written, its commands run, and what they print is
//! what the page says. A dot, dot, dot in the page stands for anything.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::print_stdout,
    clippy::disallowed_methods,
    reason = "a failing test may panic, and says what was printed"
)]

use crate::support;
use std::path::Path;
use std::process::Command;

const PAGE: &str = include_str!("../../docs/first-line.md");

/// What the page has, in its order.
enum Block {
    /// A file of this name.
    File(String, String),
    /// Commands, a line each.
    Commands(String),
    /// What the commands before it print.
    Printed(String),
}

fn blocks() -> Vec<Block> {
    let mut blocks = Vec::new();
    let mut lines = PAGE.lines();
    while let Some(line) = lines.next() {
        let Some(kind) = line.strip_prefix("```") else {
            continue;
        };
        let inside: Vec<&str> = lines.by_ref().take_while(|line| *line != "```").collect();
        let text = inside.join("\n");
        match kind.split_once(" file=") {
            Some((_, name)) => blocks.push(Block::File(name.to_owned(), text)),
            None if kind == "sh" => blocks.push(Block::Commands(text)),
            None if kind == "text" => blocks.push(Block::Printed(text)),
            // What is meant for metal is shown and not done.
            None => {}
        }
    }
    blocks
}

fn run(folder: &Path, line: &str) -> String {
    // As a shell takes it: these lines have no quotes but single ones, and no variables.
    let mut words = Vec::new();
    for (index, part) in line.split('\'').enumerate() {
        if index % 2 == 1 {
            words.push(part.to_owned());
        } else {
            let code = part.split(" #").next().unwrap();
            words.extend(code.split_whitespace().map(str::to_owned));
        }
    }
    assert_eq!(words.remove(0), "steadyhand", "{line}");
    let output = Command::new(support::binary())
        .current_dir(folder)
        .env("XDG_RUNTIME_DIR", folder)
        .env("XDG_STATE_HOME", folder.join("state"))
        .env_remove("STATE_DIRECTORY")
        .env_remove("RUNTIME_DIRECTORY")
        .env_remove("STEADYHAND_LOG")
        .args(&words)
        .output()
        .unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    text + &String::from_utf8_lossy(&output.stderr)
}

/// Whether a line is what the page shows, where `…` is anything.
fn is_like(shown: &str, line: &str) -> bool {
    let mut parts = shown.trim().split('…');
    let first = parts.next().unwrap();
    let Some(mut rest) = line.trim().strip_prefix(first) else {
        return false;
    };
    let mut open = false;
    for part in parts {
        open = part.is_empty();
        match rest.find(part) {
            Some(at) => rest = &rest[at + part.len()..],
            None => return false,
        }
    }
    open || rest.is_empty()
}

#[test]
fn the_page_says_what_happens() {
    let folder = tempfile::tempdir().unwrap();
    let (mut printed, mut commands) = (String::new(), 0);
    for block in blocks() {
        match block {
            Block::File(name, text) => {
                let path = folder.path().join(name);
                std::fs::create_dir_all(path.parent().unwrap()).unwrap();
                std::fs::write(path, text).unwrap();
            }
            Block::Commands(lines) => {
                printed.clear();
                for line in lines.lines() {
                    println!("$ {line}");
                    printed.push_str(&run(folder.path(), line));
                    commands += 1;
                }
                println!("{printed}");
            }
            Block::Printed(shown) => {
                let mut lines = printed.lines();
                for shown in shown.lines().filter(|line| line.trim() != "…") {
                    let found = lines.any(|line| is_like(shown, line));
                    assert!(
                        found,
                        "the page shows {shown:?}, and this was printed:\n{printed}"
                    );
                }
            }
        }
    }
    assert!(commands >= 8, "{commands} commands: the page was not read");
}
