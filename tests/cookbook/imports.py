"""Imports all modules of the cookbook's recipes that are no programs; those of `ABSENT` must lack just that package."""

import importlib
import sys

import inventory
from reasons import ABSENT


def main() -> int:
    failed = []
    modules = [name for name, kind in inventory.listed().items() if kind == "module"]
    for name in modules:
        found = ""
        try:
            importlib.import_module(name)
        except ImportError as error:
            # The cookbook's own errors begin with the package.
            found = error.name or str(error).partition(" ")[0]
        if found != ABSENT.get(name, ""):
            failed.append(f"{name}: lacks {found or 'nothing'}, and should lack {ABSENT.get(name, 'nothing')}")
    print("\n".join([*failed, f"{len(modules) - len(ABSENT)} modules imported, {len(ABSENT)} lack packages"]))
    return len(failed)


if __name__ == "__main__":
    sys.exit(main())
