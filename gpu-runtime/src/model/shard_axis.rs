//! How ranks share a parameter.

/// The dimension along which ranks share a parameter: tensor parallel ones, or all of them where it is of experts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ShardAxis {
    /// Every rank holds the whole parameter.
    Replicated,
    /// Divided along the outputs.
    Outputs,
    /// Divided along the outputs, within each of this number of equal stacked parts.
    StackedOutputs(usize),
    /// Divided along the outputs by key and value head; with more ranks than heads, several ranks hold the same head.
    KvHeads,
    /// Divided along the inputs.
    Inputs,
    /// The parameter of one expert: one rank holds all of it, the others nothing.
    Expert,
    /// Divided by expert, its outermost extent.
    Experts,
    /// Divided by token, its outermost extent, in parts of equally many rows: the last parts may have zeros beyond the
    /// vocabulary.
    Vocabulary,
}
