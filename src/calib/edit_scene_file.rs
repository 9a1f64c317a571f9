//! Calibrated numbers put into the text of a scene's or an arm's file; comments stay where they are.

use std::collections::BTreeMap;

use toml_edit::{DocumentMut, Item, Table, TableLike, Value};

use super::calibration_record::{CalibrationKind, CalibrationSession, FileValues};
use arm::{ArmModel, ServoFile};

/// Reason that a file's text cannot be changed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CalibrationEditError {
    /// It is no TOML.
    #[error("the file is no TOML: {0}")]
    Toml(String),
    /// It has nothing of that name, or written in a form that cannot be edited in place.
    #[error(
        "the file has no {0} written as a table of its own; write it so, as the shipped files have it"
    )]
    Missing(String),
}

/// The text with the values that were calibrated in place of the old ones.
///
/// # Errors
/// The text is no TOML, or has not what was calibrated.
pub fn write(
    text: &str,
    session: &CalibrationSession,
    values: &FileValues,
) -> Result<String, CalibrationEditError> {
    let mut document = parsed(text)?;
    match session.kind {
        // It is kept beside the history: a camera belongs to the node, not to a scene.
        CalibrationKind::Camera => {}
        CalibrationKind::Zeros => {
            for (key, numbers) in values {
                let done = zero(&mut document, key, numbers)
                    .or_else(|| limit(&mut document, key, numbers));
                done.ok_or_else(|| CalibrationEditError::Missing(format!("`{key}`")))?;
            }
        }
        _ => {
            let table = table_of(&mut document, session)?;
            for (key, numbers) in values {
                set(table, key, numbers)?;
            }
        }
    }
    Ok(document.to_string())
}

fn parsed(text: &str) -> Result<DocumentMut, CalibrationEditError> {
    text.parse()
        .map_err(|error: toml_edit::TomlError| CalibrationEditError::Toml(error.to_string()))
}

/// The table that has what was calibrated.
fn table_of<'a>(
    document: &'a mut DocumentMut,
    session: &CalibrationSession,
) -> Result<&'a mut dyn TableLike, CalibrationEditError> {
    let CalibrationSession { pen, name, .. } = session;
    let (found, what) = match session.kind {
        CalibrationKind::Tool => (named(document, "pens", pen), format!("pen `{pen}`")),
        CalibrationKind::Cap => (named(document, "inks", name), format!("ink `{name}`")),
        CalibrationKind::Sheet => (table(document, "sheet"), "[sheet]".to_owned()),
        CalibrationKind::Pose => (table(document, "poses"), "[poses]".to_owned()),
        CalibrationKind::Play => (
            made_table(document.as_table_mut(), "compensation"),
            "[compensation]".to_owned(),
        ),
        _ => return Ok(document.as_table_mut()),
    };
    found.ok_or(CalibrationEditError::Missing(what))
}

fn table<'a>(document: &'a mut DocumentMut, name: &str) -> Option<&'a mut dyn TableLike> {
    document.get_mut(name)?.as_table_like_mut()
}

/// A table within another, made where there is none; `None` where something else has its name.
fn made_table<'a>(table: &'a mut dyn TableLike, name: &str) -> Option<&'a mut dyn TableLike> {
    if table.get(name).is_none() {
        // Within a table of one line it becomes such a table itself.
        table.insert(name, Item::Table(Table::new()));
    }
    table.get_mut(name)?.as_table_like_mut()
}

/// The table of a sheet's correction, within `[sheet]`.
const CORRECTION: &str = "correction";

/// The key of a rolled sheet's radius.
pub(super) const RADIUS_KEY: &str = "cylinder_radius_mm";

/// The key under which a servo's zero is kept.
pub(super) fn zero_key(id: u8) -> String {
    format!("zero_tick of servo {id}")
}

/// The key under which a servo's sense of rotation is kept.
pub(super) fn sign_key(id: u8) -> String {
    format!("sign of servo {id}")
}

/// Returns the names of the joints that would turn the other way round than their arm's file says.
#[must_use]
pub fn flipped_joints(arm: &ArmModel, new: &FileValues) -> Vec<String> {
    let flips = |servo: &ServoFile| {
        let sign = new.get(&sign_key(servo.id)).and_then(|sign| sign.first());
        sign.is_some_and(|sign| sign * f64::from(servo.sign) < 0.0)
    };
    let joints = arm.file.joints.iter();
    let flipped = joints.filter(|joint| joint.servos.iter().any(flips));
    flipped.map(|joint| joint.name.clone()).collect()
}

/// The text with who the servos were when this was measured, in place of who they were before.
///
/// # Errors
/// The text is no TOML.
pub fn identify(text: &str, servos: &BTreeMap<u8, String>) -> Result<String, CalibrationEditError> {
    let mut document = parsed(text)?;
    let mut table = Table::new();
    for (id, fingerprint) in servos {
        table.insert(&id.to_string(), Item::Value(fingerprint.as_str().into()));
    }
    match document.get_mut("identity").and_then(Item::as_table_mut) {
        // A comment above the table stays.
        Some(there) => {
            there.clear();
            there.extend(table);
        }
        None => {
            table.set_position(None);
            document.insert("identity", Item::Table(table));
        }
    }
    Ok(document.to_string())
}

fn named<'a>(
    document: &'a mut DocumentMut,
    list: &str,
    name: &str,
) -> Option<&'a mut dyn TableLike> {
    let mut tables = document.get_mut(list)?.as_array_of_tables_mut()?.iter_mut();
    let is_it = |table: &&mut Table| table.get("name").and_then(Item::as_str) == Some(name);
    Some(tables.find(is_it)?)
}

/// A servo's `zero_tick` or `sign`.
fn zero(document: &mut DocumentMut, key: &str, numbers: &[f64]) -> Option<()> {
    let (key, id) = key.split_once(" of servo ")?;
    let (id, ticks) = (id.parse().ok()?, whole(*numbers.first()?));
    let joints = document.get_mut("joints")?.as_array_of_tables_mut()?;
    let mut servos = joints.iter_mut().flat_map(servos);
    let servo = servos.find(|servo| id_of(*servo) == Some(id))?;
    replace_value(servo.get_mut(key)?.as_value_mut()?, ticks.into());
    Some(())
}

/// A joint's servos, in a list or as tables of their own.
fn servos(joint: &mut Table) -> Vec<&mut dyn TableLike> {
    match joint.get_mut("servos") {
        Some(Item::Value(Value::Array(list))) => {
            let tables = list.iter_mut().filter_map(Value::as_inline_table_mut);
            tables.map(|table| table as _).collect()
        }
        Some(Item::ArrayOfTables(tables)) => tables.iter_mut().map(|table| table as _).collect(),
        _ => Vec::new(),
    }
}

/// A joint's `lower_rad` or `upper_rad`.
fn limit(document: &mut DocumentMut, key: &str, numbers: &[f64]) -> Option<()> {
    let (key, joint) = key.split_once(" of ")?;
    let value = named(document, "joints", joint)?.get_mut(key)?;
    replace_value(value.as_value_mut()?, (*numbers.first()?).into());
    Some(())
}

fn id_of(servo: &dyn TableLike) -> Option<u8> {
    u8::try_from(servo.get("id")?.as_integer()?).ok()
}

#[expect(
    clippy::cast_possible_truncation,
    reason = "`as` saturates; counts are small"
)]
fn whole(ticks: f64) -> i64 {
    ticks.round() as i64
}

/// Writes numbers under a key, those of a sheet's correction into the table of their own.
fn set(table: &mut dyn TableLike, key: &str, numbers: &[f64]) -> Result<(), CalibrationEditError> {
    let (table, key) = match key.split_once('.') {
        Some((CORRECTION, key)) => (made_table(table, CORRECTION), key),
        _ => (Some(table), key),
    };
    let missing = || CalibrationEditError::Missing(format!("[sheet.{CORRECTION}]"));
    let table = table.ok_or_else(missing)?;
    let made = match numbers {
        [radius] if key == RADIUS_KEY => (*radius).into(),
        _ => Value::Array(numbers.iter().copied().collect()),
    };
    match table.get_mut(key).and_then(Item::as_value_mut) {
        Some(there) => replace_value(there, made),
        None => {
            table.insert(key, Item::Value(made));
        }
    }
    Ok(())
}

/// Replaces a value and keeps the text around it, such as a comment behind it.
fn replace_value(there: &mut Value, made: Value) {
    let decor = there.decor().clone();
    *there = made;
    *there.decor_mut() = decor;
}
