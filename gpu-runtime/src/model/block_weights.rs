//! The weights of a decoder block.

use super::linear::Linear;
use super::mixer_weights::MixerWeights;
use super::mlp_weights::MlpWeights;
use super::norm_weight::NormWeight;
use super::param_value::ReadParam;
use super::params::BlockParams;
use crate::backend::{Backend, Source};
use crate::config::{LoadError, ModelConfig};

pub(crate) struct BlockWeights<B: Backend> {
    /// Norms of the block, where it has them.
    pub(super) norms: BlockNormWeights<B>,
    pub(super) mixer: Option<MixerWeights<B>>,
    pub(super) mlp: Option<MlpWeights<B>>,
}

/// RMSNorms of the inputs and outputs of a block's parts.
pub(super) struct BlockNormWeights<B: Backend> {
    pub(super) pre_attention: Option<NormWeight<B>>,
    pub(super) post_attention: Option<NormWeight<B>>,
    pub(super) pre_mlp: Option<NormWeight<B>>,
    pub(super) post_mlp: Option<NormWeight<B>>,
}

impl<B: Backend> BlockNormWeights<B> {
    /// The norms with the indices of their parameters.
    fn of<'a>(&'a mut self, p: &BlockParams) -> impl Iterator<Item = (usize, &'a mut NormWeight<B>)> {
        let all = [
            (p.pre_attention, &mut self.pre_attention),
            (p.post_attention, &mut self.post_attention),
            (p.pre_mlp, &mut self.pre_mlp),
            (p.post_mlp, &mut self.post_mlp),
        ];
        all.into_iter().filter_map(|(index, norm)| index.zip(norm.as_mut()))
    }
}

impl<B: Backend> BlockWeights<B> {
    pub(super) fn build(
        backend: &B,
        c: &ModelConfig,
        layer: usize,
        p: &BlockParams,
        read: &mut ReadParam<'_, '_, B>,
    ) -> Result<Self, LoadError> {
        let norm = |read: &mut ReadParam<'_, '_, B>, index: Option<usize>| {
            index
                .map(|index| read(index).map(|value| NormWeight::new(backend, value.source(), c.norm_offset)))
                .transpose()
        };
        let norms = BlockNormWeights {
            pre_attention: norm(read, p.pre_attention)?,
            post_attention: norm(read, p.post_attention)?,
            pre_mlp: norm(read, p.pre_mlp)?,
            post_mlp: norm(read, p.post_mlp)?,
        };
        let mixer = p.mixer.as_ref().map(|p| MixerWeights::build(backend, c, layer, p, read)).transpose()?;
        let mlp = p.mlp.as_ref().map(|p| MlpWeights::build(backend, c, layer, p, read)).transpose()?;
        Ok(Self { norms, mixer, mlp })
    }

    pub(super) fn linears(&self) -> Vec<&Linear<B>> {
        let mixer = self.mixer.iter().flat_map(MixerWeights::linears);
        mixer.chain(self.mlp.iter().flat_map(MlpWeights::linears)).collect()
    }

    fn linears_mut(&mut self) -> Vec<&mut Linear<B>> {
        let mixer = self.mixer.iter_mut().flat_map(MixerWeights::linears_mut);
        mixer.chain(self.mlp.iter_mut().flat_map(MlpWeights::linears_mut)).collect()
    }

    /// Repacks all weights from `params`, in place.
    pub(super) fn update(&mut self, backend: &B, p: &BlockParams, params: &B::Params, offset: f32) {
        for (index, norm) in self.norms.of(p) {
            *norm = NormWeight::new(backend, Source::Param(params, index), offset);
        }
        self.linears_mut().into_iter().for_each(|linear| linear.update(backend, params));
        if let (Some(mixer), Some(p)) = (&mut self.mixer, &p.mixer) {
            mixer.update_vectors(backend, p, params, offset);
        }
    }

    /// Writes all weights to their entries of `params`, as they were at a fence.
    pub(super) fn write_to_host(&self, backend: &B, fence: &B::Fence, p: &BlockParams, params: &mut [Vec<f32>]) {
        let norms = &self.norms;
        let norms = [
            (&norms.pre_attention, p.pre_attention),
            (&norms.post_attention, p.post_attention),
            (&norms.pre_mlp, p.pre_mlp),
            (&norms.post_mlp, p.post_mlp),
        ];
        for (norm, index) in norms.into_iter().filter_map(|(norm, index)| norm.as_ref().zip(index)) {
            params[index] = norm.to_host(backend, fence);
        }
        if let (Some(mixer), Some(p)) = (&self.mixer, &p.mixer) {
            mixer.vectors_to_host(backend, fence, p, params);
        }
        for linear in self.linears() {
            linear.write_to_host(backend, fence, params);
        }
    }
}
