//! Joints moved by hand, as recorded counts: their results, and the problems that are reported.

use crate::{RangeRecorder, RangeResult, ServoTicks};
use arm::ArmModel;
use scene::SceneLibrary;
use std::sync::Arc;

fn arm() -> Arc<ArmModel> {
    SceneLibrary::default().arm("so101").unwrap()
}

/// Moves servo after servo from 2048 to one end, to the other, and to the positive end.
struct Hand {
    /// Each servo with its two ends, the positive one last, in the order in which they are moved.
    ends: Vec<(u8, i32, i32)>,
    zero: i32,
}

impl Default for Hand {
    fn default() -> Self {
        Self {
            ends: (1..=5).map(|id| (id, 1000, 3100)).collect(),
            zero: 2060,
        }
    }
}

impl Hand {
    fn result(&self) -> Result<RangeResult, Vec<String>> {
        let arm = arm();
        let mut ranges = RangeRecorder::new(&arm);
        let mut ticks: ServoTicks = (1..=6).map(|id| (id, self.zero)).collect();
        ranges.observe(&ticks);
        assert!(ranges.task().unwrap().contains("to its zero"));
        ranges.next();
        for (id, first, last) in &self.ends {
            for to in [*first, *last] {
                let mut now = ticks[id];
                while now != to {
                    now += (to - now).clamp(-150, 150);
                    let count = if (0..=8192).contains(&to) && to < 4096 && *first >= 0 {
                        now.rem_euclid(4096)
                    } else {
                        now
                    };
                    ticks.insert(*id, count);
                    ranges.observe(&ticks);
                }
            }
            assert!(ranges.table().contains(" to "), "{}", ranges.table());
            ranges.next();
        }
        ranges.result()
    }

    fn problems(&self) -> String {
        self.result().unwrap_err().join("; ")
    }
}

#[test]
fn zeros_ranges_and_directions_are_found() {
    let mut hand = Hand::default();
    // The elbow counts in reverse, and the wrist stops early.
    hand.ends[2] = (3, 3100, 1000);
    hand.ends[3] = (4, 1500, 2700);
    let result = hand.result().unwrap();
    for id in 1..=5 {
        assert_eq!(result.new[&format!("zero_tick of servo {id}")], [2060.0]);
        let sign = if id == 3 { -1.0 } else { 1.0 };
        assert_eq!(result.new[&format!("sign of servo {id}")], [sign], "{id}");
    }
    let wrist = |end: &str| result.new[&format!("{end} of wrist_flex")][0].to_degrees();
    let deg = |ticks: f64| ticks * 360.0 / 4096.0;
    assert!((wrist("lower_rad") - (deg(1500.0 - 2060.0) + 2.0)).abs() < 0.01);
    assert!((wrist("upper_rad") - (deg(2700.0 - 2060.0) - 2.0)).abs() < 0.01);
    // The elbow's ends are reversed, and no limit is wider than the file's.
    let elbow = result.new["upper_rad of elbow_flex"][0];
    assert!((elbow.to_degrees() - (deg(1060.0) - 2.0)).abs() < 0.01 && elbow < 1.69);
    assert!((result.turn_deg - deg(12.0)).abs() < 1e-9);
    let wide = Hand {
        ends: (1..=5).map(|id| (id, 300, 3800)).collect(),
        ..Hand::default()
    };
    let wide = wide.result().unwrap();
    assert_eq!(
        wide.new["upper_rad of elbow_flex"],
        wide.old["upper_rad of elbow_flex"]
    );
}

#[test]
fn problems_of_counts_are_named() {
    let with = |place: usize, ends: (u8, i32, i32)| {
        let mut hand = Hand::default();
        hand.ends[place] = ends;
        hand.problems()
    };
    let problems = with(1, (2, 1900, 2200));
    assert!(problems.contains("shoulder_lift moved by"), "{problems}");
    let problems = with(1, (3, 1000, 3100));
    assert!(
        problems.contains("servo 3") && problems.contains("swapped"),
        "{problems}"
    );
    let problems = with(4, (5, -3000, 9000));
    assert!(
        problems.contains("wrist_roll") && problems.contains("one turn"),
        "{problems}"
    );
    let unfinished = Hand {
        ends: vec![(1, 1000, 3100)],
        ..Hand::default()
    };
    assert!(unfinished.problems().contains("every joint"));
    let off_centre = Hand {
        zero: 3500,
        ..Hand::default()
    };
    // From 3500 each joint is moved between 1000 and 3100: its zero is the end of its range.
    assert!(
        off_centre.problems().contains("its range"),
        "{}",
        off_centre.problems()
    );
}

#[test]
fn a_count_that_wraps_is_reported() {
    let arm = arm();
    let mut ranges = RangeRecorder::new(&arm);
    let all = |ticks: i32| -> ServoTicks { (1..=5).map(|id| (id, ticks)).collect() };
    ranges.observe(&all(3900));
    ranges.next();
    for ticks in [3600, 3300, 3600, 3900, 100, 400, 700] {
        ranges.observe(&[(1, ticks)].into());
    }
    ranges.next();
    let problems = ranges.result().unwrap_err().join("; ");
    assert!(
        problems.contains("servo 1 of shoulder_pan wraps"),
        "{problems}"
    );
}
