//! Streams, pictures and devices as they come, and as they should not.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a failing test may panic"
)]

use proptest::prelude::*;

use linuxvideo::format::{PixFormat, PixelFormat};

use super::v4l2_device::{NegotiatedFormat, best, device_error, has_end, yuyv};
use super::*;

/// A sheet with the tags 0 to 3, 640 by 480.
const SHEET: &[u8] = include_bytes!("../../tests/pictures/sheet.jpg");

const KIND: &str = "multipart/x-mixed-replace; boundary=frame";

/// A stream of these pictures; some cameras say how long each is.
fn stream(pictures: &[Vec<u8>], has_length: bool) -> Vec<u8> {
    let mut bytes = Vec::new();
    for picture in pictures {
        bytes.extend_from_slice(b"--frame\r\nContent-Type: image/jpeg\r\n");
        if has_length {
            bytes.extend(format!("Content-Length: {}\r\n", picture.len()).into_bytes());
        }
        bytes.extend_from_slice(b"\r\n");
        bytes.extend_from_slice(picture);
        bytes.extend_from_slice(b"\r\n");
    }
    bytes.extend_from_slice(b"--frame\r\n");
    bytes
}

proptest! {
    #[test]
    fn pictures_come_out_of_a_stream_however_it_is_cut(
        pictures in prop::collection::vec(prop::collection::vec(any::<u8>(), 1..300), 1..5),
        cuts in prop::collection::vec(1..80_usize, 1..40),
        has_length: bool,
    ) {
        // A picture without a length must not hold the delimiter; with one it may hold anything.
        let bytes = stream(&pictures, has_length);
        let mut parts = MjpegParts::new(KIND).unwrap();
        let (mut rest, mut found) = (bytes.as_slice(), Vec::new());
        for cut in cuts.iter().cycle() {
            let (now, later) = rest.split_at((*cut).min(rest.len()));
            found.extend(parts.feed(now).unwrap());
            rest = later;
            if rest.is_empty() {
                break;
            }
        }
        prop_assert_eq!(found, pictures);
    }

    #[test]
    fn no_bytes_break_the_reader_of_streams(
        chunks in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..200), 0..40)
    ) {
        let mut parts = MjpegParts::new(KIND).unwrap();
        for chunk in &chunks {
            if parts.feed(chunk).is_err() {
                break;
            }
        }
    }

    #[test]
    fn nearly_a_stream_does_not_break_it_either(
        words in prop::collection::vec(prop::sample::select(vec![
            "--frame", "\r\n", "\n", "--", "Content-Length: ", "3", "-1", "99999999999", "Content-Type: ",
            "image/jpeg", "text/html", "\r\n\r\n", "abc", ":", "--frame--",
        ]), 0..60)
    ) {
        let mut parts = MjpegParts::new(KIND).unwrap();
        let mut size = 0;
        for word in &words {
            match parts.feed(word.as_bytes()) {
                Ok(pictures) => size += pictures.iter().map(Vec::len).sum::<usize>(),
                Err(_) => break,
            }
        }
        prop_assert!(size <= words.iter().map(|word| word.len()).sum());
    }

    #[test]
    fn no_bytes_break_the_reader_of_pictures(bytes in prop::collection::vec(any::<u8>(), 0..2000)) {
        let _ = decode(&bytes);
        let mut begun = vec![0xff, 0xd8, 0xff];
        begun.extend(bytes);
        let _ = decode(&begun);
    }

    #[test]
    fn a_damaged_picture_is_read_or_refused(
        damage in prop::collection::vec((0..SHEET.len(), any::<u8>()), 1..12), end in 0..SHEET.len()
    ) {
        let mut bytes = SHEET.to_vec();
        for (at, byte) in damage {
            bytes[at] = byte;
        }
        bytes.truncate(end.max(2));
        if let Ok(frame) = decode(&bytes) {
            let [width, height] = frame.size_px();
            prop_assert_eq!(frame.rgb().len(), width as usize * height as usize * 3);
        }
    }

    #[test]
    fn pixels_of_a_device_are_as_many_as_there_should_be(
        width in 1..40_usize, height in 1..20_usize, more in 0..9_usize, bytes in prop::collection::vec(any::<u8>(), 0..4000)
    ) {
        let rgb = yuyv(&bytes, width, height, width * 2 + more);
        prop_assert!(rgb.len() <= width * height * 3);
        let whole = vec![128; (width * 2 + more).next_multiple_of(4) * height + 8];
        if width.is_multiple_of(2) {
            prop_assert_eq!(yuyv(&whole, width, height, width * 2).len(), width * height * 3);
        }
    }
}

#[test]
fn boundaries_are_read_as_cameras_write_them() {
    for kind in [
        "multipart/x-mixed-replace; boundary=frame",
        "multipart/x-mixed-replace;boundary=\"frame\"",
        "multipart/x-mixed-replace; charset=x; Boundary=--frame",
    ] {
        let mut parts = MjpegParts::new(kind).unwrap();
        let found = parts.feed(&stream(&[b"one".to_vec()], true)).unwrap();
        assert_eq!(found, [b"one"], "{kind}");
    }
    for kind in [
        "multipart/x-mixed-replace",
        "multipart/x-mixed-replace; boundary=",
    ] {
        assert!(
            matches!(MjpegParts::new(kind), Err(CameraFailure::Stream(_))),
            "{kind}"
        );
    }
}

#[test]
fn heads_lengths_and_pictures_have_their_bounds() {
    let mut parts = MjpegParts::new(KIND).unwrap();
    assert!(matches!(
        parts.feed(&[b'x'; 9000]),
        Err(CameraFailure::Stream(_))
    ));
    let mut parts = MjpegParts::new(KIND).unwrap();
    let long = b"--frame\r\nContent-Length: 99999999\r\n";
    assert!(matches!(parts.feed(long), Err(CameraFailure::TooLong)));
    let mut parts = MjpegParts::new(KIND).unwrap();
    let page = b"--frame\r\nContent-Type: text/html\r\n";
    assert!(matches!(parts.feed(page), Err(CameraFailure::Kind(kind)) if kind == "text/html"));
    let mut parts = MjpegParts::new(KIND).unwrap();
    parts.feed(b"--frame\r\n\r\n").unwrap();
    let mut fed = 0;
    while parts.feed(&[7; 65_536]).is_ok() {
        fed += 65_536;
        assert!(fed <= JPEG_BYTES_MAX + 65_536, "it is never too much");
    }
    assert!(matches!(
        decode(&vec![0; JPEG_BYTES_MAX + 1]),
        Err(CameraFailure::TooLong)
    ));
}

/// A JPEG's head that claims this size, and nothing after it.
fn claims(width: u16, height: u16) -> Vec<u8> {
    let [[w1, w0], [h1, h0]] = [width.to_be_bytes(), height.to_be_bytes()];
    let mut head = vec![0xff, 0xd8, 0xff, 0xc0, 0, 17, 8, h1, h0, w1, w0, 3];
    head.extend([1, 0x11, 0, 2, 0x11, 0, 3, 0x11, 0]);
    head.extend([0xff, 0xda, 0, 12, 3, 1, 0, 2, 0, 3, 0, 0, 63, 0]);
    head
}

#[test]
fn a_picture_that_claims_to_be_huge_is_refused_before_it_is_made() {
    let error = decode(&claims(65_000, 65_000)).unwrap_err();
    assert!(matches!(error, CameraFailure::Frame(_)), "{error}");
}

#[test]
fn black_and_white_come_out_of_a_device_as_such() {
    assert_eq!(
        yuyv(&[16, 128, 235, 128], 2, 1, 4),
        [0, 0, 0, 255, 255, 255]
    );
}

/// The pixels of a picture as a device gives them that knows no JPEG.
fn as_yuyv(frame: &ImageFrame) -> Vec<u8> {
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
fn a_sheet_is_found_in_the_bare_pixels_of_a_device() {
    let sheet = decode(SHEET).unwrap();
    let got = NegotiatedFormat::of(&PixFormat::new(640, 480, PixelFormat::YUYV)).unwrap();
    let Ok(RawPicture::Frame(frame)) = got.raw(as_yuyv(&sheet)) else {
        panic!("no picture");
    };
    let off = frame.rgb().iter().zip(sheet.rgb());
    let off: u64 = off.map(|(a, b)| u64::from(a.abs_diff(*b))).sum();
    assert!(off / 921_600 < 6, "{off}");
    let mut ids: Vec<u16> = vision::find(&frame, vision::Family::Tag36h11)
        .unwrap()
        .iter()
        .map(|tag| tag.id)
        .collect();
    ids.sort_unstable();
    assert_eq!(ids, [0, 1, 2, 3]);
    // A picture that ends too early is none.
    let short = got.raw(vec![128; 640 * 2 * 100]);
    assert!(matches!(short, Err(CameraFailure::Frame(_))));
}

#[test]
fn a_device_is_asked_for_the_best_that_it_lists_and_what_it_agrees_to_is_looked_at() {
    let [jpeg, bare, film] = [
        PixelFormat::MJPG,
        PixelFormat::YUYV,
        PixelFormat::from_fourcc(*b"H264"),
    ];
    assert_eq!(best(&[film, bare, jpeg]).unwrap(), jpeg);
    assert_eq!(best(&[film, bare]).unwrap(), bare);
    let said = |why: CameraFailure| why.to_string();
    assert!(said(best(&[film]).unwrap_err()).contains("pictures as H264; MJPG, JPEG and YUYV"));
    assert!(said(best(&[]).unwrap_err()).contains("pictures as nothing"));
    let other = NegotiatedFormat::of(&PixFormat::new(640, 480, film)).unwrap_err();
    assert!(said(other).contains("H264"));
    let huge = NegotiatedFormat::of(&PixFormat::new(60_000, 480, bare)).unwrap_err();
    assert!(matches!(huge, CameraFailure::Frame(_)), "{huge}");
}

#[test]
fn what_the_system_says_of_a_device_is_told_with_what_mends_it() {
    use rustix::io::Errno;
    let told = |errno: Errno| {
        let error = std::io::Error::from_raw_os_error(errno.raw_os_error());
        device_error(std::path::Path::new("/dev/video7"), error).to_string()
    };
    for (errno, mend) in [
        (Errno::BUSY, "/dev/video7 is in use: end the other program"),
        (Errno::ACCESS, "add the user to the group `video`"),
        (Errno::NOENT, "there is no /dev/video7: plug the camera in"),
        (Errno::NODEV, "there is no /dev/video7: plug the camera in"),
        (Errno::NOTTY, "/dev/video7 is no camera"),
        (Errno::IO, "unplug it and plug it in again"),
    ] {
        let said = told(errno);
        assert!(said.contains(mend), "{errno}: {said}");
    }
}

async fn of_device(path: &str) -> CameraError {
    let source = PictureSource::Device {
        path: path.into(),
        size_px: [640, 480],
    };
    let camera = CameraHandle::new("top", source, Duration::from_secs(2));
    camera.picture().await.unwrap_err()
}

#[tokio::test]
async fn a_device_that_is_none_says_so_and_is_not_opened() {
    let missing = of_device("/dev/video-that-is-not-there").await;
    assert!(
        matches!(missing.why, CameraFailure::Missing(_)),
        "{missing}"
    );
    assert!(
        missing
            .to_string()
            .starts_with("camera top: there is no /dev/video-"),
        "{missing}"
    );
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("video0");
    std::fs::write(&file, "not a camera").unwrap();
    // A terminal is a character device, too, as an arm's port is.
    for path in [
        file.to_str().unwrap(),
        "/dev/null",
        "/dev/tty",
        folder.path().to_str().unwrap(),
    ] {
        let error = of_device(path).await;
        assert!(
            matches!(error.why, CameraFailure::NotACamera { .. }),
            "{path}: {error}"
        );
        assert!(error.to_string().contains("no video device"), "{error}");
    }
}

#[tokio::test]
async fn addresses_that_are_none_are_refused() {
    for address in [
        "https://10.0.0.9/a.jpg",
        "http://name:word@10.0.0.9/",
        "http://",
        "ftp://x/",
    ] {
        let camera = CameraHandle::new(
            "top",
            PictureSource::Http(address.to_owned()),
            Duration::from_secs(2),
        );
        let error = camera.picture().await.unwrap_err();
        assert!(
            matches!(error.why, CameraFailure::Address(_)),
            "{address}: {error}"
        );
    }
}

/// A JPEG without its segments of this kind, all of which come before its pixels.
fn without(jpeg: &[u8], marker: u8) -> Vec<u8> {
    let (mut kept, mut at) = (jpeg[..2].to_vec(), 2);
    while jpeg[at + 1] != 0xda {
        let length = usize::from(u16::from_be_bytes([jpeg[at + 2], jpeg[at + 3]]));
        let segment = &jpeg[at..at + 2 + length];
        if segment[1] != marker {
            kept.extend_from_slice(segment);
        }
        at += segment.len();
    }
    kept.extend_from_slice(&jpeg[at..]);
    kept
}

/// USB cameras may leave the standard tables out of each picture.
#[test]
fn a_picture_without_huffman_tables_is_read_with_the_standard_ones() {
    let bare = without(SHEET, 0xc4);
    assert!(bare.len() < SHEET.len());
    assert!(decode(&bare).unwrap() == decode(SHEET).unwrap());
}

#[test]
fn a_picture_that_was_cut_short_has_no_end() {
    assert!(has_end(SHEET));
    assert!(has_end(&[SHEET, &[0; 64]].concat()));
    assert!(!has_end(&SHEET[..SHEET.len() / 2]));
}
