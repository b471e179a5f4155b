"""HTTP servers of tests, each in a thread of the test's process."""

import contextlib
import threading
from collections.abc import Iterator
from socketserver import BaseServer


def start(server: BaseServer) -> str:
    """Starts a server and returns its URL."""
    # `shutdown` waits for the next poll.
    threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True).start()
    return f"http://127.0.0.1:{server.server_address[1]}"


@contextlib.contextmanager
def serving(server: BaseServer) -> Iterator[str]:
    """Yields the URL of a server, which answers until the end of the block."""
    url = start(server)
    try:
        yield url
    finally:
        server.shutdown()
        server.server_close()
