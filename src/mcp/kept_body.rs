//! The part of a request's body that has arrived.

use super::stdio::keep_ends;

/// The received part of a body. If the body does not become whole, because its time is over, its connection breaks or its
/// request is dropped, a stop in it is carried out all the same.
pub(super) struct KeptBody {
    pub(super) bytes: Vec<u8>,
    on_cut: StopListener,
}

/// Carries out the stop that a text names.
type StopListener = Box<dyn Fn(&[u8]) + Send + Sync>;

impl KeptBody {
    pub(super) fn new(on_cut: StopListener) -> Self {
        let bytes = Vec::new();
        Self { bytes, on_cut }
    }
}

impl Drop for KeptBody {
    fn drop(&mut self) {
        if !self.bytes.is_empty() {
            keep_ends(&mut self.bytes);
            (self.on_cut)(&self.bytes);
        }
    }
}
