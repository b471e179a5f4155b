//! Tokens and log-probabilities from rows of logits, as the engine's requests ask for them: changed logits, reported
//! candidates, scores.

use super::rows::{DeviceRows, column_blocks};
use super::sampling::{DeviceLogits, DeviceRequest, RowSums, Sampled, sample, threads};
use crate::backend::cuda::device::error::{Extents, Result};
use crate::backend::cuda::device::memory::{Element, Slice};
use crate::backend::cuda::device::open::CudaDevice;
use crate::backend::{LogSum, RowScores, SampledToken, ScorePart, ScoreRequest, Targets, TokenRequest};
use crate::sampling::LogitChanges;

/// A row whose logits are changed, as the kernel reads it.
#[derive(Clone, Copy, Default)]
#[repr(C)]
struct Changed {
    row: u32,
    masked: u32,
    mask: u32,
    words: u32,
}

impl Element for Changed {}

/// An edit of a logit, as the kernel reads it.
#[derive(Clone, Copy, Default)]
#[repr(C)]
struct Edit {
    row: u32,
    token: u32,
    bias: f32,
    repetition: f32,
    frequency: f32,
    presence: f32,
}

impl Element for Edit {}

/// Copies of rows of `logits` with their changes: biases and penalties to the bit as on the CPU, and -inf for tokens that are not
/// allowed.
pub(crate) fn change_logits(
    device: &CudaDevice,
    logits: &DeviceRows,
    changes: &[(usize, LogitChanges<'_>)],
) -> Result<DeviceRows> {
    let extents = Extents("change_logits");
    let [_, vocabulary] = logits.extents(extents, "the logits")?;
    let (mut rows, mut masks, mut edits) = (Vec::with_capacity(changes.len()), Vec::new(), Vec::new());
    for (at, (row, changes)) in (0u32..).zip(changes) {
        extents.below("a row", *row, logits.rows())?;
        let words = changes.allowed.map_or(&[][..], |mask| mask.words());
        rows.push(Changed {
            row: extents.index("a row", *row)?,
            masked: u32::from(changes.allowed.is_some()),
            mask: extents.index("the words of masks", masks.len())?,
            words: extents.index("the words of a mask", words.len())?,
        });
        masks.extend_from_slice(words);
        // Tokens beyond the vocabulary have no logit.
        for (token, edit) in changes.edits().range(..vocabulary) {
            let (bias, repetition) = (edit.bias, edit.repetition);
            let (frequency, presence) = (edit.frequency, edit.presence);
            edits.push(Edit { row: at, token: *token, bias, repetition, frequency, presence });
        }
    }
    let mut out = DeviceRows::uninitialised(device, rows.len(), logits.width())?;
    let [count, _] = out.extents(extents, "the changed rows")?;
    let (rows, masks) = (device.upload(&rows)?, device.upload(&masks)?);
    let [block, columns] = column_blocks(vocabulary);
    let arguments = [logits.data().into(), (&rows).into(), (&masks).into(), out.data_mut().into(), vocabulary.into()];
    device.launch("mask_logits", [count, columns, 1], block, &arguments)?;
    let count = extents.index("the edits of logits", edits.len())?;
    let edits = device.upload(&edits)?;
    let arguments = [out.data_mut().into(), (&edits).into(), count.into(), vocabulary.into()];
    device.launch("edit_logits", [count.div_ceil(128), 1, 1], 128, &arguments)?;
    Ok(out)
}

/// [`Backend::sample`](crate::backend::Backend::sample) for logits that were computed in parts of `part` tokens. Waits
/// for all work on the device.
pub(crate) fn sample_tokens(
    device: &CudaDevice,
    rows: &DeviceRows,
    part: usize,
    requests: &[TokenRequest<'_>],
) -> Result<Vec<SampledToken>> {
    let extents = Extents("sample_tokens");
    let (mut changes, mut packed) = (Vec::new(), Vec::with_capacity(requests.len()));
    for TokenRequest { row, rule, report } in requests {
        let changed = rule.changes.map(|change| {
            changes.push((*row, change));
            extents.index("the changed rows", changes.len() - 1)
        });
        let report = extents.index("the tokens to report", (*report).min(rows.width()))?;
        let request = DeviceRequest::new(extents.index("a row", *row)?, rule);
        packed.push(DeviceRequest { report, changed: changed.transpose()?, ..request });
    }
    let changed = change_logits(device, rows, &changes)?;
    let uniforms = device.upload(&requests.iter().map(|request| request.rule.u).collect::<Vec<_>>())?;
    let logits = DeviceLogits { rows, part, changed: Some(&changed) };
    let Sampled { tokens, logprobs, report: (ids, reported), reports } = sample(device, &logits, &packed, &uniforms)?;
    let (tokens, logprobs) = (tokens.to_host()?, logprobs.to_host()?);
    let mut found = Vec::with_capacity(requests.len());
    for (i, ((request, token), logprob)) in packed.iter().zip(tokens).zip(logprobs).enumerate() {
        let own = i * reports..i * reports + request.report as usize;
        let (ids, logprobs) = (ids.copy(own.clone())?.to_host()?, reported.copy(own)?.to_host()?);
        found.push(SampledToken { token, logprob, topk: ids.into_iter().zip(logprobs).collect() });
    }
    Ok(found)
}

/// [`Backend::score`](crate::backend::Backend::score) for logits that were computed in parts of `part` tokens:
/// log-sum-exps and their logarithms have the bits of the loss head with chunks of this width. Waits for all work on
/// the device.
pub(crate) fn score(
    device: &CudaDevice,
    rows: &DeviceRows,
    part: usize,
    requests: &[ScoreRequest],
) -> Result<Vec<RowScores>> {
    let extents = Extents("score");
    let parts = score_rows(device, extents, rows, [rows.width(), part], requests)?;
    let (mut samples, mut uniforms) = (Vec::new(), Vec::new());
    for request in requests {
        let Some((temperature, us)) = &request.alternatives else { continue };
        let row = extents.index("a row", request.row)?;
        let plain = DeviceRequest::uncut(row, *temperature);
        samples.extend(us.iter().map(|_| plain));
        uniforms.extend_from_slice(us);
    }
    let logits = DeviceLogits { rows, part, changed: None };
    let sampled = sample(device, &logits, &samples, &device.upload(&uniforms)?)?;
    let mut sampled = sampled.tokens.to_host()?.into_iter().zip(sampled.logprobs.to_host()?);
    let of = |(part, request): (ScorePart, &ScoreRequest)| {
        let lse = part.sum.value();
        let count = request.alternatives.as_ref().map_or(0, |(_, us)| us.len());
        RowScores {
            targets: part.targets.iter().map(|logit| logit - lse).collect(),
            topk: part.topk.into_iter().map(|(id, logit)| (id, logit - lse)).collect(),
            alternatives: sampled.by_ref().take(count).collect(),
        }
    };
    Ok(parts.into_iter().zip(requests).map(of).collect())
}

/// [`VocabularyOps::score_part`](crate::backend::VocabularyOps::score_part): what the first `tokens` columns of `logits` contribute to
/// the scores that are asked for. Waits for all work on the device.
pub(crate) fn score_part(
    device: &CudaDevice,
    logits: &DeviceRows,
    tokens: usize,
    requests: &[ScoreRequest],
) -> Result<Vec<ScorePart>> {
    score_rows(device, Extents("score_part"), logits, [tokens, tokens.max(1)], requests)
}

/// Log-sum-exps of the first `tokens` logits in parts, logits of targets, and the largest ones.
fn score_rows(
    device: &CudaDevice,
    extents: Extents,
    logits: &DeviceRows,
    [tokens, part]: [usize; 2],
    requests: &[ScoreRequest],
) -> Result<Vec<ScorePart>> {
    let mut rows = Vec::with_capacity(requests.len());
    let (mut target_rows, mut targets, mut counts) = (Vec::new(), Vec::new(), Vec::with_capacity(requests.len()));
    for request in requests {
        let row = extents.index("a row", request.row)?;
        for id in &request.targets {
            let here = *id == Targets::ELSEWHERE || (*id as usize) < tokens;
            extents.check(here, "a target", *id as usize, || format!("below {tokens}"))?;
        }
        rows.push(row);
        target_rows.extend(request.targets.iter().map(|_| row));
        targets.extend_from_slice(&request.targets);
        counts.push(extents.index("the tokens to report", request.topk.min(tokens))?);
    }
    let sums = RowSums::new(device, logits, [tokens, part], &rows, &vec![1.0; rows.len()])?;
    let found = target_logits(device, extents, logits, &target_rows, &targets)?;
    let (ids, largest) = top_tokens(device, extents, logits, tokens, &rows, &counts)?;
    let most = counts.iter().copied().max().unwrap_or(0) as usize;
    let mut found = found.into_iter();
    let sums = sums.largest.to_host()?.into_iter().zip(sums.sums.to_host()?).map(|(max, sum)| LogSum { max, sum });
    let mut scores = Vec::with_capacity(requests.len());
    for (i, ((request, count), sum)) in requests.iter().zip(&counts).zip(sums).enumerate() {
        let own = i * most..i * most + *count as usize;
        let (ids, logits) = (ids.copy(own.clone())?.to_host()?, largest.copy(own)?.to_host()?);
        let targets = found.by_ref().take(request.targets.len()).collect();
        scores.push(ScorePart { sum, targets, topk: ids.into_iter().zip(logits).collect() });
    }
    Ok(scores)
}

/// Logits of tokens of rows, -0 of those that are elsewhere.
fn target_logits(
    device: &CudaDevice,
    extents: Extents,
    logits: &DeviceRows,
    rows: &[u32],
    ids: &[u32],
) -> Result<Vec<f32>> {
    let (count, [_, stride]) = (extents.index("the targets", ids.len())?, logits.extents(extents, "the logits")?);
    let (rows, ids) = (device.upload(rows)?, device.upload(ids)?);
    let mut out = device.uninitialised::<f32>(ids.len())?;
    let arguments =
        [logits.data().into(), (&rows).into(), (&ids).into(), (&mut out).into(), stride.into(), count.into()];
    device.launch("token_logits", [count.div_ceil(128), 1, 1], 128, &arguments)?;
    out.to_host()
}

/// The largest of the first `tokens` logits of rows, best first: `[rows, most]`; each row has only its own count of
/// them.
fn top_tokens(
    device: &CudaDevice,
    extents: Extents,
    logits: &DeviceRows,
    tokens: usize,
    rows: &[u32],
    counts: &[u32],
) -> Result<(Slice<u32>, Slice<f32>)> {
    let ([_, stride], tokens) = (logits.extents(extents, "the logits")?, extents.index("the tokens", tokens)?);
    let most = counts.iter().copied().max().unwrap_or(0);
    let entries = rows.len() * most as usize;
    let (mut ids, mut largest) = (device.uninitialised(entries)?, device.uninitialised(entries)?);
    let blocks = extents.index("the number of rows", rows.len())?;
    let (rows, counts) = (device.upload(rows)?, device.upload(counts)?);
    let arguments = [
        logits.data().into(),
        (&rows).into(),
        (&counts).into(),
        (&mut ids).into(),
        (&mut largest).into(),
        stride.into(),
        tokens.into(),
        most.into(),
    ];
    device.launch("top_tokens", [blocks, 1, 1], threads(tokens), &arguments)?;
    Ok((ids, largest))
}
