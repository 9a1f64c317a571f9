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
use super::control_socket::ControlListener;
use super::mcp_service::{self, repair};
use super::open::{self, SimulationRate};
use super::systemd::ActivatedSockets;
use super::{
    ExitStatus, NodeOptions, control_socket, fleet_engine, http_auth, local_network, notices,
    page_services, parking, running_nodes, systemd, tls_identity,
};
use base::background_thread::yield_to_arms;
use base::clock::{self, CALENDAR_OFFSET, SIMULATION_RATE, calendar_offset_ms, simulation_rate};
use base::wording::with_statement;
use job::NodeIdentity;
use mcp::http::{self, BoundListener, HttpConfig};
use mcp::{McpService, session_key, stdio};
use permit::ActorRank;
use tools::{self, AttachedArm, Node, StopCause};

/// HTTP endpoint of a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HttpEndpoint {
    Address(SocketAddr),
    /// At a socket that systemd opened before this process began.
    Systemd,
}

/// A text that is not an HTTP endpoint.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("type an address such as 127.0.0.1:8700, or systemd")]
pub struct NoHttpEndpoint;

impl std::str::FromStr for HttpEndpoint {
    type Err = NoHttpEndpoint;

    fn from_str(text: &str) -> Result<Self, NoHttpEndpoint> {
        if text == "systemd" {
            return Ok(Self::Systemd);
        }
        let address = text.parse().map(Self::Address);
        address.map_err(|_| NoHttpEndpoint)
    }
}

/// Options for serving a node.
#[derive(Clone, Debug, Default)]
pub struct ServeOptions {
    /// Streamable HTTP; if absent, standard input and output.
    pub http: Option<HttpEndpoint>,
    /// Standard input and output as well as HTTP; when they end, so does the node.
    pub stdio: bool,
    /// The end of standard input ends the node as SIGTERM does; its content is ignored.
    pub end_with_input: bool,
    /// Host names of this node beside localhost.
    pub host: Vec<String>,
    /// Scenes in which motion is enabled from the start.
    pub enable: Vec<String>,
    /// The control socket, instead of one named after the node in the runtime folder.
    pub socket: Option<PathBuf>,
}

/// Age of the last reading beyond which an arm is not ready.
const READING_AGE_S_MAX: f64 = 2.0;

/// Serves a node until it is stopped, and tells systemd why if that fails.
pub async fn run(
    args: &NodeOptions,
    serve: ServeOptions,
    sockets: ActivatedSockets,
) -> anyhow::Result<ExitStatus> {
    let served = serve_until_stopped(args, serve, sockets).await;
    if let Err(error) = &served {
        systemd::notify(&format!("STATUS=failed: {error:#}"));
    }
    served
}

/// Warns of clocks that the environment changes for tests.
fn warn_of_test_clocks() {
    for (variable, value) in clock::unread_variables() {
        tracing::warn!("{variable} is {value:?}, which is not a valid number, so it is ignored");
    }
    let (ahead_ms, rate) = (calendar_offset_ms(), simulation_rate());
    if ahead_ms != 0 {
        tracing::warn!(
            ahead_ms,
            "the calendar is shifted on purpose ({CALENDAR_OFFSET})"
        );
    }
    if rate != 1 {
        tracing::warn!("simulated arms move {rate} times as fast on purpose ({SIMULATION_RATE})");
    }
}

/// Warns of scenes in which an arm could not come to rest, on a thread of its own: the surfaces of some take seconds to read.
fn warn_of_poses(node: &Arc<Node>) {
    let node = Arc::clone(node);
    let judge = move || {
        if let Err(error) = yield_to_arms() {
            tracing::debug!("cannot lower the priority of the thread that judges poses: {error}");
        }
        let arms = node.file.arms.iter();
        let arms: Vec<[&str; 2]> = arms.map(|arm| [&*arm.name, &*arm.model]).collect();
        for (scene, worst) in tools::scenes_with_refused_poses(&node.scenes, &arms) {
            tracing::warn!("scene {scene}: {}", worst.words());
        }
    };
    let thread = std::thread::Builder::new().name("poses".to_owned());
    if let Err(error) = thread.spawn(judge) {
        tracing::warn!("the poses of the scenes are not judged: {error}");
    }
}

async fn serve_until_stopped(
    args: &NodeOptions,
    serve: ServeOptions,
    mut sockets: ActivatedSockets,
) -> anyhow::Result<ExitStatus> {
    running_nodes::remember_starter();
    let node = open::node(args, SimulationRate::Real)?;
    // Before anything is enabled or recorded: otherwise a signal in between would end the node without parking its arms.
    let signals = StopSignals::listen(serve.end_with_input);
    if node.was_cut_short() && !serve.enable.is_empty() {
        // A person should look at what the last process was doing first.
        tracing::warn!("--enable is ignored after an interrupted job. Next: `steadyhand enable`");
    } else {
        open::enable(&node, &serve.enable)?;
    }
    node.note_start();
    base::task::spawn(ConfigWatcher::since_last(&node, args).watch());
    notices::watch(&node);
    warn_of_test_clocks();
    warn_of_poses(&node);
    let control = match sockets.control.take() {
        Some(socket) => control_socket::adopt(socket),
        None => control_socket::open(serve.socket.as_deref(), &node.file.name),
    };
    let _joined = fleet_engine::join(&node)?;
    let stop = CancellationToken::new();
    let parking = Arc::new(OnceLock::new());
    match signals {
        Ok(signals) => {
            let (node, parking) = (Arc::clone(&node), Arc::clone(&parking));
            base::task::spawn(signals.act(node, stop.clone(), parking));
        }
        Err(error) => {
            tracing::error!(
                "this node cannot receive signals ({error}), but `steadyhand stop` still works"
            );
        }
    }
    for seat in &node.arms {
        base::task::spawn(parking::park_when_hot(Arc::clone(&node), Arc::clone(seat)));
    }
    systemd::watchdog(&node);
    match (&control, serve.http) {
        (Err(error), Some(_)) => anyhow::bail!("{error:#}"),
        (Err(error), None) => tracing::warn!("operators cannot reach this node: {error:#}"),
        (Ok(_), _) => {}
    }
    let listener = match serve.http {
        Some(endpoint) => Some(bind(endpoint, sockets.http.take()).await?),
        None => None,
    };
    let ended = tokio::select! {
        served = serve_clients(&node, &serve, listener, stop) => served,
        never = serve_operators(&control, &node) => never,
    };
    systemd::notify("STOPPING=1\nSTATUS=stopping: first every arm is stopped");
    // Operators can still stop an arm that is moving to rest.
    let ending = async {
        let exit = end(&node, parking.get()).await;
        close(&node).await;
        exit
    };
    let exit = tokio::select! {
        exit = ending => exit,
        never = serve_operators(&control, &node) => never,
    };
    node.note_end(format!("{exit:?}"));
    ended?;
    Ok(exit)
}

/// Brings every arm to a standstill after serving has ended, and parks them if that was requested.
pub async fn end(node: &Arc<Node>, parking: Option<&ShutdownRequests>) -> ExitStatus {
    match parking {
        Some(requests) => park_all(node, requests).await,
        None if !stop_and_verify_all(node).await => ExitStatus::Broken,
        None => report_energised(node),
    }
}

/// Reports arms that stay energised away from rest after this process exits. No park was requested.
fn report_energised(node: &Node) -> ExitStatus {
    let mut exit = ExitStatus::Done;
    for seat in node.arms.iter().filter(|seat| parking::stays_up(seat)) {
        tracing::error!(arm = seat.name, "{}", parking::torque_text(seat));
        exit = ExitStatus::Energised;
    }
    exit
}

/// Longest wait for another node's answer to a stop that was passed on.
const PASSED_ON_STOPS_WAIT_MAX: Duration = Duration::from_secs(3);

/// Longest wait for the journal of a stopped job. Its arm already stands.
const JOURNAL_WAIT_MAX: Duration = Duration::from_secs(1);

/// Waits until the stops that are being passed on have been answered, and the journals of jobs in progress are complete, before
/// the process ends.
pub async fn close(node: &Node) {
    if let Some(fleet) = &node.fleet {
        let stops = tokio::time::timeout(PASSED_ON_STOPS_WAIT_MAX, fleet.wait_for_stops());
        if stops.await.is_err() {
            tracing::error!("a stop for another node was not answered. Look at its arm");
        }
    }
    if !node.wait_until_idle(JOURNAL_WAIT_MAX).await {
        tracing::error!(
            "the end of a job was not written to its journal, so after the next start the job counts as interrupted"
        );
    }
}

/// Serves operators on the control socket, and never returns.
async fn serve_operators(control: &anyhow::Result<ControlListener>, node: &Arc<Node>) -> ! {
    match control {
        Ok(control) => control_socket::serve(control, node).await,
        Err(_) => std::future::pending().await,
    }
}

async fn bind(target: HttpEndpoint, socket: Option<TcpListener>) -> anyhow::Result<BoundListener> {
    match (target, socket) {
        (HttpEndpoint::Address(address), _) => Ok(http::listen(address).await?),
        (HttpEndpoint::Systemd, Some(socket)) => Ok(http::adopt(socket)?),
        (HttpEndpoint::Systemd, None) => anyhow::bail!(
            "systemd opened no socket for HTTP. Next: start steadyhand-http.socket, or use --http ADDRESS"
        ),
    }
}

/// Tells systemd that the node is ready: the arms are attached, which proves their identity, and callers are accepted.
fn notify_ready(node: &Arc<Node>) {
    systemd::notify(&format!("READY=1\nSTATUS={}", systemd::status_text(node)));
    systemd::status(node);
}

/// Serves MCP clients, over HTTP, standard input and output, or both.
async fn serve_clients(
    node: &Arc<Node>,
    serve: &ServeOptions,
    listener: Option<BoundListener>,
    stop: CancellationToken,
) -> anyhow::Result<()> {
    let (service, _) = mcp_service::node_service(node);
    for seat in &node.arms {
        let enabled = seat.permits().enabled_text(seat.motion.clock().now());
        tracing::info!(arm = seat.name, is = seat.title(), enabled, "attached");
    }
    let Some(listener) = listener else {
        notify_ready(node);
        return serve_stdio(node, service, stop).await;
    };
    let tokens = http_auth::auth_queue(node, listener.address())?;
    let tls = tls_identity::acceptor(&node.file)?;
    let identity = NodeIdentity::open(&node.state, &node.file.name)?;
    let _advertised = local_network::advertise(&node.file, listener.address(), &identity);
    let scheme = if tls.is_some() { "https" } else { "http" };
    let pages = page_services::pages(node, &tokens, scheme, listener.address(), &stop);
    let lease_owner = Arc::clone(node);
    let config = HttpConfig {
        tls,
        pages: Some(pages),
        on_session_end: Some(Arc::new(move |session| {
            lease_owner.release_leases(&session_key(session));
        })),
        auth: Some(tokens),
        operate: http_auth::wants_tokens(node, listener.address())
            .then(|| http_auth::operate(node)),
        hosts: serve.host.clone(),
        metrics: Some(metrics(node)),
        ready: Some(readiness(node)),
        identity: Some(local_network::identity_proof(identity)),
    };
    let page = page_services::page_address(scheme, listener.address());
    tracing::info!("page for operators: {page} (`steadyhand page` logs you in)");
    tracing::info!("MCP at {}://{}/mcp", config.scheme(), listener.address());
    notify_ready(node);
    let web = listener.serve(Arc::clone(&service), config, repair, stop.clone());
    if !serve.stdio {
        return Ok(web.await?);
    }
    let pipe = async {
        let ended = serve_stdio(node, service, stop.clone()).await;
        stop.cancel();
        ended
    };
    let (pipe, web) = tokio::join!(pipe, web);
    pipe.and(web.map_err(anyhow::Error::from))
}

/// Serves until standard input closes, and then stops the arms, which no client watches any more.
async fn serve_stdio(
    node: &Arc<Node>,
    service: Arc<dyn McpService>,
    stop: CancellationToken,
) -> anyhow::Result<()> {
    let node = Arc::clone(node);
    let cause = StopCause::new("the end of standard input");
    let on_end = move || node.stop_to_end(ActorRank::Node, false, &cause);
    Ok(stdio::serve(service, repair, on_end, stop).await?)
}

fn metrics(node: &Arc<Node>) -> http::PageRenderer {
    let node = Arc::clone(node);
    Arc::new(move || tools::metrics(&node))
}

/// Returns the readiness check: every arm is attached, answers and has no fault.
fn readiness(node: &Arc<Node>) -> http::ReadinessProbe {
    let node = Arc::clone(node);
    Arc::new(move || {
        let arms: Vec<_> = node.arms.iter().map(|seat| arm_readiness(seat)).collect();
        let is_ready = arms.iter().all(Result::is_ok);
        let lines = arms.into_iter().map(|arm| arm.unwrap_or_else(String::from));
        let text = lines.collect::<Vec<_>>().join("; ");
        if is_ready {
            Ok(text)
        } else {
            Err(Refusal::new(text))
        }
    })
}

fn arm_readiness(seat: &AttachedArm) -> Result<String, Refusal> {
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

/// A shutdown request for each arm, as of the moment of the signal.
pub type ShutdownRequests = Vec<parking::ShutdownRequest>;

/// Returns a shutdown request for each arm, as of now.
pub fn shutdown_requests(node: &Node) -> ShutdownRequests {
    let seats = node.arms.iter();
    seats
        .map(|seat| parking::ShutdownRequest::for_arm(seat))
        .collect()
}

/// Signals by which a person or the system ends a node, received from the moment this is created.
struct StopSignals {
    interrupt: SignalListener,
    terminate: SignalListener,
    hangup: SignalListener,
    /// Reports the end of standard input, if that ends the node.
    input_ended: mpsc::Receiver<()>,
}

impl StopSignals {
    fn listen(end_with_input: bool) -> std::io::Result<Self> {
        Ok(Self {
            input_ended: watch_input_end(end_with_input),
            interrupt: SignalListener::listen(SignalKind::Interrupt)?,
            terminate: SignalListener::listen(SignalKind::Terminate)?,
            hangup: SignalListener::listen(SignalKind::HangUp)?,
        })
    }

    /// Acts on signals. The first interrupt stops, a second is an emergency stop. A hangup of the terminal stops and ends.
    /// Termination, and the end of an input that ends the node, stop, park and end.
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
                    let cause = StopCause::new("SIGINT");
                    node.stop_to_end(ActorRank::Operator, interrupts > 1, &cause);
                }
                _ = self.terminate.recv() => request_parking(&node, &parking),
                Some(()) = self.input_ended.recv() => request_parking(&node, &parking),
                // An arm on its way to rest goes on.
                _ = self.hangup.recv() => if parking.get().is_none() {
                    let cause = StopCause::new("SIGHUP or another signal that ends the node");
                    node.stop_to_end(ActorRank::Node, false, &cause);
                },
            }
            stop.cancel();
        }
    }
}

/// Stops every arm and requests its parking. A second request changes nothing: it would stop the arms on their way to rest.
fn request_parking(node: &Node, parking: &OnceLock<ShutdownRequests>) {
    if parking.set(shutdown_requests(node)).is_ok() {
        let cause = StopCause::new("SIGTERM");
        node.stop_to_end(ActorRank::Node, false, &cause);
    }
}

/// Waits on a thread of its own for the end of standard input, if that ends the node.
fn watch_input_end(ends_node: bool) -> mpsc::Receiver<()> {
    let (sender, receiver) = mpsc::channel(1);
    if ends_node {
        std::thread::spawn(move || {
            // An input that cannot be read counts as ended.
            let _ = std::io::copy(&mut std::io::stdin().lock(), &mut std::io::sink());
            let _ = sender.blocking_send(());
        });
    }
    receiver
}

/// Parks the arms that may be parked. Reports every other energised arm, which stays so.
async fn park_all(node: &Arc<Node>, requests: &ShutdownRequests) -> ExitStatus {
    let mut exit = ExitStatus::Done;
    // All at once: all of them together have no more time than one, and an arm that hangs does not hold up the others.
    let tasks = node.arms.iter().zip(requests).map(|(seat, request)| {
        let parking = park_arm(Arc::clone(node), Arc::clone(seat), request.clone());
        (seat, base::task::spawn(parking))
    });
    let tasks: Vec<_> = tasks.collect();
    for (seat, task) in tasks {
        let task_panicked = |_| Err((ExitStatus::Broken, "it broke".to_owned()));
        match task.await.unwrap_or_else(task_panicked) {
            Ok(parking::ParkOutcome::Limp) => {}
            Ok(parking::ParkOutcome::AtRest) => tracing::info!(
                arm = seat.name,
                "the arm is at rest and holds with its torque on"
            ),
            Err((status, reason)) => {
                tracing::error!(
                    arm = seat.name,
                    "{}",
                    with_statement(format!("not parked: {reason}"), parking::torque_text(seat))
                );
                if exit != ExitStatus::Broken {
                    exit = status;
                }
            }
        }
    }
    exit
}

/// Stops an arm, verifies that it stands, and parks it.
async fn park_arm(
    node: Arc<Node>,
    seat: Arc<AttachedArm>,
    request: parking::ShutdownRequest,
) -> Result<parking::ParkOutcome, (ExitStatus, String)> {
    if !stop_and_verify(&seat).await {
        return Err((ExitStatus::Broken, parking::UNVERIFIED.to_owned()));
    }
    let outcome = parking::park(&node, &seat, &request).await;
    // Whatever moves it now, it must not be left moving.
    if outcome.is_err()
        && seat.motion.snapshot().state.is_under_way()
        && !stop_and_verify(&seat).await
    {
        return Err((ExitStatus::Broken, parking::UNVERIFIED.to_owned()));
    }
    outcome.map_err(|reason| (ExitStatus::Energised, reason.into()))
}

/// Stops every arm and returns whether the standstill of all was read back.
async fn stop_and_verify_all(node: &Node) -> bool {
    let all = join_all(node.arms.iter().map(|seat| stop_and_verify(seat))).await;
    all.into_iter().all(|stands| stands)
}

/// Stops an arm and returns whether its standstill was read back.
async fn stop_and_verify(seat: &AttachedArm) -> bool {
    let ticket = seat.motion.stop(ActorRank::Node, false);
    let report = seat.motion.stopped(ticket).await;
    let is_verified = report.is_some_and(|report| report.verified);
    if !is_verified {
        tracing::error!(
            arm = seat.name,
            "standstill could not be verified: {}",
            parking::torque_text(seat)
        );
    } else if seat.motion.snapshot().energised {
        tracing::warn!(arm = seat.name, "the arm holds with its torque on");
    }
    is_verified
}
