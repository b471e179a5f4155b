//! Gradients of routing where experts differ much in weight, against f64.

use proptest::prelude::*;
use trainyard_protocol::AdamParams;

use crate::check::access::host;
use crate::check::assert_exact_routing;
use crate::check::{HostAccess, sigmoid};
use crate::cpu::{Cpu, Isa};
use crate::reference::Reference;
use crate::{AdamWStep, Dispatch, Dtype, FamilyOps, RouterRule};

/// The gradient on a backend.
fn gradient<B: HostAccess>(b: &B, rule: RouterRule, logits: &[f32], d_weights: &[f32]) -> (Dispatch, Vec<f32>) {
    let count = logits.len() / (d_weights.len() / rule.per_token);
    let on_logits = b.rows(logits, count);
    let (dispatch, weights) = B::Family::route(b, rule, &vec![0.0; count], &on_logits);
    let on_d = b.rows(d_weights, rule.per_token);
    let d = B::Family::route_backward(b, rule, &on_logits, &dispatch, &weights, &on_d);
    (dispatch, b.values(&d))
}

fn check<B: HostAccess>(b: &B, rule: RouterRule, logits: &[f32], d_weights: &[f32]) {
    let (dispatch, found) = gradient(b, rule, logits, d_weights);
    assert_exact_routing(&found, rule, logits, &dispatch, d_weights);
}

fn cpus() -> impl Iterator<Item = Cpu> {
    Isa::available().into_iter().map(|isa| Cpu::with_isa(2, isa).with_dtype(Dtype::F32))
}

fn rules(per_token: usize) -> impl Iterator<Item = RouterRule> {
    [false, true].into_iter().flat_map(move |normalised| {
        [RouterRule::softmax(per_token, normalised), sigmoid(per_token, normalised, 1, 1, 2.5)]
    })
}

/// The gradient of a row with a dominant expert, and an optimizer step by it.
fn dominated<B: HostAccess>(b: &B) {
    // The weight of the lesser one; that of the greater rounds to 1.
    let lesser = (-18f64).exp();
    for d_weights in [[0.5, -0.25], [-0.25, 0.5]] {
        let (_, d) = gradient(b, RouterRule::softmax(2, true), &[0.0, -9.0, 18.0, -3.0], &d_weights);
        let expected = lesser * f64::from(d_weights[1] - d_weights[0]);
        for (found, expected) in [(d[2], expected), (d[0], -expected)] {
            assert!((f64::from(found) / expected - 1.0).abs() < 1e-5, "{found}, not {expected}");
        }
        assert_eq!([d[1], d[3]], [0.0; 2]);

        let hyper = AdamParams {
            learning_rate: 1e-2,
            beta1: 0.9,
            beta2: 0.95,
            eps: 1e-12,
            weight_decay: 0.0,
            grad_clip_norm: 0.0,
        };
        let [mut params, mut m, mut v] = [(); 3].map(|()| b.zero_params(&[d.len()]));
        let grads = b.upload_params(vec![d]);
        let moments = [&mut m, &mut v];
        let step = AdamWStep { params: &mut params, grads: &grads, moments, hyper: &hyper, step: 1, grad_scale: 1.0 };
        assert!(b.adamw(vec![step]).iter().all(Result::is_ok));
        let (moved, by) = (host(&params)[2], -1e-2 * expected.signum() as f32);
        assert!((moved / by - 1.0).abs() < 1e-3, "the router moved by {moved}, not {by}");
    }
}

#[test]
fn an_expert_with_nearly_all_the_weight_has_a_gradient() {
    dominated(&Reference);
    cpus().for_each(|cpu| dominated(&cpu));
}

#[test]
fn an_expert_that_is_chosen_for_certain_has_a_gradient_beside_those_that_are_not_chosen() {
    // Its sigmoid, and its part of the softmax of all, round to 1.
    let logits = [0.0, -9.0, 18.0, -3.0];
    for rule in rules(1) {
        for d_weight in [0.5, -0.25] {
            let of = |d: &[f32]| {
                let expected = if rule.normalised { 0.0 } else { 1e-9 };
                assert!(d[2].abs() >= expected, "{rule:?}: {}", d[2]);
                assert!(d[2] * d_weight >= 0.0, "{rule:?}: {}", d[2]);
            };
            check(&Reference, rule, &logits, &[d_weight]);
            of(&gradient(&Reference, rule, &logits, &[d_weight]).1);
            for cpu in cpus() {
                check(&cpu, rule, &logits, &[d_weight]);
                of(&gradient(&cpu, rule, &logits, &[d_weight]).1);
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn gradients_of_routing_are_exact(
        logits in prop::collection::vec(-30f32..30.0, 12),
        d_weights in prop::collection::vec(-1f32..1.0, 12),
        per_token in prop_oneof![Just(2usize), Just(1), Just(3), Just(6)],
    ) {
        // Two rows.
        let d_weights = &d_weights[..2 * per_token];
        for rule in rules(per_token) {
            check(&Reference, rule, &logits, d_weights);
            cpus().for_each(|cpu| check(&cpu, rule, &logits, d_weights));
        }
    }
}
