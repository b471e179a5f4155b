#!/usr/bin/env python3
"""The soak, in two parts, of which `--only` chooses one.

First a hostile tenant attacks another on a server without faults (`attacked.py`), for a sixth of the time.

Then 64 tenants do mixed work on two API servers, two workers and PostgreSQL. All of these are killed, stopped, cut off from
each other and left without disk space, while a client sends bad bodies and requests that must be refused.

  soak.py [--minutes 30] [--only attacks|faults] [--tenants 64] [--seed 1] [--report FILE] [--keep FOLDER]

Prints its report, and ends with 1 if a condition failed. `make soak` runs it.
"""

import argparse
import contextlib
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import time

os.environ.setdefault("TINKER_TELEMETRY", "0")
os.environ.setdefault("TRANSFORMERS_VERBOSITY", "error")
HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "sdk"))

import postgres as pg
import wire as raw
from attacked import Attacked
from attacks import NAMES
from deployment import RoleCluster
from disturbances import Disturbances
from programs import PROGRAMS, Facts, execute
from report import Report
from server import Server
from vandal import Vandal
from watch import Watch

PROCESSES = 4
"""Number of Python processes with clients: a single one would be busy with its own work."""

DISK_MIB = 1024
RETENTION_HOURS = 0.02
CACHE_MIB = 16
"""Limit for keys and values: prefixes are kept up to it, so a larger limit would still fill during the whole soak."""

SESSION_SECONDS = 30
ATTACKED = 1 / 6
"""Share of the time for attacks, beside the faults."""

SETTLE_SECONDS = 180
"""Seconds allowed for cleaning up after the end: sessions and leases expire, retention ends."""

VANDAL, STRANGER = "tml-vandal-0123456789-0123456789", "tml-stranger-0123456789-0123456789"


def key(tenant: int) -> str:
    return f"tml-tenant-{tenant}-0123456789-0123456789"


def program(tenant: int) -> str:
    """One of eight tenants abandons its sessions; the others share the programs."""
    return "abandon" if tenant % 8 == 7 else str((tenant - tenant // 8) % PROGRAMS)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--minutes", type=float, default=30)
    parser.add_argument("--only", choices=["attacks", "faults"], help="the part that gets all of the time")
    parser.add_argument("--attacks", type=lambda text: tuple(text.split(",")), default=NAMES, help="their names")
    parser.add_argument("--tenants", type=int, default=64)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--report", type=pathlib.Path, help="file to which the report is also written")
    parser.add_argument("--keep", type=pathlib.Path, help="folder for logs, which is kept; must not exist")
    arguments = parser.parse_args()
    with contextlib.ExitStack() as stack:
        folder = arguments.keep or stack.enter_context(tempfile.TemporaryDirectory(prefix="trainyard-soak-"))
        folder = pathlib.Path(folder).resolve()
        folder.mkdir(exist_ok=not arguments.keep)
        reports = parts(folder, arguments)
    text = "\n\n".join(report.text() for report in reports)
    print(text)
    if arguments.report:
        arguments.report.write_text(text)
    return 1 if any(report.failures for report in reports) else 0


def parts(folder: pathlib.Path, arguments) -> list[Attacked | Report]:
    reports = []
    if arguments.only != "faults":
        seconds = arguments.minutes * 60 * (1 if arguments.only else ATTACKED)
        reports.append(attacked(folder, seconds, arguments.attacks))
    if arguments.only != "attacks":
        arguments.minutes *= 1 if arguments.only else 1 - ATTACKED
        reports.append(soak(folder, arguments))
    return reports


def attacked(folder: pathlib.Path, seconds: float, names: tuple[str, ...]) -> Attacked:
    print(f"attacks, for {seconds / 60:g} minutes", file=sys.stderr)
    database = pg.Cluster()
    with contextlib.closing(database), pg.database(database.start().url) as url:
        measured = Attacked(seconds, names)
        measured.run(folder, url)
        return measured


def soak(folder: pathlib.Path, arguments) -> Report:
    print("the programs' answers on an undisturbed server", file=sys.stderr)
    reference = folder / "reference.json"
    reference.write_text(json.dumps(undisturbed(folder)))
    keys = [VANDAL, STRANGER, *map(key, range(arguments.tenants))]
    config = "\n".join(f'[[keys]]\ntenant = "t{i}"\nkey = "{k}"' for i, k in enumerate(keys))
    flags = ["--session-seconds", SESSION_SECONDS, "--retention-hours", RETENTION_HOURS, "--snapshot-tokens", 500]
    flags += ["--kv-memory-mib", CACHE_MIB, "--checkpoint-memory-mib", CACHE_MIB]
    seconds = arguments.minutes * 60
    with contextlib.ExitStack() as stack:
        disk = stack.enter_context(small_disk(folder))
        database = pg.Cluster()
        stack.callback(database.close)
        url = stack.enter_context(pg.database(database.start().url))
        cluster = RoleCluster(folder, url, config=config, flags=flags, api_flags=flags[:4], storage_folder=disk)
        stack.callback(cluster.close)
        cluster.start()
        stranger = raw.Wire(cluster, STRANGER).run()
        tenants = Tenants(cluster.url, reference, arguments.tenants, folder)
        print(f"{arguments.minutes:g} minutes from now on; logs in {folder}", file=sys.stderr)
        with Watch(cluster, url, seconds, folder / "points.jsonl") as watch:
            with Disturbances(cluster, database, disk, arguments.seed) as done:
                with Vandal(cluster, VANDAL, stranger, arguments.seed) as vandal:
                    tenants.watch(seconds)
            lines = tenants.end()
        cluster.wait_until_ready()
        unfinished = settle(url)
        codes = cluster.stop()
        panics = [p.name for p in cluster.processes if "panicked at" in p.text()]
        if panics:
            print(cluster.tail(200), file=sys.stderr)
        return Report(arguments, lines, watch, done, vandal, unfinished, codes, panics)


def undisturbed(folder: pathlib.Path) -> dict:
    calm = folder / "calm"
    calm.mkdir()
    server = Server(calm).start()
    answers = {}
    for number in range(PROGRAMS):
        facts = Facts()
        execute(server, "tml-local-soak", number, facts)
        answers[number] = facts.items
    if server.stop() != 0:
        raise RuntimeError(server.tail())
    return answers


@contextlib.contextmanager
def small_disk(folder: pathlib.Path):
    """Yields a separate, small file system for the storage; None without permission to mount one."""
    disk = folder / "disk"
    disk.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", f"size={DISK_MIB}m", "none", str(disk)]
    if os.geteuid() != 0 or subprocess.run(mount, capture_output=True).returncode != 0:
        print("no permission to mount a file system: the disk is not filled", file=sys.stderr)
        yield None
        return
    try:
        yield disk
    finally:
        subprocess.run(["umount", "--lazy", str(disk)], check=False)


class Tenants:
    """Processes of the clients."""

    def __init__(self, url: str, reference: pathlib.Path, count: int, folder: pathlib.Path):
        self.processes = []
        for number in range(PROCESSES):
            mine = [f"{key(tenant)}={program(tenant)}" for tenant in range(number, count, PROCESSES)]
            command = [sys.executable, HERE / "tenants.py", url, reference, *mine]
            output = folder / f"tenants-{number}.jsonl"
            errors = folder / f"tenants-{number}.log"
            with open(output, "wb") as out, open(errors, "wb") as err:
                child = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=out, stderr=err)
            self.processes.append((child, output, errors))

    def watch(self, seconds: float):
        """Waits, and reports problems as soon as they occur."""
        ends, told = time.monotonic() + seconds, 0
        while time.monotonic() < ends:
            time.sleep(min(10.0, max(0.0, ends - time.monotonic())))
            lines = self.lines()
            for line in lines[told:]:
                if line["kind"] == "execution" and not line["complete"]:
                    print(f"{line['key']}: {line['error']} after {line['after']}", file=sys.stderr)
                if line["kind"] == "execution" and not line["same"]:
                    print(f"{line['key']}: DIFFERS: {line['wrong']}", file=sys.stderr)
            told = len(lines)
            for child, _, errors in self.processes:
                if child.poll() is not None:
                    raise RuntimeError(f"clients ended with {child.returncode}: {errors.read_text()[-2000:]}")

    def lines(self) -> list[dict]:
        """Returns the executions in the order of their ends."""
        found = []
        for _, output, _ in self.processes:
            text = output.read_text()
            found += [json.loads(line) for line in text[: text.rfind("\n") + 1].splitlines()]
        return sorted(found, key=lambda line: line["ended"])

    def end(self) -> list[dict]:
        """Ends the processes after the executions in progress."""
        for child, *_ in self.processes:
            child.stdin.close()
        for child, _, errors in self.processes:
            if child.wait(900) != 0:
                raise RuntimeError(f"clients ended with {child.returncode}: {errors.read_text()[-2000:]}")
        return self.lines()


UNFINISHED = "SELECT state, kind, count(*) FROM requests WHERE state IN ('queued', 'running') GROUP BY state, kind"


def settle(url: str) -> list:
    """Returns the requests that are still unfinished after all clients have ended and time has passed."""
    deadline = time.monotonic() + SETTLE_SECONDS
    while (left := pg.query(url, UNFINISHED)) and time.monotonic() < deadline:
        time.sleep(1)
    return left


if __name__ == "__main__":
    sys.exit(main())
