"""The comparison of `test_tenant_isolation.py` finds leaks: with a server that answers otherwise when it is asked for another
tenant's object, each of its cases fails.
"""

import json
import urllib.parse

import httpx
import pytest

import chat_model
import folders
from tenant_objects import ALPHA, BETA, CONFIG, MODEL, Objects, nobodys  # noqa: F401
from test_tenant_isolation import CASES, CONSUMING, FREE, Request, check

MODELS = {MODEL: chat_model.write(folders.new() / "tiny-chat")}

pytestmark = pytest.mark.timeout(240)


class Leaking(httpx.HTTPTransport):
    """What is between the tenant and the server: it changes answers to requests that name a certain object."""

    def __init__(self):
        super().__init__()
        self.named, self.leak, self.leaked = None, None, 0

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        answer = super().handle_request(request)
        if self.named is None or self.leak is None or not self._names(request):
            return answer
        self.leaked += 1
        content = answer.read()
        headers = {k: v for k, v in answer.headers.items() if k not in ("content-length", "transfer-encoding")}
        status, content, headers = self.leak(answer.status_code, content, headers)
        return httpx.Response(status, content=content, headers=headers, request=request)

    def _names(self, request) -> bool:
        # Files are sent without a type, and name nothing.
        body = request.read() if "content-type" in request.headers else b""
        asked = urllib.parse.unquote(str(request.url)).encode() + body
        # Escaped as JSON has it, too.
        return any(form.encode() in asked for form in (str(self.named), json.dumps(str(self.named))[1:-1]))


def status(code, content, headers):
    return (403 if code != 403 else 404), content, headers


def word(code, content, headers):
    return code, content.replace(b"{", b"{ ", 1) if b"{" in content else content + b" ", headers


def owner(code, content, headers):
    """A field more in the JSON of the answer."""
    field = f'"owner": "{ALPHA}"'.encode()
    if content.startswith(b"{"):
        return code, b"{" + field + (b"" if content == b"{}" else b", ") + content[1:], headers
    return code, content + field, headers


def header(code, content, headers):
    return code, content, headers | {"x-owner": "somebody"}


def entry(code, content, headers):
    """A hint that one has to look for: another number."""
    return code, content + b"\n", headers | {"retry-after": "1"}


LEAKS = [status, word, owner, header, entry]


@pytest.fixture(scope="module")
def alpha(server):
    return Objects(server, ALPHA)


@pytest.fixture(scope="module")
def beta(server):
    return leaky(Objects(server, BETA))


def leaky(mine: Objects) -> Objects:
    http = mine.wire.http
    mine.leaking = Leaking()
    mine.wire.http = httpx.Client(
        base_url=http.base_url, headers=http.headers, timeout=http.timeout, transport=mine.leaking
    )
    return mine


CASES_BY_LEAK = [(LEAKS[at % len(LEAKS)], *case) for at, case in enumerate(CASES)]


@pytest.mark.parametrize(
    ("leak", "operation", "place", "kind"), CASES_BY_LEAK, ids=lambda value: getattr(value, "id", getattr(value, "__name__", str(value)))
)
def test_a_leak_is_found(server, alpha, beta, leak, operation, place, kind):
    mine = leaky(Objects(server, BETA)) if operation.id in CONSUMING else beta
    theirs, own = getattr(alpha, kind), getattr(mine, kind)
    is_free = (operation.id, str(place)) in FREE
    make = lambda value: Request(operation, mine, place).put(value).send()  # noqa: E731
    mine.leaking.named, mine.leaking.leak, mine.leaking.leaked = theirs, leak, 0
    with pytest.raises(AssertionError):
        check(make, theirs, own, is_free)
    assert mine.leaking.leaked > 0, "the request does not name the object at all"
    if operation.method == "GET":
        # The transport alone is not what it finds.
        mine.leaking.leak = None
        check(make, theirs, own, is_free)


def test_every_kind_of_leak_is_tried():
    assert {leak for leak, *_ in CASES_BY_LEAK} == set(LEAKS)
    assert nobodys(ALPHA) != ALPHA
