//! The driver's memory pool of a device: which other devices may touch its memory, and what it keeps.
#![allow(unsafe_code, reason = "the driver is C: it gets handles of its own, and values that live during the call")]

use std::ffi::c_int;

use cudarc::driver::sys::{
    CUdevice, CUmemAccess_flags, CUmemAccessDesc, CUmemLocation, CUmemLocationType, CUmemPool_attribute, CUmemoryPool,
    cuDeviceCanAccessPeer, cuDeviceGetDefaultMemPool, cuMemPoolSetAccess, cuMemPoolSetAttribute,
};

use super::error::{CudaError, Result};

/// Variable of NCCL that keeps ranks of one process from touching each other's buffers: they copy through buffers of NCCL.
const DIRECT_DISABLE: &str = "NCCL_P2P_DIRECT_DISABLE";

/// The pool that memory of a device comes from.
pub(super) struct Pool {
    device: CUdevice,
    pool: CUmemoryPool,
}

impl Pool {
    /// The default pool of a device.
    pub(super) fn of(device: CUdevice) -> Result<Self> {
        let mut pool = std::ptr::null_mut();
        // SAFETY: the device is the driver's, which writes the handle before it returns.
        let found = unsafe { cuDeviceGetDefaultMemPool(&raw mut pool, device) }.result();
        found.map_err(|error| CudaError::driver("cuDeviceGetDefaultMemPool", error))?;
        Ok(Self { device, pool })
    }

    /// Lets the pool keep all memory that it has. By default each wait for a stream returns to the system what is free, and the next
    /// pass of another shape gets it again. The arena decides what it needs.
    pub(super) fn keep_all(&self) -> Result {
        let mut bytes = u64::MAX;
        let attribute = CUmemPool_attribute::CU_MEMPOOL_ATTR_RELEASE_THRESHOLD;
        // SAFETY: the pool is the driver's, and the attribute a number of this type.
        let set = unsafe { cuMemPoolSetAttribute(self.pool, attribute, (&raw mut bytes).cast()) }.result();
        set.map_err(|error| CudaError::driver("cuMemPoolSetAttribute", error))
    }

    /// Lets other devices of this process read and write all memory of the pool, if the hardware can: NCCL's kernels then use
    /// buffers of ranks of the same process directly. Access to the memory of pools does not follow that to other memory.
    ///
    /// # Errors
    ///
    /// The driver refuses, and NCCL is not told to use buffers of its own.
    pub(super) fn share_with(&self, ordinal: i32, peers: &[i32]) -> Result {
        for peer in peers {
            if !self.is_reachable_by(*peer)? {
                continue;
            }
            let location = CUmemLocation { type_: CUmemLocationType::CU_MEM_LOCATION_TYPE_DEVICE, id: *peer };
            let access = CUmemAccessDesc { location, flags: CUmemAccess_flags::CU_MEM_ACCESS_FLAGS_PROT_READWRITE };
            // SAFETY: the pool is the driver's, and there is one description.
            let granted = unsafe { cuMemPoolSetAccess(self.pool, &raw const access, 1) }.result();
            let granted = granted.map_err(|error| CudaError::driver("cuMemPoolSetAccess", error));
            if let Err(error) = granted {
                if is_set(DIRECT_DISABLE) {
                    tracing::debug!(%error, device = ordinal, peer, "device memory is not shared");
                    continue;
                }
                return Err(CudaError::NotShared { ordinal, peer: *peer, reason: error.to_string() });
            }
        }
        Ok(())
    }

    /// Whether another device can access memory of the pool's at all: without it, NCCL exchanges through the host.
    fn is_reachable_by(&self, peer: i32) -> Result<bool> {
        let mut can: c_int = 0;
        // SAFETY: the driver writes the number before it returns.
        let asked = unsafe { cuDeviceCanAccessPeer(&raw mut can, peer, self.device) }.result();
        asked.map_err(|error| CudaError::driver("cuDeviceCanAccessPeer", error))?;
        Ok(can != 0)
    }
}

fn is_set(variable: &str) -> bool {
    std::env::var(variable).is_ok_and(|value| !matches!(value.trim(), "" | "0"))
}
