//! The prompt of a conversation, with and without an agent session.

use std::sync::Arc;

use trainyard_chat::conversation::Rendered;
use trainyard_chat::settings::Settings;
use trainyard_chat::texts::ModelText;
use trainyard_wire::images::ImageRules;

use super::super::completion::Prompt;
use super::super::conversation::render;
use super::super::model_name::Target;
use super::open::{Chat, Open};
use crate::error::ApiError;
use crate::state::AppState;

/// Renders a conversation, behind the recorded tokens that it continues if it belongs to an agent session.
///
/// # Errors
/// Fails if the template does not accept the conversation, or the session's limits leave no room for it.
pub(crate) async fn chat_prompt(
    state: &AppState,
    text: &Arc<ModelText>,
    chat: Chat,
    rules: ImageRules,
    mut settings: Settings,
    session: Option<&Open<'_>>,
    target: &Target,
) -> Result<Prompt, ApiError> {
    let (rendered, mut turn) = match session {
        None => (render(state, text, chat.conversation, chat.prefill, rules).await?, None),
        Some(session) => {
            let (rendered, turn) = session.render(text, chat, rules).await?;
            (rendered, Some(turn))
        }
    };
    let Rendered { tokens, images, format } = rendered;
    let format = settings.fit(format)?;
    if let (Some(session), Some(turn)) = (session, &mut turn) {
        session.admit(turn, &mut settings, tokens.len(), target.base.max_context_length).await?;
    }
    let turn = turn.map(|turn| turn.with_format(format));
    Ok(Prompt { tokens, images, settings, format, is_chat: true, score_prompt: false, turn })
}
