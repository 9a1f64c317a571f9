//! Ring buffers of a fixed size.

/// Up to `N` items, the oldest first.
#[derive(Debug, Clone)]
pub(crate) struct Ring<T, const N: usize> {
    items: [T; N],
    first: usize,
    len: usize,
}

impl<T: Copy, const N: usize> Ring<T, N> {
    pub(crate) const fn new(filler: T) -> Self {
        Self {
            items: [filler; N],
            first: 0,
            len: 0,
        }
    }

    pub(crate) const fn len(&self) -> usize {
        self.len
    }

    pub(crate) const fn free(&self) -> usize {
        N - self.len
    }

    /// Returns the item at a place, counted from the oldest.
    pub(crate) fn get(&self, place: usize) -> Option<T> {
        let item = self.items.get((self.first + place) % N);
        item.copied().filter(|_| place < self.len)
    }

    /// Appends an item, in place of the oldest if there is no room.
    pub(crate) fn push_over(&mut self, item: T) {
        if self.len == N {
            self.drop_oldest(1);
        }
        if let Some(slot) = self.items.get_mut((self.first + self.len) % N) {
            *slot = item;
            self.len += 1;
        }
    }

    pub(crate) fn pop(&mut self) -> Option<T> {
        let item = self.get(0)?;
        self.drop_oldest(1);
        Some(item)
    }

    /// Drops the oldest `count` items; there must be as many.
    pub(crate) const fn drop_oldest(&mut self, count: usize) {
        self.first = (self.first + count) % N;
        self.len -= count;
    }

    pub(crate) const fn clear(&mut self) {
        self.len = 0;
    }
}

impl<const N: usize> Ring<u8, N> {
    /// Appends all of `frame`, or nothing if it does not fit.
    pub(crate) fn put(&mut self, frame: &[u8]) {
        if frame.len() <= self.free() {
            frame.iter().for_each(|&byte| self.push_over(byte));
        }
    }

    /// Moves as many bytes to `out` as fit.
    pub(crate) fn take(&mut self, out: &mut [u8]) -> usize {
        let count = out.len().min(self.len);
        for slot in out.iter_mut().take(count) {
            *slot = self.pop().unwrap_or(0);
        }
        count
    }
}
