//! Limits of each share's part of a pass.

use super::*;
use crate::engine::sampler::widths::LIMITED_PASSES;

const WIDE: &str = "wide";
const OTHER: &str = "other";
/// Rows of a share beside another one of its weight.
const LIMIT: usize = 16;

impl SamplerDriver {
    /// Rows of the next pass.
    fn next_rows(&mut self) -> usize {
        let before = self.rows;
        self.step();
        self.rows - before
    }

    /// Rows of each pass until a request is complete.
    fn rows_until(&mut self, at: usize) -> Vec<usize> {
        let mut rows = Vec::new();
        while !self.done.contains_key(&id(at)) {
            rows.push(self.next_rows());
        }
        rows
    }

    /// Number of tokens of each sequence of a share.
    fn tokens_of(&self, share: &str) -> Vec<usize> {
        let own = self.sampler.active.iter().filter(|task| &*task.share.name == share);
        own.flat_map(|task| task.sampled_since(&[])).map(|progress| progress.tokens.len()).collect()
    }
}

/// A driver in which 128 sequences of one share decode.
fn wide(prompt_len: usize) -> (SamplerDriver, SamplerWeights<HostBackend>) {
    let weights = SamplerWeights::of_base(base("llama"));
    let mut driver = SamplerDriver::new(LARGE);
    for at in 0..8 {
        driver.start_for(TenantShare::new(WIDE), at, &weights, request(prompt(0, at as u64, prompt_len), 16, 200));
    }
    while driver.tokens_of(WIDE).len() < 128 {
        driver.step();
    }
    assert_eq!(driver.next_rows(), 128, "nobody else waits");
    (driver, weights)
}

#[test]
fn a_wide_share_is_limited_beside_another() {
    let (mut driver, weights) = wide(4);
    let short = request(prompt(0, 100, 4), 1, 4);
    driver.start_for(TenantShare::new(OTHER), 100, &weights, short.clone());
    let rows = driver.rows_until(100);
    assert!(rows.len() == 4 && rows.iter().all(|rows| (LIMIT / 2..=LIMIT + 4).contains(rows)), "{rows:?}");
    assert_eq!(format!("{:?}", driver.done[&id(100)]), alone(&weights, short));
    // The other share's next request may follow.
    let rows: Vec<usize> = (1..LIMITED_PASSES).map(|_| driver.next_rows()).collect();
    assert!(rows.iter().all(|rows| (LIMIT / 2..=LIMIT).contains(rows)), "{rows:?}");
    assert_eq!(driver.next_rows(), 128);
}

#[test]
fn sequences_of_a_limited_share_take_turns() {
    let (mut driver, weights) = wide(4);
    driver.start_for(TenantShare::new(OTHER), 100, &weights, request(prompt(0, 100, 4), 1, 60));
    let before = driver.tokens_of(WIDE);
    for _ in 0..40 {
        driver.step();
        let added: Vec<usize> =
            driver.tokens_of(WIDE).iter().zip(&before).map(|(after, before)| after - before).collect();
        let (least, most) = (added.iter().min().unwrap(), added.iter().max().unwrap());
        assert!(most - least <= 1, "{added:?}");
    }
    let tokens: usize = driver.tokens_of(WIDE).iter().sum::<usize>() - before.iter().sum::<usize>();
    assert!(tokens >= 40 * LIMIT / 2, "{tokens} tokens");
    let others = driver.tokens_of(OTHER);
    assert_eq!(others, [40], "a token in each pass");
}

#[test]
fn work_elsewhere_in_the_engine_limits_passes() {
    let (mut driver, _) = wide(4);
    driver.sampler.note_shares([TenantShare::new(WIDE)].iter());
    assert_eq!(driver.next_rows(), 128, "it is the share's own");
    driver.sampler.note_shares([TenantShare::new(OTHER)].iter());
    let rows = driver.next_rows();
    assert!((LIMIT / 2..=LIMIT).contains(&rows), "{rows} rows");
}

#[test]
fn limits_follow_weights() {
    let weights = SamplerWeights::of_base(base("llama"));
    let mut driver = SamplerDriver::new(LARGE);
    for (at, (share, weight)) in [(WIDE, 3), (OTHER, 1)].into_iter().enumerate() {
        let share = TenantShare { weight: std::num::NonZeroU32::new(weight).unwrap(), ..TenantShare::new(share) };
        driver.start_for(share, at, &weights, request(prompt(0, at as u64, 4), 60, 100));
    }
    driver.steps(12);
    let [more, less] = [WIDE, OTHER].map(|share| driver.tokens_of(share).iter().sum::<usize>());
    // The first token of each sequence is the prompt's.
    let ratio = (more - 60) as f64 / (less - 60) as f64;
    assert!((2.5..3.5).contains(&ratio), "{more} and {less} tokens");
}

#[test]
fn long_sequences_count_for_what_they_read() {
    let (mut driver, weights) = wide(300);
    driver.start_for(TenantShare::new(OTHER), 100, &weights, request(prompt(0, 100, 4), 1, 8));
    let rows = driver.rows_until(100);
    assert!(rows.iter().all(|rows| (2..=LIMIT / 2).contains(rows)), "{rows:?}");
}

#[test]
fn prompts_of_a_share_are_limited_beside_another() {
    let weights = SamplerWeights::of_base(base("llama"));
    let mut driver = SamplerDriver::new(LARGE);
    for at in 0..40 {
        driver.start_for(TenantShare::new(WIDE), at, &weights, request(prompt(0, at as u64, 250), 1, 1));
    }
    assert!(driver.next_rows() > 200, "nobody else waits");
    driver.start_for(TenantShare::new(OTHER), 100, &weights, request(prompt(0, 100, 4), 1, 4));
    let rows = driver.rows_until(100);
    assert!(rows.len() <= 5 && rows.iter().all(|rows| *rows <= BLOCK + 4), "{rows:?}");
    driver.drain();
    assert_eq!(driver.done.len(), 41);
}

#[test]
fn a_block_of_a_prompt_is_paid_for_in_the_passes_that_follow() {
    let weights = SamplerWeights::of_base(base("llama"));
    let mut driver = SamplerDriver::new(LARGE);
    driver.sampler.balanced_rows = 4;
    for at in 0..40 {
        driver.start_for(TenantShare::new(WIDE), at, &weights, request(prompt(0, at as u64, 250), 1, 1));
    }
    driver.start_for(TenantShare::new(OTHER), 100, &weights, request(prompt(0, 100, 4), 1, 50));
    let rows = driver.rows_until(100);
    assert_eq!(rows.len(), 50, "a token in each pass");
    // With the block that the last pass may begin.
    let allowed = 50 * (4 + 1) + 4 + BLOCK;
    assert!(rows.iter().sum::<usize>() <= allowed && rows.iter().any(|rows| *rows > BLOCK), "{rows:?}");
    driver.drain();
    assert_eq!(driver.done.len(), 41);
}
