//! Figures of the operating system about this process and others. Linux only; `None` elsewhere.

use std::time::Instant;
use std::{fs, process};

/// Clock ticks per second in `/proc`: a constant of Linux's interface to programs.
const TICKS: f64 = 100.0;

/// Resets the peak of resident memory. If the kernel does not support that, the peak of the whole process remains.
pub(super) fn reset_peak_memory() {
    // Its failure is the documented fallback.
    let _ = fs::write("/proc/self/clear_refs", "5");
}

/// Returns the peak resident memory in MiB.
pub(super) fn peak_memory() -> Option<f64> {
    status("/proc/self/status", "VmHWM:")
}

/// Returns the resident memory of another process in MiB.
pub(super) fn memory_of(process: u32) -> Option<f64> {
    status(&format!("/proc/{process}/status"), "VmRSS:")
}

fn status(path: &str, label: &str) -> Option<f64> {
    let status = fs::read_to_string(path).ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix(label))?;
    let kib: f64 = line.trim().trim_end_matches("kB").trim_end().parse().ok()?;
    Some(kib / 1024.0)
}

/// Returns the load average of the last minute.
pub(super) fn load_average() -> Option<f64> {
    fs::read_to_string("/proc/loadavg").ok()?.split_whitespace().next()?.parse().ok()
}

/// Measures how many cores other processes keep busy.
pub(super) struct Neighbours {
    start: Instant,
    busy: Option<f64>,
}

impl Neighbours {
    pub(super) fn watch() -> Self {
        Self { start: Instant::now(), busy: others_busy() }
    }

    /// Returns the cores kept busy since [`Neighbours::watch`].
    pub(super) fn cores(&self) -> Option<f64> {
        let seconds = (others_busy()? - self.busy?) / TICKS;
        Some((seconds / self.start.elapsed().as_secs_f64()).max(0.0))
    }
}

/// Returns the ticks during which processors were busy with other processes.
fn others_busy() -> Option<f64> {
    let stat = fs::read_to_string("/proc/stat").ok()?;
    let fields = numbers(stat.lines().next()?.strip_prefix("cpu ")?);
    // user nice system idle iowait irq softirq steal
    let busy: f64 = fields.iter().take(8).sum::<f64>() - fields.get(3)? - fields.get(4)?;
    Some(busy - ticks_of(process::id())?)
}

/// Returns the processor time that a process has used, in seconds.
pub(super) fn busy_seconds(process: u32) -> Option<f64> {
    Some(ticks_of(process)? / TICKS)
}

fn ticks_of(process: u32) -> Option<f64> {
    let stat = fs::read_to_string(format!("/proc/{process}/stat")).ok()?;
    // The name, in parentheses, may contain spaces; user and system time are fields 14 and 15.
    let fields = numbers(stat.rsplit_once(')')?.1.trim_start().split_once(' ')?.1);
    Some(fields.get(10)? + fields.get(11)?)
}

fn numbers(text: &str) -> Vec<f64> {
    text.split_whitespace().map_while(|field| field.parse().ok()).collect()
}

#[cfg(test)]
#[cfg(target_os = "linux")]
mod tests {
    use super::{Neighbours, load_average, peak_memory};

    #[test]
    fn linux_answers() {
        assert!(peak_memory().is_some_and(|mib| mib > 1.0));
        assert!(load_average().is_some());
        assert!(Neighbours::watch().cores().is_some());
    }
}
