import numpy as np
import pytest

from cones import InputError
from cones.problems import PROBLEMS, Corrupted, Ellipsoid, Noisy, Rotated, Shifted, Sphere, problem_from


@pytest.mark.parametrize("name", PROBLEMS)
def test_optimum_moves_with_the_problem(name: str) -> None:
    problem = problem_from(name, 4, shift=[1.0, -2.0, 3.0, 0.5], rotation=7)
    assert problem(problem.optimum) == pytest.approx(problem.best, abs=1e-6)


def test_shift() -> None:
    assert Shifted(Sphere(2), 3.0).name == "sphere+3"
    assert Shifted(Sphere(2), 3.0)([4.0, 5.0]) == 5.0
    assert Shifted(Sphere(2), [3.0, -1.0]).domain == (-6.0, 8.0)
    with pytest.raises(InputError, match=r"shift: expected shape \(2,\), got shape \(3,\)"):
        Shifted(Sphere(2), [1.0, 2.0, 3.0])


def test_rotation_is_one_and_keeps_the_sphere() -> None:
    rotated = Rotated(Ellipsoid(5), 1)
    np.testing.assert_allclose(rotated.rotation @ rotated.rotation.T, np.eye(5), atol=1e-12)
    x = np.arange(5.0)
    assert rotated(x) == pytest.approx(Ellipsoid(5)(rotated.rotation @ x))
    assert Rotated(Sphere(5), 2)(x) == pytest.approx(30.0)


def test_noise_is_normal_and_can_be_repeated() -> None:
    problem = Noisy(Sphere(3), 0.5, rng=1)
    X = np.random.default_rng(0).standard_normal((5000, 3))
    noise = problem(X) - Sphere(3)(X)
    assert abs(noise.mean()) < 0.04
    assert noise.std() == pytest.approx(0.5, rel=0.05)
    np.testing.assert_array_equal(problem(X[::-1]), problem(X)[::-1])
    assert not np.allclose(Noisy(Sphere(3), 0.5, rng=2)(X), problem(X))
    relative = problem_from("sphere", 3, relative_noise=0.5)
    assert (relative(X) - Sphere(3)(X)).std() == pytest.approx(0.5 * Sphere(3)(X).std(), rel=0.05)
    assert relative(X[0]) == Sphere(3)(X[0])  # a single loss has no spread
    with pytest.raises(InputError, match="deviation: expected a positive number"):
        Noisy(Sphere(3), 0.0)


def test_a_share_of_the_losses_is_corrupted_and_the_others_are_exact() -> None:
    problem = problem_from("sphere", 3, corrupted=0.2)
    X = np.random.default_rng(0).standard_normal((5000, 3))
    losses, truth = problem(X), Sphere(3)(X)
    wrong = losses != truth
    assert wrong.mean() == pytest.approx(0.2, abs=0.02)
    assert (losses[wrong] < 0.0).mean() == pytest.approx(0.5, abs=0.06)
    sizes = np.log10(np.abs(losses[wrong]))  # uniform between -3 and 6
    np.testing.assert_allclose(np.quantile(sizes, [0.0, 0.25, 0.5, 0.75, 1.0]), np.linspace(-3.0, 6.0, 5), atol=0.5)
    np.testing.assert_array_equal(problem(X[::-1]), losses[::-1])
    np.testing.assert_array_equal([problem(x) for x in X[:20]], losses[:20])
    assert ((Corrupted(Sphere(3), 0.2, rng=1)(X) != truth) != wrong).any()
    np.testing.assert_array_equal(Corrupted(Sphere(3), 0.0)(X), truth)
    assert problem.name == "sphere 20% corrupted"


def test_noise_and_corruption_of_one_seed_are_independent() -> None:
    X = np.random.default_rng(1).standard_normal((4000, 2))
    noise = Noisy(Sphere(2), 1.0)(X) - Sphere(2)(X)
    wrong = Corrupted(Sphere(2), 0.5)(X) != Sphere(2)(X)
    assert abs(noise[wrong].mean() - noise[~wrong].mean()) < 0.12


@pytest.mark.parametrize("share", [-0.1, 1.0, np.nan])
def test_a_share_outside_of_0_to_1_is_refused(share: float) -> None:
    with pytest.raises(InputError, match=r"share: expected a (number in \[0, 1\)|finite number), got"):
        Corrupted(Sphere(3), share)
