//! Filters the strokes of chosen pens.

use super::build_scene::choose_pen;
use super::scene_fault::SceneFault;
use super::{DesignReplacement, ScenePen};
use base::wording::count;
use design::DesignStroke;

/// The pens whose strokes are drawn, and the number of other strokes.
pub(super) struct PenFilter {
    /// Their indices; `None` for all pens.
    chosen: Option<Vec<usize>>,
    left_out: usize,
    /// True draws all of it with the first pen.
    one_pen: bool,
    /// True leaves lines in the colour of paper out.
    skips_paper: bool,
    paper_coloured: usize,
}

impl PenFilter {
    /// Reads the pens of a drawing as people know them, by number from 1 or by name; none named are all.
    pub(super) fn of(
        replacement: Option<&DesignReplacement>,
        pens: &[ScenePen],
    ) -> Result<Self, SceneFault> {
        let names = replacement.map_or(&[][..], |drawing| &drawing.pens);
        let one_pen = replacement.is_some_and(|drawing| drawing.one_pen);
        let index = |named: &String| {
            let by_number = named.parse::<usize>().ok().and_then(|n| n.checked_sub(1));
            let by_number = by_number.filter(|index| *index < pens.len());
            let by_name = || pens.iter().position(|pen| pen.name == *named);
            by_number.or_else(by_name).ok_or_else(|| {
                let pens = pens.iter().map(|pen| pen.name.clone()).collect();
                let named = named.clone();
                SceneFault::NoPen { named, pens }
            })
        };
        let chosen = names.iter().map(index).collect::<Result<Vec<_>, _>>()?;
        Ok(Self {
            chosen: (!chosen.is_empty()).then_some(chosen),
            left_out: 0,
            one_pen,
            skips_paper: !one_pen && !pens.iter().any(ScenePen::is_white),
            paper_coloured: 0,
        })
    }

    /// Returns the pen of a stroke, or that the scene lacks it; `None` where the stroke is not drawn.
    pub(super) fn pen_of(
        &mut self,
        stroke: &DesignStroke,
        pens: &[ScenePen],
    ) -> Option<Result<usize, SceneFault>> {
        if self.leaves_out_paper(stroke) {
            return None;
        }
        let pen = match self.one_pen {
            true => Ok(0),
            false => choose_pen(stroke.pen, stroke.colour, pens),
        };
        self.passes(pen.as_ref().ok().copied()).then_some(pen)
    }

    /// Returns whether the first pen draws everything.
    pub(super) fn is_one_pen(&self) -> bool {
        self.one_pen
    }

    /// Returns whether the author named the very pen that draws a stroke.
    pub(super) fn is_pen_named(&self, stroke: &DesignStroke) -> bool {
        stroke.pen.is_some() && !self.one_pen
    }

    /// Returns whether a stroke of this pen is drawn, and counts it where it is not. A pen that the scene lacks is none of
    /// those that were named.
    fn passes(&mut self, pen: Option<usize>) -> bool {
        let is_chosen = |pens: &Vec<usize>| pen.is_some_and(|pen| pens.contains(&pen));
        let passes = self.chosen.as_ref().is_none_or(is_chosen);
        self.left_out += usize::from(!passes);
        passes
    }

    /// Returns whether a stroke has the colour of paper and no pen does, and counts it there.
    fn leaves_out_paper(&mut self, stroke: &DesignStroke) -> bool {
        let leaves_out = self.skips_paper && stroke.is_paper_coloured;
        self.paper_coloured += usize::from(leaves_out);
        leaves_out
    }

    /// Says that nothing is left of so many strokes, if that is because of their colour.
    pub(super) fn only_paper(&self, of: usize) -> Option<String> {
        let strokes = count(self.paper_coloured, "stroke");
        (of > 0 && self.paper_coloured == of).then(|| {
            format!(
                "design: nothing would be drawn, because all {strokes} are white and the scene has no white pen. Next: give the lines a different colour"
            )
        })
    }

    /// Says how many strokes were left out, and why.
    pub(super) fn notes(&self) -> impl Iterator<Item = String> {
        let others = (self.left_out > 0).then(|| {
            let strokes = count(self.left_out, "stroke");
            format!("{strokes} of other pens left out, as requested")
        });
        let white = (self.paper_coloured > 0).then(|| {
            let strokes = count(self.paper_coloured, "white stroke");
            format!("{strokes} left out: the scene has no white pen")
        });
        others.into_iter().chain(white)
    }
}
