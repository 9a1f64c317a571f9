//! The gate's rules a second time: slowly, from the arm's file, with plain matrices and many points
//! where the gate has formulas. Shares no code with `src/gate` or the fast half of `src/kin`.

use std::collections::BTreeMap;

use base::units::{Finite, JointVector};
use gate::GateRule;
use nalgebra::{DMatrix, Matrix4, Point3, Rotation3, Unit, Vector3};
use plan::{SpanKind, Trajectory};
use scene::{AxisAlignedBox, Scene};

/// Distance between the sampled points of a capsule.
const STEP_M: f64 = 0.004;
const CLEARANCE_M: f64 = 0.003;
const BORDER_MM: f64 = 30.0;

/// Highest speed of a probing tip, its greatest depth below the sheet, and the highest speed of a person's jog.
const PROBE_MM_S: f64 = 2.0;
const PROBE_DEPTH_MM: f64 = 5.0;
const JOG_MM_S: f64 = 25.0;

/// The finding on a rule.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Found {
    /// It is broken, whatever the rounding.
    pub(crate) surely: bool,
    /// It may be broken; otherwise it surely is not.
    pub(crate) possibly: bool,
}

/// A capsule as points.
struct Dots {
    link: usize,
    is_pen: bool,
    points: Vec<Point3<f64>>,
    radius_m: f64,
}

fn number(of: [Finite; 3]) -> Vector3<f64> {
    Vector3::from(of.map(Finite::get))
}

fn fixed(origin: [Finite; 3], rpy: [Finite; 3]) -> Matrix4<f64> {
    let [r, p, y] = rpy.map(Finite::get);
    let turn = Rotation3::from_axis_angle(&Vector3::z_axis(), y)
        * Rotation3::from_axis_angle(&Vector3::y_axis(), p)
        * Rotation3::from_axis_angle(&Vector3::x_axis(), r);
    Matrix4::new_translation(&number(origin)) * turn.to_homogeneous()
}

/// Every link's frame, and the tool mount's last.
pub(crate) fn frames(scene: &Scene, q: &JointVector) -> Vec<Matrix4<f64>> {
    let file = &scene.arm.file;
    let mut all = vec![Matrix4::identity()];
    for (joint, angle) in file.joints.iter().zip(q.iter()) {
        let axis = Unit::new_normalize(number(joint.axis));
        let turn = Rotation3::from_axis_angle(&axis, *angle).to_homogeneous();
        all.push(all[all.len() - 1] * fixed(joint.origin_m, joint.rpy_rad) * turn);
    }
    let mount = fixed(file.tool_mount.origin_m, file.tool_mount.rpy_rad);
    all.push(all[all.len() - 1] * mount);
    all
}

pub(crate) fn tip(scene: &Scene, pen: usize, q: &JointVector) -> Point3<f64> {
    frames(scene, q)[scene.arm.dof() + 1].transform_point(&scene.pens[pen].tip_m)
}

/// Largest over smallest singular value of the tip's movement by small steps of the joints.
pub(crate) fn condition(scene: &Scene, pen: usize, q: &JointVector) -> f64 {
    assert!(scene.arm.dof() < 6, "of place alone");
    let h = 1e-5;
    let moved = |joint: usize, by: f64| {
        let q = q.map(|index, angle| if index == joint { angle + by } else { angle });
        tip(scene, pen, &q)
    };
    let columns: Vec<_> = (0..q.len())
        .map(|joint| (moved(joint, h) - moved(joint, -h)) / (2.0 * h))
        .collect();
    let values = DMatrix::from_fn(3, q.len(), |row, column| columns[column][row]).singular_values();
    values.max() / values.min().max(1e-9)
}

fn dots(scene: &Scene, q: &JointVector) -> Vec<Dots> {
    let frames = frames(scene, q);
    let row = |frame: &Matrix4<f64>, from: &Point3<f64>, to: &Point3<f64>| {
        let (from, to) = (frame.transform_point(from), frame.transform_point(to));
        let count = ((to - from).norm() / STEP_M).ceil().max(1.0);
        let at = |n: f64| from + (to - from) * (n / count);
        (0..=count as u32).map(|n| at(f64::from(n))).collect()
    };
    let capsules = scene.arm.capsules.iter().map(|capsule| Dots {
        link: capsule.joints_before,
        is_pen: false,
        points: row(
            &frames[capsule.joints_before],
            &capsule.from_m,
            &capsule.to_m,
        ),
        radius_m: capsule.radius_m,
    });
    let mount = &frames[scene.arm.dof() + 1];
    let pens = scene.pens.iter().map(|pen| Dots {
        link: scene.arm.dof(),
        is_pen: true,
        points: row(mount, &Point3::origin(), &pen.tip_m),
        radius_m: 0.005,
    });
    capsules.chain(pens).collect()
}

/// Outside of a box, or inside as a negative number.
fn to_box(point: &Point3<f64>, corners: &AxisAlignedBox) -> f64 {
    let nearest = Point3::from(point.coords.zip_zip_map(
        &corners.min_m.coords,
        &corners.max_m.coords,
        |at, low, high| at.clamp(low, high),
    ));
    let sides = (0..3)
        .map(|axis| (point[axis] - corners.min_m[axis]).min(corners.max_m[axis] - point[axis]));
    let away = (point - nearest).norm();
    if away > 0.0 {
        away
    } else {
        -sides.fold(f64::INFINITY, f64::min)
    }
}

/// The least excess of one thing over its limit in the samples so far, from which it is let out: at
/// least, and at most for sure; both are far within the limit for what came clear.
#[derive(Clone, Copy)]
struct Past {
    at_most: f64,
    at_least: f64,
}

const CLEAR: Past = Past {
    at_most: f64::NEG_INFINITY,
    at_least: f64::NEG_INFINITY,
};

#[derive(Default)]
pub(crate) struct Slow {
    pub(crate) found: BTreeMap<String, Found>,
    /// By rule, and by what is judged on its own: a part and a box, two parts, a part and a side.
    past: BTreeMap<(String, [usize; 3]), Past>,
}

impl Slow {
    /// All rules about a whole trajectory. The sheet must be flat, the pen the only one.
    pub(crate) fn judge(scene: &Scene, plan: &Trajectory) -> Self {
        let mut slow = Self::default();
        slow.rates(scene, plan);
        let away = [SpanKind::Lift, SpanKind::Pose, SpanKind::Jog];
        let is_let_out = plan.spans.iter().all(|span| away.contains(&span.kind));
        for (sample, q) in plan.samples.iter().enumerate() {
            let kind = plan.span_at(sample).unwrap().kind;
            slow.tip(scene, plan, sample, kind);
            slow.body(scene, q, is_let_out);
        }
        slow
    }

    /// The same of something that may begin beyond its limit and then only come back: it is held
    /// against what it was itself before, and against nothing else.
    fn returns(&mut self, rule: GateRule, of: [usize; 3], value: f64, limit: f64, doubt: f64) {
        let key = (format!("{rule:?}"), of);
        let past = self.past.get(&key).copied();
        let now = past.unwrap_or(Past {
            at_most: f64::INFINITY,
            at_least: f64::INFINITY,
        });
        let slack = limit.abs() * 2e-3 + 1e-7;
        // Clear for sure, whatever the rounding; or clear perhaps.
        let (sure, perhaps) = (value + doubt <= limit - slack, value <= limit + slack);
        let next = Past {
            at_most: if sure {
                CLEAR.at_most
            } else {
                now.at_most.min(value + doubt)
            },
            at_least: if perhaps {
                CLEAR.at_least
            } else {
                now.at_least.min(value)
            },
        };
        self.past.insert(key, next);
        let found = self.found.entry(format!("{rule:?}")).or_default();
        if past.is_some() {
            let deeper = value > now.at_most + slack;
            found.surely |= deeper && value > limit + doubt.abs() * 0.01 + slack;
            let perhaps_deeper = value + doubt > now.at_least - slack;
            found.possibly |= perhaps_deeper && value + doubt > limit - limit.abs() * 1e-3 - 1e-7;
        }
    }

    /// Notes a value that must not be above a limit; it is known to within `doubt` upwards.
    fn above(&mut self, rule: GateRule, value: f64, limit: f64, doubt: f64) {
        let found = self.found.entry(format!("{rule:?}")).or_default();
        found.surely |= value > limit + doubt.abs() * 0.01 + limit.abs() * 2e-3 + 1e-7;
        found.possibly |= value + doubt > limit - limit.abs() * 1e-3 - 1e-7;
    }

    fn rates(&mut self, scene: &Scene, plan: &Trajectory) {
        let (t, limits) = (plan.period.as_secs_f64(), &scene.arm.limits);
        let at = |index: usize, joint: usize| {
            let index = index.saturating_sub(3).min(plan.samples.len() - 1);
            plan.samples[index][joint]
        };
        for joint in 0..scene.arm.dof() {
            for index in 0..plan.samples.len() + 6 {
                let [a, b, c, d] = [0, 1, 2, 3].map(|n| at(index + n, joint));
                self.above(
                    GateRule::JointSpeed,
                    (b - a).abs() / t,
                    limits.velocity_rad_s[joint],
                    0.0,
                );
                let push = (c - 2.0 * b + a).abs() / t.powi(2);
                self.above(
                    GateRule::JointAcceleration,
                    push,
                    limits.acceleration_rad_s2[joint],
                    0.0,
                );
                let jerk = (d - 3.0 * c + 3.0 * b - a).abs() / t.powi(3);
                let most = limits.jerk_rad_s3[joint];
                self.above(GateRule::JointJerk, jerk, most * 1.02, most * 0.02);
                let of = |side| [joint, side, 0];
                self.returns(
                    GateRule::JointLimit,
                    of(0),
                    a,
                    limits.upper_rad[joint],
                    2e-6,
                );
                self.returns(
                    GateRule::JointLimit,
                    of(1),
                    -a,
                    -limits.lower_rad[joint],
                    2e-6,
                );
            }
        }
    }

    fn tip(&mut self, scene: &Scene, plan: &Trajectory, sample: usize, kind: SpanKind) {
        let q = &plan.samples[sample];
        let now = tip(scene, 0, q);
        if let Some(before) = sample.checked_sub(1).map(|before| &plan.samples[before]) {
            let then = tip(scene, 0, before);
            let speed = (now - then).norm() * 1e3 / plan.period.as_secs_f64();
            let travel = scene.limits.travel_mm_s.max(scene.limits.draw_mm_s);
            let most = match kind {
                SpanKind::Draw => scene.limits.draw_mm_s,
                SpanKind::Probe => scene.limits.draw_mm_s.min(PROBE_MM_S),
                SpanKind::Jog => scene.limits.travel_mm_s.min(JOG_MM_S),
                _ => travel,
            };
            self.above(GateRule::TipSpeed, speed, most.min(250.0), 0.0);
            let half = before.zip(q, |a, b| (a + b) * 0.5);
            let off = tip(scene, 0, &half) - (now.coords + then.coords) * 0.5;
            self.above(GateRule::Midpoint, off.coords.norm() * 1e3, 0.1, 0.0);
        }
        self.inside(scene, [usize::MAX, 0], &now, 0.0);
        let down = matches!(
            kind,
            SpanKind::Draw | SpanKind::Lower | SpanKind::Lift | SpanKind::Dwell | SpanKind::Probe
        );
        let ([x, y], height) = over(scene, &now);
        let [width, depth] = scene.surface.size_mm();
        if (-BORDER_MM..=width + BORDER_MM).contains(&x)
            && (-BORDER_MM..=depth + BORDER_MM).contains(&y)
        {
            let deep = match kind {
                SpanKind::Probe => PROBE_DEPTH_MM,
                SpanKind::Jog => scene.heights.press_mm,
                _ if down => scene.heights.press_mm,
                _ => 0.0,
            };
            self.returns(GateRule::Sheet, [0; 3], -height, deep + 0.25, 0.0);
        } else {
            self.past.insert(("Sheet".to_owned(), [0; 3]), CLEAR);
        }
        if down {
            self.above(GateRule::Condition, condition(scene, 0, q), 30.0, 0.1);
        }
        if kind == SpanKind::Draw {
            let mount = &frames(scene, q)[scene.arm.dof() + 1];
            let axis = mount.transform_vector(&scene.pens[0].axis);
            let lean = (-axis).angle(&normal(scene)).to_degrees();
            self.above(
                GateRule::Tilt,
                lean,
                scene.pens[0].cone_rad.to_degrees(),
                1e-3,
            );
        }
    }

    fn body(&mut self, scene: &Scene, q: &JointVector, is_let_out: bool) {
        let parts = dots(scene, q);
        let half = STEP_M / 2.0;
        for (of, part) in parts.iter().enumerate() {
            // What never moves comes into no keep-out.
            let keep_outs = scene.keep_outs.iter().enumerate().filter(|_| part.link > 0);
            for (which, keep_out) in keep_outs {
                let near = part
                    .points
                    .iter()
                    .map(|point| to_box(point, &keep_out.corners));
                let near = near.fold(f64::INFINITY, f64::min) - part.radius_m;
                if is_let_out {
                    self.returns(GateRule::KeepOut, [of, which, 0], -near, -CLEARANCE_M, half);
                } else {
                    self.above(GateRule::KeepOut, -near, -CLEARANCE_M, half);
                }
            }
            let ends = [part.points[0], part.points[part.points.len() - 1]];
            if part.link > 0 && !part.is_pen {
                for (end, point) in ends.iter().enumerate() {
                    self.inside(scene, [of, end], point, part.radius_m);
                }
            }
            if !part.is_pen {
                self.over_sheet(scene, of, part);
            }
        }
        self.against_itself(scene, &parts);
    }

    /// Each side of the workspace on its own.
    fn inside(&mut self, scene: &Scene, [of, end]: [usize; 2], at: &Point3<f64>, radius_m: f64) {
        let AxisAlignedBox { min_m, max_m } = scene.limits.workspace;
        for axis in 0..3 {
            let side = |which| [of, end, 2 * axis + which];
            let (low, high) = (min_m[axis], max_m[axis]);
            self.returns(GateRule::Workspace, side(0), radius_m - at[axis], -low, 0.0);
            self.returns(GateRule::Workspace, side(1), radius_m + at[axis], high, 0.0);
        }
    }

    fn over_sheet(&mut self, scene: &Scene, of: usize, part: &Dots) {
        let [width, depth] = scene.surface.size_mm();
        let low = |height_mm: f64| -(height_mm / 1e3 - part.radius_m);
        let (mut over_m, mut beside_m) = (f64::NEG_INFINITY, f64::NEG_INFINITY);
        for point in &part.points {
            let ([x, y], height_mm) = over(scene, point);
            let beyond = (-x).max(x - width).max(-y).max(y - depth);
            if beyond < BORDER_MM - 1e-6 {
                over_m = over_m.max(low(height_mm));
            } else if beyond < BORDER_MM + STEP_M * 1e3 {
                // A place between two points may be over the sheet, or just not.
                beside_m = beside_m.max(low(height_mm));
            }
        }
        let doubt = (beside_m + STEP_M - over_m).max(STEP_M / 2.0);
        if over_m.is_finite() {
            self.returns(GateRule::Body, [of, 0, 0], over_m, -CLEARANCE_M, doubt);
        } else if beside_m.is_finite() {
            let possibly = beside_m + STEP_M > -CLEARANCE_M * 1.001;
            self.found.entry("Body".to_owned()).or_default().possibly |= possibly;
            self.past.insert(("Body".to_owned(), [of, 0, 0]), CLEAR);
        } else {
            self.past.insert(("Body".to_owned(), [of, 0, 0]), CLEAR);
        }
    }

    fn against_itself(&mut self, scene: &Scene, parts: &[Dots]) {
        let mut links: Vec<usize> = parts.iter().map(|part| part.link).collect();
        links.sort_unstable();
        links.dedup();
        assert!(scene.arm.file.may_touch.is_empty());
        for (index, one) in parts.iter().enumerate() {
            for (second, other) in parts[..index].iter().enumerate() {
                let (low, high) = (one.link.min(other.link), one.link.max(other.link));
                if !links.iter().any(|link| (low + 1..high).contains(link)) {
                    continue;
                }
                let pairs = one
                    .points
                    .iter()
                    .flat_map(|a| other.points.iter().map(move |b| (a - b).norm()));
                let near = pairs.fold(f64::INFINITY, f64::min) - one.radius_m - other.radius_m;
                let of = [index, second, 0];
                self.returns(GateRule::SelfCollision, of, -near, -CLEARANCE_M, STEP_M);
            }
        }
    }
}

fn normal(scene: &Scene) -> Vector3<f64> {
    let [a, b, c] = [[0.0, 0.0], [1.0, 0.0], [0.0, 1.0]].map(|at| scene.surface.at(at).point_m);
    (b - a).cross(&(c - a)).normalize()
}

/// Returns where over a flat sheet a point is, in mm, and how high.
fn over(scene: &Scene, point: &Point3<f64>) -> ([f64; 2], f64) {
    assert!(scene.surface.radius_mm().is_none());
    let [a, b, c] = [[0.0, 0.0], [1.0, 0.0], [0.0, 1.0]].map(|at| scene.surface.at(at).point_m);
    let from = point - a;
    let along = |to: Point3<f64>| from.dot(&(to - a)) / (to - a).norm() * 1e3;
    ([along(b), along(c)], from.dot(&normal(scene)) * 1e3)
}
