//! `trainyard worker`: the execution of requests alone.

use std::error::Error;
use std::io::{self, Write};

use super::logging;
use super::process::{self, Executor, Files};
use super::shutdown::Signals;
use crate::config::Config;

/// Works until a signal ends it.
pub(super) fn work(config: Config) -> Result<(), Box<dyn Error>> {
    logging::start(config.log_format);
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let result = runtime.block_on(run(config));
    runtime.shutdown_background();
    result
}

async fn run(config: Config) -> Result<(), Box<dyn Error>> {
    let mut signals = Signals::new()?;
    let files = Files::open(&config).await?;
    let scheduler = process::open_scheduler(&config, &files).await?;
    let (executor, models) = tokio::select! {
        started = Executor::start(&config, &scheduler, &files.storage) => started?,
        signal = signals.next() => {
            tracing::info!(signal, "ending before the models are loaded");
            scheduler.close().await;
            return Ok(());
        }
    };
    tracing::info!(models = models.list().len(), "ready");
    // Whoever started it may wait for this line; a closed standard output is no reason to stop.
    let _ = writeln!(io::stdout(), "Trainyard {} worker: ready", env!("CARGO_PKG_VERSION"));
    let died = tokio::select! {
        signal = signals.next() => {
            tracing::info!(signal, "finishing the step in flight");
            false
        }
        () = process::died(Some(&executor)) => true,
    };
    signals.exit_at_next();
    executor.join().await?;
    scheduler.close().await;
    if died {
        return Err("the worker's thread ended unexpectedly; the log has the details".into());
    }
    tracing::info!("stopped");
    Ok(())
}
