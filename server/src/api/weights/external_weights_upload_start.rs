//! Handler of `POST external_weights_upload_start`.

use axum::extract::State;
use axum::http::HeaderMap;
use trainyard_scheduler::NewUpload;
use trainyard_wire::timestamp::rfc3339;
use trainyard_wire::uploads::{UploadStartRequest, UploadStartResponse};

use crate::api::catalogue::download::encode_component;
use crate::api::catalogue::external_weights_urls::base_url;
use crate::api::request::body::JsonBody;
use crate::api::request::refusals::Refusals;
use crate::api::request::respond::{Answer, Reply};
use crate::auth::Tenant;
use crate::signed_urls::Grant;
use crate::state::AppState;

/// Names of an adapter's files.
pub(super) const CONFIG_FILE: &str = "adapter_config.json";
pub(super) const TENSORS_FILE: &str = "adapter_model.safetensors";

/// Starts the upload of an adapter in PEFT's format. The client sends both files to the URLs of the response, and
/// `external_weights_upload_finish` creates a checkpoint from them.
#[utoipa::path(
    post, path = "/api/v1/external_weights_upload_start", tag = "weights", request_body = UploadStartRequest,
    responses((status = 200, description = "started", body = UploadStartResponse), Refusals),
)]
pub(in crate::api) async fn external_weights_upload_start(
    State(state): State<AppState>,
    Tenant(tenant): Tenant,
    headers: HeaderMap,
    JsonBody(mut request): JsonBody<UploadStartRequest>,
) -> Reply<UploadStartResponse> {
    state.disks.admit()?;
    request.base_model = state.base_name(request.base_model);
    state.require_model(&request.base_model)?;
    let spec = request.spec(|| (state.random)())?;
    let base = base_url(&state, &headers)?;
    let new = NewUpload {
        spec,
        project_id: request.destination_project_id,
        files: [CONFIG_FILE, TENSORS_FILE].map(str::to_owned).to_vec(),
    };
    let upload = state.scheduler.start_upload(&tenant, new, state.limits.upload_lifetime).await?;
    let expires = upload.expires_at.as_millis() / 1_000;
    let url = |file: &String| {
        let grant = Grant { tenant: &tenant, object: &format!("upload:{}", upload.id), file, expires };
        format!(
            "{base}/api/v1/uploads/{}/{}?tenant={}&expires={expires}&signature={}",
            upload.id,
            encode_component(file),
            encode_component(tenant.as_str()),
            state.signer.sign(grant),
        )
    };
    let urls = upload.files.keys().map(|file| (file.clone(), url(file))).collect();
    Ok(Answer(UploadStartResponse { upload_id: upload.id.to_string(), urls, expires: rfc3339(expires * 1_000) }))
}
