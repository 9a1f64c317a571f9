//! Calibrations of LeRobot that are imported, refused and exported.

use std::collections::BTreeMap;

use crate::lerobot::{self, LeRobotError};
use scene::SceneLibrary;

fn read(text: &str) -> lerobot::LeRobotFile {
    serde_json::from_str(text).unwrap()
}

#[test]
fn present_files_of_lerobot_give_zeros_and_narrow_limits() {
    let arm = SceneLibrary::default().arm("so101").unwrap();
    let file = read(
        r#"{"elbow_flex": {"id": 3, "drive_mode": 0, "homing_offset": 1234, "range_min": 1000, "range_max": 3000},
            "shoulder_pan": {"id": 1, "drive_mode": 1, "homing_offset": -5, "range_min": 700, "range_max": 3400},
            "jaw": {"id": 9, "drive_mode": 0, "homing_offset": 0, "range_min": 100, "range_max": 4000}}"#,
    );
    let found = lerobot::import(&file, &arm).unwrap();
    assert_eq!(found.new["zero_tick of servo 3"], [2000.0]);
    assert_eq!(found.new["zero_tick of servo 1"], [2050.0]);
    // 1000 counts to each side are 1.534 rad, less than the file's 1.69; a limit is never widened.
    assert!(
        (found.new["upper_rad of elbow_flex"][0] - 1.533_98).abs() < 1e-4,
        "{found:?}"
    );
    assert!(
        !found.new.contains_key("upper_rad of shoulder_pan"),
        "{found:?}"
    );
    // An arm with only some zeros from the file was not measured as a whole.
    assert_eq!(found.missing, ["shoulder_lift", "wrist_flex", "wrist_roll"]);
    let skipped = found.skipped.join("; ");
    assert!(
        skipped.contains("shoulder_lift, wrist_flex, wrist_roll: "),
        "{skipped}"
    );
    assert!(
        skipped.contains("jaw")
            && skipped.contains("drive mode 1")
            && skipped.contains("homing offsets"),
        "{skipped}"
    );
    assert!((found.turn_deg(&arm) - 48.0 * 360.0 / 4096.0).abs() < 1e-9);
}

#[test]
fn older_files_of_lerobot_give_only_zeros() {
    let arm = SceneLibrary::default().arm("so101").unwrap();
    let file = read(
        r#"{"homing_offset": [-2041, 2056], "drive_mode": [0, 1], "start_pos": [2034, 3052], "end_pos": [3065, -1026],
            "calib_mode": ["DEGREE", "DEGREE"], "motor_names": ["shoulder_pan", "elbow"]}"#,
    );
    let found = lerobot::import(&file, &arm).unwrap();
    assert_eq!(found.new["zero_tick of servo 1"], [2041.0]);
    assert_eq!(found.new["zero_tick of servo 3"], [2056.0]);
    let skipped = found.skipped.join("; ");
    assert!(
        skipped.contains("other way") && skipped.contains("compare it"),
        "{skipped}"
    );
}

/// A file with one joint whose counts are these.
fn one_joint(joint: &str, id: u8, homing: i64, [min, max]: [i64; 2]) -> lerobot::LeRobotFile {
    read(&format!(
        r#"{{"{joint}": {{"id": {id}, "drive_mode": 0, "homing_offset": {homing}, "range_min": {min}, "range_max": {max}}}}}"#
    ))
}

fn import_error(file: &lerobot::LeRobotFile, arm: &str) -> LeRobotError {
    let arm = SceneLibrary::default().arm(arm).unwrap();
    lerobot::import(file, &arm).unwrap_err()
}

/// A joint that turns by less than a turn had the zero and the limits of one that turns all round.
#[test]
fn a_range_that_wrapped_at_the_seam_is_refused() {
    for (joint, id, range) in [
        ("shoulder_lift", 2, [0, 4095]),
        ("shoulder_lift", 2, [17, 4071]),
        ("elbow_flex", 3, [150, 3900]),
        ("shoulder_lift", 2, [1420, 4095]),
        ("wrist_flex", 4, [1700, 4080]),
        ("shoulder_pan", 1, [0, 2600]),
        ("shoulder_pan", 1, [20, 2600]),
        // It turns nearly all round, and was moved through half of that.
        ("wrist_roll", 5, [2000, 4095]),
    ] {
        let error = import_error(&one_joint(joint, id, 0, range), "so101");
        let named = matches!(&error, LeRobotError::Wrapped { name, .. } if name == joint);
        assert!(named, "{joint} {range:?}: {error}");
    }
}

#[test]
fn a_range_of_a_real_joint_is_no_wrapped_one() {
    for (arm, joint, id, range) in [
        ("so101", "shoulder_pan", 1, [748, 3347]),
        ("so101", "shoulder_lift", 2, [812, 3240]),
        ("so101", "wrist_roll", 5, [0, 4095]),
        ("so101", "wrist_roll", 5, [120, 3900]),
        ("koch", "shoulder_lift", 2, [900, 3000]),
        ("koch", "wrist_roll", 5, [0, 4095]),
    ] {
        let arm = SceneLibrary::default().arm(arm).unwrap();
        let imported = lerobot::import(&one_joint(joint, id, -312, range), &arm);
        assert!(imported.is_ok(), "{joint} {range:?}: {imported:?}");
    }
}

#[test]
fn each_count_that_cannot_be_has_its_own_reason() {
    use LeRobotError as E;
    type Reason = fn(&E) -> bool;
    let cases: [(&str, i64, [i64; 2], Reason); 11] = [
        ("shoulder_pan", 0, [-352, 2391], |e| {
            matches!(e, E::Negative { min: -352, .. })
        }),
        ("shoulder_pan", 0, [i64::MIN, i64::MAX], |e| {
            matches!(e, E::Negative { .. })
        }),
        ("wrist_flex", 0, [640, 5210], |e| {
            matches!(
                e,
                E::BeyondATurn {
                    max: 5210,
                    last: 4095,
                    ..
                }
            )
        }),
        ("wrist_flex", 0, [2300, 4500], |e| {
            matches!(e, E::BeyondATurn { .. })
        }),
        ("shoulder_pan", 0, [65_184, 2391], |e| {
            matches!(e, E::Unsigned { signed: -352, .. })
        }),
        ("shoulder_pan", 0, [4_294_966_944, 2391], |e| {
            matches!(e, E::Unsigned { signed: -352, .. })
        }),
        ("shoulder_pan", 4_294_965_466, [752, 3391], |e| {
            matches!(e, E::Unsigned { signed: -1830, .. })
        }),
        ("elbow_flex", 0, [2000, 2010], |e| {
            matches!(e, E::Range { span: 10, .. })
        }),
        ("elbow_flex", 0, [3000, 1000], |e| {
            matches!(e, E::Reversed { .. })
        }),
        ("elbow_flex", 0, [2048, 2048], |e| {
            matches!(e, E::Range { span: 0, .. })
        }),
        ("shoulder_lift", 0, [700, 3000], |e| {
            matches!(
                e,
                E::Id {
                    found: 3,
                    known: 2,
                    ..
                }
            )
        }),
    ];
    for (joint, homing, range, is_reason) in cases {
        let id = match joint {
            "shoulder_pan" => 1,
            "wrist_flex" => 4,
            _ => 3,
        };
        let error = import_error(&one_joint(joint, id, homing, range), "koch");
        assert!(is_reason(&error), "{joint} {homing} {range:?}: {error:?}");
    }
}

#[test]
fn an_old_zero_whose_limits_cross_the_seam_is_refused() {
    let lists = |offset: i64, drive: u8| {
        read(&format!(
            r#"{{"homing_offset": [{offset}], "drive_mode": [{drive}], "motor_names": ["shoulder_lift"]}}"#
        ))
    };
    for (offset, drive, zero) in [
        (7, 1, 7),
        (-4090, 0, 4090),
        (-3120, 0, 3120),
        (2140, 0, -2140),
    ] {
        let error = import_error(&lists(offset, drive), "so101");
        let found = matches!(error, LeRobotError::ZeroOnSeam { zero: found, .. } if found == zero);
        assert!(found, "{offset}: {error}");
    }
    let unsigned = import_error(&lists(4_294_965_156, 0), "so101");
    assert!(matches!(
        unsigned,
        LeRobotError::Unsigned { signed: -2140, .. }
    ));
    let huge = import_error(&lists(i64::MIN, 0), "so101");
    assert!(matches!(huge, LeRobotError::ZeroOnSeam { .. }), "{huge}");
}

#[test]
fn a_file_that_is_no_calibration_of_this_arm_is_named() {
    let lists = |names: &str, modes: &str| {
        read(&format!(
            r#"{{"motor_names": {names}, "homing_offset": [1], "drive_mode": {modes}}}"#
        ))
    };
    let unequal = import_error(&lists(r#"["a", "b"]"#, "[0, 0]"), "so101");
    let expected = LeRobotError::Lists {
        names: 2,
        offsets: 1,
        modes: 2,
    };
    assert_eq!(unequal, expected);
    for file in [lists(r#"["a"]"#, "[0]"), read("{}")] {
        let error = import_error(&file, "so101");
        assert!(matches!(error, LeRobotError::NoneKnown { .. }), "{error}");
    }
}

#[test]
fn what_is_exported_is_imported_again_unchanged() {
    for name in ["so101", "widowx250s"] {
        let arm = SceneLibrary::default().arm(name).unwrap();
        let homing: BTreeMap<u8, i32> = [(1, -12)].into();
        let text = serde_json::to_string(&lerobot::export(&arm, &homing)).unwrap();
        assert!(text.contains("\"homing_offset\":-12"), "{text}");
        let found = lerobot::import(&read(&text), &arm).unwrap();
        assert!(found.missing.is_empty(), "{name}: {:?}", found.missing);
        for (id, new) in &found.new {
            if id.starts_with("zero_tick") {
                assert_eq!(new, &found.old[id], "{name} {id}");
            }
        }
        assert!(found.turn_deg(&arm) < 1e-9);
    }
}
