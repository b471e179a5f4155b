//! Parameters as files of their family hold them: under the names there, fused and stacked.

use std::io;

use super::Elements;
use crate::backend::ChunkSink;
use crate::config::ModelConfig;
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
}

impl<T: Elements> Elements for StoredElements<'_, T> {
    fn count(&self) -> usize {
        match self {
            Self::Rows(parts) | Self::Columns(_, parts) => parts.iter().map(|part| part.count()).sum(),
            Self::Fixed(values) => values.len(),
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
