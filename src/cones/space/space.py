"""Named parameters of all kinds, and the vector that stands for them.

The coordinates of a candidate, in this order: the real numbers and the integers, one each; the flags, 0 or 1 each; the
choices, as one-hot vectors. Numbers on a logarithmic scale are the logarithms.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from cones.checks import check_array
from cones.component import Storable, suggestion
from cones.errors import InputError
from cones.space.bounds import Box
from cones.space.foreign import describes_space, foreign_pairs, parameter_from
from cones.space.parameters import Choice, Constant, Flag, Float, Integer, Number, Parameter
from cones.types import Vector

__all__ = ["Space"]

Values = Mapping[str, Any]


@dataclass(frozen=True)
class _Leaf:
    """A parameter with its place: the path of names that leads to it, and the first of its coordinates."""

    path: tuple[str, ...]
    parameter: Parameter
    first: int

    @property
    def name(self) -> str:
        return ".".join(self.path)


class Space(Storable):
    """A search space of named parameters.

    Args:
        parameters: parameters by name, as a mapping; or give them as keyword arguments. A mapping in place of a
            parameter is a group of its own, and so are its values. Optuna's distributions are parameters, too. Or a
            `ConfigSpace.ConfigurationSpace` without conditions, or a `scipy.optimize.Bounds`.

    Example:
        >>> import cones
        >>> space = cones.Space(lr=cones.Float(1e-5, 1e-1, log=True), layers=cones.Integer(1, 8), bias=cones.Flag())
        >>> space.names
        ('lr', 'layers', 'bias')
        >>> space.decode(space.encode({"lr": 1e-1, "layers": 2, "bias": True}))
        {'lr': 0.1, 'layers': 2, 'bias': True}
    """

    def __init__(self, parameters: Values | Iterable[tuple[str, Any]] | None = None, **named: Any) -> None:
        given, guess = foreign_pairs(parameters) if describes_space(parameters) else (_pairs(parameters), None)
        found = list(_leaves([*given, *named.items()], ()))
        if all(isinstance(parameter, Constant) for _, parameter in found):
            raise InputError(f"space: expected at least one parameter, got {'constants alone' if found else 'none'}")
        names = [".".join(path) for path, _ in found]
        for index, name in enumerate(names):
            if name in names[:index]:
                raise InputError(f"space: expected different names, got {name!r} twice")
        self.names = tuple(names)
        self.guess: dict[str, Any] | None = None
        self.known: tuple[tuple[Vector, float], ...] = ()
        self._place(found)
        if guess:
            self.guess = guess
            self.start()  # check it now

    def _place(self, found: list[tuple[tuple[str, ...], Parameter]]) -> None:
        sizes: dict[type, int] = {Float: 0, Integer: 0, Flag: 0, Choice: 0}
        for _, parameter in found:
            sizes[_kind(parameter)] += _width(parameter)
        self.floats, self.integers, self.flags = sizes[Float], sizes[Integer], sizes[Flag]
        self.numbers = self.floats + self.integers
        self.dim = sum(sizes.values())
        first: dict[type, int] = {Float: 0, Integer: self.floats, Flag: self.numbers, Choice: self.numbers + self.flags}
        leaves, choices = [], []
        for path, parameter in found:
            kind = _kind(parameter)
            leaves.append(_Leaf(path, parameter, first[kind]))
            first[kind] += _width(parameter)
            if isinstance(parameter, Choice):
                choices += [len(parameter.options)] * parameter.count
        self._leaves, self.choices = tuple(leaves), tuple(choices)

    @property
    def parameters(self) -> dict[str, Parameter]:
        """The parameters by name; those of a group as "group.name"."""
        return {leaf.name: leaf.parameter for leaf in self._leaves}

    def __repr__(self) -> str:
        return f"Space({', '.join(f'{leaf.name}={leaf.parameter}' for leaf in self._leaves)})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Space) and repr(self) == repr(other)

    __hash__ = None  # type: ignore[assignment]

    def stored(self) -> dict[str, Any]:
        return {"leaves": [[list(leaf.path), leaf.parameter] for leaf in self._leaves]}

    @classmethod
    def restored(cls, parts: dict[str, Any]) -> Space:
        tree: dict[str, Any] = {}
        for path, parameter in parts["leaves"]:
            node = tree
            for name in path[:-1]:
                node = node.setdefault(name, {})
            node[path[-1]] = parameter
        return cls(tree)

    def starting_at(self, guess: Values) -> Space:
        """The same space; a run starts at these values. Parameters that it lacks start in the middle."""
        space = self._copy()
        space.guess = dict(guess)
        space.start()  # check it now
        return space

    def knowing(self, evaluations: Iterable[tuple[Values, float]]) -> Space:
        """The same space with known losses, as (values, loss) pairs. A run starts at the best of them."""
        space, known = self._copy(), []
        for index, pair in enumerate(evaluations):
            if not isinstance(pair, Sequence) or len(pair) != 2:
                raise InputError(f"evaluations[{index}]: expected (values, loss), got {pair!r:.80}")
            known.append((self.encode(pair[0]), float(check_array(f"evaluations[{index}]", pair[1]).reshape(()))))
        space.known = tuple(known)
        return space

    def _copy(self) -> Space:
        space = Space.__new__(Space)
        space.__dict__.update(self.__dict__)
        return space

    def best_known(self) -> tuple[Vector, float] | None:
        """The known evaluation with the lowest loss; None if there is none."""
        finite = [pair for pair in self.known if not np.isnan(pair[1])]
        return min(finite, key=lambda pair: pair[1], default=None)

    def start(self) -> tuple[Vector, Vector]:
        """Where a run starts, and which coordinates the user has chosen: the guess, or the best known values.

        Other numbers start in the middle of their range; other flags and choices have no start and are 0.
        """
        best, x = self.best_known(), np.zeros(self.dim)
        if best is not None and self.guess is None:
            return best[0].copy(), np.ones(self.dim, bool)
        chosen = np.zeros(self.dim, bool)
        flat = _flattened(self.guess or {}, ())
        self._check_names(flat)
        for leaf in self._leaves:
            part = slice(leaf.first, leaf.first + _width(leaf.parameter))
            if leaf.name in flat:
                x[part], chosen[part] = _coordinates(leaf, flat[leaf.name]), True
            elif isinstance(leaf.parameter, Number):
                x[part] = leaf.parameter.middle()
        return x, chosen

    def encode(self, values: Values) -> Vector:
        """The vector that stands for values; refuses what is not in the space."""
        flat = _flattened(values, ())
        self._check_names(flat)
        if missing := [leaf.name for leaf in self._leaves if leaf.name not in flat]:
            raise InputError(f"{missing[0]}: expected a value, got none")
        x = np.zeros(self.dim)
        for leaf in self._leaves:
            x[leaf.first : leaf.first + _width(leaf.parameter)] = _coordinates(leaf, flat[leaf.name])
        return x

    def decode(self, x: Vector) -> dict[str, Any]:
        """The values that a vector stands for. In place of a choice it takes scores; the highest decides."""
        values: dict[str, Any] = {}
        for leaf in self._leaves:
            node = values
            for name in leaf.path[:-1]:
                node = node.setdefault(name, {})
            piece = x[leaf.first : leaf.first + _width(leaf.parameter)]
            if isinstance(leaf.parameter, Choice):
                piece = piece.reshape(leaf.parameter.count, -1).argmax(axis=1)
            node[leaf.path[-1]] = leaf.parameter.values(piece)
        return values

    def box(self) -> Box:
        """Bounds and integers of all coordinates."""
        lower, upper, whole = np.zeros(self.dim), np.ones(self.dim), np.zeros(self.dim)
        for leaf in self._leaves:
            if isinstance(leaf.parameter, Number):
                part = slice(leaf.first, leaf.first + leaf.parameter.count)
                lower[part], upper[part] = leaf.parameter.ends()
                whole[part] = leaf.parameter.whole
        return Box(lower, upper, whole if whole.any() else None)

    def _check_names(self, given: Mapping[str, Any]) -> None:
        for name in given:
            if name not in self.names:
                known = ", ".join(self.names)
                raise InputError(f"{name}: expected one of {known}, got an unknown name{suggestion(name, self.names)}")


def _kind(parameter: Parameter) -> type:
    """The kind of coordinates that stand for a parameter. Numbers with steps are counts of steps."""
    if isinstance(parameter, Number):
        return Integer if parameter.whole else Float
    return Flag if isinstance(parameter, Constant) else type(parameter)


def _width(parameter: Parameter) -> int:
    """Number of coordinates."""
    if isinstance(parameter, Constant):
        return 0
    return parameter.count * (len(parameter.options) if isinstance(parameter, Choice) else 1)


def _coordinates(leaf: _Leaf, value: Any) -> Vector:
    indices = leaf.parameter.indices(leaf.name, value)
    if not isinstance(leaf.parameter, Choice):
        return indices
    return np.asarray(np.eye(len(leaf.parameter.options))[indices.astype(int)].ravel())


def _pairs(parameters: Any) -> list[tuple[str, Any]]:
    if parameters is None:
        return []
    if isinstance(parameters, Mapping):
        return list(parameters.items())
    try:
        return [(name, parameter) for name, parameter in parameters]
    except (TypeError, ValueError):
        raise InputError(f"parameters: expected a mapping of names to parameters, got {parameters!r:.80}") from None


def _leaves(pairs: Iterable[tuple[Any, Any]], path: tuple[str, ...]) -> Iterable[tuple[tuple[str, ...], Parameter]]:
    for name, parameter in pairs:
        if not isinstance(name, str) or not name:
            raise InputError(f"space: expected names that are strings, got {name!r:.80}")
        own = parameter if isinstance(parameter, Parameter) else parameter_from(name, parameter)
        if own is not None:
            yield (*path, name), own
        elif isinstance(parameter, Mapping):
            yield from _leaves(parameter.items(), (*path, name))
        else:
            raise InputError(
                f"{'.'.join((*path, name))}: expected a cones.Float, Integer, Choice, Flag or a mapping of them, "
                f"got {parameter!r:.80}"
            )


def _flattened(values: Any, path: tuple[str, ...]) -> dict[str, Any]:
    if not isinstance(values, Mapping):
        raise InputError(f"{'.'.join(path) or 'values'}: expected a dict of values by name, got {values!r:.80}")
    flat: dict[str, Any] = {}
    for name, value in values.items():
        if isinstance(value, Mapping):
            flat |= _flattened(value, (*path, str(name)))
        else:
            flat[".".join((*path, str(name)))] = value
    return flat
