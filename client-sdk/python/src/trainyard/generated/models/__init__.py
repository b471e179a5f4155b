"""Contains all the data models used in inputs/outputs"""

from .adam_params_body import AdamParamsBody
from .agent_limits import AgentLimits
from .agent_reward_request import AgentRewardRequest
from .agent_reward_response import AgentRewardResponse
from .agent_session_response import AgentSessionResponse
from .agent_sessions_response import AgentSessionsResponse
from .anthropic_error import AnthropicError
from .anthropic_error_response import AnthropicErrorResponse
from .anthropic_message import AnthropicMessage
from .anthropic_tool import AnthropicTool
from .anthropic_usage import AnthropicUsage
from .api_key import ApiKey
from .audit_entry import AuditEntry
from .audit_entry_event_details import AuditEntryEventDetails
from .audit_response import AuditResponse
from .auth_token_request import AuthTokenRequest
from .auth_token_response import AuthTokenResponse
from .block import Block
from .cancel_future_request import CancelFutureRequest
from .cancel_future_response import CancelFutureResponse
from .change_limits_request import ChangeLimitsRequest
from .change_organisation_request import ChangeOrganisationRequest
from .change_user_request import ChangeUserRequest
from .chat_choice import ChatChoice
from .chat_logprobs import ChatLogprobs
from .chat_message import ChatMessage
from .chat_reply import ChatReply
from .chat_request import ChatRequest
from .chat_request_chat_template_kwargs_type_0 import ChatRequestChatTemplateKwargsType0
from .chat_request_logit_bias_type_0 import ChatRequestLogitBiasType0
from .chat_request_tools_type_0_item import ChatRequestToolsType0Item
from .chat_response import ChatResponse
from .checkpoint import Checkpoint
from .checkpoint_cursor import CheckpointCursor
from .checkpoint_search_request import CheckpointSearchRequest
from .checkpoint_search_request_user_metadata import CheckpointSearchRequestUserMetadata
from .checkpoint_search_response import CheckpointSearchResponse
from .checkpoint_user_metadata import CheckpointUserMetadata
from .checkpoints_response import CheckpointsResponse
from .client_config_request import ClientConfigRequest
from .client_config_response import ClientConfigResponse
from .client_dynamic_config_response import ClientDynamicConfigResponse
from .completion_choice import CompletionChoice
from .completion_logprobs import CompletionLogprobs
from .completion_logprobs_top_logprobs_item_type_0 import (
    CompletionLogprobsTopLogprobsItemType0,
)
from .completion_request import CompletionRequest
from .completion_request_logit_bias_type_0 import CompletionRequestLogitBiasType0
from .completion_response import CompletionResponse
from .content_part import ContentPart
from .copy_weights_request import CopyWeightsRequest
from .copy_weights_response import CopyWeightsResponse
from .count_tokens_request import CountTokensRequest
from .count_tokens_response import CountTokensResponse
from .create_agent_session_request import CreateAgentSessionRequest
from .create_agent_session_response import CreateAgentSessionResponse
from .create_custom_loss_request import CreateCustomLossRequest
from .create_custom_loss_request_graph import CreateCustomLossRequestGraph
from .create_custom_loss_request_inputs_item import CreateCustomLossRequestInputsItem
from .create_key_request import CreateKeyRequest
from .create_key_response import CreateKeyResponse
from .create_model_request import CreateModelRequest
from .create_model_request_user_metadata import CreateModelRequestUserMetadata
from .create_organisation_request import CreateOrganisationRequest
from .create_project_request import CreateProjectRequest
from .create_sampling_session_request import CreateSamplingSessionRequest
from .create_sampling_session_response import CreateSamplingSessionResponse
from .create_session_request import CreateSessionRequest
from .create_session_request_user_metadata import CreateSessionRequestUserMetadata
from .create_session_response import CreateSessionResponse
from .create_user_request import CreateUserRequest
from .cursor import Cursor
from .datum_body import DatumBody
from .datum_body_loss_fn_inputs import DatumBodyLossFnInputs
from .error_body import ErrorBody
from .external_urls_response import ExternalUrlsResponse
from .external_urls_response_urls import ExternalUrlsResponseUrls
from .failed_response import FailedResponse
from .finish_kind import FinishKind
from .finish_reason import FinishReason
from .finish_request import FinishRequest
from .forward_backward_body import ForwardBackwardBody
from .forward_backward_input import ForwardBackwardInput
from .forward_backward_input_loss_fn_config import ForwardBackwardInputLossFnConfig
from .forward_body import ForwardBody
from .function_call import FunctionCall
from .future_completion_type_0 import FutureCompletionType0
from .future_completion_type_0_state import FutureCompletionType0State
from .future_completion_type_1 import FutureCompletionType1
from .future_completion_type_1_state import FutureCompletionType1State
from .futures_target import FuturesTarget
from .get_info_request import GetInfoRequest
from .get_info_response import GetInfoResponse
from .health_response import HealthResponse
from .heartbeat_request import HeartbeatRequest
from .heartbeat_response import HeartbeatResponse
from .hub_error import HubError
from .image_dimensions import ImageDimensions
from .image_source import ImageSource
from .image_url import ImageUrl
from .incomplete_details import IncompleteDetails
from .index_response import IndexResponse
from .input_chunk import InputChunk
from .input_item import InputItem
from .input_part import InputPart
from .input_tokens_details import InputTokensDetails
from .join_sampling_session_request import JoinSamplingSessionRequest
from .join_sampling_session_response import JoinSamplingSessionResponse
from .jwk_response import JwkResponse
from .jwks_response import JwksResponse
from .keys_response import KeysResponse
from .limit_origin import LimitOrigin
from .limit_value import LimitValue
from .limits_response import LimitsResponse
from .load_weights_request import LoadWeightsRequest
from .load_weights_request_user_metadata import LoadWeightsRequestUserMetadata
from .lora_config import LoraConfig
from .message_response import MessageResponse
from .messages_request import MessagesRequest
from .metric_series import MetricSeries
from .metrics_response import MetricsResponse
from .model_data import ModelData
from .model_entry import ModelEntry
from .model_input import ModelInput
from .models_response import ModelsResponse
from .numerics_change import NumericsChange
from .open_ai_error import OpenAiError
from .open_ai_error_response import OpenAiErrorResponse
from .optim_step_request import OptimStepRequest
from .optim_step_request_optimizer_params_type_0 import (
    OptimStepRequestOptimizerParamsType0,
)
from .optimizer_config import OptimizerConfig
from .organisation import Organisation
from .organisations_response import OrganisationsResponse
from .output_config import OutputConfig
from .output_item_type_0 import OutputItemType0
from .output_item_type_0_type import OutputItemType0Type
from .output_item_type_1 import OutputItemType1
from .output_item_type_1_type import OutputItemType1Type
from .output_item_type_2 import OutputItemType2
from .output_item_type_2_type import OutputItemType2Type
from .output_text import OutputText
from .output_tokens_details import OutputTokensDetails
from .own_key_details import OwnKeyDetails
from .own_key_organisation import OwnKeyOrganisation
from .own_key_response import OwnKeyResponse
from .own_key_user import OwnKeyUser
from .project import Project
from .projects_response import ProjectsResponse
from .prompt_alt_tokens_result import PromptAltTokensResult
from .prompt_tokens_details import PromptTokensDetails
from .ready_response import ReadyResponse
from .ready_response_checks import ReadyResponseChecks
from .reasoning_config import ReasoningConfig
from .reasoning_text import ReasoningText
from .reply_block_type_0 import ReplyBlockType0
from .reply_block_type_0_type import ReplyBlockType0Type
from .reply_block_type_1 import ReplyBlockType1
from .reply_block_type_1_type import ReplyBlockType1Type
from .reply_block_type_2 import ReplyBlockType2
from .reply_block_type_2_type import ReplyBlockType2Type
from .response_format import ResponseFormat
from .responses_request import ResponsesRequest
from .responses_request_chat_template_kwargs_type_0 import (
    ResponsesRequestChatTemplateKwargsType0,
)
from .responses_request_metadata_type_0 import ResponsesRequestMetadataType0
from .responses_request_tools_type_0_item import ResponsesRequestToolsType0Item
from .responses_response import ResponsesResponse
from .responses_response_metadata import ResponsesResponseMetadata
from .responses_response_tools_item import ResponsesResponseToolsItem
from .responses_stream_options import ResponsesStreamOptions
from .responses_usage import ResponsesUsage
from .retrieve_future_request import RetrieveFutureRequest
from .retrieve_future_response_type_4 import RetrieveFutureResponseType4
from .retrieve_futures_request import RetrieveFuturesRequest
from .retrieve_futures_response import RetrieveFuturesResponse
from .rotate_signing_response import RotateSigningResponse
from .sample_request import SampleRequest
from .sample_result import SampleResult
from .sampler_kind import SamplerKind
from .sampler_response import SamplerResponse
from .sampling_params import SamplingParams
from .save_weights_external_request import SaveWeightsExternalRequest
from .save_weights_for_sampler_request import SaveWeightsForSamplerRequest
from .save_weights_for_sampler_request_user_metadata import (
    SaveWeightsForSamplerRequestUserMetadata,
)
from .save_weights_request import SaveWeightsRequest
from .save_weights_request_user_metadata import SaveWeightsRequestUserMetadata
from .search_cursor import SearchCursor
from .search_owner_type_0 import SearchOwnerType0
from .search_owner_type_0_type import SearchOwnerType0Type
from .search_owner_type_1 import SearchOwnerType1
from .search_owner_type_1_type import SearchOwnerType1Type
from .search_owner_type_2 import SearchOwnerType2
from .search_owner_type_2_type import SearchOwnerType2Type
from .sequence_result import SequenceResult
from .server_capabilities import ServerCapabilities
from .server_sent_event import ServerSentEvent
from .session_project_request import SessionProjectRequest
from .session_response import SessionResponse
from .session_response_user_metadata import SessionResponseUserMetadata
from .session_search_request import SessionSearchRequest
from .session_search_request_user_metadata import SessionSearchRequestUserMetadata
from .session_search_response import SessionSearchResponse
from .session_summary import SessionSummary
from .session_summary_user_metadata import SessionSummaryUserMetadata
from .sessions_response import SessionsResponse
from .status_query_type_0 import StatusQueryType0
from .status_query_type_0_type import StatusQueryType0Type
from .status_query_type_1 import StatusQueryType1
from .status_query_type_1_type import StatusQueryType1Type
from .status_query_type_2 import StatusQueryType2
from .status_query_type_2_type import StatusQueryType2Type
from .status_query_type_3 import StatusQueryType3
from .status_query_type_3_type import StatusQueryType3Type
from .status_summary_type_0 import StatusSummaryType0
from .status_summary_type_0_type import StatusSummaryType0Type
from .status_summary_type_1 import StatusSummaryType1
from .status_summary_type_1_type import StatusSummaryType1Type
from .storage_in_use import StorageInUse
from .storage_response import StorageResponse
from .stream_options import StreamOptions
from .submit_response import SubmitResponse
from .supported_model import SupportedModel
from .telemetry_request import TelemetryRequest
from .telemetry_response import TelemetryResponse
from .tensor_data import TensorData
from .tensor_dtype import TensorDtype
from .text_config import TextConfig
from .text_format import TextFormat
from .thinking import Thinking
from .token_logprob import TokenLogprob
from .tool_call import ToolCall
from .tool_choice import ToolChoice
from .top_logprob import TopLogprob
from .trace_export_response import TraceExportResponse
from .training_result import TrainingResult
from .training_result_loss_fn_outputs_item import TrainingResultLossFnOutputsItem
from .training_result_metrics import TrainingResultMetrics
from .training_run import TrainingRun
from .training_run_user_metadata import TrainingRunUserMetadata
from .training_runs_response import TrainingRunsResponse
from .trajectories_response import TrajectoriesResponse
from .trajectory import Trajectory
from .trajectory_turn import TrajectoryTurn
from .try_again_response import TryAgainResponse
from .ttl_request import TtlRequest
from .upload_finish_request import UploadFinishRequest
from .upload_finish_response import UploadFinishResponse
from .upload_start_request import UploadStartRequest
from .upload_start_response import UploadStartResponse
from .upload_start_response_urls import UploadStartResponseUrls
from .uploaded_file_response import UploadedFileResponse
from .usage import Usage
from .usage_event import UsageEvent
from .usage_info_type_0 import UsageInfoType0
from .usage_info_type_0_type import UsageInfoType0Type
from .usage_info_type_1 import UsageInfoType1
from .usage_info_type_1_type import UsageInfoType1Type
from .usage_info_type_2 import UsageInfoType2
from .usage_info_type_2_type import UsageInfoType2Type
from .usage_info_type_3 import UsageInfoType3
from .usage_info_type_3_type import UsageInfoType3Type
from .usage_info_type_4 import UsageInfoType4
from .usage_info_type_4_type import UsageInfoType4Type
from .usage_response import UsageResponse
from .usage_response_sessions import UsageResponseSessions
from .usage_session import UsageSession
from .usage_session_user_metadata import UsageSessionUserMetadata
from .user import User
from .users_response import UsersResponse
from .weights_info_request import WeightsInfoRequest
from .weights_info_response import WeightsInfoResponse
from .whoami_credential import WhoamiCredential
from .whoami_key import WhoamiKey
from .whoami_response import WhoamiResponse
from .whoami_user import WhoamiUser

__all__ = (
    "AdamParamsBody",
    "AgentLimits",
    "AgentRewardRequest",
    "AgentRewardResponse",
    "AgentSessionResponse",
    "AgentSessionsResponse",
    "AnthropicError",
    "AnthropicErrorResponse",
    "AnthropicMessage",
    "AnthropicTool",
    "AnthropicUsage",
    "ApiKey",
    "AuditEntry",
    "AuditEntryEventDetails",
    "AuditResponse",
    "AuthTokenRequest",
    "AuthTokenResponse",
    "Block",
    "CancelFutureRequest",
    "CancelFutureResponse",
    "ChangeLimitsRequest",
    "ChangeOrganisationRequest",
    "ChangeUserRequest",
    "ChatChoice",
    "ChatLogprobs",
    "ChatMessage",
    "ChatReply",
    "ChatRequest",
    "ChatRequestChatTemplateKwargsType0",
    "ChatRequestLogitBiasType0",
    "ChatRequestToolsType0Item",
    "ChatResponse",
    "Checkpoint",
    "CheckpointCursor",
    "CheckpointSearchRequest",
    "CheckpointSearchRequestUserMetadata",
    "CheckpointSearchResponse",
    "CheckpointUserMetadata",
    "CheckpointsResponse",
    "ClientConfigRequest",
    "ClientConfigResponse",
    "ClientDynamicConfigResponse",
    "CompletionChoice",
    "CompletionLogprobs",
    "CompletionLogprobsTopLogprobsItemType0",
    "CompletionRequest",
    "CompletionRequestLogitBiasType0",
    "CompletionResponse",
    "ContentPart",
    "CopyWeightsRequest",
    "CopyWeightsResponse",
    "CountTokensRequest",
    "CountTokensResponse",
    "CreateAgentSessionRequest",
    "CreateAgentSessionResponse",
    "CreateCustomLossRequest",
    "CreateCustomLossRequestGraph",
    "CreateCustomLossRequestInputsItem",
    "CreateKeyRequest",
    "CreateKeyResponse",
    "CreateModelRequest",
    "CreateModelRequestUserMetadata",
    "CreateOrganisationRequest",
    "CreateProjectRequest",
    "CreateSamplingSessionRequest",
    "CreateSamplingSessionResponse",
    "CreateSessionRequest",
    "CreateSessionRequestUserMetadata",
    "CreateSessionResponse",
    "CreateUserRequest",
    "Cursor",
    "DatumBody",
    "DatumBodyLossFnInputs",
    "ErrorBody",
    "ExternalUrlsResponse",
    "ExternalUrlsResponseUrls",
    "FailedResponse",
    "FinishKind",
    "FinishReason",
    "FinishRequest",
    "ForwardBackwardBody",
    "ForwardBackwardInput",
    "ForwardBackwardInputLossFnConfig",
    "ForwardBody",
    "FunctionCall",
    "FutureCompletionType0",
    "FutureCompletionType0State",
    "FutureCompletionType1",
    "FutureCompletionType1State",
    "FuturesTarget",
    "GetInfoRequest",
    "GetInfoResponse",
    "HealthResponse",
    "HeartbeatRequest",
    "HeartbeatResponse",
    "HubError",
    "ImageDimensions",
    "ImageSource",
    "ImageUrl",
    "IncompleteDetails",
    "IndexResponse",
    "InputChunk",
    "InputItem",
    "InputPart",
    "InputTokensDetails",
    "JoinSamplingSessionRequest",
    "JoinSamplingSessionResponse",
    "JwkResponse",
    "JwksResponse",
    "KeysResponse",
    "LimitOrigin",
    "LimitValue",
    "LimitsResponse",
    "LoadWeightsRequest",
    "LoadWeightsRequestUserMetadata",
    "LoraConfig",
    "MessageResponse",
    "MessagesRequest",
    "MetricSeries",
    "MetricsResponse",
    "ModelData",
    "ModelEntry",
    "ModelInput",
    "ModelsResponse",
    "NumericsChange",
    "OpenAiError",
    "OpenAiErrorResponse",
    "OptimStepRequest",
    "OptimStepRequestOptimizerParamsType0",
    "OptimizerConfig",
    "Organisation",
    "OrganisationsResponse",
    "OutputConfig",
    "OutputItemType0",
    "OutputItemType0Type",
    "OutputItemType1",
    "OutputItemType1Type",
    "OutputItemType2",
    "OutputItemType2Type",
    "OutputText",
    "OutputTokensDetails",
    "OwnKeyDetails",
    "OwnKeyOrganisation",
    "OwnKeyResponse",
    "OwnKeyUser",
    "Project",
    "ProjectsResponse",
    "PromptAltTokensResult",
    "PromptTokensDetails",
    "ReadyResponse",
    "ReadyResponseChecks",
    "ReasoningConfig",
    "ReasoningText",
    "ReplyBlockType0",
    "ReplyBlockType0Type",
    "ReplyBlockType1",
    "ReplyBlockType1Type",
    "ReplyBlockType2",
    "ReplyBlockType2Type",
    "ResponseFormat",
    "ResponsesRequest",
    "ResponsesRequestChatTemplateKwargsType0",
    "ResponsesRequestMetadataType0",
    "ResponsesRequestToolsType0Item",
    "ResponsesResponse",
    "ResponsesResponseMetadata",
    "ResponsesResponseToolsItem",
    "ResponsesStreamOptions",
    "ResponsesUsage",
    "RetrieveFutureRequest",
    "RetrieveFutureResponseType4",
    "RetrieveFuturesRequest",
    "RetrieveFuturesResponse",
    "RotateSigningResponse",
    "SampleRequest",
    "SampleResult",
    "SamplerKind",
    "SamplerResponse",
    "SamplingParams",
    "SaveWeightsExternalRequest",
    "SaveWeightsForSamplerRequest",
    "SaveWeightsForSamplerRequestUserMetadata",
    "SaveWeightsRequest",
    "SaveWeightsRequestUserMetadata",
    "SearchCursor",
    "SearchOwnerType0",
    "SearchOwnerType0Type",
    "SearchOwnerType1",
    "SearchOwnerType1Type",
    "SearchOwnerType2",
    "SearchOwnerType2Type",
    "SequenceResult",
    "ServerCapabilities",
    "ServerSentEvent",
    "SessionProjectRequest",
    "SessionResponse",
    "SessionResponseUserMetadata",
    "SessionSearchRequest",
    "SessionSearchRequestUserMetadata",
    "SessionSearchResponse",
    "SessionSummary",
    "SessionSummaryUserMetadata",
    "SessionsResponse",
    "StatusQueryType0",
    "StatusQueryType0Type",
    "StatusQueryType1",
    "StatusQueryType1Type",
    "StatusQueryType2",
    "StatusQueryType2Type",
    "StatusQueryType3",
    "StatusQueryType3Type",
    "StatusSummaryType0",
    "StatusSummaryType0Type",
    "StatusSummaryType1",
    "StatusSummaryType1Type",
    "StorageInUse",
    "StorageResponse",
    "StreamOptions",
    "SubmitResponse",
    "SupportedModel",
    "TelemetryRequest",
    "TelemetryResponse",
    "TensorData",
    "TensorDtype",
    "TextConfig",
    "TextFormat",
    "Thinking",
    "TokenLogprob",
    "ToolCall",
    "ToolChoice",
    "TopLogprob",
    "TraceExportResponse",
    "TrainingResult",
    "TrainingResultLossFnOutputsItem",
    "TrainingResultMetrics",
    "TrainingRun",
    "TrainingRunUserMetadata",
    "TrainingRunsResponse",
    "TrajectoriesResponse",
    "Trajectory",
    "TrajectoryTurn",
    "TryAgainResponse",
    "TtlRequest",
    "UploadFinishRequest",
    "UploadFinishResponse",
    "UploadStartRequest",
    "UploadStartResponse",
    "UploadStartResponseUrls",
    "UploadedFileResponse",
    "Usage",
    "UsageEvent",
    "UsageInfoType0",
    "UsageInfoType0Type",
    "UsageInfoType1",
    "UsageInfoType1Type",
    "UsageInfoType2",
    "UsageInfoType2Type",
    "UsageInfoType3",
    "UsageInfoType3Type",
    "UsageInfoType4",
    "UsageInfoType4Type",
    "UsageResponse",
    "UsageResponseSessions",
    "UsageSession",
    "UsageSessionUserMetadata",
    "User",
    "UsersResponse",
    "WeightsInfoRequest",
    "WeightsInfoResponse",
    "WhoamiCredential",
    "WhoamiKey",
    "WhoamiResponse",
    "WhoamiUser",
)
