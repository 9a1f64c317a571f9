//! Draws a picture's tones as parallel lines: a pen's width apart where it is black, fewer where it is grey.

use super::darkness::ToneSheet;
use super::tone_carry::ToneCarry;
use base::plane::Point;

/// Tone of a line beyond which it goes on, and below which it ends: a line that was begun is not broken for less.
const BEGINS_AT: f64 = 0.5;
const GOES_ON_AT: f64 = 0.4;

/// Shortest line, and shortest gap in one, in widths of the pen. With less ink lines are longer and farther apart, not only
/// fewer: each costs a lift of the pen.
const LINE_WIDTHS_MIN: f64 = 2.0;
const LINE_WIDTHS_LONGEST: f64 = 12.0;
const GAP_WIDTHS_MIN: usize = 2;

/// Steps along a line in each width of the pen.
const STEPS_PER_WIDTH: usize = 2;

/// Parallel lines over a whole sheet, at 45°.
struct LineField {
    middle_mm: Point,
    /// Half the sheet's diagonal.
    reach_mm: f64,
    pen_mm: f64,
}

impl LineField {
    fn of(sheet: &ToneSheet, pen_mm: f64) -> Self {
        let [width_mm, height_mm] = sheet.size_mm();
        Self {
            middle_mm: [width_mm / 2.0, height_mm / 2.0],
            reach_mm: width_mm.hypot(height_mm) / 2.0,
            pen_mm,
        }
    }

    fn step_mm(&self) -> f64 {
        self.pen_mm / STEPS_PER_WIDTH as f64
    }

    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "positive, and the sheet is bounded"
    )]
    fn count(&self, apart_mm: f64) -> usize {
        (2.0 * self.reach_mm / apart_mm).ceil() as usize
    }

    /// Returns the place on a line, `along` steps from its beginning.
    fn place(&self, line: usize, along: f64) -> Point {
        let u_mm = along * self.step_mm() - self.reach_mm;
        let v_mm = (line as f64 + 0.5) * self.pen_mm - self.reach_mm;
        let slant = std::f64::consts::FRAC_1_SQRT_2;
        let [x_mm, y_mm] = self.middle_mm;
        [x_mm + slant * (u_mm + v_mm), y_mm + slant * (v_mm - u_mm)]
    }
}

/// Returns the lines of a picture; `ink` is the share of the paper that they cover where it is black.
pub(crate) fn paths(sheet: &ToneSheet, pen_mm: f64, ink: f64) -> Vec<Vec<Point>> {
    let field = LineField::of(sheet, pen_mm);
    let steps = field.count(field.step_mm());
    let mut carry = ToneCarry::new(steps);
    let mut paths = Vec::new();
    for line in 0..field.count(pen_mm) {
        let wanted: Vec<Option<f64>> = (0..steps)
            .map(|step| field.place(line, step as f64 + 0.5))
            .map(|place| sheet.contains(place).then(|| ink * sheet.darkness(place)))
            .collect();
        let drawn = drawn_steps(&wanted, &carry, least_steps(ink));
        for (step, (wanted, &is_drawn)) in wanted.iter().zip(&drawn).enumerate() {
            match wanted {
                Some(wanted) => carry.owe(step, wanted - f64::from(u8::from(is_drawn))),
                None => carry.clear(step),
            }
        }
        paths.extend(runs(&drawn).map(|(begin, end)| {
            // The pen's round end covers as much as this length of its line.
            let inset = STEPS_PER_WIDTH as f64 * std::f64::consts::FRAC_PI_8;
            [begin as f64 + inset, end as f64 - inset]
                .map(|along| field.place(line, along))
                .to_vec()
        }));
    }
    paths
}

/// Returns the shortest line in steps.
fn least_steps(ink: f64) -> usize {
    let widths = (LINE_WIDTHS_MIN / ink).min(LINE_WIDTHS_LONGEST);
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "bounded"
    )]
    let steps = (widths * STEPS_PER_WIDTH as f64).round() as usize;
    steps
}

/// Decides where a line is drawn.
fn drawn_steps(wanted: &[Option<f64>], carry: &ToneCarry, least: usize) -> Vec<bool> {
    let mut is_drawn = false;
    let mut drawn: Vec<bool> = wanted
        .iter()
        .enumerate()
        .map(|(step, wanted)| {
            let bound = if is_drawn { GOES_ON_AT } else { BEGINS_AT };
            is_drawn =
                wanted.is_some_and(|wanted| wanted > 0.0 && wanted + carry.owed(step) >= bound);
            is_drawn
        })
        .collect();
    flip_short_runs(&mut drawn, false, GAP_WIDTHS_MIN * STEPS_PER_WIDTH, wanted);
    flip_short_runs(&mut drawn, true, least, wanted);
    drawn
}

/// Turns runs of `which` that are shorter than `least` into the other; gaps outside the picture stay.
fn flip_short_runs(steps: &mut [bool], which: bool, least: usize, wanted: &[Option<f64>]) {
    let mut begin = 0;
    while begin < steps.len() {
        let is_which = |step: &bool| *step == which;
        let rest = steps.get(begin..).unwrap_or_default();
        let length = rest.iter().take_while(|step| is_which(step)).count();
        let is_inner = begin > 0 && begin + length < steps.len();
        let is_on_paper = |index: usize| wanted.get(index).is_some_and(Option::is_some);
        let may_flip = which || (is_inner && (begin..begin + length).all(is_on_paper));
        if length > 0 && length < least && may_flip {
            steps
                .iter_mut()
                .skip(begin)
                .take(length)
                .for_each(|step| *step = !which);
        }
        begin += length.max(1);
    }
}

/// Returns where each run of drawn steps begins and ends.
fn runs(steps: &[bool]) -> impl Iterator<Item = (usize, usize)> {
    let ends = |step: usize| steps.get(step).copied().unwrap_or(false);
    let begins: Vec<usize> = (0..steps.len())
        .filter(|&step| ends(step) && (step == 0 || !ends(step - 1)))
        .collect();
    begins.into_iter().map(move |begin| {
        let length = steps.iter().skip(begin).take_while(|step| **step).count();
        (begin, begin + length)
    })
}
