//! JPEG bytes made a picture.

use std::io::Read;

use super::CameraFailure;
use vision::{ImageFrame, PIXELS_MAX};

/// Longer files are not read.
pub const JPEG_BYTES_MAX: usize = 8 * 1024 * 1024;

/// Largest memory for decoding a file with the largest number of pixels.
const WORK_BYTES_MAX: usize = PIXELS_MAX * 4;

/// First bytes of a JPEG.
const START: &[u8] = &[0xff, 0xd8];

/// The same with the mark of MJPEG: by it the standard Huffman tables are taken, which USB cameras may leave out.
const MJPEG_START: &[u8] = b"\xff\xd8\xff\xe0\x00\x07AVI1\0";

/// A JPEG as cameras make it, in colour or grey. Its size is looked at before its pixels are made.
///
/// # Errors
/// Bytes that are no JPEG, or one that is too large.
pub fn decode(bytes: &[u8]) -> Result<ImageFrame, CameraFailure> {
    if bytes.len() > JPEG_BYTES_MAX {
        return Err(CameraFailure::TooLong);
    }
    let unread = |error: jpeg_decoder::Error| CameraFailure::Jpeg(error.to_string());
    let rest = bytes.strip_prefix(START);
    let rest = rest.ok_or_else(|| CameraFailure::Jpeg("it does not begin as a JPEG".to_owned()))?;
    let mut decoder = jpeg_decoder::Decoder::new(MJPEG_START.chain(rest));
    decoder.set_max_decoding_buffer_size(WORK_BYTES_MAX);
    decoder.read_info().map_err(unread)?;
    let info = decoder.info();
    let info = info.ok_or_else(|| CameraFailure::Jpeg("it has no size".to_owned()))?;
    let [width, height] = [info.width, info.height].map(u32::from);
    ImageFrame::pixels(width, height)?;
    let pixels = decoder.decode().map_err(unread)?;
    let rgb = match info.pixel_format {
        jpeg_decoder::PixelFormat::RGB24 => pixels,
        jpeg_decoder::PixelFormat::L8 => pixels.iter().flat_map(|grey| [*grey; 3]).collect(),
        other => {
            let why = format!("{other:?} is not what cameras make");
            return Err(CameraFailure::Jpeg(why));
        }
    };
    Ok(ImageFrame::new(width, height, rgb)?)
}
