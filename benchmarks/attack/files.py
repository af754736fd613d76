"""Files that are damaged or edited.

One changed byte must be refused with an error of the library, or the file must load to the same numbers. An edited
header, under a checksum that is right, must be refused, or give a strategy that runs.
"""

from __future__ import annotations

import copy
import gzip
import json
import tempfile
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

import cones
from benchmarks.attack import Row
from cones.archive import Arrays, read_archive, write_archive
from cones.records import read_record
from cones.records.record import write_record
from cones.rl import Policy
from cones.rl.policy import Network

__all__ = ["campaign"]

SETTINGS: list[dict[str, Any]] = [
    {},
    {"method": "es", "bounds": [(-2.0, 2.0)] * 5, "popsize": 6},
    {"method": "nes", "belief": "full", "optimizer": "sgd,momentum=0.5", "popsize": 8},
    {"belief": "low_rank", "restarts": 2, "popsize": 8},
    {"radius": "adaptive", "estimator": "asebo,warm_up=1", "popsize": 10},
    {"radius": "adaptive", "belief": "diagonal", "dtype": "float32", "popsize": 10},
    {"method": "cma", "options": {"CMA_mu": 3}},
    {"method": "sepcma"},
]
ODD: list[Any] = [
    None, True, -1, 0, 3, 2**70, 1e308, float("nan"), float("inf"), 0.5, "", "x", "os:system", "9**9**9**9", [], {},
    [1], {"a": 1}, {"array": "array0"}, {"array": "array1"}, {"scalar": "array2"}, {"tuple": []}, {"dict": {}},
    {"function": "os:system"}, {"type": "cones.optimizers.adam:Adam", "parts": {}}, {"type": "os:system", "parts": {}},
]  # fmt: skip


def sphere(X: Any) -> Any:
    return np.square(X).sum(axis=-1)


def checkpoint(path: Path, settings: dict[str, Any], iterations: int = 12) -> Path:
    cones.minimize(
        sphere,
        np.ones(5),
        rng=0,
        vectorized=True,
        maxiter=iterations,
        xtol=None,
        ftol=None,
        checkpoint=path,
        **settings,
    )
    return path


def policy(path: Path) -> Path:
    space = {"kind": "box", "shape": [4], "dtype": "float32"}
    action = {"kind": "box", "shape": [2], "dtype": "float32", "low": [-1.0, None], "high": [1.0, None]}
    rng = np.random.default_rng(0)
    network = Network((4, 16, 2))
    spaces = {"observation": space, "action": action}
    Policy("Task-v0", network, rng.standard_normal(network.dim), np.zeros(4), np.ones(4), spaces).save(path)
    return path


def record(path: Path) -> Path:
    rng = np.random.default_rng(0)
    columns = {name: rng.standard_normal(200) for name in ("evaluations", "mean_loss", "evaluation_seconds")}
    write_record(path, {"label": "CoNES", "seed": 0}, True, "maxfev", columns)
    return path


def numbers(value: Any) -> bytes:
    """All that a loaded object is made of, to the last bit."""
    if isinstance(value, np.ndarray):
        return repr((value.dtype, value.shape)).encode() + value.tobytes()
    if isinstance(value, dict):
        return b"".join(key.encode() + numbers(part) for key, part in value.items())
    if isinstance(value, (list, tuple)):
        return b"".join(map(numbers, value))
    if isinstance(value, cones.Strategy):
        return numbers(value.stored())
    if hasattr(value, "stored"):
        return numbers(value.stored())
    return numbers(vars(value)) if hasattr(value, "__dict__") else repr(value).encode()


def campaign(count: int, rng: np.random.Generator) -> list[Row]:
    """`count` changed bytes and half as many edited fields, over checkpoints, policies and records."""
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        place = Path(folder)
        # Of 30 iterations, so that arrays are long enough for checks at their end to be missed.
        checkpoints = [checkpoint(place / f"{k}.ckpt", settings, 30) for k, settings in enumerate(SETTINGS)]
        files: list[tuple[str, list[Path], Callable[[Path], Any]]] = [
            ("checkpoint", checkpoints, cones.load),
            ("policy", [policy(place / "a.policy.npz")], Policy.load),
            ("record", [record(place / "a.json.gz")], read_record),
        ]
        rows = []
        for name, paths, load in files:
            rows.append(_bytes_changed(name, paths, load, count // len(files), rng))
        for name, paths, load in files:
            rows.append(_fields_edited(name, paths, load, count // (2 * len(files)), rng))
        return rows


def _bytes_changed(
    name: str, paths: list[Path], load: Callable[[Path], Any], count: int, rng: np.random.Generator
) -> Row:
    failures = 0
    for path in paths:
        whole, expected = path.read_bytes(), numbers(load(path))
        # Half of them at the beginnings of arrays and of the zip's parts, where structure is.
        marks = [k for k in range(len(whole)) if whole.startswith((b"PK", b"\x93NUMPY"), k)] or [0]
        for k in range(count // len(paths)):
            at = int(rng.integers(len(whole)) if k % 2 else rng.choice(marks) + rng.integers(120)) % len(whole)
            damaged = bytearray(whole)
            damaged[at] ^= int(rng.integers(1, 256))
            path.write_bytes(damaged)
            failures += not _holds(lambda: numbers(load(path)) == expected)  # noqa: B023
        path.write_bytes(whole)
    return Row(f"byte changed: {name}", count // len(paths) * len(paths), failures)


def _holds(call: Callable[[], bool]) -> bool:
    """True if the call raises an error of the library, or returns True."""
    try:
        return call()
    except cones.ConesError:
        return True
    except Exception:
        return False


def _fields_edited(
    name: str, paths: list[Path], load: Callable[[Path], Any], count: int, rng: np.random.Generator
) -> Row:
    failures = 0
    for path in paths:
        header, arrays = _content(path)
        places = list(ways(header))
        for _ in range(count // len(paths)):
            edited = copy.deepcopy(header)
            *way, last = places[rng.integers(len(places))]
            part = edited
            for key in way:
                part = part[key]
            part[last] = copy.deepcopy(ODD[rng.integers(len(ODD))])
            _seal(path, edited, arrays)
            failures += not _holds(lambda: used(load(path)))  # noqa: B023
    return Row(f"field edited: {name}", count // len(paths) * len(paths), failures)


def _content(path: Path) -> tuple[Any, Arrays]:
    return (json.loads(gzip.decompress(path.read_bytes())), {}) if path.suffix == ".gz" else read_archive(path)


def _seal(path: Path, header: Any, arrays: Arrays) -> None:
    """Write a file whose checksum is right."""
    if path.suffix == ".gz":
        path.write_bytes(gzip.compress(json.dumps(header).encode()))
    else:
        write_archive(path, header, arrays)


def ways(value: Any, way: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """The ways to all parts of a JSON value."""
    if way:
        yield way
    for key, part in value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ():
        yield from ways(part, (*way, key))


def used(thing: Any) -> bool:
    """Use what was loaded: an iteration of a strategy, an action of a policy."""
    if isinstance(thing, cones.Strategy):
        if thing.popsize <= 1000:  # a larger one is a setting like any other, and takes long
            for _ in range(2):
                X = np.asarray(thing.ask())
                thing.tell(X, sphere(X))
        thing.result.message  # noqa: B018
    elif isinstance(thing, Policy):
        thing(np.zeros(thing.space["observation"].get("shape", ())))
    return True
