from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import cones
from cones import InputError
from cones.estimators import ScoreFunction, Shaping
from cones.iteration import Algorithm
from cones.sampling import Auto


def sphere(X: np.ndarray) -> np.ndarray:
    return (X**2).sum(axis=1)


def rosenbrock(X: np.ndarray) -> np.ndarray:
    return (100.0 * (X[:, :-1] ** 2 - X[:, 1:]) ** 2 + (1.0 - X[:, :-1]) ** 2).sum(axis=1)


def rastrigin(X: np.ndarray) -> np.ndarray:
    return 10.0 * X.shape[1] + (X**2 - 10.0 * np.cos(2 * np.pi * X)).sum(axis=1)


def lunacek(X: np.ndarray) -> np.ndarray:
    n = X.shape[1]
    s = 1.0 - 1.0 / (2.0 * np.sqrt(n + 20.0) - 8.2)
    low = -np.sqrt((2.5**2 - 1.0) / s)
    basins = np.minimum(((X - 2.5) ** 2).sum(axis=1), n + s * ((X - low) ** 2).sum(axis=1))
    return basins + 10.0 * (1.0 - np.cos(2.0 * np.pi * (X - 2.5))).sum(axis=1)


METHODS = {
    "es": {"method": "es"},
    "nes": {"method": "nes"},
    "paper": {"radius": "paper"},
    "adaptive": {"radius": "adaptive", "maxfev": 100_000, "restarts": 0},
}


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("belief", ["diagonal", "full"])
class TestConvergenceIn20D:
    def test_sphere(self, method: str, belief: str) -> None:
        result = cones.minimize(
            sphere, np.full(20, 3.0), belief=belief, vectorized=True, rng=1, stagnation=None, **METHODS[method]
        )
        # ES keeps the step length of Adam, 0.1 per coordinate, however small the spread.
        target = 0.05 if method == "es" else 1e-9
        assert result.history["mean_loss"][0] > 190.0
        assert result.history["mean_loss"][-1] < target

    def test_rosenbrock(self, method: str, belief: str) -> None:
        result = cones.minimize(
            rosenbrock, np.zeros(20), belief=belief, vectorized=True, rng=1, stagnation=None, **METHODS[method]
        )
        assert result.history["mean_loss"][0] > 5000.0
        # Down the walls and along the valley, below the loss of 19 at the start; a full covariance
        # follows the valley to its end, where the optimizer's steps shrink with the spread.
        target = 1e-4 if belief == "full" and method != "es" else 15.0
        assert result.history["mean_loss"][-1] < target


@pytest.mark.parametrize("loss", [sphere, rosenbrock, rastrigin, lunacek])
def test_cones_is_ahead_in_1000_dimensions(loss) -> None:
    """The paper's comparison in small: N(0, I), learning rates 0.1, 100 candidates, 100 iterations."""
    end = {}
    for method in ("es", "nes", "cones"):
        own = {"radius": 100.0 * np.sqrt(1000 / 5000)} if method == "cones" else {}
        result = cones.minimize(loss, np.zeros(1000), method=method, vectorized=True, rng=0, maxiter=100, **own)
        end[method] = result.history["mean_loss"][-1]
    assert end["cones"] < end["es"]
    assert end["cones"] < end["nes"]


def test_defaults_of_the_paper_s_method_are_the_paper_s() -> None:
    es = cones.CoNES(np.zeros(5000), radius="paper")
    assert es.popsize == 100
    assert es.algorithm.step.radius == pytest.approx(100.0)
    assert es.algorithm.optimizer == cones.Adam(0.1, None, 0.9, 0.999, 1e-8)
    assert es.algorithm.shaping == Shaping("centred_ranks")
    np.testing.assert_array_equal(es.state.belief.variance, np.ones(5000))


@pytest.mark.parametrize(("dim", "popsize"), [(1, 6), (2, 8), (10, 12), (100, 34), (1000, 98), (5000, 100)])
def test_defaults_of_adaptive_radii(dim: int, popsize: int) -> None:
    es = cones.CoNES(np.zeros(dim), radius="adaptive")
    assert es.popsize == popsize
    balls = cones.Balls() if dim <= 500 else cones.Balls(scale=cones.radius.Smoothing())
    assert es.algorithm == Algorithm(Auto(), Shaping("normal_scores"), ScoreFunction(), balls, cones.Direct())
    assert type(es.state.belief) is (cones.FullGaussian if dim <= 10 else cones.DiagonalGaussian)


def test_an_optimizer_with_rates_means_the_paper_s_method() -> None:
    es = cones.CoNES(np.zeros(50), optimizer=cones.SGD(0.1))
    assert es.algorithm.step.radius == pytest.approx(10.0)


def test_start_from_a_belief() -> None:
    belief = cones.FullGaussian([1.0, 2.0], [[2.0, 1.0], [1.0, 2.0]])
    assert cones.CoNES(belief).state.belief is belief
    with pytest.raises(InputError, match="sigma0, belief: expected neither when x0 is a belief"):
        cones.CoNES(belief, 1.0)


def test_sigma0_is_a_standard_deviation() -> None:
    for belief in ("diagonal", "full"):
        es = cones.ES([0.0, 0.0], [2.0, 3.0], belief=belief)
        np.testing.assert_allclose(es.state.belief.standard_deviations(), [2.0, 3.0])


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"x0": [np.nan, 0.0]}, r"x0: expected finite numbers, got nan at index \(0,\)"),
        ({"x0": [[0.0]]}, "x0: expected a vector with at least one number"),
        ({"x0": []}, "x0: expected a vector"),
        ({"x0": "start"}, "x0: expected real numbers"),
        ({"sigma0": 0.0}, "sigma0: expected positive numbers, got 0.0"),
        ({"sigma0": np.inf}, "sigma0: expected finite numbers"),
        ({"sigma0": [1.0, 1.0, 1.0]}, r"sigma0: expected shape \(2,\), got shape \(3,\)"),
        ({"radius": 0.0}, "radius: expected a positive number, got 0.0"),
        ({"radius": np.nan}, "radius: expected a finite number, got nan"),
        ({"x0": [[1.0], [2.0, 3.0]]}, "x0: expected real numbers"),
        ({"sigma0": 1e200}, "sigma0: expected numbers between 1e-140 and 1e\\+140"),
        ({"popsize": 1}, "popsize: expected at least 2, got 1"),
        (
            {"radius": "adaptive", "popsize": 7},
            "popsize: expected an even number of at least 2 for antithetic pairs, got 7",
        ),
        ({"popsize": 7.5}, "popsize: expected an integer, got 7.5"),
        (
            {"belief": "spherical"},
            "belief: expected one of .*'diagonal', 'full', 'low_rank' or 'module:Class'",
        ),
        ({"shaping": "ranks"}, "shaping: expected one of 'centred_ranks'"),
        ({"optimizer": "adm"}, r"optimizer: expected one of 'adam'.* got 'adm'; did you mean adam\?"),
        ({"solver": "simplex"}, "solver: expected 'dual' with adaptive radii, got 'simplex'"),
        ({"solver": "simplex", "radius": 1.0}, "solver: expected .*'dual'.* got 'simplex'"),
        ({"radius": "adaptiv"}, "radius: expected 'auto', 'adaptive', 'paper' or a number, got 'adaptiv'"),
        ({"radius": "adaptive", "optimizer": cones.Adam()}, "optimizer: expected none with adaptive radii"),
        ({"restarts": -1}, "restarts: expected at least 0, got -1"),
        ({"antithetic": "some"}, "antithetic: expected True, False or 'auto', got 'some'"),
        ({"radius": np.array([1.0, 2.0])}, "radius: expected a number"),
        ({"antithetic": np.array([1, 2])}, "antithetic: expected True, False or 'auto'"),
        ({"x0": [1e39, 1.0], "dtype": "float32"}, r"x0: expected numbers of at most 1.7e\+38 as float32"),
        ({"rng": 1.5}, "rng: expected an integer, a numpy Generator, .* got 1.5"),
    ],
)
def test_bad_settings_are_named(settings: dict[str, object], message: str) -> None:
    with pytest.raises(InputError, match=message):
        cones.CoNES(**{"x0": [0.0, 0.0], **settings})


def test_a_typo_in_a_setting_is_refused() -> None:
    with pytest.raises(
        TypeError,
        match=r"CoNES\(\) got an unexpected keyword argument 'popsice'; did you mean popsize\?; expected one of rad",
    ):
        cones.CoNES([0.0], popsice=10)


@pytest.mark.parametrize("method", [cones.ES, cones.NES, cones.CoNES])
def test_none_is_as_good_as_not_given(method) -> None:
    nothing = dict.fromkeys(("popsize", "belief", "antithetic", "optimizer", "shaping", "restarts", "dtype", "bounds"))
    one, other = method([1.0] * 3, rng=0), method([1.0] * 3, rng=0, **nothing)
    np.testing.assert_array_equal(one.ask(), other.ask())
    assert (one.restarts, one.algorithm) == (other.restarts, other.algorithm)


@pytest.mark.parametrize(
    ("method", "names"),
    [
        (cones.CoNES, ["CoNES()", "radius", "solver", "popsize", "maxfev"]),
        (cones.ES, ["ES()", "popsize", "dtype", "maxfev"]),
        (cones.CMA, ["CMA()", "popsize", "diagonal", "options", "bounds", "rng", "maxfev"]),
        (cones.SepCMA, ["SepCMA()", "popsize", "bounds", "maxfev"]),
    ],
)
def test_an_unknown_setting_is_answered_by_the_known_ones(method, names: list[str]) -> None:
    with pytest.raises(TypeError) as error:
        method([1.0, 2.0], foo=1)
    assert all(name in str(error.value) for name in names)


@pytest.mark.parametrize("make", [cones.CoNES, cones.NES, cones.MORE])
def test_method_is_no_setting_of_a_method(make: Any) -> None:
    with pytest.raises(TypeError, match="got an unexpected keyword argument 'method'"):
        make([0.0, 1.0], method="nes")
