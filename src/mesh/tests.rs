//! Meshes of known shapes against their closed forms, broken files, and what the gate relies on.
#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::cast_possible_truncation,
    reason = "a failing test may panic"
)]

use std::fmt::Write;

use nalgebra::{Point3, Vector3};
use proptest::prelude::*;
use std::sync::LazyLock;

use super::test_shapes::{
    SHEET_MM, ball, ball_at, bumps, cylinder, cylinder_at, grid, patch, plane, ring, ring_geodesic,
    uneven_ball,
};
use super::*;

/// Places within a circle.
fn places(radius_mm: f64) -> Vec<[f64; 2]> {
    let steps = || (-12..=12).map(|n| f64::from(n) / 12.0 * radius_mm);
    let all = steps().flat_map(|x| steps().map(move |y| [x, y]));
    all.filter(|[x, y]| x.hypot(*y) <= radius_mm).collect()
}

/// Returns the largest distance of a patch's points from those of a closed form, in mm.
fn largest_mm(patch: &MeshPatch, closed: impl Fn([f64; 2]) -> Point3<f64>) -> f64 {
    let distances = places(35.0).into_iter().map(|place| {
        assert!(patch.is_on(place), "{place:?}");
        (patch.at(place).point_m - closed(place)).norm() * 1e3
    });
    distances.fold(0.0, f64::max)
}

#[test]
fn a_plane_is_laid_out_exactly() {
    let patch = patch(&plane(40)).unwrap();
    let flat = |[x, y]: [f64; 2]| Point3::new(x / 1e3, y / 1e3, 0.0);
    let largest = largest_mm(&patch, flat);
    assert!(largest < 2e-3, "{largest} mm");
}

#[test]
fn a_cylinder_a_ball_and_a_ring_are_laid_out_within_a_tenth() {
    let cylinder = largest_mm(&patch(&cylinder(60)).unwrap(), cylinder_at);
    let ball = largest_mm(&patch(&ball(80)).unwrap(), ball_at);
    let ring = largest_mm(&patch(&ring(80)).unwrap(), ring_geodesic);
    assert!(cylinder < 0.02, "cylinder {cylinder} mm");
    assert!(ball < 0.04, "ball {ball} mm");
    assert!(ring < 0.04, "ring {ring} mm");
}

#[test]
fn uneven_triangles_lay_a_ball_out_as_well() {
    let largest = largest_mm(&patch(&uneven_ball(80)).unwrap(), ball_at);
    assert!(largest < 0.1, "{largest} mm");
}

static BUMPS: LazyLock<[MeshPatch; 2]> =
    LazyLock::new(|| [1, 2].map(|seed| patch(&bumps(60, seed)).unwrap()));

proptest! {
    #[test]
    fn projection_is_the_inverse_of_placing(
        x in -30.0..30.0_f64, y in -30.0..30.0_f64, h in -0.5..3.0_f64, seed in 0..2_usize,
    ) {
        let patch = &BUMPS[seed];
        let at = patch.at([x, y]);
        let over = patch.project(&(at.point_m + at.normal.scale(h / 1e3)));
        let off_mm = (over.at_mm[0] - x).hypot(over.at_mm[1] - y);
        prop_assert!(over.is_on_mesh && off_mm < 0.02 + 0.06 * h.abs(), "{over:?}");
        prop_assert!((over.height_mm - h).abs() < 0.02 + 0.01 * h.abs(), "{over:?}");
        prop_assert!(at.normal.dot(&at.x).abs() < 1e-9);
    }

    /// The gate skips what is higher than it can fall.
    #[test]
    fn heights_differ_by_no_more_than_the_distance(
        from in prop::array::uniform3(-0.03..0.03_f64), by in prop::array::uniform3(-0.01..0.01_f64), seed in 0..2_usize,
    ) {
        let patch = &BUMPS[seed];
        let from = Point3::from(from);
        let to = from + Vector3::from(by);
        let [one, other] = [from, to].map(|point| patch.project(&point));
        prop_assume!(one.is_on_mesh && other.is_on_mesh);
        prop_assert!((one.height_mm - other.height_mm).abs() <= (to - from).norm() * 1e3 + 1e-9);
    }

    /// Beyond the edge too, so that no point of the mesh is nearer than a height says.
    #[test]
    fn no_height_is_more_than_the_distance_from_the_mesh(at in prop::array::uniform3(-0.1..0.1_f64)) {
        let (patch, at) = (&BUMPS[0], Point3::from(at));
        let corners = patch.triangles().flatten();
        let nearest = corners.map(|corner| (corner - at).norm() * 1e3).fold(f64::INFINITY, f64::min);
        prop_assert!(patch.project(&at).height_mm.abs() <= nearest + 1e-9);
    }
}

/// At an edge of a triangle a tip would have to turn at once by up to 0.1 rad.
#[test]
fn a_line_over_triangles_turns_little_by_little() {
    let patch = patch(&bumps(30, 1)).unwrap();
    let at = |n: i32| patch.at([f64::from(n) * 0.05 - 30.0, 7.0]);
    for n in 1..1199 {
        let [from, here, to] = [n - 1, n, n + 1].map(|n| at(n).point_m);
        let turn_rad = (here - from).angle(&(to - here));
        assert!(turn_rad < 0.004, "{turn_rad} rad at {n}");
    }
}

/// A tool turns with a bottle, and not with every bump.
#[test]
fn a_tool_is_held_by_the_shape_without_its_bumps() {
    let [round, bumpy] = [cylinder(60), bumps(60, 1)].map(|file| patch(&file).unwrap());
    for place in places(20.0) {
        let at = round.at(place);
        assert!(at.hold.angle(&at.normal) < 0.05, "{place:?} {at:?}");
        assert!(bumpy.at(place).hold.z > 0.98, "{place:?}");
    }
}

#[test]
fn the_edge_continues_flat() {
    let patch = patch(&plane(20)).unwrap();
    for place in [[60.0, 0.0], [-70.0, 20.0], [10.0, 55.0], [60.0, 60.0]] {
        let at = patch.at(place);
        assert!(!patch.is_on(place), "{place:?}");
        let flat = Point3::new(place[0] / 1e3, place[1] / 1e3, 0.0);
        assert!((at.point_m - flat).norm() < 1e-5, "{place:?} {at:?}");
        let over = patch.project(&(at.point_m + at.normal.scale(0.004)));
        assert!(
            (over.height_mm - 4.0).abs() < 1e-6 && !over.is_on_mesh,
            "{over:?}"
        );
        assert!(
            (over.at_mm[0] - place[0]).hypot(over.at_mm[1] - place[1]) < 1e-2,
            "{over:?}"
        );
        let under = patch.project(&(at.point_m - at.normal.scale(0.004)));
        assert!((under.height_mm + 4.0).abs() < 1e-6, "{under:?}");
    }
}

#[test]
fn normals_are_those_of_the_shape() {
    let patch = patch(&ball(80)).unwrap();
    for place in places(35.0) {
        let towards = ball_at(place).coords + Vector3::z() * super::test_shapes::BALL_M;
        let off_deg = patch.at(place).normal.angle(&towards).to_degrees();
        assert!(off_deg < 0.5, "{place:?} {off_deg}");
    }
}

/// A whole ball, as text of an OBJ file; the poles are points.
fn whole_ball(turned: bool) -> String {
    let (rows, columns) = (24, 48);
    let mut text = "v 0 0 30\n".to_owned();
    for row in 1..rows {
        let polar = f64::from(row) / f64::from(rows) * std::f64::consts::PI;
        for column in 0..columns {
            let around = f64::from(column) / f64::from(columns) * std::f64::consts::TAU;
            let [x, y] = [around.cos(), around.sin()].map(|part| 30.0 * part * polar.sin());
            writeln!(text, "v {x} {y} {}", 30.0 * polar.cos()).unwrap();
        }
    }
    text += "v 0 0 -30\n";
    let index = |row: i32, column: i32| match row {
        0 => 1,
        row if row == rows => 2 + (rows - 1) * columns,
        row => 2 + (row - 1) * columns + column % columns,
    };
    for row in 0..rows {
        for column in 0..columns {
            let [a, b, c, d] = [
                index(row, column),
                index(row + 1, column),
                index(row + 1, column + 1),
                index(row, column + 1),
            ];
            let face = if turned { [a, d, c, b] } else { [a, b, c, d] };
            if a == d {
                writeln!(
                    text,
                    "f {} {} {}",
                    face[0],
                    face[1 + usize::from(turned)],
                    face[2 + usize::from(turned)]
                )
                .unwrap();
            } else if b == c {
                writeln!(
                    text,
                    "f {a} {} {}",
                    if turned { d } else { b },
                    if turned { b } else { d }
                )
                .unwrap();
            } else {
                writeln!(text, "f {} {} {} {}", face[0], face[1], face[2], face[3]).unwrap();
            }
        }
    }
    text
}

fn patch_of(name: &str, bytes: &[u8], unit_m: f64) -> Result<MeshPatch, MeshError> {
    let file = read(name, bytes)?;
    let middle = MeshAnchor::Above { xy_m: [0.001; 2] };
    let clean = CleanMesh::new(&file, unit_m, &middle)?;
    MeshPatch::new(clean, &Vector3::x(), SHEET_MM)
}

#[test]
fn the_outside_of_a_closed_mesh_is_up_whichever_way_it_was_written() {
    for turned in [false, true] {
        let patch = patch_of("ball.obj", whole_ball(turned).as_bytes(), 1e-3).unwrap();
        assert_eq!(
            patch.report().turned,
            if turned { patch.report().triangles } else { 0 }
        );
        for at in [[0.0, 0.0, 0.04], [0.04, 0.0, 0.0], [0.0, 0.0, -0.04]] {
            let found = patch.project(&Point3::from(at));
            assert!(
                (found.height_mm - 10.0).abs() < 0.1 && found.is_on_mesh,
                "{found:?}"
            );
        }
        assert!(patch.project(&Point3::new(0.0, 0.0, 0.01)).height_mm < -19.0);
        // The far side is as far away as it is around the ball.
        let far = patch.project(&Point3::new(0.001, 0.002, -0.04)).at_mm;
        let far_mm = far[0].hypot(far[1]);
        assert!(far_mm > 85.0, "{far_mm}");
        assert!(!patch.is_on([95.0, 0.0]));
    }
}

fn to_stl(file: &FilePoints) -> Vec<u8> {
    let mut bytes = vec![0; 80];
    bytes.extend((file.triangles.len() as u32).to_le_bytes());
    for corners in &file.triangles {
        bytes.extend([0; 12]);
        for corner in corners {
            for value in file.points[*corner as usize].iter() {
                bytes.extend((*value as f32).to_le_bytes());
            }
        }
        bytes.extend([0; 2]);
    }
    bytes
}

fn to_text_stl(file: &FilePoints) -> String {
    let mut text = "solid test\n".to_owned();
    for corners in &file.triangles {
        text += "facet normal 0 0 0\nouter loop\n";
        for corner in corners {
            let [x, y, z]: [f64; 3] = file.points[*corner as usize].coords.into();
            writeln!(text, "vertex {x} {y} {z}").unwrap();
        }
        text += "endloop\nendfacet\n";
    }
    text + "endsolid test\n"
}

fn to_obj(file: &FilePoints) -> String {
    let mut text = "# test\no it\n".to_owned();
    for point in &file.points {
        writeln!(text, "v {} {} {}", point.x, point.y, point.z).unwrap();
    }
    let count = file.points.len() as i64;
    for (number, corners) in file.triangles.iter().enumerate() {
        let [a, b, c] = corners.map(i64::from);
        match number % 2 {
            0 => writeln!(text, "f {}/1/1 {}//2 {}", a + 1, b + 1, c + 1).unwrap(),
            _ => writeln!(text, "f {} {} {}", a - count, b - count, c - count).unwrap(),
        }
    }
    text
}

fn to_ply(file: &FilePoints, form: &str) -> Vec<u8> {
    let mut bytes = format!(
        "ply\nformat {form} 1.0\ncomment test\nelement vertex {}\nproperty float x\nproperty uchar red\nproperty double y\nproperty float z\nelement face {}\nproperty list uchar int vertex_indices\nelement edge 1\nproperty short a\nend_header\n",
        file.points.len(),
        file.triangles.len()
    )
    .into_bytes();
    let mut put = |low_first: &[u8], text: String| match form {
        "ascii" => bytes.extend(format!("{text} ").bytes()),
        "binary_little_endian" => bytes.extend(low_first),
        _ => bytes.extend(low_first.iter().rev()),
    };
    for point in &file.points {
        let [x, y, z] = [point.x, point.y, point.z];
        put(&(x as f32).to_le_bytes(), x.to_string());
        put(&[7], "7".to_owned());
        put(&y.to_le_bytes(), y.to_string());
        put(&(z as f32).to_le_bytes(), z.to_string());
    }
    for corners in &file.triangles {
        put(&[3], "3".to_owned());
        for corner in corners {
            put(&corner.to_le_bytes(), corner.to_string());
        }
    }
    put(&[1, 0], "1".to_owned());
    bytes
}

#[test]
fn all_formats_say_the_same() {
    let file = bumps(20, 3);
    let expected = patch(&file).unwrap();
    let files = [
        ("a.stl", to_stl(&file)),
        ("a.STL", to_text_stl(&file).into_bytes()),
        ("a.obj", to_obj(&file).into_bytes()),
        ("a.ply", to_ply(&file, "ascii")),
        ("b.ply", to_ply(&file, "binary_little_endian")),
        ("c.ply", to_ply(&file, "binary_big_endian")),
    ];
    for (name, bytes) in files {
        let middle = MeshAnchor::Above { xy_m: [0.0; 2] };
        let read = read(name, &bytes).unwrap();
        let clean = CleanMesh::new(&read, 1.0, &middle).unwrap();
        let is_stl = name.to_lowercase().ends_with("stl");
        assert_eq!(clean.report.welded > 0, is_stl, "{name}");
        let patch = MeshPatch::new(clean, &Vector3::x(), SHEET_MM).unwrap();
        for place in places(30.0) {
            let [one, other] = [&expected, &patch].map(|patch| patch.at(place).point_m);
            assert!(
                (one - other).norm() < 2e-6,
                "{name} {place:?} {one} {other}"
            );
        }
    }
}

/// Headers as programs of depth cameras and of scans write them, each with the types of its values: `f`loat, `d`ouble, `u`char.
const SCANNERS: [(&str, &str); 6] = [
    (
        "ply\nformat binary_little_endian 1.0\ncomment pointcloud saved from Realsense Viewer\nelement vertex N\nproperty float32 x\nproperty float32 y\nproperty float32 z\nproperty uchar red\nproperty uchar green\nproperty uchar blue\nend_header\n",
        "fffuuu",
    ),
    (
        "ply\nformat binary_little_endian 1.0\ncomment Created by Open3D\nelement vertex N\nproperty double x\nproperty double y\nproperty double z\nproperty double nx\nproperty double ny\nproperty double nz\nproperty uchar red\nproperty uchar green\nproperty uchar blue\nend_header\n",
        "dddddduuu",
    ),
    (
        "ply\nformat ascii 1.0\ncomment Created by Open3D\nelement vertex N\nproperty double x\nproperty double y\nproperty double z\nend_header\n",
        "ddd",
    ),
    (
        "ply\nformat binary_little_endian 1.0\ncomment Created by CloudCompare v2.13.1\ncomment Created 11/29/26 4:54 PM\nobj_info Generated by CloudCompare!\nelement vertex N\nproperty double x\nproperty double y\nproperty double z\nproperty uchar red\nproperty uchar green\nproperty uchar blue\nproperty float scalar_Intensity\nend_header\n",
        "ddduuuf",
    ),
    (
        "ply\nformat binary_little_endian 1.0\ncomment VCGLIB generated\nelement vertex N\nproperty float x\nproperty float y\nproperty float z\nproperty uchar red\nproperty uchar green\nproperty uchar blue\nproperty uchar alpha\nproperty float quality\nelement face 0\nproperty list uchar int vertex_indices\nend_header\n",
        "fffuuuuf",
    ),
    (
        "ply\r\nformat binary_big_endian 1.0\r\nobj_info num_cols 8\r\nobj_info num_rows 8\r\nelement vertex N\r\nproperty uchar confidence\r\nproperty float x\r\nproperty float y\r\nproperty float z\r\nend_header\r\n",
        "ufff",
    ),
];

/// A scan as a program with this header writes it. Its places begin at the first value that is no `u`char.
fn to_scan(points: &[Point3<f64>], (header, types): (&str, &str)) -> Vec<u8> {
    let mut bytes = header.replace('N', &points.len().to_string()).into_bytes();
    for point in points {
        let mut place = point.iter().copied();
        for kind in types.chars() {
            let value = if kind == 'u' {
                200.0
            } else {
                place.next().unwrap_or(0.5)
            };
            let mut low_first = match kind {
                'u' => vec![200],
                'f' => (value as f32).to_le_bytes().to_vec(),
                _ => value.to_le_bytes().to_vec(),
            };
            if header.contains("big_endian") {
                low_first.reverse();
            }
            match header.contains("ascii") {
                true => bytes.extend(format!("{value} ").bytes()),
                false => bytes.extend(low_first),
            }
        }
    }
    bytes
}

#[test]
fn scans_are_read_as_depth_cameras_and_their_programs_write_them() {
    let mut points: Vec<Point3<f64>> = bumps(80, 3).points.iter().map(|at| at * 1e3).collect();
    let all = points.len();
    // Pixels without a depth.
    points[7].z = f64::NAN;
    points[9] = Point3::from([f64::INFINITY; 3]);
    let around_m = [[-0.1; 2], [0.1; 2]];
    for scanner in SCANNERS {
        let read = read("scan.ply", &to_scan(&points, scanner)).unwrap();
        assert!(read.is_scan(), "{scanner:?}");
        let (made, report) = read.scanned(1e-3, around_m).unwrap();
        assert_eq!((report.points, report.unseen), (all - 2, 2), "{scanner:?}");
        let made = patch(&made).unwrap();
        let truth = &BUMPS_3;
        for place in places(20.0) {
            let at = made.at(place).point_m;
            let off_mm = truth.project(&at).height_mm;
            assert!(off_mm.abs() < 0.1, "{scanner:?} {place:?} {off_mm}");
        }
    }
}

static BUMPS_3: LazyLock<MeshPatch> = LazyLock::new(|| patch(&bumps(80, 3)).unwrap());

fn replaced(file: &FilePoints, change: impl FnOnce(&mut FilePoints)) -> FilePoints {
    let mut changed = file.clone();
    change(&mut changed);
    changed
}

#[test]
fn small_defects_are_cleaned_and_counted() {
    let file = bumps(20, 3);
    let count = file.triangles.len();
    let turned = replaced(&file, |file| file.triangles[100].swap(0, 1));
    let doubled = replaced(&file, |file| {
        file.points
            .push(file.points[50] + Vector3::new(4e-7, 0.0, -4e-7));
        let last = file.points.len() as u32 - 1;
        for corners in file.triangles.iter_mut().skip(40).take(60) {
            *corners = corners.map(|corner| if corner == 50 { last } else { corner });
        }
        file.triangles.push(file.triangles[7]);
    });
    let holed = replaced(&plane_of(0.02), |file| {
        file.triangles.remove(300);
    });
    let specks = replaced(&file, |file| {
        let first = file.points.len() as u32;
        let speck = [[0.0, 0.0, 0.02], [0.001, 0.0, 0.02], [0.0, 0.001, 0.02]];
        file.points
            .extend(speck.map(|at| Point3::from(at) + Vector3::x() * 0.02));
        file.triangles.push([first, first + 1, first + 2]);
    });
    let report = |file: &FilePoints| patch(file).unwrap().report().clone();
    assert_eq!(report(&turned).turned, 1);
    assert_eq!(report(&doubled).welded, 1);
    assert_eq!(report(&doubled).dropped, 1);
    assert_eq!(report(&holed).filled, 1);
    assert_eq!(report(&specks).left_out, 1);
    assert_eq!(
        report(&file),
        MeshReport {
            triangles: count,
            ..MeshReport::default()
        }
    );
    assert_eq!(report(&specks).lines().len(), 1);
    // The mended mesh is a surface as before.
    let patch = patch(&turned).unwrap();
    for place in places(30.0) {
        assert!(patch.is_on(place));
        assert!(patch.at(place).normal.z > 0.5);
    }
}

fn plane_of(half_m: f64) -> FilePoints {
    grid(20, |u, v| Point3::new(u * half_m, v * half_m, 0.0))
}

#[test]
fn broken_files_are_refused_by_place() {
    let file = bumps(20, 3);
    let refused = |name: &str, bytes: &[u8]| patch_of(name, bytes, 1.0).unwrap_err();
    let claimed = "ply\nformat binary_little_endian 1.0\nelement vertex 1000000000\nproperty float x\nproperty float y\nproperty float z\nend_header\n";
    assert!(matches!(
        refused("a.ply", claimed.as_bytes()),
        MeshError::TooMany {
            count: 1_000_000_000,
            ..
        }
    ));
    let faces = claimed.replace("1000000000", "10");
    assert!(matches!(
        refused("a.ply", faces.as_bytes()),
        MeshError::CutOff {
            number: 1,
            count: 10,
            ..
        }
    ));
    let empty_rows = "ply\nformat ascii 1.0\nelement nothing 99999999999\nend_header\n";
    assert!(matches!(
        refused("a.ply", empty_rows.as_bytes()),
        MeshError::Line { .. }
    ));
    let others = "ply\nformat ascii 1.0\nelement other 99999999999\nproperty list int int many\nend_header\n99999999 1 2 3\n";
    assert!(matches!(
        refused("a.ply", others.as_bytes()),
        MeshError::CutOff { number: 1, .. }
    ));
    let mut stl = to_stl(&file);
    stl.truncate(stl.len() - 60);
    assert!(matches!(
        refused("a.stl", &stl),
        MeshError::CutOff {
            number: 799,
            count: 800,
            ..
        }
    ));
    let mut claimed_stl = to_stl(&file);
    claimed_stl[80..84].copy_from_slice(&u32::MAX.to_le_bytes());
    assert!(matches!(
        refused("a.stl", &claimed_stl),
        MeshError::TooMany { .. }
    ));
    assert!(matches!(refused("a.stl", b""), MeshError::CutOff { .. }));
    assert!(matches!(refused("a.step", b"ISO"), MeshError::Format));
    assert!(matches!(
        refused("a.obj", b"v 0 0\n"),
        MeshError::Line { line: 1, .. }
    ));
    assert!(matches!(
        refused("a.obj", b"v 0 0 0\nf 1 2 3\n"),
        MeshError::Index {
            index: 2,
            points: 1,
            ..
        }
    ));
    assert!(matches!(
        refused("a.obj", b"v 0 nan 0\n"),
        MeshError::NotFinite { number: 1 }
    ));
    assert!(matches!(
        refused("a.obj", b"v 0 0 0\n"),
        MeshError::NoTriangle { points: 1 }
    ));
}

#[test]
fn surfaces_that_have_no_side_are_refused_by_place() {
    let file = bumps(20, 3);
    let refused = |file: &FilePoints| patch(file).unwrap_err();
    let flat = grid(20, |u, _| Point3::new(u * 0.04, u * 0.04, 0.0));
    assert!(matches!(refused(&flat), MeshError::Flat { .. }));
    let large = grid(20, |u, v| Point3::new(u * 40.0, v * 40.0, 0.0));
    assert!(matches!(refused(&large), MeshError::Size { .. }));
    let aside = grid(20, |u, v| Point3::new(0.1 + u * 0.04, v * 0.04, 0.0));
    assert!(matches!(refused(&aside), MeshError::Misses { .. }));
    let wall = replaced(&file, |file| {
        file.points.push(Point3::new(0.0, 0.0, 0.05));
        let last = file.points.len() as u32 - 1;
        file.triangles
            .push([file.triangles[200][0], file.triangles[200][1], last]);
    });
    assert!(matches!(
        refused(&wall),
        MeshError::SharedEdge { triangles: 3, .. }
    ));
    let strip = grid(40, |u, v| {
        let (around, half) = (u * std::f64::consts::PI, u * std::f64::consts::FRAC_PI_2);
        let out = 0.05 + 0.01 * v * half.cos();
        Point3::new(
            out * around.cos() - 0.05,
            out * around.sin(),
            0.01 * v * half.sin(),
        )
    });
    assert!(matches!(refused(&strip), MeshError::OneSided { .. }));
    // A sheet that curls through itself.
    let curl = grid(40, |u, v| {
        let t = u * 2.2;
        Point3::new(
            0.01 * (t * t * t - 3.0 * t),
            0.03 * v,
            0.02 * (t * t - 1.0) + 0.001 * v,
        )
    });
    assert!(matches!(refused(&curl), MeshError::Crosses { .. }));
    let upright = grid(20, |u, v| Point3::new(0.001 * v, u * 0.04, v * 0.04));
    assert!(matches!(refused(&upright), MeshError::UnknownSide { .. }));
    let off = MeshAnchor::Nearest(Point3::new(0.0, 0.0, 0.2));
    let off = CleanMesh::new(&file, 1.0, &off).unwrap_err();
    assert!(matches!(off, MeshError::OffMesh { .. }), "{off}");
    let clean = CleanMesh::new(&file, 1.0, &MeshAnchor::Above { xy_m: [0.0; 2] }).unwrap();
    let normal = clean.mesh.area_vector(clean.seed.triangle);
    assert_eq!(
        MeshPatch::new(clean, &normal, SHEET_MM).unwrap_err(),
        MeshError::Direction
    );
}

/// Behind a hole the shortest ways come from both of its sides.
#[test]
fn behind_a_hole_nothing_is_on_the_mesh_and_beside_it_it_is_smooth() {
    let (at, radius) = (Point3::new(0.015, 0.004, 0.0), 0.005);
    let holed = replaced(&plane(80), |file| {
        let points = file.points.clone();
        let is_kept = |corner: &u32| (points[*corner as usize] - at).norm() > radius;
        file.triangles.retain(|corners| corners.iter().all(is_kept));
    });
    let patch = patch(&holed).unwrap();
    let mut hidden = 0;
    for place in places(38.0) {
        let point = patch.at(place);
        assert!(point.hold.z > 0.98, "{place:?} {point:?}");
        let [x, y] = patch.project(&point.point_m).at_mm;
        let off_mm = (x - place[0]).hypot(y - place[1]);
        match patch.is_on(place) {
            true => assert!(off_mm < 0.7 && point.normal.z > 0.99, "{place:?} {off_mm}"),
            false => hidden += 1,
        }
    }
    assert!((10..60).contains(&hidden), "{hidden}");
}

#[test]
fn where_geodesics_cross_no_place_is_on_the_mesh() {
    // A narrow peak: behind it the shortest ways come from both sides.
    let peak = grid(80, |u, v| {
        let (x, y) = (u * 0.04 - 0.012, v * 0.04);
        Point3::new(
            u * 0.04,
            v * 0.04,
            0.02 * (-(x * x + y * y) / (2.0 * 0.004 * 0.004)).exp(),
        )
    });
    let patch = patch(&peak).unwrap();
    let on = places(30.0)
        .into_iter()
        .filter(|place| patch.is_on(*place))
        .count();
    let all = places(30.0).len();
    assert!(on < all && on * 2 > all, "{on} of {all}");
    assert!((0..10).any(|n| !patch.is_on([24.0 + f64::from(n), 0.3])));
}
