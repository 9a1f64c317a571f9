//! Checked scenes: arm, pens, inks, sheet, keep-outs, poses and limits.
//!
//! A [`Scene`] is checked once and never changes; its [`Revision`] covers everything that it was
//! built from.

use std::fmt;
use std::sync::Arc;

use nalgebra::{Point3, Unit, Vector3};
use serde::{Deserialize, Serialize};

use arm::ArmModel;
use base::plane::length;
use base::units::JointVector;
use kin::KinematicChain;

mod area_fill;
mod arm_beside;
mod arm_places;
mod arm_variant;
mod axis_aligned_box;
mod base_place;
mod body_points;
mod build_scene;
mod canvas;
mod colour_changes;
mod copies;
mod design_overflow;
mod design_part;
mod drawing_pause;
mod drawing_trim;
mod embedded;
mod fiducials;
pub mod file;
mod foot_frame;
mod height_map;
mod library;
mod line_tidying;
mod mesh_sheet;
mod paper_format;
mod pause_every;
mod pen_filter;
mod pen_holder;
mod picture_design;
mod placement;
mod replacement;
mod rest_clearance;
mod scene_fault;
mod shared_scene;
mod sheet_correction;
mod surface;
mod text_layout;

pub use arm_beside::ArmBeside;
pub use base_place::BasePlace;
pub use body_points::BodyPoints;
pub use build_scene::{JOG_MM_S, PROBE_DEPTH_MM, PROBE_FROM_MM, PROBE_MM_S, TIP_MM_S_MAX};
pub use canvas::{CallerDesignKind, Canvas, CanvasBoundError};
pub use design_overflow::{DesignOverflow, OverflowStroke};
pub use drawing_pause::DrawingPause;
pub use drawing_trim::{DrawingTrim, DrawingTrimError};
pub use fiducials::SheetFiducials;
pub use file::{FillKind, Lay, LineAlign, Order, PenChangeKind, PictureStyle, SceneFile, ToolKind};
pub use height_map::{HeightMap, HeightMapFile, MAP_MM_MAX, MAP_PLACES};
pub use library::{DEFAULT_SCENE, SceneError, SceneLibrary};
pub use line_tidying::TIDYING_MM;
pub use paper_format::PaperFormat;
pub use pause_every::PauseEvery;
pub use pen_holder::PenHolder;
pub use picture_design::INK_PERCENT;
pub use placement::{DesignPlacement, PAGE_SIDE_MM};
pub use replacement::{DesignReplacement, DesignSource};
pub use rest_clearance::{CLEARANCE_M, PEN_RADIUS_M};
pub use scene_fault::SceneFault;
pub use shared_scene::{
    PART, ScenePart, SharedScene, SharedStroke, SheetDispute, part_name, shared_name,
};
pub use sheet_correction::{CORRECTION_MM_MAX, SheetCorrection, SheetCorrectionFile};
pub use surface::{
    LineBounds, SheetShape, Surface, SurfaceDistortion, SurfacePoint, SurfaceProjection, pose,
};

/// Hash of everything that a scene depends on: its file, overlay, arm, and the bytes and placement
/// of its design. It leaves out what a caller draws on a canvas.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Revision([u8; 32]);

/// A scene that has been checked.
#[derive(Clone, Debug)]
pub struct Scene {
    /// Its name.
    pub name: String,
    /// Name of the overlay that was applied to it.
    pub overlay: Option<String>,
    /// Name of the drawing that replaces its own design.
    pub drawing: Option<String>,
    /// The canvas, if the design comes with the call.
    pub canvas: Option<Canvas>,
    /// One line for people and models.
    pub about: String,
    /// The arm that draws it.
    pub arm: Arc<ArmModel>,
    /// Strokes on the sheet, with their pens, in the author's order.
    pub strokes: Vec<SheetStroke>,
    /// Order in which the strokes are drawn.
    pub order: Order,
    /// Strokes whose ends are closer than this are joined if the order is [`Order::Fastest`].
    pub join_mm: f64,
    /// Size of the design's page.
    pub page: ScenePage,
    /// Parts of the design's file that are not drawn, and other notes for people.
    pub notes: Vec<String>,
    /// Surface to draw on.
    pub surface: Surface,
    /// Correction of where lines end up on it.
    pub correction: Option<SheetCorrection>,
    /// Tags on it, by which a camera finds its position.
    pub fiducials: Option<SheetFiducials>,
    /// Pens; at least one.
    pub pens: Vec<ScenePen>,
    /// Pens that are mounted.
    pub holder: PenHolder,
    /// Ink caps for dipping pens.
    pub inks: Vec<InkCap>,
    /// A point whose position is known precisely.
    pub calibrator_m: Option<Point3<f64>>,
    /// Rest pose, in which the arm is left.
    pub rest_rad: JointVector,
    /// Waiting pose between jobs.
    pub ready_rad: JointVector,
    /// The arm's chain with its elbow bent, to the side of the ready pose: tools are led with it.
    pub bent: KinematicChain,
    /// Heights over the sheet.
    pub heights: SheetHeights,
    /// Limits of the motion.
    pub limits: SceneLimits,
    /// Boxes that must stay empty.
    pub keep_outs: Vec<KeepOut>,
    /// Name of its arm among those that share the scene; `None` where the arm has it for itself.
    pub arm_name: Option<String>,
    /// The other arms that share the scene.
    pub beside: Vec<ArmBeside>,
    /// True if a person attends the arm.
    pub attended: bool,
    /// Hash of everything that the scene was built from.
    pub revision: Revision,
    /// The same hash without the design: it is equal for all drawings that replace the design.
    pub setting: Revision,
}

/// A design's page as it lies on the sheet.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct ScenePage {
    /// Its longer side.
    pub long_mm: f64,
    /// Source of that size.
    pub from: SizeSource,
    /// Longer side, before it is turned, of the lines that are drawn, if others of the design are left out.
    pub drawn_mm: Option<f64>,
    /// Lower left corner on the sheet of what is placed, turned.
    pub at_mm: [f64; 2],
    /// Its centre on the sheet.
    pub centre_mm: [f64; 2],
    /// Its width and height on the sheet before it is turned.
    pub sides_mm: [f64; 2],
    /// Turn about its centre, counter-clockwise.
    pub turn_deg: f64,
}

/// Source of a design's size.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum SizeSource {
    /// The request for the drawing.
    Asked,
    /// The sheet: the request asked for the largest size that fits, or the file states no lengths.
    Fitted,
    /// The scene's file.
    Scene,
    /// The design itself.
    #[default]
    File,
}

/// A stroke on the sheet.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SheetStroke {
    /// At least two points within the edges of the sheet; neighbours are never equal.
    pub points_mm: Vec<[f64; 2]>,
    /// Index of the pen that draws it.
    pub pen: usize,
    /// Position in the author's file.
    pub source: String,
    /// The pause before it, which a person ends; every stroke up to the next pause has the same
    /// one.
    pub pause: Option<Arc<DrawingPause>>,
}

impl SheetStroke {
    /// Returns its length on the sheet.
    #[must_use]
    pub fn length_mm(&self) -> f64 {
        length(&self.points_mm)
    }
}

/// A mounted pen.
#[derive(Clone, Debug)]
pub struct ScenePen {
    /// Its name.
    pub name: String,
    /// Kind of the tool.
    pub kind: ToolKind,
    /// Its tip, in the tool mount's frame.
    pub tip_m: Point3<f64>,
    /// Direction from its body to its tip, in the tool mount's frame.
    pub axis: Unit<Vector3<f64>>,
    /// Largest tilt from the surface's normal.
    pub cone_rad: f64,
    /// Width of its line.
    pub width_mm: f64,
    /// Largest turn of the surface's normal along a drawn line.
    pub turn_rad_mm: f64,
    /// Colour in sRGB.
    pub colour: [u8; 3],
    /// Index of the ink that it is dipped into.
    pub ink: Option<usize>,
    /// Its own depth below the surface; it has an effect only if it is less than the scene's.
    pub press_mm: Option<f64>,
    /// Its own top speed while it draws; it has an effect only if it is less than the scene's.
    pub draw_mm_s: Option<f64>,
}

/// An ink cap.
#[derive(Clone, Debug)]
pub struct InkCap {
    /// Its name.
    pub name: String,
    /// Centre of its rim.
    pub rim_m: Point3<f64>,
    /// Depth from the rim to the bottom.
    pub depth_m: f64,
    /// Length of line drawn between dips.
    pub dip_every_mm: f64,
    /// Time that the tip stays down.
    pub wait_s: f64,
}

/// Heights over the sheet along its normal.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct SheetHeights {
    /// Height of travel, and greatest height of a hop between two lines.
    pub lift_mm: f64,
    /// Least height of a hop, never more than `lift_mm`.
    pub lift_least_mm: f64,
    /// Depth below the surface to which a pen is sent.
    pub press_mm: f64,
    /// How far an operator may raise or lower the pen while it draws; 0 for not at all.
    pub depth_trim_mm: f64,
    /// Height over a point that is visited but not drawn.
    pub hover_mm: f64,
}

/// Limits of the tip; the arm's joints have their own.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SceneLimits {
    /// Top speed while drawing.
    pub draw_mm_s: f64,
    /// Top speed of other motion.
    pub travel_mm_s: f64,
    /// Largest acceleration while drawing.
    pub draw_mm_s2: f64,
    /// The largest ratio between a length on the surface and on the page, in either direction.
    pub stretch_max: f64,
    /// Box in which the tip must stay.
    pub workspace: AxisAlignedBox,
}

/// A box along the base frame's axes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct AxisAlignedBox {
    /// The corner with the lowest coordinates.
    pub min_m: Point3<f64>,
    /// The corner with the highest.
    pub max_m: Point3<f64>,
}

/// Box that must stay empty.
#[derive(Clone, Debug)]
pub struct KeepOut {
    /// Name of the object there.
    pub name: String,
    /// The box.
    pub corners: AxisAlignedBox,
}

impl ScenePen {
    /// Returns whether its ink is white, or nearly so.
    pub(crate) fn is_white(&self) -> bool {
        self.colour.iter().all(|part| *part >= 0xe0)
    }

    /// Returns the squared distance of its colour from another in sRGB.
    pub(crate) fn distance_squared(&self, colour: [u8; 3]) -> i32 {
        let parts = self.colour.iter().zip(colour);
        let distances = parts.map(|(a, b)| (i32::from(*a) - i32::from(b)).pow(2));
        distances.sum()
    }

    /// Returns its colour as `#rrggbb`.
    #[must_use]
    pub fn colour_text(&self) -> String {
        let [red, green, blue] = self.colour;
        format!("#{red:02x}{green:02x}{blue:02x}")
    }
}

impl Scene {
    /// Returns the scene with its workspace narrowed to a zone.
    #[must_use]
    pub fn within(&self, zone: &AxisAlignedBox) -> Self {
        let mut narrowed = self.clone();
        narrowed.limits.workspace = self.limits.workspace.common(zone);
        narrowed
    }

    /// Returns whether play, sag or a correction was calibrated, for which plans lead their goals.
    #[must_use]
    pub fn has_calibrated_leads(&self) -> bool {
        self.arm.compensation.is_some() || self.correction.is_some()
    }

    /// Returns its name with the names of its overlay and its drawing.
    #[must_use]
    pub fn title(&self) -> String {
        scene_title(&self.name, self.overlay.as_deref(), self.drawing.as_deref())
    }

    /// Returns how far from the base frame's origin any point of the arm or of a mounted pen can be, in metres.
    #[must_use]
    pub fn reach_m(&self) -> f64 {
        let pens = self
            .pens
            .iter()
            .map(|pen| self.arm.tool_reach_m(&pen.tip_m));
        pens.fold(self.arm.reach_m(), f64::max)
    }

    /// Returns how near to the sheet a pen that does not draw may come: [`CLEARANCE_M`], or half of
    /// the height of travel if that is less.
    #[must_use]
    pub fn idle_clearance_m(&self) -> f64 {
        CLEARANCE_M.min(self.heights.lift_mm / 2e3)
    }

    /// Returns how deep below the surface a pen is sent.
    #[must_use]
    pub fn press_mm(&self, pen: &ScenePen) -> f64 {
        let pen_mm = pen.press_mm.unwrap_or(f64::INFINITY);
        pen_mm.min(self.heights.press_mm)
    }

    /// Returns how deep below the surface the pen of an index is sent.
    #[must_use]
    pub fn pen_press_mm(&self, pen: usize) -> f64 {
        let pen = self.pen(pen);
        pen.map_or(self.heights.press_mm, |pen| self.press_mm(pen))
    }

    /// Returns how fast a pen draws at the most.
    #[must_use]
    pub fn draw_mm_s(&self, pen: &ScenePen) -> f64 {
        let pen_mm_s = pen.draw_mm_s.unwrap_or(f64::INFINITY);
        pen_mm_s.min(self.limits.draw_mm_s)
    }

    /// Returns the pen of an index. Every scene has at least one pen, and indices come from the
    /// scene.
    #[must_use]
    pub fn pen(&self, index: usize) -> Option<&ScenePen> {
        self.pens.get(index)
    }
}

/// Returns a scene's name with the names of its overlay and its drawing.
#[must_use]
pub fn scene_title(scene: &str, overlay: Option<&str>, drawing: Option<&str>) -> String {
    let title = overlay.map_or_else(|| scene.to_owned(), |name| format!("{scene} + {name}"));
    drawing.map_or_else(|| title.clone(), |drawing| format!("{drawing} in {title}"))
}

impl Revision {
    /// Returns the hash.
    #[must_use]
    pub const fn as_bytes(&self) -> &[u8; 32] {
        &self.0
    }

    /// Wraps a hash.
    #[must_use]
    pub const fn from_bytes(bytes: [u8; 32]) -> Self {
        Self(bytes)
    }

    /// Returns the whole hash in hexadecimal.
    #[must_use]
    pub fn hex(&self) -> String {
        self.0.iter().map(|byte| format!("{byte:02x}")).collect()
    }
}

impl fmt::Display for Revision {
    /// Writes the first twelve hexadecimal digits, which are enough to tell two revisions apart.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0
            .iter()
            .take(6)
            .try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for Revision {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Revision({self})")
    }
}
