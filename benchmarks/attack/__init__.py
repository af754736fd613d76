"""Attacks on the library: each part is `campaign(count, rng)` and returns rows (name, tries, failures)."""

from __future__ import annotations

__all__ = ["Row"]

Row = tuple[str, int, int]
