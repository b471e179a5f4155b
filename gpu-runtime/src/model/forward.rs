//! The forward pass over a packed batch: rows of many sequences, with an adapter per group of rows.

use std::ops::Range;
use std::sync::Arc;

use super::adapter::{Adapter, Module};
use super::lora::{Place, adapted, project_down, project_up};
use super::weights::{Layer, Linear, Weights};
use crate::kernels::Cpu;
use crate::kernels::attention::{KvSequence, Span, attention, write_kv};
use crate::kernels::buffer::Buffer;
use crate::kernels::elementwise::{add_bias, for_rows, swiglu};
use crate::kernels::gemm::Operand;
use crate::kernels::norm::{rms_norm_heads, rms_norm_operand};

/// Rows with one adapter.
#[derive(Clone)]
pub struct Group {
    /// Rows of the batch.
    pub rows: Range<usize>,
    /// Their adapter.
    pub adapter: Option<Arc<Adapter>>,
}

/// A batch: every sequence contributes consecutive rows, groups cover the rows in order.
pub struct PassInput<'a> {
    /// Token of every row, below the vocabulary's size.
    pub tokens: &'a [u32],
    /// Rows of each sequence and the position of its first row.
    pub spans: &'a [(Range<usize>, usize)],
    /// Keys and values of each sequence, up to its first row.
    pub kv: &'a mut [KvSequence],
    /// Rows by adapter.
    pub groups: &'a [Group],
}

/// What a block's backward pass needs.
pub struct LayerActivations {
    /// Residual stream before the block, `[rows, hidden]`.
    pub x: Buffer<f32>,
    /// q, k, v before head normalisation, where there is one.
    pub raw_qkv: Option<Buffer<f32>>,
    /// q, k, v, rotated.
    pub qkv: Buffer<f32>,
    /// Attention output.
    pub attn: Buffer<f32>,
    /// Log-sum-exp of the scores.
    pub lse: Buffer<f32>,
    /// Residual stream before the MLP.
    pub mid: Buffer<f32>,
    /// gate and up.
    pub gate_up: Buffer<f32>,
    /// Scaled `x Aᵀ` of the pairs of each projection: q, k, v; o; gate, up; down.
    pub z: Vec<Vec<Vec<f32>>>,
}

/// What was kept of a block.
pub enum Kept {
    /// All that its backward pass needs.
    All(Box<LayerActivations>),
    /// Its input: the rest is computed again.
    Input(Buffer<f32>),
}

/// What was kept of all blocks.
pub type Activations = Vec<Kept>;

/// What a forward pass returns.
pub struct Pass {
    /// Residual stream after the last block, `[rows, hidden]`.
    pub x: Buffer<f32>,
    /// For the backward pass, if asked for.
    pub activations: Option<Activations>,
}

/// Position of every row.
pub(super) fn positions(rows: usize, spans: &[(Range<usize>, usize)]) -> Vec<u32> {
    let mut positions = vec![0; rows];
    for (rows, start) in spans {
        for (i, row) in rows.clone().enumerate() {
            positions[row] = (start + i) as u32;
        }
    }
    positions
}

/// Places in the fused q, k, v projection.
pub(super) fn qkv_places(w: &Weights) -> [Place; 3] {
    let (q, kv) = (w.shape.q_width(), w.shape.kv_width());
    [Place { module: Module::Q, at: 0 }, Place { module: Module::K, at: q }, Place { module: Module::V, at: q + kv }]
}

/// Places in the fused gate and up projection.
pub(super) fn gate_up_places(w: &Weights) -> [Place; 2] {
    [Place { module: Module::Gate, at: 0 }, Place { module: Module::Up, at: w.config.intermediate_size }]
}

/// Runs linear layers of one block and keeps what adapters compute on the way.
struct Projector<'a> {
    cpu: &'a Cpu,
    w: &'a Weights,
    groups: &'a [Group],
    layer: usize,
    /// By projection, in the order of [`adapted`].
    z: Vec<Vec<Vec<f32>>>,
}

impl Projector<'_> {
    /// `out (+)= x Wᵀ + b`, and the adapters' parts.
    fn project(&mut self, linear: &Linear, places: &[Place], x: &Operand, out: &mut [f32], accumulate: bool) {
        let adapted = adapted(self.groups, self.layer, places);
        let zs = project_down(self.cpu, x, &adapted);
        project_up(self.cpu, x, &linear.weight, &adapted, &zs, out, accumulate);
        if let Some(bias) = &linear.bias {
            add_bias(self.cpu, out, bias);
        }
        self.z.push(zs);
    }
}

/// Runs the batch through all blocks. The sequences' keys and values grow by their rows. With `keep`, so many of the
/// last blocks keep what the backward pass needs, and the others their input.
pub fn forward(cpu: &Cpu, w: &Weights, input: PassInput<'_>, keep: Option<usize>) -> Pass {
    let hidden = w.config.hidden_size;
    let rows = input.tokens.len();
    let positions = positions(rows, input.spans);
    let mut x = cpu.buffer(rows * hidden);
    for_rows(cpu, &mut x, hidden, |row, out| w.embed(input.tokens[row], out));
    for ((rows, start), kv) in input.spans.iter().zip(input.kv.iter_mut()) {
        kv.reserve(&w.shape, start + rows.len());
    }
    let mut activations = Vec::new();
    for (l, layer) in w.layers.iter().enumerate() {
        let p = Projector { cpu, w, groups: input.groups, layer: l, z: Vec::new() };
        let all = keep.is_some_and(|keep| l + keep >= w.layers.len());
        if keep.is_some() && !all {
            activations.push(Kept::Input(cpu.copy(&x)));
        }
        let kept = block(p, layer, &positions, input.spans, Kv::Write(input.kv), &mut x, all);
        activations.extend(kept.map(|kept| Kept::All(Box::new(kept))));
    }
    for ((rows, start), kv) in input.spans.iter().zip(input.kv.iter_mut()) {
        kv.set_len(start + rows.len());
    }
    Pass { x, activations: keep.is_some().then_some(activations) }
}

/// Computes again what a block kept in the forward pass over the same batch, from its input.
pub(super) fn again(
    cpu: &Cpu,
    w: &Weights,
    l: usize,
    groups: &[Group],
    positions: &[u32],
    spans: &[(Range<usize>, usize)],
    kv: &[KvSequence],
    mut x: Buffer<f32>,
) -> Option<LayerActivations> {
    let p = Projector { cpu, w, groups, layer: l, z: Vec::new() };
    block(p, &w.layers[l], positions, spans, Kv::Written(kv), &mut x, true)
}

/// Keys and values of the batch's sequences.
enum Kv<'a> {
    /// Those of the rows are still to be written.
    Write(&'a mut [KvSequence]),
    /// An earlier pass has written them.
    Written(&'a [KvSequence]),
}

fn block(
    mut p: Projector<'_>,
    layer: &Layer,
    positions: &[u32],
    spans: &[(Range<usize>, usize)],
    kv: Kv<'_>,
    x: &mut [f32],
    keep: bool,
) -> Option<LayerActivations> {
    let (cpu, w, l) = (p.cpu, p.w, p.layer);
    let (rows, shape, eps) = (positions.len(), &w.shape, w.config.rms_norm_eps);
    let before = keep.then(|| cpu.copy(x));
    let normed = rms_norm_operand(cpu, w.dtype, x, &layer.input_norm, eps);
    let mut qkv = cpu.buffer(rows * shape.qkv_width());
    p.project(&layer.qkv, &qkv_places(w), &normed, &mut qkv, false);
    drop(normed);
    let raw_qkv = (keep && layer.qk_norm.is_some()).then(|| cpu.copy(&qkv));
    rotate(cpu, w, layer, positions, &mut qkv);
    let kv = match kv {
        Kv::Write(kv) => {
            let mut writers: Vec<_> =
                spans.iter().zip(kv.iter_mut()).map(|((rows, start), kv)| (rows.clone(), *start, kv)).collect();
            write_kv(cpu, shape, l, &qkv, &mut writers);
            &*kv
        }
        Kv::Written(kv) => kv,
    };
    let views: Vec<_> =
        spans.iter().zip(kv.iter()).map(|((rows, start), kv)| Span { rows: rows.clone(), start: *start, kv }).collect();
    let mut attn = cpu.buffer(rows * shape.q_width());
    let mut lse = cpu.buffer(rows * shape.heads);
    attention(cpu, shape, l, w.config.sliding_window[l], &views, &qkv, &mut attn, &mut lse);
    let heads = Operand::new(cpu, w.dtype, &attn, shape.q_width());
    p.project(&layer.o, &[Place { module: Module::O, at: 0 }], &heads, x, true);
    drop(heads);
    let mid = keep.then(|| cpu.copy(x));
    let normed = rms_norm_operand(cpu, w.dtype, x, &layer.post_norm, eps);
    let width = w.config.intermediate_size;
    let mut gate_up = cpu.buffer(rows * 2 * width);
    p.project(&layer.gate_up, &gate_up_places(w), &normed, &mut gate_up, false);
    drop(normed);
    let act = swiglu(cpu, w.dtype, &gate_up, width);
    p.project(&layer.down, &[Place { module: Module::Down, at: 0 }], &act, x, true);
    let (x, mid) = (before?, mid?);
    Some(LayerActivations { x, raw_qkv, qkv, attn, lse, mid, gate_up, z: p.z })
}

/// Normalises heads where the family does, and rotates q and k.
fn rotate(cpu: &Cpu, w: &Weights, layer: &Layer, positions: &[u32], qkv: &mut [f32]) {
    let (shape, stride) = (&w.shape, w.shape.qkv_width());
    if let Some([q, k]) = &layer.qk_norm {
        rms_norm_heads(cpu, qkv, stride, 0, shape.heads, q, w.config.rms_norm_eps);
        rms_norm_heads(cpu, qkv, stride, shape.q_width(), shape.kv_heads, k, w.config.rms_norm_eps);
    }
    w.rope.apply(cpu, qkv, stride, 0, shape.heads + shape.kv_heads, positions, false);
}
