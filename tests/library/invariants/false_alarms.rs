//! Draws what nothing disturbs, on arms whose servos are those that somebody measured: no drawing is ended.

use std::sync::atomic::{AtomicUsize, Ordering};

use nalgebra::Point3;
use steadyhand::motion::MotionOutcome;
use steadyhand::scene::Surface;
use steadyhand::sim::{PaperSurface, SimPen};
use tokio::runtime::Runtime;

use super::{Chance, cases};
use crate::far_end::Rig;

/// Cases for each drawing, and most drawings: `just slow` reaches that.
const SHARE: usize = 160;
const DRAWINGS_MAX: usize = 1_000;

/// A servo that was measured, and its gain P.
struct TrueServo {
    name: &'static str,
    stall_n_m: f64,
    armature_kg_m2: f64,
    back_emf_n_m_s: f64,
    viscous_n_m_s: f64,
    friction_n_m: f64,
    gain_p: f64,
}

/// An STS3215 of the 7.4 V kit, by Rhoban's BAM.
const SEVEN_VOLTS: TrueServo = TrueServo {
    name: "7.4 V",
    stall_n_m: 3.35,
    armature_kg_m2: 0.0284,
    back_emf_n_m_s: 0.5486,
    viscous_n_m_s: 0.0591,
    friction_n_m: 0.0524,
    gain_p: 32.0,
};

/// One of the 12 V kit, by kscalelabs/sysid. The arm's file says it is one of 7.4 V.
const TWELVE_VOLTS: TrueServo = TrueServo {
    name: "12 V",
    stall_n_m: 4.98,
    armature_kg_m2: 0.0266,
    back_emf_n_m_s: 1.5112,
    viscous_n_m_s: 0.0616,
    friction_n_m: 0.12,
    gain_p: 32.0,
};

const SERVOS: [TrueServo; 5] = [
    SEVEN_VOLTS,
    TWELVE_VOLTS,
    TrueServo {
        gain_p: 16.0,
        ..SEVEN_VOLTS
    },
    TrueServo {
        gain_p: 16.0,
        ..TWELVE_VOLTS
    },
    TrueServo {
        gain_p: 60.0,
        ..SEVEN_VOLTS
    },
];

impl TrueServo {
    /// Returns the file of an arm with this servo. Its register says P = 32: the gain of the error carries the rest.
    fn arm(&self) -> String {
        let error_gain = 0.165 * self.gain_p / 32.0;
        let shipped = concat!(env!("CARGO_MANIFEST_DIR"), "/scenes/arms/so101.toml");
        let mut text = std::fs::read_to_string(shipped).unwrap();
        text = text.replace("error_gain = 0.165", &format!("error_gain = {error_gain}"));
        let Self {
            stall_n_m,
            armature_kg_m2,
            back_emf_n_m_s,
            viscous_n_m_s,
            friction_n_m,
            ..
        } = self;
        text + &format!(
            "\n[simulation.servo]\nstall_n_m = {stall_n_m}\nerror_gain = {error_gain}\narmature_kg_m2 = {armature_kg_m2}\nback_emf_n_m_s = {back_emf_n_m_s}\nviscous_n_m_s = {viscous_n_m_s}\nfriction_n_m = {friction_n_m}\n"
        )
    }
}

struct Sheet(Surface);

impl PaperSurface for Sheet {
    fn touch(&self, tip_m: [f64; 3]) -> Option<([f64; 2], f64)> {
        let foot = self.0.project(&Point3::from(tip_m));
        let is_on_sheet = self.0.holds(foot.at_mm);
        is_on_sheet.then_some((foot.at_mm, foot.height_mm))
    }
}

/// Returns strokes of some corners all over the sheet, and how fast they are drawn.
fn drawing(chance: &mut Chance) -> String {
    let mut place = || [(); 2].map(|()| 45.0 + 40.0 * chance.share());
    let strokes: Vec<Vec<[f64; 2]>> = (0..3)
        .map(|stroke| (0..2 + 2 * stroke).map(|_| place()).collect())
        .collect();
    let draw_mm_s = 25.0 + 15.0 * chance.share();
    format!("[design]\npolylines = {strokes:?}\n[limits]\ndraw_mm_s = {draw_mm_s:.1}\n")
}

/// Draws the drawing of a number on the arm of that number.
async fn draw(number: usize) {
    let servo = &SERVOS[number % SERVOS.len()];
    let text = drawing(&mut Chance(number as u64));
    let edits: toml::Table = toml::from_str(&text).unwrap();
    let rig = Rig::of_arm(&servo.arm(), |scene| scene.extend(edits));
    let pen = SimPen {
        tip_m: rig.scene.pens[0].tip_m.coords.into(),
        colour: "#000000".to_owned(),
        width_mm: 0.5,
    };
    let sheet = Sheet(rig.scene.surface.clone());
    rig.sim.place_sheet(Box::new(sheet), vec![pen]);
    let motion = rig.attach().unwrap();
    let outcome = rig.draw(&motion, None).await;
    assert!(
        matches!(outcome, MotionOutcome::Reached { .. }),
        "drawing {number} on {} at P = {}: {outcome:?}",
        servo.name,
        servo.gain_p
    );
}

#[test]
fn no_drawing_is_ended_that_nothing_disturbs() {
    let count = (cases() / SHARE).min(DRAWINGS_MAX);
    let next = AtomicUsize::new(0);
    std::thread::scope(|threads| {
        for _ in 0..2 {
            threads.spawn(|| {
                let runtime = Runtime::new().unwrap();
                loop {
                    let number = next.fetch_add(1, Ordering::Relaxed);
                    if number >= count {
                        return;
                    }
                    runtime.block_on(draw(number));
                }
            });
        }
    });
}
