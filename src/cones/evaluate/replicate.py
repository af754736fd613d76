r"""Replicates: every candidate is evaluated as often as it takes to rank the population.

Let v be the variance of the true losses of a population and s^2 that of the noise of one evaluation. The mean of r
evaluations orders the candidates with the reliability

    rho(r) = v / (v + s^2 / r)

which is the correlation of two such means. It is measured on ranks, which outliers do not spoil: with R_i and R'_i the
ranks of two independent means of h evaluations of candidate i, each among the first means of the N - 1 others,

    c = 1 - 6 mean((R_i - R'_i)^2) / (N^2 - 1)           (Spearman; over the candidates that have two)
    rho(r) = (r / h) c / (1 + (r / h - 1) c)             (Spearman and Brown)

With too few replicates an iteration goes astray, with too many it costs too much. Let y = s^2 / r and x^2 = v + y,
both in units of the largest noise variance with which the mean still comes nearer. On the sphere in many dimensions an
iteration gains, up to a constant (Arnold and Beyer, Theoretical Computer Science 289, 2002),

    (x^2 - y) (1 / x - 1)

and an evaluation y times that, because r is proportional to 1 / y. Whatever x is, this is largest at
 y = x^2 / 2, where rho = 1/2: as much noise as signal; or at r = 1, if rho(1) is more than that. So r follows

    log r  <-  max(0, log r + g (1/2 - rho))
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from cones.checks import check_integer, check_number
from cones.component import Storable
from cones.errors import InputError
from cones.evaluate.candidates import Candidates, rows
from cones.evaluate.evaluator import Evaluator
from cones.types import Vector

__all__ = ["ReplicatingEvaluator", "Replication", "retest_correlation", "reliability"]

TARGET = 0.5  # of the reliability
GAIN = 1.0  # g
MOST = 1000.0  # replicates
# With one evaluation per candidate, this share of a population is evaluated again, and if its ranks are reliable, the
# next one after twice as many iterations, at most this many.
SHARE, LONGEST_WAIT = 0.25, 16
LARGEST_BATCH = 2**28  # bytes


def retest_correlation(first: Vector, second: Vector) -> float:
    """Spearman's correlation of the candidates' losses with second losses of the first of them.

    Example:
        >>> retest_correlation(np.array([1.0, 2.0, 3.0]), np.array([1.1, 3.5, 2.5]))
        0.75
    """
    first, second = (np.where(np.isnan(losses), math.inf, losses) for losses in (first, second))
    ordered, count = np.sort(first), second.size

    def ranks(losses: Vector) -> Vector:
        """Ranks among the first losses of the others; ties count by half."""
        own = first[:count]
        below, up_to = (np.searchsorted(ordered, losses, side) for side in ("left", "right"))
        return np.asarray(0.5 * (below - (own < losses) + up_to - (own <= losses)))

    change = ranks(second) - ranks(first[:count])
    return float(1.0 - 6.0 * np.mean(change**2) / (first.size**2 - 1.0))


def reliability(correlation: float, ratio: float) -> float:
    """The reliability of means of `ratio` times as many evaluations as those with this correlation.

    Example:
        >>> reliability(0.5, 3.0)
        0.75
    """
    correlation = min(max(correlation, 0.0), 1.0)
    return ratio * correlation / (1.0 + (ratio - 1.0) * correlation)


@dataclass(frozen=True)
class Replication(Storable):
    """How many evaluations per candidate, from one population to the next.

    Attributes:
        number: evaluations per candidate, on average.
        wait: iterations until ranks are measured again; 0 if they are in this one.
        last_wait: the wait before.
        restarts: number of the descent; another one begins anew.
    """

    number: float = 1.0
    wait: int = 0
    last_wait: int = 0
    restarts: int = 0

    def __post_init__(self) -> None:
        if not 1.0 <= check_number("number", self.number) <= MOST:
            raise InputError(f"number: expected 1 to {MOST:g} evaluations per candidate, got {self.number:g}")
        for name in ("wait", "last_wait", "restarts"):
            check_integer(name, getattr(self, name), 0)

    def counts(self, popsize: int, limit: float) -> tuple[int, int]:
        """Evaluations of every candidate, and how many candidates have one more; at most `limit` in all."""
        number = max(1.0, min(self.number, MOST, limit / popsize))
        every = int(number)
        more = int((number - every) * popsize + 1e-9)
        if every == 1 and not self.wait:
            more = max(more, int(min(math.ceil(SHARE * popsize), limit - popsize)))
        return every, max(0, more)

    def after(self, measured: float, number: float) -> Replication:
        """That of the next population, if this one had this reliability, NaN if unknown, with `number` evaluations."""
        if math.isnan(measured):
            return replace(self, wait=max(0, self.wait - 1))
        # From what the budget allowed, if that was less. One evaluation is measured on a few candidates with two.
        now = self.number if self.number < 2.0 else min(self.number, number)
        now = min(MOST, max(1.0, now * math.exp(GAIN * (TARGET - measured))))
        wait = min(2 * self.last_wait + 1, LONGEST_WAIT) if now == 1.0 else 0
        return Replication(now, wait, wait, self.restarts)


class ReplicatingEvaluator(Evaluator):
    """Evaluates candidates several times by another evaluator, and returns their mean losses.

    Attributes:
        every, more: evaluations of every candidate, and how many of the first candidates have one more.
        spent: evaluations of the last population that are known.
        reliability: of the ranks of the last population; NaN if no candidate has two evaluations.
    """

    def __init__(self, evaluator: Evaluator) -> None:
        super().__init__()
        self._evaluator = evaluator
        self.prepare(1, 0)

    def prepare(self, every: int, more: int) -> None:
        """Say how often the next population is evaluated."""
        self.every, self.more = every, more
        self.spent, self.reliability, self.partial = 0, math.nan, None

    def losses(self, candidates: Candidates) -> Vector:
        count = len(candidates)
        values = np.full((self.every + 1, count), math.nan)
        known, self.failures, self.reliability = values.reshape(-1), {}, math.nan
        total, done = self.every * count + self.more, 0
        try:
            for batch in self._batches(candidates):
                stop = done + len(batch)
                try:
                    known[done:stop] = self._evaluator.losses(batch)
                except BaseException as error:
                    index = done + getattr(error, "cones_candidate", 0)
                    if isinstance(error, Exception) and index >= count:
                        error.add_note(f"cones: this was evaluation {index // count + 1} of candidate {index % count}")
                    if (partial := self._evaluator.partial) is not None:
                        known[done:stop] = partial
                    raise
                finally:
                    self.failures |= {(done + k) % count: why for k, why in self._evaluator.failures.items()}
                done = stop
        finally:
            self.spent = total if done == total else int(np.count_nonzero(~np.isnan(known)))
            self.partial = _mean_of_known(values)
        half = max(1, self.every // 2)
        with np.errstate(invalid="ignore", over="ignore"):  # of infinite losses
            losses = values[: self.every].sum(axis=0)
            losses[: self.more] += values[self.every, : self.more]
            losses /= self.every + (np.arange(count) < self.more)
            first, second = values[:half].mean(axis=0), values[half : 2 * half].mean(axis=0)
        second = second[: self.more if self.every == 1 else count]
        if second.size and count > 1:
            self.reliability = reliability(retest_correlation(first, second), total / count / half)
        return np.asarray(losses)

    def _batches(self, candidates: Candidates) -> Iterator[Candidates]:
        """All evaluations: one batch for the workers to share, as far as it fits into memory."""
        if not isinstance(candidates, np.ndarray) or (self.every, self.more) == (1, 0):
            yield from [candidates] * self.every
            if self.more:
                yield rows(candidates, 0, self.more)
            return
        every = np.tile(np.arange(len(candidates)), self.every)
        index = np.concatenate([every, np.arange(self.more)])
        size = max(1, LARGEST_BATCH // max(1, candidates[0].nbytes))
        for first in range(0, index.size, size):
            yield candidates[index[first : first + size]]

    def close(self) -> None:
        self._evaluator.close()

    def abort(self) -> None:
        self._evaluator.abort()


def _mean_of_known(values: Vector) -> Vector:
    known = ~np.isnan(values)
    counts = known.sum(axis=0)
    sums = np.where(known, values, 0.0).sum(axis=0)
    return np.asarray(np.where(counts > 0, sums / np.maximum(counts, 1), math.nan))
