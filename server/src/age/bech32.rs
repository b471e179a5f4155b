//! Bech32 (BIP 173) with the prefix `age`, without its limit of 90 characters.

const ALPHABET: &[u8; 32] = b"qpzry9x8gf2tvdw0s3jn54khce6mua7l";
/// Characters of the checksum.
const CHECKSUM: usize = 6;

/// The 32 bytes that a text in lower case holds under this prefix; `None` when it is not one.
pub(super) fn decode(text: &str, prefix: &str) -> Option<[u8; 32]> {
    let data = text.strip_prefix(prefix)?.strip_prefix('1')?;
    let values = data.bytes().map(value).collect::<Option<Vec<u8>>>()?;
    let expanded = prefix.bytes().map(|byte| byte >> 5).chain([0]).chain(prefix.bytes().map(|byte| byte & 31));
    if polymod(expanded.chain(values.iter().copied())) != 1 {
        return None;
    }
    let (values, _) = values.split_at_checked(values.len().checked_sub(CHECKSUM)?)?;
    regroup(values)?.try_into().ok()
}

fn value(character: u8) -> Option<u8> {
    ALPHABET.iter().position(|&known| known == character).and_then(|at| u8::try_from(at).ok())
}

fn polymod(values: impl Iterator<Item = u8>) -> u32 {
    const GENERATOR: [u32; 5] = [0x3b6a_57b2, 0x2650_8e6d, 0x1ea1_19fa, 0x3d42_33dd, 0x2a14_62b3];
    values.fold(1, |sum, value| {
        let shifted = ((sum & 0x01ff_ffff) << 5) ^ u32::from(value);
        let taken = GENERATOR.iter().enumerate().filter(|(bit, _)| (sum >> (25 + bit)) & 1 == 1);
        taken.fold(shifted, |sum, (_, generator)| sum ^ generator)
    })
}

/// Bytes of groups of five bits; what is left over must be fewer than five bits, all zero.
fn regroup(values: &[u8]) -> Option<Vec<u8>> {
    let (mut bytes, mut held, mut bits) = (Vec::new(), 0_u32, 0);
    for value in values {
        held = (held << 5) | u32::from(*value);
        bits += 5;
        if bits >= 8 {
            bits -= 8;
            bytes.push(u8::try_from(held >> bits).ok()?);
            held &= (1 << bits) - 1;
        }
    }
    (bits < 5 && held == 0).then_some(bytes)
}

#[cfg(test)]
mod tests {
    use super::super::tests::RECIPIENT;
    use super::*;

    #[test]
    fn a_changed_text_is_refused() {
        assert!(decode(RECIPIENT, "age").is_some());
        assert_eq!(decode(RECIPIENT, "agf"), None);
        assert_eq!(decode(&RECIPIENT.to_uppercase(), "age"), None);
        for at in 0..RECIPIENT.len() {
            let mut changed = RECIPIENT.as_bytes().to_vec();
            changed[at] = if changed[at] == b'q' { b'p' } else { b'q' };
            let changed = String::from_utf8(changed).unwrap_or_default();
            assert_eq!(decode(&changed, "age"), None, "{changed}");
            assert_eq!(decode(&RECIPIENT[..at], "age"), None);
        }
    }
}
