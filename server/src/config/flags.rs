//! The flags, each of which also has a `TRAINYARD_*` variable.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::str::FromStr;

use clap::{Args, ValueEnum};
use serde::Deserialize;
use trainyard_gpu_runtime::Parallel;
use trainyard_gpu_runtime::backend::HostKernels;

use super::{Device, HttpFlags, HubFlags, QueueFlags, RankFlags, SnapshotFlags, TlsFlags};

/// Flags of `trainyard serve`.
#[derive(Args, Clone, Debug, Default)]
pub struct ServeFlags {
    #[command(flatten)]
    #[expect(missing_docs, reason = "the fields have theirs")]
    pub shared: SharedFlags,
    /// Part of the service that this process runs: everything, or only the API, with `trainyard worker` elsewhere
    /// [default: all].
    #[arg(long, env = "TRAINYARD_ROLE")]
    pub role: Option<ServeRole>,
    /// Address to listen on. Any but loopback needs keys in the configuration file
    /// [default: 127.0.0.1].
    #[arg(long, env = "TRAINYARD_HOST")]
    pub host: Option<String>,
    /// Port to listen on; 0 picks a free one [default: 8000].
    #[arg(long, env = "TRAINYARD_PORT")]
    pub port: Option<u16>,
    /// Largest request body in bytes, before and after decompression [default: 268435456].
    #[arg(long, env = "TRAINYARD_MAX_BODY_BYTES", value_name = "BYTES")]
    pub max_body_bytes: Option<usize>,
    #[command(flatten)]
    #[expect(missing_docs, reason = "the fields have theirs")]
    pub http: HttpFlags,
    #[command(flatten)]
    #[expect(missing_docs, reason = "the fields have theirs")]
    pub queue: QueueFlags,
    #[command(flatten)]
    #[expect(missing_docs, reason = "the fields have theirs")]
    pub hub: HubFlags,
    /// URL at which clients reach the server, for download links; taken from each request when absent. Needs keys.
    #[arg(long, env = "TRAINYARD_PUBLIC_URL", value_name = "URL")]
    pub public_url: Option<String>,
    /// Export traces to the OpenTelemetry collector at this base URL (OTLP over HTTP, protobuf); its headers, the name of the
    /// service and other settings come from the variables OTEL_*.
    #[arg(long, env = "OTEL_EXPORTER_OTLP_ENDPOINT", value_name = "URL")]
    pub otlp_endpoint: Option<String>,
    /// Seconds of a shutdown in which GET /readyz answers 503 before anything ends, for load balancers to notice
    /// [default: 0].
    #[arg(long, env = "TRAINYARD_DRAIN_DELAY_SECONDS", value_name = "SECONDS")]
    pub drain_delay_seconds: Option<u64>,
    /// Do not serve the console, the pages at `/` for browsers.
    #[arg(long, env = "TRAINYARD_NO_CONSOLE")]
    pub no_console: bool,
    /// Serve everybody who comes through a proxy or --public-url as the tenant `local` while no keys are configured.
    #[arg(long, env = "TRAINYARD_INSECURE_NO_AUTH")]
    pub insecure_no_auth: bool,
}

/// Flags of `trainyard worker`.
#[derive(Args, Clone, Debug, Default)]
pub struct WorkerFlags {
    #[command(flatten)]
    #[expect(missing_docs, reason = "the fields have theirs")]
    pub shared: SharedFlags,
    /// Address of GET /metrics; there is none when absent.
    #[arg(long, env = "TRAINYARD_METRICS_ADDR", value_name = "IP:PORT")]
    pub metrics_addr: Option<SocketAddr>,
    #[command(flatten)]
    #[expect(missing_docs, reason = "the fields have theirs")]
    pub rank: RankFlags,
}

/// Flags of `trainyard doctor`.
#[derive(Args, Clone, Debug, Default)]
pub struct DoctorFlags {
    #[command(flatten)]
    #[expect(missing_docs, reason = "the fields have theirs")]
    pub serve: ServeFlags,
    /// Print a JSON document for programs.
    #[arg(long)]
    pub json: bool,
}

/// Flags of `trainyard migrate`.
#[derive(Args, Clone, Debug, Default)]
pub struct MigrateFlags {
    /// The store, sqlite://PATH or postgres://USER@HOST/NAME.
    #[arg(long, env = "TRAINYARD_DATABASE_URL", value_name = "URL")]
    pub database_url: String,
}

/// Flags of the processes that serve or execute.
#[derive(Args, Clone, Debug, Default)]
pub struct SharedFlags {
    /// A base model: its name and its Hugging Face folder or GGUF file. May be repeated.
    #[arg(long = "model", env = "TRAINYARD_MODEL", value_name = "NAME=PATH")]
    pub models: Vec<NamedPath>,
    /// Folder of the store, payloads and checkpoints [default: data].
    #[arg(long, env = "TRAINYARD_DATA_DIR", value_name = "DIR")]
    pub data_dir: Option<PathBuf>,
    /// The store, sqlite://PATH or postgres://USER@HOST/NAME; DIR/trainyard.db when absent.
    #[arg(long, env = "TRAINYARD_DATABASE_URL", value_name = "URL")]
    pub database_url: Option<String>,
    /// Connections of this process that read a PostgreSQL database, 8 when absent; two more write and listen.
    #[arg(long, env = "TRAINYARD_DATABASE_READERS", value_name = "N")]
    pub database_readers: Option<usize>,
    /// Payloads, checkpoints and snapshots: a folder that all processes share, or s3://BUCKET/PREFIX; DIR when
    /// absent.
    #[arg(long, env = "TRAINYARD_STORAGE", value_name = "URL")]
    pub storage: Option<String>,
    /// Capacity in DIR for copies of objects in s3:// [default: 20480].
    #[arg(long, env = "TRAINYARD_STORAGE_CACHE_MIB", value_name = "MIB")]
    pub storage_cache_mib: Option<u64>,
    /// Disk space that is reserved for accepted work: with less of it free, saves, new runs and large requests are
    /// refused; 0 refuses nothing. 1024, but at most a twentieth of the disk, when absent.
    #[arg(long, env = "TRAINYARD_DISK_RESERVE_MIB", value_name = "MIB")]
    pub disk_reserve_mib: Option<u64>,
    /// Type of GEMM inputs [default: bf16].
    #[arg(long, env = "TRAINYARD_DTYPE")]
    pub dtype: Option<ComputeType>,
    /// Threads of the engine; one per processor when absent.
    #[arg(long, env = "TRAINYARD_THREADS", value_name = "N")]
    pub threads: Option<usize>,
    /// Kernels of the engine: amx-bf16, avx512-bf16, avx2 or portable. The best ones that the processor has when absent; older
    /// ones continue runs that were computed with them.
    #[arg(long, env = "TRAINYARD_KERNELS", value_name = "CLASS")]
    pub kernels: Option<HostKernels>,
    /// Device that the engine computes on: cpu; cuda or cuda:N, NVIDIA GPUs from number 0 or N on, one for each rank
    /// of the process; cuda:N,M,…, exactly these GPUs, as many as ranks; auto, GPUs if enough usable ones exist, else
    /// the processor [default: cpu].
    #[arg(long, env = "TRAINYARD_DEVICE", value_name = "DEVICE")]
    pub device: Option<Device>,
    /// Layout of the ranks, such as tp=2 to share the models, ep=2 to share their experts, and dp=2 or tp=2,dp=2 for
    /// replicas: as many threads of this process, each with a part of the cores. With zero=3, replicas divide the
    /// parameters of runs that train all of them [default: tp=1].
    #[arg(long, env = "TRAINYARD_PARALLEL", value_name = "LAYOUT")]
    pub parallel: Option<Parallel>,
    /// Longest wait of a rank for its GPU, whose work may wait for other ranks; then a rank counts as missing, all
    /// ranks end, and the worker is started again. Only for several ranks on GPUs [default: 120].
    #[arg(long, env = "TRAINYARD_RANK_TIMEOUT_SECONDS", value_name = "SECONDS")]
    pub rank_timeout_seconds: Option<u64>,
    /// Treatment of runs that were computed with the same weights, but with other kernels or another type, while no
    /// worker computes like that: they wait, or are continued, which GET training_runs reports [default: wait].
    #[arg(long, env = "TRAINYARD_NUMERICS_MISMATCH")]
    pub numerics_mismatch: Option<NumericsMismatch>,
    /// Memory of the engine: models, runs, activations, keys and values, checkpoints. A run that does not fit waits.
    /// Four fifths of the memory of the machine or the container when absent.
    #[arg(long, env = "TRAINYARD_MEMORY_MIB", value_name = "MIB")]
    pub memory_mib: Option<usize>,
    /// Memory that a training pass may hold for its backward pass; longer examples recompute activations
    /// [default: 1024; on GPUs as models leave it].
    #[arg(long, env = "TRAINYARD_ACTIVATION_MEMORY_MIB", value_name = "MIB")]
    pub activation_memory_mib: Option<usize>,
    /// Memory for keys and values of samples and their prefix cache; a sample that needs more computes some of its
    /// sequences at a time [default: 2048; on GPUs as models leave it].
    #[arg(long, env = "TRAINYARD_KV_MEMORY_MIB", value_name = "MIB")]
    pub kv_memory_mib: Option<usize>,
    /// Memory for sampler checkpoints that were sampled from, so that the next sample does not reload them [default:
    /// 1024].
    #[arg(long, env = "TRAINYARD_CHECKPOINT_MEMORY_MIB", value_name = "MIB")]
    pub checkpoint_memory_mib: Option<usize>,
    /// Filter of the log: error, warn, info, debug or trace, or a filter such as `info,trainyard_scheduler=debug`;
    /// RUST_LOG when absent [default: info].
    #[arg(long, env = "TRAINYARD_LOG", value_name = "LEVEL")]
    pub log_level: Option<String>,
    /// Form of the log on standard error [default: text].
    #[arg(long, env = "TRAINYARD_LOG_FORMAT")]
    pub log_format: Option<LogFormat>,
    /// Tokens of executed work after which a run is saved; a recovery replays no more than these [default: 200000].
    #[arg(long, env = "TRAINYARD_SNAPSHOT_TOKENS", value_name = "TOKENS")]
    pub snapshot_tokens: Option<u64>,
    #[command(flatten)]
    #[expect(missing_docs, reason = "the fields have theirs")]
    pub snapshots: SnapshotFlags,
    /// Seconds without requests after which a run is saved and unloaded until its next request [default: 900].
    #[arg(long, env = "TRAINYARD_IDLE_SECONDS", value_name = "SECONDS")]
    pub idle_seconds: Option<u64>,
    /// Seconds that a shutdown waits for executing requests to finish, and again for runs to be saved [default: 20].
    #[arg(long, env = "TRAINYARD_DRAIN_SECONDS", value_name = "SECONDS")]
    pub drain_seconds: Option<u64>,
    /// Seconds without a heartbeat after which a session expires: its waiting requests are cancelled and its runs are
    /// saved [default: 300].
    #[arg(long, env = "TRAINYARD_SESSION_SECONDS", value_name = "SECONDS")]
    pub session_seconds: Option<u64>,
    /// Hours after a request ended in which its result can be read, and in which expired sessions may come back. A
    /// fraction is allowed. The same for all processes on a database [default: 24].
    #[arg(long, env = "TRAINYARD_RETENTION_HOURS", value_name = "HOURS")]
    pub retention_hours: Option<f64>,
    /// Bring the schema of a PostgreSQL database up to date before the start, as `trainyard migrate` does.
    #[arg(long, env = "TRAINYARD_MIGRATE")]
    pub migrate: bool,
    /// Seconds without a heartbeat after which a worker loses its leases, and others get its runs [default: 15].
    #[arg(long, env = "TRAINYARD_LEASE_SECONDS", value_name = "SECONDS")]
    pub lease_seconds: Option<u64>,
    /// Guards GET /metrics: scrapers send it as `Authorization: Bearer TOKEN`. Without it the metrics are open on
    /// loopback and off elsewhere.
    #[arg(long, env = "TRAINYARD_METRICS_TOKEN", value_name = "TOKEN", hide_env_values = true)]
    pub metrics_token: Option<String>,
    #[command(flatten)]
    #[expect(missing_docs, reason = "the fields have theirs")]
    pub tls: TlsFlags,
    /// Configuration file; trainyard.toml in the working directory when absent.
    #[arg(long, env = "TRAINYARD_CONFIG", value_name = "FILE")]
    pub config: Option<PathBuf>,
}

/// The part of the service that a server runs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ServeRole {
    /// The API, and the execution of requests.
    #[default]
    All,
    /// Only the API.
    Api,
}

/// A model in the form `NAME=PATH`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NamedPath {
    /// The name that clients use.
    pub name: String,
    /// A folder or a file.
    pub path: PathBuf,
}

impl FromStr for NamedPath {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text.split_once('=') {
            Some((name, path)) if !name.is_empty() && !path.is_empty() => {
                Ok(Self { name: name.to_owned(), path: PathBuf::from(path) })
            }
            _ => Err("expected NAME=PATH".to_owned()),
        }
    }
}

/// Type of GEMM inputs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ComputeType {
    /// 16-bit inputs, 32-bit sums.
    #[default]
    Bf16,
    /// 32-bit inputs and sums.
    F32,
}

impl ComputeType {
    /// The value of the flag.
    pub fn name(self) -> &'static str {
        match self {
            Self::Bf16 => "bf16",
            Self::F32 => "f32",
        }
    }
}

/// The treatment of runs that were computed with other kernels or another type.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum NumericsMismatch {
    /// The runs wait for a worker that computes alike.
    #[default]
    Wait,
    /// The runs are continued.
    Continue,
}

/// Form of the log.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum LogFormat {
    /// Lines for people.
    #[default]
    Text,
    /// One JSON object per line.
    Json,
}
