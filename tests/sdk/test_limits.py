"""What one client may take of the HTTP side: memory for bodies, descriptors, time."""

import pathlib
import resource
import socket

import pytest

import wire as raw
from server import KEY, Server

STALLED = (
    f"POST /api/v1/forward_backward HTTP/1.1\r\nhost: 127.0.0.1\r\nx-api-key: {KEY}\r\n"
    f"content-type: application/x-protobuf\r\ncontent-length: {250 << 20}\r\n\r\n"
).encode()


def connect(server, data: bytes) -> socket.socket:
    connection = socket.create_connection(("127.0.0.1", server.port), timeout=30)
    connection.sendall(data)
    return connection


@pytest.fixture
def limited(tmp_path):
    """A server that may open as many files as a shell usually allows."""
    files = (1024, 1024)
    server = Server(tmp_path, flags=["--header-seconds", "3"])
    server.server.options["preexec_fn"] = lambda: resource.setrlimit(resource.RLIMIT_NOFILE, files)
    yield server.start()
    server.close()


def resident_mib(server) -> int:
    status = pathlib.Path(f"/proc/{server.server.child.pid}/status").read_text()
    return next(int(line.split()[1]) for line in status.splitlines() if line.startswith("VmRSS")) >> 10


def test_stalled_uploads_take_neither_memory_nor_others_turn(limited):
    before = resident_mib(limited)
    # A part of the body that the kernel's buffers don't hold.
    uploads = [connect(limited, STALLED) for _ in range(40)]
    for upload in uploads:
        upload.setblocking(False)
        sent = 0
        while sent < 20 << 20:
            try:
                sent += upload.send(bytes(1 << 20))
            except BlockingIOError:
                break
    assert raw.Wire(limited, timeout=10).session()
    assert resident_mib(limited) < before + 600
    for upload in uploads:
        upload.close()


def test_half_sent_headers_leave_descriptors_and_are_closed(limited):
    """2,000 of them, of which the server takes as many as it has descriptors to spare, and none for long."""
    halves = []
    for _ in range(2_000):
        halves.append(connect(limited, b"GET /api/v1/healthz HTTP/1.1\r\nhost: te"))
    descriptors = len(list(pathlib.Path(f"/proc/{limited.server.child.pid}/fd").iterdir()))
    assert descriptors < 1024 - 100
    assert "failed to accept a connection" not in limited.text()
    assert "connections refused" in limited.text()
    answers = []
    for half in halves:
        try:
            answers.append(half.recv(1024))
        except ConnectionResetError:
            answers.append(b"")
    assert all(answer == b"" or answer.startswith(b"HTTP/1.1 429 ") for answer in answers)
    assert any(answer == b"" for answer in answers) and any(answers)
    assert raw.Wire(limited).session()
