//! `POST messages`: from its body to settings.

use trainyard_wire::anthropic::MessagesRequest;

use super::super::settings::{Settings, count, stop_strings, top_k, unsupported, within};
use super::prompt::{Parts, forced_calls};
use crate::error::ChatError;

/// Returns the settings of a request, checked.
///
/// # Errors
/// [`ChatError::Invalid`], which names the field.
pub fn settings(request: &MessagesRequest) -> Result<Settings, ChatError> {
    Ok(Settings {
        max_tokens: Some(count("max_tokens", request.max_tokens, 1, u32::MAX)?),
        temperature: within("temperature", request.temperature.unwrap_or(1.0), 0.0, 1.0)?,
        top_p: within("top_p", request.top_p.unwrap_or(1.0), 0.0, 1.0)?,
        top_k: top_k(request.top_k)?,
        stop: stop_strings("stop_sequences", request.stop_sequences.clone().unwrap_or_default())?,
        forced_calls: forced_calls(&Parts::from(request))?,
        ..Settings::default()
    })
}

/// Refuses fields that would change the answer and are not supported.
///
/// # Errors
/// [`ChatError::Invalid`], which names the field.
pub fn check_unsupported(request: &MessagesRequest) -> Result<(), ChatError> {
    let tier = request.service_tier.as_deref().is_some_and(|tier| !matches!(tier, "auto" | "standard_only"));
    let servers = request.mcp_servers.as_ref().is_some_and(|servers| !servers.is_empty());
    unsupported("service_tier", tier, "service tiers are not supported")?;
    unsupported("container", request.container.is_some(), "is not supported")?;
    unsupported("mcp_servers", servers, "is not supported")?;
    unsupported("context_management", request.context_management.is_some(), "is not supported")
}
