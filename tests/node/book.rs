//! Pages of `docs/`, executed: their files are written, their commands run, and what these print is
//! what the page says. A dot, dot, dot in a page stands for anything.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::print_stdout,
    clippy::disallowed_methods,
    reason = "a failing test may panic, and says what was printed"
)]

use crate::support;
use std::path::Path;
use std::process::{Command, Stdio};

/// The address of the node that the pages start; a test's has a port of its own.
const ADDRESS: &str = "127.0.0.1:8700";

/// A block of the page, in the page's order.
enum Block {
    /// A file of this name.
    File(String, String),
    /// Commands, a line each.
    Commands(String),
    /// The output of the commands before it.
    Printed(String),
}

fn blocks(page: &str) -> Vec<Block> {
    let mut blocks = Vec::new();
    let mut lines = page.lines();
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

/// The program with a line's words, in a folder of its own.
fn command(folder: &Path, line: &str) -> Command {
    // As a shell takes it: these lines have no quotes but single ones, and no variables.
    let mut args = Vec::new();
    for (index, part) in line.split('\'').enumerate() {
        if index % 2 == 1 {
            args.push(part.to_owned());
        } else {
            let code = part.split(" #").next().unwrap();
            args.extend(code.split_whitespace().map(str::to_owned));
        }
    }
    assert_eq!(args.remove(0), "steadyhand", "{line}");
    let mut command = Command::new(support::binary());
    command
        .current_dir(folder)
        .env("XDG_RUNTIME_DIR", folder)
        .env("XDG_STATE_HOME", folder.join("state"))
        .env("HOME", folder)
        .env_remove("STATE_DIRECTORY")
        .env_remove("RUNTIME_DIRECTORY")
        .env_remove("STEADYHAND_LOG")
        .args(&args)
        .stdin(Stdio::null());
    command
}

/// Runs a line and returns what it prints; it must end well.
fn run(folder: &Path, line: &str) -> String {
    println!("$ {line}");
    let output = command(folder, line).output().unwrap();
    let printed =
        String::from_utf8(output.stdout).unwrap() + &String::from_utf8_lossy(&output.stderr);
    println!("{printed}");
    assert!(output.status.success(), "{line}: {printed}");
    printed
}

/// Tells if a line is what the page shows, where `…` is anything.
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

/// Does what a page says, in its order, and returns how many commands it has.
fn follow(page: &str, folder: &Path) -> usize {
    let (mut printed, mut commands) = (String::new(), 0);
    for block in blocks(page) {
        match block {
            Block::File(name, text) => {
                let path = folder.join(name);
                std::fs::create_dir_all(path.parent().unwrap()).unwrap();
                std::fs::write(path, text).unwrap();
            }
            Block::Commands(lines) => {
                printed.clear();
                for line in lines.lines() {
                    printed.push_str(&run(folder, line));
                    commands += 1;
                }
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
    commands
}

#[test]
fn a_simulated_arm_is_calibrated_as_its_page_says() {
    let folder = tempfile::tempdir().unwrap();
    let commands = follow(include_str!("../../docs/practice.md"), folder.path());
    assert!(commands >= 8, "{commands} commands: the page was not read");
}

#[test]
fn a_file_is_drawn_as_its_page_says() {
    let folder = tempfile::tempdir().unwrap();
    let commands = follow(include_str!("../../docs/draw-your-own.md"), folder.path());
    assert!(commands >= 8, "{commands} commands: the page was not read");
}

#[test]
fn a_model_is_connected_as_its_page_says() {
    let folder = tempfile::tempdir().unwrap();
    let page = include_str!("../../docs/connect-a-model.md");
    let commands = follow(page, folder.path());
    assert!(commands >= 6, "{commands} commands: the page was not read");
}

/// The commands of a table's second column below a heading.
fn tasks(heading: &str) -> Vec<String> {
    let page = include_str!("../../docs/tasks.md");
    let part = page.split("\n## ").find(|part| part.starts_with(heading));
    let rows = part.unwrap().lines().filter(|line| line.starts_with("| "));
    let cells = rows.filter_map(|row| row.split(" | ").nth(1));
    cells
        .filter_map(|cell| cell.split('`').nth(1))
        .map(str::to_owned)
        .collect()
}

#[test]
fn tasks_without_an_arm_are_done_by_their_commands() {
    let folder = tempfile::tempdir().unwrap();
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let design = folder.path().join("drawing.svg");
    std::fs::copy(root.join("scenes/designs/fish.svg"), design).unwrap();
    let tasks = tasks("Without an arm");
    assert!(tasks.len() >= 8, "{tasks:?}");
    for line in tasks {
        run(folder.path(), &line);
    }
}

#[test]
fn tasks_beside_a_node_are_done_by_their_commands() {
    let folder = tempfile::tempdir().unwrap();
    let mut tasks = tasks("Beside a node").into_iter();
    let serve = tasks.next().unwrap().replace(ADDRESS, "127.0.0.1:0");
    let node = support::served(command(folder.path(), &serve));
    assert!(tasks.len() >= 8, "{tasks:?}");
    for line in tasks {
        run(folder.path(), &line.replace(ADDRESS, &node.host()));
    }
}

#[test]
fn tasks_at_a_port_are_done_by_their_commands() {
    support::unless_starved(|| {
        let bench = support::Bench::new();
        let folder = tempfile::tempdir().unwrap();
        let (_arm, port) = bench.sim(&[]);
        let mut tasks = tasks("At an arm");
        // What writes into a servo asks a person first.
        tasks.retain(|line| line.contains(" PORT") && !line.contains("configure"));
        assert!(tasks.len() >= 3, "{tasks:?}");
        for line in tasks {
            run(folder.path(), &line.replace("PORT", &port));
        }
    });
}
