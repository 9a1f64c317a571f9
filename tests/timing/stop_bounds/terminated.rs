//! Measures how soon an arm receives the stop of a node that is terminated. The node is a separate process;
//! its arm is at the far end of a port in this one.

use std::time::Duration;

use rustix::process::Signal;
use steadyhand::clock::NodeClock;
use steadyhand::units::ClockInstant;

use super::rig::{BaselineThread, Rig};
use super::support::{Bench, Running, Served, on_port, scene};
use super::test_node::PATIENCE;

const PERIOD: Duration = Duration::from_millis(10);

/// The signal comes this long behind a frame: the frame of a stop, which waits for no tick, is off the
/// beat then.
const BEHIND: Duration = Duration::from_millis(5);

/// A frame that is so far from a whole period behind the one before is off the beat.
const OFF_BEAT: Duration = Duration::from_millis(2);

/// So many frames say how fast the tip is, and in twice as many a brake is over.
const FRAMES: usize = 10;

/// Number of frames within which a stop must begin.
const SOON: usize = 30;

/// Behind its first frame a brake goes no further than the arm went in so many frames before: 5, where at
/// 100 mm/s it takes ten ticks, ever slower, and two for rounding.
const BRAKE_FRAMES: f64 = 7.0;

/// Frames within which it is known how far a brake goes.
const UNSURE: usize = 3;

/// As fast as the tip has to be before it is stopped.
const FAST_MM_S: f64 = 60.0;

/// Far from where the arm rests, so that it is on its way for long.
const LINES: &str = "[[[90.0, 10.0], [10.0, 10.0], [10.0, 90.0], [90.0, 90.0]]]";

/// Maximum number of calls while they are refused.
const CALLS_MAX: u32 = 5;

/// An arm at rest, and a folder for the node that moves it.
pub(super) struct TerminatedNode {
    rig: Rig,
    bench: Bench,
    port: String,
}

/// The event that is waited for behind the stop's frames.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum Until {
    /// Nothing: how it stops has been seen.
    Stopped,
    /// The arm is parked, which takes seconds, and the node ends.
    Parked,
}

impl TerminatedNode {
    pub(super) fn new() -> Self {
        let (text, bench) = (scene("lines", LINES), Bench::new());
        bench.scene("lines", &text);
        let rig = Rig::in_scene("lines", &text, NodeClock::real());
        let port = rig.port();
        Self { rig, bench, port }
    }

    /// From SIGTERM to the stop's first frame, and how late a bare thread was woken meanwhile.
    pub(super) fn first_frame_ms(&self, baseline: &BaselineThread, until: Until) -> (f64, f64) {
        let (mut served, _caller) = self.moves();
        let goal_count = self.rig.goals_since(ClockInstant::ZERO).len();
        self.wait("the next frame", || {
            self.rig.goals_since(ClockInstant::ZERO).len() > goal_count
        });
        std::thread::sleep(BEHIND);
        let asked_at = self.rig.clock.now();
        served.child.signal(Signal::TERM);
        let baseline_ms = baseline.wake();
        if until == Until::Parked {
            assert_eq!(served.child.exit_code(), Some(0));
        } else {
            self.wait("the stop's frames", || {
                self.rig.goals_since(asked_at).len() > SOON + 2 * FRAMES
            });
        }
        (self.first_stop_frame_ms(asked_at), baseline_ms)
    }

    /// A node that has begun to draw, and its caller.
    fn moves(&self) -> (Served, Running) {
        let state = self.bench.state();
        let here = on_port(&self.port, &state);
        let recorded: &[&str] = if super::is_recorded() {
            &["--record"]
        } else {
            &[]
        };
        let args = [&here[..], &["--enable", "lines"], recorded].concat();
        let served = self.bench.serve(&args);
        for _ in 0..CALLS_MAX {
            let mut caller = self.calls(&served);
            let ended = || caller.0.try_wait().unwrap().is_some();
            if self.comes_to_speed(ended) {
                return (served, caller);
            }
        }
        panic!("it never moved: {}", self.call_output());
    }

    fn calls(&self, served: &Served) -> Running {
        let drawing = [
            "call",
            "stroke",
            r#"{"scene":"lines","again":true}"#,
            "--node",
        ];
        let caller = self
            .bench
            .command(&[&drawing[..], &[&served.url]].concat())
            .stdout(std::fs::File::create(self.bench.path("call-output")).unwrap())
            .stderr(std::process::Stdio::null())
            .spawn();
        Running(caller.unwrap())
    }

    fn call_output(&self) -> String {
        std::fs::read_to_string(self.bench.path("call-output")).unwrap()
    }

    /// Returns whether the tip is fast before the call has ended. Where four arms share two processors a servo may answer too
    /// late, and the call ends with that.
    fn comes_to_speed(&self, mut ended: impl FnMut() -> bool) -> bool {
        while !self.rig.speed_mm_s().is_some_and(|mm_s| mm_s > FAST_MM_S) {
            if ended() {
                return false;
            }
            std::thread::sleep(Duration::from_millis(1));
        }
        true
    }

    fn wait(&self, what: &str, is_so: impl Fn() -> bool) {
        let began = self.rig.clock.now();
        while !is_so() {
            let is_late = self.rig.clock.now().since(began) > PATIENCE;
            assert!(
                !is_late,
                "{what} never came; the call: {}",
                self.call_output()
            );
            std::thread::sleep(Duration::from_micros(200));
        }
    }

    /// The stop's first frame: off the beat, and behind it the arm only brakes. Where the stop happened
    /// to be on the beat, the first behind which it does.
    fn first_stop_frame_ms(&self, asked_at: ClockInstant) -> f64 {
        let tips = self.rig.tips();
        let next = tips.iter().position(|(at, _)| *at > asked_at).unwrap();
        let way = |from: usize, to: usize| (tips[to].1 - tips[from].1).xy().norm();
        let a_frame_mm = way(next - 1 - FRAMES, next - 1) / FRAMES as f64;
        // Along the sheet: the lift comes behind.
        let goes_on = |frame: usize| {
            let then = frame..(frame + 2 * FRAMES).min(tips.len());
            let ways = then.map(|later| way(frame - 1, later));
            ways.fold(0.0, f64::max) / a_frame_mm
        };
        let soon = next..(next + SOON).min(tips.len());
        let brakes: Vec<usize> = soon.filter(|at| goes_on(*at) <= BRAKE_FRAMES).collect();
        let gap = |at: usize| tips[at].0.since(tips[at - 1].0);
        let is_off_beat = |at: &&usize| gap(**at).abs_diff(PERIOD) > OFF_BEAT;
        assert!(!brakes.is_empty(), "it went on as if nobody had told it");
        // What is later off the beat is a machine's doing.
        let mut early = brakes.iter().take(UNSURE);
        let first = *early.find(is_off_beat).unwrap_or(&brakes[0]);
        eprintln!("told, it went on for {:.1} frames", goes_on(first));
        tips[first].0.seconds_since(asked_at) * 1e3
    }
}
