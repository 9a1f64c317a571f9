//! The units that ship, and what a node and the service manager that runs it say to each other.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::disallowed_methods,
    clippy::indexing_slicing,
    reason = "a failing test may panic, and tests wait for real"
)]

use crate::support;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixDatagram;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::json;
use support::{Bench, Running, tool_call, unless_starved};

const BINARY: &str = env!("CARGO_BIN_EXE_steadyhand");

/// Longest time that a node may take to say something, on a busy machine.
const WAIT: Duration = Duration::from_secs(30);

fn units() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("systemd")
}

/// Units are judged by systemd's own judge, which a machine without systemd can have as well.
fn judge() -> Command {
    let judge = Command::new("systemd-analyze");
    let there = Command::new("systemd-analyze").arg("--version").output();
    assert!(
        there.is_ok_and(|output| output.status.success()),
        "there is no systemd-analyze to judge the units: install Debian's package `systemd`"
    );
    judge
}

/// Returns what a unit says of how its process ends.
fn setting(unit: &str, key: &str) -> String {
    let text = std::fs::read_to_string(units().join(unit)).unwrap();
    let line = text.lines().find_map(|line| line.strip_prefix(key));
    line.unwrap().to_owned()
}

/// The package stayed without its configuration where a person had removed or renamed the node file.
#[test]
fn the_package_is_configured_without_its_node_file_too() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    std::fs::create_dir(path("bin")).unwrap();
    let done = path("done").display().to_string();
    for program in ["systemd-sysusers", "systemctl", "udevadm", "chgrp", "chmod"] {
        let stub = path("bin").join(program);
        // A change of a file that is not there fails.
        let text = format!(
            "#!/bin/sh\necho {program} \"$@\" >> '{done}'\ncase $0 in */ch*) ls \"$2\" ;; esac\n"
        );
        std::fs::write(&stub, text).unwrap();
        std::fs::set_permissions(&stub, PermissionsExt::from_mode(0o755)).unwrap();
    }
    let configure = || {
        let _ = std::fs::remove_file(&done);
        let configured = Command::new("sh")
            .arg(units().join("debian/postinst"))
            .arg("configure")
            .env("DPKG_ROOT", folder.path())
            .env("PATH", format!("{}:/usr/bin:/bin", path("bin").display()))
            .output()
            .unwrap();
        assert!(configured.status.success(), "{configured:?}");
        std::fs::read_to_string(&done).unwrap()
    };
    configure();
    std::fs::create_dir_all(path("etc/steadyhand")).unwrap();
    let without = configure();
    assert!(
        without.contains("chmod 750") && !without.contains("node.toml"),
        "{without}"
    );
    std::fs::write(path("etc/steadyhand/node.toml"), "").unwrap();
    let with = configure();
    assert!(with.contains("etc/steadyhand/node.toml"), "{with}");
}

#[test]
fn the_units_pass_verification() {
    let folder = tempfile::tempdir().unwrap();
    let names = [
        "steadyhand.service",
        "steadyhand-sockets.service",
        "steadyhand-http.socket",
        "steadyhand-control.socket",
    ];
    let shipped = "ExecStart=/usr/bin/steadyhand ";
    for name in names {
        let text = std::fs::read_to_string(units().join(name)).unwrap();
        if name.ends_with(".service") {
            assert!(text.contains(shipped), "{name}: ExecStart has changed");
        }
        // The binary is not installed where the test runs; verification wants one that exists.
        let here = format!("ExecStart={BINARY} ");
        std::fs::write(folder.path().join(name), text.replace(shipped, &here)).unwrap();
    }
    let paths = names.map(|name| folder.path().join(name));
    let mut verify = judge();
    let verified = verify.arg("verify").args(paths).output().unwrap();
    let stderr = String::from_utf8_lossy(&verified.stderr);
    // What it says of other units of the machine is not ours.
    let ours: Vec<&str> = stderr
        .lines()
        .filter(|l| l.contains("steadyhand"))
        .collect();
    assert!(verified.status.success() && ours.is_empty(), "{stderr}");
}

#[test]
fn the_shipped_units_end_a_node_that_hangs_and_enable_nothing() {
    for unit in ["steadyhand.service", "steadyhand-sockets.service"] {
        assert_eq!(setting(unit, "WatchdogSec="), "2s");
        assert_eq!(setting(unit, "WatchdogSignal="), "SIGABRT");
        assert!(!setting(unit, "ExecStart=").contains("--enable"));
    }
}

#[test]
fn the_units_are_hardened() {
    // Tenths: at most 2.0 with HTTP, at most 1.0 where sockets come from outside.
    for (unit, tenths) in [
        ("steadyhand.service", "20"),
        ("steadyhand-sockets.service", "10"),
    ] {
        let judged = judge()
            .args([
                "security",
                "--offline=true",
                "--no-pager",
                "--threshold",
                tenths,
            ])
            .arg(units().join(unit))
            .output()
            .unwrap();
        let stdout = String::from_utf8_lossy(&judged.stdout);
        let last = stdout.lines().last().unwrap_or_default();
        assert!(judged.status.success(), "{unit}: {last}");
        let text = std::fs::read_to_string(units().join(unit)).unwrap();
        for line in [
            "DeviceAllow=char-ttyACM rw",
            "DeviceAllow=char-ttyUSB rw",
            "TimeoutStopSec=8s",
            // What an arm's thread asks for is given, and let through.
            "LimitRTPRIO=10",
            "LimitRTTIME=500ms",
            "SystemCallFilter=setpriority sched_setscheduler",
        ] {
            assert!(text.contains(line), "{unit}: no {line}");
        }
    }
}

/// A node under a notify socket.
struct Notified {
    bench: Bench,
    socket: UnixDatagram,
    node: Running,
}

impl Notified {
    fn start(args: &[&str], environment: &[(&str, &str)]) -> Self {
        let bench = Bench::new();
        let notify = bench.path("notify");
        let socket = UnixDatagram::bind(&notify).unwrap();
        socket.set_read_timeout(Some(WAIT)).unwrap();
        let mut command = bench.command(args);
        let node = command
            .env("NOTIFY_SOCKET", &notify)
            .env("RUNTIME_DIRECTORY", bench.path("run"))
            .envs(environment.iter().copied())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        Self {
            bench,
            socket,
            node: Running(node),
        }
    }

    fn received(&self) -> String {
        let mut bytes = [0_u8; 2048];
        let length = self.socket.recv(&mut bytes).unwrap();
        String::from_utf8_lossy(&bytes[..length]).into_owned()
    }

    /// Until a message has this; what came before it.
    fn until(&self, what: &str) -> (String, Vec<String>) {
        let began = Instant::now();
        let mut before = Vec::new();
        while began.elapsed() < WAIT {
            let message = self.received();
            if message.contains(what) {
                return (message, before);
            }
            before.push(message);
        }
        panic!("no {what} in {before:#?}");
    }
}

#[test]
fn a_node_says_that_it_is_ready_how_it_is_and_that_it_stops() {
    let mut node = Notified::start(&["serve", "--http", "127.0.0.1:0"], &[]);
    let (ready, before) = node.until("READY=1");
    assert!(before.is_empty(), "{before:?}");
    assert!(ready.contains("STATUS=arm (simulated so101) "), "{ready}");
    assert!(ready.contains("motion enabled"), "{ready}");
    let mut stop = node.bench.command(&["stop"]);
    let stopped = stop
        .env("RUNTIME_DIRECTORY", node.bench.path("run"))
        .status();
    assert!(stopped.unwrap().success());
    node.until("stopped until reset");
    node.node.signal(rustix::process::Signal::TERM);
    let (stopping, _) = node.until("STOPPING=1");
    assert!(stopping.contains("STATUS=stopping"), "{stopping}");
    assert_eq!(node.node.exit_code(), Some(0));
}

#[test]
fn the_watchdog_is_fed_while_the_arms_thread_lives() {
    let node = Notified::start(
        &["serve", "--http", "127.0.0.1:0"],
        &[("WATCHDOG_USEC", "400000")],
    );
    for _ in 0..3 {
        node.until("WATCHDOG=1");
    }
}

/// Holds one thread of a process as a debugger does, until its input ends.
const HOLD: &str = r#"
import ctypes, os, sys
ptrace, tid = ctypes.CDLL(None, use_errno=True).ptrace, int(sys.argv[1])
ptrace.argtypes = [ctypes.c_long, ctypes.c_long, ctypes.c_void_p, ctypes.c_void_p]
if ptrace(16, tid, None, None) != 0:
    print("not allowed", flush=True)
    sys.exit()
os.waitpid(tid, 0x40000000)
print("held", flush=True)
sys.stdin.read()
ptrace(17, tid, None, None)
"#;

/// The thread of a process that has this name.
fn thread(process: u32, name: &str) -> String {
    let tasks = std::fs::read_dir(format!("/proc/{process}/task")).unwrap();
    let mut ids = tasks.map(|task| task.unwrap().file_name().into_string().unwrap());
    let is_it = |id: &String| {
        let comm = format!("/proc/{process}/task/{id}/comm");
        std::fs::read_to_string(comm).is_ok_and(|found| found.trim() == name)
    };
    ids.find(is_it).unwrap()
}

/// The rest of the node lives on and answers; only the arm's thread hangs.
#[test]
fn the_watchdog_starves_when_the_arms_thread_hangs() {
    let node = Notified::start(
        &["serve", "--http", "127.0.0.1:0"],
        &[("WATCHDOG_USEC", "400000")],
    );
    node.until("WATCHDOG=1");
    let arm = thread(node.node.0.id(), "arm so101");
    let mut python = Command::new("python3");
    python.args(["-c", HOLD, &arm]).stdin(Stdio::piped());
    let mut holder = python.stdout(Stdio::piped()).spawn().unwrap();
    let stdout = support::lines(holder.stdout.take().unwrap());
    let mut holder = Running(holder);
    if stdout.recv_timeout(WAIT).unwrap() != "held" {
        // Debugging is not permitted on this machine, so no process can be made to hang from outside.
        return;
    }
    // Notifications sent before it hung may still be in the socket.
    node.socket.set_nonblocking(true).unwrap();
    while node.socket.recv(&mut [0; 2048]).is_ok() {}
    std::thread::sleep(Duration::from_secs(2));
    let mut bytes = [0_u8; 2048];
    while let Ok(length) = node.socket.recv(&mut bytes) {
        let received = String::from_utf8_lossy(&bytes[..length]);
        assert!(
            !received.contains("WATCHDOG"),
            "fed by another thread: {received}"
        );
    }
    node.socket.set_nonblocking(false).unwrap();
    drop(holder.0.stdin.take());
    node.until("WATCHDOG=1");
}

/// The node asks first who is attached: one whose arm does not answer is never ready, and says why.
#[test]
fn a_node_without_its_arm_is_not_ready_and_says_why() {
    unless_starved(|| {
        let bench = Bench::new();
        let (silent, path) = bench.sim(&[]);
        // Nobody speaks there any more, but the file may live on with the test's own end.
        drop(silent);
        let mut node = Notified::start(&["--port", &path, "serve", "--http", "127.0.0.1:0"], &[]);
        let (reply, before) = node.until("STATUS=failed");
        assert!(reply.contains("arm `arm`"), "{reply}");
        assert!(
            !before.iter().any(|one| one.contains("READY")),
            "{before:?}"
        );
        // Not what needs a person: it is started again, until the arm is there.
        assert_eq!(node.node.exit_code(), Some(75));
    });
}

#[test]
fn a_missing_arm_is_started_again_and_what_needs_a_person_is_not() {
    let bench = Bench::new();
    let gone = bench.path("no-such-port").display().to_string();
    let wrong = bench.path("node.toml");
    std::fs::write(&wrong, "nmae = \"x\"\n").unwrap();
    let wrong = wrong.display().to_string();
    for (args, code, again) in [
        (&["--allow-root", "--port", &gone, "serve"][..], 75, true),
        (&["--config", &wrong, "serve"], 1, false),
        (&["serve", "--no-such-option"], 2, false),
    ] {
        let output = bench.run(args);
        assert_eq!(output.status.code(), Some(code), "{args:?}: {output:?}");
        for unit in ["steadyhand.service", "steadyhand-sockets.service"] {
            let prevented = setting(unit, "RestartPreventExitStatus=");
            let mut prevented = prevented.split(' ');
            let is_prevented = prevented.any(|one| one == code.to_string());
            assert_eq!(is_prevented, !again, "{unit}: {code}");
            // However often that was.
            assert_eq!(setting(unit, "Restart="), "on-failure");
            assert_eq!(setting(unit, "StartLimitIntervalSec="), "0");
        }
    }
}

/// Opens two sockets as a service manager does, and becomes the node.
const ACTIVATE: &str = r#"
import os, socket, sys
http = socket.socket(); http.bind(("127.0.0.1", 0)); http.listen()
control = socket.socket(socket.AF_UNIX); control.bind(sys.argv[1]); control.listen()
os.chmod(sys.argv[1], 0o600)
print(http.getsockname()[1], flush=True)
a, b = os.dup(http.fileno()), os.dup(control.fileno())
a, b = os.dup2(a, 20), os.dup2(b, 21)
os.dup2(a, 3); os.dup2(b, 4)
os.environ.update(LISTEN_FDS="2", LISTEN_FDNAMES="http:control", LISTEN_PID=str(os.getpid()))
os.execv(sys.argv[2], sys.argv[2:])
"#;

#[test]
fn a_node_serves_on_sockets_that_were_opened_for_it() {
    let bench = Bench::new();
    let control = bench.path("given.sock");
    let template = bench.plain_command(&["serve", "--http", "systemd"]);
    let mut command = Command::new("python3");
    command.args(["-c", ACTIVATE]).arg(&control).arg(BINARY);
    command.args(template.get_args()).stdin(Stdio::null());
    for (key, value) in template.get_envs() {
        match value {
            Some(value) => command.env(key, value),
            None => command.env_remove(key),
        };
    }
    let mut child = command
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let lines = support::lines(child.stdout.take().unwrap());
    let child = Running(child);
    let port = lines.recv_timeout(WAIT).unwrap();
    let served = support::Served {
        child,
        url: format!("http://127.0.0.1:{port}/mcp"),
        lines,
    };
    let body = tool_call("list_nodes", &json!({}));
    // The connection waits in the socket until the node takes it: no client is refused meanwhile.
    let (status, answer) = support::post(&served, "", &body);
    assert_eq!(status, 200, "{answer}");
    let socket = control.display().to_string();
    let output = bench.run(&["status", "--socket", &socket]);
    assert!(output.status.success(), "{output:?}");
    let mut served = served;
    assert_eq!(served.child.terminate(), Some(0));
    assert!(control.exists(), "the file is its maker's");
}

#[test]
fn a_socket_that_is_not_there_is_said() {
    let bench = Bench::new();
    let output = bench.run(&["serve", "--http", "systemd"]);
    assert!(!output.status.success());
    let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(stderr.contains("steadyhand-http.socket"), "{stderr}");
}
