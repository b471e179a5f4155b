//! Linear layers of a model's shape with adapters on all of their parts.

use std::slice;

use super::compare::Named;
use super::numbers::Tile;
use crate::check::HostAccess;
use crate::{GradientSlot, Held, LinearCall, LoraSegment, MatrixRole, Source};

/// A part of a linear layer, with its adapter.
struct Part<B: HostAccess> {
    column: usize,
    outputs: usize,
    a: B::Matrix,
    b: B::Matrix,
}

/// A linear layer `[outputs, inputs]` with adapters.
pub(super) struct Projection<B: HostAccess> {
    pub(super) weight: B::Matrix,
    pub(super) outputs: usize,
    pub(super) inputs: usize,
    pub(super) rank: usize,
    parts: Vec<Part<B>>,
    /// Parameter of the first adapter's A; the others follow.
    param: usize,
}

impl<B: HostAccess> Projection<B> {
    /// A layer whose parts have these numbers of outputs; its gradients begin at parameter `param`.
    pub(super) fn new(b: &B, tile: &Tile, parts: &[usize], inputs: usize, rank: usize, param: usize) -> Self {
        let pack = |stream: usize, outputs: usize, inputs: usize, role: MatrixRole| {
            b.pack(&[Source::Host(&tile.weights(stream, outputs, inputs))], inputs, role)
        };
        let outputs = parts.iter().sum();
        // As other layers have other parameters, their numbers are others.
        let stream = 10 * (param + 1);
        let weight = pack(stream, outputs, inputs, MatrixRole::Base);
        let mut column = 0;
        let part = |(index, outputs): (usize, &usize)| {
            let stream = stream + 2 * index + 1;
            let a = pack(stream, rank, inputs, MatrixRole::Adapter);
            let low = pack(stream + 1, *outputs, rank, MatrixRole::Adapter);
            column += outputs;
            Part { column: column - outputs, outputs: *outputs, a, b: low }
        };
        let parts = parts.iter().enumerate().map(part).collect();
        Self { weight, outputs, inputs, rank, parts, param }
    }

    /// The adapters over all of these rows.
    pub(super) fn segments(&self, rows: usize) -> Vec<LoraSegment<'_, B>> {
        self.segments_from(rows, self.param)
    }

    /// The adapters, whose gradients begin at a parameter.
    fn segments_from(&self, rows: usize, param: usize) -> Vec<LoraSegment<'_, B>> {
        let all = self.parts.iter().enumerate().map(|(index, part)| {
            let Part { column, outputs, a, b } = part;
            LoraSegment {
                group: 0,
                rows: 0..rows,
                column: *column,
                extents: (*outputs, self.inputs),
                rank: self.rank,
                scale: 1.0,
                a,
                b,
                grads: GradientSlot::pair(param + 2 * index),
                trains: true,
            }
        });
        all.collect()
    }

    /// The layer with some adapters.
    pub(super) fn call<'a>(&'a self, lora: &'a [LoraSegment<'a, B>]) -> LinearCall<'a, B> {
        LinearCall { weight: &self.weight, bias: None, lora }
    }

    /// Lengths of the gradients of A and B of each part.
    pub(super) fn lens(&self) -> Vec<usize> {
        self.parts.iter().flat_map(|part| [self.rank * self.inputs, part.outputs * self.rank]).collect()
    }

    /// Output and all gradients of a number of rows.
    pub(super) fn pass(&self, b: &B, tile: &Tile, rows: usize) -> Vec<Named> {
        let x = b.rows(&tile.take(1, rows * self.inputs, 1.0), self.inputs);
        let (lora, sequences) = (self.segments_from(rows, 0), 0..rows);
        let (call, sequences) = (self.call(&lora), slice::from_ref(&sequences));
        let mut out = b.alloc(rows, self.outputs);
        let z = b.linear(&call, &b.lhs(&x), None, &mut out);
        let d = b.rows(&tile.take(2, rows * self.outputs, 1.0), self.outputs);
        let dy = b.output_gradient(Held::Owned(d), sequences);
        let mut dx = b.alloc(rows, self.inputs);
        let dz = b.linear_backward(&call, &dy, &mut dx);
        let mut grads = b.begin_gradient(&self.lens(), None);
        let x = b.weight_input(Held::Owned(x), sequences);
        b.lora_gradients(&lora, sequences, &x, &dy, [&z, &dz], &mut [Some(&mut grads)]);
        b.finish_gradient(&mut grads);
        let mut results = vec![Named::of(b, "output", &out), Named::of(b, "gradient of the input", &dx)];
        let names = [("gradient of A", self.inputs), ("gradient of B", self.rank)];
        results.extend(Named::params(&names, &grads));
        results
    }
}
