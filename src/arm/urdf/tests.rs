//! Tests of the import: agreement with the URDF's own frames, and what is refused.
#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "a failing test may panic"
)]

use nalgebra::{Isometry3, Point3, Vector3};
use proptest::prelude::*;

use super::*;
use base::units::JointVector;

const ARM: &str = r#"<robot name="two_bones">
  <link name="world"/>
  <link name="foot">
    <collision><origin xyz="0 0 0.05"/><geometry><cylinder radius="0.04" length="0.1"/></geometry></collision>
  </link>
  <link name="upper">
    <visual><origin xyz="0.1 0 0" rpy="0 0 0"/><geometry><box size="0.2 0.03 0.04"/></geometry></visual>
  </link>
  <link name="lower"/>
  <link name="slide"/>
  <link name="hand"/>
  <joint name="stand" type="fixed"><parent link="world"/><child link="foot"/><origin xyz="1 2 3"/></joint>
  <joint name="shoulder" type="revolute">
    <parent link="foot"/><child link="upper"/><origin xyz="0 0 0.1" rpy="0 0 1.5707963267948966"/>
    <axis xyz="0 1 0"/><limit lower="-1" upper="1.5" velocity="2" effort="1"/>
  </joint>
  <joint name="elbow" type="continuous">
    <parent link="upper"/><child link="lower"/><origin xyz="0.2 0 0"/>
    <axis xyz="0 0 2"/><limit velocity="3" effort="1"/>
  </joint>
  <joint name="slider" type="prismatic">
    <parent link="lower"/><child link="slide"/><origin xyz="0.1 0 0"/>
    <axis xyz="1 0 0"/><limit lower="0" upper="0.04" velocity="1" effort="1"/>
  </joint>
  <joint name="wrist" type="fixed"><parent link="slide"/><child link="hand"/><origin xyz="0 0 0.01"/></joint>
</robot>"#;

fn held(name: &str, position: f64) -> Vec<(String, f64)> {
    vec![(name.to_owned(), position)]
}

fn import_arm(text: &str) -> Result<UrdfImport, UrdfError> {
    let slider = held("slider", 0.02);
    let options = UrdfOptions {
        held: &slider,
        ..UrdfOptions::new("foot", "hand")
    };
    import(text, &options)
}

fn refused(text: &str) -> String {
    import_arm(text).unwrap_err().to_string()
}

#[test]
fn fixed_and_held_joints_become_part_of_the_next_origin() {
    let found = import_arm(ARM).unwrap();
    let arm = ArmModel::new(found.file.clone()).unwrap();
    assert_eq!(arm.dof(), 2);
    let straight = arm.chain.forward(&JointVector::zeros(2));
    // A quarter turn about z lays x along y: 0.2 + 0.1 + 0.02 m out, 0.1 + 0.01 m up.
    assert!((straight.translation.vector - Vector3::new(0.0, 0.32, 0.11)).norm() < 1e-12);
    let bent = arm.chain.forward(&JointVector::from_slice(&[
        0.0,
        std::f64::consts::FRAC_PI_2,
    ]));
    assert!((bent.translation.vector - Vector3::new(-0.12, 0.2, 0.11)).norm() < 1e-12);
    assert!(found.assumed.iter().any(|line| line.contains("`slider`")));
}

#[test]
fn limits_in_degrees_are_refused() {
    let with = |limits: &str| import_arm(&ARM.replace(r#"lower="-1" upper="1.5""#, limits));
    with(r#"lower="-6.2832" upper="6.2832""#).unwrap();
    let error = with(r#"lower="-110" upper="110""#).unwrap_err();
    let error = error.to_string();
    assert!(error.contains("-110 to 110 rad"), "{error}");
    assert!(error.contains("degrees"), "{error}");
}

#[test]
fn capsules_hold_the_whole_of_their_shapes() {
    let found = import_arm(ARM).unwrap();
    let arm = ArmModel::new(found.file).unwrap();
    let names: Vec<&str> = arm.capsules.iter().map(|c| c.name.as_str()).collect();
    assert_eq!(names, ["foot", "upper"]);
    let upper = &arm.capsules[1];
    assert_eq!(upper.joints_before, 1);
    for corner in 0..8_u8 {
        let side = |bit: u8, half: f64| if corner & bit == 0 { half } else { -half };
        let corner_m = Point3::new(0.1 + side(1, 0.1), side(2, 0.015), side(4, 0.02));
        let distance_m =
            kin::capsule::segments_apart_m((&upper.from_m, &upper.to_m), (&corner_m, &corner_m));
        assert!(distance_m <= upper.radius_m + 1e-12);
    }
}

#[test]
fn what_is_written_out_is_read_back_the_same() {
    let found = import_arm(ARM).unwrap();
    let text = found.toml().unwrap();
    assert!(text.starts_with("# Imported"));
    let back: ArmFile = toml::from_str(&text).unwrap();
    let q = JointVector::from_slice(&[0.3, -1.1]);
    let (a, b) = (
        ArmModel::new(found.file).unwrap(),
        ArmModel::new(back).unwrap(),
    );
    assert_eq!(a.chain.forward(&q), b.chain.forward(&q));
    assert_eq!(a.capsules.len(), b.capsules.len());
}

#[test]
fn a_joint_without_a_largest_speed_is_slow_and_listed() {
    for none in [r#"velocity="0""#, ""] {
        let text = ARM.replacen(r#"velocity="2""#, none, 1);
        let found = import_arm(&text).unwrap();
        let speed = found.file.joints.first().unwrap().velocity_max_rad_s;
        assert!(
            (speed.get() - VELOCITY_ASSUMED_RAD_S).abs() < 1e-12,
            "{none}"
        );
        let listed = |text: &String| text.contains("`shoulder`");
        assert!(found.assumed.iter().any(listed), "{:?}", found.assumed);
    }
}

#[test]
fn every_refusal_names_the_element_and_its_line() {
    let cases = [
        (
            r#"upper="1.5" velocity="2""#,
            r#"upper="-2" velocity="2""#,
            r#"line 13, <joint name="shoulder">: its limits -1 to -2 rad leave no range"#,
        ),
        (
            r#"velocity="2""#,
            r#"velocity="-2""#,
            r#"line 13, <joint name="shoulder">: needs <limit velocity="#,
        ),
        (
            r#"<axis xyz="0 1 0"/>"#,
            r#"<axis xyz="0 0 0"/>"#,
            "its axis has no direction",
        ),
        (
            r#"<axis xyz="0 1 0"/>"#,
            r#"<axis xyz="0 1"/>"#,
            "line 15, <axis>: xyz has 2 numbers; 3 are needed",
        ),
        (
            r#"xyz="0 0 0.1" rpy"#,
            r#"xyz="0 0 nan" rpy"#,
            "line 14, <origin>: xyz is NaN",
        ),
        (
            r#"xyz="0 0 0.1" rpy"#,
            r#"xyz="0 0 one" rpy"#,
            "line 14, <origin>: xyz is `one`; a number is needed",
        ),
        (
            r#"type="continuous""#,
            r#"type="floating""#,
            "its type is `floating`",
        ),
        (
            r#"<parent link="upper"/>"#,
            r#"<parent link="arm"/>"#,
            "there is no link `arm`",
        ),
        (
            r#"<parent link="foot"/>"#,
            r#"<parent link="hand"/>"#,
            "is part of a closed loop of joints",
        ),
        (
            r#"<child link="lower"/>"#,
            r#"<child link="upper"/>"#,
            "carries link `upper`, as joint `shoulder` does",
        ),
        (
            r#"<link name="slide"/>"#,
            r#"<link name="lower"/>"#,
            "its name is used twice",
        ),
        (
            r#"size="0.2 0.03 0.04""#,
            r#"size="0.2 0 0.04""#,
            "needs size=",
        ),
        (
            r#"radius="0.04""#,
            r#"radius="-1""#,
            "line 4, <cylinder>: radius is -1; it must be above 0 m",
        ),
        (
            r#"<axis xyz="0 0 2"/>"#,
            r#"<mimic joint="shoulder"/>"#,
            "follows another joint",
        ),
        ("<robot", "<sdf", "not XML"),
    ];
    for (from, to, expected) in cases {
        let changed = ARM.replacen(from, to, 1);
        assert_ne!(changed, ARM, "{from}");
        let error = refused(&changed);
        assert!(error.contains(expected), "{to}: {error}");
    }
}

#[test]
fn a_link_that_is_not_there_is_refused_with_the_nearest() {
    let error = import(ARM, &UrdfOptions::new("foot", "hnad"))
        .unwrap_err()
        .to_string();
    assert!(error.contains("`hnad`; nearest of"), "{error}");
    let error = import(ARM, &UrdfOptions::new("hand", "foot"))
        .unwrap_err()
        .to_string();
    assert!(error.contains("`world`"), "{error}");
    let error = import(ARM, &UrdfOptions::new("foot", "hand"))
        .unwrap_err()
        .to_string();
    assert!(error.contains("turning joints"), "{error}");
    let error = import(ARM, &UrdfOptions::new("foot", "foot"))
        .unwrap_err()
        .to_string();
    assert!(error.contains("joint between"), "{error}");
}

#[test]
fn too_much_of_anything_is_refused() {
    let error = refused(&" ".repeat(BYTES_MAX + 1));
    assert!(error.contains("bytes; at most"), "{error}");
    let attributes: String = (0..2000).map(|i| format!("a{i}='' ")).collect();
    assert!(refused(&format!("<robot {attributes}/>")).contains("one tag"));
    let deep = format!("<robot>{}{}</robot>", "<a>".repeat(40), "</a>".repeat(40));
    assert!(refused(&deep).contains("nested"));
    let many = format!("<robot>{}</robot>", "<a/>".repeat(60_000));
    assert!(refused(&many).contains("not XML: nodes limit"));
    let spaces = format!("<robot>{}</robot>", "<a xmlns='b'/>".repeat(100));
    assert!(refused(&spaces).contains("namespaces"));
    let laughs = "<!DOCTYPE r [<!ENTITY a 'ha'>]><robot name='&a;'/>";
    assert!(refused(laughs).contains("not XML"));
    let joints: String = (0..9)
        .map(|i| format!(r#"<link name="l{i}"/><joint name="j{i}" type="revolute"><parent link="l{i}"/><child link="l{}"/><limit lower="-1" upper="1" velocity="1"/></joint>"#, i + 1))
        .collect();
    let nine_joints = format!(r#"<robot>{joints}<link name="l9"/></robot>"#);
    let error = import(&nine_joints, &UrdfOptions::new("l0", "l9"))
        .unwrap_err()
        .to_string();
    assert!(error.contains("is joint 8; 7 are possible"), "{error}");
}

/// Origin, its roll, pitch and yaw, axis, position in rad or m, and whether the joint slides.
type Step = ([f64; 3], [f64; 3], [f64; 3], f64, bool);

/// Returns the tool's pose from the URDF's figures, one joint at a time and independently of the import: each
/// line of figures is an origin, an axis and the position in rad or m.
fn tool_pose(steps: &[Step]) -> Isometry3<f64> {
    let mut pose = nalgebra::Matrix4::<f64>::identity();
    for (xyz, [r, p, y], axis, position, slides) in steps {
        let rotation = nalgebra::Rotation3::from_axis_angle(&Vector3::z_axis(), *y)
            * nalgebra::Rotation3::from_axis_angle(&Vector3::y_axis(), *p)
            * nalgebra::Rotation3::from_axis_angle(&Vector3::x_axis(), *r);
        pose *=
            nalgebra::Matrix4::new_translation(&Vector3::from(*xyz)) * rotation.to_homogeneous();
        pose *= if *slides {
            nalgebra::Matrix4::new_translation(&(Vector3::from(*axis) * *position))
        } else {
            nalgebra::Rotation3::from_axis_angle(
                &Unit::new_normalize(Vector3::from(*axis)),
                *position,
            )
            .to_homogeneous()
        };
    }
    nalgebra::try_convert(pose).unwrap()
}

const TWO_ARMS: &str = include_str!("../../../tests/robots/dual_wxai.urdf");

#[test]
fn the_left_of_two_arms_is_where_its_urdf_puts_it() {
    let carriage = held("left/left_carriage_joint", 0.04);
    let options = UrdfOptions {
        held: &carriage,
        ..UrdfOptions::new("left/base_link", "left/tattoo_needle")
    };
    let found = import(TWO_ARMS, &options).unwrap();
    let arm = ArmModel::new(found.file.clone()).unwrap();
    assert_eq!(arm.dof(), 6);
    assert!((found.file.joints[5].velocity_max_rad_s.get() - 7.0).abs() < 1e-12);
    let q = [0.4, 1.1, 0.9, -0.3, 0.5, -1.2];
    let (z, x) = ([0.0, 0.0, 1.0], [1.0, 0.0, 0.0]);
    let (y, minus_y, minus_z) = ([0.0, 1.0, 0.0], [0.0, -1.0, 0.0], [0.0, 0.0, -1.0]);
    let none = [0.0; 3];
    let expected = tool_pose(&[
        ([0.0, 0.0, 0.05725], none, z, q[0], false),
        ([0.02, 0.0, 0.04625], none, y, q[1], false),
        ([-0.264, 0.0, 0.0], none, minus_y, q[2], false),
        ([0.245, 0.0, 0.06], none, minus_y, q[3], false),
        ([0.06775, 0.0, 0.0455], none, minus_z, q[4], false),
        ([0.02895, 0.0, -0.0455], none, x, q[5], false),
        ([0.0865, 0.023, 0.0], none, y, 0.04, true),
        (
            [0.051, 0.051, 0.0],
            [
                -std::f64::consts::FRAC_PI_2,
                0.0,
                std::f64::consts::FRAC_PI_4,
            ],
            x,
            0.0,
            false,
        ),
        ([0.0, 0.0, -0.065], none, x, 0.0, false),
    ]);
    let pose = arm.chain.forward(&JointVector::from_slice(&q));
    assert!((pose.translation.vector - expected.translation.vector).norm() < 1e-9);
    assert!(pose.rotation.angle_to(&expected.rotation) < 1e-9);
    assert!(ArmModel::new(toml::from_str(&found.toml().unwrap()).unwrap()).is_ok());
    let from_root = UrdfOptions {
        base: "root",
        ..options
    };
    let moved = ArmModel::new(import(TWO_ARMS, &from_root).unwrap().file).unwrap();
    let shift = moved
        .chain
        .forward(&JointVector::from_slice(&q))
        .translation
        .vector
        - pose.translation.vector;
    assert!((shift - Vector3::new(0.0, 0.2675, 0.0)).norm() < 1e-9);
}

/// One for each joint that an arm can have.
const PRIMES: [f64; 7] = [2.0, 3.0, 5.0, 7.0, 11.0, 13.0, 17.0];

#[test]
fn arms_that_are_shipped_agree_with_their_urdf() {
    let shipped = [
        (
            include_str!("../../../tests/robots/so101.urdf"),
            include_str!("../../../scenes/arms/so101.toml"),
        ),
        (
            include_str!("../../../tests/robots/omx.urdf"),
            include_str!("../../../scenes/arms/omx.toml"),
        ),
        (
            include_str!("../../../tests/robots/widowx250s.urdf"),
            include_str!("../../../scenes/arms/widowx250s.toml"),
        ),
        (
            include_str!("../../../tests/robots/roarm_m2.urdf"),
            include_str!("../../../scenes/arms/roarm-m2.toml"),
        ),
        (
            include_str!("../../../tests/robots/roarm_m3.urdf"),
            include_str!("../../../scenes/arms/roarm-m3.toml"),
        ),
    ];
    for (urdf, toml) in shipped {
        let ours = ArmModel::new(toml::from_str(toml).unwrap()).unwrap();
        let theirs = ArmModel::new(
            import(urdf, &UrdfOptions::new("base", "tool"))
                .unwrap()
                .file,
        )
        .unwrap();
        let (lower, upper) = (&ours.limits.lower_rad, &ours.limits.upper_rad);
        let span = upper.zip(lower, |upper, lower| upper - lower);
        for step in 0..1000_u32 {
            // Multiples of irrational numbers fill the joints' ranges evenly, each joint by its own.
            let shares = PRIMES.map(|prime| (f64::from(step) * prime.sqrt()).fract());
            let turn = span.zip(&JointVector::from_slice(&shares), |span, share| {
                span * share
            });
            let q = lower.zip(&turn, |lower, turn| lower + turn);
            let (a, b) = (ours.chain.forward(&q), theirs.chain.forward(&q));
            assert!(
                (a.translation.vector - b.translation.vector).norm() < 1e-9,
                "{}",
                ours.file.name
            );
            assert!(
                a.rotation.angle_to(&b.rotation) < 1e-7,
                "{}",
                ours.file.name
            );
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn bytes_changed_by_chance_never_panic(changes in prop::collection::vec((0..ARM.len(), any::<u8>()), 1..12)) {
        let mut bytes = ARM.as_bytes().to_vec();
        for (position, byte) in changes {
            bytes[position] = byte;
        }
        let text = String::from_utf8_lossy(&bytes);
        if let Ok(found) = import_arm(&text) {
            prop_assert!(ArmModel::new(found.file).is_ok());
        }
    }

    #[test]
    fn text_of_any_kind_never_panics(text in "[<>/=\"' a-z0-9.&;!\\-]{0,400}") {
        let _ = import(&text, &UrdfOptions::new("a", "b"));
        let _ = import(&format!("<robot>{text}</robot>"), &UrdfOptions::new("a", "b"));
    }
}
