//! The configuration of a process: flags override `TRAINYARD_*` variables, which override `trainyard.toml`, which
//! overrides the defaults.

mod auth;
mod client;
mod database;
mod device;
mod directory;
mod error;
mod file;
mod flags;
mod http;
mod hub;
mod images;
mod named_path;
mod parse;
mod queue;
mod ranks;
mod shapes;
pub mod size;
mod snapshots;
mod stores;
mod tenants;
mod tls;
mod verified_share;

use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;
use std::thread;
use std::time::Duration;

use trainyard_gpu_runtime::Parallel;
use trainyard_gpu_runtime::backend::HostKernels;
use trainyard_http::tls::TlsFiles;
use trainyard_scheduler::{Database, Policies};

use self::file::{FileConfig, read_file};
use self::parse::{days, kernels, metrics_access, models, parse_host, retention};
use crate::auth::{IssuerSettings, Keys, TokenPolicy};
use crate::metrics::Access;

pub use self::client::{AuthCommand, AuthFlags, ExportFlags, ServerFlags};
pub use self::database::parse_database_url;
pub use self::device::{Device, Gpus};
pub use self::directory::{AuditCommand, AuditFlags, KeysCommand, KeysFlags, TenantsCommand, TenantsFlags};
pub use self::error::{ConfigError, Exposure};
pub use self::flags::{
    ComputeType, DoctorFlags, LogFormat, MigrateFlags, NumericsMismatch, ServeFlags, ServeRole, SharedFlags,
    WeightForm, WorkerFlags,
};
pub use self::http::{Http, HttpFlags};
pub use self::hub::{HubConfig, HubFlags};
pub use self::images::{ImageFlags, Images};
pub use self::named_path::NamedPath;
pub use self::queue::QueueFlags;
pub use self::ranks::{RankConfig, RankFlags};
pub use self::shapes::Shapes;
pub use self::snapshots::{SamplerSnapshots, SnapshotFlags};
pub use self::stores::{BackupFlags, RestoreFlags, StoreFlags, Stores};
pub use self::tenants::TenantsError;
pub use self::tls::TlsFlags;
pub use self::verified_share::VerifiedShare;

/// The least number of requests of a run whose metrics are kept: what a chart of a long run needs.
const METRICS_ROWS: u64 = 10_000;
/// The default lease of a worker.
const LEASE_SECONDS: u64 = 15;
/// The default capacity for copies of objects in a bucket.
const STORAGE_CACHE_MIB: u64 = 20 << 10;

/// The default drain, less than the 30 seconds or more after which service managers kill a process.
const DRAIN_SECONDS: u64 = 20;

/// The part of the service that a process runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// The API, and the execution of requests.
    All,
    /// Only the API, without the execution of requests.
    Api,
    /// Only the execution of requests.
    Worker,
}

/// The configuration of a process.
#[derive(Clone, Debug)]
pub struct Config {
    /// The part of the service that the process runs.
    pub role: Role,
    /// Whether the start brings a PostgreSQL schema up to date.
    pub migrate: bool,
    /// The time without a heartbeat after which a worker loses its leases.
    pub lease: Duration,
    /// Tokens of executed work after which a run is saved; the scheduler's default when `None`.
    pub snapshot_tokens: Option<u64>,
    /// The lifetime of unnamed sampler saves in the storage.
    pub sampler_snapshots: SamplerSnapshots,
    /// The time after which an idle run is unloaded from memory; the scheduler's default when `None`.
    pub idle_unload: Option<Duration>,
    /// The time that a shutdown waits for executing requests to finish, and for runs to be saved.
    pub drain: Duration,
    /// The time for which a shutdown is only announced on `/readyz`, before it begins.
    pub drain_delay: Duration,
    /// The time without a heartbeat after which a session expires; the scheduler's default when `None`.
    pub session_timeout: Option<Duration>,
    /// The time for which results can be read; the scheduler's default when `None`.
    pub retention: Option<Duration>,
    /// The time for which the usage of single requests is kept; the scheduler's default when `None`.
    pub usage_retention: Option<Duration>,
    /// The maximum number of rows of usage of single requests; the scheduler's default when `None`.
    pub usage_rows: Option<u64>,
    /// The maximum number of requests of a run whose metrics are kept; the scheduler's default when `None`.
    pub metrics_rows: Option<u64>,
    /// The time for which usage by hour is kept; the scheduler's default when `None`.
    pub usage_history: Option<Duration>,
    /// Base models, in the order given.
    pub models: Vec<NamedPath>,
    /// Address to listen on.
    pub host: IpAddr,
    /// Port to listen on; 0 picks a free one.
    pub port: u16,
    /// Folder of the store, payloads and checkpoints.
    pub data_dir: PathBuf,
    /// The database of sessions, runs and requests.
    pub database: Database,
    /// The number of connections that read a PostgreSQL database; the scheduler's default when `None`.
    pub database_readers: Option<usize>,
    /// Payloads, checkpoints and snapshots: a folder, or `s3://BUCKET/PREFIX`.
    pub storage: String,
    /// Capacity for copies of objects in a bucket.
    pub storage_cache_bytes: u64,
    /// Free space that is reserved for accepted work, 0 for none; derived from the size of the disk when `None`.
    pub disk_reserve: Option<u64>,
    /// The type of GEMM inputs.
    pub dtype: ComputeType,
    /// The form in which the weights of base models are held; converted to `dtype` when `None`.
    pub weights: Option<WeightForm>,
    /// Threads of the engine, at least 1.
    pub threads: usize,
    /// Kernels of the engine, which the processor has; the best ones that it has when `None`.
    pub kernels: Option<HostKernels>,
    /// The device that the engine computes on.
    pub device: Device,
    /// The file of cuBLASLt that GPUs compute with; searched when `None`.
    pub cublaslt: Option<PathBuf>,
    /// The layout of the ranks that share the models.
    pub parallel: Parallel,
    /// The time that ranks with a GPU wait for each other; the runtime's default when `None`.
    pub rank_timeout: Option<Duration>,
    /// The rank of this process; all ranks when `None`.
    pub rank: Option<RankConfig>,
    /// The treatment of runs that were computed with other numerics: other kernels or another type.
    pub numerics_mismatch: NumericsMismatch,
    /// The share of samples that a training pass computes again for verification; none when `None`.
    pub verify_samples: Option<VerifiedShare>,
    /// Memory of the engine, which contains the budgets below; a share of the machine's when `None`.
    pub memory_mib: Option<usize>,
    /// Memory of a training pass; the engine's default when `None`.
    pub activation_memory_mib: Option<usize>,
    /// Memory for keys and values (KV cache); the engine's default when `None`.
    pub kv_memory_mib: Option<usize>,
    /// Memory for sampler checkpoints that may be sampled from repeatedly; the engine's default when `None`.
    pub checkpoint_memory_mib: Option<usize>,
    /// The filter of the log; `RUST_LOG` or info when `None`.
    pub log_level: Option<String>,
    /// Form of the log.
    pub log_format: LogFormat,
    /// Largest body; the API's default when `None`.
    pub max_body_bytes: Option<usize>,
    /// Samples of all tenants that may be unfinished.
    pub max_queued_samples: Option<u64>,
    /// Bounds on what clients may use of the HTTP side.
    pub http: Http,
    /// Limits on images, and what decoding may use.
    pub images: Images,
    /// The settings of `/hf`.
    pub hub: HubConfig,
    /// The certificate and key of HTTPS, where it is served.
    pub tls: Option<TlsFiles>,
    /// The URL at which clients reach the server.
    pub public_url: Option<String>,
    /// Whether the console is served.
    pub console: bool,
    /// The collector of traces, if they are exported.
    pub otlp_endpoint: Option<String>,
    /// The keys and tenants of the file. With none, a server on loopback accepts any well-formed key while the store
    /// has none.
    pub keys: Keys,
    /// The reason why the store must contain a key before the server starts; `None` if the file lists keys, or only
    /// this machine reaches the server.
    pub exposure: Option<Exposure>,
    /// The lifetimes of tokens and of the keys that sign them.
    pub tokens: TokenPolicy,
    /// The external issuer whose tokens are accepted, if there is one.
    pub issuer: Option<IssuerSettings>,
    /// The limits of each tenant.
    pub policies: Policies,
    /// The address at which a worker serves its metrics, if it does.
    pub metrics_addr: Option<SocketAddr>,
    /// The rule for who may read the metrics.
    pub metrics_access: Access,
    /// Whether metrics have a label for the tenant.
    pub metrics_per_tenant: bool,
}

impl Config {
    /// Joins the flags of `trainyard serve` (with their variables), the file and the defaults.
    pub fn resolve(flags: ServeFlags) -> Result<Self, ConfigError> {
        let file = read_file(flags.shared.config.as_deref())?;
        let role = match flags.role.or(file.role).unwrap_or_default() {
            ServeRole::All => Role::All,
            ServeRole::Api => Role::Api,
        };
        Self::join(flags, file, role)
    }

    /// Joins the flags of `trainyard worker` (with their variables), the file and the defaults.
    pub fn resolve_worker(flags: WorkerFlags) -> Result<Self, ConfigError> {
        let file = read_file(flags.shared.config.as_deref())?;
        // What the file says of the API is for other processes.
        let file = FileConfig { host: None, port: None, ..file };
        let token = flags.shared.metrics_token.clone().or_else(|| file.metrics_token.clone());
        let config = Self::join(ServeFlags { shared: flags.shared, ..ServeFlags::default() }, file, Role::Worker)?;
        let rank = ranks::resolve(flags.rank, config.parallel)?;
        let config = Self { rank, ..config };
        Ok(match flags.metrics_addr {
            Some(address) => Self {
                metrics_addr: Some(address),
                metrics_access: metrics_access(token.as_deref(), address.ip().is_loopback())?,
                ..config
            },
            None => config,
        })
    }

    fn join(serve: ServeFlags, file: FileConfig, role: Role) -> Result<Self, ConfigError> {
        let ServeFlags { shared: flags, .. } = serve.clone();
        let stores = Stores::join(
            flags.data_dir.or(file.data_dir),
            flags.database_url.or(file.database_url),
            flags.storage.or(file.storage),
        )?;
        let host = parse_host(serve.host.or(file.host))?;
        let images = Images::resolve(flags.images, file.images)?;
        let default = tenants::default_policy(queue::resolve(serve.queue, file.queue)?, images.pixels_per_minute);
        let (keys, policies) = tenants::resolve(&file.tenants, &file.keys, default)?;
        let issuer = file.auth.issuer()?;
        let keys = if issuer.is_some() { keys.require() } else { keys };
        let insecure = serve.insecure_no_auth || file.insecure_no_auth;
        let console = !serve.no_console && !file.no_console;
        let public_url = serve.public_url.or(file.public_url);
        let exposure = match &public_url {
            _ if keys.are_required() => None,
            _ if !host.is_loopback() => Some(Exposure::Host(host)),
            Some(_) if !insecure => Some(Exposure::PublicUrl),
            _ => None,
        };
        // Not even a store that loses its keys opens such a server to everybody.
        let keys = if exposure.is_some() { keys.require() } else { keys };
        let keys = if insecure { keys.trust_forwarded() } else { keys };
        let private = host.is_loopback() && public_url.is_none();
        let processors = || thread::available_parallelism().map_or(1, usize::from);
        let config = Self {
            role,
            models: if role == Role::Api { Vec::new() } else { models(flags.models, file.models)? },
            host,
            port: serve.port.or(file.port).unwrap_or(8000),
            database: stores.database,
            database_readers: flags.database_readers.or(file.database_readers),
            storage: stores.storage,
            storage_cache_bytes: flags.storage_cache_mib.or(file.storage_cache_mib).unwrap_or(STORAGE_CACHE_MIB) << 20,
            disk_reserve: flags.disk_reserve_mib.or(file.disk_reserve_mib).map(|mib| mib.saturating_mul(1 << 20)),
            data_dir: stores.data_dir,
            dtype: flags.dtype.or(file.dtype).unwrap_or_default(),
            weights: flags.weights.or(file.weights),
            threads: flags.threads.or(file.threads).unwrap_or_else(processors),
            // An API server computes nothing: its file may be that of the workers.
            kernels: match role {
                Role::Api => None,
                Role::All | Role::Worker => kernels(flags.kernels.or(file.kernels), HostKernels::available())?,
            },
            device: flags.device.or(file.device).unwrap_or_default(),
            cublaslt: flags.cublaslt.or(file.cublaslt),
            parallel: flags.parallel.or(file.parallel).unwrap_or_default(),
            rank: None,
            rank_timeout: flags.rank_timeout_seconds.or(file.rank_timeout_seconds).map(Duration::from_secs),
            numerics_mismatch: flags.numerics_mismatch.or(file.numerics_mismatch).unwrap_or_default(),
            verify_samples: flags.verify_samples.or(file.verify_samples),
            memory_mib: flags.memory_mib.or(file.memory_mib),
            activation_memory_mib: flags.activation_memory_mib.or(file.activation_memory_mib),
            kv_memory_mib: flags.kv_memory_mib.or(file.kv_memory_mib),
            checkpoint_memory_mib: flags.checkpoint_memory_mib.or(file.checkpoint_memory_mib),
            log_level: flags.log_level.or(file.log_level),
            log_format: flags.log_format.or(file.log_format).unwrap_or_default(),
            max_body_bytes: serve.max_body_bytes.or(file.max_body_bytes),
            max_queued_samples: queue::queued_samples(serve.queue, file.queue)?,
            http: Http::resolve(&serve.http, file.http)?,
            images,
            hub: HubConfig::resolve(serve.hub, file.hub)?,
            tls: tls::resolve(flags.tls, file.tls)?,
            public_url,
            console,
            otlp_endpoint: serve.otlp_endpoint.or(file.otlp_endpoint).filter(|url| !url.is_empty()),
            keys,
            exposure,
            tokens: file.auth.policy()?,
            issuer,
            policies,
            metrics_access: metrics_access(flags.metrics_token.or(file.metrics_token).as_deref(), private)?,
            metrics_addr: None,
            metrics_per_tenant: file.metrics_per_tenant,
            migrate: flags.migrate,
            snapshot_tokens: flags.snapshot_tokens.or(file.snapshot_tokens),
            sampler_snapshots: SamplerSnapshots::resolve(flags.snapshots, file.sampler_snapshots),
            idle_unload: flags.idle_seconds.or(file.idle_seconds).map(Duration::from_secs),
            drain: Duration::from_secs(flags.drain_seconds.or(file.drain_seconds).unwrap_or(DRAIN_SECONDS)),
            drain_delay: Duration::from_secs(serve.drain_delay_seconds.or(file.drain_delay_seconds).unwrap_or(0)),
            session_timeout: flags.session_seconds.or(file.session_seconds).map(Duration::from_secs),
            retention: flags.retention_hours.or(file.retention_hours).map(retention).transpose()?,
            usage_retention: days("--usage-days", flags.usage_days.or(file.usage_days))?,
            usage_rows: flags.usage_rows.or(file.usage_rows),
            metrics_rows: flags.metrics_rows.or(file.metrics_rows),
            usage_history: days("--usage-history-days", flags.usage_history_days.or(file.usage_history_days))?,
            lease: Duration::from_secs(flags.lease_seconds.or(file.lease_seconds).unwrap_or(LEASE_SECONDS)),
        };
        match config {
            Self { role: Role::Api | Role::Worker, database: Database::Sqlite(_), .. } => {
                Err(ConfigError::NeedsPostgres)
            }
            Self { lease: Duration::ZERO, .. } => Err(ConfigError::Lease),
            Self { rank_timeout: Some(Duration::ZERO), .. } => Err(ConfigError::Period("rank-timeout-seconds")),
            Self { session_timeout: Some(Duration::ZERO), .. } => Err(ConfigError::Period("session-seconds")),
            Self { metrics_rows: Some(0..METRICS_ROWS), .. } => Err(ConfigError::MetricsRows(METRICS_ROWS)),
            Self { database_readers: Some(0), .. } => Err(ConfigError::DatabaseReaders),
            Self { threads: 0, .. } => Err(ConfigError::Threads),
            Self { weights: Some(WeightForm::Bf16), dtype: ComputeType::F32, .. } => Err(ConfigError::Weights),
            Self { weights: Some(form), device: Device::Cuda(_), .. } if form != WeightForm::Bf16 => {
                Err(ConfigError::WeightsOnGpu(form.name()))
            }
            Self { memory_mib: Some(0), .. } => Err(ConfigError::Memory("memory-mib")),
            Self { activation_memory_mib: Some(0), .. } => Err(ConfigError::Memory("activation-memory-mib")),
            Self { kv_memory_mib: Some(0), .. } => Err(ConfigError::Memory("kv-memory-mib")),
            Self { checkpoint_memory_mib: Some(0), .. } => Err(ConfigError::Memory("checkpoint-memory-mib")),
            Self { max_body_bytes: Some(0), .. } => Err(ConfigError::Zero("max-body-bytes")),
            config => Ok(config),
        }
    }
}

#[cfg(test)]
#[path = "config_tests.rs"]
mod tests;
