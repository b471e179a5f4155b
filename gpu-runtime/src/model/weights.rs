//! Weights in the form that the kernels read.

use std::borrow::Cow;
use std::sync::{Arc, OnceLock};

use half::bf16;

use super::params::{Gradients, LayerParams, ParamLayout};
use crate::config::{LoadError, ModelConfig};
use crate::kernels::attention::AttentionShape;
use crate::kernels::gemm::Factor;
use crate::kernels::packed::{Dtype, PackedMatrix};
use crate::kernels::rope::Rope;
use crate::kernels::{Cpu, par_chunks};

/// A linear layer `y = x Wᵀ + b`, perhaps several fused along the outputs.
pub struct Linear {
    /// `[out, in]`.
    pub weight: PackedMatrix,
    transposed: OnceLock<PackedMatrix>,
    /// `[out]`.
    pub bias: Option<Vec<f32>>,
}

impl Linear {
    fn new(weight: PackedMatrix, bias: Option<Vec<f32>>) -> Self {
        Self { weight, transposed: OnceLock::new(), bias }
    }

    /// Bytes of its elements, of the transpose as well where that was made.
    fn bytes(&self) -> usize {
        self.weight.bytes() + self.transposed.get().map_or(0, PackedMatrix::bytes)
    }

    /// Takes other values, in place: parts as they are stacked along the outputs, and all biases.
    fn update(&mut self, cpu: &Cpu, parts: &[&[f32]], biases: &[&[f32]]) {
        self.weight.repack(cpu, parts);
        if let Some(transposed) = self.transposed.get_mut() {
            transposed.transpose_from(cpu, &self.weight);
        }
        if let Some(bias) = &mut self.bias {
            *bias = biases.concat();
        }
    }

    /// Writes its weights and biases to their places, which are stacked along the outputs.
    fn params(&self, weights: &[usize], biases: &[usize], params: &mut Gradients) {
        let rows = self.weight.to_rows();
        split(&rows, weights, params);
        split(self.bias.as_deref().unwrap_or_default(), biases, params);
    }

    /// The transpose; where it has to be packed, at the first backward pass: servers that only sample never pay for it.
    pub fn transposed(&self, cpu: &Cpu) -> Factor<'_> {
        Factor::transpose_or_pack(cpu, &self.weight, &self.transposed)
    }
}

/// A decoder block.
pub struct Layer {
    /// RMSNorm before attention.
    pub input_norm: Vec<f32>,
    /// Fused q, k and v projections.
    pub qkv: Linear,
    /// RMSNorm of q heads and of k heads.
    pub qk_norm: Option<[Vec<f32>; 2]>,
    /// Output projection.
    pub o: Linear,
    /// RMSNorm before the MLP.
    pub post_norm: Vec<f32>,
    /// Fused gate and up projections.
    pub gate_up: Linear,
    /// Down projection.
    pub down: Linear,
}

enum Embedding {
    /// Rows of the unembedding.
    Tied,
    Bf16(Vec<u16>),
    F32(Vec<f32>),
}

/// A model's weights; training changes them only where nobody else holds them.
pub struct Weights {
    /// What the model is made of.
    pub config: Arc<ModelConfig>,
    /// Its parameters.
    pub layout: Arc<ParamLayout>,
    /// Rotary tables.
    pub rope: Arc<Rope>,
    /// Extents of its attention.
    pub shape: AttentionShape,
    /// Element type.
    pub dtype: Dtype,
    embed: Embedding,
    /// Decoder blocks.
    pub layers: Vec<Layer>,
    /// Final RMSNorm.
    pub norm: Vec<f32>,
    /// Unembedding.
    pub head: Linear,
}

/// Gives the elements of the parameter at a place of the layout.
pub(super) type ReadParam<'a> = dyn FnMut(usize) -> Result<Cow<'a, [f32]>, LoadError> + 'a;

impl Weights {
    /// Bytes of its matrices.
    pub fn bytes(&self) -> usize {
        let layer = |l: &Layer| [&l.qkv, &l.o, &l.gate_up, &l.down].map(Linear::bytes).iter().sum::<usize>();
        let embed = match &self.embed {
            Embedding::Tied => 0,
            Embedding::Bf16(rows) => size_of_val(&rows[..]),
            Embedding::F32(rows) => size_of_val(&rows[..]),
        };
        embed + self.head.bytes() + self.layers.iter().map(layer).sum::<usize>()
    }

    /// Packs all parameters that `read` gives.
    pub fn build(
        cpu: &Cpu,
        config: &Arc<ModelConfig>,
        layout: &Arc<ParamLayout>,
        rope: &Arc<Rope>,
        dtype: Dtype,
        read: &mut ReadParam<'_>,
    ) -> Result<Self, LoadError> {
        let c = config;
        let embed = read(layout.embed)?;
        let (head, embed) = if layout.head == layout.embed {
            (PackedMatrix::pack(cpu, dtype, c.hidden_size, &[&embed]), Embedding::Tied)
        } else {
            let embed = match dtype {
                Dtype::Bf16 => Embedding::Bf16(embed.iter().map(|x| bf16::from_f32(*x).to_bits()).collect()),
                Dtype::F32 => Embedding::F32(embed.into_owned()),
            };
            (PackedMatrix::pack(cpu, dtype, c.hidden_size, &[&*read(layout.head)?]), embed)
        };
        let layers = layout.layers.iter().map(|p| Layer::build(cpu, c, p, dtype, read)).collect::<Result<_, _>>()?;
        Ok(Self {
            config: Arc::clone(config),
            layout: Arc::clone(layout),
            rope: Arc::clone(rope),
            shape: AttentionShape {
                layers: c.num_layers,
                heads: c.num_heads,
                kv_heads: c.num_kv_heads,
                head_dim: c.head_dim,
            },
            dtype,
            embed,
            layers,
            norm: read(layout.norm)?.into_owned(),
            head: Linear::new(head, None),
        })
    }

    /// Takes the values of `params`, in the order of the layout, in place.
    pub fn update(&mut self, cpu: &Cpu, params: &Gradients) {
        let layout = Arc::clone(&self.layout);
        let embed = &params[layout.embed];
        match &mut self.embed {
            Embedding::Tied => {}
            Embedding::Bf16(rows) => par_chunks(&cpu.pool, rows, 1 << 16, |i, rows| {
                for (row, x) in rows.iter_mut().zip(&embed[i << 16..]) {
                    *row = bf16::from_f32(*x).to_bits();
                }
            }),
            Embedding::F32(rows) => rows.copy_from_slice(embed),
        }
        self.head.update(cpu, &[&params[layout.head]], &[]);
        self.norm.copy_from_slice(&params[layout.norm]);
        for (layer, p) in self.layers.iter_mut().zip(&layout.layers) {
            layer.update(cpu, p, params);
        }
    }

    /// All parameters as they were packed, in the order of the layout.
    pub fn params(&self) -> Gradients {
        let mut params = self.layout.zeros();
        for (token, out) in params[self.layout.embed].chunks_exact_mut(self.config.hidden_size).enumerate() {
            self.embed(token as u32, out);
        }
        if self.layout.head != self.layout.embed {
            params[self.layout.head] = self.head.weight.to_rows();
        }
        params[self.layout.norm].clone_from(&self.norm);
        for (layer, p) in self.layers.iter().zip(&self.layout.layers) {
            layer.params(p, &mut params);
        }
        params
    }

    /// Writes the embedding of `token` to `out`.
    pub fn embed(&self, token: u32, out: &mut [f32]) {
        let at = token as usize * out.len();
        match &self.embed {
            Embedding::Tied => self.head.weight.row(token as usize, out),
            Embedding::Bf16(rows) => {
                for (out, bits) in out.iter_mut().zip(&rows[at..]) {
                    *out = f32::from_bits(u32::from(*bits) << 16);
                }
            }
            Embedding::F32(rows) => {
                let row = &rows[at..at + out.len()];
                out.copy_from_slice(row);
            }
        }
    }
}

impl Layer {
    fn build(
        cpu: &Cpu,
        c: &ModelConfig,
        p: &LayerParams,
        dtype: Dtype,
        read: &mut ReadParam<'_>,
    ) -> Result<Self, LoadError> {
        let q_width = c.num_heads * c.head_dim;
        Ok(Self {
            input_norm: read(p.input_norm)?.into_owned(),
            qkv: {
                let parts = [read(p.qkv[0])?, read(p.qkv[1])?, read(p.qkv[2])?];
                let bias = p.qkv_bias.map(|b| concat(read, &b)).transpose()?;
                Linear::new(PackedMatrix::pack(cpu, dtype, c.hidden_size, &[&parts[0], &parts[1], &parts[2]]), bias)
            },
            qk_norm: match p.qk_norm {
                Some([q, k]) => Some([read(q)?.into_owned(), read(k)?.into_owned()]),
                None => None,
            },
            o: {
                let bias = p.o_bias.map(|b| concat(read, &[b])).transpose()?;
                Linear::new(PackedMatrix::pack(cpu, dtype, q_width, &[&*read(p.o)?]), bias)
            },
            post_norm: read(p.post_norm)?.into_owned(),
            gate_up: {
                let parts = [read(p.gate_up[0])?, read(p.gate_up[1])?];
                let bias = p.mlp_bias.map(|b| concat(read, &b[..2])).transpose()?;
                Linear::new(PackedMatrix::pack(cpu, dtype, c.hidden_size, &[&parts[0], &parts[1]]), bias)
            },
            down: {
                let bias = p.mlp_bias.map(|b| concat(read, &b[2..])).transpose()?;
                Linear::new(PackedMatrix::pack(cpu, dtype, c.intermediate_size, &[&*read(p.down)?]), bias)
            },
        })
    }
}

impl Layer {
    fn update(&mut self, cpu: &Cpu, p: &LayerParams, params: &Gradients) {
        let at = |places: &[usize]| -> Vec<&[f32]> { places.iter().map(|place| params[*place].as_slice()).collect() };
        let biases = |places: Option<&[usize]>| places.map_or_else(Vec::new, at);
        self.input_norm.copy_from_slice(&params[p.input_norm]);
        self.post_norm.copy_from_slice(&params[p.post_norm]);
        if let (Some([q, k]), Some([q_place, k_place])) = (&mut self.qk_norm, p.qk_norm) {
            q.copy_from_slice(&params[q_place]);
            k.copy_from_slice(&params[k_place]);
        }
        let (qkv, o) = (p.qkv_bias.as_ref(), p.o_bias.as_ref());
        let mlp = p.mlp_bias.as_ref();
        self.qkv.update(cpu, &at(&p.qkv), &biases(qkv.map(|b| &b[..])));
        self.o.update(cpu, &at(&[p.o]), &biases(o.map(std::slice::from_ref)));
        self.gate_up.update(cpu, &at(&p.gate_up), &biases(mlp.map(|b| &b[..2])));
        self.down.update(cpu, &at(&[p.down]), &biases(mlp.map(|b| &b[2..])));
    }
}

impl Layer {
    fn params(&self, p: &LayerParams, params: &mut Gradients) {
        params[p.input_norm].clone_from(&self.input_norm);
        params[p.post_norm].clone_from(&self.post_norm);
        if let (Some([q, k]), Some([q_place, k_place])) = (&self.qk_norm, p.qk_norm) {
            params[q_place].clone_from(q);
            params[k_place].clone_from(k);
        }
        let (o, mlp) = (p.o_bias, p.mlp_bias);
        self.qkv.params(&p.qkv, p.qkv_bias.as_ref().map_or(&[], |b| &b[..]), params);
        self.o.params(&[p.o], o.as_slice(), params);
        self.gate_up.params(&p.gate_up, mlp.as_ref().map_or(&[], |b| &b[..2]), params);
        self.down.params(&[p.down], mlp.as_ref().map_or(&[], |b| &b[2..]), params);
    }
}

/// Hands consecutive parts of `all` to the places, each as long as what is there.
fn split(mut all: &[f32], places: &[usize], params: &mut Gradients) {
    for place in places {
        let (own, rest) = all.split_at(params[*place].len());
        params[*place].copy_from_slice(own);
        all = rest;
    }
}

fn concat(read: &mut ReadParam<'_>, places: &[usize]) -> Result<Vec<f32>, LoadError> {
    let mut all = Vec::new();
    for place in places {
        all.extend_from_slice(&read(*place)?);
    }
    Ok(all)
}
