//! How fast planning is: prints one line a workload. `benches/README.md` says what they are.
#![allow(
    clippy::unwrap_used,
    clippy::print_stdout,
    clippy::indexing_slicing,
    clippy::cast_precision_loss,
    clippy::disallowed_methods,
    reason = "a benchmark prints, measures time, and may panic"
)]

use std::hint::black_box;
use std::time::Instant;

use nalgebra::{Isometry3, Point3, UnitQuaternion, Vector3};
use steadyhand::arm::Arm;
use steadyhand::kin::capsule::{Placed, nearest_pair};
use steadyhand::kin::{Goal, Tip};
use steadyhand::plan::order::{order, travelled_mm};
use steadyhand::plan::pace::{Limits, Row, pace};
use steadyhand::plan::{Patient, draw_strokes};
use steadyhand::scene::{Order, SheetStroke};
use steadyhand::units::Joints;

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
    let wanted = std::env::args().skip(1).find(|word| !word.starts_with('-'));
    for (name, run) in all {
        if wanted
            .as_ref()
            .is_none_or(|wanted| name.contains(wanted.as_str()))
        {
            run();
        }
    }
}

/// A drawing of 50 m, and so of 100,000 waypoints, on the default scene's sheet.
fn whole() {
    let scene = steadyhand::scene::Library::new(None)
        .scene("default", None)
        .unwrap();
    let mut strokes: Vec<SheetStroke> = Vec::new();
    for ring in 0..400 {
        let radius = 12.0 + 0.04 * f64::from(ring);
        let [x, y] = [f64::from(ring % 20), f64::from(ring / 20)].map(|v| 35.0 + v * 1.5);
        let points_mm = (0..=90)
            .map(|i| {
                let angle = f64::from(i) * std::f64::consts::TAU / 90.0;
                [x + radius * angle.cos(), y + radius * angle.sin()]
            })
            .collect();
        strokes.push(SheetStroke {
            points_mm,
            pen: 0,
            source: format!("ring {ring}"),
        });
    }
    let begun = Instant::now();
    let plan = draw_strokes(&scene, &scene.rest_rad, &strokes, Order::Fastest, &Patient).unwrap();
    println!(
        "whole plan      {:.1} m in {} strokes               {:8.3} s, {} samples, {:.0} s of arm time",
        plan.report.pen_down_mm / 1e3,
        plan.report.stroke_count,
        begun.elapsed().as_secs_f64(),
        plan.trajectory.samples.len(),
        plan.report.duration_s
    );
}

/// The median of `rounds` measurements, in seconds.
fn seconds(rounds: usize, mut work: impl FnMut()) -> f64 {
    let mut taken: Vec<f64> = (0..rounds)
        .map(|_| {
            let begun = Instant::now();
            work();
            begun.elapsed().as_secs_f64()
        })
        .collect();
    taken.sort_by(f64::total_cmp);
    taken[rounds / 2]
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

fn arm(text: &str) -> Arm {
    Arm::new(toml::from_str(text).unwrap()).unwrap()
}

fn widowx() -> (Arm, Tip, Joints) {
    (
        arm(include_str!("../scenes/arms/widowx250s.toml")),
        Tip {
            point_m: Point3::new(0.04, 0.0, 0.0),
            axis: Vector3::x_axis(),
        },
        Joints::from_slice(&[0.0, 0.2329, 0.3112, 0.0, 1.0267, 0.0]),
    )
}

fn so101() -> (Arm, Tip, Joints) {
    let axis = nalgebra::Unit::new_normalize(Vector3::new(0.0, -0.965_926, -0.258_819));
    (
        arm(include_str!("../scenes/arms/so101.toml")),
        Tip {
            point_m: Point3::from(axis.into_inner() * 0.04),
            axis,
        },
        Joints::from_slice(&[-0.002, -0.2344, 0.3043, 1.2391, 0.0]),
    )
}

/// Ten turns from 5 to 40 mm around a point, about 0.7 mm a step.
fn spiral(middle: Point3<f64>) -> Vec<Point3<f64>> {
    (0..WAYPOINTS)
        .map(|i| {
            let share = (i as f64 / (WAYPOINTS - 1) as f64).sqrt();
            let radius = 0.005 + 0.035 * share;
            let angle = share * 10.0 * std::f64::consts::TAU;
            middle + Vector3::new(radius * angle.cos(), radius * angle.sin(), 0.0)
        })
        .collect()
}

/// Solves along a path, each seeded by carrying on from the two before.
fn follow(arm: &Arm, tip: &Tip, goals: &[Goal], ready: &Joints) -> Vec<Joints> {
    let mut found: Vec<Joints> = Vec::with_capacity(goals.len());
    for goal in goals {
        let seed = match found.as_slice() {
            [.., a, b] => b.zip(a, |b, a| 2.0 * b - a),
            [.., b] => *b,
            [] => *ready,
        };
        found.push(arm.chain.solve(tip, goal, &seed).unwrap().q_rad);
    }
    found
}

fn stroke_ik() {
    let down = -Vector3::z_axis();
    for (name, (arm, tip, ready), middle) in [
        ("widowx250s", widowx(), Point3::new(0.32, 0.0, 0.005)),
        ("so101", so101(), Point3::new(0.0208, -0.2231, 0.005)),
    ] {
        let points = spiral(middle);
        let mut start = arm.chain.forward(&ready);
        start.translation = points[0].into();
        let turned = UnitQuaternion::rotation_between(&(start.rotation * tip.axis), &down).unwrap();
        let tasks: [(&str, Vec<Goal>); 3] = [
            ("pose", poses(&points, turned * start.rotation)),
            ("place and direction", both(&points, false)),
            ("place, then direction", both(&points, true)),
        ];
        for (task, goals) in tasks {
            if arm.dof() < 6 && task != "place, then direction" {
                continue;
            }
            let found = follow(&arm, &tip, &goals, &ready);
            let strict = found
                .iter()
                .zip(&points)
                .filter(|(q, point)| {
                    let mount = arm.chain.forward(q);
                    (mount * tip.point_m - **point).norm() < 1e-4
                        && (mount.rotation * tip.axis).angle(&down) < 0.1_f64.to_radians()
                })
                .count();
            let taken = seconds(15, || {
                black_box(follow(&arm, &tip, black_box(&goals), &ready));
            });
            println!(
                "stroke IK       {name:<11} {task:<22} {:8.2} us a waypoint, {strict} of {WAYPOINTS} strict",
                taken * 1e6 / WAYPOINTS as f64
            );
        }
    }
}

fn poses(points: &[Point3<f64>], rotation: UnitQuaternion<f64>) -> Vec<Goal> {
    points
        .iter()
        .map(|point| Goal::Pose(Isometry3::from_parts((*point).into(), rotation)))
        .collect()
}

fn both(points: &[Point3<f64>], first: bool) -> Vec<Goal> {
    let axis = -Vector3::z_axis();
    points
        .iter()
        .map(|point| {
            let point_m = *point;
            if first {
                Goal::PointThenAxis { point_m, axis }
            } else {
                Goal::PointAndAxis { point_m, axis }
            }
        })
        .collect()
}

fn cold_ik() {
    let (arm, tip, ready) = widowx();
    let mut chance = Chance(0x2545_f491_4f6c_dd1d);
    let goals: Vec<Isometry3<f64>> = (0..POSES)
        .map(|_| {
            let joints = arm.chain.joints();
            let shares: Vec<f64> = joints.iter().map(|_| 0.05 + 0.9 * chance.next()).collect();
            let q = Joints::zeros(arm.dof()).map(|i, _| {
                let (low, high) = (joints[i].lower_rad, joints[i].upper_rad);
                low + (high - low) * shares[i]
            });
            let mut pose = arm.chain.forward(&q);
            pose.translation = (pose * tip.point_m).into();
            pose
        })
        .collect();
    let mut strict = 0;
    let taken = seconds(3, || {
        strict = 0;
        for goal in &goals {
            let Ok(found) = arm
                .chain
                .solve_anywhere(&tip, &Goal::Pose(*goal), &ready, 300)
            else {
                continue;
            };
            let mount = arm.chain.forward(&found.q_rad);
            let off_m = ((mount * tip.point_m).coords - goal.translation.vector).norm();
            let off_rad = mount.rotation.angle_to(&goal.rotation);
            strict += usize::from(off_m < 1e-4 && off_rad < 0.1_f64.to_radians());
        }
    });
    println!(
        "cold IK         widowx250s  pose                   {:8.2} us a pose, {strict} of {POSES} strict",
        taken * 1e6 / POSES as f64
    );
}

/// The limits of a spiral on six joints at 50 mm/s and 15 rad/s².
fn spiral_limits() -> Limits {
    let (arm, tip, ready) = widowx();
    let points = spiral(Point3::new(0.32, 0.0, 0.005));
    let q = follow(&arm, &tip, &both(&points, false), &ready);
    let mut limits = Limits {
        stride: 2 * arm.dof(),
        s: vec![0.0],
        ..Limits::default()
    };
    for pair in points.windows(2) {
        let last = *limits.s.last().unwrap();
        limits.s.push(last + (pair[1] - pair[0]).norm());
    }
    for index in 0..points.len() {
        let middle = index.clamp(1, points.len() - 2);
        let (before, after) = (
            limits.s[middle] - limits.s[middle - 1],
            limits.s[middle + 1] - limits.s[middle],
        );
        let mut x_max = 0.05_f64.powi(2);
        let three = q[middle - 1]
            .iter()
            .zip(q[middle].iter())
            .zip(q[middle + 1].iter());
        for ((a, b), c) in three {
            let first = (c - a) / (before + after);
            let second = 2.0 * ((c - b) / after - (b - a) / before) / (before + after);
            x_max = x_max.min((3.0 / first.abs().max(1e-9)).powi(2));
            limits.rows.push(Row {
                a: first,
                b: second,
                c: 15.0,
            });
            limits.rows.push(Row {
                a: -first,
                b: -second,
                c: 15.0,
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
    println!(
        "pacing          {WAYPOINTS} points, six joints            {:8.3} ms, {duration:.3} s for {:.3} m at 50 mm/s",
        taken * 1e3,
        limits.s.last().unwrap()
    );
}

fn ordering() {
    let mut chance = Chance(0x9e37_79b9_7f4a_7c15);
    let strokes: Vec<SheetStroke> = (0..STROKES)
        .map(|_| {
            let (x, y) = (200.0 * chance.next(), 200.0 * chance.next());
            let (length, angle) = (
                1.0 + 14.0 * chance.next(),
                std::f64::consts::TAU * chance.next(),
            );
            SheetStroke {
                points_mm: vec![[x, y], [x + length * angle.cos(), y + length * angle.sin()]],
                pen: 0,
                source: String::new(),
            }
        })
        .collect();
    let turns = order(&strokes, Order::Fastest);
    let taken = seconds(3, || {
        black_box(order(black_box(&strokes), Order::Fastest));
    });
    println!(
        "ordering        {STROKES} strokes on 200 x 200 mm        {taken:8.3} s, {:.0} mm pen-up ({:.0} mm as given)",
        travelled_mm(&strokes, &turns),
        travelled_mm(&strokes, &order(&strokes, Order::AsDrawn)),
    );
}

/// Two arms of seven capsules: every pair but neighbours of one arm.
fn capsules() {
    let mut chance = Chance(0x1234_5678_9abc_def1);
    let mut point = |x: f64| {
        Point3::new(
            x + chance.next() * 0.3,
            chance.next() * 0.3,
            chance.next() * 0.3,
        )
    };
    let capsules: Vec<Placed> = (0..14)
        .map(|i| {
            let x = if i < 7 { 0.0 } else { 0.5 };
            Placed {
                from_m: point(x),
                to_m: point(x),
                radius_m: 0.03,
            }
        })
        .collect();
    let pairs: Vec<(usize, usize)> = (0..14)
        .flat_map(|a| (0..a).map(move |b| (b, a)))
        .filter(|(a, b)| b - a > 1 || *b == 7)
        .collect();
    let rounds = 10_000;
    let taken = seconds(15, || {
        for _ in 0..rounds {
            black_box(nearest_pair(black_box(&capsules), &pairs));
        }
    });
    println!(
        "self-collision  {} pairs of capsules                {:8.3} us a posture",
        pairs.len(),
        taken * 1e6 / f64::from(rounds)
    );
}
