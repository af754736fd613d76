"""Every block of Python in the pages of docs/integrations runs, in the order of its page."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent.parent
PAGES = sorted((ROOT / "docs" / "integrations").glob("*.md"))


@pytest.mark.parametrize("page", [page for page in PAGES if page.stem != "index"], ids=lambda page: page.stem)
def test_code_runs(page: Path, tmp_path: Path) -> None:
    blocks = re.findall(r"^```python\n(.*?)^```", page.read_text(), re.DOTALL | re.MULTILINE)
    assert blocks
    home = {f"WANDB_{name}_DIR": str(tmp_path) for name in ("CACHE", "CONFIG", "DATA")}
    environment = {
        **os.environ,
        **home,
        "HOME": str(tmp_path),
        "WANDB_SILENT": "true",
        "MLFLOW_DISABLE_TELEMETRY": "true",
    }
    environment["PYTHONPATH"] = str(ROOT / "src")
    done = subprocess.run(
        [sys.executable, "-c", "\n".join(blocks)], cwd=tmp_path, capture_output=True, text=True, env=environment
    )
    assert done.returncode == 0, done.stderr


def test_every_page_is_in_the_index() -> None:
    index = (ROOT / "docs" / "integrations" / "index.md").read_text()
    for page in PAGES:
        assert page.stem == "index" or f"]({page.name})" in index


def test_every_bridge_has_a_page_and_an_extra() -> None:
    import tomllib

    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    index = (ROOT / "docs" / "integrations" / "index.md").read_text()
    for name in ("optuna", "torch", "nevergrad", "tensorboard", "mlflow", "wandb", "coco"):
        assert name in extras
        assert f"`{name}`" in index
        assert f",{name}," in f"{extras['dev'][0]},".replace("[", ",").replace("]", ",")
