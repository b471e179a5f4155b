//! The reason why an operation of a graph fails.

/// An error at a node; the caller adds the node's name.
#[derive(Debug, thiserror::Error)]
pub(super) enum Failure {
    /// The operation does not take these operands.
    #[error("{0}")]
    Operands(String),
    /// The graph costs more than the limit for a datum.
    #[error("the loss costs more than {budget} elements for a datum of {targets} targets; reduce sizes or nodes")]
    Cost {
        /// Elements that a datum of this size may cost.
        budget: usize,
        /// Targets of the datum.
        targets: usize,
    },
    /// The graph costs more than the limit for the pass that asks for it.
    #[error("the loss is postponed")]
    Postponed,
    /// Nobody waits for the result any longer.
    #[error("interrupted: its session ended")]
    Interrupted,
    /// The tensor library refused the operation.
    #[error("{0}")]
    Tensors(#[from] candle_core::Error),
}

impl Failure {
    pub(super) fn new(reason: impl Into<String>) -> Self {
        Self::Operands(reason.into())
    }
}

pub(super) type Result<T> = std::result::Result<T, Failure>;
