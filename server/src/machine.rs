//! The memory of the machine, or of the container.

use std::fs;
use std::path::{Path, PathBuf};

/// Bytes of memory that this process may use: the smaller of the machine's memory and the limits of its cgroups
/// (version 2 or 1). `None` where the system does not tell.
pub(crate) fn memory_bytes() -> Option<u64> {
    memory_under(Path::new("/"))
}

/// Reads [`memory_bytes`] from a file system with this root.
fn memory_under(root: &Path) -> Option<u64> {
    let cgroups = fs::read_to_string(root.join("proc/self/cgroup")).unwrap_or_default();
    let limits = cgroups.lines().flat_map(|line| cgroup_limits(root, line));
    physical(root).into_iter().chain(limits).min()
}

/// Reads `MemTotal` of `/proc/meminfo`.
fn physical(root: &Path) -> Option<u64> {
    let text = fs::read_to_string(root.join("proc/meminfo")).ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix("MemTotal:"))?;
    let kib: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    kib.checked_mul(1 << 10)
}

/// Reads the limits of a cgroup, given as a line of `/proc/self/cgroup`, and of its parents.
fn cgroup_limits(root: &Path, line: &str) -> Vec<u64> {
    let mut fields = line.splitn(3, ':').skip(1);
    let (Some(controllers), Some(path)) = (fields.next(), fields.next()) else { return Vec::new() };
    let (mount, file) = match controllers {
        "" => ("sys/fs/cgroup", "memory.max"),
        _ if controllers.split(',').any(|name| name == "memory") => ("sys/fs/cgroup/memory", "memory.limit_in_bytes"),
        _ => return Vec::new(),
    };
    let relative = PathBuf::from(path.trim_start_matches('/'));
    // In a container the path may be that of the host; then only the mount itself exists.
    let limit = |folder: &Path| {
        let text = fs::read_to_string(root.join(mount).join(folder).join(file)).ok()?;
        text.trim().parse().ok()
    };
    relative.ancestors().filter_map(limit).collect()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]
    use super::*;

    /// The memory limit on a file system with these files.
    fn memory(files: &[(&str, &str)]) -> Option<u64> {
        let root = tempfile::tempdir().unwrap();
        for (path, text) in files {
            let path = root.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        memory_under(root.path())
    }

    const MACHINE: (&str, &str) = ("proc/meminfo", "MemTotal:       16384 kB\nMemFree:        1 kB\n");

    #[test]
    fn the_smallest_limit_counts() {
        assert_eq!(memory(&[]), None);
        assert_eq!(memory(&[MACHINE]), Some(16 << 20));
        let v2 = ("proc/self/cgroup", "0::/a/b\n");
        assert_eq!(memory(&[MACHINE, v2, ("sys/fs/cgroup/a/b/memory.max", "max\n")]), Some(16 << 20));
        assert_eq!(memory(&[MACHINE, v2, ("sys/fs/cgroup/a/b/memory.max", "4096\n")]), Some(4096));
        assert_eq!(memory(&[MACHINE, v2, ("sys/fs/cgroup/a/memory.max", "8192\n")]), Some(8192), "of a cgroup above");
        let container = ("proc/self/cgroup", "0::/\n");
        assert_eq!(memory(&[MACHINE, container, ("sys/fs/cgroup/memory.max", "2048\n")]), Some(2048));
        assert_eq!(memory(&[v2, ("sys/fs/cgroup/a/b/memory.max", "999\n")]), Some(999));
        assert_eq!(memory(&[MACHINE, v2, ("sys/fs/cgroup/a/b/memory.max", "99999999999\n")]), Some(16 << 20));
    }

    #[test]
    fn version_1_has_a_hierarchy_for_memory() {
        let v1 = ("proc/self/cgroup", "5:cpu,cpuacct:/x\n4:memory:/docker/c\n0::/system\n");
        let limit = "sys/fs/cgroup/memory/docker/c/memory.limit_in_bytes";
        assert_eq!(memory(&[MACHINE, v1, (limit, "4096\n")]), Some(4096));
        // Without a limit it is the largest number of pages.
        assert_eq!(memory(&[MACHINE, v1, (limit, "9223372036854771712\n")]), Some(16 << 20));
        // In a container, the folder of its own cgroup is the mount.
        assert_eq!(memory(&[MACHINE, v1, ("sys/fs/cgroup/memory/memory.limit_in_bytes", "512\n")]), Some(512));
        assert_eq!(memory(&[MACHINE, ("proc/self/cgroup", "nonsense\n::\n")]), Some(16 << 20));
    }
}
