"""Archives are exactly what was written, and cost no more than their size."""

from __future__ import annotations

import hashlib
import io
import subprocess
import sys
import zipfile
from pathlib import Path

import numpy as np
import pytest

import cones
from cones.archive import read_archive, write_archive

ARRAYS = {
    "a": np.arange(6.0).reshape(2, 3),
    "b": np.array([], dtype=np.float32),
    "c": np.asfortranarray(np.arange(12).reshape(3, 4)),
    "d": np.array(3.5),
    "e": np.array(["x", "yy"]),
}


def sealed(path: Path, body: bytes) -> Path:
    """A file of this zip with a checksum that is right."""
    path.write_bytes(body + hashlib.sha256(body).hexdigest().encode())
    return path


def zipped(members: dict[str, bytes], compression: int = zipfile.ZIP_STORED) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", compression) as archive:
        for name, content in members.items():
            archive.writestr(name, content)
        archive.comment = b"0" * 64
    return buffer.getvalue()[:-64]


def npy(shape: tuple[int, ...], dtype: str, content: bytes) -> bytes:
    buffer = io.BytesIO()
    np.lib.format.write_array_header_1_0(buffer, {"descr": dtype, "fortran_order": False, "shape": shape})
    return buffer.getvalue() + content


def test_what_is_written_is_read_and_numpy_reads_it_too(tmp_path: Path) -> None:
    path = tmp_path / "a.npz"
    write_archive(path, {"name": "ü", "inf": float("inf")}, ARRAYS)
    header, arrays = read_archive(path)
    assert header == {"name": "ü", "inf": float("inf")}
    with np.load(path) as plain:
        for name, array in ARRAYS.items():
            for found in (arrays[name], plain[name]):
                np.testing.assert_array_equal(found, array, strict=True)


def test_every_changed_byte_is_found(tmp_path: Path) -> None:
    path = tmp_path / "a.npz"
    write_archive(path, {"name": "x"}, {"a": np.arange(3.0)})
    whole = path.read_bytes()
    for place in range(len(whole)):
        damaged = bytearray(whole)
        damaged[place] ^= 1 << place % 8
        path.write_bytes(damaged)
        with pytest.raises((ValueError, zipfile.BadZipFile)):
            read_archive(path)


HEADER = npy((2,), "|u1", b"{}")


@pytest.mark.parametrize(
    ("members", "message"),
    [
        ({"header.npy": HEADER, "a.npy": npy((10**12,), "<f8", bytes(8))}, "bytes for an array"),
        ({"header.npy": HEADER, "a.npy": npy((0, 10**30), "<f8", bytes(8))}, "bytes for an array"),
        ({"header.npy": HEADER, "a.npy": npy((1,), "<f8", bytes(16))}, "bytes for an array"),
        ({"header.npy": HEADER, "a.npy": npy((1,), "|O", bytes(8))}, "an array of object"),
        ({"header.npy": HEADER, "a.npy": b"\x93NUMPY\x03\x00"}, "an array of version"),
        ({"a.npy": HEADER}, "no header"),
        ({"header.npy": HEADER, "header": HEADER}, "members that repeat"),
        ({"header.npy": npy((200_000,), "|u1", b"[" * 200_000)}, "nests too deeply"),
    ],
)
def test_contents_that_do_not_fit_are_refused(members: dict[str, bytes], message: str, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=message):
        read_archive(sealed(tmp_path / "a.npz", zipped(members)))


@pytest.mark.parametrize("compression", [zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA])
def test_compressed_members_are_refused(compression: int, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="compressed members"):
        read_archive(sealed(tmp_path / "a.npz", zipped({"header.npy": HEADER}, compression)))


LOADS = """
import resource, sys, time
import cones, cones.rl
before, begin = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, time.perf_counter()
load = cones.rl.load_policy if sys.argv[1].endswith(".npz") else cones.load
try:
    load(sys.argv[1])
except (cones.CheckpointError, cones.InputError):
    print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before, time.perf_counter() - begin)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="measures memory in kilobytes")
@pytest.mark.parametrize("name", ["bomb.ckpt", "bomb.npz"])
def test_a_bomb_costs_nothing(name: str, tmp_path: Path) -> None:
    """A few kilobytes that would be 256 MB, with a checksum that is right."""
    content = npy((1 << 28,), "|u1", bytes(1 << 28))
    path = sealed(tmp_path / name, zipped({"header.npy": content}, zipfile.ZIP_BZIP2))
    assert path.stat().st_size < 10_000
    done = subprocess.run([sys.executable, "-c", LOADS, str(path)], capture_output=True, text=True, check=True)
    kilobytes, seconds = map(float, done.stdout.split())
    assert kilobytes < 20_000
    assert seconds < 1.0


def test_old_files_are_named(tmp_path: Path) -> None:
    np.savez(tmp_path / "old.npz", header=np.frombuffer(b"{}", dtype=np.uint8))
    with pytest.raises(cones.CheckpointError, match="no checksum at its end: written by an earlier release"):
        cones.load(tmp_path / "old.npz")


def test_members_that_belong_to_nothing_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "run.ckpt"
    cones.ES([1.0, 2.0]).save(path)
    header, arrays = read_archive(path)
    write_archive(path, header, {**arrays, "more": np.zeros(3)})
    with pytest.raises(cones.CheckpointError, match="arrays that belong to nothing: more"):
        cones.load(path)
