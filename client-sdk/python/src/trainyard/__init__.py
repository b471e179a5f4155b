"""Client of Trainyard, a training service for language models.

`Client` and `AsyncClient` train, sample, save and resume. `trainyard.models` has all bodies of requests and answers.
"""

from ._version import __version__
from .client import AsyncClient, Client
from .data import Datum, OptimOutput, SampledSequence, SampleOutput, Tensor, TrainingOutput
from .errors import (
    ApiError,
    AuthenticationError,
    GoneError,
    InvalidRequestError,
    NotFoundError,
    PermissionDeniedError,
    ProtocolError,
    RateLimitError,
    RequestFailedError,
    ServerError,
    TrainyardError,
    TransportError,
)
from .futures import AsyncFuture, Future
from .generated.models import AdamParamsBody as AdamParams
from .generated.models import LoraConfig, SamplingParams
from .images import Image
from .retry import RetryPolicy
from .sampling import AsyncSampler, Sampler
from .training import AsyncTrainingRun, TrainingRun

__all__ = [
    "AdamParams",
    "ApiError",
    "AsyncClient",
    "AsyncFuture",
    "AsyncSampler",
    "AsyncTrainingRun",
    "AuthenticationError",
    "Client",
    "Datum",
    "Future",
    "GoneError",
    "Image",
    "InvalidRequestError",
    "LoraConfig",
    "NotFoundError",
    "OptimOutput",
    "PermissionDeniedError",
    "ProtocolError",
    "RateLimitError",
    "RequestFailedError",
    "RetryPolicy",
    "SampleOutput",
    "SampledSequence",
    "Sampler",
    "SamplingParams",
    "ServerError",
    "Tensor",
    "TrainingOutput",
    "TrainingRun",
    "TrainyardError",
    "TransportError",
    "__version__",
]
