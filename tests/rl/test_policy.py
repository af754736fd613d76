from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.integrate import quad

from cones import InputError
from cones.rl import Policy, load_policy
from cones.rl.episode import Episodes
from cones.rl.policy import TANH_SQUARE, Network

BOX = {"kind": "box", "shape": [2], "dtype": "float32"}
SEEN = {"kind": "box", "shape": [3], "dtype": "float64"}


def policy(action: dict[str, Any] = BOX, sizes: tuple[int, ...] = (3, 4, 2), bias: bool = True) -> Policy:
    network = Network(sizes, bias)
    rng = np.random.default_rng(0)
    return Policy(
        "Task-v0",
        network,
        rng.standard_normal(network.dim),
        rng.standard_normal(3),
        rng.uniform(0.5, 2.0, 3),
        {"observation": SEEN, "action": action},
    )


def test_the_network_is_what_it_says() -> None:
    made = policy()
    p = made.parameters
    first, bias = p[:12].reshape(3, 4), p[12:16]
    second, other = p[16:24].reshape(4, 2), p[24:26]
    x = np.array([0.3, -1.0, 2.0])
    expected = np.tanh((x - made.shift) * made.scale @ first + bias) @ second + other
    np.testing.assert_allclose(made(x), expected.astype(np.float32))
    assert made(x).dtype == np.float32
    assert made.network.dim == 26
    unbiased = Network((3, 4, 2), bias=False)
    assert unbiased.dim == 20
    np.testing.assert_allclose(unbiased.outputs(p[:20], x), np.tanh(x @ first) @ p[12:20].reshape(4, 2))
    np.testing.assert_array_equal(unbiased.outputs(p[:20], -x), -unbiased.outputs(p[:20], x))
    linear = policy(sizes=(3, 2))
    weights = linear.parameters[:6].reshape(3, 2)
    z = (x - linear.shift) * linear.scale
    np.testing.assert_allclose(linear(x), (z @ weights + linear.parameters[6:]).astype(np.float32))


def test_actions_fit_their_space() -> None:
    x = np.array([0.3, -1.0, 2.0])
    free = policy()(x)
    clipped = policy({**BOX, "low": [-0.1, None], "high": [0.1, None]})(x)
    assert clipped[0] == np.clip(free[0], np.float32(-0.1), np.float32(0.1)) != free[0]
    assert clipped[1] == free[1]
    choice = policy({"kind": "discrete", "count": 2, "first": 5})(x)
    assert choice == 5 + int(free[1] > free[0])
    assert isinstance(choice, int)
    assert policy({"kind": "box", "shape": [2, 1], "dtype": "float64"})(x).shape == (2, 1)


def test_observations_are_checked() -> None:
    with pytest.raises(InputError, match="observation: expected 3 numbers, got 4"):
        policy()(np.zeros(4))
    with pytest.raises(InputError, match="observation: expected finite numbers"):
        policy()(np.array([0.0, np.nan, 0.0]))


@pytest.mark.parametrize("bias", [True, False])
def test_saved_policies_come_back(tmp_path: Path, bias: bool) -> None:
    one = policy(bias=bias)
    one.save(tmp_path / "a.policy.npz")
    again = load_policy(tmp_path / "a.policy.npz")
    x = np.array([0.3, -1.0, 2.0])
    np.testing.assert_array_equal(again(x), one(x))
    assert again.task == "Task-v0"
    assert again.network == one.network


def test_bad_files_are_named(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no such policy"):
        load_policy(tmp_path / "none.npz")
    with pytest.raises(InputError, match="there is no policy in it"):
        load_policy(tmp_path)
    (tmp_path / "bad.npz").write_bytes(b"half")
    with pytest.raises(InputError, match="not a policy of cones"):
        load_policy(tmp_path / "bad.npz")
    (tmp_path / "runs").mkdir()
    for name in ("a", "b"):
        policy().save(tmp_path / "runs" / f"{name}.policy.npz")
    with pytest.raises(InputError, match="holds 2 policies; name the file"):
        load_policy(tmp_path)
    with pytest.raises(InputError, match="parameters: expected finite numbers"):
        Policy("T", Network((3, 2)), np.full(8, np.inf), np.zeros(3), np.ones(3), {"observation": SEEN, "action": BOX})


def test_the_mean_of_returns_has_a_confidence_interval() -> None:
    """It covers the true mean as often as it says."""
    rng = np.random.default_rng(0)
    covered = 0
    for _ in range(2000):
        returns = rng.normal(3.0, 2.0, 6)
        returns[5] = np.nan  # it failed
        found = Episodes(returns, np.full(6, 7), np.empty((6, 2, 1)), {5: "why"}).summary(0.9)
        assert found.episodes == 5
        covered += found.low < 3.0 < found.high
    assert 0.88 < covered / 2000 < 0.92
    once = Episodes(np.array([2.0]), np.array([7]), np.empty((1, 2, 1)), {}).summary()
    assert (once.mean, once.low, once.high, once.length) == (2.0, -np.inf, np.inf, 7.0)


@pytest.mark.parametrize(("sizes", "bias"), [((9, 16, 3), True), ((40, 8, 8, 2), False), ((30, 5), True)])
def test_random_weights_give_every_unit_an_input_of_variance_one(sizes: tuple[int, ...], bias: bool) -> None:
    network = Network(sizes, bias)
    rng = np.random.default_rng(0)
    parameters = network.deviations() * rng.standard_normal((6000, network.dim))
    outputs = [network.outputs(row, rng.standard_normal(sizes[0])) for row in parameters]
    # After two narrow layers it is 0.956: their inputs have the variance 1 on average, but not each of them.
    assert np.var(outputs) == pytest.approx(0.956 if len(sizes) > 3 else 1.0, abs=0.06)
    first = Network(sizes[:2], bias)  # the deviations of a layer do not depend on those that follow
    np.testing.assert_array_equal(network.deviations()[: first.dim], first.deviations())


def test_the_mean_square_of_tanh() -> None:
    value, _ = quad(lambda z: np.tanh(z) ** 2 * np.exp(-z * z / 2) / np.sqrt(2 * np.pi), -12, 12)
    assert pytest.approx(value, rel=1e-7) == TANH_SQUARE
