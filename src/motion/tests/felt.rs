//! What touches feel of a sheet's height, beside where the sheet truly is.
#![allow(clippy::indexing_slicing, reason = "a failing test may panic")]

use super::probes::{height_mm, place_sheet};
use super::*;
use arm::SimulatedServo;
use base::units::{Finite, JointVector};
use plan::probe_from;
use scene::PROBE_FROM_MM;

const PLACES: [[f64; 2]; 6] = [
    [50.0, 50.0],
    [10.0, 12.0],
    [88.0, 15.0],
    [35.0, 85.0],
    [85.0, 90.0],
    [12.0, 80.0],
];

/// A count of the elbow or of the shoulder moves the tip by 0.25 mm, and creeping servos stand where their counts change. The
/// mean of three touches is off by a part of that.
const CHANGE_MM: f64 = 0.2;

/// A servo that was measured: stall torque, armature, back-EMF, damping and friction; and its gain P.
#[derive(Clone, Copy)]
struct TrueServo {
    figures: [f64; 5],
    gain_p: f64,
}

/// STS3215 of the 7.4 V kit by Rhoban's BAM, of the 12 V kit by kscalelabs/sysid.
const SEVEN_VOLTS: [f64; 5] = [3.35, 0.0284, 0.5486, 0.0591, 0.0524];
const TWELVE_VOLTS: [f64; 5] = [4.98, 0.0266, 1.5112, 0.0616, 0.12];

/// Returns a bench with servos that the arm's file does not name.
fn bench(servo: Option<TrueServo>) -> Bench {
    let finite = |value: f64| Finite::new(value).unwrap();
    Bench::of(NodeClock::simulated(), |file| {
        let Some(TrueServo { figures, gain_p }) = servo else {
            return;
        };
        let [stall, armature, back_emf, viscous, friction] = figures.map(finite);
        let error_gain = finite(0.165 * gain_p / 32.0);
        file.servo.as_mut().unwrap().error_gain = error_gain;
        file.simulation.servo = Some(SimulatedServo {
            stall_n_m: stall,
            error_gain,
            armature_kg_m2: armature,
            back_emf_n_m_s: back_emf,
            viscous_n_m_s: viscous,
            friction_n_m: friction,
            friction_per_load: finite(0.0),
            stribeck: None,
        });
    })
}

/// Touches once, and returns where if anything was felt.
async fn touch(
    bench: &Bench,
    at_mm: [f64; 2],
    from_mm: f64,
) -> Option<Result<JointVector, VisitKind>> {
    let start = bench.start_rad();
    let plan = probe_from(&bench.scene, &start, (at_mm, from_mm), 0, &SilentObserver).unwrap();
    let proof = bench.check(plan.trajectory, bench.permit());
    let stops = bench.motion.stops_requested();
    let outcome = bench.motion.run(proof, stops).await.unwrap();
    let MotionOutcome::Reached { visits, .. } = outcome else {
        panic!("{outcome:?}");
    };
    let visit = visits.first()?;
    match visit.kind {
        VisitKind::Contact => Some(Ok(visit.position_rad)),
        VisitKind::NoContact { .. } => None,
        kind => Some(Err(kind)),
    }
}

/// Returns the mean height of three touches beside each other from several heights, as `align` makes them.
async fn felt_mm(bench: &Bench, [x, y]: [f64; 2], raised_mm: f64) -> f64 {
    place_sheet(bench, raised_mm);
    let touches = [
        ([x, y], PROBE_FROM_MM),
        ([x + 1.0, y + 0.7], raised_mm + 8.0),
        ([x - 1.0, y - 0.7], raised_mm + 11.0),
    ];
    let mut sum_mm = 0.0;
    for (at_mm, from_mm) in touches {
        let felt = touch(bench, at_mm, from_mm).await;
        let Some(Ok(joints_rad)) = felt else {
            panic!("at {at_mm:?} on a sheet {raised_mm} mm high: {felt:?}");
        };
        sum_mm += height_mm(bench, &joints_rad);
    }
    sum_mm / touches.len() as f64
}

/// Asserts how far what is felt of each height, and of its change from the first, is from the truth.
async fn assert_felt(bench: &Bench, places: &[[f64; 2]], raised: &[f64], most_mm: f64) {
    let mut changes_mm = Vec::new();
    for &at_mm in places {
        let mut first_mm = None;
        for raised_mm in raised {
            let off_mm = felt_mm(bench, at_mm, *raised_mm).await - raised_mm;
            assert!(
                off_mm.abs() < most_mm,
                "at {at_mm:?} on a sheet {raised_mm} mm high: off by {off_mm:.2} mm"
            );
            match first_mm {
                None => first_mm = Some(off_mm),
                Some(first_mm) => changes_mm.push((off_mm - first_mm).abs()),
            }
        }
    }
    changes_mm.sort_by(f64::total_cmp);
    let nearly_all = changes_mm.len() - 1 - changes_mm.len() / 20;
    let (nearly_mm, all_mm) = (changes_mm[nearly_all], changes_mm[changes_mm.len() - 1]);
    assert!(
        nearly_mm < CHANGE_MM && all_mm < most_mm,
        "95 % of the changes are within {nearly_mm:.2} mm, all within {all_mm:.2}"
    );
}

#[tokio::test]
async fn a_change_of_height_is_felt_whole() {
    let raised = [0.0, -0.3, -0.5, -1.0, -1.5, -2.0, -3.0, 1.5];
    assert_felt(&bench(None), &PLACES, &raised, 0.3).await;
}

/// Friction of the 12 V servo and half of a gain let the joints creep in other ways; the arm's file does not know.
#[tokio::test]
async fn servos_that_the_arms_file_does_not_name_feel_a_change_as_well() {
    // Three places with each run, all of them in `just slow`.
    let is_slow = std::env::var_os("STEADYHAND_CASES").is_some();
    let places = if is_slow { &PLACES[..] } else { &PLACES[..3] };
    for (figures, gain_p, raised) in [
        (TWELVE_VOLTS, 32.0, [0.0, -0.5, -2.0]),
        (TWELVE_VOLTS, 16.0, [0.0, 1.0, 2.0]),
        (SEVEN_VOLTS, 16.0, [0.0, -0.5, -1.5]),
    ] {
        let bench = bench(Some(TrueServo { figures, gain_p }));
        assert_felt(&bench, places, &raised, 0.3).await;
    }
}

/// Loads of servos without figures tell no force: their lag and load pass a threshold some tenths of a millimetre late.
#[tokio::test]
async fn servos_that_follow_with_a_lag_feel_a_change_as_well() {
    let bench = Bench::lagging(NodeClock::simulated());
    assert_felt(&bench, &PLACES, &[0.0, -0.5, -1.0, -2.0, -3.0], 1.0).await;
}

/// Approaches of a sheet that is not there: a few with each run, a thousand in `just slow`.
#[tokio::test]
async fn nothing_is_felt_in_free_air() {
    let requested = std::env::var("STEADYHAND_CASES").ok();
    let requested: usize = requested.and_then(|text| text.parse().ok()).unwrap_or(256);
    let each = (requested / 32).clamp(8, 250);
    let mut chance: u64 = 7;
    let mut share = || {
        chance = chance
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (chance >> 33) as f64 / f64::from(1_u32 << 31)
    };
    let twelve = |gain_p| TrueServo {
        figures: TWELVE_VOLTS,
        gain_p,
    };
    let seven = TrueServo {
        figures: SEVEN_VOLTS,
        gain_p: 16.0,
    };
    for servo in [None, Some(twelve(32.0)), Some(twelve(16.0)), Some(seven)] {
        let bench = bench(servo);
        place_sheet(&bench, -40.0);
        for _ in 0..each {
            let at_mm = [4.0 + 92.0 * share(), 4.0 + 92.0 * share()];
            let from_mm = PROBE_FROM_MM - 2.0 + 4.0 * share();
            let felt = touch(&bench, at_mm, from_mm).await;
            assert!(felt.is_none(), "{at_mm:?} from {from_mm}: {felt:?}");
        }
    }
}
