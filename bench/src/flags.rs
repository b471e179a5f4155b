//! The command line of `trainyard bench`.

use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;

use clap::builder::{PossibleValuesParser, TypedValueParser};
use clap::{Args, ValueEnum};
use trainyard_gpu_runtime::backend::HostKernels;
use trainyard_gpu_runtime::{Dtype, Parallel};

/// Flags of `trainyard bench`.
#[derive(Args, Clone, Debug)]
pub struct BenchFlags {
    /// The base model: a name and its Hugging Face folder or GGUF file. When absent, a tiny one for --http, and for --parallel one of
    /// 55 million parameters that 2, 4 and 8 ranks can share, or a mixture of experts for ep.
    #[arg(long, value_name = "NAME=PATH", required_unless_present_any = ["http", "store", "parallel", "shape"])]
    pub(crate) model: Option<NamedModel>,
    /// A base model of this shape with random weights, which are written to the folder --data-dir once.
    #[arg(long, conflicts_with_all = ["model", "http", "store", "parallel"])]
    pub(crate) shape: Option<RandomShape>,
    /// What to compute on: cpu, or an NVIDIA GPU: cuda or cuda:N.
    #[arg(long, default_value = "cpu", conflicts_with_all = ["http", "store", "parallel", "kernels", "threads"])]
    pub(crate) device: BenchDevice,
    /// Measure these ranks, which share the threads, beside one rank with all of them, such as tp=2.
    #[arg(long, value_name = "LAYOUT", conflicts_with_all = ["http", "store"])]
    pub(crate) parallel: Option<Parallel>,
    /// Compute type.
    #[arg(long, default_value = "bf16", value_parser = dtypes())]
    pub(crate) dtype: Dtype,
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
    /// What to measure, separated by commas.
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
    /// Measure a server through HTTP, with the calls of the Tinker SDK, instead of the engine alone.
    #[arg(long)]
    pub(crate) http: bool,
    /// The server to measure; one is started when absent.
    #[arg(long, requires = "http")]
    pub(crate) url: Option<String>,
    /// The API key for it.
    #[arg(long, default_value = "tml-bench", requires = "http")]
    pub(crate) api_key: String,
    /// Clients that sample at the same time.
    #[arg(long, default_value_t = 64, requires = "http")]
    pub(crate) clients: usize,
    /// Where the server, the tiny model and the SQLite file are kept; a temporary folder when absent. The disk under it
    /// counts.
    #[arg(long, value_name = "DIR")]
    pub(crate) data_dir: Option<PathBuf>,
    /// Measure the scheduler's store instead of the engine, as more and more requests are retained.
    #[arg(long, conflicts_with = "http")]
    pub(crate) store: bool,
    /// An empty PostgreSQL database to measure beside SQLite: `postgres://user@host/name`.
    #[arg(long, value_name = "URL", requires = "store")]
    pub(crate) database_url: Option<String>,
    /// How many requests are retained when the store is measured, in ascending order.
    #[arg(long, value_name = "N", value_delimiter = ',', default_value = "1000,10000,100000", requires = "store")]
    pub(crate) retained: Vec<usize>,
    /// Print one JSON object.
    #[arg(long)]
    pub(crate) json: bool,
}

/// `NAME=PATH`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct NamedModel {
    pub(crate) name: String,
    pub(crate) path: PathBuf,
}

impl FromStr for NamedModel {
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

/// Base models with random weights.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum RandomShape {
    /// A Qwen3 of 150 thousand parameters in f32, for tests.
    Tiny,
    /// That of Qwen3-8B, in bf16: 16 GB.
    #[value(name = "qwen3-8b")]
    Qwen3x8b,
}

/// What the engine computes on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum BenchDevice {
    Cpu,
    /// The GPU of this number.
    Cuda(u16),
}

impl FromStr for BenchDevice {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text.strip_prefix("cuda") {
            None if text == "cpu" => Ok(Self::Cpu),
            Some("") => Ok(Self::Cuda(0)),
            Some(rest) => {
                let number = rest.strip_prefix(':').and_then(|number| number.parse().ok());
                number.map(Self::Cuda).ok_or_else(|| "expected cpu, cuda or cuda:N".to_owned())
            }
            None => Err("expected cpu, cuda or cuda:N".to_owned()),
        }
    }
}

impl fmt::Display for BenchDevice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Cpu => f.write_str("cpu"),
            Self::Cuda(number) => write!(f, "cuda:{number}"),
        }
    }
}

fn dtypes() -> impl TypedValueParser<Value = Dtype> {
    let dtype = |name: String| if name == Dtype::F32.name() { Dtype::F32 } else { Dtype::Bf16 };
    PossibleValuesParser::new([Dtype::Bf16.name(), Dtype::F32.name()]).map(dtype)
}

/// A workload, or all of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Workload {
    /// One LoRA step: forward, backward, AdamW.
    W1,
    /// The same with all parameters trained.
    W1f,
    /// Eight adapters, one sequence and one step each.
    W2,
    /// Sampling: 16 prompts of 64 tokens, 64 new tokens each.
    W3,
    /// Sampling: one prompt of 64 tokens, 128 new tokens.
    W3b1,
    /// Sampling: 128 prompts of 64 tokens, 64 new tokens each.
    W3b128,
    /// Prompt log-probabilities.
    W4,
    /// Everything above but w3b128.
    All,
}

/// What is measured unless something else is asked for, in the order of the report.
pub(crate) const EVERY: [Workload; 6] =
    [Workload::W1, Workload::W1f, Workload::W2, Workload::W3, Workload::W3b1, Workload::W4];

#[cfg(test)]
mod tests {
    use super::BenchDevice;

    #[test]
    fn devices_are_spelled_as_they_are_read() {
        for (text, device) in
            [("cpu", BenchDevice::Cpu), ("cuda:0", BenchDevice::Cuda(0)), ("cuda:3", BenchDevice::Cuda(3))]
        {
            assert_eq!((text.parse(), device.to_string().as_str()), (Ok(device), text));
        }
        assert_eq!("cuda".parse(), Ok(BenchDevice::Cuda(0)));
        for text in ["", "auto", "cuda:", "cuda:-1", "cuda1"] {
            assert!(text.parse::<BenchDevice>().is_err(), "{text}");
        }
    }
}
