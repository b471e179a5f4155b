"""The clients: synchronous and asynchronous."""

from __future__ import annotations

import weakref
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from types import TracebackType
from typing import Any, Self, TypeVar

from . import _calls as calls
from . import _events as events
from ._sending import AsyncSender, Sender
from ._session import AsyncSession, Labels, Session, logger
from ._settings import Settings
from ._version import __version__
from .errors import ProtocolError, TrainyardError
from .futures import AsyncFuture, Future
from .generated.api.client import get_server_capabilities
from .generated.api.openai import oai_chat_completions, oai_completions, oai_responses
from .generated.client import Client as Operations
from .generated.models import (
    ChatRequest,
    ChatResponse,
    CompletionRequest,
    CompletionResponse,
    FinishKind,
    LoraConfig,
    MessagesRequest,
    ResponsesRequest,
    ResponsesResponse,
    ServerCapabilities,
)
from .retry import RetryPolicy
from .sampling import AsyncSampler, Sampler
from .training import AsyncTrainingRun, TrainingRun

T = TypeVar("T")

CHAT = "/oai/api/v1/chat/completions"
COMPLETIONS = "/oai/api/v1/completions"
MESSAGES = "/anthropic/api/v1/messages"
RESPONSES = "/oai/api/v1/responses"


class Client:
    """A connection to a Trainyard server, or to another server that speaks its protocol; threads may share it.

    The address and the key are those of `TRAINYARD_BASE_URL` and `TRAINYARD_API_KEY`, or `TINKER_BASE_URL` and
    `TINKER_API_KEY`, unless they are given. Close it, or use it with `with`: that ends its session, and the service
    unloads its runs.
    """

    def __init__(
        self,
        base_url: str | None = None,
        api_key: str | None = None,
        *,
        retry: RetryPolicy | None = None,
        tags: Sequence[str] = (),
        user_metadata: Mapping[str, Any] | None = None,
        project_id: str | None = None,
    ) -> None:
        settings = Settings.of(base_url, api_key)
        self.base_url = settings.base_url
        self._sender = Sender(settings, __version__, retry or RetryPolicy())
        self._session = Session(self._sender, __version__, Labels(tags, user_metadata or {}, project_id))
        # A client that is dropped without being closed stops its heartbeats.
        weakref.finalize(self, self._session.ended.set)

    @property
    def operations(self) -> Operations:
        """Returns the client to pass to the functions of `trainyard.generated.api`, which has each operation of the
        service by its name."""
        return self._sender.operations

    @property
    def session_id(self) -> str:
        """Returns the id of this client's session, which is opened when it is first needed."""
        return self._session.id

    def capabilities(self) -> ServerCapabilities:
        """Returns the capabilities of the server, such as its models."""
        return _present(get_server_capabilities.sync(client=self.operations))

    def create_run(
        self,
        base_model: str,
        *,
        lora: LoraConfig | None = None,
        user_metadata: Mapping[str, Any] | None = None,
    ) -> TrainingRun:
        """Creates a run and returns it once it exists: an adapter of rank 32 unless `lora` is given."""
        session_id, number = self._session.id, next(self._session.runs)
        call = calls.create_run(session_id, number, base_model, lora or LoraConfig(rank=32), user_metadata or {})
        return self._run(call)

    def resume_run(self, path: str, *, base_model: str | None = None, optimizer: bool = True) -> TrainingRun:
        """Creates a run that begins with a checkpoint of `TrainingRun.save_state`, including its optimizer state."""
        call = calls.resume_run(self._session.id, next(self._session.runs), path, base_model, optimizer)
        return self._run(call)

    def _run(self, call: calls.Call[str]) -> TrainingRun:
        future = Future(self._sender, self._sender.send(call), calls.run_result)
        return TrainingRun(self._session, future.result())

    def sampler(self, base_model: str | None = None, *, path: str | None = None) -> Sampler:
        """Returns a sampler of a base model, or of a checkpoint of `TrainingRun.save_sampler`."""
        call = calls.sampling_session(self._session.id, next(self._session.samplers), base_model, path)
        return Sampler(self._session, self._sender.send(call))

    def chat(self, request: ChatRequest) -> ChatResponse:
        """Answers a conversation, rendered with the model's own chat template."""
        return _present(oai_chat_completions.sync(client=self.operations, body=request))

    def stream_chat(self, request: ChatRequest) -> Iterator[events.Event]:
        """Same as `chat`, in chunks as they are sampled."""
        return events.stream(self._sender, CHAT, request.to_dict())

    def complete(self, request: CompletionRequest) -> CompletionResponse:
        """Continues texts or tokens."""
        return _present(oai_completions.sync(client=self.operations, body=request))

    def stream_completion(self, request: CompletionRequest) -> Iterator[events.Event]:
        """Same as `complete`, in chunks as they are sampled."""
        return events.stream(self._sender, COMPLETIONS, request.to_dict())

    def respond(self, request: ResponsesRequest) -> ResponsesResponse:
        """Answers a conversation of items, rendered with the model's own chat template."""
        return _present(oai_responses.sync(client=self.operations, body=request))

    def stream_response(self, request: ResponsesRequest) -> Iterator[events.Event]:
        """Same as `respond`, in events as it is sampled."""
        return events.stream(self._sender, RESPONSES, request.to_dict())

    def stream_messages(self, request: MessagesRequest) -> Iterator[events.Event]:
        """Answers a conversation of the Anthropic API, in events as it is sampled."""
        return events.stream(self._sender, MESSAGES, request.to_dict())

    def close(self) -> None:
        """Ends the session, if there is one, and closes the connections."""
        self._close(FinishKind.SUCCESS, None)

    def _close(self, kind: FinishKind, detail: str | None) -> None:
        try:
            self._session.finish(kind, detail)
        except TrainyardError as error:
            logger.warning("failed to end the session: %s", error)
        finally:
            self._sender.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._close(*_ending(error))


class AsyncClient:
    """A connection to a Trainyard server for asyncio; use it with `async with`. Otherwise the same as `Client`."""

    def __init__(
        self,
        base_url: str | None = None,
        api_key: str | None = None,
        *,
        retry: RetryPolicy | None = None,
        tags: Sequence[str] = (),
        user_metadata: Mapping[str, Any] | None = None,
        project_id: str | None = None,
    ) -> None:
        settings = Settings.of(base_url, api_key)
        self.base_url = settings.base_url
        self._sender = AsyncSender(settings, __version__, retry or RetryPolicy())
        self._session = AsyncSession(self._sender, __version__, Labels(tags, user_metadata or {}, project_id))

    @property
    def operations(self) -> Operations:
        """Returns the client to pass to the functions of `trainyard.generated.api`, which has each operation of the
        service by its name."""
        return self._sender.operations

    async def session_id(self) -> str:
        """Returns the id of this client's session, which is opened when it is first needed."""
        return await self._session.id()

    async def capabilities(self) -> ServerCapabilities:
        """Returns the capabilities of the server, such as its models."""
        return _present(await get_server_capabilities.asyncio(client=self.operations))

    async def create_run(
        self,
        base_model: str,
        *,
        lora: LoraConfig | None = None,
        user_metadata: Mapping[str, Any] | None = None,
    ) -> AsyncTrainingRun:
        """Creates a run and returns it once it exists: an adapter of rank 32 unless `lora` is given."""
        session_id, number = await self._session.id(), next(self._session.runs)
        call = calls.create_run(session_id, number, base_model, lora or LoraConfig(rank=32), user_metadata or {})
        return await self._run(call)

    async def resume_run(self, path: str, *, base_model: str | None = None, optimizer: bool = True) -> AsyncTrainingRun:
        """Creates a run that begins with a checkpoint of `AsyncTrainingRun.save_state`, including its optimizer
        state."""
        session_id, number = await self._session.id(), next(self._session.runs)
        return await self._run(calls.resume_run(session_id, number, path, base_model, optimizer))

    async def _run(self, call: calls.Call[str]) -> AsyncTrainingRun:
        future = AsyncFuture(self._sender, await self._sender.send(call), calls.run_result)
        return AsyncTrainingRun(self._session, await future)

    async def sampler(self, base_model: str | None = None, *, path: str | None = None) -> AsyncSampler:
        """Returns a sampler of a base model, or of a checkpoint of `AsyncTrainingRun.save_sampler`."""
        session_id, number = await self._session.id(), next(self._session.samplers)
        call = calls.sampling_session(session_id, number, base_model, path)
        return AsyncSampler(self._session, await self._sender.send(call))

    async def chat(self, request: ChatRequest) -> ChatResponse:
        """Answers a conversation, rendered with the model's own chat template."""
        return _present(await oai_chat_completions.asyncio(client=self.operations, body=request))

    def stream_chat(self, request: ChatRequest) -> AsyncIterator[events.Event]:
        """Same as `chat`, in chunks as they are sampled."""
        return events.astream(self._sender, CHAT, request.to_dict())

    async def complete(self, request: CompletionRequest) -> CompletionResponse:
        """Continues texts or tokens."""
        return _present(await oai_completions.asyncio(client=self.operations, body=request))

    def stream_completion(self, request: CompletionRequest) -> AsyncIterator[events.Event]:
        """Same as `complete`, in chunks as they are sampled."""
        return events.astream(self._sender, COMPLETIONS, request.to_dict())

    async def respond(self, request: ResponsesRequest) -> ResponsesResponse:
        """Answers a conversation of items, rendered with the model's own chat template."""
        return _present(await oai_responses.asyncio(client=self.operations, body=request))

    def stream_response(self, request: ResponsesRequest) -> AsyncIterator[events.Event]:
        """Same as `respond`, in events as it is sampled."""
        return events.astream(self._sender, RESPONSES, request.to_dict())

    def stream_messages(self, request: MessagesRequest) -> AsyncIterator[events.Event]:
        """Answers a conversation of the Anthropic API, in events as it is sampled."""
        return events.astream(self._sender, MESSAGES, request.to_dict())

    async def close(self) -> None:
        """Ends the session, if there is one, and closes the connections."""
        await self._close(FinishKind.SUCCESS, None)

    async def _close(self, kind: FinishKind, detail: str | None) -> None:
        try:
            await self._session.finish(kind, detail)
        except TrainyardError as error:
            logger.warning("failed to end the session: %s", error)
        finally:
            await self._sender.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        await self._close(*_ending(error))


def _ending(error: BaseException | None) -> tuple[FinishKind, str | None]:
    """How a session ends that a `with` statement ends."""
    if error is None:
        return FinishKind.SUCCESS, None
    if isinstance(error, KeyboardInterrupt):
        return FinishKind.INTERRUPTED, None
    return FinishKind.ERRORED, f"{type(error).__name__}: {error}"[:1000]


def _present(answer: T | None) -> T:
    """The answer of a generated operation, whose refusals are exceptions here."""
    if answer is None:
        raise ProtocolError("the server answered with a status that the API description does not list")
    return answer
