"""Writes `reference/` (files of every kind, and their pixels as PIL decodes them), `refused/`, `large/` and the corpora
`tests/fuzz/images_*`.

    python images/tests/make.py

needs numpy, Pillow 12 or later, and `cjpeg` and `jpegtran` of libjpeg-turbo.
"""

import io
import shutil
import struct
import subprocess
import zlib
from pathlib import Path

import numpy as np
from PIL import Image

HERE = Path(__file__).parent
FUZZ = HERE.parent.parent / "tests" / "fuzz"
RANDOM = np.random.default_rng(33)


def folder(path):
    shutil.rmtree(path, ignore_errors=True)
    path.mkdir(parents=True)
    return path


REFERENCE, REFUSED, LARGE = (folder(HERE / name) for name in ("reference", "refused", "large"))


def picture(width, height, noise=12):
    y, x = np.mgrid[0:height, 0:width]
    waves = [128 + 110 * np.sin(x / 4 + y / 7), 128 + 110 * np.cos(x / 5 - y / 6), (x * 7 + y * 5) % 256]
    values = np.stack(waves, -1) + RANDOM.integers(-noise, noise + 1, (height, width, 3))
    return Image.fromarray(np.clip(values, 0, 255).astype(np.uint8))


def saved(image, kind, **settings):
    buffer = io.BytesIO()
    image.save(buffer, kind, **settings)
    return buffer.getvalue()


def jpeg(image, **settings):
    return saved(image, "JPEG", **settings)


def png(image, **settings):
    return saved(image, "PNG", **settings)


def add(name, extension, data):
    (REFERENCE / f"{name}.{extension}").write_bytes(data)
    image = Image.open(io.BytesIO(data)).convert("RGB")
    image.info = {}
    image.save(REFERENCE / f"{name}.expected.png", optimize=True)


def run(data, *command):
    return subprocess.run(command, input=data, stdout=subprocess.PIPE, check=True).stdout


def with_scans(data, script):
    """The same coefficients in other scans."""
    path = HERE / "scans.txt"
    path.write_text(script)
    try:
        return run(data, "jpegtran", "-scans", str(path))
    finally:
        path.unlink()


def with_sampling(data, luminance, colours=0x11, size=None):
    """The same blocks in another arrangement."""
    at = data.index(b"\xff\xc2" if b"\xff\xc2" in data else b"\xff\xc0")
    changed = bytearray(data)
    if size:
        changed[at + 5 : at + 9] = struct.pack(">HH", size[1], size[0])
    changed[at + 11] = luminance
    changed[at + 14] = changed[at + 17] = colours
    return bytes(changed)


def chunk(name, data):
    return struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))


def raw_png(width, height, depth, colour, rows, extra=b"", interlaced=0):
    header = struct.pack(">IIBBBBB", width, height, depth, colour, 0, 0, interlaced)
    data = zlib.compress(b"".join(b"\0" + bytes(row) for row in rows))
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + extra + chunk(b"IDAT", data) + chunk(b"IEND", b"")


def adam7(image):
    values = np.array(image)
    steps = [(0, 0, 8, 8), (4, 0, 8, 8), (0, 4, 4, 8), (2, 0, 4, 4), (0, 2, 2, 4), (1, 0, 2, 2), (0, 1, 1, 2)]
    passes = [values[y::down, x::across] for x, y, across, down in steps]
    rows = [row.tobytes() for part in passes if part.size for row in part]
    return raw_png(image.width, image.height, 8, 2, rows, interlaced=1)


BY_BIT = "0 1 2: 0-0, 0, 3;\n0 1 2: 0-0, 3, 2;\n0 1 2: 0-0, 2, 1;\n0 1 2: 0-0, 1, 0;\n" + "".join(
    f"{c}: 1-9, 0, 2;\n{c}: 10-63, 0, 2;\n{c}: 1-63, 2, 1;\n{c}: 1-63, 1, 0;\n" for c in range(3)
)


def jpeg_files(image):
    for name, subsampling in (("444", 0), ("422", 1), ("420", 2)):
        add(f"sequential_{name}", "jpg", jpeg(image, quality=80, subsampling=subsampling))
        add(f"progressive_{name}", "jpg", jpeg(image, quality=90, subsampling=subsampling, progressive=True))
    add("411", "jpg", jpeg(image, quality=80, subsampling="4:1:1"))
    add("low_quality", "jpg", jpeg(image, quality=4))
    add("best_quality", "jpg", jpeg(picture(24, 17, 60), quality=100, subsampling=0))
    add("wide_tables", "jpg", run(saved(image, "PPM"), "cjpeg", "-quality", "1"))
    add("restarts", "jpg", jpeg(image, restart_marker_blocks=2))
    add("restarts_progressive", "jpg", jpeg(image, restart_marker_blocks=1, progressive=True))
    add("own_codes", "jpg", jpeg(image, optimize=True))
    for width, height in ((1, 1), (2, 3), (3, 2), (5, 1), (16, 16), (17, 8)):
        add(f"size_{width}x{height}", "jpg", jpeg(picture(width, height)))
    add("trailing_bytes", "jpg", jpeg(image) + b"garbage")
    plain = jpeg(image)
    tables = plain.index(b"\xff\xdb")
    add("bytes_before_marker", "jpg", plain[:tables] + b"\x00\x11" + plain[tables:])
    exif = Image.Exif()
    exif[0x112] = 6
    add("exif_rotated", "jpg", jpeg(image, exif=exif))

    add("separate_scans", "jpg", with_scans(jpeg(image, quality=80, subsampling=2), "0;\n1;\n2;\n"))
    add("scan_pairs", "jpg", with_scans(jpeg(image, quality=80, subsampling=1), "0 2;\n1;\n"))
    add("many_scans", "jpg", with_scans(jpeg(image, quality=85, subsampling=2), BY_BIT))

    dense, square = jpeg(image, quality=80, subsampling=0), jpeg(picture(32, 32), quality=80, subsampling=2)
    tall = image.size[::-1]
    add("440", "jpg", with_sampling(jpeg(image, quality=80, subsampling=1), 0x12, size=tall))
    add("440_progressive", "jpg", with_sampling(jpeg(image, subsampling=1, progressive=True), 0x12, size=tall))
    add("sampling_4x1", "jpg", with_sampling(square, 0x41, size=(60, 13)))
    add("sampling_1x4", "jpg", with_sampling(square, 0x14, size=(14, 59)))
    add("sampling_2x1_all", "jpg", with_sampling(with_scans(dense, "0;\n1;\n2;\n"), 0x21, 0x21))

    add("grey", "jpg", jpeg(image.convert("L")))
    add("grey_progressive", "jpg", jpeg(image.convert("L"), progressive=True))
    grey = bytearray(jpeg(image.convert("L")))
    grey[grey.index(b"\xff\xc0") + 11] = 0x22
    add("grey_2x2", "jpg", bytes(grey))
    add("rgb", "jpg", jpeg(image, keep_rgb=True))
    start = dense.index(b"\xff\xe0")
    end = start + 2 + struct.unpack(">H", dense[start + 2 : start + 4])[0]
    for name, transform in (("rgb", b"\0"), ("luminance", b"\1")):
        segment = b"\xff\xee\0\x0eAdobe\0\x64\0\0\0\0" + transform
        add(f"adobe_{name}", "jpg", dense[:start] + segment + dense[end:])
    add("no_application_marker", "jpg", dense[:start] + dense[end:])


def png_files(image):
    grey = image.convert("L")
    alpha = image.copy()
    alpha.putalpha(grey)
    add("rgb8", "png", png(image))
    add("grey8", "png", png(grey))
    add("one_bit", "png", png(image.convert("1")))
    add("rgba8", "png", png(alpha))
    add("grey_alpha8", "png", png(alpha.convert("LA")))
    for bits, colours in ((8, 200), (4, 11), (2, 4), (1, 2)):
        add(f"palette{bits}", "png", png(image.quantize(colours)))
    add("palette_transparent", "png", png(image.quantize(20), transparency=3))
    add("grey_transparent", "png", png(grey, transparency=7))
    add("rgb_transparent", "png", png(image, transparency=(1, 2, 3)))
    add("grey2", "png", raw_png(5, 2, 2, 0, [[0x1B, 0x40], [0xE4, 0xFF]]))
    add("grey4", "png", raw_png(3, 1, 4, 0, [[0x1B, 0xFF]]))
    palette = chunk(b"PLTE", bytes([9, 8, 7, 6, 5, 4]))
    add("palette_missing_colours", "png", raw_png(4, 1, 8, 3, [[0, 1, 2, 200]], palette))
    gamma = chunk(b"gAMA", struct.pack(">I", 100_000))
    add("gamma", "png", raw_png(2, 1, 8, 2, [[5, 6, 7, 8, 9, 10]], gamma))
    add("one_pixel", "png", png(picture(1, 1)))
    add("interlaced", "png", adam7(image))
    add("interlaced_small", "png", adam7(picture(3, 2)))


def refused_files():
    def add(name, data):
        (REFUSED / name).write_bytes(data)

    add("grey16.png", raw_png(4, 1, 16, 0, [struct.pack(">4H", 0, 200, 256, 65535)]))
    add("rgb16.png", raw_png(1, 1, 16, 2, [struct.pack(">3H", 1, 2, 3)]))
    add("no_palette.png", raw_png(4, 1, 8, 3, [bytes(4)]))
    frames = [picture(8, 8) for _ in range(3)]
    add("animated.png", png(frames[0], save_all=True, append_images=frames[1:], duration=40))
    add("cmyk.jpg", jpeg(picture(9, 9).convert("CMYK")))
    add("arithmetic.jpg", run(jpeg(picture(16, 16)), "jpegtran", "-arithmetic"))
    whole = jpeg(picture(32, 32), progressive=True)
    scans = [at for at in range(len(whole) - 1) if whole[at : at + 2] == b"\xff\xda"]
    add("missing_scans.jpg", whole[: scans[-2]] + b"\xff\xd9")


def large_files():
    flat = Image.new("RGBA", (1200, 900), (200, 100, 50, 255))
    (LARGE / "rgba.png").write_bytes(png(flat))
    flat = flat.convert("RGB")
    for name, subsampling in (("444", 0), ("420", 2)):
        (LARGE / f"sequential_{name}.jpg").write_bytes(jpeg(flat, subsampling=subsampling))
        (LARGE / f"progressive_{name}.jpg").write_bytes(jpeg(flat, subsampling=subsampling, progressive=True))


def corpora():
    sources = {
        "images_jpeg": "sequential_420 progressive_420 restarts restarts_progressive separate_scans many_scans grey 440"
        " sampling_4x1 rgb",
        "images_png": "rgb8 rgba8 palette4 palette_transparent one_bit grey_alpha8 interlaced gamma",
    }
    for name, files in sources.items():
        corpus = folder(FUZZ / name)
        extension = "png" if name == "images_png" else "jpg"
        for file in files.split():
            shutil.copy(REFERENCE / f"{file}.{extension}", corpus / file)
    for file in ("animated", "rgb16"):
        shutil.copy(REFUSED / f"{file}.png", FUZZ / "images_png" / file)


jpeg_files(picture(37, 29))
png_files(picture(19, 13))
refused_files()
large_files()
corpora()
