"""Notebook views: valid XML whose curves are where the numbers say, and nothing of a user's text as markup."""

from __future__ import annotations

import pickle
import sys
import types
import xml.etree.ElementTree as ElementTree

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import cones
from cones import markup
from cones.run.notebook import in_notebook

FINITE = st.floats(allow_nan=True, allow_infinity=True)


def sphere(x: np.ndarray) -> float:
    return float((x**2).sum())


def points(svg: str) -> list[list[tuple[float, float]]]:
    tree = ElementTree.fromstring(svg)
    lines = [line.get("points", "").split() for line in tree.iter("polyline")]
    return [[tuple(map(float, point.split(","))) for point in line] for line in lines]


class TestCurves:
    def test_a_straight_line_is_straight(self) -> None:
        x = np.arange(1.0, 12.0)
        (line,) = points(markup.curves(x, {"y": 3.0 * x}, "x"))
        across, down = np.array(line).T
        np.testing.assert_allclose(across, np.linspace(markup.LEFT, markup.WIDTH - markup.RIGHT, 11), atol=0.06)
        np.testing.assert_allclose(down, np.linspace(markup.HEIGHT - markup.BOTTOM, markup.TOP, 11), atol=0.06)

    def test_powers_of_ten_are_equally_far_apart(self) -> None:
        (line,) = points(markup.curves(np.arange(5.0), {"y": 10.0 ** np.arange(5)}, "x"))
        steps = np.diff(np.array(line)[:, 1])
        np.testing.assert_allclose(steps, steps[0], atol=0.11)

    @settings(max_examples=50, deadline=None)
    @given(st.lists(FINITE, max_size=300))
    def test_any_numbers_stay_inside(self, numbers: list[float]) -> None:
        y = np.array(numbers)
        svg = markup.curves(np.arange(len(y), dtype=float), {"a": y, "b": -y}, "x")
        assert bool(svg) == (np.isfinite(y).sum() >= 1)
        for line in points(svg) if svg else []:
            assert len(line) <= markup.MOST_POINTS
            assert all(0 <= a <= markup.WIDTH and 0 <= b <= markup.HEIGHT for a, b in line)

    @settings(max_examples=30, deadline=None)
    @given(st.lists(st.tuples(FINITE, st.floats(0.0, allow_infinity=False)), min_size=1, max_size=60))
    def test_any_belief_stays_inside(self, coordinates: list[tuple[float, float]]) -> None:
        mean, deviations = np.array(coordinates).T
        with np.errstate(over="ignore", invalid="ignore"):
            svg = markup.intervals(mean, deviations)
        for line in ElementTree.fromstring(svg).iter("line") if svg else []:
            assert all(0.0 <= float(line.get(name, "nan")) <= markup.WIDTH for name in ("x1", "x2", "y1", "y2"))


class TestViews:
    def test_a_result_shows_its_numbers(self) -> None:
        result = cones.minimize(sphere, [3.0, 2.0], rng=0, maxiter=30)
        text = "".join(ElementTree.fromstring(result._repr_html_()).itertext())
        for part in (f"{result.fun:.6g}", f"{result.nfev} evaluations", f"{result.nit} iterations", result.message):
            assert part in text

    def test_a_noisy_result_shows_the_loss_at_the_mean(self) -> None:
        rng = np.random.default_rng(0)
        noisy = cones.minimize(lambda x: sphere(x) + rng.normal(), [3.0], rng=0, maxfev=200, noisy=True)
        assert f"{noisy.mean_fun:.6g} ± {noisy.mean_fun_error:.2g}" in noisy._repr_html_()

    @pytest.mark.filterwarnings("ignore:iteration")
    def test_every_stage_has_a_view(self) -> None:
        es = cones.CoNES([0.0] * 3, rng=0)
        views = [es, es.result, es.state.belief, cones.minimize(lambda x: np.nan, [1.0, 2.0], maxiter=2)]
        for view in views:
            ElementTree.fromstring(view._repr_html_())

    def test_text_is_escaped(self) -> None:
        assert "<b>" not in markup.card("<b>", [("<b>", "<b>&")])

    def test_results_survive_pickling(self) -> None:
        result = cones.minimize(sphere, [3.0, 2.0], rng=0, maxiter=3)
        again = pickle.loads(pickle.dumps(result))
        assert type(again) is cones.Result
        assert again._repr_html_() == result._repr_html_()


class TestDataFrame:
    def test_it_is_the_history(self) -> None:
        result = cones.minimize(sphere, [3.0, 2.0], rng=0, maxiter=4)
        table = result.to_dataframe()
        assert table.index.name == "iteration"
        assert list(table.columns) == list(result.history)
        for name, column in result.history.items():
            np.testing.assert_array_equal(table[name], column)

    def test_a_missing_pandas_says_what_to_install(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
        with pytest.raises(cones.MissingExtraError, match=r"needs the package pandas.*pip install pandas"):
            cones.minimize(sphere, [3.0], rng=0, maxiter=2).to_dataframe()


class TestNotebook:
    """With a stand-in for IPython that keeps what is displayed."""

    @pytest.fixture
    def shown(self, monkeypatch: pytest.MonkeyPatch) -> list[str]:
        drawn: list[str] = []

        class Handle:
            def update(self, html: str) -> None:
                drawn[-1] = html

        def display(html: str, display_id: bool) -> Handle:
            assert display_id
            drawn.append(html)
            return Handle()

        shell = types.SimpleNamespace(kernel=object())
        module = types.ModuleType("IPython.display")
        module.HTML, module.display = str, display  # type: ignore[attr-defined]
        package = types.ModuleType("IPython")
        package.get_ipython = lambda: shell  # type: ignore[attr-defined]
        monkeypatch.setitem(sys.modules, "IPython", package)
        monkeypatch.setitem(sys.modules, "IPython.display", module)
        return drawn

    def test_one_bar_that_ends_with_the_message(self, shown: list[str], capsys: pytest.CaptureFixture[str]) -> None:
        result = cones.minimize(sphere, [3.0, 2.0], rng=0, maxiter=8, disp=True)
        (html,) = shown
        bar = ElementTree.fromstring(html).find("progress")
        assert bar is not None
        assert float(bar.get("value", "nan")) == 1.0
        assert result.message in html
        assert capsys.readouterr() == ("", "")

    def test_a_terminal_is_no_notebook(self, shown: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
        assert in_notebook()
        monkeypatch.setattr(sys.modules["IPython"], "get_ipython", lambda: types.SimpleNamespace())
        assert not in_notebook()
        monkeypatch.setattr(sys.modules["IPython"], "get_ipython", lambda: None)
        assert not in_notebook()
