//! Little-endian reader that knows how much of a file is left.

use std::io::BufRead;

use super::error::Error;

/// The unread part of a header.
pub(super) struct Reader<R> {
    input: R,
    position: u64,
    size: u64,
    /// Counts and lengths have 4 bytes instead of 8.
    short_lengths: bool,
}

impl<R: BufRead> Reader<R> {
    pub(super) fn new(input: R, size: u64) -> Self {
        Self { input, position: 0, size, short_lengths: false }
    }

    /// Reads counts and lengths as version 1 writes them.
    pub(super) fn short_lengths(&mut self) {
        self.short_lengths = true;
    }

    /// Bytes read so far.
    pub(super) fn position(&self) -> u64 {
        self.position
    }

    pub(super) fn array<const N: usize>(&mut self) -> Result<[u8; N], Error> {
        let mut bytes = [0; N];
        self.claim(N as u64)?;
        self.input.read_exact(&mut bytes).map_err(Error::Io)?;
        Ok(bytes)
    }

    pub(super) fn u32(&mut self) -> Result<u32, Error> {
        self.array().map(u32::from_le_bytes)
    }

    pub(super) fn u64(&mut self) -> Result<u64, Error> {
        self.array().map(u64::from_le_bytes)
    }

    /// A count, a length or an extent.
    pub(super) fn length(&mut self) -> Result<u64, Error> {
        if self.short_lengths { self.u32().map(u64::from) } else { self.u64() }
    }

    /// Bytes, if the file has that many left.
    pub(super) fn bytes(&mut self, count: u64) -> Result<Vec<u8>, Error> {
        self.claim(count)?;
        // `claim` compared it with the file's size; only a file that fits into the address space is read at once.
        let mut bytes = vec![0; usize::try_from(count).map_err(|_| truncated(count))?];
        self.input.read_exact(&mut bytes).map_err(Error::Io)?;
        Ok(bytes)
    }

    /// A string with its length before it, without the zeros that some writers put after it.
    pub(super) fn string(&mut self) -> Result<Vec<u8>, Error> {
        let length = self.length()?;
        let mut bytes = self.bytes(length)?;
        while bytes.last() == Some(&0) {
            bytes.pop();
        }
        Ok(bytes)
    }

    /// The name of a key or a tensor.
    pub(super) fn name(&mut self) -> Result<String, Error> {
        String::from_utf8(self.string()?).map_err(|_| "its name is not UTF-8".into())
    }

    /// Counts elements of at least `least` bytes each, if the file can hold them.
    pub(super) fn count(&mut self, least: u64) -> Result<usize, Error> {
        let count = self.length()?;
        match usize::try_from(count) {
            Ok(elements) if count.checked_mul(least).is_some_and(|bytes| bytes <= self.left()) => Ok(elements),
            _ => Err(format!("{count} elements, with {} bytes left in the file", self.left()).into()),
        }
    }

    fn left(&self) -> u64 {
        self.size - self.position
    }

    fn claim(&mut self, count: u64) -> Result<(), Error> {
        if count > self.left() {
            return Err(truncated(count));
        }
        self.position += count;
        Ok(())
    }
}

fn truncated(count: u64) -> Error {
    format!("truncated GGUF file: {count} more bytes expected").into()
}
