//! Compares placed designs with an independent affine map, and fits with refusals.

mod sizes;

use super::*;
use crate::{DesignReplacement, Scene, SceneError, SceneLibrary};
use proptest::prelude::*;
use proptest::test_runner::{Config, RngSeed};

/// The sheet of scene `default`.
const SHEET_MM: f64 = 100.0;

fn number(value: f64) -> Finite {
    Finite::new(value).unwrap()
}

fn page_json(page_mm: [f64; 2], lines: &[[[f64; 2]; 2]]) -> Vec<u8> {
    let [width, height] = page_mm;
    let strokes: Vec<String> = lines
        .iter()
        .map(|line| format!(r#"{{"points": {line:?}}}"#))
        .collect();
    format!(
        r#"{{"page_mm": [{width}, {height}], "strokes": [{}]}}"#,
        strokes.join(", ")
    )
    .into_bytes()
}

fn placed(bytes: &[u8], placement: DesignPlacement) -> Result<std::sync::Arc<Scene>, SceneError> {
    let design = DesignReplacement {
        placement,
        ..DesignReplacement::from_files(vec![("page.json".to_owned(), bytes.to_vec())])
    };
    SceneLibrary::new(None)
        .with_drawing(design)
        .scene("default", None)
}

/// Maps a point of the page onto a sheet whose middle is the origin: scaled and rotated about its centre.
fn rotated([x, y]: [f64; 2], [width, height]: [f64; 2], scale: f64, turn_deg: f64) -> [f64; 2] {
    let (dx, dy) = ((x - width / 2.0) * scale, (y - height / 2.0) * scale);
    let angle = turn_deg.to_radians() + dy.atan2(dx);
    let radius_mm = dx.hypot(dy);
    [radius_mm * angle.cos(), radius_mm * angle.sin()]
}

#[derive(Clone, Debug)]
struct Page {
    size_mm: [f64; 2],
    lines: Vec<[[f64; 2]; 2]>,
}

/// A page of any shape with a few lines anywhere on it.
fn pages() -> impl Strategy<Value = Page> {
    let side = || 20.0..300.0_f64;
    let line = [
        [0.05..0.45_f64, 0.0..1.0_f64],
        [0.55..1.0_f64, 0.0..1.0_f64],
    ];
    let lines = proptest::collection::vec(line, 1..5);
    ([side(), side()], lines).prop_map(|(size_mm, fractions)| Page {
        size_mm,
        lines: fractions
            .into_iter()
            .map(|line| line.map(|[x, y]| [x * size_mm[0], y * size_mm[1]]))
            .collect(),
    })
}

fn places() -> impl Strategy<Value = Option<[f64; 2]>> {
    proptest::option::of([0.0..60.0_f64, 0.0..60.0_f64])
}

fn turns() -> impl Strategy<Value = f64> {
    prop_oneof![
        Just(0.0),
        Just(90.0),
        Just(180.0),
        Just(-90.0),
        -200.0..200.0_f64
    ]
}

fn placement(at_mm: Option<[f64; 2]>, turn_deg: f64) -> DesignPlacement {
    DesignPlacement {
        at_mm: at_mm.map(|at| at.map(number)),
        rotate_deg: Some(number(turn_deg)),
        ..DesignPlacement::default()
    }
}

proptest! {
    #![proptest_config(Config { cases: 300, rng_seed: RngSeed::Fixed(21), ..Config::default() })]

    #[test]
    fn a_fitted_drawing_keeps_a_margin_and_a_refusal_names_its_size(
        page in pages(), at_mm in places(), turn_deg in turns(),
    ) {
        let bytes = page_json(page.size_mm, &page.lines);
        let fitted = placed(&bytes, DesignPlacement { fits: true, ..placement(at_mm, turn_deg) });
        let with_size = |size_mm: f64| {
            let size_mm = Some(number(size_mm));
            placed(&bytes, DesignPlacement { size_mm, ..placement(at_mm, turn_deg) })
        };
        match fitted {
            Ok(fitted) => {
                let fitted_mm = fitted.page.long_mm;
                prop_assert_eq!(fitted.page.from, crate::SizeSource::Fitted);
                prop_assert!(with_size(fitted_mm).is_ok());
                let margin_mm = TRACKING_MARGIN_MM + fitted.pens[0].width_mm / 2.0;
                let nearest_mm = fitted.strokes.iter().flat_map(|stroke| &stroke.points_mm).flatten()
                    .map(|at| at.min(SHEET_MM - at)).fold(f64::INFINITY, f64::min);
                let least_mm = at_mm.map_or(margin_mm, |[x, y]| margin_mm.min(x).min(y));
                prop_assert!(nearest_mm >= least_mm - 1e-6, "{nearest_mm} {least_mm}");
                prop_assert!(nearest_mm <= margin_mm + 1e-6, "{nearest_mm} {margin_mm}");
                let Err(SceneError::Outside { outside, .. }) = with_size(*PAGE_SIDE_MM.end()) else {
                    return Err(TestCaseError::reject("a page that fits at any size"));
                };
                let fits_mm = outside.fits_mm.unwrap();
                let is_named = (fits_mm - fitted_mm).abs() < 1e-6;
                prop_assert!(is_named != outside.fits_centred, "{fits_mm} {fitted_mm}");
                prop_assert!(is_named || fits_mm > fitted_mm, "{fits_mm} {fitted_mm}");
            }
            // No size keeps the margin there: neither do these.
            Err(SceneError::Outside { .. }) => for size_mm in [3.0, 10.0, 30.0, 90.0] {
                let Ok(scene) = with_size(size_mm) else { continue };
                let nearest_mm = scene.strokes.iter().flat_map(|stroke| &stroke.points_mm).flatten()
                    .map(|at| at.min(SHEET_MM - at)).fold(f64::INFINITY, f64::min);
                prop_assert!(nearest_mm < TRACKING_MARGIN_MM + scene.pens[0].width_mm / 2.0);
            },
            Err(other) => prop_assert!(false, "{other}"),
        }
    }

    #[test]
    fn every_stroke_lies_where_an_independent_affine_map_puts_it(
        page in pages(), at_mm in places(), turn_deg in turns(), fraction in 0.1..1.0_f64,
    ) {
        let bytes = page_json(page.size_mm, &page.lines);
        let fitted = placed(&bytes, DesignPlacement { fits: true, ..placement(at_mm, turn_deg) });
        prop_assume!(fitted.is_ok());
        let size_mm = fitted.unwrap().page.long_mm * fraction;
        let scene = placed(&bytes, DesignPlacement { size_mm: Some(number(size_mm)), ..placement(at_mm, turn_deg) });
        // Below its largest size it may leave the sheet again where its corner lies on an edge.
        prop_assume!(scene.is_ok());
        let scene = scene.unwrap();
        let (low, high) = base::plane::bounds(page.lines.iter().flatten()).unwrap();
        let box_mm = [high[0] - low[0], high[1] - low[1]].map(|side| side.max(0.1));
        let scale = size_mm / box_mm[0].max(box_mm[1]);
        let turned = |point: &[f64; 2]| {
            rotated([point[0] - low[0], point[1] - low[1]], box_mm, scale, turn_deg)
        };
        let all: Vec<[f64; 2]> = page.lines.iter().flatten().map(turned).collect();
        let corner = base::plane::bounds(&all).unwrap().0;
        // Its lines as they lie have their corner where they were put.
        let shift = at_mm.map_or([SHEET_MM / 2.0; 2], |at| [at[0] - corner[0], at[1] - corner[1]]);
        prop_assert_eq!(scene.strokes.len(), page.lines.len());
        for (stroke, line) in scene.strokes.iter().zip(&page.lines) {
            for (found, point) in stroke.points_mm.iter().zip(line) {
                let turned = turned(point);
                let expected = [turned[0] + shift[0], turned[1] + shift[1]];
                let error_mm = (found[0] - expected[0]).hypot(found[1] - expected[1]);
                prop_assert!(error_mm < 1e-5, "{found:?} {expected:?}");
            }
        }
    }
}

/// Returns the overflow of a placed drawing.
fn outside(bytes: &[u8], placement: DesignPlacement) -> crate::DesignOverflow {
    match placed(bytes, placement) {
        Err(SceneError::Outside { outside, .. }) => *outside,
        other => panic!("{other:?}"),
    }
}

#[test]
fn what_would_fit_elsewhere_is_moved_and_not_made_smaller() {
    let bytes = page_json([20.0, 10.0], &[[[0.0, 0.0], [20.0, 10.0]]]);
    for (size_mm, at_mm, turn_deg) in [
        (90.0, [70.0, 5.0], 90.0),
        (20.0, [120.0, 5.0], 0.0),
        (40.0, [-5.0, 99.0], 30.0),
        (98.0, [50.0, 50.0], 0.0),
        (100.0, [50.0, 50.0], 0.0),
    ] {
        let asked = DesignPlacement {
            size_mm: Some(number(size_mm)),
            ..placement(Some(at_mm), turn_deg)
        };
        let moves_to_mm = outside(&bytes, asked).moves_to_mm.unwrap();
        let moved = DesignPlacement {
            at_mm: Some(moves_to_mm.map(number)),
            ..asked
        };
        let scene = placed(&bytes, moved).unwrap();
        assert!((scene.page.long_mm - size_mm).abs() < 1e-9);
    }
}

#[test]
fn what_is_larger_than_the_sheet_names_both_and_the_size_of_a_fit() {
    let bytes = page_json([20.0, 10.0], &[[[0.0, 0.0], [20.0, 10.0]]]);
    for at_mm in [None, Some([0.0, 0.0])] {
        let asked = DesignPlacement {
            size_mm: Some(number(100.02)),
            ..placement(at_mm, 0.0)
        };
        let outside = outside(&bytes, asked);
        assert_eq!(outside.moves_to_mm, None);
        assert!(outside.why.contains("100.02 × 50.01 mm"), "{}", outside.why);
        let fitted = placed(
            &bytes,
            DesignPlacement {
                fits: true,
                ..placement(at_mm, 0.0)
            },
        );
        let fits_mm = outside.fits_mm.unwrap();
        assert!((fits_mm - fitted.unwrap().page.long_mm).abs() < 1e-6);
        assert!(!outside.fits_centred);
    }
}

#[test]
fn a_corner_beyond_the_sheet_is_given_up_for_the_middle() {
    let bytes = page_json([20.0, 10.0], &[[[0.0, 0.0], [20.0, 10.0]]]);
    let beyond = DesignPlacement {
        fits: true,
        ..placement(Some([120.0, 5.0]), 0.0)
    };
    let outside = outside(&bytes, beyond);
    assert!(outside.fits_centred && outside.fits_mm > Some(98.0));
}

#[test]
fn a_place_far_beyond_the_sheet_is_refused_in_few_digits() {
    let bytes = page_json([20.0, 10.0], &[[[0.0, 0.0], [20.0, 10.0]]]);
    for far in [1e308, -3e12] {
        let said = placed(&bytes, placement(Some([far, 0.0]), 1e300));
        let said = said.unwrap_err().to_string();
        let digits = said.split(|c: char| !c.is_ascii_digit());
        assert!(digits.map(str::len).all(|digits| digits < 16), "{said}");
    }
}

#[test]
fn revisions_differ_by_design_place_fill_and_pen() {
    let bytes = page_json([20.0, 10.0], &[[[0.0, 0.0], [20.0, 10.0]]]);
    let unmoved = DesignReplacement::from_files(vec![("page.json".to_owned(), bytes)]);
    let moved = DesignReplacement {
        placement: placement(Some([1.0, 2.0]), 0.0),
        ..unmoved.clone()
    };
    let one_pen = DesignReplacement {
        one_pen: true,
        ..unmoved.clone()
    };
    let mut all: Vec<String> = [unmoved.clone(), moved, one_pen]
        .into_iter()
        .map(|design| {
            let library = SceneLibrary::new(None).with_drawing(design);
            library.scene("two_pens", None).unwrap().revision.hex()
        })
        .collect();
    let again = SceneLibrary::new(None).with_drawing(unmoved);
    assert_eq!(
        all[0],
        again.scene("two_pens", None).unwrap().revision.hex()
    );
    all.sort();
    all.dedup();
    assert_eq!(all.len(), 3);
}

#[test]
fn a_design_survives_json_and_toml_to_the_byte() {
    let design = DesignReplacement {
        placement: placement(Some([1.5, 2.0]), 90.0),
        ..DesignReplacement::from_files(vec![("é \"x\".svg".to_owned(), "<svg>é\n\"</svg>".into())])
    };
    let json = serde_json::to_string(&design).unwrap();
    let read: DesignReplacement = serde_json::from_str(&json).unwrap();
    assert_eq!(read, design);
    let kept = design.to_toml().unwrap();
    let read = DesignReplacement::from_toml("design.toml", &kept).unwrap();
    assert_eq!(read, design);
}
