//! The backward pass over a packed batch. Weight gradients add up rows in order, group by group.

use std::ops::Range;

use super::adapter::Module;
use super::forward::{Activations, Group, Kept, LayerActivations, again, gate_up_places, qkv_places};
use super::gradient::GradientSum;
use super::lora::{Down, Place, adapted, backward_down, backward_up, pair_gradients};
use super::params::{Gradients, LayerParams};
use super::weights::{Layer, Linear, Weights};
use crate::kernels::Cpu;
use crate::kernels::attention::{AttentionGradient, KvSequence, Span, attention_backward};
use crate::kernels::buffer::Buffer;
use crate::kernels::elementwise::{add_column_sums, swiglu_backward};
use crate::kernels::gemm::{Gradient, Operand, Rows, add_gradients, matmul};
use crate::kernels::norm::{rms_norm, rms_norm_backward, rms_norm_heads_backward};

/// Where gradients go.
pub(super) enum Sink<'a> {
    /// One set per group that has an adapter; `None` for groups that do not train.
    Adapters(&'a mut [Option<&'a mut Gradients>]),
    /// All parameters of the model.
    Full(&'a mut GradientSum),
}

/// The batch as the forward pass saw it.
pub(super) struct BatchView<'a> {
    /// Rows of each sequence; every sequence starts at position 0.
    pub spans: &'a [(Range<usize>, usize)],
    /// Their keys and values.
    pub kv: &'a [KvSequence],
    /// Rows by adapter.
    pub groups: &'a [Group],
    /// Position of every row.
    pub positions: &'a [u32],
    /// Token of every row.
    pub tokens: &'a [u32],
}

struct Backward<'a, 'b> {
    cpu: &'a Cpu,
    w: &'a Weights,
    batch: &'a BatchView<'a>,
    sink: Sink<'b>,
}

/// Adds the gradient to `sink`, given that by the residual stream after the last block, `dx`.
pub(super) fn backward(
    cpu: &Cpu,
    w: &Weights,
    batch: &BatchView<'_>,
    activations: Activations,
    mut dx: Buffer<f32>,
    sink: Sink<'_>,
) {
    let mut pass = Backward { cpu, w, batch, sink };
    for (l, saved) in activations.into_iter().enumerate().rev() {
        let saved = match saved {
            Kept::All(saved) => Some(*saved),
            Kept::Input(x) => again(cpu, w, l, batch.groups, batch.positions, batch.spans, batch.kv, x),
        };
        if let Some(saved) = saved {
            pass.block(l, saved, &mut dx);
        }
    }
    if let Sink::Full(grads) = &mut pass.sink {
        grads.add_lookups(&w.layout, w.config.hidden_size, batch.tokens, &dx);
    }
}

/// Weight, bias places of the parts of a fused projection, with their widths.
struct FullPlaces<'a> {
    weights: &'a [usize],
    biases: Option<&'a [usize]>,
}

impl Backward<'_, '_> {
    /// Gradient by the input of a linear layer, `dx[rows, k]` (overwritten). Its weights' gradients are left to
    /// [`Backward::weights`].
    fn input<'p>(
        &mut self,
        layer: usize,
        linear: &Linear,
        places: &[Place],
        z: &'p [Vec<f32>],
        dy: &[f32],
        dx: &mut [f32],
    ) -> Vec<Down<'p>>
    where
        Self: 'p,
    {
        let (k, n) = (linear.weight.k(), linear.weight.n());
        let operand = Operand::new(self.cpu, self.w.dtype, dy, n);
        let w = linear.transposed(self.cpu);
        match &mut self.sink {
            Sink::Full(_) => {
                matmul(self.cpu, &operand, w, dx, false);
                Vec::new()
            }
            Sink::Adapters(sinks) => {
                let all = adapted(self.batch.groups, layer, places).into_iter().zip(z);
                let (adapted, z): (Vec<_>, Vec<_>) = all.filter(|(a, _)| sinks[a.group].is_some()).unzip();
                let dzs = backward_up(self.cpu, &operand, dy, self.w.dtype, &adapted);
                let down = |((adapted, z), dz): ((_, &'p Vec<f32>), _)| Down { adapted, z: Some(z), dz };
                let downs: Vec<_> = adapted.into_iter().zip(z).zip(dzs).map(down).collect();
                backward_down(self.cpu, Some((&operand, w)), &downs, k, dx);
                downs
            }
        }
    }

    /// Gradients of a linear layer's weights, or of its adapters', given its input `x[rows, k]` and what
    /// [`Backward::input`] returned.
    fn weights(&mut self, linear: &Linear, full: &FullPlaces<'_>, downs: &[Down<'_>], x: &[f32], dy: &[f32]) {
        let (k, n) = (linear.weight.k(), linear.weight.n());
        match &mut self.sink {
            Sink::Full(grads) => full_gradient(self.cpu, &self.w.layout.specs, full, x, k, dy, n, &mut grads.values),
            Sink::Adapters(sinks) => pair_gradients(self.cpu, downs, x, k, dy, n, sinks),
        }
    }

    fn block(&mut self, l: usize, mut saved: LayerActivations, dx: &mut [f32]) {
        let layer: &Layer = &self.w.layers[l];
        let params = self.w.layout.layers[l].clone();
        self.mlp(l, layer, &params, &mut saved, dx);
        self.attention(l, layer, &params, &saved, dx);
    }

    /// Overwrites `saved.gate_up`.
    fn mlp(&mut self, l: usize, layer: &Layer, params: &LayerParams, saved: &mut LayerActivations, dx: &mut [f32]) {
        let (cpu, w) = (self.cpu, self.w);
        let (rows, width, eps) = (self.batch.positions.len(), w.config.intermediate_size, w.config.rms_norm_eps);
        // First the gradient by the activation, then, in its place, the activation.
        let mut act = cpu.buffer(rows * width);
        let place = [Place { module: Module::Down, at: 0 }];
        let downs = self.input(l, &layer.down, &place, &saved.z[3], dx, &mut act);
        swiglu_backward(cpu, &mut act, width, &mut saved.gate_up);
        let down_bias = params.mlp_bias.map(|b| [b[2]]);
        let full = FullPlaces { weights: &[params.down], biases: down_bias.as_ref().map(|b| &b[..]) };
        self.weights(&layer.down, &full, &downs, &act, dx);
        drop(act);
        let mut normed = cpu.buffer(dx.len());
        rms_norm(cpu, &saved.mid, &layer.post_norm, eps, &mut normed);
        let mut dnormed = cpu.buffer(dx.len());
        let downs = self.input(l, &layer.gate_up, &gate_up_places(w), &saved.z[2], &saved.gate_up, &mut dnormed);
        let full = FullPlaces { weights: &params.gate_up, biases: params.mlp_bias.as_ref().map(|b| &b[..2]) };
        self.weights(&layer.gate_up, &full, &downs, &normed, &saved.gate_up);
        let dw = self.full_param(params.post_norm);
        rms_norm_backward(cpu, &saved.mid, &layer.post_norm, eps, &dnormed, dx, dw);
    }

    fn attention(&mut self, l: usize, layer: &Layer, params: &LayerParams, saved: &LayerActivations, dx: &mut [f32]) {
        let (cpu, w, eps) = (self.cpu, self.w, self.w.config.rms_norm_eps);
        let (rows, shape) = (self.batch.positions.len(), &w.shape);
        let mut dattn = cpu.buffer(rows * shape.q_width());
        let o_bias = params.o_bias.map(|b| [b]);
        let full = FullPlaces { weights: &[params.o], biases: o_bias.as_ref().map(|b| &b[..]) };
        let place = [Place { module: Module::O, at: 0 }];
        let downs = self.input(l, &layer.o, &place, &saved.z[1], dx, &mut dattn);
        self.weights(&layer.o, &full, &downs, &saved.attn, dx);
        let spans: Vec<_> = self
            .batch
            .spans
            .iter()
            .zip(self.batch.kv)
            .map(|((rows, start), kv)| Span { rows: rows.clone(), start: *start, kv })
            .collect();
        let gradient = AttentionGradient { qkv: &saved.qkv, out: &saved.attn, lse: &saved.lse, dout: &dattn };
        let mut dqkv = cpu.buffer(rows * shape.qkv_width());
        attention_backward(cpu, shape, l, w.config.sliding_window[l], &spans, &gradient, &mut dqkv);
        self.unrotate(layer, params, saved, &mut dqkv);
        let mut normed = cpu.buffer(dx.len());
        rms_norm(cpu, &saved.x, &layer.input_norm, eps, &mut normed);
        let mut dnormed = cpu.buffer(dx.len());
        let full = FullPlaces { weights: &params.qkv, biases: params.qkv_bias.as_ref().map(|b| &b[..]) };
        let downs = self.input(l, &layer.qkv, &qkv_places(w), &saved.z[0], &dqkv, &mut dnormed);
        self.weights(&layer.qkv, &full, &downs, &normed, &dqkv);
        let dw = self.full_param(params.input_norm);
        rms_norm_backward(cpu, &saved.x, &layer.input_norm, eps, &dnormed, dx, dw);
    }

    fn unrotate(&mut self, layer: &Layer, params: &LayerParams, saved: &LayerActivations, dqkv: &mut [f32]) {
        let (cpu, w, eps) = (self.cpu, self.w, self.w.config.rms_norm_eps);
        let (shape, stride) = (&w.shape, w.shape.qkv_width());
        w.rope.apply(cpu, dqkv, stride, 0, shape.heads + shape.kv_heads, self.batch.positions, true);
        let (Some([q, k]), Some(raw)) = (&layer.qk_norm, &saved.raw_qkv) else { return };
        let places = params.qk_norm;
        let dq = places.and_then(|p| self.full_param(p[0]));
        rms_norm_heads_backward(cpu, raw, stride, 0, shape.heads, q, eps, dqkv, dq);
        let dk = places.and_then(|p| self.full_param(p[1]));
        rms_norm_heads_backward(cpu, raw, stride, shape.q_width(), shape.kv_heads, k, eps, dqkv, dk);
    }

    fn full_param(&mut self, place: usize) -> Option<&mut [f32]> {
        match &mut self.sink {
            Sink::Full(grads) => Some(&mut grads.values[place]),
            Sink::Adapters(_) => None,
        }
    }
}

/// `dW += dyᵀ x` and `db += Σ dy` for every part of a fused projection.
fn full_gradient(
    cpu: &Cpu,
    specs: &[super::params::ParamSpec],
    full: &FullPlaces<'_>,
    x: &[f32],
    k: usize,
    dy: &[f32],
    n: usize,
    grads: &mut Gradients,
) {
    let rows = dy.len() / n;
    let mut at = 0;
    for (i, place) in full.weights.iter().enumerate() {
        let width = specs[*place].shape[0];
        let left = Rows { data: &dy[at..], stride: n, width };
        let out = &mut grads[*place];
        add_gradients(cpu, &mut [Gradient { rows, left, right: Rows::dense(x, k), transposed: false, out }]);
        if let Some(bias) = full.biases.and_then(|b| b.get(i)) {
            add_column_sums(cpu, dy, n, at, &mut grads[*bias]);
        }
        at += width;
    }
}
