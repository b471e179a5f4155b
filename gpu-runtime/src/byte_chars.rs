//! Characters that stand for bytes in byte-level vocabularies (Radford et al. 2019): printable Latin-1 stands for itself, the
//! other bytes for the characters from U+0100 on, in order.

/// Returns the byte that a character stands for.
pub(crate) fn byte_of(character: char) -> Option<u8> {
    let code = u32::from(character);
    match u8::try_from(code) {
        Ok(byte) => prints(byte).then_some(byte),
        Err(_) => {
            let rank = usize::try_from(code.checked_sub(0x100)?).ok()?;
            (0..=u8::MAX).filter(|&byte| !prints(byte)).nth(rank)
        }
    }
}

/// Returns the characters that stand for all bytes, in their order.
pub(crate) fn chars() -> [char; 256] {
    let mut others = '\u{100}'..;
    std::array::from_fn(|byte| match byte as u8 {
        byte if prints(byte) => char::from(byte),
        _ => others.next().unwrap_or_default(),
    })
}

fn prints(byte: u8) -> bool {
    matches!(byte, b'!'..=b'~' | 0xA1..=0xAC | 0xAE..=0xFF)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn each_byte_has_a_character_of_its_own() {
        let chars = chars();
        assert_eq!(chars.iter().collect::<BTreeSet<_>>().len(), 256);
        for (byte, &character) in chars.iter().enumerate() {
            assert_eq!(byte_of(character), u8::try_from(byte).ok(), "{character}");
        }
        assert_eq!((chars[0], chars[usize::from(b' ')], chars[usize::from(b'a')]), ('Ā', 'Ġ', 'a'));
        assert_eq!((byte_of(' '), byte_of('\u{144}'), byte_of('日')), (None, None, None));
    }
}
