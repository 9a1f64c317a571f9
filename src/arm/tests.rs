//! Tests of real arms' chains: independent ways of computing the same thing must agree.
#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "a failing test may panic"
)]

use nalgebra::{Point3, Unit, Vector3};
use proptest::prelude::*;

use super::ArmModel;
use base::units::JointVector;
use kin::{IkGoal, KinematicChain, ToolTip};

fn arm(text: &str) -> ArmModel {
    ArmModel::new(toml::from_str(text).unwrap()).unwrap()
}

fn so101() -> ArmModel {
    arm(include_str!("../../scenes/arms/so101.toml"))
}

fn widowx() -> ArmModel {
    arm(include_str!("../../scenes/arms/widowx250s.toml"))
}

/// The places of the tool mount, in mm, were computed from the makers' descriptions by another program. The base of
/// OpenManipulator-X is 17 mm below the description's.
#[test]
fn the_shipped_arms_reach_where_their_makers_descriptions_say() {
    let so100 = include_str!("../../scenes/arms/so100.toml");
    let koch = include_str!("../../scenes/arms/koch.toml");
    let open_manipulator = include_str!("../../scenes/arms/openmanipulator-x.toml");
    let vx300 = include_str!("../../scenes/arms/vx300.toml");
    let rows: [(&str, &[f64], [f64; 3]); 8] = [
        (
            so100,
            &[0.3, 1.5, -1.2, 0.8, 0.5],
            [53.012, -145.572, 73.681],
        ),
        (
            so100,
            &[-1.0, 2.2, -2.0, -0.4, -1.2],
            [-329.381, -185.692, 198.609],
        ),
        (
            koch,
            &[0.3, -0.5, -0.6, -1.2, 0.4],
            [194.185, -65.202, 60.598],
        ),
        (
            koch,
            &[-0.8, 0.2, 0.7, 0.9, -1.5],
            [116.519, 132.217, 159.181],
        ),
        (
            open_manipulator,
            &[0.4, -0.3, 0.9, 0.7],
            [123.585, 47.177, 14.452],
        ),
        (
            open_manipulator,
            &[-0.8, 0.5, -0.6, 1.2],
            [195.207, -188.637, 77.412],
        ),
        (
            vx300,
            &[0.5, -0.4, 0.7, 0.9, 0.3],
            [253.395, 138.43, 172.983],
        ),
        (
            vx300,
            &[-1.2, 0.3, -0.8, -0.5, 2.0],
            [182.782, -470.143, 688.774],
        ),
    ];
    for (file, q_rad, expected_mm) in rows {
        let arm = arm(file);
        let mount = arm.chain.forward(&JointVector::from_slice(q_rad));
        let error_mm = (mount.translation.vector * 1e3 - Vector3::from(expected_mm)).norm();
        assert!(error_mm < 0.01, "{}: {error_mm} mm off", arm.file.name);
    }
}

/// Seven joints, vertical and horizontal axes alternating: a shoulder, an elbow and a wrist, and one redundant joint.
fn seven() -> ArmModel {
    let joint = |index: usize| {
        let (axis, rise_m) = if index.is_multiple_of(2) {
            ("[0.0, 0.0, 1.0]", 0.08)
        } else {
            ("[0.0, 1.0, 0.0]", 0.1)
        };
        let id = index + 1;
        format!(
            r#"
[[joints]]
name = "joint {id}"
origin_m = [0.0, 0.0, {rise_m}]
rpy_rad = [0.0, 0.0, 0.0]
axis = {axis}
lower_rad = -2.1
upper_rad = 2.1
velocity_max_rad_s = 3.0
acceleration_max_rad_s2 = 15.0
servos = [{{ id = {id}, sign = 1, zero_tick = 2048, dead_band_ticks = 1 }}]
"#
        )
    };
    let head = r#"
name = "seven"
about = "an arm for a test"
family = "feetech-sts"
baud = 1000000
"#;
    let tail = r#"
[tool_mount]
origin_m = [0.0, 0.0, 0.05]
rpy_rad = [0.0, 0.0, 0.0]

[[capsules]]
name = "hand"
joint = "joint 7"
from_m = [0.0, 0.0, 0.0]
to_m = [0.0, 0.0, 0.05]
radius_m = 0.02
"#;
    let joints: String = (0..7).map(joint).collect();
    arm(&format!("{head}{joints}{tail}"))
}

fn tip() -> ToolTip {
    ToolTip {
        point_m: Point3::new(0.01, -0.04, 0.005),
        axis: Unit::new_normalize(Vector3::new(0.1, -1.0, 0.05)),
    }
}

/// Returns joints within their limits, from one number between 0 and 1 for each joint.
fn joints(chain: &KinematicChain, fractions: &[f64]) -> JointVector {
    let fractions = JointVector::from_slice(fractions);
    let limits = chain.joints();
    JointVector::zeros(chain.dof()).map(|i, _| {
        limits[i].lower_rad + (limits[i].upper_rad - limits[i].lower_rad) * fractions[i]
    })
}

fn goal_at(chain: &KinematicChain, q: &JointVector) -> (IkGoal, IkGoal, IkGoal) {
    let (point_m, axis) = chain.tip(q, &tip());
    let mut pose = chain.forward(q);
    pose.translation = point_m.into();
    (
        IkGoal::Pose(pose),
        IkGoal::PointAndAxis { point_m, axis },
        IkGoal::PointThenAxis { point_m, axis },
    )
}

/// Recomputes the tip from the mount's pose, and compares.
fn check(
    chain: &KinematicChain,
    q: &JointVector,
    point_m: &Point3<f64>,
    axis: Option<&Unit<Vector3<f64>>>,
) {
    let mount = chain.forward(q);
    let off_m = (mount * tip().point_m - point_m).norm();
    assert!(off_m < 2e-6, "{off_m} m off");
    if let Some(axis) = axis {
        let off_rad = (mount.rotation * tip().axis).angle(axis);
        assert!(off_rad < 2e-5, "{off_rad} rad off");
    }
    for (joint, angle) in chain.joints().iter().zip(q.iter()) {
        assert!(*angle >= joint.lower_rad && *angle <= joint.upper_rad);
    }
}

fn fractions(count: usize) -> impl Strategy<Value = Vec<f64>> {
    proptest::collection::vec(0.05..0.95_f64, count)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn a_place_is_met_where_the_direction_cannot_be(of in fractions(5), lean in proptest::array::uniform3(-0.6..0.6_f64)) {
        let chain = so101().chain;
        let q = joints(&chain, &of);
        let (point_m, axis) = chain.tip(&q, &tip());
        let axis = Unit::new_normalize(axis.into_inner() + Vector3::from(lean));
        let goal = IkGoal::PointThenAxis { point_m, axis };
        // `q` reaches the point, so the solution must not lean more than `q` does.
        let lean = chain.tip(&q, &tip()).1.angle(&axis);
        let found = chain.solve(&tip(), &goal, &q);
        prop_assert!(found.is_ok(), "{:?}", found.unwrap_err());
        let found = found.unwrap();
        check(&chain, &found.q_rad, &point_m, None);
        prop_assert!(found.off_rad <= lean + 1e-6, "{} {lean}", found.off_rad);
    }

    #[test]
    fn a_stretched_arm_has_one_best_lean_from_any_seed_near_it(
        out_m in 0.341..0.361_f64, sideways_m in -0.05..0.05_f64, by in proptest::array::uniform5(-0.003..0.003_f64),
    ) {
        let chain = so101().chain;
        let tip = ToolTip { point_m: Point3::new(0.0, -0.0386, -0.0104), axis: Unit::new_normalize(Vector3::new(0.0, -0.9659, -0.2588)) };
        let goal = IkGoal::PointThenAxis { point_m: Point3::new(sideways_m, -out_m, -0.025), axis: -Vector3::z_axis() };
        let from = JointVector::from_slice(&[0.0, 1.1, -1.28, 1.3, 0.0]);
        let best = chain.solve_anywhere(&tip, &goal, &from, 20).unwrap();
        prop_assert!((0.05..0.5).contains(&best.off_rad), "{}", best.off_rad);
        let seed = best.q_rad.zip(&JointVector::from_slice(&by), |q, by| q + by);
        let again = chain.solve(&tip, &goal, &seed).unwrap();
        prop_assert!(again.q_rad.distance_max(&best.q_rad) < 1e-6, "{again:?} {best:?}");
        prop_assert!(again.steps <= 6, "{}", again.steps);
    }

    #[test]
    fn frames_agree_with_forward(of in fractions(6)) {
        let chain = widowx().chain;
        let q = joints(&chain, &of);
        let (a, b) = (chain.forward(&q), chain.frames(&q).tool);
        prop_assert!((a.translation.vector - b.translation.vector).norm() < 1e-12);
        prop_assert!((a.rotation.to_rotation_matrix().matrix() - b.rotation.matrix()).norm() < 1e-12);
    }

    #[test]
    fn a_point_is_where_the_frames_say(of in fractions(6), at in proptest::array::uniform3(-0.2..0.2_f64)) {
        for chain in [widowx().chain, so101().chain] {
            let q = joints(&chain, &of[..chain.dof()]);
            let at = Point3::from(at);
            prop_assert!((chain.point(&q, &at) - chain.frames(&q).tool * at).norm() < 1e-14);
        }
    }

    #[test]
    fn a_condition_is_over_a_limit_or_not(of in fractions(6), most in 1.0..40.0_f64) {
        for chain in [widowx().chain, so101().chain] {
            let q = joints(&chain, &of[..chain.dof()]);
            let condition = chain.condition(&q, &tip());
            let over = chain.condition_over(&chain.frames(&q), &tip(), most);
            prop_assert_eq!(over, (condition > most).then_some(condition));
        }
    }

    #[test]
    fn the_jacobian_is_the_slope(of in fractions(5), which in 0..5_usize) {
        let chain = so101().chain;
        let q = joints(&chain, &of);
        let step = 1e-6;
        let moved = q.map(|i, v| if i == which { v + step } else { v });
        let slope = (chain.tip(&moved, &tip()).0 - chain.tip(&q, &tip()).0) / step;
        let column = chain.jacobian(&q, &tip())[which];
        prop_assert!((slope - Vector3::new(column[0], column[1], column[2])).norm() < 1e-5);
    }

    #[test]
    fn any_reachable_goal_is_found_cold(of in fractions(6)) {
        let chain = widowx().chain;
        let q = joints(&chain, &of);
        let (pose, axis, _) = goal_at(&chain, &q);
        let (point, direction) = chain.tip(&q, &tip());
        for goal in [pose, axis] {
            let found = chain.solve_anywhere(&tip(), &goal, &JointVector::zeros(6), 300).unwrap();
            check(&chain, &found.q_rad, &point, Some(&direction));
        }
    }

    #[test]
    fn seven_joints_meet_a_pose_a_direction_and_a_place(of in fractions(7), by in proptest::array::uniform7(-0.02..0.02_f64)) {
        let chain = seven().chain;
        let q = joints(&chain, &of);
        let (pose, axis, then) = goal_at(&chain, &q);
        let (point, direction) = chain.tip(&q, &tip());
        for goal in [pose, axis, then] {
            let cold = chain.solve_anywhere(&tip(), &goal, &JointVector::zeros(7), 300).unwrap();
            check(&chain, &cold.q_rad, &point, None);
            let warm = chain.solve(&tip(), &goal, &q.zip(&JointVector::from_slice(&by), |q, by| q + by)).unwrap();
            check(&chain, &warm.q_rad, &point, Some(&direction));
            prop_assert!(warm.q_rad.distance_max(&q) < 0.3);
        }
    }

    #[test]
    fn five_joints_find_every_reachable_point(of in fractions(5)) {
        let chain = so101().chain;
        let q = joints(&chain, &of);
        let (_, _, goal) = goal_at(&chain, &q);
        let found = chain.solve_anywhere(&tip(), &goal, &JointVector::zeros(5), 300).unwrap();
        check(&chain, &found.q_rad, &chain.tip(&q, &tip()).0, None);
    }

    #[test]
    fn a_warm_start_is_met_in_a_few_steps(of in fractions(5), by in -0.01..0.01_f64) {
        let chain = so101().chain;
        let q = joints(&chain, &of);
        let (_, _, goal) = goal_at(&chain, &q);
        let seed = q.map(|_, v| v + by);
        let found = chain.solve(&tip(), &goal, &seed);
        prop_assert!(found.is_ok_and(|found| found.q_rad.distance_max(&q) < 0.5));
    }
}

#[test]
fn a_point_out_of_reach_is_missed_by_its_distance() {
    let chain = so101().chain;
    let goal = IkGoal::PointThenAxis {
        point_m: Point3::new(1.0, 0.0, 0.1),
        axis: -Vector3::z_axis(),
    };
    let missed = chain
        .solve_anywhere(&tip(), &goal, &JointVector::zeros(5), 20)
        .unwrap_err();
    assert!(missed.nearest.off_m > 0.4);
}

#[test]
fn a_part_in_millimetres_is_refused_by_its_name() {
    let text = include_str!("../../scenes/arms/so101.toml");
    for key in ["from_m", "to_m"] {
        let mut file: toml::Table = toml::from_str(text).unwrap();
        let part = file["capsules"].get_mut(1).unwrap();
        let name = part["name"].as_str().unwrap().to_owned();
        part[key][2] = 120.0.into();
        let error = ArmModel::new(file.try_into().unwrap())
            .unwrap_err()
            .to_string();
        let expected = format!("capsule `{name}` is 120 m");
        assert!(error.contains(&expected), "{error}");
    }
}

/// A speed of 0 was once treated as 1 baud.
#[test]
fn refuses_a_bus_without_a_speed() {
    let text = include_str!("../../scenes/arms/so101.toml");
    let mut file: super::ArmFile = toml::from_str(text).unwrap();
    file.baud = 0;
    let error = ArmModel::new(file).unwrap_err().to_string();
    assert!(error.contains("`baud` is 0"), "{error}");
}

/// It was once missed by 5 µm: the solver ran out of steps.
#[test]
fn a_place_that_is_hard_to_come_to_is_met() {
    let chain = so101().chain;
    let of = [
        0.7323379690694986,
        0.6026191334078528,
        0.10220065252866373,
        0.5043974317813253,
        0.3492459084561749,
    ];
    let lean = Vector3::new(0.0, -0.09744592757406112, 0.1911249931388256);
    let q = joints(&chain, &of);
    let (point_m, axis) = chain.tip(&q, &tip());
    let axis = Unit::new_normalize(axis.into_inner() + lean);
    let lean = chain.tip(&q, &tip()).1.angle(&axis);
    let goal = IkGoal::PointThenAxis { point_m, axis };
    let found = chain.solve(&tip(), &goal, &q).unwrap();
    check(&chain, &found.q_rad, &point_m, None);
    assert!(found.off_rad <= lean + 1e-6, "{} {lean}", found.off_rad);
}

/// Returns the error of the shipped arm's file with one value changed everywhere.
fn refusal(key: &str, value: &str) -> String {
    let text = include_str!("../../scenes/arms/so101.toml");
    let changed = |line: &str| match line.split_once(" = ") {
        Some((name, _)) if name == key => format!("{key} = {value}"),
        _ => line.to_owned(),
    };
    let lines: Vec<String> = text.lines().map(changed).collect();
    let file = toml::from_str(&lines.join("\n")).unwrap();
    ArmModel::new(file).unwrap_err().to_string()
}

#[test]
fn refuses_a_part_without_thickness_and_joints_that_no_arm_has() {
    for (key, value, expected) in [
        (
            "radius_m",
            "-0.02",
            "`radius_m` is -0.02; it must be above 0",
        ),
        ("radius_m", "0.0", "`radius_m` is 0; it must be above 0"),
        ("velocity_max_rad_s", "1e308", "0.001 to 40 are possible"),
        ("velocity_max_rad_s", "1e-300", "0.001 to 40 are possible"),
        ("velocity_max_rad_s", "-1.0", "0.001 to 40 are possible"),
        (
            "acceleration_max_rad_s2",
            "1e9",
            "0.001 to 2000 are possible",
        ),
        (
            "acceleration_max_rad_s2",
            "0.0",
            "0.001 to 2000 are possible",
        ),
    ] {
        let error = refusal(key, value);
        assert!(error.contains(expected), "{key} = {value}: {error}");
    }
}

/// An arm without a described body would be kept off nothing.
#[test]
fn refuses_an_arm_whose_moving_body_is_not_described() {
    let text = include_str!("../../scenes/arms/so101.toml");
    let described: super::ArmFile = toml::from_str(text).unwrap();
    let mut without_capsules = described.clone();
    without_capsules.capsules.clear();
    without_capsules.may_touch.clear();
    let mut without_joint = described;
    without_joint.capsules.truncate(1);
    without_joint.capsules[0].joint = None;
    without_joint.may_touch.clear();
    for file in [without_capsules, without_joint] {
        let error = ArmModel::new(file).unwrap_err().to_string();
        assert!(error.contains("capsule"), "{error}");
    }
}

#[test]
fn refuses_names_that_a_terminal_would_obey() {
    let text = include_str!("../../scenes/arms/so101.toml");
    for name in ["\u{1b}[2J", "a\nb", "\u{9b}31m", ""] {
        let valid: super::ArmFile = toml::from_str(text).unwrap();
        let [mut arm, mut joint, mut capsule] = [valid.clone(), valid.clone(), valid];
        name.clone_into(&mut arm.name);
        name.clone_into(&mut joint.joints[0].name);
        name.clone_into(&mut capsule.capsules[0].name);
        for file in [arm, joint, capsule] {
            let error = ArmModel::new(file).unwrap_err().to_string();
            assert!(error.contains("the name `"), "{error}");
            assert!(!error.contains(char::is_control), "{error:?}");
        }
    }
}

/// A node refuses to move by a file whose mechanics differ from those with which it attached its arm.
#[test]
fn other_zeros_limits_links_and_bodies_are_other_mechanics() {
    let text = include_str!("../../scenes/arms/so101.toml");
    let known = arm(text);
    assert!(arm(text).has_same_mechanics(&known));
    for (theirs, ours) in [
        ("zero_tick = 2048", "zero_tick = 2098"),
        ("upper_rad = 1.91986", "upper_rad = 1.95"),
        ("velocity_max_rad_s = 3.0", "velocity_max_rad_s = 4.0"),
        (
            "acceleration_max_rad_s2 = 15.0",
            "acceleration_max_rad_s2 = 16.0",
        ),
        ("origin_m = [0.0, 0.0258", "origin_m = [0.0, 0.03"),
        ("radius_m = 0.0", "radius_m = 0.00"),
    ] {
        assert!(text.contains(theirs), "{theirs}");
        let other = arm(&text.replacen(theirs, ours, 1));
        assert!(!other.has_same_mechanics(&known), "{ours}");
    }
    let about = text.replacen("about = \"", "about = \"Another word: ", 1);
    assert!(arm(&about).has_same_mechanics(&known));
}

/// The torques were computed by MuJoCo from the maker's model, which holds no pen.
#[test]
fn gravity_loads_the_joints_of_an_so101_as_the_makers_model_says() {
    let mut file = so101().file;
    file.masses.pop();
    let arm = ArmModel::new(file).unwrap();
    let rows: [([f64; 5], [f64; 5]); 4] = [
        ([0.0; 5], [0.0, 0.5386, 0.4527, 0.1171, 0.0002]),
        (
            [0.4, 0.5, -0.6, 0.9, 0.3],
            [0.0, 0.6841, 0.4159, 0.0832, 0.0006],
        ),
        (
            [-0.7, -0.9, 1.1, 0.2, -1.0],
            [0.0, 0.1781, 0.4398, 0.1084, -0.0018],
        ),
        (
            [0.0, -1.5, 1.2, 0.8, 0.0],
            [0.0, 0.0257, 0.4209, 0.1039, 0.0001],
        ),
    ];
    for (joints, expected) in rows {
        let torque = arm
            .load
            .torque_n_m(&arm.chain, &JointVector::from_slice(&joints));
        let off = torque.distance_max(&JointVector::from_slice(&expected));
        assert!(off < 2e-3, "{joints:?}: {torque:?}");
    }
}

#[test]
fn a_mass_of_a_joint_that_does_not_exist_is_refused_by_name() {
    let mut file = so101().file;
    file.masses[0].joint = "shoulder".to_owned();
    let error = ArmModel::new(file).unwrap_err().to_string();
    assert!(error.contains("`shoulder`"), "{error}");
}

/// Whatever ids an arm gets on its bus, it is the same arm, its file's ids come back, and no two servos share one.
#[test]
fn moved_ids_are_those_of_the_file_by_one_distance() {
    let files = [
        include_str!("../../scenes/arms/so101.toml"),
        include_str!("../../scenes/arms/koch.toml"),
        include_str!("../../scenes/arms/omx.toml"),
    ];
    for text in files {
        let mut own = arm(text);
        let keyed = own.ids().into_iter().map(|id| (id.to_string(), id));
        own.file.simulation.models = keyed.map(|(key, id)| (key, u16::from(id))).collect();
        let (ids, count) = (own.ids(), u8::try_from(own.ids().len()).unwrap());
        for first in 0..=253 - count {
            let moved = own.with_first_id(first).unwrap();
            let again = moved.with_first_id(first.wrapping_add(7).min(100)).unwrap();
            for arm in [&moved, &again] {
                let back: Vec<u8> = arm.ids().iter().map(|id| arm.id_in_file(*id)).collect();
                assert_eq!(back, ids);
                assert!(arm.has_same_mechanics(&own) && own.has_same_mechanics(arm));
                assert_eq!(arm.file_as_written().joints, own.file.joints);
                for (key, model) in &arm.file.simulation.models {
                    assert_eq!(u16::from(arm.id_in_file(key.parse().unwrap())), *model);
                }
            }
            let lowest = moved.ids().into_iter().min();
            assert_eq!(lowest, Some(first));
            let is_moved = ids.iter().min() != Some(&first);
            assert_eq!(moved.moved_first_id(), lowest.filter(|_| is_moved));
        }
        assert!(own.with_first_id(254 - count).is_err());
    }
}
