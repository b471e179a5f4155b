//! Facts about a device: its properties, the libraries in use, and its speed.

use std::time::Instant;

use half::bf16;

use super::error::Result;
use super::open::CudaDevice;
use crate::backend::cuda::ops::matmul::Matmul;
use crate::backend::cuda::ops::product::WeightSide;
use crate::backend::cuda::ops::rows::DeviceRows;
use crate::rng::kaiming_uniform_fill;

/// Names of the libraries that may be in use.
const LIBRARIES: [&str; 3] = ["libcuda.so", "libcublasLt.so", "libnccl.so"];

/// Returns the files of CUDA's libraries that this process has opened. Only Linux reports them; elsewhere the list is
/// empty.
pub fn open_libraries() -> Vec<String> {
    libraries_of(&std::fs::read_to_string("/proc/self/maps").unwrap_or_default())
}

/// The libraries among the files of a process's memory, each once.
fn libraries_of(maps: &str) -> Vec<String> {
    let path = |line: &str| line.find('/').map(|start| line[start..].to_owned());
    let is_one = |path: &String| {
        let name = path.rsplit('/').next().unwrap_or_default();
        LIBRARIES.iter().any(|library| name.starts_with(library))
    };
    let mut found: Vec<String> = maps.lines().filter_map(path).filter(is_one).collect();
    found.sort();
    found.dedup();
    found
}

/// Measured speed of a device's GEMMs and copies.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct DeviceRates {
    /// Rows, outputs and inputs of the largest GEMM that was measured.
    pub extent: usize,
    /// FLOP per second of such a GEMM, bf16 with sums in f32.
    pub matmul_flops: f64,
    /// Bytes of the largest copy that was measured.
    pub copied: usize,
    /// Bytes per second, from pageable memory through page-locked memory.
    pub host_to_device: f64,
    /// Bytes per second that are read, and as many that are written.
    pub device: f64,
    /// Bytes per second, to pageable memory.
    pub device_to_host: f64,
}

/// Seconds from which on a call is long enough to be measured.
const ENOUGH: f64 = 0.01;
/// Extents of GEMMs, and bytes of copies: from the first, doubled up to the second.
const EXTENTS: [usize; 2] = [64, 8192];
const BYTES: [usize; 2] = [1 << 16, 1 << 28];

/// Random elements of a matrix before they repeat.
const RANDOM: usize = 1 << 20;

/// Measures the rates, with growing inputs until a call takes ten milliseconds.
///
/// # Errors
/// Fails if the device refuses a call.
pub fn measure_rates(device: &CudaDevice) -> Result<DeviceRates> {
    let (extent, seconds) = grow(EXTENTS, |extent| matmul_seconds(device, extent))?;
    let matmul_flops = 2.0 * (extent as f64).powi(3) / seconds;
    let (copied, _) = grow(BYTES, |bytes| Ok(copy_seconds(device, bytes)?.into_iter().fold(f64::MAX, f64::min)))?;
    let [host_to_device, on_device, device_to_host] = copy_seconds(device, copied)?.map(|s| copied as f64 / s);
    Ok(DeviceRates { extent, matmul_flops, copied, host_to_device, device: on_device, device_to_host })
}

/// The first size whose work takes long enough, or the last one, with its seconds.
fn grow([mut size, last]: [usize; 2], mut work: impl FnMut(usize) -> Result<f64>) -> Result<(usize, f64)> {
    loop {
        let seconds = work(size)?;
        if seconds >= ENOUGH || size >= last {
            return Ok((size, seconds));
        }
        size *= 2;
    }
}

/// Seconds of work, of the faster one of two calls: the first may load kernels.
fn timed(device: &CudaDevice, mut work: impl FnMut() -> Result) -> Result<f64> {
    let mut best = f64::MAX;
    for _ in 0..2 {
        device.synchronize()?;
        let start = Instant::now();
        work()?;
        device.synchronize()?;
        // A clock's tick, not zero, is the least.
        best = best.min(start.elapsed().as_secs_f64().max(1e-9));
    }
    Ok(best)
}

fn matmul_seconds(device: &CudaDevice, extent: usize) -> Result<f64> {
    let matmul = Matmul::new(device)?;
    let plan = matmul.plan::<bf16>(extent, extent, WeightSide::Inputs)?;
    let [x, w] = [random_rows(device, extent, 1)?, random_rows(device, extent, 2)?];
    let mut out = DeviceRows::zeros(device, extent, extent)?;
    timed(device, || matmul.run(&plan, &x, &w, 0..extent, &mut out, false))
}

/// Random elements, because GEMMs of zeros take less power and run faster than those of a model. Long rows repeat.
fn random_rows(device: &CudaDevice, extent: usize, seed: u64) -> Result<DeviceRows<bf16>> {
    let count = extent * extent;
    let mut values = vec![0.0; count.min(RANDOM)];
    kaiming_uniform_fill(seed, 0, &mut values, 1.0);
    let values: Vec<bf16> = values.into_iter().map(bf16::from_f32).collect();
    let (part, mut all) = (device.upload(&values)?, device.uninitialised(count)?);
    for first in (0..count).step_by(values.len().max(1)) {
        all.copy_from(first, &part, 0..values.len().min(count - first))?;
    }
    DeviceRows::from_data(all, extent, extent)
}

/// Measured seconds of a copy to the device, one within it, and one from it.
fn copy_seconds(device: &CudaDevice, bytes: usize) -> Result<[f64; 3]> {
    let values = vec![1f32; bytes / size_of::<f32>()];
    let [mut to, mut other] = [device.zeros::<f32>(values.len())?, device.zeros::<f32>(values.len())?];
    let inward = timed(device, || to.write(0, &values))?;
    let within = timed(device, || other.copy_from(0, &to, 0..values.len()))?;
    let outward = timed(device, || other.to_host().map(drop))?;
    Ok([inward, within, outward])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::backend::cuda::tests::simulated::on_backend_with;

    #[test]
    fn libraries_are_found_once_each() {
        let maps = "7f0 r--p 0 08:01 1   /usr/lib/libcuda.so.550.1\n7f1 r-xp 0 08:01 1   /usr/lib/libcuda.so.550.1\n\
                    7f2 rw-p 0 00:00 0 \n7f3 r--p 0 08:01 2   /opt/a b/libcublasLt.so.12\n7f4 r--p 0 08:01 3  /lib/libc.so.6\n";
        assert_eq!(libraries_of(maps), ["/opt/a b/libcublasLt.so.12", "/usr/lib/libcuda.so.550.1"]);
    }

    #[test]
    fn sizes_grow_until_they_take_long_enough() {
        let seconds = |size: usize| Ok(size as f64 / 1000.0);
        assert_eq!(grow([1, 64], seconds).ok(), Some((16, 0.016)));
        assert_eq!(grow([1, 4], seconds).ok(), Some((4, 0.004)));
    }

    #[test]
    fn gemms_are_measured_on_random_elements() {
        on_backend_with(("CUDASIM_SEED", "6"), crate::backend::Dtype::Bf16, |cuda| {
            let of = |extent, seed| random_rows(cuda.gpu(), extent, seed).and_then(|rows| rows.to_host()).ok();
            let (x, w) = (of(64, 1), of(64, 2));
            let differ = |values: &Vec<bf16>| values.windows(2).filter(|two| two[0] != two[1]).count() > 4000;
            assert!(x.as_ref().is_some_and(differ) && w.as_ref().is_some_and(differ) && x != w);
            // More than what is random.
            let long = of(1030, 1).unwrap_or_default();
            assert!(long.len() == 1030 * 1030 && long[RANDOM..] == long[..long.len() - RANDOM]);
        });
    }

    #[test]
    fn a_device_is_measured() {
        on_backend_with(("CUDASIM_SEED", "6"), crate::backend::Dtype::Bf16, |cuda| {
            let rates = measure_rates(cuda.gpu()).map_err(|error| error.to_string());
            assert!(
                rates.as_ref().is_ok_and(|rates| rates.matmul_flops > 0.0 && rates.device_to_host > 0.0),
                "{rates:?}"
            );
            let libraries = open_libraries();
            assert!(libraries.len() == 2 && libraries[1].contains("libcuda.so"), "{libraries:?}");
        });
    }
}
