"""What users install: the packages are built once, and the wheel runs in an environment of its own."""

from __future__ import annotations

import os
import subprocess
import sys
import tarfile
import venv
import zipfile
from importlib.metadata import distribution
from pathlib import Path

import pytest

import cones

ROOT = Path(__file__).parent.parent
NEEDED = ("numpy", "scipy")


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An sdist, and a wheel that was made from it. Nothing is fetched: the backend is the one that is installed."""
    out = tmp_path_factory.mktemp("dist")
    command = [sys.executable, "-m", "build", "--no-isolation", "--outdir", str(out), str(ROOT)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stdout + done.stderr
    return out


@pytest.fixture(scope="module")
def wheel(built: Path) -> Path:
    (path,) = built.glob("*.whl")
    return path


def clean() -> dict[str, str]:
    """The variables of this process, without those that bring in packages from elsewhere."""
    return {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}


@pytest.fixture(scope="module")
def program(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The `python` of an environment with the wheel, NumPy and SciPy, and nothing else."""
    place = tmp_path_factory.mktemp("empty")
    venv.create(place, symlinks=os.name != "nt")
    python = next(path for path in (place / "bin" / "python", place / "Scripts" / "python.exe") if path.exists())
    command = [sys.executable, "-m", "pip", "--python", str(python), "install", "--quiet", "--no-index", "--no-deps"]
    done = subprocess.run([*command, str(wheel)], env=clean(), capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    (site,) = place.rglob("site-packages")
    for name in NEEDED:  # by links: a copy of them would take longer than all the rest
        found = distribution(name)
        tops = {Path(file).parts[0] for file in found.files or () if ".." not in Path(file).parts}
        for top in tops:
            if not (site / top).exists():
                (site / top).symlink_to(Path(str(found.locate_file(top))))
    return python


def run(python: Path, *arguments: str, where: Path) -> str:
    done = subprocess.run(
        [str(python), *arguments], cwd=where, env=clean(), capture_output=True, text=True, timeout=120
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_the_wheel_is_small_and_has_the_package_only(wheel: Path) -> None:
    assert wheel.stat().st_size < 10**6
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
    assert {name.split("/")[0] for name in names} == {"cones", f"cones-{cones.__version__}.dist-info"}
    package = Path(cones.__file__).parent
    files = [path.relative_to(package.parent) for path in package.rglob("*") if path.is_file()]
    shipped = {path.as_posix() for path in files if "__pycache__" not in path.parts}
    assert {name for name in names if name.startswith("cones/")} == shipped
    assert "cones/py.typed" in names


def test_the_sdist_has_what_it_takes_and_no_records(built: Path) -> None:
    (path,) = built.glob("*.tar.gz")
    assert path.stat().st_size < 10**6
    with tarfile.open(path) as archive:
        tops = {name.split("/")[1] for name in archive.getnames() if "/" in name}
    assert {"src", "examples", "pyproject.toml", "README.md", "LICENSE", "CITATION.cff"} <= tops
    assert not {"results", "tests", "docs", "benchmarks"} & tops


def test_it_runs_where_nothing_else_is_installed(program: Path, tmp_path: Path) -> None:
    code = """if True:
        import importlib.metadata, sys, cones
        assert "site-packages" in cones.__file__, cones.__file__
        result = cones.minimize(lambda x: ((x - 2.0) ** 2).sum(), [0.0] * 5, maxfev=2000, rng=0)
        assert result.fun < 1e-8, result
        try:
            cones.plot(result)
        except cones.MissingExtraError as error:
            print(error)
        print(*sorted(found.name for found in importlib.metadata.distributions()))
    """
    printed = run(program, "-c", code, where=tmp_path).splitlines()
    assert printed[-1].split() == ["cones", *NEEDED]
    assert "matplotlib" in printed[0]  # what is missing, and how to get it
    command = program.with_name("cones")
    assert run(command, "--version", where=tmp_path) == f"cones {cones.__version__}\n"
    (tmp_path / "mine.py").write_text("def loss(x):\n    return float((x**2).sum())\n")
    flags = ["--dim", "3", "--maxfev", "300", "--seed", "0", "--out", "result.json"]
    run(command, "minimize", "mine:loss", *flags, where=tmp_path)
    assert (tmp_path / "result.json").stat().st_size > 100
    assert "numpy" in run(command, "doctor", where=tmp_path)
