//! The unit that ships, and what a node says to the service manager that runs it.
#![expect(clippy::unwrap_used, reason = "tests")]

use std::os::unix::net::UnixDatagram;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

const BINARY: &str = env!("CARGO_BIN_EXE_steadyhand");

/// How long a node may take to say something, on a busy machine.
const WAIT: Duration = Duration::from_secs(30);

#[test]
fn the_unit_passes_verification() {
    let there = Command::new("systemd-analyze").arg("--version").output();
    if !there.is_ok_and(|output| output.status.success()) {
        // A machine without systemd runs no units.
        return;
    }
    let unit = Path::new(env!("CARGO_MANIFEST_DIR")).join("systemd/steadyhand.service");
    let text = std::fs::read_to_string(unit).unwrap();
    let shipped = "ExecStart=/usr/bin/steadyhand ";
    assert!(text.contains(shipped), "the unit's ExecStart has changed");
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("steadyhand.service");
    // The binary is not installed where the test runs; verification wants one that exists.
    let here = format!("ExecStart={BINARY} ");
    std::fs::write(&path, text.replace(shipped, &here)).unwrap();
    let verified = Command::new("systemd-analyze")
        .arg("verify")
        .arg(&path)
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&verified.stderr);
    // What it says of other units of the machine is not ours.
    let ours: Vec<&str> = said.lines().filter(|l| l.contains("steadyhand")).collect();
    assert!(verified.status.success() && ours.is_empty(), "{said}");
}

fn heard(socket: &UnixDatagram) -> String {
    let mut bytes = [0_u8; 512];
    let length = socket.recv(&mut bytes).unwrap();
    String::from_utf8_lossy(bytes.get(..length).unwrap_or_default()).into_owned()
}

#[test]
fn a_node_says_when_it_is_ready_and_when_it_stops() {
    let folder = tempfile::tempdir().unwrap();
    let notify = folder.path().join("notify");
    let socket = UnixDatagram::bind(&notify).unwrap();
    socket.set_read_timeout(Some(WAIT)).unwrap();
    let mut node = Command::new(BINARY)
        .args(["serve", "--http", "127.0.0.1:0"])
        .env("NOTIFY_SOCKET", &notify)
        .env("RUNTIME_DIRECTORY", folder.path())
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    assert_eq!(heard(&socket), "READY=1");
    let pid = node.id().to_string();
    let told = Command::new("kill").args(["-TERM", &pid]).status().unwrap();
    assert!(told.success());
    assert_eq!(heard(&socket), "STOPPING=1");
    assert_eq!(node.wait().unwrap().code(), Some(0));
}

#[test]
fn the_watchdog_is_fed_while_the_arms_thread_lives() {
    let folder = tempfile::tempdir().unwrap();
    let notify = folder.path().join("notify");
    let socket = UnixDatagram::bind(&notify).unwrap();
    socket.set_read_timeout(Some(WAIT)).unwrap();
    let mut node = Command::new(BINARY)
        .args(["serve", "--http", "127.0.0.1:0"])
        .env("NOTIFY_SOCKET", &notify)
        .env("WATCHDOG_USEC", "400000")
        .env("RUNTIME_DIRECTORY", folder.path())
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let mut fed = 0;
    while fed < 3 {
        fed += usize::from(heard(&socket) == "WATCHDOG=1");
    }
    node.kill().unwrap();
    node.wait().unwrap();
}
