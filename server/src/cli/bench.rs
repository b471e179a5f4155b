//! `trainyard bench`: how fast the engine is on this machine, alone or with the API around it.

mod driver;
mod http;
mod peaks;
mod report;
mod system;
mod workload;

use std::error::Error;
use std::io::{self, Write};
use std::path::PathBuf;

use clap::{Args, ValueEnum};
use serde::Serialize;
use trainyard_gpu_runtime::{CpuEngine, Dtype, EngineOptions};
use trainyard_protocol::{BaseModel, Engine};

use crate::config::{ComputeType, NamedPath};
use crate::engine::open;
use driver::Driver;
use peaks::Peaks;
use report::Report;

/// Flags of `trainyard bench`.
#[derive(Args, Clone, Debug)]
pub(super) struct BenchFlags {
    /// The base model: a name and its Hugging Face folder or GGUF file. A tiny one for --http when absent.
    #[arg(long, value_name = "NAME=PATH", required_unless_present = "http")]
    model: Option<NamedPath>,
    /// Compute type.
    #[arg(long, default_value = "bf16")]
    dtype: ComputeType,
    /// Threads; one per processor when absent.
    #[arg(long, value_name = "N", default_value_t = 0, hide_default_value = true)]
    threads: usize,
    /// What to measure, separated by commas.
    #[arg(long, value_delimiter = ',', default_value = "all")]
    workload: Vec<Choice>,
    /// Measured repetitions after one warm-up.
    #[arg(long, value_name = "N", default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..=1000))]
    reps: u32,
    /// Rank of the adapters.
    #[arg(long, default_value_t = 32)]
    rank: u32,
    /// Sequences of w1, w1f and w4.
    #[arg(long, default_value_t = 8)]
    batch: usize,
    /// Tokens per sequence of w1, w1f, w2 and w4.
    #[arg(long, default_value_t = 256)]
    seq: usize,
    /// Sample (w3, w3b1, w4) from the base model instead of from a trained adapter.
    #[arg(long)]
    base: bool,
    /// Also adapt the unembedding.
    #[arg(long)]
    train_unembed: bool,
    /// Measure a server through HTTP, with the calls of the Tinker SDK, instead of the engine alone.
    #[arg(long)]
    http: bool,
    /// The server to measure; one is started when absent.
    #[arg(long, requires = "http")]
    url: Option<String>,
    /// The API key for it.
    #[arg(long, default_value = "tml-bench", requires = "http")]
    api_key: String,
    /// Clients that sample at the same time.
    #[arg(long, default_value_t = 64, requires = "http")]
    clients: usize,
    /// Where the server and the tiny model are kept; a temporary folder when absent. The disk under it counts.
    #[arg(long, value_name = "DIR", requires = "http")]
    data_dir: Option<PathBuf>,
    /// Print one JSON object.
    #[arg(long)]
    json: bool,
}

/// A workload, or all of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Choice {
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
    /// Prompt log-probabilities.
    W4,
    /// Everything above.
    All,
}

const EVERY: [Choice; 6] = [Choice::W1, Choice::W1f, Choice::W2, Choice::W3, Choice::W3b1, Choice::W4];

/// Measures and prints.
pub(super) fn bench(flags: BenchFlags) -> Result<(), Box<dyn Error>> {
    if flags.http {
        let report = http::measure(&flags)?;
        return print(&flags, &report, |out| report.write_table(out));
    }
    let report = measure(&flags)?;
    print(&flags, &report, |out| report.write_table(out))
}

fn print(
    flags: &BenchFlags,
    report: &impl Serialize,
    table: impl FnOnce(&mut io::StdoutLock) -> io::Result<()>,
) -> Result<(), Box<dyn Error>> {
    let mut out = io::stdout().lock();
    if flags.json {
        serde_json::to_writer(&mut out, report)?;
        writeln!(out)?;
    } else {
        table(&mut out)?;
    }
    Ok(())
}

fn measure(flags: &BenchFlags) -> Result<Report, Box<dyn Error>> {
    if flags.batch == 0 || flags.seq == 0 {
        return Err("--batch and --seq must be at least 1".into());
    }
    let path = flags.model.as_ref().ok_or("--model is required")?;
    let peaks = Peaks::measure(dtype(flags), flags.threads);
    let (engine, model) = load_engine(flags, path)?;
    let (isa, threads) = (engine.isa().name(), engine.threads());
    let mut driver = Driver::new(engine, model.clone());
    let choices = if flags.workload.contains(&Choice::All) { &EVERY[..] } else { &flags.workload[..] };
    let workloads = choices
        .iter()
        .map(|choice| workload::measure(&mut driver, *choice, flags, peaks))
        .collect::<Result<Vec<_>, _>>()?;
    Ok(Report {
        model: model.name,
        parameters: model.parameters,
        dtype: flags.dtype.name(),
        isa,
        threads,
        load_average: system::load_average(),
        gemm_gflops: peaks.gemm_gflops,
        read_gb_per_second: peaks.read_gb_per_second,
        workloads,
    })
}

fn dtype(flags: &BenchFlags) -> Dtype {
    match flags.dtype {
        ComputeType::Bf16 => Dtype::Bf16,
        ComputeType::F32 => Dtype::F32,
    }
}

/// An engine that serves one model.
fn load_engine(flags: &BenchFlags, model: &NamedPath) -> Result<(CpuEngine, BaseModel), Box<dyn Error>> {
    let name = &model.name;
    let source = open(&model.path).map_err(|error| format!("--model {name}: {error}"))?;
    let options = EngineOptions { dtype: dtype(flags), threads: flags.threads, ..EngineOptions::default() };
    let engine = CpuEngine::new(vec![(name.clone(), source)], options)?;
    let model = engine.models().into_iter().next().ok_or("the engine serves no model")?;
    Ok((engine, model))
}

#[cfg(test)]
mod tests {
    use std::error::Error;
    use std::path::Path;

    use clap::Parser;

    use super::{BenchFlags, measure};

    #[derive(Parser)]
    struct Program {
        #[command(flatten)]
        flags: BenchFlags,
    }

    fn run(extra: &[&str]) -> Result<super::Report, Box<dyn Error>> {
        let model = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/golden/llama");
        let model = format!("m={}", model.display());
        let args = ["bench", "--model", &model, "--reps", "1", "--rank", "2", "--batch", "2", "--seq", "8"];
        measure(&Program::try_parse_from(args.iter().chain(extra))?.flags)
    }

    #[test]
    fn training_and_scoring_count_every_token() -> Result<(), Box<dyn Error>> {
        let report = run(&["--workload", "w1,w1f,w2,w4", "--threads", "1"])?;
        let counted: Vec<_> = report.workloads.iter().map(|w| (w.name, w.tokens)).collect();
        assert_eq!(counted, [("w1", 16), ("w1f", 16), ("w2", 64), ("w4", 16)]);
        assert!(report.workloads.iter().all(|w| w.tokens_per_second.median > 0.0 && w.seconds.len() == 1));
        assert!(report.workloads.iter().all(|w| w.products.share > 0.0 && w.products.share < 1.0 && w.read.is_none()));
        Ok(())
    }

    #[test]
    fn empty_batches_are_refused() {
        assert!(run(&["--batch", "0"]).is_err());
    }
}
