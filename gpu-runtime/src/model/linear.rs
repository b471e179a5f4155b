//! Linear layers of a block: projections fused along their outputs, together with the adapters of groups of rows.

use super::adapter::{Adapter, LoraPair, RowGroup};
use super::params::LinearParams;
use super::projection::Projection;
use crate::backend::{Backend, LinearCall, LoraSegment, MatrixRole, Source, WeightPart};

/// Position of a projection's outputs in its linear layer.
#[derive(Clone, Copy, Debug)]
pub(super) struct ProjectionSlot {
    /// The projection that adapters refer to; `None` if the part can't have adapters.
    pub(super) projection: Option<Projection>,
    pub(super) column: usize,
    pub(super) outputs: usize,
    pub(super) params: LinearParams,
}

/// `y = x Wᵀ + b` of one or several projections.
pub(super) struct Linear<B: Backend> {
    weight: B::Matrix,
    bias: Option<B::Vector>,
    slots: Vec<ProjectionSlot>,
}

impl<B: Backend> Linear<B> {
    /// Builds a layer from the weights and biases of its parts. Each part has its projection, if adapters can be on it,
    /// its number of outputs, and its parameters.
    pub(super) fn new(
        backend: &B,
        inputs: usize,
        parts: &[(Option<Projection>, usize, LinearParams)],
        weights: &[Source<'_, B>],
        biases: &[Source<'_, B>],
    ) -> Self {
        let mut column = 0;
        let slots = parts.iter().map(|&(projection, outputs, params)| {
            column += outputs;
            ProjectionSlot { projection, column: column - outputs, outputs, params }
        });
        let slots = slots.collect();
        let bias = (!biases.is_empty()).then(|| backend.vector(biases, 0.0));
        Self { weight: backend.pack(weights, inputs, MatrixRole::Base), bias, slots }
    }

    /// Repacks it from its parameters, in place.
    pub(super) fn update(&mut self, backend: &B, params: &B::Params) {
        let of = |index| Source::Param(params, index);
        let weights = self.slots.iter().map(|slot| of(slot.params.weight)).collect();
        backend.repack(vec![(&mut self.weight, weights)]);
        if let Some(bias) = &mut self.bias {
            let biases: Vec<_> = self.slots.iter().filter_map(|slot| slot.params.bias.map(of)).collect();
            *bias = backend.vector(&biases, 0.0);
        }
    }

    /// Writes its weights and biases to their entries of `params`.
    pub(super) fn write_to_host(&self, backend: &B, fence: &B::Fence, params: &mut [Vec<f32>]) {
        let weight = backend.matrix_to_host(&self.weight, fence);
        let bias = self.bias.as_ref().map(|bias| backend.vector_to_host(bias, fence)).unwrap_or_default();
        let inputs = weight.len().checked_div(self.outputs()).unwrap_or(0);
        for slot in &self.slots {
            let (own, columns) = (slot.params, slot.column..slot.column + slot.outputs);
            params[own.weight] = weight[columns.start * inputs..columns.end * inputs].to_vec();
            if let Some(index) = own.bias {
                params[index] = bias[columns].to_vec();
            }
        }
    }

    /// Columns of its output.
    pub(super) fn outputs(&self) -> usize {
        self.slots.iter().map(|slot| slot.outputs).sum()
    }

    pub(super) fn is_biased(&self) -> bool {
        self.bias.is_some()
    }

    pub(super) fn bytes(&self, backend: &B) -> usize {
        backend.matrix_bytes(&self.weight)
    }

    /// The argument of the linear ops, with the segments of adapters on it.
    pub(super) fn with<'a>(&'a self, lora: &'a [LoraSegment<'a, B>]) -> LinearCall<'a, B> {
        LinearCall { weight: &self.weight, bias: self.bias.as_ref(), lora }
    }

    /// Like [`Linear::with`], but without the bias, for ranks whose sums another rank adds the bias to.
    pub(super) fn without_bias<'a>(&'a self, lora: &'a [LoraSegment<'a, B>]) -> LinearCall<'a, B> {
        LinearCall { bias: None, ..self.with(lora) }
    }

    /// The segments of the adapters on the layer, projection by projection, group by group. `trains` tells for each
    /// group whether its gradients are needed; groups beyond its end do not train. `expert` is the expert that the
    /// layer belongs to, if any: groups without rows are left out there.
    pub(super) fn segments<'a>(
        &self,
        groups: &'a [RowGroup<B>],
        layer: usize,
        expert: Option<usize>,
        trains: &[bool],
    ) -> Vec<LoraSegment<'a, B>> {
        let on = |slot: &ProjectionSlot| {
            let (column, projection) = (slot.column, slot.projection?);
            Some(segments(groups, trains, expert, column, move |adapter| adapter.pair(layer, projection)))
        };
        self.slots.iter().filter_map(on).flatten().collect()
    }

    /// Projections of the layer as parameters that are trained in full.
    pub(super) fn parts(&self) -> Vec<WeightPart> {
        let part = |slot: &ProjectionSlot| {
            let LinearParams { weight, bias } = slot.params;
            WeightPart { weight, bias, column: slot.column, outputs: slot.outputs }
        };
        self.slots.iter().map(part).collect()
    }
}

/// The adapters on the unembedding.
pub(super) fn unembedding_segments<'a, B: Backend>(
    groups: &'a [RowGroup<B>],
    trains: &[bool],
) -> Vec<LoraSegment<'a, B>> {
    segments(groups, trains, None, 0, |adapter| adapter.unembed.as_ref())
}

fn segments<'a, B: Backend>(
    groups: &'a [RowGroup<B>],
    trains: &[bool],
    expert: Option<usize>,
    column: usize,
    pair: impl Fn(&'a Adapter<B>) -> Option<&'a LoraPair<B>>,
) -> Vec<LoraSegment<'a, B>> {
    let segment = |(group, of): (usize, &'a RowGroup<B>)| {
        if of.rows.is_empty() {
            return None;
        }
        let adapter = of.adapter.as_deref()?;
        let pair = pair(adapter)?;
        let (rank, scale, extents) = (adapter.rank, adapter.scale(), pair.extents);
        let (a, b, grads) = pair.of_expert(expert, rank);
        let trains = trains.get(group).copied().unwrap_or(false);
        Some(LoraSegment { group, rows: of.rows.clone(), column, extents, rank, scale, a, b, grads, trains })
    };
    groups.iter().enumerate().filter_map(segment).collect()
}
