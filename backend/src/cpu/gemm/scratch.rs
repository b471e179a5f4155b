//! Memory for the sums of tiles that reach beyond an output.

use super::super::packed::NR;
use super::super::tile_layout::TILE;
use super::tiles::{TileOut, WriteMode};

/// Rows of the highest tiles.
const ROWS: usize = 2 * TILE;

/// Runs a kernel on a copy of an output that has fewer rows or columns than its tiles, from row `skipped` of the tiles on.
///
/// # Safety
/// `out` holds `rows` rows of `columns` elements, at most [`ROWS`] with those skipped and [`NR`].
pub(super) unsafe fn through_scratch(
    skipped: usize,
    rows: usize,
    columns: usize,
    out: TileOut,
    run: impl FnOnce(TileOut),
) {
    // The kernel writes all that is read; where it adds, rows beyond the output may hold anything.
    let mut scratch = std::mem::MaybeUninit::<Scratch>::uninit();
    let at = scratch.as_mut_ptr().cast::<f32>();
    // SAFETY: as the caller ensures.
    unsafe {
        let own = at.add(skipped * NR);
        if out.write == WriteMode::Add {
            for i in 0..rows {
                std::ptr::copy_nonoverlapping(out.at.add(i * out.stride), own.add(i * NR), columns);
            }
        }
        run(TileOut { at, stride: NR, write: out.write });
        for i in 0..rows {
            std::ptr::copy_nonoverlapping(own.add(i * NR), out.at.add(i * out.stride), columns);
        }
    }
}

/// Room for the largest tiles.
#[repr(align(64))]
struct Scratch {
    _rows: [f32; ROWS * NR],
}
