//! `stroke`: draws the scene's design.

use std::sync::Arc;

use super::answer::Reply;
use super::carry::{self, Done, Errand, Trouble};
use super::dispatch::Order;
use super::pictures;
use super::preview::Preview;
use crate::design::compare::{Deviation, deviation_mm};
use crate::plan::{self, Plan};
use crate::scene::Scene;

pub(super) async fn call(order: &Order<'_>) -> Reply {
    match begin(order).await {
        Ok(reply) => reply,
        Err(reply) => *reply,
    }
}

async fn begin(order: &Order<'_>) -> Result<Reply, Box<Reply>> {
    order.for_this_node()?;
    let seat = order.seat()?;
    let scene = order.scene(seat)?;
    if order.is("dry_run") {
        return Ok(dry_run(order, &scene)
            .await
            .unwrap_or_else(|trouble| trouble.reply().1));
    }
    let call = order.job("stroke", &scene, order.is("again"));
    let work = move |errand| draw(errand, scene);
    Ok(carry::as_job(order.node, seat, call, order.watch, work).await)
}

async fn dry_run(order: &Order<'_>, scene: &Arc<Scene>) -> Result<Reply, Trouble> {
    let seat = order.seat().map_err(|reply| Trouble::Refused(reply.text))?;
    let start = carry::measured(seat).map_err(Trouble::Refused)?;
    let planned = Arc::clone(scene);
    let preview = carry::preview(seat, order.watch, move |watch| {
        Preview::new(&planned, &start.position_rad, watch)
    })
    .await?;
    let picture = pictures::preview(scene, &preview);
    let number = order.node.number();
    let files = pictures::write(
        order.node,
        &format!("preview-{number}"),
        &[("plan.png", picture.as_deref())],
    );
    let message = format!("planned, not drawn: {}", preview.message());
    let mut reply = if preview.refusals.is_empty() {
        Reply::done(message)
    } else {
        Reply::failed(message)
            .with("code", "plan_refused")
            .with("refusals", &preview.refusals)
    };
    if let Some(plan) = &preview.plan {
        facts(&mut reply, plan);
        worst(&mut reply, plan);
        reply.set("arm_time_s", rounded(plan.report.duration_s));
    }
    reply.pictures.extend(picture);
    Ok(reply.with("arm", seat.title()).with("files", files))
}

async fn draw(errand: Errand, scene: Arc<Scene>) -> Result<Reply, Trouble> {
    let permit = errand.ask(&scene)?;
    let start = errand.start()?;
    let planned = Arc::clone(&scene);
    let plan = errand
        .plan(move |watch| plan::draw(&planned, &start.position_rad, watch))
        .await?;
    errand
        .job
        .update(|card| (card.done, card.of) = (0, plan.report.stroke_count));
    errand.seat.lay(&scene);
    let done = errand.run(&scene, permit, &plan).await?;
    errand.job.update(|card| card.done = card.of);
    Ok(drawn(&errand, &scene, &plan, &done))
}

fn drawn(errand: &Errand, scene: &Scene, plan: &Plan, done: &Done) -> Reply {
    let ink = errand.seat.studio.as_ref().map(|studio| studio.ink());
    let deviation = ink.as_ref().map(|ink| deviation(scene, ink));
    let pictures = [
        ("plan.png", pictures::plan(scene, plan)),
        (
            "drawn.png",
            ink.as_ref().and_then(|ink| pictures::ink(scene, ink)),
        ),
    ];
    let borrowed: Vec<(&str, Option<&[u8]>)> = pictures
        .iter()
        .map(|(name, png)| (*name, png.as_deref()))
        .collect();
    let files = pictures::write(&errand.node, &errand.job.card().id, &borrowed);
    let mut reply = Reply::done(message(plan, done, deviation.as_ref()));
    facts(&mut reply, plan);
    if let Some(deviation) = &deviation {
        reply.set("deviation_mm_max", rounded(deviation.max_mm));
        reply.set("deviation_mm_p95", rounded(deviation.p95_mm));
    }
    reply.set("arm_time_s", rounded(done.arm_time_s));
    reply.set("joint_error_deg", rounded(done.off_rad.to_degrees()));
    reply.set("files", files);
    reply.pictures = pictures.into_iter().filter_map(|(_, png)| png).collect();
    reply.hint("sense shows the drawing; reset parks the arm")
}

fn message(plan: &Plan, done: &Done, deviation: Option<&Deviation>) -> String {
    let report = &plan.report;
    let line = format!(
        "drew {} strokes, {:.0} mm of line, in {:.1} s of arm time",
        report.stroke_count, report.pen_down_mm, done.arm_time_s
    );
    match deviation {
        Some(deviation) => format!(
            "{line}; the ink is at most {:.2} mm from the design",
            deviation.max_mm
        ),
        None => format!("{line}; what is on the paper was not measured"),
    }
}

fn facts(reply: &mut Reply, plan: &Plan) {
    let report = &plan.report;
    reply.set("stroke_count", report.stroke_count);
    reply.set("pen_down_mm", rounded(report.pen_down_mm));
    reply.set("planned_s", rounded(report.duration_s));
    reply.set("dips", report.dips);
    reply.set("plan_hash", &plan.hash);
}

/// What a picture shows, for callers that cannot see it.
fn worst(reply: &mut Reply, plan: &Plan) {
    let report = &plan.report;
    reply.set("pen_up_mm", rounded(report.pen_up_mm));
    reply.set("tilt_max_deg", rounded(report.tilt_max_deg));
    reply.set("margin_least_deg", rounded(report.margin_least_deg));
    reply.set("margin_least_joint", &report.margin_least_joint);
    reply.set("at_speed_share", rounded(report.at_speed_share));
}

fn deviation(scene: &Scene, ink: &[(usize, Vec<[f64; 2]>)]) -> Deviation {
    let design: Vec<Vec<[f64; 2]>> = scene
        .strokes
        .iter()
        .map(|stroke| stroke.points_mm.clone())
        .collect();
    let ink: Vec<Vec<[f64; 2]>> = ink.iter().map(|(_, line)| line.clone()).collect();
    deviation_mm(&design, &ink)
}

/// To a thousandth: more digits than anybody can use are noise.
pub(super) fn rounded(value: f64) -> f64 {
    (value * 1e3).round() / 1e3
}
