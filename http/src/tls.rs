//! HTTPS: the certificate and the key of a server, which may change while it runs.

mod expiry;
mod metrics;
mod reload;

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, PoisonError, RwLock};
use std::time::SystemTime;

use rustls::crypto::ring::default_provider;
use rustls::pki_types::pem::{self, PemObject};
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::{ClientHello, ResolvesServerCert};
use rustls::sign::CertifiedKey;
use rustls::{InconsistentKeys, ServerConfig};
use tokio_rustls::TlsAcceptor;

pub use self::metrics::TlsMetrics;

/// The protocols offered by ALPN: the listener supports nothing newer.
const PROTOCOLS: [&[u8]; 1] = [b"http/1.1"];

/// The paths of the certificate and its key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TlsFiles {
    /// The server's certificate, then those of the authorities between it and the root, in PEM.
    pub cert: PathBuf,
    /// The certificate's private key in PEM: PKCS#8, PKCS#1 or SEC1, not encrypted.
    pub key: PathBuf,
}

/// Error when loading the files for HTTPS.
#[derive(Debug, thiserror::Error)]
pub enum TlsError {
    /// A file can't be read.
    #[error("{flag}: {}: {source}", path.display())]
    Read {
        /// The flag that names the file.
        flag: &'static str,
        /// The path of the file.
        path: PathBuf,
        /// The error of the system.
        source: io::Error,
    },
    /// The first file has no usable certificate.
    #[error("--tls-cert: {}: {reason}", path.display())]
    Certificate {
        /// The path of the file.
        path: PathBuf,
        /// The problem with its content.
        reason: String,
    },
    /// The second file has no usable key.
    #[error("--tls-key: {}: {reason}", path.display())]
    Key {
        /// The path of the file.
        path: PathBuf,
        /// The problem with its content.
        reason: String,
    },
    /// Certificate and key are well-formed, but don't belong together.
    #[error("--tls-key: {} is not the key of the certificate in {}", key.display(), cert.display())]
    Mismatch {
        /// The path of the key.
        key: PathBuf,
        /// The path of the certificate.
        cert: PathBuf,
    },
    /// The TLS library refuses the settings.
    #[error("TLS: {0}")]
    Setup(#[from] rustls::Error),
    /// The system refuses to deliver SIGHUP.
    #[error("SIGHUP: {0}")]
    Signal(io::Error),
}

/// The content of both files.
#[derive(Clone, PartialEq, Eq)]
struct Pair {
    cert: Vec<u8>,
    key: Vec<u8>,
}

impl TlsFiles {
    fn read(&self) -> Result<Pair, TlsError> {
        let read =
            |flag, path: &Path| fs::read(path).map_err(|source| TlsError::Read { flag, path: path.to_owned(), source });
        Ok(Pair { cert: read("--tls-cert", &self.cert)?, key: read("--tls-key", &self.key)? })
    }

    /// Reads the certificate and its key, and checks that they match.
    fn parse(&self, pair: &Pair) -> Result<CertifiedKey, TlsError> {
        let certificate = |reason: String| TlsError::Certificate { path: self.cert.clone(), reason };
        let wrong_key = |reason: String| TlsError::Key { path: self.key.clone(), reason };
        let chain = CertificateDer::pem_slice_iter(&pair.cert)
            .collect::<Result<Vec<_>, _>>()
            .map_err(|error| certificate(error.to_string()))?;
        if chain.is_empty() {
            return Err(certificate("contains no certificate in PEM".to_owned()));
        }
        let key = PrivateKeyDer::from_pem_slice(&pair.key).map_err(|error| {
            wrong_key(match error {
                pem::Error::NoItemsFound => {
                    "contains no private key in PEM (PKCS#8, PKCS#1 or SEC1, not encrypted)".to_owned()
                }
                error => error.to_string(),
            })
        })?;
        CertifiedKey::from_der(chain, key, &default_provider()).map_err(|error| match error {
            rustls::Error::InconsistentKeys(InconsistentKeys::KeyMismatch) => {
                TlsError::Mismatch { key: self.key.clone(), cert: self.cert.clone() }
            }
            rustls::Error::InvalidCertificate(error) => certificate(error.to_string()),
            error => wrong_key(error.to_string()),
        })
    }
}

/// HTTPS with the newest usable content of two files. Cheap to clone; all clones share the content.
#[derive(Clone)]
pub struct Tls {
    acceptor: TlsAcceptor,
    current: Arc<Current>,
    metrics: TlsMetrics,
}

/// The pair that new connections get.
#[derive(Debug)]
struct Current(RwLock<Arc<CertifiedKey>>);

impl ResolvesServerCert for Current {
    fn resolve(&self, _: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        Some(Arc::clone(&self.0.read().unwrap_or_else(PoisonError::into_inner)))
    }
}

impl Tls {
    /// Reads both files, and reads them again while the process lives: every few seconds, and at SIGHUP. Must be
    /// called within a Tokio runtime.
    ///
    /// # Errors
    /// Fails if a file can't be read, is invalid, or does not belong to the other one.
    pub fn open(files: TlsFiles, metrics: TlsMetrics) -> Result<Self, TlsError> {
        let pair = files.read()?;
        let tls = Self::new(&files, &pair, metrics)?;
        reload::spawn(tls.clone(), files, pair)?;
        Ok(tls)
    }

    fn new(files: &TlsFiles, pair: &Pair, metrics: TlsMetrics) -> Result<Self, TlsError> {
        let key = files.parse(pair)?;
        let current = Arc::new(Current(RwLock::new(Arc::new(key))));
        let mut config = ServerConfig::builder_with_provider(Arc::new(default_provider()))
            .with_safe_default_protocol_versions()?
            .with_no_client_auth()
            .with_cert_resolver(Arc::clone(&current) as Arc<dyn ResolvesServerCert>);
        config.alpn_protocols = PROTOCOLS.map(<[u8]>::to_vec).to_vec();
        let tls = Self { acceptor: TlsAcceptor::from(Arc::new(config)), current, metrics };
        tls.report_expiry(files);
        Ok(tls)
    }

    /// Returns the acceptor that makes TLS connections.
    pub fn acceptor(&self) -> &TlsAcceptor {
        &self.acceptor
    }

    /// Replaces the pair for new connections; open connections keep theirs.
    fn replace(&self, files: &TlsFiles, pair: &Pair) -> Result<(), TlsError> {
        let key = files.parse(pair)?;
        *self.current.0.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(key);
        self.report_expiry(files);
        Ok(())
    }

    /// Reports the certificate's expiry to the metrics. An expired certificate is still served, with a warning:
    /// clients that don't check keep their service, and the others report the reason.
    fn report_expiry(&self, files: &TlsFiles) {
        let key = Arc::clone(&self.current.0.read().unwrap_or_else(PoisonError::into_inner));
        let Some(end) = key.cert.first().and_then(|certificate| expiry::not_after(certificate)) else {
            tracing::warn!(file = %files.cert.display(), "failed to read the expiry of the certificate");
            return;
        };
        self.metrics.expires(end.unix_timestamp());
        if SystemTime::from(end) < SystemTime::now() {
            tracing::warn!(file = %files.cert.display(), expired = %end, "the TLS certificate has expired: clients will refuse it");
        }
    }
}
