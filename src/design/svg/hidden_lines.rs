//! Takes away lines that lie behind filled areas.

use base::plane::{self, Point};
use base::wording::count;
use usvg::{Node, Path};

use super::super::DesignStroke;
use super::super::fill_area::{EDGE_MM, FilledArea, WorkBudget, clip_where};
use super::machine_fonts::letters_of;
use super::text_to_paths;

/// The areas of a drawing that hide what lies behind them, and how deep each stroke lies.
#[derive(Default)]
pub(super) struct HiddenLines {
    areas: Vec<HidingArea>,
    /// Place of each stroke's path among all paths, from the back.
    depths: Vec<usize>,
    /// Filled areas that a clip path cuts: they hide nothing.
    clipped: usize,
}

struct HidingArea {
    depth: usize,
    area: FilledArea,
    low: Point,
    high: Point,
}

impl HidingArea {
    /// Returns whether a point lies behind it; its edge hides nothing.
    fn hides(&self, point: Point) -> bool {
        self.area.contains(point) && self.area.distance_mm(point) > EDGE_MM
    }

    fn may_meet(&self, [low, high]: [Point; 2]) -> bool {
        (0..2).all(|axis| {
            let at = |point: &Point| point.get(axis).copied().unwrap_or(0.0);
            at(&self.low) < at(&high) && at(&low) < at(&self.high)
        })
    }
}

/// Returns the number of paths in a part of a drawing.
pub(super) fn paths_in(node: &Node) -> usize {
    match node {
        Node::Group(group) => group.children().iter().map(paths_in).sum(),
        Node::Path(_) => 1,
        Node::Image(_) => 0,
        Node::Text(_) => letters_of(node).map_or(0, |(letters, _)| {
            letters.children().iter().map(paths_in).sum()
        }),
    }
}

/// Returns the rule by which a path is filled, if it hides what lies behind it: white counts, what shines through does not.
pub(super) fn hiding_rule(path: &Path) -> Option<usvg::FillRule> {
    let fill = path.fill().filter(|fill| fill.opacity().get() >= 1.0)?;
    let is_hiding = path.is_visible() && !text_to_paths::is_letters(path.id());
    is_hiding.then(|| fill.rule())
}

impl HiddenLines {
    /// Adds a filled area.
    pub(super) fn add(&mut self, depth: usize, area: FilledArea, is_clipped: bool) {
        if is_clipped {
            self.clipped += 1;
        } else if let Some((low, high)) = plane::bounds(area.edges.iter().flatten()) {
            self.areas.push(HidingArea {
                depth,
                area,
                low,
                high,
            });
        }
    }

    /// Notes how deep the strokes lie that were added since the last time.
    pub(super) fn note_depth(&mut self, strokes: usize, depth: usize) {
        self.depths.resize(strokes, depth);
    }

    /// Returns the visible parts of strokes, and notes; `None` if that needs too much work.
    pub(super) fn visible(
        &self,
        strokes: Vec<DesignStroke>,
        work: &mut WorkBudget,
    ) -> Option<(Vec<DesignStroke>, Vec<String>)> {
        let (mut visible, mut cut, mut pause) = (Vec::with_capacity(strokes.len()), 0, false);
        for (stroke, depth) in strokes.into_iter().zip(&self.depths) {
            pause |= stroke.pause_before;
            let Some(parts) = self.visible_parts(&stroke, *depth, work)? else {
                visible.push(DesignStroke {
                    pause_before: std::mem::take(&mut pause),
                    ..stroke
                });
                continue;
            };
            cut += 1;
            visible.extend(parts.into_iter().map(|points_mm| DesignStroke {
                points_mm,
                pause_before: std::mem::take(&mut pause),
                ..stroke.clone()
            }));
        }
        let strokes = count(cut, "stroke");
        let hidden = (cut > 0).then(|| format!("{strokes} behind filled areas: cut or left out"));
        let areas = count(self.clipped, "filled area");
        let clipped = (self.clipped > 0).then(|| {
            format!("{areas} with a clip path: these hide nothing. Next: cut the areas to the shapes of their clip paths")
        });
        Some((visible, hidden.into_iter().chain(clipped).collect()))
    }

    /// Returns what is left of a stroke behind areas; an inner `None` for all of it.
    #[expect(clippy::option_option, reason = "too much work, and nothing hidden")]
    fn visible_parts(
        &self,
        stroke: &DesignStroke,
        depth: usize,
        work: &mut WorkBudget,
    ) -> Option<Option<Vec<Vec<Point>>>> {
        let bounds = plane::bounds(&stroke.points_mm);
        let Some((low, high)) = bounds else {
            return Some(None);
        };
        let is_in_front = |area: &&HidingArea| area.depth > depth && area.may_meet([low, high]);
        let before = stroke.length_mm();
        let mut parts = vec![stroke.points_mm.clone()];
        for front in self.areas.iter().filter(is_in_front) {
            let mut left = Vec::new();
            for part in &parts {
                let edges = std::slice::from_ref(&front.area);
                left.extend(clip_where(part, edges, &|point| !front.hides(point), work)?);
            }
            parts = left;
        }
        let after: f64 = parts.iter().map(|part| plane::length(part)).sum();
        Some((before - after > EDGE_MM).then_some(parts))
    }
}
