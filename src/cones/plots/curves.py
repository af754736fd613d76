"""Columns to plot, with a label, from results, strategies, histories and files."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from cones.errors import InputError
from cones.files import parsed_json
from cones.packed import archive_of, is_there
from cones.strategy import Strategy
from cones.types import Vector

if TYPE_CHECKING:
    from cones.records import Record

__all__ = ["AXES", "Columns", "Group", "columns_from", "curves_of"]

AXES = ("evaluations", "timesteps", "seconds", "iterations")

Columns = dict[str, Vector]


@dataclass
class Group:
    """Runs that differ in their seed, drawn as one curve."""

    label: str
    on: str = ""  # the problem or task, where it is known
    seeds: list[Columns] = field(default_factory=list)
    method: str = ""  # of a run without a label: its colour, where it is drawn alone


@dataclass(frozen=True)
class Found:
    """The columns of a run and its own label. Runs with the same `key` are seeds of one thing."""

    columns: Columns
    label: str = ""
    on: str = ""
    key: str = ""
    method: str = ""


def curves_of(runs: Sequence[Any], labels: Sequence[str] | None) -> list[Group]:
    """The runs grouped by label, in order of first appearance."""
    if isinstance(labels, str) or (labels is not None and len(labels) != len(runs)):
        raise InputError(f"labels: expected {len(runs)}, one per run, got {labels!r}")
    groups: dict[str, Group] = {}
    for number, run in enumerate(runs, start=1):
        seeds = run if isinstance(run, (list, tuple)) else [run]
        if not seeds:
            raise InputError(f"runs: expected the seeds of run {number}, got none")
        for found in (one for seed in seeds for one in _found(seed)):
            if labels is not None:
                groups.setdefault(str(labels[number - 1]), Group(str(labels[number - 1]))).seeds.append(found.columns)
                continue
            key = found.key if seeds is not run and found.key else f"run {number}"
            named = Group(found.label or found.method or f"run {number}", found.on, method=found.method)
            groups.setdefault(key, named).seeds.append(found.columns)
    return _named_apart(list(groups.values()))


def _named_apart(groups: list[Group]) -> list[Group]:
    """Number labels that repeat on a problem."""
    seen: dict[tuple[str, str], int] = {}
    for group in groups:
        seen[group.on, group.label] = count = seen.get((group.on, group.label), 0) + 1
        group.label += f" ({count})" if count > 1 else ""
    return groups


def columns_from(history: Mapping[str, Any], name: str) -> Columns:
    """A history as columns of one length, with `iterations` and, if they are known, `seconds`."""
    try:
        columns = {str(key): np.asarray(column, dtype=np.float64) for key, column in history.items()}
    except (TypeError, ValueError):
        raise InputError(f"{name}: expected columns of numbers by name") from None
    shapes = {column.shape for column in columns.values()}
    if len(shapes) != 1 or len(shape := next(iter(shapes))) != 1:
        raise InputError(f"{name}: expected columns of one length, a number per iteration each")
    if shape[0] == 0:
        raise InputError(f"{name}: expected at least one iteration, got none")
    columns.setdefault("iterations", np.arange(1.0, shape[0] + 1.0))
    if "seconds" not in columns and {"evaluation_seconds", "optimizer_seconds"} <= columns.keys():
        columns["seconds"] = np.cumsum(columns["evaluation_seconds"] + columns["optimizer_seconds"])
    return columns


def _found(run: Any) -> list[Found]:
    if isinstance(run, (str, PathLike)):
        return _read(Path(run))
    if isinstance(run, Strategy):
        return [Found(columns_from(run.history.columns(), "history"), method=run.method)]
    history = getattr(run, "history", None)
    if history is None and isinstance(run, Mapping):
        history = run.get("history", run)
    if not isinstance(history, Mapping):
        raise InputError(
            f"runs: expected a result, a strategy, a history or a path, got a {type(run).__name__} without history"
        )
    return [Found(columns_from(history, "history"), method=str(getattr(run, "method", "")))]


def _read(path: Path) -> list[Found]:
    """The runs in a file or folder. The end of its name says what it is."""
    if path.is_dir() or path == archive_of(path.with_name("runs")):
        return _read_folder(path if path.is_dir() else path.parent)
    if not is_there(path):
        raise InputError(f"{path}: no such file")
    if path.name.endswith(".json.gz"):
        from cones.records import read_record

        return [_of_record(read_record(path), path)]
    if path.suffix == ".json":
        columns, method = _of_json(path)
        return [Found(columns, path.stem, method=method)]
    if path.name.endswith(".policy.npz"):
        raise InputError(f"{path}: a policy holds no history; name its folder, or the record beside it")
    from cones.run.checkpoint import load

    strategy = load(path)
    return [Found(columns_from(strategy.history.columns(), str(path)), path.stem, method=strategy.method)]


def _read_folder(path: Path) -> list[Found]:
    from cones.records import Folder

    records = Folder(path).records()
    if not records:
        raise InputError(f"{path}: expected a folder of `cones run` or `cones train`; there are no records in it")
    return [_of_record(record, path) for record in records]


def _of_record(record: Record, path: Path) -> Found:
    from cones.records import ProblemSpec

    run = record.run
    try:
        on = run["task"]["task"] if "task" in run else ProblemSpec(**run["problem"]).label
        key = json.dumps({name: value for name, value in run.items() if name != "seed"}, sort_keys=True)
        return Found(columns_from(record.columns, str(path)), str(run["label"]), on, key)
    except (KeyError, TypeError) as error:
        raise InputError(f"{path}: expected a record of cones ({error})") from None


def _of_json(path: Path) -> tuple[Columns, str]:
    """The history, and the name of the method if it is there."""
    try:
        data = parsed_json(path.read_text())
        history = data["history"]
    except (ValueError, KeyError, TypeError):
        raise InputError(f"{path}: expected the JSON that `cones minimize --out` writes, with its history") from None
    if not isinstance(history, dict):
        raise InputError(f"{path}: expected a history by column")
    return columns_from(history, str(path)), str(data.get("method", ""))
