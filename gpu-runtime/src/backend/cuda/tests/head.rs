use half::bf16;

use super::simulated::{on_backend, on_device};
use super::support::{Rounded, close, rounded, rows, values, wide};
use crate::backend::check::HostAccess;
use crate::backend::cuda::backend::Cuda;
use crate::backend::cuda::ops::head::{DeviceLogSums, DeviceTargets, LogitChunk};
use crate::backend::reference::{Matrix, Reference};
use crate::backend::{
    Backend, DivergenceGradient, Dtype, EntropyGradient, GradientSinks, HeadGradient, LinearCall, MatrixRole,
    ReferenceRows, Rows as _, Source, Targets, VocabularyOps,
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
    let other_w = wide(&rounded::<T>(&values(vocabulary * HIDDEN, 57)));
    let other_x = wide(&rounded::<T>(&values(4 * HIDDEN, 58)));
    let mut d_divergences = values(4, 59);
    d_divergences[2] = 0.0;
    let mut d_entropies = values(4, 56);
    d_entropies[1] = 0.0;
    let inputs =
        Inputs { vocabulary, targets: &targets, d: &d, d_entropies: &d_entropies, d_divergences: &d_divergences };

    let (weight, hidden) = (cuda.pack(&[Source::Host(&w)], HIDDEN, MatrixRole::Base), cuda.rows(&x, HIDDEN));
    let (other, others) = (cuda.pack(&[Source::Host(&other_w)], HIDDEN, MatrixRole::Base), cuda.rows(&other_x, HIDDEN));
    for save in [false, true] {
        let found = inputs.outputs(cuda, [&weight, &other], [&hidden, &others], save, |rows| cuda.values(rows));
        let [weight, other] = [&w, &other_w].map(|w| Matrix::new(w.clone(), HIDDEN));
        let [hidden, others] = [&x, &other_x].map(|x| Matrix::new(x.clone(), HIDDEN));
        let expected =
            inputs.outputs(&Reference, [&weight, &other], [&hidden, &others], false, |rows| rows.data().to_vec());
        for ((name, found), (_, expected)) in found.iter().zip(&expected) {
            close(name, found, expected, if *name == "gradient" { tolerance } else { 2e-6 });
        }
    }
}

/// Gradients of a loss with respect to what the head computes.
struct Inputs<'a> {
    vocabulary: usize,
    targets: &'a Targets,
    d: &'a [f32],
    d_entropies: &'a [f32],
    d_divergences: &'a [f32],
}

impl Inputs<'_> {
    /// What a backend computes of the rows, and gradients with respect to the hidden states: of log-probabilities alone, with
    /// entropies, and with divergences from other rows, with and without entropies.
    fn outputs<B: Backend>(
        &self,
        backend: &B,
        [weight, other]: [&B::Matrix; 2],
        [hidden, others]: [&B::Rows; 2],
        save: bool,
        host: impl Fn(&B::Rows) -> Vec<f32>,
    ) -> Vec<(&'static str, Vec<f32>)> {
        let Self { targets, d, d_entropies, d_divergences, .. } = *self;
        let rows: Vec<usize> = (0..hidden.rows()).collect();
        let none = Targets { offsets: vec![0; rows.len() + 1], ids: Vec::new() };
        let [call, other_call] = [weight, other].map(|weight| LinearCall { weight, bias: None, lora: &[] });
        let (logprobs, state) = backend.target_logprobs(&call, hidden, targets, save);
        let sums = B::Family::head_part(backend, &other_call, others, &none, self.vocabulary, false).sums;
        let lse = none.normalise(&sums, &mut []);
        let reference = || ReferenceRows { unembedding: other, hidden: others, lse: &lse };
        let entropies = B::Family::entropies(backend, &call, hidden, &rows, &state);
        let divergences = B::Family::divergences(backend, &call, hidden, &rows, &state, &reference());
        let divergence = DivergenceGradient { reference: reference(), divergences: &divergences, d_divergences };
        let entropy = EntropyGradient { entropies: &entropies, d_entropies };
        let gradients =
            [(None, None), (Some(entropy), None), (None, Some(&divergence)), (Some(entropy), Some(&divergence))];
        let gradients = gradients.map(|(entropy, divergence)| {
            let gradient = HeadGradient { rows: &rows, sequences: &[], targets, d_logprobs: d, entropy, divergence };
            let mut sinks = GradientSinks::Adapters(&mut []);
            ("gradient", host(&backend.head_backward(&call, hidden, &gradient, &state, 0, &mut sinks)))
        });
        let mut outputs = vec![("log-probabilities", logprobs)];
        outputs.extend(gradients);
        outputs.extend([("entropies", entropies), ("divergences", divergences)]);
        outputs
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
