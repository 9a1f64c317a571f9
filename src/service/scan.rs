//! Who is on a bus: every speed, both families, every id. Nothing is written.

use std::time::Duration;

use serde::Serialize;

use super::line::IDS;
use super::look::{self, Seen};
use super::{Line, Open, ServiceError, Speech};
use crate::clock::Clock;

/// A servo that answered.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Found {
    /// How it speaks.
    pub family: Speech,
    /// At which speed.
    pub baud: u32,
    /// What it says of itself.
    #[serde(flatten)]
    pub servo: Seen,
}

/// What was heard at one speed beside replies.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Heard {
    /// Bytes that were sent came back.
    pub echoes: u64,
    /// Frames with a wrong checksum.
    pub corrupt: u64,
    /// The first id that gave damaged answers only.
    pub damaged_id: Option<u8>,
}

/// What a scan found.
#[derive(Clone, Debug, Default)]
pub struct Scan {
    /// The servos, by family, speed and id.
    pub found: Vec<Found>,
    /// What else was heard.
    pub heard: Heard,
}

/// How thorough a scan is.
#[derive(Clone, Copy, Debug)]
pub struct Effort {
    /// How long the adapter may hold a reply back.
    pub slack: Duration,
    /// Whether the first speed with servos is enough.
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
    for speech in Speech::ALL {
        for baud in speech.bauds() {
            progress(speech, *baud);
            at(open, clock, effort.slack, (speech, *baud), &mut scan).await?;
            if effort.first && !scan.found.is_empty() {
                return Ok(scan);
            }
        }
    }
    Ok(scan)
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
        Err(crate::link::LinkError::Open { .. }) if baud != 1_000_000 => return Ok(()),
        Err(error) => return Err(error.into()),
    };
    let link = link.as_mut();
    let mut line = Line::new(speech, clock, baud, slack);
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
            match look::at(&mut line, link, id).await? {
                Some(servo) => into.found.push(Found {
                    family: speech,
                    baud,
                    servo,
                }),
                // It answers to its name and then cannot be read.
                None => {
                    into.heard.damaged_id.get_or_insert(id);
                }
            }
        }
    }
    into.heard.echoes += line.counts().echoes;
    into.heard.corrupt += line.counts().corrupt;
    Ok(())
}
