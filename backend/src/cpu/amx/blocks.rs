//! GEMM of tiles over blocks that may be anywhere in memory.

use std::arch::asm;

/// Bytes of a row of a tile.
const ROW: usize = 64;

/// Computes `c[32, 16 C] (+)= Σ a · b` over one or more blocks of 32 positions. Each block has 32 rows of `a` at its
/// address in `blocks` plus `offset` bytes, one after the other, and 16 rows of 16 C words of `b`, blocks one after the
/// other. Rows of `c` have 16 C elements. The arithmetic is that of [`multiply`](super::multiply).
///
/// # Safety
/// The processor has AMX, configured on this thread; all addresses are in bounds, and `c` is not accessed elsewhere.
#[inline(always)]
pub(crate) unsafe fn multiply_blocks<const C: usize>(
    blocks: &[*const u8],
    offset: usize,
    b: *const u32,
    c: *mut f32,
    add: bool,
) {
    const { assert!(C == 1 || C == 2) };
    // Sums are in tmm0 to tmm3: (row tile, column tile) in order; a in tmm4 and tmm5, b in tmm6 and tmm7.
    macro_rules! product {
        (load: [$($load:literal)*], zero: [$($zero:literal)*], step: [$($step:literal)*], store: [$($store:literal)*]) => {
            asm!(
                "test {add}, {add}",
                "jz 3f",
                $($load,)*
                "jmp 2f",
                "3:",
                $($zero,)*
                "2:",
                "mov {a}, qword ptr [{blocks}]",
                "add {a}, {offset}",
                $($step,)*
                "add {b}, {b_step}",
                "add {blocks}, 8",
                "dec {count}",
                "jnz 2b",
                $($store,)*
                add = in(reg) usize::from(add),
                count = inout(reg) blocks.len() => _,
                blocks = inout(reg) blocks.as_ptr() => _,
                offset = in(reg) offset,
                a = out(reg) _,
                a_row = in(reg) ROW,
                b = inout(reg) b => _,
                b_step = in(reg) 16 * 64 * C,
                c = in(reg) c,
                c2 = in(reg) c.wrapping_add(16 * 16 * C),
                row = in(reg) 64 * C,
                out("tmm0") _, out("tmm1") _, out("tmm2") _, out("tmm3") _,
                out("tmm4") _, out("tmm5") _, out("tmm6") _, out("tmm7") _,
                options(nostack),
            )
        };
    }
    assert!(!blocks.is_empty());
    // SAFETY: tiles and sums are in bounds and the registers configured, as the caller ensures.
    unsafe {
        if C == 2 {
            product!(
                load: [
                    "tileloadd tmm0, [{c} + {row}*1]" "tileloadd tmm1, [{c} + {row}*1 + 64]"
                    "tileloadd tmm2, [{c2} + {row}*1]" "tileloadd tmm3, [{c2} + {row}*1 + 64]"
                ],
                zero: ["tilezero tmm0" "tilezero tmm1" "tilezero tmm2" "tilezero tmm3"],
                step: [
                    "tileloadd tmm4, [{a} + {a_row}*1]"
                    "tileloadd tmm6, [{b} + {row}*1]"
                    "tdpbf16ps tmm0, tmm4, tmm6"
                    "tileloadd tmm7, [{b} + {row}*1 + 64]"
                    "tdpbf16ps tmm1, tmm4, tmm7"
                    "tileloadd tmm5, [{a} + {a_row}*1 + 1024]"
                    "tdpbf16ps tmm2, tmm5, tmm6"
                    "tdpbf16ps tmm3, tmm5, tmm7"
                ],
                store: [
                    "tilestored [{c} + {row}*1], tmm0" "tilestored [{c} + {row}*1 + 64], tmm1"
                    "tilestored [{c2} + {row}*1], tmm2" "tilestored [{c2} + {row}*1 + 64], tmm3"
                ]
            );
        } else {
            product!(
                load: ["tileloadd tmm0, [{c} + {row}*1]" "tileloadd tmm2, [{c2} + {row}*1]"],
                zero: ["tilezero tmm0" "tilezero tmm2"],
                step: [
                    "tileloadd tmm4, [{a} + {a_row}*1]"
                    "tileloadd tmm6, [{b} + {row}*1]"
                    "tdpbf16ps tmm0, tmm4, tmm6"
                    "tileloadd tmm5, [{a} + {a_row}*1 + 1024]"
                    "tdpbf16ps tmm2, tmm5, tmm6"
                ],
                store: ["tilestored [{c} + {row}*1], tmm0" "tilestored [{c2} + {row}*1], tmm2"]
            );
        }
    }
}
