//! Counters of a kernel's work, in the units of a GPU's profiler.

use std::ops::AddAssign;

/// Sums over all launches that were added up.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Counters {
    /// Launches of the kernel.
    pub launches: u64,
    /// Instructions that warps issued, whatever the number of active lanes.
    pub instructions: u64,
    /// Bytes that lanes loaded from global memory, each lane's access counted.
    pub global_load_bytes: u64,
    /// Bytes that lanes stored to global memory.
    pub global_store_bytes: u64,
    /// Loads, stores and atomics on global memory that warps issued.
    pub global_requests: u64,
    /// Distinct sectors of 32 bytes over these requests: the memory transactions.
    pub global_sectors: u64,
    /// Bytes that lanes loaded from shared memory.
    pub shared_load_bytes: u64,
    /// Bytes that lanes stored to shared memory.
    pub shared_store_bytes: u64,
    /// Loads, stores and atomics on shared memory that warps issued.
    pub shared_requests: u64,
    /// Passes over the 32 banks that these took beyond the fewest possible.
    pub bank_conflicts: u64,
    /// Number of `mma` instructions.
    pub tensor_instructions: u64,
    /// Floating-point operations in them; a multiplication and an addition are two.
    pub tensor_flop: u64,
    /// Barriers of a block that were completed.
    pub barriers: u64,
    /// Atomic operations of lanes, on any memory.
    pub atomics: u64,
}

impl Counters {
    /// Names and values, in a fixed order.
    #[must_use]
    pub fn fields(&self) -> [(&'static str, u64); 14] {
        [
            ("launches", self.launches),
            ("instructions", self.instructions),
            ("global_load_bytes", self.global_load_bytes),
            ("global_store_bytes", self.global_store_bytes),
            ("global_requests", self.global_requests),
            ("global_sectors", self.global_sectors),
            ("shared_load_bytes", self.shared_load_bytes),
            ("shared_store_bytes", self.shared_store_bytes),
            ("shared_requests", self.shared_requests),
            ("bank_conflicts", self.bank_conflicts),
            ("tensor_instructions", self.tensor_instructions),
            ("tensor_flop", self.tensor_flop),
            ("barriers", self.barriers),
            ("atomics", self.atomics),
        ]
    }
}

impl AddAssign for Counters {
    fn add_assign(&mut self, other: Self) {
        self.launches += other.launches;
        self.instructions += other.instructions;
        self.global_load_bytes += other.global_load_bytes;
        self.global_store_bytes += other.global_store_bytes;
        self.global_requests += other.global_requests;
        self.global_sectors += other.global_sectors;
        self.shared_load_bytes += other.shared_load_bytes;
        self.shared_store_bytes += other.shared_store_bytes;
        self.shared_requests += other.shared_requests;
        self.bank_conflicts += other.bank_conflicts;
        self.tensor_instructions += other.tensor_instructions;
        self.tensor_flop += other.tensor_flop;
        self.barriers += other.barriers;
        self.atomics += other.atomics;
    }
}
