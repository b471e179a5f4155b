//! Free space on the disks that the process writes to, and the reserve for acknowledged work: below it, saves, new runs
//! and large bodies are refused, and all other requests are accepted.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::counter::{ConstCounter, Counter};
use prometheus_client::metrics::gauge::ConstGauge;
use tokio::time::{MissedTickBehavior, interval};
use trainyard_scheduler::Database;
use trainyard_storage::Storage;

use crate::error::ApiError;

/// The time between two measurements.
const PERIOD: Duration = Duration::from_secs(1);
/// The reserve of a large disk, unless one is configured.
const RESERVE: u64 = 1 << 30;
/// Divisor of the capacity: on small disks, the reserve is 1/`RESERVE_PART` of it.
const RESERVE_PART: u64 = 20;
/// Once the reserve is used up, 1/`SLACK_PART` of it more must be free before requests are accepted again, so that the
/// state does not change with every file.
const SLACK_PART: u64 = 8;

/// The space of a file system.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Space {
    /// Bytes that this process may still write.
    pub free: u64,
    /// The capacity in bytes.
    pub total: u64,
}

/// Measures the file system that holds a path.
pub type Measure = Arc<dyn Fn(&Path) -> io::Result<Space> + Send + Sync>;

/// Asks the system for the space of a file system.
///
/// # Errors
/// Fails if the path does not exist.
pub fn space(path: &Path) -> io::Result<Space> {
    let found = rustix::fs::statvfs(path)?;
    let bytes = |blocks: u64| blocks.saturating_mul(found.f_frsize);
    Ok(Space { free: bytes(found.f_bavail), total: bytes(found.f_blocks) })
}

/// The disks of a process. Cheap to clone; all clones are the same.
#[derive(Clone)]
pub struct Disks(Arc<Inner>);

struct Inner {
    disks: Vec<Disk>,
    /// The reserve in bytes; `None` for the default, 0 for no reserve.
    reserve: Option<u64>,
    measure: Measure,
    refused: Counter,
}

/// A disk, named by its contents.
struct Disk {
    name: &'static str,
    path: PathBuf,
    free: AtomicU64,
    reserve: AtomicU64,
    low: AtomicBool,
}

impl fmt::Debug for Disks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.0.disks.iter().map(|disk| (disk.name, &disk.path))).finish()
    }
}

impl Disks {
    /// Returns the disks of this machine that hold a process's store, storage and data folder, with a reserve in bytes.
    pub fn of(database: &Database, storage: &Storage, data_dir: &Path, reserve: Option<u64>) -> Self {
        let mut paths = Vec::new();
        if let Database::Sqlite(file) = database {
            let folder = file.parent().filter(|folder| !folder.as_os_str().is_empty());
            paths.push(("database", folder.unwrap_or(Path::new(".")).to_owned()));
        }
        match storage.local(Path::new("")) {
            Some(folder) => paths.push(("storage", folder)),
            // Copies of objects in a bucket.
            None => paths.push(("work", data_dir.to_owned())),
        }
        Self::new(paths, reserve, Arc::new(space))
    }

    /// Returns disks by name and path, measured by `measure`.
    pub fn new(paths: Vec<(&'static str, PathBuf)>, reserve: Option<u64>, measure: Measure) -> Self {
        let disk = |(name, path)| Disk {
            name,
            path,
            free: AtomicU64::default(),
            reserve: AtomicU64::default(),
            low: AtomicBool::default(),
        };
        let disks = paths.into_iter().map(disk).collect();
        let disks = Self(Arc::new(Inner { disks, reserve, measure, refused: Counter::default() }));
        disks.look();
        disks
    }

    /// Measures the free space of all disks.
    pub fn look(&self) {
        for disk in &self.0.disks {
            match (self.0.measure)(&disk.path) {
                Ok(space) => disk.update(space, self.0.reserve),
                Err(error) => tracing::debug!(disk = disk.name, %error, "failed to measure a disk"),
            }
        }
    }

    /// Measures the disks every second until the process ends.
    pub async fn watch(self) {
        let mut ticks = interval(PERIOD);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            ticks.tick().await;
            let disks = self.clone();
            // A file system of the network may not answer.
            let _ = tokio::task::spawn_blocking(move || disks.look()).await;
        }
    }

    /// Returns whether the reserve of a disk is used up.
    pub fn is_low(&self) -> bool {
        self.low().is_some()
    }

    fn low(&self) -> Option<&Disk> {
        self.0.disks.iter().find(|disk| disk.low.load(Ordering::Relaxed))
    }

    /// Refuses requests that take much space while a reserve is used up.
    pub(crate) fn admit(&self) -> Result<(), ApiError> {
        let Some(disk) = self.low() else { return Ok(()) };
        self.0.refused.inc();
        Err(ApiError::NoSpace(format!(
            "the server's disk is almost full ({}): saves, new runs and large requests must wait until space is free",
            disk.name
        )))
    }
}

impl Disk {
    fn update(&self, space: Space, reserve: Option<u64>) {
        let reserve = reserve.unwrap_or(RESERVE.min(space.total / RESERVE_PART));
        self.free.store(space.free, Ordering::Relaxed);
        self.reserve.store(reserve, Ordering::Relaxed);
        let was_low = self.low.load(Ordering::Relaxed);
        let enough = if was_low { reserve.saturating_add(reserve / SLACK_PART) } else { reserve };
        let low = space.free < enough;
        self.low.store(low, Ordering::Relaxed);
        let (disk, free_mib, reserve_mib) = (self.name, space.free >> 20, reserve >> 20);
        match (was_low, low) {
            (false, true) => tracing::warn!(
                disk,
                path = %self.path.display(),
                free_mib,
                reserve_mib,
                "disk almost full: saves, new runs and large requests are refused"
            ),
            (true, false) => {
                tracing::info!(disk, free_mib, reserve_mib, "disk has space again: everything is accepted")
            }
            _ => {}
        }
    }
}

impl Collector for Disks {
    fn encode(&self, mut encoder: DescriptorEncoder) -> Result<(), fmt::Error> {
        type Value = fn(&Disk) -> u64;
        let gauges: [(&str, &str, Value); 3] = [
            ("disk_free_bytes", "Free space", |disk| disk.free.load(Ordering::Relaxed)),
            ("disk_reserve_bytes", "Space that is reserved for accepted work", |disk| {
                disk.reserve.load(Ordering::Relaxed)
            }),
            ("disk_low", "Whether less than the reserve is free", |disk| disk.low.load(Ordering::Relaxed).into()),
        ];
        for (name, help, value) in gauges {
            let mut family = encoder.encode_descriptor(name, help, None, MetricType::Gauge)?;
            for disk in &self.0.disks {
                let gauge = ConstGauge::new(i64::try_from(value(disk)).unwrap_or(i64::MAX));
                gauge.encode(family.encode_family(&[("disk", disk.name)])?)?;
            }
        }
        let refused = ConstCounter::new(self.0.refused.get());
        let help = "Requests refused because a disk is almost full";
        refused.encode(encoder.encode_descriptor("disk_refusals", help, None, MetricType::Counter)?)
    }
}

#[cfg(test)]
pub(crate) mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]
    use super::*;

    /// A disk called `storage` with this much free space, which a test can change.
    pub(crate) fn gauged(total: u64, reserve: Option<u64>) -> (Disks, Arc<AtomicU64>) {
        let free = Arc::new(AtomicU64::new(total));
        let read = Arc::clone(&free);
        let measure: Measure = Arc::new(move |_| Ok(Space { free: read.load(Ordering::SeqCst), total }));
        (Disks::new(vec![("storage", "/".into())], reserve, measure), free)
    }

    fn low_at(disks: &Disks, free: &AtomicU64, bytes: u64) -> bool {
        free.store(bytes, Ordering::SeqCst);
        disks.look();
        disks.is_low()
    }

    #[test]
    fn a_reserve_ends_with_some_slack() {
        let (disks, free) = gauged(1 << 40, Some(800));
        assert!(!low_at(&disks, &free, 800) && disks.admit().is_ok());
        assert!(low_at(&disks, &free, 799) && disks.admit().is_err());
        assert!(low_at(&disks, &free, 899), "not at once");
        assert!(!low_at(&disks, &free, 900));
        assert!(!low_at(&disks, &free, 800));
    }

    #[test]
    fn the_default_fits_the_disk_and_none_is_none() {
        let (large, free) = gauged(1 << 40, None);
        assert!(!low_at(&large, &free, 1 << 30) && low_at(&large, &free, (1 << 30) - 1));
        let (small, free) = gauged(100 << 20, None);
        assert!(!low_at(&small, &free, 5 << 20) && low_at(&small, &free, (5 << 20) - 1));
        let (none, free) = gauged(1 << 40, Some(0));
        assert!(!low_at(&none, &free, 0));
    }

    #[test]
    fn a_disk_of_this_machine_is_measured() {
        let folder = tempfile::tempdir().unwrap();
        let space = space(folder.path()).unwrap();
        assert!(space.free > 0 && space.free <= space.total, "{space:?}");
        let database = Database::Sqlite(folder.path().join("t.db"));
        let disks = Disks::of(&database, &Storage::folder(folder.path()), folder.path(), None);
        assert_eq!(disks.0.disks.iter().map(|disk| disk.name).collect::<Vec<_>>(), ["database", "storage"]);
        let disks = Disks::of(&Database::Postgres(String::new()), &Storage::in_memory(), folder.path(), None);
        assert_eq!(disks.0.disks.iter().map(|disk| disk.name).collect::<Vec<_>>(), ["work"]);
        assert!(disks.0.disks.iter().all(|disk| disk.free.load(Ordering::Relaxed) > 0));
    }
}
