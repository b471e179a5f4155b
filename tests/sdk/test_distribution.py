"""The Python client's distribution: its name, its version, and what texts tell users to install."""

import re
import subprocess
import sys
import tomllib
import zipfile

import trainyard
from server import REPOSITORY

CLIENT = REPOSITORY / "client-sdk" / "python"
NAME = "trainyard-client"
STRANGER = re.compile(r"""pip3? install [^\n`]*(?<![\w./-])trainyard(?![\w./-])""")
"""`pip install` of a name on the package index that belongs to another project."""


def test_its_name_and_its_version():
    project = tomllib.loads((CLIENT / "pyproject.toml").read_text())["project"]
    assert (project["name"], project["version"]) == (NAME, trainyard.__version__)


def test_nothing_tells_users_to_install_the_package_of_somebody_else():
    for bad in ("pip install trainyard", "pip install 'trainyard[recipes]'", "pip install -q trainyard==0.1"):
        assert STRANGER.search(bad), bad
    for good in (f"pip install {NAME}", f"pip install '{NAME}[recipes]'", "pip install ./client-sdk/python", "pip install wandb"):
        assert not STRANGER.search(good), good
    kinds = {".py", ".rs", ".md", ".toml", ".txt", ".sh", ".yaml", ".yml"}
    folders = ("client-sdk", "tests", "xtask", "deploy", "bench", "docs")
    files = [file for name in folders for file in (REPOSITORY / name).rglob("*") if file.suffix in kinds and file.is_file()]
    mine = {file for file in files if file.name not in ("test_distribution.py", "test_recipe_pages.py") and "/target/" not in file.as_posix()}
    assert CLIENT / "README.md" in mine
    assert [str(file) for file in mine if STRANGER.search(file.read_text(errors="replace"))] == []


def test_the_wheel_has_that_name(tmp_path):
    build = [sys.executable, "-m", "hatchling", "build", "--target", "wheel", "--directory", str(tmp_path)]
    subprocess.run(build, check=True, cwd=CLIENT, capture_output=True)
    (wheel,) = tmp_path.glob("*.whl")
    stem = f"trainyard_client-{trainyard.__version__}"
    assert wheel.name == f"{stem}-py3-none-any.whl"
    with zipfile.ZipFile(wheel) as archive:
        names = set(archive.namelist())
        assert {"trainyard/client.py", "trainyard/recipes/core/attempts.py", "trainyard/demo_programs/demo.py", f"{stem}.dist-info/METADATA"} <= names
        metadata = archive.read(f"{stem}.dist-info/METADATA").decode()
    assert f"\nName: {NAME}\n" in metadata and "Provides-Extra: recipes" in metadata
