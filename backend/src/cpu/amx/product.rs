//! GEMM of two sides in tiles, over all of `k` with the sums in registers.

use std::arch::asm;

use crate::cpu::tile_layout::{TileLhs, TileRhs};

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
