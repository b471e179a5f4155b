//! Mixture of experts (Shazeer et al. 2017, arXiv:1701.06538) in a block: a router chooses experts for every row, each expert
//! computes its rows as an MLP, and a row's experts are added up in ascending order. Where experts work on a latent, they read a
//! projection of the block's input, and their sum is projected back.
//!
//! An expert's linear layers see its rows in their order in the batch, and each row is reduced by itself, so the bits of a
//! row do not depend on the other rows of its experts. Gradients of an expert's weights add up its rows in order. Those
//! of the adapter matrix that all experts have in common add up rows in the order of the batch: first a row's experts are
//! added, which is possible as the other factor is the same for all of them.
//!
//! Ranks that share experts: [`super::expert_ranks`].

use std::collections::BTreeMap;
use std::ops::Range;

use super::adapter::{LoraPair, RowGroup};
use super::backward_pass::{Backward, full};
use super::block_pass::BlockPass;
use super::expert_ranks::ExpertRanks;
use super::linear::Linear;
use super::mlp_weights::{ExpertWeights, Mlp};
use super::norm_weight::NormWeight;
use super::params::MlpParams;
use super::projection::Projection;
use super::shared_expert::{SharedActivations, SharedExpert};
use crate::backend::{
    Backend, Dispatch, ExpertRows, FamilyOps, GradientSinks, Held, LatentOps, LoraSegment, RouterRule, Rows, ScaleOps,
    Tensors, WeightPart,
};

/// Activations that the backward pass of a block's experts needs.
pub(super) struct ExpertActivations<B: Backend> {
    /// Residual stream before the experts.
    x: B::Rows,
    /// The router's logits, `[rows, experts]`.
    logits: B::Rows,
    pub(super) dispatch: Dispatch,
    /// Weights of each row's experts.
    weights: B::Rows,
    /// Activations of the dispatch's parts that this rank computes.
    parts: Vec<PartActivations<B>>,
    /// The outputs of this rank's experts, `[rows of the part, inputs of an expert]`, before weighting.
    outputs: Vec<B::Rows>,
    /// The sum of `outputs`, if a norm follows.
    out: Option<B::Rows>,
    /// Activations of the MLP beside the experts.
    shared: Option<SharedActivations<B>>,
    latent: Option<LatentActivations<B>>,
}

/// Activations of the latents that experts read and write.
struct LatentActivations<B: Backend> {
    /// What experts read, `[rows, latent]`.
    input: B::Rows,
    /// The weighted sum of what they write.
    sum: B::Rows,
    /// `scale · (x Aᵀ)` of the adapters on the projections to the latent and back.
    low_rank: [B::LowRank; 2],
}

/// Activations of one expert.
struct PartActivations<B: Backend> {
    /// Gate and up columns.
    gate_up: B::Rows,
    /// `scale · (x Aᵀ)` of the adapters on gate_up and down.
    low_rank: [B::LowRank; 2],
}

/// The rows of each group that an expert has, counted within the expert's.
fn groups_of<B: Backend>(groups: &[RowGroup<B>], part: &ExpertRows) -> Vec<RowGroup<B>> {
    let own = |group: &RowGroup<B>| RowGroup { rows: part.within(&group.rows), adapter: group.adapter.clone() };
    groups.iter().map(own).collect()
}

/// How a block routes, and what it adds to scores for the choice.
fn rule<'a, B: Backend>(batch: &BlockPass<'a, B>, layer: usize) -> (RouterRule, &'a [f32]) {
    // A block has experts exactly where its description has.
    let experts = batch.model.config.blocks[layer].experts.as_ref();
    experts.map_or((RouterRule::softmax(1, true), &[][..]), |experts| (experts.rule, &experts.correction[..]))
}

/// The input of a block's experts.
fn normed<B: Backend>(batch: &BlockPass<'_, B>, pre: Option<&NormWeight<B>>, x: &B::Rows) -> B::Rows {
    match pre {
        Some(pre) => batch.backend.norm(pre.with(batch.model.config.rms_norm_eps), x),
        None => batch.backend.copy(x),
    }
}

/// The residual stream `x` with the experts' weighted outputs added, and what a backward pass needs.
pub(super) fn routed<B: Backend>(
    batch: &BlockPass<'_, B>,
    layer: usize,
    mixture: &ExpertWeights<B>,
    pre: Option<&NormWeight<B>>,
    post: Option<&NormWeight<B>>,
    x: B::Rows,
) -> (B::Rows, ExpertActivations<B>) {
    let (backend, c) = (batch.backend, &batch.model.config);
    let (ExpertWeights { router, latent, .. }, ranks) = (mixture, ExpertRanks::of(batch, layer));
    let normed = normed(batch, pre, &x);
    let packed = backend.lhs(&normed);
    let mut logits = backend.alloc(x.rows(), router.outputs());
    backend.linear(&router.with(&[]), &packed, None, &mut logits);
    // It is added to the residual stream first, or is the first of the experts' sum where a norm or a factor follows.
    let scale = c.residual_scale;
    let residual = (post.is_none() && scale == 1.0).then_some(&x);
    let beside = SharedExpert::of(mixture).map(|own| own.forward(batch, layer, &packed, residual));
    let latent_input = latent.as_ref().map(|[into, _]| batch.linear(layer, into, &packed, None));
    drop(packed);
    let (beside, shared) = beside.unzip();
    let (rule, correction) = rule(batch, layer);
    let (dispatch, weights) = B::Family::route(backend, rule, correction, &logits);
    let (mut parts, mut outputs) = (Vec::new(), Vec::new());
    let input = latent_input.as_ref().map_or(&normed, |(input, _)| input);
    for part in &dispatch.parts()[ranks.held(&dispatch)] {
        let (activations, output) = expert(batch, layer, part, mixture.of(part.expert), input);
        parts.push(activations);
        outputs.push(output);
    }
    let all = ranks.gather(&outputs, &dispatch, input.width());
    drop(normed);
    let combine = |onto: &mut B::Rows| B::Family::combine(backend, all.all(), &dispatch, Some(&weights), onto);
    let onto = match residual {
        Some(x) => beside.unwrap_or_else(|| backend.copy(x)),
        None => beside.unwrap_or_else(|| backend.zeros(x.rows(), x.width())),
    };
    let (sum, latent) = match (latent, latent_input) {
        (Some([_, back]), Some((input, z_in))) => {
            let mut sum = backend.zeros(x.rows(), input.width());
            combine(&mut sum);
            let (out, z_out) = batch.linear(layer, back, &backend.lhs(&sum), Some(&onto));
            (out, Some(LatentActivations { input, sum, low_rank: [z_in, z_out] }))
        }
        _ => {
            let mut sum = onto;
            combine(&mut sum);
            (sum, None)
        }
    };
    drop(all);
    let (sum, out) = match post {
        None if scale == 1.0 => (sum, None),
        None => {
            let mut stream = backend.copy(&x);
            B::Family::add_scaled_rows(backend, scale, &sum, &mut stream);
            (stream, None)
        }
        Some(norm) => {
            let mut stream = backend.copy(&x);
            backend.add_norm(norm.with(c.rms_norm_eps), &sum, &mut stream);
            (stream, Some(sum))
        }
    };
    (sum, ExpertActivations { x, logits, dispatch, weights, parts, outputs, out, shared, latent })
}

/// The output of an expert for its rows of `input`.
fn expert<B: Backend>(
    batch: &BlockPass<'_, B>,
    layer: usize,
    part: &ExpertRows,
    mlp: &Mlp<B>,
    input: &B::Rows,
) -> (PartActivations<B>, B::Rows) {
    let (backend, c) = (batch.backend, &batch.model.config);
    let groups = groups_of(batch.groups, part);
    let linear = |linear: &Linear<B>, x: &B::Lhs| {
        let lora = linear.segments(&groups, layer, Some(part.expert), &[]);
        let mut out = backend.alloc(part.rows.len(), linear.outputs());
        let low_rank = backend.linear(&linear.with(&lora), x, None, &mut out);
        (out, low_rank)
    };
    let packed = backend.lhs(&backend.gather(input, &part.rows));
    let (gate_up, z_gate_up) = linear(&mlp.gate_up, &packed);
    let act = backend.activate(c.blocks[layer].activation, &gate_up);
    let (output, z_down) = linear(&mlp.down, &act);
    (PartActivations { gate_up, low_rank: [z_gate_up, z_down] }, output)
}

/// Low-rank rows of the adapters on this rank's experts, which make the gradient of the matrix that experts have in common: by
/// group of rows and that matrix's parameter, then by expert in order: rows of the group that the expert has, `[_, rank]`.
type CommonSides<B> = BTreeMap<(usize, usize), Vec<<B as Tensors>::Rows>>;

/// The gradient of a block's experts and of their norm: adds that with respect to the residual stream to `dx`.
pub(super) fn backward<'a, B: Backend>(
    pass: &mut Backward<'a, '_, '_, B>,
    layer: usize,
    mixture: &'a ExpertWeights<B>,
    saved: ExpertActivations<B>,
    dx: &mut B::Rows,
) {
    let (backend, model, block) = (pass.batch.backend, pass.batch.model, pass.batch.block);
    let p = &model.table.blocks[layer];
    let (router, ranks) = (&mixture.router, ExpertRanks::of(&pass.batch, layer));
    let ExpertActivations { x, logits, dispatch, weights, parts, outputs, out, shared, latent } = saved;
    let norms = &block.norms;
    let d_out = pass.d_output(norms.post_mlp.as_ref().zip(p.post_mlp), out.as_ref(), dx);
    let d_sum = d_out.as_ref().unwrap_or(dx);
    let latent = mixture.latent.as_ref().zip(latent);
    let (latent, d_latent) = match latent {
        None => (None, None),
        Some(([into, back], LatentActivations { input, sum, low_rank: [z_in, z_out] })) => {
            let d_latent = layer_backward(pass, layer, back, Held::Owned(sum), &z_out, Held::Borrowed(d_sum));
            (Some((into, input, z_in)), Some(d_latent))
        }
    };
    let d_combined = d_latent.as_ref().unwrap_or(d_sum);
    let (d_outputs, d_weights) = ranks.combine_backward(&outputs, &dispatch, &weights, d_combined);
    drop(outputs);
    let (rule, _) = rule(&pass.batch, layer);
    let d_logits = B::Family::route_backward(backend, rule, &logits, &dispatch, &weights, &d_weights);
    let normed = normed(&pass.batch, norms.pre_mlp.as_ref(), &x);
    let input = latent.as_ref().map_or(&normed, |(_, input, _)| input);
    let (mut common, mut d_inputs) = (CommonSides::<B>::new(), Vec::new());
    for ((part, saved), d_output) in dispatch.parts()[ranks.held(&dispatch)].iter().zip(parts).zip(d_outputs) {
        let mlp = mixture.of(part.expert);
        d_inputs.push(expert_backward(pass, layer, part, mlp, saved, input, d_output, &mut common));
    }
    common_gradients(pass, layer, common, &dispatch, &weights, input, d_combined);
    let width = input.width();
    let mut d_normed = backend.alloc(x.rows(), x.width());
    let dy = backend.output_gradient(Held::Owned(d_logits), pass.sequences);
    backend.linear_backward(&router.with(&[]), &dy, &mut d_normed);
    if let (Some(grads), Some(MlpParams::Experts(_))) = (full(&mut pass.sinks), p.mlp.as_ref()) {
        let input = backend.weight_input(Held::Borrowed(&normed), pass.sequences);
        backend.weight_gradients(&router.parts(), pass.sequences, &input, &dy, grads);
    }
    drop((dy, d_latent));
    let all = ranks.gather(&d_inputs, &dispatch, width);
    match latent {
        None => B::Family::combine(backend, all.all(), &dispatch, None, &mut d_normed),
        Some((into, _, z_in)) => {
            let mut d_input = backend.zeros(x.rows(), width);
            B::Family::combine(backend, all.all(), &dispatch, None, &mut d_input);
            let d_read = layer_backward(pass, layer, into, Held::Borrowed(&normed), &z_in, Held::Owned(d_input));
            B::Family::add_rows(backend, &d_read, &mut d_normed);
        }
    }
    drop(all);
    drop(d_inputs);
    if let Some((own, saved)) = SharedExpert::of(mixture).zip(shared) {
        let d_sum = d_out.as_ref().unwrap_or(dx);
        let d_input = own.backward(pass, layer, saved, &normed, d_sum);
        B::Family::add_rows(backend, &d_input, &mut d_normed);
    }
    drop(d_out);
    pass.norm_or_add(norms.pre_mlp.as_ref().zip(p.pre_mlp), &x, &d_normed, dx);
}

/// The gradient with respect to the input `x` of a linear layer that every rank has all of, given that with respect to its output;
/// those of its weights or adapters go to the sinks.
fn layer_backward<'a, B: Backend>(
    pass: &mut Backward<'a, '_, '_, B>,
    layer: usize,
    linear: &'a Linear<B>,
    x: Held<'_, B::Rows>,
    low_rank: &B::LowRank,
    dy: Held<'_, B::Rows>,
) -> B::Rows {
    let backend = pass.batch.backend;
    let mut dx = backend.alloc(x.rows(), x.width());
    let dy = backend.output_gradient(dy, pass.sequences);
    let (lora, dz) = pass.input(layer, linear, &dy, &mut dx);
    let input = backend.weight_input(x, pass.sequences);
    pass.weights(linear, &lora, [low_rank, &dz], &input, &dy);
    dx
}

/// The gradient with respect to an expert's input, `[rows of the part, inputs]`; those of its weights and of its adapters go
/// to the sinks, and what the common matrices of adapters need to `common`.
fn expert_backward<B: Backend>(
    pass: &mut Backward<'_, '_, '_, B>,
    layer: usize,
    part: &ExpertRows,
    mlp: &Mlp<B>,
    saved: PartActivations<B>,
    normed: &B::Rows,
    d_output: B::Rows,
    common: &mut CommonSides<B>,
) -> B::Rows {
    let (backend, c) = (pass.batch.backend, &pass.batch.model.config);
    let groups = groups_of(pass.batch.groups, part);
    let sequences: Vec<Range<usize>> = pass.sequences.iter().map(|rows| part.within(rows)).collect();
    let trains_all = matches!(pass.sinks, GradientSinks::Full(_));
    let trains = pass.trains;
    let segments = |linear: &Linear<B>| match trains_all {
        true => Vec::new(),
        false => linear.segments(&groups, layer, Some(part.expert), trains),
    };
    let (down, gate_up) = (segments(&mlp.down), segments(&mlp.gate_up));
    let PartActivations { gate_up: activations, low_rank: [z_gate_up, z_down] } = saved;

    let dy = backend.output_gradient(Held::Owned(d_output), &sequences);
    let mut d_act = backend.alloc(part.rows.len(), c.mlp_width(layer));
    let dz = backend.linear_backward(&mlp.down.with(&down), &dy, &mut d_act);
    let biased = trains_all && mlp.gate_up.is_biased();
    let activation = c.blocks[layer].activation;
    let (d_gate_up, act) = backend.activate_backward(activation, activations, d_act, &sequences, biased);
    gradients(pass, &mlp.down, &down, &sequences, [&z_down, &dz], &act, &dy);
    collect(backend, &down, &z_down, common);
    drop((act, dy));

    let mut d_input = backend.alloc(part.rows.len(), normed.width());
    let dz = backend.linear_backward(&mlp.gate_up.with(&gate_up), &d_gate_up, &mut d_input);
    let input = backend.weight_input(Held::Owned(backend.gather(normed, &part.rows)), &sequences);
    gradients(pass, &mlp.gate_up, &gate_up, &sequences, [&z_gate_up, &dz], &input, &d_gate_up);
    collect(backend, &gate_up, &dz, common);
    d_input
}

/// Computes the gradients of an expert's linear layer, or of the matrices that adapters on it have only for this
/// expert.
fn gradients<B: Backend>(
    pass: &mut Backward<'_, '_, '_, B>,
    linear: &Linear<B>,
    lora: &[LoraSegment<'_, B>],
    sequences: &[Range<usize>],
    low_rank: [&B::LowRank; 2],
    x: &B::WeightInput<'_>,
    dy: &B::OutputGradient<'_>,
) {
    let backend = pass.batch.backend;
    match &mut pass.sinks {
        GradientSinks::Full(grads) => backend.weight_gradients(&linear.parts(), sequences, x, dy, grads),
        GradientSinks::Adapters(sinks) => backend.lora_gradients(lora, sequences, x, dy, low_rank, sinks),
    }
}

/// Adds low-rank rows of an expert to those of the experts before it.
fn collect<B: Backend>(backend: &B, lora: &[LoraSegment<'_, B>], low_rank: &B::LowRank, common: &mut CommonSides<B>) {
    for (index, segment) in lora.iter().enumerate().filter(|(_, segment)| segment.trains) {
        // The other parameter of the pair is the one that has a place of its own.
        let param = match segment.grads {
            [None, Some(b)] => b.param - 1,
            [Some(a), None] => a.param + 1,
            _ => continue,
        };
        let rows = B::Family::low_rank_rows(backend, low_rank, index, segment.rank);
        common.entry((segment.group, param)).or_default().push(rows);
    }
}

/// Adds the gradients of the adapter matrices that experts have in common: of A, `Σ dz` of a row's experts times their input,
/// and of B the gradient with respect to the experts' sum times `Σ weight · z`.
///
/// All ranks gather the same ones in the same order, whatever their experts got.
fn common_gradients<B: Backend>(
    pass: &mut Backward<'_, '_, '_, B>,
    layer: usize,
    mut common: CommonSides<B>,
    dispatch: &Dispatch,
    weights: &B::Rows,
    normed: &B::Rows,
    d_sum: &B::Rows,
) {
    let (backend, ranks) = (pass.batch.backend, ExpertRanks::of(&pass.batch, layer));
    let GradientSinks::Adapters(sinks) = &mut pass.sinks else { return };
    for (group, (sink, RowGroup { rows, adapter })) in sinks.iter_mut().zip(pass.batch.groups).enumerate() {
        let (Some(grads), Some(adapter), false) = (sink.as_deref_mut(), adapter, rows.is_empty()) else { continue };
        let own: Vec<usize> = rows.clone().collect();
        let within = |sequence: &Range<usize>| {
            let [start, end] = [sequence.start, sequence.end].map(|row| row.clamp(rows.start, rows.end) - rows.start);
            start..end
        };
        let sequences: Vec<Range<usize>> = pass.sequences.iter().map(within).filter(|rows| !rows.is_empty()).collect();
        let of_group = dispatch.of_rows(rows);
        for projection in [Projection::Gate, Projection::Up, Projection::Down] {
            let Some(param) = adapter.pair(layer, projection).and_then(LoraPair::common_param) else { continue };
            let by_expert = common.remove(&(group, param)).unwrap_or_default();
            let by_expert = ranks.gather(&by_expert, &of_group, adapter.rank);
            let mut sum = backend.zeros(own.len(), adapter.rank);
            let is_down = projection == Projection::Down;
            let own_weights = is_down.then(|| backend.gather(weights, &own));
            B::Family::combine(backend, by_expert.all(), &of_group, own_weights.as_ref(), &mut sum);
            drop(by_expert);
            let side = backend.gather(if is_down { d_sum } else { normed }, &own);
            let (dy, input, outputs) = if is_down { (side, sum, d_sum.width()) } else { (sum, side, adapter.rank) };
            let dy = backend.output_gradient(Held::Owned(dy), &sequences);
            let input = backend.weight_input(Held::Owned(input), &sequences);
            let part = WeightPart { weight: param, bias: None, column: 0, outputs };
            backend.weight_gradients(&[part], &sequences, &input, &dy, grads);
        }
    }
}
