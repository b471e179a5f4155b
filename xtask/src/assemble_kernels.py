"""Assembles the PTX of the CUDA kernels with NVIDIA's assembler, which needs no GPU, and lists what each kernel needs of a device, and
how many instructions for tensor cores its machine code has.

assemble_kernels.py PTXAS NVDISASM PTX TABLE [check]: writes the table, or with `check` compares it with the one that is there. Both end
with an error where a kernel's registers do not fit, or where its machine code lacks tensor cores that its PTX asks for.
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
# static shared memory of a block, bytes of spilled registers, and instructions for tensor cores in the machine code, as NVIDIA's
# disassembler lists it. `make kernels` writes this file.
# source, checksum of its PTX, kernel, needs
"""

ENTRY = re.compile(r"Compiling entry function '(\w+)'")
SPILLS = re.compile(r"(\d+) bytes stack frame, (\d+) bytes spill stores, (\d+) bytes spill loads")
USED = re.compile(r"Used (\d+) registers")
SHARED = re.compile(r"(\d+) bytes smem")

PTX_KERNEL = re.compile(r"\.entry (\w+)\(")
TENSOR_PTX = re.compile(r"^\s*(?:@!?%\w+\s+)?(?:mma|wgmma|tcgen05)\.", re.MULTILINE)
"""What PTX has for tensor cores."""

CODE = re.compile(r"^\.text\.(\w+):", re.MULTILINE)
TENSOR_CODE = re.compile(r"^\s*/\*[0-9a-f]+\*/\s+(?:@!?U?P\w+\s+)?(?:HMMA|IMMA|DMMA|BMMA|QMMA|OMMA|[HIQ]GMMA|UTC\w*MMA)\b", re.MULTILINE)
"""What machine code has: of Ampere (`HMMA`), of Hopper's warp groups (`HGMMA`), and of Blackwell (`UTCHMMA`)."""


def sections(starts: re.Pattern, text: str) -> dict[str, str]:
    """Parts of a text, each from a start on, by the name in it."""
    _, *parts = starts.split(text)
    return dict(zip(parts[::2], parts[1::2]))


def tensor_instructions(nvdisasm: str, cubin: str) -> dict[str, int]:
    """Instructions for tensor cores of each kernel."""
    done = subprocess.run([nvdisasm, "--print-code", cubin], capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"{cubin} cannot be disassembled\n{done.stderr}")
    return {name: len(TENSOR_CODE.findall(code)) for name, code in sections(CODE, done.stdout).items()}


def assemble(tools: tuple[str, str], source: pathlib.Path, architecture: str) -> dict[str, tuple[int, int, int, int]]:
    """Registers, bytes of shared memory, spilled bytes and instructions for tensor cores of each kernel; the assembler's messages end
    the program."""
    ptxas, nvdisasm = tools
    with tempfile.TemporaryDirectory() as folder:
        command = [ptxas, "--verbose", f"--gpu-name={architecture}", str(source), "-o", f"{folder}/cubin"]
        done = subprocess.run(command, capture_output=True, text=True)
        if done.returncode:
            sys.exit(f"{source} does not assemble for {architecture}\n{done.stderr}")
        tensor = tensor_instructions(nvdisasm, f"{folder}/cubin")
    needs, kernel, spilled = {}, "", 0
    for line in done.stderr.splitlines():
        if found := ENTRY.search(line):
            kernel = found[1]
        elif found := SPILLS.search(line):
            spilled = sum(int(number) for number in found.groups())
        elif found := USED.search(line):
            shared = SHARED.search(line)
            needs[kernel] = (int(found[1]), int(shared[1]) if shared else 0, spilled, tensor[kernel])
    return needs


def table(tools: tuple[str, str], folder: pathlib.Path) -> str:
    version = re.search(r"V([\d.]+)", subprocess.run([tools[0], "--version"], capture_output=True, text=True).stdout)
    rows = []
    for source in sorted(folder.glob("*.ptx")):
        checksum = zlib.crc32(source.read_bytes())
        asking = {name for name, text in sections(PTX_KERNEL, source.read_text()).items() if TENSOR_PTX.search(text)}
        needs = [assemble(tools, source, architecture) for architecture in ARCHITECTURES]
        for kernel in sorted(needs[0]):
            spilled = [name for name, of in zip(ARCHITECTURES, needs) if of[kernel][2]]
            if spilled:
                sys.exit(f"{kernel} spills registers on {', '.join(spilled)}")
            if lacking := [name for name, of in zip(ARCHITECTURES, needs) if (of[kernel][3] > 0) != (kernel in asking)]:
                sys.exit(f"{kernel}: its PTX and its machine code for {', '.join(lacking)} differ in whether they use tensor cores")
            columns = ["/".join(str(number) for number in of[kernel]) for of in needs]
            rows.append(" ".join([source.stem, f"{checksum:08x}", kernel, *columns]))
    return HEAD.format(version=version[1] if version else "") + "\n".join(rows) + "\n"


def main() -> None:
    ptxas, nvdisasm, folder, path, *check = sys.argv[1:]
    found, path = table((ptxas, nvdisasm), pathlib.Path(folder)), pathlib.Path(path)
    if not check:
        path.write_text(found)
    elif path.read_text() != found:
        sys.exit(f"{path} differs from what kernels need: run `make kernels`")


main()
