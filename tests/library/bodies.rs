//! Tests that the shipped arms are where other people's models have them: their links, and the bodies around their meshes.
#![allow(clippy::unwrap_used, reason = "a failing test may panic")]

use nalgebra::{Point3, distance};
use steadyhand::arm::{ArmModel, Capsule};
use steadyhand::scene::SceneLibrary;
use steadyhand::units::JointVector;

/// Points of the meshes of an arm by link, and the shipped arms whose body it is.
const MESHES: [(&str, &[&str]); 6] = [
    (
        include_str!("../robots/so101_mesh.txt"),
        &[
            "so101",
            "so101-12v",
            "so101-hx30",
            "so101-sts3250",
            "so101-worn",
            "custom",
        ],
    ),
    (include_str!("../robots/so100_mesh.txt"), &["so100"]),
    (include_str!("../robots/koch_mesh.txt"), &["koch"]),
    (include_str!("../robots/roarm_m2_mesh.txt"), &["roarm-m2"]),
    (include_str!("../robots/vx300_mesh.txt"), &["vx300"]),
    (
        include_str!("../robots/widowx250s_mesh.txt"),
        &["widowx250s"],
    ),
];

/// Poses that MuJoCo computed with the public model of an arm.
const POSES: [(&str, &str); 2] = [
    ("koch", include_str!("../robots/koch_poses.txt")),
    ("widowx250s", include_str!("../robots/widowx250s_poses.txt")),
];

/// How far a link may be from the model's: a tenth of the least that ink shows.
const LINK_M: f64 = 1e-5;

/// The points are rounded.
const ROUNDING_M: f64 = 1e-4;

/// Returns the numbers of a comma-separated list, scaled.
fn scaled(list: &str, unit: f64) -> Vec<f64> {
    let numbers = list.split(',').map(|at| at.parse::<f64>().unwrap());
    numbers.map(|at| at * unit).collect()
}

fn depth_m(capsule: &Capsule, at_m: &Point3<f64>) -> f64 {
    let along = capsule.to_m - capsule.from_m;
    let share = (at_m - capsule.from_m).dot(&along) / along.norm_squared().max(1e-12);
    let nearest_m = capsule.from_m + along * share.clamp(0.0, 1.0);
    capsule.radius_m - distance(&nearest_m, at_m)
}

/// Returns how deep the least contained point of a line of the file is in the capsules of its link.
fn least_depth_m(arm: &ArmModel, line: &str) -> f64 {
    let (link, points) = line.split_once(": ").unwrap();
    let mut joints = arm.file.joints.iter();
    let joint = joints.position(|joint| joint.name == link);
    assert!(joint.is_some() || link == "base", "{link}");
    let joints_before = joint.map_or(0, |joint| joint + 1);
    let of_link = |capsule: &&Capsule| capsule.joints_before == joints_before;
    let capsules: Vec<&Capsule> = arm.capsules.iter().filter(of_link).collect();
    let depths = points.split(' ').map(|point| {
        let at_m = Point3::from_slice(&scaled(point, 1e-4));
        let depths = capsules.iter().map(|capsule| depth_m(capsule, &at_m));
        depths.fold(f64::NEG_INFINITY, f64::max)
    });
    depths.fold(f64::INFINITY, f64::min)
}

#[test]
fn capsules_contain_the_meshes_of_their_links() {
    let library = SceneLibrary::new(None);
    for (mesh, arms) in MESHES {
        for name in arms {
            let arm = library.arm(name).unwrap();
            let links = mesh.lines().filter(|line| !line.starts_with('#'));
            assert!(
                links.clone().count() > arm.dof(),
                "{name}: a link is missing"
            );
            for line in links {
                let depth_m = least_depth_m(&arm, line);
                let link = line.split(':').next();
                assert!(depth_m > -ROUNDING_M, "{name} {link:?}: {depth_m} m");
            }
        }
    }
}

#[test]
fn links_are_where_mujoco_has_them() {
    let library = SceneLibrary::new(None);
    let in_link = [
        Point3::origin(),
        Point3::new(0.1, 0.0, 0.0),
        Point3::new(0.0, 0.1, 0.0),
    ];
    for (name, poses) in POSES {
        let arm = library.arm(name).unwrap();
        let poses = poses.lines().filter(|line| !line.starts_with('#'));
        assert!(poses.clone().count() >= 50, "{name}: poses are missing");
        for line in poses {
            let (angles, points) = line.split_once(": ").unwrap();
            let q_rad = JointVector::from_slice(&scaled(angles, 1e-5));
            let frames = arm.chain.frames(&q_rad);
            let points = points.split(' ').map(|point| scaled(point, 1e-6));
            assert_eq!(points.clone().count(), in_link.len(), "{line}");
            for (theirs, at_m) in points.zip(in_link) {
                let ours = frames.last().unwrap() * at_m;
                let off_m = distance(&ours, &Point3::from_slice(&theirs));
                assert!(off_m < LINK_M, "{name} at {angles}: {off_m} m");
            }
        }
    }
}
