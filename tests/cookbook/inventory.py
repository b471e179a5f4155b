#!/usr/bin/env python3
"""What the cookbook consists of: its programs, and the modules of its recipes.

  inventory.py          prints them as `modules.txt` has them
  inventory.py --write  writes `modules.txt`

Both read the installed package, so that a module of a new version is not overlooked: `run.py` refuses to start while
the file differs from the package, and a test compares the file with what is run and with the page of the documentation.
"""

import ast
import importlib.util
import pathlib
import sys

PACKAGE = "tinker_cookbook"
RECIPES = f"{PACKAGE}.recipes."
LIST = pathlib.Path(__file__).resolve().with_name("modules.txt")
HEADER = "# Written by inventory.py. `program`: can be started; `module`: only imported.\n"


def installed() -> pathlib.Path:
    """Returns the folder of the installed package."""
    found = importlib.util.find_spec(PACKAGE)
    if found is None or found.origin is None:
        raise SystemExit(f"{PACKAGE} is not installed")
    return pathlib.Path(found.origin).parent


def is_program(source: str) -> bool:
    """Tells whether a module compares its own name with `__main__`, outside of any text."""
    return any(
        isinstance(node, ast.If)
        and isinstance(node.test, ast.Compare)
        and isinstance(node.test.left, ast.Name)
        and node.test.left.id == "__name__"
        for node in ast.parse(source).body
    )


def inventory(package: pathlib.Path) -> dict[str, str]:
    """Returns `program` or `module` for all programs of a package and all modules of its recipes, without tests."""
    found = {}
    for path in sorted(package.rglob("*.py")):
        name = ".".join((PACKAGE, *path.relative_to(package).with_suffix("").parts))
        if path.stem.endswith("_test") or path.stem == "__init__":
            continue
        if path.stem == "__main__" or is_program(path.read_text(encoding="utf-8")):
            found[name.removesuffix(".__main__")] = "program"
        elif name.startswith(RECIPES):
            found[name] = "module"
    return found


def text(found: dict[str, str]) -> str:
    """Returns the content of `modules.txt`."""
    return HEADER + "".join(f"{kind} {name}\n" for name, kind in sorted(found.items()))


def listed() -> dict[str, str]:
    """Returns what `modules.txt` has."""
    lines = (line.split() for line in LIST.read_text(encoding="utf-8").splitlines() if not line.startswith("#"))
    return {name: kind for kind, name in lines}


def differences(found: dict[str, str], known: dict[str, str]) -> list[str]:
    """Returns a line for each module that only one of them has, or that another kind has become."""
    added = [f"new {kind}: {name}" for name, kind in sorted(found.items()) if known.get(name) != kind]
    return added + [f"no longer there: {name}" for name in sorted(known.keys() - found.keys())]


def main() -> int:
    found = text(inventory(installed()))
    if sys.argv[1:] == ["--write"]:
        LIST.write_text(found, encoding="utf-8")
    else:
        print(found, end="")
    return 0


if __name__ == "__main__":
    sys.exit(main())
