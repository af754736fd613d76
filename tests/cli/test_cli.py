"""The command line as a user meets it: what it prints, its exit codes, one line per error."""

from __future__ import annotations

import json
import os
import re
import signal
import stat
import subprocess
import sys
import tempfile
import time
from itertools import pairwise
from pathlib import Path

import pytest
from helpers import is_alive, process_that_dies_for_es, wait_until

import cones
from cones.cli import main
from cones.cli.command import CommandObjective

fork_warning = pytest.mark.filterwarnings("ignore:.*multi-threaded.*:DeprecationWarning")


@pytest.fixture(autouse=True)
def in_an_empty_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    for name in ("losses",):
        sys.modules.pop(name, None)
    Path("losses.py").write_text(
        "import numpy as np\n"
        "constant = 3\n"
        "def sphere(x):\n    return float((x**2).sum())\n"
        "def rows(X):\n    return (X**2).sum(axis=1)\n"
        "def broken(x):\n    raise ValueError('no simulator')\n"
        "def fragile(x):\n    if x[0] > 0:\n        raise ValueError('no licence')\n    return sphere(x)\n"
        "def nan(x):\n    return float('nan')\n"
        "calls = 0\n"
        "def seventh(x, error):\n    global calls\n    calls += 1\n"
        "    if calls == 7:\n        raise error\n    return sphere(x)\n"
        "def late(x):\n    return seventh(x, ValueError('licence ended'))\n"
        "def leaves(x):\n    return seventh(x, SystemExit(0))\n"
        "def talks(x):\n    print('hello')\n    return sphere(x)\n"
        "def wants_two(x, y):\n    return 0.0\n"
    )


def program(text: str) -> str:
    path = Path("simulate")
    path.write_text(f"#!{sys.executable}\n{text}\n")
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    return "./simulate"


READS_FILE = "import json, sys\nprint('noise')\nprint(sum(v * v for v in json.load(open(sys.argv[1]))))"
READS_INPUT = "import json, sys\nprint(sum(v * v for v in json.load(sys.stdin)))"
SMALL = ("--popsize", "4", "--maxiter", "3", "--seed", "0", "--quiet")
COMMANDS = (
    *("", "minimize", "train", "resume", "evaluate", "play", "run", "report", "pack", "reproduce", "plot"),
    *("bench", "bench coco", "methods", "components", "problems", "doctor"),
)
PAPER = (*SMALL, "--radius", "paper")  # antithetic pairs throughout


def run(*arguments: str) -> int:
    return main(arguments)


def result_of(capsys: pytest.CaptureFixture[str]) -> dict:
    return json.loads(capsys.readouterr().out)


def test_a_reader_who_leaves_is_no_error() -> None:
    """`cones problems | head -1`, with the reader gone before the first word."""
    reader, writer = os.pipe()
    os.close(reader)
    done = subprocess.run([sys.executable, "-m", "cones", "problems"], stdout=writer, stderr=subprocess.PIPE)
    os.close(writer)
    assert (done.returncode, done.stderr) == (0, b"")


class TestHelp:
    @pytest.mark.parametrize("command", [[], ["minimize"], ["run"], ["report"], ["reproduce"], ["doctor"]])
    def test_help_teaches(self, command: list[str], capsys: pytest.CaptureFixture[str]) -> None:
        with pytest.raises(SystemExit) as end:
            main([*command, "--help"])
        assert end.value.code == 0
        text = capsys.readouterr().out
        assert "usage: cones" in text
        if command in ([], ["minimize"]):
            assert '--command "./simulate' in text
        if command == ["run"]:
            assert "[[problems]]" in text

    @pytest.mark.parametrize("command", COMMANDS)
    def test_help_fits_a_terminal(
        self, command: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
    ) -> None:
        monkeypatch.setenv("COLUMNS", "80")
        with pytest.raises(SystemExit):
            main([*command.split(), "--help"])
        lines = capsys.readouterr().out.splitlines()
        assert len(lines) > 3
        assert [line for line in lines if len(line) > 80] == []

    @pytest.mark.parametrize("command", ["methods", "components", "problems"])
    def test_lists_fit_a_terminal(
        self, command: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
    ) -> None:
        monkeypatch.setenv("COLUMNS", "60")
        assert run(command) == 0
        assert max(map(len, capsys.readouterr().out.splitlines()[:-3])) < 60

    def test_components_show_their_defaults(self, capsys: pytest.CaptureFixture[str]) -> None:
        assert run("components") == 0
        assert "    warm_up=10: Iterations of isotropic noise" in capsys.readouterr().out

    def test_lists(self, capsys: pytest.CaptureFixture[str]) -> None:
        assert run("methods") == run("problems") == run("doctor") == 0
        text = capsys.readouterr().out
        for word in ("cones ", "cma ", "rastrigin", "styblinski_tang", "BLAS", "cores", "MOSEK licence"):
            assert word in text

    def test_as_a_module_and_as_a_program(self) -> None:
        for command in ([sys.executable, "-m", "cones"], [str(Path(sys.executable).parent / "cones")]):
            done = subprocess.run([*command, "--version"], capture_output=True, text=True, check=True)
            assert done.stdout == f"cones {cones.__version__}\n"


class TestMinimizeFunction:
    def test_result_as_json(self, capsys: pytest.CaptureFixture[str]) -> None:
        assert run("minimize", "losses:sphere", "--dim", "3", "--seed", "0", "--ftarget", "0.05", "--quiet") == 0
        result = result_of(capsys)
        assert result["success"]
        assert result["stop"] == "ftarget"
        assert sum(v * v for v in result["x"]) == pytest.approx(result["fun"])
        assert result["failures"] == {"count": 0}

    @pytest.mark.parametrize("method", ["es", "nes", "cones", "cma"])
    def test_methods_and_settings(self, method: str, capsys: pytest.CaptureFixture[str]) -> None:
        own = (
            []
            if method == "cma"
            else ["--learning-rate", "0.2", "--belief", "full", "--independent", "--shaping", "raw"]
        )
        code = run("minimize", "losses:rows", "--vectorized", "--x0", "1,2,3", "--method", method,
                   "--bounds", "-4", "4", "--sigma0", "0.5", *SMALL, *own)  # fmt: skip
        assert code == 0
        assert result_of(capsys)["nfev"] == 13

    def test_restarts_and_noise(self, capsys: pytest.CaptureFixture[str]) -> None:
        common = ("minimize", "losses:sphere", "--dim", "2", "--seed", "0", "--maxfev", "3000", "--quiet")
        seen = {}
        for restarts in ("0", "1", "auto", "bipop,limit=2"):
            assert run(*common, "--restarts", restarts) == 0
            seen[restarts] = result_of(capsys)
        assert [seen[restarts]["restarts"] for restarts in ("0", "1", "bipop,limit=2")] == [0, 1, 2]
        assert seen["auto"]["restarts"] > 2
        assert seen["auto"]["noisy"] is False
        assert "mean_fun" not in seen["auto"]
        assert run(*common, "--noisy") == 0
        noisy = result_of(capsys)
        assert (noisy["noisy"], noisy["nfev"] <= 3000, len(noisy["mean"])) == (True, True, 2)
        assert noisy["mean_fun"] == pytest.approx(sum(v * v for v in noisy["mean"]))
        assert noisy["mean_fun_error"] == pytest.approx(0.0, abs=1e-20)
        assert run(*common, "--no-noisy", "--restarts", "often") == 2
        assert "restarts: expected one of 'bipop', 'growing'" in capsys.readouterr().err

    def test_resume_refuses_another_noise_and_another_policy(self, capsys: pytest.CaptureFixture[str]) -> None:
        common = ("minimize", "losses:sphere", "--dim", "2", "--maxfev", "3000", "--quiet", "--checkpoint", "r.ckpt")
        assert run(*common, "--restarts", "auto", "--noisy", "--popsize", "8") == 0
        for more, said in ((["--no-noisy"], "--noisy"), (["--restarts", "3"], "--restarts")):
            assert run(*common, "--resume", *more) == 2
            assert f"was started with a different {said}" in capsys.readouterr().err
        assert run(*common, "--resume", "--restarts", "auto", "--noisy", "--popsize", "8") == 0

    @fork_warning
    def test_candidates_that_keep_failing_are_counted(self, capsys: pytest.CaptureFixture[str]) -> None:
        assert run("minimize", "losses:fragile", "--dim", "2", "--retries", "1", "--workers", "2", *PAPER) == 0
        output = capsys.readouterr()
        assert json.loads(output.out)["failures"]["count"] == 6  # one of every mirrored pair
        assert "6 evaluations failed, the last: iteration 2, candidate" in output.err
        assert "ValueError: no licence (tried 2 times)" in output.err

    @fork_warning
    def test_progress_and_workers(self, capsys: pytest.CaptureFixture[str]) -> None:
        assert run("minimize", "losses:sphere", "--dim", "2", "--popsize", "4", "--maxiter", "3", "--workers", "2") == 0
        output = capsys.readouterr()
        assert "CoNES 100%" in output.err
        assert "iteration 3" in output.err
        assert json.loads(output.out)["nit"] == 3

    def test_x0_from_a_file_and_result_to_a_file(self) -> None:
        Path("start.json").write_text("[1.0, 2.0]")
        assert run("minimize", "losses:sphere", "--x0", "start.json", "--out", "result.json", *SMALL) == 0
        assert len(json.loads(Path("result.json").read_text())["x"]) == 2

    def test_checkpoint_and_resume(self, capsys: pytest.CaptureFixture[str]) -> None:
        common = ("minimize", "losses:sphere", "--x0", "1,2", "--popsize", "4", "--seed", "0", "--quiet",
                  "--radius", "paper")  # fmt: skip
        assert run(*common, "--maxiter", "9") == 0
        straight = result_of(capsys)
        assert run(*common, "--maxiter", "4", "--checkpoint", "run.ckpt", "--resume") == 0
        assert result_of(capsys)["nit"] == 4
        assert run(*common, "--maxiter", "9", "--checkpoint", "run.ckpt", "--resume") == 0
        assert result_of(capsys) == straight

    def test_negative_numbers_and_long_starts(self, capsys: pytest.CaptureFixture[str]) -> None:
        assert (
            run("minimize", "losses:sphere", "--x0", "-1,2", "--bounds", "-1e3", "1e3", "--ftarget", "-1e-3", *SMALL)
            == 0
        )
        assert len(result_of(capsys)["x"]) == 2
        assert run("minimize", "losses:sphere", "--x0", ",".join(["-1.234567"] * 60), *SMALL) == 0
        assert len(result_of(capsys)["x"]) == 60

    def test_resume_refuses_what_contradicts_the_checkpoint(self, capsys: pytest.CaptureFixture[str]) -> None:
        assert run("minimize", "losses:sphere", "--dim", "2", "--checkpoint", "run.ckpt", *SMALL) == 0
        for flags, message in (
            (("--dim", "7"), "has 2 dimensions, got 7"),
            (("--dim", "2", "--method", "es"), "is a run of CoNES, got --method es"),
            (("--x0", "1,2,3"), "has 2 dimensions, got 3"),
            (("--dim", "2", "--radius", "paper"), "was started with a different --radius"),
            (("--dim", "2", "--learning-rate", "0.2"), "was started with a different --learning-rate"),
            (("--dim", "2", "--belief", "diagonal"), "was started with a different --belief"),
            (("--dim", "2", "--shaping", "raw"), "was started with a different --shaping"),
            (("--dim", "2", "--restarts", "2"), "was started with a different --restarts"),
            (("--dim", "2", "--seed", "5"), "was started with a different --seed"),
            (("--dim", "2", "--bounds", "5", "9"), "was started with a different --bounds"),
            (("--dim", "2", "--x0", "1,2"), "expected one of --x0, --dim and --space, got --x0 and --dim"),
        ):
            seed = () if "--seed" in flags else ("--seed", "0")
            again = ("--popsize", "4", "--maxiter", "3", "--quiet", "--checkpoint", "run.ckpt", "--resume")
            assert run("minimize", "losses:sphere", *flags, *seed, *again) == 2
            assert message in capsys.readouterr().err

    def test_resume_takes_the_same_command(self, capsys: pytest.CaptureFixture[str]) -> None:
        start = ("minimize", "losses:sphere", "--x0", "1,2", "--popsize", "4", "--quiet")
        for name, flags in enumerate(
            (
                ("--bounds", "0", "inf", "--sigma0", "2", "--seed", "7", "--restarts", "1"),
                ("--bounds", "-inf", "3", "--learning-rate", "0.05", "--variance-learning-rate", "0.01"),
                ("--method", "cma", "--seed", "1", "--bounds", "-5", "5"),
                ("--method", "sepcma", "--seed", str(2**40)),
                ("--method", "es", "--learning-rate", "0.3", "--independent", "--shaping", "raw", "--belief", "full"),
            )
        ):
            common = (*start, *flags, "--checkpoint", f"{name}.ckpt", "--checkpoint-every", "1")
            assert run(*common, "--maxiter", "2") == 0
            capsys.readouterr()
            assert run(*common, "--maxiter", "5", "--resume") == 0
            assert result_of(capsys)["nit"] == 5

    def test_resume_refuses_what_contradicts_other_checkpoints(self, capsys: pytest.CaptureFixture[str]) -> None:
        start = ("minimize", "losses:sphere", "--dim", "2", "--quiet", "--maxiter", "2", "--checkpoint")
        begun = {
            "zero.ckpt": ("--seed", "5", "--restarts", "2"),
            "rates.ckpt": ("--learning-rate", "0.05", "--variance-learning-rate", "0.01"),
            "cma.ckpt": ("--method", "cma", "--seed", "1", "--bounds", "-5", "5"),
            "sep.ckpt": ("--method", "sepcma", "--seed", "3"),
            "es.ckpt": ("--method", "es"),
        }
        for name, flags in begun.items():
            assert run(*start, name, *flags) == 0
        for name, flags, message in (
            ("zero.ckpt", ("--seed", "0"), "was started with a different --seed"),
            ("zero.ckpt", ("--restarts", "0"), "was started with a different --restarts"),
            ("rates.ckpt", ("--learning-rate", "0.05"), None),
            ("rates.ckpt", ("--variance-learning-rate", "0.02"), "a different --variance-learning-rate"),
            ("cma.ckpt", ("--radius", "3"), "--radius: not a setting of method cma"),
            ("cma.ckpt", ("--seed", "2"), "was started with a different --seed"),
            ("cma.ckpt", ("--bounds", "-1", "1"), "was started with a different --bounds"),
            ("sep.ckpt", ("--restarts", "3"), "--restarts: not a setting of method sepcma"),
            ("sep.ckpt", ("--seed", "4"), "was started with a different --seed"),
            ("es.ckpt", ("--radius", "3"), "--radius: not a setting of method es"),
        ):
            capsys.readouterr()
            assert run(*start, name, *flags, "--resume") == (0 if message is None else 2)
            assert (message or "") in capsys.readouterr().err

    def test_errors_of_the_function_are_not_taken_for_bad_input(self, capsys: pytest.CaptureFixture[str]) -> None:
        assert run("minimize", "losses:wants_two", "--dim", "2", *SMALL) == 1
        error = capsys.readouterr().err
        assert "TypeError" in error
        assert "candidate 0" in error

    def test_an_exception_is_one_line_unless_debug(self, capsys: pytest.CaptureFixture[str]) -> None:
        assert run("minimize", "losses:broken", "--dim", "2", *SMALL) == 1
        error = capsys.readouterr().err
        assert "ValueError: no simulator" in error
        assert "candidate 0" in error
        assert "Traceback" not in error
        assert run("minimize", "losses:broken", "--dim", "2", "--debug", *SMALL) == 1
        assert "Traceback" in capsys.readouterr().err

    @pytest.mark.parametrize(("function", "said"), [("late", "ValueError: licence ended"), ("leaves", "SystemExit: 0")])
    def test_what_was_found_before_an_exception_is_kept(
        self, function: str, said: str, capsys: pytest.CaptureFixture[str]
    ) -> None:
        assert run("minimize", f"losses:{function}", "--dim", "2", *SMALL) == 1
        output = capsys.readouterr()
        assert f"cones: {said} (" in output.err
        assert "iteration 1" in output.err
        result = json.loads(output.out)
        assert (result["nfev"], result["stop"], result["message"], result["success"]) == (6, "error", said, False)
        assert result["fun"] == pytest.approx(sum(v * v for v in result["x"]))
        sys.modules["losses"].calls = 0  # type: ignore[attr-defined]
        assert run("minimize", f"losses:{function}", "--dim", "2", "--out", "found.json", *SMALL) == 1
        assert capsys.readouterr().out == ""
        assert json.loads(Path("found.json").read_text())["nfev"] == 6

    def test_what_a_function_prints_is_not_the_result(self, capsys: pytest.CaptureFixture[str]) -> None:
        assert run("minimize", "losses:talks", "--dim", "2", *SMALL) == 0
        output = capsys.readouterr()
        assert json.loads(output.out)["nfev"] == 13
        assert output.err == "hello\n" * 13

    @pytest.mark.parametrize("workers", ["1", "2"])
    def test_what_programs_and_compiled_code_print_is_not_the_result(self, workers: str) -> None:
        Path("noisy.py").write_text(
            "import ctypes, os, subprocess\n"
            "def f(x):\n"
            "    os.write(1, b'by number\\n')\n"
            "    subprocess.run(['echo', 'by a program'])\n"
            "    ctypes.CDLL(None).puts(b'by compiled code')\n"
            "    return float(x @ x)\n"
        )
        done = subprocess.run(
            [sys.executable, "-m", "cones", "minimize", "noisy:f", "--dim", "2", "--workers", workers, *SMALL],
            capture_output=True, text=True, timeout=60, check=True,
        )  # fmt: skip
        assert json.loads(done.stdout)["nfev"] == 13
        for line in ("by number", "by a program", "by compiled code"):
            assert done.stderr.count(line) == 13

    def test_all_nan_is_a_failure(self, capsys: pytest.CaptureFixture[str]) -> None:
        assert run("minimize", "losses:nan", "--dim", "2", *SMALL) == 1
        output = capsys.readouterr()
        assert "no loss of the first iteration was finite" in output.err
        assert json.loads(output.out)["fun"] is None


class TestNumbersOfEachCoordinate:
    def test_bounds_and_sigma0_are_those_of_the_library(self, capsys: pytest.CaptureFixture[str]) -> None:
        Path("high.json").write_text("[4, 5, 6]")
        each = ("--x0", "-1,0.5,3", "--bounds", "-2,-inf,2.5", "high.json", "--sigma0", "0.1,0.2,0.3")
        assert run("minimize", "losses:sphere", *each, *SMALL) == 0
        by_command = result_of(capsys)
        by_call = cones.minimize(
            lambda x: float((x**2).sum()), [-1.0, 0.5, 3.0], bounds=[(-2, 4), (None, 5), (2.5, 6)],
            sigma0=[0.1, 0.2, 0.3], popsize=4, maxiter=3, rng=0,
        )  # fmt: skip
        assert by_command["x"] == by_call.x.tolist()
        assert by_command["x"][2] >= 2.5

    @pytest.mark.parametrize(
        ("flags", "message"),
        [
            (("--bounds", "0,1", "5"), "--bounds: expected one number, or 3, one per coordinate, got shape (2,)"),
            (("--bounds", "-1", "x"), "--bounds: expected numbers separated by commas or a JSON file, got 'x'"),
            (("--bounds", "-1,-1,2", "1,1,1"), "bounds: expected low <= high, got (2.0, 1.0) for coordinate 2"),
            (("--sigma0", "1,2"), "--sigma0: expected one number, or 3, one per coordinate, got shape (2,)"),
            (("--bounds", "-1", "1", "--bounds", "-2", "2"), "--bounds: expected once, got it twice"),
            (("--noisy", "--no-noisy"), "--noisy: expected once, got --no-noisy as well"),
            (("--dim", "4", "--maxfev", "9"), "--dim: expected once, got it twice"),
            (("--sigma0", "1", "2", "3"), "unknown: 2 3; several numbers are separated by commas, as in 1,2,3"),
            (("--resume", "a.ckpt"), "a.ckpt; --resume takes no file, it continues that of --checkpoint"),
        ],
    )
    def test_bad_input_is_named(self, flags: tuple[str, ...], message: str, capsys: pytest.CaptureFixture[str]) -> None:
        try:
            code = run("minimize", "losses:sphere", "--dim", "3", *flags, "--quiet")
        except SystemExit as end:
            code = end.code
        assert code == 2
        assert message in capsys.readouterr().err

    def test_resume_compares_the_bounds_of_each(self, capsys: pytest.CaptureFixture[str]) -> None:
        start = ("minimize", "losses:sphere", "--dim", "2", "--checkpoint", "run.ckpt", "--quiet", "--popsize", "4")
        assert run(*start, "--bounds", "-1,-2", "1", "--maxiter", "2") == 0
        assert run(*start, "--bounds", "-1,-2", "1,1", "--maxiter", "4", "--resume") == 0
        assert run(*start, "--bounds", "-1,-3", "1,1", "--maxiter", "6", "--resume") == 2
        assert "was started with a different --bounds" in capsys.readouterr().err


class TestResumeWithAnother:
    START = ("--dim", "2", "--popsize", "4", "--seed", "0", "--quiet", "--checkpoint", "run.ckpt")

    def test_function_is_a_warning_in_one_line(self) -> None:
        Path("other.py").write_text("from losses import sphere\ndef mine(x):\n    return float(abs(x).sum())\n")
        assert run("minimize", "losses:sphere", *self.START, "--maxiter", "2") == 0
        again = (sys.executable, "-m", "cones", "minimize", "other:mine", *self.START, "--maxiter", "4", "--resume")
        done = subprocess.run(again, capture_output=True, text=True, check=True)
        assert done.stderr == (
            "cones: warning: fun: the run in run.ckpt was started with losses:sphere, and continues with other:mine\n"
        )
        assert run("minimize", "other:mine", *self.START, "--maxiter", "6", "--resume") == 0  # said once

    def test_the_same_function_from_another_module_is_none(self) -> None:
        Path("again.py").write_text("from losses import sphere\n")
        assert run("minimize", "losses:sphere", *self.START, "--maxiter", "2") == 0
        assert run("minimize", "again:sphere", *self.START, "--maxiter", "4", "--resume") == 0

    @pytest.mark.filterwarnings("always:fun:RuntimeWarning")
    def test_command_is_a_warning(self, capsys: pytest.CaptureFixture[str]) -> None:
        command = program(READS_INPUT)
        assert run("minimize", "--command", command, *self.START, "--maxiter", "1") == 0
        assert run("minimize", "--command", f"{command} 2", *self.START, "--maxiter", "2", "--resume") == 0
        assert "with command:./simulate, and continues with command:./simulate 2\n" in capsys.readouterr().err


class TestMinimizeCommand:
    @pytest.mark.parametrize(("text", "suffix"), [(READS_FILE, " {input}"), (READS_INPUT, "")])
    def test_file_or_standard_input(self, text: str, suffix: str, capsys: pytest.CaptureFixture[str]) -> None:
        assert run("minimize", "--command", program(text) + suffix, "--x0", "1,2", *SMALL) == 0
        by_command = result_of(capsys)
        assert run("minimize", "losses:sphere", "--x0", "1,2", *SMALL) == 0
        by_function = result_of(capsys)
        assert by_command["x"] == by_function["x"]
        assert by_command["fun"] == pytest.approx(by_function["fun"])

    def test_runs_in_parallel(self) -> None:
        command = program(
            "import os, time\nbegin = time.time()\ntime.sleep(1.0)\n"
            "open(f'times-{os.getpid()}', 'w').write(f'{begin} {time.time()}')\nprint(1.0)"
        )
        arguments = ("--popsize", "8", "--maxiter", "1", "--seed", "0", "--quiet", "--workers", "8")
        assert run("minimize", "--command", command, "--dim", "2", *arguments) == 0
        spans = sorted(tuple(map(float, path.read_text().split())) for path in Path().glob("times-*"))
        assert len(spans) == 9
        spans = spans[1:]  # without the start, which is evaluated first
        assert any(later[0] < earlier[1] for earlier, later in pairwise(spans)), "one after the other"

    @pytest.mark.parametrize(
        ("text", "message"),
        [
            ("import sys; sys.exit('diverged at t = 3')", "exit code 1: diverged at t = 3"),
            ("print('hello')", "the last line of output is not a number: 'hello'"),
            ("pass", "the last line of output is not a number: ''"),
            ("print('nan')", "the program printed nan"),
            ("import time; time.sleep(60)", "no answer in 0.5 seconds (tried once)"),
        ],
    )
    def test_failures_of_every_candidate_end_the_run(
        self, text: str, message: str, capsys: pytest.CaptureFixture[str]
    ) -> None:
        assert run("minimize", "--command", program(text), "--dim", "2", "--timeout", "0.5", *SMALL) == 1
        output = capsys.readouterr()
        assert message in output.err
        assert "no loss of the first iteration was finite" in output.err
        assert "Traceback" not in output.err
        assert json.loads(output.out)["failures"]["count"] == 4

    @pytest.mark.parametrize("own_session", [True, False])
    def test_what_a_program_leaves_running_is_not_waited_for(
        self, own_session: bool, capsys: pytest.CaptureFixture[str]
    ) -> None:
        text = f"import subprocess; subprocess.Popen(['sleep', '20'], start_new_session={own_session}); print(1)"
        begin = time.monotonic()
        small = ("--popsize", "2", "--maxiter", "1", "--quiet")
        assert run("minimize", "--command", program(text), "--dim", "2", "--timeout", "15", *small) == 0
        assert time.monotonic() - begin < 15.0
        assert result_of(capsys)["fun"] == 1.0

    def test_infinite_losses_are_told_from_none(self, capsys: pytest.CaptureFixture[str]) -> None:
        assert run("minimize", "--command", "echo inf", "--dim", "2", *SMALL) == 1
        output = capsys.readouterr()
        assert json.loads(output.out)["fun"] == "inf"
        assert "no loss of the first iteration was finite" in output.err
        assert run("minimize", "--command", "echo -inf", "--dim", "2", *SMALL) == 0
        assert result_of(capsys)["fun"] == "-inf"

    def test_single_failures_are_counted_and_the_run_goes_on(self, capsys: pytest.CaptureFixture[str]) -> None:
        command = program(
            READS_INPUT.replace("print(", "v = json.load(sys.stdin)\nassert v[0] < 1.2\nprint(").replace(
                "json.load(sys.stdin)))", "v))"
            )
        )
        assert run("minimize", "--command", command, "--x0", "1,2", *SMALL) == 0
        output = capsys.readouterr()
        failures = json.loads(output.out)["failures"]
        assert 0 < failures["count"] < 12
        assert "exit code 1: AssertionError" in failures["example"]
        assert f"{failures['count']} evaluations failed, the last: {failures['example']}" in output.err

    def test_failures_before_a_checkpoint_count(self, capsys: pytest.CaptureFixture[str]) -> None:
        command = program("import json, sys\nv = json.load(sys.stdin)\nprint(v[0] if v[0] < 0 else 'nothing')")
        arguments = ("minimize", "--command", command, "--dim", "2", "--checkpoint", "run.ckpt", *PAPER[:2], "--quiet")
        assert run(*arguments, "--seed", "0", "--radius", "paper", "--maxiter", "2") == 0
        assert result_of(capsys)["failures"]["count"] == 4  # one of every mirrored pair
        assert run(*arguments, "--resume", "--maxiter", "3", "--out", "all.json") == 0
        result = json.loads(Path("all.json").read_text())
        assert result["failures"]["count"] == sum(result["history"]["failures"]) >= 4

    def test_ctrl_c_ends_the_programs(self, tmp_path: Path) -> None:
        command = program(
            "import glob, os, time\nopen(f'pid-{os.getpid()}', 'w').close()\n"
            "time.sleep(0.2 if len(glob.glob('pid-*')) < 7 else 600)\nprint(1.0)"
        )
        process = subprocess.Popen(
            [sys.executable, "-m", "cones", "minimize", "--command", command, "--dim", "2", "--popsize", "4",
             "--seed", "0", "--quiet", "--workers", "2", "--checkpoint", "run.ckpt"],
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=tmp_path, start_new_session=True,
        )  # fmt: skip
        deadline = time.monotonic() + 30.0
        while len(list(tmp_path.glob("pid-*"))) < 8 and time.monotonic() < deadline:
            time.sleep(0.1)
        time.sleep(0.5)
        os.kill(process.pid, signal.SIGINT)
        out, err = process.communicate(timeout=60)
        assert process.returncode == 130, err
        assert "--resume continues from the checkpoint" in err
        assert "Traceback" not in err
        assert json.loads(out)["nit"] >= 1
        pids = [int(path.name.removeprefix("pid-")) for path in tmp_path.glob("pid-*")]
        wait_until(lambda: not any(map(is_alive, pids)), 20.0)

    def test_being_told_to_end_ends_the_programs(self, tmp_path: Path) -> None:
        command = program("import os, time\nopen(f'pid-{os.getpid()}', 'w').close()\ntime.sleep(600)")
        process = subprocess.Popen(
            [sys.executable, "-m", "cones", "minimize", "--command", command, "--dim", "2", "--workers", "2"],
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, cwd=tmp_path, start_new_session=True,
        )  # fmt: skip
        deadline = time.monotonic() + 30.0
        while not list(tmp_path.glob("pid-*")) and time.monotonic() < deadline:  # the start is evaluated first
            time.sleep(0.1)
        process.terminate()
        assert process.wait(timeout=60) == 130
        pids = [int(path.name.removeprefix("pid-")) for path in tmp_path.glob("pid-*")]
        wait_until(lambda: not any(map(is_alive, pids)), 20.0)

    def test_being_told_to_end_ends_worker_processes(self, tmp_path: Path) -> None:
        Path("slow.py").write_text("import time\ndef f(x):\n    open('begun', 'w').close()\n    time.sleep(600)\n")
        process = subprocess.Popen(
            [sys.executable, "-m", "cones", "minimize", "slow:f", "--dim", "2", "--workers", "2"],
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, cwd=tmp_path, start_new_session=True,
        )  # fmt: skip
        deadline = time.monotonic() + 30.0
        while not (tmp_path / "begun").exists() and time.monotonic() < deadline:
            time.sleep(0.1)
        process.terminate()
        assert process.wait(timeout=60) == 130
        deadline = time.monotonic() + 10.0
        while time.monotonic() < deadline:
            try:
                os.killpg(process.pid, 0)
            except ProcessLookupError:
                return
            time.sleep(0.1)
        os.killpg(process.pid, signal.SIGKILL)
        raise AssertionError("worker processes outlive the command")

    def test_programs_end_when_the_command_is_killed(self, tmp_path: Path) -> None:
        command = "sh -c 'sleep 300 & echo $! > $$.pid; wait'"
        process = subprocess.Popen(
            [sys.executable, "-m", "cones", "minimize", "--command", command, "--dim", "2", "--workers", "2"],
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, cwd=tmp_path,
        )  # fmt: skip
        wait_until(lambda: any(path.read_text() for path in tmp_path.glob("*.pid")))
        pids = [int(number) for path in tmp_path.glob("*.pid") for number in (path.stem, path.read_text())]
        process.kill()
        process.wait()
        wait_until(lambda: not any(map(is_alive, pids)), 20.0)

    def test_a_program_that_hangs_ends_with_its_children_and_leaves_no_file(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
    ) -> None:
        (tmp_path / "files").mkdir()
        monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "files"))
        command = "sh -c 'sleep 300 & echo $! > $$.pid; wait' {input}"
        small = ("--popsize", "2", "--maxiter", "1", "--quiet", "--workers", "2", "--timeout", "0.5", "--retries", "1")
        assert run("minimize", "--command", command, "--dim", "2", *small) == 1
        assert "no answer in 0.5 seconds (tried 2 times)" in result_of(capsys)["failures"]["example"]
        pids = [int(number) for path in Path().glob("*.pid") for number in (path.stem, path.read_text())]
        assert len(pids) >= 8  # the two candidates, twice
        wait_until(lambda: not any(map(is_alive, pids)), 20.0)
        assert not list((tmp_path / "files").iterdir())

    def test_objective_by_itself(self, tmp_path: Path) -> None:
        objective = CommandObjective(f"{sys.executable} -c 'import sys; print(len(sys.stdin.read()))'", str(tmp_path))
        assert objective([1.0, 2.0]) == len("[1.0, 2.0]")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["minimize", "nowhere:fun", "--dim", "2"], "what to minimise: no module named 'nowhere'"),
        (["minimize", "losses:spere", "--dim", "2"], "what to minimise: module losses has no 'spere'"),
        (["minimize", "losses:constant", "--dim", "2"], "expected a function, got int"),
        (["minimize", "losses", "--dim", "2"], "what to minimise: expected MODULE:NAME"),
        (["minimize", "--dim", "2"], "what to minimise: expected MODULE:FUNCTION or --command, got neither"),
        (["minimize", "losses:sphere"], "where to start: expected one of --x0, --dim and --space, got none"),
        (["minimize", "losses:sphere", "--x0", "1,a"], "--x0: expected numbers separated by commas"),
        (["minimize", "losses:sphere", "--x0", "a.json"], "--x0: a.json could not be read (No such file or directory)"),
        (["minimize", "losses:sphere", "--dim", "0"], "--dim: expected at least 1, got 0"),
        (["minimize", "losses:sphere", "--dim", "2", "--maxfev", "-5"], "maxfev: expected at least 1, got -5"),
        (["minimize", "losses:sphere", "--dim", "200", "--popsize", "7"], "popsize: expected an even number"),
        (["minimize", "losses:sphere", "--dim", "2", "--resume"], "--resume: expected together with --checkpoint"),
        (["minimize", "losses:sphere", "--dim", "2", "--timeout", "0"], "timeout: expected a positive number"),
        (["minimize", "losses:sphere", "--dim", "2", "--workers", "there"], "workers: expected 'ray', an address"),
        (["minimize", "--command", "true", "--dim", "2", "--workers", "ray"], "--workers: expected a number with"),
        (["minimize", "losses:sphere", "--dim", "2", "--workers", "0"], "--workers: expected at least 1, got 0"),
        (
            ["minimize", "losses:sphere", "--dim", "2", "--method", "nes", "--radius", "3"],
            "--radius: not a setting of method nes",
        ),
        (
            ["minimize", "losses:sphere", "--dim", "2", "--method", "cma", "--learning-rate", "1"],
            "--learning-rate: not a setting of method cma",
        ),
        (
            ["minimize", "losses:sphere", "--dim", "2", "--learning-rate", "0"],
            "learning_rate: expected a positive number",
        ),
        (["minimize", "losses:sphere", "--dim", "2", "--out", "nowhere/x.json"], "--out: no folder"),
        (["minimize", "losses:sphere", "--dim", "2", "--checkpoint", "losses.py"], "continue it with --resume"),
        (
            ["minimize", "losses:sphere", "--dim", "2", "--checkpoint", "nowhere/a.ckpt"],
            "could not be written: there is no folder",
        ),
        (["minimize", "losses.py:sphere", "--dim", "2"], "what to minimise: expected MODULE:NAME"),
        (["minimize", ":sphere", "--dim", "2"], "what to minimise: expected MODULE:NAME"),
        (["minimize", "--command", "./nothing {input}", "--dim", "2"], "no executable program './nothing'"),
        (["minimize", "--command", "", "--dim", "2"], "--command: expected a program"),
        (["minimize", "--command", "'", "--dim", "2"], "--command: No closing quotation"),
        (["run", "nothing.toml"], "nothing.toml: expected an experiment file"),
        (["reproduce", "functions", "--out", "losses.py"], "losses.py: expected a folder for results"),
        (["plot", "losses.py"], "not a complete cones checkpoint (truncated, or not a zip file)"),
        (["report", "."], "expected a folder of results"),
        (["reproduce", "functions", "--methods", "es,gd"], "--methods: expected some of ES, NES, CoNES, CMA, got gd"),
    ],
)
def test_mistakes_are_one_line_and_exit_code_2(
    arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(arguments) == 2
    error = capsys.readouterr().err.strip().splitlines()
    assert message in error[-1]
    assert error[-1].startswith("cones: ")
    assert not any("Traceback" in line for line in error)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["minimise"], "COMMAND: expected one of .*, got 'minimise'; did you mean minimize\\? \\(see cones --help\\)"),
        (
            ["minimize", "losses:sphere", "--method", "gd"],
            "--method: expected one of es, .*, got 'gd' \\(see cones min.*",
        ),
        (["minimize", "losses:sphere", "--dim", "two"], "--dim: expected an integer, got 'two' .*"),
        (["minimize", "losses:sphere", "--ftol", "low"], "--ftol: expected a number, got 'low' .*"),
        (
            ["minimize", "losses:sphere", "--popsiez", "3"],
            "unknown: --popsiez 3; did you mean --popsize\\? \\(see cones m.*",
        ),
        (["minimize", "losses:sphere", "--x0", "1", "2"], "unknown: 2; several numbers are separated by commas.*"),
        (["minimize", "a:b", "--resume", "run.ckpt"], "unknown: run.ckpt; --resume takes no file.*"),
        (["doctor", "again"], "unknown: again \\(see cones doctor --help\\)"),
        (["run"], "the following arguments are required: SPEC.toml .*"),
    ],
)
def test_mistakes_in_the_command_itself_are_one_line(
    arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as end:
        main(arguments)
    assert end.value.code == 2
    assert re.fullmatch(f"cones: {message}\n", capsys.readouterr().err)


class TestExperiments:
    SPEC = """
    name = "mine"
    seeds = 2
    maxfev = 100
    [[problems]]
    problem = "sphere"
    dim = 4
    shift = 1.0
    [[methods]]
    method = "cones"
    popsize = 10
    [[methods]]
    method = "nes"
    popsize = 10
    """

    def test_run_and_report(self, capsys: pytest.CaptureFixture[str]) -> None:
        Path("spec.toml").write_text(self.SPEC)
        assert run("run", "spec.toml", "--methods", "CoNES", "--seeds", "1") == 0
        output = capsys.readouterr()
        assert "1 of 2 seeds" in output.out
        assert "cones-results/mine/report.html" in output.out
        assert run("run", "spec.toml", "--workers", "2") == 0
        assert "of 2 seeds" not in capsys.readouterr().out
        for name in ("report.html", "figures/loss.png", "figures/step.png"):
            Path("cones-results/mine", name).unlink()
        assert run("report", "cones-results/mine") == 0
        for name in ("report.html", "figures/loss.png", "figures/step.png"):
            assert Path("cones-results/mine", name).stat().st_size > 1000

    def test_another_specification_is_refused_and_nothing_lost(self, capsys: pytest.CaptureFixture[str]) -> None:
        Path("spec.toml").write_text(self.SPEC)
        assert run("run", "spec.toml", "--out", "out") == 0
        before = sorted(p.name for p in Path("out/runs").iterdir())
        Path("spec.toml").write_text(self.SPEC.replace("maxfev = 100", "maxfev = 200"))
        assert run("run", "spec.toml", "--out", "out") == 2
        assert "holds records of another specification" in capsys.readouterr().err
        assert sorted(p.name for p in Path("out/runs").iterdir()) == before

    def test_failed_runs_are_an_exit_code(
        self, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        Path("spec.toml").write_text(self.SPEC.replace('"nes"', '"es"'))
        monkeypatch.setattr("cones.experiments.runner._process", process_that_dies_for_es)
        assert run("run", "spec.toml") == 1
        error = capsys.readouterr().err
        assert "2 runs failed" in error
        assert "died with exit code -9" in error.splitlines()[-1]

    def test_a_missing_solver_is_found_before_anything_runs(self, capsys: pytest.CaptureFixture[str]) -> None:
        Path("spec.toml").write_text(self.SPEC.replace('method = "cones"', 'method = "cones"\nsolver = "mosek"'))
        assert run("run", "spec.toml") == 2
        assert "mosek" in capsys.readouterr().err
        assert not Path("cones-results").exists()


SPACE = """
[lr]
type = "float"
low = 1e-5
high = 1e-1
log = true
[net.layers]
type = "integer"
low = 1
high = 8
[act]
type = "choice"
options = ["relu", "tanh"]
"""


class TestSpace:
    def test_functions_and_programs_take_values_by_name(self, capsys: pytest.CaptureFixture[str]) -> None:
        Path("space.toml").write_text(SPACE)
        Path("named.py").write_text("def loss(v):\n    return (v['net']['layers'] - 3) ** 2 + (v['act'] == 'relu')\n")
        Path("program.py").write_text(
            "import json, sys\nv = json.load(sys.stdin)\nprint((v['net']['layers'] - 3) ** 2 + (v['act'] == 'relu'))\n"
        )
        sys.path.insert(0, str(Path.cwd()))
        common = ["--space", "space.toml", "--maxiter", "8", "--seed", "0", "--quiet"]
        assert main(["minimize", "named:loss", *common, "--checkpoint", "run.ckpt"]) == 0
        one = json.loads(capsys.readouterr().out)
        assert set(one["x"]) == {"lr", "net", "act"}
        assert one["fun"] == (one["x"]["net"]["layers"] - 3) ** 2 + (one["x"]["act"] == "relu")
        assert main(["minimize", "--command", f"{sys.executable} -S program.py", *common]) == 0
        assert json.loads(capsys.readouterr().out)["x"] == one["x"]
        resumed = [*common[:3], "12", *common[4:], "--checkpoint", "run.ckpt", "--resume"]
        assert main(["minimize", "named:loss", *resumed]) == 0
        assert json.loads(capsys.readouterr().out)["nit"] == 12
        Path("space.toml").write_text(SPACE.replace("high = 8", "high = 9"))
        assert main(["minimize", "named:loss", *resumed]) == 2
        assert "was started with a different --space" in capsys.readouterr().err

    @pytest.mark.parametrize(
        ("flags", "message"),
        [
            (["--space", "none.toml"], "--space: none.toml could not be read"),
            (["--space", "space.toml", "--dim", "3"], "expected one of --x0, --dim and --space, got --dim and --space"),
            (["--space", "space.toml", "--bounds", "0", "1"], "--bounds: expected none with --space"),
            (["--space", "space.toml", "--method", "cma"], "method: expected one of cones, nes, es in a space"),
        ],
    )
    def test_what_is_wrong_is_said(self, flags: list[str], message: str, capsys: pytest.CaptureFixture[str]) -> None:
        Path("space.toml").write_text(SPACE)
        assert main(["minimize", "losses:sphere", *flags]) == 2
        assert message in capsys.readouterr().err
