"""The examples: short, complete, and they do what they say."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parent.parent / "examples"
NAMES = sorted(path.name for path in EXAMPLES.glob("*.py"))


def output_of(name: str) -> str:
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    command = [sys.executable, "-W", "error", name]
    done = subprocess.run(command, cwd=EXAMPLES, capture_output=True, text=True, env=environment)
    assert done.returncode == 0, done.stderr
    return done.stdout


def number_after(words: str, text: str) -> float:
    found = re.search(re.escape(words) + r"\s*(-?[\d.]+(?:e-?\d+)?)", text)
    assert found, text
    return float(found[1])


def test_there_are_five_and_each_is_short() -> None:
    assert len(NAMES) == 5
    for name in NAMES:
        text = (EXAMPLES / name).read_text()
        assert len(text.splitlines()) < 60, name
        assert f"python examples/{name}" in text


def test_minimize_function() -> None:
    text = output_of("minimize_function.py")
    assert "The loss reached ftarget = 0.001." in text


def test_ask_tell_pool() -> None:
    text = output_of("ask_tell_pool.py")
    assert "The loss reached ftarget = 1e-06." in text
    assert number_after("the last checkpoint is of iteration", text) % 10 == 0


def test_noisy_simulator() -> None:
    text = output_of("noisy_simulator.py")
    assert int(text.split()[0]) > 0  # simulations failed
    start, answer = (number_after(f"mean cost at the {which}", text) for which in ("start", "answer"))
    assert answer < 0.6 * start
    assert number_after("the luckiest simulation cost", text) < answer  # why the best candidate is not the answer


def test_torch_module() -> None:
    text = output_of("torch_module.py")
    assert number_after("after", text) < 10.0 < number_after("before", text)


def test_gymnasium_environment() -> None:
    text = output_of("gymnasium_environment.py")
    first, last = number_after("of the population at first", text), number_after("of the mean policy at last", text)
    assert last > first + 50.0
    assert number_after("twenty new episodes:", text) > 0.5 * (first + last)


@pytest.mark.parametrize("name", NAMES)
def test_they_can_be_imported_without_running(name: str) -> None:
    """A pool's processes import them."""
    assert '\nif __name__ == "__main__":\n    main()\n' in (EXAMPLES / name).read_text()
