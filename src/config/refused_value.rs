//! Finds the value of a TOML file that a type rejects.

use toml::Value;

/// Returns the path of the smallest part whose removal changes the rejection, such as `tools[1].name`; empty for the whole file.
/// `is_refused` tells whether the remaining file is rejected for the same reason.
pub(super) fn path(root: &Value, is_refused: &dyn Fn(Value) -> bool) -> String {
    let mut path = String::new();
    let mut steps = Vec::new();
    while let Some(step) = next_step(root, &steps, is_refused) {
        match &step {
            ValueStep::Key(key) if path.is_empty() => path.push_str(key),
            ValueStep::Key(key) => path.extend([".", key]),
            ValueStep::Index(index) => path.push_str(&format!("[{index}]")),
        }
        steps.push(step);
    }
    path
}

#[derive(Clone)]
enum ValueStep {
    Key(String),
    Index(usize),
}

fn next_step(
    root: &Value,
    steps: &[ValueStep],
    is_refused: &dyn Fn(Value) -> bool,
) -> Option<ValueStep> {
    let mut copy = root.clone();
    children(value_at(&mut copy, steps)?)
        .into_iter()
        .find(|child| {
            let mut remaining = root.clone();
            if let Some(value) = value_at(&mut remaining, steps) {
                remove(value, child);
            }
            !is_refused(remaining)
        })
}

fn value_at<'a>(value: &'a mut Value, steps: &[ValueStep]) -> Option<&'a mut Value> {
    steps.iter().try_fold(value, |value, step| match step {
        ValueStep::Key(key) => value.get_mut(key),
        ValueStep::Index(index) => value.get_mut(*index),
    })
}

fn children(value: &Value) -> Vec<ValueStep> {
    match value {
        Value::Table(table) => table.keys().cloned().map(ValueStep::Key).collect(),
        Value::Array(items) => (0..items.len()).map(ValueStep::Index).collect(),
        _ => Vec::new(),
    }
}

fn remove(value: &mut Value, child: &ValueStep) {
    match (value, child) {
        (Value::Table(table), ValueStep::Key(key)) => {
            table.remove(key);
        }
        (Value::Array(items), ValueStep::Index(index)) => {
            items.remove(*index);
        }
        _ => {}
    }
}
