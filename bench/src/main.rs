//! `trainyard-bench`: measures the engine on this machine, with or without the API around it, and the store.

mod choices;
mod driver;
mod engine;
mod flags;
mod folder;
mod http;
mod measured;
mod report;
mod store;
mod synthetic;
mod system;
mod workload;

use std::error::Error;
use std::fs;
use std::io::{self, Write};
use std::process::ExitCode;

use clap::Parser;
use serde::Serialize;
use trainyard_gpu_runtime::Parallel;
use trainyard_gpu_runtime::backend::cpu::Peaks;

use choices::{BenchDevice, EVERY, NamedModel, RandomShape, Workload};
use driver::Driver;
use engine::{kernels, load_engine};
use flags::BenchFlags;
use folder::BenchFolder;
use measured::Overhead;
use report::Report;

fn main() -> ExitCode {
    match bench(&BenchFlags::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            // Nothing more can be done when standard error is gone.
            let _ = writeln!(io::stderr(), "trainyard-bench: {error}");
            ExitCode::FAILURE
        }
    }
}

/// Runs the measurements and prints the report.
///
/// # Errors
/// A model can't be opened, a server can't be started or reached, or standard output is closed.
fn bench(flags: &BenchFlags) -> Result<(), Box<dyn Error>> {
    if flags.http {
        let report = http::measure(flags)?;
        return print(flags, &report, |out| report.write_table(out));
    }
    if flags.store {
        let report = store::measure(flags)?;
        return print(flags, &report, |out| report.write_table(out));
    }
    let report = measure(flags)?;
    print(flags, &report, |out| report.write_table(out))
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
    let made;
    let model = match (&flags.model, flags.shape, flags.parallel) {
        (Some(model), ..) => model,
        (None, Some(shape), _) => {
            made = random_model(flags, shape)?;
            &made.0
        }
        (None, None, Some(layout)) => {
            made = shared_model(flags, layout)?;
            &made.0
        }
        (None, None, None) => return Err("--model is required".into()),
    };
    let cpu_peaks = match flags.device {
        BenchDevice::Cpu => Some(Peaks::measure(kernels(flags)?, flags.dtype, flags.threads)),
        BenchDevice::Cuda(_) => None,
    };
    let mut drivers = Vec::new();
    for layout in [Some(Parallel::default()), flags.parallel].into_iter().flatten() {
        if drivers.is_empty() || layout.world() > 1 {
            let (engine, described) = load_engine(flags, model, layout)?;
            drivers.push((engine, described, layout));
        }
    }
    let (engine, model, _) = drivers.first().ok_or("no engine was loaded")?;
    let (peaks, model) = (engine.peaks(cpu_peaks)?, model.clone());
    let (isa, threads) = (engine.device().kernels, engine.device().threads);
    let chosen =
        flags.microbatch.map_or_else(String::new, |rows| format!("; microbatches of {rows} rows are measured"));
    let blocking = engine.describe(flags)? + &chosen;
    let mut drivers: Vec<_> =
        drivers.into_iter().map(|(engine, model, layout)| Driver::new(engine, model, layout)).collect();
    let choices = if flags.workload.contains(&Workload::All) { &EVERY[..] } else { &flags.workload[..] };
    let (mut workloads, mut overheads) = (Vec::new(), Vec::new());
    for choice in choices {
        let measured = workload::measure(&mut drivers, *choice, flags, peaks)?;
        if let [alone, ranks] = &measured[..] {
            overheads.push(Overhead::of(alone, ranks));
        }
        workloads.extend(measured);
    }
    Ok(Report {
        model: model.name,
        parameters: model.parameters,
        dtype: flags.dtype.name(),
        device: flags.device.to_string(),
        isa,
        blocking,
        threads,
        load_average: system::load_average(),
        gemm_gflops: peaks.gemm_gflops,
        read_gb_per_second: peaks.read_gb_per_second,
        workloads,
        overheads,
    })
}

/// Writes a model with random weights to the folder asked for, where it stays, or to a temporary one.
fn random_model(flags: &BenchFlags, shape: RandomShape) -> Result<(NamedModel, BenchFolder), Box<dyn Error>> {
    let (shape, file) = match shape {
        RandomShape::Tiny => (&synthetic::TINY_QWEN3, "random-tiny"),
        RandomShape::Qwen3x8b => (&synthetic::QWEN3_8B, "random-qwen3-8b"),
        RandomShape::Hybrid135m => (&synthetic::HYBRID_135M, "random-hybrid-135m"),
    };
    let partial = format!("{file}.partial");
    let folder = BenchFolder::new(flags.data_dir.as_deref(), &partial)?;
    let (path, partial) = (folder.path.join(file), folder.path.join(partial));
    if !path.exists() {
        synthetic::write(shape, &partial)?;
        fs::rename(&partial, &path)?;
    }
    Ok((NamedModel { name: shape.name.to_owned(), path }, folder))
}

/// Writes a model that ranks can share to a temporary folder.
fn shared_model(flags: &BenchFlags, layout: Parallel) -> Result<(NamedModel, BenchFolder), Box<dyn Error>> {
    let shape = if layout.ep() > 1 { &synthetic::SHARED_EXPERTS } else { &synthetic::SHARED };
    let folder = BenchFolder::new(flags.data_dir.as_deref(), "shared")?;
    let path = folder.path.join("shared");
    synthetic::write(shape, &path)?;
    Ok((NamedModel { name: shape.name.to_owned(), path }, folder))
}

#[cfg(test)]
mod tests {
    use std::error::Error;
    use std::path::Path;

    use clap::Parser;
    use trainyard_gpu_runtime::backend::HostKernels;

    use super::{BenchFlags, measure};

    fn run(extra: &[&str]) -> Result<super::Report, Box<dyn Error>> {
        let model = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/golden/llama");
        let model = format!("m={}", model.display());
        let args = ["bench", "--model", &model, "--reps", "1", "--rank", "2", "--batch", "2", "--seq", "8"];
        measure(&BenchFlags::try_parse_from(args.iter().chain(extra))?)
    }

    #[test]
    fn training_and_scoring_count_every_token() -> Result<(), Box<dyn Error>> {
        let report = run(&["--workload", "w1,w1f,w2,w4", "--threads", "1"])?;
        let counted: Vec<_> = report.workloads.iter().map(|w| (w.name, w.tokens)).collect();
        assert_eq!(counted, [("w1", 16), ("w1f", 16), ("w2", 64), ("w4", 16)]);
        assert!(report.workloads.iter().all(|w| w.tokens_per_second.median > 0.0 && w.seconds.len() == 1));
        let within =
            |w: &super::measured::Measured| w.gemm.is_some_and(|gemm| gemm.fraction > 0.0 && gemm.fraction < 1.0);
        assert!(report.workloads.iter().all(|w| within(w) && w.read.is_none()));
        Ok(())
    }

    #[test]
    fn older_kernels_are_measured_where_they_are_chosen() -> Result<(), Box<dyn Error>> {
        let available = HostKernels::available();
        let older = available.get(1).map_or("portable", |kernels| kernels.name());
        let report = run(&["--workload", "w4", "--threads", "1", "--kernels", older])?;
        assert_eq!(report.isa, older);
        assert!(run(&["--kernels", "avx"]).is_err());
        Ok(())
    }

    #[test]
    fn ranks_are_measured_beside_one_rank() -> Result<(), Box<dyn Error>> {
        let report = run(&["--workload", "w1,w3b1", "--threads", "2", "--parallel", "tp=2"])?;
        let of: Vec<_> = report.workloads.iter().map(|w| (w.name, w.layout.as_str(), w.tokens)).collect();
        assert_eq!(of, [("w1", "tp=1", 16), ("w1", "tp=2", 16), ("w3b1", "tp=1", 128), ("w3b1", "tp=2", 128)]);
        assert!(report.workloads.iter().all(|w| w.collectives.is_some() == (w.layout == "tp=2")));
        // Two sums in each of two blocks' forward pass, and in their backward pass in training. Each sum has 64 elements in
        // f32 per row.
        let sums = |name: &str| {
            let of = report.workloads.iter().find(|w| w.name == name && w.layout == "tp=2");
            of.and_then(|w| w.collectives).map_or(0.0, |c| c.bytes_per_token)
        };
        assert!(sums("w1") > 4.0 * 2.0 * 64.0 * 4.0 && sums("w3b1") >= 2.0 * 2.0 * 64.0 * 4.0, "{report:?}");
        let compared: Vec<_> = report.overheads.iter().map(|o| (o.name, o.layout.as_str())).collect();
        assert_eq!(compared, [("w1", "tp=2"), ("w3b1", "tp=2")]);
        let mut table = Vec::new();
        report.write_table(&mut table)?;
        assert!(String::from_utf8(table)?.contains("\noverhead of tp=2: w1 "));
        assert!(run(&["--parallel", "tp=3"]).is_err_and(|error| error.to_string().contains("tp=3 does not fit")));
        Ok(())
    }

    #[test]
    fn random_models_are_written_once() -> Result<(), Box<dyn Error>> {
        let folder = tempfile::tempdir()?;
        let path = folder.path().to_str().ok_or("no text")?;
        let args = ["bench", "--shape", "tiny", "--data-dir", path, "--reps", "1", "--workload", "w1,w3b1"];
        let args = args.into_iter().chain(["--batch", "1", "--seq", "8", "--rank", "2", "--new-tokens", "2"]);
        let flags = BenchFlags::try_parse_from(args)?;
        let report = measure(&flags)?;
        assert_eq!((report.model.as_str(), report.device.as_str()), ("trainyard/random-tiny", "cpu"));
        let counted: Vec<_> = report.workloads.iter().map(|w| (w.name, w.tokens)).collect();
        assert_eq!(counted, [("w1", 8), ("w3b1", 2)]);
        let weights = folder.path().join("random-tiny").join("model.safetensors");
        let written = std::fs::metadata(&weights)?.modified()?;
        measure(&flags)?;
        assert_eq!(std::fs::metadata(&weights)?.modified()?, written);
        Ok(())
    }

    #[test]
    fn a_gpu_that_is_not_there_is_named() {
        let error = run(&["--device", "cuda:99"]).err().map(|error| error.to_string()).unwrap_or_default();
        assert!(error.starts_with("--device: cuda:99: "), "{error}");
        assert!(run(&["--device", "cuda", "--threads", "1"]).is_err(), "threads are the processor's");
    }

    #[test]
    fn empty_batches_are_refused() {
        assert!(run(&["--batch", "0"]).is_err());
    }
}
