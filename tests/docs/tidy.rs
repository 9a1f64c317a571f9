//! Holds what the compiler and cargo do not: who reads JSON, how long files and functions are, that
//! pages name what exists. Which room depends on which is in the manifests of `src/`; the table in
//! `ARCHITECTURE.md` repeats them with a reason.
#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    reason = "tests"
)]

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use crate::rust_text::{
    code, files, is_test_file, is_word, item_end, read, root, rust_files, shown, without_tests,
};

/// Rooms in which JSON stops being text; `tools` reads what it wrote into journals.
const JSON_READERS: [&str; 9] = [
    "args",
    "cli",
    "design",
    "exam",
    "mcp",
    "node",
    "page",
    "recording",
    "tools",
];
const JSON_READS: [&str; 3] = [
    "serde_json::from_str",
    "serde_json::from_slice",
    "serde_json::from_reader",
];

const FILE_LINES_MAX: usize = 1_000;
const FUNCTION_LINES_MAX: usize = 70;

fn room_of(path: &Path) -> String {
    let below = path.strip_prefix(root().join("src")).expect("in src");
    let first = below.components().next().expect("a name").as_os_str();
    first.to_string_lossy().trim_end_matches(".rs").to_owned()
}

fn words(text: &str) -> BTreeSet<String> {
    text.split_whitespace().map(str::to_owned).collect()
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

fn head(text: &str) -> Option<String> {
    let name: String = text.chars().take_while(|&c| is_word(c)).collect();
    (!name.is_empty()).then_some(name)
}

#[test]
fn json_stops_being_text_in_few_rooms() {
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

/// A device has no end, and a pipe makes its reader wait: `base::plain_file` reads plain files, and a bounded number of bytes.
#[test]
fn files_are_read_in_base_alone() {
    const READS: [&str; 5] = [
        "fs::read(",
        "fs::read_to_string(",
        "File::open(",
        ".read_to_end(",
        ".read_to_string(",
    ];
    for (_, files) in rooms().iter().filter(|(room, _)| *room != "base") {
        for (path, code) in files {
            let read = READS.iter().find(|read| code.contains(**read));
            assert!(read.is_none(), "{} has {read:?}", shown(path));
        }
    }
}

#[test]
fn only_driver_claims_the_authority_to_move_servos() {
    let rooms = rooms();
    let claims = |room: &str| {
        let files = rooms[room].iter();
        files
            .filter(|(_, code)| code.contains("MotionAuthority::claim"))
            .count()
    };
    let claiming: Vec<&String> = rooms.keys().filter(|room| claims(room) > 0).collect();
    assert_eq!(claiming, ["driver"]);
    assert_eq!(claims("driver"), 1, "one driver of servos");
}

/// Whoever waits for its turn must not take down the stops only then.
#[test]
fn one_function_stamps_what_arrives() {
    let rooms = rooms();
    let makes = |room: &String| {
        let files = rooms[room].iter();
        let stamps = files.map(|(_, code)| code.matches("ArrivalStamp::new(").count());
        stamps.sum::<usize>()
    };
    let making: Vec<(&String, usize)> = rooms.keys().map(|room| (room, makes(room))).collect();
    let making: Vec<_> = making.into_iter().filter(|(_, count)| *count > 0).collect();
    assert_eq!(making, [(&"tools".to_owned(), 1)]);
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

/// Names of the workspace's own crates that a room's manifest depends on, tests aside.
fn dependencies(room: &str) -> BTreeSet<String> {
    let manifest: toml::Table = read(&root().join("src").join(room).join("Cargo.toml"))
        .parse()
        .expect("a manifest");
    let all = manifest.get("dependencies").and_then(|d| d.as_table());
    let is_room = |name: &&String| root().join("src").join(name).is_dir();
    all.into_iter()
        .flat_map(toml::Table::keys)
        .filter(is_room)
        .cloned()
        .collect()
}

#[test]
fn the_architecture_page_has_the_rows_of_the_manifests() {
    let table = table();
    let mut above = BTreeSet::new();
    for (room, row) in &table {
        assert_eq!(
            *row,
            dependencies(room),
            "`{room}`: ARCHITECTURE.md on the left, its manifest on the right"
        );
        assert!(
            row.is_subset(&above),
            "`{room}` stands above what it imports"
        );
        above.insert(room.clone());
    }
    let rooms = fs::read_dir(root().join("src")).expect("src");
    let rooms = rooms
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.is_dir());
    let rooms: BTreeSet<String> = rooms
        .map(|path| path.file_name().unwrap().to_string_lossy().into_owned())
        .collect();
    assert_eq!(above, rooms, "rooms of ARCHITECTURE.md, and of src");
}

#[test]
fn the_architecture_page_names_files_that_exist() {
    let page = read(&root().join("ARCHITECTURE.md"));
    let mut count = 0;
    for name in page.split('`').skip(1).step_by(2) {
        let is_path = name.contains('/') && !name.contains([' ', '<', '*', ':', '…']);
        let is_file = is_path
            && [".rs", ".toml", ".md", "/"]
                .iter()
                .any(|e| name.ends_with(e));
        if is_file {
            count += 1;
            let here = root().join(name).exists() || root().join("src").join(name).exists();
            assert!(here, "ARCHITECTURE.md names {name}, which does not exist");
        }
    }
    assert!(count > 20, "only {count} files are named");
}

#[test]
fn pages_for_developers_name_types_that_exist() {
    let mut declared = BTreeSet::new();
    for path in rust_files(&["src", "firmware-protocol/src"]) {
        let text = read(&path);
        let mut before = "";
        for word in text.split(|c| !is_word(c)) {
            if ["struct", "enum", "trait", "type"].contains(&before) {
                declared.insert(word.to_owned());
            }
            before = word;
        }
    }
    for page in ["ARCHITECTURE.md", "docs/internals/families.md"] {
        let text = read(&root().join(page));
        let mut count = 0;
        for quoted in text.split('`').skip(1).step_by(2) {
            let name = quoted.split("::").next().unwrap_or_default();
            let name = name.split(' ').next().unwrap_or_default();
            let is_type = name.starts_with(char::is_uppercase)
                && name.chars().all(char::is_alphanumeric)
                && name.contains(char::is_lowercase);
            if is_type {
                count += 1;
                assert!(declared.contains(name), "{page} names the type {name}");
            }
        }
        assert!(count > 8, "only {count} types are named in {page}");
    }
}

/// A bare target is not on every machine; that the crate asks for nothing beyond `core` can be seen
/// without one.
#[test]
fn the_protocol_crate_needs_no_standard_library() {
    let mut sources = Vec::new();
    files(&root().join("firmware-protocol/src"), ".rs", &mut sources);
    let texts: Vec<String> = sources.iter().map(|path| read(path)).collect();
    let all_text = texts.concat();
    assert!(all_text.contains("#![no_std]"));
    let borrowed = all_text.matches("extern crate").count();
    let in_tests = all_text.matches("#[cfg(test)]\nextern crate").count();
    assert_eq!(borrowed, in_tests);
    let manifest = read(&root().join("firmware-protocol/Cargo.toml"));
    assert!(
        !manifest.contains("\n[dependencies]"),
        "it depends on nothing"
    );
}

/// Number of rows of the safety contract.
const INVARIANTS: usize = 46;

#[test]
fn the_page_of_invariants_names_a_test_for_each() {
    let page = read(&root().join("docs/internals/invariants.md"));
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
fn every_test_file_is_declared_in_its_program() {
    for program in ["docs", "library", "node", "timing"] {
        let folder = root().join("tests").join(program);
        let main = read(&folder.join("main.rs"));
        for entry in fs::read_dir(&folder).expect("a folder") {
            let name = entry.unwrap().file_name().to_string_lossy().into_owned();
            let name = name.trim_end_matches(".rs");
            let is_declared = name == "main" || main.contains(&format!("\nmod {name};"));
            assert!(
                is_declared,
                "tests/{program}/main.rs declares no `mod {name};`"
            );
        }
    }
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
    let text = "use a::B; /* crate::b */\n\
                // crate::c\nconst A: &str = \"crate::d\"; const Q: char = '\"'; use crate::e::F;\n\
                const R: &str = r#\"crate::g \" \"#; fn h<'a>(x: &'a str) { crate::i::j(x) }\n\
                #[cfg(test)]\n#[allow(dead_code)]\nmod tests { use crate::k; }\nuse crate::l;";
    let code = without_tests(&code(text));
    let left: Vec<&str> = code
        .split("crate::")
        .skip(1)
        .map(|rest| &rest[..1])
        .collect();
    assert_eq!(left, ["e", "i", "l"]);
    assert_eq!(
        functions("fn a() {\n}\nfn b();\nfn c() { {\n}\n}"),
        [("a".to_owned(), 2), ("c".to_owned(), 3)]
    );
}
