//! `POST completions`: from its body to samples, and the whole answer.

use std::sync::Arc;

use trainyard_chat::conversation::encode;
use trainyard_chat::openai::completion_choice::{Shown, add, empty};
use trainyard_chat::openai::completions::{check_unsupported, settings};
use trainyard_chat::openai::logprobs::of_completion;
use trainyard_chat::settings::{MAX_COMPLETIONS, Settings};
use trainyard_chat::texts::ModelText;
use trainyard_protocol::TenantId;
use trainyard_wire::openai::{CompletionChoice, CompletionPrompt, CompletionRequest, CompletionResponse};

use super::super::agents::Agent;
use super::super::completion::Completion;
use super::super::sampler::Sampler;
use super::super::sse;
use super::completion_stream::CompletionStream;
use super::{Answered, Head, usage};
use crate::error::ApiError;
use crate::state::AppState;

/// Completes prompts.
///
/// # Errors
/// Fails if the request is wrong or can't be taken now.
pub(crate) async fn completions(
    state: &AppState,
    tenant: &TenantId,
    agent: Option<&Agent>,
    request: CompletionRequest,
) -> Result<Answered<CompletionResponse>, ApiError> {
    check_unsupported(&request)?;
    let settings = settings(&request)?;
    let shown = Shown {
        n: settings.n as usize,
        echo: request.echo,
        logprobs: settings.logprobs.is_some(),
        token_ids: settings.token_ids,
        prompt_alone: request.max_tokens == Some(0),
    };
    let sampler = Sampler::find(state, tenant, agent, &request.model).await?;
    let text = Arc::clone(sampler.text());
    let prompts = encoded(state, &text, request.prompt, settings.n).await?;
    let all = start(&sampler, prompts, &settings, shown).await?;
    let id = all.first().map(|completion| completion.id().to_owned()).unwrap_or_default();
    let head = Head::new(state, "cmpl", &id, request.model);
    if request.stream {
        let include_usage = request.stream_options.is_some_and(|options| options.include_usage);
        let stream = CompletionStream::new(head, all, text, shown, include_usage);
        return Ok(Answered::Stream(sse::respond(stream)));
    }
    whole(head, all, &text, shown).await.map(|response| Answered::Whole(Box::new(response)))
}

/// The tokens of each prompt.
async fn encoded(
    state: &AppState,
    text: &Arc<ModelText>,
    prompt: CompletionPrompt,
    n: u32,
) -> Result<Vec<Vec<u32>>, ApiError> {
    let most = (MAX_COMPLETIONS / n) as usize;
    let check = |count: usize| {
        if (1..=most).contains(&count) {
            return Ok(());
        }
        Err(ApiError::invalid(format!("prompt: expected 1 to {most} prompts (n is {n}), found {count}")))
    };
    let lists = match prompt {
        CompletionPrompt::Text(prompt) => return encode_all(state, text, vec![prompt]).await,
        CompletionPrompt::Texts(prompts) => {
            check(prompts.len())?;
            return encode_all(state, text, prompts).await;
        }
        CompletionPrompt::Tokens(tokens) => vec![tokens],
        CompletionPrompt::TokenLists(lists) => lists,
    };
    check(lists.len())?;
    if lists.iter().any(Vec::is_empty) {
        return Err(ApiError::invalid("prompt: at least one token is required"));
    }
    Ok(lists)
}

async fn encode_all(state: &AppState, text: &Arc<ModelText>, prompts: Vec<String>) -> Result<Vec<Vec<u32>>, ApiError> {
    let text = Arc::clone(text);
    let work = move || prompts.iter().map(|prompt| encode(&text, prompt, true)).collect::<Result<_, _>>();
    Ok(state.inference.texts.work(work).await??)
}

async fn start(
    sampler: &Sampler<'_>,
    prompts: Vec<Vec<u32>>,
    settings: &Settings,
    shown: Shown,
) -> Result<Vec<Completion>, ApiError> {
    let mut all = Vec::with_capacity(prompts.len());
    for tokens in prompts {
        // Of a prompt that fills the context nothing else can be asked for than its scores.
        let fills = shown.prompt_alone && tokens.len() == sampler.context();
        let score_prompt = shown.echo && (shown.logprobs || fills);
        all.push(sampler.complete(tokens, settings.clone(), score_prompt).await?);
    }
    Ok(all)
}

async fn whole(
    head: Head,
    mut all: Vec<Completion>,
    text: &ModelText,
    shown: Shown,
) -> Result<CompletionResponse, ApiError> {
    let mut choices = Vec::new();
    for completion in &mut all {
        let updates = completion.rest().await?;
        let first = choices.len();
        choices.extend((0..shown.n).map(|at| begin(first + at, completion, text, shown)));
        let mut offsets: Vec<usize> =
            choices.iter().skip(first).map(|choice: &CompletionChoice| choice.text.chars().count()).collect();
        for (at, piece) in updates {
            if let Some((choice, offset)) = choices.get_mut(first + at).zip(offsets.get_mut(at)) {
                add(choice, piece, text, shown, offset);
            }
        }
    }
    let usage = Some(usage(all.iter()));
    let Head { id, created, model } = head;
    Ok(CompletionResponse { id, object: "text_completion".to_owned(), created, model, choices, usage })
}

/// A choice before its completion, with the prompt if the request echoes it.
fn begin(index: usize, completion: &Completion, text: &ModelText, shown: Shown) -> CompletionChoice {
    let prompt = if shown.echo { text.tokenizer.decode(&completion.prompt) } else { String::new() };
    let logprobs = shown.logprobs.then(|| of_completion(text, &completion.prompt_tokens, &mut 0));
    let [prompt_token_ids, token_ids] =
        [shown.token_ids.then(|| completion.prompt.clone()), shown.token_ids.then(Vec::new)];
    CompletionChoice { text: prompt, logprobs, prompt_token_ids, token_ids, ..empty(index) }
}
