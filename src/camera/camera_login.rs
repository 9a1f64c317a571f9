//! The name and the password that an HTTP camera asks for. No message and no log has them.

use std::fmt;
use std::path::Path;

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use http::HeaderValue;

use super::CameraFailure;
use base::plain_file;

/// Most bytes of a login.
const BYTES_MAX: usize = 512;

/// A login as the header of a request.
pub(super) struct CameraLogin(HeaderValue);

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
        let wrong = || failure("it must hold NAME:PASSWORD and nothing else".to_owned());
        if !is_login {
            return Err(wrong());
        }
        let text = format!("Basic {}", BASE64_STANDARD.encode(login));
        let mut value = HeaderValue::from_str(&text).map_err(|_| wrong())?;
        value.set_sensitive(true);
        Ok(Self(value))
    }

    /// Returns the value of the header `Authorization`.
    pub(super) fn header(&self) -> HeaderValue {
        self.0.clone()
    }
}
