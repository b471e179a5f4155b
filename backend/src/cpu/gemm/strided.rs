//! Small GEMMs of plain f32 matrices on the calling thread, for attention.

use super::super::{Cpu, Isa};
use super::tiles::{LhsF32, MR_F32, RhsF32, STRIP, TileOut, WriteMode, by_height, f32_portable};
#[cfg(target_arch = "x86_64")]
use super::tiles::{f32_avx2_edge, f32_avx2_strided};

/// The left side of [`strided`]: element (i, k) is `data[i * row_stride + k * col_stride]`.
#[derive(Clone, Copy)]
pub(crate) struct Strided<'a> {
    pub data: &'a [f32],
    /// Distance of rows, in elements.
    pub row_stride: usize,
    /// Distance of neighbours along `k`, in elements.
    pub col_stride: usize,
}

/// Extents of [`strided`]: `c[m, n] (+)= a[m, k] · b[k, n]`.
#[derive(Clone, Copy)]
pub(crate) struct Extents {
    pub m: usize,
    pub n: usize,
    /// Number of terms in each sum.
    pub k: usize,
}

fn last(rows: usize, stride: usize, columns: usize) -> usize {
    if rows == 0 || columns == 0 { 0 } else { (rows - 1) * stride + columns }
}

/// `c[m, n] (+)= a · b` on the calling thread; `b` and `c` have rows of `ldb` and `ldc` elements.
pub(crate) fn strided(
    cpu: &Cpu,
    e: Extents,
    a: Strided<'_>,
    b: &[f32],
    ldb: usize,
    c: &mut [f32],
    ldc: usize,
    accumulate: bool,
) {
    if e.m == 0 || e.n == 0 {
        return;
    }
    assert!(e.k == 0 || a.data.len() > (e.m - 1) * a.row_stride + (e.k - 1) * a.col_stride);
    assert!(b.len() >= last(e.k, ldb, e.n) && c.len() >= last(e.m, ldc, e.n));
    for j in (0..e.n).step_by(STRIP) {
        let columns = (e.n - j).min(STRIP);
        for i in (0..e.m).step_by(MR_F32) {
            let height = (e.m - i).min(MR_F32);
            // SAFETY: the assertions above cover every row, column and k of the tile.
            unsafe {
                let at = a.data.as_ptr().add(i * a.row_stride);
                let left = LhsF32 { at, row_stride: a.row_stride, k_stride: a.col_stride };
                let right = RhsF32 { at: b.as_ptr().add(j), stride: ldb };
                let out =
                    TileOut { at: c.as_mut_ptr().add(i * ldc + j), stride: ldc, write: WriteMode::add_if(accumulate) };
                tile(cpu.isa(), height, columns, e.k, left, right, out);
            }
        }
    }
}

/// # Safety
/// The tile of `height <= MR_F32` rows, `columns <= STRIP` and `k` terms is in bounds.
#[inline]
unsafe fn tile(isa: Isa, height: usize, columns: usize, k: usize, a: LhsF32, b: RhsF32, out: TileOut) {
    // SAFETY: bounds by the caller; AVX2 kernels run only where `isa` has them.
    unsafe {
        match isa {
            #[cfg(target_arch = "x86_64")]
            isa if isa.has_avx2() && columns == STRIP => {
                by_height!(height, f32_avx2_strided(k, a, b, out): 1 2 3 4 5 6);
            }
            #[cfg(target_arch = "x86_64")]
            isa if isa.has_avx2() => {
                by_height!(height, f32_avx2_edge(k, columns, a, b, out): 1 2 3 4 5 6);
            }
            _ => f32_portable(height, columns, k, a, b, out),
        }
    }
}
