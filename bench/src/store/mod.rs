//! `trainyard-bench --store`: times rounds of the scheduler as more and more requests are retained.

mod client;
mod report;
mod worker;

use std::error::Error;
use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::runtime::Builder;
use trainyard_scheduler::{Database, Options, Scheduler, WorkerOptions, migrate};
use trainyard_storage::Storage;

use self::client::Client;
pub(super) use self::report::StoreReport;
use self::report::{Operation, StoreTimes};
use self::worker::{IdleEngine, MODEL};
use super::flags::BenchFlags;
use super::folder::BenchFolder;
use super::measured::Spread;
use super::system;

/// Measurements of each operation per repetition.
const OPERATIONS: u32 = 20;
/// The lease outlasts the measurement, so that only measured rounds happen.
const LEASE: Duration = Duration::from_secs(24 * 3600);

/// Measures SQLite, and PostgreSQL if a database is given.
pub(super) fn measure(flags: &BenchFlags) -> Result<StoreReport, Box<dyn Error>> {
    let folder = BenchFolder::new(flags.data_dir.as_deref(), "store")?;
    let data = folder.path.join("store");
    std::fs::create_dir_all(&data)?;
    let mut databases = vec![("SQLite", Database::Sqlite(data.join("trainyard.db")))];
    databases.extend(flags.database_url.clone().map(|url| ("PostgreSQL", Database::Postgres(url))));
    let runtime = Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
    let mut stores = Vec::new();
    for (name, database) in databases {
        let storage = Storage::folder(data.join(name));
        stores.push(runtime.block_on(measure_one(name, database, storage, flags))?);
    }
    Ok(StoreReport { load_average: system::load_average(), retained: flags.retained.clone(), stores })
}

async fn measure_one(
    name: &'static str,
    database: Database,
    storage: Storage,
    flags: &BenchFlags,
) -> Result<StoreTimes, Box<dyn Error>> {
    migrate(&database).await?;
    let worker = WorkerOptions { lease: LEASE, ..WorkerOptions::new("bench", vec![MODEL.to_owned()]) };
    let options = Options {
        worker: Some(worker),
        snapshot_tokens: u64::MAX,
        idle_unload: LEASE,
        session_timeout: LEASE,
        ..Options::new(database, storage)
    };
    let scheduler = Arc::new(Scheduler::open(options).await?);
    let engine = IdleEngine::start(Arc::clone(&scheduler));
    let times = measure_sizes(&scheduler, flags).await;
    engine.stop()?;
    scheduler.close().await;
    Ok(StoreTimes { name, operations: times? })
}

async fn measure_sizes(scheduler: &Arc<Scheduler>, flags: &BenchFlags) -> Result<Vec<Operation>, Box<dyn Error>> {
    let mut client = Client::new(Arc::clone(scheduler)).await?;
    let names = ["claim round", "training submission", "sample submission", "sweep"];
    let mut operations: Vec<Operation> = names.map(|name| Operation { name, ms: Vec::new() }).into();
    for size in &flags.retained {
        client.retain(*size).await?;
        // Pending writes reach the disk, and collected garbage is not measured.
        scheduler.maintain().await?;
        let mut ms = [const { Vec::new() }; 4];
        for _ in 0..flags.reps.saturating_mul(OPERATIONS) {
            ms[0].push(timed(async || scheduler.lease_round().await).await?.0);
            let (took, request) = timed(async || client.submit_training().await).await?;
            ms[1].push(took);
            client.wait(&request).await?;
            let (took, request) = timed(async || client.submit_sample().await).await?;
            ms[2].push(took);
            client.wait(&request).await?;
            ms[3].push(timed(async || scheduler.maintain().await).await?.0);
        }
        for (operation, ms) in operations.iter_mut().zip(ms) {
            operation.ms.push(Spread::of(ms));
        }
    }
    Ok(operations)
}

/// Returns the result of a future, and the time that it took in milliseconds.
async fn timed<T>(
    work: impl AsyncFnOnce() -> Result<T, trainyard_scheduler::Error>,
) -> Result<(f64, T), trainyard_scheduler::Error> {
    let start = Instant::now();
    let value = work().await?;
    Ok((start.elapsed().as_secs_f64() * 1000.0, value))
}

#[cfg(test)]
mod tests {
    use std::error::Error;

    use clap::Parser;

    use super::{BenchFlags, measure};

    #[derive(Parser)]
    struct Program {
        #[command(flatten)]
        flags: BenchFlags,
    }

    #[test]
    fn each_operation_is_measured_at_each_size() -> Result<(), Box<dyn Error>> {
        let args = ["bench", "--store", "--retained", "100,300", "--reps", "1"];
        let report = measure(&Program::try_parse_from(args)?.flags)?;
        let measured: Vec<_> = report.stores.iter().map(|store| (store.name, store.operations.len())).collect();
        assert_eq!(measured, [("SQLite", 4)]);
        let operations = report.stores.iter().flat_map(|store| &store.operations);
        assert!(operations.into_iter().all(|operation| operation.ms.len() == 2 && operation.growth() > 0.0));
        Ok(())
    }
}
