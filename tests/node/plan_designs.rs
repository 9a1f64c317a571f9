//! Designs as people have them, given to `plan` and to scenes: sizes, sets of files, fills, words,
//! arcs, rolled sheets, and what is said of them.
#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::disallowed_methods,
    reason = "a failing test may panic"
)]

use crate::support;

use serde_json::Value;
use support::{Bench, json_of, printed_by};

/// Writes a design and plans it: the exit code and the result.
fn planned(bench: &Bench, name: &str, design: &str, more: &[&str]) -> (Option<i32>, Value) {
    let file = bench.path(name);
    std::fs::write(&file, design).unwrap();
    let mut args = vec!["plan", "--design", file.to_str().unwrap(), "--json"];
    args.extend(more);
    let output = bench.run(&args);
    (output.status.code(), json_of(&output))
}

fn figure(plan: &Value, name: &str) -> f64 {
    let figure = plan[name].as_f64();
    figure.unwrap_or_else(|| panic!("no {name} in {plan:#}"))
}

fn near(plan: &Value, name: &str, expected: f64, by: f64) {
    let found = figure(plan, name);
    assert!(
        (found - expected).abs() <= by,
        "{name} is {found}, not {expected}: {plan:#}"
    );
}

/// A line as long as its page of 20 by 10 units is wide.
fn svg(size: &str) -> String {
    format!(
        r#"<svg xmlns="http://www.w3.org/2000/svg" {size} viewBox="0 0 20 10"><path stroke="black" d="M0 5h20"/></svg>"#
    )
}

#[test]
fn a_size_on_paper_is_drawn_as_it_is_and_others_fit_the_sheet() {
    let bench = Bench::new();
    for (size, mm, from) in [
        (r#"width="50mm" height="25mm""#, 50.0, "file"),
        (r#"width="5cm" height="2.5cm""#, 50.0, "file"),
        (r#"width="2in" height="1in""#, 50.8, "file"),
        (r#"width="144pt" height="72pt""#, 50.8, "file"),
        (r#"width="200Q" height="100Q""#, 50.0, "file"),
        (r#"width="192px" height="96px""#, 98.1, "fitted"),
        ("", 98.1, "fitted"),
    ] {
        let (code, plan) = planned(&bench, "line.svg", &svg(size), &[]);
        assert_eq!(code, Some(0), "{size}: {plan:#}");
        near(&plan, "size_mm", mm, 0.01);
        near(&plan, "pen_down_mm", mm, 0.05);
        assert_eq!(plan["size_from"], from, "{size}");
    }
    let (_, plan) = planned(
        &bench,
        "line.svg",
        &svg(r#"width="50mm""#),
        &["--size", "40"],
    );
    near(&plan, "size_mm", 40.0, 0.01);
    assert_eq!(plan["size_from"], "asked");
    let file = bench.path("line.svg");
    let output = printed_by(&bench.run(&["plan", "--design", file.to_str().unwrap()]));
    assert!(output.contains("50.0 mm"), "{output}");
}

#[test]
fn a_design_larger_than_its_sheet_is_one_refusal_and_a_picture() {
    let bench = Bench::new();
    let out = bench.path("pictures");
    let many = "<path stroke='black' d='M1 1h18'/>".repeat(30);
    let design = format!(
        r#"<svg xmlns="http://www.w3.org/2000/svg" width="200mm" height="100mm" viewBox="0 0 20 10">{many}<path stroke="black" d="M8 5h2"/></svg>"#
    );
    let out_args = ["--out", out.to_str().unwrap()];
    for more in [
        &out_args[..],
        &["--size", "200mm", "--out", out.to_str().unwrap()],
    ] {
        let _ = std::fs::remove_file(out.join("plan.png"));
        let (code, plan) = planned(&bench, "large.svg", &design, more);
        assert_eq!(code, Some(1), "{plan:#}");
        let refusals = plan["refusals"].as_array().unwrap();
        assert_eq!(refusals.len(), 1, "{plan:#}");
        assert_eq!(refusals[0]["rule"], "outside");
        assert_eq!(refusals[0]["strokes"], 30);
        let reason = refusals[0]["why"].as_str().unwrap();
        assert!(reason.contains("100 × 100 mm"), "{reason}");
        let message = plan["message"].as_str().unwrap();
        assert_eq!(message.matches("100 × 100 mm").count(), 1, "{message}");
        let picture = std::fs::read(out.join("plan.png")).unwrap();
        assert!(picture.starts_with(b"\x89PNG") && picture.len() < 150_000);
    }
}

#[test]
fn a_picture_that_cannot_be_written_is_an_error() {
    let bench = Bench::new();
    let out = bench.path("pictures");
    std::fs::create_dir_all(out.join("plan.png")).unwrap();
    let (code, plan) = planned(
        &bench,
        "line.svg",
        &svg(""),
        &["--out", out.to_str().unwrap()],
    );
    assert_eq!((code, &plan["success"]), (Some(1), &Value::Bool(false)));
    let reason = plan["refusals"][0]["why"].as_str().unwrap();
    assert!(
        reason.starts_with("cannot write ") && reason.contains("plan.png"),
        "{reason}"
    );
    assert!(
        plan["plan_hash"].is_string(),
        "the drawing itself is planned"
    );
}

#[test]
fn files_for_several_pens_are_one_drawing() {
    let bench = Bench::new();
    let folder = bench.path("flower");
    std::fs::create_dir_all(&folder).unwrap();
    let write = |name: &str, text: &str| std::fs::write(folder.join(name), text).unwrap();
    // A frame of 100 mm, of which one pen draws the corners' marks, and a square in its middle.
    write(
        "X_pen0_black.gcode",
        "G21 G90\nG0 X0 Y0\nG1 X10 Y0\nG0 X100 Y100\nG1 X90 Y100",
    );
    write(
        "X_pen1_red.gcode",
        "G21 G90\nG0 X45 Y45\nG1 X55 Y45\nG1 X55 Y55\nG1 X45 Y55\nG1 X45 Y45",
    );
    for named in [folder.clone(), folder.join("X_pen1_red.gcode")] {
        let output = bench.run(&[
            "plan",
            "two_pens",
            "--design",
            named.to_str().unwrap(),
            "--size",
            "60mm",
            "--json",
        ]);
        assert_eq!(output.status.code(), Some(0), "{}", printed_by(&output));
        let plan = json_of(&output);
        near(&plan, "size_mm", 60.0, 0.01);
        // 20 mm of marks and 40 mm of square, at six tenths.
        near(&plan, "pen_down_mm", 36.0, 0.1);
        let note = plan["notes"][0].as_str().unwrap();
        assert!(note.contains("(`_pen0_`)"), "{note}");
        assert_eq!(
            plan["notes"][1],
            "2 files are one drawing: X_pen0_black.gcode, X_pen1_red.gcode"
        );
    }
    write("single.gcode", "G0 X0 Y0\nG1 X10 Y0");
    let output = bench.run(&[
        "plan",
        "two_pens",
        "--design",
        folder.to_str().unwrap(),
        "--json",
    ]);
    assert_eq!(
        printed_by(&output).lines().count(),
        2,
        "{}",
        printed_by(&output)
    );
    in_a_scene(&bench, &folder);
}

/// A scene that names one file of a set draws all of it.
fn in_a_scene(bench: &Bench, folder: &std::path::Path) {
    for name in ["X_pen0_black.gcode", "X_pen1_red.gcode"] {
        std::fs::copy(folder.join(name), bench.path("scenes").join(name)).unwrap();
    }
    let shipped = include_str!("../../scenes/two_pens.toml");
    let set = shipped
        .replace("two_colours.svg", "X_pen0_black.gcode")
        .replace("name = \"two_pens\"", "name = \"set\"");
    bench.scene("set", &set);
    let plan = json_of(&bench.run(&["plan", "set", "--json"]));
    near(&plan, "pen_down_mm", 36.0, 0.1);
    assert_eq!(plan["notes"].as_array().unwrap().len(), 2, "{plan:#}");
}

/// Files in the forms in which people's programs write them: `src/design/tests`.
#[test]
fn designs_of_many_programs_plan_on_the_default_scene() {
    let bench = Bench::new();
    for kind in ["svg", "gcode"] {
        let folder = format!("{}/src/design/tests/{kind}", env!("CARGO_MANIFEST_DIR"));
        let output = bench.run(&["plan", "--design", &folder, "--size", "60mm", "--json"]);
        let plans: Vec<Value> = printed_by(&output)
            .lines()
            .map(|line| serde_json::from_str(line).unwrap())
            .collect();
        assert!(plans.len() > 20, "{}", plans.len());
        for plan in plans {
            assert_eq!(plan["success"], true, "{plan:#}");
            near(&plan, "size_mm", 60.0, 0.01);
        }
    }
}

#[test]
fn pictures_in_an_svg_are_left_out_when_asked() {
    let bench = Bench::new();
    let design = r#"<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 20 10">
        <image href="photo.png" width="9" height="9"/><path stroke="black" d="M5 5h10"/></svg>"#;
    let (code, plan) = planned(&bench, "photo.svg", design, &[]);
    assert_eq!(code, Some(1));
    let message = plan["message"].as_str().unwrap();
    assert!(message.contains("--skip-images"), "{message}");
    let (code, plan) = planned(&bench, "photo.svg", design, &["--skip-images"]);
    assert_eq!(code, Some(0), "{plan:#}");
    let note = plan["notes"][0].as_str().unwrap();
    assert!(note.contains("image on line 2"), "{note}");
}

#[test]
fn areas_are_filled_by_the_pens_width_where_nothing_else_is_said() {
    let bench = Bench::new();
    let square = r#"<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 20 20"><rect width="20" height="20"/></svg>"#;
    std::fs::create_dir_all(bench.path("scenes/designs")).unwrap();
    std::fs::write(bench.path("scenes/designs/square.svg"), square).unwrap();
    let design = "file = \"square.svg\"\nsize_mm = 20.0\nfill = \"hatch\"\nfill_angle_deg = 0.0";
    let filled = scene(&bench, "filled", design);
    // A pen of 0.5 mm: 80 mm around, and forty lines of 20 mm.
    near(&filled, "pen_down_mm", 880.0, 40.0);
}

#[test]
fn a_folder_takes_every_kind_of_design() {
    let bench = Bench::new();
    let folder = bench.path("all");
    let out = bench.path("pictures");
    std::fs::create_dir_all(&folder).unwrap();
    let gcode = "G0 X0 Y0\nG1 X10 Y0";
    for (name, design) in [
        ("a.svg", svg("").as_str()),
        ("a.gcode", gcode),
        ("b.gco", gcode),
        ("c.nc", gcode),
        ("d.ngc", gcode),
        ("e.json", "[[[0, 0], [10, 0]]]"),
        ("h.plt", "IN;SP1;PU0,0;PD400,0;PU;"),
        ("i.hpgl", "PD400,0;"),
        ("f.g", "no design"),
        ("g.txt", "no design"),
    ] {
        std::fs::write(folder.join(name), design).unwrap();
    }
    let (folder, to) = (folder.to_str().unwrap(), out.to_str().unwrap());
    let output = bench.run(&["plan", "--design", folder, "--json", "--out", to]);
    assert_eq!(output.status.code(), Some(0), "{}", printed_by(&output));
    assert_eq!(printed_by(&output).lines().count(), 8);
    // Two designs of one stem have a picture each.
    for picture in ["a.svg.png", "a.gcode.png", "b.png", "e.png"] {
        assert!(out.join(picture).is_file(), "{picture}");
    }
}

#[test]
fn what_is_not_drawn_is_said_with_its_place() {
    let bench = Bench::new();
    let design = r#"<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 20 10">
        <rect id="r" width="-3" height="3"/><path stroke="black" d="M5 5h10"/></svg>"#;
    let (code, plan) = planned(&bench, "notes.svg", design, &[]);
    assert_eq!(code, Some(0));
    let note = plan["notes"][0].as_str().unwrap();
    assert!(note.starts_with("rect `r` on line 2"), "{note}");
    let file = bench.path("notes.svg");
    let output = printed_by(&bench.run(&["plan", "--design", file.to_str().unwrap()]));
    assert!(output.contains("note: rect `r` on line 2"), "{output}");
    let broken = design.replace("M5 5h10", "M5 5h10 oh");
    let (code, plan) = planned(&bench, "broken.svg", &broken, &[]);
    assert_eq!(code, Some(1));
    let message = plan["message"].as_str().unwrap();
    assert!(
        message.contains("path on line 2") && message.contains("`oh`"),
        "{message}"
    );
}

#[test]
fn a_line_on_a_line_is_drawn_once() {
    let bench = Bench::new();
    for lines in [
        "[[[0,0],[25,0],[50,0]], [[50,0],[0,0]]]",
        "[[[0,0],[50,0]], [[10,0],[20,0]]]",
        "[[[10,0],[20,0]], [[0,0],[50,0]]]",
    ] {
        let (code, plan) = planned(&bench, "lines.json", lines, &["--size", "50mm"]);
        assert_eq!(code, Some(0), "{plan:#}");
        near(&plan, "pen_down_mm", 50.0, 0.1);
        assert_eq!(plan["stroke_count"], 1, "{lines}");
        assert_eq!(plan["design_strokes"], 2, "{lines}");
    }
    let file = bench.path("lines.json");
    std::fs::write(&file, "[[[0,0],[50,0]], [[50,0],[50,9]], [[10,0],[20,0]]]").unwrap();
    let output = printed_by(&bench.run(&["plan", "--design", file.to_str().unwrap()]));
    let expected = "drawn as 1";
    assert!(output.contains(expected), "{output}");
}

#[test]
fn lines_are_simplified_merged_and_sorted_as_asked() {
    let bench = Bench::new();
    // A line of 201 points that lie 0.03 mm off it by turns, and two lines with 0.4 mm between them; the last is drawn first.
    let wave = |i: u32| {
        format!(
            "[{}, {}]",
            f64::from(i) * 0.2,
            5.0 + 0.03 * f64::from(i % 2)
        )
    };
    let wave: Vec<String> = (0..=200).map(wave).collect();
    let lines = [
        "[30, 30], [40, 30]",
        "[0, 20], [10, 20]",
        "[10.4, 20], [20, 20]",
    ];
    let strokes = lines
        .into_iter()
        .map(str::to_owned)
        .chain([wave.join(", ")]);
    let strokes: Vec<String> = strokes
        .map(|points| format!(r#"{{"points": [{points}]}}"#))
        .collect();
    let design = format!(
        r#"{{"page": [60, 60], "strokes": [{}]}}"#,
        strokes.join(", ")
    );
    let plan = |more: &[&str]| {
        let (code, plan) = planned(&bench, "lines.json", &design, more);
        assert_eq!(code, Some(0), "{plan:#}");
        plan
    };
    let plain = plan(&[]);
    assert_eq!(plain["stroke_count"], 4, "{plain:#}");
    let simple = plan(&["--simplify", "0.05mm"]);
    let notes = simple["notes"].to_string();
    assert!(notes.contains("8 of 207 points"), "{notes}");
    near(&simple, "pen_down_mm", 70.0, 0.5);
    let merged = plan(&["--merge", "0.5mm"]);
    assert_eq!(
        [&merged["stroke_count"], &merged["strokes_joined"]],
        [3, 1],
        "{merged:#}"
    );
    near(
        &merged,
        "pen_down_mm",
        figure(&plain, "pen_down_mm") + 0.4,
        0.2,
    );
    let kept = plan(&["--sort", "as-drawn"]);
    assert_eq!(kept["strokes_reversed"], 0, "{kept:#}");
    assert!(
        figure(&kept, "pen_up_mm") > figure(&plain, "pen_up_mm"),
        "{kept:#}"
    );
    let file = bench.path("lines.json").display().to_string();
    let output = printed_by(&bench.run(&["plan", "--design", &file, "--merge", "3mm"]));
    assert!(
        output.contains("--merge") && output.contains("0 to 2 mm"),
        "{output}"
    );
}

#[test]
fn strokes_of_some_pens_are_drawn_alone() {
    let bench = Bench::new();
    let file = bench.path("lines.json");
    let stroke = |pen: u8, y: u8| format!(r#"{{"pen": {pen}, "points": [[0, {y}], [40, {y}]]}}"#);
    let strokes = [stroke(1, 10), stroke(2, 20), stroke(2, 30)].join(", ");
    let design = format!(r#"{{"page": [40, 40], "strokes": [{strokes}]}}"#);
    std::fs::write(&file, design).unwrap();
    let plan = |pens: &str| {
        let design = [
            "--design",
            file.to_str().unwrap(),
            "--size",
            "40mm",
            "--json",
        ];
        bench.run(&[&["plan", "two_pens", "--pens", pens], &design[..]].concat())
    };
    for (pens, strokes, left_out) in [("1", 1, "2 strokes"), ("2", 2, "1 stroke")] {
        let plan = json_of(&plan(pens));
        assert_eq!(plan["stroke_count"], strokes, "{plan:#}");
        let note = format!("{left_out} of other pens");
        assert!(plan["notes"].to_string().contains(&note), "{plan:#}");
    }
    assert_eq!(json_of(&plan("2,1"))["stroke_count"], 3);
    // What the scene lacks is no hindrance where it is not asked for.
    let file = file.to_str().unwrap();
    let one = json_of(&bench.run(&["plan", "--design", file, "--pens", "1", "--json"]));
    assert_eq!(one["stroke_count"], 1, "{one:#}");
    let all = printed_by(&bench.run(&["plan", "--design", file]));
    assert!(all.contains("Next: add `--one-pen`"), "{all}");
    let refused = printed_by(&plan("blue"));
    assert!(
        refused.contains("\\\"blue\\\"") && refused.contains("Next: name 1 or `"),
        "{refused}"
    );
}

#[test]
fn the_tools_of_gcode_are_pens() {
    let bench = Bench::new();
    let file = bench.path("tools.gcode");
    let two = "M5\nT1\nG0 X0 Y0\nM3\nG1 X40\nM5\nT2\nG0 X0 Y20\nM3\nG1 X40\nM5\n";
    std::fs::write(&file, two).unwrap();
    let file = file.to_str().unwrap();
    let (design, size) = (["--design", file], ["--size", "40mm"]);
    let second = [
        &["plan", "two_pens", "--pens", "2", "--json"],
        &design[..],
        &size,
    ]
    .concat();
    let planned = json_of(&bench.run(&second));
    assert_eq!(planned["stroke_count"], 1, "{planned:#}");
    let refused = printed_by(&bench.run(&[&["plan"], &design[..], &size].concat()));
    assert!(refused.contains("pen 2"), "{refused}");
}

/// The outlines were judged and fitted without what the clip path makes of them.
#[test]
fn a_shape_that_a_clip_path_cuts_out_is_drawn_fitted_and_filled() {
    let bench = Bench::new();
    let disc = r##"<svg xmlns="http://www.w3.org/2000/svg" width="60mm" height="60mm" viewBox="0 0 60 60"><clipPath id="c"><circle cx="30" cy="30" r="15"/></clipPath><rect x="5" y="5" width="50" height="50" clip-path="url(#c)"/></svg>"##;
    let (code, plan) = planned(&bench, "disc.svg", disc, &[]);
    assert_eq!(code, Some(0), "{plan:#}");
    near(&plan, "pen_down_mm", std::f64::consts::TAU * 15.0, 1.0);
    let (code, plan) = planned(&bench, "disc.svg", disc, &["--fill", "hatch", "--fit"]);
    assert_eq!(code, Some(0), "{plan:#}");
    assert!(figure(&plan, "pen_down_mm") > 1000.0, "{plan:#}");
}

#[test]
fn white_lines_are_left_out_where_no_pen_is_white() {
    let bench = Bench::new();
    let lines = r#"<svg xmlns="http://www.w3.org/2000/svg" width="40mm" height="40mm" viewBox="0 0 40 40"><path stroke="white" d="M5 5h10"/><path stroke="black" d="M5 15h10"/></svg>"#;
    let (code, plan) = planned(&bench, "white.svg", lines, &[]);
    assert_eq!(
        (code, &plan["stroke_count"]),
        (Some(0), &1.into()),
        "{plan:#}"
    );
    let notes = plan["notes"].to_string();
    assert!(notes.contains("1 white stroke"), "{notes}");
    let white = lines.replace("black", "#ffffff");
    let (code, plan) = planned(&bench, "all.svg", &white, &[]);
    let why = plan["message"].as_str().unwrap();
    assert_eq!(code, Some(1), "{plan:#}");
    assert!(why.contains("2 strokes") && why.contains("white"), "{why}");
    let (_, plan) = planned(&bench, "white.svg", lines, &["--one-pen"]);
    assert_eq!(plan["stroke_count"], 2, "{plan:#}");
    let (_, plan) = planned(&bench, "white.svg", lines, &["--fill", "hatch"]);
    let notes = plan["notes"].to_string();
    assert!(notes.contains("filled"), "{notes}");
}

/// A four-line drawing became a dot that was scaled to the full size.
#[test]
fn m3_beside_a_z_that_lifts_draws_by_z_and_a_dot_stays_a_dot() {
    let bench = Bench::new();
    let square = "M3 S1000\nG0 Z5\nG0 X0 Y0\nG1 Z-1\nG1 X10\nG1 Y10\nG1 X0\nG1 Y0\nG0 Z5\nM5\nM2";
    let (code, plan) = planned(&bench, "square.nc", square, &["--size", "60mm"]);
    assert_eq!(code, Some(0), "{plan:#}");
    near(&plan, "pen_down_mm", 240.0, 0.5);
    let dot = "G0 Z5\nG0 X3 Y3\nG1 Z0\nG0 Z5";
    let (_, plan) = planned(&bench, "dot.nc", dot, &["--size", "60mm"]);
    near(&plan, "size_mm", 0.1, 1e-6);
    let note = plan["notes"][0].as_str().unwrap();
    assert!(note.contains(" dot"), "{note}");
}

#[test]
fn pens_count_from_1() {
    let bench = Bench::new();
    let lines =
        |pen: &str| format!(r#"{{"strokes": [{{"pen": {pen}, "points": [[0, 0], [50, 0]]}}]}}"#);
    let (code, plan) = planned(&bench, "first.json", &lines("1"), &[]);
    assert_eq!(code, Some(0), "{plan:#}");
    for (pen, expected) in [("2", "only pen 1, `"), ("0", "stroke 1: found pen 0")] {
        let (code, plan) = planned(&bench, "other.json", &lines(pen), &[]);
        assert_eq!(code, Some(1));
        let message = plan["message"].as_str().unwrap();
        assert!(message.contains(expected), "{message}");
    }
}

#[test]
fn arcs_of_g_code_are_round() {
    let bench = Bench::new();
    // Three quarters of a circle of 10 mm, and the last one with its radius alone.
    let arcs = "G21 G90\nG0 X10 Y0\nG3 X0 Y-10 I-10 J0\nG0 X0 Y-10\nG3 X10 Y0 R10";
    let (code, plan) = planned(&bench, "arcs.gcode", arcs, &["--size", "40mm"]);
    assert_eq!(code, Some(0), "{plan:#}");
    near(&plan, "pen_down_mm", std::f64::consts::TAU * 20.0, 0.2);
    let clockwise = "G0 X10 Y0\nG2 X0 Y10 I-10 J0\nM2";
    let (_, plan) = planned(&bench, "arcs.gcode", clockwise, &["--size", "40mm"]);
    near(&plan, "pen_down_mm", 1.5 * std::f64::consts::PI * 20.0, 0.2);
}

/// The default scene with another design.
fn scene(bench: &Bench, name: &str, design: &str) -> Value {
    let shipped = include_str!("../../scenes/default.toml");
    let own = shipped
        .replace("file = \"practice.svg\"\nsize_mm = 60.0", design)
        .replace("name = \"default\"", &format!("name = \"{name}\""));
    bench.scene(name, &own);
    let output = bench.run(&["plan", name, "--json"]);
    assert_eq!(output.status.code(), Some(0), "{}", printed_by(&output));
    json_of(&output)
}

#[test]
fn words_and_fills_come_from_the_scenes_file() {
    let bench = Bench::new();
    let plan = scene(&bench, "words", "text = \"Hi\"\nletter_height_mm = 20.0");
    // The stems of H, its bar, and i's stem: at least 20 + 20 + 10 mm.
    assert!(figure(&plan, "pen_down_mm") > 50.0, "{plan:#}");
    assert_eq!(plan["size_from"], "file");
    let square = r#"<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 20 20"><rect width="20" height="20"/></svg>"#;
    std::fs::create_dir_all(bench.path("scenes/designs")).unwrap();
    std::fs::write(bench.path("scenes/designs/square.svg"), square).unwrap();
    let file = "file = \"square.svg\"\nsize_mm = 20.0\n";
    let filled = |fill: &str| {
        let design =
            format!("{file}fill = \"{fill}\"\nfill_spacing_mm = 2.0\nfill_angle_deg = 0.0");
        figure(&scene(&bench, fill, &design), "pen_down_mm")
    };
    let outline = figure(&scene(&bench, "outline", file), "pen_down_mm");
    assert!((outline - 80.0).abs() < 0.5, "{outline}");
    // Ten lines of 20 mm for each 2 mm, and again across them.
    let (hatch, cross, contour) = (filled("hatch"), filled("cross"), filled("contour"));
    assert!((260.0..=310.0).contains(&hatch), "{hatch}");
    assert!((440.0..=540.0).contains(&cross), "{cross}");
    // Squares of 80, 64, 48, 32 and 16 mm around.
    assert!((215.0..=260.0).contains(&contour), "{contour}");
}

#[test]
fn pens_are_dipped_as_often_as_their_ink_asks() {
    let bench = Bench::new();
    let ink = "\n[[inks]]\nname = \"black\"\nrim_m = [0.065, -0.175, 0.02]\ndepth_mm = 6.0\ndip_every_mm = 40.0\n";
    let dipped = support::scene("dipped", support::SHORT_LINES).replacen(
        "[[pens]]\n",
        "[[pens]]\nink = \"black\"\n",
        1,
    ) + ink;
    bench.scene("dipped", &dipped);
    let output = bench.run(&["plan", "dipped", "--json"]);
    let plan = json_of(&output);
    // Two lines of 30 mm: before the first, and again before the second, which would end at 60.
    assert_eq!(plan["dips"], 2, "{plan:#}");
    assert!(printed_by(&bench.run(&["plan", "dipped"])).contains("2 dips"));
}

#[test]
fn a_projected_design_says_how_much_it_is_stretched() {
    let bench = Bench::new();
    let bottle = include_str!("../../scenes/bottle.toml");
    let laid = |lay: &str| {
        let scene = bottle
            .replace("name = \"bottle\"", &format!("name = \"{lay}\""))
            .replace(
                "cylinder_radius_mm = 45.0",
                &format!("cylinder_radius_mm = 45.0\nlay = \"{lay}\""),
            )
            .replace("draw_mm_s = 15.0", "draw_mm_s = 15.0\nstretch = 0.5");
        bench.scene(lay, &scene);
        let output = bench.run(&["plan", lay, "--json"]);
        assert_eq!(output.status.code(), Some(0), "{}", printed_by(&output));
        (json_of(&output), printed_by(&bench.run(&["plan", lay])))
    };
    let (wrapped, printed) = laid("wrapped");
    near(&wrapped, "stretch_max", 1.0, 1e-3);
    assert!(printed.contains("stretched"), "{printed}");
    let (projected, printed) = laid("projected");
    let stretch = figure(&projected, "stretch_max");
    assert!((1.01..1.5).contains(&stretch), "{stretch}");
    let expected = format!(" {:.1} %", (stretch - 1.0) * 1e2);
    assert!(printed.contains(&expected), "{printed}");
    let (code, dry) = bench.call(&["stroke", r#"{"scene":"projected","dry_run":true}"#]);
    assert_eq!(code, 0, "{dry:#}");
    near(&dry, "stretch_max", stretch, 1e-3);
    // On a plane there is nothing to say.
    let flat = json_of(&bench.run(&["plan", "short", "--json"]));
    assert!(flat["stretch_max"].is_null(), "{flat:#}");
}

/// Three layers of two strokes; the second is called `2-sky`, and the whole is 40 mm wide.
fn layers() -> String {
    let layer = |label: &str, y: u32| {
        format!(
            r#"<g inkscape:groupmode="layer" inkscape:label="{label}"><path fill="none" stroke="black" d="M0 {y}h40M10 {}h20"/></g>"#,
            y + 2
        )
    };
    let layers = layer("1 ground", 20) + &layer("2-sky", 0) + &layer("birds", 10);
    format!(
        r#"<svg xmlns="http://www.w3.org/2000/svg" xmlns:inkscape="http://www.inkscape.org/namespaces/inkscape" width="40mm" height="24mm" viewBox="0 0 40 24">{layers}</svg>"#
    )
}

#[test]
fn layers_and_strokes_are_drawn_alone_in_their_places() {
    let bench = Bench::new();
    let plan = |options: &[&str]| {
        let more = [&["--one-pen"][..], options].concat();
        planned(&bench, "layers.svg", &layers(), &more)
    };
    let (_, all) = plan(&[]);
    near(&all, "stroke_count", 6.0, 0.0);
    for (options, strokes, length_mm) in [
        (&["--layers", "2"][..], 2.0, 60.0),
        (&["--layers", "sky,Birds"], 4.0, 120.0),
        (&["--layers", "1 ground"], 2.0, 60.0),
        (&["--strokes", "1..3"], 3.0, 100.0),
        (&["--strokes", "6.."], 1.0, 20.0),
        (&["--layers", "2", "--strokes", "3-3"], 1.0, 40.0),
    ] {
        let (code, part) = plan(options);
        assert_eq!(code, Some(0), "{options:?}: {part:#}");
        near(&part, "stroke_count", strokes, 0.0);
        near(&part, "pen_down_mm", length_mm, 0.1);
        assert!(
            part["notes"].to_string().contains("of 6 strokes drawn"),
            "{part:#}"
        );
    }
    for (options, words) in [
        (&["--layers", "sea"][..], "no layer"),
        (&["--layers", "9"], "2-sky"),
        (&["--strokes", "7..9"], "1 to 6"),
        (&["--layers", "birds", "--strokes", "1..2"], "nothing would"),
    ] {
        let (code, refused) = plan(options);
        assert_eq!(code, Some(1), "{options:?}: {refused:#}");
        assert!(
            refused.to_string().contains(words),
            "{options:?}: {refused:#}"
        );
    }
}

/// The first figure of vpype's occult: a line, and a square over it.
#[test]
fn what_lies_behind_filled_shapes_is_not_drawn() {
    let bench = Bench::new();
    let svg = |body: &str| {
        format!(
            r#"<svg xmlns="http://www.w3.org/2000/svg" width="50mm" height="50mm" viewBox="0 0 50 50" fill="white" stroke="black">{body}</svg>"#
        )
    };
    let figure_of_occult =
        svg(r#"<path d="M0 0L50 50"/><rect x="20" y="20" width="10" height="10"/>"#);
    let square_first =
        svg(r#"<rect x="20" y="20" width="10" height="10"/><path d="M0 0L50 50" fill="none"/>"#);
    let (line, square, inside) = (50.0 * 2_f64.sqrt(), 40.0, 10.0 * 2_f64.sqrt());
    for (drawing, hide, expected_mm) in [
        (&figure_of_occult, false, line + square),
        (&figure_of_occult, true, line + square - inside),
        (&square_first, true, line + square),
    ] {
        let more: &[&str] = if hide { &["--hide"] } else { &[] };
        let (code, plan) = planned(&bench, "occult.svg", drawing, more);
        assert_eq!(code, Some(0), "{plan:#}");
        near(&plan, "pen_down_mm", expected_mm, 0.2);
        let is_cut = expected_mm < line + square - 1.0;
        let notes = plan["notes"].to_string();
        assert_eq!(notes.contains("filled"), is_cut, "{notes}");
    }
    // Other formats have no areas, which is said.
    let (_, plan) = planned(&bench, "line.json", "[[[0, 0], [30, 0]]]", &["--hide"]);
    assert!(plan["notes"].to_string().contains("hidden"), "{plan:#}");
}

/// Choices of the page are written in its file; this is where they are compared with the program's.
#[test]
fn the_page_offers_the_papers_fonts_and_styles_that_there_are() {
    let page = include_str!("../../src/page/assets/index.html");
    let papers = steadyhand::scene::PaperFormat::ALL
        .iter()
        .map(|paper| paper.name());
    let fonts = steadyhand::design::StrokeFont::all().map(steadyhand::design::StrokeFont::name);
    for name in papers.chain(fonts) {
        assert!(page.contains(&format!("<option>{name}</option>")), "{name}");
    }
}

#[test]
fn closed_lines_begin_elsewhere_on_request_and_are_the_same_lines() {
    let bench = Bench::new();
    let rings: String = (0..4)
        .map(|ring| format!(r#"<circle cx="{}" cy="10" r="4"/>"#, 10 * ring + 6))
        .collect();
    let drawing = format!(
        r#"<svg xmlns="http://www.w3.org/2000/svg" width="48mm" height="20mm" viewBox="0 0 48 20" fill="none" stroke="black">{rings}</svg>"#
    );
    let plan = |more: &[&str]| planned(&bench, "rings.svg", &drawing, more).1;
    let (as_drawn, elsewhere) = (plan(&[]), plan(&["--random-starts"]));
    near(
        &elsewhere,
        "pen_down_mm",
        figure(&as_drawn, "pen_down_mm"),
        0.01,
    );
    near(&elsewhere, "stroke_count", 4.0, 0.0);
    assert_ne!(
        elsewhere["plan_hash"], as_drawn["plan_hash"],
        "{elsewhere:#}"
    );
    assert_eq!(
        elsewhere["plan_hash"],
        plan(&["--random-starts"])["plan_hash"]
    );
}

#[test]
fn text_in_the_fonts_of_the_machine_is_drawn_or_refused_with_a_way() {
    let bench = Bench::new();
    let text = r#"<svg xmlns="http://www.w3.org/2000/svg" width="50mm" height="20mm" viewBox="0 0 50 20"><text y="15" font-size="10">Hi</text></svg>"#;
    let outlines = &["--text-as", "outlines"][..];
    let (code, plan) = planned(&bench, "hi.svg", text, outlines);
    // A machine without fonts refuses it as well.
    if code != Some(0) {
        let said = plan.to_string();
        assert!(
            said.contains("fonts") && said.contains("--text-as lines"),
            "{said}"
        );
    }
    let (code, plan) = planned(&bench, "hi.svg", text, &["--text-as", "lines"]);
    assert_eq!(code, Some(0), "{plan:#}");
    let (_, plan) = planned(&bench, "line.json", "[[[0, 0], [30, 0]]]", outlines);
    assert!(plan["notes"].to_string().contains("SVG"), "{plan:#}");
    let (code, said) = bench.said(&["draw", "--text", "Hi", "--text-as", "outlines", "--dry-run"]);
    assert_ne!(code, 0);
    assert!(said.contains("Next:"), "{said}");
}

#[test]
fn copies_stand_in_columns_and_rows_each_in_the_size_of_one() {
    let bench = Bench::new();
    let hook = r#"{"page": [20, 10], "strokes": [{"points": [[0, 0], [20, 0], [20, 10]]}]}"#;
    let plan = |options: &[&str]| planned(&bench, "hook.json", hook, options);
    let (code, six) = plan(&["--copies", "3x2", "--size", "20mm"]);
    assert_eq!(code, Some(0), "{six:#}");
    near(&six, "stroke_count", 6.0, 0.0);
    near(&six, "pen_down_mm", 180.0, 0.1);
    // A twentieth of the longer side lies between two.
    near(&six, "size_mm", 62.0, 0.1);
    let (_, fitted) = plan(&["--copies", "3x2", "--fit"]);
    let one_mm = (figure(&fitted, "size_mm") - 2.0) / 3.1;
    assert!((28.0..34.0).contains(&one_mm), "{fitted:#}");
    for copies in ["0x2", "99x1"] {
        let (code, refused) = plan(&["--copies", copies]);
        assert_eq!(code, Some(1), "{copies}: {refused:#}");
    }
}

#[test]
fn a_drawing_pauses_after_each_length_or_time_that_was_asked_for() {
    let bench = Bench::new();
    let line = r#"{"strokes": [[[0, 0], [80, 0]], [[0, 5], [80, 5]], [[0, 9], [80, 9]]]}"#;
    let line = line
        .replace("[[[", "[{\"points\": [[")
        .replace("]], [[", "]]}, {\"points\": [[")
        .replace("]]]", "]]}]");
    let plan = |every: &str| planned(&bench, "lines.json", &line, &["--pause-every", every]);
    for (every, pauses) in [("100mm", 2), ("50mm", 4), ("5s", 1)] {
        let (code, paused) = plan(every);
        assert_eq!(code, Some(0), "{every}: {paused:#}");
        near(&paused, "pen_down_mm", 240.0, 0.1);
        let notes = paused["notes"].to_string();
        assert_eq!(
            notes.matches("pauses before").count(),
            pauses,
            "{every}: {notes}"
        );
    }
    let (code, refused) = plan("5mm");
    assert_eq!(code, Some(1), "{refused:#}");
    assert!(refused.to_string().contains("20 mm"), "{refused:#}");
}
