//! Compares a value with those that a case accepts.

use serde_json::{Map, Value};

/// Relative difference below which two numbers are equal.
const RELATIVE_TOLERANCE: f64 = 1e-9;

/// Deepest nesting that is compared.
const DEPTH_MAX: usize = 16;

/// Returns the accepted values; a single value stands for itself.
pub(super) fn options(expected: &Value) -> &[Value] {
    match expected {
        Value::Array(values) => values,
        one => std::slice::from_ref(one),
    }
}

/// Returns whether the parameter may be left out: `""`, among other values or alone, means that.
pub(super) fn may_be_absent(expected: &Value) -> bool {
    options(expected).iter().any(|one| one == "")
}

/// Returns whether `value` is one of the options.
pub(super) fn is_one_of(value: &Value, expected: &Value) -> bool {
    is_among(value, options(expected), 0)
}

fn is_among(value: &Value, options: &[Value], depth: usize) -> bool {
    depth < DEPTH_MAX && options.iter().any(|option| equal(value, option, depth + 1))
}

fn equal(value: &Value, option: &Value, depth: usize) -> bool {
    match (value, option) {
        (Value::String(value), Value::String(option)) => normalised(value) == normalised(option),
        (Value::Number(value), Value::Number(option)) => equal_numbers(value, option),
        (Value::Array(values), Value::Array(options)) => {
            values.len() == options.len()
                && values
                    .iter()
                    .zip(options)
                    .all(|(value, option)| depth < DEPTH_MAX && equal(value, option, depth + 1))
        }
        (Value::Object(value), Value::Object(option)) => equal_objects(value, option, depth),
        (value, option) => value == option,
    }
}

/// Compares objects. Inside an object each key has its own list of accepted values.
fn equal_objects(value: &Map<String, Value>, option: &Map<String, Value>, depth: usize) -> bool {
    let has_accepted_values = value.iter().all(|(key, value)| {
        option
            .get(key)
            .is_some_and(|one| is_among(value, options(one), depth))
    });
    let has_required_keys = option
        .iter()
        .all(|(key, one)| value.contains_key(key) || may_be_absent(one));
    has_accepted_values && has_required_keys
}

fn equal_numbers(a: &serde_json::Number, b: &serde_json::Number) -> bool {
    match (a.as_i128(), b.as_i128(), a.as_f64(), b.as_f64()) {
        (Some(a), Some(b), ..) => a == b,
        (_, _, Some(a), Some(b)) => (a - b).abs() <= RELATIVE_TOLERANCE * a.abs().max(b.abs()),
        _ => a == b,
    }
}

/// Removes case, blanks and most punctuation from a text: `April 1, 2024` equals `April 1,2024`.
fn normalised(text: &str) -> String {
    text.chars()
        .filter(|c| !matches!(c, ' ' | ',' | '.' | '/' | '-' | '_' | '*' | '^'))
        .flat_map(char::to_lowercase)
        .map(|c| if c == '\'' { '"' } else { c })
        .collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn values_are_compared_regardless_of_their_form() {
        for (value, expected, fits) in [
            (json!("April 1, 2024"), json!("april 1,2024"), true),
            (json!(10), json!([10.0]), true),
            (json!(10), json!(["10"]), false),
            (json!("letters"), json!(["default", "letters"]), true),
            (json!([1, 2]), json!([[1, 2]]), true),
            (json!([2, 1]), json!([[1, 2]]), false),
            (json!({"a": 1}), json!([{"a": [1, 2], "b": ["", 3]}]), true),
            (json!({"a": 1, "c": 1}), json!([{"a": [1]}]), false),
            (json!({}), json!([{"a": [1]}]), false),
            (json!(true), json!(true), true),
            (json!(1), json!(true), false),
        ] {
            assert_eq!(is_one_of(&value, &expected), fits, "{value} {expected}");
        }
        assert!(may_be_absent(&json!(["", 3])));
        assert!(!may_be_absent(&json!(3)));
    }
}
