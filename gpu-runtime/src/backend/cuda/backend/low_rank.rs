//! Adapters on linear layers: the segments of a call as tables of the device, one for each column where segments begin.

use std::ops::Range;

use super::super::{DeviceAdapter, DeviceRows, LoraTable, OuterProduct, Result, outer_products, part_of_rows};
use super::elements::GemmElement;
use super::{Cuda, CudaParams};
use crate::backend::{GradientSlot, LoraSegment};

/// For each segment of a call `scale · (x Aᵀ)`, or the gradient with respect to `x Aᵀ`.
pub struct LowRank(pub(super) Vec<LowRankColumn>);

/// That of the segments that begin at a column.
pub(super) struct LowRankColumn {
    /// `[rows, rank]` of the batch, with the largest rank.
    pub(super) rows: DeviceRows,
    /// Indices of the segments, and their rows.
    segments: Vec<(usize, Range<usize>)>,
}

impl LowRank {
    /// That of a segment, `[rows of the segment, rank]`; without rows where it has none.
    pub(super) fn of_segment(&self, cuda: &Cuda, segment: usize, rank: usize) -> Result<DeviceRows> {
        let of = |column: &LowRankColumn| {
            let found = column.segments.iter().find(|(index, _)| *index == segment);
            found.map(|(_, rows)| part_of_rows(&cuda.device, &column.rows, rows.clone(), rank))
        };
        let found = self.0.iter().find_map(of);
        found.unwrap_or_else(|| DeviceRows::uninitialised(&cuda.device, 0, rank))
    }
}

/// The segments that begin at a column.
pub(super) struct ColumnAdapters<'a, T: GemmElement> {
    pub(super) column: usize,
    pub(super) table: LoraTable<'a, T>,
    segments: Vec<(usize, Range<usize>)>,
}

impl<T: GemmElement> ColumnAdapters<'_, T> {
    /// `scale · (x Aᵀ)`.
    pub(super) fn shrink(&self, cuda: &Cuda, x: &DeviceRows<T>) -> Result<LowRankColumn> {
        Ok(self.low_rank(self.table.shrink(&cuda.device, x)?))
    }

    /// `scale · (dy B)`.
    pub(super) fn shrink_backward(&self, cuda: &Cuda, dy: &DeviceRows<T>) -> Result<LowRankColumn> {
        Ok(self.low_rank(self.table.shrink_backward(&cuda.device, dy, self.column)?))
    }

    pub(super) fn low_rank(&self, rows: DeviceRows) -> LowRankColumn {
        LowRankColumn { rows, segments: self.segments.clone() }
    }
}

impl Cuda {
    /// The adapters of segments over a batch of `rows` rows, column by column. Those for which `counts` does not hold add nothing.
    pub(super) fn adapters<'a, T: GemmElement>(
        &self,
        lora: &[LoraSegment<'a, Self>],
        rows: usize,
        counts: impl Fn(&LoraSegment<'a, Self>) -> bool,
    ) -> Result<Vec<ColumnAdapters<'a, T>>> {
        let mut columns: Vec<usize> = Vec::new();
        for segment in lora {
            if !columns.contains(&segment.column) {
                columns.push(segment.column);
            }
        }
        let of = |column: usize| {
            let (mut adapters, mut of_row, mut segments, mut layer) =
                (Vec::new(), vec![None; rows], Vec::new(), (0, 0));
            for (index, segment) in lora.iter().enumerate().filter(|(_, segment)| segment.column == column) {
                if counts(segment) {
                    of_row[segment.rows.clone()].fill(Some(adapters.len()));
                }
                let (a, b) = (T::of(&segment.a.0)?, T::of(&segment.b.0)?);
                adapters.push(DeviceAdapter { a, b, scale: segment.scale });
                segments.push((index, segment.rows.clone()));
                layer = segment.extents;
            }
            let table = LoraTable::new(&self.device, &adapters, &of_row, layer)?;
            Ok(ColumnAdapters { column, table, segments })
        };
        columns.into_iter().map(of).collect()
    }

    /// Adds the gradients of A, `dzᵀ x`, and of B, `dyᵀ z`, of the segments that train and whose group has a sink; each may be left
    /// out.
    pub(super) fn adapter_gradients(
        &self,
        lora: &[LoraSegment<'_, Self>],
        a: Option<(&LowRank, &DeviceRows)>,
        b: Option<(&LowRank, &DeviceRows)>,
        sinks: &mut [Option<&mut CudaParams>],
    ) -> Result {
        for column in a.iter().flat_map(|(dz, _)| &dz.0) {
            let Some((_, x)) = a else { continue };
            let mut outs = column_gradients(lora, column, 0, sinks, |segment| (segment.rank, segment.extents.1));
            outer_products(&self.device, (&column.rows, 0), (x, 0), &mut outs)?;
        }
        for column in b.iter().flat_map(|(z, _)| &z.0) {
            let Some((_, dy)) = b else { continue };
            let first = column.segments.first().and_then(|(index, _)| lora.get(*index)).map_or(0, |s| s.column);
            let mut outs = column_gradients(lora, column, 1, sinks, |segment| (segment.extents.0, segment.rank));
            outer_products(&self.device, (dy, first), (&column.rows, 0), &mut outs)?;
        }
        Ok(())
    }
}

/// The places of the gradients of A (0) or B (1) of a column's segments, each of a group of its own.
pub(super) fn column_gradients<'s>(
    lora: &[LoraSegment<'_, Cuda>],
    column: &LowRankColumn,
    which: usize,
    sinks: &'s mut [Option<&mut CudaParams>],
    extents: impl Fn(&LoraSegment<'_, Cuda>) -> (usize, usize),
) -> Vec<OuterProduct<'s>> {
    let of_group = |(group, sink): (usize, &'s mut Option<&mut CudaParams>)| {
        let own = column.segments.iter().filter_map(|(index, _)| lora.get(*index));
        let segment = own.into_iter().find(|segment| segment.group == group && segment.trains)?;
        let (params, GradientSlot { param, first }) = (sink.as_deref_mut()?, segment.grads[which]?);
        let (left, right) = extents(segment);
        let rows = (segment.rows.start, segment.rows.len());
        Some(OuterProduct { gradient: &mut params.0[param], first, rows, left, right })
    };
    sinks.iter_mut().enumerate().filter_map(of_group).collect()
}
