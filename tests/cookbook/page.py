#!/usr/bin/env python3
"""The table of all programs of the cookbook in `docs/users/cookbook.md`: what shows each, or why it does not run.

page.py --write  writes it
"""

import pathlib
import sys

HERE = pathlib.Path(__file__).resolve().parent
# Where this file is imported from elsewhere, whose own folders come first.
sys.path.append(str(HERE))

import inventory
from programs import PROGRAMS, Program
from reasons import ABSENT, REASONS
from script_programs import SCRIPT_PROGRAMS
from tiny_programs import TINY_PROGRAMS

PAGE = HERE.parents[1] / "docs" / "users" / "cookbook.md"
BEGIN, END = "<!-- tests/cookbook/page.py writes from here -->\n", "<!-- to here -->\n"
RUN = PROGRAMS + TINY_PROGRAMS + SCRIPT_PROGRAMS
SHOWN = 3
"""Programs that a line names; the others are counted."""


def starting(module: str, programs: tuple[Program, ...]) -> list[Program]:
    """Returns the programs that start a module."""
    return [program for program in programs if module in program.modules]


def uncovered(known: dict[str, str]) -> list[str]:
    """Returns the modules of the cookbook that are programs and that nothing starts."""
    return [name for name, kind in known.items() if kind == "program" and not starting(name, RUN + REASONS)]


def line(module: str) -> str:
    """Returns the row of a module."""
    name = module.removeprefix(f"{inventory.PACKAGE}.")
    if found := starting(module, RUN):
        names = [f"`{program.name}`" for program in found[:SHOWN]]
        more = f" and {len(found) - SHOWN} more" if len(found) > SHOWN else ""
        return f"| `{name}` | {', '.join(names)}{more} |\n"
    (refused,) = starting(module, REASONS)
    return f"| `{name}` | does not run here: {refused.reason} |\n"


def table(known: dict[str, str]) -> str:
    """Returns the table, and what else the package has."""
    programs = [name for name, kind in known.items() if kind == "program"]
    run = sum(bool(starting(name, RUN)) for name in programs)
    modules = len(known) - len(programs)
    lines = "".join(map(line, programs))
    return (
        f"{run} of the cookbook's {len(programs)} programs run. Of the {modules} other modules of its recipes,\n"
        f"{modules - len(ABSENT)} are imported, and {len(ABSENT)} lack a package that is not installed.\n\n"
        f"| module | run as |\n|---|---|\n{lines}"
    )


def written(page: str) -> str:
    """Returns the page with the present table."""
    before, _, rest = page.partition(BEGIN)
    _, _, after = rest.partition(END)
    return f"{before}{BEGIN}\n{table(inventory.listed())}\n{END}{after}"


if __name__ == "__main__" and sys.argv[1:] == ["--write"]:
    PAGE.write_text(written(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
