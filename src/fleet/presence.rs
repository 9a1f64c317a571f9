//! Presence of other nodes, as an engine besides HTTP reports it. It is only a hint: it shortens waits and drops old reports, but
//! it never replaces an answer, and nothing is enabled because of it.

use std::collections::{BTreeMap, HashMap};
use std::sync::Mutex;

use base::lock::MutexExt as _;
use tokio::time::Instant;

/// Presence of one node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PeerPresence {
    /// Nothing is known: there is no engine, the engine is unreachable, or the node has never announced itself.
    Unknown,
    /// One node announces itself by this name.
    Announced,
    /// It has ceased to announce itself.
    Gone {
        /// The end of its presence.
        since: Instant,
    },
    /// Several nodes announce themselves by this name.
    Duplicate {
        /// Number of those nodes.
        count: usize,
    },
}

/// Names that are announced now, and the last change of each.
#[derive(Debug, Default)]
pub struct PresenceTable {
    names: Mutex<AnnouncedNames>,
}

#[derive(Debug, Default)]
struct AnnouncedNames {
    /// Number of nodes of each name; `None` while the engine is unreachable.
    counts: Option<BTreeMap<String, usize>>,
    /// Last count of each name that was ever announced, and when it changed.
    changes: HashMap<String, (usize, Instant)>,
}

impl PresenceTable {
    /// Replaces the announced names; `None` if the engine is unreachable.
    pub fn replace(&self, counts: Option<BTreeMap<String, usize>>) {
        let mut names = self.names.locked();
        if let Some(counts) = &counts {
            let now = Instant::now();
            for (name, (last, changed)) in &mut names.changes {
                let count = counts.get(name).copied().unwrap_or(0);
                if *last != count {
                    (*last, *changed) = (count, now);
                }
            }
            for (name, count) in counts {
                names.changes.entry(name.clone()).or_insert((*count, now));
            }
        }
        names.counts = counts;
    }

    /// Returns the presence of the node of this name.
    #[must_use]
    pub fn of(&self, name: &str) -> PeerPresence {
        let names = self.names.locked();
        let Some(counts) = &names.counts else {
            return PeerPresence::Unknown;
        };
        match (counts.get(name), names.changes.get(name)) {
            (Some(1), _) => PeerPresence::Announced,
            (Some(count), _) => PeerPresence::Duplicate { count: *count },
            (None, Some((_, since))) => PeerPresence::Gone { since: *since },
            (None, None) => PeerPresence::Unknown,
        }
    }

    /// Returns the names that are announced now, each with the number of its nodes.
    #[must_use]
    pub fn announced(&self) -> BTreeMap<String, usize> {
        self.names.locked().counts.clone().unwrap_or_default()
    }

    /// Returns whether the number of nodes of a name has changed since `at`.
    pub(super) fn changed_since(&self, name: &str, at: Instant) -> bool {
        let names = self.names.locked();
        let change = names.changes.get(name);
        change.is_some_and(|(_, changed)| *changed > at)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn announce(table: &PresenceTable, names: &[(&str, usize)]) {
        let counts = names
            .iter()
            .map(|(name, count)| ((*name).to_owned(), *count));
        table.replace(Some(counts.collect()));
    }

    #[test]
    fn a_node_that_never_came_is_unknown_and_one_that_left_is_gone() {
        let table = PresenceTable::default();
        assert_eq!(table.of("left"), PeerPresence::Unknown);
        announce(&table, &[("left", 1), ("twin", 2)]);
        assert_eq!(table.of("left"), PeerPresence::Announced);
        assert_eq!(table.of("twin"), PeerPresence::Duplicate { count: 2 });
        assert_eq!(table.of("right"), PeerPresence::Unknown);
        let before = Instant::now();
        announce(&table, &[("twin", 2)]);
        assert!(matches!(table.of("left"), PeerPresence::Gone { since } if since >= before));
        assert!(table.changed_since("left", before));
        assert!(!table.changed_since("twin", before));
    }

    #[test]
    fn without_the_engine_no_node_is_reported_gone() {
        let table = PresenceTable::default();
        announce(&table, &[("left", 1)]);
        let before = Instant::now();
        table.replace(None);
        assert_eq!(table.of("left"), PeerPresence::Unknown);
        announce(&table, &[("left", 1)]);
        assert_eq!(table.of("left"), PeerPresence::Announced);
        assert!(
            !table.changed_since("left", before),
            "the node did not change"
        );
    }
}
