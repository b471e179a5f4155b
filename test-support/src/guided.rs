//! Mutations that are guided by coverage: an input that takes a branch for the first time is mutated further.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use crate::coverage::Coverage;
use crate::processor_time::ProcessorTime;
use crate::random::Random;

/// Newest inputs, which every second mutation is made from.
const NEWEST: usize = 32;

/// A search for as many seconds of processor time as `FUZZ_SECONDS` says.
pub(crate) struct Search {
    time: Duration,
    /// Folder of what was found, by name of the corpus.
    found: PathBuf,
    /// The input that is being decoded. If the program dies, it is the cause.
    current: PathBuf,
    corpus: String,
}

/// How inputs are made and written.
pub(crate) trait Inputs {
    type Input: Clone;

    /// Changes an input, for which parts of others are used.
    fn mutate(&self, input: &mut Self::Input, others: &[Self::Input], random: &mut Random);

    /// Returns the content of the input's file; `None` if it is too large to be tried.
    fn write(&self, input: &Self::Input) -> Option<Vec<u8>>;

    /// Reads an input from a file of an earlier search.
    fn read(&self, file: &[u8]) -> Option<Self::Input>;
}

impl Search {
    /// Returns the search that the environment asks for.
    pub(crate) fn from_environment(corpus: &str) -> Option<Self> {
        let seconds: u64 = std::env::var("FUZZ_SECONDS").ok()?.parse().unwrap();
        let folder = PathBuf::from(std::env::var_os("FUZZ_FOLDER").expect("FUZZ_FOLDER is set beside FUZZ_SECONDS"));
        let (found, current) = (folder.join(corpus), folder.join(format!("{corpus}.current")));
        fs::create_dir_all(&found).unwrap();
        Some(Self { time: Duration::from_secs(seconds), found, current, corpus: corpus.to_owned() })
    }

    /// Calls a target with inputs, with those of earlier searches, and with mutations of them until the time is over.
    pub(crate) fn run<I: Inputs>(&self, inputs: &I, mut pool: Vec<I::Input>, mut target: impl FnMut(&I::Input)) {
        pool.extend(files(&self.found).iter().filter_map(|file| inputs.read(&fs::read(file).unwrap())));
        let mut coverage = Coverage::new();
        let given = pool.len();
        let mut tries = 0_u64;
        let mut random = Random::new(SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_nanos() as u64 | 1);
        let mut spent = ProcessorTime::start();
        while spent.elapsed() < self.time {
            let input = match pool.get(tries as usize) {
                Some(input) if (tries as usize) < given => input.clone(),
                _ => mutated(inputs, &pool, &mut random),
            };
            tries += 1;
            let Some(file) = inputs.write(&input) else { continue };
            fs::write(&self.current, &file).unwrap();
            if let Some(coverage) = &coverage {
                coverage.reset();
            }
            target(&input);
            let is_new = coverage.as_mut().is_some_and(Coverage::has_new);
            if is_new && tries as usize > given {
                fs::write(self.found.join(format!("{:016x}", hash(&file))), &file).unwrap();
                pool.push(input);
            }
        }
        fs::remove_file(&self.current).unwrap();
        let branches = coverage.map_or_else(|| "not counted".to_owned(), |coverage| coverage.branches().to_string());
        eprintln!(
            "{}: {tries} inputs in {} s of processor time, {} that take new branches beside {given}, branches: {branches}",
            self.corpus,
            self.time.as_secs(),
            pool.len() - given
        );
    }
}

fn mutated<I: Inputs>(inputs: &I, pool: &[I::Input], random: &mut Random) -> I::Input {
    let newest = pool.len().saturating_sub(NEWEST);
    let at = match random.below(2) {
        0 => newest + random.below(pool.len() - newest),
        _ => random.below(pool.len()),
    };
    let mut input = pool[at].clone();
    inputs.mutate(&mut input, pool, random);
    input
}

/// Returns the paths of a folder's files, in order.
pub(crate) fn files(folder: &Path) -> Vec<PathBuf> {
    let mut paths: Vec<_> = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    paths
}

/// Returns the FNV-1a hash of an input's content.
fn hash(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |hash, &byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3))
}
