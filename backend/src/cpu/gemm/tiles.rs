//! The innermost loops: a few rows by one or two strips of vectors, along `k`.

use super::super::packed::NR;

/// Rows of a tile of f32 inputs.
pub(super) const MR_F32: usize = 6;
/// Columns of a strip of f32 weights.
pub(super) const STRIP: usize = 16;

/// Treatment of an output's old value. It has the size of a word: loads of a smaller field would wait for the stores of
/// the previous tile.
#[derive(Clone, Copy, PartialEq, Eq)]
#[repr(usize)]
pub(super) enum WriteMode {
    Overwrite,
    /// Overwrites an output larger than the caches, which kernels may bypass.
    Stream,
    Add,
}

impl WriteMode {
    pub(super) fn add_if(add: bool) -> Self {
        if add { Self::Add } else { Self::Overwrite }
    }
}

/// Output of a tile: rows of `stride` elements.
#[derive(Clone, Copy)]
pub(super) struct TileOut {
    pub at: *mut f32,
    pub stride: usize,
    pub write: WriteMode,
}

/// Left side of an f32 tile: element (row, p) is at `row * row_stride + p * k_stride`.
#[derive(Clone, Copy)]
pub(super) struct LhsF32 {
    pub at: *const f32,
    pub row_stride: usize,
    pub k_stride: usize,
}

/// Right side of an f32 tile: rows of `k` at distance `stride`.
#[derive(Clone, Copy)]
pub(super) struct RhsF32 {
    pub at: *const f32,
    pub stride: usize,
}

/// Calls `f::<M>` for a height that is only known at run time.
macro_rules! by_height {
    ($height:expr, $f:ident $args:tt : $($m:literal)*) => {
        match $height { $($m => by_height!(@call $f, $m, $args),)* _ => {} }
    };
    (@call $f:ident, $m:literal, ($($arg:expr),*)) => { $f::<$m>($($arg),*) };
}
pub(super) use by_height;

/// Computes `8 * V` columns of bf16 pairs, widened in registers, for GEMMs with few rows.
///
/// # Safety
/// The processor has AVX2 and FMA; `a` has `2 * pairs` steps of [`MR_F32`]; `b` has `pairs` rows of 32 words, of which
/// the first `8 * V` are used; `c` has `M` rows of `8 * V`.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,fma")]
pub(super) unsafe fn bf16_avx2<const M: usize, const V: usize>(pairs: usize, a: *const f32, b: *const u32, c: TileOut) {
    use std::arch::x86_64::*;
    // SAFETY: bounds by the caller; all accesses are unaligned loads and stores.
    unsafe {
        let mut acc = [[_mm256_setzero_ps(); V]; M];
        if c.write == WriteMode::Add {
            for (i, acc) in acc.iter_mut().enumerate() {
                for (v, acc) in acc.iter_mut().enumerate() {
                    *acc = _mm256_loadu_ps(c.at.add(i * c.stride + 8 * v));
                }
            }
        }
        let high = _mm256_set1_epi32(0xffff_0000_u32 as i32);
        for p in 0..pairs {
            let mut words = [_mm256_setzero_si256(); V];
            for (v, word) in words.iter_mut().enumerate() {
                *word = _mm256_loadu_si256(b.add(p * 32 + 8 * v).cast());
            }
            for (i, acc) in acc.iter_mut().enumerate() {
                let x = _mm256_broadcast_ss(&*a.add(2 * p * MR_F32 + i));
                for (acc, word) in acc.iter_mut().zip(words) {
                    *acc = _mm256_fmadd_ps(x, _mm256_castsi256_ps(_mm256_slli_epi32::<16>(word)), *acc);
                }
            }
            for (i, acc) in acc.iter_mut().enumerate() {
                let x = _mm256_broadcast_ss(&*a.add((2 * p + 1) * MR_F32 + i));
                for (acc, word) in acc.iter_mut().zip(words) {
                    *acc = _mm256_fmadd_ps(x, _mm256_castsi256_ps(_mm256_and_si256(word, high)), *acc);
                }
            }
        }
        for (i, acc) in acc.iter().enumerate() {
            for (v, acc) in acc.iter().enumerate() {
                _mm256_storeu_ps(c.at.add(i * c.stride + 8 * v), *acc);
            }
        }
    }
}

/// Defines a kernel for 16 columns of f32 with a given address of the left side.
#[cfg(target_arch = "x86_64")]
macro_rules! f32_avx2 {
    ($(#[$doc:meta])* $name:ident, |$a:ident, $i:ident, $p:ident| $address:expr) => {
        $(#[$doc])*
        #[target_feature(enable = "avx2,fma")]
        pub(super) unsafe fn $name<const M: usize>(k: usize, $a: LhsF32, b: RhsF32, c: TileOut) {
            use std::arch::x86_64::*;
            // SAFETY: bounds by the caller; all accesses are unaligned loads and stores.
            unsafe {
                let mut acc = [[_mm256_setzero_ps(); 2]; M];
                if c.write == WriteMode::Add {
                    for (i, acc) in acc.iter_mut().enumerate() {
                        acc[0] = _mm256_loadu_ps(c.at.add(i * c.stride));
                        acc[1] = _mm256_loadu_ps(c.at.add(i * c.stride + 8));
                    }
                } else {
                    // Outputs are far apart: without this the stores at the end wait for them.
                    for i in 0..M {
                        _mm_prefetch::<_MM_HINT_T0>(c.at.add(i * c.stride).cast());
                        _mm_prefetch::<_MM_HINT_T0>(c.at.add(i * c.stride + 15).cast());
                    }
                }
                for $p in 0..k {
                    let b0 = _mm256_loadu_ps(b.at.add($p * b.stride));
                    let b1 = _mm256_loadu_ps(b.at.add($p * b.stride + 8));
                    for ($i, acc) in acc.iter_mut().enumerate() {
                        let x = _mm256_broadcast_ss(&*$address);
                        acc[0] = _mm256_fmadd_ps(x, b0, acc[0]);
                        acc[1] = _mm256_fmadd_ps(x, b1, acc[1]);
                    }
                }
                for (i, acc) in acc.iter().enumerate() {
                    _mm256_storeu_ps(c.at.add(i * c.stride), acc[0]);
                    _mm256_storeu_ps(c.at.add(i * c.stride + 8), acc[1]);
                }
            }
        }
    };
}

#[cfg(target_arch = "x86_64")]
f32_avx2! {
    /// 16 columns, left side with any strides.
    ///
    /// # Safety
    /// The processor has AVX2 and FMA; `M` rows, 16 columns and `k` terms are in bounds.
    f32_avx2_strided, |a, i, p| a.at.add(i * a.row_stride + p * a.k_stride)
}

#[cfg(target_arch = "x86_64")]
f32_avx2! {
    /// 16 columns, left side a packed tile: its strides are taken to be 1 and [`MR_F32`].
    ///
    /// # Safety
    /// As [`f32_avx2_strided`].
    f32_avx2_packed, |a, i, p| a.at.add(p * MR_F32 + i)
}

/// Fewer than 16 columns; nothing beyond them is read or written.
///
/// # Safety
/// As [`f32_avx2_strided`], with `columns` columns.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,fma")]
pub(super) unsafe fn f32_avx2_edge<const M: usize>(k: usize, columns: usize, a: LhsF32, b: RhsF32, c: TileOut) {
    use std::arch::x86_64::*;
    let mut lanes = [0i32; STRIP];
    lanes[..columns].fill(-1);
    // SAFETY: bounds by the caller; masked lanes are neither read nor written.
    unsafe {
        let m0 = _mm256_loadu_si256(lanes.as_ptr().cast());
        let m1 = _mm256_loadu_si256(lanes.as_ptr().add(8).cast());
        let mut acc = [[_mm256_setzero_ps(); 2]; M];
        if c.write == WriteMode::Add {
            for (i, acc) in acc.iter_mut().enumerate() {
                acc[0] = _mm256_maskload_ps(c.at.add(i * c.stride), m0);
                acc[1] = _mm256_maskload_ps(c.at.wrapping_add(i * c.stride + 8), m1);
            }
        }
        for p in 0..k {
            let b0 = _mm256_maskload_ps(b.at.add(p * b.stride), m0);
            let b1 = _mm256_maskload_ps(b.at.wrapping_add(p * b.stride + 8), m1);
            for (i, acc) in acc.iter_mut().enumerate() {
                let x = _mm256_broadcast_ss(&*a.at.add(i * a.row_stride + p * a.k_stride));
                acc[0] = _mm256_fmadd_ps(x, b0, acc[0]);
                acc[1] = _mm256_fmadd_ps(x, b1, acc[1]);
            }
        }
        for (i, acc) in acc.iter().enumerate() {
            _mm256_maskstore_ps(c.at.add(i * c.stride), m0, acc[0]);
            _mm256_maskstore_ps(c.at.wrapping_add(i * c.stride + 8), m1, acc[1]);
        }
    }
}

/// Any height and width, in plain Rust.
///
/// # Safety
/// `height` rows, `columns` columns and `k` terms are in bounds.
pub(super) unsafe fn f32_portable(height: usize, columns: usize, k: usize, a: LhsF32, b: RhsF32, c: TileOut) {
    for i in 0..height {
        // SAFETY: bounds by the caller.
        unsafe {
            let at = c.at.add(i * c.stride);
            if c.write != WriteMode::Add {
                // Positive zeros.
                at.write_bytes(0, columns);
            }
            let out = std::slice::from_raw_parts_mut(at, columns);
            for p in 0..k {
                let x = *a.at.add(i * a.row_stride + p * a.k_stride);
                let b = std::slice::from_raw_parts(b.at.add(p * b.stride), columns);
                for (out, b) in out.iter_mut().zip(b) {
                    *out += x * b;
                }
            }
        }
    }
}

/// Runs a kernel of full `width` on a copy of a tile that has fewer columns, so that nothing beyond them is written.
///
/// # Safety
/// `out` holds `height` rows of `columns` elements.
pub(super) unsafe fn through_edge(
    edge: &mut [f32; MR_F32 * NR],
    width: usize,
    height: usize,
    columns: usize,
    out: TileOut,
    run: impl FnOnce(TileOut),
) {
    // SAFETY: as the caller ensures; the buffer holds the highest and widest tile.
    unsafe {
        for i in 0..height {
            for j in 0..columns {
                edge[i * width + j] = *out.at.add(i * out.stride + j);
            }
        }
        run(TileOut { at: edge.as_mut_ptr(), stride: width, write: out.write });
        for i in 0..height {
            for j in 0..columns {
                *out.at.add(i * out.stride + j) = edge[i * width + j];
            }
        }
    }
}
