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


def main() -> None:
    check_units()
    check_images()
    check_compose()
    for manifest in sorted((HERE / "kubernetes").glob("*.yaml")):
        run(sys.executable, TOOLS / "kubernetes-validate", "--strict", manifest)


if __name__ == "__main__":
    main()
