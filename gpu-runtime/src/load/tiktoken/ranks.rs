//! The lines of a `tiktoken.model`: a token in base64 and its rank, which is its id.

use std::collections::{BTreeMap, HashMap};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use super::errors::{RANKS, malformed, quoted};
use crate::config::LoadError;

/// Bytes of a file. That of Kimi-K2 has three million.
const MAX_BYTES: usize = 1 << 24;
/// Bytes of a token. The longest ones of usual vocabularies are 128 spaces.
const MAX_TOKEN: usize = 1 << 10;

/// Tokens by rank: distinct, without gaps, and with a token for each byte.
pub(super) struct Ranks(Vec<Vec<u8>>);

/// A token of a line.
struct Line {
    number: usize,
    token: Vec<u8>,
}

impl Ranks {
    /// Reads a file with at most `most` tokens, whose lines may be in any order.
    ///
    /// # Errors
    /// [`LoadError::Malformed`] with the line: another form, a rank or a token that occurs twice, a gap in the ranks, a byte
    /// without a token; or too many bytes or tokens.
    pub(super) fn read(text: &[u8], most: usize) -> Result<Self, LoadError> {
        if text.len() > MAX_BYTES {
            return Err(malformed(RANKS, format!("{} bytes, at most {MAX_BYTES}", text.len())));
        }
        let mut lines: BTreeMap<u32, Line> = BTreeMap::new();
        for (at, line) in text.split(|&byte| byte == b'\n').enumerate() {
            let number = at + 1;
            let Some((rank, token)) = read_line(line).map_err(|reason| in_line(number, &reason))? else { continue };
            if lines.len() == most {
                return Err(in_line(number, &format!("more than {most} tokens, the vocab_size of config.json")));
            }
            if let Some(first) = lines.insert(rank, Line { number, token }) {
                return Err(in_line(number, &format!("rank {rank} is in line {} already", first.number)));
            }
        }
        for (expected, (&rank, line)) in (0..).zip(&lines) {
            if rank != expected {
                return Err(in_line(line.number, &format!("rank {rank}, but no line has rank {expected}")));
            }
        }
        let numbers: Vec<usize> = lines.values().map(|line| line.number).collect();
        let ranks = Self(lines.into_values().map(|line| line.token).collect());
        ranks.check_distinct(&numbers)?;
        Ok(ranks)
    }

    /// Refuses tokens that occur twice, and bytes without a token; `numbers` are the lines by rank.
    fn check_distinct(&self, numbers: &[usize]) -> Result<(), LoadError> {
        let mut seen: HashMap<&[u8], usize> = HashMap::with_capacity(self.0.len());
        for (token, &number) in self.tokens().zip(numbers) {
            if let Some(first) = seen.insert(token, number) {
                let (first, second) = (first.min(number), first.max(number));
                return Err(in_line(second, &format!("its token is in line {first} already")));
            }
        }
        match (0..=u8::MAX).find(|&byte| !seen.contains_key(&[byte][..])) {
            Some(byte) => Err(malformed(RANKS, format!("no line has a token for the byte 0x{byte:02X}"))),
            None => Ok(()),
        }
    }

    /// Returns the tokens in the order of ranks.
    pub(super) fn tokens(&self) -> impl Iterator<Item = &[u8]> {
        self.0.iter().map(Vec::as_slice)
    }

    /// Returns the bytes of all tokens.
    pub(super) fn bytes(&self) -> usize {
        self.0.iter().map(Vec::len).sum()
    }

    /// Returns the number of tokens.
    pub(super) fn len(&self) -> usize {
        self.0.len()
    }

    /// Returns the ranks by token.
    pub(super) fn index(&self) -> HashMap<&[u8], u32> {
        self.tokens().zip(0..).collect()
    }
}

/// The rank and the token of a line; `None` if it is empty.
fn read_line(line: &[u8]) -> Result<Option<(u32, Vec<u8>)>, String> {
    let form = || format!("expected a token in base64 and its rank, found {}", quoted(&String::from_utf8_lossy(line)));
    let mut fields = line.split(u8::is_ascii_whitespace).filter(|field| !field.is_empty());
    let Some(token) = fields.next() else { return Ok(None) };
    let (Some(rank), None) = (fields.next(), fields.next()) else { return Err(form()) };
    if token.len() / 4 * 3 > MAX_TOKEN + 2 {
        return Err(format!("a token of more than {MAX_TOKEN} bytes"));
    }
    let token = STANDARD.decode(token).map_err(|error| format!("{}: {error}", form()))?;
    let rank = std::str::from_utf8(rank).ok().filter(|rank| rank.bytes().all(|byte| byte.is_ascii_digit()));
    let rank = rank.and_then(|rank| rank.parse().ok()).ok_or_else(form)?;
    match token.len() {
        0 => Err("an empty token".to_owned()),
        1..=MAX_TOKEN => Ok(Some((rank, token))),
        _ => Err(format!("a token of more than {MAX_TOKEN} bytes")),
    }
}

fn in_line(number: usize, reason: &str) -> LoadError {
    malformed(RANKS, format!("line {number}: {reason}"))
}
