//! Vector clocks: the operations of all streams that are known to be complete.

/// Number of each stream's operations that happened before.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Clock(Vec<u64>);

impl Clock {
    /// How many operations of a stream happened before.
    pub(crate) fn get(&self, stream: usize) -> u64 {
        self.0.get(stream).copied().unwrap_or(0)
    }

    pub(crate) fn set(&mut self, stream: usize, count: u64) {
        if self.0.len() <= stream {
            self.0.resize(stream + 1, 0);
        }
        self.0[stream] = count;
    }

    /// Whatever happened before either.
    pub(crate) fn join(&mut self, other: &Self) {
        for (stream, count) in other.0.iter().enumerate() {
            if *count > self.get(stream) {
                self.set(stream, *count);
            }
        }
    }
}
