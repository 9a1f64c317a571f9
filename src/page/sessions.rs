//! Sessions of persons who have logged in to the page. They are kept only in memory, so a restart of the node ends them.

use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard};
use std::time::Duration;

use base::lock::MutexExt;
use base::units::ClockInstant;
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;

/// Time without use after which a session ends.
const IDLE_MAX: Duration = Duration::from_secs(30 * 60);

/// Largest age of a session.
const AGE_MAX: Duration = Duration::from_secs(12 * 60 * 60);

/// Largest number of sessions; a further one ends the one that was unused for longest.
const SESSIONS_MAX: usize = 32;

/// Number of command numbers that a session remembers, so that none is carried out twice.
const COMMANDS_MAX: usize = 1024;

/// Number of random bytes in a cookie, and in a secret.
const KEY_BYTES: usize = 32;

/// The holder of a session.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum SessionHolder {
    /// The holder of a typed token. The session is valid as long as the token.
    Token {
        /// The token.
        token: String,
        /// Its name.
        name: String,
    },
    /// A person identified by the kernel, who has typed a login code.
    Person(String),
}

impl SessionHolder {
    /// Returns the name under which the holder's commands are recorded. A token may be called like a person.
    pub(super) fn audit_name(&self) -> String {
        match self {
            Self::Token { name, .. } => format!("token {name} (page)"),
            Self::Person(name) => format!("{name} (page)"),
        }
    }
}

/// Tells whether a person made a request, or an open page by itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SessionUse {
    /// It keeps the session alive.
    Person,
    /// It does not.
    Page,
}

/// The two halves of a session's key. A browser sends a cookie to every port of a host, so another server there may learn it.
/// Only the page knows the secret, and both are needed.
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
        // Hashes are compared in constant time.
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
        let mut sessions = self.sessions();
        sessions.retain(|session| session.is_alive(now));
        if sessions.len() >= SESSIONS_MAX {
            let oldest = (0..sessions.len()).min_by_key(|i| sessions.get(*i).map(|one| one.used));
            if let Some(index) = oldest {
                sessions.swap_remove(index);
            }
        }
        sessions.push(PageSession {
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
        let mut sessions = self.sessions();
        sessions.retain(|session| session.is_alive(now));
        let session = sessions.iter_mut().find(|one| one.is_for(cookie, secret))?;
        if by == SessionUse::Person {
            session.used = now;
        }
        Some(session.holder.clone())
    }

    /// Returns the time until a live session ends without use.
    pub(super) fn ends_in(
        &self,
        (cookie, secret): (&str, &str),
        now: ClockInstant,
    ) -> Option<Duration> {
        let sessions = self.sessions();
        let session = sessions.iter().find(|one| one.is_for(cookie, secret))?;
        let left = |since: ClockInstant, most: Duration| most.saturating_sub(now.since(since));
        Some(left(session.used, IDLE_MAX).min(left(session.opened, AGE_MAX)))
    }

    /// Remembers a command's number. Returns false if the session sent it before.
    pub(super) fn is_new_command(&self, cookie: &str, secret: &str, command: &str) -> bool {
        let mut sessions = self.sessions();
        let Some(session) = sessions.iter_mut().find(|one| one.is_for(cookie, secret)) else {
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
        self.sessions().retain(|one| !one.is_for(cookie, secret));
    }

    fn sessions(&self) -> MutexGuard<'_, Vec<PageSession>> {
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

    fn user(
        sessions: &PageSessions,
        cookie: &str,
        secret: &str,
        now: ClockInstant,
    ) -> Option<SessionHolder> {
        sessions.holder((cookie, secret), SessionUse::Person, now)
    }

    #[test]
    fn a_token_that_is_called_like_a_person_is_recorded_as_a_token() {
        let name = "user 0".to_owned();
        let token = SessionHolder::Token {
            token: "secret".to_owned(),
            name: name.clone(),
        };
        assert_eq!(token.audit_name(), "token user 0 (page)");
        assert_eq!(SessionHolder::Person(name).audit_name(), "user 0 (page)");
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
            user(&sessions, &keys.cookie, &keys.secret, now),
            Some(person())
        );
        assert_eq!(user(&sessions, &keys.cookie, &other.secret, now), None);
        assert_eq!(user(&sessions, &other.cookie, &keys.secret, now), None);
        assert_eq!(user(&sessions, &keys.secret, &keys.cookie, now), None);
        sessions.close(&keys.cookie, &keys.secret);
        assert_eq!(user(&sessions, &keys.cookie, &keys.secret, now), None);
        assert!(user(&sessions, &other.cookie, &other.secret, now).is_some());
    }

    #[test]
    fn a_session_ends_when_idle_and_when_old() {
        let sessions = PageSessions::default();
        let mut now = ClockInstant::ZERO;
        let idle = sessions.open(person(), now).unwrap();
        let used = sessions.open(person(), now).unwrap();
        for _ in 0..(12 * 60 / 20 - 1) {
            now = now.after(Duration::from_secs(20 * 60));
            assert!(user(&sessions, &used.cookie, &used.secret, now).is_some());
        }
        assert_eq!(user(&sessions, &idle.cookie, &idle.secret, now), None);
        let ends_in = |now| sessions.ends_in((&used.cookie, &used.secret), now);
        assert_eq!(ends_in(now), Some(Duration::from_secs(20 * 60)));
        now = now.after(Duration::from_secs(20 * 60));
        assert_eq!(user(&sessions, &used.cookie, &used.secret, now), None);
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
    fn a_session_too_many_ends_the_one_unused_longest() {
        let sessions = PageSessions::default();
        let mut now = ClockInstant::ZERO;
        let first = sessions.open(person(), now).unwrap();
        for _ in 0..SESSIONS_MAX {
            now = now.after(Duration::from_secs(1));
            sessions.open(person(), now).unwrap();
        }
        assert_eq!(user(&sessions, &first.cookie, &first.secret, now), None);
        assert_eq!(sessions.sessions().len(), SESSIONS_MAX);
    }
}
