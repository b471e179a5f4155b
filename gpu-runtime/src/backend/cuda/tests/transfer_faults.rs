//! Faults of copies beside a device's work: injected ones, and waits that are left out.
#![allow(unsafe_code, reason = "plants a copy that nothing waits for")]

use std::sync::{Arc, Weak};
use std::time::Duration;

use cuda_sim_client::Client;
use cudarc::driver::result;

use super::simulated::with_settings;
use super::support::values;
use super::transfers::{LATE, LEN, add, device};
use crate::backend::cuda::device::error::{CudaError, Result};
use crate::backend::cuda::device::page_locked::PageLocked;
use crate::backend::cuda::device::peers::{LIMIT, Peers};

#[test]
fn a_read_sees_a_fence_and_waits_for_nothing_later() {
    with_settings(&LATE, || {
        let device = device();
        let before = values(LEN, 1);
        let held = device.upload(&before).unwrap();
        let one = device.upload(&vec![1f32; LEN]).unwrap();
        let fence = device.fence().unwrap();
        let mut changed = held.copy(0..LEN).unwrap();
        let steps = 400u64;
        (0..steps).for_each(|_| add(&device, &mut changed, &one));
        let waits = device.waits();
        assert_eq!(held.to_host_after(&fence).unwrap(), before);
        assert_eq!(device.waits(), waits, "the host has waited for the work");
        let done = Client::open().unwrap().counter("add", "launches").unwrap();
        assert!(done < steps, "all work was done before the read");
        drop(held);
        let after: Vec<f32> = before.iter().map(|x| (0..steps).fold(*x, |sum, _| sum + 1.0)).collect();
        assert_eq!(changed.to_host().unwrap(), after);
    });
}

#[test]
fn a_read_without_the_fence_of_its_data_is_caught() {
    with_settings(&LATE, || {
        let device = device();
        let one = device.upload(&vec![1f32; LEN]).unwrap();
        let mut sum = device.zeros::<f32>(LEN).unwrap();
        let stale = device.fence().unwrap();
        add(&device, &mut sum, &one);
        assert!(sum.to_host_after(&stale).is_err() || device.synchronize().is_err());
        let report = Client::open().unwrap().report().unwrap();
        assert!(report.contains("missing event wait") && report.contains("copy to the host"), "{report}");
    });
}

#[test]
fn memory_that_is_released_during_a_copy_is_caught() {
    with_settings(&LATE, || {
        let device = device();
        let held = device.upload(&values(LEN, 1)).unwrap();
        let fence = device.fence().unwrap();
        // A copy as that of a read, but for the wait before the memory is reused.
        let queue = device.queue();
        queue.bind().unwrap();
        fence.event().make_stream_wait(queue, queue.copy_stream()).unwrap();
        let mut host = PageLocked::zeros(4 * LEN).unwrap();
        let to = host.part_mut(0, 4 * LEN);
        // SAFETY: both sides have that many bytes, and live until the device is idle.
        unsafe { result::memcpy_dtoh_async(to, held.address(), queue.copy_stream()) }.unwrap();
        let address = held.address();
        drop(held);
        let reused = device.zeros::<f32>(LEN).unwrap();
        assert_eq!(reused.address(), address);
        // SAFETY: the stream lives.
        let copied = unsafe { result::stream::synchronize(queue.copy_stream()) };
        assert!(device.synchronize().is_err() || copied.is_err());
        let report = Client::open().unwrap().report().unwrap();
        assert!(report.contains("missing event wait"), "{report}");
    });
}

#[test]
fn without_page_locked_memory_copies_are_the_same() {
    with_settings(&LATE, || {
        let device = device();
        let client = Client::open().unwrap();
        // None for uploads; one of two buffers for reads.
        client.fail_pinned(2, 1).unwrap();
        let before = values(LEN, 3);
        let held = device.upload(&before).unwrap();
        client.fail_pinned(2, 1).unwrap();
        assert_eq!(held.to_host_after(&device.fence().unwrap()).unwrap(), before);
        assert_eq!(held.to_host_after(&device.fence().unwrap()).unwrap(), before);
        assert_eq!(held.to_host().unwrap(), before);
    });
}

#[test]
fn an_event_that_fails_ends_the_read_and_the_device() {
    with_settings(&LATE, || {
        let device = device();
        let held = device.upload(&vec![1f32; LEN]).unwrap();
        let (fence, client) = (device.fence().unwrap(), Client::open().unwrap());
        client.fail_event(3).unwrap();
        let error = held.to_host_after(&fence).unwrap_err().to_string();
        assert_eq!(error.split_once(':').unwrap().0, "cuEventRecord failed", "{error}");
        assert_eq!(device.queue().lost(), Some(error));
        client.fail_event(1).unwrap();
        assert!(device.fence().is_err());
    });
}

#[test]
fn a_device_that_is_lost_during_a_read_ends_it() {
    with_settings(&[LATE[0], ("CUDASIM_FAIL_LAUNCH", "1")], || {
        let device = device();
        let one = device.upload(&vec![1f32; LEN]).unwrap();
        let mut sum = device.zeros::<f32>(LEN).unwrap();
        add(&device, &mut sum, &one);
        let error = sum.to_host_after(&device.fence().unwrap()).unwrap_err();
        assert!(matches!(&error, CudaError::Driver { code, .. } if code == "CUDA_ERROR_LAUNCH_FAILED"), "{error}");
        assert!(device.fence().is_err() && device.upload(&[1f32]).is_err());
    });
}

/// Ranks of which one has ended.
struct Gone;

impl Peers for Gone {
    fn fault(&self) -> Result {
        Err(CudaError::Collective { call: "all_reduce", message: "rank 1 of 2 is gone".to_owned() })
    }

    fn lost(&self) -> Result {
        Ok(())
    }

    fn limit(&self) -> Duration {
        LIMIT
    }

    fn last(&self) -> &'static str {
        "all_reduce"
    }

    fn leave(&self, _reason: &str) {}
}

#[test]
fn a_read_ends_when_a_rank_is_gone() {
    with_settings(&LATE, || {
        let device = device();
        let one = device.upload(&vec![1f32; LEN]).unwrap();
        let mut sum = device.zeros::<f32>(LEN).unwrap();
        (0..50).for_each(|_| add(&device, &mut sum, &one));
        let peers: Arc<dyn Peers> = Arc::new(Gone);
        device.queue().join(Weak::clone(&Arc::downgrade(&peers)));
        let fence = device.fence().unwrap();
        for _ in 0..2 {
            let error = sum.to_host_after(&fence).unwrap_err().to_string();
            assert!(error.contains("rank 1 of 2 is gone"), "{error}");
        }
        // So do uploads that wait for memory.
        let large = vec![1f32; 20_000];
        assert!(device.upload(&large).unwrap_err().to_string().contains("rank 1 of 2 is gone"));
    });
}
