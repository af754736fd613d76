"""Files are complete or not there, whatever happens to the process that writes them."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import pytest

from cones.files import atomic_write

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
