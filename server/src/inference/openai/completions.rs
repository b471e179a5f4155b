//! `POST completions`: from its body to prompts, and the whole answer.

use std::sync::Arc;

use trainyard_protocol::TenantId;
use trainyard_wire::openai::{CompletionChoice, CompletionPrompt, CompletionRequest, CompletionResponse, StopStrings};

use super::super::completion::{Completion, Prompt};
use super::super::conversation::encode;
use super::super::model_name::{Target, resolve};
use super::super::output::OutputFormat;
use super::super::settings::{
    MAX_COMPLETIONS, MAX_LOGPROBS, Settings, count, stop_strings, top_k, unsupported, within,
};
use super::super::sse;
use super::super::texts::ModelText;
use super::completion_choice::{Shown, add};
use super::completion_stream::CompletionStream;
use super::controls::{Given, controls};
use super::logprobs::of_completion;
use super::{Answered, Head, usage};
use crate::error::ApiError;
use crate::state::AppState;

/// `max_tokens` of a request that does not set it.
const DEFAULT_MAX_TOKENS: u32 = 16;

/// Completes prompts.
///
/// # Errors
/// When the request is wrong or can't be taken now.
pub(crate) async fn completions(
    state: &AppState,
    tenant: &TenantId,
    request: CompletionRequest,
) -> Result<Answered<CompletionResponse>, ApiError> {
    check_unsupported(&request)?;
    let settings = settings(&request)?;
    let shown = Shown {
        n: settings.n as usize,
        echo: request.echo,
        logprobs: settings.logprobs.is_some(),
        prompt_alone: request.max_tokens == Some(0),
    };
    let target = resolve(state, tenant, &request.model).await?;
    let text = state.inference.texts.get(state.models.hub(), &target.base.name).await?;
    let prompts = encoded(state, &text, request.prompt, settings.n).await?;
    let all = start(state, tenant, &target, &text, (prompts, &settings, shown)).await?;
    let id = all.first().map(|completion| completion.id().to_owned()).unwrap_or_default();
    let head = Head::new(state, "cmpl", &id, target.name);
    if request.stream {
        let include_usage = request.stream_options.is_some_and(|options| options.include_usage);
        let stream = CompletionStream::new(head, all, text, shown, include_usage);
        return Ok(Answered::Stream(sse::respond(stream)));
    }
    whole(head, all, &text, shown).await.map(|response| Answered::Whole(Box::new(response)))
}

fn settings(request: &CompletionRequest) -> Result<Settings, ApiError> {
    let logprobs = request.logprobs.map(|most| count("logprobs", most, 0, MAX_LOGPROBS)).transpose()?;
    Ok(Settings {
        n: count("n", request.n.unwrap_or(1), 1, MAX_COMPLETIONS)?,
        // A sample has at least one token.
        max_tokens: Some(request.max_tokens.unwrap_or(DEFAULT_MAX_TOKENS).max(1)),
        temperature: within("temperature", request.temperature.unwrap_or(1.0), 0.0, 2.0)?,
        top_p: within("top_p", request.top_p.unwrap_or(1.0), 0.0, 1.0)?,
        top_k: top_k(request.top_k)?,
        seed: request.seed,
        stop: stop_strings("stop", request.stop.clone().map(StopStrings::into_vec).unwrap_or_default())?,
        logprobs,
        controls: controls(&Given {
            min_p: request.min_p,
            presence_penalty: request.presence_penalty,
            frequency_penalty: request.frequency_penalty,
            repetition_penalty: request.repetition_penalty,
            logit_bias: request.logit_bias.as_ref(),
            response_format: None,
        })?,
    })
}

fn check_unsupported(request: &CompletionRequest) -> Result<(), ApiError> {
    let not = "is not supported";
    let best_of = request.best_of.is_some_and(|best| best != request.n.unwrap_or(1));
    unsupported("best_of", best_of, "values other than n are not supported")?;
    unsupported("suffix", request.suffix.as_deref().is_some_and(|suffix| !suffix.is_empty()), not)?;
    unsupported("echo", request.echo && request.stream, "is not supported in streams")
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
        Err(ApiError::invalid(format!("prompt: {count} prompts, 1 to {most} are expected (n is {n})")))
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
    let work = move || prompts.iter().map(|prompt| encode(&text, prompt, true)).collect();
    state.inference.texts.work(work).await?
}

async fn start(
    state: &AppState,
    tenant: &TenantId,
    target: &Target,
    text: &Arc<ModelText>,
    (prompts, settings, shown): (Vec<Vec<u32>>, &Settings, Shown),
) -> Result<Vec<Completion>, ApiError> {
    let mut all = Vec::with_capacity(prompts.len());
    for tokens in prompts {
        // Of a prompt that fills the context nothing else can be asked for than its scores.
        let fills = shown.prompt_alone && tokens.len() == target.base.max_context_length;
        let score_prompt = shown.echo && (shown.logprobs || fills);
        let (settings, format) = (settings.clone(), OutputFormat::default());
        let prompt = Prompt { tokens, settings, format, is_chat: false, score_prompt };
        all.push(Completion::start(state, tenant, target, text, prompt).await?);
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
    CompletionChoice { index, text: prompt, logprobs, finish_reason: None }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]
    use serde_json::{Value, json};
    use trainyard_wire::json::parse;

    use super::*;

    fn checked(extra: &Value) -> Result<Settings, ApiError> {
        let mut body = json!({"model": "m", "prompt": "Hi"});
        extra.as_object().unwrap().iter().for_each(|(key, value)| body[key] = value.clone());
        let request: CompletionRequest = parse(body.to_string().as_bytes())?;
        check_unsupported(&request)?;
        settings(&request)
    }

    #[test]
    fn settings_have_the_defaults_of_the_api() {
        assert_eq!(checked(&json!({})).unwrap(), Settings { max_tokens: Some(16), ..Settings::default() });
        assert_eq!(checked(&json!({"max_tokens": 0, "echo": true, "logprobs": 0})).unwrap().max_tokens, Some(1));
        assert_eq!(checked(&json!({"min_p": 0.5})).unwrap().controls.min_p, 0.5);
        for prompt in [json!("a"), json!(["a", "b"]), json!([1, 2]), json!([[1], [2, 3]])] {
            assert!(checked(&json!({"prompt": prompt})).is_ok());
        }
    }

    #[test]
    fn refusals_name_the_field() {
        for (extra, text) in [
            (json!({"foo": 1}), "unknown field `foo`"),
            (json!({"prompt": [1, "a"]}), "prompt: expected a string"),
            (json!({"logprobs": 21}), "logprobs: 21"),
            (json!({"best_of": 2}), "best_of: values other than n"),
            (json!({"suffix": "x"}), "suffix: is not supported"),
            (json!({"echo": true, "stream": true}), "echo: is not supported in streams"),
            (json!({"presence_penalty": 2.5}), "presence_penalty: 2.5 is outside [-2, 2]"),
        ] {
            let refused = checked(&extra).unwrap_err().to_string();
            assert!(refused.contains(text), "{refused}");
        }
    }
}
