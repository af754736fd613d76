from __future__ import annotations

import copy
import pickle
from pathlib import Path

import numpy as np
import pytest

import cones
from cones import InputError, StateError
from cones.progress import COLUMNS

METHODS = [cones.ES, cones.NES, cones.CoNES]


def sphere(X: np.ndarray) -> np.ndarray:
    return (X**2).sum(axis=1)


def advance(es: cones.Strategy, iterations: int) -> None:
    for _ in range(iterations):
        X = es.ask()
        es.tell(X, sphere(X))


def test_ask_gives_the_same_candidates_until_they_are_told() -> None:
    es = cones.CoNES([1.0, 2.0], popsize=6, rng=0)
    X = es.ask()
    assert X.shape == (6, 2)
    assert es.ask() is X
    es.tell(X, sphere(X))
    assert not np.array_equal(es.ask(), X)


def test_tell_takes_equal_candidates_from_elsewhere() -> None:
    es = cones.CoNES([1.0, 2.0], popsize=6, rng=0)
    X = es.ask()
    es.tell(X.tolist(), sphere(X).tolist())
    assert es.state.iteration == 1


def test_candidates_are_read_only() -> None:
    with pytest.raises(ValueError, match="read-only"):
        cones.CoNES([1.0, 2.0], rng=0).ask()[0] = 0.0


def test_tell_without_ask() -> None:
    es = cones.CoNES([1.0, 2.0], popsize=4, rng=0)
    with pytest.raises(StateError, match=r"tell: expected a call of ask\(\)"):
        es.tell(np.zeros((4, 2)), np.zeros(4))
    advance(es, 1)
    with pytest.raises(StateError, match="tell"):
        es.tell(np.zeros((4, 2)), np.zeros(4))


@pytest.mark.parametrize(
    ("change", "values", "message"),
    [
        (lambda X: X, np.zeros(3), r"values: expected 4 losses, one per candidate, got shape \(3,\)"),
        (lambda X: X, np.zeros((4, 1)), r"values: expected 4 losses, one per candidate, got shape \(4, 1\)"),
        (lambda X: X, ["a"] * 4, "values: expected real numbers"),
        (lambda X: X[:2], np.zeros(4), r"values: expected 2 losses, one per row, got shape \(4,\)"),
        (lambda X: X + 1.0, np.zeros(4), r"X: expected the candidates of the last ask\(\)"),
    ],
)
def test_bad_tell_is_named_and_changes_nothing(change, values, message: str) -> None:
    es = cones.CoNES([1.0, 2.0], popsize=4, rng=0)
    X = es.ask()
    state = es.state
    with pytest.raises(InputError, match=message):
        es.tell(change(X), values)
    assert es.state is state
    es.tell(X, sphere(X))
    assert es.state.iteration == 1


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("belief", ["diagonal", "full"])
def test_history_says_what_happened(method, belief: str) -> None:
    more = {"radius": "adaptive"} if method is cones.CoNES else {}
    es = method([1.0, 2.0, 3.0], popsize=10, belief=belief, rng=0, **more)
    beliefs, populations = [es.state.belief], []
    for _ in range(5):
        X = es.ask()
        populations.append(sphere(X))
        es.tell(X, populations[-1])
        beliefs.append(es.state.belief)
    history = es.result.history
    assert set(history) == set(COLUMNS)
    np.testing.assert_array_equal(history["evaluations"], [10, 20, 30, 40, 50])
    np.testing.assert_array_equal(history["best"], np.minimum.accumulate([p.min() for p in populations]))
    np.testing.assert_allclose(history["mean_loss"], [p.mean() for p in populations])
    for i in range(5):
        old, new = beliefs[i], beliefs[i + 1]
        assert history["step"][i] == pytest.approx(np.linalg.norm(new.mean - old.mean))
        assert history["kl"][i] == pytest.approx(new.kl(old), rel=1e-8)
        assert history["spread"][i] == pytest.approx(new.spread())
    assert (np.diff(history["seconds"]) >= 0.0).all()
    convex = method is cones.CoNES
    assert np.isfinite(history["multiplier"]).all() == convex
    assert np.isfinite(history["gap"]).all() == convex


def test_nan_ranks_worst_and_is_counted() -> None:
    """NaN for half of the space acts as an infinite loss there."""
    ends = []
    for bad in (np.nan, np.inf):
        es = cones.CoNES([1.0, 2.0], popsize=20, rng=0)
        for _ in range(10):
            X = es.ask()
            es.tell(X, np.where(X[:, 0] > 1.0, bad, sphere(X)))
        ends.append(es)
    np.testing.assert_array_equal(ends[0].state.belief.mean, ends[1].state.belief.mean)
    assert ends[0].history["failures"].sum() > 0
    assert ends[1].history["failures"].sum() == 0
    assert np.isfinite(ends[0].history["mean_loss"]).all()


@pytest.mark.parametrize("shaping", ["centred_ranks", "normal_scores", "standardised", "raw"])
def test_infinite_losses_leave_the_belief_finite(shaping: str) -> None:
    es = cones.CoNES([1.0, 2.0], popsize=8, shaping=shaping, rng=0)
    for values in ([np.inf] * 8, [-np.inf] * 4 + [np.inf] * 4, [np.nan, np.inf, -np.inf, 1.0] * 2):
        es.tell(es.ask(), values)
        assert np.isfinite(es.state.belief.mean).all()
        assert np.isfinite(es.state.belief.standard_deviations()).all()
    # Ranks tell infinite losses apart; the others see the finite ones alone, which are equal.
    assert (es.history["step"][-1] > 0.0) == (shaping in ("centred_ranks", "normal_scores"))


def test_ten_populations_without_a_finite_loss_stop_with_their_own_reason() -> None:
    es = cones.CoNES([1.0, 2.0], popsize=8, rng=0)
    advance(es, 2)
    mean, best = es.state.belief.mean, es.result.fun
    with pytest.warns(RuntimeWarning, match=r"iteration 2: no loss of the population is finite"):
        es.tell(es.ask(), np.full(8, np.inf))
    for failed in range(8):  # warned of once
        es.tell(es.ask(), np.full(8, np.nan if failed % 2 else np.inf))
        assert es.stop() is None
        np.testing.assert_array_equal(es.state.belief.mean, mean)
    kept = copy.deepcopy(es)
    es.tell(es.ask(), np.full(8, np.nan))
    reason = es.stop()
    assert reason is not None
    assert reason.name == "no_finite_loss"
    assert es.result.message == "No loss was finite in the first population, or in 10 populations in a row."
    assert es.result.fun == best
    np.testing.assert_array_equal(es.state.belief.mean, mean)
    kept.tell(kept.ask(), [1.0] + [np.nan] * 7)  # one loss, and it goes on
    kept.tell(kept.ask(), np.full(8, np.nan))
    assert kept.stop() is None


def test_a_run_whose_optimum_is_at_the_edge_of_nan_goes_on() -> None:
    def losses(X: np.ndarray) -> np.ndarray:
        return np.where(X[:, 0] > 0.0, np.nan, (X[:, 0] - 1.0) ** 2 + ((X[:, 1:] + 1.0) ** 2).sum(axis=1))

    with pytest.warns(RuntimeWarning, match="no loss of the population is finite"):
        result = cones.minimize(losses, [-3.0, -3.0], vectorized=True, rng=1, maxfev=8000, restarts=0)
    assert (result.history["failures"] == result.history["popsize"]).any()  # a population of NaN alone
    assert result.stop != "no_finite_loss"
    assert result.fun == pytest.approx(1.0, abs=1e-9)


def test_after_nothing_but_nan_a_restart_is_taken_only_if_there_was_something() -> None:
    good = cones.CoNES([1.0, 2.0], popsize=8, rng=0, restarts=1)
    bad = cones.CoNES([1.0, 2.0], popsize=8, rng=0, restarts=1)
    advance(good, 1)
    with pytest.warns(RuntimeWarning, match="no loss of the population is finite"):
        good.tell(good.ask(), np.full(8, np.nan))
    for _ in range(9):
        good.tell(good.ask(), np.full(8, np.nan))
    assert good.stop() is None
    assert good.result.restarts == 1
    bad.tell(bad.ask(), np.full(8, np.nan))
    assert bad.result.stop == "no_finite_loss"
    assert bad.result.restarts == 0
    good.tell(good.ask(), np.full(good.popsize, np.nan))  # a restart that finds nothing is the end
    assert (good.result.stop, good.result.restarts) == ("no_finite_loss", 1)


@pytest.mark.parametrize("belief", ["diagonal", "full"])
@pytest.mark.parametrize("bounds", [None, [(-2.0, 2.0)] * 5])
def test_divergence_stops_with_its_own_reason(belief: str, bounds: object) -> None:
    """Raw losses of a steep function, and a rate far too large: the candidates stay finite to the last."""
    es = cones.NES(np.zeros(5), belief=belief, shaping="raw", optimizer=cones.SGD(1e12), rng=0, bounds=bounds)
    while not es.stop():
        X = es.ask()
        assert np.isfinite(X).all()
        if bounds:
            assert (np.abs(X) <= 2.0).all()
        with np.errstate(over="ignore"):
            es.tell(X, (100.0 * X**4).sum(axis=1))
    if bounds is not None and belief == "diagonal":  # its deviations are cut at the smallest float
        assert es.stop().name == "collapsed"
    else:
        assert es.stop().name == "diverged"
        assert "smaller learning rates" in es.result.message
    assert np.isfinite(es.state.belief.mean).all()


def test_huge_losses_are_no_trouble() -> None:
    es = cones.CoNES([1.0, 2.0], popsize=4, rng=0)
    es.tell(es.ask(), [1e300, 1.7e308, -1.7e308, 0.0])
    assert np.isfinite(es.state.belief.mean).all()
    with pytest.warns(RuntimeWarning, match="no loss of the population is finite"):
        es.tell(es.ask(), [np.inf] * 4)
    assert np.isnan(cones.CoNES([1.0], rng=0).intermediate_result().fun)


def test_best_is_the_best_candidate_seen() -> None:
    es = cones.NES([1.0, 2.0], popsize=8, rng=0)
    seen: list[np.ndarray] = []
    for _ in range(20):
        X = es.ask()
        seen.append(X)
        es.tell(X, sphere(X))
    everything = np.concatenate(seen)
    result = es.result
    assert result.fun == sphere(everything).min()
    np.testing.assert_array_equal(result.x, everything[sphere(everything).argmin()])
    assert (result.nfev, result.nit, result.success, result.status) == (160, 20, False, -1)


def test_result_before_any_evaluation() -> None:
    result = cones.CoNES([1.0, 2.0], rng=0).result
    np.testing.assert_array_equal(result.x, [1.0, 2.0])
    assert np.isnan(result.fun)
    assert result.message == "The run has not stopped."


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("belief", ["diagonal", "full"])
@pytest.mark.parametrize("antithetic", [True, False])
def test_same_seed_same_run(method, belief: str, antithetic: bool) -> None:
    ends = []
    for rng in (3, 3, 4):
        es = method(np.ones(4), popsize=10, belief=belief, antithetic=antithetic, rng=rng)
        advance(es, 10)
        ends.append(es.state.belief.mean)
    np.testing.assert_array_equal(ends[0], ends[1])
    assert not np.array_equal(ends[0], ends[2])


@pytest.mark.parametrize("settings", [{"radius": "adaptive"}, {"estimator": "recombination"}])
def test_ranks_make_the_run_blind_to_the_scale_of_the_loss(settings) -> None:
    ends = []
    for scale in (1.0, 1e-12, 1e12):
        es = cones.CoNES(np.ones(4), popsize=10, rng=0, **settings)
        for _ in range(10):
            X = es.ask()
            es.tell(X, scale * sphere(X))
        ends.append(es.state.belief.mean)
    np.testing.assert_array_equal(ends[0], ends[1])
    np.testing.assert_array_equal(ends[0], ends[2])


def test_one_iteration_is_the_iteration_of_the_paper() -> None:
    """A second implementation of the diagonal iteration, in ten lines of NumPy and one of CVXPY."""
    cp = pytest.importorskip("cvxpy")
    es = cones.CoNES([1.0, -2.0, 0.5], [0.5, 1.0, 2.0], popsize=8, radius=1.5, optimizer=cones.SGD(0.1, 0.2), rng=0)
    X = es.ask()
    mu, sigma = np.array([1.0, -2.0, 0.5]), np.array([0.5, 1.0, 2.0])
    z = (X - mu) / sigma
    u = np.argsort(np.argsort(sphere(X))) / 7 - 0.5
    gradient_mu = (u @ z) / 8 / sigma
    gradient_var = (u @ (z**2 - 1)) / 16 / sigma**2
    new_mu, new_var = cp.Variable(3), cp.Variable(3)
    kl = 0.5 * cp.sum(cp.square((new_mu - mu) / sigma) + new_var / sigma**2 - 1 - cp.log(new_var / sigma**2))
    gain = gradient_mu @ (new_mu - mu) + gradient_var @ (new_var - sigma**2)
    cp.Problem(cp.Maximize(gain), [kl <= 1.5**2]).solve(solver="CLARABEL")
    es.tell(X, sphere(X))
    np.testing.assert_allclose(es.state.belief.mean, mu - 0.1 * (new_mu.value - mu), atol=1e-4)
    expected = np.exp(np.log(sigma**2) - 0.2 * np.log(new_var.value / sigma**2))
    np.testing.assert_allclose(es.state.belief.variance, expected, rtol=1e-3)


def test_repr_says_where_the_run_stands() -> None:
    es = cones.CoNES([1.0, 2.0], popsize=8, rng=0)
    advance(es, 3)
    assert repr(es).startswith("CoNES(FullGaussian(dim=2, spread=")
    assert "iteration=3" in repr(es)


EVERY = [cones.ES, cones.NES, cones.CoNES, cones.CMA, cones.SepCMA]


@pytest.mark.parametrize("method", EVERY)
def test_the_array_of_losses_may_be_used_again(method, tmp_path: Path) -> None:
    es, other = method(np.ones(4), rng=0), method(np.ones(4), rng=0)
    values = np.empty(es.popsize)
    for _ in range(5):
        X = es.ask()
        values[:] = sphere(X)
        es.tell(X, values)
    advance(other, 5)
    es.save(tmp_path / "run.ckpt")
    np.testing.assert_array_equal(cones.load(tmp_path / "run.ckpt").ask(), other.ask())


@pytest.mark.parametrize("method", EVERY)
@pytest.mark.parametrize("copied", [copy.copy, copy.deepcopy, lambda es: pickle.loads(pickle.dumps(es))])
def test_a_copy_goes_on_by_itself(method, copied) -> None:
    es, straight = method(np.ones(5), rng=0), method(np.ones(5), rng=0)
    advance(straight, 6)
    advance(es, 3)
    X = es.ask()
    other = copied(es)
    advance(other, 3)
    np.testing.assert_array_equal(other.state.belief.mean, straight.state.belief.mean)
    assert (len(es.history), len(other.history)) == (3, 6)
    es.tell(X, sphere(X))
    advance(es, 2)
    np.testing.assert_array_equal(es.state.belief.mean, straight.state.belief.mean)


def test_infinite_losses_have_a_best_candidate() -> None:
    es = cones.CoNES([1.0, 2.0], popsize=4, rng=0)
    X = es.ask()
    es.tell(X, [np.nan, np.inf, np.inf, np.nan])
    assert es.result.fun == np.inf
    np.testing.assert_array_equal(es.result.x, X[1])
    X = es.ask()
    es.tell(X, [np.inf, 3.0, np.inf, np.nan])
    assert es.result.fun == 3.0
    np.testing.assert_array_equal(es.result.x, X[1])


def test_a_spread_too_small_for_floats_is_no_divergence() -> None:
    off = {"xtol": None, "ftol": None, "stagnation": None}
    result = cones.minimize(lambda x: float(x @ x), [1.0, 1.0], rng=0, maxiter=20000, **off)
    assert (result.stop, result.success) == ("collapsed", True)
    assert result.fun < 1e-250
