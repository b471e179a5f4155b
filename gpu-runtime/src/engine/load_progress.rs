//! Lines in the log while weights are read.

use std::time::{Duration, Instant};

/// Time between two lines.
const EVERY: Duration = Duration::from_secs(5);

/// The weights of a model that a rank reads. Models that take less than [`EVERY`] have no lines.
pub(super) struct LoadProgress<'a> {
    model: &'a str,
    parameters: usize,
    done: usize,
    started: Instant,
    told: Instant,
}

impl<'a> LoadProgress<'a> {
    /// Begins to read a number of parameters.
    pub(super) fn begin(model: &'a str, parameters: usize) -> Self {
        let started = Instant::now();
        Self { model, parameters, done: 0, started, told: started }
    }

    /// Counts a parameter, before which `bytes` were read in all.
    pub(super) fn read(&mut self, bytes: u64) {
        self.done += 1;
        if self.told.elapsed() >= EVERY {
            self.told = Instant::now();
            let Self { model, parameters, done, .. } = *self;
            let (mib, rate) = self.rate(bytes);
            tracing::info!(model, "reading weights: {done} of {parameters} parameters, {mib} MiB, {rate} MiB/s");
        }
    }

    /// Ends the lines of a model that had any.
    pub(super) fn end(&self, bytes: u64) {
        if self.told > self.started {
            let (model, seconds) = (self.model, self.started.elapsed().as_secs());
            let (mib, rate) = self.rate(bytes);
            tracing::info!(model, "weights are read: {mib} MiB in {seconds} s, {rate} MiB/s");
        }
    }

    /// MiB, and MiB per second.
    fn rate(&self, bytes: u64) -> (u64, u64) {
        let mib = bytes >> 20;
        (mib, (mib as f64 / self.started.elapsed().as_secs_f64().max(1e-3)) as u64)
    }
}
