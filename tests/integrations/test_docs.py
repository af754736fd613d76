"""Every bridge has its page and its extra."""

from __future__ import annotations

import tomllib
from pathlib import Path

ROOT = Path(__file__).parent.parent.parent
PAGES = sorted((ROOT / "docs" / "integrations").glob("*.md"))


def test_every_page_is_in_the_index() -> None:
    index = (ROOT / "docs" / "integrations" / "index.md").read_text()
    for page in PAGES:
        assert page.stem == "index" or f"]({page.name})" in index


def test_every_bridge_has_a_page_and_an_extra() -> None:
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    index = (ROOT / "docs" / "integrations" / "index.md").read_text()
    for name in ("optuna", "torch", "nevergrad", "tensorboard", "mlflow", "wandb", "coco"):
        assert name in extras
        assert f"`{name}`" in index
        assert f",{name}," in f"{extras['dev'][0]},".replace("[", ",").replace("]", ",")
