//! The MLP beside routed experts that every row goes to (Dai et al. 2024, arXiv:2401.06066).

use super::backward_pass::{Backward, full};
use super::block_pass::BlockPass;
use super::mlp_weights::GatedMlp;
use crate::backend::{Backend, Held, Rows};

/// Activations that the backward pass of the shared expert needs.
pub(super) struct SharedActivations<B: Backend> {
    /// Gate and up columns.
    gate_up: B::Rows,
    /// `scale · (x Aᵀ)` of the adapters on gate_up and down.
    low_rank: [B::LowRank; 2],
}

/// `residual`, or zero, with the MLP's output for its input `normed` added.
pub(super) fn forward<B: Backend>(
    batch: &BlockPass<'_, B>,
    layer: usize,
    mlp: &GatedMlp<B>,
    normed: &B::Lhs,
    residual: Option<&B::Rows>,
) -> (B::Rows, SharedActivations<B>) {
    let (backend, c) = (batch.backend, &batch.model.config);
    let (gate_up, z_gate_up) = batch.linear(layer, &mlp.gate_up, normed, None);
    let act = backend.activate(c.blocks[layer].activation, &gate_up);
    let (out, z_down) = batch.sum_onto(layer, &mlp.down, &act, residual, c.hidden_size);
    (out, SharedActivations { gate_up, low_rank: [z_gate_up, z_down] })
}

/// The gradient with respect to its input `normed`, given that with respect to its output.
pub(super) fn backward<'a, B: Backend>(
    pass: &mut Backward<'a, '_, '_, B>,
    layer: usize,
    mlp: &'a GatedMlp<B>,
    saved: SharedActivations<B>,
    (normed, d_out): (&B::Rows, &B::Rows),
) -> B::Rows {
    let (backend, c) = (pass.batch.backend, &pass.batch.model.config);
    let SharedActivations { gate_up, low_rank: [z_gate_up, z_down] } = saved;
    let dy = backend.output_gradient(Held::Borrowed(d_out), pass.sequences);
    let mut d_act = backend.alloc(d_out.rows(), mlp.gate_up.outputs() / 2);
    let (lora, dz) = pass.input(layer, &mlp.down, &dy, &mut d_act);
    let biased = full(&mut pass.sinks).is_some() && mlp.gate_up.is_biased();
    let activation = c.blocks[layer].activation;
    let (d_gate_up, act) = backend.activate_backward(activation, gate_up, d_act, pass.sequences, biased);
    pass.weights(&mlp.down, &lora, [&z_down, &dz], &act, &dy);
    drop((act, dy));
    let mut d_input = backend.alloc(normed.rows(), normed.width());
    let (lora, dz) = pass.input(layer, &mlp.gate_up, &d_gate_up, &mut d_input);
    d_input.all_reduce(&pass.batch.model.tensor_ranks);
    let input = backend.weight_input(Held::Borrowed(normed), pass.sequences);
    pass.weights(&mlp.gate_up, &lora, [&z_gate_up, &dz], &input, &d_gate_up);
    d_input
}
