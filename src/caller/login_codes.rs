//! Codes that let a person in to the operator's page once: made for somebody whom the kernel has named, and typed there.

use std::sync::{Mutex, OnceLock};
use std::time::Duration;

use base::lock::MutexExt;
use base::units::ClockInstant;

/// A code opens nothing later than this.
pub const CODE_VALID: Duration = Duration::from_secs(5 * 60);

/// Codes that are valid at the same time; one more ends the oldest.
const CODES_MAX: usize = 8;

/// Wrong codes after which all that are valid end: nobody types that many by mistake.
const WRONG_MAX: u32 = 10;

/// Digits and letters, without i, l, o and u: they are mistaken for others.
const ALPHABET: &[u8; 32] = b"0123456789abcdefghjkmnpqrstvwxyz";

/// Characters of a code, and how many stand together.
const CODE_CHARS: usize = 12;
const GROUP_CHARS: usize = 4;

/// The login codes of a node, and the address at which they are typed.
#[derive(Debug, Default)]
pub struct LoginCodes {
    address: OnceLock<String>,
    state: Mutex<LoginCodeState>,
}

#[derive(Debug, Default)]
struct LoginCodeState {
    codes: Vec<LoginCode>,
    wrong: u32,
}

/// A code that can still be used. The code itself is kept nowhere.
#[derive(Debug)]
struct LoginCode {
    hash: blake3::Hash,
    holder: String,
    ends: ClockInstant,
}

/// Reason why no code can be made.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LoginCodeError {
    /// There is no page to type it into.
    #[error(
        "this node serves no page, for it does not listen: start it with `steadyhand serve --http 127.0.0.1:8700`"
    )]
    NoPage,
    /// The system gives no random bytes.
    #[error("no code can be made: {0}")]
    NoChance(String),
}

impl LoginCodes {
    /// Remembers the address of the page. The first one stays.
    pub fn served_at(&self, address: &str) {
        self.address.get_or_init(|| address.to_owned());
    }

    /// Makes a code for somebody. Returns it with the address of the page; it is shown once.
    ///
    /// # Errors
    /// There is no page, or there are no random bytes.
    pub fn make(
        &self,
        holder: &str,
        now: ClockInstant,
    ) -> Result<(String, String), LoginCodeError> {
        let address = self.address.get().ok_or(LoginCodeError::NoPage)?;
        let code = random_code()?;
        let mut state = self.state.locked();
        state.codes.retain(|code| now < code.ends);
        if state.codes.len() >= CODES_MAX {
            state.codes.remove(0);
        }
        state.codes.push(LoginCode {
            hash: hash(&code),
            holder: holder.to_owned(),
            ends: now.after(CODE_VALID),
        });
        Ok((address.clone(), code))
    }

    /// Spends a code, written with or without its hyphens. Returns whom it was made for.
    pub fn spend(&self, code: &str, now: ClockInstant) -> Option<String> {
        let hash = hash(code);
        let mut state = self.state.locked();
        state.codes.retain(|code| now < code.ends);
        let Some(at) = state.codes.iter().position(|code| code.hash == hash) else {
            state.wrong = state.wrong.saturating_add(1);
            if state.wrong >= WRONG_MAX {
                *state = LoginCodeState::default();
            }
            return None;
        };
        state.wrong = 0;
        Some(state.codes.swap_remove(at).holder)
    }
}

/// Returns whether a text looks like a code, and so not like a token.
#[must_use]
pub fn is_login_code(text: &str) -> bool {
    let plain = plain(text);
    plain.len() == CODE_CHARS && plain.bytes().all(|byte| ALPHABET.contains(&byte))
}

fn hash(code: &str) -> blake3::Hash {
    blake3::hash(plain(code).as_bytes())
}

fn plain(code: &str) -> String {
    let is_kept = |c: &char| !c.is_whitespace() && !"-–".contains(*c);
    let kept = code.chars().filter(is_kept);
    kept.flat_map(char::to_lowercase).collect()
}

fn random_code() -> Result<String, LoginCodeError> {
    let mut bytes = [0_u8; CODE_CHARS];
    getrandom::fill(&mut bytes).map_err(|error| LoginCodeError::NoChance(error.to_string()))?;
    let letter = |byte: &u8| ALPHABET.get(usize::from(byte % 32)).copied();
    let letters: Vec<char> = bytes.iter().filter_map(letter).map(char::from).collect();
    let groups = letters.chunks(GROUP_CHARS).map(String::from_iter);
    Ok(groups.collect::<Vec<_>>().join("-"))
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a failing test may panic")]
mod tests {
    use super::*;

    fn codes() -> LoginCodes {
        let codes = LoginCodes::default();
        codes.served_at("http://127.0.0.1:8700/");
        codes
    }

    #[test]
    fn opens_once_within_its_time() {
        let codes = codes();
        let now = ClockInstant::ZERO;
        let (address, code) = codes.make("user 1000", now).unwrap();
        assert_eq!(address, "http://127.0.0.1:8700/");
        assert!(is_login_code(&code), "{code}");
        let typed = format!(" {} ", code.to_uppercase().replace('-', ""));
        assert_eq!(codes.spend(&typed, now).as_deref(), Some("user 1000"));
        assert_eq!(codes.spend(&typed, now), None);
        let (_, late) = codes.make("user 1000", now).unwrap();
        assert_eq!(codes.spend(&late, now.after(CODE_VALID)), None);
    }

    #[test]
    fn guesses_end_what_they_guess_at() {
        let codes = codes();
        let now = ClockInstant::ZERO;
        let (_, code) = codes.make("user 1000", now).unwrap();
        for _ in 0..WRONG_MAX {
            assert_eq!(codes.spend("2222-2222-2222", now), None);
        }
        assert_eq!(codes.spend(&code, now), None);
    }

    #[test]
    fn there_is_none_without_a_page() {
        let codes = LoginCodes::default();
        let made = codes.make("user 1000", ClockInstant::ZERO);
        assert_eq!(made, Err(LoginCodeError::NoPage));
        assert!(!is_login_code(
            "sth_AAAAAAAA.AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA"
        ));
    }
}
