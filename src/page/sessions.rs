//! Sessions of persons who have logged in to the page. They are in memory alone: a node that starts again has none.

use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard};
use std::time::Duration;

use base::lock::MutexExt;
use base::units::ClockInstant;
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;

/// A session that nobody used for so long has ended.
const IDLE_MAX: Duration = Duration::from_secs(30 * 60);

/// No session is older.
const AGE_MAX: Duration = Duration::from_secs(12 * 60 * 60);

/// Sessions at the same time; one more ends the one that was unused for longest.
const SESSIONS_MAX: usize = 32;

/// Numbers of commands that a session remembers, so that none is done twice.
const COMMANDS_MAX: usize = 1024;

/// Bytes of chance in a cookie, and in a secret.
const KEY_BYTES: usize = 32;

/// The holder of a session.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum SessionHolder {
    /// Has typed this token; as long as it is valid, the session is.
    Token {
        /// The token.
        token: String,
        /// Its name.
        name: String,
    },
    /// A person whom the kernel named, who has typed a login code.
    Person(String),
}

impl SessionHolder {
    /// The name under which the holder is known.
    pub(super) fn name(&self) -> &str {
        match self {
            Self::Token { name, .. } | Self::Person(name) => name,
        }
    }
}

/// Says if a request is one that a person made, or one that an open page makes by itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SessionUse {
    /// It keeps the session alive.
    Person,
    /// It does not.
    Page,
}

/// The two halves of a session's key. A browser sends a cookie to every port of a host, so another server there may learn it;
/// the secret is kept by the page alone, and both are needed.
#[derive(Debug)]
pub(super) struct SessionKeys {
    pub(super) cookie: String,
    pub(super) secret: String,
}

/// All sessions.
#[derive(Debug, Default)]
pub(super) struct PageSessions(Mutex<Vec<PageSession>>);

/// One session. Its keys are kept as hashes.
#[derive(Debug)]
struct PageSession {
    cookie: blake3::Hash,
    secret: blake3::Hash,
    holder: SessionHolder,
    opened: ClockInstant,
    used: ClockInstant,
    commands: VecDeque<String>,
}

impl PageSession {
    fn is_for(&self, cookie: &str, secret: &str) -> bool {
        // Comparing hashes takes the same time whatever they are.
        self.cookie == blake3::hash(cookie.as_bytes())
            && self.secret == blake3::hash(secret.as_bytes())
    }

    fn is_alive(&self, now: ClockInstant) -> bool {
        now.since(self.used) < IDLE_MAX && now.since(self.opened) < AGE_MAX
    }
}

impl PageSessions {
    /// Opens a session.
    ///
    /// # Errors
    /// The system gives no random bytes.
    pub(super) fn open(
        &self,
        holder: SessionHolder,
        now: ClockInstant,
    ) -> Result<SessionKeys, getrandom::Error> {
        let (cookie, secret) = (random_key()?, random_key()?);
        let mut all = self.all();
        all.retain(|session| session.is_alive(now));
        if all.len() >= SESSIONS_MAX {
            let oldest = (0..all.len()).min_by_key(|at| all.get(*at).map(|one| one.used));
            if let Some(at) = oldest {
                all.swap_remove(at);
            }
        }
        all.push(PageSession {
            cookie: blake3::hash(cookie.as_bytes()),
            secret: blake3::hash(secret.as_bytes()),
            holder,
            opened: now,
            used: now,
            commands: VecDeque::new(),
        });
        Ok(SessionKeys { cookie, secret })
    }

    /// Returns the holder of a live session.
    pub(super) fn holder(
        &self,
        (cookie, secret): (&str, &str),
        by: SessionUse,
        now: ClockInstant,
    ) -> Option<SessionHolder> {
        let mut all = self.all();
        all.retain(|session| session.is_alive(now));
        let mut sessions = all.iter_mut();
        let session = sessions.find(|session| session.is_for(cookie, secret))?;
        if by == SessionUse::Person {
            session.used = now;
        }
        Some(session.holder.clone())
    }

    /// Remembers a command's number. Returns false if the session sent it before.
    pub(super) fn is_new_command(&self, cookie: &str, secret: &str, command: &str) -> bool {
        let mut all = self.all();
        let mut sessions = all.iter_mut();
        let Some(session) = sessions.find(|session| session.is_for(cookie, secret)) else {
            return false;
        };
        if session.commands.iter().any(|known| known == command) {
            return false;
        }
        if session.commands.len() >= COMMANDS_MAX {
            session.commands.pop_front();
        }
        session.commands.push_back(command.to_owned());
        true
    }

    /// Ends a session.
    pub(super) fn close(&self, cookie: &str, secret: &str) {
        self.all().retain(|session| !session.is_for(cookie, secret));
    }

    fn all(&self) -> MutexGuard<'_, Vec<PageSession>> {
        self.0.locked()
    }
}

fn random_key() -> Result<String, getrandom::Error> {
    let mut bytes = [0_u8; KEY_BYTES];
    getrandom::fill(&mut bytes)?;
    Ok(URL_SAFE_NO_PAD.encode(bytes))
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a failing test may panic")]
mod tests {
    use super::*;

    fn person() -> SessionHolder {
        SessionHolder::Person("user 1000".to_owned())
    }

    fn held(
        sessions: &PageSessions,
        cookie: &str,
        secret: &str,
        now: ClockInstant,
    ) -> Option<SessionHolder> {
        sessions.holder((cookie, secret), SessionUse::Person, now)
    }

    #[test]
    fn an_open_page_keeps_no_session_alive() {
        let sessions = PageSessions::default();
        let keys = sessions.open(person(), ClockInstant::ZERO).unwrap();
        let keys = (keys.cookie.as_str(), keys.secret.as_str());
        let later = ClockInstant::ZERO.after(IDLE_MAX / 2);
        assert!(sessions.holder(keys, SessionUse::Page, later).is_some());
        let end = ClockInstant::ZERO.after(IDLE_MAX);
        assert_eq!(sessions.holder(keys, SessionUse::Page, end), None);
    }

    #[test]
    fn both_halves_are_needed() {
        let sessions = PageSessions::default();
        let now = ClockInstant::ZERO;
        let keys = sessions.open(person(), now).unwrap();
        let other = sessions.open(person(), now).unwrap();
        assert_eq!(
            held(&sessions, &keys.cookie, &keys.secret, now),
            Some(person())
        );
        assert_eq!(held(&sessions, &keys.cookie, &other.secret, now), None);
        assert_eq!(held(&sessions, &other.cookie, &keys.secret, now), None);
        assert_eq!(held(&sessions, &keys.secret, &keys.cookie, now), None);
        sessions.close(&keys.cookie, &keys.secret);
        assert_eq!(held(&sessions, &keys.cookie, &keys.secret, now), None);
        assert!(held(&sessions, &other.cookie, &other.secret, now).is_some());
    }

    #[test]
    fn ends_by_rest_and_by_age() {
        let sessions = PageSessions::default();
        let mut now = ClockInstant::ZERO;
        let rested = sessions.open(person(), now).unwrap();
        let used = sessions.open(person(), now).unwrap();
        for _ in 0..(12 * 60 / 20 - 1) {
            now = now.after(Duration::from_secs(20 * 60));
            assert!(held(&sessions, &used.cookie, &used.secret, now).is_some());
        }
        assert_eq!(held(&sessions, &rested.cookie, &rested.secret, now), None);
        now = now.after(Duration::from_secs(20 * 60));
        assert_eq!(held(&sessions, &used.cookie, &used.secret, now), None);
    }

    #[test]
    fn a_command_is_new_once() {
        let sessions = PageSessions::default();
        let keys = sessions.open(person(), ClockInstant::ZERO).unwrap();
        let is_new = |command| sessions.is_new_command(&keys.cookie, &keys.secret, command);
        assert!(is_new("a"));
        assert!(is_new("b"));
        assert!(!is_new("a"));
        assert!(!sessions.is_new_command("", "", "c"));
    }

    #[test]
    fn one_too_many_ends_the_one_unused_longest() {
        let sessions = PageSessions::default();
        let mut now = ClockInstant::ZERO;
        let first = sessions.open(person(), now).unwrap();
        for _ in 0..SESSIONS_MAX {
            now = now.after(Duration::from_secs(1));
            sessions.open(person(), now).unwrap();
        }
        assert_eq!(held(&sessions, &first.cookie, &first.secret, now), None);
        assert_eq!(sessions.all().len(), SESSIONS_MAX);
    }
}
