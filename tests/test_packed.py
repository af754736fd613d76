"""Folders whose records are in one file: read as before, continued as before, and nothing is lost."""

from __future__ import annotations

import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import cones
from cones import packed, rl
from cones.cli import main
from cones.experiments.runner import run_experiment
from cones.experiments.spec import Experiment
from cones.experiments.summary import summarise
from cones.experiments.toml import experiment_from
from cones.records import Folder, read_record
from cones.rl.policy import Policy

NAMES = st.text("abc", min_size=1, max_size=3)
FILES = st.dictionaries(NAMES, st.binary(max_size=40), max_size=5)


def small(seeds: int = 2) -> Experiment:
    return experiment_from(
        {
            "name": "small",
            "seeds": seeds,
            "maxfev": 200,
            "problems": [{"problem": "sphere", "dim": 3}],
            "methods": [{"method": "es", "popsize": 10}, {"method": "nes", "popsize": 10}],
        }
    )


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("finished")
    assert not run_experiment(small(), path, workers=1).failed
    return path


@pytest.fixture
def folder(finished: Path, tmp_path: Path) -> Folder:
    return Folder(shutil.copytree(finished, tmp_path / "results"))


def losses(place: Folder) -> list[list[float]]:
    return [record.columns["mean_loss"].tolist() for record in place.records()]


def test_a_packed_folder_is_read_as_before(folder: Folder) -> None:
    before, files = losses(folder), {path.name: path.read_bytes() for path in folder.runs.iterdir()}
    table = summarise(folder).groups[0].at_end("mean_loss")
    assert folder.pack() == 4
    assert sorted(path.name for path in folder.path.iterdir()) == ["experiment.json", "runs.zip"]
    assert losses(folder) == before
    assert summarise(folder).groups[0].at_end("mean_loss") == table
    assert all(folder.is_finished(run) for run in small().runs())
    with zipfile.ZipFile(folder.path / "runs.zip") as archive:  # as any other program would read it
        assert {name: archive.read(name) for name in archive.namelist()} == files
    run = small().runs()[0]
    np.testing.assert_array_equal(read_record(folder.record_path(run)).columns["evaluations"], np.arange(10, 201, 10))


def test_all_commands_read_it(folder: Folder, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["report", str(folder.path)]) == 0
    loose = {name: (folder.path / name).read_bytes() for name in ("tables.md", "report.html", "figures/loss.png")}
    assert main(["pack", str(folder.path)]) == 0
    assert f"{folder.path / 'runs.zip'}: 4 files" in capsys.readouterr().out
    assert main(["report", str(folder.path)]) == 0
    for name, content in loose.items():
        assert (folder.path / name).read_bytes() == content
    record = folder.record_path(small().runs()[0])
    for place in (folder.path, folder.path / "runs.zip", record):
        figure = cones.plot(place)
        assert figure.axes[0].get_title() == "loss"
    assert not record.exists()


def test_an_experiment_goes_on_and_is_packed_again(folder: Folder) -> None:
    folder.pack()
    first = (folder.path / "runs.zip").read_bytes()
    outcome = run_experiment(small(), folder.path, workers=1)
    assert outcome.skipped == 4  # nothing is run again
    folder.declare(small(seeds=3).specification())
    assert run_experiment(small(seeds=3), folder.path, workers=1).skipped == 4
    assert (folder.path / "runs.zip").read_bytes() == first
    assert len(list(folder.runs.iterdir())) == 2
    together = losses(folder)
    assert len(together) == 6
    assert folder.pack() == 6
    assert losses(folder) == together
    again = (folder.path / "runs.zip").read_bytes()
    assert folder.pack() == 6  # there is nothing to do
    assert (folder.path / "runs.zip").read_bytes() == again


def test_what_is_loose_is_newer_and_checkpoints_stay(folder: Folder) -> None:
    folder.pack()
    one, other = small().runs()[:2]
    folder.runs.mkdir()
    folder.write(one, False, "", {"evaluations": [1.0], "mean_loss": [7.0]})
    folder.checkpoint_path(other).write_bytes(b"a checkpoint")
    assert not folder.is_finished(one)
    assert folder.is_finished(other)
    assert folder.pack() == 4
    assert [path.name for path in folder.runs.iterdir()] == [folder.checkpoint_path(other).name]
    assert read_record(folder.record_path(one)).columns["mean_loss"].tolist() == [7.0]


def test_policies_are_packed_and_loaded_by_the_same_name(tmp_path: Path) -> None:
    pytest.importorskip("gymnasium")
    trained = rl.train("CartPole-v1", hidden=(), timesteps=200, popsize=4, out=tmp_path / "run", threads=1, rng=0)
    folder = Folder(tmp_path / "run")
    (place,) = folder.policies()
    assert folder.pack() == 2
    assert not place.exists()
    assert folder.policies() == [place]
    for policy in (rl.load_policy(folder.path), rl.load_policy(place), Policy.load(place)):
        np.testing.assert_array_equal(policy.parameters, trained.policy.parameters)
    longer = rl.resume(folder.path, timesteps=2000, threads=1)
    straight = rl.train("CartPole-v1", hidden=(), timesteps=2000, popsize=4, threads=1, rng=0)
    np.testing.assert_array_equal(longer.policy.parameters, straight.policy.parameters)
    np.testing.assert_array_equal(rl.load_policy(folder.path).parameters, straight.policy.parameters)


@given(FILES, FILES, FILES)
def test_folder_and_archive_are_one_table(tmp_path_factory, first, second, third) -> None:
    """Packed after each of three rounds of writing: a dictionary that is updated."""
    folder = tmp_path_factory.mktemp("table") / "runs"
    expected: dict[str, bytes] = {}
    for files in (first, second, third):
        folder.mkdir(exist_ok=True)
        for name, content in files.items():
            (folder / name).write_bytes(content)
        expected |= files
        assert {path.name: content for path, content in packed.contents(folder, "")} == expected
        packed.pack(folder, lambda name: True)
        assert packed.names(folder) == sorted(expected)
        assert {path.name: content for path, content in packed.contents(folder, "")} == expected
        assert all(packed.is_there(folder / name) for name in expected)
        assert not packed.is_there(folder / "d")


def test_a_killed_packing_loses_nothing(folder: Folder) -> None:
    """The new archive is complete before the first file goes: a process that dies between is repaired by the next."""
    before = losses(folder)
    code = (
        "import os, pathlib, sys; from cones.records import Folder\n"
        "pathlib.Path.unlink = lambda *_, **__: os._exit(9)\n"
        "Folder(sys.argv[1]).pack()"
    )
    done = subprocess.run([sys.executable, "-c", code, str(folder.path)])
    assert done.returncode == 9
    assert len(list(folder.runs.iterdir())) == 4
    assert losses(folder) == before
    assert folder.pack() == 4
    assert losses(folder) == before


def zipped(path: Path, members: list[tuple[str, bytes]], compression: int = zipfile.ZIP_STORED) -> None:
    with zipfile.ZipFile(path, "w", compression) as archive:
        for name, content in members:
            archive.writestr(name, content)


@pytest.mark.parametrize(
    ("members", "compression", "message"),
    [
        ([("a.json.gz", b"0" * 10**6)], zipfile.ZIP_DEFLATED, "stored as they are"),
        ([("../a.json.gz", b"")], zipfile.ZIP_STORED, "there are folders in it"),
        ([("a.json.gz", b"nothing")], zipfile.ZIP_STORED, "a.json.gz: not a complete record"),
        (None, 0, "expected a zip file of records"),
    ],
)
def test_bad_archives_are_named(members, compression: int, message: str, tmp_path: Path) -> None:
    place = tmp_path / "runs.zip"
    if members is None:
        place.write_bytes(b"nothing")
    else:
        zipped(place, members, compression)
    with pytest.raises(cones.InputError, match=message) as caught:
        Folder(tmp_path).records()
    assert str(tmp_path) in str(caught.value)


def test_a_damaged_member_is_found(folder: Folder) -> None:
    folder.pack()
    place = folder.path / "runs.zip"
    content = bytearray(place.read_bytes())
    content[len(content) // 2] ^= 1
    place.write_bytes(content)
    with pytest.raises(cones.InputError, match=r"runs.zip: .* is damaged"):
        folder.records()


def test_a_folder_that_is_not_complete_is_not_packed(folder: Folder, tmp_path: Path) -> None:
    (folder.runs / "bad.json.gz").write_bytes(b"half")
    with pytest.raises(cones.InputError, match="not a complete record"):
        folder.pack()
    assert len(list(folder.runs.iterdir())) == 5
    with pytest.raises(cones.InputError, match="expected a folder of results"):
        Folder(tmp_path / "none").pack()
    assert not (tmp_path / "none").exists()


def test_a_zip_file_beside_another_folder_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "mine.zip").write_bytes(b"not ours")
    with pytest.raises(cones.InputError, match="no such file"):
        cones.plot(tmp_path / "mine" / "a.json.gz")
