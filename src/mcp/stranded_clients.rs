//! Clients that keep using a session of an earlier process. By the protocol, they are told that there is no such session, so
//! that they open another; those that use the same one again are answered without a session.

use std::collections::VecDeque;
use std::sync::{Mutex, PoisonError};

use super::sessions::SessionOwner;

/// Most sessions that are remembered; the oldest are forgotten first.
const REMEMBERED_MAX: usize = 256;

/// Answer to a request that names a session that is not open.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum UnknownSession {
    /// There is no such session: open another.
    Refused,
    /// The client was told before and ignored it: its request is served without a session, with the rights of its own token.
    Stateless,
}

/// Sessions that were named and are not open.
#[derive(Default)]
pub(super) struct StrandedClients(Mutex<NamedSessions>);

#[derive(Default)]
struct NamedSessions {
    /// Sessions that ended in this process: the client was told, or ended them itself.
    ended: VecDeque<String>,
    /// Sessions that were never open in this process, with the clients that were refused.
    refused: VecDeque<(String, SessionOwner)>,
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
        let session = (id.to_owned(), owner);
        if named.refused.contains(&session) {
            return UnknownSession::Stateless;
        }
        push(&mut named.refused, session);
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
    fn a_client_is_refused_once_and_then_answered_without_a_session() {
        let stranded = StrandedClients::default();
        let [one, other] = ["a", "b"].map(|token| Some(blake3::hash(token.as_bytes())));
        assert_eq!(stranded.judge("old", one), UnknownSession::Refused);
        assert_eq!(stranded.judge("old", other), UnknownSession::Refused);
        assert_eq!(stranded.judge("old", one), UnknownSession::Stateless);
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
