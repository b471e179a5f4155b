//! Ranks as threads of one process, with a simulated device each.

use std::sync::{Arc, Barrier, Mutex};
use std::time::{Duration, Instant};

use super::simulated::{with_settings, with_settings_in_full, without_symbol};
use super::support::values;
use crate::backend::cuda::backend::Cuda;
use crate::backend::cuda::device::error::CudaError;
use crate::backend::cuda::device::memory::Slice;
use crate::backend::cuda::device::nccl::Nccl;
use crate::backend::cuda::device::open::CudaDevice;
use crate::backend::cuda::device::peers::LIMIT;
use crate::backend::cuda::ops::ranks::DeviceRanks;
use crate::backend::{Backend, Dtype, FamilyOps, Fences, Params};
use crate::collective::{DEVICE_PIECE, Extent, Ranks, exchange_bytes, local_ranks, pieces, slice_of};

/// Calls `body` in as many threads, each with its device and its rank.
fn ranks(world: usize, body: impl Fn(&CudaDevice, &DeviceRanks) + Sync) {
    ranks_within(LIMIT, world, body);
}

/// Runs ranks with a limit for waits.
fn ranks_within(limit: Duration, world: usize, body: impl Fn(&CudaDevice, &DeviceRanks) + Sync) {
    let nccl = Nccl::open().unwrap();
    assert!(nccl.version().unwrap() >= 21_800);
    let id = nccl.new_id().unwrap();
    std::thread::scope(|scope| {
        for rank in 0..world {
            let (nccl, body) = (&nccl, &body);
            scope.spawn(move || {
                let device = CudaDevice::open(i32::try_from(rank).unwrap(), 0).unwrap();
                let own = DeviceRanks::join(&device, nccl, id, rank, world, None, limit).unwrap();
                assert_eq!((own.rank(), own.world()), (rank, world));
                body(&device, &own);
            });
        }
    });
}

/// Elements of a rank.
fn of(rank: usize, len: usize) -> Vec<f32> {
    values(len, 10 + rank as u64)
}

/// All collectives, each with the bits of the ranks' order.
fn agree(world: usize) {
    ranks(world, |device, own| {
        let rank = own.rank();
        for len in [0, 1, 33, 4096, 4097, 10_001] {
            let mut sum = device.upload(&of(rank, len)).unwrap();
            own.all_reduce(device, &mut sum).unwrap();
            device.synchronize().unwrap();
            let terms: Vec<Vec<f32>> = (0..world).map(|rank| of(rank, len)).collect();
            let expected: Vec<f32> =
                (0..len).map(|i| terms.iter().map(|of| of[i]).reduce(|sum, x| sum + x).unwrap()).collect();
            assert_eq!(sum.to_host().unwrap(), expected);
        }
        let gathered = own.all_gather(device, &device.upload(&of(rank, 45)).unwrap()).unwrap();
        device.synchronize().unwrap();
        assert_eq!(gathered.to_host().unwrap(), (0..world).flat_map(|rank| of(rank, 45)).collect::<Vec<_>>());
        // Rank r has 5 r + 1 elements; two groups of ranks, the first one of one rank.
        let lengths: Vec<usize> = (0..world).map(|rank| 5 * rank + 1).collect();
        let mine = device.upload(&of(rank, lengths[rank])).unwrap();
        for (from, part) in own.all_gather_sized(device, &mine, &lengths).unwrap().iter().enumerate() {
            assert_eq!(part.to_host().unwrap(), of(from, lengths[from]));
        }
        let group = if rank == 0 { 0..1 } else { 1..world };
        let mut within = device.upload(&of(rank, 50)).unwrap();
        own.reduce_within(device, group.clone(), &mut within).unwrap();
        let sum = |i: usize| group.clone().map(|rank| of(rank, 50)[i]).reduce(|sum, x| sum + x).unwrap();
        assert_eq!(within.to_host().unwrap(), (0..50).map(sum).collect::<Vec<_>>());
        let parts: Vec<_> = (0..world).map(|to| device.upload(&of(10 * rank + to, 3 * to)).unwrap()).collect();
        let sum = |i: usize| (0..world).map(|from| of(10 * from + rank, 3 * rank)[i]).reduce(|sum, x| sum + x).unwrap();
        let scattered = own.scatter_sums(device, &parts).unwrap();
        assert_eq!(scattered.to_host().unwrap(), (0..3 * rank).map(sum).collect::<Vec<_>>());
        let mut shared = device.upload(&of(rank, 7)).unwrap();
        own.broadcast(device, world - 1, &mut shared).unwrap();
        device.synchronize().unwrap();
        assert_eq!(shared.to_host().unwrap(), of(world - 1, 7));
        // Rank r sends 3 r + p elements to rank p, none from the first one to itself.
        let lens = |from: usize, to: usize| 3 * from + to;
        let parts: Vec<Slice<f32>> =
            (0..world).map(|to| device.upload(&of(10 * rank + to, lens(rank, to))).unwrap()).collect();
        let expected: Vec<usize> = (0..world).map(|from| lens(from, rank)).collect();
        let received = own.all_to_all(device, &parts, &expected).unwrap();
        device.synchronize().unwrap();
        for (from, received) in received.iter().enumerate() {
            assert_eq!(received.to_host().unwrap(), of(10 * from + rank, lens(from, rank)));
        }
        assert!(own.all_to_all(device, &parts[1..], &expected).is_err());
        assert!(own.broadcast(device, world, &mut shared).is_err());
    });
}

#[test]
fn two_ranks_agree() {
    with_settings(&[("CUDASIM_DEVICES", "2"), ("CUDASIM_SEED", "1")], || agree(2));
}

/// Devices of one process that can't share pools need NCCL's own buffers, and say so; those that can't access each other have them.
#[test]
fn ranks_of_a_process_without_access_to_pools_are_refused() {
    let joined = || {
        let nccl = Nccl::open().unwrap();
        let id = nccl.new_id().unwrap();
        let devices = [0, 1].map(|ordinal| CudaDevice::open(ordinal, 0).unwrap());
        let join = |rank: usize| {
            let own = DeviceRanks::join(&devices[rank], &nccl, id, rank, 2, None, LIMIT);
            own.map(drop).map_err(|error| error.to_string())
        };
        std::thread::scope(|scope| {
            let other = scope.spawn(|| join(1));
            [join(0), other.join().unwrap()]
        })
    };
    let refused = [("CUDASIM_DEVICES", "2"), ("CUDASIM_PEER_ACCESS", "no-pools")];
    with_settings(&refused, || {
        let expected = |own: usize| {
            Err(format!(
                "the memory of device {own} can't be made accessible to device {} of the same process: \
                 cuMemPoolSetAccess failed: CUDA_ERROR_NOT_SUPPORTED: CUDA_ERROR_NOT_SUPPORTED; set \
                 NCCL_P2P_DIRECT_DISABLE=1, or start a process for each rank",
                1 - own
            ))
        };
        assert_eq!(joined(), [expected(0), expected(1)]);
    });
}

#[test]
fn ranks_without_access_to_pools_agree_where_nccl_has_buffers_of_its_own() {
    let settings = [("CUDASIM_DEVICES", "2"), ("CUDASIM_PEER_ACCESS", "no-pools"), ("NCCL_P2P_DIRECT_DISABLE", "1")];
    with_settings(&settings, || agree(2));
}

#[test]
fn ranks_whose_devices_have_no_access_to_each_other_agree() {
    with_settings(&[("CUDASIM_DEVICES", "2"), ("CUDASIM_PEER_ACCESS", "none")], || agree(2));
}

#[test]
fn three_ranks_agree() {
    with_settings(&[("CUDASIM_DEVICES", "3"), ("CUDASIM_SEED", "2")], || agree(3));
}

/// Arrays beyond a piece, summed over all ranks and over the last two: the bits of one, in the memory that plans count.
fn sum_in_pieces(world: usize) {
    ranks(world, |device, own| {
        let len = DEVICE_PIECE + 5;
        // Sums of numbers with few bits are exact.
        let of = |rank: usize| (0..len).map(move |i| ((i * 7 + rank * 13) % 1021) as f32);
        let last = world - 2..world;
        let group = if last.contains(&own.rank()) { last.clone() } else { own.rank()..own.rank() + 1 };
        for within in [0..world, group] {
            let mut sum = device.upload(&of(own.rank()).collect::<Vec<_>>()).unwrap();
            let held = || device.arena().bytes();
            device.arena().reset_peak();
            let before = held().used;
            own.reduce_within(device, within.clone(), &mut sum).unwrap();
            device.synchronize().unwrap();
            let most = held().peak - before;
            assert!(most >= 3 * DEVICE_PIECE && most <= exchange_bytes(world, 1, 1), "{most}");
            let mut terms: Vec<_> = within.map(of).collect();
            let expected: Vec<f32> = (0..len).map(|_| terms.iter_mut().filter_map(Iterator::next).sum()).collect();
            assert!(sum.to_host().unwrap() == expected);
        }
    });
}

#[test]
fn large_arrays_go_in_pieces_of_planned_memory() {
    with_settings(&[("CUDASIM_DEVICES", "2"), ("CUDASIM_SEED", "3")], || sum_in_pieces(2));
}

#[test]
fn large_arrays_of_three_ranks_go_in_pieces_of_planned_memory() {
    with_settings_in_full(&[("CUDASIM_DEVICES", "3"), ("CUDASIM_SEED", "4")], || sum_in_pieces(3));
}

#[test]
fn a_lost_rank_is_an_error_of_all() {
    let settings = [("CUDASIM_DEVICES", "2"), ("CUDASIM_NCCL_DIE", "1:2"), ("CUDASIM_NCCL_TIMEOUT_MS", "3000")];
    with_settings(&settings, || {
        ranks(2, |device, own| {
            let mut shared = device.upload(&of(own.rank(), 5)).unwrap();
            own.broadcast(device, 0, &mut shared).unwrap();
            device.synchronize().unwrap();
            let second = own.broadcast(device, 0, &mut shared).and_then(|()| device.synchronize());
            assert!(matches!(second, Err(CudaError::Collective { .. })), "{second:?}");
            let third = own.all_reduce(device, &mut shared).unwrap_err();
            assert_eq!(third.to_string(), "all_gather failed: an earlier collective failed");
        });
    });
}

/// A rank's kernel hangs without an error: the other ranks end, and so does this rank.
#[test]
fn a_silent_rank_is_missed() {
    let settings = [("CUDASIM_DEVICES", "2"), ("CUDASIM_NCCL_HANG", "1:2"), ("CUDASIM_NCCL_TIMEOUT_MS", "60000")];
    with_settings(&settings, || {
        let (began, found) = (Instant::now(), Mutex::new(Vec::new()));
        ranks_within(Duration::from_millis(700), 2, |device, own| {
            let mut shared = device.upload(&of(own.rank(), 5)).unwrap();
            own.broadcast(device, 0, &mut shared).unwrap();
            device.synchronize().unwrap();
            let missed = own.broadcast(device, 0, &mut shared).and_then(|()| device.synchronize()).unwrap_err();
            found.lock().unwrap().push(missed.to_string());
        });
        // The second one may see the first one leave.
        let found = found.into_inner().unwrap();
        assert!(
            found.contains(
                &"broadcast failed: not finished after 0.7 s: a rank is missing, or a device hangs".to_owned()
            ),
            "{found:?}"
        );
        assert!(found.iter().all(|missed| missed.starts_with("broadcast failed: ")), "{found:?}");
        assert!(began.elapsed() < Duration::from_secs(20), "{:?}", began.elapsed());
    });
}

/// Ranks exchange their parts of arrays in pieces that begin and end within arrays.
#[test]
fn fragments_of_arrays_make_them_whole() {
    let world = 3;
    with_settings(&[("CUDASIM_DEVICES", "3"), ("CUDASIM_SEED", "5")], || {
        let lens = [5, 0, 1000, 33];
        let arrays: Vec<_> = lens.iter().enumerate().map(|(index, len)| Extent { index, len: *len }).collect();
        let fragments = pieces(&arrays, world, 100);
        assert!(fragments.len() > 10);
        let array = |rank: usize, index: usize| of(10 * rank + index, lens[index]);
        let arrays_of = |rank| (0..lens.len()).map(|index| array(rank, index)).collect::<Vec<_>>();
        std::thread::scope(|scope| {
            for rank in local_ranks(world, LIMIT) {
                let (fragments, arrays_of) = (&fragments, &arrays_of);
                scope.spawn(move || {
                    let ranks = Ranks::new(Arc::new(rank));
                    let own = ranks.rank();
                    let cuda = Cuda::open(i32::try_from(own).unwrap(), Dtype::F32).unwrap();
                    let ranks = Cuda::connect(&cuda, ranks).unwrap();
                    let part = |values: Vec<f32>| values[slice_of(values.len(), world, own)].to_vec();
                    let mut parts = cuda.upload_params(arrays_of(0).into_iter().map(part).collect());
                    // One rank has no use for them.
                    if own == 1 {
                        assert!(parts.offer_fragments(&ranks, fragments));
                    } else {
                        let whole = parts.gather_fragments(&ranks, &lens, fragments).unwrap();
                        assert_eq!(host(&whole), arrays_of(0));
                    }
                    // The last one has no gradient.
                    let gradient = (own < 2).then(|| cuda.upload_params(arrays_of(own)));
                    assert!(parts.add_sums_of_fragments(gradient.as_ref(), &ranks, fragments));
                    let sum = |(before, after): (Vec<f32>, Vec<f32>)| {
                        part(before.iter().zip(after).map(|(x, y)| x + (x + y)).collect())
                    };
                    let expected: Vec<_> = arrays_of(0).into_iter().zip(arrays_of(1)).map(sum).collect();
                    assert_eq!(host(&parts), expected);
                    // A rank that ends while others wait for their devices is one that they miss.
                    ranks.all_of(());
                });
            }
        });
    });
}

fn host(params: &<Cuda as Fences>::Params) -> Vec<Vec<f32>> {
    (0..params.len()).map(|index| params.host(index).into_owned()).collect()
}

/// A device whose work never ends is dropped without waiting for it.
#[test]
fn a_device_that_hangs_is_dropped() {
    let settings = [("CUDASIM_DEVICES", "2"), ("CUDASIM_NCCL_HANG", "1:1"), ("CUDASIM_NCCL_TIMEOUT_MS", "60000")];
    with_settings(&settings, || {
        let (nccl, began) = (Nccl::open().unwrap(), Instant::now());
        let id = nccl.new_id().unwrap();
        let dropped = Barrier::new(2);
        std::thread::scope(|scope| {
            for rank in 0..2 {
                let (nccl, dropped) = (&nccl, &dropped);
                scope.spawn(move || {
                    let device = CudaDevice::open(i32::try_from(rank).unwrap(), 0).unwrap();
                    let limit = Duration::from_millis(300);
                    // Lives longer than the device: leaving the communicator would end its collectives.
                    let own = DeviceRanks::join(&device, nccl, id, rank, 2, None, limit).unwrap();
                    let mut shared = device.upload(&of(rank, 5)).unwrap();
                    assert!(own.broadcast(&device, 0, &mut shared).and_then(|()| device.synchronize()).is_err());
                    drop((shared, device));
                    dropped.wait();
                });
            }
        });
        assert!(began.elapsed() < Duration::from_secs(20), "{:?}", began.elapsed());
    });
}

#[test]
fn a_communicator_is_of_one_device() {
    with_settings(&[("CUDASIM_DEVICES", "2")], || {
        let nccl = Nccl::open().unwrap();
        let [device, other] = [0, 1].map(|ordinal| CudaDevice::open(ordinal, 0).unwrap());
        let id = nccl.new_id().unwrap();
        assert!(DeviceRanks::join(&device, &nccl, id, 1, 1, None, LIMIT).is_err());
        let alone = DeviceRanks::join(&device, &nccl, id, 0, 1, None, LIMIT).unwrap();
        let mut values = device.upload(&[1.0, 2.0]).unwrap();
        alone.all_reduce(&device, &mut values).unwrap();
        assert_eq!(values.to_host().unwrap(), [1.0, 2.0]);
        assert!(alone.all_gather(&other, &other.upload(&[1.0]).unwrap()).is_err());
    });
}

#[test]
fn a_library_that_is_too_old_is_named() {
    without_symbol("libnccl.so.2", "ncclCommGetAsyncError", |device| {
        device.unwrap();
        let error = Nccl::open().err().unwrap();
        assert_eq!(error.to_string(), "libnccl lacks the function ncclCommGetAsyncError: it is too old");
    });
}
