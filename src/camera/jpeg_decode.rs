//! Decodes JPEG pictures.

use std::io::Read;

use super::CameraFailure;
use vision::{ImageFrame, PIXELS_MAX};

/// Largest JPEG that is read.
pub const JPEG_BYTES_MAX: usize = 8 * 1024 * 1024;

/// Largest memory for decoding, enough for the largest number of pixels.
const WORK_BYTES_MAX: usize = PIXELS_MAX * 4;

/// First bytes of a JPEG.
const START: &[u8] = &[0xff, 0xd8];

/// The same with the mark of MJPEG, which makes the decoder use the standard Huffman tables that USB cameras may leave out.
const MJPEG_START: &[u8] = b"\xff\xd8\xff\xe0\x00\x07AVI1\0";

/// Decodes a JPEG, in colour or grey. Checks its size before allocating memory for its pixels.
///
/// # Errors
/// The bytes are not a JPEG, or it is too large.
pub fn decode(bytes: &[u8]) -> Result<ImageFrame, CameraFailure> {
    if bytes.len() > JPEG_BYTES_MAX {
        return Err(CameraFailure::TooLong);
    }
    let unreadable = |error: jpeg_decoder::Error| CameraFailure::Jpeg(error.to_string());
    let rest = bytes.strip_prefix(START);
    let rest =
        rest.ok_or_else(|| CameraFailure::Jpeg("it does not begin like a JPEG".to_owned()))?;
    let mut decoder = jpeg_decoder::Decoder::new(MJPEG_START.chain(rest));
    decoder.set_max_decoding_buffer_size(WORK_BYTES_MAX);
    decoder.read_info().map_err(unreadable)?;
    let info = decoder.info();
    let info = info.ok_or_else(|| CameraFailure::Jpeg("it has no size".to_owned()))?;
    let [width, height] = [info.width, info.height].map(u32::from);
    ImageFrame::pixels(width, height)?;
    let pixels = decoder.decode().map_err(unreadable)?;
    let rgb = match info.pixel_format {
        jpeg_decoder::PixelFormat::RGB24 => pixels,
        jpeg_decoder::PixelFormat::L8 => pixels.iter().flat_map(|grey| [*grey; 3]).collect(),
        other => {
            let reason = format!("{other:?} is not what cameras make");
            return Err(CameraFailure::Jpeg(reason));
        }
    };
    Ok(ImageFrame::new(width, height, rgb)?)
}
