//! A node with its arm on a port, which clients reach as in production: over HTTP, and over a pair of
//! streams.

use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

use serde_json::{Value, json};
use steadyhand::args::ReceivedArguments;
use steadyhand::cli;
use steadyhand::config::NodeFile;
use steadyhand::mcp::http::{self, HttpConfig};
use steadyhand::mcp::{EntryPoint, stdio};
use steadyhand::motion::{MotionHandle, STARVED};
use steadyhand::node;
use steadyhand::permit::ActorRank;
use steadyhand::scene::SceneLibrary;
use steadyhand::tools::{AttachedArm, Node, NodeStorage, StopCause};
use steadyhand::units::ClockInstant;
use tokio::io::{AsyncWriteExt, DuplexStream};
use tokio_util::sync::CancellationToken;

use super::rig::Rig;
use crate::support::local_node::call_tool;
use crate::support::tool_call;
use steadyhand::clock::NodeClock;

/// Time limit of each step.
pub(super) const PATIENCE: Duration = Duration::from_secs(40);

/// Sample from which the arm counts as on its way to the paper.
const UNDER_WAY: usize = 30;

/// Half a period: the largest distance in time of the matching frame.
const NEAR: Duration = Duration::from_millis(5);

pub(super) struct TestNode {
    pub(super) rig: Rig,
    node: Arc<Node>,
    address: SocketAddr,
    over: CancellationToken,
    scene: String,
    _folder: tempfile::TempDir,
}

/// The way in which a client ends a call that is under way.
#[derive(Clone, Copy)]
pub(super) enum GiveUp {
    Cancel,
    HangUp,
    EndOfInput,
}

/// A client with a call under way.
pub(super) enum Caller {
    Cancels(DuplexStream),
    HangsUp(TcpStream),
    Goes(DuplexStream),
}

impl TestNode {
    pub(super) async fn new(scene: &str) -> Self {
        let rig = Rig::new(NodeClock::real());
        let motion = rig.on_a_wire();
        let folder = tempfile::tempdir().unwrap();
        let [scenes, output, state] =
            ["scenes", "out", "state"].map(|name| folder.path().join(name));
        for made in [&scenes, &state] {
            std::fs::create_dir_all(made).unwrap();
        }
        let read: toml::Table = toml::from_str(scene).unwrap();
        let name = read["name"].as_str().unwrap().to_owned();
        std::fs::write(scenes.join(format!("{name}.toml")), scene).unwrap();
        let file = NodeFile {
            lease_idle_s: 0,
            ..NodeFile::default()
        };
        let arms = vec![Arc::new(AttachedArm::new("arm", motion, None))];
        let state = NodeStorage::open(state, &file).unwrap();
        let library = SceneLibrary::new(Some(scenes));
        let recorder = super::is_recorded().then(|| {
            let recordings = &steadyhand::recording::NodeRecordings;
            node::RecordingServices::recorder(recordings, state.folder(), &file).unwrap()
        });
        let mut node = Node::new(file, library, arms, output, state);
        node.job_recorder = recorder;
        let node = Arc::new(node);
        let listening = http::listen("127.0.0.1:0".parse().unwrap()).await.unwrap();
        let address = listening.address();
        let over = CancellationToken::new();
        let (service, repair) = cli::node_service(&node);
        let end = over.clone();
        let served = Arc::clone(&node);
        tokio::spawn(async move {
            let tokens = node::auth_queue(&served, address).unwrap();
            let config = HttpConfig {
                pages: Some(node::pages(&served, &tokens, "http", address, &end)),
                ..HttpConfig::default()
            };
            listening.serve(service, config, repair, end).await.unwrap();
        });
        Self {
            rig,
            node,
            address,
            over,
            scene: name,
            _folder: folder,
        }
    }

    pub(super) fn motion(&self) -> &MotionHandle {
        &self.node.arms[0].motion
    }

    /// Posts a call on a new connection.
    fn post(&self, tool: &str, arguments: &str) -> TcpStream {
        let arguments: Value = serde_json::from_str(arguments).unwrap();
        let body = tool_call(tool, &arguments);
        let head = format!(
            "POST /mcp HTTP/1.1\r\nHost: {}\r\nAccept: application/json, text/event-stream\r\nContent-Type: application/json\r\nContent-Length: {}\r\nConnection: close\r\n\r\n",
            self.address,
            body.len()
        );
        let mut stream = TcpStream::connect(self.address).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        stream
            .write_all(format!("{head}{body}").as_bytes())
            .unwrap();
        stream
    }

    /// Sends a request as the operator's page does.
    fn page_request(&self, method: &str, path: &str) -> TcpStream {
        let mut stream = TcpStream::connect(self.address).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        let at = self.address;
        let head = format!(
            "{method} {path} HTTP/1.1\r\nHost: {at}\r\nOrigin: http://{at}\r\nSec-Fetch-Site: same-origin\r\nSteadyhand-Page: 1\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
        );
        stream.write_all(head.as_bytes()).unwrap();
        stream
    }

    /// Sends a request as the operator's page does, and waits for the response.
    pub(super) fn on_page(&self, method: &str, path: &str) -> String {
        let mut printed = Vec::new();
        self.page_request(method, path)
            .read_to_end(&mut printed)
            .unwrap();
        String::from_utf8_lossy(&printed).into_owned()
    }

    /// Follows the arm as an open page does, until the node ends.
    pub(super) fn follows_on_page(&self) -> JoinHandle<()> {
        let mut stream = self.page_request("GET", "/page/events");
        std::thread::spawn(move || {
            let mut bytes = [0_u8; 64 * 1024];
            while stream.read(&mut bytes).is_ok_and(|count| count > 0) {}
        })
    }

    /// Calls a tool over HTTP and waits for the response.
    pub(super) fn call(&self, tool: &str, arguments: &str) -> String {
        let mut printed = Vec::new();
        let read = self.post(tool, arguments).read_to_end(&mut printed);
        read.unwrap();
        String::from_utf8_lossy(&printed).into_owned()
    }

    /// A client has begun a drawing, and the arm moves for it. Where the machine is too busy to read
    /// the arm in time, it is tried again a reasonable number of times.
    pub(super) async fn draws(&self, how: GiveUp) -> Caller {
        const TRIES: usize = 20;
        for _ in 0..TRIES {
            let before = self.job().await;
            let caller = self.calls(how).await;
            let Some(reason) = self.moves_or_breaks(&caller, &before["id"]).await else {
                return caller;
            };
            let is_late = reason.contains(STARVED) || reason == "refused";
            assert!(is_late, "{reason}");
            drop(caller);
            self.is_over().await;
            self.rig.release();
        }
        panic!("the machine was too busy {TRIES} times");
    }

    /// `None` once the arm is under way; otherwise what broke, or that it was refused: a reading
    /// was too old to begin from.
    async fn moves_or_breaks(&self, caller: &Caller, before: &Value) -> Option<String> {
        let began = self.rig.clock.now();
        loop {
            let snapshot = self.motion().snapshot();
            if snapshot.progress.is_some_and(|at| at.sample >= UNDER_WAY) {
                return None;
            }
            if let Some(latch) = self.motion().permits().latched() {
                return Some(format!("{latch:?}"));
            }
            let waited = self.rig.clock.now().since(began);
            assert!(waited < PATIENCE, "it never moved: {}", caller.response());
            let job = self.job().await;
            if job["id"] != *before && job["state"] == "refused" {
                return Some("refused".to_owned());
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }

    async fn calls(&self, how: GiveUp) -> Caller {
        let arguments = json!({"scene": self.scene, "again": true});
        match how {
            GiveUp::HangUp => Caller::HangsUp(self.post("stroke", &arguments.to_string())),
            GiveUp::Cancel => Caller::Cancels(self.connect(|| {}, &arguments).await),
            GiveUp::EndOfInput => {
                let node = Arc::clone(&self.node);
                let ended = move || {
                    node.stop_all(ActorRank::Node, false, &StopCause::new("the end of input"));
                };
                Caller::Goes(self.connect(ended, &arguments).await)
            }
        }
    }

    async fn connect(
        &self,
        ended: impl FnOnce() + Send + 'static,
        arguments: &Value,
    ) -> DuplexStream {
        let (mut client, server) = tokio::io::duplex(1 << 20);
        let (service, repair) = cli::node_service(&self.node);
        let stop = self.over.child_token();
        let streams = tokio::io::split(server);
        tokio::spawn(stdio::serve_on(
            service,
            EntryPoint::Stdio,
            repair,
            streams,
            ended,
            stop,
        ));
        let hello = json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {
            "protocolVersion": "2025-11-25", "capabilities": {},
            "clientInfo": {"name": "bounds", "version": "1"}}});
        let opened = json!({"jsonrpc": "2.0", "method": "notifications/initialized"});
        let call = json!({"jsonrpc": "2.0", "id": 2, "method": "tools/call",
            "params": {"name": "stroke", "arguments": arguments}});
        for message in [hello, opened, call] {
            let line = format!("{message}\n");
            client.write_all(line.as_bytes()).await.unwrap();
        }
        client
    }

    /// Returns the arm's last job, as `sense` reports it.
    async fn job(&self) -> Value {
        let caller = (ActorRank::Operator, "bounds");
        let reply = call_tool(&self.node, caller, "sense", ReceivedArguments::Absent).await;
        reply.structured.get("job").cloned().unwrap_or_default()
    }

    /// Waits until the job has ended, so that the next can begin.
    pub(super) async fn is_over(&self) {
        let began = self.rig.clock.now();
        loop {
            let job = self.job().await;
            let mut ends = ["stopped", "faulted", "refused", "reached"].iter();
            if ends.any(|end| job["state"] == *end) {
                return;
            }
            assert!(self.rig.clock.now().since(began) < PATIENCE, "{job}");
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    }
}

impl Drop for TestNode {
    fn drop(&mut self) {
        self.over.cancel();
    }
}

impl Caller {
    /// Returns the response so far.
    fn response(&self) -> String {
        let mut printed = vec![0; 4000];
        let count = match self {
            Self::HangsUp(stream) => stream.peek(&mut printed).unwrap_or(0),
            Self::Cancels(_) | Self::Goes(_) => 0,
        };
        String::from_utf8_lossy(&printed[..count]).into_owned()
    }

    pub(super) async fn gives_up(self) {
        match self {
            Self::Cancels(mut client) => {
                let line = json!({"jsonrpc": "2.0", "method": "notifications/cancelled",
                    "params": {"requestId": 2}});
                client
                    .write_all(format!("{line}\n").as_bytes())
                    .await
                    .unwrap();
                // Its connection stays: the end of it would be another stop.
                tokio::spawn(async move {
                    tokio::time::sleep(PATIENCE).await;
                    drop(client);
                });
            }
            Self::HangsUp(stream) => stream.shutdown(Shutdown::Both).unwrap(),
            Self::Goes(client) => drop(client),
        }
    }
}

/// Measures the moment at which a stop request reached the arm's thread, by polling its counter.
pub(super) struct StopRequest {
    from: ClockInstant,
    /// True if there was something to stop.
    moved: bool,
    before: u64,
    noticed: JoinHandle<ClockInstant>,
}

impl StopRequest {
    /// Starts to watch for a request that is made now.
    pub(super) fn watch(test_node: &TestNode) -> Self {
        let asks = test_node.motion().stop_counter();
        let before = asks.count();
        let clock = test_node.rig.clock.clone();
        let own = clock.clone();
        let noticed = std::thread::spawn(move || {
            let began = own.now();
            while asks.count() == before && own.now().since(began) < PATIENCE {
                std::thread::sleep(Duration::from_micros(200));
            }
            own.now()
        });
        Self {
            moved: test_node.motion().snapshot().progress.is_some(),
            from: clock.now(),
            before,
            noticed,
        }
    }

    /// From the request to the stop's first frame at the far end; `None` where its motion had ended
    /// before, be it that the machine was too busy to read the arm in time, which is a fault.
    pub(super) async fn first_frame_ms(self, test_node: &TestNode) -> Option<f64> {
        let report = test_node.motion().stopped(self.before + 1).await.unwrap();
        assert!(report.verified, "{report:?}");
        let noticed = self.noticed.join().unwrap();
        let Some(said_ms) = report.first_frame_ms else {
            let delay_s = noticed.seconds_since(self.from);
            let latched = format!("{:?}", test_node.motion().permits().latched());
            assert!(
                !self.moved || latched.contains(STARVED),
                "it did not move any more, {delay_s:.3} s after the request: {report:?}, {latched}"
            );
            return None;
        };
        let noticed = noticed.after(Duration::from_secs_f64(said_ms / 1e3));
        let since =
            ClockInstant::from_nanos(noticed.as_nanos().saturating_sub(NEAR.as_nanos() as u64));
        Some(test_node.rig.heard_ms(since.max(self.from), self.from))
    }
}
