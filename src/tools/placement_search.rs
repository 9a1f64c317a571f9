//! Searches for a place or a size at which a refused drawing would be accepted.

use std::sync::Arc;

use super::Node;
use super::drawing_offer::down_to_a_tenth;
use super::operator_drawing::DrawingOrder;
use super::preview::DrawingPreview;
use base::units::Finite;
use plan::PlanObserver;
use scene::{DesignPlacement, DesignReplacement, Scene, SizeSource};

/// Plans in the search for the largest size that can be drawn: each halves the range.
const SIZE_TRIALS: usize = 6;

/// Most strokes of a design for which a size is searched: each trial plans all of them.
const SIZED_STROKES_MAX: usize = 2_000;

/// Smallest part of the requested size that is offered. A dot of a drawing is of no use to who asked for a hand's width.
const SIZE_SHARE_MIN: f64 = 0.3;

/// Places that are tried, as parts of the room beside the drawing to the left and below: the middle first. An arm reaches over a
/// long sheet's near half, or stands too close to it.
const PLACES: [[f64; 2]; 7] = [
    [0.5, 0.5],
    [0.5, 0.25],
    [0.5, 0.75],
    [0.15, 0.25],
    [0.85, 0.25],
    [0.15, 0.75],
    [0.85, 0.75],
];

/// A place or a size at which a refused drawing was planned and accepted.
#[derive(Default)]
pub(super) struct AcceptedPlacement {
    pub(super) moves_to_mm: Option<[f64; 2]>,
    pub(super) fits_mm: Option<f64>,
    pub(super) fits_centred: bool,
}

/// Plans a refused drawing elsewhere: as large as it is at other places, then smaller at the requested place, then smaller in the
/// middle of the sheet.
pub(super) struct PlacementSearch<'a> {
    pub(super) node: &'a Node,
    pub(super) order: &'a DrawingOrder,
    pub(super) design: &'a DesignReplacement,
    pub(super) refused: &'a Scene,
    pub(super) watch: &'a dyn PlanObserver,
}

impl PlacementSearch<'_> {
    pub(super) fn find(&self) -> Option<AcceptedPlacement> {
        if self.refused.strokes.len() > SIZED_STROKES_MAX {
            return None;
        }
        let asked = self.design.placement;
        let is_fitted = self.refused.page.from == SizeSource::Fitted;
        let moves_to_mm = (!is_fitted).then(|| self.place_mm(asked)).flatten();
        if moves_to_mm.is_some() {
            return Some(AcceptedPlacement {
                moves_to_mm,
                ..AcceptedPlacement::default()
            });
        }
        let there = self.largest_mm(asked);
        let centred = DesignPlacement {
            at_mm: None,
            ..asked
        };
        // What fills the sheet's corner is small: the middle has room for its full size.
        let full_mm = |scene: Arc<Scene>| down_to_a_tenth(scene.page.long_mm);
        let elsewhere = || match is_fitted {
            true => self.accepted(centred).map(full_mm),
            false => self.largest_mm(centred),
        };
        let centred = (there.is_none() && asked.at_mm.is_some())
            .then(elsewhere)
            .flatten();
        Some(AcceptedPlacement {
            moves_to_mm: None,
            fits_mm: there.or(centred),
            fits_centred: centred.is_some(),
        })
    }

    /// Returns a place at which the drawing is accepted as large as it is.
    fn place_mm(&self, asked: DesignPlacement) -> Option<[f64; 2]> {
        let page = &self.refused.page;
        let ([width, height], [left, low]) = (self.refused.surface.size_mm(), page.at_mm);
        let [centre_x, centre_y] = page.centre_mm;
        let room_x = width - 2.0 * (centre_x - left);
        let room_y = height - 2.0 * (centre_y - low);
        PLACES.into_iter().find_map(|[right, up]| {
            let [x, y] = [right * room_x, up * room_y].map(down_to_a_tenth);
            let placement = DesignPlacement {
                at_mm: Some([Finite::new(x).ok()?, Finite::new(y).ok()?]),
                ..asked
            };
            let is_accepted = !self.watch.cancelled() && self.accepted(placement).is_some();
            is_accepted.then_some([x, y])
        })
    }

    /// Returns the scene with the design at a place, if a plan from rest is accepted.
    fn accepted(&self, placement: DesignPlacement) -> Option<Arc<Scene>> {
        let mut design = self.design.clone();
        design.placement = placement;
        let library = self.node.scenes.with_drawing(design);
        let scene = library.scene(&self.refused.name, self.order.overlay.as_deref());
        let scene = scene.ok()?;
        let preview = DrawingPreview::new(&scene, &scene.rest_rad, self.watch).ok()?;
        preview.refusals.is_empty().then_some(scene)
    }

    /// Searches for a size, smaller than that of the refused drawing and not absurdly so, that is accepted. A few tenths of a
    /// millimetre more might be accepted too.
    fn largest_mm(&self, placement: DesignPlacement) -> Option<f64> {
        let asked_mm = self.refused.page.long_mm;
        let is_accepted = |trial_mm: f64| {
            let sized = DesignPlacement {
                size_mm: Finite::new(trial_mm).ok(),
                fits: false,
                fits_page: false,
                ..placement
            };
            !self.watch.cancelled() && self.accepted(sized).is_some()
        };
        let least_mm = down_to_a_tenth(asked_mm * SIZE_SHARE_MIN);
        if !is_accepted(least_mm) {
            return None;
        }
        let (mut accepted_mm, mut high_mm) = (least_mm, asked_mm);
        for _ in 1..SIZE_TRIALS {
            let trial_mm = down_to_a_tenth((accepted_mm + high_mm) / 2.0);
            match is_accepted(trial_mm) {
                true => accepted_mm = trial_mm,
                false => high_mm = trial_mm,
            }
        }
        Some(accepted_mm)
    }
}
