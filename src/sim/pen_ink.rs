//! Ink drawn by the simulated pens.

use nalgebra::{Point3, Vector3};

use super::camera_view::{ViewedPen, rgb};
use super::sheet_contact::TipContact;
use base::plane::distance;
use base::units::JointVector;
use kin::KinematicChain;

/// Smallest distance between recorded points.
const POINT_DISTANCE_MM: f64 = 0.01;

/// Largest number of recorded points.
const POINTS_MAX: usize = 4_000_000;

/// Length of a pen.
const PEN_LENGTH_M: f64 = 0.12;

/// Rotation of a joint that measures its lever.
const STEP_RAD: f64 = 1e-4;

/// A pen in the simulated gripper.
#[derive(Clone, Debug, PartialEq)]
pub struct SimPen {
    /// Its tip in the tool mount's frame.
    pub tip_m: [f64; 3],
    /// The colour of its line, as in the scene.
    pub colour: String,
    /// The width of its line.
    pub width_mm: f64,
}

/// A line that a pen drew without leaving the sheet.
#[derive(Clone, Debug, PartialEq)]
pub struct InkLine {
    /// Index of the pen among those that were laid.
    pub pen: usize,
    /// Points in sheet coordinates.
    pub points_mm: Vec<[f64; 2]>,
}

/// The sheet in front of the simulated arm.
pub trait PaperSurface: Send {
    /// Returns the sheet coordinates and the height above the sheet, in mm, of a point in the arm's base frame;
    /// `None` outside the sheet.
    fn touch(&self, tip_m: [f64; 3]) -> Option<([f64; 2], f64)>;
}

/// Pens in the simulated holder.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum HeldPens {
    /// All that were laid.
    #[default]
    All,
    /// One of them.
    One(usize),
    /// None: nothing draws.
    Empty,
}

impl HeldPens {
    fn holds(self, pen: usize) -> bool {
        match self {
            Self::All => true,
            Self::One(held) => held == pen,
            Self::Empty => false,
        }
    }
}

/// Pens over a sheet.
#[derive(Default)]
pub(crate) struct PenWorkspace {
    paper: Option<Box<dyn PaperSurface>>,
    pens: Vec<SimPen>,
    held: HeldPens,
    drawing: Vec<bool>,
    ink: Vec<InkLine>,
    points: usize,
}

impl PenWorkspace {
    /// Lays a clean sheet.
    pub(crate) fn place_sheet(&mut self, paper: Box<dyn PaperSurface>, pens: Vec<SimPen>) {
        *self = Self {
            paper: Some(paper),
            drawing: vec![false; pens.len()],
            pens,
            ..Self::default()
        };
    }

    /// Puts other pens into the holder; the ink stays.
    pub(crate) fn hold(&mut self, held: HeldPens) {
        self.held = held;
        self.drawing.fill(false);
    }

    pub(crate) fn ink(&self) -> &[InkLine] {
        &self.ink
    }

    pub(crate) fn pens(&self) -> &[SimPen] {
        &self.pens
    }

    /// Returns the pens' positions for this pose of the arm. Pens extend away from the sheet by their
    /// length.
    pub(crate) fn held(&self, chain: &KinematicChain, joints_rad: &JointVector) -> Vec<ViewedPen> {
        let mount = chain.forward(joints_rad);
        let view = |pen: &SimPen| {
            let tip = Point3::from(pen.tip_m);
            let away = -tip.coords.try_normalize(1e-6).unwrap_or_else(Vector3::z);
            ViewedPen {
                tip_m: mount * tip,
                body_m: mount.rotation * away.scale(PEN_LENGTH_M),
                colour: rgb(&pen.colour),
            }
        };
        let pens = self.pens.iter().enumerate();
        let held = pens.filter(|(pen, _)| self.held.holds(*pen));
        held.map(|(_, pen)| view(pen)).collect()
    }

    /// Draws with the tips that touch in this pose of the arm, and returns the contact of the
    /// deepest one.
    pub(crate) fn trace(
        &mut self,
        chain: &KinematicChain,
        joints_rad: &JointVector,
    ) -> Option<TipContact> {
        let Self {
            paper,
            pens,
            held,
            drawing,
            ink,
            points,
        } = self;
        let paper = paper.as_deref()?;
        let mut deepest: Option<TipContact> = None;
        let mount = chain.forward(joints_rad);
        let pens = pens.iter().zip(drawing).enumerate();
        for (pen, (SimPen { tip_m, .. }, drawing)) in pens.filter(|(pen, _)| held.holds(*pen)) {
            let tip = mount * Point3::from(*tip_m);
            let touched = paper
                .touch(tip.coords.into())
                .filter(|(_, height_mm)| *height_mm <= 0.0);
            let was_drawing = std::mem::replace(drawing, touched.is_some());
            let Some((at_mm, height_mm)) = touched else {
                continue;
            };
            if deepest.is_none_or(|contact| height_mm < contact.height_mm) {
                deepest = Some(contact(paper, chain, joints_rad, *tip_m, height_mm));
            }
            if *points < POINTS_MAX {
                *points += add_point(ink, pen, at_mm, was_drawing);
            }
        }
        deepest
    }
}

/// Returns the contact of a tip, with the lever by which each joint lifts it.
fn contact(
    paper: &dyn PaperSurface,
    chain: &KinematicChain,
    joints_rad: &JointVector,
    tip_m: [f64; 3],
    height_mm: f64,
) -> TipContact {
    let height = |joints_rad: &JointVector| {
        let tip = chain.forward(joints_rad) * Point3::from(tip_m);
        paper.touch(tip.coords.into()).map(|(_, mm)| mm)
    };
    let lever_mm = joints_rad.map(|joint, _| {
        let moved = joints_rad.map(|other, q| if other == joint { q + STEP_RAD } else { q });
        height(&moved).map_or(0.0, |mm| (mm - height_mm) / STEP_RAD)
    });
    TipContact {
        height_mm,
        lever_mm,
    }
}

/// Adds a point and returns the number of added points: 0 if the pen has hardly moved.
fn add_point(ink: &mut Vec<InkLine>, pen: usize, at_mm: [f64; 2], continues: bool) -> usize {
    let line = ink.iter_mut().rev().find(|line| line.pen == pen);
    match line.filter(|_| continues) {
        Some(line) => {
            let is_near = line
                .points_mm
                .last()
                .is_some_and(|last| distance(*last, at_mm) < POINT_DISTANCE_MM);
            if !is_near {
                line.points_mm.push(at_mm);
            }
            usize::from(!is_near)
        }
        None => {
            ink.push(InkLine {
                pen,
                points_mm: vec![at_mm],
            });
            1
        }
    }
}
