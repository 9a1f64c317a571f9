//! Scans a bus: every speed, both families, every id. Nothing is written.

use std::time::Duration;

use serde::Serialize;

use super::servo_line::IDS;
use super::servo_readout::{self, ServoReadout};
use super::{OpenPort, PATIENT, ServiceError, ServoLine, ServoProtocol};
use base::clock::NodeClock;
use link::{ByteLink, LinkError};

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
    for (speech, baud) in all_speeds() {
        progress(speech, baud);
        scan_speed(open, clock, effort.slack, (speech, baud), &mut scan).await?;
        if effort.first && !scan.found.is_empty() {
            break;
        }
    }
    Ok(scan)
}

/// Most arms run at this speed, of either family.
const USUAL_BAUD: u32 = 1_000_000;

/// Every family at every speed, the usual speed of each first.
fn all_speeds() -> Vec<(ServoProtocol, u32)> {
    let families = ServoProtocol::ALL.into_iter();
    let mut all: Vec<(ServoProtocol, u32)> = families
        .flat_map(|speech| speech.bauds().iter().map(move |baud| (speech, *baud)))
        .collect();
    all.sort_by_key(|(_, baud)| *baud != USUAL_BAUD);
    all
}

/// The settings with which servos were reached.
#[derive(Clone, Copy, Debug)]
pub struct BusSettings {
    /// Their protocol.
    pub speech: ServoProtocol,
    /// At which speed.
    pub baud: u32,
    /// Waiting time for the adapter.
    pub slack: Duration,
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
    let late = all_speeds()
        .into_iter()
        .filter(|(_, baud)| *baud == USUAL_BAUD);
    let late = late.map(|way| (way, PATIENT.max(slack)));
    let all = all_speeds().into_iter().map(|way| (way, slack)).chain(late);
    for ((speech, baud), slack) in all {
        let mut link = match open(baud) {
            Ok(link) => link,
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
        progress(speech, baud);
        let mut line = ServoLine::new(speech, clock, baud, slack);
        for id in USUAL.chain(unusual) {
            let answered = line.ping(link.as_mut(), id).await?.is_some();
            // One that speaks over another is there as well.
            if answered || line.counts().corrupt > 0 {
                search.reached = Some(BusSettings {
                    speech,
                    baud,
                    slack,
                });
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
    slack: Duration,
    (speech, baud): (ServoProtocol, u32),
    into: &mut BusScan,
) -> Result<(), ServiceError> {
    let mut link = match open(baud) {
        Ok(link) => link,
        // Not every adapter can do every speed.
        Err(link::LinkError::Open { .. }) if baud != 1_000_000 => return Ok(()),
        Err(error) => return Err(error.into()),
    };
    let link = link.as_mut();
    let mut line = ServoLine::new(speech, clock, baud, slack);
    let before = into.found.len();
    for id in IDS {
        let corrupt = line.counts().corrupt;
        let mut there = line.ping(link, id).await?.is_some();
        if !there && line.counts().corrupt > corrupt {
            // Somebody spoke, and it could not be read: once more.
            there = line.ping(link, id).await?.is_some();
            if !there {
                into.heard.damaged_id.get_or_insert(id);
            }
        }
        if there {
            look_at(&mut line, link, id, into).await?;
        }
    }
    if into.found.len() > before {
        retry_usual(&mut line, link, before, into).await?;
    }
    into.heard.echoes += line.counts().echoes;
    into.heard.corrupt += line.counts().corrupt;
    Ok(())
}

/// Adds what a servo that answered reports of itself.
async fn look_at(
    line: &mut ServoLine,
    link: &mut dyn ByteLink,
    id: u8,
    into: &mut BusScan,
) -> Result<(), ServiceError> {
    match servo_readout::at(line, link, id).await? {
        Some(servo) => into.found.push(FoundServo {
            family: line.speech(),
            baud: line.baud(),
            servo,
        }),
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
    link: &mut dyn ByteLink,
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
        if line.ping(link, id).await?.is_some() {
            look_at(line, link, id, into).await?;
        }
    }
    if let Some(found) = into.found.get_mut(from..) {
        found.sort_by_key(|found| found.servo.id);
    }
    Ok(())
}
