"""The notebooks of examples/ run, and show what is stored in them."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

nbformat = pytest.importorskip("nbformat")
nbclient = pytest.importorskip("nbclient")

NOTEBOOKS = sorted((Path(__file__).parent.parent / "examples").glob("*.ipynb"))


def shown(cell: Any) -> list[Any]:
    """What a cell prints, numbers aside, and the kinds of what it displays."""
    return [
        re.sub(r"[\d.]+(?:e[+-]?\d+)?", "#", output["text"]) if "text" in output else sorted(output["data"])
        for output in cell.outputs
    ]


def code(notebook: Any) -> list[Any]:
    return [cell for cell in notebook.cells if cell.cell_type == "code"]


def test_there_are_three_and_each_is_stored_with_a_picture() -> None:
    assert [path.stem for path in NOTEBOOKS] == ["first_minimisation", "mixed_space", "train_policy"]
    for path in NOTEBOOKS:
        notebook = nbformat.read(path, as_version=4)
        nbformat.validate(notebook)
        assert any("image/png" in kinds for cell in code(notebook) for kinds in shown(cell)), path
        assert [cell.execution_count for cell in code(notebook)] == [*range(1, len(code(notebook)) + 1)], path


@pytest.mark.filterwarnings("ignore:::jupyter_client", "ignore:::zmq", "ignore:::nbclient", "ignore:::traitlets")
@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_runs_and_shows_what_is_stored_in_it(path: Path, tmp_path: Path) -> None:
    stored = nbformat.read(path, as_version=4)
    run = nbformat.read(path, as_version=4)
    resources = {"metadata": {"path": str(tmp_path)}}
    nbclient.NotebookClient(
        run, timeout=300, kernel_name="python3", coalesce_streams=True, resources=resources
    ).execute()
    assert [shown(cell) for cell in code(run)] == [shown(cell) for cell in code(stored)]
