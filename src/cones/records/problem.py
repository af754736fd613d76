"""A problem as experiments declare it."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from cones.problems import Problem, problem_from

__all__ = ["ProblemSpec"]


@dataclass(frozen=True)
class ProblemSpec:
    """A problem with its dimension, its shift, its rotation, its noise and its share of corrupted losses."""

    problem: str
    dim: int
    shift: float | None = None
    rotation: int | None = None
    noise: float | None = None
    relative_noise: float | None = None
    corrupted: float | None = None
    sigma: float | None = None  # of the start, instead of the experiment's
    maxfev: int | None = None  # instead of the method's

    def make(self) -> Problem:
        return problem_from(
            self.problem,
            self.dim,
            shift=self.shift,
            rotation=self.rotation,
            noise=self.noise,
            relative_noise=self.relative_noise,
            corrupted=self.corrupted,
        )

    def specification(self) -> dict[str, Any]:
        """Without what is not given, apart from the oldest keys, which every record has."""
        always = ("problem", "dim", "shift", "rotation", "noise")
        return {name: value for name, value in asdict(self).items() if name in always or value is not None}

    @property
    def label(self) -> str:
        """The title of its panels: name, changes and dimension."""
        words = [self.problem.replace("_", "-").title()]
        words += [f"+{self.shift:g}"] if self.shift is not None else []
        words += [f"rotated {self.rotation}"] if self.rotation is not None else []
        words += [f"noise {self.noise:g}"] if self.noise is not None else []
        words += [f"noise {100 * self.relative_noise:g}%"] if self.relative_noise is not None else []
        words += [f"{100 * self.corrupted:g}% corrupted"] if self.corrupted is not None else []
        words += [f"sigma {self.sigma:g}"] if self.sigma is not None else []
        return f"{' '.join(words)}, {self.dim}-D"
