"""Where the generated operations send their requests."""

import httpx


class Client:
    """A pair of HTTP clients, of which the operations of one kind need one."""

    raise_on_unexpected_status = False
    """An answer that the API's description does not name is given to the caller, who has its status."""

    def __init__(
        self,
        blocking: httpx.Client | None = None,
        asynchronous: httpx.AsyncClient | None = None,
    ) -> None:
        self._blocking = blocking
        self._asynchronous = asynchronous

    def get_httpx_client(self) -> httpx.Client:
        """The client of `sync` and `sync_detailed`."""
        if self._blocking is None:
            raise RuntimeError("this client is asynchronous: call `asyncio_detailed`")
        return self._blocking

    def get_async_httpx_client(self) -> httpx.AsyncClient:
        """The client of `asyncio` and `asyncio_detailed`."""
        if self._asynchronous is None:
            raise RuntimeError("this client is not asynchronous: call `sync_detailed`")
        return self._asynchronous


AuthenticatedClient = Client
"""Keys are in the headers of the HTTP clients."""
