#![allow(clippy::unwrap_used, reason = "tests")]

use serde::de::DeserializeOwned;
use serde_json::Value;
use trainyard_wire::{
    admin, agents, anthropic, auth, catalogue, checkpoint_search, client, copies, custom_loss, futures, json, limits,
    models, openai, run_metrics, sampling, session_search, sessions, training, uploads, usage, weights,
};

use super::*;

#[test]
fn the_committed_document_is_current() {
    let file = concat!(env!("CARGO_MANIFEST_DIR"), "/../openapi/openapi.json");
    let committed = std::fs::read_to_string(file).unwrap_or_default();
    assert!(committed == json().unwrap(), "openapi/openapi.json is out of date: run `make openapi` and commit it");
}

/// (path, method, operation) of all operations.
fn operations(document: &Value) -> Vec<(String, String, Value)> {
    let mut found = Vec::new();
    for (path, item) in document["paths"].as_object().unwrap() {
        for (method, operation) in item.as_object().unwrap() {
            found.push((path.clone(), method.clone(), operation.clone()));
        }
    }
    found
}

fn of(document: &Value, id: &str) -> Value {
    let mut all = operations(document).into_iter();
    all.find(|(_, _, operation)| operation["operationId"] == id).unwrap().2
}

#[test]
fn every_json_body_has_an_example() {
    let document = serde_json::to_value(document()).unwrap();
    for (path, method, operation) in operations(&document) {
        let bodies = [&operation["requestBody"]["content"], &operation["responses"]["200"]["content"]];
        for body in bodies.iter().filter_map(|content| content.get("application/json")) {
            assert!(
                ["/openapi.json", "/hf/{path}"].contains(&path.as_str()) || body.get("example").is_some(),
                "{method} {path}"
            );
        }
    }
}

#[test]
fn every_refusal_and_stream_has_an_example() {
    let document = serde_json::to_value(document()).unwrap();
    let shared = document["components"]["responses"].as_object().unwrap();
    assert!(shared.values().all(|response| response["content"]["application/json"].get("example").is_some()));
    for (path, method, operation) in operations(&document) {
        let is_compatible =
            operation["tags"].as_array().unwrap().iter().any(|tag| tag == "openai" || tag == "anthropic");
        for (status, response) in operation["responses"].as_object().unwrap() {
            for (kind, content) in response["content"].as_object().into_iter().flatten() {
                let example = content.get("example");
                assert!(!is_compatible || example.is_some(), "{method} {path}: {status} {kind}");
                assert!(kind != "text/csv" || example.is_some(), "{method} {path}: {status} {kind}");
                if kind == "text/event-stream" {
                    serde_json::from_str::<Value>(example.unwrap()["data"].as_str().unwrap()).unwrap();
                }
            }
        }
    }
}

#[test]
fn every_operation_and_parameter_is_described() {
    let document = serde_json::to_value(document()).unwrap();
    let mut ids = std::collections::BTreeSet::new();
    for (path, method, operation) in operations(&document) {
        let summary = operation["summary"].as_str().unwrap();
        assert!(!summary.contains('\n') && !summary.ends_with('.') && summary.len() > 10, "{method} {path}: {summary}");
        assert!(operation["description"].as_str().is_some_and(|text| text.len() >= summary.len()), "{method} {path}");
        assert!(ids.insert(operation["operationId"].as_str().unwrap().to_owned()), "{method} {path}: the id is taken");
        for parameter in operation["parameters"].as_array().into_iter().flatten() {
            assert!(parameter.get("example").is_some(), "{method} {path}: {}", parameter["name"]);
        }
    }
}

#[test]
fn every_reference_leads_somewhere() {
    fn check(node: &Value, document: &Value) {
        if let Some(reference) = node.get("$ref").and_then(Value::as_str) {
            let pointer = reference.strip_prefix('#').unwrap();
            assert!(document.pointer(pointer).is_some(), "{reference}");
        }
        node.as_array().into_iter().flatten().for_each(|item| check(item, document));
        node.as_object().into_iter().flat_map(|object| object.values()).for_each(|value| check(value, document));
    }
    let document = serde_json::to_value(document()).unwrap();
    check(&document, &document);
}

fn reads<T: DeserializeOwned>(example: &Option<Value>) {
    json::parse::<T>(example.as_ref().unwrap().to_string().as_bytes()).unwrap();
}

/// Every example is what the server itself reads or writes.
#[test]
fn the_examples_are_valid() {
    let mut examples = examples::all().unwrap();
    let mut take = |id: &str| examples.remove(id).unwrap();
    macro_rules! pairs {
        ($($id:literal: $request:ty => $response:ty,)*) => {$(
            let example = take($id);
            reads::<$request>(&example.request);
            reads::<$response>(&example.response);
        )*};
    }
    pairs! {
        "client_config": client::ClientConfigRequest => client::ClientConfigResponse,
        "client_dynamic_config": client::ClientConfigRequest => client::ClientDynamicConfigResponse,
        "auth_token": auth::AuthTokenRequest => auth::AuthTokenResponse,
        "telemetry": client::TelemetryRequest => client::TelemetryResponse,
        "agent_session_create": agents::CreateAgentSessionRequest => agents::CreateAgentSessionResponse,
        "agent_rewards": agents::AgentRewardRequest => agents::AgentRewardResponse,
        "create_session": sessions::CreateSessionRequest => sessions::CreateSessionResponse,
        "session_heartbeat": sessions::HeartbeatRequest => sessions::HeartbeatResponse,
        "checkpoints_search": checkpoint_search::CheckpointSearchRequest => checkpoint_search::CheckpointSearchResponse,
        "external_weights_upload_start": uploads::UploadStartRequest => uploads::UploadStartResponse,
        "external_weights_upload_finish": uploads::UploadFinishRequest => uploads::UploadFinishResponse,
        "create_model": models::CreateModelRequest => futures::SubmitResponse,
        "get_info": models::GetInfoRequest => models::GetInfoResponse,
        "create_custom_loss": custom_loss::CreateCustomLossRequest => futures::SubmitResponse,
        "forward_backward": training::ForwardBackwardBody => futures::SubmitResponse,
        "forward": training::ForwardBody => futures::SubmitResponse,
        "optim_step": models::OptimStepRequest => futures::SubmitResponse,
        "save_weights": weights::SaveWeightsRequest => futures::SubmitResponse,
        "save_weights_for_sampler": weights::SaveWeightsForSamplerRequest => futures::SubmitResponse,
        "save_weights_external": weights::SaveWeightsExternalRequest => futures::SubmitResponse,
        "load_weights": weights::LoadWeightsRequest => futures::SubmitResponse,
        "copy_weights": copies::CopyWeightsRequest => copies::CopyWeightsResponse,
        "join_sampling_session":
            sampling::JoinSamplingSessionRequest => sampling::JoinSamplingSessionResponse,
        "weights_info": weights::WeightsInfoRequest => weights::WeightsInfoResponse,
        "create_sampling_session":
            sampling::CreateSamplingSessionRequest => sampling::CreateSamplingSessionResponse,
        "asample": sampling::SampleRequest => futures::SubmitResponse,
        "retrieve_future": futures::RetrieveFutureRequest => Value,
        "retrieve_futures": futures::RetrieveFuturesRequest => futures::RetrieveFuturesResponse,
        "sessions_search": session_search::SessionSearchRequest => session_search::SessionSearchResponse,
        "admin_create_organisation": admin::CreateOrganisationRequest => admin::Organisation,
        "admin_change_organisation": admin::ChangeOrganisationRequest => admin::Organisation,
        "admin_change_limits": limits::ChangeLimitsRequest => limits::LimitsResponse,
        "admin_create_project": admin::CreateProjectRequest => admin::Project,
        "admin_create_user": admin::CreateUserRequest => admin::User,
        "admin_change_user": admin::ChangeUserRequest => admin::User,
        "admin_create_key": admin::CreateKeyRequest => admin::CreateKeyResponse,
        "cancel_future": futures::CancelFutureRequest => futures::CancelFutureResponse,
        "oai_completions": openai::CompletionRequest => openai::CompletionResponse,
        "oai_chat_completions": openai::ChatRequest => openai::ChatResponse,
        "oai_responses": openai::ResponsesRequest => openai::ResponsesResponse,
        "anthropic_messages": anthropic::MessagesRequest => anthropic::MessageResponse,
        "anthropic_count_tokens": anthropic::CountTokensRequest => anthropic::CountTokensResponse,
    }
    reads::<sessions::FinishRequest>(&take("session_finish").request);
    reads::<session_search::SessionProjectRequest>(&take("session_project").request);
    reads::<session_search::TraceExportResponse>(&take("trace_export").response);
    reads::<weights::TtlRequest>(&take("checkpoint_ttl").request);
    reads::<client::ServerCapabilities>(&take("get_server_capabilities").response);
    reads::<agents::AgentSessionsResponse>(&take("agent_sessions").response);
    reads::<agents::AgentSessionResponse>(&take("agent_session").response);
    reads::<agents::TrajectoriesResponse>(&take("agent_trajectories").response);
    reads::<sessions::SessionsResponse>(&take("sessions").response);
    reads::<sessions::SessionResponse>(&take("session").response);
    reads::<sampling::SamplerResponse>(&take("sampler").response);
    reads::<catalogue::TrainingRunsResponse>(&take("training_runs").response);
    reads::<catalogue::TrainingRun>(&take("training_run").response);
    reads::<run_metrics::MetricsResponse>(&take("run_metrics").response);
    reads::<catalogue::CheckpointsResponse>(&take("run_checkpoints").response);
    reads::<catalogue::CheckpointsResponse>(&take("checkpoints").response);
    reads::<uploads::UploadedFileResponse>(&take("upload_file").response);
    reads::<weights::ExternalUrlsResponse>(&take("external_weights_urls").response);
    reads::<openai::ModelsResponse>(&take("oai_models").response);
    for id in ["healthz", "health", "livez"] {
        reads::<client::HealthResponse>(&take(id).response);
    }
    reads::<others::IndexResponse>(&take("index").response);
    reads::<others::ReadyResponse>(&take("readyz").response);
    reads::<auth::JwksResponse>(&take("jwks").response);
    reads::<auth::WhoamiResponse>(&take("whoami").response);
    reads::<admin::OwnKeyResponse>(&take("own_key").response);
    reads::<admin::AuditResponse>(&take("audit").response);
    reads::<admin::OrganisationsResponse>(&take("admin_organisations").response);
    reads::<limits::LimitsResponse>(&take("admin_limits").response);
    reads::<auth::RotateSigningResponse>(&take("admin_rotate_signing").response);
    reads::<admin::ProjectsResponse>(&take("admin_projects").response);
    reads::<admin::UsersResponse>(&take("admin_users").response);
    reads::<admin::KeysResponse>(&take("admin_keys").response);
    reads::<usage::UsageResponse>(&take("billing_usage").response);
    reads::<usage::StorageResponse>(&take("billing_storage").response);
    let csv = take("admin_usage_csv").other.remove("text/csv").unwrap();
    let columns: Vec<usize> = csv.as_str().unwrap().lines().map(|line| line.split(',').count()).collect();
    assert_eq!(columns, [11, 11]);
    assert!(examples.is_empty(), "{examples:?}");
}

#[test]
fn operations_list_the_refusals_that_they_can_answer() {
    let document = serde_json::to_value(document()).unwrap();
    let statuses =
        |id: &str| -> Vec<String> { of(&document, id)["responses"].as_object().unwrap().keys().cloned().collect() };
    assert_eq!(statuses("get_server_capabilities"), ["200", "401", "403", "429", "500", "503"]);
    assert_eq!(statuses("training_run"), ["200", "400", "401", "403", "404", "429", "500", "503"]);
    let asample = ["200", "400", "401", "403", "404", "408", "410", "413", "415", "422", "429", "500", "503"];
    assert_eq!(statuses("asample"), asample);
    assert_eq!(statuses("download"), ["200", "400", "403", "404", "429", "500", "503"]);
    assert_eq!(statuses("healthz"), ["200", "503"]);
}

#[test]
fn bodies_bounds_and_times_have_their_formats() {
    let document = serde_json::to_value(document()).unwrap();
    let binary = serde_json::json!({"type": "string", "format": "binary"});
    for content in [
        &of(&document, "forward_backward")["requestBody"]["content"]["application/x-protobuf"],
        &of(&document, "retrieve_future")["responses"]["200"]["content"]["application/x-protobuf"],
        &of(&document, "download")["responses"]["200"]["content"]["application/octet-stream"],
        &of(&document, "hub")["responses"]["200"]["content"]["application/octet-stream"],
    ] {
        assert_eq!((&content["schema"]["type"], &content["schema"]["format"]), (&binary["type"], &binary["format"]));
    }
    let schemas = &document["components"]["schemas"];
    for (schema, field, key, value) in [
        ("SampleRequest", "seq_id", "minimum", 0),
        ("SampleRequest", "num_samples", "minimum", 1),
        ("OptimStepRequest", "seq_id", "minimum", 1),
        ("SaveWeightsRequest", "ttl_seconds", "minimum", 3_600),
        ("LoraConfig", "rank", "maximum", 4_096),
    ] {
        assert_eq!(schemas[schema]["properties"][field][key].as_f64(), Some(f64::from(value)), "{schema}.{field}");
    }
    for (schema, field) in
        [("Checkpoint", "time"), ("TrainingRun", "last_request_time"), ("ExternalUrlsResponse", "expires")]
    {
        assert_eq!(schemas[schema]["properties"][field]["format"], "date-time", "{schema}.{field}");
    }
    let parameters = of(&document, "checkpoints")["parameters"].clone();
    let limit = parameters.as_array().unwrap().iter().find(|parameter| parameter["name"] == "limit").unwrap();
    assert_eq!((&limit["schema"]["minimum"], &limit["schema"]["maximum"]), (&1.into(), &1_000.into()));
    assert!(document["servers"].as_array().is_some_and(|servers| !servers.is_empty()));
    assert!(schemas["RetrieveFutureResponse"].get("anyOf").is_some());
}
