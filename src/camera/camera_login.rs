//! The name and the password that an HTTP camera asks for. No message and no log has them.

use std::fmt;
use std::path::Path;

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use http::HeaderValue;

use super::CameraFailure;
use super::digest_login::{DigestChallenge, NamedPassword};
use super::login_challenge::LoginChallenge;
use base::plain_file;

/// Most bytes of a login.
const BYTES_MAX: usize = 512;

/// A login: `NAME:PASSWORD`.
pub(super) struct CameraLogin(String);

impl fmt::Debug for CameraLogin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("CameraLogin")
    }
}

impl CameraLogin {
    /// Reads a file that holds `NAME:PASSWORD`.
    ///
    /// # Errors
    /// The file cannot be read, or holds something else; the message does not contain its content.
    pub(super) fn read(file: &Path) -> Result<Self, CameraFailure> {
        let failure = |what: String| CameraFailure::Login {
            file: file.to_path_buf(),
            what,
        };
        let text = plain_file::read_text(file).map_err(|error| failure(error.to_string()))?;
        let login = text.trim_end_matches(['\r', '\n']);
        let is_login = login.len() <= BYTES_MAX
            && !login.contains(char::is_control)
            && login
                .split_once(':')
                .is_some_and(|(name, _)| !name.is_empty());
        match is_login {
            true => Ok(Self(login.to_owned())),
            false => Err(failure(
                "it must contain NAME:PASSWORD and nothing else".to_owned(),
            )),
        }
    }

    /// Returns the name and the password.
    #[cfg(feature = "rtsp")]
    pub(super) fn name_and_password(&self) -> (&str, &str) {
        self.0.split_once(':').unwrap_or_default()
    }

    /// Answers a server that asks for a login before it shows a path, by its strongest way: Digest does not send the password, Basic
    /// does. Returns the value of the header `Authorization`; `None` if it asks in another way.
    pub(super) fn answer(
        &self,
        challenges: &[LoginChallenge],
        path: &str,
    ) -> Result<Option<HeaderValue>, getrandom::Error> {
        let (name, password) = self.0.split_once(':').unwrap_or_default();
        let digests = challenges.iter().filter_map(DigestChallenge::new);
        let is_basic = |way: &LoginChallenge| way.scheme == "basic";
        let text = match digests.max_by_key(|challenge| challenge.hash) {
            Some(challenge) => {
                let own_nonce = format!("{:016x}", getrandom::u64()?);
                challenge.answer(&NamedPassword { name, password }, path, &own_nonce)
            }
            None if challenges.is_empty() || challenges.iter().any(is_basic) => {
                format!("Basic {}", BASE64_STANDARD.encode(&self.0))
            }
            None => return Ok(None),
        };
        Ok(HeaderValue::from_str(&text).ok().map(|mut value| {
            value.set_sensitive(true);
            value
        }))
    }
}
