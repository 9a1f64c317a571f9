//! Pictures made of pixels: from the command line and in a call on a canvas, in each style, and what is no picture.

#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "a failing test may panic"
)]

use crate::support;
use serde_json::{Value, json};
use support::{Bench, Caller, json_of, printed_by};

const PNG: &[u8] = include_bytes!("../pictures/shades.png");
const JPEG: &[u8] = include_bytes!("../pictures/shades.jpg");
const CMYK: &[u8] = include_bytes!("../pictures/shades_cmyk.jpg");
/// Pictures that say they have 20,000 by 20,000 pixels.
const VAST_PNG: &[u8] = include_bytes!("../pictures/vast.png");
const VAST_JPEG: &[u8] = include_bytes!("../pictures/vast.jpg");
const ONE_PIXEL: &[u8] = include_bytes!("../pictures/one.png");
const BLANK: &[u8] = include_bytes!("../pictures/blank.png");
const TRANSPARENT: &[u8] = include_bytes!("../pictures/clear.png");

const STYLES: [&str; 6] = [
    "hatch",
    "squiggle",
    "stipple",
    "spiral",
    "outline",
    "centreline",
];

fn drawn(bench: &Bench, bytes: &[u8], args: &[&str]) -> (Option<i32>, Value) {
    let path = bench.path("picture");
    std::fs::write(&path, bytes).unwrap();
    let path = path.display().to_string();
    let output = bench.run(&[&["draw", "--json", &path], args].concat());
    (output.status.code(), json_of(&output))
}

fn base64(bytes: &[u8]) -> String {
    const LETTERS: &[u8] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let of_three = |three: &[u8]| {
        let byte = |index: usize| u32::from(three.get(index).copied().unwrap_or(0));
        let all = byte(0) << 16 | byte(1) << 8 | byte(2);
        (0..4_usize)
            .map(|index| match index <= three.len() {
                true => char::from(LETTERS[(all >> (18 - 6 * index)) as usize & 63]),
                false => '=',
            })
            .collect::<String>()
    };
    bytes.chunks(3).map(of_three).collect()
}

#[test]
fn a_png_and_a_jpeg_become_lines_in_each_style_whatever_their_name() {
    let bench = Bench::at_test_rate();
    for (bytes, colours) in [(PNG, "RGB"), (JPEG, "RGB"), (CMYK, "CMYK")] {
        for style in STYLES {
            let place = ["--size", "40mm", "--style", style, "--dry-run"];
            let (code, shown) = drawn(&bench, bytes, &place);
            assert_eq!(code, Some(0), "{colours} {style}: {shown:#}");
            let drawing = &shown["drawing"];
            let [[left, _], [right, _]] =
                [0, 1].map(|at| [0, 1].map(|axis| drawing["box_mm"][at][axis].as_f64().unwrap()));
            assert!(
                (25.0..=40.5).contains(&(right - left)),
                "{style}: {drawing:#}"
            );
            assert!(drawing["duration_s"].as_f64().unwrap() > 1.0, "{style}");
        }
    }
}

#[test]
fn a_picture_is_drawn_and_its_tone_follows_the_ink() {
    let bench = Bench::at_test_rate();
    let place = ["--size", "15mm", "--style", "hatch"];
    let (code, all) = drawn(&bench, JPEG, &place);
    assert_eq!(code, Some(0), "{all:#}");
    let (_, half) = drawn(
        &bench,
        JPEG,
        &[&place[..], &["--ink", "50", "--dry-run"]].concat(),
    );
    let length_mm = |result: &Value| result["drawing"]["pen_down_mm"].as_f64().unwrap();
    let share = length_mm(&half) / length_mm(&all);
    assert!((0.35..0.65).contains(&share), "{share}");
}

#[test]
fn what_is_no_picture_is_one_refusal_before_it_takes_memory() {
    let bench = Bench::at_test_rate();
    for (bytes, words) in [
        (ONE_PIXEL, "1 by 1 pixels"),
        (VAST_PNG, "20000 by 20000 pixels"),
        (VAST_JPEG, "20000 by 20000 pixels"),
        (&JPEG[..700], "the JPEG is damaged"),
        (&PNG[..100], "the PNG is damaged"),
        (BLANK, "nothing to draw"),
        (TRANSPARENT, "nothing to draw"),
    ] {
        std::fs::write(bench.path("bad"), bytes).unwrap();
        let path = bench.path("bad").display().to_string();
        let refused = bench.run(&["draw", &path, "--dry-run"]);
        let printed = printed_by(&refused);
        assert_eq!(refused.status.code(), Some(1), "{printed}");
        assert!(
            printed.contains(words) && printed.contains("Next: "),
            "{printed}"
        );
    }
}

#[test]
fn a_picture_is_thinned_until_the_arm_needs_no_longer_than_asked() {
    let bench = Bench::at_test_rate();
    let place = ["--size", "40mm", "--dry-run"];
    for style in ["hatch", "squiggle", "stipple", "spiral"] {
        let place = [&place[..], &["--style", style]].concat();
        let (_, all) = drawn(&bench, PNG, &place);
        let seconds = |result: &Value| result["drawing"]["duration_s"].as_f64().unwrap();
        let minutes = format!("{:.2}", seconds(&all) / 60.0 / 2.0);
        let (code, thin) = drawn(
            &bench,
            PNG,
            &[&place[..], &["--minutes", &minutes]].concat(),
        );
        assert_eq!(code, Some(0), "{style}: {thin:#}");
        let share = seconds(&thin) / seconds(&all);
        assert!((0.3..=0.505).contains(&share), "{style}: {share}");
        let ink = thin["drawing"]["ink_percent"].as_f64().unwrap();
        assert!((5.0..100.0).contains(&ink), "{style}: {ink}");
    }
    let drawn_within = ["--size", "15mm", "--minutes", "0.5", "--yes"];
    let (code, result) = drawn(&bench, PNG, &drawn_within);
    assert_eq!(code, Some(0), "{result:#}");
    assert!(
        result["drawing"]["duration_s"].as_f64() <= Some(30.0),
        "{result:#}"
    );
    assert_eq!(result["success"], true, "{result:#}");
}

#[test]
fn what_cannot_be_thinned_to_a_time_says_so() {
    let bench = Bench::at_test_rate();
    std::fs::write(bench.path("shades.png"), PNG).unwrap();
    std::fs::write(bench.path("line.json"), "[[[0,0],[9,0]]]").unwrap();
    for (file, options, words) in [
        (
            "shades.png",
            &["--style", "outline"][..],
            "cannot be thinned",
        ),
        (
            "shades.png",
            &["--style", "centreline"],
            "cannot be thinned",
        ),
        ("line.json", &[], "only pictures"),
        ("shades.png", &["--style", "stipple"], "Next: `--minutes "),
    ] {
        let path = bench.path(file).display().to_string();
        let draw = ["draw", &path, "--dry-run", "--minutes", "0.5"];
        let refused = bench.run(&[&draw[..], options].concat());
        let printed = printed_by(&refused);
        assert_eq!(refused.status.code(), Some(1), "{printed}");
        assert!(printed.contains(words), "{printed}");
    }
}

#[test]
fn a_call_draws_a_picture_on_a_canvas_by_its_base64_or_data_url() {
    let bench = Bench::at_test_rate();
    let served = bench.serve(&["--state", &bench.state()]);
    let url = format!("data:image/jpeg;base64,{}", base64(JPEG));
    let wrapped = base64(PNG)
        .as_bytes()
        .chunks(76)
        .map(|line| String::from_utf8_lossy(line).into_owned())
        .collect::<Vec<_>>()
        .join("\n");
    for (image, style) in [
        (url, "squiggle"),
        (base64(PNG), "hatch"),
        (wrapped, "outline"),
    ] {
        let call = json!({"image": image, "image_style": style, "size_mm": 40, "dry_run": true});
        let (text, shown) = served.told("stroke", &call);
        assert_eq!(shown["success"], true, "{style}: {text}");
        assert_eq!(shown["understood"]["scene"], "canvas", "{text}");
        assert!(
            !format!("{text} {shown}").contains(&image[100..160]),
            "the picture is sent back"
        );
        // The plan alone draws what was shown.
        assert_eq!(
            shown["draw_call"]["arguments"],
            json!({"plan": shown["plan_hash"]})
        );
    }
    let small = json!({"image": base64(PNG), "size_mm": 12, "dry_run": true});
    let (_, shown) = served.told("stroke", &small);
    let (text, drawn) = served.told("stroke", &shown["draw_call"]["arguments"]);
    assert_eq!(drawn["success"], true, "{text}");
    assert_eq!(drawn["plan_hash"], shown["plan_hash"]);
    let (text, again) = served.told(
        "stroke",
        &json!({"plan": shown["plan_hash"], "again": true}),
    );
    assert_eq!(again["success"], true, "{text}");
}

/// A whole sheet of hatching is far beyond a canvas's 500 strokes, and a whole squiggle is within them.
#[test]
fn a_picture_is_thinned_to_the_bounds_of_its_canvas() {
    let bench = Bench::at_test_rate();
    let served = bench.serve(&[]);
    for style in ["hatch", "squiggle", "stipple", "spiral"] {
        let call = json!({"image": base64(JPEG), "image_style": style, "dry_run": true});
        let (text, shown) = served.told("stroke", &call);
        let notes = shown["design_notes"].to_string();
        let is_thinned = notes.contains("% of the ink");
        assert!(
            is_thinned == ["hatch", "stipple"].contains(&style),
            "{style}: {text}"
        );
        assert!(
            shown["pen_down_mm"].as_f64() <= Some(5_000.0),
            "{style}: {text}"
        );
        assert!(
            shown["stroke_count"].as_u64() <= Some(500),
            "{style}: {text}"
        );
    }
}

#[test]
fn a_call_with_no_picture_draws_nothing_and_does_not_decode_it() {
    let bench = Bench::at_test_rate();
    let served = bench.serve(&[]);
    let long = "A".repeat((2 << 20) + 1);
    for call in [
        json!({"image": long}),
        json!({"image": "not base64!"}),
        json!({"image": base64(b"GIF89a")}),
        json!({"image": base64(ONE_PIXEL)}),
        json!({"image": base64(VAST_PNG)}),
        json!({"image": base64(VAST_JPEG)}),
        json!({"image": base64(&JPEG[..700])}),
        json!({"image": base64(BLANK)}),
        json!({"image": base64(PNG), "image_style": "oil"}),
        json!({"image": base64(PNG), "text": "hi"}),
        json!({"image": "https://example.org/cat.png"}),
        json!({"text": "hi", "image_style": "hatch"}),
        json!({"image": ""}),
        json!({"scene": "short", "image": base64(PNG)}),
        json!({"resume": true, "image": base64(PNG)}),
    ] {
        let (text, refused) = served.told("stroke", &call);
        assert_eq!(refused["success"], false, "{text}");
        assert!(
            text.contains("nothing moved") && text.len() < 2_000,
            "{text}"
        );
        assert!(refused.to_string().len() < 5_000, "{text}");
    }
}
