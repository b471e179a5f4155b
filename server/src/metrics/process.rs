//! Metrics of the process from its system, under the names that Prometheus clients share.

use std::fmt;
use std::fs;
use std::path::{Path, PathBuf};

use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric};
use prometheus_client::metrics::counter::ConstCounter;
use prometheus_client::metrics::gauge::ConstGauge;
use trainyard_http::open_files;

/// The unit in which the kernel counts the time of processes, whatever its own clock is.
const TICKS_PER_SECOND: f64 = 100.0;

/// Reads `/proc` at each scrape; leaves out values that it lacks.
#[derive(Debug)]
pub(super) struct ProcessCollector {
    proc: PathBuf,
}

impl Default for ProcessCollector {
    fn default() -> Self {
        Self { proc: "/proc".into() }
    }
}

impl Collector for ProcessCollector {
    fn encode(&self, mut encoder: DescriptorEncoder) -> Result<(), fmt::Error> {
        let mut write = |name: &str, help: &str, metric: &dyn EncodeMetric| {
            metric.encode(encoder.encode_descriptor(name, help, None, metric.metric_type())?)
        };
        let own = self.proc.join("self");
        let times = Times::read(&self.proc);
        if let Some(bytes) = resident_bytes(&own) {
            write("process_resident_memory_bytes", "Resident memory", &ConstGauge::new(bytes))?;
        }
        if let Some(seconds) = times.as_ref().map(|times| times.processor) {
            write("process_cpu_seconds", "Processor time, of the user and of the system", &ConstCounter::new(seconds))?;
        }
        if let Some(seconds) = times.map(|times| times.started) {
            let help = "When the process started, in seconds since the epoch";
            write("process_start_time_seconds", help, &ConstGauge::new(seconds))?;
        }
        if let Ok(open) = fs::read_dir(own.join("fd")) {
            // One is that of the folder.
            let open = i64::try_from(open.count()).unwrap_or(i64::MAX);
            write("process_open_fds", "Open files and connections", &ConstGauge::new(open.saturating_sub(1)))?;
        }
        if let Some(most) = most_files(&own) {
            write("process_max_fds", "Maximum number of open files and connections", &ConstGauge::new(most))?;
        }
        Ok(())
    }
}

fn resident_bytes(own: &Path) -> Option<i64> {
    let status = fs::read_to_string(own.join("status")).ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
    let kib: i64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    kib.checked_mul(1 << 10)
}

fn most_files(own: &Path) -> Option<i64> {
    open_files::limit(own)?.parse().ok()
}

/// Times of the process in seconds.
struct Times {
    processor: f64,
    /// The start of the process, in seconds since the epoch.
    started: f64,
}

impl Times {
    fn read(proc: &Path) -> Option<Self> {
        let stat = fs::read_to_string(proc.join("self/stat")).ok()?;
        // The name before them, in parentheses, may contain anything.
        let fields: Vec<&str> = stat.rsplit_once(')')?.1.split_whitespace().collect();
        let seconds = |field: usize| Some(fields.get(field)?.parse::<f64>().ok()? / TICKS_PER_SECOND);
        let of_machine = fs::read_to_string(proc.join("stat")).ok()?;
        let booted: f64 = of_machine.lines().find_map(|line| line.strip_prefix("btime "))?.trim().parse().ok()?;
        Some(Self { processor: seconds(11)? + seconds(12)?, started: booted + seconds(19)? })
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]
    use std::time::SystemTime;

    use prometheus_client::registry::Registry;

    use super::*;

    fn text(proc: &Path) -> String {
        let (mut registry, mut text) = (Registry::default(), String::new());
        registry.register_collector(Box::new(ProcessCollector { proc: proc.to_owned() }));
        prometheus_client::encoding::text::encode(&mut text, &registry).unwrap();
        text
    }

    fn value(text: &str, name: &str) -> f64 {
        text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' ')).unwrap().parse().unwrap()
    }

    #[test]
    fn this_process_is_described() {
        let text = text(Path::new("/proc"));
        let now = SystemTime::UNIX_EPOCH.elapsed().unwrap().as_secs_f64();
        let started = value(&text, "process_start_time_seconds");
        assert!(started > now - 86_400.0 * 30.0 && started < now + 2.0, "{text}");
        assert!(value(&text, "process_resident_memory_bytes") > f64::from(1 << 20), "{text}");
        let open = value(&text, "process_open_fds");
        assert!(open >= 3.0 && open <= value(&text, "process_max_fds"), "{text}");
    }

    #[test]
    fn what_the_system_says_is_read() {
        let root = tempfile::tempdir().unwrap();
        let own = root.path().join("self");
        fs::create_dir_all(own.join("fd")).unwrap();
        fs::write(own.join("fd/0"), "").unwrap();
        fs::write(own.join("fd/1"), "").unwrap();
        fs::write(own.join("status"), "Name:\tx\nVmRSS:\t    2048 kB\n").unwrap();
        fs::write(own.join("limits"), "Limit  Soft Limit  Hard Limit  Units\nMax open files  1024  4096  files\n")
            .unwrap();
        let stat = "7 (a ) name) S 1 7 7 0 -1 4194560 1 0 0 0 150 50 0 0 20 0 9 0 12345 1 2";
        fs::write(own.join("stat"), stat).unwrap();
        fs::write(root.path().join("stat"), "cpu 1 2 3\nbtime 1700000000\n").unwrap();
        let text = text(root.path());
        for (name, expected) in [
            ("process_resident_memory_bytes", 2_097_152.0),
            ("process_max_fds", 1_024.0),
            ("process_open_fds", 1.0),
            ("process_cpu_seconds_total", 2.0),
            ("process_start_time_seconds", 1_700_000_123.45),
        ] {
            assert_eq!(value(&text, name), expected, "{text}");
        }
        assert!(!super::tests::text(Path::new("/nothing")).contains("process_"));
    }
}
