//! What computes: the processor, or a GPU.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Deserializer};

/// What the engine computes on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Device {
    /// A GPU where there is one that can be used, else the processor.
    Auto,
    /// The processor.
    #[default]
    Cpu,
    /// The NVIDIA GPU of this number.
    Cuda(u16),
}

/// Why a text is no device.
#[derive(Debug, thiserror::Error)]
#[error("{0:?} is no device: auto, cpu, cuda or cuda:N")]
pub struct DeviceError(String);

impl FromStr for Device {
    type Err = DeviceError;

    fn from_str(text: &str) -> Result<Self, DeviceError> {
        let refused = || DeviceError(text.to_owned());
        match text {
            "auto" => Ok(Self::Auto),
            "cpu" => Ok(Self::Cpu),
            "cuda" => Ok(Self::Cuda(0)),
            _ => {
                let number = text.strip_prefix("cuda:").filter(|number| number.bytes().all(|c| c.is_ascii_digit()));
                number.and_then(|number| number.parse().ok()).map(Self::Cuda).ok_or_else(refused)
            }
        }
    }
}

impl fmt::Display for Device {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Auto => f.write_str("auto"),
            Self::Cpu => f.write_str("cpu"),
            Self::Cuda(number) => write!(f, "cuda:{number}"),
        }
    }
}

impl<'de> Deserialize<'de> for Device {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(serde::de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]

    use super::*;

    #[test]
    fn devices_are_spelled_as_they_are_read() {
        for (text, device) in [("auto", Device::Auto), ("cpu", Device::Cpu), ("cuda:3", Device::Cuda(3))] {
            assert_eq!((text.parse::<Device>().unwrap(), device.to_string().as_str()), (device, text));
        }
        assert_eq!("cuda".parse::<Device>().unwrap(), Device::Cuda(0));
        for text in ["", "gpu", "cuda:", "cuda:+1", "cuda:-1", "cuda:70000", "cuda0", "CPU"] {
            let refused = text.parse::<Device>().unwrap_err().to_string();
            assert_eq!(refused, format!("{text:?} is no device: auto, cpu, cuda or cuda:N"));
        }
    }
}
