//! The shared MLP of a block with routed experts, through which every row passes (Dai et al. 2024, arXiv:2401.06066).
//! Some families multiply its output by the sigmoid of a score, as in a mixture of one expert whose router weight is
//! not normalised.

use super::backward_pass::{Backward, full};
use super::block_pass::BlockPass;
use super::linear::Linear;
use super::mlp_weights::{ExpertWeights, Mlp};
use crate::backend::{Backend, Dispatch, FamilyOps, Held, LatentOps, RouterRule, RouterScores, Rows};

/// How the score turns into the factor of the output.
const GATE: RouterRule = RouterRule {
    per_token: 1,
    normalised: false,
    scores: RouterScores::Sigmoid { groups: 1, chosen_groups: 1, scaling: 1.0 },
};

/// The weights of the shared expert of a block.
pub(super) struct SharedExpert<'a, B: Backend> {
    mlp: &'a Mlp<B>,
    /// Projection to the score.
    gate: Option<&'a Linear<B>>,
}

/// Activations that the backward pass of the shared expert needs.
pub(super) struct SharedActivations<B: Backend> {
    /// Gate and up columns.
    gate_up: B::Rows,
    /// `scale · (x Aᵀ)` of the adapters on gate_up and down.
    low_rank: [B::LowRank; 2],
    gate: Option<GateActivations<B>>,
}

/// Activations of the gate of the output.
struct GateActivations<B: Backend> {
    /// A score for each row, `[rows, 1]`.
    scores: B::Rows,
    /// All rows go to the one expert.
    dispatch: Dispatch,
    /// Factors of the output, `[rows, 1]`.
    factors: B::Rows,
    /// The output before it is multiplied.
    out: B::Rows,
}

impl<'a, B: Backend> SharedExpert<'a, B> {
    /// The shared expert of a block that has one.
    pub(super) fn of(mixture: &'a ExpertWeights<B>) -> Option<Self> {
        let gate = mixture.shared_gate.as_ref();
        mixture.shared.as_ref().map(|mlp| Self { mlp, gate })
    }

    /// `residual`, or zero, with the MLP's output for its input `normed` added.
    pub(super) fn forward(
        &self,
        batch: &BlockPass<'_, B>,
        layer: usize,
        normed: &B::Lhs,
        residual: Option<&B::Rows>,
    ) -> (B::Rows, SharedActivations<B>) {
        let (backend, c) = (batch.backend, &batch.model.config);
        let (gate_up, z_gate_up) = batch.linear(layer, &self.mlp.gate_up, normed, None);
        let act = backend.activate(c.blocks[layer].activation, &gate_up);
        let onto = if self.gate.is_none() { residual } else { None };
        let (out, z_down) = batch.sum_onto(layer, &self.mlp.down, &act, onto, c.hidden_size);
        let low_rank = [z_gate_up, z_down];
        let Some(gate) = self.gate else { return (out, SharedActivations { gate_up, low_rank, gate: None }) };
        let mut scores = backend.alloc(out.rows(), 1);
        backend.linear(&gate.with(&[]), normed, None, &mut scores);
        let (dispatch, factors) = B::Family::route(backend, GATE, &[0.0], &scores);
        let mut sum = residual.map_or_else(|| backend.zeros(out.rows(), out.width()), |x| backend.copy(x));
        B::Family::combine(backend, std::slice::from_ref(&out), &dispatch, Some(&factors), &mut sum);
        let gate = Some(GateActivations { scores, dispatch, factors, out });
        (sum, SharedActivations { gate_up, low_rank, gate })
    }

    /// The gradient with respect to its input `normed`, given that with respect to its output.
    pub(super) fn backward(
        &self,
        pass: &mut Backward<'a, '_, '_, B>,
        layer: usize,
        saved: SharedActivations<B>,
        normed: &B::Rows,
        d_out: &B::Rows,
    ) -> B::Rows {
        let (backend, c) = (pass.batch.backend, &pass.batch.model.config);
        let SharedActivations { gate_up, low_rank: [z_gate_up, z_down], gate } = saved;
        let gate = self.gate.zip(gate).map(|(gate, saved)| gate_backward(pass, gate, saved, normed, d_out));
        let (d_out, d_gate) = match gate {
            None => (Held::Borrowed(d_out), None),
            Some([d_out, d_gate]) => (Held::Owned(d_out), Some(d_gate)),
        };
        let activation = c.blocks[layer].activation;
        let mut d_act = backend.alloc(d_out.rows(), activation.outputs(self.mlp.gate_up.outputs()));
        let dy = backend.output_gradient(d_out, pass.sequences);
        let (lora, dz) = pass.input(layer, &self.mlp.down, &dy, &mut d_act);
        let biased = full(&mut pass.sinks).is_some() && self.mlp.gate_up.is_biased();
        let (d_gate_up, act) = backend.activate_backward(activation, gate_up, d_act, pass.sequences, biased);
        pass.weights(&self.mlp.down, &lora, [&z_down, &dz], &act, &dy);
        drop((act, dy));
        let mut d_input = backend.alloc(normed.rows(), normed.width());
        let (lora, dz) = pass.input(layer, &self.mlp.gate_up, &d_gate_up, &mut d_input);
        d_input.all_reduce(&pass.batch.model.tensor_ranks);
        let input = backend.weight_input(Held::Borrowed(normed), pass.sequences);
        pass.weights(&self.mlp.gate_up, &lora, [&z_gate_up, &dz], &input, &d_gate_up);
        // Every rank computes all of it.
        if let Some(d_gate) = d_gate {
            B::Family::add_rows(backend, &d_gate, &mut d_input);
        }
        d_input
    }
}

/// Gradients with respect to the MLP's output and, by way of the score, to its input; that of the score's weight goes to the sink.
fn gate_backward<B: Backend>(
    pass: &mut Backward<'_, '_, '_, B>,
    gate: &Linear<B>,
    saved: GateActivations<B>,
    normed: &B::Rows,
    d_sum: &B::Rows,
) -> [B::Rows; 2] {
    let backend = pass.batch.backend;
    let GateActivations { scores, dispatch, factors, out } = saved;
    let (d_parts, d_factors) =
        B::Family::combine_backward(backend, std::slice::from_ref(&out), &dispatch, &factors, d_sum);
    let d_scores = B::Family::route_backward(backend, GATE, &scores, &dispatch, &factors, &d_factors);
    let dy = backend.output_gradient(Held::Owned(d_scores), pass.sequences);
    let mut d_input = backend.alloc(normed.rows(), normed.width());
    backend.linear_backward(&gate.with(&[]), &dy, &mut d_input);
    if let Some(grads) = full(&mut pass.sinks) {
        let input = backend.weight_input(Held::Borrowed(normed), pass.sequences);
        backend.weight_gradients(&gate.parts(), pass.sequences, &input, &dy, grads);
    }
    let d_out = d_parts.into_iter().next();
    [d_out.unwrap_or_else(|| backend.zeros(out.rows(), out.width())), d_input]
}
