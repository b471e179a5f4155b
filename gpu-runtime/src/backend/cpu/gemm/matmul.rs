//! GEMMs with packed weights, alone or many in one parallel region.

use std::ops::Range;
use std::time::Instant;

use super::super::Cpu;
use super::super::packed::NR;
use super::super::parallel::SharedPtr;
use super::block::{GemmWork, OutputBlock, compute_block};
use super::lhs::PackedLhs;
use super::low_rank::LowRankUpdate;
use super::partition::{check_fit, output_blocks};
use super::rhs::GemmRhs;
use super::tiles::{TileOut, WriteMode};

/// `out[rows, n] (+)= x[rows, k] · Wᵀ`.
pub(crate) struct Gemm<'a> {
    /// The left side.
    pub x: &'a PackedLhs,
    /// Its rows that are multiplied.
    pub rows: Range<usize>,
    /// The first position of its `k` that is multiplied, even; their number is that of `w`.
    pub x_k: usize,
    /// The weights `[n, k]`.
    pub w: GemmRhs<'a>,
    /// Dense rows of `n` elements.
    pub out: &'a mut [f32],
    /// Whether to add to `out`.
    pub accumulate: bool,
    /// Added afterwards, block by block; each begins at a multiple of [`NR`] columns. Rows are those of `x`.
    pub low_rank: Vec<LowRankUpdate<'a>>,
}

/// `c[rows, n] (+)= x · Wᵀ` on all threads. `c` is dense.
pub(crate) fn matmul<'a>(cpu: &Cpu, x: &PackedLhs, w: impl Into<GemmRhs<'a>>, c: &mut [f32], accumulate: bool) {
    let w = w.into();
    assert!(x.k() == w.k(), "GEMM of mismatched matrices");
    run_gemms(cpu, &mut [Gemm { x, rows: 0..x.rows(), x_k: 0, w, out: c, accumulate, low_rank: Vec::new() }]);
}

/// Runs several GEMMs in one parallel region. Their outputs are distinct.
pub(crate) fn run_gemms(cpu: &Cpu, gemms: &mut [Gemm<'_>]) {
    let mut tasks = Vec::new();
    let outs: Vec<SharedPtr<f32>> = gemms
        .iter_mut()
        .enumerate()
        .map(|(i, gemm)| {
            check_fit(gemm.x, gemm.x_k, &gemm.w, 0..gemm.w.k());
            gemm.low_rank.iter().for_each(|update| update.check(&gemm.rows, gemm.w.n()));
            assert!(gemm.low_rank.iter().all(|update| update.at.is_multiple_of(NR)), "low-rank update within a panel");
            assert!(
                gemm.rows.end <= gemm.x.rows() && gemm.out.len() >= gemm.rows.len() * gemm.w.n(),
                "GEMM out of bounds"
            );
            let blocks = output_blocks(cpu, gemm.rows.clone(), gemm.x.tile_rows(), &gemm.w);
            tasks.extend(blocks.into_iter().map(|block| (i, block)));
            SharedPtr(gemm.out.as_mut_ptr())
        })
        .collect();
    let gemms = &*gemms;
    cpu.pool.run(tasks.len(), |task| {
        let (i, (rows, columns)) = &tasks[task];
        let gemm = &gemms[*i];
        let n = gemm.w.n();
        let block = OutputBlock { rows: rows.clone(), columns: columns.clone(), x_k: gemm.x_k, w_k: 0..gemm.w.k() };
        let (start, mut work) = (Instant::now(), GemmWork::of(&block, &gemm.w));
        // SAFETY: checked above; blocks of a GEMM are disjoint and each GEMM has an output of its own.
        unsafe {
            let at = outs[*i].ptr().add((rows.start - gemm.rows.start) * n + columns.start);
            let write = WriteMode::add_if(gemm.accumulate);
            compute_block(cpu, gemm.x, &gemm.w, &block, TileOut { at, stride: n, write });
            for low_rank in &gemm.low_rank {
                let out = TileOut { at, stride: n, write: WriteMode::Add };
                low_rank.add_to_block(cpu, rows, columns, out, &mut work);
            }
        }
        cpu.meter.count(start, work.terms, work.weight_bytes);
    });
}

/// `c[rows, columns] (+)= x[rows] · W[columns, k]ᵀ` on the calling thread: for loss heads. `columns` starts at a multiple of
/// [`NR`]; `k`, positions in the inputs of `W`, as many as `x` has, starts at an even one, in a transpose at a multiple of
/// [`GROUP`]. `c` has `ldc` elements per row.
pub(crate) fn matmul_block<'a>(
    cpu: &Cpu,
    x: &PackedLhs,
    rows: Range<usize>,
    w: impl Into<GemmRhs<'a>>,
    columns: Range<usize>,
    k: Range<usize>,
    c: &mut [f32],
    ldc: usize,
    accumulate: bool,
) {
    let (w, width) = (w.into(), columns.len());
    check_fit(x, 0, &w, k.clone());
    assert!(columns.start.is_multiple_of(NR) && columns.end <= w.n() && rows.end <= x.rows() && width <= ldc);
    assert!(rows.is_empty() || c.len() >= (rows.len() - 1) * ldc + width);
    let block = OutputBlock { rows, columns, x_k: 0, w_k: k };
    let (start, work) = (Instant::now(), GemmWork::of(&block, &w));
    let out = TileOut { at: c.as_mut_ptr(), stride: ldc, write: WriteMode::add_if(accumulate) };
    // SAFETY: checked above: `c` holds the block, left side and weights hold its rows, columns and positions.
    unsafe { compute_block(cpu, x, &w, &block, out) };
    cpu.meter.count(start, work.terms, work.weight_bytes);
}
