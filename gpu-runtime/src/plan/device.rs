//! Devices and the links between them.

use std::str::FromStr;

use serde::Serialize;

use crate::backend::Dtype;
use crate::collective::DeviceMemory;

/// Assumed fractions of a device's peaks, for large GEMMs, for reading weights, and for large messages.
const ATTAINED: Attained = Attained { compute: 0.7, memory: 0.8, link: 0.8 };
/// Fractions of measured speeds.
const MEASURED: Attained = Attained { compute: 1.0, memory: 1.0, link: 1.0 };
/// Seconds of a call over NVLink, whatever its size. An assumption.
const NVLINK_SECONDS: f64 = 10e-6;
/// Seconds of a call over a network.
const NETWORK_SECONDS: f64 = 25e-6;

/// A device that one rank computes with.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Device {
    /// Name of the device in flags.
    pub name: String,
    /// Bytes of its memory.
    pub memory_bytes: u64,
    /// Bytes of `memory_bytes` that a model cannot use.
    pub reserved_bytes: u64,
    /// Peak of bf16 GEMMs with sums in f32, dense, in FLOP/s.
    pub bf16_flops: f64,
    /// Peak of f32 GEMMs.
    pub f32_flops: f64,
    /// Peak of reading memory, in bytes per second.
    pub bandwidth: f64,
    /// Link to the other devices of its machine.
    pub link: Link,
    /// Fractions of these peaks that the estimate assumes.
    pub attained: Attained,
    /// Whether the device is a machine's processor, which the ranks of the machine share.
    pub is_host: bool,
}

/// Attained fractions of peaks.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Attained {
    /// Fraction of the peak FLOP/s.
    pub compute: f64,
    /// Fraction of memory bandwidth.
    pub memory: f64,
    /// Fraction of a link's bandwidth.
    pub link: f64,
}

/// A link of a device, in one direction.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Link {
    /// Bandwidth in bytes per second.
    pub bandwidth: f64,
    /// Latency of a call, in seconds.
    pub latency: f64,
}

/// A row of the table: gigabytes, TFLOP/s in bf16 and in f32, terabytes per second, and gigabytes per second and direction.
struct Row {
    name: &'static str,
    memory_gb: f64,
    bf16: f64,
    f32: f64,
    terabytes: f64,
    link: f64,
}

const DEVICES: [Row; 4] = [
    // NVIDIA A100 80GB SXM, data sheet of 2021: 80 GB, 2,039 GB/s, 312 TFLOPS bf16, 19.5 TFLOPS f32, NVLink 600 GB/s in both
    // directions together.
    Row { name: "a100", memory_gb: 80.0, bf16: 312.0, f32: 19.5, terabytes: 2.039, link: 300.0 },
    // NVIDIA H100 SXM, data sheet of 2023: 80 GB, 3.35 TB/s, 989 TFLOPS bf16 without sparsity, 67 TFLOPS f32, NVLink 900 GB/s.
    Row { name: "h100", memory_gb: 80.0, bf16: 989.0, f32: 67.0, terabytes: 3.35, link: 450.0 },
    // NVIDIA H200 SXM, data sheet of 2024: as H100 with 141 GB and 4.8 TB/s.
    Row { name: "h200", memory_gb: 141.0, bf16: 989.0, f32: 67.0, terabytes: 4.8, link: 450.0 },
    // NVIDIA HGX B200, of which each of eight has 180 GB: 8 TB/s, 2.25 PFLOPS bf16 without sparsity, 80 TFLOPS f32 (Blackwell
    // architecture technical brief, 2024), NVLink 1.8 TB/s.
    Row { name: "b200", memory_gb: 180.0, bf16: 2250.0, f32: 80.0, terabytes: 8.0, link: 900.0 },
];

/// A processor, as measured or given by flags. Ranks of a machine share it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Host {
    /// Bytes of its memory.
    pub memory_bytes: u64,
    /// FLOP/s of GEMMs in the type that they are computed in.
    pub flops: f64,
    /// Bytes read per second.
    pub bandwidth: f64,
}

impl Device {
    /// Returns the names of the devices of the table.
    pub fn names() -> impl Iterator<Item = &'static str> {
        DEVICES.iter().map(|row| row.name)
    }

    /// Returns a device of the table.
    pub fn named(name: &str) -> Option<Self> {
        let row = DEVICES.iter().find(|row| row.name == name)?;
        let memory_bytes = (row.memory_gb * 1e9) as u64;
        Some(Self {
            name: row.name.to_owned(),
            memory_bytes,
            // What the engine leaves of a device that nothing else uses.
            reserved_bytes: memory_bytes - DeviceMemory::unused(memory_bytes).budget(),
            bf16_flops: row.bf16 * 1e12,
            f32_flops: row.f32 * 1e12,
            bandwidth: row.terabytes * 1e12,
            link: Link { bandwidth: row.link * 1e9, latency: NVLINK_SECONDS },
            attained: ATTAINED,
            is_host: false,
        })
    }

    /// Returns a machine's processor. Its ranks exchange rows through memory: each byte is written and read.
    pub fn host(host: Host) -> Self {
        Self {
            name: "cpu".to_owned(),
            memory_bytes: host.memory_bytes,
            reserved_bytes: 0,
            bf16_flops: host.flops,
            f32_flops: host.flops,
            bandwidth: host.bandwidth,
            link: Link { bandwidth: host.bandwidth / 2.0, latency: NETWORK_SECONDS },
            attained: MEASURED,
            is_host: true,
        }
    }

    /// The part of the device that each of `ranks` ranks has.
    pub(super) fn shared_by(&self, ranks: usize) -> Self {
        let part = ranks as f64;
        Self {
            memory_bytes: self.memory_bytes / ranks as u64,
            bf16_flops: self.bf16_flops / part,
            f32_flops: self.f32_flops / part,
            bandwidth: self.bandwidth / part,
            link: Link { bandwidth: self.link.bandwidth / part, ..self.link },
            ..self.clone()
        }
    }

    /// FLOP/s that the estimate counts on.
    pub(super) fn flops(&self, dtype: Dtype) -> f64 {
        self.attained.compute * if dtype == Dtype::Bf16 { self.bf16_flops } else { self.f32_flops }
    }

    /// Bytes per second of memory that it counts on.
    pub(super) fn read(&self) -> f64 {
        self.attained.memory * self.bandwidth
    }
}

/// The link between machines.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum LinkKind {
    /// The same link as within a machine, as in racks with NVLink switches.
    Nvlink,
    /// A network with this number of bytes per second, device and direction.
    Network(f64),
}

/// A link that cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("invalid link {0:?}: expected nvlink, 400g, or bytes per second such as 50e9")]
pub struct LinkError(String);

impl FromStr for LinkKind {
    type Err = LinkError;

    fn from_str(text: &str) -> Result<Self, LinkError> {
        match text {
            "nvlink" => Ok(Self::Nvlink),
            "400g" => Ok(Self::Network(400e9 / 8.0)),
            other => {
                let bytes = other.parse::<f64>().ok().filter(|bytes| bytes.is_finite() && *bytes > 0.0);
                bytes.map(Self::Network).ok_or_else(|| LinkError(other.to_owned()))
            }
        }
    }
}

/// Arrangement of ranks on machines.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Network {
    /// Number of ranks of a machine, which reach each other through the device's own link.
    pub per_node: usize,
    /// The link between machines.
    pub between: LinkKind,
}

impl Network {
    /// The slowest link among groups of `ranks` ranks that are `stride` apart.
    pub(super) fn link(&self, device: &Device, ranks: usize, stride: usize) -> Link {
        match self.between {
            LinkKind::Network(bandwidth) if ranks * stride > self.per_node => {
                Link { bandwidth: bandwidth.min(device.link.bandwidth), latency: NETWORK_SECONDS }
            }
            _ => device.link,
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]

    use super::*;

    #[test]
    fn devices_are_found_by_name() {
        let names: Vec<_> = Device::names().collect();
        assert_eq!(names, ["a100", "h100", "h200", "b200"]);
        for name in names {
            let device = Device::named(name).unwrap();
            assert!(device.memory_bytes > device.reserved_bytes && device.bf16_flops > device.f32_flops);
        }
        assert!(Device::named("h800").is_none());
    }

    #[test]
    fn links_are_read() {
        assert_eq!("nvlink".parse(), Ok(LinkKind::Nvlink));
        assert_eq!("400g".parse(), Ok(LinkKind::Network(50e9)));
        assert_eq!("1e9".parse(), Ok(LinkKind::Network(1e9)));
        for text in ["", "0", "-1", "nan", "inf", "400 g"] {
            assert!(text.parse::<LinkKind>().unwrap_err().to_string().contains("invalid link"));
        }
    }

    #[test]
    fn groups_that_leave_a_machine_use_the_network() {
        let (device, network) =
            (Device::named("h100").unwrap(), Network { per_node: 8, between: LinkKind::Network(50e9) });
        assert_eq!(network.link(&device, 8, 1).bandwidth, 450e9);
        assert_eq!(network.link(&device, 2, 8).bandwidth, 50e9);
        assert_eq!(network.link(&device, 16, 1).bandwidth, 50e9);
        let rack = Network { between: LinkKind::Nvlink, ..network };
        assert_eq!(rack.link(&device, 16, 1).bandwidth, 450e9);
    }
}
