"""What every tracker must do, by what the real library has kept in the end."""

from __future__ import annotations

import struct
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import cones
from cones.integrations.trackers import MLflow, TensorBoard, Tracker, WandB

# MLflow's own tables, with the newest SQLAlchemy
pytestmark = pytest.mark.filterwarnings("ignore:The ``noload`` loader strategy is deprecated")

Curves = dict[str, list[tuple[int, float]]]


@pytest.fixture(autouse=True, scope="module")
def database(tmp_path_factory: pytest.TempPathFactory) -> None:
    OfMLflow.uri = f"sqlite:///{tmp_path_factory.mktemp('mlflow')}/runs.db"  # one: MLflow takes seconds to make it


@pytest.fixture(autouse=True)
def nothing_outside(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The libraries keep caches and configuration at home, and would call home."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    for name in ("CACHE", "CONFIG", "DATA"):
        monkeypatch.setenv(f"WANDB_{name}_DIR", str(tmp_path / "home" / name))
    monkeypatch.setenv("WANDB_MODE", "offline")
    monkeypatch.setenv("WANDB_SILENT", "true")
    monkeypatch.setenv("WANDB_ERROR_REPORTING", "false")
    monkeypatch.setenv("MLFLOW_DISABLE_TELEMETRY", "true")
    (tmp_path / "home").mkdir()


class OfTensorBoard:
    def make(self) -> Tracker:
        return TensorBoard("board")

    def kept(self, tracker: Tracker) -> Curves:
        from tensorboardX.proto.event_pb2 import Event

        curves: Curves = {}
        (file,) = Path("board").iterdir()
        data, place = file.read_bytes(), 0
        while place < len(data):  # length, check, record, check
            (length,) = struct.unpack_from("<Q", data, place)
            event = Event.FromString(data[place + 12 : place + 12 + length])
            for value in event.summary.value:
                curves.setdefault(value.tag, []).append((event.step, value.simple_value))
            place += length + 16
        return curves

    def end(self, tracker: Tracker) -> str | None:
        return None  # an event file does not say how it ended


class OfMLflow:
    uri = ""

    def make(self) -> Tracker:
        return MLflow("spheres", run_name="first", tracking_uri=self.uri, params={"n": 3})

    def run(self, tracker: Any) -> Any:
        from mlflow import MlflowClient

        return MlflowClient(self.uri).get_run(tracker.run_id)

    def kept(self, tracker: Any) -> Curves:
        from mlflow import MlflowClient

        client = MlflowClient(self.uri)
        names = self.run(tracker).data.metrics
        return {
            name: [(metric.step, metric.value) for metric in client.get_metric_history(tracker.run_id, name)]
            for name in names
        }

    def end(self, tracker: Tracker) -> str | None:
        return str(self.run(tracker).info.status)


class OfWandB:
    def make(self) -> Tracker:
        return WandB(project="spheres", dir=Path.cwd())  # its service process was started elsewhere

    def records(self) -> list[Any]:
        """All of a run that has ended. Another process writes the file, and may be behind on a busy machine."""
        records: list[Any] = []
        for _ in range(200):
            records = list(self.written())
            if any(record.WhichOneof("record_type") == "exit" for record in records):
                break
            time.sleep(0.1)
        return records

    def written(self) -> Iterator[Any]:
        """What an offline run holds: after 7 bytes, records in blocks of 32 KiB as LevelDB's log has them."""
        from wandb.proto.wandb_internal_pb2 import Record

        (file,) = Path("wandb").glob("offline-run-*/run-*.wandb")
        data, place, parts = file.read_bytes(), 7, b""
        while place + 7 <= len(data):
            if 32768 - place % 32768 < 7:
                place += 32768 - place % 32768
                continue
            length, kind = struct.unpack_from("<HB", data, place + 4)
            if place + 7 + length > len(data):
                return  # half written
            parts += data[place + 7 : place + 7 + length]
            place += 7 + length
            if kind in (1, 4):  # complete, or the last piece
                yield Record.FromString(parts)
                parts = b""

    def kept(self, tracker: Tracker) -> Curves:
        curves: Curves = {}
        for record in self.records():
            if record.WhichOneof("record_type") == "history":
                items = {item.key or item.nested_key[0]: float(item.value_json) for item in record.history.item}
                for name, value in items.items():
                    curves.setdefault(name, []).append((int(items["_step"]), value))
        return curves

    def end(self, tracker: Tracker) -> str | None:
        codes = [r.exit.exit_code for r in self.records() if r.WhichOneof("record_type") == "exit"]
        return {0: "FINISHED", 1: "FAILED"}[codes[-1]]


KINDS = [OfTensorBoard(), OfMLflow(), OfWandB()]
every_tracker = pytest.mark.parametrize("kind", KINDS, ids=["tensorboard", "mlflow", "wandb"])


def minimised(**settings: Any) -> Any:
    return cones.minimize(lambda x: x @ x, [1.0] * 3, popsize=4, rng=0, **settings)


@every_tracker
def test_keeps_the_history_over_evaluations(kind: Any) -> None:
    with kind.make() as tracker:
        history = minimised(maxiter=5, callback=tracker).history
    curves = kind.kept(tracker)
    for name in ("best", "mean_loss", "spread", "step", "kl"):
        steps, values = zip(*curves[name], strict=True)
        assert list(steps) == [5, 9, 13, 17, 21]  # with the start
        assert values == pytest.approx(history[name], rel=1e-6)
    assert kind.end(tracker) in ("FINISHED", None)


@every_tracker
def test_numbers_that_are_none_are_left_out(kind: Any) -> None:
    with kind.make() as tracker:
        minimised(method="es", maxiter=2, callback=tracker)
    curves = kind.kept(tracker)
    assert "multiplier" not in curves
    assert len(curves["best"]) == 2


@every_tracker
def test_an_exception_is_a_failed_run_with_what_there_was(kind: Any) -> None:
    calls = []

    def fails(x: Any) -> float:
        calls.append(1)
        if len(calls) > 9:
            raise ZeroDivisionError("boom")
        return float(x @ x)

    with pytest.raises(ZeroDivisionError), kind.make() as tracker:
        cones.minimize(fails, [1.0] * 3, popsize=4, rng=0, callback=tracker)
    assert [step for step, _ in kind.kept(tracker)["best"]] == [5, 9]
    assert kind.end(tracker) in ("FAILED", None)


@every_tracker
def test_training_over_timesteps(kind: Any) -> None:
    from cones import rl

    with kind.make() as tracker:
        trained = rl.train(
            "environments:PointBox-v0",
            timesteps=120,
            popsize=4,
            hidden=[],
            threads=1,
            evaluate_every=1,
            callback=tracker,
        )
    curves = kind.kept(tracker)
    # The first population runs once before to fill the normaliser of observations: 40 more timesteps.
    assert [step for step, _ in curves["population_reward"]] == [80, 120]
    values = [value for _, value in curves["mean_reward"]]
    assert values == pytest.approx(trained.history["mean_reward"], rel=1e-6)
    assert "timesteps" not in curves


@every_tracker
def test_nothing_is_left_at_home(kind: Any, tmp_path: Path) -> None:
    with kind.make() as tracker:
        minimised(maxiter=2, callback=tracker)
    left = {path.name for path in (tmp_path / "home").iterdir()}
    assert left <= {"CACHE", "CONFIG", "DATA"}  # of W&B, which has its own names for them


def test_mlflow_goes_on_with_a_run_of_yours() -> None:
    from mlflow import MlflowClient

    client = MlflowClient(OfMLflow.uri)
    experiment = client.create_experiment("mine")
    run_id = client.create_run(experiment).info.run_id
    with MLflow(run_id=run_id, tracking_uri=OfMLflow.uri) as tracker:
        minimised(maxiter=2, callback=tracker)
    assert client.get_run(run_id).info.status == "RUNNING"
    assert "best" in client.get_run(run_id).data.metrics
    assert client.get_run(MLflow("mine", tracking_uri=OfMLflow.uri).run_id).info.experiment_id == experiment


def test_wandb_goes_on_with_a_run_of_yours() -> None:
    import wandb

    with wandb.init(project="mine", dir=Path.cwd(), config={"n": 3}) as run:
        with WandB(run) as tracker:
            minimised(maxiter=2, callback=tracker)
        run.log({"after": 1.0})
        assert run.summary["best"] > 0.0
        with pytest.raises(wandb.UsageError, match="either a run or arguments"):
            WandB(run, project="other")
