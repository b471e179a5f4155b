#![allow(clippy::unwrap_used, reason = "tests")]

use proptest::prelude::*;

use trainyard_protocol::SamplingControls;

use super::*;
use crate::rng::uniform;

fn rule(temperature: f32, top_k: Option<u32>, top_p: f32, u: f64) -> SamplingRule<'static> {
    SamplingRule { temperature, min_p: 0.0, top_k, top_p, u, changes: None }
}

fn one(logits: &[f32], temperature: f32, top_k: Option<u32>, top_p: f32, u: f64) -> u32 {
    sample_token(logits, &rule(temperature, top_k, top_p, u), &mut SamplingScratch::default())
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
            let id = sample_token(&logits, &rule(temperature, top_k, top_p, uniform(5, 0, at)), &mut scratch);
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

/// The changed logits by the definitions of OpenAI and vLLM, one token at a time in f64.
fn changed(logits: &[f32], controls: &SamplingControls, prompt: &[u32], sampled: &[u32]) -> Vec<f64> {
    let change = |(id, &logit): (u32, &f32)| {
        let bias = controls.logit_bias.iter().find(|(token, _)| *token == id).map_or(0.0, |(_, bias)| *bias);
        let mut logit = f64::from(logit) + f64::from(bias);
        let count = sampled.iter().filter(|token| **token == id).count();
        if prompt.contains(&id) || count > 0 {
            let penalty = f64::from(controls.repetition_penalty);
            logit = if logit > 0.0 { logit / penalty } else { logit * penalty };
        }
        let presence = if count > 0 { f64::from(controls.presence_penalty) } else { 0.0 };
        logit - f64::from(controls.frequency_penalty) * count as f64 - presence
    };
    (0u32..).zip(logits).map(change).collect()
}

fn counts(sampled: &[u32]) -> TokenCounts {
    let mut counts = TokenCounts::new();
    sampled.iter().for_each(|token| *counts.entry(*token).or_default() += 1);
    counts
}

#[test]
fn penalties_and_biases_are_those_of_the_definitions() {
    let controls = SamplingControls {
        presence_penalty: 0.5,
        frequency_penalty: 0.25,
        repetition_penalty: 2.0,
        logit_bias: vec![(0, 1.0), (4, -100.0)],
        ..SamplingControls::default()
    };
    let rules = LogitRules::new(&controls, &[1, 3, 3], &[]).unwrap();
    let counts = counts(&[2, 3, 3]);
    let mut logits = [1.0, 4.0, -1.0, 6.0, 2.0, 0.5];
    LogitChanges { rules: Some(&rules), counts: &counts, allowed: None }.apply(&mut logits);
    // Bias; prompt; sampled once; in the prompt and sampled twice; bias; untouched.
    assert_eq!(logits, [2.0, 2.0, -2.0 - 0.75, 3.0 - 1.0, -98.0, 0.5]);
}

#[test]
fn only_allowed_tokens_are_sampled() {
    let logits: Vec<f32> = (0..70).map(|id| id as f32 / 10.0).collect();
    let mut allowed = TokenMask::new(vec![0; 3]);
    assert!(allowed.is_empty());
    [3, 31, 64].into_iter().for_each(|token| allowed.allow(token));
    allowed.allow(96);
    let listed: Vec<u32> = (0..200).filter(|token| allowed.allows(*token)).collect();
    assert_eq!(listed, [3, 31, 64]);
    let counts = TokenCounts::new();
    let changes = Some(LogitChanges { rules: None, counts: &counts, allowed: Some(&allowed) });
    for (temperature, u) in [(0.0, 0.5), (1.0, 0.0), (1.0, 0.5), (10.0, 0.999)] {
        let rule = SamplingRule { changes, ..rule(temperature, None, 1.0, u) };
        let token = sample_token(&logits, &rule, &mut SamplingScratch::default());
        assert!(listed.contains(&token), "{token}");
        assert!(temperature > 0.0 || token == 64);
    }
}

#[test]
fn without_controls_nothing_is_changed() {
    assert!(LogitRules::new(&SamplingControls::default(), &[1, 2], &[]).is_none());
    let min_p = SamplingControls { min_p: 0.5, ..SamplingControls::default() };
    assert!(LogitRules::new(&min_p, &[1, 2], &[]).is_none());
}

proptest! {
    #[test]
    fn changes_follow_the_definitions(
        values in prop::collection::vec(-8f32..8.0, 1..60),
        prompt in prop::collection::vec(0u32..60, 0..20),
        sampled in prop::collection::vec(0u32..60, 0..40),
        presence_penalty in -2f32..2.0, frequency_penalty in -2f32..2.0, repetition_penalty in 0.5f32..2.0,
        bias in prop::collection::btree_map(0u32..60, -100f32..100.0, 0..10),
    ) {
        let controls = SamplingControls {
            presence_penalty, frequency_penalty, repetition_penalty,
            logit_bias: bias.into_iter().collect(), ..SamplingControls::default()
        };
        let (rules, counts) = (LogitRules::new(&controls, &prompt, &[]), counts(&sampled));
        let mut found = values.clone();
        LogitChanges { rules: rules.as_ref(), counts: &counts, allowed: None }.apply(&mut found);
        for (found, expected) in found.iter().zip(changed(&values, &controls, &prompt, &sampled)) {
            prop_assert!((f64::from(*found) - expected).abs() < 1e-3, "{} {}", found, expected);
        }
    }

    /// min_p keeps the tokens whose probability is at least that fraction of the largest one. Of those, top-k and top-p
    /// keep what they would keep of a vocabulary of only these tokens.
    #[test]
    fn min_p_cuts_before_top_k_and_top_p(
        values in logits(), min_p in 0.001f32..1.0, k in prop::option::of(1u32..40), p in 0.1f32..1.2, u in 0f64..1.0,
    ) {
        prop_assume!(values.iter().any(|value| value.is_finite()));
        let rule = SamplingRule { min_p, ..rule(0.8, k, p.min(1.0), u) };
        let id = sample_token(&values, &rule, &mut SamplingScratch::default());
        let most = ranked(&values)[0].1;
        // Not where rounding decides.
        prop_assume!(values.iter().all(|value| (((value - most) / 0.8).exp() / min_p - 1.0).abs() > 1e-4));
        let kept: Vec<f32> = values
            .iter()
            .map(|&value| if ((value - most) / 0.8).exp() >= min_p { value } else { f32::NEG_INFINITY })
            .collect();
        prop_assert_eq!(id, one(&kept, 0.8, k, p.min(1.0), u));
        prop_assert!(kept[id as usize].is_finite());
    }
}
