use trainyard_protocol::SamplingControls;

use super::simulated::{on_backend, on_device};
use super::support::{close, rows, values};
use crate::backend::check::HostAccess;
use crate::backend::cuda::device::open::CudaDevice;
use crate::backend::cuda::ops::logits::{change_logits, sample_tokens, score, score_part};
use crate::backend::cuda::ops::matmul::Matmul;
use crate::backend::reference::{Matrix, Reference};
use crate::backend::{
    Backend, Dtype, LinearCall, Logits, MatrixRole, ScoreRequest, Source, Targets, TokenRequest, VocabularyOps,
};
use crate::rng::uniform;
use crate::sampling::{LogitChanges, LogitRules, SamplingRule, TokenCounts, TokenMask};

fn rules(presence: f32, frequency: f32, repetition: f32, bias: &[(u32, f32)], prompt: &[u32]) -> LogitRules {
    let controls = SamplingControls {
        presence_penalty: presence,
        frequency_penalty: frequency,
        repetition_penalty: repetition,
        logit_bias: bias.to_vec(),
        ..SamplingControls::default()
    };
    LogitRules::new(&controls, prompt, &[]).unwrap()
}

/// Logits rounded so that ties occur.
fn logits(count: usize, seed: u64) -> Vec<f32> {
    values(count, seed).iter().map(|x| (x * 24.0).round() / 4.0).collect()
}

fn rule(changes: Option<LogitChanges<'_>>, temperature: f32, u: f64) -> SamplingRule<'_> {
    SamplingRule { temperature, min_p: 0.0, top_k: None, top_p: 1.0, u, changes }
}

const VOCABULARY: usize = 300;

/// Calls `body` with changes of each kind.
fn with_changes(body: impl FnOnce(&[LogitChanges<'_>])) {
    let all = rules(0.5, 0.25, 1.3, &[(0, 3.5), (7, -2.25), (299, 1.0), (4_000, 9.0)], &[5, 7, 5, 100]);
    let (bias, presence) = (rules(0.0, 0.0, 1.0, &[(3, 100.0)], &[]), rules(1.5, 0.0, 1.0, &[], &[9]));
    let [none, some] = [TokenCounts::new(), [(7, 3), (8, 1), (100, 2), (5_000, 1)].into_iter().collect()];
    let mask = TokenMask::new((0..8).map(|word: u32| 0x8421_1248 >> word).collect());
    let nothing = TokenMask::new(Vec::new());
    let of = |rules, counts, allowed| LogitChanges { rules, counts, allowed };
    body(&[
        of(Some(&all), &some, None),
        of(Some(&all), &none, Some(&mask)),
        of(Some(&bias), &some, None),
        of(Some(&presence), &some, Some(&mask)),
        of(None, &some, Some(&mask)),
        of(None, &none, Some(&nothing)),
        of(None, &some, None),
    ]);
}

#[test]
fn logits_are_changed_as_on_the_processor() {
    on_device(|device| {
        with_changes(|changes| {
            let logits = values(3 * VOCABULARY, 1);
            let on = rows::<f32>(device, &logits, VOCABULARY);
            let of: Vec<_> = changes.iter().enumerate().map(|(i, changes)| (i % 3, *changes)).collect();
            let found = change_logits(device, &on, &of).unwrap().to_host().unwrap();
            for ((row, changes), found) in of.iter().zip(found.chunks(VOCABULARY)) {
                let mut expected = logits[row * VOCABULARY..][..VOCABULARY].to_vec();
                changes.apply(&mut expected);
                assert_eq!(found, expected, "{changes:?}");
            }
            assert!(change_logits(device, &on, &[(3, changes[0])]).is_err());
        });
    });
}

#[test]
fn tokens_are_those_of_the_reference() {
    on_device(|device| {
        with_changes(|changes| {
            let logits = logits(2 * VOCABULARY, 2);
            let mut requests = Vec::new();
            for (i, changes) in changes.iter().map(Some).chain([None]).enumerate() {
                for (at, temperature) in [0.0, 0.7, 2.0].into_iter().enumerate() {
                    let plain = rule(changes.copied(), temperature, uniform(3, i as u64, at as u64));
                    let cut = SamplingRule { top_k: Some(9), top_p: 0.8, min_p: 0.01, ..plain };
                    requests.push(TokenRequest { row: i % 2, rule: plain, report: i % 3 });
                    requests.push(TokenRequest { row: (i + 1) % 2, rule: cut, report: at });
                }
            }
            for part in [VOCABULARY, 128, 43] {
                let on = rows(device, &logits, VOCABULARY);
                let found = sample_tokens(device, &on, part, &requests).unwrap();
                let matrix = Matrix::new(logits.clone(), VOCABULARY);
                let expected = Reference.sample(&Logits { rows: &matrix, part }, &requests);
                for (found, expected) in found.iter().zip(&expected) {
                    assert_eq!(found.token, expected.token);
                    close("log-probability", &[found.logprob], &[expected.logprob], 1e-5);
                    same_tokens(&found.topk, &expected.topk);
                }
            }
        });
    });
}

fn same_tokens(found: &[(u32, f32)], expected: &[(u32, f32)]) {
    let split = |of: &[(u32, f32)]| -> (Vec<u32>, Vec<f32>) { of.iter().copied().unzip() };
    let ((found, found_values), (expected, expected_values)) = (split(found), split(expected));
    assert_eq!(found, expected);
    close("tokens", &found_values, &expected_values, 1e-5);
}

fn requests() -> Vec<ScoreRequest> {
    let us = |seed| (0..5).map(|at| uniform(seed, 2, at)).collect();
    vec![
        ScoreRequest { row: 1, targets: vec![0, 99, 0], topk: 0, alternatives: None },
        ScoreRequest { row: 0, targets: vec![], topk: 4, alternatives: Some((0.5, us(1))) },
        ScoreRequest { row: 1, targets: vec![57], topk: 1_000, alternatives: Some((0.0, us(2))) },
    ]
}

#[test]
fn scores_are_those_of_the_reference() {
    on_device(|device| {
        let logits = logits(2 * 260, 3);
        let (on, matrix) = (rows::<f32>(device, &logits, 260), Matrix::new(logits, 260));
        for part in [260, 33, 1] {
            let found = score(device, &on, part, &requests()).unwrap();
            let expected = Reference.score(&Logits { rows: &matrix, part }, &requests());
            for (found, expected) in found.iter().zip(&expected) {
                close("targets", &found.targets, &expected.targets, 1e-5);
                same_tokens(&found.topk, &expected.topk);
                same_tokens(&found.alternatives, &expected.alternatives);
            }
        }
        assert!(score(device, &on, 260, &[]).unwrap().is_empty());
        let beyond = |row, target| ScoreRequest { row, targets: vec![target], ..ScoreRequest::default() };
        assert!(score(device, &on, 260, &[beyond(2, 0)]).is_err());
        assert!(score(device, &on, 260, &[beyond(0, 260)]).is_err());
    });
}

#[test]
fn scores_of_more_than_sixteen_logits_for_each_thread() {
    on_device(|device| {
        let vocabulary = 9_000;
        let logits = logits(vocabulary, 7);
        let (on, matrix) = (rows::<f32>(device, &logits, vocabulary), Matrix::new(logits, vocabulary));
        let requests = [ScoreRequest { row: 0, targets: vec![0, 8_999], topk: 4, alternatives: None }];
        for part in [vocabulary, 5_000] {
            let found = score(device, &on, part, &requests).unwrap();
            let expected = Reference.score(&Logits { rows: &matrix, part }, &requests);
            close("targets", &found[0].targets, &expected[0].targets, 1e-5);
            same_tokens(&found[0].topk, &expected[0].topk);
        }
    });
}

#[test]
fn parts_of_scores_are_those_of_the_reference() {
    on_device(|device| {
        let logits = logits(2 * 130, 4);
        let (on, matrix) = (rows::<f32>(device, &logits, 130), Matrix::new(logits, 130));
        let mut requests = requests();
        requests[0].targets.push(Targets::ELSEWHERE);
        let found = score_part(device, &on, 100, &requests).unwrap();
        let expected = Reference::score_part(&Reference, &matrix, 100, &requests);
        for (found, expected) in found.iter().zip(&expected) {
            assert_eq!(
                (found.sum.max, &found.targets, &found.topk),
                (expected.sum.max, &expected.targets, &expected.topk)
            );
            close("sum", &[found.sum.sum], &[expected.sum.sum], 1e-5);
        }
        assert!(score_part(device, &on, 131, &requests).is_err());
    });
}

/// The logits of a head with these weights; `x` are the rows of hidden states.
fn product(x: &[f32], w: &[f32], device: &CudaDevice) -> Vec<f32> {
    let matmul = Matmul::new(device).unwrap();
    let plan = matmul.plan::<f32>(w.len() / 16, 16, crate::backend::cuda::ops::product::WeightSide::Inputs).unwrap();
    let weight = rows::<f32>(device, w, 16);
    let mut logits = rows(device, &vec![0.0; x.len() / 16 * (w.len() / 16)], w.len() / 16);
    matmul.run(&plan, &rows(device, x, 16), &weight, 0..w.len() / 16, &mut logits, false).unwrap();
    logits.to_host().unwrap()
}

#[test]
fn scores_have_the_bits_of_the_loss_head() {
    on_backend(Dtype::F32, |cuda| {
        let mut cuda = cuda;
        for (vocabulary, chunk) in [(300, 300), (301, 43), (520, 256)] {
            cuda = cuda.with_chunk(chunk);
            let (w, x) = (values(vocabulary * 16, 5), values(2 * 16, 6));
            let mut targets = Targets::empty();
            targets.push([0, 57]);
            targets.push([vocabulary as u32 - 1]);
            let weight = cuda.pack(&[Source::Host(&w)], 16, MatrixRole::Base);
            let call = LinearCall { weight: &weight, bias: None, lora: &[] };
            let (logprobs, _) = cuda.target_logprobs(&call, &cuda.rows(&x, 16), &targets, false);
            let logits = rows::<f32>(cuda.gpu(), &product(&x, &w, cuda.gpu()), vocabulary);
            let requests: Vec<_> = (0..2)
                .map(|row| ScoreRequest {
                    row,
                    targets: targets.ids[targets.of(row)].to_vec(),
                    ..ScoreRequest::default()
                })
                .collect();
            for (row, found) in score(cuda.gpu(), &logits, chunk, &requests).unwrap().iter().enumerate() {
                assert_eq!(found.targets, logprobs[targets.of(row)]);
            }
        }
    });
}
