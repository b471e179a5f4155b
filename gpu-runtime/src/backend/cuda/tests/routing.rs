use super::simulated::on_device;
use super::support::{close, rows, values};
use crate::backend::check::assert_exact_routing;
use crate::backend::cuda::device::open::CudaDevice;
use crate::backend::cuda::ops::routing::{route, route_backward};
use crate::backend::reference::{Matrix, Reference};
use crate::backend::{Dispatch, FamilyOps, RouterRule, RouterScores};

fn sigmoid(per_token: usize, normalised: bool, (groups, chosen_groups): (usize, usize)) -> RouterRule {
    RouterRule { per_token, normalised, scores: RouterScores::Sigmoid { groups, chosen_groups, scaling: 2.5 } }
}

/// Multiples of a step, some of them equal: unequal values differ by more than rounding does.
fn stepped(count: usize, seed: u64) -> Vec<f32> {
    values(count, seed).iter().map(|x| (12.0 * x).round() / 4.0 + 0.1).collect()
}

/// The choice, its weights and the gradient, on the device and on the reference.
fn compare(device: &CudaDevice, rule: RouterRule, count: usize, logits: &[f32]) {
    let correction: Vec<f32> = values(count, 2).iter().map(|x| (20.0 * x).round() / 64.0).collect();
    let d_weights = values(logits.len() / count * rule.per_token, 3);

    let on_logits = rows::<f32>(device, logits, count);
    let (dispatch, weights) = route(device, rule, &device.upload(&correction).unwrap(), &on_logits).unwrap();
    let on_d = rows(device, &d_weights, rule.per_token);
    let d_logits = route_backward(device, rule, &on_logits, &dispatch, &weights, &on_d).unwrap();

    let logits = Matrix::new(logits.to_vec(), count);
    let (expected, expected_weights) = Reference::route(&Reference, rule, &correction, &logits);
    assert_eq!(dispatch, expected, "{rule:?} {count}");
    let d_weights = Matrix::new(d_weights, rule.per_token);
    let expected = Reference::route_backward(&Reference, rule, &logits, &expected, &expected_weights, &d_weights);
    close("weights", &weights.to_host().unwrap(), expected_weights.data(), 1e-6);
    close("d logits", &d_logits.to_host().unwrap(), expected.data(), 2e-6);
}

#[test]
fn experts_by_softmax() {
    on_device(|device| {
        for (rows, count, per_token) in [(1, 1, 1), (5, 33, 4), (3, 8, 8), (4, 130, 6), (2, 70, 40)] {
            for normalised in [true, false] {
                let rule = RouterRule::softmax(per_token, normalised);
                compare(device, rule, count, &stepped(rows * count, 1));
            }
        }
    });
}

#[test]
fn experts_by_sigmoids_of_groups() {
    on_device(|device| {
        let cases =
            [(1, 1, (1, 1)), (33, 4, (1, 1)), (36, 4, (4, 2)), (40, 7, (40, 9)), (72, 3, (36, 35)), (12, 6, (6, 1))];
        for (count, per_token, groups) in cases {
            for normalised in [true, false] {
                compare(device, sigmoid(per_token, normalised, groups), count, &stepped(5 * count, 4));
            }
        }
    });
}

#[test]
fn gradients_are_exact_where_experts_differ_much_in_weight() {
    on_device(|device| {
        let logits: Vec<f32> = values(6 * 37, 8).iter().map(|x| 30.0 * x).collect();
        for per_token in [1, 2, 5] {
            let (none, d_weights) = (device.zeros(37).unwrap(), values(6 * per_token, 9));
            for normalised in [true, false] {
                for rule in [RouterRule::softmax(per_token, normalised), sigmoid(per_token, normalised, (1, 1))] {
                    let (on_logits, on_d) = (rows::<f32>(device, &logits, 37), rows(device, &d_weights, per_token));
                    let (dispatch, weights) = route(device, rule, &none, &on_logits).unwrap();
                    let d = route_backward(device, rule, &on_logits, &dispatch, &weights, &on_d).unwrap();
                    assert_exact_routing(&d.to_host().unwrap(), rule, &logits, &dispatch, &d_weights);
                }
            }
        }
    });
}

#[test]
fn what_is_not_a_number_comes_last() {
    on_device(|device| {
        let (nan, inf) = (f32::NAN, f32::INFINITY);
        let logits = [nan, 1.0, -inf, 2.0, nan, nan, nan, nan, 5.0, 5.0, 5.0, 5.0];
        let rule = RouterRule::softmax(2, true);
        let none = device.zeros(0).unwrap();
        let (dispatch, _) = route(device, rule, &none, &rows(device, &logits, 4)).unwrap();
        assert_eq!(dispatch, Dispatch::new(vec![1, 3, 0, 1, 0, 1], 2, 4));
    });
}

#[test]
fn a_row_has_its_bits_in_every_batch() {
    on_device(|device| {
        let (logits, none) = (values(4 * 37, 5), device.zeros(0).unwrap());
        let weights = |logits: &[f32]| {
            let (_, weights) = route(device, RouterRule::softmax(3, false), &none, &rows(device, logits, 37)).unwrap();
            weights.to_host().unwrap()
        };
        let all = weights(&logits);
        for (row, expected) in logits.chunks(37).zip(all.chunks(3)) {
            assert_eq!(weights(row), expected);
        }
    });
}

#[test]
fn rules_are_checked() {
    on_device(|device| {
        let (logits, correction) = (rows::<f32>(device, &values(12, 6), 6), device.zeros(6).unwrap());
        let refused = |rule| route(device, rule, &correction, &logits).is_err();
        assert!(refused(RouterRule::softmax(7, true)) && refused(RouterRule::softmax(0, true)));
        assert!(
            refused(sigmoid(2, true, (4, 2))) && refused(sigmoid(2, true, (3, 4))) && refused(sigmoid(2, true, (0, 0)))
        );
        assert!(route(device, sigmoid(2, true, (3, 2)), &device.zeros(5).unwrap(), &logits).is_err());
        let rule = RouterRule::softmax(2, true);
        let (dispatch, weights) = route(device, rule, &correction, &logits).unwrap();
        let narrow = rows::<f32>(device, &values(2, 7), 1);
        assert!(route_backward(device, rule, &logits, &dispatch, &weights, &narrow).is_err());
        let other = Dispatch::new(vec![0, 1], 2, 6);
        assert!(route_backward(device, rule, &logits, &other, &weights, &weights).is_err());
    });
}
