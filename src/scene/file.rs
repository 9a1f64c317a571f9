//! A scene as its TOML file says it. Unknown keys are refused; every number is finite.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use base::units::Finite;
use vision::Family;

use super::canvas::CallerDesignKind;
use super::sheet_correction::SheetCorrectionFile;

/// A scene file.
#[derive(Clone, Debug, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SceneFile {
    /// The scene's name: lower case letters, digits, `_` and `-`. The same as the file's.
    pub name: String,
    /// One line for people and models.
    pub about: String,
    /// The arm that it is for.
    pub arm: String,
    /// The design to draw.
    pub design: DesignFile,
    /// The sheet to draw on.
    pub sheet: SheetFile,
    /// Tags on the sheet, by which a camera knows where it lies; of a flat sheet alone.
    #[serde(default)]
    pub fiducials: Option<FiducialsFile>,
    /// The drawing pens, one or more.
    pub pens: Vec<PenFile>,
    /// Exchange of the pens: all mounted at once, or one holder whose pen a person changes.
    #[serde(default)]
    pub pen_change: PenChangeKind,
    /// True if a pen is to be measured by a touch before it draws.
    #[serde(default)]
    pub measure_change: bool,
    /// Ink caps for dipping pens.
    #[serde(default)]
    pub inks: Vec<InkFile>,
    /// A fixed point whose place is known well, for checking the arm.
    #[serde(default)]
    pub calibrator_m: Option<[Finite; 3]>,
    /// Waiting poses of the arm.
    pub poses: PosesFile,
    /// Heights and depths over the sheet.
    #[serde(default)]
    pub heights: HeightsFile,
    /// Limits of the motion.
    #[serde(default)]
    pub limits: LimitsFile,
    /// Boxes that arm and tool must not enter.
    #[serde(default)]
    pub keep_outs: Vec<BoxFile>,
    /// A person stands by whenever this scene moves. A needle needs it.
    #[serde(default)]
    pub attended: bool,
}

/// The design to draw: exactly one of `file`, `text`, `polylines` and `from_caller`.
#[derive(Clone, Debug, Default, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct DesignFile {
    /// An SVG, G-code, HP-GL, DXF or JSON file, beside the scene file or in its `designs` folder.
    pub file: Option<String>,
    /// Words, drawn in single-line letters.
    pub text: Option<String>,
    /// Makes the scene a canvas: its design comes with each call, as one of these.
    pub from_caller: Vec<CallerDesignKind>,
    /// Of a canvas: most strokes of a design; absent is 500.
    pub strokes_max: Option<u32>,
    /// Of a canvas: longest line of a design, all strokes together; absent is 5000.
    pub length_mm_max: Option<Finite>,
    /// Of a canvas: longest arm time of a plan; absent is 600.
    pub time_s_max: Option<Finite>,
    /// Height of a capital letter of `text`.
    pub letter_height_mm: Option<Finite>,
    /// Paths, each a list of points on the page, y up.
    pub polylines: Option<Vec<Vec<[Finite; 2]>>>,
    /// The length of the page's longer side on the sheet; absent draws it as large as its file says.
    pub size_mm: Option<Finite>,
    /// Place of the lower left corner of the page on the sheet before it is turned; absent centres the page.
    pub at_mm: Option<[Finite; 2]>,
    /// Turns the page about its centre, counter-clockwise.
    pub rotate_deg: Option<Finite>,
    /// In which order strokes are drawn.
    pub order: Order,
    /// Farthest on the sheet that a line with fewer points may be from the design's; absent is 0: every point counts.
    pub simplify_mm: Option<Finite>,
    /// Ends on the sheet that are nearer are joined where the order is the fastest; absent is 0.1.
    pub join_mm: Option<Finite>,
    /// Fill of an SVG's coloured areas.
    pub fill: FillKind,
    /// Between two lines of a fill, on the sheet; absent is the width of the finest pen.
    pub fill_spacing_mm: Option<Finite>,
    /// Of a fill's lines on the page, 0 along x, counter-clockwise.
    pub fill_angle_deg: Option<Finite>,
    /// Leaves pictures made of pixels out of an SVG; without it they are refused.
    pub skip_images: bool,
}

/// Fill of coloured areas.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum FillKind {
    /// Not at all: only their outline is drawn.
    #[default]
    Outline,
    /// With parallel lines.
    Hatch,
    /// With parallel lines and others across them.
    Cross,
    /// With lines that follow the outline inwards.
    Contour,
}

/// Exchange of a scene's pens.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum PenChangeKind {
    /// All pens are mounted at once.
    #[default]
    AllMounted,
    /// One pen is in the holder, and a person changes it.
    ByHand,
}

/// In which order strokes are drawn.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Order {
    /// Whichever is soonest done; strokes may be reversed.
    #[default]
    Fastest,
    /// The author's order and direction.
    AsDrawn,
}

/// The sheet: a rectangle on a plane or on a cylinder.
#[derive(Clone, Debug, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SheetFile {
    /// Its lower left corner in the arm's base frame.
    pub origin_m: [Finite; 3],
    /// Along its lower edge, to the right as a reader sees it; any length but zero.
    pub x_axis: [Finite; 3],
    /// Along its left edge, upwards as a reader sees it; at a right angle to `x_axis`.
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
    /// Correction of where lines come to lie, learned from drawn ink; at most 2 mm anywhere.
    #[serde(default)]
    pub correction: Option<SheetCorrectionFile>,
}

/// Mapping of a design onto a surface that is not flat.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Lay {
    /// Like a label: lengths stay as they are.
    #[default]
    Wrapped,
    /// Like light, along the normal of the sheet's middle: it stretches towards the sides.
    Projected,
}

/// AprilTags on the sheet.
#[derive(Clone, Debug, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct FiducialsFile {
    /// Their family.
    pub family: Family,
    /// Each of them, 32 at the most.
    pub tags: Vec<TagFile>,
    /// Largest offset of any corner of the sheet since it was taught.
    #[serde(default = "moved_mm_default")]
    pub moved_mm_max: Finite,
    /// Largest rotation of the sheet since it was taught.
    #[serde(default = "moved_deg_default")]
    pub moved_deg_max: Finite,
    /// True if a camera must see the sheet's place before anything moves over it.
    #[serde(default)]
    pub required: bool,
}

/// A tag on the sheet.
#[derive(Clone, Debug, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct TagFile {
    /// Its number in its family.
    pub id: u16,
    /// Its middle on the sheet.
    pub at_mm: [Finite; 2],
    /// The side of its black square, without the white edge that it needs all around.
    pub size_mm: Finite,
    /// By how much it is turned, counter-clockwise.
    #[serde(default)]
    pub turn_deg: Finite,
}

fn moved_mm_default() -> Finite {
    finite(2.0)
}

fn moved_deg_default() -> Finite {
    finite(1.0)
}

/// Kind of a tool, which decides what it may do.
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
    /// From its body towards its tip, in the tool mount's frame; any length but zero.
    pub axis: [Finite; 3],
    /// Largest tilt from the surface's normal.
    #[serde(default = "cone_deg_default")]
    pub cone_deg: Finite,
    /// The line that it leaves.
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
    /// Depth below the surface to which it is sent; absent as the scene's, and never more.
    #[serde(default)]
    pub press_mm: Option<Finite>,
    /// Its fastest tip while it draws; absent as the scene's, and never more.
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
    /// The middle of its rim, in the arm's base frame.
    pub rim_m: [Finite; 3],
    /// Depth of the cap. A dip goes down to a third of it.
    pub depth_mm: Finite,
    /// Length of line drawn between dips.
    pub dip_every_mm: Finite,
    /// Time that the tip stays down.
    #[serde(default)]
    pub wait_s: Finite,
}

/// Named joint angles, one a joint.
#[derive(Clone, Debug, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PosesFile {
    /// Rest pose, in which the arm is left.
    pub rest_rad: Vec<Finite>,
    /// Waiting pose between jobs, above the sheet.
    pub ready_rad: Vec<Finite>,
    /// Pose in which a person changes the pen, where a hand can reach it; absent the rest pose.
    #[serde(default)]
    pub change_rad: Option<Vec<Finite>>,
}

/// Heights over the sheet, along its normal.
#[derive(Clone, Debug, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct HeightsFile {
    /// Of travel, and the greatest height of a hop between two lines.
    pub lift_mm: Finite,
    /// Least height of a hop between two lines; where it is absent 2, or `lift_mm` if that is less.
    pub lift_least_mm: Option<Finite>,
    /// Depth below the surface to which a yielding pen is sent, so that it always touches.
    pub press_mm: Finite,
    /// Of the tip over a point that is only visited.
    pub hover_mm: Finite,
}

impl Default for HeightsFile {
    fn default() -> Self {
        Self {
            lift_mm: finite(8.0),
            lift_least_mm: None,
            press_mm: finite(1.0),
            hover_mm: finite(5.0),
        }
    }
}

/// Limits of the motion; the arm's own limits hold as well.
#[derive(Clone, Debug, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct LimitsFile {
    /// Fastest tip while it draws.
    pub draw_mm_s: Finite,
    /// Fastest tip otherwise; 250 at the most.
    pub travel_mm_s: Finite,
    /// Hardest acceleration of the tip while it draws, along and across the line.
    pub draw_mm_s2: Finite,
    /// Largest relative change in length of any part of a line between page and surface: 0.05 is 5 %.
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
    /// Drawn instead.
    #[serde(default)]
    pub design: Option<DesignFile>,
    /// Mounted instead.
    #[serde(default)]
    pub pens: Option<Vec<PenFile>>,
    /// Dipped into instead.
    #[serde(default)]
    pub inks: Option<Vec<InkFile>>,
}

impl OverlayFile {
    /// The scene with what this overlay says in place of its own.
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
