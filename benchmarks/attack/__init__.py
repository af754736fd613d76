"""Attacks on the library: each part is `campaign(count, rng)` and returns rows (name, tries, failures)."""

from __future__ import annotations

from typing import NamedTuple

__all__ = ["Row"]


class Row(NamedTuple):
    """What was done how often, and how often it did not end as it should."""

    name: str
    tries: int
    failures: int
