//! A caller looks at the sheet with a grid, adds to what is there, and looks again: a canvas keeps its ink until a person lays a
//! new sheet.
#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::cast_precision_loss,
    reason = "a failing test may panic"
)]

use crate::support;
use serde_json::{Value, json};
use support::{Bench, Caller, Served};
use tiny_skia::Pixmap;

const HEAD: &str =
    r#"<svg viewBox="0 0 20 20" fill="none" stroke="black"><circle cx="10" cy="10" r="9"/></svg>"#;
const EYES: &str = r#"<svg viewBox="0 0 20 6" fill="none" stroke="black"><circle cx="3" cy="3" r="2"/><circle cx="17" cy="3" r="2"/></svg>"#;
const MOUTH: &str =
    r#"<svg viewBox="0 0 20 6" fill="none" stroke="black"><path d="M1 1Q10 9 19 1"/></svg>"#;

/// A box on the sheet: x from and to, y from and to.
type Extent = [[f64; 2]; 2];

/// Looks at the sheet: the answer, and the box around the ink in its picture, measured by the picture alone.
fn look(served: &Served) -> (Value, Option<Extent>) {
    let (text, seen) = served.told("sense", &json!({"grid": true}));
    assert_eq!(seen["success"], true, "{text}");
    let files = seen["captured_files"].as_array().unwrap();
    assert_eq!(files.len(), 1, "{seen:#}");
    let picture = std::fs::read(files[0].as_str().unwrap()).unwrap();
    let [width_mm, _] = [0, 1].map(|axis| seen["sheet"]["size_mm"][axis].as_f64().unwrap());
    let inked = inked_box(&picture, width_mm);
    (seen, inked)
}

/// The box around the dark pixels of a picture whose sheet is the white thing on it.
fn inked_box(png: &[u8], width_mm: f64) -> Option<Extent> {
    let picture = Pixmap::decode_png(png).unwrap();
    let width = picture.width() as usize;
    let places = |holds: fn([u8; 3]) -> bool| {
        let pixels = picture.pixels().iter().enumerate();
        let found = pixels.filter(move |(_, one)| holds([one.red(), one.green(), one.blue()]));
        found.map(move |(at, _)| [(at % width) as f64, (at / width) as f64])
    };
    let [[left, right], [top, bottom]] = around(places(|rgb| rgb == [255; 3]))?;
    let mm = width_mm / (right - left);
    let is_on_sheet = |[x, y]: &[f64; 2]| {
        (left + 2.0..right - 2.0).contains(x) && (top + 2.0..bottom - 2.0).contains(y)
    };
    let dark = places(|rgb| rgb.iter().all(|part| *part < 100)).filter(is_on_sheet);
    let [[x0, x1], [y0, y1]] = around(dark)?;
    Some([
        [(x0 - left) * mm, (x1 - left) * mm],
        [(bottom - y1) * mm, (bottom - y0) * mm],
    ])
}

fn around(points: impl Iterator<Item = [f64; 2]>) -> Option<Extent> {
    points.fold(None, |found, [x, y]| {
        let [[left, right], [low, high]] = found.unwrap_or([[x, x], [y, y]]);
        Some([
            [f64::min(left, x), f64::max(right, x)],
            [f64::min(low, y), f64::max(high, y)],
        ])
    })
}

/// The call that draws a part as wide as this share of a box, with its lower left corner at these shares of it.
fn part_of(svg: &str, [[left, right], [low, high]]: Extent, [x, y, wide]: [f64; 3]) -> Value {
    let (width, height) = (right - left, high - low);
    let at = [left + x * width, low + y * height];
    json!({"svg": svg, "size_mm": wide * width, "at_mm": at})
}

fn draw(served: &Served, call: &Value) -> Value {
    let (text, drawn) = served.told("stroke", call);
    assert_eq!(drawn["success"], true, "{text}");
    drawn
}

#[test]
fn a_face_is_drawn_in_three_calls_each_placed_by_the_picture_before() {
    let bench = Bench::at_test_rate();
    let served = bench.serve(&[]);
    let (empty, nothing) = look(&served);
    assert_eq!(
        (&empty["sheet"]["scene"], nothing),
        (&json!("canvas"), None),
        "{empty:#}"
    );

    let head = draw(&served, &json!({"svg": HEAD, "size_mm": 50}));
    assert!(head["covers_mm"].is_null(), "{head:#}");
    let (_, face) = look(&served);
    let face = face.unwrap();
    let width = face[0][1] - face[0][0];
    assert!((49.0..52.0).contains(&width), "{face:?}");

    let eyes = draw(&served, &part_of(EYES, face, [0.25, 0.58, 0.5]));
    let (seen, both) = look(&served);
    assert_eq!(seen["sheet"]["drawings"], 2, "{seen:#}");
    let mouth = draw(&served, &part_of(MOUTH, both.unwrap(), [0.3, 0.22, 0.4]));
    for part in [&eyes, &mouth] {
        assert!(part["covers_mm"].is_null(), "{part:#}");
    }

    let (seen, whole) = look(&served);
    assert_eq!(seen["sheet"]["drawings"], 3, "{seen:#}");
    // The parts lie inside the head, and the picture and the words say the same.
    let shown = whole.unwrap().into_iter().flatten();
    let told = seen["sheet"]["ink_mm"].as_array().unwrap().iter();
    let told = told.flat_map(|range| range.as_array().unwrap());
    for ((now, before), told) in shown.zip(face.into_iter().flatten()).zip(told) {
        let told = told.as_f64().unwrap();
        assert!((now - before).abs() < 1.0, "{whole:?}, {face:?}");
        assert!((now - told).abs() < 1.0, "{whole:?}: {seen:#}");
    }
}

#[test]
fn a_drawing_over_ink_says_so_and_draws_until_a_person_lays_a_new_sheet() {
    let bench = Bench::at_test_rate();
    let served = bench.serve(&["--state", &bench.state()]);
    let call = |more: Value| {
        let mut call = json!({"svg": HEAD, "size_mm": 30, "at_mm": [20, 40]});
        let (call_fields, more) = (call.as_object_mut().unwrap(), more.as_object().unwrap());
        call_fields.extend(more.clone());
        call
    };
    draw(&served, &call(json!({})));
    let planned = draw(&served, &call(json!({"dry_run": true})));
    assert!(planned["covers_mm"].as_f64().unwrap() > 80.0, "{planned:#}");
    let again = draw(&served, &call(json!({"again": true})));
    assert!(again["covers_mm"].as_f64().unwrap() > 80.0, "{again:#}");
    let message = again["message"].as_str().unwrap();
    assert!(message.contains("steadyhand new-sheet"), "{message}");
    // Beside it is not over it.
    let beside = draw(&served, &call(json!({"at_mm": [60, 90]})));
    assert!(beside["covers_mm"].is_null(), "{beside:#}");
    let (seen, _) = look(&served);
    assert_eq!(seen["sheet"]["drawings"], 3, "{seen:#}");

    let (code, said) = bench.said(&["new-sheet", "--arm", "nobody"]);
    assert_eq!(code, 1, "{said}");
    let (code, said) = bench.said(&["new-sheet"]);
    assert_eq!(code, 0, "{said}");
    let (seen, ink) = look(&served);
    assert_eq!(
        (&seen["sheet"]["drawings"], ink),
        (&json!(0), None),
        "{seen:#}"
    );
    let clean = draw(&served, &call(json!({"again": true})));
    assert!(clean["covers_mm"].is_null(), "{clean:#}");
}

#[test]
fn a_new_sheet_waits_for_the_drawing_under_way() {
    let bench = Bench::new();
    let config = "answer_within_s = 1\n";
    std::fs::write(bench.path("node.toml"), config).unwrap();
    let config = bench.path("node.toml").display().to_string();
    let served = bench.serve(&["--config", &config, "--state", &bench.state()]);
    let (text, begun) = served.told("stroke", &json!({"svg": HEAD, "size_mm": 60}));
    let state = begun["job"]["state"].as_str().unwrap();
    assert!(["planning", "moving"].contains(&state), "{text}");
    let (code, said) = bench.said(&["new-sheet"]);
    assert_eq!(code, 1, "{said}");
    let job = begun["job"]["id"].as_str().unwrap();
    assert!(said.contains(job), "{said}");
    served.told("stop", &json!({}));
}

#[test]
fn a_grid_is_shown_of_the_scene_that_a_call_names() {
    let bench = Bench::at_test_rate();
    bench.scene("short", &support::scene("short", support::SHORT_LINES));
    let served = bench.serve(&[]);
    let (text, seen) = served.told("sense", &json!({"grid": true, "scene": "short"}));
    assert_eq!(seen["sheet"]["scene"], "short", "{text}");
    assert_eq!(seen["sheet"]["drawings"], 0, "{text}");
    let (text, plain) = served.told("sense", &json!({"grid": false}));
    assert!(plain["sheet"].is_null(), "{text}");
    let (text, refused) = served.told("sense", &json!({"grid": "diagonal"}));
    assert!(refused["sheet"].is_null(), "{text}");
}

#[test]
fn a_view_is_told_the_sheet_once_and_others_nothing_of_it() {
    let bench = Bench::at_test_rate();
    let served = bench.serve(&[]);
    let (_, plain) = served.told("sense", &json!({}));
    assert!(plain["view"].is_null(), "{plain:#}");
    draw(&served, &json!({"svg": HEAD, "size_mm": 30}));
    let view = |key: &Value| {
        let (text, seen) = served.told("sense", &json!({"sheet_key": key}));
        assert!(seen["captured_files"].is_null(), "{text}");
        seen["view"].clone()
    };
    let first = view(&json!("new"));
    let lines = first["sheet"]["plan"].as_array().unwrap();
    assert_eq!(lines.len(), 1, "{first:#}");
    let ink_mm = first["arm"]["ink_mm"].as_f64().unwrap();
    assert!((85.0..100.0).contains(&ink_mm), "{first:#}");
    assert!(
        first["arm"]["condition"]["sentence"].is_string(),
        "{first:#}"
    );
    assert!(
        first["arm"]["condition"]["next"]["action"].is_null(),
        "{first:#}"
    );
    let second = view(&first["sheet_key"]);
    assert_eq!(second["sheet_key"], first["sheet_key"]);
    assert!(second["sheet"].is_null(), "{second:#}");
    draw(
        &served,
        &json!({"svg": MOUTH, "size_mm": 10, "at_mm": [5, 5]}),
    );
    let third = view(&first["sheet_key"]);
    assert_eq!(third["sheet"]["earlier"].as_array().unwrap().len(), 1);
}
