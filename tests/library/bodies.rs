//! Tests that the bodies with which the gate judges collisions contain the maker's.
#![allow(clippy::unwrap_used, reason = "a failing test may panic")]

use nalgebra::{Point3, distance};
use steadyhand::arm::Capsule;
use steadyhand::scene::SceneLibrary;

/// Points of the maker's meshes, by link.
const SO101_MESH: &str = include_str!("../robots/so101_mesh.txt");

fn depth_m(capsule: &Capsule, at_m: &Point3<f64>) -> f64 {
    let along = capsule.to_m - capsule.from_m;
    let share = (at_m - capsule.from_m).dot(&along) / along.norm_squared().max(1e-12);
    let nearest_m = capsule.from_m + along * share.clamp(0.0, 1.0);
    capsule.radius_m - distance(&nearest_m, at_m)
}

#[test]
fn capsules_of_every_so101_contain_the_makers_meshes() {
    let library = SceneLibrary::new(None);
    for name in ["so101", "so101-12v", "so101-sts3250", "so101-worn"] {
        let arm = library.arm(name).unwrap();
        let links = SO101_MESH.lines().filter(|line| !line.starts_with('#'));
        for line in links {
            let (link, points) = line.split_once(": ").unwrap();
            let joint = arm.file.joints.iter().position(|joint| joint.name == link);
            let joints_before = joint.map_or(0, |joint| joint + 1);
            let of_link = |capsule: &&Capsule| capsule.joints_before == joints_before;
            let capsules: Vec<&Capsule> = arm.capsules.iter().filter(of_link).collect();
            for point in points.split(' ') {
                let tenths: Vec<f64> = point.split(',').map(|at| at.parse().unwrap()).collect();
                let at_m = Point3::from_slice(&tenths) / 1e4;
                let depths = capsules.iter().map(|capsule| depth_m(capsule, &at_m));
                let deepest_m = depths.fold(f64::NEG_INFINITY, f64::max);
                // The points are rounded.
                assert!(deepest_m > -1e-4, "{name}: {link} at {at_m}: {deepest_m} m");
            }
        }
    }
}
