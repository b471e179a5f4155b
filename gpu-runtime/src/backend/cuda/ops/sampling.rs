//! Tokens from rows of logits, bit-identical to those of the CPU: `crate::sampling` has the definitions.

use super::rows::DeviceRows;
use crate::backend::cuda::device::error::{Extents, Result};
use crate::backend::cuda::device::memory::{Element, Slice};
use crate::backend::cuda::device::open::CudaDevice;
use crate::backend::cuda::kernels::Argument;
use crate::sampling::{SamplingRule, logprob_scale};

/// How to sample a token from a row of logits. Cuts are those of [`SamplingRule`](crate::backend::SamplingRule).
#[derive(Clone, Copy, Debug)]
pub(crate) struct DeviceRequest {
    pub row: u32,
    /// Softmax temperature; 0 takes the largest logit.
    pub temperature: f32,
    /// Tokens less likely than this fraction of the most likely one are excluded; 0 turns the cut off.
    pub min_p: f32,
    /// Number of most likely tokens that are candidates; all when `None`.
    pub top_k: Option<u32>,
    /// Probability mass of the candidates.
    pub top_p: f32,
    /// Number of most likely tokens to report.
    pub report: u32,
    /// The row of [`DeviceLogits::changed`] that the token is sampled from; the row itself when `None`.
    pub changed: Option<u32>,
}

impl DeviceRequest {
    /// Creates the request of a rule for unchanged logits, without a report.
    pub(crate) fn new(row: u32, rule: &SamplingRule<'_>) -> Self {
        let SamplingRule { temperature, min_p, top_k, top_p, .. } = *rule;
        Self { row, temperature, min_p, top_k, top_p, report: 0, changed: None }
    }

    /// Creates a request without cuts.
    pub(crate) fn uncut(row: u32, temperature: f32) -> Self {
        Self { row, temperature, min_p: 0.0, top_k: None, top_p: 1.0, report: 0, changed: None }
    }
}

/// Rows of logits that tokens are sampled from.
#[derive(Clone, Copy, Debug)]
pub(crate) struct DeviceLogits<'a> {
    /// Logits of the requests' rows: `[_, vocabulary]`.
    pub rows: &'a DeviceRows,
    /// Number of tokens of a part, see [`Logits`](crate::backend::Logits).
    pub part: usize,
    /// Rows whose logits are changed, of the same width.
    pub changed: Option<&'a DeviceRows>,
}

/// Counter of the random number with which a token is sampled, see [`crate::rng::uniform`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub(crate) struct SampleCounter {
    /// Seed of the request.
    pub seed: u64,
    /// Number of the sample; its lower 56 bits count.
    pub index: u64,
    /// Position of the token.
    pub position: u64,
}

impl Element for SampleCounter {}

/// A request as the kernel reads it.
#[derive(Clone, Copy, Default)]
#[repr(C)]
struct Packed {
    row: u32,
    /// Number of candidates; 0 means no cut.
    top_k: u32,
    temperature: f32,
    min_p: f32,
    top_p: f32,
    report: u32,
    /// Index of the changed row; `u32::MAX` if the request has none.
    changed: u32,
}

impl Element for Packed {}

impl From<&DeviceRequest> for Packed {
    fn from(request: &DeviceRequest) -> Self {
        let DeviceRequest { row, temperature, min_p, top_k, top_p, report, changed } = *request;
        let changed = changed.unwrap_or(u32::MAX);
        Self { row, top_k: top_k.map_or(0, |k| k.max(1)), temperature, min_p, top_p, report, changed }
    }
}

/// Sampled tokens on the device, one for each request.
#[derive(Debug)]
pub(crate) struct Sampled {
    pub tokens: Slice<u32>,
    /// Log-probability of each at its request's temperature (at 1 when greedy), of the unchanged logits and before all cuts.
    pub logprobs: Slice<f32>,
    /// The most likely tokens, best first: `[requests, reports]`, with undefined elements beyond the number that a
    /// request asked for.
    pub report: (Slice<u32>, Slice<f32>),
    /// Number of tokens that a request may report.
    pub reports: usize,
}

/// Weights that one partial sum covers, as on the CPU.
const SUM: usize = 512;

/// The numbers in [0, 1) with which tokens are sampled, computed on the device: those of [`crate::rng::uniform`].
#[cfg_attr(
    not(test),
    expect(dead_code, reason = "samples carry numbers that the host drew; tests compare both generators")
)]
pub(crate) fn uniforms(device: &CudaDevice, counters: &Slice<SampleCounter>) -> Result<Slice<f64>> {
    let count = Extents("uniforms").index("the number of counters", counters.len())?;
    let mut out = device.uninitialised(counters.len())?;
    let arguments = [counters.into(), (&mut out).into(), count.into()];
    device.launch("uniforms", [count.div_ceil(128), 1, 1], 128, &arguments)?;
    Ok(out)
}

/// Terms of the rows' log-sum-exps, (largest, Σ exp(x - largest)), on the device.
pub(super) struct RowSums {
    pub(crate) largest: Slice<f32>,
    pub(crate) sums: Slice<f32>,
}

impl RowSums {
    /// Sums over the first `tokens` logits of these rows, times their scales, assembled from parts of `part` tokens.
    /// Where the scale is 1, they equal to the bit the sums of loss-head chunks of this width.
    pub(crate) fn new(
        device: &CudaDevice,
        logits: &DeviceRows,
        [tokens, part]: [usize; 2],
        rows: &[u32],
        scales: &[f32],
    ) -> Result<Self> {
        let extents = Extents("log-sum-exp of rows");
        extents.check(tokens <= logits.width(), "the tokens", tokens, || format!("at most {}", logits.width()))?;
        extents.check(part > 0, "a part of the vocabulary", part, || "at least 1".to_owned())?;
        extents.equal("the scales", scales.len(), rows.len())?;
        rows.iter().try_for_each(|row| extents.below("a row", *row as usize, logits.rows()))?;
        let count = extents.index("the number of rows", rows.len())?;
        let [_, stride] = logits.extents(extents, "the logits")?;
        let (rows, scales) = (device.upload(rows)?, device.upload(scales)?);
        let (mut largest, mut sums) = (device.uninitialised(rows.len())?, device.uninitialised(rows.len())?);
        let arguments = [
            logits.data().into(),
            (&rows).into(),
            (&scales).into(),
            (&mut largest).into(),
            (&mut sums).into(),
            stride.into(),
            extents.index("the tokens", tokens)?.into(),
            extents.index("a part of the vocabulary", part.min(tokens.max(1)))?.into(),
        ];
        device.launch("row_log_sums", [count, 1, 1], 256, &arguments)?;
        Ok(Self { largest, sums })
    }
}

/// Samples a token for each request from its row of `logits`, with its number of `uniforms`. Ties go to the lowest id. NaN counts as
/// -inf, and -inf is not sampled unless there is nothing else. Tokens, and which ones are reported, are the CPU's to the bit;
/// log-probabilities are not.
///
/// Without top-k and top-p a token takes two passes over its row; with them one more for each candidate that is looked at.
pub(crate) fn sample(
    device: &CudaDevice,
    logits: &DeviceLogits<'_>,
    requests: &[DeviceRequest],
    uniforms: &Slice<f64>,
) -> Result<Sampled> {
    let (extents, rows) = (Extents("sample"), logits.rows);
    let [_, vocabulary] = rows.extents(extents, "the logits")?;
    extents.check(vocabulary > 0, "the vocabulary", rows.width(), || "at least 1".to_owned())?;
    extents.equal("the uniform numbers", uniforms.len(), requests.len())?;
    if let Some(changed) = logits.changed {
        extents.equal("the width of changed logits", changed.width(), rows.width())?;
    }
    let changed_rows = logits.changed.map_or(0, DeviceRows::rows);
    for request in requests {
        extents.below("a row", request.row as usize, rows.rows())?;
        request.changed.map_or(Ok(()), |row| extents.below("a changed row", row as usize, changed_rows))?;
    }
    let count = extents.index("the number of requests", requests.len())?;
    let most = requests.iter().map(|request| request.report.min(vocabulary)).max().unwrap_or(0);
    let (reports, entries) = (most as usize, most as usize * requests.len());
    let own: Vec<u32> = requests.iter().map(|request| request.row).collect();
    let scales: Vec<f32> = requests.iter().map(|request| logprob_scale(request.temperature)).collect();
    let log_sums = RowSums::new(device, rows, [rows.width(), logits.part], &own, &scales)?;
    let mut sums = device.uninitialised::<f64>(requests.len() * rows.width().div_ceil(SUM))?;
    let (mut tokens, mut logprobs) = (device.uninitialised(requests.len())?, device.uninitialised(requests.len())?);
    let (mut report_ids, mut report_logprobs) = (device.uninitialised(entries)?, device.uninitialised(entries)?);
    let packed = device.upload(&requests.iter().map(Packed::from).collect::<Vec<_>>())?;
    let arguments = [
        rows.data().into(),
        logits.changed.map_or_else(Argument::null, |changed| changed.data().into()),
        (&packed).into(),
        uniforms.into(),
        (&log_sums.largest).into(),
        (&log_sums.sums).into(),
        (&mut sums).into(),
        (&mut tokens).into(),
        (&mut logprobs).into(),
        (&mut report_ids).into(),
        (&mut report_logprobs).into(),
        vocabulary.into(),
        most.into(),
    ];
    device.launch("sample", [count, 1, 1], threads(vocabulary), &arguments)?;
    Ok(Sampled { tokens, logprobs, report: (report_ids, report_logprobs), reports })
}

/// Whole warps, 512 threads at most. No token depends on it.
pub(crate) fn threads(vocabulary: u32) -> u32 {
    vocabulary.div_ceil(128).clamp(1, 16) * 32
}
