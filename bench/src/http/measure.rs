//! Measurements of operations through HTTP.

use std::cell::Cell;
use std::sync::Arc;
use std::time::{Duration, Instant};

use futures::future::join_all;
use tokio::try_join;

use super::super::system;
use super::client::{Client, Expect, Failure, Sampler, TrainingRun};
use super::connection::ServerAddress;
use super::report::{Latency, Quantiles, Rate};
use crate::measured::Spread;

/// Number of operations that run before the counted ones.
const WARM_UP: usize = 20;
/// Maximum number of connections that a schedule uses.
const SCHEDULE_CONNECTIONS: usize = 256;

/// A connection to the server, with a run and a sampler for measurements.
pub(super) struct HttpBench {
    address: Arc<ServerAddress>,
    first: Client,
    /// Second connection, for calls that the SDK makes at the same time.
    second: Client,
    run: TrainingRun,
    sampler: Sampler,
    /// Number of the next sample.
    next_sample: Cell<i64>,
    /// Process id of the server, if it runs on this machine.
    server: Option<u32>,
}

impl HttpBench {
    pub(super) async fn set_up(
        address: &Arc<ServerAddress>,
        model: Option<&str>,
        rank: u32,
        server: Option<u32>,
    ) -> Result<(Self, String), Failure> {
        let (mut first, second) = (Client::open(address).await?, Client::open(address).await?);
        let model = match model {
            Some(model) => model.to_owned(),
            None => first.first_model().await?,
        };
        let (run, sampler) = first.set_up(&model, rank).await?;
        let address = Arc::clone(address);
        Ok((Self { address, first, second, run, sampler, next_sample: Cell::new(0), server }, model))
    }

    /// Ends the session that was used for measurements.
    pub(super) async fn finish(&mut self) -> Result<(), Failure> {
        self.first.finish(&self.run).await
    }

    fn sample_number(&self) -> i64 {
        self.next_sample.replace(self.next_sample.get() + 1)
    }

    /// Times the four operations of a loop, one at a time.
    pub(super) async fn latencies(&mut self, operations: usize) -> Result<Vec<Latency>, Failure> {
        let mut all = Vec::new();
        for name in ["optim_step", "forward_backward", "forward_backward+optim", "sample"] {
            let mut ms = Vec::with_capacity(operations);
            for index in 0..WARM_UP + operations {
                let start = Instant::now();
                self.operation(name).await?;
                if index >= WARM_UP {
                    ms.push(millis(start.elapsed()));
                }
            }
            all.push(Latency { name, operations, ms: Quantiles::of(ms), engine_ms: None });
        }
        Ok(all)
    }

    async fn operation(&mut self, name: &str) -> Result<(), Failure> {
        match name {
            "optim_step" => {
                let step = self.first.submit_optim_step(&mut self.run).await?;
                self.first.wait(&step, Expect::Json("optim_step")).await?;
            }
            "forward_backward" => {
                let pass = self.first.submit_forward_backward(&mut self.run).await?;
                self.first.wait(&pass, Expect::ForwardBackward).await?;
            }
            "sample" => self.first.sample(&self.sampler, self.sample_number()).await?,
            // Both are submitted back to back, then awaited at the same time.
            _ => {
                let pass = self.first.submit_forward_backward(&mut self.run).await?;
                let step = self.first.submit_optim_step(&mut self.run).await?;
                try_join!(
                    self.first.wait(&pass, Expect::ForwardBackward),
                    self.second.wait(&step, Expect::Json("optim_step"))
                )?;
            }
        }
        Ok(())
    }

    /// Samples with `concurrency` clients, each with one sample at a time, in rounds.
    pub(super) async fn samples(&self, concurrency: usize, rounds: u32, length: Duration) -> Result<Rate, Failure> {
        let mut clients = self.clients(concurrency).await?;
        // A warm-up, which is not counted.
        join_all(clients.iter_mut().map(|client| client.sample(&self.sampler, self.sample_number()))).await;
        let (mut tally, mut speeds) = (Tally::default(), Vec::new());
        let watch = self.watch();
        for _ in 0..rounds {
            let start = Instant::now();
            let done = join_all(clients.iter_mut().map(|client| self.sample_until(client, start + length))).await;
            let round = done.into_iter().fold(Tally::default(), Tally::join);
            speeds.push(round.ms.len() as f64 / start.elapsed().as_secs_f64());
            tally = tally.join(round);
        }
        Ok(watch.rate("samples, closed loop", concurrency, speeds, tally))
    }

    async fn sample_until(&self, client: &mut Client, end: Instant) -> Tally {
        let mut tally = Tally::default();
        while Instant::now() < end {
            let start = Instant::now();
            let done = client.sample(&self.sampler, self.sample_number()).await;
            if !tally.count(start, done) {
                break;
            }
        }
        tally
    }

    /// Samples on a schedule: samples start at a fixed rate, whether or not earlier ones have ended.
    pub(super) async fn scheduled(&self, per_second: u32, length: Duration) -> Result<Rate, Failure> {
        let mut clients = self.clients(SCHEDULE_CONNECTIONS).await?;
        let count = (f64::from(per_second) * length.as_secs_f64()) as usize;
        let gap = Duration::from_secs(1) / per_second;
        let next = Cell::new(0);
        let watch = self.watch();
        let start = Instant::now();
        let work = clients.iter_mut().map(|client| async {
            let mut tally = Tally::default();
            loop {
                let index = next.replace(next.get() + 1);
                if index >= count {
                    return tally;
                }
                let due = start + gap * u32::try_from(index).unwrap_or(u32::MAX);
                tokio::time::sleep_until(due.into()).await;
                let done = client.sample(&self.sampler, self.sample_number()).await;
                if !tally.count(due, done) {
                    return tally;
                }
            }
        });
        let tally = join_all(work).await.into_iter().fold(Tally::default(), Tally::join);
        let speed = tally.ms.len() as f64 / start.elapsed().as_secs_f64();
        Ok(watch.rate("samples, 500 per s", SCHEDULE_CONNECTIONS, vec![speed], tally))
    }

    /// Starts `count` samples at once, each with its own poll.
    pub(super) async fn outstanding(&self, count: usize) -> Result<Rate, Failure> {
        let mut clients = self.clients(count).await?;
        let watch = self.watch();
        let start = Instant::now();
        let work = clients.iter_mut().map(|client| async {
            let mut tally = Tally::default();
            let done = client.sample(&self.sampler, self.sample_number()).await;
            tally.count(start, done);
            tally
        });
        let tally = join_all(work).await.into_iter().fold(Tally::default(), Tally::join);
        let speed = tally.ms.len() as f64 / start.elapsed().as_secs_f64();
        Ok(watch.rate("samples, all at once", count, vec![speed], tally))
    }

    async fn clients(&self, count: usize) -> Result<Vec<Client>, Failure> {
        let mut clients = Vec::with_capacity(count);
        for _ in 0..count {
            clients.push(Client::open(&self.address).await?);
        }
        Ok(clients)
    }

    fn watch(&self) -> CpuTime {
        let busy = || (self.server.and_then(system::busy_seconds), system::busy_seconds(std::process::id()));
        CpuTime { start: Instant::now(), server: self.server, busy: busy() }
    }
}

/// Processor time since a given moment.
struct CpuTime {
    start: Instant,
    server: Option<u32>,
    busy: (Option<f64>, Option<f64>),
}

impl CpuTime {
    fn rate(self, name: &'static str, concurrency: usize, speeds: Vec<f64>, tally: Tally) -> Rate {
        let seconds = self.start.elapsed().as_secs_f64();
        let cores = |now: Option<f64>, then: Option<f64>| Some((now? - then?) / seconds);
        let (server, client) = self.busy;
        Rate {
            name,
            concurrency,
            operations: tally.ms.len(),
            errors: tally.errors,
            error: tally.error,
            per_second: Spread::of(speeds),
            ms: Quantiles::of(tally.ms),
            server_cores: cores(self.server.and_then(system::busy_seconds), server),
            client_cores: cores(system::busy_seconds(std::process::id()), client),
        }
    }
}

/// Outcomes of many operations.
#[derive(Default)]
struct Tally {
    /// Milliseconds of each successful operation.
    ms: Vec<f64>,
    errors: usize,
    error: Option<String>,
}

impl Tally {
    /// Counts an operation. Returns false if the connection broke.
    fn count(&mut self, start: Instant, done: Result<(), Failure>) -> bool {
        match done {
            Ok(()) => self.ms.push(millis(start.elapsed())),
            Err(failure) => {
                self.errors += 1;
                self.error.get_or_insert_with(|| failure.to_string());
                return !matches!(failure, Failure::Connection(_));
            }
        }
        true
    }

    fn join(mut self, other: Self) -> Self {
        self.ms.extend(other.ms);
        self.errors += other.errors;
        self.error = self.error.or(other.error);
        self
    }
}

fn millis(duration: Duration) -> f64 {
    duration.as_secs_f64() * 1000.0
}
