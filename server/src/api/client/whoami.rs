//! Handler of `GET auth/whoami`.

use trainyard_wire::auth::{WhoamiCredential, WhoamiKey, WhoamiResponse, WhoamiUser};
use trainyard_wire::timestamp::rfc3339;

use crate::api::request::refusals::Refusals;
use crate::api::request::respond::{Answer, Reply};
use crate::auth::{Caller, Credential, Principal};

/// Returns who the caller is and what it may do.
#[utoipa::path(
    get, path = "/api/v1/auth/whoami", tag = "client",
    responses((status = 200, description = "success", body = WhoamiResponse), Refusals),
)]
pub(in crate::api) async fn whoami(Caller(caller): Caller) -> Reply<WhoamiResponse> {
    let subject = caller.subject();
    let Principal { tenant, credential, key, user, email, role, scopes, operator, expires_at, .. } = caller;
    let (id, name) = user.map_or((None, String::new()), |user| (Some(user.id), user.name));
    let credential = match credential {
        Credential::None => WhoamiCredential::None,
        Credential::Seed(_) => WhoamiCredential::ConfiguredKey,
        // The key of an agent session is refused before.
        Credential::Key | Credential::Agent(_) => WhoamiCredential::Key,
        Credential::Issuer { .. } => WhoamiCredential::Issuer,
    };
    Ok(Answer(WhoamiResponse {
        subject,
        organisation: tenant.to_string(),
        operator,
        user: email.map(|email| WhoamiUser { id, email, name }),
        role: role.as_str().to_owned(),
        scopes: scopes.into_iter().map(|scope| scope.as_str().to_owned()).collect(),
        credential,
        key: key.map(|found| WhoamiKey { id: found.key.id, name: found.key.name.clone() }),
        expires_at: expires_at.map(|at| rfc3339(at.as_millis())),
    }))
}
