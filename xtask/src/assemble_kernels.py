"""Assembles the PTX of the CUDA kernels with NVIDIA's assembler, which needs no GPU, and lists what each kernel needs of a device.

assemble_kernels.py PTXAS PTX TABLE [check]: writes the table, or with `check` compares it with the one that is there. Both end with an
error where a kernel's registers do not fit.
"""

import pathlib
import re
import subprocess
import sys
import tempfile
import zlib

ARCHITECTURES = ["sm_80", "sm_90a", "sm_100a"]

HEAD = f"""\
# What kernels need, by NVIDIA's assembler {{version}} for {", ".join(ARCHITECTURES)}: for each of them registers of a thread, bytes of
# static shared memory of a block, and bytes of spilled registers. `make kernels` writes this file.
# source, checksum of its PTX, kernel, needs
"""

ENTRY = re.compile(r"Compiling entry function '(\w+)'")
SPILLS = re.compile(r"(\d+) bytes stack frame, (\d+) bytes spill stores, (\d+) bytes spill loads")
USED = re.compile(r"Used (\d+) registers")
SHARED = re.compile(r"(\d+) bytes smem")


def assemble(ptxas: str, source: pathlib.Path, architecture: str) -> dict[str, tuple[int, int, int]]:
    """Registers, bytes of shared memory, and spilled bytes of each kernel; the assembler's messages end the program."""
    with tempfile.TemporaryDirectory() as folder:
        command = [ptxas, "--verbose", f"--gpu-name={architecture}", str(source), "-o", f"{folder}/cubin"]
        done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"{source} does not assemble for {architecture}\n{done.stderr}")
    needs, kernel, spilled = {}, "", 0
    for line in done.stderr.splitlines():
        if found := ENTRY.search(line):
            kernel = found[1]
        elif found := SPILLS.search(line):
            spilled = sum(int(number) for number in found.groups())
        elif found := USED.search(line):
            shared = SHARED.search(line)
            needs[kernel] = (int(found[1]), int(shared[1]) if shared else 0, spilled)
    return needs


def table(ptxas: str, folder: pathlib.Path) -> str:
    version = re.search(r"V([\d.]+)", subprocess.run([ptxas, "--version"], capture_output=True, text=True).stdout)
    rows = []
    for source in sorted(folder.glob("*.ptx")):
        checksum = zlib.crc32(source.read_bytes())
        needs = [assemble(ptxas, source, architecture) for architecture in ARCHITECTURES]
        for kernel in sorted(needs[0]):
            spilled = [name for name, of in zip(ARCHITECTURES, needs) if of[kernel][2]]
            if spilled:
                sys.exit(f"{kernel} spills registers on {', '.join(spilled)}")
            columns = ["/".join(str(number) for number in of[kernel]) for of in needs]
            rows.append(" ".join([source.stem, f"{checksum:08x}", kernel, *columns]))
    return HEAD.format(version=version[1] if version else "") + "\n".join(rows) + "\n"


def main() -> None:
    ptxas, folder, path, *check = sys.argv[1:]
    found, path = table(ptxas, pathlib.Path(folder)), pathlib.Path(path)
    if not check:
        path.write_text(found)
    elif path.read_text() != found:
        sys.exit(f"{path} differs from what kernels need: run `make kernels`")


main()
