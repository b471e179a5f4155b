//! The committed PTX is what its sources compile to.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use crate::backend::cuda::device::cubins::ARCHITECTURES;
use crate::backend::cuda::device::sources::{SOURCES, Source};
use crate::backend::cuda::kernels::{Kind, entries};

/// Files in front of the sources whose names begin like theirs, in their order.
const PRELUDES: &[&str] =
    &["prelude", "mixer_prelude", "tensor_prelude", "tensor_lora_prelude", "tensor_attention_prelude"];

fn folder(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("src/backend/cuda").join(name)
}

fn stems(folder: &Path, extension: &str) -> BTreeSet<String> {
    let paths = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let of_extension = paths.filter(|path| path.extension().is_some_and(|found| found == extension));
    of_extension.map(|path| path.file_stem().unwrap().to_str().unwrap().to_owned()).collect()
}

#[test]
fn ptx_is_as_new_as_its_sources() {
    let read = |name: &str| std::fs::read(folder("kernels").join(format!("{name}.cu"))).unwrap();
    for Source { name, ptx, .. } in SOURCES {
        let in_front = PRELUDES.iter().filter(|prelude| name.starts_with(prelude.trim_end_matches("prelude")));
        let whole: Vec<u8> = in_front.chain([name]).flat_map(|part| read(part)).collect();
        let expected = crc32fast::hash(&whole);
        let first = ptx.lines().next().unwrap();
        let found = first.strip_prefix("// source ").and_then(|rest| rest.split(',').next()).unwrap();
        assert_eq!(found, format!("{expected:08x}"), "{name}.ptx is older than its source: run `make kernels`");
    }
}

#[test]
fn every_source_is_loaded() {
    let loaded: BTreeSet<String> = SOURCES.iter().map(|source| source.name.to_owned()).collect();
    let mut sources = stems(&folder("kernels"), "cu");
    assert!(PRELUDES.iter().all(|prelude| sources.remove(*prelude)));
    assert_eq!(sources, loaded);
    assert_eq!(stems(&folder("ptx"), "ptx"), loaded);
    assert_eq!(stems(&folder("cubin"), "zst"), loaded);
}

/// The table's rows of a source: checksum of its PTX, kernel, and for each architecture registers, shared memory, spills and
/// instructions for tensor cores.
fn resources(source: &str) -> Vec<(&'static str, &'static str, Vec<Vec<u32>>)> {
    let rows = include_str!("../resources.txt").lines().filter(|line| !line.starts_with('#'));
    let row = |line: &'static str| {
        let mut columns = line.split(' ');
        let own = columns.next() == Some(source);
        let [checksum, kernel] = [columns.next().unwrap(), columns.next().unwrap()];
        let needs = columns.map(|of| of.split('/').map(|number| number.parse().unwrap()).collect());
        own.then(|| (checksum, kernel, needs.collect()))
    };
    rows.filter_map(row).collect()
}

#[test]
fn the_table_of_resources_is_of_this_ptx() {
    let kernels = SOURCES.iter().map(|source| entries(source.ptx).unwrap().len()).sum::<usize>();
    assert_eq!(SOURCES.iter().map(|source| resources(source.name).len()).sum::<usize>(), kernels);
    for Source { name: source, ptx, .. } in SOURCES {
        let rows = resources(source);
        let names: BTreeSet<&str> = rows.iter().map(|(_, kernel, _)| *kernel).collect();
        assert_eq!(names, entries(ptx).unwrap().into_iter().map(|(name, _)| name).collect());
        let checksum = format!("{:08x}", crc32fast::hash(ptx.as_bytes()));
        for (found, kernel, needs) in rows {
            assert_eq!(found, checksum, "{source}.ptx has changed since: run `make kernels`");
            assert_eq!(needs.len(), ARCHITECTURES.len(), "{kernel}");
            // What a block may have without being asked, and a thread at all.
            let fits = |of: &Vec<u32>| of.len() == 4 && of[0] <= 255 && of[1] <= 48 << 10 && of[2] == 0;
            assert!(needs.iter().all(fits), "{kernel}: {needs:?}");
        }
    }
}

#[test]
fn machine_code_uses_tensor_cores_where_ptx_does() {
    let mut found = BTreeSet::new();
    for Source { name: source, ptx, .. } in SOURCES {
        // From each kernel's name on.
        let bodies: Vec<&str> = ptx.split(".entry ").skip(1).collect();
        for (_, kernel, needs) in resources(source) {
            let body = bodies.iter().find(|body| body.strip_prefix(kernel).is_some_and(|rest| rest.starts_with('(')));
            let asks = body.unwrap().lines().any(|line| line.trim_start().starts_with("mma.sync."));
            assert!(needs.iter().all(|of| (of[3] > 0) == asks), "{kernel}: {needs:?}");
            found.extend(asks.then_some(kernel));
        }
    }
    for kernel in ["tensor_attention", "tensor_attention_backward_q", "tensor_attention_backward_kv"] {
        assert!([64, 128].iter().all(|extent| found.contains(&*format!("{kernel}_{extent}"))), "{kernel}: {found:?}");
    }
}

#[test]
fn sources_include_nothing_and_name_no_architecture() {
    for name in stems(&folder("kernels"), "cu") {
        let source = std::fs::read_to_string(folder("kernels").join(format!("{name}.cu"))).unwrap();
        assert!(!source.contains("#include") && !source.contains("__CUDA_ARCH__"), "{name}");
    }
    assert!(SOURCES.iter().all(|source| source.ptx.contains(".version 7.0\n.target sm_80\n")));
}

#[test]
fn parameters_are_read_from_ptx() {
    let found =
        entries(".visible .entry f(\n\t.param .u64 f_0,\n\t.param .u32 f_1,\n\t.param .f32 f_2\n)\n{ }").unwrap();
    assert_eq!(found, [("f", vec![Kind::Wide, Kind::Word, Kind::Float])]);
    assert!(entries(".entry f(.param .align 8 .b8 f_0[24])").is_err());
    let names: Vec<&str> =
        SOURCES.iter().flat_map(|source| entries(source.ptx).unwrap()).map(|(name, _)| name).collect();
    assert_eq!(names.iter().collect::<BTreeSet<_>>().len(), names.len(), "kernels of one name");
    assert!(names.len() > 30);
}
