"""What each picture of the documentation claims, computed by the code that draws it."""

from __future__ import annotations

import importlib
import re
from itertools import combinations
from pathlib import Path

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.optimize import brentq, minimize

import cones
from cones.beliefs import ENCODINGS, decode, encode, gradient_to_encoding
from cones.component import component_from

PICTURES = (
    "step_length",
    "kl_ball",
    "angle",
    "invariance",
    "cone_time",
    "what_it_does",
    "divergence_balls",
    "divergence_angle",
    "divergence_sweep",
    "simplex",
    "evaluations",
    "many_dimensions",
    "kinks",
    "robustness",
)


def picture(name: str):
    return importlib.import_module(name)


def test_every_script_is_a_picture_that_is_tested() -> None:
    scripts = {path.stem for path in Path(picture("drawing").__file__).parent.glob("*.py")}
    assert scripts == {*PICTURES, "drawing"}


def test_step_length_the_gradient_is_wrong_for_a_long_step_and_right_for_a_short_one() -> None:
    shown = picture("step_length")
    here, downhill = shown.belief_loss(0.0), -np.sign(shown.slope())
    assert shown.belief_loss(downhill * shown.STEP) > here + 0.5
    assert shown.belief_loss(-downhill * shown.STEP) < here - 0.5
    assert shown.belief_loss(downhill * 0.05) < here < shown.belief_loss(-downhill * 0.05)


def test_step_length_the_expectation_is_one() -> None:
    """Quadrature against SciPy's adaptive one, and the slope against a difference."""
    shown = picture("step_length")
    for mean in (-1.0, 0.0, 0.7):

        def weighted(x: float, mean: float = mean) -> float:
            density = np.exp(-0.5 * ((x - mean) / shown.SIGMA) ** 2) / shown.SIGMA / np.sqrt(2.0 * np.pi)
            return float(shown.candidate_loss(x) * density)

        assert shown.belief_loss(mean) == pytest.approx(quad(weighted, mean - 3.0, mean + 3.0)[0], abs=1e-8)
        difference = (shown.belief_loss(mean + 1e-5) - shown.belief_loss(mean - 1e-5)) / 2e-5
        assert shown.slope(mean) == pytest.approx(difference, abs=1e-6)


@pytest.mark.parametrize("radius", [0.15, 1.5])
def test_kl_ball_the_step_is_the_best_point_of_the_ball(radius: float) -> None:
    """Against SciPy's search over the half-plane."""
    shown = picture("kl_ball")
    mean, deviation = shown.step(radius)
    assert shown.kl(mean, deviation) == pytest.approx(radius**2, rel=1e-9)

    def gain(point: np.ndarray) -> float:
        return float(point[0] + 0.5 * (point[1] ** 2 - 1.0))

    ball = {"type": "ineq", "fun": lambda point: radius**2 - shown.kl(*point)}
    found = minimize(lambda point: -gain(point), [0.0, 1.0], constraints=[ball], bounds=[(None, None), (1e-3, None)])
    np.testing.assert_allclose(found.x, [mean, deviation], atol=1e-3)
    assert gain(np.array([mean, deviation])) >= gain(found.x) - 1e-6


def test_kl_ball_is_an_ellipse_when_small_and_not_when_large() -> None:
    shown = picture("kl_ball")

    def largest_error(radius: float) -> float:
        mean, deviation = shown.ellipse(radius)
        inside = deviation > 0.0
        return float(np.abs(shown.kl(mean[inside], deviation[inside]) / radius**2 - 1.0).max())

    assert largest_error(1e-3) < 2e-3
    assert largest_error(shown.SMALL) < 0.15
    assert largest_error(shown.LARGE) > 0.3


def test_kl_ball_leaves_along_the_natural_gradient_and_turns_away() -> None:
    shown = picture("kl_ball")

    def angle(radius: float) -> float:
        mean, deviation = shown.step(radius)
        along = shown.natural_direction()
        return float(np.degrees(np.arctan2(deviation - 1.0, mean) - np.arctan2(along[1], along[0])))

    assert abs(angle(1e-4)) < 0.01
    assert 0.0 < angle(shown.SMALL) < 5.0
    assert angle(shown.LARGE) > 30.0


@pytest.mark.parametrize("kind", ["diagonal", "full"])
def test_angle_goes_to_zero_in_proportion_to_the_radius(kind: str) -> None:
    shown = picture("angle")
    degrees = np.degrees(shown.angles(kind))
    assert degrees.shape == (shown.SEEDS, shown.RADII.size)
    small = shown.RADII <= 0.011
    slopes = np.diff(np.log(degrees[:, small]), axis=1) / np.diff(np.log(shown.RADII[small]))
    np.testing.assert_allclose(slopes, 1.0, atol=0.05)
    assert degrees[:, 0].max() < 0.1
    assert degrees.max() < 90.0  # an ascent direction, however large the ball


def test_divergence_balls_are_those_of_the_library_and_the_steps_lie_on_them() -> None:
    shown = picture("divergence_balls")
    for name in shown.SHOWN:
        of = component_from("divergence", name)
        for mean, variance in ((0.3, 0.7), (-0.5, 1.6)):
            expected = of.between(cones.DiagonalGaussian([mean], [variance]), shown.BELIEF)
            assert shown.divergence(name, mean, variance) == pytest.approx(expected, rel=1e-9)
        for size in (shown.SMALL, shown.LARGE):
            used = shown.divergence(name, *shown.step(name, size))
            assert used == pytest.approx(shown.radius_of(name, size) ** 2, rel=1e-8)


def test_divergence_balls_agree_when_small_and_not_when_large() -> None:
    """Up and down from N(0, 1): the ends of each ball, by bisection, and the steps."""
    shown = picture("divergence_balls")

    def end(name: str, size: float, far: float) -> float:
        inside = shown.radius_of(name, size) ** 2
        return brentq(lambda v: float(np.minimum(shown.divergence(name, 0.0, v), 1e3)) - inside, 1.0, far)

    tops = {size: [end(name, size, 1e6) - 1.0 for name in shown.SHOWN] for size in (0.01, shown.SMALL, shown.LARGE)}
    assert max(tops[0.01]) < 1.03 * min(tops[0.01])
    assert max(tops[shown.SMALL]) < 1.3 * min(tops[shown.SMALL])
    assert max(tops[shown.LARGE]) > 8.0 * min(tops[shown.LARGE])
    assert end("chi2", shown.LARGE, 1e6) < 2.0
    for name, largest in (("reverse_kl", 2.0), ("hellinger", 1.0 + 2.0**0.5)):  # where the ball is convex
        assert shown.step(name, shown.LARGE)[1] == pytest.approx(largest, rel=1e-6)
    assert shown.step("kl", shown.LARGE)[1] > 2.5 > 1.3 > shown.step("chi2", shown.LARGE)[1]


def test_divergence_angle_goes_to_zero_for_all_in_proportion_to_the_size() -> None:
    shown = picture("divergence_angle")
    small = shown.SIZES < 0.02
    found = {key: shown.angles(*key) for key in shown.SHOWN}
    for angles in found.values():
        slopes = np.diff(np.log(angles[small])) / np.diff(np.log(shown.SIZES[small]))
        np.testing.assert_allclose(slopes, 1.0, atol=0.1)
        assert angles[0] < 3e-3
    assert (found["reverse_kl", "natural_parameters"] < 0.1 * found["kl", "covariance"]).all()


def test_divergence_sweep_the_records_say_what_the_page_says() -> None:
    shown = picture("divergence_sweep")
    for function in shown.FUNCTIONS:
        small, medium, large, adam = (
            [float(np.median(shown.left_over(function, name, size))) for name in shown.SHOWN]
            for size in (*shown.SIZES, shown.WITH_ADAM)
        )
        assert max(small) < 1.06 * min(small)
        assert large[3] > 1e20
        assert adam[3] > 1.0
        kl, reverse, hellinger, _ = zip(medium, large, adam, strict=True)
        if function in ("sphere", "rosenbrock"):
            assert kl[0] == min(medium)
            assert kl[1] < 0.2 * min(reverse[1], hellinger[1])
            assert kl[2] < 0.56 * min(reverse[2], hellinger[2])
        else:
            for other in (reverse, hellinger):
                assert other[0] < kl[0]
                assert other[2] < kl[2]
                assert (other[1] < kl[1]) == (function == "lunacek")
            assert reverse[2] < 0.72 * kl[2]


def test_invariance_give_cones_one_distribution_and_the_natural_gradient_four() -> None:
    shown = picture("invariance")
    for one, other in combinations(ENCODINGS, 2):
        assert shown.by_cones(one).kl(shown.by_cones(other)) < 1e-9
        assert shown.by_natural_gradient(one).kl(shown.by_natural_gradient(other)) > 1e-3
        # The steps differ in their second order only: they are the same tangent vector.
        short = [shown.by_natural_gradient(encoding, rate=1e-3) for encoding in (one, other)]
        assert short[0].kl(short[1]) < 1e-9


def test_invariance_start_from_one_tangent_vector_that_is_the_natural_gradient() -> None:
    """F^-1 dl/dp of the parameters p, with the Fisher information by differences of the KL divergence."""
    shown = picture("invariance")
    for encoding in ("log-variance", "precision"):
        step = shown.by_natural_gradient(encoding, rate=1e-4)
        velocity = (encode(step, encoding) - encode(shown.BELIEF, encoding)) / 1e-4
        held = gradient_to_encoding(shown.BELIEF, shown.GRADIENT, encoding)
        parameters = encode(shown.BELIEF, encoding) + 1e-4 * velocity
        ahead = decode(cones.FullGaussian, shown.BELIEF.mean, parameters, encoding)
        # <F v, v> = <dl/dp, v> for v = F^-1 dl/dp, and KL = <F v, v> h^2 / 2.
        assert 2.0 * ahead.kl(shown.BELIEF) / 1e-8 == pytest.approx(np.sum(held.covariance * velocity), rel=1e-3)


def test_cone_time_the_record_says_what_the_picture_shows() -> None:
    shown = picture("cone_time")
    for kind, largest, ratio in (("diagonal", 5000, 500), ("full", 40, 5000)):
        n, dual, cone = shown.times(kind)
        assert n[-1] == largest
        assert (cone / dual > 30.0).all()
        assert cone[-1] / dual[-1] > ratio


@pytest.mark.parametrize("kind", ["diagonal", "full"])
def test_cone_time_both_solve_the_same_problem(kind: str) -> None:
    pytest.importorskip("cvxpy")
    belief, gradient = picture("angle").random_problem(kind, 0)
    dual, cone = (cones.solve_step(belief, gradient, 1.0, solver) for solver in ("dual", "cvxpy"))
    assert dual.objective == pytest.approx(cone.objective, rel=1e-5)


def test_what_it_does_the_belief_arrives_and_cones_is_ahead() -> None:
    shown = picture("what_it_does")
    first, *_, last = shown.journey()
    assert np.linalg.norm(first.mean - 1.0) > 2.0
    assert np.linalg.norm(last.mean - 1.0) < 0.15
    assert last.spread() < 0.2 * first.spread()
    curves = {method: shown.recorded(method)[1] for method in ("ES", "NES", "CoNES")}
    assert (curves["CoNES"][20:] < curves["NES"][20:]).all()
    assert (curves["NES"][200:] < curves["ES"][200:]).all()


@pytest.mark.parametrize("name", PICTURES)
def test_a_picture_is_the_same_every_time_and_on_both_grounds(name: str, tmp_path: Path) -> None:
    shown, drawing = picture(name), picture("drawing")
    for ground, file in (("light", "a.svg"), ("light", "b.svg"), ("dark", "c.svg")):
        drawing.write(shown.draw, ground, tmp_path / file)
    drawing.write(shown.draw, "light", tmp_path / "d.svg", narrow=True)
    width = float(re.search(r'width="([\d.]+)pt"', (tmp_path / "d.svg").read_text()).group(1))
    assert width <= 72.0 * drawing.NARROW + 0.1
    assert (tmp_path / "a.svg").read_bytes() == (tmp_path / "b.svg").read_bytes()
    assert drawing.GROUNDS["dark"].ink in (tmp_path / "c.svg").read_text()


@pytest.mark.parametrize("radius", [0.15, 0.8])
def test_simplex_the_step_is_the_best_point_of_the_ball(radius: float) -> None:
    """Against the drawn boundary, which comes from KL alone; and it follows p exp(g / lambda)."""
    shown = picture("simplex")
    found = shown.step(radius)
    assert shown.kl(found) == pytest.approx(radius**2, rel=1e-9)
    gains = shown.boundary(radius, 2000) @ shown.GRADIENT
    assert gains.max() == pytest.approx(found @ shown.GRADIENT, rel=1e-4)
    assert gains.max() <= found @ shown.GRADIENT + 1e-9
    tilt = np.log(found / shown.START.mean)
    assert (tilt[2] - tilt[0]) / (tilt[1] - tilt[0]) == pytest.approx(1.0 / 0.4)


def test_simplex_the_natural_gradient_leaves_the_triangle_and_the_step_does_not() -> None:
    shown = picture("simplex")
    natural = shown.natural_direction()
    assert natural.sum() == pytest.approx(0.0, abs=1e-15)
    small = shown.step(1e-3) - shown.START.mean
    assert small @ natural == pytest.approx(np.linalg.norm(small) * np.linalg.norm(natural), rel=1e-5)
    assert (shown.START.mean + 1.25 * shown.START.mean[0] / -natural[0] * natural).min() < 0.0
    assert shown.step(1.37).min() > 0.0


def test_evaluations_those_of_cones_are_the_fewest_on_every_function() -> None:
    shown = picture("evaluations")
    medians = {label: {k: np.median(hits) for k, hits in shown.evaluations(label).items()} for label in shown.METHODS}
    assert all(medians["cones"][k] < min(medians["pycma"][k], medians["cmaes"][k]) for k in shown.FUNCTIONS)
    assert all(np.isfinite(list(found.values())).all() for found in medians.values())


@pytest.mark.parametrize(("dimension", "said"), [(5, 0.32), (10, 0.33), (20, 0.38), (40, 0.41)])
def test_evaluations_the_ratios_are_those_that_the_pages_give(dimension: int, said: float) -> None:
    shown = picture("evaluations")
    ours, theirs = (shown.evaluations(label, dimension) for label in ("cones", "pycma"))
    ratios = {k: np.median(ours[k]) / np.median(theirs[k]) for k in shown.FUNCTIONS}
    assert np.median(list(ratios.values())) == pytest.approx(said, abs=0.005)
    root = Path(shown.__file__).parents[2]
    least, most = min(ratio for ratio in ratios.values() if ratio > 0.0), max(ratios.values())
    assert f"| {dimension} | {said} ({least:.2f} to {most:.2f}) |" in (root / "README.md").read_text()
    row = next(
        r for r in (root / "docs/claims/evaluations.md").read_text().splitlines() if r.startswith(f"| {dimension}-D")
    )
    for k, cell in zip((1, 2, 8, 9, 10, 11, 12, 13, 14), row.split("|")[2:], strict=False):
        assert cell.strip() == (f"{ratios[k]:.2f}" if ratios[k] > 0.0 else "∞")


def test_many_dimensions_every_other_method_ends_above_adaptive_radii() -> None:
    shown = picture("many_dimensions")
    table = shown.losses()
    for function in shown.FUNCTIONS:
        others = [table[function, method][0] for method in shown.METHODS if method != "CoNES adaptive"]
        assert 1.15 < min(others) / table[function, "CoNES adaptive"][0]
        assert max(others) / table[function, "CoNES adaptive"][0] < 3e5


def test_kinks_the_records_say_what_the_page_claims() -> None:
    found = picture("kinks").ratios()
    lowest = {}
    for function, n, method in found:
        if method != "CoNES":
            ratio = float(np.median(found[function, n, method]))
            lowest[function, n] = min(ratio, lowest.get((function, n), np.inf))
    for dimensions, ahead in (((30, 50), 9), ((80, 100), 8)):
        assert sum(ratio > 1.0 for (_, n), ratio in lowest.items() if n in dimensions) == ahead
    assert min(lowest.values()) > 1 / 1.6


def test_robustness_the_numbers_are_those_of_the_page() -> None:
    shown = picture("robustness")
    page = (Path(shown.__file__).parents[1] / "claims" / "robustness.md").read_text()
    for function in shown.FUNCTIONS:
        for method, name in (("CoNES adaptive", "adaptive"), ("CoNES paper", "paper")):
            row = next(line for line in page.splitlines() if line.startswith(f"| {function}, {name} |"))
            cells = [float(cell) for cell in row.split("|")[2:-1]]
            drawn = [shown.losses()[function, condition, method][0] for condition in shown.CONDITIONS]
            assert cells == pytest.approx(drawn, rel=0.06)


def test_the_committed_pictures_of_the_readme_are_there() -> None:
    pictures = Path(picture("drawing").__file__).parents[1] / "_static" / "readme"
    assert {path.name for path in pictures.iterdir()} == {"run.png", "evaluations-light.svg", "evaluations-dark.svg"}
