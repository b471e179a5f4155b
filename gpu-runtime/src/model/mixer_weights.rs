//! The weights of a block's mixer: attention, a recurrence or a short convolution.

use super::latent_weights::QkvWeights;
use super::linear::Linear;
use super::mlp_weights::build_linear;
use super::norm_weight::NormWeight;
use super::param_value::{ParamValue, ReadParam};
use super::params::{AttentionParams, ConvolutionParams, LinearParams, MixerParams, RecurrenceParams};
use super::projection::Projection;
use crate::backend::{Backend, ConvolutionShape, RecurrentShape, Source};
use crate::config::{LoadError, Mixer, ModelConfig};

/// The mixer of a block.
pub(super) enum MixerWeights<B: Backend> {
    Attention(AttentionWeights<B>),
    Recurrent(Box<RecurrenceWeights<B>>),
    Convolution(ConvolutionWeights<B>),
}

pub(super) struct AttentionWeights<B: Backend> {
    pub(super) qkv: QkvWeights<B>,
    pub(super) head_norms: Option<[NormWeight<B>; 2]>,
    pub(super) o: Linear<B>,
    /// Scores of the heads' sinks.
    pub(super) sinks: Option<B::Vector>,
}

pub(super) struct RecurrenceWeights<B: Backend> {
    pub(super) shape: RecurrentShape,
    /// Projections to all inputs, fused in the order of their columns.
    pub(super) inputs: Linear<B>,
    pub(super) vectors: RecurrenceVectors<B>,
    pub(super) norm: NormWeight<B>,
    pub(super) out: Linear<B>,
}

pub(super) struct ConvolutionWeights<B: Backend> {
    pub(super) shape: ConvolutionShape,
    /// Projection to gates and values.
    pub(super) inputs: Linear<B>,
    /// Weights of the convolution: `[channels, kernel]`.
    pub(super) weight: B::Vector,
    pub(super) out: Linear<B>,
}

/// What a recurrence has besides matrices and its norm; extents are those of
/// [`RecurrentCall`](crate::backend::RecurrentCall).
pub(super) struct RecurrenceVectors<B: Backend> {
    pub(super) conv: B::Vector,
    pub(super) conv_bias: Option<B::Vector>,
    pub(super) a_log: B::Vector,
    pub(super) dt_bias: B::Vector,
    pub(super) skip: Option<B::Vector>,
}

impl<B: Backend> MixerWeights<B> {
    pub(super) fn build(
        backend: &B,
        c: &ModelConfig,
        layer: usize,
        p: &MixerParams,
        read: &mut ReadParam<'_, '_, B>,
    ) -> Result<Self, LoadError> {
        match (p, &c.blocks[layer].mixer) {
            (MixerParams::Recurrent(p), Some(Mixer::Recurrent(shape))) => {
                RecurrenceWeights::build(backend, c, layer, shape, p, read).map(|own| Self::Recurrent(Box::new(own)))
            }
            (MixerParams::Convolution(p), Some(Mixer::Convolution(shape))) => {
                ConvolutionWeights::build(backend, c, layer, shape, p, read).map(Self::Convolution)
            }
            (MixerParams::Attention(p), _) => AttentionWeights::build(backend, c, layer, p, read).map(Self::Attention),
            (MixerParams::Recurrent(_) | MixerParams::Convolution(_), _) => {
                unreachable!("parameters do not match the block's mixer")
            }
        }
    }

    pub(super) fn linears(&self) -> Vec<&Linear<B>> {
        match self {
            Self::Attention(own) => own.qkv.linears().into_iter().chain([&own.o]).collect(),
            Self::Recurrent(own) => vec![&own.inputs, &own.out],
            Self::Convolution(own) => vec![&own.inputs, &own.out],
        }
    }

    pub(super) fn linears_mut(&mut self) -> Vec<&mut Linear<B>> {
        match self {
            Self::Attention(own) => own.qkv.linears_mut().into_iter().chain([&mut own.o]).collect(),
            Self::Recurrent(own) => vec![&mut own.inputs, &mut own.out],
            Self::Convolution(own) => vec![&mut own.inputs, &mut own.out],
        }
    }

    /// Replaces norms and vectors by those in `params`; linear layers are repacked by the caller. `offset` is that of the
    /// family's norms.
    pub(super) fn update_vectors(&mut self, backend: &B, p: &MixerParams, params: &B::Params, offset: f32) {
        let of = |index: usize| Source::Param(params, index);
        match (self, p) {
            (Self::Attention(own), MixerParams::Attention(p)) => {
                let heads = own.head_norms.iter_mut().flatten().zip(p.head_norms.into_iter().flatten());
                let latents = own.qkv.norms_mut().into_iter().zip(p.qkv.norms());
                for (norm, index) in heads.chain(latents) {
                    *norm = NormWeight::new(backend, of(index), offset);
                }
                if let (Some(sinks), Some(index)) = (&mut own.sinks, p.sinks) {
                    *sinks = backend.vector(&[of(index)], 0.0);
                }
            }
            (Self::Recurrent(own), MixerParams::Recurrent(p)) => {
                let built = RecurrenceVectors::build(backend, p, &mut |index| Ok(ParamValue::Param(params, index)));
                if let Ok(vectors) = built {
                    own.vectors = vectors;
                }
                own.norm = NormWeight::new(backend, of(p.vectors.norm), 0.0);
            }
            (Self::Convolution(own), MixerParams::Convolution(p)) => own.weight = backend.vector(&[of(p.weight)], 0.0),
            _ => unreachable!("parameters do not match the block's mixer"),
        }
    }

    /// Writes norms and vectors to their entries of `params`.
    pub(super) fn vectors_to_host(&self, backend: &B, fence: &B::Fence, p: &MixerParams, params: &mut [Vec<f32>]) {
        match (self, p) {
            (Self::Attention(own), MixerParams::Attention(p)) => {
                let heads = own.head_norms.iter().flatten().zip(p.head_norms.into_iter().flatten());
                let latents = own.qkv.norms().into_iter().zip(p.qkv.norms());
                for (norm, index) in heads.chain(latents) {
                    params[index] = norm.to_host(backend, fence);
                }
                if let (Some(sinks), Some(index)) = (&own.sinks, p.sinks) {
                    params[index] = backend.vector_to_host(sinks, fence);
                }
            }
            (Self::Recurrent(own), MixerParams::Recurrent(p)) => {
                let (vectors, own_vectors) = (p.vectors, &own.vectors);
                let widths = [own.shape.key_width(), own.shape.key_width(), own.shape.value_width()];
                let mut split = |vector: &B::Vector, indices: [usize; 3], each: usize| {
                    let mut rest = &backend.vector_to_host(vector, fence)[..];
                    for (index, width) in indices.into_iter().zip(widths) {
                        let (part, behind) = rest.split_at(width * each);
                        params[index] = part.to_vec();
                        rest = behind;
                    }
                };
                split(&own_vectors.conv, vectors.conv, own.shape.kernel);
                if let (Some(bias), Some(indices)) = (&own_vectors.conv_bias, vectors.conv_bias) {
                    split(bias, indices, 1);
                }
                let heads = [
                    (Some(&own_vectors.a_log), Some(vectors.a_log)),
                    (Some(&own_vectors.dt_bias), Some(vectors.dt_bias)),
                    (own_vectors.skip.as_ref(), vectors.skip),
                ];
                for (vector, index) in heads.into_iter().filter_map(|(vector, index)| vector.zip(index)) {
                    params[index] = backend.vector_to_host(vector, fence);
                }
                params[vectors.norm] = own.norm.to_host(backend, fence);
            }
            (Self::Convolution(own), MixerParams::Convolution(p)) => {
                params[p.weight] = backend.vector_to_host(&own.weight, fence);
            }
            _ => unreachable!("parameters do not match the block's mixer"),
        }
    }
}

impl<B: Backend> AttentionWeights<B> {
    fn build(
        backend: &B,
        c: &ModelConfig,
        layer: usize,
        p: &AttentionParams,
        read: &mut ReadParam<'_, '_, B>,
    ) -> Result<Self, LoadError> {
        let norm = |index: usize, read: &mut ReadParam<'_, '_, B>| {
            read(index).map(|value| NormWeight::new(backend, value.source(), c.norm_offset))
        };
        let head_norms = match p.head_norms {
            Some([q, k]) => Some([norm(q, read)?, norm(k, read)?]),
            None => None,
        };
        let sinks = p.sinks.map(|index| read(index).map(|value| backend.vector(&[value.source()], 0.0))).transpose()?;
        Ok(Self {
            qkv: QkvWeights::build(backend, c, layer, &p.qkv, read)?,
            head_norms,
            o: build_linear(backend, c, layer, &[(Projection::O, p.o)], read)?,
            sinks,
        })
    }
}

impl<B: Backend> RecurrenceWeights<B> {
    fn build(
        backend: &B,
        c: &ModelConfig,
        layer: usize,
        shape: &RecurrentShape,
        p: &RecurrenceParams,
        read: &mut ReadParam<'_, '_, B>,
    ) -> Result<Self, LoadError> {
        let inputs = Projection::recurrent_inputs(&c.blocks[layer], shape).iter().copied();
        let mut inputs: Vec<(Projection, LinearParams)> = inputs.zip(p.inputs.iter().copied()).collect();
        inputs.sort_by_key(|(projection, _)| projection.input_column(shape));
        Ok(Self {
            shape: *shape,
            inputs: build_linear(backend, c, layer, &inputs, read)?,
            vectors: RecurrenceVectors::build(backend, p, read)?,
            norm: NormWeight::new(backend, read(p.vectors.norm)?.source(), 0.0),
            out: build_linear(backend, c, layer, &[(Projection::MixOut, p.out)], read)?,
        })
    }
}

impl<B: Backend> ConvolutionWeights<B> {
    fn build(
        backend: &B,
        c: &ModelConfig,
        layer: usize,
        shape: &ConvolutionShape,
        p: &ConvolutionParams,
        read: &mut ReadParam<'_, '_, B>,
    ) -> Result<Self, LoadError> {
        Ok(Self {
            shape: *shape,
            inputs: build_linear(backend, c, layer, &[(Projection::ConvolutionIn, p.inputs)], read)?,
            weight: backend.vector(&[read(p.weight)?.source()], 0.0),
            out: build_linear(backend, c, layer, &[(Projection::ConvolutionOut, p.out)], read)?,
        })
    }
}

impl<B: Backend> RecurrenceVectors<B> {
    fn build(backend: &B, p: &RecurrenceParams, read: &mut ReadParam<'_, '_, B>) -> Result<Self, LoadError> {
        let mut vector = |indices: &[usize]| {
            let values = indices.iter().map(|index| read(*index)).collect::<Result<Vec<_>, _>>()?;
            let sources: Vec<_> = values.iter().map(ParamValue::source).collect();
            Ok::<_, LoadError>(backend.vector(&sources, 0.0))
        };
        let own = p.vectors;
        Ok(Self {
            conv: vector(&own.conv)?,
            conv_bias: own.conv_bias.map(|indices| vector(&indices)).transpose()?,
            a_log: vector(&[own.a_log])?,
            dt_bias: vector(&[own.dt_bias])?,
            skip: own.skip.map(|index| vector(&[index])).transpose()?,
        })
    }
}
