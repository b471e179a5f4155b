use super::*;

#[test]
fn targets_cost_beyond_a_tokens_worth() {
    assert_eq!([0, 1, 64, 65, 1_024].map(|targets| scored_tokens(10, targets)), [10, 10, 10, 11, 160]);
    assert_eq!(scored_tokens(u64::MAX, 2), u64::MAX);
}

#[test]
fn a_target_of_a_custom_loss_costs_a_token() {
    assert_eq!([0, 1, 64, 1_024].map(|targets| custom_loss_tokens(2, targets)), [2, 2, 128, 2_048]);
    assert_eq!(custom_loss_tokens(u64::MAX, 2), u64::MAX);
}

#[test]
fn candidates_have_limits() {
    let refusal = |samples, tokens, topk, prompt, of_prompt| {
        check_candidates(samples, tokens, topk, prompt, of_prompt).err().map(|error| error.message)
    };
    assert_eq!(refusal(1_024, 4, 1_024, 4_096, 1_024), None);
    let text = "num_samples * max_tokens * topk_sample_logprobs: 1024 * 5 * 1024 is more than 4194304";
    assert_eq!(refusal(1_024, 5, 1_024, 0, 0).as_deref(), Some(text));
    assert!(refusal(u32::MAX, usize::MAX, 2, 0, 0).is_some());
    let text = "prompt tokens * topk_prompt_logprobs: 4097 * 1024 is more than 4194304";
    assert_eq!(refusal(1, 1, 0, 4_097, 1_024).as_deref(), Some(text));
}

#[test]
fn too_many_targets_are_refused() {
    assert_eq!(check_targets(512, 512), Ok(()));
    assert_eq!(check_targets(513, 512), Err("513 columns, at most 512 are allowed".to_owned()));
}

#[test]
fn a_small_vocabulary_has_fewer_targets() {
    assert_eq!([0, 512, 50_000].map(max_targets), [0, 512, MAX_TARGETS]);
}

#[test]
fn a_training_request_has_one_datum_or_more_up_to_a_limit() {
    let refusal = |count| check_datums(count).err().map(|error| error.message);
    assert_eq!([1, MAX_DATUMS].map(refusal), [None, None]);
    assert_eq!(refusal(0).as_deref(), Some("data: at least one datum is required"));
    assert_eq!(refusal(MAX_DATUMS + 1).as_deref(), Some("data: 65537 datums, at most 65536 are allowed"));
}
