//! The command line of `trainyard-bench`.

use std::path::PathBuf;

use clap::Parser;
use clap::builder::{PossibleValuesParser, TypedValueParser};
use trainyard_gpu_runtime::backend::HostKernels;
use trainyard_gpu_runtime::blocks::PackedForm;
use trainyard_gpu_runtime::{Dtype, Parallel, WeightStorage};

use crate::choices::{BenchDevice, NamedModel, RandomShape, Workload};

/// Measures training and sampling on this machine.
#[derive(Clone, Debug, Parser)]
#[command(name = "trainyard-bench", version, about)]
pub(crate) struct BenchFlags {
    /// The base model: a name and its Hugging Face folder or GGUF file. When absent, a tiny one for --http, and for --parallel one of
    /// 55 million parameters that 2, 4 and 8 ranks can share, or a mixture of experts for ep.
    #[arg(long, value_name = "NAME=PATH", required_unless_present_any = ["http", "store", "parallel", "shape"])]
    pub(crate) model: Option<NamedModel>,
    /// A base model of this shape with random weights, which are written to the folder --data-dir once.
    #[arg(long, conflicts_with_all = ["model", "http", "store", "parallel"])]
    pub(crate) shape: Option<RandomShape>,
    /// Device to compute on: cpu, or an NVIDIA GPU: cuda or cuda:N.
    #[arg(long, default_value = "cpu", conflicts_with_all = ["http", "store", "parallel", "kernels", "threads"])]
    pub(crate) device: BenchDevice,
    /// Measure these ranks, which share the threads, beside one rank with all of them, such as tp=2.
    #[arg(long, value_name = "LAYOUT", conflicts_with_all = ["http", "store"])]
    pub(crate) parallel: Option<Parallel>,
    /// Compute type: bf16 or f32.
    #[arg(long, default_value = "bf16", value_parser = dtypes())]
    pub(crate) dtype: Dtype,
    /// Form of the model's weights in memory: wide, file to keep the blocks of a GGUF file, or q8 or q4 to pack them.
    #[arg(long, default_value = "wide", value_parser = weights(), conflicts_with_all = ["http", "store", "shape"])]
    pub(crate) weights: WeightStorage,
    /// Threads; one per processor when absent.
    #[arg(long, value_name = "N", default_value_t = 0, hide_default_value = true)]
    pub(crate) threads: usize,
    /// Kernels: amx-bf16, avx512-bf16, avx2 or portable; the best ones that the processor has when absent.
    #[arg(long, value_name = "CLASS")]
    pub(crate) kernels: Option<HostKernels>,
    /// Rows of a training microbatch; as many as suit caches and kernels when absent.
    #[arg(long, value_name = "ROWS", value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) microbatch: Option<u32>,
    /// Memory of a training pass, which saves the activations of as many blocks as fit; as the server divides it when absent.
    #[arg(long, value_name = "MIB", value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) activation_memory_mib: Option<u32>,
    /// Workloads to measure, separated by commas.
    #[arg(long, value_delimiter = ',', default_value = "all")]
    pub(crate) workload: Vec<Workload>,
    /// Measured repetitions after one warm-up.
    #[arg(long, value_name = "N", default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub(crate) reps: u32,
    /// Rank of the adapters.
    #[arg(long, default_value_t = 32)]
    pub(crate) rank: u32,
    /// Sequences of w1, w1f and w4.
    #[arg(long, default_value_t = 8)]
    pub(crate) batch: usize,
    /// Tokens per sequence of w1, w1f, w2 and w4.
    #[arg(long, default_value_t = 256)]
    pub(crate) seq: usize,
    /// New tokens of each sample of w3, w3b1 and w3b128, instead of 64, 128 and 64.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) new_tokens: Option<u32>,
    /// Sample (w3, w3b1, w3b128, w4) from the base model instead of from a trained adapter.
    #[arg(long)]
    pub(crate) base: bool,
    /// Also adapt the unembedding.
    #[arg(long)]
    pub(crate) train_unembed: bool,
    /// Measure a server through HTTP, with the calls of the Tinker SDK, instead of only the engine.
    #[arg(long)]
    pub(crate) http: bool,
    /// The server to measure; one is started when absent.
    #[arg(long, requires = "http")]
    pub(crate) url: Option<String>,
    /// The program of the server to start; the `trainyard` beside this program when absent.
    #[arg(long, value_name = "FILE", requires = "http", conflicts_with = "url")]
    pub(crate) server: Option<PathBuf>,
    /// The API key for it.
    #[arg(long, default_value = "tml-bench", requires = "http")]
    pub(crate) api_key: String,
    /// Clients that sample at the same time.
    #[arg(long, default_value_t = 64, requires = "http")]
    pub(crate) clients: usize,
    /// Folder of the server, the tiny model and the SQLite file; a temporary one when absent. Its disk affects the times.
    #[arg(long, value_name = "DIR")]
    pub(crate) data_dir: Option<PathBuf>,
    /// Measure the scheduler's store instead of the engine, as more and more requests are retained.
    #[arg(long, conflicts_with = "http")]
    pub(crate) store: bool,
    /// An empty PostgreSQL database to measure beside SQLite: `postgres://user@host/name`.
    #[arg(long, value_name = "URL", requires = "store")]
    pub(crate) database_url: Option<String>,
    /// Numbers of retained requests at which the store is measured, in ascending order.
    #[arg(long, value_name = "N", value_delimiter = ',', default_value = "1000,10000,100000", requires = "store")]
    pub(crate) retained: Vec<usize>,
    /// Print one JSON object.
    #[arg(long)]
    pub(crate) json: bool,
}

fn weights() -> impl TypedValueParser<Value = WeightStorage> {
    PossibleValuesParser::new(["wide", "file", "q8", "q4"]).map(|name| match name.as_str() {
        "file" => WeightStorage::Blocks,
        "q8" => WeightStorage::Packed(PackedForm::Q8),
        "q4" => WeightStorage::Packed(PackedForm::Q4),
        _ => WeightStorage::Widened,
    })
}

fn dtypes() -> impl TypedValueParser<Value = Dtype> {
    let dtype = |name: String| if name == Dtype::F32.name() { Dtype::F32 } else { Dtype::Bf16 };
    PossibleValuesParser::new([Dtype::Bf16.name(), Dtype::F32.name()]).map(dtype)
}
