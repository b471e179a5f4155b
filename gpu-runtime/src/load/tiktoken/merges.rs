//! Merges that ranks imply.
//!
//! tiktoken joins, of all neighbours whose union is a token, those whose union has the lowest rank, and the first of equals. So
//! each way to put a token together from two others is a merge, in the order of the tokens' ranks. Equals differ where unions
//! overlap: tiktoken takes the first, this list the one whose left part has the lower rank. In vocabularies that were trained by
//! joining pairs, texts in which these two are not the same were not found.

use super::errors::{RANKS, malformed};
use super::ranks::Ranks;
use crate::config::LoadError;

/// Maximum number of merges per token, on average by length. Real vocabularies imply two or three. One made of all texts of two
/// letters implies as many as a token has letters.
const MAX_MERGES_PER_TOKEN: usize = 8;
/// Maximum sum of the squared lengths of all tokens, which searching the parts takes. That of Kimi-K2 is some ten million.
const MAX_SEARCHED: usize = 1 << 30;

/// Ranks of two tokens whose union is a token.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Merge {
    pub(super) left: u32,
    pub(super) right: u32,
}

/// Returns all merges, first those whose union has the lowest rank.
///
/// # Errors
/// [`LoadError::Malformed`] if there are too many, or if tokens are too long.
pub(super) fn merges(ranks: &Ranks) -> Result<Vec<Merge>, LoadError> {
    let searched: usize = ranks.tokens().map(|token| token.len() * token.len()).sum();
    if searched > MAX_SEARCHED {
        let reason = format!("its {} tokens have {} bytes: too long to search their parts", ranks.len(), ranks.bytes());
        return Err(malformed(RANKS, reason));
    }
    let index = ranks.index();
    let cost = |token: &[u8]| 16 + token.len();
    let mut budget = MAX_MERGES_PER_TOKEN * ranks.tokens().map(cost).sum::<usize>();
    let mut found = Vec::new();
    for token in ranks.tokens() {
        let first = found.len();
        for at in 1..token.len() {
            let (left, right) = token.split_at(at);
            if let (Some(&left), Some(&right)) = (index.get(left), index.get(right)) {
                budget = budget.checked_sub(cost(token)).ok_or_else(|| {
                    malformed(RANKS, format!("ranks imply more than {MAX_MERGES_PER_TOKEN} merges for each token"))
                })?;
                found.push(Merge { left, right });
            }
        }
        found[first..].sort_unstable();
    }
    Ok(found)
}
