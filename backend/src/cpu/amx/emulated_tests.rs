//! The tests of the kernels with tiles, in another process in which tile instructions are emulated. On processors without AMX
//! nothing else tests these kernels; with AMX, both have to pass.

use amx_emulator::{executed, is_rerun, rerun, skipped};

use crate::Dtype;
use crate::cpu::gemm::{PackedLhs, matmul};
use crate::cpu::packed::PackedMatrix;
use crate::cpu::{Cpu, Isa};

/// Tests of the tiles, and for each kernel that uses them the tests that finish in seconds; those run the kernel for
/// every instruction set.
const TESTS: [&str; 10] = [
    "cpu::amx::",
    "cpu::attention::",
    "cpu::gemm::",
    "cpu::packed::",
    "cpu::tile_unit::",
    "cpu::tests::attention::windowed_attention_and_its_gradient",
    "cpu::tests::attention_kv::sequences_in_one_pass_may_be_at_different_positions",
    "cpu::tests::head::log_probabilities_and_their_gradients",
    "cpu::tests::invariance::products_of_matrices",
    "tests::vision::attention_does_not_depend_on_other_images",
];

#[test]
fn kernels_pass_their_tests_with_emulated_tiles() {
    if is_rerun() {
        return emulated_gemm();
    }
    if !Isa::available().contains(&Isa::Avx512Bf16) {
        return skipped("tests of kernels with emulated tiles, which also use AVX-512 BF16: this processor has none");
    }
    match rerun(&TESTS) {
        Err(error) => skipped(error),
        Ok(rerun) => assert!(rerun.success && rerun.passed >= 16, "{}", rerun.output),
    }
}

/// Kernels of the class execute emulated instructions.
fn emulated_gemm() {
    assert_eq!(Isa::detect(), Isa::AmxBf16);
    let (cpu, before) = (Cpu::new(1), executed());
    let x = PackedLhs::new(&cpu, Dtype::Bf16, &[1.0; 16 * 32], 32);
    let w = PackedMatrix::pack(&cpu, Dtype::Bf16, 32, &[&[0.5; 32 * 32]]);
    let mut c = [0.0; 16 * 32];
    matmul(&cpu, &x, &w, &mut c, false);
    assert_eq!(c, [16.0; 16 * 32]);
    assert!(executed() > before, "the processor executed the instructions itself");
}
