from __future__ import annotations

import io
import os
import signal
import subprocess
import sys
import textwrap
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import numpy as np
import pytest
import scipy.optimize
from scipy.optimize import Bounds, OptimizeResult, rosen

import cones
from cones import InputError
from cones.run.display import ProgressLine, describe

fork_warning = pytest.mark.filterwarnings("ignore:.*multi-threaded.*:DeprecationWarning")


def sphere(x: np.ndarray, shift: float = 0.0) -> float:
    return float(((x - shift) ** 2).sum())


def test_result_is_scipys() -> None:
    result = cones.minimize(sphere, [3.0, 3.0], (1.0,), rng=0, maxiter=100, radius="paper")
    assert isinstance(result, OptimizeResult)
    np.testing.assert_allclose(result.x, [1.0, 1.0], atol=0.05)
    assert result.fun == sphere(result.x, 1.0)
    # The start, 100 populations, and the best candidate again.
    assert (result.nfev, result.nit, result.status, result.success) == (10_002, 100, 2, False)
    assert "maxiter = 100" in result.message
    assert len(result.history["kl"]) == 100
    assert isinstance(result.belief, cones.DiagonalGaussian)


@fork_warning
def test_how_it_is_evaluated_does_not_change_the_result() -> None:
    def rows(X: np.ndarray, shift: float) -> list[float]:
        return [sphere(x, shift) for x in X]

    settings = {"rng": 5, "maxiter": 8, "popsize": 12}
    expected = cones.minimize(sphere, [3.0, 3.0], (1.0,), **settings)
    with ThreadPoolExecutor(2) as executor:
        others = [
            cones.minimize(rows, [3.0, 3.0], (1.0,), vectorized=True, **settings),
            cones.minimize(sphere, [3.0, 3.0], (1.0,), workers=2, **settings),
            cones.minimize(sphere, [3.0, 3.0], (1.0,), workers=map, **settings),
            cones.minimize(sphere, [3.0, 3.0], (1.0,), workers=executor, **settings),
        ]
    for result in others:
        np.testing.assert_array_equal(result.x, expected.x)
        np.testing.assert_array_equal(result.belief.mean, expected.belief.mean)


def test_maxfev_is_never_exceeded() -> None:
    calls = []
    result = cones.minimize(lambda x: calls.append(1) or sphere(x), [1.0], popsize=10, maxfev=35, rng=0)
    assert len(calls) == result.nfev == 31  # with the start
    assert result.stop == "maxfev"


def test_maxtime_stops() -> None:
    result = cones.minimize(lambda x: time.sleep(0.01) or sphere(x), [1.0], popsize=4, maxtime=0.2, rng=0, ftol=None)
    assert result.stop == "maxtime"
    assert 0.2 <= result.history["seconds"][-1] < 5.0


def test_ftarget_xtol_ftol_and_stagnation_stop() -> None:
    assert cones.minimize(sphere, [3.0, 3.0], rng=0, ftarget=0.1).stop == "ftarget"
    tight = cones.minimize(sphere, [3.0, 3.0], rng=0, xtol=1e-3, ftol=None, method="nes")
    assert tight.stop == "xtol"
    assert tight.belief.standard_deviations().max() <= 1e-3
    flat = cones.minimize(lambda x: 7.0, [3.0, 3.0], rng=0)
    assert (flat.stop, flat.nit) == ("ftol", 10)
    rng = np.random.default_rng(0)
    noise = cones.minimize(lambda x: rng.standard_normal(), [3.0, 3.0], rng=0, maxiter=10_000, popsize=10)
    assert noise.stop == "stagnation"
    assert noise.nit < 1000
    flat = cones.minimize(
        lambda x: float(x @ x + rng.standard_normal()), [3.0, 3.0], rng=0, maxfev=5000, plateau=50, restarts=0
    )
    assert flat.stop == "plateau"
    assert 50 <= flat.nit < 200


def test_args_that_are_no_tuple_are_one_argument() -> None:
    """As in SciPy."""
    one = cones.minimize(sphere, [3.0], 1.0, rng=0, maxiter=3)
    np.testing.assert_array_equal(one.x, cones.minimize(sphere, [3.0], (1.0,), rng=0, maxiter=3).x)


class TestCallback:
    def test_intermediate_result(self) -> None:
        seen: list[OptimizeResult] = []

        def callback(intermediate_result: OptimizeResult) -> None:
            seen.append(intermediate_result)

        result = cones.minimize(sphere, [3.0, 3.0], rng=0, maxiter=4, callback=callback)
        assert [r.nit for r in seen] == [1, 2, 3, 4]
        assert [r.fun for r in seen] == list(result.history["best"])
        assert seen[-1].mean_loss == result.history["mean_loss"][-1]
        np.testing.assert_array_equal(seen[-1].x, result.x)

    def test_best_candidate(self) -> None:
        seen: list[np.ndarray] = []
        result = cones.minimize(sphere, [3.0, 3.0], rng=0, maxiter=4, callback=lambda xk: seen.append(xk))
        np.testing.assert_array_equal(seen[-1], result.x)

    def test_stop_iteration_stops(self) -> None:
        def callback(intermediate_result: OptimizeResult) -> None:
            if intermediate_result.nit == 3:
                raise StopIteration

        result = cones.minimize(sphere, [3.0, 3.0], rng=0, callback=callback)
        assert (result.nit, result.stop, result.status) == (3, "callback", 6)

    def test_stop_iteration_from_fun_is_an_error(self) -> None:
        """Only the callback may stop a run that way."""
        with pytest.raises(StopIteration):
            cones.minimize(lambda x: next(iter(())), [3.0], rng=0, popsize=4)


class TestFailures:
    @staticmethod
    def crashing():
        """A loss whose 26th evaluation fails."""
        calls = iter(range(1, 1000))

        def fun(x: np.ndarray) -> float:
            if next(calls) == 26:
                raise RuntimeError("simulator crashed")
            return sphere(x)

        return fun

    def test_exception_carries_the_candidate_the_iteration_and_the_result(self) -> None:
        with pytest.raises(RuntimeError, match="simulator crashed") as caught:
            cones.minimize(self.crashing(), [3.0, 3.0], popsize=10, rng=0)
        notes = "\n".join(caught.value.__notes__)
        assert "candidate 4" in notes
        assert "iteration 2, after 21 evaluations" in notes
        assert caught.value.cones_result.nfev == 25  # with the four of this population that are known
        assert caught.value.cones_result.fun > 0.0

    def test_exception_leaves_a_checkpoint_to_go_on_from(self, tmp_path) -> None:
        path = tmp_path / "run.ckpt"
        with pytest.raises(RuntimeError):
            cones.minimize(self.crashing(), [3.0, 3.0], popsize=10, rng=0, maxiter=6, checkpoint=path)
        resumed = cones.resume(path, sphere)
        straight = cones.minimize(sphere, [3.0, 3.0], popsize=10, rng=0, maxiter=6)
        np.testing.assert_array_equal(resumed.belief.mean, straight.belief.mean)
        np.testing.assert_array_equal(resumed.x, straight.x)

    def test_keyboard_interrupt_returns_the_best_so_far(self, tmp_path) -> None:
        path = tmp_path / "run.ckpt"
        calls = 0

        def fun(x: np.ndarray) -> float:
            nonlocal calls
            calls += 1
            if calls == 35:
                os.kill(os.getpid(), signal.SIGINT)
                time.sleep(1.0)
            return sphere(x)

        result = cones.minimize(fun, [3.0, 3.0], popsize=10, rng=0, checkpoint=path, maxiter=50)
        assert (result.stop, result.status, result.success, result.nit) == ("interrupted", 7, False, 3)
        assert result.nfev == 34
        assert result.fun > 0.0
        assert cones.load(path).state.iteration == 3

    @fork_warning
    def test_keyboard_interrupt_ends_worker_processes(self) -> None:
        timer = threading.Timer(1.0, lambda: os.kill(os.getpid(), signal.SIGINT))
        timer.start()
        begin = time.monotonic()
        result = cones.minimize(slow, [3.0], popsize=4, workers=2, rng=0)
        assert result.stop == "interrupted"
        assert time.monotonic() - begin < 20.0

    def test_all_nan_stops(self) -> None:
        result = cones.minimize(lambda x: np.nan, [3.0, 3.0], rng=0)
        assert (result.stop, result.status, result.nit, result.success) == ("no_finite_loss", 5, 1, False)
        assert result.history["failures"][0] == 6


def slow(x: np.ndarray) -> float:
    time.sleep(60.0)
    return 0.0


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        (
            {"method": "cmaes"},
            "method: expected one of 'es', 'nes', 'cones', 'ars', 'tres', 'more', 'trcma', 'cma', 'sepcma', 'openes', "
            "'pgpe', got",
        ),
        ({"checkpoint_every": 5}, "checkpoint_every: expected together with checkpoint"),
        ({"checkpoint_every": 0, "checkpoint": "x"}, "checkpoint_every: expected at least 1, got 0"),
        ({"fun": 3}, "fun: expected a callable, got int"),
        ({"checkpoint": 5}, "checkpoint: expected a path, got 5"),
        ({"callback": 5}, "callback: expected a callable, got int"),
    ],
)
def test_bad_input_is_named(settings: dict[str, object], message: str, tmp_path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(InputError, match=message):
        cones.minimize(**{"fun": sphere, "x0": [0.0], **settings})


def test_settings_of_another_method_are_refused() -> None:
    with pytest.raises(TypeError, match="radius: not a setting of method 'nes'"):
        cones.minimize(sphere, [0.0], method="nes", radius=1.0)


def test_a_typo_is_answered_by_what_was_meant() -> None:
    with pytest.raises(TypeError, match=r"unexpected keyword argument 'popsice'.*did you mean popsize\?"):
        cones.minimize(sphere, [0.0], popsice=10)


class TestSciPy:
    def test_method(self) -> None:
        result = scipy.optimize.minimize(
            rosen, np.zeros(3), method=cones.scipy_method, options={"rng": 0, "ftarget": 0.5}
        )
        assert result.success
        assert rosen(result.x) <= 0.5

    def test_bounds_args_callback_and_tol(self) -> None:
        seen = []
        result = scipy.optimize.minimize(
            sphere,
            [1.0, 1.0],
            args=(0.0,),
            method=cones.scipy_method,
            bounds=Bounds(0.5, 2.0),
            callback=lambda intermediate_result: seen.append(intermediate_result.fun),
            tol=1e-3,
            options={"rng": 0},
        )
        np.testing.assert_allclose(result.x, [0.5, 0.5], atol=0.02)
        assert result.stop in ("xtol", "ftol")
        assert len(seen) == result.nit

    def test_derivatives_are_not_used(self) -> None:
        with pytest.warns(RuntimeWarning, match="cones uses no derivatives"):
            scipy.optimize.minimize(
                sphere, [1.0], method=cones.scipy_method, jac=lambda x: 2 * x, options={"maxiter": 1, "rng": 0}
            )


class TestRestOfTheBudget:
    """A budget that is no multiple of the population says what is left of it."""

    @pytest.mark.parametrize(("maxfev", "left"), [(57, 0), (60, 3), (64, 7), (65, 0)])
    def test_it_is_in_the_message(self, maxfev: int, left: int) -> None:
        result = cones.minimize(sphere, [3.0, 3.0], rng=0, popsize=8, maxfev=maxfev, noisy=False)
        assert result.nfev == maxfev - left
        rest = f" but for {left}: a population takes 8." if left else "."
        assert result.message == f"The budget of maxfev = {maxfev} evaluations is spent{rest}"


class TestLogging:
    def test_levels(self, caplog: pytest.LogCaptureFixture) -> None:
        def fails_once(x: np.ndarray) -> float:
            calls.append(1)
            if len(calls) == 9:
                raise ValueError("no licence")
            return float((x**2).sum())

        calls: list[int] = []
        with caplog.at_level("DEBUG", logger="cones"), ThreadPoolExecutor(1) as threads:
            result = cones.minimize(
                fails_once, [3.0, 3.0], rng=0, popsize=6, maxiter=3, workers=threads, retries=0, restarts=0
            )
        levels = [record.levelname for record in caplog.records]
        assert {record.name for record in caplog.records} == {"cones"}
        assert levels == ["INFO", "DEBUG", "WARNING", "DEBUG", "DEBUG", "INFO"]
        assert caplog.records[0].message == "CoNES starts: 2 dimensions, popsize 6"
        assert caplog.records[2].message == "iteration 1, candidate 1: ValueError: no licence (tried once)"
        assert caplog.records[-1].message == f"{result.message} Best {result.fun:g} after {result.nfev} evaluations."

    def test_restarts_and_the_end_by_an_exception(self, caplog: pytest.LogCaptureFixture) -> None:
        def raises(intermediate_result: OptimizeResult) -> None:
            if intermediate_result.restart:
                raise KeyError("enough")

        with caplog.at_level("INFO", logger="cones"), pytest.raises(KeyError):
            cones.minimize(sphere, [3.0], rng=0, popsize=6, xtol=0.1, restarts=3, maxfev=5000, callback=raises)
        said = [record.message for record in caplog.records]
        assert said[1].startswith("restart 1 after iteration ")
        assert said[-1].endswith("by KeyError")


class TestDisplay:
    def test_lines_when_not_on_a_terminal(self, capsys: pytest.CaptureFixture[str]) -> None:
        cones.minimize(sphere, [3.0, 3.0], rng=0, maxiter=5, disp=True)
        output = capsys.readouterr()
        assert output.out == ""
        assert "CoNES 100%  best " in output.err
        assert "iteration 5  spread " in output.err
        assert output.err.endswith("The budget of maxiter = 5 iterations is spent.\n")
        assert "\r" not in output.err

    def test_one_line_on_a_terminal(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("COLUMNS", "200")

        class Terminal(io.StringIO):
            def isatty(self) -> bool:
                return True

        stream = Terminal()
        line = ProgressLine(stream)
        es = cones.NES([3.0, 3.0], rng=0, maxiter=10)
        line.update(es)
        for _ in range(3):
            X = es.ask()
            es.tell(X, (X**2).sum(axis=1))
        line.finish(es, "Done.")
        *frames, rest = stream.getvalue().split("\r")
        assert frames == ["", "NES: starting"]
        assert rest.startswith("NES 30%, <")
        assert "left  best " in rest
        assert "300 evals" in rest
        assert rest.endswith("\nDone.\n")

    @pytest.mark.parametrize(("columns", "least"), [(80, 4), (40, 1), (200, 7)])
    def test_whole_parts_that_fit(self, columns: int, least: int) -> None:
        """Share and time left come first, so that a narrow terminal cuts what matters less."""
        es = cones.NES([3.0, 3.0], rng=0, maxfev=10_000_000)
        X = es.ask()
        es.tell(X, -1.2345678e-100 * (X**2).sum(axis=1))
        es.state = replace(es.state, seconds=35_999.0, evaluations=4_567_890, iteration=123_456)
        line = describe(es, columns - 1)
        assert len(line) < columns
        assert line.startswith("NES 46%, <11h53m left")
        assert len(line.split("  ")) >= least
        assert describe(es).startswith(line)

    def test_silent_by_default(self, capsys: pytest.CaptureFixture[str]) -> None:
        cones.minimize(sphere, [3.0, 3.0], rng=0, maxiter=2)
        assert capsys.readouterr() == ("", "")


def test_script_with_workers_leaves_no_processes(tmp_path) -> None:
    """As a user runs it: a script of their own, Ctrl-C from the terminal."""
    script = tmp_path / "script.py"
    script.write_text(
        textwrap.dedent(
            """
            import time, cones
            def fun(x):
                time.sleep(0.02)
                return float((x**2).sum())
            if __name__ == "__main__":
                print("started", flush=True)
                result = cones.minimize(fun, [3.0, 3.0], workers=2, popsize=8, rng=0, maxiter=100_000)
                print(result.stop, flush=True)
            """
        )
    )
    process = subprocess.Popen(
        [sys.executable, str(script)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "started\n"
    time.sleep(2.0)
    os.killpg(process.pid, signal.SIGINT)  # a terminal sends it to the whole group
    out, err = process.communicate(timeout=60)
    assert out == "interrupted\n"
    assert "Traceback" not in err
    assert process.returncode == 0
    with pytest.raises(ProcessLookupError):
        os.killpg(process.pid, 0)
