//! `steadyhand call` with an arm of its own, interrupted: once, twice, and told to end. However it
//! ends, the journal says how, and nobody has to ask at the next start.
#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::disallowed_methods,
    reason = "a failing test may panic"
)]

use crate::support;
use std::process::{Child, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use rustix::process::Signal;
use serde_json::Value;
use steadyhand::scene::SceneLibrary;
use support::wire::Trace;
use support::{Bench, PATIENCE, Running, on_port, unless_starved, until};

/// Long enough to be interrupted in its middle.
const LINES: &str =
    "[[[0.0, 0.0], [80.0, 0.0], [80.0, 20.0], [0.0, 20.0], [0.0, 40.0], [80.0, 40.0]]]";

struct Drawing {
    bench: Bench,
    caller: Running,
    port: String,
    _sim: Running,
}

impl Drawing {
    /// A call whose pen is on the paper. Where the machine is too busy for its arm, the call ends with a fault, and another is
    /// made beside another arm.
    fn start() -> Self {
        let mut attempts = std::iter::repeat_with(Self::attempt).take(5);
        attempts.find_map(|drawing| drawing).unwrap()
    }

    fn attempt() -> Option<Self> {
        let bench = Bench::new();
        bench.scene("long", &support::scene("long", LINES));
        let trace = bench.path("wire.txt");
        let (sim, port) = bench.sim(&["--scene", "long", "--trace", trace.to_str().unwrap()]);
        let caller = call(&bench, &port);
        let mut drawing = Self {
            caller: Running(caller),
            bench,
            port,
            _sim: sim,
        };
        drawing.comes_near().then_some(drawing)
    }

    fn trace(&self) -> Trace {
        Trace(self.bench.path("wire.txt"))
    }

    /// Waits until the pen is on the paper; false if the call ends before.
    fn comes_near(&mut self) -> bool {
        let began = Instant::now();
        while self.trace().mark() == 0 || self.trace().stand(0).height_mm > 2.0 {
            assert!(began.elapsed() < PATIENCE, "it never drew");
            if self.caller.0.try_wait().unwrap().is_some() {
                return false;
            }
            sleep(Duration::from_millis(50));
        }
        true
    }

    fn state(&self) -> String {
        self.bench.state()
    }

    /// Returns what the journal says of a job.
    fn job(&self, id: &str) -> Value {
        let output = self
            .bench
            .run(&["jobs", id, "--json", "--state", &self.state()]);
        serde_json::from_slice(&output.stdout).unwrap()
    }

    fn is_latched(&self) -> bool {
        let kept = std::fs::read_dir(self.bench.path("state"))
            .unwrap()
            .flatten();
        let mut names = kept.map(|entry| entry.file_name().to_string_lossy().into_owned());
        names.any(|name| name.starts_with("emergency-stop-"))
    }

    /// Degrees of each joint, as a process of its own reads them.
    fn is_at_rest(&self) -> bool {
        let other = self.bench.path("other").display().to_string();
        let here = ["--state", &other, "--port", &self.port, "sense"];
        let (_, sensed) = self.bench.call(&here);
        let scenes = SceneLibrary::new(Some(self.bench.path("scenes")));
        let rest = scenes.scene("long", None).unwrap().rest_rad;
        let joints = sensed["joints"].as_array().unwrap();
        let angles = joints
            .iter()
            .map(|joint| joint["angle_deg"].as_f64().unwrap());
        angles
            .zip(rest.iter())
            .all(|(is, rest)| (is - rest.to_degrees()).abs() < 2.0)
    }
}

fn call(bench: &Bench, port: &str) -> Child {
    let state = bench.state();
    let args = ["call", "stroke", r#"{"scene":"long"}"#, "--enable", "long"];
    let here = on_port(port, &state);
    let mut command = bench.command(&[&args[..], &here].concat());
    command.stdout(Stdio::null()).stderr(Stdio::null());
    command.spawn().unwrap()
}

#[test]
fn an_interrupted_call_ends_in_its_journal() {
    unless_starved(|| {
        let mut drawing = Drawing::start();
        let mark = drawing.trace().mark();
        drawing.caller.signal(Signal::INT);
        assert_eq!(drawing.caller.exit_code(), Some(1));
        let job = drawing.job("job-1");
        assert_eq!(
            (&job["state"], &job["interrupted"]),
            (&"stopped".into(), &false.into())
        );
        assert!(!drawing.is_latched());
        drawing.trace().was_stopped(mark);
    });
}

/// Wherever the second one comes: while the arm brakes, stands, or is written about.
#[test]
fn a_second_interrupt_of_a_call_is_an_emergency_stop_and_in_its_journal() {
    unless_starved(|| {
        for pause in [20, 150, 300] {
            let mut drawing = Drawing::start();
            drawing.caller.signal(Signal::INT);
            sleep(Duration::from_millis(pause));
            let lives = drawing.caller.0.try_wait().unwrap().is_none();
            if lives {
                drawing.caller.signal(Signal::INT);
            }
            let code = drawing.caller.exit_code();
            assert_eq!(code, Some(1), "after {pause} ms");
            let job = drawing.job("job-1");
            assert_eq!(
                (&job["state"], &job["interrupted"]),
                (&"stopped".into(), &false.into()),
                "after {pause} ms: {job:#}"
            );
            // Later it may have been on its way out already.
            if pause == 20 && lives {
                assert!(drawing.is_latched());
            }
        }
    });
}

#[test]
fn a_call_that_is_told_to_end_parks_its_arm() {
    unless_starved(|| {
        let mut drawing = Drawing::start();
        drawing.caller.signal(Signal::TERM);
        assert_eq!(drawing.caller.exit_code(), Some(1));
        assert!(drawing.is_at_rest());
        assert_eq!(drawing.job("job-1")["state"], "stopped");
        let parked = drawing.job("job-2");
        assert_eq!(
            (&parked["tool"], &parked["state"]),
            (&"park".into(), &"reached".into()),
            "{parked:#}"
        );
    });
}

#[test]
fn practice_neither_resumes_nor_settles_what_an_arm_on_a_port_left() {
    unless_starved(|| {
        let mut drawing = Drawing::start();
        drawing.caller.0.kill().unwrap();
        drawing.caller.0.wait().unwrap();
        let (state, bench) = (drawing.state(), &drawing.bench);
        let (code, said) = bench.said(&["draw", "--resume", "--yes", "--state", &state]);
        assert_ne!(code, 0, "{said}");
        for part in [
            "job-1",
            "simulates that",
            "`steadyhand --port PORT draw --resume`",
        ] {
            assert!(said.contains(part), "{part}: {said}");
        }
        let (_, reset) = bench.call(&["reset", "--state", &state]);
        assert_eq!(reset["success"], true, "{reset:#}");
        let enabled = ["--enable", "short", "--state", &state];
        let practised = [&["stroke", r#"{"scene":"short"}"#][..], &enabled].concat();
        let (_, practised) = bench.call(&practised);
        assert_eq!(practised["success"], true, "{practised:#}");
        assert_eq!(drawing.job("job-1")["settled_by"], "");
        let (_, listed) = bench.said(&["jobs", "--state", &state]);
        assert!(listed.contains("pen may"), "{listed}");
        let here = on_port(&drawing.port, &state);
        let (_, sensed) = bench.call(&[&["sense"][..], &here].concat());
        assert_eq!(sensed["unfinished"]["job"], "job-1", "{sensed:#}");
        let message = sensed["message"].as_str().unwrap();
        assert!(message.contains("pen may"), "{message}");
    });
}

#[test]
fn an_arm_on_a_port_does_not_go_on_with_what_was_left_in_practice() {
    unless_starved(|| {
        let bench = Bench::new();
        bench.scene("long", &support::scene("long", LINES));
        let state = bench.state();
        let mut served = bench.serve(&["--state", &state]);
        let stroke = [
            "call",
            "stroke",
            r#"{"scene":"long"}"#,
            "--node",
            &served.url,
        ];
        let mut caller = Running(bench.command(&stroke).spawn().unwrap());
        let job = ["jobs", "job-1", "--json", "--state", &state];
        let drawn_mm = || {
            let job: Value = serde_json::from_slice(&bench.run(&job).stdout).unwrap_or_default();
            job["drawn_mm"].as_f64().unwrap_or_default()
        };
        until("drawing", drawn_mm, |drawn_mm| *drawn_mm >= 1.0);
        served.child.0.kill().unwrap();
        served.child.0.wait().unwrap();
        caller.0.wait().unwrap();
        let (_sim, port) = bench.sim(&["--scene", "long"]);
        let here = on_port(&port, &state);
        let (code, said) = bench.said(&[&["draw", "--resume", "--yes"][..], &here].concat());
        assert_ne!(code, 0, "{said}");
        for part in ["job-1", "by the simulated arm", "its beginning"] {
            assert!(said.contains(part), "{part}: {said}");
        }
        let (_, sensed) = bench.call(&[&["sense"][..], &here].concat());
        assert_eq!(sensed["unfinished"], Value::Null, "{sensed:#}");
    });
}

#[test]
fn practice_does_not_end_an_emergency_stop_of_an_arm_on_a_port() {
    unless_starved(|| {
        let bench = Bench::new();
        let (_sim, port) = bench.sim(&["--scene", "short"]);
        let state = bench.state();
        let here = on_port(&port, &state);
        let mut served = bench.serve(&here);
        let (code, said) = bench.said(&["estop"]);
        assert_eq!(code, 0, "{said}");
        assert!(served.child.terminate().is_some());
        let mut practice = bench.serve(&["--state", &state]);
        let (code, said) = bench.said(&["clear"]);
        assert_ne!(code, 0, "{said}");
        for part in ["`steadyhand --port PORT serve`", "`steadyhand clear`"] {
            assert!(said.contains(part), "{part}: {said}");
        }
        let (code, said) = bench.said(&["reset"]);
        assert_eq!(code, 0, "{said}");
        assert!(practice.child.terminate().is_some());
        let drawn = ["stroke", r#"{"scene":"short"}"#, "--enable", "short"];
        let (_, refused) = bench.call(&[&drawn[..], &here].concat());
        assert_eq!(refused["code"], "emergency_stop", "{refused:#}");
    });
}
