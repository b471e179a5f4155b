//! Mutations of a corpus: the same on every run.

use std::fs;
use std::path::Path;
use std::time::Duration;

use serde_json::Value;

use crate::guided::{Inputs, Search, files as files_of};
use crate::processor_time::of_thread;
use crate::random::Random;

/// Inputs that a target gets, unless the corpus or `FUZZ_INPUTS` sets another number.
const INPUTS: u64 = 3_000;
/// Most changes of an input, unless the corpus sets another number.
const CHANGES: usize = 6;
/// Bytes of the longest input.
const LONGEST: usize = 1 << 16;
/// Maximum depth of a JSON value, which is more than parsers accept.
const DEEPEST: usize = 200;
/// Processor time that a target may take for an input.
const MOST_TIME: Duration = Duration::from_secs(5);

/// A corpus and the settings of its mutations.
#[derive(Clone, Copy)]
pub struct Corpus<'a> {
    /// A folder of `tests/fuzz`.
    name: &'a str,
    inputs: u64,
    /// Most changes of an input.
    changes: usize,
    /// Texts that the decoder treats specially.
    words: &'a [&'a str],
}

/// Calls a target with every file of `tests/fuzz/<corpus>` as it is, and then with mutations of them.
pub fn each(corpus: &str, target: impl FnMut(&[u8])) {
    Corpus::new(corpus).each(target);
}

impl<'a> Corpus<'a> {
    /// Makes a corpus with words of JSON and paths.
    pub fn new(name: &'a str) -> Self {
        Self { name, inputs: INPUTS, changes: CHANGES, words: &TOKENS }
    }

    /// Sets the number of mutations.
    pub fn inputs(self, inputs: u64) -> Self {
        Self { inputs, ..self }
    }

    /// Sets the most changes of an input, for decoders that reject inputs with more changes early.
    pub fn changes(self, changes: usize) -> Self {
        Self { changes, ..self }
    }

    /// Replaces the words that mutations insert.
    pub fn words(self, words: &'a [&'a str]) -> Self {
        Self { words, ..self }
    }

    /// Calls a target with the files and with mutations of their bytes.
    pub fn each(self, mut target: impl FnMut(&[u8])) {
        let files = read(&Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/fuzz").join(self.name));
        files.iter().for_each(|file| in_time(file, &mut target));
        if let Some(search) = Search::from_environment(self.name) {
            return search.run(&Bytes(self), files, |input| in_time(input, &mut target));
        }
        for mut random in self.seeds() {
            let mut input = files[random.below(files.len())].clone();
            Bytes(self).mutate(&mut input, &files, &mut random);
            in_time(&input, &mut target);
        }
    }

    /// Calls a target with mutations of the values in the files, which must be JSON: this reaches the code behind a
    /// parser.
    pub fn each_value(self, mut target: impl FnMut(&Value)) {
        let files = read(&Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/fuzz").join(self.name));
        let values: Vec<Value> = files.iter().map(|file| serde_json::from_slice(file).unwrap()).collect();
        if let Some(search) = Search::from_environment(self.name) {
            let mut run = |value: &Value| in_time(value.to_string().as_bytes(), |_| target(value));
            return search.run(&Values(self), values, &mut run);
        }
        for mut random in self.seeds() {
            let mut value = values[random.below(values.len())].clone();
            Values(self).mutate(&mut value, &values, &mut random);
            in_time(value.to_string().as_bytes(), |_| target(&value));
        }
    }

    fn seeds(self) -> impl Iterator<Item = Random> {
        let inputs = std::env::var("FUZZ_INPUTS").ok().and_then(|count| count.parse().ok()).unwrap_or(self.inputs);
        (0..inputs).map(|seed| Random::new(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ 0x5851_f42d_4c95_7f2d))
    }
}

/// Mutations of inputs that are bytes.
struct Bytes<'a>(Corpus<'a>);

impl Inputs for Bytes<'_> {
    type Input = Vec<u8>;

    fn mutate(&self, input: &mut Vec<u8>, others: &[Vec<u8>], random: &mut Random) {
        for _ in 0..=random.below(self.0.changes) {
            mutate(input, others, self.0.words, random);
        }
        input.truncate(LONGEST);
    }

    fn write(&self, input: &Vec<u8>) -> Option<Vec<u8>> {
        Some(input.clone())
    }

    fn read(&self, file: &[u8]) -> Option<Vec<u8>> {
        Some(file.to_vec())
    }
}

/// Mutations of inputs that are JSON values.
struct Values<'a>(Corpus<'a>);

impl Inputs for Values<'_> {
    type Input = Value;

    fn mutate(&self, value: &mut Value, others: &[Value], random: &mut Random) {
        for _ in 0..=random.below(self.0.changes) {
            super::values::mutate(value, others, self.0.words, random);
        }
    }

    fn write(&self, value: &Value) -> Option<Vec<u8>> {
        if super::values::depth(value) > DEEPEST {
            return None;
        }
        Some(value.to_string().into_bytes()).filter(|text| text.len() <= LONGEST)
    }

    fn read(&self, file: &[u8]) -> Option<Value> {
        serde_json::from_slice(file).ok()
    }
}

/// Calls a target, and checks that it ends in time.
fn in_time(input: &[u8], mut target: impl FnMut(&[u8])) {
    let before = of_thread();
    target(input);
    let took = of_thread().saturating_sub(before);
    assert!(took <= MOST_TIME, "{took:?} of a processor for {}", String::from_utf8_lossy(input));
}

fn read(folder: &Path) -> Vec<Vec<u8>> {
    let paths = files_of(folder);
    assert!(!paths.is_empty(), "{folder:?} is empty");
    paths.iter().map(|path| fs::read(path).unwrap()).collect()
}

/// Texts that one of the decoders treats specially.
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

fn mutate(input: &mut Vec<u8>, files: &[Vec<u8>], words: &[&str], random: &mut Random) {
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
            let token = random.one_of(words);
            let end = (at + random.below(3)).min(input.len());
            drop(input.splice(at..end, token.bytes()));
        }
    }
}
