//! Injected faults: the n-th allocation, launch, page-locked allocation or recorded event fails.

use std::path::PathBuf;

#[derive(Debug, Clone, Default)]
pub(crate) struct Faults {
    allocations: Countdown,
    launches: Countdown,
    /// Allocations of page-locked memory that fail.
    pinned: Countdown,
    /// Records of events that fail.
    events: Countdown,
    /// `CUDASIM_FAULT_FILE`: file in which another program writes faults for this process.
    file: Option<PathBuf>,
}

/// Range of calls that fail.
#[derive(Debug, Clone, Copy, Default)]
struct Countdown {
    /// Number of calls that succeed before.
    before: u64,
    /// Number of calls that fail then.
    failing: u64,
}

impl Countdown {
    /// Makes `count` calls fail, from the `nth` from now on, counted from 1; 0 for none.
    fn new(nth: u64, count: u64) -> Self {
        nth.checked_sub(1).map_or_else(Self::default, |before| Self { before, failing: count })
    }

    /// Whether this one fails.
    fn fires(&mut self) -> bool {
        if self.before > 0 {
            self.before -= 1;
            return false;
        }
        let fires = self.failing > 0;
        self.failing -= u64::from(fires);
        fires
    }
}

impl Faults {
    /// Each counts from 1: `Some(1)` fails the first one.
    pub(crate) fn new(allocation: Option<u64>, launch: Option<u64>, file: Option<PathBuf>) -> Self {
        let countdown = |nth: Option<u64>| Countdown::new(nth.unwrap_or(0), 1);
        Self { allocations: countdown(allocation), launches: countdown(launch), file, ..Self::default() }
    }

    /// Whether this allocation fails.
    pub(crate) fn allocation(&mut self) -> bool {
        self.read_file();
        self.allocations.fires()
    }

    /// Whether this launch fails.
    pub(crate) fn launch(&mut self) -> bool {
        self.read_file();
        self.launches.fires()
    }

    /// Whether this allocation of page-locked memory fails.
    pub(crate) fn pinned(&mut self) -> bool {
        self.read_file();
        self.pinned.fires()
    }

    /// Whether this record of an event fails.
    pub(crate) fn event(&mut self) -> bool {
        self.read_file();
        self.events.fires()
    }

    /// Lets the `nth` allocation from now fail; 0 for none.
    pub(crate) fn set_allocation(&mut self, nth: u64) {
        self.allocations = Countdown::new(nth, 1);
    }

    /// Lets the `nth` launch from now fail; 0 for none.
    pub(crate) fn set_launch(&mut self, nth: u64) {
        self.launches = Countdown::new(nth, 1);
    }

    /// Makes `count` allocations of page-locked memory fail, from the `nth` from now on; 0 for none.
    pub(crate) fn set_pinned(&mut self, nth: u64, count: u64) {
        self.pinned = Countdown::new(nth, count);
    }

    /// Lets the `nth` record of an event from now fail; 0 for none.
    pub(crate) fn set_event(&mut self, nth: u64) {
        self.events = Countdown::new(nth, 1);
    }

    /// Reads the faults in the file, if it exists, and removes it: lines of `allocation NTH COUNT`, `pinned NTH COUNT`,
    /// `launch NTH` or `event NTH`.
    fn read_file(&mut self) {
        let Some(path) = &self.file else { return };
        let Ok(text) = std::fs::read_to_string(path) else { return };
        if let Err(error) = std::fs::remove_file(path) {
            eprintln!("cuda-sim: {} is ignored, as it cannot be removed: {error}", path.display());
            return;
        }
        for line in text.lines() {
            let words: Vec<&str> = line.split_whitespace().collect();
            let number = |at: usize| words.get(at).and_then(|word| word.parse::<u64>().ok());
            match (words.first().copied(), number(1)) {
                (Some("allocation"), Some(nth)) => self.allocations = Countdown::new(nth, number(2).unwrap_or(1)),
                (Some("pinned"), Some(nth)) => self.pinned = Countdown::new(nth, number(2).unwrap_or(1)),
                (Some("event"), Some(nth)) => self.events = Countdown::new(nth, 1),
                (Some("launch"), Some(nth)) => self.launches = Countdown::new(nth, 1),
                _ => eprintln!("cuda-sim: {}: not a fault: {line}", path.display()),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_nth_fails_once() {
        let mut faults = Faults::new(Some(2), None, None);
        assert_eq!([faults.allocation(), faults.allocation(), faults.allocation()], [false, true, false]);
        assert!(!faults.launch());
        faults.set_launch(1);
        assert_eq!([faults.launch(), faults.launch()], [true, false]);
        faults.set_launch(0);
        assert!(!faults.launch());
    }

    #[test]
    fn a_file_says_what_fails_from_now_on() {
        let path = std::env::temp_dir().join(format!("cuda-sim-faults-{}", std::process::id()));
        let mut faults = Faults::new(None, None, Some(path.clone()));
        assert!(!faults.allocation() && !faults.launch());
        assert!(std::fs::write(&path, "allocation 2 2\nlaunch 1\nnonsense\n").is_ok());
        assert_eq!([(); 4].map(|()| faults.allocation()), [false, true, true, false]);
        assert!(!path.exists(), "a file is read once");
        assert_eq!([faults.launch(), faults.launch()], [true, false]);
        assert!(std::fs::write(&path, "pinned 1 2\nevent 2").is_ok());
        assert_eq!([(); 3].map(|()| faults.pinned()), [true, true, false]);
        assert_eq!([(); 3].map(|()| faults.event()), [false, true, false]);
    }
}
