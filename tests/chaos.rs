//! Seeded rounds of everything that goes wrong at once, over stdio and HTTP, with the arm at the
//! far end of a pseudo-terminal that outlives every node; after each, what must always hold.
//!
//! `STEADYHAND_CHAOS_ROUNDS` (200) and `STEADYHAND_CHAOS_SEED` choose another run. The seed fixes
//! what is done in which order; when the arm is where is the machine's to say.
#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::disallowed_methods,
    clippy::print_stderr,
    clippy::cast_precision_loss,
    clippy::cast_possible_truncation,
    reason = "a failing test may panic; numbers are small"
)]

mod support;

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Stdio};
use std::sync::mpsc::Receiver;
use std::thread::sleep;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};
use steadyhand::job::{Past, pasts, verify};
use support::ink::{Line, length_mm, missing_mm};
use support::{Bench, PATIENCE, Running, Served, lines};

const DESIGNS: [&str; 2] = [
    "[[[0.0, 0.0], [60.0, 0.0]], [[60.0, 12.0], [0.0, 12.0]], [[0.0, 24.0], [60.0, 24.0]]]",
    "[[[0.0, 0.0], [60.0, 0.0]], [[60.0, 14.0], [0.0, 14.0]], [[0.0, 28.0], [60.0, 28.0]]]",
];

const ARGUMENTS: [&str; 6] = [
    "{\"scene\":\"short\"}",
    "{\"scene\":\"short\",\"again\":true}",
    "{'scene': 'short',}",
    "{\"scene\":\"tigger\"}",
    "[object Object]",
    "{\"scene\":\"short\",\"dry_run\":\"yes\"}",
];

/// Beyond the plan's own line a pen that is put down, or lags, may leave so much.
const SLACK_MM: f64 = 2.5;

struct Chance(u64);

impl Chance {
    /// Below `most`.
    fn below(&mut self, most: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        (z ^ (z >> 31)) % most
    }

    fn pick<'a>(&mut self, of: &[&'a str]) -> &'a str {
        of[self.below(of.len() as u64) as usize]
    }
}

enum Node {
    Http(Served),
    Stdio {
        child: Running,
        input: ChildStdin,
        output: Receiver<String>,
        next: u64,
        waiting: Vec<u64>,
    },
}

/// A call that is under way, and whether somebody broke it off.
struct Caller {
    child: Child,
    broken_off: bool,
}

struct Chaos {
    bench: Bench,
    chance: Chance,
    sim: Running,
    port: String,
    ink: PathBuf,
    wire: PathBuf,
    state: PathBuf,
    node: Node,
    callers: Vec<Caller>,
    done: Vec<String>,
}

fn number(name: &str, otherwise: u64) -> u64 {
    std::env::var(name).map_or(otherwise, |text| text.parse().unwrap())
}

#[ignore = "a round of seed 20261121 counts 4.5 mm more ink than was released; not yet explained"]
#[test]
fn whatever_happens_the_rules_hold() {
    let seed = number("STEADYHAND_CHAOS_SEED", 20_261_121);
    let rounds = number("STEADYHAND_CHAOS_ROUNDS", 200);
    eprintln!("STEADYHAND_CHAOS_SEED={seed} STEADYHAND_CHAOS_ROUNDS={rounds}");
    let mut chaos = Chaos::new(seed);
    for round in 0..rounds {
        for _ in 0..=chaos.chance.below(2) {
            chaos.act();
        }
        chaos.verify_invariants(round);
    }
    chaos.end();
}

impl Chaos {
    fn new(seed: u64) -> Self {
        let bench = Bench::new();
        bench.scene("short", &support::scene("short", DESIGNS[0]));
        std::fs::write(
            bench.path("node.toml"),
            "keep_jobs = 100000\nanswer_within_s = 20\nlease_idle_s = 1\n",
        )
        .unwrap();
        let (ink, wire) = (bench.path("ink.json"), bench.path("wire.txt"));
        let (sim, port) = bench.sim(&[
            "--scene",
            "short",
            "--ink",
            ink.to_str().unwrap(),
            "--trace",
            wire.to_str().unwrap(),
        ]);
        let state = bench.path("state");
        let node = start(&bench, &port, &state, true);
        let chaos = Self {
            bench,
            chance: Chance(seed),
            sim,
            port,
            ink,
            wire,
            state,
            node,
            callers: Vec::new(),
            done: Vec::new(),
        };
        chaos.operator(&["enable", "--scene", "short"]);
        chaos
    }

    /// One thing that people, clients, cables and machines do.
    fn act(&mut self) {
        let what = self.chance.below(20);
        self.done.push(what.to_string());
        match what {
            0..=3 => self.call("stroke"),
            4 | 5 => self.call_with("stroke", "{\"resume\":true}"),
            6 => self.call("align"),
            7 | 8 => self.call("reset"),
            9 => self.call("sense"),
            10 => self.call_with("stop", "what?"),
            11 => self.break_off(),
            12 => self.operator(&["stop"]),
            13 => {
                self.operator(&["estop"]);
                self.operator(&["clear"]);
                self.operator(&["reset"]);
            }
            14 => self.kill(),
            15 => self.freeze(&[Who::Node]),
            16 => self.freeze(&[Who::Sim]),
            17 => {
                let design = DESIGNS[self.chance.below(2) as usize];
                let scene = support::scene("short", design);
                self.bench.scene("short", &scene);
            }
            _ => {
                // The way out of most trouble, so that there is more of it.
                self.operator(&["enable", "--scene", "short"]);
                self.operator(&["reset"]);
                self.call("stroke");
            }
        }
        // Now and then long enough for the pen to come to the paper.
        let most = if self.chance.below(5) == 0 { 3000 } else { 300 };
        let pause = self.chance.below(most);
        sleep(Duration::from_millis(pause));
    }

    fn call(&mut self, tool: &str) {
        let arguments = match self.chance.below(3) {
            0 => self.chance.pick(&ARGUMENTS),
            _ => ARGUMENTS[0],
        };
        self.call_with(tool, arguments);
    }

    fn call_with(&mut self, tool: &str, arguments: &str) {
        match &mut self.node {
            Node::Http(served) => {
                let child = self
                    .bench
                    .command(&["call", "--json", tool, arguments, "--node", &served.url])
                    .stdout(Stdio::piped())
                    .stderr(Stdio::null())
                    .spawn()
                    .unwrap();
                self.callers.push(Caller {
                    child,
                    broken_off: false,
                });
            }
            Node::Stdio {
                input,
                next,
                waiting,
                ..
            } => {
                *next += 1;
                let arguments: Value =
                    serde_json::from_str(arguments).unwrap_or_else(|_| arguments.into());
                let line = json!({"jsonrpc": "2.0", "id": *next, "method": "tools/call",
                    "params": {"name": tool, "arguments": arguments}});
                if writeln!(input, "{line}").is_ok() {
                    waiting.push(*next);
                }
            }
        }
    }

    /// A client hangs up, or takes a request back.
    fn break_off(&mut self) {
        match &mut self.node {
            Node::Http(_) => {
                if let Some(caller) = self.callers.iter_mut().find(|one| !one.broken_off) {
                    caller.broken_off = true;
                    caller.child.kill().unwrap();
                }
            }
            Node::Stdio { input, waiting, .. } => {
                if let Some(id) = waiting.pop() {
                    let line = json!({"jsonrpc": "2.0", "method": "notifications/cancelled",
                        "params": {"requestId": id}});
                    // The node may be gone.
                    let _ = writeln!(input, "{line}");
                }
            }
        }
    }

    fn operator(&self, words: &[&str]) {
        let output = self.bench.run(words);
        assert!(output.status.code().is_some(), "{words:?} was killed");
    }

    /// The node dies without a word, and another is started.
    fn kill(&mut self) {
        for caller in &mut self.callers {
            caller.broken_off = true;
        }
        let child = self.node.child();
        child.0.kill().unwrap();
        child.0.wait().unwrap();
        let http = self.chance.below(3) > 0;
        self.node = start(&self.bench, &self.port, &self.state, http);
        if self.chance.below(2) == 0 {
            self.operator(&["enable", "--scene", "short"]);
        }
    }

    /// A process gets no time for a while.
    fn freeze(&mut self, whom: &[Who]) {
        let time = Duration::from_millis(20 + self.chance.below(300));
        for who in whom {
            let pid = match who {
                Who::Node => Pid::from_child(&self.node.child().0),
                Who::Sim => Pid::from_child(&self.sim.0),
            };
            kill_process(pid, Signal::STOP).unwrap();
            sleep(time);
            kill_process(pid, Signal::CONT).unwrap();
        }
    }

    fn jobs(&self) -> Vec<Past> {
        let all = pasts(&self.state).unwrap();
        let read: Result<Vec<Past>, _> = all.into_iter().collect();
        read.unwrap_or_else(|error| panic!("{error}"))
    }

    fn ink(&self) -> Vec<Line> {
        let began = Instant::now();
        loop {
            let text = std::fs::read_to_string(&self.ink).unwrap_or_else(|_| "[]".to_owned());
            // It may be read while it is written.
            if let Ok(ink) = serde_json::from_str(&text) {
                return ink;
            }
            assert!(began.elapsed() < PATIENCE, "no ink to read");
            sleep(Duration::from_millis(20));
        }
    }

    fn verify_invariants(&mut self, round: u64) {
        let seen = format!("round {round}, done {:?}", self.done);
        // What is on the sheet first: what is written of it is never behind.
        let ink = self.ink();
        let jobs = self.jobs();
        self.check_audit(&seen);
        check_ink_is_told(&ink, &jobs, &seen);
        self.check_wire(&seen);
        self.check_answers(&seen);
    }

    fn check_audit(&self, seen: &str) {
        let text = std::fs::read_to_string(self.state.join("audit.log")).unwrap();
        // A line may be half written.
        let whole = text.rfind('\n').map_or(0, |end| end + 1);
        if let Err(error) = verify(&text[..whole], None) {
            panic!("{error}; {seen}");
        }
    }

    /// No goal on the wire is beyond the servos' limits.
    fn check_wire(&self, seen: &str) {
        let scenes = steadyhand::scene::Library::new(None);
        let arm = scenes.arm("so101").unwrap();
        let text = std::fs::read_to_string(&self.wire).unwrap_or_default();
        for (id, goal) in goals(&text) {
            // One that only holds still, such as a gripper, has no joint.
            let Some((joint, servo)) = arm.servos().find(|(_, servo)| servo.id == id) else {
                continue;
            };
            let ends = [arm.limits.lower_rad[joint], arm.limits.upper_rad[joint]];
            let [a, b] = ends.map(|end| servo.ticks(end));
            // Goals lead by the dead band.
            assert!(
                (a.min(b) - 2..=a.max(b) + 2).contains(&goal),
                "servo {id} was sent to {goal}, beyond {a} to {b}; {seen}"
            );
        }
    }

    /// Whoever was not broken off has an answer, once the motion is over.
    fn check_answers(&mut self, seen: &str) {
        let mut left = Vec::new();
        for mut caller in self.callers.drain(..) {
            if caller.child.try_wait().unwrap().is_none() {
                left.push(caller);
                continue;
            }
            let output = caller.child.wait_with_output().unwrap();
            if !caller.broken_off {
                let read: Result<Value, _> = serde_json::from_slice(&output.stdout);
                assert!(read.is_ok(), "a call has no answer; {seen}");
            }
        }
        self.callers = left;
        if let Node::Stdio {
            output, waiting, ..
        } = &mut self.node
        {
            while let Ok(line) = output.try_recv() {
                let answer: Value = serde_json::from_str(&line).unwrap();
                waiting.retain(|id| answer["id"] != *id);
            }
        }
    }

    /// All comes to rest; then ink is neither missing nor more than it may be.
    fn end(mut self) {
        self.operator(&["stop"]);
        let began = Instant::now();
        while !self.callers.is_empty() {
            self.check_answers("at the end");
            assert!(began.elapsed() < PATIENCE, "a call is not answered");
            sleep(Duration::from_millis(50));
        }
        sleep(Duration::from_millis(2200));
        let (ink, jobs) = (self.ink(), self.jobs());
        check_ink_is_told(&ink, &jobs, "at the end");
        for job in jobs.iter().filter(|job| job.moved) {
            let drawn = before(&job.strokes, job.drawn.mm - SLACK_MM);
            let missing = missing_mm(&drawn, &ink, 1.0);
            assert!(
                missing < 1.0,
                "{} lacks {missing} mm: {}",
                job.id,
                job.words()
            );
        }
        let moved = jobs.iter().filter(|job| job.moved).count();
        let cut = jobs.iter().filter(|job| job.interrupted).count();
        let mm: f64 = length_mm(&ink);
        eprintln!(
            "{} jobs, {moved} moved, {cut} interrupted, {mm:.0} mm of ink",
            jobs.len()
        );
        assert!(moved > 0, "nothing ever moved");
        let wire = std::fs::read_to_string(&self.wire).unwrap();
        assert!(!goals(&wire).is_empty(), "no goal was ever heard");
        // With fewer rounds it may be that no stroke came to the paper.
        assert!(mm > 0.0 || jobs.len() < 40, "nothing was ever drawn");
    }
}

#[derive(Clone, Copy)]
enum Who {
    Node,
    Sim,
}

impl Node {
    fn child(&mut self) -> &mut Running {
        match self {
            Self::Http(served) => &mut served.child,
            Self::Stdio { child, .. } => child,
        }
    }
}

fn start(bench: &Bench, port: &str, state: &Path, http: bool) -> Node {
    let config = bench.path("node.toml").display().to_string();
    let state = state.display().to_string();
    let here = ["--config", &config, "--port", port, "--state", &state];
    if http {
        return Node::Http(bench.serve(&here));
    }
    let mut child = bench
        .command(&[&["serve"], &here[..]].concat())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let mut input = child.stdin.take().unwrap();
    let output = lines(child.stdout.take().unwrap());
    for line in [
        r#"{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"chaos","version":"1"}}}"#,
        r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#,
    ] {
        writeln!(input, "{line}").unwrap();
    }
    assert!(
        output
            .recv_timeout(PATIENCE)
            .unwrap()
            .contains("serverInfo")
    );
    Node::Stdio {
        child: Running(child),
        input,
        output,
        next: 0,
        waiting: Vec::new(),
    }
}

/// Every bit of ink belongs to a job that said it would draw there, and there is no more of it
/// than the jobs' journals released.
fn check_ink_is_told(ink: &[Line], jobs: &[Past], seen: &str) {
    let moved: Vec<&Past> = jobs.iter().filter(|job| job.moved).collect();
    let planned: Vec<Line> = moved
        .iter()
        .flat_map(|job| job.strokes.iter().map(|stroke| stroke.points_mm.clone()))
        .collect();
    let stray = missing_mm(ink, &planned, 1.5);
    assert!(stray < 1.0, "{stray} mm of ink that no job planned; {seen}");
    let most: f64 = moved
        .iter()
        .map(|job| job.drawn.mm.max(job.released_mm) + SLACK_MM + job.strokes.len() as f64)
        .sum();
    // A motion of several plans, such as `align`, drew its earlier ones too.
    let aligned = moved.iter().filter(|job| job.tool == "align").count() as f64 * 30.0;
    let mm = length_mm(ink);
    assert!(
        mm <= most + aligned,
        "{mm} mm of ink, {most} released; {seen}"
    );
}

/// The part of strokes that is drawn first.
fn before(strokes: &[steadyhand::scene::SheetStroke], mut mm: f64) -> Vec<Line> {
    let mut part = Vec::new();
    for stroke in strokes {
        let line = &stroke.points_mm;
        let mut kept: Line = line.first().copied().into_iter().collect();
        for (a, b) in line.iter().zip(line.iter().skip(1)) {
            let step = (a[0] - b[0]).hypot(a[1] - b[1]);
            if mm <= 0.0 {
                break;
            }
            let share = (mm / step).min(1.0);
            kept.push([a[0] + (b[0] - a[0]) * share, a[1] + (b[1] - a[1]) * share]);
            mm -= step;
        }
        part.push(kept);
    }
    part.retain(|line| line.len() > 1);
    part
}

/// Goal positions in what a Feetech bus heard, by servo: synchronous writes that begin at the
/// acceleration or at the goal.
fn goals(trace: &str) -> Vec<(u8, i32)> {
    let bytes: Vec<u8> = trace
        .lines()
        .flat_map(|line| {
            let hex: Vec<char> = line.trim().chars().collect();
            hex.chunks(2)
                .filter_map(|two| u8::from_str_radix(&two.iter().collect::<String>(), 16).ok())
                .collect::<Vec<u8>>()
        })
        .collect();
    let mut found = Vec::new();
    let mut at = 0;
    while at + 8 < bytes.len() {
        let frame = &bytes[at..];
        let whole = frame.starts_with(&[0xFF, 0xFF, 0xFE]) && frame[4] == 0x83;
        let length = usize::from(frame[3]);
        if !whole || frame.len() < length + 4 {
            at += 1;
            continue;
        }
        let (first, each) = (frame[5], usize::from(frame[6]));
        let goal_at = 42_usize.checked_sub(usize::from(first));
        for data in frame[7..length + 3].chunks_exact(each + 1) {
            if let Some(at) = goal_at.filter(|at| at + 2 <= each) {
                let word = i32::from(data[1 + at]) | i32::from(data[2 + at]) << 8;
                let sign = if word & 0x8000 == 0 { 1 } else { -1 };
                found.push((data[0], sign * (word & 0x7FFF)));
            }
        }
        at += length + 4;
    }
    found
}
