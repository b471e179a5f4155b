//! The data folder: whether it is writable, how much space is free, and how long a write takes to be durable.

use std::fs::{self, File};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::process;
use std::time::{Duration, Instant};

use super::Check;
use crate::config::size;
use crate::disk::space;

const GROUP: &str = "disk";
const WRITES: usize = 9;
/// Free bytes below which a server soon fails; [`FEW_FREE`] is the limit for a warning.
const LEAST_FREE: u64 = 512 << 20;
const FEW_FREE: u64 = 8 << 30;
/// The sync latency from which on there is a warning: every commit waits for a sync at least once.
const SLOW_SYNC: Duration = Duration::from_millis(25);

pub(super) fn check(data_dir: &Path) -> Vec<Check> {
    let Some(folder) = existing(data_dir) else {
        return vec![Check::failure(GROUP, "data folder", data_dir.display().to_string(), "pass another --data-dir")];
    };
    let mut checks = Vec::new();
    let there = folder == data_dir;
    let latency = sync_latency(&folder);
    checks.push(match &latency {
        Ok(_) if there => Check::ok(GROUP, "data folder", data_dir.display().to_string()),
        Ok(_) => Check::ok(GROUP, "data folder", format!("{}, which will be created at the start", data_dir.display())),
        Err(error) => {
            let advice = format!("let the server's user write to {}, or pass another --data-dir", folder.display());
            Check::failure(GROUP, "data folder", format!("{}: {error}", folder.display()), advice)
        }
    });
    checks.push(match space(&folder) {
        Ok(space) => free(space.free),
        Err(error) => Check::warning(GROUP, "free space", error.to_string(), "check it with df"),
    });
    checks.extend(latency.ok().map(sync));
    checks
}

/// Returns the folder itself, or its nearest existing parent.
fn existing(folder: &Path) -> Option<PathBuf> {
    let above = folder.ancestors().map(|path| if path.as_os_str().is_empty() { Path::new(".") } else { path });
    above.into_iter().find(|path| path.is_dir()).map(Path::to_owned)
}

/// Measures the median latency of several durable writes of a page to a new file, which is removed.
fn sync_latency(folder: &Path) -> io::Result<Duration> {
    let path = folder.join(format!(".doctor-{}", process::id()));
    let mut file = File::options().write(true).create_new(true).open(&path)?;
    let mut times = Vec::with_capacity(WRITES);
    let written = (0..WRITES).try_for_each(|_| {
        let start = Instant::now();
        file.write_all(&[0; 4096])?;
        file.sync_all()?;
        times.push(start.elapsed());
        Ok(())
    });
    fs::remove_file(&path)?;
    written.map(|()| median(times))
}

/// Returns the median of at least one duration.
pub(super) fn median(mut times: Vec<Duration>) -> Duration {
    times.sort_unstable();
    times.get(times.len() / 2).copied().unwrap_or_default()
}

fn free(bytes: u64) -> Check {
    let value = size::budget(bytes);
    let advice = "free space, or move the data folder: without space, no request can be accepted";
    match bytes {
        0..LEAST_FREE => Check::failure(GROUP, "free space", value, advice),
        LEAST_FREE..FEW_FREE => Check::warning(GROUP, "free space", value, advice),
        _ => Check::ok(GROUP, "free space", value),
    }
}

fn sync(latency: Duration) -> Check {
    let value = format!("{:.1} ms, the median of {WRITES} writes", latency.as_secs_f64() * 1e3);
    if latency > SLOW_SYNC {
        let advice = "every commit waits for it: use a local disk with a cache that survives power failures";
        return Check::warning(GROUP, "sync latency", value, advice);
    }
    Check::ok(GROUP, "sync latency", value)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]
    use super::super::Status;
    use super::*;

    #[test]
    fn little_space_and_slow_syncs_are_reported() {
        assert_eq!(free(100 << 20).status, Status::Failure);
        assert_eq!(free(2 << 30).status, Status::Warning);
        assert_eq!(free(1 << 40).status, Status::Ok);
        assert_eq!(sync(Duration::from_millis(2)).status, Status::Ok);
        assert_eq!(sync(Duration::from_millis(90)).status, Status::Warning);
    }

    #[test]
    fn a_folder_is_measured_and_left_as_it_was() {
        let dir = tempfile::tempdir().unwrap();
        let status = |path: &Path| check(path).iter().map(|check| check.status).max().unwrap();
        assert!(status(dir.path()) < Status::Failure);
        let below = dir.path().join("not/there");
        assert!(check(&below)[0].value.contains("will be created at the start"));
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 0);
        let file = dir.path().join("file");
        fs::write(&file, "").unwrap();
        assert_eq!(check(Path::new("/proc"))[0].status, Status::Failure, "nobody can write there");
    }
}
