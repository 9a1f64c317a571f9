//! TLS for outgoing and incoming connections.
//!
//! A server's certificate is always checked against the authorities that the system trusts; nothing switches that off.
//! `SSL_CERT_FILE` names a file of other authorities, for a site with its own.

use std::sync::{Arc, LazyLock};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio_rustls::rustls::crypto::{CryptoProvider, ring};
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use tokio_rustls::rustls::{self, ClientConfig, RootCertStore, ServerConfig};
use tokio_rustls::{TlsAcceptor, TlsConnector};

/// Longest wait for a TLS handshake.
const HANDSHAKE_MAX: Duration = Duration::from_secs(5);

/// Reason why TLS cannot be used.
#[derive(Debug, Clone, thiserror::Error)]
pub enum TlsError {
    /// No certificate authority is trusted, so no certificate can be verified.
    #[error(
        "this machine trusts no certificate authority. Next: install its ca-certificates, or name a file of them in SSL_CERT_FILE"
    )]
    NoAuthority,
    /// The address has no name for which there could be a certificate.
    #[error("{0} is not a host name or address that a certificate can have")]
    Name(String),
    /// The other side cannot prove its identity, or does not speak TLS.
    #[error("{0}")]
    Handshake(String),
    /// The other side said nothing for [`HANDSHAKE_MAX`].
    #[error("no answer to the TLS handshake within {} s", HANDSHAKE_MAX.as_secs())]
    Silent,
    /// A certificate or key cannot be used.
    #[error("the {what} cannot be used: {reason}")]
    Unusable {
        /// The certificate or the key.
        what: &'static str,
        /// Reason.
        reason: String,
    },
}

impl TlsError {
    fn unusable(what: &'static str, reason: &dyn std::fmt::Display) -> Self {
        let reason = reason.to_string();
        Self::Unusable { what, reason }
    }
}

/// A connection, encrypted or not.
pub(super) trait ByteStream: AsyncRead + AsyncWrite + Send + Unpin {}

impl<S: AsyncRead + AsyncWrite + Send + Unpin> ByteStream for S {}

/// Opens TLS on a connection to `host`, whose certificate must be for that name and from an authority this machine trusts.
pub(super) async fn connect(
    stream: TcpStream,
    host: &str,
) -> Result<Box<dyn ByteStream>, TlsError> {
    static CONNECTOR: LazyLock<Result<TlsConnector, TlsError>> = LazyLock::new(connector);
    let connector = CONNECTOR.as_ref().map_err(Clone::clone)?;
    let unbracketed = host.trim_start_matches('[').trim_end_matches(']');
    let name = ServerName::try_from(unbracketed.to_owned());
    let name = name.map_err(|_| TlsError::Name(host.to_owned()))?;
    let opening = connector.connect(name, stream);
    match tokio::time::timeout(HANDSHAKE_MAX, opening).await {
        Err(_) => Err(TlsError::Silent),
        Ok(Err(error)) => Err(TlsError::Handshake(error.to_string())),
        Ok(Ok(stream)) => Ok(Box::new(stream)),
    }
}

/// TLS side of the server, shared by all connections.
#[derive(Clone)]
pub struct SharedTlsAcceptor(TlsAcceptor);

impl SharedTlsAcceptor {
    /// Completes the TLS handshake within [`HANDSHAKE_MAX`].
    pub(super) async fn accept<S: ByteStream>(
        &self,
        stream: S,
    ) -> Result<impl ByteStream + use<S>, TlsError> {
        match tokio::time::timeout(HANDSHAKE_MAX, self.0.accept(stream)).await {
            Err(_) => Err(TlsError::Silent),
            Ok(result) => result.map_err(|error| TlsError::Handshake(error.to_string())),
        }
    }
}

fn provider() -> Arc<CryptoProvider> {
    Arc::new(ring::default_provider())
}

fn connector() -> Result<TlsConnector, TlsError> {
    let mut roots = RootCertStore::empty();
    let (trusted, _) =
        roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
    if trusted == 0 {
        return Err(TlsError::NoAuthority);
    }
    let config = ClientConfig::builder_with_provider(provider())
        .with_safe_default_protocol_versions()
        .map_err(|error| TlsError::Handshake(error.to_string()))?
        .with_root_certificates(roots)
        .with_no_client_auth();
    Ok(TlsConnector::from(Arc::new(config)))
}

/// Builds the server's TLS side from its certificates, its own first, and its key, all as PEM.
///
/// # Errors
/// The PEM holds no certificate or key, or they do not belong together.
pub fn acceptor(certificates: &[u8], key: &[u8]) -> Result<SharedTlsAcceptor, TlsError> {
    let chain: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(certificates).collect();
    let chain = chain.map_err(|error| TlsError::unusable("certificate", &error))?;
    if chain.is_empty() {
        let reason = &"no PEM certificate in it";
        return Err(TlsError::unusable("certificate", reason));
    }
    let key =
        PrivateKeyDer::from_pem_slice(key).map_err(|error| TlsError::unusable("key", &error))?;
    let pair = |error: rustls::Error| TlsError::unusable("certificate with this key", &error);
    let mut config = ServerConfig::builder_with_provider(provider())
        .with_safe_default_protocol_versions()
        .map_err(pair)?
        .with_no_client_auth()
        .with_single_cert(chain, key)
        .map_err(pair)?;
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok(SharedTlsAcceptor(TlsAcceptor::from(Arc::new(config))))
}
