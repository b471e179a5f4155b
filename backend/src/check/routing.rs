//! The gradient of a router with respect to its logits, in f64.

use crate::{Dispatch, RouterRule, RouterScores};

/// The gradient with respect to a row's logits, each with the sum of the magnitudes of its terms.
fn exact(rule: RouterRule, logits: &[f32], experts: &[usize], d_weights: &[f32]) -> Vec<[f64; 2]> {
    let x: Vec<f64> = logits.iter().map(|x| f64::from(*x)).collect();
    let mut g = vec![0.0; x.len()];
    experts.iter().zip(d_weights).for_each(|(expert, d)| g[*expert] = f64::from(*d));
    let largest = x.iter().copied().fold(f64::MIN, f64::max);
    let of = |x: f64| 1.0 / (1.0 + (-x).exp());
    // A weight is scaling · s / (constant + Σ s).
    let (scaling, constant, is_softmax) = match rule.scores {
        RouterScores::Softmax => (1.0, 0.0, true),
        RouterScores::Sigmoid { scaling, .. } if rule.normalised => (scaling, RouterRule::EPS, false),
        RouterScores::Sigmoid { scaling, .. } => (scaling, 1.0, false),
    };
    let (scaling, constant) = (f64::from(scaling), f64::from(constant));
    let score = |e: usize| if is_softmax { (x[e] - largest).exp() } else { of(x[e]) };
    let slope = |e: usize| if is_softmax { score(e) } else { of(x[e]) * of(-x[e]) };
    let summed = match (rule.normalised, is_softmax) {
        (true, _) => experts.to_vec(),
        (false, true) => (0..x.len()).collect(),
        (false, false) => Vec::new(),
    };
    let divisor = constant + summed.iter().map(|e| score(*e)).sum::<f64>();
    let gradient = |e: usize| {
        if !experts.contains(&e) && !summed.contains(&e) {
            return [0.0; 2];
        }
        let terms = summed.iter().map(|j| score(*j) * (g[e] - g[*j])).chain([constant * g[e]]);
        let sums = terms.fold([0.0; 2], |[sum, size], term| [sum + term, size + term.abs()]);
        sums.map(|sum| scaling * slope(e) / (divisor * divisor) * sum)
    };
    (0..x.len()).map(gradient).collect()
}

/// Asserts that the gradients with respect to the logits of all rows are those in f64: `d_weights` has the gradients of the chosen
/// weights, row after row.
///
/// # Panics
/// If one differs by more than 1e-5 of the sum of its terms' magnitudes.
pub fn assert_exact_routing(found: &[f32], rule: RouterRule, logits: &[f32], dispatch: &Dispatch, d_weights: &[f32]) {
    assert_eq!(found.len(), logits.len());
    let count = logits.len() / (d_weights.len() / rule.per_token);
    for (row, (found, logits)) in found.chunks(count).zip(logits.chunks(count)).enumerate() {
        let d_weights = &d_weights[row * rule.per_token..][..rule.per_token];
        for (found, [expected, size]) in found.iter().zip(exact(rule, logits, dispatch.experts(row), d_weights)) {
            let error = (f64::from(*found) - expected).abs();
            assert!(error <= 1e-5 * size + 1e-37, "{rule:?}: {found}, not {expected}; logits {logits:?}");
        }
    }
}
