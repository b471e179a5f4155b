//! `trainyard backup` and `trainyard restore`: copy store and storage to a folder, and restore them from it.

use std::error::Error;
use std::io::{self, Write};
use std::path::Path;

use trainyard_scheduler::{Backup, Database, Manifest, Restore};
use trainyard_storage::Storage;

use super::serve::SIGNING_KEY_FILE;
use super::shutdown::Signals;
use super::{logging, process};
use crate::config::{BackupFlags, LogFormat, RestoreFlags, Stores, size};

/// Takes a backup, or checks one, and prints a summary.
pub(super) fn backup(flags: BackupFlags) -> Result<(), Box<dyn Error>> {
    logging::start(None, LogFormat::default())?;
    let manifest = match (&flags.verify, &flags.to) {
        (Some(backup), _) => trainyard_scheduler::verify_backup(backup)?,
        (None, Some(to)) => take(&flags, to)?,
        (None, None) => return Err("--to: missing; pass an empty or new folder for the backup".into()),
    };
    report(&manifest)
}

fn take(flags: &BackupFlags, to: &Path) -> Result<Manifest, Box<dyn Error>> {
    let stores = Stores::resolve(flags.store.clone())?;
    let options = Backup {
        storage: Storage::open(&stores.storage).map_err(|error| format!("--storage: {error}"))?,
        database: stores.database,
        to: to.to_owned(),
        private: vec![stores.data_dir.join(SIGNING_KEY_FILE)],
        release: env!("CARGO_PKG_VERSION").to_owned(),
        allow_missing: flags.allow_missing,
    };
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let taken = runtime.block_on(async {
        let mut signals = Signals::new()?;
        let interrupted = async move {
            signals.next().await;
        };
        Ok::<_, io::Error>(trainyard_scheduler::backup(&options, interrupted).await)
    })?;
    Ok(taken?)
}

/// Restores a backup and prints a summary.
pub(super) fn restore(flags: RestoreFlags) -> Result<(), Box<dyn Error>> {
    logging::start(None, LogFormat::default())?;
    let stores = Stores::resolve(flags.store)?;
    process::create_folder("--data-dir", &stores.data_dir)?;
    let _lock = process::lock(&stores.data_dir)?;
    if let Database::Sqlite(path) = &stores.database
        && let Some(folder) = path.parent()
    {
        process::create_folder("--database-url", folder)?;
    }
    let options = Restore {
        storage: Storage::open(&stores.storage).map_err(|error| format!("--storage: {error}"))?,
        from: flags.from,
        database: stores.database,
        data_dir: stores.data_dir,
    };
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    report(&runtime.block_on(trainyard_scheduler::restore(&options))?)
}

fn report(manifest: &Manifest) -> Result<(), Box<dyn Error>> {
    let mut out = io::stdout();
    let (rows, files): (u64, usize) = (manifest.rows.values().sum(), manifest.files.len());
    let size = size::rounded(manifest.bytes());
    writeln!(
        out,
        "complete: release {}, schema version {}, {rows} rows, {files} files, {size}",
        manifest.release, manifest.schema_version
    )?;
    for missing in &manifest.missing {
        writeln!(out, "missing: {missing}")?;
    }
    Ok(())
}
