//! The flags, each of which also has a `TRAINYARD_*` variable.

use std::net::SocketAddr;
use std::path::PathBuf;

use clap::{Args, ValueEnum};
use serde::Deserialize;
use trainyard_gpu_runtime::backend::HostKernels;
use trainyard_gpu_runtime::blocks::PackedForm;
use trainyard_gpu_runtime::{Parallel, WeightStorage};

use super::{
    Device, HttpFlags, HubFlags, ImageFlags, NamedPath, QueueFlags, RankFlags, Shapes, SnapshotFlags, TlsFlags,
    VerifiedShare, size,
};

/// Flags of `trainyard serve`.
#[derive(Args, Clone, Debug, Default)]
pub struct ServeFlags {
    // The heading of a group holds for the flags after it too, so those without a heading come first.
    /// Address to listen on. Any but loopback needs a key, in the configuration file or in the store
    /// [default: 127.0.0.1].
    #[arg(long, env = "TRAINYARD_HOST", display_order = 1)]
    pub host: Option<String>,
    /// Port to listen on; 0 picks a free one [default: 8000].
    #[arg(long, env = "TRAINYARD_PORT", display_order = 2)]
    pub port: Option<u16>,
    #[command(flatten)]
    #[expect(missing_docs, reason = "the fields are documented")]
    pub shared: SharedFlags,
    /// Part of the service that this process runs: everything, or only the API, with `trainyard worker` elsewhere
    /// [default: all].
    #[arg(long, env = "TRAINYARD_ROLE", help_heading = "Several processes")]
    pub role: Option<ServeRole>,
    /// Maximum size of a request body, before and after decompression [default: 256MiB].
    #[arg(
        long,
        env = "TRAINYARD_MAX_BODY_BYTES",
        value_name = "SIZE",
        value_parser = size::bytes::<usize>,
        help_heading = "Connections and bodies"
    )]
    pub max_body_bytes: Option<usize>,
    #[command(flatten)]
    #[expect(missing_docs, reason = "the fields are documented")]
    pub http: HttpFlags,
    #[command(flatten)]
    #[expect(missing_docs, reason = "the fields are documented")]
    pub queue: QueueFlags,
    #[command(flatten)]
    #[expect(missing_docs, reason = "the fields are documented")]
    pub hub: HubFlags,
    /// URL at which clients reach the server, for download links; taken from each request by default. Needs keys.
    #[arg(long, env = "TRAINYARD_PUBLIC_URL", value_name = "URL", help_heading = "Access")]
    pub public_url: Option<String>,
    /// Export traces to the OpenTelemetry collector at this base URL (OTLP over HTTP, protobuf); its headers, the
    /// service name and other settings come from the variables OTEL_*.
    #[arg(long, env = "OTEL_EXPORTER_OTLP_ENDPOINT", value_name = "URL", help_heading = "Log, metrics and traces")]
    pub otlp_endpoint: Option<String>,
    /// Seconds of a shutdown in which GET /readyz answers 503 before anything ends, for load balancers to notice
    /// [default: 0].
    #[arg(long, env = "TRAINYARD_DRAIN_DELAY_SECONDS", value_name = "SECONDS", help_heading = "Lifetimes")]
    pub drain_delay_seconds: Option<u64>,
    /// Do not serve the console, the pages at `/` for browsers.
    #[arg(long, env = "TRAINYARD_NO_CONSOLE", help_heading = "Access")]
    pub no_console: bool,
    /// Treat every caller that comes through a proxy or --public-url as the tenant `local` while no keys are
    /// configured.
    #[arg(long, env = "TRAINYARD_INSECURE_NO_AUTH", help_heading = "Access")]
    pub insecure_no_auth: bool,
}

/// Flags of `trainyard worker`.
#[derive(Args, Clone, Debug, Default)]
pub struct WorkerFlags {
    #[command(flatten)]
    #[expect(missing_docs, reason = "the fields are documented")]
    pub shared: SharedFlags,
    /// Address of GET /metrics, which is not served by default.
    #[arg(long, env = "TRAINYARD_METRICS_ADDR", value_name = "IP:PORT", help_heading = "Log, metrics and traces")]
    pub metrics_addr: Option<SocketAddr>,
    #[command(flatten)]
    #[expect(missing_docs, reason = "the fields are documented")]
    pub rank: RankFlags,
}

/// Flags of `trainyard doctor`.
#[derive(Args, Clone, Debug, Default)]
pub struct DoctorFlags {
    /// Print a JSON document for programs.
    #[arg(long, display_order = 900)]
    pub json: bool,
    /// Sizes of the device's checks with the shapes of real models: full ones if it is fast enough.
    #[arg(long, value_name = "SIZES", value_enum, default_value_t, display_order = 901)]
    pub shapes: Shapes,
    #[command(flatten)]
    #[expect(missing_docs, reason = "the fields are documented")]
    pub serve: ServeFlags,
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
    /// A base model: the name that clients use, and its Hugging Face folder, its GGUF file or its id in the hub's
    /// cache. Without NAME=, the name is that of the folder or file. May be repeated.
    #[arg(long = "model", env = "TRAINYARD_MODEL", value_name = "NAME=PATH", display_order = 0)]
    pub models: Vec<NamedPath>,
    /// Folder of the store, payloads and checkpoints [default: data].
    #[arg(long, env = "TRAINYARD_DATA_DIR", value_name = "DIR", display_order = 3)]
    pub data_dir: Option<PathBuf>,
    /// The store, sqlite://PATH or postgres://USER@HOST/NAME; DIR/trainyard.db by default.
    #[arg(long, env = "TRAINYARD_DATABASE_URL", value_name = "URL", help_heading = "Storage")]
    pub database_url: Option<String>,
    /// Connections of this process that read a PostgreSQL database, 8 by default; two more write and listen.
    #[arg(long, env = "TRAINYARD_DATABASE_READERS", value_name = "N", help_heading = "Storage")]
    pub database_readers: Option<usize>,
    /// Payloads, checkpoints and snapshots: a folder that all processes share, or s3://BUCKET/PREFIX; DIR by
    /// default.
    #[arg(long, env = "TRAINYARD_STORAGE", value_name = "URL", help_heading = "Storage")]
    pub storage: Option<String>,
    /// Capacity in DIR for copies of objects in s3:// [default: 20GiB].
    #[arg(
        long,
        visible_alias = "storage-cache",
        env = "TRAINYARD_STORAGE_CACHE_MIB",
        value_name = "SIZE",
        value_parser = size::mebibytes::<u64>,
        help_heading = "Storage"
    )]
    pub storage_cache_mib: Option<u64>,
    /// Disk space that is reserved for accepted work: with less of it free, saves, new runs and large requests are
    /// refused; 0 refuses nothing. By default 1GiB, but at most a twentieth of the disk.
    #[arg(
        long,
        visible_alias = "disk-reserve",
        env = "TRAINYARD_DISK_RESERVE_MIB",
        value_name = "SIZE",
        value_parser = size::mebibytes::<u64>,
        help_heading = "Storage"
    )]
    pub disk_reserve_mib: Option<u64>,
    /// Type of GEMM inputs [default: bf16].
    #[arg(long, env = "TRAINYARD_DTYPE", help_heading = "Compute")]
    pub dtype: Option<ComputeType>,
    /// Form in which the weights of base models are held: bf16 converts them to bf16; file keeps the blocks of a GGUF
    /// file (Q8_0, Q4_0, Q4_1, Q5_0, Q5_1, Q4_K, Q5_K, Q6_K) in memory, with the same results; q8 and q4 also pack
    /// other weights, to 8 and 4 bits, which changes them. With file, q8 and q4, runs train adapters only; they require
    /// --device cpu and a layout in which each rank holds a whole model [default: the type of --dtype].
    #[arg(long, env = "TRAINYARD_WEIGHTS", help_heading = "Compute")]
    pub weights: Option<WeightForm>,
    /// Threads of the engine; one per processor by default.
    #[arg(long, env = "TRAINYARD_THREADS", value_name = "N", help_heading = "Compute")]
    pub threads: Option<usize>,
    /// Kernels of the engine: amx-bf16, avx512-bf16, avx2 or portable. By default, the best that the processor
    /// supports; choose others to continue runs that were computed with them.
    #[arg(long, env = "TRAINYARD_KERNELS", value_name = "CLASS", help_heading = "Compute")]
    pub kernels: Option<HostKernels>,
    /// Device that the engine computes on: cpu; cuda or cuda:N, NVIDIA GPUs from number 0 or N on, one for each rank
    /// of the process; cuda:N,M,…, exactly these GPUs, as many as ranks; auto, GPUs if enough usable ones exist, else
    /// the processor [default: cpu].
    #[arg(long, env = "TRAINYARD_DEVICE", value_name = "DEVICE")]
    pub device: Option<Device>,
    /// File of cuBLASLt 12 or 13 that GPUs compute with; by default, the first that works of those that the dynamic linker
    /// finds, of Python's packages nvidia-cublas, and of /usr/local/cuda.
    #[arg(long, env = "TRAINYARD_CUBLASLT", value_name = "PATH", help_heading = "Compute")]
    pub cublaslt: Option<PathBuf>,
    /// Layout of the ranks, such as tp=2 to share the models, ep=2 to share their experts, and dp=2 or tp=2,dp=2 for
    /// replicas: as many threads of this process, each with a part of the cores. With zero=3, replicas divide the
    /// parameters of runs that train all of them [default: tp=1].
    #[arg(long, env = "TRAINYARD_PARALLEL", value_name = "LAYOUT", help_heading = "Compute")]
    pub parallel: Option<Parallel>,
    /// Maximum time that a rank waits for its GPU, whose work may wait for other ranks; afterwards a rank counts as
    /// lost, all ranks end, and the worker is restarted. Only for several ranks on GPUs [default: 120].
    #[arg(long, env = "TRAINYARD_RANK_TIMEOUT_SECONDS", value_name = "SECONDS", help_heading = "Compute")]
    pub rank_timeout_seconds: Option<u64>,
    /// Treatment of runs that were computed with the same weights, but with other kernels or another type, while no
    /// worker has these numerics: wait, or continue, which GET training_runs reports [default: wait].
    #[arg(long, env = "TRAINYARD_NUMERICS_MISMATCH", help_heading = "Compute")]
    pub numerics_mismatch: Option<NumericsMismatch>,
    /// Share of samples that a training pass computes again for verification, such as 0.1%: their log-probabilities
    /// must have equal bits; otherwise, the log and `trainyard_differing_samples_total` report it. Only on the
    /// processor [default: 0].
    #[arg(long, env = "TRAINYARD_VERIFY_SAMPLES", value_name = "SHARE", help_heading = "Compute")]
    pub verify_samples: Option<VerifiedShare>,
    /// Memory of the engine: models, runs, activations, keys and values, checkpoints. A run that does not fit waits.
    /// A number of MiB, or with a unit, such as 12GiB; by default four fifths of the memory of the machine or the
    /// container, and on GPUs 92 %, but 1.5 GiB less than what is free.
    #[arg(
        long,
        visible_alias = "memory",
        env = "TRAINYARD_MEMORY_MIB",
        value_name = "SIZE",
        value_parser = size::mebibytes::<usize>
    )]
    pub memory_mib: Option<usize>,
    /// Memory that a training pass may hold for its backward pass; longer examples recompute activations
    /// [default: 1GiB; on GPUs as models leave it].
    #[arg(
        long,
        visible_alias = "activation-memory",
        env = "TRAINYARD_ACTIVATION_MEMORY_MIB",
        value_name = "SIZE",
        value_parser = size::mebibytes::<usize>,
        help_heading = "Memory"
    )]
    pub activation_memory_mib: Option<usize>,
    /// Memory for keys and values of samples and their prefix cache; a sample that needs more computes some of its
    /// sequences at a time [default: 2GiB; on GPUs as models leave it].
    #[arg(
        long,
        visible_alias = "kv-memory",
        env = "TRAINYARD_KV_MEMORY_MIB",
        value_name = "SIZE",
        value_parser = size::mebibytes::<usize>,
        help_heading = "Memory"
    )]
    pub kv_memory_mib: Option<usize>,
    /// Memory for sampler checkpoints that were sampled from, so that the next sample does not reload them [default:
    /// 1GiB].
    #[arg(
        long,
        visible_alias = "checkpoint-memory",
        env = "TRAINYARD_CHECKPOINT_MEMORY_MIB",
        value_name = "SIZE",
        value_parser = size::mebibytes::<usize>,
        help_heading = "Memory"
    )]
    pub checkpoint_memory_mib: Option<usize>,
    /// Filter of the log: error, warn, info, debug or trace, or a filter such as `info,trainyard_scheduler=debug`;
    /// RUST_LOG if it is not set [default: info].
    #[arg(long, env = "TRAINYARD_LOG", value_name = "LEVEL")]
    pub log_level: Option<String>,
    /// Configuration file; trainyard.toml in the working directory by default.
    #[arg(long, env = "TRAINYARD_CONFIG", value_name = "FILE")]
    pub config: Option<PathBuf>,
    /// Form of the log on standard error [default: text].
    #[arg(long, env = "TRAINYARD_LOG_FORMAT", help_heading = "Log, metrics and traces")]
    pub log_format: Option<LogFormat>,
    /// Tokens of executed work after which a run is saved; a recovery replays at most this many [default: 200000].
    #[arg(long, env = "TRAINYARD_SNAPSHOT_TOKENS", value_name = "TOKENS", help_heading = "Lifetimes")]
    pub snapshot_tokens: Option<u64>,
    #[command(flatten)]
    #[expect(missing_docs, reason = "the fields are documented")]
    pub images: ImageFlags,
    #[command(flatten)]
    #[expect(missing_docs, reason = "the fields are documented")]
    pub snapshots: SnapshotFlags,
    /// Seconds without requests after which a run is saved and unloaded until its next request [default: 900].
    #[arg(long, env = "TRAINYARD_IDLE_SECONDS", value_name = "SECONDS", help_heading = "Lifetimes")]
    pub idle_seconds: Option<u64>,
    /// Seconds that a shutdown waits for executing requests to finish, and again for runs to be saved [default: 20].
    #[arg(long, env = "TRAINYARD_DRAIN_SECONDS", value_name = "SECONDS", help_heading = "Lifetimes")]
    pub drain_seconds: Option<u64>,
    /// Seconds without a heartbeat after which a session expires: its waiting requests are cancelled and its runs are
    /// saved [default: 300].
    #[arg(long, env = "TRAINYARD_SESSION_SECONDS", value_name = "SECONDS", help_heading = "Lifetimes")]
    pub session_seconds: Option<u64>,
    /// Hours for which the result of a request can be read after the request ended, and in which an expired session can
    /// be revived. Fractions are allowed. Must be the same for all processes on a database [default: 24].
    #[arg(long, env = "TRAINYARD_RETENTION_HOURS", value_name = "HOURS", help_heading = "Lifetimes")]
    pub retention_hours: Option<f64>,
    /// Days for which the usage of single requests is kept; its sums by hour remain [default: 35].
    #[arg(long, env = "TRAINYARD_USAGE_DAYS", value_name = "DAYS", help_heading = "Lifetimes")]
    pub usage_days: Option<u32>,
    /// Maximum number of rows of usage of single requests, over all tenants; when it is exceeded, the oldest rows of
    /// the tenants with most rows are deleted [default: 4000000].
    #[arg(long, env = "TRAINYARD_USAGE_ROWS", value_name = "ROWS", help_heading = "Lifetimes")]
    pub usage_rows: Option<u64>,
    /// Maximum number of requests of a run whose metrics are kept; before it is exceeded, older ones are thinned out,
    /// and the newest quarter stays complete. At least 10000 [default: 1000000].
    #[arg(long, env = "TRAINYARD_METRICS_ROWS", value_name = "REQUESTS", help_heading = "Lifetimes")]
    pub metrics_rows: Option<u64>,
    /// Days for which usage by hour, and the storage of deleted checkpoints, are kept [default: 400].
    #[arg(long, env = "TRAINYARD_USAGE_HISTORY_DAYS", value_name = "DAYS", help_heading = "Lifetimes")]
    pub usage_history_days: Option<u32>,
    /// Bring the schema of a PostgreSQL database up to date before the start, as `trainyard migrate` does.
    #[arg(long, env = "TRAINYARD_MIGRATE", help_heading = "Storage")]
    pub migrate: bool,
    /// Seconds without a heartbeat after which a worker loses its leases, and others get its runs [default: 15].
    #[arg(long, env = "TRAINYARD_LEASE_SECONDS", value_name = "SECONDS", help_heading = "Several processes")]
    pub lease_seconds: Option<u64>,
    /// Guards GET /metrics: scrapers send it as `Authorization: Bearer TOKEN`. Without it the metrics are open on
    /// loopback and off elsewhere.
    #[arg(
        long,
        env = "TRAINYARD_METRICS_TOKEN",
        value_name = "TOKEN",
        hide_env_values = true,
        help_heading = "Log, metrics and traces"
    )]
    pub metrics_token: Option<String>,
    #[command(flatten)]
    #[expect(missing_docs, reason = "the fields are documented")]
    pub tls: TlsFlags,
}

/// The part of the service that a server runs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ServeRole {
    /// The API, and the execution of requests.
    #[default]
    All,
    /// Only the API, without the execution of requests.
    Api,
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
    /// Returns the value of the flag.
    pub fn name(self) -> &'static str {
        match self {
            Self::Bf16 => "bf16",
            Self::F32 => "f32",
        }
    }
}

/// Form in which the weights of base models are held.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum WeightForm {
    /// Each weight converted to bf16.
    Bf16,
    /// Blocks of the GGUF file, unchanged.
    File,
    /// Weights packed into blocks of 8 bits (Q8_0).
    Q8,
    /// Weights packed into blocks of 4 bits (Q4_0); embedding and unembedding in Q8_0.
    Q4,
}

impl WeightForm {
    /// Returns the value of the flag.
    pub fn name(self) -> &'static str {
        match self {
            Self::Bf16 => "bf16",
            Self::File => "file",
            Self::Q8 => "q8",
            Self::Q4 => "q4",
        }
    }

    /// The form in which an engine holds weights.
    pub(crate) fn storage(self) -> WeightStorage {
        match self {
            Self::Bf16 => WeightStorage::Widened,
            Self::File => WeightStorage::Blocks,
            Self::Q8 => WeightStorage::Packed(PackedForm::Q8),
            Self::Q4 => WeightStorage::Packed(PackedForm::Q4),
        }
    }
}

/// The treatment of runs that were computed with other kernels or another type.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum NumericsMismatch {
    /// The runs wait for a worker with their numerics.
    #[default]
    Wait,
    /// The runs are continued.
    Continue,
}

/// Form of the log.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum LogFormat {
    /// Lines of text; short ones without ids on a terminal.
    #[default]
    Text,
    /// Complete lines of text, also on a terminal.
    Full,
    /// One JSON object per line.
    Json,
}
