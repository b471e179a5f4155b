//! The memory pool of a device, and what is free of its memory.

use super::simulated::{with_setting, with_settings};
use crate::backend::cuda::device::open::CudaDevice;

#[test]
fn the_pool_keeps_free_memory_when_the_host_waits() {
    with_setting(("CUDASIM_SEED", "1"), |device| {
        let device = device.unwrap();
        let free = || device.memory().unwrap().free;
        let before = free();
        drop(device.zeros::<f32>(250_000).unwrap());
        device.synchronize().unwrap();
        assert_eq!(before - free(), 1_000_000);
        // Another size takes what is there.
        let _held = [device.zeros::<f32>(100_000).unwrap(), device.zeros::<f32>(150_000).unwrap()];
        assert_eq!(before - free(), 1_000_000);
    });
}

#[test]
fn memory_of_other_processes_is_not_free() {
    with_settings(&[("CUDASIM_MEMORY", "1000000000"), ("CUDASIM_OCCUPIED", "600000000")], || {
        let memory = CudaDevice::open(0, 0).unwrap().memory().unwrap();
        assert_eq!(memory.total, 1_000_000_000);
        assert!((390_000_000..=400_000_000).contains(&memory.free), "{memory:?}");
        assert_eq!(memory.budget(), memory.free - 125_000_000);
    });
}
