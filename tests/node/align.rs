//! `align` in its three parts, and what it proposes: read off the cross, or felt by the arm.
#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::disallowed_methods,
    reason = "a failing test may panic"
)]

use crate::support;
use serde_json::Value;
use support::{Bench, SHORT_LINES, call_at, scene, until};

/// A bench whose simulated arm works on sheets that lie elsewhere than its scenes say.
struct Practice(Bench);

impl Practice {
    fn new(sheet_z_m: f64) -> Self {
        let bench = Bench::at_test_rate().with_file("");
        std::fs::create_dir_all(bench.path("truth/arms")).unwrap();
        let truth =
            scene("short", SHORT_LINES).replace("-0.125, 0.005]", &format!("-0.125, {sheet_z_m}]"));
        std::fs::write(bench.path("truth/short.toml"), truth).unwrap();
        let node = format!(
            "[[arms]]\nname = \"arm\"\nmodel = \"so101\"\nport = \"simulator\"\ntruth = {:?}\n",
            bench.path("truth")
        );
        bench.file(&node);
        Self(bench)
    }

    fn align(&self, arguments: &str) -> Value {
        self.0.call(&["align", arguments]).1
    }

    /// Has the arm draw a cross for a person to read.
    fn draw_cross(&self) {
        let result = self.align(r#"{"scene": "short"}"#);
        assert_eq!(result["success"], true, "{result:#}");
    }

    fn file(&self) -> String {
        std::fs::read_to_string(self.0.path("scenes/short.toml")).unwrap()
    }

    /// The sheet's origin as the scene's file says it.
    fn origin_m(&self) -> [f64; 3] {
        let file: toml::Table = self.file().parse().unwrap();
        let origin = file["sheet"]["origin_m"].as_array().unwrap();
        [0, 1, 2].map(|axis| origin[axis].as_float().unwrap())
    }
}

#[test]
fn an_alignment_says_what_was_measured_its_worth_and_what_is_next() {
    let practice = Practice::new(0.005);
    let result = practice.align(r#"{"scene": "short"}"#);
    assert_eq!(result["success"], true, "{result:#}");
    assert_eq!(result["verdict"], "good", "{result:#}");
    assert_eq!(result["next"], "`stroke` draws the design");
    let points = result["points"].as_array().unwrap();
    assert_eq!(points.len(), 5);
    for point in points {
        assert!(
            point["tracking_error_mm"].as_f64().unwrap() < 1.5,
            "{point}"
        );
        assert_eq!(point["residual_mm"].as_array().unwrap().len(), 3, "{point}");
    }
    let files: Vec<&str> = result["files"]
        .as_array()
        .unwrap()
        .iter()
        .map(|f| f.as_str().unwrap())
        .collect();
    let html = files.iter().find(|f| f.ends_with("align.html")).unwrap();
    let page = std::fs::read_to_string(html).unwrap();
    assert!(page.contains("<svg") && page.contains("verdict: good") && !page.contains("http"));
    let json = files.iter().find(|f| f.ends_with("align.json")).unwrap();
    let reply: Value = serde_json::from_str(&std::fs::read_to_string(json).unwrap()).unwrap();
    assert_eq!(reply["points"], result["points"]);
    assert_eq!(reply["verdict"], "good");
}

#[test]
fn a_read_cross_is_proposed_and_nothing_is_saved_until_it_is_accepted() {
    let practice = Practice::new(0.005);
    let before = practice.file();
    practice.draw_cross();
    let result =
        practice.align(r#"{"scene": "short", "measured": {"dx": "0.8mm", "dy": "-0.3mm"}}"#);
    assert_eq!(result["success"], true, "{result:#}");
    assert_eq!(result["verdict"], "good", "{result:#}");
    assert!(result.get("job").is_none(), "nothing moves: {result:#}");
    assert!(
        result["next"]
            .as_str()
            .unwrap()
            .contains("steadyhand calibrate accept")
    );
    assert_eq!(practice.file(), before);
    // x runs along -x of the base, y along -y: the cross was off by (-0.8, 0.3), the sheet is by the other way.
    let (code, output) = practice.0.said(&["calibrate", "accept"]);
    assert_eq!(code, 0, "{output}");
    let [x, y, z] = practice.origin_m();
    assert!(
        (x - 0.0508).abs() < 1e-9 && (y + 0.1253).abs() < 1e-9,
        "{x} {y}"
    );
    assert!((z - 0.005).abs() < 1e-9, "{z}");
    practice.draw_cross();
    let far = practice.align(r#"{"scene": "short", "measured": {"dx": 80}}"#);
    assert_eq!(far["verdict"], "redo", "{far:#}");
    let (code, output) = practice.0.said(&["calibrate", "accept"]);
    assert!(code != 0 && output.contains("not accepted"), "{output}");
    let both = practice.align(r#"{"scene": "short", "touch": true, "measured": {"dx": 1}}"#);
    assert_eq!(both["success"], false, "{both:#}");
}

#[test]
fn a_cross_is_read_once_it_is_drawn_and_until_what_was_read_is_accepted() {
    let practice = Practice::new(0.005);
    let before = practice.file();
    let reading = r#"{"scene": "short", "measured": {"dx": "0.4mm", "dy": "-0.2mm"}}"#;
    let is_refused = || {
        let refused = practice.align(reading);
        assert_eq!(refused["code"], "no_cross", "{refused:#}");
        let message = refused["message"].as_str().unwrap();
        assert!(!message.contains('{'), "{message}");
        assert!(refused.get("corrected_call").is_none(), "{refused:#}");
        assert!(message.contains("nothing moved"), "{message}");
    };
    is_refused();
    // Feeling the sheet draws none.
    let felt = practice.align(r#"{"scene": "short", "touch": true}"#);
    assert_eq!(felt["success"], true, "{felt:#}");
    is_refused();
    assert_eq!(practice.0.said(&["calibrate", "discard"]).0, 0);
    assert_eq!(practice.file(), before);
    practice.draw_cross();
    for _ in 0..2 {
        let read = practice.align(reading);
        assert_eq!(read["success"], true, "{read:#}");
    }
    assert_eq!(practice.0.said(&["calibrate", "accept"]).0, 0);
    let accepted = practice.file();
    // The same call again, as a client sends it that lost the answer.
    is_refused();
    assert_eq!(practice.0.said(&["calibrate", "accept"]).0, 1);
    assert_eq!(practice.file(), accepted);
}

#[test]
fn a_small_sheet_is_visited_and_felt_within_its_edges() {
    let practice = Practice::new(0.005);
    let line = "[[[1.0, 4.0], [5.0, 4.0]]]";
    let small = scene("short", line).replace("[100.0, 100.0]", "[6.0, 100.0]");
    practice.0.scene("short", &small);
    std::fs::write(practice.0.path("truth/short.toml"), &small).unwrap();
    for (mode, count) in [("", 5), (r#", "touch": true"#, 6)] {
        let result = practice.align(&format!(r#"{{"scene": "short"{mode}}}"#));
        assert_eq!(result["success"], true, "{result:#}");
        let points = result["points"].as_array().unwrap();
        assert_eq!(points.len(), count, "{result:#}");
        // The sheet's x runs along -x of the base, from 50 mm.
        let x_mm = |name: &str| {
            let mut points = points.iter();
            let point = points.find(|point| point["name"] == name).unwrap();
            50.0 - point["target_mm"][0].as_f64().unwrap()
        };
        let (left, right) = (x_mm("lower left"), x_mm("lower right"));
        assert!(0.5 < left && left < right && right < 5.5, "{left} {right}");
    }
}

/// As on a full disk: what was asked for is done once, by the command that succeeds.
#[test]
fn an_accept_whose_record_cannot_be_written_has_changed_nothing() {
    let practice = Practice::new(0.005);
    let before = practice.file();
    practice.draw_cross();
    let read = practice.align(r#"{"scene": "short", "measured": {"dx": 5}}"#);
    assert_eq!(read["success"], true, "{read:#}");
    let names = ["000001.toml.new", "accepting.toml.new"];
    let blocked = names.map(|name| practice.0.path("state/calibration").join(name));
    for path in &blocked {
        std::fs::create_dir(path).unwrap();
    }
    let (code, said) = practice.0.said(&["calibrate", "accept"]);
    assert!(code != 0 && said.contains("directory"), "{said}");
    assert_eq!(practice.file(), before);
    for path in &blocked {
        std::fs::remove_dir(path).unwrap();
    }
    let (code, said) = practice.0.said(&["calibrate", "accept"]);
    assert_eq!(code, 0, "{said}");
    let [x, _, _] = practice.origin_m();
    assert!((x - 0.055).abs() < 1e-9, "{x}");
}

#[test]
fn a_sheet_is_felt_proposed_and_accepted() {
    let practice = Practice::new(0.0035);
    let before = practice.file();
    let result = practice.align(r#"{"scene": "short", "touch": true}"#);
    assert_eq!(result["success"], true, "{result:#}");
    assert_ne!(result["verdict"], "redo", "{result:#}");
    for point in result["points"].as_array().unwrap() {
        let height = point["contact_height_mm"].as_f64().unwrap();
        assert!((height + 1.5).abs() < 0.4, "{result:#}");
        assert!(point["spread_mm"].as_f64().unwrap() <= 1.0, "{result:#}");
    }
    assert_eq!(result["points"].as_array().unwrap().len(), 6);
    let hints = result["usage_hints"].to_string();
    assert!(
        !hints.contains("truth"),
        "its sheet lies by itself: {hints}"
    );
    assert_eq!(practice.file(), before, "it saves nothing by itself");
    let (code, output) = practice.0.said(&["calibrate", "accept"]);
    assert_eq!(code, 0, "{output}");
    let [_, _, z] = practice.origin_m();
    assert!((z - 0.0035).abs() < 0.0003, "{z}");
    let (_, output) = practice.0.said(&["calibrate", "history"]);
    assert!(output.contains("probes, 18 touches"), "{output}");
}

/// Lines across the middle of a sheet, from edge to edge.
const CROSS: &str = "[[[0.0, 40.0], [80.0, 40.0]], [[40.0, 0.0], [40.0, 80.0]]]";

/// The heights of a sheet that is 2 mm higher at its corners than in its middle.
fn bowl() -> String {
    heights(&|[x, y]: [f64; 2]| {
        let square = ((x - 50.0) / 42.0).powi(2) + ((y - 50.0) / 42.0).powi(2);
        square - 1.5
    })
}

/// The heights of a sheet at three by three places.
fn heights(height: &dyn Fn([f64; 2]) -> f64) -> String {
    let at = |index: u32| [index % 3, index / 3].map(|step| 8.0 + 42.0 * f64::from(step));
    let list = |value: &dyn Fn([f64; 2]) -> f64| {
        let values: Vec<f64> = (0..9).map(|index| value(at(index))).collect();
        format!("{values:?}")
    };
    format!(
        "\n[sheet.heights]\nx_mm = {}\ny_mm = {}\nheight_mm = {}\n",
        list(&|[x, _]| x),
        list(&|[_, y]| y),
        list(height)
    )
}

#[test]
fn a_warped_sheet_is_drawn_on_with_the_map_of_its_heights() {
    let practice = Practice::new(0.005);
    practice.0.scene("short", &scene("short", CROSS));
    let truth = scene("short", CROSS) + &bowl();
    std::fs::write(practice.0.path("truth/short.toml"), truth).unwrap();
    let draw = || {
        let (_, text) = practice.0.said(&[
            "call",
            "--json",
            "stroke",
            r#"{"scene": "short", "again": true}"#,
        ]);
        let json = text
            .get(..text.rfind('}').map_or(0, |end| end + 1))
            .unwrap();
        let result: Value = serde_json::from_str(json).unwrap();
        result["missing_mm"]
            .as_f64()
            .unwrap_or_else(|| panic!("{result:#}"))
    };
    assert!(draw() > 20.0, "the middle is out of the pen's reach");
    let felt = practice.align(r#"{"scene": "short", "touch": true, "grid": [3, 3]}"#);
    assert_eq!(felt["success"], true, "{felt:#}");
    assert_ne!(felt["verdict"], "redo", "{felt:#}");
    assert_eq!(felt["points"].as_array().unwrap().len(), 10);
    let message = felt["message"].as_str().unwrap();
    assert!(message.contains("a map of"), "{message}");
    let (code, output) = practice.0.said(&["calibrate", "accept"]);
    assert_eq!(code, 0, "{output}");
    assert!(
        practice.file().contains("[sheet.heights]"),
        "{}",
        practice.file()
    );
    let missing_mm = draw();
    assert!(missing_mm < 1.0, "{missing_mm}");
    // A sheet that is flat again loses its map, by touches of the same places.
    std::fs::write(practice.0.path("truth/short.toml"), scene("short", CROSS)).unwrap();
    let felt = practice.align(r#"{"scene": "short", "touch": true}"#);
    let message = felt["message"].as_str().unwrap();
    assert!(message.contains("no map"), "{felt:#}");
    let (code, output) = practice.0.said(&["calibrate", "accept"]);
    assert_eq!(code, 0, "{output}");
    assert!(
        practice.file().contains("height_mm = []"),
        "{}",
        practice.file()
    );
}

/// A cross on the shipped bumpy mesh, at a place of its sheet.
fn on_a_mesh(origin_m: &str, x_axis: &str) -> String {
    scene("short", CROSS)
        .replace("[0.05, -0.125, 0.005]", origin_m)
        .replace("[-1.0, 0.0, 0.0]", x_axis)
        + "\n[surface]\nmesh = \"bumpy.ply\"\nunit = \"mm\"\n\n[limits]\nstretch = 0.1\n"
}

#[test]
fn a_mesh_that_lies_elsewhere_is_felt_and_drawn_on() {
    let practice = Practice::new(0.005);
    let believed = on_a_mesh("[0.05, -0.125, 0.005]", "[-1.0, 0.0, 0.0]");
    practice.0.scene("short", &believed);
    // 1.5 mm lower, and 0.57° about its y.
    let truth = on_a_mesh("[0.05, -0.125, 0.0035]", "[-0.99995, 0.0, 0.01]");
    std::fs::write(practice.0.path("truth/short.toml"), truth).unwrap();
    let felt = practice.align(r#"{"scene": "short", "touch": true, "grid": [3, 3]}"#);
    assert_eq!(felt["success"], true, "{felt:#}");
    assert_ne!(felt["verdict"], "redo", "{felt:#}");
    for point in felt["points"].as_array().unwrap() {
        let residual = point["residual_mm"].as_array().unwrap();
        let square: f64 = residual.iter().map(|mm| mm.as_f64().unwrap().powi(2)).sum();
        assert!(square.sqrt() < 0.5, "{point:#}");
    }
    let (code, output) = practice.0.said(&["calibrate", "accept"]);
    assert_eq!(code, 0, "{output}");
    let file: toml::Value = toml::from_str(&practice.file()).unwrap();
    let sheet = |key: &str| file["sheet"][key][2].as_float().unwrap();
    assert!((sheet("x_axis") - 0.01).abs() < 0.008, "{file}");
    // The sheet's middle.
    let middle_m = sheet("origin_m") + 0.05 * (sheet("x_axis") + sheet("y_axis"));
    assert!((middle_m - 0.004).abs() < 8e-4, "{file}");
    let again = practice.align(r#"{"scene": "short", "touch": true}"#);
    assert!(again["change"]["mm"].as_f64().unwrap() < 0.5, "{again:#}");
}

#[test]
fn a_mesh_that_lies_to_the_side_is_found_by_its_slopes() {
    let practice = Practice::new(0.005);
    let believed = on_a_mesh("[0.05, -0.125, 0.005]", "[-1.0, 0.0, 0.0]");
    practice.0.scene("short", &believed);
    let truth = on_a_mesh("[0.0525, -0.1268, 0.0042]", "[-1.0, 0.0, 0.0]");
    std::fs::write(practice.0.path("truth/short.toml"), truth).unwrap();
    let felt = practice.align(r#"{"scene": "short", "touch": true, "grid": [6, 6]}"#);
    assert_eq!(felt["success"], true, "{felt:#}");
    assert_ne!(felt["verdict"], "redo", "{felt:#}");
    let (code, output) = practice.0.said(&["calibrate", "accept"]);
    assert_eq!(code, 0, "{output}");
    let [x, y, z] = practice.origin_m();
    let off_mm = [x - 0.0525, y + 0.1268, z - 0.0042].map(|m| m.abs() * 1e3);
    assert!(off_mm.iter().all(|mm| *mm < 0.4), "{off_mm:?} {felt:#}");
    assert!(felt["change"]["mm"].as_f64().unwrap() > 2.0, "{felt:#}");
}

#[test]
fn a_grid_that_is_none_is_refused_and_nothing_moves() {
    let practice = Practice::new(0.005);
    for (arguments, part) in [
        (r#""touch": true, "grid": [2, 3]"#, "3 to 8"),
        (r#""touch": true, "grid": [3.5, 3]"#, "3 to 8"),
        (r#""grid": [3, 3]"#, "`touch`"),
    ] {
        let refused = practice.align(&format!(r#"{{"scene": "short", {arguments}}}"#));
        assert_eq!(refused["code"], "arguments_refused", "{refused:#}");
        assert!(
            refused["message"].as_str().unwrap().contains(part),
            "{refused:#}"
        );
    }
}

#[test]
fn a_sheet_that_is_not_felt_is_said_to_be_missing() {
    let practice = Practice::new(-0.0025);
    let result = practice.align(r#"{"scene": "short", "touch": true}"#);
    assert_eq!(result["success"], false, "{result:#}");
    assert_eq!(result["verdict"], "redo", "{result:#}");
    assert_eq!(result["code"], "no_contact", "{result:#}");
    let next = result["next"].as_str().unwrap();
    assert!(
        next.contains("steadyhand calibrate touch sheet --scene short"),
        "{next}"
    );
    let (code, output) = practice.0.said(&["calibrate", "show"]);
    assert!(
        code != 0 && output.contains("steadyhand calibrate touch tool"),
        "{output}"
    );
}

#[test]
fn a_corner_that_is_not_felt_is_left_out_and_said() {
    let practice = Practice::new(0.005);
    let falls = heights(&|[x, y]| if x > 90.0 && y < 10.0 { -7.0 } else { 0.0 });
    let raised = scene("short", SHORT_LINES).replace("0.125, 0.005]", "0.125, 0.015]");
    practice.0.scene("short", &raised);
    let truth = raised + &falls;
    std::fs::write(practice.0.path("truth/short.toml"), truth).unwrap();
    let felt = practice.align(r#"{"scene": "short", "touch": true}"#);
    assert_eq!(felt["success"], true, "{felt:#}");
    assert_eq!(felt["left_out"], 1, "{felt:#}");
    assert_eq!(felt["points"].as_array().unwrap().len(), 5, "{felt:#}");
    let message = felt["message"].as_str().unwrap();
    assert!(message.contains("`lower right`"), "{message}");
}

/// Without too many of them a sheet is fitted; with too few the arm would move for nothing.
#[test]
fn places_out_of_reach_are_left_out_before_the_arm_moves() {
    for (origin, left) in [("[-0.2, -0.2, 0.005]", 5), ("[-0.05, -0.28, 0.005]", 4)] {
        let practice = Practice::new(0.005);
        let beside = |text: String| text.replace("[0.05, -0.125, 0.005]", origin);
        let text = beside(scene("short", "[[[0.0, 0.0], [5.0, 0.0]]]"));
        practice.0.scene("short", &text);
        std::fs::write(practice.0.path("truth/short.toml"), &text).unwrap();
        let felt = practice.align(r#"{"scene": "short", "touch": true}"#);
        let message = felt["message"].as_str().unwrap();
        assert!(message.contains("`upper right`"), "{felt:#}");
        if left == 5 {
            assert_eq!(felt["left_out"], 1, "{felt:#}");
            assert_eq!(felt["points"].as_array().unwrap().len(), left, "{felt:#}");
        } else {
            assert_eq!(felt["code"], "refused", "{felt:#}");
            assert!(message.contains("nothing moved"), "{felt:#}");
            let now = felt["now"].as_str().unwrap();
            assert!(now.contains("limp"), "{felt:#}");
        }
    }
}

#[test]
fn a_persons_touches_are_not_replaced_by_the_arms() {
    let practice = Practice::new(0.005);
    let joints = "--joints=0.1,-0.2,0.3,1.2,0";
    let (code, output) =
        practice
            .0
            .said(&["calibrate", "touch", "sheet", "--scene", "short", joints]);
    assert_eq!(code, 0, "{output}");
    for arguments in [
        r#"{"scene": "short", "touch": true}"#,
        r#"{"scene": "short", "measured": {"dx": 1}}"#,
    ] {
        let result = practice.align(arguments);
        assert_eq!(result["success"], false, "{result:#}");
        let message = result["message"].as_str().unwrap();
        assert!(
            message.contains("calibrate accept") && message.contains("nothing moved"),
            "{message}"
        );
    }
}

/// A reading of the cross would be written, and the touches beside it left out.
#[test]
fn a_persons_touches_are_not_added_to_what_was_proposed_without_any() {
    for arguments in [
        r#"{"scene": "short", "touch": true}"#,
        r#"{"scene": "short", "measured": {"dx": 1}}"#,
    ] {
        let practice = Practice::new(0.005);
        practice.draw_cross();
        let result = practice.align(arguments);
        assert_eq!(result["success"], true, "{result:#}");
        let (_, before) = practice.0.said(&["calibrate", "show"]);
        let joints = "--joints=0.1,-0.2,0.3,1.2,0";
        let touch = ["calibrate", "touch", "sheet", "--scene", "short", joints];
        let (code, output) = practice.0.said(&touch);
        assert!(code != 0 && output.contains("discard"), "{output}");
        assert_eq!(practice.0.said(&["calibrate", "show"]).1, before);
    }
}

/// A tip that presses from the start learns the sheet's resistance as if it were air.
#[test]
fn refuses_a_sheet_that_lies_higher_than_a_probe_can_tell_from_air() {
    for higher_mm in [6.0, 9.0] {
        let practice = Practice::new(0.005 + higher_mm / 1e3);
        let result = practice.align(r#"{"scene": "short", "touch": true}"#);
        assert_eq!(result["success"], false, "{higher_mm}: {result:#}");
        assert_eq!(result["code"], "early_contact", "{higher_mm}: {result:#}");
        assert_eq!(result["verdict"], "redo", "{higher_mm}: {result:#}");
        let next = result["next"].as_str().unwrap();
        assert!(
            next.contains("steadyhand calibrate touch sheet --scene short"),
            "{next}"
        );
        let (code, output) = practice.0.said(&["calibrate", "show"]);
        assert!(
            code != 0 && output.contains("steadyhand calibrate touch tool"),
            "{output}"
        );
    }
}

/// Within reach of a probe that has moved freely, a higher sheet is measured as well as a lower one.
#[test]
fn measures_a_sheet_that_lies_higher_within_the_reach_of_a_probe() {
    let practice = Practice::new(0.005 + 0.004);
    let result = practice.align(r#"{"scene": "short", "touch": true}"#);
    assert_eq!(result["success"], true, "{result:#}");
    for point in result["points"].as_array().unwrap() {
        let height = point["contact_height_mm"].as_f64().unwrap();
        assert!((height - 4.0).abs() < 0.4, "{result:#}");
    }
}

/// Two simulated arms of one node, over sheets of their own.
fn with_two_arms() -> Practice {
    let practice = Practice::new(0.005);
    let arm = |name| {
        format!(
            "[[arms]]\nname = \"{name}\"\nmodel = \"so101\"\nport = \"simulator\"\napart = true\n"
        )
    };
    std::fs::write(practice.0.path("node.toml"), arm("left") + &arm("right")).unwrap();
    practice
}

/// An accepted proposal moves such a sheet too: the next round finds the same again.
#[test]
fn a_simulated_sheet_that_follows_the_scene_is_said_to() {
    let practice = with_two_arms();
    let felt = practice.align(r#"{"arm": "left", "scene": "short", "touch": true}"#);
    assert_eq!(felt["success"], true, "{felt:#}");
    let hints = felt["usage_hints"].to_string();
    assert!(hints.contains("truth = "), "{hints}");
}

/// A correction that later ink gave means nothing on the sheet before it.
#[test]
fn restoring_an_earlier_sheet_takes_back_the_correction_since() {
    let practice = Practice::new(0.005);
    practice.draw_cross();
    let read = practice.align(r#"{"scene": "short", "measured": {"dx": 1}}"#);
    assert_eq!(read["success"], true, "{read:#}");
    let (_, shown) = practice.0.said(&["calibrate", "show"]);
    assert!(!shown.contains("(arm"), "the node has one: {shown}");
    assert_eq!(practice.0.said(&["calibrate", "accept"]).0, 0);
    let record = practice.0.path("state/calibration/000001.toml");
    let mut later: toml::Table = std::fs::read_to_string(record).unwrap().parse().unwrap();
    later.insert("number".to_owned(), 2.into());
    let line = |mm: f64| toml::Value::from(vec![0.0, mm, 0.0, 0.0, 0.0, 0.0]);
    for (values, mm) in [("old", 0.0), ("new", 1.0)] {
        let values = later[values].as_table_mut().unwrap();
        values.insert("correction.x_mm".to_owned(), line(mm));
        values.insert("correction.y_mm".to_owned(), line(0.0));
    }
    let record = practice.0.path("state/calibration/000002.toml");
    std::fs::write(record, toml::to_string(&later).unwrap()).unwrap();
    let file = practice.0.path("scenes/short.toml");
    let corrected = practice.file()
        + "\n[sheet.correction]\nx_mm = [0.0, 1.0, 0.0, 0.0, 0.0, 0.0]\ny_mm = [0.0, 0.0, 0.0, 0.0, 0.0, 0.0]\n";
    std::fs::write(&file, corrected).unwrap();
    let (code, said) = practice.0.said(&["calibrate", "restore", "1"]);
    assert_eq!(code, 0, "{said}");
    let scene: toml::Table = practice.file().parse().unwrap();
    let correction = scene["sheet"]["correction"]["x_mm"].as_array().unwrap();
    assert!(
        correction.iter().all(|mm| mm.as_float() == Some(0.0)),
        "{correction:?}"
    );
}

#[test]
fn an_arm_neither_replaces_nor_hides_what_another_has_measured() {
    let practice = with_two_arms();
    let read_by_left = r#"{"arm": "left", "scene": "short", "measured": {"dx": 1}}"#;
    let drawn = practice.align(r#"{"arm": "right", "scene": "short"}"#);
    assert_eq!(drawn["success"], true, "{drawn:#}");
    let refused = practice.align(read_by_left);
    assert_eq!(refused["code"], "no_cross", "the other arm's: {refused:#}");
    let drawn = practice.align(r#"{"arm": "left", "scene": "short"}"#);
    assert_eq!(drawn["success"], true, "{drawn:#}");
    let kept = practice.align(read_by_left);
    assert_eq!(kept["success"], true, "{kept:#}");
    let (_, shown) = practice.0.said(&["calibrate", "show"]);
    assert!(shown.contains("(arm `left`)"), "{shown}");
    for mode in [
        r#""touch": true"#,
        r#""ink": true"#,
        r#""measured": {"dx": 2}"#,
    ] {
        let refused = practice.align(&format!(r#"{{"arm": "right", "scene": "short", {mode}}}"#));
        assert_eq!(refused["success"], false, "{refused:#}");
        let message = refused["message"].as_str().unwrap();
        let says = ["by arm left)", "calibrate accept", "nothing moved"];
        assert!(says.iter().all(|part| message.contains(part)), "{message}");
        assert!(!message.contains("touches"), "{message}");
    }
    assert_eq!(practice.0.said(&["calibrate", "show"]).1, shown);
    let again = practice.align(r#"{"arm": "left", "scene": "short", "measured": {"dx": 2}}"#);
    assert_eq!(again["success"], true, "{again:#}");
}

#[test]
fn while_an_arm_feels_its_sheet_nothing_else_is_measured() {
    let practice = with_two_arms();
    let mut served = practice.0.serve(&[]);
    let host = served.host();
    let call = |arguments: &str| call_at(&host, "align", &serde_json::from_str(arguments).unwrap());
    std::thread::scope(|scope| {
        scope.spawn(|| call(r#"{"arm": "left", "scene": "short", "touch": true}"#));
        let claim = practice.0.path("state/calibration/claim");
        until("begun", || claim.exists(), |begun| *begun);
        for mode in [r#""touch": true"#, r#""measured": {"dx": 2}"#] {
            let refused = call(&format!(r#"{{"arm": "right", "scene": "short", {mode}}}"#));
            let message = refused["message"].as_str().unwrap();
            let says = ["arm left feels", "nothing moved"];
            assert!(says.iter().all(|part| message.contains(part)), "{message}");
        }
        let joints = "--joints=0.1,-0.2,0.3,1.2,0";
        let touch = ["calibrate", "touch", "sheet", "--scene", "short", joints];
        let output = practice.0.run(&touch);
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(
            !output.status.success() && said.contains("arm left feels"),
            "{said}"
        );
        let stopped = practice.0.run(&["stop"]);
        assert!(stopped.status.success(), "{stopped:?}");
    });
    assert!(served.child.terminate().is_some());
}
