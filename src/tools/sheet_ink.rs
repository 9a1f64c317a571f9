//! What lies on the sheet before an arm. The sheet of a canvas stays until an operator lays a new one, and each drawing adds to it.

use std::path::PathBuf;

use super::live_sheet::first_part;
use super::reply::Reply;
use super::{AttachedArm, Node};
use base::lock::MutexExt;
use base::segment_index::SegmentIndex;
use base::wording::{count, line_length};
use base::{disk, plain_file};
use call::{Refusal, refusal};
use job::PastJob;
use scene::{Scene, SheetStroke};

/// Length over earlier ink from which a drawing says so.
const SAID_FROM_MM: f64 = 1.0;

/// Distance of the places along a line that are looked at, and the most of them.
const STEP_MM: f64 = 0.25;
const PLACES_MAX: f64 = 2e5;

/// A line of ink: the pen's number and the points.
pub(super) type InkLine = (usize, Vec<[f64; 2]>);

impl Node {
    /// Returns the drawings on the sheet of a scene that lies before an arm, the oldest first, as far as this node knows.
    pub(crate) fn drawings_on_sheet(&self, arm: &AttachedArm, scene: &Scene) -> Vec<PastJob> {
        let is_simulated = arm.workcell.is_some();
        let placed = arm.placed_scene();
        let is_placed = placed.is_some_and(|placed| placed.revision == scene.revision);
        if is_simulated && !is_placed {
            return Vec::new();
        }
        let from = *arm.sheet_from.locked();
        self.job_store
            .drawn_since(arm.key(), from, &scene.revision.hex())
    }

    /// Returns the ink on the sheet of a scene that lies before an arm, as far as this node knows.
    pub(super) fn ink_on_sheet(&self, arm: &AttachedArm, scene: &Scene) -> Vec<InkLine> {
        if let Some(workcell) = &arm.workcell {
            let placed = arm.placed_scene();
            let placed = placed.filter(|placed| placed.revision == scene.revision);
            return placed.map_or_else(Vec::new, |_| workcell.ink());
        }
        let drawings = self.drawings_on_sheet(arm, scene);
        let drawn = drawings.iter().filter_map(|past| self.drawn_strokes(past));
        let lines = drawn.flatten();
        lines.map(|line| (line.pen, line.points_mm)).collect()
    }

    /// Returns the length of strokes that would go over ink, in millimetres. Before a simulated arm only a canvas is not new.
    pub(super) fn covered_mm(
        &self,
        arm: &AttachedArm,
        scene: &Scene,
        strokes: &[SheetStroke],
    ) -> f64 {
        if arm.workcell.is_some() && scene.canvas.is_none() {
            return 0.0;
        }
        let ink = self.ink_on_sheet(arm, scene);
        if ink.is_empty() {
            return 0.0;
        }
        covered_mm(scene, strokes, &ink)
    }

    /// Returns what a job has drawn, from its journal.
    pub(super) fn drawn_strokes(&self, past: &PastJob) -> Option<Vec<SheetStroke>> {
        let past = job::past(&self.state, &past.id).ok()?;
        Some(first_part(&past.strokes, past.drawn.mm))
    }

    /// Lays a new sheet before an arm, as a person says: what was drawn before is not on it.
    ///
    /// # Errors
    /// There is no such arm, it draws, or the order cannot be written.
    pub fn lay_new_sheet(&self, arm: Option<&str>) -> Result<String, Refusal> {
        let arm = self
            .arm(arm)
            .ok_or_else(|| refusal!("there is no such arm"))?;
        if let Some(job) = arm.board.under_way() {
            let id = job.card().id;
            return Err(refusal!(
                "{id} is drawing on the sheet. Next: wait for its end, or stop it"
            ));
        }
        let scene = arm.sheet_scene();
        let drawings = scene
            .as_ref()
            .map_or_else(Vec::new, |scene| self.drawings_on_sheet(arm, scene));
        let from = self.job_store.next_number();
        self.mark_new_sheet(arm, from)?;
        if let Some(scene) = &scene {
            arm.place_sheet(scene, from);
        }
        let name = scene.map_or_else(|| "no scene yet".to_owned(), |scene| scene.name.clone());
        let before = count(drawings.len(), "drawing");
        Ok(format!(
            "a new sheet is in place at {} ({name}); forgotten: {before} of the old sheet",
            arm.title()
        ))
    }

    /// Reads when a person laid the last new sheet before an arm on a port; a simulated sheet is no older than its process.
    pub(super) fn read_sheet_mark(&self, arm: &AttachedArm) {
        if arm.workcell.is_some() {
            return;
        }
        let text = plain_file::read_text(self.sheet_mark(arm));
        let from = text.ok().and_then(|text| text.trim().parse().ok());
        *arm.sheet_from.locked() = from.unwrap_or_default();
    }

    fn mark_new_sheet(&self, arm: &AttachedArm, from: u64) -> Result<(), Refusal> {
        if arm.workcell.is_none() {
            let path = self.sheet_mark(arm);
            disk::put(&path, &format!("{from}\n"))
                .map_err(|error| refusal!("{} cannot be written: {error}", path.display()))?;
        }
        *arm.sheet_from.locked() = from;
        Ok(())
    }

    fn sheet_mark(&self, arm: &AttachedArm) -> PathBuf {
        self.state.join(format!("sheet-of-{}", arm.name))
    }
}

/// Returns the length of strokes that go over ink, in millimetres.
fn covered_mm(scene: &Scene, strokes: &[SheetStroke], ink: &[InkLine]) -> f64 {
    let width_mm = |pen: usize| scene.pen(pen).map_or(0.5, |pen| pen.width_mm);
    let widest_mm = ink.iter().map(|(pen, _)| width_mm(*pen));
    let widest_mm = widest_mm.fold(0.0, f64::max);
    let lines: Vec<Vec<[f64; 2]>> = ink.iter().map(|(_, line)| line.clone()).collect();
    let index = SegmentIndex::new(&lines);
    let length_mm: f64 = strokes.iter().map(SheetStroke::length_mm).sum();
    let step_mm = STEP_MM.max(length_mm / PLACES_MAX);
    let covered = strokes.iter().map(|stroke| {
        let touch_mm = (width_mm(stroke.pen) + widest_mm) / 2.0;
        let places = places_along(&stroke.points_mm, step_mm);
        let over = places.filter(|place| index.distance_mm(*place) < touch_mm);
        over.count() as f64 * step_mm
    });
    covered.sum()
}

/// Returns the middles of the steps along a line.
fn places_along(points_mm: &[[f64; 2]], step_mm: f64) -> impl Iterator<Item = [f64; 2]> {
    let mut next_mm = step_mm / 2.0;
    let pairs = points_mm.iter().zip(points_mm.iter().skip(1));
    pairs.flat_map(move |(a, b)| {
        let [dx, dy] = [b[0] - a[0], b[1] - a[1]];
        let length_mm = dx.hypot(dy);
        let mut places = Vec::new();
        while next_mm < length_mm {
            let t = next_mm / length_mm;
            places.push([a[0] + t * dx, a[1] + t * dy]);
            next_mm += step_mm;
        }
        next_mm -= length_mm;
        places
    })
}

/// Says how much of a drawing goes over ink that is on the sheet; `None` if hardly any does.
pub(super) fn covered_text(covered_mm: f64, goes: &str) -> Option<String> {
    let length = line_length(covered_mm);
    (covered_mm >= SAID_FROM_MM).then(|| {
        format!("{length} of it {goes} over ink on the sheet (if the sheet is new, a person runs `steadyhand new-sheet`)")
    })
}

/// Adds to an answer how much of its drawing goes over ink.
pub(super) fn say_covered(reply: Reply, covered_mm: f64, goes: &str) -> Reply {
    match covered_text(covered_mm, goes) {
        None => reply,
        Some(clause) => reply
            .with_more_words(&clause)
            .with("covers_mm", covered_mm.round()),
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a failing test may panic")]
mod tests {
    use super::*;

    #[test]
    fn a_line_covers_ink_as_far_as_the_pens_touch() {
        let library = scene::SceneLibrary::new(None);
        let scene = library.scene("default", None).unwrap();
        let ink = [(0, vec![[0.0, 0.0], [40.0, 0.0]])];
        let covered = |points: &[[f64; 2]]| {
            let stroke = SheetStroke {
                points_mm: points.to_vec(),
                ..SheetStroke::default()
            };
            covered_mm(&scene, &[stroke], &ink)
        };
        assert!((covered(&[[0.0, 0.0], [40.0, 0.0]]) - 40.0).abs() < 0.5);
        assert!((covered(&[[30.0, 0.1], [60.0, 0.1]]) - 10.0).abs() < 1.0);
        assert!(covered(&[[20.0, -10.0], [20.0, 10.0]]) < 2.0);
        assert!(covered(&[[0.0, 5.0], [40.0, 5.0]]).abs() < 1e-9);
        assert!(covered(&[]).abs() < 1e-9);
    }
}
