//! Connections and bodies: flags, the table `[http]` of the file, and the defaults.

use std::time::Duration;

use clap::Args;
use serde::Deserialize;
use trainyard_http::listener::{ConnectionLimits, MinRate};
use trainyard_http::peer::TrustedProxies;

use super::{ConfigError, size};
use crate::bodies::BodyLimits;

/// Flags of the bounds on HTTP clients.
#[derive(Args, Clone, Debug, Default)]
#[command(next_help_heading = "Connections and bodies")]
pub struct HttpFlags {
    /// Open connections in all; further ones get 429 [default: three quarters of the files that the process may open,
    /// at most 16384].
    #[arg(long, env = "TRAINYARD_MAX_CONNECTIONS", value_name = "N")]
    pub max_connections: Option<usize>,
    /// Open connections from one address, of IPv6 from one /64 [default: three quarters of --max-connections].
    #[arg(long, env = "TRAINYARD_MAX_CONNECTIONS_PER_ADDRESS", value_name = "N")]
    pub max_connections_per_address: Option<usize>,
    /// Seconds in which the header of a request must arrive; also closes idle connections [default: 60].
    #[arg(long, env = "TRAINYARD_HEADER_SECONDS", value_name = "SECONDS")]
    pub header_seconds: Option<u64>,
    /// Memory for request bodies, reserved before they are read; a body waits up to 20 s for it, then gets 429
    /// [default: 512MiB].
    #[arg(long, env = "TRAINYARD_BODY_MEMORY_MIB", value_name = "SIZE", value_parser = size::mebibytes::<usize>)]
    pub body_memory_mib: Option<usize>,
    /// Minimum rate at which a body must arrive, on average over 30 s; a slower one gets 408 [default: 16].
    #[arg(long, env = "TRAINYARD_MIN_UPLOAD_KIB", value_name = "KIB_PER_SECOND")]
    pub min_upload_kib: Option<u32>,
    /// Minimum rate at which a client must read its response, on average over 30 s; otherwise, the connection is closed
    /// [default: 16].
    #[arg(long, env = "TRAINYARD_MIN_DOWNLOAD_KIB", value_name = "KIB_PER_SECOND")]
    pub min_download_kib: Option<u32>,
    /// Addresses and networks (10.0.0.0/8) of proxies, separated by commas. Their X-Forwarded-For names the client that
    /// is blocked after too many wrong keys [default: this machine].
    #[arg(long, env = "TRAINYARD_TRUSTED_PROXIES", value_name = "ADDRESSES", value_delimiter = ',')]
    pub trusted_proxies: Option<Vec<String>>,
}

#[derive(Clone, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct FileHttp {
    max_connections: Option<usize>,
    max_connections_per_address: Option<usize>,
    header_seconds: Option<u64>,
    #[serde(deserialize_with = "size::mebibytes_of_file")]
    body_memory_mib: Option<usize>,
    min_upload_kib: Option<u32>,
    min_download_kib: Option<u32>,
    trusted_proxies: Option<Vec<String>>,
}

/// Bounds on what clients may use of the HTTP side.
#[derive(Clone, Debug)]
pub struct Http {
    /// Bounds on connections and headers.
    pub connections: ConnectionLimits,
    /// Bounds on request bodies.
    pub bodies: BodyLimits,
    /// Proxies that are trusted to name the client they act for.
    pub trusted_proxies: TrustedProxies,
}

impl Http {
    pub(super) fn resolve(flags: &HttpFlags, file: FileHttp) -> Result<Self, ConfigError> {
        let defaults = ConnectionLimits::default();
        let total = flags.max_connections.or(file.max_connections).unwrap_or(defaults.total);
        let per_address = flags.max_connections_per_address.or(file.max_connections_per_address);
        let header_seconds = flags.header_seconds.or(file.header_seconds);
        let body_memory = flags.body_memory_mib.or(file.body_memory_mib);
        let min_download = flags.min_download_kib.or(file.min_download_kib);
        let min_upload = flags.min_upload_kib.or(file.min_upload_kib);
        for (name, zero) in [
            ("max-connections", total == 0),
            ("max-connections-per-address", per_address == Some(0)),
            ("header-seconds", header_seconds == Some(0)),
            ("body-memory-mib", body_memory == Some(0)),
        ] {
            if zero {
                return Err(ConfigError::Zero(name));
            }
        }
        let proxies = flags.trusted_proxies.as_ref().or(file.trusted_proxies.as_ref());
        let proxies = proxies.map(|networks| TrustedProxies::read(networks)).transpose();
        let mut bodies = BodyLimits::default();
        bodies.memory = body_memory.map_or(bodies.memory, |mib| mib.saturating_mul(1 << 20));
        Ok(Self {
            connections: ConnectionLimits {
                total,
                per_address: per_address.unwrap_or_else(|| (total - total / 4).max(1)),
                header_timeout: header_seconds.map_or(defaults.header_timeout, Duration::from_secs),
                min_rate: min_download.map_or(defaults.min_rate, |rate| MinRate::default().kib(rate)),
            },
            bodies: min_upload.map_or(bodies.clone(), |rate| bodies.rate_kib(rate)),
            trusted_proxies: proxies.map_err(ConfigError::Proxy)?.unwrap_or_default(),
        })
    }
}
