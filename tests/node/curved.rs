//! Whole drawings by the simulated arm: on a bottle and filled with lines, each as long as planned.
#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "a failing test may panic"
)]

use crate::support;
use nalgebra::Vector3;
use serde_json::Value;
use steadyhand::scene::{SceneLibrary, Surface};
use support::Bench;

fn drawn(scene: &str) -> Value {
    let (code, result) =
        Bench::at_test_rate().call(&["stroke", &format!("{{\"scene\": \"{scene}\"}}")]);
    assert_eq!(code, 0, "{result:#}");
    result
}

/// The estimate is within 3 % and 0.2 s of what the arm takes, and the ink within a millimetre.
fn check(scene: &str) -> Value {
    let result = drawn(scene);
    let figure = |name: &str| result[name].as_f64().unwrap();
    let (planned_s, took_s) = (figure("planned_s"), figure("arm_time_s"));
    assert!(
        (took_s - planned_s).abs() <= 0.2 + 0.03 * planned_s,
        "{scene}: {planned_s} s planned, {took_s} s taken"
    );
    let most_mm = figure("deviation_mm_max");
    assert!(most_mm <= 1.0, "{scene}: {most_mm} mm from the design");
    result
}

#[test]
fn the_practice_drawing_takes_as_long_as_planned() {
    check("default");
}

#[test]
fn a_bottle_is_drawn_on() {
    check("bottle");
}

#[test]
fn a_bumpy_mesh_is_drawn_on() {
    let result = check("bumpy");
    let most_mm = result["deviation_mm_p95"].as_f64().unwrap();
    assert!(most_mm <= 0.5, "{most_mm} mm from the design");
}

#[test]
fn a_filled_design_is_drawn() {
    check("hatched");
}

/// A bench with the scene `scanned`: a cross on a scan of a wavy board, which has points where `is_seen`.
fn scanned(is_seen: impl Fn(f64, f64) -> bool) -> Bench {
    let at = |step: u32| 0.8 * f64::from(step) - 10.0;
    let point = |index: u32| {
        let (x, y) = (at(index % 150), at(index / 150));
        let noise = 0.3 * ((f64::from(index) * 12.9898).sin() * 43_758.545_3).fract();
        let height = 2.0 * (x / 20.0).sin() * (y / 25.0).cos() + noise;
        is_seen(x, y).then(|| format!("{x:.3} {y:.3} {height:.4}"))
    };
    let points: Vec<String> = (0..150 * 150).filter_map(point).collect();
    let header = format!(
        "ply\nformat ascii 1.0\nelement vertex {}\nproperty float x\nproperty float y\nproperty float z\nend_header\n",
        points.len()
    );
    let bench = Bench::at_test_rate();
    let cross = "[[[0.0, 25.0], [50.0, 25.0]], [[25.0, 0.0], [25.0, 50.0]]]";
    let scene = support::scene("scanned", cross);
    let surface = "\n[surface]\nmesh = \"scan.ply\"\nunit = \"mm\"\n\n[limits]\nstretch = 0.1\n";
    bench.scene("scanned", &(scene + surface));
    std::fs::create_dir_all(bench.path("scenes/meshes")).unwrap();
    let file = header + &points.join("\n") + "\n";
    std::fs::write(bench.path("scenes/meshes/scan.ply"), file).unwrap();
    bench
}

#[test]
fn a_scan_of_points_alone_is_drawn_on() {
    let (code, result) = scanned(|_, _| true).call(&["stroke", r#"{"scene": "scanned"}"#]);
    assert_eq!(code, 0, "{result:#}");
    let most_mm = result["deviation_mm_p95"].as_f64().unwrap();
    assert!(most_mm <= 0.5, "{result:#}");
}

#[test]
fn a_line_over_a_place_that_a_scan_does_not_show_is_refused() {
    let is_seen = |x: f64, y: f64| (x - 68.0).hypot(y - 50.0) > 5.0;
    let (code, result) = scanned(is_seen).call(&["stroke", r#"{"scene": "scanned"}"#]);
    assert_eq!(code, 1, "{result:#}");
    let message = result["message"].as_str().unwrap();
    assert!(message.contains("badly scanned place"), "{result:#}");
}

/// Every place of two sheets and how far apart they have it: points in mm, normals in degrees.
fn apart(one: &Surface, other: &Surface) -> (f64, f64) {
    let [width_mm, height_mm] = one.size_mm();
    let steps = || (0..=40).map(|n| f64::from(n) / 40.0);
    let places = steps().flat_map(|x| steps().map(move |y| [x * width_mm, y * height_mm]));
    places.fold((0.0, 0.0), |(mm, deg), place| {
        let [one, other] = [one, other].map(|surface| surface.at(place));
        let off_mm = (one.point_m - other.point_m).norm() * 1e3;
        let off_deg = one.normal.angle(&other.normal).to_degrees();
        (off_mm.max(mm), off_deg.max(deg))
    })
}

#[test]
fn a_mesh_of_the_bottle_has_every_place_where_the_bottle_has_it() {
    let bench = Bench::at_test_rate();
    let (radius_mm, middle_mm) = (45.0, 20.0);
    let at = |column: u32, row: u32| {
        let angle = (f64::from(column) * 1.5 - 45.0) / radius_mm;
        let [x, z] = [
            middle_mm + radius_mm * angle.sin(),
            radius_mm * (angle.cos() - 1.0),
        ];
        format!("v {x} {} {z}\n", f64::from(row) * 1.5 - 15.0)
    };
    let points = (0..67).flat_map(|row| (0..61).map(move |column| at(column, row)));
    let faces = (0..66).flat_map(|row| {
        (1..61).map(move |column| {
            let first = row * 61 + column;
            format!("f {first} {} {} {}\n", first + 1, first + 62, first + 61)
        })
    });
    let mesh: String = points.chain(faces).collect();
    let shipped = include_str!("../../scenes/bottle.toml");
    let meshed = shipped
        .replace("name = \"bottle\"", "name = \"glass\"")
        .replace("cylinder_radius_mm = 45.0\n", "")
        + "\n[surface]\nmesh = \"glass.obj\"\nunit = \"mm\"\n";
    bench.scene("glass", &meshed);
    std::fs::write(bench.path("scenes/glass.obj"), mesh).unwrap();
    let library = SceneLibrary::new(Some(bench.path("scenes")));
    let [bottle, glass] = ["bottle", "glass"].map(|name| library.scene(name, None).unwrap());
    let (off_mm, off_deg) = apart(&bottle.surface, &glass.surface);
    assert!(off_mm < 0.1 && off_deg < 0.5, "{off_mm} mm, {off_deg}°");
}

/// The formula stands in the scene's file.
#[test]
fn normals_of_the_bumpy_board_are_those_of_its_formula() {
    let scene = SceneLibrary::new(None).scene("bumpy", None).unwrap();
    let frame = *scene.surface.mesh_frame().unwrap();
    for step in 0..41 * 41 {
        let place = [step % 41, step / 41].map(|n| f64::from(n) * 2.5);
        let at = scene.surface.at(place);
        let [x, y, _] = <[f64; 3]>::from(frame.inverse_transform_point(&at.point_m).coords * 1e3);
        let wave = 0.6 / 7.0 * ((x + y) / 7.0).cos();
        let along = 2.5 / 12.0 * (x / 12.0).cos() * (y / 14.0).cos() + wave;
        let across = -2.5 / 14.0 * (x / 12.0).sin() * (y / 14.0).sin() + wave;
        let normal = frame.rotation * Vector3::new(-along, -across, 1.0);
        let off_deg = at.normal.angle(&normal).to_degrees();
        assert!(off_deg < 5.0, "{place:?} {off_deg}°");
    }
}
