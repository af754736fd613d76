from __future__ import annotations

import gzip
import io
import json
import os
import signal
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import numpy as np
import pytest
from helpers import is_alive, process_that_dies_for_es

import cones
from cones import InputError
from cones.experiments.report import write_report
from cones.experiments.runner import run_experiment
from cones.experiments.session import FunctionSession, session_of
from cones.experiments.spec import Experiment
from cones.experiments.summary import summarise
from cones.experiments.tables import end_table
from cones.experiments.toml import experiment_from
from cones.methods import METHODS
from cones.problems import Sphere
from cones.records import Folder, execute, read_record


def small(maxfev: int = 200, **more: object) -> Experiment:
    methods = [{"method": "es", "popsize": 20}, {"method": "cones", "popsize": 20}]
    problems = [{"problem": "sphere", "dim": 6, "shift": 1.0}]
    return experiment_from(
        {"name": "small", "seeds": 2, "maxfev": maxfev, "methods": methods, "problems": problems, **more}
    )


def test_records_hold_the_run(tmp_path: Path) -> None:
    stream = io.StringIO()
    outcome = run_experiment(small(), tmp_path, stream=stream)
    assert (outcome.finished, outcome.skipped, outcome.complete) == (4, 0, True)
    assert "sphere-+1-6-d-cones-seed-1  mean loss" in stream.getvalue()
    folder = Folder(tmp_path)
    for run in small().runs():
        record = read_record(folder.record_path(run))
        es = METHODS[run.method.method](np.full(6, -1.0), 1.0, popsize=20, rng=run.seed, maxfev=200)
        while not es.stop():
            X = es.ask()
            es.tell(X, Sphere(6).losses(X))
        straight = es.result
        assert record.finished
        assert record.stop == "maxfev"
        assert set(FunctionSession.MEASURED) < set(record.columns)
        assert not set(FunctionSession.NOT_RECORDED) & set(record.columns)
        assert record.environment["versions"]["cones"] == cones.__version__
        assert record.run["seed"] == run.seed
        # The shifted problem from 0 is the problem from -1.
        np.testing.assert_allclose(record.columns["mean_loss"], straight.history["mean_loss"], rtol=1e-5)
        np.testing.assert_allclose(record.columns["step"], straight.history["step"], rtol=1e-5)
        mean = straight.belief.mean
        assert record.columns["loss_at_mean"][-1] == pytest.approx(mean @ mean, rel=1e-5)
        assert (record.columns["evaluation_seconds"] > 0.0).all()
        assert record.seconds > 0.0
    assert not list(folder.runs.glob("*.ckpt"))


def test_finished_runs_are_skipped_and_a_subset_can_be_run(tmp_path: Path) -> None:
    only = run_experiment(small(), tmp_path, only=lambda run: run.seed == 0, stream=io.StringIO())
    assert only.finished == 2
    before = {path: path.read_bytes() for path in Folder(tmp_path).runs.iterdir()}
    rest = run_experiment(small(), tmp_path, stream=io.StringIO())
    assert (rest.finished, rest.skipped) == (2, 2)
    assert all(path.read_bytes() == content for path, content in before.items())


def test_a_record_that_lost_its_checkpoint_is_kept(tmp_path: Path) -> None:
    """As of a folder that was packed and moved: the run would begin anew and write over what it had done."""
    folder, run = Folder(tmp_path), small().runs()[0]
    folder.claim(small().specification())
    calls = iter(range(100))
    assert not execute(session_of, run, folder, paused=lambda _: next(calls) == 2)
    folder.checkpoint_path(run).unlink()
    before, stream = folder.record_path(run).read_bytes(), io.StringIO()
    outcome = run_experiment(small(), tmp_path, stream=stream)
    assert (outcome.finished, outcome.skipped) == (3, 1)
    assert "1 of them have a record without a checkpoint" in stream.getvalue()
    assert folder.record_path(run).read_bytes() == before
    assert not read_record(folder.record_path(run)).finished


def test_a_folder_belongs_to_one_specification(tmp_path: Path) -> None:
    run_experiment(small(), tmp_path, stream=io.StringIO())
    before = sorted(path.name for path in Folder(tmp_path).runs.iterdir())
    with pytest.raises(InputError, match="holds records of another specification"):
        run_experiment(small(maxfev=400), tmp_path, stream=io.StringIO())
    assert sorted(path.name for path in Folder(tmp_path).runs.iterdir()) == before
    (tmp_path / "experiment.json").unlink()
    with pytest.raises(InputError, match=r"holds records but no experiment\.json"):
        run_experiment(small(), tmp_path, stream=io.StringIO())


def test_a_stopped_run_goes_on_bit_for_bit(tmp_path: Path) -> None:
    run = small(maxfev=600).runs()[1]
    straight, broken = Folder(tmp_path / "straight"), Folder(tmp_path / "broken")
    for folder in (straight, broken):
        folder.claim(small(maxfev=600).specification())
    assert execute(session_of, run, straight)
    calls = iter(range(1000))
    while not execute(session_of, run, broken, paused=lambda _: next(calls) % 7 == 6):
        assert broken.checkpoint_path(run).exists()
        assert not read_record(broken.record_path(run)).finished
    one, other = (read_record(folder.record_path(run)) for folder in (straight, broken))
    for name in one.columns:
        if "seconds" not in name:
            np.testing.assert_array_equal(one.columns[name], other.columns[name])
    assert one.columns["evaluation_seconds"].size == other.columns["evaluation_seconds"].size == 30
    assert not broken.checkpoint_path(run).exists()


def test_a_checkpoint_that_cannot_be_read_is_kept_and_named(tmp_path: Path) -> None:
    run, folder = small().runs()[0], Folder(tmp_path)
    folder.claim(small().specification())
    folder.checkpoint_path(run).write_bytes(b"half a file")
    outcome = run_experiment(small(), tmp_path, stream=io.StringIO())
    assert "delete the file to start this run anew" in outcome.failed[run.name]
    assert folder.checkpoint_path(run).read_bytes() == b"half a file"


def test_one_runner_at_a_time(tmp_path: Path) -> None:
    folder = Folder(tmp_path)
    with folder.locked(), pytest.raises(InputError, match="another process is running in this folder"):
        run_experiment(small(), tmp_path, stream=io.StringIO())
    assert run_experiment(small(), tmp_path, stream=io.StringIO()).finished == 4


def test_records_are_json_that_anything_can_read(tmp_path: Path) -> None:
    folder = Folder(tmp_path)
    folder.claim(small().specification())
    run = small().runs()[0]  # ES: its multiplier is NaN
    execute(session_of, run, folder)
    text = gzip.decompress(folder.record_path(run).read_bytes()).decode()
    data = json.loads(text, parse_constant=lambda name: pytest.fail(f"{name} is not JSON"))
    assert set(data["columns"]["multiplier"]) == {None}
    assert np.isnan(read_record(folder.record_path(run)).columns["multiplier"]).all()
    assert data["columns"]["evaluations"][-1] == 200


def test_a_record_of_another_specification_is_not_reported(tmp_path: Path) -> None:
    folder = Folder(tmp_path)
    folder.claim(small().specification())
    run = small().runs()[0]
    execute(session_of, run, folder)
    data = json.loads(gzip.decompress(folder.record_path(run).read_bytes()))
    data["run"]["maxfev"] = 7
    folder.record_path(run).write_bytes(gzip.compress(json.dumps(data).encode()))
    with pytest.raises(InputError, match="holds a record of another specification"):
        summarise(folder)


def test_a_folder_without_records_can_be_claimed_again(tmp_path: Path) -> None:
    Folder(tmp_path).claim(small().specification())
    Folder(tmp_path).claim(small(maxfev=400).specification())
    assert Folder(tmp_path).experiment()["methods"][0]["maxfev"] == 400


def test_early_ends_are_labelled(tmp_path: Path) -> None:
    experiment = small(methods=[{"method": "es", "popsize": 20, "ftarget": 1e9}], seeds=1)
    folder = Folder(tmp_path)
    folder.claim(experiment.specification())
    execute(session_of, experiment.runs()[0], folder)
    assert summarise(folder).groups[0].label == "ended by ftarget at 20 of 200 evaluations"


def test_a_run_that_fails_is_reported_and_the_others_go_on(tmp_path: Path, monkeypatch) -> None:
    """A worker that is killed takes nothing with it."""
    monkeypatch.setattr("cones.experiments.runner._process", process_that_dies_for_es)
    outcome = run_experiment(small(), tmp_path, stream=io.StringIO())
    assert outcome.finished == 2
    assert len(outcome.failed) == 2
    assert all("died with exit code -9" in message for message in outcome.failed.values())
    monkeypatch.undo()
    assert run_experiment(small(), tmp_path, stream=io.StringIO()).finished == 2


def test_an_exception_in_a_run_is_reported(tmp_path: Path) -> None:
    folder = Folder(tmp_path)
    folder.claim(small().specification())
    folder.checkpoint_path(small().runs()[0]).mkdir()  # a place that cannot be written to
    outcome = run_experiment(small(), tmp_path, stream=io.StringIO())
    assert list(outcome.failed) == [small().runs()[0].name]
    assert "Error" in next(iter(outcome.failed.values()))
    assert outcome.finished == 3


def wait_until_at_work(runner: int) -> None:
    """Until a run of the runner has used three seconds of a core: its imports take one or two."""
    tick, deadline = os.sysconf("SC_CLK_TCK"), time.monotonic() + 120.0
    while time.monotonic() < deadline:
        for stat in Path("/proc").glob("[0-9]*/stat"):
            try:
                fields = stat.read_text().rsplit(")", 1)[1].split()
            except OSError:
                continue
            if int(fields[1]) == runner and (int(fields[11]) + int(fields[12])) / tick > 3.0:
                return
        time.sleep(0.1)
    raise AssertionError("no run got to work")


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="reads /proc")
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_a_signal_to_all_processes_is_an_interrupt(tmp_path: Path, number: int) -> None:
    """As `timeout` sends it, or a terminal that is closed."""
    if signal.getsignal(number) is signal.SIG_IGN:
        pytest.skip("ignored here, as nohup does, and so by all that is started")
    (tmp_path / "long.toml").write_text(
        'name = "long"\nmaxfev = 100_000_000\nseeds = 1\n'
        '[[problems]]\nproblem = "sphere"\ndim = 300\nnoise = 1e-9\n[[methods]]\nmethod = "es"\npopsize = 20\n'
    )
    process = subprocess.Popen(
        [sys.executable, "-m", "cones", "run", "long.toml", "--out", "results"],
        stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, cwd=tmp_path, start_new_session=True,
    )  # fmt: skip
    try:
        wait_until_at_work(process.pid)
        os.killpg(process.pid, number)
        _, err = process.communicate(timeout=60)
    finally:
        process.kill()
    assert process.returncode == 130
    assert "the same command goes on from here" in err
    (kept,) = (tmp_path / "results" / "runs").glob("*.ckpt")
    assert cones.load(kept).state.iteration > 0


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="reads /proc")
def test_ctrl_c_and_crash_of_the_whole_runner(tmp_path: Path) -> None:
    """As a user runs it: interrupted once, killed once, then left alone."""
    script = tmp_path / "script.py"
    script.write_text(
        textwrap.dedent(
            """
            import sys, time
            from cones.experiments.runner import run_experiment
            from cones.experiments.toml import experiment_from

            if __name__ == "__main__":
                experiment = experiment_from({"name": "x", "maxfev": 300_000, "seeds": 2,
                    "problems": [{"problem": "sphere", "dim": 300, "noise": 1e-9}],
                    "methods": [{"method": "cones", "popsize": 20, "radius": "adaptive"}]})
                outcome = run_experiment(experiment, sys.argv[1])
                print(outcome.finished, outcome.interrupted, flush=True)
            """
        )
    )
    results = tmp_path / "results"

    def start() -> subprocess.Popen[str]:
        return subprocess.Popen(
            [sys.executable, str(script), str(results)],
            stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, start_new_session=True,
        )  # fmt: skip

    process = start()
    wait_until_at_work(process.pid)
    os.killpg(process.pid, signal.SIGINT)
    out, _ = process.communicate(timeout=60)
    assert out.split()[1] == "True"
    kept = list((results / "runs").glob("*.ckpt"))
    assert kept
    first = max(cones.load(path).state.iteration for path in kept)
    assert first > 0
    process = start()
    wait_until_at_work(process.pid)
    process.kill()  # the parent alone: its runs notice and end with a checkpoint
    process.communicate()
    deadline = time.monotonic() + 30.0
    while time.monotonic() < deadline:
        try:
            os.killpg(process.pid, 0)
        except ProcessLookupError:
            break
        time.sleep(0.2)
    else:
        raise AssertionError("runs outlive their runner")
    out, _ = start().communicate(timeout=600)  # a machine may be busy
    assert out.split()[1] == "False"
    summary = summarise(Folder(results))
    assert "300,000" in end_table(summary).as_text()
    assert summary.notes == []


def test_summary_says_what_differs_from_the_protocol(tmp_path: Path) -> None:
    experiment = small(
        methods=[
            {"method": "es", "popsize": 20},
            {"method": "cones", "popsize": 20, "maxfev": 100, "note": "reduced budget"},
            {"method": "nes", "popsize": 20},
        ]
    )
    folder = Folder(tmp_path)
    folder.claim(experiment.specification())
    runs = experiment.runs()
    execute(session_of, runs[0], folder)
    execute(session_of, runs[1], folder)
    answers = iter([False, False, True])
    execute(session_of, runs[4], folder, paused=lambda _: next(answers))
    summary = summarise(folder)
    assert summary.notes[-1] == "NES: not run on Sphere +1, 6-D"
    page = write_report(summary, tmp_path / "report.html").read_text()
    assert "All runs are complete" not in page
    assert "NES: not run on" in page
    assert "- NES: not run on" in (tmp_path / "tables.md").read_text()
    groups = {group.method: group for group in summary.groups}
    assert groups["ES"].label == "1 of 2 seeds"
    assert groups["CoNES"].label == "reduced budget; stopped at 40 of 100 evaluations"
    values = [r.columns["mean_loss"][1] for r in groups["CoNES"].records]
    assert groups["CoNES"].at_end("mean_loss") == (pytest.approx(np.mean(values)), pytest.approx(np.std(values)))


def test_bad_folders_are_named(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"expected a folder of results; there is no experiment\.json"):
        summarise(Folder(tmp_path))
    folder = Folder(tmp_path)
    folder.claim(small().specification())
    with pytest.raises(InputError, match="expected records of runs; there are none yet"):
        summarise(folder)
    run = small().runs()[0]
    folder.record_path(run).write_bytes(b"half")
    with pytest.raises(InputError, match="not a complete record"):
        folder.is_finished(run)
    assert json.loads((tmp_path / "experiment.json").read_text())["name"] == "small"


LONG_ITERATION = """
import multiprocessing, os, signal, threading, time
from cones.experiments.runner import run_experiment
from cones.experiments.toml import experiment_from

def kill():
    while not multiprocessing.active_children():
        time.sleep(0.01)
    time.sleep(3.0)  # the run is in its first iteration, which takes a minute
    with open("pid", "w") as file:
        file.write(str(multiprocessing.active_children()[0].pid))
    os.kill(os.getpid(), signal.SIGKILL)

if __name__ == "__main__":
    threading.Thread(target=kill, daemon=True).start()
    problem, method = {"problem": "sphere", "dim": 100_000}, {"method": "es", "popsize": 20_000}
    run_experiment(experiment_from({"name": "a", "maxfev": 10**9, "problems": [problem], "methods": [method]}), "out")
"""


@pytest.mark.skipif(sys.platform == "win32", reason="there is no SIGKILL")
def test_runs_end_soon_after_their_command_was_killed(tmp_path: Path) -> None:
    """Otherwise the next command would start the same run beside it."""
    (tmp_path / "script.py").write_text(LONG_ITERATION)
    subprocess.run([sys.executable, "script.py"], cwd=tmp_path, stderr=subprocess.DEVNULL, check=False)
    pid = int((tmp_path / "pid").read_text())
    deadline = time.monotonic() + 10.0
    while is_alive(pid) and time.monotonic() < deadline:
        time.sleep(0.05)
    if lives := is_alive(pid):
        os.kill(pid, signal.SIGKILL)
    assert not lives
