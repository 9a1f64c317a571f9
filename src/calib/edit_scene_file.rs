//! Calibrated numbers put into the text of a scene's or an arm's file; comments stay where they are.

use std::collections::BTreeMap;

use toml_edit::{Array, DocumentMut, Item, Table, TableLike, Value};

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
    let mut document: DocumentMut = text
        .parse()
        .map_err(|error: toml_edit::TomlError| CalibrationEditError::Toml(error.to_string()))?;
    match session.kind {
        CalibrationKind::Tool => {
            let pen = named(&mut document, "pens", &session.pen);
            let pen =
                pen.ok_or_else(|| CalibrationEditError::Missing(format!("pen `{}`", session.pen)))?;
            values
                .iter()
                .for_each(|(key, numbers)| set(pen, key, numbers));
        }
        CalibrationKind::Sheet => {
            let sheet = document.get_mut("sheet").and_then(Item::as_table_like_mut);
            let sheet = sheet.ok_or_else(|| CalibrationEditError::Missing("[sheet]".to_owned()))?;
            for (key, numbers) in values {
                match numbers.as_slice() {
                    _ if correct(sheet, key, numbers) => {}
                    [radius] if key == RADIUS_KEY => write_over(sheet, key, (*radius).into()),
                    _ => set(sheet, key, numbers),
                }
            }
        }
        CalibrationKind::Pose => {
            let poses = document.get_mut("poses").and_then(Item::as_table_like_mut);
            let poses = poses.ok_or_else(|| CalibrationEditError::Missing("[poses]".to_owned()))?;
            values
                .iter()
                .for_each(|(key, numbers)| set(poses, key, numbers));
        }
        CalibrationKind::Cap => {
            let cap = named(&mut document, "inks", &session.name);
            let cap = cap
                .ok_or_else(|| CalibrationEditError::Missing(format!("ink `{}`", session.name)))?;
            values
                .iter()
                .for_each(|(key, numbers)| set(cap, key, numbers));
        }
        CalibrationKind::Calibrator => values
            .iter()
            .for_each(|(key, numbers)| set(document.as_table_mut(), key, numbers)),
        // It is kept beside the history: a camera belongs to the node, not to a scene.
        CalibrationKind::Camera => {}
        CalibrationKind::Play => compensate(&mut document, values)?,
        CalibrationKind::Zeros => {
            for (key, numbers) in values {
                let done = zero(&mut document, key, numbers)
                    .or_else(|| limit(&mut document, key, numbers));
                done.ok_or_else(|| CalibrationEditError::Missing(format!("`{key}`")))?;
            }
        }
    }
    Ok(document.to_string())
}

/// Writes a key of a sheet's correction; false where it is none.
fn correct(sheet: &mut dyn TableLike, key: &str, numbers: &[f64]) -> bool {
    let Some((CORRECTION, key)) = key.split_once('.') else {
        return false;
    };
    if sheet.get(CORRECTION).is_none() {
        sheet.insert(CORRECTION, Item::Table(Table::new()));
    }
    let correction = sheet.get_mut(CORRECTION).and_then(Item::as_table_like_mut);
    correction.is_some_and(|correction| {
        set(correction, key, numbers);
        true
    })
}

/// The table of a sheet's correction, within `[sheet]`.
const CORRECTION: &str = "correction";

/// Writes play and sag of an arm's joints.
fn compensate(document: &mut DocumentMut, values: &FileValues) -> Result<(), CalibrationEditError> {
    const COMPENSATION: &str = "compensation";
    if document.get(COMPENSATION).is_none() {
        document.insert(COMPENSATION, Item::Table(Table::new()));
    }
    let table = document
        .get_mut(COMPENSATION)
        .and_then(Item::as_table_like_mut);
    let table = table.ok_or_else(|| CalibrationEditError::Missing(format!("[{COMPENSATION}]")))?;
    for (key, numbers) in values {
        set(table, key, numbers);
    }
    Ok(())
}

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
    let mut document: DocumentMut = text
        .parse()
        .map_err(|error: toml_edit::TomlError| CalibrationEditError::Toml(error.to_string()))?;
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

fn named<'a>(document: &'a mut DocumentMut, list: &str, name: &str) -> Option<&'a mut Table> {
    let tables = document.get_mut(list)?.as_array_of_tables_mut()?;
    let is_it = |table: &&mut Table| table.get("name").and_then(Item::as_str) == Some(name);
    tables.iter_mut().find(is_it)
}

/// A servo's `zero_tick` or `sign`.
fn zero(document: &mut DocumentMut, key: &str, numbers: &[f64]) -> Option<()> {
    let (key, id) = key.split_once(" of servo ")?;
    let (id, ticks) = (id.parse().ok()?, whole(*numbers.first()?));
    let joints = document.get_mut("joints")?.as_array_of_tables_mut()?;
    for joint in joints.iter_mut() {
        let servos = joint.get_mut("servos")?;
        if let Some(array) = servos.as_array_mut() {
            for servo in array.iter_mut().filter_map(Value::as_inline_table_mut) {
                if id_of(servo) == Some(id) {
                    replace_value(servo.get_mut(key)?, ticks.into());
                    return Some(());
                }
            }
        } else if let Some(tables) = servos.as_array_of_tables_mut() {
            for servo in tables.iter_mut() {
                if id_of(servo) == Some(id) {
                    replace_value(servo.get_mut(key)?.as_value_mut()?, ticks.into());
                    return Some(());
                }
            }
        }
    }
    None
}

/// A joint's `lower_rad` or `upper_rad`.
fn limit(document: &mut DocumentMut, key: &str, numbers: &[f64]) -> Option<()> {
    let (key, joint) = key.split_once(" of ")?;
    let joint = named(document, "joints", joint)?;
    replace_value(
        joint.get_mut(key)?.as_value_mut()?,
        (*numbers.first()?).into(),
    );
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

fn set(table: &mut dyn TableLike, key: &str, numbers: &[f64]) {
    write_over(
        table,
        key,
        Value::Array(numbers.iter().copied().collect::<Array>()),
    );
}

fn write_over(table: &mut dyn TableLike, key: &str, made: Value) {
    match table.get_mut(key).and_then(Item::as_value_mut) {
        Some(there) => replace_value(there, made),
        None => {
            table.insert(key, Item::Value(made));
        }
    }
}

/// Replaces a value and keeps the text around it, such as a comment behind it.
fn replace_value(there: &mut Value, made: Value) {
    let decor = there.decor().clone();
    *there = made;
    *there.decor_mut() = decor;
}
