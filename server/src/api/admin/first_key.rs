//! The first key of a service. From then on every caller needs a key, so this one must be able to create others.

use trainyard_protocol::TenantId;
use trainyard_scheduler::{Role, Scope};

use crate::auth::KeyRequest;
use crate::error::ApiError;
use crate::state::AppState;

/// Reason why the properties of the first key are limited.
const REASON: &str = "once a key exists, every caller needs one; without an admin's key, nobody could create another";

/// Refuses a first key that does not administer the service.
///
/// # Errors
/// [`ApiError::Invalid`] with the property that takes this from it.
pub(super) async fn check(state: &AppState, organisation: &TenantId, key: &KeyRequest) -> Result<(), ApiError> {
    let refused = |text: String| Err(ApiError::Invalid(format!("{text}: {REASON}")));
    if let Some(role) = key.role.filter(|role| *role != Role::Admin) {
        return refused(format!("role: the first key must be an admin's, not \"{}\"", role.as_str()));
    }
    if key.scopes.as_ref().is_some_and(|scopes| !scopes.contains(&Scope::Admin)) {
        return refused("scopes: the first key must have the scope \"admin\"".to_owned());
    }
    let directory = state.scheduler.directory();
    // The key of an organisation or of a user that does not exist is refused when it is created.
    let Some(membership) = directory.membership(organisation, key.user.as_deref()).await? else { return Ok(()) };
    if !membership.operator {
        let name = organisation.as_str();
        return refused(format!("organisation: {name:?} is not an operator, whose admins manage all organisations"));
    }
    match membership.user {
        Some(user) if user.role != Role::Admin || user.disabled_at.is_some() => {
            refused(format!("user: {:?} is not an admin", user.email))
        }
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]
    use axum::body::Body;
    use axum::http::{Method, Request};
    use serde_json::{Value, json};
    use trainyard_scheduler::NewUser;

    use super::*;
    use crate::api::tests::testing::*;

    async fn create(server: &Server, query: &str, body: Value) -> Got {
        let request = Request::builder().method(Method::POST).uri(format!("/api/v1/admin/keys{query}"));
        let request = request.header("x-api-key", KEY).header("content-type", "application/json");
        server.send(request.body(Body::from(body.to_string())).unwrap()).await
    }

    #[tokio::test]
    async fn it_administers_the_service_or_is_refused() {
        let server = Server::start().await;
        let directory = server.state.scheduler.directory();
        let (local, other) = (TenantId::new("local"), TenantId::new("acme"));
        directory.seed_organisations(vec![(local.clone(), true), (other, false)]).await.unwrap();
        let ann = NewUser { email: "ann@here".to_owned(), name: "Ann".to_owned(), role: Role::Member };
        directory.create_user(local, ann).await.unwrap();
        for (query, body, reason) in [
            ("", json!({"name": "a", "role": "member"}), "role: the first key must be an admin's, not \"member\""),
            ("", json!({"name": "a", "role": "read-only"}), "role: the first key must be an admin's"),
            ("", json!({"name": "a", "scopes": ["sample"]}), "scopes: the first key must have the scope \"admin\""),
            ("", json!({"name": "a", "user": "ann@here"}), "user: \"ann@here\" is not an admin"),
            ("?organisation=acme", json!({"name": "a"}), "organisation: \"acme\" is not an operator"),
            ("?organisation=nowhere", json!({"name": "a"}), "does not exist"),
        ] {
            let got = create(&server, query, body.clone()).await;
            let status = got.status.as_u16();
            let text = got.refused(status);
            assert!([400, 404].contains(&status) && text.contains(reason), "{body}: {text}");
            assert!(!server.state.auth.needs_keys().await.unwrap(), "{body}");
        }
        // Without a role it is an admin's, and the server requires it from now on.
        let first = create(&server, "", json!({"name": "first"})).await.json();
        assert_eq!(first["details"]["role"], "admin");
        assert_eq!(create(&server, "", json!({"name": "second"})).await.status, 401);
        let request = Request::post("/api/v1/admin/keys").header("content-type", "application/json");
        let request = request.header("x-api-key", first["key"].as_str().unwrap());
        let second = server.send(request.body(Body::from(r#"{"name": "second"}"#)).unwrap()).await.json();
        assert_eq!(second["details"]["role"], "member");
    }
}
