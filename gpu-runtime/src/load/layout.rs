//! The parameters that each tensor of a family's files contains, and their order in it. Reading and writing both follow
//! this description.

use std::collections::BTreeMap;

use crate::config::{ExpertStorage, ModelConfig, Spelling, block_name, split_block};
use crate::model::ParamSpec;

/// A tensor of files.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct FileTensor {
    /// Name in the spelling of the parameter table, which has no such parameter where the tensor holds several.
    pub(crate) name: String,
    pub(crate) shape: Vec<usize>,
    /// Indices of its parameters.
    pub(crate) parts: Vec<usize>,
    pub(crate) arrangement: Arrangement,
}

/// How parameters lie in a tensor that holds several.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Arrangement {
    /// One after the other.
    Rows,
    /// Expert by expert, inputs before outputs.
    Columns(Columns),
}

/// How the outputs of projections of one expert share a matrix of inputs before outputs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Columns {
    pub(crate) projections: usize,
    /// Outputs of the projections alternate; else those of one projection follow each other.
    pub(crate) interleaved: bool,
    /// Outputs of one projection.
    pub(crate) outputs: usize,
    /// Inputs; 1 of biases.
    pub(crate) inputs: usize,
}

impl Columns {
    /// Elements of all projections of an expert.
    pub(crate) fn elements(&self) -> usize {
        self.projections * self.outputs * self.inputs
    }

    /// Index of an element of a projection within the expert's matrix.
    pub(crate) fn index(&self, projection: usize, output: usize, input: usize) -> usize {
        let column = match self.interleaved {
            true => output * self.projections + projection,
            false => projection * self.outputs + output,
        };
        input * self.projections * self.outputs + column
    }
}

/// A tensor of one expert.
struct ExpertTensor<'a> {
    layer: usize,
    expert: usize,
    projection: &'a str,
    is_bias: bool,
}

impl<'a> ExpertTensor<'a> {
    /// Parses a name like `model.layers.0.mlp.experts.3.gate_proj.weight`.
    fn parse(name: &'a str) -> Option<Self> {
        let (layer, rest) = split_block(name)?;
        let (expert, rest) = rest.strip_prefix("mlp.experts.")?.split_once('.')?;
        let (projection, kind) = rest.split_once('.')?;
        Some(Self { layer, expert: expert.parse().ok()?, projection, is_bias: kind == "bias" })
    }

    /// The tensor that holds it among those of all experts, the number of projections there, and that of its own. Experts without
    /// a gate have a stack of up projections.
    fn stack(&self, is_gated: bool) -> (String, usize, usize) {
        let (stack, projections, own) = match self.projection {
            other if !is_gated => (other, 1, 0),
            "gate_proj" => ("gate_up_proj", 2, 0),
            "up_proj" => ("gate_up_proj", 2, 1),
            other => (other, 1, 0),
        };
        let bias = if self.is_bias { "_bias" } else { "" };
        (block_name(self.layer, &format!("mlp.experts.{stack}{bias}")), projections, own)
    }
}

/// Where a parameter is among others.
struct Home {
    tensor: String,
    /// Its number among the parameters of the tensor.
    order: usize,
    stack: Option<Stack>,
}

struct Stack {
    experts: usize,
    projections: usize,
    storage: ExpertStorage,
}

/// The tensor that holds a parameter among others; `None` where the parameter is a tensor of its own.
fn home(c: &ModelConfig, name: &str) -> Option<Home> {
    if let Some((tensor, order)) = c.spelling.fused(name) {
        return Some(Home { tensor, order, stack: None });
    }
    let own = ExpertTensor::parse(name)?;
    let block = c.blocks.get(own.layer)?;
    let experts = block.experts.as_ref()?;
    if experts.storage == ExpertStorage::Apart {
        return None;
    }
    let (tensor, projections, projection) = own.stack(block.activation.is_gated());
    let stack = Stack { experts: experts.count, projections, storage: experts.storage };
    Some(Home { tensor, order: own.expert * projections + projection, stack: Some(stack) })
}

/// Whether files of the family differ from the parameter table in names or in what their tensors hold.
pub(crate) fn has_own_form(c: &ModelConfig) -> bool {
    let is_stacked = |storage: ExpertStorage| storage != ExpertStorage::Apart;
    c.spelling != Spelling::default()
        || c.blocks.iter().flat_map(|b| &b.experts).any(|experts| is_stacked(experts.storage))
}

/// The tensors of files that hold these parameters, in the order of their first ones.
pub(crate) fn file_tensors(c: &ModelConfig, specs: &[ParamSpec]) -> Vec<FileTensor> {
    let mut tensors: Vec<FileTensor> = Vec::new();
    let mut positions: BTreeMap<String, (usize, Vec<(usize, usize)>)> = BTreeMap::new();
    for (index, spec) in specs.iter().enumerate() {
        let single = |name: &str| FileTensor {
            name: name.to_owned(),
            shape: spec.shape.clone(),
            parts: vec![index],
            arrangement: Arrangement::Rows,
        };
        let Some(Home { tensor, order, stack }) = home(c, &spec.name) else {
            tensors.push(single(&spec.name));
            continue;
        };
        let (at, parts) = positions.entry(tensor).or_insert_with_key(|name| {
            let mut of_several = single(name);
            match &stack {
                Some(stack) => (of_several.shape, of_several.arrangement) = stacked(stack, &spec.shape),
                None => of_several.shape[0] = 0,
            }
            tensors.push(of_several);
            (tensors.len() - 1, Vec::new())
        });
        parts.push((order, index));
        if stack.is_none() {
            tensors[*at].shape[0] += spec.shape[0];
        }
    }
    for (at, mut parts) in positions.into_values() {
        parts.sort_unstable();
        tensors[at].parts = parts.into_iter().map(|(_, index)| index).collect();
    }
    tensors
}

/// Extents and arrangement of a stack of experts' tensors, from the extents of one.
fn stacked(stack: &Stack, of_one: &[usize]) -> (Vec<usize>, Arrangement) {
    let (outputs, inputs) = (of_one[0], of_one.get(1).copied());
    let (count, all) = (stack.experts, stack.projections * outputs);
    if stack.storage == ExpertStorage::Rows {
        return ([count, all].into_iter().chain(inputs).collect(), Arrangement::Rows);
    }
    let columns = Columns {
        projections: stack.projections,
        interleaved: stack.storage == ExpertStorage::Interleaved,
        outputs,
        inputs: inputs.unwrap_or(1),
    };
    ([count].into_iter().chain(inputs).chain([all]).collect(), Arrangement::Columns(columns))
}
