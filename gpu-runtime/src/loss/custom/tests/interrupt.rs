//! The early end of a loss whose result nobody needs.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use serde_json::json;
use trainyard_protocol::{Category, OpError};

use super::Case;
use super::hostile::{case, logprobs, node};
use crate::interrupt::Interrupt;
use crate::loss::LossValue;

/// Evaluates a loss of half a million elements that is interrupted at the question of this index; also returns how often it asks.
fn evaluate(interrupted_at: usize) -> (Result<LossValue, OpError>, usize) {
    let nodes = [
        node("wide", "Tensor.expand", json!([logprobs(), 15_000, 6])),
        node("a", "torch.mul", json!([{"ref": "wide"}, 2.0])),
        node("b", "torch.exp", json!([{"ref": "a"}])),
        node("loss", "torch.sum", json!([{"ref": "b"}])),
    ];
    let questions = Arc::new(AtomicUsize::new(0));
    let asked = Arc::clone(&questions);
    let interrupt = Interrupt::new(move || asked.fetch_add(1, Ordering::Relaxed) >= interrupted_at);
    let result = Case::of(&case(&nodes, true)).evaluate_until(&interrupt);
    (result, questions.load(Ordering::Relaxed))
}

#[test]
fn a_loss_ends_soon_after_its_result_is_not_needed() {
    let (result, questions) = evaluate(usize::MAX);
    assert!(result.unwrap().sum.is_finite());
    assert!((3..=40).contains(&questions), "{questions}");
    for at in 0..questions {
        let (result, questions) = evaluate(at);
        let error = result.unwrap_err();
        assert_eq!(error.category, Category::User, "{error}");
        assert!(error.message.contains("its session ended"), "{error}");
        assert_eq!(questions, at + 1, "it goes on");
    }
}
