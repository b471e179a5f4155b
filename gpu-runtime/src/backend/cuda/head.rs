//! The loss head: log-probabilities of targets, and the gradient with respect to hidden states, in chunks of the vocabulary.

use std::ops::Range;

use super::error::Extents;
use super::rows::row_threads;
use super::{CudaDevice, DeviceRows, Matmul, MatmulPlan, Result, RowElement, Slice, WeightSide};
use crate::backend::Targets;

/// Targets of rows, on the device.
#[derive(Debug)]
pub struct DeviceTargets {
    offsets: Slice<u32>,
    ids: Slice<u32>,
}

impl DeviceTargets {
    /// Checks that all are below the vocabulary's size.
    pub fn upload(device: &CudaDevice, targets: &Targets, vocabulary: usize) -> Result<Self> {
        let extents = Extents("targets");
        targets.ids.iter().try_for_each(|id| extents.below("a target", *id as usize, vocabulary))?;
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

/// An unembedding `[vocabulary, hidden]`, with plans for chunks of it.
pub struct Head<'a, T: RowElement> {
    weight: &'a DeviceRows<T>,
    matmul: &'a Matmul,
    chunk: usize,
    /// Of whole chunks, and of the last one: logits, and hidden states' gradients.
    plans: [[MatmulPlan; 2]; 2],
}

impl<'a, T: RowElement> Head<'a, T> {
    /// The head of an unembedding; logits are computed `chunk` tokens at a time.
    pub fn new(matmul: &'a Matmul, weight: &'a DeviceRows<T>, chunk: usize) -> Result<Self> {
        let extents = Extents("loss head");
        extents.check(weight.rows() > 0, "the vocabulary", weight.rows(), || "at least 1".to_owned())?;
        extents.check(chunk > 0, "a chunk of the vocabulary", chunk, || "at least 1".to_owned())?;
        let chunk = chunk.min(weight.rows());
        let last = (weight.rows() - 1) % chunk + 1;
        let plans = |width: usize| -> Result<[MatmulPlan; 2]> {
            let side = |side: WeightSide| matmul.plan::<T>((width, weight.width()), side);
            Ok([side(WeightSide::Inputs)?, side(WeightSide::Outputs)?])
        };
        Ok(Self { weight, matmul, chunk, plans: [plans(chunk)?, plans(last)?] })
    }

    /// Chunks of the vocabulary with their plans.
    fn chunks(&self) -> impl Iterator<Item = (Range<usize>, &[MatmulPlan; 2])> {
        let [whole, last] = &self.plans;
        (0..self.weight.rows()).step_by(self.chunk).map(move |first| {
            let range = first..self.weight.rows().min(first + self.chunk);
            let plans = if range.end == self.weight.rows() { last } else { whole };
            (range, plans)
        })
    }

    fn logits(
        &self,
        device: &CudaDevice,
        hidden: &DeviceRows<T>,
        chunk: Range<usize>,
        plan: &MatmulPlan,
    ) -> Result<DeviceRows> {
        let mut logits = DeviceRows::uninitialised(device, hidden.rows(), chunk.len())?;
        self.matmul.run(plan, hidden, (self.weight, chunk), &mut logits, false)?;
        Ok(logits)
    }

    fn check(&self, extents: Extents, hidden: &DeviceRows<T>, targets: &DeviceTargets) -> Result<u32> {
        extents.equal("the offsets of targets", targets.offsets.len(), hidden.rows() + 1)?;
        let [rows, _] = hidden.expect(extents, "the hidden states", hidden.rows(), self.weight.width())?;
        Ok(rows)
    }
}

/// Log-probabilities of the targets of all rows, in the order of the targets, and the log-sum-exp of each row's logits, from hidden
/// states `[rows, hidden]`. The order of the sum follows from the vocabulary's size and the chunk's.
pub fn target_logprobs<T: RowElement>(
    device: &CudaDevice,
    head: &Head<'_, T>,
    hidden: &DeviceRows<T>,
    targets: &DeviceTargets,
) -> Result<(Slice<f32>, Slice<f32>)> {
    let extents = Extents("target_logprobs");
    let rows = head.check(extents, hidden, targets)?;
    let [mut largest, mut sums, mut log_sums] = [
        device.uninitialised(hidden.rows())?,
        device.uninitialised(hidden.rows())?,
        device.uninitialised(hidden.rows())?,
    ];
    let mut logprobs = device.uninitialised::<f32>(targets.ids.len())?;
    for (chunk, [plan, _]) in head.chunks() {
        let logits = head.logits(device, hidden, chunk.clone(), plan)?;
        let [first, width] = [extents.index("a token", chunk.start)?, extents.index("a token", chunk.len())?];
        let arguments = [
            logits.data().into(),
            (&targets.offsets).into(),
            (&targets.ids).into(),
            (&mut largest).into(),
            (&mut sums).into(),
            (&mut logprobs).into(),
            first.into(),
            width.into(),
        ];
        device.launch("head_chunk", [rows, 1, 1], row_threads(width), &arguments)?;
    }
    let arguments =
        [(&largest).into(), (&sums).into(), (&targets.offsets).into(), (&mut logprobs).into(), (&mut log_sums).into()];
    device.launch("head_finish", [rows, 1, 1], 32, &arguments)?;
    Ok((logprobs, log_sums))
}

/// Gradient with respect to hidden states, `[rows, hidden]`, given those with respect to the targets' log-probabilities and the
/// log-sum-exp of each row. That with respect to a row's logits is `d_logprobs` of its targets, minus their sum times the softmax,
/// in f32, and then rounded to `T`. Chunks are added in order.
pub fn head_backward<T: RowElement>(
    device: &CudaDevice,
    head: &Head<'_, T>,
    hidden: &DeviceRows<T>,
    targets: &DeviceTargets,
    log_sums: &Slice<f32>,
    d_logprobs: &Slice<f32>,
) -> Result<DeviceRows> {
    let extents = Extents("head_backward");
    let rows = head.check(extents, hidden, targets)?;
    extents.equal("the gradients of log-probabilities", d_logprobs.len(), targets.ids.len())?;
    extents.equal("the log-sum-exps", log_sums.len(), hidden.rows())?;
    let mut dx = DeviceRows::zeros(device, hidden.rows(), hidden.width())?;
    for (chunk, [plan, backward]) in head.chunks() {
        let logits = head.logits(device, hidden, chunk.clone(), plan)?;
        let mut d_logits = DeviceRows::<T>::uninitialised(device, hidden.rows(), chunk.len())?;
        let [first, width] = [extents.index("a token", chunk.start)?, extents.index("a token", chunk.len())?];
        let arguments = [
            logits.data().into(),
            log_sums.into(),
            (&targets.offsets).into(),
            (&targets.ids).into(),
            d_logprobs.into(),
            d_logits.data_mut().into(),
            first.into(),
            width.into(),
        ];
        device.launch(&format!("head_gradient_{}", T::SUFFIX), [rows, 1, 1], row_threads(width), &arguments)?;
        head.matmul.run(backward, &d_logits, (head.weight, chunk), &mut dx, true)?;
    }
    Ok(dx)
}
