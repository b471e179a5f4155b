//! Adapters on linear layers: the segments of a call as one table on the device.

use std::ops::Range;

use super::Cuda;
use super::elements::{Elements, GemmElement, GradientSide, OutputGradient};
use super::params::CudaParams;
use crate::backend::cuda::device::error::Result;
use crate::backend::cuda::ops::copies::part_of_rows;
use crate::backend::cuda::ops::lora::{DeviceAdapter, LoraLayer, LoraTable};
use crate::backend::cuda::ops::outer::{OuterProducts, OuterSide};
use crate::backend::cuda::ops::rows::DeviceRows;
use crate::backend::{GradientSlot, LoraSegment};

/// The value `scale · (x Aᵀ)` for each segment of a call, or the gradient with respect to `x Aᵀ`.
pub struct LowRank(pub(super) Option<LowRankRows>);

/// The columns where segments begin, and for each of them the indices of the segments and their rows.
type Columns = Vec<(usize, Vec<(usize, Range<usize>)>)>;

/// Low-rank rows of all segments.
pub(super) struct LowRankRows {
    /// `[columns · rows of the batch, rank]`, with the largest rank: rounded, but for those of the unembedding.
    pub(super) rows: Elements,
    columns: Columns,
}

impl LowRankRows {
    /// Rows of the batch.
    fn count(&self) -> usize {
        self.rows.rows() / self.columns.len().max(1)
    }

    /// Rows of a segment, as a side of gradients.
    pub(super) fn side(&self, layer: usize, rank: usize) -> OuterSide<'_> {
        let side = match &self.rows {
            Elements::F32(rows) => OuterSide::new(rows, 0, rank),
            Elements::Bf16(rows) => OuterSide::new(rows, 0, rank),
        };
        OuterSide { first_row: layer * self.count(), ..side }
    }

    /// The layer of each segment with a gradient of A (0) or B (1), the index of its sink, and the segment.
    pub(super) fn trained<'s, 'l>(
        &'s self,
        lora: &'s [LoraSegment<'l, Cuda>],
        which: usize,
    ) -> impl Iterator<Item = (usize, GradientSlot, &'s LoraSegment<'l, Cuda>)> {
        let layers = self.columns.iter().enumerate();
        let segments = layers.flat_map(|(layer, (_, segments))| segments.iter().map(move |of| (layer, of.0)));
        segments.filter_map(move |(layer, index)| {
            let segment = lora.get(index)?;
            Some((layer, segment.grads[which].filter(|_| segment.trains)?, segment))
        })
    }
}

impl LowRank {
    /// Rows of a segment, `[rows of the segment, rank]`; without rows if the segment has none.
    pub(super) fn of_segment(&self, cuda: &Cuda, segment: usize, rank: usize) -> Result<DeviceRows> {
        let Some(own) = &self.0 else { return DeviceRows::uninitialised(&cuda.device, 0, rank) };
        for (layer, (_, segments)) in own.columns.iter().enumerate() {
            if let Some((_, rows)) = segments.iter().find(|(index, _)| *index == segment) {
                let first = layer * own.count();
                let rows = first + rows.start..first + rows.end;
                return match &own.rows {
                    Elements::F32(all) => part_of_rows(&cuda.device, all, rows, rank),
                    Elements::Bf16(all) => part_of_rows(&cuda.device, all, rows, rank),
                };
            }
        }
        DeviceRows::uninitialised(&cuda.device, 0, rank)
    }
}

/// The adapters of a call.
pub(super) struct Adapters<'a, T: GemmElement> {
    pub(super) table: LoraTable<'a, T>,
    columns: Columns,
}

impl<T: GemmElement> Adapters<'_, T> {
    pub(super) fn low_rank<U: GemmElement>(&self, rows: DeviceRows<U>) -> LowRankRows {
        LowRankRows { rows: U::elements(rows), columns: self.columns.clone() }
    }
}

impl Cuda {
    /// The adapters of segments over a batch of `rows` rows, if there are any. Those for which `counts` does not hold add nothing.
    pub(super) fn adapters<'a, T: GemmElement>(
        &self,
        lora: &[LoraSegment<'a, Self>],
        rows: usize,
        counts: impl Fn(&LoraSegment<'a, Self>) -> bool,
    ) -> Result<Option<Adapters<'a, T>>> {
        let Some(first) = lora.first() else { return Ok(None) };
        let (mut columns, mut layers): (Columns, Vec<LoraLayer<'a, T>>) = (Vec::new(), Vec::new());
        for (index, segment) in lora.iter().enumerate() {
            let known = columns.iter().position(|(column, _)| *column == segment.column);
            let at = known.unwrap_or(columns.len());
            if known.is_none() {
                columns.push((segment.column, Vec::new()));
                let (column, outputs) = (segment.column, segment.extents.0);
                layers.push(LoraLayer { column, outputs, adapters: Vec::new(), rows: vec![None; rows] });
            }
            let ((_, segments), layer) = (&mut columns[at], &mut layers[at]);
            if counts(segment) {
                layer.rows[segment.rows.clone()].fill(Some(layer.adapters.len()));
            }
            let (a, b) = (T::of(&segment.a.0)?, T::of(&segment.b.0)?);
            layer.adapters.push(DeviceAdapter { a, b, scale: segment.scale });
            segments.push((index, segment.rows.clone()));
        }
        let table = LoraTable::new(&self.device, &layers, first.extents.1, &self.row_indices)?;
        Ok(Some(Adapters { table, columns }))
    }

    /// Adds the gradients of A, `dzᵀ x`, and of B, `dyᵀ z`, of the segments that train and whose group has a sink; that of B may be
    /// left out. On tensor cores where the type is bf16.
    pub(super) fn adapter_gradients(
        &self,
        lora: &[LoraSegment<'_, Self>],
        sequences: &[Range<usize>],
        dz: &LowRank,
        x: &GradientSide<'_>,
        z: &LowRank,
        dy: &OutputGradient<'_>,
        sinks: &mut [Option<&mut CudaParams>],
    ) -> Result {
        let mut gradients = OuterProducts::new();
        for (which, (low_rank, wide)) in [(dz, x), (z, &dy.side)].into_iter().enumerate() {
            let Some(low_rank) = &low_rank.0 else { continue };
            for (layer, GradientSlot { param, first }, segment) in low_rank.trained(lora, which) {
                let Some(sink) = sinks.get_mut(segment.group).and_then(Option::as_deref_mut) else { continue };
                let (narrow, (outputs, inputs)) = (low_rank.side(layer, segment.rank), segment.extents);
                let sides = match which {
                    0 => [narrow, wide.side(0, inputs)],
                    _ => [wide.side(segment.column, outputs), narrow],
                };
                gradients.push(&mut sink.0[param], first, sides, &within(sequences, &segment.rows))?;
            }
        }
        gradients.launch(&self.device)
    }
}

/// The sequences of a segment; all of its rows as one where none are known.
pub(super) fn within(sequences: &[Range<usize>], rows: &Range<usize>) -> Vec<Range<usize>> {
    let part = |of: &Range<usize>| of.start.max(rows.start)..of.end.min(rows.end);
    let own: Vec<_> = sequences.iter().map(part).filter(|part| !part.is_empty()).collect();
    let covered = own.iter().map(Range::len).sum::<usize>() == rows.len();
    if covered { own } else { vec![rows.clone()] }
}
