//! Tests calibration at a terminal: a person reads, answers, answers wrongly, presses Enter and Ctrl-C.

use steadyhand::arm::ArmModel;
use steadyhand::kin::{IkGoal, ToolTip};
use steadyhand::scene::{Scene, SceneLibrary};
use steadyhand::sim::{ArmSimulator, SimulatedFault};
use steadyhand::units::JointVector;

use super::support::person::{Person, plugged_in};
use super::support::{unless_starved, until};
use super::{Bench, Served, jog, run_at_node, stance, tip_mm, until_it_is};

/// The terminal shows again what was there before.
const LEAVES_ALTERNATE_SCREEN: &str = "\u{1b}[?1049l";

/// The text that ends a question.
const ASKED: &str = "Type `yes` to continue:";

/// An arm on a port, its node, and a hand that moves it.
struct Table {
    bench: Bench,
    sim: ArmSimulator,
    scene: std::sync::Arc<Scene>,
    _served: Served,
}

impl Table {
    fn new() -> Self {
        let bench = Bench::new();
        let library = SceneLibrary::new(Some(bench.path("scenes")));
        let scene = library.scene("short", None).unwrap();
        let sim = ArmSimulator::new(&scene.arm, &scene.rest_rad);
        sim.set_paced(false);
        let port = plugged_in(sim.clone());
        let state = bench.state();
        let here = ["--port", &port, "--state", &state, "--enable", "short"];
        let served = bench.serve(&here);
        Self {
            bench,
            sim,
            scene,
            _served: served,
        }
    }

    fn arm(&self) -> &ArmModel {
        &self.scene.arm
    }

    fn turn(&self, joint: usize, to_rad: f64) {
        assert!(self.sim.turn_by_hand(joint, to_rad), "joint {joint} holds");
    }

    /// All joints, until the node has read them.
    fn stand(&self, joints_rad: &JointVector) {
        let all = joints_rad.iter().enumerate();
        all.for_each(|(joint, q)| self.turn(joint, *q));
        let is_read = |read: &serde_json::Value| {
            let mut all = joints_rad.iter().enumerate();
            all.all(|(joint, q)| {
                let deg = read["joints"][joint]["deg"].as_f64().unwrap();
                (deg - q.to_degrees()).abs() < 0.2
            })
        };
        until("read", || stance(&self.bench), is_read);
    }

    fn file(&self) -> std::path::PathBuf {
        self.bench.path("scenes/arms/so101.toml")
    }

    /// Brings every joint to its middle pose, some counts beside the file's zero, and says so.
    fn begin(&self) -> Person {
        let mut person = Person::at(&self.bench, &["calibrate", "joints"]);
        person.sees("to its zero");
        (0..5).for_each(|joint| self.turn(joint, 0.02));
        person.sees_redrawn(2);
        person.types("\n");
        person
    }

    /// Moves a joint from one end to the other, as far as the file knows it, or less far.
    fn move_through(&self, person: &mut Person, joint: usize, fraction: f64) {
        let limits = &self.arm().limits;
        let [low, high] = [&limits.lower_rad, &limits.upper_rad].map(|all| all.get(joint).unwrap());
        for to_rad in [*low, 0.0, *high] {
            self.turn(joint, to_rad * fraction);
            person.sees_redrawn(2);
        }
    }
}

#[test]
fn joints_are_moved_by_hand_and_saved_once_somebody_says_yes() {
    unless_starved(|| {
        let table = Table::new();
        // It holds, so that somebody must hold it first.
        let (code, printed) = jog(&table.bench, "z+10");
        assert_eq!(code, 0, "{printed}");
        for no in ["\n", "\u{3}"] {
            let mut person = Person::at(&table.bench, &["calibrate", "joints"]);
            person.sees("the arm drops: hold the arm.");
            person.sees(ASKED);
            // Neither a whole yes nor a no: it is asked again.
            person.types("y\n");
            person.sees("or press Enter to cancel:");
            person.types(no);
            person.sees("torque on");
            person.ends_with(1);
            assert_eq!(stance(&table.bench)["energised"], true);
        }
        assert!(!table.sim.turn_by_hand(1, 0.0), "it holds");
        let mut person = Person::at(&table.bench, &["calibrate", "joints"]);
        person.sees(ASKED);
        person.types("yes\n");
        person.sees("torque is off");
        person.sees("to its zero");
        (0..5).for_each(|joint| table.turn(joint, 0.02));
        person.sees_redrawn(2);
        person.types("\n");
        for joint in 0..5 {
            let name = table.arm().joint_name(joint);
            person.sees(&format!("move {name} alone "));
            table.move_through(&mut person, joint, 1.0);
            person.types("\n");
        }
        person.sees("file?");
        person.sees(ASKED);
        person.types("yes\n");
        person.sees("calibration 1");
        person.sees("accepts only");
        person.ends_with(0);
        let text = std::fs::read_to_string(table.file()).unwrap();
        assert!(text.contains("zero_tick = 2061"), "{text}");
        assert!(text.contains("[identity]"), "{text}");
    });
}

#[test]
fn a_joint_that_was_not_moved_through_its_range_is_moved_again_at_once() {
    unless_starved(|| {
        let table = Table::new();
        let mut person = table.begin();
        let moved = |person: &mut Person, asked: usize, joint: usize, fraction: f64| {
            person.sees(&format!("move {} alone ", table.arm().joint_name(asked)));
            table.move_through(person, joint, fraction);
            person.types("\n");
        };
        moved(&mut person, 0, 0, 1.0);
        moved(&mut person, 1, 1, 0.05);
        person.sees("redo: shoulder_lift moved by");
        moved(&mut person, 1, 1, 1.0);
        moved(&mut person, 2, 3, 1.0);
        person.sees("swapped");
        person.types("q\n");
        person.sees("you quit");
        person.ends_with(1);
        assert!(!table.file().exists());
    });
}

#[test]
fn only_yes_saves_and_any_other_answer_says_how_the_arm_is() {
    unless_starved(|| {
        let table = Table::new();
        let mut person = table.begin();
        for joint in 0..5 {
            person.sees(" from one end");
            table.move_through(&mut person, joint, 1.0);
            person.types("\n");
        }
        person.sees(ASKED);
        person.types("maybe\n");
        person.sees("is limp");
        person.ends_with(1);
        for leaves in ["\u{3}", "q\n"] {
            let mut person = table.begin();
            person.sees("move shoulder_pan alone ");
            person.types("next\n");
            person.sees("\"next\" was ignored");
            person.sees_redrawn(1);
            person.sees("move shoulder_pan alone ");
            person.types(leaves);
            person.sees("is limp");
            person.ends_with(1);
        }
        assert!(!table.file().exists());
        assert_eq!(stance(&table.bench)["energised"], false);
    });
}

#[test]
fn poses_caps_and_the_calibrator_are_asked_for() {
    unless_starved(|| {
        let table = Table::new();
        table.stand(&JointVector::from_slice(&[0.1, -0.3, 0.4, 1.2, 0.05]));
        let path = table.bench.path("scenes/short.toml");
        let cap = "\n[[inks]]\nname = \"black\"\nrim_m = [0.12, -0.2, 0.01]\ndepth_mm = 8.0\ndip_every_mm = 100.0\n";
        let text = std::fs::read_to_string(&path).unwrap() + cap;
        std::fs::write(&path, &text).unwrap();
        for (what, key) in [
            (&["pose", "ready"][..], "ready_rad"),
            (&["cap", "black", "--override"], "rim_m"),
            (&["calibrator"], "calibrator_m"),
        ] {
            let args = [&["teach"], what, &["--scene", "short"]].concat();
            let before = std::fs::read_to_string(&path).unwrap();
            for (answer, expected, code) in [
                ("no\n", "nothing was written", 1),
                ("yes\n", "accepted as calibration", 0),
            ] {
                assert_eq!(std::fs::read_to_string(&path).unwrap(), before);
                let mut person = Person::at(&table.bench, &args);
                person.sees(&format!("{key}: old ["));
                person.sees("difference");
                person.sees(ASKED);
                person.types(answer);
                person.sees(expected);
                person.ends_with(code);
            }
            assert_ne!(std::fs::read_to_string(&path).unwrap(), before, "{key}");
        }
    });
}

/// Nobody else waits for a person who thinks, and what that person saw is what is written.
#[test]
fn a_question_that_is_open_keeps_no_other_command_waiting() {
    unless_starved(|| {
        let table = Table::new();
        table.stand(&JointVector::from_slice(&[0.1, -0.3, 0.4, 1.2, 0.05]));
        let pose = ["teach", "pose", "ready", "--scene", "short"];
        let mut person = Person::at(&table.bench, &pose);
        person.sees(ASKED);
        let yes = table.bench.run(&[&pose[..], &["--yes"]].concat());
        assert!(yes.status.success(), "{yes:?}");
        person.types("yes\n");
        person.sees("not taught: the files changed");
        person.ends_with(1);
    });
}

#[test]
fn r_before_the_first_touch_is_answered_and_the_round_goes_on() {
    unless_starved(|| {
        let table = Table::new();
        let args = ["teach", "sheet", "--scene", "short"];
        let mut person = Person::at(&table.bench, &args);
        for again in ["r\n", "r 3\n"] {
            person.sees("(touch 1 of 3)");
            person.types(again);
            person.sees("no touch to");
        }
        person.sees("(touch 1 of 3)");
        person.types("q\n");
        person.ends_with(1);
    });
}

/// One late reading ended the guide.
#[test]
fn a_touch_of_an_arm_that_is_not_read_is_asked_for_again() {
    unless_starved(|| {
        let table = Table::new();
        let mut person = Person::at(&table.bench, &["teach", "sheet", "--scene", "short"]);
        person.sees("(touch 1 of 3)");
        table.sim.break_it(SimulatedFault::Silence(6));
        std::thread::sleep(std::time::Duration::from_millis(500));
        person.types("\n");
        person.sees("last read");
        person.sees("(touch 1 of 3)");
        table.sim.break_it(SimulatedFault::Speak(6));
        person.types("q\n");
        person.ends_with(1);
    });
}

/// Joints with the tip at a place of the sheet.
fn on_sheet(scene: &Scene, at_mm: [f64; 2]) -> JointVector {
    let pen = scene.pen(0).unwrap();
    let tip = ToolTip {
        point_m: pen.tip_m,
        axis: pen.axis,
    };
    let goal = IkGoal::PointThenAxis {
        point_m: scene.surface.at(at_mm).point_m,
        axis: scene.arm.chain.tip(&scene.ready_rad, &tip).1,
    };
    let found = scene.arm.chain.solve(&tip, &goal, &scene.ready_rad);
    found.unwrap().q_rad
}

#[test]
fn a_sheet_is_taught_touch_by_touch_and_ctrl_c_keeps_them() {
    unless_starved(|| {
        let table = Table::new();
        let teach = ["teach", "sheet", "--scene", "short"];
        let mut person = Person::at(&table.bench, &teach);
        person.sees(
            "bring the tip to the sheet's lower left corner, then press Enter (touch 1 of 3)",
        );
        person.types("\n");
        person.sees("(touch 2 of 3)");
        person.interrupts();
        person.sees("are kept");
        person.sees("is limp");
        person.ends_with(1);
        assert_eq!(stance(&table.bench)["energised"], false);
        let discarded = table.bench.run(&["calibrate", "discard"]);
        assert!(discarded.status.success(), "{discarded:?}");
        let mut person = Person::at(&table.bench, &teach);
        for at_mm in [
            [0.0, 0.0],
            [100.0, 0.0],
            [0.0, 100.0],
            [100.0, 100.0],
            [50.0, 50.0],
            [50.0, 0.0],
            [70.0, 30.0],
        ] {
            let joints = on_sheet(&table.scene, at_mm);
            for time in 1..=3 {
                person.sees(&format!("(touch {time} of 3)"));
                table.stand(&joints);
                person.types("\n");
            }
        }
        person.sees("verdict: ");
        person.sees(ASKED);
        person.types("yes\n");
        person.sees("calibration 1");
        person.ends_with(0);
    });
}

fn wait_until_stopped(bench: &Bench) {
    let denied = || stance(bench)["denied"].to_string();
    until("denied for a stop", denied, |reason| {
        reason.contains("stop")
    });
}

/// A view in which a step of ten millimetres has begun.
fn jogging(bench: &Bench) -> Person {
    let mut person = Person::at(bench, &["jog", "--scene", "short"]);
    // Blanks are not drawn: words come one by one.
    person.sees("space: stop");
    person.types("ssz");
    until_it_is(bench, "moving");
    person
}

#[test]
fn ctrl_c_in_the_view_stops_the_step_and_leaves() {
    unless_starved(|| {
        let bench = Bench::new();
        let _served = bench.serve(&[]);
        let before = tip_mm(&bench)[2];
        let mut person = jogging(&bench);
        // The terminal is raw: Ctrl-C is a key.
        person.types("\u{3}");
        person.sees("stopped");
        person.ends_with(0);
        assert!(person.transcript().contains(LEAVES_ALTERNATE_SCREEN));
        wait_until_stopped(&bench);
        assert!(tip_mm(&bench)[2] - before < 11.0);
    });
}

#[test]
fn ctrl_c_stops_a_self_test_and_says_so() {
    unless_starved(|| {
        let bench = Bench::new();
        let _served = bench.serve(&[]);
        let mut person = Person::at(&bench, &["selftest", "--scene", "short"]);
        until_it_is(&bench, "moving");
        let status = bench.run(&["status"]).stdout;
        let status = String::from_utf8(status).unwrap();
        assert!(status.contains("selftest, moving"), "{status}");
        assert!(!status.contains(" of 0"), "{status}");
        person.interrupts();
        person.sees("arm: stopped");
        person.sees("another caller stopped it");
        person.ends_with(1);
        wait_until_stopped(&bench);
    });
}

#[test]
fn space_stops_and_the_view_stays_until_q() {
    unless_starved(|| {
        let bench = Bench::new();
        let _served = bench.serve(&[]);
        let mut person = jogging(&bench);
        person.types(" ");
        wait_until_stopped(&bench);
        person.types("q");
        person.ends_with(0);
    });
}

#[test]
fn an_arm_let_go_of_in_the_view_is_guided_and_its_poses_kept() {
    unless_starved(|| {
        let table = Table::new();
        let (code, printed) = jog(&table.bench, "z+10");
        assert_eq!(code, 0, "{printed}");
        let file = table.bench.path("poses.toml");
        let args = ["jog", "--scene", "short", "--poses", file.to_str().unwrap()];
        let mut person = Person::at(&table.bench, &args);
        person.sees("space: stop");
        person.types("g");
        person.sees("hold");
        assert!(
            !table.sim.turn_by_hand(1, 0.0),
            "it holds until the second key"
        );
        person.types("y");
        let energised = || stance(&table.bench)["energised"].clone();
        until("let go of", energised, |energised| *energised != true);
        let pose = [0.3, -0.4, 0.5, 1.0, 0.1];
        table.stand(&JointVector::from_slice(&pose));
        // The view looks ten times a second: what it keeps first may be how the arm was.
        let is_kept = |text: &str| {
            let line = text.lines().last().unwrap_or_default();
            let kept: toml::Table = line.parse().unwrap();
            let Some(joints) = kept.get("pose_rad").and_then(toml::Value::as_array) else {
                return false;
            };
            let near = |(q, to): (&toml::Value, f64)| (q.as_float().unwrap() - to).abs() < 0.01;
            joints.len() == pose.len() && joints.iter().zip(pose).all(near)
        };
        let keep = || {
            person.types("p");
            std::thread::sleep(std::time::Duration::from_millis(150));
            std::fs::read_to_string(&file).unwrap_or_default()
        };
        until("kept", keep, |text| is_kept(text));
        person.types("q");
        person.ends_with(0);
    });
}

#[test]
fn a_view_that_is_killed_in_the_middle_of_a_step_stops_the_arm() {
    unless_starved(|| {
        let bench = Bench::new();
        let _served = bench.serve(&[]);
        let person = jogging(&bench);
        person.program.signal(rustix::process::Signal::KILL);
        wait_until_stopped(&bench);
    });
}

/// The cable of one servo is loose: where the other joints were before says nothing of where a hand has brought them.
#[test]
fn an_arm_that_is_not_read_is_not_calibrated() {
    unless_starved(|| {
        let table = Table::new();
        table.sim.break_it(SimulatedFault::Silence(6));
        std::thread::sleep(std::time::Duration::from_millis(500));
        let touch = "calibrate touch sheet --scene short --of origin";
        for command in [touch, "teach pose ready --scene short --yes"] {
            let words: Vec<&str> = command.split(' ').collect();
            let (done, printed) = run_at_node(&table.bench, &words);
            assert!(!done && printed.contains("last read"), "{printed}");
        }
        let mut person = Person::at(&table.bench, &["calibrate", "joints"]);
        person.sees("to its zero");
        person.sees("last read");
        person.types("\n");
        person.sees("was ignored");
        table.sim.break_it(SimulatedFault::Speak(6));
        (0..5).for_each(|joint| table.turn(joint, 0.02));
        person.sees_redrawn(4);
        person.types("\n");
        let first = table.arm().joint_name(0);
        person.sees(&format!("move {first} alone "));
        person.interrupts();
        person.sees("nothing was saved");
        person.ends_with(1);
    });
}

/// `status` answers with the text of `sense`.
#[test]
fn what_was_read_of_an_arm_that_is_not_read_now_says_how_old_it_is() {
    unless_starved(|| {
        let table = Table::new();
        let (code, printed) = jog(&table.bench, "z+10");
        assert_eq!(code, 0, "{printed}");
        let (_, printed) = run_at_node(&table.bench, &["status"]);
        assert!(!printed.contains("last read"), "{printed}");
        table.sim.break_it(SimulatedFault::Silence(2));
        std::thread::sleep(std::time::Duration::from_millis(500));
        let (_, printed) = run_at_node(&table.bench, &["torque-off", "--yes"]);
        let (_, status) = run_at_node(&table.bench, &["status"]);
        let is_old = status.contains("cannot be read");
        assert!(is_old, "{printed}\n{status}");
    });
}
