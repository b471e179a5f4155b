//! Recurrences, short convolutions, scaled sums and activations without a gate: against the reference backend, and their bits in any
//! passes.

use super::simulated::{on_backend, on_device};
use super::support::{close, rows};
use crate::backend::check;
use crate::backend::cuda::backend::Cuda;
use crate::backend::cuda::device::open::CudaDevice;
use crate::backend::cuda::ops::convolution::{DeviceConvolution, convolve, convolve_backward};
use crate::backend::cuda::ops::norm::DeviceNorm;
use crate::backend::cuda::ops::recurrence::{DeviceRecurrence, recur};
use crate::backend::cuda::ops::recurrence_gate::{DeviceGate, gate_output};
use crate::backend::cuda::ops::sequences::DeviceSequences;
use crate::backend::reference::Reference;
use crate::backend::{Activation, ConvolutionShape, Dtype, RecurrentRule, RecurrentShape, StateOps};

/// Channels fill a block's threads, exceed them, or are few.
fn convolutions() -> [ConvolutionShape; 3] {
    [(270, 4), (5, 2), (7, 1)].map(|(channels, kernel)| ConvolutionShape { channels, kernel })
}

fn recurrence(rule: RecurrentRule, heads: [usize; 2], dims: [usize; 2], kernel: usize) -> RecurrentShape {
    let ([key_heads, value_heads], [key_dim, value_dim]) = (heads, dims);
    RecurrentShape { rule, key_heads, value_heads, key_dim, value_dim, kernel }
}

fn recurrences() -> [RecurrentShape; 3] {
    let mamba = RecurrentRule::Mamba2 { limits: (0.0, f32::INFINITY) };
    [
        recurrence(RecurrentRule::DeltaNet, [2, 4], [8, 12], 4),
        recurrence(RecurrentRule::DeltaNet, [1, 1], [70, 36], 3),
        recurrence(mamba, [2, 6], [16, 8], 4),
    ]
}

fn bits(x: &[f32]) -> Vec<u32> {
    x.iter().map(|x| x.to_bits()).collect()
}

fn agree(found: &check::access::Results, expected: &check::access::Results, tolerance: f32) {
    assert_eq!(found.len(), expected.len());
    for ((name, found), (_, expected)) in found.iter().zip(expected) {
        close(name, found, expected, tolerance);
    }
}

#[test]
fn recurrences_and_their_gradients() {
    on_backend(Dtype::F32, |cuda| {
        for shape in recurrences() {
            let of = |lens: &[usize]| {
                (check::recurrences(&cuda, shape, lens, 22), check::recurrences(&Reference, shape, lens, 22))
            };
            let (found, expected) = of(&[70, 1, 5]);
            agree(&found, &expected, 2e-5);
        }
    });
}

/// Steps that are cut at both bounds have no gradient.
#[test]
fn steps_between_bounds() {
    on_backend(Dtype::F32, |cuda| {
        let rule = RecurrentRule::Mamba2 { limits: (0.5, 0.9) };
        let shape = recurrence(rule, [1, 2], [4, 6], 2);
        let [found, expected] =
            [check::recurrences(&cuda, shape, &[9, 2], 23), check::recurrences(&Reference, shape, &[9, 2], 23)];
        agree(&found, &expected, 2e-5);
    });
}

#[test]
fn convolutions_and_their_gradients() {
    on_backend(Dtype::F32, |cuda| {
        for shape in convolutions() {
            let lens = [9, 1, 4];
            agree(
                &check::convolutions(&cuda, shape, &lens, 21),
                &check::convolutions(&Reference, shape, &lens, 21),
                2e-6,
            );
        }
    });
}

#[test]
fn scaled_sums_and_activations_without_a_gate() {
    on_backend(Dtype::F32, |cuda| {
        agree(&check::scaled(&cuda, 5, 103, 20), &check::scaled(&Reference, 5, 103, 20), 0.0);
        let [found, expected] = [
            check::activations(&cuda, Activation::SquaredRelu, 5, 103, 24),
            check::activations(&Reference, Activation::SquaredRelu, 5, 103, 24),
        ];
        agree(&found, &expected, 1e-6);
    });
}

/// A sequence has its bits in any passes and company, and after a copy of its state.
#[test]
fn bits_of_mixers_do_not_depend_on_passes() {
    on_backend(Dtype::F32, |cuda| {
        let take = |pool: &mut _| <Cuda as StateOps<Cuda>>::state_take(&cuda, pool);
        for shape in recurrences() {
            let (own, width) = (check::Recurrence::new(&cuda, shape), shape.input_width());
            let (inputs, others) = (check::values(132 * width, 1), check::values(3 * width, 2));
            let alone = own.run(&mut own.pool(), &check::whole(&[132]), &inputs).map(|x| bits(&x));
            let mut pool = own.pool();
            let [state, copy] = [take(&mut pool), take(&mut pool)];
            let (mut pieces, mut first) = ([Vec::new(), Vec::new()], 0);
            for taken in [1, 2, 60, 1, 1, 66, 1] {
                let piece = &inputs[first * width..(first + taken) * width];
                // The copy computes the same rows, without company.
                Cuda::state_copy(&cuda, &mut pool, state, copy);
                let copied = own.run(&mut pool, &[check::span(0..taken, first, Some(copy))], piece);
                let spans = [check::span(0..3, 0, None), check::span(3..3 + taken, first, Some(state))];
                let found = own.run(&mut pool, &spans, &[&others[..], piece].concat());
                for ((to, found), copied) in pieces.iter_mut().zip(found).zip(copied) {
                    let found = bits(&found[3 * shape.value_width()..]);
                    assert_eq!(found, bits(&copied));
                    to.extend(found);
                }
                first += taken;
            }
            assert_eq!(pieces, alone);
        }
        for shape in convolutions() {
            let (own, width) = (check::Convolution::new(&cuda, shape), shape.input_width());
            let inputs = check::values(9 * width, 1);
            let alone = bits(&own.run(&mut own.pool(), &check::whole(&[9]), &inputs));
            let (mut pool, mut pieces) = (own.pool(), Vec::new());
            // An id is used again, with a state of zeros.
            let used = take(&mut pool);
            own.run(&mut pool, &[check::span(0..9, 0, Some(used))], &inputs);
            Cuda::state_release(&cuda, &mut pool, used);
            let state = take(&mut pool);
            for rows in [0..1, 1..3, 3..9] {
                let spans = [check::span(0..rows.len(), rows.start, Some(state))];
                let piece = &inputs[rows.start * width..rows.end * width];
                pieces.extend(bits(&own.run(&mut pool, &spans, piece)));
            }
            assert_eq!(pieces, alone);
        }
    });
}

/// Rows of no sequence have zeros, and add nothing to gradients.
#[test]
fn rows_outside_of_sequences_have_zeros() {
    on_backend(Dtype::F32, |cuda| {
        for shape in recurrences() {
            let (own, width) = (check::Recurrence::new(&cuda, shape), shape.input_width());
            let inputs = check::values(8 * width, 1);
            let spans = [check::span(0..3, 0, None), check::span(5..7, 0, None)];
            let [out, gated] = own.run(&mut own.pool(), &spans, &inputs);
            let columns = shape.value_width();
            for row in [3, 4, 7] {
                assert!(
                    out[row * columns..(row + 1) * columns]
                        .iter()
                        .chain(&gated[row * columns..][..columns])
                        .all(|x| *x == 0.0)
                );
            }
            let [both, _] = own.run(&mut own.pool(), &check::whole(&[3]), &inputs[..3 * width]);
            assert_eq!(bits(&out[..3 * columns]), bits(&both));
        }
    });
}

#[test]
fn extents_are_checked() {
    on_device(|device| {
        let [shape, _, mamba] = recurrences();
        let sequences = |rows: usize| DeviceSequences::upload(device, &check::whole(&[rows]), &[0], rows).unwrap();
        let numbers = |count: usize| device.upload(&vec![0.5f32; count]).unwrap();
        let inputs = |width: usize| rows::<f32>(device, &vec![0.5; 3 * width], width);
        let (own, other) = (sequences(3), sequences(2));
        let weights = [shape.channels() * shape.kernel, shape.value_heads, shape.value_dim].map(numbers);
        let [conv, heads, norm] = &weights;
        let norm = DeviceNorm { weight: norm, eps: 1e-5 };
        let of = DeviceRecurrence {
            shape: &shape,
            conv,
            conv_bias: None,
            a_log: heads,
            dt_bias: heads,
            skip: None,
            sequences: &own,
            state: 0,
        };
        let run = |of: DeviceRecurrence<'_>, width: usize| recur(device, of, &inputs(width)).map(|_| ());
        let width = shape.input_width();
        run(of, width).unwrap();
        let wide = RecurrentShape { key_dim: 257, ..shape };
        let uneven = RecurrentShape { value_heads: 3, ..shape };
        assert!(run(of, width - 1).is_err());
        assert!(run(DeviceRecurrence { sequences: &other, ..of }, width).is_err());
        assert!(run(DeviceRecurrence { conv: heads, ..of }, width).is_err());
        assert!(run(DeviceRecurrence { conv_bias: Some(heads), ..of }, width).is_err());
        assert!(run(DeviceRecurrence { a_log: conv, ..of }, width).is_err());
        assert!(run(DeviceRecurrence { dt_bias: conv, ..of }, width).is_err());
        assert!(run(DeviceRecurrence { skip: Some(heads), ..of }, width).is_err());
        assert!(run(DeviceRecurrence { shape: &mamba, ..of }, mamba.input_width()).is_err());
        assert!(run(DeviceRecurrence { shape: &uneven, ..of }, uneven.input_width()).is_err());
        let problem = run(DeviceRecurrence { shape: &wide, ..of }, wide.input_width()).unwrap_err().to_string();
        assert_eq!(problem, "recur: the width of a key head is 257, not between 1 and 256");
        let gate = DeviceGate { shape: &shape, norm };
        gate_output(device, gate, &inputs(width), &inputs(shape.value_width())).unwrap();
        assert!(gate_output(device, gate, &inputs(width), &inputs(shape.value_width() - 1)).is_err());
        let other = DeviceNorm { weight: heads, ..norm };
        assert!(
            gate_output(device, DeviceGate { norm: other, ..gate }, &inputs(width), &inputs(shape.value_width()))
                .is_err()
        );
        sequences_are_checked(device);
        convolutions_are_checked(device, &own);
    });
}

/// Sequences follow each other within the batch, do not share states, and begin at position 0 where they have none.
fn sequences_are_checked(device: &CudaDevice) {
    let state = Some(crate::backend::StateId(0));
    let of =
        |spans: &[crate::backend::Span], states: &[u64]| DeviceSequences::upload(device, spans, states, 4).map(|_| ());
    of(&[check::span(0..1, 5, state), check::span(1..4, 0, None)], &[512, 0]).unwrap();
    assert!(of(&[check::span(0..5, 0, None)], &[0]).is_err());
    assert!(of(&[check::span(2..4, 0, None), check::span(0..2, 0, None)], &[0, 0]).is_err());
    assert!(of(&[check::span(0..2, 1, None)], &[0]).is_err());
    assert!(of(&[check::span(0..2, 0, state), check::span(2..3, 0, state)], &[512, 512]).is_err());
    assert!(of(&[check::span(0..2, 0, None)], &[]).is_err());
}

fn convolutions_are_checked(device: &CudaDevice, own: &DeviceSequences) {
    let [_, shape, _] = convolutions();
    let weight = device.upload(&vec![0.5f32; shape.channels * shape.kernel]).unwrap();
    let of = DeviceConvolution { shape: &shape, weight: &weight, sequences: own, state: 0 };
    let inputs = |width: usize| rows::<f32>(device, &vec![0.5; 3 * width], width);
    let width = shape.input_width();
    convolve(device, of, &inputs(width)).unwrap();
    assert!(convolve(device, of, &inputs(width + 1)).is_err());
    let none = ConvolutionShape { kernel: 0, ..shape };
    assert!(convolve(device, DeviceConvolution { shape: &none, ..of }, &inputs(width)).is_err());
    assert!(convolve_backward(device, of, &inputs(width), &inputs(shape.channels + 1), None).is_err());
}
