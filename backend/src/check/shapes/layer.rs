//! A decoder layer of a model's shape and the loss head behind it: forward and backward, with adapters on every linear layer.

use std::ops::Range;

use super::compare::Named;
use super::numbers::Tile;
use super::projection::Projection;
use super::scale::{HEAD_DIM, Scale};
use crate::check::HostAccess;
use crate::check::access::rotary_table;
use crate::{
    Activation, AttentionCall, AttentionShape, BlockId, GradientSinks, HeadGradient, Held, KV_BLOCK, Norm, Rotation,
    Source, Span, Targets,
};

const EPS: f32 = 1e-6;

/// Gradients of adapters: A, then B.
const GRADIENTS: [[&str; 2]; 8] = [
    ["gradient of q's A", "gradient of q's B"],
    ["gradient of k's A", "gradient of k's B"],
    ["gradient of v's A", "gradient of v's B"],
    ["gradient of o's A", "gradient of o's B"],
    ["gradient of gate's A", "gradient of gate's B"],
    ["gradient of up's A", "gradient of up's B"],
    ["gradient of down's A", "gradient of down's B"],
    ["gradient of the unembedding's A", "gradient of the unembedding's B"],
];

/// A decoder layer and the unembedding.
pub(super) struct Layer<B: HostAccess> {
    shape: AttentionShape,
    pub(super) qkv: Projection<B>,
    pub(super) o: Projection<B>,
    pub(super) gate_up: Projection<B>,
    pub(super) down: Projection<B>,
    pub(super) head: Projection<B>,
    /// Gate of an expert, in which the layer has no part.
    pub(super) expert: Projection<B>,
    /// Weights of the norms before attention, before the MLP, and at the end.
    norms: [B::Vector; 3],
    /// Weights of the norms of query heads and key heads.
    head_norms: [B::Vector; 2],
}

/// What the forward pass leaves for the backward pass.
struct Forward<B: HostAccess> {
    x: B::Rows,
    /// Projected q, k and v before rotation, where it keeps them, and after it.
    before: Option<B::Rows>,
    qkv: B::Rows,
    pool: B::KvPool,
    attended: [B::Rows; 2],
    /// Rows after attention and after the MLP.
    middle: B::Rows,
    end: B::Rows,
    gate_up: B::Rows,
    /// Products with A of each linear layer.
    z: [B::LowRank; 4],
}

/// The batch: rows of two sequences.
struct Batch {
    sequences: [Range<usize>; 2],
    positions: Vec<u32>,
    rows: usize,
}

impl Batch {
    fn new(lens: [usize; 2]) -> Self {
        let positions = lens.iter().flat_map(|len| 0..*len as u32).collect();
        Self { sequences: [0..lens[0], lens[0]..lens[0] + lens[1]], positions, rows: lens[0] + lens[1] }
    }
}

impl<B: HostAccess> Layer<B> {
    pub(super) fn new(b: &B, tile: &Tile, scale: &Scale) -> Self {
        let (shape, hidden, rank) = (scale.attention(), scale.hidden, scale.rank);
        let (q, kv, mlp) = (shape.q_width(), shape.kv_width(), scale.intermediate);
        let projection =
            |parts: &[usize], inputs: usize, param: usize| Projection::new(b, tile, parts, inputs, rank, param);
        let vector = |stream, width| b.vector(&[Source::Host(&tile.take(stream, width, 8.0))], 1.0);
        Self {
            shape,
            qkv: projection(&[q, kv, kv], hidden, 0),
            o: projection(&[hidden], q, 6),
            gate_up: projection(&[mlp, mlp], hidden, 8),
            down: projection(&[hidden], mlp, 12),
            head: projection(&[scale.vocab], hidden, 14),
            expert: projection(&[scale.expert], scale.experts[2], 16),
            norms: [0, 1, 2].map(|norm| vector(300 + norm, hidden)),
            head_norms: [0, 1].map(|norm| vector(310 + norm, HEAD_DIM)),
        }
    }

    fn norm(&self, index: usize) -> Norm<'_, B> {
        Norm { weight: &self.norms[index], eps: EPS }
    }

    fn rotation<'a>(&'a self, rope: &'a B::Rope, batch: &'a Batch) -> Rotation<'a, B> {
        let norms = Some(self.head_norms.each_ref().map(|weight| Norm { weight, eps: EPS }));
        let (shape, positions) = (&self.shape, &batch.positions[..]);
        Rotation { shape, norms, whole_norms: false, rope, query_rope: None, positions }
    }

    /// Rows after attention, after the MLP, of log-probabilities; gradients of rows and of adapters.
    pub(super) fn pass(&self, b: &B, tile: &Tile, lens: [usize; 2]) -> Vec<Named> {
        let batch = Batch::new(lens);
        let longest = lens.into_iter().max().unwrap_or(0);
        let rope = b.rope(HEAD_DIM / 2, rotary_table(longest, 5e5, HEAD_DIM / 2));
        let mut pool = b.kv_pool(&self.shape);
        let spans = batch.sequences.each_ref().map(|rows| Span {
            rows: rows.clone(),
            start: 0,
            blocks: (0..rows.len().div_ceil(KV_BLOCK)).map(|_| b.kv_take(&mut pool)).collect::<Vec<BlockId>>(),
            held: 0,
            state: None,
        });
        let call = AttentionCall { shape: &self.shape, layer: 0, window: None, spans: &spans, chosen: None };
        let (forward, mut results) = self.forward(b, tile, &batch, self.rotation(&rope, &batch), call, pool);
        let lens = [&self.qkv, &self.o, &self.gate_up, &self.down, &self.head].map(Projection::lens).concat();
        let mut grads = b.begin_gradient(&lens, None);
        let d_end = self.loss(b, tile, &batch, &forward, &mut grads, &mut results);
        results.push(Named::of(b, "gradient at the end", &d_end));
        let (d_middle, d_attended) = self.mlp_backward(b, &batch, &forward, d_end, &mut grads);
        results.push(Named::of(b, "gradient after attention", &d_middle));
        results.push(Named::of(b, "gradient of attention's output", &d_attended));
        let rotation = self.rotation(&rope, &batch);
        let d_x = self.attention_backward(b, &batch, forward, rotation, call, [d_middle, d_attended], &mut grads);
        results.push(Named::of(b, "gradient of the layer's input", &d_x));
        b.finish_gradient(&mut grads);
        let projections = [&self.qkv, &self.o, &self.gate_up, &self.down, &self.head];
        let inputs = projections.iter().flat_map(|of| of.lens().into_iter().step_by(2).map(move |_| of.inputs));
        let rank = self.o.rank;
        let named: Vec<_> = GRADIENTS.iter().zip(inputs).flat_map(|([a, b], k)| [(*a, k), (*b, rank)]).collect();
        results.extend(Named::params(&named, &grads));
        results
    }

    fn forward(
        &self,
        b: &B,
        tile: &Tile,
        batch: &Batch,
        rotation: Rotation<'_, B>,
        call: AttentionCall<'_>,
        mut pool: B::KvPool,
    ) -> (Forward<B>, Vec<Named>) {
        let (rows, mut results) = (batch.rows, Vec::new());
        let linear = |of: &Projection<B>, x: &B::Lhs, residual: Option<&B::Rows>| {
            let lora = of.segments(rows);
            let mut out = b.alloc(rows, of.outputs);
            let z = b.linear(&of.call(&lora), x, residual, &mut out);
            (out, z)
        };
        let x = b.rows(&tile.take(1, rows * self.qkv.inputs, 1.0), self.qkv.inputs);
        let (mut qkv, z_qkv) = linear(&self.qkv, &b.norm_lhs(self.norm(0), &x), None);
        results.push(Named::of(b, "q, k and v", &qkv));
        let before = b.rotate(&rotation, &mut qkv, true);
        results.push(Named::of(b, "rotated q, k and v", &qkv));
        b.kv_write(&mut pool, call.shape, call.layer, call.spans, &qkv);
        let attended = b.attention(call, &pool, &qkv);
        results.push(Named::of(b, "attention", &attended[0]));
        results.push(Named::of(b, "attention's log-sum-exp", &attended[1]));
        let (middle, z_o) = linear(&self.o, &b.lhs(&attended[0]), Some(&x));
        results.push(Named::of(b, "rows after attention", &middle));
        let (gate_up, z_gate_up) = linear(&self.gate_up, &b.norm_lhs(self.norm(1), &middle), None);
        results.push(Named::of(b, "gate and up", &gate_up));
        let (end, z_down) = linear(&self.down, &b.activate(Activation::Silu, &gate_up), Some(&middle));
        results.push(Named::of(b, "rows after the MLP", &end));
        let z = [z_qkv, z_o, z_gate_up, z_down];
        (Forward { x, before, qkv, pool, attended, middle, end, gate_up, z }, results)
    }

    /// Log-probabilities of a target for each row, and the gradient at the end of the layer.
    fn loss(
        &self,
        b: &B,
        tile: &Tile,
        batch: &Batch,
        forward: &Forward<B>,
        grads: &mut B::Params,
        results: &mut Vec<Named>,
    ) -> B::Rows {
        let (rows, vocab) = (batch.rows, self.head.outputs);
        let hidden = b.norm(self.norm(2), &forward.end);
        let mut targets = Targets::empty();
        (0..rows).for_each(|row| targets.push([(row * 8191 % vocab) as u32]));
        let lora = self.head.segments(rows);
        let call = self.head.call(&lora);
        let (logprobs, state) = b.target_logprobs(&call, &hidden, &targets, false);
        results.push(Named::all("log-probabilities", 1, logprobs));
        let (active, d_logprobs): (Vec<usize>, _) = ((0..rows).collect(), tile.take(2, rows, 1.0));
        let (sequences, targets) = (&batch.sequences, &targets);
        let gradient = HeadGradient {
            rows: &active,
            sequences,
            targets,
            d_logprobs: &d_logprobs,
            entropy: None,
            divergence: None,
        };
        let mut sinks = [Some(grads)];
        let mut sinks = GradientSinks::Adapters(&mut sinks);
        let d_hidden = b.head_backward(&call, &hidden, &gradient, &state, 0, &mut sinks);
        let mut d_end = b.zeros(rows, self.head.inputs);
        b.norm_backward(self.norm(2), &forward.end, &d_hidden, &mut d_end, None);
        d_end
    }

    /// Gradients with respect to the rows after attention, and to attention's output.
    fn mlp_backward(
        &self,
        b: &B,
        batch: &Batch,
        forward: &Forward<B>,
        mut d_end: B::Rows,
        grads: &mut B::Params,
    ) -> (B::Rows, B::Rows) {
        let (rows, sequences, [_, z_o, z_gate_up, z_down]) = (batch.rows, &batch.sequences, &forward.z);
        let mut add = |of: &Projection<B>, x: &B::WeightInput<'_>, dy: &B::OutputGradient<'_>, z: [&B::LowRank; 2]| {
            b.lora_gradients(&of.segments(rows), sequences, x, dy, z, &mut [Some(&mut *grads)]);
        };
        let back = |of: &Projection<B>, dy: &B::OutputGradient<'_>| {
            let lora = of.segments(rows);
            let mut dx = b.alloc(rows, of.inputs);
            let dz = b.linear_backward(&of.call(&lora), dy, &mut dx);
            (dx, dz)
        };
        let (gate_up, d_middle) = (b.copy(&forward.gate_up), b.copy(&d_end));
        let dy = b.output_gradient(Held::Borrowed(&d_end), sequences);
        let (d_activated, dz_down) = back(&self.down, &dy);
        let (d_gate_up, activated) = b.activate_backward(Activation::Silu, gate_up, d_activated, sequences, false);
        add(&self.down, &activated, &dy, [z_down, &dz_down]);
        let (d_normed, dz_gate_up) = back(&self.gate_up, &d_gate_up);
        let normed = b.norm_input(self.norm(1), &forward.middle, sequences);
        add(&self.gate_up, &normed, &d_gate_up, [z_gate_up, &dz_gate_up]);
        drop(dy);
        d_end = d_middle;
        b.norm_backward(self.norm(1), &forward.middle, &d_normed, &mut d_end, None);
        let dy = b.output_gradient(Held::Borrowed(&d_end), sequences);
        let (d_attended, dz_o) = back(&self.o, &dy);
        add(&self.o, &b.weight_input(Held::Borrowed(&forward.attended[0]), sequences), &dy, [z_o, &dz_o]);
        drop(dy);
        (d_end, d_attended)
    }

    /// Gradient with respect to the layer's input, given those with respect to the rows after attention and to its output.
    fn attention_backward(
        &self,
        b: &B,
        batch: &Batch,
        forward: Forward<B>,
        rotation: Rotation<'_, B>,
        call: AttentionCall<'_>,
        [mut d_x, d_attended]: [B::Rows; 2],
        grads: &mut B::Params,
    ) -> B::Rows {
        let Forward { x, before, qkv, pool, attended: [out, lse], z: [z, ..], .. } = forward;
        let (rows, sequences) = (batch.rows, &batch.sequences);
        let d_rotated = b.attention_backward(call, &pool, &qkv, [&out, &lse], &d_attended);
        let d_qkv = b.rotate_backward(&rotation, before.as_ref(), d_rotated, None, sequences);
        let lora = self.qkv.segments(rows);
        let mut d_normed = b.alloc(rows, self.qkv.inputs);
        let dz = b.linear_backward(&self.qkv.call(&lora), &d_qkv, &mut d_normed);
        let normed = b.norm_input(self.norm(0), &x, sequences);
        b.lora_gradients(&lora, sequences, &normed, &d_qkv, [&z, &dz], &mut [Some(grads)]);
        b.norm_backward(self.norm(0), &x, &d_normed, &mut d_x, None);
        d_x
    }
}
