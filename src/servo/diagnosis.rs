//! Causes that keep servos from being used, each with the observation and a fix.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use serde::Serialize;

use super::ServoProtocol;
use super::complaints::ServoComplaint;
use super::host::HostSystem;
use super::scan::{BusNoise, BusScan, FoundServo};
use super::supply::{SHARE_AT_REST, SWITCH_OFF, ServoSupply, odd_supplies, servo_words};
use link::LinkError;

/// Fix for a different arm than the one named.
pub(super) const RIGHT_ARM: &str = "connect the right arm, or name the right one in the node file";

/// Fix for a port that was there and vanished.
const VANISHED_FIX: &str = "If the port appears and disappears, brltty (`sudo apt remove brltty`) or ModemManager takes it: `systemd/60-steadyhand.rules` keeps both away";

/// Place of the jumpers of a common adapter.
const JUMPERS: &str = "on a Waveshare adapter, set both jumpers to B (USB)";

/// Least number of requests answered unreadably that cannot be a disturbance.
const UNREADABLE_MIN: u64 = 3;

/// The cause of a fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum DiagnosisCause {
    /// There is no such port.
    NoPort,
    /// It may not be opened.
    NoPermission,
    /// It is open elsewhere.
    AnotherProgram,
    /// It cannot be opened for another reason.
    NotAPort,
    /// ModemManager may write to it.
    ModemManager,
    /// Replies are held back.
    Latency,
    /// Nothing at all is received.
    NoPower,
    /// Only the node's own bytes come back.
    EchoOnly,
    /// Only bytes come back that are no frame of any family.
    Unreadable,
    /// Servos run at another speed.
    WrongBaud,
    /// Servos of another family reply.
    WrongFamily,
    /// Several servos reply at once.
    DuplicateId,
    /// Some of the expected servos are missing.
    MissingServo,
    /// A servo replies that the arm does not have.
    UnexpectedServo,
    /// Replies sometimes fail.
    LostReplies,
    /// Servos have a higher supply than they are made for.
    Overvoltage,
    /// A servo complains of its supply, its temperature or a fault.
    Complaint,
    /// A servo has other firmware than the rest, or a controller's was built for another node.
    WrongFirmware,
    /// A servo's model or settings are not what the arm needs.
    WrongSetup,
    /// A servo holds less stiffly than it is delivered to.
    LowGain,
    /// A servo is not the one that the arm was calibrated with, or its settings have changed.
    Stranger,
    /// A controller with firmware of its own does not reply, or does not fit.
    Controller,
    /// A device that is no arm talks unasked.
    OtherTalk,
    /// A fault has stopped the arm.
    Fault,
    /// A file or a folder of the node is wrong.
    NodeFiles,
}

/// The ids that were asked before nothing answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AskedIds {
    /// Those that arms use.
    Usual,
    /// Every id.
    All,
}

/// A cause, the observation, and the fix.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct DiagnosisFinding {
    /// The cause.
    pub cause: DiagnosisCause,
    /// The observation.
    pub what: String,
    /// The fix.
    pub fix: String,
}

/// The servos that should reply.
#[derive(Clone, Debug, PartialEq)]
pub struct ExpectedServos {
    /// The arm's name.
    pub arm: String,
    /// Protocol of its servos.
    pub protocol: ServoProtocol,
    /// Their baud rate.
    pub baud: u32,
    /// Their ids, from the adapter outwards.
    pub ids: Vec<u8>,
    /// Ids of other arms on the same bus.
    pub beside: Vec<u8>,
    /// The supply that the arm's file states.
    pub supply_v: Option<f64>,
    /// Other arms of this protocol that may be connected instead, and their ids.
    pub others: Vec<(String, Vec<u8>)>,
}

/// The result of a diagnosis.
#[derive(Clone, Debug, Default)]
pub struct BusDiagnosis {
    /// Findings, the likeliest cause first; empty where all is well.
    pub findings: Vec<DiagnosisFinding>,
    /// The servos that replied.
    pub servos: Vec<FoundServo>,
    /// Known arms with exactly their ids, where no arm was named.
    pub known_arms: Vec<String>,
    /// The present identity of each of an arm's servos, by its id, where its driver could attach.
    pub identity: BTreeMap<String, String>,
}

impl BusDiagnosis {
    /// Adds a finding.
    pub fn add(&mut self, cause: DiagnosisCause, what: impl Into<String>, fix: impl Into<String>) {
        self.findings.push(DiagnosisFinding {
            cause,
            what: what.into(),
            fix: fix.into(),
        });
    }
}

impl BusDiagnosis {
    /// Adds the reason that the port cannot be opened.
    pub fn add_port(&mut self, error: &LinkError, host: &HostSystem, port: &str) {
        match error {
            LinkError::Missing { .. } if cfg!(unix) && !port.contains('/') => self.add(
                DiagnosisCause::NotAPort,
                format!("`{port}` is not a serial port: a port is the path of a device"),
                "name a port such as `/dev/ttyACM0` or a link in `/dev/serial/by-id`; for a simulated arm, write `port = \"simulator\"` into the node file",
            ),
            LinkError::Missing { .. } => {
                let ports = host.ports();
                let available = if ports.is_empty() {
                    "this machine has no serial port".to_owned()
                } else {
                    let names: Vec<String> = ports.iter().map(|p| p.display().to_string()).collect();
                    format!("this machine has {}", names.join(", "))
                };
                self.add(
                    DiagnosisCause::NoPort,
                    format!("there is no {port}"),
                    format!("plug the adapter in, or name its port: {available}. {VANISHED_FIX}"),
                );
            }
            LinkError::Permission { .. } => {
                let group = host.group_of(Path::new(port));
                let group = group.as_deref().unwrap_or("dialout");
                self.add(
                    DiagnosisCause::NoPermission,
                    format!("this user may not open {port}"),
                    format!("add the user to the group that owns it: `sudo usermod -aG {group} $USER`, then log in again"),
                );
            }
            LinkError::Busy { .. } => self.add_busy(port, "another program, perhaps another user's"),
            other => self.add(
                DiagnosisCause::NotAPort,
                other.to_string(),
                "name a serial port, such as a link in `/dev/serial/by-id`",
            ),
        }
    }

    /// Adds the programs that have the port open: an administrator can open a port that another program
    /// has open.
    pub fn add_holders(&mut self, host: &HostSystem, port: &str) -> bool {
        let holders = host.users_of(Path::new(port));
        let names: Vec<String> = holders
            .iter()
            .map(|(name, process)| format!("{name} (process {process})"))
            .collect();
        if !names.is_empty() {
            self.add_busy(port, &names.join(" and "));
        }
        !names.is_empty()
    }

    fn add_busy(&mut self, port: &str, holder: &str) {
        self.add(
            DiagnosisCause::AnotherProgram,
            format!("{holder} has {port} open"),
            "close that program, then try again: two programs on one bus take each other's replies",
        );
    }

    pub(super) fn add_slow(&mut self, took: Duration) {
        if self
            .findings
            .iter()
            .any(|one| one.cause == DiagnosisCause::Latency)
        {
            return;
        }
        self.add(
            DiagnosisCause::Latency,
            format!(
                "replies arrive {} ms late: the adapter holds them back",
                took.as_millis()
            ),
            "on an FTDI adapter, set `latency_timer` to 1; otherwise connect the adapter without a hub",
        );
    }

    /// Adds why no servo on a port answers, from what was heard instead.
    pub fn add_silence(&mut self, noise: &BusNoise, asked: AskedIds) {
        let (of_ids, then) = match asked {
            AskedIds::Usual => (
                " with an id from 0 to 16",
                "`steadyhand bus scan PORT` asks all other ids in about a minute",
            ),
            AskedIds::All => (
                "",
                "`steadyhand doctor PORT` also looks for other devices and controllers",
            ),
        };
        let (cause, what, fix) = match noise {
            _ if noise.damaged_id.is_some() => return,
            _ if noise.echoes > 0 => (
                DiagnosisCause::EchoOnly,
                "the adapter echoes every request, and no servo answers".to_owned(),
                format!("switch the servo supply on; {JUMPERS}. Check that the data wire goes to the servos, and that transmit and receive are joined only at the adapter"),
            ),
            _ if noise.unreadable >= UNREADABLE_MIN => (
                DiagnosisCause::Unreadable,
                format!("the replies to {} requests do not fit either servo family", noise.unreadable),
                "check that the adapter is for a half-duplex servo bus and runs at the servos' speed (mostly 1,000,000 baud, eight data bits). Then check its ground and the data wire's polarity, or try another adapter".to_owned(),
            ),
            _ => (
                DiagnosisCause::NoPower,
                format!("no servo{of_ids} answers at any speed of either family"),
                format!("switch the servo supply on and check its voltage; {JUMPERS}. Then check the cable to the first servo and the adapter. {then}"),
            ),
        };
        self.add(cause, what, fix);
    }

    pub(super) fn add_scan_findings(&mut self, scan: &BusScan, expected: Option<&ExpectedServos>) {
        if let Some(id) = scan.noise.damaged_id {
            self.add(
                DiagnosisCause::DuplicateId,
                format!("every reply from id {id} is damaged: two servos probably answer at once"),
                format!("connect the servos one by one and give each its own id: `steadyhand bus configure PORT --id {id} --new-id N`"),
            );
        }
        match scan.found.first() {
            None => self.add_silence(&scan.noise, AskedIds::Usual),
            Some(first) => self.compare(first, scan, expected),
        }
    }

    /// Adds that servos of another family reply than the arm has.
    pub fn add_family(&mut self, (protocol, baud): (ServoProtocol, u32), arm: &str, has: &str) {
        self.add(
            DiagnosisCause::WrongFamily,
            format!(
                "servos of the family {} answer at {baud} baud, but arm `{arm}` has {has}",
                protocol.name()
            ),
            RIGHT_ARM,
        );
    }

    /// Compares the servos that replied with the expected ones.
    fn compare(&mut self, first: &FoundServo, scan: &BusScan, expected: Option<&ExpectedServos>) {
        let Some(expected) = expected else { return };
        if first.family != expected.protocol {
            let settings = (first.family, first.baud);
            self.add_family(settings, &expected.arm, expected.protocol.name());
            return;
        }
        if first.baud != expected.baud {
            self.add(
                DiagnosisCause::WrongBaud,
                format!(
                    "the servos answer at {} baud, but arm `{}` runs at {}",
                    first.baud, expected.arm, expected.baud
                ),
                format!(
                    "set `baud = {}` in the arm's file, or set the servos to {} baud",
                    first.baud, expected.baud
                ),
            );
        }
        self.compare_ids(scan, expected);
    }

    /// Judges the servos that replied where no arm is named: adds a finding where no known arm has exactly their ids. Each known
    /// arm has its name, its protocol and its ids.
    pub fn compare_with_known(&mut self, known: &[(&str, ServoProtocol, Vec<u8>)]) {
        let Some(family) = self.servos.first().map(|first| first.family) else {
            return;
        };
        let is_double = |finding: &DiagnosisFinding| finding.cause == DiagnosisCause::DuplicateId;
        if self.findings.iter().any(is_double) {
            return;
        }
        let found: Vec<u8> = self.servos.iter().map(|found| found.servo.id).collect();
        let differing = |ids: &[u8]| {
            let missing = ids.iter().filter(|id| !found.contains(id)).count();
            missing + found.iter().filter(|id| !ids.contains(id)).count()
        };
        let of_family = || known.iter().filter(|(_, of, _)| *of == family);
        let exact = of_family().filter(|(.., ids)| differing(ids) == 0);
        self.known_arms = exact.map(|(name, ..)| (*name).to_owned()).collect();
        let nearest = of_family().min_by_key(|(.., ids)| differing(ids));
        if let Some((name, _, ids)) = nearest.filter(|_| self.known_arms.is_empty()) {
            self.add_unlike(&found, name, ids);
        }
    }

    /// Adds that the ids that answer are no known arm's, and how they differ from the nearest.
    fn add_unlike(&mut self, found: &[u8], name: &str, ids: &[u8]) {
        let beside = |ids: &[u8], others: &[u8]| {
            let beside = ids.iter().copied().filter(|id| !others.contains(id));
            beside.collect::<Vec<u8>>()
        };
        let (missing, extra) = (beside(ids, found), beside(found, ids));
        let text = |ids: &[u8]| join_ids(ids).unwrap_or_default();
        let mut what = format!(
            "id {} answers; no known arm has exactly these servos",
            text(found)
        );
        let mut fix = String::new();
        if !missing.is_empty() {
            what += &format!(". Arm `{name}` also needs id {}", text(&missing));
            fix = match extra.is_empty() {
                true => missing_fix(&missing, found, ids),
                false => wrong_id_fix(&extra, &missing),
            } + "; or ";
        }
        let fix = format!("{fix}name this arm: `steadyhand doctor PORT --arm NAME`");
        self.add(DiagnosisCause::MissingServo, what, fix);
    }

    /// Adds the ids that are missing and those that are unexpected.
    fn compare_ids(&mut self, scan: &BusScan, expected: &ExpectedServos) {
        let found = scan.found.iter().map(|found| found.servo.id);
        let found: Vec<u8> = found.filter(|id| !expected.beside.contains(id)).collect();
        let is_missing = |id: &u8| !found.contains(id) && scan.noise.damaged_id != Some(*id);
        let missing: Vec<u8> = expected.ids.iter().copied().filter(is_missing).collect();
        let is_extra = |id: &u8| !expected.ids.contains(id);
        let extra: Vec<u8> = found.iter().copied().filter(is_extra).collect();
        let (cause, what, fix) = match (join_ids(&extra), join_ids(&missing)) {
            (None, None) => return,
            (None, Some(missing_ids)) => (
                DiagnosisCause::MissingServo,
                format!("no answer from id {missing_ids}"),
                missing_fix(&missing, &found, &expected.ids),
            ),
            (Some(extra_ids), Some(missing_ids)) => (
                DiagnosisCause::MissingServo,
                format!("id {extra_ids} answers, id {missing_ids} does not"),
                wrong_id_fix(&extra, &missing),
            ),
            (Some(extra), None) => (
                DiagnosisCause::UnexpectedServo,
                format!(
                    "id {extra} answers, but arm `{}` has no such servo",
                    expected.arm
                ),
                "take it off the bus, or name it in the arm's file".to_owned(),
            ),
        };
        let has_these =
            |ids: &[u8]| ids.len() == found.len() && ids.iter().all(|id| found.contains(id));
        let other = expected.others.iter().find(|(_, ids)| has_these(ids));
        let fix = match other.map(|(other, _)| other) {
            // The cable to the last servos is loose more often.
            Some(other) if extra.is_empty() => {
                format!("{fix}. Or arm `{other}` is connected, which has exactly these ids")
            }
            Some(other) => {
                format!("the ids that answer belong to arm `{other}`: {RIGHT_ARM}. Otherwise {fix}")
            }
            None => fix,
        };
        self.add(cause, what, fix);
    }

    /// Adds what the servos report of themselves, supplies of all at once.
    pub(super) fn add_complaints(&mut self, scan: &BusScan, stated_v: Option<f64>) {
        let readouts = || scan.found.iter().map(|found| &found.servo);
        for servo in readouts() {
            for complaint in &servo.complaints {
                if complaint.high_supply().is_none() {
                    let what = format!("servo {}: {complaint}", servo.id);
                    self.add(DiagnosisCause::Complaint, what, complaint.remedy());
                }
            }
        }
        let supplies = ServoSupply::of_readouts(readouts());
        let is_high = self.add_high_supply(scan);
        for odd in odd_supplies(&supplies, stated_v, &SHARE_AT_REST) {
            if odd.is_high() && !is_high {
                self.add_first(DiagnosisCause::Overvoltage, odd.to_string(), odd.remedy());
            } else if !odd.is_high() {
                self.add(DiagnosisCause::Complaint, odd.to_string(), odd.remedy());
            }
        }
    }

    /// Adds the servos whose supply is above their own limit, before everything else; returns whether there are any.
    fn add_high_supply(&mut self, scan: &BusScan) -> bool {
        let high = scan.found.iter().filter_map(|found| {
            let mut complaints = found.servo.complaints.iter();
            let (voltage_v, max_v) = complaints.find_map(ServoComplaint::high_supply)?;
            Some((found.servo.id, voltage_v, max_v))
        });
        let high: Vec<(u8, f64, f64)> = high.collect();
        let ids: Vec<u8> = high.iter().map(|(id, ..)| *id).collect();
        let voltage_v = high.iter().map(|(_, volts, _)| *volts).fold(0.0, f64::max);
        let max_v = high
            .iter()
            .map(|(.., max_v)| *max_v)
            .fold(f64::INFINITY, f64::min);
        if !ids.is_empty() {
            let servos = servo_words(&ids);
            let what = format!("{servos}: the supply is {voltage_v:.1} V (at most {max_v:.1} V)");
            self.add_first(DiagnosisCause::Overvoltage, what, SWITCH_OFF);
        }
        !ids.is_empty()
    }

    /// Adds a finding before all others.
    fn add_first(&mut self, cause: DiagnosisCause, what: String, fix: &str) {
        let fix = fix.to_owned();
        self.findings
            .insert(0, DiagnosisFinding { cause, what, fix });
    }
}

/// Returns the fix for servos that do not answer. A cable that is loose silences all servos behind it as well.
fn missing_fix(missing: &[u8], found: &[u8], chain: &[u8]) -> String {
    let last_found = chain.iter().rposition(|id| found.contains(id));
    let is_inside = |id: &&u8| {
        let place = chain.iter().position(|of_chain| of_chain == *id);
        place < last_found
    };
    let inside: Vec<u8> = missing.iter().filter(is_inside).copied().collect();
    match join_ids(&inside) {
        None => {
            "check the cable from the servo before it, and its id with `steadyhand bus scan PORT`"
                .to_owned()
        }
        Some(inside) => format!(
            "the cables are good: servos behind id {inside} answer. A missing servo may have a wrong id, or the same id as another (a new servo has the id 1). Find it with `steadyhand bus scan PORT`, connect it alone, then `steadyhand bus configure PORT --id 1 --new-id N`"
        ),
    }
}

/// Returns the fix for servos that answer where others should. Only one servo that takes the place of one other surely
/// has the wrong id.
fn wrong_id_fix(extra: &[u8], missing: &[u8]) -> String {
    match (extra, missing) {
        ([extra], [missing]) => format!(
            "a servo may have the wrong id: `steadyhand bus configure PORT --id {extra} --new-id {missing}`. If not, check the cable from the servo before it"
        ),
        _ => "check which arm is connected, then the cable to the first missing servo. To change a wrong id, connect that servo alone and run `steadyhand bus configure PORT --id N --new-id M`".to_owned(),
    }
}

/// Joins ids with commas; `None` without any.
fn join_ids(ids: &[u8]) -> Option<String> {
    let texts: Vec<String> = ids.iter().map(u8::to_string).collect();
    (!texts.is_empty()).then(|| texts.join(", "))
}
