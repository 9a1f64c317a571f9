//! Finds the value of a TOML file that a type refuses.

use toml::Value;

/// Returns the path of the smallest part without which a refusal is not the same, such as `tools[1].name`; nothing for the file
/// as a whole. `is_refused` says whether what is left is refused for the same reason.
pub(super) fn path(whole: &Value, is_refused: &dyn Fn(Value) -> bool) -> String {
    let mut path = String::new();
    let mut steps = Vec::new();
    while let Some(step) = next_step(whole, &steps, is_refused) {
        match &step {
            ValueStep::Key(key) if path.is_empty() => path.push_str(key),
            ValueStep::Key(key) => path.extend([".", key]),
            ValueStep::At(index) => path.push_str(&format!("[{index}]")),
        }
        steps.push(step);
    }
    path
}

#[derive(Clone)]
enum ValueStep {
    Key(String),
    At(usize),
}

fn next_step(
    whole: &Value,
    steps: &[ValueStep],
    is_refused: &dyn Fn(Value) -> bool,
) -> Option<ValueStep> {
    let mut around = whole.clone();
    children(entered(&mut around, steps)?)
        .into_iter()
        .find(|child| {
            let mut rest = whole.clone();
            if let Some(value) = entered(&mut rest, steps) {
                remove(value, child);
            }
            !is_refused(rest)
        })
}

fn entered<'a>(value: &'a mut Value, steps: &[ValueStep]) -> Option<&'a mut Value> {
    steps.iter().try_fold(value, |value, step| match step {
        ValueStep::Key(key) => value.get_mut(key),
        ValueStep::At(index) => value.get_mut(*index),
    })
}

fn children(value: &Value) -> Vec<ValueStep> {
    match value {
        Value::Table(table) => table.keys().cloned().map(ValueStep::Key).collect(),
        Value::Array(items) => (0..items.len()).map(ValueStep::At).collect(),
        _ => Vec::new(),
    }
}

fn remove(value: &mut Value, child: &ValueStep) {
    match (value, child) {
        (Value::Table(table), ValueStep::Key(key)) => {
            table.remove(key);
        }
        (Value::Array(items), ValueStep::At(index)) => {
            items.remove(*index);
        }
        _ => {}
    }
}
