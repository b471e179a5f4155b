//! The configuration file, `trainyard.toml`.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::{fs, io};

use serde::Deserialize;
use trainyard_gpu_runtime::Parallel;
use trainyard_gpu_runtime::backend::HostKernels;
use trainyard_protocol::redacted;

use super::auth::FileAuth;
use super::http::FileHttp;
use super::hub::FileHub;
use super::images::FileImages;
use super::queue::FileQueue;
use super::snapshots::FileSnapshots;
use super::tenants::{FileKey, FileTenant};
use super::tls::FileTls;
use super::{
    ComputeType, ConfigError, Device, LogFormat, NumericsMismatch, ServeRole, VerifiedShare, WeightForm, size,
};

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
    #[serde(deserialize_with = "size::mebibytes_of_file")]
    pub(super) storage_cache_mib: Option<u64>,
    #[serde(deserialize_with = "size::mebibytes_of_file")]
    pub(super) disk_reserve_mib: Option<u64>,
    pub(super) dtype: Option<ComputeType>,
    pub(super) weights: Option<WeightForm>,
    pub(super) threads: Option<usize>,
    pub(super) kernels: Option<HostKernels>,
    pub(super) device: Option<Device>,
    pub(super) cublaslt: Option<PathBuf>,
    pub(super) parallel: Option<Parallel>,
    pub(super) rank_timeout_seconds: Option<u64>,
    pub(super) numerics_mismatch: Option<NumericsMismatch>,
    pub(super) verify_samples: Option<VerifiedShare>,
    #[serde(deserialize_with = "size::mebibytes_of_file")]
    pub(super) memory_mib: Option<usize>,
    #[serde(deserialize_with = "size::mebibytes_of_file")]
    pub(super) activation_memory_mib: Option<usize>,
    #[serde(deserialize_with = "size::mebibytes_of_file")]
    pub(super) kv_memory_mib: Option<usize>,
    #[serde(deserialize_with = "size::mebibytes_of_file")]
    pub(super) checkpoint_memory_mib: Option<usize>,
    pub(super) log_level: Option<String>,
    pub(super) log_format: Option<LogFormat>,
    #[serde(deserialize_with = "size::bytes_of_file")]
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
    pub(super) usage_days: Option<u32>,
    pub(super) usage_rows: Option<u64>,
    pub(super) metrics_rows: Option<u64>,
    pub(super) usage_history_days: Option<u32>,
    pub(super) http: FileHttp,
    pub(super) images: FileImages,
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
    parse(&text).map_err(|reason| ConfigError::File { path: path.to_owned(), reason })
}

/// Reads the text of the file.
///
/// # Errors
/// Returns the place and the problem, without the values and the line of the file: they may be keys and passwords.
fn parse(text: &str) -> Result<FileConfig, String> {
    toml::from_str(text).map_err(|error| {
        let before = error.span().and_then(|span| text.get(..span.start)).unwrap_or_default();
        let column = before.chars().rev().take_while(|character| *character != '\n').count() + 1;
        format!("line {}, column {column}: {}", before.matches('\n').count() + 1, redacted(error.message()))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_names_its_place_and_repeats_no_secret() {
        let reason = |text: &str| parse(text).err().unwrap_or_default();
        assert!(
            reason("host = \"::1\"\n  max_conections = 1\n")
                .starts_with("line 2, column 3: unknown field `max_conections`")
        );
        for text in [
            "[[tenants]]\nname = \"t\"\nkeys = [\"tml-secret\"]\n",
            "[[tenants]]\nname = \"t\"\nkeys = [{ key = \"tml-secret\", rol = \"admin\" }]\n",
            "[[tenants]]\nname = \"t\"\nkeys = [{ key = \"tml-secret\" }\n[http]\n",
            "metrics_token = \"secret\" x\n",
            "port = \"secret\"\n",
        ] {
            let reason = reason(text);
            assert!(reason.starts_with("line ") && !reason.contains("secret"), "{reason}");
        }
    }
}
