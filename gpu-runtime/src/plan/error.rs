//! Reasons why a layout cannot be planned.

use crate::parallel::{LayoutError, ParallelError};

/// The reason why a layout cannot be planned.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PlanError {
    /// The ranks of a replica cannot share the model.
    #[error(transparent)]
    Layout(#[from] LayoutError),
    /// A replica has more ranks than the limit.
    #[error(transparent)]
    Ranks(#[from] ParallelError),
    /// A number is zero.
    #[error("{0} must be at least 1")]
    Zero(&'static str),
    /// Sequences are longer than the model supports.
    #[error("a context of {asked} tokens exceeds the model's {most}")]
    Context {
        /// Value that was given.
        asked: usize,
        /// Largest value that is allowed.
        most: usize,
    },
}
