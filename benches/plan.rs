//! Measures how fast planning is: prints one line a workload. `benches/README.md` says what they are.
#![allow(
    clippy::unwrap_used,
    clippy::print_stdout,
    clippy::indexing_slicing,
    clippy::disallowed_methods,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    clippy::format_push_string,
    reason = "a benchmark prints, measures time, and may panic"
)]

use std::hint::black_box;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use nalgebra::{Isometry3, Point3, UnitQuaternion, Vector3};
use steadyhand::arm::ArmModel;
use steadyhand::clock::NodeClock;
use steadyhand::kin::capsule::{PlacedCapsule, nearest_pair};
use steadyhand::kin::{IkGoal, ToolTip};
use steadyhand::plan::order::{order, travelled_mm};
use steadyhand::plan::velocity_profile::{LinearLimit, PathLimits, pace};
use steadyhand::plan::{PlanObserver, draw};
use steadyhand::scene::{Order, SceneLibrary, SheetStroke};
use steadyhand::units::JointVector;

#[path = "plan/export.rs"]
mod export;

const WAYPOINTS: usize = 2000;
const POSES: usize = 10_000;
const STROKES: usize = 5000;

fn main() {
    let all: [(&str, fn()); 6] = [
        ("whole", whole),
        ("stroke", stroke_ik),
        ("cold", cold_ik),
        ("pacing", pacing),
        ("ordering", ordering),
        ("capsules", capsules),
    ];
    // Cargo adds flags of its own; the first word that is none says which to run.
    let expected: Vec<String> = std::env::args()
        .skip(1)
        .filter(|word| !word.starts_with('-'))
        .collect();
    if let [first, folder] = expected.as_slice()
        && first == "export"
    {
        export::write(folder);
        return;
    }
    for (name, run) in all {
        if expected.is_empty() || expected.iter().any(|target| name.contains(target.as_str())) {
            run();
        }
    }
}

/// The figures of one workload.
struct Told<'a> {
    work: &'a str,
    /// Of one thread's time, for all of it.
    seconds: f64,
    /// Waypoints, poses and the like.
    of: usize,
    /// Number of them that came out right.
    right: usize,
    /// Another figure that can be compared: a length, a duration.
    figure: f64,
    words: String,
}

impl Told<'_> {
    /// One line for people, or for programs where `STEADYHAND_BENCH_JSON` is set.
    fn tell(&self) {
        if std::env::var_os("STEADYHAND_BENCH_JSON").is_some() {
            println!(
                "{}",
                serde_json::json!({
                    "work": self.work, "who": "steadyhand", "seconds": self.seconds,
                    "of": self.of, "right": self.right, "figure": self.figure,
                })
            );
            return;
        }
        println!(
            "{:<22} {:>10.3} ms  {:>9.3} us each  {:>6} of {:<6} {}",
            self.work,
            self.seconds * 1e3,
            self.seconds * 1e6 / self.of as f64,
            self.right,
            self.of,
            self.words
        );
    }
}

/// This thread's time on processors: what others do on the machine is not in it.
fn cpu_s() -> f64 {
    NodeClock::real().thread_cpu_time().as_secs_f64()
}

/// The median of `rounds` measurements, in seconds of processor time.
fn seconds(rounds: usize, mut work: impl FnMut()) -> f64 {
    let mut taken: Vec<f64> = (0..rounds)
        .map(|_| {
            let begun = cpu_s();
            work();
            cpu_s() - begun
        })
        .collect();
    taken.sort_by(f64::total_cmp);
    taken[rounds / 2]
}

/// 400 rings as G-code: 50 m of line, and so 100,000 waypoints.
fn rings() -> String {
    let mut code = String::from("G21\nG90\n");
    for ring in 0..400 {
        let radius = 12.0 + 0.04 * f64::from(ring);
        let [x, y] = [f64::from(ring % 20), f64::from(ring / 20)].map(|v| 35.0 + v * 1.5);
        for i in 0..=90 {
            let angle = f64::from(i) * std::f64::consts::TAU / 90.0;
            let word = if i == 0 { "G0" } else { "G1" };
            let (px, py) = (x + radius * angle.cos(), y + radius * angle.sin());
            code.push_str(&format!("{word} X{px:.4} Y{py:.4}\n"));
        }
    }
    code
}

/// Records when the first progress of a plan is reported.
struct First {
    begun: Instant,
    after_us: AtomicU64,
}

impl PlanObserver for First {
    fn progress(&self, _: usize, _: usize) {
        let after = u64::try_from(self.begun.elapsed().as_micros()).unwrap_or(u64::MAX);
        self.after_us.fetch_min(after, Ordering::Relaxed);
    }
    fn cancelled(&self) -> bool {
        false
    }
}

/// From G-code on the default sheet to a plan that the gate has judged.
fn whole() {
    let folder = std::env::temp_dir().join(format!("steadyhand-bench-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let scene_text = include_str!("../scenes/default.toml")
        .replace(
            "file = \"practice.svg\"\nsize_mm = 60.0",
            "file = \"rings.gcode\"",
        )
        .replace("name = \"default\"", "name = \"rings\"");
    std::fs::write(folder.join("rings.gcode"), rings()).unwrap();
    std::fs::write(folder.join("rings.toml"), scene_text).unwrap();
    let before_kb = resident_kb("VmRSS:");
    let (begun, cpu) = (Instant::now(), cpu_s());
    let scene = SceneLibrary::new(None)
        .scene_file(&folder.join("rings.toml"), None)
        .unwrap();
    let first = First {
        begun,
        after_us: AtomicU64::new(u64::MAX),
    };
    let read_s = cpu_s() - cpu;
    let plan = draw(&scene, &scene.rest_rad, &first).unwrap();
    let drawn_s = cpu_s() - cpu;
    steadyhand::gate::preview(&scene, &plan.trajectory).unwrap();
    let taken = cpu_s() - cpu;
    let _ = std::fs::remove_dir_all(&folder);
    let waypoints = (plan.report.pen_down_mm / 0.5) as usize;
    Told {
        work: "whole",
        seconds: taken,
        of: waypoints,
        right: waypoints,
        figure: (resident_kb("VmHWM:") - before_kb) / 1e3,
        words: format!(
            "waypoints; {:.1} m, {} strokes, {} samples; read {:.3} s, planned {:.3} s, checked {:.3} s; first progress after {:.0} ms, {:.0} MB more",
            plan.report.pen_down_mm / 1e3,
            plan.report.stroke_count,
            plan.trajectory.samples.len(),
            read_s,
            drawn_s - read_s,
            taken - drawn_s,
            first.after_us.load(Ordering::Relaxed) as f64 / 1e3,
            (resident_kb("VmHWM:") - before_kb) / 1e3,
        ),
    }
    .tell();
}

/// A line of what the system says of this process's memory.
fn resident_kb(line: &str) -> f64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let found = status.lines().find_map(|l| l.strip_prefix(line));
    let number = found.and_then(|rest| rest.split_whitespace().next()?.parse().ok());
    number.unwrap_or(f64::NAN)
}

/// xorshift, so that every run has the same work.
struct Chance(u64);

impl Chance {
    fn next(&mut self) -> f64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) as f64 / (1_u64 << 53) as f64
    }
}

fn arm(text: &str) -> ArmModel {
    ArmModel::new(toml::from_str(text).unwrap()).unwrap()
}

fn widowx() -> (ArmModel, ToolTip, JointVector) {
    (
        arm(include_str!("../scenes/arms/widowx250s.toml")),
        ToolTip {
            point_m: Point3::new(0.04, 0.0, 0.0),
            axis: Vector3::x_axis(),
        },
        JointVector::from_slice(&[0.0, 0.2329, 0.3112, 0.0, 1.0267, 0.0]),
    )
}

fn so101() -> (ArmModel, ToolTip, JointVector) {
    let axis = nalgebra::Unit::new_normalize(Vector3::new(0.0, -0.965_926, -0.258_819));
    (
        arm(include_str!("../scenes/arms/so101.toml")),
        ToolTip {
            point_m: Point3::from(axis.into_inner() * 0.04),
            axis,
        },
        JointVector::from_slice(&[-0.0019, -0.2066, 0.0519, 1.4637, 0.0487]),
    )
}

/// Ten turns from 5 to 40 mm around a point, about 0.7 mm a step.
fn spiral(middle: Point3<f64>) -> Vec<Point3<f64>> {
    (0..WAYPOINTS)
        .map(|i| {
            let fraction = (i as f64 / (WAYPOINTS - 1) as f64).sqrt();
            let radius = 0.005 + 0.035 * fraction;
            let angle = fraction * 10.0 * std::f64::consts::TAU;
            middle + Vector3::new(radius * angle.cos(), radius * angle.sin(), 0.0)
        })
        .collect()
}

/// The start of a waypoint's search.
#[derive(Clone, Copy, PartialEq)]
enum Seed {
    /// At the waypoint before.
    Previous,
    /// At the place to which the two before carry on.
    CarriedOn,
}

/// Solves along a path.
fn follow(
    arm: &ArmModel,
    tip: &ToolTip,
    goals: &[IkGoal],
    ready: &JointVector,
    seed: Seed,
) -> Vec<JointVector> {
    let mut found: Vec<JointVector> = Vec::with_capacity(goals.len());
    for goal in goals {
        let from = match found.as_slice() {
            [.., a, b] if seed == Seed::CarriedOn => b.zip(a, |b, a| 2.0 * b - a),
            [.., b] => *b,
            [] => *ready,
        };
        found.push(arm.chain.solve(tip, goal, &from).unwrap().q_rad);
    }
    found
}

/// The tool's poses along the spiral, six joints.
fn stroke_poses() -> (ArmModel, ToolTip, JointVector, Vec<Isometry3<f64>>) {
    let (arm, tip, ready) = widowx();
    let points = spiral(Point3::new(0.32, 0.0, 0.005));
    let start = arm.chain.forward(&ready).rotation;
    let down = -Vector3::z_axis();
    let rotated = UnitQuaternion::rotation_between(&(start * tip.axis), &down).unwrap() * start;
    let poses = points
        .iter()
        .map(|p| Isometry3::from_parts((*p).into(), rotated));
    let poses = poses.collect();
    (arm, tip, ready, poses)
}

/// Returns how many joint vectors hold the tip within 0.1 mm and 0.1° of their pose, by the other way of
/// computing where it is, and are within their limits.
fn strict(arm: &ArmModel, tip: &ToolTip, found: &[JointVector], poses: &[Isometry3<f64>]) -> usize {
    let right = |(q, pose): &(&JointVector, &Isometry3<f64>)| {
        let mount = arm.chain.forward(q);
        let within = q.iter().zip(arm.chain.joints());
        (mount * tip.point_m - Point3::from(pose.translation.vector)).norm() < 1e-4
            && mount.rotation.angle_to(&pose.rotation) < 0.1_f64.to_radians()
            && within
                .clone()
                .all(|(q, j)| (j.lower_rad..=j.upper_rad).contains(q))
    };
    found.iter().zip(poses).filter(right).count()
}

fn stroke_ik() {
    let (arm, tip, ready, poses) = stroke_poses();
    let goals: Vec<IkGoal> = poses.iter().copied().map(IkGoal::Pose).collect();
    for (work, seed) in [
        ("stroke", Seed::Previous),
        ("stroke, carried on", Seed::CarriedOn),
    ] {
        let found = follow(&arm, &tip, &goals, &ready, seed);
        let taken = seconds(15, || {
            black_box(follow(&arm, &tip, black_box(&goals), &ready, seed));
        });
        Told {
            work,
            seconds: taken,
            of: WAYPOINTS,
            right: strict(&arm, &tip, &found, &poses),
            figure: 0.0,
            words: "waypoints, pose, six joints".to_owned(),
        }
        .tell();
    }
    axis_tasks();
}

/// The tasks that plans set: place and direction, the turn about it free.
fn axis_tasks() {
    let down = -Vector3::z_axis();
    for (name, (arm, tip, ready), middle) in [
        ("widowx250s", widowx(), Point3::new(0.32, 0.0, 0.005)),
        ("so101", so101(), Point3::new(0.0, -0.175, 0.005)),
    ] {
        let points = spiral(middle);
        let goals = both(&points, true);
        let found = follow(&arm, &tip, &goals, &ready, Seed::CarriedOn);
        let right = found.iter().zip(&points).filter(|(q, point)| {
            let mount = arm.chain.forward(q);
            (mount * tip.point_m - **point).norm() < 1e-4
                && (mount.rotation * tip.axis).angle(&down) < 0.1_f64.to_radians()
        });
        let right = right.count();
        let taken = seconds(15, || {
            black_box(follow(
                &arm,
                &tip,
                black_box(&goals),
                &ready,
                Seed::CarriedOn,
            ));
        });
        Told {
            work: "stroke, direction",
            seconds: taken,
            of: WAYPOINTS,
            right,
            figure: 0.0,
            words: format!("waypoints, place then direction, {name}"),
        }
        .tell();
    }
}

fn both(points: &[Point3<f64>], first: bool) -> Vec<IkGoal> {
    let axis = -Vector3::z_axis();
    points
        .iter()
        .map(|point| {
            let point_m = *point;
            if first {
                IkGoal::PointThenAxis { point_m, axis }
            } else {
                IkGoal::PointAndAxis { point_m, axis }
            }
        })
        .collect()
}

/// Poses of the tip that some joints within the middle nine tenths of their ranges have.
fn cold_poses(arm: &ArmModel, tip: &ToolTip) -> Vec<Isometry3<f64>> {
    let mut chance = Chance(0x2545_f491_4f6c_dd1d);
    let joints = arm.chain.joints();
    let pose = |_| {
        let angles: Vec<f64> = joints
            .iter()
            .map(|joint| {
                let (low, high) = (joint.lower_rad, joint.upper_rad);
                low + (high - low) * (0.05 + 0.9 * chance.next())
            })
            .collect();
        let q = JointVector::from_slice(&angles);
        let mut pose = arm.chain.forward(&q);
        pose.translation = (pose * tip.point_m).into();
        pose
    };
    (0..POSES).map(pose).collect()
}

fn cold_ik() {
    let (arm, tip, ready) = widowx();
    let poses = cold_poses(&arm, &tip);
    let solve = |pose: &Isometry3<f64>| {
        let found = arm
            .chain
            .solve_anywhere(&tip, &IkGoal::Pose(*pose), &ready, 300);
        found.map_or_else(|missed| missed.nearest.q_rad, |found| found.q_rad)
    };
    let mut found = Vec::new();
    let taken = seconds(3, || found = poses.iter().map(solve).collect());
    Told {
        work: "cold",
        seconds: taken,
        of: POSES,
        right: strict(&arm, &tip, &found, &poses),
        figure: 0.0,
        words: "poses, six joints, all from the ready pose".to_owned(),
    }
    .tell();
}

/// The spiral's joints, and how far along the line each is.
fn spiral_joints() -> (ArmModel, Vec<JointVector>, Vec<f64>) {
    let (arm, tip, ready) = widowx();
    let points = spiral(Point3::new(0.32, 0.0, 0.005));
    let q = follow(&arm, &tip, &both(&points, false), &ready, Seed::CarriedOn);
    let mut s = vec![0.0];
    for pair in points.windows(2) {
        s.push(s.last().unwrap() + (pair[1] - pair[0]).norm());
    }
    (arm, q, s)
}

/// The hardest that pacing lets a joint accelerate, and how fast it and the tip may be.
const HARDEST_RAD_S2: f64 = 15.0;
const FASTEST_RAD_S: f64 = 3.0;
const SPEED_M_S: f64 = 0.5;

/// The limits of the spiral on six joints.
fn spiral_limits() -> PathLimits {
    let (arm, q, s) = spiral_joints();
    let count = q.len();
    let mut limits = PathLimits {
        stride: arm.dof(),
        s,
        ..PathLimits::default()
    };
    for index in 0..count {
        let middle = index.clamp(1, count - 2);
        let (before, after) = (
            limits.s[middle] - limits.s[middle - 1],
            limits.s[middle + 1] - limits.s[middle],
        );
        let mut x_max = SPEED_M_S.powi(2);
        let three = q[middle - 1]
            .iter()
            .zip(q[middle].iter())
            .zip(q[middle + 1].iter());
        for ((a, b), c) in three {
            let first = (c - a) / (before + after);
            let second = 2.0 * ((c - b) / after - (b - a) / before) / (before + after);
            x_max = x_max.min((FASTEST_RAD_S / first.abs().max(1e-9)).powi(2));
            limits.rows.push(LinearLimit {
                a: first,
                b: second,
                c: HARDEST_RAD_S2,
            });
        }
        limits.x_max.push(x_max);
    }
    limits
}

fn pacing() {
    let limits = spiral_limits();
    let x = pace(&limits);
    let duration: f64 = (1..x.len())
        .map(|i| 2.0 * (limits.s[i] - limits.s[i - 1]) / (x[i].sqrt() + x[i - 1].sqrt()))
        .sum();
    let taken = seconds(101, || {
        black_box(pace(black_box(&limits)));
    });
    Told {
        work: "pacing",
        seconds: taken,
        of: WAYPOINTS,
        right: WAYPOINTS,
        figure: duration,
        words: format!(
            "points, six joints; {duration:.4} s for {:.3} m",
            limits.s.last().unwrap()
        ),
    }
    .tell();
}

/// Lines of 1 to 15 mm on 200 × 200 mm.
fn lines() -> Vec<SheetStroke> {
    let mut chance = Chance(0x9e37_79b9_7f4a_7c15);
    let line = |_| {
        let (x, y) = (200.0 * chance.next(), 200.0 * chance.next());
        let length = 1.0 + 14.0 * chance.next();
        let (sin, cos) = (std::f64::consts::TAU * chance.next()).sin_cos();
        SheetStroke {
            points_mm: vec![[x, y], [x + length * cos, y + length * sin]],
            pen: 0,
            source: String::new(),
            pause: None,
        }
    };
    (0..STROKES).map(line).collect()
}

fn ordering() {
    let strokes = lines();
    let turns = order(&strokes, Order::Fastest);
    let taken = seconds(3, || {
        black_box(order(black_box(&strokes), Order::Fastest));
    });
    let travelled = travelled_mm(&strokes, &turns);
    Told {
        work: "ordering",
        seconds: taken,
        of: STROKES,
        right: turns.len(),
        figure: travelled,
        words: format!(
            "strokes; {travelled:.0} mm pen-up ({:.0} mm as given)",
            travelled_mm(&strokes, &order(&strokes, Order::AsDrawn))
        ),
    }
    .tell();
}

/// Two arms of seven capsules: every pair but neighbours of one arm.
fn two_arms() -> (Vec<PlacedCapsule>, Vec<(usize, usize)>) {
    let mut chance = Chance(0x1234_5678_9abc_def1);
    let mut point = |x: f64| {
        let [a, b, c] =
            [chance.next(), chance.next(), chance.next()].map(|fraction| fraction * 0.3);
        Point3::new(x + a, b, c)
    };
    let capsule = |i| {
        let x = if i < 7 { 0.0 } else { 0.5 };
        PlacedCapsule {
            from_m: point(x),
            to_m: point(x),
            radius_m: 0.03,
        }
    };
    let capsules = (0..14).map(capsule).collect();
    let pairs = (0..14)
        .flat_map(|a| (0..a).map(move |b| (b, a)))
        .filter(|(a, b)| b - a > 1 || *b == 7)
        .collect();
    (capsules, pairs)
}

fn capsules() {
    let (capsules, pairs) = two_arms();
    let rounds = 10_000;
    let taken = seconds(15, || {
        for _ in 0..rounds {
            black_box(nearest_pair(black_box(&capsules), &pairs));
        }
    });
    let (_, nearest_m) = nearest_pair(&capsules, &pairs).unwrap();
    Told {
        work: "capsules",
        seconds: taken,
        of: rounds,
        right: rounds,
        figure: nearest_m,
        words: format!(
            "postures of {} pairs; the nearest {nearest_m:.4} m",
            pairs.len()
        ),
    }
    .tell();
}
