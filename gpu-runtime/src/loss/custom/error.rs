//! Why an operation of a graph fails.

/// An error at a node; the caller adds the node's name.
#[derive(Debug, thiserror::Error)]
pub(super) enum Failure {
    /// The operation does not take these operands.
    #[error("{0}")]
    Operands(String),
    /// The graph computes more than a datum may cost.
    #[error("the loss costs more than {budget} elements for a datum of {targets} targets; reduce sizes or nodes")]
    Cost {
        /// Elements that a datum of this size may cost.
        budget: usize,
        /// Targets of the datum.
        targets: usize,
    },
    /// The graph costs more than it may in the pass that asks for it.
    #[error("the loss is postponed")]
    Postponed,
    /// Nobody needs the result.
    #[error("interrupted: its session ended")]
    Interrupted,
    /// Refused by the tensor library.
    #[error("{0}")]
    Tensors(#[from] candle_core::Error),
}

impl Failure {
    pub(super) fn new(reason: impl Into<String>) -> Self {
        Self::Operands(reason.into())
    }
}

pub(super) type Result<T> = std::result::Result<T, Failure>;
