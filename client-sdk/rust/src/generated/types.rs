// Generated from openapi/openapi.json by `make sdk`; not for editing.

//! Bodies of requests and answers, as the API's description names them.
//!
//! `new` takes what a body must have; a method of a field's name sets what it may have.

/// Hyper-parameters of AdamW. Unknown fields are refused.
#[derive(::serde::Deserialize, ::serde::Serialize, Clone, Debug, PartialEq)]
#[serde(deny_unknown_fields)]
pub struct AdamParamsBody {
    /// Decay rate of the first moment.
    #[serde(default = "defaults::adam_params_body_beta1")]
    pub beta1: f64,
    /// Decay rate of the second moment.
    #[serde(default = "defaults::adam_params_body_beta2")]
    pub beta2: f64,
    /// Constant that is added to the denominator.
    #[serde(default = "defaults::adam_params_body_eps")]
    pub eps: f64,
    /// Maximum global norm of the gradient; 0 and negative values turn clipping off.
    #[serde(default = "defaults::adam_params_body_grad_clip_norm")]
    pub grad_clip_norm: f64,
    /// Learning rate of the step.
    #[serde(default = "defaults::adam_params_body_learning_rate")]
    pub learning_rate: f64,
    /// Decoupled weight decay, as in AdamW.
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
/// Limits of an agent session.
#[derive(::serde::Deserialize, ::serde::Serialize, Clone, Debug, Default, PartialEq)]
#[serde(deny_unknown_fields)]
pub struct AgentLimits {
    /// Tokens that all turns together may sample; by default as many as possible.
    #[serde(skip_serializing_if = "::std::option::Option::is_none")]
    pub max_tokens: ::std::option::Option<u64>,
    /// Tools that a request may offer; any number by default.
    #[serde(skip_serializing_if = "::std::option::Option::is_none")]
    pub max_tools: ::std::option::Option<u64>,
    /// Number of turns, 256 by default; each reply of a request is one.
    #[serde(skip_serializing_if = "::std::option::Option::is_none")]
    pub max_turns: ::std::option::Option<u64>,
    /// Seconds until the session expires, 3600 by default.
    #[serde(skip_serializing_if = "::std::option::Option::is_none")]
    pub seconds: ::std::option::Option<u64>,
}
/// Request body of `POST agent_sessions/{id}/rewards`. Without `turn_id` and `branch` it concerns the whole session.
#[derive(::serde::Deserialize, ::serde::Serialize, Clone, Debug, PartialEq)]
#[serde(deny_unknown_fields)]
pub struct AgentRewardRequest {
    /// Id of the last turn of the branch to reward.
    #[serde(skip_serializing_if = "::std::option::Option::is_none")]
    pub branch: ::std::option::Option<::std::string::String>,
    /// Reward: a finite number, which replaces an earlier one.
    pub reward: f64,
    /// Id of the turn to reward.
    #[serde(skip_serializing_if = "::std::option::Option::is_none")]
    pub turn_id: ::std::option::Option<::std::string::String>,
}
/// Response body of `POST agent_sessions/{id}/rewards`: an empty object.
#[derive(::serde::Deserialize, ::serde::Serialize, Clone, Debug, PartialEq)]
#[serde(transparent)]
pub struct AgentRewardResponse(
    /// The field the value.
    pub ::serde_json::Map<::std::string::String, ::serde_json::Value>,
);
impl ::std::ops::Deref for AgentRewardResponse {
    type Target = ::serde_json::Map<::std::string::String, ::serde_json::Value>;
    fn deref(&self) -> &::serde_json::Map<::std::string::String, ::serde_json::Value> {
        &self.0
    }
}
impl ::std::convert::From<AgentRewardResponse>
for ::serde_json::Map<::std::string::String, ::serde_json::Value> {
    fn from(value: AgentRewardResponse) -> Self {
        value.0
    }
}
impl ::std::convert::From<::serde_json::Map<::std::string::String, ::serde_json::Value>>
for AgentRewardResponse {
    fn from(
        value: ::serde_json::Map<::std::string::String, ::serde_json::Value>,
    ) -> Self {
        Self(value)
    }
}
/// An agent session with its limits and what is used of them.
#[derive(::serde::Deserialize, ::serde::Serialize, Clone, Debug, PartialEq)]
pub struct AgentSessionResponse {
    /// Id of the session.
    pub agent_session_id: ::std::string::String,
    /// Base model of the weights.
    pub base_model: ::std::string::String,
    /// Time of creation, in RFC 3339.
    pub created_at: ::std::string::String,
    /// Time from which the key is refused, in RFC 3339.
    pub expires_at: ::std::string::String,
    /// Limits of the session.
    pub limits: AgentLimits,
    /// Sampler checkpoint from which the session samples.
    #[serde(skip_serializing_if = "::std::option::Option::is_none")]
    pub model_path: ::std::option::Option<::std::string::String>,
    /// Reward of the whole session, if one was posted.
    #[serde(skip_serializing_if = "::std::option::Option::is_none")]
    pub reward: ::std::option::Option<f64>,
    /// Sampling session whose weights are sampled.
    #[serde(skip_serializing_if = "::std::option::Option::is_none")]
    pub sampling_session_id: ::std::option::Option<::std::string::String>,
    /// `open`, `ended` (by a call) or `expired`.
    pub state: ::std::string::String,
    /// Tokens sampled so far.
    pub tokens: u64,
    /// Number of turns so far.
    pub turns: u64,
}
/// Response body of `GET agent_sessions`.
#[derive(::serde::Deserialize, ::serde::Serialize, Clone, Debug, PartialEq)]
pub struct AgentSessionsResponse {
    /// Sessions of the page, newest first.
    pub agent_sessions: ::std::vec::Vec<AgentSessionResponse>,
}
/// Content of a message: a text, or a list of blocks.
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
/// Description of an error.
#[derive(::serde::Deserialize, ::serde::Serialize, Clone, Debug, PartialEq)]
pub struct AnthropicError {
    /// Description of the error, for display.
    pub message: ::std::string::String,
    /// Type of the error: `invalid_request_error`, `rate_limit_error`, `api_error` …
    #[serde(rename = "type")]
    pub type_: ::std::string::String,
}
/// Response to a request that was refused or failed.
#[derive(::serde::Deserialize, ::serde::Serialize, Clone, Debug, PartialEq)]
pub struct AnthropicErrorResponse {
    /// Description of the error.
    pub error: AnthropicError,
    /// Id of the request in the server's log.
    #[serde(skip_serializing_if = "::std::option::Option::is_none")]
    pub request_id: ::std::option::Option<::std::string::String>,
    /// Always the text `error`.
    #[serde(rename = "type")]
    pub type_: ::std::string::String,
}
/// A message of a conversation.
#[derive(::serde::Deserialize, ::serde::Serialize, Clone, Debug, PartialEq)]
#[serde(deny_unknown_fields)]
pub struct AnthropicMessage {
    /// The text or blocks of the message.
    pub content: AnthropicContent,
    /// Author of the message: `user` or `assistant`.
    pub role: ::std::string::String,
}
/// A tool that the model may call.
#[derive(::serde::Deserialize, ::serde::Serialize, Clone, Debug, PartialEq)]
pub struct AnthropicTool {
    /// What the tool does.
    #[serde(skip_serializing_if = "::std::option::Option::is_none")]
    pub description: ::std::option::Option<::std::string::String>,
    /// JSON schema of the tool's arguments.
    #[serde(skip_serializing_if = "::std::option::Option::is_none")]
    pub input_schema: ::std::option::Option<::serde_json::Value>,
    /// Name of the tool.
    pub name: ::std::string::String,
    /// `custom` (the default); other types are refused.
    #[serde(rename = "type", skip_serializing_if = "::std::option::Option::is_none")]
    pub type_: ::std::option::Option<::std::string::String>,
}
/// Numbers of tokens in a request and its reply.
#[derive(::serde::Deserialize, ::serde::Serialize, Clone, Debug, PartialEq)]
pub struct AnthropicUsage {
    /// Always 0 on this server.
    pub cache_creation_input_tokens: u64,
    /// Prompt tokens that the prefix cache served.
    pub cache_read_input_tokens: u64,
    /// Prompt tokens that were computed, without those that the prefix cache served.
    pub input_tokens: u64,
    /// Tokens that were sampled.
    pub output_tokens: u64,
}
/// An API key, without its secret.
#[derive(::serde::Deserialize, ::serde::Serialize, Clone, Debug, PartialEq)]
pub struct ApiKey {
    /// Time of creation, in RFC 3339.
    pub created_at: ::std::string::String,
    /// Time at which the key expires, in RFC 3339; absent if it never does.
    #[serde(skip_serializing_if = "::std::option::Option::is_none")]
    pub expires_at: ::std::option::Option<::std::string::String>,
    /// First characters of the key, to recognise it by.
    pub hint: ::std::string::String,
    /// Number that identifies the key.
    pub id: i64,
    /// Name for display; any text.
    pub name: ::std::string::String,
    /// Note for display; any text.
    pub note: ::std::string::String,
    /// Time at which the key was revoked, in RFC 3339; absent unless it was.
    #[serde(skip_serializing_if = "::std::option::Option::is_none")]
    pub revoked_at: ::std::option::Option<::std::string::String>,
    /// `admin`, `member` or `read-only`: the highest role that the key grants.
    pub role: ::std::string::String,
    /// Scopes that the key is limited to: `train`, `sample`, `checkpoints` and `admin`; absent if it grants all scopes
    /// of its role.
    #[serde(skip_serializing_if = "::std::option::Option::is_none")]
    pub scopes: ::std::option::Option<::std::vec::Vec<::std::string::String>>,
    /// Email address of the user who owns the key; absent if the key belongs to a program of the organisation.
    #[serde(skip_serializing_if = "::std::option::Option::is_none")]
    pub user: ::std::option::Option<::std::string::String>,
}
/// An action that was recorded.
#[derive(::serde::Deserialize, ::serde::Serialize, Clone, Debug, PartialEq)]
pub struct AuditEntry {
    /// Object and action, such as `checkpoint_delete`.
    pub event: ::std::string::String,
    /// Details: `actor`, `subject`, `key_id`, `request_id`, `address`, and others that depend on the event.
    pub event_details: ::serde_json::Map<::std::string::String, ::serde_json::Value>,
    /// Run of the checkpoint that was acted on.
    #[serde(skip_serializing_if = "::std::option::Option::is_none")]
    pub model_id: ::std::option::Option<::std::string::String>,
    /// Time of the action, in RFC 3339.
    pub timestamp: ::std::string::String,
    /// Path of the checkpoint that was acted on.
    #[serde(skip_serializing_if = "::std::option::Option::is_none")]
    pub tinker_path: ::std::option::Option<::std::string::String>,
}
/// Response body of `audit`.
#[derive(::serde::Deserialize, ::serde::Serialize, Clone, Debug, PartialEq)]
pub struct AuditResponse {
    /// The newest 10,000 entries of the day, oldest first.
    pub entries: ::std::vec::Vec<AuditEntry>,
}
/// Request body of `auth/token`.
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
/// Response body of `auth/token`.
#[derive(::serde::Deserialize, ::serde::Serialize, Clone, Debug, PartialEq)]
pub struct AuthTokenResponse {
    /// A JSON Web Token. Clients send it in place of the API key, in `X-API-Key` or as a bearer token.
    pub jwt: ::std::string::String,
}
/// A part of a message: `text`, `image`, `thinking`, `redacted_thinking`, `tool_use` or `tool_result`. Other types are
/// refused.
#[derive(::serde::Deserialize, ::serde::Serialize, Clone, Debug, PartialEq)]
pub struct Block {
    /// `tool_result` blocks: what the tool returned.
    #[serde(skip_serializing_if = "::std::option::Option::is_none")]
    pub content: ::std::option::Option<AnthropicContent>,
    /// `tool_use` blocks: id of the call.
    #[serde(skip_serializing_if = "::std::option::Option::is_none")]
    pub id: ::std::option::Option<::std::string::String>,
    /// `tool_use` blocks: arguments of the call, an object.
    #[serde(skip_serializing_if = "::std::option::Option::is_none")]
    pub input: ::std::option::Option<::serde_json::Value>,
    /// `tool_result` blocks: accepted, but ignored; the content describes the error.
    #[serde(skip_serializing_if = "::std::option::Option::is_none")]
    pub is_error: ::std::option::Option<bool>,
    /// `tool_use` blocks: name of the tool.
    #[serde(skip_serializing_if = "::std::option::Option::is_none")]
    pub name: ::std::option::Option<::std::string::String>,
    /// `image` blocks, in messages of users and results of tools: the file.
    #[serde(skip_serializing_if = "::std::option::Option::is_none")]
    pub source: ::std::option::Option<ImageSource>,
    /// `text` blocks: the text.
    #[serde(skip_serializing_if = "::std::option::Option::is_none")]
    pub text: ::std::option::Option<::std::string::String>,
    /// `thinking` blocks: the thoughts.
    #[serde(skip_serializing_if = "::std::option::Option::is_none")]
    pub thinking: ::std::option::Option<::std::string::String>,
    /// `tool_result` blocks: id of the call that the result belongs to.
    #[serde(skip_serializing_if = "::std::option::Option::is_none")]
    pub tool_use_id: ::std::option::Option<::std::string::String>,
    /// Type of the block, which determines its other fields.
    #[serde(rename = "type")]
    pub type_: ::std::string::String,
}
/// Request body of `cancel_future`.
#[derive(::serde::Deserialize, ::serde::Serialize, Clone, Debug, PartialEq)]
pub struct CancelFutureRequest {
    /// Id of the future.
    pub request_id: ::std::string::String,
}
/// Response body of `cancel_future`: an empty object.
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
/// Request body of `PUT admin/organisations/{organisation}/limits`. Absent fields keep their values; `null` unsets a
/// limit.
#[derive(::serde::Deserialize, ::serde::Serialize, Clone, Debug, Default, PartialEq)]
#[serde(deny_unknown_fields)]
pub struct ChangeLimitsRequest {
    /// Maximum size of the payloads of these training requests, in bytes.
    #[serde(skip_serializing_if = "::std::option::Option::is_none")]
    pub max_queued_bytes: ::std::option::Option<u64>,
    /// Maximum number of training requests that have not finished.
    #[serde(skip_serializing_if = "::std::option::Option::is_none")]
    pub max_queued_requests: ::std::option::Option<u64>,
    /// Maximum number of samples that have not finished.
    #[serde(skip_serializing_if = "::std::option::Option::is_none")]
    pub max_queued_samples: ::std::option::Option<u64>,
    /// Maximum number of tokens in accepted requests that have not finished; samples beyond it are answered with status
    /// 429.
    #[serde(skip_serializing_if = "::std::option::Option::is_none")]
    pub max_queued_tokens: ::std::option::Option<u64>,
    /// Maximum number of training runs at the same time.
    #[serde(skip_serializing_if = "::std::option::Option::is_none")]
    pub max_runs: ::std::option::Option<u64>,
    /// Maximum number of sessions that are open, or that ended within the retention time.
    #[serde(skip_serializing_if = "::std::option::Option::is_none")]
    pub max_sessions: ::std::option::Option<u64>,
    /// Maximum size of all checkpoints, in bytes.
    #[serde(skip_serializing_if = "::std::option::Option::is_none")]
    pub max_storage_bytes: ::std::option::Option<u64>,
    /// Rate limit: maximum number of pixels of the images that are sent to an API server within a minute.
    #[serde(skip_serializing_if = "::std::option::Option::is_none")]
    pub pixels_per_minute: ::std::option::Option<u64>,
    /// Rate limit: maximum number of tokens in the requests that start within a minute.
    #[serde(skip_serializing_if = "::std::option::Option::is_none")]
    pub tokens_per_minute: ::std::option::Option<u64>,
    /// Share of a busy service, relative to the other organisations that have work.
    #[serde(skip_serializing_if = "::std::option::Option::is_none")]
    pub weight: ::std::option::Option<u64>,
}
/// Request body of `PUT admin/organisations/{organisation}`. Absent fields keep their values.
#[derive(::serde::Deserialize, ::serde::Serialize, Clone, Debug, Default, PartialEq)]
#[serde(deny_unknown_fields)]
pub struct ChangeOrganisationRequest {
    /// Whether to refuse the organisation's keys and tokens. Only admins of operators may change this.
    #[serde(skip_serializing_if = "::std::option::Option::is_none")]
    pub disabled: ::std::option::Option<bool>,
    /// Name for display, of at most 200 characters.
    #[serde(skip_serializing_if = "::std::option::Option::is_none")]
    pub display_name: ::std::option::Option<::std::string::String>,
}
/// Request body of `PUT admin/users/{email}`. Absent fields keep their values.
#[derive(::serde::Deserialize, ::serde::Serialize, Clone, Debug, Default, PartialEq)]
pub struct ChangeUserRequest {
    /// Whether to refuse the user's keys.
    #[serde(skip_serializing_if = "::std::option::Option::is_none")]
    pub disabled: ::std::option::Option<bool>,
    /// Highest role of the user's keys: `admin`, `member` or `read-only`.
    #[serde(skip_serializing_if = "::std::option::Option::is_none")]
    pub role: ::std::option::Option<::std::string::String>,
}
/// A reply of the model.
#[derive(::serde::Deserialize, ::serde::Serialize, Clone, Debug, PartialEq)]
pub struct ChatChoice {
    /// Why the reply ended: `stop`, `length` or `tool_calls`.
    pub finish_reason: ::std::string::String,
    /// Position of the reply among the choices.
    pub index: i64,
    /// Log-probabilities of the tokens, if `logprobs` was set: without special tokens, or of each of `token_ids`.
    #[serde(skip_serializing_if = "::std::option::Option::is_none")]
    pub logprobs: ::std::option::Option<ChatLogprobs>,
    /// The message that the assistant replied with.
    pub message: ChatReply,
    /// Sampled tokens with the one that ended the reply, if `return_token_ids` was set.
    #[serde(skip_serializing_if = "::std::option::Option::is_none")]
    pub token_ids: ::std::option::Option<::std::vec::Vec<u32>>,
}
/// Content of a message: a text, or a list of texts and images.
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
/// Log-probabilities of a reply, or of the part that a chunk adds.
#[derive(::serde::Deserialize, ::serde::Serialize, Clone, Debug, PartialEq)]
pub struct ChatLogprobs {
    /// Log-probabilities, token by token.
    pub content: ::std::vec::Vec<TokenLogprob>,
    /// Always null: refusals are part of the content.
    #[serde(skip_serializing_if = "::std::option::Option::is_none")]
    pub refusal: ::std::option::Option<::std::vec::Vec<TokenLogprob>>,
}
/// A message of a conversation.
#[derive(::serde::Deserialize, ::serde::Serialize, Clone, Debug, PartialEq)]
#[serde(deny_unknown_fields)]
pub struct ChatMessage {
    /// Accepted, but has no effect.
    #[serde(skip_serializing_if = "::std::option::Option::is_none")]
    pub annotations: ::std::option::Option<::std::vec::Vec<::serde_json::Value>>,
    /// Refused unless it is null.
    #[serde(skip_serializing_if = "::std::option::Option::is_none")]
    pub audio: ::std::option::Option<::serde_json::Value>,
    /// The text or parts of the message.
    #[serde(skip_serializing_if = "::std::option::Option::is_none")]
    pub content: ::std::option::Option<ChatContent>,
    /// Refused unless it is null.
    #[serde(skip_serializing_if = "::std::option::Option::is_none")]
    pub function_call: ::std::option::Option<::serde_json::Value>,
    /// Name of the author.
    #[serde(skip_serializing_if = "::std::option::Option::is_none")]
    pub name: ::std::option::Option<::std::string::String>,
    /// Thoughts of the assistant.
    #[serde(skip_serializing_if = "::std::option::Option::is_none")]
    pub reasoning_content: ::std::option::Option<::std::string::String>,
    /// Used as the content if `content` is absent.
    #[serde(skip_serializing_if = "::std::option::Option::is_none")]
    pub refusal: ::std::option::Option<::std::string::String>,
    /// Author of the message: `system`, `developer`, `user`, `assistant` or `tool`.
    pub role: ::std::string::String,
    /// Id of the call that a message with the role `tool` answers.
    #[serde(skip_serializing_if = "::std::option::Option::is_none")]
    pub tool_call_id: ::std::option::Option<::std::string::String>,
    /// Calls that the assistant made.
    #[serde(skip_serializing_if = "::std::option::Option::is_none")]
    pub tool_calls: ::std::option::Option<::std::vec::Vec<ToolCall>>,
}
/// The assistant's message in a reply.
#[derive(::serde::Deserialize, ::serde::Serialize, Clone, Debug, PartialEq)]
pub struct ChatReply {
    /// Text of the reply; null if it only calls tools.
    #[serde(skip_serializing_if = "::std::option::Option::is_none")]
    pub content: ::std::option::Option<::std::string::String>,
    /// Thoughts that precede the answer.
    #[serde(skip_serializing_if = "::std::option::Option::is_none")]
    pub reasoning_content: ::std::option::Option<::std::string::String>,
    /// Always null: refusals are part of the content.
    #[serde(skip_serializing_if = "::std::option::Option::is_none")]
    pub refusal: ::std::option::Option<::std::string::String>,
    /// Always the text `assistant`.
    pub role: ::std::string::String,
    /// Tools that the reply calls.
    #[serde(skip_serializing_if = "::std::option::Option::is_none")]
    pub tool_calls: ::std::option::Option<::std::vec::Vec<ToolCall>>,
}
/// Request body of `chat/completions`. Unknown fields are refused. A known field that is not supported is refused
/// unless it has no effect.
#[derive(::serde::Deserialize, ::serde::Serialize, Clone, Debug, PartialEq)]
#[serde(deny_unknown_fields)]
pub struct ChatRequest {
    /// Refused: audio is not supported.
    #[serde(skip_serializing_if = "::std::option::Option::is_none")]
    pub audio: ::std::option::Option<::serde_json::Value>,
    /// Further variables for the model's chat template.
    #[serde(skip_serializing_if = "::std::option::Option::is_none")]
    pub chat_template_kwargs: ::std::option::Option<
        ::serde_json::Map<::std::string::String, ::serde_json::Value>,
    >,
    /// Subtracted from a token's logit for each time that the token occurs in the completion.
    #[serde(skip_serializing_if = "::std::option::Option::is_none")]
    pub frequency_penalty: ::std::option::Option<f64>,
    /// Refused: use `tool_choice` instead.
    #[serde(skip_serializing_if = "::std::option::Option::is_none")]
    pub function_call: ::std::option::Option<::serde_json::Value>,
    /// Refused: use `tools` instead.
    #[serde(skip_serializing_if = "::std::option::Option::is_none")]
    pub functions: ::std::option::Option<::serde_json::Value>,
    /// Values between -100 and 100 that are added to the logits of tokens, by token id.
    #[serde(skip_serializing_if = "::std::option::Option::is_none")]
    pub logit_bias: ::std::option::Option<
        ::std::collections::HashMap<::std::string::String, f64>,
    >,
    /// Whether to return the log-probabilities of the tokens.
    #[serde(skip_serializing_if = "::std::option::Option::is_none")]
    pub logprobs: ::std::option::Option<bool>,
    /// Newer name of `max_tokens`.
    #[serde(skip_serializing_if = "::std::option::Option::is_none")]
    pub max_completion_tokens: ::std::option::Option<u32>,
    /// Maximum number of tokens to sample; by default, up to the context limit.
    #[serde(skip_serializing_if = "::std::option::Option::is_none")]
    pub max_tokens: ::std::option::Option<u32>,
    /// The conversation so far.
    pub messages: ::std::vec::Vec<ChatMessage>,
    /// Accepted, but has no effect.
    #[serde(skip_serializing_if = "::std::option::Option::is_none")]
    pub metadata: ::std::option::Option<::serde_json::Value>,
    /// Excludes tokens that are less likely than this fraction of the most likely one; 0 turns this off.
    #[serde(skip_serializing_if = "::std::option::Option::is_none")]
    pub min_p: ::std::option::Option<f64>,
    /// Refused unless it is `["text"]`.
    #[serde(skip_serializing_if = "::std::option::Option::is_none")]
    pub modalities: ::std::option::Option<::std::vec::Vec<::std::string::String>>,
    /// A base model, a `tinker://` path of a sampler checkpoint, or `<base>;<path>`.
    pub model: ::std::string::String,
    /// Number of replies, 1 by default.
    #[serde(skip_serializing_if = "::std::option::Option::is_none")]
    pub n: ::std::option::Option<u32>,
    /// Whether there may be several calls; false requires a `tool_choice` that requires a call, if there are tools.
    #[serde(skip_serializing_if = "::std::option::Option::is_none")]
    pub parallel_tool_calls: ::std::option::Option<bool>,
    /// Refused: predicted outputs are not supported.
    #[serde(skip_serializing_if = "::std::option::Option::is_none")]
    pub prediction: ::std::option::Option<::serde_json::Value>,
    /// Subtracted from a token's logit if the token occurs in the completion.
    #[serde(skip_serializing_if = "::std::option::Option::is_none")]
    pub presence_penalty: ::std::option::Option<f64>,
    /// Accepted, but has no effect.
    #[serde(skip_serializing_if = "::std::option::Option::is_none")]
    pub prompt_cache_key: ::std::option::Option<::std::string::String>,
    /// A preset such as `low`, or a number, if the model's chat template supports it.
    #[serde(skip_serializing_if = "::std::option::Option::is_none")]
    pub reasoning_effort: ::std::option::Option<::serde_json::Value>,
    /// Divides positive logits, and multiplies negative ones, of tokens in the prompt or the completion; 1 turns this
    /// off.
    #[serde(skip_serializing_if = "::std::option::Option::is_none")]
    pub repetition_penalty: ::std::option::Option<f64>,
    /// Format of a reply: `text`, `json_object` or `json_schema`. The latter two can't be combined with tools.
    #[serde(skip_serializing_if = "::std::option::Option::is_none")]
    pub response_format: ::std::option::Option<ResponseFormat>,
    /// Whether to return the ids of the prompt's tokens and of those that were sampled, so that a trainer need not encode
    /// texts again.
    #[serde(skip_serializing_if = "::std::option::Option::is_none")]
    pub return_token_ids: ::std::option::Option<bool>,
    /// Accepted, but has no effect.
    #[serde(skip_serializing_if = "::std::option::Option::is_none")]
    pub safety_identifier: ::std::option::Option<::std::string::String>,
    /// Seed that makes sampling repeatable.
    #[serde(skip_serializing_if = "::std::option::Option::is_none")]
    pub seed: ::std::option::Option<i64>,
    /// Refused unless it is `auto` or `default`.
    #[serde(skip_serializing_if = "::std::option::Option::is_none")]
    pub service_tier: ::std::option::Option<::std::string::String>,
    /// Texts that end a reply. The one that is found is not part of the reply.
    #[serde(skip_serializing_if = "::std::option::Option::is_none")]
    pub stop: ::std::option::Option<StopStrings>,
    /// Refused if true: replies are not stored.
    #[serde(skip_serializing_if = "::std::option::Option::is_none")]
    pub store: ::std::option::Option<bool>,
    /// Whether to respond with server-sent events.
    #[serde(skip_serializing_if = "::std::option::Option::is_none")]
    pub stream: ::std::option::Option<bool>,
    /// Options that apply only to streams.
    #[serde(skip_serializing_if = "::std::option::Option::is_none")]
    pub stream_options: ::std::option::Option<StreamOptions>,
    /// Divisor of the logits, 1 by default; 0 decodes greedily.
    #[serde(skip_serializing_if = "::std::option::Option::is_none")]
    pub temperature: ::std::option::Option<f64>,
    /// Whether the model calls tools: `auto` (the default), `none`, `required`, or the one that it must call:
    /// `{"type": "function", "function": {"name": …}}`. The arguments of required calls follow the tool's schema.
    #[serde(skip_serializing_if = "::std::option::Option::is_none")]
    pub tool_choice: ::std::option::Option<::serde_json::Value>,
    /// Functions that the model may call: `{"type": "function", "function": {"name": …, "parameters": …}}`.
    #[serde(skip_serializing_if = "::std::option::Option::is_none")]
    pub tools: ::std::option::Option<
        ::std::vec::Vec<::serde_json::Map<::std::string::String, ::serde_json::Value>>,
    >,
    /// Samples only from this many most likely tokens; -1 and 0 turn this off.
    #[serde(skip_serializing_if = "::std::option::Option::is_none")]
    pub top_k: ::std::option::Option<i64>,
    /// Number of candidates to return per token.
    #[serde(skip_serializing_if = "::std::option::Option::is_none")]
    pub top_logprobs: ::std::option::Option<u32>,
    /// Samples only from the smallest set of tokens whose total probability reaches this value; 1 (the default) turns
    /// this off.
    #[serde(skip_serializing_if = "::std::option::Option::is_none")]
    pub top_p: ::std::option::Option<f64>,
    /// Accepted, but has no effect.
    #[serde(skip_serializing_if = "::std::option::Option::is_none")]
    pub user: ::std::option::Option<::std::string::String>,
    /// Refused unless it is `medium`.
    #[serde(skip_serializing_if = "::std::option::Option::is_none")]
    pub verbosity: ::std::option::Option<::std::string::String>,
    /// Refused: web search is not supported.
    #[serde(skip_serializing_if = "::std::option::Option::is_none")]
    pub web_search_options: ::std::option::Option<::serde_json::Value>,
}
/// Response body of `chat/completions`.
#[derive(::serde::Deserialize, ::serde::Serialize, Clone, Debug, PartialEq)]
pub struct ChatResponse {
    /// Replies, as many as `n` of the request.
    pub choices: ::std::vec::Vec<ChatChoice>,
    /// Time of the request, in seconds since 1970.
    pub created: i64,
    /// Id of the request.
    pub id: ::std::string::String,
    /// The `model` of the request.
    pub model: ::std::string::String,
    /// Always the text `chat.completion`.
    pub object: ::std::string::String,
    /// Tokens of the rendered conversation, if `return_token_ids` was set.
    #[serde(skip_serializing_if = "::std::option::Option::is_none")]
    pub prompt_token_ids: ::std::option::Option<::std::vec::Vec<u32>>,
    /// Numbers of tokens in the request and its replies.
    pub usage: Usage,
}
/// A checkpoint of a run.
#[derive(::serde::Deserialize, ::serde::Serialize, Clone, Debug, PartialEq)]
pub struct Checkpoint {
    /// Name of the base model.
    #[serde(skip_serializing_if = "::std::option::Option::is_none")]
    pub base_model: ::std::option::Option<::std::string::String>,
    /// Id within the run: `<segment>/<name>`.
    pub checkpoint_id: ::std::string::String,
    /// Kind of the checkpoint: `training`, `sampler` or `external`.
    pub checkpoint_type: ::std::string::String,
    /// Time at which it is deleted, in RFC 3339; absent if it is kept.
    #[serde(skip_serializing_if = "::std::option::Option::is_none")]
    pub expires_at: ::std::option::Option<::std::string::String>,
    /// Whether other tenants may read it.
    pub public: bool,
    /// Size of all its files, in bytes.
    pub size_bytes: u64,
    /// Time of the save, in RFC 3339.
    pub time: ::std::string::String,
    /// Path of the checkpoint: `tinker://<run>/<segment>/<name>`.
    pub tinker_path: ::std::string::String,
    /// Metadata that the client set with the save.
    pub user_metadata: ::std::collections::HashMap<
        ::std::string::String,
        ::std::string::String,
    >,
}
/// Position at which the next page begins.
#[derive(::serde::Deserialize, ::serde::Serialize, Clone, Debug, PartialEq)]
pub struct CheckpointCursor {
    /// Path of the last checkpoint that was examined.
    pub last_checkpoint_uuid: ::std::string::String,
    /// Time of the last checkpoint that was examined, in RFC 3339.
    pub last_created_at: ::std::string::String,
}
/// Request body of `checkpoints/search`. A checkpoint must satisfy every condition that is set.
#[derive(::serde::Deserialize, ::serde::Serialize, Clone, Debug, Default, PartialEq)]
#[serde(deny_unknown_fields)]
pub struct CheckpointSearchRequest {
    /// Base models, one of which the checkpoint must belong to. An empty list matches nothing.
    #[serde(skip_serializing_if = "::std::option::Option::is_none")]
    pub base_models: ::std::option::Option<::std::vec::Vec<::std::string::String>>,
    /// Kind of the checkpoint: `training`, `sampler` or `external`.
    #[serde(skip_serializing_if = "::std::option::Option::is_none")]
    pub checkpoint_type: ::std::option::Option<::std::string::String>,
    /// The `next_cursor` of the previous page; absent for the first page.
    #[serde(skip_serializing_if = "::std::option::Option::is_none")]
    pub cursor: ::std::option::Option<CheckpointCursor>,
    /// Maximum number of checkpoints to return.
    #[serde(skip_serializing_if = "::std::option::Option::is_none")]
    pub limit: ::std::option::Option<u32>,
    /// Owners whose checkpoints are searched.
    #[serde(skip_serializing_if = "::std::option::Option::is_none")]
    pub owner: ::std::option::Option<SearchOwner>,
    /// Projects of the caller, one of which must contain the checkpoint.
    #[serde(skip_serializing_if = "::std::option::Option::is_none")]
    pub project_ids: ::std::option::Option<::std::vec::Vec<::std::string::String>>,
    /// Entries that the checkpoint's metadata must contain.
    #[serde(default, skip_serializing_if = ":: std :: collections :: HashMap::is_empty")]
    pub user_metadata: ::std::collections::HashMap<
        ::std::string::String,
        ::std::string::String,
    >,
}
/// Response body of `checkpoints/search`.
#[derive(::serde::Deserialize, ::serde::Serialize, Clone, Debug, PartialEq)]
pub struct CheckpointSearchResponse {
    /// Matches, newest first. A page may contain fewer than `limit` although `next_cursor` is set.
    pub checkpoints: ::std::vec::Vec<Checkpoint>,
    /// Position of the next page; absent on the last page.
    #[serde(skip_serializing_if = "::std::option::Option::is_none")]
    pub next_cursor: ::std::option::Option<CheckpointCursor>,
}
/// Response body of `checkpoints` and `training_runs/{id}/checkpoints`.
#[derive(::serde::Deserialize, ::serde::Serialize, Clone, Debug, PartialEq)]
pub struct CheckpointsResponse {
    /// The checkpoints of this page.
    pub checkpoints: ::std::vec::Vec<Checkpoint>,
    /// Position of the page in the listing.
    #[serde(skip_serializing_if = "::std::option::Option::is_none")]
    pub cursor: ::std::option::Option<Cursor>,
}
/// Request body of `client/config` and `client/dynamic_config`.
#[derive(::serde::Deserialize, ::serde::Serialize, Clone, Debug, Default, PartialEq)]
pub struct ClientConfigRequest {
    /// Version of the client.
    #[serde(skip_serializing_if = "::std::option::Option::is_none")]
    pub sdk_version: ::std::option::Option<::std::string::String>,
}
/// Response body of `client/config`: settings that the server chooses for the client. The client uses its own defaults
/// for settings that are not listed.
#[derive(::serde::Deserialize, ::serde::Serialize, Clone, Debug, PartialEq)]
pub struct ClientConfigResponse {
    /// Source of the credential.
    pub credential_default_source: ::std::string::String,
    /// Whether to run custom losses on the server.
    pub custom_loss_server_side: bool,
    /// Estimated maximum size of a `forward_backward` request, in bytes.
    pub fwdbwd_max_chunk_bytes_count: u64,
    /// Maximum number of datums per `forward_backward` request.
    pub fwdbwd_max_chunk_len: u64,
    /// Whether to post the chunks of a call concurrently.
    pub parallel_fwdbwd_chunks: bool,
    /// Whether to exchange the API key for a token at `auth/token`, and to call with the token.
    pub pjwt_auth_enabled: bool,
    /// Whether to compress `forward_backward` bodies with zstd.
    pub proto_compress_fwdbwd: bool,
    /// Whether to ask the server for the numbers of clones.
    pub sample_join_sampling_session: bool,
    /// Whether to learn of finished samples through `retrieve_futures`.
    pub sample_use_retrieve_futures: bool,
}
/// Response body of `client/dynamic_config`.
#[derive(::serde::Deserialize, ::serde::Serialize, Clone, Debug, PartialEq)]
pub struct ClientDynamicConfigResponse {
    /// Seconds until the client polls again.
    pub refresh_interval_sec: u64,
    /// Whether to send `cancel_future` for samples that were abandoned.
    pub sample_cancel_enabled: bool,
    /// Maximum number of cancellations that are sent at once.
    pub sample_cancel_max_batch_size: u64,
}
/// A completion, or the part that a chunk adds to it.
#[derive(::serde::Deserialize, ::serde::Serialize, Clone, Debug, PartialEq)]
pub struct CompletionChoice {
    /// Why the completion ended: `stop` or `length`; null in chunks before the end.
    #[serde(skip_serializing_if = "::std::option::Option::is_none")]
    pub finish_reason: ::std::option::Option<::std::string::String>,
    /// Position of the completion among the choices.
    pub index: i64,
    /// Log-probabilities of the tokens, if `logprobs` was set.
    #[serde(skip_serializing_if = "::std::option::Option::is_none")]
    pub logprobs: ::std::option::Option<CompletionLogprobs>,
    /// Tokens of the prompt, if `return_token_ids` was set; only in the first chunk of a completion.
    #[serde(skip_serializing_if = "::std::option::Option::is_none")]
    pub prompt_token_ids: ::std::option::Option<::std::vec::Vec<u32>>,
    /// Text of the completion.
    pub text: ::std::string::String,
    /// Sampled tokens with the one that ended the completion, if `return_token_ids` was set.
    #[serde(skip_serializing_if = "::std::option::Option::is_none")]
    pub token_ids: ::std::option::Option<::std::vec::Vec<u32>>,
}
/// Log-probabilities, token by token.
#[derive(::serde::Deserialize, ::serde::Serialize, Clone, Debug, PartialEq)]
pub struct CompletionLogprobs {
    /// Number of characters before each token.
    pub text_offset: ::std::vec::Vec<i64>,
    /// Log-probabilities of the tokens; null for the first token of a prompt.
    pub token_logprobs: ::std::vec::Vec<::std::option::Option<f64>>,
    /// Texts of the tokens.
    pub tokens: ::std::vec::Vec<::std::string::String>,
    /// Most likely candidates at each position: their texts and log-probabilities.
    pub top_logprobs: ::std::vec::Vec<
        ::std::option::Option<::std::collections::HashMap<::std::string::String, f64>>,
    >,
}
/// Prompts of a request: a text, a list of texts, a list of token ids, or a list of such lists.
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
/// Request body of `completions`. Unknown fields are refused.
#[derive(::serde::Deserialize, ::serde::Serialize, Clone, Debug, PartialEq)]
#[serde(deny_unknown_fields)]
pub struct CompletionRequest {
    /// Refused unless equal to `n`.
    #[serde(skip_serializing_if = "::std::option::Option::is_none")]
    pub best_of: ::std::option::Option<u32>,
    /// Whether to return the prompt before the completion.
    #[serde(skip_serializing_if = "::std::option::Option::is_none")]
    pub echo: ::std::option::Option<bool>,
    /// Subtracted from a token's logit for each time that the token occurs in the completion.
    #[serde(skip_serializing_if = "::std::option::Option::is_none")]
    pub frequency_penalty: ::std::option::Option<f64>,
    /// Values between -100 and 100 that are added to the logits of tokens, by token id.
    #[serde(skip_serializing_if = "::std::option::Option::is_none")]
    pub logit_bias: ::std::option::Option<
        ::std::collections::HashMap<::std::string::String, f64>,
    >,
    /// Returns the log-probability of each token and of this many candidates for it.
    #[serde(skip_serializing_if = "::std::option::Option::is_none")]
    pub logprobs: ::std::option::Option<u32>,
    /// Maximum number of tokens to sample, 16 by default. 0 is allowed with `echo`.
    #[serde(skip_serializing_if = "::std::option::Option::is_none")]
    pub max_tokens: ::std::option::Option<u32>,
    /// Excludes tokens that are less likely than this fraction of the most likely one; 0 turns this off.
    #[serde(skip_serializing_if = "::std::option::Option::is_none")]
    pub min_p: ::std::option::Option<f64>,
    /// A base model, a `tinker://` path of a sampler checkpoint, or `<base>;<path>`.
    pub model: ::std::string::String,
    /// Number of completions for each prompt, 1 by default.
    #[serde(skip_serializing_if = "::std::option::Option::is_none")]
    pub n: ::std::option::Option<u32>,
    /// Subtracted from a token's logit if the token occurs in the completion.
    #[serde(skip_serializing_if = "::std::option::Option::is_none")]
    pub presence_penalty: ::std::option::Option<f64>,
    /// Text or tokens to complete.
    pub prompt: CompletionPrompt,
    /// Divides positive logits, and multiplies negative ones, of tokens in the prompt or the completion; 1 turns this
    /// off.
    #[serde(skip_serializing_if = "::std::option::Option::is_none")]
    pub repetition_penalty: ::std::option::Option<f64>,
    /// Whether to return the ids of the prompt's tokens and of those that were sampled, so that a trainer need not encode
    /// texts again.
    #[serde(skip_serializing_if = "::std::option::Option::is_none")]
    pub return_token_ids: ::std::option::Option<bool>,
    /// Seed that makes sampling repeatable.
    #[serde(skip_serializing_if = "::std::option::Option::is_none")]
    pub seed: ::std::option::Option<i64>,
    /// Texts that end a completion. The one that is found is not part of the completion.
    #[serde(skip_serializing_if = "::std::option::Option::is_none")]
    pub stop: ::std::option::Option<StopStrings>,
    /// Whether to respond with server-sent events.
    #[serde(skip_serializing_if = "::std::option::Option::is_none")]
    pub stream: ::std::option::Option<bool>,
    /// Options that apply only to streams.
    #[serde(skip_serializing_if = "::std::option::Option::is_none")]
    pub stream_options: ::std::option::Option<StreamOptions>,
    /// Refused unless it is empty.
    #[serde(skip_serializing_if = "::std::option::Option::is_none")]
    pub suffix: ::std::option::Option<::std::string::String>,
    /// Divisor of the logits, 1 by default; 0 decodes greedily.
    #[serde(skip_serializing_if = "::std::option::Option::is_none")]
    pub temperature: ::std::option::Option<f64>,
    /// Samples only from this many most likely tokens; -1 and 0 turn this off.
    #[serde(skip_serializing_if = "::std::option::Option::is_none")]
    pub top_k: ::std::option::Option<i64>,
    /// Samples only from the smallest set of tokens whose total probability reaches this value; 1 (the default) turns
    /// this off.
    #[serde(skip_serializing_if = "::std::option::Option::is_none")]
    pub top_p: ::std::option::Option<f64>,
    /// Accepted, but has no effect.
    #[serde(skip_serializing_if = "::std::option::Option::is_none")]
    pub user: ::std::option::Option<::std::string::String>,
}
/// Response body of `completions`, and each chunk of a stream.
#[derive(::serde::Deserialize, ::serde::Serialize, Clone, Debug, PartialEq)]
pub struct CompletionResponse {
    /// Completions of the first prompt, then those of the second, and so on.
    pub choices: ::std::vec::Vec<CompletionChoice>,
    /// Time of the request, in seconds since 1970.
    pub created: i64,
    /// Id of the request.
    pub id: ::std::string::String,
    /// The `model` of the request.
    pub model: ::std::string::String,
    /// Always the text `text_completion`.
    pub object: ::std::string::String,
    /// Numbers of tokens in the request and its completions.
    #[serde(skip_serializing_if = "::std::option::Option::is_none")]
    pub usage: ::std::option::Option<Usage>,
}
/// Value of a setting of a loss function, in JSON.
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
/// A part of a message. Types other than `text` and `image_url` are refused.
#[derive(::serde::Deserialize, ::serde::Serialize, Clone, Debug, PartialEq)]
pub struct ContentPart {
    /// The image of the part.
    #[serde(skip_serializing_if = "::std::option::Option::is_none")]
    pub image_url: ::std::option::Option<ImageUrl>,
    /// The text of the part.
    #[serde(skip_serializing_if = "::std::option::Option::is_none")]
    pub text: ::std::option::Option<::std::string::String>,
    /// Type of the part: `text` or, in messages of users and tools, `image_url`.
    #[serde(rename = "type")]
    pub type_: ::std::string::String,
}
/// Request body of `copy_weights`. The copy belongs to the run that `session_id` and `model_seq_id` identify, or, if
/// they are absent, to the run of a new session.
#[derive(::serde::Deserialize, ::serde::Serialize, Clone, Debug, PartialEq)]
pub struct CopyWeightsRequest {
    /// Project of the new session.
    #[serde(skip_serializing_if = "::std::option::Option::is_none")]
    pub destination_project_id: ::std::option::Option<::std::string::String>,
    /// Number of the run's model within the session.
    #[serde(skip_serializing_if = "::std::option::Option::is_none")]
    pub model_seq_id: ::std::option::Option<u64>,
    /// Session of the run that holds the copy.
    #[serde(skip_serializing_if = "::std::option::Option::is_none")]
    pub session_id: ::std::option::Option<::std::string::String>,
    /// Path of the checkpoint, which may be of any kind.
    pub source_path: ::std::string::String,
    /// Seconds until the copy is deleted. By default it is kept, even if the source expires.
    #[serde(skip_serializing_if = "::std::option::Option::is_none")]
    pub ttl_seconds: ::std::option::Option<u64>,
    /// A key of a tenant that may read the checkpoint. The header `x-tinker-weights-access-token` takes precedence.
    #[serde(skip_serializing_if = "::std::option::Option::is_none")]
    pub weights_access_token: ::std::option::Option<::std::string::String>,
}
/// Response body of `copy_weights`.
#[derive(::serde::Deserialize, ::serde::Serialize, Clone, Debug, PartialEq)]
pub struct CopyWeightsResponse {
    /// Path of the copy.
    pub tinker_path: ::std::string::String,
}
/// Request body of `messages/count_tokens`. Unknown fields are refused.
#[derive(::serde::Deserialize, ::serde::Serialize, Clone, Debug, PartialEq)]
#[serde(deny_unknown_fields)]
pub struct CountTokensRequest {
    /// Accepted, but has no effect.
    #[serde(skip_serializing_if = "::std::option::Option::is_none")]
    pub cache_control: ::std::option::Option<::serde_json::Value>,
    /// Same as `messages` of `messages`.
    pub messages: ::std::vec::Vec<AnthropicMessage>,
    /// Same as `model` of `messages`.
    pub model: ::std::string::String,
    /// Same as `output_config` of `messages`.
    #[serde(skip_serializing_if = "::std::option::Option::is_none")]
    pub output_config: ::std::option::Option<OutputConfig>,
    /// Same as `system` of `messages`.
    #[serde(skip_serializing_if = "::std::option::Option::is_none")]
    pub system: ::std::option::Option<AnthropicContent>,
    /// Same as `thinking` of `messages`.
    #[serde(skip_serializing_if = "::std::option::Option::is_none")]
    pub thinking: ::std::option::Option<Thinking>,
    /// Same as `tool_choice` of `messages`.
    #[serde(skip_serializing_if = "::std::option::Option::is_none")]
    pub tool_choice: ::std::option::Option<ToolChoice>,
    /// Same as `tools` of `messages`.
    #[serde(skip_serializing_if = "::std::option::Option::is_none")]
    pub tools: ::std::option::Option<::std::vec::Vec<AnthropicTool>>,
}
/// Response body of `messages/count_tokens`.
#[derive(::serde::Deserialize, ::serde::Serialize, Clone, Debug, PartialEq)]
pub struct CountTokensResponse {
    /// Number of tokens in the rendered prompt.
    pub input_tokens: u64,
}
/// Request body of `POST agent_sessions`.
#[derive(::serde::Deserialize, ::serde::Serialize, Clone, Debug, Default, PartialEq)]
#[serde(deny_unknown_fields)]
pub struct CreateAgentSessionRequest {
    /// Base model to sample from; by default, that of `model_path`.
    #[serde(skip_serializing_if = "::std::option::Option::is_none")]
    pub base_model: ::std::option::Option<::std::string::String>,
    /// Limits of the session.
    #[serde(skip_serializing_if = "::std::option::Option::is_none")]
    pub limits: ::std::option::Option<AgentLimits>,
    /// Sampler checkpoint to sample from, `tinker://…`.
    #[serde(skip_serializing_if = "::std::option::Option::is_none")]
    pub model_path: ::std::option::Option<::std::string::String>,
    /// Sampling session whose weights are sampled, in place of `model_path`. One of an in-flight save follows its run:
    /// replies have the run's newest weights.
    #[serde(skip_serializing_if = "::std::option::Option::is_none")]
    pub sampling_session_id: ::std::option::Option<::std::string::String>,
}
/// Response body of `POST agent_sessions`.
#[derive(::serde::Deserialize, ::serde::Serialize, Clone, Debug, PartialEq)]
pub struct CreateAgentSessionResponse {
    /// Id of the session.
    pub agent_session_id: ::std::string::String,
    /// Base URL for clients of the Anthropic API, which add `/v1` themselves.
    pub anthropic_base_url: ::std::string::String,
    /// Key of the session, which is returned only once; the server stores its SHA-256.
    pub api_key: ::std::string::String,
    /// Base URL for clients of the OpenAI API; it ends with `/v1`.
    pub base_url: ::std::string::String,
    /// Time from which the key is refused, in RFC 3339.
    pub expires_at: ::std::string::String,
}
/// Request body of `create_custom_loss`.
#[derive(::serde::Deserialize, ::serde::Serialize, Clone, Debug, PartialEq)]
pub struct CreateCustomLossRequest {
    /// Number of the custom loss within the session.
    pub custom_loss_seq_id: u64,
    /// The function as `torch.fx` traced it: `{"format": 1, "nodes": […]}`.
    pub graph: ::serde_json::Map<::std::string::String, ::serde_json::Value>,
    /// Inputs that the loss reads from each datum, in order, each as `{"name", "rank"}`. The first is `logprobs`.
    pub inputs: ::std::vec::Vec<
        ::serde_json::Map<::std::string::String, ::serde_json::Value>,
    >,
    /// Name of the function, for error messages.
    pub name: ::std::string::String,
    /// Id of the client's session.
    pub session_id: ::std::string::String,
}
/// Request body of `POST admin/keys`.
#[derive(::serde::Deserialize, ::serde::Serialize, Clone, Debug, PartialEq)]
pub struct CreateKeyRequest {
    /// Seconds from now until the key expires; it never does by default.
    #[serde(skip_serializing_if = "::std::option::Option::is_none")]
    pub expires_in_seconds: ::std::option::Option<u32>,
    /// Name for display; any text.
    pub name: ::std::string::String,
    /// Note for display; empty by default.
    #[serde(skip_serializing_if = "::std::option::Option::is_none")]
    pub note: ::std::option::Option<::std::string::String>,
    /// Highest role: `admin`, `member` or `read-only`; by default its user's, or `member`.
    #[serde(skip_serializing_if = "::std::option::Option::is_none")]
    pub role: ::std::option::Option<::std::string::String>,
    /// Limits the key to these scopes: `train`, `sample`, `checkpoints` or `admin`; all scopes of its role by default.
    #[serde(skip_serializing_if = "::std::option::Option::is_none")]
    pub scopes: ::std::option::Option<::std::vec::Vec<::std::string::String>>,
    /// Email address of the user who owns the key; absent for a key of one of the organisation's programs.
    #[serde(skip_serializing_if = "::std::option::Option::is_none")]
    pub user: ::std::option::Option<::std::string::String>,
}
/// Response body of `POST admin/keys`.
#[derive(::serde::Deserialize, ::serde::Serialize, Clone, Debug, PartialEq)]
pub struct CreateKeyResponse {
    /// The stored details of the key.
    pub details: ApiKey,
    /// The key. It is returned only once; the server stores only its SHA-256.
    pub key: ::std::string::String,
}
/// Request body of `create_model`.
#[derive(::serde::Deserialize, ::serde::Serialize, Clone, Debug, PartialEq)]
pub struct CreateModelRequest {
    /// Name of the base model.
    pub base_model: ::std::string::String,
    /// The adapter to train; without one, all parameters are trained.
    #[serde(skip_serializing_if = "::std::option::Option::is_none")]
    pub lora_config: ::std::option::Option<LoraConfig>,
    /// Number of the model within the session.
    pub model_seq_id: u64,
    /// Optimizer family of the run.
    #[serde(skip_serializing_if = "::std::option::Option::is_none")]
    pub optimizer_config: ::std::option::Option<OptimizerConfig>,
    /// Id of the client's session.
    pub session_id: ::std::string::String,
    /// Metadata to store with the run.
    #[serde(default, skip_serializing_if = "::serde_json::Map::is_empty")]
    pub user_metadata: ::serde_json::Map<::std::string::String, ::serde_json::Value>,
}
/// Request body of `POST admin/organisations`.
#[derive(::serde::Deserialize, ::serde::Serialize, Clone, Debug, PartialEq)]
pub struct CreateOrganisationRequest {
    /// Unique name; the tenant of its sessions, runs and checkpoints.
    pub name: ::std::string::String,
    /// Makes it an operator, whose admins manage all organisations.
    #[serde(skip_serializing_if = "::std::option::Option::is_none")]
    pub operator: ::std::option::Option<bool>,
}
/// Request body of `POST admin/projects`.
#[derive(::serde::Deserialize, ::serde::Serialize, Clone, Debug, PartialEq)]
pub struct CreateProjectRequest {
    /// Id by which sessions refer to the project.
    pub id: ::std::string::String,
    /// Name for display; empty by default.
    #[serde(skip_serializing_if = "::std::option::Option::is_none")]
    pub name: ::std::option::Option<::std::string::String>,
}
/// Request body of `create_sampling_session`. If both models are set, the base model must be the checkpoint's or
/// another name of its weights.
#[derive(::serde::Deserialize, ::serde::Serialize, Clone, Debug, PartialEq)]
pub struct CreateSamplingSessionRequest {
    /// Base model to sample from.
    #[serde(skip_serializing_if = "::std::option::Option::is_none")]
    pub base_model: ::std::option::Option<::std::string::String>,
    /// Path of a sampler checkpoint to sample from.
    #[serde(skip_serializing_if = "::std::option::Option::is_none")]
    pub model_path: ::std::option::Option<::std::string::String>,
    /// Number of the sampling session within the session.
    pub sampling_session_seq_id: u64,
    /// Id of the client's session.
    pub session_id: ::std::string::String,
}
/// Response body of `create_sampling_session`.
#[derive(::serde::Deserialize, ::serde::Serialize, Clone, Debug, PartialEq)]
pub struct CreateSamplingSessionResponse {
    /// Id of the sampling session: `<session>:sample:<n>`.
    pub sampling_session_id: ::std::string::String,
}
/// Request body of `create_session`.
#[derive(::serde::Deserialize, ::serde::Serialize, Clone, Debug, Default, PartialEq)]
pub struct CreateSessionRequest {
    /// Name for display; any text.
    #[serde(skip_serializing_if = "::std::option::Option::is_none")]
    pub display_name: ::std::option::Option<::std::string::String>,
    /// Id of the project that the session belongs to.
    #[serde(skip_serializing_if = "::std::option::Option::is_none")]
    pub project_id: ::std::option::Option<::std::string::String>,
    /// Version of the client.
    #[serde(skip_serializing_if = "::std::option::Option::is_none")]
    pub sdk_version: ::std::option::Option<::std::string::String>,
    /// Labels for the session.
    #[serde(default, skip_serializing_if = "::std::vec::Vec::is_empty")]
    pub tags: ::std::vec::Vec<::std::string::String>,
    /// Metadata to store with the session.
    #[serde(default, skip_serializing_if = "::serde_json::Map::is_empty")]
    pub user_metadata: ::serde_json::Map<::std::string::String, ::serde_json::Value>,
}
/// Response body of `create_session`.
#[derive(::serde::Deserialize, ::serde::Serialize, Clone, Debug, PartialEq)]
pub struct CreateSessionResponse {
    /// Id of the session, without `:` and `/`.
    pub session_id: ::std::string::String,
}
/// Request body of `POST admin/users`.
#[derive(::serde::Deserialize, ::serde::Serialize, Clone, Debug, PartialEq)]
pub struct CreateUserRequest {
    /// Email address, unique within the organisation.
    pub email: ::std::string::String,
    /// Name for display; empty by default.
    #[serde(skip_serializing_if = "::std::option::Option::is_none")]
    pub name: ::std::option::Option<::std::string::String>,
    /// Highest role of the user's keys: `admin`, `member` (the default) or `read-only`.
    #[serde(skip_serializing_if = "::std::option::Option::is_none")]
    pub role: ::std::option::Option<::std::string::String>,
}
/// Position of a page in its listing.
#[derive(::serde::Deserialize, ::serde::Serialize, Clone, Debug, PartialEq)]
pub struct Cursor {
    /// Maximum number of items that was requested.
    pub limit: u32,
    /// Number of items before the page.
    pub offset: u64,
    /// Number of items in the whole listing.
    pub total_count: u64,
}
/// A training example in JSON.
#[derive(::serde::Deserialize, ::serde::Serialize, Clone, Debug, PartialEq)]
pub struct DatumBody {
    /// Inputs of the loss function, by name.
    #[serde(default, skip_serializing_if = ":: std :: collections :: HashMap::is_empty")]
    pub loss_fn_inputs: ::std::collections::HashMap<::std::string::String, TensorData>,
    /// Input of the model.
    pub model_input: ModelInput,
}
/// Response body of every error.
#[derive(::serde::Deserialize, ::serde::Serialize, Clone, Debug, PartialEq)]
pub struct ErrorBody {
    /// Description of the error; it names the field at fault.
    pub detail: ::std::string::String,
    /// Id of the HTTP request, the same as in the header `x-request-id`.
    #[serde(skip_serializing_if = "::std::option::Option::is_none")]
    pub x_request_id: ::std::option::Option<::std::string::String>,
}
/// Response body of `…/external_weights_urls`.
#[derive(::serde::Deserialize, ::serde::Serialize, Clone, Debug, PartialEq)]
pub struct ExternalUrlsResponse {
    /// Time at which the URLs expire, in RFC 3339.
    pub expires: ::std::string::String,
    /// URLs by file name, which contain their authorisation.
    pub urls: ::std::collections::HashMap<::std::string::String, ::std::string::String>,
}
/// Response body of `retrieve_future` for a failed request. No other JSON answer has a key `error`.
#[derive(::serde::Deserialize, ::serde::Serialize, Clone, Debug, PartialEq)]
pub struct FailedResponse {
    /// Origin of the error: `user`, `server` or `unknown`.
    pub category: ::std::string::String,
    /// Description of the error; it names the field at fault.
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
/// Reason why a client finished its session.
#[derive(::serde::Deserialize, ::serde::Serialize, Clone, Debug, PartialEq)]
pub struct FinishReason {
    /// `success`, `errored` or `interrupted`.
    #[serde(rename = "type")]
    pub type_: FinishKind,
}
/// Request body of `sessions/{id}/finish`.
#[derive(::serde::Deserialize, ::serde::Serialize, Clone, Debug, PartialEq)]
pub struct FinishRequest {
    /// Details for display; any text.
    #[serde(skip_serializing_if = "::std::option::Option::is_none")]
    pub detail: ::std::option::Option<::std::string::String>,
    /// Reason for the end of the session.
    pub reason: FinishReason,
}
/// JSON body of `forward_backward`, as older clients send it.
#[derive(::serde::Deserialize, ::serde::Serialize, Clone, Debug, PartialEq)]
pub struct ForwardBackwardBody {
    /// Examples and loss to compute.
    pub forward_backward_input: ForwardBackwardInput,
    /// Id of the run.
    pub model_id: ::std::string::String,
    /// Position in the run's order, from 1.
    pub seq_id: u64,
}
/// Training examples and their loss.
#[derive(::serde::Deserialize, ::serde::Serialize, Clone, Debug, PartialEq)]
pub struct ForwardBackwardInput {
    /// Training examples of the batch.
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
    /// Examples and loss to compute.
    pub forward_input: ForwardBackwardInput,
    /// Id of the run.
    pub model_id: ::std::string::String,
    /// Position in the run's order, from 1.
    pub seq_id: u64,
}
/// A function and the arguments of a call.
#[derive(::serde::Deserialize, ::serde::Serialize, Clone, Debug, PartialEq)]
pub struct FunctionCall {
    /// Arguments: a JSON object, encoded as text.
    pub arguments: ::std::string::String,
    /// Name of the function.
    pub name: ::std::string::String,
}
/// A future that finished.
#[derive(::serde::Deserialize, ::serde::Serialize, Clone, Debug, PartialEq)]
#[serde(tag = "state")]
pub enum FutureCompletion {
    /// A future with a result.
    #[serde(rename = "finished")]
    Finished {
        /// Id of the future.
        request_id: ::std::string::String,
        /// Size of the uncompressed result, in bytes.
        response_payload_uncompressed_size: u64,
    },
    /// A future whose request failed.
    #[serde(rename = "failed")]
    Failed {
        /// Id of the future.
        request_id: ::std::string::String,
    },
}
/// A sampling session, which may be that of a clone.
#[derive(::serde::Deserialize, ::serde::Serialize, Clone, Debug, PartialEq)]
pub struct FuturesTarget {
    /// Number of the clone: `seq_id` divided by 10^9.
    #[serde(skip_serializing_if = "::std::option::Option::is_none")]
    pub cloned_sampler_id: ::std::option::Option<u64>,
    /// Id of the sampling session.
    pub sampling_session_id: ::std::string::String,
    /// Always the text `sampling_session`.
    #[serde(rename = "type", skip_serializing_if = "::std::option::Option::is_none")]
    pub type_: ::std::option::Option<::std::string::String>,
}
/// Request body of `get_info`.
#[derive(::serde::Deserialize, ::serde::Serialize, Clone, Debug, PartialEq)]
pub struct GetInfoRequest {
    /// Id of the run.
    pub model_id: ::std::string::String,
}
/// Response body of `get_info`.
#[derive(::serde::Deserialize, ::serde::Serialize, Clone, Debug, PartialEq)]
pub struct GetInfoResponse {
    /// Whether the run trains an adapter.
    pub is_lora: bool,
    /// Rank of the adapter.
    #[serde(skip_serializing_if = "::std::option::Option::is_none")]
    pub lora_rank: ::std::option::Option<u32>,
    /// The run's base model.
    pub model_data: ModelData,
    /// Id of the run.
    pub model_id: ::std::string::String,
    /// Name of the base model.
    pub model_name: ::std::string::String,
    /// The run's optimizer family.
    pub optimizer_config: OptimizerConfig,
}
/// Response body of `healthz`.
#[derive(::serde::Deserialize, ::serde::Serialize, Clone, Debug, PartialEq)]
pub struct HealthResponse {
    /// `ok`, or what the server waits for.
    pub status: ::std::string::String,
}
/// Request body of `session_heartbeat`.
#[derive(::serde::Deserialize, ::serde::Serialize, Clone, Debug, PartialEq)]
pub struct HeartbeatRequest {
    /// Id of the session.
    pub session_id: ::std::string::String,
}
/// Response body of `session_heartbeat`: an empty object.
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
/// A refusal in the form of the hub.
#[derive(::serde::Deserialize, ::serde::Serialize, Clone, Debug, PartialEq)]
pub struct HubError {
    /// Description of what was not found.
    pub error: ::std::string::String,
}
/// Width and height of an image, in pixels.
#[derive(::serde::Deserialize, ::serde::Serialize, Clone, Debug, PartialEq)]
pub struct ImageDimensions {
    /// Height: the number of rows.
    pub height: u32,
    /// Width: the number of columns.
    pub width: u32,
}
/// File of an image.
#[derive(::serde::Deserialize, ::serde::Serialize, Clone, Debug, PartialEq)]
pub struct ImageSource {
    /// The file, in base64.
    #[serde(skip_serializing_if = "::std::option::Option::is_none")]
    pub data: ::std::option::Option<::std::string::String>,
    /// Format of the file: `image/png` or `image/jpeg`.
    #[serde(skip_serializing_if = "::std::option::Option::is_none")]
    pub media_type: ::std::option::Option<::std::string::String>,
    /// `base64`; other types are refused, because the server fetches no files.
    #[serde(rename = "type")]
    pub type_: ::std::string::String,
}
/// An image of a message.
#[derive(::serde::Deserialize, ::serde::Serialize, Clone, Debug, PartialEq)]
#[serde(deny_unknown_fields)]
pub struct ImageUrl {
    /// Refused unless it is `auto` or `high`: the model sets the size.
    #[serde(skip_serializing_if = "::std::option::Option::is_none")]
    pub detail: ::std::option::Option<::std::string::String>,
    /// A data URI with a PNG or JPEG file: `data:image/png;base64,…`. Other URLs are refused.
    pub url: ::std::string::String,
}
/// Why a reply is incomplete.
#[derive(::serde::Deserialize, ::serde::Serialize, Clone, Debug, PartialEq)]
pub struct IncompleteDetails {
    /// Always the text `max_output_tokens`: the limit of the request, of the context or of the agent session.
    pub reason: ::std::string::String,
}
/// Response body of `/`: the service, and the paths of its description and health.
#[derive(::serde::Deserialize, ::serde::Serialize, Clone, Debug, PartialEq)]
pub struct IndexResponse {
    /// Path of the Tinker API.
    pub api: ::std::string::String,
    /// Path of the console; absent if it is not served.
    #[serde(skip_serializing_if = "::std::option::Option::is_none")]
    pub console: ::std::option::Option<::std::string::String>,
    /// Path of the page that shows this document.
    pub docs: ::std::string::String,
    /// Path that reports whether the models are loaded.
    pub health: ::std::string::String,
    /// Path that reports whether the process runs.
    pub liveness: ::std::string::String,
    /// Always the text `Trainyard`.
    pub name: ::std::string::String,
    /// Path of this document.
    pub openapi: ::std::string::String,
    /// Path that reports whether requests should be sent to this server.
    pub readiness: ::std::string::String,
    /// Version of the program.
    pub version: ::std::string::String,
}
/// A piece of a model input: text as token ids, or an image.
#[derive(::serde::Deserialize, ::serde::Serialize, Clone, Debug, Default, PartialEq)]
pub struct InputChunk {
    /// File of an `image`, in base64.
    #[serde(skip_serializing_if = "::std::option::Option::is_none")]
    pub data: ::std::option::Option<::std::string::String>,
    /// Number of tokens that the client expects the image to take; any other number is refused.
    #[serde(skip_serializing_if = "::std::option::Option::is_none")]
    pub expected_tokens: ::std::option::Option<i64>,
    /// Format of the file: `png` or `jpeg`.
    #[serde(skip_serializing_if = "::std::option::Option::is_none")]
    pub format: ::std::option::Option<::std::string::String>,
    /// Size from which tokens are counted, and to which the image is resized, instead of the file's.
    #[serde(skip_serializing_if = "::std::option::Option::is_none")]
    pub override_dimensions: ::std::option::Option<ImageDimensions>,
    /// Token ids, for `encoded_text`.
    #[serde(skip_serializing_if = "::std::option::Option::is_none")]
    pub tokens: ::std::option::Option<::std::vec::Vec<i64>>,
    /// `encoded_text` (the default) or `image`; `image_asset_pointer` and `dmel` are refused.
    #[serde(rename = "type", skip_serializing_if = "::std::option::Option::is_none")]
    pub type_: ::std::option::Option<::std::string::String>,
}
/// Content of an item: a text, or a list of parts.
#[derive(::serde::Deserialize, ::serde::Serialize, Clone, Debug, PartialEq)]
#[serde(untagged)]
pub enum InputContent {
    /// The alternative `String`.
    String(::std::string::String),
    /// The alternative `Array`.
    Array(::std::vec::Vec<InputPart>),
}
impl ::std::convert::From<::std::vec::Vec<InputPart>> for InputContent {
    fn from(value: ::std::vec::Vec<InputPart>) -> Self {
        Self::Array(value)
    }
}
/// An item of a conversation: a `message`, a `function_call`, a `function_call_output` or a `reasoning`. Other types are
/// refused. Further fields, such as ids and states, have no effect.
#[derive(::serde::Deserialize, ::serde::Serialize, Clone, Debug, Default, PartialEq)]
pub struct InputItem {
    /// Calls: the arguments, a JSON object as text.
    #[serde(skip_serializing_if = "::std::option::Option::is_none")]
    pub arguments: ::std::option::Option<::std::string::String>,
    /// Calls and their outputs: the id of the call.
    #[serde(skip_serializing_if = "::std::option::Option::is_none")]
    pub call_id: ::std::option::Option<::std::string::String>,
    /// Messages: their text or parts. `reasoning`: the thoughts, as parts of the type `reasoning_text`.
    #[serde(skip_serializing_if = "::std::option::Option::is_none")]
    pub content: ::std::option::Option<InputContent>,
    /// Calls: the name of the function.
    #[serde(skip_serializing_if = "::std::option::Option::is_none")]
    pub name: ::std::option::Option<::std::string::String>,
    /// Outputs of calls: what the function returned.
    #[serde(skip_serializing_if = "::std::option::Option::is_none")]
    pub output: ::std::option::Option<InputContent>,
    /// Messages: the author, which is `system`, `developer`, `user` or `assistant`.
    #[serde(skip_serializing_if = "::std::option::Option::is_none")]
    pub role: ::std::option::Option<::std::string::String>,
    /// Type of the item, which determines its other fields; `message` by default.
    #[serde(rename = "type", skip_serializing_if = "::std::option::Option::is_none")]
    pub type_: ::std::option::Option<::std::string::String>,
}
/// A part of an item. Other types than those below are refused.
#[derive(::serde::Deserialize, ::serde::Serialize, Clone, Debug, PartialEq)]
pub struct InputPart {
    /// `input_image` parts: refused unless it is `auto` or `high`, because the model sets the size.
    #[serde(skip_serializing_if = "::std::option::Option::is_none")]
    pub detail: ::std::option::Option<::std::string::String>,
    /// `input_image` parts: a data URI with a PNG or JPEG file. Other URLs are refused.
    #[serde(skip_serializing_if = "::std::option::Option::is_none")]
    pub image_url: ::std::option::Option<::std::string::String>,
    /// `refusal` parts: the text.
    #[serde(skip_serializing_if = "::std::option::Option::is_none")]
    pub refusal: ::std::option::Option<::std::string::String>,
    /// The text of the part.
    #[serde(skip_serializing_if = "::std::option::Option::is_none")]
    pub text: ::std::option::Option<::std::string::String>,
    /// Type of the part: `input_text`, `output_text`, `text`, `refusal`, `reasoning_text` or, in messages of users and
    /// outputs of calls, `input_image`.
    #[serde(rename = "type")]
    pub type_: ::std::string::String,
}
/// Details on the tokens of a prompt.
#[derive(::serde::Deserialize, ::serde::Serialize, Clone, Debug, PartialEq)]
pub struct InputTokensDetails {
    /// Always 0 on this server.
    pub cache_write_tokens: u64,
    /// Tokens that the prefix cache served.
    pub cached_tokens: u64,
}
/// Request body of `join_sampling_session`.
#[derive(::serde::Deserialize, ::serde::Serialize, Clone, Debug, PartialEq)]
pub struct JoinSamplingSessionRequest {
    /// Id of the sampling session whose client was cloned.
    pub sampling_session_id: ::std::string::String,
}
/// Response body of `join_sampling_session`.
#[derive(::serde::Deserialize, ::serde::Serialize, Clone, Debug, PartialEq)]
pub struct JoinSamplingSessionResponse {
    /// Number of the clone, from 1. Its `seq_id` start at 10^9 times this number.
    pub client_counter: u64,
}
/// A public key (RFC 8037).
#[derive(::serde::Deserialize, ::serde::Serialize, Clone, Debug, PartialEq)]
pub struct JwkResponse {
    /// Algorithm of the signatures, always `EdDSA`.
    pub alg: ::std::string::String,
    /// Curve of the key, always `Ed25519`.
    pub crv: ::std::string::String,
    /// Id of the key, which the header of a token contains.
    pub kid: ::std::string::String,
    /// Key type, always `OKP`.
    pub kty: ::std::string::String,
    /// Use of the key, always `sig`.
    #[serde(rename = "use")]
    pub use_: ::std::string::String,
    /// The public key, in base64url.
    pub x: ::std::string::String,
}
/// Response body of `/.well-known/jwks.json`: a JSON Web Key Set (RFC 7517).
#[derive(::serde::Deserialize, ::serde::Serialize, Clone, Debug, PartialEq)]
pub struct JwksResponse {
    /// Keys that sign tokens now, and former ones whose tokens are still accepted.
    pub keys: ::std::vec::Vec<JwkResponse>,
}
/// Response body of `GET admin/keys`.
#[derive(::serde::Deserialize, ::serde::Serialize, Clone, Debug, PartialEq)]
pub struct KeysResponse {
    /// The organisation's keys, oldest first.
    pub keys: ::std::vec::Vec<ApiKey>,
}
/// Place where a limit is set.
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
    /// Place where the limit is set.
    pub origin: LimitOrigin,
    /// Value in force; absent without a limit.
    #[serde(skip_serializing_if = "::std::option::Option::is_none")]
    pub value: ::std::option::Option<u64>,
}
/// Limits of an organisation: answer of `GET` and `PUT admin/organisations/{organisation}/limits`.
#[derive(::serde::Deserialize, ::serde::Serialize, Clone, Debug, PartialEq)]
pub struct LimitsResponse {
    /// Maximum size of the payloads of these training requests, in bytes.
    pub max_queued_bytes: LimitValue,
    /// Maximum number of training requests that have not finished.
    pub max_queued_requests: LimitValue,
    /// Maximum number of samples that have not finished.
    pub max_queued_samples: LimitValue,
    /// Maximum number of tokens in accepted requests that have not finished; samples beyond it are answered with status
    /// 429.
    pub max_queued_tokens: LimitValue,
    /// Maximum number of training runs at the same time.
    pub max_runs: LimitValue,
    /// Maximum number of sessions that are open, or that ended within the retention time.
    pub max_sessions: LimitValue,
    /// Maximum size of all checkpoints, in bytes.
    pub max_storage_bytes: LimitValue,
    /// Rate limit: maximum number of pixels of the images that are sent to an API server within a minute.
    pub pixels_per_minute: LimitValue,
    /// Rate limit: maximum number of tokens in the requests that start within a minute.
    pub tokens_per_minute: LimitValue,
    /// Share of a busy service, relative to the other organisations that have work.
    pub weight: LimitValue,
}
/// Request body of `load_weights`. With `session_id` and `model_seq_id`, it creates a run; with `model_id` and
/// `seq_id`, it loads into an existing run.
#[derive(::serde::Deserialize, ::serde::Serialize, Clone, Debug, PartialEq)]
pub struct LoadWeightsRequest {
    /// Base model of the new run: the checkpoint's, or another name of the same weights.
    #[serde(skip_serializing_if = "::std::option::Option::is_none")]
    pub base_model: ::std::option::Option<::std::string::String>,
    /// Id of the existing run.
    #[serde(skip_serializing_if = "::std::option::Option::is_none")]
    pub model_id: ::std::option::Option<::std::string::String>,
    /// Number of the new run's model within the session.
    #[serde(skip_serializing_if = "::std::option::Option::is_none")]
    pub model_seq_id: ::std::option::Option<u64>,
    /// Whether to restore the optimizer's state too.
    pub optimizer: bool,
    /// Optimizer of the new run if the state is not restored.
    #[serde(skip_serializing_if = "::std::option::Option::is_none")]
    pub optimizer_config: ::std::option::Option<OptimizerConfig>,
    /// Path of the checkpoint: `tinker://<run>/weights/<name>`, or `tinker://<run>/external_weights/<name>` without its
    /// optimizer.
    pub path: ::std::string::String,
    /// Position in the existing run's order.
    #[serde(skip_serializing_if = "::std::option::Option::is_none")]
    pub seq_id: ::std::option::Option<u64>,
    /// Session of the new run.
    #[serde(skip_serializing_if = "::std::option::Option::is_none")]
    pub session_id: ::std::option::Option<::std::string::String>,
    /// Metadata to store with the new run.
    #[serde(default, skip_serializing_if = "::serde_json::Map::is_empty")]
    pub user_metadata: ::serde_json::Map<::std::string::String, ::serde_json::Value>,
    /// A key of a tenant that may read the checkpoint, if the caller may not.
    #[serde(skip_serializing_if = "::std::option::Option::is_none")]
    pub weights_access_token: ::std::option::Option<::std::string::String>,
}
/// A LoRA adapter. Unknown fields are refused.
#[derive(::serde::Deserialize, ::serde::Serialize, Clone, Debug, PartialEq)]
#[serde(deny_unknown_fields)]
pub struct LoraConfig {
    /// Rank of the adapter; 0 trains all parameters instead.
    pub rank: u64,
    /// Seed for the initial values of the adapter; the server chooses one by default.
    #[serde(skip_serializing_if = "::std::option::Option::is_none")]
    pub seed: ::std::option::Option<i64>,
    /// Whether to adapt the attention projections.
    #[serde(skip_serializing_if = "::std::option::Option::is_none")]
    pub train_attn: ::std::option::Option<bool>,
    /// Whether to adapt the MLP projections.
    #[serde(skip_serializing_if = "::std::option::Option::is_none")]
    pub train_mlp: ::std::option::Option<bool>,
    /// Whether to adapt the unembedding.
    #[serde(skip_serializing_if = "::std::option::Option::is_none")]
    pub train_unembed: ::std::option::Option<bool>,
}
/// Response body of `messages`, and the `message` of a stream's first event.
#[derive(::serde::Deserialize, ::serde::Serialize, Clone, Debug, PartialEq)]
pub struct MessageResponse {
    /// Thoughts, text and tool calls, in order.
    pub content: ::std::vec::Vec<ReplyBlock>,
    /// Id of the request.
    pub id: ::std::string::String,
    /// The `model` of the request.
    pub model: ::std::string::String,
    /// Always the text `assistant`.
    pub role: ::std::string::String,
    /// Why the reply ended: `end_turn`, `max_tokens`, `stop_sequence` or `tool_use`.
    #[serde(skip_serializing_if = "::std::option::Option::is_none")]
    pub stop_reason: ::std::option::Option<::std::string::String>,
    /// The stop sequence that ended the reply.
    #[serde(skip_serializing_if = "::std::option::Option::is_none")]
    pub stop_sequence: ::std::option::Option<::std::string::String>,
    /// Always the text `message`.
    #[serde(rename = "type")]
    pub type_: ::std::string::String,
    /// Numbers of tokens in the request and the reply.
    pub usage: AnthropicUsage,
}
/// Request body of `messages`. Unknown fields are refused.
#[derive(::serde::Deserialize, ::serde::Serialize, Clone, Debug, PartialEq)]
#[serde(deny_unknown_fields)]
pub struct MessagesRequest {
    /// Accepted, but ignored: prompts are always cached.
    #[serde(skip_serializing_if = "::std::option::Option::is_none")]
    pub cache_control: ::std::option::Option<::serde_json::Value>,
    /// Refused: containers are not supported.
    #[serde(skip_serializing_if = "::std::option::Option::is_none")]
    pub container: ::std::option::Option<::serde_json::Value>,
    /// Refused: editing of contexts is not supported.
    #[serde(skip_serializing_if = "::std::option::Option::is_none")]
    pub context_management: ::std::option::Option<::serde_json::Value>,
    /// Maximum number of tokens to sample.
    pub max_tokens: u32,
    /// Refused unless it is empty.
    #[serde(skip_serializing_if = "::std::option::Option::is_none")]
    pub mcp_servers: ::std::option::Option<::std::vec::Vec<::serde_json::Value>>,
    /// The conversation so far. If the last message is the assistant's, the reply continues it.
    pub messages: ::std::vec::Vec<AnthropicMessage>,
    /// Accepted, but has no effect.
    #[serde(skip_serializing_if = "::std::option::Option::is_none")]
    pub metadata: ::std::option::Option<::serde_json::Value>,
    /// A base model, a `tinker://` path of a sampler checkpoint, or `<base>;<path>`.
    pub model: ::std::string::String,
    /// How much effort the model spends, if its chat template supports this.
    #[serde(skip_serializing_if = "::std::option::Option::is_none")]
    pub output_config: ::std::option::Option<OutputConfig>,
    /// Refused unless it is `auto` or `standard_only`.
    #[serde(skip_serializing_if = "::std::option::Option::is_none")]
    pub service_tier: ::std::option::Option<::std::string::String>,
    /// Texts that end the reply. The one that is found is not part of the reply.
    #[serde(skip_serializing_if = "::std::option::Option::is_none")]
    pub stop_sequences: ::std::option::Option<::std::vec::Vec<::std::string::String>>,
    /// Whether to respond with server-sent events.
    #[serde(skip_serializing_if = "::std::option::Option::is_none")]
    pub stream: ::std::option::Option<bool>,
    /// Instructions before the conversation.
    #[serde(skip_serializing_if = "::std::option::Option::is_none")]
    pub system: ::std::option::Option<AnthropicContent>,
    /// Divisor of the logits, 1 by default; 0 decodes greedily.
    #[serde(skip_serializing_if = "::std::option::Option::is_none")]
    pub temperature: ::std::option::Option<f64>,
    /// Whether the model thinks before it answers, if its chat template supports this.
    #[serde(skip_serializing_if = "::std::option::Option::is_none")]
    pub thinking: ::std::option::Option<Thinking>,
    /// Whether the model may call tools: `auto` (the default) or `none`.
    #[serde(skip_serializing_if = "::std::option::Option::is_none")]
    pub tool_choice: ::std::option::Option<ToolChoice>,
    /// Tools that the model may call.
    #[serde(skip_serializing_if = "::std::option::Option::is_none")]
    pub tools: ::std::option::Option<::std::vec::Vec<AnthropicTool>>,
    /// Samples only from this many most likely tokens; -1 and 0 turn this off.
    #[serde(skip_serializing_if = "::std::option::Option::is_none")]
    pub top_k: ::std::option::Option<i64>,
    /// Samples only from the smallest set of tokens whose total probability reaches this value; 1 (the default) turns
    /// this off.
    #[serde(skip_serializing_if = "::std::option::Option::is_none")]
    pub top_p: ::std::option::Option<f64>,
}
/// Curve of a metric: three lists of the same length.
#[derive(::serde::Deserialize, ::serde::Serialize, Clone, Debug, PartialEq)]
pub struct MetricSeries {
    /// Kind of the requests: `forward`, `forward_backward` or `optim_step`.
    pub kind: ::std::string::String,
    /// Name of the metric, as in results.
    pub metric: ::std::string::String,
    /// Number of values in the range, which is larger than the lists if they were thinned out.
    pub recorded: u64,
    /// Number of optimizer steps of the run before each request.
    pub steps: ::std::vec::Vec<i64>,
    /// Time at which each request ended, in milliseconds since 1970.
    pub times: ::std::vec::Vec<i64>,
    /// Values of the metric; null for a number that was not finite.
    pub values: ::std::vec::Vec<::std::option::Option<f64>>,
}
/// Response body of `training_runs/{run_id}/metrics`.
#[derive(::serde::Deserialize, ::serde::Serialize, Clone, Debug, PartialEq)]
pub struct MetricsResponse {
    /// First step from which no metrics were thinned out: 0 up to 750,000 requests.
    pub complete_from_step: i64,
    /// Number of requests in the range, of all kinds that were selected.
    pub requests: u64,
    /// Curves, ordered by kind of request and then by metric.
    pub series: ::std::vec::Vec<MetricSeries>,
    /// Id of the run.
    pub training_run_id: ::std::string::String,
}
/// A base model, as `get_info` describes it.
#[derive(::serde::Deserialize, ::serde::Serialize, Clone, Debug, PartialEq)]
pub struct ModelData {
    /// Family of the model.
    pub arch: ::std::string::String,
    /// Name of the model.
    pub model_name: ::std::string::String,
    /// Name under which its tokenizer is published, if it differs from the model's.
    #[serde(skip_serializing_if = "::std::option::Option::is_none")]
    pub tokenizer_id: ::std::option::Option<::std::string::String>,
}
/// A base model or a sampler checkpoint.
#[derive(::serde::Deserialize, ::serde::Serialize, Clone, Debug, PartialEq)]
pub struct ModelEntry {
    /// Time of the save, in seconds since 1970; 0 for base models.
    pub created: i64,
    /// Name of the base model, or path of the checkpoint.
    pub id: ::std::string::String,
    /// Maximum length of prompt and completion together, in tokens.
    pub max_model_len: u64,
    /// Always the text `model`.
    pub object: ::std::string::String,
    /// `trainyard` for base models, `user` for checkpoints.
    pub owned_by: ::std::string::String,
    /// Base model of the checkpoint.
    #[serde(skip_serializing_if = "::std::option::Option::is_none")]
    pub root: ::std::option::Option<::std::string::String>,
}
/// Input of a model, as a list of pieces.
#[derive(::serde::Deserialize, ::serde::Serialize, Clone, Debug, PartialEq)]
pub struct ModelInput {
    /// The pieces, in order; a piece may be empty.
    pub chunks: ::std::vec::Vec<InputChunk>,
}
/// Models that the field `model` of a request may name.
#[derive(::serde::Deserialize, ::serde::Serialize, Clone, Debug, PartialEq)]
pub struct ModelsResponse {
    /// Base models, then the caller's sampler checkpoints, newest first.
    pub data: ::std::vec::Vec<ModelEntry>,
    /// Always the text `list`.
    pub object: ::std::string::String,
}
/// The continuation of a run with other kernels, another data type or another layout.
#[derive(::serde::Deserialize, ::serde::Serialize, Clone, Debug, PartialEq)]
pub struct NumericsChange {
    /// How the run was computed before: data type, kernels, layout and version.
    pub from: ::std::string::String,
    /// Time of the change, in RFC 3339.
    pub time: ::std::string::String,
    /// How the run is computed from then on.
    pub to: ::std::string::String,
}
/// Description of an error.
#[derive(::serde::Deserialize, ::serde::Serialize, Clone, Debug, PartialEq)]
pub struct OpenAiError {
    /// Code of the error, such as `model_not_found` or `invalid_api_key`.
    #[serde(skip_serializing_if = "::std::option::Option::is_none")]
    pub code: ::std::option::Option<::std::string::String>,
    /// Description of the error, for display.
    pub message: ::std::string::String,
    /// Field of the request at fault.
    #[serde(skip_serializing_if = "::std::option::Option::is_none")]
    pub param: ::std::option::Option<::std::string::String>,
    /// Type of the error: `invalid_request_error`, `rate_limit_error`, `server_error` …
    #[serde(rename = "type")]
    pub type_: ::std::string::String,
}
/// Response to a request that was refused or failed.
#[derive(::serde::Deserialize, ::serde::Serialize, Clone, Debug, PartialEq)]
pub struct OpenAiErrorResponse {
    /// Description of the error.
    pub error: OpenAiError,
}
/// Request body of `optim_step`. Exactly one kind of parameters must be set.
#[derive(::serde::Deserialize, ::serde::Serialize, Clone, Debug, PartialEq)]
pub struct OptimStepRequest {
    /// Hyper-parameters, if the optimizer is AdamW.
    #[serde(skip_serializing_if = "::std::option::Option::is_none")]
    pub adam_params: ::std::option::Option<AdamParamsBody>,
    /// Id of the run.
    pub model_id: ::std::string::String,
    /// Hyper-parameters of another family, of which none is supported.
    #[serde(skip_serializing_if = "::std::option::Option::is_none")]
    pub optimizer_params: ::std::option::Option<
        ::serde_json::Map<::std::string::String, ::serde_json::Value>,
    >,
    /// Position in the run's order, from 1.
    pub seq_id: u64,
}
/// An optimizer family; only `adamw` is supported.
#[derive(::serde::Deserialize, ::serde::Serialize, Clone, Debug, PartialEq)]
pub struct OptimizerConfig {
    /// Name of the family: `adamw`.
    #[serde(rename = "type")]
    pub type_: ::std::string::String,
}
/// An organisation: the tenant that owns sessions, runs and checkpoints.
#[derive(::serde::Deserialize, ::serde::Serialize, Clone, Debug, PartialEq)]
pub struct Organisation {
    /// Time of creation, in RFC 3339.
    pub created_at: ::std::string::String,
    /// Time from which its keys and tokens are refused, in RFC 3339; absent while it is enabled.
    #[serde(skip_serializing_if = "::std::option::Option::is_none")]
    pub disabled_at: ::std::option::Option<::std::string::String>,
    /// Name for display; any text.
    pub display_name: ::std::string::String,
    /// Unique name; the tenant of its sessions, runs and checkpoints.
    pub name: ::std::string::String,
    /// Whether this is an operator, whose admins manage all organisations.
    pub operator: bool,
}
/// Response body of `GET admin/organisations`.
#[derive(::serde::Deserialize, ::serde::Serialize, Clone, Debug, PartialEq)]
pub struct OrganisationsResponse {
    /// The organisations that the caller manages, ordered by name.
    pub organisations: ::std::vec::Vec<Organisation>,
}
/// How the model answers.
#[derive(::serde::Deserialize, ::serde::Serialize, Clone, Debug, Default, PartialEq)]
#[serde(deny_unknown_fields)]
pub struct OutputConfig {
    /// A preset such as `low`, or a number, if the model's chat template supports it.
    #[serde(skip_serializing_if = "::std::option::Option::is_none")]
    pub effort: ::std::option::Option<::serde_json::Value>,
    /// Refused unless it is null.
    #[serde(skip_serializing_if = "::std::option::Option::is_none")]
    pub format: ::std::option::Option<::serde_json::Value>,
}
/// A part of a reply, with an id of its own.
#[derive(::serde::Deserialize, ::serde::Serialize, Clone, Debug, PartialEq)]
#[serde(tag = "type")]
pub enum OutputItem {
    /// Thoughts that precede the answer.
    #[serde(rename = "reasoning")]
    Reasoning {
        /// The thoughts, as one part.
        content: ::std::vec::Vec<ReasoningText>,
        /// Id of the item.
        id: ::std::string::String,
        /// `in_progress`, `completed` or `incomplete`.
        status: ::std::string::String,
        /// Always empty: thoughts are returned as they are.
        summary: ::std::vec::Vec<::serde_json::Value>,
    },
    /// Text that the model wrote.
    #[serde(rename = "message")]
    Message {
        /// The text, as one part.
        content: ::std::vec::Vec<OutputText>,
        /// Id of the item.
        id: ::std::string::String,
        /// Always the text `assistant`.
        role: ::std::string::String,
        /// `in_progress`, `completed` or `incomplete`.
        status: ::std::string::String,
    },
    /// A call of a function.
    #[serde(rename = "function_call")]
    FunctionCall {
        /// Arguments: a JSON object, encoded as text.
        arguments: ::std::string::String,
        /// Id of the call, which its output names.
        call_id: ::std::string::String,
        /// Id of the item.
        id: ::std::string::String,
        /// Name of the function.
        name: ::std::string::String,
        /// Either `in_progress` or `completed`.
        status: ::std::string::String,
    },
}
/// The text of a message.
#[derive(::serde::Deserialize, ::serde::Serialize, Clone, Debug, PartialEq)]
pub struct OutputText {
    /// Always empty, because texts have no sources here.
    pub annotations: ::std::vec::Vec<::serde_json::Value>,
    /// Always empty: responses have no log-probabilities.
    pub logprobs: ::std::vec::Vec<::serde_json::Value>,
    /// What the model wrote.
    pub text: ::std::string::String,
    /// Always the text `output_text`.
    #[serde(rename = "type")]
    pub type_: ::std::string::String,
}
/// Details on sampled tokens.
#[derive(::serde::Deserialize, ::serde::Serialize, Clone, Debug, PartialEq)]
pub struct OutputTokensDetails {
    /// Tokens of the thoughts.
    pub reasoning_tokens: u64,
}
/// The owner of a key.
#[derive(::serde::Deserialize, ::serde::Serialize, Clone, Debug, PartialEq)]
pub struct OwnKeyDetails {
    /// The organisation that the key belongs to.
    pub org_details: OwnKeyOrganisation,
    /// The user that the key belongs to.
    pub user_details: OwnKeyUser,
}
/// The organisation that a key belongs to.
#[derive(::serde::Deserialize, ::serde::Serialize, Clone, Debug, PartialEq)]
pub struct OwnKeyOrganisation {
    /// Name of the organisation.
    pub name: ::std::string::String,
}
/// Response body of `GET auth/apikey/me`.
#[derive(::serde::Deserialize, ::serde::Serialize, Clone, Debug, PartialEq)]
pub struct OwnKeyResponse {
    /// The owner of the key.
    pub details: OwnKeyDetails,
    /// Number that identifies the key; 0 if it is not in the store.
    pub key_id: i64,
    /// Name for display; any text.
    pub name: ::std::string::String,
    /// Note for display; any text.
    pub note: ::std::string::String,
}
/// The user that a key belongs to.
#[derive(::serde::Deserialize, ::serde::Serialize, Clone, Debug, PartialEq)]
pub struct OwnKeyUser {
    /// Email address of the user; empty if the key does not belong to a user.
    pub email: ::std::string::String,
}
/// A project of an organisation.
#[derive(::serde::Deserialize, ::serde::Serialize, Clone, Debug, PartialEq)]
pub struct Project {
    /// Time of creation, in RFC 3339.
    pub created_at: ::std::string::String,
    /// Id by which sessions refer to the project.
    pub id: ::std::string::String,
    /// Name for display; any text.
    pub name: ::std::string::String,
}
/// Response body of `GET admin/projects`.
#[derive(::serde::Deserialize, ::serde::Serialize, Clone, Debug, PartialEq)]
pub struct ProjectsResponse {
    /// The organisation's projects, ordered by id.
    pub projects: ::std::vec::Vec<Project>,
}
/// Tokens that were sampled independently for each prompt position.
#[derive(::serde::Deserialize, ::serde::Serialize, Clone, Debug, PartialEq)]
pub struct PromptAltTokensResult {
    /// Log-probabilities of the tokens, in the same shape.
    pub logprobs: TensorData,
    /// Token ids in the shape `[len(prompt) - 1, k]`.
    pub tokens: TensorData,
}
/// Details on the tokens of the prompts.
#[derive(::serde::Deserialize, ::serde::Serialize, Clone, Debug, PartialEq)]
pub struct PromptTokensDetails {
    /// Tokens that the prefix cache served.
    pub cached_tokens: u64,
}
/// Response body of `/readyz`.
#[derive(::serde::Deserialize, ::serde::Serialize, Clone, Debug, PartialEq)]
pub struct ReadyResponse {
    /// Result of each check, by name: `ok` or the problem.
    pub checks: ::std::collections::HashMap<
        ::std::string::String,
        ::std::string::String,
    >,
    /// `ok`, `degraded` while a disk is almost full, or `not ready`.
    pub status: ::std::string::String,
}
/// How the model thinks before it answers.
#[derive(::serde::Deserialize, ::serde::Serialize, Clone, Debug, Default, PartialEq)]
#[serde(deny_unknown_fields)]
pub struct ReasoningConfig {
    /// A preset such as `low`, or a number, if the model's chat template supports it.
    #[serde(skip_serializing_if = "::std::option::Option::is_none")]
    pub effort: ::std::option::Option<::serde_json::Value>,
    /// Older name of `summary`.
    #[serde(skip_serializing_if = "::std::option::Option::is_none")]
    pub generate_summary: ::std::option::Option<::std::string::String>,
    /// Accepted, but has no effect: thoughts are returned as they are, without a summary.
    #[serde(skip_serializing_if = "::std::option::Option::is_none")]
    pub summary: ::std::option::Option<::std::string::String>,
}
/// The thoughts of a reply.
#[derive(::serde::Deserialize, ::serde::Serialize, Clone, Debug, PartialEq)]
pub struct ReasoningText {
    /// What the model thought.
    pub text: ::std::string::String,
    /// Always the text `reasoning_text`.
    #[serde(rename = "type")]
    pub type_: ::std::string::String,
}
/// A part of the reply.
#[derive(::serde::Deserialize, ::serde::Serialize, Clone, Debug, PartialEq)]
#[serde(tag = "type")]
pub enum ReplyBlock {
    /// Text that the model wrote.
    #[serde(rename = "text")]
    Text {
        /// Text of this block.
        text: ::std::string::String,
    },
    /// Thoughts that precede the answer.
    #[serde(rename = "thinking")]
    Thinking {
        /// Always the empty text.
        signature: ::std::string::String,
        /// Text of the thoughts.
        thinking: ::std::string::String,
    },
    /// A call of a tool.
    #[serde(rename = "tool_use")]
    ToolUse {
        /// Id of the call.
        id: ::std::string::String,
        /// Arguments of the call, an object.
        input: ::serde_json::Value,
        /// Name of the tool.
        name: ::std::string::String,
    },
}
/// Format of a reply.
#[derive(::serde::Deserialize, ::serde::Serialize, Clone, Debug, PartialEq)]
#[serde(deny_unknown_fields)]
pub struct ResponseFormat {
    /// The `name` and the `schema`, for the type `json_schema`.
    #[serde(skip_serializing_if = "::std::option::Option::is_none")]
    pub json_schema: ::std::option::Option<::serde_json::Value>,
    /// `text`, `json_object` or `json_schema`.
    #[serde(rename = "type")]
    pub type_: ::std::string::String,
}
/// The conversation of a request: a text of the user, or a list of items.
#[derive(::serde::Deserialize, ::serde::Serialize, Clone, Debug, PartialEq)]
#[serde(untagged)]
pub enum ResponsesInput {
    /// The alternative `String`.
    String(::std::string::String),
    /// The alternative `Array`.
    Array(::std::vec::Vec<InputItem>),
}
impl ::std::convert::From<::std::vec::Vec<InputItem>> for ResponsesInput {
    fn from(value: ::std::vec::Vec<InputItem>) -> Self {
        Self::Array(value)
    }
}
/// Request body of `responses`. Unknown fields are refused. A known field that is not supported is refused unless it has
/// no effect.
#[derive(::serde::Deserialize, ::serde::Serialize, Clone, Debug, PartialEq)]
#[serde(deny_unknown_fields)]
pub struct ResponsesRequest {
    /// Refused if true: background responses are not supported.
    #[serde(skip_serializing_if = "::std::option::Option::is_none")]
    pub background: ::std::option::Option<bool>,
    /// Further variables for the model's chat template. An extension of the API.
    #[serde(skip_serializing_if = "::std::option::Option::is_none")]
    pub chat_template_kwargs: ::std::option::Option<
        ::serde_json::Map<::std::string::String, ::serde_json::Value>,
    >,
    /// Refused: the server does not shorten conversations.
    #[serde(skip_serializing_if = "::std::option::Option::is_none")]
    pub context_management: ::std::option::Option<::serde_json::Value>,
    /// Refused, because conversations are not stored: send the whole conversation.
    #[serde(skip_serializing_if = "::std::option::Option::is_none")]
    pub conversation: ::std::option::Option<::serde_json::Value>,
    /// Additions to the response. `reasoning.encrypted_content` has no effect, because thoughts are returned in the clear;
    /// others are refused.
    #[serde(skip_serializing_if = "::std::option::Option::is_none")]
    pub include: ::std::option::Option<::std::vec::Vec<::std::string::String>>,
    /// The conversation so far: a text of the user, or a list of items.
    pub input: ResponsesInput,
    /// A system message before the conversation.
    #[serde(skip_serializing_if = "::std::option::Option::is_none")]
    pub instructions: ::std::option::Option<::std::string::String>,
    /// Maximum number of tokens to sample; by default, up to the context limit.
    #[serde(skip_serializing_if = "::std::option::Option::is_none")]
    pub max_output_tokens: ::std::option::Option<u32>,
    /// Accepted, but has no effect: it counts calls of tools that the server runs.
    #[serde(skip_serializing_if = "::std::option::Option::is_none")]
    pub max_tool_calls: ::std::option::Option<u32>,
    /// Repeated in the response; it has no other effect.
    #[serde(skip_serializing_if = "::std::option::Option::is_none")]
    pub metadata: ::std::option::Option<
        ::serde_json::Map<::std::string::String, ::serde_json::Value>,
    >,
    /// A base model, a `tinker://` path of a sampler checkpoint, or `<base>;<path>`.
    pub model: ::std::string::String,
    /// Refused: replies are not moderated.
    #[serde(skip_serializing_if = "::std::option::Option::is_none")]
    pub moderation: ::std::option::Option<::serde_json::Value>,
    /// Whether there may be several calls; false requires a `tool_choice` that requires a call, if there are tools.
    #[serde(skip_serializing_if = "::std::option::Option::is_none")]
    pub parallel_tool_calls: ::std::option::Option<bool>,
    /// Refused, because responses are not stored: send the whole conversation.
    #[serde(skip_serializing_if = "::std::option::Option::is_none")]
    pub previous_response_id: ::std::option::Option<::std::string::String>,
    /// Refused: prompts are not stored.
    #[serde(skip_serializing_if = "::std::option::Option::is_none")]
    pub prompt: ::std::option::Option<::serde_json::Value>,
    /// Accepted, but has no effect.
    #[serde(skip_serializing_if = "::std::option::Option::is_none")]
    pub prompt_cache_key: ::std::option::Option<::std::string::String>,
    /// Accepted, but has no effect: prompts are always cached.
    #[serde(skip_serializing_if = "::std::option::Option::is_none")]
    pub prompt_cache_options: ::std::option::Option<::serde_json::Value>,
    /// Accepted, but has no effect: prompts are always cached.
    #[serde(skip_serializing_if = "::std::option::Option::is_none")]
    pub prompt_cache_retention: ::std::option::Option<::std::string::String>,
    /// How the model thinks before it answers.
    #[serde(skip_serializing_if = "::std::option::Option::is_none")]
    pub reasoning: ::std::option::Option<ReasoningConfig>,
    /// Whether to return the ids of the prompt's tokens and of those that were sampled, so that a trainer need not encode
    /// texts again. An extension of the API.
    #[serde(skip_serializing_if = "::std::option::Option::is_none")]
    pub return_token_ids: ::std::option::Option<bool>,
    /// Accepted, but has no effect.
    #[serde(skip_serializing_if = "::std::option::Option::is_none")]
    pub safety_identifier: ::std::option::Option<::std::string::String>,
    /// Seed that makes sampling repeatable. An extension of the API.
    #[serde(skip_serializing_if = "::std::option::Option::is_none")]
    pub seed: ::std::option::Option<i64>,
    /// Refused unless it is `auto` or `default`.
    #[serde(skip_serializing_if = "::std::option::Option::is_none")]
    pub service_tier: ::std::option::Option<::std::string::String>,
    /// Accepted with any value: responses are not stored. Agent sessions record turns in any case.
    #[serde(skip_serializing_if = "::std::option::Option::is_none")]
    pub store: ::std::option::Option<bool>,
    /// Whether to respond with server-sent events.
    #[serde(skip_serializing_if = "::std::option::Option::is_none")]
    pub stream: ::std::option::Option<bool>,
    /// Options that apply only to streams.
    #[serde(skip_serializing_if = "::std::option::Option::is_none")]
    pub stream_options: ::std::option::Option<ResponsesStreamOptions>,
    /// Divisor of the logits, 1 by default; 0 decodes greedily.
    #[serde(skip_serializing_if = "::std::option::Option::is_none")]
    pub temperature: ::std::option::Option<f64>,
    /// Form of the reply's text.
    #[serde(skip_serializing_if = "::std::option::Option::is_none")]
    pub text: ::std::option::Option<TextConfig>,
    /// Whether the model calls tools: `auto` (the default), `none`, `required`, or the one that it must call:
    /// `{"type": "function", "name": …}`. The arguments of required calls follow the tool's schema.
    #[serde(skip_serializing_if = "::std::option::Option::is_none")]
    pub tool_choice: ::std::option::Option<::serde_json::Value>,
    /// Functions that the model may call: `{"type": "function", "name": …, "parameters": …}`. Other types are refused.
    #[serde(skip_serializing_if = "::std::option::Option::is_none")]
    pub tools: ::std::option::Option<
        ::std::vec::Vec<::serde_json::Map<::std::string::String, ::serde_json::Value>>,
    >,
    /// Samples only from this many most likely tokens; -1 and 0 turn this off. An extension of the API.
    #[serde(skip_serializing_if = "::std::option::Option::is_none")]
    pub top_k: ::std::option::Option<i64>,
    /// Refused unless it is 0: responses have no log-probabilities.
    #[serde(skip_serializing_if = "::std::option::Option::is_none")]
    pub top_logprobs: ::std::option::Option<u32>,
    /// Samples only from the smallest set of tokens whose total probability reaches this value; 1 (the default) turns
    /// this off.
    #[serde(skip_serializing_if = "::std::option::Option::is_none")]
    pub top_p: ::std::option::Option<f64>,
    /// Refused unless it is `disabled`: the server does not shorten conversations.
    #[serde(skip_serializing_if = "::std::option::Option::is_none")]
    pub truncation: ::std::option::Option<::std::string::String>,
    /// Accepted, but has no effect.
    #[serde(skip_serializing_if = "::std::option::Option::is_none")]
    pub user: ::std::option::Option<::std::string::String>,
}
/// Response body of `responses`, and the `response` of a stream's events.
#[derive(::serde::Deserialize, ::serde::Serialize, Clone, Debug, PartialEq)]
pub struct ResponsesResponse {
    /// Always false: background responses are not supported.
    pub background: bool,
    /// Time of the request, in seconds since 1970.
    pub created_at: i64,
    /// Always null: failed requests have the status of their error.
    #[serde(skip_serializing_if = "::std::option::Option::is_none")]
    pub error: ::std::option::Option<::serde_json::Value>,
    /// Id of the request.
    pub id: ::std::string::String,
    /// Why the reply is incomplete.
    #[serde(skip_serializing_if = "::std::option::Option::is_none")]
    pub incomplete_details: ::std::option::Option<IncompleteDetails>,
    /// The `instructions` of the request.
    #[serde(skip_serializing_if = "::std::option::Option::is_none")]
    pub instructions: ::std::option::Option<::std::string::String>,
    /// The `max_output_tokens` of the request.
    #[serde(skip_serializing_if = "::std::option::Option::is_none")]
    pub max_output_tokens: ::std::option::Option<u32>,
    /// The `metadata` of the request.
    pub metadata: ::serde_json::Map<::std::string::String, ::serde_json::Value>,
    /// The `model` of the request.
    pub model: ::std::string::String,
    /// Always the text `response`.
    pub object: ::std::string::String,
    /// Thoughts, texts and calls, in order.
    pub output: ::std::vec::Vec<OutputItem>,
    /// The `parallel_tool_calls` of the request, true by default.
    pub parallel_tool_calls: bool,
    /// Always null: responses are not stored.
    #[serde(skip_serializing_if = "::std::option::Option::is_none")]
    pub previous_response_id: ::std::option::Option<::std::string::String>,
    /// Tokens of the rendered conversation, if `return_token_ids` was set.
    #[serde(skip_serializing_if = "::std::option::Option::is_none")]
    pub prompt_token_ids: ::std::option::Option<::std::vec::Vec<u32>>,
    /// `completed`, or `incomplete` if the reply reached a limit; `in_progress` in the first events of a stream.
    pub status: ::std::string::String,
    /// Always false: responses are not stored.
    pub store: bool,
    /// The `temperature` of the request.
    pub temperature: f64,
    /// The `text` of the request.
    pub text: TextConfig,
    /// Tokens sampled so far with the one that ended the reply, if `return_token_ids` was set.
    #[serde(skip_serializing_if = "::std::option::Option::is_none")]
    pub token_ids: ::std::option::Option<::std::vec::Vec<u32>>,
    /// The `tool_choice` of the request, `auto` by default.
    pub tool_choice: ::serde_json::Value,
    /// The `tools` of the request.
    pub tools: ::std::vec::Vec<
        ::serde_json::Map<::std::string::String, ::serde_json::Value>,
    >,
    /// The `top_p` of the request.
    pub top_p: f64,
    /// Always the text `disabled`.
    pub truncation: ::std::string::String,
    /// Numbers of tokens; null before the end of a stream.
    #[serde(skip_serializing_if = "::std::option::Option::is_none")]
    pub usage: ::std::option::Option<ResponsesUsage>,
}
/// Options that apply only to streams of responses.
#[derive(::serde::Deserialize, ::serde::Serialize, Clone, Debug, Default, PartialEq)]
#[serde(deny_unknown_fields)]
pub struct ResponsesStreamOptions {
    /// Accepted, but ignored: streams are not padded.
    #[serde(skip_serializing_if = "::std::option::Option::is_none")]
    pub include_obfuscation: ::std::option::Option<bool>,
}
/// Numbers of tokens in a request and its response.
#[derive(::serde::Deserialize, ::serde::Serialize, Clone, Debug, PartialEq)]
pub struct ResponsesUsage {
    /// Tokens of the prompt.
    pub input_tokens: u64,
    /// Details on the tokens of the prompt.
    pub input_tokens_details: InputTokensDetails,
    /// Tokens that were sampled.
    pub output_tokens: u64,
    /// Details on the sampled tokens.
    pub output_tokens_details: OutputTokensDetails,
    /// Sum of both numbers.
    pub total_tokens: u64,
}
/// Request body of `retrieve_future`.
#[derive(::serde::Deserialize, ::serde::Serialize, Clone, Debug, PartialEq)]
pub struct RetrieveFutureRequest {
    /// Whether the server may return only the size of the result. This server always returns the result.
    #[serde(skip_serializing_if = "::std::option::Option::is_none")]
    pub allow_metadata_only: ::std::option::Option<bool>,
    /// Id of the future.
    pub request_id: ::std::string::String,
}
/// JSON answers of `retrieve_future`, for the API's description: the first that fits.
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
/// Request body of `retrieve_futures`.
#[derive(::serde::Deserialize, ::serde::Serialize, Clone, Debug, PartialEq)]
pub struct RetrieveFuturesRequest {
    /// Cursor of the previous answer; 0 at first.
    #[serde(skip_serializing_if = "::std::option::Option::is_none")]
    pub prev_cursor: ::std::option::Option<u64>,
    /// Results that the server may drop: at most 16,384 ids of 64 bytes. Ids from a key with only read access are
    /// ignored.
    #[serde(default, skip_serializing_if = "::std::vec::Vec::is_empty")]
    pub retrieved_request_ids: ::std::vec::Vec<::std::string::String>,
    /// The sampling session whose completions are returned.
    pub target: FuturesTarget,
    /// Maximum time to wait, in seconds. 0 returns at once; by default the server chooses.
    #[serde(skip_serializing_if = "::std::option::Option::is_none")]
    pub timeout: ::std::option::Option<f64>,
}
/// Response body of `retrieve_futures`.
#[derive(::serde::Deserialize, ::serde::Serialize, Clone, Debug, PartialEq)]
pub struct RetrieveFuturesResponse {
    /// Requests that finished after `prev_cursor`.
    pub completions: ::std::vec::Vec<FutureCompletion>,
    /// Cursor that covers exactly the completions above.
    pub cursor: i64,
}
/// Response body of `admin/signing_keys/rotate`.
#[derive(::serde::Deserialize, ::serde::Serialize, Clone, Debug, PartialEq)]
pub struct RotateSigningResponse {
    /// Number of keys that were withdrawn.
    pub withdrawn: i64,
}
/// Request body of `asample`.
#[derive(::serde::Deserialize, ::serde::Serialize, Clone, Debug, PartialEq)]
pub struct SampleRequest {
    /// Number of completions to sample, 1 by default.
    #[serde(skip_serializing_if = "::std::option::Option::is_none")]
    pub num_samples: ::std::option::Option<u32>,
    /// Prompt: the tokens to complete.
    pub prompt: ModelInput,
    /// Number of tokens to sample independently per prompt position; 0 turns this off.
    #[serde(skip_serializing_if = "::std::option::Option::is_none")]
    pub prompt_alt_tokens_k: ::std::option::Option<u32>,
    /// Whether to return the log-probabilities of the prompt.
    #[serde(skip_serializing_if = "::std::option::Option::is_none")]
    pub prompt_logprobs: ::std::option::Option<bool>,
    /// Limits the log-probabilities to the last `n` prompt positions.
    #[serde(skip_serializing_if = "::std::option::Option::is_none")]
    pub prompt_logprobs_last_n: ::std::option::Option<u32>,
    /// Whether to keep the log-probabilities of the sampled tokens, so that training requests can refer to them by
    /// `sequence_id`. They are deleted a day after their last use.
    #[serde(skip_serializing_if = "::std::option::Option::is_none")]
    pub record_stability_info: ::std::option::Option<bool>,
    /// How tokens are sampled and when a completion ends.
    #[serde(skip_serializing_if = "::std::option::Option::is_none")]
    pub sampling_params: ::std::option::Option<SamplingParams>,
    /// Id of the sampling session.
    pub sampling_session_id: ::std::string::String,
    /// Identifies the request within the sampling session.
    pub seq_id: u64,
    /// Token ids to score, `int64` in the shape `[len(prompt) - 1, K]`; -1 skips a cell.
    #[serde(skip_serializing_if = "::std::option::Option::is_none")]
    pub target_prompt_logprobs: ::std::option::Option<TensorData>,
    /// Number of candidates to return per prompt position; 0 turns this off.
    #[serde(skip_serializing_if = "::std::option::Option::is_none")]
    pub topk_prompt_logprobs: ::std::option::Option<u32>,
    /// Number of candidates to return per sampled token; 0 turns this off.
    #[serde(skip_serializing_if = "::std::option::Option::is_none")]
    pub topk_sample_logprobs: ::std::option::Option<u32>,
}
/// Result of `asample`, which `retrieve_future` returns.
#[derive(::serde::Deserialize, ::serde::Serialize, Clone, Debug, PartialEq)]
pub struct SampleResult {
    /// Tokens that were sampled at every prompt position after the first.
    #[serde(skip_serializing_if = "::std::option::Option::is_none")]
    pub prompt_alt_tokens: ::std::option::Option<PromptAltTokensResult>,
    /// Number of prompt tokens that the prefix cache served.
    pub prompt_cache_hit_tokens: i32,
    /// Log-probabilities of the prompt, one per token; null for the first one.
    #[serde(skip_serializing_if = "::std::option::Option::is_none")]
    pub prompt_logprobs: ::std::option::Option<
        ::std::vec::Vec<::std::option::Option<f32>>,
    >,
    /// Sequences in the order of the submission's sequence ids.
    pub sequences: ::std::vec::Vec<SequenceResult>,
    /// Log-probabilities of the target tokens, in the shape and layout of the request.
    #[serde(skip_serializing_if = "::std::option::Option::is_none")]
    pub target_prompt_logprobs: ::std::option::Option<TensorData>,
    /// Up to k pairs of token id and log-probability for each prompt token; null for the first one.
    #[serde(skip_serializing_if = "::std::option::Option::is_none")]
    pub topk_prompt_logprobs: ::std::option::Option<
        ::std::vec::Vec<::std::option::Option<::std::vec::Vec<::std::vec::Vec<f64>>>>,
    >,
    /// Always the text `sample`.
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
/// Response body of `samplers/{id}`.
#[derive(::serde::Deserialize, ::serde::Serialize, Clone, Debug, PartialEq)]
pub struct SamplerResponse {
    /// Name of the base model.
    pub base_model: ::std::string::String,
    /// Path of the checkpoint; absent for a base model and for a sampler in memory.
    #[serde(skip_serializing_if = "::std::option::Option::is_none")]
    pub model_path: ::std::option::Option<::std::string::String>,
    /// Id of the sampling session.
    pub sampler_id: ::std::string::String,
}
/// How tokens are sampled. Unknown fields are refused, because a setting that is ignored would mislead.
#[derive(::serde::Deserialize, ::serde::Serialize, Clone, Debug, PartialEq)]
#[serde(deny_unknown_fields)]
pub struct SamplingParams {
    /// Subtracted from a token's logit for each time that the token occurs in the completion.
    #[serde(default = "defaults::sampling_params_frequency_penalty")]
    pub frequency_penalty: f64,
    /// JSON schema that the completion must follow.
    #[serde(skip_serializing_if = "::std::option::Option::is_none")]
    pub json_schema: ::std::option::Option<::serde_json::Value>,
    /// Values between -100 and 100 that are added to the logits of tokens, by token id.
    #[serde(skip_serializing_if = "::std::option::Option::is_none")]
    pub logit_bias: ::std::option::Option<::serde_json::Value>,
    /// Maximum number of tokens to sample; by default, up to the context limit.
    #[serde(skip_serializing_if = "::std::option::Option::is_none")]
    pub max_tokens: ::std::option::Option<u32>,
    /// Excludes tokens that are less likely than this fraction of the most likely one; 0 turns this off.
    #[serde(default = "defaults::sampling_params_min_p")]
    pub min_p: f64,
    /// Subtracted from a token's logit if the token occurs in the completion.
    #[serde(default = "defaults::sampling_params_presence_penalty")]
    pub presence_penalty: f64,
    /// Divides positive logits, and multiplies negative ones, of tokens in the prompt or the completion; 1 turns this
    /// off.
    #[serde(default = "defaults::sampling_params_repetition_penalty")]
    pub repetition_penalty: f64,
    /// Seed that makes sampling repeatable.
    #[serde(skip_serializing_if = "::std::option::Option::is_none")]
    pub seed: ::std::option::Option<i64>,
    /// Stop condition: a string, strings or token ids. An empty list turns all stopping off; by default, the model's
    /// end tokens stop.
    #[serde(skip_serializing_if = "::std::option::Option::is_none")]
    pub stop: ::std::option::Option<::serde_json::Value>,
    /// Divisor of the logits; 0 decodes greedily.
    #[serde(default = "defaults::sampling_params_temperature")]
    pub temperature: f64,
    /// Samples only from this many most likely tokens; -1 turns this off.
    #[serde(default = "defaults::default_i64::<i64, -1>")]
    pub top_k: i64,
    /// Samples only from the smallest set of tokens whose total probability reaches this value; 1 turns this off.
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
/// Request body of `save_weights_external`.
#[derive(::serde::Deserialize, ::serde::Serialize, Clone, Debug, PartialEq)]
pub struct SaveWeightsExternalRequest {
    /// Recipients (`age1…`, at most 10) to encrypt each file to, in the age format. The names of encrypted files end in
    /// `.age`.
    #[serde(default, skip_serializing_if = "::std::vec::Vec::is_empty")]
    pub age_encryption_recipients: ::std::vec::Vec<::std::string::String>,
    /// Id of the run.
    pub model_id: ::std::string::String,
    /// Name of the checkpoint, without a folder.
    pub path: ::std::string::String,
    /// Position in the run's order, from 1.
    pub seq_id: u64,
    /// Seconds until the checkpoint is deleted; by default it is kept.
    #[serde(skip_serializing_if = "::std::option::Option::is_none")]
    pub ttl_seconds: ::std::option::Option<u64>,
}
/// Request body of `save_weights_for_sampler`. A save with `path` has a name; a save with `sampling_session_seq_id` is
/// ephemeral.
#[derive(::serde::Deserialize, ::serde::Serialize, Clone, Debug, PartialEq)]
pub struct SaveWeightsForSamplerRequest {
    /// Whether later saves change an ephemeral sampler.
    #[serde(skip_serializing_if = "::std::option::Option::is_none")]
    pub kind: ::std::option::Option<SamplerKind>,
    /// Id of the run.
    pub model_id: ::std::string::String,
    /// Name of the checkpoint, without a folder.
    #[serde(skip_serializing_if = "::std::option::Option::is_none")]
    pub path: ::std::option::Option<::std::string::String>,
    /// Number of the sampling session within the session.
    #[serde(skip_serializing_if = "::std::option::Option::is_none")]
    pub sampling_session_seq_id: ::std::option::Option<u64>,
    /// Position in the run's order, from 1.
    pub seq_id: u64,
    /// Seconds until a checkpoint with a name is deleted; by default it is kept.
    #[serde(skip_serializing_if = "::std::option::Option::is_none")]
    pub ttl_seconds: ::std::option::Option<u64>,
    /// Metadata to store with a checkpoint that has a name.
    #[serde(default, skip_serializing_if = ":: std :: collections :: HashMap::is_empty")]
    pub user_metadata: ::std::collections::HashMap<
        ::std::string::String,
        ::std::string::String,
    >,
}
/// Request body of `save_weights`.
#[derive(::serde::Deserialize, ::serde::Serialize, Clone, Debug, PartialEq)]
pub struct SaveWeightsRequest {
    /// Id of the run.
    pub model_id: ::std::string::String,
    /// Whether to replace a checkpoint of that name.
    #[serde(skip_serializing_if = "::std::option::Option::is_none")]
    pub overwrite: ::std::option::Option<bool>,
    /// Name of the checkpoint, without a folder.
    pub path: ::std::string::String,
    /// Position in the run's order, from 1.
    pub seq_id: u64,
    /// Seconds until the checkpoint is deleted; by default it is kept.
    #[serde(skip_serializing_if = "::std::option::Option::is_none")]
    pub ttl_seconds: ::std::option::Option<u64>,
    /// Metadata to store with the checkpoint.
    #[serde(default, skip_serializing_if = ":: std :: collections :: HashMap::is_empty")]
    pub user_metadata: ::std::collections::HashMap<
        ::std::string::String,
        ::std::string::String,
    >,
}
/// Position at which the next page begins.
#[derive(::serde::Deserialize, ::serde::Serialize, Clone, Debug, PartialEq)]
pub struct SearchCursor {
    /// Time of creation of the page's last session, in RFC 3339.
    pub last_created_at: ::std::string::String,
    /// Id of the page's last session.
    pub last_session_id: ::std::string::String,
}
/// Owners whose objects are searched.
#[derive(::serde::Deserialize, ::serde::Serialize, Clone, Debug, PartialEq)]
#[serde(tag = "type", content = "owner_urns")]
pub enum SearchOwner {
    /// The alternative `Own`.
    #[serde(rename = "own")]
    Own,
    /// The alternative `Accessible`.
    #[serde(rename = "accessible")]
    Accessible,
    /// The listed owners, as far as the caller may see their sessions.
    #[serde(rename = "user")]
    User(::std::vec::Vec<::std::string::String>),
}
impl ::std::convert::From<::std::vec::Vec<::std::string::String>> for SearchOwner {
    fn from(value: ::std::vec::Vec<::std::string::String>) -> Self {
        Self::User(value)
    }
}
/// A completion that was sampled.
#[derive(::serde::Deserialize, ::serde::Serialize, Clone, Debug, PartialEq)]
pub struct SequenceResult {
    /// Log-probabilities of the sampled tokens.
    #[serde(skip_serializing_if = "::std::option::Option::is_none")]
    pub logprobs: ::std::option::Option<::std::vec::Vec<f32>>,
    /// Why the sequence ended: `stop` or `length`.
    pub stop_reason: ::std::string::String,
    /// Ids of the sampled tokens.
    pub tokens: ::std::vec::Vec<i32>,
    /// Up to k pairs of token id and log-probability for each sampled token, or null.
    #[serde(skip_serializing_if = "::std::option::Option::is_none")]
    pub topk_logprobs: ::std::option::Option<
        ::std::vec::Vec<::std::option::Option<::std::vec::Vec<::std::vec::Vec<f64>>>>,
    >,
}
/// Response body of `get_server_capabilities`.
#[derive(::serde::Deserialize, ::serde::Serialize, Clone, Debug, PartialEq)]
pub struct ServerCapabilities {
    /// Base models that the server serves.
    pub supported_models: ::std::vec::Vec<SupportedModel>,
}
/// An event of a stream; its fields are in the order in which they are sent.
#[derive(::serde::Deserialize, ::serde::Serialize, Clone, Debug, PartialEq)]
pub struct ServerSentEvent {
    /// Data of the event, in JSON. A stream of the OpenAI API ends with the data `[DONE]`.
    pub data: ::std::string::String,
    /// Type of the event; absent in streams of the OpenAI API.
    #[serde(skip_serializing_if = "::std::option::Option::is_none")]
    pub event: ::std::option::Option<::std::string::String>,
}
/// Request body of `sessions/{id}/project`.
#[derive(::serde::Deserialize, ::serde::Serialize, Clone, Debug, PartialEq)]
pub struct SessionProjectRequest {
    /// Id of the project; any text that is not empty.
    pub project_id: ::std::string::String,
}
/// Response body of `sessions/{id}`.
#[derive(::serde::Deserialize, ::serde::Serialize, Clone, Debug, PartialEq)]
pub struct SessionResponse {
    /// Name for display; any text.
    #[serde(skip_serializing_if = "::std::option::Option::is_none")]
    pub display_name: ::std::option::Option<::std::string::String>,
    /// Ids of its sampling sessions.
    pub sampler_ids: ::std::vec::Vec<::std::string::String>,
    /// Ids of its training runs.
    pub training_run_ids: ::std::vec::Vec<::std::string::String>,
    /// Metadata that the client set when it created the session. Values that are not text are written as JSON.
    pub user_metadata: ::std::collections::HashMap<
        ::std::string::String,
        ::std::string::String,
    >,
}
/// Request body of `sessions/search`. A session must satisfy every condition that is set. If both `session_id` and
/// `display_name` are set, it must satisfy either of these two.
#[derive(::serde::Deserialize, ::serde::Serialize, Clone, Debug, Default, PartialEq)]
pub struct SessionSearchRequest {
    /// The `next_cursor` of the previous page; absent for the first page.
    #[serde(skip_serializing_if = "::std::option::Option::is_none")]
    pub cursor: ::std::option::Option<SearchCursor>,
    /// Words that must all occur in the display name, in upper or lower case.
    #[serde(skip_serializing_if = "::std::option::Option::is_none")]
    pub display_name: ::std::option::Option<::std::string::String>,
    /// Maximum number of sessions to return.
    #[serde(skip_serializing_if = "::std::option::Option::is_none")]
    pub limit: ::std::option::Option<u32>,
    /// Owners whose sessions are searched.
    #[serde(skip_serializing_if = "::std::option::Option::is_none")]
    pub owner: ::std::option::Option<SearchOwner>,
    /// Projects, one of which must contain the session.
    #[serde(skip_serializing_if = "::std::option::Option::is_none")]
    pub project_ids: ::std::option::Option<::std::vec::Vec<::std::string::String>>,
    /// Id of the session.
    #[serde(skip_serializing_if = "::std::option::Option::is_none")]
    pub session_id: ::std::option::Option<::std::string::String>,
    /// Statuses, one of which the session must have.
    #[serde(skip_serializing_if = "::std::option::Option::is_none")]
    pub statuses: ::std::option::Option<::std::vec::Vec<StatusQuery>>,
    /// Entries that the session's metadata must contain.
    #[serde(default, skip_serializing_if = ":: std :: collections :: HashMap::is_empty")]
    pub user_metadata: ::std::collections::HashMap<
        ::std::string::String,
        ::std::string::String,
    >,
}
/// Response body of `sessions/search`.
#[derive(::serde::Deserialize, ::serde::Serialize, Clone, Debug, PartialEq)]
pub struct SessionSearchResponse {
    /// Position of the next page; absent on the last page.
    #[serde(skip_serializing_if = "::std::option::Option::is_none")]
    pub next_cursor: ::std::option::Option<SearchCursor>,
    /// Matches, newest first. A page may contain fewer than `limit` although `next_cursor` is set.
    pub sessions: ::std::vec::Vec<SessionSummary>,
}
/// A session that matches a search.
#[derive(::serde::Deserialize, ::serde::Serialize, Clone, Debug, PartialEq)]
pub struct SessionSummary {
    /// Size of the checkpoints' files, in bytes.
    pub checkpoint_storage_bytes: u64,
    /// Number of checkpoints of its runs.
    pub checkpoints_count: u64,
    /// Time of creation, in RFC 3339.
    pub created_at: ::std::string::String,
    /// Name for display; any text.
    #[serde(skip_serializing_if = "::std::option::Option::is_none")]
    pub display_name: ::std::option::Option<::std::string::String>,
    /// Tenant that owns the session.
    pub owner: ::std::string::String,
    /// Project of the session; empty if it is not in a project.
    pub project_id: ::std::string::String,
    /// Id of the session.
    pub session_id: ::std::string::String,
    /// Status of the session; absent if its heartbeats stopped.
    #[serde(skip_serializing_if = "::std::option::Option::is_none")]
    pub status: ::std::option::Option<StatusSummary>,
    /// Metadata that the client set when it created the session. Values that are not text are written as JSON.
    pub user_metadata: ::std::collections::HashMap<
        ::std::string::String,
        ::std::string::String,
    >,
}
/// Response body of `sessions`.
#[derive(::serde::Deserialize, ::serde::Serialize, Clone, Debug, PartialEq)]
pub struct SessionsResponse {
    /// Ids of the sessions, newest first.
    pub sessions: ::std::vec::Vec<::std::string::String>,
}
/// Status that is searched for.
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
    /// The client finished the session.
    #[serde(rename = "client_finished")]
    ClientFinished {
        /// Reasons, one of which the client must have given; any by default.
        #[serde(skip_serializing_if = "::std::option::Option::is_none")]
        reasons: ::std::option::Option<::std::vec::Vec<FinishKind>>,
    },
}
/// Status of a session that matches a search.
#[derive(::serde::Deserialize, ::serde::Serialize, Clone, Debug, PartialEq)]
#[serde(tag = "type")]
pub enum StatusSummary {
    /// The alternative `Active`.
    #[serde(rename = "active")]
    Active,
    /// The client finished the session.
    #[serde(rename = "client_finished")]
    ClientFinished {
        /// Details that the client gave.
        #[serde(skip_serializing_if = "::std::option::Option::is_none")]
        detail: ::std::option::Option<::std::string::String>,
        /// Reason that the client gave.
        reason: FinishReason,
    },
}
/// One or more texts that end a completion.
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
/// Storage in use now.
#[derive(::serde::Deserialize, ::serde::Serialize, Clone, Debug, PartialEq)]
pub struct StorageInUse {
    /// Number of these checkpoints.
    pub checkpoint_count: u64,
    /// Project of the sessions.
    #[serde(skip_serializing_if = "::std::option::Option::is_none")]
    pub project_id: ::std::option::Option<::std::string::String>,
    /// Size of all their files, in bytes.
    pub size_bytes: u64,
    /// Size of all their files, in units of 10^9 bytes.
    pub size_gigabytes: f64,
    /// Email address of the user whose keys created the sessions.
    #[serde(skip_serializing_if = "::std::option::Option::is_none")]
    pub user_email: ::std::option::Option<::std::string::String>,
}
/// Response body of `billing/usage/checkpoints/current`.
#[derive(::serde::Deserialize, ::serde::Serialize, Clone, Debug, PartialEq)]
pub struct StorageResponse {
    /// Storage by project and user.
    pub data: ::std::vec::Vec<StorageInUse>,
}
/// Options that apply only to streams.
#[derive(::serde::Deserialize, ::serde::Serialize, Clone, Debug, Default, PartialEq)]
#[serde(deny_unknown_fields)]
pub struct StreamOptions {
    /// Accepted, but ignored: streams are not padded.
    #[serde(skip_serializing_if = "::std::option::Option::is_none")]
    pub include_obfuscation: ::std::option::Option<bool>,
    /// Whether to end the stream with a chunk that contains the usage and no choices.
    #[serde(default)]
    pub include_usage: bool,
}
/// Answer to every submission.
#[derive(::serde::Deserialize, ::serde::Serialize, Clone, Debug, PartialEq)]
pub struct SubmitResponse {
    /// Id of the run, for training requests.
    #[serde(skip_serializing_if = "::std::option::Option::is_none")]
    pub model_id: ::std::option::Option<::std::string::String>,
    /// Id of the future.
    pub request_id: ::std::string::String,
    /// One id per sample, for `asample`.
    #[serde(skip_serializing_if = "::std::option::Option::is_none")]
    pub sample_sequence_ids: ::std::option::Option<
        ::std::vec::Vec<::std::string::String>,
    >,
}
/// A base model that the server serves.
#[derive(::serde::Deserialize, ::serde::Serialize, Clone, Debug, PartialEq)]
pub struct SupportedModel {
    /// Maximum length of prompt and completion together, in tokens.
    pub max_context_length: u64,
    /// Name of the model.
    pub model_name: ::std::string::String,
    /// Whether it can be sampled from.
    pub sampleable: bool,
    /// Whether runs can be created on it.
    pub trainable: bool,
}
/// Request body of `telemetry`.
#[derive(::serde::Deserialize, ::serde::Serialize, Clone, Debug, Default, PartialEq)]
pub struct TelemetryRequest {
    /// Events of the client; they are not stored.
    #[serde(default, skip_serializing_if = "::std::vec::Vec::is_empty")]
    pub events: ::std::vec::Vec<::serde_json::Value>,
    /// Platform of the client.
    #[serde(skip_serializing_if = "::std::option::Option::is_none")]
    pub platform: ::std::option::Option<::std::string::String>,
    /// Version of the client.
    #[serde(skip_serializing_if = "::std::option::Option::is_none")]
    pub sdk_version: ::std::option::Option<::std::string::String>,
    /// Id of the session, or `sessionless-<uuid>`.
    #[serde(skip_serializing_if = "::std::option::Option::is_none")]
    pub session_id: ::std::option::Option<::std::string::String>,
}
/// Response body of `telemetry`.
#[derive(::serde::Deserialize, ::serde::Serialize, Clone, Debug, PartialEq)]
pub struct TelemetryResponse {
    /// Always the text `accepted`.
    pub status: ::std::string::String,
}
/// A tensor in JSON. If both index lists are set, it is sparse, and `data` contains the listed cells row by row.
#[derive(::serde::Deserialize, ::serde::Serialize, Clone, Debug, PartialEq)]
pub struct TensorData {
    /// Elements in row-major order.
    pub data: ::std::vec::Vec<f64>,
    /// Type of the elements.
    pub dtype: TensorDtype,
    /// Extents, outermost first; one dimension by default.
    #[serde(skip_serializing_if = "::std::option::Option::is_none")]
    pub shape: ::std::option::Option<::std::vec::Vec<i64>>,
    /// Columns of a sparse tensor: one per element.
    #[serde(skip_serializing_if = "::std::option::Option::is_none")]
    pub sparse_col_indices: ::std::option::Option<::std::vec::Vec<i64>>,
    /// Row pointers of a sparse tensor: rows + 1 entries.
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
/// Form of a reply's text.
#[derive(::serde::Deserialize, ::serde::Serialize, Clone, Debug, Default, PartialEq)]
#[serde(deny_unknown_fields)]
pub struct TextConfig {
    /// Format of the text: `text`, `json_object` or `json_schema`.
    #[serde(skip_serializing_if = "::std::option::Option::is_none")]
    pub format: ::std::option::Option<TextFormat>,
    /// Refused unless it is `medium`.
    #[serde(skip_serializing_if = "::std::option::Option::is_none")]
    pub verbosity: ::std::option::Option<::std::string::String>,
}
/// Format of a reply's text. JSON can't be combined with tools.
#[derive(::serde::Deserialize, ::serde::Serialize, Clone, Debug, PartialEq)]
#[serde(deny_unknown_fields)]
pub struct TextFormat {
    /// What the format is for; it has no effect.
    #[serde(skip_serializing_if = "::std::option::Option::is_none")]
    pub description: ::std::option::Option<::std::string::String>,
    /// Name of the schema, for the type `json_schema`.
    #[serde(skip_serializing_if = "::std::option::Option::is_none")]
    pub name: ::std::option::Option<::std::string::String>,
    /// The schema, for the type `json_schema`.
    #[serde(skip_serializing_if = "::std::option::Option::is_none")]
    pub schema: ::std::option::Option<::serde_json::Value>,
    /// Accepted, but has no effect: the schema always holds.
    #[serde(skip_serializing_if = "::std::option::Option::is_none")]
    pub strict: ::std::option::Option<bool>,
    /// `text`, `json_object` or `json_schema`.
    #[serde(rename = "type")]
    pub type_: ::std::string::String,
}
/// Whether the model thinks before it answers.
#[derive(::serde::Deserialize, ::serde::Serialize, Clone, Debug, PartialEq)]
#[serde(deny_unknown_fields)]
pub struct Thinking {
    /// Budget for thoughts in tokens: at least 1024 and less than `max_tokens`. Thoughts count as output; only
    /// `max_tokens` limits them.
    #[serde(skip_serializing_if = "::std::option::Option::is_none")]
    pub budget_tokens: ::std::option::Option<u32>,
    /// Accepted, but has no effect.
    #[serde(skip_serializing_if = "::std::option::Option::is_none")]
    pub display: ::std::option::Option<::std::string::String>,
    /// `enabled`, `adaptive` or `disabled`.
    #[serde(rename = "type")]
    pub type_: ::std::string::String,
}
/// A token with its log-probability and the most likely candidates.
#[derive(::serde::Deserialize, ::serde::Serialize, Clone, Debug, PartialEq)]
pub struct TokenLogprob {
    /// Bytes of the token's text.
    #[serde(skip_serializing_if = "::std::option::Option::is_none")]
    pub bytes: ::std::option::Option<::std::vec::Vec<u32>>,
    /// Log-probability in the temperature-scaled distribution.
    pub logprob: f64,
    /// Text of the token; U+FFFD stands for an incomplete character.
    pub token: ::std::string::String,
    /// Candidates at this position, most likely first.
    pub top_logprobs: ::std::vec::Vec<TopLogprob>,
}
/// A call of a tool.
#[derive(::serde::Deserialize, ::serde::Serialize, Clone, Debug, PartialEq)]
pub struct ToolCall {
    /// The function that is called.
    pub function: FunctionCall,
    /// Id of the call.
    pub id: ::std::string::String,
    /// Position of the call in the reply; only in chunks of a stream.
    #[serde(skip_serializing_if = "::std::option::Option::is_none")]
    pub index: ::std::option::Option<i64>,
    /// Always the text `function`.
    #[serde(rename = "type", skip_serializing_if = "::std::option::Option::is_none")]
    pub type_: ::std::option::Option<::std::string::String>,
}
/// Whether the model may call tools.
#[derive(::serde::Deserialize, ::serde::Serialize, Clone, Debug, PartialEq)]
#[serde(deny_unknown_fields)]
pub struct ToolChoice {
    /// Whether to allow at most one call. With the type `auto`, true is refused.
    #[serde(skip_serializing_if = "::std::option::Option::is_none")]
    pub disable_parallel_tool_use: ::std::option::Option<bool>,
    /// Name of the tool, for the type `tool`.
    #[serde(skip_serializing_if = "::std::option::Option::is_none")]
    pub name: ::std::option::Option<::std::string::String>,
    /// `auto`, `none`, `any` or `tool`. The input of required calls follows the tool's schema.
    #[serde(rename = "type")]
    pub type_: ::std::string::String,
}
/// A candidate for a token.
#[derive(::serde::Deserialize, ::serde::Serialize, Clone, Debug, PartialEq)]
pub struct TopLogprob {
    /// Bytes of the token's text.
    #[serde(skip_serializing_if = "::std::option::Option::is_none")]
    pub bytes: ::std::option::Option<::std::vec::Vec<u32>>,
    /// Log-probability in the temperature-scaled distribution.
    pub logprob: f64,
    /// Text of the token; U+FFFD stands for an incomplete character.
    pub token: ::std::string::String,
}
/// Response body of `sessions/{id}/trace_export`.
#[derive(::serde::Deserialize, ::serde::Serialize, Clone, Debug, PartialEq)]
pub struct TraceExportResponse {
    /// Always `ready`: the trace is computed when it is downloaded.
    pub status: ::std::string::String,
    /// URL of the trace, which can be downloaded without a key.
    pub url: ::std::string::String,
}
/// Result of `forward` and `forward_backward`.
#[derive(::serde::Deserialize, ::serde::Serialize, Clone, Debug, PartialEq)]
pub struct TrainingResult {
    /// Type of the outputs.
    pub loss_fn_output_type: ::std::string::String,
    /// Outputs of each datum in the order of the request: `logprobs`, `elementwise_loss`, `entropies` if a datum has
    /// `entropy_weights`, and `kl` if one has `kl_weights`.
    pub loss_fn_outputs: ::std::vec::Vec<
        ::std::collections::HashMap<::std::string::String, TensorData>,
    >,
    /// Metrics, with keys of the form `name:reduction`, such as `loss:sum`.
    pub metrics: ::std::collections::HashMap<::std::string::String, f64>,
}
/// A training run: a sequence of requests that train one model.
#[derive(::serde::Deserialize, ::serde::Serialize, Clone, Debug, PartialEq)]
pub struct TrainingRun {
    /// Name of the base model.
    pub base_model: ::std::string::String,
    /// Whether the run's state is lost.
    pub corrupted: bool,
    /// Whether the run trains an adapter.
    pub is_lora: bool,
    /// The run's newest training checkpoint.
    #[serde(skip_serializing_if = "::std::option::Option::is_none")]
    pub last_checkpoint: ::std::option::Option<Checkpoint>,
    /// Time of the last request, in RFC 3339.
    pub last_request_time: ::std::string::String,
    /// The run's newest sampler checkpoint.
    #[serde(skip_serializing_if = "::std::option::Option::is_none")]
    pub last_sampler_checkpoint: ::std::option::Option<Checkpoint>,
    /// Rank of the adapter.
    #[serde(skip_serializing_if = "::std::option::Option::is_none")]
    pub lora_rank: ::std::option::Option<u32>,
    /// Tenant that owns the run.
    pub model_owner: ::std::string::String,
    /// Continuations by workers with other numerics, oldest first; absent if there were none.
    #[serde(default, skip_serializing_if = "::std::vec::Vec::is_empty")]
    pub numerics_changed: ::std::vec::Vec<NumericsChange>,
    /// Id of the run; the `model_id` of its requests.
    pub training_run_id: ::std::string::String,
    /// Metadata that the client set when it created the run.
    pub user_metadata: ::std::collections::HashMap<
        ::std::string::String,
        ::std::string::String,
    >,
}
/// Response body of `training_runs`.
#[derive(::serde::Deserialize, ::serde::Serialize, Clone, Debug, PartialEq)]
pub struct TrainingRunsResponse {
    /// Position of the page in the listing.
    pub cursor: Cursor,
    /// The training runs of this page.
    pub training_runs: ::std::vec::Vec<TrainingRun>,
}
/// Response body of `GET agent_sessions/{id}/trajectories`.
#[derive(::serde::Deserialize, ::serde::Serialize, Clone, Debug, PartialEq)]
pub struct TrajectoriesResponse {
    /// `offset` of the next page; absent on the last one.
    #[serde(skip_serializing_if = "::std::option::Option::is_none")]
    pub next_offset: ::std::option::Option<u64>,
    /// Branches of the page, in the order of their last turns.
    pub trajectories: ::std::vec::Vec<Trajectory>,
}
/// A branch of an agent session: the turns from a first one to one that no other turn continues.
#[derive(::serde::Deserialize, ::serde::Serialize, Clone, Debug, PartialEq)]
pub struct Trajectory {
    /// Id of the branch's last turn.
    pub branch: ::std::string::String,
    /// Example for `forward_backward`. `weights` is 1 on the sampled tokens of turns whose `trained` is true, and
    /// `advantages` is the turn's reward there.
    pub datum: DatumBody,
    /// Reward of the branch, else of the session, if one was posted.
    #[serde(skip_serializing_if = "::std::option::Option::is_none")]
    pub reward: ::std::option::Option<f64>,
    /// Whether the last reply was cut off by a limit on its length.
    pub truncated: bool,
    /// Turns of the branch, in order.
    pub turns: ::std::vec::Vec<TrajectoryTurn>,
}
/// A turn of a branch.
#[derive(::serde::Deserialize, ::serde::Serialize, Clone, Debug, PartialEq)]
pub struct TrajectoryTurn {
    /// Why the turn does not continue an earlier one, if the session had turns.
    #[serde(skip_serializing_if = "::std::option::Option::is_none")]
    pub branch_reason: ::std::option::Option<::std::string::String>,
    /// `stop`, `length` or `tool_calls`.
    pub finish_reason: ::std::string::String,
    /// Reward of the turn, if one was posted.
    #[serde(skip_serializing_if = "::std::option::Option::is_none")]
    pub reward: ::std::option::Option<f64>,
    /// Position of the first sampled token in the branch.
    pub start: u64,
    /// Temperature at which the turn was sampled; its log-probabilities are those of that temperature.
    pub temperature: f64,
    /// Number of sampled tokens.
    pub tokens: u64,
    /// Whether this branch trains the turn. A turn of several branches is trained in the first one.
    pub trained: bool,
    /// Id of the turn: that of its request, a dot, and the position among the request's replies.
    pub turn_id: ::std::string::String,
    /// Weights that sampled the turn: a base model, a sampler checkpoint or a sampling session.
    pub weights: ::std::string::String,
}
/// Response body of `retrieve_future` while the result is pending.
#[derive(::serde::Deserialize, ::serde::Serialize, Clone, Debug, PartialEq)]
pub struct TryAgainResponse {
    /// `active`, or `paused_rate_limit` or `paused_capacity` while the request waits for a quota or for capacity.
    pub queue_state: ::std::string::String,
    /// The quota or the capacity that the request waits for.
    #[serde(skip_serializing_if = "::std::option::Option::is_none")]
    pub queue_state_reason: ::std::option::Option<::std::string::String>,
    /// Id of the future.
    pub request_id: ::std::string::String,
    /// Always the text `try_again`.
    #[serde(rename = "type")]
    pub type_: ::std::string::String,
}
/// Request body of `…/ttl`. The field is required; null removes the expiry.
#[derive(::serde::Deserialize, ::serde::Serialize, Clone, Debug, Default, PartialEq)]
pub struct TtlRequest {
    /// Seconds from now until the checkpoint is deleted.
    #[serde(skip_serializing_if = "::std::option::Option::is_none")]
    pub ttl_seconds: ::std::option::Option<u64>,
}
/// Request body of `external_weights_upload_finish`.
#[derive(::serde::Deserialize, ::serde::Serialize, Clone, Debug, PartialEq)]
pub struct UploadFinishRequest {
    /// Id of the upload.
    pub upload_id: ::std::string::String,
}
/// Response body of `external_weights_upload_finish`.
#[derive(::serde::Deserialize, ::serde::Serialize, Clone, Debug, PartialEq)]
pub struct UploadFinishResponse {
    /// Path of the checkpoint: `tinker://<run>/external_weights/<name>`.
    pub tinker_path: ::std::string::String,
}
/// Request body of `external_weights_upload_start`.
#[derive(::serde::Deserialize, ::serde::Serialize, Clone, Debug, PartialEq)]
pub struct UploadStartRequest {
    /// Name of the base model that the adapter belongs to.
    pub base_model: ::std::string::String,
    /// Project of the checkpoint.
    #[serde(skip_serializing_if = "::std::option::Option::is_none")]
    pub destination_project_id: ::std::option::Option<::std::string::String>,
    /// Shape of the adapter: its rank, at least 1, and the projections that it adapts.
    pub lora_config: LoraConfig,
}
/// Response body of `external_weights_upload_start`.
#[derive(::serde::Deserialize, ::serde::Serialize, Clone, Debug, PartialEq)]
pub struct UploadStartResponse {
    /// Time at which the URLs expire and the upload is deleted, in RFC 3339.
    pub expires: ::std::string::String,
    /// Id of the upload.
    pub upload_id: ::std::string::String,
    /// URL for each file, by its name, to send the file to with `PUT`. The URLs contain their authorisation.
    pub urls: ::std::collections::HashMap<::std::string::String, ::std::string::String>,
}
/// Progress of the upload of a file.
#[derive(::serde::Deserialize, ::serde::Serialize, Clone, Debug, PartialEq)]
pub struct UploadedFileResponse {
    /// Whether the whole file has arrived.
    pub complete: bool,
    /// Number of bytes that have arrived, from the first one on; the next `PUT` may begin here.
    pub received_bytes: u64,
    /// Length of the file in bytes, if it is known.
    #[serde(skip_serializing_if = "::std::option::Option::is_none")]
    pub total_bytes: ::std::option::Option<u64>,
}
/// Numbers of tokens in a request and its completions.
#[derive(::serde::Deserialize, ::serde::Serialize, Clone, Debug, PartialEq)]
pub struct Usage {
    /// Tokens that were sampled.
    pub completion_tokens: u64,
    /// Tokens of the prompts.
    pub prompt_tokens: u64,
    /// Details on the tokens of the prompts.
    pub prompt_tokens_details: PromptTokensDetails,
    /// Sum of both numbers.
    pub total_tokens: u64,
}
/// Usage of a session within an hour.
#[derive(::serde::Deserialize, ::serde::Serialize, Clone, Debug, PartialEq)]
pub struct UsageEvent {
    /// Name of the base model.
    pub base_model: ::std::string::String,
    /// End of the hour, in RFC 3339.
    pub bucket_end: ::std::string::String,
    /// Start of the hour, in RFC 3339.
    pub bucket_start: ::std::string::String,
    /// Kind and amount of the usage.
    pub event_info: UsageInfo,
    /// Project of the session.
    #[serde(skip_serializing_if = "::std::option::Option::is_none")]
    pub project_id: ::std::option::Option<::std::string::String>,
    /// Id of the session.
    pub session_id: ::std::string::String,
    /// Email address of the user whose key created the session.
    #[serde(skip_serializing_if = "::std::option::Option::is_none")]
    pub user_id: ::std::option::Option<::std::string::String>,
}
/// Kind and amount of a usage.
#[derive(::serde::Deserialize, ::serde::Serialize, Clone, Debug, PartialEq)]
#[serde(tag = "type")]
pub enum UsageInfo {
    /// Tokens of examples in forward and backward passes.
    #[serde(rename = "training")]
    Training {
        /// Number of these tokens.
        token_count: u64,
    },
    /// Tokens of the prompts of samples.
    #[serde(rename = "sampling_prefill")]
    SamplingPrefill {
        /// Whether the prefix cache served the tokens.
        cached: bool,
        /// Number of these tokens.
        token_count: u64,
    },
    /// Tokens that were generated.
    #[serde(rename = "sampling_sample")]
    SamplingSample {
        /// Number of these tokens.
        token_count: u64,
    },
    /// Checkpoints that were saved.
    #[serde(rename = "checkpoint")]
    Checkpoint {
        /// Number of these checkpoints.
        count: u64,
    },
    /// Checkpoints that were stored.
    #[serde(rename = "storage")]
    Storage {
        /// Storage in units of 10^9 bytes, multiplied by hours.
        gigabyte_hours: f64,
    },
}
/// Response body of `billing/usage/events`.
#[derive(::serde::Deserialize, ::serde::Serialize, Clone, Debug, PartialEq)]
pub struct UsageResponse {
    /// Usage by hour, and within an hour by tokens in descending order.
    pub data: ::std::vec::Vec<UsageEvent>,
    /// Sessions that `data` names, unless they were deleted.
    pub sessions: ::std::collections::HashMap<::std::string::String, UsageSession>,
}
/// A session that usage refers to.
#[derive(::serde::Deserialize, ::serde::Serialize, Clone, Debug, PartialEq)]
pub struct UsageSession {
    /// Metadata that the client set when it created the session.
    pub user_metadata: ::std::collections::HashMap<
        ::std::string::String,
        ::std::string::String,
    >,
}
/// A user of an organisation.
#[derive(::serde::Deserialize, ::serde::Serialize, Clone, Debug, PartialEq)]
pub struct User {
    /// Time of creation, in RFC 3339.
    pub created_at: ::std::string::String,
    /// Time from which the user's keys are refused, in RFC 3339; absent while the user is enabled.
    #[serde(skip_serializing_if = "::std::option::Option::is_none")]
    pub disabled_at: ::std::option::Option<::std::string::String>,
    /// Email address, unique within the organisation.
    pub email: ::std::string::String,
    /// Id that increases with the time of creation.
    pub id: ::std::string::String,
    /// Name for display; any text.
    pub name: ::std::string::String,
    /// `admin`, `member` or `read-only`: the highest role of the user's keys.
    pub role: ::std::string::String,
}
/// Response body of `GET admin/users`.
#[derive(::serde::Deserialize, ::serde::Serialize, Clone, Debug, PartialEq)]
pub struct UsersResponse {
    /// The organisation's users, ordered by email address.
    pub users: ::std::vec::Vec<User>,
}
/// Request body of `weights_info`.
#[derive(::serde::Deserialize, ::serde::Serialize, Clone, Debug, PartialEq)]
pub struct WeightsInfoRequest {
    /// Path of the checkpoint.
    pub tinker_path: ::std::string::String,
}
/// Response body of `weights_info`.
#[derive(::serde::Deserialize, ::serde::Serialize, Clone, Debug, PartialEq)]
pub struct WeightsInfoResponse {
    /// Name of the base model.
    pub base_model: ::std::string::String,
    /// Whether the checkpoint is an adapter.
    pub is_lora: bool,
    /// Rank of the adapter.
    #[serde(skip_serializing_if = "::std::option::Option::is_none")]
    pub lora_rank: ::std::option::Option<u32>,
    /// Optimizer family of the checkpoint's run.
    pub optimizer_config: OptimizerConfig,
    /// Whether the adapter covers the attention projections.
    #[serde(skip_serializing_if = "::std::option::Option::is_none")]
    pub train_attn: ::std::option::Option<bool>,
    /// Whether the adapter covers the MLP projections.
    #[serde(skip_serializing_if = "::std::option::Option::is_none")]
    pub train_mlp: ::std::option::Option<bool>,
    /// Whether the adapter covers the unembedding.
    #[serde(skip_serializing_if = "::std::option::Option::is_none")]
    pub train_unembed: ::std::option::Option<bool>,
}
/// How a server identified a caller.
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
/// An API key, as seen by its owner.
#[derive(::serde::Deserialize, ::serde::Serialize, Clone, Debug, PartialEq)]
pub struct WhoamiKey {
    /// Number that identifies the key.
    pub id: i64,
    /// Name for display; any text.
    pub name: ::std::string::String,
}
/// Response body of `auth/whoami`.
#[derive(::serde::Deserialize, ::serde::Serialize, Clone, Debug, PartialEq)]
pub struct WhoamiResponse {
    /// How the server identified the caller, or the caller for whom it issued the token.
    pub credential: WhoamiCredential,
    /// Time at which the key or token of the call expires, in RFC 3339; absent if it never does.
    #[serde(skip_serializing_if = "::std::option::Option::is_none")]
    pub expires_at: ::std::option::Option<::std::string::String>,
    /// The key of the call, or the key that its token was issued for; absent if it is not in the store.
    #[serde(skip_serializing_if = "::std::option::Option::is_none")]
    pub key: ::std::option::Option<WhoamiKey>,
    /// Whether admins of this organisation manage all others.
    pub operator: bool,
    /// The organisation that owns the objects that the caller sees.
    pub organisation: ::std::string::String,
    /// `admin`, `member` or `read-only`.
    pub role: ::std::string::String,
    /// What the caller may change: `train`, `sample`, `checkpoints`, `admin`.
    pub scopes: ::std::vec::Vec<::std::string::String>,
    /// Identifies the user, or the key of a program: the claim `sub` of its tokens.
    pub subject: ::std::string::String,
    /// The user who calls; absent for a program.
    #[serde(skip_serializing_if = "::std::option::Option::is_none")]
    pub user: ::std::option::Option<WhoamiUser>,
}
/// A user, as seen by itself.
#[derive(::serde::Deserialize, ::serde::Serialize, Clone, Debug, PartialEq)]
pub struct WhoamiUser {
    /// Email address, unique within the organisation.
    pub email: ::std::string::String,
    /// Id of the user; absent if an external issuer vouches for a user who is not in the store.
    #[serde(skip_serializing_if = "::std::option::Option::is_none")]
    pub id: ::std::option::Option<::std::string::String>,
    /// Name for display; any text.
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
    /// Decay rate of the first moment.
    #[must_use]
    pub fn beta1(mut self, value: f64) -> Self {
        self.beta1 = value;
        self
    }
    /// Decay rate of the second moment.
    #[must_use]
    pub fn beta2(mut self, value: f64) -> Self {
        self.beta2 = value;
        self
    }
    /// Constant that is added to the denominator.
    #[must_use]
    pub fn eps(mut self, value: f64) -> Self {
        self.eps = value;
        self
    }
    /// Maximum global norm of the gradient; 0 and negative values turn clipping off.
    #[must_use]
    pub fn grad_clip_norm(mut self, value: f64) -> Self {
        self.grad_clip_norm = value;
        self
    }
    /// Learning rate of the step.
    #[must_use]
    pub fn learning_rate(mut self, value: f64) -> Self {
        self.learning_rate = value;
        self
    }
    /// Decoupled weight decay, as in AdamW.
    #[must_use]
    pub fn weight_decay(mut self, value: f64) -> Self {
        self.weight_decay = value;
        self
    }
}
impl AgentLimits {
    /// AgentLimits with what it must have, and the defaults of the rest.
    pub fn new() -> Self {
        Self {
            max_tokens: ::std::default::Default::default(),
            max_tools: ::std::default::Default::default(),
            max_turns: ::std::default::Default::default(),
            seconds: ::std::default::Default::default(),
        }
    }
    /// Tokens that all turns together may sample; by default as many as possible.
    #[must_use]
    pub fn max_tokens(mut self, value: u64) -> Self {
        self.max_tokens = ::std::option::Option::Some(value);
        self
    }
    /// Tools that a request may offer; any number by default.
    #[must_use]
    pub fn max_tools(mut self, value: u64) -> Self {
        self.max_tools = ::std::option::Option::Some(value);
        self
    }
    /// Number of turns, 256 by default; each reply of a request is one.
    #[must_use]
    pub fn max_turns(mut self, value: u64) -> Self {
        self.max_turns = ::std::option::Option::Some(value);
        self
    }
    /// Seconds until the session expires, 3600 by default.
    #[must_use]
    pub fn seconds(mut self, value: u64) -> Self {
        self.seconds = ::std::option::Option::Some(value);
        self
    }
}
impl AgentRewardRequest {
    /// AgentRewardRequest with what it must have, and the defaults of the rest.
    pub fn new(reward: f64) -> Self {
        Self {
            reward,
            branch: ::std::default::Default::default(),
            turn_id: ::std::default::Default::default(),
        }
    }
    /// Id of the last turn of the branch to reward.
    #[must_use]
    pub fn branch(mut self, value: impl Into<::std::string::String>) -> Self {
        self.branch = ::std::option::Option::Some(value.into());
        self
    }
    /// Id of the turn to reward.
    #[must_use]
    pub fn turn_id(mut self, value: impl Into<::std::string::String>) -> Self {
        self.turn_id = ::std::option::Option::Some(value.into());
        self
    }
}
impl AgentSessionResponse {
    /// AgentSessionResponse with what it must have, and the defaults of the rest.
    pub fn new(
        agent_session_id: impl Into<::std::string::String>,
        base_model: impl Into<::std::string::String>,
        created_at: impl Into<::std::string::String>,
        expires_at: impl Into<::std::string::String>,
        limits: AgentLimits,
        state: impl Into<::std::string::String>,
        tokens: u64,
        turns: u64,
    ) -> Self {
        Self {
            agent_session_id: agent_session_id.into(),
            base_model: base_model.into(),
            created_at: created_at.into(),
            expires_at: expires_at.into(),
            limits,
            state: state.into(),
            tokens,
            turns,
            model_path: ::std::default::Default::default(),
            reward: ::std::default::Default::default(),
            sampling_session_id: ::std::default::Default::default(),
        }
    }
    /// Sampler checkpoint from which the session samples.
    #[must_use]
    pub fn model_path(mut self, value: impl Into<::std::string::String>) -> Self {
        self.model_path = ::std::option::Option::Some(value.into());
        self
    }
    /// Reward of the whole session, if one was posted.
    #[must_use]
    pub fn reward(mut self, value: f64) -> Self {
        self.reward = ::std::option::Option::Some(value);
        self
    }
    /// Sampling session whose weights are sampled.
    #[must_use]
    pub fn sampling_session_id(
        mut self,
        value: impl Into<::std::string::String>,
    ) -> Self {
        self.sampling_session_id = ::std::option::Option::Some(value.into());
        self
    }
}
impl AgentSessionsResponse {
    /// AgentSessionsResponse with what it must have, and the defaults of the rest.
    pub fn new(agent_sessions: ::std::vec::Vec<AgentSessionResponse>) -> Self {
        Self { agent_sessions }
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
    /// Id of the request in the server's log.
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
    /// What the tool does.
    #[must_use]
    pub fn description(mut self, value: impl Into<::std::string::String>) -> Self {
        self.description = ::std::option::Option::Some(value.into());
        self
    }
    /// JSON schema of the tool's arguments.
    #[must_use]
    pub fn input_schema(mut self, value: ::serde_json::Value) -> Self {
        self.input_schema = ::std::option::Option::Some(value);
        self
    }
    /// `custom` (the default); other types are refused.
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
    /// Time at which the key expires, in RFC 3339; absent if it never does.
    #[must_use]
    pub fn expires_at(mut self, value: impl Into<::std::string::String>) -> Self {
        self.expires_at = ::std::option::Option::Some(value.into());
        self
    }
    /// Time at which the key was revoked, in RFC 3339; absent unless it was.
    #[must_use]
    pub fn revoked_at(mut self, value: impl Into<::std::string::String>) -> Self {
        self.revoked_at = ::std::option::Option::Some(value.into());
        self
    }
    /// Scopes that the key is limited to: `train`, `sample`, `checkpoints` and `admin`; absent if it grants all scopes
    /// of its role.
    #[must_use]
    pub fn scopes(mut self, value: ::std::vec::Vec<::std::string::String>) -> Self {
        self.scopes = ::std::option::Option::Some(value);
        self
    }
    /// Email address of the user who owns the key; absent if the key belongs to a program of the organisation.
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
    /// Run of the checkpoint that was acted on.
    #[must_use]
    pub fn model_id(mut self, value: impl Into<::std::string::String>) -> Self {
        self.model_id = ::std::option::Option::Some(value.into());
        self
    }
    /// Path of the checkpoint that was acted on.
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
            source: ::std::default::Default::default(),
            text: ::std::default::Default::default(),
            thinking: ::std::default::Default::default(),
            tool_use_id: ::std::default::Default::default(),
        }
    }
    /// `tool_result` blocks: what the tool returned.
    #[must_use]
    pub fn content(mut self, value: AnthropicContent) -> Self {
        self.content = ::std::option::Option::Some(value);
        self
    }
    /// `tool_use` blocks: id of the call.
    #[must_use]
    pub fn id(mut self, value: impl Into<::std::string::String>) -> Self {
        self.id = ::std::option::Option::Some(value.into());
        self
    }
    /// `tool_use` blocks: arguments of the call, an object.
    #[must_use]
    pub fn input(mut self, value: ::serde_json::Value) -> Self {
        self.input = ::std::option::Option::Some(value);
        self
    }
    /// `tool_result` blocks: accepted, but ignored; the content describes the error.
    #[must_use]
    pub fn is_error(mut self, value: bool) -> Self {
        self.is_error = ::std::option::Option::Some(value);
        self
    }
    /// `tool_use` blocks: name of the tool.
    #[must_use]
    pub fn name(mut self, value: impl Into<::std::string::String>) -> Self {
        self.name = ::std::option::Option::Some(value.into());
        self
    }
    /// `image` blocks, in messages of users and results of tools: the file.
    #[must_use]
    pub fn source(mut self, value: ImageSource) -> Self {
        self.source = ::std::option::Option::Some(value);
        self
    }
    /// `text` blocks: the text.
    #[must_use]
    pub fn text(mut self, value: impl Into<::std::string::String>) -> Self {
        self.text = ::std::option::Option::Some(value.into());
        self
    }
    /// `thinking` blocks: the thoughts.
    #[must_use]
    pub fn thinking(mut self, value: impl Into<::std::string::String>) -> Self {
        self.thinking = ::std::option::Option::Some(value.into());
        self
    }
    /// `tool_result` blocks: id of the call that the result belongs to.
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
            max_queued_samples: ::std::default::Default::default(),
            max_queued_tokens: ::std::default::Default::default(),
            max_runs: ::std::default::Default::default(),
            max_sessions: ::std::default::Default::default(),
            max_storage_bytes: ::std::default::Default::default(),
            pixels_per_minute: ::std::default::Default::default(),
            tokens_per_minute: ::std::default::Default::default(),
            weight: ::std::default::Default::default(),
        }
    }
    /// Maximum size of the payloads of these training requests, in bytes.
    #[must_use]
    pub fn max_queued_bytes(mut self, value: u64) -> Self {
        self.max_queued_bytes = ::std::option::Option::Some(value);
        self
    }
    /// Maximum number of training requests that have not finished.
    #[must_use]
    pub fn max_queued_requests(mut self, value: u64) -> Self {
        self.max_queued_requests = ::std::option::Option::Some(value);
        self
    }
    /// Maximum number of samples that have not finished.
    #[must_use]
    pub fn max_queued_samples(mut self, value: u64) -> Self {
        self.max_queued_samples = ::std::option::Option::Some(value);
        self
    }
    /// Maximum number of tokens in accepted requests that have not finished; samples beyond it are answered with status
    /// 429.
    #[must_use]
    pub fn max_queued_tokens(mut self, value: u64) -> Self {
        self.max_queued_tokens = ::std::option::Option::Some(value);
        self
    }
    /// Maximum number of training runs at the same time.
    #[must_use]
    pub fn max_runs(mut self, value: u64) -> Self {
        self.max_runs = ::std::option::Option::Some(value);
        self
    }
    /// Maximum number of sessions that are open, or that ended within the retention time.
    #[must_use]
    pub fn max_sessions(mut self, value: u64) -> Self {
        self.max_sessions = ::std::option::Option::Some(value);
        self
    }
    /// Maximum size of all checkpoints, in bytes.
    #[must_use]
    pub fn max_storage_bytes(mut self, value: u64) -> Self {
        self.max_storage_bytes = ::std::option::Option::Some(value);
        self
    }
    /// Rate limit: maximum number of pixels of the images that are sent to an API server within a minute.
    #[must_use]
    pub fn pixels_per_minute(mut self, value: u64) -> Self {
        self.pixels_per_minute = ::std::option::Option::Some(value);
        self
    }
    /// Rate limit: maximum number of tokens in the requests that start within a minute.
    #[must_use]
    pub fn tokens_per_minute(mut self, value: u64) -> Self {
        self.tokens_per_minute = ::std::option::Option::Some(value);
        self
    }
    /// Share of a busy service, relative to the other organisations that have work.
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
    /// Whether to refuse the organisation's keys and tokens. Only admins of operators may change this.
    #[must_use]
    pub fn disabled(mut self, value: bool) -> Self {
        self.disabled = ::std::option::Option::Some(value);
        self
    }
    /// Name for display, of at most 200 characters.
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
    /// Whether to refuse the user's keys.
    #[must_use]
    pub fn disabled(mut self, value: bool) -> Self {
        self.disabled = ::std::option::Option::Some(value);
        self
    }
    /// Highest role of the user's keys: `admin`, `member` or `read-only`.
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
            token_ids: ::std::default::Default::default(),
        }
    }
    /// Log-probabilities of the tokens, if `logprobs` was set: without special tokens, or of each of `token_ids`.
    #[must_use]
    pub fn logprobs(mut self, value: ChatLogprobs) -> Self {
        self.logprobs = ::std::option::Option::Some(value);
        self
    }
    /// Sampled tokens with the one that ended the reply, if `return_token_ids` was set.
    #[must_use]
    pub fn token_ids(mut self, value: ::std::vec::Vec<u32>) -> Self {
        self.token_ids = ::std::option::Option::Some(value);
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
    /// Always null: refusals are part of the content.
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
    /// Accepted, but has no effect.
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
    /// The text or parts of the message.
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
    /// Name of the author.
    #[must_use]
    pub fn name(mut self, value: impl Into<::std::string::String>) -> Self {
        self.name = ::std::option::Option::Some(value.into());
        self
    }
    /// Thoughts of the assistant.
    #[must_use]
    pub fn reasoning_content(mut self, value: impl Into<::std::string::String>) -> Self {
        self.reasoning_content = ::std::option::Option::Some(value.into());
        self
    }
    /// Used as the content if `content` is absent.
    #[must_use]
    pub fn refusal(mut self, value: impl Into<::std::string::String>) -> Self {
        self.refusal = ::std::option::Option::Some(value.into());
        self
    }
    /// Id of the call that a message with the role `tool` answers.
    #[must_use]
    pub fn tool_call_id(mut self, value: impl Into<::std::string::String>) -> Self {
        self.tool_call_id = ::std::option::Option::Some(value.into());
        self
    }
    /// Calls that the assistant made.
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
    /// Text of the reply; null if it only calls tools.
    #[must_use]
    pub fn content(mut self, value: impl Into<::std::string::String>) -> Self {
        self.content = ::std::option::Option::Some(value.into());
        self
    }
    /// Thoughts that precede the answer.
    #[must_use]
    pub fn reasoning_content(mut self, value: impl Into<::std::string::String>) -> Self {
        self.reasoning_content = ::std::option::Option::Some(value.into());
        self
    }
    /// Always null: refusals are part of the content.
    #[must_use]
    pub fn refusal(mut self, value: impl Into<::std::string::String>) -> Self {
        self.refusal = ::std::option::Option::Some(value.into());
        self
    }
    /// Tools that the reply calls.
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
            return_token_ids: ::std::default::Default::default(),
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
    /// Refused: audio is not supported.
    #[must_use]
    pub fn audio(mut self, value: ::serde_json::Value) -> Self {
        self.audio = ::std::option::Option::Some(value);
        self
    }
    /// Further variables for the model's chat template.
    #[must_use]
    pub fn chat_template_kwargs(
        mut self,
        value: ::serde_json::Map<::std::string::String, ::serde_json::Value>,
    ) -> Self {
        self.chat_template_kwargs = ::std::option::Option::Some(value);
        self
    }
    /// Subtracted from a token's logit for each time that the token occurs in the completion.
    #[must_use]
    pub fn frequency_penalty(mut self, value: f64) -> Self {
        self.frequency_penalty = ::std::option::Option::Some(value);
        self
    }
    /// Refused: use `tool_choice` instead.
    #[must_use]
    pub fn function_call(mut self, value: ::serde_json::Value) -> Self {
        self.function_call = ::std::option::Option::Some(value);
        self
    }
    /// Refused: use `tools` instead.
    #[must_use]
    pub fn functions(mut self, value: ::serde_json::Value) -> Self {
        self.functions = ::std::option::Option::Some(value);
        self
    }
    /// Values between -100 and 100 that are added to the logits of tokens, by token id.
    #[must_use]
    pub fn logit_bias(
        mut self,
        value: ::std::collections::HashMap<::std::string::String, f64>,
    ) -> Self {
        self.logit_bias = ::std::option::Option::Some(value);
        self
    }
    /// Whether to return the log-probabilities of the tokens.
    #[must_use]
    pub fn logprobs(mut self, value: bool) -> Self {
        self.logprobs = ::std::option::Option::Some(value);
        self
    }
    /// Newer name of `max_tokens`.
    #[must_use]
    pub fn max_completion_tokens(mut self, value: u32) -> Self {
        self.max_completion_tokens = ::std::option::Option::Some(value);
        self
    }
    /// Maximum number of tokens to sample; by default, up to the context limit.
    #[must_use]
    pub fn max_tokens(mut self, value: u32) -> Self {
        self.max_tokens = ::std::option::Option::Some(value);
        self
    }
    /// Accepted, but has no effect.
    #[must_use]
    pub fn metadata(mut self, value: ::serde_json::Value) -> Self {
        self.metadata = ::std::option::Option::Some(value);
        self
    }
    /// Excludes tokens that are less likely than this fraction of the most likely one; 0 turns this off.
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
    /// Number of replies, 1 by default.
    #[must_use]
    pub fn n(mut self, value: u32) -> Self {
        self.n = ::std::option::Option::Some(value);
        self
    }
    /// Whether there may be several calls; false requires a `tool_choice` that requires a call, if there are tools.
    #[must_use]
    pub fn parallel_tool_calls(mut self, value: bool) -> Self {
        self.parallel_tool_calls = ::std::option::Option::Some(value);
        self
    }
    /// Refused: predicted outputs are not supported.
    #[must_use]
    pub fn prediction(mut self, value: ::serde_json::Value) -> Self {
        self.prediction = ::std::option::Option::Some(value);
        self
    }
    /// Subtracted from a token's logit if the token occurs in the completion.
    #[must_use]
    pub fn presence_penalty(mut self, value: f64) -> Self {
        self.presence_penalty = ::std::option::Option::Some(value);
        self
    }
    /// Accepted, but has no effect.
    #[must_use]
    pub fn prompt_cache_key(mut self, value: impl Into<::std::string::String>) -> Self {
        self.prompt_cache_key = ::std::option::Option::Some(value.into());
        self
    }
    /// A preset such as `low`, or a number, if the model's chat template supports it.
    #[must_use]
    pub fn reasoning_effort(mut self, value: ::serde_json::Value) -> Self {
        self.reasoning_effort = ::std::option::Option::Some(value);
        self
    }
    /// Divides positive logits, and multiplies negative ones, of tokens in the prompt or the completion; 1 turns this
    /// off.
    #[must_use]
    pub fn repetition_penalty(mut self, value: f64) -> Self {
        self.repetition_penalty = ::std::option::Option::Some(value);
        self
    }
    /// Format of a reply: `text`, `json_object` or `json_schema`. The latter two can't be combined with tools.
    #[must_use]
    pub fn response_format(mut self, value: ResponseFormat) -> Self {
        self.response_format = ::std::option::Option::Some(value);
        self
    }
    /// Whether to return the ids of the prompt's tokens and of those that were sampled, so that a trainer need not encode
    /// texts again.
    #[must_use]
    pub fn return_token_ids(mut self, value: bool) -> Self {
        self.return_token_ids = ::std::option::Option::Some(value);
        self
    }
    /// Accepted, but has no effect.
    #[must_use]
    pub fn safety_identifier(mut self, value: impl Into<::std::string::String>) -> Self {
        self.safety_identifier = ::std::option::Option::Some(value.into());
        self
    }
    /// Seed that makes sampling repeatable.
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
    /// Texts that end a reply. The one that is found is not part of the reply.
    #[must_use]
    pub fn stop(mut self, value: StopStrings) -> Self {
        self.stop = ::std::option::Option::Some(value);
        self
    }
    /// Refused if true: replies are not stored.
    #[must_use]
    pub fn store(mut self, value: bool) -> Self {
        self.store = ::std::option::Option::Some(value);
        self
    }
    /// Whether to respond with server-sent events.
    #[must_use]
    pub fn stream(mut self, value: bool) -> Self {
        self.stream = ::std::option::Option::Some(value);
        self
    }
    /// Options that apply only to streams.
    #[must_use]
    pub fn stream_options(mut self, value: StreamOptions) -> Self {
        self.stream_options = ::std::option::Option::Some(value);
        self
    }
    /// Divisor of the logits, 1 by default; 0 decodes greedily.
    #[must_use]
    pub fn temperature(mut self, value: f64) -> Self {
        self.temperature = ::std::option::Option::Some(value);
        self
    }
    /// Whether the model calls tools: `auto` (the default), `none`, `required`, or the one that it must call:
    /// `{"type": "function", "function": {"name": …}}`. The arguments of required calls follow the tool's schema.
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
    /// Samples only from this many most likely tokens; -1 and 0 turn this off.
    #[must_use]
    pub fn top_k(mut self, value: i64) -> Self {
        self.top_k = ::std::option::Option::Some(value);
        self
    }
    /// Number of candidates to return per token.
    #[must_use]
    pub fn top_logprobs(mut self, value: u32) -> Self {
        self.top_logprobs = ::std::option::Option::Some(value);
        self
    }
    /// Samples only from the smallest set of tokens whose total probability reaches this value; 1 (the default) turns
    /// this off.
    #[must_use]
    pub fn top_p(mut self, value: f64) -> Self {
        self.top_p = ::std::option::Option::Some(value);
        self
    }
    /// Accepted, but has no effect.
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
    /// Refused: web search is not supported.
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
            prompt_token_ids: ::std::default::Default::default(),
        }
    }
    /// Tokens of the rendered conversation, if `return_token_ids` was set.
    #[must_use]
    pub fn prompt_token_ids(mut self, value: ::std::vec::Vec<u32>) -> Self {
        self.prompt_token_ids = ::std::option::Option::Some(value);
        self
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
    /// Time at which it is deleted, in RFC 3339; absent if it is kept.
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
    /// Base models, one of which the checkpoint must belong to. An empty list matches nothing.
    #[must_use]
    pub fn base_models(mut self, value: ::std::vec::Vec<::std::string::String>) -> Self {
        self.base_models = ::std::option::Option::Some(value);
        self
    }
    /// Kind of the checkpoint: `training`, `sampler` or `external`.
    #[must_use]
    pub fn checkpoint_type(mut self, value: impl Into<::std::string::String>) -> Self {
        self.checkpoint_type = ::std::option::Option::Some(value.into());
        self
    }
    /// The `next_cursor` of the previous page; absent for the first page.
    #[must_use]
    pub fn cursor(mut self, value: CheckpointCursor) -> Self {
        self.cursor = ::std::option::Option::Some(value);
        self
    }
    /// Maximum number of checkpoints to return.
    #[must_use]
    pub fn limit(mut self, value: u32) -> Self {
        self.limit = ::std::option::Option::Some(value);
        self
    }
    /// Owners whose checkpoints are searched.
    #[must_use]
    pub fn owner(mut self, value: SearchOwner) -> Self {
        self.owner = ::std::option::Option::Some(value);
        self
    }
    /// Projects of the caller, one of which must contain the checkpoint.
    #[must_use]
    pub fn project_ids(mut self, value: ::std::vec::Vec<::std::string::String>) -> Self {
        self.project_ids = ::std::option::Option::Some(value);
        self
    }
    /// Entries that the checkpoint's metadata must contain.
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
    /// Position of the next page; absent on the last page.
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
    /// Position of the page in the listing.
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
    /// Version of the client.
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
            prompt_token_ids: ::std::default::Default::default(),
            token_ids: ::std::default::Default::default(),
        }
    }
    /// Why the completion ended: `stop` or `length`; null in chunks before the end.
    #[must_use]
    pub fn finish_reason(mut self, value: impl Into<::std::string::String>) -> Self {
        self.finish_reason = ::std::option::Option::Some(value.into());
        self
    }
    /// Log-probabilities of the tokens, if `logprobs` was set.
    #[must_use]
    pub fn logprobs(mut self, value: CompletionLogprobs) -> Self {
        self.logprobs = ::std::option::Option::Some(value);
        self
    }
    /// Tokens of the prompt, if `return_token_ids` was set; only in the first chunk of a completion.
    #[must_use]
    pub fn prompt_token_ids(mut self, value: ::std::vec::Vec<u32>) -> Self {
        self.prompt_token_ids = ::std::option::Option::Some(value);
        self
    }
    /// Sampled tokens with the one that ended the completion, if `return_token_ids` was set.
    #[must_use]
    pub fn token_ids(mut self, value: ::std::vec::Vec<u32>) -> Self {
        self.token_ids = ::std::option::Option::Some(value);
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
            return_token_ids: ::std::default::Default::default(),
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
    /// Refused unless equal to `n`.
    #[must_use]
    pub fn best_of(mut self, value: u32) -> Self {
        self.best_of = ::std::option::Option::Some(value);
        self
    }
    /// Whether to return the prompt before the completion.
    #[must_use]
    pub fn echo(mut self, value: bool) -> Self {
        self.echo = ::std::option::Option::Some(value);
        self
    }
    /// Subtracted from a token's logit for each time that the token occurs in the completion.
    #[must_use]
    pub fn frequency_penalty(mut self, value: f64) -> Self {
        self.frequency_penalty = ::std::option::Option::Some(value);
        self
    }
    /// Values between -100 and 100 that are added to the logits of tokens, by token id.
    #[must_use]
    pub fn logit_bias(
        mut self,
        value: ::std::collections::HashMap<::std::string::String, f64>,
    ) -> Self {
        self.logit_bias = ::std::option::Option::Some(value);
        self
    }
    /// Returns the log-probability of each token and of this many candidates for it.
    #[must_use]
    pub fn logprobs(mut self, value: u32) -> Self {
        self.logprobs = ::std::option::Option::Some(value);
        self
    }
    /// Maximum number of tokens to sample, 16 by default. 0 is allowed with `echo`.
    #[must_use]
    pub fn max_tokens(mut self, value: u32) -> Self {
        self.max_tokens = ::std::option::Option::Some(value);
        self
    }
    /// Excludes tokens that are less likely than this fraction of the most likely one; 0 turns this off.
    #[must_use]
    pub fn min_p(mut self, value: f64) -> Self {
        self.min_p = ::std::option::Option::Some(value);
        self
    }
    /// Number of completions for each prompt, 1 by default.
    #[must_use]
    pub fn n(mut self, value: u32) -> Self {
        self.n = ::std::option::Option::Some(value);
        self
    }
    /// Subtracted from a token's logit if the token occurs in the completion.
    #[must_use]
    pub fn presence_penalty(mut self, value: f64) -> Self {
        self.presence_penalty = ::std::option::Option::Some(value);
        self
    }
    /// Divides positive logits, and multiplies negative ones, of tokens in the prompt or the completion; 1 turns this
    /// off.
    #[must_use]
    pub fn repetition_penalty(mut self, value: f64) -> Self {
        self.repetition_penalty = ::std::option::Option::Some(value);
        self
    }
    /// Whether to return the ids of the prompt's tokens and of those that were sampled, so that a trainer need not encode
    /// texts again.
    #[must_use]
    pub fn return_token_ids(mut self, value: bool) -> Self {
        self.return_token_ids = ::std::option::Option::Some(value);
        self
    }
    /// Seed that makes sampling repeatable.
    #[must_use]
    pub fn seed(mut self, value: i64) -> Self {
        self.seed = ::std::option::Option::Some(value);
        self
    }
    /// Texts that end a completion. The one that is found is not part of the completion.
    #[must_use]
    pub fn stop(mut self, value: StopStrings) -> Self {
        self.stop = ::std::option::Option::Some(value);
        self
    }
    /// Whether to respond with server-sent events.
    #[must_use]
    pub fn stream(mut self, value: bool) -> Self {
        self.stream = ::std::option::Option::Some(value);
        self
    }
    /// Options that apply only to streams.
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
    /// Divisor of the logits, 1 by default; 0 decodes greedily.
    #[must_use]
    pub fn temperature(mut self, value: f64) -> Self {
        self.temperature = ::std::option::Option::Some(value);
        self
    }
    /// Samples only from this many most likely tokens; -1 and 0 turn this off.
    #[must_use]
    pub fn top_k(mut self, value: i64) -> Self {
        self.top_k = ::std::option::Option::Some(value);
        self
    }
    /// Samples only from the smallest set of tokens whose total probability reaches this value; 1 (the default) turns
    /// this off.
    #[must_use]
    pub fn top_p(mut self, value: f64) -> Self {
        self.top_p = ::std::option::Option::Some(value);
        self
    }
    /// Accepted, but has no effect.
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
    /// Numbers of tokens in the request and its completions.
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
            image_url: ::std::default::Default::default(),
            text: ::std::default::Default::default(),
        }
    }
    /// The image of the part.
    #[must_use]
    pub fn image_url(mut self, value: ImageUrl) -> Self {
        self.image_url = ::std::option::Option::Some(value);
        self
    }
    /// The text of the part.
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
    /// Project of the new session.
    #[must_use]
    pub fn destination_project_id(
        mut self,
        value: impl Into<::std::string::String>,
    ) -> Self {
        self.destination_project_id = ::std::option::Option::Some(value.into());
        self
    }
    /// Number of the run's model within the session.
    #[must_use]
    pub fn model_seq_id(mut self, value: u64) -> Self {
        self.model_seq_id = ::std::option::Option::Some(value);
        self
    }
    /// Session of the run that holds the copy.
    #[must_use]
    pub fn session_id(mut self, value: impl Into<::std::string::String>) -> Self {
        self.session_id = ::std::option::Option::Some(value.into());
        self
    }
    /// Seconds until the copy is deleted. By default it is kept, even if the source expires.
    #[must_use]
    pub fn ttl_seconds(mut self, value: u64) -> Self {
        self.ttl_seconds = ::std::option::Option::Some(value);
        self
    }
    /// A key of a tenant that may read the checkpoint. The header `x-tinker-weights-access-token` takes precedence.
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
    /// Accepted, but has no effect.
    #[must_use]
    pub fn cache_control(mut self, value: ::serde_json::Value) -> Self {
        self.cache_control = ::std::option::Option::Some(value);
        self
    }
    /// Same as `output_config` of `messages`.
    #[must_use]
    pub fn output_config(mut self, value: OutputConfig) -> Self {
        self.output_config = ::std::option::Option::Some(value);
        self
    }
    /// Same as `system` of `messages`.
    #[must_use]
    pub fn system(mut self, value: AnthropicContent) -> Self {
        self.system = ::std::option::Option::Some(value);
        self
    }
    /// Same as `thinking` of `messages`.
    #[must_use]
    pub fn thinking(mut self, value: Thinking) -> Self {
        self.thinking = ::std::option::Option::Some(value);
        self
    }
    /// Same as `tool_choice` of `messages`.
    #[must_use]
    pub fn tool_choice(mut self, value: ToolChoice) -> Self {
        self.tool_choice = ::std::option::Option::Some(value);
        self
    }
    /// Same as `tools` of `messages`.
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
impl CreateAgentSessionRequest {
    /// CreateAgentSessionRequest with what it must have, and the defaults of the rest.
    pub fn new() -> Self {
        Self {
            base_model: ::std::default::Default::default(),
            limits: ::std::default::Default::default(),
            model_path: ::std::default::Default::default(),
            sampling_session_id: ::std::default::Default::default(),
        }
    }
    /// Base model to sample from; by default, that of `model_path`.
    #[must_use]
    pub fn base_model(mut self, value: impl Into<::std::string::String>) -> Self {
        self.base_model = ::std::option::Option::Some(value.into());
        self
    }
    /// Limits of the session.
    #[must_use]
    pub fn limits(mut self, value: AgentLimits) -> Self {
        self.limits = ::std::option::Option::Some(value);
        self
    }
    /// Sampler checkpoint to sample from, `tinker://…`.
    #[must_use]
    pub fn model_path(mut self, value: impl Into<::std::string::String>) -> Self {
        self.model_path = ::std::option::Option::Some(value.into());
        self
    }
    /// Sampling session whose weights are sampled, in place of `model_path`. One of an in-flight save follows its run:
    /// replies have the run's newest weights.
    #[must_use]
    pub fn sampling_session_id(
        mut self,
        value: impl Into<::std::string::String>,
    ) -> Self {
        self.sampling_session_id = ::std::option::Option::Some(value.into());
        self
    }
}
impl CreateAgentSessionResponse {
    /// CreateAgentSessionResponse with what it must have, and the defaults of the rest.
    pub fn new(
        agent_session_id: impl Into<::std::string::String>,
        anthropic_base_url: impl Into<::std::string::String>,
        api_key: impl Into<::std::string::String>,
        base_url: impl Into<::std::string::String>,
        expires_at: impl Into<::std::string::String>,
    ) -> Self {
        Self {
            agent_session_id: agent_session_id.into(),
            anthropic_base_url: anthropic_base_url.into(),
            api_key: api_key.into(),
            base_url: base_url.into(),
            expires_at: expires_at.into(),
        }
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
    /// Seconds from now until the key expires; it never does by default.
    #[must_use]
    pub fn expires_in_seconds(mut self, value: u32) -> Self {
        self.expires_in_seconds = ::std::option::Option::Some(value);
        self
    }
    /// Note for display; empty by default.
    #[must_use]
    pub fn note(mut self, value: impl Into<::std::string::String>) -> Self {
        self.note = ::std::option::Option::Some(value.into());
        self
    }
    /// Highest role: `admin`, `member` or `read-only`; by default its user's, or `member`.
    #[must_use]
    pub fn role(mut self, value: impl Into<::std::string::String>) -> Self {
        self.role = ::std::option::Option::Some(value.into());
        self
    }
    /// Limits the key to these scopes: `train`, `sample`, `checkpoints` or `admin`; all scopes of its role by default.
    #[must_use]
    pub fn scopes(mut self, value: ::std::vec::Vec<::std::string::String>) -> Self {
        self.scopes = ::std::option::Option::Some(value);
        self
    }
    /// Email address of the user who owns the key; absent for a key of one of the organisation's programs.
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
    /// The adapter to train; without one, all parameters are trained.
    #[must_use]
    pub fn lora_config(mut self, value: LoraConfig) -> Self {
        self.lora_config = ::std::option::Option::Some(value);
        self
    }
    /// Optimizer family of the run.
    #[must_use]
    pub fn optimizer_config(mut self, value: OptimizerConfig) -> Self {
        self.optimizer_config = ::std::option::Option::Some(value);
        self
    }
    /// Metadata to store with the run.
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
    /// Makes it an operator, whose admins manage all organisations.
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
    /// Name for display; empty by default.
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
    /// Base model to sample from.
    #[must_use]
    pub fn base_model(mut self, value: impl Into<::std::string::String>) -> Self {
        self.base_model = ::std::option::Option::Some(value.into());
        self
    }
    /// Path of a sampler checkpoint to sample from.
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
    /// Name for display; any text.
    #[must_use]
    pub fn display_name(mut self, value: impl Into<::std::string::String>) -> Self {
        self.display_name = ::std::option::Option::Some(value.into());
        self
    }
    /// Id of the project that the session belongs to.
    #[must_use]
    pub fn project_id(mut self, value: impl Into<::std::string::String>) -> Self {
        self.project_id = ::std::option::Option::Some(value.into());
        self
    }
    /// Version of the client.
    #[must_use]
    pub fn sdk_version(mut self, value: impl Into<::std::string::String>) -> Self {
        self.sdk_version = ::std::option::Option::Some(value.into());
        self
    }
    /// Labels for the session.
    #[must_use]
    pub fn tags(mut self, value: ::std::vec::Vec<::std::string::String>) -> Self {
        self.tags = value;
        self
    }
    /// Metadata to store with the session.
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
    /// Name for display; empty by default.
    #[must_use]
    pub fn name(mut self, value: impl Into<::std::string::String>) -> Self {
        self.name = ::std::option::Option::Some(value.into());
        self
    }
    /// Highest role of the user's keys: `admin`, `member` (the default) or `read-only`.
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
    /// Inputs of the loss function, by name.
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
    /// Id of the HTTP request, the same as in the header `x-request-id`.
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
    /// Details for display; any text.
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
    /// Number of the clone: `seq_id` divided by 10^9.
    #[must_use]
    pub fn cloned_sampler_id(mut self, value: u64) -> Self {
        self.cloned_sampler_id = ::std::option::Option::Some(value);
        self
    }
    /// Always the text `sampling_session`.
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
    /// Rank of the adapter.
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
impl ImageDimensions {
    /// ImageDimensions with what it must have, and the defaults of the rest.
    pub fn new(height: u32, width: u32) -> Self {
        Self { height, width }
    }
}
impl ImageSource {
    /// ImageSource with what it must have, and the defaults of the rest.
    pub fn new(type_: impl Into<::std::string::String>) -> Self {
        Self {
            type_: type_.into(),
            data: ::std::default::Default::default(),
            media_type: ::std::default::Default::default(),
        }
    }
    /// The file, in base64.
    #[must_use]
    pub fn data(mut self, value: impl Into<::std::string::String>) -> Self {
        self.data = ::std::option::Option::Some(value.into());
        self
    }
    /// Format of the file: `image/png` or `image/jpeg`.
    #[must_use]
    pub fn media_type(mut self, value: impl Into<::std::string::String>) -> Self {
        self.media_type = ::std::option::Option::Some(value.into());
        self
    }
}
impl ImageUrl {
    /// ImageUrl with what it must have, and the defaults of the rest.
    pub fn new(url: impl Into<::std::string::String>) -> Self {
        Self {
            url: url.into(),
            detail: ::std::default::Default::default(),
        }
    }
    /// Refused unless it is `auto` or `high`: the model sets the size.
    #[must_use]
    pub fn detail(mut self, value: impl Into<::std::string::String>) -> Self {
        self.detail = ::std::option::Option::Some(value.into());
        self
    }
}
impl IncompleteDetails {
    /// IncompleteDetails with what it must have, and the defaults of the rest.
    pub fn new(reason: impl Into<::std::string::String>) -> Self {
        Self { reason: reason.into() }
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
    /// Path of the console; absent if it is not served.
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
            data: ::std::default::Default::default(),
            expected_tokens: ::std::default::Default::default(),
            format: ::std::default::Default::default(),
            override_dimensions: ::std::default::Default::default(),
            tokens: ::std::default::Default::default(),
            type_: ::std::default::Default::default(),
        }
    }
    /// File of an `image`, in base64.
    #[must_use]
    pub fn data(mut self, value: impl Into<::std::string::String>) -> Self {
        self.data = ::std::option::Option::Some(value.into());
        self
    }
    /// Number of tokens that the client expects the image to take; any other number is refused.
    #[must_use]
    pub fn expected_tokens(mut self, value: i64) -> Self {
        self.expected_tokens = ::std::option::Option::Some(value);
        self
    }
    /// Format of the file: `png` or `jpeg`.
    #[must_use]
    pub fn format(mut self, value: impl Into<::std::string::String>) -> Self {
        self.format = ::std::option::Option::Some(value.into());
        self
    }
    /// Size from which tokens are counted, and to which the image is resized, instead of the file's.
    #[must_use]
    pub fn override_dimensions(mut self, value: ImageDimensions) -> Self {
        self.override_dimensions = ::std::option::Option::Some(value);
        self
    }
    /// Token ids, for `encoded_text`.
    #[must_use]
    pub fn tokens(mut self, value: ::std::vec::Vec<i64>) -> Self {
        self.tokens = ::std::option::Option::Some(value);
        self
    }
    /// `encoded_text` (the default) or `image`; `image_asset_pointer` and `dmel` are refused.
    #[must_use]
    pub fn type_(mut self, value: impl Into<::std::string::String>) -> Self {
        self.type_ = ::std::option::Option::Some(value.into());
        self
    }
}
impl ::std::convert::From<&str> for InputContent {
    fn from(value: &str) -> Self {
        Self::String(value.into())
    }
}
impl ::std::convert::From<::std::string::String> for InputContent {
    fn from(value: ::std::string::String) -> Self {
        Self::String(value.into())
    }
}
impl InputItem {
    /// InputItem with what it must have, and the defaults of the rest.
    pub fn new() -> Self {
        Self {
            arguments: ::std::default::Default::default(),
            call_id: ::std::default::Default::default(),
            content: ::std::default::Default::default(),
            name: ::std::default::Default::default(),
            output: ::std::default::Default::default(),
            role: ::std::default::Default::default(),
            type_: ::std::default::Default::default(),
        }
    }
    /// Calls: the arguments, a JSON object as text.
    #[must_use]
    pub fn arguments(mut self, value: impl Into<::std::string::String>) -> Self {
        self.arguments = ::std::option::Option::Some(value.into());
        self
    }
    /// Calls and their outputs: the id of the call.
    #[must_use]
    pub fn call_id(mut self, value: impl Into<::std::string::String>) -> Self {
        self.call_id = ::std::option::Option::Some(value.into());
        self
    }
    /// Messages: their text or parts. `reasoning`: the thoughts, as parts of the type `reasoning_text`.
    #[must_use]
    pub fn content(mut self, value: InputContent) -> Self {
        self.content = ::std::option::Option::Some(value);
        self
    }
    /// Calls: the name of the function.
    #[must_use]
    pub fn name(mut self, value: impl Into<::std::string::String>) -> Self {
        self.name = ::std::option::Option::Some(value.into());
        self
    }
    /// Outputs of calls: what the function returned.
    #[must_use]
    pub fn output(mut self, value: InputContent) -> Self {
        self.output = ::std::option::Option::Some(value);
        self
    }
    /// Messages: the author, which is `system`, `developer`, `user` or `assistant`.
    #[must_use]
    pub fn role(mut self, value: impl Into<::std::string::String>) -> Self {
        self.role = ::std::option::Option::Some(value.into());
        self
    }
    /// Type of the item, which determines its other fields; `message` by default.
    #[must_use]
    pub fn type_(mut self, value: impl Into<::std::string::String>) -> Self {
        self.type_ = ::std::option::Option::Some(value.into());
        self
    }
}
impl InputPart {
    /// InputPart with what it must have, and the defaults of the rest.
    pub fn new(type_: impl Into<::std::string::String>) -> Self {
        Self {
            type_: type_.into(),
            detail: ::std::default::Default::default(),
            image_url: ::std::default::Default::default(),
            refusal: ::std::default::Default::default(),
            text: ::std::default::Default::default(),
        }
    }
    /// `input_image` parts: refused unless it is `auto` or `high`, because the model sets the size.
    #[must_use]
    pub fn detail(mut self, value: impl Into<::std::string::String>) -> Self {
        self.detail = ::std::option::Option::Some(value.into());
        self
    }
    /// `input_image` parts: a data URI with a PNG or JPEG file. Other URLs are refused.
    #[must_use]
    pub fn image_url(mut self, value: impl Into<::std::string::String>) -> Self {
        self.image_url = ::std::option::Option::Some(value.into());
        self
    }
    /// `refusal` parts: the text.
    #[must_use]
    pub fn refusal(mut self, value: impl Into<::std::string::String>) -> Self {
        self.refusal = ::std::option::Option::Some(value.into());
        self
    }
    /// The text of the part.
    #[must_use]
    pub fn text(mut self, value: impl Into<::std::string::String>) -> Self {
        self.text = ::std::option::Option::Some(value.into());
        self
    }
}
impl InputTokensDetails {
    /// InputTokensDetails with what it must have, and the defaults of the rest.
    pub fn new(cache_write_tokens: u64, cached_tokens: u64) -> Self {
        Self {
            cache_write_tokens,
            cached_tokens,
        }
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
    /// Value in force; absent without a limit.
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
        max_queued_samples: LimitValue,
        max_queued_tokens: LimitValue,
        max_runs: LimitValue,
        max_sessions: LimitValue,
        max_storage_bytes: LimitValue,
        pixels_per_minute: LimitValue,
        tokens_per_minute: LimitValue,
        weight: LimitValue,
    ) -> Self {
        Self {
            max_queued_bytes,
            max_queued_requests,
            max_queued_samples,
            max_queued_tokens,
            max_runs,
            max_sessions,
            max_storage_bytes,
            pixels_per_minute,
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
    /// Base model of the new run: the checkpoint's, or another name of the same weights.
    #[must_use]
    pub fn base_model(mut self, value: impl Into<::std::string::String>) -> Self {
        self.base_model = ::std::option::Option::Some(value.into());
        self
    }
    /// Id of the existing run.
    #[must_use]
    pub fn model_id(mut self, value: impl Into<::std::string::String>) -> Self {
        self.model_id = ::std::option::Option::Some(value.into());
        self
    }
    /// Number of the new run's model within the session.
    #[must_use]
    pub fn model_seq_id(mut self, value: u64) -> Self {
        self.model_seq_id = ::std::option::Option::Some(value);
        self
    }
    /// Optimizer of the new run if the state is not restored.
    #[must_use]
    pub fn optimizer_config(mut self, value: OptimizerConfig) -> Self {
        self.optimizer_config = ::std::option::Option::Some(value);
        self
    }
    /// Position in the existing run's order.
    #[must_use]
    pub fn seq_id(mut self, value: u64) -> Self {
        self.seq_id = ::std::option::Option::Some(value);
        self
    }
    /// Session of the new run.
    #[must_use]
    pub fn session_id(mut self, value: impl Into<::std::string::String>) -> Self {
        self.session_id = ::std::option::Option::Some(value.into());
        self
    }
    /// Metadata to store with the new run.
    #[must_use]
    pub fn user_metadata(
        mut self,
        value: ::serde_json::Map<::std::string::String, ::serde_json::Value>,
    ) -> Self {
        self.user_metadata = value;
        self
    }
    /// A key of a tenant that may read the checkpoint, if the caller may not.
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
    /// Seed for the initial values of the adapter; the server chooses one by default.
    #[must_use]
    pub fn seed(mut self, value: i64) -> Self {
        self.seed = ::std::option::Option::Some(value);
        self
    }
    /// Whether to adapt the attention projections.
    #[must_use]
    pub fn train_attn(mut self, value: bool) -> Self {
        self.train_attn = ::std::option::Option::Some(value);
        self
    }
    /// Whether to adapt the MLP projections.
    #[must_use]
    pub fn train_mlp(mut self, value: bool) -> Self {
        self.train_mlp = ::std::option::Option::Some(value);
        self
    }
    /// Whether to adapt the unembedding.
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
    /// Why the reply ended: `end_turn`, `max_tokens`, `stop_sequence` or `tool_use`.
    #[must_use]
    pub fn stop_reason(mut self, value: impl Into<::std::string::String>) -> Self {
        self.stop_reason = ::std::option::Option::Some(value.into());
        self
    }
    /// The stop sequence that ended the reply.
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
    /// Accepted, but ignored: prompts are always cached.
    #[must_use]
    pub fn cache_control(mut self, value: ::serde_json::Value) -> Self {
        self.cache_control = ::std::option::Option::Some(value);
        self
    }
    /// Refused: containers are not supported.
    #[must_use]
    pub fn container(mut self, value: ::serde_json::Value) -> Self {
        self.container = ::std::option::Option::Some(value);
        self
    }
    /// Refused: editing of contexts is not supported.
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
    /// Accepted, but has no effect.
    #[must_use]
    pub fn metadata(mut self, value: ::serde_json::Value) -> Self {
        self.metadata = ::std::option::Option::Some(value);
        self
    }
    /// How much effort the model spends, if its chat template supports this.
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
    /// Texts that end the reply. The one that is found is not part of the reply.
    #[must_use]
    pub fn stop_sequences(
        mut self,
        value: ::std::vec::Vec<::std::string::String>,
    ) -> Self {
        self.stop_sequences = ::std::option::Option::Some(value);
        self
    }
    /// Whether to respond with server-sent events.
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
    /// Divisor of the logits, 1 by default; 0 decodes greedily.
    #[must_use]
    pub fn temperature(mut self, value: f64) -> Self {
        self.temperature = ::std::option::Option::Some(value);
        self
    }
    /// Whether the model thinks before it answers, if its chat template supports this.
    #[must_use]
    pub fn thinking(mut self, value: Thinking) -> Self {
        self.thinking = ::std::option::Option::Some(value);
        self
    }
    /// Whether the model may call tools: `auto` (the default) or `none`.
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
    /// Samples only from this many most likely tokens; -1 and 0 turn this off.
    #[must_use]
    pub fn top_k(mut self, value: i64) -> Self {
        self.top_k = ::std::option::Option::Some(value);
        self
    }
    /// Samples only from the smallest set of tokens whose total probability reaches this value; 1 (the default) turns
    /// this off.
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
        complete_from_step: i64,
        requests: u64,
        series: ::std::vec::Vec<MetricSeries>,
        training_run_id: impl Into<::std::string::String>,
    ) -> Self {
        Self {
            complete_from_step,
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
    /// Name under which its tokenizer is published, if it differs from the model's.
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
    /// Base model of the checkpoint.
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
    /// Code of the error, such as `model_not_found` or `invalid_api_key`.
    #[must_use]
    pub fn code(mut self, value: impl Into<::std::string::String>) -> Self {
        self.code = ::std::option::Option::Some(value.into());
        self
    }
    /// Field of the request at fault.
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
    /// Hyper-parameters, if the optimizer is AdamW.
    #[must_use]
    pub fn adam_params(mut self, value: AdamParamsBody) -> Self {
        self.adam_params = ::std::option::Option::Some(value);
        self
    }
    /// Hyper-parameters of another family, of which none is supported.
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
    /// Time from which its keys and tokens are refused, in RFC 3339; absent while it is enabled.
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
    /// A preset such as `low`, or a number, if the model's chat template supports it.
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
impl OutputText {
    /// OutputText with what it must have, and the defaults of the rest.
    pub fn new(
        annotations: ::std::vec::Vec<::serde_json::Value>,
        logprobs: ::std::vec::Vec<::serde_json::Value>,
        text: impl Into<::std::string::String>,
        type_: impl Into<::std::string::String>,
    ) -> Self {
        Self {
            annotations,
            logprobs,
            text: text.into(),
            type_: type_.into(),
        }
    }
}
impl OutputTokensDetails {
    /// OutputTokensDetails with what it must have, and the defaults of the rest.
    pub fn new(reasoning_tokens: u64) -> Self {
        Self { reasoning_tokens }
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
impl ReasoningConfig {
    /// ReasoningConfig with what it must have, and the defaults of the rest.
    pub fn new() -> Self {
        Self {
            effort: ::std::default::Default::default(),
            generate_summary: ::std::default::Default::default(),
            summary: ::std::default::Default::default(),
        }
    }
    /// A preset such as `low`, or a number, if the model's chat template supports it.
    #[must_use]
    pub fn effort(mut self, value: ::serde_json::Value) -> Self {
        self.effort = ::std::option::Option::Some(value);
        self
    }
    /// Older name of `summary`.
    #[must_use]
    pub fn generate_summary(mut self, value: impl Into<::std::string::String>) -> Self {
        self.generate_summary = ::std::option::Option::Some(value.into());
        self
    }
    /// Accepted, but has no effect: thoughts are returned as they are, without a summary.
    #[must_use]
    pub fn summary(mut self, value: impl Into<::std::string::String>) -> Self {
        self.summary = ::std::option::Option::Some(value.into());
        self
    }
}
impl ReasoningText {
    /// ReasoningText with what it must have, and the defaults of the rest.
    pub fn new(
        text: impl Into<::std::string::String>,
        type_: impl Into<::std::string::String>,
    ) -> Self {
        Self {
            text: text.into(),
            type_: type_.into(),
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
    /// The `name` and the `schema`, for the type `json_schema`.
    #[must_use]
    pub fn json_schema(mut self, value: ::serde_json::Value) -> Self {
        self.json_schema = ::std::option::Option::Some(value);
        self
    }
}
impl ::std::convert::From<&str> for ResponsesInput {
    fn from(value: &str) -> Self {
        Self::String(value.into())
    }
}
impl ::std::convert::From<::std::string::String> for ResponsesInput {
    fn from(value: ::std::string::String) -> Self {
        Self::String(value.into())
    }
}
impl ResponsesRequest {
    /// ResponsesRequest with what it must have, and the defaults of the rest.
    pub fn new(input: ResponsesInput, model: impl Into<::std::string::String>) -> Self {
        Self {
            input,
            model: model.into(),
            background: ::std::default::Default::default(),
            chat_template_kwargs: ::std::default::Default::default(),
            context_management: ::std::default::Default::default(),
            conversation: ::std::default::Default::default(),
            include: ::std::default::Default::default(),
            instructions: ::std::default::Default::default(),
            max_output_tokens: ::std::default::Default::default(),
            max_tool_calls: ::std::default::Default::default(),
            metadata: ::std::default::Default::default(),
            moderation: ::std::default::Default::default(),
            parallel_tool_calls: ::std::default::Default::default(),
            previous_response_id: ::std::default::Default::default(),
            prompt: ::std::default::Default::default(),
            prompt_cache_key: ::std::default::Default::default(),
            prompt_cache_options: ::std::default::Default::default(),
            prompt_cache_retention: ::std::default::Default::default(),
            reasoning: ::std::default::Default::default(),
            return_token_ids: ::std::default::Default::default(),
            safety_identifier: ::std::default::Default::default(),
            seed: ::std::default::Default::default(),
            service_tier: ::std::default::Default::default(),
            store: ::std::default::Default::default(),
            stream: ::std::default::Default::default(),
            stream_options: ::std::default::Default::default(),
            temperature: ::std::default::Default::default(),
            text: ::std::default::Default::default(),
            tool_choice: ::std::default::Default::default(),
            tools: ::std::default::Default::default(),
            top_k: ::std::default::Default::default(),
            top_logprobs: ::std::default::Default::default(),
            top_p: ::std::default::Default::default(),
            truncation: ::std::default::Default::default(),
            user: ::std::default::Default::default(),
        }
    }
    /// Refused if true: background responses are not supported.
    #[must_use]
    pub fn background(mut self, value: bool) -> Self {
        self.background = ::std::option::Option::Some(value);
        self
    }
    /// Further variables for the model's chat template. An extension of the API.
    #[must_use]
    pub fn chat_template_kwargs(
        mut self,
        value: ::serde_json::Map<::std::string::String, ::serde_json::Value>,
    ) -> Self {
        self.chat_template_kwargs = ::std::option::Option::Some(value);
        self
    }
    /// Refused: the server does not shorten conversations.
    #[must_use]
    pub fn context_management(mut self, value: ::serde_json::Value) -> Self {
        self.context_management = ::std::option::Option::Some(value);
        self
    }
    /// Refused, because conversations are not stored: send the whole conversation.
    #[must_use]
    pub fn conversation(mut self, value: ::serde_json::Value) -> Self {
        self.conversation = ::std::option::Option::Some(value);
        self
    }
    /// Additions to the response. `reasoning.encrypted_content` has no effect, because thoughts are returned in the clear;
    /// others are refused.
    #[must_use]
    pub fn include(mut self, value: ::std::vec::Vec<::std::string::String>) -> Self {
        self.include = ::std::option::Option::Some(value);
        self
    }
    /// A system message before the conversation.
    #[must_use]
    pub fn instructions(mut self, value: impl Into<::std::string::String>) -> Self {
        self.instructions = ::std::option::Option::Some(value.into());
        self
    }
    /// Maximum number of tokens to sample; by default, up to the context limit.
    #[must_use]
    pub fn max_output_tokens(mut self, value: u32) -> Self {
        self.max_output_tokens = ::std::option::Option::Some(value);
        self
    }
    /// Accepted, but has no effect: it counts calls of tools that the server runs.
    #[must_use]
    pub fn max_tool_calls(mut self, value: u32) -> Self {
        self.max_tool_calls = ::std::option::Option::Some(value);
        self
    }
    /// Repeated in the response; it has no other effect.
    #[must_use]
    pub fn metadata(
        mut self,
        value: ::serde_json::Map<::std::string::String, ::serde_json::Value>,
    ) -> Self {
        self.metadata = ::std::option::Option::Some(value);
        self
    }
    /// Refused: replies are not moderated.
    #[must_use]
    pub fn moderation(mut self, value: ::serde_json::Value) -> Self {
        self.moderation = ::std::option::Option::Some(value);
        self
    }
    /// Whether there may be several calls; false requires a `tool_choice` that requires a call, if there are tools.
    #[must_use]
    pub fn parallel_tool_calls(mut self, value: bool) -> Self {
        self.parallel_tool_calls = ::std::option::Option::Some(value);
        self
    }
    /// Refused, because responses are not stored: send the whole conversation.
    #[must_use]
    pub fn previous_response_id(
        mut self,
        value: impl Into<::std::string::String>,
    ) -> Self {
        self.previous_response_id = ::std::option::Option::Some(value.into());
        self
    }
    /// Refused: prompts are not stored.
    #[must_use]
    pub fn prompt(mut self, value: ::serde_json::Value) -> Self {
        self.prompt = ::std::option::Option::Some(value);
        self
    }
    /// Accepted, but has no effect.
    #[must_use]
    pub fn prompt_cache_key(mut self, value: impl Into<::std::string::String>) -> Self {
        self.prompt_cache_key = ::std::option::Option::Some(value.into());
        self
    }
    /// Accepted, but has no effect: prompts are always cached.
    #[must_use]
    pub fn prompt_cache_options(mut self, value: ::serde_json::Value) -> Self {
        self.prompt_cache_options = ::std::option::Option::Some(value);
        self
    }
    /// Accepted, but has no effect: prompts are always cached.
    #[must_use]
    pub fn prompt_cache_retention(
        mut self,
        value: impl Into<::std::string::String>,
    ) -> Self {
        self.prompt_cache_retention = ::std::option::Option::Some(value.into());
        self
    }
    /// How the model thinks before it answers.
    #[must_use]
    pub fn reasoning(mut self, value: ReasoningConfig) -> Self {
        self.reasoning = ::std::option::Option::Some(value);
        self
    }
    /// Whether to return the ids of the prompt's tokens and of those that were sampled, so that a trainer need not encode
    /// texts again. An extension of the API.
    #[must_use]
    pub fn return_token_ids(mut self, value: bool) -> Self {
        self.return_token_ids = ::std::option::Option::Some(value);
        self
    }
    /// Accepted, but has no effect.
    #[must_use]
    pub fn safety_identifier(mut self, value: impl Into<::std::string::String>) -> Self {
        self.safety_identifier = ::std::option::Option::Some(value.into());
        self
    }
    /// Seed that makes sampling repeatable. An extension of the API.
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
    /// Accepted with any value: responses are not stored. Agent sessions record turns in any case.
    #[must_use]
    pub fn store(mut self, value: bool) -> Self {
        self.store = ::std::option::Option::Some(value);
        self
    }
    /// Whether to respond with server-sent events.
    #[must_use]
    pub fn stream(mut self, value: bool) -> Self {
        self.stream = ::std::option::Option::Some(value);
        self
    }
    /// Options that apply only to streams.
    #[must_use]
    pub fn stream_options(mut self, value: ResponsesStreamOptions) -> Self {
        self.stream_options = ::std::option::Option::Some(value);
        self
    }
    /// Divisor of the logits, 1 by default; 0 decodes greedily.
    #[must_use]
    pub fn temperature(mut self, value: f64) -> Self {
        self.temperature = ::std::option::Option::Some(value);
        self
    }
    /// Form of the reply's text.
    #[must_use]
    pub fn text(mut self, value: TextConfig) -> Self {
        self.text = ::std::option::Option::Some(value);
        self
    }
    /// Whether the model calls tools: `auto` (the default), `none`, `required`, or the one that it must call:
    /// `{"type": "function", "name": …}`. The arguments of required calls follow the tool's schema.
    #[must_use]
    pub fn tool_choice(mut self, value: ::serde_json::Value) -> Self {
        self.tool_choice = ::std::option::Option::Some(value);
        self
    }
    /// Functions that the model may call: `{"type": "function", "name": …, "parameters": …}`. Other types are refused.
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
    /// Samples only from this many most likely tokens; -1 and 0 turn this off. An extension of the API.
    #[must_use]
    pub fn top_k(mut self, value: i64) -> Self {
        self.top_k = ::std::option::Option::Some(value);
        self
    }
    /// Refused unless it is 0: responses have no log-probabilities.
    #[must_use]
    pub fn top_logprobs(mut self, value: u32) -> Self {
        self.top_logprobs = ::std::option::Option::Some(value);
        self
    }
    /// Samples only from the smallest set of tokens whose total probability reaches this value; 1 (the default) turns
    /// this off.
    #[must_use]
    pub fn top_p(mut self, value: f64) -> Self {
        self.top_p = ::std::option::Option::Some(value);
        self
    }
    /// Refused unless it is `disabled`: the server does not shorten conversations.
    #[must_use]
    pub fn truncation(mut self, value: impl Into<::std::string::String>) -> Self {
        self.truncation = ::std::option::Option::Some(value.into());
        self
    }
    /// Accepted, but has no effect.
    #[must_use]
    pub fn user(mut self, value: impl Into<::std::string::String>) -> Self {
        self.user = ::std::option::Option::Some(value.into());
        self
    }
}
impl ResponsesResponse {
    /// ResponsesResponse with what it must have, and the defaults of the rest.
    pub fn new(
        background: bool,
        created_at: i64,
        id: impl Into<::std::string::String>,
        metadata: ::serde_json::Map<::std::string::String, ::serde_json::Value>,
        model: impl Into<::std::string::String>,
        object: impl Into<::std::string::String>,
        output: ::std::vec::Vec<OutputItem>,
        parallel_tool_calls: bool,
        status: impl Into<::std::string::String>,
        store: bool,
        temperature: f64,
        text: TextConfig,
        tool_choice: ::serde_json::Value,
        tools: ::std::vec::Vec<
            ::serde_json::Map<::std::string::String, ::serde_json::Value>,
        >,
        top_p: f64,
        truncation: impl Into<::std::string::String>,
    ) -> Self {
        Self {
            background,
            created_at,
            id: id.into(),
            metadata,
            model: model.into(),
            object: object.into(),
            output,
            parallel_tool_calls,
            status: status.into(),
            store,
            temperature,
            text,
            tool_choice,
            tools,
            top_p,
            truncation: truncation.into(),
            error: ::std::default::Default::default(),
            incomplete_details: ::std::default::Default::default(),
            instructions: ::std::default::Default::default(),
            max_output_tokens: ::std::default::Default::default(),
            previous_response_id: ::std::default::Default::default(),
            prompt_token_ids: ::std::default::Default::default(),
            token_ids: ::std::default::Default::default(),
            usage: ::std::default::Default::default(),
        }
    }
    /// Always null: failed requests have the status of their error.
    #[must_use]
    pub fn error(mut self, value: ::serde_json::Value) -> Self {
        self.error = ::std::option::Option::Some(value);
        self
    }
    /// Why the reply is incomplete.
    #[must_use]
    pub fn incomplete_details(mut self, value: IncompleteDetails) -> Self {
        self.incomplete_details = ::std::option::Option::Some(value);
        self
    }
    /// The `instructions` of the request.
    #[must_use]
    pub fn instructions(mut self, value: impl Into<::std::string::String>) -> Self {
        self.instructions = ::std::option::Option::Some(value.into());
        self
    }
    /// The `max_output_tokens` of the request.
    #[must_use]
    pub fn max_output_tokens(mut self, value: u32) -> Self {
        self.max_output_tokens = ::std::option::Option::Some(value);
        self
    }
    /// Always null: responses are not stored.
    #[must_use]
    pub fn previous_response_id(
        mut self,
        value: impl Into<::std::string::String>,
    ) -> Self {
        self.previous_response_id = ::std::option::Option::Some(value.into());
        self
    }
    /// Tokens of the rendered conversation, if `return_token_ids` was set.
    #[must_use]
    pub fn prompt_token_ids(mut self, value: ::std::vec::Vec<u32>) -> Self {
        self.prompt_token_ids = ::std::option::Option::Some(value);
        self
    }
    /// Tokens sampled so far with the one that ended the reply, if `return_token_ids` was set.
    #[must_use]
    pub fn token_ids(mut self, value: ::std::vec::Vec<u32>) -> Self {
        self.token_ids = ::std::option::Option::Some(value);
        self
    }
    /// Numbers of tokens; null before the end of a stream.
    #[must_use]
    pub fn usage(mut self, value: ResponsesUsage) -> Self {
        self.usage = ::std::option::Option::Some(value);
        self
    }
}
impl ResponsesStreamOptions {
    /// ResponsesStreamOptions with what it must have, and the defaults of the rest.
    pub fn new() -> Self {
        Self {
            include_obfuscation: ::std::default::Default::default(),
        }
    }
    /// Accepted, but ignored: streams are not padded.
    #[must_use]
    pub fn include_obfuscation(mut self, value: bool) -> Self {
        self.include_obfuscation = ::std::option::Option::Some(value);
        self
    }
}
impl ResponsesUsage {
    /// ResponsesUsage with what it must have, and the defaults of the rest.
    pub fn new(
        input_tokens: u64,
        input_tokens_details: InputTokensDetails,
        output_tokens: u64,
        output_tokens_details: OutputTokensDetails,
        total_tokens: u64,
    ) -> Self {
        Self {
            input_tokens,
            input_tokens_details,
            output_tokens,
            output_tokens_details,
            total_tokens,
        }
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
    /// Whether the server may return only the size of the result. This server always returns the result.
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
    /// Cursor of the previous answer; 0 at first.
    #[must_use]
    pub fn prev_cursor(mut self, value: u64) -> Self {
        self.prev_cursor = ::std::option::Option::Some(value);
        self
    }
    /// Results that the server may drop: at most 16,384 ids of 64 bytes. Ids from a key with only read access are
    /// ignored.
    #[must_use]
    pub fn retrieved_request_ids(
        mut self,
        value: ::std::vec::Vec<::std::string::String>,
    ) -> Self {
        self.retrieved_request_ids = value;
        self
    }
    /// Maximum time to wait, in seconds. 0 returns at once; by default the server chooses.
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
    /// Number of completions to sample, 1 by default.
    #[must_use]
    pub fn num_samples(mut self, value: u32) -> Self {
        self.num_samples = ::std::option::Option::Some(value);
        self
    }
    /// Number of tokens to sample independently per prompt position; 0 turns this off.
    #[must_use]
    pub fn prompt_alt_tokens_k(mut self, value: u32) -> Self {
        self.prompt_alt_tokens_k = ::std::option::Option::Some(value);
        self
    }
    /// Whether to return the log-probabilities of the prompt.
    #[must_use]
    pub fn prompt_logprobs(mut self, value: bool) -> Self {
        self.prompt_logprobs = ::std::option::Option::Some(value);
        self
    }
    /// Limits the log-probabilities to the last `n` prompt positions.
    #[must_use]
    pub fn prompt_logprobs_last_n(mut self, value: u32) -> Self {
        self.prompt_logprobs_last_n = ::std::option::Option::Some(value);
        self
    }
    /// Whether to keep the log-probabilities of the sampled tokens, so that training requests can refer to them by
    /// `sequence_id`. They are deleted a day after their last use.
    #[must_use]
    pub fn record_stability_info(mut self, value: bool) -> Self {
        self.record_stability_info = ::std::option::Option::Some(value);
        self
    }
    /// How tokens are sampled and when a completion ends.
    #[must_use]
    pub fn sampling_params(mut self, value: SamplingParams) -> Self {
        self.sampling_params = ::std::option::Option::Some(value);
        self
    }
    /// Token ids to score, `int64` in the shape `[len(prompt) - 1, K]`; -1 skips a cell.
    #[must_use]
    pub fn target_prompt_logprobs(mut self, value: TensorData) -> Self {
        self.target_prompt_logprobs = ::std::option::Option::Some(value);
        self
    }
    /// Number of candidates to return per prompt position; 0 turns this off.
    #[must_use]
    pub fn topk_prompt_logprobs(mut self, value: u32) -> Self {
        self.topk_prompt_logprobs = ::std::option::Option::Some(value);
        self
    }
    /// Number of candidates to return per sampled token; 0 turns this off.
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
    /// Tokens that were sampled at every prompt position after the first.
    #[must_use]
    pub fn prompt_alt_tokens(mut self, value: PromptAltTokensResult) -> Self {
        self.prompt_alt_tokens = ::std::option::Option::Some(value);
        self
    }
    /// Log-probabilities of the prompt, one per token; null for the first one.
    #[must_use]
    pub fn prompt_logprobs(
        mut self,
        value: ::std::vec::Vec<::std::option::Option<f32>>,
    ) -> Self {
        self.prompt_logprobs = ::std::option::Option::Some(value);
        self
    }
    /// Log-probabilities of the target tokens, in the shape and layout of the request.
    #[must_use]
    pub fn target_prompt_logprobs(mut self, value: TensorData) -> Self {
        self.target_prompt_logprobs = ::std::option::Option::Some(value);
        self
    }
    /// Up to k pairs of token id and log-probability for each prompt token; null for the first one.
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
    /// Path of the checkpoint; absent for a base model and for a sampler in memory.
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
    /// Subtracted from a token's logit for each time that the token occurs in the completion.
    #[must_use]
    pub fn frequency_penalty(mut self, value: f64) -> Self {
        self.frequency_penalty = value;
        self
    }
    /// JSON schema that the completion must follow.
    #[must_use]
    pub fn json_schema(mut self, value: ::serde_json::Value) -> Self {
        self.json_schema = ::std::option::Option::Some(value);
        self
    }
    /// Values between -100 and 100 that are added to the logits of tokens, by token id.
    #[must_use]
    pub fn logit_bias(mut self, value: ::serde_json::Value) -> Self {
        self.logit_bias = ::std::option::Option::Some(value);
        self
    }
    /// Maximum number of tokens to sample; by default, up to the context limit.
    #[must_use]
    pub fn max_tokens(mut self, value: u32) -> Self {
        self.max_tokens = ::std::option::Option::Some(value);
        self
    }
    /// Excludes tokens that are less likely than this fraction of the most likely one; 0 turns this off.
    #[must_use]
    pub fn min_p(mut self, value: f64) -> Self {
        self.min_p = value;
        self
    }
    /// Subtracted from a token's logit if the token occurs in the completion.
    #[must_use]
    pub fn presence_penalty(mut self, value: f64) -> Self {
        self.presence_penalty = value;
        self
    }
    /// Divides positive logits, and multiplies negative ones, of tokens in the prompt or the completion; 1 turns this
    /// off.
    #[must_use]
    pub fn repetition_penalty(mut self, value: f64) -> Self {
        self.repetition_penalty = value;
        self
    }
    /// Seed that makes sampling repeatable.
    #[must_use]
    pub fn seed(mut self, value: i64) -> Self {
        self.seed = ::std::option::Option::Some(value);
        self
    }
    /// Stop condition: a string, strings or token ids. An empty list turns all stopping off; by default, the model's
    /// end tokens stop.
    #[must_use]
    pub fn stop(mut self, value: ::serde_json::Value) -> Self {
        self.stop = ::std::option::Option::Some(value);
        self
    }
    /// Divisor of the logits; 0 decodes greedily.
    #[must_use]
    pub fn temperature(mut self, value: f64) -> Self {
        self.temperature = value;
        self
    }
    /// Samples only from this many most likely tokens; -1 turns this off.
    #[must_use]
    pub fn top_k(mut self, value: i64) -> Self {
        self.top_k = value;
        self
    }
    /// Samples only from the smallest set of tokens whose total probability reaches this value; 1 turns this off.
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
    /// Recipients (`age1…`, at most 10) to encrypt each file to, in the age format. The names of encrypted files end in
    /// `.age`.
    #[must_use]
    pub fn age_encryption_recipients(
        mut self,
        value: ::std::vec::Vec<::std::string::String>,
    ) -> Self {
        self.age_encryption_recipients = value;
        self
    }
    /// Seconds until the checkpoint is deleted; by default it is kept.
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
    /// Whether later saves change an ephemeral sampler.
    #[must_use]
    pub fn kind(mut self, value: SamplerKind) -> Self {
        self.kind = ::std::option::Option::Some(value);
        self
    }
    /// Name of the checkpoint, without a folder.
    #[must_use]
    pub fn path(mut self, value: impl Into<::std::string::String>) -> Self {
        self.path = ::std::option::Option::Some(value.into());
        self
    }
    /// Number of the sampling session within the session.
    #[must_use]
    pub fn sampling_session_seq_id(mut self, value: u64) -> Self {
        self.sampling_session_seq_id = ::std::option::Option::Some(value);
        self
    }
    /// Seconds until a checkpoint with a name is deleted; by default it is kept.
    #[must_use]
    pub fn ttl_seconds(mut self, value: u64) -> Self {
        self.ttl_seconds = ::std::option::Option::Some(value);
        self
    }
    /// Metadata to store with a checkpoint that has a name.
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
    /// Whether to replace a checkpoint of that name.
    #[must_use]
    pub fn overwrite(mut self, value: bool) -> Self {
        self.overwrite = ::std::option::Option::Some(value);
        self
    }
    /// Seconds until the checkpoint is deleted; by default it is kept.
    #[must_use]
    pub fn ttl_seconds(mut self, value: u64) -> Self {
        self.ttl_seconds = ::std::option::Option::Some(value);
        self
    }
    /// Metadata to store with the checkpoint.
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
    /// Log-probabilities of the sampled tokens.
    #[must_use]
    pub fn logprobs(mut self, value: ::std::vec::Vec<f32>) -> Self {
        self.logprobs = ::std::option::Option::Some(value);
        self
    }
    /// Up to k pairs of token id and log-probability for each sampled token, or null.
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
    /// Type of the event; absent in streams of the OpenAI API.
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
    /// Name for display; any text.
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
    /// The `next_cursor` of the previous page; absent for the first page.
    #[must_use]
    pub fn cursor(mut self, value: SearchCursor) -> Self {
        self.cursor = ::std::option::Option::Some(value);
        self
    }
    /// Words that must all occur in the display name, in upper or lower case.
    #[must_use]
    pub fn display_name(mut self, value: impl Into<::std::string::String>) -> Self {
        self.display_name = ::std::option::Option::Some(value.into());
        self
    }
    /// Maximum number of sessions to return.
    #[must_use]
    pub fn limit(mut self, value: u32) -> Self {
        self.limit = ::std::option::Option::Some(value);
        self
    }
    /// Owners whose sessions are searched.
    #[must_use]
    pub fn owner(mut self, value: SearchOwner) -> Self {
        self.owner = ::std::option::Option::Some(value);
        self
    }
    /// Projects, one of which must contain the session.
    #[must_use]
    pub fn project_ids(mut self, value: ::std::vec::Vec<::std::string::String>) -> Self {
        self.project_ids = ::std::option::Option::Some(value);
        self
    }
    /// Id of the session.
    #[must_use]
    pub fn session_id(mut self, value: impl Into<::std::string::String>) -> Self {
        self.session_id = ::std::option::Option::Some(value.into());
        self
    }
    /// Statuses, one of which the session must have.
    #[must_use]
    pub fn statuses(mut self, value: ::std::vec::Vec<StatusQuery>) -> Self {
        self.statuses = ::std::option::Option::Some(value);
        self
    }
    /// Entries that the session's metadata must contain.
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
    /// Position of the next page; absent on the last page.
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
    /// Name for display; any text.
    #[must_use]
    pub fn display_name(mut self, value: impl Into<::std::string::String>) -> Self {
        self.display_name = ::std::option::Option::Some(value.into());
        self
    }
    /// Status of the session; absent if its heartbeats stopped.
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
    /// Project of the sessions.
    #[must_use]
    pub fn project_id(mut self, value: impl Into<::std::string::String>) -> Self {
        self.project_id = ::std::option::Option::Some(value.into());
        self
    }
    /// Email address of the user whose keys created the sessions.
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
    /// Accepted, but ignored: streams are not padded.
    #[must_use]
    pub fn include_obfuscation(mut self, value: bool) -> Self {
        self.include_obfuscation = ::std::option::Option::Some(value);
        self
    }
    /// Whether to end the stream with a chunk that contains the usage and no choices.
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
    /// Id of the run, for training requests.
    #[must_use]
    pub fn model_id(mut self, value: impl Into<::std::string::String>) -> Self {
        self.model_id = ::std::option::Option::Some(value.into());
        self
    }
    /// One id per sample, for `asample`.
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
    /// Events of the client; they are not stored.
    #[must_use]
    pub fn events(mut self, value: ::std::vec::Vec<::serde_json::Value>) -> Self {
        self.events = value;
        self
    }
    /// Platform of the client.
    #[must_use]
    pub fn platform(mut self, value: impl Into<::std::string::String>) -> Self {
        self.platform = ::std::option::Option::Some(value.into());
        self
    }
    /// Version of the client.
    #[must_use]
    pub fn sdk_version(mut self, value: impl Into<::std::string::String>) -> Self {
        self.sdk_version = ::std::option::Option::Some(value.into());
        self
    }
    /// Id of the session, or `sessionless-<uuid>`.
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
    /// Extents, outermost first; one dimension by default.
    #[must_use]
    pub fn shape(mut self, value: ::std::vec::Vec<i64>) -> Self {
        self.shape = ::std::option::Option::Some(value);
        self
    }
    /// Columns of a sparse tensor: one per element.
    #[must_use]
    pub fn sparse_col_indices(mut self, value: ::std::vec::Vec<i64>) -> Self {
        self.sparse_col_indices = ::std::option::Option::Some(value);
        self
    }
    /// Row pointers of a sparse tensor: rows + 1 entries.
    #[must_use]
    pub fn sparse_crow_indices(mut self, value: ::std::vec::Vec<i64>) -> Self {
        self.sparse_crow_indices = ::std::option::Option::Some(value);
        self
    }
}
impl TextConfig {
    /// TextConfig with what it must have, and the defaults of the rest.
    pub fn new() -> Self {
        Self {
            format: ::std::default::Default::default(),
            verbosity: ::std::default::Default::default(),
        }
    }
    /// Format of the text: `text`, `json_object` or `json_schema`.
    #[must_use]
    pub fn format(mut self, value: TextFormat) -> Self {
        self.format = ::std::option::Option::Some(value);
        self
    }
    /// Refused unless it is `medium`.
    #[must_use]
    pub fn verbosity(mut self, value: impl Into<::std::string::String>) -> Self {
        self.verbosity = ::std::option::Option::Some(value.into());
        self
    }
}
impl TextFormat {
    /// TextFormat with what it must have, and the defaults of the rest.
    pub fn new(type_: impl Into<::std::string::String>) -> Self {
        Self {
            type_: type_.into(),
            description: ::std::default::Default::default(),
            name: ::std::default::Default::default(),
            schema: ::std::default::Default::default(),
            strict: ::std::default::Default::default(),
        }
    }
    /// What the format is for; it has no effect.
    #[must_use]
    pub fn description(mut self, value: impl Into<::std::string::String>) -> Self {
        self.description = ::std::option::Option::Some(value.into());
        self
    }
    /// Name of the schema, for the type `json_schema`.
    #[must_use]
    pub fn name(mut self, value: impl Into<::std::string::String>) -> Self {
        self.name = ::std::option::Option::Some(value.into());
        self
    }
    /// The schema, for the type `json_schema`.
    #[must_use]
    pub fn schema(mut self, value: ::serde_json::Value) -> Self {
        self.schema = ::std::option::Option::Some(value);
        self
    }
    /// Accepted, but has no effect: the schema always holds.
    #[must_use]
    pub fn strict(mut self, value: bool) -> Self {
        self.strict = ::std::option::Option::Some(value);
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
    /// Budget for thoughts in tokens: at least 1024 and less than `max_tokens`. Thoughts count as output; only
    /// `max_tokens` limits them.
    #[must_use]
    pub fn budget_tokens(mut self, value: u32) -> Self {
        self.budget_tokens = ::std::option::Option::Some(value);
        self
    }
    /// Accepted, but has no effect.
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
    /// Bytes of the token's text.
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
    /// Position of the call in the reply; only in chunks of a stream.
    #[must_use]
    pub fn index(mut self, value: i64) -> Self {
        self.index = ::std::option::Option::Some(value);
        self
    }
    /// Always the text `function`.
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
    /// Whether to allow at most one call. With the type `auto`, true is refused.
    #[must_use]
    pub fn disable_parallel_tool_use(mut self, value: bool) -> Self {
        self.disable_parallel_tool_use = ::std::option::Option::Some(value);
        self
    }
    /// Name of the tool, for the type `tool`.
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
    /// Bytes of the token's text.
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
    /// The run's newest training checkpoint.
    #[must_use]
    pub fn last_checkpoint(mut self, value: Checkpoint) -> Self {
        self.last_checkpoint = ::std::option::Option::Some(value);
        self
    }
    /// The run's newest sampler checkpoint.
    #[must_use]
    pub fn last_sampler_checkpoint(mut self, value: Checkpoint) -> Self {
        self.last_sampler_checkpoint = ::std::option::Option::Some(value);
        self
    }
    /// Rank of the adapter.
    #[must_use]
    pub fn lora_rank(mut self, value: u32) -> Self {
        self.lora_rank = ::std::option::Option::Some(value);
        self
    }
    /// Continuations by workers with other numerics, oldest first; absent if there were none.
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
impl TrajectoriesResponse {
    /// TrajectoriesResponse with what it must have, and the defaults of the rest.
    pub fn new(trajectories: ::std::vec::Vec<Trajectory>) -> Self {
        Self {
            trajectories,
            next_offset: ::std::default::Default::default(),
        }
    }
    /// `offset` of the next page; absent on the last one.
    #[must_use]
    pub fn next_offset(mut self, value: u64) -> Self {
        self.next_offset = ::std::option::Option::Some(value);
        self
    }
}
impl Trajectory {
    /// Trajectory with what it must have, and the defaults of the rest.
    pub fn new(
        branch: impl Into<::std::string::String>,
        datum: DatumBody,
        truncated: bool,
        turns: ::std::vec::Vec<TrajectoryTurn>,
    ) -> Self {
        Self {
            branch: branch.into(),
            datum,
            truncated,
            turns,
            reward: ::std::default::Default::default(),
        }
    }
    /// Reward of the branch, else of the session, if one was posted.
    #[must_use]
    pub fn reward(mut self, value: f64) -> Self {
        self.reward = ::std::option::Option::Some(value);
        self
    }
}
impl TrajectoryTurn {
    /// TrajectoryTurn with what it must have, and the defaults of the rest.
    pub fn new(
        finish_reason: impl Into<::std::string::String>,
        start: u64,
        temperature: f64,
        tokens: u64,
        trained: bool,
        turn_id: impl Into<::std::string::String>,
        weights: impl Into<::std::string::String>,
    ) -> Self {
        Self {
            finish_reason: finish_reason.into(),
            start,
            temperature,
            tokens,
            trained,
            turn_id: turn_id.into(),
            weights: weights.into(),
            branch_reason: ::std::default::Default::default(),
            reward: ::std::default::Default::default(),
        }
    }
    /// Why the turn does not continue an earlier one, if the session had turns.
    #[must_use]
    pub fn branch_reason(mut self, value: impl Into<::std::string::String>) -> Self {
        self.branch_reason = ::std::option::Option::Some(value.into());
        self
    }
    /// Reward of the turn, if one was posted.
    #[must_use]
    pub fn reward(mut self, value: f64) -> Self {
        self.reward = ::std::option::Option::Some(value);
        self
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
    /// The quota or the capacity that the request waits for.
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
    /// Seconds from now until the checkpoint is deleted.
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
    /// Project of the checkpoint.
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
    /// Length of the file in bytes, if it is known.
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
    /// Project of the session.
    #[must_use]
    pub fn project_id(mut self, value: impl Into<::std::string::String>) -> Self {
        self.project_id = ::std::option::Option::Some(value.into());
        self
    }
    /// Email address of the user whose key created the session.
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
    /// Time from which the user's keys are refused, in RFC 3339; absent while the user is enabled.
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
    /// Rank of the adapter.
    #[must_use]
    pub fn lora_rank(mut self, value: u32) -> Self {
        self.lora_rank = ::std::option::Option::Some(value);
        self
    }
    /// Whether the adapter covers the attention projections.
    #[must_use]
    pub fn train_attn(mut self, value: bool) -> Self {
        self.train_attn = ::std::option::Option::Some(value);
        self
    }
    /// Whether the adapter covers the MLP projections.
    #[must_use]
    pub fn train_mlp(mut self, value: bool) -> Self {
        self.train_mlp = ::std::option::Option::Some(value);
        self
    }
    /// Whether the adapter covers the unembedding.
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
    /// Time at which the key or token of the call expires, in RFC 3339; absent if it never does.
    #[must_use]
    pub fn expires_at(mut self, value: impl Into<::std::string::String>) -> Self {
        self.expires_at = ::std::option::Option::Some(value.into());
        self
    }
    /// The key of the call, or the key that its token was issued for; absent if it is not in the store.
    #[must_use]
    pub fn key(mut self, value: WhoamiKey) -> Self {
        self.key = ::std::option::Option::Some(value);
        self
    }
    /// The user who calls; absent for a program.
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
    /// Id of the user; absent if an external issuer vouches for a user who is not in the store.
    #[must_use]
    pub fn id(mut self, value: impl Into<::std::string::String>) -> Self {
        self.id = ::std::option::Option::Some(value.into());
        self
    }
}
