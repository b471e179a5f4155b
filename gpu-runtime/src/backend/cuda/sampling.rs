//! Tokens from rows of logits, to the bit those of the CPU: `crate::sampling` has the definitions.

use super::error::Extents;
use super::memory::Element;
use super::{CudaDevice, DeviceRows, Result, Slice};

/// How to sample a token from a row of logits. Cuts are those of [`SamplingRule`](crate::backend::SamplingRule).
#[derive(Clone, Copy, Debug)]
pub struct DeviceRequest {
    /// The row.
    pub row: u32,
    /// Softmax temperature; 0 takes the largest logit.
    pub temperature: f32,
    /// Tokens less likely than this fraction of the most likely one are no candidates; 0 is off.
    pub min_p: f32,
    /// Most likely tokens that are candidates; all when `None`.
    pub top_k: Option<u32>,
    /// Probability mass of the candidates.
    pub top_p: f32,
    /// Most likely tokens to report.
    pub report: u32,
}

/// What decides the number with which a token is sampled, see [`crate::rng::uniform`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct SampleCounter {
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
    /// 0: no cut.
    top_k: u32,
    temperature: f32,
    min_p: f32,
    top_p: f32,
    report: u32,
}

impl Element for Packed {}

impl From<&DeviceRequest> for Packed {
    fn from(request: &DeviceRequest) -> Self {
        let DeviceRequest { row, temperature, min_p, top_k, top_p, report } = *request;
        Self { row, top_k: top_k.map_or(0, |k| k.max(1)), temperature, min_p, top_p, report }
    }
}

/// Sampled tokens on the device, one for each request.
#[derive(Debug)]
pub struct Sampled {
    /// Ids.
    pub tokens: Slice<u32>,
    /// Log-probability of each at its request's temperature (at 1 when greedy), of the logits before all cuts.
    pub logprobs: Slice<f32>,
    /// The most likely tokens, best first: `[requests, reports]`, with anything beyond what a request asked for.
    pub report: (Slice<u32>, Slice<f32>),
    /// Tokens that a request may report.
    pub reports: usize,
}

/// Weights that one partial sum covers, as on the CPU.
const SUM: usize = 512;

/// The numbers in [0, 1) with which tokens are sampled, computed on the device: those of [`crate::rng::uniform`].
pub fn uniforms(device: &CudaDevice, counters: &Slice<SampleCounter>) -> Result<Slice<f64>> {
    let count = Extents("uniforms").index("the number of counters", counters.len())?;
    let mut out = device.uninitialised(counters.len())?;
    let arguments = [counters.into(), (&mut out).into(), count.into()];
    device.launch("uniforms", [count.div_ceil(128), 1, 1], 128, &arguments)?;
    Ok(out)
}

/// Samples a token for each request from its row of `logits`, `[_, vocabulary]`, with its number of `uniforms`. Ties go to the
/// lowest id. NaN counts as -inf, and -inf is not sampled unless there is nothing else. Tokens, and which ones are reported, are
/// the CPU's to the bit; log-probabilities are not.
///
/// Without top-k and top-p a token takes two passes over its row; with them one more for each candidate that is looked at.
pub fn sample(
    device: &CudaDevice,
    logits: &DeviceRows,
    requests: &[DeviceRequest],
    uniforms: &Slice<f64>,
) -> Result<Sampled> {
    let extents = Extents("sample");
    let [_, vocabulary] = logits.extents(extents, "the logits")?;
    extents.check(vocabulary > 0, "the vocabulary", logits.width(), || "at least 1".to_owned())?;
    extents.equal("the uniform numbers", uniforms.len(), requests.len())?;
    for request in requests {
        extents.below("a row", request.row as usize, logits.rows())?;
    }
    let count = extents.index("the number of requests", requests.len())?;
    let most = requests.iter().map(|request| request.report.min(vocabulary)).max().unwrap_or(0);
    let (reports, entries) = (most as usize, most as usize * requests.len());
    let mut sums = device.uninitialised::<f64>(requests.len() * logits.width().div_ceil(SUM))?;
    let (mut tokens, mut logprobs) = (device.uninitialised(requests.len())?, device.uninitialised(requests.len())?);
    let (mut report_ids, mut report_logprobs) = (device.uninitialised(entries)?, device.uninitialised(entries)?);
    let packed = device.upload(&requests.iter().map(Packed::from).collect::<Vec<_>>())?;
    let arguments = [
        logits.data().into(),
        (&packed).into(),
        uniforms.into(),
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
fn threads(vocabulary: u32) -> u32 {
    vocabulary.div_ceil(128).clamp(1, 16) * 32
}
