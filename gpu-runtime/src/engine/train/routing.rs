//! Statistics of how evenly a request's tokens went to experts.

use std::collections::BTreeMap;

/// Metrics of routing by `name:reduction`, of the tokens that each expert of each block with experts got; none for models
/// without experts. Of each block, with an expert's share relative to an even one:
///
/// - `e_frac_with_tokens`: part of the experts that got a token;
/// - `e_frac_oversubscribed`: part that got more than an even share;
/// - `e_max_violation`, `e_min_violation`: the largest and the smallest share, less one (Wang et al. 2024, arXiv:2408.15664).
///
/// `:mean` and `:max` are over the blocks.
pub(super) fn metrics(blocks: &[Vec<u64>]) -> BTreeMap<String, f64> {
    let blocks: Vec<_> = blocks.iter().filter_map(|counts| Balance::of(counts)).collect();
    if blocks.is_empty() {
        return BTreeMap::new();
    }
    let mean = |of: fn(&Balance) -> f64| blocks.iter().map(of).sum::<f64>() / blocks.len() as f64;
    let named = [
        ("e_frac_with_tokens:mean", mean(|block| block.with_tokens)),
        ("e_frac_oversubscribed:mean", mean(|block| block.oversubscribed)),
        ("e_max_violation:mean", mean(|block| block.max)),
        ("e_max_violation:max", blocks.iter().map(|block| block.max).fold(f64::NEG_INFINITY, f64::max)),
        ("e_min_violation:mean", mean(|block| block.min)),
    ];
    named.into_iter().map(|(name, value)| (name.to_owned(), value)).collect()
}

/// Sums of the tokens of several examples, `[blocks][experts]`.
pub(super) fn total<'a>(examples: impl Iterator<Item = &'a Vec<Vec<u32>>>) -> Vec<Vec<u64>> {
    let mut total: Vec<Vec<u64>> = Vec::new();
    for blocks in examples {
        for (layer, counts) in blocks.iter().enumerate() {
            if total.len() <= layer {
                total.push(vec![0; counts.len()]);
            }
            total[layer].iter_mut().zip(counts).for_each(|(sum, count)| *sum += u64::from(*count));
        }
    }
    total
}

/// Balance of one block's experts.
struct Balance {
    with_tokens: f64,
    oversubscribed: f64,
    max: f64,
    min: f64,
}

impl Balance {
    /// The balance of these counts; `None` without tokens.
    fn of(counts: &[u64]) -> Option<Self> {
        let sum: u64 = counts.iter().sum();
        if sum == 0 {
            return None;
        }
        let even = sum as f64 / counts.len() as f64;
        let part = |which: &dyn Fn(f64) -> bool| {
            counts.iter().filter(|count| which(**count as f64)).count() as f64 / counts.len() as f64
        };
        let shares = counts.iter().map(|count| *count as f64 / even - 1.0);
        Some(Self {
            with_tokens: part(&|count| count > 0.0),
            oversubscribed: part(&|count| count > even),
            max: shares.clone().fold(f64::NEG_INFINITY, f64::max),
            min: shares.fold(f64::INFINITY, f64::min),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_are_compared_with_even_ones() {
        let examples = [vec![vec![2, 0, 0, 0], vec![1, 1, 1, 1]], vec![vec![2, 3, 1, 0], vec![1, 1, 1, 1]]];
        let found = metrics(&total(examples.iter()));
        let expected = [
            ("e_frac_oversubscribed:mean", 0.25),
            ("e_frac_with_tokens:mean", 0.875),
            ("e_max_violation:max", 1.0),
            ("e_max_violation:mean", 0.5),
            ("e_min_violation:mean", -0.5),
        ];
        assert_eq!(found, expected.map(|(name, value)| (name.to_owned(), value)).into());
        assert!(metrics(&total([].iter())).is_empty());
    }
}
