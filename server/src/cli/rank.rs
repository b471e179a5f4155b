//! `trainyard worker --rank R`, where R is not 0: a process that computes with rank 0.

use std::error::Error;
use std::io::{self, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use tokio::runtime::Handle;
use tokio::task::spawn_blocking;
use trainyard_storage::Storage;

use super::logging;
use super::shutdown::Signals;
use crate::config::{Config, RankConfig};
use crate::engine;
use crate::rank_copies::RankCopies;

/// Follows rank 0 until it ends.
pub(super) fn follow(config: Config, rank: RankConfig) -> Result<(), Box<dyn Error>> {
    logging::start(config.log_level.as_deref(), config.log_format)?;
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let result = runtime.block_on(run(config, rank));
    runtime.shutdown_background();
    result
}

async fn run(config: Config, rank: RankConfig) -> Result<(), Box<dyn Error>> {
    let mut signals = Signals::new()?;
    let storage = Storage::open(&config.storage).map_err(|error| format!("--storage: {error}"))?;
    // Wrong settings are found before models are loaded.
    storage.prepare("checkpoints").await.map_err(|error| format!("--storage: {error}"))?;
    let copies = RankCopies::open(storage, &config.data_dir, rank.rank, Handle::current());
    let copies = copies.map_err(|error| format!("--data-dir: {error}"))?;
    let ready = Arc::new(AtomicBool::new(false));
    let (loaded, number) = (Arc::clone(&ready), rank.rank);
    let mut following = spawn_blocking(move || {
        engine::follow(&config, &rank, &copies, || {
            loaded.store(true, Ordering::Release);
            tracing::info!(rank = rank.rank, "ready");
            // The starting program may wait for this line; a closed standard output does not end the process.
            let _ = writeln!(io::stdout(), "Trainyard {} rank {}: ready", env!("CARGO_PKG_VERSION"), rank.rank);
        })
    });
    let signal = tokio::select! {
        ended = &mut following => return Ok(ended??),
        signal = signals.next() => signal,
    };
    if !ready.load(Ordering::Acquire) {
        tracing::info!(signal, rank = number, "shutting down before the models are loaded");
        return Ok(());
    }
    // Rank 0 gets the same signal, and still needs this rank for executing requests and for saving runs.
    tracing::info!(signal, rank = number, "shutting down when rank 0 has ended");
    signals.exit_at_next();
    Ok(following.await??)
}
