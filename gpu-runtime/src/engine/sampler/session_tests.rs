//! Sessions of one tenant beside each other.

use super::*;

/// Two sessions of one tenant: the first has far more work than fits.
fn backlogged(prompt_len: usize, new: u32) -> (SamplerDriver, SamplerWeights<HostBackend>) {
    let weights = SamplerWeights::of_base(base("llama"));
    let mut driver = SamplerDriver::new(LARGE);
    (0..60).for_each(|at| driver.start_in("many", at, &weights, request(prompt(0, at as u64, prompt_len), 8, new)));
    driver.steps(20);
    driver.sampler.take_admitted();
    (driver, weights)
}

/// Passes until a request is complete.
fn passes(driver: &mut SamplerDriver, at: usize) -> usize {
    (1..200)
        .find(|_| {
            driver.step();
            driver.done.contains_key(&id(at))
        })
        .unwrap()
}

#[test]
fn a_sessions_backlog_does_not_block_another_session_of_its_tenant() {
    let (mut driver, weights) = backlogged(4, 400);
    assert_eq!(driver.sampler.active.len(), 32);
    driver.start_in("one", 100, &weights, request(prompt(0, 100, 4), 1, 4));
    assert!(passes(&mut driver, 100) <= 5);
    assert_eq!(driver.sampler.take_admitted(), [id(100)], "what waits is not reported as admitted");
}

#[test]
fn a_prompt_takes_turns_with_the_prompts_of_another_session() {
    let (mut driver, weights) = backlogged(500, 1);
    driver.start_in("one", 100, &weights, request(prompt(0, 100, 64), 1, 4));
    let passes = passes(&mut driver, 100);
    assert!(passes <= 10, "{passes} passes");
}

#[test]
fn sessions_of_a_tenant_get_equal_parts_of_the_sequences() {
    let (mut driver, weights) = backlogged(4, 60);
    (100..160).for_each(|at| driver.start_in("later", at, &weights, request(prompt(0, at as u64, 4), 8, 60)));
    driver.steps(3);
    let held =
        |session: &str| driver.sampler.held_by_session("t", &SessionId::new(session), task::SampleTask::sequences);
    assert_eq!((held("many"), held("later")), (256, 128), "what was admitted stays");
    driver.steps(70);
    let held =
        |session: &str| driver.sampler.held_by_session("t", &SessionId::new(session), task::SampleTask::sequences);
    assert!(held("later") >= 100 && held("many") <= 156, "{} and {}", held("many"), held("later"));
}

#[test]
fn a_session_below_its_share_of_keys_and_values_gets_it_from_another() {
    let weights = SamplerWeights::of_base(base("llama"));
    let block = weights.base.model.kv_block_bytes;
    let mut driver = SamplerDriver::new(40 * block);
    (0..10).for_each(|at| driver.start_in("many", at, &weights, request(prompt(0, at as u64, 4), 8, 400)));
    driver.steps(60);
    driver.start_in("one", 100, &weights, request(prompt(0, 100, 4), 1, 4));
    assert!(passes(&mut driver, 100) <= 10);
    driver.drain();
    assert_eq!(driver.done.len(), 11);
}
