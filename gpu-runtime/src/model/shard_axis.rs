//! How ranks share a parameter.

/// The dimension along which ranks share a parameter: tensor parallel ones, or all of them where it is of experts.
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
    /// It is all of one expert's: one rank has all of it, the others nothing.
    Expert,
    /// By expert, its outermost extent.
    Experts,
    /// By token, its outermost extent, in parts of as many rows: the last ones may have zeros beyond the vocabulary's end.
    Vocabulary,
}
