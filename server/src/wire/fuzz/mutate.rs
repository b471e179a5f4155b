//! Mutations of a corpus: the same on every run.

use std::fs;
use std::path::Path;

/// Inputs that each target gets, unless `FUZZ_INPUTS` says otherwise.
const INPUTS: u64 = 3_000;
/// Longest input.
const LONGEST: usize = 1 << 16;

/// Calls a target with every file of `tests/fuzz/<corpus>` as it is, and then with mutations of them.
pub(super) fn each(corpus: &str, mut target: impl FnMut(&[u8])) {
    let files = read(&Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/fuzz").join(corpus));
    files.iter().for_each(|file| target(file));
    let inputs = std::env::var("FUZZ_INPUTS").ok().and_then(|count| count.parse().ok()).unwrap_or(INPUTS);
    for seed in 0..inputs {
        let mut random = Random(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ 0x5851_f42d_4c95_7f2d);
        let mut input = files[random.below(files.len())].clone();
        for _ in 0..=random.below(6) {
            mutate(&mut input, &files, &mut random);
        }
        input.truncate(LONGEST);
        target(&input);
    }
}

fn read(folder: &Path) -> Vec<Vec<u8>> {
    let mut paths: Vec<_> = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    assert!(!paths.is_empty(), "{folder:?} is empty");
    paths.iter().map(|path| fs::read(path).unwrap()).collect()
}

/// xorshift64*.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d)
    }

    /// Below a limit, which is at least 1.
    fn below(&mut self, limit: usize) -> usize {
        (self.next() >> 16) as usize % limit.max(1)
    }

    fn one_of<T: Copy>(&mut self, choices: &[T]) -> T {
        choices[self.below(choices.len())]
    }

    /// A range of an input.
    fn range(&mut self, length: usize) -> std::ops::Range<usize> {
        let start = self.below(length + 1);
        start..start + self.below((length - start).min(64) + 1)
    }
}

/// Texts that mean something to one of the decoders.
const TOKENS: [&str; 20] = [
    "null",
    "-1",
    "1e999",
    "0.5",
    "18446744073709551616",
    "9223372036854775807",
    "[]",
    "{}",
    "[[",
    "\"",
    "\\u0000",
    ":",
    ",",
    "/",
    "..",
    "%2f",
    "tinker://",
    "\u{0}",
    "\u{fffd}",
    "true",
];

fn mutate(input: &mut Vec<u8>, files: &[Vec<u8>], random: &mut Random) {
    let at = random.below(input.len());
    match random.below(9) {
        0 if !input.is_empty() => input[at] ^= 1 << random.below(8),
        1 if !input.is_empty() => input[at] = random.one_of(&[0, 1, 0x7f, 0x80, 0xff, b'0', b'"']),
        2 => drop(input.drain(random.range(input.len()))),
        3 => {
            // What repeats becomes long.
            let part = input[random.range(input.len())].to_vec();
            let times = 1 + random.below(16);
            drop(input.splice(at..at, part.repeat(times)));
        }
        4 => {
            let number = random.one_of(&[0, 1, u64::MAX, i64::MAX as u64, i64::MIN as u64, 1 << 31, 1 << 32, 1 << 25]);
            let width = random.one_of(&[4, 8]);
            let end = (at + width).min(input.len());
            drop(input.splice(at..end, number.to_le_bytes()[..width].iter().copied()));
        }
        5 => {
            // The largest numbers of protobuf's own encoding.
            let varint = random.one_of(&[&[0xff; 9][..], &[0xff, 0xff, 0xff, 0xff, 0x0f], &[0x80, 0x80, 0x80, 0x10]]);
            drop(input.splice(at..at, varint.iter().copied()));
        }
        6 => {
            let other = &files[random.below(files.len())];
            let part = other[random.range(other.len())].to_vec();
            drop(input.splice(at..at, part));
        }
        7 => input.truncate(at),
        _ => {
            let token = random.one_of(&TOKENS);
            let end = (at + random.below(3)).min(input.len());
            drop(input.splice(at..end, token.bytes()));
        }
    }
}
