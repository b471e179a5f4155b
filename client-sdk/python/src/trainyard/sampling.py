"""Samplers: a base model, a checkpoint or a moment of a run."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import TYPE_CHECKING

from . import _calls as calls
from .data import SampleOutput
from .futures import AsyncFuture, Future
from .generated.models import SamplingParams
from .images import Part

if TYPE_CHECKING:
    from ._session import AsyncSession, Session


class Sampler:
    """Weights to sample from, which do not change. Threads may share a sampler."""

    def __init__(self, session: Session, sampler_id: str) -> None:
        self.id = sampler_id
        self._session = session
        self._numbers = itertools.count()

    def sample(
        self,
        prompt: Sequence[Part],
        params: SamplingParams | None = None,
        *,
        num_samples: int = 1,
        prompt_logprobs: bool = False,
        topk_prompt_logprobs: int = 0,
        topk_sample_logprobs: int = 0,
    ) -> Future[SampleOutput]:
        """Completes a prompt of tokens and images `num_samples` times, with a log-probability for each sampled token.

        `prompt_logprobs` asks for those of the prompt; the other two ask for the most likely candidates.
        """

        def submit() -> str:
            call = calls.sample(
                self.id,
                next(self._numbers),
                prompt,
                num_samples,
                params or SamplingParams(),
                prompt_logprobs,
                topk_prompt_logprobs,
                topk_sample_logprobs,
            )
            return self._session.sender.send(call)

        return Future(self._session.sender, submit(), calls.sample_result, again=submit)


class AsyncSampler:
    """Weights to sample from, which do not change."""

    def __init__(self, session: AsyncSession, sampler_id: str) -> None:
        self.id = sampler_id
        self._session = session
        self._numbers = itertools.count()

    async def sample(
        self,
        prompt: Sequence[Part],
        params: SamplingParams | None = None,
        *,
        num_samples: int = 1,
        prompt_logprobs: bool = False,
        topk_prompt_logprobs: int = 0,
        topk_sample_logprobs: int = 0,
    ) -> AsyncFuture[SampleOutput]:
        """Completes a prompt of tokens and images `num_samples` times, with a log-probability for each sampled token.

        `prompt_logprobs` asks for those of the prompt; the other two ask for the most likely candidates.
        """

        async def submit() -> str:
            call = calls.sample(
                self.id,
                next(self._numbers),
                prompt,
                num_samples,
                params or SamplingParams(),
                prompt_logprobs,
                topk_prompt_logprobs,
                topk_sample_logprobs,
            )
            return await self._session.sender.send(call)

        return AsyncFuture(self._session.sender, await submit(), calls.sample_result, again=submit)
