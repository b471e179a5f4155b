//! Vision towers and the positions of images.

use trainyard_images::{Limits, Preprocessor};

use super::ModelConfig;
use super::tower_names::{BlockNames, MergerNames, TowerNames};

/// Patches whose values a tower reads at a time: 12 MB of them, with 16 × 16 pixels and two frames.
pub(crate) const PATCHES_OF_PART: usize = 2048;

/// A vision transformer whose output becomes embeddings of tokens.
#[derive(Clone, Debug, PartialEq)]
pub struct VisionConfig {
    /// Names of the tower's modules.
    pub names: TowerNames,
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
    /// The learned grid of positions.
    pub positions: PositionGrid,
    /// Which elements of heads are rotated by which coordinate.
    pub rotation: PatchRotation,
    /// Side of the square of patches that become one token.
    pub merge: usize,
    /// Width of the embeddings, which is that of the text model.
    pub out: usize,
    /// Added to the variance in LayerNorm.
    pub eps: f32,
    /// Added to the variance in the LayerNorm of mergers.
    pub merger_eps: f32,
    /// Base of the rotary frequencies.
    pub theta: f64,
    /// Indices of blocks whose features are added to the text model's residual stream: the first one's after its first
    /// block, and so on.
    pub deepstack: Vec<usize>,
    /// Token that stands for each position of an image.
    pub image_token: u32,
    /// Tokens that stand for parts of images and videos, ascending.
    pub placeholders: Vec<u32>,
    /// Patches of the largest image by the preprocessors of released models, where a model's own is not known.
    pub released_patches: usize,
    /// Content of `preprocessor_config.json`; empty until the files of the model are read.
    pub preprocessor: String,
}

/// A learned grid of positions, which is resampled to the grid of an image's patches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PositionGrid {
    /// Number of rows of positions.
    pub rows: usize,
    /// Number of columns of positions.
    pub columns: usize,
    /// Whether files have it as a list of positions, row by row, and not as a grid.
    pub is_list: bool,
    /// How it is resampled.
    pub resampling: Resampling,
}

/// Interpolation of a grid of positions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Resampling {
    /// Bilinear; the first and last patches are at the ends of the grid.
    Bilinear,
    /// Bicubic (Keys 1981, doi:10.1109/TASSP.1981.1163711, with a = −0.75); patches and elements of the grid are areas, whose
    /// centres count, and elements beyond the border are those at the border.
    Bicubic,
}

/// Rotation of queries and keys by the coordinates of a patch. Each coordinate has as many frequencies as a quarter of a head has
/// elements.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PatchRotation {
    /// An element of the first half of a head and the one half a head behind it are a pair. The first half of pairs is rotated by
    /// the row, the second by the column.
    Halves,
    /// Neighbouring elements are a pair. Pairs are rotated by the column and by the row in turn, both with the same frequency.
    Neighbours,
}

impl VisionConfig {
    /// Returns the number of patches of a token.
    pub fn merged(&self) -> usize {
        self.merge * self.merge
    }

    /// Returns the extents of the tower's tensors by name, in the order in which they are used.
    pub fn tensors(&self) -> Vec<VisionTensor> {
        let (names, d, joined) = (&self.names, self.hidden, self.hidden * self.merged());
        let mut tensors = Tensors::default();
        tensors.linear(names.patch_embed, [d, self.patch_dim]);
        let PositionGrid { rows, columns, is_list, .. } = self.positions;
        tensors.add(names.positions.to_owned(), if is_list { vec![rows * columns, d] } else { vec![rows, columns, d] });
        let BlockNames { qkv, proj, mlp, norms } = names.block;
        for block in 0..self.depth {
            let extents = [(qkv, [3 * d, d]), (proj, [d, d]), (mlp[0], [self.width, d]), (mlp[1], [d, self.width])];
            extents.into_iter().for_each(|(name, extents)| tensors.linear(&names.in_block(block, name), extents));
            norms.iter().for_each(|name| tensors.norm(&names.in_block(block, name), d));
        }
        if let Some(name) = names.final_norm {
            tensors.norm(name, d);
        }
        let MergerNames { norm, mlp } = names.merger_modules;
        let features = (0..self.deepstack.len()).map(|k| (Some(k), joined));
        for (merger, normed) in std::iter::once((None, d)).chain(features) {
            tensors.norm(&names.in_merger(merger, norm), normed);
            tensors.linear(&names.in_merger(merger, mlp[0]), [joined, joined]);
            tensors.linear(&names.in_merger(merger, mlp[1]), [self.out, joined]);
        }
        tensors.0
    }
}

/// Extents that are collected.
#[derive(Default)]
struct Tensors(Vec<VisionTensor>);

impl Tensors {
    fn add(&mut self, name: String, shape: Vec<usize>) {
        self.0.push(VisionTensor { name, shape });
    }

    /// Adds a linear layer of so many outputs and inputs.
    fn linear(&mut self, module: &str, [outputs, inputs]: [usize; 2]) {
        self.add(format!("{module}.weight"), vec![outputs, inputs]);
        self.add(format!("{module}.bias"), vec![outputs]);
    }

    fn norm(&mut self, module: &str, width: usize) {
        self.add(format!("{module}.weight"), vec![width]);
        self.add(format!("{module}.bias"), vec![width]);
    }
}

impl VisionConfig {
    /// Patches of the largest image that fits a context of so many tokens.
    pub(crate) fn most_patches(&self, context: usize) -> usize {
        let preprocessor = Preprocessor::from_json(&self.preprocessor).ok();
        let most = preprocessor.map(|preprocessor| preprocessor.most_patches(Limits::default().side));
        most.unwrap_or(self.released_patches).min(context * self.merged())
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
    /// Extents, outermost first. Files may divide the last one of a matrix further.
    pub shape: Vec<usize>,
}

impl VisionTensor {
    /// Number of elements of the tensor.
    pub fn elements(&self) -> usize {
        self.shape.iter().product()
    }

    /// Returns whether a tensor of this shape in a file has these extents.
    pub fn fits(&self, found: &[usize]) -> bool {
        let undivided = (self.shape.len() - 1).max(1);
        found.get(..undivided) == self.shape.get(..undivided) && found.iter().product::<usize>() == self.elements()
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
        let bytes = |vision: &VisionConfig, tensor: &VisionTensor| {
            // Positions are added up in f32.
            let is_matrix = tensor.shape.len() > 1 && tensor.name != vision.names.positions;
            tensor.elements() * if is_matrix { element } else { size_of::<f32>() }
        };
        let of = |vision: &VisionConfig| vision.tensors().iter().map(|tensor| bytes(vision, tensor)).sum::<usize>();
        self.vision.as_ref().map_or(0, of)
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
