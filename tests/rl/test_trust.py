"""Files of a training run import nothing that the user did not name, and are checked field by field."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from cones import InputError
from cones.rl import Policy, load_policy, resume
from cones.rl.policy import Network

EVIL = "from pathlib import Path\nPath('imported').write_text('')\n"
SPACE = {"kind": "box", "shape": [3], "dtype": "float32"}
ACTION = {"kind": "discrete", "count": 2, "first": 0}


def evil_policy(folder: Path) -> Path:
    (folder / "evilmod.py").write_text(EVIL)
    network = Network((3, 2))
    path = folder / "a.policy.npz"
    spaces = {"observation": SPACE, "action": ACTION}
    Policy("evilmod:Env-v0", network, np.zeros(network.dim), np.zeros(3), np.ones(3), spaces).save(path)
    return path


def command(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "cones", *words], cwd=folder, capture_output=True, text=True, check=False
    )


@pytest.mark.parametrize("words", [("evaluate",), ("play", "--video", "a.gif")], ids=lambda words: words[0])
def test_a_policy_imports_nothing_that_was_not_named(words: tuple[str, ...], tmp_path: Path) -> None:
    path = evil_policy(tmp_path)
    done = command(tmp_path, *words, str(path))
    assert done.returncode == 2
    assert "--allow evilmod:Env-v0" in done.stderr
    assert not (tmp_path / "imported").exists()


def test_it_does_if_it_was_named(tmp_path: Path) -> None:
    done = command(tmp_path, "evaluate", str(evil_policy(tmp_path)), "--allow", "evilmod:Env-v0", "--threads", "1")
    assert (tmp_path / "imported").exists()
    assert "no environment that gymnasium can make" in done.stderr


@pytest.mark.parametrize(
    ("task", "settings", "name"),
    [
        ("evilmod:Env-v0", {}, "evilmod:Env-v0"),
        ("CartPole-v1", {"estimator": "evilmod:Estimator"}, "evilmod:Estimator"),
        ("CartPole-v1", {"shaping": "os:system"}, "os:system"),
    ],
)
def test_a_training_folder_imports_nothing_that_was_not_named(
    task: str, settings: dict[str, str], name: str, tmp_path: Path
) -> None:
    (tmp_path / "evilmod.py").write_text(EVIL)
    _experiment(tmp_path, {"task": task}, {"settings": settings})
    done = command(tmp_path, "resume", ".", "--quiet")
    assert done.returncode == 2
    assert f"--allow {name}" in done.stderr
    assert not (tmp_path / "imported").exists()


def _experiment(folder: Path, task: dict[str, object], method: dict[str, object]) -> None:
    tasks = {"task": "CartPole-v1", "timesteps": 100, "hidden": [], "bias": True, "sigma": 0.1, "episodes": 1}
    tasks |= {"evaluate_every": 5, "evaluation_episodes": 1, "target": None, **task}
    methods = {"label": "ES", "method": "es", "seeds": [0], "maxfev": None, "settings": {}, "note": "", **method}
    data = {"name": "training", "methods": [methods], "title": "", "tasks": [tasks]}
    (folder / "experiment.json").write_text(json.dumps(data))


@pytest.mark.parametrize(
    "change",
    [
        {"timesteps": "many"}, {"timesteps": 0}, {"hidden": ["x"]}, {"hidden": 3}, {"bias": None}, {"sigma": -1.0},
        {"episodes": 0.5}, {"evaluate_every": None}, {"task": 3}, {"target": "x"},
    ],
)  # fmt: skip
def test_edited_specifications_are_named(change: dict[str, object], tmp_path: Path) -> None:
    _experiment(tmp_path, change, {})
    with pytest.raises(InputError):
        resume(tmp_path)


@pytest.mark.parametrize(
    "change",
    [
        {"sizes": [3, 10**9, 2]}, {"sizes": "x"}, {"bias": 3}, {"task": None}, {"space": {}},
        {"space": {"observation": {**SPACE, "shape": [4]}, "action": ACTION}},
        {"space": {"observation": SPACE, "action": {**ACTION, "count": 10**12}}},
        {"space": {"observation": SPACE, "action": {**ACTION, "first": "x"}}},
        {"space": {"observation": {**SPACE, "dtype": "O"}, "action": ACTION}},
    ],
)  # fmt: skip
def test_edited_policies_are_refused(change: dict[str, object], tmp_path: Path) -> None:
    from cones.archive import read_archive, write_archive

    header, arrays = read_archive(path := evil_policy(tmp_path))
    write_archive(path, {**header, **change}, arrays)
    with pytest.raises(InputError, match="not a policy of cones"):
        load_policy(path, allow=["evilmod:Env-v0"])


FULL = """
import json, resource, sys, warnings
from cones.records import session
from cones import rl
session.KEEP_SECONDS = 0.0  # after every iteration
def follow(training):
    if training.iteration >= 2:  # as on a full disk: no file can grow beyond this size
        resource.setrlimit(resource.RLIMIT_FSIZE, (100, resource.RLIM_INFINITY))
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    trained = rl.train("CartPole-v1", "es", timesteps=1200, popsize=4, hidden=[], threads=1, out="run", callback=follow)
resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
kept = rl.resume("run", threads=1)
print(json.dumps([sorted({str(w.message) for w in caught}), trained.timesteps, kept.timesteps,
                  bool((kept.policy.parameters == trained.policy.parameters).all())]))
"""


@pytest.mark.skipif(sys.platform == "win32", reason="there are no limits of files")
def test_a_full_disk_warns_and_the_training_goes_on(tmp_path: Path) -> None:
    done = subprocess.run([sys.executable, "-c", FULL], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    messages, timesteps, resumed, same = json.loads(done.stdout)
    assert timesteps == resumed >= 1200
    assert same  # the checkpoint that was kept goes on to the same end
    assert any("could not be written" in message and "File too large" in message for message in messages)
    assert not list(tmp_path.rglob("*.part"))
