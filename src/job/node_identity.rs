//! Proof of a node's identity: the node's key signs a challenge.

use std::io;
use std::path::Path;

use ed25519_dalek::{SigningKey, VerifyingKey};

use super::node_key::{self, bytes, hex, is_signature, random, signature};

/// Prefix of every signed text, so that no challenge can pass for a text that the key signs elsewhere.
const PURPOSE: &str = "steadyhand identity";

/// A node's name with its key.
#[derive(Debug)]
pub struct NodeIdentity {
    name: String,
    key: SigningKey,
}

impl NodeIdentity {
    /// Reads the key in a node's state folder, creating it if need be.
    ///
    /// # Errors
    /// The key cannot be used.
    pub fn open(state: &Path, name: &str) -> io::Result<Self> {
        Ok(Self {
            name: name.to_owned(),
            key: node_key::key(&state.join(node_key::FILE))?,
        })
    }

    /// Returns the node's name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns the public key as 64 hexadecimal digits.
    #[must_use]
    pub fn public_key(&self) -> String {
        hex(self.key.verifying_key().as_bytes())
    }

    /// Signs a challenge of 64 hexadecimal digits, in lower case; `None` for any other text.
    #[must_use]
    pub fn prove(&self, challenge: &str) -> Option<String> {
        bytes::<32>(challenge)?;
        Some(signature(&self.key, &statement(&self.name, challenge)))
    }
}

/// Returns a challenge that was never used before.
///
/// # Errors
/// The system has no random numbers.
pub fn identity_challenge() -> io::Result<String> {
    Ok(hex(&random()?))
}

/// Returns whether the node of this name and public key has signed this challenge.
#[must_use]
pub fn is_proven(name: &str, public_key: &str, challenge: &str, signature: &str) -> bool {
    let key = bytes::<32>(public_key).and_then(|key| VerifyingKey::from_bytes(&key).ok());
    key.is_some_and(|key| is_signature(&key, &statement(name, challenge), signature))
}

fn statement(name: &str, challenge: &str) -> String {
    format!("{PURPOSE}\n{name}\n{challenge}")
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::*;

    #[test]
    fn a_proof_is_of_one_node_one_name_and_one_challenge() {
        let folders = [(); 2].map(|()| tempfile::tempdir().unwrap());
        let [left, right] = [&folders[0], &folders[1]]
            .map(|folder| NodeIdentity::open(folder.path(), "left").unwrap());
        let challenge = identity_challenge().unwrap();
        let (key, signed) = (left.public_key(), left.prove(&challenge).unwrap());
        assert!(is_proven("left", &key, &challenge, &signed));
        assert!(!is_proven("right", &key, &challenge, &signed));
        assert!(!is_proven("left", &right.public_key(), &challenge, &signed));
        assert!(!is_proven(
            "left",
            &key,
            &identity_challenge().unwrap(),
            &signed
        ));
        assert!(!is_proven("left", &key, &challenge, ""));
        for bad in [
            "",
            "abc",
            &challenge.to_uppercase(),
            &format!("{challenge}0"),
        ] {
            assert_eq!(left.prove(bad).filter(|_| bad != challenge), None, "{bad}");
        }
    }
}
