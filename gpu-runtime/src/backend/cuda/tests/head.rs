use half::bf16;

use super::simulated::{on_backend, on_device};
use super::support::{Rounded, close, rounded, rows, values, wide};
use crate::backend::check::HostAccess;
use crate::backend::cuda::backend::Cuda;
use crate::backend::cuda::ops::head::{DeviceLogSums, DeviceTargets, LogitChunk};
use crate::backend::reference::{Matrix, Reference};
use crate::backend::{
    Backend, Dtype, EntropyGradient, GradientSinks, HeadGradient, LinearCall, MatrixRole, Source, Targets,
    VocabularyOps as _,
};

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
fn compare<T: Rounded>(cuda: &Cuda, vocabulary: usize, tolerance: f32) {
    let w = wide(&rounded::<T>(&values(vocabulary * HIDDEN, 51)));
    let x = wide(&rounded::<T>(&values(4 * HIDDEN, 52)));
    let targets = targets(vocabulary as u32);
    let d = values(targets.ids.len(), 53);
    let rows = [0, 1, 2, 3];
    let plain = HeadGradient { rows: &rows, sequences: &[], targets: &targets, d_logprobs: &d, entropy: None };
    let mut d_entropies = values(rows.len(), 56);
    d_entropies[1] = 0.0;

    let (weight, hidden) = (cuda.pack(&[Source::Host(&w)], HIDDEN, MatrixRole::Base), cuda.rows(&x, HIDDEN));
    let call = LinearCall { weight: &weight, bias: None, lora: &[] };
    for save in [false, true] {
        let (logprobs, state) = cuda.target_logprobs(&call, &hidden, &targets, save);
        let entropies = Cuda::entropies(cuda, &call, &hidden, &rows, &state);
        let entropy = Some(EntropyGradient { entropies: &entropies, d_entropies: &d_entropies });
        let gradients = [plain, HeadGradient { entropy, ..plain }];
        let found = gradients.map(|gradient| {
            let mut sinks = GradientSinks::Adapters(&mut []);
            cuda.values(&cuda.head_backward(&call, &hidden, &gradient, &state, 0, &mut sinks))
        });

        let (weight, hidden) = (Matrix::new(w.clone(), HIDDEN), Matrix::new(x.clone(), HIDDEN));
        let call = LinearCall { weight: &weight, bias: None, lora: &[] };
        let (expected, state) = Reference.target_logprobs(&call, &hidden, &targets, false);
        close("log-probabilities", &logprobs, &expected, 2e-6);
        close("entropies", &entropies, &Reference::entropies(&Reference, &call, &hidden, &rows, &state), 2e-6);
        for (gradient, found) in gradients.iter().zip(&found) {
            let mut sinks = GradientSinks::Adapters(&mut []);
            let expected = Reference.head_backward(&call, &hidden, gradient, &state, 0, &mut sinks);
            close("gradient", found, expected.data(), tolerance);
        }
    }
}

/// Vocabularies of one chunk, and of several with a last one that is shorter.
const CASES: [(usize, usize); 5] = [(1, 8), (40, 64), (40, 16), (300, 300), (301, 43)];

#[test]
fn log_probabilities_and_their_gradients() {
    on_backend(Dtype::F32, |cuda| {
        let mut cuda = cuda;
        for (vocabulary, chunk) in CASES {
            cuda = cuda.with_chunk(chunk);
            compare::<f32>(&cuda, vocabulary, 2e-6);
        }
    });
}

#[test]
fn log_probabilities_and_their_gradients_in_bf16() {
    on_backend(Dtype::Bf16, |cuda| {
        let mut cuda = cuda;
        for (vocabulary, chunk) in CASES {
            cuda = cuda.with_chunk(chunk);
            // The gradient with respect to the logits is rounded.
            compare::<bf16>(&cuda, vocabulary, 1e-2);
        }
    });
}

#[test]
fn a_row_has_its_bits_in_every_batch() {
    on_backend(Dtype::Bf16, |cuda| {
        let cuda = cuda.with_chunk(32);
        let weight = cuda.pack(&[Source::Host(&values(90 * HIDDEN, 54))], HIDDEN, MatrixRole::Base);
        let call = LinearCall { weight: &weight, bias: None, lora: &[] };
        let x = values(3 * HIDDEN, 55);
        let logprobs = |x: &[f32], ids: &[u32]| {
            let mut targets = Targets::empty();
            ids.iter().for_each(|id| targets.push([*id]));
            cuda.target_logprobs(&call, &cuda.rows(x, HIDDEN), &targets, false).0
        };
        let all = logprobs(&x, &[5, 60, 89]);
        for ((x, id), expected) in x.chunks(HIDDEN).zip([5, 60, 89]).zip(&all) {
            assert_eq!(logprobs(x, &[id]), [*expected]);
        }
    });
}

#[test]
fn impossible_logits_are_no_trap() {
    on_backend(Dtype::F32, |cuda| {
        // Infinite logits: in the first chunk of the vocabulary all are -inf.
        let cuda = cuda.with_chunk(2);
        let w = [f32::NEG_INFINITY, f32::NEG_INFINITY, 1.0, 2.0];
        let weight = cuda.pack(&[Source::Host(&w)], 1, MatrixRole::Base);
        let call = LinearCall { weight: &weight, bias: None, lora: &[] };
        let mut targets = Targets::empty();
        targets.push([0, 3]);
        let x = cuda.rows(&[1.0], 1);
        let (logprobs, state) = cuda.target_logprobs(&call, &x, &targets, false);
        assert_eq!(logprobs[0], f32::NEG_INFINITY);
        let [p, q] = [1.0, 0.0].map(|other: f32| 1.0 / (1.0 + (2.0 * other - 1.0).exp()));
        let entropy = Cuda::entropies(&cuda, &call, &x, &[0], &state)[0];
        assert!((entropy + p * p.ln() + q * q.ln()).abs() < 1e-6, "{entropy}");
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
        let targets = DeviceTargets::upload(device, &targets, 8).unwrap();
        let logits = rows::<f32>(device, &values(2 * 8, 57), 8);
        let chunk = LogitChunk { logits: &logits, column: 0, tokens: (0, 8) };
        let mut found = device.zeros(1).unwrap();
        assert!(DeviceLogSums::new(device, 2).unwrap().add(device, chunk, &targets, &mut found).is_err());
        DeviceLogSums::new(device, 1).unwrap().add(device, chunk, &targets, &mut found).unwrap();
    });
}
