//! The node's side of a queue of drawings: which program may hand drawings of a batch to it, and which drawings it has.
//!
//! One program holds a batch at a time. It loses the batch after a silence of [`LEASE`]. A call that it sent before and that
//! arrives after that is refused, even if the program holds the batch again by then, because each lease has its own number. So a
//! program that holds the batch on every node, and has asked each for its drawings, knows of every drawing that was ever begun,
//! and none can begin without it.

use std::collections::{HashMap, HashSet};
use std::hash::{BuildHasher as _, RandomState};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use tokio::time::Instant;

use base::lock::MutexExt as _;
use call::QueueTag;

/// Silence after which a program no longer holds its batch.
pub const LEASE: Duration = Duration::from_secs(15);

/// Largest number of batches that are held at a time.
const BATCHES_MAX: usize = 64;

/// The batches that programs hold on a node, and the drawings that are being begun.
#[derive(Debug, Default)]
pub struct QueueDesk(Mutex<DeskState>);

#[derive(Debug)]
struct DeskState {
    /// Number of the last lease. It starts at random, so that no two processes of a node use the same.
    last_grant: u64,
    leases: HashMap<String, BatchLease>,
    /// Drawings that are on the way from a call to a job, by ticket.
    beginning: HashSet<String>,
}

#[derive(Debug)]
struct BatchLease {
    holder: String,
    generation: u32,
    grant: u64,
    until: Instant,
}

impl Default for DeskState {
    fn default() -> Self {
        Self {
            // 52 bits, which every JSON reader represents exactly.
            last_grant: RandomState::new().hash_one(0) >> 12,
            leases: HashMap::new(),
            beginning: HashSet::new(),
        }
    }
}

/// Reason why a node takes no drawing of a batch from a program.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum QueueRefusal {
    /// Another program hands this batch out.
    #[error("queue {holder} already has this batch and was active less than {} s ago", LEASE.as_secs())]
    HeldElsewhere {
        /// The other program.
        holder: String,
    },
    /// The program does not hold the batch here, or has given the call up.
    #[error(
        "this queue has not claimed the batch on this node yet: it must first ask this node for its list of drawings"
    )]
    NotHeld,
    /// The drawing was begun here already.
    #[error("drawing {0} was already started here")]
    BegunBefore(String),
    /// Too many batches are held.
    #[error("this node already has {BATCHES_MAX} batches in queues, which is the limit")]
    TooMany,
}

impl QueueDesk {
    /// Lets a program hold its batch for another [`LEASE`]. Returns the number of its lease: the same as before if it has held
    /// the batch without a gap.
    ///
    /// # Errors
    /// Another program holds it, or too many batches are held.
    pub fn renew(&self, tag: &QueueTag, now: Instant) -> Result<u64, QueueRefusal> {
        let mut state = self.state();
        state.leases.retain(|_, lease| now < lease.until);
        if state.leases.len() >= BATCHES_MAX && !state.leases.contains_key(&tag.batch) {
            return Err(QueueRefusal::TooMany);
        }
        let grant = match state.leases.get(&tag.batch) {
            Some(lease) if lease.holder != tag.holder => {
                let holder = lease.holder.clone();
                return Err(QueueRefusal::HeldElsewhere { holder });
            }
            // This call was sent before the program gave another one up.
            Some(lease) if lease.generation > tag.generation => return Err(QueueRefusal::NotHeld),
            Some(lease) => lease.grant,
            None => {
                state.last_grant += 1;
                state.last_grant
            }
        };
        let lease = BatchLease {
            holder: tag.holder.clone(),
            generation: tag.generation,
            grant,
            until: now + LEASE,
        };
        state.leases.insert(tag.batch.clone(), lease);
        Ok(grant)
    }

    /// Takes a drawing to begin it, unless `was_begun`, which must not call this desk, knows its ticket. The caller keeps the returned
    /// value until the drawing has a job, or will have none.
    ///
    /// # Errors
    /// The program does not hold the batch, or the drawing was begun before.
    pub fn begin(
        self: &Arc<Self>,
        tag: &QueueTag,
        now: Instant,
        was_begun: impl FnOnce(&str) -> bool,
    ) -> Result<BeginningDrawing, QueueRefusal> {
        let mut state = self.state();
        let is_held = state.leases.get(&tag.batch).is_some_and(|lease| {
            let held = (&lease.holder, lease.generation, lease.grant);
            held == (&tag.holder, tag.generation, tag.grant) && now < lease.until
        });
        let ticket = tag.ticket().filter(|_| is_held);
        let ticket = ticket.ok_or(QueueRefusal::NotHeld)?;
        if was_begun(&ticket) || !state.beginning.insert(ticket.clone()) {
            return Err(QueueRefusal::BegunBefore(ticket));
        }
        Ok(BeginningDrawing {
            desk: Arc::clone(self),
            ticket,
        })
    }

    /// Returns the drawings of a batch that are on the way from a call to a job, by ticket.
    #[must_use]
    pub fn beginning(&self) -> Vec<String> {
        self.state().beginning.iter().cloned().collect()
    }

    fn state(&self) -> MutexGuard<'_, DeskState> {
        self.0.locked()
    }
}

/// A drawing on the way from a call to a job.
#[derive(Debug)]
pub struct BeginningDrawing {
    desk: Arc<QueueDesk>,
    ticket: String,
}

impl BeginningDrawing {
    /// Returns the ticket, for the job's journal.
    #[must_use]
    pub fn ticket(&self) -> &str {
        &self.ticket
    }
}

impl Drop for BeginningDrawing {
    fn drop(&mut self) {
        self.desk.state().beginning.remove(&self.ticket);
    }
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::*;

    fn tag(holder: &str, generation: u32, drawing: u32) -> QueueTag {
        QueueTag {
            batch: "b".to_owned(),
            holder: holder.to_owned(),
            generation,
            drawing: Some(drawing),
            grant: 0,
        }
    }

    fn with_grant(grant: u64, tag: QueueTag) -> QueueTag {
        QueueTag { grant, ..tag }
    }

    #[test]
    fn one_program_holds_a_batch_until_it_has_been_silent_for_the_lease() {
        let (desk, now) = (Arc::new(QueueDesk::default()), Instant::now());
        let first = desk.renew(&tag("a", 0, 1), now).unwrap();
        let later = now + LEASE / 2;
        assert_eq!(desk.renew(&tag("a", 0, 1), later), Ok(first));
        let elsewhere = QueueRefusal::HeldElsewhere {
            holder: "a".to_owned(),
        };
        let other = desk.renew(&tag("b", 0, 1), now + LEASE);
        assert_eq!(other, Err(elsewhere));
        let begun = desk.begin(&tag("b", 0, 1), now + LEASE, |_| false);
        assert_eq!(begun.unwrap_err(), QueueRefusal::NotHeld);
        let over = later + LEASE;
        assert!(desk.renew(&tag("b", 0, 1), over).unwrap() != first);
        let result = desk.begin(&with_grant(first, tag("a", 0, 1)), over, |_| false);
        assert_eq!(result.unwrap_err(), QueueRefusal::NotHeld);
    }

    #[test]
    fn a_call_from_before_a_gap_begins_nothing_after_it() {
        let (desk, now) = (Arc::new(QueueDesk::default()), Instant::now());
        let before = desk.renew(&tag("a", 0, 1), now).unwrap();
        let over = now + LEASE;
        let after = desk.renew(&tag("a", 0, 1), over).unwrap();
        let result = desk.begin(&with_grant(before, tag("a", 0, 1)), over, |_| false);
        assert_eq!(result.unwrap_err(), QueueRefusal::NotHeld);
        assert!(
            desk.begin(&with_grant(after, tag("a", 0, 1)), over, |_| false)
                .is_ok()
        );
        let restarted = QueueDesk::default().renew(&tag("a", 0, 1), now);
        assert!(![before, after].contains(&restarted.unwrap()));
    }

    #[test]
    fn a_call_that_was_given_up_begins_nothing() {
        let (desk, now) = (Arc::new(QueueDesk::default()), Instant::now());
        let grant = desk.renew(&tag("a", 0, 1), now).unwrap();
        desk.renew(&tag("a", 1, 1), now).unwrap();
        let result = desk.begin(&with_grant(grant, tag("a", 0, 1)), now, |_| false);
        assert_eq!(result.unwrap_err(), QueueRefusal::NotHeld);
        assert_eq!(
            desk.renew(&tag("a", 0, 1), now),
            Err(QueueRefusal::NotHeld),
            "a late request does not take the batch back"
        );
    }

    #[test]
    fn a_drawing_is_begun_once() {
        let (desk, now) = (Arc::new(QueueDesk::default()), Instant::now());
        let grant = desk.renew(&tag("a", 0, 1), now).unwrap();
        let handed = with_grant(grant, tag("a", 0, 1));
        let first = desk.begin(&handed, now, |_| false).unwrap();
        let again = |known: bool| desk.begin(&handed, now, |_| known).err();
        let before = Some(QueueRefusal::BegunBefore("b/1".to_owned()));
        assert_eq!(again(false), before);
        assert_eq!(desk.beginning(), ["b/1"]);
        drop(first);
        assert_eq!(again(true), before, "its job is in the journal");
        assert_eq!(again(false), None, "nothing came of it");
    }
}
