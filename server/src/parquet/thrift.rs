//! Structures in the compact protocol of Thrift, limited to what parquet files need.

const I32: u8 = 5;
const I64: u8 = 6;
const BINARY: u8 = 8;
const LIST: u8 = 9;
const STRUCT: u8 = 12;

/// A structure that is being written. Fields must come in the order of their numbers.
#[derive(Clone, Debug, Default)]
pub(super) struct Struct {
    bytes: Vec<u8>,
    last: u8,
}

impl Struct {
    pub(super) fn new() -> Self {
        Self::default()
    }

    /// Writes a field's number, as the difference to the previous one, and its type.
    fn field(mut self, number: u8, kind: u8) -> Self {
        debug_assert!(number > self.last && number - self.last < 16, "fields come in order");
        self.bytes.push(((number - self.last) << 4) | kind);
        self.last = number;
        self
    }

    pub(super) fn i32(self, number: u8, value: i32) -> Self {
        let mut this = self.field(number, I32);
        varint(&mut this.bytes, zigzag(i64::from(value)));
        this
    }

    pub(super) fn i64(self, number: u8, value: i64) -> Self {
        let mut this = self.field(number, I64);
        varint(&mut this.bytes, zigzag(value));
        this
    }

    pub(super) fn text(self, number: u8, value: &str) -> Self {
        let mut this = self.field(number, BINARY);
        this.put_text(value);
        this
    }

    pub(super) fn record(self, number: u8, value: Self) -> Self {
        let mut this = self.field(number, STRUCT);
        this.bytes.extend(value.finish());
        this
    }

    pub(super) fn records(self, number: u8, values: Vec<Self>) -> Self {
        let mut this = self.field(number, LIST);
        this.put_list(values.len(), STRUCT);
        values.into_iter().for_each(|value| this.bytes.extend(value.finish()));
        this
    }

    pub(super) fn i32s(self, number: u8, values: &[i32]) -> Self {
        let mut this = self.field(number, LIST);
        this.put_list(values.len(), I32);
        values.iter().for_each(|value| varint(&mut this.bytes, zigzag(i64::from(*value))));
        this
    }

    pub(super) fn texts(self, number: u8, values: &[&str]) -> Self {
        let mut this = self.field(number, LIST);
        this.put_list(values.len(), BINARY);
        values.iter().for_each(|value| this.put_text(value));
        this
    }

    /// Ends the structure and returns its bytes.
    pub(super) fn finish(mut self) -> Vec<u8> {
        self.bytes.push(0);
        self.bytes
    }

    fn put_text(&mut self, value: &str) {
        varint(&mut self.bytes, value.len() as u64);
        self.bytes.extend_from_slice(value.as_bytes());
    }

    fn put_list(&mut self, length: usize, kind: u8) {
        if length < 15 {
            self.bytes.push(((length as u8) << 4) | kind);
        } else {
            self.bytes.push(0xf0 | kind);
            varint(&mut self.bytes, length as u64);
        }
    }
}

/// Writes seven bits in each byte, the lowest first.
pub(super) fn varint(bytes: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        bytes.push((value as u8) | 0x80);
        value >>= 7;
    }
    bytes.push(value as u8);
}

/// Maps small numbers of either sign to small unsigned numbers.
fn zigzag(value: i64) -> u64 {
    ((value << 1) ^ (value >> 63)) as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_written_as_the_protocol_says() {
        let inner = Struct::new().i32(1, -1);
        let all = Struct::new().i32(1, 1).i64(3, 300).text(4, "ab").record(5, inner.clone()).i32s(6, &[0, 3]);
        let expected = [
            0x15, 2, // field 1, i32: 1
            0x26, 0xd8, 4, // field 3, i64: 300
            0x18, 2, b'a', b'b', // field 4
            0x1c, 0x15, 1, 0, // field 5: a structure with -1
            0x19, 0x25, 0, 6, // field 6: two i32
            0,
        ];
        assert_eq!(all.finish(), expected);
        let many = Struct::new().records(1, vec![inner; 15]).texts(2, &["x"]).finish();
        assert_eq!((&many[..3], &many[many.len() - 5..]), (&[0x19, 0xfc, 15][..], &[0x19, 0x18, 1, b'x', 0][..]));
    }
}
