//! From "no status packet" to causes, each with a fix. Nothing is written.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use serde::Serialize;

use super::host::HostSystem;
use super::scan::{self, BusScan, FoundServo, ScanEffort};
use super::servo_line::{PATIENT, SLACK};
use super::{OpenPort, ServiceError, ServoLine, ServoProtocol, servo_readout, unknown_device};
use base::clock::NodeClock;
use link::{ByteLink, LinkError};

/// An adapter that holds replies back longer than this keeps an arm from its 100 Hz.
const LATENCY_MAX: Duration = Duration::from_millis(4);

/// The ids that are asked with patience where none are expected.
const LIKELY: std::ops::RangeInclusive<u8> = 1..=8;

/// Fix for a different arm than the one named.
const RIGHT_ARM: &str = "connect the right arm, or name the right one in the node file";

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

/// Looks for everything that keeps servos on a port from being used. `progress` is told what is
/// tried.
///
/// # Errors
/// When the line fails half-way; a port that cannot be opened is a finding.
pub async fn diagnose(
    open: &mut OpenPort<'_>,
    clock: &NodeClock,
    host: &HostSystem,
    port: &str,
    expected: Option<&ExpectedServos>,
    progress: impl FnMut(ServoProtocol, u32),
) -> Result<BusDiagnosis, ServiceError> {
    let mut diagnosis = BusDiagnosis::default();
    let latency = check_machine(host, Path::new(port), &mut diagnosis);
    let baud = expected.map_or(1_000_000, |expected| expected.baud);
    if let Err(error) = open(baud) {
        diagnosis.add_port(&error, host, port);
        return Ok(diagnosis);
    }
    let slack = latency.map_or(SLACK, |latency| SLACK + 2 * latency);
    let mut scan = scan_expected(open, clock, slack, expected).await?;
    let mut is_late = false;
    if scan.found.is_empty() {
        if diagnosis.add_controller(open, clock, expected).await? {
            return Ok(diagnosis);
        }
        (scan, is_late) = scan_usual(open, clock, slack).await?;
    }
    if scan.found.is_empty() && !is_late {
        if diagnosis.add_talk(open, clock).await? {
            return Ok(diagnosis);
        }
        let effort = ScanEffort { slack, first: true };
        scan = scan::scan(open, clock, effort, progress).await?;
    }
    let took = ping_patiently(open, clock, expected, &mut scan).await?;
    if let Some(took) = took.filter(|took| *took > LATENCY_MAX) {
        diagnosis.add_slow(took);
    }
    diagnosis.add_scan_findings(&scan, expected);
    diagnosis.servos = scan.found;
    Ok(diagnosis)
}

/// Facts of the machine; how long the adapter holds replies back, where it says so.
pub fn check_machine(host: &HostSystem, port: &Path, into: &mut BusDiagnosis) -> Option<Duration> {
    if let Some(process) = host.modem_manager(port) {
        into.add(
            DiagnosisCause::ModemManager,
            format!("ModemManager runs (process {process}) and may send modem commands to this port"),
            "a udev rule with ENV{ID_MM_DEVICE_IGNORE}=\"1\" for the adapter keeps it away (systemd/60-steadyhand.rules)",
        );
    }
    let latency = Duration::from_millis(host.latency_timer_ms(port)?);
    if latency > LATENCY_MAX {
        into.add(
            DiagnosisCause::Latency,
            format!(
                "the FTDI adapter holds replies back for {} ms",
                latency.as_millis()
            ),
            "set its latency_timer to 1 (systemd/60-steadyhand.rules does so at every start)",
        );
    }
    Some(latency)
}

/// Those that are expected, where any of them answers as expected.
async fn scan_expected(
    open: &mut OpenPort<'_>,
    clock: &NodeClock,
    slack: Duration,
    expected: Option<&ExpectedServos>,
) -> Result<BusScan, ServiceError> {
    let mut scan = BusScan::default();
    if let Some(expected) = expected {
        let way = (expected.speech, expected.baud);
        scan::scan_speed(open, clock, slack, way, &mut scan).await?;
    }
    Ok(scan)
}

/// Scans at the first speed at which a servo with a usual id answers. Otherwise returns an empty scan,
/// and whether servos answer, but later than they were waited for.
async fn scan_usual(
    open: &mut OpenPort<'_>,
    clock: &NodeClock,
    slack: Duration,
) -> Result<(BusScan, bool), ServiceError> {
    let mut scan = BusScan::default();
    let way = scan::find_usual(open, clock, slack, None).await?;
    let is_late = way.is_some_and(|way| way.slack > slack);
    if let Some(way) = way.filter(|_| !is_late) {
        let at = (way.speech, way.baud);
        scan::scan_speed(open, clock, slack, at, &mut scan).await?;
    }
    Ok((scan, is_late))
}

/// Asks again with time for a slow adapter, where no servo was found: the likeliest ids at every
/// speed. Returns the delay of the slowest answer.
async fn ping_patiently(
    open: &mut OpenPort<'_>,
    clock: &NodeClock,
    expected: Option<&ExpectedServos>,
    scan: &mut BusScan,
) -> Result<Option<Duration>, ServiceError> {
    if !scan.found.is_empty() || scan.heard.damaged_id.is_some() {
        return Ok(None);
    }
    let ids: Vec<u8> = expected.map_or_else(|| LIKELY.collect(), |expected| expected.ids.clone());
    for speech in ServoProtocol::ALL {
        for baud in speech.bauds() {
            let Ok(mut link) = open(*baud) else { continue };
            let mut line = ServoLine::new(speech, clock, *baud, PATIENT);
            let took = ping_ids(&mut line, link.as_mut(), &ids, scan).await?;
            if took.is_some() {
                return Ok(took);
            }
        }
    }
    Ok(None)
}

/// Reads the servos with these ids that answer; returns the delay of the slowest answer.
async fn ping_ids(
    line: &mut ServoLine,
    link: &mut dyn ByteLink,
    ids: &[u8],
    into: &mut BusScan,
) -> Result<Option<Duration>, ServiceError> {
    let mut slowest = None;
    for id in ids {
        let Some(took) = line.ping(link, *id).await? else {
            continue;
        };
        slowest = slowest.max(Some(took));
        if let Some(servo) = servo_readout::at(line, link, *id).await? {
            into.found.push(FoundServo {
                family: line.speech(),
                baud: line.baud(),
                servo,
            });
        }
    }
    Ok(slowest)
}

impl BusDiagnosis {
    /// Adds why the port cannot be opened.
    pub fn add_port(&mut self, error: &LinkError, host: &HostSystem, port: &str) {
        match error {
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
            LinkError::Permission { .. } => self.add(
                DiagnosisCause::NoPermission,
                format!("this user may not open {port}"),
                "add the user to the group that owns it: `sudo usermod -aG dialout $USER`, then log in again",
            ),
            LinkError::Busy { .. } => {
                let users = host.users_of(Path::new(port));
                let names: Vec<String> = users
                    .iter()
                    .map(|(name, process)| format!("{name} (process {process})"))
                    .collect();
                let who = if names.is_empty() {
                    "another program, perhaps another user's".to_owned()
                } else {
                    names.join(" and ")
                };
                self.add(
                    DiagnosisCause::AnotherProgram,
                    format!("{port} is open in {who}"),
                    "end it, and try again: two programs on one bus take each other's replies",
                );
            }
            other => self.add(
                DiagnosisCause::NotAPort,
                other.to_string(),
                "name a serial port, such as one below /dev/serial/by-id",
            ),
        }
    }

    fn add_slow(&mut self, took: Duration) {
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

    fn add_scan_findings(&mut self, scan: &BusScan, expected: Option<&ExpectedServos>) {
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
                "nothing at all is heard, at any speed of either family",
                "switch the servo supply on and check its voltage; then the cable to the first servo, then the adapter",
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

    /// Adds a finding if a controller answers where no servo does; returns whether it did.
    async fn add_controller(
        &mut self,
        open: &mut OpenPort<'_>,
        clock: &NodeClock,
        expected: Option<&ExpectedServos>,
    ) -> Result<bool, ServiceError> {
        let first = expected.map_or(1_000_000, |expected| expected.baud);
        let Some(baud) = unknown_device::find_controller(open, clock, first).await? else {
            return Ok(false);
        };
        let what = format!("a controller with firmware of its own answers at {baud} baud");
        match expected {
            Some(expected) => self.add(
                DiagnosisCause::WrongFamily,
                format!(
                    "{what}; arm `{}` has servos of the family {}",
                    expected.arm,
                    expected.speech.name()
                ),
                RIGHT_ARM,
            ),
            None => self.add(
                DiagnosisCause::Controller,
                what,
                "name its arm, so that it can be looked into: `steadyhand doctor PORT --arm NAME`",
            ),
        }
        Ok(true)
    }

    /// Finds out whether a device that is no arm talks where no servo answers.
    ///
    /// # Errors
    /// When the port fails.
    pub async fn add_talk(
        &mut self,
        open: &mut OpenPort<'_>,
        clock: &NodeClock,
    ) -> Result<bool, ServiceError> {
        let Some((baud, text)) = unknown_device::find_talker(open, clock).await? else {
            return Ok(false);
        };
        self.add(
            DiagnosisCause::OtherTalk,
            format!("something that is no arm talks on this port, at {baud} baud and without being asked: {text:?}"),
            "name the arm's own port: /dev/serial/by-id tells adapters apart by their names, and `steadyhand doctor` lists the ports",
        );
        Ok(true)
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
        let there = |id: &u8| scan.found.iter().any(|found| found.servo.id == *id);
        let missing: Vec<String> = expected
            .ids
            .iter()
            .filter(|id| !there(id) && scan.heard.damaged_id != Some(**id))
            .map(u8::to_string)
            .collect();
        if !missing.is_empty() {
            self.add(
                DiagnosisCause::MissingServo,
                format!("no answer from id {}", missing.join(", ")),
                "check the cable from the servo before it, and its id: `steadyhand bus scan`",
            );
        }
    }
}
