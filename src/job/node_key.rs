//! The node's key: created at its first start, readable by its user alone.

use std::fs::OpenOptions;
use std::io::{self, Write};
use std::path::Path;

use base::file_access::{mode, with_mode};
use base::plain_file;
use ed25519_dalek::{Signature, Signer, SigningKey, VerifyingKey};

/// Name of the node's key in its state folder.
pub(super) const FILE: &str = "node.key";

/// Signs a text with the key of the node that keeps its state here, creating the key if need be; returns 128 hexadecimal digits.
///
/// # Errors
/// The key cannot be used.
pub fn sign(state: &Path, text: &str) -> io::Result<String> {
    Ok(signature(&key(&state.join(FILE))?, text))
}

/// Returns whether this node's key has signed this text.
///
/// # Errors
/// The key cannot be used.
pub fn has_signed(state: &Path, text: &str, signature: &str) -> io::Result<bool> {
    let key = key(&state.join(FILE))?;
    Ok(is_signature(&key.verifying_key(), text, signature))
}

/// Returns a key's signature of a text as 128 hexadecimal digits.
pub(super) fn signature(key: &SigningKey, text: &str) -> String {
    hex(&key.sign(text.as_bytes()).to_bytes())
}

/// Returns whether this is a key's signature of a text.
pub(super) fn is_signature(key: &VerifyingKey, text: &str, signature: &str) -> bool {
    let signature = bytes::<64>(signature).map(|bytes| Signature::from_bytes(&bytes));
    signature.is_some_and(|signature| key.verify_strict(text.as_bytes(), &signature).is_ok())
}

/// Returns 32 unpredictable bytes.
///
/// # Errors
/// The system has no random numbers.
pub(super) fn random() -> io::Result<[u8; 32]> {
    let mut random = [0_u8; 32];
    getrandom::fill(&mut random).map_err(|error| io::Error::other(error.to_string()))?;
    Ok(random)
}

/// Reads a node's key, or creates it.
///
/// # Errors
/// When it cannot be read or created, is not a key, or others can read it.
pub(super) fn key(path: &Path) -> io::Result<SigningKey> {
    stored(path)?.map_or_else(|| create(path), Ok)
}

/// Reads a node's key; `None` if it has none yet.
///
/// # Errors
/// When it cannot be read, is not a key, or others can read it.
pub(super) fn stored(path: &Path) -> io::Result<Option<SigningKey>> {
    match plain_file::read_text(path) {
        Ok(text) => {
            let mode = mode(&std::fs::metadata(path)?);
            if mode & 0o077 != 0 {
                return Err(io::Error::other(format!(
                    "other users can read {} (mode {mode:o}), so they can sign as this node. Next: `chmod 600` it, or remove it to get a new key",
                    path.display(),
                )));
            }
            let seed = bytes::<32>(text.trim()).ok_or_else(|| {
                io::Error::other(format!(
                    "{} is not a key (64 hexadecimal digits). Next: remove it to get a new key",
                    path.display()
                ))
            })?;
            Ok(Some(SigningKey::from_bytes(&seed)))
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

fn create(path: &Path) -> io::Result<SigningKey> {
    let seed = random()?;
    let mut options = OpenOptions::new();
    options.write(true).create_new(true);
    let mut file = with_mode(&mut options, 0o600).open(path)?;
    writeln!(file, "{}", hex(&seed))?;
    file.sync_all()?;
    Ok(SigningKey::from_bytes(&seed))
}

/// Returns the bytes as lower-case hexadecimal digits.
pub(super) fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Parses exactly `2 * N` lower-case hexadecimal digits.
pub(super) fn bytes<const N: usize>(text: &str) -> Option<[u8; N]> {
    // Only one spelling is accepted, so that no two texts mean the same bytes.
    let is_digit = |byte: u8| matches!(byte, b'0'..=b'9' | b'a'..=b'f');
    if text.len() != 2 * N || !text.bytes().all(is_digit) {
        return None;
    }
    let mut bytes = [0_u8; N];
    for (index, byte) in bytes.iter_mut().enumerate() {
        *byte = u8::from_str_radix(text.get(2 * index..2 * index + 2)?, 16).ok()?;
    }
    Some(bytes)
}
