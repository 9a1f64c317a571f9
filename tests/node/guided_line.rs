//! `steadyhand first-line` at a terminal: a person who presses Enter and touches what is asked for, from an arm that is not
//! as its files say to ink where the design wants it.
#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::print_stdout,
    clippy::disallowed_methods,
    reason = "a failing test may panic, and says its figures"
)]

use crate::guided::{self, CALIBRATOR_M, Errors, LOW, UPRIGHT, WIDE, vector};
use crate::support;
use std::f64::consts::TAU;
use std::io::{BufRead, BufReader, Write};
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use nalgebra::Point3;
use serde_json::Value;
use steadyhand::design::compare::deviation_mm;
use steadyhand::kin::{IkGoal, ToolTip};
use steadyhand::node::open;
use steadyhand::scene::{Scene, SceneLibrary};
use steadyhand::sim::ArmSimulator;
use steadyhand::units::JointVector;
use support::chance::Chance;
use support::person::{Person, plugged_in};
use support::{Bench, PATIENCE};

/// Practice: the simulated arm works on a sheet that lies two millimetres lower than the scene says.
fn practice() -> (Bench, String) {
    let bench = Bench::new();
    std::fs::create_dir_all(bench.path("truth")).unwrap();
    let believed = support::scene("first", support::SHORT_LINES);
    let lower = believed.replace("-0.1731, 0.005]", "-0.1731, 0.003]");
    assert_ne!(lower, believed);
    bench.scene("first", &believed);
    std::fs::write(bench.path("truth/first.toml"), lower).unwrap();
    let text = format!(
        "name = \"bench\"\nstate = {:?}\n\n[[arms]]\nname = \"arm\"\nmodel = \"so101\"\nport = \"simulator\"\ntruth = {:?}\n",
        bench.path("state"),
        bench.path("truth")
    );
    let file = bench.path("node.toml");
    std::fs::write(&file, text).unwrap();
    let file = file.display().to_string();
    (bench, file)
}

#[test]
#[ignore = "takes four minutes: cargo test --test node guided_line:: -- --ignored"]
fn in_practice_the_guide_leads_to_ink_and_is_taken_up_where_it_was_left() {
    let (bench, file) = practice();
    let args = ["--config", &file, "first-line", "--scene", "first"];
    let mut person = Person::at(&bench, &args);
    person.sees("step 1 of 10: the port");
    person.sees("arm arm (so101) is at simulator");
    person.sees("step 3 of 10: the node");
    person.sees("started, and ends with this guide: node bench");
    person.sees("step 4 of 10: the joints, by hand");
    person.sees("not needed in practice");
    person.sees("step 7 of 10: the sheet");
    person.sees("press Enter to begin");
    person.types("q\n");
    person.sees("left; what was done is kept");
    person.ends_with(1);
    let mut person = Person::at(&bench, &args);
    person.sees("step 7 of 10: the sheet");
    person.sees("press Enter to begin");
    person.types("\n");
    // It feels at the speed of a real arm, which is longer than a test waits for one line.
    while person
        .sees_one_of(&["6 points touched, 3 times each", "s left"])
        .0
        > 0
    {}
    person.sees("write this into the file?");
    person.types("yes\n");
    person.sees("accepted as calibration 1");
    person.sees("step 8 of 10: your leave");
    person.types("yes\n");
    person.sees("motion is enabled for scene first");
    person.sees("step 9 of 10: align");
    person.types("\n");
    person.sees("registration cross drawn");
    person.sees("press Enter to begin");
    person.types("q\n");
    person.ends_with(1);
    // What was done is not done again.
    let mut person = Person::at(&bench, &args);
    person.sees("the sheet: done before");
    person.sees("step 8 of 10: your leave");
    person.types("yes\n");
    person.sees("align: done before");
    person.sees("step 10 of 10: the first line");
    person.types("\n");
    person.sees("drew 2 strokes");
    person.sees("the first line is drawn");
    person.ends_with(0);
    // The node went with the guide.
    let status = bench.run(&["--config", &file, "status"]);
    assert!(!status.status.success());
}

#[test]
fn without_a_node_file_the_guide_says_how_to_write_one() {
    let bench = Bench::new();
    let output = bench.run(&["first-line"]);
    assert!(!output.status.success());
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(said.contains("steadyhand init"), "{said}");
}

/// The most by which an arm is wrong that the guide begins with.
const HIDDEN: Errors = Errors {
    zeros_deg: 1.5,
    tip_mm: 2.0,
    sheet_mm: 4.0,
    sheet_deg: 2.0,
    backlash_deg: 0.0,
};

/// How well a hand brings a tip to a place.
const HAND_M: f64 = 2e-4;

/// How far 95 of 100 places of the ink may be from the design.
const OFF_MM_MAX: f64 = 1.0;

/// How deep a tip may be in the sheet: a millimetre as the scene says, and what the pen gives way by.
const DEEP_MM_MAX: f64 = 2.0;

/// An arm on a port that is not as its files say, and a hand that moves it.
struct WrongArm {
    bench: Bench,
    file: String,
    sim: ArmSimulator,
    truth: Arc<Scene>,
    chance: Chance,
}

impl WrongArm {
    fn new(seed: u64) -> Self {
        let bench = Bench::new();
        let mut chance = Chance(seed);
        std::fs::create_dir_all(bench.path("truth/arms")).unwrap();
        let calibrator = format!(
            "calibrator_m = {}\n\n[design]",
            vector(&CALIBRATOR_M.into())
        );
        let text = support::scene("first", support::SHORT_LINES);
        let text = text.replacen("[design]", &calibrator, 1) + LOW;
        bench.scene("first", &text);
        let folder = |name: &str| SceneLibrary::new(Some(bench.path(name)));
        let believed = folder("scenes").scene("first", None).unwrap();
        let really = guided::truth(&believed, &text, &mut chance, &HIDDEN);
        std::fs::write(bench.path("truth/first.toml"), really).unwrap();
        let arm = folder("scenes").source("arms/so101.toml").unwrap().unwrap();
        let really = guided::true_arm(&arm, &mut chance, &HIDDEN);
        std::fs::write(bench.path("truth/arms/so101.toml"), really).unwrap();
        let truth = folder("truth").scene("first", None).unwrap();
        let sim = ArmSimulator::new(&truth.arm, &truth.rest_rad);
        sim.set_paced(false);
        open::lay(&sim, &truth);
        let port = plugged_in(sim.clone());
        let text = format!(
            "name = \"bench\"\nstate = {:?}\n\n[[arms]]\nname = \"arm\"\nmodel = \"so101\"\nport = {port:?}\n",
            bench.path("state")
        );
        let file = bench.path("node.toml");
        std::fs::write(&file, text).unwrap();
        Self {
            file: file.display().to_string(),
            bench,
            sim,
            truth,
            chance,
        }
    }

    /// Brings all joints where they are wanted, and waits until the node has read them there.
    fn stands(&self, joints_rad: &[f64]) {
        for (joint, q) in joints_rad.iter().enumerate() {
            assert!(self.sim.turn_by_hand(joint, *q), "joint {joint} holds");
        }
        let wanted: Vec<(u8, f64)> = self
            .truth
            .arm
            .servos()
            .map(|(joint, servo)| {
                let a_radian = f64::from(servo.sign) * f64::from(servo.ticks_per_turn) / TAU;
                let count = f64::from(servo.zero_tick) + a_radian * joints_rad[joint];
                (servo.id, count)
            })
            .collect();
        let began = Instant::now();
        loop {
            let ticks = self.ticks();
            let is_near = |(id, count): &(u8, f64)| {
                let read = ticks[id.to_string()].as_f64().unwrap_or(f64::INFINITY);
                (read - count).abs() < 1.5
            };
            if wanted.iter().all(is_near) {
                return;
            }
            assert!(
                began.elapsed() < PATIENCE,
                "{wanted:?} is not read: {ticks}"
            );
            std::thread::sleep(Duration::from_millis(10));
        }
    }

    /// What the node reads of the servos.
    fn ticks(&self) -> Value {
        let socket = self.bench.path("steadyhand/bench.sock");
        let Ok(mut stream) = UnixStream::connect(socket) else {
            return Value::Null;
        };
        stream.write_all(b"{\"verb\": \"measured\"}\n").unwrap();
        let mut line = String::new();
        BufReader::new(stream).read_line(&mut line).unwrap();
        let told: Value = serde_json::from_str(&line).unwrap();
        let seen: Value = serde_json::from_str(told["text"].as_str().unwrap()).unwrap();
        seen["arms"][0]["ticks"].clone()
    }

    /// Touches one place after the other, as asked, until it is accepted; what is refused is touched again.
    fn touches(&mut self, person: &mut Person, places: &[(Point3<f64>, [f64; 5], usize, bool)]) {
        person.sees("press Enter to begin");
        person.types("\n");
        for _ in 0..TRIES {
            for (at, wide, times, is_anew) in places {
                let mut pose = self.pose(*at, *wide);
                for time in 1..=*times {
                    person.sees(&format!("(touch {time} of {times})"));
                    if *is_anew && time > 1 {
                        pose = self.pose(*at, *wide);
                    }
                    self.stands(&pose);
                    person.types("\n");
                }
            }
            let ends = [
                "write this into the file?",
                "write it all the same?",
                "throw these touches away",
                "throw all of them away",
            ];
            if person.sees_one_of(&ends).0 < 2 {
                person.types("yes\n");
                person.sees("accepted as calibration");
                return;
            }
            person.types("\n");
            person.sees("press Enter to begin");
            person.types("\n");
        }
        panic!("refused {TRIES} times: {}", person.transcript());
    }

    fn pose(&mut self, at: Point3<f64>, wide: [f64; 5]) -> Vec<f64> {
        let q = guided::touching(&self.truth, &mut self.chance, at, wide, HAND_M);
        q.iter().copied().collect()
    }

    fn joints(&mut self, person: &mut Person) {
        person.sees("step 4 of 10: the joints, by hand");
        person.sees("press Enter to begin");
        person.types("\n");
        person.sees("bring every joint to its zero");
        // As well as an eye sees it.
        let zero = [(); 5].map(|()| self.chance.within(HIDDEN.zeros_deg.to_radians()));
        self.stands(&zero);
        person.sees_redrawn(2);
        person.types("\n");
        for joint in 0..5 {
            person.sees(&format!("move {} alone", self.truth.arm.joint_name(joint)));
            let limits = &self.truth.arm.limits;
            let [low, high] =
                [&limits.lower_rad, &limits.upper_rad].map(|all| all.get(joint).unwrap());
            for to_rad in [*low, 0.0, *high] {
                assert!(self.sim.turn_by_hand(joint, to_rad));
                person.sees_redrawn(3);
            }
            person.types("\n");
        }
        person.sees("write this into the arm's file?");
        person.types("yes\n");
        person.sees("accepted as calibration");
    }

    fn zeros(&mut self, person: &mut Person) {
        let points = [
            [-0.05, -0.24, 0.05],
            [0.0, -0.17, 0.06],
            [0.04, -0.26, 0.03],
        ];
        let mut places = vec![(Point3::from(CALIBRATOR_M), WIDE, 8, true)];
        places.extend(points.map(|at| (Point3::from(at), WIDE, 6, true)));
        for at_mm in [
            [10.0, 10.0],
            [90.0, 10.0],
            [90.0, 90.0],
            [10.0, 90.0],
            [50.0, 50.0],
            [30.0, 70.0],
        ] {
            places.push((self.on_sheet(at_mm), WIDE, 1, true));
        }
        person.sees("step 5 of 10: the zeros, by touches");
        self.touches(person, &places);
    }

    fn tool(&mut self, person: &mut Person) {
        let at = Point3::from([0.0, -0.22, 0.05]);
        person.sees("step 6 of 10: the pen's tip");
        self.touches(person, &[(at, WIDE, 14, true), (at, UPRIGHT, 1, true)]);
    }

    fn sheet(&mut self, person: &mut Person) {
        let places = [
            [0.0, 0.0],
            [100.0, 0.0],
            [0.0, 100.0],
            [100.0, 100.0],
            [50.0, 50.0],
            [50.0, 0.0],
            [70.0, 30.0],
        ];
        let places = places.map(|at_mm| (self.on_sheet(at_mm), UPRIGHT, 3, true));
        person.sees("step 7 of 10: the sheet");
        self.touches(person, &places);
    }

    fn on_sheet(&self, at_mm: [f64; 2]) -> Point3<f64> {
        self.truth.surface.at(at_mm).point_m
    }

    /// Sees a motion to its end; one that a busy machine left without readings is reset and tried again, as the guide says.
    fn moves(&self, person: &mut Person, done: &str) {
        for _ in 0..MOTION_TRIES {
            let (which, seen) = person.sees_one_of(&[done, "press Enter to try again"]);
            if which == 0 {
                return;
            }
            let starved = ["no valid reading", "servos answers", "has not answered"];
            assert!(starved.iter().any(|words| seen.contains(words)), "{seen}");
            let reset = || self.bench.run(&["--config", &self.file, "reset"]);
            let mut resets = (0..MOTION_TRIES).map(|_| reset());
            assert!(resets.any(|reset| reset.status.success()), "{seen}");
            open::lay(&self.sim, &self.truth);
            person.types("\n");
            person.sees("press Enter to begin");
            person.types("\n");
        }
        panic!("never done: {}", person.transcript());
    }

    /// Returns how far from the sheet's middle the tip is where the files as they are at first put it there.
    fn sheet_off_mm(&self) -> f64 {
        let library = SceneLibrary::new(Some(self.bench.path("scenes")));
        let believed = library.scene("first", None).unwrap();
        let pen = believed.pen(0).unwrap();
        let tip = ToolTip {
            point_m: pen.tip_m,
            axis: pen.axis,
        };
        let goal = IkGoal::PointThenAxis {
            point_m: believed.surface.at([50.0, 50.0]).point_m,
            axis: believed.arm.chain.tip(&believed.ready_rad, &tip).1,
        };
        let sent = believed.arm.chain.solve(&tip, &goal, &believed.ready_rad);
        let sent = sent.unwrap().q_rad;
        let counts = believed.arm.servos().zip(self.truth.arm.servos());
        let stands: Vec<f64> = counts
            .map(|((joint, said), (_, is))| {
                let counts = f64::from(said.zero_tick) - f64::from(is.zero_tick);
                sent.get(joint).unwrap() + counts * TAU / f64::from(is.ticks_per_turn)
            })
            .collect();
        let chain = &self.truth.arm.chain;
        let tip_m = self.truth.pen(0).unwrap().tip_m;
        let really = chain.point(&JointVector::from_slice(&stands), &tip_m);
        (really - self.on_sheet([50.0, 50.0])).norm() * 1e3
    }

    /// Goes the whole way, and returns what came of it.
    fn first_line(&mut self) -> FirstLine {
        let args = ["--config", &self.file, "first-line", "--scene", "first"];
        let mut person = Person::at(&self.bench, &args);
        person.sees("nothing is wrong on");
        self.joints(&mut person);
        person.sees("the node is started again, with the new zeros");
        self.zeros(&mut person);
        person.sees("the node is started again, with the new zeros");
        self.tool(&mut person);
        self.sheet(&mut person);
        person.sees("step 8 of 10: your leave");
        person.types("yes\n");
        person.sees("step 9 of 10: align");
        person.types("\n");
        let watch = DepthWatch::begin(&self.sim, &self.truth);
        self.moves(&mut person, "registration cross drawn");
        // Another sheet: neither the touches nor the cross are of the line.
        open::lay(&self.sim, &self.truth);
        person.sees("step 10 of 10: the first line");
        person.types("\n");
        self.moves(&mut person, "drew 2 strokes");
        person.ends_with(0);
        let ink: Vec<Vec<[f64; 2]>> = self
            .sim
            .ink()
            .iter()
            .map(|line| line.points_mm.clone())
            .collect();
        let strokes = self.truth.strokes.iter();
        let design: Vec<Vec<[f64; 2]>> = strokes.map(|stroke| stroke.points_mm.clone()).collect();
        let off = deviation_mm(&design, &ink);
        FirstLine {
            p95_mm: off.p95_mm,
            max_mm: off.max_mm,
            deepest_mm: watch.deepest_mm(),
            transcript: person.transcript(),
        }
    }
}

/// A first line, and all that was said on the way to it.
struct FirstLine {
    p95_mm: f64,
    max_mm: f64,
    deepest_mm: f64,
    transcript: String,
}

/// Looks how deep the tip is in the sheet while the arm moves.
struct DepthWatch {
    has_ended: Arc<AtomicBool>,
    watch: JoinHandle<f64>,
}

impl DepthWatch {
    fn begin(sim: &ArmSimulator, truth: &Arc<Scene>) -> Self {
        let has_ended = Arc::new(AtomicBool::new(false));
        let (sim, truth, ended) = (sim.clone(), Arc::clone(truth), Arc::clone(&has_ended));
        let tip_m = truth.pen(0).unwrap().tip_m;
        let watch = std::thread::spawn(move || {
            let mut deepest_mm = 0.0_f64;
            while !ended.load(Ordering::Relaxed) {
                let tip_m = truth.arm.chain.point(&sim.true_joints(), &tip_m);
                let over = truth.surface.project(&tip_m);
                if over.at_mm.iter().all(|mm| (0.0..=100.0).contains(mm)) {
                    deepest_mm = deepest_mm.max(-over.height_mm);
                }
                std::thread::sleep(Duration::from_millis(5));
            }
            deepest_mm
        });
        Self { has_ended, watch }
    }

    fn deepest_mm(self) -> f64 {
        self.has_ended.store(true, Ordering::Relaxed);
        self.watch.join().unwrap()
    }
}

/// How often a step that is refused is done again.
const TRIES: usize = 4;

/// The same of a motion: a busy machine may leave the arm without readings time and again.
const MOTION_TRIES: usize = 40;

/// Folder into which the transcripts are written, where one is named.
const TRANSCRIPTS: &str = "STEADYHAND_TRANSCRIPTS";

fn wrong_arms(seeds: std::ops::Range<u64>) {
    let mut wrong = Vec::new();
    println!("| arm | sheet off before | 95 % of the ink | largest | deepest |");
    println!("|---|---|---|---|---|");
    for seed in seeds {
        let mut arm = WrongArm::new(seed);
        let before_mm = arm.sheet_off_mm();
        let line = arm.first_line();
        println!(
            "| {seed} | {before_mm:.1} mm | {:.2} mm | {:.2} mm | {:.2} mm |",
            line.p95_mm, line.max_mm, line.deepest_mm
        );
        if let Some(folder) = std::env::var_os(TRANSCRIPTS) {
            let file = std::path::Path::new(&folder).join(format!("arm-{seed}.txt"));
            std::fs::write(file, &line.transcript).unwrap();
        }
        if line.p95_mm > OFF_MM_MAX || line.deepest_mm > DEEP_MM_MAX {
            wrong.push(seed);
        }
    }
    assert!(
        wrong.is_empty(),
        "{wrong:?}: {OFF_MM_MAX} mm beside and {DEEP_MM_MAX} mm deep are allowed"
    );
}

#[test]
#[ignore = "takes many minutes: cargo test --test node guided_line:: -- --ignored"]
fn the_guide_makes_twenty_wrong_arms_draw_right() {
    wrong_arms(1..21);
}
