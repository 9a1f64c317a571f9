//! `serve`: the node over standard input and output, or over HTTP, until it is told to end.

use std::net::{SocketAddr, TcpListener};
use std::path::PathBuf;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use base::signals::{SignalKind, SignalListener};
use call::{Refusal, refusal};
use futures::future::join_all;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use super::config_changes::ConfigWatcher;
use super::mcp_service::{self, repair};
use super::open::{self, SimulationRate};
use super::systemd::ActivatedSockets;
use super::{
    ExitStatus, NodeOptions, control_socket, fleet_engine, http_auth, local_network, notices,
    page_services, parking, systemd, tls_identity,
};
use base::clock::{CALENDAR_OFFSET, SIMULATION_RATE, calendar_offset_ms, simulation_rate};
use job::NodeIdentity;
use mcp::http::{self, BoundListener, HttpConfig};
use mcp::{McpService, session_key, stdio};
use permit::ActorRank;
use tools::{self, AttachedArm, Node};

/// Endpoint of HTTP.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HttpEndpoint {
    Address(SocketAddr),
    /// At a socket that systemd opened before this process began.
    Systemd,
}

/// A text that is no endpoint of HTTP.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("write an address such as 127.0.0.1:8700, or systemd")]
pub struct NoHttpEndpoint;

impl std::str::FromStr for HttpEndpoint {
    type Err = NoHttpEndpoint;

    fn from_str(said: &str) -> Result<Self, NoHttpEndpoint> {
        if said == "systemd" {
            return Ok(Self::Systemd);
        }
        let address = said.parse().map(Self::Address);
        address.map_err(|_| NoHttpEndpoint)
    }
}

/// Options for serving a node.
#[derive(Clone, Debug, Default)]
pub struct ServeOptions {
    /// Streamable HTTP; standard input and output where absent.
    pub http: Option<HttpEndpoint>,
    /// Standard input and output beside HTTP; their end is the node's.
    pub stdio: bool,
    /// The end of standard input ends the node as SIGTERM does; nothing is read of it.
    pub end_with_input: bool,
    /// Host names of this node beside localhost.
    pub host: Vec<String>,
    /// Scenes in which motion is enabled from the start.
    pub enable: Vec<String>,
    /// The control socket, instead of one named after the node in the runtime folder.
    pub socket: Option<PathBuf>,
}

/// An arm that was not read for so long is not ready.
const READING_AGE_S_MAX: f64 = 2.0;

pub async fn run(
    args: &NodeOptions,
    serve: ServeOptions,
    sockets: ActivatedSockets,
) -> anyhow::Result<ExitStatus> {
    let served = until_told(args, serve, sockets).await;
    if let Err(error) = &served {
        systemd::notify(&format!("STATUS=it cannot go on: {error:#}"));
    }
    served
}

/// Warns of clocks that the environment sets wrong for tests.
fn warn_of_test_clocks() {
    let (ahead_ms, rate) = (calendar_offset_ms(), simulation_rate());
    if ahead_ms != 0 {
        tracing::warn!(
            ahead_ms,
            "the calendar is wrong on purpose ({CALENDAR_OFFSET})"
        );
    }
    if rate != 1 {
        tracing::warn!("simulated arms move {rate} times as fast on purpose ({SIMULATION_RATE})");
    }
}

async fn until_told(
    args: &NodeOptions,
    serve: ServeOptions,
    mut sockets: ActivatedSockets,
) -> anyhow::Result<ExitStatus> {
    let node = open::node(args, SimulationRate::Real)?;
    // Before anything is enabled or noted: a node that was ended in between would leave its arms as they are.
    let heard = StopSignals::listen(serve.end_with_input);
    if node.was_cut_short() && !serve.enable.is_empty() {
        // What the last process was doing is a person's to look at first.
        tracing::warn!("--enable is not heeded after an interrupted job: use `steadyhand enable`");
    } else {
        open::enable(&node, &serve.enable)?;
    }
    node.note_start();
    base::task::spawn(ConfigWatcher::since_last(&node, args).watch());
    notices::watch(&node);
    warn_of_test_clocks();
    let door = match sockets.control.take() {
        Some(opened) => control_socket::adopt(opened),
        None => control_socket::open(serve.socket.as_deref(), &node.file.name),
    };
    let _joined = fleet_engine::join(&node)?;
    let stop = CancellationToken::new();
    let parking = Arc::new(OnceLock::new());
    match heard {
        Ok(heard) => {
            let (node, parking) = (Arc::clone(&node), Arc::clone(&parking));
            base::task::spawn(heard.act(node, stop.clone(), parking));
        }
        Err(error) => {
            tracing::error!(
                "signals cannot be heard ({error}): stop the arm with `steadyhand stop`"
            );
        }
    }
    for seat in &node.arms {
        base::task::spawn(parking::park_when_hot(Arc::clone(&node), Arc::clone(seat)));
    }
    systemd::watchdog(&node);
    match (&door, serve.http) {
        (Err(error), Some(_)) => anyhow::bail!("{error:#}"),
        (Err(error), None) => tracing::warn!("operators cannot reach this node: {error:#}"),
        (Ok(_), _) => {}
    }
    let listening = match serve.http {
        Some(at) => Some(listen(at, sockets.http.take()).await?),
        None => None,
    };
    let ended = tokio::select! {
        served = speak(&node, &serve, listening, stop) => served,
        never = operators(&door, &node) => never,
    };
    systemd::notify("STOPPING=1\nSTATUS=stopping: every arm comes to a stand first");
    // Whoever sees the arm go to rest can still stop it.
    let exit = tokio::select! {
        exit = end(&node, parking.get()) => exit,
        never = operators(&door, &node) => never,
    };
    close(&node).await;
    node.note_end(format!("{exit:?}"));
    ended?;
    Ok(exit)
}

/// However serving ended, the arm is brought to a stand before the reason is told.
pub async fn end(node: &Arc<Node>, parking: Option<&ShutdownRequests>) -> ExitStatus {
    match parking {
        Some(leaves) => park_all(node, leaves).await,
        None if !halt(node).await => ExitStatus::Broken,
        None => report_energised(node),
    }
}

/// Reports arms that stay energised away from rest after this process exits. No park was requested.
fn report_energised(node: &Node) -> ExitStatus {
    let mut exit = ExitStatus::Done;
    for seat in node.arms.iter().filter(|seat| parking::stays_up(seat)) {
        tracing::error!(
            arm = seat.name,
            "the arm is still energised where it stands: its torque holds it until it is switched off"
        );
        exit = ExitStatus::Energised;
    }
    exit
}

/// Longest wait for the journal of a stopped job, whose arm stands already.
const WRITTEN: Duration = Duration::from_secs(1);

/// Waits until jobs in progress are written to their end, before the process ends.
pub async fn close(node: &Node) {
    if !node.wait_until_idle(WRITTEN).await {
        tracing::error!("the end of a job is not in its journal: the next start will ask about it");
    }
}

/// Hears operators, and never returns.
async fn operators(door: &anyhow::Result<control_socket::ControlListener>, node: &Arc<Node>) -> ! {
    match door {
        Ok(door) => control_socket::serve(door, node).await,
        Err(_) => std::future::pending().await,
    }
}

async fn listen(at: HttpEndpoint, opened: Option<TcpListener>) -> anyhow::Result<BoundListener> {
    match (at, opened) {
        (HttpEndpoint::Address(address), _) => Ok(http::listen(address).await?),
        (HttpEndpoint::Systemd, Some(opened)) => Ok(http::adopt(opened)?),
        (HttpEndpoint::Systemd, None) => anyhow::bail!(
            "systemd opened no socket for HTTP: start steadyhand-http.socket, or say --http ADDRESS"
        ),
    }
}

/// To systemd: the arms are attached, which proves that they are who they should be, and callers may come.
fn ready(node: &Arc<Node>) {
    systemd::notify(&format!("READY=1\nSTATUS={}", systemd::status_text(node)));
    systemd::status(node);
}

async fn speak(
    node: &Arc<Node>,
    serve: &ServeOptions,
    listening: Option<BoundListener>,
    stop: CancellationToken,
) -> anyhow::Result<()> {
    let (desk, _) = mcp_service::node_service(node);
    for seat in &node.arms {
        let enabled = seat.permits().enabled_text(seat.motion.clock().now());
        tracing::info!(arm = seat.name, is = seat.title(), enabled, "attached");
    }
    let Some(listening) = listening else {
        ready(node);
        return serve_stdio(node, desk, stop).await;
    };
    let tokens = http_auth::auth_queue(node, listening.address())?;
    let tls = tls_identity::acceptor(&node.file)?;
    let identity = NodeIdentity::open(&node.state, &node.file.name)?;
    let _advertised = local_network::advertise(&node.file, listening.address(), &identity);
    let scheme = if tls.is_some() { "https" } else { "http" };
    let pages = page_services::pages(node, &tokens, scheme, listening.address(), &stop);
    let leaving = Arc::clone(node);
    let config = HttpConfig {
        tls,
        pages: Some(pages),
        on_session_end: Some(Arc::new(move |session| {
            leaving.release_leases(&session_key(session));
        })),
        auth: Some(tokens),
        operate: http_auth::wants_tokens(node, listening.address())
            .then(|| http_auth::operate(node)),
        hosts: serve.host.clone(),
        metrics: Some(metrics(node)),
        ready: Some(readiness(node)),
        identity: Some(local_network::identity_proof(identity)),
        ..HttpConfig::default()
    };
    let page = page_services::page_address(scheme, listening.address());
    tracing::info!("page for operators at {page}; `steadyhand page` lets you in");
    tracing::info!("MCP at {}://{}/mcp", config.scheme(), listening.address());
    ready(node);
    let web = listening.serve(Arc::clone(&desk), config, repair, stop.clone());
    if !serve.stdio {
        return Ok(web.await?);
    }
    let pipe = async {
        let ended = serve_stdio(node, desk, stop.clone()).await;
        stop.cancel();
        ended
    };
    let (pipe, web) = tokio::join!(pipe, web);
    pipe.and(web.map_err(anyhow::Error::from))
}

/// Serves until the client at standard input leaves: then no client watches the arm.
async fn serve_stdio(
    node: &Arc<Node>,
    desk: Arc<dyn McpService>,
    stop: CancellationToken,
) -> anyhow::Result<()> {
    let node = Arc::clone(node);
    let ended = move || node.stop_all(ActorRank::Node, false);
    Ok(stdio::serve(desk, repair, ended, stop).await?)
}

fn metrics(node: &Arc<Node>) -> http::PageRenderer {
    let node = Arc::clone(node);
    Arc::new(move || tools::metrics(&node))
}

/// Returns the readiness check: every arm is there, answers and has no fault.
fn readiness(node: &Arc<Node>) -> http::ReadinessProbe {
    let node = Arc::clone(node);
    Arc::new(move || {
        let arms: Vec<_> = node.arms.iter().map(|seat| seat_ready(seat)).collect();
        let is_ready = arms.iter().all(Result::is_ok);
        let words = arms.into_iter().map(|arm| arm.unwrap_or_else(String::from));
        let words = words.collect::<Vec<_>>().join("; ");
        if is_ready {
            Ok(words)
        } else {
            Err(Refusal::new(words))
        }
    })
}

fn seat_ready(seat: &AttachedArm) -> Result<String, Refusal> {
    let name = &seat.name;
    let snapshot = seat.motion.snapshot();
    if let Some(fault) = &snapshot.fault {
        return Err(refusal!("{name} has a fault: {fault}"));
    }
    let Some(measured) = &snapshot.measured else {
        return Err(refusal!("{name} has not been read yet"));
    };
    let age_s = seat.motion.clock().now().seconds_since(measured.at);
    if age_s > READING_AGE_S_MAX {
        let age = base::wording::seconds(age_s);
        return Err(refusal!("{name} was last read {age} ago"));
    }
    Ok(format!("{name} answers"))
}

/// Each arm, as of the moment of the signal.
pub type ShutdownRequests = Vec<parking::ShutdownRequest>;

pub fn leaves(node: &Node) -> ShutdownRequests {
    let seats = node.arms.iter();
    seats
        .map(|seat| parking::ShutdownRequest::for_arm(seat))
        .collect()
}

/// Signals by which a person or the system ends a node, heard from the moment of their making.
struct StopSignals {
    interrupt: SignalListener,
    terminate: SignalListener,
    hangup: SignalListener,
    /// Tells of the end of standard input, where that ends the node.
    input_ended: mpsc::Receiver<()>,
}

impl StopSignals {
    fn listen(end_with_input: bool) -> std::io::Result<Self> {
        Ok(Self {
            input_ended: input_end(end_with_input),
            interrupt: SignalListener::listen(SignalKind::Interrupt)?,
            terminate: SignalListener::listen(SignalKind::Terminate)?,
            hangup: SignalListener::listen(SignalKind::HangUp)?,
        })
    }

    /// The first interrupt stops, a second is an emergency stop; the end of the terminal stops and
    /// ends; termination, and the end of an input that the node ends with, stop, park and end.
    async fn act(
        mut self,
        node: Arc<Node>,
        stop: CancellationToken,
        parking: Arc<OnceLock<ShutdownRequests>>,
    ) {
        let mut interrupts = 0_u32;
        loop {
            tokio::select! {
                _ = self.interrupt.recv() => {
                    interrupts += 1;
                    node.stop_all(ActorRank::Operator, interrupts > 1);
                }
                _ = self.terminate.recv() => to_rest(&node, &parking),
                Some(()) = self.input_ended.recv() => to_rest(&node, &parking),
                _ = self.hangup.recv() => node.stop_all(ActorRank::Node, false),
            }
            stop.cancel();
        }
    }
}

/// Stops every arm and has it parked; a second request changes nothing.
fn to_rest(node: &Node, parking: &OnceLock<ShutdownRequests>) {
    parking.get_or_init(|| leaves(node));
    node.stop_all(ActorRank::Node, false);
}

/// Waits beside for the end of standard input, where it counts.
fn input_end(counts: bool) -> mpsc::Receiver<()> {
    let (tell, ended) = mpsc::channel(1);
    if counts {
        std::thread::spawn(move || {
            // One that cannot be read has ended as well.
            let _ = std::io::copy(&mut std::io::stdin().lock(), &mut std::io::sink());
            let _ = tell.blocking_send(());
        });
    }
    ended
}

/// Parks the arms that may be parked. Reports every other energised arm, which stays so.
async fn park_all(node: &Arc<Node>, leaves: &ShutdownRequests) -> ExitStatus {
    let mut exit = ExitStatus::Done;
    // All at once: together they have no longer than one of them, and one that hangs keeps no other from its rest.
    let begun = node.arms.iter().zip(leaves).map(|(seat, leave)| {
        let parked = parked(Arc::clone(node), Arc::clone(seat), leave.clone());
        (seat, base::task::spawn(parked))
    });
    let begun: Vec<_> = begun.collect();
    for (seat, parked) in begun {
        let broke = |_| Err((ExitStatus::Broken, "it broke".to_owned()));
        match parked.await.unwrap_or_else(broke) {
            Ok(parking::ParkOutcome::Limp) => {}
            Ok(parking::ParkOutcome::AtRest) => tracing::info!(
                arm = seat.name,
                "the arm is at rest and holds with its torque on"
            ),
            Err((how, why)) => {
                tracing::error!(
                    arm = seat.name,
                    "not parked: {why}; the arm is still energised where it stands"
                );
                if exit != ExitStatus::Broken {
                    exit = how;
                }
            }
        }
    }
    exit
}

async fn parked(
    node: Arc<Node>,
    seat: Arc<AttachedArm>,
    leave: parking::ShutdownRequest,
) -> Result<parking::ParkOutcome, (ExitStatus, String)> {
    if !halted(&seat).await {
        return Err((ExitStatus::Broken, parking::UNVERIFIED.to_owned()));
    }
    let parked = parking::park(&node, &seat, &leave).await;
    parked.map_err(|why| (ExitStatus::Energised, why.into()))
}

/// Stops every arm and says whether all were read back to stand.
async fn halt(node: &Node) -> bool {
    let all = join_all(node.arms.iter().map(|seat| halted(seat))).await;
    all.into_iter().all(|stands| stands)
}

/// Stops an arm and says whether it was read back to stand.
async fn halted(seat: &AttachedArm) -> bool {
    let ticket = seat.motion.stop(ActorRank::Node, false);
    let report = seat.motion.stopped(ticket).await;
    let stands = report.is_some_and(|report| report.verified);
    if !stands {
        tracing::error!(
            arm = seat.name,
            "standstill could not be verified: the arm is still energised"
        );
    } else if seat.motion.snapshot().energised {
        tracing::warn!(arm = seat.name, "the arm holds with its torque on");
    }
    stands
}
