// Generated from openapi/openapi.json by `make sdk`; not for editing.

//! Bodies of requests and answers, as the API's description names them.
//!
//! `new` takes what a body must have; a method of a field's name sets what it may have.

/// Hyper-parameters of AdamW. Unknown fields are refused.
#[derive(::serde::Deserialize, ::serde::Serialize, Clone, Debug, PartialEq)]
#[serde(deny_unknown_fields)]
pub struct AdamParamsBody {
    /// Decay of the first moment.
    #[serde(default = "defaults::adam_params_body_beta1")]
    pub beta1: f64,
    /// Decay of the second moment.
    #[serde(default = "defaults::adam_params_body_beta2")]
    pub beta2: f64,
    /// Added to the denominator.
    #[serde(default = "defaults::adam_params_body_eps")]
    pub eps: f64,
    /// Largest global gradient norm; none when it is not positive.
    #[serde(default = "defaults::adam_params_body_grad_clip_norm")]
    pub grad_clip_norm: f64,
    /// Step size.
    #[serde(default = "defaults::adam_params_body_learning_rate")]
    pub learning_rate: f64,
    /// Decoupled weight decay.
    #[serde(default = "defaults::adam_params_body_weight_decay")]
    pub weight_decay: f64,
}
impl ::std::default::Default for AdamParamsBody {
    fn default() -> Self {
        Self {
            beta1: defaults::adam_params_body_beta1(),
            beta2: defaults::adam_params_body_beta2(),
            eps: defaults::adam_params_body_eps(),
            grad_clip_norm: defaults::adam_params_body_grad_clip_norm(),
            learning_rate: defaults::adam_params_body_learning_rate(),
            weight_decay: defaults::adam_params_body_weight_decay(),
        }
    }
}
/// A text, or blocks.
#[derive(::serde::Deserialize, ::serde::Serialize, Clone, Debug, PartialEq)]
#[serde(untagged)]
pub enum AnthropicContent {
    /// The alternative `String`.
    String(::std::string::String),
    /// The alternative `Array`.
    Array(::std::vec::Vec<Block>),
}
impl ::std::convert::From<::std::vec::Vec<Block>> for AnthropicContent {
    fn from(value: ::std::vec::Vec<Block>) -> Self {
        Self::Array(value)
    }
}
/// What is wrong with a request.
#[derive(::serde::Deserialize, ::serde::Serialize, Clone, Debug, PartialEq)]
pub struct AnthropicError {
    /// For people.
    pub message: ::std::string::String,
    /// `invalid_request_error`, `rate_limit_error`, `api_error` …
    #[serde(rename = "type")]
    pub type_: ::std::string::String,
}
/// A refused or failed request.
#[derive(::serde::Deserialize, ::serde::Serialize, Clone, Debug, PartialEq)]
pub struct AnthropicErrorResponse {
    /// What is wrong.
    pub error: AnthropicError,
    /// For the server's log.
    #[serde(skip_serializing_if = "::std::option::Option::is_none")]
    pub request_id: ::std::option::Option<::std::string::String>,
    /// `error`.
    #[serde(rename = "type")]
    pub type_: ::std::string::String,
}
/// A message of a conversation.
#[derive(::serde::Deserialize, ::serde::Serialize, Clone, Debug, PartialEq)]
#[serde(deny_unknown_fields)]
pub struct AnthropicMessage {
    /// What it says.
    pub content: AnthropicContent,
    /// `user` or `assistant`.
    pub role: ::std::string::String,
}
/// A tool that the model may call.
#[derive(::serde::Deserialize, ::serde::Serialize, Clone, Debug, PartialEq)]
pub struct AnthropicTool {
    /// What it does.
    #[serde(skip_serializing_if = "::std::option::Option::is_none")]
    pub description: ::std::option::Option<::std::string::String>,
    /// JSON schema of its arguments.
    #[serde(skip_serializing_if = "::std::option::Option::is_none")]
    pub input_schema: ::std::option::Option<::serde_json::Value>,
    /// Its name.
    pub name: ::std::string::String,
    /// `custom`; other types are refused.
    #[serde(rename = "type", skip_serializing_if = "::std::option::Option::is_none")]
    pub type_: ::std::option::Option<::std::string::String>,
}
/// Tokens of a request.
#[derive(::serde::Deserialize, ::serde::Serialize, Clone, Debug, PartialEq)]
pub struct AnthropicUsage {
    /// Always 0.
    pub cache_creation_input_tokens: u64,
    /// Of the prompt, served from the prefix cache.
    pub cache_read_input_tokens: u64,
    /// Of the prompt, apart from those of the prefix cache.
    pub input_tokens: u64,
    /// Sampled.
    pub output_tokens: u64,
}
/// An API key, without the key.
#[derive(::serde::Deserialize, ::serde::Serialize, Clone, Debug, PartialEq)]
pub struct ApiKey {
    /// When it was created.
    pub created_at: ::std::string::String,
    /// When it expires, if it does.
    #[serde(skip_serializing_if = "::std::option::Option::is_none")]
    pub expires_at: ::std::option::Option<::std::string::String>,
    /// The first characters of the key.
    pub hint: ::std::string::String,
    /// Names it.
    pub id: i64,
    /// For people.
    pub name: ::std::string::String,
    /// For people.
    pub note: ::std::string::String,
    /// When it was revoked.
    #[serde(skip_serializing_if = "::std::option::Option::is_none")]
    pub revoked_at: ::std::option::Option<::std::string::String>,
    /// `admin`, `member` or `read-only`: the most that it allows.
    pub role: ::std::string::String,
    /// What it is cut to, of `train`, `sample`, `checkpoints` and `admin`; absent for all of its role.
    #[serde(skip_serializing_if = "::std::option::Option::is_none")]
    pub scopes: ::std::option::Option<::std::vec::Vec<::std::string::String>>,
    /// The email of the user whose it is; absent for one of the organisation's programs.
    #[serde(skip_serializing_if = "::std::option::Option::is_none")]
    pub user: ::std::option::Option<::std::string::String>,
}
/// Something that was done.
#[derive(::serde::Deserialize, ::serde::Serialize, Clone, Debug, PartialEq)]
pub struct AuditEntry {
    /// Object and act, such as `checkpoint_delete`.
    pub event: ::std::string::String,
    /// `actor`, `subject`, `key_id`, `request_id`, `address` and what else there is to say.
    pub event_details: ::serde_json::Map<::std::string::String, ::serde_json::Value>,
    /// The run of a checkpoint.
    #[serde(skip_serializing_if = "::std::option::Option::is_none")]
    pub model_id: ::std::option::Option<::std::string::String>,
    /// When.
    pub timestamp: ::std::string::String,
    /// The checkpoint.
    #[serde(skip_serializing_if = "::std::option::Option::is_none")]
    pub tinker_path: ::std::option::Option<::std::string::String>,
}
/// Answer of `audit`.
#[derive(::serde::Deserialize, ::serde::Serialize, Clone, Debug, PartialEq)]
pub struct AuditResponse {
    /// Oldest first; of more than 10,000 the newest.
    pub entries: ::std::vec::Vec<AuditEntry>,
}
/// Body of `auth/token`.
#[derive(::serde::Deserialize, ::serde::Serialize, Clone, Debug, PartialEq)]
#[serde(transparent)]
pub struct AuthTokenRequest(
    /// The field the value.
    pub ::serde_json::Map<::std::string::String, ::serde_json::Value>,
);
impl ::std::ops::Deref for AuthTokenRequest {
    type Target = ::serde_json::Map<::std::string::String, ::serde_json::Value>;
    fn deref(&self) -> &::serde_json::Map<::std::string::String, ::serde_json::Value> {
        &self.0
    }
}
impl ::std::convert::From<AuthTokenRequest>
for ::serde_json::Map<::std::string::String, ::serde_json::Value> {
    fn from(value: AuthTokenRequest) -> Self {
        value.0
    }
}
impl ::std::convert::From<::serde_json::Map<::std::string::String, ::serde_json::Value>>
for AuthTokenRequest {
    fn from(
        value: ::serde_json::Map<::std::string::String, ::serde_json::Value>,
    ) -> Self {
        Self(value)
    }
}
/// Answer of `auth/token`.
#[derive(::serde::Deserialize, ::serde::Serialize, Clone, Debug, PartialEq)]
pub struct AuthTokenResponse {
    /// A JSON Web Token, which is sent as the key was: in `X-API-Key`, or as a bearer token.
    pub jwt: ::std::string::String,
}
/// A part of a message: `text`, `thinking`, `redacted_thinking`, `tool_use` or `tool_result`. Other types are refused.
#[derive(::serde::Deserialize, ::serde::Serialize, Clone, Debug, PartialEq)]
pub struct Block {
    /// Of a `tool_result`: what the tool returned.
    #[serde(skip_serializing_if = "::std::option::Option::is_none")]
    pub content: ::std::option::Option<AnthropicContent>,
    /// Of a `tool_use`: names the call.
    #[serde(skip_serializing_if = "::std::option::Option::is_none")]
    pub id: ::std::option::Option<::std::string::String>,
    /// Of a `tool_use`: the arguments.
    #[serde(skip_serializing_if = "::std::option::Option::is_none")]
    pub input: ::std::option::Option<::serde_json::Value>,
    /// Of a `tool_result`: accepted; the content says what went wrong.
    #[serde(skip_serializing_if = "::std::option::Option::is_none")]
    pub is_error: ::std::option::Option<bool>,
    /// Of a `tool_use`: the tool.
    #[serde(skip_serializing_if = "::std::option::Option::is_none")]
    pub name: ::std::option::Option<::std::string::String>,
    /// Of a `text`.
    #[serde(skip_serializing_if = "::std::option::Option::is_none")]
    pub text: ::std::option::Option<::std::string::String>,
    /// Of `thinking`.
    #[serde(skip_serializing_if = "::std::option::Option::is_none")]
    pub thinking: ::std::option::Option<::std::string::String>,
    /// Of a `tool_result`: the call that it answers.
    #[serde(skip_serializing_if = "::std::option::Option::is_none")]
    pub tool_use_id: ::std::option::Option<::std::string::String>,
    /// The type.
    #[serde(rename = "type")]
    pub type_: ::std::string::String,
}
/// Body of `cancel_future`.
#[derive(::serde::Deserialize, ::serde::Serialize, Clone, Debug, PartialEq)]
pub struct CancelFutureRequest {
    /// The future.
    pub request_id: ::std::string::String,
}
/// Answer of `cancel_future`: an empty object.
#[derive(::serde::Deserialize, ::serde::Serialize, Clone, Debug, PartialEq)]
#[serde(transparent)]
pub struct CancelFutureResponse(
    /// The field the value.
    pub ::serde_json::Map<::std::string::String, ::serde_json::Value>,
);
impl ::std::ops::Deref for CancelFutureResponse {
    type Target = ::serde_json::Map<::std::string::String, ::serde_json::Value>;
    fn deref(&self) -> &::serde_json::Map<::std::string::String, ::serde_json::Value> {
        &self.0
    }
}
impl ::std::convert::From<CancelFutureResponse>
for ::serde_json::Map<::std::string::String, ::serde_json::Value> {
    fn from(value: CancelFutureResponse) -> Self {
        value.0
    }
}
impl ::std::convert::From<::serde_json::Map<::std::string::String, ::serde_json::Value>>
for CancelFutureResponse {
    fn from(
        value: ::serde_json::Map<::std::string::String, ::serde_json::Value>,
    ) -> Self {
        Self(value)
    }
}
/// Body of `PUT admin/organisations/{organisation}/limits`: what is absent stays, and `null` unsets.
#[derive(::serde::Deserialize, ::serde::Serialize, Clone, Debug, Default, PartialEq)]
#[serde(deny_unknown_fields)]
pub struct ChangeLimitsRequest {
    /// Bytes of their payloads.
    #[serde(skip_serializing_if = "::std::option::Option::is_none")]
    pub max_queued_bytes: ::std::option::Option<u64>,
    /// Training requests that have not finished.
    #[serde(skip_serializing_if = "::std::option::Option::is_none")]
    pub max_queued_requests: ::std::option::Option<u64>,
    /// Tokens of accepted requests that have not finished, beyond which samples get 429.
    #[serde(skip_serializing_if = "::std::option::Option::is_none")]
    pub max_queued_tokens: ::std::option::Option<u64>,
    /// Training runs that may live at once.
    #[serde(skip_serializing_if = "::std::option::Option::is_none")]
    pub max_runs: ::std::option::Option<u64>,
    /// Bytes of its checkpoints.
    #[serde(skip_serializing_if = "::std::option::Option::is_none")]
    pub max_storage_bytes: ::std::option::Option<u64>,
    /// Rate limit: tokens of the requests that start.
    #[serde(skip_serializing_if = "::std::option::Option::is_none")]
    pub tokens_per_minute: ::std::option::Option<u64>,
    /// Its share of a busy service, relative to the other organisations that have work.
    #[serde(skip_serializing_if = "::std::option::Option::is_none")]
    pub weight: ::std::option::Option<u64>,
}
/// Body of `PUT admin/organisations/{organisation}`; what is absent stays.
#[derive(::serde::Deserialize, ::serde::Serialize, Clone, Debug, Default, PartialEq)]
#[serde(deny_unknown_fields)]
pub struct ChangeOrganisationRequest {
    /// Whether its keys and tokens are refused; for admins of operators.
    #[serde(skip_serializing_if = "::std::option::Option::is_none")]
    pub disabled: ::std::option::Option<bool>,
    /// For people.
    #[serde(skip_serializing_if = "::std::option::Option::is_none")]
    pub display_name: ::std::option::Option<::std::string::String>,
}
/// Body of `PUT admin/users/{email}`; what is absent stays.
#[derive(::serde::Deserialize, ::serde::Serialize, Clone, Debug, Default, PartialEq)]
pub struct ChangeUserRequest {
    /// Whether the user's keys are refused.
    #[serde(skip_serializing_if = "::std::option::Option::is_none")]
    pub disabled: ::std::option::Option<bool>,
    /// `admin`, `member` or `read-only`.
    #[serde(skip_serializing_if = "::std::option::Option::is_none")]
    pub role: ::std::option::Option<::std::string::String>,
}
/// One reply.
#[derive(::serde::Deserialize, ::serde::Serialize, Clone, Debug, PartialEq)]
pub struct ChatChoice {
    /// `stop`, `length` or `tool_calls`.
    pub finish_reason: ::std::string::String,
    /// Its position.
    pub index: i64,
    /// Of its tokens, if they were asked for.
    #[serde(skip_serializing_if = "::std::option::Option::is_none")]
    pub logprobs: ::std::option::Option<ChatLogprobs>,
    /// What the model says.
    pub message: ChatReply,
}
/// A text, or parts that are texts.
#[derive(::serde::Deserialize, ::serde::Serialize, Clone, Debug, PartialEq)]
#[serde(untagged)]
pub enum ChatContent {
    /// The alternative `String`.
    String(::std::string::String),
    /// The alternative `Array`.
    Array(::std::vec::Vec<ContentPart>),
}
impl ::std::convert::From<::std::vec::Vec<ContentPart>> for ChatContent {
    fn from(value: ::std::vec::Vec<ContentPart>) -> Self {
        Self::Array(value)
    }
}
/// Log-probabilities of a reply, or of what a chunk adds to it.
#[derive(::serde::Deserialize, ::serde::Serialize, Clone, Debug, PartialEq)]
pub struct ChatLogprobs {
    /// Token by token.
    pub content: ::std::vec::Vec<TokenLogprob>,
    /// Always null.
    #[serde(skip_serializing_if = "::std::option::Option::is_none")]
    pub refusal: ::std::option::Option<::std::vec::Vec<TokenLogprob>>,
}
/// A message of a conversation.
#[derive(::serde::Deserialize, ::serde::Serialize, Clone, Debug, PartialEq)]
#[serde(deny_unknown_fields)]
pub struct ChatMessage {
    /// Accepted and ignored.
    #[serde(skip_serializing_if = "::std::option::Option::is_none")]
    pub annotations: ::std::option::Option<::std::vec::Vec<::serde_json::Value>>,
    /// Refused unless it is null.
    #[serde(skip_serializing_if = "::std::option::Option::is_none")]
    pub audio: ::std::option::Option<::serde_json::Value>,
    /// What it says.
    #[serde(skip_serializing_if = "::std::option::Option::is_none")]
    pub content: ::std::option::Option<ChatContent>,
    /// Refused unless it is null.
    #[serde(skip_serializing_if = "::std::option::Option::is_none")]
    pub function_call: ::std::option::Option<::serde_json::Value>,
    /// Of the speaker.
    #[serde(skip_serializing_if = "::std::option::Option::is_none")]
    pub name: ::std::option::Option<::std::string::String>,
    /// What the assistant thought.
    #[serde(skip_serializing_if = "::std::option::Option::is_none")]
    pub reasoning_content: ::std::option::Option<::std::string::String>,
    /// Taken as the content when there is none.
    #[serde(skip_serializing_if = "::std::option::Option::is_none")]
    pub refusal: ::std::option::Option<::std::string::String>,
    /// `system`, `developer`, `user`, `assistant` or `tool`.
    pub role: ::std::string::String,
    /// The call that a message of a tool answers.
    #[serde(skip_serializing_if = "::std::option::Option::is_none")]
    pub tool_call_id: ::std::option::Option<::std::string::String>,
    /// Tools that the assistant called.
    #[serde(skip_serializing_if = "::std::option::Option::is_none")]
    pub tool_calls: ::std::option::Option<::std::vec::Vec<ToolCall>>,
}
/// The assistant's message.
#[derive(::serde::Deserialize, ::serde::Serialize, Clone, Debug, PartialEq)]
pub struct ChatReply {
    /// Its text; null when it only calls tools.
    #[serde(skip_serializing_if = "::std::option::Option::is_none")]
    pub content: ::std::option::Option<::std::string::String>,
    /// What it thought.
    #[serde(skip_serializing_if = "::std::option::Option::is_none")]
    pub reasoning_content: ::std::option::Option<::std::string::String>,
    /// Always null.
    #[serde(skip_serializing_if = "::std::option::Option::is_none")]
    pub refusal: ::std::option::Option<::std::string::String>,
    /// `assistant`.
    pub role: ::std::string::String,
    /// Tools that it calls.
    #[serde(skip_serializing_if = "::std::option::Option::is_none")]
    pub tool_calls: ::std::option::Option<::std::vec::Vec<ToolCall>>,
}
/// Body of `chat/completions`. Unknown fields are refused; what is known and not supported is refused unless it has no
/// effect.
#[derive(::serde::Deserialize, ::serde::Serialize, Clone, Debug, PartialEq)]
#[serde(deny_unknown_fields)]
pub struct ChatRequest {
    /// Refused: there is no audio.
    #[serde(skip_serializing_if = "::std::option::Option::is_none")]
    pub audio: ::std::option::Option<::serde_json::Value>,
    /// Further variables of the model's chat template.
    #[serde(skip_serializing_if = "::std::option::Option::is_none")]
    pub chat_template_kwargs: ::std::option::Option<
        ::serde_json::Map<::std::string::String, ::serde_json::Value>,
    >,
    /// Subtracted from the logits of tokens each time that the text holds them.
    #[serde(skip_serializing_if = "::std::option::Option::is_none")]
    pub frequency_penalty: ::std::option::Option<f64>,
    /// Refused: use `tool_choice`.
    #[serde(skip_serializing_if = "::std::option::Option::is_none")]
    pub function_call: ::std::option::Option<::serde_json::Value>,
    /// Refused: use `tools`.
    #[serde(skip_serializing_if = "::std::option::Option::is_none")]
    pub functions: ::std::option::Option<::serde_json::Value>,
    /// Added to the logits of tokens, by token id, each between -100 and 100.
    #[serde(skip_serializing_if = "::std::option::Option::is_none")]
    pub logit_bias: ::std::option::Option<
        ::std::collections::HashMap<::std::string::String, f64>,
    >,
    /// Return the log-probabilities of the tokens.
    #[serde(skip_serializing_if = "::std::option::Option::is_none")]
    pub logprobs: ::std::option::Option<bool>,
    /// The newer name of `max_tokens`.
    #[serde(skip_serializing_if = "::std::option::Option::is_none")]
    pub max_completion_tokens: ::std::option::Option<u32>,
    /// Most tokens to sample; up to the context limit when null.
    #[serde(skip_serializing_if = "::std::option::Option::is_none")]
    pub max_tokens: ::std::option::Option<u32>,
    /// The conversation so far.
    pub messages: ::std::vec::Vec<ChatMessage>,
    /// Accepted and ignored.
    #[serde(skip_serializing_if = "::std::option::Option::is_none")]
    pub metadata: ::std::option::Option<::serde_json::Value>,
    /// Tokens less likely than this fraction of the most likely one are not sampled; 0 is off.
    #[serde(skip_serializing_if = "::std::option::Option::is_none")]
    pub min_p: ::std::option::Option<f64>,
    /// Refused unless it is `["text"]`.
    #[serde(skip_serializing_if = "::std::option::Option::is_none")]
    pub modalities: ::std::option::Option<::std::vec::Vec<::std::string::String>>,
    /// A base model, a `tinker://` path of a sampler checkpoint, or `<base>;<path>`.
    pub model: ::std::string::String,
    /// How many replies.
    #[serde(skip_serializing_if = "::std::option::Option::is_none")]
    pub n: ::std::option::Option<u32>,
    /// Refused when it is false and there are tools.
    #[serde(skip_serializing_if = "::std::option::Option::is_none")]
    pub parallel_tool_calls: ::std::option::Option<bool>,
    /// Refused: nothing is predicted.
    #[serde(skip_serializing_if = "::std::option::Option::is_none")]
    pub prediction: ::std::option::Option<::serde_json::Value>,
    /// Subtracted from the logits of tokens that the text holds.
    #[serde(skip_serializing_if = "::std::option::Option::is_none")]
    pub presence_penalty: ::std::option::Option<f64>,
    /// Accepted and ignored.
    #[serde(skip_serializing_if = "::std::option::Option::is_none")]
    pub prompt_cache_key: ::std::option::Option<::std::string::String>,
    /// A preset such as `low`, or a number, for models whose template has it.
    #[serde(skip_serializing_if = "::std::option::Option::is_none")]
    pub reasoning_effort: ::std::option::Option<::serde_json::Value>,
    /// Divides positive logits of tokens that prompt or text hold, and multiplies negative ones; 1 is off.
    #[serde(skip_serializing_if = "::std::option::Option::is_none")]
    pub repetition_penalty: ::std::option::Option<f64>,
    /// `text`, `json_object` or `json_schema`; the latter two not with tools.
    #[serde(skip_serializing_if = "::std::option::Option::is_none")]
    pub response_format: ::std::option::Option<ResponseFormat>,
    /// Accepted and ignored.
    #[serde(skip_serializing_if = "::std::option::Option::is_none")]
    pub safety_identifier: ::std::option::Option<::std::string::String>,
    /// Makes sampling repeatable.
    #[serde(skip_serializing_if = "::std::option::Option::is_none")]
    pub seed: ::std::option::Option<i64>,
    /// Refused unless it is `auto` or `default`.
    #[serde(skip_serializing_if = "::std::option::Option::is_none")]
    pub service_tier: ::std::option::Option<::std::string::String>,
    /// Ends a reply; not part of its text.
    #[serde(skip_serializing_if = "::std::option::Option::is_none")]
    pub stop: ::std::option::Option<StopStrings>,
    /// Refused when true: replies are not stored.
    #[serde(skip_serializing_if = "::std::option::Option::is_none")]
    pub store: ::std::option::Option<bool>,
    /// Answer in server-sent events.
    #[serde(skip_serializing_if = "::std::option::Option::is_none")]
    pub stream: ::std::option::Option<bool>,
    /// Of a stream.
    #[serde(skip_serializing_if = "::std::option::Option::is_none")]
    pub stream_options: ::std::option::Option<StreamOptions>,
    /// Divides the logits; 0 is greedy, 1 when null.
    #[serde(skip_serializing_if = "::std::option::Option::is_none")]
    pub temperature: ::std::option::Option<f64>,
    /// `auto` or `none`.
    #[serde(skip_serializing_if = "::std::option::Option::is_none")]
    pub tool_choice: ::std::option::Option<::serde_json::Value>,
    /// Functions that the model may call: `{"type": "function", "function": {"name": …, "parameters": …}}`.
    #[serde(skip_serializing_if = "::std::option::Option::is_none")]
    pub tools: ::std::option::Option<
        ::std::vec::Vec<::serde_json::Map<::std::string::String, ::serde_json::Value>>,
    >,
    /// Keep the `k` most likely; -1 and 0 are off.
    #[serde(skip_serializing_if = "::std::option::Option::is_none")]
    pub top_k: ::std::option::Option<i64>,
    /// Candidates per token.
    #[serde(skip_serializing_if = "::std::option::Option::is_none")]
    pub top_logprobs: ::std::option::Option<u32>,
    /// Keep the smallest set whose probability reaches `p`.
    #[serde(skip_serializing_if = "::std::option::Option::is_none")]
    pub top_p: ::std::option::Option<f64>,
    /// Accepted and ignored.
    #[serde(skip_serializing_if = "::std::option::Option::is_none")]
    pub user: ::std::option::Option<::std::string::String>,
    /// Refused unless it is `medium`.
    #[serde(skip_serializing_if = "::std::option::Option::is_none")]
    pub verbosity: ::std::option::Option<::std::string::String>,
    /// Refused: there is no search.
    #[serde(skip_serializing_if = "::std::option::Option::is_none")]
    pub web_search_options: ::std::option::Option<::serde_json::Value>,
}
/// Answer of `chat/completions`.
#[derive(::serde::Deserialize, ::serde::Serialize, Clone, Debug, PartialEq)]
pub struct ChatResponse {
    /// The replies.
    pub choices: ::std::vec::Vec<ChatChoice>,
    /// Seconds since 1970.
    pub created: i64,
    /// Of the request.
    pub id: ::std::string::String,
    /// As it was asked for.
    pub model: ::std::string::String,
    /// `chat.completion`.
    pub object: ::std::string::String,
    /// Tokens of the request.
    pub usage: Usage,
}
/// A checkpoint.
#[derive(::serde::Deserialize, ::serde::Serialize, Clone, Debug, PartialEq)]
pub struct Checkpoint {
    /// Name of the base model.
    #[serde(skip_serializing_if = "::std::option::Option::is_none")]
    pub base_model: ::std::option::Option<::std::string::String>,
    /// `<segment>/<name>`.
    pub checkpoint_id: ::std::string::String,
    /// `training`, `sampler` or `external`.
    pub checkpoint_type: ::std::string::String,
    /// When it is deleted, RFC 3339; never when absent.
    #[serde(skip_serializing_if = "::std::option::Option::is_none")]
    pub expires_at: ::std::option::Option<::std::string::String>,
    /// Whether others may read it.
    pub public: bool,
    /// Bytes of all its files.
    pub size_bytes: u64,
    /// When it was made, RFC 3339.
    pub time: ::std::string::String,
    /// `tinker://<run>/<segment>/<name>`.
    pub tinker_path: ::std::string::String,
    /// As given with the save.
    pub user_metadata: ::std::collections::HashMap<
        ::std::string::String,
        ::std::string::String,
    >,
}
/// Where the next page begins.
#[derive(::serde::Deserialize, ::serde::Serialize, Clone, Debug, PartialEq)]
pub struct CheckpointCursor {
    /// Its path.
    pub last_checkpoint_uuid: ::std::string::String,
    /// Of the last checkpoint that was looked at, RFC 3339.
    pub last_created_at: ::std::string::String,
}
/// Body of `checkpoints/search`: everything that is given must hold.
#[derive(::serde::Deserialize, ::serde::Serialize, Clone, Debug, Default, PartialEq)]
#[serde(deny_unknown_fields)]
pub struct CheckpointSearchRequest {
    /// Of one of these base models; none match an empty list.
    #[serde(skip_serializing_if = "::std::option::Option::is_none")]
    pub base_models: ::std::option::Option<::std::vec::Vec<::std::string::String>>,
    /// `training`, `sampler` or `external`.
    #[serde(skip_serializing_if = "::std::option::Option::is_none")]
    pub checkpoint_type: ::std::option::Option<::std::string::String>,
    /// `next_cursor` of the page before.
    #[serde(skip_serializing_if = "::std::option::Option::is_none")]
    pub cursor: ::std::option::Option<CheckpointCursor>,
    /// Most checkpoints to return.
    #[serde(skip_serializing_if = "::std::option::Option::is_none")]
    pub limit: ::std::option::Option<u32>,
    /// Whose checkpoints.
    #[serde(skip_serializing_if = "::std::option::Option::is_none")]
    pub owner: ::std::option::Option<SearchOwner>,
    /// In one of these projects of the caller's.
    #[serde(skip_serializing_if = "::std::option::Option::is_none")]
    pub project_ids: ::std::option::Option<::std::vec::Vec<::std::string::String>>,
    /// With these entries.
    #[serde(default, skip_serializing_if = ":: std :: collections :: HashMap::is_empty")]
    pub user_metadata: ::std::collections::HashMap<
        ::std::string::String,
        ::std::string::String,
    >,
}
/// Answer of `checkpoints/search`.
#[derive(::serde::Deserialize, ::serde::Serialize, Clone, Debug, PartialEq)]
pub struct CheckpointSearchResponse {
    /// Newest first. There may be fewer than `limit` although `next_cursor` is given.
    pub checkpoints: ::std::vec::Vec<Checkpoint>,
    /// Where to go on; absent when there are no more.
    #[serde(skip_serializing_if = "::std::option::Option::is_none")]
    pub next_cursor: ::std::option::Option<CheckpointCursor>,
}
/// Answer of `checkpoints` and `training_runs/{id}/checkpoints`.
#[derive(::serde::Deserialize, ::serde::Serialize, Clone, Debug, PartialEq)]
pub struct CheckpointsResponse {
    /// The page.
    pub checkpoints: ::std::vec::Vec<Checkpoint>,
    /// Where it lies.
    #[serde(skip_serializing_if = "::std::option::Option::is_none")]
    pub cursor: ::std::option::Option<Cursor>,
}
/// Body of `client/config` and `client/dynamic_config`.
#[derive(::serde::Deserialize, ::serde::Serialize, Clone, Debug, Default, PartialEq)]
pub struct ClientConfigRequest {
    /// The client's version.
    #[serde(skip_serializing_if = "::std::option::Option::is_none")]
    pub sdk_version: ::std::option::Option<::std::string::String>,
}
/// Answer of `client/config`: settings that the server chooses for the client. Fields left out keep the
/// client's defaults.
#[derive(::serde::Deserialize, ::serde::Serialize, Clone, Debug, PartialEq)]
pub struct ClientConfigResponse {
    /// Where the credential comes from.
    pub credential_default_source: ::std::string::String,
    /// Run custom losses on the server.
    pub custom_loss_server_side: bool,
    /// Estimated bytes per `forward_backward` request.
    pub fwdbwd_max_chunk_bytes_count: u64,
    /// Datums per `forward_backward` request.
    pub fwdbwd_max_chunk_len: u64,
    /// Post the chunks of a call concurrently.
    pub parallel_fwdbwd_chunks: bool,
    /// Exchange the API key for a token at `auth/token`, and call with that.
    pub pjwt_auth_enabled: bool,
    /// Compress `forward_backward` bodies with zstd.
    pub proto_compress_fwdbwd: bool,
    /// Ask the server for clone numbers.
    pub sample_join_sampling_session: bool,
    /// Learn of finished samples through `retrieve_futures`.
    pub sample_use_retrieve_futures: bool,
}
/// Answer of `client/dynamic_config`.
#[derive(::serde::Deserialize, ::serde::Serialize, Clone, Debug, PartialEq)]
pub struct ClientDynamicConfigResponse {
    /// Seconds until the client polls again.
    pub refresh_interval_sec: u64,
    /// Send `cancel_future` for abandoned samples.
    pub sample_cancel_enabled: bool,
    /// Cancellations sent at once.
    pub sample_cancel_max_batch_size: u64,
}
/// One completion, or what a chunk adds to it.
#[derive(::serde::Deserialize, ::serde::Serialize, Clone, Debug, PartialEq)]
pub struct CompletionChoice {
    /// `stop` or `length`; null in chunks before its end.
    #[serde(skip_serializing_if = "::std::option::Option::is_none")]
    pub finish_reason: ::std::option::Option<::std::string::String>,
    /// Its position.
    pub index: i64,
    /// Of its tokens, if they were asked for.
    #[serde(skip_serializing_if = "::std::option::Option::is_none")]
    pub logprobs: ::std::option::Option<CompletionLogprobs>,
    /// Its text.
    pub text: ::std::string::String,
}
/// Log-probabilities, token by token.
#[derive(::serde::Deserialize, ::serde::Serialize, Clone, Debug, PartialEq)]
pub struct CompletionLogprobs {
    /// Characters before each token.
    pub text_offset: ::std::vec::Vec<i64>,
    /// Null for the first token of a prompt.
    pub token_logprobs: ::std::vec::Vec<::std::option::Option<f64>>,
    /// The tokens' texts.
    pub tokens: ::std::vec::Vec<::std::string::String>,
    /// The most likely candidates by their texts.
    pub top_logprobs: ::std::vec::Vec<
        ::std::option::Option<::std::collections::HashMap<::std::string::String, f64>>,
    >,
}
/// A text, texts, tokens, or lists of tokens.
#[derive(::serde::Deserialize, ::serde::Serialize, Clone, Debug, PartialEq)]
#[serde(untagged)]
pub enum CompletionPrompt {
    /// The alternative `Variant0`.
    Variant0(::std::string::String),
    /// The alternative `Variant1`.
    Variant1(::std::vec::Vec<::std::string::String>),
    /// The alternative `Variant2`.
    Variant2(::std::vec::Vec<u32>),
    /// The alternative `Variant3`.
    Variant3(::std::vec::Vec<::std::vec::Vec<u32>>),
}
impl ::std::convert::From<::std::vec::Vec<::std::string::String>> for CompletionPrompt {
    fn from(value: ::std::vec::Vec<::std::string::String>) -> Self {
        Self::Variant1(value)
    }
}
impl ::std::convert::From<::std::vec::Vec<u32>> for CompletionPrompt {
    fn from(value: ::std::vec::Vec<u32>) -> Self {
        Self::Variant2(value)
    }
}
impl ::std::convert::From<::std::vec::Vec<::std::vec::Vec<u32>>> for CompletionPrompt {
    fn from(value: ::std::vec::Vec<::std::vec::Vec<u32>>) -> Self {
        Self::Variant3(value)
    }
}
/// Body of `completions`. Unknown fields are refused.
#[derive(::serde::Deserialize, ::serde::Serialize, Clone, Debug, PartialEq)]
#[serde(deny_unknown_fields)]
pub struct CompletionRequest {
    /// Refused unless it equals `n`.
    #[serde(skip_serializing_if = "::std::option::Option::is_none")]
    pub best_of: ::std::option::Option<u32>,
    /// Return the prompt before the completion.
    #[serde(skip_serializing_if = "::std::option::Option::is_none")]
    pub echo: ::std::option::Option<bool>,
    /// Subtracted from the logits of tokens each time that the text holds them.
    #[serde(skip_serializing_if = "::std::option::Option::is_none")]
    pub frequency_penalty: ::std::option::Option<f64>,
    /// Added to the logits of tokens, by token id, each between -100 and 100.
    #[serde(skip_serializing_if = "::std::option::Option::is_none")]
    pub logit_bias: ::std::option::Option<
        ::std::collections::HashMap<::std::string::String, f64>,
    >,
    /// Log-probabilities of so many candidates per token, and of the token.
    #[serde(skip_serializing_if = "::std::option::Option::is_none")]
    pub logprobs: ::std::option::Option<u32>,
    /// Most tokens to sample; 16 when null. 0 is for `echo`.
    #[serde(skip_serializing_if = "::std::option::Option::is_none")]
    pub max_tokens: ::std::option::Option<u32>,
    /// Tokens less likely than this fraction of the most likely one are not sampled; 0 is off.
    #[serde(skip_serializing_if = "::std::option::Option::is_none")]
    pub min_p: ::std::option::Option<f64>,
    /// A base model, a `tinker://` path of a sampler checkpoint, or `<base>;<path>`.
    pub model: ::std::string::String,
    /// Completions of each prompt.
    #[serde(skip_serializing_if = "::std::option::Option::is_none")]
    pub n: ::std::option::Option<u32>,
    /// Subtracted from the logits of tokens that the text holds.
    #[serde(skip_serializing_if = "::std::option::Option::is_none")]
    pub presence_penalty: ::std::option::Option<f64>,
    /// What to complete.
    pub prompt: CompletionPrompt,
    /// Divides positive logits of tokens that prompt or text hold, and multiplies negative ones; 1 is off.
    #[serde(skip_serializing_if = "::std::option::Option::is_none")]
    pub repetition_penalty: ::std::option::Option<f64>,
    /// Makes sampling repeatable.
    #[serde(skip_serializing_if = "::std::option::Option::is_none")]
    pub seed: ::std::option::Option<i64>,
    /// Ends a completion; not part of its text.
    #[serde(skip_serializing_if = "::std::option::Option::is_none")]
    pub stop: ::std::option::Option<StopStrings>,
    /// Answer in server-sent events.
    #[serde(skip_serializing_if = "::std::option::Option::is_none")]
    pub stream: ::std::option::Option<bool>,
    /// Of a stream.
    #[serde(skip_serializing_if = "::std::option::Option::is_none")]
    pub stream_options: ::std::option::Option<StreamOptions>,
    /// Refused unless it is empty.
    #[serde(skip_serializing_if = "::std::option::Option::is_none")]
    pub suffix: ::std::option::Option<::std::string::String>,
    /// Divides the logits; 0 is greedy, 1 when null.
    #[serde(skip_serializing_if = "::std::option::Option::is_none")]
    pub temperature: ::std::option::Option<f64>,
    /// Keep the `k` most likely; -1 and 0 are off.
    #[serde(skip_serializing_if = "::std::option::Option::is_none")]
    pub top_k: ::std::option::Option<i64>,
    /// Keep the smallest set whose probability reaches `p`.
    #[serde(skip_serializing_if = "::std::option::Option::is_none")]
    pub top_p: ::std::option::Option<f64>,
    /// Accepted and ignored.
    #[serde(skip_serializing_if = "::std::option::Option::is_none")]
    pub user: ::std::option::Option<::std::string::String>,
}
/// Answer of `completions`, and each chunk of a stream.
#[derive(::serde::Deserialize, ::serde::Serialize, Clone, Debug, PartialEq)]
pub struct CompletionResponse {
    /// The completions of the first prompt, then those of the second, and so on.
    pub choices: ::std::vec::Vec<CompletionChoice>,
    /// Seconds since 1970.
    pub created: i64,
    /// Of the request.
    pub id: ::std::string::String,
    /// As it was asked for.
    pub model: ::std::string::String,
    /// `text_completion`.
    pub object: ::std::string::String,
    /// Tokens of the request.
    #[serde(skip_serializing_if = "::std::option::Option::is_none")]
    pub usage: ::std::option::Option<Usage>,
}
/// A setting of a loss function in JSON.
#[derive(::serde::Deserialize, ::serde::Serialize, Clone, Debug, PartialEq)]
#[serde(untagged)]
pub enum ConfigValue {
    /// The alternative `Double`.
    Double(f64),
    /// The alternative `String`.
    String(::std::string::String),
}
impl ::std::fmt::Display for ConfigValue {
    fn fmt(&self, f: &mut ::std::fmt::Formatter<'_>) -> ::std::fmt::Result {
        match self {
            Self::Double(x) => x.fmt(f),
            Self::String(x) => x.fmt(f),
        }
    }
}
impl ::std::convert::From<f64> for ConfigValue {
    fn from(value: f64) -> Self {
        Self::Double(value)
    }
}
/// A part of a message; other types than `text` are refused.
#[derive(::serde::Deserialize, ::serde::Serialize, Clone, Debug, PartialEq)]
pub struct ContentPart {
    /// Of a `text`.
    #[serde(skip_serializing_if = "::std::option::Option::is_none")]
    pub text: ::std::option::Option<::std::string::String>,
    /// `text`, `json_object` or `json_schema`.
    #[serde(rename = "type")]
    pub type_: ::std::string::String,
}
/// Body of `copy_weights`: with `session_id` and `model_seq_id` that run holds the copy, otherwise the run of a new session.
#[derive(::serde::Deserialize, ::serde::Serialize, Clone, Debug, PartialEq)]
pub struct CopyWeightsRequest {
    /// The project of the new session.
    #[serde(skip_serializing_if = "::std::option::Option::is_none")]
    pub destination_project_id: ::std::option::Option<::std::string::String>,
    /// Counts that session's models.
    #[serde(skip_serializing_if = "::std::option::Option::is_none")]
    pub model_seq_id: ::std::option::Option<u64>,
    /// The session of the run that holds the copy.
    #[serde(skip_serializing_if = "::std::option::Option::is_none")]
    pub session_id: ::std::option::Option<::std::string::String>,
    /// The checkpoint, of any kind.
    pub source_path: ::std::string::String,
    /// Seconds until the copy is deleted; never when null, whenever the source is.
    #[serde(skip_serializing_if = "::std::option::Option::is_none")]
    pub ttl_seconds: ::std::option::Option<u64>,
    /// A key of a tenant that may read the checkpoint; the header `x-tinker-weights-access-token` is taken first.
    #[serde(skip_serializing_if = "::std::option::Option::is_none")]
    pub weights_access_token: ::std::option::Option<::std::string::String>,
}
/// Answer of `copy_weights`.
#[derive(::serde::Deserialize, ::serde::Serialize, Clone, Debug, PartialEq)]
pub struct CopyWeightsResponse {
    /// The copy.
    pub tinker_path: ::std::string::String,
}
/// Body of `messages/count_tokens`. Unknown fields are refused.
#[derive(::serde::Deserialize, ::serde::Serialize, Clone, Debug, PartialEq)]
#[serde(deny_unknown_fields)]
pub struct CountTokensRequest {
    /// Accepted and ignored.
    #[serde(skip_serializing_if = "::std::option::Option::is_none")]
    pub cache_control: ::std::option::Option<::serde_json::Value>,
    /// As in `messages`.
    pub messages: ::std::vec::Vec<AnthropicMessage>,
    /// As in `messages`.
    pub model: ::std::string::String,
    /// As in `messages`.
    #[serde(skip_serializing_if = "::std::option::Option::is_none")]
    pub output_config: ::std::option::Option<OutputConfig>,
    /// As in `messages`.
    #[serde(skip_serializing_if = "::std::option::Option::is_none")]
    pub system: ::std::option::Option<AnthropicContent>,
    /// As in `messages`.
    #[serde(skip_serializing_if = "::std::option::Option::is_none")]
    pub thinking: ::std::option::Option<Thinking>,
    /// As in `messages`.
    #[serde(skip_serializing_if = "::std::option::Option::is_none")]
    pub tool_choice: ::std::option::Option<ToolChoice>,
    /// As in `messages`.
    #[serde(skip_serializing_if = "::std::option::Option::is_none")]
    pub tools: ::std::option::Option<::std::vec::Vec<AnthropicTool>>,
}
/// Answer of `messages/count_tokens`.
#[derive(::serde::Deserialize, ::serde::Serialize, Clone, Debug, PartialEq)]
pub struct CountTokensResponse {
    /// Of the rendered prompt.
    pub input_tokens: u64,
}
/// Body of `create_custom_loss`.
#[derive(::serde::Deserialize, ::serde::Serialize, Clone, Debug, PartialEq)]
pub struct CreateCustomLossRequest {
    /// Counts the session's custom losses.
    pub custom_loss_seq_id: u64,
    /// `{"format": 1, "nodes": […]}`: the function as `torch.fx` traced it.
    pub graph: ::serde_json::Map<::std::string::String, ::serde_json::Value>,
    /// What the loss reads of each datum, in order: `{"name", "rank"}`. The first is `logprobs`.
    pub inputs: ::std::vec::Vec<
        ::serde_json::Map<::std::string::String, ::serde_json::Value>,
    >,
    /// Name of the function, for error texts.
    pub name: ::std::string::String,
    /// The client's session.
    pub session_id: ::std::string::String,
}
/// Body of `POST admin/keys`.
#[derive(::serde::Deserialize, ::serde::Serialize, Clone, Debug, PartialEq)]
pub struct CreateKeyRequest {
    /// Seconds from now after which it expires; absent for never.
    #[serde(skip_serializing_if = "::std::option::Option::is_none")]
    pub expires_in_seconds: ::std::option::Option<u32>,
    /// For people.
    pub name: ::std::string::String,
    /// For people.
    #[serde(skip_serializing_if = "::std::option::Option::is_none")]
    pub note: ::std::option::Option<::std::string::String>,
    /// `admin`, `member` (when absent) or `read-only`.
    #[serde(skip_serializing_if = "::std::option::Option::is_none")]
    pub role: ::std::option::Option<::std::string::String>,
    /// Cuts it to some of `train`, `sample`, `checkpoints` and `admin`.
    #[serde(skip_serializing_if = "::std::option::Option::is_none")]
    pub scopes: ::std::option::Option<::std::vec::Vec<::std::string::String>>,
    /// The email of the user whose it is; absent for one of the organisation's programs.
    #[serde(skip_serializing_if = "::std::option::Option::is_none")]
    pub user: ::std::option::Option<::std::string::String>,
}
/// Answer of `POST admin/keys`.
#[derive(::serde::Deserialize, ::serde::Serialize, Clone, Debug, PartialEq)]
pub struct CreateKeyResponse {
    /// What is known of it.
    pub details: ApiKey,
    /// The key. It is stored nowhere, and never shown again.
    pub key: ::std::string::String,
}
/// Body of `create_model`.
#[derive(::serde::Deserialize, ::serde::Serialize, Clone, Debug, PartialEq)]
pub struct CreateModelRequest {
    /// Name of the base model.
    pub base_model: ::std::string::String,
    /// The adapter; all parameters are trained without one.
    #[serde(skip_serializing_if = "::std::option::Option::is_none")]
    pub lora_config: ::std::option::Option<LoraConfig>,
    /// Counts the session's models.
    pub model_seq_id: u64,
    /// The optimizer family.
    #[serde(skip_serializing_if = "::std::option::Option::is_none")]
    pub optimizer_config: ::std::option::Option<OptimizerConfig>,
    /// The client's session.
    pub session_id: ::std::string::String,
    /// Stored with the run.
    #[serde(default, skip_serializing_if = "::serde_json::Map::is_empty")]
    pub user_metadata: ::serde_json::Map<::std::string::String, ::serde_json::Value>,
}
/// Body of `POST admin/organisations`.
#[derive(::serde::Deserialize, ::serde::Serialize, Clone, Debug, PartialEq)]
pub struct CreateOrganisationRequest {
    /// The tenant of its objects.
    pub name: ::std::string::String,
    /// Its admins manage all organisations.
    #[serde(skip_serializing_if = "::std::option::Option::is_none")]
    pub operator: ::std::option::Option<bool>,
}
/// Body of `POST admin/projects`.
#[derive(::serde::Deserialize, ::serde::Serialize, Clone, Debug, PartialEq)]
pub struct CreateProjectRequest {
    /// As sessions name it.
    pub id: ::std::string::String,
    /// For people.
    #[serde(skip_serializing_if = "::std::option::Option::is_none")]
    pub name: ::std::option::Option<::std::string::String>,
}
/// Body of `create_sampling_session`. With both, the base model is the checkpoint's or another name of its weights.
#[derive(::serde::Deserialize, ::serde::Serialize, Clone, Debug, PartialEq)]
pub struct CreateSamplingSessionRequest {
    /// A base model to sample from.
    #[serde(skip_serializing_if = "::std::option::Option::is_none")]
    pub base_model: ::std::option::Option<::std::string::String>,
    /// A sampler checkpoint to sample from.
    #[serde(skip_serializing_if = "::std::option::Option::is_none")]
    pub model_path: ::std::option::Option<::std::string::String>,
    /// Counts the session's sampling sessions.
    pub sampling_session_seq_id: u64,
    /// The client's session.
    pub session_id: ::std::string::String,
}
/// Answer of `create_sampling_session`.
#[derive(::serde::Deserialize, ::serde::Serialize, Clone, Debug, PartialEq)]
pub struct CreateSamplingSessionResponse {
    /// `<session>:sample:<n>`.
    pub sampling_session_id: ::std::string::String,
}
/// Body of `create_session`.
#[derive(::serde::Deserialize, ::serde::Serialize, Clone, Debug, Default, PartialEq)]
pub struct CreateSessionRequest {
    /// A name for people.
    #[serde(skip_serializing_if = "::std::option::Option::is_none")]
    pub display_name: ::std::option::Option<::std::string::String>,
    /// A project to count it under.
    #[serde(skip_serializing_if = "::std::option::Option::is_none")]
    pub project_id: ::std::option::Option<::std::string::String>,
    /// The client's version.
    #[serde(skip_serializing_if = "::std::option::Option::is_none")]
    pub sdk_version: ::std::option::Option<::std::string::String>,
    /// Labels.
    #[serde(default, skip_serializing_if = "::std::vec::Vec::is_empty")]
    pub tags: ::std::vec::Vec<::std::string::String>,
    /// Free-form.
    #[serde(default, skip_serializing_if = "::serde_json::Map::is_empty")]
    pub user_metadata: ::serde_json::Map<::std::string::String, ::serde_json::Value>,
}
/// Answer of `create_session`.
#[derive(::serde::Deserialize, ::serde::Serialize, Clone, Debug, PartialEq)]
pub struct CreateSessionResponse {
    /// The session; free of `:` and `/`.
    pub session_id: ::std::string::String,
}
/// Body of `POST admin/users`.
#[derive(::serde::Deserialize, ::serde::Serialize, Clone, Debug, PartialEq)]
pub struct CreateUserRequest {
    /// Names the user within the organisation.
    pub email: ::std::string::String,
    /// For people.
    #[serde(skip_serializing_if = "::std::option::Option::is_none")]
    pub name: ::std::option::Option<::std::string::String>,
    /// `admin`, `member` (when absent) or `read-only`.
    #[serde(skip_serializing_if = "::std::option::Option::is_none")]
    pub role: ::std::option::Option<::std::string::String>,
}
/// Where a page lies in its listing.
#[derive(::serde::Deserialize, ::serde::Serialize, Clone, Debug, PartialEq)]
pub struct Cursor {
    /// Most items asked for.
    pub limit: u32,
    /// Items skipped.
    pub offset: u64,
    /// Items in all.
    pub total_count: u64,
}
/// A training example in JSON.
#[derive(::serde::Deserialize, ::serde::Serialize, Clone, Debug, PartialEq)]
pub struct DatumBody {
    /// Inputs of the loss function by name.
    #[serde(default, skip_serializing_if = ":: std :: collections :: HashMap::is_empty")]
    pub loss_fn_inputs: ::std::collections::HashMap<::std::string::String, TensorData>,
    /// The input.
    pub model_input: ModelInput,
}
/// Body of every refusal.
#[derive(::serde::Deserialize, ::serde::Serialize, Clone, Debug, PartialEq)]
pub struct ErrorBody {
    /// What is wrong, naming the field.
    pub detail: ::std::string::String,
    /// The id of the HTTP request, as in the header `x-request-id`.
    #[serde(skip_serializing_if = "::std::option::Option::is_none")]
    pub x_request_id: ::std::option::Option<::std::string::String>,
}
/// Answer of `…/external_weights_urls`.
#[derive(::serde::Deserialize, ::serde::Serialize, Clone, Debug, PartialEq)]
pub struct ExternalUrlsResponse {
    /// When they stop working, RFC 3339.
    pub expires: ::std::string::String,
    /// Self-authorising URLs by file name.
    pub urls: ::std::collections::HashMap<::std::string::String, ::std::string::String>,
}
/// Answer of `retrieve_future` for a failed request. No other JSON answer has a key `error`.
#[derive(::serde::Deserialize, ::serde::Serialize, Clone, Debug, PartialEq)]
pub struct FailedResponse {
    /// `user`, `server` or `unknown`.
    pub category: ::std::string::String,
    /// What is wrong, naming the field.
    pub error: ::std::string::String,
}
/// How a session ended.
#[derive(
    ::serde::Deserialize,
    ::serde::Serialize,
    Clone,
    Copy,
    Debug,
    Eq,
    Hash,
    Ord,
    PartialEq,
    PartialOrd
)]
pub enum FinishKind {
    /// The alternative `Success`.
    #[serde(rename = "success")]
    Success,
    /// The alternative `Errored`.
    #[serde(rename = "errored")]
    Errored,
    /// The alternative `Interrupted`.
    #[serde(rename = "interrupted")]
    Interrupted,
}
impl ::std::fmt::Display for FinishKind {
    fn fmt(&self, f: &mut ::std::fmt::Formatter<'_>) -> ::std::fmt::Result {
        match *self {
            Self::Success => f.write_str("success"),
            Self::Errored => f.write_str("errored"),
            Self::Interrupted => f.write_str("interrupted"),
        }
    }
}
impl ::std::str::FromStr for FinishKind {
    type Err = self::error::ConversionError;
    fn from_str(
        value: &str,
    ) -> ::std::result::Result<Self, self::error::ConversionError> {
        match value {
            "success" => Ok(Self::Success),
            "errored" => Ok(Self::Errored),
            "interrupted" => Ok(Self::Interrupted),
            _ => Err("invalid value".into()),
        }
    }
}
/// Why a client finished its session.
#[derive(::serde::Deserialize, ::serde::Serialize, Clone, Debug, PartialEq)]
pub struct FinishReason {
    /// `success`, `errored` or `interrupted`.
    #[serde(rename = "type")]
    pub type_: FinishKind,
}
/// Body of `sessions/{id}/finish`.
#[derive(::serde::Deserialize, ::serde::Serialize, Clone, Debug, PartialEq)]
pub struct FinishRequest {
    /// More about it.
    #[serde(skip_serializing_if = "::std::option::Option::is_none")]
    pub detail: ::std::option::Option<::std::string::String>,
    /// Why.
    pub reason: FinishReason,
}
/// JSON body of `forward_backward`, as older clients send it.
#[derive(::serde::Deserialize, ::serde::Serialize, Clone, Debug, PartialEq)]
pub struct ForwardBackwardBody {
    /// What to compute.
    pub forward_backward_input: ForwardBackwardInput,
    /// The run.
    pub model_id: ::std::string::String,
    /// Its position in the run's order, from 1.
    pub seq_id: u64,
}
/// Examples and their loss.
#[derive(::serde::Deserialize, ::serde::Serialize, Clone, Debug, PartialEq)]
pub struct ForwardBackwardInput {
    /// Training examples.
    pub data: ::std::vec::Vec<DatumBody>,
    /// Name of the loss function.
    pub loss_fn: ::std::string::String,
    /// Settings of the loss function: numbers and texts.
    #[serde(default, skip_serializing_if = ":: std :: collections :: HashMap::is_empty")]
    pub loss_fn_config: ::std::collections::HashMap<::std::string::String, ConfigValue>,
}
/// JSON body of `forward`, as older clients send it.
#[derive(::serde::Deserialize, ::serde::Serialize, Clone, Debug, PartialEq)]
pub struct ForwardBody {
    /// What to compute.
    pub forward_input: ForwardBackwardInput,
    /// The run.
    pub model_id: ::std::string::String,
    /// Its position in the run's order, from 1.
    pub seq_id: u64,
}
/// A function with its arguments.
#[derive(::serde::Deserialize, ::serde::Serialize, Clone, Debug, PartialEq)]
pub struct FunctionCall {
    /// A JSON object, as text.
    pub arguments: ::std::string::String,
    /// Its name.
    pub name: ::std::string::String,
}
/// A finished future.
#[derive(::serde::Deserialize, ::serde::Serialize, Clone, Debug, PartialEq)]
#[serde(tag = "state")]
pub enum FutureCompletion {
    /// It has a result.
    #[serde(rename = "finished")]
    Finished {
        /// The future.
        request_id: ::std::string::String,
        /// Bytes of the result.
        response_payload_uncompressed_size: u64,
    },
    /// It failed.
    #[serde(rename = "failed")]
    Failed {
        /// The future.
        request_id: ::std::string::String,
    },
}
/// One, possibly cloned, sampling session.
#[derive(::serde::Deserialize, ::serde::Serialize, Clone, Debug, PartialEq)]
pub struct FuturesTarget {
    /// `seq_id` divided by 10^9.
    #[serde(skip_serializing_if = "::std::option::Option::is_none")]
    pub cloned_sampler_id: ::std::option::Option<u64>,
    /// The sampling session.
    pub sampling_session_id: ::std::string::String,
    /// `sampling_session`.
    #[serde(rename = "type", skip_serializing_if = "::std::option::Option::is_none")]
    pub type_: ::std::option::Option<::std::string::String>,
}
/// Body of `get_info`.
#[derive(::serde::Deserialize, ::serde::Serialize, Clone, Debug, PartialEq)]
pub struct GetInfoRequest {
    /// The run.
    pub model_id: ::std::string::String,
}
/// Answer of `get_info`.
#[derive(::serde::Deserialize, ::serde::Serialize, Clone, Debug, PartialEq)]
pub struct GetInfoResponse {
    /// Whether it trains an adapter.
    pub is_lora: bool,
    /// The adapter's rank.
    #[serde(skip_serializing_if = "::std::option::Option::is_none")]
    pub lora_rank: ::std::option::Option<u32>,
    /// Its base model.
    pub model_data: ModelData,
    /// The run.
    pub model_id: ::std::string::String,
    /// Name of the base model.
    pub model_name: ::std::string::String,
    /// Its optimizer family.
    pub optimizer_config: OptimizerConfig,
}
/// Answer of `healthz`.
#[derive(::serde::Deserialize, ::serde::Serialize, Clone, Debug, PartialEq)]
pub struct HealthResponse {
    /// `ok`, or what the server waits for.
    pub status: ::std::string::String,
}
/// Body of `session_heartbeat`.
#[derive(::serde::Deserialize, ::serde::Serialize, Clone, Debug, PartialEq)]
pub struct HeartbeatRequest {
    /// The session.
    pub session_id: ::std::string::String,
}
/// Answer of `session_heartbeat`: an empty object.
#[derive(::serde::Deserialize, ::serde::Serialize, Clone, Debug, PartialEq)]
#[serde(transparent)]
pub struct HeartbeatResponse(
    /// The field the value.
    pub ::serde_json::Map<::std::string::String, ::serde_json::Value>,
);
impl ::std::ops::Deref for HeartbeatResponse {
    type Target = ::serde_json::Map<::std::string::String, ::serde_json::Value>;
    fn deref(&self) -> &::serde_json::Map<::std::string::String, ::serde_json::Value> {
        &self.0
    }
}
impl ::std::convert::From<HeartbeatResponse>
for ::serde_json::Map<::std::string::String, ::serde_json::Value> {
    fn from(value: HeartbeatResponse) -> Self {
        value.0
    }
}
impl ::std::convert::From<::serde_json::Map<::std::string::String, ::serde_json::Value>>
for HeartbeatResponse {
    fn from(
        value: ::serde_json::Map<::std::string::String, ::serde_json::Value>,
    ) -> Self {
        Self(value)
    }
}
/// A refusal as the hub writes it.
#[derive(::serde::Deserialize, ::serde::Serialize, Clone, Debug, PartialEq)]
pub struct HubError {
    /// What there is none of.
    pub error: ::std::string::String,
}
/// Answer of `/`: what this is, and where its description and its health are.
#[derive(::serde::Deserialize, ::serde::Serialize, Clone, Debug, PartialEq)]
pub struct IndexResponse {
    /// Where the Tinker API is.
    pub api: ::std::string::String,
    /// Where the console is; absent where it is not served.
    #[serde(skip_serializing_if = "::std::option::Option::is_none")]
    pub console: ::std::option::Option<::std::string::String>,
    /// Where it is shown as a page.
    pub docs: ::std::string::String,
    /// Where to ask whether the models are loaded.
    pub health: ::std::string::String,
    /// Where to ask whether the process runs.
    pub liveness: ::std::string::String,
    /// `Trainyard`.
    pub name: ::std::string::String,
    /// Where this document is.
    pub openapi: ::std::string::String,
    /// Where to ask whether requests should be sent here.
    pub readiness: ::std::string::String,
    /// Of the program.
    pub version: ::std::string::String,
}
/// A piece of a model input. Only `encoded_text` is supported.
#[derive(::serde::Deserialize, ::serde::Serialize, Clone, Debug, Default, PartialEq)]
pub struct InputChunk {
    /// Token ids of `encoded_text`.
    #[serde(skip_serializing_if = "::std::option::Option::is_none")]
    pub tokens: ::std::option::Option<::std::vec::Vec<i64>>,
    /// `encoded_text`; `image`, `image_asset_pointer` and `dmel` are refused.
    #[serde(rename = "type", skip_serializing_if = "::std::option::Option::is_none")]
    pub type_: ::std::option::Option<::std::string::String>,
}
/// Body of `join_sampling_session`.
#[derive(::serde::Deserialize, ::serde::Serialize, Clone, Debug, PartialEq)]
pub struct JoinSamplingSessionRequest {
    /// The sampling session of the client that was cloned.
    pub sampling_session_id: ::std::string::String,
}
/// Answer of `join_sampling_session`.
#[derive(::serde::Deserialize, ::serde::Serialize, Clone, Debug, PartialEq)]
pub struct JoinSamplingSessionResponse {
    /// The clone's number, from 1; its `seq_id` begin with 10^9 times this.
    pub client_counter: u64,
}
/// A public key (RFC 8037).
#[derive(::serde::Deserialize, ::serde::Serialize, Clone, Debug, PartialEq)]
pub struct JwkResponse {
    /// Always `EdDSA`.
    pub alg: ::std::string::String,
    /// Always `Ed25519`.
    pub crv: ::std::string::String,
    /// Its name, which the header of a token has.
    pub kid: ::std::string::String,
    /// Always `OKP`.
    pub kty: ::std::string::String,
    /// Always `sig`.
    #[serde(rename = "use")]
    pub use_: ::std::string::String,
    /// The key, in base64url.
    pub x: ::std::string::String,
}
/// Answer of `/.well-known/jwks.json`: a JSON Web Key Set (RFC 7517).
#[derive(::serde::Deserialize, ::serde::Serialize, Clone, Debug, PartialEq)]
pub struct JwksResponse {
    /// The keys with which tokens are signed, former ones included whose tokens are still accepted.
    pub keys: ::std::vec::Vec<JwkResponse>,
}
/// Answer of `GET admin/keys`.
#[derive(::serde::Deserialize, ::serde::Serialize, Clone, Debug, PartialEq)]
pub struct KeysResponse {
    /// Oldest first.
    pub keys: ::std::vec::Vec<ApiKey>,
}
/// Where a limit is set.
#[derive(
    ::serde::Deserialize,
    ::serde::Serialize,
    Clone,
    Copy,
    Debug,
    Eq,
    Hash,
    Ord,
    PartialEq,
    PartialOrd
)]
pub enum LimitOrigin {
    /// The alternative `File`.
    #[serde(rename = "file")]
    File,
    /// The alternative `Store`.
    #[serde(rename = "store")]
    Store,
    /// The alternative `Default`.
    #[serde(rename = "default")]
    Default,
}
impl ::std::fmt::Display for LimitOrigin {
    fn fmt(&self, f: &mut ::std::fmt::Formatter<'_>) -> ::std::fmt::Result {
        match *self {
            Self::File => f.write_str("file"),
            Self::Store => f.write_str("store"),
            Self::Default => f.write_str("default"),
        }
    }
}
impl ::std::str::FromStr for LimitOrigin {
    type Err = self::error::ConversionError;
    fn from_str(
        value: &str,
    ) -> ::std::result::Result<Self, self::error::ConversionError> {
        match value {
            "file" => Ok(Self::File),
            "store" => Ok(Self::Store),
            "default" => Ok(Self::Default),
            _ => Err("invalid value".into()),
        }
    }
}
/// A limit of an organisation.
#[derive(::serde::Deserialize, ::serde::Serialize, Clone, Debug, PartialEq)]
pub struct LimitValue {
    /// Where it is set.
    pub origin: LimitOrigin,
    /// Its value; absent where it is not set.
    #[serde(skip_serializing_if = "::std::option::Option::is_none")]
    pub value: ::std::option::Option<u64>,
}
/// What an organisation is granted: answer of `GET` and `PUT admin/organisations/{organisation}/limits`.
#[derive(::serde::Deserialize, ::serde::Serialize, Clone, Debug, PartialEq)]
pub struct LimitsResponse {
    /// Bytes of their payloads.
    pub max_queued_bytes: LimitValue,
    /// Training requests that have not finished.
    pub max_queued_requests: LimitValue,
    /// Tokens of accepted requests that have not finished, beyond which samples get 429.
    pub max_queued_tokens: LimitValue,
    /// Training runs that may live at once.
    pub max_runs: LimitValue,
    /// Bytes of its checkpoints.
    pub max_storage_bytes: LimitValue,
    /// Rate limit: tokens of the requests that start.
    pub tokens_per_minute: LimitValue,
    /// Its share of a busy service, relative to the other organisations that have work.
    pub weight: LimitValue,
}
/// Body of `load_weights`. Creates a run with `session_id` and `model_seq_id`; loads into an existing one with
/// `model_id` and `seq_id`.
#[derive(::serde::Deserialize, ::serde::Serialize, Clone, Debug, PartialEq)]
pub struct LoadWeightsRequest {
    /// That of the new run: the checkpoint's, or another name of the same weights.
    #[serde(skip_serializing_if = "::std::option::Option::is_none")]
    pub base_model: ::std::option::Option<::std::string::String>,
    /// The existing run.
    #[serde(skip_serializing_if = "::std::option::Option::is_none")]
    pub model_id: ::std::option::Option<::std::string::String>,
    /// Counts the session's models.
    #[serde(skip_serializing_if = "::std::option::Option::is_none")]
    pub model_seq_id: ::std::option::Option<u64>,
    /// Restore the optimizer's state too.
    pub optimizer: bool,
    /// The new run's optimizer when its state is not restored.
    #[serde(skip_serializing_if = "::std::option::Option::is_none")]
    pub optimizer_config: ::std::option::Option<OptimizerConfig>,
    /// `tinker://<run>/weights/<name>`, or `tinker://<run>/external_weights/<name>` without its optimizer.
    pub path: ::std::string::String,
    /// Its position in that run's order.
    #[serde(skip_serializing_if = "::std::option::Option::is_none")]
    pub seq_id: ::std::option::Option<u64>,
    /// The session of the new run.
    #[serde(skip_serializing_if = "::std::option::Option::is_none")]
    pub session_id: ::std::option::Option<::std::string::String>,
    /// Stored with the new run.
    #[serde(default, skip_serializing_if = "::serde_json::Map::is_empty")]
    pub user_metadata: ::serde_json::Map<::std::string::String, ::serde_json::Value>,
    /// A key of a tenant that may read the checkpoint, where the caller may not.
    #[serde(skip_serializing_if = "::std::option::Option::is_none")]
    pub weights_access_token: ::std::option::Option<::std::string::String>,
}
/// A LoRA adapter. Unknown fields are refused.
#[derive(::serde::Deserialize, ::serde::Serialize, Clone, Debug, PartialEq)]
#[serde(deny_unknown_fields)]
pub struct LoraConfig {
    /// Rank; 0 trains all parameters.
    pub rank: u64,
    /// Seed of the start.
    #[serde(skip_serializing_if = "::std::option::Option::is_none")]
    pub seed: ::std::option::Option<i64>,
    /// Adapt the attention projections.
    #[serde(skip_serializing_if = "::std::option::Option::is_none")]
    pub train_attn: ::std::option::Option<bool>,
    /// Adapt the MLP projections.
    #[serde(skip_serializing_if = "::std::option::Option::is_none")]
    pub train_mlp: ::std::option::Option<bool>,
    /// Adapt the unembedding.
    #[serde(skip_serializing_if = "::std::option::Option::is_none")]
    pub train_unembed: ::std::option::Option<bool>,
}
/// Answer of `messages`, and the `message` of a stream's first event.
#[derive(::serde::Deserialize, ::serde::Serialize, Clone, Debug, PartialEq)]
pub struct MessageResponse {
    /// Thoughts, text and calls of tools, in their order.
    pub content: ::std::vec::Vec<ReplyBlock>,
    /// Of the request.
    pub id: ::std::string::String,
    /// As it was asked for.
    pub model: ::std::string::String,
    /// `assistant`.
    pub role: ::std::string::String,
    /// `end_turn`, `max_tokens`, `stop_sequence` or `tool_use`.
    #[serde(skip_serializing_if = "::std::option::Option::is_none")]
    pub stop_reason: ::std::option::Option<::std::string::String>,
    /// The stop sequence that was found.
    #[serde(skip_serializing_if = "::std::option::Option::is_none")]
    pub stop_sequence: ::std::option::Option<::std::string::String>,
    /// `message`.
    #[serde(rename = "type")]
    pub type_: ::std::string::String,
    /// Tokens of the request.
    pub usage: AnthropicUsage,
}
/// Body of `messages`. Unknown fields are refused.
#[derive(::serde::Deserialize, ::serde::Serialize, Clone, Debug, PartialEq)]
#[serde(deny_unknown_fields)]
pub struct MessagesRequest {
    /// Accepted and ignored: prompts are cached anyway.
    #[serde(skip_serializing_if = "::std::option::Option::is_none")]
    pub cache_control: ::std::option::Option<::serde_json::Value>,
    /// Refused: there are no containers.
    #[serde(skip_serializing_if = "::std::option::Option::is_none")]
    pub container: ::std::option::Option<::serde_json::Value>,
    /// Refused: contexts are not edited.
    #[serde(skip_serializing_if = "::std::option::Option::is_none")]
    pub context_management: ::std::option::Option<::serde_json::Value>,
    /// Most tokens to sample.
    pub max_tokens: u32,
    /// Refused unless it is empty.
    #[serde(skip_serializing_if = "::std::option::Option::is_none")]
    pub mcp_servers: ::std::option::Option<::std::vec::Vec<::serde_json::Value>>,
    /// The conversation so far; one that ends with the assistant's message is continued.
    pub messages: ::std::vec::Vec<AnthropicMessage>,
    /// Accepted and ignored.
    #[serde(skip_serializing_if = "::std::option::Option::is_none")]
    pub metadata: ::std::option::Option<::serde_json::Value>,
    /// A base model, a `tinker://` path of a sampler checkpoint, or `<base>;<path>`.
    pub model: ::std::string::String,
    /// How much effort the model makes, where its template has that.
    #[serde(skip_serializing_if = "::std::option::Option::is_none")]
    pub output_config: ::std::option::Option<OutputConfig>,
    /// Refused unless it is `auto` or `standard_only`.
    #[serde(skip_serializing_if = "::std::option::Option::is_none")]
    pub service_tier: ::std::option::Option<::std::string::String>,
    /// Each ends the reply; not part of its text.
    #[serde(skip_serializing_if = "::std::option::Option::is_none")]
    pub stop_sequences: ::std::option::Option<::std::vec::Vec<::std::string::String>>,
    /// Answer in server-sent events.
    #[serde(skip_serializing_if = "::std::option::Option::is_none")]
    pub stream: ::std::option::Option<bool>,
    /// Instructions before the conversation.
    #[serde(skip_serializing_if = "::std::option::Option::is_none")]
    pub system: ::std::option::Option<AnthropicContent>,
    /// Divides the logits; 0 is greedy, 1 when null.
    #[serde(skip_serializing_if = "::std::option::Option::is_none")]
    pub temperature: ::std::option::Option<f64>,
    /// Whether the model thinks before it answers, where its template has that.
    #[serde(skip_serializing_if = "::std::option::Option::is_none")]
    pub thinking: ::std::option::Option<Thinking>,
    /// `auto` or `none`.
    #[serde(skip_serializing_if = "::std::option::Option::is_none")]
    pub tool_choice: ::std::option::Option<ToolChoice>,
    /// Tools that the model may call.
    #[serde(skip_serializing_if = "::std::option::Option::is_none")]
    pub tools: ::std::option::Option<::std::vec::Vec<AnthropicTool>>,
    /// Keep the `k` most likely; -1 and 0 are off.
    #[serde(skip_serializing_if = "::std::option::Option::is_none")]
    pub top_k: ::std::option::Option<i64>,
    /// Keep the smallest set whose probability reaches `p`.
    #[serde(skip_serializing_if = "::std::option::Option::is_none")]
    pub top_p: ::std::option::Option<f64>,
}
/// The curve of a metric: three lists of the same length.
#[derive(::serde::Deserialize, ::serde::Serialize, Clone, Debug, PartialEq)]
pub struct MetricSeries {
    /// `forward`, `forward_backward` or `optim_step`.
    pub kind: ::std::string::String,
    /// Its name, as results have it.
    pub metric: ::std::string::String,
    /// Values in the range; more than the lists have if these were thinned out.
    pub recorded: u64,
    /// Optimizer steps of the run before the request.
    pub steps: ::std::vec::Vec<i64>,
    /// When the request ended, in ms since the epoch.
    pub times: ::std::vec::Vec<i64>,
    /// The values; null where a number was not finite.
    pub values: ::std::vec::Vec<::std::option::Option<f64>>,
}
/// Answer of `training_runs/{run_id}/metrics`.
#[derive(::serde::Deserialize, ::serde::Serialize, Clone, Debug, PartialEq)]
pub struct MetricsResponse {
    /// Requests in the range, of all kinds that were asked for.
    pub requests: u64,
    /// A curve for each kind of request and metric, in this order.
    pub series: ::std::vec::Vec<MetricSeries>,
    /// The run.
    pub training_run_id: ::std::string::String,
}
/// A base model as `get_info` describes it.
#[derive(::serde::Deserialize, ::serde::Serialize, Clone, Debug, PartialEq)]
pub struct ModelData {
    /// Its family.
    pub arch: ::std::string::String,
    /// Its name.
    pub model_name: ::std::string::String,
    /// Where its tokenizer is, when not under the model's name.
    #[serde(skip_serializing_if = "::std::option::Option::is_none")]
    pub tokenizer_id: ::std::option::Option<::std::string::String>,
}
/// A base model or a sampler checkpoint.
#[derive(::serde::Deserialize, ::serde::Serialize, Clone, Debug, PartialEq)]
pub struct ModelEntry {
    /// Seconds since 1970; 0 of base models.
    pub created: i64,
    /// Its name or path.
    pub id: ::std::string::String,
    /// Most tokens of prompt and completion together.
    pub max_model_len: u64,
    /// `model`.
    pub object: ::std::string::String,
    /// `trainyard` for base models, `user` for checkpoints.
    pub owned_by: ::std::string::String,
    /// The base model of a checkpoint.
    #[serde(skip_serializing_if = "::std::option::Option::is_none")]
    pub root: ::std::option::Option<::std::string::String>,
}
/// A model input, piece by piece.
#[derive(::serde::Deserialize, ::serde::Serialize, Clone, Debug, PartialEq)]
pub struct ModelInput {
    /// The pieces, in order; empty ones are allowed.
    pub chunks: ::std::vec::Vec<InputChunk>,
}
/// What may be named in the field `model`.
#[derive(::serde::Deserialize, ::serde::Serialize, Clone, Debug, PartialEq)]
pub struct ModelsResponse {
    /// The base models, then the caller's sampler checkpoints, newest first.
    pub data: ::std::vec::Vec<ModelEntry>,
    /// `list`.
    pub object: ::std::string::String,
}
/// A run was continued with other kernels, another type or another layout.
#[derive(::serde::Deserialize, ::serde::Serialize, Clone, Debug, PartialEq)]
pub struct NumericsChange {
    /// How it was computed: type, kernels, layout and version.
    pub from: ::std::string::String,
    /// When, RFC 3339.
    pub time: ::std::string::String,
    /// How it is computed from then on.
    pub to: ::std::string::String,
}
/// What is wrong with a request.
#[derive(::serde::Deserialize, ::serde::Serialize, Clone, Debug, PartialEq)]
pub struct OpenAiError {
    /// `model_not_found`, `invalid_api_key` …
    #[serde(skip_serializing_if = "::std::option::Option::is_none")]
    pub code: ::std::option::Option<::std::string::String>,
    /// For people.
    pub message: ::std::string::String,
    /// The field at fault.
    #[serde(skip_serializing_if = "::std::option::Option::is_none")]
    pub param: ::std::option::Option<::std::string::String>,
    /// `invalid_request_error`, `rate_limit_error`, `server_error` …
    #[serde(rename = "type")]
    pub type_: ::std::string::String,
}
/// A refused or failed request.
#[derive(::serde::Deserialize, ::serde::Serialize, Clone, Debug, PartialEq)]
pub struct OpenAiErrorResponse {
    /// What is wrong.
    pub error: OpenAiError,
}
/// Body of `optim_step`: exactly one of the two kinds of parameters.
#[derive(::serde::Deserialize, ::serde::Serialize, Clone, Debug, PartialEq)]
pub struct OptimStepRequest {
    /// Hyper-parameters of AdamW.
    #[serde(skip_serializing_if = "::std::option::Option::is_none")]
    pub adam_params: ::std::option::Option<AdamParamsBody>,
    /// The run.
    pub model_id: ::std::string::String,
    /// Hyper-parameters of another family; none is supported.
    #[serde(skip_serializing_if = "::std::option::Option::is_none")]
    pub optimizer_params: ::std::option::Option<
        ::serde_json::Map<::std::string::String, ::serde_json::Value>,
    >,
    /// Its position in the run's order, from 1.
    pub seq_id: u64,
}
/// An optimizer family; only `adamw` is supported.
#[derive(::serde::Deserialize, ::serde::Serialize, Clone, Debug, PartialEq)]
pub struct OptimizerConfig {
    /// Its name.
    #[serde(rename = "type")]
    pub type_: ::std::string::String,
}
/// An organisation: the tenant that owns sessions, runs and checkpoints.
#[derive(::serde::Deserialize, ::serde::Serialize, Clone, Debug, PartialEq)]
pub struct Organisation {
    /// When it was created.
    pub created_at: ::std::string::String,
    /// Since when none of its keys and tokens is accepted.
    #[serde(skip_serializing_if = "::std::option::Option::is_none")]
    pub disabled_at: ::std::option::Option<::std::string::String>,
    /// For people.
    pub display_name: ::std::string::String,
    /// The tenant of its objects.
    pub name: ::std::string::String,
    /// Its admins manage all organisations.
    pub operator: bool,
}
/// Answer of `GET admin/organisations`.
#[derive(::serde::Deserialize, ::serde::Serialize, Clone, Debug, PartialEq)]
pub struct OrganisationsResponse {
    /// Those that the caller manages, by name.
    pub organisations: ::std::vec::Vec<Organisation>,
}
/// The form of the output.
#[derive(::serde::Deserialize, ::serde::Serialize, Clone, Debug, Default, PartialEq)]
#[serde(deny_unknown_fields)]
pub struct OutputConfig {
    /// A preset such as `low`, or a number, for models whose template has it.
    #[serde(skip_serializing_if = "::std::option::Option::is_none")]
    pub effort: ::std::option::Option<::serde_json::Value>,
    /// Refused unless it is null.
    #[serde(skip_serializing_if = "::std::option::Option::is_none")]
    pub format: ::std::option::Option<::serde_json::Value>,
}
/// Whose a key is.
#[derive(::serde::Deserialize, ::serde::Serialize, Clone, Debug, PartialEq)]
pub struct OwnKeyDetails {
    /// The organisation.
    pub org_details: OwnKeyOrganisation,
    /// The user.
    pub user_details: OwnKeyUser,
}
/// The organisation of a key.
#[derive(::serde::Deserialize, ::serde::Serialize, Clone, Debug, PartialEq)]
pub struct OwnKeyOrganisation {
    /// Its name.
    pub name: ::std::string::String,
}
/// Answer of `GET auth/apikey/me`.
#[derive(::serde::Deserialize, ::serde::Serialize, Clone, Debug, PartialEq)]
pub struct OwnKeyResponse {
    /// Whose it is.
    pub details: OwnKeyDetails,
    /// Names the key; 0 where the store does not have it.
    pub key_id: i64,
    /// For people.
    pub name: ::std::string::String,
    /// For people.
    pub note: ::std::string::String,
}
/// The user of a key.
#[derive(::serde::Deserialize, ::serde::Serialize, Clone, Debug, PartialEq)]
pub struct OwnKeyUser {
    /// The user's email; empty for a key that is no user's.
    pub email: ::std::string::String,
}
/// A project.
#[derive(::serde::Deserialize, ::serde::Serialize, Clone, Debug, PartialEq)]
pub struct Project {
    /// When it was created.
    pub created_at: ::std::string::String,
    /// As sessions name it.
    pub id: ::std::string::String,
    /// For people.
    pub name: ::std::string::String,
}
/// Answer of `GET admin/projects`.
#[derive(::serde::Deserialize, ::serde::Serialize, Clone, Debug, PartialEq)]
pub struct ProjectsResponse {
    /// By id.
    pub projects: ::std::vec::Vec<Project>,
}
/// Tokens sampled independently per prompt position.
#[derive(::serde::Deserialize, ::serde::Serialize, Clone, Debug, PartialEq)]
pub struct PromptAltTokensResult {
    /// Their log-probabilities.
    pub logprobs: TensorData,
    /// Token ids.
    pub tokens: TensorData,
}
/// Tokens of the prompts.
#[derive(::serde::Deserialize, ::serde::Serialize, Clone, Debug, PartialEq)]
pub struct PromptTokensDetails {
    /// Served from the prefix cache.
    pub cached_tokens: u64,
}
/// Answer of `/readyz`.
#[derive(::serde::Deserialize, ::serde::Serialize, Clone, Debug, PartialEq)]
pub struct ReadyResponse {
    /// `ok` or what is wrong, by check.
    pub checks: ::std::collections::HashMap<
        ::std::string::String,
        ::std::string::String,
    >,
    /// `ok`, `degraded` while a disk is almost full, or `not ready`.
    pub status: ::std::string::String,
}
/// A part of the reply.
#[derive(::serde::Deserialize, ::serde::Serialize, Clone, Debug, PartialEq)]
#[serde(tag = "type")]
pub enum ReplyBlock {
    /// Said.
    #[serde(rename = "text")]
    Text {
        /// The text.
        text: ::std::string::String,
    },
    /// Thought.
    #[serde(rename = "thinking")]
    Thinking {
        /// Always empty.
        signature: ::std::string::String,
        /// The text.
        thinking: ::std::string::String,
    },
    /// A call of a tool.
    #[serde(rename = "tool_use")]
    ToolUse {
        /// Names the call.
        id: ::std::string::String,
        /// The arguments.
        input: ::serde_json::Value,
        /// The tool.
        name: ::std::string::String,
    },
}
/// The form of a reply.
#[derive(::serde::Deserialize, ::serde::Serialize, Clone, Debug, PartialEq)]
#[serde(deny_unknown_fields)]
pub struct ResponseFormat {
    /// Of the type `json_schema`: its `name` and its `schema`.
    #[serde(skip_serializing_if = "::std::option::Option::is_none")]
    pub json_schema: ::std::option::Option<::serde_json::Value>,
    /// `text`.
    #[serde(rename = "type")]
    pub type_: ::std::string::String,
}
/// Body of `retrieve_future`.
#[derive(::serde::Deserialize, ::serde::Serialize, Clone, Debug, PartialEq)]
pub struct RetrieveFutureRequest {
    /// The server may answer with the size alone; this one never does.
    #[serde(skip_serializing_if = "::std::option::Option::is_none")]
    pub allow_metadata_only: ::std::option::Option<bool>,
    /// The future.
    pub request_id: ::std::string::String,
}
/// The JSON answers of `retrieve_future`, for the API's description: the first that fits.
#[derive(::serde::Deserialize, ::serde::Serialize, Clone, Debug, PartialEq)]
#[serde(untagged)]
pub enum RetrieveFutureResponse {
    /// The alternative `TryAgainResponse`.
    TryAgainResponse(TryAgainResponse),
    /// The alternative `FailedResponse`.
    FailedResponse(FailedResponse),
    /// The alternative `SampleResult`.
    SampleResult(SampleResult),
    /// The alternative `TrainingResult`.
    TrainingResult(TrainingResult),
    /// The alternative `Object`.
    Object(::serde_json::Map<::std::string::String, ::serde_json::Value>),
}
impl ::std::convert::From<TryAgainResponse> for RetrieveFutureResponse {
    fn from(value: TryAgainResponse) -> Self {
        Self::TryAgainResponse(value)
    }
}
impl ::std::convert::From<FailedResponse> for RetrieveFutureResponse {
    fn from(value: FailedResponse) -> Self {
        Self::FailedResponse(value)
    }
}
impl ::std::convert::From<SampleResult> for RetrieveFutureResponse {
    fn from(value: SampleResult) -> Self {
        Self::SampleResult(value)
    }
}
impl ::std::convert::From<TrainingResult> for RetrieveFutureResponse {
    fn from(value: TrainingResult) -> Self {
        Self::TrainingResult(value)
    }
}
impl ::std::convert::From<::serde_json::Map<::std::string::String, ::serde_json::Value>>
for RetrieveFutureResponse {
    fn from(
        value: ::serde_json::Map<::std::string::String, ::serde_json::Value>,
    ) -> Self {
        Self::Object(value)
    }
}
/// Body of `retrieve_futures`.
#[derive(::serde::Deserialize, ::serde::Serialize, Clone, Debug, PartialEq)]
pub struct RetrieveFuturesRequest {
    /// The cursor of the last answer; 0 at first.
    #[serde(skip_serializing_if = "::std::option::Option::is_none")]
    pub prev_cursor: ::std::option::Option<u64>,
    /// Results that the server may drop: at most 16,384 ids of 64 bytes. A key that may only read drops none.
    #[serde(default, skip_serializing_if = "::std::vec::Vec::is_empty")]
    pub retrieved_request_ids: ::std::vec::Vec<::std::string::String>,
    /// Whose completions.
    pub target: FuturesTarget,
    /// Seconds to wait; the server's choice when null, 0 returns at once.
    #[serde(skip_serializing_if = "::std::option::Option::is_none")]
    pub timeout: ::std::option::Option<f64>,
}
/// Answer of `retrieve_futures`.
#[derive(::serde::Deserialize, ::serde::Serialize, Clone, Debug, PartialEq)]
pub struct RetrieveFuturesResponse {
    /// What finished after `prev_cursor`.
    pub completions: ::std::vec::Vec<FutureCompletion>,
    /// Covers exactly the completions above.
    pub cursor: i64,
}
/// Answer of `admin/signing_keys/rotate`.
#[derive(::serde::Deserialize, ::serde::Serialize, Clone, Debug, PartialEq)]
pub struct RotateSigningResponse {
    /// How many keys were withdrawn.
    pub withdrawn: i64,
}
/// Body of `asample`.
#[derive(::serde::Deserialize, ::serde::Serialize, Clone, Debug, PartialEq)]
pub struct SampleRequest {
    /// Completions to sample.
    #[serde(skip_serializing_if = "::std::option::Option::is_none")]
    pub num_samples: ::std::option::Option<u32>,
    /// What to complete.
    pub prompt: ModelInput,
    /// Tokens sampled independently per prompt position; 0 is off.
    #[serde(skip_serializing_if = "::std::option::Option::is_none")]
    pub prompt_alt_tokens_k: ::std::option::Option<u32>,
    /// Return the prompt's log-probabilities.
    #[serde(skip_serializing_if = "::std::option::Option::is_none")]
    pub prompt_logprobs: ::std::option::Option<bool>,
    /// Only the last `n` prompt positions.
    #[serde(skip_serializing_if = "::std::option::Option::is_none")]
    pub prompt_logprobs_last_n: ::std::option::Option<u32>,
    /// Keep the log-probabilities of the sampled tokens, so that training requests may name them by `sequence_id`: until a
    /// day after the last use.
    #[serde(skip_serializing_if = "::std::option::Option::is_none")]
    pub record_stability_info: ::std::option::Option<bool>,
    /// How to sample.
    #[serde(skip_serializing_if = "::std::option::Option::is_none")]
    pub sampling_params: ::std::option::Option<SamplingParams>,
    /// The sampling session.
    pub sampling_session_id: ::std::string::String,
    /// Identifies the request within the sampling session.
    pub seq_id: u64,
    /// `int64` token ids `[len(prompt) - 1, K]` whose log-probabilities to return; -1 skips a cell.
    #[serde(skip_serializing_if = "::std::option::Option::is_none")]
    pub target_prompt_logprobs: ::std::option::Option<TensorData>,
    /// Candidates per prompt position; 0 is off.
    #[serde(skip_serializing_if = "::std::option::Option::is_none")]
    pub topk_prompt_logprobs: ::std::option::Option<u32>,
    /// Candidates per sampled token; 0 is off.
    #[serde(skip_serializing_if = "::std::option::Option::is_none")]
    pub topk_sample_logprobs: ::std::option::Option<u32>,
}
/// Result of `asample`.
#[derive(::serde::Deserialize, ::serde::Serialize, Clone, Debug, PartialEq)]
pub struct SampleResult {
    /// Tokens sampled at every prompt position after the first.
    #[serde(skip_serializing_if = "::std::option::Option::is_none")]
    pub prompt_alt_tokens: ::std::option::Option<PromptAltTokensResult>,
    /// Prompt tokens served from the prefix cache.
    pub prompt_cache_hit_tokens: i32,
    /// One number per prompt token; null where there is none.
    #[serde(skip_serializing_if = "::std::option::Option::is_none")]
    pub prompt_logprobs: ::std::option::Option<
        ::std::vec::Vec<::std::option::Option<f32>>,
    >,
    /// In the order of the submission's sequence ids.
    pub sequences: ::std::vec::Vec<SequenceResult>,
    /// In the request's shape and layout.
    #[serde(skip_serializing_if = "::std::option::Option::is_none")]
    pub target_prompt_logprobs: ::std::option::Option<TensorData>,
    /// For each prompt token up to k pairs of token id and log-probability, or null.
    #[serde(skip_serializing_if = "::std::option::Option::is_none")]
    pub topk_prompt_logprobs: ::std::option::Option<
        ::std::vec::Vec<::std::option::Option<::std::vec::Vec<::std::vec::Vec<f64>>>>,
    >,
    /// `sample`.
    #[serde(rename = "type")]
    pub type_: ::std::string::String,
}
/// Whether later saves change a sampler.
#[derive(
    ::serde::Deserialize,
    ::serde::Serialize,
    Clone,
    Copy,
    Debug,
    Eq,
    Hash,
    Ord,
    PartialEq,
    PartialOrd
)]
pub enum SamplerKind {
    /// The alternative `Snapshot`.
    #[serde(rename = "snapshot")]
    Snapshot,
    /// The alternative `Inflight`.
    #[serde(rename = "inflight")]
    Inflight,
}
impl ::std::fmt::Display for SamplerKind {
    fn fmt(&self, f: &mut ::std::fmt::Formatter<'_>) -> ::std::fmt::Result {
        match *self {
            Self::Snapshot => f.write_str("snapshot"),
            Self::Inflight => f.write_str("inflight"),
        }
    }
}
impl ::std::str::FromStr for SamplerKind {
    type Err = self::error::ConversionError;
    fn from_str(
        value: &str,
    ) -> ::std::result::Result<Self, self::error::ConversionError> {
        match value {
            "snapshot" => Ok(Self::Snapshot),
            "inflight" => Ok(Self::Inflight),
            _ => Err("invalid value".into()),
        }
    }
}
/// Answer of `samplers/{id}`.
#[derive(::serde::Deserialize, ::serde::Serialize, Clone, Debug, PartialEq)]
pub struct SamplerResponse {
    /// Its base model.
    pub base_model: ::std::string::String,
    /// Its checkpoint, unless it samples from a base model or from memory.
    #[serde(skip_serializing_if = "::std::option::Option::is_none")]
    pub model_path: ::std::option::Option<::std::string::String>,
    /// The sampling session.
    pub sampler_id: ::std::string::String,
}
/// How tokens are sampled. Unknown fields are refused: a setting that is ignored would mislead.
#[derive(::serde::Deserialize, ::serde::Serialize, Clone, Debug, PartialEq)]
#[serde(deny_unknown_fields)]
pub struct SamplingParams {
    /// Subtracted from the logits of tokens each time that the completion holds them.
    #[serde(default = "defaults::sampling_params_frequency_penalty")]
    pub frequency_penalty: f64,
    /// A JSON schema that the completion follows.
    #[serde(skip_serializing_if = "::std::option::Option::is_none")]
    pub json_schema: ::std::option::Option<::serde_json::Value>,
    /// Added to the logits of tokens, by token id, each between -100 and 100.
    #[serde(skip_serializing_if = "::std::option::Option::is_none")]
    pub logit_bias: ::std::option::Option<::serde_json::Value>,
    /// Most tokens to sample; up to the context limit when null.
    #[serde(skip_serializing_if = "::std::option::Option::is_none")]
    pub max_tokens: ::std::option::Option<u32>,
    /// Tokens less likely than this fraction of the most likely one are not sampled; 0 is off.
    #[serde(default = "defaults::sampling_params_min_p")]
    pub min_p: f64,
    /// Subtracted from the logits of tokens that the completion holds.
    #[serde(default = "defaults::sampling_params_presence_penalty")]
    pub presence_penalty: f64,
    /// Divides positive logits of tokens that prompt or completion hold, and multiplies negative ones; 1 is off.
    #[serde(default = "defaults::sampling_params_repetition_penalty")]
    pub repetition_penalty: f64,
    /// Makes sampling repeatable.
    #[serde(skip_serializing_if = "::std::option::Option::is_none")]
    pub seed: ::std::option::Option<i64>,
    /// A string, strings, token ids, or an empty list to switch all stopping off; the model's end tokens when
    /// null.
    #[serde(skip_serializing_if = "::std::option::Option::is_none")]
    pub stop: ::std::option::Option<::serde_json::Value>,
    /// Divides the logits; 0 is greedy.
    #[serde(default = "defaults::sampling_params_temperature")]
    pub temperature: f64,
    /// Keep the `k` most likely; -1 is off.
    #[serde(default = "defaults::default_i64::<i64, -1>")]
    pub top_k: i64,
    /// Keep the smallest set whose probability reaches `p`; 1 is off.
    #[serde(default = "defaults::sampling_params_top_p")]
    pub top_p: f64,
}
impl ::std::default::Default for SamplingParams {
    fn default() -> Self {
        Self {
            frequency_penalty: defaults::sampling_params_frequency_penalty(),
            json_schema: Default::default(),
            logit_bias: Default::default(),
            max_tokens: Default::default(),
            min_p: defaults::sampling_params_min_p(),
            presence_penalty: defaults::sampling_params_presence_penalty(),
            repetition_penalty: defaults::sampling_params_repetition_penalty(),
            seed: Default::default(),
            stop: Default::default(),
            temperature: defaults::sampling_params_temperature(),
            top_k: defaults::default_i64::<i64, -1>(),
            top_p: defaults::sampling_params_top_p(),
        }
    }
}
/// Body of `save_weights_external`.
#[derive(::serde::Deserialize, ::serde::Serialize, Clone, Debug, PartialEq)]
pub struct SaveWeightsExternalRequest {
    /// Recipients in the age format (`age1…`, at most 10), to whom each file is encrypted: it gets the suffix `.age`.
    #[serde(default, skip_serializing_if = "::std::vec::Vec::is_empty")]
    pub age_encryption_recipients: ::std::vec::Vec<::std::string::String>,
    /// The run.
    pub model_id: ::std::string::String,
    /// The checkpoint's bare name.
    pub path: ::std::string::String,
    /// Its position in the run's order, from 1.
    pub seq_id: u64,
    /// Seconds until it is deleted; never when null.
    #[serde(skip_serializing_if = "::std::option::Option::is_none")]
    pub ttl_seconds: ::std::option::Option<u64>,
}
/// Body of `save_weights_for_sampler`: named with `path`, ephemeral with `sampling_session_seq_id`.
#[derive(::serde::Deserialize, ::serde::Serialize, Clone, Debug, PartialEq)]
pub struct SaveWeightsForSamplerRequest {
    /// Whether later saves change it.
    #[serde(skip_serializing_if = "::std::option::Option::is_none")]
    pub kind: ::std::option::Option<SamplerKind>,
    /// The run.
    pub model_id: ::std::string::String,
    /// The checkpoint's bare name.
    #[serde(skip_serializing_if = "::std::option::Option::is_none")]
    pub path: ::std::option::Option<::std::string::String>,
    /// Counts the session's sampling sessions.
    #[serde(skip_serializing_if = "::std::option::Option::is_none")]
    pub sampling_session_seq_id: ::std::option::Option<u64>,
    /// Its position in the run's order, from 1.
    pub seq_id: u64,
    /// Seconds until a named one is deleted; never when null.
    #[serde(skip_serializing_if = "::std::option::Option::is_none")]
    pub ttl_seconds: ::std::option::Option<u64>,
    /// Stored with a named one.
    #[serde(default, skip_serializing_if = ":: std :: collections :: HashMap::is_empty")]
    pub user_metadata: ::std::collections::HashMap<
        ::std::string::String,
        ::std::string::String,
    >,
}
/// Body of `save_weights`.
#[derive(::serde::Deserialize, ::serde::Serialize, Clone, Debug, PartialEq)]
pub struct SaveWeightsRequest {
    /// The run.
    pub model_id: ::std::string::String,
    /// Replace a checkpoint of that name.
    #[serde(skip_serializing_if = "::std::option::Option::is_none")]
    pub overwrite: ::std::option::Option<bool>,
    /// The checkpoint's bare name.
    pub path: ::std::string::String,
    /// Its position in the run's order, from 1.
    pub seq_id: u64,
    /// Seconds until it is deleted; never when null.
    #[serde(skip_serializing_if = "::std::option::Option::is_none")]
    pub ttl_seconds: ::std::option::Option<u64>,
    /// Stored with the checkpoint.
    #[serde(default, skip_serializing_if = ":: std :: collections :: HashMap::is_empty")]
    pub user_metadata: ::std::collections::HashMap<
        ::std::string::String,
        ::std::string::String,
    >,
}
/// Where the next page begins.
#[derive(::serde::Deserialize, ::serde::Serialize, Clone, Debug, PartialEq)]
pub struct SearchCursor {
    /// Of the page's last session, RFC 3339.
    pub last_created_at: ::std::string::String,
    /// Its id.
    pub last_session_id: ::std::string::String,
}
/// Whose sessions are searched.
#[derive(::serde::Deserialize, ::serde::Serialize, Clone, Debug, PartialEq)]
#[serde(tag = "type", content = "owner_urns")]
pub enum SearchOwner {
    /// The alternative `Own`.
    #[serde(rename = "own")]
    Own,
    /// The alternative `Accessible`.
    #[serde(rename = "accessible")]
    Accessible,
    /// Those of these owners, as far as the caller may see them.
    #[serde(rename = "user")]
    User(::std::vec::Vec<::std::string::String>),
}
impl ::std::convert::From<::std::vec::Vec<::std::string::String>> for SearchOwner {
    fn from(value: ::std::vec::Vec<::std::string::String>) -> Self {
        Self::User(value)
    }
}
/// One completion.
#[derive(::serde::Deserialize, ::serde::Serialize, Clone, Debug, PartialEq)]
pub struct SequenceResult {
    /// One per token.
    #[serde(skip_serializing_if = "::std::option::Option::is_none")]
    pub logprobs: ::std::option::Option<::std::vec::Vec<f32>>,
    /// `stop` or `length`.
    pub stop_reason: ::std::string::String,
    /// Sampled token ids.
    pub tokens: ::std::vec::Vec<i32>,
    /// For each token up to k pairs of token id and log-probability, or null.
    #[serde(skip_serializing_if = "::std::option::Option::is_none")]
    pub topk_logprobs: ::std::option::Option<
        ::std::vec::Vec<::std::option::Option<::std::vec::Vec<::std::vec::Vec<f64>>>>,
    >,
}
/// Answer of `get_server_capabilities`.
#[derive(::serde::Deserialize, ::serde::Serialize, Clone, Debug, PartialEq)]
pub struct ServerCapabilities {
    /// The base models.
    pub supported_models: ::std::vec::Vec<SupportedModel>,
}
/// One of the events that a stream consists of, in the order of their fields.
#[derive(::serde::Deserialize, ::serde::Serialize, Clone, Debug, PartialEq)]
pub struct ServerSentEvent {
    /// JSON; at the end of a stream of the OpenAI API `[DONE]`.
    pub data: ::std::string::String,
    /// Its type; absent in streams of the OpenAI API.
    #[serde(skip_serializing_if = "::std::option::Option::is_none")]
    pub event: ::std::option::Option<::std::string::String>,
}
/// Body of `sessions/{id}/project`.
#[derive(::serde::Deserialize, ::serde::Serialize, Clone, Debug, PartialEq)]
pub struct SessionProjectRequest {
    /// The project; a free text.
    pub project_id: ::std::string::String,
}
/// Answer of `sessions/{id}`.
#[derive(::serde::Deserialize, ::serde::Serialize, Clone, Debug, PartialEq)]
pub struct SessionResponse {
    /// A name for people.
    #[serde(skip_serializing_if = "::std::option::Option::is_none")]
    pub display_name: ::std::option::Option<::std::string::String>,
    /// Its sampling sessions.
    pub sampler_ids: ::std::vec::Vec<::std::string::String>,
    /// Its training runs.
    pub training_run_ids: ::std::vec::Vec<::std::string::String>,
    /// As given at creation; values that are not text are written as JSON.
    pub user_metadata: ::std::collections::HashMap<
        ::std::string::String,
        ::std::string::String,
    >,
}
/// Body of `sessions/search`: everything that is given must hold. With both `session_id` and `display_name`, a session that
/// matches either one matches.
#[derive(::serde::Deserialize, ::serde::Serialize, Clone, Debug, Default, PartialEq)]
pub struct SessionSearchRequest {
    /// `next_cursor` of the page before.
    #[serde(skip_serializing_if = "::std::option::Option::is_none")]
    pub cursor: ::std::option::Option<SearchCursor>,
    /// Words that all occur in the display name, in any case.
    #[serde(skip_serializing_if = "::std::option::Option::is_none")]
    pub display_name: ::std::option::Option<::std::string::String>,
    /// Most sessions to return.
    #[serde(skip_serializing_if = "::std::option::Option::is_none")]
    pub limit: ::std::option::Option<u32>,
    /// Whose sessions.
    #[serde(skip_serializing_if = "::std::option::Option::is_none")]
    pub owner: ::std::option::Option<SearchOwner>,
    /// In one of these projects.
    #[serde(skip_serializing_if = "::std::option::Option::is_none")]
    pub project_ids: ::std::option::Option<::std::vec::Vec<::std::string::String>>,
    /// This session.
    #[serde(skip_serializing_if = "::std::option::Option::is_none")]
    pub session_id: ::std::option::Option<::std::string::String>,
    /// With one of these statuses.
    #[serde(skip_serializing_if = "::std::option::Option::is_none")]
    pub statuses: ::std::option::Option<::std::vec::Vec<StatusQuery>>,
    /// With these entries.
    #[serde(default, skip_serializing_if = ":: std :: collections :: HashMap::is_empty")]
    pub user_metadata: ::std::collections::HashMap<
        ::std::string::String,
        ::std::string::String,
    >,
}
/// Answer of `sessions/search`.
#[derive(::serde::Deserialize, ::serde::Serialize, Clone, Debug, PartialEq)]
pub struct SessionSearchResponse {
    /// Where to go on; absent when there are no more.
    #[serde(skip_serializing_if = "::std::option::Option::is_none")]
    pub next_cursor: ::std::option::Option<SearchCursor>,
    /// Newest first. There may be fewer than `limit` although `next_cursor` is given.
    pub sessions: ::std::vec::Vec<SessionSummary>,
}
/// A session that was found.
#[derive(::serde::Deserialize, ::serde::Serialize, Clone, Debug, PartialEq)]
pub struct SessionSummary {
    /// Bytes of their files.
    pub checkpoint_storage_bytes: u64,
    /// Checkpoints of its runs.
    pub checkpoints_count: u64,
    /// RFC 3339.
    pub created_at: ::std::string::String,
    /// A name for people.
    #[serde(skip_serializing_if = "::std::option::Option::is_none")]
    pub display_name: ::std::option::Option<::std::string::String>,
    /// Its tenant.
    pub owner: ::std::string::String,
    /// Its project; empty when it is in none.
    pub project_id: ::std::string::String,
    /// Its id.
    pub session_id: ::std::string::String,
    /// Absent when its heartbeats stopped.
    #[serde(skip_serializing_if = "::std::option::Option::is_none")]
    pub status: ::std::option::Option<StatusSummary>,
    /// As given at creation; values that are not text are written as JSON.
    pub user_metadata: ::std::collections::HashMap<
        ::std::string::String,
        ::std::string::String,
    >,
}
/// Answer of `sessions`.
#[derive(::serde::Deserialize, ::serde::Serialize, Clone, Debug, PartialEq)]
pub struct SessionsResponse {
    /// Ids, newest first.
    pub sessions: ::std::vec::Vec<::std::string::String>,
}
/// A status that is searched for.
#[derive(::serde::Deserialize, ::serde::Serialize, Clone, Debug, PartialEq)]
#[serde(tag = "type")]
pub enum StatusQuery {
    /// The alternative `Active`.
    #[serde(rename = "active")]
    Active,
    /// The alternative `Cancelled`.
    #[serde(rename = "cancelled")]
    Cancelled,
    /// The alternative `Failed`.
    #[serde(rename = "failed")]
    Failed,
    /// Its client ended it.
    #[serde(rename = "client_finished")]
    ClientFinished {
        /// For one of these reasons; for any when absent.
        #[serde(skip_serializing_if = "::std::option::Option::is_none")]
        reasons: ::std::option::Option<::std::vec::Vec<FinishKind>>,
    },
}
/// The status of a session that was found.
#[derive(::serde::Deserialize, ::serde::Serialize, Clone, Debug, PartialEq)]
#[serde(tag = "type")]
pub enum StatusSummary {
    /// The alternative `Active`.
    #[serde(rename = "active")]
    Active,
    /// Its client ended it.
    #[serde(rename = "client_finished")]
    ClientFinished {
        /// More about it.
        #[serde(skip_serializing_if = "::std::option::Option::is_none")]
        detail: ::std::option::Option<::std::string::String>,
        /// Why.
        reason: FinishReason,
    },
}
/// One stop string, or several.
#[derive(::serde::Deserialize, ::serde::Serialize, Clone, Debug, PartialEq)]
#[serde(untagged)]
pub enum StopStrings {
    /// The alternative `String`.
    String(::std::string::String),
    /// The alternative `Array`.
    Array(::std::vec::Vec<::std::string::String>),
}
impl ::std::convert::From<::std::vec::Vec<::std::string::String>> for StopStrings {
    fn from(value: ::std::vec::Vec<::std::string::String>) -> Self {
        Self::Array(value)
    }
}
/// What is stored now.
#[derive(::serde::Deserialize, ::serde::Serialize, Clone, Debug, PartialEq)]
pub struct StorageInUse {
    /// Checkpoints.
    pub checkpoint_count: u64,
    /// The project of the sessions.
    #[serde(skip_serializing_if = "::std::option::Option::is_none")]
    pub project_id: ::std::option::Option<::std::string::String>,
    /// Bytes of all their files.
    pub size_bytes: u64,
    /// The same in 10^9 bytes.
    pub size_gigabytes: f64,
    /// The email of the user whose keys created the sessions.
    #[serde(skip_serializing_if = "::std::option::Option::is_none")]
    pub user_email: ::std::option::Option<::std::string::String>,
}
/// Answer of `billing/usage/checkpoints/current`.
#[derive(::serde::Deserialize, ::serde::Serialize, Clone, Debug, PartialEq)]
pub struct StorageResponse {
    /// By project and user.
    pub data: ::std::vec::Vec<StorageInUse>,
}
/// Of a stream.
#[derive(::serde::Deserialize, ::serde::Serialize, Clone, Debug, Default, PartialEq)]
#[serde(deny_unknown_fields)]
pub struct StreamOptions {
    /// Accepted and ignored: nothing is padded.
    #[serde(skip_serializing_if = "::std::option::Option::is_none")]
    pub include_obfuscation: ::std::option::Option<bool>,
    /// End the stream with a chunk that has the usage and no choices.
    #[serde(default)]
    pub include_usage: bool,
}
/// Answer of every submit.
#[derive(::serde::Deserialize, ::serde::Serialize, Clone, Debug, PartialEq)]
pub struct SubmitResponse {
    /// The run, of training requests.
    #[serde(skip_serializing_if = "::std::option::Option::is_none")]
    pub model_id: ::std::option::Option<::std::string::String>,
    /// The future.
    pub request_id: ::std::string::String,
    /// One id per sample, of `asample`.
    #[serde(skip_serializing_if = "::std::option::Option::is_none")]
    pub sample_sequence_ids: ::std::option::Option<
        ::std::vec::Vec<::std::string::String>,
    >,
}
/// A base model.
#[derive(::serde::Deserialize, ::serde::Serialize, Clone, Debug, PartialEq)]
pub struct SupportedModel {
    /// Most tokens of prompt and completion together.
    pub max_context_length: u64,
    /// Its name.
    pub model_name: ::std::string::String,
    /// It can be sampled.
    pub sampleable: bool,
    /// Runs can be created on it.
    pub trainable: bool,
}
/// Body of `telemetry`.
#[derive(::serde::Deserialize, ::serde::Serialize, Clone, Debug, Default, PartialEq)]
pub struct TelemetryRequest {
    /// What happened; not stored.
    #[serde(default, skip_serializing_if = "::std::vec::Vec::is_empty")]
    pub events: ::std::vec::Vec<::serde_json::Value>,
    /// The client's platform.
    #[serde(skip_serializing_if = "::std::option::Option::is_none")]
    pub platform: ::std::option::Option<::std::string::String>,
    /// The client's version.
    #[serde(skip_serializing_if = "::std::option::Option::is_none")]
    pub sdk_version: ::std::option::Option<::std::string::String>,
    /// The session, or `sessionless-<uuid>`.
    #[serde(skip_serializing_if = "::std::option::Option::is_none")]
    pub session_id: ::std::option::Option<::std::string::String>,
}
/// Answer of `telemetry`.
#[derive(::serde::Deserialize, ::serde::Serialize, Clone, Debug, PartialEq)]
pub struct TelemetryResponse {
    /// Always `accepted`.
    pub status: ::std::string::String,
}
/// A tensor in JSON. With both index lists it is sparse: `data` holds the listed cells row by row.
#[derive(::serde::Deserialize, ::serde::Serialize, Clone, Debug, PartialEq)]
pub struct TensorData {
    /// Elements, row-major.
    pub data: ::std::vec::Vec<f64>,
    /// Their type.
    pub dtype: TensorDtype,
    /// Extents, outermost first; one-dimensional when absent.
    #[serde(skip_serializing_if = "::std::option::Option::is_none")]
    pub shape: ::std::option::Option<::std::vec::Vec<i64>>,
    /// Column of each element.
    #[serde(skip_serializing_if = "::std::option::Option::is_none")]
    pub sparse_col_indices: ::std::option::Option<::std::vec::Vec<i64>>,
    /// Row pointers, rows + 1 entries.
    #[serde(skip_serializing_if = "::std::option::Option::is_none")]
    pub sparse_crow_indices: ::std::option::Option<::std::vec::Vec<i64>>,
}
/// Element types of the JSON form.
#[derive(
    ::serde::Deserialize,
    ::serde::Serialize,
    Clone,
    Copy,
    Debug,
    Eq,
    Hash,
    Ord,
    PartialEq,
    PartialOrd
)]
pub enum TensorDtype {
    /// The alternative `Float32`.
    #[serde(rename = "float32")]
    Float32,
    /// The alternative `Int64`.
    #[serde(rename = "int64")]
    Int64,
}
impl ::std::fmt::Display for TensorDtype {
    fn fmt(&self, f: &mut ::std::fmt::Formatter<'_>) -> ::std::fmt::Result {
        match *self {
            Self::Float32 => f.write_str("float32"),
            Self::Int64 => f.write_str("int64"),
        }
    }
}
impl ::std::str::FromStr for TensorDtype {
    type Err = self::error::ConversionError;
    fn from_str(
        value: &str,
    ) -> ::std::result::Result<Self, self::error::ConversionError> {
        match value {
            "float32" => Ok(Self::Float32),
            "int64" => Ok(Self::Int64),
            _ => Err("invalid value".into()),
        }
    }
}
/// Whether the model thinks.
#[derive(::serde::Deserialize, ::serde::Serialize, Clone, Debug, PartialEq)]
#[serde(deny_unknown_fields)]
pub struct Thinking {
    /// At least 1024 and below `max_tokens`; thoughts count as output, and nothing else limits them.
    #[serde(skip_serializing_if = "::std::option::Option::is_none")]
    pub budget_tokens: ::std::option::Option<u32>,
    /// Accepted and ignored.
    #[serde(skip_serializing_if = "::std::option::Option::is_none")]
    pub display: ::std::option::Option<::std::string::String>,
    /// `enabled`, `adaptive` or `disabled`.
    #[serde(rename = "type")]
    pub type_: ::std::string::String,
}
/// A token with its log-probability and the most likely candidates.
#[derive(::serde::Deserialize, ::serde::Serialize, Clone, Debug, PartialEq)]
pub struct TokenLogprob {
    /// Its bytes.
    #[serde(skip_serializing_if = "::std::option::Option::is_none")]
    pub bytes: ::std::option::Option<::std::vec::Vec<u32>>,
    /// Of the temperature-scaled distribution.
    pub logprob: f64,
    /// Its text; half a character is U+FFFD.
    pub token: ::std::string::String,
    /// Most likely first.
    pub top_logprobs: ::std::vec::Vec<TopLogprob>,
}
/// A call of a tool.
#[derive(::serde::Deserialize, ::serde::Serialize, Clone, Debug, PartialEq)]
pub struct ToolCall {
    /// What is called.
    pub function: FunctionCall,
    /// Names the call.
    pub id: ::std::string::String,
    /// Its position, in chunks of a stream.
    #[serde(skip_serializing_if = "::std::option::Option::is_none")]
    pub index: ::std::option::Option<i64>,
    /// `function`.
    #[serde(rename = "type", skip_serializing_if = "::std::option::Option::is_none")]
    pub type_: ::std::option::Option<::std::string::String>,
}
/// Whether tools are called.
#[derive(::serde::Deserialize, ::serde::Serialize, Clone, Debug, PartialEq)]
#[serde(deny_unknown_fields)]
pub struct ToolChoice {
    /// Refused when true.
    #[serde(skip_serializing_if = "::std::option::Option::is_none")]
    pub disable_parallel_tool_use: ::std::option::Option<bool>,
    /// Of the type `tool`.
    #[serde(skip_serializing_if = "::std::option::Option::is_none")]
    pub name: ::std::option::Option<::std::string::String>,
    /// `auto` or `none`; `any` and `tool` are refused.
    #[serde(rename = "type")]
    pub type_: ::std::string::String,
}
/// A candidate.
#[derive(::serde::Deserialize, ::serde::Serialize, Clone, Debug, PartialEq)]
pub struct TopLogprob {
    /// Its bytes.
    #[serde(skip_serializing_if = "::std::option::Option::is_none")]
    pub bytes: ::std::option::Option<::std::vec::Vec<u32>>,
    /// Of the temperature-scaled distribution.
    pub logprob: f64,
    /// Its text; half a character is U+FFFD.
    pub token: ::std::string::String,
}
/// Answer of `sessions/{id}/trace_export`.
#[derive(::serde::Deserialize, ::serde::Serialize, Clone, Debug, PartialEq)]
pub struct TraceExportResponse {
    /// Always `ready`: the trace is made when it is downloaded.
    pub status: ::std::string::String,
    /// Where it is, without a key.
    pub url: ::std::string::String,
}
/// Result of `forward` and `forward_backward`.
#[derive(::serde::Deserialize, ::serde::Serialize, Clone, Debug, PartialEq)]
pub struct TrainingResult {
    /// The kind of the outputs.
    pub loss_fn_output_type: ::std::string::String,
    /// `logprobs` and `elementwise_loss` of each datum, in the request's order.
    pub loss_fn_outputs: ::std::vec::Vec<
        ::std::collections::HashMap<::std::string::String, TensorData>,
    >,
    /// Keys `name:reduction`, e.g. `loss:sum`.
    pub metrics: ::std::collections::HashMap<::std::string::String, f64>,
}
/// A training run.
#[derive(::serde::Deserialize, ::serde::Serialize, Clone, Debug, PartialEq)]
pub struct TrainingRun {
    /// Name of the base model.
    pub base_model: ::std::string::String,
    /// Whether its state is lost.
    pub corrupted: bool,
    /// Whether it trains an adapter.
    pub is_lora: bool,
    /// Its newest training checkpoint.
    #[serde(skip_serializing_if = "::std::option::Option::is_none")]
    pub last_checkpoint: ::std::option::Option<Checkpoint>,
    /// RFC 3339.
    pub last_request_time: ::std::string::String,
    /// Its newest sampler checkpoint.
    #[serde(skip_serializing_if = "::std::option::Option::is_none")]
    pub last_sampler_checkpoint: ::std::option::Option<Checkpoint>,
    /// The adapter's rank.
    #[serde(skip_serializing_if = "::std::option::Option::is_none")]
    pub lora_rank: ::std::option::Option<u32>,
    /// Its tenant.
    pub model_owner: ::std::string::String,
    /// When it was continued by a worker whose results have other bits, oldest first; absent when it never was.
    #[serde(default, skip_serializing_if = "::std::vec::Vec::is_empty")]
    pub numerics_changed: ::std::vec::Vec<NumericsChange>,
    /// Its id; the `model_id`.
    pub training_run_id: ::std::string::String,
    /// As given at creation.
    pub user_metadata: ::std::collections::HashMap<
        ::std::string::String,
        ::std::string::String,
    >,
}
/// Answer of `training_runs`.
#[derive(::serde::Deserialize, ::serde::Serialize, Clone, Debug, PartialEq)]
pub struct TrainingRunsResponse {
    /// Where it lies.
    pub cursor: Cursor,
    /// The page.
    pub training_runs: ::std::vec::Vec<TrainingRun>,
}
/// Answer of `retrieve_future` while the result is pending.
#[derive(::serde::Deserialize, ::serde::Serialize, Clone, Debug, PartialEq)]
pub struct TryAgainResponse {
    /// `active`; `paused_rate_limit` or `paused_capacity` while the request waits for more than its turn.
    pub queue_state: ::std::string::String,
    /// What it waits for.
    #[serde(skip_serializing_if = "::std::option::Option::is_none")]
    pub queue_state_reason: ::std::option::Option<::std::string::String>,
    /// The future.
    pub request_id: ::std::string::String,
    /// `try_again`.
    #[serde(rename = "type")]
    pub type_: ::std::string::String,
}
/// Body of `…/ttl`. The field must be there; null removes the expiry.
#[derive(::serde::Deserialize, ::serde::Serialize, Clone, Debug, Default, PartialEq)]
pub struct TtlRequest {
    /// Seconds from now.
    #[serde(skip_serializing_if = "::std::option::Option::is_none")]
    pub ttl_seconds: ::std::option::Option<u64>,
}
/// Body of `external_weights_upload_finish`.
#[derive(::serde::Deserialize, ::serde::Serialize, Clone, Debug, PartialEq)]
pub struct UploadFinishRequest {
    /// The upload.
    pub upload_id: ::std::string::String,
}
/// Answer of `external_weights_upload_finish`.
#[derive(::serde::Deserialize, ::serde::Serialize, Clone, Debug, PartialEq)]
pub struct UploadFinishResponse {
    /// The checkpoint, `tinker://<run>/external_weights/<name>`.
    pub tinker_path: ::std::string::String,
}
/// Body of `external_weights_upload_start`.
#[derive(::serde::Deserialize, ::serde::Serialize, Clone, Debug, PartialEq)]
pub struct UploadStartRequest {
    /// Name of the base model that the adapter is for.
    pub base_model: ::std::string::String,
    /// The project of the checkpoint.
    #[serde(skip_serializing_if = "::std::option::Option::is_none")]
    pub destination_project_id: ::std::option::Option<::std::string::String>,
    /// What the adapter is: its rank, at least 1, and what it adapts.
    pub lora_config: LoraConfig,
}
/// Answer of `external_weights_upload_start`.
#[derive(::serde::Deserialize, ::serde::Serialize, Clone, Debug, PartialEq)]
pub struct UploadStartResponse {
    /// When the URLs stop working and the upload is deleted, RFC 3339.
    pub expires: ::std::string::String,
    /// Names the upload when it is finished.
    pub upload_id: ::std::string::String,
    /// Where each file is sent with PUT, by its name. The URLs are their own authorisation.
    pub urls: ::std::collections::HashMap<::std::string::String, ::std::string::String>,
}
/// How much of a file has arrived.
#[derive(::serde::Deserialize, ::serde::Serialize, Clone, Debug, PartialEq)]
pub struct UploadedFileResponse {
    /// Whether all of it arrived.
    pub complete: bool,
    /// Bytes from the first one on; the next PUT may begin here.
    pub received_bytes: u64,
    /// Of the whole file, once that is known.
    #[serde(skip_serializing_if = "::std::option::Option::is_none")]
    pub total_bytes: ::std::option::Option<u64>,
}
/// Tokens of a request.
#[derive(::serde::Deserialize, ::serde::Serialize, Clone, Debug, PartialEq)]
pub struct Usage {
    /// Sampled.
    pub completion_tokens: u64,
    /// Of the prompts.
    pub prompt_tokens: u64,
    /// Of the prompts in more detail.
    pub prompt_tokens_details: PromptTokensDetails,
    /// Both.
    pub total_tokens: u64,
}
/// What was used in an hour, for one session.
#[derive(::serde::Deserialize, ::serde::Serialize, Clone, Debug, PartialEq)]
pub struct UsageEvent {
    /// The base model.
    pub base_model: ::std::string::String,
    /// Its end.
    pub bucket_end: ::std::string::String,
    /// The start of the hour.
    pub bucket_start: ::std::string::String,
    /// What, and how much.
    pub event_info: UsageInfo,
    /// The session's project.
    #[serde(skip_serializing_if = "::std::option::Option::is_none")]
    pub project_id: ::std::option::Option<::std::string::String>,
    /// The session.
    pub session_id: ::std::string::String,
    /// The email of the user whose key created the session.
    #[serde(skip_serializing_if = "::std::option::Option::is_none")]
    pub user_id: ::std::option::Option<::std::string::String>,
}
/// A kind of use.
#[derive(::serde::Deserialize, ::serde::Serialize, Clone, Debug, PartialEq)]
#[serde(tag = "type")]
pub enum UsageInfo {
    /// Tokens of examples in forward and backward passes.
    #[serde(rename = "training")]
    Training {
        /// How many.
        token_count: u64,
    },
    /// Tokens of prompts.
    #[serde(rename = "sampling_prefill")]
    SamplingPrefill {
        /// Whether the prefix cache had them.
        cached: bool,
        /// How many.
        token_count: u64,
    },
    /// Tokens that were generated.
    #[serde(rename = "sampling_sample")]
    SamplingSample {
        /// How many.
        token_count: u64,
    },
    /// Checkpoints that were saved.
    #[serde(rename = "checkpoint")]
    Checkpoint {
        /// How many.
        count: u64,
    },
    /// Checkpoints that were stored.
    #[serde(rename = "storage")]
    Storage {
        /// Of 10^9 bytes.
        gigabyte_hours: f64,
    },
}
/// Answer of `billing/usage/events`.
#[derive(::serde::Deserialize, ::serde::Serialize, Clone, Debug, PartialEq)]
pub struct UsageResponse {
    /// By hour, then by tokens, most first.
    pub data: ::std::vec::Vec<UsageEvent>,
    /// The sessions that are named and still there.
    pub sessions: ::std::collections::HashMap<::std::string::String, UsageSession>,
}
/// A session that usage names.
#[derive(::serde::Deserialize, ::serde::Serialize, Clone, Debug, PartialEq)]
pub struct UsageSession {
    /// As the client attached it.
    pub user_metadata: ::std::collections::HashMap<
        ::std::string::String,
        ::std::string::String,
    >,
}
/// A user.
#[derive(::serde::Deserialize, ::serde::Serialize, Clone, Debug, PartialEq)]
pub struct User {
    /// When it was created.
    pub created_at: ::std::string::String,
    /// Since when none of the user's keys is accepted.
    #[serde(skip_serializing_if = "::std::option::Option::is_none")]
    pub disabled_at: ::std::option::Option<::std::string::String>,
    /// Names the user within the organisation.
    pub email: ::std::string::String,
    /// A time-ordered id.
    pub id: ::std::string::String,
    /// For people.
    pub name: ::std::string::String,
    /// `admin`, `member` or `read-only`: the most that the user's keys allow.
    pub role: ::std::string::String,
}
/// Answer of `GET admin/users`.
#[derive(::serde::Deserialize, ::serde::Serialize, Clone, Debug, PartialEq)]
pub struct UsersResponse {
    /// By email.
    pub users: ::std::vec::Vec<User>,
}
/// Body of `weights_info`.
#[derive(::serde::Deserialize, ::serde::Serialize, Clone, Debug, PartialEq)]
pub struct WeightsInfoRequest {
    /// The checkpoint.
    pub tinker_path: ::std::string::String,
}
/// Answer of `weights_info`.
#[derive(::serde::Deserialize, ::serde::Serialize, Clone, Debug, PartialEq)]
pub struct WeightsInfoResponse {
    /// Name of the base model.
    pub base_model: ::std::string::String,
    /// Whether it is an adapter.
    pub is_lora: bool,
    /// The adapter's rank.
    #[serde(skip_serializing_if = "::std::option::Option::is_none")]
    pub lora_rank: ::std::option::Option<u32>,
    /// The optimizer family.
    pub optimizer_config: OptimizerConfig,
    /// The adapter covers the attention projections.
    #[serde(skip_serializing_if = "::std::option::Option::is_none")]
    pub train_attn: ::std::option::Option<bool>,
    /// The adapter covers the MLP projections.
    #[serde(skip_serializing_if = "::std::option::Option::is_none")]
    pub train_mlp: ::std::option::Option<bool>,
    /// The adapter covers the unembedding.
    #[serde(skip_serializing_if = "::std::option::Option::is_none")]
    pub train_unembed: ::std::option::Option<bool>,
}
/// By what a server knows a caller.
#[derive(
    ::serde::Deserialize,
    ::serde::Serialize,
    Clone,
    Copy,
    Debug,
    Eq,
    Hash,
    Ord,
    PartialEq,
    PartialOrd
)]
pub enum WhoamiCredential {
    /// The alternative `None`.
    #[serde(rename = "none")]
    None,
    /// The alternative `ConfiguredKey`.
    #[serde(rename = "configured_key")]
    ConfiguredKey,
    /// The alternative `Key`.
    #[serde(rename = "key")]
    Key,
    /// The alternative `Issuer`.
    #[serde(rename = "issuer")]
    Issuer,
}
impl ::std::fmt::Display for WhoamiCredential {
    fn fmt(&self, f: &mut ::std::fmt::Formatter<'_>) -> ::std::fmt::Result {
        match *self {
            Self::None => f.write_str("none"),
            Self::ConfiguredKey => f.write_str("configured_key"),
            Self::Key => f.write_str("key"),
            Self::Issuer => f.write_str("issuer"),
        }
    }
}
impl ::std::str::FromStr for WhoamiCredential {
    type Err = self::error::ConversionError;
    fn from_str(
        value: &str,
    ) -> ::std::result::Result<Self, self::error::ConversionError> {
        match value {
            "none" => Ok(Self::None),
            "configured_key" => Ok(Self::ConfiguredKey),
            "key" => Ok(Self::Key),
            "issuer" => Ok(Self::Issuer),
            _ => Err("invalid value".into()),
        }
    }
}
/// An API key.
#[derive(::serde::Deserialize, ::serde::Serialize, Clone, Debug, PartialEq)]
pub struct WhoamiKey {
    /// Names it.
    pub id: i64,
    /// For people.
    pub name: ::std::string::String,
}
/// Answer of `auth/whoami`.
#[derive(::serde::Deserialize, ::serde::Serialize, Clone, Debug, PartialEq)]
pub struct WhoamiResponse {
    /// By what the server knows the caller, or its token's maker.
    pub credential: WhoamiCredential,
    /// When the key or token of the call expires, if it does.
    #[serde(skip_serializing_if = "::std::option::Option::is_none")]
    pub expires_at: ::std::option::Option<::std::string::String>,
    /// The key of the call, or that its token was made from, where the store has it.
    #[serde(skip_serializing_if = "::std::option::Option::is_none")]
    pub key: ::std::option::Option<WhoamiKey>,
    /// Whether the organisation's admins manage all others.
    pub operator: bool,
    /// The organisation, whose objects the caller sees.
    pub organisation: ::std::string::String,
    /// `admin`, `member` or `read-only`.
    pub role: ::std::string::String,
    /// What it may change: `train`, `sample`, `checkpoints`, `admin`.
    pub scopes: ::std::vec::Vec<::std::string::String>,
    /// Names the user, or the key of a program: `sub` of its tokens.
    pub subject: ::std::string::String,
    /// The user; absent for a program.
    #[serde(skip_serializing_if = "::std::option::Option::is_none")]
    pub user: ::std::option::Option<WhoamiUser>,
}
/// A user.
#[derive(::serde::Deserialize, ::serde::Serialize, Clone, Debug, PartialEq)]
pub struct WhoamiUser {
    /// Names the user within the organisation.
    pub email: ::std::string::String,
    /// Absent where the store does not have the user: an external issuer vouches for it.
    #[serde(skip_serializing_if = "::std::option::Option::is_none")]
    pub id: ::std::option::Option<::std::string::String>,
    /// For people.
    pub name: ::std::string::String,
}
/// Generation of default values for serde.
pub mod defaults {
    /// A default.
    pub(super) fn default_i64<T, const V: i64>() -> T
    where
        T: ::std::convert::TryFrom<i64>,
        <T as ::std::convert::TryFrom<i64>>::Error: ::std::fmt::Debug,
    {
        T::try_from(V).unwrap()
    }
    /// A default.
    pub(super) fn adam_params_body_beta1() -> f64 {
        0.9_f64
    }
    /// A default.
    pub(super) fn adam_params_body_beta2() -> f64 {
        0.95_f64
    }
    /// A default.
    pub(super) fn adam_params_body_eps() -> f64 {
        1e-12_f64
    }
    /// A default.
    pub(super) fn adam_params_body_grad_clip_norm() -> f64 {
        0.0_f64
    }
    /// A default.
    pub(super) fn adam_params_body_learning_rate() -> f64 {
        0.0001_f64
    }
    /// A default.
    pub(super) fn adam_params_body_weight_decay() -> f64 {
        0.0_f64
    }
    /// A default.
    pub(super) fn sampling_params_frequency_penalty() -> f64 {
        0.0_f64
    }
    /// A default.
    pub(super) fn sampling_params_min_p() -> f64 {
        0.0_f64
    }
    /// A default.
    pub(super) fn sampling_params_presence_penalty() -> f64 {
        0.0_f64
    }
    /// A default.
    pub(super) fn sampling_params_repetition_penalty() -> f64 {
        1.0_f64
    }
    /// A default.
    pub(super) fn sampling_params_temperature() -> f64 {
        1.0_f64
    }
    /// A default.
    pub(super) fn sampling_params_top_p() -> f64 {
        1.0_f64
    }
}
/// Error types.
pub mod error {
    /// Error from a `TryFrom` or `FromStr` implementation.
    pub struct ConversionError(::std::borrow::Cow<'static, str>);
    impl ::std::error::Error for ConversionError {}
    impl ::std::fmt::Display for ConversionError {
        fn fmt(
            &self,
            f: &mut ::std::fmt::Formatter<'_>,
        ) -> Result<(), ::std::fmt::Error> {
            ::std::fmt::Display::fmt(&self.0, f)
        }
    }
    impl ::std::fmt::Debug for ConversionError {
        fn fmt(
            &self,
            f: &mut ::std::fmt::Formatter<'_>,
        ) -> Result<(), ::std::fmt::Error> {
            ::std::fmt::Debug::fmt(&self.0, f)
        }
    }
    impl From<&'static str> for ConversionError {
        fn from(value: &'static str) -> Self {
            Self(value.into())
        }
    }
    impl From<String> for ConversionError {
        fn from(value: String) -> Self {
            Self(value.into())
        }
    }
}
impl AdamParamsBody {
    /// AdamParamsBody with what it must have, and the defaults of the rest.
    pub fn new() -> Self {
        Self {
            beta1: defaults::adam_params_body_beta1(),
            beta2: defaults::adam_params_body_beta2(),
            eps: defaults::adam_params_body_eps(),
            grad_clip_norm: defaults::adam_params_body_grad_clip_norm(),
            learning_rate: defaults::adam_params_body_learning_rate(),
            weight_decay: defaults::adam_params_body_weight_decay(),
        }
    }
    /// Decay of the first moment.
    #[must_use]
    pub fn beta1(mut self, value: f64) -> Self {
        self.beta1 = value;
        self
    }
    /// Decay of the second moment.
    #[must_use]
    pub fn beta2(mut self, value: f64) -> Self {
        self.beta2 = value;
        self
    }
    /// Added to the denominator.
    #[must_use]
    pub fn eps(mut self, value: f64) -> Self {
        self.eps = value;
        self
    }
    /// Largest global gradient norm; none when it is not positive.
    #[must_use]
    pub fn grad_clip_norm(mut self, value: f64) -> Self {
        self.grad_clip_norm = value;
        self
    }
    /// Step size.
    #[must_use]
    pub fn learning_rate(mut self, value: f64) -> Self {
        self.learning_rate = value;
        self
    }
    /// Decoupled weight decay.
    #[must_use]
    pub fn weight_decay(mut self, value: f64) -> Self {
        self.weight_decay = value;
        self
    }
}
impl ::std::convert::From<&str> for AnthropicContent {
    fn from(value: &str) -> Self {
        Self::String(value.into())
    }
}
impl ::std::convert::From<::std::string::String> for AnthropicContent {
    fn from(value: ::std::string::String) -> Self {
        Self::String(value.into())
    }
}
impl AnthropicError {
    /// AnthropicError with what it must have, and the defaults of the rest.
    pub fn new(
        message: impl Into<::std::string::String>,
        type_: impl Into<::std::string::String>,
    ) -> Self {
        Self {
            message: message.into(),
            type_: type_.into(),
        }
    }
}
impl AnthropicErrorResponse {
    /// AnthropicErrorResponse with what it must have, and the defaults of the rest.
    pub fn new(error: AnthropicError, type_: impl Into<::std::string::String>) -> Self {
        Self {
            error,
            type_: type_.into(),
            request_id: ::std::default::Default::default(),
        }
    }
    /// For the server's log.
    #[must_use]
    pub fn request_id(mut self, value: impl Into<::std::string::String>) -> Self {
        self.request_id = ::std::option::Option::Some(value.into());
        self
    }
}
impl AnthropicMessage {
    /// AnthropicMessage with what it must have, and the defaults of the rest.
    pub fn new(
        content: AnthropicContent,
        role: impl Into<::std::string::String>,
    ) -> Self {
        Self { content, role: role.into() }
    }
}
impl AnthropicTool {
    /// AnthropicTool with what it must have, and the defaults of the rest.
    pub fn new(name: impl Into<::std::string::String>) -> Self {
        Self {
            name: name.into(),
            description: ::std::default::Default::default(),
            input_schema: ::std::default::Default::default(),
            type_: ::std::default::Default::default(),
        }
    }
    /// What it does.
    #[must_use]
    pub fn description(mut self, value: impl Into<::std::string::String>) -> Self {
        self.description = ::std::option::Option::Some(value.into());
        self
    }
    /// JSON schema of its arguments.
    #[must_use]
    pub fn input_schema(mut self, value: ::serde_json::Value) -> Self {
        self.input_schema = ::std::option::Option::Some(value);
        self
    }
    /// `custom`; other types are refused.
    #[must_use]
    pub fn type_(mut self, value: impl Into<::std::string::String>) -> Self {
        self.type_ = ::std::option::Option::Some(value.into());
        self
    }
}
impl AnthropicUsage {
    /// AnthropicUsage with what it must have, and the defaults of the rest.
    pub fn new(
        cache_creation_input_tokens: u64,
        cache_read_input_tokens: u64,
        input_tokens: u64,
        output_tokens: u64,
    ) -> Self {
        Self {
            cache_creation_input_tokens,
            cache_read_input_tokens,
            input_tokens,
            output_tokens,
        }
    }
}
impl ApiKey {
    /// ApiKey with what it must have, and the defaults of the rest.
    pub fn new(
        created_at: impl Into<::std::string::String>,
        hint: impl Into<::std::string::String>,
        id: i64,
        name: impl Into<::std::string::String>,
        note: impl Into<::std::string::String>,
        role: impl Into<::std::string::String>,
    ) -> Self {
        Self {
            created_at: created_at.into(),
            hint: hint.into(),
            id,
            name: name.into(),
            note: note.into(),
            role: role.into(),
            expires_at: ::std::default::Default::default(),
            revoked_at: ::std::default::Default::default(),
            scopes: ::std::default::Default::default(),
            user: ::std::default::Default::default(),
        }
    }
    /// When it expires, if it does.
    #[must_use]
    pub fn expires_at(mut self, value: impl Into<::std::string::String>) -> Self {
        self.expires_at = ::std::option::Option::Some(value.into());
        self
    }
    /// When it was revoked.
    #[must_use]
    pub fn revoked_at(mut self, value: impl Into<::std::string::String>) -> Self {
        self.revoked_at = ::std::option::Option::Some(value.into());
        self
    }
    /// What it is cut to, of `train`, `sample`, `checkpoints` and `admin`; absent for all of its role.
    #[must_use]
    pub fn scopes(mut self, value: ::std::vec::Vec<::std::string::String>) -> Self {
        self.scopes = ::std::option::Option::Some(value);
        self
    }
    /// The email of the user whose it is; absent for one of the organisation's programs.
    #[must_use]
    pub fn user(mut self, value: impl Into<::std::string::String>) -> Self {
        self.user = ::std::option::Option::Some(value.into());
        self
    }
}
impl AuditEntry {
    /// AuditEntry with what it must have, and the defaults of the rest.
    pub fn new(
        event: impl Into<::std::string::String>,
        event_details: ::serde_json::Map<::std::string::String, ::serde_json::Value>,
        timestamp: impl Into<::std::string::String>,
    ) -> Self {
        Self {
            event: event.into(),
            event_details,
            timestamp: timestamp.into(),
            model_id: ::std::default::Default::default(),
            tinker_path: ::std::default::Default::default(),
        }
    }
    /// The run of a checkpoint.
    #[must_use]
    pub fn model_id(mut self, value: impl Into<::std::string::String>) -> Self {
        self.model_id = ::std::option::Option::Some(value.into());
        self
    }
    /// The checkpoint.
    #[must_use]
    pub fn tinker_path(mut self, value: impl Into<::std::string::String>) -> Self {
        self.tinker_path = ::std::option::Option::Some(value.into());
        self
    }
}
impl AuditResponse {
    /// AuditResponse with what it must have, and the defaults of the rest.
    pub fn new(entries: ::std::vec::Vec<AuditEntry>) -> Self {
        Self { entries }
    }
}
impl AuthTokenResponse {
    /// AuthTokenResponse with what it must have, and the defaults of the rest.
    pub fn new(jwt: impl Into<::std::string::String>) -> Self {
        Self { jwt: jwt.into() }
    }
}
impl Block {
    /// Block with what it must have, and the defaults of the rest.
    pub fn new(type_: impl Into<::std::string::String>) -> Self {
        Self {
            type_: type_.into(),
            content: ::std::default::Default::default(),
            id: ::std::default::Default::default(),
            input: ::std::default::Default::default(),
            is_error: ::std::default::Default::default(),
            name: ::std::default::Default::default(),
            text: ::std::default::Default::default(),
            thinking: ::std::default::Default::default(),
            tool_use_id: ::std::default::Default::default(),
        }
    }
    /// Of a `tool_result`: what the tool returned.
    #[must_use]
    pub fn content(mut self, value: AnthropicContent) -> Self {
        self.content = ::std::option::Option::Some(value);
        self
    }
    /// Of a `tool_use`: names the call.
    #[must_use]
    pub fn id(mut self, value: impl Into<::std::string::String>) -> Self {
        self.id = ::std::option::Option::Some(value.into());
        self
    }
    /// Of a `tool_use`: the arguments.
    #[must_use]
    pub fn input(mut self, value: ::serde_json::Value) -> Self {
        self.input = ::std::option::Option::Some(value);
        self
    }
    /// Of a `tool_result`: accepted; the content says what went wrong.
    #[must_use]
    pub fn is_error(mut self, value: bool) -> Self {
        self.is_error = ::std::option::Option::Some(value);
        self
    }
    /// Of a `tool_use`: the tool.
    #[must_use]
    pub fn name(mut self, value: impl Into<::std::string::String>) -> Self {
        self.name = ::std::option::Option::Some(value.into());
        self
    }
    /// Of a `text`.
    #[must_use]
    pub fn text(mut self, value: impl Into<::std::string::String>) -> Self {
        self.text = ::std::option::Option::Some(value.into());
        self
    }
    /// Of `thinking`.
    #[must_use]
    pub fn thinking(mut self, value: impl Into<::std::string::String>) -> Self {
        self.thinking = ::std::option::Option::Some(value.into());
        self
    }
    /// Of a `tool_result`: the call that it answers.
    #[must_use]
    pub fn tool_use_id(mut self, value: impl Into<::std::string::String>) -> Self {
        self.tool_use_id = ::std::option::Option::Some(value.into());
        self
    }
}
impl CancelFutureRequest {
    /// CancelFutureRequest with what it must have, and the defaults of the rest.
    pub fn new(request_id: impl Into<::std::string::String>) -> Self {
        Self {
            request_id: request_id.into(),
        }
    }
}
impl ChangeLimitsRequest {
    /// ChangeLimitsRequest with what it must have, and the defaults of the rest.
    pub fn new() -> Self {
        Self {
            max_queued_bytes: ::std::default::Default::default(),
            max_queued_requests: ::std::default::Default::default(),
            max_queued_tokens: ::std::default::Default::default(),
            max_runs: ::std::default::Default::default(),
            max_storage_bytes: ::std::default::Default::default(),
            tokens_per_minute: ::std::default::Default::default(),
            weight: ::std::default::Default::default(),
        }
    }
    /// Bytes of their payloads.
    #[must_use]
    pub fn max_queued_bytes(mut self, value: u64) -> Self {
        self.max_queued_bytes = ::std::option::Option::Some(value);
        self
    }
    /// Training requests that have not finished.
    #[must_use]
    pub fn max_queued_requests(mut self, value: u64) -> Self {
        self.max_queued_requests = ::std::option::Option::Some(value);
        self
    }
    /// Tokens of accepted requests that have not finished, beyond which samples get 429.
    #[must_use]
    pub fn max_queued_tokens(mut self, value: u64) -> Self {
        self.max_queued_tokens = ::std::option::Option::Some(value);
        self
    }
    /// Training runs that may live at once.
    #[must_use]
    pub fn max_runs(mut self, value: u64) -> Self {
        self.max_runs = ::std::option::Option::Some(value);
        self
    }
    /// Bytes of its checkpoints.
    #[must_use]
    pub fn max_storage_bytes(mut self, value: u64) -> Self {
        self.max_storage_bytes = ::std::option::Option::Some(value);
        self
    }
    /// Rate limit: tokens of the requests that start.
    #[must_use]
    pub fn tokens_per_minute(mut self, value: u64) -> Self {
        self.tokens_per_minute = ::std::option::Option::Some(value);
        self
    }
    /// Its share of a busy service, relative to the other organisations that have work.
    #[must_use]
    pub fn weight(mut self, value: u64) -> Self {
        self.weight = ::std::option::Option::Some(value);
        self
    }
}
impl ChangeOrganisationRequest {
    /// ChangeOrganisationRequest with what it must have, and the defaults of the rest.
    pub fn new() -> Self {
        Self {
            disabled: ::std::default::Default::default(),
            display_name: ::std::default::Default::default(),
        }
    }
    /// Whether its keys and tokens are refused; for admins of operators.
    #[must_use]
    pub fn disabled(mut self, value: bool) -> Self {
        self.disabled = ::std::option::Option::Some(value);
        self
    }
    /// For people.
    #[must_use]
    pub fn display_name(mut self, value: impl Into<::std::string::String>) -> Self {
        self.display_name = ::std::option::Option::Some(value.into());
        self
    }
}
impl ChangeUserRequest {
    /// ChangeUserRequest with what it must have, and the defaults of the rest.
    pub fn new() -> Self {
        Self {
            disabled: ::std::default::Default::default(),
            role: ::std::default::Default::default(),
        }
    }
    /// Whether the user's keys are refused.
    #[must_use]
    pub fn disabled(mut self, value: bool) -> Self {
        self.disabled = ::std::option::Option::Some(value);
        self
    }
    /// `admin`, `member` or `read-only`.
    #[must_use]
    pub fn role(mut self, value: impl Into<::std::string::String>) -> Self {
        self.role = ::std::option::Option::Some(value.into());
        self
    }
}
impl ChatChoice {
    /// ChatChoice with what it must have, and the defaults of the rest.
    pub fn new(
        finish_reason: impl Into<::std::string::String>,
        index: i64,
        message: ChatReply,
    ) -> Self {
        Self {
            finish_reason: finish_reason.into(),
            index,
            message,
            logprobs: ::std::default::Default::default(),
        }
    }
    /// Of its tokens, if they were asked for.
    #[must_use]
    pub fn logprobs(mut self, value: ChatLogprobs) -> Self {
        self.logprobs = ::std::option::Option::Some(value);
        self
    }
}
impl ::std::convert::From<&str> for ChatContent {
    fn from(value: &str) -> Self {
        Self::String(value.into())
    }
}
impl ::std::convert::From<::std::string::String> for ChatContent {
    fn from(value: ::std::string::String) -> Self {
        Self::String(value.into())
    }
}
impl ChatLogprobs {
    /// ChatLogprobs with what it must have, and the defaults of the rest.
    pub fn new(content: ::std::vec::Vec<TokenLogprob>) -> Self {
        Self {
            content,
            refusal: ::std::default::Default::default(),
        }
    }
    /// Always null.
    #[must_use]
    pub fn refusal(mut self, value: ::std::vec::Vec<TokenLogprob>) -> Self {
        self.refusal = ::std::option::Option::Some(value);
        self
    }
}
impl ChatMessage {
    /// ChatMessage with what it must have, and the defaults of the rest.
    pub fn new(role: impl Into<::std::string::String>) -> Self {
        Self {
            role: role.into(),
            annotations: ::std::default::Default::default(),
            audio: ::std::default::Default::default(),
            content: ::std::default::Default::default(),
            function_call: ::std::default::Default::default(),
            name: ::std::default::Default::default(),
            reasoning_content: ::std::default::Default::default(),
            refusal: ::std::default::Default::default(),
            tool_call_id: ::std::default::Default::default(),
            tool_calls: ::std::default::Default::default(),
        }
    }
    /// Accepted and ignored.
    #[must_use]
    pub fn annotations(mut self, value: ::std::vec::Vec<::serde_json::Value>) -> Self {
        self.annotations = ::std::option::Option::Some(value);
        self
    }
    /// Refused unless it is null.
    #[must_use]
    pub fn audio(mut self, value: ::serde_json::Value) -> Self {
        self.audio = ::std::option::Option::Some(value);
        self
    }
    /// What it says.
    #[must_use]
    pub fn content(mut self, value: ChatContent) -> Self {
        self.content = ::std::option::Option::Some(value);
        self
    }
    /// Refused unless it is null.
    #[must_use]
    pub fn function_call(mut self, value: ::serde_json::Value) -> Self {
        self.function_call = ::std::option::Option::Some(value);
        self
    }
    /// Of the speaker.
    #[must_use]
    pub fn name(mut self, value: impl Into<::std::string::String>) -> Self {
        self.name = ::std::option::Option::Some(value.into());
        self
    }
    /// What the assistant thought.
    #[must_use]
    pub fn reasoning_content(mut self, value: impl Into<::std::string::String>) -> Self {
        self.reasoning_content = ::std::option::Option::Some(value.into());
        self
    }
    /// Taken as the content when there is none.
    #[must_use]
    pub fn refusal(mut self, value: impl Into<::std::string::String>) -> Self {
        self.refusal = ::std::option::Option::Some(value.into());
        self
    }
    /// The call that a message of a tool answers.
    #[must_use]
    pub fn tool_call_id(mut self, value: impl Into<::std::string::String>) -> Self {
        self.tool_call_id = ::std::option::Option::Some(value.into());
        self
    }
    /// Tools that the assistant called.
    #[must_use]
    pub fn tool_calls(mut self, value: ::std::vec::Vec<ToolCall>) -> Self {
        self.tool_calls = ::std::option::Option::Some(value);
        self
    }
}
impl ChatReply {
    /// ChatReply with what it must have, and the defaults of the rest.
    pub fn new(role: impl Into<::std::string::String>) -> Self {
        Self {
            role: role.into(),
            content: ::std::default::Default::default(),
            reasoning_content: ::std::default::Default::default(),
            refusal: ::std::default::Default::default(),
            tool_calls: ::std::default::Default::default(),
        }
    }
    /// Its text; null when it only calls tools.
    #[must_use]
    pub fn content(mut self, value: impl Into<::std::string::String>) -> Self {
        self.content = ::std::option::Option::Some(value.into());
        self
    }
    /// What it thought.
    #[must_use]
    pub fn reasoning_content(mut self, value: impl Into<::std::string::String>) -> Self {
        self.reasoning_content = ::std::option::Option::Some(value.into());
        self
    }
    /// Always null.
    #[must_use]
    pub fn refusal(mut self, value: impl Into<::std::string::String>) -> Self {
        self.refusal = ::std::option::Option::Some(value.into());
        self
    }
    /// Tools that it calls.
    #[must_use]
    pub fn tool_calls(mut self, value: ::std::vec::Vec<ToolCall>) -> Self {
        self.tool_calls = ::std::option::Option::Some(value);
        self
    }
}
impl ChatRequest {
    /// ChatRequest with what it must have, and the defaults of the rest.
    pub fn new(
        messages: ::std::vec::Vec<ChatMessage>,
        model: impl Into<::std::string::String>,
    ) -> Self {
        Self {
            messages,
            model: model.into(),
            audio: ::std::default::Default::default(),
            chat_template_kwargs: ::std::default::Default::default(),
            frequency_penalty: ::std::default::Default::default(),
            function_call: ::std::default::Default::default(),
            functions: ::std::default::Default::default(),
            logit_bias: ::std::default::Default::default(),
            logprobs: ::std::default::Default::default(),
            max_completion_tokens: ::std::default::Default::default(),
            max_tokens: ::std::default::Default::default(),
            metadata: ::std::default::Default::default(),
            min_p: ::std::default::Default::default(),
            modalities: ::std::default::Default::default(),
            n: ::std::default::Default::default(),
            parallel_tool_calls: ::std::default::Default::default(),
            prediction: ::std::default::Default::default(),
            presence_penalty: ::std::default::Default::default(),
            prompt_cache_key: ::std::default::Default::default(),
            reasoning_effort: ::std::default::Default::default(),
            repetition_penalty: ::std::default::Default::default(),
            response_format: ::std::default::Default::default(),
            safety_identifier: ::std::default::Default::default(),
            seed: ::std::default::Default::default(),
            service_tier: ::std::default::Default::default(),
            stop: ::std::default::Default::default(),
            store: ::std::default::Default::default(),
            stream: ::std::default::Default::default(),
            stream_options: ::std::default::Default::default(),
            temperature: ::std::default::Default::default(),
            tool_choice: ::std::default::Default::default(),
            tools: ::std::default::Default::default(),
            top_k: ::std::default::Default::default(),
            top_logprobs: ::std::default::Default::default(),
            top_p: ::std::default::Default::default(),
            user: ::std::default::Default::default(),
            verbosity: ::std::default::Default::default(),
            web_search_options: ::std::default::Default::default(),
        }
    }
    /// Refused: there is no audio.
    #[must_use]
    pub fn audio(mut self, value: ::serde_json::Value) -> Self {
        self.audio = ::std::option::Option::Some(value);
        self
    }
    /// Further variables of the model's chat template.
    #[must_use]
    pub fn chat_template_kwargs(
        mut self,
        value: ::serde_json::Map<::std::string::String, ::serde_json::Value>,
    ) -> Self {
        self.chat_template_kwargs = ::std::option::Option::Some(value);
        self
    }
    /// Subtracted from the logits of tokens each time that the text holds them.
    #[must_use]
    pub fn frequency_penalty(mut self, value: f64) -> Self {
        self.frequency_penalty = ::std::option::Option::Some(value);
        self
    }
    /// Refused: use `tool_choice`.
    #[must_use]
    pub fn function_call(mut self, value: ::serde_json::Value) -> Self {
        self.function_call = ::std::option::Option::Some(value);
        self
    }
    /// Refused: use `tools`.
    #[must_use]
    pub fn functions(mut self, value: ::serde_json::Value) -> Self {
        self.functions = ::std::option::Option::Some(value);
        self
    }
    /// Added to the logits of tokens, by token id, each between -100 and 100.
    #[must_use]
    pub fn logit_bias(
        mut self,
        value: ::std::collections::HashMap<::std::string::String, f64>,
    ) -> Self {
        self.logit_bias = ::std::option::Option::Some(value);
        self
    }
    /// Return the log-probabilities of the tokens.
    #[must_use]
    pub fn logprobs(mut self, value: bool) -> Self {
        self.logprobs = ::std::option::Option::Some(value);
        self
    }
    /// The newer name of `max_tokens`.
    #[must_use]
    pub fn max_completion_tokens(mut self, value: u32) -> Self {
        self.max_completion_tokens = ::std::option::Option::Some(value);
        self
    }
    /// Most tokens to sample; up to the context limit when null.
    #[must_use]
    pub fn max_tokens(mut self, value: u32) -> Self {
        self.max_tokens = ::std::option::Option::Some(value);
        self
    }
    /// Accepted and ignored.
    #[must_use]
    pub fn metadata(mut self, value: ::serde_json::Value) -> Self {
        self.metadata = ::std::option::Option::Some(value);
        self
    }
    /// Tokens less likely than this fraction of the most likely one are not sampled; 0 is off.
    #[must_use]
    pub fn min_p(mut self, value: f64) -> Self {
        self.min_p = ::std::option::Option::Some(value);
        self
    }
    /// Refused unless it is `["text"]`.
    #[must_use]
    pub fn modalities(mut self, value: ::std::vec::Vec<::std::string::String>) -> Self {
        self.modalities = ::std::option::Option::Some(value);
        self
    }
    /// How many replies.
    #[must_use]
    pub fn n(mut self, value: u32) -> Self {
        self.n = ::std::option::Option::Some(value);
        self
    }
    /// Refused when it is false and there are tools.
    #[must_use]
    pub fn parallel_tool_calls(mut self, value: bool) -> Self {
        self.parallel_tool_calls = ::std::option::Option::Some(value);
        self
    }
    /// Refused: nothing is predicted.
    #[must_use]
    pub fn prediction(mut self, value: ::serde_json::Value) -> Self {
        self.prediction = ::std::option::Option::Some(value);
        self
    }
    /// Subtracted from the logits of tokens that the text holds.
    #[must_use]
    pub fn presence_penalty(mut self, value: f64) -> Self {
        self.presence_penalty = ::std::option::Option::Some(value);
        self
    }
    /// Accepted and ignored.
    #[must_use]
    pub fn prompt_cache_key(mut self, value: impl Into<::std::string::String>) -> Self {
        self.prompt_cache_key = ::std::option::Option::Some(value.into());
        self
    }
    /// A preset such as `low`, or a number, for models whose template has it.
    #[must_use]
    pub fn reasoning_effort(mut self, value: ::serde_json::Value) -> Self {
        self.reasoning_effort = ::std::option::Option::Some(value);
        self
    }
    /// Divides positive logits of tokens that prompt or text hold, and multiplies negative ones; 1 is off.
    #[must_use]
    pub fn repetition_penalty(mut self, value: f64) -> Self {
        self.repetition_penalty = ::std::option::Option::Some(value);
        self
    }
    /// `text`, `json_object` or `json_schema`; the latter two not with tools.
    #[must_use]
    pub fn response_format(mut self, value: ResponseFormat) -> Self {
        self.response_format = ::std::option::Option::Some(value);
        self
    }
    /// Accepted and ignored.
    #[must_use]
    pub fn safety_identifier(mut self, value: impl Into<::std::string::String>) -> Self {
        self.safety_identifier = ::std::option::Option::Some(value.into());
        self
    }
    /// Makes sampling repeatable.
    #[must_use]
    pub fn seed(mut self, value: i64) -> Self {
        self.seed = ::std::option::Option::Some(value);
        self
    }
    /// Refused unless it is `auto` or `default`.
    #[must_use]
    pub fn service_tier(mut self, value: impl Into<::std::string::String>) -> Self {
        self.service_tier = ::std::option::Option::Some(value.into());
        self
    }
    /// Ends a reply; not part of its text.
    #[must_use]
    pub fn stop(mut self, value: StopStrings) -> Self {
        self.stop = ::std::option::Option::Some(value);
        self
    }
    /// Refused when true: replies are not stored.
    #[must_use]
    pub fn store(mut self, value: bool) -> Self {
        self.store = ::std::option::Option::Some(value);
        self
    }
    /// Answer in server-sent events.
    #[must_use]
    pub fn stream(mut self, value: bool) -> Self {
        self.stream = ::std::option::Option::Some(value);
        self
    }
    /// Of a stream.
    #[must_use]
    pub fn stream_options(mut self, value: StreamOptions) -> Self {
        self.stream_options = ::std::option::Option::Some(value);
        self
    }
    /// Divides the logits; 0 is greedy, 1 when null.
    #[must_use]
    pub fn temperature(mut self, value: f64) -> Self {
        self.temperature = ::std::option::Option::Some(value);
        self
    }
    /// `auto` or `none`.
    #[must_use]
    pub fn tool_choice(mut self, value: ::serde_json::Value) -> Self {
        self.tool_choice = ::std::option::Option::Some(value);
        self
    }
    /// Functions that the model may call: `{"type": "function", "function": {"name": …, "parameters": …}}`.
    #[must_use]
    pub fn tools(
        mut self,
        value: ::std::vec::Vec<
            ::serde_json::Map<::std::string::String, ::serde_json::Value>,
        >,
    ) -> Self {
        self.tools = ::std::option::Option::Some(value);
        self
    }
    /// Keep the `k` most likely; -1 and 0 are off.
    #[must_use]
    pub fn top_k(mut self, value: i64) -> Self {
        self.top_k = ::std::option::Option::Some(value);
        self
    }
    /// Candidates per token.
    #[must_use]
    pub fn top_logprobs(mut self, value: u32) -> Self {
        self.top_logprobs = ::std::option::Option::Some(value);
        self
    }
    /// Keep the smallest set whose probability reaches `p`.
    #[must_use]
    pub fn top_p(mut self, value: f64) -> Self {
        self.top_p = ::std::option::Option::Some(value);
        self
    }
    /// Accepted and ignored.
    #[must_use]
    pub fn user(mut self, value: impl Into<::std::string::String>) -> Self {
        self.user = ::std::option::Option::Some(value.into());
        self
    }
    /// Refused unless it is `medium`.
    #[must_use]
    pub fn verbosity(mut self, value: impl Into<::std::string::String>) -> Self {
        self.verbosity = ::std::option::Option::Some(value.into());
        self
    }
    /// Refused: there is no search.
    #[must_use]
    pub fn web_search_options(mut self, value: ::serde_json::Value) -> Self {
        self.web_search_options = ::std::option::Option::Some(value);
        self
    }
}
impl ChatResponse {
    /// ChatResponse with what it must have, and the defaults of the rest.
    pub fn new(
        choices: ::std::vec::Vec<ChatChoice>,
        created: i64,
        id: impl Into<::std::string::String>,
        model: impl Into<::std::string::String>,
        object: impl Into<::std::string::String>,
        usage: Usage,
    ) -> Self {
        Self {
            choices,
            created,
            id: id.into(),
            model: model.into(),
            object: object.into(),
            usage,
        }
    }
}
impl Checkpoint {
    /// Checkpoint with what it must have, and the defaults of the rest.
    pub fn new(
        checkpoint_id: impl Into<::std::string::String>,
        checkpoint_type: impl Into<::std::string::String>,
        public: bool,
        size_bytes: u64,
        time: impl Into<::std::string::String>,
        tinker_path: impl Into<::std::string::String>,
        user_metadata: ::std::collections::HashMap<
            ::std::string::String,
            ::std::string::String,
        >,
    ) -> Self {
        Self {
            checkpoint_id: checkpoint_id.into(),
            checkpoint_type: checkpoint_type.into(),
            public,
            size_bytes,
            time: time.into(),
            tinker_path: tinker_path.into(),
            user_metadata,
            base_model: ::std::default::Default::default(),
            expires_at: ::std::default::Default::default(),
        }
    }
    /// Name of the base model.
    #[must_use]
    pub fn base_model(mut self, value: impl Into<::std::string::String>) -> Self {
        self.base_model = ::std::option::Option::Some(value.into());
        self
    }
    /// When it is deleted, RFC 3339; never when absent.
    #[must_use]
    pub fn expires_at(mut self, value: impl Into<::std::string::String>) -> Self {
        self.expires_at = ::std::option::Option::Some(value.into());
        self
    }
}
impl CheckpointCursor {
    /// CheckpointCursor with what it must have, and the defaults of the rest.
    pub fn new(
        last_checkpoint_uuid: impl Into<::std::string::String>,
        last_created_at: impl Into<::std::string::String>,
    ) -> Self {
        Self {
            last_checkpoint_uuid: last_checkpoint_uuid.into(),
            last_created_at: last_created_at.into(),
        }
    }
}
impl CheckpointSearchRequest {
    /// CheckpointSearchRequest with what it must have, and the defaults of the rest.
    pub fn new() -> Self {
        Self {
            base_models: ::std::default::Default::default(),
            checkpoint_type: ::std::default::Default::default(),
            cursor: ::std::default::Default::default(),
            limit: ::std::default::Default::default(),
            owner: ::std::default::Default::default(),
            project_ids: ::std::default::Default::default(),
            user_metadata: ::std::default::Default::default(),
        }
    }
    /// Of one of these base models; none match an empty list.
    #[must_use]
    pub fn base_models(mut self, value: ::std::vec::Vec<::std::string::String>) -> Self {
        self.base_models = ::std::option::Option::Some(value);
        self
    }
    /// `training`, `sampler` or `external`.
    #[must_use]
    pub fn checkpoint_type(mut self, value: impl Into<::std::string::String>) -> Self {
        self.checkpoint_type = ::std::option::Option::Some(value.into());
        self
    }
    /// `next_cursor` of the page before.
    #[must_use]
    pub fn cursor(mut self, value: CheckpointCursor) -> Self {
        self.cursor = ::std::option::Option::Some(value);
        self
    }
    /// Most checkpoints to return.
    #[must_use]
    pub fn limit(mut self, value: u32) -> Self {
        self.limit = ::std::option::Option::Some(value);
        self
    }
    /// Whose checkpoints.
    #[must_use]
    pub fn owner(mut self, value: SearchOwner) -> Self {
        self.owner = ::std::option::Option::Some(value);
        self
    }
    /// In one of these projects of the caller's.
    #[must_use]
    pub fn project_ids(mut self, value: ::std::vec::Vec<::std::string::String>) -> Self {
        self.project_ids = ::std::option::Option::Some(value);
        self
    }
    /// With these entries.
    #[must_use]
    pub fn user_metadata(
        mut self,
        value: ::std::collections::HashMap<::std::string::String, ::std::string::String>,
    ) -> Self {
        self.user_metadata = value;
        self
    }
}
impl CheckpointSearchResponse {
    /// CheckpointSearchResponse with what it must have, and the defaults of the rest.
    pub fn new(checkpoints: ::std::vec::Vec<Checkpoint>) -> Self {
        Self {
            checkpoints,
            next_cursor: ::std::default::Default::default(),
        }
    }
    /// Where to go on; absent when there are no more.
    #[must_use]
    pub fn next_cursor(mut self, value: CheckpointCursor) -> Self {
        self.next_cursor = ::std::option::Option::Some(value);
        self
    }
}
impl CheckpointsResponse {
    /// CheckpointsResponse with what it must have, and the defaults of the rest.
    pub fn new(checkpoints: ::std::vec::Vec<Checkpoint>) -> Self {
        Self {
            checkpoints,
            cursor: ::std::default::Default::default(),
        }
    }
    /// Where it lies.
    #[must_use]
    pub fn cursor(mut self, value: Cursor) -> Self {
        self.cursor = ::std::option::Option::Some(value);
        self
    }
}
impl ClientConfigRequest {
    /// ClientConfigRequest with what it must have, and the defaults of the rest.
    pub fn new() -> Self {
        Self {
            sdk_version: ::std::default::Default::default(),
        }
    }
    /// The client's version.
    #[must_use]
    pub fn sdk_version(mut self, value: impl Into<::std::string::String>) -> Self {
        self.sdk_version = ::std::option::Option::Some(value.into());
        self
    }
}
impl ClientConfigResponse {
    /// ClientConfigResponse with what it must have, and the defaults of the rest.
    pub fn new(
        credential_default_source: impl Into<::std::string::String>,
        custom_loss_server_side: bool,
        fwdbwd_max_chunk_bytes_count: u64,
        fwdbwd_max_chunk_len: u64,
        parallel_fwdbwd_chunks: bool,
        pjwt_auth_enabled: bool,
        proto_compress_fwdbwd: bool,
        sample_join_sampling_session: bool,
        sample_use_retrieve_futures: bool,
    ) -> Self {
        Self {
            credential_default_source: credential_default_source.into(),
            custom_loss_server_side,
            fwdbwd_max_chunk_bytes_count,
            fwdbwd_max_chunk_len,
            parallel_fwdbwd_chunks,
            pjwt_auth_enabled,
            proto_compress_fwdbwd,
            sample_join_sampling_session,
            sample_use_retrieve_futures,
        }
    }
}
impl ClientDynamicConfigResponse {
    /// ClientDynamicConfigResponse with what it must have, and the defaults of the rest.
    pub fn new(
        refresh_interval_sec: u64,
        sample_cancel_enabled: bool,
        sample_cancel_max_batch_size: u64,
    ) -> Self {
        Self {
            refresh_interval_sec,
            sample_cancel_enabled,
            sample_cancel_max_batch_size,
        }
    }
}
impl CompletionChoice {
    /// CompletionChoice with what it must have, and the defaults of the rest.
    pub fn new(index: i64, text: impl Into<::std::string::String>) -> Self {
        Self {
            index,
            text: text.into(),
            finish_reason: ::std::default::Default::default(),
            logprobs: ::std::default::Default::default(),
        }
    }
    /// `stop` or `length`; null in chunks before its end.
    #[must_use]
    pub fn finish_reason(mut self, value: impl Into<::std::string::String>) -> Self {
        self.finish_reason = ::std::option::Option::Some(value.into());
        self
    }
    /// Of its tokens, if they were asked for.
    #[must_use]
    pub fn logprobs(mut self, value: CompletionLogprobs) -> Self {
        self.logprobs = ::std::option::Option::Some(value);
        self
    }
}
impl CompletionLogprobs {
    /// CompletionLogprobs with what it must have, and the defaults of the rest.
    pub fn new(
        text_offset: ::std::vec::Vec<i64>,
        token_logprobs: ::std::vec::Vec<::std::option::Option<f64>>,
        tokens: ::std::vec::Vec<::std::string::String>,
        top_logprobs: ::std::vec::Vec<
            ::std::option::Option<
                ::std::collections::HashMap<::std::string::String, f64>,
            >,
        >,
    ) -> Self {
        Self {
            text_offset,
            token_logprobs,
            tokens,
            top_logprobs,
        }
    }
}
impl CompletionRequest {
    /// CompletionRequest with what it must have, and the defaults of the rest.
    pub fn new(
        model: impl Into<::std::string::String>,
        prompt: CompletionPrompt,
    ) -> Self {
        Self {
            model: model.into(),
            prompt,
            best_of: ::std::default::Default::default(),
            echo: ::std::default::Default::default(),
            frequency_penalty: ::std::default::Default::default(),
            logit_bias: ::std::default::Default::default(),
            logprobs: ::std::default::Default::default(),
            max_tokens: ::std::default::Default::default(),
            min_p: ::std::default::Default::default(),
            n: ::std::default::Default::default(),
            presence_penalty: ::std::default::Default::default(),
            repetition_penalty: ::std::default::Default::default(),
            seed: ::std::default::Default::default(),
            stop: ::std::default::Default::default(),
            stream: ::std::default::Default::default(),
            stream_options: ::std::default::Default::default(),
            suffix: ::std::default::Default::default(),
            temperature: ::std::default::Default::default(),
            top_k: ::std::default::Default::default(),
            top_p: ::std::default::Default::default(),
            user: ::std::default::Default::default(),
        }
    }
    /// Refused unless it equals `n`.
    #[must_use]
    pub fn best_of(mut self, value: u32) -> Self {
        self.best_of = ::std::option::Option::Some(value);
        self
    }
    /// Return the prompt before the completion.
    #[must_use]
    pub fn echo(mut self, value: bool) -> Self {
        self.echo = ::std::option::Option::Some(value);
        self
    }
    /// Subtracted from the logits of tokens each time that the text holds them.
    #[must_use]
    pub fn frequency_penalty(mut self, value: f64) -> Self {
        self.frequency_penalty = ::std::option::Option::Some(value);
        self
    }
    /// Added to the logits of tokens, by token id, each between -100 and 100.
    #[must_use]
    pub fn logit_bias(
        mut self,
        value: ::std::collections::HashMap<::std::string::String, f64>,
    ) -> Self {
        self.logit_bias = ::std::option::Option::Some(value);
        self
    }
    /// Log-probabilities of so many candidates per token, and of the token.
    #[must_use]
    pub fn logprobs(mut self, value: u32) -> Self {
        self.logprobs = ::std::option::Option::Some(value);
        self
    }
    /// Most tokens to sample; 16 when null. 0 is for `echo`.
    #[must_use]
    pub fn max_tokens(mut self, value: u32) -> Self {
        self.max_tokens = ::std::option::Option::Some(value);
        self
    }
    /// Tokens less likely than this fraction of the most likely one are not sampled; 0 is off.
    #[must_use]
    pub fn min_p(mut self, value: f64) -> Self {
        self.min_p = ::std::option::Option::Some(value);
        self
    }
    /// Completions of each prompt.
    #[must_use]
    pub fn n(mut self, value: u32) -> Self {
        self.n = ::std::option::Option::Some(value);
        self
    }
    /// Subtracted from the logits of tokens that the text holds.
    #[must_use]
    pub fn presence_penalty(mut self, value: f64) -> Self {
        self.presence_penalty = ::std::option::Option::Some(value);
        self
    }
    /// Divides positive logits of tokens that prompt or text hold, and multiplies negative ones; 1 is off.
    #[must_use]
    pub fn repetition_penalty(mut self, value: f64) -> Self {
        self.repetition_penalty = ::std::option::Option::Some(value);
        self
    }
    /// Makes sampling repeatable.
    #[must_use]
    pub fn seed(mut self, value: i64) -> Self {
        self.seed = ::std::option::Option::Some(value);
        self
    }
    /// Ends a completion; not part of its text.
    #[must_use]
    pub fn stop(mut self, value: StopStrings) -> Self {
        self.stop = ::std::option::Option::Some(value);
        self
    }
    /// Answer in server-sent events.
    #[must_use]
    pub fn stream(mut self, value: bool) -> Self {
        self.stream = ::std::option::Option::Some(value);
        self
    }
    /// Of a stream.
    #[must_use]
    pub fn stream_options(mut self, value: StreamOptions) -> Self {
        self.stream_options = ::std::option::Option::Some(value);
        self
    }
    /// Refused unless it is empty.
    #[must_use]
    pub fn suffix(mut self, value: impl Into<::std::string::String>) -> Self {
        self.suffix = ::std::option::Option::Some(value.into());
        self
    }
    /// Divides the logits; 0 is greedy, 1 when null.
    #[must_use]
    pub fn temperature(mut self, value: f64) -> Self {
        self.temperature = ::std::option::Option::Some(value);
        self
    }
    /// Keep the `k` most likely; -1 and 0 are off.
    #[must_use]
    pub fn top_k(mut self, value: i64) -> Self {
        self.top_k = ::std::option::Option::Some(value);
        self
    }
    /// Keep the smallest set whose probability reaches `p`.
    #[must_use]
    pub fn top_p(mut self, value: f64) -> Self {
        self.top_p = ::std::option::Option::Some(value);
        self
    }
    /// Accepted and ignored.
    #[must_use]
    pub fn user(mut self, value: impl Into<::std::string::String>) -> Self {
        self.user = ::std::option::Option::Some(value.into());
        self
    }
}
impl CompletionResponse {
    /// CompletionResponse with what it must have, and the defaults of the rest.
    pub fn new(
        choices: ::std::vec::Vec<CompletionChoice>,
        created: i64,
        id: impl Into<::std::string::String>,
        model: impl Into<::std::string::String>,
        object: impl Into<::std::string::String>,
    ) -> Self {
        Self {
            choices,
            created,
            id: id.into(),
            model: model.into(),
            object: object.into(),
            usage: ::std::default::Default::default(),
        }
    }
    /// Tokens of the request.
    #[must_use]
    pub fn usage(mut self, value: Usage) -> Self {
        self.usage = ::std::option::Option::Some(value);
        self
    }
}
impl ::std::convert::From<&str> for ConfigValue {
    fn from(value: &str) -> Self {
        Self::String(value.into())
    }
}
impl ::std::convert::From<::std::string::String> for ConfigValue {
    fn from(value: ::std::string::String) -> Self {
        Self::String(value.into())
    }
}
impl ContentPart {
    /// ContentPart with what it must have, and the defaults of the rest.
    pub fn new(type_: impl Into<::std::string::String>) -> Self {
        Self {
            type_: type_.into(),
            text: ::std::default::Default::default(),
        }
    }
    /// Of a `text`.
    #[must_use]
    pub fn text(mut self, value: impl Into<::std::string::String>) -> Self {
        self.text = ::std::option::Option::Some(value.into());
        self
    }
}
impl CopyWeightsRequest {
    /// CopyWeightsRequest with what it must have, and the defaults of the rest.
    pub fn new(source_path: impl Into<::std::string::String>) -> Self {
        Self {
            source_path: source_path.into(),
            destination_project_id: ::std::default::Default::default(),
            model_seq_id: ::std::default::Default::default(),
            session_id: ::std::default::Default::default(),
            ttl_seconds: ::std::default::Default::default(),
            weights_access_token: ::std::default::Default::default(),
        }
    }
    /// The project of the new session.
    #[must_use]
    pub fn destination_project_id(
        mut self,
        value: impl Into<::std::string::String>,
    ) -> Self {
        self.destination_project_id = ::std::option::Option::Some(value.into());
        self
    }
    /// Counts that session's models.
    #[must_use]
    pub fn model_seq_id(mut self, value: u64) -> Self {
        self.model_seq_id = ::std::option::Option::Some(value);
        self
    }
    /// The session of the run that holds the copy.
    #[must_use]
    pub fn session_id(mut self, value: impl Into<::std::string::String>) -> Self {
        self.session_id = ::std::option::Option::Some(value.into());
        self
    }
    /// Seconds until the copy is deleted; never when null, whenever the source is.
    #[must_use]
    pub fn ttl_seconds(mut self, value: u64) -> Self {
        self.ttl_seconds = ::std::option::Option::Some(value);
        self
    }
    /// A key of a tenant that may read the checkpoint; the header `x-tinker-weights-access-token` is taken first.
    #[must_use]
    pub fn weights_access_token(
        mut self,
        value: impl Into<::std::string::String>,
    ) -> Self {
        self.weights_access_token = ::std::option::Option::Some(value.into());
        self
    }
}
impl CopyWeightsResponse {
    /// CopyWeightsResponse with what it must have, and the defaults of the rest.
    pub fn new(tinker_path: impl Into<::std::string::String>) -> Self {
        Self {
            tinker_path: tinker_path.into(),
        }
    }
}
impl CountTokensRequest {
    /// CountTokensRequest with what it must have, and the defaults of the rest.
    pub fn new(
        messages: ::std::vec::Vec<AnthropicMessage>,
        model: impl Into<::std::string::String>,
    ) -> Self {
        Self {
            messages,
            model: model.into(),
            cache_control: ::std::default::Default::default(),
            output_config: ::std::default::Default::default(),
            system: ::std::default::Default::default(),
            thinking: ::std::default::Default::default(),
            tool_choice: ::std::default::Default::default(),
            tools: ::std::default::Default::default(),
        }
    }
    /// Accepted and ignored.
    #[must_use]
    pub fn cache_control(mut self, value: ::serde_json::Value) -> Self {
        self.cache_control = ::std::option::Option::Some(value);
        self
    }
    /// As in `messages`.
    #[must_use]
    pub fn output_config(mut self, value: OutputConfig) -> Self {
        self.output_config = ::std::option::Option::Some(value);
        self
    }
    /// As in `messages`.
    #[must_use]
    pub fn system(mut self, value: AnthropicContent) -> Self {
        self.system = ::std::option::Option::Some(value);
        self
    }
    /// As in `messages`.
    #[must_use]
    pub fn thinking(mut self, value: Thinking) -> Self {
        self.thinking = ::std::option::Option::Some(value);
        self
    }
    /// As in `messages`.
    #[must_use]
    pub fn tool_choice(mut self, value: ToolChoice) -> Self {
        self.tool_choice = ::std::option::Option::Some(value);
        self
    }
    /// As in `messages`.
    #[must_use]
    pub fn tools(mut self, value: ::std::vec::Vec<AnthropicTool>) -> Self {
        self.tools = ::std::option::Option::Some(value);
        self
    }
}
impl CountTokensResponse {
    /// CountTokensResponse with what it must have, and the defaults of the rest.
    pub fn new(input_tokens: u64) -> Self {
        Self { input_tokens }
    }
}
impl CreateCustomLossRequest {
    /// CreateCustomLossRequest with what it must have, and the defaults of the rest.
    pub fn new(
        custom_loss_seq_id: u64,
        graph: ::serde_json::Map<::std::string::String, ::serde_json::Value>,
        inputs: ::std::vec::Vec<
            ::serde_json::Map<::std::string::String, ::serde_json::Value>,
        >,
        name: impl Into<::std::string::String>,
        session_id: impl Into<::std::string::String>,
    ) -> Self {
        Self {
            custom_loss_seq_id,
            graph,
            inputs,
            name: name.into(),
            session_id: session_id.into(),
        }
    }
}
impl CreateKeyRequest {
    /// CreateKeyRequest with what it must have, and the defaults of the rest.
    pub fn new(name: impl Into<::std::string::String>) -> Self {
        Self {
            name: name.into(),
            expires_in_seconds: ::std::default::Default::default(),
            note: ::std::default::Default::default(),
            role: ::std::default::Default::default(),
            scopes: ::std::default::Default::default(),
            user: ::std::default::Default::default(),
        }
    }
    /// Seconds from now after which it expires; absent for never.
    #[must_use]
    pub fn expires_in_seconds(mut self, value: u32) -> Self {
        self.expires_in_seconds = ::std::option::Option::Some(value);
        self
    }
    /// For people.
    #[must_use]
    pub fn note(mut self, value: impl Into<::std::string::String>) -> Self {
        self.note = ::std::option::Option::Some(value.into());
        self
    }
    /// `admin`, `member` (when absent) or `read-only`.
    #[must_use]
    pub fn role(mut self, value: impl Into<::std::string::String>) -> Self {
        self.role = ::std::option::Option::Some(value.into());
        self
    }
    /// Cuts it to some of `train`, `sample`, `checkpoints` and `admin`.
    #[must_use]
    pub fn scopes(mut self, value: ::std::vec::Vec<::std::string::String>) -> Self {
        self.scopes = ::std::option::Option::Some(value);
        self
    }
    /// The email of the user whose it is; absent for one of the organisation's programs.
    #[must_use]
    pub fn user(mut self, value: impl Into<::std::string::String>) -> Self {
        self.user = ::std::option::Option::Some(value.into());
        self
    }
}
impl CreateKeyResponse {
    /// CreateKeyResponse with what it must have, and the defaults of the rest.
    pub fn new(details: ApiKey, key: impl Into<::std::string::String>) -> Self {
        Self { details, key: key.into() }
    }
}
impl CreateModelRequest {
    /// CreateModelRequest with what it must have, and the defaults of the rest.
    pub fn new(
        base_model: impl Into<::std::string::String>,
        model_seq_id: u64,
        session_id: impl Into<::std::string::String>,
    ) -> Self {
        Self {
            base_model: base_model.into(),
            model_seq_id,
            session_id: session_id.into(),
            lora_config: ::std::default::Default::default(),
            optimizer_config: ::std::default::Default::default(),
            user_metadata: ::std::default::Default::default(),
        }
    }
    /// The adapter; all parameters are trained without one.
    #[must_use]
    pub fn lora_config(mut self, value: LoraConfig) -> Self {
        self.lora_config = ::std::option::Option::Some(value);
        self
    }
    /// The optimizer family.
    #[must_use]
    pub fn optimizer_config(mut self, value: OptimizerConfig) -> Self {
        self.optimizer_config = ::std::option::Option::Some(value);
        self
    }
    /// Stored with the run.
    #[must_use]
    pub fn user_metadata(
        mut self,
        value: ::serde_json::Map<::std::string::String, ::serde_json::Value>,
    ) -> Self {
        self.user_metadata = value;
        self
    }
}
impl CreateOrganisationRequest {
    /// CreateOrganisationRequest with what it must have, and the defaults of the rest.
    pub fn new(name: impl Into<::std::string::String>) -> Self {
        Self {
            name: name.into(),
            operator: ::std::default::Default::default(),
        }
    }
    /// Its admins manage all organisations.
    #[must_use]
    pub fn operator(mut self, value: bool) -> Self {
        self.operator = ::std::option::Option::Some(value);
        self
    }
}
impl CreateProjectRequest {
    /// CreateProjectRequest with what it must have, and the defaults of the rest.
    pub fn new(id: impl Into<::std::string::String>) -> Self {
        Self {
            id: id.into(),
            name: ::std::default::Default::default(),
        }
    }
    /// For people.
    #[must_use]
    pub fn name(mut self, value: impl Into<::std::string::String>) -> Self {
        self.name = ::std::option::Option::Some(value.into());
        self
    }
}
impl CreateSamplingSessionRequest {
    /// CreateSamplingSessionRequest with what it must have, and the defaults of the rest.
    pub fn new(
        sampling_session_seq_id: u64,
        session_id: impl Into<::std::string::String>,
    ) -> Self {
        Self {
            sampling_session_seq_id,
            session_id: session_id.into(),
            base_model: ::std::default::Default::default(),
            model_path: ::std::default::Default::default(),
        }
    }
    /// A base model to sample from.
    #[must_use]
    pub fn base_model(mut self, value: impl Into<::std::string::String>) -> Self {
        self.base_model = ::std::option::Option::Some(value.into());
        self
    }
    /// A sampler checkpoint to sample from.
    #[must_use]
    pub fn model_path(mut self, value: impl Into<::std::string::String>) -> Self {
        self.model_path = ::std::option::Option::Some(value.into());
        self
    }
}
impl CreateSamplingSessionResponse {
    /// CreateSamplingSessionResponse with what it must have, and the defaults of the rest.
    pub fn new(sampling_session_id: impl Into<::std::string::String>) -> Self {
        Self {
            sampling_session_id: sampling_session_id.into(),
        }
    }
}
impl CreateSessionRequest {
    /// CreateSessionRequest with what it must have, and the defaults of the rest.
    pub fn new() -> Self {
        Self {
            display_name: ::std::default::Default::default(),
            project_id: ::std::default::Default::default(),
            sdk_version: ::std::default::Default::default(),
            tags: ::std::default::Default::default(),
            user_metadata: ::std::default::Default::default(),
        }
    }
    /// A name for people.
    #[must_use]
    pub fn display_name(mut self, value: impl Into<::std::string::String>) -> Self {
        self.display_name = ::std::option::Option::Some(value.into());
        self
    }
    /// A project to count it under.
    #[must_use]
    pub fn project_id(mut self, value: impl Into<::std::string::String>) -> Self {
        self.project_id = ::std::option::Option::Some(value.into());
        self
    }
    /// The client's version.
    #[must_use]
    pub fn sdk_version(mut self, value: impl Into<::std::string::String>) -> Self {
        self.sdk_version = ::std::option::Option::Some(value.into());
        self
    }
    /// Labels.
    #[must_use]
    pub fn tags(mut self, value: ::std::vec::Vec<::std::string::String>) -> Self {
        self.tags = value;
        self
    }
    /// Free-form.
    #[must_use]
    pub fn user_metadata(
        mut self,
        value: ::serde_json::Map<::std::string::String, ::serde_json::Value>,
    ) -> Self {
        self.user_metadata = value;
        self
    }
}
impl CreateSessionResponse {
    /// CreateSessionResponse with what it must have, and the defaults of the rest.
    pub fn new(session_id: impl Into<::std::string::String>) -> Self {
        Self {
            session_id: session_id.into(),
        }
    }
}
impl CreateUserRequest {
    /// CreateUserRequest with what it must have, and the defaults of the rest.
    pub fn new(email: impl Into<::std::string::String>) -> Self {
        Self {
            email: email.into(),
            name: ::std::default::Default::default(),
            role: ::std::default::Default::default(),
        }
    }
    /// For people.
    #[must_use]
    pub fn name(mut self, value: impl Into<::std::string::String>) -> Self {
        self.name = ::std::option::Option::Some(value.into());
        self
    }
    /// `admin`, `member` (when absent) or `read-only`.
    #[must_use]
    pub fn role(mut self, value: impl Into<::std::string::String>) -> Self {
        self.role = ::std::option::Option::Some(value.into());
        self
    }
}
impl Cursor {
    /// Cursor with what it must have, and the defaults of the rest.
    pub fn new(limit: u32, offset: u64, total_count: u64) -> Self {
        Self { limit, offset, total_count }
    }
}
impl DatumBody {
    /// DatumBody with what it must have, and the defaults of the rest.
    pub fn new(model_input: ModelInput) -> Self {
        Self {
            model_input,
            loss_fn_inputs: ::std::default::Default::default(),
        }
    }
    /// Inputs of the loss function by name.
    #[must_use]
    pub fn loss_fn_inputs(
        mut self,
        value: ::std::collections::HashMap<::std::string::String, TensorData>,
    ) -> Self {
        self.loss_fn_inputs = value;
        self
    }
}
impl ErrorBody {
    /// ErrorBody with what it must have, and the defaults of the rest.
    pub fn new(detail: impl Into<::std::string::String>) -> Self {
        Self {
            detail: detail.into(),
            x_request_id: ::std::default::Default::default(),
        }
    }
    /// The id of the HTTP request, as in the header `x-request-id`.
    #[must_use]
    pub fn x_request_id(mut self, value: impl Into<::std::string::String>) -> Self {
        self.x_request_id = ::std::option::Option::Some(value.into());
        self
    }
}
impl ExternalUrlsResponse {
    /// ExternalUrlsResponse with what it must have, and the defaults of the rest.
    pub fn new(
        expires: impl Into<::std::string::String>,
        urls: ::std::collections::HashMap<::std::string::String, ::std::string::String>,
    ) -> Self {
        Self {
            expires: expires.into(),
            urls,
        }
    }
}
impl FailedResponse {
    /// FailedResponse with what it must have, and the defaults of the rest.
    pub fn new(
        category: impl Into<::std::string::String>,
        error: impl Into<::std::string::String>,
    ) -> Self {
        Self {
            category: category.into(),
            error: error.into(),
        }
    }
}
impl FinishReason {
    /// FinishReason with what it must have, and the defaults of the rest.
    pub fn new(type_: FinishKind) -> Self {
        Self { type_ }
    }
}
impl FinishRequest {
    /// FinishRequest with what it must have, and the defaults of the rest.
    pub fn new(reason: FinishReason) -> Self {
        Self {
            reason,
            detail: ::std::default::Default::default(),
        }
    }
    /// More about it.
    #[must_use]
    pub fn detail(mut self, value: impl Into<::std::string::String>) -> Self {
        self.detail = ::std::option::Option::Some(value.into());
        self
    }
}
impl ForwardBackwardBody {
    /// ForwardBackwardBody with what it must have, and the defaults of the rest.
    pub fn new(
        forward_backward_input: ForwardBackwardInput,
        model_id: impl Into<::std::string::String>,
        seq_id: u64,
    ) -> Self {
        Self {
            forward_backward_input,
            model_id: model_id.into(),
            seq_id,
        }
    }
}
impl ForwardBackwardInput {
    /// ForwardBackwardInput with what it must have, and the defaults of the rest.
    pub fn new(
        data: ::std::vec::Vec<DatumBody>,
        loss_fn: impl Into<::std::string::String>,
    ) -> Self {
        Self {
            data,
            loss_fn: loss_fn.into(),
            loss_fn_config: ::std::default::Default::default(),
        }
    }
    /// Settings of the loss function: numbers and texts.
    #[must_use]
    pub fn loss_fn_config(
        mut self,
        value: ::std::collections::HashMap<::std::string::String, ConfigValue>,
    ) -> Self {
        self.loss_fn_config = value;
        self
    }
}
impl ForwardBody {
    /// ForwardBody with what it must have, and the defaults of the rest.
    pub fn new(
        forward_input: ForwardBackwardInput,
        model_id: impl Into<::std::string::String>,
        seq_id: u64,
    ) -> Self {
        Self {
            forward_input,
            model_id: model_id.into(),
            seq_id,
        }
    }
}
impl FunctionCall {
    /// FunctionCall with what it must have, and the defaults of the rest.
    pub fn new(
        arguments: impl Into<::std::string::String>,
        name: impl Into<::std::string::String>,
    ) -> Self {
        Self {
            arguments: arguments.into(),
            name: name.into(),
        }
    }
}
impl FuturesTarget {
    /// FuturesTarget with what it must have, and the defaults of the rest.
    pub fn new(sampling_session_id: impl Into<::std::string::String>) -> Self {
        Self {
            sampling_session_id: sampling_session_id.into(),
            cloned_sampler_id: ::std::default::Default::default(),
            type_: ::std::default::Default::default(),
        }
    }
    /// `seq_id` divided by 10^9.
    #[must_use]
    pub fn cloned_sampler_id(mut self, value: u64) -> Self {
        self.cloned_sampler_id = ::std::option::Option::Some(value);
        self
    }
    /// `sampling_session`.
    #[must_use]
    pub fn type_(mut self, value: impl Into<::std::string::String>) -> Self {
        self.type_ = ::std::option::Option::Some(value.into());
        self
    }
}
impl GetInfoRequest {
    /// GetInfoRequest with what it must have, and the defaults of the rest.
    pub fn new(model_id: impl Into<::std::string::String>) -> Self {
        Self { model_id: model_id.into() }
    }
}
impl GetInfoResponse {
    /// GetInfoResponse with what it must have, and the defaults of the rest.
    pub fn new(
        is_lora: bool,
        model_data: ModelData,
        model_id: impl Into<::std::string::String>,
        model_name: impl Into<::std::string::String>,
        optimizer_config: OptimizerConfig,
    ) -> Self {
        Self {
            is_lora,
            model_data,
            model_id: model_id.into(),
            model_name: model_name.into(),
            optimizer_config,
            lora_rank: ::std::default::Default::default(),
        }
    }
    /// The adapter's rank.
    #[must_use]
    pub fn lora_rank(mut self, value: u32) -> Self {
        self.lora_rank = ::std::option::Option::Some(value);
        self
    }
}
impl HealthResponse {
    /// HealthResponse with what it must have, and the defaults of the rest.
    pub fn new(status: impl Into<::std::string::String>) -> Self {
        Self { status: status.into() }
    }
}
impl HeartbeatRequest {
    /// HeartbeatRequest with what it must have, and the defaults of the rest.
    pub fn new(session_id: impl Into<::std::string::String>) -> Self {
        Self {
            session_id: session_id.into(),
        }
    }
}
impl HubError {
    /// HubError with what it must have, and the defaults of the rest.
    pub fn new(error: impl Into<::std::string::String>) -> Self {
        Self { error: error.into() }
    }
}
impl IndexResponse {
    /// IndexResponse with what it must have, and the defaults of the rest.
    pub fn new(
        api: impl Into<::std::string::String>,
        docs: impl Into<::std::string::String>,
        health: impl Into<::std::string::String>,
        liveness: impl Into<::std::string::String>,
        name: impl Into<::std::string::String>,
        openapi: impl Into<::std::string::String>,
        readiness: impl Into<::std::string::String>,
        version: impl Into<::std::string::String>,
    ) -> Self {
        Self {
            api: api.into(),
            docs: docs.into(),
            health: health.into(),
            liveness: liveness.into(),
            name: name.into(),
            openapi: openapi.into(),
            readiness: readiness.into(),
            version: version.into(),
            console: ::std::default::Default::default(),
        }
    }
    /// Where the console is; absent where it is not served.
    #[must_use]
    pub fn console(mut self, value: impl Into<::std::string::String>) -> Self {
        self.console = ::std::option::Option::Some(value.into());
        self
    }
}
impl InputChunk {
    /// InputChunk with what it must have, and the defaults of the rest.
    pub fn new() -> Self {
        Self {
            tokens: ::std::default::Default::default(),
            type_: ::std::default::Default::default(),
        }
    }
    /// Token ids of `encoded_text`.
    #[must_use]
    pub fn tokens(mut self, value: ::std::vec::Vec<i64>) -> Self {
        self.tokens = ::std::option::Option::Some(value);
        self
    }
    /// `encoded_text`; `image`, `image_asset_pointer` and `dmel` are refused.
    #[must_use]
    pub fn type_(mut self, value: impl Into<::std::string::String>) -> Self {
        self.type_ = ::std::option::Option::Some(value.into());
        self
    }
}
impl JoinSamplingSessionRequest {
    /// JoinSamplingSessionRequest with what it must have, and the defaults of the rest.
    pub fn new(sampling_session_id: impl Into<::std::string::String>) -> Self {
        Self {
            sampling_session_id: sampling_session_id.into(),
        }
    }
}
impl JoinSamplingSessionResponse {
    /// JoinSamplingSessionResponse with what it must have, and the defaults of the rest.
    pub fn new(client_counter: u64) -> Self {
        Self { client_counter }
    }
}
impl JwkResponse {
    /// JwkResponse with what it must have, and the defaults of the rest.
    pub fn new(
        alg: impl Into<::std::string::String>,
        crv: impl Into<::std::string::String>,
        kid: impl Into<::std::string::String>,
        kty: impl Into<::std::string::String>,
        use_: impl Into<::std::string::String>,
        x: impl Into<::std::string::String>,
    ) -> Self {
        Self {
            alg: alg.into(),
            crv: crv.into(),
            kid: kid.into(),
            kty: kty.into(),
            use_: use_.into(),
            x: x.into(),
        }
    }
}
impl JwksResponse {
    /// JwksResponse with what it must have, and the defaults of the rest.
    pub fn new(keys: ::std::vec::Vec<JwkResponse>) -> Self {
        Self { keys }
    }
}
impl KeysResponse {
    /// KeysResponse with what it must have, and the defaults of the rest.
    pub fn new(keys: ::std::vec::Vec<ApiKey>) -> Self {
        Self { keys }
    }
}
impl LimitValue {
    /// LimitValue with what it must have, and the defaults of the rest.
    pub fn new(origin: LimitOrigin) -> Self {
        Self {
            origin,
            value: ::std::default::Default::default(),
        }
    }
    /// Its value; absent where it is not set.
    #[must_use]
    pub fn value(mut self, value: u64) -> Self {
        self.value = ::std::option::Option::Some(value);
        self
    }
}
impl LimitsResponse {
    /// LimitsResponse with what it must have, and the defaults of the rest.
    pub fn new(
        max_queued_bytes: LimitValue,
        max_queued_requests: LimitValue,
        max_queued_tokens: LimitValue,
        max_runs: LimitValue,
        max_storage_bytes: LimitValue,
        tokens_per_minute: LimitValue,
        weight: LimitValue,
    ) -> Self {
        Self {
            max_queued_bytes,
            max_queued_requests,
            max_queued_tokens,
            max_runs,
            max_storage_bytes,
            tokens_per_minute,
            weight,
        }
    }
}
impl LoadWeightsRequest {
    /// LoadWeightsRequest with what it must have, and the defaults of the rest.
    pub fn new(optimizer: bool, path: impl Into<::std::string::String>) -> Self {
        Self {
            optimizer,
            path: path.into(),
            base_model: ::std::default::Default::default(),
            model_id: ::std::default::Default::default(),
            model_seq_id: ::std::default::Default::default(),
            optimizer_config: ::std::default::Default::default(),
            seq_id: ::std::default::Default::default(),
            session_id: ::std::default::Default::default(),
            user_metadata: ::std::default::Default::default(),
            weights_access_token: ::std::default::Default::default(),
        }
    }
    /// That of the new run: the checkpoint's, or another name of the same weights.
    #[must_use]
    pub fn base_model(mut self, value: impl Into<::std::string::String>) -> Self {
        self.base_model = ::std::option::Option::Some(value.into());
        self
    }
    /// The existing run.
    #[must_use]
    pub fn model_id(mut self, value: impl Into<::std::string::String>) -> Self {
        self.model_id = ::std::option::Option::Some(value.into());
        self
    }
    /// Counts the session's models.
    #[must_use]
    pub fn model_seq_id(mut self, value: u64) -> Self {
        self.model_seq_id = ::std::option::Option::Some(value);
        self
    }
    /// The new run's optimizer when its state is not restored.
    #[must_use]
    pub fn optimizer_config(mut self, value: OptimizerConfig) -> Self {
        self.optimizer_config = ::std::option::Option::Some(value);
        self
    }
    /// Its position in that run's order.
    #[must_use]
    pub fn seq_id(mut self, value: u64) -> Self {
        self.seq_id = ::std::option::Option::Some(value);
        self
    }
    /// The session of the new run.
    #[must_use]
    pub fn session_id(mut self, value: impl Into<::std::string::String>) -> Self {
        self.session_id = ::std::option::Option::Some(value.into());
        self
    }
    /// Stored with the new run.
    #[must_use]
    pub fn user_metadata(
        mut self,
        value: ::serde_json::Map<::std::string::String, ::serde_json::Value>,
    ) -> Self {
        self.user_metadata = value;
        self
    }
    /// A key of a tenant that may read the checkpoint, where the caller may not.
    #[must_use]
    pub fn weights_access_token(
        mut self,
        value: impl Into<::std::string::String>,
    ) -> Self {
        self.weights_access_token = ::std::option::Option::Some(value.into());
        self
    }
}
impl LoraConfig {
    /// LoraConfig with what it must have, and the defaults of the rest.
    pub fn new(rank: u64) -> Self {
        Self {
            rank,
            seed: ::std::default::Default::default(),
            train_attn: ::std::default::Default::default(),
            train_mlp: ::std::default::Default::default(),
            train_unembed: ::std::default::Default::default(),
        }
    }
    /// Seed of the start.
    #[must_use]
    pub fn seed(mut self, value: i64) -> Self {
        self.seed = ::std::option::Option::Some(value);
        self
    }
    /// Adapt the attention projections.
    #[must_use]
    pub fn train_attn(mut self, value: bool) -> Self {
        self.train_attn = ::std::option::Option::Some(value);
        self
    }
    /// Adapt the MLP projections.
    #[must_use]
    pub fn train_mlp(mut self, value: bool) -> Self {
        self.train_mlp = ::std::option::Option::Some(value);
        self
    }
    /// Adapt the unembedding.
    #[must_use]
    pub fn train_unembed(mut self, value: bool) -> Self {
        self.train_unembed = ::std::option::Option::Some(value);
        self
    }
}
impl MessageResponse {
    /// MessageResponse with what it must have, and the defaults of the rest.
    pub fn new(
        content: ::std::vec::Vec<ReplyBlock>,
        id: impl Into<::std::string::String>,
        model: impl Into<::std::string::String>,
        role: impl Into<::std::string::String>,
        type_: impl Into<::std::string::String>,
        usage: AnthropicUsage,
    ) -> Self {
        Self {
            content,
            id: id.into(),
            model: model.into(),
            role: role.into(),
            type_: type_.into(),
            usage,
            stop_reason: ::std::default::Default::default(),
            stop_sequence: ::std::default::Default::default(),
        }
    }
    /// `end_turn`, `max_tokens`, `stop_sequence` or `tool_use`.
    #[must_use]
    pub fn stop_reason(mut self, value: impl Into<::std::string::String>) -> Self {
        self.stop_reason = ::std::option::Option::Some(value.into());
        self
    }
    /// The stop sequence that was found.
    #[must_use]
    pub fn stop_sequence(mut self, value: impl Into<::std::string::String>) -> Self {
        self.stop_sequence = ::std::option::Option::Some(value.into());
        self
    }
}
impl MessagesRequest {
    /// MessagesRequest with what it must have, and the defaults of the rest.
    pub fn new(
        max_tokens: u32,
        messages: ::std::vec::Vec<AnthropicMessage>,
        model: impl Into<::std::string::String>,
    ) -> Self {
        Self {
            max_tokens,
            messages,
            model: model.into(),
            cache_control: ::std::default::Default::default(),
            container: ::std::default::Default::default(),
            context_management: ::std::default::Default::default(),
            mcp_servers: ::std::default::Default::default(),
            metadata: ::std::default::Default::default(),
            output_config: ::std::default::Default::default(),
            service_tier: ::std::default::Default::default(),
            stop_sequences: ::std::default::Default::default(),
            stream: ::std::default::Default::default(),
            system: ::std::default::Default::default(),
            temperature: ::std::default::Default::default(),
            thinking: ::std::default::Default::default(),
            tool_choice: ::std::default::Default::default(),
            tools: ::std::default::Default::default(),
            top_k: ::std::default::Default::default(),
            top_p: ::std::default::Default::default(),
        }
    }
    /// Accepted and ignored: prompts are cached anyway.
    #[must_use]
    pub fn cache_control(mut self, value: ::serde_json::Value) -> Self {
        self.cache_control = ::std::option::Option::Some(value);
        self
    }
    /// Refused: there are no containers.
    #[must_use]
    pub fn container(mut self, value: ::serde_json::Value) -> Self {
        self.container = ::std::option::Option::Some(value);
        self
    }
    /// Refused: contexts are not edited.
    #[must_use]
    pub fn context_management(mut self, value: ::serde_json::Value) -> Self {
        self.context_management = ::std::option::Option::Some(value);
        self
    }
    /// Refused unless it is empty.
    #[must_use]
    pub fn mcp_servers(mut self, value: ::std::vec::Vec<::serde_json::Value>) -> Self {
        self.mcp_servers = ::std::option::Option::Some(value);
        self
    }
    /// Accepted and ignored.
    #[must_use]
    pub fn metadata(mut self, value: ::serde_json::Value) -> Self {
        self.metadata = ::std::option::Option::Some(value);
        self
    }
    /// How much effort the model makes, where its template has that.
    #[must_use]
    pub fn output_config(mut self, value: OutputConfig) -> Self {
        self.output_config = ::std::option::Option::Some(value);
        self
    }
    /// Refused unless it is `auto` or `standard_only`.
    #[must_use]
    pub fn service_tier(mut self, value: impl Into<::std::string::String>) -> Self {
        self.service_tier = ::std::option::Option::Some(value.into());
        self
    }
    /// Each ends the reply; not part of its text.
    #[must_use]
    pub fn stop_sequences(
        mut self,
        value: ::std::vec::Vec<::std::string::String>,
    ) -> Self {
        self.stop_sequences = ::std::option::Option::Some(value);
        self
    }
    /// Answer in server-sent events.
    #[must_use]
    pub fn stream(mut self, value: bool) -> Self {
        self.stream = ::std::option::Option::Some(value);
        self
    }
    /// Instructions before the conversation.
    #[must_use]
    pub fn system(mut self, value: AnthropicContent) -> Self {
        self.system = ::std::option::Option::Some(value);
        self
    }
    /// Divides the logits; 0 is greedy, 1 when null.
    #[must_use]
    pub fn temperature(mut self, value: f64) -> Self {
        self.temperature = ::std::option::Option::Some(value);
        self
    }
    /// Whether the model thinks before it answers, where its template has that.
    #[must_use]
    pub fn thinking(mut self, value: Thinking) -> Self {
        self.thinking = ::std::option::Option::Some(value);
        self
    }
    /// `auto` or `none`.
    #[must_use]
    pub fn tool_choice(mut self, value: ToolChoice) -> Self {
        self.tool_choice = ::std::option::Option::Some(value);
        self
    }
    /// Tools that the model may call.
    #[must_use]
    pub fn tools(mut self, value: ::std::vec::Vec<AnthropicTool>) -> Self {
        self.tools = ::std::option::Option::Some(value);
        self
    }
    /// Keep the `k` most likely; -1 and 0 are off.
    #[must_use]
    pub fn top_k(mut self, value: i64) -> Self {
        self.top_k = ::std::option::Option::Some(value);
        self
    }
    /// Keep the smallest set whose probability reaches `p`.
    #[must_use]
    pub fn top_p(mut self, value: f64) -> Self {
        self.top_p = ::std::option::Option::Some(value);
        self
    }
}
impl MetricSeries {
    /// MetricSeries with what it must have, and the defaults of the rest.
    pub fn new(
        kind: impl Into<::std::string::String>,
        metric: impl Into<::std::string::String>,
        recorded: u64,
        steps: ::std::vec::Vec<i64>,
        times: ::std::vec::Vec<i64>,
        values: ::std::vec::Vec<::std::option::Option<f64>>,
    ) -> Self {
        Self {
            kind: kind.into(),
            metric: metric.into(),
            recorded,
            steps,
            times,
            values,
        }
    }
}
impl MetricsResponse {
    /// MetricsResponse with what it must have, and the defaults of the rest.
    pub fn new(
        requests: u64,
        series: ::std::vec::Vec<MetricSeries>,
        training_run_id: impl Into<::std::string::String>,
    ) -> Self {
        Self {
            requests,
            series,
            training_run_id: training_run_id.into(),
        }
    }
}
impl ModelData {
    /// ModelData with what it must have, and the defaults of the rest.
    pub fn new(
        arch: impl Into<::std::string::String>,
        model_name: impl Into<::std::string::String>,
    ) -> Self {
        Self {
            arch: arch.into(),
            model_name: model_name.into(),
            tokenizer_id: ::std::default::Default::default(),
        }
    }
    /// Where its tokenizer is, when not under the model's name.
    #[must_use]
    pub fn tokenizer_id(mut self, value: impl Into<::std::string::String>) -> Self {
        self.tokenizer_id = ::std::option::Option::Some(value.into());
        self
    }
}
impl ModelEntry {
    /// ModelEntry with what it must have, and the defaults of the rest.
    pub fn new(
        created: i64,
        id: impl Into<::std::string::String>,
        max_model_len: u64,
        object: impl Into<::std::string::String>,
        owned_by: impl Into<::std::string::String>,
    ) -> Self {
        Self {
            created,
            id: id.into(),
            max_model_len,
            object: object.into(),
            owned_by: owned_by.into(),
            root: ::std::default::Default::default(),
        }
    }
    /// The base model of a checkpoint.
    #[must_use]
    pub fn root(mut self, value: impl Into<::std::string::String>) -> Self {
        self.root = ::std::option::Option::Some(value.into());
        self
    }
}
impl ModelInput {
    /// ModelInput with what it must have, and the defaults of the rest.
    pub fn new(chunks: ::std::vec::Vec<InputChunk>) -> Self {
        Self { chunks }
    }
}
impl ModelsResponse {
    /// ModelsResponse with what it must have, and the defaults of the rest.
    pub fn new(
        data: ::std::vec::Vec<ModelEntry>,
        object: impl Into<::std::string::String>,
    ) -> Self {
        Self {
            data,
            object: object.into(),
        }
    }
}
impl NumericsChange {
    /// NumericsChange with what it must have, and the defaults of the rest.
    pub fn new(
        from: impl Into<::std::string::String>,
        time: impl Into<::std::string::String>,
        to: impl Into<::std::string::String>,
    ) -> Self {
        Self {
            from: from.into(),
            time: time.into(),
            to: to.into(),
        }
    }
}
impl OpenAiError {
    /// OpenAiError with what it must have, and the defaults of the rest.
    pub fn new(
        message: impl Into<::std::string::String>,
        type_: impl Into<::std::string::String>,
    ) -> Self {
        Self {
            message: message.into(),
            type_: type_.into(),
            code: ::std::default::Default::default(),
            param: ::std::default::Default::default(),
        }
    }
    /// `model_not_found`, `invalid_api_key` …
    #[must_use]
    pub fn code(mut self, value: impl Into<::std::string::String>) -> Self {
        self.code = ::std::option::Option::Some(value.into());
        self
    }
    /// The field at fault.
    #[must_use]
    pub fn param(mut self, value: impl Into<::std::string::String>) -> Self {
        self.param = ::std::option::Option::Some(value.into());
        self
    }
}
impl OpenAiErrorResponse {
    /// OpenAiErrorResponse with what it must have, and the defaults of the rest.
    pub fn new(error: OpenAiError) -> Self {
        Self { error }
    }
}
impl OptimStepRequest {
    /// OptimStepRequest with what it must have, and the defaults of the rest.
    pub fn new(model_id: impl Into<::std::string::String>, seq_id: u64) -> Self {
        Self {
            model_id: model_id.into(),
            seq_id,
            adam_params: ::std::default::Default::default(),
            optimizer_params: ::std::default::Default::default(),
        }
    }
    /// Hyper-parameters of AdamW.
    #[must_use]
    pub fn adam_params(mut self, value: AdamParamsBody) -> Self {
        self.adam_params = ::std::option::Option::Some(value);
        self
    }
    /// Hyper-parameters of another family; none is supported.
    #[must_use]
    pub fn optimizer_params(
        mut self,
        value: ::serde_json::Map<::std::string::String, ::serde_json::Value>,
    ) -> Self {
        self.optimizer_params = ::std::option::Option::Some(value);
        self
    }
}
impl OptimizerConfig {
    /// OptimizerConfig with what it must have, and the defaults of the rest.
    pub fn new(type_: impl Into<::std::string::String>) -> Self {
        Self { type_: type_.into() }
    }
}
impl Organisation {
    /// Organisation with what it must have, and the defaults of the rest.
    pub fn new(
        created_at: impl Into<::std::string::String>,
        display_name: impl Into<::std::string::String>,
        name: impl Into<::std::string::String>,
        operator: bool,
    ) -> Self {
        Self {
            created_at: created_at.into(),
            display_name: display_name.into(),
            name: name.into(),
            operator,
            disabled_at: ::std::default::Default::default(),
        }
    }
    /// Since when none of its keys and tokens is accepted.
    #[must_use]
    pub fn disabled_at(mut self, value: impl Into<::std::string::String>) -> Self {
        self.disabled_at = ::std::option::Option::Some(value.into());
        self
    }
}
impl OrganisationsResponse {
    /// OrganisationsResponse with what it must have, and the defaults of the rest.
    pub fn new(organisations: ::std::vec::Vec<Organisation>) -> Self {
        Self { organisations }
    }
}
impl OutputConfig {
    /// OutputConfig with what it must have, and the defaults of the rest.
    pub fn new() -> Self {
        Self {
            effort: ::std::default::Default::default(),
            format: ::std::default::Default::default(),
        }
    }
    /// A preset such as `low`, or a number, for models whose template has it.
    #[must_use]
    pub fn effort(mut self, value: ::serde_json::Value) -> Self {
        self.effort = ::std::option::Option::Some(value);
        self
    }
    /// Refused unless it is null.
    #[must_use]
    pub fn format(mut self, value: ::serde_json::Value) -> Self {
        self.format = ::std::option::Option::Some(value);
        self
    }
}
impl OwnKeyDetails {
    /// OwnKeyDetails with what it must have, and the defaults of the rest.
    pub fn new(org_details: OwnKeyOrganisation, user_details: OwnKeyUser) -> Self {
        Self { org_details, user_details }
    }
}
impl OwnKeyOrganisation {
    /// OwnKeyOrganisation with what it must have, and the defaults of the rest.
    pub fn new(name: impl Into<::std::string::String>) -> Self {
        Self { name: name.into() }
    }
}
impl OwnKeyResponse {
    /// OwnKeyResponse with what it must have, and the defaults of the rest.
    pub fn new(
        details: OwnKeyDetails,
        key_id: i64,
        name: impl Into<::std::string::String>,
        note: impl Into<::std::string::String>,
    ) -> Self {
        Self {
            details,
            key_id,
            name: name.into(),
            note: note.into(),
        }
    }
}
impl OwnKeyUser {
    /// OwnKeyUser with what it must have, and the defaults of the rest.
    pub fn new(email: impl Into<::std::string::String>) -> Self {
        Self { email: email.into() }
    }
}
impl Project {
    /// Project with what it must have, and the defaults of the rest.
    pub fn new(
        created_at: impl Into<::std::string::String>,
        id: impl Into<::std::string::String>,
        name: impl Into<::std::string::String>,
    ) -> Self {
        Self {
            created_at: created_at.into(),
            id: id.into(),
            name: name.into(),
        }
    }
}
impl ProjectsResponse {
    /// ProjectsResponse with what it must have, and the defaults of the rest.
    pub fn new(projects: ::std::vec::Vec<Project>) -> Self {
        Self { projects }
    }
}
impl PromptAltTokensResult {
    /// PromptAltTokensResult with what it must have, and the defaults of the rest.
    pub fn new(logprobs: TensorData, tokens: TensorData) -> Self {
        Self { logprobs, tokens }
    }
}
impl PromptTokensDetails {
    /// PromptTokensDetails with what it must have, and the defaults of the rest.
    pub fn new(cached_tokens: u64) -> Self {
        Self { cached_tokens }
    }
}
impl ReadyResponse {
    /// ReadyResponse with what it must have, and the defaults of the rest.
    pub fn new(
        checks: ::std::collections::HashMap<
            ::std::string::String,
            ::std::string::String,
        >,
        status: impl Into<::std::string::String>,
    ) -> Self {
        Self {
            checks,
            status: status.into(),
        }
    }
}
impl ResponseFormat {
    /// ResponseFormat with what it must have, and the defaults of the rest.
    pub fn new(type_: impl Into<::std::string::String>) -> Self {
        Self {
            type_: type_.into(),
            json_schema: ::std::default::Default::default(),
        }
    }
    /// Of the type `json_schema`: its `name` and its `schema`.
    #[must_use]
    pub fn json_schema(mut self, value: ::serde_json::Value) -> Self {
        self.json_schema = ::std::option::Option::Some(value);
        self
    }
}
impl RetrieveFutureRequest {
    /// RetrieveFutureRequest with what it must have, and the defaults of the rest.
    pub fn new(request_id: impl Into<::std::string::String>) -> Self {
        Self {
            request_id: request_id.into(),
            allow_metadata_only: ::std::default::Default::default(),
        }
    }
    /// The server may answer with the size alone; this one never does.
    #[must_use]
    pub fn allow_metadata_only(mut self, value: bool) -> Self {
        self.allow_metadata_only = ::std::option::Option::Some(value);
        self
    }
}
impl RetrieveFuturesRequest {
    /// RetrieveFuturesRequest with what it must have, and the defaults of the rest.
    pub fn new(target: FuturesTarget) -> Self {
        Self {
            target,
            prev_cursor: ::std::default::Default::default(),
            retrieved_request_ids: ::std::default::Default::default(),
            timeout: ::std::default::Default::default(),
        }
    }
    /// The cursor of the last answer; 0 at first.
    #[must_use]
    pub fn prev_cursor(mut self, value: u64) -> Self {
        self.prev_cursor = ::std::option::Option::Some(value);
        self
    }
    /// Results that the server may drop: at most 16,384 ids of 64 bytes. A key that may only read drops none.
    #[must_use]
    pub fn retrieved_request_ids(
        mut self,
        value: ::std::vec::Vec<::std::string::String>,
    ) -> Self {
        self.retrieved_request_ids = value;
        self
    }
    /// Seconds to wait; the server's choice when null, 0 returns at once.
    #[must_use]
    pub fn timeout(mut self, value: f64) -> Self {
        self.timeout = ::std::option::Option::Some(value);
        self
    }
}
impl RetrieveFuturesResponse {
    /// RetrieveFuturesResponse with what it must have, and the defaults of the rest.
    pub fn new(completions: ::std::vec::Vec<FutureCompletion>, cursor: i64) -> Self {
        Self { completions, cursor }
    }
}
impl RotateSigningResponse {
    /// RotateSigningResponse with what it must have, and the defaults of the rest.
    pub fn new(withdrawn: i64) -> Self {
        Self { withdrawn }
    }
}
impl SampleRequest {
    /// SampleRequest with what it must have, and the defaults of the rest.
    pub fn new(
        prompt: ModelInput,
        sampling_session_id: impl Into<::std::string::String>,
        seq_id: u64,
    ) -> Self {
        Self {
            prompt,
            sampling_session_id: sampling_session_id.into(),
            seq_id,
            num_samples: ::std::default::Default::default(),
            prompt_alt_tokens_k: ::std::default::Default::default(),
            prompt_logprobs: ::std::default::Default::default(),
            prompt_logprobs_last_n: ::std::default::Default::default(),
            record_stability_info: ::std::default::Default::default(),
            sampling_params: ::std::default::Default::default(),
            target_prompt_logprobs: ::std::default::Default::default(),
            topk_prompt_logprobs: ::std::default::Default::default(),
            topk_sample_logprobs: ::std::default::Default::default(),
        }
    }
    /// Completions to sample.
    #[must_use]
    pub fn num_samples(mut self, value: u32) -> Self {
        self.num_samples = ::std::option::Option::Some(value);
        self
    }
    /// Tokens sampled independently per prompt position; 0 is off.
    #[must_use]
    pub fn prompt_alt_tokens_k(mut self, value: u32) -> Self {
        self.prompt_alt_tokens_k = ::std::option::Option::Some(value);
        self
    }
    /// Return the prompt's log-probabilities.
    #[must_use]
    pub fn prompt_logprobs(mut self, value: bool) -> Self {
        self.prompt_logprobs = ::std::option::Option::Some(value);
        self
    }
    /// Only the last `n` prompt positions.
    #[must_use]
    pub fn prompt_logprobs_last_n(mut self, value: u32) -> Self {
        self.prompt_logprobs_last_n = ::std::option::Option::Some(value);
        self
    }
    /// Keep the log-probabilities of the sampled tokens, so that training requests may name them by `sequence_id`: until a
    /// day after the last use.
    #[must_use]
    pub fn record_stability_info(mut self, value: bool) -> Self {
        self.record_stability_info = ::std::option::Option::Some(value);
        self
    }
    /// How to sample.
    #[must_use]
    pub fn sampling_params(mut self, value: SamplingParams) -> Self {
        self.sampling_params = ::std::option::Option::Some(value);
        self
    }
    /// `int64` token ids `[len(prompt) - 1, K]` whose log-probabilities to return; -1 skips a cell.
    #[must_use]
    pub fn target_prompt_logprobs(mut self, value: TensorData) -> Self {
        self.target_prompt_logprobs = ::std::option::Option::Some(value);
        self
    }
    /// Candidates per prompt position; 0 is off.
    #[must_use]
    pub fn topk_prompt_logprobs(mut self, value: u32) -> Self {
        self.topk_prompt_logprobs = ::std::option::Option::Some(value);
        self
    }
    /// Candidates per sampled token; 0 is off.
    #[must_use]
    pub fn topk_sample_logprobs(mut self, value: u32) -> Self {
        self.topk_sample_logprobs = ::std::option::Option::Some(value);
        self
    }
}
impl SampleResult {
    /// SampleResult with what it must have, and the defaults of the rest.
    pub fn new(
        prompt_cache_hit_tokens: i32,
        sequences: ::std::vec::Vec<SequenceResult>,
        type_: impl Into<::std::string::String>,
    ) -> Self {
        Self {
            prompt_cache_hit_tokens,
            sequences,
            type_: type_.into(),
            prompt_alt_tokens: ::std::default::Default::default(),
            prompt_logprobs: ::std::default::Default::default(),
            target_prompt_logprobs: ::std::default::Default::default(),
            topk_prompt_logprobs: ::std::default::Default::default(),
        }
    }
    /// Tokens sampled at every prompt position after the first.
    #[must_use]
    pub fn prompt_alt_tokens(mut self, value: PromptAltTokensResult) -> Self {
        self.prompt_alt_tokens = ::std::option::Option::Some(value);
        self
    }
    /// One number per prompt token; null where there is none.
    #[must_use]
    pub fn prompt_logprobs(
        mut self,
        value: ::std::vec::Vec<::std::option::Option<f32>>,
    ) -> Self {
        self.prompt_logprobs = ::std::option::Option::Some(value);
        self
    }
    /// In the request's shape and layout.
    #[must_use]
    pub fn target_prompt_logprobs(mut self, value: TensorData) -> Self {
        self.target_prompt_logprobs = ::std::option::Option::Some(value);
        self
    }
    /// For each prompt token up to k pairs of token id and log-probability, or null.
    #[must_use]
    pub fn topk_prompt_logprobs(
        mut self,
        value: ::std::vec::Vec<
            ::std::option::Option<::std::vec::Vec<::std::vec::Vec<f64>>>,
        >,
    ) -> Self {
        self.topk_prompt_logprobs = ::std::option::Option::Some(value);
        self
    }
}
impl SamplerResponse {
    /// SamplerResponse with what it must have, and the defaults of the rest.
    pub fn new(
        base_model: impl Into<::std::string::String>,
        sampler_id: impl Into<::std::string::String>,
    ) -> Self {
        Self {
            base_model: base_model.into(),
            sampler_id: sampler_id.into(),
            model_path: ::std::default::Default::default(),
        }
    }
    /// Its checkpoint, unless it samples from a base model or from memory.
    #[must_use]
    pub fn model_path(mut self, value: impl Into<::std::string::String>) -> Self {
        self.model_path = ::std::option::Option::Some(value.into());
        self
    }
}
impl SamplingParams {
    /// SamplingParams with what it must have, and the defaults of the rest.
    pub fn new() -> Self {
        Self {
            frequency_penalty: defaults::sampling_params_frequency_penalty(),
            json_schema: ::std::default::Default::default(),
            logit_bias: ::std::default::Default::default(),
            max_tokens: ::std::default::Default::default(),
            min_p: defaults::sampling_params_min_p(),
            presence_penalty: defaults::sampling_params_presence_penalty(),
            repetition_penalty: defaults::sampling_params_repetition_penalty(),
            seed: ::std::default::Default::default(),
            stop: ::std::default::Default::default(),
            temperature: defaults::sampling_params_temperature(),
            top_k: defaults::default_i64::<i64, -1>(),
            top_p: defaults::sampling_params_top_p(),
        }
    }
    /// Subtracted from the logits of tokens each time that the completion holds them.
    #[must_use]
    pub fn frequency_penalty(mut self, value: f64) -> Self {
        self.frequency_penalty = value;
        self
    }
    /// A JSON schema that the completion follows.
    #[must_use]
    pub fn json_schema(mut self, value: ::serde_json::Value) -> Self {
        self.json_schema = ::std::option::Option::Some(value);
        self
    }
    /// Added to the logits of tokens, by token id, each between -100 and 100.
    #[must_use]
    pub fn logit_bias(mut self, value: ::serde_json::Value) -> Self {
        self.logit_bias = ::std::option::Option::Some(value);
        self
    }
    /// Most tokens to sample; up to the context limit when null.
    #[must_use]
    pub fn max_tokens(mut self, value: u32) -> Self {
        self.max_tokens = ::std::option::Option::Some(value);
        self
    }
    /// Tokens less likely than this fraction of the most likely one are not sampled; 0 is off.
    #[must_use]
    pub fn min_p(mut self, value: f64) -> Self {
        self.min_p = value;
        self
    }
    /// Subtracted from the logits of tokens that the completion holds.
    #[must_use]
    pub fn presence_penalty(mut self, value: f64) -> Self {
        self.presence_penalty = value;
        self
    }
    /// Divides positive logits of tokens that prompt or completion hold, and multiplies negative ones; 1 is off.
    #[must_use]
    pub fn repetition_penalty(mut self, value: f64) -> Self {
        self.repetition_penalty = value;
        self
    }
    /// Makes sampling repeatable.
    #[must_use]
    pub fn seed(mut self, value: i64) -> Self {
        self.seed = ::std::option::Option::Some(value);
        self
    }
    /// A string, strings, token ids, or an empty list to switch all stopping off; the model's end tokens when
    /// null.
    #[must_use]
    pub fn stop(mut self, value: ::serde_json::Value) -> Self {
        self.stop = ::std::option::Option::Some(value);
        self
    }
    /// Divides the logits; 0 is greedy.
    #[must_use]
    pub fn temperature(mut self, value: f64) -> Self {
        self.temperature = value;
        self
    }
    /// Keep the `k` most likely; -1 is off.
    #[must_use]
    pub fn top_k(mut self, value: i64) -> Self {
        self.top_k = value;
        self
    }
    /// Keep the smallest set whose probability reaches `p`; 1 is off.
    #[must_use]
    pub fn top_p(mut self, value: f64) -> Self {
        self.top_p = value;
        self
    }
}
impl SaveWeightsExternalRequest {
    /// SaveWeightsExternalRequest with what it must have, and the defaults of the rest.
    pub fn new(
        model_id: impl Into<::std::string::String>,
        path: impl Into<::std::string::String>,
        seq_id: u64,
    ) -> Self {
        Self {
            model_id: model_id.into(),
            path: path.into(),
            seq_id,
            age_encryption_recipients: ::std::default::Default::default(),
            ttl_seconds: ::std::default::Default::default(),
        }
    }
    /// Recipients in the age format (`age1…`, at most 10), to whom each file is encrypted: it gets the suffix `.age`.
    #[must_use]
    pub fn age_encryption_recipients(
        mut self,
        value: ::std::vec::Vec<::std::string::String>,
    ) -> Self {
        self.age_encryption_recipients = value;
        self
    }
    /// Seconds until it is deleted; never when null.
    #[must_use]
    pub fn ttl_seconds(mut self, value: u64) -> Self {
        self.ttl_seconds = ::std::option::Option::Some(value);
        self
    }
}
impl SaveWeightsForSamplerRequest {
    /// SaveWeightsForSamplerRequest with what it must have, and the defaults of the rest.
    pub fn new(model_id: impl Into<::std::string::String>, seq_id: u64) -> Self {
        Self {
            model_id: model_id.into(),
            seq_id,
            kind: ::std::default::Default::default(),
            path: ::std::default::Default::default(),
            sampling_session_seq_id: ::std::default::Default::default(),
            ttl_seconds: ::std::default::Default::default(),
            user_metadata: ::std::default::Default::default(),
        }
    }
    /// Whether later saves change it.
    #[must_use]
    pub fn kind(mut self, value: SamplerKind) -> Self {
        self.kind = ::std::option::Option::Some(value);
        self
    }
    /// The checkpoint's bare name.
    #[must_use]
    pub fn path(mut self, value: impl Into<::std::string::String>) -> Self {
        self.path = ::std::option::Option::Some(value.into());
        self
    }
    /// Counts the session's sampling sessions.
    #[must_use]
    pub fn sampling_session_seq_id(mut self, value: u64) -> Self {
        self.sampling_session_seq_id = ::std::option::Option::Some(value);
        self
    }
    /// Seconds until a named one is deleted; never when null.
    #[must_use]
    pub fn ttl_seconds(mut self, value: u64) -> Self {
        self.ttl_seconds = ::std::option::Option::Some(value);
        self
    }
    /// Stored with a named one.
    #[must_use]
    pub fn user_metadata(
        mut self,
        value: ::std::collections::HashMap<::std::string::String, ::std::string::String>,
    ) -> Self {
        self.user_metadata = value;
        self
    }
}
impl SaveWeightsRequest {
    /// SaveWeightsRequest with what it must have, and the defaults of the rest.
    pub fn new(
        model_id: impl Into<::std::string::String>,
        path: impl Into<::std::string::String>,
        seq_id: u64,
    ) -> Self {
        Self {
            model_id: model_id.into(),
            path: path.into(),
            seq_id,
            overwrite: ::std::default::Default::default(),
            ttl_seconds: ::std::default::Default::default(),
            user_metadata: ::std::default::Default::default(),
        }
    }
    /// Replace a checkpoint of that name.
    #[must_use]
    pub fn overwrite(mut self, value: bool) -> Self {
        self.overwrite = ::std::option::Option::Some(value);
        self
    }
    /// Seconds until it is deleted; never when null.
    #[must_use]
    pub fn ttl_seconds(mut self, value: u64) -> Self {
        self.ttl_seconds = ::std::option::Option::Some(value);
        self
    }
    /// Stored with the checkpoint.
    #[must_use]
    pub fn user_metadata(
        mut self,
        value: ::std::collections::HashMap<::std::string::String, ::std::string::String>,
    ) -> Self {
        self.user_metadata = value;
        self
    }
}
impl SearchCursor {
    /// SearchCursor with what it must have, and the defaults of the rest.
    pub fn new(
        last_created_at: impl Into<::std::string::String>,
        last_session_id: impl Into<::std::string::String>,
    ) -> Self {
        Self {
            last_created_at: last_created_at.into(),
            last_session_id: last_session_id.into(),
        }
    }
}
impl SequenceResult {
    /// SequenceResult with what it must have, and the defaults of the rest.
    pub fn new(
        stop_reason: impl Into<::std::string::String>,
        tokens: ::std::vec::Vec<i32>,
    ) -> Self {
        Self {
            stop_reason: stop_reason.into(),
            tokens,
            logprobs: ::std::default::Default::default(),
            topk_logprobs: ::std::default::Default::default(),
        }
    }
    /// One per token.
    #[must_use]
    pub fn logprobs(mut self, value: ::std::vec::Vec<f32>) -> Self {
        self.logprobs = ::std::option::Option::Some(value);
        self
    }
    /// For each token up to k pairs of token id and log-probability, or null.
    #[must_use]
    pub fn topk_logprobs(
        mut self,
        value: ::std::vec::Vec<
            ::std::option::Option<::std::vec::Vec<::std::vec::Vec<f64>>>,
        >,
    ) -> Self {
        self.topk_logprobs = ::std::option::Option::Some(value);
        self
    }
}
impl ServerCapabilities {
    /// ServerCapabilities with what it must have, and the defaults of the rest.
    pub fn new(supported_models: ::std::vec::Vec<SupportedModel>) -> Self {
        Self { supported_models }
    }
}
impl ServerSentEvent {
    /// ServerSentEvent with what it must have, and the defaults of the rest.
    pub fn new(data: impl Into<::std::string::String>) -> Self {
        Self {
            data: data.into(),
            event: ::std::default::Default::default(),
        }
    }
    /// Its type; absent in streams of the OpenAI API.
    #[must_use]
    pub fn event(mut self, value: impl Into<::std::string::String>) -> Self {
        self.event = ::std::option::Option::Some(value.into());
        self
    }
}
impl SessionProjectRequest {
    /// SessionProjectRequest with what it must have, and the defaults of the rest.
    pub fn new(project_id: impl Into<::std::string::String>) -> Self {
        Self {
            project_id: project_id.into(),
        }
    }
}
impl SessionResponse {
    /// SessionResponse with what it must have, and the defaults of the rest.
    pub fn new(
        sampler_ids: ::std::vec::Vec<::std::string::String>,
        training_run_ids: ::std::vec::Vec<::std::string::String>,
        user_metadata: ::std::collections::HashMap<
            ::std::string::String,
            ::std::string::String,
        >,
    ) -> Self {
        Self {
            sampler_ids,
            training_run_ids,
            user_metadata,
            display_name: ::std::default::Default::default(),
        }
    }
    /// A name for people.
    #[must_use]
    pub fn display_name(mut self, value: impl Into<::std::string::String>) -> Self {
        self.display_name = ::std::option::Option::Some(value.into());
        self
    }
}
impl SessionSearchRequest {
    /// SessionSearchRequest with what it must have, and the defaults of the rest.
    pub fn new() -> Self {
        Self {
            cursor: ::std::default::Default::default(),
            display_name: ::std::default::Default::default(),
            limit: ::std::default::Default::default(),
            owner: ::std::default::Default::default(),
            project_ids: ::std::default::Default::default(),
            session_id: ::std::default::Default::default(),
            statuses: ::std::default::Default::default(),
            user_metadata: ::std::default::Default::default(),
        }
    }
    /// `next_cursor` of the page before.
    #[must_use]
    pub fn cursor(mut self, value: SearchCursor) -> Self {
        self.cursor = ::std::option::Option::Some(value);
        self
    }
    /// Words that all occur in the display name, in any case.
    #[must_use]
    pub fn display_name(mut self, value: impl Into<::std::string::String>) -> Self {
        self.display_name = ::std::option::Option::Some(value.into());
        self
    }
    /// Most sessions to return.
    #[must_use]
    pub fn limit(mut self, value: u32) -> Self {
        self.limit = ::std::option::Option::Some(value);
        self
    }
    /// Whose sessions.
    #[must_use]
    pub fn owner(mut self, value: SearchOwner) -> Self {
        self.owner = ::std::option::Option::Some(value);
        self
    }
    /// In one of these projects.
    #[must_use]
    pub fn project_ids(mut self, value: ::std::vec::Vec<::std::string::String>) -> Self {
        self.project_ids = ::std::option::Option::Some(value);
        self
    }
    /// This session.
    #[must_use]
    pub fn session_id(mut self, value: impl Into<::std::string::String>) -> Self {
        self.session_id = ::std::option::Option::Some(value.into());
        self
    }
    /// With one of these statuses.
    #[must_use]
    pub fn statuses(mut self, value: ::std::vec::Vec<StatusQuery>) -> Self {
        self.statuses = ::std::option::Option::Some(value);
        self
    }
    /// With these entries.
    #[must_use]
    pub fn user_metadata(
        mut self,
        value: ::std::collections::HashMap<::std::string::String, ::std::string::String>,
    ) -> Self {
        self.user_metadata = value;
        self
    }
}
impl SessionSearchResponse {
    /// SessionSearchResponse with what it must have, and the defaults of the rest.
    pub fn new(sessions: ::std::vec::Vec<SessionSummary>) -> Self {
        Self {
            sessions,
            next_cursor: ::std::default::Default::default(),
        }
    }
    /// Where to go on; absent when there are no more.
    #[must_use]
    pub fn next_cursor(mut self, value: SearchCursor) -> Self {
        self.next_cursor = ::std::option::Option::Some(value);
        self
    }
}
impl SessionSummary {
    /// SessionSummary with what it must have, and the defaults of the rest.
    pub fn new(
        checkpoint_storage_bytes: u64,
        checkpoints_count: u64,
        created_at: impl Into<::std::string::String>,
        owner: impl Into<::std::string::String>,
        project_id: impl Into<::std::string::String>,
        session_id: impl Into<::std::string::String>,
        user_metadata: ::std::collections::HashMap<
            ::std::string::String,
            ::std::string::String,
        >,
    ) -> Self {
        Self {
            checkpoint_storage_bytes,
            checkpoints_count,
            created_at: created_at.into(),
            owner: owner.into(),
            project_id: project_id.into(),
            session_id: session_id.into(),
            user_metadata,
            display_name: ::std::default::Default::default(),
            status: ::std::default::Default::default(),
        }
    }
    /// A name for people.
    #[must_use]
    pub fn display_name(mut self, value: impl Into<::std::string::String>) -> Self {
        self.display_name = ::std::option::Option::Some(value.into());
        self
    }
    /// Absent when its heartbeats stopped.
    #[must_use]
    pub fn status(mut self, value: StatusSummary) -> Self {
        self.status = ::std::option::Option::Some(value);
        self
    }
}
impl SessionsResponse {
    /// SessionsResponse with what it must have, and the defaults of the rest.
    pub fn new(sessions: ::std::vec::Vec<::std::string::String>) -> Self {
        Self { sessions }
    }
}
impl ::std::convert::From<&str> for StopStrings {
    fn from(value: &str) -> Self {
        Self::String(value.into())
    }
}
impl ::std::convert::From<::std::string::String> for StopStrings {
    fn from(value: ::std::string::String) -> Self {
        Self::String(value.into())
    }
}
impl StorageInUse {
    /// StorageInUse with what it must have, and the defaults of the rest.
    pub fn new(checkpoint_count: u64, size_bytes: u64, size_gigabytes: f64) -> Self {
        Self {
            checkpoint_count,
            size_bytes,
            size_gigabytes,
            project_id: ::std::default::Default::default(),
            user_email: ::std::default::Default::default(),
        }
    }
    /// The project of the sessions.
    #[must_use]
    pub fn project_id(mut self, value: impl Into<::std::string::String>) -> Self {
        self.project_id = ::std::option::Option::Some(value.into());
        self
    }
    /// The email of the user whose keys created the sessions.
    #[must_use]
    pub fn user_email(mut self, value: impl Into<::std::string::String>) -> Self {
        self.user_email = ::std::option::Option::Some(value.into());
        self
    }
}
impl StorageResponse {
    /// StorageResponse with what it must have, and the defaults of the rest.
    pub fn new(data: ::std::vec::Vec<StorageInUse>) -> Self {
        Self { data }
    }
}
impl StreamOptions {
    /// StreamOptions with what it must have, and the defaults of the rest.
    pub fn new() -> Self {
        Self {
            include_obfuscation: ::std::default::Default::default(),
            include_usage: ::std::default::Default::default(),
        }
    }
    /// Accepted and ignored: nothing is padded.
    #[must_use]
    pub fn include_obfuscation(mut self, value: bool) -> Self {
        self.include_obfuscation = ::std::option::Option::Some(value);
        self
    }
    /// End the stream with a chunk that has the usage and no choices.
    #[must_use]
    pub fn include_usage(mut self, value: bool) -> Self {
        self.include_usage = value;
        self
    }
}
impl SubmitResponse {
    /// SubmitResponse with what it must have, and the defaults of the rest.
    pub fn new(request_id: impl Into<::std::string::String>) -> Self {
        Self {
            request_id: request_id.into(),
            model_id: ::std::default::Default::default(),
            sample_sequence_ids: ::std::default::Default::default(),
        }
    }
    /// The run, of training requests.
    #[must_use]
    pub fn model_id(mut self, value: impl Into<::std::string::String>) -> Self {
        self.model_id = ::std::option::Option::Some(value.into());
        self
    }
    /// One id per sample, of `asample`.
    #[must_use]
    pub fn sample_sequence_ids(
        mut self,
        value: ::std::vec::Vec<::std::string::String>,
    ) -> Self {
        self.sample_sequence_ids = ::std::option::Option::Some(value);
        self
    }
}
impl SupportedModel {
    /// SupportedModel with what it must have, and the defaults of the rest.
    pub fn new(
        max_context_length: u64,
        model_name: impl Into<::std::string::String>,
        sampleable: bool,
        trainable: bool,
    ) -> Self {
        Self {
            max_context_length,
            model_name: model_name.into(),
            sampleable,
            trainable,
        }
    }
}
impl TelemetryRequest {
    /// TelemetryRequest with what it must have, and the defaults of the rest.
    pub fn new() -> Self {
        Self {
            events: ::std::default::Default::default(),
            platform: ::std::default::Default::default(),
            sdk_version: ::std::default::Default::default(),
            session_id: ::std::default::Default::default(),
        }
    }
    /// What happened; not stored.
    #[must_use]
    pub fn events(mut self, value: ::std::vec::Vec<::serde_json::Value>) -> Self {
        self.events = value;
        self
    }
    /// The client's platform.
    #[must_use]
    pub fn platform(mut self, value: impl Into<::std::string::String>) -> Self {
        self.platform = ::std::option::Option::Some(value.into());
        self
    }
    /// The client's version.
    #[must_use]
    pub fn sdk_version(mut self, value: impl Into<::std::string::String>) -> Self {
        self.sdk_version = ::std::option::Option::Some(value.into());
        self
    }
    /// The session, or `sessionless-<uuid>`.
    #[must_use]
    pub fn session_id(mut self, value: impl Into<::std::string::String>) -> Self {
        self.session_id = ::std::option::Option::Some(value.into());
        self
    }
}
impl TelemetryResponse {
    /// TelemetryResponse with what it must have, and the defaults of the rest.
    pub fn new(status: impl Into<::std::string::String>) -> Self {
        Self { status: status.into() }
    }
}
impl TensorData {
    /// TensorData with what it must have, and the defaults of the rest.
    pub fn new(data: ::std::vec::Vec<f64>, dtype: TensorDtype) -> Self {
        Self {
            data,
            dtype,
            shape: ::std::default::Default::default(),
            sparse_col_indices: ::std::default::Default::default(),
            sparse_crow_indices: ::std::default::Default::default(),
        }
    }
    /// Extents, outermost first; one-dimensional when absent.
    #[must_use]
    pub fn shape(mut self, value: ::std::vec::Vec<i64>) -> Self {
        self.shape = ::std::option::Option::Some(value);
        self
    }
    /// Column of each element.
    #[must_use]
    pub fn sparse_col_indices(mut self, value: ::std::vec::Vec<i64>) -> Self {
        self.sparse_col_indices = ::std::option::Option::Some(value);
        self
    }
    /// Row pointers, rows + 1 entries.
    #[must_use]
    pub fn sparse_crow_indices(mut self, value: ::std::vec::Vec<i64>) -> Self {
        self.sparse_crow_indices = ::std::option::Option::Some(value);
        self
    }
}
impl Thinking {
    /// Thinking with what it must have, and the defaults of the rest.
    pub fn new(type_: impl Into<::std::string::String>) -> Self {
        Self {
            type_: type_.into(),
            budget_tokens: ::std::default::Default::default(),
            display: ::std::default::Default::default(),
        }
    }
    /// At least 1024 and below `max_tokens`; thoughts count as output, and nothing else limits them.
    #[must_use]
    pub fn budget_tokens(mut self, value: u32) -> Self {
        self.budget_tokens = ::std::option::Option::Some(value);
        self
    }
    /// Accepted and ignored.
    #[must_use]
    pub fn display(mut self, value: impl Into<::std::string::String>) -> Self {
        self.display = ::std::option::Option::Some(value.into());
        self
    }
}
impl TokenLogprob {
    /// TokenLogprob with what it must have, and the defaults of the rest.
    pub fn new(
        logprob: f64,
        token: impl Into<::std::string::String>,
        top_logprobs: ::std::vec::Vec<TopLogprob>,
    ) -> Self {
        Self {
            logprob,
            token: token.into(),
            top_logprobs,
            bytes: ::std::default::Default::default(),
        }
    }
    /// Its bytes.
    #[must_use]
    pub fn bytes(mut self, value: ::std::vec::Vec<u32>) -> Self {
        self.bytes = ::std::option::Option::Some(value);
        self
    }
}
impl ToolCall {
    /// ToolCall with what it must have, and the defaults of the rest.
    pub fn new(function: FunctionCall, id: impl Into<::std::string::String>) -> Self {
        Self {
            function,
            id: id.into(),
            index: ::std::default::Default::default(),
            type_: ::std::default::Default::default(),
        }
    }
    /// Its position, in chunks of a stream.
    #[must_use]
    pub fn index(mut self, value: i64) -> Self {
        self.index = ::std::option::Option::Some(value);
        self
    }
    /// `function`.
    #[must_use]
    pub fn type_(mut self, value: impl Into<::std::string::String>) -> Self {
        self.type_ = ::std::option::Option::Some(value.into());
        self
    }
}
impl ToolChoice {
    /// ToolChoice with what it must have, and the defaults of the rest.
    pub fn new(type_: impl Into<::std::string::String>) -> Self {
        Self {
            type_: type_.into(),
            disable_parallel_tool_use: ::std::default::Default::default(),
            name: ::std::default::Default::default(),
        }
    }
    /// Refused when true.
    #[must_use]
    pub fn disable_parallel_tool_use(mut self, value: bool) -> Self {
        self.disable_parallel_tool_use = ::std::option::Option::Some(value);
        self
    }
    /// Of the type `tool`.
    #[must_use]
    pub fn name(mut self, value: impl Into<::std::string::String>) -> Self {
        self.name = ::std::option::Option::Some(value.into());
        self
    }
}
impl TopLogprob {
    /// TopLogprob with what it must have, and the defaults of the rest.
    pub fn new(logprob: f64, token: impl Into<::std::string::String>) -> Self {
        Self {
            logprob,
            token: token.into(),
            bytes: ::std::default::Default::default(),
        }
    }
    /// Its bytes.
    #[must_use]
    pub fn bytes(mut self, value: ::std::vec::Vec<u32>) -> Self {
        self.bytes = ::std::option::Option::Some(value);
        self
    }
}
impl TraceExportResponse {
    /// TraceExportResponse with what it must have, and the defaults of the rest.
    pub fn new(
        status: impl Into<::std::string::String>,
        url: impl Into<::std::string::String>,
    ) -> Self {
        Self {
            status: status.into(),
            url: url.into(),
        }
    }
}
impl TrainingResult {
    /// TrainingResult with what it must have, and the defaults of the rest.
    pub fn new(
        loss_fn_output_type: impl Into<::std::string::String>,
        loss_fn_outputs: ::std::vec::Vec<
            ::std::collections::HashMap<::std::string::String, TensorData>,
        >,
        metrics: ::std::collections::HashMap<::std::string::String, f64>,
    ) -> Self {
        Self {
            loss_fn_output_type: loss_fn_output_type.into(),
            loss_fn_outputs,
            metrics,
        }
    }
}
impl TrainingRun {
    /// TrainingRun with what it must have, and the defaults of the rest.
    pub fn new(
        base_model: impl Into<::std::string::String>,
        corrupted: bool,
        is_lora: bool,
        last_request_time: impl Into<::std::string::String>,
        model_owner: impl Into<::std::string::String>,
        training_run_id: impl Into<::std::string::String>,
        user_metadata: ::std::collections::HashMap<
            ::std::string::String,
            ::std::string::String,
        >,
    ) -> Self {
        Self {
            base_model: base_model.into(),
            corrupted,
            is_lora,
            last_request_time: last_request_time.into(),
            model_owner: model_owner.into(),
            training_run_id: training_run_id.into(),
            user_metadata,
            last_checkpoint: ::std::default::Default::default(),
            last_sampler_checkpoint: ::std::default::Default::default(),
            lora_rank: ::std::default::Default::default(),
            numerics_changed: ::std::default::Default::default(),
        }
    }
    /// Its newest training checkpoint.
    #[must_use]
    pub fn last_checkpoint(mut self, value: Checkpoint) -> Self {
        self.last_checkpoint = ::std::option::Option::Some(value);
        self
    }
    /// Its newest sampler checkpoint.
    #[must_use]
    pub fn last_sampler_checkpoint(mut self, value: Checkpoint) -> Self {
        self.last_sampler_checkpoint = ::std::option::Option::Some(value);
        self
    }
    /// The adapter's rank.
    #[must_use]
    pub fn lora_rank(mut self, value: u32) -> Self {
        self.lora_rank = ::std::option::Option::Some(value);
        self
    }
    /// When it was continued by a worker whose results have other bits, oldest first; absent when it never was.
    #[must_use]
    pub fn numerics_changed(mut self, value: ::std::vec::Vec<NumericsChange>) -> Self {
        self.numerics_changed = value;
        self
    }
}
impl TrainingRunsResponse {
    /// TrainingRunsResponse with what it must have, and the defaults of the rest.
    pub fn new(cursor: Cursor, training_runs: ::std::vec::Vec<TrainingRun>) -> Self {
        Self { cursor, training_runs }
    }
}
impl TryAgainResponse {
    /// TryAgainResponse with what it must have, and the defaults of the rest.
    pub fn new(
        queue_state: impl Into<::std::string::String>,
        request_id: impl Into<::std::string::String>,
        type_: impl Into<::std::string::String>,
    ) -> Self {
        Self {
            queue_state: queue_state.into(),
            request_id: request_id.into(),
            type_: type_.into(),
            queue_state_reason: ::std::default::Default::default(),
        }
    }
    /// What it waits for.
    #[must_use]
    pub fn queue_state_reason(
        mut self,
        value: impl Into<::std::string::String>,
    ) -> Self {
        self.queue_state_reason = ::std::option::Option::Some(value.into());
        self
    }
}
impl TtlRequest {
    /// TtlRequest with what it must have, and the defaults of the rest.
    pub fn new() -> Self {
        Self {
            ttl_seconds: ::std::default::Default::default(),
        }
    }
    /// Seconds from now.
    #[must_use]
    pub fn ttl_seconds(mut self, value: u64) -> Self {
        self.ttl_seconds = ::std::option::Option::Some(value);
        self
    }
}
impl UploadFinishRequest {
    /// UploadFinishRequest with what it must have, and the defaults of the rest.
    pub fn new(upload_id: impl Into<::std::string::String>) -> Self {
        Self {
            upload_id: upload_id.into(),
        }
    }
}
impl UploadFinishResponse {
    /// UploadFinishResponse with what it must have, and the defaults of the rest.
    pub fn new(tinker_path: impl Into<::std::string::String>) -> Self {
        Self {
            tinker_path: tinker_path.into(),
        }
    }
}
impl UploadStartRequest {
    /// UploadStartRequest with what it must have, and the defaults of the rest.
    pub fn new(
        base_model: impl Into<::std::string::String>,
        lora_config: LoraConfig,
    ) -> Self {
        Self {
            base_model: base_model.into(),
            lora_config,
            destination_project_id: ::std::default::Default::default(),
        }
    }
    /// The project of the checkpoint.
    #[must_use]
    pub fn destination_project_id(
        mut self,
        value: impl Into<::std::string::String>,
    ) -> Self {
        self.destination_project_id = ::std::option::Option::Some(value.into());
        self
    }
}
impl UploadStartResponse {
    /// UploadStartResponse with what it must have, and the defaults of the rest.
    pub fn new(
        expires: impl Into<::std::string::String>,
        upload_id: impl Into<::std::string::String>,
        urls: ::std::collections::HashMap<::std::string::String, ::std::string::String>,
    ) -> Self {
        Self {
            expires: expires.into(),
            upload_id: upload_id.into(),
            urls,
        }
    }
}
impl UploadedFileResponse {
    /// UploadedFileResponse with what it must have, and the defaults of the rest.
    pub fn new(complete: bool, received_bytes: u64) -> Self {
        Self {
            complete,
            received_bytes,
            total_bytes: ::std::default::Default::default(),
        }
    }
    /// Of the whole file, once that is known.
    #[must_use]
    pub fn total_bytes(mut self, value: u64) -> Self {
        self.total_bytes = ::std::option::Option::Some(value);
        self
    }
}
impl Usage {
    /// Usage with what it must have, and the defaults of the rest.
    pub fn new(
        completion_tokens: u64,
        prompt_tokens: u64,
        prompt_tokens_details: PromptTokensDetails,
        total_tokens: u64,
    ) -> Self {
        Self {
            completion_tokens,
            prompt_tokens,
            prompt_tokens_details,
            total_tokens,
        }
    }
}
impl UsageEvent {
    /// UsageEvent with what it must have, and the defaults of the rest.
    pub fn new(
        base_model: impl Into<::std::string::String>,
        bucket_end: impl Into<::std::string::String>,
        bucket_start: impl Into<::std::string::String>,
        event_info: UsageInfo,
        session_id: impl Into<::std::string::String>,
    ) -> Self {
        Self {
            base_model: base_model.into(),
            bucket_end: bucket_end.into(),
            bucket_start: bucket_start.into(),
            event_info,
            session_id: session_id.into(),
            project_id: ::std::default::Default::default(),
            user_id: ::std::default::Default::default(),
        }
    }
    /// The session's project.
    #[must_use]
    pub fn project_id(mut self, value: impl Into<::std::string::String>) -> Self {
        self.project_id = ::std::option::Option::Some(value.into());
        self
    }
    /// The email of the user whose key created the session.
    #[must_use]
    pub fn user_id(mut self, value: impl Into<::std::string::String>) -> Self {
        self.user_id = ::std::option::Option::Some(value.into());
        self
    }
}
impl UsageResponse {
    /// UsageResponse with what it must have, and the defaults of the rest.
    pub fn new(
        data: ::std::vec::Vec<UsageEvent>,
        sessions: ::std::collections::HashMap<::std::string::String, UsageSession>,
    ) -> Self {
        Self { data, sessions }
    }
}
impl UsageSession {
    /// UsageSession with what it must have, and the defaults of the rest.
    pub fn new(
        user_metadata: ::std::collections::HashMap<
            ::std::string::String,
            ::std::string::String,
        >,
    ) -> Self {
        Self { user_metadata }
    }
}
impl User {
    /// User with what it must have, and the defaults of the rest.
    pub fn new(
        created_at: impl Into<::std::string::String>,
        email: impl Into<::std::string::String>,
        id: impl Into<::std::string::String>,
        name: impl Into<::std::string::String>,
        role: impl Into<::std::string::String>,
    ) -> Self {
        Self {
            created_at: created_at.into(),
            email: email.into(),
            id: id.into(),
            name: name.into(),
            role: role.into(),
            disabled_at: ::std::default::Default::default(),
        }
    }
    /// Since when none of the user's keys is accepted.
    #[must_use]
    pub fn disabled_at(mut self, value: impl Into<::std::string::String>) -> Self {
        self.disabled_at = ::std::option::Option::Some(value.into());
        self
    }
}
impl UsersResponse {
    /// UsersResponse with what it must have, and the defaults of the rest.
    pub fn new(users: ::std::vec::Vec<User>) -> Self {
        Self { users }
    }
}
impl WeightsInfoRequest {
    /// WeightsInfoRequest with what it must have, and the defaults of the rest.
    pub fn new(tinker_path: impl Into<::std::string::String>) -> Self {
        Self {
            tinker_path: tinker_path.into(),
        }
    }
}
impl WeightsInfoResponse {
    /// WeightsInfoResponse with what it must have, and the defaults of the rest.
    pub fn new(
        base_model: impl Into<::std::string::String>,
        is_lora: bool,
        optimizer_config: OptimizerConfig,
    ) -> Self {
        Self {
            base_model: base_model.into(),
            is_lora,
            optimizer_config,
            lora_rank: ::std::default::Default::default(),
            train_attn: ::std::default::Default::default(),
            train_mlp: ::std::default::Default::default(),
            train_unembed: ::std::default::Default::default(),
        }
    }
    /// The adapter's rank.
    #[must_use]
    pub fn lora_rank(mut self, value: u32) -> Self {
        self.lora_rank = ::std::option::Option::Some(value);
        self
    }
    /// The adapter covers the attention projections.
    #[must_use]
    pub fn train_attn(mut self, value: bool) -> Self {
        self.train_attn = ::std::option::Option::Some(value);
        self
    }
    /// The adapter covers the MLP projections.
    #[must_use]
    pub fn train_mlp(mut self, value: bool) -> Self {
        self.train_mlp = ::std::option::Option::Some(value);
        self
    }
    /// The adapter covers the unembedding.
    #[must_use]
    pub fn train_unembed(mut self, value: bool) -> Self {
        self.train_unembed = ::std::option::Option::Some(value);
        self
    }
}
impl WhoamiKey {
    /// WhoamiKey with what it must have, and the defaults of the rest.
    pub fn new(id: i64, name: impl Into<::std::string::String>) -> Self {
        Self { id, name: name.into() }
    }
}
impl WhoamiResponse {
    /// WhoamiResponse with what it must have, and the defaults of the rest.
    pub fn new(
        credential: WhoamiCredential,
        operator: bool,
        organisation: impl Into<::std::string::String>,
        role: impl Into<::std::string::String>,
        scopes: ::std::vec::Vec<::std::string::String>,
        subject: impl Into<::std::string::String>,
    ) -> Self {
        Self {
            credential,
            operator,
            organisation: organisation.into(),
            role: role.into(),
            scopes,
            subject: subject.into(),
            expires_at: ::std::default::Default::default(),
            key: ::std::default::Default::default(),
            user: ::std::default::Default::default(),
        }
    }
    /// When the key or token of the call expires, if it does.
    #[must_use]
    pub fn expires_at(mut self, value: impl Into<::std::string::String>) -> Self {
        self.expires_at = ::std::option::Option::Some(value.into());
        self
    }
    /// The key of the call, or that its token was made from, where the store has it.
    #[must_use]
    pub fn key(mut self, value: WhoamiKey) -> Self {
        self.key = ::std::option::Option::Some(value);
        self
    }
    /// The user; absent for a program.
    #[must_use]
    pub fn user(mut self, value: WhoamiUser) -> Self {
        self.user = ::std::option::Option::Some(value);
        self
    }
}
impl WhoamiUser {
    /// WhoamiUser with what it must have, and the defaults of the rest.
    pub fn new(
        email: impl Into<::std::string::String>,
        name: impl Into<::std::string::String>,
    ) -> Self {
        Self {
            email: email.into(),
            name: name.into(),
            id: ::std::default::Default::default(),
        }
    }
    /// Absent where the store does not have the user: an external issuer vouches for it.
    #[must_use]
    pub fn id(mut self, value: impl Into<::std::string::String>) -> Self {
        self.id = ::std::option::Option::Some(value.into());
        self
    }
}
