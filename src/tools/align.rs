//! `align`: visits points whose places are known, reads back where the tip is, draws a cross.

use std::fmt::Write as _;
use std::sync::Arc;

use nalgebra::Point3;
use serde::Serialize;

use super::answer::Reply;
use super::carry::{self, Errand, Trouble, tip_mm};
use super::dispatch::Order;
use super::pictures;
use super::stroke::rounded;
use crate::motion::Visited;
use crate::plan::{self, Visit, VisitTarget};
use crate::scene::{Order as DrawingOrder, Scene, SheetStroke};

/// How far from the sheet's edges its corners are visited.
const INSET_MM: f64 = 8.0;

/// Half the length of the registration cross's lines.
const CROSS_MM: f64 = 6.0;

/// How long the tip stands still to be read.
const DWELL_S: f64 = 0.4;

/// What was found at one point.
#[derive(Clone, Debug, Serialize)]
struct Point {
    name: String,
    target_mm: [f64; 3],
    measured_mm: [f64; 3],
    tracking_error_mm: f64,
}

pub(super) async fn call(order: &Order<'_>) -> Reply {
    match begin(order).await {
        Ok(reply) => reply,
        Err(reply) => *reply,
    }
}

async fn begin(order: &Order<'_>) -> Result<Reply, Box<Reply>> {
    let seat = order.seat()?;
    let scene = order.scene(seat)?;
    // The arm is measured anew each time; only a call under way is the same one.
    let call = order.job("align", &scene, true);
    Ok(
        carry::as_job(order.node, seat, call, order.watch, move |errand| {
            align(errand, scene)
        })
        .await,
    )
}

async fn align(errand: Errand, scene: Arc<Scene>) -> Result<Reply, Trouble> {
    let permit = errand.ask(&scene)?;
    let visits = visits(&scene);
    errand.seat.lay(&scene);
    let (planned, points, start) = (Arc::clone(&scene), visits.clone(), errand.start()?);
    let plan = errand
        .plan(move |watch| plan::visit(&planned, &start.position_rad, &points, watch))
        .await?;
    errand
        .job
        .update(|card| (card.done, card.of) = (0, visits.len()));
    let done = errand.run(&scene, permit, &plan).await?;
    let points = measure(&scene, &visits, &done.visits);
    let strokes = draw_cross(&errand, &scene).await?;
    Ok(report(&errand, &scene, &points, strokes))
}

/// The calibrator, each ink cap, the sheet's corners and its centre.
fn visits(scene: &Scene) -> Vec<Visit> {
    let [width, height] = scene.surface.size_mm();
    let (right, top) = (width - INSET_MM, height - INSET_MM);
    let hover_mm = scene.heights.hover_mm;
    let up = |point: &Point3<f64>| VisitTarget::Point {
        point_m: point + nalgebra::Vector3::new(0.0, 0.0, hover_mm / 1e3),
    };
    let visit = |name: String, target| Visit {
        name,
        target,
        pen: 0,
        dwell_s: DWELL_S,
    };
    let sheet = |at_mm| VisitTarget::Sheet {
        at_mm,
        height_mm: hover_mm,
    };
    let mut visits = Vec::new();
    visits.extend(
        scene
            .calibrator_m
            .iter()
            .map(|at| visit("calibrator".to_owned(), up(at))),
    );
    visits.extend(
        scene
            .inks
            .iter()
            .map(|ink| visit(format!("ink {}", ink.name), up(&ink.rim_m))),
    );
    for (name, at_mm) in [
        ("lower left", [INSET_MM, INSET_MM]),
        ("lower right", [right, INSET_MM]),
        ("upper right", [right, top]),
        ("upper left", [INSET_MM, top]),
        ("centre", [width / 2.0, height / 2.0]),
    ] {
        visits.push(visit(name.to_owned(), sheet(at_mm)));
    }
    visits
}

fn target_mm(scene: &Scene, visit: &Visit) -> [f64; 3] {
    let at = match visit.target {
        VisitTarget::Point { point_m } => point_m,
        VisitTarget::Sheet { at_mm, height_mm } => {
            let contact = scene.surface.at(at_mm);
            contact.point_m + contact.normal.scale(height_mm / 1e3)
        }
    };
    [at.x * 1e3, at.y * 1e3, at.z * 1e3]
}

fn measure(scene: &Scene, visits: &[Visit], visited: &[Visited]) -> Vec<Point> {
    visited
        .iter()
        .filter_map(|seen| {
            let visit = visits.get(seen.item)?;
            let target_mm = target_mm(scene, visit);
            let measured_mm = tip_mm(scene, visit.pen, &seen.position_rad)?;
            let error = (Point3::from(measured_mm) - Point3::from(target_mm)).norm();
            Some(Point {
                name: visit.name.clone(),
                target_mm: target_mm.map(rounded),
                measured_mm: measured_mm.map(rounded),
                tracking_error_mm: rounded(error),
            })
        })
        .collect()
}

async fn draw_cross(errand: &Errand, scene: &Arc<Scene>) -> Result<usize, Trouble> {
    let permit = errand.ask(scene)?;
    let [width, height] = scene.surface.size_mm();
    let (x, y) = (width / 2.0, height / 2.0);
    let line = |source: &str, a, b| SheetStroke {
        points_mm: vec![a, b],
        pen: 0,
        source: source.to_owned(),
    };
    let cross = vec![
        line(
            "registration cross, across",
            [x - CROSS_MM, y],
            [x + CROSS_MM, y],
        ),
        line(
            "registration cross, upwards",
            [x, y - CROSS_MM],
            [x, y + CROSS_MM],
        ),
    ];
    let (planned, start) = (Arc::clone(scene), errand.start()?);
    let plan = errand
        .plan(move |watch| {
            plan::draw_strokes(
                &planned,
                &start.position_rad,
                &cross,
                DrawingOrder::AsDrawn,
                watch,
            )
        })
        .await?;
    errand.run(scene, permit, &plan).await?;
    Ok(plan.report.stroke_count)
}

fn report(errand: &Errand, scene: &Scene, points: &[Point], strokes: usize) -> Reply {
    let worst = points
        .iter()
        .map(|point| point.tracking_error_mm)
        .fold(0.0, f64::max);
    let table = table(scene, points);
    let json = serde_json::to_vec_pretty(points).unwrap_or_default();
    let ink = errand.seat.studio.as_ref().map(|studio| studio.ink());
    let picture = ink.and_then(|ink| pictures::ink(scene, &ink));
    let files = pictures::write(
        &errand.node,
        &errand.job.card().id,
        &[
            ("align.json", Some(&json)),
            ("align.txt", Some(table.as_bytes())),
            ("drawn.png", picture.as_deref()),
        ],
    );
    let message = format!(
        "{} points visited, largest tracking error {worst:.2} mm; registration cross drawn",
        points.len()
    );
    let mut reply = Reply::done(message)
        .with("stroke_count", strokes)
        .with("points", points)
        .with("tracking_error_mm_max", worst)
        .with("files", files)
        .hint("stroke draws the design");
    reply.text = format!("{}\n{table}", reply.text);
    reply.pictures.extend(picture);
    reply
}

fn table(scene: &Scene, points: &[Point]) -> String {
    let mut table = format!(
        "scene {} (revision {}), tip places in the arm's base frame, mm\n",
        scene.title(),
        scene.revision
    );
    let _ = writeln!(
        table,
        "{:<14}{:>26}{:>26}{:>10}",
        "point", "target x y z", "measured x y z", "error"
    );
    for point in points {
        let place = |[x, y, z]: [f64; 3]| format!("{x:8.2} {y:8.2} {z:8.2}");
        let _ = writeln!(
            table,
            "{:<14}{:>26}{:>26}{:>10.2}",
            point.name,
            place(point.target_mm),
            place(point.measured_mm),
            point.tracking_error_mm
        );
    }
    table
}
