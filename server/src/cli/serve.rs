//! `trainyard serve`.

use std::error::Error;
use std::fs::{self, File, TryLockError};
use std::future::Future;
use std::io::{self, Write};
use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use tokio::net::TcpListener;
use tokio::runtime::Handle;
use tokio::sync::watch;
use tokio::task::{JoinHandle, spawn_blocking};
use tokio::time::{sleep, timeout};
use trainyard_scheduler::{Options, Scheduler, Storage, SystemClock, WorkerOptions};

use super::gate::Gate;
use super::shutdown::Signals;
use super::{banner, logging, sweep};
use crate::config::Config;
use crate::engine::{Loaded, build_engine};
use crate::state::{AppState, Limits, Setup, Shutdown, system_random};
use crate::worker::{self, Tools, WorkerHandle};
use crate::workspace::Workspace;
use crate::{api, hub, metrics};

/// How long requests that are being answered may take to finish.
const DRAIN: Duration = Duration::from_secs(10);

/// How often the worker's thread is looked after.
const WATCH: Duration = Duration::from_millis(500);

/// Serves until a signal ends it.
pub(super) fn serve(config: Config) -> Result<(), Box<dyn Error>> {
    logging::start(config.log_format);
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let result = runtime.block_on(run(config));
    // A model that is still loading would hold the runtime up.
    runtime.shutdown_background();
    result
}

async fn run(config: Config) -> Result<(), Box<dyn Error>> {
    let mut signals = Signals::new()?;
    fs::create_dir_all(&config.data_dir).map_err(|error| format!("--data-dir: {error}"))?;
    let _lock = lock(&config.data_dir)?;
    let storage = Storage::open(&config.storage).map_err(|error| format!("--storage: {error}"))?;
    storage.prepare("checkpoints").await.map_err(|error| format!("--storage: {error}"))?;
    let listener = TcpListener::bind((config.host, config.port))
        .await
        .map_err(|error| format!("cannot listen on {}:{}: {error}", config.host, config.port))?;
    let address = listener.local_addr()?;
    tracing::info!(%address, "listening; loading models");
    let scheduler = Scheduler::open(options(&config, storage.clone())).await?;
    let (stop, stopping) = Shutdown::channel();
    let gate = Gate::default();
    let http = serve_http(listener, gate.router(), stopping.clone());

    let loading = load(config.clone());
    let loaded = tokio::select! {
        loaded = loading => loaded?,
        signal = signals.next() => {
            tracing::info!(signal, "ending before the models are loaded");
            scheduler.close().await;
            return Ok(());
        }
    };
    let worker = open(&config, address, loaded, storage, &scheduler, stopping, &gate)?;
    let sweeping = tokio::spawn(sweep::sweep(scheduler.clone()));

    let worker_died = tokio::select! {
        signal = signals.next() => {
            tracing::info!(signal, "finishing what is in flight");
            false
        }
        () = finished(&worker) => true,
    };
    signals.exit_at_next();
    sweeping.abort();
    close(stop, http, worker, &scheduler).await?;
    if worker_died {
        return Err("the worker's thread ended unexpectedly; the log has the details".into());
    }
    tracing::info!("stopped");
    Ok(())
}

fn options(config: &Config, storage: Storage) -> Options {
    let models = config.models.iter().map(|model| model.name.clone()).collect();
    Options {
        worker: Some(WorkerOptions::new("local", models)),
        policies: config.policies.clone(),
        metrics_per_tenant: config.metrics_per_tenant,
        ..Options::new(config.database.clone(), storage)
    }
}

/// Keeps a second server away from the data.
fn lock(data_dir: &Path) -> Result<File, String> {
    let path = data_dir.join("lock");
    let file = File::create(&path).map_err(|error| format!("{}: {error}", path.display()))?;
    match file.try_lock() {
        Ok(()) => Ok(file),
        Err(TryLockError::WouldBlock) => Err(format!("--data-dir: another server is using {}", data_dir.display())),
        Err(TryLockError::Error(error)) => Err(format!("{}: {error}", path.display())),
    }
}

fn serve_http(listener: TcpListener, router: Router, stopping: Shutdown) -> JoinHandle<io::Result<()>> {
    let server = axum::serve(listener, router);
    tokio::spawn(async move { server.with_graceful_shutdown(async move { stopping.requested().await }).await })
}

fn load(config: Config) -> impl Future<Output = Result<Loaded, Box<dyn Error>>> {
    let loading = spawn_blocking(move || build_engine(&config));
    async move { Ok(loading.await??) }
}

/// Starts the worker and lets the API take over from the gate.
fn open(
    config: &Config,
    address: SocketAddr,
    loaded: Loaded,
    storage: Storage,
    scheduler: &Scheduler,
    shutdown: Shutdown,
    gate: &Gate,
) -> Result<WorkerHandle, Box<dyn Error>> {
    let models = loaded.engine.models();
    let mut limits = Limits::default();
    limits.max_body_bytes = config.max_body_bytes.unwrap_or(limits.max_body_bytes);
    let state = AppState::new(Setup {
        scheduler: scheduler.clone(),
        models: models.clone(),
        keys: config.keys.clone(),
        limits,
        shutdown,
        data_dir: config.data_dir.clone(),
        storage: storage.clone(),
        clock: Arc::new(SystemClock),
        random: system_random(),
        public_url: config.public_url.clone(),
    })?;
    let tools = Tools {
        engine: loaded.engine,
        workspace: Workspace::open(storage, &config.data_dir, config.storage_cache_bytes)?,
        runtime: Handle::current(),
        random: system_random(),
    };
    let worker = worker::spawn(scheduler.clone(), tools)?;
    state.set_ready();
    let router = Router::new()
        .nest("/hf", hub::router(Arc::new(loaded.files)))
        .merge(metrics::router(Arc::clone(&state.metrics), scheduler.clone(), config.metrics_access.clone()))
        .fallback_service(api::router(state));
    gate.open(router);
    tracing::info!(%address, models = models.len(), "ready");
    // A closed standard output is no reason to stop serving.
    let _ = io::stdout().write_all(banner::banner(config, address, &models).as_bytes());
    Ok(worker)
}

/// Returns when the worker's thread ends by itself, which it never should.
async fn finished(worker: &WorkerHandle) {
    while !worker.is_finished() {
        sleep(WATCH).await;
    }
}

async fn close(
    stop: watch::Sender<bool>,
    http: JoinHandle<io::Result<()>>,
    worker: WorkerHandle,
    scheduler: &Scheduler,
) -> Result<(), Box<dyn Error>> {
    stop.send_replace(true);
    worker.stop();
    let abort = http.abort_handle();
    match timeout(DRAIN, http).await {
        Ok(served) => served??,
        Err(_) => {
            abort.abort();
            tracing::warn!("some requests were not answered in time");
        }
    }
    spawn_blocking(move || worker.join()).await?;
    scheduler.close().await;
    Ok(())
}
