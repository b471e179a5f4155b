//! Products with packed weights, alone or many in one parallel region.

use std::ops::Range;
use std::time::Instant;

use super::super::packed::{Dtype, NR, PackedData, PackedMatrix};
use super::super::vexp::multiversion;
use super::super::{Cpu, Isa, Shared};
use super::factor::{Factor, GROUP, transpose_strip};
use super::operand::{Operand, OperandData};
use super::tiles::{LeftF32, MR_BF16, MR_F32, Out, RightF32, STRIP, Write, by_height, f32_portable};
#[cfg(target_arch = "x86_64")]
use super::tiles::{bf16_avx2, bf16_avx512, f32_avx2_packed};

/// Rows of a block of the left side: its part of [`DEPTH`] and a strip of weights stay in the second-level cache.
const ROW_BLOCK: usize = 132;
/// Most positions of `k` that one pass takes. Deep passes pay: the output is read and written once per pass.
const DEPTH: usize = 768;
/// Tasks per thread, so that threads finish together.
const TASKS: usize = 16;
/// Rows of a product that counts as skinny, and its tasks per thread.
const FEW_ROWS: usize = 24;
const FEW_TASKS: usize = 4;

/// `out[rows, n] (+)= x[rows, k] · Wᵀ`.
pub struct Product<'a> {
    /// The left side.
    pub x: &'a Operand,
    /// Its rows that take part.
    pub rows: Range<usize>,
    /// The first of its positions that takes part; `W` says how many. Even.
    pub x_k: usize,
    /// The weights `[n, k]`.
    pub w: Factor<'a>,
    /// Dense rows of `n` elements.
    pub out: &'a mut [f32],
    /// Whether to add to `out`.
    pub accumulate: bool,
    /// What adapters add afterwards; each begins at a multiple of [`NR`] columns.
    pub low_rank: Vec<LowRank<'a>>,
}

/// `c[rows, n] (+)= x · Wᵀ`, all threads. `c` is dense.
pub fn matmul<'a>(cpu: &Cpu, x: &Operand, w: impl Into<Factor<'a>>, c: &mut [f32], accumulate: bool) {
    let w = w.into();
    assert!(x.k() == w.k(), "product of mismatched matrices");
    run_products(cpu, &mut [Product { x, rows: 0..x.rows(), x_k: 0, w, out: c, accumulate, low_rank: Vec::new() }]);
}

/// Runs several products, all threads.
pub fn run_products(cpu: &Cpu, products: &mut [Product<'_>]) {
    let mut tasks = Vec::new();
    let outs: Vec<Shared<f32>> = products
        .iter_mut()
        .enumerate()
        .map(|(i, p)| {
            check(p.x, p.x_k, &p.w, 0..p.w.k());
            p.low_rank.iter().for_each(|part| part.check(&p.rows, p.w.n()));
            assert!(p.low_rank.iter().all(|part| part.at.is_multiple_of(NR)), "low-rank part within a panel");
            assert!(p.rows.end <= p.x.rows() && p.out.len() >= p.rows.len() * p.w.n(), "product out of bounds");
            tasks.extend(blocks(cpu, p.rows.clone(), p.x.tile_rows(), &p.w).into_iter().map(|block| (i, block)));
            Shared(p.out.as_mut_ptr())
        })
        .collect();
    let products = &*products;
    cpu.pool.run(tasks.len(), |task| {
        let (i, (rows, columns)) = &tasks[task];
        let p = &products[*i];
        let n = p.w.n();
        let part = Part { rows: rows.clone(), columns: columns.clone(), x_k: p.x_k, w_k: 0..p.w.k() };
        let (start, mut work) = (Instant::now(), Work::of(&part, &p.w));
        // SAFETY: checked above; blocks of a product are disjoint and each product has an output of its own.
        unsafe {
            let at = outs[*i].ptr().add((rows.start - p.rows.start) * n + columns.start);
            run_part(cpu, p.x, &p.w, &part, Out { at, stride: n, write: Write::add_if(p.accumulate) });
            for low_rank in &p.low_rank {
                let out = Out { at, stride: n, write: Write::Add };
                low_rank.add_to_block(cpu, rows, columns, out, &mut work);
            }
        }
        cpu.meter.count(start, work.terms, work.weight_bytes);
    });
}

/// Cuts a product's output into blocks of rows and of whole panels.
fn blocks(cpu: &Cpu, rows: Range<usize>, tile: usize, w: &Factor<'_>) -> Vec<(Range<usize>, Range<usize>)> {
    let (n, panels) = (w.n(), w.n().div_ceil(NR));
    // Each block of rows turns a transpose round once more.
    let least = match w {
        Factor::Matrix(_) => 4 * tile,
        Factor::Transpose(_) => 10 * tile,
    };
    // With few rows the weights are what is read, and long runs of them are read faster.
    let per_thread = if rows.len() <= FEW_ROWS { FEW_TASKS } else { TASKS };
    let tasks = cpu.pool.threads() * per_thread;
    let low = rows.len().div_ceil(ROW_BLOCK);
    let row_blocks = low.max((tasks / 2).div_ceil(panels.max(1)).min(rows.len().div_ceil(least))).max(1);
    let height = rows.len().div_ceil(row_blocks).next_multiple_of(tile).max(1);
    let width = panels.div_ceil(tasks.div_ceil(row_blocks)).max(1) * NR;
    let mut blocks = Vec::new();
    for column in (0..n).step_by(width) {
        for row in rows.clone().step_by(height) {
            blocks.push((row..(row + height).min(rows.end), column..(column + width).min(n)));
        }
    }
    blocks
}

/// Whether operand and weights fit together.
fn check(x: &Operand, x_k: usize, w: &Factor<'_>, k: Range<usize>) {
    let aligned = x_k.is_multiple_of(2) && k.start.is_multiple_of(2);
    assert!(aligned && k.end <= w.k() && x_k + k.len() <= x.k(), "product of mismatched matrices");
    let fits = match (w, &x.data) {
        (Factor::Transpose(_), operand) => k.start.is_multiple_of(GROUP) && matches!(operand, OperandData::F32(_)),
        (Factor::Matrix(PackedMatrix { data: PackedData::Bf16(_), .. }), _) => x.stored_k.is_multiple_of(2),
        (Factor::Matrix(_), operand) => matches!(operand, OperandData::F32(_)),
    };
    assert!(fits, "operand and weights differ in type");
}

/// `c[rows, columns] (+)= x[rows of the operand] · W[columns, k]ᵀ` on the calling thread: for loss heads.
/// `columns` starts at a multiple of [`NR`]; `k` (positions in `W`'s inputs, as many as the operand has)
/// starts at an even position, for a transpose at a multiple of 8. `c` has `ldc` elements per row.
pub fn matmul_block<'a>(
    cpu: &Cpu,
    x: &Operand,
    rows: Range<usize>,
    w: impl Into<Factor<'a>>,
    columns: Range<usize>,
    k: Range<usize>,
    c: &mut [f32],
    ldc: usize,
    accumulate: bool,
) {
    let (w, width) = (w.into(), columns.len());
    check(x, 0, &w, k.clone());
    assert!(columns.start.is_multiple_of(NR) && columns.end <= w.n() && rows.end <= x.rows() && width <= ldc);
    assert!(rows.is_empty() || c.len() >= (rows.len() - 1) * ldc + width);
    let part = Part { rows, columns, x_k: 0, w_k: k };
    let (start, work) = (Instant::now(), Work::of(&part, &w));
    // SAFETY: checked above: `c` holds the block, operand and weights hold its rows, columns and k.
    unsafe { run_part(cpu, x, &w, &part, Out { at: c.as_mut_ptr(), stride: ldc, write: Write::add_if(accumulate) }) };
    cpu.meter.count(start, work.terms, work.weight_bytes);
}

/// What adapters add to a part of a matrix: `out[rows, at .. at + n] += Σ z Wᵀ`, terms in order.
pub struct LowRank<'a> {
    /// Rows of the matrix.
    pub rows: Range<usize>,
    /// First column.
    pub at: usize,
    /// Rows `[rows, rank]` and weights `[n, rank]`; all terms have the same `n`.
    pub terms: Vec<(&'a Operand, Factor<'a>)>,
}

impl LowRank<'_> {
    fn columns(&self) -> Range<usize> {
        self.at..self.at + self.terms.first().map_or(0, |(_, w)| w.n())
    }

    /// Panics unless it lies within `rows` and `n` columns.
    fn check(&self, rows: &Range<usize>, n: usize) {
        let columns = self.columns();
        let inside = rows.start <= self.rows.start && self.rows.end <= rows.end && columns.end <= n;
        assert!(inside, "low-rank part out of bounds");
        for (z, w) in &self.terms {
            assert!(w.n() == columns.len() && z.rows() >= self.rows.len(), "low-rank part of mismatched matrices");
            check(z, 0, w, 0..w.k());
        }
    }

    /// Adds what concerns a block of the matrix, whose first element `out` points at.
    ///
    /// # Safety
    /// The part was checked against the matrix; no one else touches the block; its first column and that of the part
    /// are a multiple of [`NR`] apart.
    unsafe fn add_to_block(&self, cpu: &Cpu, rows: &Range<usize>, columns: &Range<usize>, out: Out, work: &mut Work) {
        let own = self.columns();
        let r = rows.start.max(self.rows.start)..rows.end.min(self.rows.end);
        let c = columns.start.max(own.start)..columns.end.min(own.end);
        if r.is_empty() || c.is_empty() {
            return;
        }
        for (z, w) in &self.terms {
            let block = Part {
                rows: r.start - self.rows.start..r.end - self.rows.start,
                columns: c.start - own.start..c.end - own.start,
                x_k: 0,
                w_k: 0..w.k(),
            };
            work.add(Work::of(&block, w));
            // SAFETY: the intersection lies in the block.
            unsafe {
                let at = out.at.add((r.start - rows.start) * out.stride + c.start - columns.start);
                run_part(cpu, z, w, &block, Out { at, stride: out.stride, write: Write::Add });
            }
        }
    }
}

/// Adds low-rank terms to `out`, whose rows have `stride` elements, on all threads. Parts do not overlap.
pub fn add_low_rank(cpu: &Cpu, out: &mut [f32], stride: usize, parts: &[LowRank<'_>]) {
    let matrix = 0..out.len().checked_div(stride).unwrap_or(0);
    let mut tasks = Vec::new();
    for (i, part) in parts.iter().enumerate() {
        part.check(&matrix, stride);
        let columns = part.columns();
        let apart = |a: &Range<usize>, b: &Range<usize>| a.end <= b.start || b.end <= a.start;
        let clear = |other: &LowRank<'_>| apart(&other.rows, &part.rows) || apart(&other.columns(), &columns);
        assert!(parts[..i].iter().all(clear), "low-rank parts overlap");
        let Some((_, w)) = part.terms.first() else { continue };
        tasks.extend(blocks(cpu, part.rows.clone(), MR_F32, w).into_iter().map(|block| (part, block)));
    }
    let base = Shared(out.as_mut_ptr());
    cpu.pool.run(tasks.len(), |task| {
        let (part, (rows, columns)) = &tasks[task];
        let columns = part.at + columns.start..part.at + columns.end;
        let (start, mut work) = (Instant::now(), Work::default());
        // SAFETY: bounds are checked above; blocks of a part are disjoint, and so are parts.
        unsafe {
            let at = base.ptr().add(rows.start * stride + columns.start);
            part.add_to_block(cpu, rows, &columns, Out { at, stride, write: Write::Add }, &mut work);
        }
        cpu.meter.count(start, work.terms, work.weight_bytes);
    });
}

/// A part of a packed product.
struct Part {
    /// Rows of the operand.
    rows: Range<usize>,
    /// Outputs, from a multiple of [`NR`] on.
    columns: Range<usize>,
    /// First position in the operand, even.
    x_k: usize,
    /// Positions in the weights, from an even one on.
    w_k: Range<usize>,
}

/// What parts of products take, for the meter.
#[derive(Clone, Copy, Default)]
struct Work {
    terms: usize,
    weight_bytes: usize,
}

impl Work {
    fn of(part: &Part, w: &Factor<'_>) -> Self {
        let elements = part.columns.len() * part.w_k.len();
        Self { terms: part.rows.len() * elements, weight_bytes: w.bytes_of(elements) }
    }

    fn add(&mut self, other: Self) {
        self.terms += other.terms;
        self.weight_bytes += other.weight_bytes;
    }
}

/// The right side of a strip.
#[derive(Clone, Copy)]
enum Right {
    F32(RightF32),
    /// Rows of [`NR`] pairs.
    Words(*const u32),
}

/// # Safety
/// Operand and weights hold the part, and `c` points at its first element; no one else touches it.
unsafe fn run_part(cpu: &Cpu, x: &Operand, w: &Factor<'_>, part: &Part, c: Out) {
    let isa = cpu.isa();
    let tile = x.tile_rows();
    let (width, buffered) = match (w, w.dtype(), &x.data) {
        (Factor::Transpose(_), ..) => (STRIP, true),
        (_, Dtype::Bf16, OperandData::Bf16(_)) => (NR, false),
        // With few rows, each weight is used too seldom to be widened beforehand.
        (_, Dtype::Bf16, OperandData::F32(_)) if isa != Isa::Portable && part.rows.len() <= 3 => (NR, false),
        (_, Dtype::Bf16, OperandData::F32(_)) => (STRIP, isa == Isa::Portable || part.rows.len() > FEW_ROWS),
        (_, Dtype::F32, _) => (STRIP, false),
    };
    let depth = match (w, w.dtype()) {
        // Bf16 weights and their operands are stored in pairs.
        (Factor::Matrix(_), Dtype::Bf16) => part.w_k.len().next_multiple_of(2),
        _ => part.w_k.len(),
    };
    let pass = depth.div_ceil(depth.div_ceil(DEPTH).max(1)).next_multiple_of(GROUP);
    let mut buffer = cpu.buffer(if buffered { pass.min(depth) * STRIP } else { 0 });
    let mut edge = [0f32; MR_BF16 * NR];
    for start in (0..depth).step_by(pass.max(1)) {
        let steps = (depth - start).min(pass);
        let write = if start > 0 { Write::Add } else { c.write };
        for column in part.columns.clone().step_by(width) {
            let columns = (part.columns.end - column).min(width);
            let right = right(isa, w, column, part.w_k.start + start, steps, &mut buffer);
            let mut row = part.rows.start;
            while row < part.rows.end {
                let lane = row % tile;
                let height = (tile - lane).min(part.rows.end - row);
                // SAFETY: row, columns and steps lie in the part, which operand, weights and `c` hold.
                unsafe {
                    let at = c.at.add((row - part.rows.start) * c.stride + column - part.columns.start);
                    let direct = Out { at, stride: c.stride, write };
                    let first = (row / tile * x.stored_k + part.x_k + start) * tile;
                    let run = |out: Out| match (&x.data, right) {
                        (OperandData::F32(data), right) => {
                            f32_tile(isa, height, width, steps, data.as_ptr().add(first + lane), right, out);
                        }
                        (OperandData::Bf16(data), Right::Words(b)) => {
                            bf16_tile(height, steps / 2, data.as_ptr().add(first / 2 + lane), b, out);
                        }
                        // `check` has refused this pair.
                        (OperandData::Bf16(_), Right::F32(_)) => {}
                    };
                    if columns == width {
                        run(direct);
                    } else {
                        through_edge(&mut edge, width, height, columns, direct, run);
                    }
                }
                row += height;
            }
        }
    }
}

/// Runs a tile of full width on a buffer and copies the columns that exist.
///
/// # Safety
/// `out` holds `height` rows of `columns` elements.
unsafe fn through_edge(
    edge: &mut [f32; MR_BF16 * NR],
    width: usize,
    height: usize,
    columns: usize,
    out: Out,
    run: impl FnOnce(Out),
) {
    // SAFETY: the caller's promise; the buffer holds the highest and widest tile.
    unsafe {
        for i in 0..height {
            for j in 0..columns {
                edge[i * width + j] = *out.at.add(i * out.stride + j);
            }
        }
        run(Out { at: edge.as_mut_ptr(), stride: width, write: out.write });
        for i in 0..height {
            for j in 0..columns {
                *out.at.add(i * out.stride + j) = edge[i * width + j];
            }
        }
    }
}

/// The weights of a strip from position `k` on, in `buffer` where that is not empty.
fn right(isa: Isa, w: &Factor<'_>, column: usize, k: usize, steps: usize, buffer: &mut [f32]) -> Right {
    let w = match w {
        Factor::Matrix(w) => w,
        Factor::Transpose(w) => {
            transpose_strip(isa, w, column, k, &mut buffer[..steps * STRIP]);
            return Right::F32(RightF32 { at: buffer.as_ptr(), stride: STRIP });
        }
    };
    let (panel, offset) = (column / NR, column % NR);
    match &w.data {
        PackedData::F32(data) => {
            Right::F32(RightF32 { at: data[(panel * w.k() + k) * NR + offset..].as_ptr(), stride: NR })
        }
        PackedData::Bf16(data) => {
            let words = &data[(panel * w.k().div_ceil(2) + k / 2) * NR + offset..];
            if buffer.is_empty() {
                return Right::Words(words.as_ptr());
            }
            widen_strip(isa, words, &mut buffer[..steps * STRIP]);
            Right::F32(RightF32 { at: buffer.as_ptr(), stride: STRIP })
        }
    }
}

multiversion! {
    fn widen_strip(words: &[u32], out: &mut [f32]) {
        for (words, out) in words.chunks(NR).zip(out.chunks_exact_mut(2 * STRIP)) {
            let (even, odd) = out.split_at_mut(STRIP);
            for ((word, even), odd) in words[..STRIP].iter().zip(even).zip(odd) {
                *even = f32::from_bits(word << 16);
                *odd = f32::from_bits(word & 0xffff_0000);
            }
        }
    }
}

/// # Safety
/// `height <= MR_F32` rows of the packed tile, `width` columns and `steps` positions are in bounds.
unsafe fn f32_tile(isa: Isa, height: usize, width: usize, steps: usize, a: *const f32, right: Right, out: Out) {
    // SAFETY: bounds by the caller; AVX2 kernels run only where `isa` says so.
    unsafe {
        match (isa, right) {
            #[cfg(target_arch = "x86_64")]
            (Isa::Avx2 | Isa::Avx512Bf16, Right::Words(b)) if width == NR => {
                macro_rules! wide { ($($m:literal)*) => { match height { $($m => bf16_avx2::<$m, 4>(steps / 2, a, b, out),)* _ => {} } } }
                wide!(1 2 3);
            }
            #[cfg(target_arch = "x86_64")]
            (Isa::Avx2 | Isa::Avx512Bf16, Right::Words(b)) => {
                macro_rules! half { ($($m:literal)*) => { match height { $($m => bf16_avx2::<$m, 2>(steps / 2, a, b, out),)* _ => {} } } }
                half!(1 2 3 4 5 6);
            }
            #[cfg(target_arch = "x86_64")]
            (Isa::Avx2 | Isa::Avx512Bf16, Right::F32(b)) => {
                let left = LeftF32 { at: a, row_stride: 1, k_stride: MR_F32 };
                by_height!(height, f32_avx2_packed(steps, left, b, out): 1 2 3 4 5 6);
            }
            (_, Right::F32(b)) => {
                let left = LeftF32 { at: a, row_stride: 1, k_stride: MR_F32 };
                f32_portable(height, STRIP, steps, left, b, out);
            }
            // Without AVX2, strips are always widened.
            (_, Right::Words(_)) => {}
        }
    }
}

/// # Safety
/// AVX-512 BF16 is there: operands are bf16 nowhere else. `height <= MR_BF16` rows, [`NR`] columns and `pairs`
/// positions are in bounds.
unsafe fn bf16_tile(height: usize, pairs: usize, a: *const u32, b: *const u32, out: Out) {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: the caller's promise.
    unsafe {
        by_height!(height, bf16_avx512(pairs, a, b, out): 1 2 3 4 5 6 7 8 9 10 11 12);
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = (height, pairs, a, b, out);
}
