//! Seeded rounds of everything that goes wrong at once, over stdio and HTTP, with the arm at the
//! far end of a port that outlives every node; after each, what must always hold.
//!
//! `STEADYHAND_CHAOS_ROUNDS` (200) and `STEADYHAND_CHAOS_SEED` choose another run. Every twenty
//! rounds are a chapter with a seed, a node and a sheet of its own, and a failure names the chapter
//! to be replayed alone. The seed fixes what is done in which order; when the arm is where is the
//! machine's to say.
#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::disallowed_methods,
    clippy::print_stderr,
    clippy::cast_possible_truncation,
    reason = "a failing test may panic; numbers are small"
)]

mod clients;
mod far_end;
mod judge;

use crate::support;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::Mutex;
use std::thread::sleep;
use std::time::{Duration, Instant, SystemTime};

use clients::Node;
use far_end::FarArm;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use steadyhand::motion::STARVED;
use steadyhand::scene::SceneLibrary;
use steadyhand::sim::SimulatedFault;
use support::{Bench, PATIENCE, on_port};

/// Rounds with the same node folder, arm and sheet.
const CHAPTER: u64 = 20;

/// Chapters at a time: they mostly wait.
const AT_A_TIME: usize = 4;

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

const ENABLE: [&str; 3] = ["enable", "--scene", "short"];

/// Drawings that are blocked, stopped and gone on with once everything else is over, until one is
/// found whole, where the machine was too busy for all before.
const COVER_TRIES: usize = 12;

/// An arm that has not moved yet does not know which scene it is in.
const RESET: [&str; 3] = ["reset", "--scene", "short"];

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

fn number(name: &str, otherwise: u64) -> u64 {
    std::env::var(name).map_or(otherwise, |text| text.parse().unwrap())
}

/// The figures of a chapter.
#[derive(Default)]
struct Sum {
    jobs: usize,
    moved: usize,
    interrupted: usize,
    resumed: usize,
    answers: usize,
    frames: usize,
    ink_mm: f64,
    covered: usize,
    uncounted: usize,
    starved: usize,
}

#[test]
fn whatever_happens_the_rules_hold() {
    let seed = number("STEADYHAND_CHAOS_SEED", 20_261_121);
    let rounds = number("STEADYHAND_CHAOS_ROUNDS", 200);
    eprintln!("STEADYHAND_CHAOS_SEED={seed} STEADYHAND_CHAOS_ROUNDS={rounds}");
    let folder = tempfile::tempdir().unwrap();
    let clock = compile_clock(folder.path());
    let chapters: Vec<(u64, u64)> = (0..rounds.div_ceil(CHAPTER))
        .map(|chapter| {
            let first = chapter * CHAPTER;
            (seed + chapter, (rounds - first).min(CHAPTER))
        })
        .collect();
    let next = Mutex::new(chapters.into_iter());
    let sums = Mutex::new(Vec::new());
    std::thread::scope(|scope| {
        for _ in 0..AT_A_TIME {
            scope.spawn(|| {
                loop {
                    let Some((seed, rounds)) = next.lock().unwrap().next() else {
                        return;
                    };
                    let sum = Chaos::new(seed, &clock).play(rounds);
                    eprintln!("seed {seed}: {rounds} rounds, {} jobs", sum.jobs);
                    sums.lock().unwrap().push(sum);
                }
            });
        }
    });
    let mut sums = sums.into_inner().unwrap();
    let covered: usize = sums.iter().map(|sum| sum.covered).sum();
    if rounds >= CHAPTER * 3 && covered == 0 {
        eprintln!("no drawing was found whole: the machine was too busy, and is asked again");
        sums.push(Chaos::new(seed + rounds, &clock).cover());
    }
    summary(rounds, &sums);
}

fn summary(rounds: u64, sums: &[Sum]) {
    let sum = |of: fn(&Sum) -> usize| sums.iter().map(of).sum::<usize>();
    let ink_mm: f64 = sums.iter().map(|sum| sum.ink_mm).sum();
    let moved = sum(|sum| sum.moved);
    eprintln!(
        "{rounds} rounds: {} jobs, {moved} moved, {} interrupted, {} resumed; blocked, stopped and gone on with: {} found whole, {} that another drawing came before, {} that the machine was too busy for; {} answers; {} frames, {ink_mm:.0} mm of ink",
        sum(|sum| sum.jobs),
        sum(|sum| sum.interrupted),
        sum(|sum| sum.resumed),
        sum(|sum| sum.covered),
        sum(|sum| sum.uncounted),
        sum(|sum| sum.starved),
        sum(|sum| sum.answers),
        sum(|sum| sum.frames),
    );
    assert!(sum(|sum| sum.frames) > 0, "no goal was ever heard");
    // With fewer rounds it may be that nothing came to it.
    if rounds >= CHAPTER * 3 {
        assert!(
            sum(|sum| sum.covered) > 0,
            "no drawing that was blocked and stopped was found whole at its end"
        );
        assert!(moved > 0 && ink_mm > 0.0, "nothing was ever drawn");
        assert!(
            sum(|sum| sum.answers) > moved,
            "hardly anybody was answered"
        );
    }
}

/// The library that makes a node's clocks jump.
fn compile_clock(folder: &Path) -> PathBuf {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/chaos/clock.c");
    let library = folder.join("clock.so");
    let made = std::process::Command::new("cc")
        .args(["-shared", "-fPIC", "-O1", "-o"])
        .args([&library, &source])
        .arg("-ldl")
        .output()
        .unwrap();
    assert!(
        made.status.success(),
        "{}",
        String::from_utf8_lossy(&made.stderr)
    );
    library
}

struct Chaos {
    seed: u64,
    bench: Bench,
    chance: Chance,
    arm: FarArm,
    state: PathBuf,
    clock: PathBuf,
    /// By how much the node's clocks are off: the calendar's and the monotonic one's.
    jumps_ns: [i64; 2],
    node: Option<Node>,
    done: Vec<u64>,
    answers: usize,
    /// Joints that were held up or let go.
    spoilt: usize,
    /// Drawings that were blocked, stopped, gone on with and found whole.
    covered: usize,
    /// Such drawings that went on with one from before, whose ink is not all theirs.
    uncounted: usize,
    /// Such drawings that the machine was too busy for.
    starved: usize,
    round: u64,
    /// True if answers were lost with a process since the last look.
    lost: bool,
}

impl Chaos {
    fn new(seed: u64, clock: &Path) -> Self {
        let bench = Bench::new();
        bench.scene("short", &support::scene("short", DESIGNS[0]));
        let file = "keep_jobs = 100000\nanswer_within_s = 15\nlease_idle_s = 1\n";
        std::fs::write(bench.path("node.toml"), file).unwrap();
        std::fs::write(bench.path("jumps"), [0; 16]).unwrap();
        let arm = FarArm::start(&bench.path("scenes"), bench.path("arm-port"));
        let mut chaos = Self {
            seed,
            state: bench.path("state"),
            clock: clock.to_owned(),
            jumps_ns: [0; 2],
            bench,
            chance: Chance(seed),
            arm,
            node: None,
            done: Vec::new(),
            answers: 0,
            spoilt: 0,
            covered: 0,
            uncounted: 0,
            starved: 0,
            round: 0,
            lost: false,
        };
        chaos.start();
        chaos.operator(&ENABLE);
        chaos
    }

    fn play(mut self, rounds: u64) -> Sum {
        for round in 0..rounds {
            self.round = round;
            for _ in 0..=self.chance.below(2) {
                self.act();
            }
            self.verify_invariants();
        }
        self.round = rounds;
        self.end()
    }

    /// Nothing but drawings that are blocked, stopped and gone on with, until one is found whole.
    fn cover(mut self) -> Sum {
        for round in 0..COVER_TRIES {
            self.round = round as u64;
            self.block_stop_and_go_on();
            self.verify_invariants();
            if self.covered > 0 {
                break;
            }
        }
        self.end()
    }

    fn start(&mut self) {
        let paths = ["node.toml", "jumps"].map(|name| self.bench.path(name).display().to_string());
        let [config, jumps] = paths;
        let (port, state) = (
            self.arm.link.display().to_string(),
            self.state.display().to_string(),
        );
        let clock = self.clock.display().to_string();
        // A link to a pseudo-terminal is taken for a real port.
        let args = ["--config", &config, "--allow-root"];
        let here = [&args[..], &on_port(&port, &state)].concat();
        let environment = [("LD_PRELOAD", &*clock), ("CHAOS_CLOCK", &*jumps)];
        let began = Instant::now();
        let started = loop {
            let started = Node::start(&self.bench, &here, &environment);
            // The port may be unplugged, or the wire broken, just now.
            if started.is_ok() || began.elapsed() > PATIENCE {
                break started;
            }
            sleep(Duration::from_millis(100));
        };
        match started {
            Ok(node) => self.node = Some(node),
            Err(why) => self.must(Err(why)),
        }
    }

    fn node(&mut self) -> &mut Node {
        self.node.as_mut().unwrap()
    }

    /// One thing that people, clients, cables and machines do.
    fn act(&mut self) {
        let what = self.chance.below(31);
        self.done.push(what);
        match what {
            0..=3 => self.call("stroke"),
            4 | 5 => self.call_with("stroke", "{\"resume\":true}"),
            6 => self.call("align"),
            7 | 8 => self.call("reset"),
            9 => self.call("sense"),
            10 => self.call_with("stop", "what?"),
            11 => self.node().hang_up(),
            12 => self.node().cancel(),
            13 => self.operator(&["stop"]),
            14 => {
                for verb in ["estop", "clear", "reset"] {
                    self.operator(&[verb]);
                }
            }
            15 => {
                self.operator(&["hold", "--now"]);
                self.operator(&["resume"]);
            }
            16 => self.kill(),
            17 => self.leave(),
            18 => self.freeze(),
            19 => self.jump(),
            20 => self.swap_design(),
            21 => self.break_the_wire(),
            22 => self.break_a_joint(),
            23 | 24 => self.block_stop_and_go_on(),
            _ => {
                // The way out of most trouble, so that there is more of it.
                self.operator(&ENABLE);
                self.operator(&["reset"]);
                self.call_with("stroke", ARGUMENTS[1]);
            }
        }
        // Now and then long enough for the pen to come to the paper, and to draw.
        let most = if self.chance.below(3) == 0 { 4000 } else { 300 };
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

    /// Over one way in or the other, and now and then over both at once.
    fn call_with(&mut self, tool: &str, arguments: &str) {
        let way = self.chance.below(4);
        if way != 0 {
            self.node().call_by_http(tool, arguments);
        }
        if way <= 1 {
            self.node().call_by_pipe(tool, arguments);
        }
    }

    fn operator(&self, args: &[&str]) {
        let output = self.bench.run(args);
        assert!(output.status.code().is_some(), "{args:?} was killed");
    }

    /// Until the pen draws, where it is about to.
    fn wait_for_ink(&self, most: Duration) {
        let points = || self.arm.ink().iter().map(Vec::len).sum::<usize>();
        let (before, began) = (points(), Instant::now());
        while points() < before + 100 && began.elapsed() < most {
            sleep(Duration::from_millis(10));
        }
    }

    /// The node dies without a word, and another is started.
    fn kill(&mut self) {
        if self.chance.below(2) == 0 {
            self.call_with("stroke", "{\"resume\":true}");
            self.wait_for_ink(Duration::from_secs(3));
        }
        self.lost = true;
        let node = self.node();
        node.excuse();
        node.child.0.kill().unwrap();
        node.child.0.wait().unwrap();
        self.start_again();
    }

    /// The client at standard input goes, and the node with it.
    fn leave(&mut self) {
        self.lost = true;
        self.node().end_input();
        self.start_again();
    }

    fn start_again(&mut self) {
        self.start();
        if self.chance.below(2) == 0 {
            self.operator(&ENABLE);
        }
    }

    /// The node gets no time for a while.
    fn freeze(&mut self) {
        let time = Duration::from_millis(20 + self.chance.below(300));
        let pid = Pid::from_child(&self.node().child.0);
        kill_process(pid, Signal::STOP).unwrap();
        sleep(time);
        kill_process(pid, Signal::CONT).unwrap();
    }

    /// A drawing that is blocked and stopped on the way, and gone on with until it reaches its end, is
    /// whole then: what was on the sheet before does not count.
    fn block_stop_and_go_on(&mut self) {
        for args in [&["stop"][..], &["clear"], &ENABLE, &RESET] {
            self.operator(args);
        }
        let (lines, before) = (self.arm.ink().len(), self.jobs().len());
        self.node().call_by_http("stroke", ARGUMENTS[1]);
        self.wait_for_ink(Duration::from_secs(10));
        self.block_and_stop();
        let ended = self.go_on_to_the_end();
        if ended.as_ref().is_err_and(|reason| reason.contains(STARVED)) {
            self.starved += 1;
            return;
        }
        self.must(ended.as_ref().map(drop).map_err(Clone::clone));
        let last = ended.unwrap();
        let scenes = SceneLibrary::new(Some(self.bench.path("scenes")));
        let scene = scenes.scene("short", None).unwrap();
        let design: Vec<_> = scene
            .strokes
            .iter()
            .map(|one| one.points_mm.clone())
            .collect();
        let (ink, jobs) = (self.arm.ink(), self.jobs());
        let verdict = judge::is_covered(&design, &ink[lines..], &jobs, &last, before);
        self.covered += usize::from(verdict == Ok(true));
        self.uncounted += usize::from(verdict == Ok(false));
        self.must(verdict.map(drop));
    }

    fn jobs(&self) -> Vec<steadyhand::job::PastJob> {
        let jobs = judge::read_jobs(&self.state);
        self.must(jobs.as_ref().map(drop).map_err(Clone::clone));
        jobs.unwrap()
    }

    /// The process gets no time, or the bus no replies, while an operator says stop.
    fn block_and_stop(&mut self) {
        let pid = Pid::from_child(&self.node().child.0);
        let no_time = self.chance.below(2) == 0;
        if no_time {
            kill_process(pid, Signal::STOP).unwrap();
        } else {
            self.arm.break_it(SimulatedFault::DropReplies(1.0));
        }
        sleep(Duration::from_millis(self.chance.below(100)));
        let mut stop = self.bench.command(&["stop"]);
        let mut stop = stop
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        sleep(Duration::from_millis(20 + self.chance.below(400)));
        if no_time {
            kill_process(pid, Signal::CONT).unwrap();
        } else {
            self.arm.break_it(SimulatedFault::DropReplies(0.0));
        }
        stop.wait().unwrap();
    }

    /// Until a drawing has reached its end: which job that was.
    fn go_on_to_the_end(&mut self) -> Result<String, String> {
        let (began, mut reply, mut starved) = (Instant::now(), Value::Null, "");
        let mut reset_said = String::new();
        while began.elapsed() < PATIENCE * 12 {
            self.operator(&ENABLE);
            let reset = self.bench.run(&RESET);
            let mut answer = self.node().call("stroke", "{\"resume\":true}");
            let code = |answer: &Value| answer["result"]["structuredContent"]["code"].clone();
            // A design that has changed since is drawn again.
            let anew = ["nothing_to_resume", "drawing_complete", "scene_changed"];
            if answer
                .as_ref()
                .is_some_and(|answer| anew.iter().any(|anew| code(answer) == *anew))
            {
                answer = self.node().call("stroke", ARGUMENTS[1]);
            }
            reply = answer.unwrap_or_default();
            reset_said = String::from_utf8_lossy(&reset.stderr).into_owned()
                + &String::from_utf8_lossy(&reset.stdout);
            if reply.to_string().contains(STARVED) {
                starved = STARVED;
            }
            let job = &reply["result"]["structuredContent"]["job"];
            if job["state"] == "reached" {
                return Ok(job["id"].as_str().unwrap_or_default().to_owned());
            }
        }
        Err(format!(
            "a drawing could not be gone on with: {reply} {starved}; reset said: {reset_said}"
        ))
    }

    /// The calendar jumps by up to a day either way, the node's own time forward by up to a minute.
    fn jump(&mut self) {
        if self.chance.below(2) == 0 {
            self.jumps_ns[0] = (self.chance.below(172_800) as i64 - 86_400) * 1_000_000_000;
        } else {
            self.jumps_ns[1] += self.chance.below(60_000) as i64 * 1_000_000;
        }
        let mut file = std::fs::OpenOptions::new()
            .write(true)
            .open(self.bench.path("jumps"))
            .unwrap();
        for jump in self.jumps_ns {
            file.write_all(&jump.to_le_bytes()).unwrap();
        }
    }

    fn swap_design(&mut self) {
        let design = DESIGNS[self.chance.below(2) as usize];
        self.bench.scene("short", &support::scene("short", design));
    }

    /// Something is wrong with the wire for a while. The arm goes on holding.
    fn break_the_wire(&mut self) {
        let (broken, mended) = match self.chance.below(6) {
            0 => (
                SimulatedFault::DropReplies(0.3),
                SimulatedFault::DropReplies(0.0),
            ),
            1 => (
                SimulatedFault::CorruptReplies {
                    share: 0.3,
                    bits: 3,
                },
                SimulatedFault::CorruptReplies {
                    share: 0.0,
                    bits: 0,
                },
            ),
            2 => (SimulatedFault::Silence(3), SimulatedFault::Speak(3)),
            3 => (
                SimulatedFault::Noise(vec![0xFF; 40]),
                SimulatedFault::Noise(vec![0x55; 9]),
            ),
            4 => (SimulatedFault::Unplug, SimulatedFault::DropReplies(0.0)),
            _ => (
                SimulatedFault::LateReplies {
                    share: 0.5,
                    by: Duration::from_millis(12),
                },
                SimulatedFault::LateReplies {
                    share: 0.0,
                    by: Duration::ZERO,
                },
            ),
        };
        self.arm.break_it(broken);
        sleep(Duration::from_millis(50 + self.chance.below(400)));
        self.arm.break_it(mended);
    }

    /// Something stands in a joint's way, or a servo loses its power for a moment.
    fn break_a_joint(&mut self) {
        self.spoilt += 1;
        if self.chance.below(2) == 0 {
            let at_rad = self.arm.sim.true_joints().get(1).copied();
            self.arm
                .break_it(SimulatedFault::Block { joint: 1, at_rad });
            sleep(Duration::from_millis(100 + self.chance.below(500)));
            let at_rad = None;
            self.arm
                .break_it(SimulatedFault::Block { joint: 1, at_rad });
        } else {
            self.arm.break_it(SimulatedFault::PowerCycle(2));
        }
    }

    fn verify_invariants(&mut self) {
        let verdict = self.judge();
        self.must(verdict);
    }

    fn judge(&mut self) -> Result<(), String> {
        // What is on the sheet, and what was heard, first: what is written of it is never behind.
        let now = SystemTime::now();
        let ink = self.arm.ink();
        let answers = self.node().answers()?;
        let jobs = judge::read_jobs(&self.state)?;
        self.answers += answers.len();
        for answer in &answers {
            judge::answer_is_kept(answer, &jobs)?;
        }
        if !std::mem::take(&mut self.lost) {
            judge::answers_are_noted(&answers, &self.state)?;
        }
        judge::audit_holds(&self.state)?;
        judge::ink_is_told(&ink, &jobs, self.spoilt)?;
        judge::nothing_is_doubled(&jobs)?;
        judge::moves_are_told(&self.arm, &self.state, &jobs, now)?;
        let wrong = &self.arm.received().wrong;
        wrong.first().map_or(Ok(()), |wrong| Err(wrong.clone()))
    }

    fn must(&self, verdict: Result<(), String>) {
        if let Err(reason) = verdict {
            panic!(
                "{reason}\nround {}, done {:?}\nalone: STEADYHAND_CHAOS_SEED={} STEADYHAND_CHAOS_ROUNDS={} cargo test --test timing chaos::",
                self.round,
                self.done,
                self.seed,
                (self.round + 1).min(CHAPTER)
            );
        }
    }

    /// All comes to rest and everybody is answered; then ink is not missing either.
    fn end(mut self) -> Sum {
        self.operator(&["stop"]);
        let began = Instant::now();
        while self.node().is_waited_for() {
            self.verify_invariants();
            let is_late = began.elapsed() > PATIENCE;
            self.must(
                (!is_late)
                    .then_some(())
                    .ok_or("a call is not answered".into()),
            );
            sleep(Duration::from_millis(50));
        }
        // What was sent last is drawn.
        sleep(Duration::from_millis(600));
        self.verify_invariants();
        let jobs = judge::read_jobs(&self.state).unwrap();
        let ink = self.arm.ink();
        self.must(judge::ink_is_there(&ink, &jobs, self.spoilt));
        let count =
            |of: fn(&steadyhand::job::PastJob) -> bool| jobs.iter().filter(|job| of(job)).count();
        Sum {
            jobs: jobs.len(),
            moved: count(|job| job.moved),
            interrupted: count(|job| job.interrupted),
            resumed: count(|job| job.moved && !job.resumes.is_empty()),
            answers: self.answers,
            frames: self.arm.received().frames,
            ink_mm: judge::ink_mm(&ink),
            covered: self.covered,
            uncounted: self.uncounted,
            starved: self.starved,
        }
    }
}
