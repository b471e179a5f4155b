//! The arithmetic of `tdpbf16ps`.
#![expect(unsafe_code, reason = "the rounding mode of vector instructions is set by machine code alone")]

use std::arch::asm;

use super::tiles::Tile;

/// Control bits of vector instructions: denormal inputs and results count as zero, results are rounded to nearest even, no
/// exception is raised.
static FLUSHING: u32 = 0x9fc0;

/// Computes `to += a · b`. For each of the 16 sums in each of `rows` rows, the products of the pairs' lower halves are
/// added up from zero by fused multiply-adds, in the order of the `words` words in a row of `a`. The products of the
/// upper halves are added up likewise. Then the two sums are added, and the result is added to the old value.
///
/// # Safety
/// The processor has AVX-512F; `rows` and `words` are 1 to 16.
#[target_feature(enable = "avx512f")]
pub(crate) unsafe fn multiply_bf16(to: &mut Tile, a: &Tile, b: &Tile, [rows, words]: [usize; 2]) {
    let mut saved = 0u32;
    // SAFETY: rows of 64 bytes of `to` and `a` are accessed up to `rows`, of `b` up to `words`, and of a row of `a` so many
    // words; the control bits that the program has are restored.
    unsafe {
        asm!(
            "stmxcsr [{saved}]",
            "ldmxcsr [{flushing}]",
            "vpternlogd zmm31, zmm31, zmm31, 255",
            "vpslld zmm31, zmm31, 16",
            "2:",
            "vpxord zmm0, zmm0, zmm0",
            "vpxord zmm1, zmm1, zmm1",
            "mov {row}, {b}",
            "xor {word:e}, {word:e}",
            "3:",
            "vpbroadcastd zmm2, dword ptr [{a} + 4*{word}]",
            "vmovdqu64 zmm4, zmmword ptr [{row}]",
            "vpslld zmm3, zmm2, 16",
            "vpandd zmm2, zmm2, zmm31",
            "vpslld zmm5, zmm4, 16",
            "vpandd zmm4, zmm4, zmm31",
            "vfmadd231ps zmm0, zmm3, zmm5",
            "vfmadd231ps zmm1, zmm2, zmm4",
            "add {row}, 64",
            "inc {word}",
            "cmp {word}, {words}",
            "jne 3b",
            "vaddps zmm0, zmm0, zmm1",
            "vmovdqu64 zmm1, zmmword ptr [{to}]",
            "vaddps zmm0, zmm1, zmm0",
            "vmovdqu64 zmmword ptr [{to}], zmm0",
            "add {a}, 64",
            "add {to}, 64",
            "dec {rows}",
            "jnz 2b",
            "ldmxcsr [{saved}]",
            saved = in(reg) &raw mut saved,
            flushing = in(reg) &raw const FLUSHING,
            to = inout(reg) to.0.as_mut_ptr() => _,
            a = inout(reg) a.0.as_ptr() => _,
            b = in(reg) b.0.as_ptr(),
            row = out(reg) _,
            word = out(reg) _,
            words = in(reg) words,
            rows = inout(reg) rows => _,
            out("zmm0") _, out("zmm1") _, out("zmm2") _, out("zmm3") _, out("zmm4") _, out("zmm5") _, out("zmm31") _,
            options(nostack),
        );
    }
}
