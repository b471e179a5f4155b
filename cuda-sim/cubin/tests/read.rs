//! Files made by hand, as NVIDIA's assembler makes them.
#![allow(clippy::unwrap_used, reason = "tests")]

use cuda_sim_cubin::{
    Architecture, Cubin, CubinError, HEADER_BYTES, IDENTITY_BYTES, Kernel, check_identity, file_length,
};

/// An ELF file of an empty section, the given ones and the table of names, in this order. Each given one links to the one behind it.
fn elf(abi: u8, flags: u32, sections: &[(&str, Vec<u8>)]) -> Vec<u8> {
    let mut names = b"\0.names\0".to_vec();
    let mut body = Vec::new();
    let mut table = [vec![0; 64], Vec::new()].concat();
    let mut add = |name: u32, bytes: &[u8], link: u32, body: &mut Vec<u8>| {
        let at = (HEADER_BYTES + body.len()) as u64;
        table.extend([name, 1].map(u32::to_le_bytes).concat());
        table.extend([0, 0, at, bytes.len() as u64].map(u64::to_le_bytes).concat());
        table.extend([link, 0].map(u32::to_le_bytes).concat());
        table.extend([1u64, 0].map(u64::to_le_bytes).concat());
        body.extend(bytes);
    };
    for (index, (name, bytes)) in sections.iter().enumerate() {
        let at = names.len() as u32;
        names.extend(name.bytes().chain([0]));
        add(at, bytes, index as u32 + 2, &mut body);
    }
    add(1, &names, 0, &mut body);
    let count = sections.len() as u16 + 2;
    let mut file = b"\x7fELF\x02\x01\x01".to_vec();
    file.extend([0x33, abi, 0, 0, 0, 0, 0, 0, 0, 2, 0, 190, 0, 1, 0, 0, 0]);
    file.extend([0, 0, (HEADER_BYTES + body.len()) as u64].map(u64::to_le_bytes).concat());
    file.extend(flags.to_le_bytes());
    file.extend([64, 56, 0, 64, count, count - 1].map(u16::to_le_bytes).concat());
    [file, body, table].concat()
}

/// A cubin with one kernel `f`, whose parameters have 8, 8 and 4 bytes.
fn cubin(abi: u8, flags: u32, stack: u32) -> Vec<u8> {
    let parameter = |place: u16, offset: u16, size: u32| {
        [
            &[4, 0x17, 12, 0, 0, 0, 0, 0][..],
            &place.to_le_bytes(),
            &offset.to_le_bytes(),
            &(size << 18 | 0x1f000).to_le_bytes(),
        ]
        .concat()
    };
    let own = [parameter(2, 16, 4), parameter(1, 8, 8), parameter(0, 0, 8), vec![3, 0x19, 20, 0]].concat();
    let all = [&[4, 0x11, 8, 0, 1, 0, 0, 0][..], &stack.to_le_bytes()].concat();
    let mut symbols = vec![0; 48];
    symbols[24] = 1;
    let sections = [
        (".symtab", symbols),
        (".strtab", b"\0f\0".to_vec()),
        (".nv.info", all),
        (".nv.info.f", own),
        (".text.f", vec![0; 128]),
    ];
    elf(abi, flags, &sections)
}

fn architecture(number: u32, specific: bool) -> Architecture {
    Architecture { number, specific }
}

#[test]
fn kernels_and_their_parameters_are_read() {
    let found = Cubin::parse(&cubin(7, 0x50_0550, 48)).unwrap();
    let kernel = Kernel { name: "f".to_owned(), parameters: vec![8, 8, 4], stack: 48 };
    assert_eq!(found, Cubin { architecture: architecture(80, false), kernels: vec![kernel] });
}

#[test]
fn architectures_are_those_of_the_flags() {
    // As `ptxas` 12.9 writes them for sm_80, sm_90, sm_90a, sm_100, sm_100a and sm_120.
    let known = [
        (7, 0x50_0550, architecture(80, false), "sm_80"),
        (7, 0x50_055a, architecture(90, false), "sm_90"),
        (7, 0x50_0d5a, architecture(90, true), "sm_90a"),
        (8, 0x600_6402, architecture(100, false), "sm_100"),
        (8, 0x600_640a, architecture(100, true), "sm_100a"),
        (8, 0x600_7802, architecture(120, false), "sm_120"),
    ];
    for (abi, flags, expected, name) in known {
        let found = Cubin::parse(&cubin(abi, flags, 0)).unwrap().architecture;
        assert_eq!((found, found.to_string().as_str()), (expected, name));
    }
    assert_eq!(Cubin::parse(&cubin(9, 0x50_0550, 0)), Err(CubinError::Abi(9)));
}

#[test]
fn devices_run_what_is_for_them() {
    let runs = |number, specific, device: (u32, u32)| architecture(number, specific).runs_on(device.0, device.1);
    assert!(runs(80, false, (8, 0)) && runs(80, false, (8, 9)) && !runs(86, false, (8, 0)));
    assert!(!runs(80, false, (9, 0)) && !runs(80, false, (7, 5)));
    assert!(
        runs(90, true, (9, 0)) && runs(100, true, (10, 0)) && !runs(100, true, (10, 3)) && runs(100, false, (10, 3))
    );
}

#[test]
fn the_header_says_how_long_a_file_is() {
    let file = cubin(7, 0x50_0550, 0);
    let mut header = [0; HEADER_BYTES];
    header.copy_from_slice(&file[..HEADER_BYTES]);
    assert_eq!(file_length(&header), Ok(file.len()));
    header[40..48].fill(0xff);
    assert_eq!(file_length(&header), Err(CubinError::Truncated("the table of sections")));
    header[18] = 62;
    assert_eq!(file_length(&header), Err(CubinError::Header("it is for another machine")));
}

#[test]
fn the_first_bytes_say_whether_a_file_can_be_a_cubin() {
    let mut file = cubin(7, 0x50_0550, 0);
    assert_eq!(check_identity(&file[..IDENTITY_BYTES]), Ok(()));
    assert_eq!(check_identity(&file[..IDENTITY_BYTES - 1]), Err(CubinError::Truncated("the machine")));
    file[4] = 1;
    let error = CubinError::Header("not of 64 bits, not little endian, or of a new version");
    assert_eq!(check_identity(&file[..IDENTITY_BYTES]), Err(error));
}

#[test]
fn broken_files_are_errors() {
    let file = cubin(7, 0x50_0550, 0);
    for end in 0..file.len() {
        assert!(Cubin::parse(&file[..end]).is_err(), "{end} of {} bytes", file.len());
    }
    // Any byte may be wrong: an error or another cubin, never a panic.
    for at in 0..file.len() {
        for value in [0, 0x7f, 0xff] {
            let mut other = file.clone();
            other[at] = value;
            let _ = Cubin::parse(&other);
        }
    }
    let missing = elf(7, 0x50_0550, &[(".symtab", Vec::new()), (".strtab", vec![0]), (".text.f", Vec::new())]);
    let error = Cubin::parse(&missing).unwrap_err();
    assert_eq!(error.to_string(), "kernel f has no attributes");
}
