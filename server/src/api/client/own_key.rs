//! Handler of `GET auth/apikey/me`.

use trainyard_wire::admin::{OwnKeyDetails, OwnKeyOrganisation, OwnKeyResponse, OwnKeyUser};

use crate::api::request::refusals::Refusals;
use crate::api::request::respond::{Answer, Reply};
use crate::auth::Caller;

/// Describes the API key of the call and its owner.
#[utoipa::path(
    get, path = "/api/v1/auth/apikey/me", tag = "client",
    responses((status = 200, description = "success", body = OwnKeyResponse), Refusals),
)]
pub(in crate::api) async fn own_key(Caller(caller): Caller) -> Reply<OwnKeyResponse> {
    let (key_id, name, note, email) = match caller.key.as_deref() {
        Some(found) => {
            let email = found.user.as_ref().map(|user| user.email.clone());
            (found.key.id, found.key.name.clone(), found.key.note.clone(), email.unwrap_or_default())
        }
        None => (0, caller.name, String::new(), String::new()),
    };
    let details = OwnKeyDetails {
        org_details: OwnKeyOrganisation { name: caller.tenant.to_string() },
        user_details: OwnKeyUser { email },
    };
    Ok(Answer(OwnKeyResponse { key_id, name, note, details }))
}
