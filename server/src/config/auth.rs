//! The table `[auth]` of the file: tokens, and the external issuer whose tokens are accepted.

use std::collections::BTreeMap;
use std::ops::RangeInclusive;
use std::time::Duration;

use serde::Deserialize;
use trainyard_scheduler::Role;

use super::ConfigError;
use crate::auth::{IssuerSettings, KeySource, Named, TokenPolicy, is_protected};

/// The default claim of a user's email.
const EMAIL: &str = "email";

#[derive(Clone, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct FileAuth {
    token_minutes: Option<u64>,
    signing_key_days: Option<u64>,
    exchange: Option<bool>,
    issuer: Option<FileIssuer>,
}

#[derive(Clone, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct FileIssuer {
    url: String,
    jwks_url: Option<String>,
    audience: String,
    organisation: Option<String>,
    organisation_claim: Option<String>,
    user_claim: Option<String>,
    accept_unverified_emails: bool,
    role_claim: Option<String>,
    roles: BTreeMap<String, String>,
    default_role: Option<String>,
    jwks_refresh_seconds: Option<u64>,
    jwks_stale_minutes: Option<u64>,
}

impl FileAuth {
    /// Reads the lifetimes of tokens and of the keys that sign them.
    pub(super) fn policy(&self) -> Result<TokenPolicy, ConfigError> {
        let default = TokenPolicy::default();
        // Clients renew a token that is left a minute.
        let minutes = within("token_minutes", self.token_minutes, 2..=1_440)?;
        let days = within("signing_key_days", self.signing_key_days, 1..=365)?;
        Ok(TokenPolicy {
            lifetime: minutes.map_or(default.lifetime, |minutes| Duration::from_secs(minutes * 60)),
            key_age: days.map_or(default.key_age, |days| Duration::from_secs(days * 86_400)),
            offered: self.exchange.unwrap_or(default.offered),
        })
    }

    /// Reads the external issuer whose tokens are accepted, if there is one.
    pub(super) fn issuer(&self) -> Result<Option<IssuerSettings>, ConfigError> {
        self.issuer.as_ref().map(FileIssuer::settings).transpose()
    }
}

fn within(name: &str, given: Option<u64>, range: RangeInclusive<u64>) -> Result<Option<u64>, ConfigError> {
    match given {
        Some(value) if !range.contains(&value) => {
            Err(ConfigError::Auth(format!("{name} must be from {} to {}", range.start(), range.end())))
        }
        given => Ok(given),
    }
}

impl FileIssuer {
    fn settings(&self) -> Result<IssuerSettings, ConfigError> {
        let wrong = |text: String| ConfigError::Auth(format!("issuer: {text}"));
        for (name, text) in [("url", &self.url), ("audience", &self.audience)] {
            if text.is_empty() {
                return Err(wrong(format!("{name} is missing")));
            }
        }
        let (name, fetched) = match &self.jwks_url {
            Some(url) => ("jwks_url", url),
            None => ("url", &self.url),
        };
        if !is_protected(fetched) {
            let text = "must be https://…, or http:// on this machine: its keys decide who may call";
            return Err(wrong(format!("{name} {text}")));
        }
        let organisation = match (&self.organisation, &self.organisation_claim) {
            (Some(name), None) if !name.is_empty() => Named::Fixed(name.clone()),
            (None, Some(claim)) if !claim.is_empty() => Named::Claim(claim.clone()),
            _ => return Err(wrong("must have either organisation or organisation_claim".to_owned())),
        };
        let role = |text: &String| {
            let known = || wrong(format!("invalid role {text:?}: expected admin, member or read-only"));
            Role::from_text(text).ok_or_else(known)
        };
        let roles = self.roles.iter().map(|(name, text)| Ok((name.clone(), role(text)?)));
        let roles: BTreeMap<String, Role> = roles.collect::<Result<_, ConfigError>>()?;
        let default_role = self.default_role.as_ref().map(role).transpose()?;
        if self.role_claim.is_some() == roles.is_empty() {
            return Err(wrong("role_claim and roles must be set together".to_owned()));
        }
        if roles.is_empty() && default_role.is_none() {
            return Err(wrong(
                "must have default_role, or role_claim and roles; otherwise no token would be accepted".to_owned(),
            ));
        }
        let refresh = within("issuer: jwks_refresh_seconds", self.jwks_refresh_seconds, 1..=3_600)?;
        let stale = within("issuer: jwks_stale_minutes", self.jwks_stale_minutes, 1..=1_440)?;
        Ok(IssuerSettings {
            issuer: self.url.clone(),
            keys: self.jwks_url.clone().map_or(KeySource::Discovery, KeySource::Keys),
            audience: self.audience.clone(),
            organisation,
            user_claim: self.user_claim.clone().unwrap_or_else(|| EMAIL.to_owned()),
            accepts_unverified_emails: self.accept_unverified_emails,
            role_claim: self.role_claim.clone(),
            roles,
            default_role,
            keys_refresh: refresh.map_or(IssuerSettings::KEYS_REFRESH, Duration::from_secs),
            keys_stale: stale.map_or(IssuerSettings::KEYS_STALE, |minutes| Duration::from_secs(minutes * 60)),
        })
    }
}

#[cfg(test)]
#[path = "auth_tests.rs"]
mod tests;
