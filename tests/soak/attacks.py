#!/usr/bin/env python3
"""Attacks of a hostile tenant on its neighbours: each is legal in its parts, or small to send and large to answer.

  attacks.py URL ATTACK…

Repeats the attacks, each on threads of its own, until its input ends. Prints a JSON line for each act: its name, its
status, and whether that is a status which it may have; and a line for each attack that is under way. Everything that an
attack began is ended with it.
"""

import contextlib
import itertools
import json
import os
import pathlib
import socket
import sys
import threading
import time
import types as plain
from urllib.parse import urlparse

os.environ.setdefault("TINKER_TELEMETRY", "0")
os.environ.setdefault("TRANSFORMERS_VERBOSITY", "error")
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "sdk"))

import httpx
import numpy as np

import vision_model
import wire as raw
from refusals import ID_BYTES, IDS, Refusals, packed_zeros, png, sample_of_image
from server import SMOL

HOSTILE, READER = "tml-hostile-0123456789-0123456789", "tml-reader-0123456789-0123456789"
"""Keys of the hostile tenant: of a member, and of somebody who may only read."""

LATER = 429
"""Beyond a bound for which the client may wait."""

FULL = 503
"""All connections to the database are in use, for reads of others as well."""

PAUSE = 0.1
"""Seconds between requests of a thread: what is tried is what a request takes, not how many of them a machine answers."""


class Attack:
    """A client of the hostile tenant, until `ended` is set."""

    def __init__(self, server, ended: threading.Event):
        self.server, self.ended = server, ended
        self.wire = self.client()

    def client(self, key=HOSTILE) -> raw.Wire:
        return raw.Wire(self.server, key, timeout=120)

    def tell(self, act: str, status: int | None, *expected):
        tell(act=act, status=status, right=status in expected)

    def ready(self, name: str):
        """Says that the attack is under way."""
        tell(ready=name)

    @contextlib.contextmanager
    def session(self, wire=None):
        """A session, which is interrupted at the end with all of its work."""
        wire = wire or self.wire
        session = wire.session()
        try:
            yield session
        finally:
            self.tell("end of a session", wire.finish(session, "interrupted").status_code, 204)

    def sampler(self, session: str, model: str, wire=None) -> str:
        return (wire or self.wire).sampling_session(session, base_model=model).json()["sampling_session_id"]

    def at_once(self, count: int, work):
        """Runs `work(number)` on threads, which all end before this returns; their errors are told."""

        def one(number):
            try:
                work(number)
            except Exception as error:  # noqa: BLE001
                tell(act=work.__name__, status=None, right=False, error=f"{type(error).__name__}: {error}"[:300])

        threads = [threading.Thread(target=one, args=(number,)) for number in range(count)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

    # Each of the following is an attack: its name is that of the method.

    def refusals(self):
        """Requests that are refused whole."""
        for name, act, status in itertools.cycle(Refusals(self.server, HOSTILE, vision_model.NAME).acts):
            if self.ended.wait(0.1):
                return
            self.tell(name, act(), status)
            self.ready("refusals")

    def custom_losses(self):
        """Passes of datums whose losses cost as much as they may, and a loss that costs more."""
        steps = [node("call_method", "repeat", [{"ref": "logprobs"}, 16, 1], "x0")]
        steps += [node("call_function", "torch.exp", [{"ref": f"x{at}"}], f"x{at + 1}") for at in range(400)]
        with self.session() as session:
            created = self.wire.create_model(session, model=SMOL).json()["request_id"]
            run = self.wire.result(created).json()["model_id"]
            dear, dearer = (self.loss(session, *one) for one in enumerate((graph(*steps), graph(ZEROS))))
            data = [([1, 2, 3], np.arange(2048).reshape(2, 1024).tolist())] * 32
            for seq in itertools.count(1):
                if self.ended.is_set():
                    return
                loss = dearer if seq % 3 == 0 else dear
                answer = self.wire.forward_backward_bytes(wide_message(run, seq, data, loss))
                self.tell("a pass of costly losses", answer.status_code, 200, LATER)
                self.ready("custom_losses")
                if seq % 3 == 0 and answer.status_code == 200 and (result := self.until_done(answer)):
                    refused = result.json().get("category") == "user" and "costs more" in result.text
                    self.tell("a loss that costs too much", 400 if refused else result.status_code, 400)

    def loss(self, session: str, number: int, described: dict) -> str:
        body = {"session_id": session, "custom_loss_seq_id": number, "name": f"f{number}", "graph": described}
        body["inputs"] = [{"name": "logprobs", "rank": 2}]
        return self.wire.result(self.wire.ok("create_custom_loss", body)["request_id"]).json()["loss_id"]

    def until_done(self, answer) -> httpx.Response | None:
        """The result, unless the attack ends first."""
        while not self.ended.is_set():
            response = self.wire.poll(answer.json()["request_id"])
            if not (response.status_code == 408 or response.json().get("type") == "try_again"):
                return response
        return None

    def searches(self):
        """Sessions of as much metadata as they may have, read by a key that may only read."""
        metadata = {f"{at}": "a" * 15_000 for at in range(4)}
        body = {"tags": [], "user_metadata": metadata, "sdk_version": "0.38.0", "type": "create_session"}
        sessions = [self.wire.ok("create_session", body)["session_id"] for _ in range(100)]

        self.ready("searches")

        def read(number):
            wire = self.client(READER)
            while not self.ended.is_set():
                for limit in (1, 200):
                    status = wire.post("sessions/search", {"limit": limit}).status_code
                    self.tell("a search of sessions", status, 200, LATER, FULL)
                    self.ended.wait(PAUSE)
                for path in ("training_runs", "checkpoints", "sessions"):
                    answer = wire.http.get(path, params={"limit": 1000})
                    self.tell(f"a long page of {path}", answer.status_code, 200, 400, LATER, FULL)
                    self.ended.wait(PAUSE)

        self.at_once(2, read)
        for session in sessions:
            self.wire.finish(session, "success")

    def acknowledgements(self):
        """As many ids of results as a request may have, by both keys."""
        with self.session() as session:
            sampler = self.sampler(session, SMOL)
            target = {"type": "sampling_session", "sampling_session_id": sampler, "cloned_sampler_id": 0}
            body = {"target": target, "prev_cursor": 0, "timeout": 0.0}

            def acknowledge(number):
                wire = self.client(READER if number == 0 else HOSTILE)
                for at in itertools.count():
                    ids = [f"{number}-{at}-{one}".ljust(ID_BYTES, "x") for one in range(IDS)]
                    answer = wire.post("retrieve_futures", body | {"retrieved_request_ids": ids})
                    self.tell("ids of results", answer.status_code, 200, LATER)
                    self.ready("acknowledgements")
                    self.ended.wait(PAUSE)
                    if self.ended.is_set():
                        return

            self.at_once(3, acknowledge)

    def slow_readers(self):
        """The largest result of a sample, of which clients read a few bytes a second or nothing."""
        with self.session() as session:
            sampler = self.sampler(session, vision_model.NAME)
            params = {"max_tokens": 16, "stop": []}
            answer = self.wire.asample(sampler, 0, num_samples=512, params=params, topk_sample_logprobs=512)
            self.tell("the largest sample", answer.status_code, 200, LATER)
            if answer.status_code != 200 or self.until_done(answer) is None:
                return
            body = json.dumps({"request_id": answer.json()["request_id"], "allow_metadata_only": False})

            def crawl(number):
                while not self.ended.is_set():
                    self.unread("retrieve_future", body, 4 if number % 2 else 0, "a large result, read slowly")

            self.ready("slow_readers")
            self.at_once(12, crawl)

    def streams(self):
        """Streams of long answers that nobody reads."""
        messages = [{"role": "user", "content": "Tell me all."}]
        body = json.dumps({"model": SMOL, "messages": messages, "max_tokens": 1500, "stream": True, "n": 4})

        self.ready("streams")

        def stream(number):
            while not self.ended.is_set():
                self.unread("chat/completions", body, 0, "a stream that nobody reads", root="/oai/api/v1/")

        self.at_once(24, stream)

    def unread(self, path: str, body: str, bytes_per_second: int, act: str, root="/api/v1/"):
        """Sends a request, and reads its status and then this much of its answer, until the server or the attack ends."""
        address = urlparse(self.server.url)
        start = f"POST {root}{path} HTTP/1.1\r\nhost: 127.0.0.1\r\nx-api-key: {HOSTILE}\r\naccept: application/json\r\n"
        start += f"content-type: application/json\r\ncontent-length: {len(body)}\r\n\r\n{body}"
        with socket.socket() as connection:
            # A small window: the rest of the answer stays in the server.
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            connection.settimeout(60)
            connection.connect((address.hostname, address.port))
            connection.sendall(start.encode())
            status = connection.recv(16)
            self.tell(act, int(status.split()[1]) if status else None, 200, 408, LATER)
            if status.split()[1:2] != [b"200"]:
                self.ended.wait(1)
                return
            while not self.ended.wait(1):
                with contextlib.suppress(TimeoutError):
                    if bytes_per_second and not connection.recv(bytes_per_second):
                        return

    def wide_batch(self):
        """As many long sequences as are accepted."""
        with self.session() as session:
            sampler = self.sampler(session, SMOL)
            for seq in itertools.count():
                answer = self.wire.asample(sampler, seq, num_samples=64, params={"max_tokens": 2000, "stop": []})
                self.tell("64 long samples", answer.status_code, 200, LATER)
                if seq == 255 or answer.status_code == LATER:
                    self.ready("wide_batch")
                if self.ended.wait(0 if seq < 256 else 1):
                    return

    def endings(self):
        """Sessions that end with many samples in the queue."""
        while not self.ended.is_set():
            with self.session() as session:
                sampler = self.sampler(session, SMOL)

                def submit(number):
                    wire = self.client()
                    for seq in range(number * 200, (number + 1) * 200):
                        answer = wire.asample(sampler, seq, params={"max_tokens": 2000, "stop": []})
                        self.tell("a sample whose session ends", answer.status_code, 200, LATER)
                        if self.ended.wait(PAUSE / 2):
                            return

                self.at_once(2, submit)
            self.ready("endings")

    def images(self):
        """Files that are small, and large once they are decoded."""
        with self.session() as session:
            sampler = self.sampler(session, vision_model.NAME)
            # The second has gigabytes behind its rows, the third lacks most of them.
            bombs = [packed_zeros(3700 * (3 * 3700 + 1)), packed_zeros(2 << 30), packed_zeros(1 << 20)]
            for seq in itertools.count():
                if self.ended.is_set():
                    return
                side = 3600 + seq % 100
                width = 64 + seq % 100 if seq % 3 == 1 else side
                answer = sample_of_image(self.wire, sampler, seq, png(width, width, bombs[seq % 3]), "png", expected=9)
                self.tell("a bomb", answer.status_code, 200, LATER)
                self.ready("images")
                if answer.status_code == 200 and (result := self.until_done(answer)):
                    truncated = result.json().get("category") == "user"
                    self.tell(f"the result of bomb {seq % 3}", 400 if truncated else 200, 400 if seq % 3 == 2 else 200)


NAMES = ("refusals", "custom_losses", "searches", "acknowledgements", "slow_readers", "streams", "wide_batch", "endings", "images")


def node(op, target, args=(), name="x"):
    return {"op": op, "name": name, "target": target, "args": list(args), "kwargs": {}}


ZEROS = node("call_function", "torch.zeros", [10**12, 10**12])


def graph(*nodes) -> dict:
    """A loss that sums the log-probabilities, after other nodes."""
    inner = [node("placeholder", "logprobs", name="logprobs"), *nodes]
    inner.append(node("call_method", "sum", [{"ref": "logprobs"}], "loss"))
    returned = {"tuple": [{"ref": "loss"}, {"dict": {}}]}
    return {"format": 1, "nodes": [*inner, node("output", "output", [returned], "output")]}


def wide_message(run: str, seq: int, data, loss_id: str) -> bytes:
    """A pass with many targets at each position."""
    request = raw.message(run, seq, [tokens for tokens, _ in data], loss="custom")
    request.loss_fn_config_v2["loss_id"].text = loss_id
    for datum, (_, targets) in zip(request.data, data, strict=True):
        datum.loss_fn_inputs.clear()
        raw.put(datum, "target_tokens", targets, "<i8", raw.pb.DTYPE_INT64)
    return request.SerializeToString()


LOCK = threading.Lock()


def tell(**line):
    with LOCK:
        print(json.dumps(line), flush=True)


def main():
    server = plain.SimpleNamespace(url=sys.argv[1])
    ended = threading.Event()
    threads = [threading.Thread(target=repeat, args=(server, name, ended)) for name in sys.argv[2:]]
    for thread in threads:
        thread.start()
    sys.stdin.read()
    ended.set()
    for thread in threads:
        thread.join()


def repeat(server, name: str, ended: threading.Event):
    while not ended.is_set():
        try:
            getattr(Attack(server, ended), name)()
        except Exception as error:  # noqa: BLE001 - reported, and judged by the parent
            tell(act=name, status=None, right=False, error=f"{type(error).__name__}: {error}"[:300])
            time.sleep(1)


if __name__ == "__main__":
    main()
