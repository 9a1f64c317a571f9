//! Decodes PNG and JPEG to darkness.

use std::io::Cursor;

use jpeg_decoder::PixelFormat;
use png::{ColorType, Transformations};

use super::darkness::DarknessMap;
use super::orientation::Orientation;
use super::{ImageError, PIXELS_MAX};

const PNG_START: &[u8] = b"\x89PNG\r\n\x1a\n";
const JPEG_START: &[u8] = b"\xff\xd8\xff";

/// Most bytes of a pixel while a JPEG is decoded.
const WORK_BYTES_PER_PIXEL: usize = 8;

/// Shares of red, green and blue in a grey that looks as light (ITU-R BT.601).
const LUMA: [f32; 3] = [0.299, 0.587, 0.114];

pub(crate) fn is_picture(bytes: &[u8]) -> bool {
    bytes.starts_with(PNG_START) || bytes.starts_with(JPEG_START)
}

pub(crate) fn decode(bytes: &[u8]) -> Result<DarknessMap, ImageError> {
    if bytes.starts_with(PNG_START) {
        return png(bytes);
    }
    if bytes.starts_with(JPEG_START) {
        return jpeg(bytes);
    }
    Err(ImageError::Format)
}

fn png(bytes: &[u8]) -> Result<DarknessMap, ImageError> {
    let damaged = |reason: String| ImageError::Damaged {
        format: "PNG",
        reason,
    };
    let mut decoder = png::Decoder::new(Cursor::new(bytes));
    decoder.set_transformations(Transformations::normalize_to_color8());
    let mut reader = decoder.read_info().map_err(|e| damaged(e.to_string()))?;
    let (width, height) = (reader.info().width, reader.info().height);
    let [width, height] = checked_size(width.into(), height.into())?;
    let size = reader.output_buffer_size();
    let mut pixels = vec![0; size.ok_or_else(|| damaged("it has no size".to_owned()))?];
    reader
        .next_frame(&mut pixels)
        .map_err(|e| damaged(e.to_string()))?;
    let darkness: Vec<f32> = match reader.output_color_type().0 {
        ColorType::Grayscale => pixels.iter().map(|&grey| of_grey(grey)).collect(),
        ColorType::GrayscaleAlpha => each(&pixels, |[grey, alpha]| on_white(of_grey(grey), alpha)),
        ColorType::Rgb => each(&pixels, of_rgb),
        ColorType::Rgba => each(&pixels, |[r, g, b, alpha]| {
            on_white(of_rgb([r, g, b]), alpha)
        }),
        ColorType::Indexed => return Err(damaged("its colours have no palette".to_owned())),
    };
    DarknessMap::new(width, height, darkness)
}

fn jpeg(bytes: &[u8]) -> Result<DarknessMap, ImageError> {
    let damaged = |error: jpeg_decoder::Error| ImageError::Damaged {
        format: "JPEG",
        reason: error.to_string(),
    };
    let mut decoder = jpeg_decoder::Decoder::new(Cursor::new(bytes));
    decoder.set_max_decoding_buffer_size(PIXELS_MAX * WORK_BYTES_PER_PIXEL);
    decoder.read_info().map_err(damaged)?;
    let info = decoder.info().ok_or(ImageError::Format)?;
    let [width, height] = checked_size(info.width.into(), info.height.into())?;
    let pixels = decoder.decode().map_err(damaged)?;
    let darkness: Vec<f32> = match info.pixel_format {
        PixelFormat::L8 => pixels.iter().map(|&grey| of_grey(grey)).collect(),
        PixelFormat::L16 => each(&pixels, |[low, high]| {
            1.0 - f32::from(u16::from_ne_bytes([low, high])) / f32::from(u16::MAX)
        }),
        PixelFormat::RGB24 => each(&pixels, of_rgb),
        PixelFormat::CMYK32 => each(&pixels, of_cmyk),
    };
    let map = DarknessMap::new(width, height, darkness)?;
    Ok(Orientation::of(decoder.exif_data()).upright(map))
}

/// Checks a picture's size before its pixels take memory.
fn checked_size(width: u64, height: u64) -> Result<[usize; 2], ImageError> {
    let too_large = ImageError::TooLarge { width, height };
    let sides = usize::try_from(width)
        .ok()
        .zip(usize::try_from(height).ok());
    let (width, height) = sides.ok_or_else(|| too_large.clone())?;
    let count = width
        .checked_mul(height)
        .filter(|count| *count <= PIXELS_MAX);
    count.map(|_| [width, height]).ok_or(too_large)
}

fn each<const N: usize>(pixels: &[u8], darkness: impl Fn([u8; N]) -> f32) -> Vec<f32> {
    let (pixels, _) = pixels.as_chunks();
    pixels.iter().map(|pixel| darkness(*pixel)).collect()
}

fn of_grey(grey: u8) -> f32 {
    1.0 - f32::from(grey) / 255.0
}

fn of_rgb(rgb: [u8; 3]) -> f32 {
    let weighed = rgb.into_iter().zip(LUMA);
    weighed.map(|(one, share)| of_grey(one) * share).sum()
}

/// Returns the darkness of inks, each from none (0) to full.
fn of_cmyk([cyan, magenta, yellow, black]: [u8; 4]) -> f32 {
    let left = 1.0 - f32::from(black) / 255.0;
    let inks = [cyan, magenta, yellow].into_iter().zip(LUMA);
    let light = inks.map(|(ink, share)| of_grey(ink) * left * share);
    1.0 - light.sum::<f32>()
}

/// Returns the darkness of a pixel in front of white paper.
fn on_white(darkness: f32, alpha: u8) -> f32 {
    darkness * f32::from(alpha) / 255.0
}
