//! Summaries, descriptions, and examples of parameters.

use serde_json::{Value, json};
use utoipa::openapi::path::{Operation, ParameterBuilder};
use utoipa::openapi::{OpenApi, RefOr};

use super::operations::operations;

/// Gives every operation a summary of one sentence beside its whole text, and every parameter an example.
pub(super) fn complete(document: &mut OpenApi) {
    for operation in operations(document) {
        describe(operation);
        let id = operation.operation_id.clone().unwrap_or_default();
        for parameter in operation.parameters.iter_mut().flatten() {
            if let RefOr::T(parameter) = parameter
                && let Some(example) = example(&id, &parameter.name)
            {
                *parameter = ParameterBuilder::from(std::mem::take(parameter)).example(Some(example)).build();
            }
        }
    }
}

/// Joins the lines of comments, and sets the summary: utoipa would use the whole first paragraph.
fn describe(operation: &mut Operation) {
    let paragraphs = [operation.summary.take(), operation.description.take()];
    let text = paragraphs.into_iter().flatten().collect::<Vec<_>>().join("\n\n");
    let joined: Vec<String> = text.split("\n\n").map(|paragraph| paragraph.replace('\n', " ")).collect();
    let text = joined.join("\n\n");
    let sentence = text.split(". ").next().unwrap_or(&text).split("\n\n").next().unwrap_or(&text);
    operation.summary = Some(sentence.trim_end_matches('.').to_owned());
    operation.description = Some(text);
}

/// Returns an example of a parameter by its name, about the same objects as the examples of bodies.
fn example(operation: &str, name: &str) -> Option<Value> {
    let of_metrics = ["run_metrics", "metrics_export"].contains(&operation);
    let exported = ["download", "external_weights_urls"].contains(&operation);
    let value = match name {
        "access_scope" => json!("owned"),
        "day" => json!("2026-11-22"),
        "email" => json!("ann@acme.example"),
        "ending_before" => json!("2026-11-23T00:00:00Z"),
        "event_type" => json!("checkpoints"),
        "expires" => json!(1_767_326_645),
        "file" => json!(if operation == "docs_file" { "swagger-ui.css" } else { "adapter_config.json" }),
        "key_id" => json!(4_503_599_627_370_496_u64),
        "kind" if of_metrics => json!("forward_backward"),
        "by" => json!("step"),
        "format" => json!("jsonl"),
        "from_step" => json!(0),
        "from_time" => json!("2026-01-02T00:00:00Z"),
        "metrics" => json!("loss:sum,clock_cycle:unique"),
        "points" => json!(500),
        "to_step" => json!(1000),
        "to_time" => json!("2126-01-02T00:00:00Z"),
        "kind" => json!(if exported { "external_weights" } else { "weights" }),
        "limit" => json!(20),
        "name" => json!(if exported { "export" } else { "step-100" }),
        "offset" => json!(0),
        "organisation" => json!("acme"),
        "path" => json!("HuggingFaceTB/SmolLM2-135M-Instruct/resolve/main/tokenizer.json"),
        "project_id" => json!("summaries"),
        "run_id" => json!("0199c5a4-5d5e-7c1e-8f1a-2b3c4d5e6f70:train:0"),
        "sampler_id" => json!("0199c5a4-5d5e-7c1e-8f1a-2b3c4d5e6f70:sample:0"),
        "session_id" | "agent_session_id" => json!("0199c5a4-5d5e-7c1e-8f1a-2b3c4d5e6f70"),
        "signature" => json!("5f70c1ab"),
        "starting_on" => json!("2026-11-22T00:00:00Z"),
        "tenant" => json!("local"),
        "upload_id" => json!("0199c5a4-8f10-7c1e-8f1a-6f70a1b2c3d4"),
        "x-idempotency-key" => json!("4f1c2d3e-0001"),
        "x-tinker-weights-access-token" => json!("tml-Zx3qN0t4V4l1dK3yF0rAnyS3rv3rJustAnExampl3xYz"),
        _ => return None,
    };
    Some(value)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_sentence_is_the_summary() {
        let mut operation = Operation::new();
        operation.summary = Some("Saves weights and\noptimizer state. Needs a name.".to_owned());
        operation.description = Some("More of\nit.".to_owned());
        describe(&mut operation);
        assert_eq!(operation.summary.as_deref(), Some("Saves weights and optimizer state"));
        assert_eq!(
            operation.description.as_deref(),
            Some("Saves weights and optimizer state. Needs a name.\n\nMore of it.")
        );
    }
}
