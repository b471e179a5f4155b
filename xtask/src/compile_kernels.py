"""Compiles the CUDA kernels to PTX with NVIDIA's compiler library, which does not need a GPU.

compile_kernels.py LIBRARIES SOURCES PTX: each file of SOURCES but the preludes becomes a file of PTX, which begins with a checksum of what
it was made from, the compiler and its options. In front of it are the preludes whose names are a beginning of its own, the shortest first:
`prelude.cu`, `mixer_prelude.cu` and `mixer_gate.cu`. A file that already begins so is not written again: the compiler numbers registers
differently each time.
"""

import ctypes
import pathlib
import sys
import zlib

OPTIONS = ["--gpu-architecture=compute_80", "--std=c++17", "--fmad=false"]
PRELUDE = "prelude"
"""What the names of preludes end with."""

# The kernels use no newer instructions, and drivers refuse versions that they do not know: this is the version of CUDA 11.0.
VERSION = ".version 7.0"

# Hints that this version lacks.
HINT = '.pragma "used_bytes_mask'


def compile_source(nvrtc: ctypes.CDLL, name: str, source: bytes) -> str:
    """Returns the PTX of a source; messages of the compiler end the program."""
    program = ctypes.c_void_p()
    check(nvrtc.nvrtcCreateProgram(ctypes.byref(program), source, name.encode(), 0, None, None), "create a program")
    options = (ctypes.c_char_p * len(OPTIONS))(*(option.encode() for option in OPTIONS))
    failed = nvrtc.nvrtcCompileProgram(program, len(OPTIONS), options)
    log = text(nvrtc.nvrtcGetProgramLogSize, nvrtc.nvrtcGetProgramLog, program)
    if failed:
        sys.exit(f"{name} does not compile\n{log}")
    if log.strip():
        print(log, file=sys.stderr)
    return text(nvrtc.nvrtcGetPTXSize, nvrtc.nvrtcGetPTX, program)


def text(size_of, write, program) -> str:
    size = ctypes.c_size_t()
    check(size_of(program, ctypes.byref(size)), "ask for a size")
    buffer = ctypes.create_string_buffer(size.value)
    check(write(program, buffer), "read a result")
    return buffer.value.decode()


def check(status: int, what: str) -> None:
    if status:
        sys.exit(f"NVRTC refused to {what}: error {status}")


def main() -> None:
    libraries, sources, target = (pathlib.Path(argument) for argument in sys.argv[1:])
    nvrtc = ctypes.CDLL(str(libraries / "libnvrtc.so.12"))
    major, minor = ctypes.c_int(), ctypes.c_int()
    check(nvrtc.nvrtcVersion(ctypes.byref(major), ctypes.byref(minor)), "name its version")
    read = {path.stem: path.read_bytes() for path in sources.glob("*.cu")}
    preludes = sorted((name for name in read if name.endswith(PRELUDE)), key=len)
    names = read.keys() - set(preludes)
    target.mkdir(exist_ok=True)
    for old in target.glob("*.ptx"):
        if old.stem not in names:
            old.unlink()
    for name in sorted(names):
        in_front = [prelude for prelude in preludes if name.startswith(prelude.removesuffix(PRELUDE))]
        whole = b"".join(read[part] for part in (*in_front, name))
        head = f"// source {zlib.crc32(whole):08x}, compiler {major.value}.{minor.value}, {' '.join(OPTIONS)}\n"
        result = target / f"{name}.ptx"
        if result.exists() and result.read_text().startswith(head):
            continue
        ptx = compile_source(nvrtc, f"{name}.cu", whole)
        lines = [line.rstrip() for line in ptx.splitlines() if line.strip() and not line.startswith("//")]
        lines = [line for line in lines if not line.lstrip().startswith(HINT)]
        lines = [VERSION if line.startswith(".version ") else line for line in lines]
        result.write_text(head + "\n".join(lines) + "\n")


main()
