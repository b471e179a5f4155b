//! Beginning, finding and ending the sessions of browsers.

use axum::http::HeaderMap;

use super::tokens::{self, Accepted, Purpose};
use super::{Authenticator, FORWARDED, Principal, UNKNOWN, browser, is_token, seed};
use crate::error::ApiError;
use crate::peer::is_forwarded;

impl Authenticator {
    /// Begins a browser's session; returns the token for its cookie and its holder. A server without keys needs none,
    /// since only this machine may call it.
    ///
    /// # Errors
    /// When the key is not valid, or is missing and required.
    pub(crate) async fn begin_session(
        &self,
        headers: &HeaderMap,
        key: Option<&str>,
    ) -> Result<(String, Principal), ApiError> {
        let is_local = !self.needs_keys().await?;
        let holder = match key {
            _ if is_local => {
                if !self.keys.trusts_forwarded() && (is_forwarded(headers) || !browser::names_this_machine(headers)) {
                    return Err(ApiError::Forbidden(FORWARDED));
                }
                Principal::local(!self.keys.trusts_forwarded())
            }
            Some(key) if is_token(key) => self.bearer_of(key).await?,
            Some(key) if seed::is_well_formed(key) => self.holder(key).await?,
            Some(_) => return Err(ApiError::Unauthorized(UNKNOWN)),
            None => return Err(ApiError::Unauthorized("log in with an API key")),
        };
        let token =
            tokens::make(&self.signing, &holder, (Purpose::Session, browser::LIFETIME), self.clock.now()).await?;
        Ok((token, holder))
    }

    /// Finds the valid session of a browser's request, and its holder.
    ///
    /// # Errors
    /// When the store can't be read.
    pub(crate) async fn current_session(&self, headers: &HeaderMap) -> Result<Option<(String, Principal)>, ApiError> {
        let Some(token) = browser::session(headers).filter(|token| is_token(token)) else { return Ok(None) };
        match self.bearer_of(token).await {
            Ok(holder) => Ok(Some((token.to_owned(), holder))),
            Err(ApiError::Unauthorized(_) | ApiError::Token(_)) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Ends the session of a request of a browser: every process refuses its token from now on. Nothing happens without one.
    ///
    /// # Errors
    /// When the store can be neither read nor written.
    pub(crate) async fn end_session(&self, headers: &HeaderMap) -> Result<(), ApiError> {
        let Some(token) = browser::session(headers).filter(|token| is_token(token)) else { return Ok(()) };
        match self.verify(token).await {
            Ok(Accepted { session: Some(session), expires_at, .. }) => Ok(self.stored.end(session, expires_at).await?),
            Ok(_) | Err(ApiError::Unauthorized(_) | ApiError::Token(_)) => Ok(()),
            Err(error) => Err(error),
        }
    }
}
