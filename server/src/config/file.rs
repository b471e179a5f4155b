//! The configuration file, `trainyard.toml`.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::{fs, io};

use serde::Deserialize;
use trainyard_gpu_runtime::Parallel;
use trainyard_gpu_runtime::backend::HostKernels;

use super::auth::FileAuth;
use super::http::FileHttp;
use super::hub::FileHub;
use super::queue::FileQueue;
use super::snapshots::FileSnapshots;
use super::tenants::{FileKey, FileTenant};
use super::tls::FileTls;
use super::{ComputeType, ConfigError, Device, LogFormat, NumericsMismatch, ServeRole};

/// The file that is read when `--config` names no other.
const DEFAULT_FILE: &str = "trainyard.toml";

/// The contents of the file.
#[derive(Clone, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct FileConfig {
    pub(super) models: BTreeMap<String, PathBuf>,
    pub(super) host: Option<String>,
    pub(super) port: Option<u16>,
    pub(super) data_dir: Option<PathBuf>,
    pub(super) database_url: Option<String>,
    pub(super) database_readers: Option<usize>,
    pub(super) storage: Option<String>,
    pub(super) storage_cache_mib: Option<u64>,
    pub(super) disk_reserve_mib: Option<u64>,
    pub(super) dtype: Option<ComputeType>,
    pub(super) threads: Option<usize>,
    pub(super) kernels: Option<HostKernels>,
    pub(super) device: Option<Device>,
    pub(super) parallel: Option<Parallel>,
    pub(super) rank_timeout_seconds: Option<u64>,
    pub(super) numerics_mismatch: Option<NumericsMismatch>,
    pub(super) memory_mib: Option<usize>,
    pub(super) activation_memory_mib: Option<usize>,
    pub(super) kv_memory_mib: Option<usize>,
    pub(super) checkpoint_memory_mib: Option<usize>,
    pub(super) log_level: Option<String>,
    pub(super) log_format: Option<LogFormat>,
    pub(super) max_body_bytes: Option<usize>,
    pub(super) public_url: Option<String>,
    pub(super) otlp_endpoint: Option<String>,
    pub(super) metrics_token: Option<String>,
    pub(super) metrics_per_tenant: bool,
    pub(super) role: Option<ServeRole>,
    pub(super) lease_seconds: Option<u64>,
    pub(super) snapshot_tokens: Option<u64>,
    pub(super) sampler_snapshots: FileSnapshots,
    pub(super) idle_seconds: Option<u64>,
    pub(super) drain_seconds: Option<u64>,
    pub(super) drain_delay_seconds: Option<u64>,
    pub(super) session_seconds: Option<u64>,
    pub(super) retention_hours: Option<f64>,
    pub(super) http: FileHttp,
    pub(super) hub: FileHub,
    pub(super) tls: FileTls,
    pub(super) auth: FileAuth,
    pub(super) queue: FileQueue,
    pub(super) insecure_no_auth: bool,
    pub(super) no_console: bool,
    pub(super) tenants: Vec<FileTenant>,
    pub(super) keys: Vec<FileKey>,
}

/// The default file may be absent; a named one may not.
pub(super) fn read_file(named: Option<&Path>) -> Result<FileConfig, ConfigError> {
    let path = named.unwrap_or(Path::new(DEFAULT_FILE));
    let text = match fs::read_to_string(path) {
        Ok(text) => text,
        Err(error) if named.is_none() && error.kind() == io::ErrorKind::NotFound => return Ok(FileConfig::default()),
        Err(source) => return Err(ConfigError::Read { path: path.to_owned(), source }),
    };
    toml::from_str(&text)
        .map_err(|error| ConfigError::File { path: path.to_owned(), reason: error.to_string().trim_end().to_owned() })
}
