//! Graphs: work that was captured instead of run.
//!
//! A graph is a list in the order of its capture, also where several streams took part. Their order among each other is
//! therefore stricter than a GPU's.

use crate::work::Work;

#[derive(Debug, Clone, Default)]
pub(crate) struct Graph {
    pub(crate) work: Vec<Work>,
}
