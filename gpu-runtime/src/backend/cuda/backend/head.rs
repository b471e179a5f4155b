//! The loss head, in chunks of the vocabulary.

use std::ops::Range;

use half::bf16;

use super::Cuda;
use super::elements::GemmElement;
use super::linear::chunks;
use super::low_rank::{Adapters, LowRankRows};
use super::params::CudaParams;
use crate::backend::cuda::device::error::Result;
use crate::backend::cuda::device::memory::Slice;
use crate::backend::cuda::device::open::CudaDevice;
use crate::backend::cuda::ops::copies::gather;
use crate::backend::cuda::ops::head::{
    DeviceDivergences, DeviceLogSums, DeviceRowGradients, DeviceTargets, LogitChunk, OtherChunk, add_divergences,
    add_entropies, logit_gradient,
};
use crate::backend::cuda::ops::outer::{OuterProducts, OuterSide};
use crate::backend::cuda::ops::product::WeightSide;
use crate::backend::cuda::ops::rows::{Addend, DeviceRows};
use crate::backend::cuda::ops::squares::add;
use crate::backend::{
    Dtype, EntropyGradient, GradientSinks, GradientSlot, HeadGradient, HeadPart, Held, LinearCall, ReferenceRows,
    Targets,
};

/// State that the forward pass saves for the backward pass.
pub struct HeadState {
    /// Log-sum-exp of every row.
    pub(super) lse: Vec<f32>,
    /// `[rows, tokens]`, where they were saved.
    logits: Option<DeviceRows>,
    /// Rows of the unembedding that are tokens.
    tokens: usize,
}

impl HeadState {
    /// Log-sum-exps of some of the rows, and their logits if they were saved.
    fn of_rows(&self, device: &CudaDevice, rows: &[usize]) -> Result<(Slice<f32>, Option<DeviceRows>)> {
        let lse: Vec<f32> = rows.iter().map(|row| self.lse[*row]).collect();
        let saved = self.logits.as_ref().map(|logits| gather(device, logits, rows)).transpose()?;
        Ok((device.upload(&lse)?, saved))
    }
}

/// An unembedding with the adapters on it, for some rows.
struct AdaptedHead<'a, T: GemmElement> {
    weight: &'a DeviceRows<T>,
    x: DeviceRows<T>,
    /// Adapters on the unembedding, if there are any.
    adapters: Option<Adapters<'a, T>>,
    /// The adapters' low-rank rows, and the same rows rounded for products with B.
    z: Option<(LowRankRows, DeviceRows<T>)>,
}

impl<'a, T: GemmElement> AdaptedHead<'a, T> {
    fn new(cuda: &Cuda, call: &LinearCall<'a, Cuda>, hidden: &DeviceRows) -> Result<Self> {
        let x = T::rounded(&cuda.device, hidden)?;
        let adapters = cuda.adapters::<T>(call.lora, hidden.rows(), |_| true)?;
        let shrunk = |of: &Adapters<'_, T>| -> Result<_> {
            let z = of.table.shrink_unrounded(&cuda.device, &x)?;
            let rounded = T::rounded(&cuda.device, &z)?;
            Ok((of.low_rank(z), rounded))
        };
        let z = adapters.as_ref().map(shrunk).transpose()?;
        Ok(Self { weight: T::of(&call.weight.0)?, x, adapters, z })
    }

    /// Rows with the logits of a chunk of the vocabulary, and the column of its first one: those that were saved, or others,
    /// which have the chunk alone.
    fn logits_of<'s>(
        &self,
        cuda: &Cuda,
        chunk: &Range<usize>,
        saved: Option<&'s DeviceRows>,
    ) -> Result<(Held<'s, DeviceRows>, usize)> {
        if let Some(saved) = saved {
            return Ok((Held::Borrowed(saved), chunk.start));
        }
        let mut logits = DeviceRows::uninitialised(&cuda.device, self.x.rows(), chunk.len())?;
        self.logits(cuda, chunk, &mut logits, 0)?;
        Ok((Held::Owned(logits), 0))
    }

    /// Writes the logits of a chunk of the vocabulary to columns of `out`.
    fn logits(&self, cuda: &Cuda, chunk: &Range<usize>, out: &mut DeviceRows, column: usize) -> Result {
        let plan = cuda.plan::<T>(chunk.len(), self.weight.width(), WeightSide::Inputs)?;
        cuda.matmul.run_columns(&plan, &self.x, self.weight, chunk.clone(), out, column, Addend::None)?;
        if let (Some(adapters), Some((_, z))) = (&self.adapters, &self.z) {
            let table = adapters.table.of_outputs(&cuda.device, chunk.clone(), column)?;
            table.expand(&cuda.device, z, Addend::Output, out)?;
        }
        Ok(())
    }
}

/// The head of the distributions that those of rows are compared with.
struct ReferenceHead<'a, T: GemmElement> {
    head: AdaptedHead<'a, T>,
    log_sums: Slice<f32>,
}

impl<'a, T: GemmElement> ReferenceHead<'a, T> {
    fn new(cuda: &Cuda, of: &ReferenceRows<'a, Cuda>) -> Result<Self> {
        let call = LinearCall { weight: of.unembedding, bias: None, lora: &[] };
        Ok(Self { head: AdaptedHead::new(cuda, &call, of.hidden)?, log_sums: cuda.device.upload(of.lse)? })
    }

    /// Logits of a chunk of the vocabulary.
    fn logits(&self, cuda: &Cuda, chunk: &Range<usize>) -> Result<DeviceRows> {
        let mut logits = DeviceRows::uninitialised(&cuda.device, self.head.x.rows(), chunk.len())?;
        self.head.logits(cuda, chunk, &mut logits, 0)?;
        Ok(logits)
    }

    fn chunk<'c>(&'c self, logits: &'c DeviceRows) -> OtherChunk<'c> {
        OtherChunk { logits, log_sums: &self.log_sums }
    }
}

impl Cuda {
    /// Implementation of [`head_part`](crate::backend::VocabularyOps::head_part) on the device.
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

    /// Implementation of [`target_logprobs`](crate::backend::Backend::target_logprobs) on the device.
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

    /// Implementation of [`entropies`](crate::backend::VocabularyOps::entropies) on the device, or with a reference, of
    /// [`divergences`](crate::backend::VocabularyOps::divergences) from it.
    pub(super) fn sums_of_distributions(
        &self,
        call: &LinearCall<'_, Self>,
        hidden: &DeviceRows,
        rows: &[usize],
        state: &HeadState,
        reference: Option<&ReferenceRows<'_, Self>>,
    ) -> Result<Vec<f32>> {
        match self.dtype {
            Dtype::F32 => self.sums_of_rows::<f32>(call, hidden, rows, state, reference),
            Dtype::Bf16 => self.sums_of_rows::<bf16>(call, hidden, rows, state, reference),
        }
    }

    fn sums_of_rows<T: GemmElement>(
        &self,
        call: &LinearCall<'_, Self>,
        hidden: &DeviceRows,
        rows: &[usize],
        state: &HeadState,
        reference: Option<&ReferenceRows<'_, Self>>,
    ) -> Result<Vec<f32>> {
        let device = &self.device;
        let head = AdaptedHead::<T>::new(self, call, hidden)?;
        let reference = reference.map(|rows| ReferenceHead::<T>::new(self, rows)).transpose()?;
        let (lse, saved) = state.of_rows(device, rows)?;
        // Of a part without tokens, nothing is added.
        let mut sums = device.upload(&vec![0f32; rows.len()])?;
        for chunk in chunks(state.tokens, self.chunk) {
            let (logits, column) = head.logits_of(self, &chunk, saved.as_ref())?;
            let columns = LogitChunk { logits: &logits, column, tokens: (chunk.start, chunk.end) };
            match &reference {
                None => add_entropies(device, columns, &lse, &mut sums)?,
                Some(reference) => {
                    let others = reference.logits(self, &chunk)?;
                    add_divergences(device, columns, &lse, reference.chunk(&others), &mut sums)?;
                }
            }
        }
        sums.to_host()
    }

    /// Implementation of [`head_backward`](crate::backend::Backend::head_backward) on the device.
    pub(super) fn head_gradient(
        &self,
        call: &LinearCall<'_, Self>,
        hidden: &DeviceRows,
        gradient: &HeadGradient<'_, Self>,
        state: &HeadState,
        param: usize,
        sinks: &mut GradientSinks<'_, '_, Self>,
    ) -> Result<DeviceRows> {
        match self.dtype {
            Dtype::F32 => self.backward_of_head::<f32>(call, hidden, gradient, state, param, sinks),
            Dtype::Bf16 => self.backward_of_head::<bf16>(call, hidden, gradient, state, param, sinks),
        }
    }

    fn backward_of_head<T: GemmElement>(
        &self,
        call: &LinearCall<'_, Self>,
        hidden: &DeviceRows,
        gradient: &HeadGradient<'_, Self>,
        state: &HeadState,
        param: usize,
        sinks: &mut GradientSinks<'_, '_, Self>,
    ) -> Result<DeviceRows> {
        let (device, rows, width) = (&self.device, hidden.rows(), hidden.width());
        let head = AdaptedHead::<T>::new(self, call, hidden)?;
        let targets = DeviceTargets::upload(device, gradient.targets, state.tokens)?;
        let (lse, saved) = state.of_rows(device, gradient.rows)?;
        let d = device.upload(gradient.d_logprobs)?;
        let upload = |EntropyGradient { entropies, d_entropies }| -> Result<[Slice<f32>; 2]> {
            Ok([device.upload(entropies)?, device.upload(d_entropies)?])
        };
        // With divergences there are entropies too: those that no loss depends on have no gradient.
        let none = vec![0f32; if gradient.divergence.is_some() { rows } else { 0 }];
        let without = gradient.divergence.map(|_| EntropyGradient { entropies: &none, d_entropies: &none });
        let entropies = gradient.entropy.or(without).map(upload).transpose()?;
        let entropies = entropies.as_ref();
        let of_rows = DeviceRowGradients { targets: &targets, log_sums: &lse, d: &d, entropies, divergences: None };
        let reference = gradient.divergence.map(|of| -> Result<_> {
            let values = [device.upload(of.divergences)?, device.upload(of.d_divergences)?];
            Ok((ReferenceHead::<T>::new(self, &of.reference)?, values))
        });
        let reference = reference.transpose()?;
        let trained = self.adapters::<T>(call.lora, rows, |segment| segment.trains)?;
        // Gradients of the unembedding, or of adapters on it, are of the gradient of logits in f32.
        let wide = trained.is_some() || matches!(sinks, GradientSinks::Full(_));
        let mut dz: Option<DeviceRows> = None;
        let mut dx = DeviceRows::zeros(device, rows, width)?;
        for chunk in chunks(state.tokens, self.chunk) {
            let (logits, column) = head.logits_of(self, &chunk, saved.as_ref())?;
            let columns = LogitChunk { logits: &logits, column, tokens: (chunk.start, chunk.end) };
            let others = reference.as_ref().map(|(head, _)| head.logits(self, &chunk)).transpose()?;
            let divergences = reference
                .as_ref()
                .zip(others.as_ref())
                .map(|((head, [values, d]), others)| DeviceDivergences { other: head.chunk(others), values, d });
            let of_rows = DeviceRowGradients { divergences, ..of_rows };
            let d_logits = wide.then(|| logit_gradient::<f32>(device, columns, &of_rows)).transpose()?;
            let rounded = match &d_logits {
                Some(d_logits) => T::rounded(device, d_logits)?,
                None => logit_gradient::<T>(device, columns, &of_rows)?,
            };
            let plan = self.plan::<T>(chunk.len(), width, WeightSide::Outputs)?;
            self.matmul.run(&plan, &rounded, head.weight, chunk.clone(), &mut dx, true)?;
            if let Some(adapters) = &trained {
                let part =
                    adapters.table.of_outputs(device, chunk.clone(), 0)?.shrink_backward_unrounded(device, &rounded)?;
                match &mut dz {
                    Some(dz) => add(device, dz.data_mut(), part.data())?,
                    None => dz = Some(part),
                }
            }
            let Some(d_logits) = &d_logits else { continue };
            let mut gradients = OuterProducts::new();
            match sinks {
                GradientSinks::Full(CudaParams(grads)) => {
                    let sides = [OuterSide::new(d_logits, 0, chunk.len()), OuterSide::new(hidden, 0, width)];
                    gradients.push(&mut grads[param], chunk.start * width, sides, std::slice::from_ref(&(0..rows)))?;
                }
                GradientSinks::Adapters(sinks) => {
                    let of_z = head.z.iter().flat_map(|(z, _)| z.trained(call.lora, 1).map(move |of| (z, of)));
                    for (z, (layer, GradientSlot { param, first }, segment)) in of_z {
                        let Some(sink) = sinks.get_mut(segment.group).and_then(Option::as_deref_mut) else { continue };
                        let sides = [OuterSide::new(d_logits, 0, chunk.len()), z.side(layer, segment.rank)];
                        let first = first + chunk.start * segment.rank;
                        gradients.push(&mut sink.0[param], first, sides, std::slice::from_ref(&segment.rows))?;
                    }
                }
            }
            // Rows one by one: what has targets is not cut into sequences here.
            gradients.launch(device)?;
        }
        if let (Some(adapters), Some(dz)) = (&trained, dz) {
            adapters.table.expand_backward(device, &T::rounded(device, &dz)?, Addend::Output, &mut dx)?;
            if let GradientSinks::Adapters(sinks) = sinks {
                let (dz, mut gradients) = (adapters.low_rank(dz), OuterProducts::new());
                for (layer, GradientSlot { param, first }, segment) in dz.trained(call.lora, 0) {
                    let Some(sink) = sinks.get_mut(segment.group).and_then(Option::as_deref_mut) else { continue };
                    let sides = [dz.side(layer, segment.rank), OuterSide::new(hidden, 0, width)];
                    gradients.push(&mut sink.0[param], first, sides, std::slice::from_ref(&segment.rows))?;
                }
                gradients.launch(device)?;
            }
        }
        Ok(dx)
    }
}
