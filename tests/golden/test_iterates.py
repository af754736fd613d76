"""The iterates of ES, NES and CoNES are those of the release before the library was rebuilt, to 1e-12."""

import json

import numpy as np
import pytest
from golden.runs import CASES, COLUMNS, FILE, measured, strategy

RECORDED = json.loads(FILE.read_text())


def test_every_case_is_recorded():
    assert set(RECORDED) == set(CASES)


@pytest.mark.parametrize("name", CASES)
def test_iterates_are_unchanged(name):
    seen, recorded = measured(strategy(CASES[name])), RECORDED[name]
    # The gap is a difference of nearly equal numbers: it is compared with the objective's size, which it certifies.
    tolerance = 1e-5 if CASES[name].get("dtype") == "float32" else 1e-12
    for column in (*COLUMNS, "mean", "deviation", "candidates"):
        now, before = (np.array(values, dtype=float) for values in (seen[column], recorded[column]))
        scale = np.nanmax(np.abs(before), initial=0.0)
        if column == "gap":
            multiplier, radius = np.nanmax(np.array(recorded["multiplier"], dtype=float), initial=0.0), 1.0
            if isinstance(given := CASES[name].get("radius"), float):
                radius = max(radius, given)
            scale = max(scale, multiplier * radius**2)
        np.testing.assert_allclose(now, before, rtol=0.0, atol=tolerance * max(scale, 1e-300), err_msg=column)
