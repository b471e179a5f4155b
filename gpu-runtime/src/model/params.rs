//! The list of a model's parameters, in the one order that masters, moments and gradients share.

use crate::config::ModelConfig;

/// A parameter of a model.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ParamSpec {
    /// Its Hugging Face name.
    pub name: String,
    /// Its extents, outermost first.
    pub shape: Vec<usize>,
}

impl ParamSpec {
    /// Number of elements.
    pub fn len(&self) -> usize {
        self.shape.iter().product()
    }

    /// Whether it has no elements.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// One value per parameter element: a gradient, a moment or the masters themselves.
pub type Gradients = Vec<Vec<f32>>;

/// Places of a decoder block's parameters in the list.
#[derive(Clone, Debug)]
pub struct LayerParams {
    /// RMSNorm before attention.
    pub input_norm: usize,
    /// q, k, v weights.
    pub qkv: [usize; 3],
    /// q, k, v biases.
    pub qkv_bias: Option<[usize; 3]>,
    /// Output projection.
    pub o: usize,
    /// Its bias.
    pub o_bias: Option<usize>,
    /// RMSNorm of q heads and of k heads.
    pub qk_norm: Option<[usize; 2]>,
    /// RMSNorm before the MLP.
    pub post_norm: usize,
    /// gate and up weights.
    pub gate_up: [usize; 2],
    /// down weights.
    pub down: usize,
    /// gate, up and down biases.
    pub mlp_bias: Option<[usize; 3]>,
}

/// All parameters of a model and where each is.
#[derive(Clone, Debug)]
pub struct ParamLayout {
    /// In order.
    pub specs: Vec<ParamSpec>,
    /// Token embedding.
    pub embed: usize,
    /// Decoder blocks.
    pub layers: Vec<LayerParams>,
    /// Final RMSNorm.
    pub norm: usize,
    /// Unembedding; the embedding when tied.
    pub head: usize,
}

impl ParamLayout {
    /// The parameters of a model.
    pub fn new(c: &ModelConfig) -> Self {
        let mut specs = Vec::new();
        let mut add = |name: String, shape: &[usize]| {
            specs.push(ParamSpec { name, shape: shape.to_vec() });
            specs.len() - 1
        };
        let embed = add("model.embed_tokens.weight".into(), &[c.vocab_size, c.hidden_size]);
        let (q, kv) = (c.num_heads * c.head_dim, c.num_kv_heads * c.head_dim);
        let (h, m) = (c.hidden_size, c.intermediate_size);
        let layers = (0..c.num_layers)
            .map(|l| {
                let attn = |name: &str| format!("model.layers.{l}.self_attn.{name}");
                let mlp = |name: &str| format!("model.layers.{l}.mlp.{name}");
                LayerParams {
                    input_norm: add(format!("model.layers.{l}.input_layernorm.weight"), &[h]),
                    qkv: [
                        add(attn("q_proj.weight"), &[q, h]),
                        add(attn("k_proj.weight"), &[kv, h]),
                        add(attn("v_proj.weight"), &[kv, h]),
                    ],
                    qkv_bias: c.qkv_bias.then(|| {
                        [
                            add(attn("q_proj.bias"), &[q]),
                            add(attn("k_proj.bias"), &[kv]),
                            add(attn("v_proj.bias"), &[kv]),
                        ]
                    }),
                    o: add(attn("o_proj.weight"), &[h, q]),
                    o_bias: c.o_bias.then(|| add(attn("o_proj.bias"), &[h])),
                    qk_norm: c.qk_norm.then(|| {
                        [add(attn("q_norm.weight"), &[c.head_dim]), add(attn("k_norm.weight"), &[c.head_dim])]
                    }),
                    post_norm: add(format!("model.layers.{l}.post_attention_layernorm.weight"), &[h]),
                    gate_up: [add(mlp("gate_proj.weight"), &[m, h]), add(mlp("up_proj.weight"), &[m, h])],
                    down: add(mlp("down_proj.weight"), &[h, m]),
                    mlp_bias: c.mlp_bias.then(|| {
                        [
                            add(mlp("gate_proj.bias"), &[m]),
                            add(mlp("up_proj.bias"), &[m]),
                            add(mlp("down_proj.bias"), &[h]),
                        ]
                    }),
                }
            })
            .collect();
        let norm = add("model.norm.weight".into(), &[h]);
        let head = if c.tie_word_embeddings { embed } else { add("lm_head.weight".into(), &[c.vocab_size, h]) };
        Self { specs, embed, layers, norm, head }
    }

    /// Zeros for every parameter.
    pub fn zeros(&self) -> Gradients {
        self.specs.iter().map(|spec| vec![0.0; spec.len()]).collect()
    }

    /// Elements of all parameters.
    pub fn len(&self) -> usize {
        self.specs.iter().map(ParamSpec::len).sum()
    }

    /// Whether there are no parameters.
    pub fn is_empty(&self) -> bool {
        self.specs.is_empty()
    }
}
