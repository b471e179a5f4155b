//! How the previous process of a data directory ended: whether the machine ran out of memory while it ran.

use std::fs;
use std::io::{self, Write as _};
use std::path::Path;

/// The file in the data directory with the counter that a process read at its start.
const FILE: &str = "oom-kills";

/// The number of processes that the machine has killed for want of memory, since a boot.
#[derive(Clone, Debug, PartialEq, Eq)]
struct OomKills {
    boot: String,
    count: u64,
}

impl OomKills {
    /// Reads the kernel's counter; `None` where the kernel has none.
    fn now() -> Option<Self> {
        let boot = fs::read_to_string("/proc/sys/kernel/random/boot_id").ok()?.trim().to_owned();
        let count = count(&fs::read_to_string("/proc/vmstat").ok()?)?;
        Some(Self { boot, count })
    }

    /// Reads a file that `write` has written; `None` when it is malformed or missing.
    fn read(path: &Path) -> Option<Self> {
        let text = fs::read_to_string(path).ok()?;
        let (boot, count) = text.trim().split_once(' ')?;
        Some(Self { boot: boot.to_owned(), count: count.parse().ok()? })
    }

    fn write(&self, path: &Path) -> io::Result<()> {
        let temporary = path.with_extension("new");
        let mut file = fs::File::create(&temporary)?;
        writeln!(file, "{} {}", self.boot, self.count)?;
        file.sync_all()?;
        fs::rename(&temporary, path)
    }

    /// Returns whether a process was killed since `earlier`.
    fn grew_since(&self, earlier: &Self) -> bool {
        self.boot == earlier.boot && self.count > earlier.count
    }
}

/// Reads the counter `oom_kill` of `/proc/vmstat`; it counts the whole machine, in every memory control group.
fn count(vmstat: &str) -> Option<u64> {
    vmstat.lines().find_map(|line| line.strip_prefix("oom_kill "))?.trim().parse().ok()
}

/// Returns whether the machine has killed a process for want of memory since the former process of this data directory
/// started. Must be called once, at the start.
pub(super) fn ran_out_of_memory(data_dir: &Path) -> io::Result<bool> {
    OomKills::now().map_or(Ok(false), |now| compare(&data_dir.join(FILE), &now))
}

fn compare(path: &Path, now: &OomKills) -> io::Result<bool> {
    let earlier = OomKills::read(path);
    now.write(path)?;
    Ok(earlier.is_some_and(|earlier| now.grew_since(&earlier)))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]
    use super::*;

    fn kills(boot: &str, count: u64) -> OomKills {
        OomKills { boot: boot.to_owned(), count }
    }

    #[test]
    fn only_kills_since_the_former_start_count() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join(FILE);
        assert!(!compare(&path, &kills("a", 5)).unwrap(), "no former process exists");
        assert!(!compare(&path, &kills("a", 5)).unwrap());
        assert!(compare(&path, &kills("a", 6)).unwrap());
        assert!(!compare(&path, &kills("a", 6)).unwrap());
        assert!(!compare(&path, &kills("b", 9)).unwrap(), "the machine was restarted");
        fs::write(&path, "damaged").unwrap();
        assert!(!compare(&path, &kills("b", 10)).unwrap());
        assert!(compare(&path, &kills("b", 11)).unwrap());
    }

    #[test]
    fn the_counter_is_read_as_the_kernel_writes_it() {
        assert_eq!(count("pgfault 7\noom_kill 3\noom_killer 9\n"), Some(3));
        assert_eq!(count("pgfault 7\n"), None);
        assert!(!ran_out_of_memory(tempfile::tempdir().unwrap().path()).unwrap());
    }
}
