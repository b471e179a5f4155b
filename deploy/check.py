"""Checks the templates of this folder: `make deploy-check` installs the tools."""

import pathlib
import shutil
import subprocess
import sys
import tempfile

import yaml

HERE = pathlib.Path(__file__).resolve().parent
TOOLS = pathlib.Path(sys.executable).parent
# systemd-analyze looks up a unit's program, which need not be installed on the checking machine.
PROGRAM = ("/usr/bin/trainyard", "/bin/true")


def run(*command, complaint: str | None = None) -> None:
    """Ends this program if a command fails or prints a complaint."""
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True)
    if done.returncode != 0 or (complaint and complaint in done.stderr):
        sys.exit(f"{' '.join(map(str, command))}\n{done.stdout}{done.stderr}")


def check_units() -> None:
    if not shutil.which("systemd-analyze"):
        return print("    systemd-analyze is not installed: units were not checked", file=sys.stderr)
    with tempfile.TemporaryDirectory() as folder:
        for unit in sorted((HERE / "systemd").glob("*.service")):
            copy = pathlib.Path(folder) / unit.name
            copy.write_text(unit.read_text().replace(*PROGRAM))
            # systemd-analyze only warns about unknown settings, and succeeds.
            run("systemd-analyze", "verify", "--man=no", copy, complaint=unit.name)


def check_images() -> None:
    images = sorted((HERE / "docker").glob("Dockerfile*"))
    assert [image.name for image in images] == ["Dockerfile", "Dockerfile.cuda"], images
    for image in images:
        run(TOOLS / "hadolint", image)
    # Both build and start the server in the same way; the other file also adds libraries and settings.
    plain, cuda = ([line for line in image.read_text().splitlines() if line[:1] not in "#"] for image in images)
    missing = set(plain) - set(cuda)
    assert missing == {"FROM debian:bookworm-slim"}, f"Dockerfile.cuda lacks {missing}"


def check_compose() -> None:
    compose = yaml.safe_load((HERE / "docker" / "compose.yaml").read_text())
    volumes, secrets = set(compose["volumes"]), set(compose["secrets"])
    for name, service in compose["services"].items():
        named = {mount.split(":")[0] for mount in service.get("volumes", []) if mount[0].isalpha()}
        assert named <= volumes, f"{name}: unknown volumes {named - volumes}"
        assert set(service.get("secrets", [])) <= secrets, f"{name}: unknown secrets"
        if build := service.get("build"):
            assert (HERE / "docker" / build["context"] / build["dockerfile"]).is_file(), f"{name}: no such Dockerfile"


def check_compose_on_gpus() -> None:
    """Its worker is one of compose.yaml, with the other image and a GPU; what that service has stays."""
    folder = HERE / "docker"
    base, gpu = (yaml.safe_load((folder / name).read_text()) for name in ("compose.yaml", "compose.gpu.yaml"))
    assert set(gpu) == {"services"} and set(gpu["services"]) == {"worker"}, "compose.gpu.yaml changes workers alone"
    worker, plain = gpu["services"]["worker"], base["services"]["worker"]
    assert (folder / worker["build"]["context"] / worker["build"]["dockerfile"]).name == "Dockerfile.cuda"
    assert worker["image"] != plain["image"], "an image of its own"
    (device,) = worker["deploy"]["resources"]["reservations"]["devices"]
    assert device["driver"] == "nvidia" and device["capabilities"] == ["gpu"], device
    assert worker["shm_size"] == "8gb" and "privileged" not in worker and "cap_add" not in worker, worker


def pod_of(document: dict) -> tuple[dict, dict]:
    """A manifest's pod, and its container."""
    pod = document["spec"]["template"]["spec"]
    (container,) = pod["containers"]
    return pod, container


def check_gpu_variant(name: str) -> None:
    """A manifest for GPUs is that for processors, but for its names, its image, and what a GPU and NCCL need."""
    folder = HERE / "kubernetes"
    service = f"trainyard-{name}"
    text = (folder / f"{name}-gpu.yaml").read_text().replace(f"{service}-gpu", service)
    plain = list(yaml.safe_load_all((folder / f"{name}.yaml").read_text()))
    found = list(yaml.safe_load_all(text))
    (pod, container), (plain_pod, plain_container) = pod_of(found[0]), pod_of(plain[0])
    assert container.pop("image") == "trainyard-cuda:latest" and plain_container.pop("image") == "trainyard:latest"
    resources = container.pop("resources")
    plain_container.pop("resources")
    assert resources["limits"].pop("nvidia.com/gpu") == 1, f"{name}-gpu.yaml: no GPU"
    assert resources["limits"]["memory"] == resources["requests"]["memory"], resources
    (shared,) = (volume for volume in pod["volumes"] if volume.get("emptyDir", {}).get("medium") == "Memory")
    pod["volumes"].remove(shared)
    container["volumeMounts"].remove({"name": shared["name"], "mountPath": "/dev/shm"})
    added = [entry for entry in container["env"] if entry not in plain_container["env"]]
    container["env"] = [entry for entry in container["env"] if entry not in added]
    assert {"name": "TRAINYARD_DEVICE", "value": "cuda"} in added, added
    assert {entry["name"] for entry in added} <= {"TRAINYARD_DEVICE", "NCCL_SOCKET_IFNAME", "CUDA_MODULE_LOADING"}, added
    assert found == plain, f"{name}-gpu.yaml differs from {name}.yaml in other things than a GPU needs"


def main() -> None:
    check_units()
    check_images()
    check_compose()
    check_compose_on_gpus()
    for name in ("worker", "ranks"):
        check_gpu_variant(name)
    for manifest in sorted((HERE / "kubernetes").glob("*.yaml")):
        run(sys.executable, TOOLS / "kubernetes-validate", "--strict", manifest)


if __name__ == "__main__":
    main()
