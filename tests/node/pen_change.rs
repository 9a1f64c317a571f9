//! Tests pen changes and pauses: requested, confirmed only by an operator, and requested again after a crash.
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
use std::sync::mpsc::Receiver;
use std::thread::sleep;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use support::ink::{self, Line};
use support::starvation::RealTimeSeat;
use support::{
    Bench, Caller, PATIENCE, Running, Served, connect, json_of, on_port, printed_by, until,
};

/// One line of each pen, in the order of the pens.
const LAYERS: [[[f64; 2]; 3]; 3] = [
    [[0.0, 0.0], [45.0, 0.0], [45.0, 8.0]],
    [[0.0, 14.0], [45.0, 14.0], [45.0, 22.0]],
    [[0.0, 28.0], [45.0, 28.0], [45.0, 36.0]],
];

const COLOURS: [&str; 3] = ["#1a1a2e", "#c0392b", "#1e8449"];

const STROKE: &str = r#"{"scene":"layers"}"#;

/// Ink nearer than this to a design is on it.
const NEAR_MM: f64 = 1.0;

/// Number of times that a node is started, at the most, to serve once.
const ATTEMPTS: u32 = 15;

/// Line that may be drawn twice where a drawing was cut short: the overlap, and what the arm was ahead of its journal.
const TWICE_MM: f64 = 9.0;

/// Ink that a pen may leave beside its lines where a busy machine starved the bus: servos whose goals come 0.1 s late reach them
/// one after the other, so the tip leaves its way.
const DRAGGED_MM: f64 = 6.0;

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

/// The scene with one pen, for a drawing that pauses.
fn scene_of_pauses() -> String {
    support::scene("layers", "[[[0.0, 0.0], [1.0, 0.0]]]").replace(
        "polylines = [[[0.0, 0.0], [1.0, 0.0]]]",
        "file = \"layers.svg\"\nat_mm = [20.0, 30.0]",
    )
}

/// The layers in their order, all of one pen, with a pause before the second and the third.
fn design_of_pauses() -> String {
    let layers = LAYERS.iter().enumerate().map(|(index, line)| {
        let points = line.map(|[x, y]| format!("{x},{}", 36.0 - y)).join(" ");
        let mark = if index == 0 { "" } else { "!" };
        format!(
            r#"<g id="g{index}" inkscape:groupmode="layer" inkscape:label="{mark}layer-{}"><polyline fill="none" stroke="black" points="{points}"/></g>"#,
            index + 1
        )
    });
    format!(
        r#"<svg xmlns="http://www.w3.org/2000/svg" xmlns:inkscape="http://www.inkscape.org/namespaces/inkscape" width="45mm" height="36mm" viewBox="0 0 45 36">{}</svg>"#,
        layers.collect::<String>()
    )
}

fn layer(index: usize) -> Line {
    LAYERS[index].map(|[x, y]| [x + 20.0, y + 30.0]).to_vec()
}

/// An arm on a pseudo-terminal whose pen is changed, and a node that draws with it.
struct PenRig {
    bench: Bench,
    port: String,
    hand: ChildStdin,
    /// Lines that the simulated arm prints about its pens.
    stdout: Receiver<String>,
    sim: Running,
    served: Option<Served>,
    /// Layers in which a drawing was cut short, by the test or by a bus that a busy machine starved.
    cut: Vec<usize>,
    /// True if one pen draws all, with pauses between the layers.
    pauses: bool,
    _seat: RealTimeSeat,
}

impl PenRig {
    fn new() -> Self {
        Self::with(&scene(), &design(), false)
    }

    fn of_pauses() -> Self {
        Self::with(&scene_of_pauses(), &design_of_pauses(), true)
    }

    fn with(scene: &str, design: &str, pauses: bool) -> Self {
        let seat = RealTimeSeat::take();
        let bench = Bench::new();
        bench.scene("layers", scene);
        std::fs::create_dir_all(bench.path("scenes/designs")).unwrap();
        std::fs::write(bench.path("scenes/designs/layers.svg"), design).unwrap();
        std::fs::write(bench.path("node.toml"), "answer_within_s = 1\n").unwrap();
        let ink = bench.path("ink.pens.json");
        let args = ["sim", "--pty", "--unpaced", "--scene", "layers", "--ink"];
        let mut command = bench.command(&[&args[..], &[ink.to_str().unwrap()]].concat());
        let mut child = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let stdout = support::lines(child.stdout.take().unwrap());
        let hand = child.stdin.take().unwrap();
        let sim = Running(child);
        let port = stdout.recv_timeout(PATIENCE).unwrap();
        let mut rig = Self {
            bench,
            port,
            hand,
            stdout,
            sim,
            served: None,
            cut: Vec::new(),
            pauses,
            _seat: seat,
        };
        rig.serve();
        rig.enable();
        rig
    }

    /// Starts the node. Where a busy machine starves its bus while it attaches, it ends, and is started again.
    fn serve(&mut self) {
        let (state, config) = (self.bench.state(), self.bench.path("node.toml"));
        let here = on_port(&self.port, &state);
        let config = ["--config", config.to_str().unwrap()];
        let args = [&here[..], &config].concat();
        let mut printed = Vec::new();
        for _ in 0..ATTEMPTS {
            match support::try_served(self.bench.serving(&args)) {
                Ok(served) => {
                    self.served = Some(served);
                    return;
                }
                Err(seen) => printed = seen,
            }
        }
        panic!("it does not serve, {ATTEMPTS} times: {printed:#?}");
    }

    /// `kill -9`, and another start. Whatever was being drawn must be asked for again.
    fn kill(&mut self) {
        let has_drawn = self.drawing()["drawn_mm"].as_f64() > Some(0.0);
        let mut served = self.served.take().unwrap();
        served.child.0.kill().unwrap();
        served.child.0.wait().unwrap();
        self.serve();
        if has_drawn {
            let (_, printed) = self.verb(&["jobs"]);
            assert!(printed.contains("node ended"), "{printed}");
            let reply = self.call("stroke", STROKE);
            assert_eq!(reply["code"], "interrupted", "{reply:#}");
        }
    }

    fn verb(&self, args: &[&str]) -> (bool, String) {
        let output = self.bench.run(args);
        (output.status.success(), printed_by(&output))
    }

    fn enable(&self) {
        let (done, printed) = self.verb(&["enable", "--scene", "layers", "--for", "30m"]);
        assert!(done, "{printed}");
    }

    fn call(&self, tool: &str, arguments: &str) -> Value {
        let url = &self.served.as_ref().unwrap().url;
        self.bench.call_at(url, &[tool, arguments]).1
    }

    /// Returns all jobs, the newest first.
    fn jobs(&self) -> Vec<Value> {
        let output = self.bench.run(&["jobs", "--json"]);
        serde_json::from_slice(&output.stdout).unwrap_or_default()
    }

    /// The last job that draws, over or not.
    fn drawing(&self) -> Value {
        last_drawing(&self.jobs())
    }

    /// The pen that is awaited, counted from 1, or the layer before which the drawing pauses.
    fn awaited(&self) -> Option<usize> {
        let (_, printed) = self.verb(&["pen"]);
        let is_awaited = |of: &usize| {
            printed.contains(&format!("pen {of} `pen-{of}`"))
                || printed.contains(&format!("(layer `!layer-{of}`)"))
        };
        (1..=3).find(is_awaited)
    }

    /// Puts a pen in and confirms it as a person does, or ends a pause.
    fn change(&mut self, pen: usize) {
        if self.pauses {
            let (done, printed) = self.verb(&["pen", "--yes"]);
            assert!(done && printed.contains("continues: keep"), "{printed}");
            return;
        }
        writeln!(self.hand, "pen {pen}").unwrap();
        let args = format!("pen {pen} `");
        while !self
            .stdout
            .recv_timeout(PATIENCE)
            .unwrap()
            .starts_with(&args)
        {}
        let (done, printed) = self.verb(&["pen", "--pen", &pen.to_string(), "--yes"]);
        assert!(done, "{printed}");
    }

    fn bring_to_rest(&self) {
        self.enable();
        let began = Instant::now();
        while self.jobs()[0]["tool"] != "reset" || self.jobs()[0]["state"] != "reached" {
            self.verb(&["reset", "--scene", "layers"]);
            assert!(began.elapsed() < PATIENCE, "{:#?}", self.jobs());
        }
    }

    /// Resumes a drawing that did not reach its end, as a person does.
    fn recover(&mut self) {
        let at_mm = position_mm(&self.jobs());
        self.cut
            .extend((0..3).filter(|layer| is_in(*layer, at_mm, 0.0)));
        self.bring_to_rest();
        let reply = self.call("stroke", r#"{"resume":true}"#);
        // What broke on its way to rest is complete. Before anything was drawn nothing can be resumed.
        if reply["code"] == "nothing_to_resume" {
            // Where this breaks as well, it is found over and gone on with again.
            self.call("stroke", r#"{"scene":"layers","again":true}"#);
        }
    }

    /// Waits until a drawing that was told to stop has ended.
    fn until_stopped(&self) {
        until(
            "stopped",
            || self.drawing(),
            |job| job["state"] == "stopped",
        );
    }

    /// Draws until a pen is awaited, or the end; a drawing that broke is gone on with.
    fn until_awaited(&mut self) -> Option<usize> {
        let began = Instant::now();
        loop {
            if let Some(pen) = self.awaited() {
                return Some(pen);
            }
            let jobs = self.jobs();
            if last_drawing(&jobs)["state"] == "reached" || self.is_complete(&jobs) {
                return None;
            }
            if is_over(&jobs) {
                self.recover();
            }
            assert!(began.elapsed() < PATIENCE * 8, "{jobs:#?}");
            sleep(Duration::from_millis(200));
        }
    }

    /// Puts a pen in, or ends a pause, and waits for the next. What broke before it drew anything asks for the same again.
    fn change_until_next(&mut self, pen: usize) -> Option<usize> {
        loop {
            let breaks = self.cut.len();
            self.change(pen);
            let next = self.until_awaited();
            if next != Some(pen) || self.cut.len() == breaks {
                return next;
            }
        }
    }

    /// Returns whether all is drawn and only the way to rest broke off. Where the last line broke off at its end, the rest is begun.
    fn is_complete(&self, jobs: &[Value]) -> bool {
        if !is_over(jobs) || position_mm(jobs) <= LAYER_MM * 3.0 - 0.05 {
            return false;
        }
        self.bring_to_rest();
        self.call("stroke", r#"{"resume":true}"#)["code"] == "drawing_complete"
    }

    /// Puts in every pen that is asked for, to the end. Returns them.
    fn finish(&mut self) -> Vec<usize> {
        let mut request = Vec::new();
        while let Some(pen) = self.until_awaited() {
            self.change(pen);
            request.push(pen);
        }
        request
    }

    /// Until the middle of a layer; `false` if the drawing broke or went by before.
    fn is_drawing(&self, layer: usize) -> bool {
        let began = Instant::now();
        loop {
            let jobs = self.jobs();
            let at_mm = position_mm(&jobs);
            if is_in(layer, at_mm, 12.0) {
                return true;
            }
            if is_over(&jobs) || at_mm > LAYER_MM * (layer as f64 + 1.0) - 1.0 {
                return false;
            }
            assert!(began.elapsed() < PATIENCE * 2, "{jobs:#?}");
            sleep(Duration::from_millis(100));
        }
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

    /// Every line is there once, with its pen; where a layer was cut short a little of it is there twice. Where a line was lifted from
    /// and gone on with, both pieces are near the place.
    fn is_drawn_once(&mut self) {
        let jobs = self.jobs();
        let (ink, pauses) = (self.ink(), self.pauses);
        let is_starved = jobs.iter().any(|job| job["state"] == "faulted");
        for (index, ink) in ink.into_iter().enumerate() {
            let design = match (pauses, index) {
                (false, _) => vec![layer(index)],
                (true, 0) => (0..LAYERS.len()).map(layer).collect(),
                (true, _) => Vec::new(),
            };
            let missing_mm = ink::missing_mm(&design, &ink, NEAR_MM);
            assert!(missing_mm < 0.5, "pen {}: {missing_mm} mm", index + 1);
            let cuts = self
                .cut
                .iter()
                .filter(|cut| pauses || **cut == index)
                .count();
            let pieces = ink.len().saturating_sub(design.len());
            let may_mm = 0.5 + TWICE_MM * cuts as f64 + 2.0 * NEAR_MM * pieces as f64;
            let twice_mm = drawn_twice_mm(&design, &ink);
            assert!(
                twice_mm < may_mm,
                "pen {}: {twice_mm} mm twice, cut {cuts} times, {pieces} pieces more than lines: {jobs:#?}",
                index + 1
            );
            let elsewhere_mm = ink::missing_mm(&ink, &design, 2.0);
            assert!(
                elsewhere_mm < if is_starved { DRAGGED_MM } else { 0.5 },
                "pen {}: {elsewhere_mm} mm elsewhere: {ink:?}: {jobs:#?}",
                index + 1
            );
        }
    }
}

/// Length of a layer.
const LAYER_MM: f64 = 53.0;

/// The last job that draws, over or not, of all jobs, the newest first.
fn last_drawing(jobs: &[Value]) -> Value {
    let drawing = jobs.iter().find(|job| job["tool"] == "stroke");
    drawing.cloned().unwrap_or_default()
}

fn is_over(jobs: &[Value]) -> bool {
    let ended = last_drawing(jobs)["ended_ms"].as_u64();
    ended.unwrap_or_default() > 0
}

/// Returns how far the drawing is: its layers, one behind the other. What was not planned yet is as far as the job that it
/// resumes.
fn position_mm(jobs: &[Value]) -> f64 {
    let mm = |job: &Value, name: &str| job[name].as_f64().unwrap_or_default();
    let mut at = jobs.iter().find(|job| job["tool"] == "stroke");
    while let Some(job) = at {
        let total_mm = mm(job, "total_mm");
        if total_mm > 0.0 {
            return LAYER_MM * 3.0 - (total_mm - mm(job, "drawn_mm"));
        }
        at = jobs.iter().find(|before| before["id"] == job["resumes"]);
    }
    0.0
}

/// Returns whether a place of the drawing is in a layer, so far from its ends.
fn is_in(layer: usize, at_mm: f64, apart_mm: f64) -> bool {
    let from_mm = LAYER_MM * layer as f64;
    (from_mm + apart_mm..from_mm + LAYER_MM - apart_mm).contains(&at_mm)
}

/// Length of the design over which more than one line was drawn.
fn drawn_twice_mm(design: &[Line], ink: &[Line]) -> f64 {
    let drawn_mm = |ink: &[Line]| ink::length_mm(design) - ink::missing_mm(design, ink, NEAR_MM);
    let each_mm = ink.iter().map(|line| drawn_mm(std::slice::from_ref(line)));
    each_mm.sum::<f64>() - drawn_mm(ink)
}

#[test]
fn three_pens_are_asked_for_one_after_the_other() {
    let mut rig = PenRig::new();
    let waits = rig.call("stroke", STROKE);
    assert_eq!(rig.until_awaited(), Some(1));
    let sensed = rig.call("sense", "{}");
    assert_eq!(sensed["job"]["state"], "waiting_for_pen", "{sensed:#}");
    assert_eq!(rig.drawing()["state"], "waiting_for_pen");
    let awaited = sensed["job"]["waits_for"].as_str().unwrap();
    assert!(awaited.contains("1 of 3"), "{sensed:#}");
    // The answer to an equal call is the same job; it confirms nothing.
    let same = rig.call("stroke", STROKE);
    if rig.cut.is_empty() {
        assert_eq!(same["job"]["id"], waits["job"]["id"], "{same:#}");
    }
    assert_eq!(rig.awaited(), Some(1));
    let requested_pens = rig.finish();
    let reply = rig.drawing();
    if rig.cut.is_empty() {
        assert_eq!(requested_pens, [1, 2, 3]);
        assert_eq!(
            reply["pens_confirmed"],
            json!(["pen 1 `pen-1`", "pen 2 `pen-2`", "pen 3 `pen-3`"])
        );
    }
    rig.is_drawn_once();
}

/// Killed while it waits for each pen, and in the middle of each layer.
#[test]
fn a_drawing_killed_anywhere_asks_for_its_pen_and_draws_lines_once() {
    let mut rig = PenRig::new();
    rig.call("stroke", STROKE);
    for layer in 0..3 {
        let pen = layer + 1;
        assert_eq!(rig.until_awaited(), Some(pen));
        rig.kill();
        assert_eq!(rig.until_awaited(), Some(pen));
        rig.change(pen);
        let is_killed = rig.is_drawing(layer);
        if is_killed {
            rig.kill();
        }
        let next = rig.until_awaited();
        // A crash forgets which pen is in the holder.
        if is_killed {
            assert_eq!(next, Some(pen));
            rig.change(pen);
        }
    }
    rig.finish();
    rig.is_drawn_once();
}

#[test]
fn while_it_waits_nothing_moves_and_no_tool_confirms() {
    let mut rig = PenRig::new();
    rig.call("stroke", STROKE);
    assert_eq!(rig.until_awaited(), Some(1));
    for (tool, arguments) in [
        ("stroke", STROKE),
        ("stroke", r#"{"scene":"layers","again":true}"#),
        ("stroke", r#"{"resume":true}"#),
        ("align", r#"{"scene":"layers"}"#),
        ("reset", "{}"),
        ("sense", "{}"),
    ] {
        rig.call(tool, arguments);
        assert_eq!(rig.awaited(), Some(1), "{tool} {arguments}");
    }
    // An operator's other verbs do not move it either, and another pen is not this one.
    let (_, resumed) = rig.verb(&["resume"]);
    assert!(!resumed.contains("continues: keep"), "{resumed}");
    let job = rig.drawing()["id"].as_str().unwrap().to_owned();
    let (done, printed) = rig.verb(&["pen", &job, "--pen", "2", "--yes"]);
    assert!(!done && printed.contains("for pen 2"), "{printed}");
    let (done, printed) = rig.verb(&["pen", &job]);
    assert!(!done && printed.contains("at a terminal"), "{printed}");
    assert_eq!(rig.awaited(), Some(1));
    // The permission is checked again.
    assert!(rig.verb(&["disable"]).0);
    let (done, printed) = rig.verb(&["pen", &job, "--yes"]);
    assert!(!done && printed.contains("not enabled"), "{printed}");
    assert_eq!(rig.awaited(), Some(1));
    rig.enable();
    assert_eq!(rig.change_until_next(1), Some(2));
    // A stop ends the waiting; nothing moves until a person enables it, and then the rest is drawn.
    let stopped = rig.call("stop", "{}");
    assert_eq!(stopped["success"], true, "{stopped:#}");
    rig.until_stopped();
    let reset = rig.call("reset", "{}");
    assert_eq!(reset["code"], "needs_enabling", "{reset:#}");
    let breaks = rig.cut.len();
    let mut requested_pens = rig.finish();
    // The stop is one; only where the machine broke it off as well a pen is asked for twice.
    if rig.cut.len() > breaks + 1 {
        requested_pens.dedup();
    }
    assert_eq!(requested_pens, [2, 3], "{:#?}", rig.jobs());
    rig.is_drawn_once();
}

/// Without torque neither a confirmation nor a reset can go on, and each led to the other.
#[test]
fn a_wait_that_needs_a_reset_names_the_way_out() {
    let mut rig = PenRig::new();
    rig.call("stroke", STROKE);
    assert_eq!(rig.until_awaited(), Some(1));
    assert!(rig.verb(&["torque-off", "--yes"]).0);
    for verb in [&["pen", "--yes"][..], &["reset"]] {
        let (done, printed) = rig.verb(verb);
        let has_way_out = printed
            .contains("`steadyhand stop`, then `steadyhand enable --scene layers")
            && printed.contains("`steadyhand reset`");
        assert!(!done && has_way_out, "{verb:?}: {printed}");
        assert_eq!(rig.awaited(), Some(1));
    }
    assert!(rig.verb(&["stop"]).0);
    // Its end withdraws what was enabled before: a hand may still be at the arm.
    rig.until_stopped();
    rig.enable();
    // It stands in the scene of its drawing, whether or not it had to move to wait there.
    let began = Instant::now();
    while rig.jobs()[0]["tool"] != "reset" || rig.jobs()[0]["state"] != "reached" {
        let (_, printed) = rig.verb(&["reset"]);
        assert!(!printed.contains("--scene NAME"), "{printed}");
        assert!(began.elapsed() < PATIENCE, "{printed}: {:#?}", rig.jobs());
    }
    assert_eq!(rig.jobs()[0]["scene"], "layers");
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
    let bench = Bench::new().with_file("require_tokens = true\n");
    let token = |role: &str| bench.token(role, &["--role", role]);
    let (planner, operator) = (token("planner"), token("operator"));
    let served = bench.serve(&[]);
    let verb = json!({"verb": "pen", "job": "job-1", "confirmed": 1});
    assert_eq!(operate(&served, &planner, &verb), 403);
    assert_eq!(operate(&served, &operator, &verb), 200);
}

/// Nobody stands at a simulated arm: the command changes its pens and reports it.
#[test]
fn an_embedded_arm_changes_its_pens_at_once() {
    let bench = Bench::new();
    let state = bench.state();
    let stroke = r#"{"scene":"pens_by_hand"}"#;
    let drawn = bench.run(&["call", "--json", "stroke", stroke, "--state", &state]);
    let printed = printed_by(&drawn);
    assert_eq!(drawn.status.code(), Some(0), "{printed}");
    for pen in ["pen 1 `black`", "pen 2 `red`", "pen 3 `green`"] {
        assert!(printed.contains(pen), "{printed}");
    }
    let result: Value = serde_json::from_slice(&drawn.stdout).unwrap();
    assert!(
        result["deviation_mm_p95"].as_f64().unwrap() < 0.7,
        "{result:#}"
    );
    // In a replay nobody can change pens, and it says so.
    let replayed = bench.run(&["replay", "job-1", "--state", &state]);
    let printed = printed_by(&replayed);
    assert_ne!(replayed.status.code(), Some(0), "{printed}");
    assert!(
        printed.contains("job-1") && printed.contains("pens"),
        "{printed}"
    );
}

/// A node whose simulated arm holds, as its second pen, one that is so much longer than the scene says.
fn with_a_longer_pen(longer_mm: f64) -> Bench {
    let bench = Bench::new();
    let text = scene().replace("pen_change", "measure_change = true\npen_change");
    bench.scene("layers", &text);
    // The tip is 40 mm along the axis.
    let by = 1.0 + longer_mm / 40.0;
    let tip = |by: f64| {
        format!(
            "tip_m = [0.0, {:.6}, {:.6}]",
            -0.038_637 * by,
            -0.010_353 * by
        )
    };
    let (before, after) = text.split_once("name = \"pen-2\"").unwrap();
    let after = after.replacen(&tip(1.0), &tip(by), 1);
    std::fs::create_dir_all(bench.path("truth/designs")).unwrap();
    let truth = format!("{before}name = \"pen-2\"{after}");
    std::fs::write(bench.path("truth/layers.toml"), truth).unwrap();
    std::fs::create_dir_all(bench.path("scenes/designs")).unwrap();
    for folder in ["scenes", "truth"] {
        std::fs::write(bench.path(folder).join("designs/layers.svg"), design()).unwrap();
    }
    let arm = format!(
        "[[arms]]\nname = \"arm\"\nmodel = \"so101\"\nport = \"simulator\"\ntruth = {:?}\n",
        bench.path("truth")
    );
    bench.with_file(&arm)
}

#[test]
fn a_pen_of_another_length_is_measured_by_a_touch_before_it_draws() {
    let bench = with_a_longer_pen(2.0);
    let (code, result) = bench.call(&["stroke", r#"{"scene":"layers"}"#]);
    assert_eq!(code, 0, "{result:#}");
    let measured: Vec<(String, f64)> = result["pens_measured"]
        .as_array()
        .unwrap()
        .iter()
        .map(|pen| {
            let phrase = pen.as_str().unwrap();
            let (name, length) = phrase.rsplit_once("` ").unwrap();
            let length = length.strip_suffix(" ± 0.5 mm").unwrap();
            (name.to_owned(), length.parse().unwrap())
        })
        .collect();
    for ((name, found_mm), (pen, is_mm)) in measured.iter().zip([(1, 0.0), (2, 2.0), (3, 0.0)]) {
        assert!(name.starts_with(&format!("pen {pen} ")), "{measured:?}");
        // A touch is noticed after it began, and a count of the servos is 0.1 to 0.4 mm at the tip:
        // that is the uncertainty that is told.
        assert!((found_mm - is_mm).abs() < 0.5, "{measured:?}");
    }
    assert_eq!(measured.len(), 3, "{measured:?}");
    assert!(
        result["deviation_mm_p95"].as_f64().unwrap() < 1.3,
        "{result:#}"
    );
}

#[test]
fn a_pen_whose_length_nobody_would_believe_does_not_draw() {
    for (longer_mm, expected) in [
        (4.6, "mm longer than in the scene (at most 4"),
        (-7.0, "touched nothing"),
    ] {
        let bench = with_a_longer_pen(longer_mm);
        let (code, result) = bench.call(&["stroke", r#"{"scene":"layers"}"#]);
        assert_ne!(code, 0, "{result:#}");
        assert_eq!(result["code"], "pen_not_measured", "{result:#}");
        let message = result["message"].as_str().unwrap();
        assert!(
            message.contains("pen 2 `pen-2`") && message.contains(expected),
            "{message}"
        );
        // The first pen's layer is drawn, and nothing else.
        let job = json_of(&bench.run(&["jobs", "job-1", "--json"]));
        let (drawn_mm, total_mm) = (job["drawn_mm"].as_f64(), job["total_mm"].as_f64());
        assert!((drawn_mm.unwrap() - LAYER_MM).abs() < 1.0, "{job:#}");
        assert!((total_mm.unwrap() - LAYER_MM * 3.0).abs() < 2.0, "{job:#}");
    }
}

/// SIGTERM while a pen is awaited: the node ends, its journal is kept, and `resume` asks for that pen.
#[test]
fn a_node_that_is_told_to_end_while_it_waits_asks_for_that_pen_again() {
    let mut rig = PenRig::new();
    rig.call("stroke", STROKE);
    let first = rig.until_awaited().unwrap();
    let second = rig.change_until_next(first).unwrap();
    assert_ne!(second, first);
    let mut served = rig.served.take().unwrap();
    assert_eq!(served.child.terminate(), Some(0));
    drop(served);
    rig.serve();
    // It ended by itself, so it draws nothing until a person enables it; then the drawing is gone on with.
    let refused = rig.call("stroke", STROKE);
    assert_eq!(refused["success"], false, "{refused:#}");
    rig.recover();
    assert_eq!(rig.until_awaited(), Some(second));
    rig.finish();
    rig.is_drawn_once();
}

/// Killed while it pauses, and in the middle of the layer after a pause.
#[test]
fn a_drawing_pauses_before_a_layer_until_a_person_lets_it_go_on() {
    let mut rig = PenRig::of_pauses();
    rig.call("stroke", STROKE);
    assert_eq!(rig.until_awaited(), Some(2));
    // All of the layer before it is drawn by then, and nothing of the one after it.
    assert!(
        (position_mm(&rig.jobs()) - LAYER_MM).abs() < 0.5,
        "{:#}",
        rig.drawing()
    );
    for (tool, arguments) in [
        ("stroke", STROKE),
        ("stroke", r#"{"scene":"layers","again":true}"#),
        ("stroke", r#"{"resume":true}"#),
        ("reset", "{}"),
    ] {
        rig.call(tool, arguments);
        assert_eq!(rig.awaited(), Some(2), "{tool} {arguments}");
    }
    let sensed = rig.call("sense", "{}");
    assert_eq!(sensed["job"]["state"], "waiting_for_pen", "{sensed:#}");
    let waits_for = sensed["job"]["waits_for"].as_str().unwrap();
    assert!(
        waits_for.starts_with("a person: ") && waits_for.contains("`!layer-2`"),
        "{waits_for}"
    );
    let job = sensed["job"]["id"].as_str().unwrap();
    let (done, printed) = rig.verb(&["pen", job]);
    assert!(!done && printed.contains("at a terminal"), "{printed}");
    // The permission is checked again.
    assert!(rig.verb(&["disable"]).0);
    let (done, printed) = rig.verb(&["pen", "--yes"]);
    assert!(!done && printed.contains("not enabled"), "{printed}");
    rig.kill();
    assert_eq!(rig.until_awaited(), Some(2), "{:#?}", rig.jobs());
    rig.change(2);
    if rig.is_drawing(1) {
        rig.kill();
    }
    // The pause that a person has ended is not made again, but where the machine broke the drawing off before it drew.
    let breaks = rig.cut.len();
    let mut next = rig.until_awaited();
    if next == Some(2) && rig.cut.len() > breaks {
        next = rig.change_until_next(2);
    }
    assert_eq!(next, Some(3), "{:#?}", rig.jobs());
    assert!(rig.drawing()["pauses_ended"].as_array().map(Vec::len) <= Some(1));
    let breaks = rig.cut.len();
    assert_eq!(rig.change_until_next(3), None, "{:#?}", rig.jobs());
    let jobs = rig.jobs();
    // Where the machine broke it off since, an earlier job has it.
    let since = if rig.cut.len() == breaks {
        1
    } else {
        jobs.len()
    };
    let drawings = jobs.iter().filter(|job| job["tool"] == "stroke");
    let last = |job: &Value| job["pauses_ended"].as_array()?.last().cloned();
    let mut ended = drawings.take(since).filter_map(last);
    assert!(
        ended.any(|last| last == json!("layer `!layer-3`")),
        "{jobs:#?}"
    );
    rig.is_drawn_once();
}

/// A hand may be at the arm: the same for a simulated one, so that people practise what happens.
#[test]
fn after_a_broken_off_wait_nothing_moves_until_it_is_enabled() {
    let bench = Bench::new();
    let serve = || bench.serve_with_file("answer_within_s = 1\n");
    let call = |served: &Served, tool: &str, arguments: &str| {
        bench.call_at(&served.url, &[tool, arguments]).1
    };
    let mut served = serve();
    for is_stopped in [false, true] {
        call(
            &served,
            "stroke",
            r#"{"scene":"pens_by_hand","again":true}"#,
        );
        served.until_job("waiting_for_pen");
        // Meanwhile nothing moves.
        let refused = call(&served, "reset", "{}");
        assert_eq!(refused["success"], false, "{refused:#}");
        if is_stopped {
            let stopped = call(&served, "stop", "{}");
            assert_eq!(stopped["success"], true, "{stopped:#}");
            let message = stopped["message"].as_str().unwrap();
            assert!(message.contains("same call"), "{message}");
            served.until("disabled", |sensed| {
                sensed["orders"][0]["order"] == "disable"
            });
        }
        served.child.0.kill().unwrap();
        served.child.0.wait().unwrap();
        served = serve();
        let sensed = call(&served, "sense", "{}");
        assert_eq!(sensed["enabled"], "nothing", "{is_stopped}: {sensed:#}");
        let refused = call(&served, "stroke", r#"{"scene":"default"}"#);
        assert_eq!(refused["success"], false, "{is_stopped}: {refused:#}");
        for scene in ["default", "pens_by_hand"] {
            let enabled = bench.run(&["enable", "--scene", scene]);
            assert!(enabled.status.success(), "{enabled:?}");
        }
    }
    let drawn = call(&served, "stroke", r#"{"scene":"default"}"#);
    assert_ne!(drawn["code"], "needs_enabling", "{drawn:#}");
}
