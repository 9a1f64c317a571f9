//! Draws pictures on paper and compares their tones, as an eye does that sees 5 mm at a time.

#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    clippy::print_stdout,
    reason = "tests"
)]

use proptest::prelude::*;

use super::*;
use base::plane::{distance_to_piece, pieces};

const TONE_STYLES: [LineStyle; 4] = [
    LineStyle::Hatch,
    LineStyle::Squiggle,
    LineStyle::Stipple,
    LineStyle::Spiral,
];

const PEN_MM: f64 = 0.5;

/// Photographs by Lav Varshney and Stefan van der Walt, CC0, from scikit-image.
const PHOTOGRAPHER: &[u8] = include_bytes!("../../tests/pictures/photographer.png");
const CAT: &[u8] = include_bytes!("../../tests/pictures/cat.png");

/// Side of a cell of the paper, and the deviation of the blur with which an eye sees it: 5 mm as a whole.
const CELL_MM: f64 = 0.125;
const EYE_MM: f64 = 2.5;

fn options(style: LineStyle) -> LineOptions {
    LineOptions {
        style,
        long_mm: 60.0,
        pen_mm: PEN_MM,
        ink: 1.0,
    }
}

fn picture(width: usize, height: usize, grey: impl Fn(f64, f64) -> f64) -> Picture {
    let places = (0..height).flat_map(|y| (0..width).map(move |x| (x, y)));
    let pixels = places.map(|(x, y)| {
        [
            (x as f64 + 0.5) / width as f64,
            (y as f64 + 0.5) / height as f64,
        ]
    });
    let pixels = pixels.map(|[x, y]| grey(x, y) as u8);
    Picture::from_grey(width, height, &pixels.collect::<Vec<u8>>()).unwrap()
}

/// Paper with cells that are inked or not.
struct Paper {
    columns: usize,
    rows: usize,
    is_inked: Vec<bool>,
}

impl Paper {
    fn drawn(lines: &PictureLines) -> Self {
        let [columns, rows] = lines.page_mm.map(|side_mm| (side_mm / CELL_MM) as usize);
        let mut paper = Self {
            columns,
            rows,
            is_inked: vec![false; columns * rows],
        };
        for path in &lines.paths_mm {
            if let [dot] = path.as_slice() {
                paper.ink([*dot, *dot]);
            }
            pieces(path).for_each(|piece| paper.ink(piece));
        }
        paper
    }

    fn ink(&mut self, piece: [Point; 2]) {
        let reach = |axis: usize, count: usize| {
            let (a, b) = (piece[0][axis], piece[1][axis]);
            let first = ((a.min(b) - PEN_MM) / CELL_MM).max(0.0) as usize;
            first..(((a.max(b) + PEN_MM) / CELL_MM).max(0.0) as usize).min(count)
        };
        for row in reach(1, self.rows) {
            for column in reach(0, self.columns) {
                let place = [column, row].map(|cell| (cell as f64 + 0.5) * CELL_MM);
                if distance_to_piece(place, piece) <= PEN_MM / 2.0 {
                    self.is_inked[row * self.columns + column] = true;
                }
            }
        }
    }
}

/// Blurs a grid of cells as an eye does from afar.
fn blurred(cells: &[f64], columns: usize, rows: usize) -> Vec<f64> {
    let reach = (3.0 * EYE_MM / CELL_MM) as usize;
    let weight = |apart: usize| (-0.5 * (apart as f64 * CELL_MM / EYE_MM).powi(2)).exp();
    let mean = |at: usize, count: usize, value: &dyn Fn(usize) -> f64| {
        let near = at.saturating_sub(reach)..(at + reach + 1).min(count);
        let (mut sum, mut total) = (0.0, 0.0);
        for other in near {
            let weight = weight(other.abs_diff(at));
            sum += weight * value(other);
            total += weight;
        }
        sum / total
    };
    let across: Vec<f64> = (0..rows * columns)
        .map(|index| {
            let row = index / columns * columns;
            mean(index % columns, columns, &|x| cells[row + x])
        })
        .collect();
    (0..rows * columns)
        .map(|index| {
            mean(index / columns, rows, &|y| {
                across[y * columns + index % columns]
            })
        })
        .collect()
}

/// Returns the mean and the 95th percentile of how far the ink is from the tones of a picture, as shares of black.
fn tone_errors(picture: &Picture, options: &LineOptions) -> (f64, f64) {
    let lines = picture.lines(options).unwrap();
    let [width, height] = picture.size_px();
    let black = lines.black.unwrap();
    let paper = Paper::drawn(&lines);
    let (columns, rows) = (paper.columns, paper.rows);
    let ink: Vec<f64> = paper
        .is_inked
        .iter()
        .map(|&is| f64::from(u8::from(is)) / black)
        .collect();
    let wanted: Vec<f64> = (0..rows * columns)
        .map(|index| {
            let x = index % columns * width / columns;
            let y = (rows - 1 - index / columns) * height / rows;
            f64::from(picture.0.values()[y * width + x])
        })
        .collect();
    let [ink, wanted] = [ink, wanted].map(|cells| blurred(&cells, columns, rows));
    let mut errors: Vec<f64> = ink
        .iter()
        .zip(&wanted)
        .map(|(a, b)| (a - b).abs())
        .collect();
    errors.sort_by(f64::total_cmp);
    let mean = errors.iter().sum::<f64>() / errors.len() as f64;
    (mean, errors[errors.len() * 95 / 100])
}

#[test]
fn tones_are_within_five_points_of_the_picture() {
    let slope = |x: f64, _: f64| 255.0 * x;
    let ball = |x: f64, y: f64| 255.0 * (2.0 * (x - 0.5).hypot(y - 0.5)).min(1.0);
    let photograph = |bytes: &[u8]| Picture::decode(bytes).unwrap();
    let pictures = [
        ("slope", picture(480, 400, slope)),
        ("ball", picture(480, 400, ball)),
        ("photographer", photograph(PHOTOGRAPHER)),
        ("cat", photograph(CAT)),
    ];
    let mut far = Vec::new();
    for style in TONE_STYLES {
        for (name, picture) in &pictures {
            let (mean, most) = tone_errors(picture, &options(style));
            let line = format!("{style:?} of {name}: mean {mean:.3}, 95 % {most:.3}");
            println!("{line}");
            far.extend((mean > 0.03 || most > 0.05).then_some(line));
        }
    }
    assert!(far.is_empty(), "{far:#?}");
}

#[test]
fn white_stays_white() {
    let half = |x: f64, _: f64| if x < 0.5 { 0.0 } else { 255.0 };
    for style in TONE_STYLES {
        let lines = picture(120, 100, half).lines(&options(style)).unwrap();
        let right = lines
            .paths_mm
            .iter()
            .flatten()
            .map(|point| point[0])
            .fold(0.0, f64::max);
        assert!(right < 31.5, "{style:?}: {right}");
    }
    let white = picture(20, 20, |_, _| 255.0);
    for style in TONE_STYLES
        .into_iter()
        .chain([LineStyle::Centreline, LineStyle::Outline])
    {
        assert_eq!(white.lines(&options(style)), Err(ImageError::Blank));
    }
}

#[test]
fn an_outline_goes_round_what_is_dark() {
    let disc = |x: f64, y: f64| {
        if (x - 0.5).hypot(y - 0.5) < 0.3 {
            0.0
        } else {
            255.0
        }
    };
    let lines = picture(200, 200, disc)
        .lines(&options(LineStyle::Outline))
        .unwrap();
    assert_eq!(lines.paths_mm.len(), 1);
    for [x, y] in lines.paths_mm.iter().flatten() {
        let radius_mm = (x - 30.0).hypot(y - 30.0);
        assert!((radius_mm - 18.0).abs() < 0.3, "{radius_mm}");
    }
    let path = &lines.paths_mm[0];
    assert_eq!(path.first(), path.last());
}

#[test]
fn a_centreline_goes_along_the_middle_of_a_thick_line() {
    let cross = |x: f64, y: f64| {
        let is_dark = (y - 0.5).abs() < 0.02 && (0.1..0.9).contains(&x)
            || (x - 0.5).abs() < 0.02 && (0.1..0.9).contains(&y);
        if is_dark { 0.0 } else { 255.0 }
    };
    let lines = picture(300, 300, cross)
        .lines(&options(LineStyle::Centreline))
        .unwrap();
    let long: Vec<&Vec<Point>> = lines
        .paths_mm
        .iter()
        .filter(|path| base::plane::length(path) > 3.0)
        .collect();
    assert_eq!(long.len(), 4, "{:?}", lines.paths_mm);
    for [x, y] in lines.paths_mm.iter().flatten() {
        let from_middle_mm = (x - 30.0).abs().min((y - 30.0).abs());
        assert!(from_middle_mm < 0.4, "{x} {y}");
    }
    let ring = |x: f64, y: f64| {
        if ((x - 0.5).hypot(y - 0.5) - 0.3).abs() < 0.02 {
            0.0
        } else {
            255.0
        }
    };
    let lines = picture(300, 300, ring)
        .lines(&options(LineStyle::Centreline))
        .unwrap();
    let total_mm: f64 = lines
        .paths_mm
        .iter()
        .map(|path| base::plane::length(path))
        .sum();
    assert!((total_mm - 113.1).abs() < 4.0, "{total_mm}");
    assert!(lines.paths_mm.len() <= 2, "{:?}", lines.paths_mm.len());
}

#[test]
fn less_ink_is_lighter_and_shorter() {
    let slope = |x: f64, _: f64| 255.0 * x;
    let length_mm = |ink: f64| {
        let options = LineOptions {
            ink,
            ..options(LineStyle::Hatch)
        };
        let lines = picture(90, 60, slope).lines(&options).unwrap();
        lines
            .paths_mm
            .iter()
            .map(|path| base::plane::length(path))
            .sum::<f64>()
    };
    let [all_mm, half_mm] = [length_mm(1.0), length_mm(0.5)];
    assert!(
        (half_mm / all_mm - 0.5).abs() < 0.1,
        "{half_mm} of {all_mm}"
    );
}

#[test]
fn what_is_no_picture_is_refused_by_its_reason() {
    assert_eq!(Picture::decode(b"<svg/>"), Err(ImageError::Format));
    assert!(matches!(
        Picture::decode(b"\x89PNG\r\n\x1a\n"),
        Err(ImageError::Damaged { format: "PNG", .. })
    ));
    assert!(matches!(
        Picture::decode(b"\xff\xd8\xff\xe0"),
        Err(ImageError::Damaged { format: "JPEG", .. })
    ));
    assert!(matches!(
        Picture::from_grey(1, 1, &[0]),
        Err(ImageError::TooSmall { .. })
    ));
    assert!(matches!(
        Picture::decode(&png_of(20_000, 20_000)),
        Err(ImageError::TooLarge { .. })
    ));
}

/// A PNG that says it has this size, without its pixels.
fn png_of(width: u32, height: u32) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut encoder = png::Encoder::new(&mut bytes, width, height);
    encoder.set_color(png::ColorType::Grayscale);
    let mut writer = encoder.write_header().unwrap();
    writer.write_chunk(png::chunk::IDAT, &[]).unwrap();
    drop(writer);
    bytes
}

#[test]
fn what_is_transparent_is_paper() {
    let mut bytes = Vec::new();
    let mut encoder = png::Encoder::new(&mut bytes, 2, 2);
    encoder.set_color(png::ColorType::Rgba);
    let mut writer = encoder.write_header().unwrap();
    let black = [0, 0, 0, 255];
    let clear = [0, 0, 0, 0];
    writer
        .write_image_data(&[black, clear, clear, black].concat())
        .unwrap();
    writer.finish().unwrap();
    let expected = Picture::from_grey(2, 2, &[0, 255, 255, 0]).unwrap();
    assert_eq!(Picture::decode(&bytes), Ok(expected));
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, ..ProptestConfig::default() })]

    /// Any bytes as pixels: every line stays on its page and is finite.
    #[test]
    fn lines_stay_on_the_page(
        width in 2_usize..24,
        pixels in prop::collection::vec(any::<u8>(), 48..480),
        style in prop::sample::select(TONE_STYLES.into_iter().chain([LineStyle::Centreline, LineStyle::Outline]).collect::<Vec<_>>()),
        long_mm in 2.0..40.0_f64,
    ) {
        let height = pixels.len() / width;
        let picture = Picture::from_grey(width, height, &pixels[..width * height]).unwrap();
        let options = LineOptions { style, long_mm, pen_mm: 0.7, ink: 0.8 };
        if let Ok(lines) = picture.lines(&options) {
            let slack_mm = 1e-6;
            for [x, y] in lines.paths_mm.iter().flatten() {
                prop_assert!((-slack_mm..=lines.page_mm[0] + slack_mm).contains(x), "{style:?} {x}");
                prop_assert!((-slack_mm..=lines.page_mm[1] + slack_mm).contains(y), "{style:?} {y}");
            }
        }
    }

    /// Any bytes as a file: an answer, and never a panic.
    #[test]
    fn any_bytes_are_answered(rest in prop::collection::vec(any::<u8>(), 0..200), is_png in any::<bool>()) {
        let start: &[u8] = if is_png { b"\x89PNG\r\n\x1a\n" } else { b"\xff\xd8\xff\xe0" };
        let _ = Picture::decode(&[start, &rest].concat());
    }
}
