//! A camera over the sheet, by the commands that people give: pictures in `sense`, a sheet that was
//! moved, what is refused then and how that ends.
#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::disallowed_methods,
    clippy::cast_possible_truncation,
    clippy::cast_possible_wrap,
    reason = "a failing test may panic"
)]

use crate::support;
use std::io::{Read, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use serde_json::Value;
use support::{Bench, SHORT_LINES, Served, post, scene};

pub(crate) const TAGS: &str = r#"
[fiducials]
family = "36h11"
required = true
tags = [
    { id = 4, at_mm = [11.0, 11.0], size_mm = 14.0 },
    { id = 5, at_mm = [89.0, 11.0], size_mm = 14.0, turn_deg = 90.0 },
    { id = 6, at_mm = [89.0, 89.0], size_mm = 14.0 },
    { id = 7, at_mm = [11.0, 89.0], size_mm = 14.0 },
]
"#;

const LENS: &str = "size_px = [1280, 960]\nfocal_px = [900.0, 900.0]\ndistortion = [-0.08, 0.02, 0.0005, -0.0005, 0.0]\n";

const SIMULATED: &str = "source = \"simulator\"\n[cameras.simulated]\nstands_m = [0.01, -0.402, 0.345]\nlooks_at_m = [0.0, -0.175, 0.005]\n";

/// A node with a camera over a sheet that lies where a folder says.
struct Practice(Bench);

impl Practice {
    fn new(camera: &str) -> Self {
        let bench = Bench::at_test_rate().with_file("");
        std::fs::create_dir_all(bench.path("truth")).unwrap();
        let practice = Self(bench);
        practice
            .0
            .scene("short", &(scene("short", SHORT_LINES) + TAGS));
        practice.lies([0.0, 0.0], true);
        practice.camera(camera);
        practice
    }

    /// Writes what the node file says of its camera, its `source` last.
    fn camera(&self, source: &str) {
        let node = format!(
            "[[arms]]\nname = \"arm\"\nmodel = \"so101\"\nport = \"simulator\"\ntruth = {:?}\n\n[[cameras]]\nname = \"top\"\n{LENS}{source}",
            self.0.path("truth")
        );
        self.0.file(&node);
    }

    /// Puts the sheet so many mm along the base's x and y from where it was taught, with tags or with
    /// something that covers them.
    fn lies(&self, [x, y]: [f64; 2], has_tags: bool) {
        let origin = format!("[{:.6}, {:.6}, 0.005]", 0.05 + x / 1e3, -0.125 + y / 1e3);
        let text = scene("short", SHORT_LINES).replace("[0.05, -0.125, 0.005]", &origin);
        let tags = if has_tags { TAGS } else { "" };
        std::fs::write(self.0.path("truth/short.toml"), text + tags).unwrap();
    }

    /// The camera's place, taken and accepted while a node runs.
    fn calibrate(&self) -> Served {
        let served = self.0.serve(&[]);
        let (code, text) = self.0.said(&["calibrate", "camera", "--scene", "short"]);
        assert_eq!(code, 0, "{text}");
        assert!(
            text.contains("verdict: good") && text.contains("origin_m"),
            "{text}"
        );
        let (code, text) = self.0.said(&["calibrate", "accept"]);
        assert_eq!(code, 0, "{text}");
        assert!(text.contains("camera-top.toml"), "{text}");
        served
    }

    fn origin_m(&self) -> [f64; 3] {
        let text = std::fs::read_to_string(self.0.path("scenes/short.toml")).unwrap();
        let file: toml::Table = text.parse().unwrap();
        let origin = file["sheet"]["origin_m"].as_array().unwrap();
        [0, 1, 2].map(|axis| origin[axis].as_float().unwrap())
    }
}

/// Calls a tool on a serving node. Returns its structured result and the number of pictures.
fn tool(served: &Served, name: &str) -> (Value, usize) {
    let body = format!(
        r#"{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{{"name":"{name}","arguments":{{"scene":"short"}}}}}}"#
    );
    let headers =
        "Accept: application/json, text/event-stream\r\nMCP-Protocol-Version: 2025-06-18\r\n";
    let (status, answer) = post(served, headers, &body);
    assert_eq!(status, 200, "{answer}");
    let content = answer["result"]["content"].as_array().unwrap();
    let pictures = content
        .iter()
        .filter(|part| part["type"] == "image")
        .count();
    (answer["result"]["structuredContent"].clone(), pictures)
}

/// Returns the joints' angles to a twentieth of a degree; they are read again each time.
fn stands(result: &Value) -> Vec<i64> {
    let joints = result["joints"].as_array().unwrap();
    let angle = |joint: &Value| (joint["angle_deg"].as_f64().unwrap() * 20.0).round() as i64;
    joints.iter().map(angle).collect()
}

fn files(result: &Value) -> Vec<String> {
    let files = result["captured_files"].as_array().unwrap();
    files
        .iter()
        .map(|file| file.as_str().unwrap().to_owned())
        .collect()
}

#[test]
fn a_moved_sheet_is_refused_until_its_alignment_is_accepted() {
    let practice = Practice::new(SIMULATED);
    let mut served = practice.calibrate();
    let (before, pictures) = tool(&served, "sense");
    assert!(pictures >= 1, "{before:#}");
    let camera = &before["cameras"][0];
    assert_eq!(camera["name"], "top");
    assert!(
        camera["taken_at"].as_str().unwrap().ends_with(" UTC"),
        "{camera:#}"
    );
    assert_eq!(
        camera["tags_seen"].as_array().unwrap().len(),
        4,
        "{camera:#}"
    );
    assert_eq!(camera["calibrated"], true, "{camera:#}");
    assert!(camera["moved"]["mm"].as_f64().unwrap() < 0.5, "{camera:#}");
    assert!(
        files(&before)
            .iter()
            .any(|file| file.ends_with("camera-top.png")),
        "{before:#}"
    );

    practice.lies([3.0, -4.0], true);
    let (observed, _) = tool(&served, "sense");
    let moved = &observed["cameras"][0]["moved"];
    assert!(
        (moved["mm"].as_f64().unwrap() - 5.0).abs() < 0.5,
        "{moved:#}"
    );
    // The sheet's x and y run along -x and -y of the base.
    assert!(
        (moved["along_mm"][0].as_f64().unwrap() + 3.0).abs() < 0.5,
        "{moved:#}"
    );
    assert!(
        (moved["along_mm"][1].as_f64().unwrap() - 4.0).abs() < 0.5,
        "{moved:#}"
    );
    let (refused, _) = tool(&served, "stroke");
    assert_eq!(refused["code"], "sheet_moved", "{refused:#}");
    let message = refused["message"].as_str().unwrap();
    assert!(
        message.contains("align") && message.contains("; nothing moved"),
        "{message}"
    );
    let (after, _) = tool(&served, "sense");
    assert_eq!(stands(&before), stands(&after));
    assert!(after.get("job").is_none(), "there was no job: {after:#}");

    let taught = practice.origin_m();
    let (proposed, _) = tool(&served, "align");
    assert_eq!(proposed["success"], true, "{proposed:#}");
    assert!(
        proposed["next"]
            .as_str()
            .unwrap()
            .contains("steadyhand calibrate accept"),
        "{proposed:#}"
    );
    assert!(proposed.get("job").is_none(), "nothing moves: {proposed:#}");
    assert_eq!(
        format!("{:?}", practice.origin_m()),
        format!("{taught:?}"),
        "nothing is saved"
    );
    let (refused, _) = tool(&served, "stroke");
    assert_eq!(
        refused["code"], "sheet_moved",
        "a proposal is no permission: {refused:#}"
    );
    let (code, text) = practice.0.said(&["calibrate", "accept"]);
    assert_eq!(code, 0, "{text}");
    let [x, y, z] = practice.origin_m();
    assert!(
        (x - taught[0] - 3e-3).hypot(y - taught[1] + 4e-3) < 5e-4,
        "{x} {y}"
    );
    assert!(
        (z - taught[2]).abs() < 1e-9,
        "height is felt, not seen: {z}"
    );
    assert_eq!(served.child.terminate(), Some(0));

    let drawn = practice.0.call(&["stroke", r#"{"scene": "short"}"#]).1;
    assert_eq!(drawn["success"], true, "{drawn:#}");
    assert!(
        drawn["deviation_mm_max"].as_f64().unwrap() < 1.5,
        "{drawn:#}"
    );
    // And back: proof for one place does not count for the other.
    practice.lies([0.0, 0.0], true);
    let refused = practice.0.call(&["stroke", r#"{"scene": "short"}"#]).1;
    assert_eq!(refused["code"], "sheet_moved", "{refused:#}");
}

#[test]
fn where_a_scene_demands_it_an_unseen_sheet_is_not_drawn_on() {
    let practice = Practice::new(SIMULATED);
    let refused = practice.0.call(&["stroke", r#"{"scene": "short"}"#]).1;
    assert_eq!(refused["code"], "sheet_unseen", "{refused:#}");
    let message = refused["message"].as_str().unwrap();
    assert!(
        message.contains("steadyhand calibrate camera --camera top"),
        "{message}"
    );
    let preview = practice.0.call(&["sense", r#"{"scene": "short"}"#]).1;
    assert_eq!(preview["success"], true, "{preview:#}");
    assert_eq!(preview["cameras"][0]["calibrated"], false, "{preview:#}");

    let mut served = practice.calibrate();
    assert_eq!(served.child.terminate(), Some(0));
    let drawn = practice.0.call(&["stroke", r#"{"scene": "short"}"#]).1;
    assert_eq!(drawn["success"], true, "{drawn:#}");

    practice.lies([0.0, 0.0], false);
    for tool in ["stroke", "align"] {
        let refused = practice.0.call(&[tool, r#"{"scene": "short"}"#]).1;
        assert_eq!(refused["code"], "sheet_unseen", "{tool}: {refused:#}");
        assert!(
            refused["message"].as_str().unwrap().contains("4 tags"),
            "{refused:#}"
        );
    }
    let preview = practice.0.call(&["sense", r#"{"scene": "short"}"#]).1;
    assert!(
        preview["cameras"][0]["note"]
            .as_str()
            .unwrap()
            .contains("tags"),
        "{preview:#}"
    );
}

#[test]
fn a_camera_that_is_gone_is_a_note_and_no_proof() {
    let practice = Practice::new("source = \"/dev/video-gone\"\n");
    let preview = practice.0.call(&["sense", r#"{"scene": "short"}"#]).1;
    assert_eq!(preview["success"], true, "{preview:#}");
    let note = preview["cameras"][0]["note"].as_str().unwrap();
    assert!(
        note.contains("top") && note.contains("/dev/video-gone"),
        "{note}"
    );
    let refused = practice.0.call(&["stroke", r#"{"scene": "short"}"#]).1;
    assert_eq!(refused["code"], "sheet_unseen", "{refused:#}");
    // Where the scene does not demand it, the drawing goes on without.
    let text = scene("short", SHORT_LINES) + &TAGS.replace("required = true", "required = false");
    practice.0.scene("short", &text);
    let drawn = practice.0.call(&["stroke", r#"{"scene": "short"}"#]).1;
    assert_eq!(drawn["success"], true, "{drawn:#}");
}

#[test]
fn a_camera_that_was_knocked_is_not_taken_for_a_sheet_that_moved() {
    let practice = Practice::new(SIMULATED);
    let mut served = practice.calibrate();
    assert_eq!(served.child.terminate(), Some(0));
    practice.camera(&SIMULATED.replace("0.345]", "0.375]"));
    let proposed = practice.0.call(&["align", r#"{"scene": "short"}"#]).1;
    assert_eq!(proposed["verdict"], "redo", "{proposed:#}");
    assert!(
        proposed["next"].as_str().unwrap().contains("camera"),
        "{proposed:#}"
    );
    let (code, text) = practice.0.said(&["calibrate", "accept"]);
    assert!(code != 0 && text.contains("not accepted"), "{text}");
}

/// Turned by one degree, it shows the sheet in another place and off its plane: a drawing is refused for the latter, and `align` does not
/// propose what would be refused all the same.
#[test]
fn a_camera_that_was_turned_a_little_is_not_taken_for_a_sheet_that_moved() {
    let practice = Practice::new(SIMULATED);
    let mut served = practice.calibrate();
    assert_eq!(served.child.terminate(), Some(0));
    practice.camera(&SIMULATED.replace("-0.175, 0.005]", "-0.166, 0.005]"));
    let refused = practice.0.call(&["stroke", r#"{"scene": "short"}"#]).1;
    assert_eq!(refused["code"], "sheet_moved", "{refused:#}");
    let message = refused["message"].as_str().unwrap();
    assert!(
        message.contains("steadyhand calibrate camera --scene short") && !message.contains("align"),
        "{message}"
    );
    let proposed = practice.0.call(&["align", r#"{"scene": "short"}"#]).1;
    assert_eq!(proposed["verdict"], "redo", "{proposed:#}");
    let next = proposed["next"].as_str().unwrap();
    assert!(next.contains("camera"), "{next}");
    let (code, text) = practice.0.said(&["calibrate", "accept"]);
    assert!(code != 0 && text.contains("not accepted"), "{text}");
}

/// A picture that was kept.
struct Kept(tiny_skia::Pixmap);

impl Kept {
    /// The camera's picture of a result.
    fn of(result: &Value) -> Self {
        let files = files(result);
        let name = files.iter().find(|file| file.ends_with("camera-top.png"));
        let bytes = std::fs::read(name.unwrap()).unwrap();
        Self(tiny_skia::Pixmap::decode_png(&bytes).unwrap())
    }

    /// The same where they lie in another picture, which may have been made less small.
    fn over(&self, other: &Self, is_such: impl Fn([u8; 3]) -> bool) -> Vec<[i64; 2]> {
        let scale = f64::from(other.0.width()) / f64::from(self.0.width());
        let there = |at: i64| (at as f64 * scale).round() as i64;
        let all = self.pixels(is_such).into_iter();
        all.map(|[x, y]| [there(x), there(y)]).collect()
    }

    /// Pixels whose red, green and blue are such.
    fn pixels(&self, is_such: impl Fn([u8; 3]) -> bool) -> Vec<[i64; 2]> {
        let pixels = self.0.pixels().iter().enumerate();
        let such = pixels.filter(|(_, px)| is_such([px.red(), px.green(), px.blue()]));
        let width = self.0.width() as usize;
        such.map(|(at, _)| [(at % width) as i64, (at / width) as i64])
            .collect()
    }
}

/// Returns a test of whether a pixel is within the rectangle that holds these, made so much wider on each side.
fn around(these: &[[i64; 2]], more: i64) -> impl Fn(&[i64; 2]) -> bool + use<> {
    let [x, y] = [0, 1].map(|axis| {
        let all = || these.iter().map(|at| at[axis]);
        all().min().unwrap() - more..=all().max().unwrap() + more
    });
    move |[u, v]| x.contains(u) && y.contains(v)
}

/// Returns the share of these that lie nearer than three pixels to any of the others, after they were moved down.
fn share_near(these: &[[i64; 2]], others: &[[i64; 2]], down: i64) -> f64 {
    let is_near = |[x, y]: &[i64; 2]| {
        let mut others = others.iter();
        others.any(|[u, v]| (u - x).pow(2) + (v - y - down).pow(2) < 9)
    };
    these.iter().filter(|at| is_near(at)).count() as f64 / these.len() as f64
}

#[test]
fn what_is_planned_and_what_is_drawn_lie_over_the_ink_that_a_camera_sees() {
    let practice = Practice::new(&SIMULATED.replace("\nstands_m", "\nnoise_grey = 0.0\nstands_m"));
    let file = practice.0.path("node.toml");
    let text = std::fs::read_to_string(&file).unwrap();
    // A lens that brings the sheet nearer.
    std::fs::write(&file, text.replace("[900.0, 900.0]", "[2200.0, 2200.0]")).unwrap();
    let mut served = practice.calibrate();
    let (before, _) = tool(&served, "sense");
    let (drawn, _) = tool(&served, "stroke");
    assert_eq!(drawn["success"], true, "{drawn:#}");
    let (after, _) = tool(&served, "sense");
    // Where it stands is not known any more: nothing lies over the picture.
    std::fs::remove_file(practice.0.path("state/calibration/camera-top.toml")).unwrap();
    let (untouched, _) = tool(&served, "sense");
    assert!(served.child.terminate().is_some());

    let observed = Kept::of(&untouched);
    let is_blue = |[r, g, b]: [u8; 3]| b > 150 && r < 100 && g < 150;
    let is_orange = |[r, g, b]: [u8; 3]| r > 180 && g < 140 && b < 90;
    let planned = Kept::of(&before).over(&observed, is_blue);
    let inked = Kept::of(&after).over(&observed, is_orange);
    for (what, lines) in [("planned", &planned), ("drawn", &inked)] {
        assert!(lines.len() > 60, "{what}: {} pixels", lines.len());
        let around = around(lines, 12);
        let ink = observed.pixels(|[r, g, b]| r.max(g).max(b) < 150);
        let ink: Vec<_> = ink.into_iter().filter(&around).collect();
        let (near, moved) = (share_near(lines, &ink, 0), share_near(lines, &ink, 9));
        assert!(
            near > 0.95 && moved < 0.5,
            "{what}: {near} on the ink, {moved} beside it"
        );
    }
    assert!(observed.pixels(is_orange).is_empty() && observed.pixels(is_blue).is_empty());
    // Each says when it was taken, and what was kept is there.
    let taken =
        [&before, &after, &untouched].map(|of| of["cameras"][0]["taken_at_ms"].as_u64().unwrap());
    let now = steadyhand::clock::calendar_ms();
    assert!(
        taken.is_sorted() && taken[0] < taken[2] && taken[2] <= now,
        "{taken:?} {now}"
    );
    assert!(now - taken[0] < 120_000, "{taken:?} {now}");
    for file in files(&after) {
        assert!(std::path::Path::new(&file).is_file(), "{file}");
    }
}

/// A picture of the sheet's tags, 640 by 480.
const PICTURE: &[u8] = include_bytes!("../pictures/sheet.jpg");

/// Serves each request with the same picture, behind these header lines; its address.
fn frozen_camera(header: &'static str) -> String {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let at = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            let _ = stream.read(&mut [0; 1024]);
            let length = PICTURE.len();
            let head = format!(
                "HTTP/1.1 200 OK\r\nContent-Type: image/jpeg\r\n{header}Content-Length: {length}\r\n\r\n"
            );
            let _ = stream.write_all(head.as_bytes());
            let _ = stream.write_all(PICTURE);
        }
    });
    format!("http://{at}/top.jpg")
}

#[test]
fn a_camera_is_not_calibrated_by_a_picture_that_it_keeps_giving() {
    let practice = Practice::new(SIMULATED);
    practice.camera(&format!("source = \"{}\"\n", frozen_camera("")));
    let file = practice.0.path("node.toml");
    let text = std::fs::read_to_string(&file).unwrap();
    std::fs::write(&file, text.replace("[1280, 960]", "[640, 480]")).unwrap();
    let ids = [4, 5, 6, 7].iter().fold(TAGS.to_owned(), |tags, id| {
        tags.replace(&format!("id = {id}"), &format!("id = {}", id - 4))
    });
    practice
        .0
        .scene("short", &(scene("short", SHORT_LINES) + &ids));
    let mut served = practice.0.serve(&[]);
    let camera = ["calibrate", "camera", "--scene", "short"];
    let (_, text) = practice.0.said(&camera);
    assert!(text.contains("camera top of scene short"), "{text}");
    assert!(practice.0.run(&["calibrate", "discard"]).status.success());
    std::thread::sleep(std::time::Duration::from_millis(3200));
    let (code, text) = practice.0.said(&camera);
    assert!(code != 0 && text.contains("restart"), "{text}");
    let (_, shown) = practice.0.said(&["calibrate", "show"]);
    assert!(shown.contains("steadyhand calibrate touch tool"), "{shown}");
    assert!(served.child.terminate().is_some());
}

#[test]
fn a_camera_is_asked_once_before_an_alignment_and_not_before_each_touch() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let at = listener.local_addr().unwrap();
    let request_count = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&request_count);
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            count.fetch_add(1, Ordering::SeqCst);
            let mut head = [0; 1024];
            let _ = stream.read(&mut head);
            let _ = stream.write_all(b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n");
        }
    });
    let practice = Practice::new(&format!("source = \"http://{at}/top.jpg\"\n"));
    let text = scene("short", SHORT_LINES) + &TAGS.replace("required = true", "required = false");
    practice.0.scene("short", &text);
    let felt = practice
        .0
        .call(&["align", r#"{"scene": "short", "touch": true}"#])
        .1;
    assert_eq!(felt["points"].as_array().unwrap().len(), 6, "{felt:#}");
    // Whether to propose where it lies, and whether to begin.
    assert_eq!(request_count.load(Ordering::SeqCst), 2);
}
