//! Clients that go on with a session of a process before this one. The protocol has them told that there is no such
//! session, so that they open another; those that come again with the same one are answered without a session.

use std::collections::VecDeque;
use std::sync::{Mutex, PoisonError};

use super::sessions::SessionOwner;

/// Sessions that are remembered; the oldest are forgotten first.
const REMEMBERED_MAX: usize = 256;

/// Answer to a request that names a session that is not open.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum UnknownSession {
    /// There is no such session: open another.
    Refused,
    /// The client was told so before and does not heed it: its request stands alone, by the rights of the token that it
    /// brings.
    Alone,
}

/// Sessions that were named and are not open.
#[derive(Default)]
pub(super) struct StrandedClients(Mutex<NamedSessions>);

#[derive(Default)]
struct NamedSessions {
    /// Ended in this process: of those a client was told, or ended them itself.
    ended: VecDeque<String>,
    /// Never open in this process, and to whom this was said.
    told: VecDeque<(String, SessionOwner)>,
}

impl StrandedClients {
    /// Remembers a session that has ended.
    pub(super) fn ended(&self, id: &str) {
        let mut named = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        push(&mut named.ended, id.to_owned());
    }

    /// Judges a request that names a session that is not open.
    pub(super) fn judge(&self, id: &str, owner: SessionOwner) -> UnknownSession {
        let mut named = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if named.ended.iter().any(|ended| ended == id) {
            return UnknownSession::Refused;
        }
        let said = (id.to_owned(), owner);
        if named.told.contains(&said) {
            return UnknownSession::Alone;
        }
        push(&mut named.told, said);
        UnknownSession::Refused
    }
}

fn push<T>(all: &mut VecDeque<T>, new: T) {
    if all.len() >= REMEMBERED_MAX {
        all.pop_front();
    }
    all.push_back(new);
}

#[cfg(test)]
mod tests {
    use super::{StrandedClients, UnknownSession};

    #[test]
    fn a_client_is_told_once_and_then_answered_alone() {
        let stranded = StrandedClients::default();
        let [one, other] = ["a", "b"].map(|token| Some(blake3::hash(token.as_bytes())));
        assert_eq!(stranded.judge("old", one), UnknownSession::Refused);
        assert_eq!(stranded.judge("old", other), UnknownSession::Refused);
        assert_eq!(stranded.judge("old", one), UnknownSession::Alone);
    }

    #[test]
    fn a_session_that_ended_here_stays_ended() {
        let stranded = StrandedClients::default();
        stranded.ended("mine");
        for _ in 0..3 {
            assert_eq!(stranded.judge("mine", None), UnknownSession::Refused);
        }
    }
}
