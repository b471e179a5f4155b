//! The product of two sides in tiles, over all of `k` with the sums in registers.

use std::arch::asm;

/// The left side of a product of tiles: row tiles of 16 rows, each row with [`TILE_K`](super::TILE_K) bf16 of a step in 64
/// bytes.
#[derive(Clone, Copy)]
pub(crate) struct TileLhs {
    pub at: *const u8,
    /// Bytes from a row to the next one.
    pub row_stride: usize,
    /// Bytes from a step along `k` to the next one.
    pub step: usize,
    /// Bytes from the first row tile to the second one.
    pub second: usize,
}

/// The right side: rows of 16 words for each column tile, a word holding two consecutive positions of `k`, the lower one in
/// the low half. A second column tile follows the first one at once.
#[derive(Clone, Copy)]
pub(crate) struct TileRhs {
    pub at: *const u8,
    /// Bytes from a row, two positions, to the next one.
    pub row_stride: usize,
    /// Bytes from a step along `k` to the next one.
    pub step: usize,
}

/// `c[16 R, 16 C] (+)= a · b` over `steps` steps along `k`; rows of `c` are `stride` elements apart.
///
/// # Safety
/// The process [`is_permitted`](super::is_permitted) and this thread has called [`configure`](super::configure); `R`
/// row tiles and `C` column tiles (1 or 2 of each) of `steps` steps are in bounds, and nobody else accesses `c`.
#[inline(always)]
pub(crate) unsafe fn multiply<const R: usize, const C: usize>(
    steps: usize,
    a: TileLhs,
    b: TileRhs,
    c: *mut f32,
    stride: usize,
    add: bool,
) {
    const { assert!(R >= 1 && R <= 2 && C >= 1 && C <= 2) };
    // Sums are in tmm0 to tmm3: (row tile, column tile) in order; a in tmm4 and tmm5, b in tmm6 and tmm7.
    macro_rules! product {
        (load: [$($load:literal)*], zero: [$($zero:literal)*], step: [$($step:literal)*], store: [$($store:literal)*]) => {
            asm!(
                // Not every shape has a second row tile, but every operand has to be named.
                "test {add}, {add} /* {c2} */",
                "jz 3f",
                $($load,)*
                "jmp 4f",
                "3:",
                $($zero,)*
                "4:",
                "test {steps}, {steps}",
                "jz 5f",
                "2:",
                $($step,)*
                "add {a}, {a_step}",
                "add {b}, {b_step}",
                "add {a2}, {a_step}",
                "dec {steps}",
                "jnz 2b",
                "5:",
                $($store,)*
                add = in(reg) usize::from(add),
                steps = inout(reg) steps => _,
                a = inout(reg) a.at => _,
                a2 = inout(reg) a.at.wrapping_add(a.second) => _,
                b = inout(reg) b.at => _,
                a_row = in(reg) a.row_stride,
                b_row = in(reg) b.row_stride,
                a_step = in(reg) a.step,
                b_step = in(reg) b.step,
                c = in(reg) c,
                c2 = in(reg) c.wrapping_add(16 * stride),
                ldc = in(reg) 4 * stride,
                out("tmm0") _, out("tmm1") _, out("tmm2") _, out("tmm3") _,
                out("tmm4") _, out("tmm5") _, out("tmm6") _, out("tmm7") _,
                options(nostack),
            )
        };
    }
    // SAFETY: tiles and sums are in bounds and the registers configured, as the caller ensures.
    unsafe {
        match (R, C) {
            (2, 2) => product!(
                load: [
                    "tileloadd tmm0, [{c} + {ldc}*1]" "tileloadd tmm1, [{c} + {ldc}*1 + 64]"
                    "tileloadd tmm2, [{c2} + {ldc}*1]" "tileloadd tmm3, [{c2} + {ldc}*1 + 64]"
                ],
                zero: ["tilezero tmm0" "tilezero tmm1" "tilezero tmm2" "tilezero tmm3"],
                step: [
                    "tileloadd tmm4, [{a} + {a_row}*1]"
                    "tileloadd tmm6, [{b} + {b_row}*1]"
                    "tdpbf16ps tmm0, tmm4, tmm6"
                    "tileloadd tmm7, [{b} + {b_row}*1 + 64]"
                    "tdpbf16ps tmm1, tmm4, tmm7"
                    "tileloadd tmm5, [{a2} + {a_row}*1]"
                    "tdpbf16ps tmm2, tmm5, tmm6"
                    "tdpbf16ps tmm3, tmm5, tmm7"
                ],
                store: [
                    "tilestored [{c} + {ldc}*1], tmm0" "tilestored [{c} + {ldc}*1 + 64], tmm1"
                    "tilestored [{c2} + {ldc}*1], tmm2" "tilestored [{c2} + {ldc}*1 + 64], tmm3"
                ]
            ),
            (2, _) => product!(
                load: ["tileloadd tmm0, [{c} + {ldc}*1]" "tileloadd tmm2, [{c2} + {ldc}*1]"],
                zero: ["tilezero tmm0" "tilezero tmm2"],
                step: [
                    "tileloadd tmm4, [{a} + {a_row}*1]"
                    "tileloadd tmm6, [{b} + {b_row}*1]"
                    "tdpbf16ps tmm0, tmm4, tmm6"
                    "tileloadd tmm5, [{a2} + {a_row}*1]"
                    "tdpbf16ps tmm2, tmm5, tmm6"
                ],
                store: ["tilestored [{c} + {ldc}*1], tmm0" "tilestored [{c2} + {ldc}*1], tmm2"]
            ),
            (_, 2) => product!(
                load: ["tileloadd tmm0, [{c} + {ldc}*1]" "tileloadd tmm1, [{c} + {ldc}*1 + 64]"],
                zero: ["tilezero tmm0" "tilezero tmm1"],
                step: [
                    "tileloadd tmm4, [{a} + {a_row}*1]"
                    "tileloadd tmm6, [{b} + {b_row}*1]"
                    "tdpbf16ps tmm0, tmm4, tmm6"
                    "tileloadd tmm7, [{b} + {b_row}*1 + 64]"
                    "tdpbf16ps tmm1, tmm4, tmm7"
                ],
                store: ["tilestored [{c} + {ldc}*1], tmm0" "tilestored [{c} + {ldc}*1 + 64], tmm1"]
            ),
            _ => product!(
                load: ["tileloadd tmm0, [{c} + {ldc}*1]"],
                zero: ["tilezero tmm0"],
                step: [
                    "tileloadd tmm4, [{a} + {a_row}*1]"
                    "tileloadd tmm6, [{b} + {b_row}*1]"
                    "tdpbf16ps tmm0, tmm4, tmm6"
                ],
                store: ["tilestored [{c} + {ldc}*1], tmm0"]
            ),
        }
    }
}

#[cfg(test)]
mod tests {
    use half::bf16;

    use super::super::{TILE_K, configure, is_permitted};
    use super::{TileLhs, TileRhs, multiply};

    /// The arithmetic of the documentation of the folder's module, for one sum.
    fn chain(old: f32, a: &[f32], b: &[f32]) -> f32 {
        a.chunks(TILE_K).zip(b.chunks(TILE_K)).fold(old, |sum, (a, b)| {
            let part = |parity: usize| {
                let pairs = a.iter().zip(b).skip(parity).step_by(2);
                pairs.fold(0f32, |sum, (a, b)| a.mul_add(*b, sum))
            };
            sum + (part(0) + part(1))
        })
    }

    /// Numbers of both signs that bf16 has exactly, none of them small.
    fn number(i: usize) -> bf16 {
        bf16::from_f32(((i * 7_919 + 13) % 509) as f32 / 64.0 - 3.9)
    }

    #[test]
    fn products_are_the_documented_chains() {
        if !is_permitted() {
            return;
        }
        // SAFETY: permitted, as checked.
        unsafe { configure() };
        for steps in [0, 1, 3] {
            let k = steps * TILE_K;
            let a: Vec<bf16> = (0..32 * k).map(number).collect();
            // `[k][32]`, and its words.
            let b: Vec<bf16> = (0..k * 32).map(|i| number(i + 77)).collect();
            let words: Vec<u32> = (0..k * 16)
                .map(|i| {
                    let (row, column) = (i / 32, i % 32);
                    let bits = |p: usize| u32::from(b[(2 * row + p) * 32 + column].to_bits());
                    bits(0) | bits(1) << 16
                })
                .collect();
            let old: Vec<f32> = (0..32 * 40).map(|i| i as f32 / 3.0).collect();
            for add in [false, true] {
                for (rows, columns) in [(2, 2), (2, 1), (1, 2), (1, 1)] {
                    let lhs = TileLhs { at: a.as_ptr().cast(), row_stride: 2 * k, step: 64, second: 32 * k };
                    let rhs = TileRhs { at: words.as_ptr().cast(), row_stride: 128, step: 16 * 128 };
                    let mut c = old.clone();
                    // SAFETY: `a` has 32 rows of `k` positions, `b` 32 columns, `c` 32 rows of 40.
                    unsafe {
                        match (rows, columns) {
                            (2, 2) => multiply::<2, 2>(steps, lhs, rhs, c.as_mut_ptr(), 40, add),
                            (2, _) => multiply::<2, 1>(steps, lhs, rhs, c.as_mut_ptr(), 40, add),
                            (_, 2) => multiply::<1, 2>(steps, lhs, rhs, c.as_mut_ptr(), 40, add),
                            _ => multiply::<1, 1>(steps, lhs, rhs, c.as_mut_ptr(), 40, add),
                        }
                    }
                    for (i, found) in c.iter().enumerate() {
                        let (row, column) = (i / 40, i % 40);
                        let expected = if row < 16 * rows && column < 16 * columns {
                            let a: Vec<f32> = a[row * k..(row + 1) * k].iter().map(|x| x.to_f32()).collect();
                            let b: Vec<f32> = (0..k).map(|p| b[p * 32 + column].to_f32()).collect();
                            chain(if add { old[i] } else { 0.0 }, &a, &b)
                        } else {
                            old[i]
                        };
                        assert_eq!(*found, expected, "{steps} steps, {rows}x{columns}, add {add}, at {row}, {column}");
                    }
                }
            }
        }
    }
}
