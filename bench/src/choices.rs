//! Choices by name: models, devices, workloads.

use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;

use clap::ValueEnum;

/// Base models with random weights.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum RandomShape {
    /// Qwen3 with 150 thousand parameters in f32, for tests.
    Tiny,
    /// Shape of Qwen3-8B, in bf16: 16 GB.
    #[value(name = "qwen3-8b")]
    Qwen3x8b,
    /// Hybrid of SmolLM2's width, in bf16: three gated delta nets to one attention layer.
    #[value(name = "hybrid-135m")]
    Hybrid135m,
}

/// Device that the engine computes on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum BenchDevice {
    Cpu,
    /// The GPU of this number.
    Cuda(u16),
}

impl FromStr for BenchDevice {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text.strip_prefix("cuda") {
            None if text == "cpu" => Ok(Self::Cpu),
            Some("") => Ok(Self::Cuda(0)),
            Some(rest) => {
                let number = rest.strip_prefix(':').and_then(|number| number.parse().ok());
                number.map(Self::Cuda).ok_or_else(|| "expected cpu, cuda or cuda:N".to_owned())
            }
            None => Err("expected cpu, cuda or cuda:N".to_owned()),
        }
    }
}

impl fmt::Display for BenchDevice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Cpu => f.write_str("cpu"),
            Self::Cuda(number) => write!(f, "cuda:{number}"),
        }
    }
}

/// A workload, or all of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Workload {
    /// One LoRA step: forward, backward, AdamW.
    W1,
    /// The same with all parameters trained.
    W1f,
    /// Eight adapters, one sequence and one step each.
    W2,
    /// Sampling: 16 prompts of 64 tokens, 64 new tokens each.
    W3,
    /// Sampling: one prompt of 64 tokens, 128 new tokens.
    W3b1,
    /// Sampling: 128 prompts of 64 tokens, 64 new tokens each.
    W3b128,
    /// Log-probabilities of a prompt's tokens.
    W4,
    /// All workloads above except w3b128.
    All,
}

/// Workloads that are measured by default, in the order of the report.
pub(crate) const EVERY: [Workload; 6] =
    [Workload::W1, Workload::W1f, Workload::W2, Workload::W3, Workload::W3b1, Workload::W4];

#[cfg(test)]
mod tests {
    use super::BenchDevice;

    #[test]
    fn devices_are_spelled_as_they_are_read() {
        for (text, device) in
            [("cpu", BenchDevice::Cpu), ("cuda:0", BenchDevice::Cuda(0)), ("cuda:3", BenchDevice::Cuda(3))]
        {
            assert_eq!((text.parse(), device.to_string().as_str()), (Ok(device), text));
        }
        assert_eq!("cuda".parse(), Ok(BenchDevice::Cuda(0)));
        for text in ["", "auto", "cuda:", "cuda:-1", "cuda1"] {
            assert!(text.parse::<BenchDevice>().is_err(), "{text}");
        }
    }
}

/// A model's name and path, written `NAME=PATH`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct NamedModel {
    pub(crate) name: String,
    pub(crate) path: PathBuf,
}

impl FromStr for NamedModel {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text.split_once('=') {
            Some((name, path)) if !name.is_empty() && !path.is_empty() => {
                Ok(Self { name: name.to_owned(), path: PathBuf::from(path) })
            }
            _ => Err("expected NAME=PATH".to_owned()),
        }
    }
}
