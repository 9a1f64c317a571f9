//! Holds the boundaries that the compiler does not: who imports whom, who reads JSON, how long
//! files and functions are.
//!
//! Rust's modules may import each other in circles, and nothing else would notice. A row is
//! changed in the commit that needs it, here and in `ARCHITECTURE.md`, with the reason.
#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    reason = "tests"
)]

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

/// Every room, from the bottom up, and exactly what it imports of the others. Each imports only
/// rooms above it in this list.
const ROOMS: [(&str, &str); 31] = [
    ("units", ""),
    ("clock", "units"),
    ("link", "clock units"),
    ("config", ""),
    ("disk", ""),
    ("kin", "units"),
    ("vision", ""),
    ("camera", "clock units vision"),
    ("design", ""),
    ("arm", "kin units"),
    ("scene", "arm config design units vision"),
    ("calib", "arm disk kin scene units"),
    ("plan", "arm kin scene units"),
    ("permit", "scene units"),
    ("gate", "arm kin permit plan scene units"),
    ("driver", "arm clock gate link units"),
    ("service", "arm clock driver link units"),
    ("motion", "arm clock driver gate link permit plan units"),
    ("sim", "arm kin link units vision"),
    ("job", "clock motion plan scene units"),
    ("args", "units"),
    ("caller", "disk units"),
    ("catalogue", ""),
    ("picture", "design"),
    ("fleet", "args clock"),
    ("exam", "args clock disk units"),
    (
        "tools",
        "args calib caller camera catalogue clock config design fleet gate job motion permit picture plan scene units vision",
    ),
    ("mcp", ""),
    (
        "cli",
        "args arm calib caller catalogue clock config design disk driver exam fleet gate job link mcp motion permit plan scene service sim tools units vision",
    ),
    ("main", "cli"),
    ("lib", ""),
];

/// What a room must never know, whatever else is added to its row: rooms, and crates.
const NEVER: [(&str, &str); 13] = [
    ("camera", "scene arm motion driver gate tools"),
    ("vision", "scene arm kin sim tools clock"),
    ("calib", "plan gate driver motion tools clock"),
    ("job", "tools mcp catalogue args"),
    ("gate", "motion driver tools mcp serde_json"),
    ("motion", "tools mcp catalogue args serde_json"),
    ("plan", "clock gate driver motion"),
    ("driver", "plan scene motion"),
    ("sim", "driver motion scene plan gate tools"),
    ("kin", "scene plan"),
    ("args", "catalogue tools mcp"),
    ("exam", "link driver motion mcp tools"),
    ("mcp", "motion gate driver link scene plan"),
];

/// Crates that have few homes.
const CRATE_HOMES: [(&str, &str); 18] = [
    ("apriltag", "vision"),
    ("listenfd", "cli"),
    ("ed25519_dalek", "job"),
    ("getrandom", "caller job"),
    ("rusqlite", "exam"),
    ("rmcp", "mcp"),
    ("axum", "mcp"),
    ("hyper", "camera mcp"),
    ("jpeg_decoder", "camera"),
    ("linuxvideo", "camera"),
    ("clap", "cli main"),
    ("anyhow", "cli"),
    ("indicatif", "cli"),
    ("ratatui", "cli"),
    ("tokio_serial", "link"),
    ("usvg", "design"),
    ("roxmltree", "arm"),
    ("tiny_skia", "picture"),
];

/// Where JSON stops being text.
const JSON_READERS: [&str; 5] = ["args", "cli", "design", "exam", "mcp"];
const JSON_READS: [&str; 3] = [
    "serde_json::from_str",
    "serde_json::from_slice",
    "serde_json::from_reader",
];

const FILE_LINES_MAX: usize = 1_000;
const FUNCTION_LINES_MAX: usize = 70;

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn read(path: &Path) -> String {
    fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// Every file below `folder` that has this ending, in order.
fn files(folder: &Path, ending: &str, into: &mut Vec<PathBuf>) {
    let entries = fs::read_dir(folder).unwrap_or_else(|e| panic!("{}: {e}", folder.display()));
    let mut paths: Vec<PathBuf> = entries.map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    for path in paths {
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        if path.is_dir() && name != "target" && name != ".git" {
            files(&path, ending, into);
        } else if path.is_file() && name.ends_with(ending) {
            into.push(path);
        }
    }
}

fn rust_files(folders: &[&str]) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for folder in folders.iter().map(|folder| root().join(folder)) {
        if folder.is_dir() {
            files(&folder, ".rs", &mut found);
        }
    }
    assert!(!found.is_empty(), "no Rust file in {folders:?}");
    found
}

fn shown(path: &Path) -> String {
    let short = path.strip_prefix(root()).unwrap_or(path);
    short.display().to_string()
}

fn room_of(path: &Path) -> String {
    let below = path.strip_prefix(root().join("src")).expect("in src");
    let first = below.components().next().expect("a name").as_os_str();
    first.to_string_lossy().trim_end_matches(".rs").to_owned()
}

fn words(text: &str) -> BTreeSet<String> {
    text.split_whitespace().map(str::to_owned).collect()
}

fn is_word(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

/// The text with comments, strings and characters blanked out, so that what is left is code; lines
/// stay where they are.
fn code(text: &str) -> String {
    let chars: Vec<char> = text.chars().collect();
    let mut out = String::with_capacity(text.len());
    let mut at = 0;
    while at < chars.len() {
        let end = blank_end(&chars, at);
        if end == at {
            out.push(chars[at]);
            at += 1;
            continue;
        }
        out.extend(
            chars[at..end]
                .iter()
                .map(|&c| if c == '\n' { '\n' } else { ' ' }),
        );
        at = end;
    }
    out
}

/// Where a comment, string or character that begins at `at` ends; `at` itself if none does.
fn blank_end(chars: &[char], at: usize) -> usize {
    let rest = &chars[at..];
    let after_word = at > 0 && is_word(chars[at - 1]);
    let length = match rest {
        ['/', '/', ..] => rest.iter().position(|&c| c == '\n').unwrap_or(rest.len()),
        ['/', '*', ..] => block_comment(rest),
        ['"', ..] => string(rest),
        ['r', '"' | '#', ..] if !after_word => raw_string(rest),
        ['b', 'r', '"' | '#', ..] if !after_word => 1 + raw_string(&rest[1..]),
        ['\'', '\\', _, tail @ ..] => 3 + tail.iter().position(|&c| c == '\'').map_or(0, |i| i + 1),
        ['\'', _, '\'', ..] => 3,
        _ => 0,
    };
    at + length
}

fn block_comment(rest: &[char]) -> usize {
    let (mut depth, mut at) = (0_usize, 0);
    while at + 1 < rest.len() {
        match (rest[at], rest[at + 1]) {
            ('/', '*') => depth += 1,
            ('*', '/') => depth -= 1,
            _ => {
                at += 1;
                continue;
            }
        }
        at += 2;
        if depth == 0 {
            return at;
        }
    }
    rest.len()
}

fn string(rest: &[char]) -> usize {
    let mut at = 1;
    while at < rest.len() {
        match rest[at] {
            '\\' => at += 2,
            '"' => return at + 1,
            _ => at += 1,
        }
    }
    rest.len()
}

/// `rest` begins with `r`; a raw identifier such as `r#type` has no end of its own.
fn raw_string(rest: &[char]) -> usize {
    let hashes = rest[1..].iter().take_while(|&&c| c == '#').count();
    if rest.get(1 + hashes) != Some(&'"') {
        return 0;
    }
    let close: Vec<char> = std::iter::once('"')
        .chain(std::iter::repeat_n('#', hashes))
        .collect();
    let body = 2 + hashes;
    let found = rest[body..]
        .windows(close.len())
        .position(|window| window == close);
    found.map_or(rest.len(), |i| body + i + close.len())
}

/// The end of the item that begins at `at`: its `;`, or the brace that closes its first one.
fn item_end(code: &str, at: usize) -> usize {
    let mut depth = 0_usize;
    for (offset, c) in code[at..].char_indices() {
        match c {
            '{' => depth += 1,
            '}' if depth <= 1 => return at + offset + 1,
            '}' => depth -= 1,
            ';' if depth == 0 => return at + offset + 1,
            _ => {}
        }
    }
    code.len()
}

/// Code without its tests: they may stand on any room.
fn without_tests(code: &str) -> String {
    const MARK: &str = "#[cfg(test)]";
    let mut out = String::new();
    let mut rest = code;
    while let Some(found) = rest.find(MARK) {
        out.push_str(&rest[..found]);
        let mut item = found + MARK.len();
        // Further attributes belong to the same item.
        while rest[item..].trim_start().starts_with("#[") {
            item += rest[item..].find(']').expect("an attribute ends") + 1;
        }
        rest = &rest[item_end(rest, item)..];
    }
    out.push_str(rest);
    out
}

fn is_test_file(path: &Path) -> bool {
    path.components()
        .any(|part| ["tests.rs", "tests"].iter().any(|t| part.as_os_str() == *t))
}

/// The code of every room, tests aside.
fn rooms() -> BTreeMap<String, Vec<(PathBuf, String)>> {
    let mut rooms: BTreeMap<String, Vec<(PathBuf, String)>> = BTreeMap::new();
    let src = rust_files(&["src"]);
    for path in src.into_iter().filter(|path| !is_test_file(path)) {
        let text = without_tests(&code(&read(&path)));
        rooms.entry(room_of(&path)).or_default().push((path, text));
    }
    rooms
}

/// What stands after each `prefix` that begins a path: one name, or the first names of a group.
fn names_after(code: &str, prefix: &str) -> BTreeSet<String> {
    let mut names = BTreeSet::new();
    for (at, _) in code.match_indices(prefix) {
        if code[..at].ends_with(|c: char| is_word(c) || c == ':') {
            continue;
        }
        let rest = code[at + prefix.len()..].trim_start();
        match rest.strip_prefix('{') {
            Some(group) => names.extend(group_heads(group)),
            None => names.extend(head(rest)),
        }
    }
    names
}

fn head(text: &str) -> Option<String> {
    let name: String = text.chars().take_while(|&c| is_word(c)).collect();
    (!name.is_empty()).then_some(name)
}

fn group_heads(group: &str) -> Vec<String> {
    let (mut depth, mut heads, mut begins) = (1_usize, Vec::new(), true);
    for (at, c) in group.char_indices() {
        match c {
            '{' => depth += 1,
            '}' => depth -= 1,
            ',' if depth == 1 => begins = true,
            c if begins && !c.is_whitespace() => {
                heads.extend(head(&group[at..]));
                begins = false;
            }
            _ => {}
        }
        if depth == 0 {
            break;
        }
    }
    heads
}

/// How many modules deep a file is: `super` as often leaves its room.
fn depth(path: &Path) -> usize {
    let below = path.strip_prefix(root().join("src")).expect("in src");
    let parts = below.components().count();
    if below.ends_with("mod.rs") {
        parts - 1
    } else {
        parts
    }
}

fn imports(files: &[(PathBuf, String)], room: &str) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    for (path, code) in files {
        found.extend(names_after(code, "crate::"));
        found.extend(names_after(code, "steadyhand::"));
        let leaving = "super::".repeat(depth(path));
        assert!(
            !code.contains(&leaving),
            "{} leaves its room by `super`; write `crate::`",
            shown(path)
        );
    }
    found.remove(room);
    found
}

#[test]
fn every_room_imports_exactly_its_row() {
    let rooms = rooms();
    let known: BTreeSet<&str> = ROOMS.iter().map(|(room, _)| *room).collect();
    for (room, row) in ROOMS {
        let files = rooms
            .get(room)
            .unwrap_or_else(|| panic!("there is no room `{room}` in src"));
        let found = imports(files, room);
        assert_eq!(
            found,
            words(row),
            "`{room}` imports the first, its row says the second"
        );
    }
    for room in rooms.keys() {
        assert!(
            known.contains(room.as_str()),
            "`{room}` has no row in tests/tidy.rs"
        );
    }
}

#[test]
fn every_room_imports_only_rooms_above_it() {
    let mut above = BTreeSet::new();
    for (room, row) in ROOMS {
        let below: Vec<String> = words(row).difference(&above).cloned().collect();
        assert!(
            below.is_empty(),
            "`{room}` imports {below:?}, which stand below it"
        );
        above.insert(room.to_owned());
    }
}

#[test]
fn no_room_knows_what_it_must_never_know() {
    let rooms = rooms();
    for (room, never) in NEVER {
        let files = rooms.get(room).expect("a room");
        let known = imports(files, room);
        for name in words(never) {
            assert!(!known.contains(&name), "`{room}` must never know `{name}`");
            for (path, code) in files.iter().filter(|_| name == "serde_json") {
                assert!(!mentions(code, &name), "{} uses {name}", shown(path));
            }
        }
    }
}

/// Whether a path begins with this crate.
fn mentions(code: &str, name: &str) -> bool {
    let path = format!("{name}::");
    code.match_indices(&path)
        .any(|(at, _)| !code[..at].ends_with(|c: char| is_word(c) || c == ':'))
}

#[test]
fn crates_stay_in_their_rooms() {
    for (room, files) in rooms() {
        for (name, homes) in CRATE_HOMES {
            for (path, code) in &files {
                assert!(
                    words(homes).contains(&room) || !mentions(code, name),
                    "{} uses {name}, whose home is {homes}",
                    shown(path)
                );
            }
        }
    }
}

#[test]
fn json_stops_being_text_in_five_rooms() {
    for (room, files) in rooms() {
        for (path, code) in &files {
            assert!(
                JSON_READERS.contains(&room.as_str())
                    || !JSON_READS.iter().any(|read| code.contains(read)),
                "{} reads JSON, which is done in {JSON_READERS:?}",
                shown(path)
            );
        }
    }
}

/// The rows of the table under "Rooms": room and imports.
fn table() -> Vec<(String, BTreeSet<String>)> {
    let page = read(&root().join("ARCHITECTURE.md"));
    let rooms = page.split("\n## Rooms\n").nth(1).expect("a part `Rooms`");
    let rooms = rooms.split("\n## ").next().expect("its text");
    let rows = rooms.lines().filter(|line| line.starts_with("| `"));
    rows.map(|line| {
        let cells: Vec<&str> = line.split('|').map(str::trim).collect();
        let imports = cells.get(3).expect("a cell `imports`").replace('`', " ");
        (cells[1].replace('`', ""), words(&imports))
    })
    .collect()
}

#[test]
fn the_architecture_page_has_the_same_rows() {
    let held: Vec<(String, BTreeSet<String>)> = ROOMS
        .iter()
        .filter(|(room, _)| *room != "lib")
        .map(|(room, row)| ((*room).to_owned(), words(row)))
        .collect();
    assert_eq!(table(), held, "ARCHITECTURE.md on the left");
}

#[test]
fn the_architecture_page_names_files_that_exist() {
    let page = read(&root().join("ARCHITECTURE.md"));
    let mut seen = 0;
    for name in page.split('`').skip(1).step_by(2) {
        let is_path = name.contains('/') && !name.contains([' ', '<', '*', ':', '…']);
        let is_file = is_path
            && [".rs", ".toml", ".md", "/"]
                .iter()
                .any(|e| name.ends_with(e));
        if is_file {
            seen += 1;
            let here = root().join(name).exists() || root().join("src").join(name).exists();
            assert!(here, "ARCHITECTURE.md names {name}, which does not exist");
        }
    }
    assert!(seen > 20, "only {seen} files are named");
}

/// A bare target is not on every machine; that the crate asks for nothing beyond `core` can be seen
/// without one.
#[test]
fn the_protocol_crate_needs_no_standard_library() {
    let mut sources = Vec::new();
    files(&root().join("firmware-protocol/src"), ".rs", &mut sources);
    let texts: Vec<String> = sources.iter().map(|path| read(path)).collect();
    let whole = texts.concat();
    assert!(whole.contains("#![no_std]"));
    let borrowed = whole.matches("extern crate").count();
    let in_tests = whole.matches("#[cfg(test)]\nextern crate").count();
    assert_eq!(borrowed, in_tests);
    let manifest = read(&root().join("firmware-protocol/Cargo.toml"));
    assert!(
        !manifest.contains("\n[dependencies]"),
        "it depends on nothing"
    );
}

/// The safety contract has so many.
const INVARIANTS: usize = 37;

#[test]
fn the_page_of_invariants_names_a_test_for_each() {
    let page = read(&root().join("docs/invariants.md"));
    let rows = page.lines().filter(|line| line.starts_with("| ")).skip(1);
    let mut numbers = Vec::new();
    for row in rows {
        let (mut file, mut tests) = (String::new(), 0);
        for word in row.split('`').skip(1).step_by(2) {
            if word.ends_with(".rs") {
                file = read(&root().join(word));
            } else if word.contains('_') {
                let is_test = file.contains(&format!("fn {word}("));
                assert!(is_test, "no test {word}: {row}");
                tests += 1;
            }
        }
        assert!(tests > 0, "{row}");
        numbers.push(row.split('|').nth(1).unwrap().trim().to_owned());
    }
    let all: Vec<String> = (1..=INVARIANTS).map(|number| number.to_string()).collect();
    assert_eq!(numbers, all);
}

#[test]
fn every_file_says_first_what_it_is_for() {
    for path in rust_files(&[
        "src",
        "tests",
        "firmware-protocol/src",
        "firmware-protocol/tests",
    ]) {
        assert!(
            read(&path).starts_with("//! "),
            "{} does not begin with `//! `",
            shown(&path)
        );
    }
}

#[test]
fn no_file_and_no_function_is_too_long() {
    for path in rust_files(&[
        "src",
        "tests",
        "firmware-protocol/src",
        "firmware-protocol/tests",
    ]) {
        let text = read(&path);
        let lines = text.lines().count();
        assert!(
            lines <= FILE_LINES_MAX,
            "{} has {lines} lines; {FILE_LINES_MAX} are allowed",
            shown(&path)
        );
        // A test may be a long table of cases.
        let judged = if is_test_file(&path) {
            String::new()
        } else {
            without_tests(&code(&text))
        };
        for (name, lines) in functions(&judged) {
            assert!(
                lines <= FUNCTION_LINES_MAX,
                "fn {name} in {} has {lines} lines; {FUNCTION_LINES_MAX} are allowed",
                shown(&path)
            );
        }
    }
}

/// Every function with a body, and how many lines it has.
fn functions(code: &str) -> Vec<(String, usize)> {
    let mut found = Vec::new();
    for (at, _) in code.match_indices("fn ") {
        if code[..at].ends_with(is_word) {
            continue;
        }
        let item = &code[at..item_end(code, at)];
        if let Some(name) = head(&item[3..]).filter(|_| item.ends_with('}')) {
            found.push((name, item.lines().count()));
        }
    }
    found
}

#[test]
fn nothing_names_somebodys_machine() {
    // Put together here, so that this file does not name them itself.
    let homes = ["work", "home", "root", "Users"].map(|home| format!("/{home}/"));
    let mut all = Vec::new();
    for ending in [
        ".rs", ".toml", ".md", ".json", ".service", ".rules", ".py", ".sh", "run", "justfile",
    ] {
        files(root(), ending, &mut all);
    }
    for path in all {
        let Ok(text) = fs::read_to_string(&path) else {
            continue;
        };
        for home in &homes {
            assert!(!text.contains(home), "{} names {home}", shown(&path));
        }
    }
}

#[test]
fn the_reader_of_code_is_not_fooled() {
    let text = "use crate::{units::{Joints, Instant}, /* crate::b */ arm};\n\
                // crate::c\nconst A: &str = \"crate::d\"; const Q: char = '\"'; use crate::e::F;\n\
                const R: &str = r#\"crate::g \" \"#; fn h<'a>(x: &'a str) { crate::i::j(x) }\n\
                #[cfg(test)]\n#[allow(dead_code)]\nmod tests { use crate::k; }\nuse crate::l;";
    let found = names_after(&without_tests(&code(text)), "crate::");
    assert_eq!(found, words("units arm e i l"));
    assert_eq!(
        functions("fn a() {\n}\nfn b();\nfn c() { {\n}\n}"),
        [("a".to_owned(), 2), ("c".to_owned(), 3)]
    );
}
