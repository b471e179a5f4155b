#![allow(clippy::unwrap_used, clippy::panic, reason = "tests")]

use std::collections::BTreeSet;

use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use super::super::{
    admin, anthropic, checkpoint_search, client, futures, openai, sampling, session_search, sessions, weights,
};
use super::*;

/// Reads a body, and says what is wrong with it.
type Read = fn(&Value) -> Result<(), String>;

fn read<T: DeserializeOwned>(body: &Value) -> Result<(), String> {
    json::parse::<T>(body.to_string().as_bytes()).map(drop).map_err(|error| error.message)
}

/// A body that has the list, who reads it, and an element that is no text.
fn bodies(field: &str) -> Vec<(Value, Read, Value)> {
    let text = json!("a");
    let message = json!({"role": "user", "content": "a"});
    let chat = |name: &str| {
        let mut body = json!({"model": "m", "messages": [message], "max_tokens": 1});
        body[name] = json!([]);
        body
    };
    let (openai, anthropic): (Read, Read) = (read::<openai::ChatRequest>, read::<anthropic::MessagesRequest>);
    match field {
        "retrieved_request_ids" => {
            let target = json!({"sampling_session_id": "s"});
            vec![(
                json!({"target": target, "retrieved_request_ids": []}),
                read::<futures::RetrieveFuturesRequest>,
                text,
            )]
        }
        "project_ids" => vec![
            (json!({"project_ids": []}), read::<session_search::SessionSearchRequest>, text.clone()),
            (json!({"project_ids": []}), read::<checkpoint_search::CheckpointSearchRequest>, text),
        ],
        "base_models" => vec![(json!({"base_models": []}), read::<checkpoint_search::CheckpointSearchRequest>, text)],
        "owner_urns" => vec![(
            json!({"owner": {"type": "user", "owner_urns": []}}),
            read::<session_search::SessionSearchRequest>,
            text,
        )],
        "age_encryption_recipients" => {
            let body = json!({"model_id": "r", "seq_id": 1, "path": "a", "age_encryption_recipients": []});
            vec![(body, read::<weights::SaveWeightsExternalRequest>, text)]
        }
        "tags" => {
            let body = json!({"tags": [], "user_metadata": {}, "sdk_version": "1", "type": "create_session"});
            // The texts together have a bound too, which is lower.
            vec![(body, read::<sessions::CreateSessionRequest>, json!("a"))]
        }
        "scopes" => vec![(json!({"name": "k", "scopes": []}), read::<admin::CreateKeyRequest>, text)],
        "modalities" => vec![(chat(field), openai, text)],
        "include" => {
            vec![(json!({"model": "m", "input": "a", "include": []}), read::<openai::ResponsesRequest>, text)]
        }
        "stop_sequences" => vec![(chat(field), anthropic, text)],
        "statuses" => {
            let active = json!({"type": "active"});
            vec![(json!({"statuses": []}), read::<session_search::SessionSearchRequest>, active)]
        }
        "reasons" => {
            let status = json!([{"type": "client_finished", "reasons": []}]);
            vec![(json!({"statuses": status}), read::<session_search::SessionSearchRequest>, json!("success"))]
        }
        "events" => vec![(json!({"events": []}), read::<client::TelemetryRequest>, json!({}))],
        "messages" => vec![(chat(field), openai, message.clone()), (chat(field), anthropic, message)],
        "tools" => {
            vec![(chat(field), openai, json!({"name": "t"})), (chat(field), anthropic, json!({"name": "t"}))]
        }
        "tool_calls" => {
            let body = json!({"model": "m", "messages": [{"role": "assistant", "tool_calls": []}]});
            vec![(body, openai, json!({"id": "c", "function": {"name": "f", "arguments": "{}"}}))]
        }
        "annotations" => {
            let body = json!({"model": "m", "messages": [{"role": "assistant", "annotations": []}]});
            vec![(body, openai, json!({}))]
        }
        "mcp_servers" => vec![(chat(field), anthropic, json!({}))],
        other => panic!("{other} has no body here"),
    }
}

/// The same body with this list.
fn with(body: &Value, field: &str, list: Value) -> Value {
    fn place<'a>(value: &'a mut Value, field: &str) -> Option<&'a mut Value> {
        match value {
            Value::Object(entries) => entries
                .iter_mut()
                .find_map(|(name, value)| if name == field { Some(value) } else { place(value, field) }),
            Value::Array(elements) => elements.iter_mut().find_map(|value| place(value, field)),
            _ => None,
        }
    }
    let mut body = body.clone();
    *place(&mut body, field).unwrap() = list;
    body
}

#[test]
fn every_list_has_its_bound() {
    let texts = TEXTS.iter().map(|(field, most, _)| (*field, *most));
    for (field, most) in texts.chain(OTHERS.iter().copied()) {
        for (body, read, element) in bodies(field) {
            let list = |count| with(&body, field, Value::Array(vec![element.clone(); count]));
            read(&list(most)).unwrap_or_else(|error| panic!("{field}: {error}"));
            let error = read(&list(most + 1)).unwrap_err();
            assert!(error.contains(&format!("{} ", most + 1)), "{field}: {error}");
            assert!(error.ends_with(&format!(", at most {most} are allowed")), "{field}: {error}");
        }
    }
}

#[test]
fn every_text_has_its_bound() {
    for (field, _, bytes) in TEXTS {
        for (body, read, _) in bodies(field) {
            read(&with(&body, field, json!(["a".repeat(*bytes)]))).unwrap_or_else(|error| panic!("{field}: {error}"));
            let error = read(&with(&body, field, json!(["a", "b".repeat(bytes + 1)]))).unwrap_err();
            assert!(error.ends_with(&format!("{} bytes, at most {bytes} are allowed", bytes + 1)), "{error}");
            let error = read(&with(&body, field, json!([1]))).unwrap_err();
            assert!(error.ends_with("invalid type: integer `1`, expected a string"), "{error}");
        }
    }
}

#[test]
fn the_variables_of_a_template_have_a_bound() {
    let with = |count: usize| {
        let variables: serde_json::Map<_, _> = (0..count).map(|at| (at.to_string(), json!(1))).collect();
        let messages = json!([{"role": "user", "content": "a"}]);
        read::<openai::ChatRequest>(&json!({"model": "m", "messages": messages, "chat_template_kwargs": variables}))
    };
    with(MAX_VARIABLES).unwrap();
    assert!(with(MAX_VARIABLES + 1).unwrap_err().ends_with("257 variables, at most 256 are allowed"));
}

#[test]
fn the_parts_of_a_message_have_a_bound() {
    let part = json!({"type": "text", "text": "a"});
    let readers: [Read; 2] = [read::<openai::ChatRequest>, read::<anthropic::MessagesRequest>];
    for read in readers {
        let body =
            |content: Value| json!({"model": "m", "messages": [{"role": "user", "content": content}], "max_tokens": 1});
        for good in [json!("a"), json!([]), json!(vec![&part; MAX_CONTENT_PARTS])] {
            read(&body(good)).unwrap();
        }
        for (bad, reason) in [
            (json!(vec![&part; MAX_CONTENT_PARTS + 1]), "16385 parts, at most 16384 are allowed"),
            (json!(7), "invalid type: integer `7`, expected a string or a list of parts with a type"),
            (json!([{"text": "a"}]), "content[0]: missing field `type`"),
        ] {
            let error = read(&body(bad)).unwrap_err();
            assert!(error.ends_with(reason), "{error}");
        }
    }
}

#[test]
fn the_items_of_a_conversation_have_a_bound() {
    let item = json!({"role": "user", "content": "a"});
    let body = |input: Value| json!({"model": "m", "input": input});
    for good in [json!("a"), json!([]), json!(vec![&item; MAX_MESSAGES])] {
        read::<openai::ResponsesRequest>(&body(good)).unwrap();
    }
    let part = json!({"type": "input_text", "text": "a"});
    let parts = |count: usize| json!([{"role": "user", "content": vec![&part; count]}]);
    for (bad, reason) in [
        (json!(vec![&item; MAX_MESSAGES + 1]), "16385 items, at most 16384 are allowed"),
        (json!(7), "invalid type: integer `7`, expected a string or a list of items with a type"),
        (parts(MAX_CONTENT_PARTS + 1), "16385 parts, at most 16384 are allowed"),
    ] {
        let error = read::<openai::ResponsesRequest>(&body(bad)).unwrap_err();
        assert!(error.ends_with(reason), "{error}");
    }
    let entries: serde_json::Map<String, Value> = (0..17).map(|at| (at.to_string(), json!("a"))).collect();
    let error =
        read::<openai::ResponsesRequest>(&json!({"model": "m", "input": "a", "metadata": entries})).unwrap_err();
    assert!(error.ends_with("17 entries, at most 16 are allowed"), "{error}");
}

/// A field of a request body that is a list or a map is in the table, or has a reader of its own.
#[test]
fn no_list_of_a_request_is_without_a_reader() {
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let mut unbounded = BTreeSet::new();
    for file in [
        "admin.rs",
        "auth.rs",
        "checkpoint_search.rs",
        "client.rs",
        "copies.rs",
        "custom_loss.rs",
        "futures.rs",
        "models.rs",
        "session_search.rs",
        "sessions.rs",
        "training.rs",
        "uploads.rs",
        "weights.rs",
        "anthropic/request.rs",
        "openai/chat.rs",
        "openai/completions.rs",
        "openai/responses.rs",
        "openai/responses_input.rs",
        "sampling/request.rs",
    ] {
        let text = std::fs::read_to_string(folder.join(file)).unwrap();
        let mut is_request = false;
        let mut attributes = String::new();
        for line in text.lines().map(str::trim) {
            if let Some(name) = line.strip_prefix("pub struct ").or_else(|| line.strip_prefix("pub enum ")) {
                is_request = !name.starts_with("Completion") || name.starts_with("CompletionRequest");
                is_request &=
                    (!name.contains("Response") || name.contains("ResponsesRequest")) && !name.contains("Summary");
            }
            if line.starts_with("#[") {
                attributes.push_str(line);
                continue;
            }
            let is_list =
                [": Vec<", ": Option<Vec<", ": BTreeMap<", ": Option<BTreeMap<", ": Metadata", ": Option<Metadata"];
            let is_list = is_list.iter().any(|kind| line.contains(kind));
            if is_request && is_list && line.ends_with(',') && !attributes.contains("deserialize_with") {
                unbounded.insert(format!("{file}: {line}"));
            }
            if !line.starts_with("///") {
                attributes.clear();
            }
        }
    }
    // Answers, by names that do not say so, and a function's parameter.
    let others = [
        "admin.rs: pub scopes: Option<Vec<String>>,",
        "admin.rs: pub event_details: BTreeMap<String, Value>,",
        "client.rs: pub supported_models: Vec<SupportedModel>,",
        "weights.rs: user_metadata: BTreeMap<String, String>,",
    ];
    unbounded.retain(|found| !others.contains(&found.as_str()));
    assert_eq!(unbounded, BTreeSet::new());
}

#[test]
fn a_stop_is_a_text_texts_or_tokens() {
    let stop = |stop: Value| {
        let mut body =
            json!({"sampling_session_id": "s:sample:0", "seq_id": 0, "num_samples": 1, "prompt": {"chunks": []}});
        body["sampling_params"] = json!({"stop": stop});
        read::<sampling::SampleRequest>(&body).err()
    };
    for good in [json!("a"), json!(["a", "b"]), json!([1, 2]), json!([]), json!(null), json!(vec!["a"; 64])] {
        assert_eq!(stop(good.clone()), None, "{good}");
    }
    for (bad, text) in [
        (json!(vec!["a"; 65]), "65 strings, at most 64 are allowed"),
        (json!(vec![1; 1_025]), "1025 token ids, at most 1024 are allowed"),
        (json!([1, "a"]), "invalid type: string \"a\", expected a token id"),
        (json!(["a", 1]), "invalid type: integer `1`, expected a string"),
        (json!(7), "invalid type: integer `7`, expected a string, a list of strings or a list of token ids"),
        (json!([1.5]), "invalid type: floating point `1.5`, expected a string or a token id"),
    ] {
        let error = stop(bad.clone()).unwrap();
        assert!(error.ends_with(text), "{error}");
    }
}
