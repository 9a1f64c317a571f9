//! Cameras over HTTP, against a real little server on this machine: snapshots, streams, and whatever
//! else a camera may answer.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::disallowed_methods,
    reason = "a failing test may panic"
)]

use crate::support::closed_port::ClosedPort;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use steadyhand::camera::{CameraError, CameraFailure, CameraHandle, CameraPicture, PictureSource};
use steadyhand::vision::{Family, find};

const SHEET: &[u8] = include_bytes!("../pictures/sheet.jpg");

/// Serves each connection with `answer`, on a thread of its own; the address of a picture.
fn serve(answer: impl Fn(&mut TcpStream) + Send + Sync + 'static) -> String {
    serve_asked(move |stream, _| answer(stream))
}

/// As [`serve`], for an answer that depends on the head of the request.
fn serve_asked(answer: impl Fn(&mut TcpStream, &str) + Send + Sync + 'static) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let at = listener.local_addr().unwrap();
    let answer = Arc::new(answer);
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let (mut stream, answer) = (stream.unwrap(), Arc::clone(&answer));
            std::thread::spawn(move || {
                let mut head = [0; 2048];
                let count = stream.read(&mut head).unwrap_or(0);
                let head = String::from_utf8_lossy(&head[..count]).into_owned();
                assert!(
                    head.starts_with("GET /camera.jpg?size=1 HTTP/1.1\r\n"),
                    "{head}"
                );
                assert!(
                    head.contains(&format!("host: 127.0.0.1:{}", at.port())),
                    "{head}"
                );
                answer(&mut stream, &head);
            });
        }
    });
    format!("http://{at}/camera.jpg?size=1")
}

fn respond(stream: &mut TcpStream, head: &str, body: &[u8]) {
    // Whoever has enough closes.
    let _ = stream.write_all(format!("HTTP/1.1 {head}\r\n\r\n").as_bytes());
    let _ = stream.write_all(body);
}

fn snapshot(stream: &mut TcpStream) {
    let head = format!(
        "200 OK\r\nContent-Type: image/jpeg\r\nContent-Length: {}",
        SHEET.len()
    );
    respond(stream, &head, SHEET);
}

fn part(stream: &mut TcpStream, picture: &[u8]) -> std::io::Result<()> {
    let head = format!(
        "--cut\r\nContent-Type: image/jpeg\r\nContent-Length: {}\r\n\r\n",
        picture.len()
    );
    stream.write_all(head.as_bytes())?;
    stream.write_all(picture)?;
    stream.write_all(b"\r\n")
}

const STREAM: &str = "200 OK\r\nContent-Type: multipart/x-mixed-replace; boundary=cut";

fn camera(address: &str, within_ms: u64) -> CameraHandle {
    camera_with(address, None, within_ms)
}

fn camera_with(address: &str, login_file: Option<PathBuf>, within_ms: u64) -> CameraHandle {
    let address = address.to_owned();
    CameraHandle::new(
        "top",
        PictureSource::Http {
            address,
            login_file,
        },
        Duration::from_millis(within_ms),
    )
}

async fn taken(address: &str) -> Result<CameraPicture, CameraError> {
    camera(address, 5000).picture().await
}

#[tokio::test]
async fn a_snapshot_is_a_picture_with_its_tags() {
    let camera = camera(&serve(snapshot), 5000);
    let picture = camera.picture().await.unwrap();
    assert_eq!(picture.frame.size_px(), [640, 480]);
    assert_eq!(picture.jpeg.as_deref(), Some(SHEET));
    assert!(picture.at_ms > 1_600_000_000_000);
    let mut ids: Vec<u16> = find(&picture.frame, Family::Tag36h11)
        .unwrap()
        .iter()
        .map(|tag| tag.id)
        .collect();
    ids.sort_unstable();
    assert_eq!(ids, [0, 1, 2, 3]);
    let again = camera.picture().await.unwrap();
    // No sensor gives the same picture twice: this one is as old as the first.
    assert_eq!((again.taken, again.at_ms), (picture.taken, picture.at_ms));
    assert!(camera.age(&again) < Duration::from_secs(60));
}

#[tokio::test]
async fn a_camera_gets_its_login_from_its_file_and_never_shows_it() {
    // "steady:ha:nd"
    let address = serve_asked(|stream, head| {
        match head.contains("authorization: Basic c3RlYWR5OmhhOm5k\r\n") {
            true => snapshot(stream),
            false => {
                let asks = "401 No\r\nWWW-Authenticate: Basic realm=x\r\nContent-Length: 0";
                respond(stream, asks, b"");
            }
        }
    });
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("top.login");
    let camera = camera_with(&address, Some(file.clone()), 5000);
    let failure = async || camera.picture().await.unwrap_err();
    let missing = failure().await;
    assert!(
        matches!(missing.failure, CameraFailure::Login { .. }),
        "{missing}"
    );
    for (written, is_login) in [
        ("sekret", false),
        (":sekret", false),
        ("a:sekret\nb", false),
        ("a:sekret", true),
    ] {
        std::fs::write(&file, written).unwrap();
        let refused = failure().await;
        let is_sent = matches!(refused.failure, CameraFailure::WrongLogin { .. });
        assert_eq!(is_sent, is_login, "{written}: {refused}");
        let shown = format!("{refused} {refused:?} {camera:?}");
        assert!(!shown.contains("sekret"), "{shown}");
    }
    std::fs::write(&file, "steady:ha:nd\n").unwrap();
    assert_eq!(camera.picture().await.unwrap().frame.size_px(), [640, 480]);
    let unnamed = taken(&address).await.unwrap_err();
    assert!(
        matches!(unnamed.failure, CameraFailure::NoLogin { .. }),
        "{unnamed}"
    );
}

/// A camera that takes any of these ways, and never hears a password.
#[tokio::test]
async fn a_camera_that_asks_for_a_digest_gets_no_password() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("top.login");
    std::fs::write(&file, "steady:ha:nd\n").unwrap();
    for (asks, is_answered) in [
        (r#"Digest realm="x", nonce="y", qop="auth""#, true),
        (
            "Basic realm=x, Digest realm=x, nonce=y, algorithm=SHA-256",
            true,
        ),
        ("Digest realm=x, nonce=y, algorithm=SHA-512-256", false),
        ("Bearer", false),
    ] {
        let address = serve_asked(move |stream, head| {
            assert!(!head.contains("Basic") && !head.contains("ha:nd"), "{head}");
            match head.contains("authorization: Digest username=\"steady\"") {
                true => snapshot(stream),
                false => {
                    let head = format!("401 No\r\nWWW-Authenticate: {asks}\r\nContent-Length: 0");
                    respond(stream, &head, b"");
                }
            }
        });
        let taken = camera_with(&address, Some(file.clone()), 5000)
            .picture()
            .await;
        let is_refused =
            |error: CameraError| matches!(error.failure, CameraFailure::LoginWay { .. });
        assert_eq!(taken.is_ok(), is_answered, "{asks}: {taken:?}");
        assert_eq!(taken.is_err_and(is_refused), !is_answered, "{asks}");
    }
}

#[tokio::test]
async fn of_a_stream_the_second_picture_is_taken_and_then_it_is_left() {
    let address = serve(|stream| {
        respond(stream, STREAM, b"");
        // The first has waited in the camera for somebody to come.
        let old = b"\xff\xd8 not even a picture";
        if part(stream, old).is_err() {
            return;
        }
        let began = Instant::now();
        while part(stream, SHEET).is_ok() {
            assert!(began.elapsed() < Duration::from_secs(60), "nobody left");
            std::thread::sleep(Duration::from_millis(20));
        }
    });
    let picture = taken(&address).await.unwrap();
    assert_eq!(picture.frame.size_px(), [640, 480]);
}

#[tokio::test]
async fn a_stream_that_ends_gives_no_picture() {
    let error = taken(&serve(|stream| {
        respond(stream, &format!("{STREAM}\r\nConnection: close"), b"");
        let _ = part(stream, SHEET);
        let _ = stream.write_all(b"--cut--\r\n");
    }))
    .await
    .unwrap_err();
    assert!(matches!(error.failure, CameraFailure::Ended), "{error}");
}

#[tokio::test]
async fn whatever_else_it_answers_is_said() {
    type Is = fn(&CameraFailure) -> bool;
    let cases: [(&str, &[u8], Is); 8] = [
        ("401 Unauthorized\r\nContent-Length: 0", b"", |reason| {
            matches!(reason, CameraFailure::NoLogin { .. })
        }),
        (
            "302 Found\r\nLocation: /other\r\nContent-Length: 0",
            b"",
            |reason| matches!(reason, CameraFailure::Status { status: 302, .. }),
        ),
        (
            "200 OK\r\nContent-Type: text/html\r\nContent-Length: 4",
            b"page",
            |reason| matches!(reason, CameraFailure::Kind(_)),
        ),
        (
            "200 OK\r\nContent-Type: image/jpeg\r\nAge: 90\r\nContent-Length: 4",
            b"abcd",
            |reason| matches!(reason, CameraFailure::Old(age) if age == "90"),
        ),
        (
            "200 OK\r\nContent-Type: image/jpeg\r\nAge: 99999999999999999999999\r\nContent-Length: 4",
            b"abcd",
            |reason| matches!(reason, CameraFailure::Old(_)),
        ),
        (
            "200 OK\r\nContent-Type: image/jpeg\r\nAge: 1\r\nAge: long ago\r\nContent-Length: 4",
            b"abcd",
            |reason| matches!(reason, CameraFailure::Old(age) if age == "long ago"),
        ),
        (
            "200 OK\r\nContent-Type: image/jpeg\r\nContent-Length: 4",
            b"abcd",
            |reason| matches!(reason, CameraFailure::Jpeg(_)),
        ),
        ("no HTTP at all", b"", |reason| {
            matches!(reason, CameraFailure::Broken { .. })
        }),
    ];
    for (head, body, is) in cases {
        let error = taken(&serve(move |stream| respond(stream, head, body)))
            .await
            .unwrap_err();
        assert!(is(&error.failure), "{head:?}: {error}");
        assert!(error.to_string().starts_with("camera top: "), "{error}");
    }
}

#[tokio::test]
async fn heads_and_bodies_without_an_end_are_cut_off() {
    let head = serve(|stream| {
        let _ = stream.write_all(b"HTTP/1.1 200 OK\r\n");
        while stream
            .write_all(b"X-More: and more and more and more\r\n")
            .is_ok()
        {}
    });
    let error = taken(&head).await.unwrap_err();
    assert!(
        matches!(error.failure, CameraFailure::Broken { .. }),
        "{error}"
    );
    let body = serve(|stream| {
        respond(
            stream,
            "200 OK\r\nContent-Type: image/jpeg\r\nConnection: close",
            b"",
        );
        while stream.write_all(&[0x55; 65_536]).is_ok() {}
    });
    let error = camera(&body, 20_000).picture().await.unwrap_err();
    assert!(matches!(error.failure, CameraFailure::TooLong), "{error}");
}

#[tokio::test]
async fn a_camera_that_says_nothing_is_not_waited_for() {
    let address = serve(|_| std::thread::sleep(Duration::from_secs(120)));
    let began = Instant::now();
    let error = camera(&address, 300).picture().await.unwrap_err();
    assert!(matches!(error.failure, CameraFailure::Late(_)), "{error}");
    assert!(began.elapsed() < Duration::from_secs(60));
    let closed = ClosedPort::new();
    let error = taken(&format!("http://{}/camera.jpg", closed.address()))
        .await
        .unwrap_err();
    assert!(
        matches!(error.failure, CameraFailure::Connect { .. }),
        "{error}"
    );
}
