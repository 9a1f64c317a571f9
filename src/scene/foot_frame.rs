//! Rewrites files that name no frame into the frame of an arm's foot: text to text, comments kept.

use nalgebra::{Unit, UnitQuaternion, Vector3};
use toml_edit::{DocumentMut, Item, Table, TableLike, Value};

use super::build_scene::{PROBE_DEPTH_MM, TABLE_M, default_workspace};
use super::embedded;
use arm::{ArmFile, ArmModel, BaseFrame, FrameBefore, JointFile};
use base::units::Finite;

/// Keys of a scene's places in space.
const PLACES: [&str; 5] = ["origin_m", "rim_m", "calibrator_m", "min_m", "max_m"];

/// Keys of a scene's poses.
const POSES: [&str; 3] = ["rest_rad", "ready_rad", "change_rad"];

/// Returns the text of a scene or an overlay in the frame of its arm's foot; `None` if it names its frame, or the arm has no
/// frame of before. It must have been read as such a file without error.
pub(super) fn scene(text: &str, arm: &ArmModel) -> Option<String> {
    let before = arm.file.frame_before.as_ref()?;
    let mut document = frameless(text)?;
    let joints: Vec<&str> = arm.file.joints.iter().map(|j| j.name.as_str()).collect();
    rewrite(document.as_table_mut(), &mut |key, numbers| {
        if PLACES.contains(&key)
            && let Ok(at_m) = <[f64; 3]>::try_from(&numbers[..])
        {
            *numbers = before.place_m(at_m).into();
        } else if POSES.contains(&key) {
            for (angle, joint) in numbers.iter_mut().zip(&joints) {
                *angle = before.angle_rad(joint, *angle);
            }
        } else {
            return false;
        }
        true
    });
    if lies_low(&document) {
        state_workspace(&mut document, before, arm);
    }
    name_frame(&mut document);
    Some(document.to_string())
}

/// Returns the text of an arm in the frame of its foot; `None` if it names its frame, or does not stand where the arm
/// `shipped` stood in the frame of before.
fn arm(text: &str, file: &ArmFile, shipped: &ArmFile) -> Option<String> {
    let before = shipped.frame_before.as_ref()?;
    let mut document = frameless(text)?;
    let first = file.joints.first()?;
    let same_place = before.place_m(first.origin_m.map(Finite::get));
    let shipped_place = shipped.joints.first()?.origin_m.map(Finite::get);
    let is_near = |(a, b): (&f64, &f64)| (a - b).abs() < 1e-6;
    if !same_place.iter().zip(&shipped_place).all(is_near) {
        return None;
    }
    move_base(&mut document, before);
    for joint in &file.joints {
        turn_zero(&mut document, joint, before);
    }
    name_frame(&mut document);
    let mut table = Table::new();
    table.insert(
        "origin_m",
        numbers(before.origin_m.map(Finite::get).into_iter()),
    );
    let mut zeros = Table::new();
    for (joint, zero) in &before.zeros_rad {
        zeros.insert(joint, Item::Value(zero.get().into()));
    }
    zeros.set_dotted(true);
    table.insert("zeros_rad", Item::Table(zeros));
    document.insert("frame_before", Item::Table(table));
    Some(document.to_string())
}

/// Returns an arm's text in the frame of its foot, if it is a shipped arm's, or one that is like it, from before.
pub(super) fn shipped_arm(text: &str, file: &ArmFile) -> Option<String> {
    if file.frame.is_some() {
        return None;
    }
    let names = std::iter::once(&file.name).chain(&file.like);
    let mut shipped = names.filter_map(|name| {
        let embedded = embedded::find(&format!("arms/{name}.toml"))?;
        toml::from_str(std::str::from_utf8(embedded.bytes).ok()?).ok()
    });
    shipped.find_map(|shipped: ArmFile| arm(text, file, &shipped))
}

/// Returns a note on the files, each with whether it is of before, that were read in the frame of before, if that was another.
pub(super) fn note(arm: &ArmFile, files: &[(bool, &str)]) -> Option<String> {
    let has_moved = arm
        .frame_before
        .as_ref()
        .is_some_and(FrameBefore::has_moved);
    let of_before = files.iter().filter(|(is_of_before, _)| *is_of_before);
    let names: Vec<&str> = of_before.map(|(_, file)| *file).collect();
    let (first, names) = (names.first()?, names.join(" and "));
    has_moved.then(|| {
        format!(
            "there is no `frame` in {names}, so all places were read in the older frame and converted to the frame of the foot of {}. Next: rewrite it with `steadyhand scene convert {first}`",
            arm.name
        )
    })
}

/// Parses a text; `None` if it is not TOML, or names its frame.
fn frameless(text: &str) -> Option<DocumentMut> {
    let document: DocumentMut = text.parse().ok()?;
    (!document.contains_key("frame")).then_some(document)
}

/// Writes the frame before the first key, below the comment above it.
fn name_frame(document: &mut DocumentMut) {
    let value = match BaseFrame::Foot {
        BaseFrame::Foot => "foot",
    };
    document.insert("frame", Item::Value(value.into()));
}

/// Rewrites each list of numbers for which `change` returns true.
fn rewrite(table: &mut dyn TableLike, change: &mut dyn FnMut(&str, &mut Vec<f64>) -> bool) {
    for (key, item) in table.iter_mut() {
        let key = key.get().to_owned();
        match item {
            Item::ArrayOfTables(tables) => tables.iter_mut().for_each(|one| rewrite(one, change)),
            Item::Table(inner) => rewrite(inner, change),
            Item::Value(Value::InlineTable(inner)) => rewrite(inner, change),
            Item::Value(Value::Array(list)) => {
                for inner in list.iter_mut().filter_map(Value::as_inline_table_mut) {
                    rewrite(inner, change);
                }
                if let Some(mut values) = list.iter().map(number).collect::<Option<Vec<f64>>>()
                    && change(&key, &mut values)
                {
                    let pairs = list.iter_mut().zip(values);
                    pairs.for_each(|(old, new)| replace(old, new.into()));
                }
            }
            _ => {}
        }
    }
}

fn number(value: &Value) -> Option<f64> {
    #[expect(clippy::cast_precision_loss, reason = "lengths and angles are small")]
    let whole = value.as_integer().map(|whole| whole as f64);
    value.as_float().or(whole)
}

fn numbers(values: impl Iterator<Item = f64>) -> Item {
    Item::Value(Value::Array(values.collect()))
}

/// Replaces a value and keeps the text around it.
fn replace(old: &mut Value, new: Value) {
    let decor = old.decor().clone();
    *old = new;
    *old.decor_mut() = decor;
}

/// Moves what is fixed to the base: the first joint and the capsules that no joint moves.
fn move_base(document: &mut DocumentMut, before: &FrameBefore) {
    let place = |keys: &'static [&'static str], table: &mut dyn TableLike| {
        rewrite(table, &mut |key, numbers| {
            let at_m = <[f64; 3]>::try_from(&numbers[..]).ok();
            let at_m = at_m.filter(|_| keys.contains(&key));
            at_m.map(|at_m| *numbers = before.place_m(at_m).into())
                .is_some()
        });
    };
    let mut joints = tables(document.as_table_mut(), "joints").into_iter();
    if let Some(first) = joints.next() {
        place(&["origin_m"], first);
    }
    let fixed = tables(document.as_table_mut(), "capsules").into_iter();
    for capsule in fixed.filter(|capsule| !capsule.contains_key("joint")) {
        place(&["from_m", "to_m"], capsule);
    }
}

/// Turns a joint's frame so that its zero is the present one: limits and servos' zeros move along, and no link does.
fn turn_zero(document: &mut DocumentMut, joint: &JointFile, before: &FrameBefore) {
    let zero_rad = before.zero_rad(&joint.name);
    let is_this =
        |table: &&mut dyn TableLike| table.get("name").and_then(Item::as_str) == Some(&joint.name);
    let Some(table) = tables(document.as_table_mut(), "joints")
        .into_iter()
        .find(is_this)
    else {
        return;
    };
    if zero_rad == 0.0 {
        return;
    }
    let axis = Unit::new_normalize(Vector3::from(joint.axis.map(Finite::get)));
    let then = arm::isometry(Vector3::zeros(), joint.rpy_rad.map(Finite::get).into()).rotation;
    let (roll, pitch, yaw) =
        (then * UnitQuaternion::from_axis_angle(&axis, -zero_rad)).euler_angles();
    set(table, "rpy_rad", numbers([roll, pitch, yaw].into_iter()));
    for (key, then) in [
        ("lower_rad", joint.lower_rad),
        ("upper_rad", joint.upper_rad),
    ] {
        let now = before.angle_rad(&joint.name, then.get());
        set(table, key, Item::Value(now.into()));
    }
    for (servo, of_servo) in joint.servos.iter().zip(tables(table, "servos")) {
        let zero_tick = servo
            .zero_tick
            .saturating_sub(before.zero_ticks(&joint.name, *servo));
        set(
            of_servo,
            "zero_tick",
            Item::Value(i64::from(zero_tick).into()),
        );
    }
}

fn set(table: &mut dyn TableLike, key: &str, new: Item) {
    match (table.get_mut(key), new) {
        (Some(Item::Value(old)), Item::Value(new)) => replace(old, new),
        (_, new) => {
            table.insert(key, new);
        }
    }
}

/// Returns a table's list of tables, in any form.
fn tables<'a>(table: &'a mut dyn TableLike, key: &str) -> Vec<&'a mut dyn TableLike> {
    match table.get_mut(key) {
        Some(Item::ArrayOfTables(list)) => list.iter_mut().map(|one| one as _).collect(),
        Some(Item::Value(Value::Array(list))) => {
            let inner = list.iter_mut().filter_map(Value::as_inline_table_mut);
            inner.map(|one| one as _).collect()
        }
        _ => Vec::new(),
    }
}

/// Returns whether any corner of the sheet lies so deep that feeling for it would leave the usual workspace.
fn lies_low(document: &DocumentMut) -> bool {
    let list = |key: &str| -> Option<Vec<f64>> {
        let values = document.get("sheet")?.get(key)?.as_array()?;
        values.iter().map(number).collect()
    };
    let rise_m = |key: &str, side: usize| {
        let axis = list(key)?;
        let length_mm = *list("size_mm")?.get(side)?;
        let axis = Vector3::from_column_slice(axis.get(..3)?).try_normalize(1e-9)?;
        Some((axis.z * length_mm / 1e3).min(0.0))
    };
    let lowest = || {
        let origin = list("origin_m")?;
        Some(origin.get(2)? + rise_m("x_axis", 0)? + rise_m("y_axis", 1)?)
    };
    lowest().is_some_and(|z_m| z_m - PROBE_DEPTH_MM / 1e3 < -TABLE_M)
}

/// States the workspace that a scene had without stating it, which reached down to the table of then.
fn state_workspace(document: &mut DocumentMut, before: &FrameBefore, arm: &ArmModel) {
    let limits = document
        .entry("limits")
        .or_insert(Item::Table(Table::new()));
    let Some(limits) = limits.as_table_like_mut() else {
        return;
    };
    let usual = default_workspace(arm);
    let [.., low] = before.place_m([0.0, 0.0, -TABLE_M]);
    if limits.contains_key("workspace") || low >= usual.min_m.z {
        return;
    }
    let mut corners = toml_edit::InlineTable::new();
    let min_m = [usual.min_m.x, usual.min_m.y, low];
    corners.insert("min_m", Value::Array(min_m.into_iter().collect()));
    corners.insert("max_m", Value::Array(usual.max_m.iter().copied().collect()));
    limits.insert("workspace", Item::Value(corners.into()));
}

#[cfg(test)]
#[expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "a failing test may panic"
)]
mod tests;
