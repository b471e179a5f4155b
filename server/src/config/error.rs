//! Why a configuration is refused.

use std::io;
use std::net::IpAddr;
use std::path::PathBuf;

use trainyard_gpu_runtime::Parallel;
use trainyard_gpu_runtime::backend::HostKernels;

use super::parse::MAX_RETENTION_HOURS;
use super::tenants::TenantsError;

/// A configuration that the server refuses to start with.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    /// The file cannot be read.
    #[error("{}: {source}", path.display())]
    Read {
        /// Which.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// The file is not valid.
    #[error("{}: {reason}", path.display())]
    File {
        /// Which.
        path: PathBuf,
        /// Where and why.
        reason: String,
    },
    /// There is nothing to serve.
    #[error("no model to serve: give --model NAME=PATH")]
    NoModel,
    /// Two models have the same name.
    #[error("--model: the name {0:?} is given twice")]
    DuplicateModel(String),
    /// The address is not one.
    #[error("--host: {0:?} is no IP address")]
    Host(String),
    /// A store that this build does not have.
    #[error("--database-url: {0:?} is not supported; use sqlite://PATH or postgres://USER@HOST/NAME")]
    DatabaseUrl(String),
    /// No connections to read with.
    #[error("--database-readers: must be at least 1")]
    DatabaseReaders,
    /// No threads to compute with.
    #[error("--threads: must be at least 1")]
    Threads,
    /// Kernels that the processor does not have.
    #[error(
        "--kernels: {} is not available: the processor does not have it, or the system does not permit it; available here: {}",
        chosen.name(),
        available.iter().map(|kernels| kernels.name()).collect::<Vec<_>>().join(", ")
    )]
    Kernels {
        /// What was asked for.
        chosen: HostKernels,
        /// What there is, best first.
        available: Vec<HostKernels>,
    },
    /// A memory budget of 0.
    #[error("--{0}: must be at least 1")]
    Memory(&'static str),
    /// Roles share a store, and a SQLite file has one process.
    #[error("--database-url: an API server or a worker of its own needs postgres://USER@HOST/NAME")]
    NeedsPostgres,
    /// Leases that end as they begin.
    #[error("--lease-seconds: must be at least 1")]
    Lease,
    /// One of two files.
    #[error("--{given}: needs --{missing} too")]
    Pair {
        /// The flag that is there.
        given: &'static str,
        /// The flag that is not.
        missing: &'static str,
    },
    /// As many processes as ranks.
    #[error("--world: {given} processes, but --parallel {parallel} has {} ranks", parallel.world())]
    World {
        /// How many processes.
        given: usize,
        /// The layout.
        parallel: Parallel,
    },
    /// A rank that does not exist.
    #[error("--rank: {rank}, but the ranks of --parallel {parallel} are 0 to {}", parallel.world() - 1)]
    Rank {
        /// Which.
        rank: usize,
        /// The layout.
        parallel: Parallel,
    },
    /// No time at all.
    #[error("--{0}: must be at least 1")]
    Period(&'static str),
    /// No time at all, or no number of hours.
    #[error("--retention-hours: must be a positive number, at most {MAX_RETENTION_HOURS}")]
    Retention,
    /// A limit of 0.
    #[error("--{0}: must be at least 1")]
    Zero(&'static str),
    /// A token that anybody can guess.
    #[error("--metrics-token: must be at least 8 characters")]
    MetricsToken,
    /// Tenants or keys that contradict themselves.
    #[error(transparent)]
    Tenants(#[from] TenantsError),
    /// Reachable by others, and open to all of them.
    #[error(
        "--host: {0} is not loopback, so the configuration file must list [[tenants]], whose keys it has or the store, or [[keys]]"
    )]
    KeysNeeded(IpAddr),
    /// Said to be reachable by others, and open to all of them.
    #[error(
        "--public-url: clients elsewhere need keys: list [[tenants]] with keys, or [[keys]], in the configuration file, or \
         give --insecure-no-auth to serve everybody as one tenant"
    )]
    PublicWithoutKeys,
    /// Tokens or an issuer that can't work.
    #[error("auth: {0}")]
    Auth(String),
    /// A hub that is none.
    #[error("--hf-upstream: {0:?} is no URL; use https://… or none")]
    HubUpstream(String),
}
