"""Assembles the PTX of the CUDA kernels with NVIDIA's assembler, which does not need a GPU: writes the machine code for each architecture, and
a table of each kernel's needs on a device, and of the number of instructions for tensor cores in its machine code.

assemble_kernels.py PTXAS NVDISASM PTX TABLE CUBINS [check]: writes the table and a file of cubins for each source, or with `check` compares
them with the present files. Both end with an error if a kernel's registers do not fit, or if its machine code lacks tensor cores that
its PTX uses.

A file of cubins is compressed. It begins with a line with the checksum of the PTX and the assembler's version, a line with name and
bytes for each architecture, and an empty line; the cubins follow in this order. The assembler writes the same bytes each time; a file
with the same contents is not written again.
"""

import pathlib
import re
import subprocess
import sys
import tempfile
import zlib

import zstandard

ARCHITECTURES = ["sm_80", "sm_90", "sm_100", "sm_120"]

# The most that a reader needs no larger window for.
LEVEL = 19

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
"""Instructions for tensor cores in PTX."""

CODE = re.compile(r"^\.text\.(\w+):", re.MULTILINE)
TENSOR_CODE = re.compile(r"^\s*/\*[0-9a-f]+\*/\s+(?:@!?U?P\w+\s+)?(?:HMMA|IMMA|DMMA|BMMA|QMMA|OMMA|[HIQ]GMMA|UTC\w*MMA)\b", re.MULTILINE)
"""Those in machine code: of Ampere (`HMMA`), of Hopper's warp groups (`HGMMA`), and of Blackwell (`UTCHMMA`)."""


def sections(starts: re.Pattern, text: str) -> dict[str, str]:
    """Returns the parts of a text by name, each from one start to the next."""
    _, *parts = starts.split(text)
    return dict(zip(parts[::2], parts[1::2]))


def tensor_instructions(nvdisasm: str, cubin: str) -> dict[str, int]:
    """Counts the instructions for tensor cores of each kernel."""
    done = subprocess.run([nvdisasm, "--print-code", cubin], capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"{cubin} cannot be disassembled\n{done.stderr}")
    return {name: len(TENSOR_CODE.findall(code)) for name, code in sections(CODE, done.stdout).items()}


Needs = dict[str, tuple[int, int, int, int]]
"""Of each kernel: registers, bytes of shared memory, spilled bytes, instructions for tensor cores."""


def assemble(tools: tuple[str, str], source: pathlib.Path, architecture: str) -> tuple[bytes, Needs]:
    """Returns machine code and the needs of its kernels; messages of the assembler end the program."""
    ptxas, nvdisasm = tools
    with tempfile.TemporaryDirectory() as folder:
        command = [ptxas, "--verbose", f"--gpu-name={architecture}", str(source), "-o", f"{folder}/cubin"]
        done = subprocess.run(command, capture_output=True, text=True)
        if done.returncode:
            sys.exit(f"{source} does not assemble for {architecture}\n{done.stderr}")
        tensor = tensor_instructions(nvdisasm, f"{folder}/cubin")
        cubin = pathlib.Path(folder, "cubin").read_bytes()
    needs, kernel, spilled = {}, "", 0
    for line in done.stderr.splitlines():
        if found := ENTRY.search(line):
            kernel = found[1]
        elif found := SPILLS.search(line):
            spilled = sum(int(number) for number in found.groups())
        elif found := USED.search(line):
            shared = SHARED.search(line)
            needs[kernel] = (int(found[1]), int(shared[1]) if shared else 0, spilled, tensor[kernel])
    return cubin, needs


def joined(checksum: int, version: str, cubins: list[bytes]) -> bytes:
    """Returns the contents of a file of cubins before compression."""
    lines = [f"ptx {checksum:08x}, assembler {version}"]
    lines += [f"{name} {len(cubin)}" for name, cubin in zip(ARCHITECTURES, cubins)]
    return ("\n".join(lines) + "\n\n").encode() + b"".join(cubins)


def contents(path: pathlib.Path) -> bytes:
    """Returns the decompressed contents of a file; empty if it is missing or broken."""
    try:
        return zstandard.ZstdDecompressor().decompress(path.read_bytes())
    except (OSError, zstandard.ZstdError):
        return b""


def results(tools: tuple[str, str], folder: pathlib.Path) -> tuple[str, dict[str, bytes]]:
    """Returns the table, and the cubins of each source."""
    said = subprocess.run([tools[0], "--version"], capture_output=True, text=True).stdout
    version = found[1] if (found := re.search(r"V([\d.]+)", said)) else ""
    rows, cubins = [], {}
    for source in sorted(folder.glob("*.ptx")):
        checksum = zlib.crc32(source.read_bytes())
        asking = {name for name, text in sections(PTX_KERNEL, source.read_text()).items() if TENSOR_PTX.search(text)}
        assembled = [assemble(tools, source, architecture) for architecture in ARCHITECTURES]
        cubins[source.stem] = joined(checksum, version, [cubin for cubin, _ in assembled])
        needs = [of for _, of in assembled]
        for kernel in sorted(needs[0]):
            spilled = [name for name, of in zip(ARCHITECTURES, needs) if of[kernel][2]]
            if spilled:
                sys.exit(f"{kernel} spills registers on {', '.join(spilled)}")
            if lacking := [name for name, of in zip(ARCHITECTURES, needs) if (of[kernel][3] > 0) != (kernel in asking)]:
                sys.exit(f"{kernel}: its PTX and its machine code for {', '.join(lacking)} differ in whether they use tensor cores")
            columns = ["/".join(str(number) for number in of[kernel]) for of in needs]
            rows.append(" ".join([source.stem, f"{checksum:08x}", kernel, *columns]))
    return HEAD.format(version=version) + "\n".join(rows) + "\n", cubins


def main() -> None:
    ptxas, nvdisasm, *paths = sys.argv[1:6]
    folder, path, target = (pathlib.Path(argument) for argument in paths)
    table, cubins = results((ptxas, nvdisasm), folder)
    files = {target / f"{name}.zst": found for name, found in cubins.items()}
    differing = [file for file, found in files.items() if contents(file) != found]
    superfluous = [file for file in target.glob("*.zst") if file not in files]
    if sys.argv[6:]:
        if path.read_text() != table:
            sys.exit(f"{path} differs from what kernels need: run `make kernels`")
        if wrong := sorted(differing + superfluous):
            sys.exit(f"{', '.join(map(str, wrong))}: not what the PTX assembles to: run `make kernels`")
        return
    path.write_text(table)
    target.mkdir(exist_ok=True)
    for file in superfluous:
        file.unlink()
    for file in differing:
        file.write_bytes(zstandard.ZstdCompressor(level=LEVEL, write_checksum=True).compress(files[file]))


main()
