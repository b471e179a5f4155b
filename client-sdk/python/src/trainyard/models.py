"""Bodies of requests and answers, as the API's description names them."""

from .generated.models import *  # noqa: F403
