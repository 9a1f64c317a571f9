//! Pictures for people of what is planned and what was drawn: plain data in, PNG bytes out.

mod camera_overlay;
mod canvas;
mod grid_picture;
mod ink_picture;
mod plan_picture;
mod reach_picture;
mod relief;
mod sheet_transform;

pub use camera_overlay::{CameraOverlayView, PixelLine, photo_png, seen_png};
pub use canvas::REFUSED;
pub use grid_picture::grid_png;
pub use ink_picture::ink_png;
pub use plan_picture::{pixel_of, plan_png};
pub use reach_picture::reach_png;

/// Largest length of a picture's longer side.
pub const SIDE_MAX_PX: u32 = 1000;

/// Largest size of a picture's file.
pub const BYTES_MAX: usize = 150_000;

/// A colour in sRGB.
pub type Rgb = [u8; 3];

/// Reason why there is no picture.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PictureError {
    /// The sheet cannot be shown.
    #[error("a sheet of {0} mm cannot be shown: both sides must be above 0 and at most 100 m")]
    Sheet(String),
    /// The picture could not be made.
    #[error("the picture could not be made: {0}")]
    Encoding(String),
}

/// A line on the sheet.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SheetLine {
    /// Its points on the sheet, from the lower left corner, y up. Points that are not finite are skipped.
    pub points_mm: Vec<[f64; 2]>,
    /// Colour of the pen.
    pub colour: Rgb,
    /// Line width of the pen; thinner lines are drawn with a minimum visible width.
    pub width_mm: f64,
}

/// A planned stroke.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct PlannedStroke {
    /// The line, in the pen's colour and width.
    pub line: SheetLine,
    /// Its place in the drawing order, counted from 1; `None` shows no number.
    pub order: Option<usize>,
    /// Set if a rule refuses it: it is shown red.
    pub is_refused: bool,
}

/// A value over time, shown as a strip.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct TimeStrip {
    /// Name of the value with its unit: `tilt, deg`. Characters that the font lacks are left out.
    pub name: String,
    /// Pairs of time in seconds, ascending, and value.
    pub samples: Vec<[f64; 2]>,
    /// A limit that is shown as a line.
    pub limit: Option<f64>,
}

/// Light on a surface that is not flat, at points of the sheet.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SheetRelief {
    /// Distance from one point to the next; the first is the sheet's lower left corner.
    pub step_mm: f64,
    /// Number of columns and rows of points.
    pub size: [usize; 2],
    /// Light at each point, from 0 to 1, row by row from the lowest; `None` where there is no surface.
    pub light: Vec<Option<f64>>,
}

/// Content of `plan.png`.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct PlanView {
    /// The scene's name.
    pub title: String,
    /// One line under the title: length, time and dips.
    pub caption: String,
    /// The sheet's width and height.
    pub sheet_mm: [f64; 2],
    /// Lowest and highest corner of the paper, where more than the paper is shown.
    pub paper_mm: Option<[[f64; 2]; 2]>,
    /// Light on the sheet's surface, where it is not flat.
    pub relief: Option<SheetRelief>,
    /// The planned strokes, in any order.
    pub strokes: Vec<PlannedStroke>,
    /// Travels of the tip in the air.
    pub travels_mm: Vec<Vec<[f64; 2]>>,
    /// Pairs of x and tip height above the sheet, in mm, in drawing order.
    pub side_mm: Vec<[f64; 2]>,
    /// Strips over time: margin to the joint limits, tilt, speed.
    pub strips: Vec<TimeStrip>,
    /// Places on the sheet that a rule refuses, each shown as a red ring.
    pub marks_mm: Vec<[f64; 2]>,
}

/// Content of `reach.png`: a map of the sheet's plane.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ReachView {
    /// The scene's name.
    pub title: String,
    /// One line under the title.
    pub caption: String,
    /// The sheet's width and height.
    pub sheet_mm: [f64; 2],
    /// Distance from one point of the map to the next.
    pub step_mm: f64,
    /// The map's lower left point, in the sheet's coordinates.
    pub low_mm: [f64; 2],
    /// Number of columns and rows of points.
    pub size: [usize; 2],
    /// Tilt of the pen at each point, row by row from the lowest; `None` out of reach.
    pub tilts_deg: Vec<Option<f64>>,
    /// Largest allowed tilt.
    pub cone_deg: f64,
    /// Move of the sheet that would improve its place.
    pub move_mm: Option<[f64; 2]>,
    /// Place of the arm's base, in the sheet's coordinates.
    pub foot_mm: Option<[f64; 2]>,
    /// Short lines of text next to the map.
    pub notes: Vec<String>,
}

/// Content of `drawn.png`.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct InkView {
    /// The scene's name.
    pub title: String,
    /// One line under the title: deviation, length and time.
    pub caption: String,
    /// The sheet's width and height.
    pub sheet_mm: [f64; 2],
    /// Light on the sheet's surface, where it is not flat.
    pub relief: Option<SheetRelief>,
    /// Lines of the design, shown grey beneath.
    pub design_mm: Vec<Vec<[f64; 2]>>,
    /// Lines drawn by the pen.
    pub ink: Vec<SheetLine>,
}

/// Content of a picture from which places are read.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct GridView<'a> {
    /// The scene's name.
    pub title: String,
    /// One line under the title: what is shown.
    pub caption: String,
    /// The sheet's width and height.
    pub sheet_mm: [f64; 2],
    /// The whole sheet from straight above: width and height in pixels, and three bytes a pixel.
    pub photo: Option<([u32; 2], &'a [u8])>,
    /// What is drawn on it.
    pub ink: Vec<SheetLine>,
}

fn check_sheet(sheet_mm: [f64; 2]) -> Result<(), PictureError> {
    let is_side = |side: &f64| *side > 0.0 && *side <= 100_000.0;
    if sheet_mm.iter().all(is_side) {
        return Ok(());
    }
    let [width, height] = sheet_mm;
    Err(PictureError::Sheet(format!("{width} by {height}")))
}

#[cfg(test)]
mod tests;
