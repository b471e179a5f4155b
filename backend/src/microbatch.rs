//! Number of rows that a pass over examples should have.

/// Numbers of rows of a pass that suit a device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MicrobatchRows {
    /// Number of rows of a training pass, which reads all weights twice.
    pub training: usize,
    /// Number of rows of a forward pass.
    pub forward: usize,
}

impl MicrobatchRows {
    /// Returns the same number of rows for all passes.
    pub fn of_all(rows: usize) -> Self {
        Self { training: rows, forward: rows }
    }

    /// Returns the number of rows of a pass.
    pub fn of(self, trains: bool) -> usize {
        if trains { self.training } else { self.forward }
    }
}
