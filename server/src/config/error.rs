//! Errors in the configuration.

use std::io;
use std::net::IpAddr;
use std::path::PathBuf;

use trainyard_gpu_runtime::Parallel;
use trainyard_gpu_runtime::backend::HostKernels;

use super::parse::MAX_RETENTION_HOURS;
use super::tenants::TenantsError;

/// An error in the configuration, with which the server refuses to start.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    /// The file can't be read.
    #[error("{}: {source}", path.display())]
    Read {
        /// The path of the file.
        path: PathBuf,
        /// The error of the system.
        source: io::Error,
    },
    /// The file is not valid.
    #[error("{}: {reason}", path.display())]
    File {
        /// The path of the file.
        path: PathBuf,
        /// The place and the problem.
        reason: String,
    },
    /// There is nothing to serve.
    #[error("no model to serve: give --model NAME=PATH")]
    NoModel,
    /// Two models have the same name.
    #[error("--model: the name {0:?} is given twice")]
    DuplicateModel(String),
    /// The host is not an IP address.
    #[error("--host: {0:?} is not an IP address")]
    Host(String),
    /// The URL names a store that this build does not support.
    #[error("--database-url: {0:?} is not supported; use sqlite://PATH or postgres://USER@HOST/NAME")]
    DatabaseUrl(String),
    /// No connections to read with.
    #[error("--database-readers: must be at least 1")]
    DatabaseReaders,
    /// No threads to compute with.
    #[error("--threads: must be at least 1")]
    Threads,
    /// The processor does not have the chosen kernels.
    #[error(
        "--kernels: {} is not available: the processor does not have it, or the system does not permit it; available here: {}",
        chosen.name(),
        available.iter().map(|kernels| kernels.name()).collect::<Vec<_>>().join(", ")
    )]
    Kernels {
        /// The chosen kernels.
        chosen: HostKernels,
        /// The available kernels, best first.
        available: Vec<HostKernels>,
    },
    /// A memory budget of 0.
    #[error("--{0}: must be at least 1")]
    Memory(&'static str),
    /// A SQLite file has one process, but API servers and workers share a store.
    #[error("--database-url: a separate API server or worker needs postgres://USER@HOST/NAME")]
    NeedsPostgres,
    /// Leases would end as they begin.
    #[error("--lease-seconds: must be at least 1")]
    Lease,
    /// Only one of two flags that need each other is set.
    #[error("--{given}: needs --{missing} too")]
    Pair {
        /// The flag that is set.
        given: &'static str,
        /// The flag that is missing.
        missing: &'static str,
    },
    /// The number of processes differs from the number of ranks.
    #[error("--world: {given} processes, but --parallel {parallel} has {} ranks", parallel.world())]
    World {
        /// The number of processes.
        given: usize,
        /// The layout of the ranks.
        parallel: Parallel,
    },
    /// The rank does not exist.
    #[error("--rank: {rank}, but the ranks of --parallel {parallel} are 0 to {}", parallel.world() - 1)]
    Rank {
        /// The number of the rank.
        rank: usize,
        /// The layout of the ranks.
        parallel: Parallel,
    },
    /// A period of 0.
    #[error("--{0}: must be at least 1")]
    Period(&'static str),
    /// The retention is not a positive number of hours, or is too large.
    #[error("--retention-hours: must be a positive number, at most {MAX_RETENTION_HOURS}")]
    Retention,
    /// A limit of 0.
    #[error("--{0}: must be at least 1")]
    Zero(&'static str),
    /// The metrics token is short enough to be guessed.
    #[error("--metrics-token: must be at least 8 characters")]
    MetricsToken,
    /// The tenants or keys contradict each other.
    #[error(transparent)]
    Tenants(#[from] TenantsError),
    /// The server is reachable by others, and open to all of them.
    #[error(
        "--host: {0} is not loopback, so the configuration file must list [[tenants]], with keys in the file or the store, or [[keys]]"
    )]
    KeysNeeded(IpAddr),
    /// The public URL makes the server reachable by others, and it is open to all of them.
    #[error(
        "--public-url: clients elsewhere need keys: list [[tenants]] with keys, or [[keys]], in the configuration file, or \
         give --insecure-no-auth to serve everybody as one tenant"
    )]
    PublicWithoutKeys,
    /// The settings of tokens or of their issuer can't work.
    #[error("auth: {0}")]
    Auth(String),
    /// The upstream of the hub is not a URL.
    #[error("--hf-upstream: {0:?} is not a URL; use https://… or none")]
    HubUpstream(String),
}
