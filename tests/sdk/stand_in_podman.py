"""Stands in for podman: an image is a copy of its folder, and a command of a container runs below the container's root.

  stand_in_podman.py STATE VERB …

Images and containers are folders of STATE, and `calls` has the arguments of each call.
"""

import json
import os
import pathlib
import shutil
import subprocess
import sys

VALUED = {"--name", "--pids-limit", "--network", "--cpus", "--memory", "--entrypoint", "--env", "--user", "--workdir", "--tag"}
SYSTEM = """
cd "$0" || exit 125
for name in usr bin sbin lib lib64 etc dev proc; do
  if [ -L "/$name" ]; then ln -sfn "$(readlink "/$name")" "$name"
  elif [ -d "/$name" ]; then mkdir -p "$name"; mount --rbind "/$name" "$name" || exit 125; fi
done
where="$1"; shift
exec chroot . sh -c 'cd "$0" && exec "$@"' "$where" "$@"
"""
"""Gives a container the programs of this machine, and runs a command in one of its folders."""


def main(state: pathlib.Path, verb: str, *words: str) -> int:
    with open(state / "calls", "a") as calls:
        calls.write(json.dumps([verb, *words]) + "\n")
    rest, options = list(words), []
    if verb == "image":
        return 0 if image(state, rest[1]).is_dir() else 1
    while rest and rest[0].startswith("-"):
        key = rest.pop(0)
        options.append((key, rest.pop(0) if key in VALUED else ""))
    option = dict(options)
    if verb == "build":
        if pathlib.Path(rest[0], "broken").exists():
            print("Error: step 2 failed", file=sys.stderr)
            return 1
        shutil.copytree(rest[0], image(state, option["--tag"]))
    elif verb == "run":
        root = state / "running" / option["--name"]
        shutil.copytree(image(state, rest[0]), root / "app")
        (root / "tmp").mkdir()
    elif verb == "exec":
        env = {name: os.environ[name] for key, name in options if key == "--env"}
        env["PATH"] = "/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin"
        command = ["unshare", "--user", "--map-root-user", "--mount", "sh", "-c", SYSTEM]
        command += [str(state / "running" / rest[0]), option.get("--workdir", "/app"), *rest[1:]]
        code = subprocess.run(command, env=env, start_new_session=True).returncode
        return code if code >= 0 else 128 - code
    elif verb == "cp":
        name, _, into = rest[1].partition(":")
        shutil.copytree(rest[0].removesuffix("/."), state / "running" / name / into[1:], dirs_exist_ok=True)
    elif verb == "rm":
        shutil.rmtree(state / "running" / rest[0])
    else:
        print(f"Error: unknown command {verb}", file=sys.stderr)
        return 125
    return 0


def image(state: pathlib.Path, name: str) -> pathlib.Path:
    return state / "images" / name.replace(":", "_")


sys.exit(main(pathlib.Path(sys.argv[1]), *sys.argv[2:]))
