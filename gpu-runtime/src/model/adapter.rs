//! LoRA adapters (Hu et al. 2021, arXiv:2106.09685): `y = W x + (alpha / rank) B A x`.

use std::borrow::Cow;
use std::sync::{Arc, OnceLock};

use trainyard_protocol::LoraSpec;
use trainyard_protocol::limits::LORA_ALPHA;

use super::params::{Gradients, ParamSpec};
use crate::config::ModelConfig;
use crate::kernels::Cpu;
use crate::kernels::gemm::Factor;
use crate::kernels::packed::{Dtype, PackedMatrix};

/// A projection of a decoder block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Module {
    /// Queries.
    Q,
    /// Keys.
    K,
    /// Values.
    V,
    /// Attention output.
    O,
    /// MLP gate.
    Gate,
    /// MLP up.
    Up,
    /// MLP down.
    Down,
}

impl Module {
    /// In parameter order.
    pub const ALL: [Self; 7] = [Self::Q, Self::K, Self::V, Self::O, Self::Gate, Self::Up, Self::Down];

    /// Its name within a block, as Hugging Face has it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Q => "self_attn.q_proj",
            Self::K => "self_attn.k_proj",
            Self::V => "self_attn.v_proj",
            Self::O => "self_attn.o_proj",
            Self::Gate => "mlp.gate_proj",
            Self::Up => "mlp.up_proj",
            Self::Down => "mlp.down_proj",
        }
    }

    /// (outputs, inputs).
    pub fn extents(self, c: &ModelConfig) -> (usize, usize) {
        let (q, kv) = (c.num_heads * c.head_dim, c.num_kv_heads * c.head_dim);
        match self {
            Self::Q => (q, c.hidden_size),
            Self::K | Self::V => (kv, c.hidden_size),
            Self::O => (c.hidden_size, q),
            Self::Gate | Self::Up => (c.intermediate_size, c.hidden_size),
            Self::Down => (c.hidden_size, c.intermediate_size),
        }
    }

    /// Whether it belongs to attention, else to the MLP.
    pub fn is_attention(self) -> bool {
        matches!(self, Self::Q | Self::K | Self::V | Self::O)
    }
}

/// A and B of one projection, packed for the forward pass and, from the first one on, for the backward pass.
pub struct LoraPair {
    /// Place of A in the adapter's parameters; B follows.
    pub place: usize,
    /// Outputs.
    pub n: usize,
    /// Inputs.
    pub k: usize,
    /// A, `[rank, k]`.
    pub a: Arc<PackedMatrix>,
    /// B, `[n, rank]`.
    pub b: Arc<PackedMatrix>,
    a_t: OnceLock<PackedMatrix>,
    b_t: OnceLock<PackedMatrix>,
}

impl LoraPair {
    fn new(place: usize, n: usize, k: usize, a: Arc<PackedMatrix>, b: Arc<PackedMatrix>) -> Self {
        Self { place, n, k, a, b, a_t: OnceLock::new(), b_t: OnceLock::new() }
    }

    /// Aᵀ, `[k, rank]`; where it has to be packed, at the first backward pass: who only samples never pays for it.
    pub fn a_t(&self, cpu: &Cpu) -> Factor<'_> {
        Factor::transpose_or_pack(cpu, &self.a, &self.a_t)
    }

    /// Bᵀ, `[rank, n]`, as [`LoraPair::a_t`].
    pub fn b_t(&self, cpu: &Cpu) -> Factor<'_> {
        Factor::transpose_or_pack(cpu, &self.b, &self.b_t)
    }

    fn bytes(&self) -> usize {
        let transposed = [&self.a_t, &self.b_t].map(|t| t.get().map_or(0, PackedMatrix::bytes));
        self.a.bytes() + self.b.bytes() + transposed.iter().sum::<usize>()
    }
}

/// An adapter's weights; training changes them only where nobody else holds them.
pub struct Adapter {
    /// Its rank.
    pub rank: usize,
    /// alpha / rank.
    pub scale: f32,
    /// Per block, by [`Module`].
    pub layers: Vec<[Option<LoraPair>; 7]>,
    /// On the unembedding.
    pub unembed: Option<LoraPair>,
}

impl Adapter {
    /// Names of adapted modules, `model.layers.0.self_attn.q_proj` … `lm_head`, with (outputs, inputs), in parameter
    /// order: A and B of each are two consecutive parameters.
    pub fn modules(c: &ModelConfig, spec: &LoraSpec) -> Vec<(String, (usize, usize))> {
        let wanted = |m: &Module| if m.is_attention() { spec.train_attn } else { spec.train_mlp };
        let mut modules: Vec<_> = (0..c.num_layers)
            .flat_map(|l| Module::ALL.into_iter().filter(wanted).map(move |m| (l, m)))
            .map(|(l, m)| (format!("model.layers.{l}.{}", m.name()), m.extents(c)))
            .collect();
        if spec.train_unembed {
            modules.push(("lm_head".into(), (c.vocab_size, c.hidden_size)));
        }
        modules
    }

    /// The adapter's parameters: A `[rank, in]` and B `[out, rank]` of each module.
    pub fn params(c: &ModelConfig, spec: &LoraSpec) -> Vec<ParamSpec> {
        let rank = spec.rank as usize;
        Self::modules(c, spec)
            .into_iter()
            .flat_map(|(name, (n, k))| {
                [
                    ParamSpec { name: format!("{name}.lora_A"), shape: vec![rank, k] },
                    ParamSpec { name: format!("{name}.lora_B"), shape: vec![n, rank] },
                ]
            })
            .collect()
    }

    /// The adapter that `params` (in the order of [`Adapter::params`]) describe.
    pub fn build(cpu: &Cpu, base: Dtype, c: &ModelConfig, spec: &LoraSpec, params: &Gradients) -> Self {
        let scale = LORA_ALPHA / spec.rank as f32;
        let mut pairs = Self::modules(c, spec).into_iter().zip(params.chunks_exact(2)).peekable();
        let built = Self::from_pairs(cpu, base, c, spec.rank as usize, scale, |name, _| {
            let own = pairs.next_if(|((next, _), _)| next == name);
            Ok::<_, std::convert::Infallible>(own.map(|(_, pair)| (Cow::Borrowed(&*pair[0]), Cow::Borrowed(&*pair[1]))))
        });
        match built {
            Ok(adapter) => adapter,
        }
    }

    /// Takes the values of `params`, in place.
    pub fn update(&mut self, cpu: &Cpu, params: &Gradients) {
        let pairs = self.layers.iter_mut().flatten().flatten().chain(&mut self.unembed);
        for pair in pairs {
            let (a, b) = (&params[pair.place], &params[pair.place + 1]);
            repack(cpu, &mut pair.a, &mut pair.a_t, a);
            repack(cpu, &mut pair.b, &mut pair.b_t, b);
        }
    }

    /// The same adapter for samplers, which never need the transposes. Both share the rest until one is updated.
    pub fn frozen(&self) -> Self {
        let share = |p: &LoraPair| LoraPair::new(p.place, p.n, p.k, Arc::clone(&p.a), Arc::clone(&p.b));
        let layers = self.layers.iter().map(|layer| layer.each_ref().map(|pair| pair.as_ref().map(share)));
        let unembed = self.unembed.as_ref().map(share);
        Self { rank: self.rank, scale: self.scale, layers: layers.collect(), unembed }
    }

    /// Bytes of all packed matrices of an adapter that is yet to be built, with those that backward passes need where
    /// it `trains`.
    pub fn bytes_of(cpu: &Cpu, base: Dtype, c: &ModelConfig, spec: &LoraSpec, trains: bool) -> usize {
        let (dtype, rank) = (cpu.input_type(base), spec.rank as usize);
        let trains = trains && Factor::needs_packed_transpose(cpu, dtype);
        let bytes = |(n, k): (usize, usize)| {
            let forward = [(rank, k), (n, rank)].map(|(n, k)| PackedMatrix::bytes_of(dtype, n, k));
            let backward =
                [(k, rank), (rank, n)].map(|(n, k)| if trains { PackedMatrix::bytes_of(dtype, n, k) } else { 0 });
            forward.iter().chain(&backward).sum::<usize>()
        };
        Self::modules(c, spec).into_iter().map(|(_, extents)| bytes(extents)).sum()
    }

    /// Bytes of all packed matrices that it has.
    pub fn bytes(&self) -> usize {
        let pairs = self.layers.iter().flatten().flatten().chain(&self.unembed);
        pairs.map(LoraPair::bytes).sum()
    }

    /// Its parameters as they were packed, in the order of [`Adapter::params`].
    pub fn params_of(&self) -> Gradients {
        let pairs = self.layers.iter().flatten().flatten().chain(&self.unembed);
        pairs.flat_map(|pair| [pair.a.to_rows(), pair.b.to_rows()]).collect()
    }

    /// An adapter on the modules for which `pair` (given name and (outputs, inputs)) returns A and B. Modules are
    /// asked for in parameter order.
    pub fn from_pairs<'p, E>(
        cpu: &Cpu,
        base: Dtype,
        c: &ModelConfig,
        rank: usize,
        scale: f32,
        mut pair: impl FnMut(&str, (usize, usize)) -> Result<Option<(Cow<'p, [f32]>, Cow<'p, [f32]>)>, E>,
    ) -> Result<Self, E> {
        // That of the inputs, which it shares with the base weights.
        let dtype = cpu.input_type(base);
        let mut place = 0;
        let mut next = |name: &str, (n, k): (usize, usize)| -> Result<Option<LoraPair>, E> {
            let Some((a, b)) = pair(name, (n, k))? else { return Ok(None) };
            place += 2;
            let a = Arc::new(PackedMatrix::pack(cpu, dtype, k, &[&a]));
            let b = Arc::new(PackedMatrix::pack(cpu, dtype, rank, &[&b]));
            Ok(Some(LoraPair::new(place - 2, n, k, a, b)))
        };
        let mut layers = Vec::with_capacity(c.num_layers);
        for l in 0..c.num_layers {
            let mut layer: [Option<LoraPair>; 7] = Default::default();
            for (m, slot) in Module::ALL.into_iter().zip(&mut layer) {
                *slot = next(&format!("model.layers.{l}.{}", m.name()), m.extents(c))?;
            }
            layers.push(layer);
        }
        let unembed = next("lm_head", (c.vocab_size, c.hidden_size))?;
        Ok(Self { rank, scale, layers, unembed })
    }

    /// The pair on a module of a block.
    pub fn pair(&self, layer: usize, module: Module) -> Option<&LoraPair> {
        self.layers[layer][module as usize].as_ref()
    }
}

/// Packs `values`, in place where nobody else holds the matrix, and its transpose where there is one.
fn repack(cpu: &Cpu, matrix: &mut Arc<PackedMatrix>, transposed: &mut OnceLock<PackedMatrix>, values: &[f32]) {
    match Arc::get_mut(matrix) {
        Some(own) => own.repack(cpu, &[values]),
        None => *matrix = Arc::new(PackedMatrix::pack(cpu, matrix.dtype(), matrix.k(), &[values])),
    }
    if let Some(transposed) = transposed.get_mut() {
        transposed.repack_transposed(cpu, values);
    }
}
