from __future__ import annotations

import io
import os
import pickle
import signal
import subprocess
import sys
import textwrap
import time
import zipfile
from pathlib import Path

import numpy as np
import pytest

import cones
from cones import CheckpointError
from cones.archive import read_archive, write_archive
from cones.run import checkpoint
from cones.strategy import CHECKPOINT


def sphere(X: np.ndarray) -> np.ndarray:
    return ((X - 1.0) ** 2).sum(axis=1)


def same_state(one: cones.Strategy, other: cones.Strategy) -> None:
    for a, b in zip(one.state.belief.state().values(), other.state.belief.state().values(), strict=True):
        np.testing.assert_array_equal(a, b)
    assert one.state.best_fun == other.state.best_fun
    np.testing.assert_array_equal(one.state.best_x, other.state.best_x)
    for name in (
        "evaluations",
        "best",
        "mean_loss",
        "step",
        "spread",
        "kl",
        "multiplier",
        "gap",
        "mean_radius",
        "failures",
    ):
        np.testing.assert_array_equal(one.history[name], other.history[name])


SETTINGS = [
    {"method": cones.ES},
    {"method": cones.NES, "belief": "full", "shaping": "normal_scores"},
    {"method": cones.CoNES, "belief": "full", "optimizer": cones.SGD(0.1, 0.05, momentum=0.9)},
    {"method": cones.CoNES, "antithetic": False, "bounds": [(-2.0, 2.0)] * 7, "popsize": 9},
    {"method": cones.CoNES, "radius": 3.0},
    {"method": cones.CoNES, "belief": "diagonal", "stagnation": 2, "restarts": 3, "maxfev": 1000, "ftol": 10.0},
    {"method": cones.CoNES, "radius": cones.Balls(scale=cones.radius.Fixed(0.1)), "belief": "full"},
    {"method": cones.CoNES, "optimizer": cones.SGD(0.1, momentum=0.5), "shaping": "standardised", "maxtime": 1e6},
]


@pytest.mark.parametrize("settings", SETTINGS, ids=lambda s: "-".join([s["method"].__name__, *list(s)[1:]]))
@pytest.mark.parametrize("when", [0, 1, 5])
def test_a_loaded_strategy_goes_on_bit_for_bit(settings: dict[str, object], when: int, tmp_path: Path) -> None:
    settings = {"popsize": 6, "rng": 0, "ftarget": 0.0, **settings}
    method = settings.pop("method")
    straight, broken = method(np.zeros(7), **settings), method(np.zeros(7), **settings)
    for iteration in range(12):
        if iteration == when:
            broken.save(tmp_path / "run.ckpt")
            broken = cones.load(tmp_path / "run.ckpt")
        for es in (straight, broken):
            X = es.ask()
            es.tell(X, sphere(X))
    same_state(straight, broken)
    assert broken.criteria == straight.criteria
    assert repr(broken) == repr(straight)


def test_large_and_special_numbers_survive(tmp_path: Path) -> None:
    es = cones.NES([1.0, 2.0], popsize=4, rng=2**128 - 1, ftarget=-np.inf)
    es.tell(es.ask(), [np.nan, -np.inf, np.inf, 1.0])
    es.save(tmp_path / "run.ckpt")
    again = cones.load(tmp_path / "run.ckpt")
    same_state(es, again)
    np.testing.assert_array_equal(again.ask(), es.ask())


SCRIPT = """
import sys, time
import numpy as np
import cones

def fun(X):
    time.sleep(0.01)
    return ((X - 1.0) ** 2).sum(axis=1)

def show(result):
    arrays = [result.x, *result.belief.state().values(), *(v for k, v in result.history.items() if k != "seconds")]
    print(b"".join(np.ascontiguousarray(a).tobytes() for a in arrays).hex())

path, mode, belief = sys.argv[1:]
if mode == "start":
    show(cones.minimize(fun, np.zeros(6), vectorized=True, rng=3, popsize=10, belief=belief, maxiter=150,
                        checkpoint=path, checkpoint_every=1))
else:
    show(cones.resume(path, fun))
"""


@pytest.mark.parametrize("belief", ["diagonal", "full"])
def test_kill_minus_nine_and_resume(belief: str, tmp_path: Path) -> None:
    """A real process is killed again and again, and ends where the one that was left alone ends."""
    script = tmp_path / "script.py"
    script.write_text(SCRIPT)

    def run(path: Path, mode: str) -> subprocess.Popen[str]:
        command = [sys.executable, str(script), str(path), mode, belief]
        return subprocess.Popen(command, stdout=subprocess.PIPE, text=True)

    expected, _ = run(tmp_path / "straight.ckpt", "start").communicate(timeout=120)
    assert len(expected) > 1000
    path = tmp_path / "killed.ckpt"
    process = run(path, "start")
    kills = 0
    while process.poll() is None:
        deadline = time.monotonic() + 30.0
        before = path.stat().st_mtime_ns if path.exists() else 0
        # Wait until it makes progress, then a moment that falls anywhere in an iteration.
        while process.poll() is None and time.monotonic() < deadline:
            if path.exists() and path.stat().st_mtime_ns > before:
                break
            time.sleep(0.005)
        time.sleep(0.1 + 0.037 * kills)
        if process.poll() is None and kills < 4:
            process.send_signal(signal.SIGKILL)
            process.communicate()
            kills += 1
            process = run(path, "resume")
        else:
            break
    output, _ = process.communicate(timeout=120)
    assert kills >= 2
    assert output == expected


def test_resume_with_a_larger_budget(tmp_path: Path) -> None:
    path = tmp_path / "run.ckpt"
    # Adaptive radii plan for the budget they know of.
    settings = {"vectorized": True, "rng": 0, "popsize": 10, "xtol": None, "radius": "paper"}
    first = cones.minimize(sphere, [0.0, 0.0], maxiter=5, checkpoint=path, **settings)
    assert first.stop == "maxiter"
    assert cones.resume(path, sphere).nit == 5
    more = cones.resume(path, sphere, maxiter=9)
    straight = cones.minimize(sphere, [0.0, 0.0], maxiter=9, **settings)
    assert more.nit == 9
    np.testing.assert_array_equal(more.belief.mean, straight.belief.mean)
    assert "xtol" not in {criterion.name for criterion in cones.load(path).criteria}
    with pytest.raises(TypeError, match="unexpected keyword argument 'maxit'"):
        cones.resume(path, sphere, maxit=3)


def test_resume_after_a_fault_that_was_repaired(tmp_path: Path) -> None:
    path = tmp_path / "run.ckpt"
    broken = cones.minimize(lambda X: np.full(len(X), np.nan), [0.0], vectorized=True, rng=0, checkpoint=path)
    assert broken.stop == "no_finite_loss"
    assert cones.resume(path, sphere, maxiter=5).nit == 5


def test_resume_drops_a_budget_that_nobody_gave(tmp_path: Path) -> None:
    path = tmp_path / "run.ckpt"
    es = cones.NES([0.0, 0.0], popsize=4, rng=0, xtol=None, ftol=None, stagnation=None)  # 1000 iterations by default
    es.save(path)
    assert cones.resume(path, sphere, vectorized=True).nit == 1000
    assert cones.resume(path, sphere, vectorized=True, maxfev=4403).nit == 1100  # the start, and both ends


def test_an_existing_checkpoint_is_not_overwritten(tmp_path: Path) -> None:
    path = tmp_path / "run.ckpt"
    cones.minimize(sphere, [0.0], vectorized=True, rng=0, maxiter=3, checkpoint=path)
    before = path.read_bytes()
    with pytest.raises(cones.InputError, match=r"checkpoint: .*run\.ckpt exists; continue it with cones\.resume"):
        cones.minimize(sphere, [0.0], vectorized=True, rng=0, checkpoint=path)
    assert path.read_bytes() == before
    with pytest.raises(cones.InputError, match="workers"):
        cones.minimize(sphere, [0.0], workers=0, checkpoint=tmp_path / "other.ckpt")
    assert not (tmp_path / "other.ckpt").exists()


def test_links_and_permissions_are_those_of_an_ordinary_file(tmp_path: Path) -> None:
    (tmp_path / "link.ckpt").symlink_to(tmp_path / "real.ckpt")
    cones.NES([0.0]).save(tmp_path / "link.ckpt")
    assert (tmp_path / "link.ckpt").is_symlink()
    ordinary = tmp_path / "ordinary"
    ordinary.write_text("")
    assert (tmp_path / "real.ckpt").stat().st_mode == ordinary.stat().st_mode


def test_numpy_numbers_in_settings_survive(tmp_path: Path) -> None:
    es = cones.CoNES([0.0], radius=np.float32(2.0), optimizer=cones.Adam(np.float32(0.5)))
    es.save(tmp_path / "run.ckpt")
    assert cones.load(tmp_path / "run.ckpt").algorithm.step.radius == 2.0


def test_checkpoint_every(tmp_path: Path) -> None:
    path, iterations = tmp_path / "run.ckpt", []

    def callback(intermediate_result) -> None:
        iterations.append(cones.load(path).state.iteration)

    cones.minimize(
        sphere, [0.0, 0.0], vectorized=True, rng=0, maxiter=7, checkpoint=path, checkpoint_every=3, callback=callback
    )
    assert iterations == [0, 0, 3, 3, 3, 6, 6]
    assert cones.load(path).state.iteration == 7


def test_without_checkpoint_every_they_are_written_by_the_clock(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setattr("cones.run.loop.CHECKPOINT_SECONDS", 0.0)
    path, iterations = tmp_path / "run.ckpt", []
    cones.minimize(
        sphere,
        [0.0, 0.0],
        vectorized=True,
        rng=0,
        maxiter=3,
        checkpoint=path,
        callback=lambda x: iterations.append(cones.load(path).state.iteration),
    )
    assert iterations == [1, 2, 3]


class TestRefusals:
    @pytest.fixture
    def good(self, tmp_path: Path) -> Path:
        es = cones.CoNES(np.zeros(50), popsize=6, radius="adaptive", rng=0)
        X = es.ask()
        es.tell(X, sphere(X))
        es.save(tmp_path / "run.ckpt")
        return tmp_path / "run.ckpt"

    def test_missing_file(self, tmp_path: Path) -> None:
        with pytest.raises(CheckpointError, match=r"none\.ckpt: no such file"):
            cones.load(tmp_path / "none.ckpt")

    def test_text_where_a_component_belongs_imports_nothing(self, good: Path, tmp_path: Path, monkeypatch) -> None:
        (tmp_path / "planted.py").write_text("raise SystemExit('imported')\n")
        monkeypatch.syspath_prepend(tmp_path)
        for field in ("mean", "scale", "shape"):
            self.edit(
                good,
                lambda header, field=field: header["strategy"]["parts"]["algorithm"]["parts"]["step"]["parts"].update(
                    {field: "planted:Control"}
                ),
            )
            with pytest.raises(CheckpointError, match="RadiusControl"):
                cones.load(good)
        assert "planted" not in sys.modules

    def test_truncated_at_any_length(self, good: Path) -> None:
        whole = good.read_bytes()
        for length in [0, 1, 10, 100, *range(200, len(whole), 499), len(whole) - 1]:
            good.write_bytes(whole[:length])
            with pytest.raises(CheckpointError, match="not a complete cones checkpoint"):
                cones.load(good)

    def test_any_changed_byte_is_found(self, good: Path) -> None:
        whole = good.read_bytes()
        for place in range(0, len(whole), 97):
            damaged = bytearray(whole)
            damaged[place] ^= 4
            good.write_bytes(bytes(damaged))
            with pytest.raises(CheckpointError, match="not a complete cones checkpoint"):
                cones.load(good)

    @pytest.mark.parametrize("content", [b"", b"hello", pickle.dumps({"a": 1}), b"PK\x03\x04 but not a zip"])
    def test_foreign_files(self, content: bytes, tmp_path: Path) -> None:
        path = tmp_path / "foreign"
        path.write_bytes(content)
        with pytest.raises(CheckpointError, match="not a complete cones checkpoint"):
            cones.load(path)

    def test_foreign_npz(self, tmp_path: Path) -> None:
        np.savez(tmp_path / "other.npz", a=np.zeros(3))
        with pytest.raises(CheckpointError, match="not a complete cones checkpoint"):
            cones.load(tmp_path / "other.npz")
        write_archive(tmp_path / "other.npz", {"format": "something else"}, {})
        with pytest.raises(CheckpointError, match="something else"):
            cones.load(tmp_path / "other.npz")

    def test_pickled_code_is_never_executed(self, tmp_path: Path) -> None:
        class Payload:
            def __reduce__(self):
                return os.mkdir, (str(tmp_path / "executed"),)

        array = np.array([Payload()], dtype=object)
        buffer = io.BytesIO()
        np.save(buffer, array, allow_pickle=True)
        with zipfile.ZipFile(tmp_path / "evil.ckpt", "w") as archive:
            archive.writestr("header.npy", buffer.getvalue())
        with pytest.raises(CheckpointError):
            cones.load(tmp_path / "evil.ckpt")
        (tmp_path / "evil.ckpt").write_bytes(pickle.dumps(array))
        with pytest.raises(CheckpointError):
            cones.load(tmp_path / "evil.ckpt")
        assert not (tmp_path / "executed").exists()

    def edit(self, path: Path, change) -> None:
        header, arrays = read_archive(path)
        change(header)
        write_archive(path, header, arrays)  # with a checksum that is right

    def test_unknown_classes_are_refused(self, good: Path) -> None:
        self.edit(
            good,
            lambda header: header["strategy"]["parts"]["algorithm"]["parts"]["optimizer"].update(
                type="subprocess:Popen"
            ),
        )
        with pytest.raises(CheckpointError, match="contains subprocess:Popen, which is not part of this library"):
            cones.load(good)

    @pytest.mark.parametrize(
        ("part", "value"),
        [
            ("algorithm.shaping.function", "nope"),
            ("algorithm.shaping", "centred_ranks"),
            ("algorithm.optimizer", None),
            ("algorithm", None),
            ("noise", 3),
            ("noise.dtype", "int"),
            ("criteria", None),
            ("state", None),
            ("state.belief", 3.0),
            ("history", 1),
            ("restarts", -1),
        ],
    )
    def test_parts_that_do_not_fit_are_refused(self, part: str, value: object, good: Path) -> None:
        def change(header) -> None:
            *path, name = part.split(".")
            parts = header["strategy"]["parts"]
            for step in path:
                parts = parts[step]["parts"]
            assert name in parts
            parts[name] = value

        self.edit(good, change)
        with pytest.raises(CheckpointError, match="not a complete cones checkpoint"):
            cones.load(good)

    def test_newer_versions_are_named(self, good: Path) -> None:
        self.edit(good, lambda header: header.update(version=99))
        with pytest.raises(CheckpointError, match=f"expected version {CHECKPOINT[1]} .* got version 99"):
            cones.load(good)

    def test_unknown_parts_cannot_be_saved(self, tmp_path: Path) -> None:
        class Own(cones.SGD):
            pass

        es = cones.ES([0.0], optimizer=Own())
        with pytest.raises(
            CheckpointError, match=r"Own: cannot be stored in a checkpoint; define it at the top level of a module"
        ):
            es.save(tmp_path / "run.ckpt")
        assert list(tmp_path.iterdir()) == []


class TestFailingWrites:
    def test_an_unwritable_place_is_an_error_before_any_work(self, tmp_path: Path) -> None:
        def fun(x: np.ndarray) -> float:
            raise AssertionError("must not be called")

        with pytest.raises(CheckpointError, match="could not be written"):
            cones.minimize(fun, [0.0], checkpoint=tmp_path / "no such folder" / "run.ckpt")

    def test_a_failing_write_keeps_the_good_checkpoint_and_the_run(self, tmp_path: Path, monkeypatch) -> None:
        path = tmp_path / "run.ckpt"
        real, calls = os.fsync, []

        def fails_after_three(handle: int) -> None:
            calls.append(1)
            if len(calls) > 3:  # before the first evaluation, after that of the start, after the first iteration
                raise OSError(28, "No space left on device")
            real(handle)

        monkeypatch.setattr(os, "fsync", fails_after_three)
        with pytest.warns(RuntimeWarning, match="No space left on device.*the previous checkpoint is kept"):
            result = cones.minimize(
                sphere, [0.0, 0.0], vectorized=True, rng=0, maxiter=4, checkpoint=path, checkpoint_every=1
            )
        assert result.nit == 4
        assert cones.load(path).state.iteration == 1
        assert [p.name for p in tmp_path.iterdir()] == ["run.ckpt"]

    def test_kill_in_the_middle_of_a_write_keeps_the_good_checkpoint(self, tmp_path: Path) -> None:
        script = textwrap.dedent(
            """
            import os, signal, sys
            import numpy as np, cones
            es = cones.CoNES(np.zeros(10), popsize=4, rng=0)
            es.save(sys.argv[1])
            es.tell(es.ask(), np.arange(4.0))
            real = os.fsync
            os.fsync = lambda handle: os.kill(os.getpid(), signal.SIGKILL)
            es.save(sys.argv[1])
            """
        )
        path = tmp_path / "run.ckpt"
        done = subprocess.run([sys.executable, "-c", script, str(path)], check=False)
        assert done.returncode == -signal.SIGKILL
        assert cones.load(path).state.iteration == 0


def test_an_implied_budget_stays_implied(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setattr("cones.progress.limits.DEFAULT_MAXITER", 5)
    path, off = tmp_path / "run.ckpt", {"xtol": None, "ftol": None, "stagnation": None}
    assert cones.minimize(sphere, [3.0] * 4, rng=0, vectorized=True, checkpoint=path, **off).stop == "maxiter"
    assert cones.resume(path, sphere, ftarget=-1.0).nit == 5
    assert cones.resume(path, sphere, maxfev=100).stop == "maxfev"


@pytest.mark.parametrize(
    ("name", "before", "another"),
    [
        ("a:f", "a:f", False),
        ("a:f", "a:g", True),
        ("a:f", "b:f", True),
        ("__main__:f", "b:f", False),
        ("__main__:f", "b:g", True),
        ("a:f.<locals>.g", "a:f", False),
        ("a:<lambda>", "b:g", False),
        ("command:./run 1", "command:./run 2", True),
        ("command:run <x:y", "command:run <x:z", True),
    ],
)
def test_which_functions_are_others(name: str, before: str, another: bool) -> None:
    assert checkpoint.is_another(name, before) is another
    assert checkpoint.is_another(before, name) is another
