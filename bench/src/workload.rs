//! The workloads: what is set up, what is timed and which tokens count.

use std::error::Error;
use std::time::Instant;

use trainyard_protocol::{Datum, LoraSpec, OpResult, SamplerSource};

use trainyard_gpu_runtime::backend::cpu::Peaks;

use super::driver::{Driver, optim_step, sample, sampled};
use super::flags::{BenchFlags, Workload};
use super::report::{GemmTime, Measured, Read, Spread};
use super::system::{self, Neighbours};

/// Step size of the timed steps.
const LEARNING_RATE: f64 = 1e-4;
/// Runs of w2.
const TENANTS: usize = 8;
/// Prompt tokens of w3 and w3b1.
const PROMPT: usize = 64;

/// Sets a workload up, warms up once and repeats it.
pub(super) fn measure(
    driver: &mut Driver,
    choice: Workload,
    flags: &BenchFlags,
    peaks: Peaks,
) -> Result<Measured, Box<dyn Error>> {
    system::reset_peak_memory();
    match choice {
        Workload::W1 => train(driver, "w1", Some(lora(flags, 0)), flags, peaks),
        Workload::W1f => train(driver, "w1f", None, flags, peaks),
        Workload::W2 => many_runs(driver, flags, peaks),
        Workload::W3 => generate(driver, "w3", 16, 64, flags, peaks),
        Workload::W3b1 => generate(driver, "w3b1", 1, 128, flags, peaks),
        Workload::W4 => score(driver, flags, peaks),
        Workload::All => Err("all is not one workload".into()),
    }
}

fn lora(flags: &BenchFlags, seed: u64) -> LoraSpec {
    LoraSpec { rank: flags.rank, seed, train_unembed: flags.train_unembed, train_mlp: true, train_attn: true }
}

fn train(
    driver: &mut Driver,
    name: &'static str,
    lora: Option<LoraSpec>,
    flags: &BenchFlags,
    peaks: Peaks,
) -> Result<Measured, Box<dyn Error>> {
    driver.create_trained(name, lora)?;
    let data: Vec<_> = (0..flags.batch).map(|_| driver.datum(flags.seq)).collect();
    let shape = format!("{}x{}", flags.batch, flags.seq);
    let measured = repeat(driver, peaks, name, shape, flags.batch * flags.seq, flags.reps, |driver| {
        let pass = driver.forward_backward(name, data.clone())?;
        driver.run_all([pass])?;
        driver.run_all([optim_step(name, LEARNING_RATE)])?;
        Ok(())
    });
    driver.forget(name);
    measured
}

fn many_runs(driver: &mut Driver, flags: &BenchFlags, peaks: Peaks) -> Result<Measured, Box<dyn Error>> {
    let runs: Vec<_> = (0..TENANTS).map(|i| format!("w2-{i}")).collect();
    let mut data = Vec::new();
    for (run, seed) in runs.iter().zip(0..) {
        driver.create_trained(run, Some(lora(flags, seed)))?;
        data.push(driver.datum(flags.seq));
    }
    let shape = format!("{TENANTS} runs x {}", flags.seq);
    let measured = repeat(driver, peaks, "w2", shape, TENANTS * flags.seq, flags.reps, |driver| {
        let steps = |(run, datum): (&String, &Datum)| driver.training_step(run, vec![datum.clone()], LEARNING_RATE);
        let chains = runs.iter().zip(&data).map(steps).collect::<Result<Vec<_>, _>>()?;
        driver.run_chains(chains).map(drop)
    });
    runs.iter().for_each(|run| driver.forget(run));
    measured
}

fn generate(
    driver: &mut Driver,
    name: &'static str,
    prompts: usize,
    new: u32,
    flags: &BenchFlags,
    peaks: Peaks,
) -> Result<Measured, Box<dyn Error>> {
    let source = source(driver, name, flags)?;
    let expected = prompts * new as usize;
    let shape = format!("{prompts}x({PROMPT}+{new}){}", weights(flags));
    let measured = repeat(driver, peaks, name, shape, expected, flags.reps, |driver| {
        // New prompts every time, so that the prefix cache does not help.
        let samples: Vec<_> = (0..prompts).map(|_| sample(source.clone(), driver.tokens(PROMPT), new, false)).collect();
        let results = driver.run_all(samples)?;
        check(results, expected, 0)
    });
    driver.forget(name);
    measured.map(|mut measured| {
        measured.ms_per_token = Some(measured.seconds_median() * 1000.0 / f64::from(new));
        measured
    })
}

fn score(driver: &mut Driver, flags: &BenchFlags, peaks: Peaks) -> Result<Measured, Box<dyn Error>> {
    let source = source(driver, "w4", flags)?;
    let shape = format!("{}x{}{}", flags.batch, flags.seq, weights(flags));
    let measured = repeat(driver, peaks, "w4", shape, flags.batch * flags.seq, flags.reps, |driver| {
        let samples: Vec<_> =
            (0..flags.batch).map(|_| sample(source.clone(), driver.tokens(flags.seq), 1, true)).collect();
        let results = driver.run_all(samples)?;
        check(results, flags.batch, flags.batch * flags.seq)
    });
    driver.forget("w4");
    measured
}

/// A trained adapter's snapshot, or the base model.
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

/// A speed counts only when the work was done.
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

fn repeat(
    driver: &mut Driver,
    peaks: Peaks,
    name: &'static str,
    shape: String,
    tokens: usize,
    reps: u32,
    mut work: impl FnMut(&mut Driver) -> Result<(), Box<dyn Error>>,
) -> Result<Measured, Box<dyn Error>> {
    let mut timed = |driver: &mut Driver| {
        let start = Instant::now();
        work(driver).map(|()| start.elapsed().as_secs_f64())
    };
    let first_seconds = timed(driver)?;
    let (neighbours, before) = (Neighbours::watch(), driver.gemm());
    let seconds = (0..reps).map(|_| timed(driver)).collect::<Result<Vec<_>, _>>()?;
    let counted = driver.gemm().since(before);
    let rates = seconds.iter().map(|seconds| tokens as f64 / seconds).collect();
    let (total, threads) = (seconds.iter().sum::<f64>(), driver.threads() as f64);
    let gflops = counted.flops as f64 * threads / counted.thread_seconds / 1e9;
    let fraction = counted.thread_seconds / (total * threads);
    Ok(Measured {
        name,
        shape,
        tokens,
        tokens_per_second: Spread::of(rates),
        ms_per_token: None,
        first_seconds,
        peak_memory_mib: system::peak_memory(),
        gemm: GemmTime { fraction, gflops, of_peak: gflops / peaks.gemm_gflops },
        read: (name == "w3b1").then(|| {
            let gb_per_second = counted.weight_bytes as f64 / total / 1e9;
            Read { gb_per_second, of_bandwidth: gb_per_second / peaks.read_gb_per_second }
        }),
        seconds,
        other_cores: neighbours.cores(),
    })
}
