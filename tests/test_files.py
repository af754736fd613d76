"""Files are complete or not there, whatever happens to the process that writes them."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

import cones
from cones.files import atomic_write, parsed_json
from cones.records import Folder
from cones.rl import load_policy

KILLED = """
import os, signal, sys
from pathlib import Path
from cones.files import atomic_write
with atomic_write(Path(sys.argv[1])) as file:
    file.write(b"half of the ")
    file.flush()
    os.kill(os.getpid(), signal.SIGKILL)
"""


def test_the_new_takes_the_place_of_the_old(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    path.write_bytes(b"old")
    with atomic_write(path) as file:
        file.write(b"new")
        assert path.read_bytes() == b"old"
    assert path.read_bytes() == b"new"
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize("trouble", [OSError("disk full"), KeyboardInterrupt()])
def test_trouble_while_writing_leaves_the_old(tmp_path: Path, trouble: BaseException) -> None:
    path = tmp_path / "a.txt"
    path.write_bytes(b"old")

    def write() -> None:
        with atomic_write(path) as file:
            file.write(b"half of the ")
            raise trouble

    with pytest.raises(type(trouble)):
        write()
    assert path.read_bytes() == b"old"
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.skipif(sys.platform == "win32", reason="there is no SIGKILL")
def test_what_a_killed_process_leaves_is_cleared_away_by_the_next_write(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    path.write_bytes(b"old")
    for _ in range(2):
        child = subprocess.run([sys.executable, "-c", KILLED, str(path)], check=False)
        assert child.returncode == -signal.SIGKILL
        assert path.read_bytes() == b"old"
        assert len(list(tmp_path.iterdir())) == 2
    with atomic_write(path) as file:
        file.write(b"new")
    assert path.read_bytes() == b"new"
    assert list(tmp_path.iterdir()) == [path]


def test_a_link_stays_a_link(tmp_path: Path) -> None:
    target, link = tmp_path / "target", tmp_path / "link"
    target.write_bytes(b"old")
    link.symlink_to(target)
    with atomic_write(link) as file:
        file.write(b"new")
    assert link.is_symlink()
    assert target.read_bytes() == b"new"


WRITES_FOR_EVER = """
import sys
from pathlib import Path
from cones.files import atomic_write
while True:
    with atomic_write(Path(sys.argv[1])) as file:
        for _ in range(20):
            file.write(sys.argv[2].encode() * 10_000)
"""


def test_two_processes_that_write_one_file_do_not_meet(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    writers = [subprocess.Popen([sys.executable, "-c", WRITES_FOR_EVER, str(path), letter]) for letter in "ab"]
    try:
        while not path.exists():
            time.sleep(0.01)
        for _ in range(100):
            time.sleep(0.01)
            content = path.read_bytes()
            assert content in (b"a" * 200_000, b"b" * 200_000)
        assert [writer.poll() for writer in writers] == [None, None]  # neither has failed
    finally:
        for writer in writers:
            writer.kill()
            writer.wait()
    assert path.read_bytes() in (b"a" * 200_000, b"b" * 200_000)


def test_a_link_in_the_place_of_a_temporary_file_is_not_followed(tmp_path: Path, monkeypatch) -> None:
    victim, path = tmp_path / "victim", tmp_path / "a.txt"
    victim.write_text("precious")
    (tmp_path / ".a.txt.part").symlink_to(victim)
    names = ["0" * 16, "1" * 16]
    for name in names:
        (tmp_path / f".a.txt.{name}.part").symlink_to(victim)
    tokens = iter([*names, "2" * 16])
    monkeypatch.setattr("secrets.token_hex", lambda count: next(tokens))
    with atomic_write(path) as file:
        file.write(b"new")
    assert victim.read_text() == "precious"
    assert path.read_bytes() == b"new"


def test_a_nul_in_a_path_is_named(tmp_path: Path) -> None:
    path = f"{tmp_path}/a\0b"
    calls = [
        lambda: cones.minimize(lambda x: x @ x, [1.0], checkpoint=path),
        lambda: cones.resume(path, lambda x: x @ x),
        lambda: cones.load(path),
        lambda: cones.ES([1.0]).save(path),
        lambda: load_policy(path),
        lambda: Folder(path),
    ]
    for call in calls:
        with pytest.raises(cones.InputError, match="which contains a NUL character"):
            call()


def test_json_cannot_nest_without_bound() -> None:
    with pytest.raises(ValueError, match="nests too deeply"):
        parsed_json("[" * 100_000)
