//! One value for each joint of an arm, base first, without allocation.

use crate::MAX_JOINTS;

/// At most [`MAX_JOINTS`] values, one for each joint, base first.
#[derive(Debug, Clone, Copy)]
pub struct Joints<T> {
    values: [T; MAX_JOINTS],
    len: usize,
}

impl<T: Copy + Default> Joints<T> {
    /// Returns no joints.
    pub fn empty() -> Self {
        Self {
            values: [T::default(); MAX_JOINTS],
            len: 0,
        }
    }

    /// Returns `count` default values; `None` if `count` exceeds [`MAX_JOINTS`].
    pub fn zeroed(count: usize) -> Option<Self> {
        (count <= MAX_JOINTS).then(|| Self {
            values: [T::default(); MAX_JOINTS],
            len: count,
        })
    }

    /// Returns a copy of `values`; `None` if there are more than [`MAX_JOINTS`].
    pub fn from_slice(values: &[T]) -> Option<Self> {
        let mut joints = Self::zeroed(values.len())?;
        joints.as_mut_slice().copy_from_slice(values);
        Some(joints)
    }

    /// Appends one value; returns `false` and changes nothing if there are already [`MAX_JOINTS`].
    pub fn push(&mut self, value: T) -> bool {
        let Some(slot) = self.values.get_mut(self.len) else {
            return false;
        };
        *slot = value;
        self.len += 1;
        true
    }

    /// Returns the value of joint `index`, or the type's default if there is no such joint.
    pub fn at(&self, index: usize) -> T {
        self.as_slice().get(index).copied().unwrap_or_default()
    }
}

impl<T> Joints<T> {
    /// Returns the values.
    pub fn as_slice(&self) -> &[T] {
        self.values.get(..self.len).unwrap_or_default()
    }

    /// Returns the values for modification; their number stays.
    pub fn as_mut_slice(&mut self) -> &mut [T] {
        self.values.get_mut(..self.len).unwrap_or_default()
    }

    /// Returns the number of joints.
    pub const fn len(&self) -> usize {
        self.len
    }

    /// Returns whether there are no joints.
    pub const fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Iterates over the values, base first.
    pub fn iter(&self) -> core::slice::Iter<'_, T> {
        self.as_slice().iter()
    }
}

impl<'a, T> IntoIterator for &'a Joints<T> {
    type Item = &'a T;
    type IntoIter = core::slice::Iter<'a, T>;
    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}

impl<T: PartialEq> PartialEq for Joints<T> {
    fn eq(&self, other: &Self) -> bool {
        self.as_slice() == other.as_slice()
    }
}

impl<T: Eq> Eq for Joints<T> {}

impl<T: Copy + Default> Default for Joints<T> {
    fn default() -> Self {
        Self::empty()
    }
}
