//! Every cause that the doctor tells from the others, each brought about on a port and told with its
//! fix.

use std::io::Read;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use serde_json::Value;
use steadyhand::arm::{ArmFile, ArmModel};
use steadyhand::link::memory::FarEnd;
use steadyhand::sim::{ArmSimulator, SimulatedFault};
use steadyhand::units::{ClockInstant, JointVector};

use super::{json, run};
use crate::support::person::plugged_in;
use crate::support::{Bench, unless_starved};

/// On a machine with other work a reply may come too late to be believed.
const ATTEMPTS: u32 = 3;

/// An arm behind a port of this machine, in this process, where it can be broken.
pub(super) struct Patient {
    sim: ArmSimulator,
    pub(super) port: String,
}

impl Patient {
    pub(super) fn new(arm: &str) -> Self {
        let path = format!("{}/scenes/arms/{arm}.toml", env!("CARGO_MANIFEST_DIR"));
        Self::of(toml::from_str(&std::fs::read_to_string(path).unwrap()).unwrap())
    }

    fn of(file: ArmFile) -> Self {
        let arm = ArmModel::new(file).unwrap();
        let sim = ArmSimulator::new(&arm, &JointVector::zeros(arm.dof()));
        sim.set_paced(false);
        let port = plugged_in(sim.clone());
        Self { sim, port }
    }

    pub(super) fn broken(self, faults: impl IntoIterator<Item = SimulatedFault>) -> Self {
        faults.into_iter().for_each(|it| self.sim.break_it(it));
        self
    }

    /// The finding of `cause` that the doctor comes to at last, and the fix that goes with it.
    fn suffers(&self, cause: &str, arm: &str) -> (String, String) {
        let args = ["doctor", "--json", &self.port, "--arm", arm];
        found(&args, cause)
    }
}

impl Drop for Patient {
    fn drop(&mut self) {
        self.sim.break_it(SimulatedFault::Unplug);
    }
}

fn found(args: &[&str], cause: &str) -> (String, String) {
    let bench = Bench::new();
    let mut reply = Value::Null;
    for _ in 0..ATTEMPTS {
        let (code, text) = run(&bench, args);
        reply = json(&text)["findings"].take();
        let all = reply.as_array().unwrap();
        assert_eq!(code, i32::from(!all.is_empty()));
        if let Some(one) = all.iter().find(|one| one["cause"] == cause) {
            let text = |key: &str| one[key].as_str().unwrap().to_owned();
            return (text("what"), text("fix"));
        }
    }
    panic!("no {cause}: {reply:#}");
}

fn silence() -> impl Iterator<Item = SimulatedFault> {
    (1..=6).map(SimulatedFault::Silence)
}

#[test]
fn no_power() {
    unless_starved(|| {
        let patient = Patient::new("so101").broken(silence());
        let (what, fix) = patient.suffers("no_power", "so101");
        assert!(what.contains("0 to 16"), "{what}");
        assert!(fix.contains("supply"), "{fix}");
    });
}

#[test]
fn a_half_duplex_adapter_that_hears_itself_and_nobody_else() {
    unless_starved(|| {
        let patient = Patient::new("so101").broken(silence().chain([SimulatedFault::Echo(true)]));
        let (what, fix) = patient.suffers("echo_only", "so101");
        assert!(what.contains("echo"), "{what}");
        assert!(fix.contains("transmit and receive"), "{fix}");
    });
}

#[test]
fn an_echo_beside_good_servos_is_no_finding() {
    unless_starved(|| {
        let patient = Patient::new("so101").broken([SimulatedFault::Echo(true)]);
        let all = ["doctor", "--json", &patient.port, "--arm", "so101"];
        let (code, causes) = super::cause(&Bench::new(), &all[2..]);
        assert_eq!((code, causes), (0, vec![]));
    });
}

#[test]
fn a_wrong_speed() {
    unless_starved(|| {
        let text = include_str!("../../../scenes/arms/so101.toml");
        let file: ArmFile = toml::from_str(text).unwrap();
        let slower = ArmFile {
            baud: 500_000,
            ..file
        };
        let (what, fix) = Patient::of(slower).suffers("wrong_baud", "so101");
        assert!(what.contains("answer at 500000 baud"), "{what}");
        assert!(fix.contains("`baud = 500000`"), "{fix}");
    });
}

#[test]
fn two_servos_with_one_id() {
    unless_starved(|| {
        let patient = Patient::new("so101").broken([SimulatedFault::Duplicate(2)]);
        let (what, fix) = patient.suffers("duplicate_id", "so101");
        assert!(what.contains("id 2"), "{what}");
        assert!(fix.contains("--id 2 --new-id"), "{fix}");
    });
}

#[test]
fn another_family() {
    unless_starved(|| {
        let (what, fix) = Patient::new("widowx250s").suffers("wrong_family", "so101");
        assert!(what.contains("arm `so101`"), "{what}");
        assert!(fix.contains("the node file"), "{fix}");
    });
}

#[test]
fn another_arm_of_the_family() {
    unless_starved(|| {
        let (what, fix) = Patient::new("openmanipulator-x").suffers("missing_servo", "koch");
        assert!(what.starts_with("id 11, 12, 13, 14, 15 answers"), "{what}");
        let named = "the ids that answer belong to arm `openmanipulator-x`: connect the right arm";
        assert!(fix.starts_with(named), "{fix}");
    });
}

#[test]
fn servos_of_an_arm_that_is_not_named() {
    unless_starved(|| {
        let patient = Patient::new("so101").broken([1, 6].map(SimulatedFault::Silence));
        let (what, fix) = found(&["doctor", "--json", &patient.port], "missing_servo");
        assert!(
            what.contains("`so101`") && what.contains("id 1, 6"),
            "{what}"
        );
        assert!(
            fix.contains("cables") && fix.contains("--arm NAME"),
            "{fix}"
        );
        let (_, text) = run(
            &Bench::new(),
            &["doctor", "--json", &Patient::new("koch").port],
        );
        assert_eq!(
            json(&text)["known_arms"],
            serde_json::json!(["koch"]),
            "{text}"
        );
    });
}

#[test]
fn a_supply_of_half_of_what_the_servos_allow() {
    unless_starved(|| {
        let supply = (1..=6).map(|id| SimulatedFault::ServoSupplyV {
            id,
            volts: Some(4.5),
        });
        let patient = Patient::new("so101").broken(supply);
        for arm in [&[][..], &["--arm", "so101"]] {
            let args = [&["doctor", "--json", &patient.port], arm].concat();
            let (what, fix) = found(&args, "complaint");
            assert!(
                what.starts_with("servos 1, 2, 3, 4, 5, 6: ") && what.contains("4.5 V"),
                "{what}"
            );
            assert!(fix.contains("supply_v"), "{fix}");
        }
    });
}

#[test]
fn a_controller_where_servos_are_expected() {
    unless_starved(|| {
        let (what, fix) = Patient::new("custom").suffers("wrong_family", "so101");
        assert!(what.contains("controller"), "{what}");
        assert!(fix.contains("the node file"), "{fix}");
    });
}

#[test]
fn servos_where_a_controller_is_expected() {
    unless_starved(|| {
        let (what, fix) = Patient::new("so101").suffers("wrong_family", "custom");
        assert!(
            what.contains("family feetech-sts") && what.contains("arm `custom`"),
            "{what}"
        );
        assert!(fix.contains("the node file"), "{fix}");
    });
}

/// A GPS receiver, which sends its position five times a second and ignores input.
struct Receiver(ClockInstant);

const POSITION: &[u8] = b"$GPGGA,123519,4807.038,N,01131.000,E,1,08,0.9,545.4,M,46.9,M,,*47\r\n";

impl FarEnd for Receiver {
    fn hear(&mut self, _: ClockInstant, _: &[u8]) {}

    fn next_due(&self) -> Option<ClockInstant> {
        Some(self.0)
    }

    fn speak(&mut self, now: ClockInstant, into: &mut Vec<u8>) {
        if now >= self.0 {
            self.0 = now.after(Duration::from_millis(200));
            into.extend(POSITION);
        }
    }
}

#[test]
fn something_that_is_no_arm_and_talks() {
    unless_starved(|| {
        let port = plugged_in(Receiver(ClockInstant::ZERO));
        for arm in ["so101", "custom"] {
            let args = ["doctor", "--json", &port, "--arm", arm];
            let (what, fix) = found(&args, "other_talk");
            assert!(what.contains("$GPGGA,"), "{what}");
            assert!(fix.contains("/dev/serial/by-id"), "{fix}");
        }
    });
}

/// A byte of a servo's memory: which firmware it has, which model it is, how it counts.
fn poked(id: u8, address: u16, value: u8) -> Patient {
    Patient::new("so101").broken([SimulatedFault::Register { id, address, value }])
}

#[test]
fn other_firmware() {
    unless_starved(|| {
        let (what, fix) = poked(4, 1, 9).suffers("wrong_firmware", "so101");
        assert!(
            what.contains("servo 4 (wrist_flex): ") && what.contains("3.9"),
            "{what}"
        );
        assert!(fix.contains("firmware"), "{fix}");
    });
}

#[test]
fn a_controller_with_other_firmware() {
    unless_starved(|| {
        let newer = SimulatedFault::OtherProtocol {
            major: 2,
            schema: 0,
        };
        let patient = Patient::new("custom").broken([newer]);
        let (what, fix) = patient.suffers("wrong_firmware", "custom");
        assert!(what.contains("version 2"), "{what}");
        assert!(fix.contains("firmware"), "{fix}");
    });
}

#[test]
fn another_model_and_a_register_set_otherwise() {
    unless_starved(|| {
        let (what, fix) = poked(4, 3, 8).suffers("wrong_setup", "so101");
        assert!(what.contains("model is 776"), "{what}");
        assert!(fix.contains("replace"), "{fix}");
        let (what, fix) = poked(3, 18, 0x10).suffers("wrong_setup", "so101");
        assert!(what.contains("servo 3 (elbow_flex): phase"), "{what}");
        assert!(fix.contains("--id 3 --repair"), "{fix}");
    });
}

/// The fix named no command, and `--repair`, which the documentation named, sets no limits.
#[test]
fn limits_of_a_servo_that_are_narrower_than_the_arms() {
    unless_starved(|| {
        // The least position becomes 1280.
        let patient = poked(3, 10, 5);
        let (what, fix) = patient.suffers("wrong_setup", "so101");
        assert!(what.contains("1280"), "{what}");
        assert!(fix.contains("--limits-ticks MIN:MAX"), "{fix}");
        let args = ["bus", "configure", &patient.port, "--id", "3", "--yes"];
        let set = [&args[..], &["--limits-ticks", "0:4095"]].concat();
        let (code, text) = run(&Bench::new(), &set);
        assert_eq!(code, 0, "{text}");
        let (code, causes) = super::cause(&Bench::new(), &[&patient.port, "--arm", "so101"]);
        assert_eq!((code, causes), (0, vec![]));
    });
}

#[test]
fn replies_that_are_held_back() {
    unless_starved(|| {
        let by = Duration::from_millis(16);
        let late = SimulatedFault::LateReplies { share: 1.0, by };
        let patient = Patient::new("so101").broken([late]);
        let (what, fix) = patient.suffers("latency", "so101");
        assert!(what.contains("adapter"), "{what}");
        assert!(fix.contains("`latency_timer` to 1"), "{fix}");
    });
}

/// For the system's administrator the port opens all the same, and two programs take each other's replies.
#[test]
fn another_program_that_has_the_port_open() {
    let patient = Patient::new("so101");
    let held = format!("exec 3<>{}; echo; exec sleep 600", patient.port);
    let mut holder = Command::new("sh");
    let mut holder = holder
        .args(["-c", &held])
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    holder.stdout.take().unwrap().read_exact(&mut [0]).unwrap();
    let (what, fix) = patient.suffers("another_program", "so101");
    holder.kill().unwrap();
    holder.wait().unwrap();
    assert!(what.contains("sleep (process"), "{what}");
    assert!(fix.contains("that program"), "{fix}");
}

#[test]
fn a_servo_that_complains_is_named_with_its_complaint() {
    unless_starved(|| {
        let hot = SimulatedFault::Heat {
            id: 3,
            temperature_c: 66.0,
        };
        let patient = Patient::new("so101").broken([hot]);
        let (what, fix) = patient.suffers("complaint", "so101");
        assert!(
            what.contains("servo 3: ") && what.contains("66 °C"),
            "{what}"
        );
        assert!(fix.contains("cool"), "{fix}");
        let (_, table) = run(&Bench::new(), &["bus", "monitor", "--once", &patient.port]);
        // It cools while it is looked at.
        assert!(table.contains("servo 3: "), "{table}");
    });
}

#[test]
fn a_monitored_servo_that_falls_silent_is_told_as_data_too() {
    unless_starved(|| {
        let patient = Patient::new("so101");
        let bench = Bench::new();
        let mut command = bench.command(&["bus", "monitor", &patient.port, "--json"]);
        let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
        let looks = std::io::BufReader::new(child.stdout.take().unwrap());
        let mut looks = std::io::BufRead::lines(looks).map(|look| json(&look.unwrap()));
        assert_eq!(looks.next().unwrap()["servos"][2]["answers"], true);
        patient.sim.break_it(SimulatedFault::Silence(3));
        let mut later = looks.take(100);
        let silent = later.find(|look| look["servos"][2]["answers"] == false);
        child.kill().unwrap();
        child.wait().unwrap();
        let servos = silent.unwrap()["servos"].take();
        assert_eq!(servos[2], serde_json::json!({"id": 3, "answers": false}));
        assert_eq!(servos.as_array().unwrap().len(), 6);
    });
}

fn write(path: &Path, text: &str) {
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(path, text).unwrap();
}

/// A machine that knows this port as an FTDI adapter's, where ModemManager runs.
fn machine(port: &str) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path();
    write(&root.join("proc/77/comm"), "ModemManager\n");
    let tty = root.join("sys/class/tty/ttyUSB0");
    write(&tty.join("device/latency_timer"), "16\n");
    write(&tty.join("dev"), "188:0\n");
    std::fs::create_dir_all(root.join("dev/serial/by-id")).unwrap();
    symlink(port, root.join("dev/ttyUSB0")).unwrap();
    symlink("../../ttyUSB0", root.join("dev/serial/by-id/usb-FTDI")).unwrap();
    folder
}

#[test]
fn modem_manager_and_a_latency_timer_of_16_ms() {
    unless_starved(|| {
        let patient = Patient::new("so101");
        let folder = machine(&patient.port);
        let root = folder.path().to_str().unwrap();
        let port = format!("{root}/dev/serial/by-id/usb-FTDI");
        let args = ["doctor", "--json", "--root", root, &port, "--arm", "so101"];
        let (what, fix) = found(&args, "modem_manager");
        assert!(what.contains("process 77"), "{what}");
        assert!(fix.contains("ID_MM_DEVICE_IGNORE"), "{fix}");
        let (what, fix) = found(&args, "latency");
        assert!(what.contains("16 ms"), "{what}");
        assert!(fix.contains("`latency_timer` to 1"), "{fix}");
        // The text for a person.
        let plain: Vec<&str> = args.into_iter().filter(|word| *word != "--json").collect();
        let (_, text) = run(&Bench::new(), &plain);
        assert!(text.contains(&format!("  → {fix}")), "{text}");
        // As the udev rules that are shipped set it.
        let root = folder.path();
        write(
            &root.join("run/udev/data/c188:0"),
            "E:ID_MM_DEVICE_IGNORE=1\n",
        );
        let timer = root.join("sys/class/tty/ttyUSB0/device/latency_timer");
        write(&timer, "1\n");
        let (code, causes) = super::cause(&Bench::new(), &args[2..]);
        assert_eq!((code, causes), (0, vec![]));
    });
}
