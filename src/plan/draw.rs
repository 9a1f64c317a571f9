//! Drawing: every stroke lowered to, drawn and lifted from, with dips where the pen needs ink.

use nalgebra::Vector3;

use super::build::{Build, Stand, What, nowhere};
use super::course::{Piece, Place, distance};
use super::error::{Cause, PlanError, Refusal};
use super::hand::Hand;
use super::order::{Turn, order};
use super::report::{self, StrokeReport};
use super::trace::Stuck;
use super::trajectory::SpanKind;
use super::{Plan, Watch, bend};
use crate::kin::Solution;
use crate::scene::{Ink, Order, Scene, SheetStroke};
use crate::units::Joints;

/// Strokes of one plan.
const STROKES_MAX: usize = 100_000;
/// How many ways of holding the pen are compared over the whole drawing.
const WAYS_MAX: usize = 12;
/// Refusals after which no further ones are looked for.
const REFUSALS_MAX: usize = 1000;

/// Plans the scene's design.
///
/// # Errors
/// [`PlanError::Refused`] with everything that cannot be drawn well, or cancelled, or nothing.
pub fn draw(scene: &Scene, start: &Joints, watch: &dyn Watch) -> Result<Plan, PlanError> {
    draw_strokes(scene, start, &scene.strokes, scene.order, watch)
}

/// Plans other strokes than the scene's, on its sheet and with its pens.
///
/// # Errors
/// As [`draw`].
pub fn draw_strokes(
    scene: &Scene,
    start: &Joints,
    strokes: &[SheetStroke],
    how: Order,
    watch: &dyn Watch,
) -> Result<Plan, PlanError> {
    check(strokes)?;
    let turns = order(strokes, how);
    let mut drawing = Drawing {
        build: Build::new(scene, start, watch)?,
        strokes,
        since_dip_mm: vec![f64::INFINITY; scene.pens.len()],
        reports: Vec::with_capacity(turns.len()),
        dips: 0,
    };
    for (item, turn) in turns.iter().enumerate() {
        drawing.build.check_wanted()?;
        drawing.turn(item, turn);
        drawing.build.progress(item + 1, turns.len());
        if drawing.build.refusals.len() >= REFUSALS_MAX {
            break;
        }
    }
    let (reports, dips) = (drawing.reports, drawing.dips);
    let (trajectory, hover_from) = drawing.build.finish()?;
    Ok(report::plan(scene, trajectory, hover_from, reports, dips))
}

fn check(strokes: &[SheetStroke]) -> Result<(), PlanError> {
    if strokes.is_empty() {
        return Err(PlanError::Nothing);
    }
    let unfit = |stroke: Option<usize>, source: &str, why: String| {
        Err(PlanError::Refused(vec![Refusal {
            stroke,
            source: source.to_owned(),
            at_mm: None,
            cause: Cause::Unfit { why },
        }]))
    };
    if strokes.len() > STROKES_MAX {
        let why = format!("has {} strokes; {STROKES_MAX} are possible", strokes.len());
        return unfit(None, "the design", why);
    }
    for (index, stroke) in strokes.iter().enumerate() {
        if stroke.points_mm.iter().flatten().any(|v| !v.is_finite()) {
            let why = "has a point that is not finite".to_owned();
            return unfit(Some(index), &stroke.source, why);
        }
    }
    Ok(())
}

struct Drawing<'a> {
    build: Build<'a>,
    strokes: &'a [SheetStroke],
    since_dip_mm: Vec<f64>,
    reports: Vec<StrokeReport>,
    dips: usize,
}

impl Drawing<'_> {
    /// One stroke with all that goes before and after it; refused, it leaves no trace.
    fn turn(&mut self, item: usize, turn: &Turn) {
        let mark = self.build.mark();
        if let Err(stuck) = self.try_turn(item, turn) {
            self.build.back_to(&mark);
            let source = self
                .strokes
                .get(turn.stroke)
                .map_or("", |stroke| stroke.source.as_str());
            self.build.refuse(Some(turn.stroke), source, stuck);
        }
    }

    fn try_turn(&mut self, item: usize, turn: &Turn) -> Result<(), Stuck> {
        let Some(stroke) = self.strokes.get(turn.stroke) else {
            return Ok(());
        };
        let points = turn.points(self.strokes);
        let heights = self.build.scene.heights;
        let courses = bend::courses(&points, -heights.press_mm);
        let (Some(first), Some(last)) = (points.first(), points.last()) else {
            return Ok(());
        };
        let length_mm = length(&points);
        self.go_above(item, stroke.pen, *first, length_mm)?;
        let what = |kind| What {
            kind,
            item: Some(item),
            pen: stroke.pen,
        };
        let (travelling, drawing) = (self.build.travelling(), self.build.drawing());
        let (lift, press) = (heights.lift_mm, -heights.press_mm);
        let lower = rise(*first, lift, press);
        self.build
            .follow(what(SpanKind::Lower), &[vec![lower]], travelling)?;
        let tilt_rad = self.build.follow(what(SpanKind::Draw), &courses, drawing)?;
        let raise = rise(*last, press, lift);
        self.build
            .follow(what(SpanKind::Lift), &[vec![raise]], travelling)?;
        self.build.stand = Stand::Sheet(*last);
        self.reports.push(StrokeReport {
            stroke: turn.stroke,
            source: stroke.source.clone(),
            pen: stroke.pen,
            reversed: turn.reversed,
            length_mm,
            tilt_max_deg: tilt_rad.to_degrees(),
            ..StrokeReport::default()
        });
        Ok(())
    }

    /// To above a stroke's beginning, by way of the ink where that is due.
    fn go_above(
        &mut self,
        item: usize,
        pen: usize,
        at_mm: [f64; 2],
        length_mm: f64,
    ) -> Result<(), Stuck> {
        let due = self.ink_due(pen, length_mm);
        let hover = Stand::Sheet(at_mm);
        let first = match &due {
            Some(ink) => Stand::Space(self.above(ink)),
            None => hover,
        };
        if self.build.pen == Some(pen) {
            let kind = SpanKind::Travel;
            let item = Some(item);
            self.build.travel_to(What { kind, item, pen }, first)?;
        } else {
            self.take(item, pen, first)?;
        }
        if let Some(ink) = due {
            self.dip(item, pen, &ink)?;
            let kind = SpanKind::Travel;
            let item = Some(item);
            self.build.travel_to(What { kind, item, pen }, hover)?;
        }
        if let Some(since) = self.since_dip_mm.get_mut(pen) {
            *since += length_mm;
        }
        Ok(())
    }

    fn ink_due(&self, pen: usize, length_mm: f64) -> Option<Ink> {
        let scene = self.build.scene;
        let ink = scene.inks.get(scene.pens.get(pen)?.ink?)?;
        let since = self.since_dip_mm.get(pen)?;
        (since + length_mm > ink.dip_every_mm && *since > 0.0).then(|| ink.clone())
    }

    fn above(&self, ink: &Ink) -> nalgebra::Point3<f64> {
        ink.rim_m + Vector3::z() * (self.build.scene.heights.lift_mm / 1e3)
    }

    /// Begins to use a pen: lifts what is low and swings the pen's tip to where it is needed.
    fn take(&mut self, item: usize, pen: usize, to: Stand) -> Result<(), Stuck> {
        let begun = self.build.hover_from.is_some();
        let kind = if begun {
            SpanKind::Travel
        } else {
            SpanKind::Approach
        };
        self.build.lift_if_low(kind)?;
        let hand = self.build.hand(pen).map_err(nowhere)?;
        let Some(place) = self.build.place_of(to) else {
            return Ok(());
        };
        let at_mm = match to {
            Stand::Sheet(at_mm) => Some(at_mm),
            _ => None,
        };
        let pose = self
            .best_way(&hand, pen, &place)
            .map_err(|cause| Stuck { at_mm, cause })?;
        let item = begun.then_some(item);
        self.build
            .swing_to(What { kind, item, pen }, &pose)
            .map_err(|cause| Stuck { at_mm, cause })?;
        self.build.pen = Some(pen);
        self.build.stand = to;
        if !begun {
            self.build.hover_from = Some(self.build.mark_samples());
        }
        Ok(())
    }

    /// The way of holding the pen that serves the whole of its drawing best.
    fn best_way(&self, hand: &Hand<'_>, pen: usize, place: &Place) -> Result<Joints, Cause> {
        let scene = self.build.scene;
        let ways = hand.ways(place, &[scene.ready_rad])?;
        let corners = self.corners(pen);
        let mut best: Option<(f64, Joints)> = None;
        for way in ways.iter().take(WAYS_MAX) {
            let cost = self.cost(hand, way, &corners);
            if best.as_ref().is_none_or(|(least, _)| cost < *least) {
                best = Some((cost, way.q_rad));
            }
        }
        best.map(|(_, q)| q)
            .ok_or(Cause::OutOfReach { by_mm: f64::NAN })
    }

    /// Smaller is better: places missed, then lean, then margin, then nearness to the ready pose.
    fn cost(&self, hand: &Hand<'_>, way: &Solution, corners: &[Place]) -> f64 {
        let mut cost = way.q_rad.distance_max(&self.build.scene.ready_rad) * 0.1;
        let mut margin = hand.margin_rad(&way.q_rad);
        let mut lean: f64 = 0.0;
        for corner in corners {
            match hand.reach(corner, &way.q_rad) {
                Ok(found) => {
                    lean = lean.max(found.off_rad);
                    margin = margin.min(hand.margin_rad(&found.q_rad));
                }
                Err(_) => cost += 1000.0,
            }
        }
        cost += lean * 10.0;
        cost - margin.min(0.5) * 2.0
    }

    /// The corners and the middle of all that a pen draws, at the depth of drawing.
    fn corners(&self, pen: usize) -> Vec<Place> {
        let (mut low, mut high) = ([f64::INFINITY; 2], [f64::NEG_INFINITY; 2]);
        let of_pen = self.strokes.iter().filter(|stroke| stroke.pen == pen);
        for [x, y] in of_pen.flat_map(|stroke| &stroke.points_mm) {
            low = [low[0].min(*x), low[1].min(*y)];
            high = [high[0].max(*x), high[1].max(*y)];
        }
        let scene = self.build.scene;
        let middle = [(low[0] + high[0]) / 2.0, (low[1] + high[1]) / 2.0];
        [low, [high[0], low[1]], high, [low[0], high[1]], middle]
            .map(|at_mm| Place::over(&scene.surface, at_mm, -scene.heights.press_mm))
            .to_vec()
    }

    /// Down to a third of the cap's depth, wait, up.
    fn dip(&mut self, item: usize, pen: usize, ink: &Ink) -> Result<(), Stuck> {
        let what = What {
            kind: SpanKind::Dip,
            item: Some(item),
            pen,
        };
        let above = Place::above(self.above(ink));
        let below = Place::above(ink.rim_m - Vector3::z() * (ink.depth_m / 3.0));
        let asked = self.build.travelling();
        let leg = |from, to| vec![Piece::Across { from, to }];
        self.build.follow(what, &[leg(above, below)], asked)?;
        self.build.wait(what, ink.wait_s).map_err(nowhere)?;
        self.build.follow(what, &[leg(below, above)], asked)?;
        self.dips += 1;
        if let Some(since) = self.since_dip_mm.get_mut(pen) {
            *since = 0.0;
        }
        Ok(())
    }
}

fn rise(at_mm: [f64; 2], from_mm: f64, to_mm: f64) -> Piece {
    Piece::Rise {
        at_mm,
        from_mm,
        to_mm,
    }
}

pub(super) fn length(points_mm: &[[f64; 2]]) -> f64 {
    points_mm
        .iter()
        .zip(points_mm.iter().skip(1))
        .map(|(a, b)| distance(*a, *b))
        .sum()
}
