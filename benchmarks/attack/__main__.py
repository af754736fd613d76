"""The whole campaign: `python -m benchmarks.attack [--share S] [--only NAME ...] [--seed K] [--out FOLDER]`.

It takes half an hour or more. The table goes to standard output, and after every part to FOLDER as Markdown and JSON.
"""

from __future__ import annotations

import argparse
import importlib
import json
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

import numpy as np

from benchmarks.attack import Row, files, kills, settings, steps
from benchmarks.measure import environment

PACKAGES = ("cones", "numpy", "scipy", "cma", "cmaes", "gymnasium", "ray", "distributed")


def _workers(count: int, rng: np.random.Generator) -> list[Row]:
    workers = importlib.import_module("benchmarks.attack.workers")  # it imports Ray and Dask
    rows: list[Row] = workers.campaign(count, rng)
    return rows


CAMPAIGNS: dict[str, tuple[int, Callable[[int, np.random.Generator], list[Row]]]] = {
    "files": (12_000, files.campaign),
    "settings": (3_000, settings.campaign),
    "steps": (100_000, steps.campaign),
    **{kind: (75, partial(kills.campaign, kinds=(kind,))) for kind in kills.KINDS},
    "workers": (200, _workers),
}


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.attack", description=__doc__)
    parser.add_argument("--only", nargs="+", choices=CAMPAIGNS, default=list(CAMPAIGNS), help="parts; all by default")
    parser.add_argument("--share", type=float, default=1.0, help="of the full number of tries (default 1)")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", type=Path, default=Path("results/attack"), metavar="FOLDER")
    options = parser.parse_args()
    known = options.out / "attack.json"
    parts = json.loads(known.read_text())["parts"] if known.exists() else {}
    for name in options.only:
        count, campaign = CAMPAIGNS[name]
        begin = time.monotonic()
        rows = campaign(max(1, int(options.share * count)), np.random.default_rng((options.seed, len(name))))
        parts[name] = {"seed": options.seed, "seconds": round(time.monotonic() - begin), "rows": rows}
        print(table({name: parts[name]}), flush=True)
        options.out.mkdir(parents=True, exist_ok=True)
        about = environment(PACKAGES)
        known.write_text(json.dumps({"environment": about, "parts": parts}, indent=2) + "\n")
        (options.out / "attack.md").write_text(f"# Attack\n\n{about}\n\n{table(parts)}")
    return int(any(failures for part in parts.values() for _, _, failures in part["rows"]))


def table(parts: dict[str, dict[str, list[Row]]]) -> str:
    lines = ["| attack | tries | failures |", "| --- | ---: | ---: |"]
    for name in (name for name in CAMPAIGNS if name in parts):
        lines += [f"| {what} | {tries} | {failures} |" for what, tries, failures in parts[name]["rows"]]
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    raise SystemExit(main())
