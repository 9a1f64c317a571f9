//! Causes that keep servos from being used, each with what was seen of it and what to do.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use serde::Serialize;

use super::ServoProtocol;
use super::host::HostSystem;
use super::scan::{BusScan, FoundServo};
use link::LinkError;

/// Fix for a different arm than the one named.
pub(super) const RIGHT_ARM: &str = "connect the right arm, or name the right one in the node file";

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
    /// Nothing at all is heard.
    NoPower,
    /// Only the node's own bytes come back.
    EchoOnly,
    /// Servos run at another speed.
    WrongBaud,
    /// Servos of another family answer.
    WrongFamily,
    /// Several servos speak at once.
    DuplicateId,
    /// Some are there, not all.
    MissingServo,
    /// A servo that the arm does not have answers.
    UnexpectedServo,
    /// Replies fail now and then.
    LostReplies,
    /// A servo complains of its supply, its temperature or a fault.
    Complaint,
    /// A servo has other firmware than the rest, or a controller's was built for another node.
    WrongFirmware,
    /// A servo's model or settings are not what the arm needs.
    WrongSetup,
    /// A servo is not the one that the arm was calibrated with, or was set otherwise since.
    Stranger,
    /// A controller with firmware of its own does not answer, or does not fit.
    Controller,
    /// Something that is no arm talks without being asked.
    OtherTalk,
    /// The arm's own thread has stopped for it.
    Fault,
}

/// A cause, what was seen of it, and what to do.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct DiagnosisFinding {
    /// The cause.
    pub cause: DiagnosisCause,
    /// The observation.
    pub what: String,
    /// The fix.
    pub fix: String,
}

/// The servos that should answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExpectedServos {
    /// The arm's name.
    pub arm: String,
    /// Protocol of its servos.
    pub speech: ServoProtocol,
    /// At which speed.
    pub baud: u32,
    /// Their ids.
    pub ids: Vec<u8>,
}

/// The result of a diagnosis.
#[derive(Clone, Debug, Default)]
pub struct BusDiagnosis {
    /// Findings, the likeliest cause first; empty where all is well.
    pub findings: Vec<DiagnosisFinding>,
    /// The servos that answered.
    pub servos: Vec<FoundServo>,
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
    /// Adds why the port cannot be opened.
    pub fn add_port(&mut self, error: &LinkError, host: &HostSystem, port: &str) {
        match error {
            LinkError::Missing { .. } if cfg!(unix) && !port.contains('/') => self.add(
                DiagnosisCause::NotAPort,
                format!("`{port}` is no serial port: a port is the path of a device"),
                "name one, such as /dev/ttyACM0 or a link below /dev/serial/by-id; for a simulated arm the node file says `port = \"simulator\"`",
            ),
            LinkError::Missing { .. } => {
                let ports = host.ports();
                let there = if ports.is_empty() {
                    "this machine has no serial port at all".to_owned()
                } else {
                    let names: Vec<String> = ports.iter().map(|p| p.display().to_string()).collect();
                    format!("this machine has {}", names.join(", "))
                };
                self.add(
                    DiagnosisCause::NoPort,
                    format!("there is no {port}"),
                    format!("plug the adapter in, or name its port: {there}"),
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
                "name a serial port, such as one below /dev/serial/by-id",
            ),
        }
    }

    /// Adds the programs that have the port open. For the system's administrator a port opens although another program has it.
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
            format!("{port} is open in {holder}"),
            "end it, and try again: two programs on one bus take each other's replies",
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
                "replies come back after {} ms: the adapter holds them back",
                took.as_millis()
            ),
            "on an FTDI adapter set latency_timer to 1; otherwise connect it without a hub",
        );
    }

    pub(super) fn add_scan_findings(&mut self, scan: &BusScan, expected: Option<&ExpectedServos>) {
        if let Some(id) = scan.heard.damaged_id {
            self.add(
                DiagnosisCause::DuplicateId,
                format!("what comes from id {id} is damaged every time, as when two servos speak at once"),
                format!("connect the servos one by one and give each an id of its own: `steadyhand bus configure PORT --id {id} --new-id N`"),
            );
        }
        match scan.found.first() {
            None if scan.heard.damaged_id.is_some() => {}
            None if scan.heard.echoes > 0 => self.add(
                DiagnosisCause::EchoOnly,
                "what is sent comes back, and nobody answers: the adapter is alive, the servos are not heard",
                "switch the servo supply on; check that the data wire goes to the servos and that transmit and receive are joined at the adapter only",
            ),
            None => self.add(
                DiagnosisCause::NoPower,
                "nothing at all is heard from the ids 0 to 16, at any speed of either family",
                "switch the servo supply on and check its voltage; then the cable to the first servo, then the adapter; `steadyhand bus scan PORT` asks every other id too, in about a minute",
            ),
            Some(first) => self.compare(first, scan, expected),
        }
    }

    /// Servos answer in the place of what an arm has.
    pub fn add_family(&mut self, (speech, baud): (ServoProtocol, u32), arm: &str, has: &str) {
        self.add(
            DiagnosisCause::WrongFamily,
            format!(
                "servos of the family {} answer at {baud} baud; arm `{arm}` has {has}",
                speech.name()
            ),
            RIGHT_ARM,
        );
    }

    /// Compares the servos that answered with the expected ones.
    fn compare(&mut self, first: &FoundServo, scan: &BusScan, expected: Option<&ExpectedServos>) {
        let Some(expected) = expected else { return };
        if first.family != expected.speech {
            let way = (first.family, first.baud);
            self.add_family(way, &expected.arm, expected.speech.name());
            return;
        }
        if first.baud != expected.baud {
            self.add(
                DiagnosisCause::WrongBaud,
                format!(
                    "servos answer at {} baud; arm `{}` runs at {}",
                    first.baud, expected.arm, expected.baud
                ),
                format!(
                    "set `baud = {}` in the arm's file, or the servos' baud to {}",
                    first.baud, expected.baud
                ),
            );
        }
        self.compare_ids(scan, expected);
    }

    /// Names the ids that are missing and those that are too many.
    fn compare_ids(&mut self, scan: &BusScan, expected: &ExpectedServos) {
        let found: Vec<u8> = scan.found.iter().map(|found| found.servo.id).collect();
        let is_missing = |id: &u8| !found.contains(id) && scan.heard.damaged_id != Some(*id);
        let missing: Vec<u8> = expected.ids.iter().copied().filter(is_missing).collect();
        let is_extra = |id: &u8| !expected.ids.contains(id);
        let extra: Vec<u8> = found.iter().copied().filter(is_extra).collect();
        let arm = &expected.arm;
        match (listed(&extra), listed(&missing)) {
            (None, None) => {}
            (None, Some(missing)) => self.add(
                DiagnosisCause::MissingServo,
                format!("no answer from id {missing}"),
                "check the cable from the servo before it, and its id: `steadyhand bus scan PORT`",
            ),
            (Some(extra), Some(missing)) => self.add(
                DiagnosisCause::MissingServo,
                format!("id {extra} answers, id {missing} does not"),
                format!("a servo may have the wrong id: `steadyhand bus configure PORT --id {extra} --new-id {missing}`, one servo at a time; otherwise check the cable from the servo before it"),
            ),
            (Some(extra), None) => self.add(
                DiagnosisCause::UnexpectedServo,
                format!("id {extra} answers, and arm `{arm}` has no such servo"),
                "take it off the bus, or name it in the arm's file",
            ),
        }
    }

    /// Adds what the servos report of themselves.
    pub(super) fn add_complaints(&mut self, scan: &BusScan) {
        for FoundServo { servo, .. } in &scan.found {
            for complaint in &servo.complaints {
                self.add(
                    DiagnosisCause::Complaint,
                    format!("servo {}: {complaint}", servo.id),
                    complaint.remedy(),
                );
            }
        }
    }
}

/// Returns ids in a row; `None` without any.
fn listed(ids: &[u8]) -> Option<String> {
    let words: Vec<String> = ids.iter().map(u8::to_string).collect();
    (!words.is_empty()).then(|| words.join(", "))
}
