"""What several test files share."""

from __future__ import annotations

import os
import signal

import numpy as np

from cones import DiagonalGaussian, FullGaussian, Gradient
from cones.beliefs import Belief


def random_belief(kind: str, dim: int, seed: int) -> Belief:
    rng = np.random.default_rng(seed)
    mean = rng.standard_normal(dim)
    if kind == "diagonal":
        return DiagonalGaussian(mean, rng.uniform(0.2, 3.0, dim))
    square = rng.standard_normal((dim, dim))
    return FullGaussian(mean, square @ square.T / dim + 0.3 * np.eye(dim))


def random_gradient(kind: str, dim: int, seed: int) -> Gradient:
    rng = np.random.default_rng(seed)
    mean = rng.standard_normal(dim)
    if kind == "diagonal":
        return Gradient(mean, rng.standard_normal(dim))
    square = rng.standard_normal((dim, dim))
    return Gradient(mean, square + square.T)


def covariance_of(belief: Belief) -> np.ndarray:
    covariance = belief.encode("covariance")
    return np.diag(covariance) if covariance.ndim == 1 else covariance


def process_that_dies_for_es(run, folder, messages, stop, pause) -> None:
    """A run's process that is killed, if it is one of ES. Here, where a fresh process can import it."""
    from cones.experiments.runner import _process

    if run.method.label == "ES":
        os.kill(os.getpid(), signal.SIGKILL)
    _process(run, folder, messages, stop, pause)
