//! Checks and times what ranks exchange, on the devices of one machine.

use std::time::{Duration, Instant};

use super::ranks::DeviceRanks;
use crate::backend::cuda::device::error::{CudaError, Result};
use crate::backend::cuda::device::nccl::Nccl;
use crate::backend::cuda::device::open::CudaDevice;

/// Bytes of each rank's elements: from the first number, doubled up to the second.
const BYTES: [usize; 2] = [1 << 16, 64 << 20];

/// Seconds from which on an exchange is long enough to be measured.
const ENOUGH: f64 = 0.01;

/// How long a rank waits for the others.
const LIMIT: Duration = Duration::from_secs(60);

/// Measured exchanges between devices, whose results were right.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ExchangeRates {
    /// Bytes of each rank's elements in the largest exchange.
    pub bytes: usize,
    /// Seconds of a sum over the ranks.
    pub sum: f64,
    /// Seconds of an all-gather.
    pub gather: f64,
}

/// Connects a rank on each device by NCCL, and lets them sum and gather arrays that grow up to 64 MiB, until an exchange takes ten
/// milliseconds. Compares every element of the results.
///
/// # Errors
/// A device, NCCL or an exchange fails, or a result is wrong.
pub fn measure_exchanges(ordinals: &[i32]) -> Result<ExchangeRates> {
    let devices = ordinals.iter().map(|ordinal| CudaDevice::open(*ordinal, 0)).collect::<Result<Vec<_>>>()?;
    let nccl = Nccl::open()?;
    let (id, world) = (nccl.new_id()?, devices.len());
    let ranks = of_each(&devices, |rank, device| DeviceRanks::join(device, &nccl, id, rank, world, None, LIMIT))?;
    let [mut bytes, most] = BYTES;
    loop {
        let seconds = of_each(&devices, |rank, device| exchange(device, &ranks[rank], bytes / size_of::<f32>()))?;
        let slowest = |of: fn(&Seconds) -> f64| seconds.iter().map(of).fold(0.0, f64::max);
        let rates = ExchangeRates { bytes, sum: slowest(|s| s.sum), gather: slowest(|s| s.gather) };
        if rates.sum.min(rates.gather) >= ENOUGH || bytes >= most {
            return Ok(rates);
        }
        bytes *= 2;
    }
}

/// Calls `body` with each device, in threads of their own; returns the first error.
fn of_each<T: Send>(devices: &[CudaDevice], body: impl Fn(usize, &CudaDevice) -> Result<T> + Sync) -> Result<Vec<T>> {
    std::thread::scope(|scope| {
        let body = &body;
        let each: Vec<_> =
            devices.iter().enumerate().map(|(rank, device)| scope.spawn(move || body(rank, device))).collect();
        let failed = || CudaError::Collective { call: "an exchange", message: "a thread panicked".to_owned() };
        let all: Vec<Result<T>> = each.into_iter().map(|one| one.join().unwrap_or_else(|_| Err(failed()))).collect();
        all.into_iter().collect()
    })
}

/// Seconds of a rank's exchanges.
struct Seconds {
    sum: f64,
    gather: f64,
}

/// Element of a rank: sums of these numbers are exact.
fn element(rank: usize, at: usize) -> f32 {
    ((at * 7 + rank * 13) % 1021) as f32
}

/// Sums and gathers the elements of all ranks, of the first calls to load kernels and of the second ones to measure.
fn exchange(device: &CudaDevice, own: &DeviceRanks, count: usize) -> Result<Seconds> {
    let (rank, world) = (own.rank(), own.world());
    let mine: Vec<f32> = (0..count).map(|at| element(rank, at)).collect();
    let values = device.upload(&mine)?;
    let mut seconds = Seconds { sum: f64::MAX, gather: f64::MAX };
    for _ in 0..2 {
        let mut sum = device.upload(&mine)?;
        device.synchronize()?;
        let began = Instant::now();
        own.all_reduce(device, &mut sum)?;
        device.synchronize()?;
        seconds.sum = seconds.sum.min(began.elapsed().as_secs_f64());
        let expected = |at: usize| -> f32 { (0..world).map(|rank| element(rank, at)).sum() };
        compare("the sum over ranks", rank, &sum.to_host()?, expected)?;
        let began = Instant::now();
        let parts = own.all_gather_sized(device, &values, &vec![count; world])?;
        device.synchronize()?;
        seconds.gather = seconds.gather.min(began.elapsed().as_secs_f64());
        for (from, part) in parts.iter().enumerate() {
            compare("the all-gather", rank, &part.to_host()?, |at| element(from, at))?;
        }
    }
    Ok(seconds)
}

/// Returns an error that names the first wrong element.
fn compare(call: &'static str, rank: usize, found: &[f32], expected: impl Fn(usize) -> f32) -> Result {
    match found.iter().enumerate().find(|(at, value)| **value != expected(*at)) {
        None => Ok(()),
        Some((at, value)) => {
            let message = format!("element {at} on rank {rank} is {value}, not {}", expected(at));
            Err(CudaError::Collective { call, message })
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]

    use super::{compare, element, measure_exchanges};
    use crate::backend::cuda::tests::simulated::with_settings;

    #[test]
    fn exchanges_between_devices_are_compared_and_timed() {
        with_settings(&[("CUDASIM_DEVICES", "2")], || {
            let rates = measure_exchanges(&[0, 1]).map_err(|error| error.to_string());
            let is_right =
                |rates: &super::ExchangeRates| rates.bytes >= 1 << 16 && rates.sum > 0.0 && rates.gather > 0.0;
            assert!(rates.as_ref().is_ok_and(is_right), "{rates:?}");
            assert!(measure_exchanges(&[0, 2]).is_err());
        });
    }

    #[test]
    fn devices_without_access_to_each_others_memory_are_reported() {
        with_settings(&[("CUDASIM_DEVICES", "2"), ("CUDASIM_PEER_ACCESS", "no-pools")], || {
            let error = measure_exchanges(&[0, 1]).unwrap_err().to_string();
            assert!(error.contains("NCCL_P2P_DIRECT_DISABLE=1"), "{error}");
        });
    }

    #[test]
    fn a_wrong_element_is_named() {
        let error = compare("the sum over ranks", 1, &[element(0, 0), 8.0], |at| element(0, at)).unwrap_err();
        assert_eq!(error.to_string(), "the sum over ranks failed: element 1 on rank 1 is 8, not 7");
    }
}
