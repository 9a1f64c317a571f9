//! One-time codes for the operator's page: made for a user whom the kernel has identified, who types the code there.

use std::sync::{Mutex, OnceLock};
use std::time::Duration;

use base::lock::MutexExt;
use base::units::ClockInstant;

/// Lifetime of a code.
pub const CODE_VALID: Duration = Duration::from_secs(5 * 60);

/// Maximum number of valid codes; a further one replaces the oldest.
const CODES_MAX: usize = 8;

/// Number of wrong codes after which all valid codes end: nobody mistypes that often.
const WRONG_MAX: u32 = 10;

/// Digits and letters without i, l, o and u, which are easily mistaken for others.
const ALPHABET: &[u8; 32] = b"0123456789abcdefghjkmnpqrstvwxyz";

/// Number of characters in a code, and in each of its groups.
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
    wrong_count: u32,
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
        "this node serves no page, because it has no HTTP address. Next: `steadyhand serve --http 127.0.0.1:8700`"
    )]
    NoPage,
    /// The system gives no random bytes.
    #[error("no code can be made: {0}")]
    NoRandomness(String),
}

impl LoginCodes {
    /// Remembers the address of the page; later addresses are ignored.
    pub fn served_at(&self, address: &str) {
        self.address.get_or_init(|| address.to_owned());
    }

    /// Returns the address of the page, if the node serves one.
    #[must_use]
    pub fn address(&self) -> Option<&str> {
        self.address.get().map(String::as_str)
    }

    /// Makes a code for `holder`. Returns the address of the page and the code, which is shown once.
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

    /// Uses up a code, written with or without its hyphens. Returns its holder.
    pub fn spend(&self, code: &str, now: ClockInstant) -> Option<String> {
        let hash = hash(code);
        let mut state = self.state.locked();
        state.codes.retain(|code| now < code.ends);
        let Some(index) = state.codes.iter().position(|code| code.hash == hash) else {
            state.wrong_count = state.wrong_count.saturating_add(1);
            if state.wrong_count >= WRONG_MAX {
                *state = LoginCodeState::default();
            }
            return None;
        };
        state.wrong_count = 0;
        Some(state.codes.swap_remove(index).holder)
    }
}

/// Returns whether a text looks like a code, and so not like a token.
#[must_use]
pub fn is_login_code(text: &str) -> bool {
    let code = normalize_code(text);
    code.len() == CODE_CHARS && code.bytes().all(|byte| ALPHABET.contains(&byte))
}

fn hash(code: &str) -> blake3::Hash {
    blake3::hash(normalize_code(code).as_bytes())
}

/// Returns a code in lower case, without white space and hyphens.
fn normalize_code(code: &str) -> String {
    let is_ignored = |c: char| c.is_whitespace() || "-–".contains(c);
    code.replace(is_ignored, "").to_lowercase()
}

fn random_code() -> Result<String, LoginCodeError> {
    let mut bytes = [0_u8; CODE_CHARS];
    getrandom::fill(&mut bytes).map_err(|error| LoginCodeError::NoRandomness(error.to_string()))?;
    let symbol = |byte: &u8| ALPHABET.get(usize::from(byte % 32)).copied();
    let chars: Vec<char> = bytes.iter().filter_map(symbol).map(char::from).collect();
    let groups = chars.chunks(GROUP_CHARS).map(String::from_iter);
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
    fn a_code_opens_once_within_its_lifetime() {
        let codes = codes();
        let now = ClockInstant::ZERO;
        let (address, code) = codes.make("user 1000", now).unwrap();
        assert_eq!(address, "http://127.0.0.1:8700/");
        assert!(is_login_code(&code), "{code}");
        let typed = format!(" {} ", code.to_uppercase().replace('-', ""));
        assert_eq!(codes.spend(&typed, now).as_deref(), Some("user 1000"));
        assert_eq!(codes.spend(&typed, now), None);
        let (_, expired) = codes.make("user 1000", now).unwrap();
        assert_eq!(codes.spend(&expired, now.after(CODE_VALID)), None);
    }

    #[test]
    fn many_wrong_codes_end_the_valid_ones() {
        let codes = codes();
        let now = ClockInstant::ZERO;
        let (_, code) = codes.make("user 1000", now).unwrap();
        for _ in 0..WRONG_MAX {
            assert_eq!(codes.spend("2222-2222-2222", now), None);
        }
        assert_eq!(codes.spend(&code, now), None);
    }

    #[test]
    fn no_code_is_made_without_a_page() {
        let codes = LoginCodes::default();
        let made = codes.make("user 1000", ClockInstant::ZERO);
        assert_eq!(made, Err(LoginCodeError::NoPage));
        assert!(!is_login_code(
            "sth_AAAAAAAA.AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA"
        ));
    }
}
