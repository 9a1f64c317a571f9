//! Tests with exact corners, wrong corners and meaningless corners.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a failing test may panic"
)]

use nalgebra::{Isometry3, Point3, Translation3, UnitQuaternion, Vector3};
use proptest::prelude::*;

use super::*;

fn lens() -> LensModel {
    LensModel {
        size_px: [1280, 960],
        focal_px: [910.0, 905.0],
        centre_px: [645.0, 474.0],
        distortion: [-0.12, 0.05, 0.001, -0.0008, 0.01],
    }
}

fn layout() -> TagLayout {
    let tag = |id, x, y, turn_deg| SheetTag {
        id,
        at_mm: [x, y],
        size_mm: 14.0,
        turn_deg,
    };
    TagLayout {
        family: Family::Tag36h11,
        tags: vec![
            tag(0, 11.0, 11.0, 0.0),
            tag(1, 89.0, 11.0, 90.0),
            tag(2, 89.0, 89.0, 33.0),
            tag(3, 11.0, 89.0, 0.0),
        ],
    }
}

const SHEET_MM: [f64; 2] = [100.0, 100.0];

/// Returns the pose of a sheet in front of the camera, facing it.
fn pose(rotation: [f64; 3], shift_mm: [f64; 2], distance_m: f64) -> Isometry3<f64> {
    let faces = UnitQuaternion::from_axis_angle(&Vector3::x_axis(), std::f64::consts::PI);
    let rotation = UnitQuaternion::from_scaled_axis(Vector3::from(rotation)) * faces;
    let centre = Vector3::new(shift_mm[0] / 1e3, shift_mm[1] / 1e3, distance_m);
    let translation = centre - rotation * Vector3::new(0.05, 0.05, 0.0);
    Isometry3::from_parts(Translation3::from(translation), rotation)
}

fn detect(sheet: &Isometry3<f64>, off: impl Fn(usize, usize) -> [f64; 2]) -> Vec<DetectedTag> {
    let tags = layout().tags;
    let detected = tags.iter().enumerate().map(|(index, tag)| {
        let mut corners_px = [[0.0; 2]; 4];
        for (corner, [x, y]) in tag.corners_mm().into_iter().enumerate() {
            let at = sheet * Point3::new(x / 1e3, y / 1e3, 0.0);
            let [u, v] = lens().project(&at).unwrap();
            let [du, dv] = off(index, corner);
            corners_px[corner] = [u + du, v + dv];
        }
        DetectedTag {
            id: tag.id,
            corners_px,
        }
    });
    detected.collect()
}

fn offset(one: &Isometry3<f64>, other: &Isometry3<f64>) -> SheetOffset {
    sheet_offset(one, other, SHEET_MM)
}

proptest! {
    #[test]
    fn a_ray_projects_back_to_its_pixel(u in 0.0..1280.0_f64, v in 0.0..960.0_f64) {
        let [x, y] = lens().ray([u, v]);
        let [again_u, again_v] = lens().project(&Point3::new(x, y, 1.0)).unwrap();
        prop_assert!((again_u - u).hypot(again_v - v) < 1e-6, "{u} {v}: {again_u} {again_v}");
    }

    #[test]
    fn a_sheet_is_found_where_it_lies(
        lean in prop::array::uniform2(-0.7..0.7_f64), roll in -3.1..3.1_f64,
        shift in prop::array::uniform2(-40.0..40.0_f64), distance in 0.25..0.7_f64,
    ) {
        let roll = UnitQuaternion::from_axis_angle(&Vector3::z_axis(), roll);
        let lean = UnitQuaternion::from_scaled_axis(Vector3::new(lean[0], lean[1], 0.0));
        let sheet = pose((lean * roll).scaled_axis().into(), shift, distance);
        let found = locate(&detect(&sheet, |_, _| [0.0, 0.0]), &layout(), &lens(), SHEET_MM).unwrap();
        prop_assert!(found.rms_px < 1e-5, "{found:?}");
        let offset = offset(&sheet, &found.sheet);
        prop_assert!(offset.mm < 1e-3 && offset.deg < 1e-3, "{offset:?}");
        prop_assert!(found.missing.is_empty() && found.left_out.is_empty());
    }

    #[test]
    fn meaningless_corners_never_break_the_fit(
        corners in prop::collection::vec(prop::array::uniform2(prop_oneof![
            -1e4..1e4_f64, Just(f64::NAN), Just(f64::INFINITY), Just(0.0), Just(640.0)
        ]), 16)
    ) {
        let tags = corners.chunks_exact(4).enumerate().map(|(id, of)| DetectedTag {
            id: u16::try_from(id).unwrap(),
            corners_px: [of[0], of[1], of[2], of[3]],
        });
        let tags: Vec<DetectedTag> = tags.collect();
        if let Ok(found) = locate(&tags, &layout(), &lens(), SHEET_MM) {
            prop_assert!(found.rms_px <= CORNER_RMS_PX_MAX && found.sigma_mm.is_finite());
            prop_assert!(found.sheet.translation.vector.iter().all(|v| v.is_finite()));
        }
    }

    #[test]
    fn reports_the_offset_of_a_moved_sheet(
        by in prop::array::uniform2(-15.0..15.0_f64), up in -5.0..5.0_f64, turn_deg in -20.0..20.0_f64,
    ) {
        let taught = Isometry3::from_parts(
            Translation3::new(0.07, -0.17, 0.005),
            UnitQuaternion::from_axis_angle(&Vector3::z_axis(), 2.0),
        );
        let centre = Vector3::new(0.05, 0.05, 0.0);
        let rotation = UnitQuaternion::from_axis_angle(&Vector3::z_axis(), turn_deg.to_radians());
        let shift = Vector3::new(by[0], by[1], up) / 1e3 + centre - rotation * centre;
        let now = taught * Isometry3::from_parts(Translation3::from(shift), rotation);
        let offset = offset(&taught, &now);
        prop_assert!((offset.along_mm[0] - by[0]).abs() < 1e-6 && (offset.along_mm[1] - by[1]).abs() < 1e-6);
        prop_assert!((offset.height_mm - up).abs() < 1e-6 && offset.tilt_deg < 1e-4);
        prop_assert!((offset.turn_deg - turn_deg).abs() < 1e-6 && (offset.deg - turn_deg.abs()).abs() < 1e-6);
        prop_assert!(offset.mm >= by[0].hypot(by[1]).hypot(up) - 1e-9);
    }
}

#[test]
fn a_tag_moved_on_the_sheet_is_left_out_and_named() {
    let sheet = pose([0.3, 0.2, 0.1], [5.0, -8.0], 0.4);
    let moved = detect(
        &sheet,
        |tag, _| if tag == 2 { [14.0, -6.0] } else { [0.0, 0.0] },
    );
    let found = locate(&moved, &layout(), &lens(), SHEET_MM).unwrap();
    assert_eq!(found.left_out, [2]);
    assert_eq!(found.used, [0, 1, 3]);
    assert!(offset(&sheet, &found.sheet).mm < 0.01);
}

#[test]
fn two_tags_that_contradict_each_other_prove_nothing() {
    let sheet = pose([0.1, 0.2, 0.0], [0.0, 0.0], 0.4);
    let mut two = detect(
        &sheet,
        |tag, _| if tag == 1 { [25.0, 0.0] } else { [0.0, 0.0] },
    );
    two.truncate(2);
    let error = locate(&two, &layout(), &lens(), SHEET_MM).unwrap_err();
    assert!(matches!(error, VisionError::Misfit { .. }), "{error}");
    assert!(error.to_string().contains("focal_px"), "{error}");
}

#[test]
fn no_tag_is_an_error_and_a_single_tag_is_uncertain() {
    let sheet = pose([0.0, 0.1, 0.0], [0.0, 0.0], 0.4);
    let none = locate(&[], &layout(), &lens(), SHEET_MM).unwrap_err();
    assert_eq!(none, VisionError::NoTag { of: 4 });
    let all = detect(&sheet, |_, _| [0.0, 0.0]);
    let four = locate(&all, &layout(), &lens(), SHEET_MM).unwrap();
    let one = locate(&all[..1], &layout(), &lens(), SHEET_MM).unwrap();
    assert_eq!(one.missing, [1, 2, 3]);
    assert!(four.sigma_mm < 0.5, "{}", four.sigma_mm);
    assert!(
        one.sigma_mm > 4.0 * four.sigma_mm,
        "{} {}",
        one.sigma_mm,
        four.sigma_mm
    );
}

#[test]
fn the_reported_uncertainty_is_right() {
    let sheet = pose([0.25, -0.1, 0.4], [10.0, 5.0], 0.4);
    let mut state = 7_u64;
    let mut normal = move || {
        let mut sum = 0.0;
        for _ in 0..12 {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            sum += (state >> 11) as f64 / (1_u64 << 53) as f64;
        }
        (sum - 6.0) * 0.3
    };
    let (mut within, mut all) = (0, 0);
    for _ in 0..200 {
        let noise: Vec<[f64; 2]> = (0..16).map(|_| [normal(), normal()]).collect();
        let tags = detect(&sheet, |tag, corner| noise[4 * tag + corner]);
        let found = locate(&tags, &layout(), &lens(), SHEET_MM).unwrap();
        // Hardly any sample of a three-dimensional normal distribution lies beyond 2.5 sigma.
        within += usize::from(offset(&sheet, &found.sheet).mm < 2.5 * found.sigma_mm);
        all += 1;
    }
    assert!(within * 100 >= all * 93, "{within} of {all}");
}

#[test]
fn pictures_of_invalid_size_are_refused() {
    assert!(ImageFrame::new(0, 5, Vec::new()).is_err());
    assert!(ImageFrame::new(9000, 1, vec![0; 27_000]).is_err());
    assert!(ImageFrame::pixels(8192, 8192).is_err());
    let short = ImageFrame::new(2, 2, vec![0; 11]).unwrap_err();
    assert!(short.to_string().contains("11 bytes"), "{short}");
}

#[test]
fn tiny_and_blank_pictures_have_no_tags() {
    // The library divides a picture into tiles: these are sizes around a tile's, and rows of odd lengths.
    for (width, height) in [
        (1, 1),
        (3, 900),
        (900, 3),
        (31, 32),
        (32, 32),
        (33, 47),
        (64, 35),
    ] {
        let pixels = ImageFrame::pixels(width, height).unwrap();
        let frame = ImageFrame::new(width, height, vec![200; pixels * 3]).unwrap();
        for family in [Family::Tag16h5, Family::Tag36h11] {
            assert_eq!(find(&frame, family).unwrap(), []);
        }
    }
}

#[test]
fn noise_of_any_size_has_no_tags() {
    let mut state = 3_u64;
    for (width, height) in [(32, 33), (41, 57), (96, 35), (97, 131), (193, 64)] {
        let pixels = ImageFrame::pixels(width, height).unwrap();
        let bytes = (0..pixels * 3).map(|_| {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1);
            if state >> 63 == 1 { 255 } else { 0 }
        });
        let frame = ImageFrame::new(width, height, bytes.collect()).unwrap();
        for family in [Family::Tag16h5, Family::Tag36h11] {
            assert_eq!(find(&frame, family).unwrap(), []);
        }
    }
}
