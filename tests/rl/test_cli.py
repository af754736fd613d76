from __future__ import annotations

import math
import shutil
import struct
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from environments import Point
from scipy import stats

from cones import InputError, rl
from cones.cli import main
from cones.records.method import method_from
from cones.rl.policy import Network
from cones.rl.spec import TrainingRun, popsize_for, task_from
from cones.strategy import Strategy


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("trained") / "run"
    rl.train("CartPole-v1", timesteps=3000, popsize=10, hidden=[], threads=1, out=folder)
    return folder


def test_train_writes_all_that_others_use(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ["train", "environments:PointBox-v0", "--timesteps", "3000", "--out", str(tmp_path / "run")]
    arguments += [
        "--linear",
        "--no-bias",
        "--popsize",
        "10",
        "--threads",
        "1",
        "--tensorboard",
        str(tmp_path / "board"),
    ]
    assert main(arguments) == 0
    assert not rl.load_policy(tmp_path / "run").network.bias
    output = capsys.readouterr()
    assert "reward of the mean policy" in output.out
    assert "timesteps" in output.err
    (events,) = (tmp_path / "board").iterdir()
    assert {"mean_reward", "population_reward", "spread"} <= tags_of(events)
    assert main(["report", str(tmp_path / "run")]) == 0
    assert (tmp_path / "run" / "figures" / "reward.png").stat().st_size > 5000
    assert "reward of the mean policy" in (tmp_path / "run" / "report.html").read_text()


def tags_of(events: Path) -> set[str]:
    """The names in a TensorBoard file, read by its framing: length, check, record, check."""
    data, place, text = events.read_bytes(), 0, b""
    while place < len(data):
        (length,) = struct.unpack_from("<Q", data, place)
        text += data[place + 12 : place + 12 + length]
        place += length + 16
    return {name for name in ("mean_reward", "population_reward", "spread") if name.encode() in text}


def test_help_states_the_defaults_of_the_code(capsys: pytest.CaptureFixture[str]) -> None:
    def of(task: str, method: str = "cones") -> tuple[TrainingRun, Strategy]:
        run = TrainingRun(task_from({"task": task}), method_from({"method": method}, "", (0,), None), 0)
        return run, run.strategy(Network((3, 16, 1)))

    with pytest.raises(SystemExit):
        main(["train", "--help"])
    text = " ".join(capsys.readouterr().out.split())
    (other, ours), (paper, of_paper), (swimmer, _) = of("Some-v0"), of("Hopper-v4"), of("Swimmer-v4")
    for sentence in (
        f"(default {other.task.hidden[0]}; the paper's {paper.task.hidden[0]} on its tasks but Swimmer-v4)",
        f"and the popsize; in the paper's setting {paper.sigma}, Swimmer-v4 {swimmer.sigma:g})",
        f"(default: {other.start}; in the paper's setting {paper.start})",
        f"per candidate and iteration (default {other.task.episodes})",
        f"evaluations of the mean policy (default {other.task.evaluate_every})",
        f"per evaluation (default {other.task.evaluation_episodes})",
        f"for n weights; in the paper's setting {of_paper.popsize}.",
        f"ARS {of('Some-v0', 'ars')[1].popsize}, TRES {of('Some-v0', 'tres')[1].popsize}, the others 4 + 3 log(n)",
    ):
        assert sentence in text
    tasks = [run.task for run in (other, paper, swimmer)]
    assert [task.timesteps for task in tasks] == [10**6, 5 * 10**7, 2 * 10**7]
    assert [task.bias for task in tasks] == [True, True, False]
    assert [run.common_starts for run in (other, paper)] == [True, False]
    assert not other.task.early_end
    assert not other.task.asynchronous
    assert {of("Some-v0", name)[1].popsize for name in ("trcma", "sepcma")} == {int(4 + 3 * math.log(81))}
    assert ours.popsize == popsize_for(81) == 16


def test_early_ends_and_asynchronous_training(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = str(tmp_path / "run")
    flags = ["--linear", "--popsize", "40", "--threads", "1", "--quiet", "--early-end", "--asynchronous"]
    assert main(["train", "Reacher-v5", "--timesteps", "12000", "--out", folder, *flags]) == 0
    assert "early ends saved" in capsys.readouterr().out
    assert list((tmp_path / "run" / "runs").glob("*.journal"))
    assert main(["resume", folder, "--timesteps", "16000", "--threads", "1", "--quiet"]) == 0
    assert "(the budget is spent)" in capsys.readouterr().out


def test_evaluate(trained: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["evaluate", str(trained), "--episodes", "5", "--threads", "1"]) == 0
    text = capsys.readouterr().out
    returns = rl.evaluate(rl.load_policy(trained), 5, threads=1).returns
    half = stats.t.ppf(0.975, 4) * stats.sem(returns)
    low, high = returns.mean() - half, returns.mean() + half
    assert f"CartPole-v1: reward {returns.mean():.6g}, 95% confidence interval {low:.6g} to {high:.6g}, over 5" in text
    assert f"standard deviation {returns.std(ddof=1):.4g}, from {returns.min():.6g} to {returns.max():.6g}" in text


def test_threads_are_checked(trained: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["evaluate", str(trained), "--threads", "0"]) == 2
    assert "threads: expected at least 1, got 0" in capsys.readouterr().err


def test_a_negative_seed_and_a_budget_that_is_spent(trained: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["evaluate", str(trained), "--seed", "-1"]) == 2
    assert "seed: expected at least 0, got -1" in capsys.readouterr().err
    assert main(["resume", str(trained), "--timesteps", "1"]) == 2
    assert "timesteps: expected at least the" in capsys.readouterr().err


def test_play_draws_off_screen(tmp_path: Path) -> None:
    """In a process of its own: how MuJoCo draws is decided when it is first imported."""
    pytest.importorskip("imageio_ffmpeg")
    if not shutil.which("ldconfig") or "OSMesa" not in subprocess.run(
        ["ldconfig", "-p"], capture_output=True, text=True, check=False
    ).stdout:  # fmt: skip
        pytest.skip("no OpenGL without a screen; Debian's libosmesa6 has it")
    rl.train("Swimmer-v4", timesteps=1000, popsize=2, hidden=[], out=tmp_path / "run")
    for name in ("a.mp4", "a.gif"):
        subprocess.run(
            [sys.executable, "-m", "cones", "play", "run", "--video", name, "--steps", "12"],
            cwd=tmp_path, check=True, timeout=120,
        )  # fmt: skip
    import imageio
    import imageio.v3

    frames = imageio.v3.imread(tmp_path / "a.gif")
    assert frames.shape[:3] == (12, 480, 480)
    assert frames.std() > 10.0  # a picture, not a blank
    with imageio.get_reader(tmp_path / "a.mp4") as reader:
        data = reader.get_meta_data()
    assert data["size"] == (480, 480)
    assert data["duration"] == pytest.approx(12 / 25, abs=0.05)  # 25 frames a second, as fast as the swimmer swims


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["train", "Nothing-v0"], "'Nothing-v0' is no environment that gymnasium can make"),
        (["train", "CartPole-v1", "--popsize", "0"], "popsize: expected"),
        (["train", "CartPole-v1", "--method", "cma", "--radius", "1"], "--radius: not a setting of method cma"),
        (["train", "CartPole-v1", "--seed", "-1"], "--seed: expected at least 0, got -1"),
        (["train", "CartPole-v1", "--threads", "0"], "--threads: expected at least 1"),
        (["train", "CartPole-v1", "--timesteps", "-5"], "timesteps: expected at least 1"),
        (["train", "Pendulum-v1", "--env-kwargs", "g=9", "g=8"], "--env-kwargs: expected each name once, got g g"),
        (["resume", "nowhere"], "expected a folder of results"),
        (["evaluate", "nowhere"], "nowhere: no such policy"),
        (["play", "nowhere", "--video", "a.mp4"], "nowhere: no such policy"),
        (["reproduce", "functions", "--sweep"], "--sweep: expected with `cones reproduce rl` only"),
        (
            ["reproduce", "functions", "--env", "Hopper-v4"],
            "--env: expected for policies, and functions-quick has none",
        ),
        (["reproduce", "rl", "--env", "Ant-v4"], "--env: expected some of Swimmer-v4, got ant-v4"),
        (["reproduce", "rl", "--seeds", "99"], "--seeds: the experiment has 1 seeds, got 99"),
        (["reproduce", "rl", "--timesteps", "0"], "--timesteps: expected a positive number"),
    ],
)
def test_bad_input_is_one_line(
    arguments: list[str],
    message: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(arguments) == 2
    error = capsys.readouterr().err
    assert message in error
    assert "Traceback" not in error
    assert error.startswith("cones: ")
    assert error.count("\n") == 1
    if "Nothing-v0" in arguments:
        assert not list(tmp_path.iterdir())


def test_a_video_of_an_environment_of_one_s_own(tmp_path: Path) -> None:
    pytest.importorskip("imageio")
    import imageio.v3
    import numpy as np

    class Drawn(Point):
        def __init__(self, render_mode: str | None = None) -> None:
            super().__init__()
            self.render_mode = render_mode

        def render(self) -> Any:
            picture = np.zeros((16, 64), np.uint8)
            picture[:, int(np.clip(32 + 10 * self.x, 0, 63))] = 255
            return picture if self.render_mode else None

    policy = rl.train(Drawn, timesteps=100, popsize=4, hidden=[], threads=1).policy
    for task in (None, Drawn, Drawn("rgb_array")):
        _, frames = rl.record_video(policy, tmp_path / "a.gif", task=task)
        assert frames == 10
    assert imageio.v3.imread(tmp_path / "a.gif").std() > 1.0
    (tmp_path / "a.gif").unlink()
    for task in (Drawn(), Point):  # the second does not even take a render mode
        with pytest.raises(InputError, match=r"a video needs an environment whose render\(\) returns a picture"):
            rl.record_video(policy, tmp_path / "a.gif", task=task)
    with pytest.raises(InputError, match="policy: trained on"):
        rl.record_video(policy, tmp_path / "a.gif", task="CartPole-v1")
    assert not (tmp_path / "a.gif").exists()


def test_a_video_says_what_it_cannot_do(
    trained: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert main(["play", str(trained), "--video", "a.avi"]) == 2
    assert "video: expected a file that ends in .mp4 or .gif" in capsys.readouterr().err
    assert main(["play", str(trained), "--video", str(tmp_path / "none" / "a.gif")]) == 2
    assert "video: no folder" in capsys.readouterr().err
    import importlib.util

    find = importlib.util.find_spec
    monkeypatch.setattr(importlib.util, "find_spec", lambda name, *a: None if name == "imageio" else find(name, *a))
    assert main(["play", str(trained), "--video", str(tmp_path / "a.gif")]) == 2
    assert "imageio[ffmpeg]>=" in capsys.readouterr().err.partition("pip install ")[2]


def test_an_environment_in_the_working_folder(tmp_path: Path) -> None:
    shutil.copy(Path(__file__).parents[2] / "examples" / "gymnasium_environment.py", tmp_path)
    program = Path(sys.executable).with_name("cones")
    arguments = ["train", "gymnasium_environment:Parking-v0", "--timesteps", "500", "--popsize", "4", "--quiet"]
    done = subprocess.run([str(program), *arguments], cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize(
    ("task", "message"),
    [
        ("Swimmer-v2", "did you mean Swimmer-v4?"),
        ("environments:PointText-v0", "observation"),
        ("nowhere:X-v0", "No module named 'nowhere'"),
    ],
)
def test_environments_that_cannot_be_had(
    task: str, message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["train", task, "--out", str(tmp_path / "out"), "--quiet"]) == 2
    assert message in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


def test_a_training_that_fails_says_why(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ["--popsize", "4", "--timesteps", "100", "--threads", "1", "--quiet", "--out", str(tmp_path)]
    assert main(["train", "environments:PointNan-v0", *arguments]) == 1
    assert "every episode failed, the first: the return after step 1 is not a finite number" in capsys.readouterr().err
