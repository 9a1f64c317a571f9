//! From an arm whose zeros, tool and sheet are all wrong to a drawing that is right, by the commands
//! that a technician gives; and what is refused on the way.
//!
//! The simulated arm is as a folder of its own says (`truth` in the node file). A person who touches is
//! a solver on that arm: it brings the true tip to a place, and the servos' counts are what is read.
#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::print_stdout,
    reason = "a failing test may panic, and says its figures"
)]

use crate::support;
use std::f64::consts::TAU;
use std::sync::Arc;

use nalgebra::{Point3, Unit, UnitQuaternion, Vector3};
use serde_json::Value;
use steadyhand::kin::{IkGoal, ToolTip};
use steadyhand::scene::{Scene, SceneLibrary};
use steadyhand::units::JointVector;
use support::chance::Chance;
use support::{Bench, unless_starved};

/// Place of the scene's calibrator, in the arm's base frame.
pub(super) const CALIBRATOR_M: [f64; 3] = [0.04, -0.152, 0.035];

/// A sheet that leans may lie below the table's top.
pub(super) const LOW: &str =
    "\n[limits.workspace]\nmin_m = [-0.8, -0.8, -0.05]\nmax_m = [0.8, 0.8, 0.8]\n";

/// Accuracy with which a hand brings a tip to a place.
const HAND_M: f64 = 5e-5;

/// A node on an arm that is not as its files say, and a person beside it.
struct Practice {
    bench: Bench,
    chance: Chance,
    /// Play of the gears, from one side to the other.
    play_rad: f64,
    /// Set if commands go to a running node.
    is_beside_a_node: bool,
}

pub(super) fn vector(v: &Vector3<f64>) -> String {
    format!("[{:.9}, {:.9}, {:.9}]", v.x, v.y, v.z)
}

/// A text with what stands behind a key replaced.
fn with_key(text: &str, key: &str, value: &str) -> String {
    let lines = text.lines().map(|line| match line.split_once(" = ") {
        Some((name, _)) if name == key => format!("{key} = {value}"),
        _ => line.to_owned(),
    });
    lines.collect::<Vec<_>>().join("\n")
}

/// The size of every error.
pub(super) struct Errors {
    pub(super) zeros_deg: f64,
    pub(super) tip_mm: f64,
    pub(super) sheet_mm: f64,
    pub(super) sheet_deg: f64,
    pub(super) backlash_deg: f64,
}

const NONE: Errors = Errors {
    zeros_deg: 0.0,
    tip_mm: 0.0,
    sheet_mm: 0.0,
    sheet_deg: 0.0,
    backlash_deg: 0.0,
};

const HIDDEN: Errors = Errors {
    zeros_deg: 2.0,
    tip_mm: 5.0,
    sheet_mm: 10.0,
    sheet_deg: 4.0,
    backlash_deg: 0.0,
};

/// Joints with which the true tip is at a place, as well as a hand brings it there, leant over and turned at will.
pub(super) fn touching(
    truth: &Scene,
    chance: &mut Chance,
    at: Point3<f64>,
    wide: [f64; 5],
    hand_m: f64,
) -> JointVector {
    let pen = truth.pen(0).unwrap();
    let tip = ToolTip {
        point_m: pen.tip_m,
        axis: pen.axis,
    };
    let chain = &truth.arm.chain;
    for _ in 0..400 {
        let reversed: Vec<f64> = wide
            .iter()
            .zip(truth.ready_rad.iter())
            .map(|(wide, q)| q + chance.within(*wide))
            .collect();
        let start = JointVector::from_slice(&reversed);
        let (_, axis) = chain.tip(&start, &tip);
        let off = chance.direction() * hand_m;
        let goal = IkGoal::PointThenAxis {
            point_m: at + off,
            axis,
        };
        if let Ok(found) = chain.solve(&tip, &goal, &start) {
            return found.q_rad;
        }
    }
    panic!("{at} cannot be touched");
}

impl Practice {
    fn new(seed: u64, errors: &Errors) -> Self {
        let bench = Bench::new();
        let mut chance = Chance(seed);
        std::fs::create_dir_all(bench.path("truth/arms")).unwrap();
        let library = SceneLibrary::default();
        let scene = library.scene("default", None).unwrap();
        let text = library.source("default.toml").unwrap().unwrap();
        let calibrator = format!(
            "calibrator_m = {}\n\n[design]",
            vector(&CALIBRATOR_M.into())
        );
        let text = text.replacen("[design]", &calibrator, 1) + LOW;
        bench.scene("default", &text);
        std::fs::write(
            bench.path("truth/default.toml"),
            truth(&scene, &text, &mut chance, errors),
        )
        .unwrap();
        let arm = library.source("arms/so101.toml").unwrap().unwrap();
        std::fs::write(
            bench.path("truth/arms/so101.toml"),
            true_arm(&arm, &mut chance, errors),
        )
        .unwrap();
        let node = format!(
            "[[arms]]\nname = \"arm\"\nmodel = \"so101\"\nport = \"simulator\"\ntruth = {:?}\n",
            bench.path("truth")
        );
        std::fs::write(bench.path("node.toml"), node).unwrap();
        let play_rad = errors.backlash_deg.to_radians();
        Self {
            bench,
            chance,
            play_rad,
            is_beside_a_node: false,
        }
    }

    fn run(&self, args: &[&str]) -> (i32, String) {
        let (config, state) = (self.bench.path("node.toml"), self.bench.path("state"));
        if self.is_beside_a_node {
            return self.run_raw(args);
        }
        let at = [
            "--config",
            config.to_str().unwrap(),
            "--state",
            state.to_str().unwrap(),
        ];
        let all: Vec<&str> = at.iter().chain(args).copied().collect();
        self.run_raw(&all)
    }

    fn run_raw(&self, args: &[&str]) -> (i32, String) {
        let output = self.bench.run(args);
        let mut text = String::from_utf8(output.stdout).unwrap();
        text.push_str(&String::from_utf8_lossy(&output.stderr));
        (output.status.code().unwrap(), text)
    }

    fn believed(&self) -> Arc<Scene> {
        let library = SceneLibrary::new(Some(self.bench.path("scenes")));
        library.scene("default", None).unwrap()
    }

    fn truth(&self) -> Arc<Scene> {
        let library = SceneLibrary::new(Some(self.bench.path("truth")));
        library.scene("default", None).unwrap()
    }

    /// Joints with which the true tip is at a place, leant over and turned at will.
    fn pose(&mut self, at: Point3<f64>, wide: [f64; 5]) -> JointVector {
        touching(&self.truth(), &mut self.chance, at, wide, HAND_M)
    }

    /// A hand that knows of the play feels both its ends and touches between them, not always in the very middle; and as the arm
    /// weighs the same in one pose each time, always nearly there.
    fn lean_rad(&mut self) -> [f64; 5] {
        let half = self.play_rad / 2.0;
        [(); 5].map(|()| half * self.chance.within(0.3))
    }

    /// Returns what the servos read there, as the arm's file has them now.
    fn read(&mut self, true_rad: &JointVector, lean_rad: [f64; 5]) -> String {
        let (truth, believed) = (self.truth(), self.believed());
        let counts = truth.arm.servos().zip(believed.arm.servos());
        let joints: Vec<String> = counts
            .map(|((joint, is), (_, reported))| {
                let lean = lean_rad[joint] * (1.0 + self.chance.within(0.1));
                let a_radian = f64::from(is.sign) * f64::from(is.ticks_per_turn) / TAU;
                let angle = true_rad.get(joint).unwrap() + lean;
                let count = (f64::from(is.zero_tick) + a_radian * angle).round();
                format!("{:.9}", (count - f64::from(reported.zero_tick)) / a_radian)
            })
            .collect();
        format!("--joints={}", joints.join(","))
    }

    fn touch_at(&mut self, what: &str, extra: &[&str], at: Point3<f64>, wide: [f64; 5]) -> String {
        let (pose, lean_rad) = (self.pose(at, wide), self.lean_rad());
        self.read_and_say(what, extra, &pose, lean_rad)
    }

    fn read_and_say(
        &mut self,
        what: &str,
        extra: &[&str],
        pose: &JointVector,
        lean_rad: [f64; 5],
    ) -> String {
        let joints = self.read(pose, lean_rad);
        let mut args = vec!["calibrate", "touch", what, "--scene", "default"];
        args.extend(extra);
        args.push(&joints);
        let (code, output) = self.run(&args);
        assert_eq!(code, 0, "{output}");
        output
    }

    /// A place of the sheet, touched as often as each is.
    fn thrice(&mut self, of: &[&str], at: Point3<f64>) {
        let (pose, lean_rad) = (self.pose(at, UPRIGHT), self.lean_rad());
        let extra = [&["--of"], of].concat();
        for _ in 0..3 {
            self.read_and_say("sheet", &extra, &pose, lean_rad);
        }
    }

    fn touch(&mut self, what: &str, extra: &[&str], at: Point3<f64>) -> String {
        self.touch_at(what, extra, at, WIDE)
    }

    fn on_sheet(&self, at_mm: [f64; 2]) -> Point3<f64> {
        self.truth().surface.at(at_mm).point_m
    }

    fn accept(&self, extra: &[&str]) -> Result<String, String> {
        let mut args = vec!["calibrate", "accept"];
        args.extend(extra);
        match self.run(&args) {
            (0, output) => Ok(output),
            (_, output) => Err(output),
        }
    }

    /// Zeros of the joints: the calibrator, three unmeasured points, and the sheet.
    fn zeros(&mut self) -> Result<String, String> {
        for _ in 0..8 {
            self.touch("zeros", &["--of", "calibrator"], CALIBRATOR_M.into());
        }
        for (number, at) in [
            [-0.05, -0.24, 0.05],
            [0.0, -0.17, 0.06],
            [0.04, -0.26, 0.03],
        ]
        .iter()
        .enumerate()
        {
            let number = (number + 1).to_string();
            for _ in 0..6 {
                self.touch(
                    "zeros",
                    &["--of", "point", "--number", &number],
                    Point3::from(*at),
                );
            }
        }
        for at_mm in [
            [10.0, 10.0],
            [90.0, 10.0],
            [90.0, 90.0],
            [10.0, 90.0],
            [50.0, 50.0],
            [30.0, 70.0],
        ] {
            let at = self.on_sheet(at_mm);
            self.touch("zeros", &[], at);
        }
        self.accept(&["--override"])
    }

    fn tool(&mut self) -> Result<String, String> {
        let at = Point3::from([0.0, -0.22, 0.05]);
        for _ in 0..14 {
            self.touch("tool", &[], at);
        }
        self.touch("tool", &["--of", "verify"], at);
        self.accepted(&[])
    }

    /// Accepted, or thrown away to be touched again.
    fn accepted(&self, extra: &[&str]) -> Result<String, String> {
        self.accept(extra).inspect_err(|_| {
            self.run(&["calibrate", "discard"]);
        })
    }

    fn sheet_touches(&mut self) {
        for (of, at_mm) in [
            ("origin", [0.0, 0.0]),
            ("x", [100.0, 0.0]),
            ("y", [0.0, 100.0]),
            ("sheet", [100.0, 100.0]),
            ("sheet", [50.0, 50.0]),
            ("sheet", [50.0, 0.0]),
            ("sheet", [0.0, 50.0]),
            ("sheet", [100.0, 50.0]),
            ("sheet", [50.0, 100.0]),
            ("verify", [70.0, 30.0]),
        ] {
            let at = self.on_sheet(at_mm);
            self.thrice(&[of], at);
        }
    }

    fn sheet(&mut self) -> Result<String, String> {
        self.sheet_touches();
        self.accepted(&["--override"])
    }

    fn stroke(&self) -> Value {
        let (_, text) = self.run(&["call", "--json", "stroke"]);
        let end = text.rfind('}').map_or(0, |end| end + 1);
        serde_json::from_str(&text[..end]).unwrap_or_else(|_| panic!("{text}"))
    }

    /// Draws, and returns how far the ink is from the design at 95 of 100 places; infinite where there is none.
    fn off_mm(&self) -> f64 {
        let drawn = self.stroke();
        drawn["deviation_mm_p95"].as_f64().unwrap_or(f64::INFINITY)
    }
}

/// Angles within which joints are turned at will between touches.
pub(super) const WIDE: [f64; 5] = [0.1, 0.35, 0.35, 0.7, 1.6];
pub(super) const UPRIGHT: [f64; 5] = [0.05, 0.1, 0.1, 0.2, 0.2];

pub(super) fn truth(scene: &Scene, text: &str, chance: &mut Chance, errors: &Errors) -> String {
    let surface = &scene.surface;
    let at = |at_mm| surface.at(at_mm).point_m;
    let (origin, right, top, middle) = (
        at([0.0, 0.0]),
        at([100.0, 0.0]),
        at([0.0, 100.0]),
        at([50.0, 50.0]),
    );
    let (x, y) = ((right - origin).normalize(), (top - origin).normalize());
    let about = chance.uniform() * TAU;
    let about = Unit::new_normalize(x * about.cos() + y * about.sin());
    let turn = UnitQuaternion::from_axis_angle(&about, errors.sheet_deg.to_radians());
    let moved = chance.direction() * errors.sheet_mm / 1e3;
    let origin = middle + turn * (origin - middle) + moved;
    let tip = scene.pen(0).unwrap().tip_m.coords
        + Vector3::from_fn(|_, _| chance.within(errors.tip_mm / 1e3));
    let text = with_key(text, "origin_m", &vector(&origin.coords));
    let text = with_key(&text, "x_axis", &vector(&(turn * x)));
    let text = with_key(&text, "y_axis", &vector(&(turn * y)));
    with_key(&text, "tip_m", &vector(&tip))
}

pub(super) fn true_arm(text: &str, chance: &mut Chance, errors: &Errors) -> String {
    let mut text = text.to_owned();
    for id in 1..=5 {
        let ticks = chance.within(errors.zeros_deg) / 360.0 * 4096.0;
        let (old, new) = (
            format!("{{ id = {id}, sign = 1, zero_tick = 2048"),
            format!(
                "{{ id = {id}, sign = 1, zero_tick = {:.0}",
                2048.0 + ticks.round()
            ),
        );
        assert!(text.contains(&old), "{old}");
        text = text.replace(&old, &new);
    }
    format!(
        "{text}\n[simulation]\nbacklash_deg = {:?}\n",
        errors.backlash_deg
    )
}

/// Ink that is further off is of no use.
const UNUSABLE_MM: f64 = 1.0;

/// Attempts at a step, which is done again where it is refused.
const TRIES: usize = 4;

/// A step of the guide, which returns its output or the reason of a refusal.
type Step = fn(&mut Practice) -> Result<String, String>;

/// The whole sequence; how far the ink is off before it and after.
fn guided(seed: u64, errors: &Errors) -> (f64, f64) {
    let mut practice = Practice::new(seed, errors);
    let before = practice.off_mm();
    let steps: [(&str, Step); 3] = [
        ("zeros", Practice::zeros),
        ("tool", Practice::tool),
        ("sheet", Practice::sheet),
    ];
    for (what, step) in steps {
        // What is refused is touched again, as it says.
        let mut tries = (0..TRIES).map(|_| step(&mut practice));
        let done = tries.find(Result::is_ok);
        assert!(
            done.is_some(),
            "seed {seed}: {what}: {:?}",
            step(&mut practice)
        );
    }
    (before, practice.off_mm())
}

fn sequence(seeds: std::ops::Range<u64>, errors: &Errors, limit_mm: f64) {
    let mut worst: f64 = 0.0;
    for seed in seeds {
        let (before, after) = guided(seed, errors);
        println!("seed {seed}: {before:.2} mm before, {after:.2} mm after, {limit_mm:.2} allowed");
        assert!(
            before > UNUSABLE_MM.max(after),
            "seed {seed}: {before} mm before"
        );
        worst = worst.max(after);
    }
    assert!(worst <= limit_mm, "{worst} mm; {limit_mm} are allowed");
}

/// Returns what play alone costs on an arm that is known perfectly.
fn floor_mm(backlash_deg: f64) -> f64 {
    let errors = Errors {
        backlash_deg,
        ..NONE
    };
    Practice::new(0, &errors).off_mm()
}

#[test]
fn the_guided_sequence_makes_a_wrong_arm_draw_right() {
    sequence(1..3, &HIDDEN, 1.0);
}

#[test]
#[ignore = "takes minutes: cargo test --test node guided:: -- --ignored"]
fn the_guided_sequence_makes_twenty_wrong_arms_draw_right() {
    sequence(1..21, &HIDDEN, 1.0);
}

#[test]
#[ignore = "takes minutes: cargo test --test node guided:: -- --ignored"]
fn with_play_in_the_gears_it_costs_no_more_than_twice_what_play_costs() {
    let errors = Errors {
        backlash_deg: 1.0,
        ..HIDDEN
    };
    sequence(1..21, &errors, 2.0 * floor_mm(1.0));
}

/// A session of a tool that is right but for what `touches` do wrong.
fn refused(practice: &Practice, cause: &str) {
    let error = practice.accept(&[]).unwrap_err();
    assert!(error.contains(cause), "{cause}: {error}");
    assert!(practice.run(&["calibrate", "discard"]).0 == 0);
}

#[test]
fn sabotaged_tools_are_refused_with_their_cause() {
    let mut practice = Practice::new(7, &NONE);
    let at = Point3::from([0.0, -0.22, 0.05]);
    // 1. Too few tilts.
    for _ in 0..8 {
        practice.touch_at("tool", &[], at, [0.02; 5]);
    }
    practice.touch_at("tool", &["--of", "verify"], at, [0.02; 5]);
    refused(&practice, "tilt");
    // 2. A slipped touch.
    for index in 0..9 {
        let off = if index == 4 { 0.012 } else { 0.0 };
        practice.touch("tool", &[], at + Vector3::new(off, 0.0, off));
    }
    practice.touch("tool", &["--of", "verify"], at);
    refused(&practice, "touch 5 is");
    // 3. Too few touches.
    for _ in 0..3 {
        practice.touch("tool", &[], at);
    }
    refused(&practice, "at least 4)");
    // 4. Never verified.
    for _ in 0..12 {
        practice.touch("tool", &[], at);
    }
    refused(&practice, "not verified");
    // 5. The point moved before the touch that verifies.
    for _ in 0..12 {
        practice.touch("tool", &[], at);
    }
    practice.touch(
        "tool",
        &["--of", "verify"],
        at + Vector3::new(0.0, 0.0, 0.006),
    );
    refused(&practice, "moved between");
}

#[test]
fn a_slipped_touch_is_named_with_its_place_and_taken_again() {
    let mut practice = Practice::new(9, &NONE);
    let at = Point3::from([0.0, -0.22, 0.05]);
    for index in 0..14 {
        let off = if index == 4 { 0.012 } else { 0.0 };
        practice.touch("tool", &[], at + Vector3::new(off, 0.0, off));
    }
    practice.touch("tool", &["--of", "verify"], at);
    let (_, output) = practice.run(&["calibrate", "show"]);
    assert!(output.contains("touch 5 "), "{output}");
    assert!(output.contains("calibrate undo --touch 5`"), "{output}");
    let (code, output) = practice.run(&["calibrate", "undo", "--touch", "99"]);
    assert_eq!((code, output.contains("touch 99")), (1, true), "{output}");
    let (code, output) = practice.run(&["calibrate", "undo", "--touch", "5"]);
    assert_eq!(
        (code, output.contains("1 touch removed")),
        (0, true),
        "{output}"
    );
    practice.touch("tool", &[], at);
    let accepted = practice.accept(&[]);
    assert!(accepted.is_ok(), "{accepted:?}");
}

#[test]
fn sabotaged_sheets_are_refused_with_their_cause() {
    let mut practice = Practice::new(8, &NONE);
    let touch = |practice: &mut Practice, of: &[&str], at_mm: [f64; 2], up_mm: f64| {
        let at = practice.on_sheet(at_mm) + Vector3::z() * (up_mm / 1e3);
        practice.thrice(of, at);
    };
    let rest = [[100.0, 100.0], [50.0, 50.0], [50.0, 0.0], [0.0, 50.0]];
    let with = |practice: &mut Practice, axes: [(&[&str], [f64; 2]); 3], up_mm: [f64; 2]| {
        for (of, at_mm) in axes {
            touch(practice, of, at_mm, 0.0);
        }
        for at_mm in rest {
            touch(practice, &["sheet"], at_mm, up_mm[0]);
        }
        touch(practice, &["verify"], [70.0, 30.0], up_mm[1]);
    };
    let (origin, x, y): (&[&str], &[&str], &[&str]) = (&["origin"], &["x"], &["y"]);
    // 6. Swapped axes.
    with(
        &mut practice,
        [(origin, [0.0, 0.0]), (y, [100.0, 0.0]), (x, [0.0, 100.0])],
        [0.0; 2],
    );
    refused(&practice, "swapped");
    // 7. A wrong scale: the ruler said 90.
    with(
        &mut practice,
        [
            (origin, [0.0, 0.0]),
            (&["x", "--mm", "90"], [100.0, 0.0]),
            (y, [0.0, 100.0]),
        ],
        [0.0; 2],
    );
    refused(&practice, "+x is");
    // 8. The sheet moved half way.
    with(
        &mut practice,
        [(origin, [0.0, 0.0]), (x, [100.0, 0.0]), (y, [0.0, 100.0])],
        [6.0, 6.0],
    );
    refused(&practice, "bent");
    // 9. The sheet moved before the touch that verifies.
    with(
        &mut practice,
        [(origin, [0.0, 0.0]), (x, [100.0, 0.0]), (y, [0.0, 100.0])],
        [0.0, 6.0],
    );
    refused(&practice, "moved between");
    // 10. All on a line.
    for at in [0.0, 20.0, 40.0, 60.0, 80.0] {
        touch(&mut practice, &["sheet"], [at, 50.0], 0.0);
    }
    refused(&practice, "on a line");
    // 11. Each place touched once: nobody knows how well a touch repeats.
    for (of, at_mm) in [
        ("origin", [0.0, 0.0]),
        ("x", [100.0, 0.0]),
        ("y", [0.0, 100.0]),
    ]
    .into_iter()
    .chain(rest.map(|at_mm| ("sheet", at_mm)))
    .chain([("verify", [70.0, 30.0])])
    {
        let at = practice.on_sheet(at_mm);
        practice.touch_at("sheet", &["--of", of], at, UPRIGHT);
    }
    refused(&practice, "origin (touch 1)");
}

#[test]
fn a_stale_tool_is_neither_accepted_nor_drawn_on() {
    let mut practice = Practice::new(9, &NONE);
    // 12. The tool was changed while the sheet was touched.
    practice.sheet_touches();
    let file = practice.bench.path("scenes/default.toml");
    let text = std::fs::read_to_string(&file).unwrap();
    let longer = with_key(&text, "tip_m", "[0.0, -0.043637, -0.010353]");
    std::fs::write(&file, &longer).unwrap();
    refused(&practice, "different tip or ");
    std::fs::write(&file, &text).unwrap();
    // 13. The sheet is good, and then another tool is mounted.
    practice.sheet().unwrap();
    assert!(practice.off_mm() <= 1.0);
    practice.tool().unwrap();
    let drawn = practice.stroke();
    assert_eq!(drawn["code"], "stale_calibration", "{drawn:#}");
    let message = drawn["message"].as_str().unwrap();
    assert!(
        message.contains("steadyhand calibrate touch sheet --scene default"),
        "{message}"
    );
}

/// A step, again and again until it is good enough, as it is refused otherwise.
fn done(practice: &mut Practice, step: Step) {
    let mut tries = (0..TRIES).map(|_| step(practice));
    assert!(tries.any(|tried| tried.is_ok()));
}

#[test]
fn on_a_port_nothing_is_drawn_before_all_of_it_was_calibrated() {
    unless_starved(|| {
        let mut practice = Practice::new(10, &NONE);
        let (_sim, port) = practice.bench.sim(&["--unpaced"]);
        let state = practice.bench.state();
        let bench = Bench::new();
        let drawn = |practice: &Practice| {
            let scenes = practice.bench.path("scenes").display().to_string();
            let here = ["--state", &state, "--port", &port];
            let mut command = std::process::Command::new(support::binary());
            command.args(["--scenes", &scenes, "call", "--json", "stroke"]);
            let output = command
                .args(here)
                .env("XDG_RUNTIME_DIR", bench.path("."))
                .output();
            let drawn: Value = serde_json::from_slice(&output.unwrap().stdout).unwrap();
            let message = drawn["message"].as_str().unwrap().to_owned();
            (
                drawn["code"].as_str().unwrap_or_default().to_owned(),
                message,
            )
        };
        let commands = [
            "steadyhand calibrate joints --arm so101",
            "steadyhand calibrate touch tool --scene default --pen fineliner",
            "steadyhand teach sheet --scene default",
        ];
        let steps: [Step; 3] = [Practice::zeros, Practice::tool, Practice::sheet];
        // All of it was found in practice, which says nothing of an arm on a port.
        for step in steps {
            done(&mut practice, step);
        }
        let (code, message) = drawn(&practice);
        assert_eq!(code, "not_calibrated", "{message}");
        let practised = message.matches("simulated arm");
        assert_eq!(practised.count(), 3, "{message}");
        practice.is_beside_a_node = true;
        for (index, step) in steps.into_iter().enumerate() {
            let (code, message) = drawn(&practice);
            assert_eq!(code, "not_calibrated", "{message}");
            let mut at = 0;
            for (number, command) in commands.iter().enumerate() {
                let found = message.find(command);
                assert_eq!(found.is_some(), number >= index, "{command}: {message}");
                assert!(found.is_none_or(|found| found > at), "{message}");
                at = found.unwrap_or(at);
            }
            assert!(message.contains("; nothing moved"), "{message}");
            let _served = practice.bench.serve(&["--state", &state, "--port", &port]);
            done(&mut practice, step);
        }
        // What is missing now is a person's leave.
        assert_eq!(drawn(&practice).0, "needs_enabling");
    });
}

#[test]
fn a_simulated_arm_draws_and_says_that_nothing_was_calibrated() {
    let bench = Bench::new();
    let (_, drawn) = bench.call(&["stroke", r#"{"scene":"short"}"#]);
    assert_eq!(drawn["success"], true, "{drawn:#}");
    let value = drawn["calibration"].as_str().unwrap();
    assert!(value.contains("simulated arm"), "{value}");
}
