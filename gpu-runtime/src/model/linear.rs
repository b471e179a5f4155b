//! Linear layers of a block: projections fused along their outputs, with the adapters of groups of rows beside them.

use super::adapter::{Adapter, LoraPair, RowGroup};
use super::params::{BlockParams, Projection};
use crate::backend::{Backend, LinearCall, LoraSegment, MatrixRole, Source, WeightPart};
use crate::config::ModelConfig;

/// Where a projection's outputs are in its linear layer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ProjectionSlot {
    pub(super) projection: Projection,
    /// First column.
    pub(super) column: usize,
    /// Columns.
    pub(super) outputs: usize,
}

/// `y = x Wᵀ + b` of one or several projections.
pub(super) struct Linear<B: Backend> {
    weight: B::Matrix,
    bias: Option<B::Vector>,
    slots: Vec<ProjectionSlot>,
}

impl<B: Backend> Linear<B> {
    /// The projections of each linear layer of a block.
    pub(super) const FUSED: [&'static [Projection]; 4] = [
        &[Projection::Q, Projection::K, Projection::V],
        &[Projection::O],
        &[Projection::Gate, Projection::Up],
        &[Projection::Down],
    ];

    /// From the weights and biases of the projections.
    pub(super) fn new(
        backend: &B,
        c: &ModelConfig,
        projections: &[Projection],
        weights: &[Source<'_, B>],
        biases: &[Source<'_, B>],
    ) -> Self {
        let mut column = 0;
        let slots = projections.iter().map(|projection| {
            let outputs = projection.extents(c).0;
            column += outputs;
            ProjectionSlot { projection: *projection, column: column - outputs, outputs }
        });
        let slots = slots.collect();
        let inputs = projections.first().map_or(0, |projection| projection.extents(c).1);
        let bias = (!biases.is_empty()).then(|| backend.vector(biases, 0.0));
        Self { weight: backend.pack(weights, inputs, MatrixRole::Base), bias, slots }
    }

    /// Repacks it from its parameters, in place.
    pub(super) fn update(&mut self, backend: &B, p: &BlockParams, params: &B::Params) {
        let of = |index| Source::Param(params, index);
        let own = |slot: &ProjectionSlot| p.projection(slot.projection);
        let weights: Vec<_> = self.slots.iter().map(|slot| of(own(slot).weight)).collect();
        backend.repack(&mut self.weight, &weights);
        if let Some(bias) = &mut self.bias {
            let biases: Vec<_> = self.slots.iter().filter_map(|slot| own(slot).bias.map(of)).collect();
            *bias = backend.vector(&biases, 0.0);
        }
    }

    /// Writes its weights and biases to their entries of `params`.
    pub(super) fn write_to_host(&self, backend: &B, p: &BlockParams, params: &mut [Vec<f32>]) {
        let weight = backend.matrix_to_host(&self.weight);
        let bias = self.bias.as_ref().map(|bias| backend.vector_to_host(bias)).unwrap_or_default();
        let outputs: usize = self.slots.iter().map(|slot| slot.outputs).sum();
        let inputs = weight.len().checked_div(outputs).unwrap_or(0);
        for slot in &self.slots {
            let (own, columns) = (p.projection(slot.projection), slot.column..slot.column + slot.outputs);
            params[own.weight] = weight[columns.start * inputs..columns.end * inputs].to_vec();
            if let Some(index) = own.bias {
                params[index] = bias[columns].to_vec();
            }
        }
    }

    pub(super) fn bytes(&self, backend: &B) -> usize {
        backend.matrix_bytes(&self.weight)
    }

    /// The argument of the linear ops, with the segments of adapters on it.
    pub(super) fn with<'a>(&'a self, lora: &'a [LoraSegment<'a, B>]) -> LinearCall<'a, B> {
        LinearCall { weight: &self.weight, bias: self.bias.as_ref(), lora }
    }

    /// The segments of the adapters on it, projection by projection, group by group. `trains` says by group whether its
    /// gradients are wanted; groups beyond its end do not train.
    pub(super) fn segments<'a>(
        &self,
        groups: &'a [RowGroup<B>],
        layer: usize,
        trains: &[bool],
    ) -> Vec<LoraSegment<'a, B>> {
        let on = |slot: &ProjectionSlot| {
            let ProjectionSlot { projection, column, .. } = *slot;
            segments(groups, trains, column, move |adapter| adapter.pair(layer, projection))
        };
        self.slots.iter().flat_map(on).collect()
    }

    /// Its projections as parameters that are trained in full.
    pub(super) fn parts(&self, p: &BlockParams) -> Vec<WeightPart> {
        let part = |slot: &ProjectionSlot| {
            let own = p.projection(slot.projection);
            WeightPart { weight: own.weight, bias: own.bias, column: slot.column, outputs: slot.outputs }
        };
        self.slots.iter().map(part).collect()
    }
}

/// The adapters on the unembedding.
pub(super) fn unembedding_segments<'a, B: Backend>(
    groups: &'a [RowGroup<B>],
    trains: &[bool],
) -> Vec<LoraSegment<'a, B>> {
    segments(groups, trains, 0, |adapter| adapter.unembed.as_ref())
}

fn segments<'a, B: Backend>(
    groups: &'a [RowGroup<B>],
    trains: &[bool],
    column: usize,
    pair: impl Fn(&'a Adapter<B>) -> Option<&'a LoraPair<B>>,
) -> Vec<LoraSegment<'a, B>> {
    let segment = |(group, of): (usize, &'a RowGroup<B>)| {
        let adapter = of.adapter.as_deref()?;
        let LoraPair { param, extents, a, b } = pair(adapter)?;
        let (rank, scale) = (adapter.rank, adapter.scale);
        let trains = trains.get(group).copied().unwrap_or(false);
        let (rows, extents, param) = (of.rows.clone(), *extents, *param);
        Some(LoraSegment { group, rows, column, extents, rank, scale, a, b, param, trains })
    };
    groups.iter().enumerate().filter_map(segment).collect()
}
