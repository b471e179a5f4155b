#!/usr/bin/env python3
"""Random requests after the OpenAPI document with the key of an admin, of a member and of a reader, one after the other.

  run.py [--seconds 600] [--roles admin,member,read-only] [--seed 1] [--margin-mib 192]

Fails on a server error, on an answer that the document does not describe, and when the server's memory does not come back
to its start. `make schemathesis` runs it.
"""

import argparse
import pathlib
import re
import sys
import tempfile
import time

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "sdk"))

import httpx

import chat_model
import document
import random_requests
from server import SMOL, Server
from tenant_objects import Objects

KEYS = {role: f"tml-{role}-0123456789-0123456789" for role in ("admin", "member", "read-only")}
CONFIG = """
retention_hours = 0.01

[[tenants]]
name = "local"
operator = true
keys = [
""" + "".join(f'  {{ key = "{key}", role = "{role}" }},\n' for role, key in KEYS.items()) + "]\n"

SETTLE_SECONDS = 180
"""Seconds for the server to finish what was asked for, after which its memory is that of its start."""
PATIENT_SECONDS = 300
"""Seconds that schemathesis may take beyond its budget, for the operation that it is at."""
WARM_UP_SECONDS = 20
"""Seconds of requests before the memory at the start is read: they open connections and fill caches."""


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=int, default=600, help="seconds of requests with each key [default: 600]")
    parser.add_argument("--roles", default=",".join(KEYS), help="roles of the keys, with commas [default: all]")
    parser.add_argument("--seed", type=int, default=1, help="seed of the requests [default: 1]")
    parser.add_argument("--margin-mib", type=int, default=192, help="growth of memory that passes, in MiB [default: 192]")
    given = parser.parse_args()
    roles = given.roles.split(",")
    if unknown := set(roles) - set(KEYS):
        parser.error(f"--roles: expected {', '.join(KEYS)}, found {', '.join(sorted(unknown))}")
    problems = []
    with tempfile.TemporaryDirectory(prefix="schemathesis-") as folder:
        folder = pathlib.Path(folder)
        models = {SMOL: chat_model.write(folder / "tiny-chat")}
        for role in roles:
            # A server of its own: an admin's random requests change limits, after which others would be refused.
            (folder / role / "server").mkdir(parents=True)
            server = Server(folder / role / "server", models=models, config=CONFIG)
            server.start()
            try:
                problems += attack(server, role, given, folder / role)
            finally:
                if code := server.stop(limit=60):
                    problems.append(f"{role}: the server ended with {code}")
                server.close()
    for problem in problems:
        print(f"\n{problem}", file=sys.stderr)
    print(f"schemathesis: {'failed' if problems else 'passed'}, {given.seconds} s with each key ({', '.join(roles)})")
    return 1 if problems else 0


def attack(server: Server, role: str, given: argparse.Namespace, folder: pathlib.Path) -> list[str]:
    """Sends requests with the key of a role. Returns what is wrong."""
    mine, other = (Objects(server, "local", KEYS["admin"], SMOL) for _ in range(2))
    described = folder / "openapi.json"
    described.write_text(random_requests.with_real_ids(document.FILE.read_text(), mine, other))
    problems = []

    def requests(seconds: int, seed: int):
        options = ["--max-time", seconds, "--seed", seed]
        done = random_requests.run(described, server.url, KEYS[role], options, limit=seconds + PATIENT_SECONDS)
        if done.returncode != 0:
            problems.append(f"{role}, seed {seed}:\n{done.stdout[-20_000:]}{done.stderr[-2_000:]}")
        return re.findall(r"[0-9][0-9,]* generated", done.stdout)

    requests(min(WARM_UP_SECONDS, given.seconds), given.seed)
    start = settled(server)
    sent = requests(given.seconds, given.seed + 1)
    end, deadline = settled(server), time.monotonic() + SETTLE_SECONDS
    while end > start + (given.margin_mib << 20) and time.monotonic() < deadline:
        time.sleep(5)
        end = settled(server)
    print(f"{role}: {''.join(sent[-1:])}, memory {start >> 20} MiB at the start and {end >> 20} MiB at the end", flush=True)
    if end > start + (given.margin_mib << 20):
        problems.append(
            f"{role}: memory grew from {start >> 20} to {end >> 20} MiB, by more than {given.margin_mib} MiB, "
            f"and did not come back within {SETTLE_SECONDS} s"
        )
    return problems


def settled(server: Server) -> int:
    """Resident bytes once the server answers."""
    with httpx.Client(base_url=server.url, timeout=60) as http:
        answer = http.get("/readyz")
        if answer.status_code != 200:
            raise RuntimeError(f"the server is not ready: {answer.status_code} {answer.text}\n{server.tail()}")
    return server.server.resident_bytes()


if __name__ == "__main__":
    sys.exit(main())
