//! The loss head's ops on logits: log-sum-exps of rows and logits of targets, and the gradient, in chunks of the vocabulary.

use super::rows::{DeviceRows, RowElement, row_threads};
use crate::backend::cuda::device::error::{Extents, Result};
use crate::backend::cuda::device::memory::Slice;
use crate::backend::cuda::device::open::CudaDevice;
use crate::backend::cuda::kernels::Argument;
use crate::backend::{LogSum, Targets};

/// Targets of rows, on the device.
#[derive(Debug)]
pub(crate) struct DeviceTargets {
    offsets: Slice<u32>,
    ids: Slice<u32>,
}

impl DeviceTargets {
    /// Checks that all are below the vocabulary's size, or [`Targets::ELSEWHERE`].
    pub(crate) fn upload(device: &CudaDevice, targets: &Targets, vocabulary: usize) -> Result<Self> {
        let extents = Extents("targets");
        let mut here = targets.ids.iter().filter(|id| **id != Targets::ELSEWHERE);
        here.try_for_each(|id| extents.below("a target", *id as usize, vocabulary))?;
        let mut offsets = Vec::with_capacity(targets.offsets.len());
        for offset in &targets.offsets {
            let before = offsets.last().copied().unwrap_or(0) as usize;
            let in_order = *offset >= before && *offset <= targets.ids.len();
            extents.check(in_order, "an offset", *offset, || format!("from {before} to {}", targets.ids.len()))?;
            offsets.push(extents.index("an offset", *offset)?);
        }
        let last = targets.offsets.last().copied().unwrap_or(0);
        extents.equal("the last offset", last, targets.ids.len())?;
        Ok(Self { offsets: device.upload(&offsets)?, ids: device.upload(&targets.ids)? })
    }
}

/// A chunk of the vocabulary, with the rows' logits.
#[derive(Clone, Copy)]
pub(crate) struct LogitChunk<'a> {
    /// Rows with the logits, perhaps among other columns.
    pub logits: &'a DeviceRows,
    /// Column of the chunk's first logit.
    pub column: usize,
    /// Range of the chunk's token ids: the first one, and the one behind the last.
    pub tokens: (usize, usize),
}

/// A chunk of the distributions that those of rows are compared with.
#[derive(Clone, Copy)]
pub(crate) struct OtherChunk<'a> {
    /// Logits of the chunk's tokens alone, `[rows, tokens]`.
    pub logits: &'a DeviceRows,
    /// Log-sum-exp of each row, over the whole vocabulary.
    pub log_sums: &'a Slice<f32>,
}

impl<'a> OtherChunk<'a> {
    /// Logits and log-sum-exps of `rows` rows in a chunk of `width` tokens.
    fn arguments(&self, extents: Extents, rows: usize, width: u32) -> Result<[Argument<'a>; 2]> {
        extents.equal("the rows of the others", self.logits.rows(), rows)?;
        extents.equal("the tokens of the others", self.logits.width(), width as usize)?;
        extents.equal("the log-sum-exps of the others", self.log_sums.len(), rows)?;
        Ok([self.logits.data().into(), self.log_sums.into()])
    }
}

impl LogitChunk<'_> {
    /// The logits, and as kernels take them the first token, the number of tokens, and the elements of a row.
    fn arguments(&self, extents: Extents, rows: usize) -> Result<(Argument<'static>, [u32; 3])> {
        let (width, end) = (self.tokens.1 - self.tokens.0, self.column + self.tokens.1 - self.tokens.0);
        let stride = self.logits.width();
        extents.check(end <= stride, "the last column of logits", end, || format!("at most {stride}"))?;
        extents.check(rows <= self.logits.rows(), "the rows", rows, || format!("at most {}", self.logits.rows()))?;
        let last = if rows == 0 { self.column } else { (rows - 1) * stride + end };
        let at = self.logits.data().address_of(self.column.min(last)..last)?;
        let [first, width] = [extents.index("a token", self.tokens.0)?, extents.index("a token", width)?];
        Ok((Argument::address(at), [first, width, extents.index("the vocabulary", stride)?]))
    }
}

/// Terms of the rows' log-sum-exps, while chunks of the vocabulary are added in order.
pub(crate) struct DeviceLogSums {
    largest: Slice<f32>,
    sums: Slice<f32>,
}

impl DeviceLogSums {
    /// Sums for `rows` rows. The first chunk added must be that of token 0.
    pub(crate) fn new(device: &CudaDevice, rows: usize) -> Result<Self> {
        Ok(Self { largest: device.uninitialised(rows)?, sums: device.uninitialised(rows)? })
    }

    /// Adds a chunk, and writes the logits of targets that are in it. The order of a chunk's sum follows from its width.
    pub(crate) fn add(
        &mut self,
        device: &CudaDevice,
        chunk: LogitChunk<'_>,
        targets: &DeviceTargets,
        logits: &mut Slice<f32>,
    ) -> Result {
        let extents = Extents("log-sum-exp");
        extents.equal("the logits of targets", logits.len(), targets.ids.len())?;
        extents.equal("the offsets of targets", targets.offsets.len(), self.sums.len() + 1)?;
        let rows = extents.index("the number of rows", self.sums.len())?;
        let (columns, [first, width, stride]) = chunk.arguments(extents, self.sums.len())?;
        let arguments = [
            columns,
            (&targets.offsets).into(),
            (&targets.ids).into(),
            (&mut self.largest).into(),
            (&mut self.sums).into(),
            logits.into(),
            first.into(),
            width.into(),
            stride.into(),
        ];
        device.launch("head_chunk", [rows, 1, 1], row_threads(width), &arguments)
    }

    /// Copies the sums to the host. Waits for all work on the device.
    pub(crate) fn to_host(&self) -> Result<Vec<LogSum>> {
        let (largest, sums) = (self.largest.to_host()?, self.sums.to_host()?);
        Ok(largest.into_iter().zip(sums).map(|(max, sum)| LogSum { max, sum }).collect())
    }
}

/// Adds what a chunk contributes to the entropies of rows. The first chunk added must be that of token 0; the order of a
/// chunk's sum follows from its width.
pub(crate) fn add_entropies(
    device: &CudaDevice,
    chunk: LogitChunk<'_>,
    log_sums: &Slice<f32>,
    entropies: &mut Slice<f32>,
) -> Result {
    let extents = Extents("entropies");
    extents.equal("the entropies", entropies.len(), log_sums.len())?;
    let rows = extents.index("the number of rows", log_sums.len())?;
    let (columns, [first, width, stride]) = chunk.arguments(extents, log_sums.len())?;
    let arguments = [columns, log_sums.into(), entropies.into(), first.into(), width.into(), stride.into()];
    device.launch("head_entropy", [rows, 1, 1], row_threads(width), &arguments)
}

/// Adds what a chunk contributes to the divergences of rows from others. Order and first chunk are as for [`add_entropies`].
pub(crate) fn add_divergences(
    device: &CudaDevice,
    chunk: LogitChunk<'_>,
    log_sums: &Slice<f32>,
    other: OtherChunk<'_>,
    divergences: &mut Slice<f32>,
) -> Result {
    let extents = Extents("divergences");
    extents.equal("the divergences", divergences.len(), log_sums.len())?;
    let rows = extents.index("the number of rows", log_sums.len())?;
    let (columns, [first, width, stride]) = chunk.arguments(extents, log_sums.len())?;
    let [others, other_log_sums] = other.arguments(extents, log_sums.len(), width)?;
    let arguments = [
        columns,
        log_sums.into(),
        others,
        other_log_sums,
        divergences.into(),
        first.into(),
        width.into(),
        stride.into(),
    ];
    device.launch("head_divergence", [rows, 1, 1], row_threads(width), &arguments)
}

/// Divergences of rows from others, and the gradients with respect to them.
#[derive(Clone, Copy)]
pub(crate) struct DeviceDivergences<'a> {
    pub other: OtherChunk<'a>,
    pub values: &'a Slice<f32>,
    pub d: &'a Slice<f32>,
}

/// Gradients of the loss with respect to what the head computed for its rows, and the state that they need.
#[derive(Clone, Copy)]
pub(crate) struct DeviceRowGradients<'a> {
    pub targets: &'a DeviceTargets,
    /// Log-sum-exp of each row.
    pub log_sums: &'a Slice<f32>,
    /// Gradients with respect to the targets' log-probabilities.
    pub d: &'a Slice<f32>,
    /// Entropies of the rows, and the gradients with respect to them; there with divergences.
    pub entropies: Option<&'a [Slice<f32>; 2]>,
    /// Divergences of the rows from others in the chunk.
    pub divergences: Option<DeviceDivergences<'a>>,
}

/// The gradient with respect to the logits of a chunk, `[rows, tokens]`: `d` of the targets, minus their sum times the softmax p;
/// minus that with respect to an entropy H times `p (ln p + H)`; plus that with respect to a divergence D from q times
/// `p (ln p - ln q - D)`.
pub(crate) fn logit_gradient<T: RowElement>(
    device: &CudaDevice,
    chunk: LogitChunk<'_>,
    gradients: &DeviceRowGradients<'_>,
) -> Result<DeviceRows<T>> {
    let DeviceRowGradients { targets, log_sums, d, entropies, divergences } = gradients;
    let extents = Extents("gradient of logits");
    extents.equal("the gradients of log-probabilities", d.len(), targets.ids.len())?;
    extents.equal("the offsets of targets", targets.offsets.len(), log_sums.len() + 1)?;
    let rows = extents.index("the number of rows", log_sums.len())?;
    let (columns, [first, width, stride]) = chunk.arguments(extents, log_sums.len())?;
    let mut out = DeviceRows::<T>::uninitialised(device, log_sums.len(), width as usize)?;
    let mut arguments: Vec<Argument<'_>> = vec![
        columns,
        (*log_sums).into(),
        (&targets.offsets).into(),
        (&targets.ids).into(),
        (*d).into(),
        out.data_mut().into(),
    ];
    for of_entropies in entropies.iter().copied().flatten() {
        extents.equal("the entropies", of_entropies.len(), log_sums.len())?;
        arguments.push(of_entropies.into());
    }
    if let Some(DeviceDivergences { other, values, d }) = divergences {
        extents.check(entropies.is_some(), "the entropies", 0, || "there with divergences".to_owned())?;
        arguments.extend(other.arguments(extents, log_sums.len(), width)?);
        for of_divergences in [*values, *d] {
            extents.equal("the divergences", of_divergences.len(), log_sums.len())?;
            arguments.push(of_divergences.into());
        }
    }
    arguments.extend([first, width, stride].map(Argument::from));
    let kernel = match (divergences, entropies) {
        (Some(_), _) => "head_divergence_gradient",
        (None, Some(_)) => "head_entropy_gradient",
        (None, None) => "head_gradient",
    };
    device.launch(&format!("{kernel}_{}", T::SUFFIX), [rows, 1, 1], row_threads(width), &arguments)?;
    Ok(out)
}
