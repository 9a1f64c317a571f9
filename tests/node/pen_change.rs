//! Pens that a person changes: asked for, confirmed by an operator alone, and asked for anew after a crash.
#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::disallowed_methods,
    reason = "a failing test may panic"
)]

use crate::support;
use std::io::Write;
use std::process::{ChildStdin, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use support::ink::{self, Line};
use support::{Bench, PATIENCE, Running, Served, connect, on_port};

/// One line of each pen, in the order of the pens.
const LAYERS: [[[f64; 2]; 3]; 3] = [
    [[0.0, 0.0], [45.0, 0.0], [45.0, 8.0]],
    [[0.0, 14.0], [45.0, 14.0], [45.0, 22.0]],
    [[0.0, 28.0], [45.0, 28.0], [45.0, 36.0]],
];

const COLOURS: [&str; 3] = ["#1a1a2e", "#c0392b", "#1e8449"];

const STROKE: &str = r#"{"scene":"layers"}"#;

/// Ink nearer than this to a design is on it.
const NEAR_MM: f64 = 0.5;

/// Line that may be drawn twice where a drawing was cut short: the overlap, and what the arm was ahead of its journal.
const TWICE_MM: f64 = 9.0;

fn text(output: &std::process::Output) -> String {
    let of = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    of(&output.stdout) + &of(&output.stderr)
}

/// The scene, with a pen of each colour in one holder.
fn scene() -> String {
    let base = support::scene("layers", "[[[0.0, 0.0], [1.0, 0.0]]]");
    let (head, rest) = base.split_once("[[pens]]").unwrap();
    let (_, poses) = rest.split_once("[poses]").unwrap();
    let head = head.replace(
        "polylines = [[[0.0, 0.0], [1.0, 0.0]]]",
        "file = \"layers.svg\"\nat_mm = [20.0, 30.0]",
    );
    let head = head.replace("[design]", "pen_change = \"by_hand\"\n\n[design]");
    let pens = COLOURS.iter().enumerate().map(|(index, colour)| {
        format!(
            "[[pens]]\nname = \"pen-{}\"\ntip_m = [0.0, -0.038637, -0.010353]\naxis = [0.0, -0.965926, -0.258819]\ncolour = \"{colour}\"\n\n",
            index + 1
        )
    });
    format!("{head}{}[poses]{poses}", pens.collect::<String>())
}

/// The layers, last first: the pens' order is what counts.
fn design() -> String {
    let layers = LAYERS.iter().zip(COLOURS).rev().map(|(line, colour)| {
        let points = line.map(|[x, y]| format!("{x},{}", 36.0 - y)).join(" ");
        format!(r#"<polyline fill="none" stroke="{colour}" points="{points}"/>"#)
    });
    format!(
        r#"<svg xmlns="http://www.w3.org/2000/svg" width="45mm" height="36mm" viewBox="0 0 45 36">{}</svg>"#,
        layers.collect::<String>()
    )
}

fn layer(index: usize) -> Line {
    LAYERS[index].map(|[x, y]| [x + 20.0, y + 30.0]).to_vec()
}

/// An arm on a pseudo-terminal whose pen is changed, and a node that draws with it.
struct Desk {
    bench: Bench,
    port: String,
    hand: ChildStdin,
    sim: Running,
}

impl Desk {
    fn new() -> Self {
        let bench = Bench::new();
        bench.scene("layers", &scene());
        std::fs::create_dir_all(bench.path("scenes/designs")).unwrap();
        std::fs::write(bench.path("scenes/designs/layers.svg"), design()).unwrap();
        std::fs::write(bench.path("node.toml"), "answer_within_s = 1\n").unwrap();
        let ink = bench.path("ink.pens.json");
        let args = ["sim", "--pty", "--scene", "layers", "--ink"];
        let mut command = bench.command(&[&args[..], &[ink.to_str().unwrap()]].concat());
        let mut child = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let lines = support::lines(child.stdout.take().unwrap());
        let hand = child.stdin.take().unwrap();
        let sim = Running(child);
        let port = lines.recv_timeout(PATIENCE).unwrap();
        Self {
            bench,
            port,
            hand,
            sim,
        }
    }

    fn serve(&self) -> Served {
        let (state, config) = (self.bench.state(), self.bench.path("node.toml"));
        let here = on_port(&self.port, &state);
        let config = ["--config", config.to_str().unwrap()];
        self.bench.serve(&[&here[..], &config].concat())
    }

    fn verb(&self, words: &[&str]) -> (bool, String) {
        let told = self.bench.run(words);
        (told.status.success(), text(&told))
    }

    fn enable(&self) {
        let (done, told) = self.verb(&["enable", "--scene", "layers", "--for", "30m"]);
        assert!(done, "{told}");
    }

    fn job(&self, id: &str) -> Value {
        let told = self.bench.run(&["jobs", id, "--json"]);
        serde_json::from_slice(&told.stdout).unwrap_or(Value::Null)
    }

    /// Until a job waits for this pen, counted from 1.
    fn until_awaited(&self, pen: usize) {
        let wanted = format!("pen {pen} `pen-{pen}`");
        let began = Instant::now();
        loop {
            let (_, told) = self.verb(&["pen"]);
            if told.contains(&wanted) {
                return;
            }
            assert!(began.elapsed() < PATIENCE * 2, "no {wanted}: {told}");
            sleep(Duration::from_millis(100));
        }
    }

    /// Until a job has drawn so much.
    fn until_drawn(&self, job: &str, mm: f64) {
        let began = Instant::now();
        loop {
            let drawn_mm = self.job(job)["drawn_mm"].as_f64().unwrap_or_default();
            if drawn_mm >= mm {
                return;
            }
            assert!(began.elapsed() < PATIENCE * 2, "{drawn_mm} mm of {mm}");
            sleep(Duration::from_millis(50));
        }
    }

    /// A person puts a pen in and says so.
    fn change(&mut self, pen: usize) {
        writeln!(self.hand, "pen {pen}").unwrap();
        // The simulated hand is at the arm's thread with its next step.
        sleep(Duration::from_millis(300));
        let (done, told) = self.verb(&["pen", "--pen", &pen.to_string(), "--yes"]);
        assert!(done, "{told}");
    }

    fn until_over(&self, job: &str) -> Value {
        let began = Instant::now();
        loop {
            let told = self.job(job);
            if told["ended_ms"].as_u64().unwrap_or_default() > 0 {
                return told;
            }
            assert!(began.elapsed() < PATIENCE * 2, "{told:#}");
            sleep(Duration::from_millis(100));
        }
    }

    fn call(&self, served: &Served, tool: &str, arguments: &str) -> Value {
        self.bench.call(&[tool, arguments, "--node", &served.url]).1
    }

    /// The ink of one pen, once the arm has been put away.
    fn ink(&mut self) -> Vec<Vec<Line>> {
        assert_eq!(self.sim.terminate(), Some(0));
        let text = std::fs::read_to_string(self.bench.path("ink.pens.json")).unwrap();
        let lines: Vec<Value> = serde_json::from_str(&text).unwrap();
        let of = |pen: usize| {
            let of_pen = lines.iter().filter(|line| line["pen"] == pen);
            of_pen
                .map(|line| serde_json::from_value(line["points_mm"].clone()).unwrap())
                .collect()
        };
        (1..=COLOURS.len()).map(of).collect()
    }

    /// Every line is there once, with its pen; of layers that were cut short a little is there twice.
    fn is_drawn_once(&mut self, cut: &[usize]) {
        for (index, ink) in self.ink().into_iter().enumerate() {
            let design = vec![layer(index)];
            let missing_mm = ink::missing_mm(&design, &ink, NEAR_MM);
            assert!(missing_mm < 0.5, "pen {}: {missing_mm} mm", index + 1);
            let twice_mm = ink::length_mm(&ink) - ink::length_mm(&design);
            let may_mm = if cut.contains(&index) { TWICE_MM } else { 2.0 };
            assert!(twice_mm < may_mm, "pen {}: {twice_mm} mm twice", index + 1);
            let other_mm: f64 = ink::missing_mm(&ink, &design, 2.0);
            assert!(other_mm < 0.5, "pen {} elsewhere: {other_mm}", index + 1);
        }
    }
}

#[test]
fn three_pens_are_asked_for_one_after_the_other() {
    let mut desk = Desk::new();
    let served = desk.serve();
    desk.enable();
    let waits = desk.call(&served, "stroke", STROKE);
    assert_eq!(waits["state"], "waiting_for_pen", "{waits:#}");
    let job = waits["job"]["id"].clone();
    for pen in 1..=3 {
        desk.until_awaited(pen);
        let sensed = desk.call(&served, "sense", "{}");
        let awaited = sensed["job"]["waits_for"].as_str().unwrap();
        assert!(awaited.contains(&format!("{pen} of 3")), "{sensed:#}");
        desk.change(pen);
        // The answer to an equal call is the same job; it confirms nothing.
        let same = desk.call(&served, "stroke", STROKE);
        assert_eq!(same["job"]["id"], job, "{same:#}");
    }
    let told = desk.until_over("job-1");
    assert_eq!(told["state"], "reached", "{told:#}");
    assert_eq!(
        told["pens_confirmed"],
        json!(["pen 1 `pen-1`", "pen 2 `pen-2`", "pen 3 `pen-3`"])
    );
    desk.is_drawn_once(&[]);
}

/// Killed while it waits for the second pen, in the middle of each layer, and while it waits after that.
#[test]
fn a_drawing_that_is_killed_anywhere_asks_for_the_missing_pen_and_draws_every_line_once() {
    let mut desk = Desk::new();
    let mut served = desk.serve();
    desk.enable();
    desk.call(&served, "stroke", STROKE);
    let resume = |desk: &Desk, served: &mut Served, pen: usize| {
        served.child.0.kill().unwrap();
        served.child.0.wait().unwrap();
        *served = desk.serve();
        let told = desk.call(served, "stroke", STROKE);
        assert_eq!(told["code"], "interrupted", "{told:#}");
        desk.enable();
        let waits = desk.call(served, "stroke", r#"{"resume":true}"#);
        assert_eq!(waits["success"], true, "{waits:#}");
        desk.until_awaited(pen);
    };
    desk.until_awaited(1);
    desk.change(1);
    desk.until_drawn("job-1", 20.0);
    resume(&desk, &mut served, 1);
    desk.change(1);
    desk.until_awaited(2);
    // While it waits.
    resume(&desk, &mut served, 2);
    desk.change(2);
    desk.until_drawn("job-3", 20.0);
    resume(&desk, &mut served, 2);
    desk.change(2);
    desk.until_awaited(3);
    desk.change(3);
    desk.until_drawn("job-4", 60.0);
    resume(&desk, &mut served, 3);
    desk.change(3);
    let told = desk.until_over("job-5");
    assert_eq!(told["state"], "reached", "{told:#}");
    desk.is_drawn_once(&[0, 1, 2]);
}

#[test]
fn while_it_waits_nothing_moves_and_no_tool_confirms() {
    let mut desk = Desk::new();
    let served = desk.serve();
    desk.enable();
    desk.call(&served, "stroke", STROKE);
    desk.until_awaited(1);
    let awaits = |desk: &Desk| desk.verb(&["pen"]).1.contains("job-1");
    for (tool, arguments) in [
        ("stroke", STROKE),
        ("stroke", r#"{"scene":"layers","again":true}"#),
        ("stroke", r#"{"resume":true}"#),
        ("align", r#"{"scene":"layers"}"#),
        ("reset", "{}"),
        ("sense", "{}"),
    ] {
        desk.call(&served, tool, arguments);
        assert!(awaits(&desk), "{tool} {arguments}");
    }
    // An operator's other verbs do not move it either, and another pen is not this one.
    let (_, resumed) = desk.verb(&["resume"]);
    assert!(!resumed.contains("goes on"), "{resumed}");
    let (done, told) = desk.verb(&["pen", "job-1", "--pen", "2", "--yes"]);
    assert!(!done && told.contains("not for pen 2"), "{told}");
    assert!(!desk.verb(&["pen", "job-1"]).0, "nobody at a terminal said yes");
    assert!(awaits(&desk));
    // Enabling is looked at anew.
    assert!(desk.verb(&["disable"]).0);
    let (done, told) = desk.verb(&["pen", "job-1", "--yes"]);
    assert!(!done && told.contains("not enabled"), "{told}");
    assert!(awaits(&desk));
    desk.enable();
    desk.change(1);
    desk.until_awaited(2);
    // A stop ends the waiting; nothing moves until a person enables it, and then the rest is drawn.
    let stopped = desk.call(&served, "stop", "{}");
    assert_eq!(stopped["success"], true, "{stopped:#}");
    let told = desk.until_over("job-1");
    assert_eq!(told["state"], "stopped", "{told:#}");
    let reset = desk.call(&served, "reset", "{}");
    assert_eq!(reset["code"], "needs_enabling", "{reset:#}");
    desk.enable();
    let reset = desk.call(&served, "reset", "{}");
    assert_eq!(reset["success"], true, "{reset:#}");
    desk.call(&served, "stroke", r#"{"resume":true}"#);
    for pen in [2, 3] {
        desk.until_awaited(pen);
        desk.change(pen);
    }
    let jobs = desk.bench.run(&["jobs", "--json"]);
    let jobs: Vec<Value> = serde_json::from_slice(&jobs.stdout).unwrap();
    let last = jobs[0]["id"].as_str().unwrap().to_owned();
    assert_eq!(desk.until_over(&last)["state"], "reached");
    desk.is_drawn_once(&[]);
}

/// A verb over HTTP, with a token.
fn operate(served: &Served, token: &str, verb: &Value) -> u16 {
    let (mut stream, host) = connect(served);
    let body = verb.to_string();
    let request = format!(
        "POST /operator HTTP/1.1\r\nHost: {host}\r\nAuthorization: Bearer {token}\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{body}",
        body.len()
    );
    stream.write_all(request.as_bytes()).unwrap();
    support::answer(&mut stream).0
}

#[test]
fn a_planners_token_confirms_no_pen() {
    let bench = Bench::new();
    std::fs::write(bench.path("node.toml"), "require_tokens = true\n").unwrap();
    let (state, config) = (bench.state(), bench.path("node.toml"));
    let at = ["--state", &state, "--config", config.to_str().unwrap()];
    let token = |role: &str| {
        let made = bench.run(&[&["token", "add", role, "--role", role], &at[..]].concat());
        String::from_utf8(made.stdout).unwrap().trim().to_owned()
    };
    let (planner, operator) = (token("planner"), token("operator"));
    let served = bench.serve(&at);
    let verb = json!({"verb": "pen", "job": "job-1", "confirmed": 1});
    assert_eq!(operate(&served, &planner, &verb), 403);
    assert_eq!(operate(&served, &operator, &verb), 200);
}

/// A simulated arm has no hand at it: the command changes its pens and says so.
#[test]
fn an_embedded_arm_changes_its_pens_at_once() {
    let bench = Bench::new();
    let drawn = bench.run(&["call", "--json", "stroke", r#"{"scene":"pens_by_hand"}"#]);
    let said = text(&drawn);
    assert_eq!(drawn.status.code(), Some(0), "{said}");
    for pen in ["pen 1 `black`", "pen 2 `red`", "pen 3 `green`"] {
        assert!(said.contains(pen), "{said}");
    }
    let result: Value = serde_json::from_slice(&drawn.stdout).unwrap();
    assert!(
        result["deviation_mm_p95"].as_f64().unwrap() < 0.5,
        "{result:#}"
    );
}
