//! The weights of a block's MLP, or of its experts.

use super::linear::Linear;
use super::param_value::{ParamValue, ReadParam};
use super::params::{InnerParams, LinearParams, MlpParams};
use super::projection::Projection;
use crate::backend::{Backend, Source};
use crate::config::{LoadError, ModelConfig};

/// Weights of an MLP.
pub(super) struct Mlp<B: Backend> {
    /// gate and up, fused; of an MLP without a gate only up.
    pub(super) gate_up: Linear<B>,
    pub(super) down: Linear<B>,
}

/// The MLP of a block.
pub(super) enum MlpWeights<B: Backend> {
    Dense(Mlp<B>),
    Experts(ExpertWeights<B>),
}

/// The router and the experts of a block.
pub(super) struct ExpertWeights<B: Backend> {
    pub(super) router: Linear<B>,
    /// Experts that this rank holds.
    pub(super) experts: Vec<Mlp<B>>,
    /// Index of the first expert that this rank holds.
    pub(super) first: usize,
    /// The MLP beside the experts.
    pub(super) shared: Option<Mlp<B>>,
    /// Projection to the score that the output of that MLP is gated with.
    pub(super) shared_gate: Option<Linear<B>>,
    /// Projections to the latent that experts read, and back from the one that they write.
    pub(super) latent: Option<[Linear<B>; 2]>,
}

impl<B: Backend> Mlp<B> {
    fn linears(&self) -> [&Linear<B>; 2] {
        [&self.gate_up, &self.down]
    }

    fn linears_mut(&mut self) -> [&mut Linear<B>; 2] {
        [&mut self.gate_up, &mut self.down]
    }
}

impl<B: Backend> ExpertWeights<B> {
    /// An expert of this rank.
    pub(super) fn of(&self, expert: usize) -> &Mlp<B> {
        &self.experts[expert - self.first]
    }
}

impl<B: Backend> MlpWeights<B> {
    pub(super) fn build(
        backend: &B,
        c: &ModelConfig,
        layer: usize,
        p: &MlpParams,
        read: &mut ReadParam<'_, '_, B>,
    ) -> Result<Self, LoadError> {
        let block = &c.blocks[layer];
        let mlp = |inner: &[Projection], down: Projection, p: &InnerParams, read: &mut ReadParam<'_, '_, B>| {
            let parts: Vec<_> = inner.iter().copied().zip(p.inner.iter().copied()).collect();
            let gate_up = build_linear(backend, c, layer, &parts, read)?;
            Ok::<_, LoadError>(Mlp { gate_up, down: build_linear(backend, c, layer, &[(down, p.down)], read)? })
        };
        let own =
            |p: &InnerParams, read: &mut ReadParam<'_, '_, B>| mlp(Projection::inner(block), Projection::Down, p, read);
        // A layer that no adapter is on.
        let fixed = |outputs: usize, p: LinearParams, read: &mut ReadParam<'_, '_, B>| {
            let weight = read(p.weight)?;
            let bias = p.bias.map(&mut *read).transpose()?;
            let biases = bias.as_ref().map(ParamValue::source);
            let part = (None, outputs, p);
            Ok::<_, LoadError>(Linear::new(backend, c.hidden_size, &[part], &[weight.source()], biases.as_slice()))
        };
        match p {
            MlpParams::Dense(params) => Ok(Self::Dense(own(params, read)?)),
            MlpParams::Experts(params) => {
                let router = fixed(params.experts.len(), params.router, read)?;
                let held = block.experts.as_ref().map_or(0..params.experts.len(), |experts| experts.held.clone());
                let first = held.start;
                let held = params.experts.iter().take(held.end).skip(first);
                let experts = held.map(|params| own(params, read)).collect::<Result<_, _>>()?;
                let beside = |p: &InnerParams| mlp(Projection::shared_inner(block), Projection::SharedDown, p, read);
                let shared = params.shared.as_ref().map(beside).transpose()?;
                let shared_gate = params.shared_gate.map(|p| fixed(1, p, read)).transpose()?;
                let latent = match params.latent {
                    None => None,
                    Some([into, out]) => Some([
                        build_linear(backend, c, layer, &[(Projection::LatentIn, into)], read)?,
                        build_linear(backend, c, layer, &[(Projection::LatentOut, out)], read)?,
                    ]),
                };
                Ok(Self::Experts(ExpertWeights { router, experts, first, shared, shared_gate, latent }))
            }
        }
    }

    pub(super) fn linears(&self) -> Vec<&Linear<B>> {
        match self {
            Self::Dense(mlp) => mlp.linears().into(),
            Self::Experts(ExpertWeights { router, experts, shared, shared_gate, latent, .. }) => {
                let mlps = experts.iter().chain(shared).flat_map(Mlp::linears);
                std::iter::once(router).chain(mlps).chain(shared_gate).chain(latent.iter().flatten()).collect()
            }
        }
    }

    pub(super) fn linears_mut(&mut self) -> Vec<&mut Linear<B>> {
        match self {
            Self::Dense(mlp) => mlp.linears_mut().into(),
            Self::Experts(ExpertWeights { router, experts, shared, shared_gate, latent, .. }) => {
                let mlps = experts.iter_mut().chain(shared).flat_map(Mlp::linears_mut);
                std::iter::once(router).chain(mlps).chain(shared_gate).chain(latent.iter_mut().flatten()).collect()
            }
        }
    }
}

/// A linear layer of projections of a block, fused along the outputs.
pub(super) fn build_linear<B: Backend>(
    backend: &B,
    c: &ModelConfig,
    layer: usize,
    of: &[(Projection, LinearParams)],
    read: &mut ReadParam<'_, '_, B>,
) -> Result<Linear<B>, LoadError> {
    let weights = of.iter().map(|(_, params)| read(params.weight)).collect::<Result<Vec<_>, _>>()?;
    let biases = of.iter().filter_map(|(_, params)| params.bias);
    let biases = biases.map(&mut *read).collect::<Result<Vec<_>, _>>()?;
    let part = |(p, params): &(Projection, LinearParams)| (Some(*p), p.extents(c, layer).0, *params);
    let parts: Vec<_> = of.iter().map(part).collect();
    let inputs = of.first().map_or(0, |(p, _)| p.extents(c, layer).1);
    Ok(Linear::new(backend, inputs, &parts, &sources(&weights), &sources(&biases)))
}

fn sources<'v, B: Backend>(values: &'v [ParamValue<'_, B>]) -> Vec<Source<'v, B>> {
    values.iter().map(ParamValue::source).collect()
}
