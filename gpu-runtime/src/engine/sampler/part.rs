//! Parts of a pass.

use std::ops::Range;

use super::task::StreamTarget;

/// Consecutive positions of a stream that a pass computes.
pub(super) struct PassPart {
    /// Index among the active requests.
    pub(super) task: usize,
    pub(super) target: StreamTarget,
    pub(super) positions: Range<usize>,
}
