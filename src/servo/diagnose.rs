//! Finds the causes of a bus that does not work, each with a fix. Nothing is written.

use std::path::Path;
use std::time::Duration;

use super::diagnosis::RIGHT_ARM;
pub use super::diagnosis::{
    AskedIds, BusDiagnosis, DiagnosisCause, DiagnosisFinding, ExpectedServos,
};
use super::host::HostSystem;
use super::reply_tally::check_replies;
use super::scan::{self, BusScan, FoundServo};
use super::servo_line::{PATIENT, SLACK};
use super::{BusSettings, OpenPort, ServiceError, ServoLine, ServoProtocol, unknown_device};
use base::clock::NodeClock;
use link::LinkError;

/// Latency of an adapter beyond which an arm cannot run at 100 Hz.
const LATENCY_MAX: Duration = Duration::from_millis(4);

/// Ids that are pinged patiently where none are expected.
const LIKELY: std::ops::RangeInclusive<u8> = 1..=8;

/// Looks for everything that keeps servos on a port from being used. `progress` is called with each
/// family and speed that is tried.
///
/// # Errors
/// When the line fails half-way; a port that cannot be opened is a finding.
pub async fn diagnose(
    open: &mut OpenPort<'_>,
    clock: &NodeClock,
    host: &HostSystem,
    port: &str,
    expected: Option<&ExpectedServos>,
    mut progress: impl FnMut(ServoProtocol, u32),
) -> Result<BusDiagnosis, ServiceError> {
    let mut diagnosis = BusDiagnosis::default();
    let latency = check_machine(host, Path::new(port), &mut diagnosis);
    let baud = expected.map_or(1_000_000, |expected| expected.baud);
    // A port is opened only once it is known that no program has it open. A path that is no port, such
    // as /dev/null, is open in many programs.
    if !host.is_terminal(Path::new(port))
        && let Err(error @ LinkError::Open { .. }) = open(baud)
    {
        diagnosis.add_port(&error, host, port);
        return Ok(diagnosis);
    }
    if diagnosis.add_holders(host, port) {
        return Ok(diagnosis);
    }
    if let Err(error) = open(baud) {
        diagnosis.add_port(&error, host, port);
        return Ok(diagnosis);
    }
    let slack = latency.map_or(SLACK, |latency| SLACK + 2 * latency);
    let mut scan = scan_expected(open, clock, slack, expected).await?;
    let mut slow_settings = None;
    if scan.found.is_empty() {
        if diagnosis.add_controller(open, clock, expected).await? {
            return Ok(diagnosis);
        }
        slow_settings = scan_usual(open, clock, slack, &mut scan, &mut progress).await?;
        if scan.found.is_empty()
            && slow_settings.is_none()
            && diagnosis.add_talk(open, clock).await?
        {
            return Ok(diagnosis);
        }
    }
    let latency = ping_patiently(open, clock, expected, slow_settings, &mut scan).await?;
    if let Some(latency) = latency.filter(|latency| *latency > LATENCY_MAX) {
        diagnosis.add_slow(latency);
    }
    listen_to_servos(open, clock, expected, &mut scan, &mut diagnosis).await?;
    diagnosis.add_scan_findings(&scan, expected);
    // Servos of another family are another arm's: its file says nothing of their supply.
    let own = expected.filter(|expected| {
        let mut found = scan.found.iter();
        found.any(|one| one.family == expected.protocol)
    });
    diagnosis.add_complaints(&scan, own.and_then(|expected| expected.supply_v));
    diagnosis.servos = scan.found;
    Ok(diagnosis)
}

/// Checks the machine and returns how long the adapter holds replies back, where it is known.
pub fn check_machine(host: &HostSystem, port: &Path, out: &mut BusDiagnosis) -> Option<Duration> {
    if let Some(process) = host.modem_manager(port) {
        out.add(
            DiagnosisCause::ModemManager,
            format!("ModemManager runs (process {process}) and may send modem commands to this port"),
            "install a udev rule with `ENV{ID_MM_DEVICE_IGNORE}=\"1\"` for the adapter (`systemd/60-steadyhand.rules`)",
        );
    }
    let latency = Duration::from_millis(host.latency_timer_ms(port)?);
    if latency > LATENCY_MAX {
        out.add(
            DiagnosisCause::Latency,
            format!(
                "the FTDI adapter holds replies back for {} ms",
                latency.as_millis()
            ),
            "set its `latency_timer` to 1 (`systemd/60-steadyhand.rules` does so at every start)",
        );
    }
    Some(latency)
}

/// Scans with the family and speed of the expected servos.
async fn scan_expected(
    open: &mut OpenPort<'_>,
    clock: &NodeClock,
    slack: Duration,
    expected: Option<&ExpectedServos>,
) -> Result<BusScan, ServiceError> {
    let mut scan = BusScan::default();
    if let Some(expected) = expected {
        let settings = BusSettings::new(expected.protocol, expected.baud, slack);
        scan::scan_speed(open, clock, settings, &mut scan).await?;
    }
    Ok(scan)
}

/// Scans at the first speed at which a servo with a usual id replies. Returns the settings of servos
/// that only reply late.
async fn scan_usual(
    open: &mut OpenPort<'_>,
    clock: &NodeClock,
    slack: Duration,
    scan: &mut BusScan,
    progress: &mut impl FnMut(ServoProtocol, u32),
) -> Result<Option<BusSettings>, ServiceError> {
    let search = scan::find_usual(open, clock, slack, None, progress).await?;
    scan.noise.echoes += search.noise.echoes;
    scan.noise.unreadable += search.noise.unreadable;
    match search.reached {
        Some(settings) if settings.slack > slack => Ok(Some(settings)),
        Some(settings) => {
            scan::scan_speed(open, clock, settings, scan).await?;
            Ok(None)
        }
        None => Ok(None),
    }
}

/// Pings again with time for a slow adapter if no servo was found: with the settings of late servos,
/// or of the arm's file. Returns the delay of the slowest reply.
async fn ping_patiently(
    open: &mut OpenPort<'_>,
    clock: &NodeClock,
    expected: Option<&ExpectedServos>,
    slow: Option<BusSettings>,
    scan: &mut BusScan,
) -> Result<Option<Duration>, ServiceError> {
    if !scan.found.is_empty() || scan.noise.damaged_id.is_some() {
        return Ok(None);
    }
    let stated =
        expected.map(|expected| BusSettings::new(expected.protocol, expected.baud, PATIENT));
    let Some(settings) = slow.or(stated) else {
        return Ok(None);
    };
    let ids: Vec<u8> = expected.map_or_else(|| LIKELY.collect(), |expected| expected.ids.clone());
    let Ok(mut line) = ServoLine::open(open, clock, settings) else {
        return Ok(None);
    };
    ping_ids(&mut line, &ids, scan).await
}

/// Checks at the servos' speed whether they always reply, and whether anything else talks there.
async fn listen_to_servos(
    open: &mut OpenPort<'_>,
    clock: &NodeClock,
    expected: Option<&ExpectedServos>,
    scan: &mut BusScan,
    diagnosis: &mut BusDiagnosis,
) -> Result<(), ServiceError> {
    let Some(first) = scan.found.first() else {
        return Ok(());
    };
    let (protocol, baud) = (first.family, first.baud);
    let mut line = ServoLine::open(open, clock, BusSettings::new(protocol, baud, PATIENT))?;
    let fits = expected.filter(|expected| expected.protocol == protocol);
    let ids = fits.map_or(&[][..], |expected| &expected.ids);
    check_replies(&mut line, ids, scan, diagnosis).await?;
    let Some(talk) = unknown_device::listen_beside_servos(line.link(), baud, clock).await? else {
        return Ok(());
    };
    drop(line);
    let talk = match talk.text {
        Some(_) => talk,
        None => unknown_device::find_talker(open, clock)
            .await?
            .unwrap_or(talk),
    };
    let what = match talk.text {
        Some(text) => format!("{text:?}, at {} baud", talk.baud),
        None => format!("{} bytes that are not text", talk.bytes),
    };
    diagnosis.add(
        DiagnosisCause::OtherTalk,
        format!("besides the servos, another device sends on this port without a request: {what}"),
        "take that device off the servo bus, because it disturbs the replies, or name the arm's own port (`/dev/serial/by-id` names the adapters)",
    );
    Ok(())
}

/// Reads the servos with these ids that reply; returns the delay of the slowest reply.
async fn ping_ids(
    line: &mut ServoLine,
    ids: &[u8],
    scan: &mut BusScan,
) -> Result<Option<Duration>, ServiceError> {
    let mut slowest = None;
    for id in ids {
        let Some(latency) = line.ping(*id).await? else {
            continue;
        };
        slowest = slowest.max(Some(latency));
        scan.found.extend(FoundServo::read(line, *id).await?);
    }
    Ok(slowest)
}

impl BusDiagnosis {
    /// Adds a finding if a controller replies where no servo does; returns whether it did.
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
        let what = format!("a controller with its own firmware answers at {baud} baud");
        match expected {
            Some(expected) => self.add(
                DiagnosisCause::WrongFamily,
                format!(
                    "{what}, but arm `{}` has servos of the family {}",
                    expected.arm,
                    expected.protocol.name()
                ),
                RIGHT_ARM,
            ),
            None => self.add(
                DiagnosisCause::Controller,
                what,
                "name its arm: `steadyhand doctor PORT --arm NAME`",
            ),
        }
        Ok(true)
    }

    /// Adds a finding if a device that is no arm talks where no servo replies; returns whether it did.
    ///
    /// # Errors
    /// When the port fails.
    pub async fn add_talk(
        &mut self,
        open: &mut OpenPort<'_>,
        clock: &NodeClock,
    ) -> Result<bool, ServiceError> {
        let Some(talk) = unknown_device::find_talker(open, clock).await? else {
            return Ok(false);
        };
        let baud = talk.baud;
        let Some(text) = talk.text else {
            self.add(
                DiagnosisCause::OtherTalk,
                format!(
                    "this port sends bytes without a request: {} or more within a second at {baud} baud. They are not text, and no servo answers",
                    talk.bytes
                ),
                "check the data wire and the ground: a loose or shorted wire floods the line. Then remove any other device, or name the arm's own port (`/dev/serial/by-id` names the adapters)",
            );
            return Ok(true);
        };
        self.add(
            DiagnosisCause::OtherTalk,
            format!("the device on this port is not an arm: it sends text without a request, at {baud} baud: {text:?}"),
            "name the arm's own port: `steadyhand doctor` lists the ports, and `/dev/serial/by-id` names the adapters",
        );
        Ok(true)
    }
}
