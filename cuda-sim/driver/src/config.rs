//! Configuration of the simulated machine from environment variables.

use std::path::PathBuf;

use crate::faults::Faults;

/// Time at which work on streams runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Schedule {
    /// Operations run at random between their submission and the moment when the host waits for them.
    Random,
    /// Operations run when the host waits for them.
    Late,
    /// Operations run at their submission.
    Eager,
}

/// What devices of the machine may touch of each other's memory.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(crate) enum PeerAccess {
    /// Nothing, as without NVLink behind some bridges: programs copy through the host.
    None,
    /// Memory of `cuMemAlloc` alone: pools refuse access.
    WithoutPools,
    /// All memory to which access was granted.
    #[default]
    Granted,
}

#[derive(Debug, Clone)]
pub(crate) struct Config {
    /// `CUDASIM_DEVICES`: devices of the machine.
    pub(crate) devices: usize,
    /// `CUDASIM_MEMORY`: bytes of each device.
    pub(crate) memory: u64,
    /// `CUDASIM_STUB`: the library is one to link with, not a driver.
    pub(crate) stub: bool,
    /// `CUDASIM_OCCUPIED`: bytes of each device that another process holds.
    pub(crate) occupied: u64,
    /// `CUDASIM_PEER_ACCESS`: `none`, `no-pools` or `granted`.
    pub(crate) peer_access: PeerAccess,
    /// `CUDASIM_CAPABILITY`: major and minor version of the compute capability, as `9.0`.
    pub(crate) capability: (u32, u32),
    /// `CUDASIM_CUBIN_PTX`: a folder of the PTX that cubins were made from, each named after its cubin's checksum.
    pub(crate) cubin_ptx: Option<PathBuf>,
    /// `CUDASIM_SEED`: chooses the order of streams, blocks and warps.
    pub(crate) seed: u64,
    /// `CUDASIM_SCHEDULE`: `random`, `late` or `eager`.
    pub(crate) schedule: Schedule,
    /// `CUDASIM_LOG`: a line for each launch, and for cubins that are refused.
    pub(crate) log: bool,
    /// `CUDASIM_STEP_LIMIT`: instructions of warps after which a launch counts as endless.
    pub(crate) step_limit: u64,
    pub(crate) faults: Faults,
}

impl Config {
    /// Reads the variables; what is missing or no number gets its default.
    pub(crate) fn from_env() -> Self {
        let number = |name: &str| std::env::var(name).ok().and_then(|value| value.trim().parse::<u64>().ok());
        let schedule = match std::env::var("CUDASIM_SCHEDULE").as_deref() {
            Ok("late") => Schedule::Late,
            Ok("eager") => Schedule::Eager,
            _ => Schedule::Random,
        };
        let peer_access = match std::env::var("CUDASIM_PEER_ACCESS").as_deref() {
            Ok("none") => PeerAccess::None,
            Ok("no-pools") => PeerAccess::WithoutPools,
            _ => PeerAccess::Granted,
        };
        let memory = number("CUDASIM_MEMORY").unwrap_or(1 << 32);
        Self {
            devices: number("CUDASIM_DEVICES").unwrap_or(1).min(64) as usize,
            memory,
            occupied: number("CUDASIM_OCCUPIED").unwrap_or(0).min(memory),
            peer_access,
            stub: std::env::var_os("CUDASIM_STUB").is_some(),
            capability: std::env::var("CUDASIM_CAPABILITY").ok().and_then(|text| capability(&text)).unwrap_or((8, 0)),
            cubin_ptx: std::env::var_os("CUDASIM_CUBIN_PTX").map(Into::into),
            seed: number("CUDASIM_SEED").unwrap_or(0),
            schedule,
            log: std::env::var_os("CUDASIM_LOG").is_some(),
            step_limit: number("CUDASIM_STEP_LIMIT").unwrap_or(1 << 34),
            faults: Faults::new(
                number("CUDASIM_FAIL_ALLOC"),
                number("CUDASIM_FAIL_LAUNCH"),
                std::env::var_os("CUDASIM_FAULT_FILE").map(Into::into),
            ),
        }
    }
}

fn capability(text: &str) -> Option<(u32, u32)> {
    let (major, minor) = text.trim().split_once('.')?;
    let part = |text: &str| text.parse::<u8>().ok().map(u32::from);
    Some((part(major)?, part(minor)?))
}

#[cfg(test)]
mod tests {
    use super::capability;

    #[test]
    fn capabilities_have_two_parts() {
        assert_eq!([capability("9.0"), capability("12.1")], [Some((9, 0)), Some((12, 1))]);
        assert_eq!([capability("9"), capability("nine.0"), capability("")], [None; 3]);
        // Larger than any: products with these numbers stay in range.
        assert_eq!([capability("256.0"), capability("8.4294967295")], [None; 2]);
    }
}
