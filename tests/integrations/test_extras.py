"""Without the libraries: nothing is imported by `import cones`, and what is missing says how to get it."""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from cones.extras import install_command

LIBRARIES = (
    *("optuna", "torch", "nevergrad", "mlflow", "wandb"),
    *("cocoex", "cocopp", "tensorboardX", "ray", "distributed"),
)
NEEDS = {
    "import cones.integrations.optuna": "optuna",
    "import cones.integrations.torch": "torch",
    "import cones.integrations.nevergrad": "nevergrad",
    "import cones.integrations.coco": "coco",
    "from cones.integrations.trackers import MLflow; MLflow()": "mlflow",
    "from cones.integrations.trackers import WandB; WandB()": "wandb",
    "from cones.integrations.trackers import TensorBoard; TensorBoard('runs')": "tensorboard",
    "import cones; cones.minimize(len, [0.0, 0.0], workers='ray')": "ray",
    "import cones; cones.minimize(len, [0.0, 0.0], workers='tcp://127.0.0.1:1')": "dask",
}
SCRIPT = """
import json, sys
for name in sys.argv[1].split(","):
    sys.modules[name] = None  # as if it were not installed
said = {}
for code in sys.argv[2:]:
    try:
        exec(code)
    except ImportError as error:
        said[code] = [type(error).__name__, str(error)]
print(json.dumps(said))
"""


def named(message: str) -> set[str]:
    """What the command in a message installs: packages that any index has, and not cones itself."""
    return set(shlex.split(message.partition("run: pip install ")[2]))


def declared(extra: str) -> set[str]:
    """The packages of an extra as pyproject.toml has them."""
    extras = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text())["project"]
    packages = set()
    for requirement in extras["optional-dependencies"][extra]:
        own = requirement.startswith("cones[")
        packages |= declared(requirement[6:-1]) if own else {requirement.lower()}
    return packages


@pytest.fixture(scope="module")
def said() -> dict[str, list[str]]:
    command = [sys.executable, "-c", SCRIPT, ",".join(LIBRARIES), *NEEDS]
    return json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout)


@pytest.mark.parametrize("code", NEEDS)
def test_a_missing_library_says_how_to_install_it(code: str, said: dict[str, list[str]]) -> None:
    kind, message = said[code]
    assert kind == "MissingExtraError"
    assert named(message)
    assert named(message) <= declared(NEEDS[code])


def test_an_extra_of_extras_names_each_package_once(monkeypatch: pytest.MonkeyPatch) -> None:
    lines = ["numpy", "a>=1; extra == 'x'", "b; extra == 'x'", 'cones[x,y]; extra == "z"', "b; extra == 'y'"]
    monkeypatch.setattr("cones.extras.requires", lambda name: lines)
    assert install_command("z", "a") == "pip install 'a>=1' b"
    assert install_command("none", "PIL") == "pip install PIL"


def test_extras_exist() -> None:
    from importlib.metadata import metadata

    assert set(NEEDS.values()) <= set(metadata("cones").get_all("Provides-Extra") or [])


def test_a_broken_library_is_not_called_missing(tmp_path: Path) -> None:
    (tmp_path / "optuna.py").write_text("import libfoo_that_is_missing")
    code = "import cones.integrations.optuna"
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, env={**os.environ, "PYTHONPATH": _path(tmp_path)}
    )
    assert done.stderr.splitlines()[-1] == "ModuleNotFoundError: No module named 'libfoo_that_is_missing'"


def _path(folder: Path) -> str:
    return os.pathsep.join(filter(None, [str(folder), os.environ.get("PYTHONPATH")]))


def test_neither_the_library_nor_the_command_line_imports_any() -> None:
    code = "import sys, cones, cones.cli, cones.integrations.trackers; print(*sys.modules)"
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    assert not set(LIBRARIES) & set(loaded)


def test_the_command_says_it_in_one_line() -> None:
    code = "import sys; sys.modules['cocoex'] = None; from cones.cli import main; sys.exit(main(['bench', 'coco']))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 2
    assert done.stderr.count("\n") == 1
    assert "coco-experiment>=2.7" in named(done.stderr)
