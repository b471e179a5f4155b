//! Devices that compute: the processor, or GPUs.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Deserializer};

/// The device that the engine computes on.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Device {
    /// GPUs from number 0 on if enough usable ones exist for all ranks, else the processor.
    Auto,
    /// The processor of this machine.
    #[default]
    Cpu,
    /// The NVIDIA GPUs with these numbers.
    Cuda(Gpus),
}

/// The numbers of the GPUs that the ranks of a process compute on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Gpus {
    /// Consecutive GPUs from this number on, one for each rank.
    From(u16),
    /// These GPUs, one for each rank in order.
    Each(Vec<u16>),
}

/// The error for a text that does not name a device.
#[derive(Debug, thiserror::Error)]
#[error("invalid device {0:?}: expected auto, cpu, cuda, cuda:N or cuda:N,M,… with distinct numbers")]
pub struct DeviceError(String);

impl Gpus {
    /// Returns the GPU of each of `ranks` ranks; `None` if the configured list of GPUs has another length.
    pub fn of(&self, ranks: usize) -> Option<Vec<u16>> {
        match self {
            Self::From(first) => (0..ranks).map(|rank| first.checked_add(u16::try_from(rank).ok()?)).collect(),
            Self::Each(numbers) => (numbers.len() == ranks).then(|| numbers.clone()),
        }
    }
}

impl FromStr for Device {
    type Err = DeviceError;

    fn from_str(text: &str) -> Result<Self, DeviceError> {
        let refused = || DeviceError(text.to_owned());
        let number = |text: &str| -> Option<u16> {
            text.bytes().all(|c| c.is_ascii_digit()).then(|| text.parse().ok()).flatten()
        };
        match text {
            "auto" => Ok(Self::Auto),
            "cpu" => Ok(Self::Cpu),
            "cuda" => Ok(Self::Cuda(Gpus::From(0))),
            _ => {
                let numbers = text.strip_prefix("cuda:").map(|list| list.split(',').map(number).collect());
                let numbers: Vec<u16> = numbers.flatten().ok_or_else(refused)?;
                let is_distinct = numbers.iter().enumerate().all(|(at, number)| !numbers[..at].contains(number));
                match numbers[..] {
                    [first] => Ok(Self::Cuda(Gpus::From(first))),
                    _ if is_distinct => Ok(Self::Cuda(Gpus::Each(numbers))),
                    _ => Err(refused()),
                }
            }
        }
    }
}

impl fmt::Display for Gpus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::From(first) => write!(f, "cuda:{first}"),
            Self::Each(numbers) => {
                let numbers: Vec<String> = numbers.iter().map(u16::to_string).collect();
                write!(f, "cuda:{}", numbers.join(","))
            }
        }
    }
}

impl fmt::Display for Device {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Auto => f.write_str("auto"),
            Self::Cpu => f.write_str("cpu"),
            Self::Cuda(gpus) => gpus.fmt(f),
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
        let each = Device::Cuda(Gpus::Each(vec![2, 0, 1]));
        let devices = [
            ("auto", Device::Auto),
            ("cpu", Device::Cpu),
            ("cuda:3", Device::Cuda(Gpus::From(3))),
            ("cuda:2,0,1", each),
        ];
        for (text, device) in devices {
            assert_eq!(device.to_string(), text);
            assert_eq!(text.parse::<Device>().unwrap(), device);
        }
        assert_eq!("cuda".parse::<Device>().unwrap(), Device::Cuda(Gpus::From(0)));
        let wrong = ["", "gpu", "cuda:", "cuda:+1", "cuda:-1", "cuda:70000", "cuda0", "CPU", "cuda:1,", "cuda:1,1"];
        for text in wrong {
            let refused = text.parse::<Device>().unwrap_err().to_string();
            let allowed = "auto, cpu, cuda, cuda:N or cuda:N,M,… with distinct numbers";
            assert_eq!(refused, format!("invalid device {text:?}: expected {allowed}"));
        }
    }

    #[test]
    fn each_rank_has_a_gpu() {
        assert_eq!(Gpus::From(2).of(3), Some(vec![2, 3, 4]));
        assert_eq!(Gpus::From(u16::MAX).of(2), None);
        assert_eq!(Gpus::Each(vec![3, 1]).of(2), Some(vec![3, 1]));
        assert_eq!(Gpus::Each(vec![3, 1]).of(1), None);
    }
}
