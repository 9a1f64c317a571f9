//! Reads the goals that the simulated arm received from the file of `steadyhand sim --trace`: what really
//! left the port, regardless of any report.

use std::path::PathBuf;
use std::sync::{Arc, LazyLock};
use std::thread::sleep;
use std::time::{Duration, Instant};

use steadyhand::scene::{Scene, SceneLibrary};
use steadyhand::units::JointVector;

/// The bytes that one arm has received.
pub(crate) struct Trace(pub(crate) PathBuf);

/// The state in which the arm was left after a mark.
#[derive(Debug)]
pub(crate) struct Stand {
    /// Distance along the sheet that the arm was still sent after the mark.
    pub(crate) went_mm: f64,
    /// Height to which the tip was finally sent.
    pub(crate) height_mm: f64,
    /// Number of consecutive frames with the last goal.
    pub(crate) frames: usize,
}

/// Number of equal goals in a row that count as a standstill: more than rounding at the slow end of a lift
/// produces, and no more than a busy machine sends in the time that a standstill is observed.
const STANDS: usize = 4;

/// Time within which even a busy machine has written the trace.
const LATE: Duration = Duration::from_secs(30);

/// Half of a lift: friction and what the encoders made good are in the goals too, up to 3 mm.
const LIFTED_MM: f64 = 4.0;

/// Longest braking distance on a sheet, including the delay of a busy machine.
const BRAKE_MM: f64 = 15.0;

impl Trace {
    fn goals(&self) -> Vec<Vec<(u8, i32)>> {
        let text = std::fs::read_to_string(&self.0).unwrap();
        let digits = text.bytes().filter(u8::is_ascii_hexdigit);
        let digits: Vec<u8> = digits.collect();
        let bytes: Vec<u8> = digits
            .chunks_exact(2)
            .map(|pair| u8::from_str_radix(std::str::from_utf8(pair).unwrap(), 16).unwrap())
            .collect();
        let mut found = Vec::new();
        let mut at = 0;
        while at + 8 < bytes.len() {
            let frame = &bytes[at..];
            let length = usize::from(frame[3]);
            // FF FF FE LEN 83 41 7 (ID ACC POS POS TIME TIME SPEED SPEED)* SUM
            let is_goal_frame =
                frame.starts_with(&[0xFF, 0xFF, 0xFE]) && frame[4..7] == [0x83, 41, 7];
            if !is_goal_frame || frame.len() < length + 4 {
                at += 1;
                continue;
            }
            let blocks = frame[7..length + 3].chunks_exact(8);
            let goals = blocks.map(|block| {
                let position = i32::from(u16::from_le_bytes([block[2], block[3]]));
                (block[0], position)
            });
            found.push(goals.collect());
            at += length + 4;
        }
        found
    }

    /// Returns the number of frames of goals received so far.
    pub(crate) fn mark(&self) -> usize {
        self.goals().len()
    }

    /// Returns the state in which the arm was left by the frames after a mark.
    pub(crate) fn stand(&self, mark: usize) -> Stand {
        static SCENE: LazyLock<Arc<Scene>> =
            LazyLock::new(|| SceneLibrary::new(None).scene("default", None).unwrap());
        let goals = self.goals();
        let last = goals.last().unwrap();
        let from = tip_over_sheet(&SCENE, &goals[mark.saturating_sub(1)]);
        let (at_mm, height_mm) = tip_over_sheet(&SCENE, last);
        let later = &goals[mark.min(goals.len())..];
        Stand {
            went_mm: (at_mm[0] - from.0[0]).hypot(at_mm[1] - from.0[1]),
            height_mm,
            frames: later.iter().rev().take_while(|one| *one == last).count(),
        }
    }

    /// Checks that the arm was braked, lifted and left standing.
    pub(crate) fn was_stopped(&self, mark: usize) {
        self.stands_where(mark, |height_mm| height_mm > LIFTED_MM);
    }

    /// Checks that the arm was left standing where it was, with the pen on the paper.
    pub(crate) fn was_frozen(&self, mark: usize) {
        self.stands_where(mark, |height_mm| height_mm < LIFTED_MM);
    }

    fn stands_where(&self, mark: usize, is_there: impl Fn(f64) -> bool) {
        let began = Instant::now();
        loop {
            let stand = self.stand(mark);
            let is_standing = stand.frames >= STANDS && stand.went_mm < BRAKE_MM;
            if is_standing && is_there(stand.height_mm) {
                break;
            }
            assert!(began.elapsed() < LATE, "{stand:?}");
            sleep(Duration::from_millis(50));
        }
        self.stays();
    }

    /// Checks that no other goal is sent for as long as a stroke of some length would take.
    pub(crate) fn stays(&self) {
        let before = self.goals().last().cloned();
        sleep(Duration::from_millis(700));
        assert_eq!(self.goals().last().cloned(), before);
    }
}

/// Returns where on the sheet, and how high over it, the goals put the pen of an arm that sags as its servos' figures say.
fn tip_over_sheet(scene: &Scene, goals: &[(u8, i32)]) -> ([f64; 2], f64) {
    let angles: Vec<f64> = scene
        .arm
        .servos()
        .map(|(_, servo)| {
            let found = goals.iter().find(|(id, _)| *id == servo.id);
            servo.angle_rad(found.unwrap().1)
        })
        .collect();
    let (arm, goals_rad) = (&scene.arm, JointVector::from_slice(&angles));
    let yields = arm.servo_yield_rad_per_n_m(|_| Some(32), None);
    let load_n_m = arm.load.torque_n_m(&arm.chain, &goals_rad);
    let sags_rad = load_n_m.zip(&yields, |load, yields| load * yields);
    let stands_rad = goals_rad.zip(&sags_rad, |goal, sags| goal + sags);
    let tip = arm.chain.forward(&stands_rad) * scene.pens[0].tip_m;
    let projected = scene.surface.project(&tip);
    (projected.at_mm, projected.height_mm)
}
