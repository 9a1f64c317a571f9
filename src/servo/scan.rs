//! Scans a bus: every speed, both families, every id. Nothing is written.

use std::time::Duration;

use serde::Serialize;

use super::servo_line::IDS;
use super::servo_readout::{self, ServoReadout};
use super::{BusError, BusSettings, OpenPort, PATIENT, ServiceError, ServoLine, ServoProtocol};
use base::clock::NodeClock;
use link::LinkError;

/// A servo that answered.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct FoundServo {
    /// Its protocol.
    pub family: ServoProtocol,
    /// At which speed.
    pub baud: u32,
    /// Its own report.
    #[serde(flatten)]
    pub servo: ServoReadout,
}

impl FoundServo {
    /// Reads the servo with an id; `None` where it did not answer every question.
    ///
    /// # Errors
    /// When the line itself fails.
    pub async fn read(line: &mut ServoLine, id: u8) -> Result<Option<Self>, BusError> {
        let servo = servo_readout::at(line, id).await?;
        Ok(servo.map(|servo| Self {
            family: line.speech(),
            baud: line.baud(),
            servo,
        }))
    }
}

/// Traffic at one speed beside replies.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BusNoise {
    /// Bytes that were sent came back.
    pub echoes: u64,
    /// Frames with a wrong checksum.
    pub corrupt: u64,
    /// The first id that gave damaged answers only.
    pub damaged_id: Option<u8>,
}

/// The result of a scan.
#[derive(Clone, Debug, Default)]
pub struct BusScan {
    /// The servos, the usual speed of each family first, then by family and speed; by id.
    pub found: Vec<FoundServo>,
    /// Other traffic.
    pub heard: BusNoise,
}

/// The thoroughness of a scan.
#[derive(Clone, Copy, Debug)]
pub struct ScanEffort {
    /// Longest time for which the adapter may hold a reply back.
    pub slack: Duration,
    /// `true` to stop at the first speed with servos.
    pub first: bool,
}

/// Looks for servos; `progress` is told each family and speed before it is tried.
///
/// # Errors
/// When the port cannot be opened or fails.
pub async fn scan(
    open: &mut OpenPort<'_>,
    clock: &NodeClock,
    effort: ScanEffort,
    mut progress: impl FnMut(ServoProtocol, u32),
) -> Result<BusScan, ServiceError> {
    let mut scan = BusScan::default();
    for settings in all_speeds(effort.slack) {
        progress(settings.speech, settings.baud);
        scan_speed(open, clock, settings, &mut scan).await?;
        if effort.first && !scan.found.is_empty() {
            break;
        }
    }
    Ok(scan)
}

/// Most arms run at this speed, of either family.
const USUAL_BAUD: u32 = 1_000_000;

/// Every family at every speed, the usual speed of each first.
fn all_speeds(slack: Duration) -> Vec<BusSettings> {
    let at_each = |speech: ServoProtocol| {
        let bauds = speech.bauds().iter();
        bauds.map(move |baud| BusSettings::new(speech, *baud, slack))
    };
    let mut all: Vec<_> = ServoProtocol::ALL.into_iter().flat_map(at_each).collect();
    all.sort_by_key(|settings| settings.baud != USUAL_BAUD);
    all
}

/// The result of asking the usual ids at every speed.
#[derive(Clone, Copy, Debug, Default)]
pub struct UsualSearch {
    /// The first way on which a servo answered.
    pub reached: Option<BusSettings>,
    /// Traffic until then.
    pub heard: BusNoise,
}

/// The first way on which a servo with a usual id answers, or the one that is meant; `progress` is told
/// each family and speed before it is tried.
///
/// # Errors
/// As [`scan`].
pub async fn find_usual(
    open: &mut OpenPort<'_>,
    clock: &NodeClock,
    slack: Duration,
    meant: Option<u8>,
    progress: &mut impl FnMut(ServoProtocol, u32),
) -> Result<UsualSearch, ServiceError> {
    let mut search = UsualSearch::default();
    let unusual = meant.filter(|id| !USUAL.contains(id));
    let mut late = all_speeds(PATIENT.max(slack));
    late.retain(|settings| settings.baud == USUAL_BAUD);
    for settings in all_speeds(slack).into_iter().chain(late) {
        let mut line = match ServoLine::open(open, clock, settings) {
            Ok(line) => line,
            // At no speed is a port that is away, taken or closed to this user any better.
            Err(
                why @ (LinkError::Busy { .. }
                | LinkError::Missing { .. }
                | LinkError::Permission { .. }
                | LinkError::OtherSystem { .. }),
            ) => return Err(why.into()),
            // Not every adapter can do every speed.
            Err(_) => continue,
        };
        progress(settings.speech, settings.baud);
        for id in USUAL.chain(unusual) {
            let answered = line.ping(id).await?.is_some();
            // One that speaks over another is there as well.
            if answered || line.counts().corrupt > 0 {
                search.reached = Some(settings);
                return Ok(search);
            }
        }
        search.heard.echoes += line.counts().echoes;
    }
    Ok(search)
}

/// Looks for servos of one family at one speed.
///
/// # Errors
/// As [`scan`].
pub async fn scan_speed(
    open: &mut OpenPort<'_>,
    clock: &NodeClock,
    settings: BusSettings,
    into: &mut BusScan,
) -> Result<(), ServiceError> {
    let mut line = match ServoLine::open(open, clock, settings) {
        Ok(line) => line,
        // Not every adapter can do every speed.
        Err(LinkError::Open { .. }) if settings.baud != USUAL_BAUD => return Ok(()),
        Err(error) => return Err(error.into()),
    };
    let before = into.found.len();
    for id in IDS {
        let corrupt = line.counts().corrupt;
        let mut there = line.ping(id).await?.is_some();
        if !there && line.counts().corrupt > corrupt {
            // Somebody spoke, and it could not be read: once more.
            there = line.ping(id).await?.is_some();
            if !there {
                into.heard.damaged_id.get_or_insert(id);
            }
        }
        if there {
            look_at(&mut line, id, into).await?;
        }
    }
    if into.found.len() > before {
        retry_usual(&mut line, before, into).await?;
    }
    into.heard.echoes += line.counts().echoes;
    into.heard.corrupt += line.counts().corrupt;
    Ok(())
}

/// Adds what a servo that answered reports of itself.
async fn look_at(line: &mut ServoLine, id: u8, into: &mut BusScan) -> Result<(), ServiceError> {
    match FoundServo::read(line, id).await? {
        Some(found) => into.found.push(found),
        // It answers to its name and then cannot be read.
        None => {
            into.heard.damaged_id.get_or_insert(id);
        }
    }
    Ok(())
}

/// Ids that servos are usually given.
pub const USUAL: std::ops::RangeInclusive<u8> = 0..=16;

/// Asks the usual ids that did not answer once more, where other servos do, with time for one that
/// woke late or was spoken over.
async fn retry_usual(
    line: &mut ServoLine,
    from: usize,
    into: &mut BusScan,
) -> Result<(), ServiceError> {
    let found = into.found.get(from..).unwrap_or_default();
    let missing: Vec<u8> = USUAL
        .filter(|id| found.iter().all(|found| found.servo.id != *id))
        .filter(|id| into.heard.damaged_id != Some(*id))
        .collect();
    line.wait_longer(PATIENT);
    for id in missing {
        if line.ping(id).await?.is_some() {
            look_at(line, id, into).await?;
        }
    }
    if let Some(found) = into.found.get_mut(from..) {
        found.sort_by_key(|found| found.servo.id);
    }
    Ok(())
}
