"""The GPU that servers find: the simulated one, whose libraries the Rust tests have built (`cuda-sim/`), or with
`TRAINYARD_TEST_ON_GPU` the machine's."""

import glob
import os
import pathlib
import shutil

from server import BINARY

ON_GPU = "TRAINYARD_TEST_ON_GPU" in os.environ

COUNT = len(glob.glob("/dev/nvidia[0-9]*")) if ON_GPU else 4
"""How many there are."""

DEVICE = "NVIDIA" if ON_GPU else "Simulated CUDA device"
"""What the driver calls the device."""


LIBRARIES = {
    "libcuda_sim_driver.so": ["libcuda.so"],
    "libcuda_sim_cublaslt.so": ["libcublasLt.so"],
    "libcuda_sim_nccl.so": ["libnccl.so", "libnccl.so.2"],
}
"""The names under which programs load what is built."""


SEVERAL = {"CUDASIM_DEVICES": str(COUNT), "CUDASIM_NCCL_TIMEOUT_MS": "600000", "TRAINYARD_RANK_TIMEOUT_SECONDS": "600"}
"""A GPU for each rank of a process, all of which share few cores and wait for each other as long as they take."""


def is_simulated() -> bool:
    """Whether all servers of the suite compute on the simulated GPU, which takes a thousand times as long: much of the same is less
    there."""
    return not ON_GPU and os.environ.get("TRAINYARD_DEVICE", "cpu").startswith("cuda")


def install(folder: pathlib.Path) -> pathlib.Path:
    """Puts the simulated libraries into a new folder, under the names of the real ones."""
    folder.mkdir()
    for built, names in LIBRARIES.items():
        for name in names:
            shutil.copy(BINARY.parent / "deps" / built, folder / name)
    return folder


def without_devices(monkeypatch):
    """Neither the simulated driver nor a real one shows a device."""
    monkeypatch.setenv("CUDASIM_DEVICES", "0")
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "-1")


def remove_symbol(library: pathlib.Path, symbol: str):
    """Takes a function away from a library, as if the installed one were too old for it."""
    name = f"\0{symbol}\0".encode()
    assert name in (content := library.read_bytes()), f"{library} has no {symbol}"
    # A new file: processes may have the old one mapped.
    library.unlink()
    library.write_bytes(content.replace(name, b"\0_" + name[2:]))
