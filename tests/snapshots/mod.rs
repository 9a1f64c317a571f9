//! Files that say what was true when a person last looked.
//!
//! A missing or different snapshot fails. `REWRITE_SNAPSHOTS=1 cargo test` rewrites them, for a person to read in the
//! difference before it is committed; nothing else ever writes one.

use std::path::{Path, PathBuf};

/// Compares `got` with `tests/snapshots/{name}`.
pub(crate) fn check(name: &str, got: &str) {
    let path = folder().join(name);
    if std::env::var_os("REWRITE_SNAPSHOTS").is_some_and(|set| set == "1") {
        std::fs::write(&path, got).unwrap();
        return;
    }
    let Ok(want) = std::fs::read_to_string(&path) else {
        panic!(
            "there is no snapshot {name}; look at this and, if it is right, run with REWRITE_SNAPSHOTS=1\n{got}"
        );
    };
    assert!(
        want == got,
        "{name} is not what it was; {}",
        first_difference(&want, got)
    );
}

/// Returns the folder of the snapshots.
pub(crate) fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/snapshots")
}

fn first_difference(want: &str, got: &str) -> String {
    let mut want = want.lines();
    let mut got = got.lines();
    let mut number = 0;
    loop {
        number += 1;
        match (want.next(), got.next()) {
            (None, None) => return "the ends of lines differ".to_owned(),
            (old, new) if old != new => {
                return format!(
                    "line {number}\n  was {}\n  is  {}",
                    old.unwrap_or("(end)"),
                    new.unwrap_or("(end)")
                );
            }
            _ => {}
        }
    }
}
