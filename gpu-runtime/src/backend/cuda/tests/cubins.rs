//! The committed cubins are what their PTX assembles to.

use std::collections::BTreeSet;

use cuda_sim_cubin::Cubin;

use super::simulated::on_device;
use super::support::{rows, values};
use crate::backend::cuda::device::cubins::{ARCHITECTURES, Cubins, KernelCode, architecture};
use crate::backend::cuda::device::error::CudaError;
use crate::backend::cuda::device::open::CudaDevice;
use crate::backend::cuda::device::sources::{SOURCES, Source};
use crate::backend::cuda::kernels::{Kind, entries};
use crate::backend::cuda::ops::embedding::embed;

/// Rows of an embedding, copied by a kernel.
pub(super) fn computes(device: &CudaDevice) {
    let elements = values(4 * 50, 1);
    let found = embed(device, &rows::<f32>(device, &elements, 50), &[2, 0], 1.0).unwrap().to_host().unwrap();
    assert_eq!(found, [&elements[100..150], &elements[..50]].concat());
}

#[test]
fn cubins_are_those_of_the_ptx() {
    for Source { name, ptx, cubins } in SOURCES {
        let contents = zstd::decode_all(*cubins).unwrap();
        let checksum = crc32fast::hash(ptx.as_bytes());
        let start = format!("ptx {checksum:08x}, assembler ");
        assert!(contents.starts_with(start.as_bytes()), "{name}.zst is not of this PTX: run `make kernels`");
    }
}

#[test]
fn cubins_have_the_kernels_of_the_ptx_with_their_parameters() {
    for Source { name, ptx, cubins } in SOURCES {
        let bytes = |kind: &Kind| if *kind == Kind::Wide { 8 } else { 4 };
        let parameters = |kinds: &Vec<Kind>| kinds.iter().map(bytes).collect::<Vec<u32>>();
        let expected: BTreeSet<_> =
            entries(ptx).unwrap().into_iter().map(|(name, of)| (name, parameters(&of))).collect();
        let cubins = Cubins::unpack(name, cubins).unwrap();
        for architecture in &ARCHITECTURES {
            let cubin = Cubin::parse(cubins.of(architecture.name).unwrap()).unwrap();
            assert_eq!(cubin.architecture.to_string(), architecture.name, "{name}");
            let found = cubin.kernels.iter().map(|kernel| (kernel.name.as_str(), kernel.parameters.clone()));
            assert_eq!(found.collect::<BTreeSet<_>>(), expected, "{name} for {}", architecture.name);
            assert!(cubin.kernels.iter().all(|kernel| kernel.stack == 0), "{name} spills registers: {cubin:?}");
        }
        assert!(cubins.of("sm_8").is_none() && cubins.of("").is_none());
    }
}

#[test]
fn broken_files_of_cubins_are_errors() {
    let packed = SOURCES[0].cubins;
    for broken in [&packed[..packed.len() - 1], &packed[1..], &[]] {
        assert!(matches!(Cubins::unpack("f", broken).err().unwrap(), CudaError::Kernel { name, .. } if name == "f"));
    }
    let short = zstd::encode_all(&b"ptx 1\nsm_80 5\nsm_90 x\n\n1234"[..], 1).unwrap();
    let short = Cubins::unpack("f", &short).unwrap();
    assert!(short.of("sm_80").is_none() && short.of("sm_90").is_none());
}

#[test]
fn devices_run_what_is_for_their_capability() {
    let chosen = |major| architecture(major).map(|of| of.name);
    assert_eq!([8, 9, 10, 12].map(chosen), [Some("sm_80"), Some("sm_90"), Some("sm_100"), Some("sm_120")]);
    assert_eq!([7, 11, 13].map(chosen), [None; 3]);
}

#[test]
fn a_gpu_runs_its_cubins() {
    on_device(|device| {
        // The simulated one refuses them: see `cubin_loading.rs`.
        let simulated = device.name().unwrap() == "Simulated CUDA device";
        let (major, _) = device.capability();
        let expected = architecture(major).filter(|_| !simulated).map(|of| KernelCode::Cubin(of.name));
        let found = Some(device.kernel_code()).filter(|code| matches!(code, KernelCode::Cubin(_)));
        assert_eq!(found, expected.as_ref());
        computes(device);
    });
}
