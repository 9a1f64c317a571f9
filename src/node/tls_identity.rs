//! The certificate and key that HTTP is served with, as the node file names them.

use std::io::ErrorKind;
use std::path::Path;

use anyhow::{Context, bail};

use base::file_access;
use base::plain_file;
use config::NodeFile;
use mcp::tls::{self, SharedTlsAcceptor};

/// Longest file that is read; a chain of certificates has a few thousand bytes.
const BYTES_MAX: u64 = 1024 * 1024;

/// Returns the TLS acceptor of this node; `None` if its file names no certificate.
///
/// # Errors
/// A file cannot be read or used, or others may read the key. The message names the file and the fix.
pub fn acceptor(file: &NodeFile) -> anyhow::Result<Option<SharedTlsAcceptor>> {
    let (Some(certificates), Some(key)) = (&file.tls_cert, &file.tls_key) else {
        return Ok(None);
    };
    let chain = read("tls_cert", certificates)?;
    check_secret(key)?;
    let secret = read("tls_key", key)?;
    let acceptor = tls::acceptor(&chain, &secret).with_context(|| {
        format!(
            "`tls_cert` {} and `tls_key` {} must be PEM files that belong together, with the node's own certificate first",
            certificates.display(),
            key.display()
        )
    })?;
    Ok(Some(acceptor))
}

fn read(what: &str, path: &Path) -> anyhow::Result<Vec<u8>> {
    let context = || {
        format!(
            "cannot read `{what}` {}: the node's user or group must be able to read it",
            path.display()
        )
    };
    match plain_file::read_at_most(path, BYTES_MAX) {
        Err(error) if error.kind() == ErrorKind::FileTooLarge => bail!(
            "`{what}` {} is not a PEM file: it is too long (at most {BYTES_MAX} bytes)",
            path.display()
        ),
        read => read.with_context(context),
    }
}

/// Checks that only the key's owner and group, such as Debian's `ssl-cert`, may read it.
fn check_secret(key: &Path) -> anyhow::Result<()> {
    let metadata = std::fs::metadata(key)
        .with_context(|| format!("there is no `tls_key` {}", key.display()))?;
    let mode = file_access::mode(&metadata);
    if mode & 0o027 == 0 {
        return Ok(());
    }
    bail!(
        "other users can read or write `tls_key` {} (mode {mode:o}). Next: `chmod 640` or `chmod 600` it",
        key.display()
    )
}
