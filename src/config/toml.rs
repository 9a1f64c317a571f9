//! Reads TOML files written by people: reports all problems at once, and unknown keys with the nearest known one.

use std::any::TypeId;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use super::{value_lines, value_reader};
use base::nearest;
use base::wording::joined;
use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

/// All problems with one file.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[error("{file}: {}", joined(problems))]
pub struct FileError {
    /// The file's name in messages.
    pub file: String,
    /// Each problem with its place, the value and the fix.
    pub problems: Vec<String>,
}

impl FileError {
    /// Creates an error with a single problem.
    #[must_use]
    pub fn single(file: &str, problem: impl Into<String>) -> Self {
        Self {
            file: file.to_owned(),
            problems: vec![problem.into()],
        }
    }
}

/// Contents of a file as far as it can be read, and all of its problems.
pub struct PartialRead<T> {
    /// Contents, with unknown keys left out; `None` if a value is invalid.
    pub read: Option<T>,
    /// Each problem with its place, the value and the fix.
    pub problems: Vec<String>,
}

/// Reads `text` as a `T`; `file` is its name in messages.
///
/// # Errors
/// All problems: unknown keys, values of the wrong kind, and missing keys; otherwise the first value that a type rejects, or that
/// is not TOML.
pub fn read<T: DeserializeOwned + JsonSchema + 'static>(
    file: &str,
    text: &str,
) -> Result<T, FileError> {
    match read_partially(text) {
        PartialRead {
            read: Some(read),
            problems,
        } if problems.is_empty() => Ok(read),
        PartialRead { problems, .. } => Err(FileError {
            file: file.to_owned(),
            problems,
        }),
    }
}

/// Reads as much of `text` as can be read.
pub fn read_partially<T: DeserializeOwned + JsonSchema + 'static>(text: &str) -> PartialRead<T> {
    match toml::from_str(text) {
        Ok(table) => read_table(table, text),
        Err(error) => PartialRead {
            read: None,
            problems: vec![syntax_error(text, &error)],
        },
    }
}

/// Returns the schema of a type, which is generated once.
fn schema_of<T: JsonSchema + 'static>() -> Arc<Value> {
    static SCHEMAS: Mutex<BTreeMap<TypeId, Arc<Value>>> = Mutex::new(BTreeMap::new());
    let mut schemas = SCHEMAS.lock().unwrap_or_else(PoisonError::into_inner);
    let schema = schemas.entry(TypeId::of::<T>());
    Arc::clone(schema.or_insert_with(|| Arc::new(schemars::schema_for!(T).to_value())))
}

fn read_table<T: DeserializeOwned + JsonSchema + 'static>(
    mut table: toml::Table,
    text: &str,
) -> PartialRead<T> {
    let schema = schema_of::<T>();
    let mut walker = SchemaWalker {
        root: &schema,
        text,
        unknown: Vec::new(),
        misfits: Vec::new(),
    };
    walker.table(&schema, &mut table, "");
    let SchemaWalker {
        unknown: mut problems,
        misfits,
        ..
    } = walker;
    let known = toml::Value::Table(table);
    let read = match value_reader::read::<T>(known.clone()) {
        Ok(read) => Some(read),
        // A type may accept more than its schema says, so the schema's problems count only if the type rejects the value.
        Err(error) => {
            let first = rejection::<T>(text, &known, error.message());
            let place = |problem: &str| problem.split_once(": ").map(|(place, _)| place.to_owned());
            let is_reported = misfits.iter().any(|one| place(one) == place(&first));
            problems.extend((!is_reported).then_some(first));
            problems.extend(misfits);
            None
        }
    };
    PartialRead { read, problems }
}

/// Returns the error of a type, with the line of the value that it rejects.
fn rejection<T: DeserializeOwned>(text: &str, known: &toml::Value, message: &str) -> String {
    let is_same_error = |remaining| {
        value_reader::read::<T>(remaining)
            .err()
            .is_some_and(|error| error.message() == message)
    };
    let path = super::refused_value::path(known, &is_same_error);
    value_lines::prefix(text, &path) + message
}

fn syntax_error(text: &str, error: &toml::de::Error) -> String {
    let start = error.span().map_or(0, |span| span.start);
    let line = value_lines::line_of(text, start);
    format!("line {line}: {}", error.message())
}

/// Suffixes of keys and their units, longer suffixes first.
const UNITS: [(&str, &str); 10] = [
    ("_mm_s", "mm a second"),
    ("_rad_s", "rad a second"),
    ("_mm", "mm"),
    ("_m", "m"),
    ("_rad", "rad"),
    ("_deg", "degrees"),
    ("_px", "pixels"),
    ("_ms", "ms"),
    ("_s", "seconds"),
    ("_c", "degrees Celsius"),
];

/// Longest list that is shown as an example.
const ITEMS_MAX: usize = 6;

struct SchemaWalker<'a> {
    root: &'a Value,
    text: &'a str,
    /// Unknown keys; they are removed from the table.
    unknown: Vec<String>,
    /// Values that do not match their schema, and missing keys.
    misfits: Vec<String>,
}

impl<'a> SchemaWalker<'a> {
    fn table(&mut self, schema: &'a Value, table: &mut toml::Table, path: &str) {
        let Some(known) = self.properties(schema) else {
            return;
        };
        self.add_missing(schema, table, path);
        let mut unknown_keys = Vec::new();
        for (key, value) in table.iter_mut() {
            match known.get(key) {
                Some(inner) => self.value(inner, value, &format!("{path}{key}")),
                None => unknown_keys.push(key.clone()),
            }
        }
        for key in unknown_keys {
            self.add_unknown(&key, path, known);
            table.remove(&key);
        }
    }

    fn value(&mut self, schema: &'a Value, value: &mut toml::Value, path: &str) {
        if let Some(mismatch) = self.misfit(schema, value) {
            let line = self.line(path);
            let example = self.example(schema, path);
            self.misfits.push(format!(
                "{line}invalid type: `{path}` is {mismatch}{example}"
            ));
            return;
        }
        match value {
            toml::Value::Table(table) => self.table(schema, table, &format!("{path}.")),
            toml::Value::Array(items) => {
                let Some(inner) = self.find(schema, "items") else {
                    return;
                };
                for (index, item) in items.iter_mut().enumerate() {
                    self.value(inner, item, &format!("{path}[{index}]"));
                }
            }
            _ => {}
        }
    }

    fn add_missing(&mut self, schema: &'a Value, table: &toml::Table, path: &str) {
        if self.choices(schema).len() > 1 {
            return;
        }
        let required = self.find(schema, "required");
        let required = required.and_then(Value::as_array);
        let names = required.into_iter().flatten().filter_map(Value::as_str);
        for name in names.filter(|name| !table.contains_key(*name)) {
            let line = self.line(&format!("{path}{name}"));
            self.misfits
                .push(format!("{line}missing field `{path}{name}`"));
        }
    }

    /// Returns the actual and the expected kind of a value if its schema rules it out.
    fn misfit(&self, schema: &'a Value, value: &toml::Value) -> Option<String> {
        if value.as_float().is_some_and(|number| !number.is_finite()) {
            return Some("not finite, expected a finite number".to_owned());
        }
        let choices = self.choices(schema);
        if !choices.is_empty() {
            return not_among(&choices, value);
        }
        let kinds = self.kinds(schema)?;
        let (is, matching) = kind(value);
        if !kinds.iter().any(|kind| matching.contains(kind)) {
            let expected = kinds.into_iter().filter(|kind| *kind != "null");
            let expected = expected.map(kind_text).collect::<Vec<_>>().join(" or ");
            return Some(format!("{is}, expected {expected}"));
        }
        let number = value.as_integer()?;
        let bound = |keyword| self.find(schema, keyword)?.as_i64();
        let below = bound("minimum").filter(|least| number < *least);
        let above = bound("maximum").filter(|most| number > *most);
        match (below, above) {
            (Some(least), _) => Some(format!("{number}, expected {least} or more")),
            (_, Some(most)) => Some(format!("{number}, expected {most} or less")),
            _ => None,
        }
    }

    /// Returns a valid example with the unit that its key names; empty if the schema says too little.
    fn example(&self, schema: &'a Value, path: &str) -> String {
        let key = path.rsplit('.').next().unwrap_or(path);
        let (key, is_item) = key
            .split_once('[')
            .map_or((key, false), |(key, _)| (key, true));
        let Some(value) = self.sample(schema) else {
            return String::new();
        };
        let unit = UNITS.iter().find(|(suffix, _)| key.ends_with(suffix));
        let unit = unit.map_or(String::new(), |(_, unit)| format!(", in {unit}"));
        match is_item {
            true => format!("{unit}, such as `{value}`"),
            false => format!("{unit}, such as `{key} = {value}`"),
        }
    }

    fn sample(&self, schema: &'a Value) -> Option<String> {
        match self
            .kinds(schema)?
            .into_iter()
            .find(|kind| *kind != "null")?
        {
            "number" => Some("12.5".to_owned()),
            "integer" => {
                let least = self.find(schema, "minimum");
                Some(least.map_or("1".to_owned(), Value::to_string))
            }
            "boolean" => Some("true".to_owned()),
            "array" => {
                let item = self.sample(self.find(schema, "items")?)?;
                let count = self.find(schema, "minItems").and_then(Value::as_u64);
                let count = usize::try_from(count.unwrap_or(1)).ok()?;
                let items = vec![item; count.clamp(1, ITEMS_MAX)];
                Some(format!("[{}]", items.join(", ")))
            }
            _ => None,
        }
    }

    /// Returns the kinds that a value can have.
    fn kinds(&self, schema: &'a Value) -> Option<Vec<&'a str>> {
        match self.find(schema, "type")? {
            Value::String(kind) => Some(vec![kind]),
            Value::Array(kinds) => Some(kinds.iter().filter_map(Value::as_str).collect()),
            _ => None,
        }
    }

    /// Returns the schema that another one refers to, if any; the inner option is `None` if that schema does not exist.
    fn referred(&self, schema: &Value) -> Option<Option<&'a Value>> {
        let name = schema.get("$ref")?.as_str()?;
        Some(self.root.pointer(name.trim_start_matches('#')))
    }

    /// Returns the forms that a value can have, if there are several.
    fn choices(&self, schema: &'a Value) -> Vec<&'a Value> {
        if let Some(inner) = self.referred(schema) {
            return inner.map_or_else(Vec::new, |inner| self.choices(inner));
        }
        let forms = schema.get("anyOf").or_else(|| schema.get("oneOf"));
        let forms = forms.and_then(Value::as_array).into_iter().flatten();
        let forms: Vec<&Value> = forms
            .filter(|form| form.get("type").is_none_or(|kind| kind != "null"))
            .collect();
        match forms.as_slice() {
            [] if schema.get("const").is_some() => vec![schema],
            [one] => self.choices(one),
            _ => forms,
        }
    }

    fn line(&self, path: &str) -> String {
        value_lines::prefix(self.text, path)
    }

    fn add_unknown(&mut self, key: &str, path: &str, known: &Map<String, Value>) {
        let mut names: Vec<&str> = known.keys().map(String::as_str).collect();
        nearest::sort(key, &mut names);
        let line = self.line(&format!("{path}{key}"));
        let advice = match (names.split_first(), self.misplaced(key, path)) {
            (_, Some(advice)) => advice,
            (Some((first, others)), None) if nearest::is_near(key, first) => {
                let others = others.join("`, `");
                format!("did you mean `{first}`? (other valid keys: `{others}`)")
            }
            _ => format!("valid keys here: `{}`", names.join("`, `")),
        };
        self.unknown
            .push(format!("{line}unknown key `{path}{key}`; {advice}"));
    }

    /// Returns advice about a key in a table that belongs to the whole file: all keys below a table's heading are the table's.
    fn misplaced(&self, key: &str, path: &str) -> Option<String> {
        let table = path.split(['.', '[']).next();
        let table = table.filter(|name| !name.is_empty())?;
        let file_keys = self.properties(self.root)?;
        let is_list = path.starts_with(&format!("{table}["));
        let heading = match is_list {
            true => format!("[[{table}]]"),
            false => format!("[{table}]"),
        };
        file_keys.contains_key(key).then(|| {
            format!("`{key}` belongs to the whole file: write it above the first `{heading}`")
        })
    }

    fn properties(&self, schema: &'a Value) -> Option<&'a Map<String, Value>> {
        self.find(schema, "properties")?.as_object()
    }

    /// Returns the first value of `keyword` in a schema, the schema it refers to, or its alternatives.
    fn find(&self, schema: &'a Value, keyword: &str) -> Option<&'a Value> {
        if let Some(found) = schema.get(keyword) {
            return Some(found);
        }
        if let Some(inner) = self.referred(schema) {
            return self.find(inner?, keyword);
        }
        let alternatives = schema
            .get("anyOf")
            .or_else(|| schema.get("allOf"))?
            .as_array()?;
        alternatives.iter().find_map(|one| self.find(one, keyword))
    }
}

/// Describes a value that is not among its choices; `None` if it is one of them.
fn not_among(choices: &[&Value], value: &toml::Value) -> Option<String> {
    let names = choices.iter().map(|choice| choice.get("const")?.as_str());
    let names = names.collect::<Option<Vec<&str>>>()?;
    match value.as_str() {
        Some(name) if names.contains(&name) => None,
        Some(name) => Some(format!("`{name}`, expected {}", names.join(", "))),
        None => Some(format!("{}, expected {}", kind(value).0, names.join(", "))),
    }
}

/// Returns a description of a value's kind, and the schema kinds that it matches.
fn kind(value: &toml::Value) -> (&'static str, &'static [&'static str]) {
    match value {
        toml::Value::String(_) => ("a string", &["string"]),
        toml::Value::Integer(_) => ("a whole number", &["integer", "number"]),
        toml::Value::Float(_) => ("a number", &["number"]),
        toml::Value::Boolean(_) => ("true or false", &["boolean"]),
        toml::Value::Datetime(_) => ("a date", &["string"]),
        toml::Value::Array(_) => ("a list", &["array"]),
        toml::Value::Table(_) => ("a table", &["object"]),
    }
}

fn kind_text(kind: &str) -> &str {
    match kind {
        "string" => "a string",
        "integer" => "a whole number",
        "number" => "a number",
        "boolean" => "true or false",
        "array" => "a list",
        "object" => "a table",
        other => other,
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
        source: Option<Source>,
        #[serde(default, deserialize_with = "finite")]
        finite_mm: f64,
    }

    fn finite<'de, D: serde::Deserializer<'de>>(from: D) -> Result<f64, D::Error> {
        let number = f64::deserialize(from)?;
        let is_finite = number.is_finite().then_some(number);
        is_finite.ok_or_else(|| serde::de::Error::custom("not finite"))
    }

    #[derive(Debug, Deserialize, JsonSchema)]
    #[serde(rename_all = "lowercase")]
    enum Source {
        /// Described, as those of the files are.
        Elsewhere,
    }

    #[derive(Debug, Deserialize, JsonSchema)]
    #[serde(deny_unknown_fields)]
    #[expect(dead_code, reason = "only its shape is read")]
    struct Inner {
        depth_mm: f64,
        #[serde(default)]
        size_mm: [f64; 2],
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
    fn a_key_of_the_whole_file_below_a_heading_is_reported_with_its_place() {
        let text = "[[inner]]\ndepth_mm = 3.0\nspeed = 1.0\nrotation = 1\n";
        let error = read::<Outer>("a.toml", text).unwrap_err().to_string();
        for expected in [
            "line 3: unknown key `inner[0].speed`; `speed` belongs to the whole file: write it above the first `[[inner]]`",
            "line 4: unknown key `inner[0].rotation`; valid keys here: `depth_mm`, `size_mm`",
        ] {
            assert!(error.contains(expected), "{expected}: {error}");
        }
    }

    #[test]
    fn all_problems_are_reported_at_once() {
        let text = "speed = 'fast'\nsped = 2\n[[inner]]\ndepth_mm = true\n[[inner]]\n";
        let error = read::<Outer>("a.toml", text).unwrap_err();
        for (problem, beginning) in error.problems.iter().zip([
            "line 2: unknown key `sped`",
            "line 4: invalid type: `inner[0].depth_mm` is true or false, expected a number",
            "line 5: missing field `inner[1].depth_mm`",
            "line 1: invalid type: `speed` is a string, expected a number",
        ]) {
            assert!(problem.starts_with(beginning), "{error}");
        }
        assert_eq!(error.problems.len(), 4, "{error}");
    }

    #[test]
    fn a_value_of_another_form_is_answered_with_a_unit_and_an_example() {
        let text = "speed = 'fast'\n[[inner]]\ndepth_mm = 'deep'\nsize_mm = [1.0, 'x']\n";
        let error = read::<Outer>("a.toml", text).unwrap_err().to_string();
        for expected in [
            "`speed` is a string, expected a number, such as `speed = 12.5`",
            "expected a number, in mm, such as `depth_mm = 12.5`",
            "`inner[0].size_mm[1]` is a string, expected a number, in mm, such as `12.5`",
        ] {
            assert!(error.contains(expected), "{expected}: {error}");
        }
        let text = "speed = 1.0\n[[inner]]\ndepth_mm = 1.0\nsize_mm = 5\n";
        let error = read::<Outer>("a.toml", text).unwrap_err().to_string();
        let expected = "expected a list, in mm, such as `size_mm = [12.5, 12.5]`";
        assert!(error.contains(expected), "{error}");
        let text = "speed = 1.0\nsource = 'here'\n[[inner]]\ndepth_mm = 'x'\n";
        let error = read::<Outer>("a.toml", text).unwrap_err().to_string();
        let expected = "line 2: invalid type: `source` is `here`, expected elsewhere";
        assert!(error.contains(expected), "{error}");
    }

    #[test]
    fn a_list_with_too_many_numbers_is_named_with_its_line() {
        for numbers in ["[1.0]", "[1.0, 2.0, 3.0]"] {
            let text = format!("speed = 1.0\n[[inner]]\ndepth_mm = 3.0\nsize_mm = {numbers}\n");
            let error = read::<Outer>("outer.toml", &text).unwrap_err();
            let [problem] = error.problems.as_slice() else {
                unreachable!("{error}");
            };
            assert!(
                problem.contains("line 4") && problem.contains("length"),
                "{problem}"
            );
        }
    }

    #[test]
    fn a_number_that_is_not_finite_is_named_by_its_key() {
        for number in ["nan", "inf", "-inf"] {
            let text = format!("speed = 1.0\nfinite_mm = {number}\n");
            let error = read::<Outer>("a.toml", &text).unwrap_err().to_string();
            let expected = "line 2: invalid type: `finite_mm` is not finite, expected a finite number, in mm, such as `finite_mm = 12.5`";
            assert!(error.contains(expected), "{error}");
        }
    }

    /// The order of a table's fields has no meaning in a file.
    #[test]
    fn a_list_is_not_taken_for_a_table() {
        let text = "speed = 1.0\ninner = [{ depth_mm = 1.0 }, [3.0, [1.0, 2.0]]]\n";
        let error = read::<Outer>("a.toml", text).unwrap_err().to_string();
        let expected = "line 2: invalid type: `inner[1]` is a list, expected a table";
        assert!(error.contains(expected), "{error}");
    }

    #[test]
    fn known_keys_are_read_despite_an_unknown_one() {
        let found = read_partially::<Outer>("speed = 1.5\nsped = 2\n");
        assert!(found.read.is_some() && found.problems.len() == 1);
    }

    #[test]
    fn a_wrong_type_is_named_with_its_line() {
        let error = read::<Outer>("a.toml", "\nspeed = 'fast'\n")
            .unwrap_err()
            .to_string();
        assert!(error.starts_with("a.toml: line 2: invalid type"), "{error}");
    }
}
