//! Scans a bus for every id at every speed of both families. Nothing is written.

use std::collections::VecDeque;
use std::time::Duration;

use serde::Serialize;

use super::servo_line::IDS;
use super::servo_readout::{self, ServoReadout};
use super::{BusError, BusSettings, OpenPort, PATIENT, ServiceError, ServoLine, ServoProtocol};
use base::clock::NodeClock;
use link::LinkError;

/// A servo that replied.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct FoundServo {
    /// Its protocol.
    pub family: ServoProtocol,
    /// Its baud rate.
    pub baud: u32,
    /// Its own report.
    #[serde(flatten)]
    pub servo: ServoReadout,
}

impl FoundServo {
    /// Reads the servo with an id; `None` where it did not reply to every request.
    ///
    /// # Errors
    /// When the line itself fails.
    pub async fn read(line: &mut ServoLine, id: u8) -> Result<Option<Self>, BusError> {
        let servo = servo_readout::read_servo(line, id).await?;
        Ok(servo.map(|servo| Self {
            family: line.protocol(),
            baud: line.baud(),
            servo,
        }))
    }
}

/// Traffic other than replies.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BusNoise {
    /// Number of echoes of sent bytes.
    pub echoes: u64,
    /// Frames with a wrong checksum.
    pub corrupt: u64,
    /// The first id with only damaged replies.
    pub damaged_id: Option<u8>,
    /// Requests after which only bytes came that are no frame and no echo.
    pub unreadable: u64,
}

impl BusNoise {
    /// Adds the traffic of a line.
    fn add(&mut self, line: &ServoLine) {
        self.echoes += line.counts().echoes;
        self.corrupt += line.counts().corrupt;
        self.unreadable += line.unreadable();
    }
}

/// The result of a scan.
#[derive(Clone, Debug, Default)]
pub struct BusScan {
    /// The servos, the usual speed of each family first, then by family and speed; by id.
    pub found: Vec<FoundServo>,
    /// Other traffic.
    pub noise: BusNoise,
}

/// Thoroughness of a scan.
#[derive(Clone, Copy, Debug)]
pub struct ScanEffort {
    /// Longest time for which the adapter may hold a reply back.
    pub slack: Duration,
    /// `true` to stop at the first speed with servos.
    pub first: bool,
}

/// Looks for servos; `progress` is called with each family and speed before it is tried.
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
        progress(settings.protocol, settings.baud);
        scan_speed(open, clock, settings, &mut scan).await?;
        if effort.first && !scan.found.is_empty() {
            break;
        }
    }
    Ok(scan)
}

/// The baud rate of most arms, of either family.
const USUAL_BAUD: u32 = 1_000_000;

/// Returns every family at every speed, the usual speed of each first.
fn all_speeds(slack: Duration) -> Vec<BusSettings> {
    let at_each = |protocol: ServoProtocol| {
        let bauds = protocol.bauds().iter();
        bauds.map(move |baud| BusSettings::new(protocol, *baud, slack))
    };
    let mut all: Vec<_> = ServoProtocol::ALL.into_iter().flat_map(at_each).collect();
    all.sort_by_key(|settings| settings.baud != USUAL_BAUD);
    all
}

/// Waiting time where replies come, but to no request that is still awaited.
const VERY_LATE: Duration = Duration::from_millis(300);

/// The result of pinging the usual ids at every speed.
#[derive(Clone, Copy, Debug, Default)]
pub struct UsualSearch {
    /// The first settings with which a servo replied.
    pub reached: Option<BusSettings>,
    /// Traffic until then.
    pub noise: BusNoise,
}

/// Finds the first settings with which a servo with a usual id, or the requested one, replies;
/// `progress` is called with each family and speed before it is tried.
///
/// # Errors
/// As [`scan`].
pub async fn find_usual(
    open: &mut OpenPort<'_>,
    clock: &NodeClock,
    slack: Duration,
    requested: Option<u8>,
    progress: &mut impl FnMut(ServoProtocol, u32),
) -> Result<UsualSearch, ServiceError> {
    let mut search = UsualSearch::default();
    let extra = requested.filter(|id| !USUAL.contains(id));
    let mut patient = all_speeds(PATIENT.max(slack));
    patient.retain(|settings| settings.baud == USUAL_BAUD);
    let mut remaining = VecDeque::from_iter(all_speeds(slack).into_iter().chain(patient));
    let mut late = None;
    while let Some(settings) = remaining.pop_front() {
        let mut line = match ServoLine::open(open, clock, settings) {
            Ok(line) => line,
            // Another speed does not help with a port that is missing, busy or not permitted.
            Err(
                error @ (LinkError::Busy { .. }
                | LinkError::Missing { .. }
                | LinkError::Permission { .. }),
            ) => return Err(error.into()),
            // Not every adapter can do every speed.
            Err(_) => continue,
        };
        progress(settings.protocol, settings.baud);
        for id in USUAL.chain(extra) {
            // A damaged reply counts too: two servos may reply at once.
            if ping(&mut line, id).await? != IdReply::None {
                search.reached = Some(settings);
                return Ok(search);
            }
        }
        search.noise.add(&line);
        if line.counts().foreign > 0 && late.is_none() {
            late = Some(BusSettings {
                slack: VERY_LATE,
                ..settings
            });
        }
        if remaining.is_empty() && search.noise.echoes == 0 && settings.slack < VERY_LATE {
            remaining.extend(late);
        }
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
    scan: &mut BusScan,
) -> Result<(), ServiceError> {
    let mut line = match ServoLine::open(open, clock, settings) {
        Ok(line) => line,
        // Not every adapter can do every speed.
        Err(LinkError::Open { .. }) if settings.baud != USUAL_BAUD => return Ok(()),
        Err(error) => return Err(error.into()),
    };
    let before = scan.found.len();
    for id in IDS {
        match ping(&mut line, id).await? {
            IdReply::None => {}
            IdReply::Damaged => {
                scan.noise.damaged_id.get_or_insert(id);
            }
            IdReply::Present => add_servo(&mut line, id, scan).await?,
        }
    }
    if scan.found.len() > before {
        retry_usual(&mut line, before, scan).await?;
    }
    scan.noise.add(&line);
    Ok(())
}

/// Replies from an id.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum IdReply {
    None,
    Damaged,
    Present,
}

/// Pings of an id whose first reply was damaged, all of which must be so.
const DAMAGED_PINGS: u32 = 3;

/// Pings an id. What comes back is believed only after it comes back again on a line that was silent
/// before: a late echo or a late reply to the request before looks like a damaged reply, or a good one.
async fn ping(line: &mut ServoLine, id: u8) -> Result<IdReply, BusError> {
    let corrupt = line.counts().corrupt;
    let foreign = line.counts().foreign;
    let has_replied = line.ping(id).await?.is_some();
    let is_damaged = line.counts().corrupt > corrupt;
    if !has_replied && !is_damaged {
        return Ok(IdReply::None);
    }
    if has_replied && !is_damaged && line.counts().foreign == foreign {
        return Ok(IdReply::Present);
    }
    let slack = line.set_slack(PATIENT);
    line.set_slack(PATIENT.max(slack));
    let mut reply = IdReply::Damaged;
    for _ in 0..DAMAGED_PINGS {
        line.await_silence(Duration::ZERO).await?;
        let corrupt = line.counts().corrupt;
        if line.ping(id).await?.is_some() {
            reply = IdReply::Present;
            break;
        }
        if line.counts().corrupt == corrupt {
            reply = IdReply::None;
        }
    }
    line.set_slack(slack);
    Ok(reply)
}

/// Reads a servo that replied, and adds it.
async fn add_servo(line: &mut ServoLine, id: u8, scan: &mut BusScan) -> Result<(), ServiceError> {
    match FoundServo::read(line, id).await? {
        Some(found) => scan.found.push(found),
        // It replies to a ping but cannot be read.
        None => {
            scan.noise.damaged_id.get_or_insert(id);
        }
    }
    Ok(())
}

/// Ids that servos usually have.
pub const USUAL: std::ops::RangeInclusive<u8> = 0..=16;

/// Pings the usual ids that did not reply once more, where other servos do, with more time: one may
/// have woken late, or replied at the same time as another.
async fn retry_usual(
    line: &mut ServoLine,
    from: usize,
    scan: &mut BusScan,
) -> Result<(), ServiceError> {
    let found = scan.found.get(from..).unwrap_or_default();
    let missing: Vec<u8> = USUAL
        .filter(|id| found.iter().all(|found| found.servo.id != *id))
        .filter(|id| scan.noise.damaged_id != Some(*id))
        .collect();
    line.set_slack(PATIENT);
    for id in missing {
        if line.ping(id).await?.is_some() {
            add_servo(line, id, scan).await?;
        }
    }
    if let Some(found) = scan.found.get_mut(from..) {
        found.sort_by_key(|found| found.servo.id);
    }
    Ok(())
}
