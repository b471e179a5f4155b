//! HTTPS: flags and the table `[tls]` of the file.

use std::path::PathBuf;

use clap::Args;
use serde::Deserialize;
use trainyard_http::tls::TlsFiles;

use super::ConfigError;

/// Flags for serving HTTPS.
#[derive(Args, Clone, Debug, Default)]
#[command(next_help_heading = "HTTPS")]
pub struct TlsFlags {
    /// Serve HTTPS, on a worker for its metrics: the certificate and those of its intermediate authorities, in PEM. The
    /// file is reloaded when it changes.
    #[arg(long, env = "TRAINYARD_TLS_CERT", value_name = "FILE")]
    pub tls_cert: Option<PathBuf>,
    /// The private key of --tls-cert, in PEM (PKCS#8, PKCS#1 or SEC1, not encrypted).
    #[arg(long, env = "TRAINYARD_TLS_KEY", value_name = "FILE")]
    pub tls_key: Option<PathBuf>,
}

#[derive(Clone, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct FileTls {
    cert: Option<PathBuf>,
    key: Option<PathBuf>,
}

/// Returns both files, or neither.
pub(super) fn resolve(flags: TlsFlags, file: FileTls) -> Result<Option<TlsFiles>, ConfigError> {
    match (flags.tls_cert.or(file.cert), flags.tls_key.or(file.key)) {
        (Some(cert), Some(key)) => Ok(Some(TlsFiles { cert, key })),
        (None, None) => Ok(None),
        (Some(_), None) => Err(ConfigError::Pair { given: "tls-cert", missing: "tls-key" }),
        (None, Some(_)) => Err(ConfigError::Pair { given: "tls-key", missing: "tls-cert" }),
    }
}
