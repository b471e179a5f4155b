//! Memory pools, of which each device has one, and access to the memory of other devices.

use std::ffi::{c_int, c_void};

use crate::config::PeerAccess;
use crate::driver::{self, try_with};
use crate::error::{INVALID_DEVICE, INVALID_VALUE, NOT_SUPPORTED, Result};
use crate::ffi::{exported, put};
use crate::pool::Pool;

/// Attributes of `CUmemPool_attribute`. Those before 4 are flags of reuse, which is always as if they were set.
const RELEASE_THRESHOLD: c_int = 4;
const RESERVED: c_int = 5;
const USED: c_int = 7;

// The driver's `CUmemAccess_flags`.
const NO_ACCESS: c_int = 0;
const READ_WRITE: c_int = 3;

/// `CUmemLocation`: a device if its kind is 1.
#[repr(C)]
#[derive(Clone, Copy)]
struct Location {
    kind: c_int,
    id: c_int,
}

/// `CUmemAccessDesc`: what a device may do with a pool.
#[repr(C)]
#[derive(Clone, Copy)]
struct Access {
    location: Location,
    flags: c_int,
}

impl Location {
    fn device(self) -> Result<usize> {
        let count = driver::with(|driver| driver.devices.len());
        match usize::try_from(self.id) {
            Ok(device) if self.kind == 1 && device < count => Ok(device),
            _ => Err(INVALID_DEVICE),
        }
    }
}

/// The number of a device, which exists.
fn device(number: c_int) -> Result<usize> {
    Location { kind: 1, id: number }.device()
}

/// The device of a pool's handle.
fn owner(pool: usize) -> Result<usize> {
    let count = driver::with(|driver| driver.devices.len());
    pool.checked_sub(1).filter(|device| *device < count).ok_or(INVALID_VALUE)
}

/// Calls a function with the pool of a handle.
fn with_pool<T>(pool: usize, f: impl FnOnce(&mut Pool) -> Result<T>) -> Result<T> {
    let device = owner(pool)?;
    try_with(|driver| f(&mut driver.device(device)?.pool))
}

/// Grants a device access to a pool, or takes it away.
fn grant(pool: usize, access: Access) -> Result {
    let (own, other) = (owner(pool)?, access.location.device()?);
    if own == other {
        return if access.flags == READ_WRITE { Ok(()) } else { Err(INVALID_VALUE) };
    }
    match driver::with(|driver| driver.peer_access) {
        PeerAccess::None => return Err(INVALID_DEVICE),
        PeerAccess::WithoutPools => return Err(NOT_SUPPORTED),
        PeerAccess::Granted => {}
    }
    with_pool(pool, |pool| {
        match access.flags {
            READ_WRITE => pool.peers.insert(other),
            NO_ACCESS => pool.peers.remove(&other),
            _ => return Err(INVALID_VALUE),
        };
        Ok(())
    })
}

exported! {
    fn cuDeviceGetDefaultMemPool(pool: *mut usize, number: c_int) {
        put(pool, device(number)? + 1)
    }

    fn cuDeviceGetMemPool(pool: *mut usize, number: c_int) {
        put(pool, device(number)? + 1)
    }

    fn cuDeviceCanAccessPeer(can: *mut c_int, number: c_int, other: c_int) {
        let differ = device(number)? != device(other)?;
        put(can, c_int::from(differ && driver::with(|driver| driver.peer_access) != PeerAccess::None))
    }

    fn cuMemPoolSetAccess(pool: usize, accesses: *const Access, count: usize) {
        if accesses.is_null() {
            return Err(INVALID_VALUE);
        }
        (0..count).try_for_each(|index| grant(pool, accesses.add(index).read_unaligned()))
    }

    fn cuMemPoolGetAccess(flags: *mut c_int, pool: usize, location: *const Location) {
        if location.is_null() {
            return Err(INVALID_VALUE);
        }
        let other = location.read_unaligned().device()?;
        let granted = owner(pool)? == other || with_pool(pool, |pool| Ok(pool.peers.contains(&other)))?;
        put(flags, if granted { READ_WRITE } else { NO_ACCESS })
    }

    fn cuMemPoolTrimTo(pool: usize, keep: usize) {
        with_pool(pool, |pool| {
            pool.trim(keep as u64);
            Ok(())
        })
    }

    fn cuMemPoolSetAttribute(pool: usize, attribute: c_int, value: *mut c_void) {
        if value.is_null() {
            return Err(INVALID_VALUE);
        }
        match attribute {
            1..RELEASE_THRESHOLD => owner(pool).map(|_| ()),
            RELEASE_THRESHOLD => {
                let bytes = value.cast::<u64>().read_unaligned();
                with_pool(pool, |pool| {
                    pool.release_threshold = bytes;
                    Ok(())
                })
            }
            _ => Err(INVALID_VALUE),
        }
    }

    fn cuMemPoolGetAttribute(pool: usize, attribute: c_int, value: *mut c_void) {
        match attribute {
            1..RELEASE_THRESHOLD => put(value.cast::<c_int>(), owner(pool).map(|_| 1)?),
            _ => put(value.cast::<u64>(), with_pool(pool, |pool| match attribute {
                RELEASE_THRESHOLD => Ok(pool.release_threshold),
                RESERVED => Ok(pool.reserved()),
                USED => Ok(pool.used()),
                _ => Err(INVALID_VALUE),
            })?),
        }
    }
}
