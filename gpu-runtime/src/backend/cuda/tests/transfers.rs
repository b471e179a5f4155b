//! Copies between host and device beside its work.
#![allow(unsafe_code, reason = "plants a copy that nothing waits for")]

use std::io;
use std::sync::mpsc::channel;
use std::sync::{Arc, Weak};
use std::time::Duration;

use cuda_sim_client::Client;
use cudarc::driver::result;

use super::simulated::with_settings;
use super::support::values;
use crate::backend::cuda::kernels::Argument;
use crate::backend::cuda::page_locked::PageLocked;
use crate::backend::cuda::peers::{LIMIT, Peers};
use crate::backend::cuda::{CudaDevice, CudaError, Result, Slice};

/// Work runs when the host waits, in a random order of streams.
const LATE: [(&str, &str); 2] = [("CUDASIM_SCHEDULE", "late"), ("CUDASIM_SEED", "7")];
const RANDOM: [(&str, &str); 2] = [("CUDASIM_SCHEDULE", "random"), ("CUDASIM_SEED", "8")];

/// Elements of several buffers, the last one in part.
const LEN: usize = 3000;

fn device() -> CudaDevice {
    CudaDevice::open(0, 1 << 20).unwrap()
}

/// Launches `to += from`.
fn add(device: &CudaDevice, to: &mut Slice<f32>, from: &Slice<f32>) {
    let elements = to.len() as u64;
    let arguments = [to.into(), from.into(), Argument::wide(elements)];
    device.launch("add", [(elements as u32).div_ceil(256), 1, 1], 256, &arguments).unwrap();
}

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
fn a_read_is_the_same_in_a_random_order() {
    with_settings(&RANDOM, || {
        let device = device();
        let one = device.upload(&vec![1f32; LEN]).unwrap();
        let mut sum = device.zeros::<f32>(LEN).unwrap();
        for step in 0..20 {
            add(&device, &mut sum, &one);
            let fence = device.fence().unwrap();
            let held = std::mem::replace(&mut sum, device.uninitialised(LEN).unwrap());
            sum.copy_from(0, &held, 0..LEN).unwrap();
            add(&device, &mut sum, &one);
            assert_eq!(held.to_host_after(&fence).unwrap(), vec![2.0 * step as f32 + 1.0; LEN]);
        }
        let shorts: Vec<u32> = (0..LEN as u32).collect();
        assert_eq!(device.upload(&shorts).unwrap().to_host_after(&device.fence().unwrap()).unwrap(), shorts);
        assert!(device.zeros::<f32>(0).unwrap().to_host_after(&device.fence().unwrap()).unwrap().is_empty());
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
fn a_read_that_ends_early_leaves_no_copy_behind() {
    with_settings(&LATE, || {
        let device = device();
        for panics in [false, true] {
            let held = device.upload(&values(LEN, 1)).unwrap();
            let (fence, address) = (device.fence().unwrap(), held.address());
            let mut parts = 0;
            let mut stop = |_: &[f32]| {
                parts += 1;
                assert!(!panics, "planted");
                Err(io::Error::other("enough"))
            };
            let read = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| held.read(&fence, &mut stop).unwrap()));
            assert_eq!(
                read.map_err(drop).map(|read| read.unwrap_err().to_string()).ok(),
                (!panics).then(|| "enough".into())
            );
            assert_eq!(parts, 1);
            drop(held);
            let reused = device.upload(&vec![5f32; LEN]).unwrap();
            assert_eq!(reused.address(), address);
            assert_eq!(reused.to_host_after(&device.fence().unwrap()).unwrap(), [5.0; LEN]);
        }
        device.synchronize().unwrap();
    });
}

#[test]
fn memory_is_not_reused_while_another_thread_reads_it() {
    with_settings(&RANDOM, || {
        let device = Arc::new(device());
        let before = values(LEN, 4);
        let held = Arc::new(device.upload(&before).unwrap());
        let (address, fence) = (held.address(), device.fence().unwrap());
        let ((begun, has_begun), (go_on, may_go_on)) = (channel(), channel::<()>());
        let reader = {
            let held = held.clone();
            std::thread::spawn(move || {
                let mut found = Vec::new();
                let mut add = |part: &[f32]| {
                    if found.is_empty() {
                        begun.send(()).unwrap();
                        may_go_on.recv().unwrap();
                    }
                    found.extend_from_slice(part);
                    Ok(())
                };
                held.read(&fence, &mut add).unwrap().unwrap();
                found
            })
        };
        has_begun.recv().unwrap();
        drop(held);
        let others: Vec<_> = (0..5).map(|_| device.upload(&vec![9f32; LEN]).unwrap()).collect();
        assert!(others.iter().all(|other| other.address() != address));
        go_on.send(()).unwrap();
        assert_eq!(reader.join().unwrap(), before);
        assert_eq!(device.upload(&vec![9f32; LEN]).unwrap().address(), address, "it is free now");
        device.synchronize().unwrap();
    });
}

#[test]
fn uploads_wait_for_memory_and_not_for_the_device() {
    with_settings(&LATE, || {
        let device = device();
        let waits = device.waits();
        let mut host = values(700, 1);
        let mut uploaded = Vec::new();
        for turn in 0..40 {
            let len = [1, 3, 90, 256, 257, 700][turn % 6];
            uploaded.push((device.upload(&host[..len]).unwrap(), host[..len].to_vec()));
            // The source may change at once.
            host.iter_mut().for_each(|x| *x += 1.0);
        }
        let large = values(20_000, 2);
        uploaded.push((device.upload(&large).unwrap(), large));
        assert_eq!(device.waits(), waits);
        for (slice, expected) in &uploaded {
            assert_eq!(slice.to_host().unwrap(), *expected);
        }
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

/// Ranks one of which is gone.
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

#[test]
fn other_threads_read_and_release_while_passes_are_captured() {
    with_settings(&RANDOM, || {
        let device = Arc::new(device());
        let expected = values(LEN, 6);
        let saves = {
            let (device, expected) = (device.clone(), expected.clone());
            std::thread::spawn(move || {
                for _ in 0..30 {
                    let held = device.upload(&expected).unwrap();
                    let fence = device.fence().unwrap();
                    assert_eq!(held.to_host_after(&fence).unwrap(), expected);
                }
            })
        };
        let one = device.upload(&[1f32; 64]).unwrap();
        let mut sum = device.zeros::<f32>(64).unwrap();
        for pass in 1..40 {
            device.queue().begin_repeated();
            (0..10).for_each(|_| add(&device, &mut sum, &one));
            assert_eq!(sum.to_host().unwrap(), [10.0 * pass as f32; 64]);
            device.queue().end_repeated().unwrap();
        }
        saves.join().unwrap();
        device.synchronize().unwrap();
    });
}
