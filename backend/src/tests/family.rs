//! Ops of mixtures of experts and attention sinks: the CPU backend against the reference backend, and the reference's
//! gradients against differences of its forward ops.

use proptest::prelude::*;

use crate::check::access::{Numbers, host};
use crate::check::assert_close;
use crate::check::{HostAccess as _, experts, scalar_heads, sigmoid, sinks};
use crate::cpu::{Cpu, Isa};
use crate::reference::{Matrix, Reference};
use crate::{Activation, Backend, Dispatch, Dtype, FamilyOps, RouterRule, ScaleOps};

fn cpus() -> impl Iterator<Item = (Isa, Cpu)> {
    Isa::available().into_iter().map(|isa| (isa, Cpu::with_isa(2, isa).with_dtype(Dtype::F32)))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn experts_agree(
        rows in 1usize..40, count in 1usize..20, chosen in 1usize..6, normalised: bool, width in 1usize..70,
        seed in 0u64..1 << 40,
    ) {
        let rule = RouterRule::softmax(chosen.min(count), normalised);
        let expected = experts(&Reference, rule, rows, count, width, seed);
        for (isa, cpu) in cpus() {
            assert_close(isa.name(), &experts(&cpu, rule, rows, count, width, seed), &expected, 2e-5);
        }
    }

    #[test]
    fn scalar_heads_agree(rows in 1usize..40, width in 1usize..150, seed in 0u64..1 << 40) {
        let expected = scalar_heads(&Reference, rows, width, seed);
        for (isa, cpu) in cpus() {
            assert_close(isa.name(), &scalar_heads(&cpu, rows, width, seed), &expected, 2e-5);
        }
    }

    #[test]
    fn sinks_agree(rows in 1usize..40, heads in 1usize..6, head_dim in 1usize..40, seed in 0u64..1 << 40) {
        let expected = sinks(&Reference, rows, heads, head_dim, seed);
        for (isa, cpu) in cpus() {
            assert_close(isa.name(), &sinks(&cpu, rows, heads, head_dim, seed), &expected, 2e-5);
        }
    }

    #[test]
    fn a_row_does_not_depend_on_others(rows in 2usize..30, count in 2usize..12, seed in 0u64..1 << 40) {
        let rule = RouterRule::softmax(2, true);
        let width = 33;
        let (_, cpu) = cpus().last().unwrap();
        let logits = Numbers(seed).take(rows * count);
        // An expert's output for a row, whatever else it computes.
        let output = |row: usize, expert: usize| Numbers(seed + (row * count + expert) as u64 + 1).take(width);
        let run = |first: usize| {
            let (dispatch, weights) = Cpu::route(&cpu, rule, &[], &cpu.rows(&logits[first * count..], count));
            let part = |part: &crate::ExpertRows| {
                let values: Vec<f32> = part.rows.iter().flat_map(|row| output(first + row, part.expert)).collect();
                cpu.rows(&values, width)
            };
            let parts: Vec<_> = dispatch.parts().iter().map(part).collect();
            let mut sum = cpu.zeros(rows - first, width);
            Cpu::combine(&cpu, &parts, &dispatch, Some(&weights), &mut sum);
            cpu.values(&sum)
        };
        let (all, some) = (run(0), run(rows / 2));
        assert_eq!(all[rows / 2 * width..], some[..]);
    }
}

/// The derivative of `f` in the direction of one element of `x`.
fn slope(x: &[f32], at: usize, f: &dyn Fn(&[f32]) -> f64) -> f64 {
    let step = 1e-2;
    let moved = |by: f32| {
        let mut x = x.to_vec();
        x[at] += by;
        f(&x)
    };
    (moved(step) - moved(-step)) / (2.0 * f64::from(step))
}

fn weighted(values: &[f32], by: &[f32]) -> f64 {
    values.iter().zip(by).map(|(a, b)| f64::from(*a) * f64::from(*b)).sum()
}

#[test]
fn gradients_of_routing_are_slopes() {
    let (rows, count) = (3, 6);
    let rules = [false, true].into_iter().flat_map(|normalised| {
        [RouterRule::softmax(2, normalised), sigmoid(2, normalised, 2, 1, 2.5), sigmoid(2, normalised, 3, 2, 0.5)]
    });
    for rule in rules {
        let mut n = Numbers(4);
        // Far enough apart that a step does not change the choice.
        let logits: Vec<f32> =
            (0..rows * count).map(|i| ((i * 7) % count) as f32 * 0.3 + 0.05 * (i % 3) as f32).collect();
        let d_weights = n.take(rows * 2);
        let correction = [0.0; 6];
        let of = |x: &[f32]| {
            let routed = Reference::route(&Reference, rule, &correction, &Matrix::new(x.to_vec(), count));
            weighted(routed.1.data(), &d_weights)
        };
        let matrix = Matrix::new(logits.clone(), count);
        let (dispatch, weights) = Reference::route(&Reference, rule, &correction, &matrix);
        let d = Reference::route_backward(
            &Reference,
            rule,
            &matrix,
            &dispatch,
            &weights,
            &Matrix::new(d_weights.clone(), 2),
        );
        for (at, d) in d.data().iter().enumerate() {
            assert!((slope(&logits, at, &of) - f64::from(*d)).abs() < 2e-3, "{rule:?}, {at}");
        }
    }
}

#[test]
fn gradients_of_combining_are_slopes() {
    let mut n = Numbers(5);
    let (rows, width) = (3, 4);
    let dispatch = Dispatch::new(vec![0, 2, 1, 2, 0, 1], 2, 4);
    let lens: Vec<usize> = dispatch.parts().iter().map(|part| part.rows.len() * width).collect();
    let values: Vec<f32> = n.take(lens.iter().sum());
    let (weights, d_out) = (n.take(rows * 2), n.take(rows * width));
    let parts = |x: &[f32]| -> Vec<Matrix> {
        let mut at = 0;
        let mut next = |len: &usize| {
            at += len;
            Matrix::new(x[at - len..at].to_vec(), width)
        };
        lens.iter().map(&mut next).collect()
    };
    let sum = |x: &[f32], w: &[f32]| {
        let mut out = Matrix::new(vec![0.0; rows * width], width);
        Reference::combine(&Reference, &parts(x), &dispatch, Some(&Matrix::new(w.to_vec(), 2)), &mut out);
        weighted(out.data(), &d_out)
    };
    let (d_parts, d_weights) = Reference::combine_backward(
        &Reference,
        &parts(&values),
        &dispatch,
        &Matrix::new(weights.clone(), 2),
        &Matrix::new(d_out.clone(), width),
    );
    let d_parts: Vec<f32> = d_parts.iter().flat_map(|part| part.data().to_vec()).collect();
    for (at, d) in d_parts.iter().enumerate() {
        assert!((slope(&values, at, &|x| sum(x, &weights)) - f64::from(*d)).abs() < 1e-3);
    }
    for (at, d) in d_weights.data().iter().enumerate() {
        assert!((slope(&weights, at, &|w| sum(&values, w)) - f64::from(*d)).abs() < 1e-3);
    }
}

#[test]
fn gradients_of_sinks_are_slopes() {
    let (rows, heads, head_dim) = (4, 3, 2);
    let width = heads * head_dim;
    let mut n = Numbers(6);
    let (out, lse, d_out, values) = (n.take(rows * width), n.take(rows * heads), n.take(rows * width), n.take(heads));
    let after = |values: &[f32]| {
        let mut attended = [Matrix::new(out.clone(), width), Matrix::new(lse.clone(), heads)];
        Reference::add_sinks(&Reference, &values.to_vec(), &mut attended);
        attended
    };
    let [joined, sums] = after(&values);
    let mut grads = Reference.zero_params(&[heads]);
    let d = Matrix::new(d_out.clone(), width);
    Reference::sinks_backward(&Reference, &values, [&joined, &sums], &d, &mut grads, 0);
    for (at, d) in host(&grads).iter().enumerate() {
        let expected = slope(&values, at, &|values| weighted(after(values)[0].data(), &d_out));
        assert!((expected - f64::from(*d)).abs() < 2e-3, "{expected} {d}");
    }
}

#[test]
fn equal_and_undefined_logits_have_an_order() {
    let rule = RouterRule::softmax(2, true);
    let logits = [1.0, 1.0, 1.0, 1.0, f32::NAN, 0.0, f32::NAN, 2.0];
    let expected = [vec![0, 1], vec![1, 3]];
    let (found, _) = Reference::route(&Reference, rule, &[], &Matrix::new(logits.to_vec(), 4));
    assert_eq!([0, 1].map(|row| found.experts(row).to_vec()), expected);
    for (_, cpu) in cpus() {
        let (found, _) = Cpu::route(&cpu, rule, &[], &cpu.rows(&logits, 4));
        assert_eq!([0, 1].map(|row| found.experts(row).to_vec()), expected);
    }
}

#[test]
fn gradients_of_the_clamped_activation_are_slopes() {
    // Gates and ups within the bounds and beyond them.
    let gates = [-9.0f32, -1.3, 0.0, 0.7, 3.0, 6.9, 7.5];
    let ups = [-8.0f32, -6.5, -1.0, 0.0, 2.0, 6.5, 7.5];
    let values: Vec<f32> = gates.iter().flat_map(|gate| ups.map(|up| [*gate, up])).flatten().collect();
    let d_out = Numbers(7).take(values.len() / 2);
    let of = |x: &[f32]| {
        let out = Reference.activate(Activation::ClampedSwish, &Matrix::new(x.to_vec(), 2));
        weighted(out.data(), &d_out)
    };
    let (found, _) = Reference.activate_backward(
        Activation::ClampedSwish,
        Matrix::new(values.clone(), 2),
        Matrix::new(d_out.clone(), 1),
        &[],
        true,
    );
    for (at, d) in found.data().iter().enumerate() {
        let expected = slope(&values, at, &of);
        assert!((expected - f64::from(*d)).abs() < 2e-2, "{at}: {expected} {d}");
    }
}

/// Sums are rounded once, on all processors alike, in rows of a few elements and in more than a thread adds at a time.
#[test]
fn scaled_sums_are_rounded_once() {
    for (rows, width) in [(1, 1), (3, 7), (70, 300)] {
        let [from, to] = [1, 2].map(|seed| Numbers(seed).take(rows * width));
        let expected: Vec<f32> = from.iter().zip(&to).map(|(from, to)| 0.3f32.mul_add(*from, *to)).collect();
        let scaled: Vec<f32> = from.iter().map(|from| 0.3 * from).collect();
        for (isa, cpu) in cpus() {
            let mut sum = cpu.rows(&to, width);
            Cpu::add_scaled_rows(&cpu, 0.3, &cpu.rows(&from, width), &mut sum);
            assert_eq!(cpu.values(&sum), expected, "{}", isa.name());
            assert_eq!(cpu.values(&Cpu::scaled_rows(&cpu, 0.3, &cpu.rows(&from, width))), scaled, "{}", isa.name());
        }
    }
}

#[test]
fn sigmoids_in_groups_agree() {
    for seed in 0..24 {
        let (rows, groups, of_group) = (1 + seed as usize * 7 % 40, 1 + seed as usize % 5, 1 + seed as usize * 3 % 7);
        let chosen_groups = 1 + seed as usize % groups;
        let per_token = 1 + seed as usize * 5 % (chosen_groups * of_group);
        let rule = sigmoid(per_token, seed % 2 == 0, groups, chosen_groups, 1.0 + 0.5 * (seed % 4) as f32);
        let expected = experts(&Reference, rule, rows, groups * of_group, 19, seed);
        for (isa, cpu) in cpus() {
            assert_close(isa.name(), &experts(&cpu, rule, rows, groups * of_group, 19, seed), &expected, 2e-5);
        }
    }
}

#[test]
fn experts_are_chosen_by_corrected_scores_within_the_best_groups_and_weighted_without_correction() {
    // The sigmoid of ln(p / (1 - p)) is p.
    let logit = |p: f32| (p / (1.0 - p)).ln();
    let scores = [0.9, 0.1, 0.6, 0.55, 0.5, 0.2, 0.3, 0.4];
    let logits = scores.map(logit);
    let route = |rule, correction: &[f32]| {
        let (dispatch, weights) = Reference::route(&Reference, rule, correction, &Matrix::new(logits.to_vec(), 8));
        (dispatch.experts(0).to_vec(), weights.data().to_vec())
    };
    let close = |found: (Vec<usize>, Vec<f32>), experts: [usize; 2], weights: [f32; 2]| {
        assert_eq!(found.0, experts);
        assert!(found.1.iter().zip(weights).all(|(a, b)| (a - b).abs() < 1e-6), "{:?}, not {weights:?}", found.1);
    };
    // Of pairs, the second has the best two together: 0.6 + 0.55 > 0.9 + 0.1; of fours the first.
    close(route(sigmoid(2, true, 4, 1, 2.0), &[0.0; 8]), [2, 3], [2.0 * 0.6 / 1.15, 2.0 * 0.55 / 1.15]);
    close(route(sigmoid(2, false, 4, 2, 2.0), &[0.0; 8]), [0, 2], [1.8, 1.2]);
    close(route(sigmoid(2, true, 2, 1, 1.0), &[0.0; 8]), [0, 2], [0.6, 0.4]);
    // A correction makes the last pair the best, and stays out of the weights.
    let correction = [0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.5, 0.5];
    close(route(sigmoid(2, true, 4, 1, 1.0), &correction), [6, 7], [0.3 / 0.7, 0.4 / 0.7]);
    // Scores that corrections make negative do not let other groups in.
    close(
        route(sigmoid(2, true, 4, 1, 1.0), &[-5.0, -5.0, -2.0, -2.0, -3.0, -3.0, -3.0, -3.0]),
        [2, 3],
        [0.6 / 1.15, 0.55 / 1.15],
    );
}
