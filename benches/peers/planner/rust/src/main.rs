//! `k`'s Jacobian solver on the stroke, and parry's distances on the capsules.

use std::path::Path;


use cpu_time::ProcessTime;
use k::nalgebra as na;
use k::{InverseKinematicsSolver, JacobianIkSolver, SerialChain};
use serde_json::{json, Value};

fn main() {
    let folder = std::env::args().nth(1).expect("the folder of workloads");
    let folder = Path::new(&folder);
    stroke(folder);
    capsules(folder);
}

fn load(folder: &Path, name: &str) -> Value {
    serde_json::from_str(&std::fs::read_to_string(folder.join(name)).unwrap()).unwrap()
}

fn tell(work: &str, who: &str, seconds: f64, of: usize, right: usize, figure: f64) {
    println!("{}", json!({"work": work, "who": who, "seconds": seconds, "of": of, "right": right, "figure": figure}));
}

fn pose(rows: &Value) -> na::Isometry3<f64> {
    let at = |r: usize, c: usize| rows[r][c].as_f64().unwrap();
    let rotation = na::Matrix3::from_fn(at);
    na::Isometry3::from_parts(
        na::Translation3::new(at(0, 3), at(1, 3), at(2, 3)),
        na::UnitQuaternion::from_matrix(&rotation),
    )
}

fn stroke(folder: &Path) {
    let chain = k::Chain::<f64>::from_urdf_file(folder.join("arm.urdf")).unwrap();
    let arm = SerialChain::from_end(chain.find_link("tip").unwrap());
    let work = load(folder, "stroke.json");
    let seed: Vec<f64> = work["seed"].as_array().unwrap().iter().map(|v| v.as_f64().unwrap()).collect();
    let poses: Vec<_> = work["poses"].as_array().unwrap().iter().map(pose).collect();
    let solver = JacobianIkSolver::new(1e-6, 1e-6, 0.5, 100);
    arm.set_joint_positions(&seed).unwrap();
    let mut right = 0;
    let begun = ProcessTime::now();
    for pose in &poses {
        // It starts from where the arm is: the waypoint before.
        right += usize::from(solver.solve(&arm, pose).is_ok());
    }
    tell("stroke", "k", begun.elapsed().as_secs_f64(), poses.len(), right, 0.0);
}

fn capsules(folder: &Path) {
    use parry3d_f64::math::{Pose, Vector};
    use parry3d_f64::query::distance;
    use parry3d_f64::shape::Capsule;
    let work = load(folder, "capsules.json");
    let point = |of: &Value| Vector::new(of[0].as_f64().unwrap(), of[1].as_f64().unwrap(), of[2].as_f64().unwrap());
    let capsules: Vec<Capsule> = work["capsules"]
        .as_array()
        .unwrap()
        .iter()
        .map(|c| Capsule::new(point(&c[0]), point(&c[1]), c[2].as_f64().unwrap()))
        .collect();
    let pairs: Vec<(usize, usize)> = work["pairs"]
        .as_array()
        .unwrap()
        .iter()
        .map(|p| (p[0].as_u64().unwrap() as usize, p[1].as_u64().unwrap() as usize))
        .collect();
    let (rounds, here) = (2_000, Pose::IDENTITY);
    let mut nearest = f64::INFINITY;
    let begun = ProcessTime::now();
    for _ in 0..rounds {
        nearest = f64::INFINITY;
        for (a, b) in std::hint::black_box(&pairs) {
            let gap = distance(&here, &capsules[*a], &here, &capsules[*b]).unwrap().distance;
            nearest = nearest.min(gap);
        }
    }
    tell("capsules", "parry", begun.elapsed().as_secs_f64(), rounds, rounds, nearest);
}
