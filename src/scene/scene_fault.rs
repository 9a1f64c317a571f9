//! Invalid values of a scene file.

use nalgebra::Point3;

use super::height_map::MAP_PLACES;
use super::line_tidying::TIDYING_MM;
use super::sheet_correction::CORRECTION_MM_MAX;
use super::surface::SIDE_MM_MAX;
use base::units::OutOfRange;
use base::wording::cut;
use vision::{Family, TAGS_MAX};

/// The reason why a value of a scene file is refused: its key, the value and what is possible.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum SceneFault {
    /// A number is out of range.
    #[error(transparent)]
    OutOfRange(#[from] OutOfRange),
    /// The axis of the named pen has no direction.
    #[error("pen `{0}`: `axis` must have a length above 0")]
    PenAxis(String),
    /// A pen's ink is not one of the scene's.
    #[error("pen `{pen}`: there is no ink `{ink}`; the scene has {known:?}")]
    NoInk {
        /// The pen.
        pen: String,
        /// Its ink.
        ink: String,
        /// The scene's inks.
        known: Vec<String>,
    },
    /// A pen's colour cannot be read.
    #[error("pen `{pen}`: `colour` is `{colour}`; it must be of the form #rrggbb")]
    PenColour {
        /// The pen.
        pen: String,
        /// Its colour.
        colour: String,
    },
    /// No pen has the name or number of a filter.
    #[error("the scene has no pen {named:?}. Next: name {}", pen_names(pens))]
    NoPen {
        /// The name or number.
        named: String,
        /// The scene's pens.
        pens: Vec<String>,
    },
    /// No layer has the name or number of a choice.
    #[error("the drawing has no layer {named:?}; {}", layer_names(layers))]
    NoLayer {
        /// The name or number.
        named: String,
        /// The design's layers.
        layers: Vec<String>,
    },
    /// Strokes that a design does not have.
    #[error("strokes {first} to {last} were requested; the file has strokes 1 to {of}")]
    StrokeRange {
        /// The first that was asked for.
        first: usize,
        /// The last.
        last: usize,
        /// Number of all strokes.
        of: usize,
    },
    /// Chosen layers without a chosen stroke.
    #[error("the chosen layers have none of the chosen strokes, so nothing would be drawn")]
    EmptyPart,
    /// Too few or too many copies.
    #[error("{columns} by {rows} copies were requested; 1 to {max} columns and rows are possible")]
    Copies {
        /// Columns that were asked for.
        columns: u16,
        /// Rows.
        rows: u16,
        /// The largest number of each.
        max: u16,
    },
    /// Pauses that are too close.
    #[error("a pause every {limit} {unit} was requested; {least} {unit} is the minimum")]
    PauseEvery {
        /// What was asked for.
        limit: f64,
        /// The least that is possible.
        least: f64,
        /// The unit of both.
        unit: &'static str,
    },
    /// No pen has the number of a stroke.
    #[error("the design asks for pen {number}, but {}", pen_numbers(pens))]
    NoPenOfNumber {
        /// The number, from 1.
        number: u16,
        /// The scene's pens.
        pens: Vec<String>,
    },
    /// A point of the sheet lies outside of the workspace.
    #[error(
        "the sheet's point {at_mm:?} mm is at ({:.3}, {:.3}, {:.3}) m, outside the workspace of x {:.3} to {:.3}, y {:.3} to {:.3}, z {:.3} to {:.3} m. The table is z = 0. Next: correct `sheet.origin_m`, or write `limits.workspace` for a lower table",
        point_m[0], point_m[1], point_m[2], min_m[0], max_m[0], min_m[1], max_m[1], min_m[2], max_m[2]
    )]
    SheetOutside {
        /// The point on the sheet.
        at_mm: [f64; 2],
        /// The point in the base frame.
        point_m: [f64; 3],
        /// Lower corner of the workspace.
        min_m: [f64; 3],
        /// Upper corner of the workspace.
        max_m: [f64; 3],
    },
    /// A point is farther away than anything at an arm's table.
    #[error(
        "{what} is [{}, {}, {}]; each must be from -{max_m} to {max_m}: lengths are in metres", point_m.x, point_m.y, point_m.z
    )]
    TooFar {
        /// Its key.
        what: String,
        /// The point.
        point_m: Point3<f64>,
        /// Largest possible coordinate.
        max_m: f64,
    },
    /// The corners of a box are the wrong way round.
    #[error("{what}: `min_m` {min_m} must be below `max_m` {max_m} along each axis")]
    Corners {
        /// The box.
        what: String,
        /// Its lower corner.
        min_m: Point3<f64>,
        /// Its upper corner.
        max_m: Point3<f64>,
    },
    /// A pose has more or fewer angles than the arm has joints.
    #[error("`poses.{pose}` has {angles} angles; {arm} has {joints} joints")]
    PoseLength {
        /// The pose.
        pose: String,
        /// Number of its angles.
        angles: usize,
        /// The arm.
        arm: String,
        /// Number of the arm's joints.
        joints: usize,
    },
    /// An angle of a pose is beyond its joint's limits.
    #[error(
        "`poses.{pose}`: {joint} is {angle_rad} rad; {:.3} to {:.3} are possible", range_rad[0], range_rad[1]
    )]
    PoseAngle {
        /// The pose.
        pose: String,
        /// The joint.
        joint: String,
        /// The angle.
        angle_rad: f64,
        /// The joint's limits.
        range_rad: [f64; 2],
    },
    /// Lines may be tidied only within small distances.
    #[error(
        "`design.{key}` is {mm}; {} to {} mm are possible", TIDYING_MM.start(), TIDYING_MM.end()
    )]
    Tidying {
        /// The distance's key.
        key: String,
        /// The distance.
        mm: f64,
    },
    /// A font for a design without text that could have it.
    #[error("`design.font` is only for `text` and for the texts of an SVG")]
    NoText,
    /// Lines of a text that is none.
    #[error("`design.{0}` is only for `text`")]
    NoLines(&'static str),
    /// A style for a design that is no picture.
    #[error("`design.style` and `design.ink_percent` are only for a PNG or JPEG in `design.file`")]
    NoPicture,
    /// Only an SVG has areas.
    #[error("`design.fill` needs an SVG in `design.file`; other designs have no areas")]
    NoAreas,
    /// Nothing is filled.
    #[error(
        "`design.fill_spacing_mm` and `design.fill_angle_deg` need a `design.fill` of \"hatch\", \"cross\" or \"contour\""
    )]
    FillOfNothing,
    /// The sheet with tags is not flat.
    #[error(
        "`fiducials`: a camera can find only flat sheets. Next: remove `fiducials`, or `cylinder_radius_mm` and `[surface]`"
    )]
    TagsOnCurvedSheet,
    /// There are no tags, or too many.
    #[error("`fiducials` has {0} tags; 1 to {TAGS_MAX} are possible")]
    TagCount(usize),
    /// Two tags have one id, or overlap.
    #[error("`fiducials`: tags {} and {} overlap or have the same id", .0[0], .0[1])]
    TagsOverlap([u16; 2]),
    /// The family has no such tag.
    #[error(
        "`fiducials`: there is no tag {id} in {}; ids are 0 to {}", family.word(), family.count() - 1
    )]
    NoTag {
        /// The tag.
        id: u16,
        /// The family.
        family: Family,
    },
    /// A tag is too near to the sheet's edge.
    #[error(
        "`fiducials`: tag {id}, with its white edge, reaches beyond the sheet of {} by {} mm. Next: move the tag inwards, or print it smaller", sheet_mm[0], sheet_mm[1]
    )]
    TagBeyondSheet {
        /// The tag.
        id: u16,
        /// Width and height of the sheet.
        sheet_mm: [f64; 2],
    },
    /// An axis of the sheet, given by name and value, has no direction.
    #[error("`sheet.{0}` is {1:?}; it must have a length above 0")]
    SheetAxis(String, [f64; 3]),
    /// The sheet's axes are not at right angles.
    #[error("`sheet.x_axis` and `sheet.y_axis` are {degrees:.1}° apart; they must be 90° apart")]
    SheetAngle {
        /// The angle between them.
        degrees: f64,
    },
    /// The sheet's correction is too large at some place.
    #[error(
        "`sheet.correction` moves a place of the sheet by {most_mm:.2} mm (at most {CORRECTION_MM_MAX} mm). Next: calibrate the sheet's place first"
    )]
    Correction {
        /// Its largest offset.
        most_mm: f64,
    },
    /// The scene's frame is not that of its arm's file.
    #[error(
        "`frame` is \"foot\", but the file of arm `{arm}` has no `frame`, so its places are in a different one. Next: write `frame = \"foot\"` into that arm's file, or give it scenes without `frame`"
    )]
    OtherFrame {
        /// The arm.
        arm: String,
    },
    /// The sheet's size is not possible.
    #[error("`sheet.size_mm` is {0:?}; each side must be above 0 and at most {SIDE_MM_MAX}")]
    SheetSize([f64; 2]),
    /// The sheet is said to lie on two shapes.
    #[error(
        "the sheet has two shapes: a cylinder (`cylinder_radius_mm` or `lay` in `[sheet]`) and a mesh (`[surface]`). Next: remove one of the two shapes"
    )]
    TwoShapes,
    /// A map of heights of a sheet that has another shape already.
    #[error(
        "`sheet.heights` is for a flat sheet, but this one lies on a cylinder or a mesh. Next: remove `sheet.heights`, or the cylinder or mesh"
    )]
    MappedShape,
    /// Lists of a map that do not belong together.
    #[error(
        "`sheet.heights` has {} values of `x_mm`, {} of `y_mm` and {} of `height_mm`; each place needs one of each", .0[0], .0[1], .0[2]
    )]
    HeightMapLists([usize; 3]),
    /// Too few or too many places of a map.
    #[error(
        "`sheet.heights` has {0} places; {least} to {most} are possible. Next: `steadyhand call align '{{\"touch\": true, \"grid\": [3, 3]}}'`", least = MAP_PLACES.start(), most = MAP_PLACES.end()
    )]
    HeightMapPlaces(usize),
    /// Places of a map that are too near to each other.
    #[error(
        "`sheet.heights`: two places at ({:.1}, {:.1}) mm are {gap_mm:.1} mm apart; {least_mm} mm is the minimum", at_mm[0], at_mm[1]
    )]
    HeightMapApart {
        /// One of them.
        at_mm: [f64; 2],
        /// Their distance.
        gap_mm: f64,
        /// The least distance.
        least_mm: f64,
    },
    /// Places of a map that are all on a line.
    #[error("`sheet.heights`: all places are on one line. Next: touch a grid of the sheet")]
    HeightMapLine,
    /// A map that is too steep.
    #[error(
        "`sheet.heights` rises by {slope:.2} mm per millimetre; {most} is the limit. Next: touch the sheet again, or scan it as a mesh"
    )]
    HeightMapSlope {
        /// The steepest slope.
        slope: f64,
        /// The limit.
        most: f64,
    },
    /// The sheet reaches too far around its cylinder.
    #[error(
        "`sheet.cylinder_radius_mm` is {radius_mm}; it must be at least {least_mm:.1}, so that a sheet {width_mm} mm wide covers at most half of the cylinder"
    )]
    CylinderRadius {
        /// The cylinder's radius.
        radius_mm: f64,
        /// The sheet's width.
        width_mm: f64,
        /// The smallest radius for that width.
        least_mm: f64,
    },
}

/// Lists the layers of a design.
fn layer_names(layers: &[String]) -> String {
    let names: Vec<String> = layers.iter().map(|name| format!("{name:?}")).collect();
    match names.is_empty() {
        true => "the file has no layers".to_owned(),
        false => format!("its layers: {}", cut(&names.join(", "), LAYERS_CHARS_MAX)),
    }
}

/// Most characters of the layers that a message lists.
const LAYERS_CHARS_MAX: usize = 120;

fn pen_names(pens: &[String]) -> String {
    let names = (pens.iter().enumerate()).map(|(index, pen)| format!("{} or `{pen}`", index + 1));
    names.collect::<Vec<_>>().join(", ")
}

fn pen_numbers(pens: &[String]) -> String {
    match pens {
        [only] => format!("the scene has only pen 1, `{only}`"),
        _ => format!("the scene's pens are 1 to {}", pens.len()),
    }
}
