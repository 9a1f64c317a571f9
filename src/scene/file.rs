//! The TOML file of a scene. Unknown keys are refused; every number is finite.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use arm::BaseFrame;
use base::units::Finite;
use vision::Family;

use super::canvas::CallerDesignKind;
use super::height_map::HeightMapFile;
use super::sheet_correction::SheetCorrectionFile;

/// A scene file.
#[derive(Clone, Debug, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SceneFile {
    /// Its name, the same as the file's: lower case letters, digits, `_` and `-`.
    pub name: String,
    /// One line for people and models.
    pub about: String,
    /// The arm that it is for; `arms` instead if several share it.
    #[serde(default)]
    pub arm: Option<String>,
    /// The arms that share it, instead of `arm`. Its places in space are then in a frame that all of them have in common.
    #[serde(default)]
    pub arms: Vec<SceneArmFile>,
    /// Frame of its places in space and its poses. Absent: the older frame of the arm's file. Not with `arms`.
    #[serde(default)]
    pub frame: Option<BaseFrame>,
    /// The design to draw.
    pub design: DesignFile,
    /// The sheet to draw on.
    pub sheet: SheetFile,
    /// The mesh that the sheet lies on, instead of a plane or a cylinder.
    #[serde(default)]
    pub surface: Option<SurfaceFile>,
    /// Tags by which a camera finds a flat sheet.
    #[serde(default)]
    pub fiducials: Option<FiducialsFile>,
    /// The drawing pens, one or more.
    pub pens: Vec<PenFile>,
    /// Exchange of the pens.
    #[serde(default)]
    pub pen_change: PenChangeKind,
    /// True if a touch measures each new pen.
    #[serde(default)]
    pub measure_change: bool,
    /// Ink caps for dipping pens.
    #[serde(default)]
    pub inks: Vec<InkFile>,
    /// A fixed point whose place is known precisely, for zeros: in metres, in the frame of `frame`.
    #[serde(default)]
    pub calibrator_m: Option<[Finite; 3]>,
    /// Waiting poses of the arm; each of several `arms` has its own.
    #[serde(default)]
    pub poses: Option<PosesFile>,
    /// Heights and depths over the sheet.
    #[serde(default)]
    pub heights: HeightsFile,
    /// Limits of the motion.
    #[serde(default)]
    pub limits: LimitsFile,
    /// Boxes that arm and tool must not enter.
    #[serde(default)]
    pub keep_outs: Vec<BoxFile>,
    /// True if a person attends the arm whenever this scene moves it. A needle requires it.
    #[serde(default)]
    pub attended: bool,
}

impl SceneFile {
    /// Refuses a name other than the file's, if that is known.
    pub(super) fn check_name(&self, of_file: Option<&str>) -> Result<(), String> {
        match of_file.filter(|name| *name != self.name) {
            Some(name) => Err(format!(
                "`name` is `{}`; it must be `{name}`, the name of the file",
                self.name
            )),
            None => Ok(()),
        }
    }
}

/// An arm of a scene that several arms share.
#[derive(Clone, Debug, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SceneArmFile {
    /// Its name in this scene: lower case letters, digits, `_` and `-`.
    pub name: String,
    /// Model of the arm: the name of an arm file.
    pub model: String,
    /// Position of its base frame in the common frame.
    pub base_m: [Finite; 3],
    /// Rotation of its base frame about the common frame's z, counter-clockwise.
    #[serde(default)]
    pub base_yaw_deg: Finite,
    /// Lean of its base frame, up to 10: a rotation with these components about the common frame's x and y.
    #[serde(default)]
    pub base_tilt_deg: [Finite; 2],
    /// How far any point of the arm may be from its calculated place in the common frame, 0 to 50. The arms keep that much farther apart.
    #[serde(default = "arm_uncertainty_mm_default")]
    pub uncertainty_mm: Finite,
    /// Names of the pens that it holds. A pen that two arms name is one pen of each.
    pub pens: Vec<String>,
    /// Its waiting poses, clear of everything that the other arms do.
    pub poses: PosesFile,
    /// The sheet where this arm itself found it, in place of the scene's. A calibration writes it.
    #[serde(default)]
    pub sheet: FoundSheetFile,
}

/// What one of several arms found out about the sheet. Its places are in that arm's own base frame, so that they stay true when a
/// base is measured anew. An absent key is as in `[sheet]`.
#[derive(Clone, Debug, Default, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct FoundSheetFile {
    /// Its lower left corner in this arm's base frame.
    pub origin_m: Option<[Finite; 3]>,
    /// Direction of its lower edge in this arm's base frame.
    pub x_axis: Option<[Finite; 3]>,
    /// Direction of its left edge in this arm's base frame.
    pub y_axis: Option<[Finite; 3]>,
    /// Radius of the cylinder that it is rolled around.
    pub cylinder_radius_mm: Option<Finite>,
    /// Correction learned from this arm's ink.
    pub correction: Option<SheetCorrectionFile>,
    /// Heights as this arm's touches found them.
    pub heights: Option<HeightMapFile>,
}

impl FoundSheetFile {
    /// Returns a sheet with what was found in place of what was stated.
    pub(super) fn or(self, stated: SheetFile) -> SheetFile {
        SheetFile {
            origin_m: self.origin_m.unwrap_or(stated.origin_m),
            x_axis: self.x_axis.unwrap_or(stated.x_axis),
            y_axis: self.y_axis.unwrap_or(stated.y_axis),
            cylinder_radius_mm: self.cylinder_radius_mm.or(stated.cylinder_radius_mm),
            correction: self.correction.or(stated.correction),
            heights: self.heights.or(stated.heights),
            ..stated
        }
    }
}

/// The design to draw: exactly one of `file`, `text`, `polylines` and `from_caller`.
#[derive(Clone, Debug, Default, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct DesignFile {
    /// A file to draw, beside the scene file or in its `designs` folder.
    pub file: Option<String>,
    /// Text, drawn in single-line letters.
    pub text: Option<String>,
    /// Makes the scene a canvas: each call brings the design, as one of these kinds.
    pub from_caller: Vec<CallerDesignKind>,
    /// Of a canvas: most strokes of a design; default 500.
    pub strokes_max: Option<u32>,
    /// Of a canvas: greatest length of a design's lines; default 5000.
    pub length_mm_max: Option<Finite>,
    /// Of a canvas: longest arm time; default 600.
    pub time_s_max: Option<Finite>,
    /// Height of a capital letter of `text`; default 10.
    pub letter_height_mm: Option<Finite>,
    /// Font of `text`, or of all texts of an SVG, from `steadyhand fonts`; default plain.
    pub font: Option<String>,
    /// Place of the lines of `text`; default left.
    pub align: Option<LineAlign>,
    /// Distance of the lines of `text` in that of common text, 0.5 to 5; default 1.
    pub line_spacing: Option<Finite>,
    /// Longest line of `text` before it gets its size; by default the sheet's width.
    pub wrap_mm: Option<Finite>,
    /// Paths, each a list of points on the page, y up.
    pub polylines: Option<Vec<Vec<[Finite; 2]>>>,
    /// Longer side of the page on the sheet; by default the file's own size.
    pub size_mm: Option<Finite>,
    /// Lower left corner of the page as it lies on the sheet, turned; by default it is centred.
    pub at_mm: Option<[Finite; 2]>,
    /// Turns the page about its centre, counter-clockwise; default 0.
    pub rotate_deg: Option<Finite>,
    /// Order in which strokes are drawn.
    pub order: Order,
    /// Leaves points out of lines that stay this close to the design, up to 2; default 0.
    pub simplify_mm: Option<Finite>,
    /// With `order` `fastest`, joins ends of strokes that are closer than this, up to 2; default 0.1, and 0 joins none.
    pub join_mm: Option<Finite>,
    /// Fill of an SVG's coloured areas.
    pub fill: FillKind,
    /// Distance between a fill's lines; by default the width of the finest pen.
    pub fill_spacing_mm: Option<Finite>,
    /// Angle of a fill's lines from x, counter-clockwise; default 45.
    pub fill_angle_deg: Option<Finite>,
    /// Leaves pixel images out of an SVG; without it they are refused.
    pub skip_images: bool,
    /// Lines that a PNG or JPEG in `file` is drawn with; default hatch.
    pub style: Option<PictureStyle>,
    /// Share of the ink that a picture's style can put down, 5 to 100; default 100.
    pub ink_percent: Option<Finite>,
}

/// Place of the lines of a text.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum LineAlign {
    /// On the left.
    #[default]
    Left,
    /// In the middle.
    #[serde(alias = "centre")]
    Center,
    /// On the right.
    Right,
}

/// Lines that a picture made of pixels is drawn with.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum PictureStyle {
    /// The middles of dark lines.
    Centreline,
    /// The edges of dark areas.
    Outline,
    /// Parallel lines, denser where it is darker.
    #[default]
    Hatch,
    /// Rows that swing wider where it is darker.
    Squiggle,
    /// Dots, denser where it is darker.
    Stipple,
    /// One swinging line from the middle.
    Spiral,
}

/// Fill of coloured areas.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum FillKind {
    /// No fill.
    #[default]
    Outline,
    /// Parallel lines.
    Hatch,
    /// Crossing lines.
    Cross,
    /// Lines that follow the outline inwards.
    Contour,
}

/// Exchange of a scene's pens.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum PenChangeKind {
    /// All pens are mounted at once.
    #[default]
    AllMounted,
    /// One pen is in the holder; a person changes it.
    ByHand,
}

/// Order in which strokes are drawn.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Order {
    /// The fastest; strokes may be reversed.
    #[default]
    Fastest,
    /// The author's order and direction.
    AsDrawn,
}

/// The sheet: a rectangle on a plane, on a cylinder, or on the mesh of `[surface]`.
#[derive(Clone, Debug, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SheetFile {
    /// Its lower left corner in the arm's base frame.
    pub origin_m: [Finite; 3],
    /// Direction of its lower edge, to the right for a reader; any length except zero.
    pub x_axis: [Finite; 3],
    /// Direction of its left edge, upwards for a reader; at a right angle to `x_axis`.
    pub y_axis: [Finite; 3],
    /// Width and height.
    pub size_mm: [Finite; 2],
    /// Radius of the cylinder, for a sheet rolled around one. The axis is parallel to `y_axis` and lies
    /// this far below the sheet's middle.
    #[serde(default)]
    pub cylinder_radius_mm: Option<Finite>,
    /// Mapping of the design onto the cylinder.
    #[serde(default)]
    pub lay: Lay,
    /// Correction learned from drawn ink; at most 2 mm anywhere.
    #[serde(default)]
    pub correction: Option<SheetCorrectionFile>,
    /// Heights of a sheet that is not quite flat, as touches found them.
    #[serde(default)]
    pub heights: Option<HeightMapFile>,
}

/// Mapping of a design onto a surface that is not flat.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Lay {
    /// Wrapped like a label: lengths do not change.
    #[default]
    Wrapped,
    /// Laid on like light from above: stretched towards the sides.
    Projected,
}

/// The mesh that a sheet lies on. Its numbers are in the sheet's frame: from the lower left corner x to the right, y up and z towards the reader.
#[derive(Clone, Debug, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SurfaceFile {
    /// A PLY, STL or OBJ file of at most 100,000 triangles, or a scan of up to a million points alone, in the folder of the scene file or its `meshes` folder.
    pub mesh: String,
    /// Unit of its numbers.
    #[serde(default)]
    pub unit: MeshUnit,
    /// The point of the mesh on which the sheet's middle lies; by default the highest one above or below the middle, along the sheet's normal.
    #[serde(default)]
    pub point_m: Option<[Finite; 3]>,
    /// Direction to the right on the mesh at that point; default `[1, 0, 0]`.
    #[serde(default)]
    pub direction: Option<[Finite; 3]>,
    /// How far the surface may be from this file, as its scanner states, up to 5; default 0. The arm keeps that much farther away.
    #[serde(default)]
    pub uncertainty_mm: Finite,
}

/// Unit of a mesh's numbers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum MeshUnit {
    /// Metres.
    #[default]
    M,
    /// Millimetres.
    Mm,
}

/// AprilTags on the sheet.
#[derive(Clone, Debug, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct FiducialsFile {
    /// Their family.
    pub family: Family,
    /// The tags, at most 32.
    pub tags: Vec<TagFile>,
    /// Largest shift of any corner of the sheet since it was taught.
    #[serde(default = "moved_mm_default")]
    pub moved_mm_max: Finite,
    /// Largest rotation of the sheet since it was taught.
    #[serde(default = "moved_deg_default")]
    pub moved_deg_max: Finite,
    /// True if a camera must find the sheet before anything moves over it.
    #[serde(default)]
    pub required: bool,
}

/// A tag on the sheet.
#[derive(Clone, Debug, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct TagFile {
    /// Its number in its family.
    pub id: u16,
    /// Its centre on the sheet.
    pub at_mm: [Finite; 2],
    /// Side of its black square, without the white margin that it needs.
    pub size_mm: Finite,
    /// Its rotation, counter-clockwise.
    #[serde(default)]
    pub turn_deg: Finite,
}

/// What a ruler on a table is good for.
fn arm_uncertainty_mm_default() -> Finite {
    finite(3.0)
}

fn moved_mm_default() -> Finite {
    finite(2.0)
}

fn moved_deg_default() -> Finite {
    finite(1.0)
}

/// Kind of a tool, which decides what it is allowed to do.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ToolKind {
    /// A pen, brush or pencil.
    #[default]
    Pen,
    /// Something sharp. Needs `attended = true` and a keep-out, and slows down near the surface.
    Needle,
}

/// A mounted pen or needle.
#[derive(Clone, Debug, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PenFile {
    /// Its name.
    pub name: String,
    /// Kind of the tool.
    #[serde(default)]
    pub kind: ToolKind,
    /// Its tip, in the tool mount's frame.
    pub tip_m: [Finite; 3],
    /// Direction from its body to its tip, in the tool mount's frame; any length except zero.
    pub axis: [Finite; 3],
    /// Largest tilt from the surface's normal.
    #[serde(default = "cone_deg_default")]
    pub cone_deg: Finite,
    /// Width of its line.
    #[serde(default = "width_mm_default")]
    pub width_mm: Finite,
    /// Largest turn of the surface's normal along a drawn line.
    #[serde(default = "turn_deg_mm_default")]
    pub turn_deg_mm: Finite,
    /// Its colour, `#rrggbb`; strokes go to the pen whose colour is nearest.
    #[serde(default = "colour_default")]
    pub colour: String,
    /// The ink that it is dipped into.
    #[serde(default)]
    pub ink: Option<String>,
    /// Depth below the surface to which it is sent; at most the scene's, which is the default.
    #[serde(default)]
    pub press_mm: Option<Finite>,
    /// Top speed of its tip while it draws; at most the scene's, which is the default.
    #[serde(default)]
    pub draw_mm_s: Option<Finite>,
}

const fn finite(value: f64) -> Finite {
    Finite::literal(value)
}

fn cone_deg_default() -> Finite {
    finite(30.0)
}

fn turn_deg_mm_default() -> Finite {
    finite(5.0)
}

fn width_mm_default() -> Finite {
    finite(0.5)
}

fn colour_default() -> String {
    "#1a1a2e".to_owned()
}

/// An ink cap.
#[derive(Clone, Debug, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct InkFile {
    /// Its name.
    pub name: String,
    /// Centre of its rim, in the arm's base frame.
    pub rim_m: [Finite; 3],
    /// Depth of the cap. A dip goes down to a third of it.
    pub depth_mm: Finite,
    /// Length of line drawn between dips.
    pub dip_every_mm: Finite,
    /// Time that the tip stays down.
    #[serde(default)]
    pub wait_s: Finite,
}

/// Named poses: an angle for each joint.
#[derive(Clone, Debug, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PosesFile {
    /// Rest pose, in which the arm is left.
    pub rest_rad: Vec<Finite>,
    /// Waiting pose between jobs, above the sheet.
    pub ready_rad: Vec<Finite>,
    /// Pose in which a person can reach the pen to change it; by default the rest pose.
    #[serde(default)]
    pub change_rad: Option<Vec<Finite>>,
}

/// Heights over the sheet, along its normal.
#[derive(Clone, Debug, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct HeightsFile {
    /// Height of travel, and greatest height of a hop between two lines.
    pub lift_mm: Finite,
    /// Least height of a hop between two lines, 0.5 or more; default 2, or `lift_mm` if that is less.
    pub lift_least_mm: Option<Finite>,
    /// Depth below the surface to which a yielding pen is sent, so that it always touches.
    pub press_mm: Finite,
    /// How far an operator may raise or lower the pen while it draws, up to 1; default 0. Not for needles or dipped pens.
    pub depth_trim_mm: Finite,
    /// Height of the tip over a point that is visited but not drawn.
    pub hover_mm: Finite,
}

impl Default for HeightsFile {
    fn default() -> Self {
        Self {
            lift_mm: finite(8.0),
            lift_least_mm: None,
            press_mm: finite(1.0),
            depth_trim_mm: finite(0.0),
            hover_mm: finite(5.0),
        }
    }
}

/// Limits of the motion; the arm's own limits apply as well.
#[derive(Clone, Debug, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct LimitsFile {
    /// Top speed of the tip while it draws.
    pub draw_mm_s: Finite,
    /// Top speed of the tip in other motion; at most 250.
    pub travel_mm_s: Finite,
    /// Largest acceleration of the tip while it draws, along and across the line.
    pub draw_mm_s2: Finite,
    /// Largest relative stretch of any part of a line on the surface: 0.05 is 5 %.
    pub stretch: Finite,
    /// Space for the tip and all moving parts of the arm.
    pub workspace: Option<CornersFile>,
}

impl Default for LimitsFile {
    fn default() -> Self {
        Self {
            draw_mm_s: finite(40.0),
            travel_mm_s: finite(100.0),
            draw_mm_s2: finite(400.0),
            stretch: finite(0.05),
            workspace: None,
        }
    }
}

/// A box along the base frame's axes.
#[derive(Clone, Debug, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct CornersFile {
    /// The corner with the lowest coordinates.
    pub min_m: [Finite; 3],
    /// The corner with the highest.
    pub max_m: [Finite; 3],
}

/// A named box along the base frame's axes.
#[derive(Clone, Debug, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct BoxFile {
    /// Name of the object there.
    pub name: String,
    /// The corner with the lowest coordinates.
    pub min_m: [Finite; 3],
    /// The corner with the highest.
    pub max_m: [Finite; 3],
}

/// Changes of an overlay to a scene: its design, its pens and inks, or both.
#[derive(Clone, Debug, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct OverlayFile {
    /// One line for people and models.
    pub about: String,
    /// Frame of its places in space, as a scene's.
    #[serde(default)]
    pub frame: Option<BaseFrame>,
    /// The design that replaces the scene's.
    #[serde(default)]
    pub design: Option<DesignFile>,
    /// The pens that replace the scene's.
    #[serde(default)]
    pub pens: Option<Vec<PenFile>>,
    /// The inks that replace the scene's.
    #[serde(default)]
    pub inks: Option<Vec<InkFile>>,
}

impl OverlayFile {
    /// Returns the scene with the parts of this overlay instead of its own.
    #[must_use]
    pub fn apply_to(self, mut scene: SceneFile) -> SceneFile {
        if let Some(design) = self.design {
            scene.design = design;
        }
        if let Some(pens) = self.pens {
            scene.pens = pens;
        }
        if let Some(inks) = self.inks {
            scene.inks = inks;
        }
        scene
    }
}
