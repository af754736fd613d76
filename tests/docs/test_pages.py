"""Every block of code in the documentation and the README runs, or is on record as one that cannot."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest
from blocks import ROOT, RUN, SHOWN, blocks, pages, run_by_the_site, run_page

# By page: how many blocks are marked as not run here.
NOT_RUN = {
    "CONTRIBUTING.md": 1,  # make
    "README.md": 1,  # pip
    "docs/experiments.md": 1,  # hours
    "docs/guide.md": 1,  # needs files of the reader's; the tutorials run the same
    "docs/index.md": 1,  # pip
    "docs/integrations/coco.md": 1,  # an hour
    "docs/integrations/nevergrad.md": 1,  # pip
    "docs/integrations/optuna.md": 1,  # pip
    "docs/integrations/torch.md": 1,  # pip
    "docs/integrations/trackers.md": 1,  # pip
    "docs/rl.md": 2,  # minutes; days
    "docs/tutorials/first.md": 1,  # pip
    "docs/tutorials/machines.md": 1,  # a cluster
    "docs/tutorials/policy.md": 2,  # minutes; OpenGL
}
# The site shows what some pages print: these run when it is built, in test_site.py.
WITH_CODE = [page for page in pages() if page not in run_by_the_site() and any(True for _ in blocks(page))]


def name(page: Path) -> str:
    return page.relative_to(ROOT).as_posix()


def test_all_blocks_are_of_a_kind_that_is_known() -> None:
    """A block without a language would be run by nobody."""
    unknown = [
        f"{name(block.page)}:{block.line}: {block.language!r}"
        for page in pages()
        for block in blocks(page)
        if block.language not in (*RUN, *SHOWN)
    ]
    assert unknown == []


def test_all_fences_are_seen() -> None:
    """What the reader of blocks finds is what a count of fences finds."""
    for page in pages():
        opened = sum(line.startswith("```") for line in page.read_text().splitlines()) // 2
        directives = sum(line.startswith("```{") for line in page.read_text().splitlines())
        assert len(list(blocks(page))) == opened - directives, name(page)


def test_what_does_not_run_is_on_record_with_a_reason() -> None:
    marked = [block for page in pages() for block in blocks(page) if block.not_run]
    assert Counter(name(block.page) for block in marked) == NOT_RUN
    assert all(len(block.not_run) > 4 for block in marked)


def test_there_is_something_to_run() -> None:
    counts = Counter(block.language for page in pages() for block in blocks(page) if not block.not_run)
    assert counts["python"] > 25
    assert counts["bash"] > 5


@pytest.mark.filterwarnings("ignore:.*multi-threaded.*:DeprecationWarning")
@pytest.mark.parametrize("page", WITH_CODE, ids=name)
def test_a_page_runs(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [str(tmp_path), *sys.path])
    for variable in ("HOME", "WANDB_CACHE_DIR", "WANDB_CONFIG_DIR", "WANDB_DATA_DIR"):
        monkeypatch.setenv(variable, str(tmp_path))
    monkeypatch.setenv("WANDB_SILENT", "true")
    monkeypatch.setenv("MLFLOW_DISABLE_TELEMETRY", "true")
    for module in ("losses", "simulate"):  # of another page
        sys.modules.pop(module, None)
    expected = sum(not block.not_run and block.language not in SHOWN for block in blocks(page))
    if page.parent.name == "integrations":  # libraries that keep things for the whole process, and warn as they like
        code = os.pathsep.join([str(ROOT / "src"), str(ROOT / "docs" / "_ext")])
        program = "import sys, pathlib, blocks; print(len(blocks.run_page(pathlib.Path(sys.argv[1]))))"
        done = subprocess.run(
            [sys.executable, "-c", program, str(page)],
            env={**os.environ, "PYTHONPATH": code},
            capture_output=True,
            text=True,
        )
        assert done.returncode == 0, done.stderr
        assert int(done.stdout.split()[-1]) == expected
        return
    assert len(run_page(page)) == expected


def test_the_page_on_tests_names_tests_that_are_there() -> None:
    named = set(re.findall(r"`(tests/[^`]+)`", (ROOT / "docs" / "testing.md").read_text()))
    assert len(named) > 10
    assert [place for place in sorted(named) if not (ROOT / place).exists()] == []


def test_a_shown_output_that_is_not_printed_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    page = tmp_path / "page.md"
    page.write_text("```python\nprint(1)\n```\n\n<!-- output -->\n```text\n1\n```\n")
    assert [ran.printed for ran in run_page(page)] == ["1\n"]
    page.write_text(page.read_text().replace("text\n1", "text\n3"))
    with pytest.raises(AssertionError, match="printed"):
        run_page(page)


def test_pictures_and_prints_are_those_of_their_block(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    page = tmp_path / "page.md"
    page.write_text("```python\nopen('a.png', 'w').close()\n```\n\n```bash\necho b; touch c.png\n```\n")
    assert [(ran.printed, *map(str, ran.pictures)) for ran in run_page(page)] == [("", "a.png"), ("b\n", "c.png")]


@pytest.mark.parametrize("page", ["README.md", "docs/index.md", "docs/tutorials/first.md"])
def test_the_quick_start_needs_numpy_and_scipy_alone(page: str, tmp_path: Path) -> None:
    block = re.findall(r"```python\n(.*?)```", (ROOT / page).read_text(), re.DOTALL)[0]
    extras = ("matplotlib", "cma", "cmaes", "gymnasium", "mujoco", "numba", "pandas", "cvxpy", "ray", "distributed")
    hidden = f"import sys\nsys.modules.update(dict.fromkeys({extras!r}))\n"
    script = tmp_path / "quick.py"
    script.write_text(hidden + block)
    subprocess.run([sys.executable, str(script)], cwd=tmp_path, check=True, capture_output=True)
