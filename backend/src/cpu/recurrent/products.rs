//! Products of a chunk's small matrices. Every element is one chain of fused multiply-adds in a fixed order, whatever
//! tile it is computed in: a row alone has the bits that it has in a chunk, on every instruction set.

use crate::cpu::Isa;

/// Adjacent elements that are computed together.
const LANES: usize = 16;
/// Rows of a triangular product, or of a substitution, that share the terms outside their own block.
const BLOCK: usize = 8;

/// Defines a product with register tiles of `ROWS` rows and `WIDE · LANES` columns, as many as an instruction set has registers for.
macro_rules! tiled {
    ($(#[$doc:meta])* fn $name:ident<$rows:ident, $wide:ident>($($arg:ident: $ty:ty),* $(,)?) $body:block) => {
        $(#[$doc])*
        pub(super) fn $name(isa: Isa, $($arg: $ty),*) {
            #[inline(always)]
            fn body<const $rows: usize, const $wide: usize>($($arg: $ty),*) $body

            #[cfg(target_arch = "x86_64")]
            #[target_feature(enable = "avx2,fma,avx512f,avx512bw,avx512dq,avx512vl")]
            fn avx512($($arg: $ty),*) {
                body::<8, 2>($($arg),*)
            }

            #[cfg(target_arch = "x86_64")]
            #[target_feature(enable = "avx2,fma")]
            fn avx2($($arg: $ty),*) {
                body::<4, 1>($($arg),*)
            }

            #[cfg(target_arch = "x86_64")]
            if isa.has_avx512() {
                // SAFETY: an `Isa` of a `Cpu` is one that the processor has.
                return unsafe { avx512($($arg),*) };
            }
            #[cfg(target_arch = "x86_64")]
            if isa.has_avx2() {
                // SAFETY: an `Isa` of a `Cpu` is one that the processor has.
                return unsafe { avx2($($arg),*) };
            }
            let _ = isa;
            body::<4, 1>($($arg),*)
        }
    };
}

#[inline(always)]
fn lanes(x: &[f32]) -> [f32; LANES] {
    let mut lanes = [0.0; LANES];
    lanes.copy_from_slice(&x[..LANES]);
    lanes
}

/// `out[r] += Σ_j a[r][j] · b[j]` for `R` rows and `C · LANES` columns from `column` on, `j` ascending below `terms`. Rows of `a` are
/// `stride` apart, those of `b` and `out` have `n` elements.
#[inline(always)]
fn add_block<const R: usize, const C: usize>(
    a: &[f32],
    stride: usize,
    terms: usize,
    b: &[f32],
    n: usize,
    out: &mut [f32],
    column: usize,
) {
    let rows: [&[f32]; R] = std::array::from_fn(|r| &a[r * stride..][..terms]);
    // Separate arrays of one register each: the compiler shuffles wider ones.
    let mut sums: [[[f32; LANES]; C]; R] =
        std::array::from_fn(|r| std::array::from_fn(|c| lanes(&out[r * n + column + c * LANES..])));
    for (j, b) in (0..terms).zip(b[column..].chunks(n)) {
        let b: [[f32; LANES]; C] = std::array::from_fn(|c| lanes(&b[c * LANES..]));
        for (sums, row) in sums.iter_mut().zip(&rows) {
            let a = row[j];
            for (sum, b) in sums.iter_mut().zip(&b) {
                for (sum, b) in sum.iter_mut().zip(b) {
                    *sum = a.mul_add(*b, *sum);
                }
            }
        }
    }
    for (r, sums) in sums.iter().enumerate() {
        for (c, sum) in sums.iter().enumerate() {
            out[r * n + column + c * LANES..][..LANES].copy_from_slice(sum);
        }
    }
}

/// The same for all columns.
#[inline(always)]
fn add_tile<const R: usize, const C: usize>(
    a: &[f32],
    stride: usize,
    terms: usize,
    b: &[f32],
    n: usize,
    out: &mut [f32],
) {
    if terms == 0 {
        return;
    }
    let mut column = 0;
    while column + C * LANES <= n {
        add_block::<R, C>(a, stride, terms, b, n, out, column);
        column += C * LANES;
    }
    while column + LANES <= n {
        add_block::<R, 1>(a, stride, terms, b, n, out, column);
        column += LANES;
    }
    for (r, out) in out.chunks_exact_mut(n).enumerate().take(R) {
        for (column, out) in out.iter_mut().enumerate().skip(column) {
            for j in 0..terms {
                *out = a[r * stride + j].mul_add(b[j * n + column], *out);
            }
        }
    }
}

/// The same for one row, whose columns alone have enough chains to keep the processor busy.
#[inline(always)]
fn add_row(a: &[f32], terms: usize, b: &[f32], n: usize, out: &mut [f32]) {
    add_tile::<1, 4>(a, 0, terms, b, n, out);
}

/// The same for any number of rows.
#[inline(always)]
fn add_rows<const R: usize, const C: usize>(
    a: &[f32],
    stride: usize,
    terms: usize,
    b: &[f32],
    n: usize,
    out: &mut [f32],
) {
    let mut first = 0;
    for out in out.chunks_mut(R * n) {
        let a = &a[first * stride..];
        if out.len() == R * n {
            add_tile::<R, C>(a, stride, terms, b, n, out);
        } else {
            for (r, out) in out.chunks_exact_mut(n).enumerate() {
                add_row(&a[r * stride..], terms, b, n, out);
            }
        }
        first += R;
    }
}

tiled! {
    /// `out += a b`: `a` has rows of `stride` elements, of which the first `terms` count; `b` is `[terms, n]`.
    fn add_product<ROWS, WIDE>(a: &[f32], stride: usize, terms: usize, b: &[f32], n: usize, out: &mut [f32]) {
        add_rows::<ROWS, WIDE>(a, stride, terms, b, n, out);
    }
}

tiled! {
    /// `out[r] += Σ_j a[r][j] b[j]` over `j ≤ first + r`.
    fn add_lower_product<ROWS, WIDE>(a: &[f32], stride: usize, first: usize, b: &[f32], n: usize, out: &mut [f32]) {
        for (block, out) in out.chunks_mut(BLOCK * n).enumerate() {
            let at = block * BLOCK;
            let common = first + at + 1;
            let a = &a[at * stride..];
            add_rows::<ROWS, WIDE>(a, stride, common, b, n, out);
            for (r, out) in out.chunks_exact_mut(n).enumerate() {
                add_row(&a[r * stride + common..], r, &b[common * n..], n, out);
            }
        }
    }
}

tiled! {
    /// `out[j] += Σ_i a[j][i] b[i]` over the rows of `b` from `j` on.
    fn add_upper_product<ROWS, WIDE>(a: &[f32], stride: usize, b: &[f32], n: usize, out: &mut [f32]) {
        let rows = b.len() / n;
        for (block, out) in out.chunks_mut(BLOCK * n).enumerate() {
            let at = block * BLOCK;
            let common = (at + BLOCK).min(rows);
            for (r, out) in out.chunks_exact_mut(n).enumerate() {
                let j = at + r;
                add_row(&a[j * stride + j..], common - j, &b[j * n..], n, out);
            }
            add_rows::<ROWS, WIDE>(&a[at * stride + common..], stride, rows - common, &b[common * n..], n, out);
        }
    }
}

tiled! {
    /// Solves for rows of a chunk: `x[r] ← steps[r] · (x[r] + Σ_j a[r][j] written[j])` over `j < first + r`, where `written` has the
    /// chunk's rows before these, and gets these. `residuals` gets the brackets.
    fn substitute<ROWS, WIDE>(
        a: &[f32],
        stride: usize,
        first: usize,
        steps: &[f32],
        residuals: &mut [f32],
        n: usize,
        written: &mut [f32],
    ) {
        for (block, rows) in residuals.chunks_mut(BLOCK * n).enumerate() {
            let at = block * BLOCK;
            let a = &a[at * stride..];
            add_rows::<ROWS, WIDE>(a, stride, first + at, written, n, rows);
            for (r, row) in rows.chunks_exact_mut(n).enumerate() {
                let (before, own) = written.split_at_mut((first + at + r) * n);
                let done = first + at;
                add_row(&a[r * stride + done..], r, &before[done * n..], n, row);
                for (own, row) in own.iter_mut().zip(row.iter()) {
                    *own = steps[at + r] * row;
                }
            }
        }
    }
}

tiled! {
    /// Solves for rows of a chunk, from the last one on: `x[j] ← x[j] + Σ_i a[j][i] solved[i]` over `i > j`, where
    /// `solved[i] = steps[i] · x[i]`. Terms of later blocks come first, each part in ascending order.
    fn substitute_back<ROWS, WIDE>(
        a: &[f32],
        stride: usize,
        steps: &[f32],
        x: &mut [f32],
        n: usize,
        solved: &mut [f32],
    ) {
        let rows = steps.len();
        for (block, x) in x.chunks_mut(BLOCK * n).enumerate().rev() {
            let at = block * BLOCK;
            let common = (at + BLOCK).min(rows);
            add_rows::<ROWS, WIDE>(&a[at * stride + common..], stride, rows - common, &solved[common * n..], n, x);
            for (r, x) in x.chunks_exact_mut(n).enumerate().rev() {
                let j = at + r;
                let (own, behind) = solved[j * n..].split_at_mut(n);
                add_row(&a[j * stride + j + 1..], common - j - 1, behind, n, x);
                for (own, x) in own.iter_mut().zip(x.iter()) {
                    *own = steps[j] * x;
                }
            }
        }
    }
}

tiled! {
    /// `state ← decay · state + keys written`: `keys` is `[key_dim, stride]`, already weighted, of which the first `terms` columns
    /// count.
    fn write_state<ROWS, WIDE>(
        keys: &[f32],
        stride: usize,
        terms: usize,
        decay: f32,
        written: &[f32],
        n: usize,
        state: &mut [f32],
    ) {
        for x in state.iter_mut() {
            *x *= decay;
        }
        add_rows::<ROWS, WIDE>(keys, stride, terms, written, n, state);
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]
    use proptest::prelude::*;

    use super::*;
    use crate::rng::kaiming_uniform_fill;

    fn random(seed: u64, len: usize) -> Vec<f32> {
        let mut values = vec![0.0; len];
        kaiming_uniform_fill(seed, 0, &mut values, 1.0);
        values
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]

        #[test]
        fn products_are_chains_in_ascending_order_on_every_instruction_set(
            rows in 1usize..20, n in 1usize..75, seed in 0u64..1000,
        ) {
            let (a, b) = (random(seed, rows * 24), random(seed + 1, rows * n));
            let start = random(seed + 2, rows * n);
            let by_terms = |terms: &dyn Fn(usize) -> std::ops::Range<usize>| {
                let mut out = start.clone();
                for (r, out) in out.chunks_exact_mut(n).enumerate() {
                    for (column, out) in out.iter_mut().enumerate() {
                        for j in terms(r) {
                            *out = a[r * 24 + j].mul_add(b[j * n + column], *out);
                        }
                    }
                }
                out
            };
            for isa in Isa::available() {
                let (mut all, mut lower, mut upper) = (start.clone(), start.clone(), start.clone());
                add_product(isa, &a, 24, rows, &b, n, &mut all);
                prop_assert_eq!(&all, &by_terms(&|_| 0..rows));
                add_lower_product(isa, &a, 24, 0, &b, n, &mut lower);
                prop_assert_eq!(&lower, &by_terms(&|r| 0..r + 1));
                add_upper_product(isa, &a, 24, &b, n, &mut upper);
                prop_assert_eq!(&upper, &by_terms(&|r| r..rows));
            }
        }

        #[test]
        fn substitutions_solve_with_the_same_bits_on_every_instruction_set(
            rows in 1usize..20, n in 1usize..40, seed in 0u64..1000,
        ) {
            let (a, x, steps) = (random(seed, rows * 24), random(seed + 1, rows * n), random(seed + 2, rows));
            let mut first: Option<[Vec<f32>; 2]> = None;
            for isa in Isa::available() {
                let solve = |back: bool| {
                    let (mut brackets, mut solved) = (x.clone(), vec![0.0; rows * n]);
                    if back {
                        substitute_back(isa, &a, 24, &steps, &mut brackets, n, &mut solved);
                    } else {
                        substitute(isa, &a, 24, 0, &steps, &mut brackets, n, &mut solved);
                    }
                    for (r, bracket) in brackets.chunks_exact(n).enumerate() {
                        for (column, bracket) in bracket.iter().enumerate() {
                            let others = if back { r + 1..rows } else { 0..r };
                            let sum: f32 = others.map(|j| a[r * 24 + j] * solved[j * n + column]).sum();
                            assert!((bracket - x[r * n + column] - sum).abs() < 1e-4);
                            assert_eq!(solved[r * n + column], steps[r] * bracket);
                        }
                    }
                    solved
                };
                let solved = [solve(false), solve(true)];
                prop_assert_eq!(first.get_or_insert_with(|| solved.clone()), &solved);
            }
        }
    }
}
