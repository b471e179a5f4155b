//! Sums over several pairs of packed sides: parts of `k`, and the low-rank updates of adapters.

use std::arch::asm;

use crate::cpu::tile_layout::{PREFETCH, Segment};

/// Bytes by which [`multiply_segments`] prefetches the right side where it reads it once.
const AHEAD: usize = 8 << 10;

/// `c[16 R, 32] (+)= Σ a · b` over segments in order; rows of `c` are `stride` elements apart. With `STREAM`, the right side
/// comes from memory and is prefetched.
///
/// # Safety
/// As [`multiply`](super::multiply); there is a segment.
#[inline(always)]
pub(crate) unsafe fn multiply_segments<const R: usize, const STREAM: bool>(
    segments: &[Segment],
    c: *mut f32,
    stride: usize,
    add: bool,
) {
    const { assert!(R >= 1 && R <= 2) };
    macro_rules! product {
        (load: [$($load:literal)*], zero: [$($zero:literal)*], step: [$($step:literal)*], store: [$($store:literal)*]) => {
            asm!(
                "test {add}, {add} /* {c2} */",
                "jz 3f",
                $($load,)*
                "jmp 4f",
                "3:",
                $($zero,)*
                "4:",
                "mov {a}, qword ptr [{segment}]",
                "mov {a2}, qword ptr [{segment} + 8]",
                "mov {b}, qword ptr [{segment} + 16]",
                "mov {steps}, qword ptr [{segment} + 24]",
                "mov {ahead}, qword ptr [{segment} + 32]",
                "test {steps}, {steps}",
                "jz 5f",
                "2:",
                $($step,)*
                "add {a}, 1024",
                "add {b}, 2048",
                "add {a2}, 1024",
                "dec {steps}",
                "jnz 2b",
                "5:",
                "add {segment}, 40",
                "dec {count}",
                "jnz 4b",
                $($store,)*
                add = in(reg) usize::from(add),
                segment = inout(reg) segments.as_ptr() => _,
                count = inout(reg) segments.len() => _,
                steps = out(reg) _,
                a = out(reg) _,
                a2 = out(reg) _,
                b = out(reg) _,
                ahead = out(reg) _,
                a_row = in(reg) 64usize,
                b_row = in(reg) 128usize,
                c = in(reg) c,
                c2 = in(reg) c.wrapping_add(16 * stride),
                ldc = in(reg) 4 * stride,
                out("tmm0") _, out("tmm1") _, out("tmm2") _, out("tmm3") _,
                out("tmm4") _, out("tmm5") _, out("tmm6") _, out("tmm7") _,
                options(nostack),
            )
        };
    }
    const { assert!(AHEAD == 8192 && PREFETCH == 256) };
    // SAFETY: tiles and sums are in bounds and the registers configured, as the caller ensures; a prefetch reads nothing that
    // the program sees, at any address.
    unsafe {
        match (R, STREAM) {
            (2, _) => product!(
                load: [
                    "tileloadd tmm0, [{c} + {ldc}*1]" "tileloadd tmm1, [{c} + {ldc}*1 + 64]"
                    "tileloadd tmm2, [{c2} + {ldc}*1]" "tileloadd tmm3, [{c2} + {ldc}*1 + 64]"
                ],
                zero: ["tilezero tmm0" "tilezero tmm1" "tilezero tmm2" "tilezero tmm3"],
                step: [
                    "tileloadd tmm4, [{a} + {a_row}*1]"
                    "tileloadd tmm6, [{b} + {b_row}*1]"
                    "tdpbf16ps tmm0, tmm4, tmm6"
                    "prefetcht1 [{ahead}]" "prefetcht1 [{ahead} + 64]"
                    "tileloadd tmm7, [{b} + {b_row}*1 + 64]"
                    "tdpbf16ps tmm1, tmm4, tmm7"
                    "prefetcht1 [{ahead} + 128]" "prefetcht1 [{ahead} + 192]"
                    "tileloadd tmm5, [{a2} + {a_row}*1]"
                    "tdpbf16ps tmm2, tmm5, tmm6"
                    "add {ahead}, 256"
                    "tdpbf16ps tmm3, tmm5, tmm7"
                ],
                store: [
                    "tilestored [{c} + {ldc}*1], tmm0" "tilestored [{c} + {ldc}*1 + 64], tmm1"
                    "tilestored [{c2} + {ldc}*1], tmm2" "tilestored [{c2} + {ldc}*1 + 64], tmm3"
                ]
            ),
            (_, false) => product!(
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
            (_, true) => product!(
                load: ["tileloadd tmm0, [{c} + {ldc}*1]" "tileloadd tmm1, [{c} + {ldc}*1 + 64]"],
                zero: ["tilezero tmm0" "tilezero tmm1"],
                step: [
                    "prefetcht0 [{b} + 8192]" "prefetcht0 [{b} + 8256]" "prefetcht0 [{b} + 8320]" "prefetcht0 [{b} + 8384]"
                    "prefetcht0 [{b} + 8448]" "prefetcht0 [{b} + 8512]" "prefetcht0 [{b} + 8576]" "prefetcht0 [{b} + 8640]"
                    "prefetcht0 [{b} + 8704]" "prefetcht0 [{b} + 8768]" "prefetcht0 [{b} + 8832]" "prefetcht0 [{b} + 8896]"
                    "prefetcht0 [{b} + 8960]" "prefetcht0 [{b} + 9024]" "prefetcht0 [{b} + 9088]" "prefetcht0 [{b} + 9152]"
                    "prefetcht0 [{b} + 9216]" "prefetcht0 [{b} + 9280]" "prefetcht0 [{b} + 9344]" "prefetcht0 [{b} + 9408]"
                    "prefetcht0 [{b} + 9472]" "prefetcht0 [{b} + 9536]" "prefetcht0 [{b} + 9600]" "prefetcht0 [{b} + 9664]"
                    "prefetcht0 [{b} + 9728]" "prefetcht0 [{b} + 9792]" "prefetcht0 [{b} + 9856]" "prefetcht0 [{b} + 9920]"
                    "prefetcht0 [{b} + 9984]" "prefetcht0 [{b} + 10048]" "prefetcht0 [{b} + 10112]" "prefetcht0 [{b} + 10176]"
                    "tileloadd tmm4, [{a} + {a_row}*1]"
                    "tileloadd tmm6, [{b} + {b_row}*1]"
                    "tdpbf16ps tmm0, tmm4, tmm6"
                    "tileloadd tmm7, [{b} + {b_row}*1 + 64]"
                    "tdpbf16ps tmm1, tmm4, tmm7"
                ],
                store: ["tilestored [{c} + {ldc}*1], tmm0" "tilestored [{c} + {ldc}*1 + 64], tmm1"]
            ),
        }
    }
}
