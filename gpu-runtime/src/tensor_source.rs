//! Read access to the tensors of a checkpoint, whatever its format.

use std::ops::Range;

use crate::blocks::{BlockFormat, BlockRows};
use crate::config::LoadError;
use crate::runs::Runs;

/// Read access to a checkpoint's tensors under the names of the parameter table
/// (`model.layers.0.self_attn.q_proj.weight`), whatever their names in the file.
pub trait TensorSource: Send {
    /// Returns the tensor's extents, outermost first; `None` if the tensor does not exist.
    fn shape(&self, name: &str) -> Option<Vec<usize>>;

    /// Returns the tensor's elements, row-major, converted or dequantized to f32.
    fn read(&self, name: &str) -> Result<Vec<f32>, LoadError>;

    /// Reads only these elements, like [`TensorSource::read`].
    ///
    /// # Errors
    /// Errors of [`TensorSource::read`], and an error if the tensor does not have these elements.
    fn read_part(&self, name: &str, elements: Range<usize>) -> Result<Vec<f32>, LoadError> {
        let all = self.read(name)?;
        all.get(elements.clone()).map(<[f32]>::to_vec).ok_or_else(|| absent_part(name, &elements))
    }

    /// Reads only these elements, one run after the other, like [`TensorSource::read`]. A source that can't read runs apart reads
    /// what is between them too.
    ///
    /// # Errors
    /// Errors of [`TensorSource::read_part`].
    fn read_runs(&self, name: &str, runs: Runs) -> Result<Vec<f32>, LoadError> {
        read_span(self, name, runs)
    }

    /// Returns the bytes of tensors that were read from files since these were opened; 0 if they are not counted.
    fn bytes_read(&self) -> u64 {
        0
    }

    /// Returns the format of the blocks that [`TensorSource::read_blocks`] reads; `None` if the tensor's rows are not
    /// whole blocks of a format that weights can be kept in.
    fn block_format(&self, _name: &str) -> Option<BlockFormat> {
        None
    }

    /// Returns the tensor's rows in their blocks, with the elements of [`TensorSource::read`]; `None` without
    /// [`TensorSource::block_format`].
    fn read_blocks(&self, _name: &str) -> Result<Option<BlockRows>, LoadError> {
        Ok(None)
    }

    /// Returns the quantized type that a tensor has in its file, by its usual name; `None` for floats of 16 bits or more.
    fn quantized_type(&self, _name: &str) -> Option<String> {
        None
    }

    /// Returns the names of all tensors, sorted.
    fn names(&self) -> Vec<String>;

    /// Returns the reason why the tensor of this name can't be read, if its type already shows this. A tensor that the
    /// model does not use may have any type.
    fn refusal(&self, _name: &str) -> Option<LoadError> {
        None
    }
}

/// A tensor that does not have some elements.
pub(crate) fn absent_part(name: &str, elements: &Range<usize>) -> LoadError {
    LoadError::MissingTensor(format!("{name}, elements {elements:?},"))
}

/// Reads runs with what is between them.
pub(crate) fn read_span(source: &(impl TensorSource + ?Sized), name: &str, runs: Runs) -> Result<Vec<f32>, LoadError> {
    let span = source.read_part(name, runs.span())?;
    Ok(if runs.is_joined() { span } else { runs.of_span(&span) })
}
