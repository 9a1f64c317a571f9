//! Tests `steadyhand draw` on an arm behind a port: confirmation, placement, interruption, resumption, and drawing through a running
//! node. A busy machine may miss readings, which stops the arm: a faulted drawing is then resumed or repeated.

use super::*;
use rustix::process::Signal;
use support::ink::{self, Line};
use support::{on_port, unless_starved};

/// Attempts on a machine that is too busy.
const ATTEMPTS: usize = 8;

/// The hook, `long_mm` wide, turned by 90°, its corner at a place.
fn hook_turned(long_mm: f64, [left, low]: [f64; 2]) -> Vec<[f64; 2]> {
    let scale = long_mm / 40.0;
    let centre = [left + 10.0 * scale, low + 20.0 * scale];
    let rotated = HOOK_POINTS.map(|[x, y]| {
        let (dx, dy) = ((x - 20.0) * scale, (y - 10.0) * scale);
        [centre[0] - dy, centre[1] + dx]
    });
    rotated.to_vec()
}

/// A simulated arm at the far end of a pseudo-terminal, its ink, and the options that name it as a real arm.
struct PortRig {
    bench: Bench,
    sim: Running,
    port: String,
    hook: String,
    state: String,
}

impl PortRig {
    fn new() -> Self {
        let bench = Bench::new();
        let ink = bench.path("ink.json").display().to_string();
        let (sim, port) = bench.sim(&["--scene", "short", "--ink", &ink]);
        Self {
            hook: file(&bench, "hook.svg", HOOK),
            state: bench.state(),
            bench,
            sim,
            port,
        }
    }

    /// Returns the arguments of a command that uses this arm directly.
    fn own<'a>(&'a self, args: &[&'a str]) -> Vec<&'a str> {
        [&on_port(&self.port, &self.state)[..], args].concat()
    }

    /// Starts a command and keeps its output.
    fn begin(&self, args: &[&str]) -> Running {
        let mut command = self.bench.command(args);
        command.stdout(std::process::Stdio::piped());
        Running(command.stderr(std::process::Stdio::null()).spawn().unwrap())
    }

    /// Ends the simulated arm and returns the ink on the paper.
    fn ink(mut self) -> Vec<Line> {
        assert_eq!(self.sim.terminate(), Some(0));
        let ink = std::fs::read(self.bench.path("ink.json")).unwrap();
        serde_json::from_slice(&ink).unwrap()
    }

    /// Returns the newest job.
    fn last_job(&self) -> Value {
        let output = self.bench.run(&["jobs", "--json", "--state", &self.state]);
        let reply: Value = serde_json::from_slice(&output.stdout).unwrap_or_default();
        reply[0].clone()
    }

    /// Returns the command that draws the hook, or the rest of it.
    fn draws<'a>(&'a self, size: &'a str) -> Vec<&'a str> {
        let last = self.last_job();
        let is_left = last["state"] != "reached" && last["drawn_mm"].as_f64() > Some(0.0);
        match is_left {
            true => vec!["draw", "--resume", "--yes"],
            false => vec!["draw", &self.hook, "--size", size, "--yes"],
        }
    }

    /// Begins the drawing, on an arm of its own or on a node that runs, and waits until it has drawn 3 mm.
    fn begin_to_draw(&self, size: &str, is_own: bool) -> Running {
        for _ in 0..ATTEMPTS {
            let args = self.draws(size);
            let args = if is_own { self.own(&args) } else { args };
            let before = self.last_job()["id"].clone();
            let mut drawing = self.begin(&args);
            if self.draws_3_mm(&before, &mut drawing) {
                return drawing;
            }
            if !is_own {
                self.bench.run(&["reset"]);
            }
        }
        panic!("it never draws: {:#}", self.last_job());
    }

    /// Waits until the program has drawn 3 mm in a new job, or has ended before.
    fn draws_3_mm(&self, before: &Value, program: &mut Running) -> bool {
        let began = Instant::now();
        while program.0.try_wait().unwrap().is_none() {
            let job = self.last_job();
            if job["id"] != *before && job["drawn_mm"].as_f64() > Some(3.0) {
                return true;
            }
            assert!(
                began.elapsed() < PATIENCE * 2,
                "it neither draws nor ends: {job:#}"
            );
            sleep(Duration::from_millis(50));
        }
        false
    }

    /// Runs a command until no fault of a busy machine ends it.
    fn retry_until_done(&self, args: &[&str], is_own: bool) -> Output {
        let mut output = self.bench.run(args);
        for _ in 0..ATTEMPTS {
            let is_done = output.status.code() == Some(0);
            if is_done || self.last_job()["state"] != "faulted" {
                break;
            }
            if !is_own {
                self.bench.run(&["reset"]);
            }
            output = self.bench.run(args);
        }
        output
    }
}

const PLACE: [&str; 6] = ["--size", "24mm", "--at", "30,40", "--rotate", "90"];

#[test]
fn a_real_arm_asks_and_draws_where_it_said() {
    unless_starved(|| {
        for _ in 0..ATTEMPTS {
            let rig = PortRig::new();
            let draw = [&["draw", rig.hook.as_str()], &PLACE[..]].concat();
            let draw = rig.own(&draw);
            // Nobody to ask: nothing moves, and the command that would is there.
            let refused = rig.bench.run(&draw);
            let printed = printed_by(&refused);
            assert_eq!(refused.status.code(), Some(1), "{printed}");
            // A starved machine may not hear the arm at all.
            if printed.contains("cannot be") {
                continue;
            }
            assert!(
                printed.contains("--at 30,40 --rotate 90 --yes"),
                "{printed}"
            );
            assert_eq!(jobs(&rig.state), 0);
            let mut person = Person::at(&rig.bench, &draw);
            if !person.sees_before_the_end("? [y/N]") {
                continue;
            }
            person.types("n\n");
            person.sees("nothing moved");
            person.ends_with(1);
            assert_eq!(jobs(&rig.state), 0);
            let mut person = Person::at(&rig.bench, &draw);
            if !person.sees_before_the_end("arm (so101) of node local, at /dev/pts/") {
                continue;
            }
            person.sees("? [y/N]");
            person.types("y\n");
            person.sees("Ctrl-C stops");
            let ended = person.program.exit_code();
            let job = rig.last_job();
            if job["state"] == "faulted" {
                continue;
            }
            assert_eq!(ended, Some(0), "{job:#}");
            let design = vec![hook_turned(24.0, [30.0, 40.0])];
            let ink = rig.ink();
            let missing_mm = ink::missing_mm(&design, &ink, 0.6);
            assert!(missing_mm < 0.3, "{missing_mm} mm are missing");
            let strayed_mm = ink::missing_mm(&ink, &design, 0.6);
            assert!(strayed_mm < 0.3, "{strayed_mm} mm lie elsewhere");
            return;
        }
        panic!("this machine is too busy");
    });
}

#[test]
fn a_key_stops_what_a_person_agreed_to() {
    unless_starved(|| {
        for _ in 0..ATTEMPTS {
            let rig = PortRig::new();
            let draw = ["draw", rig.hook.as_str(), "--size", "70mm"];
            let draw = rig.own(&draw);
            let mut person = Person::at(&rig.bench, &draw);
            // A starved machine may not hear the arm at all.
            if !person.sees_before_the_end("? [y/N]") {
                continue;
            }
            person.types("yes\n");
            person.sees("Ctrl-C stops");
            if !rig.draws_3_mm(&Value::Null, &mut person.program) {
                continue;
            }
            person.types(" ");
            let ended = person.program.exit_code();
            let job = rig.last_job();
            if job["state"] == "faulted" {
                continue;
            }
            assert_eq!(ended, Some(1), "{job:#}");
            assert_eq!(job["state"], "stopped", "{job:#}");
            assert_eq!(job["drawing"], "hook.svg", "{job:#}");
            person.sees("before its end");
            person.sees("to draw the rest: `steadyhand ");
            return;
        }
        panic!("this machine is too busy");
    });
}

/// The commands that it named were refused, or settled another arm: no node ran any more.
#[test]
fn after_a_fault_pen_down_the_node_that_must_stay_is_named_first() {
    unless_starved(|| {
        let mut rig = PortRig::new();
        let mut drawing = rig.begin_to_draw("70mm", true);
        let lines = support::lines(drawing.0.stdout.take().unwrap());
        rig.sim.0.kill().unwrap();
        rig.sim.0.wait().unwrap();
        assert_ne!(drawing.exit_code(), Some(0));
        let printed: Vec<String> = lines.iter().collect();
        let printed = printed.join("\n");
        let (state, port) = (&rig.state, &rig.port);
        let serve =
            format!("--state {state} --port {port} --calibrated elsewhere serve`, then run ");
        let steps = ["enable --scene default --for 30m", "reset", "draw --resume"];
        let steps = steps.map(|step| format!("`steadyhand --state {state} {step}`"));
        let advice = serve + &steps.join(", then ");
        assert!(printed.contains(&advice), "{advice} in {printed}");
        let (_sim, port) = rig.bench.sim(&["--scene", "short"]);
        rig.port = port;
        let refused = rig.bench.run(&rig.own(&["draw", "--resume", "--yes"]));
        let printed = printed_by(&refused);
        assert_eq!(refused.status.code(), Some(1), "{printed}");
        assert!(
            printed.contains(&format!("--port {}", rig.port)),
            "{printed}"
        );
    });
}

#[test]
fn an_interrupted_drawing_says_how_to_go_on_and_does() {
    unless_starved(|| {
        let rig = PortRig::new();
        // Killed, so it could not report anything.
        let mut killed = rig.begin_to_draw("70mm", true);
        killed.0.kill().unwrap();
        killed.0.wait().unwrap();
        let job = rig.last_job()["id"].as_str().unwrap().to_owned();
        let hook = ["draw", rig.hook.as_str(), "--size", "70mm", "--yes"];
        let over = rig.bench.run(&rig.own(&hook));
        let printed = printed_by(&over);
        assert_eq!(over.status.code(), Some(1), "{printed}");
        assert!(
            printed.contains(&format!(
                "{job} was drawing hook.svg in default and was interrupted: "
            )) && printed.contains(" draw --resume`"),
            "{printed}"
        );
        // Interrupted: it says how to go on.
        let mut resumed = rig.begin_to_draw("70mm", true);
        resumed.signal(Signal::INT);
        let mut printed = String::new();
        let lines = support::lines(resumed.0.stdout.take().unwrap());
        assert_eq!(resumed.exit_code(), Some(1));
        while let Ok(line) = lines.recv_timeout(PATIENCE) {
            printed.push_str(&line);
            printed.push('\n');
        }
        assert!(printed.contains("resumes       job-"), "{printed}");
        assert!(
            printed.contains("to draw the rest: `steadyhand --scenes ")
                && printed.contains(" draw --resume`"),
            "{printed}"
        );
        // Nobody to ask, again; and then to its end.
        let unasked = rig.bench.run(&rig.own(&["draw", "--resume"]));
        assert!(
            printed_by(&unasked).contains("--yes"),
            "{}",
            printed_by(&unasked)
        );
        let done = rig.retry_until_done(&rig.own(&["draw", "--resume", "--yes"]), true);
        let printed = printed_by(&done);
        assert_eq!(done.status.code(), Some(0), "{printed}");
        assert!(printed.contains("complete: "), "{printed}");
        let attempts = jobs(&rig.state);
        // In the middle of the sheet, 70 by 35 mm.
        let at = |[x, y]: [f64; 2]| [15.0 + x * 1.75, 32.5 + y * 1.75];
        let design = vec![HOOK_POINTS.map(at).to_vec()];
        let ink = rig.ink();
        let missing_mm = ink::missing_mm(&design, &ink, 0.8);
        assert!(missing_mm < 0.5, "{missing_mm} mm are missing");
        let strayed_mm = ink::missing_mm(&ink, &design, 0.8);
        assert!(strayed_mm < 0.5, "{strayed_mm} mm lie elsewhere");
        // Each attempt draws the overlap and at most 5 mm again, and sets the pen down once more.
        let twice_mm = ink::length_mm(&ink) - ink::length_mm(&design);
        let most_mm = 9.0 * attempts as f64 + 3.0;
        assert!(twice_mm < most_mm, "{twice_mm} mm were drawn twice");
    });
}

#[test]
fn a_running_node_draws_what_is_allowed_and_is_followed_to_its_end() {
    unless_starved(|| {
        let rig = PortRig::new();
        let config = file(&rig.bench, "node.toml", "answer_within_s = 1\n");
        let served = rig.bench.serve(&rig.own(&["--config", &config]));
        let unasked = rig.bench.run(&["draw", &rig.hook, "--size", "30mm"]);
        assert!(
            printed_by(&unasked).contains("--yes"),
            "{}",
            printed_by(&unasked)
        );
        assert_eq!(jobs(&rig.state), 0);
        for attempt in 0.. {
            assert!(attempt < ATTEMPTS, "this machine is too busy");
            let mut draw = rig.begin_to_draw("30mm", false);
            // Another terminal sees it to its end, with its outcome.
            let watched = rig.bench.run(&["watch", "--json"]);
            let reply = json_of(&watched);
            let ended = draw.exit_code();
            assert_eq!(watched.status.code(), ended, "{reply:#}");
            if reply["state"] == "reached" {
                assert_eq!(
                    (&reply["tool"], ended),
                    (&"stroke".into(), Some(0)),
                    "{reply:#}"
                );
                break;
            }
            rig.bench.run(&["reset"]);
        }
        let job = rig.last_job();
        let figures: Value = serde_json::from_str(job["figures"].as_str().unwrap()).unwrap();
        assert!(figures["arm_time_s"].as_f64() > Some(1.0), "{job:#}");
        // That word was for that drawing: the scene's own design needs another.
        let stroke = ["stroke", r#"{"scene":"short"}"#, "--node", &served.url];
        let (code, refused) = rig.bench.call(&stroke);
        assert_eq!(
            (code, &refused["code"]),
            (1, &"needs_enabling".into()),
            "{refused:#}"
        );
        let message = refused["message"].as_str().unwrap();
        assert!(
            message.contains("Enabled now: hook.svg in default"),
            "{message}"
        );
        // A job that is over is reported at once.
        let id = job["id"].as_str().unwrap();
        let past = rig.bench.run(&["watch", id]);
        assert_eq!(past.status.code(), Some(0), "{}", printed_by(&past));
        assert!(
            printed_by(&past).contains(&format!("{id}: drew 1 stroke")),
            "{}",
            printed_by(&past)
        );
        let unknown = rig.bench.run(&["watch", "job-99"]);
        assert_eq!(unknown.status.code(), Some(1), "{}", printed_by(&unknown));
        let stderr = String::from_utf8_lossy(&unknown.stderr);
        assert!(stderr.contains("\"job-99\""), "{stderr}");
        let kept = rig.bench.path("state/jobs").join(id).join("design.toml");
        let kept = std::fs::read_to_string(kept).unwrap();
        assert!(kept.contains("M0 20V0H40V10"), "{kept}");
    });
}

#[test]
fn a_planner_does_not_go_on_with_an_operators_drawing() {
    unless_starved(|| {
        let rig = PortRig::new();
        let served = rig.bench.serve(&rig.own(&[]));
        let mut draw = rig.begin_to_draw("60mm", false);
        draw.signal(Signal::INT);
        assert_eq!(draw.exit_code(), Some(1));
        let latched = rig.bench.run(&["draw", "--resume", "--yes"]);
        assert_eq!(latched.status.code(), Some(1));
        assert!(
            printed_by(&latched).contains("`steadyhand reset`")
                || printed_by(&latched).contains("`reset`"),
            "{}",
            printed_by(&latched)
        );
        let reset = rig.bench.run(&["reset"]);
        assert_eq!(reset.status.code(), Some(0), "{}", printed_by(&reset));
        let resume = ["stroke", r#"{"resume":true}"#, "--node", &served.url];
        let (code, refused) = rig.bench.call(&resume);
        assert_eq!(
            (code, &refused["code"]),
            (1, &"operators_drawing".into()),
            "{refused:#}"
        );
        let done = rig.retry_until_done(&["draw", "--resume", "--yes"], false);
        assert_eq!(done.status.code(), Some(0), "{}", printed_by(&done));
    });
}
