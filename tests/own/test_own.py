"""Components of a user's own, in `tests/own_components.py`: in a run, in a checkpoint, by name."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import own_components as own
import pytest
from conformance.variants import assert_same, through_a_file

import cones
from cones import Balls, CheckpointError, InputError
from cones.cli import main
from cones.steps import Convex

HERE = Path(__file__).parent.parent
BITS = {"x0": np.full(30, 0.5), "fun": own.onemax}

# The keywords with objects, the same in words, the flags of the command line, and what a checkpoint then names.
CASES: dict[str, tuple[dict[str, Any], dict[str, Any], list[str], list[Any]]] = {
    "estimator": (
        {"estimator": own.Averaged(0.7), "step": Convex(0.5)},
        {"estimator": "own_components:Averaged,decay=0.7", "step": "convex,radius=0.5"},
        ["--estimator", "own_components:Averaged,decay=0.7", "--step", "convex,radius=0.5"],
        [own.Averaged],
    ),
    "estimator that remembers populations": (
        {"estimator": own.Reusing()},
        {"estimator": "own_components:Reusing"},
        ["--estimator", "own_components:Reusing"],
        [own.Reusing],
    ),
    "step": (
        {"step": own.Cut(0.2)},
        {"step": {"name": "own_components:Cut", "largest": 0.2}},
        ["--step", "own_components:Cut,largest=0.2"],
        [own.Cut],
    ),
    "optimizer": (
        {"optimizer": own.HeavyBall(momentum=0.6), "radius": 1.0},
        {"optimizer": "own_components:HeavyBall,momentum=0.6", "radius": 1.0},
        ["--optimizer", "own_components:HeavyBall,momentum=0.6", "--radius", "1"],
        [own.HeavyBall],
    ),
    "shaping": (
        {"shaping": own.signs},
        {"shaping": "own_components:signs"},
        ["--shaping", "own_components:signs"],
        [own.signs],
    ),
    "solver": (
        {"solver": own.Cautious(0.25), "radius": 1.0},
        {"solver": "own_components:Cautious,share=0.25", "radius": 1.0},
        ["--solver", "own_components:Cautious,share=0.25", "--radius", "1"],
        [own.Cautious],
    ),
    "divergence": (
        {"step": Convex(0.4, divergence=own.Wasserstein())},
        {"step": "convex,radius=0.4,divergence=own_components:Wasserstein"},
        ["--step", "convex,radius=0.4,divergence=own_components:Wasserstein"],
        [own.Wasserstein],
    ),
    "radius control": (
        {"step": Balls(mean=own.Cooling())},
        {"step": "balls,mean=own_components:Cooling"},
        ["--step", "balls,mean=own_components:Cooling"],
        [own.Cooling],
    ),
    "restarts": (
        {"restarts": own.Closer(0.4), "ftol": 100.0},
        {"restarts": "own_components:Closer,factor=0.4", "ftol": 100.0},
        ["--restarts", "own_components:Closer,factor=0.4", "--ftol", "100"],
        [own.Closer],
    ),
    "belief": (
        {**BITS, "belief": own.Bernoulli, "estimator": own.BernoulliScore(), "step": own.BernoulliBall(0.4)},
        {
            **BITS,
            "belief": "own_components:Bernoulli",
            "estimator": "own_components:BernoulliScore",
            "step": "own_components:BernoulliBall,radius=0.4",
        },
        [
            "--belief", "own_components:Bernoulli",
            "--estimator", "own_components:BernoulliScore",
            "--step", "own_components:BernoulliBall,radius=0.4",
        ],
        [own.Bernoulli, own.BernoulliScore, own.BernoulliBall],
    ),
}  # fmt: skip
every_case = pytest.mark.parametrize("case", CASES)
ITERATIONS = 14


def run(settings: dict[str, Any], **more: Any):
    # Some rules plan for the budget that they know of: it is the same in all runs.
    return cones.minimize(
        **{"fun": own.bowl, "x0": np.zeros(12), "rng": 3, "popsize": 10, "maxiter": ITERATIONS, **settings, **more}
    )


def assert_same_result(one, other) -> None:
    np.testing.assert_array_equal(one.x, other.x)
    np.testing.assert_array_equal(one.mean, other.mean)
    assert list(one.history) == list(other.history)
    for name, column in one.history.items():
        if name != "seconds":
            np.testing.assert_array_equal(column, other.history[name])


def stops_at(iteration: int) -> Callable[..., None]:
    def callback(intermediate_result) -> None:
        if intermediate_result.nit == iteration:
            raise StopIteration

    return callback


def names(allowed: list[Any]) -> list[str]:
    return [f"own_components:{thing.__name__}" for thing in allowed]


@every_case
def test_an_object_and_its_name_give_the_same_run(case: str) -> None:
    objects, words, _, _ = CASES[case]
    one = run(objects)
    assert_same_result(one, run(words))
    assert one.nit == ITERATIONS
    assert one.history["mean_loss"][-3:].mean() < one.history["mean_loss"][:3].mean()
    plain = run({name: objects[name] for name in ("fun", "x0") if name in objects})
    assert not np.array_equal(one.mean, plain.mean)  # it makes a difference


@every_case
@pytest.mark.parametrize("when", [1, 6])
def test_a_checkpoint_goes_on_bit_for_bit(case: str, when: int, tmp_path: Path) -> None:
    objects, words, _, allowed = CASES[case]
    fun = objects.get("fun", own.bowl)
    straight = run(objects)
    for given, allow in ((objects, allowed), (words, names(allowed)), (objects, names(allowed))):
        path = tmp_path / "run.ckpt"
        path.unlink(missing_ok=True)
        assert run(given, checkpoint=path, callback=stops_at(when)).nit == when
        assert_same_result(cones.resume(path, fun, allow=allow), straight)
        assert_same(cones.load(path, allow=allow).algorithm, cones.load(path, allow=allowed).algorithm)


@every_case
def test_a_checkpoint_is_refused_if_its_components_are_not_allowed(case: str, tmp_path: Path) -> None:
    objects, _, _, allowed = CASES[case]
    run(objects, checkpoint=tmp_path / "run.ckpt")
    expected = r"contains own_components:\w+, which is not part of this library.*allow=\['own_components:\w+'\]"
    for allow in ([], ["objectives:loss_that_is_not_there"], [np.sin], ["json:dumps"]):
        with pytest.raises((CheckpointError, InputError)) as caught:
            cones.load(tmp_path / "run.ckpt", allow=allow)
        assert allow or "which is not part of this library" in str(caught.value)
    with pytest.raises(CheckpointError, match=expected):
        cones.load(tmp_path / "run.ckpt")
    with pytest.raises(CheckpointError, match="which is not part of this library"):
        cones.resume(tmp_path / "run.ckpt", own.bowl)
    assert cones.load(tmp_path / "run.ckpt", allow=allowed).state.iteration == ITERATIONS


LOADS = """
import sys
import cones
try:
    cones.load(sys.argv[1], allow=sys.argv[2:])
except cones.CheckpointError as error:
    print("refused", error)
print("imported" if "own_components" in sys.modules else "not imported")
"""


@every_case
def test_no_module_is_imported_that_was_not_allowed(case: str, tmp_path: Path) -> None:
    objects, _, _, allowed = CASES[case]
    run(objects, checkpoint=tmp_path / "run.ckpt")

    def loaded(*allow: str) -> list[str]:
        command = [sys.executable, "-c", LOADS, str(tmp_path / "run.ckpt"), *allow]
        # The module can be found: the file alone must not be enough.
        return subprocess.run(command, cwd=HERE, capture_output=True, text=True, check=True).stdout.splitlines()

    first, last = loaded()
    assert first.startswith("refused")
    assert last == "not imported"
    assert loaded(*names(allowed)) == ["imported"]


class TestStates:
    def test_of_any_shape_are_stored(self, tmp_path: Path) -> None:
        es = cones.CoNES(np.zeros(4), step=own.Cut(), optimizer=own.HeavyBall(), estimator=own.Averaged(), rng=0)
        for _ in range(5):
            X = es.ask()
            es.tell(X, [own.bowl(x) for x in X])
        es.save(tmp_path / "run.ckpt")
        again = cones.load(tmp_path / "run.ckpt", allow=[own.Cut])  # one class of the module allows its dataclasses
        assert_same(again.state.components, es.state.components)
        assert type(again.state.components.step) is dict
        assert type(again.state.components.step["of"]) is tuple
        assert type(again.state.components.optimizer) is own.HeavyBallState
        assert type(again.state.components.estimator) is own.AverageState
        assert again.state.components.estimator.count == 5

    def test_columns_of_components_are_in_the_history(self, tmp_path: Path) -> None:
        result = run({"estimator": own.Averaged(), "step": own.Cut(0.01)})
        np.testing.assert_array_equal(result.history["averaged"], np.arange(ITERATIONS))
        np.testing.assert_array_equal(result.history["cuts"], 2.0 * np.arange(1, ITERATIONS + 1))

    def test_past_populations_are_those_that_were_told(self) -> None:
        es = cones.CoNES(np.zeros(12), estimator=own.Reusing(), rng=3, popsize=10)
        sums = []
        for iteration in range(6):
            X = es.ask()
            sums.append(float(X.sum()))
            es.tell(X, [own.bowl(x) for x in X])
            assert es.history.latest("past") == min(iteration, 2)
            assert es.history.latest("past_sum") == pytest.approx(sum(sums[max(iteration - 2, 0) : iteration]))
        assert len(es.state.components.past) == 2

    def test_a_restart_forgets_past_populations(self) -> None:
        es = cones.CoNES(np.zeros(3), estimator=own.Reusing(), rng=3, restarts=1, ftol=1e-2, maxiter=500)
        while es.state.restarts == 0:
            X = es.ask()
            es.tell(X, [own.bowl(x) for x in X])
        X = es.ask()
        es.tell(X, [own.bowl(x) for x in X])
        assert es.history.latest("past") == 0

    def test_every_own_component_survives_a_file(self, tmp_path: Path) -> None:
        for component in (own.Averaged(0.1), own.Cut(2.0), own.HeavyBall(), own.Cooling(), own.Cautious()):
            path = tmp_path / "value.npz"
            with pytest.raises(CheckpointError, match="which is not part of this library"):
                through_a_file(component, tmp_path)
            found = cones.storage.read(path, "test", 1, ["value"], allow=[type(component)])["value"]
            assert found == component


class TestWhatCannotBeStored:
    def test_a_function_without_a_name_runs_and_is_named_when_it_is_saved(self, tmp_path: Path) -> None:
        es = cones.CoNES(np.zeros(4), shaping=lambda losses: np.argsort(np.argsort(losses)) - 2.0, rng=0)
        X = es.ask()
        es.tell(X, [own.bowl(x) for x in X])
        with pytest.raises(CheckpointError, match="checkpoint: expected dataclasses, arrays"):
            es.save(tmp_path / "run.ckpt")
        assert not (tmp_path / "run.ckpt").exists()

    @pytest.mark.parametrize("wrong", [np.zeros(3), np.full(10, np.nan), "no", None])
    def test_a_shaping_that_gives_something_else_is_named(self, wrong: Any) -> None:
        with pytest.raises(InputError, match=r"shaping: expected 10 finite|utilities: expected"):
            run({"shaping": lambda losses: wrong})

    def test_an_estimator_for_gaussians_says_so(self) -> None:
        with pytest.raises(InputError, match="estimator: expected one for Bernoulli, got one for Gaussian beliefs"):
            run({**BITS, "belief": "own_components:Bernoulli", "step": own.BernoulliBall()})


class TestBernoulli:
    """A belief that is not Gaussian goes through the same iteration."""

    settings: dict[str, Any] = {  # noqa: RUF012
        "belief": "own_components:Bernoulli",
        "estimator": "own_components:BernoulliScore",
        "step": "own_components:BernoulliBall",
    }

    @pytest.mark.parametrize("seed", range(3))
    def test_onemax_in_30_dimensions_is_solved(self, seed: int) -> None:
        result = cones.minimize(own.onemax, np.full(30, 0.5), rng=seed, ftarget=-30.0, maxfev=3000, **self.settings)
        assert result.success
        np.testing.assert_array_equal(result.x, np.ones(30))
        assert isinstance(result.belief, own.Bernoulli)
        assert (result.history["kl"] <= 0.25 + 1e-9).all()
        assert result.history["kl"][0] == pytest.approx(0.25)
        assert (result.history["step_status"] == cones.StepStatus.OPTIMAL.code).all()

    def test_draws_densities_and_divergences_agree(self) -> None:
        p, q = own.Bernoulli(np.array([0.2, 0.7, 0.5, 0.9])), own.Bernoulli(np.array([0.3, 0.6, 0.5, 0.8]))
        X = p.candidates(np.random.default_rng(0).standard_normal((100_000, 4)))
        assert set(np.unique(X)) == {0.0, 1.0}
        np.testing.assert_allclose(X.mean(axis=0), p.mean, atol=0.01)
        logs = p.log_density(X) - q.log_density(X)
        assert abs(logs.mean() - p.kl(q)) < 5 * logs.std() / np.sqrt(len(X))

    def test_bits_come_in_pairs_of_opposite_noise(self) -> None:
        es = cones.CoNES(np.full(30, 0.5), antithetic=True, rng=0, popsize=10, **self.settings)
        X = es.ask()
        np.testing.assert_array_equal(X[::2] + X[1::2], np.ones((5, 30)))

    @pytest.mark.filterwarnings("ignore:.*multi-threaded.*:DeprecationWarning")
    @pytest.mark.parametrize("more", [{"chunked": True}, {"workers": 2}, {"chunked": True, "workers": 2}], ids=str)
    def test_however_it_is_evaluated_it_is_the_same_run(self, more: dict[str, Any]) -> None:
        assert_same_result(run({**BITS, **self.settings}, **more), run({**BITS, **self.settings}))

    @pytest.mark.parametrize("optimizer", ["adam", "sgd,learning_rate=1,momentum=0.5", "direct"])
    def test_every_optimizer_moves_it(self, optimizer: str) -> None:
        result = cones.minimize(
            own.onemax, np.full(30, 0.5), rng=0, ftarget=-30.0, maxfev=20_000, optimizer=optimizer, **self.settings
        )
        assert result.success


class TestCommandLine:
    @pytest.fixture(autouse=True)
    def _folder(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.chdir(tmp_path)

    def arguments(self, case: str, *more: str) -> list[str]:
        objects, _, flags, _ = CASES[case]
        fun = objects.get("fun", own.bowl).__name__
        x0 = ",".join(str(float(number)) for number in objects.get("x0", np.zeros(12)))
        common = ["--x0", x0, "--seed", "3", "--popsize", "10", "--maxiter", str(ITERATIONS), "--quiet"]
        return ["minimize", f"own_components:{fun}", *common, *flags, *more]

    @every_case
    def test_flags_give_the_run_of_the_keywords(self, case: str, capsys: pytest.CaptureFixture[str]) -> None:
        assert main(self.arguments(case)) == 0
        report, expected = json.loads(capsys.readouterr().out), run(CASES[case][0])
        np.testing.assert_array_equal(report["x"], expected.x)
        assert (report["fun"], report["nfev"]) == (expected.fun, expected.nfev)

    @every_case
    def test_resume_allows_what_the_flags_name(self, case: str, capsys: pytest.CaptureFixture[str]) -> None:
        # The same budget in all runs: a run that was cut short is a checkpoint that another one goes on from.
        run(CASES[case][0], checkpoint="run.ckpt", callback=stops_at(5))
        assert main(self.arguments(case, "--checkpoint", "run.ckpt", "--resume")) == 0
        np.testing.assert_array_equal(json.loads(capsys.readouterr().out)["x"], run(CASES[case][0]).x)

    @every_case
    def test_resume_without_the_flags_needs_allow(self, case: str, capsys: pytest.CaptureFixture[str]) -> None:
        objects, _, flags, allowed = CASES[case]
        run(objects, checkpoint="run.ckpt", callback=stops_at(5))
        bare = [part for part in self.arguments(case, "--checkpoint", "run.ckpt", "--resume") if part not in flags]
        assert main(bare) == 2
        assert "--allow own_components:" in capsys.readouterr().err
        allow = [part for name in names(allowed) for part in ("--allow", name)]
        assert main([*bare, *allow]) == 0
        np.testing.assert_array_equal(json.loads(capsys.readouterr().out)["x"], run(objects).x)

    def test_another_setting_on_resume_is_refused(self, capsys: pytest.CaptureFixture[str]) -> None:
        run(CASES["estimator"][0], checkpoint="run.ckpt", callback=stops_at(5))
        arguments = self.arguments("estimator", "--checkpoint", "run.ckpt", "--resume")
        arguments[arguments.index("--estimator") + 1] = "own_components:Averaged,decay=0.2"
        assert main(arguments) == 2
        assert "was started with a different --estimator" in capsys.readouterr().err

    @pytest.mark.parametrize(
        ("flags", "message"),
        [
            (["--estimator", "own_components:Nothing"], "estimator: module own_components has no 'Nothing'"),
            (["--estimator", "no_such_module:Thing"], "estimator: no module named 'no_such_module'"),
            (
                ["--estimator", "own_components:Cut"],
                "estimator: expected one of 'score_function', 'asebo', 'best_directions', 'clipped', 'elite',",
            ),
            (["--estimator", "own_components:Averaged,deca=1"], "did you mean decay?"),
            (["--estimator", "score_functio"], "did you mean score_function?"),
            (["--optimizer", "own_components:HeavyBall,rate"], "optimizer: expected setting=value after the name"),
            (["--shaping", "own_components:nothing"], "shaping: module own_components has no 'nothing'"),
            (
                ["--belief", "own_components:Cut"],
                "belief: expected one of 'bernoulli', 'categorical', 'poisson', 'product', 'diagonal', 'full',",
            ),
            (["--step", "convex"], "step: cannot create Convex"),
        ],
    )
    def test_mistakes_are_one_line_and_exit_code_2(
        self, flags: list[str], message: str, capsys: pytest.CaptureFixture[str]
    ) -> None:
        assert main(["minimize", "own_components:bowl", "--dim", "3", "--quiet", *flags]) == 2
        error = capsys.readouterr().err.strip().splitlines()
        assert message in error[-1]
        assert not any("Traceback" in line for line in error)

    def test_rates_go_with_an_optimizer_that_has_settings(self, capsys: pytest.CaptureFixture[str]) -> None:
        flags = ["--radius", "1", "--optimizer", "sgd,momentum=0.5", "--learning-rate", "0.3"]
        arguments = ["minimize", "own_components:bowl", "--dim", "12", "--seed", "3", "--popsize", "10", "--quiet"]
        assert main([*arguments, "--maxiter", str(ITERATIONS), *flags]) == 0
        expected = run({"optimizer": cones.SGD(0.3, momentum=0.5), "radius": 1.0})
        np.testing.assert_array_equal(json.loads(capsys.readouterr().out)["x"], expected.x)

    def test_a_module_of_the_current_folder_is_found(self, tmp_path: Path) -> None:
        (tmp_path / "mine.py").write_text((HERE / "own_components.py").read_text())
        command = [sys.executable, "-m", "cones", "minimize", "mine:onemax", "--x0", ",".join(["0.5"] * 30)]
        flags = ["--belief", "mine:Bernoulli", "--estimator", "mine:BernoulliScore", "--step", "mine:BernoulliBall"]
        done = subprocess.run(
            [*command, *flags, "--ftarget", "-30", "--seed", "0", "--quiet"],
            cwd=tmp_path,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        assert json.loads(done.stdout)["fun"] == -30.0
