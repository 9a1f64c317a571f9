//! Whole drawings by the simulated arm: on a bottle and filled with lines, each as long as planned.
#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "a failing test may panic"
)]

use crate::support;
use nalgebra::Vector3;
use serde_json::Value;
use std::fmt::Write;
use steadyhand::scene::{SceneLibrary, Surface};
use support::Bench;
use support::chance::Chance;

/// The estimate is within 3 % and 0.2 s of what the arm takes, and the ink within a millimetre.
fn check(scene: &str) -> Value {
    check_in(&Bench::at_test_rate(), scene)
}

fn check_in(bench: &Bench, scene: &str) -> Value {
    let (code, result) = bench.call(&["stroke", &format!("{{\"scene\": \"{scene}\"}}")]);
    assert_eq!(code, 0, "{result:#}");
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
    assert_eq!(result["code"], "plan_refused", "{result:#}");
    let message = result["message"].as_str().unwrap();
    assert!(message.contains("mesh"), "{result:#}");
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

/// Hills and hollows on a board, in millimetres: each one's middle, its radius and its height.
struct Hills(Vec<[f64; 4]>);

/// Place of the sheet's middle, and how far from it the design reaches.
const MIDDLE_MM: [f64; 2] = [50.0; 2];
const REACH_MM: f64 = 25.0;

impl Hills {
    fn new(chance: &mut Chance) -> Self {
        let hill = |_| {
            let [x, y] = [0, 1].map(|_| chance.between(0.0, 100.0));
            [x, y, chance.between(12.0, 20.0), chance.within(4.0)]
        };
        Self((0..14).map(hill).collect())
    }

    /// Returns the height of a place, its slopes along x and y, and how these change along x, across and along y.
    fn at(&self, [x, y]: [f64; 2]) -> [f64; 6] {
        self.0.iter().fold([0.0; 6], |sum, [a, b, radius, height]| {
            let square = radius * radius;
            let (u, v) = ((a - x) / square, (b - y) / square);
            let here = height * (-square * (u * u + v * v) / 2.0).exp();
            let terms = [1.0, u, v, u * u - 1.0 / square, u * v, v * v - 1.0 / square];
            std::array::from_fn(|term| sum[term] + here * terms[term])
        })
    }

    fn normal(&self, place: [f64; 2]) -> Vector3<f64> {
        let [_, along, across, ..] = self.at(place);
        Vector3::new(-along, -across, 1.0).normalize()
    }

    /// Returns the end of the geodesic that leaves the middle as a straight line on the sheet does, by its differential equation.
    fn geodesic(&self, [right, up]: [f64; 2]) -> Vector3<f64> {
        let normal = self.normal(MIDDLE_MM);
        let x = (Vector3::x() - normal * normal.x).normalize();
        let by = x * right + normal.cross(&x) * up;
        let change = |[x, y, dx, dy]: [f64; 4]| {
            let [_, along, across, xx, xy, yy] = self.at([x, y]);
            let bend = xx * dx * dx + 2.0 * xy * dx * dy + yy * dy * dy;
            let turn = -bend / (1.0 + along * along + across * across);
            [dx, dy, along * turn, across * turn]
        };
        let moved = |from: [f64; 4], by: [f64; 4], step: f64| {
            std::array::from_fn(|at| from[at] + by[at] * step)
        };
        let (steps, mut state) = (200, [MIDDLE_MM[0], MIDDLE_MM[1], by.x, by.y]);
        let step = 1.0 / f64::from(steps);
        for _ in 0..steps {
            let half = moved(state, change(state), step / 2.0);
            state = moved(state, change(half), step);
        }
        let [x, y, ..] = state;
        Vector3::new(x, y, self.at([x, y])[0])
    }

    /// Returns an OBJ of uneven triangles: each point is moved by up to a quarter of an edge, and each cell is cut along either of
    /// its diagonals.
    fn mesh(&self, chance: &mut Chance) -> String {
        let (edge_mm, count) = (2.5, 49);
        let mut mesh = String::new();
        for index in 0..count * count {
            let [x, y] = [index % count, index / count]
                .map(|step| edge_mm * (f64::from(step) + chance.within(0.25)) - 10.0);
            writeln!(mesh, "v {x} {y} {}", self.at([x, y])[0]).unwrap();
        }
        for index in (0..(count - 1) * count).filter(|index| index % count < count - 1) {
            let [a, b, c, d] = [1, 2, count + 2, count + 1].map(|by| index + by);
            let faces = match chance.uniform() < 0.5 {
                true => [[a, b, c], [a, c, d]],
                false => [[a, b, d], [b, c, d]],
            };
            for [a, b, c] in faces {
                writeln!(mesh, "f {a} {b} {c}").unwrap();
            }
        }
        mesh
    }
}

/// The leaf on hills of a seed: the ink beside its line, and the line beside the formula's geodesics.
#[test]
fn ink_on_hills_of_a_seed_lies_on_their_geodesics() {
    let bench = Bench::at_test_rate();
    let chance = &mut Chance(20_250_705);
    let hills = Hills::new(chance);
    let shipped = include_str!("../../scenes/bumpy.toml");
    let scene = shipped.replace("\"bumpy\"", "\"hills\"");
    bench.scene("hills", &scene.replace("bumpy.ply", "hills.obj"));
    std::fs::write(bench.path("scenes/hills.obj"), hills.mesh(chance)).unwrap();
    let scene = SceneLibrary::new(Some(bench.path("scenes")));
    let surface = &scene.scene("hills", None).unwrap().surface;
    let frame = *surface.mesh_frame().unwrap();
    let (mut image_mm, mut slope) = (0.0_f64, 0.0_f64);
    for step in 0..21 * 21 {
        let by = [step % 21, step / 21].map(|n| (f64::from(n) - 10.0) * 0.1 * REACH_MM);
        let at = surface.at([MIDDLE_MM[0] + by[0], MIDDLE_MM[1] + by[1]]);
        let point = frame.inverse_transform_point(&at.point_m).coords * 1e3;
        let normal = hills.normal([point.x, point.y]);
        let off_deg = at.normal.angle(&(frame.rotation * normal)).to_degrees();
        assert!(off_deg < 5.0, "{by:?}: {off_deg}°");
        image_mm = image_mm.max((point - hills.geodesic(by)).norm());
        slope = slope.max(normal.angle(&Vector3::z()).tan());
    }
    assert!(slope > 0.25, "slopes of {slope} are hardly hills");
    let ink_mm = check_in(&bench, "hills")["deviation_mm_p95"].as_f64();
    let ink_mm = ink_mm.unwrap();
    assert!(ink_mm + image_mm < 0.5, "{ink_mm} and {image_mm} mm off");
}
