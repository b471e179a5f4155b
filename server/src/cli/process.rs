//! The shared parts of all roles of a process: its files, the store, and the executor of requests.

use std::error::Error;
use std::fs::{self, File, TryLockError};
use std::future::{Future, pending};
use std::io::{self, Read, Write};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use tokio::runtime::Handle;
use tokio::task::spawn_blocking;
use tokio::time::sleep;
use trainyard_gpu_runtime::MAX_SEQUENCES;
use trainyard_protocol::{BaseModel, MemoryPlan, Prepare};
use trainyard_scheduler::{Database, NumericsMismatch, Options, Scheduler, WorkerOptions};
use trainyard_storage::Storage;

use super::former_process;
use super::reachable::when_reachable;
use super::shutdown::Signals;
use crate::config::{self, Config, Images, Role};
use crate::disk::Disks;
use crate::engine::{Loaded, build_engine};
use crate::models::Models;
use crate::random::system_random;
use crate::worker::{self, ImagePool, ModelImages, PoolSettings, WorkerDeps, WorkerHandle};
use crate::workspace::Workspace;

/// Time that a shutdown waits for the engine's current step.
const LAST_STEP: Duration = Duration::from_millis(1500);

/// The time between two checks of the worker's thread.
const WATCH: Duration = Duration::from_millis(500);

/// The file in the data directory that keeps the worker's name over restarts.
const WORKER_ID_FILE: &str = "worker-id";

/// The data directory, which only one process uses, and the storage.
pub(super) struct Files {
    pub(super) storage: Storage,
    pub(super) disks: Disks,
    _lock: File,
}

impl Files {
    pub(super) async fn open(config: &Config) -> Result<Self, Box<dyn Error>> {
        create_folder("--data-dir", &config.data_dir)?;
        let lock = lock(&config.data_dir)?;
        let storage = Storage::open(&config.storage).map_err(|error| format!("--storage: {error}"))?;
        for folder in ["checkpoints", "snapshots"] {
            let prepared = storage.prepare(folder).await;
            prepared.map_err(|error| format!("--storage: {}: {error}", config.storage))?;
        }
        let disks = Disks::of(&config.database, &storage, &config.data_dir, config.disk_reserve);
        Ok(Self { storage, disks, _lock: lock })
    }
}

/// Creates the folder of a flag. The error names both.
pub(super) fn create_folder(flag: &str, folder: &Path) -> Result<(), String> {
    fs::create_dir_all(folder).map_err(|error| format!("{flag}: {}: {error}", folder.display()))
}

/// Locks the data against a second process.
pub(super) fn lock(data_dir: &Path) -> Result<File, String> {
    let path = data_dir.join("lock");
    let file = File::create(&path).map_err(|error| format!("{}: {error}", path.display()))?;
    match file.try_lock() {
        Ok(()) => Ok(file),
        Err(TryLockError::WouldBlock) => Err(format!("--data-dir: another process is using {}", data_dir.display())),
        Err(TryLockError::Error(error)) => Err(format!("{}: {error}", path.display())),
    }
}

/// Opens the store once its database can be reached. `None` when a signal comes first.
pub(super) async fn open_scheduler_or_stop(
    config: &Config,
    files: &Files,
    signals: &mut Signals,
) -> Result<Option<Scheduler>, Box<dyn Error>> {
    tokio::select! {
        opened = open_scheduler(config, files) => opened.map(Some),
        signal = signals.next() => {
            tracing::info!(signal, "shutting down before the database was reached");
            Ok(None)
        }
    }
}

async fn open_scheduler(config: &Config, files: &Files) -> Result<Scheduler, Box<dyn Error>> {
    if config.migrate && matches!(config.database, Database::Postgres(_)) {
        when_reachable(|| trainyard_scheduler::migrate(&config.database)).await?;
    }
    let in_data_dir = |error: io::Error| format!("--data-dir: {}: {error}", config.data_dir.display());
    let worker = match config.role {
        Role::Api => None,
        Role::All | Role::Worker => {
            let models = config.models.iter().map(|model| model.name.clone()).collect();
            let mut worker = WorkerOptions::new(worker_id(&config.data_dir).map_err(in_data_dir)?, models);
            worker.devices = vec![format!("cpu, {} threads", config.threads)];
            worker.lease = config.lease;
            worker.former_out_of_memory = former_process::ran_out_of_memory(&config.data_dir).map_err(in_data_dir)?;
            worker.decode_slots = MAX_SEQUENCES;
            worker.numerics_mismatch = match config.numerics_mismatch {
                config::NumericsMismatch::Wait => NumericsMismatch::Wait,
                config::NumericsMismatch::Continue => NumericsMismatch::Continue,
            };
            Some(worker)
        }
    };
    let defaults = Options::new(config.database.clone(), files.storage.clone());
    let options = Options {
        worker,
        worker_waits: true,
        serves_clients: config.role != Role::Worker,
        database_readers: config.database_readers.unwrap_or(defaults.database_readers),
        policies: config.policies.clone(),
        metrics_per_tenant: config.metrics_per_tenant,
        snapshot_tokens: config.snapshot_tokens.unwrap_or(defaults.snapshot_tokens),
        kept_snapshots: config.sampler_snapshots.kept.unwrap_or(defaults.kept_snapshots),
        snapshot_retention: config.sampler_snapshots.retention.unwrap_or(defaults.snapshot_retention),
        idle_unload: config.idle_unload.unwrap_or(defaults.idle_unload),
        session_timeout: config.session_timeout.unwrap_or(defaults.session_timeout),
        retention: config.retention.unwrap_or(defaults.retention),
        usage_retention: config.usage_retention.unwrap_or(defaults.usage_retention),
        usage_rows: config.usage_rows.unwrap_or(defaults.usage_rows),
        metrics_rows: config.metrics_rows.unwrap_or(defaults.metrics_rows),
        usage_history: config.usage_history.unwrap_or(defaults.usage_history),
        ..defaults
    };
    Ok(when_reachable(|| Scheduler::open(options.clone())).await?)
}

/// The name of this data directory's worker, which is random and chosen once.
fn worker_id(data_dir: &Path) -> io::Result<String> {
    let path = data_dir.join(WORKER_ID_FILE);
    match fs::read_to_string(&path) {
        Ok(id) if !id.trim().is_empty() => Ok(id.trim().to_owned()),
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => {
            let mut bytes = [0; 8];
            File::open("/dev/urandom")?.read_exact(&mut bytes)?;
            let id = format!("worker-{:016x}", u64::from_le_bytes(bytes));
            let temporary = path.with_extension("new");
            let mut file = File::create(&temporary)?;
            file.write_all(id.as_bytes())?;
            file.sync_all()?;
            fs::rename(&temporary, &path)?;
            Ok(id)
        }
    }
}

/// The part of a process that executes requests.
pub(super) struct Executor {
    worker: WorkerHandle,
    preparer: Arc<dyn Prepare>,
    memory: MemoryPlan,
}

impl Executor {
    /// Loads the models, registers them in the store and starts to execute requests.
    pub(super) async fn start(
        config: &Config,
        scheduler: &Scheduler,
        storage: &Storage,
    ) -> Result<(Self, Models), Box<dyn Error>> {
        let Loaded { engine, files, folders } = load(config.clone()).await?;
        let (models, preparer, memory) = (engine.models(), engine.preparer(), engine.memory());
        for (base_model, numerics) in engine.numerics() {
            tracing::info!(
                base_model,
                weights = numerics.weights,
                arithmetic = numerics.arithmetic(),
                "model is loaded"
            );
        }
        scheduler.compute_with(engine.numerics());
        let with_files = |model: &BaseModel| (model.clone(), files.get(&model.name).cloned().unwrap_or_default());
        let published: Vec<_> = models.iter().map(with_files).collect();
        when_reachable(|| scheduler.put_base_models(published.clone())).await?;
        let workspace = Workspace::open(storage.clone(), &config.data_dir, config.storage_cache_bytes)
            .map_err(|error| format!("--data-dir: {}: {error}", config.data_dir.display()))?;
        let workspace = match folders {
            Some(ranks) => workspace.with_ranks(Arc::new(ranks)),
            None => workspace,
        };
        let Images { threads, memory: image_memory, limits, .. } = config.images;
        let images = Arc::new(ModelImages::new(&models, limits));
        let pool = PoolSettings { threads, memory: image_memory, limits: limits.image };
        let deps = WorkerDeps {
            engine,
            workspace,
            runtime: Handle::current(),
            random: system_random(),
            images: Arc::clone(&images),
            image_pool: ImagePool::start(pool)?,
            image_memory,
        };
        let worker = worker::spawn(scheduler.clone(), deps)?;
        scheduler.prefetch_with(worker::prefetch(Arc::clone(&preparer), images));
        let plan = memory.plan();
        scheduler.plan_memory_with(memory);
        // From here on others leave runs and samples to it.
        when_reachable(|| scheduler.start_worker()).await?;
        Ok((Self { worker, preparer, memory: plan }, Models::new(models, &files)))
    }

    /// The check of requests' examples before their turn.
    pub(super) fn preparer(&self) -> Arc<dyn Prepare> {
        Arc::clone(&self.preparer)
    }

    /// The division of the engine's memory.
    pub(super) fn memory(&self) -> MemoryPlan {
        self.memory
    }

    /// Asks the executor to finish its current step.
    pub(super) fn stop(&self) {
        self.worker.stop();
    }

    /// Stops the executor and waits for its thread. A step that takes longer than [`LAST_STEP`] ends with the process.
    pub(super) async fn join(self) -> Result<(), Box<dyn Error>> {
        if !spawn_blocking(move || self.worker.join_within(LAST_STEP)).await? {
            tracing::warn!(
                "the engine's step takes long: it is aborted with the process and repeated after the next start"
            );
        }
        Ok(())
    }
}

fn load(config: Config) -> impl Future<Output = Result<Loaded, Box<dyn Error>>> {
    let loading = spawn_blocking(move || build_engine(&config));
    async move { Ok(loading.await??) }
}

/// Waits for a failure that ends the process, and returns it.
pub(super) async fn failed(executor: Option<&Executor>, scheduler: &Scheduler) -> String {
    tokio::select! {
        () = died(executor) => "the worker's thread ended unexpectedly; see the log for details".to_owned(),
        reason = scheduler.outdated() => reason.to_string(),
    }
}

/// Waits until the executor's thread ends by itself, which is an error.
async fn died(executor: Option<&Executor>) {
    match executor {
        None => pending().await,
        Some(executor) => {
            while !executor.worker.is_finished() {
                sleep(WATCH).await;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]
    use super::*;

    #[test]
    fn a_folder_that_cannot_be_made_is_named() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("file");
        fs::write(&file, "").unwrap();
        let refused = create_folder("--data-dir", &file.join("data")).unwrap_err();
        assert_eq!(refused, format!("--data-dir: {}: Not a directory (os error 20)", file.join("data").display()));
        assert_eq!(create_folder("--data-dir", &dir.path().join("a/b")), Ok(()));
    }
}
