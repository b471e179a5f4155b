//! Errors in the configuration.

use std::io;
use std::net::IpAddr;
use std::path::PathBuf;

use trainyard_gpu_runtime::Parallel;
use trainyard_gpu_runtime::backend::HostKernels;

use super::tenants::TenantsError;

/// The largest retention: a century.
pub(super) const MAX_RETENTION_HOURS: f64 = 876_600.0;

/// The reason why a server without keys would be open to others.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Exposure {
    /// The host is not a loopback address.
    #[error("--host: {0} is not loopback, so callers need keys, and there are none: {CREATE}")]
    Host(IpAddr),
    /// The public URL makes the server reachable from other machines.
    #[error(
        "--public-url: clients elsewhere need keys, and there are none: {CREATE}, or pass --insecure-no-auth to serve \
         everybody as one tenant"
    )]
    PublicUrl,
}

/// The ways to the first key.
const CREATE: &str = "create an organisation with `trainyard tenants create NAME --operator` and a key with \
    `trainyard keys create NAME --name KEY --role admin` in this store, or list [[keys]] in the configuration file";

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
    #[error(
        "no model to serve: pass --model with a folder, a GGUF file or the id of a downloaded model, such as \
         --model Qwen/Qwen3-8B=models/Qwen3-8B"
    )]
    NoModel,
    /// Two models have the same name.
    #[error("--model: the name {0:?} is used twice")]
    DuplicateModel(String),
    /// The host is not an IP address.
    #[error("--host: {0:?} is not an IP address")]
    Host(String),
    /// The URL names a store that this build does not support.
    #[error("--database-url: {0:?} is not supported; use sqlite://PATH or postgres://USER@HOST/NAME")]
    DatabaseUrl(String),
    /// The number of connections that read is 0.
    #[error("--database-readers: must be at least 1")]
    DatabaseReaders,
    /// The number of threads is 0.
    #[error("--threads: must be at least 1")]
    Threads,
    /// The form of the weights does not match the type of GEMM inputs.
    #[error("--weights: bf16 requires --dtype bf16; omit --weights to convert to f32")]
    Weights,
    /// Block-quantized weights on a GPU, which can't use them.
    #[error("--weights: {0} requires --device cpu: GPUs do not keep weights in blocks")]
    WeightsOnGpu(&'static str),
    /// The processor does not have the chosen kernels.
    #[error(
        "--kernels: {} is not available: the processor does not have it, or the system does not permit it; available here: {}",
        chosen.name(),
        available.iter().map(|kernels| kernels.name()).collect::<Vec<_>>().join(", ")
    )]
    Kernels {
        /// Kernels that were chosen.
        chosen: HostKernels,
        /// The available kernels, best first.
        available: Vec<HostKernels>,
    },
    /// A memory budget is 0.
    #[error("--{0}: must be at least 1")]
    Memory(&'static str),
    /// A SQLite file supports one process only, but API servers and workers share a store.
    #[error("--database-url: a separate API server or worker needs postgres://USER@HOST/NAME")]
    NeedsPostgres,
    /// The lease is too short.
    #[error("--lease-seconds: must be at least 1")]
    Lease,
    /// Only one of two flags that need each other is set.
    #[error("--{given}: requires --{missing}")]
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
    /// A period is 0.
    #[error("--{0}: must be at least 1")]
    Period(&'static str),
    /// So few requests with metrics that a run would be thinned out all the time.
    #[error("--metrics-rows: must be at least {0}")]
    MetricsRows(u64),
    /// The retention of usage is too short.
    #[error("{name}: must be at least {least}, because a report of usage covers two weeks")]
    Days {
        /// Name of the flag.
        name: &'static str,
        /// The least number of days.
        least: u32,
    },
    /// The retention is not a positive number of hours, or is too large.
    #[error("--retention-hours: must be a positive number, at most {MAX_RETENTION_HOURS}")]
    Retention,
    /// A limit is 0.
    #[error("--{0}: must be at least 1")]
    Zero(&'static str),
    /// A trusted proxy is neither an address nor a network.
    #[error("--trusted-proxies: {0:?} is not an IP address or a network such as 10.0.0.0/8")]
    Proxy(String),
    /// The metrics token is short enough to be guessed.
    #[error("--metrics-token: must be at least 8 characters")]
    MetricsToken,
    /// The tenants or keys contradict each other.
    #[error(transparent)]
    Tenants(#[from] TenantsError),
    /// The server is reachable by others, and neither the file nor the store has a key.
    #[error(transparent)]
    Exposed(#[from] Exposure),
    /// The settings for tokens or for their issuer are invalid.
    #[error("auth: {0}")]
    Auth(String),
    /// The upstream of the hub is not a URL.
    #[error("--hf-upstream: {0:?} is not a URL; use https://… or none")]
    HubUpstream(String),
}
