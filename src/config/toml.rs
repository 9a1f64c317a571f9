//! TOML files by people: every unknown key at once, each with the nearest known one.

use schemars::{JsonSchema, Schema};
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

/// Everything that is wrong with one file.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[error("{file}: {}", problems.join("; "))]
pub struct FileError {
    /// The file, as the reader was told to call it.
    pub file: String,
    /// Each with its place, the value and the fix.
    pub problems: Vec<String>,
}

impl FileError {
    /// One problem with a file.
    #[must_use]
    pub fn one(file: &str, problem: impl Into<String>) -> Self {
        Self {
            file: file.to_owned(),
            problems: vec![problem.into()],
        }
    }
}

/// Reads `text` as a `T`; `file` is what messages call it.
///
/// # Errors
/// Unknown keys, all of them; else the first thing that TOML or a type refuses.
pub fn read<T: DeserializeOwned + JsonSchema>(file: &str, text: &str) -> Result<T, FileError> {
    let table: toml::Table = parse(file, text)?;
    check_keys::<T>(file, &table, text)?;
    parse(file, text)
}

/// Reads an already parsed table as a `T`, as [`read`] does.
///
/// # Errors
/// As [`read`].
pub fn from_table<T: DeserializeOwned + JsonSchema>(
    file: &str,
    table: toml::Table,
) -> Result<T, FileError> {
    check_keys::<T>(file, &table, "")?;
    T::deserialize(toml::Value::Table(table))
        .map_err(|error| FileError::one(file, error.message().to_owned()))
}

fn parse<T: DeserializeOwned>(file: &str, text: &str) -> Result<T, FileError> {
    toml::from_str(text).map_err(|error| {
        let line = error.span().map_or(1, |span| line_of(text, span.start));
        FileError::one(file, format!("line {line}: {}", error.message()))
    })
}

fn line_of(text: &str, byte: usize) -> usize {
    text.bytes()
        .take(byte)
        .filter(|byte| *byte == b'\n')
        .count()
        + 1
}

fn check_keys<T: JsonSchema>(file: &str, table: &toml::Table, text: &str) -> Result<(), FileError> {
    let schema = schemars::schema_for!(T);
    let mut walk = Walk {
        root: &schema,
        text,
        problems: Vec::new(),
    };
    walk.table(schema.as_value(), table, "");
    if walk.problems.is_empty() {
        Ok(())
    } else {
        Err(FileError {
            file: file.to_owned(),
            problems: walk.problems,
        })
    }
}

struct Walk<'a> {
    root: &'a Schema,
    text: &'a str,
    problems: Vec<String>,
}

impl Walk<'_> {
    fn table(&mut self, schema: &Value, table: &toml::Table, path: &str) {
        let Some(known) = self.properties(schema) else {
            return;
        };
        for (key, value) in table {
            match known.get(key) {
                Some(inner) => self.value(inner, value, &format!("{path}{key}")),
                None => self.unknown(key, path, &known),
            }
        }
    }

    fn value(&mut self, schema: &Value, value: &toml::Value, path: &str) {
        match value {
            toml::Value::Table(table) => self.table(schema, table, &format!("{path}.")),
            toml::Value::Array(items) => {
                let Some(inner) = self.find(schema, "items") else {
                    return;
                };
                for (index, item) in items.iter().enumerate() {
                    self.value(&inner, item, &format!("{path}[{index}]"));
                }
            }
            _ => {}
        }
    }

    fn unknown(&mut self, key: &str, path: &str, known: &Map<String, Value>) {
        let mut names: Vec<&str> = known.keys().map(String::as_str).collect();
        names.sort_by_key(|name| strsim::damerau_levenshtein(name, key));
        let line = super::lines::line(self.text, &format!("{path}{key}"))
            .filter(|_| !self.text.is_empty())
            .map_or(String::new(), |line| format!("line {line}: "));
        let others = names.get(1..).unwrap_or(&[]).join("`, `");
        let nearest = names.first().copied().unwrap_or("nothing");
        self.problems.push(format!(
            "{line}unknown key `{path}{key}`; did you mean `{nearest}`? (also known: `{others}`)"
        ));
    }

    fn properties(&self, schema: &Value) -> Option<Map<String, Value>> {
        self.find(schema, "properties")?.as_object().cloned()
    }

    /// The first value of `keyword` in a schema, what it refers to, or its alternatives.
    fn find(&self, schema: &Value, keyword: &str) -> Option<Value> {
        if let Some(found) = schema.get(keyword) {
            return Some(found.clone());
        }
        if let Some(name) = schema.get("$ref").and_then(Value::as_str) {
            let pointer = name.trim_start_matches('#');
            return self.find(self.root.as_value().pointer(pointer)?, keyword);
        }
        let alternatives = schema
            .get("anyOf")
            .or_else(|| schema.get("allOf"))?
            .as_array()?;
        alternatives.iter().find_map(|one| self.find(one, keyword))
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a failing test may panic")]
mod tests {
    use super::*;
    use serde::Deserialize;

    #[derive(Debug, Deserialize, JsonSchema)]
    #[serde(deny_unknown_fields)]
    #[expect(dead_code, reason = "only its shape is read")]
    struct Outer {
        speed: f64,
        inner: Option<Vec<Inner>>,
    }

    #[derive(Debug, Deserialize, JsonSchema)]
    #[serde(deny_unknown_fields)]
    #[expect(dead_code, reason = "only its shape is read")]
    struct Inner {
        depth_mm: f64,
    }

    #[test]
    fn every_unknown_key_is_named_with_the_nearest() {
        let text = "speed = 1.0\nsped = 2\n[[inner]]\ndepth_mn = 3.0\n";
        let error = read::<Outer>("a.toml", text).unwrap_err().to_string();
        assert!(
            error.contains("line 2: unknown key `sped`; did you mean `speed`"),
            "{error}"
        );
        assert!(
            error.contains("line 4: unknown key `inner[0].depth_mn`; did you mean `depth_mm`"),
            "{error}"
        );
    }

    #[test]
    fn a_wrong_type_is_named_with_its_line() {
        let error = read::<Outer>("a.toml", "\nspeed = 'fast'\n")
            .unwrap_err()
            .to_string();
        assert!(error.starts_with("a.toml: line 2: invalid type"), "{error}");
    }
}
