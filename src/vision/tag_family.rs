//! Tag families, the tags of a sheet, and tags detected in a picture.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Maximum number of tags of a sheet.
pub const TAGS_MAX: usize = 32;

/// A family of AprilTags.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum Family {
    /// Thirty tags of 4 by 4 bits: readable when small, but more easily misread.
    #[serde(rename = "16h5")]
    Tag16h5,
    /// 587 tags of 6 by 6 bits.
    #[serde(rename = "36h11")]
    Tag36h11,
}

impl Family {
    /// Returns the family's name in scenes.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::Tag16h5 => "16h5",
            Self::Tag36h11 => "36h11",
        }
    }

    /// Returns the number of tags in the family; ids begin at 0.
    #[must_use]
    pub const fn count(self) -> u16 {
        match self {
            Self::Tag16h5 => 30,
            Self::Tag36h11 => 587,
        }
    }

    /// Returns the number of cells along a side of the black square, its frame included. A further
    /// white cell must surround it.
    #[must_use]
    pub const fn cells_per_side(self) -> u8 {
        match self {
            Self::Tag16h5 => 6,
            Self::Tag36h11 => 8,
        }
    }
}

/// A tag on a sheet.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct SheetTag {
    /// Its number in its family.
    pub id: u16,
    /// Its centre on the sheet.
    pub at_mm: [f64; 2],
    /// The side of its black square.
    pub size_mm: f64,
    /// Its rotation, counter-clockwise as a reader of the sheet sees it.
    pub turn_deg: f64,
}

impl SheetTag {
    /// Returns the black square's corners on the sheet: lower left, lower right, upper right and upper left
    /// of the tag as it reads upright.
    #[must_use]
    pub fn corners_mm(&self) -> [[f64; 2]; 4] {
        self.square_mm(self.size_mm)
    }

    /// Returns the corners of its white edge, which nothing may be drawn on.
    #[must_use]
    pub fn edge_mm(&self, family: Family) -> [[f64; 2]; 4] {
        self.square_mm(self.size_mm * (1.0 + 2.0 / f64::from(family.cells_per_side())))
    }

    fn square_mm(&self, side: f64) -> [[f64; 2]; 4] {
        let (sin, cos) = self.turn_deg.to_radians().sin_cos();
        let half = side / 2.0;
        [[-half, -half], [half, -half], [half, half], [-half, half]].map(|[x, y]| {
            [
                self.at_mm[0] + x * cos - y * sin,
                self.at_mm[1] + x * sin + y * cos,
            ]
        })
    }
}

/// The tags of a sheet.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct TagLayout {
    /// Family of all tags.
    pub family: Family,
    /// The tags, at most [`TAGS_MAX`], each id once.
    pub tags: Vec<SheetTag>,
}

/// A tag in a picture.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct DetectedTag {
    /// Its number in its family.
    pub id: u16,
    /// Its corners, in the order of [`SheetTag::corners_mm`].
    pub corners_px: [[f64; 2]; 4],
}
