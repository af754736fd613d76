"""The figures, and the report in a real browser where one is installed."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from browser import BROWSER, probe
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import LinearConstraint, minimize

from cones.experiments import figures
from cones.experiments.figures import draw_figures, seeds_shown
from cones.experiments.report import write_report
from cones.experiments.session import session_of
from cones.experiments.summary import Group, Summary, summarise
from cones.experiments.toml import experiment_from
from cones.plots.colours import COLOURS, colour_of
from cones.plots.drawing import log_floor, make_log, new_figure, wants_log
from cones.plots.labels import label_ends, spaced
from cones.records import Folder, Record, execute

pytest.importorskip("matplotlib")


@pytest.fixture(scope="module")
def summary(tmp_path_factory: pytest.TempPathFactory) -> Summary:
    folder = Folder(tmp_path_factory.mktemp("results"))
    experiment = experiment_from(
        {
            "name": "small",
            "title": "Small & <quick>",
            "seeds": 2,
            "maxfev": 400,
            "problems": [
                {"problem": "sphere", "dim": 5, "shift": 1.0},
                {"problem": "rastrigin", "dim": 5, "shift": 1.0},
            ],
            "methods": [{"method": name, "popsize": 20} for name in ("es", "nes", "cones")],
        }
    )
    folder.claim(experiment.specification())
    for run in experiment.runs():
        execute(session_of, run, folder)
    return summarise(folder)


def test_figures_are_images(summary: Summary, tmp_path: Path) -> None:
    paths = draw_figures(summary, tmp_path / "figures")
    assert sorted(path.name for path in paths) == ["loss.pdf", "loss.png", "step.pdf", "step.png"]
    for path in paths:
        assert path.read_bytes()[:4] in (b"\x89PNG", b"%PDF")
        assert path.stat().st_size > 5000
    first = {path.name: path.read_bytes() for path in paths}
    again = draw_figures(summary, tmp_path / "again")
    assert {path.name: path.read_bytes() for path in again} == first


def test_names_stand_beside_the_ends_of_the_lines() -> None:
    """In the order of the lines, none above another, all within the picture."""
    figure = new_figure((4.0, 2.7))
    axis = figure.subplots()
    axis.set_title("a panel")
    heights = {"a": 1.0, "b": 1.01, "c": 1.02, "d": 0.0, "e": 1.0}
    for height in heights.values():
        axis.plot([0, 1], [0.5, height])
    label_ends(axis, [(height, name, "#446688") for name, height in heights.items()])
    figure.canvas.draw()
    boxes = {text.get_text(): text.get_window_extent() for text in axis.texts}
    assert boxes.keys() == heights.keys()
    order = sorted(boxes, key=lambda name: boxes[name].y0)
    assert order[0] == "d"
    assert order[-2:] == ["b", "c"]
    for low, high in pairwise(order):
        assert boxes[low].y1 <= boxes[high].y0 + 1.0
    for box in boxes.values():
        assert axis.get_window_extent().x1 < box.x0 < box.x1 <= figure.bbox.x1
        assert 0 <= box.y0 < box.y1 <= figure.bbox.y1


@given(st.lists(st.floats(0.0, 1.0), min_size=1, max_size=8))
def test_places_of_names_are_the_nearest_that_are_apart(values: list[float]) -> None:
    gap = 0.1
    places = spaced(values, gap)
    order = np.argsort(np.array(values), kind="stable")
    found, wanted = np.array(places)[order], np.array(values)[order]
    assert (np.diff(found) >= gap - 1e-9).all()
    assert found.min() >= 0.0
    assert found.max() <= 1.0 + 1e-9
    # The independent truth: a quadratic program.
    n = len(values)
    apart = LinearConstraint(np.eye(n)[1:] - np.eye(n)[:-1], gap, np.inf) if n > 1 else ()
    start = np.linspace(0.0, 1.0, n) if n > 1 else wanted
    best = minimize(lambda x: ((x - wanted) ** 2).sum(), start, bounds=[(0.0, 1.0)] * n, constraints=apart)
    assert ((found - wanted) ** 2).sum() <= best.fun + 1e-5


def test_seeds_left_at_a_target_end_in_a_dot_and_have_no_common_mean(monkeypatch: pytest.MonkeyPatch) -> None:
    def record(timesteps: list[float], rewards: list[float]) -> Record:
        columns = {"timesteps": np.array(timesteps), "mean_reward": np.array(rewards)}
        return Record(run={}, environment={}, finished=False, stop="", columns=columns)

    def group(method: str, records: list[Record]) -> Group:
        return Group("Task", method, "", len(records), "timesteps", 10**6, records, target=5.0)

    early = group("CoNES adaptive", [record([10, 20], [1, 6]), record([10, 20, 100], [0, 2, 7])])
    late = group("CoNES", [record([100, 1000, 2000], [0, 1, 4]), record([100, 1000, 2000], [0, 6, 5])])
    assert (early.ends_together, late.ends_together) == (False, True)
    figure = new_figure((4.0, 3.0))
    axis = figure.subplots()
    summary = Summary({"tasks": [1], "methods": []}, [], [early, late])
    figures._panel(axis, summary, "Task", "mean_reward", summary.methods, figures._spends_unlike([early, late]))
    assert axis.get_xscale() == "log"
    lines = [(line.get_xdata(), line.get_ydata(), line.get_marker(), line.get_linewidth()) for line in axis.lines]
    dots = [(float(x[0]), float(y[0])) for x, y, marker, _ in lines if marker == "o" and len(x) == 1]
    assert dots == [(20.0, 6.0), (100.0, 7.0)]  # not the seed that went on, nor the one that never got there
    means = [list(y) for x, y, _, width in lines if width > 1.0 and len(x) > 1 and x[0] > 1.0]
    assert means == [[0.0, 3.5, 4.5]]
    assert not figures._spends_unlike([late, late])
    assert figures._spends_unlike([group("CoNES", [early.records[0], late.records[0]])])


def test_colours_belong_to_methods() -> None:
    assert colour_of("CoNES", ["CoNES"]) == colour_of("CoNES", ["ES", "CoNES", "mine"]) == COLOURS["CoNES"]
    assert colour_of("cones", ["cones"]) == colour_of("CoNES adaptive", ["ES"]) == COLOURS["CoNES"]
    both = ["CoNES", "CoNES adaptive"]
    assert [colour_of(name, both) for name in both] == [COLOURS["CoNES paper"], COLOURS["CoNES"]]
    assert colour_of("pycma-diagonal", ["x"]) == COLOURS["PyCMA diagonal"]
    assert len({colour_of(name, ["ES", "mine", "yours"]) for name in ("ES", "mine", "yours")}) == 3
    assert len(set(COLOURS.values())) == len(COLOURS)
    many = ["SepCMA", *(f"method {k}" for k in range(7))]
    assert len({colour_of(name, many) for name in many}) == 8


def test_log_axes_where_they_serve() -> None:
    assert wants_log([np.array([1.0, 30.0])])
    assert not wants_log([np.array([1.0, 10.0])])
    assert not wants_log([np.array([0.0, 1000.0])])
    assert not wants_log([np.array([-1.0, 1e-3, 1000.0])])
    assert not wants_log([np.zeros(3), np.full(2, np.nan)])
    assert wants_log([np.array([0.0, *np.geomspace(1.0, 1e3, 20)])])  # a zero among many


def test_log_axes_end_where_a_reader_sees_nothing() -> None:
    for lowest, shown in ((1e-83, 1e-10), (1e-3, 1e-3)):
        axis = new_figure((3.0, 3.0)).subplots()
        curve = np.geomspace(1e4, lowest, 50)
        axis.plot(curve)
        make_log(axis, [curve])
        assert log_floor([curve]) == pytest.approx(shown)
        assert shown / 10.0 < axis.get_ylim()[0] <= shown
        assert axis.get_ylim()[1] >= 1e4


def test_few_seeds_are_drawn_one_by_one(summary: Summary, tmp_path: Path) -> None:
    group = summary.of(summary.problems[0])[0]
    assert seeds_shown(summary, group) == (1 < len(group.records) < 5)
    few, many = (replace(group, records=group.records[:1] * count) for count in (4, 5))
    assert seeds_shown(summary, few)
    assert not seeds_shown(summary, many)
    page = write_report(replace(summary, groups=[few, many]), tmp_path / "report.html").read_text()
    lines = json.loads(re.search(r'id="data">(.*?)</script>', page, re.S).group(1))["charts"][0]["lines"]
    assert [(line["band"], len(line["each"])) for line in lines] == [(False, 4), (True, 0)]


def test_report_is_self_contained(summary: Summary, tmp_path: Path) -> None:
    page = write_report(summary, tmp_path / "report.html", {"ES": 1.0, "NES": 1.0, "CoNES": 5.0}).read_text()
    assert "<title>Small &amp; &lt;quick&gt;</title>" in page
    assert not re.search(r"""(src|href)=["'](?!data:)""", page)
    assert "http" not in page.replace("http://www.w3.org/2000/svg", "")
    assert "<!--" not in page
    assert page.count("<tr class=best>") == 2
    assert "paper, per run" in page
    assert "&quot;maxfev&quot;: 400" in page
    tables = (tmp_path / "tables.md").read_text()
    assert tables.count("| **Sphere +1, 5-D** |") == 1
    assert "| CoNES | 4 |" in tables
    data = json.loads(re.search(r'id="data">(.*?)</script>', page, re.S).group(1))
    assert len(data["charts"]) == 4
    group = summary.of("Sphere +1, 5-D")[2]
    line = data["charts"][0]["lines"][2]
    assert line["method"] == "CoNES"
    assert line["mean"][-1] == pytest.approx(group.at_end("mean_loss")[0], rel=1e-5)


NOTE = "<img src=x onerror=alert(1)> [x](javascript:alert)\n# a heading"


def test_labels_cannot_break_the_page_the_tables_or_the_figures(tmp_path: Path) -> None:
    folder = Folder(tmp_path)
    labels = ["<!--<script>", "<!--LOSSES--> a|b", r"$\\frac{$ _x"]
    experiment = experiment_from(
        {
            "name": "odd",
            "title": "</script><script>alert(1)</script>",
            "maxfev": 40,
            "start": {"mean": 1e9, "sigma": 1e-3},
            "problems": [{"problem": "sphere", "dim": 2}],
            "methods": [{"method": "es", "popsize": 20, "label": label, "note": NOTE} for label in labels],
        }
    )
    folder.claim(experiment.specification())
    for run in experiment.runs():
        execute(session_of, run, folder)
    summary = summarise(folder)
    assert len(draw_figures(summary, tmp_path / "figures")) == 4
    page = write_report(summary, tmp_path / "report.html").read_text()
    data = json.loads(re.search(r'id="data">(.*?)</script>', page, re.S).group(1))
    assert [method["name"] for method in data["methods"]] == labels
    assert page.count("<script") == 2
    tables = (tmp_path / "tables.md").read_text()
    assert r"a\|b" in tables
    assert r"\[x\](javascript:alert)" in tables
    assert "<script>" not in tables
    assert "<img" not in tables
    assert all(line.startswith(("|", "- ")) or not line for line in tables.splitlines())
    if BROWSER is not None:
        out = probe(tmp_path / "report.html", 1000)
        assert out["charts"] == 2
        assert out["before"] == 6


@pytest.mark.skipif(BROWSER is None, reason="no Chromium is installed")
@pytest.mark.parametrize("width", [1200, 500])
def test_report_in_a_browser(summary: Summary, tmp_path: Path, width: int) -> None:
    out = probe(write_report(summary, tmp_path / "report.html"), width)
    assert (out["charts"], out["before"], out["hidden"], out["shown"]) == (4, 12, 8, 12)
    assert out["left"] == "CoNES,ES"
    assert out["pressed"] == "false"
    assert out["wide"], "the page scrolls sideways"
    values = dict(line.split("\n") if "\n" in line else line.split("\t") for line in _pairs(out["read"]))
    assert 150 <= float(values["evaluations"]) <= 260
    x, mean, _ = summary.of("Sphere +1, 5-D")[2].curve("mean_loss")
    nearest = mean[np.argmin(np.abs(x - float(values["evaluations"])))]
    assert float(values["CoNES"].split(" ")[0]) == pytest.approx(nearest, rel=1e-3)


def _pairs(text: str) -> list[str]:
    words = [word for word in re.split(r"[\n\t]+", text) if word]
    return [f"{name}\n{value}" for name, value in zip(words[::2], words[1::2], strict=True)]
