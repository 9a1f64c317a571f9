//! A pattern of ink read by camera, by the commands that people give: play is found, proposed, accepted and made good.
#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::print_stdout,
    clippy::cast_possible_wrap,
    clippy::disallowed_methods,
    reason = "a failing test may panic, and says its figures"
)]

use std::io::Write;
use std::process::Stdio;

use serde_json::Value;
use steadyhand::scene::SceneLibrary;
use steadyhand::sim::ArmSimulator;
use steadyhand::units::JointVector;

use crate::support::person::Person;
use crate::support::{Bench, Served, until};

const CAMERA: &str = include_str!("../support/top_camera.toml");

/// A node with a simulated arm of a model, and a camera over the sheet of scene `tagged`.
struct InkBench(Bench);

impl InkBench {
    fn new(model: &str) -> Self {
        Self::on(Bench::new(), model)
    }

    fn on(bench: Bench, model: &str) -> Self {
        // The sheet lies where it does, whatever the scene's file comes to say of it.
        std::fs::create_dir_all(bench.path("truth")).unwrap();
        let sheet = concat!(env!("CARGO_MANIFEST_DIR"), "/scenes/tagged.toml");
        std::fs::copy(sheet, bench.path("truth/tagged.toml")).unwrap();
        let truth = bench.path("truth");
        let node = format!(
            "[[arms]]\nname = \"arm\"\nmodel = \"{model}\"\nport = \"simulator\"\ntruth = {truth:?}\n{CAMERA}"
        );
        Self(bench.with_file(&node))
    }

    /// The node, which answers a call while its job goes on.
    fn served(&self) -> Served {
        let node = std::fs::read_to_string(self.0.path("node.toml")).unwrap();
        self.0.file(&format!("answer_within_s = 1\n{node}"));
        self.0.serve(&[])
    }

    /// Takes the camera out of the node's file.
    fn without_camera(&self) {
        let node = std::fs::read_to_string(self.0.path("node.toml")).unwrap();
        self.0.file(&node.replace(CAMERA, ""));
    }

    /// `calibrate play` with these lines at its standard input.
    fn answered(&self, lines: &str) -> String {
        let mut command = self.0.command(&["calibrate", "play", "--scene", "tagged"]);
        command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        child
            .stdin
            .take()
            .unwrap()
            .write_all(lines.as_bytes())
            .unwrap();
        let output = child.wait_with_output().unwrap();
        let mut text = String::from_utf8_lossy(&output.stdout).into_owned();
        text.push_str(&String::from_utf8_lossy(&output.stderr));
        text
    }

    fn write_arm(&self, name: &str, figures: &str) {
        for folder in ["scenes/arms", "truth/arms"] {
            let folder = self.0.path(folder);
            std::fs::create_dir_all(&folder).unwrap();
            let file = folder.join(format!("{name}.toml"));
            std::fs::write(file, format!("name = \"{name}\"\n{figures}")).unwrap();
        }
    }

    fn file(&self, name: &str) -> Option<toml::Table> {
        let text = std::fs::read_to_string(self.0.path("scenes").join(name)).ok()?;
        Some(text.parse().unwrap())
    }

    /// Play of each joint as the arm's file has it.
    fn play_deg(&self, arm: &str) -> Option<Vec<f64>> {
        let file = self.file(&format!("arms/{arm}.toml"))?;
        let play = file.get("compensation")?.get("play_deg")?.as_array()?;
        Some(play.iter().map(|deg| deg.as_float().unwrap()).collect())
    }
}

/// Servos that yield more than the figures of their arm say, with friction: 0.12 of full duty for a count in place of 0.166.
const SOFT_SERVOS: &str = "like = \"so101-worn\"
[simulation.servo]
stall_n_m = 3.35
error_gain = 0.12
armature_kg_m2 = 0.0284
back_emf_n_m_s = 0.5486
viscous_n_m_s = 0.0591
friction_n_m = 0.0524
";

/// Play of the base of so101-worn where the sheet lies.
fn true_play_deg() -> f64 {
    let arm = SceneLibrary::new(None).arm("so101-worn").unwrap();
    let gears = ArmSimulator::new(&arm, &JointVector::zeros(arm.dof()));
    let angles = (-10..=10).map(|deg| f64::from(deg).to_radians());
    angles
        .map(|at_rad| gears.play_rad(0, at_rad))
        .sum::<f64>()
        .to_degrees()
        / 21.0
}

#[test]
fn the_play_of_a_worn_arm_is_drawn_read_proposed_accepted_and_written() {
    let bench = InkBench::new("so101-worn");
    let found = bench
        .0
        .call(&["align", r#"{"scene": "tagged", "ink": true}"#])
        .1;
    println!("{}", found["message"]);
    assert_eq!(found["success"], true, "{found:#}");
    assert!(
        bench.play_deg("so101-worn").is_none(),
        "nothing is saved by itself"
    );
    let next = found["next"].as_str().unwrap();
    assert!(next.contains("steadyhand calibrate accept"), "{found:#}");
    let (code, shown) = bench.0.said(&["calibrate", "show"]);
    println!("{shown}");
    assert!(
        code == 0 && shown.contains("shoulder_pan_play_95_deg"),
        "{shown}"
    );
    let (code, output) = bench.0.said(&["calibrate", "accept"]);
    assert_eq!(code, 0, "{output}");
    let play = bench.play_deg("so101-worn").unwrap();
    let truth = true_play_deg();
    println!("found {play:?}, base truly {truth:.3}");
    assert!(
        (play[0] / truth - 1.0).abs() < 0.2,
        "{play:?}, truly {truth:.3}"
    );
    // Gravity keeps these on one side.
    assert!(play[1] < 0.3 && play[2] < 0.3, "{play:?}");
    // With that made good, the next round finds the sheet's place, and no more play.
    let found = bench
        .0
        .call(&["align", r#"{"scene": "tagged", "ink": true}"#])
        .1;
    println!("{}", found["message"]);
    let message = found["message"].as_str().unwrap();
    assert!(
        message.contains("place and") && message.contains("correction"),
        "{found:#}"
    );
    let (code, output) = bench.0.said(&["calibrate", "accept"]);
    println!("{output}");
    assert_eq!(code, 0, "{output}");
    assert_eq!(bench.play_deg("so101-worn").unwrap(), play);
    let sheet = bench.file("tagged.toml").unwrap();
    assert_eq!(
        sheet["sheet"]["correction"]["x_mm"]
            .as_array()
            .unwrap()
            .len(),
        6
    );
    // Servos that cross their play stick less than those that drew the first pattern: later rounds correct it.
    let mut found = bench
        .0
        .call(&["align", r#"{"scene": "tagged", "ink": true}"#])
        .1;
    for _ in 0..2 {
        println!("{}", found["message"]);
        if bench.0.said(&["calibrate", "accept"]).0 == 0 {
            found = bench
                .0
                .call(&["align", r#"{"scene": "tagged", "ink": true}"#])
                .1;
        }
    }
    let (before, after) = (
        ink_off_mm(message),
        ink_off_mm(found["message"].as_str().unwrap()),
    );
    assert!(before > 1.0 && after < 0.4, "{before} mm, then {after} mm");
    let (_, history) = bench.0.said(&["calibrate", "history"]);
    assert!(history.contains("camera"), "{history}");
}

/// Friction leaves the ink of both directions apart, as play does; the goals lead against it.
#[test]
fn the_friction_of_an_arm_without_play_is_no_play() {
    let bench = InkBench::new("so101");
    let found = bench
        .0
        .call(&["align", r#"{"scene": "tagged", "ink": true}"#])
        .1;
    println!("{}", found["message"]);
    let message = found["message"].as_str().unwrap();
    let off_mm = ink_off_mm(message);
    assert!(off_mm < 0.2, "{off_mm} mm");
    let (code, shown) = bench.0.said(&["calibrate", "show"]);
    assert!(
        code != 0 && shown.contains("steadyhand calibrate touch tool"),
        "{shown}"
    );
}

#[test]
fn an_arm_that_feels_a_sheet_says_first_how_it_sags() {
    let bench = InkBench::new("so101-soft");
    bench.write_arm("so101-soft", SOFT_SERVOS);
    let touch = || {
        bench
            .0
            .call(&["align", r#"{"scene": "tagged", "touch": true}"#])
            .1
    };
    let sagging = touch();
    println!("{}", sagging["message"]);
    let message = sagging["message"].as_str().unwrap();
    assert!(message.contains("shoulder_lift sags by 1."), "{message}");
    assert_eq!(sagging["points"], serde_json::json!([]));
    let (_, shown) = bench.0.said(&["calibrate", "show"]);
    assert!(shown.contains("sag of arm so101-soft"), "{shown}");
    let (code, accepted) = bench.0.said(&["calibrate", "accept"]);
    assert_eq!(code, 0, "{accepted}");
    let felt = touch();
    println!("{}", felt["message"]);
    assert_eq!(felt["points"].as_array().map(Vec::len), Some(6), "{felt:#}");
    let file = bench.file("arms/so101-soft.toml").unwrap();
    let known = &file["compensation"];
    let [play, sag] = ["play_deg", "sag_deg_per_n_m"].map(|key| {
        let all = known[key].as_array().unwrap();
        all.iter()
            .map(|of| of.as_float().unwrap())
            .collect::<Vec<_>>()
    });
    assert_eq!(play, [0.0; 5], "play does not show at rest");
    // By 1 / 0.12 in place of 1 / 0.166 it yields 1.2° more, and what the encoders made good has its friction in it.
    assert!(
        (0.9..1.8).contains(&sag[1]) && sag[0] == 0.0 && sag[4] == 0.0,
        "{sag:?}"
    );
}

/// Returns how far the ink is from the plan, as a result says it.
fn ink_off_mm(message: &str) -> f64 {
    let (_, off) = message.split_once("the ink is ").unwrap();
    off.split_once(" mm").unwrap().0.parse().unwrap()
}

/// Offsets of the pattern's readings, a mean for each line, from the proposal that a camera made.
fn offsets_of_lines(bench: &InkBench) -> std::collections::BTreeMap<i64, f64> {
    let text = std::fs::read_to_string(bench.0.path("state/calibration/proposal.toml")).unwrap();
    let proposal: toml::Table = text.parse().unwrap();
    let ink = proposal["ink"].as_table().unwrap();
    let mut sums = std::collections::BTreeMap::<i64, (f64, f64)>::new();
    for reading in ink["readings"].as_array().unwrap() {
        let place = usize::try_from(reading["place"].as_integer().unwrap()).unwrap();
        let leg = ink["places"][place]["leg"].as_integer().unwrap();
        let at = ink["places"][place]["at_mm"].as_array().unwrap();
        // The middle of a side, where a person measures.
        let off_middle = at.iter().map(|mm| {
            let mm = mm.as_float().unwrap();
            [15.0, 28.0, 50.0, 72.0, 85.0]
                .iter()
                .map(|of: &f64| (mm - of).abs())
                .fold(f64::MAX, f64::min)
        });
        if off_middle.fold(f64::MAX, f64::min) < 1.1 {
            let across = reading["across"].as_array().unwrap();
            let sense: f64 = across.iter().map(|of| of.as_float().unwrap()).sum();
            let (sum, count) = sums.entry(leg).or_default();
            *sum += sense * reading["off_mm"].as_float().unwrap();
            *count += 1.0;
        }
    }
    sums.into_iter()
        .map(|(leg, (sum, count))| (leg, sum / count))
        .collect()
}

#[test]
fn gaps_that_a_person_measures_give_the_same_play_as_the_camera() {
    let bench = InkBench::new("so101-worn");
    let preview = bench
        .0
        .call(&["align", r#"{"scene": "tagged", "ink": true}"#])
        .1;
    assert_eq!(preview["success"], true, "{preview:#}");
    let lines = offsets_of_lines(&bench);
    let (code, output) = bench.0.said(&["calibrate", "accept"]);
    assert_eq!(code, 0, "{output}");
    let by_camera = bench.play_deg("so101-worn").unwrap();
    // The same arm again, without a camera.
    std::fs::remove_file(bench.0.path("scenes/arms/so101-worn.toml")).unwrap();
    bench.without_camera();
    let drawn = bench
        .0
        .call(&["align", r#"{"scene": "tagged", "ink": true}"#])
        .1;
    assert_eq!(drawn["success"], true, "{drawn:#}");
    assert!(
        drawn["next"]
            .as_str()
            .unwrap()
            .contains("calibrate play --scene tagged"),
        "{drawn:#}"
    );
    // Rounds of the squares: their pieces to the left, right, below and above.
    let pieces = [[3, 1, 0, 2], [2, 0, 1, 3], [0, 2, 3, 1], [1, 3, 2, 0]];
    let mut answers: Vec<Option<String>> = Vec::new();
    for square in 0..9 {
        let of = pieces[square % 4].map(|piece| 16 * square as i64 + piece);
        let off = |side: usize| lines.get(&of[side]).copied();
        for (from, to) in [(0, 1), (2, 3)] {
            let gap = off(to).zip(off(from)).map(|(to, from)| 10.0 + to - from);
            answers.push(gap.map(|mm| format!("{mm:.1}")));
        }
    }
    println!("{answers:?}");
    let lines_of = |answers: &[Option<String>]| -> String {
        let line = |mm: &Option<String>| mm.clone().unwrap_or_default() + "\n";
        answers.iter().map(line).collect()
    };
    // Some of it, then q; the same command goes on, and asks again for what was skipped.
    let (first, rest) = answers.split_at(6);
    let left = bench.answered(&format!("{}q\n", lines_of(first)));
    assert!(left.contains("`steadyhand calibrate discard`"), "{left}");
    let skipped: Vec<_> = first.iter().filter(|mm| mm.is_none()).cloned().collect();
    let rest = lines_of(&skipped) + &lines_of(rest);
    let output = bench.answered(&rest);
    println!("{output}");
    let (code, output) = bench.0.said(&["calibrate", "accept"]);
    assert_eq!(code, 0, "{output}");
    let by_hand = bench.play_deg("so101-worn").unwrap();
    println!("camera {by_camera:?}, hand {by_hand:?}");
    assert!(
        (by_hand[0] - by_camera[0]).abs() < 0.2,
        "{by_hand:?} {by_camera:?}"
    );
}

/// A node whose arm a person enables draws for `calibrate play`, longer than a call is answered within; `q` leaves, and the same command
/// goes on without drawing again.
#[test]
fn a_node_that_serves_draws_the_pattern_and_its_gaps_are_asked_for() {
    let bench = InkBench::on(Bench::at_test_rate(), "so101-worn");
    bench.without_camera();
    let _served = bench.served();
    assert_eq!(bench.0.said(&["disable"]).0, 0);
    let refused = bench.answered("");
    assert!(
        refused.contains("steadyhand enable") && !refused.contains("gap 1"),
        "{refused}"
    );
    let (code, output) = bench
        .0
        .said(&["enable", "--scene", "tagged", "--for", "30m"]);
    assert_eq!(code, 0, "{output}");
    let drawn = bench.answered("10.0\n9.9\nq\n");
    println!("{drawn}");
    assert!(drawn.contains("`steadyhand calibrate discard`"), "{drawn}");
    assert!(drawn.contains("measures 18 gaps"), "{drawn}");
    for once in [
        "|<-  1 ->|",
        "on node ",
        "gap 1: width of square 1",
        "gap 3:",
    ] {
        assert_eq!(drawn.matches(once).count(), 1, "{once}: {drawn}");
    }
    let second_output = bench.answered(&"10.0\n".repeat(16));
    println!("{second_output}");
    assert!(second_output.contains("|<-  1 ->|"), "{second_output}");
    assert!(!second_output.contains("gap 2:") && !second_output.contains("measures 18 gaps"));
    assert!(
        second_output.contains("shoulder_pan_play_95_deg"),
        "{second_output}"
    );
    assert!(second_output.contains("verdict: usable"), "{second_output}");
    let (_, jobs) = bench.0.said(&["jobs", "--json"]);
    let jobs: Value = serde_json::from_str(&jobs[..=jobs.rfind(']').unwrap()]).unwrap();
    let done = |job: &&Value| job["tool"] == "align" && job["state"] == "reached";
    let aligned: Vec<&Value> = jobs.as_array().unwrap().iter().filter(done).collect();
    assert_eq!(aligned.len(), 1, "{jobs:#}");
    assert_eq!(aligned[0]["caller"], "operator", "{jobs:#}");
}

#[test]
fn where_a_camera_sees_it_a_served_pattern_is_read_unasked() {
    let bench = InkBench::on(Bench::at_test_rate(), "so101-worn");
    let _served = bench.served();
    let output = bench.answered("");
    println!("{output}");
    assert!(output.contains("steadyhand calibrate accept"), "{output}");
    assert!(!output.contains("gap 1"), "{output}");
    let (code, output) = bench.0.said(&["calibrate", "accept"]);
    assert_eq!(code, 0, "{output}");
    let play = bench.play_deg("so101-worn").unwrap();
    let truth = true_play_deg();
    assert!((play[0] / truth - 1.0).abs() < 0.2, "{play:?}, {truth:.3}");
}

#[test]
fn ctrl_c_stops_a_pattern_that_is_drawn_and_says_so() {
    let bench = InkBench::on(Bench::new(), "so101-worn");
    let _served = bench.served();
    let mut person = Person::at(&bench.0, &["calibrate", "play", "--scene", "tagged"]);
    person.sees("Ctrl-C stops the arm");
    until(
        "moving",
        || bench.0.said(&["status"]).1,
        |status| status.contains("moving"),
    );
    person.interrupts();
    person.sees("arm: stopped");
    person.ends_with(1);
    let (_, status) = bench.0.said(&["status"]);
    assert!(status.contains("align, stopped"), "{status}");
}
