//! The weights of a block's MLP, or of its experts.

use super::linear::Linear;
use super::param_value::{ParamValue, ReadParam};
use super::params::{LinearParams, MlpParams};
use super::projection::Projection;
use crate::backend::{Backend, Source};
use crate::config::{LoadError, ModelConfig};

/// Weights of a gated MLP.
pub(super) struct GatedMlp<B: Backend> {
    /// gate and up, fused.
    pub(super) gate_up: Linear<B>,
    pub(super) down: Linear<B>,
}

/// The MLP of a block.
pub(super) enum MlpWeights<B: Backend> {
    Dense(GatedMlp<B>),
    Experts(ExpertWeights<B>),
}

/// The router and the experts of a block.
pub(super) struct ExpertWeights<B: Backend> {
    pub(super) router: Linear<B>,
    /// Experts that this rank holds.
    pub(super) experts: Vec<GatedMlp<B>>,
    /// Index of the first expert that this rank holds.
    pub(super) first: usize,
    /// The MLP beside the experts.
    pub(super) shared: Option<GatedMlp<B>>,
}

/// Projections of an MLP, as its parameters are in order.
type Parts = [Projection; 3];

const MLP: Parts = [Projection::Gate, Projection::Up, Projection::Down];
const SHARED: Parts = [Projection::SharedGate, Projection::SharedUp, Projection::SharedDown];

impl<B: Backend> GatedMlp<B> {
    fn linears(&self) -> [&Linear<B>; 2] {
        [&self.gate_up, &self.down]
    }

    fn linears_mut(&mut self) -> [&mut Linear<B>; 2] {
        [&mut self.gate_up, &mut self.down]
    }
}

impl<B: Backend> ExpertWeights<B> {
    /// An expert of this rank.
    pub(super) fn of(&self, expert: usize) -> &GatedMlp<B> {
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
        let gated = |parts: Parts, params: &[LinearParams; 3], read: &mut ReadParam<'_, '_, B>| {
            let [gate, up, down] = std::array::from_fn(|i| (parts[i], params[i]));
            let mut of = |parts: &[(Projection, LinearParams)]| build_linear(backend, c, layer, parts, read);
            let gate_up = of(&[gate, up])?;
            Ok::<_, LoadError>(GatedMlp { gate_up, down: of(&[down])? })
        };
        match p {
            MlpParams::Dense(params) => Ok(Self::Dense(gated(MLP, params, read)?)),
            MlpParams::Experts { router, experts, shared } => {
                let weight = read(router.weight)?;
                let bias = router.bias.map(&mut *read).transpose()?;
                let part = (None, experts.len(), *router);
                let biases = bias.as_ref().map(ParamValue::source);
                let router = Linear::new(backend, c.hidden_size, &[part], &[weight.source()], biases.as_slice());
                let held = c.blocks[layer].experts.as_ref().map_or(0..experts.len(), |experts| experts.held.clone());
                let first = held.start;
                let held = experts.iter().take(held.end).skip(first);
                let experts = held.map(|params| gated(MLP, params, read)).collect::<Result<_, _>>()?;
                let shared = shared.as_ref().map(|params| gated(SHARED, params, read)).transpose()?;
                Ok(Self::Experts(ExpertWeights { router, experts, first, shared }))
            }
        }
    }

    pub(super) fn linears(&self) -> Vec<&Linear<B>> {
        match self {
            Self::Dense(mlp) => mlp.linears().into(),
            Self::Experts(ExpertWeights { router, experts, shared, .. }) => {
                let mlps = experts.iter().chain(shared).flat_map(GatedMlp::linears);
                std::iter::once(router).chain(mlps).collect()
            }
        }
    }

    pub(super) fn linears_mut(&mut self) -> Vec<&mut Linear<B>> {
        match self {
            Self::Dense(mlp) => mlp.linears_mut().into(),
            Self::Experts(ExpertWeights { router, experts, shared, .. }) => {
                let mlps = experts.iter_mut().chain(shared).flat_map(GatedMlp::linears_mut);
                std::iter::once(router).chain(mlps).collect()
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
