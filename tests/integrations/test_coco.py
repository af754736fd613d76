"""Against COCO itself: its problems are evaluated, its post-processing reads the data."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import cocoex
import numpy as np
import pytest

from cones.cli import main
from cones.errors import InputError
from cones.integrations.coco import SUITES, run_suite

TINY: dict[str, Any] = {"suite": "bbob", "dimensions": [2], "functions": [1], "instances": [1], "popsize": 6}

READ = """
import json, sys, warnings
warnings.simplefilter("ignore")  # it has no network, and has never seen so few instances
import cocopp
from cocopp.pproc import DataSetList
found = [
    [d.funcId, d.dim, list(map(int, d.instancenumbers)), list(d.maxevals), list(d.finalfunvals)]
    for d in DataSetList([sys.argv[1]])
]
print("FOUND" + json.dumps(found))
"""


def read_by_cocopp(folder: Path, home: Path) -> list[Any]:
    """In a process of its own: importing cocopp changes warnings, and keeps archives at home."""
    environment = {**os.environ, "HOME": str(home), "MPLCONFIGDIR": str(home)}
    command = [sys.executable, "-c", READ, str(folder)]
    done = subprocess.run(command, capture_output=True, text=True, check=True, env=environment)
    (line,) = [line for line in done.stdout.splitlines() if line.startswith("FOUND")]
    return json.loads(line.removeprefix("FOUND"))


def test_the_command_writes_what_cocopp_reads(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "the data"
    arguments = ["--suite", "bbob-largescale", "--dimensions", "20,40", "--functions", "1,3", "--instances", "1-2"]
    assert main(["bench", "coco", *arguments, "--budget", "30", "--popsize", "20", "--out", str(out)]) == 0
    output = capsys.readouterr()
    assert "of 8 problems solved with" in output.out
    assert f"python -m cocopp '{out}'" in output.out
    assert "of 8 problems" in output.err
    found = read_by_cocopp(out, tmp_path)
    assert sorted((function, dim) for function, dim, *_ in found) == [(1, 20), (1, 40), (3, 20), (3, 40)]
    for _, dim, instances, evaluations, final in found:
        assert instances == [1, 2]
        assert max(evaluations) <= 30 * dim
        assert min(final) > 0.0


def test_restarts_until_the_budget_is_spent_or_the_target_hit(tmp_path: Path) -> None:
    standing = run_suite(tmp_path / "a", budget=2000, method="cma", **{**TINY, "popsize": 8})
    assert (standing.done, standing.solved, standing.problems) == (1, 1, 1)
    assert standing.evaluations < 2000
    spent = run_suite(tmp_path / "b", budget=400, xtol=0.5, **{**TINY, "functions": [3]})  # which stops it early, often
    assert 800 - 6 < spent.evaluations <= 800


@pytest.mark.parametrize("suite", SUITES)
def test_every_suite_and_the_same_again(suite: str, tmp_path: Path) -> None:
    functions = [101, 130] if suite == "bbob-noisy" else [1, 24]
    which = {"suite": suite, "dimensions": [20], "functions": functions, "instances": [7]}
    for name in ("one", "two"):
        run_suite(tmp_path / name, budget=3, popsize=10, **which)
    files = sorted(path.relative_to(tmp_path / "one") for path in (tmp_path / "one").rglob("*.tdat"))
    assert len(files) == 2
    if suite != "bbob-noisy":  # whose noise COCO draws
        for file in files:
            assert (tmp_path / "one" / file).read_text() == (tmp_path / "two" / file).read_text()


def test_boxed_problems_are_evaluated_inside_their_box(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import cones

    minimize, boxes = cones.minimize, []

    def looks(fun: Any, x0: Any, **settings: Any) -> Any:
        boxes.append(settings["bounds"])
        return minimize(fun, x0, **settings)

    monkeypatch.setattr("cones.minimize", looks)
    run_suite(tmp_path / "a", **{**TINY, "suite": "bbob-boxed"}, budget=20)
    assert np.array(boxes[0]).tolist() == [[-5.0, 5.0], [-5.0, 5.0]]


def test_ctrl_c_leaves_complete_data(tmp_path: Path) -> None:
    out = tmp_path / "data"
    command = [sys.executable, "-m", "cones", "bench", "coco", "--suite", "bbob", "--dimensions", "2,40"]
    command += ["--functions", "1,2", "--instances", "1", "--budget", "1e6", "--popsize", "10", "--out", str(out)]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    deadline = time.monotonic() + 120.0
    while not list(out.glob("data_f*/*.tdat")) and time.monotonic() < deadline:
        time.sleep(0.05)
    process.send_signal(signal.SIGINT)
    _, said = process.communicate(timeout=60)
    assert process.returncode == 130
    assert "interrupted; python -m cocopp" in said
    found = read_by_cocopp(out, tmp_path)
    assert found
    assert found[0][:3] == [1, 2, [1]]


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"suite": "bbob-biobj"}, "suite: expected one of 'bbob', 'bbob-boxed'"),
        ({"dimensions": [2, 7]}, "dimensions: expected some of 2, 3, 5, 10, 20, 40, got 7"),
        ({"functions": [25]}, "functions: expected some of 1, 2.*got 25"),
        ({"instances": [0]}, "instances: expected at least 1, got 0"),
        ({"budget": 1, "popsize": 100}, "popsize = 100 evaluations.*choose a larger budget"),
        ({"budget": -1}, "budget: expected a positive number"),
        ({"method": "nonsense"}, "method: expected one of"),
        ({"out": 'a"b'}, "out: expected a path without"),
    ],
)
def test_bad_input_is_named_and_nothing_written(settings: dict[str, Any], message: str, tmp_path: Path) -> None:
    out = tmp_path / settings.pop("out", "data")
    with pytest.raises(InputError, match=message):
        run_suite(out, **{**TINY, **settings})
    assert not out.exists()


def test_data_is_not_overwritten(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "kept").write_text("")
    assert main(["bench", "coco", "--out", str(tmp_path)]) == 2
    assert "which is not empty" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--dimensions", "2,x"], "expected numbers such as 1,3-5, got '2,x'"),
        (["--functions", "5-3"], "expected numbers such as 1,3-5"),
    ],
)
def test_numbers(arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as end:
        main(["bench", "coco", *arguments])
    assert end.value.code == 2
    assert message in capsys.readouterr().err


def test_help_teaches(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["bench", "coco", "--help"])
    text = capsys.readouterr().out
    assert "python -m cocopp" in text
    for suite in SUITES:
        assert suite in text
        assert suite in cocoex.known_suite_names
