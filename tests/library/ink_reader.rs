//! Lines of ink in pictures that the simulator renders: read where they are, and not where they are not.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::print_stdout,
    reason = "a failing test may panic, and says its figures"
)]

use std::f64::consts::PI;

use nalgebra::{Isometry3, Translation3, UnitQuaternion, Vector3};
use steadyhand::sim::{InkLine, PrintedBlot, SceneLight, SimPen, SimulatedView, ViewedSheet};
use steadyhand::vision::{
    ExpectedLine, Family, InkReading, LensModel, PicturedSheet, PlacedCamera, SheetTag, TagLayout,
    find, locate, read_ink,
};

use crate::support::chance::Chance;

const SHEET_MM: [f64; 2] = [100.0, 100.0];

fn lens() -> LensModel {
    LensModel {
        size_px: [1280, 960],
        focal_px: [1400.0, 1400.0],
        centre_px: [640.0, 480.0],
        distortion: [-0.08, 0.02, 0.0005, -0.0005, 0.0],
    }
}

fn tags() -> TagLayout {
    let places = [[11.0, 11.0], [89.0, 11.0], [89.0, 89.0], [11.0, 89.0]];
    let tags = places.iter().zip(0..).map(|(at_mm, id)| SheetTag {
        id,
        at_mm: *at_mm,
        size_mm: 14.0,
        turn_deg: 0.0,
    });
    TagLayout {
        family: Family::Tag36h11,
        tags: tags.collect(),
    }
}

/// A sheet at about 0.45 m, leaning by up to 30° and turned.
fn pose(chance: &mut Chance) -> Isometry3<f64> {
    let lean = chance.between(0.0, 30.0).to_radians();
    let direction = chance.between(0.0, 2.0 * PI);
    let faces = UnitQuaternion::from_axis_angle(&Vector3::x_axis(), PI);
    let roll = UnitQuaternion::from_axis_angle(&Vector3::z_axis(), chance.between(0.0, 2.0 * PI));
    let axis = Vector3::new(direction.cos(), direction.sin(), 0.0);
    let rotation = UnitQuaternion::from_scaled_axis(axis.scale(lean)) * roll * faces;
    let corner = Vector3::new(0.0, 0.0, 0.45) - rotation * Vector3::new(0.05, 0.05, 0.0);
    Isometry3::from_parts(Translation3::from(corner), rotation)
}

/// Squares at nine stations.
fn squares() -> Vec<ExpectedLine> {
    let at = [28.0, 50.0, 72.0];
    let square = |x: f64, y: f64| ExpectedLine {
        points_mm: vec![
            [x - 5.0, y - 5.0],
            [x + 5.0, y - 5.0],
            [x + 5.0, y + 5.0],
            [x - 5.0, y + 5.0],
            [x - 5.0, y - 5.0],
        ],
    };
    at.iter()
        .flat_map(|x| at.iter().map(move |y| square(*x, *y)))
        .collect()
}

struct Photographed<'a> {
    sheet: ViewedSheet,
    ink: &'a [InkLine],
    light: SceneLight,
}

impl Photographed<'_> {
    fn read(&self, expected: &[ExpectedLine]) -> InkReading {
        let pens = [SimPen {
            tip_m: [0.0; 3],
            colour: "#1a1a2e".to_owned(),
            width_mm: 0.5,
        }];
        let eye = PlacedCamera {
            lens: lens(),
            pose: Isometry3::identity(),
        };
        let view = SimulatedView {
            eye: &eye,
            light: &self.light,
            sheet: Some(&self.sheet),
            ink: self.ink,
            pens: &pens,
            held: &[],
        };
        let frame = view.render().unwrap();
        let tags = tags();
        let observed = find(&frame, Family::Tag36h11).unwrap();
        let found = locate(&observed, &tags, &eye.lens, SHEET_MM).unwrap();
        read_ink(
            &PicturedSheet {
                frame: &frame,
                lens: &eye.lens,
                sheet: &found.sheet,
                tags: &tags,
                line_mm: 0.5,
            },
            expected,
        )
    }
}

fn sheet(chance: &mut Chance, blots: Vec<PrintedBlot>) -> ViewedSheet {
    ViewedSheet {
        pose: pose(chance),
        size_mm: SHEET_MM,
        tags: Some(tags()),
        blots,
    }
}

fn light(chance: &mut Chance, seed: u64) -> SceneLight {
    SceneLight {
        level: chance.between(0.5, 1.05),
        slope: [chance.between(-0.25, 0.25), chance.between(-0.25, 0.25)],
        noise_grey: chance.between(0.0, 4.0),
        seed,
    }
}

/// Returns the same lines with each square moved.
fn moved(lines: &[ExpectedLine], by_mm: &[[f64; 2]]) -> Vec<InkLine> {
    let of = lines.iter().zip(by_mm);
    let line = |(line, by): (&ExpectedLine, &[f64; 2])| InkLine {
        pen: 0,
        points_mm: line
            .points_mm
            .iter()
            .map(|[x, y]| [x + by[0], y + by[1]])
            .collect(),
    };
    of.map(line).collect()
}

#[test]
fn lines_are_read_to_a_small_part_of_a_tenth_of_a_millimetre() {
    let mut chance = Chance(20_261_124);
    let lines = squares();
    let (mut squares_sum, mut ratio_sum, mut count) = (0.0, 0.0, 0_usize);
    for picture in 0..12 {
        let common = [chance.between(-5.0, 5.0), chance.between(-5.0, 5.0)];
        let by: Vec<[f64; 2]> = lines
            .iter()
            .map(|_| common.map(|mm| mm + chance.between(-1.0, 1.0)))
            .collect();
        let ink = moved(&lines, &by);
        let photographed = Photographed {
            sheet: sheet(&mut chance, Vec::new()),
            ink: &ink,
            light: light(&mut chance, picture),
        };
        let read = photographed.read(&lines);
        assert!(
            read.offsets.len() * 10 > read.places * 8,
            "picture {picture}: {} of {} places",
            read.offsets.len(),
            read.places
        );
        for one in &read.offsets {
            let [x, y] = by[one.line];
            let error = one.off_mm - (x * one.across[0] + y * one.across[1]);
            assert!(
                error.abs() < 0.25,
                "picture {picture}: {one:?}, {error:.3} mm"
            );
            squares_sum += error * error;
            ratio_sum += (error / one.sigma_mm).powi(2);
            count += 1;
        }
    }
    let rms = (squares_sum / count as f64).sqrt();
    let ratio = (ratio_sum / count as f64).sqrt();
    println!("{count} places: rms {rms:.4} mm, error over sigma {ratio:.2}");
    assert!(rms < 0.06, "{rms:.4} mm");
    assert!((0.4..1.6).contains(&ratio), "{ratio:.2}");
}

#[test]
fn a_line_that_is_not_there_a_shadow_and_other_ink_are_left_out() {
    let mut chance = Chance(7);
    let lines = squares();
    let none = vec![[0.0; 2]; lines.len()];
    let mut ink = moved(&lines, &none);
    // The first square is missing, the second has another line 1 mm beside its right side.
    ink.remove(0);
    ink.push(InkLine {
        pen: 0,
        points_mm: vec![[34.0, 44.0], [34.0, 56.0]],
    });
    // A shadow falls over half of the sheet, its edge within a station.
    let shadow = PrintedBlot {
        at_mm: [75.0, 50.0],
        half_mm: [20.0, 48.0],
        turn_deg: 12.0,
        grey: 150,
    };
    let photographed = Photographed {
        sheet: sheet(&mut chance, vec![shadow]),
        ink: &ink,
        light: light(&mut chance, 1),
    };
    let read = photographed.read(&lines);
    assert!(
        read.offsets.iter().all(|one| one.line != 0),
        "a line that is not there"
    );
    let doubled = |one: &&steadyhand::vision::InkOffset| one.line == 1 && one.piece == 1;
    assert_eq!(read.offsets.iter().filter(doubled).count(), 0, "two lines");
    for one in &read.offsets {
        assert!(one.off_mm.abs() < 0.2, "{one:?}");
    }
    let in_shadow = read.offsets.iter().filter(|one| one.line == 7).count();
    assert!(in_shadow > 10, "{in_shadow} places in the shadow");
    assert!(
        read.offsets.len() * 10 > read.places * 6,
        "{}",
        read.offsets.len()
    );
}

#[test]
fn on_an_empty_sheet_nothing_is_read() {
    let mut chance = Chance(8);
    let photographed = Photographed {
        sheet: sheet(&mut chance, Vec::new()),
        ink: &[],
        light: light(&mut chance, 2),
    };
    assert_eq!(photographed.read(&squares()).offsets, Vec::new());
}
