//! Checkpoints that hold all experts of a block in one tensor ([`ExpertStorage::Stacked`]), as tensors of each expert; and the
//! same in reverse, for checkpoints that are written.
//!
//! In MXFP4 32 elements of a row share an exponent, and a byte holds two neighbours, the first one in its low half.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use super::mxfp4::{self, BLOCK, BLOCK_BYTES};
use super::safetensors::SafetensorsSource;
use crate::config::{ExpertStorage, Experts, LoadError, ModelConfig, TensorSource, absent_part};
use crate::model::ParamSpec;

/// Projections of an expert as single tensors are named.
const PARTS: [&str; 3] = ["gate_proj", "up_proj", "down_proj"];

/// A projection of an expert.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Part {
    Gate,
    Up,
    Down,
}

/// A tensor of one expert.
#[derive(Clone, Debug, PartialEq, Eq)]
struct ExpertTensor {
    layer: usize,
    expert: usize,
    part: Part,
    is_bias: bool,
}

impl ExpertTensor {
    /// Parses a name like `model.layers.0.mlp.experts.3.gate_proj.weight`.
    fn parse(name: &str) -> Option<Self> {
        let (layer, rest) = name.strip_prefix("model.layers.")?.split_once(".mlp.experts.")?;
        let (expert, rest) = rest.split_once('.')?;
        let (part, kind) = rest.split_once('.')?;
        let part = match part {
            "gate_proj" => Part::Gate,
            "up_proj" => Part::Up,
            "down_proj" => Part::Down,
            _ => return None,
        };
        let is_bias = match kind {
            "weight" => false,
            "bias" => true,
            _ => return None,
        };
        Some(Self { layer: layer.parse().ok()?, expert: expert.parse().ok()?, part, is_bias })
    }

    /// The tensor that holds it, but for the suffix of MXFP4's parts.
    fn stack(&self) -> String {
        let part = if self.part == Part::Down { "down_proj" } else { "gate_up_proj" };
        let bias = if self.is_bias { "_bias" } else { "" };
        format!("model.layers.{}.mlp.experts.{part}{bias}", self.layer)
    }

    /// (outputs, inputs) of the stack's matrices.
    fn extents(&self, c: &ModelConfig) -> (usize, usize) {
        let width = c.mlp_width(self.layer);
        if self.part == Part::Down { (c.hidden_size, width) } else { (2 * width, c.hidden_size) }
    }

    /// Extents of the tensor itself.
    fn shape(&self, c: &ModelConfig) -> Vec<usize> {
        let (outputs, inputs) = self.extents(c);
        let outputs = if self.part == Part::Down { outputs } else { outputs / 2 };
        if self.is_bias { vec![outputs] } else { vec![outputs, inputs] }
    }

    /// Outputs of the stack that belong to this projection: the first, and the distance of the next.
    fn outputs(&self) -> (usize, usize) {
        match self.part {
            Part::Gate => (0, 2),
            Part::Up => (1, 2),
            Part::Down => (0, 1),
        }
    }

    /// Extents of the stack.
    fn stack_shape(&self, c: &ModelConfig, experts: &Experts) -> Vec<usize> {
        let (outputs, inputs) = self.extents(c);
        if self.is_bias { vec![experts.count, outputs] } else { vec![experts.count, inputs, outputs] }
    }
}

/// The stacks of a block by one of the tensors in each.
fn stacks(layer: usize) -> [ExpertTensor; 4] {
    let of = |part, is_bias| ExpertTensor { layer, expert: 0, part, is_bias };
    [of(Part::Gate, false), of(Part::Gate, true), of(Part::Down, false), of(Part::Down, true)]
}

/// A block's experts, where files stack them.
fn stacked(c: &ModelConfig, layer: usize) -> Option<&Experts> {
    let experts = c.blocks.get(layer)?.experts.as_ref()?;
    (experts.storage == ExpertStorage::Stacked).then_some(experts)
}

/// Whether a model's files stack experts.
pub(crate) fn has_stacks(c: &ModelConfig) -> bool {
    (0..c.num_layers()).any(|layer| stacked(c, layer).is_some())
}

/// A checkpoint with stacked experts, by the names of single ones.
pub(super) struct StackedExperts {
    inner: SafetensorsSource,
    config: ModelConfig,
}

impl StackedExperts {
    /// Checks the extents of the stacks.
    pub(super) fn new(inner: SafetensorsSource, config: &ModelConfig) -> Result<Self, LoadError> {
        for layer in 0..config.num_layers() {
            let Some(experts) = stacked(config, layer) else { continue };
            for tensor in stacks(layer) {
                check_stack(&inner, config, experts, &tensor)?;
            }
        }
        Ok(Self { inner, config: config.clone() })
    }

    /// Parses a name if it is that of an expert's tensor in a stack.
    fn expert_tensor(&self, name: &str) -> Option<ExpertTensor> {
        let tensor = ExpertTensor::parse(name)?;
        stacked(&self.config, tensor.layer).filter(|experts| tensor.expert < experts.count).map(|_| tensor)
    }

    fn read_expert(&self, tensor: &ExpertTensor) -> Result<Vec<f32>, LoadError> {
        let (name, (outputs, inputs)) = (tensor.stack(), tensor.extents(&self.config));
        let (first, step) = tensor.outputs();
        if tensor.is_bias {
            let all = self.inner.read_part(&name, tensor.expert * outputs..(tensor.expert + 1) * outputs)?;
            return Ok(all.into_iter().skip(first).step_by(step).collect());
        }
        if self.inner.shape(&name).is_none() {
            return self.read_mxfp4(tensor, &name);
        }
        let elements = inputs * outputs;
        let all = self.inner.read_part(&name, tensor.expert * elements..(tensor.expert + 1) * elements)?;
        let column = |output: usize| (0..inputs).map(move |input| (input, output));
        let elements = (first..outputs).step_by(step).flat_map(column);
        Ok(elements.map(|(input, output)| all[input * outputs + output]).collect())
    }

    fn read_mxfp4(&self, tensor: &ExpertTensor, name: &str) -> Result<Vec<f32>, LoadError> {
        let (outputs, inputs) = tensor.extents(&self.config);
        let row = inputs / BLOCK;
        let part = |suffix: &str, length: usize| {
            self.inner.read_bytes(&format!("{name}{suffix}"), tensor.expert * length, length)
        };
        let scales = part("_scales", outputs * row)?;
        let blocks = part("_blocks", outputs * row * BLOCK_BYTES)?;
        let (first, step) = tensor.outputs();
        let mut values = Vec::with_capacity(outputs / step * inputs);
        for output in (first..outputs).step_by(step) {
            for block in output * row..(output + 1) * row {
                let scale = mxfp4::scale(scales[block]);
                for byte in &blocks[block * BLOCK_BYTES..(block + 1) * BLOCK_BYTES] {
                    values.extend([byte & 15, byte >> 4].map(|bits| mxfp4::value(bits, scale)));
                }
            }
        }
        Ok(values)
    }
}

/// Checks the extents of a stack, plain or in MXFP4.
fn check_stack(
    inner: &SafetensorsSource,
    c: &ModelConfig,
    experts: &Experts,
    tensor: &ExpertTensor,
) -> Result<(), LoadError> {
    let (name, (outputs, inputs)) = (tensor.stack(), tensor.extents(c));
    let check = |name: String, expected: Vec<usize>| match inner.shape(&name) {
        None => Err(LoadError::MissingTensor(name)),
        Some(found) if found != expected => Err(LoadError::WrongShape { name, found, expected }),
        Some(_) if inner.is_packed(&name) => Ok(()),
        Some(_) => inner.refusal(&name).map_or(Ok(()), Err),
    };
    if tensor.is_bias || inner.shape(&format!("{name}_blocks")).is_none() {
        return check(name, tensor.stack_shape(c, experts));
    }
    if !inputs.is_multiple_of(BLOCK) {
        let reason = format!("{name} in MXFP4 with {inputs} inputs (supported: multiples of {BLOCK})");
        return Err(LoadError::Unsupported(reason));
    }
    let scales = vec![experts.count, outputs, inputs / BLOCK];
    check(format!("{name}_blocks"), scales.iter().copied().chain([BLOCK_BYTES]).collect())?;
    check(format!("{name}_scales"), scales)
}

impl TensorSource for StackedExperts {
    fn shape(&self, name: &str) -> Option<Vec<usize>> {
        match self.expert_tensor(name) {
            Some(tensor) => Some(tensor.shape(&self.config)),
            None => self.inner.shape(name),
        }
    }

    fn read(&self, name: &str) -> Result<Vec<f32>, LoadError> {
        match self.expert_tensor(name) {
            Some(tensor) => self.read_expert(&tensor),
            None => self.inner.read(name),
        }
    }

    fn read_part(&self, name: &str, elements: Range<usize>) -> Result<Vec<f32>, LoadError> {
        let Some(tensor) = self.expert_tensor(name) else { return self.inner.read_part(name, elements) };
        let all = self.read_expert(&tensor)?;
        all.get(elements.clone()).map(<[f32]>::to_vec).ok_or_else(|| absent_part(name, &elements))
    }

    fn refusal(&self, name: &str) -> Option<LoadError> {
        // `new` has checked the stacks.
        if self.expert_tensor(name).is_some() { None } else { self.inner.refusal(name) }
    }

    fn names(&self) -> Vec<String> {
        let mut names: BTreeSet<String> = self.inner.names().into_iter().collect();
        for layer in 0..self.config.num_layers() {
            let Some(experts) = stacked(&self.config, layer) else { continue };
            for stack in stacks(layer).map(|tensor| tensor.stack()) {
                for suffix in ["", "_blocks", "_scales"] {
                    names.remove(&format!("{stack}{suffix}"));
                }
            }
            for (expert, part) in (0..experts.count).flat_map(|expert| PARTS.map(|part| (expert, part))) {
                let module = format!("model.layers.{layer}.mlp.experts.{expert}.{part}");
                names.extend(["weight", "bias"].map(|kind| format!("{module}.{kind}")));
            }
        }
        names.into_iter().collect()
    }
}

/// A tensor of a file: its name, its extents and its elements.
pub(crate) type StoredTensor<'a> = (String, Vec<usize>, Cow<'a, [f32]>);

/// Parameters as files of their family hold them: experts stacked where they are. With them what no run trains, but a file needs:
/// the corrections of routers.
pub(crate) fn stored_tensors<'a>(
    c: &'a ModelConfig,
    specs: &[ParamSpec],
    values: &'a [impl AsRef<[f32]>],
) -> Vec<StoredTensor<'a>> {
    let mut stored: Vec<StoredTensor<'a>> = Vec::new();
    let mut positions: BTreeMap<String, usize> = BTreeMap::new();
    for (spec, values) in specs.iter().zip(values.iter().map(AsRef::as_ref)) {
        let tensor = ExpertTensor::parse(&spec.name);
        let of_stack = tensor.and_then(|tensor| stacked(c, tensor.layer).map(|experts| (tensor, experts)));
        let Some((tensor, experts)) = of_stack else {
            stored.push((spec.name.clone(), spec.shape.clone(), Cow::Borrowed(values)));
            continue;
        };
        let (name, shape) = (tensor.stack(), tensor.stack_shape(c, experts));
        let at = *positions.entry(name.clone()).or_insert_with(|| {
            let zeros = vec![0.0; shape.iter().product()];
            stored.push((name, shape, Cow::Owned(zeros)));
            stored.len() - 1
        });
        let (outputs, inputs) = tensor.extents(c);
        let (first, step) = tensor.outputs();
        let inputs = if tensor.is_bias { 1 } else { inputs };
        let stack = &mut stored[at].2.to_mut()[tensor.expert * inputs * outputs..][..inputs * outputs];
        for (row, values) in values.chunks_exact(inputs).enumerate() {
            for (input, value) in values.iter().enumerate() {
                stack[input * outputs + first + row * step] = *value;
            }
        }
    }
    stored.extend(c.corrections().map(|(name, values)| (name, vec![values.len()], Cow::Borrowed(values))));
    stored
}
