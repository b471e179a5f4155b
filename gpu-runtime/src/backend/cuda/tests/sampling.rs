use super::simulated::on_device;
use super::support::{close, rows, values};
use crate::backend::cuda::device::memory::Slice;
use crate::backend::cuda::device::open::CudaDevice;
use crate::backend::cuda::ops::rows::DeviceRows;
use crate::backend::cuda::ops::sampling::{DeviceLogits, DeviceRequest, SampleCounter, sample, uniforms};
use crate::backend::reference::{Matrix, Reference};
use crate::backend::{Backend, Logits, Rows, SampledToken, SamplingRule, TokenRequest};
use crate::rng::uniform;

fn request(row: u32, temperature: f32) -> DeviceRequest {
    DeviceRequest { row, temperature, min_p: 0.0, top_k: None, top_p: 1.0, report: 0, changed: None }
}

/// Logits that were computed together.
fn whole(rows: &DeviceRows) -> DeviceLogits<'_> {
    DeviceLogits { rows, part: rows.width().max(1), changed: None }
}

/// Samples of the reference.
fn expected(logits: &Matrix, requests: &[DeviceRequest], us: &[f64]) -> Vec<SampledToken> {
    let request = |(request, u): (&DeviceRequest, &f64)| {
        let DeviceRequest { row, temperature, min_p, top_k, top_p, report, changed: _ } = *request;
        let rule = SamplingRule { temperature, min_p, top_k, top_p, u: *u, changes: None };
        TokenRequest { row: row as usize, rule, report: report as usize }
    };
    let logits = Logits { rows: logits, part: logits.width() };
    Reference.sample(&logits, &requests.iter().zip(us).map(request).collect::<Vec<_>>())
}

/// Samples on the device and on the reference: the same tokens, and the same ones reported.
fn compare(device: &CudaDevice, logits: &[f32], vocabulary: usize, requests: &[DeviceRequest], us: &[f64]) {
    let numbers = device.upload(us).unwrap();
    let sampled = sample(device, &whole(&rows(device, logits, vocabulary)), requests, &numbers).unwrap();
    let expected = expected(&Matrix::new(logits.to_vec(), vocabulary), requests, us);
    let tokens: Vec<u32> = expected.iter().map(|sampled| sampled.token).collect();
    assert_eq!(sampled.tokens.to_host().unwrap(), tokens, "{requests:?} {us:?}");
    let logprobs: Vec<f32> = expected.iter().map(|sampled| sampled.logprob).collect();
    if logprobs.iter().all(|logprob| logprob.is_finite()) {
        close("log-probabilities", &sampled.logprobs.to_host().unwrap(), &logprobs, 1e-5);
    }
    for (i, expected) in expected.iter().enumerate().filter(|(_, expected)| !expected.topk.is_empty()) {
        // Beyond what a request asked for nothing is written.
        let range = i * sampled.reports..i * sampled.reports + expected.topk.len();
        let ids: Vec<u32> = expected.topk.iter().map(|(id, _)| *id).collect();
        assert_eq!(sampled.report.0.copy(range.clone()).unwrap().to_host().unwrap(), ids);
        let logprobs: Vec<f32> = expected.topk.iter().map(|(_, logprob)| *logprob).collect();
        close("reported", &sampled.report.1.copy(range).unwrap().to_host().unwrap(), &logprobs, 1e-5);
    }
}

/// Logits rounded so that ties occur.
fn logits(count: usize, seed: u64) -> Vec<f32> {
    values(count, seed).iter().map(|x| (x * 24.0).round() / 4.0).collect()
}

#[test]
fn tokens_without_cuts_are_those_of_the_processor() {
    on_device(|device| {
        for vocabulary in [1, 31, 512, 1100] {
            let logits = logits(3 * vocabulary, 81);
            let requests: Vec<_> = (0..12u32)
                .map(|i| DeviceRequest { report: i % 3, ..request(i % 3, [1.0, 0.3, 4.0, 0.0][i as usize % 4]) })
                .collect();
            let us: Vec<f64> = (0..12).map(|at| uniform(9, 1, at)).collect();
            compare(device, &logits, vocabulary, &requests, &us);
            let ends = [0.0, 1.0 - f64::EPSILON / 2.0];
            compare(device, &logits, vocabulary, &requests[..2], &ends);
        }
    });
}

#[test]
fn cuts_are_those_of_the_processor() {
    on_device(|device| {
        let vocabulary = 600;
        let logits = logits(2 * vocabulary, 82);
        let cuts = [
            (0.0, Some(1), 1.0),
            (0.0, Some(7), 1.0),
            (0.0, Some(7), 0.5),
            (0.0, None, 0.3),
            (0.2, None, 1.0),
            (0.2, Some(40), 0.8),
            (0.0, Some(10_000), 1.0),
            (1.0, Some(5), 1.0),
            (0.0, Some(0), 1.0),
        ];
        let requests: Vec<_> = (0u32..)
            .zip(cuts)
            .map(|(i, (min_p, top_k, top_p))| DeviceRequest { min_p, top_k, top_p, ..request(i % 2, 0.8) })
            .collect();
        for at in 0..3 {
            let us: Vec<f64> = (0..9).map(|i| uniform(3, at, i)).collect();
            compare(device, &logits, vocabulary, &requests, &us);
        }
    });
}

#[test]
fn rows_of_more_than_sixteen_logits_for_each_thread() {
    on_device(|device| {
        let vocabulary = 9_000;
        let logits = logits(vocabulary, 84);
        let cut = DeviceRequest { top_k: Some(5), top_p: 0.9, ..request(0, 0.7) };
        let requests = [request(0, 1.0), DeviceRequest { report: 3, ..request(0, 0.0) }, cut];
        compare(device, &logits, vocabulary, &requests, &[uniform(5, 0, 0), 0.5, uniform(5, 0, 1)]);
    });
}

#[test]
fn extremes_are_safe() {
    on_device(|device| {
        let (nan, inf) = (f32::NAN, f32::INFINITY);
        let cases = [
            [f32::MAX, f32::MIN, 0.0, nan, -inf],
            [nan, -inf, nan, -inf, nan],
            [nan; 5],
            [1.0, inf, 2.0, inf, nan],
            [-0.0, 0.0, -1.0, -0.0, 0.0],
            [-inf; 5],
        ];
        let requests: Vec<_> = [0.0, 1.0, f32::MIN_POSITIVE, f32::MAX]
            .into_iter()
            .flat_map(|temperature| (0..6).map(move |row| request(row, temperature)))
            .flat_map(|plain| [plain, DeviceRequest { top_k: Some(2), top_p: 0.9, ..plain }])
            .collect();
        let us: Vec<f64> = (0..requests.len() as u64).map(|at| uniform(4, 2, at)).collect();
        compare(device, &cases.concat(), 5, &requests, &us);
    });
}

#[test]
fn numbers_are_those_of_the_generator() {
    on_device(|device| {
        let counters: Vec<SampleCounter> = (0..150u64)
            .map(|i| SampleCounter {
                seed: i << (i % 60),
                index: (i << 40) ^ (u64::MAX * (i % 2)),
                position: (i << 33) | i,
            })
            .collect();
        let found = uniforms(device, &device.upload(&counters).unwrap()).unwrap().to_host().unwrap();
        let expected = counters.iter().map(|counter| uniform(counter.seed, counter.index, counter.position));
        assert_eq!(found, expected.collect::<Vec<_>>());
    });
}

#[test]
fn numbers_stay_on_the_device() {
    on_device(|device| {
        let logits = logits(200, 83);
        let counter = SampleCounter { seed: 11, index: 2, position: 5 };
        let numbers: Slice<f64> = uniforms(device, &device.upload(&[counter]).unwrap()).unwrap();
        let found = sample(device, &whole(&rows(device, &logits, 200)), &[request(0, 1.0)], &numbers).unwrap();
        let expected = expected(&Matrix::new(logits, 200), &[request(0, 1.0)], &[uniform(11, 2, 5)]);
        assert_eq!(found.tokens.to_host().unwrap(), [expected[0].token]);
    });
}

#[test]
fn rows_are_checked() {
    on_device(|device| {
        let logits = rows::<f32>(device, &[0.0; 10], 5);
        let numbers = device.upload(&[0.5f64]).unwrap();
        let all = whole(&logits);
        assert!(sample(device, &all, &[request(2, 1.0)], &numbers).is_err());
        assert!(sample(device, &all, &[request(0, 1.0); 2], &numbers).is_err());
        assert!(sample(device, &DeviceLogits { part: 0, ..all }, &[request(0, 1.0)], &numbers).is_err());
        let changed = DeviceRequest { changed: Some(0), ..request(0, 1.0) };
        assert!(sample(device, &all, &[changed], &numbers).is_err(), "no logits are changed");
        let narrow = rows::<f32>(device, &[0.0; 4], 4);
        assert!(sample(device, &DeviceLogits { changed: Some(&narrow), ..all }, &[changed], &numbers).is_err());
        assert!(sample(device, &whole(&rows(device, &[], 0)), &[], &device.zeros(0).unwrap()).is_err());
        assert!(sample(device, &all, &[], &device.zeros(0).unwrap()).unwrap().tokens.is_empty());
    });
}
