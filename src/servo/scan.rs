//! Scans a bus: every speed, both families, every id. Nothing is written.

use std::time::Duration;

use serde::Serialize;

use super::line::IDS;
use super::look::{self, Seen};
use super::{Line, Open, PATIENT, ServiceError, Speech};
use base::clock::Clock;
use link::Link;

/// A servo that answered.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Found {
    /// Its protocol.
    pub family: Speech,
    /// At which speed.
    pub baud: u32,
    /// Its own report.
    #[serde(flatten)]
    pub servo: Seen,
}

/// Traffic at one speed beside replies.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Heard {
    /// Bytes that were sent came back.
    pub echoes: u64,
    /// Frames with a wrong checksum.
    pub corrupt: u64,
    /// The first id that gave damaged answers only.
    pub damaged_id: Option<u8>,
}

/// The result of a scan.
#[derive(Clone, Debug, Default)]
pub struct Scan {
    /// The servos, the usual speed of each family first, then by family and speed; by id.
    pub found: Vec<Found>,
    /// Other traffic.
    pub heard: Heard,
}

/// The thoroughness of a scan.
#[derive(Clone, Copy, Debug)]
pub struct Effort {
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
    open: &mut Open<'_>,
    clock: &Clock,
    effort: Effort,
    mut progress: impl FnMut(Speech, u32),
) -> Result<Scan, ServiceError> {
    let mut scan = Scan::default();
    for (speech, baud) in ways() {
        progress(speech, baud);
        at(open, clock, effort.slack, (speech, baud), &mut scan).await?;
        if effort.first && !scan.found.is_empty() {
            break;
        }
    }
    Ok(scan)
}

/// Most arms run at this speed, of either family.
const USUAL_BAUD: u32 = 1_000_000;

/// Every family at every speed, the usual speed of each first.
fn ways() -> Vec<(Speech, u32)> {
    let families = Speech::ALL.into_iter();
    let mut all: Vec<(Speech, u32)> = families
        .flat_map(|speech| speech.bauds().iter().map(move |baud| (speech, *baud)))
        .collect();
    all.sort_by_key(|(_, baud)| *baud != USUAL_BAUD);
    all
}

/// The settings with which servos were reached.
#[derive(Clone, Copy, Debug)]
pub struct Way {
    /// Their protocol.
    pub speech: Speech,
    /// At which speed.
    pub baud: u32,
    /// Waiting time for the adapter.
    pub slack: Duration,
}

/// The first way on which a servo with a usual id answers, or the one that is meant.
///
/// # Errors
/// As [`scan`].
pub async fn usual(
    open: &mut Open<'_>,
    clock: &Clock,
    slack: Duration,
    meant: Option<u8>,
) -> Result<Option<Way>, ServiceError> {
    let unusual = meant.filter(|id| !USUAL.contains(id));
    let late = ways().into_iter().filter(|(_, baud)| *baud == USUAL_BAUD);
    let late = late.map(|way| (way, PATIENT.max(slack)));
    let all = ways().into_iter().map(|way| (way, slack)).chain(late);
    for ((speech, baud), slack) in all {
        // Not every adapter can do every speed.
        let Ok(mut link) = open(baud) else { continue };
        let mut line = Line::new(speech, clock, baud, slack);
        for id in USUAL.chain(unusual) {
            let answered = line.ping(link.as_mut(), id).await?.is_some();
            // One that speaks over another is there as well.
            if answered || line.counts().corrupt > 0 {
                return Ok(Some(Way {
                    speech,
                    baud,
                    slack,
                }));
            }
        }
    }
    Ok(None)
}

/// Looks for servos of one family at one speed.
///
/// # Errors
/// As [`scan`].
pub async fn at(
    open: &mut Open<'_>,
    clock: &Clock,
    slack: Duration,
    (speech, baud): (Speech, u32),
    into: &mut Scan,
) -> Result<(), ServiceError> {
    let mut link = match open(baud) {
        Ok(link) => link,
        // Not every adapter can do every speed.
        Err(link::LinkError::Open { .. }) if baud != 1_000_000 => return Ok(()),
        Err(error) => return Err(error.into()),
    };
    let link = link.as_mut();
    let mut line = Line::new(speech, clock, baud, slack);
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
        again(&mut line, link, before, into).await?;
    }
    into.heard.echoes += line.counts().echoes;
    into.heard.corrupt += line.counts().corrupt;
    Ok(())
}

async fn look_at(
    line: &mut Line,
    link: &mut dyn Link,
    id: u8,
    into: &mut Scan,
) -> Result<(), ServiceError> {
    match look::at(line, link, id).await? {
        Some(servo) => into.found.push(Found {
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
async fn again(
    line: &mut Line,
    link: &mut dyn Link,
    from: usize,
    into: &mut Scan,
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
