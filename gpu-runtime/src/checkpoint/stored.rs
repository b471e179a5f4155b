//! Parameters as the files of their family store them: under the names there, fused and stacked.

use std::io;
use std::sync::{Mutex, PoisonError};

use super::Elements;
use crate::backend::ChunkSink;
use crate::config::{ModelConfig, TensorSource};
use crate::load::{Arrangement, Columns, file_tensors};
use crate::model::ParamSpec;

/// A tensor of a file: its name, its extents and its elements.
pub(crate) type StoredTensor<'a, T> = (String, Vec<usize>, StoredElements<'a, T>);

/// Elements of a tensor of a file, which are put together as they are written.
pub(crate) enum StoredElements<'a, T> {
    /// Parameters, one after the other.
    Rows(Vec<&'a T>),
    /// Projections of experts, expert by expert.
    Columns(Columns, Vec<&'a T>),
    /// Values that no run trains.
    Fixed(&'a [f32]),
    /// A tensor of the base model's files.
    OfBase(BaseTensor<'a>),
}

/// Source of a base model's tensors, which others read in between.
pub(crate) type SharedSource = Mutex<Box<dyn TensorSource>>;

/// A tensor that is read piece by piece as it is written.
pub(crate) struct BaseTensor<'a> {
    source: &'a SharedSource,
    name: String,
    elements: usize,
}

impl BaseTensor<'_> {
    /// Elements that are read at a time.
    const PIECE: usize = 1 << 20;

    fn for_each_chunk(&self, sink: &mut ChunkSink<'_>) -> io::Result<()> {
        (0..self.elements).step_by(Self::PIECE).try_for_each(|start| {
            let part = start..self.elements.min(start + Self::PIECE);
            let piece = self.source.lock().unwrap_or_else(PoisonError::into_inner).read_part(&self.name, part);
            sink(&piece.map_err(io::Error::other)?)
        })
    }
}

impl<T: Elements> Elements for StoredElements<'_, T> {
    fn count(&self) -> usize {
        match self {
            Self::Rows(parts) | Self::Columns(_, parts) => parts.iter().map(|part| part.count()).sum(),
            Self::Fixed(values) => values.len(),
            Self::OfBase(tensor) => tensor.elements,
        }
    }

    fn for_each_chunk(&self, sink: &mut ChunkSink<'_>) -> io::Result<()> {
        match self {
            Self::Rows(parts) => parts.iter().try_for_each(|part| part.for_each_chunk(sink)),
            Self::Columns(columns, parts) => {
                let mut matrix = vec![0.0; columns.elements()];
                parts.chunks_exact(columns.projections).try_for_each(|expert| {
                    for (projection, part) in expert.iter().enumerate() {
                        for (output, row) in part.whole()?.chunks_exact(columns.inputs).enumerate() {
                            for (input, value) in row.iter().enumerate() {
                                matrix[columns.index(projection, output, input)] = *value;
                            }
                        }
                    }
                    sink(&matrix)
                })
            }
            Self::Fixed(values) => sink(values),
            Self::OfBase(tensor) => tensor.for_each_chunk(sink),
        }
    }
}

/// The tensors of a file with these parameters. With them what no run trains, but a file needs: the corrections of routers.
pub(crate) fn stored_tensors<'a, T: Elements>(
    c: &'a ModelConfig,
    specs: &[ParamSpec],
    values: &'a [T],
) -> Vec<StoredTensor<'a, T>> {
    let parameters = file_tensors(c, specs).into_iter().map(|tensor| {
        let parts = tensor.parts.into_iter().map(|part| &values[part]).collect();
        let elements = match tensor.arrangement {
            Arrangement::Rows => StoredElements::Rows(parts),
            Arrangement::Columns(columns) => StoredElements::Columns(columns, parts),
        };
        (tensor.name, tensor.shape, elements)
    });
    let corrections = c.corrections().map(|(name, values)| (name, vec![values.len()], StoredElements::Fixed(values)));
    let all = parameters.chain(corrections);
    all.map(|(name, shape, elements)| (c.spelling.in_files(&name), shape, elements)).collect()
}

/// The tensors of a base model's files that belong to the model, although no parameter is stored in them: vision towers and
/// indexers. Buffers that are not numbers are left out.
pub(crate) fn kept_tensors<'a, T>(c: &ModelConfig, source: &'a SharedSource) -> Vec<StoredTensor<'a, T>> {
    let tensors = source.lock().unwrap_or_else(PoisonError::into_inner);
    let kept = tensors.names().into_iter().filter(|name| c.spelling.is_kept(name) && tensors.refusal(name).is_none());
    kept.filter_map(|name| {
        let shape = tensors.shape(&name)?;
        let elements = shape.iter().product();
        let in_files = c.spelling.in_files(&name);
        Some((in_files, shape, StoredElements::OfBase(BaseTensor { source, name, elements })))
    })
    .collect()
}
