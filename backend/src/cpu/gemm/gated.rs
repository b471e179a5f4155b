//! The product with the weights of a gated MLP, gate then up. Each strip of sums is activated before it leaves the
//! cache.

use std::arch::x86_64::{_mm512_loadu_ps, _mm512_storeu_si512};
use std::time::Instant;

use super::super::Cpu;
use super::super::avx512::round;
use super::super::elementwise::GatedRow;
use super::super::packed::NR;
use super::super::parallel::SharedPtr;
use super::super::tile_layout::{TILE, TILE_K};
use super::additions::Additions;
use super::lhs::{LhsData, PackedLhs};
use super::matmul::{Gemm, STREAMED_BYTES, SumStart};
use super::partition::{GemmWork, OutputBlock, blocks_of_columns, check_fit};
use super::tiled::{STAGED_TILES, TiledBlock, can_fuse, store_strip};
use super::tiles::{TileOut, WriteMode};

/// Runs [`run_gemms`](super::run_gemms) for one GEMM whose output has gates, then as many ups; returns the activation,
/// equal to the bit, as the left side of a GEMM. `None`, without writing anything, if two passes are needed.
pub(crate) fn run_gated_gemm(cpu: &Cpu, gemm: &mut Gemm<'_>, act: GatedRow) -> Option<PackedLhs> {
    const { assert!(NR == TILE_K, "a strip is a tile of the left side") };
    let (n, rows) = (gemm.w.n(), gemm.x.rows());
    let width = n / 2;
    let whole = gemm.bias.is_none() && gemm.rows == (0..rows) && n.is_multiple_of(2 * NR) && rows > STAGED_TILES * TILE;
    let fused = gemm.low_rank.iter().all(|update| update.at.is_multiple_of(NR) && can_fuse(update, &gemm.rows));
    if !whole || !fused || !gemm.x.is_tiled() || !matches!(gemm.start, SumStart::Zero) {
        return None;
    }
    let mut lhs = PackedLhs::empty(cpu, gemm.w.dtype(), rows, width);
    let row_words = lhs.stored_k / 2;
    let LhsData::Tiles(words) = &mut lhs.data else { return None };
    check_fit(gemm.x, gemm.x_k, &gemm.w, 0..gemm.w.k());
    gemm.low_rank.iter().for_each(|update| update.check(&gemm.rows, n));
    assert!(gemm.out.len() >= rows * n, "GEMM out of bounds");
    // The last tile has zeros where it has no row.
    words[rows / TILE * TILE * row_words..].fill(0);
    let write = if size_of_val(gemm.out) >= STREAMED_BYTES { WriteMode::Stream } else { WriteMode::Overwrite };
    let (out, words) = (SharedPtr(gemm.out.as_mut_ptr()), SharedPtr(words.as_mut_ptr()));
    let blocks = blocks_of_columns(cpu, 0..rows, gemm.x.tile_rows(), &gemm.w, width);
    let gemm = &*gemm;
    let additions = Additions { updates: &gemm.low_rank, bias: None };
    cpu.pool.run(blocks.len(), |task| {
        let (rows, columns) = &blocks[task];
        let start = Instant::now();
        let block = OutputBlock { rows: rows.clone(), columns: columns.clone(), x_k: gemm.x_k, w_k: 0..gemm.w.k() };
        // Sides were found to be in tiles.
        let Some(tiled) = TiledBlock::of(cpu, gemm.x, &gemm.w, &block, additions) else { return };
        let (len, used) = (tiled.strip_len(), rows.len() * NR);
        let (mut sums, mut scratch) = (cpu.buffer(3 * len), tiled.scratch(cpu));
        let (gate, rest) = sums.split_at_mut(len);
        let (up, activated) = rest.split_at_mut(len);
        // SAFETY: checked above; blocks have rows or columns of their own, of gate, of up and of the left side; the processor
        // has the unit and AVX-512, as sides in tiles say.
        unsafe {
            tiled.unit.configure();
            for column in columns.clone().step_by(NR) {
                let at = out.ptr().add(rows.start * n + column);
                tiled.sum_strip(cpu, column, false, gate, &mut scratch);
                tiled.sum_strip(cpu, width + column, false, up, &mut scratch);
                store_strip(&gate[..used], NR, TileOut { at, stride: n, write });
                store_strip(&up[..used], NR, TileOut { at: at.add(width), stride: n, write });
                act(cpu.isa(), &gate[..used], &up[..used], &mut activated[..used]);
                let tile = words.ptr().add(column / TILE_K * TILE * (TILE_K / 2));
                store_tiles(&activated[..used], rows.start, tile, row_words);
            }
        }
        let mut work = GemmWork::default();
        for columns in [columns.clone(), width + columns.start..width + columns.end] {
            gemm.low_rank.iter().for_each(|update| work.add(update.work(rows, &columns)));
            work.add(GemmWork::of(&OutputBlock { rows: rows.clone(), columns, x_k: 0, w_k: 0..gemm.w.k() }, &gemm.w));
        }
        cpu.meter.count(start, work.terms, work.weight_bytes);
    });
    Some(lhs)
}

/// Rounds rows of [`TILE_K`] elements, starting at row `first`, to a column of tiles that begins at `tile`.
///
/// # Safety
/// The processor has AVX-512 BF16; the left side, with `row_words` words per row, has the rows, which are not accessed
/// elsewhere.
#[target_feature(enable = "avx512f,avx512bf16")]
pub(super) unsafe fn store_tiles(x: &[f32], first: usize, tile: *mut u32, row_words: usize) {
    for (i, row) in x.as_chunks::<TILE_K>().0.iter().enumerate() {
        let row_at = first + i;
        // SAFETY: as the caller ensures; 32 elements are read.
        unsafe {
            let to = tile.add(row_at / TILE * TILE * row_words + row_at % TILE * (TILE_K / 2));
            let (low, high) = (_mm512_loadu_ps(row.as_ptr()), _mm512_loadu_ps(row.as_ptr().add(TILE)));
            _mm512_storeu_si512(to.cast(), round(low, high));
        }
    }
}
