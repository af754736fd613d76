"""cones.plot: what goes in, what is drawn."""

from __future__ import annotations

import gzip
import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

import cones
from cones.plots.colours import COLOURS
from cones.plots.curves import Group, columns_from, curves_of
from cones.plots.drawing import make_log, new_figure, short_number, wants_log
from cones.plots.panels import PANELS, draw
from cones.records import Folder
from cones.rl.api import Trained

RESULTS = Path(__file__).parents[2] / "results" / "functions"


@pytest.fixture(autouse=True)
def nothing_stays_open() -> Iterator[None]:
    yield
    if pyplot := sys.modules.get("matplotlib.pyplot"):
        pyplot.close("all")


def sphere(x: np.ndarray) -> float:
    return float((x**2).sum())


def run(seed: int = 0, method: str = "cones", **settings):
    return cones.minimize(sphere, [3.0] * 4, method=method, popsize=8, rng=seed, **{"maxiter": 12, **settings})


def titles(figure) -> list[str]:
    return [axis.get_title() for axis in figure.axes if axis.get_visible()]


def line(figure, title: str, number: int = 0) -> np.ndarray:
    """The data of a line that is drawn, as an array of points."""
    (axis,) = (axis for axis in figure.axes if axis.get_title() == title)
    return axis.lines[number].get_xydata()


def names(figure, title: str) -> list[str]:
    """The names beside the lines of a panel."""
    (axis,) = (axis for axis in figure.axes if axis.get_title() == title)
    return [text.get_text() for text in axis.texts]


def test_the_curves_are_the_history() -> None:
    result = run(method="nes")  # whose radii are fixed for good: they have no panel
    figure = cones.plot(result)
    assert titles(figure) == ["loss", "spread", "step length", "KL(new || old)"]
    assert {drawn.get_color() for drawn in figure.axes[1].lines} == {COLOURS["NES"]}
    for title, column in (("loss", "mean_loss"), ("spread", "spread"), ("KL(new || old)", "kl")):
        drawn = line(figure, title)
        np.testing.assert_array_equal(drawn[:, 0], result.history["evaluations"])
        np.testing.assert_array_equal(drawn[:, 1], result.history[column])
    np.testing.assert_array_equal(line(figure, "loss", 1)[:, 1], result.history["best"])
    assert names(figure, "loss") == ["population", "best so far"]
    assert names(figure, "spread") == []  # of a single run there is nothing to tell apart


@pytest.mark.parametrize("count", [3, 5])
def test_several_seeds_become_their_mean(count: int) -> None:
    """In a band of one standard deviation; of fewer than five, each seed is a thin line instead."""
    seeds = [run(seed) for seed in range(count)]
    figure = cones.plot(seeds, run(0, "nes"), labels=["CoNES", "NES"])
    spreads = np.array([seed.history["spread"] for seed in seeds])
    axis = figure.axes[1]
    thin = count if count < 5 else 0
    np.testing.assert_allclose(line(figure, "spread", thin)[:, 1], spreads.mean(axis=0))
    for number in range(thin):
        np.testing.assert_array_equal(line(figure, "spread", number)[:, 1], spreads[number])
        assert axis.lines[number].get_linewidth() < axis.lines[thin].get_linewidth()
    assert len(axis.collections) == (0 if thin else 1)  # a band for the many seeds, none for the few or the one run
    if not thin:
        heights = axis.collections[0].get_paths()[0].vertices[:, 1]
        assert heights.max() == pytest.approx((spreads.mean(axis=0) + spreads.std(axis=0)).max())
    assert names(figure, "spread") == ["CoNES", "NES"]
    assert axis.lines[0].get_color() == COLOURS["CoNES"]


def test_runs_with_the_same_label_are_seeds() -> None:
    one = cones.plot(run(0), run(1), labels=["a", "a"])
    other = cones.plot([run(0), run(1)], labels=["a"])
    np.testing.assert_array_equal(line(one, "loss"), line(other, "loss"))


def test_runs_without_a_label_are_not_mixed() -> None:
    groups = curves_of([run(0), run(1)], None)
    assert [(group.label, len(group.seeds)) for group in groups] == [("CoNES", 1), ("CoNES (2)", 1)]
    histories = curves_of([run(0).history, run(1).history], None)  # which do not say what made them
    assert [(group.label, len(group.seeds)) for group in histories] == [("run 1", 1), ("run 2", 1)]
    strategies = [cones.CoNES([1.0], popsize=2, rng=0) for _ in range(2)]
    for es in strategies:
        X = es.ask()
        es.tell(X, [sphere(x) for x in X])
    assert [group.label for group in curves_of(strategies, None)] == ["CoNES", "CoNES (2)"]


def test_all_that_a_run_leaves_gives_the_same_curve(tmp_path: Path) -> None:
    result = run(checkpoint=tmp_path / "a.ckpt")
    trained = Trained(None, 0.0, 0, result.history, "")  # type: ignore[arg-type]
    sources = [result, result.history, dict(result), cones.load(tmp_path / "a.ckpt"), tmp_path / "a.ckpt", trained]
    for source in sources:
        np.testing.assert_array_equal(line(cones.plot(source), "loss"), line(cones.plot(result), "loss"))


def test_other_axes() -> None:
    result = run()
    np.testing.assert_array_equal(line(cones.plot(result, x="iterations"), "loss")[:, 0], np.arange(1, 13))
    np.testing.assert_array_equal(line(cones.plot(result, x="seconds"), "loss")[:, 0], result.history["seconds"])
    # Seeds take different times: they are compared where all of them are.
    seeds = [run(seed) for seed in range(2)]
    places = line(cones.plot(seeds, x="seconds"), "loss", 2)[:, 0]  # after the lines of the seeds
    assert places[0] == max(seed.history["seconds"][0] for seed in seeds)
    assert places[-1] == min(seed.history["seconds"][-1] for seed in seeds)


def test_a_result_of_the_command_line_has_the_colour_of_its_method(tmp_path: Path) -> None:
    history = {"evaluations": [1, 2], "mean_loss": [3.0, 1.0]}
    (tmp_path / "a.json").write_text(json.dumps({"method": "NES", "history": history}))
    (axis,) = cones.plot(tmp_path / "a.json").axes
    assert axis.lines[0].get_color() == COLOURS["NES"]


def test_a_panel_is_there_only_if_its_data_is() -> None:
    history = dict(run(method="nes").history)
    assert "radii" not in titles(cones.plot({**history, "mean_radius": np.full(12, np.nan)}))
    radii = {"mean_radius": np.full(12, 2.0), "scale_radius": np.full(12, 1.0), "shape_radius": np.full(12, np.nan)}
    figure = cones.plot({**history, **radii})
    assert titles(figure) == ["loss", "spread", "step length", "radii"]  # and no KL: four are enough
    assert names(figure, "radii") == ["mean", "scale"]
    looks = {(drawn.get_color(), drawn.get_linestyle()) for drawn in figure.axes[3].lines}
    assert len(looks) == 2
    (axis,) = cones.plot({"evaluations": [1, 2], "mean_loss": [3.0, 1.0]}).axes
    assert axis.get_title() == "loss"


def test_rewards_and_timesteps_of_training_runs() -> None:
    history = {
        "timesteps": [10, 20, 30],
        "evaluations": [1, 2, 3],
        "mean_reward": [1.0, np.nan, 5.0],
        "spread": [1, 1, 1],
    }
    figure = cones.plot(history)
    assert titles(figure) == ["reward", "spread"]
    assert figure.axes[0].get_xlabel() == "timesteps"
    np.testing.assert_array_equal(line(figure, "reward"), [[10, 1], [30, 5]])  # where it was measured


def test_records_of_an_experiment() -> None:
    """Seeds become one curve per method, problems become rows."""
    groups = curves_of([RESULTS], None)
    assert len(groups) == 16
    assert {(group.label, len(group.seeds)) for group in groups} == {("CoNES", 10), ("NES", 10), ("ES", 10), ("CMA", 1)}
    spheres = [RESULTS / "runs" / f"sphere-5000-d-cones-seed-{seed}.json.gz" for seed in range(10)]
    figure = cones.plot(*spheres, RESULTS / "runs" / "lunacek-5000-d-es-seed-0.json.gz", x="seconds")
    assert titles(figure)[:2] == ["Sphere, 5000-D: loss", "Sphere, 5000-D: spread"]
    assert titles(figure)[4] == "Lunacek, 5000-D: loss"
    assert names(figure, "Sphere, 5000-D: loss") == ["CoNES"]
    assert names(figure, "Lunacek, 5000-D: loss") == ["ES"]


def test_four_panels_two_in_a_row_or_a_row_for_each_problem() -> None:
    history = {name: np.ones(3) for panel in PANELS for name in panel.columns} | {"evaluations": np.arange(3.0)}
    columns = columns_from(history, "history")
    for problems, across in ((["A"], 2), (["A", "B"], 4)):
        figure = draw([Group("a", problem, [columns]) for problem in problems], None)
        assert figure.axes[0].get_subplotspec().get_gridspec().ncols == across
        assert len(titles(figure)) == 4 * len(problems)


def test_axes_are_labelled_for_people() -> None:
    assert [short_number(value) for value in (0.0, 0.25, 200.0, 1500.0, -2e4, 3e6)] == [
        *("0", "0.25", "200", "1.5k", "-20k", "3M")
    ]
    few = new_figure((3, 3)).subplots()
    few.plot([0, 1], [0.3, 8.0])
    make_log(few, [np.array([0.3, 8.0])])
    few.figure.canvas.draw()
    assert {"0.5", "1", "2", "5"} <= {label.get_text() for label in few.get_yticklabels()}
    assert {label.get_text() for label in few.get_yticklabels(minor=True)} <= {""}


def test_curves_of_zeros_do_not_take_the_logarithm_from_the_others() -> None:
    fall, zeros = np.geomspace(10.0, 0.01, 20), np.zeros(20)
    assert wants_log([fall, zeros])
    assert not wants_log([zeros])
    assert not wants_log([np.r_[fall, zeros]])


def test_a_file_is_written_the_same_every_time(tmp_path: Path) -> None:
    result = run()
    for name in ("a.png", "b.png", "c.svg", "d.pdf"):
        cones.plot(result, x="evaluations", out=tmp_path / name)
        assert (tmp_path / name).stat().st_size > 5000
    assert (tmp_path / "a.png").read_bytes() == (tmp_path / "b.png").read_bytes()


def test_a_figure_of_pyplot_where_pyplot_is_in_use(monkeypatch: pytest.MonkeyPatch) -> None:
    import matplotlib as mpl

    mpl.use("agg")
    import matplotlib.pyplot as plt

    plt.close("all")  # of other tests
    figure = cones.plot(run())
    assert plt.fignum_exists(figure.number)
    plt.close(figure)
    monkeypatch.delitem(sys.modules, "matplotlib.pyplot")
    cones.plot(run())
    assert plt.get_fignums() == []


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: cones.plot(), "runs: expected at least one"),
        (lambda: cones.plot(3), "runs: expected a result, a strategy, a history or a path, got a int"),
        (lambda: cones.plot([]), "runs: expected the seeds of run 1, got none"),
        (lambda: cones.plot(run(), labels=["a", "b"]), "labels: expected 1, one per run"),
        (lambda: cones.plot(run(), labels="a"), "labels: expected 1, one per run"),
        (lambda: cones.plot(run(), x="time"), "x: expected evaluations, timesteps, seconds or iterations, got 'time'"),
        (
            lambda: cones.plot(run(), x="timesteps"),
            "x: expected an axis that all runs have; CoNES has no timesteps",
        ),
        (lambda: cones.plot(run(), out="a.bmp"), "out: expected a name that ends in .png, .pdf or .svg, got a.bmp"),
        (lambda: cones.plot(run(), out="nowhere/a.png"), "out: no folder"),
        (lambda: cones.plot(run(), out=3), "out: expected a path, got 3"),
        (lambda: cones.plot("none.ckpt"), "none.ckpt: no such file"),
        (lambda: cones.plot({}), "history: expected columns of one length"),
        (lambda: cones.plot({"evaluations": [1], "spread": [1, 2]}), "history: expected columns of one length"),
        (lambda: cones.plot({"evaluations": [1], "spread": ["a"]}), "history: expected columns of numbers"),
        (lambda: cones.plot({"evaluations": []}), "history: expected at least one iteration"),
        (lambda: cones.plot({"evaluations": [1]}), "runs: expected at least one of the columns mean_loss"),
        (lambda: cones.plot(cones.CoNES([1.0], popsize=2)), "history: expected at least one iteration"),
    ],
)
def test_bad_input_is_named(make, message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(cones.InputError) as caught:
        make()
    assert str(caught.value).startswith(message)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("a.json", b"{", "expected the JSON that `cones minimize --out` writes"),
        ("a.json", b'{"x": []}', "expected the JSON that `cones minimize --out` writes"),
        ("a.json", b'{"history": 3}', "expected a history by column"),
        ("a.json.gz", b"nothing", "not a complete record"),
        ("a.json.gz", gzip.compress(json.dumps({"format": "x"}).encode(), mtime=0), "not a complete record"),
        ("a.ckpt", b"nothing", "not a complete cones checkpoint"),
        ("a.policy.npz", b"", "a policy holds no history"),
    ],
)
def test_bad_files_are_named(name: str, content: bytes, message: str, tmp_path: Path) -> None:
    (tmp_path / name).write_bytes(content)
    with pytest.raises((cones.InputError, cones.CheckpointError), match=message) as caught:
        cones.plot(tmp_path / name)
    assert name in str(caught.value)


def test_folders_without_records_are_named(tmp_path: Path) -> None:
    with pytest.raises(cones.InputError, match="there are no records in it"):
        cones.plot(tmp_path)
    (tmp_path / "runs").mkdir()
    with pytest.raises(cones.InputError, match="there are no records in it"):
        cones.plot(Folder(tmp_path).path)


def test_a_missing_matplotlib_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(cones.MissingExtraError, match=r"pip install .*'matplotlib>="):
        cones.plot(run())


def test_bad_input_does_not_bring_in_matplotlib() -> None:
    code = "import sys, cones\ntry: cones.plot(3)\nexcept cones.InputError: print('matplotlib' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "False\n"


def test_seeds_with_nothing_in_common_are_drawn_one_by_one() -> None:
    seeds = [{"evaluations": [k, k + 1], "spread": [1.0, 2.0]} for k in (1, 10)]
    figure = cones.plot(seeds)
    assert line(figure, "spread", 0)[:, 0].tolist() == [1, 2]
    assert line(figure, "spread", 1)[:, 0].tolist() == [10, 11]


def test_a_problem_without_a_quantity_has_no_panel_of_it() -> None:
    groups = [
        Group(name, on, [columns_from(run(method=name).history, name)]) for name, on in (("cones", "A"), ("es", "B"))
    ]
    shown = titles(draw(groups, None))
    assert "A: radii" in shown
    assert "B: radii" not in shown
