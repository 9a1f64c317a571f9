//! A checked scene and its limits: arm, pens, inks, sheet, keep-outs, poses, limits.
//!
//! A [`Scene`] is checked and never changes; its [`Revision`] covers everything it was made from.

use std::fmt;
use std::sync::Arc;

use nalgebra::{Point3, Unit, Vector3};
use serde::{Deserialize, Serialize};

use arm::ArmModel;
use base::plane::length;
use base::units::JointVector;

mod area_fill;
mod axis_aligned_box;
mod build_scene;
mod canvas;
mod design_overflow;
mod drawing_pause;
mod drawing_trim;
mod embedded;
mod fiducials;
pub mod file;
mod library;
mod line_tidying;
mod pen_filter;
mod pen_holder;
mod placement;
mod replacement;
mod rest_clearance;
mod scene_fault;
mod sheet_correction;
mod surface;

pub use build_scene::{JOG_MM_S, PROBE_DEPTH_MM, PROBE_FROM_MM, PROBE_MM_S, TIP_MM_S_MAX};
pub use canvas::{CallerDesignKind, Canvas, CanvasBoundError};
pub use design_overflow::{DesignOverflow, OverflowStroke};
pub use drawing_pause::DrawingPause;
pub use drawing_trim::{DrawingTrim, DrawingTrimError};
pub use fiducials::SheetFiducials;
pub use file::{FillKind, Lay, Order, PenChangeKind, SceneFile, ToolKind};
pub use library::{SceneError, SceneLibrary};
pub use line_tidying::TIDYING_MM;
pub use pen_holder::PenHolder;
pub use placement::{DesignPlacement, PAGE_SIDE_MM};
pub use replacement::{DesignReplacement, DesignSource};
pub use rest_clearance::{CLEARANCE_M, PEN_RADIUS_M};
pub use scene_fault::SceneFault;
pub use sheet_correction::{CORRECTION_MM_MAX, SheetCorrection, SheetCorrectionFile};
pub use surface::{SheetShape, Surface, SurfaceDistortion, SurfacePoint, SurfaceProjection, pose};

/// A hash over everything that a scene depends on, except what a caller draws on a canvas: its file, overlay, design's bytes and place, and arm.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Revision([u8; 32]);

/// A scene that has been checked.
#[derive(Clone, Debug)]
pub struct Scene {
    /// Its name.
    pub name: String,
    /// The overlay that was laid over it.
    pub overlay: Option<String>,
    /// The drawing that comes in place of its own design, by name.
    pub drawing: Option<String>,
    /// Set where the design comes with the call.
    pub canvas: Option<Canvas>,
    /// One line for people and models.
    pub about: String,
    /// The arm that moves in it.
    pub arm: Arc<ArmModel>,
    /// Strokes on the sheet, with their pens, in the author's order.
    pub strokes: Vec<SheetStroke>,
    /// In which order.
    pub order: Order,
    /// Ends that are nearer are joined where the order is the fastest.
    pub join_mm: f64,
    /// Size of the design's page.
    pub page: ScenePage,
    /// Parts of the design's file that are not drawn, and other notes for people.
    pub notes: Vec<String>,
    /// Surface to draw on.
    pub surface: Surface,
    /// Correction of where lines come to lie on it.
    pub correction: Option<SheetCorrection>,
    /// Tags on it, by which a camera knows where it lies.
    pub fiducials: Option<SheetFiducials>,
    /// Pens; at least one.
    pub pens: Vec<ScenePen>,
    /// Pens that are mounted.
    pub holder: PenHolder,
    /// Ink caps for dipping pens.
    pub inks: Vec<InkCap>,
    /// A point whose place is known well.
    pub calibrator_m: Option<Point3<f64>>,
    /// Rest pose, in which the arm is left.
    pub rest_rad: JointVector,
    /// Waiting pose between jobs.
    pub ready_rad: JointVector,
    /// Heights over the sheet.
    pub heights: SheetHeights,
    /// Limits of the motion.
    pub limits: SceneLimits,
    /// Boxes that must stay empty.
    pub keep_outs: Vec<KeepOut>,
    /// True if a person attends the arm.
    pub attended: bool,
    /// Hash of everything that the scene was made from.
    pub revision: Revision,
    /// Hash of what it was made from without its design: the same for every drawing in place of that.
    pub setting: Revision,
}

/// A design's page as it lies on the sheet.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct ScenePage {
    /// Its longer side.
    pub long_mm: f64,
    /// Source of that size.
    pub from: SizeSource,
    /// Its lower left corner on the sheet before it is turned.
    pub at_mm: [f64; 2],
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
    /// The sheet: the request was for the largest size that it holds.
    Fitted,
    /// The scene's file.
    Scene,
    /// The design itself.
    #[default]
    File,
}

/// A stroke on the sheet.
#[derive(Clone, Debug, PartialEq)]
pub struct SheetStroke {
    /// On the sheet, at least two, neighbours apart, all within its edges.
    pub points_mm: Vec<[f64; 2]>,
    /// Index of the pen that draws it.
    pub pen: usize,
    /// Position in the author's file.
    pub source: String,
    /// The pause that a person ends before it is drawn; every stroke up to the next pause has the same.
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
    /// From its body towards its tip, in the tool mount's frame.
    pub axis: Unit<Vector3<f64>>,
    /// Largest tilt from the surface's normal.
    pub cone_rad: f64,
    /// The line that it leaves.
    pub width_mm: f64,
    /// Largest turn of the surface's normal along a drawn line.
    pub turn_rad_mm: f64,
    /// sRGB.
    pub colour: [u8; 3],
    /// Index of the ink that it is dipped into.
    pub ink: Option<usize>,
    /// Depth below the surface to which it is sent, where that is less than the scene's.
    pub press_mm: Option<f64>,
    /// Fastest while it draws, where that is less than the scene's.
    pub draw_mm_s: Option<f64>,
}

/// An ink cap.
#[derive(Clone, Debug)]
pub struct InkCap {
    /// Its name.
    pub name: String,
    /// The middle of its rim.
    pub rim_m: Point3<f64>,
    /// From the rim to the bottom.
    pub depth_m: f64,
    /// Length of line drawn between dips.
    pub dip_every_mm: f64,
    /// Time that the tip stays down.
    pub wait_s: f64,
}

/// Heights over the sheet along its normal.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct SheetHeights {
    /// Of travel, and the greatest of a hop between two lines.
    pub lift_mm: f64,
    /// The least of a hop, never more than `lift_mm`.
    pub lift_least_mm: f64,
    /// Depth below the surface to which a pen is sent.
    pub press_mm: f64,
    /// Over a point that is only visited.
    pub hover_mm: f64,
}

/// Limits of the tip; the arm's joints have their own.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SceneLimits {
    /// Fastest while drawing.
    pub draw_mm_s: f64,
    /// Fastest otherwise.
    pub travel_mm_s: f64,
    /// Hardest acceleration while drawing.
    pub draw_mm_s2: f64,
    /// The largest ratio of lengths on the surface and on the page, or the other way round.
    pub stretch_max: f64,
    /// Space that the tip must stay in.
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
    /// Returns its colour as `#rrggbb`.
    #[must_use]
    pub fn colour_text(&self) -> String {
        let [red, green, blue] = self.colour;
        format!("#{red:02x}{green:02x}{blue:02x}")
    }
}

impl Scene {
    /// Its name, with those of the overlay and of the drawing that come in place of parts of it.
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

    /// Returns how deep below the surface a pen is sent.
    #[must_use]
    pub fn press_mm(&self, pen: &ScenePen) -> f64 {
        let own = pen.press_mm.unwrap_or(f64::INFINITY);
        own.min(self.heights.press_mm)
    }

    /// Returns how deep below the surface the pen of an index is sent.
    #[must_use]
    pub fn pen_press_mm(&self, pen: usize) -> f64 {
        let known = self.pen(pen);
        known.map_or(self.heights.press_mm, |pen| self.press_mm(pen))
    }

    /// Returns how fast a pen draws at the most.
    #[must_use]
    pub fn draw_mm_s(&self, pen: &ScenePen) -> f64 {
        let own = pen.draw_mm_s.unwrap_or(f64::INFINITY);
        own.min(self.limits.draw_mm_s)
    }

    /// The pen of an index; every scene has at least one, and indices come from the scene itself.
    #[must_use]
    pub fn pen(&self, index: usize) -> Option<&ScenePen> {
        self.pens.get(index)
    }
}

/// Returns a scene's name with those of the overlay and of the drawing that come in place of parts of it.
#[must_use]
pub fn scene_title(scene: &str, overlay: Option<&str>, drawing: Option<&str>) -> String {
    let overlaid = overlay.map_or_else(|| scene.to_owned(), |over| format!("{scene} + {over}"));
    drawing.map_or_else(
        || overlaid.clone(),
        |drawing| format!("{drawing} in {overlaid}"),
    )
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

    /// All of it, in hexadecimal.
    #[must_use]
    pub fn hex(&self) -> String {
        self.0.iter().map(|byte| format!("{byte:02x}")).collect()
    }
}

impl fmt::Display for Revision {
    /// The first twelve hexadecimal digits: enough for people to tell two apart.
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
