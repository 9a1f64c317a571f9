//! `serve`: the node over standard input and output, or over HTTP, until it is told to end.

use std::sync::Arc;

use tokio::signal::unix::{SignalKind, signal};
use tokio_util::sync::CancellationToken;

use super::desk::{NodeDesk, repair};
use super::open::{self, Pace};
use super::{Exit, NodeArgs, ServeArgs, control, door, systemd};
use crate::mcp::http::{self, HttpConfig};
use crate::mcp::{session_key, stdio};
use crate::permit::Who;
use crate::tools::{self, Node};

pub(super) async fn run(args: &NodeArgs, serve: ServeArgs) -> anyhow::Result<Exit> {
    let node = open::node(args, Pace::Real)?;
    if node.was_cut_short() && !serve.enable.is_empty() {
        // What the last process was doing is a person's to look at first.
        tracing::warn!("--enable is not heeded after an interrupted job: use `steadyhand enable`");
    } else {
        open::enable(&node, &serve.enable)?;
    }
    node.note_start();
    let door = control::open(serve.at.socket.as_deref(), &node.file.name);
    let stop = CancellationToken::new();
    tokio::spawn(signals(Arc::clone(&node), stop.clone()));
    match (&door, serve.http) {
        (Err(error), Some(_)) => anyhow::bail!("{error:#}"),
        (Err(error), None) => tracing::warn!("operators cannot reach this node: {error:#}"),
        (Ok(_), _) => {}
    }
    let control = async {
        match &door {
            Ok(door) => control::serve(door, &node).await,
            Err(_) => std::future::pending().await,
        }
    };
    let ended = tokio::select! {
        served = speak(&node, &serve, stop) => served,
        lost = control => lost.map_err(anyhow::Error::from),
    };
    systemd::notify("STOPPING=1");
    // However serving ended, the arm is brought to a stand before the reason is told.
    let stands = halt(&node).await;
    node.audit
        .note("end", format!("standstill verified: {stands}"));
    node.audit.flush();
    ended?;
    Ok(if stands { Exit::Done } else { Exit::Broken })
}

async fn speak(node: &Arc<Node>, serve: &ServeArgs, stop: CancellationToken) -> anyhow::Result<()> {
    let desk = Arc::new(NodeDesk::watched(node));
    for seat in &node.seats {
        let enabled = seat.permits().enabled(seat.motion.clock().now());
        tracing::info!(arm = seat.name, is = seat.title(), enabled, "attached");
    }
    let Some(address) = serve.http else {
        systemd::notify("READY=1");
        let ended = {
            let node = Arc::clone(node);
            // The client is gone: nobody watches the arm any more.
            move || stop_all(&node, Who::Node, false)
        };
        return Ok(stdio::serve(desk, repair, ended, stop).await?);
    };
    let listening = http::listen(address).await?;
    tracing::info!("MCP at http://{}/mcp", listening.address());
    systemd::notify("READY=1");
    let leaving = Arc::clone(node);
    let config = HttpConfig {
        left: Some(Arc::new(move |session| {
            leaving.left(&session_key(session));
        })),
        doorkeeper: door::keeper(node, listening.address())?,
        hosts: serve.host.clone(),
        metrics: Some(metrics(node)),
        ..HttpConfig::default()
    };
    Ok(listening.serve(desk, config, repair, stop).await?)
}

fn metrics(node: &Arc<Node>) -> http::Page {
    let node = Arc::clone(node);
    Arc::new(move || tools::metrics(&node))
}

/// The first interrupt stops, a second is an emergency stop; termination, and the end of the
/// terminal, stop and end.
async fn signals(node: Arc<Node>, stop: CancellationToken) {
    let (Ok(mut interrupt), Ok(mut terminate), Ok(mut hangup)) = (
        signal(SignalKind::interrupt()),
        signal(SignalKind::terminate()),
        signal(SignalKind::hangup()),
    ) else {
        tracing::error!("signals cannot be heard; stop the arm with `steadyhand stop`");
        return;
    };
    let mut interrupts = 0_u32;
    loop {
        tokio::select! {
            _ = interrupt.recv() => {
                interrupts += 1;
                stop_all(&node, Who::Operator, interrupts > 1);
                stop.cancel();
            }
            _ = terminate.recv() => {
                stop_all(&node, Who::Node, false);
                stop.cancel();
            }
            _ = hangup.recv() => {
                stop_all(&node, Who::Node, false);
                stop.cancel();
            }
        }
    }
}

fn stop_all(node: &Node, by: Who, emergency: bool) {
    for seat in &node.seats {
        seat.motion.stop(by, emergency);
    }
}

/// Stops every arm and says whether all were read back to stand.
async fn halt(node: &Node) -> bool {
    let tickets: Vec<_> = node
        .seats
        .iter()
        .map(|seat| (seat, seat.motion.stop(Who::Node, false)))
        .collect();
    let mut all = true;
    for (seat, ticket) in tickets {
        let verified = seat
            .motion
            .stopped(ticket)
            .await
            .is_some_and(|report| report.verified);
        if !verified {
            tracing::error!(
                arm = seat.name,
                "standstill could not be verified: the arm is still energised"
            );
        } else if seat.motion.snapshot().energised {
            tracing::warn!(arm = seat.name, "the arm holds with its torque on");
        }
        all &= verified;
    }
    all
}
