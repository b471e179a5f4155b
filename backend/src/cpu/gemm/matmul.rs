//! GEMMs with packed weights, one or many in one parallel region.

use std::ops::Range;
use std::time::Instant;

use super::super::Cpu;
use super::super::packed::NR;
use super::super::parallel::SharedPtr;
use super::additions::{Additions, add_bias_to_block};
use super::block::compute_block;
use super::lhs::PackedLhs;
use super::partition::{GemmWork, OutputBlock, check_fit, output_blocks};
use super::rhs::GemmRhs;
#[cfg(target_arch = "x86_64")]
use super::tiled::{can_fuse, compute_tiled_block};
use super::tiles::{TileOut, WriteMode};
use super::update::LowRankUpdate;

/// Fewest bytes of an output that is written past the caches.
pub(super) const STREAMED_BYTES: usize = 512 << 10;

/// `out[rows, n] (+)= x[rows, k] · Wᵀ`.
pub(crate) struct Gemm<'a> {
    /// The packed left side.
    pub x: &'a PackedLhs,
    /// Range of rows of `x` that are multiplied.
    pub rows: Range<usize>,
    /// The first position of its `k` that is multiplied, even; their number is that of `w`.
    pub x_k: usize,
    /// The weights `[n, k]`.
    pub w: GemmRhs<'a>,
    /// Dense rows of `n` elements.
    pub out: &'a mut [f32],
    /// The value that sums start from.
    pub start: SumStart<'a>,
    /// Added afterwards, block by block; each begins at a multiple of [`NR`] columns. Rows are those of `x`.
    pub low_rank: Vec<LowRankUpdate<'a>>,
    /// Added to every row at the end: `[n]`.
    pub bias: Option<&'a [f32]>,
}

/// The value that sums start from.
#[derive(Clone, Copy)]
pub(crate) enum SumStart<'a> {
    Zero,
    /// The output's old values.
    Output,
    /// Values from this slice, which has at least as many elements as the output.
    Of(&'a [f32]),
}

/// `c[rows, n] (+)= x · Wᵀ` on all threads. `c` is dense.
pub(crate) fn matmul<'a>(cpu: &Cpu, x: &PackedLhs, w: impl Into<GemmRhs<'a>>, c: &mut [f32], accumulate: bool) {
    let w = w.into();
    assert!(x.k() == w.k(), "GEMM of mismatched matrices");
    let start = if accumulate { SumStart::Output } else { SumStart::Zero };
    run_gemms(cpu, &mut [Gemm { x, rows: 0..x.rows(), x_k: 0, w, out: c, start, low_rank: Vec::new(), bias: None }]);
}

/// Runs several GEMMs in one parallel region. Their outputs are distinct.
pub(crate) fn run_gemms(cpu: &Cpu, gemms: &mut [Gemm<'_>]) {
    let (mut tasks, mut fused) = (Vec::new(), Vec::new());
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
            assert!(gemm.bias.is_none_or(|bias| bias.len() == gemm.w.n()), "GEMM with a bias of another width");
            if let SumStart::Of(values) = gemm.start {
                assert!(values.len() >= gemm.rows.len() * gemm.w.n(), "GEMM with too few values to add to");
            }
            fused.push(fuse_first(gemm));
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
            let write = match gemm.start {
                SumStart::Output | SumStart::Of(_) => WriteMode::Add,
                SumStart::Zero if size_of_val(gemm.out) >= STREAMED_BYTES => WriteMode::Stream,
                SumStart::Zero => WriteMode::Overwrite,
            };
            let (together, apart) = gemm.low_rank.split_at(fused[*i]);
            let out = TileOut { at, stride: n, write };
            // Tiles add it while the sums are in the cache, unless something comes before it.
            let (early, late) = match apart.is_empty() && is_tiled(gemm.x) {
                true => (gemm.bias, None),
                false => (None, gemm.bias),
            };
            let additions = Additions { updates: together, bias: early };
            match gemm.start {
                SumStart::Of(values) => {
                    let from = values.as_ptr().add((rows.start - gemm.rows.start) * n + columns.start);
                    add_to_values(cpu, gemm, &block, additions, from, out);
                }
                SumStart::Zero | SumStart::Output => compute_block(cpu, gemm.x, &gemm.w, &block, additions, out),
            }
            together.iter().for_each(|update| work.add(update.work(rows, columns)));
            for low_rank in apart {
                let out = TileOut { at, stride: n, write: WriteMode::Add };
                low_rank.add_to_block(cpu, rows, columns, out, &mut work);
            }
            if let Some(bias) = late {
                add_bias_to_block(cpu.isa(), bias, &block, out);
            }
        }
        cpu.meter.count(start, work.terms, work.weight_bytes);
    });
}

/// Like [`compute_block`], but added to the values at `from`, in rows of the same stride.
unsafe fn add_to_values(
    cpu: &Cpu,
    gemm: &Gemm<'_>,
    block: &OutputBlock,
    additions: Additions<'_>,
    from: *const f32,
    out: TileOut,
) {
    // SAFETY: as the caller ensures; the values and the output do not overlap.
    unsafe {
        #[cfg(target_arch = "x86_64")]
        if compute_tiled_block(cpu, gemm.x, &gemm.w, block, additions, out, Some(from)).is_some() {
            return;
        }
        for i in 0..block.rows.len() {
            let at = i * out.stride;
            std::ptr::copy_nonoverlapping(from.add(at), out.at.add(at), block.columns.len());
        }
        compute_block(cpu, gemm.x, &gemm.w, block, additions, out);
    }
}

/// Whether a left side is in tiles.
fn is_tiled(x: &PackedLhs) -> bool {
    #[cfg(target_arch = "x86_64")]
    return x.is_tiled();
    #[cfg(not(target_arch = "x86_64"))]
    {
        let _ = x;
        false
    }
}

/// Sorts the updates of a GEMM so that those which its kernel adds come first; returns their number.
fn fuse_first(gemm: &mut Gemm<'_>) -> usize {
    #[cfg(target_arch = "x86_64")]
    if gemm.x.is_tiled() {
        let rows = &gemm.rows;
        gemm.low_rank.sort_by_key(|update| !can_fuse(update, rows));
        return gemm.low_rank.iter().filter(|update| can_fuse(update, rows)).count();
    }
    let _ = gemm;
    0
}

/// Computes `c[rows, columns] (+)= x[rows] · W[columns, k]ᵀ` on the calling thread, for loss heads. `columns` starts at
/// a multiple of [`NR`]. `k` are positions in the inputs of `W`, as many as `x` has; it starts at an even one, in a
/// transpose at a multiple of [`GROUP`]. `c` has `ldc` elements per row.
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
    unsafe { compute_block(cpu, x, &w, &block, Additions::default(), out) };
    cpu.meter.count(start, work.terms, work.weight_bytes);
}
