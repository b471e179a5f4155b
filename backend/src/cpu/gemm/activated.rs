//! The product with the weights of an MLP without a gate, of which only the activation is stored. Each strip of sums is activated
//! before it leaves the cache.

use std::time::Instant;

use super::super::packed::{NR, PackedMatrix};
use super::super::parallel::SharedPtr;
use super::super::tile_layout::{TILE, TILE_K};
use super::super::{Cpu, Isa};
use super::additions::Additions;
use super::gated::store_tiles;
use super::lhs::{LhsData, PackedLhs};
use super::partition::{GemmWork, OutputBlock, check_fit, output_blocks};
use super::rhs::GemmRhs;
use super::tiled::{STAGED_TILES, TiledBlock};

/// `act(x · Wᵀ + bias)`.
pub(crate) struct ActivatedGemm<'a> {
    pub x: &'a PackedLhs,
    pub w: &'a PackedMatrix,
    pub bias: Option<&'a [f32]>,
    /// Computes elements from as many elements; 0 from 0.
    pub act: fn(Isa, &[f32], &mut [f32]),
}

/// The activation, equal to the bit to that of a GEMM's output, as the left side of a GEMM. `None`, without doing anything, where
/// sides are not in tiles, or of so few rows that sums are not staged.
pub(crate) fn run_activated_gemm(cpu: &Cpu, gemm: &ActivatedGemm<'_>) -> Option<PackedLhs> {
    const { assert!(NR == TILE_K, "a strip is a tile of the left side") };
    let (x, w) = (gemm.x, GemmRhs::from(gemm.w));
    let (rows, n) = (x.rows(), w.n());
    if rows <= STAGED_TILES * TILE || !x.is_tiled() {
        return None;
    }
    check_fit(x, 0, &w, 0..w.k());
    assert!(gemm.bias.is_none_or(|bias| bias.len() == n), "GEMM with a bias of another width");
    let mut lhs = PackedLhs::empty(cpu, w.dtype(), rows, n);
    let row_words = lhs.stored_k / 2;
    let LhsData::Tiles(words) = &mut lhs.data else { return None };
    assert!(lhs.stored_k == n.next_multiple_of(NR), "the last strip has the zeros beyond the last column");
    // The last tile has zeros where it has no row.
    words[rows / TILE * TILE * row_words..].fill(0);
    let words = SharedPtr(words.as_mut_ptr());
    let blocks = output_blocks(cpu, 0..rows, x.tile_rows(), &w);
    let additions = Additions { updates: &[], bias: gemm.bias };
    cpu.pool.run(blocks.len(), |task| {
        let (rows, columns) = &blocks[task];
        let start = Instant::now();
        let block = OutputBlock { rows: rows.clone(), columns: columns.clone(), x_k: 0, w_k: 0..w.k() };
        // Sides were found to be in tiles.
        let Some(tiled) = TiledBlock::of(cpu, x, &w, &block, additions) else { return };
        let (len, used) = (tiled.strip_len(), rows.len() * NR);
        let (mut sums, mut scratch) = (cpu.buffer(2 * len), tiled.scratch(cpu));
        let (sums, activated) = sums.split_at_mut(len);
        // SAFETY: checked above; blocks have rows or columns of their own of the left side; the processor has the unit and
        // AVX-512, as sides in tiles say. Columns of a panel beyond the weights have sums of zero.
        unsafe {
            tiled.unit.configure();
            for column in columns.clone().step_by(NR) {
                tiled.sum_strip(cpu, column, false, sums, &mut scratch);
                additions.add_bias(cpu, column, &mut sums[..used]);
                (gemm.act)(cpu.isa(), &sums[..used], &mut activated[..used]);
                let tile = words.ptr().add(column / TILE_K * TILE * (TILE_K / 2));
                store_tiles(&activated[..used], rows.start, tile, row_words);
            }
        }
        let work = GemmWork::of(&block, &w);
        cpu.meter.count(start, work.terms, work.weight_bytes);
    });
    Some(lhs)
}
