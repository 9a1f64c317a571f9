//! Tests of well-formed and malformed streams, pictures and devices.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a failing test may panic"
)]

use proptest::prelude::*;

use super::*;

#[cfg(target_os = "linux")]
mod device;

/// A sheet with the tags 0 to 3, 640 by 480.
const SHEET: &[u8] = include_bytes!("../../tests/pictures/sheet.jpg");

const CONTENT_TYPE: &str = "multipart/x-mixed-replace; boundary=frame";

/// Returns a stream of these pictures, with their lengths if `has_length`.
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
    fn finds_the_pictures_of_a_stream_however_it_is_split(
        pictures in prop::collection::vec(prop::collection::vec(any::<u8>(), 1..300), 1..5),
        cuts in prop::collection::vec(1..80_usize, 1..40),
        has_length: bool,
    ) {
        // A picture without a length must not hold the delimiter; with one it may hold anything.
        let bytes = stream(&pictures, has_length);
        let mut parts = MjpegParts::new(CONTENT_TYPE).unwrap();
        let (mut rest, mut found) = (bytes.as_slice(), Vec::new());
        for cut in cuts.iter().cycle() {
            let (chunk, remaining) = rest.split_at((*cut).min(rest.len()));
            found.extend(parts.feed(chunk).unwrap());
            rest = remaining;
            if rest.is_empty() {
                break;
            }
        }
        prop_assert_eq!(found, pictures);
    }

    #[test]
    fn no_bytes_break_the_stream_parser(
        chunks in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..200), 0..40)
    ) {
        let mut parts = MjpegParts::new(CONTENT_TYPE).unwrap();
        for chunk in &chunks {
            if parts.feed(chunk).is_err() {
                break;
            }
        }
    }

    #[test]
    fn nearly_valid_streams_do_not_break_the_parser(
        tokens in prop::collection::vec(prop::sample::select(vec![
            "--frame", "\r\n", "\n", "--", "Content-Length: ", "3", "-1", "99999999999", "Content-Type: ",
            "image/jpeg", "text/html", "\r\n\r\n", "abc", ":", "--frame--",
        ]), 0..60)
    ) {
        let mut parts = MjpegParts::new(CONTENT_TYPE).unwrap();
        let mut size = 0;
        for token in &tokens {
            match parts.feed(token.as_bytes()) {
                Ok(pictures) => size += pictures.iter().map(Vec::len).sum::<usize>(),
                Err(_) => break,
            }
        }
        prop_assert!(size <= tokens.iter().map(|token| token.len()).sum());
    }

    #[test]
    fn no_bytes_break_the_decoder(bytes in prop::collection::vec(any::<u8>(), 0..2000)) {
        let _ = decode(&bytes);
        let mut with_start = vec![0xff, 0xd8, 0xff];
        with_start.extend(bytes);
        let _ = decode(&with_start);
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
fn heads_lengths_and_pictures_are_bounded() {
    let mut parts = MjpegParts::new(CONTENT_TYPE).unwrap();
    assert!(matches!(
        parts.feed(&[b'x'; 9000]),
        Err(CameraFailure::Stream(_))
    ));
    let mut parts = MjpegParts::new(CONTENT_TYPE).unwrap();
    let long = b"--frame\r\nContent-Length: 99999999\r\n";
    assert!(matches!(parts.feed(long), Err(CameraFailure::TooLong)));
    let mut parts = MjpegParts::new(CONTENT_TYPE).unwrap();
    let page = b"--frame\r\nContent-Type: text/html\r\n";
    assert!(matches!(parts.feed(page), Err(CameraFailure::Kind(kind)) if kind == "text/html"));
    let mut parts = MjpegParts::new(CONTENT_TYPE).unwrap();
    parts.feed(b"--frame\r\n\r\n").unwrap();
    let mut fed = 0;
    while parts.feed(&[7; 65_536]).is_ok() {
        fed += 65_536;
        assert!(
            fed <= JPEG_BYTES_MAX + 65_536,
            "the parser accepts any amount"
        );
    }
    assert!(matches!(
        decode(&vec![0; JPEG_BYTES_MAX + 1]),
        Err(CameraFailure::TooLong)
    ));
}

/// Returns the head of a JPEG that claims this size, without pixels.
fn jpeg_head(width: u16, height: u16) -> Vec<u8> {
    let [[w1, w0], [h1, h0]] = [width.to_be_bytes(), height.to_be_bytes()];
    let mut head = vec![0xff, 0xd8, 0xff, 0xc0, 0, 17, 8, h1, h0, w1, w0, 3];
    head.extend([1, 0x11, 0, 2, 0x11, 0, 3, 0x11, 0]);
    head.extend([0xff, 0xda, 0, 12, 3, 1, 0, 2, 0, 3, 0, 0, 63, 0]);
    head
}

#[test]
fn refuses_a_huge_picture_before_decoding_it() {
    let error = decode(&jpeg_head(65_000, 65_000)).unwrap_err();
    assert!(matches!(error, CameraFailure::Frame(_)), "{error}");
}

async fn device_failure(path: &str) -> CameraError {
    let source = PictureSource::Device {
        path: path.into(),
        size_px: [640, 480],
    };
    let camera = CameraHandle::new("top", source, Duration::from_secs(2));
    camera.picture().await.unwrap_err()
}

#[tokio::test]
async fn a_file_that_is_not_a_camera_is_refused_unopened() {
    let missing = device_failure("/dev/video-that-is-not-there").await;
    assert!(
        matches!(missing.failure, CameraFailure::Missing(_)),
        "{missing}"
    );
    assert!(missing.to_string().contains("/dev/video-"), "{missing}");
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("video0");
    std::fs::write(&file, "not a camera").unwrap();
    // A terminal is a character device, too, like an arm's port.
    for path in [
        file.to_str().unwrap(),
        "/dev/null",
        "/dev/tty",
        folder.path().to_str().unwrap(),
    ] {
        let error = device_failure(path).await;
        assert!(
            matches!(error.failure, CameraFailure::NotACamera { .. }),
            "{path}: {error}"
        );
        assert!(error.to_string().contains("video device"), "{error}");
    }
}

#[tokio::test]
async fn invalid_addresses_are_refused() {
    for address in [
        "https://10.0.0.9/a.jpg",
        "http://name:word@10.0.0.9/",
        "http://",
        "ftp://x/",
        "http://10.0.0.9:80000/a.jpg",
    ] {
        let camera = CameraHandle::new(
            "top",
            PictureSource::Http {
                address: address.to_owned(),
                login_file: None,
            },
            Duration::from_secs(2),
        );
        let error = camera.picture().await.unwrap_err();
        assert!(
            matches!(error.failure, CameraFailure::Address(_)),
            "{address}: {error}"
        );
    }
}

/// Removes the segments of this kind from a JPEG; all of them come before its pixels.
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
    let tableless = without(SHEET, 0xc4);
    assert!(tableless.len() < SHEET.len());
    assert!(decode(&tableless).unwrap() == decode(SHEET).unwrap());
}
