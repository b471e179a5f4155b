"""Training runs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from . import _calls as calls
from ._sending import AsyncOrder, Order
from .data import Datum, OptimOutput, TrainingOutput
from .futures import AsyncFuture, Future
from .generated.models import AdamParamsBody as AdamParams

if TYPE_CHECKING:
    from ._session import AsyncSession, Session
    from .sampling import AsyncSampler, Sampler


class TrainingRun:
    """A run: an adapter, or a full set of weights, with its optimizer.

    Its requests are executed in the order of the calls. Each method returns a future at once, so that requests may be
    submitted ahead of their results. Threads may share a run.
    """

    def __init__(self, session: Session, run_id: str) -> None:
        self.id = run_id
        self._session = session
        self._order = Order(session.sender)

    def forward(
        self, data: Sequence[Datum], loss_fn: str = "cross_entropy", config: Mapping[str, float | str] | None = None
    ) -> Future[TrainingOutput]:
        """Computes a loss."""
        return self._pass(data, loss_fn, config, forward_only=True)

    def forward_backward(
        self, data: Sequence[Datum], loss_fn: str = "cross_entropy", config: Mapping[str, float | str] | None = None
    ) -> Future[TrainingOutput]:
        """Computes a loss and adds its gradient to the run's."""
        return self._pass(data, loss_fn, config, forward_only=False)

    def _pass(
        self, data: Sequence[Datum], loss_fn: str, config: Mapping[str, float | str] | None, forward_only: bool
    ) -> Future[TrainingOutput]:
        request_id = self._order.submit(
            lambda seq_id: calls.training_pass(self.id, seq_id, data, loss_fn, config or {}, forward_only)
        )
        return Future(self._session.sender, request_id, calls.training_result)

    def optim_step(self, adam: AdamParams | None = None) -> Future[OptimOutput]:
        """Applies the accumulated gradient and clears it."""
        request_id = self._order.submit(lambda seq_id: calls.optim_step(self.id, seq_id, adam or AdamParams()))
        return Future(self._session.sender, request_id, calls.optim_result)

    def save_state(self, name: str, *, overwrite: bool = False, ttl_seconds: int | None = None) -> Future[str]:
        """Saves weights and optimizer state; the result is a path for `Client.resume_run`."""
        request_id = self._order.submit(lambda seq_id: calls.save_state(self.id, seq_id, name, overwrite, ttl_seconds))
        return Future(self._session.sender, request_id, calls.path_result)

    def load_state(self, path: str, *, optimizer: bool = True) -> Future[str]:
        """Replaces the run's weights, and its optimizer state unless told otherwise, by a checkpoint's."""
        request_id = self._order.submit(lambda seq_id: calls.load_state(self.id, seq_id, path, optimizer))
        return Future(self._session.sender, request_id, calls.path_result)

    def save_sampler(self, name: str, *, ttl_seconds: int | None = None) -> Future[str]:
        """Saves a checkpoint for sampling; the result is a path for `Client.sampler`."""
        request_id = self._order.submit(lambda seq_id: calls.save_sampler(self.id, seq_id, name, ttl_seconds))
        return Future(self._session.sender, request_id, calls.path_result)

    def sampler(self) -> Sampler:
        """Samples with the weights of this moment, without a checkpoint; waits for the requests before it."""
        from .sampling import Sampler

        number = next(self._session.samplers)
        request_id = self._order.submit(lambda seq_id: calls.snapshot(self.id, seq_id, number))
        frozen = Future(self._session.sender, request_id, calls.sampler_result).result()
        return Sampler(self._session, frozen)


class AsyncTrainingRun:
    """A run: an adapter, or a full set of weights, with its optimizer.

    Its requests are executed in the order in which the methods are awaited. Each method returns a future once the
    request is accepted, so that requests may be submitted ahead of their results.
    """

    def __init__(self, session: AsyncSession, run_id: str) -> None:
        self.id = run_id
        self._session = session
        self._order = AsyncOrder(session.sender)

    async def forward(
        self, data: Sequence[Datum], loss_fn: str = "cross_entropy", config: Mapping[str, float | str] | None = None
    ) -> AsyncFuture[TrainingOutput]:
        """Computes a loss."""
        return await self._pass(data, loss_fn, config, forward_only=True)

    async def forward_backward(
        self, data: Sequence[Datum], loss_fn: str = "cross_entropy", config: Mapping[str, float | str] | None = None
    ) -> AsyncFuture[TrainingOutput]:
        """Computes a loss and adds its gradient to the run's."""
        return await self._pass(data, loss_fn, config, forward_only=False)

    async def _pass(
        self, data: Sequence[Datum], loss_fn: str, config: Mapping[str, float | str] | None, forward_only: bool
    ) -> AsyncFuture[TrainingOutput]:
        request_id = await self._order.submit(
            lambda seq_id: calls.training_pass(self.id, seq_id, data, loss_fn, config or {}, forward_only)
        )
        return AsyncFuture(self._session.sender, request_id, calls.training_result)

    async def optim_step(self, adam: AdamParams | None = None) -> AsyncFuture[OptimOutput]:
        """Applies the accumulated gradient and clears it."""
        request_id = await self._order.submit(lambda seq_id: calls.optim_step(self.id, seq_id, adam or AdamParams()))
        return AsyncFuture(self._session.sender, request_id, calls.optim_result)

    async def save_state(
        self, name: str, *, overwrite: bool = False, ttl_seconds: int | None = None
    ) -> AsyncFuture[str]:
        """Saves weights and optimizer state; the result is a path for `AsyncClient.resume_run`."""
        request_id = await self._order.submit(
            lambda seq_id: calls.save_state(self.id, seq_id, name, overwrite, ttl_seconds)
        )
        return AsyncFuture(self._session.sender, request_id, calls.path_result)

    async def load_state(self, path: str, *, optimizer: bool = True) -> AsyncFuture[str]:
        """Replaces the run's weights, and its optimizer state unless told otherwise, by a checkpoint's."""
        request_id = await self._order.submit(lambda seq_id: calls.load_state(self.id, seq_id, path, optimizer))
        return AsyncFuture(self._session.sender, request_id, calls.path_result)

    async def save_sampler(self, name: str, *, ttl_seconds: int | None = None) -> AsyncFuture[str]:
        """Saves a checkpoint for sampling; the result is a path for `AsyncClient.sampler`."""
        request_id = await self._order.submit(lambda seq_id: calls.save_sampler(self.id, seq_id, name, ttl_seconds))
        return AsyncFuture(self._session.sender, request_id, calls.path_result)

    async def sampler(self) -> AsyncSampler:
        """Samples with the weights of this moment, without a checkpoint; waits for the requests before it."""
        from .sampling import AsyncSampler

        number = next(self._session.samplers)
        request_id = await self._order.submit(lambda seq_id: calls.snapshot(self.id, seq_id, number))
        frozen = await AsyncFuture(self._session.sender, request_id, calls.sampler_result)
        return AsyncSampler(self._session, frozen)
