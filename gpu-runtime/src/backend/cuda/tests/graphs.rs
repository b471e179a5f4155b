use super::simulated::with_settings;
use super::support::{rows, values};
use crate::backend::cuda::device::open::CudaDevice;
use crate::backend::cuda::ops::embedding::embed;
use crate::backend::cuda::ops::rows::DeviceRows;

const SEED: &[(&str, &str)] = &[("CUDASIM_SEED", "3")];

/// A device that retains free memory, so that passes have their slices where they had them.
fn retaining_device() -> CudaDevice {
    CudaDevice::open(0, 1 << 20).unwrap()
}

const WIDTH: usize = 6;

fn table(device: &CudaDevice) -> (Vec<f32>, DeviceRows) {
    let host = values(32 * WIDTH, 5);
    let table = rows(device, &host, WIDTH);
    (host, table)
}

/// Rows of an embedding, read where all of them are queued: for each group of tokens a copy and a launch.
fn read(device: &CudaDevice, (host, table): &(Vec<f32>, DeviceRows), groups: &[&[u32]]) {
    device.queue().begin_repeated();
    let found: Vec<_> = groups.iter().map(|tokens| embed(device, table, tokens, 1.0).unwrap()).collect();
    for (rows, tokens) in found.iter().zip(groups) {
        let row = |token: &u32| host[*token as usize * WIDTH..(*token as usize + 1) * WIDTH].to_vec();
        assert_eq!(rows.to_host().unwrap(), tokens.iter().flat_map(row).collect::<Vec<_>>(), "{groups:?}");
    }
    device.queue().end_repeated().unwrap();
}

#[test]
fn a_pass_that_repeats_is_one_graph() {
    with_settings(SEED, || {
        let device = &retaining_device();
        let table = table(device);
        for pass in 0..5 {
            let tokens: Vec<[u32; 2]> =
                (0..6).map(|group| [(7 * pass + group) % 32, (pass + 3 * group) % 32]).collect();
            read(device, &table, &tokens.iter().map(|group| &group[..]).collect::<Vec<_>>());
            assert_eq!(device.launched_graphs(), u64::from(pass));
        }
        // Fewer or more tokens are another kernel's grid, after work that is known.
        let other: [&[u32]; 6] = [&[1, 2], &[3, 4], &[5, 6], &[7, 8, 9], &[10, 11], &[12, 13]];
        read(device, &table, &other);
        assert_eq!(device.launched_graphs(), 4);
        read(device, &table, &other);
        assert_eq!(device.launched_graphs(), 5);
        // The beginning of a known sequence is one of its own.
        let part: [&[u32]; 5] = [&[1, 2], &[3, 4], &[5, 6], &[7, 8], &[9, 1]];
        read(device, &table, &part);
        assert_eq!(device.launched_graphs(), 5);
        read(device, &table, &part);
        assert_eq!(device.launched_graphs(), 6);
        // Little work, and work outside of such passes, goes as it always did.
        for _ in 0..3 {
            read(device, &table, &[&[1], &[2]]);
            assert_eq!(embed(device, &table.1, &[4], 1.0).unwrap().to_host().unwrap(), table.0[4 * WIDTH..5 * WIDTH]);
        }
        assert_eq!(device.launched_graphs(), 6);
    });
}

#[test]
fn what_comes_between_finds_all_work_before_it_queued() {
    with_settings(SEED, || {
        let device = &retaining_device();
        let table = table(device);
        let tokens: Vec<u32> = (0..6).collect();
        let queue = || tokens.iter().map(|token| embed(device, &table.1, &[*token], 1.0).unwrap()).collect::<Vec<_>>();
        for pass in 0..4 {
            device.queue().begin_repeated();
            let found = queue();
            if pass == 2 {
                // Memory goes back to the driver, which frees it after what is queued: the graph of this pass is not whole.
                device.arena().trim().unwrap();
            }
            let more = queue();
            // No wait before the end: the pass after it must not change what the graph copies from.
            device.queue().end_repeated().unwrap();
            for (token, [rows, others]) in tokens.iter().zip(found.iter().zip(&more).map(|(a, b)| [a, b])) {
                let row = &table.0[*token as usize * WIDTH..(*token as usize + 1) * WIDTH];
                assert_eq!([rows.to_host().unwrap(), others.to_host().unwrap()], [row, row], "{pass}");
            }
        }
        assert!(device.launched_graphs() > 0);
    });
}

#[test]
fn passes_without_a_wait_between_them_copy_their_own_bytes() {
    with_settings(SEED, || {
        let device = &retaining_device();
        let table = table(device);
        let mut sums = Vec::new();
        for pass in 0..4u32 {
            let mut kept = DeviceRows::<f32>::zeros(device, 1, WIDTH).unwrap();
            device.queue().begin_repeated();
            let found: Vec<_> = (0..6).map(|group| embed(device, &table.1, &[pass + group], 1.0).unwrap()).collect();
            device.queue().end_repeated().unwrap();
            kept.data_mut().copy_from(0, found[5].data(), 0..WIDTH).unwrap();
            sums.push(kept);
        }
        for (pass, kept) in sums.iter().enumerate() {
            assert_eq!(kept.to_host().unwrap(), table.0[(pass + 5) * WIDTH..(pass + 6) * WIDTH]);
        }
    });
}
