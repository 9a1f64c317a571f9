//! Tests how fast the tip is: by the goals that leave the port, or by the arm where its goals lead it.

use std::sync::{Arc, Mutex};

use nalgebra::Point3;
use steadyhand::motion::MotionOutcome;
use steadyhand::units::JointVector;

use super::{PERIOD_S, beside_a_hand, joints};
use crate::far_end::{Family, Hands, Rig};

/// Speed limit of a tip.
const TIP_MM_S: f64 = 250.0;

/// Speed limit of a needle, and the distance from the sheet within which it applies.
const NEEDLE_MM_S: f64 = 25.0;
const NEAR_MM: f64 = 20.0;

/// The tip's height is known to half a tick of each joint, half a millimetre together.
const HEIGHT_MM: f64 = 0.5;

/// Rounding, dead bands and servos that stick move both ends of a way by so much together.
const UNSURE_MM: f64 = 1.75;

/// Servos swing a little where they speed up.
const SWING: f64 = 1.05;

/// Over so many cycles: in the longer, what is unsure of a way is 3 mm/s.
const SPANS: [usize; 2] = [20, 60];

/// A scene with speeds of its own, and two lines far from each other.
pub(crate) fn scene(draw_mm_s: f64, travel_mm_s: f64) -> impl Fn(&mut toml::Table) {
    move |text| {
        let lines = "polylines = [[[0.0, 0.0], [60.0, 0.0]], [[0.0, 60.0], [60.0, 60.0]]]";
        let design: toml::Table = toml::from_str(lines).unwrap();
        text.insert("design".to_owned(), design.into());
        let mut limits = toml::Table::new();
        limits.insert("draw_mm_s".to_owned(), draw_mm_s.into());
        limits.insert("travel_mm_s".to_owned(), travel_mm_s.into());
        text.insert("limits".to_owned(), limits.into());
    }
}

fn needle(text: &mut toml::Table) {
    beside_a_hand(text);
    text.insert("attended".to_owned(), true.into());
    let pens = text["pens"].as_array_mut().unwrap();
    let first = pens[0].as_table_mut().unwrap();
    first.insert("kind".to_owned(), "needle".into());
}

/// A needle in the same holder that ends before the first pen's tip and does not draw.
fn idle_needle(text: &mut toml::Table) {
    needle(text);
    let pens = text["pens"].as_array_mut().unwrap();
    let mut idle = pens[0].clone();
    pens[0].as_table_mut().unwrap().remove("kind");
    let tip_m = idle["tip_m"].as_array_mut().unwrap();
    for at in tip_m {
        *at = (at.as_float().unwrap() * 0.8).into();
    }
    idle.as_table_mut()
        .unwrap()
        .insert("name".to_owned(), "idle".into());
    pens.push(idle);
}

/// Returns whether the goals of an arm lead it.
fn is_led(rig: &Rig) -> bool {
    rig.scene.arm.file.servo.is_some()
}

/// Draws, and returns where the arm is sent, cycle by cycle; where it is, if its goals lead it.
async fn places(rig: &Rig) -> Vec<JointVector> {
    let motion = rig.attach().unwrap();
    let truths: Arc<Mutex<Vec<JointVector>>> = Arc::default();
    let kept = Arc::clone(&truths);
    let note = move |_: usize, hands: &mut Hands<'_>| {
        kept.lock().unwrap().push(hands.sim.true_joints());
    };
    rig.wire.script(0, Box::new(note));
    let outcome = rig.draw(&motion, None).await;
    assert!(
        matches!(outcome, MotionOutcome::Reached { .. }),
        "{outcome:?}"
    );
    if is_led(rig) {
        return std::mem::take(&mut truths.lock().unwrap());
    }
    let goals = rig.wire.goals(rig.family);
    goals
        .iter()
        .map(|goals| joints(&rig.scene, goals))
        .collect()
}

/// Draws, and returns where the last pen's tip is, cycle by cycle, and how high above the sheet that is.
async fn tips(rig: &Rig) -> Vec<(Point3<f64>, f64)> {
    let tip_m = rig.scene.pens.last().unwrap().tip_m;
    let tip = |joints_rad: &JointVector| {
        let tip = rig.scene.arm.chain.forward(joints_rad) * tip_m;
        (tip, rig.scene.surface.project(&tip).height_mm)
    };
    places(rig).await.iter().map(tip).collect()
}

/// The greatest share of what is allowed that the tip came to, over the spans.
async fn fastest(rig: Rig, near_mm_s: f64, far_mm_s: f64) -> f64 {
    let tips = tips(&rig).await;
    let allowed_mm = |height_mm: f64| {
        let is_near = height_mm < NEAR_MM - HEIGHT_MM;
        PERIOD_S * if is_near { near_mm_s } else { far_mm_s }
    };
    let mut most = 0.0_f64;
    for span in SPANS {
        for way in tips.windows(span + 1) {
            let went_mm = (way[span].0 - way[0].0).norm() * 1e3;
            let may_mm: f64 = way[1..].iter().map(|(_, height)| allowed_mm(*height)).sum();
            let swings = if is_led(&rig) { SWING } else { 1.0 };
            assert!(
                went_mm <= swings * may_mm + UNSURE_MM,
                "{:?}: {went_mm:.2} mm in {span} cycles, {may_mm:.2} allowed, at {:.1} mm",
                rig.family,
                way[0].1
            );
            most = most.max(went_mm / may_mm);
        }
    }
    most
}

#[tokio::test]
async fn invariant_6_the_tip_is_never_faster_than_it_may_be() {
    for family in Family::ALL {
        // As fast as a scene may ask; faster is refused.
        let requested_scene = scene(TIP_MM_S, TIP_MM_S);
        let most = fastest(Rig::with(family, requested_scene), TIP_MM_S, TIP_MM_S).await;
        assert!(most > 0.5, "{family:?}: {most} of 250 mm/s were reached");
        let most = fastest(Rig::with(family, scene(40.0, 100.0)), 100.0, 100.0).await;
        assert!(most > 0.8, "{family:?}: {most} of 100 mm/s were reached");
        let sharp = |text: &mut toml::Table| {
            scene(40.0, TIP_MM_S)(text);
            needle(text);
        };
        let most = fastest(Rig::with(family, sharp), NEEDLE_MM_S, TIP_MM_S).await;
        assert!(most > 0.8, "{family:?}: {most} of 25 mm/s were reached");
        let sharp = |text: &mut toml::Table| {
            scene(40.0, TIP_MM_S)(text);
            idle_needle(text);
        };
        let most = fastest(Rig::with(family, sharp), NEEDLE_MM_S, TIP_MM_S).await;
        assert!(most > 0.8, "{family:?}: {most} of an idle needle's 25 mm/s");
    }
}
