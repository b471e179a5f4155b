//! Writes bytes as hexadecimal digits.

/// Returns the lower-case hexadecimal digits of bytes, two for each.
pub fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::hex;

    #[test]
    fn each_byte_has_two_digits() {
        assert_eq!(hex(&[0, 9, 0xaf, 0xff]), "0009afff");
        assert_eq!(hex(&[]), "");
    }
}
