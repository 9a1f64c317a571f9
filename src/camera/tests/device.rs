//! Cameras that Linux has as devices.

use linuxvideo::format::{PixFormat, PixelFormat};
use proptest::prelude::*;

use super::SHEET;
use crate::v4l2_device::{NegotiatedFormat, best_format, device_error, has_end, rgb_from_yuyv};
use crate::*;

proptest! {
    #[test]
    fn a_device_gives_the_right_number_of_pixels(
        width in 1..40_usize, height in 1..20_usize, padding in 0..9_usize, bytes in prop::collection::vec(any::<u8>(), 0..4000)
    ) {
        let rgb = rgb_from_yuyv(&bytes, width, height, width * 2 + padding);
        prop_assert!(rgb.len() <= width * height * 3);
        let complete = vec![128; (width * 2 + padding).next_multiple_of(4) * height + 8];
        if width.is_multiple_of(2) {
            prop_assert_eq!(rgb_from_yuyv(&complete, width, height, width * 2).len(), width * height * 3);
        }
    }
}

#[test]
fn converts_black_and_white_from_yuyv() {
    assert_eq!(
        rgb_from_yuyv(&[16, 128, 235, 128], 2, 1, 4),
        [0, 0, 0, 255, 255, 255]
    );
}

/// Converts a picture to YUYV, as a device without JPEG gives it.
fn yuyv_from(frame: &ImageFrame) -> Vec<u8> {
    let pairs = frame.rgb().chunks_exact(6);
    let pair = |pair: &[u8]| {
        let [r, g, b] = [0, 1, 2].map(|of| f64::from(pair[of]));
        let [s, h, c] = [3, 4, 5].map(|of| f64::from(pair[of]));
        let luma = |r: f64, g: f64, b: f64| 16.0 + 0.257 * r + 0.504 * g + 0.098 * b;
        let blue = 128.0 - 0.148 * r - 0.291 * g + 0.439 * b;
        let red = 128.0 + 0.439 * r - 0.368 * g - 0.071 * b;
        #[allow(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "each is within a byte"
        )]
        [luma(r, g, b), blue, luma(s, h, c), red].map(|value| value.round() as u8)
    };
    pairs.flat_map(pair).collect()
}

#[test]
fn a_sheet_is_found_in_a_yuyv_picture_of_a_device() {
    let sheet = decode(SHEET).unwrap();
    let negotiated = NegotiatedFormat::of(&PixFormat::new(640, 480, PixelFormat::YUYV)).unwrap();
    let Ok(RawPicture::Frame(frame)) = negotiated.picture(yuyv_from(&sheet)) else {
        panic!("no picture");
    };
    let pairs = frame.rgb().iter().zip(sheet.rgb());
    let difference: u64 = pairs.map(|(a, b)| u64::from(a.abs_diff(*b))).sum();
    assert!(difference / 921_600 < 6, "{difference}");
    let mut ids: Vec<u16> = vision::find(&frame, vision::Family::Tag36h11)
        .unwrap()
        .iter()
        .map(|tag| tag.id)
        .collect();
    ids.sort_unstable();
    assert_eq!(ids, [0, 1, 2, 3]);
    // A picture that ends too early is refused.
    let truncated = negotiated.picture(vec![128; 640 * 2 * 100]);
    assert!(matches!(truncated, Err(CameraFailure::Frame(_))));
}

#[test]
fn chooses_the_best_listed_format_and_checks_the_negotiated_one() {
    let [jpeg, yuyv, h264] = [
        PixelFormat::MJPG,
        PixelFormat::YUYV,
        PixelFormat::from_fourcc(*b"H264"),
    ];
    assert_eq!(best_format(&[h264, yuyv, jpeg]).unwrap(), jpeg);
    assert_eq!(best_format(&[h264, yuyv]).unwrap(), yuyv);
    let text = |failure: CameraFailure| failure.to_string();
    assert!(text(best_format(&[h264]).unwrap_err()).contains("H264"));
    assert!(text(best_format(&[]).unwrap_err()).contains("pictures as nothing"));
    let other = NegotiatedFormat::of(&PixFormat::new(640, 480, h264)).unwrap_err();
    assert!(text(other).contains("H264"));
    let huge = NegotiatedFormat::of(&PixFormat::new(60_000, 480, yuyv)).unwrap_err();
    assert!(matches!(huge, CameraFailure::Frame(_)), "{huge}");
}

#[test]
fn system_errors_of_a_device_are_reported_with_a_fix() {
    use rustix::io::Errno;
    let message_of = |errno: Errno| {
        let error = std::io::Error::from_raw_os_error(errno.raw_os_error());
        device_error(std::path::Path::new("/dev/video7"), error).to_string()
    };
    for (errno, fix) in [
        (
            Errno::BUSY,
            "/dev/video7 is in use. Next: close the other program",
        ),
        (Errno::ACCESS, "add the user to the group `video`"),
        (
            Errno::NOENT,
            "there is no /dev/video7. Next: plug the camera in",
        ),
        (
            Errno::NODEV,
            "there is no /dev/video7. Next: plug the camera in",
        ),
        (Errno::NOTTY, "/dev/video7 gives no pictures"),
        (Errno::IO, "unplug it and plug it in again"),
    ] {
        let message = message_of(errno);
        assert!(message.contains(fix), "{errno}: {message}");
    }
}

#[test]
fn a_picture_that_was_cut_short_has_no_end() {
    assert!(has_end(SHEET));
    assert!(has_end(&[SHEET, &[0; 64]].concat()));
    assert!(!has_end(&SHEET[..SHEET.len() / 2]));
}
