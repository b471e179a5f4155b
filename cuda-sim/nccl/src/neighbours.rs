//! Ranks of one process: NCCL lets their kernels read and write each other's buffers where they are, not through buffers of its own,
//! if their devices can access each other. The variable `NCCL_P2P_DIRECT_DISABLE` forbids it, and `NCCL_P2P_DISABLE` all access.

/// Bytes in which a rank says where it is.
const PLACE: usize = 16;

/// The process of a rank, and the device that it joined on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Place {
    pub(crate) process: u64,
    pub(crate) device: u64,
}

impl Place {
    /// The place of a rank of this process.
    pub(crate) fn of_device(device: usize) -> Self {
        Self { process: u64::from(std::process::id()), device: device as u64 }
    }

    pub(crate) fn encode(self) -> Vec<u8> {
        [self.process.to_le_bytes(), self.device.to_le_bytes()].concat()
    }

    /// Devices of the other ranks of the process, by the places of all ranks.
    pub(crate) fn neighbours(self, places: &[u8]) -> Vec<usize> {
        let number = |bytes: &[u8]| bytes.iter().rev().fold(0, |number, byte| number << 8 | u64::from(*byte));
        let place = |bytes: &[u8]| Self { process: number(&bytes[..PLACE / 2]), device: number(&bytes[PLACE / 2..]) };
        let others =
            places.chunks_exact(PLACE).map(place).filter(|other| other.process == self.process && *other != self);
        others.map(|other| other.device as usize).collect()
    }
}

/// Whether the environment leaves ranks of one process direct access to each other's buffers.
pub(crate) fn are_direct() -> bool {
    let is_set = |name: &str| std::env::var(name).is_ok_and(|value| value.trim() != "0");
    !is_set("NCCL_P2P_DIRECT_DISABLE") && !is_set("NCCL_P2P_DISABLE")
}

#[cfg(test)]
mod tests {
    use super::Place;

    #[test]
    fn neighbours_are_the_other_ranks_of_the_process() {
        let of = |process, device| Place { process, device };
        let ranks = [of(7, 0), of(300, 1), of(300, 258), of(300, 3)];
        let all = ranks.map(Place::encode).concat();
        assert_eq!(ranks.map(|rank| rank.neighbours(&all)), [vec![], vec![258, 3], vec![1, 3], vec![1, 258]]);
    }
}
