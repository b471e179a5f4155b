//! The payload of an age file: chunks of 64 KiB, each sealed with ChaCha20-Poly1305 (the specification's "STREAM").

use std::io::{Read, Write};

use ring::aead::{Aad, LessSafeKey, Nonce};

use crate::AgeError;

/// Bytes of plaintext in every chunk but the last.
const CHUNK: usize = 64 * 1024;

/// Seals all of `plain` and returns the bytes that were written. The last chunk is empty only if the plaintext is.
pub(crate) fn seal(mut plain: impl Read, mut to: impl Write, key: &LessSafeKey) -> Result<u64, AgeError> {
    let mut written = 0;
    let mut chunk = read_chunk(&mut plain)?;
    for counter in 0_u64.. {
        // A full chunk is the last one if nothing follows it.
        let next = if chunk.len() < CHUNK { Vec::new() } else { read_chunk(&mut plain)? };
        let last = next.is_empty();
        key.seal_in_place_append_tag(nonce(counter, last), Aad::empty(), &mut chunk)?;
        to.write_all(&chunk)?;
        written += chunk.len() as u64;
        if last {
            break;
        }
        chunk = next;
    }
    to.flush()?;
    Ok(written)
}

/// Reads until a chunk is full or the plaintext ends.
fn read_chunk(plain: &mut impl Read) -> Result<Vec<u8>, AgeError> {
    let mut chunk = Vec::new();
    plain.take(CHUNK as u64).read_to_end(&mut chunk)?;
    Ok(chunk)
}

/// Returns the nonce of a chunk: its number in 11 bytes, big endian, and whether it is the last one.
fn nonce(counter: u64, last: bool) -> Nonce {
    let mut bytes = [0; 12];
    bytes[3..11].copy_from_slice(&counter.to_be_bytes());
    bytes[11] = u8::from(last);
    Nonce::assume_unique_for_key(bytes)
}
