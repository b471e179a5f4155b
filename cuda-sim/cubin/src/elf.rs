//! The ELF file: its header, sections and symbols.

use crate::architecture::Architecture;
use crate::error::CubinError;

/// Bytes of the header.
pub const HEADER_BYTES: usize = 64;

/// Bytes of the header that say what the file is: `e_ident`, the type and the machine.
pub const IDENTITY_BYTES: usize = 20;

/// Machine number of CUDA: `EM_CUDA`.
const MACHINE: u64 = 190;

/// Versions of the ABI, `EI_ABIVERSION`. Each stores in other bits of the header's flags the architecture's number, and
/// whether the code runs only on that architecture.
const ABI_VERSION_7: u8 = 7;
const ABI_VERSION_8: u8 = 8;

/// A section without bytes in the file, such as shared memory.
const NO_BITS: u64 = 8;

type Result<T> = std::result::Result<T, CubinError>;

/// Bytes of the whole file, according to its header.
///
/// # Errors
///
/// If the header is not that of a cubin.
pub fn file_length(header: &[u8; HEADER_BYTES]) -> Result<usize> {
    check_identity(header)?;
    let table = |what, at: usize, entry: usize, count: usize| {
        let start = number(header, at, 8, what)?;
        let bytes = number(header, entry, 2, what)? * number(header, count, 2, what)?;
        start.checked_add(bytes).ok_or(CubinError::Truncated(what))
    };
    // One of these tables is last.
    let end = table("the table of sections", 40, 58, 60)?.max(table("the table of segments", 32, 54, 56)?);
    usize::try_from(end).map_err(|_| CubinError::Truncated("the table of sections"))
}

/// Checks the first [`IDENTITY_BYTES`] of a file. The headers of other ELF files may be shorter than that of a cubin: this comes before the
/// whole header is read.
///
/// # Errors
///
/// Where no cubin begins so.
pub fn check_identity(header: &[u8]) -> Result<()> {
    let begins = |start: &[u8]| header.starts_with(start);
    match () {
        () if !begins(b"\x7fELF") => Err(CubinError::Header("expected the magic bytes of ELF")),
        () if !begins(b"\x7fELF\x02\x01\x01") => {
            Err(CubinError::Header("not of 64 bits, not little endian, or of a new version"))
        }
        () if number(header, 18, 2, "the machine")? != MACHINE => Err(CubinError::Header("it is for another machine")),
        () => Ok(()),
    }
}

/// A number of up to eight bytes.
pub(crate) fn number(bytes: &[u8], at: usize, length: usize, what: &'static str) -> Result<u64> {
    let found = at.checked_add(length).and_then(|end| bytes.get(at..end)).ok_or(CubinError::Truncated(what))?;
    let mut value = [0; 8];
    value[..length].copy_from_slice(found);
    Ok(u64::from_le_bytes(value))
}

/// A name in a table of names.
fn name(table: &[u8], at: u64) -> Result<&str> {
    let rest = usize::try_from(at).ok().and_then(|at| table.get(at..)).ok_or(CubinError::Truncated("a name"))?;
    let end = rest.iter().position(|byte| *byte == 0).ok_or(CubinError::Truncated("a name"))?;
    std::str::from_utf8(&rest[..end]).map_err(|_| CubinError::Header("a name is not UTF-8"))
}

pub(crate) struct Section<'a> {
    pub(crate) name: &'a str,
    /// Empty where the file has no bytes of it.
    pub(crate) bytes: &'a [u8],
    /// The section that this one refers to.
    link: usize,
}

pub(crate) struct File<'a> {
    header: &'a [u8; HEADER_BYTES],
    pub(crate) sections: Vec<Section<'a>>,
}

impl<'a> File<'a> {
    pub(crate) fn parse(bytes: &'a [u8]) -> Result<Self> {
        const WHAT: &str = "a section";
        let header = bytes.first_chunk::<HEADER_BYTES>().ok_or(CubinError::Truncated("the header"))?;
        if file_length(header)? > bytes.len() {
            return Err(CubinError::Truncated(WHAT));
        }
        let field = |at, length| number(bytes, at, length, WHAT);
        let index = |value: u64| usize::try_from(value).map_err(|_| CubinError::Truncated(WHAT));
        let (start, size, count) = (index(field(40, 8)?)?, index(field(58, 2)?)?, index(field(60, 2)?)?);
        let part = |entry: usize| -> Result<&'a [u8]> {
            if field(entry + 4, 4)? == NO_BITS {
                return Ok(&[]);
            }
            let (at, length) = (index(field(entry + 24, 8)?)?, index(field(entry + 32, 8)?)?);
            let end = at.checked_add(length).ok_or(CubinError::Truncated(WHAT))?;
            bytes.get(at..end).ok_or(CubinError::Truncated(WHAT))
        };
        let entry = |at: usize| {
            let offset = at.checked_mul(size).and_then(|offset| offset.checked_add(start));
            offset.ok_or(CubinError::Truncated(WHAT))
        };
        let names = part(entry(index(field(62, 2)?)?)?)?;
        let section = |at: usize| -> Result<Section<'a>> {
            let at = entry(at)?;
            Ok(Section { name: name(names, field(at, 4)?)?, bytes: part(at)?, link: index(field(at + 40, 4)?)? })
        };
        Ok(Self { header, sections: (0..count).map(section).collect::<Result<_>>()? })
    }

    pub(crate) fn architecture(&self) -> Result<Architecture> {
        let flags = number(self.header, 48, 4, "the flags")? as u32;
        match self.header[8] {
            ABI_VERSION_7 => Ok(Architecture { number: flags & 0xff, specific: flags & 0x800 != 0 }),
            ABI_VERSION_8 => Ok(Architecture { number: flags >> 8 & 0xff, specific: flags & 8 != 0 }),
            abi => Err(CubinError::Abi(abi)),
        }
    }

    pub(crate) fn section(&self, name: &str) -> Option<&Section<'a>> {
        self.sections.iter().find(|section| section.name == name)
    }

    /// Names of symbols, by their numbers.
    pub(crate) fn symbols(&self) -> Result<Vec<&'a str>> {
        const WHAT: &str = "the table of symbols";
        let table = self.section(".symtab").ok_or(CubinError::Truncated(WHAT))?;
        let names = self.sections.get(table.link).ok_or(CubinError::Truncated(WHAT))?;
        table.bytes.chunks_exact(24).map(|symbol| name(names.bytes, number(symbol, 0, 4, WHAT)?)).collect()
    }
}
