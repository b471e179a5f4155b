use half::bf16;

use super::simulated::on_device;
use super::support::{Rounded, close, rounded, rows, values, wide};
use crate::backend::cuda::{CudaDevice, DeviceTargets, Head, Matmul, head_backward, target_logprobs};
use crate::backend::reference::{Matrix, Reference};
use crate::backend::{Backend, GradientSinks, HeadGradient, LinearCall, Targets};

const HIDDEN: usize = 16;

/// Rows with one target, several, the same twice, and none.
fn targets(vocabulary: u32) -> Targets {
    let mut targets = Targets::empty();
    targets.push([vocabulary - 1]);
    targets.push([0, vocabulary / 2, 0]);
    targets.push([]);
    targets.push([3 % vocabulary]);
    targets
}

/// Log-probabilities and the gradient, on the device and on the reference, for elements that `T` represents.
fn compare<T: Rounded>(device: &CudaDevice, vocabulary: usize, chunk: usize, tolerance: f32) {
    let w = wide(&rounded::<T>(&values(vocabulary * HIDDEN, 51)));
    let x = wide(&rounded::<T>(&values(4 * HIDDEN, 52)));
    let targets = targets(vocabulary as u32);
    let d = values(targets.ids.len(), 53);

    let matmul = Matmul::new(device).unwrap();
    let (weight, hidden) = (rows::<T>(device, &w, HIDDEN), rows::<T>(device, &x, HIDDEN));
    let head = Head::new(&matmul, &weight, chunk).unwrap();
    let on_device = DeviceTargets::upload(device, &targets, vocabulary).unwrap();
    let (logprobs, log_sums) = target_logprobs(device, &head, &hidden, &on_device).unwrap();
    let dx = head_backward(device, &head, &hidden, &on_device, &log_sums, &device.upload(&d).unwrap()).unwrap();

    let (weight, hidden) = (Matrix::new(w, HIDDEN), Matrix::new(x, HIDDEN));
    let call = LinearCall { weight: &weight, bias: None, lora: &[] };
    let (expected, state) = Reference.target_logprobs(&call, &hidden, &targets, false);
    close("log-probabilities", &logprobs.to_host().unwrap(), &expected, 2e-6);
    let gradient = HeadGradient { rows: &[0, 1, 2, 3], sequences: &[], targets: &targets, d_logprobs: &d };
    let mut sinks = GradientSinks::Adapters(&mut []);
    let expected = Reference.head_backward(&call, &hidden, &gradient, &state, 0, &mut sinks);
    close("gradient", &dx.to_host().unwrap(), expected.data(), tolerance);
}

#[test]
fn log_probabilities_and_their_gradients() {
    on_device(|device| {
        for (vocabulary, chunk) in [(1, 8), (40, 64), (40, 16), (300, 300), (301, 43)] {
            compare::<f32>(device, vocabulary, chunk, 2e-6);
            // The gradient with respect to the logits is rounded.
            compare::<bf16>(device, vocabulary, chunk, 1e-2);
        }
    });
}

#[test]
fn a_row_has_its_bits_in_every_batch() {
    on_device(|device| {
        let matmul = Matmul::new(device).unwrap();
        let weight = rows::<bf16>(device, &values(90 * HIDDEN, 54), HIDDEN);
        let head = Head::new(&matmul, &weight, 32).unwrap();
        let x = values(3 * HIDDEN, 55);
        let logprobs = |x: &[f32], ids: &[u32]| {
            let mut targets = Targets::empty();
            ids.iter().for_each(|id| targets.push([*id]));
            let targets = DeviceTargets::upload(device, &targets, 90).unwrap();
            target_logprobs(device, &head, &rows(device, x, HIDDEN), &targets).unwrap().0.to_host().unwrap()
        };
        let all = logprobs(&x, &[5, 60, 89]);
        for ((x, id), expected) in x.chunks(HIDDEN).zip([5, 60, 89]).zip(&all) {
            assert_eq!(logprobs(x, &[id]), [*expected]);
        }
    });
}

#[test]
fn impossible_logits_are_no_trap() {
    on_device(|device| {
        // Infinite logits: in the first chunk of the vocabulary all are -inf.
        let matmul = Matmul::new(device).unwrap();
        let weight = rows::<f32>(device, &[f32::NEG_INFINITY, f32::NEG_INFINITY, 1.0, 2.0], 1);
        let head = Head::new(&matmul, &weight, 2).unwrap();
        let mut targets = Targets::empty();
        targets.push([0, 3]);
        let targets = DeviceTargets::upload(device, &targets, 4).unwrap();
        let (logprobs, _) = target_logprobs(device, &head, &rows(device, &[1.0], 1), &targets).unwrap();
        let logprobs = logprobs.to_host().unwrap();
        assert_eq!(logprobs[0], f32::NEG_INFINITY);
        assert!((logprobs[1] - (2.0 - (1f32.exp() + 2f32.exp()).ln())).abs() < 1e-6, "{logprobs:?}");
    });
}

#[test]
fn targets_are_checked() {
    on_device(|device| {
        let mut targets = Targets::empty();
        targets.push([7]);
        assert!(DeviceTargets::upload(device, &targets, 7).is_err());
        let cut = Targets { offsets: vec![0, 0], ids: vec![1] };
        assert!(DeviceTargets::upload(device, &cut, 7).is_err());
        let matmul = Matmul::new(device).unwrap();
        let weight = rows::<f32>(device, &values(8 * HIDDEN, 56), HIDDEN);
        let head = Head::new(&matmul, &weight, 8).unwrap();
        let targets = DeviceTargets::upload(device, &targets, 8).unwrap();
        let two = rows(device, &values(2 * HIDDEN, 57), HIDDEN);
        assert!(target_logprobs(device, &head, &two, &targets).is_err());
    });
}
