//! Reasons why nothing can be planned.

use crate::parallel::{LayoutError, ParallelError};

/// Why nothing can be planned.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PlanError {
    /// The ranks of a replica cannot share the model.
    #[error(transparent)]
    Layout(#[from] LayoutError),
    /// More ranks of a replica than there may be.
    #[error(transparent)]
    Ranks(#[from] ParallelError),
    /// A number that is zero.
    #[error("{0} must be at least 1")]
    Zero(&'static str),
    /// Sequences longer than the model takes.
    #[error("a context of {asked} tokens exceeds the model's {most}")]
    Context {
        /// Value that was given.
        asked: usize,
        /// Largest value that is allowed.
        most: usize,
    },
}
