//! Problems of a node file, each with its place.

use std::fmt::Display;

/// A problem and its place: a path such as `tools[0].name`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConfigProblem {
    /// Place in the file.
    pub path: String,
    /// Description of the problem, with the value and the fix.
    pub what: String,
}

impl ConfigProblem {
    /// Creates a problem at a path.
    #[must_use]
    pub fn at(path: impl Into<String>, what: impl Into<String>) -> Self {
        Self {
            path: path.into(),
            what: what.into(),
        }
    }
}

/// Problems found so far, and the part of the file that is being checked.
#[derive(Default)]
pub(super) struct ProblemList {
    pub(super) found: Vec<ConfigProblem>,
    part: String,
}

impl ProblemList {
    /// Checks a part of the current part, such as `tools[0]`.
    pub(super) fn within(&mut self, part: &str, check: impl FnOnce(&mut Self)) {
        let path = self.path(part);
        let outer = std::mem::replace(&mut self.part, path);
        check(self);
        self.part = outer;
    }

    fn path(&self, key: &str) -> String {
        match (self.part.as_str(), key) {
            ("", only) | (only, "") => only.to_owned(),
            (part, key) => format!("{part}.{key}"),
        }
    }

    /// Adds a problem with a key of the part, or with the part as a whole if the key is empty.
    pub(super) fn add(&mut self, key: &str, what: impl Into<String>) {
        self.found.push(ConfigProblem::at(self.path(key), what));
    }

    /// Adds a problem unless `is_fine`.
    pub(super) fn check<S: Into<String>>(
        &mut self,
        is_fine: bool,
        key: &str,
        what: impl FnOnce() -> S,
    ) {
        if !is_fine {
            self.add(key, what());
        }
    }

    /// Adds a problem if a number is out of its range; `shown` is its name in messages.
    pub(super) fn range<T: Copy + PartialOrd + Display>(
        &mut self,
        key: &str,
        shown: &str,
        value: T,
        [least, most]: [T; 2],
    ) {
        self.check(least <= value && value <= most, key, || {
            format!("{shown} is {value}; {least} to {most} are possible")
        });
    }
}
