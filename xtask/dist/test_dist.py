"""Packages of a tiny program that the C compiler makes: what they contain, that they install, and what is refused."""

import csv
import hashlib
import importlib.util
import io
import json
import pathlib
import shutil
import subprocess
import tarfile
import tempfile
import unittest
import zipfile
from unittest import mock

import archive
import crates
import debian
import dist
import elf
import licences
import sbom
import wheel
from package import Contents, Refused, Release

RELEASE = Release("1.2.3-rc.1", 1_700_000_000)
PROGRAM = """
#include <stdio.h>
int main(int argc, char **argv) { printf("trainyard 1.2.3-rc.1, %d\\n", argc); return argc == 3; }
"""


def compiled(folder: pathlib.Path, *flags: str, source: str = PROGRAM) -> pathlib.Path:
    """A program for this machine."""
    path = folder / "program"
    (folder / "program.c").write_text(source)
    subprocess.run(["cc", "-o", str(path), str(folder / "program.c"), *flags], check=True)
    return path


class Packages(unittest.TestCase):
    """Each test has a folder and a program."""

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        self.binary = dist.strip(compiled(self.folder), self.folder / "trainyard")
        self.program = elf.read(self.binary)
        self.contents = Contents(self.binary, dist.REPOSITORY, b"licences\n", b"{}\n")
        self.out = self.folder / "out"
        self.out.mkdir()

    def test_the_platform_is_the_newest_version_that_objdump_shows(self):
        if shutil.which("objdump") is None:
            self.skipTest("objdump is not installed")
        shown = subprocess.run(["objdump", "-T", self.binary], capture_output=True, text=True, check=True).stdout
        versions = [word.strip("()") for word in shown.split() if word.strip("()").startswith("GLIBC_")]
        newest = max(tuple(map(int, version[len("GLIBC_") :].split(".")))[:2] for version in versions)
        self.assertEqual(self.program.glibc, newest)
        architecture = self.program.architecture
        self.assertEqual(self.program.platform, f"manylinux_{newest[0]}_{newest[1]}_{architecture}")
        self.assertIn("libc.so.6", self.program.libraries)

    def test_versions_of_symbols_are_compared_as_numbers(self):
        names = ["GLIBC_2.9", "GLIBC_2.17", "GLIBC_2.3.4", "GCC_3.0"]
        with mock.patch.object(elf, "_versions", return_value=names):
            self.assertEqual(elf.read(self.binary).glibc, (2, 17))
        with mock.patch.object(elf, "_versions", return_value=[*names, "GLIBC_ABI_DT_RELR"]):
            self.assertEqual(elf.read(self.binary).glibc, (2, 36))
        with mock.patch.object(elf, "_versions", return_value=[*names, "GLIBC_PRIVATE"]):
            self.assertRaisesRegex(elf.NotDistributable, "GLIBC_PRIVATE", elf.read, self.binary)

    def test_programs_that_would_not_run_elsewhere_are_refused(self):
        other = self.folder / "other"
        other.write_text("#!/bin/sh\n")
        self.assertRaisesRegex(elf.NotDistributable, "expected a little-endian", elf.read, other)
        with mock.patch.object(elf, "_libraries", return_value=["libc.so.6", "libssl.so.3"]):
            self.assertRaisesRegex(elf.NotDistributable, "needs libssl.so.3", elf.read, self.binary)
        with mock.patch.object(elf, "_versions", return_value=[]):
            self.assertRaisesRegex(elf.NotDistributable, "names no version", elf.read, self.binary)

    def test_the_wheel_is_installed_and_its_program_runs(self):
        path = wheel.build(RELEASE, self.program, self.contents, self.out)
        self.assertEqual(path.name, f"trainyard_server-1.2.3rc1-py3-none-{self.program.platform}.whl")
        environment = dist.install(self.folder / "venv", [path])
        script = environment / "bin" / "trainyard"
        self.assertEqual(dist.run([script, "one"]), "trainyard 1.2.3-rc.1, 2")
        self.assertRaises(Refused, dist.run, [script, "one", "two"])
        self.assertEqual(script.read_bytes(), self.binary.read_bytes())
        shown = dist.run([environment / "bin" / "python", "-m", "pip", "show", "trainyard-server"])
        self.assertIn("Version: 1.2.3rc1", shown)

    def test_the_record_of_the_wheel_lists_each_file_with_its_digest(self):
        path = wheel.build(RELEASE, self.program, self.contents, self.out)
        with zipfile.ZipFile(path) as opened:
            names = opened.namelist()
            (record,) = [name for name in names if name.endswith("/RECORD")]
            lines = list(csv.reader(io.StringIO(opened.read(record).decode())))
            self.assertEqual([line[0] for line in lines], names)
            for name, digest, size in lines:
                if name != record:
                    data = opened.read(name)
                    self.assertEqual((digest, size), (f"sha256={wheel.digest(data)}", str(len(data))))
        self.assertTrue(any(name.endswith("licenses/LICENSE") for name in names))

    def test_a_wheel_that_is_too_large_is_refused(self):
        path = wheel.build(RELEASE, self.program, self.contents, self.out)
        size = path.stat().st_size
        wheel.ensure_size(path, size)
        text = f"has {size} bytes, expected at most {size - 1}"
        self.assertRaisesRegex(Refused, text, wheel.ensure_size, path, size - 1)

    def test_the_same_input_gives_the_same_bytes(self):
        (self.folder / "again").mkdir()
        builders = [wheel.build]
        builders += [archive.build] if importlib.util.find_spec("zstandard") else []
        builders += [debian.build] if shutil.which("dpkg-deb") else []
        for build in builders:
            first, second = (build(RELEASE, self.program, self.contents, self.folder / out) for out in ("out", "again"))
            self.assertEqual(first.name, second.name)
            self.assertEqual(hashlib.sha256(first.read_bytes()).digest(), hashlib.sha256(second.read_bytes()).digest())

    def test_the_archive_has_one_folder_with_a_program_that_runs(self):
        with tarfile.open(fileobj=io.BytesIO(archive.tar(RELEASE, self.contents, "trainyard"))) as opened:
            self.assertTrue(all(name.startswith("trainyard/") for name in opened.getnames()))
            self.assertIn("trainyard/systemd/trainyard-worker.service", opened.getnames())
            opened.extractall(self.out, filter="data")
        self.assertEqual(dist.run([self.out / "trainyard" / "bin" / "trainyard"]), "trainyard 1.2.3-rc.1, 1")

    def test_the_debian_package_installs_the_program_and_names_its_libraries(self):
        if shutil.which("dpkg-deb") is None:
            self.skipTest("dpkg-deb is not installed")
        path = debian.build(RELEASE, self.program, self.contents, self.out)
        self.assertIn("_1.2.3~rc.1_", path.name)
        depends = dist.run(["dpkg-deb", "--field", path, "Depends"])
        self.assertEqual(depends, f"libc6 (>= {self.program.glibc[0]}.{self.program.glibc[1]})")
        dist.run(["dpkg-deb", "--extract", path, self.folder / "root"])
        self.assertEqual(dist.run([self.folder / "root/usr/bin/trainyard"]), "trainyard 1.2.3-rc.1, 1")
        self.assertTrue((self.folder / "root/usr/lib/systemd/system/trainyard-api.service").is_file())
        self.assertTrue((self.folder / "root/usr/share/doc/trainyard/copyright").is_file())


def package(name: str, folder: str = "/none", kind: str = "lib") -> dict:
    """An entry of `cargo metadata`."""
    return {
        "id": name,
        "name": name,
        "version": "1.0.0",
        "license": "MIT/Apache-2.0",
        "description": "Of a test.",
        "manifest_path": f"{folder}/Cargo.toml",
        "targets": [{"kind": [kind]}],
    }


def node(name: str, **dependencies: str | None) -> dict:
    """A package with its dependencies, by kind."""
    deps = [{"pkg": used.replace("_", "-"), "dep_kinds": [{"kind": kind}]} for used, kind in dependencies.items()]
    return {"id": name, "deps": deps}


class BillOfMaterials(unittest.TestCase):
    """A small workspace."""

    def setUp(self):
        names = ["trainyard-server", "scheduler", "sqlx", "cc", "proptest", "unrelated"]
        self.metadata = {
            "packages": [*(package(name) for name in names), package("derive", kind="proc-macro")],
            "workspace_members": ["scheduler", "trainyard-server"],
            "resolve": {
                "nodes": [
                    node("trainyard-server", scheduler=None, derive=None, proptest="dev"),
                    node("scheduler", sqlx=None),
                    node("sqlx", cc="build"),
                    *(node(name) for name in ("cc", "proptest", "unrelated", "derive")),
                ]
            },
        }
        self.lock = {"package": [{"name": "sqlx", "version": "1.0.0", "checksum": "ab" * 32}]}

    def test_it_has_what_the_program_links_and_nothing_else(self):
        found = crates.select(self.metadata, self.lock)
        self.assertEqual([crate.name for crate in found], ["trainyard-server", "scheduler", "sqlx"])
        document = json.loads(sbom.build(RELEASE, found))
        self.assertEqual(document["metadata"]["component"]["type"], "application")
        library = document["components"][1]
        self.assertEqual(library["licenses"], [{"expression": "MIT OR Apache-2.0"}])
        self.assertEqual(library["hashes"], [{"alg": "SHA-256", "content": "ab" * 32}])
        references = [entry["bom-ref"] for entry in [document["metadata"]["component"], *document["components"]]]
        self.assertEqual([entry["ref"] for entry in document["dependencies"]], references)
        self.assertEqual(document["dependencies"][1]["dependsOn"], ["pkg:cargo/sqlx@1.0.0"])
        self.assertEqual(sbom.build(RELEASE, found), sbom.build(RELEASE, found))

    def test_a_workspace_without_the_server_is_refused(self):
        self.metadata["workspace_members"] = ["scheduler"]
        self.assertRaisesRegex(Refused, "trainyard-server", crates.select, self.metadata, self.lock)

    def test_each_licence_is_there_once(self):
        with tempfile.TemporaryDirectory() as name:
            folder = pathlib.Path(name)
            (folder / "LICENSE-MIT").write_text("Permission is hereby granted\r\n")
            (folder / "license.rs").write_text("no licence")
            found = [crates.Crate(crate, "1.0.0", "MIT", "", "ab", folder, ()) for crate in ("first", "second")]
            found.append(crates.Crate("own", "1.0.0", "Apache-2.0", "", None, folder, ()))
            text = licences.build(found).decode()
        self.assertEqual(text.count("Permission is hereby granted"), 1)
        self.assertIn("first 1.0.0\nsecond 1.0.0\n", text)
        self.assertNotIn("no licence", text)
        self.assertNotIn("own 1.0.0", text)


class Versions(unittest.TestCase):
    """Versions in the ways of Cargo, Python and Debian."""

    def test_versions_are_translated(self):
        for cargo, python, deb in [("0.1.0", "0.1.0", "0.1.0"), ("1.0.0-beta.2", "1.0.0b2", "1.0.0~beta.2")]:
            release = Release(cargo, 0)
            self.assertEqual((release.python_version, release.debian_version), (python, deb))
        with self.assertRaisesRegex(Refused, "expected x.y.z"):
            _ = Release("1.0.0-nightly", 0).python_version


if __name__ == "__main__":
    unittest.main()
