//! Drawings as people have them, made strokes on a flat page: geometry, no time, no joints.

/// A drawing on its page. The page's origin is its lower left corner, x to the right, y up.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Design {
    /// The page's width and height, both above 0 unless there are no strokes.
    pub page_mm: [f64; 2],
    /// In the author's order.
    pub strokes: Vec<Stroke>,
}

/// One path drawn without lifting the pen.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Stroke {
    /// At least two points, finite, neighbours apart. A closed path repeats its first point.
    pub points_mm: Vec<[f64; 2]>,
    /// The colour that the author gave it, as sRGB bytes; says which pen draws it.
    pub colour: Option<[u8; 3]>,
    /// The pen's number that the author gave it, counted from 0 (layers, G-code files).
    pub pen: Option<u16>,
    /// Where it stands in the author's file, for messages: an id, an element, a line.
    pub source: String,
}

impl Stroke {
    /// Its length.
    #[must_use]
    pub fn length_mm(&self) -> f64 {
        self.points_mm
            .iter()
            .zip(self.points_mm.iter().skip(1))
            .map(|([ax, ay], [bx, by])| (bx - ax).hypot(by - ay))
            .sum()
    }
}
