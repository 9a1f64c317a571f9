//! Runs the real binary in child processes, with a folder for its output and short scenes to draw.
#![allow(
    dead_code,
    unused_imports,
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::print_stdout,
    clippy::disallowed_methods,
    reason = "a failing test may panic; not every test uses every helper"
)]

mod caller;
pub(crate) mod chance;
pub(crate) mod closed_port;
pub(crate) mod ink;
pub(crate) mod local_node;
#[cfg(unix)]
pub(crate) mod person;
mod printed;
pub(crate) mod starvation;
pub(crate) mod wire;

use std::fmt::Debug;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

pub(crate) use caller::{
    BEGUN, Caller, STREAMS, StdioClient, TokenCaller, bearer, call_at, told_at, tool_call,
};
pub(crate) use printed::{json_of, printed_by, said_by, stdout, streams_of};
use serde_json::Value;
pub(crate) use starvation::{begun, unless_starved};

/// Time limit of each step of a test.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);

/// Rate of a served embedded arm, relative to real time, in a test that waits for its motions.
const TEST_RATE: &str = "4";

/// Two lines of 30 mm: less than five seconds of arm time.
pub(crate) const SHORT_LINES: &str = "[[[0.0, 0.0], [30.0, 0.0]], [[30.0, 12.0], [0.0, 12.0]]]";

/// Returns the program under test: the one built with the tests, or the one named by `STEADYHAND_BINARY`.
pub(crate) fn binary() -> PathBuf {
    let path = std::env::var_os("STEADYHAND_BINARY").map(PathBuf::from);
    path.unwrap_or_else(|| PathBuf::from(env!("CARGO_BIN_EXE_steadyhand")))
}

/// A test's own folder with a scene `short`, in which the binary runs.
pub(crate) struct Bench {
    folder: tempfile::TempDir,
    /// Rate of a served embedded arm, relative to real time.
    rate: &'static str,
    /// Options of every command, which name the node file and the state folder of a bench that has them.
    own: Vec<String>,
}

impl Bench {
    pub(crate) fn new() -> Self {
        Self::at_rate("1")
    }

    /// For tests that wait for motions to end: the arm is faster. An action in the middle of a short motion may be too late.
    pub(crate) fn at_test_rate() -> Self {
        Self::at_rate(TEST_RATE)
    }

    fn at_rate(rate: &'static str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        for inner in ["scenes/arms", "tmp"] {
            std::fs::create_dir_all(folder.path().join(inner)).unwrap();
        }
        let own = Vec::new();
        let bench = Self { folder, rate, own };
        bench.scene("short", &scene("short", SHORT_LINES));
        bench
    }

    /// Gives the bench a node file with this text and a state folder, which every command then names.
    pub(crate) fn with_file(mut self, text: &str) -> Self {
        self.own = self.file(text).into();
        self
    }

    /// Writes the node file. Returns the options that name it and the state folder.
    pub(crate) fn file(&self, text: &str) -> [String; 4] {
        let file = self.path("node.toml");
        std::fs::write(&file, text).unwrap();
        let [file, state] = [file.display().to_string(), self.state()];
        ["--config".to_owned(), file, "--state".to_owned(), state]
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Returns the state folder of a node that does not use the default one.
    pub(crate) fn state(&self) -> String {
        self.path("state").display().to_string()
    }

    /// Writes a scene's file.
    pub(crate) fn scene(&self, name: &str, text: &str) {
        std::fs::write(self.path("scenes").join(format!("{name}.toml")), text).unwrap();
    }

    /// Builds a command of the binary, with this folder's scenes, output and sockets.
    pub(crate) fn command(&self, args: &[&str]) -> Command {
        self.with_folders(starvation::yielding_to_real_time(binary(), args), args)
    }

    /// Builds the same command without a wrapper, so that its program is the binary itself.
    pub(crate) fn plain_command(&self, args: &[&str]) -> Command {
        self.with_folders(Command::new(binary()), args)
    }

    fn with_folders(&self, mut command: Command, args: &[&str]) -> Command {
        command
            .env("XDG_RUNTIME_DIR", self.folder.path())
            .env("XDG_STATE_HOME", self.path("state-home"))
            .env("TMPDIR", self.path("tmp"))
            .env_remove("STATE_DIRECTORY")
            .env_remove("RUNTIME_DIRECTORY")
            .env_remove("STEADYHAND_LOG")
            .env("STEADYHAND_SIMULATION_RATE", self.rate)
            .arg("--scenes")
            .arg(self.path("scenes"))
            .arg("--output")
            .arg(self.path("out"))
            .args(&self.own)
            .args(args)
            .stdin(Stdio::null());
        command
    }

    /// Runs the binary to its end.
    pub(crate) fn run(&self, args: &[&str]) -> Output {
        self.command(args).output().unwrap()
    }

    /// Runs the binary to its end. Returns the exit code and what it printed.
    pub(crate) fn said(&self, args: &[&str]) -> (i32, String) {
        said_by(&self.run(args))
    }

    /// Runs the binary to its end. Returns the exit code, standard output and standard error.
    pub(crate) fn streams(&self, args: &[&str]) -> (i32, String, String) {
        let output = self.run(args);
        let (text, error) = streams_of(&output);
        (output.status.code().unwrap(), text, error)
    }

    /// Runs a command that must succeed. Returns what it printed to its standard output, without the line's end.
    pub(crate) fn done(&self, args: &[&str]) -> String {
        let output = self.run(args);
        assert!(output.status.success(), "{args:?}: {}", printed_by(&output));
        stdout(&output).trim_end().to_owned()
    }

    /// Adds a token with these options. Returns it.
    pub(crate) fn token(&self, name: &str, options: &[&str]) -> String {
        self.done(&[&["token", "add", name], options].concat())
    }

    /// Holds a drawing once it moves: one that is only planned would not begin.
    pub(crate) fn hold(&self) {
        until(
            "moving",
            || self.said(&["status"]).1,
            |status| status.contains("moving"),
        );
        until(
            "held",
            || self.said(&["hold", "--now"]),
            |(code, _)| *code == 0,
        );
    }

    /// Calls a tool in a separate process. Returns the exit code and the structured result.
    pub(crate) fn call(&self, args: &[&str]) -> (i32, Value) {
        let output = self.run(&[&["call", "--json"], args].concat());
        (output.status.code().unwrap(), json_of(&output))
    }

    /// Calls a tool of a node that runs, in a separate process. Returns the exit code and the structured result.
    pub(crate) fn call_at(&self, node: &str, args: &[&str]) -> (i32, Value) {
        self.call(&[args, &["--node", node]].concat())
    }

    /// Serves MCP over HTTP.
    pub(crate) fn serve(&self, args: &[&str]) -> Served {
        self.serve_in(args, &[])
    }

    /// Serves MCP over HTTP with this node file and a state folder, which other commands do not name.
    pub(crate) fn serve_with_file(&self, text: &str) -> Served {
        self.serve(&self.file(text).each_ref().map(String::as_str))
    }

    /// Serves MCP over HTTP with these environment variables.
    pub(crate) fn serve_in(&self, args: &[&str], environment: &[(&str, &str)]) -> Served {
        let mut command = self.serving(args);
        command.envs(environment.iter().copied());
        served(command)
    }

    /// Builds a command that serves MCP over HTTP.
    pub(crate) fn serving(&self, args: &[&str]) -> Command {
        self.command(&[&["serve", "--http", "127.0.0.1:0"], args].concat())
    }

    /// Starts a simulated arm on a pseudo-terminal. Returns it with the terminal's path.
    pub(crate) fn sim(&self, args: &[&str]) -> (Running, String) {
        let mut child = self
            .command(&[&["sim", "--pty"], args].concat())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let lines = lines(child.stdout.take().unwrap());
        let child = Running(child);
        let path = lines.recv_timeout(PATIENCE).unwrap();
        (child, path)
    }
}

/// Starts a node that serves HTTP, and waits for its address.
pub(crate) fn served(command: Command) -> Served {
    try_served(command).unwrap_or_else(|observed| panic!("it does not serve: {observed:#?}"))
}

/// Starts a node that serves HTTP, and waits for its address. If it ends, returns its lines.
pub(crate) fn try_served(mut command: Command) -> Result<Served, Vec<String>> {
    let mut child = command.stderr(Stdio::piped()).spawn().unwrap();
    let lines = lines(child.stderr.take().unwrap());
    let child = Running(child);
    let line = find_line(&lines, "MCP at ")?;
    let url = line.rsplit("MCP at ").next().unwrap().trim().to_owned();
    Ok(Served { child, url, lines })
}

/// Returns a node's options for an arm on a port that counts as calibrated, and for its state folder.
pub(crate) fn on_port<'a>(port: &'a str, state: &'a str) -> [&'a str; 6] {
    [
        "--port",
        port,
        "--state",
        state,
        "--calibrated",
        "elsewhere",
    ]
}

/// Connects to a node. Returns the connection and the host.
pub(crate) fn connect(served: &Served) -> (TcpStream, String) {
    let host = served.host();
    (connect_to(&host), host)
}

fn connect_to(host: &str) -> TcpStream {
    let stream = TcpStream::connect(host).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    stream
}

/// Posts a request on a new connection. Returns the status, and the body if it is JSON.
pub(crate) fn post(served: &Served, headers: &str, body: &str) -> (u16, Value) {
    post_to(&served.host(), headers, body)
}

/// Posts a request and returns the raw response, head and body.
pub(crate) fn post_text(served: &Served, headers: &str, body: &str) -> String {
    let host = served.host();
    text(&mut posted(
        &host,
        &format!("Host: {host}\r\n{headers}"),
        body,
    ))
}

/// Posts a request to a host.
pub(crate) fn post_to(host: &str, headers: &str, body: &str) -> (u16, Value) {
    send_to(host, &format!("Host: {host}\r\n{headers}"), body)
}

/// Posts a request whose `headers` name the host.
pub(crate) fn send(served: &Served, headers: &str, body: &str) -> (u16, Value) {
    send_to(&served.host(), headers, body)
}

fn send_to(host: &str, headers: &str, body: &str) -> (u16, Value) {
    answer(&mut posted(host, headers, body))
}

fn posted(host: &str, headers: &str, body: &str) -> TcpStream {
    let mut stream = connect_to(host);
    let length = body.len();
    let head = format!(
        "POST /mcp HTTP/1.1\r\n{headers}Content-Type: application/json\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n"
    );
    stream.write_all(head.as_bytes()).unwrap();
    // A server may refuse the request and close before the body is sent.
    let _ = stream.write_all(body.as_bytes());
    stream
}

/// Reads a response: its status, and its body if it is JSON.
pub(crate) fn answer(stream: &mut TcpStream) -> (u16, Value) {
    let text = text(stream);
    let status = text.split(' ').nth(1).and_then(|code| code.parse().ok());
    let body = text
        .split_once("\r\n\r\n")
        .map(|(_, body)| body.to_owned())
        .unwrap_or_default();
    let start = body.find('{').unwrap_or(body.len());
    let end = body.rfind('}').map_or(body.len(), |end| end + 1);
    let value = serde_json::from_str(body.get(start..end).unwrap_or_default());
    (status.unwrap_or(0), value.unwrap_or(Value::Null))
}

fn text(stream: &mut TcpStream) -> String {
    let mut bytes = Vec::new();
    // Bytes before a reset still count as the response.
    let _ = stream.read_to_end(&mut bytes);
    String::from_utf8_lossy(&bytes).into_owned()
}

/// A node that serves HTTP.
pub(crate) struct Served {
    pub(crate) child: Running,
    pub(crate) url: String,
    pub(crate) lines: Receiver<String>,
}

impl Served {
    /// Returns host and port.
    pub(crate) fn host(&self) -> String {
        let (_, at) = self.url.split_once("://").unwrap();
        at.split('/').next().unwrap().to_owned()
    }
}

/// A child process that is killed when dropped.
pub(crate) struct Running(pub(crate) Child);

impl Drop for Running {
    fn drop(&mut self) {
        // The child may have ended already.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

impl Running {
    /// Sends SIGTERM and waits for the exit code.
    #[cfg(unix)]
    pub(crate) fn terminate(&mut self) -> Option<i32> {
        self.signal(rustix::process::Signal::TERM);
        self.exit_code()
    }

    #[cfg(unix)]
    pub(crate) fn signal(&self, signal: rustix::process::Signal) {
        let id = rustix::process::Pid::from_child(&self.0);
        rustix::process::kill_process(id, signal).unwrap();
    }

    pub(crate) fn exit_code(&mut self) -> Option<i32> {
        let began = Instant::now();
        while began.elapsed() < PATIENCE {
            if let Some(status) = self.0.try_wait().unwrap() {
                return status.code();
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        panic!("it did not end");
    }
}

/// Reads the lines of a child's output on a thread, so that the child never waits for its reader.
pub(crate) fn lines(from: impl Read + Send + 'static) -> Receiver<String> {
    let (sender, lines) = channel();
    std::thread::spawn(move || {
        for line in BufReader::new(from).lines() {
            let Ok(line) = line else { break };
            if sender.send(line).is_err() {
                break;
            }
        }
    });
    lines
}

/// Asks until the answer is as expected, for as long as a step of a test may take. Returns the answer.
pub(crate) fn until<T: Debug>(
    what: &str,
    mut ask: impl FnMut() -> T,
    is_so: impl Fn(&T) -> bool,
) -> T {
    let began = Instant::now();
    loop {
        let answer = ask();
        if is_so(&answer) {
            return answer;
        }
        assert!(began.elapsed() < PATIENCE, "never {what}: {answer:#?}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

pub(crate) fn wait_for(lines: &Receiver<String>, what: &str) -> String {
    find_line(lines, what)
        .unwrap_or_else(|observed| panic!("no line with {what:?} in {observed:#?}"))
}

/// Waits for the first line that contains a text. Returns all lines if there is none.
fn find_line(lines: &Receiver<String>, what: &str) -> Result<String, Vec<String>> {
    let mut received = Vec::new();
    while let Ok(line) = lines.recv_timeout(PATIENCE) {
        if line.contains(what) {
            return Ok(line);
        }
        received.push(line);
    }
    Err(received)
}

/// Returns a scene on the default sheet that draws polylines.
pub(crate) fn scene(name: &str, polylines: &str) -> String {
    format!(
        r##"name = "{name}"
about = "For a test"
arm = "so101"
frame = "foot"

[design]
polylines = {polylines}

[sheet]
origin_m = [0.05, -0.125, 0.005]
x_axis = [-1.0, 0.0, 0.0]
y_axis = [0.0, -1.0, 0.0]
size_mm = [100.0, 100.0]

[[pens]]
name = "fineliner"
tip_m = [0.0, -0.038637, -0.010353]
axis = [0.0, -0.965926, -0.258819]
width_mm = 0.5
colour = "#1a1a2e"

[poses]
rest_rad = [0.0, -1.5, 1.2, 0.8, 0.0487]
ready_rad = [-0.0019, -0.2066, 0.0519, 1.4637, 0.0487]
"##
    )
}

/// Returns the arm's file with play in its gears.
pub(crate) fn sloppy_arm(backlash_deg: f64) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("scenes/arms/so101.toml");
    let text = std::fs::read_to_string(path).unwrap();
    format!("{text}\n[simulation]\nbacklash_deg = {backlash_deg:?}\n")
}
