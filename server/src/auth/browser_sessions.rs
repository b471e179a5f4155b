//! Beginning, finding and ending the sessions of browsers.

use axum::http::HeaderMap;
use trainyard_http::peer::{self, Peer, is_forwarded};

use super::authenticator::{Authenticator, FORWARDED};
use super::browser;
use super::given::is_token;
use super::principal::Principal;
use super::tokens::{self, Accepted, Purpose};
use crate::error::ApiError;

impl Authenticator {
    /// Begins a browser's session; returns the token for its cookie and its holder. A server without keys needs none,
    /// since only this machine may call it.
    ///
    /// # Errors
    /// Fails if the key is not valid, or is missing and required, or if its sender has to wait.
    pub(crate) async fn begin_session(
        &self,
        headers: &HeaderMap,
        key: Option<&str>,
        peer: Option<Peer>,
    ) -> Result<(String, Principal), ApiError> {
        let is_local = !self.needs_keys().await?;
        let holder = match key {
            _ if is_local => {
                if !self.keys.trusts_forwarded() && (is_forwarded(headers) || !browser::names_this_machine(headers)) {
                    return Err(ApiError::Forbidden(FORWARDED));
                }
                Principal::local(!self.keys.trusts_forwarded())
            }
            Some(key) => match self.caller_from(key, headers, peer).await {
                Ok(holder) => holder,
                Err(error) => {
                    self.report_login(key, &error, peer::describe(peer, headers)).await;
                    return Err(error);
                }
            },
            None => return Err(ApiError::Unauthorized("log in with an API key")),
        };
        let token = tokens::make(&self.signing, &holder, Purpose::Session, browser::LIFETIME, self.clock.now()).await?;
        Ok((token, holder))
    }

    /// Finds the valid session of a browser's request, and its holder.
    ///
    /// # Errors
    /// Fails if the store can't be read.
    pub(crate) async fn current_session(&self, headers: &HeaderMap) -> Result<Option<(String, Principal)>, ApiError> {
        let Some(token) = browser::session(headers).filter(|token| is_token(token)) else { return Ok(None) };
        match self.bearer_of(token).await {
            Ok(holder) => Ok(Some((token.to_owned(), holder))),
            Err(ApiError::Unauthorized(_) | ApiError::Token(_)) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Ends the session of a request of a browser: every process refuses its token from now on. Nothing happens without
    /// one.
    ///
    /// # Errors
    ///
    /// Fails if the store can be neither read nor written.
    pub(crate) async fn end_session(&self, headers: &HeaderMap) -> Result<(), ApiError> {
        let Some(token) = browser::session(headers).filter(|token| is_token(token)) else { return Ok(()) };
        match self.verify(token).await {
            Ok(Accepted { session: Some(session), expires_at, .. }) => Ok(self.stored.end(session, expires_at).await?),
            Ok(_) | Err(ApiError::Unauthorized(_) | ApiError::Token(_)) => Ok(()),
            Err(error) => Err(error),
        }
    }
}
