//! The registration cross: where it lies, how it is drawn, and what is known of its ink.

use std::sync::Arc;

use super::super::motion_job::{JobContext, JobError};
use base::segment_index::SegmentIndex;
use base::wording::millimetres;
use call::refusal;
use scene::{DrawingTrim, Order as DrawingOrder, Scene, SheetStroke};

use super::{INSET_MM, INSET_SHARE};

/// Half the length of the cross's lines, and what it is at most of a small sheet's side.
const HALF_MM: f64 = 6.0;
const HALF_SHARE: f64 = 0.4;

/// Its lines.
pub(super) const LINES: usize = 2;

/// Least distance of the cross from the scene's design, beside the widest pen.
const CLEAR_MM: f64 = 2.0;

/// Points of each line at which its distance from the design is measured.
const POINTS: u32 = 13;

/// Places along each side of the sheet that are tried where the corners are taken.
const PLACES: u32 = 9;

/// Returns the middle of the cross that `align` draws in a scene: a place of its sheet where the scene's design is not. `None` where
/// there is none.
#[must_use]
pub fn cross_place_mm(scene: &Scene) -> Option<[f64; 2]> {
    let lines = scene.strokes.iter().map(|stroke| stroke.points_mm.clone());
    let design = SegmentIndex::new(&lines.collect::<Vec<_>>());
    let widest_mm = scene
        .pens
        .iter()
        .map(|pen| pen.width_mm)
        .fold(0.0, f64::max);
    let is_free = |at_mm: &[f64; 2]| {
        let lines = lines_at(scene.surface.size_mm(), *at_mm);
        let mut points = lines.iter().flat_map(|[a, b]| points_between(*a, *b));
        points.all(|point| design.distance_mm(point) >= CLEAR_MM + widest_mm)
    };
    places(scene).find(is_free)
}

/// Returns the places that are tried: the middle, where no design of a caller comes to lie, the corners, then a grid.
fn places(scene: &Scene) -> impl Iterator<Item = [f64; 2]> {
    let size_mm = scene.surface.size_mm();
    let half_mm = half_mm(size_mm);
    let middle = size_mm.map(|side| side / 2.0);
    // No farther out than the places that `align` visits.
    let low = [0, 1].map(|axis: usize| {
        let [side, half] = [size_mm, half_mm].map(|both| both.get(axis).copied().unwrap_or(0.0));
        (INSET_MM.min(side * INSET_SHARE) + half).min(side / 2.0)
    });
    let [left, bottom] = low;
    let [right, top] = [size_mm[0] - left, size_mm[1] - bottom];
    let corners = [[left, bottom], [right, bottom], [right, top], [left, top]];
    let step = |from: f64, to: f64, index: u32| {
        from + (to - from) * f64::from(index) / f64::from(PLACES - 1)
    };
    let grid = (0..PLACES).flat_map(move |row| {
        (0..PLACES).map(move |column| [step(left, right, column), step(bottom, top, row)])
    });
    let middle = scene.canvas.is_none().then_some(middle);
    middle.into_iter().chain(corners).chain(grid)
}

fn half_mm(size_mm: [f64; 2]) -> [f64; 2] {
    size_mm.map(|side| HALF_MM.min(side * HALF_SHARE))
}

/// Returns the lines of a cross, across and upwards.
fn lines_at(size_mm: [f64; 2], [x, y]: [f64; 2]) -> [[[f64; 2]; 2]; LINES] {
    let [across, upwards] = half_mm(size_mm);
    [
        [[x - across, y], [x + across, y]],
        [[x, y - upwards], [x, y + upwards]],
    ]
}

fn points_between(a: [f64; 2], b: [f64; 2]) -> impl Iterator<Item = [f64; 2]> {
    (0..POINTS).map(move |index| {
        let share = f64::from(index) / f64::from(POINTS - 1);
        [a[0] + (b[0] - a[0]) * share, a[1] + (b[1] - a[1]) * share]
    })
}

/// The cross of one alignment.
pub(super) struct DrawnCross {
    /// Lines carried out.
    pub(super) strokes: usize,
    /// Middle of the cross; `None` if the sheet has no free place.
    pub(super) at_mm: Option<[f64; 2]>,
    /// Whether its ink is on the sheet, as far as that is known.
    pub(super) is_inked: Option<bool>,
    raise_mm: f64,
}

impl DrawnCross {
    /// Draws the cross, pressed less than a drawing, if the sheet has a free place for it.
    pub(super) async fn draw(ctx: &JobContext, scene: &Arc<Scene>) -> Result<Self, JobError> {
        let trim = DrawingTrim::of_first_ink(scene);
        let mut cross = Self {
            strokes: 0,
            at_mm: cross_place_mm(scene),
            is_inked: None,
            raise_mm: trim.raise_mm.get(),
        };
        let Some(at_mm) = cross.at_mm else {
            return Ok(cross);
        };
        let permit = ctx.ask(scene)?;
        let strokes = strokes(scene.surface.size_mm(), at_mm);
        let lighter = scene.trimmed(&trim);
        let lighter = Arc::new(lighter.map_err(|error| refusal!("{error}"))?);
        let plan = ctx
            .plan(&lighter, move |scene, start, watch| {
                plan::draw_strokes(scene, start, &strokes, DrawingOrder::AsDrawn, watch)
            })
            .await?;
        ctx.job.update(|card| card.has_later_motions = false);
        ctx.run(&lighter, permit, &plan).await?;
        cross.strokes = plan.report.stroke_count;
        let workcell = ctx.arm.workcell.as_ref();
        cross.is_inked = workcell.map(|workcell| !workcell.ink().is_empty());
        Ok(cross)
    }

    /// Describes what is known of the cross.
    pub(super) fn words(&self, scene: &Scene) -> String {
        let Some([x, y]) = self.at_mm else {
            return "no cross was drawn, because the drawing leaves no room for one. The points were visited without ink".to_owned();
        };
        let [width, height] = scene.surface.size_mm();
        let place = format!("at {x:.1}, {y:.1} mm on the sheet of {width} by {height} mm");
        let pressure = match self.raise_mm > 0.0 {
            true => format!(
                ", pressed {} less deeply than a drawing",
                millimetres(self.raise_mm, 1)
            ),
            false => String::new(),
        };
        match self.is_inked {
            Some(true) => format!("a cross was drawn {place}{pressure}"),
            Some(false) => {
                format!("the pen left no ink for its cross {place}{pressure}")
            }
            None => format!(
                "the pen moved along a cross {place}{pressure}. Its ink was not measured: check that the cross is there"
            ),
        }
    }
}

fn strokes(size_mm: [f64; 2], at_mm: [f64; 2]) -> [SheetStroke; LINES] {
    let names = ["registration cross, across", "registration cross, upwards"];
    let [across, upwards] = lines_at(size_mm, at_mm);
    let line = |source: &str, points_mm: [[f64; 2]; 2]| SheetStroke {
        points_mm: points_mm.to_vec(),
        pen: 0,
        source: source.to_owned(),
        pause: None,
    };
    [line(names[0], across), line(names[1], upwards)]
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a failing test may panic")]
mod tests {
    use super::*;
    use scene::SceneLibrary;

    fn design(lines: &[Vec<[f64; 2]>]) -> Scene {
        let scene = SceneLibrary::new(None).scene("default", None).unwrap();
        let stroke = |points_mm: &Vec<[f64; 2]>| SheetStroke {
            points_mm: points_mm.clone(),
            pen: 0,
            source: String::new(),
            pause: None,
        };
        let mut scene = (*scene).clone();
        scene.strokes = lines.iter().map(stroke).collect();
        scene
    }

    #[test]
    fn the_cross_lies_where_the_design_is_not() {
        let line = |y: f64| vec![[0.0, y], [100.0, y]];
        assert_eq!(cross_place_mm(&design(&[])), Some([50.0, 50.0]));
        let at_mm = cross_place_mm(&design(&[line(50.0)]));
        assert_eq!(at_mm, Some([14.0, 14.0]));
        let edges = vec![
            [8.0, 8.0],
            [92.0, 8.0],
            [92.0, 92.0],
            [8.0, 92.0],
            [8.0, 8.0],
        ];
        let at_mm = cross_place_mm(&design(&[line(50.0), edges])).unwrap();
        assert!((18.0..=41.0).contains(&at_mm[1]), "{at_mm:?}");
        let full: Vec<_> = (0..12).map(|row| line(f64::from(row) * 9.0)).collect();
        assert_eq!(cross_place_mm(&design(&full)), None);
    }

    #[test]
    fn the_cross_of_a_small_sheet_lies_within_it() {
        for size_mm in [[6.0, 100.0], [10.0, 10.0], [2.0, 3.0], [100.0, 100.0]] {
            let middle = size_mm.map(|side| side / 2.0);
            for [x, y] in lines_at(size_mm, middle).into_iter().flatten() {
                assert!((0.0..=size_mm[0]).contains(&x), "{size_mm:?}: {x}");
                assert!((0.0..=size_mm[1]).contains(&y), "{size_mm:?}: {y}");
            }
        }
    }
}
