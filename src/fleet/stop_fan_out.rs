//! Stops for every node at once, by an engine beside HTTP, with an acknowledgement from each.

use std::collections::BTreeMap;
use std::sync::Arc;

use futures::future::BoxFuture;

use super::Fleet;

/// A stop for every node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FleetStop {
    /// Stand where the arm is; only a person's `clear` ends it.
    pub is_emergency: bool,
    /// A person gave it: only an operator's `reset` goes on.
    pub is_operators: bool,
}

/// A node's answer to a stop: its arms were told to stop before it was written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StopAcknowledgement {
    /// True if every arm was read to stand still.
    pub success: bool,
    /// Outcome for each arm, in words.
    pub message: String,
}

/// Words of an order and of an answer.
const EMERGENCY: &str = "emergency";
const OPERATOR: &str = "operator";
const STOPPED: &str = "stopped";
const UNVERIFIED: &str = "unverified";

impl FleetStop {
    /// Returns the order as words.
    #[must_use]
    pub fn words(&self) -> String {
        let words = [
            (self.is_emergency, EMERGENCY),
            (self.is_operators, OPERATOR),
        ];
        let said = words.into_iter().filter(|(is_said, _)| *is_said);
        said.map(|(_, word)| word).collect::<Vec<_>>().join(" ")
    }

    /// Reads an order. Whatever it says, it is a stop.
    #[must_use]
    pub fn read(words: &str) -> Self {
        let says = |word: &str| words.split(' ').any(|said| said == word);
        Self {
            is_emergency: says(EMERGENCY),
            is_operators: says(OPERATOR),
        }
    }
}

impl StopAcknowledgement {
    /// Returns the answer as a word in a line of its own, and the message.
    #[must_use]
    pub fn words(&self) -> String {
        let word = if self.success { STOPPED } else { UNVERIFIED };
        format!("{word}\n{}", self.message)
    }

    /// Reads an answer; what is none says that nothing is known.
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
    /// Tells every node to stop, and gathers their answers within a bounded time.
    fn stop_all(&self, order: FleetStop) -> BoxFuture<'static, FanOut>;
}

/// Outcome of a stop for every node.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FanOut {
    /// The answers, by the name of the node: more than one where several nodes have it.
    pub acknowledged: BTreeMap<String, Vec<StopAcknowledgement>>,
    /// True if the engine waits for no further answer: a node that has not answered then was not reached at all.
    pub is_complete: bool,
    /// Reason why nothing was sent, where nothing was.
    pub unsent: Option<String>,
}

impl Fleet {
    /// Gives the fleet an engine that stops every node. The first one stays.
    pub fn set_stop_engine(&self, engine: Arc<dyn StopEngine>) {
        let _ = self.stop_engine.set(engine);
    }

    /// Stops every other node by the engine, and says of each that announced itself before or after it what became of it; `None`
    /// without an engine.
    pub async fn stop_by_engine(
        &self,
        order: FleetStop,
    ) -> Option<BTreeMap<String, Result<StopAcknowledgement, String>>> {
        let engine = self.stop_engine.get()?;
        let before = self.presence.announced();
        let mut fan_out = engine.stop_all(order).await;
        let mut counts = self.presence.announced();
        for (name, count) in before {
            let known = counts.entry(name).or_default();
            *known = count.max(*known);
        }
        counts.remove(&self.me);
        let mut acknowledged = std::mem::take(&mut fan_out.acknowledged);
        // What answers and is not announced has stopped all the same.
        for name in acknowledged.keys() {
            counts.entry(name.clone()).or_insert(1);
        }
        let told = counts.into_iter().map(|(name, count)| {
            let told = match acknowledged.remove(&name) {
                Some(answers) => Ok(of_one_name(answers, count)),
                None => Err(unacknowledged(&fan_out)),
            };
            (name, told)
        });
        Some(told.collect())
    }
}

/// Returns the answers of the nodes of one name as one; `count` nodes announce themselves by it.
fn of_one_name(mut answers: Vec<StopAcknowledgement>, count: usize) -> StopAcknowledgement {
    if answers.len() < count {
        let answered = answers.len();
        answers.push(StopAcknowledgement {
            success: false,
            message: format!(
                "{count} nodes announce themselves by this name, and {answered} answered"
            ),
        });
    }
    let messages: Vec<&str> = answers.iter().map(|one| one.message.as_str()).collect();
    StopAcknowledgement {
        success: answers.iter().all(|one| one.success),
        message: messages.join("; another node of this name: "),
    }
}

/// Says why a node that announces itself has not answered.
fn unacknowledged(fan_out: &FanOut) -> String {
    match (&fan_out.unsent, fan_out.is_complete) {
        (Some(why), _) => format!("the fleet's router did not pass the stop on: {why}"),
        (None, true) => "it is announced, and the fleet's router brought the stop to it not at all: the router's access list denies it, or the node is of an earlier version".to_owned(),
        (None, false) => "it is announced, and has not acknowledged the stop in time".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nodes_of_one_name_have_stopped_only_if_each_says_so() {
        let answer = |success: bool| StopAcknowledgement {
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
            let told = of_one_name(answers.iter().copied().map(answer).collect(), count);
            assert_eq!(told.success, success, "{answers:?} of {count}: {told:?}");
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
