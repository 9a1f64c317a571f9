//! Distinguishes replies that are sometimes lost or damaged from two servos that reply at once.

use std::collections::BTreeSet;

use super::diagnose::{BusDiagnosis, DiagnosisCause};
use super::scan::{BusScan, FoundServo};
use super::{ServiceError, ServoLine};

/// Number of pings of each servo.
const PINGS: u32 = 12;

/// Least number of damaged replies that cannot be chance: two servos reply at once.
const DAMAGED_BY_TWO: u32 = 10;

/// Least number of failures that cannot be chance: a single reply may be late on a busy machine.
const FAILED_MIN: u32 = 2;

/// Attempts to read a servo whose replies fail.
const READ_ATTEMPTS: u32 = 5;

/// Replies of one servo.
#[derive(Clone, Copy, Debug)]
struct ReplyTally {
    id: u8,
    lost: u32,
    damaged: u32,
}

impl ReplyTally {
    /// Pings a servo repeatedly.
    async fn count(line: &mut ServoLine, id: u8) -> Result<Self, ServiceError> {
        let (mut lost, mut damaged) = (0, 0);
        for _ in 0..PINGS {
            let corrupt = line.counts().corrupt;
            let has_replied = line.ping(id).await?.is_some();
            if line.counts().corrupt > corrupt {
                damaged += 1;
            } else if !has_replied {
                lost += 1;
            }
        }
        Ok(Self { id, lost, damaged })
    }

    fn failed(&self) -> u32 {
        self.lost + self.damaged
    }
}

/// Pings the expected servos and those that replied repeatedly, and adds a finding where replies fail.
/// A servo that was missed and now replies is added to those found.
///
/// # Errors
/// When the line fails.
pub(super) async fn check_replies(
    line: &mut ServoLine,
    expected: &[u8],
    scan: &mut BusScan,
    diagnosis: &mut BusDiagnosis,
) -> Result<(), ServiceError> {
    let found = scan.found.iter().map(|found| found.servo.id);
    let present = found.chain(scan.noise.damaged_id.take());
    let ids: BTreeSet<u8> = present.chain(expected.iter().copied()).collect();
    let mut unreliable = Vec::new();
    for id in ids {
        let tally = ReplyTally::count(line, id).await?;
        if tally.damaged >= DAMAGED_BY_TWO {
            scan.noise.damaged_id.get_or_insert(id);
        } else if tally.failed() < PINGS {
            add_missed(line, id, scan).await?;
            unreliable.extend((tally.failed() >= FAILED_MIN).then_some(tally));
        }
    }
    scan.found.sort_by_key(|found| found.servo.id);
    if !unreliable.is_empty() {
        diagnosis.add(
            DiagnosisCause::LostReplies,
            describe(&unreliable),
            "push every plug in fully, check for a loose crimp and a weak supply, and keep the servo cable away from motor cables",
        );
    }
    Ok(())
}

/// Reads a servo that is not among those found yet.
async fn add_missed(line: &mut ServoLine, id: u8, scan: &mut BusScan) -> Result<(), ServiceError> {
    for _ in 0..READ_ATTEMPTS {
        if scan.found.iter().any(|found| found.servo.id == id) {
            break;
        }
        scan.found.extend(FoundServo::read(line, id).await?);
    }
    Ok(())
}

fn describe(unreliable: &[ReplyTally]) -> String {
    let servos: Vec<String> = unreliable
        .iter()
        .map(|tally| {
            let (id, lost, damaged) = (tally.id, tally.lost, tally.damaged);
            format!("id {id}: {lost} lost and {damaged} damaged")
        })
        .collect();
    format!(
        "some replies fail. Of {PINGS} pings to each servo: {}",
        servos.join(", ")
    )
}
