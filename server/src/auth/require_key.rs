//! The check of every request's key, and the callers that handlers get from it.

use std::sync::Arc;

use axum::extract::{FromRequestParts, MatchedPath, Request, State};
use axum::http::request::Parts;
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use trainyard_http::peer::{self, Peer};
use trainyard_protocol::TenantId;

use super::authenticator::Authenticator;
use super::in_flight;
use super::keyless::is_compatible;
use super::needs::needed;
use super::principal::{Credential, Principal};
use crate::endpoint::Endpoint;
use crate::error::ApiError;

/// Refuses a request without a valid key, or with one that does not allow it, and notes the caller for [`Tenant`] and
/// [`Caller`].
pub async fn require_key(State(auth): State<Arc<Authenticator>>, mut request: Request, next: Next) -> Response {
    let peer = request.extensions().get::<Peer>().copied();
    let found = match auth.authenticate(request.method(), request.headers(), peer).await {
        Err(refusal) => auth.without_key(request.uri().path(), request.headers(), refusal).await,
        found => found,
    };
    let (given, principal) = match found {
        Ok(found) => found,
        Err(error) => return error.into_response(),
    };
    let path = request.extensions().get::<MatchedPath>().map_or(request.uri().path(), MatchedPath::as_str);
    if let Credential::Agent(session) = &principal.credential
        && !is_compatible(path)
    {
        let text = format!("agent session {session}: its key serves only the OpenAI and Anthropic APIs below /v1");
        return ApiError::NotAllowed(text).into_response();
    }
    let endpoint = request.extensions().get::<&'static Endpoint>();
    let scopes = endpoint.map_or_else(|| needed(request.method(), path), |endpoint| endpoint.needs.scopes());
    if !scopes.is_empty() && !scopes.iter().any(|scope| principal.scopes.contains(scope)) {
        let names: Vec<&str> = scopes.iter().map(|scope| scope.as_str()).collect();
        let text = format!("the API key does not allow this: it needs the scope {}", names.join(" or "));
        return ApiError::NotAllowed(text).into_response();
    }
    let address = peer::describe(peer, request.headers());
    let (tenant, actor) = (principal.tenant.clone(), principal.actor(address));
    // Without keys nobody has access to lose; thousands of samples may be in flight.
    let is_watched = !matches!(principal.credential, Credential::None);
    request.extensions_mut().insert(tenant.clone());
    request.extensions_mut().insert(principal);
    let answer = actor.scope(next.run(request));
    let mut response = match is_watched {
        true => in_flight::watched(in_flight::InFlightCaller { auth, given, tenant: tenant.clone() }, answer).await,
        false => answer.await,
    };
    // For the log.
    response.extensions_mut().insert(tenant);
    response
}

/// The tenant that [`require_key`] found.
pub struct Tenant(pub TenantId);

impl<S: Sync> FromRequestParts<S> for Tenant {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, _state: &S) -> Result<Self, ApiError> {
        parts.extensions.get::<TenantId>().cloned().map(Self).ok_or_else(|| unchecked(parts))
    }
}

/// The caller that [`require_key`] found.
pub struct Caller(pub Principal);

impl<S: Sync> FromRequestParts<S> for Caller {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, _state: &S) -> Result<Self, ApiError> {
        parts.extensions.get::<Principal>().cloned().map(Self).ok_or_else(|| unchecked(parts))
    }
}

fn unchecked(parts: &Parts) -> ApiError {
    ApiError::Internal(format!("{} is served without a key check", parts.uri.path()))
}
