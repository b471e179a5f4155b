//! Instruction sets that kernels are compiled for.

use std::str::FromStr;

use serde::Deserialize;

use super::amx;

/// The instruction sets that kernels are written for, each with those below it: the kernel classes, on which the bits of
/// results depend.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Isa {
    /// Plain Rust, for any processor.
    Portable,
    /// AVX2 instructions with FMA.
    Avx2,
    /// AVX-512 (F, BW, DQ, VL) with BF16 dot products.
    Avx512Bf16,
    /// AMX with bf16 tiles.
    AmxBf16,
}

impl Isa {
    /// All instruction sets, best first.
    pub const ALL: [Self; 4] = [Self::AmxBf16, Self::Avx512Bf16, Self::Avx2, Self::Portable];

    /// Returns the best instruction set that this processor has.
    pub fn detect() -> Self {
        #[cfg(target_arch = "x86_64")]
        {
            let avx2 = is_x86_feature_detected!("avx2") && is_x86_feature_detected!("fma");
            let avx512 = is_x86_feature_detected!("avx512f")
                && is_x86_feature_detected!("avx512bw")
                && is_x86_feature_detected!("avx512dq")
                && is_x86_feature_detected!("avx512vl")
                && is_x86_feature_detected!("avx512bf16");
            match (avx2, avx512) {
                (true, true) if amx::is_permitted() => Self::AmxBf16,
                (true, true) => Self::Avx512Bf16,
                (true, false) => Self::Avx2,
                (false, _) => Self::Portable,
            }
        }
        #[cfg(not(target_arch = "x86_64"))]
        Self::Portable
    }

    /// Returns the instruction sets that this processor has, best first.
    pub fn available() -> Vec<Self> {
        let best = Self::detect();
        Self::ALL.into_iter().filter(|isa| *isa <= best).collect()
    }

    /// Whether it includes AVX2 and FMA.
    pub(super) fn has_avx2(self) -> bool {
        self >= Self::Avx2
    }

    /// Whether it includes AVX-512.
    pub(super) fn has_avx512(self) -> bool {
        self >= Self::Avx512Bf16
    }

    /// Whether it includes AMX.
    pub(super) fn has_amx(self) -> bool {
        self >= Self::AmxBf16
    }

    /// Whether it multiplies bf16.
    pub(super) fn multiplies_bf16(self) -> bool {
        self >= Self::Avx512Bf16
    }

    /// Name of the instruction set in flags and logs.
    pub fn name(self) -> &'static str {
        match self {
            Self::AmxBf16 => "amx-bf16",
            Self::Avx512Bf16 => "avx512-bf16",
            Self::Avx2 => "avx2",
            Self::Portable => "portable",
        }
    }
}

/// A name that is not that of a kernel class.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("expected amx-bf16, avx512-bf16, avx2 or portable")]
pub struct UnknownIsa;

impl FromStr for Isa {
    type Err = UnknownIsa;

    fn from_str(name: &str) -> Result<Self, UnknownIsa> {
        Self::ALL.into_iter().find(|isa| isa.name() == name).ok_or(UnknownIsa)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{from_value, json};

    use super::*;

    #[test]
    fn flags_and_files_spell_a_class_by_its_name() {
        for isa in Isa::ALL {
            assert_eq!(isa.name().parse(), Ok(isa));
            assert_eq!(from_value::<Isa>(json!(isa.name())).ok(), Some(isa));
            assert!(UnknownIsa.to_string().contains(isa.name()));
        }
        assert_eq!("avx".parse::<Isa>(), Err(UnknownIsa));
    }

    #[test]
    fn classes_below_the_best_one_are_available() {
        let available = Isa::available();
        assert_eq!(available.first(), Some(&Isa::detect()));
        assert_eq!(available.last(), Some(&Isa::Portable));
        assert_eq!(available, Isa::ALL[Isa::ALL.len() - available.len()..]);
    }
}
