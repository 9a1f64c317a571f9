//! Tests that the bodies with which the gate judges collisions contain the meshes of the arms.
#![allow(clippy::unwrap_used, reason = "a failing test may panic")]

use nalgebra::{Point3, distance};
use steadyhand::arm::{ArmModel, Capsule};
use steadyhand::scene::SceneLibrary;

/// Points of the meshes of an arm by link, and the shipped arms whose body it is.
const MESHES: [(&str, &[&str]); 3] = [
    (
        include_str!("../robots/so101_mesh.txt"),
        &[
            "so101",
            "so101-12v",
            "so101-sts3250",
            "so101-worn",
            "custom",
        ],
    ),
    (include_str!("../robots/so100_mesh.txt"), &["so100"]),
    (include_str!("../robots/koch_mesh.txt"), &["koch"]),
];

/// The points are rounded.
const ROUNDING_M: f64 = 1e-4;

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
        let tenths: Vec<f64> = point.split(',').map(|at| at.parse().unwrap()).collect();
        let at_m = Point3::from_slice(&tenths) / 1e4;
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
