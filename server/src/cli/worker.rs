//! `trainyard worker`: only the execution of requests.

use std::error::Error;
use std::io::{self, Write};
use std::net::SocketAddr;
use std::sync::Arc;

use tokio::net::TcpListener;
use trainyard_http::listener;
use trainyard_http::shutdown::Shutdown;
use trainyard_http::tls::Tls;
use trainyard_scheduler::Scheduler;

use super::process::{self, Executor, Files};
use super::shutdown::Signals;
use super::{logging, memory, rank};
use crate::config::Config;
use crate::engine::describe_memory;
use crate::metrics::{self, Metrics, ProcessMetrics};

/// Works until a signal arrives.
pub(super) fn work(config: Config) -> Result<(), Box<dyn Error>> {
    if let Some(rank) = config.rank.clone().filter(|rank| rank.rank > 0) {
        return rank::follow(config, rank);
    }
    logging::start(config.log_level.as_deref(), config.log_format)?;
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let result = runtime.block_on(run(config));
    runtime.shutdown_background();
    result
}

/// Serves the metrics until the process ends.
async fn serve_metrics(
    address: SocketAddr,
    config: &Config,
    files: &Files,
    scheduler: &Scheduler,
    counted: &ProcessMetrics,
    tls: Option<Tls>,
    stopping: Shutdown,
) -> Result<(), Box<dyn Error>> {
    let socket = TcpListener::bind(address)
        .await
        .map_err(|error| format!("--metrics-addr: cannot listen on {address}: {error}"))?;
    let address = socket.local_addr()?;
    let metrics = Arc::new(Metrics::new(scheduler, counted, &files.disks));
    let router = metrics::router(metrics, scheduler.clone(), config.metrics_access.clone());
    tokio::spawn(listener::serve(socket, router, config.http.connections, tls, stopping));
    tracing::info!(%address, "serving metrics");
    Ok(())
}

async fn run(config: Config) -> Result<(), Box<dyn Error>> {
    let mut signals = Signals::new()?;
    let files = Files::open(&config).await?;
    let counted = ProcessMetrics::default();
    let tls_files = config.metrics_addr.and(config.tls.clone());
    let tls = tls_files.map(|files| Tls::open(files, counted.tls.clone())).transpose()?;
    let Some(scheduler) = process::open_scheduler_or_stop(&config, &files, &mut signals).await? else { return Ok(()) };
    let (executor, models) = tokio::select! {
        started = Executor::start(&config, &scheduler, &files.storage) => started?,
        signal = signals.next() => {
            tracing::info!(signal, "shutting down before the models are loaded");
            scheduler.close().await;
            return Ok(());
        }
    };
    let (stop, stopping) = Shutdown::channel();
    if let Some(address) = config.metrics_addr {
        serve_metrics(address, &config, &files, &scheduler, &counted, tls, stopping).await?;
    }
    tracing::info!(models = models.list().len(), memory = describe_memory(&executor.memory()), "ready");
    // The starting program may wait for this line; a closed standard output does not end the process.
    let _ = writeln!(io::stdout(), "Trainyard {} worker: ready", env!("CARGO_PKG_VERSION"));
    let trimming = tokio::spawn(memory::give_back(scheduler.clone()));
    tokio::spawn(files.disks.clone().watch());
    let failure = tokio::select! {
        signal = signals.next() => {
            tracing::info!(signal, "shutting down: finishing the current step");
            None
        }
        failure = process::failed(Some(&executor), &scheduler) => Some(failure),
    };
    signals.exit_at_next();
    if failure.is_none() {
        scheduler.drain(config.drain).await;
    }
    stop.send_replace(true);
    trimming.abort();
    executor.join().await?;
    scheduler.close().await;
    if let Some(failure) = failure {
        return Err(failure.into());
    }
    tracing::info!("stopped");
    Ok(())
}
