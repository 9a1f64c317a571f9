//! Traces a picture, or reads an SVG without its hidden lines, several times, and prints the least processor time.
//!
//! `picture-peers trace PICTURE STYLE ROUNDS` or `picture-peers hide SVG ROUNDS`

use steadyhand_design::{
    Design, DesignCaps, LineOptions, LineStyle, PixelPicture, ReadOptions, load_with,
};

/// Bounds that no work here reaches.
const CAPS: DesignCaps = DesignCaps {
    bytes_max: 64 << 20,
    strokes_max: 1_000_000,
    points_max: 10_000_000,
    elements_max: 1_000_000,
};

fn traced(bytes: &[u8], style: LineStyle) -> Design {
    let picture = PixelPicture::read(bytes, &CAPS).expect("a picture");
    let options = LineOptions {
        style,
        long_mm: 200.0,
        pen_mm: 0.5,
        ink: 1.0,
    };
    let picture = picture.expect("a PNG or a JPEG");
    picture.drawn(&options, &CAPS).expect("lines")
}

fn without_hidden(bytes: &[u8]) -> Design {
    let options = ReadOptions {
        hide: true,
        ..ReadOptions::default()
    };
    load_with("work.svg", bytes, &CAPS, options).expect("a drawing")
}

/// Time of this process on a processor.
fn processor_s() -> f64 {
    let stat = std::fs::read_to_string("/proc/self/schedstat").unwrap_or_default();
    let nanoseconds = stat.split(' ').next().and_then(|first| first.parse::<f64>().ok());
    nanoseconds.unwrap_or(f64::NAN) / 1e9
}

/// The most memory that this process ever had.
fn peak_mb() -> f64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find(|line| line.starts_with("VmHWM:"));
    let kb = line.and_then(|line| line.split_whitespace().nth(1)?.parse::<f64>().ok());
    kb.unwrap_or(0.0) / 1024.0
}

fn main() {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let (file, style, rounds) = match words.as_slice() {
        ["trace", file, "centreline", rounds] => (file, Some(LineStyle::Centreline), rounds),
        ["trace", file, _, rounds] => (file, Some(LineStyle::Outline), rounds),
        ["hide", file, rounds] => (file, None, rounds),
        _ => panic!("trace PICTURE STYLE ROUNDS, or hide SVG ROUNDS"),
    };
    let bytes = std::fs::read(file).expect("a file");
    let before_mb = peak_mb();
    let mut best_s = f64::INFINITY;
    let mut design = Design::default();
    for _ in 0..rounds.parse::<usize>().expect("a number of rounds") {
        let start_s = processor_s();
        design = match style {
            Some(style) => traced(&bytes, style),
            None => without_hidden(&bytes),
        };
        best_s = best_s.min(processor_s() - start_s);
    }
    let length_mm: f64 = design.strokes.iter().map(|s| s.length_mm()).sum();
    println!(
        r#"{{"best_s": {best_s}, "more_mb": {}, "paths": {}, "length_mm": {length_mm}}}"#,
        peak_mb() - before_mb,
        design.strokes.len(),
    );
}
