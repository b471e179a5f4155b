//! Matrix products. Each output element is one chain of multiply-adds over `k` in order, starting from
//! zero or from the element's old value, whatever the tile height and however rows and columns are
//! split: the bits of a row depend on that row alone.
//!
//! Two products: with frozen weights ([`PackedMatrix`]), and of plain f32 matrices with any strides on the
//! left side ([`strided`]). With bf16 weights, inputs are rounded to bf16 where the processor multiplies
//! bf16, and kept in f32 where it does not: there it costs nothing.

use std::ops::Range;

use super::packed::{Dtype, NR, PackedData, PackedMatrix};
use super::{Cpu, Isa, Shared, par_chunks, rows_per_task};

/// Rows of a block of the left side that stays in the second-level cache.
const ROW_BLOCK: usize = 120;
/// Columns of a tile of [`strided`].
const NS: usize = 16;

/// The left side of a packed product, in the form that the kernel reads.
pub struct Operand {
    data: OperandData,
    rows: usize,
    /// Elements per row, even in bf16.
    stride: usize,
    k: usize,
}

enum OperandData {
    F32(Vec<f32>),
    Bf16(Vec<u16>),
}

/// A borrowed part of an operand.
#[derive(Clone, Copy)]
enum Left {
    F32(*const f32),
    Bf16(*const u16),
}

impl Operand {
    /// Converts rows `[rows, k]` for weights of type `dtype`.
    pub fn new(cpu: &Cpu, dtype: Dtype, x: &[f32], k: usize) -> Self {
        let rows = x.len().checked_div(k).unwrap_or(0);
        let mut operand = Self::zeros(cpu.isa(), dtype, rows, k);
        let stride = operand.stride;
        let chunk = rows_per_task(&cpu.pool, rows);
        match &mut operand.data {
            OperandData::F32(data) => par_chunks(&cpu.pool, data, chunk * stride, |i, out| {
                convert_f32(&x[i * chunk * k..], k, out, stride);
            }),
            OperandData::Bf16(data) => par_chunks(&cpu.pool, data, chunk * stride, |i, out| {
                convert_bf16(&x[i * chunk * k..], k, out, stride);
            }),
        }
        operand
    }

    /// Zeros, to be filled by [`Operand::fill`].
    pub fn zeros(isa: Isa, dtype: Dtype, rows: usize, k: usize) -> Self {
        let stride = match dtype {
            Dtype::Bf16 => k.next_multiple_of(2),
            Dtype::F32 => k,
        };
        let data = match (isa, dtype) {
            (Isa::Avx512Bf16, Dtype::Bf16) => OperandData::Bf16(vec![0; rows * stride]),
            _ => OperandData::F32(vec![0.0; rows * stride]),
        };
        Self { data, rows, stride, k }
    }

    /// Overwrites the first rows with `x`, on the calling thread.
    pub fn fill(&mut self, x: &[f32]) {
        match &mut self.data {
            OperandData::F32(data) => convert_f32(x, self.k, data, self.stride),
            OperandData::Bf16(data) => convert_bf16(x, self.k, data, self.stride),
        }
    }

    fn row(&self, row: usize) -> Left {
        match &self.data {
            OperandData::F32(data) => Left::F32(data[row * self.stride..].as_ptr()),
            OperandData::Bf16(data) => Left::Bf16(data[row * self.stride..].as_ptr()),
        }
    }
}

fn convert_f32(x: &[f32], k: usize, out: &mut [f32], stride: usize) {
    for (x, out) in x.chunks_exact(k).zip(out.chunks_exact_mut(stride)) {
        out[..k].copy_from_slice(x);
    }
}

fn convert_bf16(x: &[f32], k: usize, out: &mut [u16], stride: usize) {
    for (x, out) in x.chunks_exact(k).zip(out.chunks_exact_mut(stride)) {
        for (x, out) in x.iter().zip(out) {
            *out = half::bf16::from_f32(*x).to_bits();
        }
    }
}

/// `c[rows, n] (+)= x · Wᵀ`, all threads. `c` is dense.
pub fn matmul(cpu: &Cpu, x: &Operand, w: &PackedMatrix, c: &mut [f32], accumulate: bool) {
    let (rows, n) = (x.rows, w.n());
    assert!(c.len() >= rows * n && x.k == w.k(), "product of mismatched matrices");
    let out = Shared(c.as_mut_ptr());
    let row_blocks = rows.div_ceil(ROW_BLOCK);
    let wanted = (cpu.pool.threads() * 4).div_ceil(row_blocks.max(1));
    let panels_per_task = w.panels().div_ceil(wanted).max(1);
    let panel_blocks = w.panels().div_ceil(panels_per_task);
    cpu.pool.run(row_blocks * panel_blocks, |task| {
        let (r, p) = (task % row_blocks * ROW_BLOCK, task / row_blocks * panels_per_task);
        let block = PackedBlock {
            rows: r..(r + ROW_BLOCK).min(rows),
            panels: p..(p + panels_per_task).min(w.panels()),
            k: 0..w.k(),
        };
        // SAFETY: `out` has `rows * n` elements; tasks write disjoint rows × panels.
        unsafe { packed_block(cpu.isa(), x, w, &block, out.ptr().add(r * n + p * NR), n, accumulate) };
    });
}

/// A part of a packed product.
struct PackedBlock {
    rows: Range<usize>,
    panels: Range<usize>,
    /// Even start.
    k: Range<usize>,
}

/// `c[rows, columns] (+)= x[rows of the operand] · W[columns, k]ᵀ` on the calling thread: for loss heads.
/// `columns` starts at a multiple of [`NR`]; `k` (positions in `W`'s inputs, as many as the operand has)
/// starts at an even position. `c` has `ldc` elements per row.
pub fn matmul_block(
    cpu: &Cpu,
    x: &Operand,
    rows: Range<usize>,
    w: &PackedMatrix,
    columns: Range<usize>,
    k: Range<usize>,
    c: &mut [f32],
    ldc: usize,
    accumulate: bool,
) {
    let width = columns.len();
    assert!(columns.start.is_multiple_of(NR) && columns.end <= w.n() && k.start.is_multiple_of(2) && k.end <= w.k());
    assert!(k.len() <= x.stride && rows.end <= x.rows && width <= ldc);
    assert!(rows.is_empty() || c.len() >= (rows.len() - 1) * ldc + width);
    let panels = columns.start / NR..columns.end.div_ceil(NR);
    let block = PackedBlock { rows, panels, k };
    // SAFETY: checked above: `c` holds the block, operand and weights hold its rows, columns and k.
    unsafe { packed_columns(cpu.isa(), x, w, &block, columns.end, c.as_mut_ptr(), ldc, accumulate) };
}

/// # Safety
/// `c` points at the block's first element in rows of `ldc` elements, and no one else touches the block.
unsafe fn packed_block(
    isa: Isa,
    x: &Operand,
    w: &PackedMatrix,
    block: &PackedBlock,
    c: *mut f32,
    ldc: usize,
    accumulate: bool,
) {
    // SAFETY: the caller's promise.
    unsafe { packed_columns(isa, x, w, block, w.n(), c, ldc, accumulate) }
}

/// # Safety
/// As [`packed_block`]; columns from `end` on are not written.
unsafe fn packed_columns(
    isa: Isa,
    x: &Operand,
    w: &PackedMatrix,
    block: &PackedBlock,
    end: usize,
    c: *mut f32,
    ldc: usize,
    accumulate: bool,
) {
    let mut edge = [0f32; 12 * NR];
    for panel in block.panels.clone() {
        let columns = (end - panel * NR).min(NR);
        let mut row = block.rows.start;
        while row < block.rows.end {
            let height = tile_height(isa, &w.data, block.rows.end - row);
            // SAFETY: row and panel lie in the block, which `c` holds.
            unsafe {
                let target = c.add((row - block.rows.start) * ldc + (panel - block.panels.start) * NR);
                let left = x.row(row);
                if columns == NR {
                    let tile = Tile { height, left, lda: x.stride, c: target, ldc, accumulate };
                    packed_tile(isa, &tile, w, panel, &block.k);
                } else {
                    for i in 0..height {
                        for j in 0..columns {
                            edge[i * NR + j] = *target.add(i * ldc + j);
                        }
                    }
                    let tile = Tile { height, left, lda: x.stride, c: edge.as_mut_ptr(), ldc: NR, accumulate };
                    packed_tile(isa, &tile, w, panel, &block.k);
                    for i in 0..height {
                        for j in 0..columns {
                            *target.add(i * ldc + j) = edge[i * NR + j];
                        }
                    }
                }
            }
            row += height;
        }
    }
}

struct Tile {
    height: usize,
    left: Left,
    lda: usize,
    c: *mut f32,
    ldc: usize,
    accumulate: bool,
}

fn tile_height(isa: Isa, data: &PackedData, left: usize) -> usize {
    let most = match (isa, data) {
        (Isa::Avx512Bf16, PackedData::Bf16(_)) => 12,
        _ => 6,
    };
    left.min(most)
}

macro_rules! by_height {
    ($height:expr, $f:ident $args:tt : $($m:literal)*) => {
        match $height { $($m => by_height!(@call $f, $m, $args),)* _ => {} }
    };
    (@call $f:ident, $m:literal, ($($arg:expr),*)) => { $f::<$m>($($arg),*) };
}

/// # Safety
/// The tile's rows, the panel and `k` are in bounds.
unsafe fn packed_tile(isa: Isa, tile: &Tile, w: &PackedMatrix, panel: usize, k: &Range<usize>) {
    let t = tile;
    match (&w.data, t.left) {
        #[cfg(target_arch = "x86_64")]
        (PackedData::Bf16(data), Left::Bf16(a)) => {
            let k2 = k.len().div_ceil(2);
            // SAFETY: an operand is `Bf16` only where the processor has AVX-512 BF16; bounds by the caller.
            unsafe {
                let b = data.as_ptr().add((panel * w.k().div_ceil(2) + k.start / 2) * NR);
                by_height!(t.height, bf16_avx512(k2, a, t.lda, b, t.c, t.ldc, t.accumulate): 1 2 3 4 5 6 7 8 9 10 11 12);
            }
        }
        (PackedData::Bf16(data), Left::F32(a)) => {
            let k2 = k.len().div_ceil(2);
            // SAFETY: AVX2 kernels run only where `isa` says so; bounds by the caller.
            unsafe {
                let b = data.as_ptr().add((panel * w.k().div_ceil(2) + k.start / 2) * NR);
                match isa {
                    #[cfg(target_arch = "x86_64")]
                    Isa::Avx2 | Isa::Avx512Bf16 => {
                        for half in [0, NS] {
                            by_height!(t.height, bf16_avx2(k2, a, t.lda, b.add(half), t.c.add(half), t.ldc, t.accumulate): 1 2 3 4 5 6);
                        }
                    }
                    _ => bf16_portable(t.height, k2, a, t.lda, b, t.c, t.ldc, t.accumulate),
                }
            }
        }
        (PackedData::F32(data), Left::F32(a)) => {
            // SAFETY: as above.
            unsafe {
                let b = data.as_ptr().add((panel * w.k() + k.start) * NR);
                for half in [0, NS] {
                    let s = StridedTile { a, rs: t.lda, cs: 1, b: b.add(half), ldb: NR, c: t.c.add(half), ldc: t.ldc };
                    strided_tile(isa, t.height, NS, k.len(), &s, t.accumulate);
                }
            }
        }
        // An operand is made for the weights' type; `Operand::zeros` never makes this pair.
        _ => debug_assert!(false, "operand and weights differ in type"),
    }
}

/// # Safety
/// AVX-512 BF16 is there; `a` has `M` rows of `2 * k2` elements, `b` `k2` rows of [`NR`], `c` `M` rows of [`NR`].
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f,avx512bf16,avx512bw")]
unsafe fn bf16_avx512<const M: usize>(
    k2: usize,
    a: *const u16,
    lda: usize,
    b: *const u32,
    c: *mut f32,
    ldc: usize,
    accumulate: bool,
) {
    use std::arch::x86_64::*;
    // SAFETY: bounds by the caller; all accesses are unaligned loads and stores.
    unsafe {
        let mut acc = [[_mm512_setzero_ps(); 2]; M];
        if accumulate {
            for (i, acc) in acc.iter_mut().enumerate() {
                acc[0] = _mm512_loadu_ps(c.add(i * ldc));
                acc[1] = _mm512_loadu_ps(c.add(i * ldc + 16));
            }
        }
        for p in 0..k2 {
            let b0 = std::mem::transmute::<__m512i, __m512bh>(_mm512_loadu_si512(b.add(p * NR).cast()));
            let b1 = std::mem::transmute::<__m512i, __m512bh>(_mm512_loadu_si512(b.add(p * NR + 16).cast()));
            for (i, acc) in acc.iter_mut().enumerate() {
                let word = a.add(i * lda + 2 * p).cast::<i32>().read_unaligned();
                let av = std::mem::transmute::<__m512i, __m512bh>(_mm512_set1_epi32(word));
                acc[0] = _mm512_dpbf16_ps(acc[0], av, b0);
                acc[1] = _mm512_dpbf16_ps(acc[1], av, b1);
            }
        }
        for (i, acc) in acc.iter().enumerate() {
            _mm512_storeu_ps(c.add(i * ldc), acc[0]);
            _mm512_storeu_ps(c.add(i * ldc + 16), acc[1]);
        }
    }
}

/// Half a panel: 16 columns.
///
/// # Safety
/// AVX2 and FMA are there; `a` has `M` rows of `2 * k2` elements, `b` `k2` rows of [`NR`] of which the
/// first 16 are used, `c` `M` rows of 16.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,fma")]
unsafe fn bf16_avx2<const M: usize>(
    k2: usize,
    a: *const f32,
    lda: usize,
    b: *const u32,
    c: *mut f32,
    ldc: usize,
    accumulate: bool,
) {
    use std::arch::x86_64::*;
    // SAFETY: bounds by the caller; all accesses are unaligned loads and stores.
    unsafe {
        let mut acc = [[_mm256_setzero_ps(); 2]; M];
        if accumulate {
            for (i, acc) in acc.iter_mut().enumerate() {
                acc[0] = _mm256_loadu_ps(c.add(i * ldc));
                acc[1] = _mm256_loadu_ps(c.add(i * ldc + 8));
            }
        }
        let high = _mm256_set1_epi32(0xffff_0000_u32 as i32);
        for p in 0..k2 {
            let w0 = _mm256_loadu_si256(b.add(p * NR).cast());
            let w1 = _mm256_loadu_si256(b.add(p * NR + 8).cast());
            let e0 = _mm256_castsi256_ps(_mm256_slli_epi32::<16>(w0));
            let e1 = _mm256_castsi256_ps(_mm256_slli_epi32::<16>(w1));
            for (i, acc) in acc.iter_mut().enumerate() {
                let x = _mm256_broadcast_ss(&*a.add(i * lda + 2 * p));
                acc[0] = _mm256_fmadd_ps(x, e0, acc[0]);
                acc[1] = _mm256_fmadd_ps(x, e1, acc[1]);
            }
            let o0 = _mm256_castsi256_ps(_mm256_and_si256(w0, high));
            let o1 = _mm256_castsi256_ps(_mm256_and_si256(w1, high));
            for (i, acc) in acc.iter_mut().enumerate() {
                let x = _mm256_broadcast_ss(&*a.add(i * lda + 2 * p + 1));
                acc[0] = _mm256_fmadd_ps(x, o0, acc[0]);
                acc[1] = _mm256_fmadd_ps(x, o1, acc[1]);
            }
        }
        for (i, acc) in acc.iter().enumerate() {
            _mm256_storeu_ps(c.add(i * ldc), acc[0]);
            _mm256_storeu_ps(c.add(i * ldc + 8), acc[1]);
        }
    }
}

/// # Safety
/// `a` has `height` rows of `2 * k2` elements, `b` `k2` rows of [`NR`], `c` `height` rows of [`NR`].
unsafe fn bf16_portable(
    height: usize,
    k2: usize,
    a: *const f32,
    lda: usize,
    b: *const u32,
    c: *mut f32,
    ldc: usize,
    accumulate: bool,
) {
    for i in 0..height {
        // SAFETY: bounds by the caller.
        unsafe {
            let out = std::slice::from_raw_parts_mut(c.add(i * ldc), NR);
            if !accumulate {
                out.fill(0.0);
            }
            for p in 0..k2 {
                let (x0, x1) = (*a.add(i * lda + 2 * p), *a.add(i * lda + 2 * p + 1));
                let words = std::slice::from_raw_parts(b.add(p * NR), NR);
                for (out, &word) in out.iter_mut().zip(words) {
                    *out += x0 * f32::from_bits(word << 16);
                    *out += x1 * f32::from_bits(word & 0xffff_0000);
                }
            }
        }
    }
}

/// The left side of [`strided`]: element (i, k) is `data[i * row_stride + k * col_stride]`.
#[derive(Clone, Copy)]
pub struct Strided<'a> {
    /// The elements.
    pub data: &'a [f32],
    /// Distance of rows.
    pub row_stride: usize,
    /// Distance along `k`.
    pub col_stride: usize,
}

/// Extents of [`strided`]: `c[m, n] (+)= a[m, k] · b[k, n]`.
#[derive(Clone, Copy)]
pub struct Extents {
    /// Rows.
    pub m: usize,
    /// Columns.
    pub n: usize,
    /// Terms of a sum.
    pub k: usize,
}

fn last(rows: usize, stride: usize, columns: usize) -> usize {
    if rows == 0 || columns == 0 { 0 } else { (rows - 1) * stride + columns }
}

/// `c[m, n] (+)= a · b` on the calling thread; `b` and `c` have rows of `ldb` and `ldc` elements.
pub fn strided(
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
    for j in (0..e.n).step_by(NS) {
        let columns = (e.n - j).min(NS);
        for i in (0..e.m).step_by(6) {
            let height = (e.m - i).min(6);
            // SAFETY: the assertions above cover every row, column and k of the tile.
            unsafe {
                let tile = StridedTile {
                    a: a.data.as_ptr().add(i * a.row_stride),
                    rs: a.row_stride,
                    cs: a.col_stride,
                    b: b.as_ptr().add(j),
                    ldb,
                    c: c.as_mut_ptr().add(i * ldc + j),
                    ldc,
                };
                strided_tile(cpu.isa(), height, columns, e.k, &tile, accumulate);
            }
        }
    }
}

/// [`strided`] on all threads, split by rows; `c` is dense (`ldc = n` unless it has one row).
pub fn strided_rows(cpu: &Cpu, e: Extents, a: Strided<'_>, b: &[f32], ldb: usize, c: &mut [f32], accumulate: bool) {
    let rows = e.m.div_ceil(cpu.pool.threads() * 2).next_multiple_of(6);
    par_chunks(&cpu.pool, &mut c[..e.m * e.n], rows * e.n, |i, c| {
        let a = Strided { data: a.data.get(i * rows * a.row_stride..).unwrap_or(&[]), ..a };
        strided(cpu, Extents { m: c.len() / e.n, ..e }, a, b, ldb, c, e.n, accumulate);
    });
}

/// [`strided`] on all threads, split by columns, into rows of `ldc` elements.
pub fn strided_columns(
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
    let columns = e.n.div_ceil(cpu.pool.threads() * 4).next_multiple_of(NS);
    let out = Shared(c.as_mut_ptr());
    cpu.pool.run(e.n.div_ceil(columns), |task| {
        for j in (task * columns..((task + 1) * columns).min(e.n)).step_by(NS) {
            let width = (e.n - j).min(NS);
            for i in (0..e.m).step_by(6) {
                // SAFETY: the assertions cover every access; tasks write disjoint columns.
                unsafe {
                    let tile = StridedTile {
                        a: a.data.as_ptr().add(i * a.row_stride),
                        rs: a.row_stride,
                        cs: a.col_stride,
                        b: b.as_ptr().add(j),
                        ldb,
                        c: out.ptr().add(i * ldc + j),
                        ldc,
                    };
                    strided_tile(cpu.isa(), (e.m - i).min(6), width, e.k, &tile, accumulate);
                }
            }
        }
    });
}

struct StridedTile {
    a: *const f32,
    rs: usize,
    cs: usize,
    b: *const f32,
    ldb: usize,
    c: *mut f32,
    ldc: usize,
}

/// # Safety
/// The tile of `height <= 6` rows, `columns <= 16` and `k` terms is in bounds.
#[inline]
unsafe fn strided_tile(isa: Isa, height: usize, columns: usize, k: usize, t: &StridedTile, accumulate: bool) {
    // SAFETY: bounds by the caller; AVX2 kernels run only where `isa` says so.
    unsafe {
        match isa {
            #[cfg(target_arch = "x86_64")]
            Isa::Avx2 | Isa::Avx512Bf16 if columns == NS => {
                by_height!(height, f32_avx2(k, t, accumulate): 1 2 3 4 5 6);
            }
            #[cfg(target_arch = "x86_64")]
            Isa::Avx2 | Isa::Avx512Bf16 => {
                by_height!(height, f32_avx2_edge(k, columns, t, accumulate): 1 2 3 4 5 6);
            }
            _ => f32_portable(height, columns, k, t, accumulate),
        }
    }
}

/// # Safety
/// AVX2 and FMA are there; the tile has `M` rows, 16 columns and `k` terms in bounds.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,fma")]
unsafe fn f32_avx2<const M: usize>(k: usize, t: &StridedTile, accumulate: bool) {
    use std::arch::x86_64::*;
    // SAFETY: bounds by the caller.
    unsafe {
        let mut acc = [[_mm256_setzero_ps(); 2]; M];
        if accumulate {
            for (i, acc) in acc.iter_mut().enumerate() {
                acc[0] = _mm256_loadu_ps(t.c.add(i * t.ldc));
                acc[1] = _mm256_loadu_ps(t.c.add(i * t.ldc + 8));
            }
        }
        for p in 0..k {
            let b0 = _mm256_loadu_ps(t.b.add(p * t.ldb));
            let b1 = _mm256_loadu_ps(t.b.add(p * t.ldb + 8));
            for (i, acc) in acc.iter_mut().enumerate() {
                let x = _mm256_broadcast_ss(&*t.a.add(i * t.rs + p * t.cs));
                acc[0] = _mm256_fmadd_ps(x, b0, acc[0]);
                acc[1] = _mm256_fmadd_ps(x, b1, acc[1]);
            }
        }
        for (i, acc) in acc.iter().enumerate() {
            _mm256_storeu_ps(t.c.add(i * t.ldc), acc[0]);
            _mm256_storeu_ps(t.c.add(i * t.ldc + 8), acc[1]);
        }
    }
}

/// # Safety
/// As [`f32_avx2`], with `columns < 16`; nothing beyond them is read or written.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,fma")]
unsafe fn f32_avx2_edge<const M: usize>(k: usize, columns: usize, t: &StridedTile, accumulate: bool) {
    use std::arch::x86_64::*;
    let mut lanes = [0i32; NS];
    lanes[..columns].fill(-1);
    // SAFETY: bounds by the caller; masked lanes are neither read nor written.
    unsafe {
        let m0 = _mm256_loadu_si256(lanes.as_ptr().cast());
        let m1 = _mm256_loadu_si256(lanes.as_ptr().add(8).cast());
        let mut acc = [[_mm256_setzero_ps(); 2]; M];
        if accumulate {
            for (i, acc) in acc.iter_mut().enumerate() {
                acc[0] = _mm256_maskload_ps(t.c.add(i * t.ldc), m0);
                acc[1] = _mm256_maskload_ps(t.c.wrapping_add(i * t.ldc + 8), m1);
            }
        }
        for p in 0..k {
            let b0 = _mm256_maskload_ps(t.b.add(p * t.ldb), m0);
            let b1 = _mm256_maskload_ps(t.b.wrapping_add(p * t.ldb + 8), m1);
            for (i, acc) in acc.iter_mut().enumerate() {
                let x = _mm256_broadcast_ss(&*t.a.add(i * t.rs + p * t.cs));
                acc[0] = _mm256_fmadd_ps(x, b0, acc[0]);
                acc[1] = _mm256_fmadd_ps(x, b1, acc[1]);
            }
        }
        for (i, acc) in acc.iter().enumerate() {
            _mm256_maskstore_ps(t.c.add(i * t.ldc), m0, acc[0]);
            _mm256_maskstore_ps(t.c.wrapping_add(i * t.ldc + 8), m1, acc[1]);
        }
    }
}

/// # Safety
/// The tile is in bounds.
unsafe fn f32_portable(height: usize, columns: usize, k: usize, t: &StridedTile, accumulate: bool) {
    for i in 0..height {
        // SAFETY: bounds by the caller.
        unsafe {
            let out = std::slice::from_raw_parts_mut(t.c.add(i * t.ldc), columns);
            if !accumulate {
                out.fill(0.0);
            }
            for p in 0..k {
                let x = *t.a.add(i * t.rs + p * t.cs);
                let b = std::slice::from_raw_parts(t.b.add(p * t.ldb), columns);
                for (out, b) in out.iter_mut().zip(b) {
                    *out += x * b;
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn values(n: usize, seed: usize) -> Vec<f32> {
        // Exact in bf16, so that rounding inputs changes nothing.
        (0..n).map(|i| (((i * 7919 + seed * 104_729) % 251) as f32 - 125.0) / 64.0).collect()
    }

    fn reference(dtype: Dtype, m: usize, n: usize, k: usize, a: &[f32], w: &[f32], c: &mut [f32]) {
        for i in 0..m {
            for j in 0..n {
                let sum: f64 =
                    (0..k).map(|p| f64::from(dtype.round(a[i * k + p])) * f64::from(dtype.round(w[j * k + p]))).sum();
                c[i * n + j] += sum as f32;
            }
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]

        #[test]
        fn packed_product_matches_reference_on_every_isa(m in 1usize..40, n in 1usize..80, k in 1usize..70, accumulate: bool) {
            let (a, w) = (values(m * k, 1), values(n * k, 2));
            for isa in Isa::available() {
                let cpu = Cpu::with_isa(2, isa);
                for dtype in [Dtype::Bf16, Dtype::F32] {
                    let packed = PackedMatrix::pack(&cpu, dtype, k, &[&w]);
                    let mut c = values(m * n, 3);
                    let mut expected = if accumulate { c.clone() } else { vec![0.0; m * n] };
                    matmul(&cpu, &Operand::new(&cpu, dtype, &a, k), &packed, &mut c, accumulate);
                    reference(dtype, m, n, k, &a, &w, &mut expected);
                    for (c, e) in c.iter().zip(&expected) {
                        prop_assert!((c - e).abs() < 1e-3, "{isa:?} {dtype:?}: {c} != {e}");
                    }
                }
            }
        }

        #[test]
        fn a_row_has_the_same_bits_at_any_batch_size(m in 2usize..40, n in 1usize..80, k in 1usize..70) {
            let (a, w) = (values(m * k, 4), values(n * k, 5));
            for isa in Isa::available() {
                let cpu = Cpu::with_isa(2, isa);
                for dtype in [Dtype::Bf16, Dtype::F32] {
                    let packed = PackedMatrix::pack(&cpu, dtype, k, &[&w]);
                    let mut all = vec![0.0; m * n];
                    matmul(&cpu, &Operand::new(&cpu, dtype, &a, k), &packed, &mut all, false);
                    for i in 0..m {
                        let mut one = vec![0.0; n];
                        matmul(&cpu, &Operand::new(&cpu, dtype, &a[i * k..(i + 1) * k], k), &packed, &mut one, false);
                        prop_assert_eq!(&one, &all[i * n..(i + 1) * n]);
                    }
                }
            }
        }

        #[test]
        fn strided_product_matches_reference_and_splits_along_k(m in 1usize..20, n in 1usize..40, k in 2usize..30, cut in 1usize..29) {
            let cut = cut.min(k - 1);
            let (a, b) = (values(m * k, 6), values(k * n, 7));
            for isa in Isa::available() {
                let cpu = Cpu::with_isa(2, isa);
                // A is read transposed: element (i, p) at p * m + i.
                let at: Vec<f32> = (0..m * k).map(|x| a[(x % m) * k + x / m]).collect();
                let left = Strided { data: &at, row_stride: 1, col_stride: m };
                let (mut whole, mut parts) = (vec![0.5; m * n], vec![0.5; m * n]);
                strided(&cpu, Extents { m, n, k }, left, &b, n, &mut whole, n, true);
                strided(&cpu, Extents { m, n, k: cut }, left, &b, n, &mut parts, n, true);
                let rest = Strided { data: &at[cut * m..], ..left };
                strided_columns(&cpu, Extents { m, n, k: k - cut }, rest, &b[cut * n..], n, &mut parts, n, true);
                prop_assert_eq!(&whole, &parts);
                for i in 0..m {
                    for j in 0..n {
                        let sum: f32 = 0.5 + (0..k).map(|p| a[i * k + p] * b[p * n + j]).sum::<f32>();
                        prop_assert!((whole[i * n + j] - sum).abs() < 1e-3);
                    }
                }
                let mut rows = vec![0.5; m * n];
                strided_rows(&cpu, Extents { m, n, k }, left, &b, n, &mut rows, true);
                prop_assert_eq!(&whole, &rows);
            }
        }
    }

    #[test]
    fn block_product_writes_its_columns_alone() {
        let cpu = Cpu::new(1);
        let (n, k) = (70, 8);
        let w = values(n * k, 8);
        let packed = PackedMatrix::pack(&cpu, Dtype::F32, k, &[&w]);
        let x = values(3 * k, 9);
        let operand = Operand::new(&cpu, Dtype::F32, &x, k);
        let mut c = vec![9.0; 3 * 10];
        matmul_block(&cpu, &operand, 0..3, &packed, 64..70, 0..k, &mut c, 10, false);
        for row in c.chunks_exact(10) {
            assert_eq!(row[6..], [9.0; 4]);
            assert!(row[..6].iter().all(|v| *v != 9.0));
        }
    }
}
