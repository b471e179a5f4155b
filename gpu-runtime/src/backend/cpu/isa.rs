//! Instruction sets.

/// The instruction sets that kernels are written for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Isa {
    /// AVX-512 with BF16 dot products in GEMMs; other kernels are those of `Avx2`.
    Avx512Bf16,
    /// AVX2 and FMA.
    Avx2,
    /// Plain Rust.
    Portable,
}

impl Isa {
    /// The best one that this processor has.
    pub fn detect() -> Self {
        #[cfg(target_arch = "x86_64")]
        {
            let avx2 = is_x86_feature_detected!("avx2") && is_x86_feature_detected!("fma");
            if avx2 && is_x86_feature_detected!("avx512bf16") && is_x86_feature_detected!("avx512bw") {
                return Self::Avx512Bf16;
            }
            if avx2 {
                return Self::Avx2;
            }
        }
        Self::Portable
    }

    /// Those that this processor has, best first.
    pub fn available() -> Vec<Self> {
        match Self::detect() {
            Self::Avx512Bf16 => vec![Self::Avx512Bf16, Self::Avx2, Self::Portable],
            Self::Avx2 => vec![Self::Avx2, Self::Portable],
            Self::Portable => vec![Self::Portable],
        }
    }

    /// Its name in logs.
    pub fn name(self) -> &'static str {
        match self {
            Self::Avx512Bf16 => "avx512-bf16",
            Self::Avx2 => "avx2",
            Self::Portable => "portable",
        }
    }
}
