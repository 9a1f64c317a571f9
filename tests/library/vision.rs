//! Tags in pictures that the simulator renders: found where they are, and nowhere else.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::print_stdout,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a failing test may panic, and says its figures"
)]

use std::f64::consts::{PI, TAU};

use nalgebra::{Isometry3, Translation3, UnitQuaternion, Vector3};
use steadyhand::sim::{InkLine, PrintedBlot, SceneLight, SimPen, SimulatedView, ViewedSheet};
use steadyhand::vision::{
    Family, ImageFrame, LensModel, PlacedCamera, SheetTag, TagLayout, find, locate, sheet_offset,
};

/// Pictures of a normal run, and the most that `STEADYHAND_CASES` is taken for.
const PICTURES: u64 = 30;
const PICTURES_MAX: u64 = 500;

fn pictures() -> u64 {
    let setting = std::env::var("STEADYHAND_CASES").ok();
    setting
        .and_then(|text| text.parse().ok())
        .map_or(PICTURES, |request: u64| request.min(PICTURES_MAX))
}

const SHEET_MM: [f64; 2] = [100.0, 100.0];

struct Chance(u64);

impl Chance {
    fn uniform(&mut self) -> f64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        ((z ^ (z >> 31)) >> 11) as f64 / (1_u64 << 53) as f64
    }

    fn between(&mut self, low: f64, high: f64) -> f64 {
        low + (high - low) * self.uniform()
    }

    fn below(&mut self, bound: usize) -> usize {
        (self.uniform() * bound as f64) as usize
    }
}

fn lens() -> LensModel {
    LensModel {
        size_px: [1024, 768],
        focal_px: [900.0, 900.0],
        centre_px: [512.0, 384.0],
        distortion: [-0.08, 0.02, 0.0005, -0.0005, 0.0],
    }
}

/// Four tags in the corners, of ids and turns by chance.
fn layout(family: Family, chance: &mut Chance) -> TagLayout {
    let size_mm = chance.between(13.0, 15.0);
    let places = [[11.0, 11.0], [89.0, 11.0], [89.0, 89.0], [11.0, 89.0]];
    let first = chance.below(26) as u16;
    let tags = places.iter().zip(first..).map(|(at_mm, id)| SheetTag {
        id,
        at_mm: *at_mm,
        size_mm,
        turn_deg: 90.0 * chance.below(4) as f64,
    });
    TagLayout {
        family,
        tags: tags.collect(),
    }
}

/// A sheet at about 0.4 m, leaning up to 40° whichever way, turned any way.
fn pose(chance: &mut Chance) -> Isometry3<f64> {
    let (lean, direction) = (
        chance.between(0.0, 40.0).to_radians(),
        chance.between(0.0, TAU),
    );
    let roll = chance.between(0.0, TAU);
    let faces = UnitQuaternion::from_axis_angle(&Vector3::x_axis(), PI);
    let rolled = UnitQuaternion::from_axis_angle(&Vector3::z_axis(), roll) * faces;
    let axis = Vector3::new(direction.cos(), direction.sin(), 0.0);
    let rotation = UnitQuaternion::from_scaled_axis(axis.scale(lean)) * rolled;
    let centre = Vector3::new(
        chance.between(-0.03, 0.03),
        chance.between(-0.02, 0.02),
        chance.between(0.37, 0.43),
    );
    let corner = centre - rotation * Vector3::new(0.05, 0.05, 0.0);
    Isometry3::from_parts(Translation3::from(corner), rotation)
}

fn light(chance: &mut Chance, seed: u64) -> SceneLight {
    SceneLight {
        level: chance.between(0.45, 1.08),
        slope: [chance.between(-0.25, 0.25), chance.between(-0.25, 0.25)],
        noise_grey: chance.between(0.0, 5.0),
        seed,
    }
}

/// Lines of ink in the middle of the sheet, and across all of it where nothing is to be read.
fn ink(chance: &mut Chance, low: f64, high: f64) -> Vec<InkLine> {
    let lines = (0..chance.below(12)).map(|_| InkLine {
        pen: 0,
        points_mm: (0..2 + chance.below(5))
            .map(|_| [chance.between(low, high), chance.between(low, high)])
            .collect(),
    });
    lines.collect()
}

/// Dark and bright squares, some in each other, some in rows like a chess board: everything but tags.
fn clutter(chance: &mut Chance) -> Vec<PrintedBlot> {
    let mut blots = Vec::new();
    for _ in 0..3 + chance.below(6) {
        let at_mm = [chance.between(10.0, 90.0), chance.between(10.0, 90.0)];
        let turn_deg = chance.between(0.0, 90.0);
        let half = chance.between(3.0, 12.0);
        for fraction in [1.0, 0.75, 0.5, 0.25].into_iter().take(1 + chance.below(4)) {
            blots.push(PrintedBlot {
                at_mm,
                half_mm: [half * fraction, half * fraction * chance.between(0.7, 1.0)],
                turn_deg,
                grey: if chance.uniform() < 0.6 { 20 } else { 230 },
            });
        }
    }
    let (x, y, cell) = (
        chance.between(5.0, 50.0),
        chance.between(5.0, 50.0),
        chance.between(2.0, 6.0),
    );
    for square in 0..36 {
        let (column, row) = (square % 6, square / 6);
        blots.push(PrintedBlot {
            at_mm: [x + cell * column as f64, y + cell * row as f64],
            half_mm: [cell / 2.0; 2],
            turn_deg: 0.0,
            grey: if (column + row) % 2 == 0 { 25 } else { 225 },
        });
    }
    blots
}

fn picture(laid: &ViewedSheet, light: &SceneLight, ink: &[InkLine]) -> ImageFrame {
    let eye = PlacedCamera {
        lens: lens(),
        pose: Isometry3::identity(),
    };
    let pen = SimPen {
        tip_m: [0.0; 3],
        colour: "#1a1a2e".to_owned(),
        width_mm: 0.5,
    };
    let view = SimulatedView {
        eye: &eye,
        light,
        sheet: Some(laid),
        ink,
        pens: &[pen],
        held: &[],
    };
    view.render().unwrap()
}

/// The outcome of one picture with tags.
struct Looked {
    tags: usize,
    mm: f64,
    deg: f64,
    sigma_mm: f64,
}

fn look_at_sheet(seed: u64) -> Looked {
    let mut chance = Chance(seed);
    let family = [Family::Tag16h5, Family::Tag36h11][(seed % 2) as usize];
    let laid = ViewedSheet {
        pose: pose(&mut chance),
        size_mm: SHEET_MM,
        tags: Some(layout(family, &mut chance)),
        blots: Vec::new(),
    };
    let ink = ink(&mut chance, 22.0, 78.0);
    let frame = picture(&laid, &light(&mut chance, seed), &ink);
    let observed = find(&frame, family).unwrap();
    let tags = laid.tags.as_ref().unwrap();
    let strangers = observed
        .iter()
        .filter(|one| tags.tags.iter().all(|tag| tag.id != one.id));
    assert_eq!(
        strangers.count(),
        0,
        "picture {seed}: a tag that is not there"
    );
    match locate(&observed, tags, &lens(), SHEET_MM) {
        Err(error) => {
            println!("picture {seed}: {error}");
            Looked {
                tags: observed.len(),
                mm: f64::INFINITY,
                deg: f64::INFINITY,
                sigma_mm: 0.0,
            }
        }
        Ok(found) => {
            let off = sheet_offset(&laid.pose, &found.sheet, SHEET_MM);
            let centre_mm = off.along_mm[0].hypot(off.along_mm[1]).hypot(off.height_mm);
            Looked {
                tags: found.used.len(),
                mm: centre_mm,
                deg: off.deg,
                sigma_mm: found.sigma_mm,
            }
        }
    }
}

/// Does it for every seed on as many threads as there are cores.
fn for_all<T: Send>(work: impl Fn(u64) -> T + Sync) -> Vec<T> {
    let threads = std::thread::available_parallelism().map_or(1, usize::from) as u64;
    std::thread::scope(|scope| {
        let work = &work;
        let parts: Vec<_> = (0..threads)
            .map(|part| {
                scope.spawn(move || {
                    (part..pictures())
                        .step_by(threads as usize)
                        .map(work)
                        .collect::<Vec<T>>()
                })
            })
            .collect();
        parts
            .into_iter()
            .flat_map(|part| part.join().unwrap())
            .collect()
    })
}

fn p99(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() * 99 / 100 - 1]
}

#[test]
fn tags_are_found_and_say_where_the_sheet_lies() {
    let looked = for_all(look_at_sheet);
    let all = looked.len();
    let tags: usize = looked.iter().map(|one| one.tags).sum();
    let good = looked
        .iter()
        .filter(|one| one.tags == 4 && one.mm <= 0.5 && one.deg <= 0.5)
        .count();
    println!(
        "{good} of {all} pictures: all four tags, sheet within 0.5 mm and 0.5 degrees; {tags} of {} tags; p99 {:.3} mm, {:.3} degrees; largest sigma told {:.3} mm",
        4 * all,
        p99(looked.iter().map(|one| one.mm).collect()),
        p99(looked.iter().map(|one| one.deg).collect()),
        looked.iter().map(|one| one.sigma_mm).fold(0.0, f64::max),
    );
    assert!(tags * 100 >= 4 * all * 99, "{tags} tags of {}", 4 * all);
    assert!(
        good * 100 >= all * 99,
        "{good} of {all} within 0.5 mm and 0.5 degrees"
    );
}

#[test]
fn where_there_are_no_tags_none_are_found() {
    let found = for_all(|seed| {
        let mut chance = Chance(seed ^ 0xFA15_E000);
        let family = [Family::Tag16h5, Family::Tag36h11][(seed % 2) as usize];
        let other = [Family::Tag36h11, Family::Tag16h5][(seed % 2) as usize];
        // In every fourth picture there are tags, of the other family.
        let tags = (seed % 4 < 1).then(|| layout(other, &mut chance));
        let laid = ViewedSheet {
            pose: pose(&mut chance),
            size_mm: SHEET_MM,
            tags,
            blots: clutter(&mut chance),
        };
        let ink = ink(&mut chance, 2.0, 98.0);
        let frame = picture(&laid, &light(&mut chance, seed), &ink);
        find(&frame, family).unwrap().len()
    });
    println!(
        "{} tags in {} pictures without",
        found.iter().sum::<usize>(),
        found.len()
    );
    assert_eq!(found.iter().sum::<usize>(), 0);
}
