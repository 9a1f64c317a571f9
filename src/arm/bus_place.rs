//! Ids of an arm that shares its bus with others: those of its file, moved.

use std::borrow::Cow;
use std::collections::BTreeMap;

use super::{ArmFault, ArmFile, ArmModel, SERVO_ID_MAX, ServoFamily, servo_ids};

/// Place of an arm on its bus.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct BusPlace {
    /// By how much its ids are above those of its file, modulo 256.
    moved_by: u8,
    /// Ids of the other arms on the bus.
    pub others: Vec<u8>,
}

impl ArmModel {
    /// Returns every servo's id on the bus, those of the held ones last.
    #[must_use]
    pub fn ids(&self) -> Vec<u8> {
        servo_ids(&self.file).collect()
    }

    /// Returns the arm with its ids moved so that the lowest is `first`.
    ///
    /// # Errors
    /// Its highest id would be none of a servo, or it has a controller, on which ids are places.
    pub fn with_first_id(&self, first: u8) -> Result<Self, ArmFault> {
        if self.file.family == ServoFamily::Firmware {
            return Err(ArmFault::FirstIdOfController);
        }
        let ids = servo_ids(&self.file);
        let (lowest, highest) =
            ids.fold((u8::MAX, 0), |(low, high), id| (low.min(id), high.max(id)));
        let last = u16::from(first) + u16::from(highest.saturating_sub(lowest));
        if last > u16::from(SERVO_ID_MAX) {
            return Err(ArmFault::FirstId { first, last });
        }
        let by = first.wrapping_sub(lowest);
        let mut moved = self.clone();
        move_ids(&mut moved.file, by);
        moved.bus.moved_by = moved.bus.moved_by.wrapping_add(by);
        Ok(moved)
    }

    /// Returns its lowest id, if its ids are other ones than those of its file.
    #[must_use]
    pub fn moved_first_id(&self) -> Option<u8> {
        let lowest = servo_ids(&self.file).min();
        lowest.filter(|_| self.bus.moved_by != 0)
    }

    /// Returns the id by which its file knows one of its servos.
    #[must_use]
    pub const fn id_in_file(&self, id: u8) -> u8 {
        id.wrapping_sub(self.bus.moved_by)
    }

    /// Returns its description with the ids of its file.
    #[must_use]
    pub fn file_as_written(&self) -> Cow<'_, ArmFile> {
        let mut file = Cow::Borrowed(&self.file);
        if self.bus.moved_by != 0 {
            move_ids(file.to_mut(), 0_u8.wrapping_sub(self.bus.moved_by));
        }
        file
    }
}

fn move_ids(file: &mut ArmFile, by: u8) {
    let turning = file.joints.iter_mut().flat_map(|joint| &mut joint.servos);
    let turning = turning.map(|servo| &mut servo.id);
    let held = file.held.iter_mut().map(|held| &mut held.id);
    turning.chain(held).for_each(|id| *id = id.wrapping_add(by));
    move_keys(&mut file.identity, by);
    move_keys(&mut file.simulation.models, by);
}

/// Moves the ids that are keys; a key that is no id stays.
fn move_keys<T>(of_ids: &mut BTreeMap<String, T>, by: u8) {
    let moved = |key: String| match key.parse::<u8>() {
        Ok(id) => id.wrapping_add(by).to_string(),
        Err(_) => key,
    };
    let entries = std::mem::take(of_ids).into_iter();
    *of_ids = entries.map(|(key, value)| (moved(key), value)).collect();
}
