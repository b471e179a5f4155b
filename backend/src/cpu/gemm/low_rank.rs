//! Adds low-rank updates to a matrix: small GEMMs on some of its rows and columns.

use std::ops::Range;
use std::time::Instant;

use super::super::Cpu;
use super::super::parallel::SharedPtr;
use super::additions::Additions;
use super::block::compute_block;
use super::partition::{GemmWork, OutputBlock, output_blocks};
use super::tiles::{TileOut, WriteMode};
use super::update::LowRankUpdate;

impl LowRankUpdate<'_> {
    /// Adds where the update and a block of the output intersect. `out` points at the block's first element.
    ///
    /// # Safety
    /// The update was checked against the output; nobody else accesses the block; the block's first column and the
    /// update's are a multiple of [`NR`](super::super::packed::NR) apart.
    pub(super) unsafe fn add_to_block(
        &self,
        cpu: &Cpu,
        rows: &Range<usize>,
        columns: &Range<usize>,
        out: TileOut,
        work: &mut GemmWork,
    ) {
        let Some((r, c)) = self.intersection(rows, columns) else { return };
        let own = self.columns();
        for (z, w) in &self.terms {
            let block = OutputBlock {
                rows: r.start - self.rows.start..r.end - self.rows.start,
                columns: c.start - own.start..c.end - own.start,
                x_k: 0,
                w_k: 0..w.k(),
            };
            work.add(GemmWork::of(&block, w));
            // SAFETY: the intersection lies in the block.
            unsafe {
                let at = out.at.add((r.start - rows.start) * out.stride + c.start - columns.start);
                compute_block(
                    cpu,
                    z,
                    w,
                    &block,
                    Additions::default(),
                    TileOut { at, stride: out.stride, write: WriteMode::Add },
                );
            }
        }
    }
}

/// Applies updates to `out`, whose rows have `stride` elements, on all threads. Updates do not overlap.
pub(crate) fn add_low_rank(cpu: &Cpu, out: &mut [f32], stride: usize, updates: &[LowRankUpdate<'_>]) {
    let matrix = 0..out.len().checked_div(stride).unwrap_or(0);
    let mut tasks = Vec::new();
    for (i, update) in updates.iter().enumerate() {
        update.check(&matrix, stride);
        let columns = update.columns();
        let apart = |a: &Range<usize>, b: &Range<usize>| a.end <= b.start || b.end <= a.start;
        let clear = |other: &LowRankUpdate<'_>| apart(&other.rows, &update.rows) || apart(&other.columns(), &columns);
        assert!(updates[..i].iter().all(clear), "low-rank updates overlap");
        let Some((z, w)) = update.terms.first() else { continue };
        tasks
            .extend(output_blocks(cpu, update.rows.clone(), z.tile_rows(), w).into_iter().map(|block| (update, block)));
    }
    let base = SharedPtr(out.as_mut_ptr());
    cpu.pool.run(tasks.len(), |task| {
        let (update, (rows, columns)) = &tasks[task];
        let columns = update.at + columns.start..update.at + columns.end;
        let (start, mut work) = (Instant::now(), GemmWork::default());
        // SAFETY: bounds are checked above; blocks of an update are disjoint, and so are updates.
        unsafe {
            let at = base.ptr().add(rows.start * stride + columns.start);
            update.add_to_block(cpu, rows, &columns, TileOut { at, stride, write: WriteMode::Add }, &mut work);
        }
        cpu.meter.count(start, work.terms, work.weight_bytes);
    });
}
