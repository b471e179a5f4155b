//! Recurrences: bits do not depend on how a sequence is cut into passes or on its neighbours, and values and gradients are those of
//! the recurrence token by token, which the reference backend computes.

use proptest::prelude::*;

use crate::check::{Recurrence, span, values, whole};
use crate::cpu::{Cpu, Isa};
use crate::reference::Reference;
use crate::{Dtype, RecurrentRule, RecurrentShape, StateOps};

const MAMBA: RecurrentRule = RecurrentRule::Mamba2 { limits: (0.0, f32::INFINITY) };

fn shapes() -> [RecurrentShape; 3] {
    let shape = |rule, key_heads: usize, shared: usize, key_dim, value_dim, kernel| RecurrentShape {
        rule,
        key_heads,
        value_heads: key_heads * shared,
        key_dim,
        value_dim,
        kernel,
    };
    [
        shape(RecurrentRule::DeltaNet, 2, 2, 8, 12, 4),
        shape(RecurrentRule::DeltaNet, 1, 1, 32, 36, 3),
        shape(MAMBA, 2, 3, 16, 8, 4),
    ]
}

pub(super) fn cpus() -> impl Iterator<Item = Cpu> {
    Isa::available().into_iter().map(|isa| Cpu::with_isa(2, isa).with_dtype(Dtype::F32))
}

pub(super) fn bits(x: &[f32]) -> Vec<u32> {
    x.iter().map(|x| x.to_bits()).collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(12))]

    #[test]
    fn a_sequence_has_its_bits_in_any_passes_and_company(
        len in 1usize..200,
        cuts in prop::collection::vec(1usize..70, 1..12),
        neighbour in 1usize..80,
        at in 0usize..3,
    ) {
        let shape = shapes()[at];
        let width = shape.input_width();
        let (inputs, others) = (values(len * width, 1), values(neighbour * width, 2));
        for cpu in cpus() {
            let own = Recurrence::new(&cpu, shape);
            let alone = own.run(&mut own.pool(), &whole(&[len]), &inputs).map(|x| bits(&x));
            let both = own.run(&mut own.pool(), &whole(&[neighbour, len]), &[&others[..], &inputs].concat());
            let behind = neighbour * shape.value_width();
            prop_assert_eq!(both.map(|x| bits(&x[behind..])), alone.clone());

            // In pieces, with a copy of the state that goes on by itself from a cut.
            let mut pool = own.pool();
            let state = Cpu::state_take(&cpu, &mut pool);
            let copy = Cpu::state_take(&cpu, &mut pool);
            let (mut pieces, mut copied, mut first) = ([Vec::new(), Vec::new()], [Vec::new(), Vec::new()], 0);
            for (index, cut) in cuts.iter().cycle().enumerate() {
                if first == len {
                    break;
                }
                let rows = first..len.min(first + cut);
                let piece = &inputs[rows.start * width..rows.end * width];
                if index == 1 {
                    Cpu::state_copy(&cpu, &mut pool, state, copy);
                    copied = pieces.clone();
                }
                let put = |pool: &mut _, id, to: &mut [Vec<u32>; 2]| {
                    let found = own.run(pool, &[span(0..rows.len(), rows.start, Some(id))], piece);
                    to.iter_mut().zip(found).for_each(|(to, found)| to.extend(bits(&found)));
                };
                put(&mut pool, state, &mut pieces);
                if index >= 1 {
                    put(&mut pool, copy, &mut copied);
                }
                first = rows.end;
            }
            prop_assert_eq!(&pieces, &alone);
            if cuts[0] < len {
                prop_assert_eq!(&copied, &alone);
            }
        }
    }
}

pub(super) fn assert_close(what: &str, found: &[f32], expected: &[f32]) {
    assert_eq!(found.len(), expected.len(), "{what}");
    let norm = expected.iter().map(|x| x * x).sum::<f32>().sqrt() / (expected.len() as f32).sqrt();
    for (at, (a, b)) in found.iter().zip(expected).enumerate() {
        assert!((a - b).abs() < 2e-4 * (b.abs() + norm + 1e-3), "{what} {at}: {a} != {b}");
    }
}

#[test]
fn values_and_gradients_are_those_of_the_recurrence_by_token() {
    for shape in shapes() {
        let lens = [150, 1, 64, 30];
        let inputs = values(lens.iter().sum::<usize>() * shape.input_width(), 3);
        let expected = Recurrence::new(&Reference, shape).backward(&lens, &inputs);
        for cpu in cpus() {
            let found = Recurrence::new(&cpu, shape).backward(&lens, &inputs);
            for ((what, found), expected) in ["output", "inputs", "parameters"].into_iter().zip(&found).zip(&expected) {
                assert_close(what, found, expected);
            }
        }
    }
}

/// Gradients of a sequence do not depend on the sequences beside it, and those of parameters add up sequence by sequence.
#[test]
fn gradients_of_a_sequence_have_its_bits_in_any_company() {
    for shape in shapes() {
        let width = shape.input_width();
        let inputs = values(100 * width, 5);
        for cpu in cpus() {
            let own = Recurrence::new(&cpu, shape);
            let [_, alone, _] = own.backward(&[70], &inputs[..70 * width]);
            let [_, both, _] = own.backward(&[70, 30], &inputs);
            assert_eq!(bits(&both[..70 * width]), bits(&alone));
        }
    }
}
