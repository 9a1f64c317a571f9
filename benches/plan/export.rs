//! The workloads as files, so that other people's programs can be given the same work.

use std::path::Path;

use nalgebra::Isometry3;
use serde_json::{Value, json};
use steadyhand::arm::ArmModel;
use steadyhand::kin::ToolTip;

/// Writes the arm as a URDF whose link `tip` is the pen's, and every workload as JSON or SVG.
pub(crate) fn write(folder: &str) {
    let folder = Path::new(folder);
    std::fs::create_dir_all(folder).unwrap();
    let (arm, tip, ready, poses) = super::stroke_poses();
    let cold = super::cold_poses(&arm, &tip);
    let (_, q, s) = super::spiral_joints();
    let (capsules, pairs) = super::two_arms();
    let files = [
        ("arm.urdf", urdf(&arm, &tip)),
        ("stroke.json", work(&ready, &poses).to_string()),
        ("cold.json", work(&ready, &cold).to_string()),
        (
            "pacing.json",
            json!({
                "s": s, "q": q.iter().map(|q| q.to_vec()).collect::<Vec<_>>(),
                "velocity": super::FASTEST_RAD_S, "acceleration": super::HARDEST_RAD_S2,
                "speed": super::SPEED_M_S,
            })
            .to_string(),
        ),
        ("lines.svg", svg()),
        (
            "capsules.json",
            json!({
                "capsules": capsules.iter().map(|c| {
                    let [a, b] = [c.from_m, c.to_m].map(|p| [p.x, p.y, p.z]);
                    json!([a, b, c.radius_m])
                }).collect::<Vec<Value>>(),
                "pairs": pairs,
            })
            .to_string(),
        ),
    ];
    for (name, text) in files {
        std::fs::write(folder.join(name), text).unwrap();
    }
}

/// Poses as rows of a 4 × 4 matrix.
fn work(ready: &[f64], poses: &[Isometry3<f64>]) -> Value {
    let rows = |pose: &Isometry3<f64>| {
        let m = pose.to_homogeneous();
        (0..4)
            .map(|r| (0..4).map(|c| m[(r, c)]).collect::<Vec<f64>>())
            .collect::<Vec<_>>()
    };
    json!({ "seed": ready, "poses": poses.iter().map(rows).collect::<Vec<_>>() })
}

fn urdf(arm: &ArmModel, tip: &ToolTip) -> String {
    let text_of = |of: &[f64]| {
        let all: Vec<String> = of.iter().map(|v| format!("{v:?}")).collect();
        all.join(" ")
    };
    let mut text = String::from("<robot name=\"arm\">\n<link name=\"link0\"/>\n");
    for (n, (joint, limits)) in arm.file.joints.iter().zip(arm.chain.joints()).enumerate() {
        let [xyz, rpy, axis] =
            [joint.origin_m, joint.rpy_rad, joint.axis].map(|of| text_of(&of.map(|v| v.get())));
        text.push_str(&format!(
            "<link name=\"link{}\"/>\n<joint name=\"{}\" type=\"revolute\"><parent link=\"link{n}\"/><child link=\"link{}\"/><origin xyz=\"{xyz}\" rpy=\"{rpy}\"/><axis xyz=\"{axis}\"/><limit lower=\"{:?}\" upper=\"{:?}\" velocity=\"3\" effort=\"1\"/></joint>\n",
            n + 1, joint.name, n + 1, limits.lower_rad, limits.upper_rad
        ));
    }
    let mount = &arm.file.tool_mount;
    let [xyz, rpy] = [mount.origin_m, mount.rpy_rad].map(|of| text_of(&of.map(|v| v.get())));
    let point = text_of(tip.point_m.coords.as_slice());
    text.push_str(&format!(
        "<link name=\"mount\"/>\n<joint name=\"mount_joint\" type=\"fixed\"><parent link=\"link{}\"/><child link=\"mount\"/><origin xyz=\"{xyz}\" rpy=\"{rpy}\"/></joint>\n<link name=\"tip\"/>\n<joint name=\"tip_joint\" type=\"fixed\"><parent link=\"mount\"/><child link=\"tip\"/><origin xyz=\"{point}\" rpy=\"0 0 0\"/></joint>\n</robot>\n",
        arm.dof()
    ));
    text
}

fn svg() -> String {
    let mut text = String::from(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"230mm\" height=\"230mm\" viewBox=\"-15 -15 230 230\"><g fill=\"none\" stroke=\"black\">\n",
    );
    for line in super::lines() {
        let [[x1, y1], [x2, y2]] = [line.points_mm[0], line.points_mm[1]];
        text.push_str(&format!(
            "<line x1=\"{x1:?}\" y1=\"{y1:?}\" x2=\"{x2:?}\" y2=\"{y2:?}\"/>\n"
        ));
    }
    text.push_str("</g></svg>\n");
    text
}
