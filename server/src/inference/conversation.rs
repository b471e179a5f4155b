//! Prompts, which are rendered and encoded on a thread of their own.

use std::sync::Arc;

use time::OffsetDateTime;
use trainyard_chat::conversation::{self, Rendered};
use trainyard_chat::template::Conversation;
use trainyard_chat::texts::ModelText;
use trainyard_wire::images::ImageRules;

use crate::error::ApiError;
use crate::state::AppState;

/// Renders a conversation and encodes it for a model with these rules. `prefill` is the assistant's last message, which
/// the model continues.
///
/// # Errors
/// Fails if the template does not accept the conversation.
pub(crate) async fn render(
    state: &AppState,
    text: &Arc<ModelText>,
    conversation: Conversation,
    prefill: Option<String>,
    rules: ImageRules,
) -> Result<Rendered, ApiError> {
    let now = now(state);
    let text = Arc::clone(text);
    let work = move || conversation::render(&text, &conversation, prefill.as_deref(), &rules, now);
    Ok(state.inference.texts.work(work).await??)
}

/// The present time, which templates may show.
pub(crate) fn now(state: &AppState) -> OffsetDateTime {
    let now = i128::from(state.clock.now().as_millis()) * 1_000_000;
    OffsetDateTime::from_unix_timestamp_nanos(now).unwrap_or(OffsetDateTime::UNIX_EPOCH)
}
