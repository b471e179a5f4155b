//! Copies between host and device beside its work.

use std::io;
use std::sync::Arc;
use std::sync::mpsc::channel;

use super::simulated::with_settings;
use super::support::values;
use crate::backend::cuda::device::memory::Slice;
use crate::backend::cuda::device::open::CudaDevice;
use crate::backend::cuda::kernels::Argument;

/// Work runs when the host waits, in a random order of streams.
pub(super) const LATE: [(&str, &str); 2] = [("CUDASIM_SCHEDULE", "late"), ("CUDASIM_SEED", "7")];
const RANDOM: [(&str, &str); 2] = [("CUDASIM_SCHEDULE", "random"), ("CUDASIM_SEED", "8")];

/// Elements of several buffers, the last one in part.
pub(super) const LEN: usize = 3000;

pub(super) fn device() -> CudaDevice {
    CudaDevice::open(0, 1 << 20).unwrap()
}

/// Launches `to += from`.
pub(super) fn add(device: &CudaDevice, to: &mut Slice<f32>, from: &Slice<f32>) {
    let elements = to.len() as u64;
    let arguments = [to.into(), from.into(), Argument::wide(elements)];
    device.launch("add", [(elements as u32).div_ceil(256), 1, 1], 256, &arguments).unwrap();
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
        let mut passes = 0;
        let mut pass = || {
            passes += 1;
            device.queue().begin_repeated();
            (0..10).for_each(|_| add(&device, &mut sum, &one));
            assert_eq!(sum.to_host().unwrap(), [10.0 * passes as f32; 64]);
            device.queue().end_repeated().unwrap();
        };
        (0..40).for_each(|_| pass());
        saves.join().unwrap();
        // Nothing interrupts these.
        (0..3).for_each(|_| pass());
        assert!(device.queue().launched_graphs() > 0);
        device.synchronize().unwrap();
    });
}
