#![allow(clippy::unwrap_used, reason = "tests")]

use proptest::prelude::*;

use super::*;
use crate::rng::uniform;

fn one(logits: &[f32], temperature: f32, top_k: Option<u32>, top_p: f32, u: f64) -> u32 {
    sample_token(logits, temperature, top_k, top_p, u, &mut SamplingScratch::default())
}

#[test]
fn greedy_takes_the_lowest_of_the_best() {
    assert_eq!(one(&[0.0, 3.0, 3.0], 0.0, None, 1.0, 0.99), 1);
    assert_eq!(one(&[f32::NAN, -1.0, f32::NEG_INFINITY], 0.0, None, 1.0, 0.99), 1);
    assert_eq!(one(&[0.0, 3.0, 3.0], 1.0, Some(1), 1.0, 0.99), 1);
    assert_eq!(one(&[0.0, 3.0, 3.0], 1.0, None, 1e-9, 0.99), 1);
    assert_eq!(one(&[0.0, 3.0, f32::INFINITY], 1.0, None, 1.0, 0.0), 2);
    assert_eq!(one(&[], 1.0, None, 1.0, 0.5), 0);
}

#[test]
fn candidates_are_ordered_by_value_then_id() {
    let values = [f32::NEG_INFINITY, f32::MIN, -1.5, -f32::MIN_POSITIVE, 0.0, 1e-45, 1.0, f32::MAX, f32::INFINITY];
    for (at, value) in values.into_iter().enumerate() {
        for id in [0, 7, u32::MAX] {
            let candidate = Candidate::new(id, value);
            assert_eq!((candidate.id(), candidate.value().to_bits()), (id, value.to_bits()));
            assert!(values[..at].iter().all(|less| Candidate::new(0, *less) < candidate));
        }
        assert!(Candidate::new(3, value) > Candidate::new(4, value));
    }
    assert_eq!(Candidate::new(1, -0.0), Candidate::new(1, 0.0));
    assert_eq!(Candidate::new(1, f32::NAN), Candidate::new(1, f32::NEG_INFINITY));
}

#[test]
fn extremes_are_safe() {
    let logits = [f32::MAX, f32::MIN, 0.0, f32::NAN, f32::NEG_INFINITY];
    for temperature in [f32::MIN_POSITIVE, 1e-20, 1.0, f32::MAX] {
        for u in [0.0, 0.5, 1.0 - f64::EPSILON / 2.0] {
            for (top_k, top_p) in [(None, 1.0), (Some(4), 1.0), (None, 0.999), (Some(100), 0.5)] {
                assert!(one(&logits, temperature, top_k, top_p, u) < 3);
            }
        }
    }
}

#[test]
fn exponential_is_close() {
    for at in 0..8_700 {
        let x = -(at as f32) * 0.01;
        let (found, expected) = (f64::from(exp_nonpositive(x)), f64::from(x).exp());
        assert!((found / expected - 1.0).abs() < 5e-7, "{x}: {found} {expected}");
    }
    for x in [-88.0, f32::NEG_INFINITY, f32::NAN, f32::MIN] {
        assert_eq!(exp_nonpositive(x), 0.0);
    }
}

#[test]
fn frequencies_match_probabilities() {
    // Over several blocks, so that the scan crosses them.
    let logits: Vec<f32> = (0..1_300).map(|i| if i % 433 == 7 { (i / 433) as f32 } else { -30.0 }).collect();
    let temperature = 1.5f32;
    let powers: Vec<f64> = (0..3).map(|i| (f64::from(i) / f64::from(temperature)).exp()).collect();
    let tokens = 20_000;
    for (top_k, top_p, candidates) in [(None, 1.0, 3), (Some(3), 1.0, 3), (Some(2), 1.0, 2), (None, 0.7, 2)] {
        let mut counts = [0u32; 3];
        let mut scratch = SamplingScratch::default();
        for at in 0..tokens {
            let id = sample_token(&logits, temperature, top_k, top_p, uniform(5, 0, at), &mut scratch);
            assert_eq!(id % 433, 7);
            counts[(id / 433) as usize] += 1;
        }
        let total: f64 = powers[3 - candidates..].iter().sum();
        for (at, &count) in counts.iter().enumerate() {
            let expected = if at < 3 - candidates { 0.0 } else { powers[at] / total };
            assert!((f64::from(count) / tokens as f64 - expected).abs() < 0.015, "{counts:?} {top_k:?} {top_p}");
        }
    }
}

fn logits() -> impl Strategy<Value = Vec<f32>> {
    // Whole numbers, so that there are ties.
    prop::collection::vec(prop_oneof![9 => (-6i8..6).prop_map(f32::from), 1 => Just(f32::NEG_INFINITY)], 1..1_200)
}

fn ranked(values: &[f32]) -> Vec<(u32, f32)> {
    let mut all: Vec<(u32, f32)> = (0u32..).zip(values.iter().copied()).collect();
    all.sort_by(|a, b| b.1.total_cmp(&a.1).then(a.0.cmp(&b.0)));
    all
}

proptest! {
    #[test]
    fn topk_is_a_sorted_prefix(values in logits(), k in 0usize..1_300) {
        let mut expected = ranked(&values);
        expected.truncate(k);
        prop_assert_eq!(topk(&values, k), expected);
    }

    #[test]
    fn cuts_are_never_exceeded(
        values in logits(), k in prop::option::of(1u32..1_300), p in 0.01f32..1.2, u in 0f64..1.0,
    ) {
        prop_assume!(values.iter().any(|value| value.is_finite()));
        let id = one(&values, 0.8, k, p.min(1.0), u);
        prop_assert!(values[id as usize].is_finite());
        let mut cut = ranked(&values);
        cut.truncate(k.map_or(usize::MAX, |k| k as usize));
        let rank = cut.iter().position(|candidate| candidate.0 == id);
        prop_assert!(rank.is_some());
        // What ranks before the token is less than p of what top-k left.
        let weight = |candidate: &(u32, f32)| f64::from(candidate.1 / 0.8).exp();
        let total: f64 = cut.iter().map(weight).sum();
        let before: f64 = cut.iter().take(rank.unwrap()).map(weight).sum();
        prop_assert!(before / total < f64::from(p) + 1e-5);
    }

    #[test]
    fn tokens_sampled_together_are_those_alone(
        values in logits(), temperature in prop_oneof![Just(0f32), 0.1f32..3.0], seed: u64,
    ) {
        let us: Vec<f64> = (0..20).map(|at| uniform(seed, 0, at)).collect();
        let alone: Vec<u32> = us.iter().map(|&u| one(&values, temperature, None, 1.0, u)).collect();
        let mut scratch = SamplingScratch::default();
        prop_assert_eq!(sample_each(&values, temperature, us.into_iter(), &mut scratch), alone);
    }

    #[test]
    fn cuts_that_keep_all_change_no_support(values in logits(), u in 0f64..1.0) {
        prop_assume!(values.iter().any(|value| value.is_finite()));
        let wide = one(&values, 1.0, Some(u32::MAX), 1.0, u);
        prop_assert_eq!(wide, one(&values, 1.0, None, 1.0, u));
    }
}
