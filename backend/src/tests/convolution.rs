//! Short convolutions: bits do not depend on how a sequence is cut into passes or on its neighbours, and values and gradients are
//! those of the formula token by token, which the reference backend computes.

use proptest::prelude::*;

use super::recurrent::{assert_close, bits, cpus};
use crate::check::{Convolution, span, values, whole};
use crate::cpu::Cpu;
use crate::reference::Reference;
use crate::{ConvolutionShape, StateOps};

/// Channels fill a task's columns, exceed them, or are few.
fn shapes() -> [ConvolutionShape; 4] {
    [(64, 3), (150, 4), (5, 2), (7, 1)].map(|(channels, kernel)| ConvolutionShape { channels, kernel })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn a_sequence_has_its_bits_in_any_passes_and_company(
        len in 1usize..60,
        cuts in prop::collection::vec(1usize..9, 1..12),
        neighbour in 1usize..20,
        at in 0usize..4,
    ) {
        let shape = shapes()[at];
        let width = shape.input_width();
        let (inputs, others) = (values(len * width, 1), values(neighbour * width, 2));
        for cpu in cpus() {
            let own = Convolution::new(&cpu, shape);
            let alone = bits(&own.run(&mut own.pool(), &whole(&[len]), &inputs));
            let both = own.run(&mut own.pool(), &whole(&[neighbour, len]), &[&others[..], &inputs].concat());
            prop_assert_eq!(bits(&both[neighbour * shape.channels..]), alone.clone());

            // In pieces beside a sequence with a state of its own, and from a copy of the state after the first piece.
            let mut pool = own.pool();
            let [state, copy, other] = [(); 3].map(|()| Cpu::state_take(&cpu, &mut pool));
            let (mut pieces, mut copied, mut first) = (Vec::new(), Vec::new(), 0);
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
                let beside = [span(0..1, index, Some(other)), span(1..1 + rows.len(), rows.start, Some(state))];
                let found = own.run(&mut pool, &beside, &[&others[..width], piece].concat());
                pieces.extend(bits(&found[shape.channels..]));
                if index >= 1 {
                    let found = own.run(&mut pool, &[span(0..rows.len(), rows.start, Some(copy))], piece);
                    copied.extend(bits(&found));
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

#[test]
fn values_and_gradients_are_those_of_the_formula_by_token() {
    for shape in shapes() {
        let lens = [40, 1, 2, 30];
        let inputs = values(lens.iter().sum::<usize>() * shape.input_width(), 3);
        let expected = Convolution::new(&Reference, shape).backward(&lens, &inputs);
        for cpu in cpus() {
            let found = Convolution::new(&cpu, shape).backward(&lens, &inputs);
            for ((what, found), expected) in ["output", "inputs", "weights"].into_iter().zip(&found).zip(&expected) {
                assert_close(what, found, expected);
            }
        }
    }
}

/// The gradient of the reference backend is the slope of its output.
#[test]
fn gradients_of_the_reference_are_slopes() {
    let shape = ConvolutionShape { channels: 2, kernel: 3 };
    let own = Convolution::new(&Reference, shape);
    let inputs = values(6 * shape.input_width(), 3);
    let [out, d_inputs, _] = own.backward(&[4, 2], &inputs);
    let d_out = values(out.len(), 7);
    let value = |inputs: &[f32]| -> f32 {
        own.run(&mut own.pool(), &whole(&[4, 2]), inputs).iter().zip(&d_out).map(|(y, d)| y * d).sum()
    };
    for at in 0..inputs.len() {
        let moved = |by: f32| {
            let mut inputs = inputs.clone();
            inputs[at] += by;
            value(&inputs)
        };
        let slope = (moved(0.01) - moved(-0.01)) / 0.02;
        assert!((slope - d_inputs[at]).abs() < 1e-3, "{at}: {slope} != {}", d_inputs[at]);
    }
}

/// Gradients of a sequence do not depend on the sequences beside it, and those of weights add up sequence by sequence.
#[test]
fn gradients_of_a_sequence_have_its_bits_in_any_company() {
    for shape in shapes() {
        let width = shape.input_width();
        let inputs = values(30 * width, 5);
        for cpu in cpus() {
            let own = Convolution::new(&cpu, shape);
            let [_, alone, _] = own.backward(&[20], &inputs[..20 * width]);
            let [_, both, _] = own.backward(&[20, 10], &inputs);
            assert_eq!(bits(&both[..20 * width]), bits(&alone));
        }
    }
}
