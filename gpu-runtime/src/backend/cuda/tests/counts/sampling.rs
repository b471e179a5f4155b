//! Sampling and scores of a row of 8192 logits.

use trainyard_protocol::SamplingControls;

use super::super::support::{rows, values};
use super::Counts;
use crate::backend::ScoreRequest;
use crate::backend::cuda::ops::logits::{change_logits, score_part};
use crate::backend::cuda::ops::sampling::{DeviceLogits, DeviceRequest, SampleCounter, sample, uniforms};
use crate::sampling::{LogitChanges, LogitRules, TokenCounts};

const VOCABULARY: usize = 8192;
const SHAPE: &str = "1x8192";

pub(super) fn count(counts: &mut Counts<'_>) {
    let device = counts.device;
    let logits = rows::<f32>(device, &values(VOCABULARY, 1), VOCABULARY);
    let counter = device.upload(&[SampleCounter { seed: 1, index: 2, position: 3 }]).unwrap();
    let u = counts.count("1 number", &[("uniforms", "number", 1)], |device| uniforms(device, &counter).unwrap());
    let plain =
        DeviceRequest { row: 0, temperature: 1.0, min_p: 0.0, top_k: None, top_p: 1.0, report: 0, changed: None };
    let of = DeviceLogits { rows: &logits, part: VOCABULARY, changed: None };
    let work = ["row_log_sums", "sample"].map(|name| (name, "element", VOCABULARY));
    counts.count(SHAPE, &work, |device| sample(device, &of, &[plain], &u).unwrap());
    let cut = DeviceRequest { top_k: Some(20), top_p: 0.9, ..plain };
    counts.count("1x8192, top_k 20, top_p 0.9", &work, |device| sample(device, &of, &[cut], &u).unwrap());

    let request = ScoreRequest { row: 0, targets: vec![7], topk: 5, alternatives: None };
    let work = [("row_log_sums", "element", VOCABULARY), ("token_logits", "token", 1), ("top_tokens", "token", 5)];
    counts.count("1x8192, 1 target, 5 tokens", &work, |device| {
        score_part(device, &logits, VOCABULARY, &[request]).unwrap()
    });

    let controls = SamplingControls { logit_bias: vec![(3, 1.0), (9, -1.0)], ..SamplingControls::default() };
    let (rules, none) = (LogitRules::new(&controls, &[], &[]).unwrap(), TokenCounts::new());
    let changes = LogitChanges { rules: Some(&rules), counts: &none, allowed: None };
    let work = [("mask_logits", "element", VOCABULARY), ("edit_logits", "token", 2)];
    counts.count("1x8192, 2 tokens", &work, |device| change_logits(device, &logits, &[(0, changes)]).unwrap());
}
