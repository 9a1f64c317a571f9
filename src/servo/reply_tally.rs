//! Tells replies that are lost or damaged now and then from two servos that speak at once.

use std::collections::BTreeSet;

use super::diagnose::{BusDiagnosis, DiagnosisCause};
use super::scan::{BusScan, FoundServo};
use super::{ServiceError, ServoLine};

/// Times that each servo is asked.
const ASKED: u32 = 12;

/// So many replies that are damaged are no chance: two servos speak at once.
const DAMAGED_BY_TWO: u32 = 10;

/// So many that fail are no chance: one may be late on a busy machine.
const FAILED_MIN: u32 = 2;

/// Times that one whose replies fail is read.
const READ_ATTEMPTS: u32 = 5;

/// Replies of one servo.
#[derive(Clone, Copy, Debug)]
struct ReplyTally {
    id: u8,
    lost: u32,
    damaged: u32,
}

impl ReplyTally {
    /// Asks a servo for its id again and again.
    async fn count(line: &mut ServoLine, id: u8) -> Result<Self, ServiceError> {
        let (mut lost, mut damaged) = (0, 0);
        for _ in 0..ASKED {
            let corrupt = line.counts().corrupt;
            let answered = line.ping(id).await?.is_some();
            if line.counts().corrupt > corrupt {
                damaged += 1;
            } else if !answered {
                lost += 1;
            }
        }
        Ok(Self { id, lost, damaged })
    }

    fn failed(&self) -> u32 {
        self.lost + self.damaged
    }
}

/// Asks the expected servos and those that answered again and again; adds what comes of it. One that was missed and answers
/// at last is among those found.
///
/// # Errors
/// When the line fails.
pub(super) async fn check_replies(
    line: &mut ServoLine,
    expected: &[u8],
    scan: &mut BusScan,
    into: &mut BusDiagnosis,
) -> Result<(), ServiceError> {
    let found = scan.found.iter().map(|found| found.servo.id);
    let known = found.chain(scan.heard.damaged_id.take());
    let ids: BTreeSet<u8> = known.chain(expected.iter().copied()).collect();
    let mut unreliable = Vec::new();
    for id in ids {
        let tally = ReplyTally::count(line, id).await?;
        if tally.damaged >= DAMAGED_BY_TWO {
            scan.heard.damaged_id.get_or_insert(id);
        } else if tally.failed() < ASKED {
            add_missed(line, id, scan).await?;
            unreliable.extend((tally.failed() >= FAILED_MIN).then_some(tally));
        }
    }
    scan.found.sort_by_key(|found| found.servo.id);
    if !unreliable.is_empty() {
        into.add(
            DiagnosisCause::LostReplies,
            in_words(&unreliable),
            "push every plug home, look for a crimp that moves and for a supply that sags, and lay the servo cable away from the motors'",
        );
    }
    Ok(())
}

/// Reads a servo that is not among those found.
async fn add_missed(line: &mut ServoLine, id: u8, scan: &mut BusScan) -> Result<(), ServiceError> {
    for _ in 0..READ_ATTEMPTS {
        if scan.found.iter().any(|found| found.servo.id == id) {
            break;
        }
        scan.found.extend(FoundServo::read(line, id).await?);
    }
    Ok(())
}

fn in_words(unreliable: &[ReplyTally]) -> String {
    let each: Vec<String> = unreliable
        .iter()
        .map(|tally| {
            let (id, lost, damaged) = (tally.id, tally.lost, tally.damaged);
            format!("id {id} {lost} lost and {damaged} damaged")
        })
        .collect();
    format!(
        "replies fail now and then: of {ASKED} questions each, {}",
        each.join(", ")
    )
}
