//! Carries tone that one line could not draw to the next line beside it, so that their mean is as dark as the picture.

/// What is owed at each place along a line: what was wanted there less what was drawn.
pub(crate) struct ToneCarry(Vec<f64>);

impl ToneCarry {
    /// Starts with nothing owed at any of `places`.
    pub(crate) fn new(places: usize) -> Self {
        Self(vec![0.0; places])
    }

    /// Returns what is owed at a place.
    pub(crate) fn owed(&self, place: usize) -> f64 {
        self.0.get(place).copied().unwrap_or(0.0)
    }

    /// Returns what is owed at a place, which then owes nothing.
    pub(crate) fn take(&mut self, place: usize) -> f64 {
        self.0.get_mut(place).map_or(0.0, std::mem::take)
    }

    /// Adds to what is owed at a place; at most the tone of a whole line.
    pub(crate) fn owe(&mut self, place: usize, tone: f64) {
        if let Some(owed) = self.0.get_mut(place) {
            *owed = (*owed + tone).clamp(-1.0, 1.0);
        }
    }

    /// Forgets what is owed at a place: beyond a picture's edge nothing is.
    pub(crate) fn clear(&mut self, place: usize) {
        self.take(place);
    }
}
