//! The loss head, in chunks of the vocabulary.

use std::ops::Range;

use half::bf16;

use super::super::{
    DeviceLogSums, DeviceRows, DeviceTargets, LogitChunk, OuterProduct, Result, Slice, WeightSide, add, logit_gradient,
    outer_products,
};
use super::elements::GemmElement;
use super::linear::chunks;
use super::low_rank::{ColumnAdapters, LowRank, column_gradients};
use super::{Cuda, CudaParams};
use crate::backend::{Dtype, GradientSinks, HeadGradient, HeadPart, LinearCall, Targets};

/// What the forward pass saves for the backward pass.
pub struct HeadState {
    /// Log-sum-exp of every row.
    pub(super) lse: Vec<f32>,
    /// `[rows, tokens]`, where they were saved.
    logits: Option<DeviceRows>,
    /// Rows of the unembedding that are tokens.
    tokens: usize,
}

/// An unembedding with the adapters on it, for some rows.
struct AdaptedHead<'a, T: GemmElement> {
    weight: &'a DeviceRows<T>,
    x: DeviceRows<T>,
    /// Where there are adapters.
    adapters: Option<ColumnAdapters<'a, T>>,
    z: LowRank,
}

impl<'a, T: GemmElement> AdaptedHead<'a, T> {
    fn new(cuda: &Cuda, call: &LinearCall<'a, Cuda>, hidden: &DeviceRows) -> Result<Self> {
        let x = T::rounded(&cuda.device, hidden)?;
        let adapters = cuda.adapters::<T>(call.lora, hidden.rows(), |_| true)?.into_iter().next();
        let z = adapters.iter().map(|adapters| adapters.shrink(cuda, &x)).collect::<Result<_>>()?;
        Ok(Self { weight: T::of(&call.weight.0)?, x, adapters, z: LowRank(z) })
    }

    /// Writes the logits of a chunk of the vocabulary to columns of `out`.
    fn logits(&self, cuda: &Cuda, chunk: &Range<usize>, out: &mut DeviceRows, column: usize) -> Result {
        let plan = cuda.plan::<T>((chunk.len(), self.weight.width()), WeightSide::Inputs)?;
        cuda.matmul.run_columns(&plan, &self.x, (self.weight, chunk.clone()), (out, column), false)?;
        for (adapters, z) in self.adapters.iter().zip(&self.z.0) {
            adapters.table.of_outputs(&cuda.device, chunk.clone())?.expand(&cuda.device, &z.rows, out, column)?;
        }
        Ok(())
    }
}

impl Cuda {
    /// See [`head_part`](crate::backend::VocabularyOps::head_part).
    pub(super) fn head_part_of(
        &self,
        call: &LinearCall<'_, Self>,
        hidden: &DeviceRows,
        targets: &Targets,
        tokens: usize,
        save: bool,
    ) -> Result<HeadPart<Self>> {
        match self.dtype {
            Dtype::F32 => self.sums_of_part::<f32>(call, hidden, targets, tokens, save),
            Dtype::Bf16 => self.sums_of_part::<bf16>(call, hidden, targets, tokens, save),
        }
    }

    fn sums_of_part<T: GemmElement>(
        &self,
        call: &LinearCall<'_, Self>,
        hidden: &DeviceRows,
        targets: &Targets,
        tokens: usize,
        save: bool,
    ) -> Result<HeadPart<Self>> {
        let (device, rows) = (&self.device, hidden.rows());
        let head = AdaptedHead::<T>::new(self, call, hidden)?;
        let on_device = DeviceTargets::upload(device, targets, tokens)?;
        let mut sums = DeviceLogSums::new(device, rows)?;
        // -0 changes no bit of what it is added to.
        let mut found = device.upload(&vec![-0f32; targets.ids.len()])?;
        let mut saved = if save { Some(DeviceRows::uninitialised(device, rows, tokens)?) } else { None };
        for chunk in chunks(tokens, self.chunk) {
            let mut own = match &saved {
                Some(_) => None,
                None => Some(DeviceRows::uninitialised(device, rows, chunk.len())?),
            };
            let column = if saved.is_some() { chunk.start } else { 0 };
            let Some(logits) = saved.as_mut().or(own.as_mut()) else { continue };
            head.logits(self, &chunk, logits, column)?;
            let chunk = LogitChunk { logits, column, tokens: (chunk.start, chunk.end) };
            sums.add(device, chunk, &on_device, &mut found)?;
        }
        let state = HeadState { lse: Vec::new(), logits: saved, tokens };
        Ok(HeadPart { sums: sums.to_host()?, logits: found.to_host()?, state })
    }

    /// See [`target_logprobs`](crate::backend::Backend::target_logprobs).
    pub(super) fn head_logprobs(
        &self,
        call: &LinearCall<'_, Self>,
        hidden: &DeviceRows,
        targets: &Targets,
        save: bool,
    ) -> Result<(Vec<f32>, HeadState)> {
        let HeadPart { sums, mut logits, mut state } =
            self.head_part_of(call, hidden, targets, call.weight.extents().0, save)?;
        state.lse = targets.normalise(&sums, &mut logits);
        Ok((logits, state))
    }

    /// See [`head_backward`](crate::backend::Backend::head_backward).
    pub(super) fn head_gradient(
        &self,
        call: &LinearCall<'_, Self>,
        hidden: &DeviceRows,
        (gradient, state): (&HeadGradient<'_>, &HeadState),
        param: usize,
        sinks: &mut GradientSinks<'_, '_, Self>,
    ) -> Result<DeviceRows> {
        match self.dtype {
            Dtype::F32 => self.backward_of_head::<f32>(call, hidden, (gradient, state), param, sinks),
            Dtype::Bf16 => self.backward_of_head::<bf16>(call, hidden, (gradient, state), param, sinks),
        }
    }

    fn backward_of_head<T: GemmElement>(
        &self,
        call: &LinearCall<'_, Self>,
        hidden: &DeviceRows,
        (gradient, state): (&HeadGradient<'_>, &HeadState),
        param: usize,
        sinks: &mut GradientSinks<'_, '_, Self>,
    ) -> Result<DeviceRows> {
        let (device, rows, width) = (&self.device, hidden.rows(), hidden.width());
        let head = AdaptedHead::<T>::new(self, call, hidden)?;
        let targets = DeviceTargets::upload(device, gradient.targets, state.tokens)?;
        let lse: Vec<f32> = gradient.rows.iter().map(|row| state.lse[*row]).collect();
        let (lse, d) = (device.upload(&lse)?, device.upload(gradient.d_logprobs)?);
        let saved = state.logits.as_ref().map(|logits| super::super::gather(device, logits, gradient.rows));
        let saved = saved.transpose()?;
        let trained = self.adapters::<T>(call.lora, rows, |segment| segment.trains)?.into_iter().next();
        let mut dz: Option<DeviceRows> = None;
        let mut dx = DeviceRows::zeros(device, rows, width)?;
        for chunk in chunks(state.tokens, self.chunk) {
            let own = match &saved {
                Some(_) => None,
                None => {
                    let mut logits = DeviceRows::uninitialised(device, rows, chunk.len())?;
                    head.logits(self, &chunk, &mut logits, 0)?;
                    Some(logits)
                }
            };
            let Some(logits) = saved.as_ref().or(own.as_ref()) else { continue };
            let column = if saved.is_some() { chunk.start } else { 0 };
            let columns = LogitChunk { logits, column, tokens: (chunk.start, chunk.end) };
            let d_logits = logit_gradient::<f32>(device, columns, &targets, &lse, &d)?;
            let rounded = T::rounded(device, &d_logits)?;
            let plan = self.plan::<T>((chunk.len(), width), WeightSide::Outputs)?;
            self.matmul.run(&plan, &rounded, (head.weight, chunk.clone()), &mut dx, true)?;
            if let Some(adapters) = &trained {
                let part = adapters.table.of_outputs(device, chunk.clone())?.shrink_backward(device, &rounded, 0)?;
                match &mut dz {
                    Some(dz) => add(device, dz.data_mut(), part.data())?,
                    None => dz = Some(part),
                }
            }
            match sinks {
                GradientSinks::Full(CudaParams(grads)) => {
                    let gradient = part_of_unembedding(&mut grads[param], &chunk, (rows, width));
                    outer_products(device, (&d_logits, 0), (hidden, 0), &mut [gradient])?;
                }
                GradientSinks::Adapters(sinks) => {
                    for z in &head.z.0 {
                        let mut outs = column_gradients(call.lora, z, 1, sinks, |s| (chunk.len(), s.rank));
                        outs.iter_mut().for_each(|out| out.first += chunk.start * out.right);
                        outer_products(device, (&d_logits, 0), (&z.rows, 0), &mut outs)?;
                    }
                }
            }
        }
        if let (Some(adapters), Some(dz)) = (&trained, dz) {
            adapters.table.expand_backward(device, &dz, &mut dx)?;
            if let GradientSinks::Adapters(sinks) = sinks {
                let dz = LowRank(vec![adapters.low_rank(dz)]);
                self.adapter_gradients(call.lora, Some((&dz, hidden)), None, sinks)?;
            }
        }
        Ok(dx)
    }
}

/// The rows of a chunk of tokens in the gradient of the unembedding.
fn part_of_unembedding<'a>(
    gradient: &'a mut Slice<f32>,
    chunk: &Range<usize>,
    (rows, width): (usize, usize),
) -> OuterProduct<'a> {
    OuterProduct { gradient, first: chunk.start * width, rows: (0, rows), left: chunk.len(), right: width }
}
