//! Stops every node at once, through an engine besides HTTP, with an acknowledgement from each.

use std::collections::BTreeMap;
use std::sync::Arc;

use futures::future::BoxFuture;

use super::Fleet;

/// A stop for every node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FleetStop {
    /// True for an emergency stop, which only a person's `clear` ends.
    pub is_emergency: bool,
    /// True if a person requested it, so that only an operator's `reset` ends it.
    pub is_operators: bool,
}

/// A node's answer to a stop, written after its arms were told to stop.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StopAcknowledgement {
    /// True if the standstill of every arm was read back.
    pub success: bool,
    /// Outcome for each arm, as text.
    pub message: String,
}

/// Words on the wire of an order and of an answer.
const EMERGENCY: &str = "emergency";
const OPERATOR: &str = "operator";
const STOPPED: &str = "stopped";
const UNVERIFIED: &str = "unverified";

impl FleetStop {
    /// Returns the order as it is sent.
    #[must_use]
    pub fn words(&self) -> String {
        let words = [
            (self.is_emergency, EMERGENCY),
            (self.is_operators, OPERATOR),
        ];
        let set = words.into_iter().filter(|(is_set, _)| *is_set);
        set.map(|(_, word)| word).collect::<Vec<_>>().join(" ")
    }

    /// Reads an order. Any text is a stop.
    #[must_use]
    pub fn read(words: &str) -> Self {
        let has = |word: &str| words.split(' ').any(|other| other == word);
        Self {
            is_emergency: has(EMERGENCY),
            is_operators: has(OPERATOR),
        }
    }
}

impl StopAcknowledgement {
    /// Returns the answer as it is sent: a word on its own line, and the message.
    #[must_use]
    pub fn words(&self) -> String {
        let word = if self.success { STOPPED } else { UNVERIFIED };
        format!("{word}\n{}", self.message)
    }

    /// Reads an answer. One that cannot be read does not count as a success.
    #[must_use]
    pub fn read(words: &str) -> Self {
        match words.split_once('\n') {
            Some((word, message)) => Self {
                success: word == STOPPED,
                message: message.to_owned(),
            },
            None => Self {
                success: false,
                message: "its answer cannot be read".to_owned(),
            },
        }
    }
}

/// A way to stop every node at once.
pub trait StopEngine: Send + Sync {
    /// Tells every node to stop, and collects their answers within a bounded time.
    fn stop_all(&self, order: FleetStop) -> BoxFuture<'static, FanOut>;
}

/// Outcome of a stop for every node.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FanOut {
    /// The answers, by the name of the node: more than one where several nodes have it.
    pub acknowledged: BTreeMap<String, Vec<StopAcknowledgement>>,
    /// True if the engine expects no further answers, so that a node that has not answered was not reached at all.
    pub is_complete: bool,
    /// Reason why nothing was sent, if nothing was.
    pub unsent: Option<String>,
}

impl Fleet {
    /// Gives the fleet an engine that stops every node. The first one stays.
    pub fn set_stop_engine(&self, engine: Arc<dyn StopEngine>) {
        let _ = self.stop_engine.set(engine);
    }

    /// Stops every other node through the engine. Returns the outcome for each node that was announced before or after the stop;
    /// `None` without an engine.
    pub async fn stop_by_engine(
        &self,
        order: FleetStop,
    ) -> Option<BTreeMap<String, Result<StopAcknowledgement, String>>> {
        let engine = self.stop_engine.get()?;
        let before = self.presence.announced();
        let mut fan_out = engine.stop_all(order).await;
        let mut counts = self.presence.announced();
        for (name, count) in before {
            let current = counts.entry(name).or_default();
            *current = count.max(*current);
        }
        counts.remove(&self.me);
        let mut acknowledged = std::mem::take(&mut fan_out.acknowledged);
        // A node that answered without being announced has stopped as well.
        for name in acknowledged.keys() {
            counts.entry(name.clone()).or_insert(1);
        }
        let outcomes = counts.into_iter().map(|(name, count)| {
            let outcome = match acknowledged.remove(&name) {
                Some(answers) => Ok(combined_answer(answers, count)),
                None => Err(unacknowledged(&fan_out)),
            };
            (name, outcome)
        });
        Some(outcomes.collect())
    }
}

/// Combines the answers of the `count` nodes that announce themselves by one name.
fn combined_answer(mut answers: Vec<StopAcknowledgement>, count: usize) -> StopAcknowledgement {
    if answers.len() < count {
        let answered = answers.len();
        answers.push(StopAcknowledgement {
            success: false,
            message: format!("{count} nodes have this name, and {answered} answered"),
        });
    }
    let messages: Vec<&str> = answers.iter().map(|one| one.message.as_str()).collect();
    StopAcknowledgement {
        success: answers.iter().all(|one| one.success),
        message: messages.join("; another node of this name: "),
    }
}

/// Explains why an announced node has not answered.
fn unacknowledged(fan_out: &FanOut) -> String {
    match (&fan_out.unsent, fan_out.is_complete) {
        (Some(error), _) => format!("the fleet's router did not pass the stop on: {error}"),
        (None, true) => "the fleet's router did not deliver the stop to this node: the router's access list does not allow that, or the node's version is too old".to_owned(),
        (None, false) => "it did not confirm the stop in time".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nodes_of_one_name_have_stopped_only_if_each_says_so() {
        let of_arm = |success: bool| StopAcknowledgement {
            success,
            message: format!("arm: {success}"),
        };
        for (answers, count, success) in [
            (vec![true], 1, true),
            (vec![true, true], 2, true),
            (vec![true, false], 2, false),
            (vec![true], 2, false),
            (vec![true, false], 1, false),
        ] {
            let answer = combined_answer(answers.iter().copied().map(of_arm).collect(), count);
            assert_eq!(
                answer.success, success,
                "{answers:?} of {count}: {answer:?}"
            );
        }
    }

    #[test]
    fn orders_and_answers_are_read_as_they_were_written() {
        for (is_emergency, is_operators) in
            [(false, false), (true, false), (false, true), (true, true)]
        {
            let order = FleetStop {
                is_emergency,
                is_operators,
            };
            assert_eq!(FleetStop::read(&order.words()), order);
        }
        for success in [true, false] {
            let answer = StopAcknowledgement {
                success,
                message: "arm: stopped\nstanding".to_owned(),
            };
            assert_eq!(StopAcknowledgement::read(&answer.words()), answer);
        }
        for odd in ["", "stopped", "anything"] {
            assert!(!StopAcknowledgement::read(odd).success, "{odd:?}");
        }
    }
}
