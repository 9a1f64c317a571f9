//! Writes calibrated numbers into the text of a scene's or an arm's file, preserving comments.

use std::collections::BTreeMap;

use toml_edit::{DocumentMut, Item, Table, TableLike, Value};

use super::bases_assessment::{NUMBER_KEYS, OF_ARM};
use super::calibration_record::{CalibrationKind, CalibrationSession, FileValues};
use super::height_map_fit::UNCERTAINTY_KEY;
use arm::{ArmModel, ServoFile};

/// Reason that a file's text cannot be changed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CalibrationEditError {
    /// It is not TOML.
    #[error("the file is not TOML: {0}")]
    Toml(String),
    /// It has no such value, or has it in a form that cannot be edited in place.
    #[error("the file has no table of its own for {0}. Next: write one, as in the shipped files")]
    Missing(String),
}

/// Returns the text with the calibrated values in place of the old ones.
///
/// # Errors
/// The text is not TOML, or lacks the calibrated object.
pub fn write(
    text: &str,
    session: &CalibrationSession,
    values: &FileValues,
) -> Result<String, CalibrationEditError> {
    let mut document = parse(text)?;
    match session.kind {
        // Its record has a file of its own: a camera belongs to the node, not to a scene.
        CalibrationKind::Camera => {}
        CalibrationKind::Zeros => {
            for (key, numbers) in values {
                let written = set_servo_value(&mut document, key, numbers)
                    .or_else(|| set_limit(&mut document, key, numbers));
                written.ok_or_else(|| CalibrationEditError::Missing(format!("`{key}`")))?;
            }
        }
        CalibrationKind::Bases => {
            for (key, numbers) in values {
                let missing = || CalibrationEditError::Missing(format!("`{key}`"));
                let (key, arm) = key.split_once(OF_ARM).ok_or_else(missing)?;
                let table = named(&mut document, "arms", arm).ok_or_else(missing)?;
                set(table, key, numbers)?;
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

fn parse(text: &str) -> Result<DocumentMut, CalibrationEditError> {
    text.parse()
        .map_err(|error: toml_edit::TomlError| CalibrationEditError::Toml(error.to_string()))
}

/// Returns the table of the calibrated object.
fn table_of<'a>(
    document: &'a mut DocumentMut,
    session: &CalibrationSession,
) -> Result<&'a mut dyn TableLike, CalibrationEditError> {
    let CalibrationSession { pen, name, .. } = session;
    // One of several arms has a sheet and poses of its own.
    let arm = session.scene.split_once(scene::PART).map(|(_, arm)| arm);
    let (found, what) = match session.kind {
        CalibrationKind::Tool => (named(document, "pens", pen), format!("pen `{pen}`")),
        CalibrationKind::Cap => (named(document, "inks", name), format!("ink `{name}`")),
        CalibrationKind::Sheet => (of_arm(document, arm, "sheet"), "[sheet]".to_owned()),
        CalibrationKind::Pose => (of_arm(document, arm, "poses"), "[poses]".to_owned()),
        CalibrationKind::Play => (
            ensure_table(document.as_table_mut(), "compensation"),
            "[compensation]".to_owned(),
        ),
        _ => return Ok(document.as_table_mut()),
    };
    found.ok_or(CalibrationEditError::Missing(what))
}

/// Returns a table of the scene, or that of one of its arms.
fn of_arm<'a>(
    document: &'a mut DocumentMut,
    arm: Option<&str>,
    name: &str,
) -> Option<&'a mut dyn TableLike> {
    match arm {
        None => document.get_mut(name)?.as_table_like_mut(),
        Some(arm) => ensure_table(named(document, "arms", arm)?, name),
    }
}

/// Returns a table within another, creating it if need be; `None` if something else has its name.
fn ensure_table<'a>(table: &'a mut dyn TableLike, name: &str) -> Option<&'a mut dyn TableLike> {
    if table.get(name).is_none() {
        // Within an inline table it becomes an inline table itself.
        table.insert(name, Item::Table(Table::new()));
    }
    table.get_mut(name)?.as_table_like_mut()
}

/// Tables within `[sheet]`: its correction and its heights.
const WITHIN_SHEET: [&str; 2] = ["correction", "heights"];

/// Key of a rolled sheet's radius.
pub(super) const RADIUS_KEY: &str = "cylinder_radius_mm";

/// Returns the key of a servo's zero.
pub(super) fn zero_key(id: u8) -> String {
    format!("zero_tick of servo {id}")
}

/// Returns the key of a servo's direction of rotation.
pub(super) fn sign_key(id: u8) -> String {
    format!("sign of servo {id}")
}

/// Returns the names of the joints whose direction would be the opposite of that in their arm's file.
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

/// Returns the text with the identities of the servos that were measured in place of the old ones.
///
/// # Errors
/// The text is not TOML.
pub fn identify(text: &str, servos: &BTreeMap<u8, String>) -> Result<String, CalibrationEditError> {
    let mut document = parse(text)?;
    let mut table = Table::new();
    for (id, fingerprint) in servos {
        table.insert(&id.to_string(), Item::Value(fingerprint.as_str().into()));
    }
    match document.get_mut("identity").and_then(Item::as_table_mut) {
        // A comment above the table stays.
        Some(existing) => {
            existing.clear();
            existing.extend(table);
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
    let has_name = |table: &&mut Table| table.get("name").and_then(Item::as_str) == Some(name);
    Some(tables.find(has_name)?)
}

/// Sets a servo's `zero_tick` or `sign`.
fn set_servo_value(document: &mut DocumentMut, key: &str, numbers: &[f64]) -> Option<()> {
    let (key, id) = key.split_once(" of servo ")?;
    let (id, ticks) = (id.parse().ok()?, whole(*numbers.first()?));
    let joints = document.get_mut("joints")?.as_array_of_tables_mut()?;
    let mut servos = joints.iter_mut().flat_map(servos);
    let servo = servos.find(|servo| id_of(*servo) == Some(id))?;
    replace_value(servo.get_mut(key)?.as_value_mut()?, ticks.into());
    Some(())
}

/// Returns a joint's servos, in a list or as tables of their own.
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
fn set_limit(document: &mut DocumentMut, key: &str, numbers: &[f64]) -> Option<()> {
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

/// Writes numbers under a key, those of a sheet's correction and of its heights into tables of their own.
fn set(table: &mut dyn TableLike, key: &str, numbers: &[f64]) -> Result<(), CalibrationEditError> {
    let is_number = [RADIUS_KEY, UNCERTAINTY_KEY].contains(&key) || NUMBER_KEYS.contains(&key);
    let (table, key) = match key.split_once('.') {
        Some((within, key)) if WITHIN_SHEET.contains(&within) => (ensure_table(table, within), key),
        _ => (Some(table), key),
    };
    let missing = || CalibrationEditError::Missing(format!("`{key}`"));
    let table = table.ok_or_else(missing)?;
    let value = match numbers {
        [number] if is_number => (*number).into(),
        _ => Value::Array(numbers.iter().copied().collect()),
    };
    match table.get_mut(key).and_then(Item::as_value_mut) {
        Some(existing) => replace_value(existing, value),
        None => {
            table.insert(key, Item::Value(value));
        }
    }
    Ok(())
}

/// Replaces a value and keeps the text around it, such as a comment after it.
fn replace_value(existing: &mut Value, value: Value) {
    let decor = existing.decor().clone();
    *existing = value;
    *existing.decor_mut() = decor;
}
