//! The bus tools as people use them: the real binary on a pseudo-terminal with simulated servos.
#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::disallowed_methods,
    reason = "a failing test may panic"
)]

use crate::support;
use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::Command;

use serde_json::Value;
use steadyhand::clock::NodeClock;
use steadyhand::link::serial::SerialLink;
use steadyhand::sim::SimulatedFault;

mod causes;

use causes::Patient;
use support::{Bench, unless_starved};

/// Exit code and standard output.
fn run(bench: &Bench, args: &[&str]) -> (i32, String) {
    let (code, text, errors) = bench.streams(args);
    assert!(code < 2 || !text.is_empty(), "{args:?}: {errors}");
    (code, text)
}

fn json(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or_else(|_| panic!("no JSON: {text}"))
}

fn cause(bench: &Bench, args: &[&str]) -> (i32, Vec<String>) {
    let (code, text) = run(bench, &[&["doctor", "--json"], args].concat());
    let findings = json(&text)["findings"].as_array().unwrap().clone();
    let causes = findings.iter().map(|one| {
        assert!(
            one["fix"].as_str().is_some_and(|fix| fix.len() > 10),
            "{one}"
        );
        one["cause"].as_str().unwrap().to_owned()
    });
    // On a busy machine simulated servos answer as late as behind a slow adapter.
    let causes: Vec<String> = causes.filter(|cause| cause != "latency").collect();
    let code = if causes.is_empty() { 0 } else { code };
    (code, causes)
}

#[test]
fn servos_are_scanned_watched_and_set_up_from_the_command_line() {
    unless_starved(|| {
        let bench = Bench::new();
        let (_sim, port) = bench.sim(&["--unpaced"]);
        let (code, text) = run(&bench, &["bus", "scan", &port, "--first", "--json"]);
        let found = json(&text);
        assert_eq!((code, found.as_array().unwrap().len()), (0, 6), "{text}");
        assert_eq!(found[0]["name"], "STS3215");
        assert_eq!(found[0]["baud"], 1_000_000);

        let (code, text) = run(&bench, &["bus", "monitor", &port, "--once"]);
        assert_eq!(code, 0);
        assert!(
            text.contains("position") && text.contains("25 °C"),
            "{text}"
        );

        let (_, text) = run(&bench, &["bus", "monitor", &port, "--once", "--json"]);
        let look = json(&text);
        assert_eq!(look["servos"][5]["temperature_c"], 25.0, "{look:#}");
        assert_eq!(
            (&look["damaged"], &look["foreign"]),
            (&Value::from(0), &Value::from(0))
        );
        assert!(look["requests"].as_u64() >= Some(6), "{look:#}");
        assert!(look["looks_per_second"].as_f64() > Some(0.0), "{look:#}");

        let change = [
            "bus",
            "configure",
            &port,
            "--id",
            "6",
            "--return-delay-us",
            "40",
        ];
        // Nobody is there to say yes.
        let (code, text) = run(&bench, &change);
        assert!(code == 1 && text.contains("nothing was"), "{code}: {text}");
        let (code, text) = run(&bench, &[&change[..], &["--yes"]].concat());
        assert!(code == 0 && text.contains("return delay"), "{code}: {text}");
        let (_, text) = run(&bench, &["bus", "scan", &port, "--first", "--json"]);
        assert_eq!(json(&text)[5]["return_delay_us"], 40);
    });
}

#[test]
fn a_servo_is_told_where_its_middle_is() {
    unless_starved(|| {
        // It was set up before, 300 counts off.
        let offset = [(31, 0x2C), (32, 0x01)].map(|(address, value)| SimulatedFault::Register {
            id: 2,
            address,
            value,
        });
        let patient = Patient::new("so101").broken(offset);
        let bench = Bench::new();
        let position = || {
            let args = ["bus", "scan", &patient.port, "--first", "--json"];
            json(&run(&bench, &args).1)[1]["position_ticks"].as_i64()
        };
        let args = ["bus", "configure", &patient.port, "--id", "2", "--home"];
        let before = position().unwrap();
        assert_eq!(before, 1748);
        let (code, text) = run(&bench, &args);
        assert!(
            code == 1 && text.contains("to 0 counts (0.0°)"),
            "{code}: {text}"
        );
        assert_eq!(position(), Some(before));
        let (code, text) = run(&bench, &[&args[..], &["--yes"]].concat());
        assert!(
            code == 0 && text.contains("homing offset"),
            "{code}: {text}"
        );
        assert_eq!(position(), Some(2048));
        let (code, text) = run(&bench, &[&args[..], &["--yes"]].concat());
        assert!(code == 0 && text.contains("already"), "{code}: {text}");

        let other = Patient::new("widowx250s");
        let args = [
            "bus",
            "configure",
            &other.port,
            "--id",
            "5",
            "--home",
            "--yes",
        ];
        let output = bench.run(&args);
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert!(
            !output.status.success() && stderr.contains("zero_tick"),
            "{stderr}"
        );
    });
}

#[test]
fn a_latched_servo_starts_anew_from_the_command_line() {
    unless_starved(|| {
        let overload = SimulatedFault::ErrorBits { id: 5, bits: 0x20 };
        let patient = Patient::new("widowx250s").broken([overload]);
        let bench = Bench::new();
        let args = ["bus", "reboot", &patient.port, "--id", "5"];
        // Nobody is there to say yes.
        let (code, text) = run(&bench, &args);
        assert!(code == 1 && text.contains("nothing was"), "{code}: {text}");
        let table = || run(&bench, &["bus", "monitor", &patient.port, "--once"]).1;
        assert!(table().contains("0x"), "{}", table());
        let (code, text) = run(&bench, &[&args[..], &["--yes"]].concat());
        assert!(code == 0 && text.contains("servo 5"), "{code}: {text}");
        assert!(!table().contains("0x"), "{}", table());
    });
}

#[test]
fn the_doctor_passes_a_good_arm_and_names_the_family_of_another() {
    unless_starved(|| {
        let bench = Bench::new();
        let (_sim, port) = bench.sim(&["--unpaced"]);
        assert_eq!(cause(&bench, &[&port, "--arm", "so101"]), (0, vec![]));
        let (code, causes) = cause(&bench, &[&port, "--arm", "widowx250s"]);
        assert_eq!((code, causes), (1, vec!["wrong_family".to_owned()]));
    });
}

#[tokio::test]
async fn the_doctor_names_the_program_that_has_the_port() {
    let bench = Bench::new();
    let (_sim, port) = bench.sim(&["--unpaced"]);
    let held = SerialLink::open(&port, 1_000_000, &NodeClock::real()).unwrap();
    let (code, text) = run(&bench, &["doctor", "--json", &port]);
    let finding = json(&text)["findings"][0].clone();
    assert_eq!(code, 1);
    assert_eq!(finding["cause"], "another_program");
    let own = std::process::id().to_string();
    assert!(
        finding["what"].as_str().unwrap().contains(&own),
        "{finding}"
    );
    drop(held);
}

/// A folder that everybody may look into, with a copy of the program: a test's own is private.
fn for_everybody() -> (tempfile::TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    std::fs::set_permissions(folder.path(), Permissions::from_mode(0o755)).unwrap();
    let program = folder.path().join("steadyhand");
    std::fs::copy(env!("CARGO_BIN_EXE_steadyhand"), &program).unwrap();
    (folder, program)
}

/// Somebody who owns nothing.
const NOBODY: u32 = 65_534;

#[test]
fn the_doctor_says_that_this_user_may_not_open_the_port() {
    unless_starved(|| {
        let bench = Bench::new();
        let (_sim, port) = bench.sim(&["--unpaced"]);
        std::fs::set_permissions(&port, Permissions::from_mode(0o000)).unwrap();
        let (_folder, program) = for_everybody();
        let mut doctor = Command::new(program);
        doctor.args(["doctor", "--json", &port]).current_dir("/");
        if rustix::process::getuid().is_root() {
            // Root may open anything.
            doctor.uid(NOBODY).gid(NOBODY);
        }
        let output = doctor.output().unwrap();
        let finding = json(&String::from_utf8(output.stdout).unwrap())["findings"][0].clone();
        assert_eq!(finding["cause"], "no_permission", "{finding}");
        assert!(
            finding["fix"].as_str().unwrap().contains("group"),
            "{finding}"
        );
        assert_eq!(output.status.code(), Some(1));
    });
}

#[test]
fn the_doctor_says_that_there_is_no_port() {
    let bench = Bench::new();
    let (code, causes) = cause(&bench, &["/dev/no-such-port"]);
    assert_eq!((code, causes), (1, vec!["no_port".to_owned()]));
}

#[test]
fn the_doctor_lists_ports_as_json_too() {
    let bench = Bench::new();
    let machine = tempfile::tempdir().unwrap();
    let root = machine.path().to_str().unwrap();
    let (code, causes) = cause(&bench, &["--root", root]);
    assert_eq!((code, causes), (1, vec!["no_port".to_owned()]));
    std::fs::create_dir(machine.path().join("dev")).unwrap();
    std::fs::write(machine.path().join("dev/ttyACM0"), "").unwrap();
    let (code, text) = run(&bench, &["doctor", "--json", "--root", root]);
    let found = json(&text);
    assert_eq!((code, &found["findings"]), (0, &serde_json::json!([])));
    assert_eq!(found["ports"].as_array().map(Vec::len), Some(1), "{found}");
}

/// Some twenty programs have /dev/null open; it was said to end each of them.
#[test]
fn the_doctor_says_what_is_no_serial_port() {
    let bench = Bench::new();
    for port in ["/dev/null", "simulator", "none"] {
        let (code, causes) = cause(&bench, &[port, "--arm", "so101"]);
        assert_eq!((code, causes), (1, vec!["not_a_port".to_owned()]), "{port}");
    }
    let (_, text) = run(&bench, &["doctor", "/dev/null"]);
    assert!(text.contains("serial port"), "{text}");
}

#[test]
fn the_doctor_says_if_a_node_files_arm_is_simulated_or_no_device() {
    let bench = Bench::new();
    let file = bench.path("node.toml");
    let args = ["--config", file.to_str().unwrap(), "doctor"];
    let with = |port: &str| {
        let arm = format!("[[arms]]\nname = \"left\"\nmodel = \"so101\"\nport = \"{port}\"\n");
        std::fs::write(&file, arm).unwrap();
        run(&bench, &args)
    };
    let (code, text) = with("simulator");
    assert!(code == 0 && text.contains("arm left of"), "{code}: {text}");
    assert!(text.contains("`port = \"simulator\"`"), "{text}");
    let (code, text) = with("none");
    assert!(code == 1 && text.contains("`none`"), "{code}: {text}");
}

#[test]
fn a_nodes_bytes_are_recorded_and_play_back_on_a_simulated_arm_alone() {
    let bench = Bench::new();
    let trace = bench.path("trace");
    let path = trace.to_str().unwrap().to_owned();
    let (code, result) = bench.call(&["stroke", r#"{"scene":"short"}"#, "--trace", &path]);
    assert_eq!(code, 0, "{result}");
    let lines = std::fs::read_to_string(&trace).unwrap();
    assert!(lines.lines().count() > 500);
    let (code, text) = run(&bench, &["bus", "replay", &path]);
    assert_eq!(code, 0);
    assert!(
        text.contains("requests") && text.contains("shoulder_pan"),
        "{text}"
    );
}

/// A ping and its reply.
const SENT_TO_FEETECH: &str = "1000 > ffff010201fb\n2000 < ffff010200fc\n";

#[test]
fn a_trace_of_another_family_is_refused_with_the_cause() {
    let bench = Bench::new();
    let trace = bench.path("trace");
    std::fs::write(&trace, SENT_TO_FEETECH).unwrap();
    let path = trace.to_str().unwrap();
    let output = bench.run(&["bus", "replay", path, "--arm", "widowx250s"]);
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{stderr}");
    assert!(
        stderr.contains("feetech-sts") && stderr.contains("--arm"),
        "{stderr}"
    );
}

#[test]
fn who_looks_for_servos_says_so_and_tells_who_is_asked() {
    unless_starved(|| {
        let silent = Patient::new("so101").broken((1..=6).map(SimulatedFault::Silence));
        let bench = Bench::new();
        for args in [
            vec!["bus", "monitor", &silent.port, "--once"],
            vec!["bus", "reboot", &silent.port, "--id", "40"],
        ] {
            let output = bench.run(&args);
            let stderr = String::from_utf8_lossy(&output.stderr);
            assert!(!output.status.success(), "{stderr}");
            assert!(stderr.contains("0 to 16"), "{stderr}");
        }
    });
}

#[test]
fn metrics_are_served_beside_mcp() {
    let bench = Bench::new();
    let served = bench.serve(&[]);
    let address = served
        .url
        .trim_start_matches("http://")
        .split('/')
        .next()
        .unwrap()
        .to_owned();
    let mut stream = std::net::TcpStream::connect(address).unwrap();
    use std::io::{Read, Write};
    write!(
        stream,
        "GET /metrics HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"
    )
    .unwrap();
    let mut text = String::new();
    stream.read_to_string(&mut text).unwrap();
    assert!(text.starts_with("HTTP/1.1 200"), "{text}");
    for line in [
        "# TYPE steadyhand_bus_cycles_total counter",
        "steadyhand_servo_retries_total{arm=\"",
        "steadyhand_bus_cycle_seconds{arm=\"",
        "quantile=\"0.99\"}",
    ] {
        assert!(text.contains(line), "{line} is not in {text}");
    }
}

#[test]
fn a_scan_that_finds_no_servo_says_where_to_look() {
    unless_starved(|| {
        let silent = Patient::new("so101").broken((1..=6).map(SimulatedFault::Silence));
        let bench = Bench::new();
        let output = bench.run(&["bus", "scan", &silent.port]);
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(1), "{stderr}");
        for word in ["no servo", "supply", "`steadyhand doctor PORT`"] {
            assert!(stderr.contains(word), "{word}: {stderr}");
        }
    });
}
