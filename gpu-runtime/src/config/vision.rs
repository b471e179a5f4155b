//! Vision towers and the positions of images.

use trainyard_images::{Limits, Preprocessor, Size};

use super::ModelConfig;

/// Patches whose values a tower reads at a time: 12 MB of them, with 16 × 16 pixels and two frames.
pub(crate) const PATCHES_OF_PART: usize = 2048;

/// A vision transformer whose output becomes embeddings of tokens.
#[derive(Clone, Debug, PartialEq)]
pub struct VisionConfig {
    /// Beginning of the names of the tower's tensors, in the spelling of the parameter table.
    pub prefix: &'static str,
    /// Number of values of a patch.
    pub patch_dim: usize,
    /// Width of a patch's residual stream.
    pub hidden: usize,
    /// Number of heads; divides `hidden`.
    pub heads: usize,
    /// Width of the MLP.
    pub width: usize,
    /// Number of blocks of the tower.
    pub depth: usize,
    /// Number of rows, and of columns, of the learned grid of positions.
    pub position_side: usize,
    /// Side of the square of patches that become one token.
    pub merge: usize,
    /// Width of the embeddings, which is that of the text model.
    pub out: usize,
    /// Added to the variance in LayerNorm.
    pub eps: f32,
    /// Base of the rotary frequencies.
    pub theta: f64,
    /// Indices of blocks whose features are added to the text model's residual stream: the first one's after its first
    /// block, and so on.
    pub deepstack: Vec<usize>,
    /// Token that stands for each position of an image.
    pub image_token: u32,
    /// Tokens that stand for parts of images and videos, ascending.
    pub placeholders: Vec<u32>,
    /// Content of `preprocessor_config.json`; empty until the files of the model are read.
    pub preprocessor: String,
}

impl VisionConfig {
    /// Returns the number of patches of a token.
    pub fn merged(&self) -> usize {
        self.merge * self.merge
    }

    /// Returns the extents of the tower's tensors by name, in the order in which they are used.
    pub fn tensors(&self) -> Vec<VisionTensor> {
        let (d, joined) = (self.hidden, self.hidden * self.merged());
        let mut tensors = Vec::new();
        let mut add = |name: String, shape: Vec<usize>| {
            tensors.push(VisionTensor { name: format!("{}{name}", self.prefix), shape });
        };
        add("patch_embed.proj.weight".into(), vec![d, self.patch_dim]);
        add("patch_embed.proj.bias".into(), vec![d]);
        add("pos_embed.weight".into(), vec![self.position_side * self.position_side, d]);
        for block in 0..self.depth {
            for (name, outputs, inputs) in [
                ("attn.qkv", 3 * d, d),
                ("attn.proj", d, d),
                ("mlp.linear_fc1", self.width, d),
                ("mlp.linear_fc2", d, self.width),
            ] {
                add(format!("blocks.{block}.{name}.weight"), vec![outputs, inputs]);
                add(format!("blocks.{block}.{name}.bias"), vec![outputs]);
            }
            for name in ["norm1", "norm2"] {
                add(format!("blocks.{block}.{name}.weight"), vec![d]);
                add(format!("blocks.{block}.{name}.bias"), vec![d]);
            }
        }
        let deepstack = (0..self.deepstack.len()).map(|k| (format!("deepstack_merger_list.{k}"), joined));
        for (merger, normed) in std::iter::once(("merger".to_owned(), d)).chain(deepstack) {
            for (name, shape) in [
                ("norm.weight", vec![normed]),
                ("norm.bias", vec![normed]),
                ("linear_fc1.weight", vec![joined, joined]),
                ("linear_fc1.bias", vec![joined]),
                ("linear_fc2.weight", vec![self.out, joined]),
                ("linear_fc2.bias", vec![self.out]),
            ] {
                add(format!("{merger}.{name}"), shape);
            }
        }
        tensors
    }
}

/// Patches of the largest image of a released preprocessor, where a model's own is not known.
const MOST_PATCHES: usize = 1 << 16;

impl VisionConfig {
    /// Patches of the largest image that fits a context of so many tokens.
    pub(crate) fn most_patches(&self, context: usize) -> usize {
        let side = Limits::default().side;
        let preprocessor = Preprocessor::from_json(&self.preprocessor).ok();
        let layout = preprocessor.and_then(|preprocessor| preprocessor.layout(Size::new(side, side)).ok());
        layout.map_or(MOST_PATCHES, |layout| layout.patches()).min(context * self.merged())
    }

    /// Maximum number of elements of activations, in f32, of a pass over an image of so many patches.
    pub(crate) fn pass_elements(&self, patches: usize) -> usize {
        let (d, inner) = (self.hidden, self.width.max(4 * self.hidden));
        // The residual stream, a norm and a left side of a GEMM; then queries, keys and values, likewise in blocks, and output of
        // attention, or the MLP's inner values as rows and as a left side. Beside them the patches of a part.
        patches * (4 * d + 2 * inner) + 2 * patches.min(PATCHES_OF_PART) * self.patch_dim
    }
}

/// A tensor of a tower.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VisionTensor {
    /// Name in the spelling of the parameter table.
    pub name: String,
    /// Extents as a vector or a matrix, outermost first. Files may divide the last one further.
    pub shape: Vec<usize>,
}

impl VisionTensor {
    /// Number of elements of the tensor.
    pub fn elements(&self) -> usize {
        self.shape.iter().product()
    }

    /// Returns whether a tensor of this shape in a file has these extents.
    pub fn fits(&self, found: &[usize]) -> bool {
        found.first() == self.shape.first() && found.iter().product::<usize>() == self.elements()
    }
}

/// Rotary positions with three coordinates: time, row and column (Wang et al. 2024, arXiv:2409.12191), whose frequencies are
/// interleaved.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RopeSections(pub [usize; 3]);

impl RopeSections {
    /// Returns the coordinate that a frequency uses: 0 for time, 1 for the row, 2 for the column.
    pub fn axis(&self, frequency: usize) -> usize {
        let axis = frequency % 3;
        if axis > 0 && frequency < 3 * self.0[axis] { axis } else { 0 }
    }
}

impl ModelConfig {
    /// Bytes of a pass of the tower over the largest image; 0 in models without a tower.
    pub(crate) fn tower_pass_bytes(&self) -> usize {
        let of = |vision: &VisionConfig| vision.pass_elements(vision.most_patches(self.max_position_embeddings));
        self.vision.as_ref().map_or(0, of) * size_of::<f32>()
    }

    /// Bytes of the tower's weights, of which matrices have elements of `element` bytes; 0 in models without a tower.
    pub(crate) fn tower_bytes(&self, element: usize) -> usize {
        let bytes = |tensor: VisionTensor| {
            // Positions are added up in f32.
            let is_matrix = tensor.shape.len() > 1 && !tensor.name.ends_with("pos_embed.weight");
            tensor.elements() * if is_matrix { element } else { size_of::<f32>() }
        };
        self.vision.iter().flat_map(VisionConfig::tensors).map(bytes).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn axes_are_interleaved_up_to_their_section() {
        let sections = RopeSections([6, 5, 3]);
        let axes: Vec<_> = (0..14).map(|frequency| sections.axis(frequency)).collect();
        assert_eq!(axes, [0, 1, 2, 0, 1, 2, 0, 1, 2, 0, 1, 0, 0, 1]);
        assert_eq!((sections.axis(14), sections.axis(16)), (0, 0));
    }
}
