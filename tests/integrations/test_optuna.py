"""Against Optuna itself: its distributions, its storages, its way of running trials."""

from __future__ import annotations

import pickle
import subprocess
import sys
import textwrap
from pathlib import Path
from typing import Any

import numpy as np
import optuna
import pytest
from hypothesis import given
from hypothesis import strategies as st
from optuna.distributions import CategoricalDistribution, FloatDistribution, IntDistribution
from optuna.trial import TrialState

from cones.integrations.optuna import CoNESSampler
from cones.integrations.optuna.ranking import Standing
from cones.integrations.optuna.space import Coordinates
from cones.integrations.optuna.study_replay import POSITION, Member, Position, StudyReplay

optuna.logging.set_verbosity(optuna.logging.WARNING)

SPACE = {
    "float": FloatDistribution(-3.0, 8.0),
    "float log": FloatDistribution(1e-5, 10.0, log=True),
    "float step": FloatDistribution(0.0, 1.0, step=0.1),
    "int": IntDistribution(-2, 5),
    "int log": IntDistribution(1, 1000, log=True),
    "int step": IntDistribution(3, 18, step=5),
    "choice": CategoricalDistribution(["a", None, 3.5, True]),
}


class TestCoordinates:
    def values(self, coordinates: Coordinates, seed: int) -> dict[str, Any]:
        x = np.random.default_rng(seed).normal(0.0, 10.0, coordinates.space.dim)
        return coordinates.params(coordinates.space.decode(coordinates.space.box().reflect(x)))

    @given(st.integers(0, 2**32))
    def test_every_point_is_valid_for_optuna(self, seed: int) -> None:
        coordinates = Coordinates(SPACE)
        assert coordinates.space.dim == 6 + 4
        for name, value in self.values(coordinates, seed).items():
            assert SPACE[name]._contains(SPACE[name].to_internal_repr(value)), (name, value)

    @given(st.integers(0, 2**32))
    def test_there_and_back(self, seed: int) -> None:
        params = self.values(Coordinates(SPACE), seed)
        there = Coordinates(SPACE, params)
        again = there.params(there.space.decode(there.space.start()[0]))
        for name, value in params.items():
            assert again[name] == (pytest.approx(value, rel=1e-12) if isinstance(value, float) else value)

    @pytest.mark.parametrize("name", ["float step", "int", "int step"])
    def test_steps_are_alike(self, name: str) -> None:
        coordinates = Coordinates({name: SPACE[name]})
        box, decode = coordinates.space.box(), coordinates.space.decode
        points = np.linspace(box.lower[0], box.upper[0], 4400, endpoint=False)
        values = [coordinates.params(decode(np.array([x])))[name] for x in points]
        _, counts = np.unique(values, return_counts=True)
        assert counts.max() - counts.min() <= 2

    def test_a_start_that_is_none_is_refused(self) -> None:
        with pytest.raises(ValueError, match=r"float = 9.0 is not in FloatDistribution"):
            Coordinates(SPACE, {"float": 9.0})
        with pytest.raises(ValueError, match="'b' not in"):
            Coordinates(SPACE, {"choice": "b"})


def objective(trial: Any) -> float:
    x = trial.suggest_float("x", -5.0, 5.0)
    rate = trial.suggest_float("rate", 1e-5, 1.0, log=True)
    layers = trial.suggest_int("layers", 1, 9)
    kind = trial.suggest_categorical("kind", ["sgd", "adam", "rms"])
    return float((x - 2.0) ** 2 + (np.log10(rate) + 2.0) ** 2 + (layers - 3) ** 2 + 2.0 * (kind != "adam"))


def params_of(study: optuna.Study) -> list[dict[str, Any]]:
    return [trial.params for trial in study.trials]


class TestSampling:
    def test_finds_what_random_search_does_not(self) -> None:
        ours: list[float] = []
        theirs: list[float] = []
        for seed in range(5):
            for sampler, found in (
                (CoNESSampler(rng=seed), ours),
                (optuna.samplers.RandomSampler(seed=seed), theirs),
            ):
                study = optuna.create_study(sampler=sampler)
                study.optimize(objective, n_trials=250)
                found.append(study.best_value)
        assert np.median(ours) < 0.5 * np.median(theirs)

    def test_maximising_the_opposite_is_the_same(self) -> None:
        one = optuna.create_study(sampler=CoNESSampler(rng=3))
        one.optimize(objective, n_trials=40)
        other = optuna.create_study(sampler=CoNESSampler(rng=3), direction="maximize")
        other.optimize(lambda trial: -objective(trial), n_trials=40)
        assert params_of(one) == params_of(other)

    def test_settings_reach_the_strategy(self) -> None:
        sampler = CoNESSampler({"x": 4.0, "kind": "adam"}, 1e-3, rng=0, popsize=4, belief="full", radius=3.0)
        study = optuna.create_study(sampler=sampler)
        study.optimize(objective, n_trials=5)
        assert all(abs(trial.params["x"] - 4.0) < 0.1 for trial in study.trials[1:])
        assert sum(trial.params["kind"] == "adam" for trial in study.trials[1:]) >= 3  # a margin keeps the others alive
        places = [trial.system_attrs[POSITION] for trial in study.trials[1:]]
        assert sorted(place["candidate"] for place in places) == [0, 1, 2, 3]
        assert {place["iteration"] for place in places} == {0}

    def test_one_value_parameters_are_no_coordinates(self) -> None:
        study = optuna.create_study(sampler=CoNESSampler(rng=0))
        study.optimize(lambda trial: trial.suggest_float("x", 0, 1) + trial.suggest_int("one", 1, 1), n_trials=20)
        assert POSITION in study.trials[-1].system_attrs

    def test_parameters_that_come_and_go_are_sampled_independently(self, caplog: pytest.LogCaptureFixture) -> None:
        def conditional(trial: Any) -> float:
            kind = trial.suggest_categorical("kind", ["line", "curve"])
            return trial.suggest_float("a", 0.0, 1.0) + (trial.suggest_float("b", 0.0, 1.0) if kind == "curve" else 0.0)

        optuna.logging.enable_propagation()
        try:
            study = optuna.create_study(sampler=CoNESSampler(rng=0))
            study.optimize(conditional, n_trials=40)
        finally:
            optuna.logging.disable_propagation()
        (warned,) = {message for message in caplog.messages if "sampled independently by RandomSampler" in message}
        assert "The parameter 'b' in trial#" in warned
        assert len(study.get_trials(states=(TrialState.COMPLETE,))) == 40

    def test_enqueued_trials_are_evaluated_as_asked(self) -> None:
        study = optuna.create_study(sampler=CoNESSampler(rng=0, popsize=4))
        study.optimize(objective, n_trials=3)
        study.enqueue_trial({"x": 1.25})
        study.optimize(objective, n_trials=8)
        assert study.trials[3].params["x"] == 1.25
        assert POSITION not in study.trials[3].system_attrs  # it is no candidate
        assert study.trials[-1].system_attrs[POSITION]["iteration"] == 2


SCRIPT = """
import optuna, sys
sys.path.insert(0, {tests!r})
from test_optuna import objective
from cones.integrations.optuna import CoNESSampler
study = optuna.load_study(study_name="s", storage={storage!r}, sampler=CoNESSampler(rng={seed}, popsize=6))
study.optimize(objective, n_trials={trials})
"""


class TestStorage:
    def another_process(self, storage: str, trials: int, seed: int | None = 0) -> None:
        tests = str(Path(__file__).parent)
        script = textwrap.dedent(SCRIPT).format(tests=tests, storage=storage, trials=trials, seed=seed)
        subprocess.run([sys.executable, "-c", script], check=True, capture_output=True)

    def test_a_new_process_goes_on(self, tmp_path: Path) -> None:
        storage = f"sqlite:///{tmp_path}/study.db"
        optuna.create_study(study_name="s", storage=storage)
        self.another_process(storage, 16)
        self.another_process(storage, 14, seed=99)  # the seed of the study counts
        whole = optuna.create_study(sampler=CoNESSampler(rng=0, popsize=6))
        whole.optimize(objective, n_trials=30)
        assert params_of(optuna.load_study(study_name="s", storage=storage)) == params_of(whole)

    def test_processes_at_the_same_time_share_populations(self, tmp_path: Path) -> None:
        storage = f"sqlite:///{tmp_path}/study.db"
        study = optuna.create_study(study_name="s", storage=storage)
        study.optimize(objective, n_trials=1)
        tests = str(Path(__file__).parent)
        script = SCRIPT.format(tests=tests, storage=storage, trials=12, seed=None)
        processes = [subprocess.Popen([sys.executable, "-c", script], stderr=subprocess.DEVNULL) for _ in range(2)]
        assert [process.wait() for process in processes] == [0, 0]
        places = [Position.of(t.system_attrs[POSITION]) for t in study.trials[1:] if POSITION in t.system_attrs]
        assert len(places) == 24
        members = [Member(t.number, Position.of(t.system_attrs[POSITION]), t.value) for t in study.trials[1:]]
        state = StudyReplay.of(members, 6, seed=-1)
        assert 1 <= len(state.told) <= 4
        for iteration, population in enumerate(state.told):
            assert [member.position.candidate for member in population] == list(range(6))
            assert {member.position.iteration for member in population} == {iteration}
            assert len({member.position.seed for member in population}) == 1

    @pytest.mark.parametrize(
        "broken",
        [
            3, "x", [], {}, {"run": None}, {"seed": "x"}, {"seed": -1}, {"iteration": None}, {"candidate": 10**9},
            {"candidate": 1.5}, {"parents": 7}, {"parents": ["x"]}, {"more": 1},
        ],
        ids=str,
    )  # fmt: skip
    def test_a_broken_attribute_is_a_trial_of_no_run(self, broken: Any) -> None:
        study = optuna.create_study(sampler=CoNESSampler(rng=0, popsize=4))
        study.optimize(objective, n_trials=7)
        trial = study.trials[3]
        if isinstance(broken, dict) and broken:
            broken = {**trial.system_attrs[POSITION], **broken}
        study.add_trial(
            optuna.trial.create_trial(
                params=trial.params, distributions=trial.distributions, value=1.0, system_attrs={POSITION: broken}
            )
        )
        study.optimize(objective, n_trials=10)
        assert all(trial.state.is_finished() for trial in study.trials)

    def test_a_pickled_sampler_goes_on(self) -> None:
        study = optuna.create_study(sampler=CoNESSampler(rng=0))
        study.optimize(objective, n_trials=15)
        study.sampler = pickle.loads(pickle.dumps(study.sampler))
        study.optimize(objective, n_trials=15)
        whole = optuna.create_study(sampler=CoNESSampler(rng=0))
        whole.optimize(objective, n_trials=30)
        assert params_of(study) == params_of(whole)


def ask(study: optuna.Study) -> tuple[Any, float]:
    trial = study.ask()
    return trial, objective(trial)


def iteration_of(trial: Any) -> int:
    return int(trial.study.trials[trial.number].system_attrs[POSITION]["iteration"])


class TestOrder:
    def test_threads(self) -> None:
        study = optuna.create_study(sampler=CoNESSampler(rng=0, popsize=6))
        study.optimize(objective, n_trials=1)
        study.optimize(objective, n_trials=60, n_jobs=3)
        members = [Member(t.number, Position.of(t.system_attrs[POSITION]), t.value) for t in study.trials[1:]]
        told = StudyReplay.of(members, 6, -1).told
        assert len(told) >= 7  # a few candidates at the end of each are evaluated twice
        for population in told:
            assert [member.position.candidate for member in population] == [0, 1, 2, 3, 4, 5]

    def test_the_order_of_answers_does_not_matter(self) -> None:
        found = []
        for order in (1, -1):
            study = optuna.create_study(sampler=CoNESSampler(rng=0, popsize=6))
            study.tell(*ask(study))
            for _ in range(3):
                for trial, value in [ask(study) for _ in range(6)][::order]:
                    study.tell(trial, value)
            found.append(params_of(study))
        assert found[0] == found[1]

    def test_a_trial_that_never_ends_does_not_hold_up_the_others(self) -> None:
        study = optuna.create_study(sampler=CoNESSampler(rng=0, popsize=4))
        study.tell(*ask(study))
        lost, _ = ask(study)
        for _ in range(3):
            study.tell(*ask(study))
        again, value = ask(study)
        assert again.params == lost.params  # given a second time, all others are evaluated
        study.tell(again, value)
        assert iteration_of(ask(study)[0]) == 1
        study.tell(lost, 0.0)  # too late, and no harm done
        assert iteration_of(ask(study)[0]) == 1

    def test_failed_and_pruned_trials_count_as_worst(self) -> None:
        found = []
        for bad in ({"state": TrialState.FAIL}, {"state": TrialState.PRUNED}, {"values": 1e9}):
            study = optuna.create_study(sampler=CoNESSampler(rng=0, popsize=4))
            study.tell(*ask(study))
            for index in range(8):
                trial, value = ask(study)
                if index == 2:
                    study.tell(trial, **bad)
                else:
                    study.tell(trial, value)
            found.append(ask(study)[0].params)
        assert found[0] == found[1] == found[2]

    def test_pruned_trials_rank_by_how_far_they_came(self) -> None:
        """As if complete trials had losses behind all others: one that came further first."""
        found = []
        for told in ([(9, 5.0), (2, 0.0)], [1e8, 1e9]):
            study = optuna.create_study(sampler=CoNESSampler(rng=0, popsize=4))
            study.tell(*ask(study))
            for index in range(8):
                trial, value = ask(study)
                if index not in (1, 2):
                    study.tell(trial, value)
                elif isinstance(told[0], float):
                    study.tell(trial, told[index - 1])
                else:
                    trial.report(told[index - 1][1], told[index - 1][0])
                    study.tell(trial, state=TrialState.PRUNED)
            found.append(ask(study)[0].params)
        assert found[0] == found[1]

    def test_constraints_are_honoured(self) -> None:
        def objective(trial: Any) -> float:
            x, y = trial.suggest_float("x", -5.0, 5.0), trial.suggest_int("y", -5, 5)
            trial.set_user_attr("c", (1.0 - x,))
            return x**2 + (y - 1) ** 2

        study = optuna.create_study(sampler=CoNESSampler(rng=0, constraints_func=lambda trial: trial.user_attrs["c"]))
        study.optimize(objective, n_trials=250)
        feasible = [t for t in study.trials if t.params["x"] >= 1.0]
        assert min(t.value for t in feasible) == pytest.approx(1.0, abs=0.05)
        assert np.mean([t.params["x"] > 0.8 for t in study.trials[-50:]]) > 0.7
        with pytest.raises(TypeError, match="constraints_func: expected a function"):
            CoNESSampler(constraints_func=3)

    def test_a_population_of_failures_does_not_end_the_study(self) -> None:
        study = optuna.create_study(sampler=CoNESSampler(rng=0, popsize=4))
        study.tell(*ask(study))
        for _ in range(4):
            study.tell(ask(study)[0], state=TrialState.FAIL)
        assert iteration_of(ask(study)[0]) == 1


class TestStudyReplay:
    def place(self, iteration: int, candidate: int, parents: tuple[int, ...] = (), seed: int = 0) -> Position:
        return Position("run", seed, iteration, candidate, parents)

    def test_the_lowest_number_decides(self) -> None:
        members = [
            Member(1, self.place(0, 0), Standing(3.0)),
            Member(2, self.place(0, 0, seed=5), Standing(9.0)),  # of a process that did not see trial 1
            Member(3, self.place(0, 1), Standing(4.0)),
            Member(4, self.place(0, 1), Standing(4.0)),
            Member(5, self.place(1, 0, (2, 3)), Standing(1.0)),  # follows trials that do not count
            Member(6, self.place(1, 0, (1, 4)), Standing(1.0)),
            Member(7, self.place(1, 1, (1, 3)), Standing(2.0)),  # another way than that of trial 6
        ]
        state = StudyReplay.of(members, 2, seed=7)
        assert state.seed == 0
        assert [[member.number for member in population] for population in state.told] == [[1, 4]]
        assert [member.number for member in state.members] == [6]
        assert state.next_candidate(2, number=8) == 1

    def test_nothing_yet(self) -> None:
        state = StudyReplay.of([], 4, seed=7)
        assert (state.seed, state.told, state.members) == (7, (), ())


class TestRefusals:
    def test_several_objectives(self) -> None:
        study = optuna.create_study(directions=["minimize", "maximize"], sampler=CoNESSampler())
        with pytest.raises(ValueError, match="multi-objective optimization, CoNESSampler cannot be used"):
            study.optimize(lambda trial: (trial.suggest_float("x", 0, 1), 0.0), n_trials=1)

    @pytest.mark.parametrize(
        ("settings", "error", "message"),
        [
            ({"maxfev": 100}, TypeError, "use n_trials or timeout"),
            ({"seed": 0}, TypeError, "use rng"),
            ({"bounds": [(0, 1)]}, TypeError, "the search space sets them"),
            ({"nonsense": 0}, TypeError, "unexpected keyword argument 'nonsense'"),
            ({"radius": -1.0}, ValueError, "radius"),
            ({"sigma0": 0.0}, ValueError, "sigma0: expected a positive number"),
            ({"popsize": 1}, ValueError, "popsize: expected at least 2"),
            ({"rng": -1}, ValueError, "rng: expected at least 0"),
        ],
    )
    def test_settings(self, settings: dict[str, Any], error: type[Exception], message: str) -> None:
        with pytest.raises(error, match=message):
            CoNESSampler(**settings)
