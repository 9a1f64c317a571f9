//! Drawings whose pens a person changes.

use proptest::prelude::*;
use proptest::test_runner::RngSeed;

use super::*;
use crate::tool_ik::ToolIk;
use crate::{SpanKind, attempt, attended_parts, part_trajectories};
use scene::{DrawingPause, PenHolder};

fn by_hand(mounted: Option<usize>) -> Scene {
    let mut scene = so101();
    let pen = scene.pens[0].clone();
    scene.pens = (0..3)
        .map(|index| ScenePen {
            tip_m: pen.tip_m * (1.0 + 0.05 * f64::from(index)),
            ..pen.clone()
        })
        .collect();
    scene.holder = PenHolder::ByHand {
        mounted,
        change_rad: scene.rest_rad,
        measures: false,
    };
    scene
}

fn line(pen: usize, y: f64) -> SheetStroke {
    SheetStroke {
        points_mm: vec![[20.0, y], [60.0, y]],
        pen,
        source: format!("line at {y}"),
        pause: None,
    }
}

proptest! {
    #![proptest_config(ProptestConfig { rng_seed: RngSeed::Fixed(0x9e45), ..ProptestConfig::default() })]
    /// Parts come in the order of the pens, and the strokes of a pen as given; none is lost or
    /// doubled.
    #[test]
    fn parts_are_all_strokes_pen_by_pen(pens in prop::collection::vec(0_usize..4, 0..40)) {
        let strokes: Vec<SheetStroke> = pens
            .iter()
            .enumerate()
            .map(|(index, pen)| line(*pen, index as f64))
            .collect();
        let parts = attended_parts(&by_hand(None).holder, &strokes);
        prop_assert!(parts.windows(2).all(|pair| pair[0].pen < pair[1].pen));
        let mut sorted = strokes;
        sorted.sort_by_key(|stroke| stroke.pen);
        let joined: Vec<SheetStroke> = parts.into_iter().flat_map(|part| part.strokes).collect();
        prop_assert_eq!(joined, sorted);
    }

    /// No stroke after a pause is drawn before it, whichever pens draw, and each pause happens
    /// once.
    #[test]
    fn nothing_is_drawn_before_its_pause(
        marks in prop::collection::vec((0_usize..3, any::<bool>()), 0..40),
        is_by_hand in any::<bool>(),
    ) {
        let holder = if is_by_hand { by_hand(None).holder } else { PenHolder::AllMounted };
        let mut turn = 0;
        let strokes: Vec<SheetStroke> = marks
            .iter()
            .enumerate()
            .map(|(index, (pen, pauses))| {
                turn += usize::from(*pauses);
                after_pause(turn, line(*pen, index as f64))
            })
            .collect();
        let parts = attended_parts(&holder, &strokes);
        let pauses: Vec<usize> = parts.iter().filter_map(|part| part.pause_before()).map(|pause| pause.turn).collect();
        prop_assert_eq!(pauses, (1..=turn).collect::<Vec<_>>());
        let mut sorted = strokes;
        let turn_of = |stroke: &SheetStroke| stroke.pause.as_ref().map_or(0, |pause| pause.turn);
        sorted.sort_by_key(|stroke| (turn_of(stroke), if is_by_hand { stroke.pen } else { 0 }));
        let joined: Vec<SheetStroke> = parts.into_iter().flat_map(|part| part.strokes).collect();
        prop_assert_eq!(joined, sorted);
    }
}

fn after_pause(turn: usize, stroke: SheetStroke) -> SheetStroke {
    let pause = (turn > 0).then(|| {
        Arc::new(DrawingPause {
            turn,
            asked_by: format!("layer `!{turn}`"),
        })
    });
    SheetStroke { pause, ..stroke }
}

/// The strokes on both sides of a pause touch and overlap: they stay separate, and the arm moves
/// away between them.
#[test]
fn at_a_pause_a_hand_can_reach_the_pen_and_no_line_joins_over_it() {
    let mut scene = so101();
    scene.strokes = vec![
        line(0, 30.0),
        after_pause(1, line(0, 30.0)),
        after_pause(1, line(0, 40.0)),
    ];
    let plan = attempt(&scene, &scene.rest_rad, &SilentObserver)
        .unwrap()
        .plan;
    assert_eq!(plan.strokes.len(), 3);
    let turns = plan.strokes.iter().map(|stroke| stroke.pause.is_some());
    assert_eq!(turns.collect::<Vec<_>>(), [false, true, true]);
    let draws: Vec<_> = plan
        .trajectory
        .spans
        .iter()
        .filter(|span| span.kind == SpanKind::Draw)
        .collect();
    let is_away = |from: usize, to: usize| {
        let samples = plan.trajectory.samples[from..to].iter();
        samples
            .map(|q| q.distance_max(&scene.rest_rad))
            .fold(f64::INFINITY, f64::min)
            < 1e-9
    };
    assert!(is_away(draws[0].end, draws[1].first));
    assert!(!is_away(draws[1].end, draws[2].first));
}

#[test]
fn each_part_begins_and_ends_where_the_pen_is_changed_and_has_one_pen() {
    let mut scene = by_hand(None);
    scene.strokes = vec![line(2, 50.0), line(0, 30.0), line(1, 40.0), line(0, 34.0)];
    let planned = attempt(&scene, &scene.rest_rad, &SilentObserver).unwrap();
    assert!(planned.refusals.is_empty(), "{:?}", planned.refusals);
    let plan = planned.plan;
    let pens: Vec<usize> = plan.strokes.iter().map(|stroke| stroke.pen).collect();
    assert_eq!(pens, [0, 0, 1, 2]);
    let given: Vec<usize> = plan.report.strokes.iter().map(|one| one.stroke).collect();
    assert!(
        given.starts_with(&[1]) || given.starts_with(&[3]),
        "{given:?}"
    );
    assert_eq!(given[2..], [2, 0]);
    let parts = part_trajectories(&plan);
    let firsts: Vec<_> = parts.iter().map(|(pen, _, first)| (*pen, *first)).collect();
    assert_eq!(firsts, [(0, 0), (1, 2), (2, 3)]);
    for (pen, trajectory, first) in parts {
        let ends = [trajectory.samples.first(), trajectory.samples.last()];
        for end in ends.into_iter().flatten() {
            assert!(end.distance_max(&scene.rest_rad) < 1e-9, "pen {pen}");
        }
        // The same as that part alone, with its pen in the holder.
        let of_pen: Vec<SheetStroke> = plan
            .strokes
            .iter()
            .filter(|stroke| stroke.pen == pen)
            .cloned()
            .collect();
        let alone = draw_strokes(
            &by_hand(Some(pen)),
            &scene.rest_rad,
            &of_pen,
            Order::AsDrawn,
            &SilentObserver,
        );
        assert_eq!(
            alone.unwrap().trajectory,
            trajectory,
            "pen {pen} from {first}"
        );
    }
}

#[test]
fn a_pen_draws_as_deep_and_as_fast_as_it_is_allowed() {
    let mut scene = by_hand(Some(0));
    scene.pens[0].press_mm = Some(0.4);
    scene.pens[0].draw_mm_s = Some(10.0);
    let strokes = [line(0, 30.0)];
    let rest = scene.rest_rad;
    let plan = draw_strokes(&scene, &rest, &strokes, Order::AsDrawn, &SilentObserver).unwrap();
    let ik = ToolIk::new(&scene, &scene.pens[0]);
    let draws = plan.trajectory.spans.iter();
    for span in draws.filter(|span| span.kind == SpanKind::Draw) {
        let samples = &plan.trajectory.samples[span.first..span.end];
        for pair in samples.windows(2) {
            let moved_mm = 1e3 * (ik.point(&pair[1]) - ik.point(&pair[0])).norm();
            assert!(moved_mm <= 10.0 * PERIOD_S * 1.01, "{moved_mm}");
            let projection = scene.surface.project(&ik.point(&pair[1]));
            assert!(
                (projection.height_mm + 0.4).abs() < 0.05,
                "{}",
                projection.height_mm
            );
        }
    }
}
