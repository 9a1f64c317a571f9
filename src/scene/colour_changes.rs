//! Counts strokes that a pen of another colour draws.

use super::ScenePen;
use base::wording::count;
use design::DesignStroke;

/// Distance of two colours in sRGB, squared, from which they look different.
const DIFFERENT_SQUARED: i32 = 80 * 80;

/// Most colours that a note lists.
const LISTED_MAX: usize = 5;

/// Colours of a design that no pen has, each with the pen that draws it and how many strokes.
#[derive(Default)]
pub(super) struct ColourChanges(Vec<([u8; 3], String, usize)>);

impl ColourChanges {
    /// Counts a stroke if its pen was chosen by its colour and looks different.
    pub(super) fn add(&mut self, stroke: &DesignStroke, pen: &ScenePen) {
        let Some(colour) = stroke.colour.filter(|_| stroke.pen.is_none()) else {
            return;
        };
        if pen.distance_squared(colour) < DIFFERENT_SQUARED {
            return;
        }
        let mut known = self.0.iter_mut();
        match known.find(|(other, name, _)| *other == colour && *name == pen.name) {
            Some((.., strokes)) => *strokes += 1,
            None => self.0.push((colour, pen.name.clone(), 1)),
        }
    }

    /// Says which colours are drawn with which pens.
    pub(super) fn note(&self) -> Option<String> {
        let listed = self
            .0
            .iter()
            .take(LISTED_MAX)
            .map(|([r, g, b], pen, strokes)| {
                format!(
                    "#{r:02x}{g:02x}{b:02x} with {pen} ({})",
                    count(*strokes, "stroke")
                )
            });
        let listed = listed.collect::<Vec<_>>().join(", ");
        let more = match self.0.len().saturating_sub(LISTED_MAX) {
            0 => String::new(),
            more => format!(" and {more} more"),
        };
        (!self.0.is_empty()).then(|| format!("colours drawn with a different pen: {listed}{more}"))
    }
}
