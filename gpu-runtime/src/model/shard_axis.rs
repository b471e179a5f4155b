//! How tensor parallel ranks share a parameter.

/// The dimension along which tensor parallel ranks share a parameter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ShardAxis {
    /// Every rank has all of it.
    Replicated,
    /// Outputs.
    Outputs,
    /// Outputs by key and value head; a head is on several ranks where there are more ranks than heads.
    KvHeads,
    /// Inputs.
    Inputs,
    /// It is all of this expert's.
    Expert(usize),
    /// By expert, its outermost extent.
    Experts,
}
