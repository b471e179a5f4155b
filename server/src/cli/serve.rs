//! `trainyard serve`: the API, with or without the execution of requests.

use std::error::Error;
use std::io::{self, Write};
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::middleware::from_fn_with_state;
use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio::time::{sleep, timeout};
use trainyard_gpu_runtime::load;
use trainyard_gpu_runtime::memory::keep_little;
use trainyard_http::listener;
use trainyard_http::shutdown::Shutdown;
use trainyard_http::tls::Tls;
use trainyard_protocol::{MemoryPlan, Prepare, TenantId};
use trainyard_scheduler::{Database, Scheduler};
use trainyard_storage::Storage;

use super::gate::Gate;
use super::process::{self, Executor, Files};
use super::reachable::when_reachable;
use super::shutdown::Signals;
use super::{banner, logging, maintenance, memory};
use crate::auth::{Authenticator, Keys, LOCAL_TENANT};
use crate::calls::{Calls, identify};
use crate::config::{Config, ConfigError, HubConfig, NamedPath, Role};
use crate::metrics::ProcessMetrics;
use crate::models::Models;
use crate::random::system_random;
use crate::signed_urls::Signer;
use crate::state::{AppState, Limits, Setup};
use crate::traces::Traces;
use crate::{api, auth, hub, metrics};

/// The time that open requests get to finish at a shutdown.
const DRAIN: Duration = Duration::from_secs(10);

/// The file in the data directory that contains the key of download URLs.
pub(super) const SIGNING_KEY_FILE: &str = "url-signing.key";

/// Serves until a signal arrives.
pub(super) fn serve(config: Config) -> Result<(), Box<dyn Error>> {
    logging::start(config.log_level.as_deref(), config.log_format)?;
    if config.role == Role::Api {
        keep_little();
    }
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let result = runtime.block_on(run(config));
    // A model that is still loading would hold the runtime up.
    runtime.shutdown_background();
    result
}

async fn run(config: Config) -> Result<(), Box<dyn Error>> {
    let mut signals = Signals::new()?;
    let files = Files::open(&config).await?;
    let counted = ProcessMetrics::default();
    let tls = config.tls.clone().map(|files| Tls::open(files, counted.tls.clone())).transpose()?;
    let traces = match &config.otlp_endpoint {
        Some(url) => Traces::open(url, counted.traces.clone(), system_random())?,
        None => Traces::default(),
    };
    let socket = TcpListener::bind((config.host, config.port))
        .await
        .map_err(|error| format!("cannot listen on {}:{}: {error}", config.host, config.port))?;
    let address = socket.local_addr()?;
    tracing::info!(%address, "listening; loading models");
    let Some(scheduler) = process::open_scheduler_or_stop(&config, &files, &mut signals).await? else { return Ok(()) };
    if let Err(error) = require_key(&config, &scheduler).await {
        scheduler.close().await;
        return Err(error);
    }
    let (stop, stopping) = Shutdown::channel();
    let gate = Gate::default();
    let http = tokio::spawn(listener::serve(
        socket,
        named(gate.router(), &traces),
        config.http.connections,
        tls,
        stopping.clone(),
    ));

    let starting = start(&config, &scheduler, &files.storage, &gate);
    let (models, executor) = tokio::select! {
        started = starting => started?,
        signal = signals.next() => {
            tracing::info!(signal, "shutting down before the models are loaded");
            scheduler.close().await;
            return Ok(());
        }
    };
    let preparer = executor.as_ref().map(Executor::preparer);
    let state = app_state(&config, &models, preparer, &files, &scheduler, counted, traces.clone(), stopping).await?;
    open(&config, address, state, &gate, executor.as_ref().map(Executor::memory));
    let maintaining = tokio::spawn(maintenance::maintain(scheduler.clone(), config.session_timeout));
    let trimming = tokio::spawn(memory::give_back(scheduler.clone()));
    tokio::spawn(files.disks.clone().watch());

    let failure = tokio::select! {
        signal = signals.next() => {
            tracing::info!(signal, "shutting down: finishing in-flight requests");
            None
        }
        failure = process::failed(executor.as_ref(), &scheduler) => Some(failure),
        () = models.follow(&scheduler), if executor.is_none() => None,
    };
    signals.exit_at_next();
    // Clients are served meanwhile: what they submit is stored.
    scheduler.begin_drain();
    sleep(config.drain_delay).await;
    if failure.is_none() && executor.is_some() {
        scheduler.drain(config.drain).await;
    }
    maintaining.abort();
    trimming.abort();
    close(stop, http, executor, &scheduler).await?;
    traces.close().await;
    if let Some(failure) = failure {
        return Err(failure.into());
    }
    tracing::info!("stopped");
    Ok(())
}

/// Refuses to serve others while nobody can have a key.
async fn require_key(config: &Config, scheduler: &Scheduler) -> Result<(), Box<dyn Error>> {
    let Some(exposure) = config.exposure else { return Ok(()) };
    let directory = scheduler.directory();
    if when_reachable(|| directory.has_keys()).await? { Ok(()) } else { Err(ConfigError::from(exposure).into()) }
}

/// Gives every request an id.
fn named(router: Router, traces: &Traces) -> Router {
    router.layer(from_fn_with_state(Calls { random: system_random(), records: traces.is_on() }, identify))
}

/// Loads the models and starts to execute requests; without execution, learns from the store which models workers
/// serve.
async fn start(
    config: &Config,
    scheduler: &Scheduler,
    storage: &Storage,
    gate: &Gate,
) -> Result<(Models, Option<Executor>), Box<dyn Error>> {
    if config.role == Role::Api {
        let models = Models::default();
        gate.wait_for_worker();
        tracing::info!("waiting for the models that workers register in the store");
        models.wait_for_first(scheduler).await;
        return Ok((models, None));
    }
    let (executor, models) = Executor::start(config, scheduler, storage).await?;
    Ok((models, Some(executor)))
}

async fn app_state(
    config: &Config,
    models: &Models,
    preparer: Option<Arc<dyn Prepare>>,
    files: &Files,
    scheduler: &Scheduler,
    process_metrics: ProcessMetrics,
    traces: Traces,
    shutdown: Shutdown,
) -> Result<AppState, Box<dyn Error>> {
    let mut limits = Limits::default();
    limits.bodies = config.http.bodies.clone();
    limits.max_body_bytes = config.max_body_bytes.unwrap_or(limits.max_body_bytes);
    limits.images = config.images.limits;
    limits.max_queued = config.max_queued_samples.unwrap_or(limits.max_queued);
    let (keys, clock) = (config.keys.clone(), scheduler.clock());
    seed_organisations(&keys, scheduler).await?;
    let auth = Authenticator::new(keys, config.tokens, scheduler.clone(), clock.clone())
        .trusting(config.issuer.clone())
        .behind(config.http.trusted_proxies.clone());
    Ok(AppState::new(Setup {
        keyed: when_reachable(|| auth.needs_keys()).await?,
        auth,
        scheduler: scheduler.clone(),
        models: models.clone(),
        preparer,
        limits,
        shutdown,
        storage: files.storage.clone(),
        clock,
        random: system_random(),
        public_url: config.public_url.clone(),
        https: config.tls.is_some(),
        process_metrics,
        traces,
        signer: signer(config, scheduler).await?,
        disks: files.disks.clone(),
        console: config.console,
        openapi: crate::openapi::json()?.into(),
    }))
}

/// Stores the tenants of the configuration file, so that they can have users and further keys.
async fn seed_organisations(keys: &Keys, scheduler: &Scheduler) -> Result<(), Box<dyn Error>> {
    let mut tenants = keys.tenants();
    if !keys.are_required() {
        tenants.push((TenantId::new(LOCAL_TENANT), true));
    }
    let directory = scheduler.directory();
    Ok(when_reachable(|| directory.seed_organisations(tenants.clone())).await?)
}

/// Replaces the gate by the API.
fn open(config: &Config, address: SocketAddr, state: AppState, gate: &Gate, memory: Option<MemoryPlan>) {
    let traces = state.traces.clone();
    if traces.is_on() {
        state.scheduler.observe_executions_with(Arc::new(move |executed| traces.executed(executed)));
    }
    state.set_ready();
    let (models, scheduler, keyed) = (state.models.clone(), state.scheduler.clone(), state.keyed);
    let own_host = from_fn_with_state(Arc::clone(&state.auth), auth::require_own_host);
    let router = Router::new()
        .nest("/hf", hub_router(config, &state))
        .merge(metrics::router(Arc::clone(&state.metrics), scheduler, config.metrics_access.clone()))
        .fallback_service(api::router(state))
        .layer(own_host);
    gate.open(router);
    let models = models.list();
    tracing::info!(%address, models = models.len(), "ready");
    // A closed standard output does not end the server.
    let _ = io::stdout().write_all(banner::banner(config, address, &models, memory, keyed).as_bytes());
}

/// Makes the router of the hub, for everybody or for callers with a key.
fn hub_router(config: &Config, state: &AppState) -> Router {
    let HubConfig { upstream, require_key, weights } = config.hub.clone();
    if weights {
        offer_weights(config, state);
    }
    let router = state.models.hub().router(upstream);
    if require_key { router.layer(from_fn_with_state(Arc::clone(&state.auth), auth::require_key)) } else { router }
}

/// Offers the weights of the models that this process loads.
fn offer_weights(config: &Config, state: &AppState) {
    if config.role == Role::Api {
        tracing::warn!("--hf-weights: an API server without a worker has no weights to offer");
    }
    for NamedPath { name, path } in &config.models {
        let found = load::location(path).map_err(|error| error.to_string());
        match found.and_then(|path| hub::weight_files(&path).map_err(|error| error.to_string())) {
            Ok(files) => state.models.hub().offer_weights(name, files),
            Err(error) => tracing::error!(model = name, error, "--hf-weights: failed to read the weights"),
        }
    }
}

/// Returns the signer of download URLs. All API servers share its key, so that each can check the others' URLs.
async fn signer(config: &Config, scheduler: &Scheduler) -> Result<Signer, Box<dyn Error>> {
    let path = config.data_dir.join(SIGNING_KEY_FILE);
    let own = Signer::open(&path).map_err(|error| format!("{}: {error}", path.display()))?;
    match config.database {
        Database::Sqlite(_) => Ok(own),
        Database::Postgres(_) => {
            let shared = when_reachable(|| scheduler.shared_secret("url-signing", own.key().to_vec())).await?;
            Ok(Signer::from_bytes(&shared)?)
        }
    }
}

async fn close(
    stop: watch::Sender<bool>,
    http: JoinHandle<()>,
    executor: Option<Executor>,
    scheduler: &Scheduler,
) -> Result<(), Box<dyn Error>> {
    stop.send_replace(true);
    if let Some(executor) = &executor {
        executor.stop();
    }
    let abort = http.abort_handle();
    match timeout(DRAIN, http).await {
        Ok(served) => served?,
        Err(_) => {
            abort.abort();
            tracing::warn!("shutdown: some HTTP requests were not answered in time");
        }
    }
    if let Some(executor) = executor {
        executor.join().await?;
    }
    scheduler.close().await;
    Ok(())
}
