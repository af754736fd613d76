"""Named search spaces: values and vectors, runs with dicts, and what users bring along."""

from __future__ import annotations

import itertools
import json
import math
import pickle
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from conformance.variants import through_a_file
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import Bounds, LinearConstraint, NonlinearConstraint
from scipy.special import ndtr

import cones
from cones import Choice, Flag, Float, InputError, Integer, Space
from cones.integers import at_mode, with_neighbours
from cones.space.bounds import Box
from cones.space.reading import read_space, space_from, space_from_tables


def everything() -> Space:
    return Space(
        lr=Float(1e-5, 1e-1, log=True),
        layers=Integer(1, 8),
        act=Choice("relu", "tanh", None),
        bias=Flag(),
        inner={"width": Integer(1, 1000, log=True), "deep": {"on": Flag(shape=2)}},
        weights=Float(-1, 1, shape=(2, 3)),
        kinds=Choice(1, 2.5, "x", shape=2),
    )


def loss(values: dict) -> float:
    assert type(values["layers"]) is int
    assert type(values["bias"]) is bool
    assert values["weights"].shape == (2, 3)
    return (
        (math.log10(values["lr"]) + 3.0) ** 2
        + (values["layers"] - 5) ** 2
        + (values["act"] != "tanh")
        + (not values["bias"])
        + math.log(values["inner"]["width"] / 37) ** 2
        + float((~values["inner"]["deep"]["on"]).sum())
        + float(((values["weights"] - 0.5) ** 2).sum())
        + sum(kind != 2.5 for kind in values["kinds"])
    )


class TestValues:
    @given(st.data())
    @settings(max_examples=50, deadline=None)
    def test_what_is_encoded_is_decoded(self, data) -> None:
        space = everything()
        values = {
            "lr": data.draw(st.floats(1e-5, 1e-1)),
            "layers": data.draw(st.integers(1, 8)),
            "act": data.draw(st.sampled_from(["relu", "tanh", None])),
            "bias": data.draw(st.booleans()),
            "inner": {
                "width": data.draw(st.integers(1, 1000)),
                "deep": {"on": np.array([data.draw(st.booleans()), True])},
            },
            "weights": np.array(data.draw(st.lists(st.floats(-1, 1), min_size=6, max_size=6))).reshape(2, 3),
            "kinds": np.array([data.draw(st.sampled_from([1, 2.5, "x"])), "x"], dtype=object),
        }
        again = space.decode(space.encode(values))
        assert list(again) == list(values)
        assert again["lr"] == pytest.approx(values["lr"], rel=1e-12)
        for name in ("layers", "act", "bias"):
            assert again[name] == values[name]
            assert type(again[name]) is type(values[name])
        assert again["inner"]["width"] == values["inner"]["width"]
        np.testing.assert_array_equal(again["inner"]["deep"]["on"], values["inner"]["deep"]["on"])
        np.testing.assert_array_equal(again["weights"], values["weights"])
        assert list(again["kinds"]) == list(values["kinds"])

    def test_any_vector_in_the_box_is_a_member(self) -> None:
        space, rng = everything(), np.random.default_rng(0)
        box = space.box()
        for _ in range(200):
            x = box.reflect(rng.normal(0.0, 30.0, space.dim))
            values = space.decode(x)
            numbers = x[: space.numbers]
            np.testing.assert_allclose(space.encode(values)[: space.numbers], numbers, atol=1e-12)

    def test_every_integer_has_an_equal_share_of_the_range(self) -> None:
        for parameter in (Integer(1, 4), Integer(1, 4, log=True)):
            space = Space(k=parameter)
            box = space.box()
            x = np.linspace(box.lower[0], box.upper[0], 4001)[1:-1]
            seen = [space.decode(np.array([value]))["k"] for value in x]
            assert set(seen) == {1, 2, 3, 4}
            rounded = box.reflect(x[:, None])[:, 0]
            np.testing.assert_allclose(np.exp(rounded) if parameter.log else rounded, seen)
        counts = [seen.count(k) for k in (1, 2, 3, 4)]
        assert counts == sorted(counts, reverse=True)  # cells are narrower where the logarithm is flat

    def test_ranges_of_arrays_by_coordinate(self) -> None:
        space = Space(x=Float([0.0, 10.0], [1.0, 20.0]))
        np.testing.assert_array_equal(space.decode(np.array([0.5, 12.0]))["x"], [0.5, 12.0])
        np.testing.assert_array_equal(space.start()[0], [0.5, 15.0])
        with pytest.raises(InputError, match=r"x: expected a number between 10 and 20, got 5\.0"):
            space.encode({"x": [0.5, 5.0]})

    def test_a_file_and_a_pickle_give_it_back(self, tmp_path: Path) -> None:
        for again in (through_a_file(everything(), tmp_path), pickle.loads(pickle.dumps(everything()))):
            assert again == everything()
            assert again.names == everything().names


class TestRuns:
    def test_minimize_hands_and_returns_dicts(self) -> None:
        result = cones.minimize(loss, everything(), maxfev=3000, rng=0)
        assert result.fun < 1e-4
        assert loss(result.x) == result.fun
        assert result.x["act"] == "tanh"
        assert result.x["layers"] == result.mean["layers"] == 5
        assert list(result.x["kinds"]) == [2.5, 2.5]
        assert "tanh" in result._repr_html_()

    @pytest.mark.parametrize("method", [cones.CoNES, cones.NES, cones.ES])
    def test_ask_and_tell_dicts(self, method) -> None:
        es = method(everything(), rng=0, maxiter=30, popsize=20)
        while not es.stop():
            X = es.ask()
            assert es.ask() is X
            es.tell([dict(values) for values in X], [loss(values) for values in X])
        assert es.result.fun == loss(es.result.x)
        assert es.history["mean_loss"][-1] < es.history["mean_loss"][0]
        X = es.ask()
        with pytest.raises(InputError, match="X: expected the candidates of the last ask"):
            es.tell(X[::-1], [0.0] * 20)
        with pytest.raises(InputError, match=r"layers: expected a number between 1 and 8, got 9\.0"):
            es.tell([{**X[0], "layers": 9}, *X[1:]], [0.0] * 20)
        with pytest.raises(InputError, match="lr: expected a value, got none"):
            es.tell([{"layers": 3}, *X[1:]], [0.0] * 20)
        es.tell(X, [0.0] * 20)

    def test_what_was_asked_for_and_changed_since_is_not_told(self) -> None:
        """The dicts of ask() belong to the user: a value outside the space, or another one, is an error."""
        for change, message in (
            (lambda values: values.update(lr=5.0), "lr: expected a number between"),
            (lambda values: values.update(act="own"), "act: expected one of"),
            (lambda values: values.pop("act"), "act: expected a value, got none"),
            (lambda values: values.update(layers=values["layers"] % 8 + 1), "X: expected the candidates of the last"),
        ):
            es = cones.CoNES(everything(), rng=0)
            X = es.ask()
            change(X[0])
            with pytest.raises(InputError, match=message):
                es.tell(X, [0.0] * len(X))

    def test_a_checkpoint_goes_on_with_dicts(self, tmp_path: Path) -> None:
        straight = cones.minimize(loss, everything(), maxiter=12, rng=3)

        def stop(intermediate_result) -> None:
            assert isinstance(intermediate_result.x, dict)
            if intermediate_result.nit == 5:
                raise StopIteration

        cones.minimize(loss, everything(), maxiter=12, rng=3, checkpoint=tmp_path / "run.ckpt", callback=stop)
        resumed = cones.resume(tmp_path / "run.ckpt", loss)
        assert resumed.fun == straight.fun
        np.testing.assert_array_equal(resumed.history["mean_loss"], straight.history["mean_loss"])

    def test_vectorized_functions_take_lists_and_workers_take_spaces(self) -> None:
        one = cones.minimize(loss, everything(), maxiter=4, rng=1)
        many = cones.minimize(lambda rows: [loss(v) for v in rows], everything(), maxiter=4, rng=1, vectorized=True)
        two = cones.minimize(loss, everything(), maxiter=4, rng=1, workers=2)
        assert one.fun == many.fun == two.fun

    def test_a_guess_is_evaluated_first_and_known_values_are_kept(self) -> None:
        space, seen = Space(a=Float(-1, 1), b=Choice("u", "v", "w"), c=Flag()), []

        def fun(values: dict) -> float:
            seen.append(values)
            return values["a"] ** 2 + (values["b"] != "v")

        cones.minimize(fun, space.starting_at({"a": 0.25, "b": "w", "c": True}), maxfev=60, rng=0)
        assert seen[0] == {"a": 0.25, "b": "w", "c": True}
        assert sum(values["b"] == "w" for values in seen[1:13]) > 4
        known = space.knowing([({"a": 0.5, "b": "u", "c": True}, 1.25), ({"a": 0.0, "b": "v", "c": False}, -7.0)])
        result = cones.minimize(fun, known, maxfev=60, rng=0)
        assert (result.fun, result.x) == (-7.0, {"a": 0.0, "b": "v", "c": False})
        es = cones.CoNES(known, rng=0)
        assert es.result.x["b"] == "v"
        assert es.start_point()[0] == 0.0

    def test_numbers_alone_have_all_settings_of_the_method(self) -> None:
        space = Space(x=Float(-5, 5, shape=3), k=Integer(-5, 5))

        def fun(values: dict) -> float:
            return float(((values["x"] - 1.0) ** 2).sum() + (values["k"] - 2) ** 2)

        for options in ({}, {"belief": "diagonal"}, {"radius": "adaptive"}, {"method": "nes"}):
            result = cones.minimize(fun, space, maxfev=1500, rng=0, **options)
            assert result.x["k"] == 2
            assert result.fun < 0.05

    def test_constraints_are_functions_of_the_values(self) -> None:
        space = Space(x=Float(-3, 3), k=Integer(-3, 3), c=Choice("a", "b"))

        def fun(values: dict) -> float:
            return values["x"] ** 2 + values["k"] ** 2 + (values["c"] == "a")

        limit = {"type": "ineq", "fun": lambda values: values["x"] + values["k"] - 1.5}
        result = cones.minimize(fun, space, constraints=limit, maxfev=2000, rng=0)
        assert result.maxcv <= 1e-6
        assert result.fun == pytest.approx(1.25, abs=0.01)
        with pytest.raises(InputError, match="got a LinearConstraint"):
            cones.minimize(fun, space, constraints=LinearConstraint([[1.0]], 0, 1))

        def sums(all_values: list[dict]) -> list[float]:
            return [values["x"] + values["k"] for values in all_values]

        rows = cones.minimize(
            lambda all_values: [fun(values) for values in all_values],
            space,
            constraints=[NonlinearConstraint(sums, 1.5, np.inf)],
            vectorized=True,
            maxfev=2000,
            rng=0,
        )
        assert rows.fun == pytest.approx(result.fun)
        assert rows.nfev == result.nfev

    def test_constraints_beside_categories_are_met_exactly(self) -> None:
        """Multipliers come from candidates that differ in real numbers alone: a category's jump has no slope."""
        space = Space(x=Float(-3, 3, shape=4), c=Choice("a", "b", "c", shape=3))

        def fun(values: dict) -> float:
            return float(((values["x"] - 1.0) ** 2).sum() + (values["c"] != "b").sum())

        equality = {"type": "eq", "fun": lambda values: values["x"].sum() - 2.0}
        result = cones.minimize(fun, space, constraints=equality, maxfev=4000, rng=0)
        assert result.success
        assert result.fun == pytest.approx(1.0, abs=1e-7)  # x = 1/2 in all coordinates

    def test_flags_alone_are_bits(self) -> None:
        space = Space(bits=Flag(shape=30))
        result = cones.minimize(lambda v: float((~v["bits"]).sum()), space, maxfev=2000, rng=0, ftarget=0)
        assert result.success


class TestIntegers:
    def test_which_candidates_have_the_most_likely_integers(self) -> None:
        box = Box(np.array([-0.5, -9.0]), np.array([9.5, 9.0]), np.array([1.0, 0.0]))
        belief = cones.DiagonalGaussian([3.2, 0.4], 1.0)
        candidates = np.array([[3.0, 0.1], [4.0, 0.4], [3.0, -2.0]])
        np.testing.assert_array_equal(at_mode(candidates, belief, box), [True, False, True])
        assert at_mode(candidates, belief, None) is None  # all are real numbers
        product = cones.Product(cones.DiagonalGaussian([0.0], 1.0), cones.Bernoulli([0.9]))
        np.testing.assert_array_equal(at_mode(np.array([[0.3, 1.0], [0.0, 0.0]]), product, None), [True, False])
        assert at_mode(np.ones((2, 1)), cones.Bernoulli([0.9]), None) is None  # no real number

    def test_a_neighbour_keeps_a_probability(self) -> None:
        box = Box(np.array([-0.5, -9.0]), np.array([9.5, 9.0]), np.array([1.0, 0.0]))
        for belief in (
            cones.DiagonalGaussian([3.0, 0.0], 1e-12),
            cones.FullGaussian([3.0, 0.0], [[1e-12, 5e-13], [5e-13, 1e-12]]),
            cones.LowRankGaussian([3.0, 0.0], 1e-6),
        ):
            wide = with_neighbours(belief, box, 10)
            sigma = wide.standard_deviations()
            assert 2.0 * ndtr(-0.5 / sigma[0]) == pytest.approx(1.0 / 20.0)
            assert sigma[1] == pytest.approx(1e-6)  # a real number may be as narrow as it likes
            assert with_neighbours(wide, box, 10) is wide
        wide = with_neighbours(cones.FullGaussian([3.0, 0.0], [[1e-12, 5e-13], [5e-13, 1e-12]]), box, 10)
        correlation = wide.covariance[0, 1] / np.prod(wide.standard_deviations())
        assert correlation == pytest.approx(0.5)

    def test_integers_that_do_not_matter_yet_can_still_be_moved(self) -> None:
        """The loss depends on the integer only once the number is exact: by then other methods no longer move it."""
        space = Space(x=Float(-1, 1), k=Integer(0, 10))

        def fun(values: dict) -> float:
            return abs(values["x"]) + 1e-6 * abs(values["k"] - 9)

        for seed in range(3):
            assert cones.minimize(fun, space, maxfev=2500, rng=seed, restarts=0, ftol=None).x["k"] == 9


class TestBadInput:
    @pytest.mark.parametrize(
        ("make", "message"),
        [
            (lambda: Space(), "space: expected at least one parameter, got none"),
            (lambda: Space({}), "space: expected at least one parameter"),
            (lambda: Space(a=3), "a: expected a cones.Float, Integer, Choice, Flag or a mapping of them, got 3"),
            (lambda: Space([("a", Flag()), ("a", Flag())]), "space: expected different names, got 'a' twice"),
            (lambda: Space({"a.b": Flag(), "a": {"b": Flag()}}), "space: expected different names, got 'a.b' twice"),
            (lambda: Space({1: Flag()}), "space: expected names that are strings, got 1"),
            (lambda: Space(5), "parameters: expected a mapping"),
            (lambda: Float(2, 1), "low, high: expected low < high, got 2.0 and 1.0"),
            (lambda: Float(1, 1), "low, high: expected low < high"),
            (lambda: Float(0, 1, log=True), "low: expected a positive number and a finite high with log=True"),
            (lambda: Integer(0, 8, log=True), "low: expected a positive number"),
            (lambda: Float(math.nan, 1), "low: expected numbers"),
            (lambda: Float("a", 1), "low: expected real numbers"),
            (lambda: Integer(0.5, 2), "low: expected an integer, got 0.5"),
            (lambda: Float([0, 1, 2], 5, shape=2), "shape: expected one that fits low and high"),
            (lambda: Flag(shape=0), "shape: expected at least 1, got 0"),
            (lambda: Choice("a"), "options: expected at least two, got 1"),
            (lambda: Choice("a", "b", "a"), "options: expected different ones, got 'a' twice"),
            (
                lambda: everything().starting_at({"lrr": 1}),
                "lrr: expected one of .* got an unknown name; did you mean lr",
            ),
            (
                lambda: everything().starting_at({"act": "gelu"}),
                "act: expected one of 'relu', 'tanh', None, got 'gelu'",
            ),
            (lambda: everything().starting_at({"bias": 2}), "bias: expected True or False, got 2"),
            (lambda: everything().starting_at({"layers": 2.5}), "layers: expected an integer, got 2.5"),
            (lambda: everything().starting_at({"weights": [1]}), r"weights: expected an array of shape \(2, 3\)"),
            (lambda: everything().knowing([3]), r"evaluations\[0\]: expected \(values, loss\), got 3"),
            (lambda: everything().encode(3), "values: expected a dict of values by name, got 3"),
            (lambda: cones.minimize(loss, everything(), bounds=[(0, 1)]), "bounds: expected none in a space"),
            (
                lambda: cones.minimize(loss, everything(), method="cma"),
                "method: expected one of cones, nes, es in a space",
            ),
            (lambda: cones.CoNES(everything(), dtype="float32"), "dtype: expected none in a space"),
        ],
    )
    def test_it_is_named(self, make, message: str) -> None:
        with pytest.raises(InputError, match=message):
            make()

    def test_true_is_not_one(self) -> None:
        assert Space(a=Choice(True, 1, "1")).decode(np.array([0.0, 1.0, 0.0]))["a"] == 1
        assert Space(a=Choice(0, False)).encode({"a": False})[1] == 1.0


class TestWhatUsersHave:
    TOML = """
        [lr]
        type = "float"
        low = 1e-5
        high = 1e-1
        log = true
        start = 1e-3
        [net.layers]
        type = "integer"
        low = 1
        high = 8
        [net.act]
        type = "choice"
        options = ["relu", "tanh"]
        [bias]
        type = "flag"
        [w]
        type = "float"
        low = [0, 1]
        high = [2, 3]
    """

    def test_toml_and_json_files(self, tmp_path: Path) -> None:
        (tmp_path / "space.toml").write_text(self.TOML)
        space = read_space(str(tmp_path / "space.toml"))
        layers, act = Integer(1, 8), Choice("relu", "tanh")
        expected = Space(
            lr=Float(1e-5, 1e-1, log=True), net={"layers": layers, "act": act}, bias=Flag(), w=Float([0, 1], [2, 3])
        )
        assert space == expected
        assert space.guess == {"lr": 1e-3}
        tables = {"a": {"type": "choice", "options": [1, None, "x"], "shape": [2, 2]}}
        (tmp_path / "space.json").write_text(json.dumps(tables))
        assert read_space(str(tmp_path / "space.json")) == Space(a=Choice(1, None, "x", shape=(2, 2)))

    @pytest.mark.parametrize(
        ("tables", "message"),
        [
            ({"a": {"type": "flot"}}, "a.type: expected one of float, integer, choice, flag, got 'flot'; did you mean"),
            (
                {"a": {"type": "float", "lo": 1}},
                "a.lo: expected one of low, high, log, shape, step, start, got an unknown key",
            ),
            ({"a": {"type": "float", "low": 2, "high": 1}}, "a.low, high: expected low < high"),
            ({"a": {"type": "choice", "options": ["x"]}}, "a.options: expected at least two, got 1"),
            ({"a": {"type": "choice", "options": "xy"}}, "a.options: expected an array, got 'xy'"),
            ({"a": 3}, "a: expected a table with a type, got 3"),
            ({"g": {"a": {"type": "flag", "start": 7}}}, "g.a: expected True or False, got 7"),
            ([], "space: expected tables by name"),
            ({}, "space: expected at least one parameter"),
        ],
    )
    def test_tables_that_are_wrong(self, tables, message: str) -> None:
        with pytest.raises(InputError, match=message):
            space_from_tables(tables)

    def test_files_that_are_wrong(self, tmp_path: Path) -> None:
        for name, text, message in (
            ("a.toml", "[a\n", "a.toml is not TOML"),
            ("a.json", "{", "a.json is not JSON"),
            ("b.json", '{"a": {"type": "flag"}, "a": {"type": "flag"}}', "expected different names, got 'a' twice"),
        ):
            (tmp_path / name).write_text(text)
            with pytest.raises(InputError, match=message):
                read_space(str(tmp_path / name))
        with pytest.raises(InputError, match="could not be read"):
            read_space(str(tmp_path / "none.toml"))

    def test_scipy_bounds(self) -> None:
        space = space_from(Bounds([0.0, -np.inf], [1.0, np.inf]))
        np.testing.assert_array_equal(space.start()[0], [0.5, 0.0])
        bounds = Bounds([-3.0] * 4, [3.0] * 4)
        result = cones.minimize(lambda v: float(((v["x"] - 1) ** 2).sum()), bounds, maxfev=500, rng=0)
        assert result.fun < 1e-3

    def test_optuna_distributions(self) -> None:
        optuna = pytest.importorskip("optuna")
        d = optuna.distributions
        given = {
            "lr": d.FloatDistribution(1e-5, 1e-1, log=True),
            "k": d.IntDistribution(1, 8),
            "c": d.CategoricalDistribution(["a", "b"]),
        }
        assert space_from(given) == Space(lr=Float(1e-5, 1e-1, log=True), k=Integer(1, 8), c=Choice("a", "b"))
        assert Space(group={"k": d.IntDistribution(1, 8)}) == Space(group={"k": Integer(1, 8)})
        with_steps = Space({"s": d.FloatDistribution(0.0, 1.0, step=0.25), "i": d.IntDistribution(8, 64, step=8)})
        assert with_steps == Space(s=Float(0.0, 1.0, step=0.25), i=Integer(8, 64, step=8))
        fixed = {"one": d.CategoricalDistribution(["a"]), "same": d.FloatDistribution(2.0, 2.0)}
        result = cones.minimize(lambda v: abs(v["k"] - v["same"]), {**given, **fixed}, maxfev=50, rng=0)
        assert (result.x["one"], result.x["same"]) == ("a", 2.0)
        with pytest.raises(InputError, match="space: expected at least one parameter, got constants alone"):
            Space(fixed)

    def test_a_configuration_space(self) -> None:
        """With stand-ins that have the names and attributes of ConfigSpace 1."""
        hyper = {
            name: type(name, (), {"__module__": "ConfigSpace.hyperparameters"})
            for name in (
                "UniformFloatHyperparameter",
                "UniformIntegerHyperparameter",
                "CategoricalHyperparameter",
                "Own",
            )
        }

        def made(kind: str, **attributes):
            part = hyper[kind]()
            part.__dict__.update(attributes)
            return part

        parts = {
            "lr": made("UniformFloatHyperparameter", name="lr", lower=1e-5, upper=0.1, log=True, default_value=1e-3),
            "k": made("UniformIntegerHyperparameter", name="k", lower=1, upper=8, log=False, default_value=np.int64(2)),
            "c": made("CategoricalHyperparameter", name="c", choices=("a", "b"), default_value="b"),
        }
        kind = type("ConfigurationSpace", (dict,), {"__module__": "ConfigSpace.space"})
        configuration = kind(parts)
        configuration.conditions, configuration.forbidden_clauses = [], []
        space = space_from(configuration)
        assert space == Space(lr=Float(1e-5, 0.1, log=True), k=Integer(1, 8), c=Choice("a", "b"))
        assert space.guess == {"lr": 1e-3, "k": 2, "c": "b"}
        configuration.conditions = [SimpleNamespace()]
        with pytest.raises(InputError, match="space: expected a ConfigurationSpace without conditions"):
            space_from(configuration)
        configuration.conditions = []
        configuration["own"] = made("Own", name="own", default_value=0)
        with pytest.raises(InputError, match="own: expected a float, integer, categorical or ordinal"):
            space_from(configuration)

    def test_the_real_configspace(self) -> None:
        cs = pytest.importorskip("ConfigSpace")
        configuration = cs.ConfigurationSpace(seed=0)
        configuration.add(
            cs.Float("lr", (1e-5, 1e-1), log=True, default=1e-3),
            cs.Float("decay", (0.0, 1.0), distribution=cs.Normal(0.5, 0.1)),
            cs.Integer("layers", (1, 8), default=3),
            cs.Integer("width", (1, 100), log=True, default=10),
            cs.Categorical("act", ["relu", "tanh"], default="tanh"),
            cs.Categorical("size", ["s", "m", "l"], ordered=True, default="m"),
            cs.Categorical("bias", [True, False]),
            cs.Constant("version", 4),
        )
        space = Space(configuration)
        assert space.parameters["lr"] == Float(1e-5, 1e-1, log=True)
        assert space.parameters["width"] == Integer(1, 100, log=True)
        assert space.parameters["size"] == Choice("s", "m", "l")
        assert space.guess["layers"] == 3
        assert space.guess["act"] == "tanh"

        def fun(values: dict) -> float:
            cs.Configuration(configuration, values=values)  # raises if the values are not in the space
            wrong = (values["act"] != "relu") + (values["bias"] is not True)
            return (math.log10(values["lr"]) + 2.0) ** 2 + (values["layers"] - 5) ** 2 + wrong

        result = cones.minimize(fun, configuration, maxfev=600, rng=0)
        assert result.fun < 0.01
        assert result.x["version"] == 4
        drawn = configuration.sample_configuration()
        guess = space.starting_at(drawn)  # values of NumPy included
        assert guess.decode(guess.start()[0])["act"] == drawn["act"]
        assert cones.minimize(fun, guess, maxfev=100, rng=0).fun <= fun(dict(drawn))

    def test_a_configspace_with_conditions_or_forbidden_values_is_refused(self) -> None:
        cs = pytest.importorskip("ConfigSpace")
        for what in ("conditions", "forbidden_clauses"):
            configuration = cs.ConfigurationSpace()
            kind, rate = cs.Categorical("kind", ["x", "y"], default="x"), cs.Float("rate", (0.0, 1.0))
            configuration.add(kind, rate)
            clause = cs.EqualsCondition(rate, kind, "x") if what == "conditions" else None
            configuration.add(clause or cs.ForbiddenEqualsClause(kind, "y"))
            for take in (Space, space_from, cones.CoNES, lambda c: cones.minimize(lambda v: 0.0, c)):
                with pytest.raises(
                    InputError, match=f"space: expected a ConfigurationSpace without {what}, got .*kind"
                ):
                    take(configuration)
        with pytest.raises(InputError, match="space: expected at least one parameter, got none"):
            Space(cs.ConfigurationSpace())


class TestStopping:
    def test_real_numbers_alone_decide_on_xtol(self) -> None:
        """Integers and categories keep a spread, so that their neighbours are tried."""

        def fun(values: dict) -> float:
            wrong = (values["c"] != "b").sum() if "c" in values else 0
            return float(((values["x"] - 1.0) ** 2).sum() + ((values["k"] - 3) ** 2).sum() + wrong)

        numbers = {"x": Float(-5, 5, shape=2), "k": Integer(-9, 9, shape=2)}
        for space in (Space(numbers), Space(**numbers, c=Choice("a", "b", shape=2))):
            result = cones.minimize(fun, space, rng=0)
            assert result.success
            assert result.stop == "xtol"
            assert result.fun < 1e-15
            assert result.history["spread_of_numbers"][-1] <= 1e-11 < result.history["spread_of_numbers"][-2]
            again = cones.minimize(fun, space, rng=0, maxfev=4 * result.nfev)
            assert again.restarts  # a descent that starts again is not narrow

    @pytest.mark.parametrize(
        ("space", "alternatives"), [(Space(b=Flag(shape=12)), 12), (Space(c=Choice(*"abcd", shape=4)), 12)]
    )
    def test_bits_and_categories_stop_when_their_alternatives_were_tried(self, space: Space, alternatives: int) -> None:
        result = cones.minimize(
            lambda v: float(sum((x[0] != x[0].flat[0]).sum() for x in [list(v.values())])), space, rng=0
        )
        popsize = (result.nfev - 1) // result.nit
        assert result.stop == "stagnation"
        assert result.fun == 0.0
        assert result.nit < 200 + 50 * alternatives / popsize


class TestSteps:
    def test_values_are_those_of_the_steps(self) -> None:
        space = Space(a=Float(0.0, 1.0, step=0.25), b=Integer(8, 60, step=8), x=Float(-1, 1), k=Integer(0, 3))
        assert (space.floats, space.integers) == (1, 3)
        seen = []
        cones.minimize(lambda v: seen.append(v) or v["x"] ** 2, space, maxfev=300, rng=0)
        assert {v["a"] for v in seen} == {0.0, 0.25, 0.5, 0.75, 1.0}
        assert {v["b"] for v in seen} == {8, 16, 24, 32, 40, 48, 56}
        assert all(space.decode(space.encode(v)) == v for v in seen)
        assert all(isinstance(v["b"], int) and isinstance(v["a"], float) for v in seen)

    def test_arrays_of_steps_each_in_its_range(self) -> None:
        space = Space(a=Float([0.0, 1.0], [0.3, 2.0], step=0.1), c=Choice("u", "v"))
        result = cones.minimize(lambda v: float(-v["a"].sum()), space, maxfev=400, rng=0)
        np.testing.assert_allclose(result.x["a"], [0.3, 2.0], rtol=1e-12)

    @pytest.mark.parametrize(
        ("make", "message"),
        [
            (
                lambda: Choice(["a", "b"]),
                r"options: expected at least two, got 1; pass them one by one, Choice\(\*options\)",
            ),
            (lambda: cones.minimize(lambda v: 0.0, {}, maxfev=9), "space: expected at least one parameter, got none"),
            (lambda: Float(0.0, 1.0, step=0.0), "step: expected"),
            (lambda: Float(0.0, 1.0, step=2.0), "step: expected at most high - low, got 2"),
            (lambda: Float(0.1, 1.0, log=True, step=0.1), "step: expected none on a logarithmic scale"),
            (lambda: Float(0.0, step=0.1), "step: expected none on a logarithmic scale or in an infinite range"),
            (lambda: Integer(0, 9, step=1.5), "step: expected an integer, got 1.5"),
            (lambda: Space(a=Float(0, 1, step=0.25)).encode({"a": 0.3}), "a: expected 0.0 plus steps of 0.25, got 0.3"),
            (lambda: Space(a=Integer(0, 9, step=2)).encode({"a": 9}), "a: expected 0.0 plus steps of 2, got 9"),
        ],
    )
    def test_what_is_refused(self, make, message: str) -> None:
        with pytest.raises(InputError, match=message):
            make()

    def test_of_one_is_no_step(self) -> None:
        assert Integer(0, 9, step=1) == Integer(0, 9)
        assert Float(0, 1, step=1).limits() == (0.0, 1.0)

    def test_through_files(self, tmp_path: Path) -> None:
        (tmp_path / "space.toml").write_text('[a]\ntype = "float"\nlow = 0\nhigh = 1\nstep = 0.5\n')
        space = read_space(str(tmp_path / "space.toml"))
        assert space == Space(a=Float(0, 1, step=0.5))
        assert through_a_file(space, tmp_path) == space


def test_all_orders_of_kinds_decode_alike() -> None:
    parts = {"f": Float(0, 1), "i": Integer(0, 3), "c": Choice("a", "b"), "b": Flag()}
    for order in itertools.permutations(parts):
        space = Space({name: parts[name] for name in order})
        values = {"f": 0.25, "i": 2, "c": "b", "b": True}
        assert space.decode(space.encode({name: values[name] for name in order})) == values
        assert list(space.decode(np.zeros(space.dim))) == list(order)
