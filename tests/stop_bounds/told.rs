//! A node in a process of its own that is told to end, with its arm at the far end of a port here: how
//! soon the arm hears of it.

use std::time::Duration;

use rustix::process::Signal;
use steadyhand::clock::Clock;
use steadyhand::units::Instant;

use super::house::PATIENCE;
use super::rig::{Bare, Rig};
use super::support::{Bench, Running, Served, scene};

const PERIOD: Duration = Duration::from_millis(10);

/// The signal comes this long behind a frame: the frame of a stop, which waits for no tick, is off the
/// beat then.
const BEHIND: Duration = Duration::from_millis(5);

/// What is so far from a whole period behind the frame before is off the beat.
const OFF_BEAT: Duration = Duration::from_millis(2);

/// No stop is looked for beyond so many frames.
const FRAMES: usize = 10;

/// Behind its first frame a stop's brake goes no further than the arm went in so many frames before: at
/// 100 mm/s it takes a dozen ticks, ever slower.
const BRAKE_FRAMES: f64 = 9.0;

/// As fast as the tip has to be before it is stopped.
const FAST_MM_S: f64 = 60.0;

/// Far from where the arm rests, so that it is on its way for long.
const LINES: &str = "[[[90.0, 10.0], [10.0, 10.0], [10.0, 90.0], [90.0, 90.0]]]";

/// An arm, and a folder for the nodes that move it one after another.
pub(super) struct Told {
    rig: Rig,
    bench: Bench,
    port: String,
}

impl Told {
    pub(super) fn new() -> Self {
        let (text, bench) = (scene("lines", LINES), Bench::new());
        bench.scene("lines", &text);
        let rig = Rig::in_scene("lines", &text, Clock::real());
        let port = rig.port();
        Self { rig, bench, port }
    }

    /// From SIGTERM to the stop's first frame, and how late a bare thread was woken meanwhile.
    pub(super) fn first_frame_ms(&self, bare: &Bare) -> (f64, f64) {
        let (mut served, _caller) = self.moves();
        let seen = self.rig.goals_since(Instant::ZERO).len();
        self.wait("the next frame", || {
            self.rig.goals_since(Instant::ZERO).len() > seen
        });
        std::thread::sleep(BEHIND);
        let asked = self.rig.clock.now();
        served.child.signal(Signal::TERM);
        let bare_ms = bare.wake();
        // It parks what it has stopped.
        assert_eq!(served.child.exit_code(), Some(0));
        (self.heard_ms(asked), bare_ms)
    }

    /// A node that has begun to draw, and its caller.
    fn moves(&self) -> (Served, Running) {
        self.rig.forget();
        let state = self.bench.path("state").display().to_string();
        let words = ["--port", &self.port, "--state", &state, "--enable", "lines"];
        let served = self.bench.serve(&words);
        let again = r#"{"scene":"lines","again":true}"#;
        let caller = self
            .bench
            .command(&["call", "stroke", again, "--node", &served.url])
            .stdout(std::process::Stdio::null())
            .stderr(std::process::Stdio::null())
            .spawn()
            .unwrap();
        self.wait("a tip that is fast", || {
            self.rig.speed_mm_s().is_some_and(|mm_s| mm_s > FAST_MM_S)
        });
        (served, Running(caller))
    }

    fn wait(&self, what: &str, is_so: impl Fn() -> bool) {
        let began = self.rig.clock.now();
        while !is_so() {
            let late = self.rig.clock.now().since(began) > PATIENCE;
            assert!(!late, "{what} never came");
            std::thread::sleep(Duration::from_micros(200));
        }
    }

    /// The first frame off the beat; where the stop happened to be on it, the first of all.
    fn heard_ms(&self, asked: Instant) -> f64 {
        let tips = self.rig.tips();
        let next = tips.iter().position(|(at, _)| *at > asked).unwrap();
        let mut soon = next..(next + FRAMES).min(tips.len());
        let gap = |frame: usize| tips[frame].0.since(tips[frame - 1].0);
        let first = soon.find(|frame| gap(*frame).abs_diff(PERIOD) > OFF_BEAT);
        let first = first.unwrap_or(next);
        let way = |from: usize, to: usize| (tips[to].1 - tips[from].1).norm();
        let a_frame = way(first - 1 - FRAMES, first - 1) / FRAMES as f64;
        // Along the sheet: the lift comes behind.
        let braked = (first..(first + 2 * FRAMES).min(tips.len()))
            .map(|frame| (tips[frame].1 - tips[first - 1].1).xy().norm())
            .fold(0.0, f64::max);
        eprintln!("it was told and went on for {:.1} frames", braked / a_frame);
        assert!(
            braked <= BRAKE_FRAMES * a_frame,
            "it went on for {:.1} frames: it had not been told",
            braked / a_frame
        );
        tips[first].0.seconds_since(asked) * 1e3
    }
}
