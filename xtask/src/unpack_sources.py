"""Usage: unpack_sources.py FOLDER_WITH_AN_ARCHIVE DESTINATION"""

import os, pathlib, shutil, sys, tarfile

folder, destination = map(pathlib.Path, sys.argv[1:])
(archive,) = folder.glob("*.tar.gz")
partial = destination.with_suffix(".partial")
shutil.rmtree(partial, ignore_errors=True)
with tarfile.open(archive) as members:
    members.extractall(partial, filter="data")
(top,) = partial.iterdir()
os.replace(top, destination)
partial.rmdir()
