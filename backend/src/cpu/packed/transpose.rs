//! Transposes blocks of 32-bit elements in memory.

use crate::cpu::Isa;

/// Elements of four bytes, which are moved without regard to what they mean.
pub(super) trait Word: Copy {}

impl Word for u32 {}
impl Word for f32 {}

/// Rows and columns of the blocks that are transposed in registers.
const SIDE: usize = 8;

/// Writes the transpose of `from[rows, columns]`, rows at distance `from_stride`, to `to[columns, rows]`, rows at distance
/// `to_stride`. Panics where a slice is too short.
pub(super) fn transpose<T: Word>(
    isa: Isa,
    rows: usize,
    columns: usize,
    from: &[T],
    from_stride: usize,
    to: &mut [T],
    to_stride: usize,
) {
    if rows == 0 || columns == 0 {
        return;
    }
    assert!(columns <= from_stride && (rows - 1) * from_stride + columns <= from.len(), "too few elements");
    assert!(rows <= to_stride && (columns - 1) * to_stride + rows <= to.len(), "too few elements for the transpose");
    // Columns of whole blocks.
    let whole = if isa.has_avx2() && rows.is_multiple_of(SIDE) { columns / SIDE * SIDE } else { 0 };
    #[cfg(target_arch = "x86_64")]
    if whole > 0 {
        // SAFETY: the processor has AVX2, as `isa` says; bounds are checked, and elements have four bytes.
        unsafe { transpose_avx2(rows, whole, from.as_ptr().cast(), from_stride, to.as_mut_ptr().cast(), to_stride) };
    }
    for row in 0..rows {
        for column in whole..columns {
            to[column * to_stride + row] = from[row * from_stride + column];
        }
    }
}

/// [`transpose`] of whole blocks.
///
/// # Safety
/// The processor has AVX2; all rows and columns exist, and are multiples of [`SIDE`].
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2")]
unsafe fn transpose_avx2(
    rows: usize,
    columns: usize,
    from: *const f32,
    from_stride: usize,
    to: *mut f32,
    to_stride: usize,
) {
    for column in (0..columns).step_by(SIDE) {
        for row in (0..rows).step_by(SIDE) {
            // SAFETY: the block exists in both.
            unsafe {
                let (from, to) = (from.add(row * from_stride + column), to.add(column * to_stride + row));
                transpose_block_avx2(from, from_stride, to, to_stride);
            }
        }
    }
}

/// One block of [`SIDE`] rows and columns.
///
/// # Safety
/// As [`transpose_avx2`].
#[cfg(target_arch = "x86_64")]
#[inline]
#[target_feature(enable = "avx2")]
unsafe fn transpose_block_avx2(from: *const f32, from_stride: usize, to: *mut f32, to_stride: usize) {
    use std::arch::x86_64::*;
    for half in 0..2 {
        // SAFETY: bounds by the caller; all accesses are unaligned loads and stores.
        unsafe {
            // Rows i and i + 4, four columns of each: shuffles within 128 bits then transpose both.
            let two = |i: usize| {
                let row = |i: usize| _mm_loadu_ps(from.add(i * from_stride + 4 * half));
                _mm256_insertf128_ps::<1>(_mm256_castps128_ps256(row(i)), row(i + 4))
            };
            let (a, b, c, d) = (two(0), two(1), two(2), two(3));
            let (ab, cd) = (_mm256_unpacklo_ps(a, b), _mm256_unpacklo_ps(c, d));
            let (ab_high, cd_high) = (_mm256_unpackhi_ps(a, b), _mm256_unpackhi_ps(c, d));
            let columns = [
                _mm256_shuffle_ps::<0x44>(ab, cd),
                _mm256_shuffle_ps::<0xee>(ab, cd),
                _mm256_shuffle_ps::<0x44>(ab_high, cd_high),
                _mm256_shuffle_ps::<0xee>(ab_high, cd_high),
            ];
            for (i, column) in columns.into_iter().enumerate() {
                _mm256_storeu_ps(to.add((4 * half + i) * to_stride), column);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_element_is_where_it_belongs_and_nothing_else_is_written() {
        for isa in Isa::available() {
            for (rows, columns) in [(8, 8), (32, 16), (16, 24), (7, 8), (8, 5), (16, 13), (1, 1), (0, 8)] {
                let (from_stride, to_stride) = (columns + 3, rows + 2);
                let from: Vec<u32> = (0..(rows * from_stride) as u32).collect();
                let mut to = vec![u32::MAX; columns * to_stride];
                transpose(isa, rows, columns, &from, from_stride, &mut to, to_stride);
                for (at, found) in to.iter().enumerate() {
                    let (column, row) = (at / to_stride, at % to_stride);
                    let expected = if row < rows { from[row * from_stride + column] } else { u32::MAX };
                    assert_eq!(*found, expected, "{isa:?} {rows}x{columns} at {row}, {column}");
                }
            }
        }
    }
}
