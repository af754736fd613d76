"""`cones plot` as a user meets it."""

from __future__ import annotations

import json
import re
from pathlib import Path

import numpy as np
import pytest

import cones
from cones.cli import main


@pytest.fixture(autouse=True)
def in_an_empty_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("objectives_to_plot.py").write_text("def sphere(x):\n    return float((x**2).sum())\n")


SMALL = ("--dim", "3", "--popsize", "4", "--maxiter", "5", "--seed", "0", "--quiet")


def test_results_and_checkpoints_of_minimize(capsys: pytest.CaptureFixture[str]) -> None:
    command = (
        "minimize",
        "objectives_to_plot:sphere",
        *SMALL,
        "--method",
        "nes",
        "--out",
        "a.json",
        "--checkpoint",
        "a.ckpt",
    )
    assert main(command) == 0
    kept = json.loads(Path("a.json").read_text())
    history = cones.load("a.ckpt").history.columns()
    assert kept["history"].keys() == history.keys()
    np.testing.assert_allclose(kept["history"]["mean_loss"], history["mean_loss"], rtol=1e-6)
    assert main(("plot", "a.json", "a.ckpt", "--labels", "one, the same", "--x", "iterations")) == 0
    assert capsys.readouterr().out == "cones.png: loss, spread, step length, KL(new || old)\n"
    assert Path("cones.png").read_bytes().startswith(b"\x89PNG")


def test_nan_in_a_history_is_null(capsys: pytest.CaptureFixture[str]) -> None:
    """ES has no multiplier. JSON has no NaN."""
    assert main(("minimize", "objectives_to_plot:sphere", *SMALL, "--method", "es", "--out", "a.json")) == 0
    assert json.loads(Path("a.json").read_text())["history"]["multiplier"] == [None] * 5
    assert main(("plot", "a.json", "--out", "b.svg", "--title", "Sphere")) == 0
    assert "<svg" in Path("b.svg").read_text()


def test_a_folder_of_training(capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("gymnasium")
    from cones import rl

    rl.train("CartPole-v1", timesteps=1500, popsize=4, hidden=[], threads=1, out="cartpole")
    assert main(("plot", "cartpole", "--out", "cartpole.pdf")) == 0
    assert capsys.readouterr().out.startswith("cartpole.pdf: reward, spread, step length")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("none.ckpt",), r"cones: none\.ckpt: no such file"),
        (("objectives_to_plot.py",), r"cones: objectives_to_plot\.py: not a complete cones checkpoint .*"),
        (("a", "b", "--labels", "x"), r"cones: --labels: expected 2, one per FILE, got 1"),
        (
            ("none.ckpt", "--out", "a.txt"),
            r"cones: out: expected a name that ends in \.png, \.pdf or \.svg, got a\.txt",
        ),
    ],
)
def test_errors_are_one_line(arguments: tuple[str, ...], message: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(("plot", *arguments)) == 2
    assert re.fullmatch(message + "\n", capsys.readouterr().err)


def test_an_unknown_axis_is_refused_by_the_parser(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(("plot", "a.ckpt", "--x", "time"))
    assert ended.value.code == 2
    assert "--x: expected one of evaluations, timesteps, seconds, iterations, got 'time'" in capsys.readouterr().err
