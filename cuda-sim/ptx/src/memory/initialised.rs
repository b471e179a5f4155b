//! Record of written bytes: one bit for each.

#[derive(Debug, Clone)]
pub(crate) struct Initialised {
    bits: Vec<u8>,
}

impl Initialised {
    /// A record of `bytes` bytes, all of them unwritten.
    pub(crate) fn new(bytes: usize) -> Self {
        Self { bits: vec![0; bytes.div_ceil(8)] }
    }

    /// Resets the record to `bytes` bytes, all of them unwritten.
    pub(crate) fn reset(&mut self, bytes: usize) {
        self.bits.clear();
        self.bits.resize(bytes.div_ceil(8), 0);
    }

    /// Marks a range as written.
    #[inline]
    pub(crate) fn set(&mut self, start: usize, length: usize) {
        match within_byte(start, length) {
            Some(mask) => self.bits[start / 8] |= mask,
            None => self.put(start, length, true),
        }
    }

    /// Whether all bytes of a range were written.
    #[inline]
    pub(crate) fn covers(&self, start: usize, length: usize) -> bool {
        match within_byte(start, length) {
            Some(mask) => self.bits[start / 8] & mask == mask,
            None => self.first_missing(start, length).is_none(),
        }
    }

    fn put(&mut self, start: usize, length: usize, value: bool) {
        let (mut at, end) = (start, start + length);
        while at < end {
            if at.is_multiple_of(8) && end - at >= 8 {
                let whole = (end - at) / 8;
                self.bits[at / 8..at / 8 + whole].fill(if value { 0xff } else { 0 });
                at += whole * 8;
                continue;
            }
            let count = (8 - at % 8).min(end - at);
            let mask = ((0xffu16 >> (8 - count)) << (at % 8)) as u8;
            if value {
                self.bits[at / 8] |= mask;
            } else {
                self.bits[at / 8] &= !mask;
            }
            at += count;
        }
    }

    /// The first byte of a range that was never written.
    pub(crate) fn first_missing(&self, start: usize, length: usize) -> Option<usize> {
        let (mut at, end) = (start, start + length);
        while at < end {
            let count = (8 - at % 8).min(end - at);
            let mask = ((0xffu16 >> (8 - count)) << (at % 8)) as u8;
            let missing = !self.bits[at / 8] & mask;
            if missing != 0 {
                return Some(at - at % 8 + missing.trailing_zeros() as usize);
            }
            at += count;
        }
        None
    }

    /// Marks a range as never written.
    pub(crate) fn unset(&mut self, start: usize, length: usize) {
        self.put(start, length, false);
    }

    /// The written parts of a range, as offsets from its start.
    pub(crate) fn runs(&self, start: usize, length: usize) -> Vec<(usize, usize)> {
        let mut runs = Vec::new();
        let mut done = 0;
        while done < length {
            let end = self.first_missing(start + done, length - done).map_or(length, |missing| missing - start);
            if end > done {
                runs.push((done, end));
            }
            done = end + 1;
        }
        runs
    }
}

/// The bits of a range that lie in one byte of them, which are those of most accesses.
#[inline]
fn within_byte(start: usize, length: usize) -> Option<u8> {
    let at = start % 8;
    (length > 0 && at + length <= 8).then(|| (((1u16 << length) - 1) << at) as u8)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_across_bytes() {
        let mut written = Initialised::new(64);
        written.set(3, 20);
        assert_eq!(written.first_missing(3, 20), None);
        assert_eq!(written.first_missing(0, 8), Some(0));
        assert_eq!(written.first_missing(4, 40), Some(23));
        assert_eq!(written.runs(0, 30), [(3, 23)]);
        assert!(written.covers(3, 20) && !written.covers(3, 21) && !written.covers(16, 8) && written.covers(8, 8));
        // Nothing, also behind the last byte.
        written.set(64, 0);
        assert!(written.covers(64, 0));
        written.unset(10, 2);
        assert_eq!(written.runs(5, 30), [(0, 5), (7, 18)]);
    }
}
