"""Writes or checks the generated parts of the Python client: `generate.py write|check DOCUMENT`.

They are `src/trainyard/generated`, by openapi-python-client from the description that the generator of the Rust client
prepares, and `public-api.txt`, a listing of all public names. `check` also builds the wheel and imports it.
"""

from __future__ import annotations

import ast
import filecmp
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import zipfile

HOME = pathlib.Path(__file__).resolve().parents[1]
SOURCES = HOME / "src"
GENERATED = SOURCES / "trainyard" / "generated"
LISTING = HOME / "public-api.txt"
TOOLS = pathlib.Path(sys.executable).parent


def generate(document: pathlib.Path, output: pathlib.Path) -> None:
    """Makes the package `generated` in a folder outside of the repository, away from its settings of `ruff`."""
    # The generator formats what it writes by the `ruff` that it finds.
    environment = os.environ | {"PATH": f"{TOOLS}{os.pathsep}{os.environ.get('PATH', '')}"}
    command = [TOOLS / "openapi-python-client", "generate", "--path", document, "--meta", "none", "--overwrite"]
    command += ["--output-path", output, "--custom-template-path", HOME / "templates", "--fail-on-warning"]
    subprocess.run(list(map(str, command)), env=environment, check=True, cwd=HOME, stdout=subprocess.DEVNULL)


def listing() -> str:
    """Public names with their types, one a line."""
    lines: list[str] = []
    for file in sorted(SOURCES.rglob("*.py")):
        module = ".".join(file.relative_to(SOURCES).with_suffix("").parts).removesuffix(".__init__")
        # Recipes and the demonstration are programs, used by their commands.
        if any(part.startswith("_") or part in ("recipes", "demo") for part in module.split(".")):
            continue
        for node in ast.parse(file.read_text()).body:
            lines += public(node, module)
    return "\n".join(lines) + "\n"


def public(node: ast.AST, place: str) -> list[str]:
    """The lines of a statement of a module or a class."""
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
        if node.name.startswith("_") and node.name != "__init__":
            return []
        kind = "async def" if isinstance(node, ast.AsyncFunctionDef) else "def"
        returns = f" -> {ast.unparse(node.returns)}" if node.returns else ""
        return [f"{kind} {place}.{node.name}({ast.unparse(node.args)}){returns}"]
    if isinstance(node, ast.ClassDef):
        if node.name.startswith("_"):
            return []
        bases = ", ".join(map(ast.unparse, node.bases))
        lines = [f"class {place}.{node.name}({bases})"]
        return lines + [line for inner in node.body for line in public(inner, f"{place}.{node.name}")]
    if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name) and not node.target.id.startswith("_"):
        return [f"{place}.{node.target.id}: {ast.unparse(node.annotation)}"]
    if isinstance(node, ast.Assign):
        names = [target.id for target in node.targets if isinstance(target, ast.Name)]
        if "__all__" in names:
            return [f"{place} exports {name}" for name in ast.literal_eval(node.value)]
        return [f"{place}.{name}" for name in names if not name.startswith("_")]
    return []


def differences(made: pathlib.Path, committed: pathlib.Path) -> list[str]:
    """Files that are not the same in both folders."""

    def files(folder: pathlib.Path) -> set[pathlib.Path]:
        return {file.relative_to(folder) for file in folder.rglob("*.py")}

    mine, theirs = files(made), files(committed)
    changed = [file for file in mine & theirs if not filecmp.cmp(made / file, committed / file, shallow=False)]
    return sorted(str(file) for file in [*(mine ^ theirs), *changed])


def check_wheel(folder: pathlib.Path) -> None:
    """Builds the wheel and imports it from the archive."""
    build = [sys.executable, "-m", "hatchling", "build", "--target", "wheel", "--directory", str(folder)]
    subprocess.run(build, check=True, cwd=HOME, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    [wheel] = folder.glob("*.whl")
    names = zipfile.ZipFile(wheel).namelist()
    for needed in ("trainyard/py.typed", "trainyard/client.py", "trainyard/generated/models/__init__.py"):
        if needed not in names:
            raise SystemExit(f"{wheel.name} has no {needed}")
    program = "import trainyard, trainyard.models; assert '.whl' in trainyard.__file__"
    environment = os.environ | {"PYTHONPATH": str(wheel), "PYTHONDONTWRITEBYTECODE": "1"}
    subprocess.run([sys.executable, "-c", program], check=True, cwd="/", env=environment, stdout=subprocess.DEVNULL)


def main() -> None:
    """Does what the arguments say."""
    if len(sys.argv) != 3 or sys.argv[1] not in ("write", "check"):
        raise SystemExit("usage: generate.py write|check DOCUMENT")
    document = pathlib.Path(sys.argv[2]).resolve()
    with tempfile.TemporaryDirectory() as folder:
        made = pathlib.Path(folder) / "generated"
        generate(document, made)
        if sys.argv[1] == "write":
            shutil.rmtree(GENERATED, ignore_errors=True)
            shutil.copytree(made, GENERATED)
            LISTING.write_text(listing())
            return
        changed = differences(made, GENERATED)
        if changed:
            raise SystemExit(f"generated files of the Python client differ, run `make sdk`: {', '.join(changed)}")
        if LISTING.read_text() != listing():
            raise SystemExit(f"{LISTING.name} of the Python client is out of date: run `make sdk`")
        check_wheel(pathlib.Path(folder))


if __name__ == "__main__":
    main()
