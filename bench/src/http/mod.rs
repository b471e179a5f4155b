//! `trainyard-bench --http`: measures the whole service as a client sees it. The calls of the Tinker SDK drive a server
//! in a process of its own, or one that is already running.

mod child;
mod client;
mod connection;
mod measure;
mod message;
mod report;

use std::error::Error;
use std::fs;
use std::fs::File;
use std::io::Write;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::runtime::Builder;
use trainyard_gpu_runtime::Parallel;
use trainyard_protocol::LoraSpec;

use self::child::ServerProcess;
use self::connection::ServerAddress;
use self::measure::HttpBench;
pub(super) use self::report::HttpReport;
use self::report::Quantiles;
use super::choices::NamedModel;
use super::driver::{Driver, optim_step, sample, sampled};
use super::engine::load_engine;
use super::flags::BenchFlags;
use super::folder::BenchFolder;
use super::synthetic::{self, TINY};
use super::system;

/// Operations per repetition of a measurement one at a time.
const OPERATIONS: usize = 40;
/// Length of a repetition of the closed loop.
const ROUND: Duration = Duration::from_secs(3);
/// Samples per second of the schedule.
const SCHEDULED: u32 = 500;
const SCHEDULE: Duration = Duration::from_secs(5);
/// Number of simultaneous samples.
const OUTSTANDING: usize = 2000;

/// Measures a server started on `--model` or on a tiny model, or the server at `--url`.
pub(super) fn measure(flags: &BenchFlags) -> Result<HttpReport, Box<dyn Error>> {
    if flags.clients == 0 {
        return Err("--clients must be at least 1".into());
    }
    if let Some(url) = &flags.url {
        let model = flags.model.as_ref().map(|model| model.name.as_str());
        return drive(flags, url, model, None);
    }
    let folder = BenchFolder::new(flags.data_dir.as_deref(), "server")?;
    let model = match &flags.model {
        Some(model) => NamedModel { name: model.name.clone(), path: fs::canonicalize(&model.path)? },
        None => {
            let path = folder.path.join("tiny");
            synthetic::write(&TINY, &path)?;
            NamedModel { name: TINY.name.to_owned(), path }
        }
    };
    let alone = engine_alone(flags, &model)?;
    let data = folder.path.join("server");
    fs::create_dir_all(&data)?;
    let sync_ms = sync_time(&data.join("sync"))?;
    let server = ServerProcess::start(flags, &model, &data)?;
    let mut report = drive(flags, &server.url, Some(&model.name), Some(server.id()))?;
    for (name, ms) in alone {
        for latency in report.latencies.iter_mut().filter(|latency| latency.name == name) {
            latency.engine_ms = Some(ms);
        }
    }
    report.sync_ms = Some(sync_ms);
    Ok(report)
}

/// Returns the median time in milliseconds of a small durable write where the server keeps its data. An operation takes
/// two: one for the request and one for the result.
fn sync_time(path: &Path) -> Result<f64, Box<dyn Error>> {
    let mut file = File::create(path)?;
    let mut ms = Vec::with_capacity(OPERATIONS);
    for _ in 0..OPERATIONS {
        let start = Instant::now();
        file.write_all(&[0; 4096])?;
        file.sync_data()?;
        ms.push(start.elapsed().as_secs_f64() * 1000.0);
    }
    fs::remove_file(path)?;
    Ok(Quantiles::of(ms).median)
}

fn drive(
    flags: &BenchFlags,
    url: &str,
    model: Option<&str>,
    server: Option<u32>,
) -> Result<HttpReport, Box<dyn Error>> {
    let address = Arc::new(ServerAddress::new(url, &flags.api_key)?);
    // A single thread leaves the processors to the server.
    let runtime = Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        let (mut bench, model) = HttpBench::set_up(&address, model, flags.rank, server).await?;
        let before = server.and_then(system::memory_of);
        let latencies = bench.latencies(OPERATIONS * flags.reps as usize).await?;
        let rates = vec![
            bench.samples(flags.clients, flags.reps, ROUND).await?,
            bench.scheduled(SCHEDULED, SCHEDULE).await?,
            bench.outstanding(OUTSTANDING).await?,
        ];
        let after = server.and_then(system::memory_of);
        bench.finish().await?;
        Ok(HttpReport {
            model,
            url: url.to_owned(),
            load_average: system::load_average(),
            sync_ms: None,
            latencies,
            rates,
            server_mib: before.zip(after).map(|(before, after)| [before, after]),
        })
    })
}

/// Measures the medians of the same operations without the API, in milliseconds.
fn engine_alone(flags: &BenchFlags, model: &NamedModel) -> Result<Vec<(&'static str, f64)>, Box<dyn Error>> {
    const RUN: &str = "alone";
    let (engine, described) = load_engine(flags, model, Parallel::default())?;
    let mut driver = Driver::new(engine, described, Parallel::default());
    let lora = LoraSpec::on_all(flags.rank, 1);
    driver.create_trained(RUN, Some(lora))?;
    let source = driver.snapshot(RUN)?;
    let (datum, prompt) = (driver.datum(16), driver.tokens(16));
    let count = OPERATIONS * flags.reps as usize;
    let pass = |driver: &mut Driver| {
        let pass = driver.forward_backward(RUN, vec![datum.clone()])?;
        driver.run_all([pass]).map(drop)
    };
    let step = |driver: &mut Driver| driver.run_all([optim_step(RUN, 1e-4)]).map(drop);
    let sample_one = |driver: &mut Driver| {
        let results = driver.run_all([sample(source.clone(), prompt.clone(), 1, false)])?;
        results.into_iter().try_for_each(|result| sampled(result).map(drop))
    };
    Ok(vec![
        ("optim_step", median_of(count, || step(&mut driver))?),
        ("forward_backward", median_of(count, || pass(&mut driver))?),
        ("forward_backward+optim", median_of(count, || pass(&mut driver).and_then(|()| step(&mut driver)))?),
        ("sample", median_of(count, || sample_one(&mut driver))?),
    ])
}

fn median_of(count: usize, mut work: impl FnMut() -> Result<(), Box<dyn Error>>) -> Result<f64, Box<dyn Error>> {
    work()?;
    let mut ms = Vec::with_capacity(count);
    for _ in 0..count {
        let start = Instant::now();
        work()?;
        ms.push(start.elapsed().as_secs_f64() * 1000.0);
    }
    Ok(Quantiles::of(ms).median)
}
