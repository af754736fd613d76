"""One run at a time, whatever ends the one before: with real processes."""

from __future__ import annotations

import multiprocessing
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import numpy as np
import pytest

import cones
from cones import InputError
from cones.locks import locked
from cones.records import Folder

HOLDS = """
import os, sys, time
from pathlib import Path
from cones.locks import locked
with locked(Path(sys.argv[1]), "in use"):
    if sys.argv[2:] and os.fork() == 0:
        time.sleep(30)
        os._exit(0)
    print("locked", flush=True)
    time.sleep(30)
"""
RESUMES = """
import sys, time
import cones
def fun(x):
    print("evaluates", flush=True)
    time.sleep(0.05)
    return float(x @ x)
cones.resume(sys.argv[1], fun, maxiter=1000, xtol=None, ftol=None)
"""


def started(*command: str) -> subprocess.Popen[str]:
    """A process that has printed its first line."""
    process = subprocess.Popen([sys.executable, "-c", *command], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    assert process.stdout.readline()
    return process


def end(process: subprocess.Popen[str]) -> None:
    process.kill()
    process.communicate()


def test_another_process_is_refused_and_a_stale_lock_is_not_one(tmp_path: Path) -> None:
    path = tmp_path / ".lock"
    holder = started(HOLDS, str(path))
    try:
        with pytest.raises(InputError, match="in use"), locked(path, "in use"):
            pass
    finally:
        end(holder)
    assert path.exists()  # what a killed process leaves locks nothing
    with locked(path, "in use"):
        pass
    assert list(tmp_path.iterdir()) == []


def test_a_child_that_outlives_its_run_does_not_hold_the_lock(tmp_path: Path) -> None:
    command = [sys.executable, "-c", HOLDS, str(tmp_path / ".lock"), "forks"]
    holder = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, start_new_session=True)
    assert holder.stdout is not None
    try:
        assert holder.stdout.readline() == "locked\n"
        holder.kill()
        holder.wait()
        with locked(tmp_path / ".lock", "in use"):
            pass
    finally:
        os.killpg(holder.pid, signal.SIGKILL)  # the child
        holder.stdout.close()


def test_threads_of_one_process_exclude_each_other(tmp_path: Path) -> None:
    refused = []

    def other() -> None:
        try:
            with locked(tmp_path / ".lock", "in use"):
                pass
        except InputError as error:
            refused.append(str(error))

    with locked(tmp_path / ".lock", "in use"):
        thread = threading.Thread(target=other)
        thread.start()
        thread.join()
    assert refused == ["in use"]
    other()
    assert refused == ["in use"]


def test_a_link_is_not_followed_and_nothing_is_emptied(tmp_path: Path) -> None:
    victim = tmp_path / "victim"
    victim.write_text("precious")
    (tmp_path / "linked").mkdir()
    (tmp_path / "linked" / ".lock").symlink_to(victim)
    (tmp_path / "hard").mkdir()
    os.link(victim, tmp_path / "hard" / ".lock")
    for folder in ("linked", "hard"):
        with pytest.raises(cones.CheckpointError, match="could not be written"), Folder(tmp_path / folder).locked():
            pass
    assert victim.read_text() == "precious"
    (tmp_path / ".run.ckpt.lock").symlink_to(victim)
    with pytest.raises(cones.CheckpointError, match="could not be written"):
        cones.minimize(lambda x: float(x @ x), [1.0], checkpoint=tmp_path / "run.ckpt", maxiter=1)
    assert victim.read_text() == "precious"


def test_two_runs_on_one_checkpoint(tmp_path: Path) -> None:
    """The second is told; the first goes on; after a kill the second may."""
    path = tmp_path / "run.ckpt"
    cones.minimize(lambda x: float(x @ x), np.ones(3), rng=0, maxiter=2, checkpoint=path, checkpoint_every=1)
    first = started(RESUMES, str(path))
    try:
        with pytest.raises(InputError, match=r"another run is writing .*run\.ckpt"):
            cones.resume(path, lambda x: float(x @ x), maxiter=3)
        command = ["minimize", "losses:loss", "--dim", "3", "--checkpoint", str(path), "--resume"]
        done = subprocess.run(
            [sys.executable, "-m", "cones", *command],
            cwd=_with_loss(tmp_path),
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 2
        assert "another run is writing" in done.stderr
        assert first.poll() is None
    finally:
        end(first)
    assert cones.resume(path, lambda x: float(x @ x), maxiter=3, xtol=None, ftol=None).nit >= 2


def _with_loss(folder: Path) -> Path:
    (folder / "losses.py").write_text("def loss(x):\n    return float(x @ x)\n")
    return folder


def _wants(path: str, results: object) -> None:
    while True:
        try:
            with locked(Path(path), "in use"):
                held = os.open(path + ".held", os.O_CREAT | os.O_EXCL)  # fails if another holds the lock
                time.sleep(0.001)
                os.close(held)
                os.unlink(path + ".held")
                results.put("held")  # type: ignore[attr-defined]
                return
        except InputError:
            continue


def test_a_lock_that_comes_and_goes_has_one_owner_at_a_time(tmp_path: Path) -> None:
    context = multiprocessing.get_context("fork")
    results = context.SimpleQueue()
    wanting = [context.Process(target=_wants, args=(str(tmp_path / "lock"), results)) for _ in range(6)]
    for process in wanting:
        process.start()
    for process in wanting:
        process.join(30)
    assert [process.exitcode for process in wanting] == [0] * 6
    assert list(tmp_path.iterdir()) == []
