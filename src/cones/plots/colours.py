"""One colour per method, in every figure, report and benchmark.

The colours are those of Paul Tol's schemes that can be told apart with colour-blind eyes, on light and on dark ground.
"""

from __future__ import annotations

from collections.abc import Sequence

__all__ = ["COLOURS", "colour_of", "ink_of"]

COLOURS = {
    "CoNES": "#ee6677",
    "CoNES paper": "#bb5500",
    "ES": "#4477aa",
    "NES": "#ccbb44",
    "CMA": "#aa3377",
    "SepCMA": "#228833",
    "PyCMA diagonal": "#66ccee",
    "PyCMA bipop": "#7777aa",
    "cmaes": "#44aa99",
    "LM-CMA": "#332288",
    "LM-MA-ES": "#555555",
    "MMES": "#999933",
    "VkD": "#997700",
    "CR-FM-NES": "#117733",
}
# Other spellings, in lower case and without spaces and dashes.
SAME = {"conesadaptive": "cones", "pycma": "cma", "cmaessep": "sepcma", "vkdcma": "vkd"}
OTHERS = ("#228833", "#66ccee", "#7777aa", "#997700", "#44aa99", "#332288", "#999933", "#994455")


def _key(method: str) -> str:
    key = "".join(letter for letter in method.lower() if letter.isalnum())
    return SAME.get(key, key)


BY_KEY = {_key(method): colour for method, colour in COLOURS.items()}


def colour_of(method: str, methods: Sequence[str]) -> str:
    """The colour of a method in a figure that shows `methods`. Those without one of their own get what is left.

    Beside "CoNES adaptive", "CoNES" is the paper's.
    """
    if method == "CoNES" and "CoNES adaptive" in methods:
        return COLOURS["CoNES paper"]
    if own := BY_KEY.get(_key(method)):
        return own
    used = {BY_KEY[_key(name)] for name in methods if _key(name) in BY_KEY}
    free = [colour for colour in OTHERS if colour not in used] or list(OTHERS)
    unknown = [name for name in methods if _key(name) not in BY_KEY]
    return free[unknown.index(method) % len(free)]


def ink_of(colour: str) -> str:
    """The colour for text: darker, so that it can be read on white."""
    parts = [int(int(colour[place : place + 2], 16) * 0.75) for place in (1, 3, 5)]
    return "#{:02x}{:02x}{:02x}".format(*parts)
