//! `trainyard bench`: how fast the engine is on this machine, alone or with the API around it; and the store.

mod driver;
mod engine;
mod flags;
mod folder;
mod http;
mod report;
mod store;
mod system;
mod workload;

pub use engine::OpenModel;
pub use flags::BenchFlags;
pub use http::forward_backward_body;

use std::error::Error;
use std::io::{self, Write};

use serde::Serialize;
use trainyard_gpu_runtime::backend::Backend;
use trainyard_gpu_runtime::backend::cpu::{Blocking, Peaks};

use driver::Driver;
use engine::{kernels, load_engine};
use flags::{EVERY, Workload};
use report::Report;

/// Measures and prints.
///
/// # Errors
/// When a model can't be opened, a server can't be started or reached, or standard output is gone.
pub fn bench(flags: &BenchFlags, open: OpenModel) -> Result<(), Box<dyn Error>> {
    if flags.http {
        let report = http::measure(flags, open)?;
        return print(flags, &report, |out| report.write_table(out));
    }
    if flags.store {
        let report = store::measure(flags)?;
        return print(flags, &report, |out| report.write_table(out));
    }
    let report = measure(flags, open)?;
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

fn measure(flags: &BenchFlags, open: OpenModel) -> Result<Report, Box<dyn Error>> {
    if flags.batch == 0 || flags.seq == 0 {
        return Err("--batch and --seq must be at least 1".into());
    }
    let path = flags.model.as_ref().ok_or("--model is required")?;
    let peaks = Peaks::measure(kernels(flags)?, flags.dtype, flags.threads);
    let (engine, model) = load_engine(flags, path, open)?;
    let (isa, threads) = (engine.backend().device().kernels, engine.backend().device().threads);
    let chosen =
        flags.microbatch.map_or_else(String::new, |rows| format!("; microbatches of {rows} rows are measured"));
    let blocking = Blocking::detect(engine.backend().isa()).describe(flags.dtype) + &chosen;
    let mut driver = Driver::new(engine, model.clone());
    let choices = if flags.workload.contains(&Workload::All) { &EVERY[..] } else { &flags.workload[..] };
    let workloads = choices
        .iter()
        .map(|choice| workload::measure(&mut driver, *choice, flags, peaks))
        .collect::<Result<Vec<_>, _>>()?;
    Ok(Report {
        model: model.name,
        parameters: model.parameters,
        dtype: flags.dtype.name(),
        isa,
        blocking,
        threads,
        load_average: system::load_average(),
        gemm_gflops: peaks.gemm_gflops,
        read_gb_per_second: peaks.read_gb_per_second,
        workloads,
    })
}

#[cfg(test)]
mod tests {
    use std::error::Error;
    use std::path::Path;

    use clap::Parser;
    use trainyard_gpu_runtime::backend::HostKernels;
    use trainyard_gpu_runtime::load::load;

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
        measure(&Program::try_parse_from(args.iter().chain(extra))?.flags, load)
    }

    #[test]
    fn training_and_scoring_count_every_token() -> Result<(), Box<dyn Error>> {
        let report = run(&["--workload", "w1,w1f,w2,w4", "--threads", "1"])?;
        let counted: Vec<_> = report.workloads.iter().map(|w| (w.name, w.tokens)).collect();
        assert_eq!(counted, [("w1", 16), ("w1f", 16), ("w2", 64), ("w4", 16)]);
        assert!(report.workloads.iter().all(|w| w.tokens_per_second.median > 0.0 && w.seconds.len() == 1));
        assert!(report.workloads.iter().all(|w| w.gemm.fraction > 0.0 && w.gemm.fraction < 1.0 && w.read.is_none()));
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
    fn empty_batches_are_refused() {
        assert!(run(&["--batch", "0"]).is_err());
    }
}
