//! The rule of sizes over formats, units, sizes and scenes: a file's lengths are kept, or it is offered
//! to fit; a file without lengths fits.

use super::*;

/// Scenes of one arm and others, of sheets of several sizes and with designs in several sizes.
const SCENES: [&str; 7] = [
    "default", "canvas", "a5_sheet", "two_pens", "letters", "koch", "vx300",
];

/// Units of files: the format, how the unit is written there, and its millimetres.
const UNITS: [(&str, &str, f64); 16] = [
    ("svg", "mm", 1.0),
    ("svg", "cm", 10.0),
    ("svg", "in", 25.4),
    ("svg", "pt", 25.4 / 72.0),
    ("svg", "pc", 25.4 / 6.0),
    ("svg", "Q", 0.25),
    ("gcode", "G21", 1.0),
    ("gcode", "G20", 25.4),
    ("dxf", "1", 25.4),
    ("dxf", "2", 304.8),
    ("dxf", "4", 1.0),
    ("dxf", "5", 10.0),
    ("dxf", "6", 1000.0),
    ("dxf", "13", 0.001),
    ("plt", "", 1.0 / 40.0),
    ("json", "cm", 10.0),
];

/// The same of files without lengths.
const UNITLESS: [(&str, &str); 7] = [
    ("svg", ""),
    ("svg", "px"),
    ("svg", "%"),
    ("gcode", ""),
    ("dxf", "0"),
    ("dxf", "none"),
    ("json", "px"),
];

/// Returns a file with a rectangle of these sides, in its unit, in the middle of a page 1.5 times as
/// wide and 3 times as high.
fn file(format: &str, unit: &str, [w, h]: [f64; 2]) -> (String, Vec<u8>) {
    let (x, y) = (w / 4.0, h);
    let corners = [[x, y], [x + w, y], [x + w, y + h], [x, y + h], [x, y]];
    let each = |write: &dyn Fn(f64, f64) -> String| -> String {
        corners.iter().map(|[x, y]| write(*x, *y)).collect()
    };
    let text = match format {
        "svg" => {
            let (page_w, page_h) = (w * 1.5, h * 3.0);
            let size = match unit {
                "" => String::new(),
                "%" => r#"width="100%" height="100%""#.to_owned(),
                unit => format!(r#"width="{page_w}{unit}" height="{page_h}{unit}""#),
            };
            format!(
                r#"<svg xmlns="http://www.w3.org/2000/svg" {size} viewBox="0 0 {page_w} {page_h}"><path fill="none" stroke="black" d="M{}"/></svg>"#,
                each(&|x, y| format!("{x} {y} "))
            )
        }
        "gcode" => format!(
            "{unit}\nG0 X{x} Y{y}\n{}",
            each(&|x, y| format!("G1 X{x} Y{y}\n"))
        ),
        "dxf" => {
            let units = match unit {
                "none" => String::new(),
                unit => format!("9\n$INSUNITS\n70\n{unit}\n"),
            };
            format!(
                "0\nSECTION\n2\nHEADER\n{units}0\nENDSEC\n0\nSECTION\n2\nENTITIES\n0\nLWPOLYLINE\n8\n0\n{}0\nENDSEC\n0\nEOF\n",
                each(&|x, y| format!("10\n{x}\n20\n{y}\n"))
            )
        }
        "plt" => format!(
            "IN;SP1;PU{x},{y};{}PU;",
            each(&|x, y| format!("PD{x},{y};"))
        ),
        _ => format!(r#"{{"units": "{unit}", "strokes": [{{"points": {corners:?}}}]}}"#),
    };
    (format!("box.{format}"), text.into_bytes())
}

/// Draws a file in a scene at a place.
fn drawn_in(
    scene: &str,
    file: (String, Vec<u8>),
    placement: DesignPlacement,
) -> Result<std::sync::Arc<Scene>, SceneError> {
    let design = DesignReplacement {
        placement,
        one_pen: true,
        ..DesignReplacement::from_files(vec![file])
    };
    let library = SceneLibrary::new(None);
    library.with_drawing(design).scene(scene, None)
}

/// Returns the lowest and the highest point of all that is drawn.
fn bounds(scene: &Scene) -> [[f64; 2]; 2] {
    let points = scene.strokes.iter().flat_map(|stroke| &stroke.points_mm);
    base::plane::bounds(points)
        .map(|(low, high)| [low, high])
        .unwrap()
}

proptest! {
    #![proptest_config(Config { cases: 250, rng_seed: RngSeed::Fixed(4), ..Config::default() })]

    #[test]
    fn lengths_of_a_file_are_drawn_or_offered_to_fit(
        unit in 0..UNITS.len(), scene in 0..SCENES.len(),
        sides_mm in [2.0..240.0_f64, 2.0..240.0_f64],
    ) {
        let (format, unit, unit_mm) = UNITS[unit];
        let bytes = file(format, unit, sides_mm.map(|side| side / unit_mm));
        match drawn_in(SCENES[scene], bytes.clone(), DesignPlacement::default()) {
            Ok(scene) => {
                let [low, high] = bounds(&scene);
                for (axis, side_mm) in sides_mm.into_iter().enumerate() {
                    let drawn_mm = high[axis] - low[axis];
                    prop_assert!((drawn_mm - side_mm).abs() < 0.1, "{format} {unit}: {drawn_mm} {side_mm}");
                    let middle = scene.surface.size_mm()[axis] / 2.0;
                    prop_assert!((f64::midpoint(low[axis], high[axis]) - middle).abs() < 0.1);
                }
            }
            Err(SceneError::Outside { outside, .. }) => {
                let is_larger = sides_mm.iter().zip(outside.sheet_mm).any(|(side, sheet)| *side > sheet);
                prop_assert!(is_larger, "{outside:?}");
                let fits = DesignPlacement { fits: true, ..DesignPlacement::default() };
                let fitted = drawn_in(SCENES[scene], bytes, fits).unwrap();
                prop_assert!((fitted.page.long_mm - outside.fits_mm.unwrap()).abs() < 1e-6);
            }
            Err(other) => prop_assert!(false, "{format} {unit}: {other}"),
        }
    }

    #[test]
    fn a_file_without_lengths_fits_the_sheet_whatever_its_numbers(
        unit in 0..UNITLESS.len(), scene in 0..SCENES.len(),
        sides in [0.5..2.0_f64, 0.5..2.0_f64], magnitude in -1..6_i32,
    ) {
        let (format, unit) = UNITLESS[unit];
        let bytes = file(format, unit, sides.map(|side| side * 10_f64.powi(magnitude)));
        let scene = drawn_in(SCENES[scene], bytes, DesignPlacement::default());
        let scene = scene.unwrap_or_else(|error| panic!("{format} {unit} {sides:?} {magnitude}: {error}"));
        prop_assert_eq!(scene.page.from, crate::SizeSource::Fitted);
        let ([low, high], sheet_mm) = (bounds(&scene), scene.surface.size_mm());
        let margins = [low[0], low[1], sheet_mm[0] - high[0], sheet_mm[1] - high[1]];
        let least_mm = margins.into_iter().fold(f64::INFINITY, f64::min);
        let margin_mm = TRACKING_MARGIN_MM + scene.pens.iter().map(|pen| pen.width_mm).fold(0.0, f64::max) / 2.0;
        prop_assert!((least_mm - margin_mm).abs() < 0.01, "{format} {unit}: {margins:?}");
        let ratio = (high[0] - low[0]) / (high[1] - low[1]);
        prop_assert!((ratio / (sides[0] / sides[1]) - 1.0).abs() < 0.01, "{ratio}");
        prop_assert!(scene.notes.iter().any(|note| note.contains("pixels")));
    }
}

proptest! {
    #![proptest_config(Config { cases: 250, rng_seed: RngSeed::Fixed(5), ..Config::default() })]

    #[test]
    fn a_place_off_the_sheet_is_moved_or_else_given_up(
        sides_mm in [2.0..240.0_f64, 2.0..240.0_f64], at_mm in [-50.0..150.0_f64, -50.0..150.0_f64],
        has_lengths in proptest::bool::ANY,
    ) {
        let unit = if has_lengths { "mm" } else { "px" };
        let bytes = file("svg", unit, sides_mm);
        let drawn = |placement| drawn_in("default", bytes.clone(), placement);
        let asked = DesignPlacement { at_mm: Some(at_mm.map(number)), ..DesignPlacement::default() };
        let Err(SceneError::Outside { outside, .. }) = drawn(asked) else { return Ok(()) };
        let offered = match (outside.moves_to_mm, outside.fits_mm) {
            (Some(at_mm), _) => DesignPlacement { at_mm: Some(at_mm.map(number)), ..asked },
            (None, fits_mm) => {
                prop_assert!(outside.fits_centred && fits_mm.unwrap() > 98.0, "{fits_mm:?}");
                DesignPlacement { at_mm: None, fits: true, ..asked }
            }
        };
        let scene = drawn(offered).unwrap();
        if outside.moves_to_mm.is_some() {
            let [low, high] = bounds(&scene);
            prop_assert!((high[0] - low[0] - sides_mm[0]).abs() < 0.1);
        }
    }
}

#[test]
fn a_fit_is_of_the_drawing_and_a_page_fits_where_it_is_asked_for() {
    let a4 = r#"<svg xmlns="http://www.w3.org/2000/svg" width="210mm" height="297mm" viewBox="0 0 210 297"><rect x="20" y="20" width="50" height="30" fill="none" stroke="black"/></svg>"#;
    let drawn = |placement| {
        let file = ("a4.svg".to_owned(), a4.as_bytes().to_vec());
        let scene = drawn_in("default", file, placement).unwrap();
        let [low, high] = bounds(&scene);
        (low, [high[0] - low[0], high[1] - low[1]])
    };
    let ([x, y], sides) = drawn(DesignPlacement::default());
    assert!(
        (sides[0] - 50.0).abs() < 0.1 && (sides[1] - 30.0).abs() < 0.1,
        "{sides:?}"
    );
    assert!((x - 25.0).abs() < 0.1 && (y - 35.0).abs() < 0.1);
    let (_, sides) = drawn(DesignPlacement {
        fits: true,
        ..DesignPlacement::default()
    });
    assert!(sides[0] > 98.0, "{sides:?}");
    // The page is 100 mm high, and centred.
    let ([x, _], sides) = drawn(DesignPlacement {
        fits_page: true,
        ..DesignPlacement::default()
    });
    let scale = 100.0 / 297.0;
    assert!((sides[0] - 50.0 * scale).abs() < 0.1, "{sides:?}");
    assert!((x - (50.0 - (105.0 - 20.0) * scale)).abs() < 0.1, "{x}");
}

#[test]
fn a_text_is_broken_at_its_sheets_width_and_small_letters_noted() {
    let text = "All this text is much longer than one line of the sheet";
    let drawn = |placement| {
        let design = DesignReplacement {
            placement,
            ..DesignReplacement::from_text(text)
        };
        let library = SceneLibrary::new(None);
        library.with_drawing(design).scene("default", None)
    };
    let scene = drawn(DesignPlacement::default()).unwrap();
    assert_eq!(scene.page.from, crate::SizeSource::File);
    let [low, high] = bounds(&scene);
    assert!(high[0] - low[0] <= 100.0 && high[1] - low[1] > 60.0);
    assert!(
        !scene
            .notes
            .iter()
            .any(|note| note.contains("capital letters"))
    );
    let fitted = drawn(DesignPlacement {
        fits: true,
        ..DesignPlacement::default()
    });
    let [low, high] = bounds(&fitted.unwrap());
    assert!(high[1] - low[1] > 60.0, "{low:?} {high:?}");
    let small = drawn(DesignPlacement {
        size_mm: Some(number(40.0)),
        ..DesignPlacement::default()
    });
    let notes = small.unwrap().notes.clone();
    assert!(
        notes.iter().any(|note| note.contains("capital letters")),
        "{notes:?}"
    );
}

#[test]
fn colours_that_no_pen_has_are_noted_once() {
    let svg = r#"<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 20 10" fill="none"><path stroke="red" d="M0 0h9"/><path stroke="red" d="M0 1h9"/><path stroke="black" d="M0 2h9"/></svg>"#;
    let notes = |one_pen| {
        let design = DesignReplacement {
            one_pen,
            ..DesignReplacement::from_files(vec![("a.svg".to_owned(), svg.into())])
        };
        let library = SceneLibrary::new(None).with_drawing(design);
        let notes = library.scene("default", None).unwrap().notes.clone();
        let of_colours = notes.into_iter().filter(|note| note.contains("#ff0000"));
        of_colours.collect::<Vec<_>>()
    };
    assert_eq!(notes(false).len(), 1);
    assert!(notes(false)[0].contains("2 strokes"));
    assert!(notes(true).is_empty());
}
