//! Repeats a design in columns and rows.

use std::ops::RangeInclusive;

use super::DesignReplacement;
use super::scene_fault::SceneFault;
use base::wording::count;
use design::{Design, DesignCaps, DesignError, DesignStroke};

/// Columns and rows that are possible.
const EACH: RangeInclusive<u16> = 1..=50;

/// Distance between two copies, as a share of the longer side of one.
const GAP: f64 = 0.05;

/// Columns and rows of copies.
#[derive(Clone, Copy)]
pub(super) struct Copies {
    columns: usize,
    rows: usize,
}

impl Copies {
    /// Returns the copies that a replacement asks for; `None` for a single one.
    ///
    /// # Errors
    /// None, or too many.
    pub(super) fn of(replacement: &DesignReplacement) -> Result<Option<Self>, SceneFault> {
        let Some([columns, rows]) = replacement.copies else {
            return Ok(None);
        };
        if ![columns, rows].iter().all(|each| EACH.contains(each)) {
            let max = *EACH.end();
            return Err(SceneFault::Copies { columns, rows, max });
        }
        let [columns, rows] = [columns, rows].map(usize::from);
        Ok((columns * rows > 1).then_some(Self { columns, rows }))
    }

    /// Returns the copies as one design, with a note.
    ///
    /// # Errors
    /// More strokes or points than a design may have.
    pub(super) fn repeated(self, one: &Design, caps: &DesignCaps) -> Result<Design, DesignError> {
        let copies = self.columns * self.rows;
        let points: usize = one
            .strokes
            .iter()
            .map(|stroke| stroke.points_mm.len())
            .sum();
        let all = [
            ("strokes", one.strokes.len(), caps.strokes_max),
            ("points", points, caps.points_max),
        ];
        if let Some((what, _, max)) = all.into_iter().find(|(_, one, max)| one * copies > *max) {
            let at = count(copies, "copy");
            return Err(DesignError::TooMany { at, what, max });
        }
        let mut all = one.repeated([self.columns, self.rows], gap(one.page_mm));
        let (columns, rows) = (self.columns, self.rows);
        all.notes
            .push(format!("{}: {columns} × {rows}", count(copies, "copy")));
        Ok(all)
    }

    /// Returns the corners of the box of each copy, to be fitted to a sheet as the copies are.
    pub(super) fn outline(self, one: &Design) -> Design {
        let [width, height] = one.page_mm;
        let corners = vec![[0.0, 0.0], [width, 0.0], [width, height], [0.0, height]];
        let frame = Design {
            page_mm: one.page_mm,
            strokes: vec![DesignStroke {
                points_mm: corners,
                ..DesignStroke::default()
            }],
            ..Design::default()
        };
        frame.repeated([self.columns, self.rows], gap(one.page_mm))
    }

    /// Returns how many times longer the page of all copies is than that of one.
    pub(super) fn growth(self, page_mm: [f64; 2]) -> f64 {
        let [width, height] = page_mm;
        let gap = gap(page_mm);
        let side = |count: usize, side: f64| side * count as f64 + gap * (count - 1) as f64;
        side(self.columns, width).max(side(self.rows, height)) / width.max(height)
    }
}

fn gap([width, height]: [f64; 2]) -> f64 {
    GAP * width.max(height)
}
