//! The workloads: their setup, their timed work and their counted tokens.

use std::error::Error;
use std::time::Instant;

use trainyard_gpu_runtime::backend::cpu::{GemmStats, Peaks};
use trainyard_protocol::{Datum, LoraSpec, OpResult, SamplerSource};

use super::choices::Workload;
use super::driver::{Driver, optim_step, sample, sampled};
use super::flags::BenchFlags;
use super::measured::{Exchanged, GemmTime, Measured, Read, Spread};
use super::system::Neighbours;

/// Step size of the timed steps.
const LEARNING_RATE: f64 = 1e-4;
/// Number of runs in w2.
const TENANTS: usize = 8;
/// Number of prompt tokens of w3 and w3b1.
const PROMPT: usize = 64;

/// Work of a repetition.
type Work = Box<dyn FnMut(&mut Driver) -> Result<(), Box<dyn Error>>>;

/// A workload that has been set up on an engine.
struct Job {
    name: &'static str,
    shape: String,
    /// Tokens counted per repetition.
    tokens: usize,
    /// Number of decoding steps, if their time is reported.
    steps: Option<u32>,
    work: Work,
    /// Runs to unload after the measurement.
    runs: Vec<String>,
}

/// Sets a workload up on each engine, warms up once and repeats it, on one engine after the other, so that repetitions
/// that are compared follow each other. Results are in the order of engines.
pub(super) fn measure(
    drivers: &mut [Driver],
    choice: Workload,
    flags: &BenchFlags,
    peaks: Peaks,
) -> Result<Vec<Measured>, Box<dyn Error>> {
    drivers.iter().for_each(|driver| driver.bench_engine().reset_peak_memory());
    let mut jobs = drivers.iter_mut().map(|driver| job(driver, choice, flags)).collect::<Result<Vec<_>, _>>()?;
    let measured = repeat(drivers, &mut jobs, flags.reps, peaks)?;
    for (driver, job) in drivers.iter_mut().zip(&jobs) {
        job.runs.iter().for_each(|run| driver.forget(run));
    }
    Ok(measured)
}

fn job(driver: &mut Driver, choice: Workload, flags: &BenchFlags) -> Result<Job, Box<dyn Error>> {
    match choice {
        Workload::W1 => train(driver, "w1", Some(lora(flags, 0)), flags),
        Workload::W1f => train(driver, "w1f", None, flags),
        Workload::W2 => many_runs(driver, flags),
        Workload::W3 => generate(driver, "w3", 16, flags.new_tokens.unwrap_or(64), flags),
        Workload::W3b1 => generate(driver, "w3b1", 1, flags.new_tokens.unwrap_or(128), flags),
        Workload::W3b128 => generate(driver, "w3b128", 128, flags.new_tokens.unwrap_or(64), flags),
        Workload::W4 => score(driver, flags),
        Workload::All => Err("all is not one workload".into()),
    }
}

fn lora(flags: &BenchFlags, seed: u64) -> LoraSpec {
    LoraSpec { train_unembed: flags.train_unembed, ..LoraSpec::on_all(flags.rank, seed) }
}

fn train(
    driver: &mut Driver,
    name: &'static str,
    lora: Option<LoraSpec>,
    flags: &BenchFlags,
) -> Result<Job, Box<dyn Error>> {
    driver.create_trained(name, lora)?;
    let data: Vec<_> = (0..flags.batch).map(|_| driver.datum(flags.seq)).collect();
    let work: Work = Box::new(move |driver| {
        let pass = driver.forward_backward(name, data.clone())?;
        driver.run_all([pass])?;
        driver.run_all([optim_step(name, LEARNING_RATE)])?;
        Ok(())
    });
    let (shape, tokens) = (format!("{}x{}", flags.batch, flags.seq), flags.batch * flags.seq);
    Ok(Job { name, shape, tokens, steps: None, work, runs: vec![name.to_owned()] })
}

fn many_runs(driver: &mut Driver, flags: &BenchFlags) -> Result<Job, Box<dyn Error>> {
    let runs: Vec<_> = (0..TENANTS).map(|i| format!("w2-{i}")).collect();
    let mut data = Vec::new();
    for (run, seed) in runs.iter().zip(0..) {
        driver.create_trained(run, Some(lora(flags, seed)))?;
        data.push((run.clone(), driver.datum(flags.seq)));
    }
    let work: Work = Box::new(move |driver| {
        let steps = |(run, datum): &(String, Datum)| driver.training_step(run, vec![datum.clone()], LEARNING_RATE);
        let chains = data.iter().map(steps).collect::<Result<Vec<_>, _>>()?;
        driver.run_chains(chains).map(drop)
    });
    let shape = format!("{TENANTS} runs x {}", flags.seq);
    Ok(Job { name: "w2", shape, tokens: TENANTS * flags.seq, steps: None, work, runs })
}

fn generate(
    driver: &mut Driver,
    name: &'static str,
    prompts: usize,
    new: u32,
    flags: &BenchFlags,
) -> Result<Job, Box<dyn Error>> {
    let source = source(driver, name, flags)?;
    let tokens = prompts * new as usize;
    let work: Work = Box::new(move |driver| {
        // New prompts every time, so that the prefix cache does not help.
        let samples: Vec<_> = (0..prompts).map(|_| sample(source.clone(), driver.tokens(PROMPT), new, false)).collect();
        let results = driver.run_all(samples)?;
        check(results, tokens, 0)
    });
    let shape = format!("{prompts}x({PROMPT}+{new}){}", weights(flags));
    Ok(Job { name, shape, tokens, steps: Some(new), work, runs: vec![name.to_owned()] })
}

fn score(driver: &mut Driver, flags: &BenchFlags) -> Result<Job, Box<dyn Error>> {
    let source = source(driver, "w4", flags)?;
    let (batch, seq) = (flags.batch, flags.seq);
    let work: Work = Box::new(move |driver| {
        let samples: Vec<_> = (0..batch).map(|_| sample(source.clone(), driver.tokens(seq), 1, true)).collect();
        let results = driver.run_all(samples)?;
        check(results, batch, batch * seq)
    });
    let shape = format!("{batch}x{seq}{}", weights(flags));
    Ok(Job { name: "w4", shape, tokens: batch * seq, steps: None, work, runs: vec!["w4".to_owned()] })
}

/// Returns a trained adapter's snapshot, or the base model.
fn source(driver: &mut Driver, name: &str, flags: &BenchFlags) -> Result<SamplerSource, Box<dyn Error>> {
    if flags.base {
        return Ok(driver.base());
    }
    driver.create_trained(name, Some(lora(flags, 0)))?;
    driver.snapshot(name)
}

fn weights(flags: &BenchFlags) -> &'static str {
    if flags.base { ", base" } else { ", LoRA" }
}

/// Checks that the work was done, so that its speed counts.
fn check(results: Vec<OpResult>, new_tokens: usize, prompt_logprobs: usize) -> Result<(), Box<dyn Error>> {
    let (mut new, mut scored) = (0, 0);
    for result in results {
        let sample = sampled(result)?;
        new += sample.sequences.iter().map(|sequence| sequence.tokens.len()).sum::<usize>();
        scored += sample.prompt_logprobs.map_or(0, |logprobs| logprobs.len());
    }
    if (new, scored) == (new_tokens, prompt_logprobs) {
        Ok(())
    } else {
        Err(format!("{new} of {new_tokens} tokens sampled, {scored} of {prompt_logprobs} scored").into())
    }
}

/// An engine's counters before its repetitions, and their times.
struct Tally {
    first_seconds: f64,
    seconds: Vec<f64>,
    gemm: Option<GemmStats>,
    collectives: (f64, u64),
}

fn repeat(drivers: &mut [Driver], jobs: &mut [Job], reps: u32, peaks: Peaks) -> Result<Vec<Measured>, Box<dyn Error>> {
    let timed = |driver: &mut Driver, job: &mut Job| {
        let start = Instant::now();
        (job.work)(driver).map(|()| start.elapsed().as_secs_f64())
    };
    let first = |(driver, job): (&mut Driver, &mut Job)| {
        let first_seconds = timed(driver, job)?;
        let (gemm, collectives) = (driver.gemm(), driver.collectives());
        Ok::<_, Box<dyn Error>>(Tally { first_seconds, seconds: Vec::new(), gemm, collectives })
    };
    let mut tallies = drivers.iter_mut().zip(jobs.iter_mut()).map(first).collect::<Result<Vec<_>, _>>()?;
    let neighbours = Neighbours::watch();
    for _ in 0..reps {
        for ((driver, job), tally) in drivers.iter_mut().zip(jobs.iter_mut()).zip(&mut tallies) {
            tally.seconds.push(timed(driver, job)?);
        }
    }
    let (other_cores, all_threads) = (neighbours.cores(), drivers.first().map_or(1, Driver::threads));
    // With several engines in the process, the peak would be that of all.
    let peak_memory_mib = if let [alone] = drivers { alone.bench_engine().peak_memory() } else { None };
    let done = drivers.iter().zip(jobs.iter()).zip(tallies).map(|((driver, job), tally)| {
        let counted = driver.gemm().zip(tally.gemm).map(|(now, before)| now.since(before));
        let rates = tally.seconds.iter().map(|seconds| job.tokens as f64 / seconds).collect();
        let (total, threads) = (tally.seconds.iter().sum::<f64>(), driver.threads() as f64);
        // Rank 0 uses only a part of the threads.
        let peak = peaks.gemm_gflops * threads / all_threads as f64;
        let gemm = |counted: GemmStats| {
            let gflops = counted.flops as f64 * threads / counted.thread_seconds / 1e9;
            GemmTime { fraction: counted.thread_seconds / (total * threads), gflops, of_peak: gflops / peak }
        };
        Measured {
            name: job.name,
            layout: driver.layout().to_string(),
            shape: job.shape.clone(),
            tokens: job.tokens,
            tokens_per_second: Spread::of(rates),
            ms_per_token: job.steps.map(|steps| Spread::of(tally.seconds.clone()).median * 1000.0 / f64::from(steps)),
            first_seconds: tally.first_seconds,
            peak_memory_mib,
            gemm: counted.map(gemm),
            read: counted.filter(|_| job.name == "w3b1").map(|counted| {
                let gb_per_second = counted.weight_bytes as f64 / total / 1e9;
                Read { gb_per_second, of_bandwidth: gb_per_second / peaks.read_gb_per_second }
            }),
            collectives: (driver.layout().world() > 1).then(|| {
                let ((seconds, bytes), (seconds_before, bytes_before)) = (driver.collectives(), tally.collectives);
                let tokens = job.tokens * tally.seconds.len();
                Exchanged {
                    seconds: (seconds - seconds_before) / tally.seconds.len() as f64,
                    fraction: (seconds - seconds_before) / total,
                    bytes_per_token: (bytes - bytes_before) as f64 / tokens as f64,
                }
            }),
            seconds: tally.seconds,
            other_cores,
        }
    });
    Ok(done.collect())
}
