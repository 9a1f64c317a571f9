//! Pictures keep to their size, show what they must, and handle unusual views.
#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a failing test may panic"
)]

use tiny_skia::Pixmap;

use super::*;
use design::{Design, DesignCaps, load};

fn practice_design() -> Design {
    let bytes = include_bytes!("../../scenes/designs/practice.svg");
    load("practice.svg", bytes, &DesignCaps::default()).unwrap()
}

/// Returns a typical plan: the practice drawing in the middle of a sheet.
fn plan_view(sheet_mm: [f64; 2]) -> PlanView {
    let shift = |[x, y]: &[f64; 2]| [x + sheet_mm[0] / 2.0 - 30.0, y + sheet_mm[1] / 2.0 - 30.0];
    let mut plan = PlanView {
        title: "default · so101".to_owned(),
        caption: "12 strokes · 470 mm of line · 28.4 s · no dips".to_owned(),
        sheet_mm,
        ..PlanView::default()
    };
    let mut last = None;
    for (index, stroke) in practice_design().strokes.iter().enumerate() {
        let points_mm: Vec<[f64; 2]> = stroke.points_mm.iter().map(shift).collect();
        let (first, end) = (points_mm[0], *points_mm.last().unwrap());
        if let Some(last) = last {
            plan.travels_mm.push(vec![last, first]);
        }
        plan.side_mm.extend([[first[0], 6.0], [first[0], -0.4]]);
        plan.side_mm
            .extend(points_mm.iter().map(|[x, _]| [*x, -0.4]));
        plan.side_mm.push([end[0], 6.0]);
        last = Some(end);
        plan.strokes.push(PlannedStroke {
            line: SheetLine {
                points_mm,
                colour: [0x1a, 0x1a, 0x2e],
                width_mm: 0.4,
            },
            order: Some(index + 1),
            is_refused: index == 7,
        });
    }
    let wave = |scale: f64, frequency: f64| {
        let time = |i: u32| f64::from(i) * 0.01;
        let value = |i: u32| scale * (1.2 + (time(i) * frequency).sin());
        (0..2840).map(|i| [time(i), value(i)]).collect()
    };
    for (name, scale, limit) in [
        ("joint-limit margin, rad", 0.4, Some(0.1)),
        ("tilt, deg", 4.0, Some(30.0)),
        ("speed, mm/s", 18.0, None),
    ] {
        plan.strips.push(TimeStrip {
            name: name.to_owned(),
            samples: wave(scale, 1.7),
            limit,
        });
    }
    plan
}

fn ink_view() -> InkView {
    let with_noise = |[x, y]: &[f64; 2]| [x + 45.0 + (y * 2.0).sin() * 0.3, y + 20.0];
    let strokes = practice_design().strokes;
    InkView {
        title: "default · simulated so101".to_owned(),
        caption: "470 mm drawn · deviation 0.21 mm at 95 of 100 points, 0.31 mm at most".to_owned(),
        sheet_mm: [150.0, 100.0],
        relief: None,
        design_mm: strokes
            .iter()
            .map(|s| {
                s.points_mm
                    .iter()
                    .map(|[x, y]| [x + 45.0, y + 20.0])
                    .collect()
            })
            .collect(),
        ink: strokes
            .iter()
            .map(|s| SheetLine {
                points_mm: s.points_mm.iter().map(with_noise).collect(),
                colour: [0x1a, 0x1a, 0x2e],
                width_mm: 0.4,
            })
            .collect(),
    }
}

fn decode_checked(png: &[u8]) -> Pixmap {
    assert!(png.len() <= BYTES_MAX, "{} bytes", png.len());
    let pixels = Pixmap::decode_png(png).unwrap();
    assert!(pixels.width() <= SIDE_MAX_PX && pixels.height() <= SIDE_MAX_PX);
    pixels
}

fn count_pixels(pixels: &Pixmap, colour: Rgb) -> usize {
    let matches = |p: &&tiny_skia::PremultipliedColorU8| [p.red(), p.green(), p.blue()] == colour;
    pixels.pixels().iter().filter(matches).count()
}

/// Saves a picture for inspection if the environment names a folder.
fn save(name: &str, png: &[u8]) {
    if let Ok(folder) = std::env::var("STEADYHAND_PICTURES") {
        std::fs::write(std::path::Path::new(&folder).join(name), png).unwrap();
    }
}

#[test]
fn a_plan_of_any_sheet_keeps_to_its_size() {
    for (name, sheet_mm) in [
        ("plan_a5.png", [148.0, 105.0]),
        ("plan_square.png", [80.0, 80.0]),
        ("plan_wide.png", [300.0, 90.0]),
        ("plan_high.png", [105.0, 297.0]),
    ] {
        let png = plan_png(&plan_view(sheet_mm)).unwrap();
        let pixels = decode_checked(&png);
        assert!(count_pixels(&pixels, canvas::REFUSED) > 50, "{name}");
        assert!(count_pixels(&pixels, [0x1a, 0x1a, 0x2e]) > 200, "{name}");
        save(name, &png);
    }
}

#[test]
fn ink_lies_over_the_design() {
    let png = ink_png(&ink_view()).unwrap();
    let pixels = decode_checked(&png);
    assert!(count_pixels(&pixels, [0x1a, 0x1a, 0x2e]) > 500);
    assert!(count_pixels(&pixels, canvas::PALE) > 500);
    save("drawn.png", &png);
}

#[test]
fn drawings_of_one_design_are_framed_alike_and_ink_elsewhere_is_shown() {
    let mut small = ink_view();
    small.sheet_mm = [300.0, 300.0];
    let moved = |by_mm: f64| {
        let mut view = small.clone();
        let points = view.ink.iter_mut().flat_map(|line| &mut line.points_mm);
        points.for_each(|[x, _]| *x += by_mm);
        decode_checked(&ink_png(&view).unwrap())
    };
    let size = |pixels: &Pixmap| [pixels.width(), pixels.height()];
    assert_eq!(size(&moved(0.0)), size(&moved(0.4)));
    let drawn = |pixels: &Pixmap| count_pixels(pixels, [0x1a, 0x1a, 0x2e]);
    assert!(drawn(&moved(120.0)) > 200);
}

#[test]
fn the_same_view_gives_the_same_bytes() {
    assert_eq!(ink_png(&ink_view()).unwrap(), ink_png(&ink_view()).unwrap());
}

#[test]
fn unusual_views_are_drawn_or_refused_without_panic() {
    let mut unusual = plan_view([100.0, 100.0]);
    unusual.title = "漢字 \n".repeat(200);
    unusual.strokes[0].line.points_mm = vec![[f64::NAN, 1.0], [1e300, f64::INFINITY]];
    unusual.strokes[1].line.width_mm = f64::NAN;
    unusual.strips[0].samples = vec![[0.0, f64::NAN]];
    unusual.strips[1].limit = Some(f64::INFINITY);
    unusual.strips[2].samples.clear();
    unusual.side_mm = vec![[f64::NAN, f64::NAN]];
    decode_checked(&plan_png(&unusual).unwrap());
    decode_checked(
        &plan_png(&PlanView {
            sheet_mm: [1e5, 0.1],
            ..PlanView::default()
        })
        .unwrap(),
    );
    for sheet_mm in [[0.0, 5.0], [f64::NAN, 5.0], [1e6, 5.0]] {
        assert!(
            plan_png(&PlanView {
                sheet_mm,
                ..PlanView::default()
            })
            .is_err()
        );
        assert!(
            ink_png(&InkView {
                sheet_mm,
                ..InkView::default()
            })
            .is_err()
        );
    }
}

/// The last lines of a long drawing were missing, as if the pen had not drawn them.
#[test]
fn every_line_of_a_long_drawing_is_shown() {
    let line = |row: u32, colour: Rgb| SheetLine {
        points_mm: (0..20_000)
            .map(|i| [f64::from(i) * 0.005, f64::from(row) * 2.0])
            .collect(),
        colour,
        width_mm: 0.4,
    };
    let mut long = ink_view();
    long.ink = (0..40).map(|row| line(row, [10, 20, 90])).collect();
    long.ink.push(line(45, [200, 10, 10]));
    let pixels = decode_checked(&ink_png(&long).unwrap());
    assert!(count_pixels(&pixels, [200, 10, 10]) > 200);
}

#[test]
fn a_picture_full_of_lines_is_made_smaller() {
    let mut full = ink_view();
    let noise = |i: u32| f64::from(i.wrapping_mul(2_654_435_761) >> 8) / f64::from(1 << 24);
    full.ink = (0..12_000)
        .map(|i| SheetLine {
            points_mm: vec![
                [noise(i) * 150.0, noise(i + 77_777) * 100.0],
                [noise(i + 5) * 150.0, noise(i + 99_999) * 100.0],
            ],
            colour: [(i % 251) as u8, (i % 83) as u8, 90],
            width_mm: 0.2,
        })
        .collect();
    full.ink.truncate(4_000);
    decode_checked(&ink_png(&full).unwrap());
}

/// Returns a relief with a bump in its middle and no surface in one corner.
fn bump() -> SheetRelief {
    let size = [40, 30];
    let light = |index: usize| {
        let (x, y) = (
            (index % size[0]) as f64 - 20.0,
            (index / size[0]) as f64 - 15.0,
        );
        let slope = (y - x) * 0.1 * (-(x * x + y * y) / 60.0).exp();
        (x < 15.0 || y < 10.0).then_some(0.75 + slope)
    };
    SheetRelief {
        step_mm: 4.0,
        size,
        light: (0..size[0] * size[1]).map(light).collect(),
    }
}

#[test]
fn a_surface_that_is_not_flat_is_shaded_below_its_lines() {
    let mut view = plan_view([150.0, 100.0]);
    let flat = Pixmap::decode_png(&plan_png(&view).unwrap()).unwrap();
    view.relief = Some(bump());
    let bytes = plan_png(&view).unwrap();
    assert!(bytes.len() <= BYTES_MAX);
    let shaded = Pixmap::decode_png(&bytes).unwrap();
    let tone = |picture: &Pixmap, at_mm: [f64; 2]| {
        let [x, y] = pixel_of(&view, at_mm);
        picture.pixel(x as u32, y as u32).unwrap().green()
    };
    // Light falls from the upper left.
    let (lit, dark) = ([70.0, 68.0], [90.0, 52.0]);
    assert_eq!(tone(&flat, lit), tone(&flat, dark));
    assert!(tone(&shaded, lit) > tone(&shaded, dark) + 40);
}
